//! A sweep as it is sent to whoever runs parts of it, and the running of a part.
//!
//! A *task* is one point of the sweep with one of its seeds: the whole experiment, every
//! series at every value of its axis, with the point's settings. Tasks are numbered: point
//! by point, and within a point repeat by repeat. What a task gives depends on the pack and
//! its number alone, wherever and whenever it is run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use zonelab_config::{Errors, Problem};
use zonelab_lab::arrivals;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::WorkTemplate;
use zonelab_lab::idle;
use zonelab_lab::inputs::{Inputs, VERSION};
use zonelab_lab::outlast;
use zonelab_lab::output::{Manifest, Place, digest};
use zonelab_lab::rows::significant;
use zonelab_lab::run::{JobMeasured, Point, PointResult, RunError, repeat_seed};
use zonelab_lab::settings::Settings;
use zonelab_lab::space::ObjectiveSpec;
use zonelab_lab::space::Sample;

use super::SweepError;
use super::adaptive::{Adaptive, Chooser};
use super::memo::Memo;

/// Version of the format.
const SCHEMA: u32 = 1;

/// A case of something that sets several keys.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct CaseOfKey {
    /// Its name, which is the value.
    pub name: String,
    /// What it sets, as after `--set`.
    pub set: Vec<String>,
}

/// Something that differs from point to point.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Key {
    /// Name of it in constraints and tables.
    pub name: String,
    /// Name of its column: the name, with the unit of its values.
    pub column: String,
    /// The key that is set, as after `--set`; `None`: a value is a case.
    pub key: Option<String>,
    /// Its cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseOfKey>,
    /// How its values are stored.
    pub kind: Kind,
    /// The unit of what is stored; `1` for what is counted, empty for what is no number.
    pub unit: String,
}

/// How the values of a key are stored.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A whole number of base units: nanoseconds, bytes, bytes per second, parts per
    /// million, or a count.
    Integer,
    /// A number with a point.
    Float,
    /// True or false.
    Bool,
    /// A text.
    Text,
}

/// A sweep: everything that its tasks depend on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Pack {
    schema: u32,
    /// Name of the sweep: that of its file.
    pub name: String,
    /// Its title; may be empty.
    pub title: String,
    /// The experiment, its drives, the seed and the repeats.
    pub inputs: Inputs,
    /// How the experiment is named on a command line: its path, or the id of a built-in one.
    pub experiment: String,
    /// How points were chosen.
    pub sample: Sample,
    /// What differs from point to point.
    pub keys: Vec<Key>,
    /// Of each point, a value for each key, as it is written after `--set`; no values: the
    /// experiment as it is.
    pub points: Vec<Vec<String>>,
    /// What other points may be chosen while it runs, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<Adaptive>,
    /// The series that are run; empty: all.
    pub series: Vec<String>,
    /// The metrics that the data set has; empty: all that have a value.
    pub metrics: Vec<String>,
    /// What is better.
    pub objectives: Vec<ObjectiveSpec>,
    /// Weights of throughput and latency in M^Inter.
    pub weights: Option<(f64, f64)>,
}

/// A task: a point of a sweep and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub index: u64,
    /// The place of its point.
    pub point: usize,
    /// Which repeat of it, from 0.
    pub repeat: u32,
    /// The seed.
    pub seed: u64,
}

/// What a task gave.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Line {
    /// Number of the task.
    pub index: u64,
    /// Whether everything was run.
    pub status: Status,
    /// What failed, if the whole task did: its settings are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was run: every series at every value of its axis.
    pub runs: Vec<Run>,
}

impl Line {
    /// What each job of each run measured.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (&Run, &JobRun)> {
        self.runs
            .iter()
            .flat_map(|run| run.jobs.iter().map(move |job| (run, job)))
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything was run.
    Ok,
    /// Something could not be run, or did not come to its end.
    Failed,
}

impl Status {
    /// How a task ended of which everything was tried.
    fn of(runs: &[Run]) -> Self {
        let is_ok =
            |run: &Run| run.error.is_none() && run.jobs.iter().all(|job| job.error.is_none());
        if runs.iter().all(is_ok) {
            Self::Ok
        } else {
            Self::Failed
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
        }
    }
}

/// What was measured in `runs`: of a series, at an axis value, of a job, by the name of a
/// metric. [`Objective::value`](zonelab_lab::space::Objective::value) asks for it.
pub(crate) fn measured(runs: &[Run]) -> impl Fn(&str, &str, &str, &str) -> Option<f64> {
    |series, x, job, metric| {
        let mut all = runs.iter();
        let run = all.find(|run| run.series == series && run.x == x)?;
        let job = run.jobs.iter().find(|one| one.name == job)?;
        job.metrics.get(metric).copied()
    }
}

/// One series at one value of the axis.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    /// Series.
    pub series: String,
    /// Value of the axis, as it stands in the file.
    pub x: String,
    /// Value of the axis as a number.
    pub x_number: f64,
    /// Name of the drive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drive: String,
    /// Name of the host's storage stack.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Digest of everything that it depends on besides the seed: runs of the same digest and
    /// seed measure the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// How long it took on the drive's clock.
    pub simulated_ns: u64,
    /// Why it could not be run, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What its jobs measured, in the order of the phases.
    pub jobs: Vec<JobRun>,
}

/// A job of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct JobRun {
    /// Its name.
    pub name: String,
    /// What it did.
    pub operation: String,
    /// Why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Every metric that has a value, to six digits.
    pub metrics: BTreeMap<String, f64>,
    /// The share of its time in which others of its phase had ended, and which, if that is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<(f64, Vec<String>)>,
    /// What else has to be said of it: what that is about, how much of it there is, and the words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<(String, f64, String)>,
}

impl Line {
    /// Takes over what the same task gave later: it has more series, or others.
    pub(super) fn merge(&mut self, later: Self) {
        if self.message.is_some() || later.message.is_some() {
            *self = later;
            return;
        }
        for run in later.runs {
            let mut known = self.runs.iter_mut();
            match known.find(|known| (&known.series, &known.x) == (&run.series, &run.x)) {
                Some(known) => *known = run,
                None => self.runs.push(run),
            }
        }
        self.status = Status::of(&self.runs);
    }
}

/// Why a task failed, in the first words that there are for it.
pub(super) fn why_failed(line: &Line) -> String {
    let runs = line.runs.iter().filter_map(|run| run.error.clone());
    let jobs = line.runs.iter().flat_map(|run| &run.jobs);
    let jobs = jobs.filter_map(|job| Some(format!("{}: {}", job.name, job.error.as_ref()?)));
    let message = line.message.iter().cloned();
    message.chain(runs).chain(jobs).next().unwrap_or_default()
}

impl Pack {
    /// A pack of these points; everything else is filled in by whoever prepares it.
    pub(crate) fn new(name: &str, inputs: Inputs, keys: Vec<Key>) -> Self {
        Self {
            schema: SCHEMA,
            name: name.to_owned(),
            title: String::new(),
            inputs,
            experiment: String::new(),
            sample: Sample::Grid,
            keys,
            points: Vec::new(),
            adaptive: None,
            series: Vec::new(),
            metrics: Vec::new(),
            objectives: Vec::new(),
            weights: None,
        }
    }

    /// As JSON, on one line, the same for the same sweep.
    ///
    /// # Panics
    /// Never: there is nothing that JSON cannot say.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// It is something else, or was written by another version of zonelab, whose results
    /// may differ.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SweepError> {
        let pack: Self = serde_json::from_slice(bytes).map_err(SweepError::Pack)?;
        if pack.schema != SCHEMA || pack.inputs.version != VERSION {
            return Err(SweepError::Version {
                theirs: pack.inputs.version,
            });
        }
        let adaptive = pack.adaptive.as_ref();
        if adaptive.is_some_and(|adaptive| !adaptive.is_of(&pack.keys)) {
            let what = "the values that points are chosen from are not those of its keys";
            return Err(SweepError::Pack(serde::de::Error::custom(what)));
        }
        Ok(pack)
    }

    /// What results of it are results of.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let tool = format!("zonelab {VERSION}");
        Manifest::new(&tool, &self.identity(), self.inputs.seed)
    }

    /// The directory of its results: the one that was named, or one of its own below
    /// `results/NAME`.
    #[must_use]
    pub fn place(&self, out: Option<&Path>) -> Place {
        Place::new(
            out,
            &zonelab_lab::output::file_name(&self.name),
            &self.manifest(),
        )
    }

    /// A digest of everything that what is run depends on.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:016x}", digest(&self.identity()))
    }

    /// What makes it this sweep and no other. Of one that grows, its points and what they
    /// are chosen by are left out: they may be looked at with other objectives, and be
    /// followed by more.
    fn identity(&self) -> Vec<u8> {
        let Some(adaptive) = &self.adaptive else {
            return self.to_bytes();
        };
        let mut same = self.clone();
        same.points.truncate(adaptive.fixed());
        same.sample = Sample::Evolve;
        same.series.clear();
        same.objectives.clear();
        same.weights = None;
        if let Some(adaptive) = &mut same.adaptive {
            adaptive.budget = 0;
        }
        same.to_bytes()
    }

    /// Without the points that were chosen while it ran.
    pub(super) fn begun(mut self) -> Self {
        if let Some(adaptive) = &self.adaptive {
            self.points.truncate(adaptive.fixed());
        }
        self
    }

    /// With the first of the points that are chosen while it runs: those of which no result
    /// is needed to choose them.
    #[must_use]
    pub fn with_first(&self) -> Self {
        let mut pack = self.clone();
        if let Some(adaptive) = &self.adaptive {
            let mut chooser = Chooser::new(self, adaptive);
            pack.points.extend(chooser.next(&|_| None));
        }
        pack
    }

    /// The number of tasks that there will be at most: more than [`Self::len`] if points are
    /// chosen while it runs.
    #[must_use]
    pub fn most(&self) -> u64 {
        let Some(adaptive) = &self.adaptive else {
            return self.len();
        };
        let points = adaptive.fixed() + adaptive.most(self.sample);
        (points as u64 * u64::from(self.inputs.repeats)).max(self.len())
    }

    /// Of a point, the value of the key at `place` as it is written.
    #[must_use]
    pub fn value(&self, point: usize, place: usize) -> Option<&str> {
        let values = self.points.get(point)?;
        match &self.adaptive {
            // The experiment as it is has the values that its file states.
            Some(adaptive) if values.is_empty() => adaptive.own.as_ref()?.get(place)?.as_deref(),
            _ => values.get(place).map(String::as_str),
        }
    }

    /// The number of tasks that there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.inputs.repeats)
    }

    /// Whether there is no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The task of this number; `None`: there are fewer.
    #[must_use]
    pub fn task(&self, index: u64) -> Option<Task> {
        let repeats = u64::from(self.inputs.repeats);
        if index >= self.len() {
            return None;
        }
        let repeat = u32::try_from(index % repeats).unwrap_or(u32::MAX);
        Some(Task {
            index,
            point: usize::try_from(index / repeats).unwrap_or(usize::MAX),
            repeat,
            seed: repeat_seed(self.inputs.seed, repeat),
        })
    }

    /// What a point sets, as after `--set`.
    #[must_use]
    pub fn settings_of(&self, point: usize) -> Vec<String> {
        let values = self.points.get(point).into_iter().flatten();
        let pairs = self.keys.iter().zip(values);
        pairs.flat_map(|(key, value)| key.settings(value)).collect()
    }

    /// The points of the experiment that a point of the sweep consists of.
    ///
    /// # Errors
    /// Its settings are refused.
    pub(super) fn points_of(&self, point: usize) -> Result<Vec<Point>, Errors> {
        let settings = Settings::parse(self.settings_of(point))?;
        let mut points = self.inputs.points_with(&settings)?;
        points.retain(|point| self.runs(point.series()));
        Ok(points)
    }

    /// Whether a series is run.
    fn runs(&self, series: &str) -> bool {
        self.series.is_empty() || self.series.iter().any(|name| name == series)
    }

    /// Checks that a point can be run, without running it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, point: usize) -> Result<(), String> {
        let points = self.points_of(point).map_err(|errors| in_short(&errors))?;
        let each = points.iter();
        let mut each = each.map(|point| point.check(&self.inputs));
        each.try_for_each(|checked| checked.map_err(|error| why(&error)))
    }

    /// What the jobs of a point will do that is nothing, in words, as far as the file says it.
    #[must_use]
    pub fn idle(&self, point: usize) -> Vec<String> {
        let points = self.points_of(point);
        points.map_or_else(
            |_| Vec::new(),
            |points| idle::of_points(&points, &self.inputs),
        )
    }

    /// The command that runs a task by itself.
    #[must_use]
    pub fn command(&self, task: &Task) -> Vec<String> {
        let mut words = vec!["zonelab".to_owned(), "run".to_owned()];
        words.push(self.experiment.clone());
        if self.inputs.quick {
            words.push("--quick".to_owned());
        }
        let common = self.inputs.settings.iter().cloned();
        for setting in common.chain(self.settings_of(task.point)) {
            words.extend(["--set".to_owned(), setting]);
        }
        words.extend(["--seed".to_owned(), task.seed.to_string()]);
        words
    }
}

impl Key {
    /// What a value of it sets.
    fn settings(&self, value: &str) -> Vec<String> {
        match &self.key {
            Some(key) => vec![format!("{key}={value}")],
            None => {
                let mut cases = self.cases.iter();
                let case = cases.find(|case| case.name == value);
                case.map(|case| case.set.clone()).unwrap_or_default()
            }
        }
    }
}

/// Runs tasks of a pack.
pub struct Runner<'a> {
    pack: &'a Pack,
    conditions: Conditions,
    memo: &'a Memo,
}

impl<'a> Runner<'a> {
    /// Runs tasks of this pack. What is in `memo` is not run again.
    ///
    /// # Errors
    /// Its faults or the state that its drives start from are wrong.
    pub fn new(pack: &'a Pack, memo: &'a Memo) -> Result<Self, Errors> {
        let conditions = pack.inputs.conditions()?;
        Ok(Self {
            pack,
            conditions,
            memo,
        })
    }

    /// Runs the task of this number. What fails is part of the result.
    #[must_use]
    pub fn run(&self, index: u64) -> Line {
        let work = match self.plan(index) {
            Ok(work) => work,
            Err(line) => return line,
        };
        let parts = 0..work.points.len();
        let runs = parts.map(|part| self.run_part(&work, part)).collect();
        work.line(runs)
    }

    /// What a task consists of, or what it gives if nothing of it can be run.
    pub(super) fn plan(&self, index: u64) -> Result<Work, Line> {
        let failed = |message: String| Line {
            index,
            status: Status::Failed,
            message: Some(message),
            runs: Vec::new(),
        };
        let task = self.pack.task(index);
        let task =
            task.ok_or_else(|| failed(format!("there are only {} tasks", self.pack.len())))?;
        let points = self.pack.points_of(task.point);
        let points = points.map_err(|errors| failed(in_short(&errors)))?;
        Ok(Work { task, points })
    }

    /// Runs one part of a task: one series at one value of the axis.
    pub(super) fn run_part(&self, work: &Work, part: usize) -> Run {
        let (point, seed) = (&work.points[part], work.task.seed);
        self.memo
            .run(point, seed, &self.pack.inputs, &self.conditions)
    }
}

/// A task and its parts.
#[derive(Debug)]
pub(super) struct Work {
    task: Task,
    pub(super) points: Vec<Point>,
}

impl Work {
    /// What the task gave, of what its parts gave.
    pub(super) fn line(&self, runs: Vec<Run>) -> Line {
        Line {
            index: self.task.index,
            status: Status::of(&runs),
            message: None,
            runs,
        }
    }
}

/// Runs tasks of a pack, one after another: what is sent to another process or machine.
///
/// # Errors
/// The bytes are no pack of this version of zonelab.
pub fn run_batch(pack: &[u8], indices: &[u64]) -> Result<Vec<Line>, SweepError> {
    let pack = Pack::from_bytes(pack)?;
    let memo = Memo::default();
    let runner = Runner::new(&pack, &memo)?;
    Ok(indices.iter().map(|index| runner.run(*index)).collect())
}

/// What is to be said of a job beside its numbers.
fn said(point: &Point, job: &JobMeasured) -> Vec<(String, f64, String)> {
    let experiment = point.experiment();
    let template = experiment.job_of_result(&job.name);
    let is_store = template.is_some_and(|of| matches!(of.work, WorkTemplate::Kv(_)));
    let of_store = match is_store {
        true => idle::of_store(|name| job.metrics.get(name)),
        false => Vec::new(),
    };
    let of_store = of_store.into_iter().map(|text| (text.clone(), 0.0, text));
    let others = arrivals::of_job(experiment, job);
    let others = others
        .into_iter()
        .map(|(about, size, text)| (about.to_owned(), significant(size), text));
    of_store.chain(others).collect()
}

/// What jobs measured, and how they failed.
pub(super) fn jobs(point: &Point, result: &PointResult) -> Vec<JobRun> {
    let mut alone = outlast::alone(point.experiment(), result);
    let error_of = |name: &str| {
        let failures = result.failures.iter().filter(|failure| failure.job == name);
        let failures = failures.map(|failure| failure.failed.to_string());
        let ended = result.ended_early.iter().filter(|ended| ended.job == name);
        let texts: Vec<String> = failures
            .chain(ended.map(|ended| ended.why.clone()))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    };
    let measured = result.jobs.iter().map(|job| {
        let values = job.metrics.values.iter();
        let metrics = values.map(|(name, value)| ((*name).to_owned(), significant(*value)));
        JobRun {
            name: job.name.clone(),
            operation: job.kind.name().to_owned(),
            error: error_of(&job.name),
            metrics: metrics.collect(),
            alone: alone
                .remove(&job.name)
                .map(|(share, others)| (significant(share), others)),
            said: said(point, job),
        }
    });
    measured.collect()
}

/// Why something cannot be run.
pub(super) fn why(error: &RunError) -> String {
    match error {
        RunError::Invalid(errors) => in_short(errors),
        RunError::Unfit(_) | RunError::Lost(_) => error.to_string(),
    }
}

/// What is wrong, on one line.
pub(super) fn in_short(errors: &Errors) -> String {
    let problems: Vec<String> = errors.problems().iter().map(Problem::to_string).collect();
    problems.join("; ")
}
