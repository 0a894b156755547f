//! What latencies leave out: operations that would have been issued while others stalled, and
//! operations that were due and never issued.

use zonelab_figures::table::{number, time};
use zonelab_host::workload::Stop;

use crate::experiment::{Experiment, JobTemplate, WorkTemplate};
use crate::idle::plural;
use crate::notices::Notice;
use crate::run::{JobMeasured, PointResult};

/// The least share of a job's time in stalls, or behind its arrivals, that is worth a sentence.
const LEAST_SHARE: f64 = 0.05;

/// The least difference between both forms of throughput that is worth a sentence.
const LEAST_DIFFERENCE: f64 = 0.1;

/// What is to be said of the latencies of the jobs of a point.
pub(crate) fn of_point(experiment: &Experiment, result: &PointResult) -> Vec<Notice> {
    let notices = |job: &JobMeasured| {
        let notice = |(about, size, text): Said| Notice::of((result, job), about, (size, text));
        of_job(experiment, job)
            .into_iter()
            .map(notice)
            .collect::<Vec<_>>()
    };
    result.jobs.iter().flat_map(notices).collect()
}

/// What is to be said of the latencies of one job.
#[must_use]
pub fn of_job(experiment: &Experiment, job: &JobMeasured) -> Vec<Said> {
    let template = experiment.job_of_result(&job.name);
    let said = [
        stalls(job),
        experiment.judges_samples().then(|| sampled(job)).flatten(),
        never_issued(job),
        uncertain(job),
        experiment
            .source
            .is_empty()
            .then(|| uncollected(job))
            .flatten(),
        template.and_then(|of| late(job, of)),
        template.and_then(|of| exhausted(job, of)),
    ];
    said.into_iter().flatten().collect()
}

/// What it is about, its size, and the words.
pub type Said = (&'static str, f64, String);

/// A job whose figures are not as well known as they were to be.
fn uncertain(job: &JobMeasured) -> Option<Said> {
    let text = "ended before its figures were as well known as its confidence asks for".to_owned();
    let is_so = job.detail.is_uncertain;
    is_so.then_some(("uncertain", 0.0, text))
}

/// Writes through a translation layer that had nothing to move yet.
fn uncollected(job: &JobMeasured) -> Option<Said> {
    let metric = |name| job.metrics.get(name);
    let amplification = metric("ftl_write_amp")?;
    let text = format!(
        "ftl_write_amp {} says nothing yet: the collector of the translation layer had emptied no \
         zone (a longer run fills its spare zones)",
        number(amplification)
    );
    (metric("ftl_collected_zones")? < 1.0).then_some(("uncollected", 0.0, text))
}

/// A job whose samples say something else than its count.
fn sampled(job: &JobMeasured) -> Option<Said> {
    let (sampled, counted) = (
        job.metrics.get("kiops")?,
        job.metrics.get("kiops_by_count")?,
    );
    let off = (sampled / counted - 1.0).abs();
    let text = format!(
        "kiops {} is the mean of those samples that saw an operation, summed over threads; by \
         count it is {} (kiops_by_count)",
        number(sampled),
        number(counted)
    );
    (off > LEAST_DIFFERENCE).then_some(("samples", off, text))
}

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
