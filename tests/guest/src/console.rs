//! What the kernel of the guest prints, and what of it is a fault.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Words of a kernel that found a fault of its own.
const COMPLAINTS: [&str; 13] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "general protection fault",
    "kernel BUG at",
    "Kernel panic",
    "Unable to handle",
    "UBSAN:",
    "invalid opcode:",
    "blocked for more than",
    "soft lockup",
    "detected stalls",
    "refcount_t:",
];
/// Lines after a complaint that are shown with it: registers and the stack.
const CONTEXT_LINES: usize = 40;
/// Lines that are shown of a console that has no complaint.
const TAIL_LINES: usize = 60;

/// The console of a guest: a file that QEMU writes.
#[derive(Debug)]
pub struct Console {
    path: PathBuf,
    /// Lines that were looked at.
    seen: usize,
}

impl Console {
    /// The console in a file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, seen: 0 }
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Complaints since this was last asked, each with the lines after it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn complaints(&mut self) -> Result<Vec<String>> {
        let text = self.text()?;
        let lines: Vec<&str> = text.lines().collect();
        let fresh = lines.get(self.seen..).unwrap_or_default();
        self.seen = lines.len();
        Ok(complaints(fresh))
    }

    /// The last lines.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn tail(&self) -> Result<String> {
        let text = self.text()?;
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn text(&self) -> Result<String> {
        let bytes = std::fs::read(&self.path)
            .with_context(|| format!("no console in {}", self.path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// One text for each complaint; a complaint within the lines of another
/// belongs to it.
fn complaints(lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if COMPLAINTS.iter().any(|word| lines[at].contains(word)) {
            let end = (at + CONTEXT_LINES).min(lines.len());
            found.push(lines[at..end].join("\n"));
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_come_once_and_with_their_stack() {
        let noise = vec!["[ 1.0] nvme nvme0: 1/0/0 default/read/poll queues"; 50];
        let mut lines = noise.clone();
        lines.extend([
            "[ 2.0] WARNING: CPU: 0 PID: 7 at fs/btrfs/zoned.c:1",
            "[ 2.0] Call Trace:",
        ]);
        lines.extend(&noise);
        lines.push("[ 3.0] INFO: task fio:99 blocked for more than 30 seconds.");
        let found = complaints(&lines);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("zoned.c") && found[0].contains("Call Trace"));
        assert!(found[1].contains("fio:99"));
        assert!(complaints(&noise).is_empty());
    }

    #[test]
    fn a_console_tells_each_complaint_once() {
        let name = format!("zonelab-console-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "fine\nBUG: one\n").unwrap();
        let mut console = Console::new(path.clone());
        assert_eq!(console.complaints().unwrap(), ["BUG: one"]);
        assert!(console.complaints().unwrap().is_empty());
        std::fs::write(&path, "fine\nBUG: one\nBUG: two\n").unwrap();
        assert_eq!(console.complaints().unwrap(), ["BUG: two"]);
        std::fs::remove_file(path).unwrap();
    }
}
