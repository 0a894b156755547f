//! Traces of the points of experiments ([`zonelab_trace`]), and why their slowest commands were
//! slow: a point is run again for that.

use zonelab_ssd::record::{CommandRecord, RecordLimits};
pub use zonelab_trace::{
    Contention, Explanation, Look, PointTrace, Question, Waits, alternatives, state_name,
};

use crate::run::{Point, RunError, RunOptions, run_point};

/// Explains the slowest commands of a point.
///
/// # Errors
/// The point cannot be run.
pub fn explain(
    point: &Point,
    question: &Question,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    let mut first = point.clone();
    first.trace(RecordLimits {
        slowest: question.slowest,
        ..RecordLimits::everything(1)
    });
    match run_point(&first, options)?.trace {
        Some(trace) => look_again(point, &trace, question, options),
        None => Ok(Vec::new()),
    }
}

/// Explains the slowest commands of a point that has been traced, by running it again.
///
/// # Errors
/// The point cannot be run.
pub fn look_again(
    point: &Point,
    first: &PointTrace,
    question: &Question,
    options: &RunOptions<'_>,
) -> Result<Vec<Explanation>, RunError> {
    let slowest = zonelab_trace::slowest_data(first);
    let commands: Vec<&CommandRecord> = slowest.take(question.slowest).collect();
    if commands.is_empty() {
        return Ok(Vec::new());
    }
    let mut again = point.clone();
    again.look(Look::at(&commands, question));
    let result = run_point(&again, options)?;
    let Some(trace) = result.trace else {
        return Ok(Vec::new());
    };
    Ok(trace.explanations(&commands))
}
