//! Experiments, read.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use zonelab_config::{Errors, Override};
use zonelab_lab::library;
use zonelab_lab::run::Profiles;
use zonelab_lab::session::{self, Files, Loaded, Named, ProfileFiles, load_named};
use zonelab_ssd::profile::{self, to_toml};

use crate::convert;
use crate::errors::{self, OrRaise as _};
use crate::frame::{Columns, Frame};
use crate::profile::Profile;

/// Name in messages of what was given as a dictionary or as text.
const GIVEN: &str = "experiment";

/// An experiment: which drives, which jobs, and what the results are compared with.
///
/// `source` is the id of a built-in experiment, the path of a file, TOML text, or a
/// dictionary of what the file would say, whose `profile` may be a dictionary too. `profile`
/// is a drive instead of the file's, `set` changes keys of the file or, with `drive.` in
/// front, of the drive.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Experiment {
    /// What it was read from.
    files: Files,
    named: Named,
    own: Option<OwnProfile>,
    set: Vec<String>,
    is_quick: bool,
    is_altered: bool,
    pub(crate) loaded: Loaded,
}

/// A profile that is in no file.
#[derive(Clone)]
struct OwnProfile {
    name: String,
    text: String,
}

/// Where an experiment's profiles are found.
pub(crate) struct Drives<'a> {
    own: Option<&'a OwnProfile>,
    files: ProfileFiles<'a>,
}

impl Profiles for Drives<'_> {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<profile::Profile, Errors> {
        match self.own.filter(|own| own.name == name) {
            Some(own) => profile::Profile::parse(&own.name, &own.text, overrides),
            None => self.files.load(name, overrides),
        }
    }
}

impl OwnProfile {
    fn of(profile: &profile::Profile) -> Self {
        Self {
            // No path and no built-in name, so that nothing else is found by it.
            name: format!("profile {}", profile.config.name.replace(['/', '.'], "-")),
            text: to_toml(&profile.config),
        }
    }
}

/// How an experiment that was given is to be changed.
#[derive(Default)]
pub(crate) struct Changes<'a, 'py> {
    pub(crate) profile: Option<&'a Bound<'py, PyAny>>,
    pub(crate) set: Option<&'a Bound<'py, PyAny>>,
    pub(crate) repeats: Option<u32>,
    pub(crate) quick: bool,
}

impl Experiment {
    /// An experiment from whatever Python may give for one.
    ///
    /// # Errors
    /// Everything that is wrong with it, or with the changes.
    pub(crate) fn from_any(source: &Bound<'_, PyAny>, changes: Changes<'_, '_>) -> PyResult<Self> {
        let files = Files::default();
        let mut is_quick = changes.quick;
        let (named, mut own, mut set, mut is_altered) = match source.cast::<Self>() {
            Ok(experiment) => {
                let of = experiment.get();
                is_quick |= of.is_quick;
                (
                    of.named.clone(),
                    of.own.clone(),
                    of.set.clone(),
                    of.is_altered,
                )
            }
            Err(_) => {
                let (named, own) = find(&files, source)?;
                (named, own, Vec::new(), false)
            }
        };
        let mut file_settings = Vec::new();
        if let Some(profile) = changes.profile {
            own = Some(OwnProfile::of(&Profile::from_any(profile, &[])?));
            is_altered = true;
        }
        if let Some(own) = &own {
            // A setting as any other, but one that is not the user's.
            file_settings.push(format!("profile=\"{}\"", own.name));
        }
        let mut new = convert::settings(changes.set)?;
        is_altered |= !new.is_empty();
        // To run points more often makes them better known, and no others.
        new.extend(changes.repeats.map(|repeats| format!("repeats={repeats}")));
        set.extend(new);
        let all = [file_settings.as_slice(), &set].concat();
        let loaded = load_named(&files, &named, &all, is_quick).or_raise()?;
        Ok(Self {
            files,
            named,
            own,
            set,
            is_quick,
            is_altered,
            loaded,
        })
    }

    /// Where its profiles are found.
    pub(crate) fn drives(&self) -> Drives<'_> {
        Drives {
            own: self.own.as_ref(),
            files: ProfileFiles {
                files: &self.files,
                base: self.named.base.as_deref(),
            },
        }
    }

    /// Whether it is another than its file says, so that published values say nothing.
    pub(crate) const fn is_altered(&self) -> bool {
        self.is_altered
    }

    /// Whether what is steady runs for a shorter time.
    pub(crate) const fn is_quick(&self) -> bool {
        self.is_quick
    }
}

/// What stands in a source, and the profile that stands in it, if one does.
fn find(files: &Files, source: &Bound<'_, PyAny>) -> PyResult<(Named, Option<OwnProfile>)> {
    let given = |text: String| Named {
        file: GIVEN.to_owned(),
        text,
        base: None,
    };
    if let Ok(data) = source.cast::<PyMapping>() {
        let profile = data.contains("profile")?.then(|| data.get_item("profile"));
        let profile = profile.transpose()?;
        let is_name = |profile: &Bound<'_, PyAny>| profile.is_instance_of::<PyString>();
        return match profile.filter(|profile| !is_name(profile)) {
            None => Ok((given(convert::to_toml(data)?), None)),
            Some(profile) => {
                let own = OwnProfile::of(&Profile::from_any(&profile, &[])?);
                let rest = PyDict::new(data.py());
                rest.update(data)?;
                rest.set_item("profile", &own.name)?;
                Ok((given(convert::to_toml(rest.as_mapping())?), Some(own)))
            }
        };
    }
    if let Ok(name) = source.cast::<PyString>() {
        let name = name.to_str()?;
        // A name has no lines and sets no keys.
        if name.contains(['\n', '=']) {
            return Ok((given(name.to_owned()), None));
        }
        return Ok((session::named(files, name).or_raise()?, None));
    }
    let path: PathBuf = source.extract().map_err(|_| {
        errors::usage("an experiment is an id, a path, TOML text, a dictionary, or an Experiment")
    })?;
    let file = path.to_string_lossy().into_owned();
    let text = session::read_bounded(&path)
        .map_err(|error| errors::invalid(format!("{file}: {error}")))?;
    let base = path.parent().map(Path::to_owned);
    Ok((Named { file, text, base }, None))
}

#[pymethods]
impl Experiment {
    #[new]
    #[pyo3(signature = (source, *, profile = None, set = None, quick = false))]
    fn new(
        source: &Bound<'_, PyAny>,
        profile: Option<&Bound<'_, PyAny>>,
        set: Option<&Bound<'_, PyAny>>,
        quick: bool,
    ) -> PyResult<Self> {
        let changes = Changes {
            profile,
            set,
            quick,
            ..Changes::default()
        };
        Self::from_any(source, changes)
    }

    /// Its id.
    #[getter]
    fn id(&self) -> &str {
        &self.loaded.experiment.id
    }

    /// What it is, in a line.
    #[getter]
    fn title(&self) -> &str {
        &self.loaded.experiment.title
    }

    /// The file, as it is.
    #[getter]
    fn text(&self) -> &str {
        &self.named.text
    }

    /// The names of its series.
    #[getter]
    fn series(&self) -> Vec<&str> {
        let series = self.loaded.experiment.series.iter();
        series.map(|series| series.name.as_str()).collect()
    }

    /// What the file says with its settings changed, as a dictionary.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        convert::from_json(py, &self.loaded.resolved)
    }

    /// Its points: every series at every value of its axis.
    fn points(&self) -> PyResult<Frame> {
        let points = &self.loaded.points;
        Columns::default()
            .text("series", points.iter().map(|point| point.series()))
            .number("x", points.iter().map(|point| point.x().number))
            .text("x_label", points.iter().map(|point| &point.x().text))
            .frame()
    }

    /// The drive of a point, by its number among `points()`.
    #[pyo3(signature = (point = 0))]
    fn drive(&self, point: usize) -> PyResult<Profile> {
        let points = &self.loaded.points;
        let Some(of) = points.get(point) else {
            let many = points.len();
            return Err(errors::usage(format!(
                "point {point}: there are {many}, from 0"
            )));
        };
        Ok(Profile::of(of.drive(&self.drives()).or_raise()?))
    }

    /// Checks that every point can be run, which reading the file does not.
    fn check(&self) -> PyResult<()> {
        let drives = self.drives();
        let mut points = self.loaded.points.iter();
        points
            .try_for_each(|point| point.check(&drives))
            .or_raise()?;
        let references = session::references(std::slice::from_ref(&self.loaded)).or_raise()?;
        references.check(&self.loaded.experiment).or_raise()
    }

    fn __len__(&self) -> usize {
        self.loaded.points.len()
    }

    fn __repr__(&self) -> String {
        let points = self.loaded.points.len();
        format!("<zonelab.Experiment {}, {points} points>", self.id())
    }
}

/// Ids of the built-in experiments, in the order of the papers.
#[pyfunction]
pub(crate) fn experiments() -> Vec<&'static str> {
    library::ids().collect()
}
