//! Input files, built-in and a user's own, and profiles among them.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zonelab_config::{Errors, Override};
use zonelab_ssd::profile::{self, Profile};

use super::ordinary::open_ordinary;
use crate::library;
use crate::run::Profiles;

/// Largest input file; larger ones are not what was meant.
pub const MAX_BYTES: u64 = 16 << 20;

/// Where the files that a user names are read from, and what was read of them.
///
/// Results can say what they were made from, and be made again from that alone: who has
/// what a command read ([`Self::read`]) can give the same command with
/// [`Self::packed`] instead of the files of a machine.
#[derive(Debug, Default)]
pub struct Files {
    /// What there is instead of files of this machine.
    packed: Option<Packed>,
    read: Mutex<Gathered>,
}

/// What is read instead of files.
#[derive(Debug)]
struct Packed {
    files: Gathered,
    /// The directory that relative names are taken from: a command makes absolute paths
    /// of some of them.
    here: PathBuf,
}

/// Files by the names under which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Texts.
    pub texts: BTreeMap<String, String>,
    /// Files of any content.
    pub binary: BTreeMap<String, Vec<u8>>,
    /// Texts that are part of the program.
    pub builtin: BTreeMap<String, String>,
}

impl Files {
    /// These files, and nothing else. Relative names are those of files in `here`.
    #[must_use]
    pub fn packed(files: Gathered, here: &Path) -> Self {
        Self {
            packed: Some(Packed {
                files,
                here: here.to_owned(),
            }),
            read: Mutex::default(),
        }
    }

    /// What was read so far; of [`Self::packed`] all that there is, so that what results
    /// say of themselves is the same again.
    #[must_use]
    pub fn read(&self) -> Gathered {
        match &self.packed {
            Some(packed) => packed.files.clone(),
            None => self.record().clone(),
        }
    }

    /// Reads an ordinary text file that is not too large.
    ///
    /// # Errors
    /// It cannot be read, is no ordinary file, too large, or not UTF-8.
    pub fn text(&self, path: &Path) -> io::Result<String> {
        match &self.packed {
            Some(packed) => packed.get(&packed.files.texts, path),
            None => {
                let text = read_bounded(path)?;
                let name = path.to_string_lossy().into_owned();
                self.record().texts.insert(name, text.clone());
                Ok(text)
            }
        }
    }

    /// Reads a file of any size and content. Not a device, which may have no end.
    ///
    /// # Errors
    /// It cannot be read, or is no ordinary file.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        match &self.packed {
            Some(packed) => packed.get(&packed.files.binary, path),
            None => {
                let bytes = read_whole(path)?;
                let name = path.to_string_lossy().into_owned();
                self.record().binary.insert(name, bytes.clone());
                Ok(bytes)
            }
        }
    }

    /// Whether there is a file or directory of that name.
    #[must_use]
    pub fn exists(&self, path: &Path) -> bool {
        match &self.packed {
            Some(packed) => packed.get(&packed.files.texts, path).is_ok(),
            None => path.exists(),
        }
    }

    /// Whether there is a file of that name, and no directory.
    #[must_use]
    pub fn is_file(&self, path: &Path) -> bool {
        match &self.packed {
            Some(packed) => packed.get(&packed.files.texts, path).is_ok(),
            None => path.is_file(),
        }
    }

    /// The text of a built-in experiment or example; `None` if there is none of that name.
    #[must_use]
    pub fn experiment(&self, id: &str) -> Option<String> {
        let own = library::text(id).or_else(|| library::example(id))?;
        Some(self.builtin(&format!("experiments/{id}.toml"), own))
    }

    /// Whether `text` is that of the built-in experiment or example `id`.
    pub(super) fn is_builtin(&self, id: &str, text: &str) -> bool {
        let own = library::text(id).or_else(|| library::example(id));
        let name = format!("experiments/{id}.toml");
        let packed = self
            .packed
            .as_ref()
            .and_then(|of| of.files.builtin.get(&name));
        own == Some(text) || packed.is_some_and(|packed| packed == text)
    }

    /// The text of a built-in profile; `None` if there is none of that name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<String> {
        let own = profile::builtin_text(name)?;
        Some(self.builtin(&format!("profiles/{name}.toml"), own))
    }

    /// What is built in, as it is packed, if it is, whichever version of the program
    /// packed it.
    fn builtin(&self, name: &str, own: &str) -> String {
        if let Some(packed) = &self.packed {
            let packed = packed.files.builtin.get(name).cloned();
            return packed.unwrap_or_else(|| own.to_owned());
        }
        let mut record = self.record();
        let recorded = record.builtin.entry(name.to_owned());
        recorded.or_insert_with(|| own.to_owned()).clone()
    }

    fn record(&self) -> MutexGuard<'_, Gathered> {
        // Nothing panics while it is held, and if so, what is in it is whole.
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Packed {
    fn get<T: Clone>(&self, files: &BTreeMap<String, T>, path: &Path) -> io::Result<T> {
        let named = |path: &Path| files.get(&*path.to_string_lossy()).cloned();
        let below = || named(path.strip_prefix(&self.here).ok()?);
        let found = named(path).or_else(below);
        found.ok_or_else(|| io::Error::other("it is not among the files of the bundle"))
    }
}

/// Reads a text file as [`Files::text`] does, and keeps no record of it.
///
/// # Errors
/// It cannot be read, is no ordinary file, too large, or not UTF-8.
pub fn read_bounded(path: &Path) -> io::Result<String> {
    let other = |what: String| io::Error::other(what);
    let mut bytes = Vec::new();
    open_ordinary(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(other(format!(
            "too large for an input file (more than {MAX_BYTES} bytes)"
        )));
    }
    String::from_utf8(bytes).map_err(|_| other("this is no text (not UTF-8)".to_owned()))
}

/// Reads a file as [`Files::bytes`] does, and keeps no record of it.
///
/// # Errors
/// It cannot be read, or is no ordinary file.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_ordinary(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Profiles by built-in name, or by path relative to a directory.
#[derive(Clone, Copy, Debug)]
pub struct ProfileFiles<'a> {
    /// Where files are read.
    pub files: &'a Files,
    /// Directory of the experiment that names them; `None`: the current one.
    pub base: Option<&'a Path>,
}

impl Profiles for ProfileFiles<'_> {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        if let Some(text) = self.files.profile(name) {
            return Profile::parse(&profile::file_of(name), &text, overrides);
        }
        Profile::load(name, overrides, |path| {
            let path = self
                .base
                .map_or_else(|| PathBuf::from(path), |base| base.join(path));
            self.files.text(&path)
        })
    }
}
