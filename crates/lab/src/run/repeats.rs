//! Repeats: their seeds, running them, and the means of what they measured.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use zonelab_host::Rng;

use super::recording::run_first;
use super::{
    JobMeasured, Point, PointResult, RunError, RunOptions, Spread, name_hash, order, run_point,
};
use crate::metrics::Metrics;
use crate::statistics::Statistics;

/// The seed of a repeat of a run whose own seed is `seed`.
///
/// The first repeat (0) has that seed, so that a run that is not repeated and the first
/// of many are the same. Repeats of the same number have the same seed in all points and
/// series, so that their differences can be taken pair by pair.
#[must_use]
pub fn repeat_seed(seed: u64, repeat: u32) -> u64 {
    if repeat == 0 {
        return seed;
    }
    Rng::new(seed, name_hash(&["repeat", &repeat.to_string()])).next_u64()
}

/// Runs points in parallel on the current thread pool, each as often as its experiment
/// says. Results come in the order of `points`, with the means of the repeats; `None`
/// stands for a point of which nothing was run before an interruption.
/// [`RunOptions::on_point`] is called when all repeats of a point are done, `on_run` at
/// each of them.
///
/// # Errors
/// The first run, in the order of points and repeats, that was not possible.
pub fn run_repeated(
    points: &[Point],
    options: &RunOptions<'_>,
    on_run: &(dyn Fn(&Point) + Sync),
) -> Result<Vec<Option<PointResult>>, RunError> {
    let runs = points.iter().enumerate().flat_map(|(index, point)| {
        let repeats = point.experiment.repeats;
        (0..repeats).map(move |repeat| (index, repeat))
    });
    let runs: Vec<(usize, u32)> = runs.collect();
    let gathered: Vec<Mutex<Gathered>> = points.iter().map(|_| Mutex::default()).collect();
    let run = |run: usize| {
        let (index, repeat) = runs[run];
        if (options.interrupted)() || (options.abandoned)() {
            return None;
        }
        let point = &points[index];
        match run_repeat(point, options, repeat) {
            _ if (options.abandoned)() => None,
            Ok(result) => {
                on_run(point);
                // A panic elsewhere ends the run anyway.
                let of_point = gathered[index].lock();
                let mut of_point = of_point.unwrap_or_else(PoisonError::into_inner);
                if let Some(whole) = of_point.add(point, repeat, result) {
                    (options.on_point)(index, whole);
                }
                None
            }
            Err(error) => Some(error),
        }
    };
    let weight = |run: usize| points[runs[run].0].work();
    // In the order of points and repeats.
    let errors = order::longest_first(runs.len(), weight, run);
    if let Some(error) = errors.into_iter().flatten().next() {
        return Err(error);
    }
    let results = gathered.into_iter().map(|of_point| {
        let of_point = of_point.into_inner();
        of_point.unwrap_or_else(PoisonError::into_inner).finish()
    });
    Ok(results.collect())
}

/// Runs one repeat of a point. Only the first is traced, and only of the first more is
/// kept than what it measured.
fn run_repeat(
    point: &Point,
    options: &RunOptions<'_>,
    repeat: u32,
) -> Result<PointResult, RunError> {
    let own = RunOptions {
        seed: repeat_seed(options.seed, repeat),
        ..*options
    };
    if repeat > 0 {
        return run_point(&point.measured_only(), &own).map(PointResult::of_later_repeat);
    }
    run_first(point, &own)
}

/// What there is of a point.
#[derive(Default)]
struct Gathered {
    runs: BTreeMap<u32, PointResult>,
    whole: Option<PointResult>,
}

impl Gathered {
    /// Adds a repeat; the whole, if it is the last.
    fn add(&mut self, point: &Point, repeat: u32, result: PointResult) -> Option<&PointResult> {
        self.runs.insert(repeat, result);
        if self.runs.len() < point.experiment.repeats as usize {
            return None;
        }
        let runs = std::mem::take(&mut self.runs);
        self.whole = PointResult::of_repeats(runs);
        self.whole.as_ref()
    }

    /// The means of what was run.
    fn finish(self) -> Option<PointResult> {
        self.whole.or_else(|| PointResult::of_repeats(self.runs))
    }
}

impl Point {
    /// How often it runs.
    #[must_use]
    pub const fn repeats(&self) -> u32 {
        self.experiment.repeats
    }
}

impl PointResult {
    /// What is kept of a repeat that is not the first.
    #[must_use]
    pub fn of_later_repeat(self) -> Self {
        let kept = self.metrics_only();
        Self {
            lateness: self.lateness,
            failures: self.failures,
            ended_early: self.ended_early,
            faults_struck: self.faults_struck,
            ..kept
        }
    }

    /// The repeats of a point, by their numbers, in one: means of the metrics, and how they
    /// vary. What else there is is of the first, but that what went wrong in any of them
    /// is named. One alone stays as it is.
    #[must_use]
    pub fn of_repeats(runs: BTreeMap<u32, Self>) -> Option<Self> {
        let is_repeated = runs.len() > 1;
        let mut runs = runs.into_iter();
        let (first, mut whole) = runs.next()?;
        if !is_repeated {
            return Some(whole);
        }
        let mut spreads: Vec<Spread> = Vec::new();
        for job in &whole.jobs {
            let repeats = [(first, job.metrics.clone())].into();
            spreads.push(Spread {
                repeats,
                ..Spread::default()
            });
        }
        for (repeat, run) in runs {
            for job in run.jobs {
                let at = whole.jobs.iter().position(|of| of.name == job.name);
                let at = at.unwrap_or_else(|| {
                    // The first repeat had no such result, as of an operation of a
                    // workload that was not drawn.
                    whole.jobs.push(JobMeasured {
                        metrics: Metrics::default(),
                        detail: crate::detail::JobDetail::default(),
                        ..job.clone()
                    });
                    spreads.push(Spread::default());
                    spreads.len() - 1
                });
                spreads[at].repeats.insert(repeat, job.metrics);
            }
            let failures = run.failures.into_iter();
            let new = failures.filter(|failure| !whole.failures.contains(failure));
            let new: Vec<_> = new.collect();
            whole.failures.extend(new);
            let ended = run.ended_early.into_iter();
            let is_new =
                |of: &super::EndedEarly| whole.ended_early.iter().all(|at| at.job != of.job);
            let new: Vec<_> = ended.filter(is_new).collect();
            whole.ended_early.extend(new);
            for (all, struck) in whole.faults_struck.iter_mut().zip(run.faults_struck) {
                *all += struck;
            }
            if let (Some(all), Some(late)) = (&mut whole.lateness, run.lateness) {
                all.merge(&late);
            }
        }
        for (job, spread) in whole.jobs.iter_mut().zip(spreads) {
            job.metrics = means(&spread.repeats);
            job.spread = Some(Box::new(Spread {
                statistics: statistics(&spread.repeats),
                ..spread
            }));
        }
        Some(whole)
    }
}

/// By metric, over the repeats that measured it.
fn statistics(repeats: &BTreeMap<u32, Metrics>) -> BTreeMap<&'static str, Statistics> {
    let names: BTreeSet<&'static str> = repeats
        .values()
        .flat_map(|of| of.values.keys().copied())
        .collect();
    let of_metric = |name| {
        let values: Vec<f64> = repeats.values().filter_map(|of| of.get(name)).collect();
        Some((name, Statistics::of(&values)?))
    };
    names.into_iter().filter_map(of_metric).collect()
}

/// The means of metrics, and of the neighbours of percentiles.
fn means(repeats: &BTreeMap<u32, Metrics>) -> Metrics {
    let values = statistics(repeats).into_iter();
    let mut neighbours = BTreeMap::new();
    let all = repeats
        .values()
        .flat_map(|of| of.neighbours.keys().copied());
    for name in all.collect::<BTreeSet<&'static str>>() {
        let each = || repeats.values().filter_map(|of| of.neighbours.get(name));
        let low: Vec<f64> = each().map(|pair| pair.0).collect();
        let high: Vec<f64> = each().map(|pair| pair.1).collect();
        if let (Some(low), Some(high)) = (Statistics::of(&low), Statistics::of(&high)) {
            neighbours.insert(name, (low.mean, high.mean));
        }
    }
    Metrics {
        values: values.map(|(name, of)| (name, of.mean)).collect(),
        neighbours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_repeat_has_the_seed_of_the_run_and_the_others_seeds_of_their_own() {
        let seeds: BTreeSet<u64> = (0..1000).map(|repeat| repeat_seed(7, repeat)).collect();
        assert_eq!(seeds.len(), 1000);
        assert_eq!(repeat_seed(7, 0), 7);
        assert_ne!(repeat_seed(7, 1), repeat_seed(8, 1));
    }

    #[test]
    fn what_some_repeats_did_not_measure_is_a_mean_of_the_others() {
        let with = |values: &[(&'static str, f64)]| Metrics {
            values: values.iter().copied().collect(),
            neighbours: BTreeMap::new(),
        };
        let repeats = [
            (0, with(&[("kiops", 1.0), ("dlwa", 2.0)])),
            (1, with(&[("kiops", 3.0)])),
        ];
        let repeats = repeats.into();
        assert_eq!(means(&repeats), with(&[("kiops", 2.0), ("dlwa", 2.0)]));
        let of = statistics(&repeats);
        assert_eq!((of["kiops"].count, of["dlwa"].count), (2, 1));
        assert_eq!(of["dlwa"].half_width, None);
    }
}
