//! How results are made: a command, and the files that it read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name of the recipe among results.
pub const FILE: &str = "inputs.json";
/// Beginning of the names of files among results that hold what is no text.
pub(super) const BINARY: &str = "inputs-";

/// Version of the format. Within a version keys are only added.
const SCHEMA: u32 = 1;

/// How results are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    schema: u32,
    /// Program and version that made the results.
    pub tool: String,
    /// The words of the command that results depend on, without the program.
    pub words: Vec<String>,
    /// What the command read from files, by the names that it gave them.
    #[serde(default)]
    pub files: BTreeMap<String, Given>,
    /// What the command took from the program itself: built-in profiles and experiments.
    #[serde(default)]
    pub builtin: BTreeMap<String, String>,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Given {
    /// A text.
    Text(String),
    /// Something else, which is in a file of this name among the results.
    Among(String),
}

/// Why a text is no recipe.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// It is no JSON of this form.
    #[error("{FILE} is no recipe of results: {0}")]
    Form(#[from] serde_json::Error),
    /// Of another version.
    #[error("{FILE} is of schema {theirs}: this version of zonelab reads schema {SCHEMA}")]
    Schema {
        /// The schema that it says.
        theirs: u32,
    },
}

impl Recipe {
    /// A recipe of `tool` without any file.
    #[must_use]
    pub fn new(tool: &str, words: Vec<String>) -> Self {
        Self {
            schema: SCHEMA,
            tool: tool.to_owned(),
            words,
            files: BTreeMap::new(),
            builtin: BTreeMap::new(),
        }
    }

    /// As JSON, the same for the same recipe.
    ///
    /// # Panics
    /// Never: there is nothing that JSON cannot say.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("all keys are strings");
        text.push('\n');
        text
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RecipeError> {
        let recipe: Self = serde_json::from_slice(bytes)?;
        if recipe.schema == SCHEMA {
            Ok(recipe)
        } else {
            Err(RecipeError::Schema {
                theirs: recipe.schema,
            })
        }
    }
}
