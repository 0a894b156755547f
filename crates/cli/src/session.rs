//! Running experiments: their points in one pool, with progress, until done or
//! interrupted.

use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use zonelab_host::stats::Latency;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::matrix::{self, Explanation, Matrix};
use zonelab_lab::published::References;
pub(crate) use zonelab_lab::results::Finished;
use zonelab_lab::run::{self, Point, PointResult, RealError, RunOptions};
pub(crate) use zonelab_lab::session::{Loaded, check, load, references};
use zonelab_lab::session::{left, plausible};

use crate::ahead::Ahead;
use crate::console;
use crate::exit::Failure;
use crate::files::ProfileFiles;
use crate::on_device::On;

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

    /// Threads that were asked for.
    pub(crate) const fn threads_asked(&self) -> Option<u16> {
        self.threads
    }

    /// Runs on so many threads.
    pub(crate) const fn set_threads(&mut self, threads: Option<u16>) {
        self.threads = threads;
    }
}

/// How to run.
pub(crate) struct Settings<'a> {
    pub(crate) seed: u64,
    /// Threads of the pool; 0: one per core.
    pub(crate) threads: usize,
    pub(crate) quiet: bool,
    /// Where profiles are found.
    pub(crate) profiles: ProfileFiles<'a>,
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

/// Looks at the published values of experiments before anything is run: says which of them
/// are not used, and gives that.
///
/// # Errors
/// Some cannot be, or contradict each other.
pub(crate) fn look_at(loaded: &[Loaded], references: &References) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for one in loaded {
        plausible(one, references).map_err(Failure::input)?;
        all.extend(left(one));
    }
    for what in &all {
        tell!("zonelab: warning: {what}");
    }
    Ok(all)
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
    let all: Vec<Point> = loaded
        .iter()
        .flat_map(|one| one.points.iter().cloned())
        .collect();
    let interrupted = console::interruptible("the points that run")?;

    let runs: u64 = all.iter().map(|point| u64::from(point.repeats())).sum();
    let bar = console::progress(runs, settings.quiet);
    let tally = Tally::of(&loaded);
    let on_run = |point: &Point| {
        bar.set_message(format!("{} {}", point.series(), point.x().text));
        bar.inc(1);
    };
    let on_point = |index: usize, result: &PointResult| {
        if let Some((experiment, results)) = tally.add(index, result) {
            let line = (settings.on_figure)(&loaded[experiment].experiment, &results);
            if let Some(line) = line.filter(|_| !settings.quiet) {
                bar.suspend(|| tell!("{line}"));
            }
        }
    };
    let options = RunOptions {
        conditions: settings.conditions,
        seed: settings.seed,
        profiles: &settings.profiles,
        on_point: &on_point,
        interrupted: &|| interrupted.load(Ordering::Relaxed),
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()
        .map_err(Failure::environment)?;
    let results = pool.install(|| run::run_repeated(&all, &options, &on_run))?;
    let silent = RunOptions {
        on_point: &|_, _| {},
        ..options
    };
    let explanations: Vec<Vec<Explanation>> = loaded
        .iter()
        .map(|one| pool.install(|| matrix::explain(&one.points, &silent)))
        .collect::<Result<_, _>>()?;
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
                is_own: _,
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

impl InRealTime {
    /// How late what was due was handled, over all points.
    pub(crate) fn lateness(&self) -> Latency {
        let mut all = Latency::new();
        let results = self.finished.iter().flat_map(|one| &one.results);
        let each = results.filter_map(|result| result.lateness.as_ref());
        each.for_each(|late| all.merge(late));
        all
    }
}

/// The runs of points in real time, in their order: which point, and its how manyth run.
///
/// One repeat of all points comes after the other: what changes about the host while they run
/// is not taken for a difference between points.
pub(crate) fn runs_of(points: &[Point]) -> Vec<(usize, u32)> {
    let most = points.iter().map(Point::repeats).max().unwrap_or(1);
    let runs = (0..most).flat_map(|repeat| (0..points.len()).map(move |index| (index, repeat)));
    runs.filter(|&(index, repeat)| repeat < points[index].repeats())
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
    let interrupt = console::interruptible("the jobs that run; their point is left out")?;
    let options = RunOptions {
        conditions: settings.conditions,
        seed: settings.seed,
        profiles: &settings.profiles,
        on_point: &|_, _| {},
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let all: Vec<Point> = loaded
        .iter()
        .flat_map(|one| one.points.iter().cloned())
        .collect();
    let runs = runs_of(&all);
    let points: Vec<&Point> = runs.iter().map(|&(index, _)| &all[index]).collect();
    let ahead = Ahead::of_each(&points, on.info().as_ref());
    let progress = console::Points::new(runs.len(), settings.quiet);
    let mut gathered: Vec<BTreeMap<u32, PointResult>> = vec![BTreeMap::new(); all.len()];
    let mut failure = None;
    let mut runner = on.runner(&interrupt);
    for (done, &(index, repeat)) in runs.iter().enumerate() {
        let Some(runner) = &mut runner else { break };
        let point = &all[index];
        let options = RunOptions {
            seed: run::repeat_seed(settings.seed, repeat),
            ..options
        };
        let left: Ahead = ahead[done..].iter().copied().sum();
        let left = left.words(&runner.prepared());
        progress.begins(&format!("{} {}", point.series(), point.x().text), &left);
        match runner.run(point, &options) {
            Ok(result) => {
                let kept = match repeat {
                    0 => result,
                    _ => result.of_later_repeat(),
                };
                gathered[index].insert(repeat, kept);
            }
            Err(RealError::Interrupted) => break,
            Err(RealError::Device(what)) => {
                failure = Some(what);
                break;
            }
            Err(RealError::Unfit(error)) => return Err(error.into()),
        }
        progress.ended();
    }
    progress.clear();
    if let Some(prepared) = runner.map(|runner| runner.prepared()) {
        on.has_prepared(prepared);
    }
    let results = gathered.into_iter().map(PointResult::of_repeats).collect();
    // Explanations come from traces, which real time does not have.
    let explanations = vec![Vec::new(); loaded.len()];
    Ok(InRealTime {
        finished: finished(loaded, explanations, results),
        is_interrupted: interrupt.load(Ordering::Relaxed),
        failure,
    })
}
