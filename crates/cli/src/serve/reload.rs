//! Files of hosts and keys that change while the server runs.
//!
//! Once a second their state in the file system is looked at. What changed is read, and
//! takes effect if it is right; if not, the log says why and everything stays as it was.
//! A signal would say the same, and needs somebody who sends it: a file that is replaced
//! (by hand, by a mounted secret, by a tool) says so by itself.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use zonelab_live::layer::Served;
use zonelab_target::server::{LoopHandle, Present};

use crate::exit::Failure;

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Puts what a file says into effect.
pub(super) type Apply = Box<dyn FnOnce(Present<'_, Served>) -> Result<(), String> + Send>;

type Read = Box<dyn Fn(&Path) -> Result<Apply, Failure> + Send>;

/// A file, and how it is read.
pub(super) struct Watched {
    path: PathBuf,
    read: Read,
    seen: Option<Stamp>,
}

impl Watched {
    /// A file that is about to be read for the first time.
    pub(super) fn new(
        path: &Path,
        read: impl Fn(&Path) -> Result<Apply, Failure> + Send + 'static,
    ) -> Self {
        Self::since(Stamp::of(path), path, read)
    }

    /// A file that was read after it looked like this.
    pub(super) fn since(
        seen: Option<Stamp>,
        path: &Path,
        read: impl Fn(&Path) -> Result<Apply, Failure> + Send + 'static,
    ) -> Self {
        Self {
            path: path.to_owned(),
            read: Box::new(read),
            seen,
        }
    }

    /// Reads the file if it is another than before, and lets `put` put it into effect.
    fn look(&mut self, put: impl FnOnce(Apply) -> Result<(), String>) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        let file = self.path.display().to_string();
        let done = (self.read)(&self.path)
            .map_err(|failure| failure.error.to_string())
            .and_then(put);
        match done {
            Ok(()) => tracing::info!(file, "read again"),
            Err(error) => tracing::warn!(file, error, "not taken over: all stays as it was"),
        }
    }
}

/// The state of a file: another one if it was written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// `None`: there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|of| Self::from(&of))
    }
}

impl From<&Metadata> for Stamp {
    fn from(of: &Metadata) -> Self {
        Self {
            device: of.dev(),
            inode: of.ino(),
            size: of.size(),
            modified: (of.mtime(), of.mtime_nsec()),
            changed: (of.ctime(), of.ctime_nsec()),
        }
    }
}

/// Looks at files until what it returns is dropped.
pub(super) struct Watching {
    _ends: Option<Sender<()>>,
}

/// Begins to look at files.
///
/// # Errors
/// There is no thread for it.
pub(super) fn watch(
    mut files: Vec<Watched>,
    handle: LoopHandle<Served>,
) -> Result<Watching, Failure> {
    if files.is_empty() {
        return Ok(Watching { _ends: None });
    }
    let (ends, ended) = mpsc::channel::<()>();
    let put = move |apply: Apply| {
        let call = handle.call(apply);
        call.map_err(|ended| ended.to_string())?
    };
    let looks = move || {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            files.iter_mut().for_each(|file| file.look(&put));
        }
    };
    let thread = std::thread::Builder::new().name("reload".to_owned());
    thread.spawn(looks).map_err(Failure::environment)?;
    Ok(Watching { _ends: Some(ends) })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::files;

    #[test]
    fn a_file_that_is_wrong_keeps_no_other_from_being_read() {
        let place = std::env::temp_dir().join(format!("zonelab-reload-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let [bad, good] = ["bad", "good"].map(|name| place.join(name));
        let mut watched = [&bad, &good].map(|path| {
            std::fs::write(path, "old").unwrap();
            Watched::new(path, |path| {
                let read = files::read_of_hosts(path);
                read.map_err(|error| Failure::input(anyhow::anyhow!("{error}")))?;
                Ok(Box::new(|_| Ok(())))
            })
        });
        let taken = Rc::new(Cell::new(0));
        let mut look = || {
            for file in &mut watched {
                let taken = Rc::clone(&taken);
                file.look(move |_| {
                    taken.set(taken.get() + 1);
                    Ok(())
                });
            }
            taken.take()
        };
        assert_eq!(look(), 0, "nothing has changed");
        // Nobody ever writes to it.
        std::fs::remove_file(&bad).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&bad).status();
        assert!(made.unwrap().success());
        std::fs::write(&good, "newer").unwrap();
        assert_eq!(look(), 1, "the other one is read");
        std::fs::remove_file(&bad).unwrap();
        std::fs::write(&bad, "newest").unwrap();
        assert_eq!(look(), 1, "and this one when it is right again");
        let _ = std::fs::remove_dir_all(&place);
    }
}
