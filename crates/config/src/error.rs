//! What is wrong with an input, where, and what would be right.

use std::error::Error;
use std::fmt;

/// Where in the input a problem is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole, or something that is missing from it.
    File,
    /// A line of the file.
    Line {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// An override from the command line, as it was written: `--set media.read=60us`.
    Override(String),
    /// An override that stands in another file. A problem at such a place has that file's name.
    Elsewhere(Box<Elsewhere>),
}

/// Where an override stands in a file, as `drive = ["media.read=60us"]` of an experiment does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// That file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The override, behind the key that it stands in: `drive.0: media.read=60us`.
    pub text: String,
    /// The same as it would be on a command line.
    pub written: String,
}

impl Place {
    /// The line, from 1, of the file that a problem at this place names.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Line { line, .. } => Some(*line),
            Self::Elsewhere(elsewhere) => Some(elsewhere.line),
            Self::File | Self::Override(_) => None,
        }
    }

    /// The override that stands there, for messages.
    fn override_text(&self) -> Option<&str> {
        match self {
            Self::Override(text) => Some(text),
            Self::Elsewhere(elsewhere) => Some(&elsewhere.text),
            Self::File | Self::Line { .. } => None,
        }
    }
}

/// One thing that is wrong with an input.
///
/// [`Display`](fmt::Display) prints one line:
/// `profiles/x.toml:14: media.program: "700" has no unit; write for example "700us"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file as the user knows it; empty if there is none.
    pub file: String,
    /// Where in the file.
    pub place: Place,
    /// Path of the key, `media.suspend.erase`; empty if no key is concerned.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would be valid; empty if there is nothing to add.
    pub valid: String,
}

impl Problem {
    /// A problem of a whole file, for example that it cannot be read.
    #[must_use]
    pub fn of_file(file: &str, what: impl Into<String>, valid: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: Place::File,
            key: String::new(),
            what: what.into(),
            valid: valid.into(),
        }
    }

    /// Whether the text of the override already names the key.
    fn key_is_in_override(&self) -> bool {
        self.place.override_text().is_some_and(|text| {
            match text.split_once('=') {
                Some((path, _)) => path.trim_end().rsplit(' ').next() == Some(&self.key),
                // An option of its own.
                None => text.starts_with("--"),
            }
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.place.line() {
            write!(f, ":{line}")?;
        }
        if !self.file.is_empty() {
            f.write_str(": ")?;
        }
        if let Some(text) = self.place.override_text() {
            write!(f, "{text}: ")?;
        }
        if !self.key.is_empty() && !self.key_is_in_override() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        if !self.valid.is_empty() {
            write!(f, "; {}", self.valid)?;
        }
        Ok(())
    }
}

impl Error for Problem {}

/// Everything that is wrong with an input: at least one problem, in the order
/// of the file.
///
/// [`Display`](fmt::Display) prints one line per problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    problems: Vec<Problem>,
    unlisted: usize,
}

impl Errors {
    /// Puts problems in the order of the file. `unlisted` more were found and dropped.
    pub(crate) fn new(mut problems: Vec<Problem>, unlisted: usize) -> Self {
        assert!(!problems.is_empty(), "an error has a cause");
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        Self { problems, unlisted }
    }

    /// The problems that a reader other than [`Document`](crate::Document)
    /// found, put in the order of the file. `None` if there are none.
    #[must_use]
    pub fn of(problems: Vec<Problem>) -> Option<Self> {
        (!problems.is_empty()).then(|| Self::new(problems, 0))
    }

    /// The problems, in the order of the file: first those of the file as a
    /// whole, last those of overrides.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl From<Problem> for Errors {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem], 0)
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        if self.unlisted > 0 {
            write!(f, "\nand {} more", self.unlisted)?;
        }
        Ok(())
    }
}

impl Error for Errors {}
