//! What is recorded of a point besides what it measures: a trace, or the lives of its slowest
//! commands.

use zonelab_ssd::counterfactual::WatchPlan;
use zonelab_ssd::record::{RecordLimits, SlowestOf};

use super::{Point, PointResult, RunError, RunOptions, ZONE_HISTORY_LIMIT, run_point};
use crate::trace::PointTrace;

/// Most records of each kind at a time of the lives of the slowest commands of a point that is
/// not traced: some 150 MB.
const LIVES: usize = 2_000_000;

impl Point {
    /// Asks for a trace of the point; its results stay the same.
    pub fn trace(&mut self, limits: RecordLimits) {
        let zone_changes = limits.zone_changes.max(ZONE_HISTORY_LIMIT);
        self.trace = Some(RecordLimits {
            zone_changes,
            ..limits
        });
    }

    /// Asks what so many of the slowest reads, writes and appends wait for; measurements stay the
    /// same.
    pub const fn explain_slowest(&mut self, most: usize) {
        self.slowest = most;
    }

    /// What is recorded while it runs.
    pub(super) fn records(&self) -> RecordLimits {
        let slowest = SlowestOf {
            data: self.slowest,
            management: 0,
        };
        match self.trace {
            Some(limits) if self.slowest == 0 => limits,
            Some(limits) => RecordLimits {
                slowest: SlowestOf {
                    data: limits.slowest.data.max(self.slowest),
                    ..limits.slowest
                },
                ..limits
            },
            None if self.slowest == 0 => RecordLimits::zones_only(ZONE_HISTORY_LIMIT),
            None => RecordLimits {
                zone_changes: ZONE_HISTORY_LIMIT,
                ..RecordLimits::lives(slowest, LIVES)
            },
        }
    }

    /// Lets the drive watch commands of a run that is known; results stay the same.
    pub(crate) fn watch(&mut self, plan: Option<WatchPlan>) {
        self.watch = plan;
    }

    /// The same without a trace.
    fn untraced(&self) -> Self {
        Self {
            trace: None,
            ..self.clone()
        }
    }

    /// The same with nothing but what is measured.
    pub(super) fn measured_only(&self) -> Self {
        Self {
            slowest: 0,
            ..self.untraced()
        }
    }
}

impl PointResult {
    /// Adds what was recorded.
    pub(super) fn add_record(
        &mut self,
        point: &Point,
        limits: RecordLimits,
        trace: impl FnOnce() -> PointTrace,
    ) {
        if limits.activity > 0 {
            let trace = trace();
            self.slowest = trace.explain();
            self.trace = point.trace.map(|_| Box::new(trace));
        }
    }
}

/// Runs a point once, and once more if what its slowest commands waited for is asked for and a
/// trace that is asked for as well did not keep it.
pub(super) fn run_first(point: &Point, options: &RunOptions<'_>) -> Result<PointResult, RunError> {
    let mut result = run_point(point, options)?;
    let is_missing = result.slowest.iter().any(|one| one.waits.is_none());
    if is_missing && point.trace.is_some() && point.slowest > 0 {
        result.slowest = run_point(&point.untraced(), options)?.slowest;
    }
    Ok(result)
}
