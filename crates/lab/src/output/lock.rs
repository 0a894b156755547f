//! One program at a time writes to a directory of results.

use std::fs::File;
use std::path::Path;

use super::OutputError;

/// What to do if another program writes to a directory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// Wait: it only writes.
    Wait,
    /// Fail: it works for as long as we would.
    Fail,
}

/// Locks a directory until the file is dropped, or the program ends however it does. `None`:
/// the file system has no locks.
#[cfg(all(unix, not(target_family = "wasm")))]
pub(super) fn lock(path: &Path, busy: Busy) -> Result<Option<File>, OutputError> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let dir = File::open(path).map_err(OutputError::io("open", path))?;
    let how = match busy {
        Busy::Wait => FlockOperation::LockExclusive,
        Busy::Fail => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(&dir, how) {
        Ok(()) => Ok(Some(dir)),
        Err(Errno::WOULDBLOCK) => Err(OutputError::Busy {
            path: path.to_owned(),
        }),
        Err(_) => Ok(None),
    }
}

#[cfg(not(all(unix, not(target_family = "wasm"))))]
#[expect(clippy::unnecessary_wraps, reason = "as where there are locks")]
pub(super) fn lock(_path: &Path, _busy: Busy) -> Result<Option<File>, OutputError> {
    Ok(None)
}
