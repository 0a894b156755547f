//! Exit codes, one for each way a command can end.

use std::process::ExitCode;

use zonelab_lab::run::RunError;
use zonelab_lab::session::SessionError;

/// How a command ended. The numbers are documented and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Finished, but an expectation failed.
    ExpectationFailed = 1,
    /// The command line was wrong. (clap uses the same number.)
    Usage = 2,
    /// An input file was wrong.
    InvalidInput = 3,
    /// The environment lacks something: a place to write to, mostly.
    Environment = 4,
    /// The device failed an operation, or does not answer.
    Device = 5,
    /// An invariant of zonelab itself is broken.
    BrokenInvariant = 70,
    /// Interrupted; what was done is written.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with the exit code it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
        }
    }

    pub(crate) fn usage(message: String) -> Self {
        Self::new(Exit::Usage, anyhow::anyhow!(message))
    }

    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::InvalidInput, error)
    }

    pub(crate) fn environment(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Environment, error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let exit = match error {
            RunError::Lost(_) => Exit::Device,
            RunError::Invalid(_) | RunError::Unfit(_) => Exit::InvalidInput,
        };
        Self::new(exit, error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let exit = match error {
            SessionError::Usage(_) => Exit::Usage,
            SessionError::Run(error) => return error.into(),
            _ => Exit::InvalidInput,
        };
        Self::new(exit, error)
    }
}
