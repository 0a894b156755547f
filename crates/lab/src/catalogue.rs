//! The results that are to be reproduced, and what is missing of them.

use std::collections::BTreeSet;

use serde::Deserialize;
use thiserror::Error;

/// The list of results.
const RESULTS: &str = include_str!("../data/reference/results.toml");

/// Name of [`RESULTS`] in messages.
const RESULTS_FILE: &str = "reference/results.toml";

/// A paper whose results are reproduced.
#[derive(Debug, PartialEq, Eq)]
pub struct Paper {
    /// The letter that its ids begin with.
    pub letter: char,
    /// A short name, for tables.
    pub name: &'static str,
}

impl Paper {
    /// Whether a result is the paper's.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        id.starts_with(self.letter)
    }
}

/// The papers, in the order of output.
pub const PAPERS: [Paper; 5] = [
    Paper {
        letter: 'C',
        name: "ConfZNS++",
    },
    Paper {
        letter: 'Z',
        name: "ZN540 (CLUSTER'23)",
    },
    Paper {
        letter: 'P',
        name: "Preemptive reset",
    },
    Paper {
        letter: 'S',
        name: "SilentZNS",
    },
    Paper {
        letter: 'V',
        name: "User-space driver",
    },
];

/// A published result: a line in the tables of what is to be reproduced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedResult {
    /// Its name: "C10a".
    pub id: String,
    /// Other names, of a line that stands for several figures.
    #[serde(default)]
    pub also: Vec<String>,
    /// What it is about.
    pub title: String,
    /// What is missing; `None` if it is built.
    #[serde(default)]
    pub not_built: Option<String>,
    /// What of it is no row, since a row would not be the same on every machine or has
    /// nothing published beside it, and where it is instead: a command, and a section of
    /// a document, `docs/NAME.md#anchor`.
    #[serde(default)]
    pub elsewhere: Option<String>,
}

impl PublishedResult {
    /// Whether a word on the command line names it.
    #[must_use]
    pub fn is_named(&self, word: &str) -> bool {
        self.id == word || self.also.iter().any(|also| also == word)
    }
}

/// Why the list of results cannot be read.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// Not TOML, a key is missing, or a key is unknown. The source names line
    /// and column.
    #[error("{RESULTS_FILE}: {0}")]
    Syntax(#[source] Box<toml::de::Error>),
    /// Two results have the same name.
    #[error("{RESULTS_FILE}: \"{0}\" is there twice: names must differ")]
    Twice(String),
    /// A result that says nothing where something is needed.
    #[error("{RESULTS_FILE}: \"{id}\" has an empty `{key}`: write what it is about")]
    Empty {
        /// Which.
        id: String,
        /// The key without text.
        key: &'static str,
    },
}

/// Every result, in the order of the papers.
///
/// # Errors
/// [`CatalogueError`]: the list that is built in is not sound.
pub fn results() -> Result<Vec<PublishedResult>, CatalogueError> {
    parse(RESULTS)
}

fn parse(text: &str) -> Result<Vec<PublishedResult>, CatalogueError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        result: Vec<PublishedResult>,
    }
    let file: File =
        toml::from_str(text).map_err(|source| CatalogueError::Syntax(Box::new(source)))?;
    let mut seen = BTreeSet::new();
    for result in &file.result {
        for name in std::iter::once(&result.id).chain(&result.also) {
            if !seen.insert(name) {
                return Err(CatalogueError::Twice(name.clone()));
            }
        }
        let texts = [
            ("title", Some(&result.title)),
            ("not_built", result.not_built.as_ref()),
            ("elsewhere", result.elsewhere.as_ref()),
        ];
        let empty = |text: Option<&String>| text.is_some_and(|text| text.trim().is_empty());
        if let Some(&(key, _)) = texts.iter().find(|(_, text)| empty(*text)) {
            let id = result.id.clone();
            return Err(CatalogueError::Empty { id, key });
        }
    }
    Ok(file.result)
}

/// The results that a word on the command line stands for and that are not built:
/// one (`V5`, `V7`), or those of a whole paper (`V`).
///
/// # Errors
/// As [`results`].
pub fn not_built(word: &str) -> Result<Vec<PublishedResult>, CatalogueError> {
    Ok(not_built_of(results()?, word))
}

fn not_built_of(mut results: Vec<PublishedResult>, word: &str) -> Vec<PublishedResult> {
    let is_paper = word.len() == 1;
    results.retain(|result| {
        let named = result.is_named(word) || is_paper && result.id.starts_with(word);
        named && result.not_built.is_some()
    });
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sound() {
        let results = results().unwrap();
        assert_eq!(results.len(), 59);
        assert_eq!(
            (results[0].id.as_str(), &results[0].not_built),
            ("C1", &None)
        );
    }

    #[test]
    fn words_name_what_is_not_built() {
        let line = |id: &str, more: &str| {
            format!("[[result]]\nid = \"{id}\"\ntitle = \"Something\"\n{more}\n")
        };
        let missing = "not_built = \"a part\"";
        let several = "also = [\"V6\", \"V7\"]\nnot_built = \"a part\"";
        let text = [
            line("C10a", ""),
            line("V1", ""),
            line("V5", missing),
            line("V6-8", several),
        ];
        let results = parse(&text.concat()).unwrap();
        let ids = |word: &str| -> Vec<String> {
            let results = not_built_of(results.clone(), word).into_iter();
            results.map(|result| result.id).collect()
        };
        assert_eq!(ids("V5"), ["V5"]);
        assert_eq!(ids("V7"), ["V6-8"]);
        assert_eq!(ids("V6-8"), ["V6-8"]);
        assert_eq!(ids("V"), ["V5", "V6-8"]);
        for word in ["C10a", "V1", "C", ""] {
            assert_eq!(ids(word), [""; 0], "{word}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        let one = "[[result]]\nid = \"A1\"\ntitle = \"Something\"\n";
        assert!(wrong(&format!("{one}{one}")).contains("\"A1\" is there twice"));
        assert!(wrong(&format!("{one}also = [\"A1\"]\n")).contains("\"A1\" is there twice"));
        assert!(wrong(&format!("{one}not_built = \" \"\n")).contains("empty `not_built`"));
        assert!(wrong(&format!("{one}elsewhere = \"\"\n")).contains("empty `elsewhere`"));
        assert!(wrong(&format!("{one}notbuilt = \"x\"\n")).contains("unknown field"));
    }
}
