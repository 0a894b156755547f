//! Traces of the points of experiments ([`zonelab_trace`]), and why their slowest commands were
//! slow: a point may be run again for that.

use zonelab_ssd::counterfactual::WatchPlan;
use zonelab_ssd::record::RecordLimits;
pub use zonelab_trace::{
    Contention, Explanation, PointTrace, Question, Waits, alternatives, state_name,
};

use crate::run::{Point, RunError, RunOptions, run_point};

/// Most records of each kind at a time of what touches the lives of the slowest commands: some
/// 1.5 GB. These lives are nearly always a thousandth of that.
const RECORDS: usize = 20_000_000;

/// Explains the slowest commands of a point.
///
/// # Errors
/// The point cannot be run.
pub fn explain(
    point: &Point,
    question: &Question,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    let limits = RecordLimits::lives(question.slowest, RECORDS);
    let slowest = explained(point, &limits, None, options)?;
    otherwise(point, &limits, question, slowest, options)
}

/// Explains the slowest commands of a point that has been traced: from the trace, or if it does
/// not have all of their lives, by running the point again.
///
/// # Errors
/// The point cannot be run.
pub fn explain_traced(
    point: &Point,
    trace: &PointTrace,
    question: &Question,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    let limits = RecordLimits {
        from: trace.limits.from,
        until: trace.limits.until,
        ..RecordLimits::lives(question.slowest, RECORDS)
    };
    let mut slowest = trace.explain();
    let is_asked = trace.limits.slowest == question.slowest;
    if !is_asked || slowest.iter().any(|one| one.waits.is_none()) {
        slowest = explained(point, &limits, None, options)?;
    }
    otherwise(point, &limits, question, slowest, options)
}

/// Adds what the slowest commands would have taken, if that is asked.
fn otherwise(
    point: &Point,
    limits: &RecordLimits,
    question: &Question,
    slowest: Vec<Explanation>,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    match question.plan(&slowest) {
        Some(plan) => explained(point, limits, Some(plan), options),
        None => Ok(slowest),
    }
}

fn explained(
    point: &Point,
    limits: &RecordLimits,
    plan: Option<WatchPlan>,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    let mut again = point.clone();
    again.trace(*limits);
    again.watch(plan);
    let trace = run_point(&again, options)?.trace;
    Ok(trace.map_or_else(Vec::new, |trace| trace.explain()))
}
