//! Jobs that prepare zones for longer than they do what they are named after: what runs beside
//! them runs beside writes.

use zonelab_figures::table::time;

use crate::experiment::{Experiment, WorkTemplate};
use crate::idle::plural;
use crate::notices::Notice;
use crate::run::{JobMeasured, PointResult};

/// The share of a job's time in preparation that is worth a sentence.
const LEAST_SHARE: f64 = 0.5;

/// The jobs of a point that mostly prepare, where others ran beside them.
pub(crate) fn of_point(experiment: &Experiment, result: &PointResult) -> Vec<Notice> {
    let of_job = |job: &JobMeasured| {
        let template = experiment.job_of_result(&job.name)?;
        let (WorkTemplate::Finish { fill } | WorkTemplate::Reset { fill, .. }) = &template.work
        else {
            return None;
        };
        // One with a rate waits as well: how long is not known.
        if fill.is_none() || template.rate.is_some() || template.threads > 1 {
            return None;
        }
        let metric = |name| job.metrics.get(name);
        let done_us = metric("ops")? * metric("lat_mean_us")?;
        let (from, to) = job.detail.measured?;
        let all_us = to.saturating_sub(from).as_us_f64();
        let share = 1.0 - done_us / all_us.max(1.0);
        let text = format!(
            "{:.0} % of its time it prepared zones (fill), and for {} in all did the {} that it \
             is about: what ran beside it ran beside writes",
            share * 100.0,
            time((done_us * 1e3) as u64),
            plural(job.kind),
        );
        (share > LEAST_SHARE).then(|| Notice::of((result, job), "preparing", (share, text)))
    };
    let series = experiment.series.iter();
    let mut series = series.filter(|of| of.name == result.series);
    let phases = series.next().map_or(&[][..], |of| &of.phases);
    let is_beside = |job: &&JobMeasured| {
        let mut phases = phases.iter();
        phases.any(|phase| phase.len() > 1 && phase.contains(&job.name))
    };
    let jobs = result.jobs.iter().filter(is_beside);
    jobs.filter_map(of_job).collect()
}
