//! What latencies leave out: operations that would have been issued while others stalled, and
//! operations that were due and never issued.

use zonelab_figures::table::time;
use zonelab_host::workload::Stop;

use crate::experiment::{Experiment, JobTemplate, WorkTemplate};
use crate::idle::plural;
use crate::notices::Notice;
use crate::run::{JobMeasured, PointResult};

/// The least share of a job's time in stalls, or behind its arrivals, that is worth a sentence.
const LEAST_SHARE: f64 = 0.05;

/// What is to be said of the latencies of the jobs of a point.
pub(crate) fn of_point(experiment: &Experiment, result: &PointResult) -> Vec<Notice> {
    let of_job = |job: &JobMeasured| {
        let template = experiment.job_of_result(&job.name);
        let said = [
            stalls(job),
            never_issued(job),
            template.and_then(|of| late(job, of)),
            template.and_then(|of| exhausted(job, of)),
        ];
        let notice = |(about, size, text): Said| Notice::of((result, job), about, (size, text));
        said.into_iter().flatten().map(notice).collect::<Vec<_>>()
    };
    result.jobs.iter().flat_map(of_job).collect()
}

/// What it is about, its size, and the words.
type Said = (&'static str, f64, String);

/// A job that issues nothing while it waits, and waited long.
fn stalls(job: &JobMeasured) -> Option<Said> {
    let metric = |name| job.metrics.get(name);
    let share = metric("blocked_share").filter(|share| *share >= LEAST_SHARE)?;
    let us = |name| Some(time((metric(name)? * 1e3) as u64));
    let (by_count, by_time) = (us("lat_p95_us")?, us("lat_by_time_p95_us")?);
    let text = format!(
        "{:.0} % of the time of its operations passed in {} of more than ten times the mean, during \
         which it issued no others: P95 is {by_count} by operations and {by_time} by time (arrival = \"poisson\" \
         with a rate counts those that would have waited)",
        share * 100.0,
        plural(job.kind),
    );
    Some(("stalls", share, text))
}

/// A job whose arrivals were cut off.
fn never_issued(job: &JobMeasured) -> Option<Said> {
    let (behind, (from, to)) = (job.detail.behind, job.detail.measured?);
    let share = behind.0 as f64 / to.saturating_sub(from).0.max(1) as f64;
    let text = format!(
        "the last {} of its arrivals were never issued, since the run had ended: how long they \
         would have waited is in no latency",
        time(behind.0)
    );
    (share >= LEAST_SHARE).then_some(("never issued", share, text))
}

/// A job that had much to do when its time was over.
fn late(job: &JobMeasured, template: &JobTemplate) -> Option<Said> {
    let runtime = template
        .stop
        .runtime
        .filter(|_| template.arrival.is_open())?;
    let (from, to) = job.detail.measured?;
    let late = to.saturating_sub(from).saturating_sub(runtime);
    let share = late.0 as f64 / runtime.0.max(1) as f64;
    let text = format!(
        "{} after its time of {} it had issued all that was due: unless something held it up in \
         the end, the drive does not keep up with the rate, and latencies grow with the run",
        time(late.0),
        time(runtime.0)
    );
    (share >= LEAST_SHARE).then_some(("late", share, text))
}

/// A job whose zones were full before its time was over.
fn exhausted(job: &JobMeasured, template: &JobTemplate) -> Option<Said> {
    let Stop {
        runtime,
        bytes: None,
        operations: None,
        periods: None,
        confidence: None,
        ..
    } = template.stop
    else {
        return None;
    };
    let runtime = runtime.filter(|_| template.arrival.is_open())?;
    let is_write = matches!(template.work, WorkTemplate::Write { repeat: false, .. });
    let (from, to) = job.detail.measured.filter(|_| is_write)?;
    let missing = runtime.saturating_sub(to.saturating_sub(from));
    let share = missing.0 as f64 / runtime.0.max(1) as f64;
    let text = format!(
        "the last {} of its {} are missing: its zones were full, or the run had ended \
         (repeat = true begins again)",
        time(missing.0),
        time(runtime.0)
    );
    (share >= LEAST_SHARE).then_some(("exhausted", share, text))
}
