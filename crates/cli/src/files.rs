//! Files that the command line names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use zonelab_config::{Errors, Override};
use zonelab_lab::run::Profiles;
use zonelab_ssd::profile::Profile;

use crate::exit::Failure;

/// Largest input file; larger ones are not what was meant.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// Reads a text file.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read(path: &str) -> Result<String, Failure> {
    read_bounded(Path::new(path))
        .map_err(|error| Failure::input(anyhow::anyhow!("{path}: {error}")))
}

/// Reads a text file that is not too large, whatever its metadata say of it: a
/// device has no size, and no end.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_bounded(path: &Path) -> std::io::Result<String> {
    let other = |what: String| std::io::Error::other(what);
    if path.is_dir() {
        return Err(other("this is a directory; name a file in it".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(other(format!(
            "too large for an input file (more than {MAX_BYTES} bytes)"
        )));
    }
    String::from_utf8(bytes).map_err(|_| other("this is no text (not UTF-8)".to_owned()))
}

/// Reads a file of any size and content. Not a device, which may have no end.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub(crate) fn read_whole(path: &str) -> Result<Vec<u8>, Failure> {
    let read = || {
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::other("this is no ordinary file"));
        }
        std::fs::read(path)
    };
    read().map_err(|error| Failure::input(anyhow::anyhow!("{path}: {error}")))
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

/// Profiles by built-in name, or by path relative to a directory.
pub(crate) struct ProfileFiles<'a> {
    /// Directory of the experiment that names them; `None`: the current one.
    pub(crate) base: Option<&'a Path>,
}

impl Profiles for ProfileFiles<'_> {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        Profile::load(name, overrides, |path| {
            let path = self
                .base
                .map_or_else(|| Path::new(path).to_owned(), |base| base.join(path));
            read_bounded(&path)
        })
    }
}
