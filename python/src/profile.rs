//! Drives.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};
use zonelab_config::{Document, Override};
use zonelab_lab::run::Profiles as _;
use zonelab_lab::session::{self, Files, ProfileFiles};
use zonelab_ssd::profile::{self, to_toml};

use crate::convert;
use crate::errors::{self, OrRaise as _};
use crate::frame::{Columns, Frame};

/// Name in messages of what was given as a dictionary or as text.
const GIVEN: &str = "profile";

/// A drive: a profile, with every default filled in and every rule checked.
///
/// `source` is the name of a built-in drive, the path of a file, TOML text, or a dictionary
/// of what the file would say. `set` changes keys of it.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Profile {
    inner: profile::Profile,
}

impl Profile {
    /// A profile for Python.
    pub(crate) const fn of(inner: profile::Profile) -> Self {
        Self { inner }
    }

    /// A profile from whatever Python may give for one.
    pub(crate) fn from_any(
        source: &Bound<'_, PyAny>,
        set: &[Override],
    ) -> PyResult<profile::Profile> {
        if let Ok(profile) = source.cast::<Self>() {
            let inner = &profile.get().inner;
            if set.is_empty() {
                return Ok(inner.clone());
            }
            return profile::Profile::parse(GIVEN, &to_toml(&inner.config), set).or_raise();
        }
        if let Ok(data) = source.cast::<PyMapping>() {
            return profile::Profile::parse(GIVEN, &convert::to_toml(data)?, set).or_raise();
        }
        let files = ProfileFiles {
            files: &Files::default(),
            base: None,
        };
        if let Ok(name) = source.cast::<PyString>() {
            let name = name.to_str()?;
            // A name has no lines and sets no keys.
            if name.contains(['\n', '=']) {
                return profile::Profile::parse(GIVEN, name, set).or_raise();
            }
            return files.load(name, set).or_raise();
        }
        let path: PathBuf = source.extract().map_err(|_| {
            errors::usage("a profile is a name, a path, TOML text, a dictionary, or a Profile")
        })?;
        let name = path.to_string_lossy();
        let text = session::read_bounded(&path)
            .map_err(|error| errors::invalid(format!("{name}: {error}")))?;
        profile::Profile::parse(&name, &text, set).or_raise()
    }
}

/// Settings of a profile, as `zonelab profiles show --set` takes them.
pub(crate) fn overrides(set: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Override>> {
    let texts = convert::settings(set)?;
    let parsed = texts.iter().map(|text| Override::parse(text));
    parsed.map(|parsed| parsed.map_err(errors::usage)).collect()
}

#[pymethods]
impl Profile {
    #[new]
    #[pyo3(signature = (source, set = None))]
    fn new(source: &Bound<'_, PyAny>, set: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let inner = Self::from_any(source, &overrides(set)?)?;
        Ok(Self::of(inner))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.config.name
    }

    /// What the drive is.
    #[getter]
    fn description(&self) -> &str {
        &self.inner.description
    }

    /// Where the numbers are from.
    #[getter]
    fn source(&self) -> &str {
        &self.inner.source
    }

    /// The file that says all of it, defaults included.
    fn to_toml(&self) -> String {
        to_toml(&self.inner.config)
    }

    /// The same as a dictionary.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let document = Document::parse(GIVEN, &self.to_toml(), &[]).or_raise()?;
        convert::from_json(py, &document.to_json())
    }

    /// Every key with its value and where that is from, and all that follows: what
    /// `zonelab profiles show` prints.
    fn describe(&self) -> PyResult<Frame> {
        let rows = profile::describe(&self.inner);
        Columns::default()
            .text("section", rows.iter().map(|row| row.section))
            .text("key", rows.iter().map(|row| row.key))
            .text("value", rows.iter().map(|row| &row.value))
            .text("from", rows.iter().map(|row| &row.note))
            .frame()
    }

    fn __repr__(&self) -> String {
        format!("<zonelab.Profile {}>", self.inner.config.name)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner.config == other.inner.config
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let class = slf.get_type().into_any();
        Ok((class, (slf.get().to_toml(),)))
    }
}

/// Names of the built-in drives.
#[pyfunction]
pub(crate) fn profiles() -> Vec<&'static str> {
    profile::builtin_names().collect()
}
