//! Errors as the exceptions of `zonelab.errors`, with the texts of the command.
//!
//! The classes are Python's, so that they can be `ValueError` or `OSError` as well.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::{PyErr, import_exception};
use zonelab_config::{Errors, Problem};
use zonelab_device::{DeviceInfo, NamespaceId};
use zonelab_lab::published::LookupError;
use zonelab_lab::run::RunError;
use zonelab_lab::session::SessionError;

import_exception!(zonelab.errors, UsageError);
import_exception!(zonelab.errors, InvalidInput);
import_exception!(zonelab.errors, DeviceError);
import_exception!(zonelab.errors, EnvironmentFailure);
import_exception!(zonelab.errors, PolicyError);
import_exception!(zonelab.errors, CommandFailed);

/// A word that stands for nothing, or an argument that makes no sense.
pub(crate) fn usage(message: impl ToString) -> PyErr {
    UsageError::new_err(message.to_string())
}

/// An input that is wrong, in a text that says all of it.
pub(crate) fn invalid(message: impl ToString) -> PyErr {
    InvalidInput::new_err(message.to_string())
}

/// Something that the machine lacks or refuses.
pub(crate) fn environment(message: impl ToString) -> PyErr {
    EnvironmentFailure::new_err(message.to_string())
}

/// An operation of a device that failed.
pub(crate) fn device(message: impl ToString) -> PyErr {
    DeviceError::new_err(message.to_string())
}

/// The namespace that is named, or the only one.
pub(crate) fn chosen(info: &DeviceInfo, nsid: Option<u32>) -> PyResult<NamespaceId> {
    let chosen = info.choose(nsid.map(NamespaceId));
    chosen.map_err(|why| usage(format!("{why}: nsid=1 names the first")))
}

/// Something that does not end a run, but that its caller should know.
pub(crate) fn warn(py: Python<'_>, message: impl ToString) -> PyResult<()> {
    let message = CString::new(message.to_string())?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)
}

/// A policy that has no place in a drive, or gave an answer that is none.
pub(crate) fn policy(message: impl ToString) -> PyErr {
    PolicyError::new_err(message.to_string())
}

/// A command that did not succeed, with its status and its completion.
pub(crate) fn command_failed<T>(message: String, status: u16, of: &Bound<'_, T>) -> PyErr {
    CommandFailed::new_err((message, status, of.clone().into_any().unbind()))
}

/// Everything that is wrong with an input, one by one as well.
pub(crate) fn of_input(errors: &Errors) -> PyErr {
    let problems: Vec<_> = errors.problems().iter().map(parts).collect();
    InvalidInput::new_err((errors.to_string(), problems))
}

/// File, line, key, what is wrong, what would be valid.
fn parts(problem: &Problem) -> (String, Option<usize>, String, String, String) {
    let line = problem.place.line();
    let Problem {
        file,
        key,
        what,
        valid,
        ..
    } = problem.clone();
    (file, line, key, what, valid)
}

/// Why a point has no result.
fn of_run(error: &RunError) -> PyErr {
    match error {
        RunError::Invalid(errors) => of_input(errors),
        RunError::Unfit(_) => invalid(error),
        RunError::Lost(_) => device(error),
    }
}

/// What fails with an exception.
pub(crate) trait OrRaise<T> {
    /// The value, or an exception in place of the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Errors> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|errors| of_input(&errors))
    }
}

impl<T> OrRaise<T> for Result<T, RunError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of_run(&error))
    }
}

impl<T> OrRaise<T> for Result<T, LookupError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(invalid)
    }
}

impl<T> OrRaise<T> for Result<T, SessionError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| match error {
            SessionError::Usage(message) => usage(message),
            SessionError::Invalid(errors) => of_input(&errors),
            SessionError::Run(error) => of_run(&error),
            other => invalid(other),
        })
    }
}
