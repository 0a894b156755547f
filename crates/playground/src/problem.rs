//! What is wrong with what a page asked for, for its editors.

use serde::Serialize;
use zonelab_config::Errors;
use zonelab_lab::run::RunError;
use zonelab_lab::session::SessionError;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file that it is in; empty if it is in none.
    pub file: String,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The key that is concerned; empty if none is.
    pub key: String,
    /// Everything in words, as the command says it.
    pub text: String,
}

/// Everything that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

impl Problems {
    /// Something that is in no file.
    #[must_use]
    pub fn said(text: impl ToString) -> Self {
        Self {
            problems: vec![Problem {
                file: String::new(),
                line: None,
                key: String::new(),
                text: text.to_string(),
            }],
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<Errors> for Problems {
    fn from(errors: Errors) -> Self {
        let problem = |problem: &zonelab_config::Problem| Problem {
            file: problem.file.clone(),
            line: problem.place.line(),
            key: problem.key.clone(),
            text: problem.to_string(),
        };
        Self {
            problems: errors.problems().iter().map(problem).collect(),
        }
    }
}

impl From<RunError> for Problems {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Invalid(errors) => errors.into(),
            other => Self::said(other),
        }
    }
}

impl From<SessionError> for Problems {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Invalid(errors) => errors.into(),
            SessionError::Run(error) => error.into(),
            other => Self::said(other),
        }
    }
}
