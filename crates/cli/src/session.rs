//! Running experiments: their points in one pool, with progress, until done or
//! interrupted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_config::Override;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::run::{self, Point, PointResult, RunOptions};

use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::ProfileFiles;

/// An experiment file, read.
pub(crate) struct Loaded {
    /// The file, as it is.
    pub(crate) text: String,
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
}

/// An experiment and what its points measured.
pub(crate) struct Finished {
    /// The file, as it is.
    pub(crate) text: String,
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
    pub(crate) results: Vec<PointResult>,
}

/// How to run.
pub(crate) struct Settings<'a> {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) quiet: bool,
    /// Directory that profiles named by path are relative to.
    pub(crate) base: Option<&'a Path>,
    pub(crate) conditions: &'a Conditions,
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
    let mut all = Vec::new();
    if quick {
        let plain = Experiment::parse(file, text, &[], None).map_err(Failure::input)?;
        all.extend(plain.quick);
    }
    all.extend_from_slice(overrides);
    let mut experiment = Experiment::parse(file, text, &all, None).map_err(Failure::input)?;
    if all.iter().any(|set| set.key() == "axis.values") {
        // Published interference is a mean over all values of the axis.
        for pair in &mut experiment.interference {
            pair.published = None;
        }
    }
    let points = run::points(file, text, &all).map_err(Failure::input)?;
    Ok(Loaded {
        text: text.to_owned(),
        experiment,
        points,
    })
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
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second interruption does not wait for the points that are being run.
    let handler = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        eprintln!("zonelab: interrupted; finishing the points that run (again to stop at once)");
    });
    handler.map_err(Failure::environment)?;

    let bar = console::progress(all.len() as u64, settings.quiet);
    let on_point = |result: &PointResult| {
        bar.set_message(format!("{} {}", result.series, result.x.text));
        bar.inc(1);
    };
    let options = RunOptions {
        conditions: settings.conditions,
        seed: settings.seed,
        profiles: &profiles,
        on_point: &on_point,
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads.unwrap_or(0))
        .build()
        .map_err(Failure::environment)?;
    let results = pool
        .install(|| run::run(&all, &options))
        .map_err(Failure::input)?;
    bar.finish_and_clear();

    let mut results = results.into_iter();
    let finished = loaded
        .into_iter()
        .map(|one| {
            let Loaded {
                text,
                experiment,
                points,
            } = one;
            let results = results.by_ref().take(points.len()).flatten().collect();
            Finished {
                text,
                experiment,
                points,
                results,
            }
        })
        .collect();
    Ok((finished, interrupted.load(Ordering::Relaxed)))
}
