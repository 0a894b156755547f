//! What latencies a job may have: fio's `max_latency` and `latency_target`.

use zonelab_device::Nanos;

use super::directed::Direction;
use super::steady::{Steadiness, SteadyGoal, Watch};

/// Bounds on the latencies of a job, from the decision to issue an operation to its
/// completion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyGoals {
    /// By [`Direction`]: a longer one ends the job with an error. Zero: none does.
    pub max: [Nanos; 3],
    /// The largest depth is looked for at which latencies are as short as this.
    pub target: Option<LatencyTarget>,
}

/// A search for the depth at which latencies keep to a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// The latency that is not to be exceeded.
    pub latency: Nanos,
    /// How long each depth is tried, above zero.
    pub window: Nanos,
    /// Operations in a hundred that must keep to it. Of 100, the first that does not
    /// lowers the depth.
    pub percent: f64,
    /// The job goes on when the depth is found, and adapts it; otherwise it ends.
    pub goes_on: bool,
}

/// A latency that was longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// The latency.
    pub latency: Nanos,
    /// The longest that there may be.
    pub limit: Nanos,
}

/// What a job has to do about a latency, or at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    GoOn,
    /// It begins to measure anew, at the depth that was found.
    Restart,
    /// It ends: the depth was found and measured.
    Done,
}

/// What a job does after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterOperation {
    /// It goes on.
    GoOn,
    /// It ends: it is steady.
    End,
    /// It ends with an error: the latency was too long.
    Fail,
}

/// The state of a search: fio's, which doubles the depth until it is too much, and
/// then bisects.
#[derive(Clone, Debug)]
struct Search {
    target: LatencyTarget,
    most: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable: u32,
    /// A depth was too much.
    has_failed: bool,
    /// Since when, and how many operations and failures there were since.
    since: Nanos,
    operations: u64,
    late: u64,
    /// What is in flight of another depth is waited for first.
    drains: bool,
    is_last: bool,
}

/// The bounds of a job at work.
#[derive(Clone, Debug)]
pub(super) struct Goals {
    max: [Nanos; 3],
    search: Option<Search>,
    too_late: Option<TooLate>,
    watch: Option<Watch>,
}

impl Goals {
    /// Those of a job that keeps at most `depth` operations in flight, and that ends when it is
    /// `steady`; `None`: it has none.
    pub(super) fn new(
        goals: &LatencyGoals,
        steady: Option<SteadyGoal>,
        depth: u32,
    ) -> Option<Box<Self>> {
        let search = goals.target.map(|target| Search {
            target,
            most: depth,
            depth: 1,
            low: 1,
            high: depth,
            stable: 0,
            has_failed: false,
            since: Nanos::ZERO,
            operations: 0,
            late: 0,
            drains: false,
            is_last: false,
        });
        let has_max = goals.max.iter().any(|max| *max > Nanos::ZERO);
        (search.is_some() || has_max || steady.is_some()).then(|| {
            Box::new(Self {
                max: goals.max,
                search,
                too_late: None,
                watch: steady.map(Watch::new),
            })
        })
    }

    /// The job begins.
    pub(super) fn start(&mut self, now: Nanos) {
        if let Some(search) = &mut self.search {
            search.since = now;
        }
        if let Some(watch) = &mut self.watch {
            watch.start(now);
        }
    }

    /// How steady the job became, if it was to become so.
    pub(super) fn steadiness(&self) -> Option<Steadiness> {
        self.watch.as_ref().map(Watch::result)
    }

    /// The latency that ended the job, if one did.
    pub(super) const fn too_late(&self) -> Option<TooLate> {
        self.too_late
    }

    /// The depth that the search has come to.
    pub(super) fn depth(&self) -> Option<u32> {
        self.search.as_ref().map(|search| search.depth)
    }

    /// Whether nothing may be issued while so many operations are in flight.
    pub(super) fn holds(&mut self, in_flight: u32) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        search.drains &= in_flight > 0;
        search.drains || in_flight >= search.depth
    }

    /// An operation on so many bytes has completed at `now`: what the job does now.
    pub(super) fn completed(
        &mut self,
        (direction, bytes): (Direction, u64),
        latency: Nanos,
        now: Nanos,
    ) -> AfterOperation {
        let is_steady = self
            .watch
            .as_mut()
            .is_some_and(|of| of.completed(bytes, latency, now));
        match self.is_too_late(direction, latency, now) {
            true => AfterOperation::Fail,
            false if is_steady => AfterOperation::End,
            false => AfterOperation::GoOn,
        }
    }

    /// Whether the latency of an operation ends the job.
    fn is_too_late(&mut self, direction: Direction, latency: Nanos, now: Nanos) -> bool {
        let limit = self.max[direction as usize];
        if limit > Nanos::ZERO && latency > limit {
            self.too_late.get_or_insert(TooLate { latency, limit });
        }
        if let Some(search) = &mut self.search {
            search.operations += 1;
            let limit = search.target.latency;
            if latency > limit {
                search.late += 1;
                // What was in flight when the depth was lowered is of the old one.
                let is_fatal =
                    search.target.percent >= 100.0 && !search.drains && !search.lower(now);
                if is_fatal {
                    self.too_late.get_or_insert(TooLate { latency, limit });
                }
            }
        }
        self.too_late.is_some()
    }

    /// Looks whether a window is over.
    pub(super) fn check(&mut self, now: Nanos) -> Verdict {
        let Some(search) = &mut self.search else {
            return Verdict::GoOn;
        };
        // A window in which nothing has completed says nothing.
        if now.saturating_sub(search.since) < search.target.window || search.operations == 0 {
            return Verdict::GoOn;
        }
        let kept = (search.operations - search.late) as f64 / search.operations as f64;
        if kept * 100.0 >= search.target.percent {
            return search.succeeded(now);
        }
        search.lower(now);
        Verdict::GoOn
    }
}

impl Search {
    fn begin_window(&mut self, now: Nanos) {
        (self.since, self.operations, self.late) = (now, 0, 0);
    }

    /// Latencies were too long. Whether there is a smaller depth.
    fn lower(&mut self, now: Nanos) -> bool {
        if self.depth == 1 {
            self.begin_window(now);
            return false;
        }
        self.high = self.depth;
        self.has_failed = true;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = self.depth.midpoint(self.low).max(1);
        self.stable = 0;
        self.drains = true;
        self.begin_window(now);
        true
    }

    /// Latencies were short enough for a window.
    fn succeeded(&mut self, now: Nanos) -> Verdict {
        let tried = self.depth;
        self.low = tried;
        if tried + 1 == self.high {
            // The depth stays; if it has been good three times, more is tried.
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        // Doubled until it was too much once, then between what was good and that.
        // (fio doubles again if what was too much is the largest depth, and does not end.)
        let next = match self.has_failed {
            false => self.depth.saturating_mul(2),
            true => self.depth.midpoint(self.high),
        };
        self.depth = next.clamp(1, self.most);
        self.begin_window(now);
        if self.target.goes_on || self.depth != tried {
            return Verdict::GoOn;
        }
        if self.is_last {
            return Verdict::Done;
        }
        (self.is_last, self.drains) = (true, true);
        Verdict::Restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a device whose latency is a microsecond for each operation in
    /// flight, and gives the depth and the number of windows.
    fn found(latency: Nanos, percent: f64, most: u32) -> (u32, u32, Option<TooLate>) {
        let target = LatencyTarget {
            latency,
            window: Nanos::from_us(100),
            percent,
            goes_on: false,
        };
        let goals = LatencyGoals {
            target: Some(target),
            ..LatencyGoals::default()
        };
        let mut goals = Goals::new(&goals, None, most).expect("there is one");
        let mut now = Nanos::ZERO;
        goals.start(now);
        for windows in 1..1_000 {
            for _ in 0..10 {
                now = now.saturating_add(Nanos::from_us(10));
                goals.holds(0);
                let depth = goals.depth().expect("it searches");
                let took = Nanos::from_us(depth.into());
                if goals.completed((Direction::Read, 4096), took, now) == AfterOperation::Fail {
                    return (depth, windows, goals.too_late());
                }
            }
            if goals.check(now) == Verdict::Done {
                return (goals.depth().expect("it searches"), windows, None);
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn the_largest_depth_is_found() {
        for (us, percent, most, depth) in [
            (20, 99.0, 64, 20),
            (20, 100.0, 64, 20),
            (1, 99.0, 64, 1),
            (100, 99.0, 64, 64),
            (100, 99.0, 1, 1),
            (63, 100.0, 64, 63),
        ] {
            let (found, windows, _) = found(Nanos::from_us(us), percent, most);
            // High is what was too much: one below it may be the last that is tried.
            assert!(found == depth || found + 1 == depth, "{us} us: {found}");
            assert!(windows < 40, "{us} us: {windows} windows");
        }
    }

    #[test]
    fn a_target_that_no_depth_keeps_to_ends_the_job() {
        let (depth, _, too_late) = found(Nanos(500), 100.0, 64);
        assert_eq!(depth, 1);
        let latency = Nanos::from_us(1);
        let limit = Nanos(500);
        assert_eq!(too_late, Some(TooLate { latency, limit }));
    }

    #[test]
    fn a_longer_latency_than_the_longest_ends_the_job() {
        let goals = LatencyGoals {
            max: [Nanos::ZERO, Nanos(10), Nanos::ZERO],
            target: None,
        };
        let mut goals = Goals::new(&goals, None, 4).expect("there is one");
        for (direction, latency, after) in [
            (Direction::Read, 11, AfterOperation::GoOn),
            (Direction::Write, 10, AfterOperation::GoOn),
            (Direction::Write, 11, AfterOperation::Fail),
        ] {
            let found = goals.completed((direction, 4096), Nanos(latency), Nanos(11));
            assert_eq!(found, after, "{direction:?} {latency}");
        }
        assert!(Goals::new(&LatencyGoals::default(), None, 4).is_none());
    }
}
