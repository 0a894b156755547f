//! Calibration: profile parameters fitted to what a real drive was measured to do.
//!
//! What a measured value means is said by experiments: they map rows of a table
//! to workloads ([`zonelab_lab::published`]). Results of fio bring their jobs along.
//! Everything is deterministic: a candidate is run with the same seeds as all
//! others, and what was run is kept in a file, so that a calibration that was
//! interrupted goes on where it was, to the same bytes.
//!
//! | module | what |
//! | --- | --- |
//! | `parameters` | free keys: values, bounds, units, rounding |
//! | `profile_text` | the text of a profile, with values replaced |
//! | `data` | measured values, and what is run for them |
//! | `fio_json` | fio's JSON: jobs and results |
//! | `evaluate` | running candidates, once each |
//! | `objective` | how far a candidate is from the data |
//! | `search` | secants, least-squares steps, BOBYQA |
//! | `solve` | the linear algebra of it |
//! | `folds` | cross-validation |
//! | `sensitivity` | which data fix which parameter |
//! | `report` | files, tables, figures |
//!
//! Why this way: `docs/decisions/0012-calibration.md`. For users:
//! `docs/calibration.md`.

mod data;
mod evaluate;
mod fio_json;
mod folds;
mod objective;
mod parameters;
mod profile_text;
mod report;
mod search;
mod sensitivity;
pub(crate) mod solve;

use std::path::{Path, PathBuf};

use zonelab_config::Errors;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::published::LookupError;
use zonelab_lab::reference::ReferenceError;
use zonelab_ssd::profile::Profile;

pub use data::{Data, Group, Measurement};
pub use folds::FoldResult;
pub use parameters::{FreeKey, Parameter};
pub use report::{Errors as ErrorStats, Residual, Summary};
pub use search::{OnProgress, Progress};
pub use sensitivity::Sensitivity;

use evaluate::{Effort, Evaluator, Values};
use objective::Objective;
use profile_text::ProfileText;
use search::{Found, Search};

/// Name of the file in which evaluations are kept.
pub use crate::evaluations::FILE as EVALUATIONS;

/// A text file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Name as the user knows it.
    pub name: String,
    /// Path below the data directory, with `/`.
    pub below: String,
    /// What is in it.
    pub text: String,
}

/// An experiment that says what rows of tables mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFile {
    /// Name of the file.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// How to calibrate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What may be changed.
    pub free: Vec<FreeKey>,
    /// Seed of all randomness: of the runs, and of the folds.
    pub seed: u64,
    /// Parts of the data for cross-validation; below 2: none.
    pub folds: u32,
    /// Every second axis value, shorter runs, fewer candidates.
    pub coarse: bool,
    /// Candidates to look at; `None`: as many as the number of keys suggests.
    pub max_evaluations: Option<u32>,
}

/// What is wrong with the input of a calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The start profile, or an experiment, is wrong.
    #[error("{0}")]
    Invalid(#[from] Errors),
    /// A free key is wrong.
    #[error("--free {key}: {what}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        what: String,
    },
    /// A table is wrong, at a line and column.
    #[error("{0}")]
    Cell(#[from] ReferenceError),
    /// An experiment asks a table for what it does not have.
    #[error("{0}")]
    Lookup(#[from] LookupError),
    /// A table is not in the data directory.
    #[error(
        "experiment {experiment} needs the table {table}, which is not in the data directory as \
         {table}.csv or, without directories, by the last part of that name"
    )]
    Table {
        /// The experiment.
        experiment: String,
        /// Its table.
        table: String,
    },
    /// No value of an experiment is in the data.
    #[error(
        "experiment {experiment}: the data hold none of its values; it compares {}", metrics.join(", ")
    )]
    Unmeasured {
        /// The experiment.
        experiment: String,
        /// What it compares.
        metrics: Vec<String>,
    },
    /// A job file cannot be run.
    #[error("{file}: these jobs cannot be run here: {what}")]
    Jobs {
        /// The file.
        file: String,
        /// Why not.
        what: String,
    },
    /// A case cannot be run on the start profile.
    #[error("on the start profile: {what}")]
    Start {
        /// Why not.
        what: String,
    },
    /// There is nothing to fit.
    #[error(
        "there is nothing to fit: no results of fio (.json) in the data directory, and no \
         experiment was named or goes by the name of the profile with all its tables there"
    )]
    Nothing,
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// Why a calibration ended early.
#[derive(Debug)]
pub enum Stop {
    /// It was interrupted; what was run is kept.
    Interrupted,
    /// Something is wrong.
    Failed(CalibrateError),
}

impl From<CalibrateError> for Stop {
    fn from(error: CalibrateError) -> Self {
        Self::Failed(error)
    }
}

/// A calibration that is ready to run: all input was read and makes sense.
#[derive(Debug)]
pub struct Calibration {
    settings: Settings,
    start: DataFile,
    text: ProfileText,
    data: Data,
    parameters: Vec<Parameter>,
    /// What evaluations depend on.
    configuration: String,
}

/// What a calibration came to.
#[derive(Debug)]
pub struct Outcome {
    /// The calibrated profile: the text of the start, with values replaced.
    pub profile: String,
    /// Files of results: name and content.
    pub files: Vec<(String, String)>,
    /// The residual table and the summary, for a terminal.
    pub text: String,
    /// The summary.
    pub summary: Summary,
}

/// The built-in experiments of a real drive of this name whose tables are all
/// among `files`.
///
/// # Errors
/// A built-in experiment is malformed.
pub fn default_experiments(
    drive: &str,
    files: &[DataFile],
) -> Result<Vec<ExperimentFile>, CalibrateError> {
    let tables = data::Tables::new(files)?;
    let mut found = Vec::new();
    for id in library::ids() {
        let (name, text) = (format!("{id}.toml"), library::text(id).unwrap_or_default());
        let experiment = Experiment::parse(&name, text, &[], None)?;
        let names = data::tables_of(&experiment);
        let has_tables = !names.is_empty() && names.iter().all(|name| tables.find(name).is_some());
        if experiment.kind == "D" && experiment.profile == drive && has_tables {
            let text = text.to_owned();
            found.push(ExperimentFile { name, text });
        }
    }
    Ok(found)
}

impl Calibration {
    /// Reads everything.
    ///
    /// # Errors
    /// What is wrong with the profile, a key, a table, an experiment or a value.
    pub fn prepare(
        start: DataFile,
        files: &[DataFile],
        experiments: &[ExperimentFile],
        settings: Settings,
    ) -> Result<Self, CalibrateError> {
        let profile = Profile::parse(&start.name, &start.text, &[])?;
        let text = ProfileText::parse(&start.name, &start.text)?;
        let mut parameters = Vec::new();
        for free in &settings.free {
            let parameter = Parameter::new(free, &text, &profile)?;
            let is_twice = parameters
                .iter()
                .any(|other: &Parameter| other.key == parameter.key);
            if is_twice {
                return Err(CalibrateError::Key {
                    key: parameter.key,
                    what: "it is named twice".to_owned(),
                });
            }
            parameters.push(parameter);
        }
        let data = Data::new(files, experiments, settings.coarse)?;
        let configuration = configuration(&start, files, experiments, &settings);
        Ok(Self {
            settings,
            start,
            text,
            data,
            parameters,
            configuration,
        })
    }

    /// Everything that evaluations depend on: those of another configuration
    /// are of no use. The number of evaluations and of folds is no part of it.
    #[must_use]
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// The data.
    #[must_use]
    pub const fn data(&self) -> &Data {
        &self.data
    }

    /// The free parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Candidates that the fit looks at, at most.
    #[must_use]
    pub fn most_evaluations(&self) -> u32 {
        let keys = self.parameters.len() as u32;
        let usual = if self.settings.coarse {
            20 + 2 * keys
        } else {
            50 + 4 * keys
        };
        self.settings.max_evaluations.unwrap_or(usual)
    }

    const fn effort(&self) -> Effort {
        if self.settings.coarse {
            Effort {
                operations: 10_000,
                least: 100,
            }
        } else {
            Effort {
                operations: 40_000,
                least: 300,
            }
        }
    }

    /// Calibrates on the current thread pool. Evaluations are kept in `dir`, and
    /// those that are there are used.
    ///
    /// # Errors
    /// Interrupted, or something is wrong.
    pub fn run(
        &self,
        dir: &Path,
        on_progress: &OnProgress<'_>,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, Stop> {
        let path = dir.join(EVALUATIONS);
        let mut evaluator = Evaluator::open(
            &self.data,
            &self.parameters,
            &self.start,
            self.settings.seed,
            interrupted,
            (&path, self.effort()),
        )?;
        let all = evaluator.all_cases();
        let most = self.most_evaluations();
        let folds = folds::run(self, &mut evaluator, most - most / 3, on_progress)?;
        // Where parts of the data led to is a good place to begin, too.
        let mut starts = vec![self.start_values()];
        starts.extend(folds.iter().map(|fold| fold.values.clone()));
        let stage = ("fit", on_progress);
        let mut fitted = self.fit(&mut evaluator, all.clone(), most, &starts, stage)?;
        let sensitivity = sensitivity::measure(self, &mut evaluator, &fitted.values, on_progress)?;
        self.put_back(&mut evaluator, &mut fitted, &sensitivity)?;
        let before = evaluator.evaluate(&self.start_values(), &all)?;
        let after = evaluator.evaluate(&fitted.values, &all)?;
        let results = evaluator.point_results(&fitted.values)?;
        let nothing = || vec![None; self.data.measurements.len()];
        let parts = report::Parts {
            calibration: self,
            fitted: &fitted,
            sensitivity: &sensitivity,
            folds: &folds,
            before: &before.unwrap_or_else(nothing),
            after: &after.unwrap_or_else(nothing),
            results,
        };
        parts.outcome().map_err(Stop::Failed)
    }

    fn start_values(&self) -> Values {
        self.parameters.iter().map(|p| p.start).collect()
    }

    fn fit(
        &self,
        evaluator: &mut Evaluator<'_>,
        cases: Vec<usize>,
        most: u32,
        starts: &[Values],
        progress: (&str, &OnProgress<'_>),
    ) -> Result<Found, Stop> {
        let of = (&self.data, self.parameters.as_slice());
        Search::new(evaluator, of, cases, most, progress).run(starts)
    }

    /// Parameters that nothing reacts to at the solution get their start values
    /// back, unless that makes a difference after all.
    fn put_back(
        &self,
        evaluator: &mut Evaluator<'_>,
        fitted: &mut Found,
        sensitivity: &[Sensitivity],
    ) -> Result<(), Stop> {
        /// A loss that is greater by this factor is no difference.
        const SAME: f64 = 1.001;
        let all = evaluator.all_cases();
        let objective = Objective::new(&self.data, &all);
        for (index, sensitivity) in sensitivity.iter().enumerate() {
            if sensitivity.is_determined() {
                continue;
            }
            let mut values = fitted.values.clone();
            values[index] = self.parameters[index].start;
            if let Some(ours) = evaluator.evaluate(&values, &all)? {
                let loss = objective.loss(&objective.errors(&self.data, &ours));
                if loss <= fitted.loss * SAME {
                    fitted.values = values;
                    fitted.loss = loss;
                }
            }
        }
        Ok(())
    }

    /// The text of the start profile with other values of the free parameters.
    fn profile_text(&self, values: &Values) -> String {
        let mut text = self.text.clone();
        for (parameter, value) in self.parameters.iter().zip(values) {
            if parameter.start != *value {
                text.set(&parameter.key, &parameter.print(*value));
            }
        }
        text.print()
    }
}

/// See [`Calibration::configuration`].
fn configuration(
    start: &DataFile,
    files: &[DataFile],
    experiments: &[ExperimentFile],
    settings: &Settings,
) -> String {
    let files: Vec<_> = files.iter().map(|file| (&file.below, &file.text)).collect();
    let experiments: Vec<_> = experiments.iter().map(|file| &file.text).collect();
    let keys: Vec<_> = settings
        .free
        .iter()
        .map(|free| (&free.key, &free.bounds))
        .collect();
    serde_json::json!({
        "start": start.text,
        "files": files,
        "experiments": experiments,
        "free": keys,
        "coarse": settings.coarse,
    })
    .to_string()
}
