//! What kind of file a document is, by keys that no other has.

use crate::{Document, Errors, Problem};

/// Kinds of input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A drive.
    Profile,
    /// What runs on a drive.
    Experiment,
    /// An experiment at many settings.
    Sweep,
}

impl FileKind {
    /// The kind of a document; `None`: it has no key that only one of them has.
    #[must_use]
    pub fn of(document: &Document) -> Option<Self> {
        let root = document.root();
        let has = |keys: [&str; 2]| keys.iter().any(|key| root.has(key));
        // A sweep may name series, too.
        if has(["vary", "experiment"]) {
            Some(Self::Sweep)
        } else if has(["job", "series"]) {
            Some(Self::Experiment)
        } else if has(["geometry", "media"]) {
            Some(Self::Profile)
        } else {
            None
        }
    }

    /// In words, with the article.
    const fn name(self) -> &'static str {
        match self {
            Self::Profile => "a drive profile",
            Self::Experiment => "an experiment",
            Self::Sweep => "a sweep",
        }
    }

    /// What files of the kind are for.
    fn purpose(self, file: &str) -> String {
        match self {
            Self::Profile => format!("an experiment names it: profile = \"{file}\""),
            Self::Experiment => format!("`zonelab run {file}` runs it"),
            Self::Sweep => format!("`zonelab sweep {file}` runs it"),
        }
    }
}

impl Document {
    /// Refuses a document of another kind, of which every key would be wrong.
    ///
    /// # Errors
    /// What it is instead, and what such files are for.
    pub fn is_a(&self, wanted: FileKind) -> Result<(), Errors> {
        match FileKind::of(self) {
            Some(kind) if kind != wanted => {
                let what = format!("this is {}, not {}", kind.name(), wanted.name());
                Err(Problem::of_file(self.file(), what, kind.purpose(self.file())).into())
            }
            _ => Ok(()),
        }
    }
}
