//! From names to what can be run: experiments and profiles that a user names, by built-in
//! id or by path, with settings changed, and the tables that they are compared with.
//!
//! The command and the Python package find and read the same things here, and refuse the
//! same things in the same words.
//!
//! * `files`: input files, built-in ones and profiles among them, and a record of them.
//! * `ordinary`: files that can be read to their end without waiting.
//! * `judged`: rows with what is known of them.
//! * `selection`: words that stand for published results.

mod files;
mod judged;
mod ordinary;
mod selection;

use std::path::{Path, PathBuf};

use zonelab_config::{Document, Errors, Override, Problem};

use crate::catalogue::CatalogueError;
use crate::experiment::{self, Experiment, Quick};
use crate::library;
use crate::output;
use crate::published::{LookupError, References};
use crate::reference::{Account, CsvTable, ReferenceError};
use crate::rows::MisfitError;
use crate::run::{self, Point, RunError};
use crate::settings::Settings;

pub use files::{Files, Gathered, MAX_BYTES, ProfileFiles, read_bounded, read_whole};
pub use judged::{ALTERED, Judged, Measured, Terms, alters};
pub use ordinary::open_ordinary;
pub use selection::{Selected, selected};

/// Why something that was named cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A word that stands for nothing, or a setting that is none.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read, with its name.
    #[error("{0}")]
    Unreadable(String),
    /// A file is wrong.
    #[error("{0}")]
    Invalid(#[from] Errors),
    /// A point cannot be run.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A table of published results is wrong.
    #[error("{0}")]
    Reference(#[from] ReferenceError),
    /// A published result is not where the experiment says.
    #[error("{0}")]
    Lookup(#[from] LookupError),
    /// The list of known misfits is wrong.
    #[error("{0}")]
    Misfits(#[from] MisfitError),
    /// The list of published results is wrong.
    #[error("{0}")]
    Catalogue(#[from] CatalogueError),
}

impl SessionError {
    /// A setting that is none.
    fn setting(problem: &Problem) -> Self {
        Self::Usage(problem.to_string())
    }
}

/// The text of an experiment that was named.
#[derive(Clone, Debug)]
pub struct Named {
    /// Name of the file, for messages.
    pub file: String,
    /// What stands in it.
    pub text: String,
    /// Directory that profiles named by path are relative to.
    pub base: Option<PathBuf>,
}

impl Named {
    /// What results of it are results of ([`output::Place::of`]).
    #[must_use]
    pub fn source(&self) -> &str {
        match self.base {
            None => output::BUILTIN,
            Some(_) => &self.file,
        }
    }
}

/// An experiment that was named, read.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The experiment.
    pub loaded: Loaded,
    /// What results of it are results of ([`output::Place::of`]).
    pub source: String,
    /// Directory that profiles named by path are relative to.
    pub base: Option<PathBuf>,
}

/// An experiment file, read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The file, as it is.
    pub text: String,
    /// The file with its settings changed, as data.
    pub resolved: serde_json::Value,
    /// What it says.
    pub experiment: Experiment,
    /// Its points.
    pub points: Vec<Point>,
    /// The table of published results that it names, if it does.
    pub reference: Option<Referenced>,
    /// It is a user's own, and none that is built in.
    pub is_own: bool,
}

/// A table of published results that a user has.
#[derive(Clone, Debug)]
pub struct Referenced {
    /// The table.
    pub table: CsvTable,
    /// Of its text: rows are results of it, too.
    pub digest: u64,
    /// What of it the experiment does not use, in words.
    pub left: Vec<String>,
}

/// Finds an experiment, a file or a built-in one.
///
/// # Errors
/// There is none.
pub fn named(files: &Files, name: &str) -> Result<Named, SessionError> {
    if let Some(text) = files.experiment(name) {
        return Ok(Named {
            file: format!("{name}.toml"),
            text,
            base: None,
        });
    }
    if !files.exists(Path::new(name)) && !name.contains(['/', '.']) {
        let file = format!("{name}.toml");
        return Err(SessionError::Usage(match files.is_file(Path::new(&file)) {
            true => format!("there is no experiment \"{name}\": did you mean the file {file}?"),
            false => no_experiment(name),
        }));
    }
    let path = Path::new(name);
    let text = files.text(path);
    let text = text.map_err(|error| SessionError::Unreadable(format!("{name}: {error}")))?;
    Ok(Named {
        file: name.to_owned(),
        text,
        base: path.parent().map(Path::to_owned),
    })
}

/// Why nothing is found under a name, and which names there are.
#[must_use]
pub fn no_experiment(name: &str) -> String {
    let ids: Vec<_> = library::ids().collect();
    let examples: Vec<_> = library::examples().map(|(id, _)| id).collect();
    let near = zonelab_config::nearest(name, ids.iter().chain(&examples).copied());
    let hint = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    format!(
        "there is no experiment \"{name}\"{hint}: name a file, or one of {}, or an example: {}",
        ids.join(", "),
        examples.join(", ")
    )
}

/// Reads an experiment that was found with settings changed, those of its drive among
/// them, and with those of `--quick` if asked.
///
/// # Errors
/// Something is wrong with it, or with a setting.
pub fn load_named(
    files: &Files,
    named: &Named,
    set: &[String],
    quick: bool,
) -> Result<Loaded, SessionError> {
    let set = Settings::parse(set).map_err(|problem| SessionError::setting(&problem))?;
    let mut loaded = load(files, (&named.file, &named.text), &set.file, quick)?;
    for point in &mut loaded.points {
        let changed = point.set_drive(&set.drive);
        changed.map_err(|errors| SessionError::Usage(errors.to_string()))?;
    }
    Ok(loaded)
}

/// Reads an experiment, a file or a built-in one, with settings changed.
///
/// # Errors
/// There is none, or something is wrong with it or with a setting.
pub fn open(
    files: &Files,
    name: &str,
    set: &[String],
    quick: bool,
) -> Result<Opened, SessionError> {
    let named = named(files, name)?;
    let loaded = load_named(files, &named, set, quick)?;
    Ok(Opened {
        loaded,
        source: named.source().to_owned(),
        base: named.base,
    })
}

/// Reads an experiment, a file by name and text, with the settings for `--quick` if asked.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(
    files: &Files,
    (file, text): (&str, &str),
    overrides: &[Override],
    quick: bool,
) -> Result<Loaded, SessionError> {
    let quick = if quick {
        let plain = Experiment::parse(file, text, &[], None)?;
        plain.quick
    } else {
        Quick::default()
    };
    let all = [&quick.set, overrides].concat();
    let mut experiment = Experiment::parse(file, text, &all, None)?;
    // `axis.values`, or `axis.0.values` of several axes.
    let sets_axis = |key: &str| key.starts_with("axis.") && key.ends_with(".values");
    if all.iter().any(|set| sets_axis(&set.key())) {
        // Published interference is a mean over all values of the axis.
        for pair in &mut experiment.interference {
            pair.published = None;
        }
        // So are statements about it.
        let is_mean = |measured: &experiment::Measured| {
            matches!(measured, experiment::Measured::Interference { .. })
        };
        for check in &mut experiment.checks {
            if check.value.measured().into_iter().any(is_mean) {
                let why = "it is a mean over all values of the axis, which was changed";
                check.unjudged = Some(why.to_owned());
            }
        }
    }
    let mut points = run::points(file, text, &all)?;
    let reference = reference(files, (file, text), &experiment)?;
    experiment.series.retain(|series| quick.runs(&series.name));
    points.retain(|point| quick.runs(point.series()));
    let document = Document::parse(file, text, &all)?;
    let mut resolved = document.to_json();
    // To run once says nothing: it is the same configuration.
    if let (1, Some(keys)) = (experiment.repeats, resolved.as_object_mut()) {
        keys.remove("repeats");
    }
    let is_own = !files.is_builtin(&experiment.id, text);
    Ok(Loaded {
        is_own,
        text: text.to_owned(),
        resolved,
        experiment,
        points,
        reference,
    })
}

/// Reads the table of published results that an experiment names, relative to its file.
fn reference(
    files: &Files,
    (file, text_of_experiment): (&str, &str),
    experiment: &Experiment,
) -> Result<Option<Referenced>, SessionError> {
    let Some(reference) = &experiment.reference else {
        return Ok(None);
    };
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let path = directory.join(&reference.file);
    let text = files.text(&path).map_err(|error| {
        let path = path.display();
        SessionError::Unreadable(format!("{file}: reference: {path}: {error}"))
    })?;
    let table = reference.read(&text, experiment)?;
    let digest = output::digest(text.as_bytes());
    let name = reference.file.as_str();
    let references = References::empty().with_table(name, table.clone());
    let mut account = Account::default();
    references.note((experiment, name), &|_| true, &mut account)?;
    let now = account.used();
    // Without settings it may have more values on its axis.
    if let Ok(plain) = Experiment::parse(file, text_of_experiment, &[], None) {
        references.note((&plain, name), &|_| true, &mut account)?;
    }
    let later = account.used() - now;
    let mut left = References::left(name, &table, account)?;
    if later > 0 {
        left.push(format!(
            "{name}: {later} values are of points that are not run with these settings"
        ));
    }
    Ok(Some(Referenced {
        table,
        digest,
        left,
    }))
}

/// The published results that experiments are compared with: the tables that are built
/// in, and those that the experiments name.
///
/// # Errors
/// A table is malformed.
pub fn references(loaded: &[Loaded]) -> Result<References, SessionError> {
    let mut references = References::builtin()?;
    for one in loaded {
        if let (Some(said), Some(own)) = (&one.experiment.reference, &one.reference) {
            references = references.with_table(&said.file, own.table.clone());
        }
    }
    Ok(references)
}

/// What of the published values that a user's own experiment has is not used, in words.
#[must_use]
pub fn left(loaded: &Loaded) -> Vec<String> {
    if !loaded.is_own {
        return Vec::new();
    }
    let of_table = loaded.reference.iter().flat_map(|of| of.left.clone());
    of_table.chain(left_points(&loaded.experiment)).collect()
}

/// Published values in the experiment file that nothing compares.
fn left_points(experiment: &Experiment) -> Vec<String> {
    let mut left = Vec::new();
    for series in &experiment.series {
        let runs_at = |x: &String| series.x.is_empty() || series.x.contains(x);
        for point in &series.points {
            let is_of = |job: &String| point.job.is_empty() || point.job == *job;
            let is_compared = experiment.compare.iter().any(|compare| {
                let runs = experiment.runs_result(series, &compare.job);
                runs && is_of(&compare.job) && compare.metrics.contains(&point.metric)
            });
            let is_drawn = experiment.figures.iter().any(|figure| {
                let drawn = [&figure.x, &figure.y].contains(&&point.metric);
                drawn && is_of(&figure.job)
            });
            if !(runs_at(&point.x) && (is_compared || is_drawn)) {
                left.push(format!(
                    "series \"{}\": the published {} = {} at x = {} is not used, since nothing \
                     compares it",
                    series.name, point.metric, point.value, point.x
                ));
            }
        }
    }
    left
}

/// Refuses published values of a user's own experiment that cannot be, or that contradict
/// each other.
///
/// # Errors
/// There are such values.
pub fn plausible(loaded: &Loaded, references: &References) -> Result<(), LookupError> {
    let experiment = &loaded.experiment;
    for point in loaded.points.iter().filter(|_| loaded.is_own) {
        let mut all = experiment.series.iter();
        if let Some(series) = all.find(|series| series.name == point.series()) {
            let in_flight = |job: &str| point.in_flight(job);
            references.plausible(experiment, series, point.x(), &in_flight)?;
        }
    }
    Ok(())
}

/// Checks that every point can be run.
///
/// # Errors
/// The first that cannot.
pub fn check(loaded: &[Loaded], profiles: &ProfileFiles<'_>) -> Result<(), SessionError> {
    for point in loaded.iter().flat_map(|one| &one.points) {
        point.check(profiles)?;
    }
    Ok(())
}
