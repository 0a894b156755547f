//! Where results go: a directory that was named, or one for each configuration.
//!
//! Without `--out`, results are in `results/NAME/HASH`, and `results/NAME/latest` leads to
//! those that were written last. HASH follows from everything that the results depend on,
//! so that the same command writes to the same directory, and another one beside it: who
//! changes a file and runs it again loses nothing and needs no option.

use std::path::{Path, PathBuf};

use super::{Manifest, OutputError, digest, link};

/// Where results go by themselves.
const RESULTS: &str = "results";
/// The link to the newest results, beside their directory.
const LATEST: &str = "latest";

/// A directory of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    path: PathBuf,
    /// The link that leads to it once something is there; `None`: the user named it.
    latest: Option<PathBuf>,
}

impl Place {
    /// The directory that was named by `--out`, or that of the configuration of
    /// `manifest` below `results/NAME`.
    #[must_use]
    pub fn new(out: Option<&Path>, name: &str, manifest: &Manifest) -> Self {
        match out {
            Some(out) => Self {
                path: out.to_owned(),
                latest: None,
            },
            None => {
                let parent = Path::new(RESULTS).join(name);
                Self {
                    path: parent.join(hash(manifest)),
                    latest: Some(parent.join(LATEST)),
                }
            }
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the link lead to the directory.
    ///
    /// # Errors
    /// It cannot, for example since the file system has no links; results are there all
    /// the same.
    pub fn link(&self) -> Result<(), OutputError> {
        match (&self.latest, self.path.file_name()) {
            (Some(latest), Some(name)) => link(latest, Path::new(name)),
            _ => Ok(()),
        }
    }

    /// The directory, and the link that leads to it, for people.
    #[must_use]
    pub fn said(&self) -> String {
        let path = self.path.display();
        match &self.latest {
            Some(latest) => format!("{path} ({} leads to it)", latest.display()),
            None => path.to_string(),
        }
    }
}

/// Whether a directory holds a directory of results for each configuration.
#[must_use]
pub fn is_of_many(path: &Path) -> bool {
    path.join(LATEST).is_symlink()
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
