//! Sweeps: an experiment at many settings, and one data set of all of it.
//!
//! A sweep file names an experiment, what differs from point to point, and how points are
//! chosen. [`Sweep::prepare`] makes a [`Pack`] of it, which says everything; whoever has the
//! pack can run any [`Task`] of it ([`run_batch`], a pure function), here or elsewhere; a
//! [`Store`] keeps what tasks gave and makes the data set when all are done. The files are
//! the same whoever ran the tasks, in whatever order, and however often he was interrupted.
//!
//! ```no_run
//! use std::path::Path;
//! use zonelab_lab::output::Existing;
//! use zonelab_search::sweep::{Source, Store, Sweep, batches, run_batch};
//!
//! let text = std::fs::read_to_string("sweep.toml")?;
//! let source = Source::new("sweep.toml", &text);
//! let sweep = Sweep::prepare(&source, &|path| std::fs::read_to_string(path))?;
//! let bytes = sweep.pack().to_bytes();
//! let mut store = Store::create(Path::new("results/sweep"), sweep.into_pack(), Existing::Keep)?;
//! for batch in batches(&store.pending(), 2) {
//!     // In another process, on another machine: bytes and numbers go there, lines come back.
//!     let lines = run_batch(&bytes, &batch)?;
//!     store.append(&lines)?;
//! }
//! for file in store.finish()?.files {
//!     println!("{}", file.display());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `file` | sweep files |
//! | `adaptive`, `evolve`, `growth` | points that are chosen while it runs |
//! | `pack` | a sweep as it is sent; tasks, and running them |
//! | `local` | threads of this process |
//! | `memo` | what was run already |
//! | `store` | the directory: the log of what is done |
//! | `dataset` | rows and columns, CSV |
//! | `columnar` | Arrow, Parquet |
//! | `pareto`, `front` | what nothing beats |
//! | `summary` | `sweep.json`, and what a terminal shows |
//! | `page` | the page to look through all points |
//!
//! For users: `docs/sweep.md`.

mod adaptive;
#[cfg(feature = "arrow")]
mod columnar;
mod dataset;
mod evolve;
mod file;
mod front;
mod growth;
mod local;
mod memo;
mod pack;
mod page;
pub(crate) mod pareto;
mod store;
mod summary;

pub(crate) use summary::warnings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use zonelab_config::{Errors, FileKind, Override, Problem, nearest};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::inputs::{Inputs, NamedText};
use zonelab_lab::library;
use zonelab_lab::output::OutputError;
use zonelab_lab::settings::Settings;
use zonelab_lab::space::Values;
use zonelab_lab::table::Style;

pub use zonelab_lab::space::{
    Constraint, Goal, Knob, MAX_POINTS, METRIC_M, Objective, ObjectiveSpec, STEPS, Sample,
    Values as KnobValues, Wrong, weights,
};

pub use adaptive::{Adaptive, BUDGET};
pub use dataset::{Column, FIXED, Table, Values as ColumnValues};
pub use file::MAX_REPEATS;
pub use front::{Aim, Standing};
pub use local::{End, Observer, Progress, batches, run};
pub use memo::Memo;
pub use pack::{CaseOfKey, JobRun, Key, Kind, Line, Pack, Run, Runner, Status, Task, run_batch};
pub use pareto::{Cost, cost, dominates, front, hypervolume};
pub use store::{CSV, Files, Finished, Format, JSON_LINES, PACK, PAGE, PARQUET, SUMMARY, Store};

pub(crate) use adaptive::{MAX_KEYS, OBJECTIVES, grid_size};
use file::{Placed, SweepFile, Vary};
use pack::in_short;
pub(crate) use pack::measured;

/// Most tasks of a sweep.
const MAX_TASKS: u64 = 10_000_000;
/// Most objectives: hypervolumes are not needed here, a table has so much room.
const MAX_OBJECTIVES: usize = 4;
/// Points that are tried before it is said that none can be run.
const TRIED: usize = 200;
/// Values of a key that are tried to find which key is refused.
const TRIED_VALUES: usize = 20;

/// What is wrong with a sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file is wrong.
    #[error("{0}")]
    Invalid(#[from] Errors),
    /// Bytes that are no sweep.
    #[error("this is no sweep: {0}")]
    Pack(serde_json::Error),
    /// A sweep of another version.
    #[error(
        "the sweep was prepared by zonelab {theirs}, and this is {}: results may differ, so it \
         has to be begun anew, in another directory or with --force",
        zonelab_lab::inputs::VERSION
    )]
    Version {
        /// Their version.
        theirs: String,
    },
    /// A line of no task.
    #[error("there is no task {index}: the sweep has {tasks}")]
    NoSuchTask {
        /// The number it has.
        index: u64,
        /// Tasks that there are.
        tasks: u64,
    },
    /// Tasks are left.
    #[error("{missing} tasks are left: run them first")]
    Unfinished {
        /// So many.
        missing: u64,
    },
    /// Results cannot be written.
    #[error("{0}")]
    Output(OutputError),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl SweepError {
    fn io(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// A sweep file, and what is said besides it.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file, for messages and results.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// Settings of the experiment or its drive that are the same for all points, as after
    /// `--set`, over those of the file.
    pub settings: Vec<String>,
    /// The reduced form: that of the file's `[quick]` and of the experiment's.
    pub quick: bool,
    /// Seed of all randomness, also of which points are drawn.
    pub seed: u64,
    /// So many points in place of those of the file.
    pub points: Option<u32>,
    /// So many repeats in place of those of the file.
    pub repeats: Option<u32>,
}

impl Source {
    /// A file as it is, with seed 1.
    #[must_use]
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            settings: Vec::new(),
            quick: false,
            seed: 1,
            points: None,
            repeats: None,
        }
    }

    /// Whether a text is a sweep file rather than an experiment or a profile.
    #[must_use]
    pub fn is_sweep(document: &zonelab_config::Document) -> bool {
        FileKind::of(document) == Some(FileKind::Sweep)
    }
}

/// Reads a file by its path, relative to the directory of the sweep file.
pub type Read<'a> = dyn Fn(&str) -> io::Result<String> + 'a;

/// A sweep that is ready to run.
#[derive(Clone, Debug)]
pub struct Sweep {
    pack: Pack,
}

impl Sweep {
    /// Reads a sweep file and everything that it names, chooses the points, and checks what
    /// can be checked without running: that keys are known, that objectives and series
    /// exist, that at least one of the points can be run. A point that its drive refuses is
    /// no error; it becomes a row that says so.
    ///
    /// # Errors
    /// Everything that is wrong, with files and lines.
    pub fn prepare(source: &Source, read: &Read<'_>) -> Result<Self, Errors> {
        let file = SweepFile::parse(&source.file, &source.text, &[])?;
        let experiment = named(&file.experiment, read)?;
        let mut inputs = Inputs::new(&experiment.name, &experiment.text);
        inputs.quick = source.quick;
        inputs.seed = source.seed;
        let quick = source.quick.then_some(&file.quick);
        let of_quick = quick.map_or(&[][..], |quick| &quick.set);
        let settings = [&file.set, of_quick, &source.settings];
        inputs.settings = settings.into_iter().flatten().cloned().collect();
        let repeats = quick
            .and_then(|quick| quick.repeats)
            .unwrap_or(file.repeats);
        inputs.repeats = source.repeats.unwrap_or(repeats);
        let count = quick.and_then(|quick| quick.points).or(file.points);
        for (what, number) in [("points", source.points), ("repeats", source.repeats)] {
            if number == Some(0) {
                return Err(file.sample.wrong(format!("0 {what}"), "at least 1").into());
            }
        }
        let count = source.points.or(count);
        let points = file.points(count, source.seed)?;
        let adaptive = (file.sample.value == Sample::Evolve).then(|| Adaptive {
            knobs: file.varies.iter().map(|vary| vary.knob.clone()).collect(),
            constraints: file
                .constraints
                .iter()
                .map(|one| one.text.clone())
                .collect(),
            budget: count.unwrap_or(BUDGET),
            own: None,
        });
        let chosen = adaptive.as_ref().map_or(0, |adaptive| adaptive.budget);
        let tasks = (points.len() as u64 + u64::from(chosen)) * u64::from(inputs.repeats);
        if tasks > MAX_TASKS {
            let what = format!("{tasks} runs");
            return Err(file
                .sample
                .wrong(what, format!("at most {MAX_TASKS}"))
                .into());
        }
        let parsed = inputs.parse(&Settings::default())?;
        check_names(&file, &parsed)?;
        gather(&mut inputs, &file, &experiment, read)?;
        let keys = file.varies.iter().map(key).collect();
        let name = Path::new(&source.file).file_stem();
        let name = name.map_or_else(|| "sweep".into(), |name| name.to_string_lossy());
        let mut pack = Pack::new(&name, inputs, keys);
        pack.title.clone_from(&file.title);
        pack.experiment.clone_from(&experiment.name);
        if library::text(&file.experiment.value).is_some() {
            pack.experiment.clone_from(&file.experiment.value);
        }
        pack.sample = file.sample.value;
        pack.adaptive = adaptive;
        let text = |point: &Values| {
            let pairs = file.varies.iter().zip(point);
            pairs.map(|(vary, value)| vary.knob.text(*value)).collect()
        };
        pack.points = points.iter().map(text).collect();
        pack.series = file
            .series
            .iter()
            .map(|series| series.value.clone())
            .collect();
        pack.metrics.clone_from(&file.metrics);
        pack.objectives = file
            .objectives
            .iter()
            .map(|(spec, _)| spec.clone())
            .collect();
        pack.weights = file.weights;
        check_points(&pack.with_first(), &file)?;
        Ok(Self { pack })
    }

    /// Everything that its tasks depend on.
    #[must_use]
    pub const fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Everything that its tasks depend on.
    #[must_use]
    pub fn into_pack(self) -> Pack {
        self.pack
    }
}

impl Pack {
    /// Id of the experiment, and the name of its axis.
    pub(super) fn names(&self) -> (String, String) {
        let parsed = self.inputs.parse(&Settings::default());
        parsed.map_or_else(
            |_| (String::new(), String::new()),
            |parsed| (parsed.id, parsed.axis.name),
        )
    }

    /// What a terminal shows of a sweep that is done; with `all` every point, and not only
    /// those on the front.
    ///
    /// # Errors
    /// The experiment is wrong, which it was not when the sweep was prepared.
    pub fn text(&self, lines: &[Line], all: bool, style: &Style) -> Result<String, SweepError> {
        summary::text(self, lines, all, style)
    }

    /// What every point comes to, and the objectives.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn standings(&self, lines: &[Line]) -> Result<(Vec<Aim>, Vec<Standing>), Errors> {
        front::standings(self, lines)
    }

    /// The data set of lines in the order of their tasks.
    #[must_use]
    pub fn table(&self, lines: &[Line]) -> Table {
        dataset::table(self, lines)
    }
}

/// The experiment that a sweep names: a file, or the id of a built-in one.
fn named(experiment: &Placed<String>, read: &Read<'_>) -> Result<NamedText, Problem> {
    let name = &experiment.value;
    if let Some(text) = library::text(name).or_else(|| library::example(name)) {
        return Ok(NamedText {
            name: format!("{name}.toml"),
            text: text.to_owned(),
        });
    }
    if !name.contains(['/', '.']) {
        let near = nearest(name, library::ids());
        let valid = near.map_or_else(
            || "a path, or the id of a built-in one".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        return Err(experiment.wrong(format!("there is no experiment \"{name}\""), valid));
    }
    let text = read(name).map_err(|error| experiment.wrong(format!("{name}: {error}"), ""))?;
    Ok(NamedText {
        name: name.clone(),
        text,
    })
}

/// Checks the names of series and objectives.
fn check_names(file: &SweepFile, parsed: &Experiment) -> Result<(), Errors> {
    for series in &file.series {
        let known = || parsed.series.iter().map(|known| known.name.as_str());
        if !known().any(|known| known == series.value) {
            let valid = nearest(&series.value, known()).map_or_else(
                || format!("there are {}", known().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean \"{near}\"?"),
            );
            let what = format!("there is no series \"{}\"", series.value);
            return Err(series.wrong(what, valid).into());
        }
    }
    for (place, (spec, at)) in file.objectives.iter().enumerate() {
        let wrong = |what: String, valid: String| {
            Errors::from(Problem {
                what,
                valid,
                ..at.clone()
            })
        };
        if place >= MAX_OBJECTIVES {
            let what = format!("there are {} objectives", file.objectives.len());
            return Err(wrong(what, format!("at most {MAX_OBJECTIVES}")));
        }
        let resolved = Objective::resolve(parsed, spec);
        let resolved = resolved.map_err(|(_, found)| wrong(found.what, found.valid))?;
        let run = &file.series;
        let is_run = |needed: &str| run.is_empty() || run.iter().any(|one| one.value == needed);
        if let Some(missing) = resolved.needs().find(|needed| !is_run(needed)) {
            let what = format!("it needs the series \"{missing}\", which is not run");
            return Err(wrong(what, "add it to `series`".to_owned()));
        }
    }
    Ok(())
}

/// Adds the files that the experiment names, with every value that varies its profile.
fn gather(
    inputs: &mut Inputs,
    file: &SweepFile,
    experiment: &NamedText,
    read: &Read<'_>,
) -> Result<(), Errors> {
    // Names in an experiment are relative to its directory.
    let base = Path::new(&experiment.name).parent();
    let read = |path: &str| {
        let path = base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
        read(&path.to_string_lossy())
    };
    inputs.gather_with(&Settings::default(), &read)?;
    for vary in &file.varies {
        for value in vary.knob.to_check() {
            let settings = Settings::parse(settings(vary, value))?;
            gather_value(inputs, &settings, &read).map_err(|errors| {
                let what = format!("{}: {}", vary.knob.text(value), in_short(&errors));
                Errors::from(vary.name.wrong(what, ""))
            })?;
        }
    }
    Ok(())
}

/// Adds the profile that settings name, if they name one. `read` is given paths relative to
/// the experiment's directory.
pub(crate) fn gather_value(
    inputs: &mut Inputs,
    settings: &Settings,
    read: &Read<'_>,
) -> Result<(), Errors> {
    let names_profile = |set: &Override| set.key() == "profile";
    if settings.file.iter().any(names_profile) {
        inputs.gather_with(settings, read)?;
    }
    Ok(())
}

/// What a value of something that varies sets.
fn settings(vary: &Vary, value: u64) -> Vec<String> {
    if vary.cases.is_empty() {
        return vec![vary.knob.setting(value)];
    }
    let name = vary.knob.text(value);
    let mut cases = vary.cases.iter();
    let case = cases.find(|case| case.name == name);
    case.map(|case| case.set.clone()).unwrap_or_default()
}

fn key(vary: &Vary) -> Key {
    let name = vary.name.value.clone();
    if vary.cases.is_empty() {
        return Key::of_knob(&name, &vary.knob);
    }
    let cases = vary.cases.iter().map(|case| CaseOfKey {
        name: case.name.clone(),
        set: case.set.clone(),
    });
    Key {
        column: name.clone(),
        key: None,
        cases: cases.collect(),
        kind: Kind::Text,
        unit: String::new(),
        name,
    }
}

impl Key {
    /// A key of this name with the values of a knob.
    pub(crate) fn of_knob(name: &str, knob: &Knob) -> Self {
        let (kind, suffix, unit) = dataset::kind_of(knob.quantity(), &knob.listed());
        let column = if name.ends_with(suffix) {
            name.to_owned()
        } else {
            format!("{name}{suffix}")
        };
        Self {
            column,
            key: Some(knob.key.clone()),
            cases: Vec::new(),
            kind,
            unit: unit.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Checks that one of the points can be run: if none of them can, a key is unknown, or the
/// drive has no such part.
fn check_points(pack: &Pack, file: &SweepFile) -> Result<(), Errors> {
    let count = pack.points.len();
    let tried: BTreeSet<usize> = (0..TRIED.min(count))
        .map(|n| n * count / TRIED.min(count))
        .collect();
    let mut first = None;
    for point in tried {
        match pack.check(point) {
            Ok(()) => return Ok(()),
            Err(why) => {
                first.get_or_insert((point, why));
            }
        }
    }
    // A key that is refused whatever its value is says more than a point.
    for vary in &file.varies {
        let mut refused = None;
        for value in vary.knob.to_check().into_iter().take(TRIED_VALUES) {
            let alone = Settings::parse(settings(vary, value))?;
            let points = pack.inputs.points_with(&alone);
            let checked = points
                .map_err(|errors| in_short(&errors))
                .and_then(|points| {
                    let mut each = points.iter().map(|point| point.check(&pack.inputs));
                    each.try_for_each(|checked| checked.map_err(|error| error.to_string()))
                });
            match checked {
                Ok(()) => {
                    refused = None;
                    break;
                }
                Err(why) => {
                    refused.get_or_insert((value, why));
                }
            }
        }
        if let Some((value, why)) = refused {
            let what = format!("{} is refused: {why}", vary.knob.text(value));
            return Err(vary.name.wrong(what, "").into());
        }
    }
    let Some((point, why)) = first else {
        let what = "there is no point that fulfils the constraints";
        let valid = "other constraints, or more values";
        return Err(file.sample.wrong(what, valid).into());
    };
    let values = pack.points.get(point).map(|values| values.join(", "));
    let what = format!(
        "no point can be run; {} is refused: {why}",
        values.unwrap_or_default()
    );
    Err(file
        .sample
        .wrong(what, "other values, or constraints that leave others")
        .into())
}
