//! Result directories.
//!
//! A file of results is either there and whole, or not there: it is written
//! under a temporary name, flushed to the disk, and renamed. A directory
//! belongs to one configuration, which its `manifest.json` names by digest and
//! seed; results of another configuration are not replaced unless the caller
//! insists. Everything written is a function of the results: no date, user or
//! host is recorded, so the same configuration gives the same bytes anywhere.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod lock;
mod place;

pub use place::{Place, Put, is_of_many};

use crate::session;
use lock::{Busy, lock};

#[cfg(test)]
mod tests;

/// Name of the file that says whose results a directory holds.
pub const MANIFEST: &str = "manifest.json";

/// What results of something that is built in are results of.
pub const BUILTIN: &str = "built in";

/// Version of the manifest. Within a version keys are only added.
const SCHEMA: u32 = 1;

/// FNV-1a, 64 bits: a digest to tell configurations apart. It is stable and
/// small, and no protection against who wants a collision.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `text` as a field of comma-separated values, in quotes if it needs them
/// (RFC 4180).
#[must_use]
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// What a result directory says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file.
    pub schema: u32,
    /// Program and version that wrote the results.
    pub tool: String,
    /// [`digest`] of the resolved configuration, in hexadecimal.
    pub configuration: String,
    /// Seed of the run.
    pub seed: u64,
    /// The file or the device that they are results of, as it was named, or [`BUILTIN`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether the run got to its end. The files are whole in any case.
    pub complete: bool,
    /// The result files, in order of writing, with `/` between directories.
    pub files: Vec<String>,
}

impl Manifest {
    /// A manifest for the results of `configuration` (any text or bytes that
    /// say all that the results depend on besides the seed).
    #[must_use]
    pub fn new(tool: &str, configuration: &[u8], seed: u64) -> Self {
        Self {
            schema: SCHEMA,
            tool: tool.to_owned(),
            configuration: format!("{:016x}", digest(configuration)),
            seed,
            source: None,
            complete: false,
            files: Vec::new(),
        }
    }

    /// Whether both describe the same configuration. Another version of the
    /// program does not make it another one.
    #[must_use]
    pub fn same_configuration(&self, other: &Self) -> bool {
        (&self.configuration, self.seed) == (&other.configuration, other.seed)
    }
}

/// What to do about results of another configuration.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave them and fail.
    Keep,
    /// Remove them (`--force`). Files that are not results stay even then.
    Replace,
}

/// Why results cannot be written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The directory holds results of another configuration.
    #[error(
        "{path} holds the results of another configuration \
         ({theirs_configuration}, seed {theirs_seed}; this one is {ours_configuration}, \
         seed {ours_seed}): write elsewhere with `--out DIR`, or replace them with `--force`"
    )]
    OtherConfiguration {
        /// The directory.
        path: PathBuf,
        /// Digest of the configuration whose results it holds.
        theirs_configuration: String,
        /// Seed of these results.
        theirs_seed: u64,
        /// Digest of the configuration that was to be written.
        ours_configuration: String,
        /// Seed that was to be written.
        ours_seed: u64,
    },
    /// The directory holds files, but no manifest that can be read.
    #[error(
        "{path} is not empty and has no readable {MANIFEST}, so it may not be a result directory: \
         write elsewhere with `--out DIR`, or write there with `--force`"
    )]
    NotResults {
        /// The directory.
        path: PathBuf,
    },
    /// Another program writes there.
    #[error(
        "another zonelab is writing to {path}: wait until it has ended, or write elsewhere with \
         `--out DIR`"
    )]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A result file was given a name that does not stay in the directory.
    #[error("`{name}` is not a name for a result file: use relative names without `..`")]
    Name {
        /// The name.
        name: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
}

impl OutputError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// A directory that results are written to, by one program at a time.
///
/// Whole results of the same configuration that are there stay until the first file of the
/// new ones is written, so that work which is interrupted before takes nothing away.
#[derive(Debug)]
pub struct ResultDir {
    place: Place,
    manifest: Manifest,
    /// Earlier results of the same configuration, which are still there.
    earlier: Option<Manifest>,
    /// Locked as long as this lives.
    _lock: Option<File>,
}

impl ResultDir {
    /// Makes a directory ready for results that are there already, to be written at once:
    /// creates it, or removes the results of another configuration from it. Files that no
    /// manifest lists are left alone.
    ///
    /// # Errors
    /// [`OutputError::OtherConfiguration`] and [`OutputError::NotResults`]
    /// unless `existing` is [`Existing::Replace`]; [`OutputError::Io`].
    pub fn create(
        place: impl Into<Place>,
        manifest: Manifest,
        existing: Existing,
    ) -> Result<Self, OutputError> {
        Self::open(place.into(), manifest, existing, Busy::Wait)
    }

    /// The same for a part of results, of work that was interrupted. It takes the place of
    /// no whole results: if there are some, it goes beside them.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_part(
        place: impl Into<Place>,
        manifest: Manifest,
        existing: Existing,
    ) -> Result<Self, OutputError> {
        let complete = |place: &Place| match read_manifest(place.path()) {
            Ok(Previous::Results(theirs)) => Some(theirs.complete),
            _ => None,
        };
        let place = place.into();
        if complete(&place) != Some(true) {
            return Self::create(place, manifest, existing);
        }
        let place = place.of_part();
        let existing = match complete(&place) {
            Some(false) => Existing::Replace,
            _ => existing,
        };
        Self::create(place, manifest, existing)
    }

    /// The same for work that keeps a file in the directory to go on from, and so has it for
    /// as long as it takes.
    ///
    /// # Errors
    /// As [`Self::create`], and [`OutputError::Busy`].
    pub fn hold(
        place: impl Into<Place>,
        manifest: Manifest,
        existing: Existing,
    ) -> Result<Self, OutputError> {
        Self::open(place.into(), manifest, existing, Busy::Fail)
    }

    fn open(
        place: Place,
        manifest: Manifest,
        existing: Existing,
        busy: Busy,
    ) -> Result<Self, OutputError> {
        let path = place.path();
        fs::create_dir_all(path).map_err(OutputError::io("create", path))?;
        let lock = lock(path, busy)?;
        let previous = permitted(path, &manifest, existing)?;
        let mut dir = Self {
            manifest: Manifest {
                source: place.source.clone(),
                complete: false,
                files: Vec::new(),
                ..manifest
            },
            earlier: None,
            place,
            _lock: lock,
        };
        match previous {
            Previous::Results(theirs) if theirs.same_configuration(&dir.manifest) => {
                dir.earlier = Some(theirs);
            }
            Previous::Results(theirs) => {
                remove_results(dir.path(), &theirs.files)?;
                dir.write_manifest()?;
            }
            Previous::None | Previous::Unreadable => dir.write_manifest()?,
        }
        Ok(dir)
    }

    /// Checks that [`Self::create`] will succeed, and leaves everything that
    /// is there as it is: to know before the work whether its results can be
    /// written. The directory itself is created.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn check(path: &Path, manifest: &Manifest, existing: Existing) -> Result<(), OutputError> {
        permitted(path, manifest, existing)?;
        let probe = temporary(&path.join(MANIFEST));
        File::create(&probe).map_err(OutputError::io("write", &probe))?;
        match fs::remove_file(&probe) {
            // Somebody else who looks at the same time was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(OutputError::io("remove", &probe)),
        }
    }

    /// Where the results are.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Writes the result file `name` (relative; `/` makes directories), whole
    /// or not at all. Writing a name again replaces the file.
    ///
    /// # Errors
    /// [`OutputError::Name`] or [`OutputError::Io`].
    pub fn write(&mut self, name: &str, contents: &[u8]) -> Result<(), OutputError> {
        result_path(self.path(), name)?;
        self.begin()?;
        self.put(name, contents)
    }

    /// Removes earlier results, but for files that were written to go on from.
    fn begin(&mut self) -> Result<(), OutputError> {
        let Some(earlier) = self.earlier.take() else {
            return Ok(());
        };
        let is_ours = |file: &String| self.manifest.files.contains(file);
        let theirs: Vec<String> = earlier.files.into_iter().filter(|f| !is_ours(f)).collect();
        remove_results(self.path(), &theirs)?;
        self.write_manifest()
    }

    /// Writes a file to go on from. Earlier results stay.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn keep(&mut self, name: &str, contents: &[u8]) -> Result<(), OutputError> {
        match &self.earlier {
            Some(earlier) if earlier.files.iter().any(|file| file == name) => {
                replace(&result_path(self.path(), name)?, contents)?;
                if !self.manifest.files.iter().any(|file| file == name) {
                    self.manifest.files.push(name.to_owned());
                }
                Ok(())
            }
            _ => self.write(name, contents),
        }
    }

    fn put(&mut self, name: &str, contents: &[u8]) -> Result<(), OutputError> {
        let target = result_path(self.path(), name)?;
        if !self.manifest.files.iter().any(|file| file == name) {
            // Listed before it exists: after a crash the next run knows what
            // to remove.
            self.manifest.files.push(name.to_owned());
            self.write_manifest()?;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(OutputError::io("create", parent))?;
        }
        replace(&target, contents)
    }

    /// Marks the results as whole, and lets `latest` lead to them.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub fn finish(mut self) -> Result<Put, OutputError> {
        self.begin()?;
        self.manifest.complete = true;
        self.write_manifest()?;
        Ok(self.place.lead(&self.manifest))
    }

    /// Ends with a part of the results.
    pub fn leave(self) -> Put {
        self.place.stay()
    }

    fn write_manifest(&self) -> Result<(), OutputError> {
        let mut text =
            serde_json::to_string_pretty(&self.manifest).expect("a manifest has no maps");
        text.push('\n');
        replace(&self.path().join(MANIFEST), text.as_bytes())
    }
}

/// What a directory holds before a run.
enum Previous {
    None,
    Unreadable,
    Results(Manifest),
}

/// What `path` holds, if results of `manifest` may take its place. Creates the
/// directory.
fn permitted(
    path: &Path,
    manifest: &Manifest,
    existing: Existing,
) -> Result<Previous, OutputError> {
    fs::create_dir_all(path).map_err(OutputError::io("create", path))?;
    let previous = read_manifest(path)?;
    match &previous {
        _ if existing == Existing::Replace => Ok(previous),
        Previous::None => Ok(previous),
        Previous::Unreadable => Err(OutputError::NotResults {
            path: path.to_owned(),
        }),
        Previous::Results(theirs) if theirs.same_configuration(manifest) => Ok(previous),
        Previous::Results(theirs) => Err(OutputError::OtherConfiguration {
            path: path.to_owned(),
            theirs_configuration: theirs.configuration.clone(),
            theirs_seed: theirs.seed,
            ours_configuration: manifest.configuration.clone(),
            ours_seed: manifest.seed,
        }),
    }
}

fn read_manifest(path: &Path) -> Result<Previous, OutputError> {
    let file = path.join(MANIFEST);
    match session::read_whole(&file) {
        Ok(bytes) => {
            Ok(serde_json::from_slice(&bytes).map_or(Previous::Unreadable, Previous::Results))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(path).map_err(OutputError::io("read", path))?;
            // A run that was cut off in its first instant leaves only this.
            let leftover = temporary(&file);
            let foreign = entries.any(|entry| !entry.is_ok_and(|entry| entry.path() == leftover));
            Ok(if foreign {
                Previous::Unreadable
            } else {
                Previous::None
            })
        }
        Err(error) => Err(OutputError::io("read", &file)(error)),
    }
}

/// Removes the files that a manifest lists, and what half-finished writing of
/// them may have left.
fn remove_results(path: &Path, files: &[String]) -> Result<(), OutputError> {
    for name in files {
        // The list is input: a name that leads elsewhere is not followed.
        let Ok(target) = result_path(path, name) else {
            continue;
        };
        for file in [temporary(&target), target] {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(OutputError::io("remove", &file)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The path of result `name` below `root`, if it is a proper name: relative,
/// without `.` and `..`, not hidden, and not the manifest.
fn result_path(root: &Path, name: &str) -> Result<PathBuf, OutputError> {
    let proper = |component: Component<'_>| match component {
        Component::Normal(part) => !part.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let relative = Path::new(name);
    // A name in its normal form has no `//`, `/./` or `/` at the end.
    let normal: PathBuf = relative.components().collect();
    let as_is = normal.to_str() == Some(name) && !name.contains(['\0', '\\']);
    if name.is_empty() || name == MANIFEST || !as_is || !relative.components().all(proper) {
        return Err(OutputError::Name {
            name: name.to_owned(),
        });
    }
    Ok(root.join(relative))
}

/// What users call an experiment or a sweep, as a file name: letters, digits, `-`, `_`.
#[must_use]
pub fn file_name(id: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '_'
        }
    };
    let name: String = id.chars().map(plain).collect();
    if name.is_empty() {
        "experiment".to_owned()
    } else {
        name
    }
}

/// The name under which `target` is written before it is renamed.
fn temporary(target: &Path) -> PathBuf {
    let name = target
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    target.with_file_name(format!(".{name}.partial"))
}

/// Puts `contents` at `target` in one step: a file that is there is replaced as
/// a whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn replace(target: &Path, contents: &[u8]) -> Result<(), OutputError> {
    let partial = temporary(target);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let result = written
        .map_err(OutputError::io("write", &partial))
        .and_then(|()| fs::rename(&partial, target).map_err(OutputError::io("write", target)));
    if result.is_err() {
        // The first error is the one to report; the next run tries again.
        let _ = fs::remove_file(&partial);
    }
    result
}
