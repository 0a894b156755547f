//! Running experiments.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use pyo3::types::PyString;
use zonelab_config::Override;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::matrix::{self, Explanation, Matrix};
use zonelab_lab::run::{self, Point, PointResult, Profiles, RunError, RunOptions};
use zonelab_lab::session::{self, Files, Loaded, ProfileFiles, Selected};
use zonelab_ssd::record::{RecordLimits, SlowestOf};

use crate::errors::{self, OrRaise as _};
use crate::experiment::{Changes, Experiment};
use crate::interrupt::{Watch, Workers};
use crate::policies::{Policies, Raised};
use crate::result::{Finished, Results, Told};

/// The slowest commands that the summary of a trace has.
const SLOWEST: usize = 10;
/// Most records of each kind that a trace keeps, as of `--trace-limit`.
const TRACE_LIMIT: usize = 200_000;

/// Why published values are shown and not judged.
const ALTERED: &str = "settings or conditions differ from the file's";

/// Runs an experiment and gives what it measured.
///
/// `experiment`, `profile` and `set` are those of `Experiment`. The same `seed` gives the
/// same results, whatever `threads` is; without it there is one for each core. `repeats` says how
/// often each point runs, with seeds of its own. `trace` names points to trace, as
/// `"SERIES,X"`; `True` traces all. `progress` is called with the number of runs that are
/// done, and of all. `policies` makes what decides in place of profiles and experiments.
#[pyfunction]
#[pyo3(name = "run", signature = (
    experiment, *, profile = None, set = None, seed = 1, repeats = None, threads = None,
    quick = false, trace = None, progress = None, policies = None
))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn run_experiment(
    py: Python<'_>,
    experiment: &Bound<'_, PyAny>,
    profile: Option<&Bound<'_, PyAny>>,
    set: Option<&Bound<'_, PyAny>>,
    seed: u64,
    repeats: Option<u32>,
    threads: Option<usize>,
    quick: bool,
    trace: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
    policies: Option<&Bound<'_, Policies>>,
) -> PyResult<Results> {
    let changes = Changes {
        profile,
        set,
        repeats,
        quick,
    };
    let mut experiment = Experiment::from_any(experiment, changes)?;
    if let Some(trace) = trace {
        mark(&mut experiment.loaded.points, trace)?;
    }
    let told = Told {
        seed,
        shown: (experiment.is_altered() || policies.is_some()).then_some(ALTERED),
        is_quick: experiment.is_quick(),
        is_whole: false,
        skipped: Vec::new(),
    };
    let loaded = vec![experiment.loaded.clone()];
    let workers = workers(&loaded, threads, progress)?;
    let decided = policies.map_or_else(Decided::default, |policies| {
        let raised = Raised::default();
        Decided {
            conditions: Conditions {
                policies: policies.get().makers(py, &raised),
                ..Conditions::default()
            },
            raised,
        }
    });
    let under = (&experiment.drives() as &dyn Profiles, &decided);
    let ran = execute(py, loaded, under, seed, workers)?;
    Results::of(ran, told)
}

/// Runs built-in experiments and compares them with what was published.
///
/// `what` is ids such as `"C10a"` and letters of papers such as `"C"`; without it, all.
#[pyfunction]
#[pyo3(signature = (
    what = None, *, quick = false, seed = 1, repeats = None, threads = None, progress = None
))]
pub(crate) fn reproduce(
    py: Python<'_>,
    what: Option<&Bound<'_, PyAny>>,
    quick: bool,
    seed: u64,
    repeats: Option<u32>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let words: Vec<String> = match what {
        None => Vec::new(),
        Some(word) if word.is_instance_of::<PyString>() => vec![word.extract()?],
        Some(words) => words
            .try_iter()?
            .map(|word| word?.extract())
            .collect::<PyResult<_>>()?,
    };
    let repeats = repeats.map(|repeats| Override::parse(&format!("repeats={repeats}")));
    let repeats = repeats.transpose().map_err(errors::usage)?;
    let repeats: Vec<Override> = repeats.into_iter().collect();
    let files = Files::default();
    let Selected {
        is_all,
        loaded,
        skipped,
        ..
    } = session::selected(&files, &words, &repeats, quick).or_raise()?;
    let told = Told {
        seed,
        shown: None,
        is_quick: quick,
        is_whole: is_all,
        skipped,
    };
    let workers = workers(&loaded, threads, progress)?;
    let drives = ProfileFiles {
        files: &files,
        base: None,
    };
    let under = (&drives as &dyn Profiles, &Decided::default());
    let ran = execute(py, loaded, under, seed, workers)?;
    Results::of(ran, told)
}

fn workers<'a, 'py>(
    loaded: &[Loaded],
    threads: Option<usize>,
    progress: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<Workers<'a, 'py>> {
    let threads = match threads {
        None => 0,
        Some(threads @ 1..=1024) => threads,
        Some(threads) => {
            return Err(errors::usage(format!("threads = {threads}: 1 to 1024")));
        }
    };
    Ok(Workers {
        threads,
        total: loaded
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.repeats() as usize)
            .sum(),
        progress,
    })
}

/// Who decides in the runs, and what they raised.
#[derive(Default)]
struct Decided {
    conditions: Conditions,
    raised: Raised,
}

/// Runs the points of experiments in one pool.
fn execute(
    py: Python<'_>,
    loaded: Vec<Loaded>,
    (drives, decided): (&dyn Profiles, &Decided),
    seed: u64,
    workers: Workers<'_, '_>,
) -> PyResult<Vec<Finished>> {
    // What can go wrong should do so before anything runs, not after.
    let references = session::references(&loaded).or_raise()?;
    for one in &loaded {
        references.check(&one.experiment).or_raise()?;
        let mut points = one.points.iter();
        points
            .try_for_each(|point| point.check(drives))
            .or_raise()?;
    }
    let all: Vec<Point> = loaded
        .iter()
        .flat_map(|one| one.points.iter().cloned())
        .collect();
    let work = |watch: &Watch| run_all(&loaded, &all, (drives, decided), seed, watch);
    let ran = workers.run(py, work)?;
    // What a policy raised, as it is; what it made of the run is of no interest.
    if let Some(error) = decided.raised.take() {
        return Err(error);
    }
    let (results, explanations) = ran.or_raise()?;
    let mut results = results.into_iter();
    let loaded = loaded.into_iter().zip(explanations);
    Ok(loaded
        .map(|(one, explanations)| {
            let of_one = results.by_ref().take(one.points.len());
            let results: Vec<PointResult> = of_one.flatten().collect();
            Finished {
                matrix: Matrix::of(&one.experiment, &results, &explanations),
                loaded: one,
                results,
            }
        })
        .collect())
}

type Ran = (Vec<Option<PointResult>>, Vec<Vec<Explanation>>);

fn run_all(
    loaded: &[Loaded],
    all: &[Point],
    (drives, decided): (&dyn Profiles, &Decided),
    seed: u64,
    watch: &Watch,
) -> Result<Ran, RunError> {
    let on_run = |_: &Point| {
        watch.done.fetch_add(1, Ordering::Relaxed);
    };
    let is_left = || watch.is_left() || decided.raised.is_some();
    let options = RunOptions {
        conditions: &decided.conditions,
        seed,
        profiles: drives,
        on_point: &|_, _| {},
        interrupted: &|| false,
        abandoned: &is_left,
    };
    let results = run::run_repeated(all, &options, &on_run)?;
    let explanations = loaded
        .iter()
        .map(|one| matrix::explain(&one.points, &options));
    Ok((results, explanations.collect::<Result<_, _>>()?))
}

/// Marks the points that are to be traced.
fn mark(points: &mut [Point], trace: &Bound<'_, PyAny>) -> PyResult<()> {
    let limits = RecordLimits {
        slowest: SlowestOf::both(SLOWEST),
        ..RecordLimits::everything(TRACE_LIMIT)
    };
    if let Ok(all) = trace.extract::<bool>() {
        let chosen = points.iter_mut().filter(|_| all);
        chosen.for_each(|point| point.trace(limits));
        return Ok(());
    }
    let words: Vec<String> = match trace.cast::<PyString>() {
        Ok(word) => vec![word.to_str()?.to_owned()],
        Err(_) => trace
            .try_iter()?
            .map(|word| word?.extract())
            .collect::<PyResult<_>>()?,
    };
    let name = |point: &Point| format!("{},{}", point.series(), point.x().text);
    for word in words {
        let is_it = |point: &Point| name(point) == word || point.series() == word;
        if !points.iter().any(is_it) {
            let names: Vec<_> = points
                .iter()
                .map(|point| format!("  {}", name(point)))
                .collect();
            let names = names.join("\n");
            return Err(errors::usage(format!(
                "there is no point \"{word}\"; the points are\n{names}"
            )));
        }
        let chosen = points.iter_mut().filter(|point| is_it(point));
        chosen.for_each(|point| point.trace(limits));
    }
    Ok(())
}
