//! Files that the command line names.

use std::path::Path;

use zonelab_config::{Errors, Override};
use zonelab_lab::run::Profiles;
use zonelab_ssd::profile::Profile;

use crate::exit::Failure;

/// Largest input file; larger ones are not what was meant.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a text file.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub(crate) fn read(path: &str) -> Result<String, Failure> {
    let with_path = |error: std::io::Error| Failure::input(anyhow::anyhow!("{path}: {error}"));
    let size = std::fs::metadata(path).map_err(&with_path)?.len();
    if size > MAX_BYTES {
        return Err(Failure::input(anyhow::anyhow!(
            "{path}: {size} bytes is too large for an input file (at most {MAX_BYTES})"
        )));
    }
    std::fs::read_to_string(path).map_err(with_path)
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
            let path = self.base.map_or_else(|| Path::new(path).to_owned(), |base| base.join(path));
            std::fs::read_to_string(path)
        })
    }
}
