//! Where results go: a directory that was named, or one for each configuration.
//!
//! Without `--out`, results are in `results/NAME/HASH`, and `results/NAME/latest` leads to
//! the last of them that are whole. HASH follows from everything that the results depend on,
//! so that the same command writes to the same directory, and another one beside it: who
//! changes a file and runs it again loses nothing and needs no option.
//!
//! Two files may have the same name for their results. `latest` stays with the first of
//! them, as long as that is there.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use super::{BUILTIN, MANIFEST, Manifest, OutputError, digest, temporary};
use crate::session;

/// Where results go by themselves.
const RESULTS: &str = "results";
/// The link to the newest results, beside their directory.
const LATEST: &str = "latest";

/// A directory of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub(super) path: PathBuf,
    /// The link that leads to it once all is there; `None`: the user named it.
    pub(super) latest: Option<PathBuf>,
    /// What they are results of: see [`Place::of`].
    pub(super) source: Option<String>,
}

impl From<&Path> for Place {
    /// A directory that was named.
    fn from(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            latest: None,
            source: None,
        }
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        path.as_path().into()
    }
}

impl From<&Self> for Place {
    fn from(place: &Self) -> Self {
        place.clone()
    }
}

impl Place {
    /// The directory that was named by `--out`, or that of the configuration of
    /// `manifest` below `results/NAME`.
    #[must_use]
    pub fn new(out: Option<&Path>, name: &str, manifest: &Manifest) -> Self {
        match out {
            Some(out) => out.into(),
            None => {
                let parent = Path::new(RESULTS).join(name);
                Self {
                    path: parent.join(hash(manifest)),
                    latest: Some(parent.join(LATEST)),
                    source: None,
                }
            }
        }
    }

    /// The same for results of a file or a device that goes by this name, or of what is
    /// [`BUILTIN`].
    #[must_use]
    pub fn of(mut self, source: &str) -> Self {
        // `./a.toml` is `a.toml`. What is there is not asked: it is the same anywhere.
        let parts = Path::new(source).components();
        let plain: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
        let is_path = !source.contains("://");
        self.source = Some(match plain.to_str() {
            Some(plain) if is_path && !plain.is_empty() => plain.to_owned(),
            _ => source.to_owned(),
        });
        self
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same beside it, for a part of the results.
    pub(super) fn of_part(self) -> Self {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push("-partial");
        Self {
            path: self.path.with_file_name(name),
            ..self
        }
    }

    /// Lets the link lead to results that are whole, unless it leads to those of another file.
    pub(super) fn lead(self, manifest: &Manifest) -> Put {
        let Self { path, latest, .. } = self;
        let (Some(latest), Some(name)) = (latest, path.file_name()) else {
            return Put {
                path,
                latest: Latest::None,
            };
        };
        let latest = match other(&latest, manifest) {
            Some(other) => Latest::Others(latest, other),
            None => match link(&latest, Path::new(name)) {
                Ok(()) => Latest::Leads(latest),
                Err(error) => Latest::Not(error),
            },
        };
        Put { path, latest }
    }

    /// What is there is a part: the link stays.
    pub(super) fn stay(self) -> Put {
        let Self { path, latest, .. } = self;
        let latest = latest.map_or(Latest::None, Latest::Stays);
        Put { path, latest }
    }
}

/// The file whose whole results a link leads to, if it is another one than that of
/// `manifest` and still there.
fn other(latest: &Path, manifest: &Manifest) -> Option<String> {
    let bytes = session::read_whole(&latest.join(MANIFEST)).ok()?;
    let theirs: Manifest = serde_json::from_slice(&bytes).ok()?;
    let source = theirs.source.filter(|_| theirs.complete)?;
    let is_there = source == BUILTIN || Path::new(&source).exists();
    let is_other = !manifest
        .source
        .as_ref()
        .is_some_and(|own| is_same(own, &source));
    (is_other && is_there).then_some(source)
}

/// Whether two names are those of one file: `a/../b.toml` is `b.toml`.
fn is_same(own: &str, other: &str) -> bool {
    let file = |name: &str| fs::canonicalize(name).ok();
    own == other || file(own).is_some_and(|own| Some(own) == file(other))
}

/// Results that were written.
#[derive(Debug)]
#[must_use = "a user wants to know where results are"]
pub struct Put {
    path: PathBuf,
    latest: Latest,
}

/// What became of the link to the newest results.
#[derive(Debug)]
enum Latest {
    /// There is none: the user named the directory.
    None,
    /// It leads to these.
    Leads(PathBuf),
    /// It leads to those of another file.
    Others(PathBuf, String),
    /// It leads where it did: these are a part.
    Stays(PathBuf),
    /// It could not be made.
    Not(OutputError),
}

impl Put {
    /// Where they are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory, and the link that leads to it, for people.
    #[must_use]
    pub fn said(&self) -> String {
        let path = self.path.display();
        match &self.latest {
            Latest::Leads(latest) => format!("{path} ({} leads to it)", latest.display()),
            Latest::Stays(latest) => format!("{path} ({} does not lead to it)", latest.display()),
            Latest::None | Latest::Others(..) | Latest::Not(_) => path.to_string(),
        }
    }

    /// Why the link does not lead to results that are whole.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match &self.latest {
            Latest::None | Latest::Leads(_) | Latest::Stays(_) => None,
            Latest::Others(latest, other) => Some(format!(
                "{} stays with the results of {other}, which go by the same name: give this file \
                 another id, or name a directory with --out",
                latest.display()
            )),
            Latest::Not(error) => Some(error.to_string()),
        }
    }
}

/// Whether a directory holds a directory of results for each configuration.
#[must_use]
pub fn is_of_many(path: &Path) -> bool {
    path.join(LATEST).is_symlink()
}

/// Puts a symbolic link to `target` at `path` in one step: a link that is there is replaced.
fn link(path: &Path, target: &Path) -> Result<(), OutputError> {
    let is_other = fs::symlink_metadata(path).is_ok_and(|of| !of.is_symlink());
    if is_other {
        let source = io::Error::new(io::ErrorKind::AlreadyExists, "it is not a link");
        return Err(OutputError::io("link", path)(source));
    }
    // Of this process: two may end at the same time.
    let partial = temporary(&path.with_extension(std::process::id().to_string()));
    // One that an earlier run left.
    let _ = fs::remove_file(&partial);
    symlink(target, &partial)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(OutputError::io("link", path))
}

#[cfg(unix)]
fn symlink(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn symlink(_target: &Path, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Twelve digits that follow from configuration, seed and version.
fn hash(manifest: &Manifest) -> String {
    let Manifest {
        tool,
        configuration,
        seed,
        ..
    } = manifest;
    let digest = digest(format!("{tool}\n{configuration}\n{seed}").as_bytes());
    format!("{:012x}", digest & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_results_depend_on_is_in_the_name_and_a_named_directory_is_that() {
        let at = |configuration: &str, seed, tool: &str| {
            let manifest = Manifest::new(tool, configuration.as_bytes(), seed);
            Place::new(None, "x", &manifest)
        };
        let one = at("a", 1, "t 1");
        assert_eq!(one, at("a", 1, "t 1"));
        for other in [at("b", 1, "t 1"), at("a", 2, "t 1"), at("a", 1, "t 2")] {
            assert_ne!(one.path(), other.path());
            assert_eq!(one.latest, other.latest);
        }
        assert_eq!(one.latest.as_deref(), Some(Path::new("results/x/latest")));
        let digits = one.path().file_name().unwrap().to_string_lossy().len();
        assert_eq!(digits, 12);
        let manifest = Manifest::new("t 1", b"a", 1);
        let named = Place::new(Some(Path::new("here")), "x", &manifest);
        assert_eq!((named.path(), &named.latest), (Path::new("here"), &None));
    }
}
