//! Running experiments: their points in one pool, with progress, until done or
//! interrupted.

use std::iter::repeat_n;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use zonelab_config::{Document, Override};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::{Experiment, Measured, Quick};
use zonelab_lab::matrix::{self, Explanation, Matrix};
use zonelab_lab::published::References;
use zonelab_lab::reference::CsvTable;
use zonelab_lab::run::{self, Point, PointResult, RealError, RunOptions};

use crate::console;
use crate::exit::Failure;
use crate::files::{self, ProfileFiles};
use crate::on_device::{self, On};

/// An experiment file, read.
pub(crate) struct Loaded {
    /// The file, as it is.
    pub(crate) text: String,
    /// The file with its settings changed, as data.
    pub(crate) resolved: serde_json::Value,
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
    /// The table of published results that it names, if it does.
    pub(crate) reference: Option<CsvTable>,
}

/// An experiment and what its points measured.
pub(crate) struct Finished {
    /// The file, as it is.
    pub(crate) text: String,
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
    pub(crate) results: Vec<PointResult>,
    /// Its matrix of interference, if it has one.
    pub(crate) matrix: Option<Matrix>,
}

/// What every command that runs points is told.
#[derive(clap::Args)]
pub(crate) struct Work {
    /// Seed of all randomness; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Worker threads; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Work {
    /// Threads of a pool; 0: one per core.
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

/// How to run.
pub(crate) struct Settings<'a> {
    pub(crate) seed: u64,
    /// Threads of the pool; 0: one per core.
    pub(crate) threads: usize,
    pub(crate) quiet: bool,
    /// Directory that profiles named by path are relative to.
    pub(crate) base: Option<&'a Path>,
    pub(crate) conditions: &'a Conditions,
    /// What there is to say of an experiment as soon as its points are run.
    pub(crate) on_figure: &'a (dyn Fn(&Experiment, &[PointResult]) -> Option<String> + Sync),
}

/// Which points of which experiment are still to be run.
struct Tally {
    /// Of each point, its experiment.
    experiment_of: Vec<usize>,
    experiments: Mutex<Vec<SoFar>>,
}

/// What there is of an experiment.
struct SoFar {
    /// The number of its points.
    points: usize,
    /// Results by the index of their points.
    results: Vec<(usize, PointResult)>,
}

impl SoFar {
    const fn nothing_of(points: usize) -> Self {
        Self {
            points,
            results: Vec::new(),
        }
    }
}

impl Tally {
    fn of(loaded: &[Loaded]) -> Self {
        let points = loaded.iter().map(|one| one.points.len());
        let of_each = points.clone().enumerate();
        Self {
            experiment_of: of_each.flat_map(|(n, many)| repeat_n(n, many)).collect(),
            experiments: Mutex::new(points.map(SoFar::nothing_of).collect()),
        }
    }

    /// Adds the result of a point; if it is the last of its experiment, gives the
    /// experiment and its results in order.
    fn add(&self, index: usize, result: &PointResult) -> Option<(usize, Vec<PointResult>)> {
        let experiment = *self.experiment_of.get(index)?;
        // A panic elsewhere ends the run anyway.
        let mut experiments = self
            .experiments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let so_far = experiments.get_mut(experiment)?;
        so_far.results.push((index, result.metrics_only()));
        if so_far.results.len() < so_far.points {
            return None;
        }
        let mut results = std::mem::take(&mut so_far.results);
        results.sort_by_key(|(index, _)| *index);
        let results = results.into_iter().map(|(_, result)| result).collect();
        Some((experiment, results))
    }
}

/// Reads an experiment, with the settings for `--quick` if asked.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn load(
    file: &str,
    text: &str,
    overrides: &[Override],
    quick: bool,
) -> Result<Loaded, Failure> {
    let quick = if quick {
        let plain = Experiment::parse(file, text, &[], None).map_err(Failure::input)?;
        plain.quick
    } else {
        Quick::default()
    };
    let all = [&quick.set, overrides].concat();
    let mut experiment = Experiment::parse(file, text, &all, None).map_err(Failure::input)?;
    // `axis.values`, or `axis.0.values` of several axes.
    let sets_axis = |key: &str| key.starts_with("axis.") && key.ends_with(".values");
    if all.iter().any(|set| sets_axis(&set.key())) {
        // Published interference is a mean over all values of the axis.
        for pair in &mut experiment.interference {
            pair.published = None;
        }
        // So are statements about it.
        let is_mean = |measured: &Measured| matches!(measured, Measured::Interference { .. });
        let checks = &mut experiment.checks;
        checks.retain(|check| !check.value.measured().into_iter().any(is_mean));
    }
    let mut points = run::points(file, text, &all).map_err(Failure::input)?;
    let reference = reference(file, &experiment)?;
    experiment.series.retain(|series| quick.runs(&series.name));
    points.retain(|point| quick.runs(point.series()));
    let document = Document::parse(file, text, &all).map_err(Failure::input)?;
    Ok(Loaded {
        text: text.to_owned(),
        resolved: document.to_json(),
        experiment,
        points,
        reference,
    })
}

/// Reads the table of published results that an experiment names, relative to its file.
fn reference(file: &str, experiment: &Experiment) -> Result<Option<CsvTable>, Failure> {
    let Some(reference) = &experiment.reference else {
        return Ok(None);
    };
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let path = directory.join(&reference.file);
    let text = files::read_bounded(&path).map_err(|error| {
        let path = path.display();
        Failure::input(anyhow::anyhow!("{file}: reference: {path}: {error}"))
    })?;
    let table = reference.read(&text, experiment).map_err(Failure::input)?;
    Ok(Some(table))
}

/// The published results that experiments are compared with: the tables that are built
/// in, and those that the experiments name.
///
/// # Errors
/// A table is malformed.
pub(crate) fn references(loaded: &[Loaded]) -> Result<References, Failure> {
    let mut references = References::builtin().map_err(Failure::input)?;
    for one in loaded {
        if let (Some(said), Some(table)) = (&one.experiment.reference, &one.reference) {
            references = references.with_table(&said.file, table.clone());
        }
    }
    Ok(references)
}

/// Checks that every point can be run. Profiles are relative to `base`.
///
/// # Errors
/// The first that cannot.
pub(crate) fn check(loaded: &[Loaded], base: Option<&Path>) -> Result<(), Failure> {
    let profiles = ProfileFiles { base };
    for point in loaded.iter().flat_map(|one| &one.points) {
        point.check(&profiles).map_err(Failure::input)?;
    }
    Ok(())
}

/// Runs experiments. The flag says whether the run was interrupted: then some
/// results are missing.
///
/// # Errors
/// A point cannot be run.
pub(crate) fn run(
    loaded: Vec<Loaded>,
    settings: &Settings<'_>,
) -> Result<(Vec<Finished>, bool), Failure> {
    let profiles = ProfileFiles {
        base: settings.base,
    };
    let all: Vec<Point> = loaded
        .iter()
        .flat_map(|one| one.points.iter().cloned())
        .collect();
    let interrupted = console::interruptible("the points that run")?;

    let bar = console::progress(all.len() as u64, settings.quiet);
    let tally = Tally::of(&loaded);
    let on_point = |index: usize, result: &PointResult| {
        bar.set_message(format!("{} {}", result.series, result.x.text));
        bar.inc(1);
        if let Some((experiment, results)) = tally.add(index, result) {
            let line = (settings.on_figure)(&loaded[experiment].experiment, &results);
            if let Some(line) = line.filter(|_| !settings.quiet) {
                bar.suspend(|| eprintln!("{line}"));
            }
        }
    };
    let options = RunOptions {
        conditions: settings.conditions,
        seed: settings.seed,
        profiles: &profiles,
        on_point: &on_point,
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()
        .map_err(Failure::environment)?;
    let results = pool
        .install(|| run::run(&all, &options))
        .map_err(Failure::input)?;
    let silent = RunOptions {
        on_point: &|_, _| {},
        ..options
    };
    let explanations: Vec<Vec<Explanation>> = loaded
        .iter()
        .map(|one| pool.install(|| matrix::explain(&one.points, &silent)))
        .collect::<Result<_, _>>()
        .map_err(Failure::input)?;
    bar.finish_and_clear();
    let finished = finished(loaded, explanations, results);
    Ok((finished, interrupted.load(Ordering::Relaxed)))
}

/// Experiments with what their points measured; `None` stands for one that was not run.
fn finished(
    loaded: Vec<Loaded>,
    explanations: Vec<Vec<Explanation>>,
    results: Vec<Option<PointResult>>,
) -> Vec<Finished> {
    let mut results = results.into_iter();
    let loaded = loaded.into_iter().zip(explanations);
    loaded
        .map(|(one, explanations)| {
            let Loaded {
                text,
                resolved: _,
                experiment,
                points,
                reference: _,
            } = one;
            let results: Vec<_> = results.by_ref().take(points.len()).flatten().collect();
            let matrix = Matrix::of(&experiment, &results, &explanations);
            Finished {
                text,
                experiment,
                points,
                results,
                matrix,
            }
        })
        .collect()
}

/// A run in real time.
pub(crate) struct InRealTime {
    pub(crate) finished: Vec<Finished>,
    pub(crate) is_interrupted: bool,
    /// What failed on the device, after which no point was run.
    pub(crate) failure: Option<String>,
}

/// Runs experiments in real time, point after point.
///
/// # Errors
/// A point cannot be run.
pub(crate) fn run_in_real_time(
    loaded: Vec<Loaded>,
    settings: &Settings<'_>,
    on: &mut On,
) -> Result<InRealTime, Failure> {
    let profiles = ProfileFiles {
        base: settings.base,
    };
    let interrupt = console::interruptible("the jobs that run; their point is left out")?;
    let options = RunOptions {
        conditions: settings.conditions,
        seed: settings.seed,
        profiles: &profiles,
        on_point: &|_, _| {},
        interrupted: &|| false,
    };
    let all: Vec<Point> = loaded
        .iter()
        .flat_map(|one| one.points.iter().cloned())
        .collect();
    let progress = console::Points::new(all.len(), settings.quiet);
    let mut results: Vec<Option<PointResult>> = Vec::with_capacity(all.len());
    let mut failure = None;
    let mut runner = on.runner(&interrupt);
    for (index, point) in all.iter().enumerate() {
        let Some(runner) = &mut runner else { break };
        let left = on_device::longest(&all[index..]);
        progress.begins(&format!("{} {}", point.series(), point.x().text), left);
        match runner.run(point, &options) {
            Ok(result) => results.push(Some(result)),
            Err(RealError::Interrupted) => break,
            Err(RealError::Device(what)) => {
                failure = Some(what);
                break;
            }
            Err(RealError::Unfit(error)) => return Err(Failure::input(error)),
        }
        progress.ended();
    }
    progress.clear();
    results.resize_with(all.len(), || None);
    // Explanations come from traces, which real time does not have.
    let explanations = vec![Vec::new(); loaded.len()];
    Ok(InRealTime {
        finished: finished(loaded, explanations, results),
        is_interrupted: interrupt.load(Ordering::Relaxed),
        failure,
    })
}
