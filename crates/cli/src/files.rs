//! Files that the command line names.

use std::path::Path;

use zonelab_config::Override;
use zonelab_lab::session;
pub(crate) use zonelab_lab::session::{Files, MAX_BYTES, ProfileFiles, read_bounded};

use crate::exit::Failure;

/// Reads a text file of which results say nothing.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read(path: &str) -> Result<String, Failure> {
    of_path(path, read_bounded(Path::new(path)))
}

/// Reads a text file that results depend on.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_from(files: &Files, path: &str) -> Result<String, Failure> {
    of_path(path, files.text(Path::new(path)))
}

/// Reads a file of any size and content of which results say nothing. Not a device, which
/// may have no end.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub(crate) fn read_whole(path: &str) -> Result<Vec<u8>, Failure> {
    of_path(path, session::read_whole(Path::new(path)))
}

/// Reads a file as [`read_whole`] does that results depend on.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub(crate) fn read_whole_from(files: &Files, path: &str) -> Result<Vec<u8>, Failure> {
    of_path(path, files.bytes(Path::new(path)))
}

fn of_path<T>(path: &str, read: std::io::Result<T>) -> Result<T, Failure> {
    read.map_err(|error| Failure::input(anyhow::anyhow!("{path}: {error}")))
}

/// Reads `--set key=value` options.
///
/// # Errors
/// One is malformed.
pub(crate) fn overrides(texts: &[String]) -> Result<Vec<Override>, Failure> {
    texts
        .iter()
        .map(|text| Override::parse(text).map_err(|problem| Failure::usage(problem.to_string())))
        .collect()
}
