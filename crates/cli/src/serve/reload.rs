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

    /// Reads the file if it is another than before.
    fn look(&mut self, handle: &LoopHandle<Served>) {
        let stamp = Stamp::of(&self.path);
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        let file = self.path.display().to_string();
        let done = (self.read)(&self.path)
            .map_err(|failure| failure.error.to_string())
            .and_then(|apply| {
                let call = handle.call(apply);
                call.map_err(|ended| ended.to_string())?
            });
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
    let looks = move || {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            files.iter_mut().for_each(|file| file.look(&handle));
        }
    };
    let thread = std::thread::Builder::new().name("reload".to_owned());
    thread.spawn(looks).map_err(Failure::environment)?;
    Ok(Watching { _ends: Some(ends) })
}
