//! A file of what was evaluated: a line of JSON for each, so that work that was
//! interrupted goes on from there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Name of the file in a directory of results.
pub const FILE: &str = "evaluations.jsonl";

/// The file: a head that says what it is about, and a line for each evaluation.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: Option<File>,
}

impl Log {
    /// The file at `path`, which is neither read nor made yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds, to append to it. `None` if it is not there or has
    /// no head that `is_ours` accepts: then it is for [`Self::begin`]. Lines
    /// end at the first that is cut off or does not fit, which is removed with
    /// all after it.
    pub(crate) fn read<H: DeserializeOwned, L: DeserializeOwned>(
        &mut self,
        is_ours: impl FnOnce(&H) -> bool,
        fits: impl Fn(&H, &L) -> bool,
    ) -> io::Result<Option<(H, Vec<L>)>> {
        // What a machine that lost power left at the end may be anything, half a letter too.
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut whole = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.ends_with(b"\n"));
        let first = whole.next().unwrap_or_default();
        let Some(head) = serde_json::from_slice(first).ok().filter(is_ours) else {
            return Ok(None);
        };
        let mut lines = Vec::new();
        let mut length = first.len() as u64;
        for text in whole {
            let line = serde_json::from_slice(text).ok();
            let Some(line) = line.filter(|line: &L| fits(&head, line)) else {
                break;
            };
            length += text.len() as u64;
            lines.push(line);
        }
        let file = OpenOptions::new().append(true).open(&self.path)?;
        file.set_len(length)?;
        self.file = Some(file);
        Ok(Some((head, lines)))
    }

    /// Begins the file anew.
    pub(crate) fn begin(&mut self, head: &impl Serialize) -> io::Result<()> {
        self.file = Some(File::create(&self.path)?);
        self.append(head)
    }

    /// Adds a line.
    pub(crate) fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
        text.push('\n');
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("neither read nor begun"))?;
        file.write_all(text.as_bytes())?;
        file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever stands at the end, what is whole before it is read, and the rest removed.
    #[test]
    fn anything_at_the_end_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let lines = ["\"first\"", "\"zw\u{f6}lf\""];
        let mut log = Log::new(&path);
        log.begin(&1_u32).unwrap();
        log.append(&"first").unwrap();
        log.append(&"zw\u{f6}lf").unwrap();
        let whole = std::fs::read(&path).unwrap();
        let read = || {
            let mut log = Log::new(&path);
            let read = log.read(|head: &u32| *head == 1, |_, _: &String| true);
            let (_, read) = read.unwrap().unwrap();
            log.append(&"next").unwrap();
            read
        };
        for cut in 2 + lines[0].len() + 1..=whole.len() {
            for junk in [&b""[..], b"\xff\xfe\n", b"\x00\x00\x00", b"{\n\"late\"\n"] {
                let bytes = [&whole[..cut], junk].concat();
                std::fs::write(&path, bytes).unwrap();
                let count = whole[..cut].iter().filter(|byte| **byte == b'\n').count() - 1;
                let found = read();
                assert!(found.len() >= count.min(1), "cut at {cut}");
                assert_eq!(found, ["first", "zw\u{f6}lf"][..found.len()]);
                assert_eq!(found.len(), count, "cut at {cut}, {junk:?}");
                // It can be gone on with at once.
                assert_eq!(read().last().map(String::as_str), Some("next"));
            }
        }
    }
}
