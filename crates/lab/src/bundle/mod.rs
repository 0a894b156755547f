//! Bundles: results with everything that they were made from, in one file.
//!
//! A bundle is a gzipped tar archive. [`MANIFEST`] comes first and lists every other file with
//! its size and SHA-256; the files of the result directory are below [`RESULTS`]. Which command
//! makes them again, and the text of every file that the command read, are among them
//! ([`Recipe`]), so that a bundle needs no other file than itself. The same results give the
//! same bytes, whoever packs them and when.
//!
//! [`Bundle::read`] takes any bytes and gives a bundle in which everything is as the manifest
//! says, or says what is wrong. It writes nothing to a disk: names in an archive lead nowhere.
//!
//! For users: `docs/bundle.md`.

mod archive;
mod compare;
mod gathered;
mod recipe;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

pub use compare::{Change, Difference, compare};
pub use recipe::{FILE as RECIPE, Given, Recipe, RecipeError};

/// Name of the list of what is in a bundle.
pub const MANIFEST: &str = "bundle.json";
/// Directory of the results in a bundle.
pub const RESULTS: &str = "results/";
/// Name of a text for who unpacks a bundle by hand.
const README: &str = "README.txt";
const README_TEXT: &str = "\
This is a bundle of zonelab: results of a run, with everything that they were made from.

    zonelab reproduce THIS_FILE.tar.gz

runs it again and compares every file of the results byte by byte. `results` has the results
as they were, `bundle.json` the SHA-256 of each file, `results/inputs.json` the command and
every file that it read.
";

/// Version of the manifest. Within a version keys are only added.
const SCHEMA: u32 = 1;

/// What a bundle may come to, unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Number of files.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            files: 100_000,
        }
    }
}

/// A file of a bundle, as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name, with `/` between directories.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

/// What a bundle says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file.
    pub schema: u32,
    /// Program and version that made the results.
    pub tool: String,
    /// Every other file, by name.
    pub files: Vec<Entry>,
}

/// Results with everything that they were made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Program and version that made the results.
    pub tool: String,
    /// Files of the result directory.
    pub results: BTreeMap<String, Vec<u8>>,
}

/// Why bytes are no bundle, or files cannot become one.
#[derive(Debug, Error)]
pub enum BundleError {
    /// They are no gzipped tar archive, or not a whole one.
    #[error("this is no bundle, or a damaged one: {0}")]
    Archive(#[from] std::io::Error),
    /// More than is taken.
    #[error("the bundle is too large: more than {} bytes or {} files, unpacked", .0.bytes, .0.files)]
    TooLarge(Limits),
    /// A name that leads elsewhere, or none.
    #[error("`{name}` is not a name of a file in a bundle: names are relative, without `..`")]
    Name {
        /// The name.
        name: String,
    },
    /// Not a file: a link, a directory, a device.
    #[error("`{name}` in the bundle is not an ordinary file")]
    Kind {
        /// The name.
        name: String,
    },
    /// Two files of the same name.
    #[error("the bundle has `{name}` twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// The manifest is missing, or is not one.
    #[error("this is no bundle: its first file is not a {MANIFEST} that can be read: {what}")]
    Manifest {
        /// Why.
        what: String,
    },
    /// Of a later version.
    #[error("a bundle of schema {theirs}: this version of zonelab reads schema {SCHEMA}")]
    Schema {
        /// The schema that it says.
        theirs: u32,
    },
    /// A file that the manifest lists is not there.
    #[error("the bundle is damaged: `{name}` is missing")]
    Missing {
        /// The name.
        name: String,
    },
    /// A file that the manifest does not list.
    #[error("the bundle is damaged: {MANIFEST} does not list `{name}`")]
    Unlisted {
        /// The name.
        name: String,
    },
    /// A file that is not what the manifest says.
    #[error("the bundle is damaged: `{name}` is not what {MANIFEST} says: its {what} differs")]
    Changed {
        /// The name.
        name: String,
        /// Size or SHA-256.
        what: &'static str,
    },
}

impl Bundle {
    /// The bundle as a file.
    ///
    /// # Errors
    /// A name is none that a bundle can have.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        let mut files: BTreeMap<String, &[u8]> = BTreeMap::new();
        files.insert(README.to_owned(), README_TEXT.as_bytes());
        for (name, bytes) in &self.results {
            archive::check_name(name)?;
            files.insert(format!("{RESULTS}{name}"), bytes);
        }
        let entries = files.iter().map(|(name, bytes)| Entry {
            name: name.clone(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        });
        let manifest = Manifest {
            schema: SCHEMA,
            tool: self.tool.clone(),
            files: entries.collect(),
        };
        let mut text = serde_json::to_string_pretty(&manifest).expect("a manifest has no maps");
        text.push('\n');
        let all = files.iter().map(|(name, bytes)| (name.as_str(), *bytes));
        let all = std::iter::once((MANIFEST, text.as_bytes())).chain(all);
        Ok(archive::pack(all)?)
    }

    /// Reads a bundle, and checks every file of it, in time and memory that follow from the
    /// sizes that its manifest lists.
    ///
    /// # Errors
    /// It is damaged, is too large, or is something else.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Self, BundleError> {
        let (manifest, files) = archive::unpack(bytes, limits)?;
        for entry in &manifest.files {
            let name = &entry.name;
            let file = files
                .get(name)
                .ok_or_else(|| BundleError::Missing { name: name.clone() })?;
            if file.len() as u64 != entry.bytes {
                return Err(entry.changed("size"));
            }
            if sha256(file) != entry.sha256 {
                return Err(entry.changed("SHA-256"));
            }
        }
        let results = files.into_iter().filter_map(|(name, bytes)| {
            let name = name.strip_prefix(RESULTS)?.to_owned();
            Some((name, bytes))
        });
        Ok(Self {
            tool: manifest.tool,
            results: results.collect(),
        })
    }
}

impl Entry {
    /// A file that is not what this says.
    fn changed(&self, what: &'static str) -> BundleError {
        BundleError::Changed {
            name: self.name.clone(),
            what,
        }
    }
}

impl Manifest {
    /// What is said about a file.
    fn listed(&self, name: &str) -> Option<&Entry> {
        let found = self
            .files
            .binary_search_by(|entry| entry.name.as_str().cmp(name));
        found.ok().map(|place| &self.files[place])
    }
}

/// Reads a manifest, with the files in the order of their names.
fn read_manifest(bytes: &[u8], limits: Limits) -> Result<Manifest, BundleError> {
    /// What every version of the manifest has.
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let wrong = |error: serde_json::Error| BundleError::Manifest {
        what: error.to_string(),
    };
    let Versioned { schema } = serde_json::from_slice(bytes).map_err(wrong)?;
    if schema != SCHEMA {
        return Err(BundleError::Schema { theirs: schema });
    }
    let mut manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
    manifest.files.sort_by(|a, b| a.name.cmp(&b.name));
    let sizes = manifest.files.iter().map(|entry| entry.bytes);
    let bytes = sizes.fold(bytes.len() as u64, u64::saturating_add);
    if manifest.files.len() >= limits.files || bytes > limits.bytes {
        return Err(BundleError::TooLarge(limits));
    }
    Ok(manifest)
}

/// SHA-256 in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
