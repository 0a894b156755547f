//! Jobs that went on when others of their phase had ended: their numbers are in part those of a
//! drive without these.

use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_figures::table::time;

use crate::experiment::Experiment;
use crate::idle::place;
use crate::run::{JobMeasured, PointResult};

/// The least share of a job's time without another that is worth a sentence.
const LEAST_SHARE: f64 = 0.05;

/// What of the time of a job others missed.
#[derive(Clone, Copy)]
struct Missed {
    /// From when the first of them had ended to its own end.
    without: Nanos,
    /// The time in which it was measured.
    of: Nanos,
}

impl Missed {
    fn share(&self) -> f64 {
        self.without.0 as f64 / self.of.0.max(1) as f64
    }
}

/// Series, job, and the others that had ended.
type Which = (String, String, Vec<String>);

/// Of each job of a result that went on well after others of its phase: the share of its time,
/// and these others.
#[must_use]
pub fn alone(
    experiment: &Experiment,
    result: &PointResult,
) -> BTreeMap<String, (f64, Vec<String>)> {
    let each = of_result(experiment, result).into_iter();
    each.map(|(job, others, missed)| (job, (missed.share(), others)))
        .collect()
}

/// The jobs of a result that others did not last as long as, in the order of its phases.
fn of_result(experiment: &Experiment, result: &PointResult) -> Vec<(String, Vec<String>, Missed)> {
    let mut series = experiment.series.iter();
    let series = series.find(|of| of.name == result.series);
    let phases = series.map_or(&[][..], |of| &of.phases);
    let of_phase = |phase: &Vec<String>| {
        let is_of = |job: &&JobMeasured| phase.contains(&job.name);
        let jobs: Vec<&JobMeasured> = result.jobs.iter().filter(is_of).collect();
        let each = jobs.iter().filter_map(|job| {
            let (others, missed) = missed(job, &jobs)?;
            Some((job.name.clone(), others, missed))
        });
        each.collect::<Vec<_>>()
    };
    phases.iter().flat_map(of_phase).collect()
}

/// A sentence for each job of a series that others of its phase did not last as long as.
pub(crate) fn warnings(experiment: &Experiment, results: &[PointResult]) -> Vec<String> {
    let mut found: BTreeMap<Which, Vec<(String, Missed)>> = BTreeMap::new();
    let mut order: Vec<Which> = Vec::new();
    for result in results {
        for (job, others, missed) in of_result(experiment, result) {
            let which = (result.series.clone(), job, others);
            let values = found.entry(which.clone()).or_insert_with(|| {
                order.push(which);
                Vec::new()
            });
            values.push((result.x.text.clone(), missed));
        }
    }
    let axis = &experiment.axis.name;
    let sentence = |which: &Which| Some(sentence(which, found.get(which)?, axis));
    order.iter().filter_map(sentence).collect()
}

/// The others of its phase that had ended well before a job, and how long before.
fn missed(job: &JobMeasured, phase: &[&JobMeasured]) -> Option<(Vec<String>, Missed)> {
    let (from, to) = job.detail.measured?;
    let until = |other: &JobMeasured| {
        let (_, ended) = other.detail.measured?;
        let missed = Missed {
            without: to.saturating_sub(ended.max(from)),
            of: to.saturating_sub(from),
        };
        (missed.share() >= LEAST_SHARE).then_some(missed)
    };
    let gone = phase.iter().filter_map(|of| Some((&of.name, until(of)?)));
    let gone: Vec<_> = gone.filter(|(name, _)| **name != job.name).collect();
    let longest = gone.iter().max_by_key(|(_, missed)| missed.without)?.1;
    let names = gone.iter().map(|(name, _)| (*name).clone());
    Some((names.collect(), longest))
}

fn sentence((series, job, others): &Which, values: &[(String, Missed)], axis: &str) -> String {
    let shown: Vec<&str> = values.iter().map(|(x, _)| x.as_str()).collect();
    let place = place((series, job), axis, &shown);
    let worst = values.iter().map(|(_, missed)| missed);
    let worst = worst.max_by(|a, b| a.share().total_cmp(&b.share()));
    let (without, of) = worst.map_or((Nanos::ZERO, Nanos::ZERO), |of| (of.without, of.of));
    let most = if values.len() > 1 { "up to " } else { "" };
    let (without, of) = (time(without.0), time(of.0));
    let others: Vec<String> = others.iter().map(|name| format!("\"{name}\"")).collect();
    let others = others.join(", ");
    format!("{place}: {most}the last {without} of {of} were without {others}, which had ended")
}
