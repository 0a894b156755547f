//! Jobs that went on when others of their phase had ended: their numbers are in part those of a
//! drive without these.

use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_figures::table::time;

use crate::experiment::{Experiment, MatrixSpec};
use crate::notices::Notice;
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

/// The jobs of a point that others of their phase did not last as long as.
pub(crate) fn of_point(experiment: &Experiment, result: &PointResult) -> Vec<Notice> {
    let notice = |(name, others, missed): (String, Vec<String>, Missed)| {
        // What disturbs in a matrix is not what is measured there.
        let matrix = experiment
            .matrix
            .iter()
            .flat_map(|matrix| &matrix.background);
        if matrix
            .into_iter()
            .any(|of| MatrixSpec::background_job(of) == name)
        {
            return None;
        }
        let job = result.jobs.iter().find(|job| job.name == name)?;
        let others: Vec<String> = others.iter().map(|name| format!("\"{name}\"")).collect();
        let others = others.join(", ");
        let (without, of) = (time(missed.without.0), time(missed.of.0));
        let text = format!("the last {without} of {of} were without {others}, which had ended");
        Some(Notice::of((result, job), others, (missed.share(), text)))
    };
    of_result(experiment, result)
        .into_iter()
        .filter_map(notice)
        .collect()
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
