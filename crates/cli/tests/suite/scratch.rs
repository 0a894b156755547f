//! A directory to run the command in.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of its own for each test, removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("zonelab-{name}-{process}-{count}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and gives its whole path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// `zonelab ARGS...` in the directory, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonelab"));
        command.current_dir(&self.0).args(args);
        command
    }

    /// Starts `zonelab ARGS...`, interrupts it once `file` has that many lines,
    /// and gives its exit code: 0 if it got to its end before the signal.
    #[cfg(unix)]
    pub(crate) fn interrupted(&self, args: &[&str], file: &str, lines: usize) -> i32 {
        let mut child = self.command(args).spawn().unwrap();
        let written = || {
            let text = std::fs::read_to_string(self.0.join(file));
            text.unwrap_or_default().lines().count()
        };
        while written() < lines && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        let pid = child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 130)), "{code:?}");
        code.unwrap_or_default()
    }

    pub(crate) fn zonelab(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
