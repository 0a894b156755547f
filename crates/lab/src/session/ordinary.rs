//! Opening what a user names without waiting for anybody.

use std::fs::{File, FileType};
use std::io;
use std::path::Path;

/// Opens an ordinary file to read it. A pipe that nobody writes to would be waited for, and a
/// device may have no end: both are refused at once.
///
/// # Errors
/// It cannot be opened, or is no ordinary file.
pub fn open_ordinary(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(match kind.is_dir() {
        true => "this is a directory and no ordinary file; name a file in it".to_owned(),
        false => format!(
            "this is no ordinary file but {}; only an ordinary file is valid",
            name(kind)
        ),
    }))
}

#[cfg(all(unix, not(target_family = "wasm")))]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(all(unix, not(target_family = "wasm")))]
fn name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;

    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(all(unix, not(target_family = "wasm"))))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(all(unix, not(target_family = "wasm"))))]
const fn name(_kind: FileType) -> &'static str {
    "something else"
}
