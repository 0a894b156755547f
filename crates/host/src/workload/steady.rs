//! Jobs that end when what they do has become steady: fio's `steadystate`.

use std::collections::VecDeque;

use zonelab_device::Nanos;

/// What is looked at of each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean latency, in nanoseconds.
    Latency,
}

/// When the operations of a job count as steady, from their completions in intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyGoal {
    /// What is looked at.
    pub metric: Metric,
    /// The slope of a straight line through the intervals is looked at, per interval;
    /// otherwise the largest distance from their mean.
    pub is_slope: bool,
    /// That is to be below this.
    pub limit: f64,
    /// Which is a percentage of the mean.
    pub is_percent: bool,
    /// Time that is looked at: a multiple of `interval`, at least twice as long.
    pub duration: Nanos,
    /// Time between the start of the measurement and the first interval.
    pub ramp: Nanos,
    /// Length of an interval, above zero.
    pub interval: Nanos,
}

impl SteadyGoal {
    /// Intervals that are looked at.
    fn intervals(&self) -> usize {
        (self.duration.0 / self.interval.0.max(1)) as usize
    }
}

/// An interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean latency in nanoseconds; 0: nothing has completed.
    pub latency_ns: f64,
}

/// What a job came to that was to become steady.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// When it would have been.
    pub goal: SteadyGoal,
    /// It was, and ended.
    pub is_attained: bool,
    /// What was compared with the limit in the end.
    pub criterion: f64,
    /// Largest distance of an interval from the mean.
    pub deviation: f64,
    /// Slope of the straight line through the intervals, per interval.
    pub slope: f64,
    /// The last intervals, at most as many as are looked at.
    pub intervals: Vec<Interval>,
}

impl Steadiness {
    /// The mean of what `of` says of the intervals; 0 without any.
    #[must_use]
    pub fn mean(&self, of: impl Fn(&Interval) -> f64) -> f64 {
        let sum: f64 = self.intervals.iter().map(of).sum();
        sum / (self.intervals.len() as f64).max(1.0)
    }
}

/// The watch over a job at work.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    goal: SteadyGoal,
    /// When the interval ends.
    end: Nanos,
    operations: u64,
    bytes: u64,
    latency_ns: u64,
    intervals: VecDeque<Interval>,
    is_attained: bool,
}

impl Watch {
    pub(super) fn new(goal: SteadyGoal) -> Self {
        Self {
            goal,
            end: Nanos::ZERO,
            operations: 0,
            bytes: 0,
            latency_ns: 0,
            intervals: VecDeque::with_capacity(goal.intervals()),
            is_attained: false,
        }
    }

    /// It is measured from now on.
    pub(super) fn start(&mut self, from: Nanos) {
        let begin = from.saturating_add(self.goal.ramp);
        self.end = begin.saturating_add(self.goal.interval);
    }

    /// An operation has completed. Whether the job is steady.
    pub(super) fn completed(&mut self, bytes: u64, latency: Nanos, at: Nanos) -> bool {
        let length = self.goal.interval;
        let begin = self.end.saturating_sub(length);
        if at < begin || self.is_attained {
            return self.is_attained;
        }
        let over = (at.0.saturating_sub(begin.0)) / length.0.max(1);
        if over > 0 {
            // Of a long pause as many as are looked at.
            for _ in 0..over.min(self.goal.intervals() as u64 + 1) {
                self.close();
                if self.is_attained {
                    return true;
                }
            }
            self.end = self
                .end
                .saturating_add(Nanos(length.0.saturating_mul(over)));
        }
        self.operations += 1;
        self.bytes += bytes;
        self.latency_ns = self.latency_ns.saturating_add(latency.0);
        false
    }

    /// The interval is over.
    fn close(&mut self) {
        let seconds = self.goal.interval.0 as f64 / 1e9;
        if self.intervals.len() == self.goal.intervals() {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval {
            iops: self.operations as f64 / seconds,
            bytes_per_second: self.bytes as f64 / seconds,
            latency_ns: self.latency_ns as f64 / (self.operations as f64).max(1.0),
        });
        (self.operations, self.bytes, self.latency_ns) = (0, 0, 0);
        if self.intervals.len() == self.goal.intervals() {
            self.is_attained = self.result().is_attained;
        }
    }

    /// What it has come to.
    pub(super) fn result(&self) -> Steadiness {
        let goal = self.goal;
        let of = |interval: &Interval| match goal.metric {
            Metric::Iops => interval.iops,
            Metric::Bandwidth => interval.bytes_per_second,
            Metric::Latency => interval.latency_ns,
        };
        let values: Vec<f64> = self.intervals.iter().map(of).collect();
        let (mean, slope) = line(&values);
        let deviations = values.iter().map(|value| (value - mean).abs());
        let deviation = deviations.fold(0.0, f64::max);
        let found = if goal.is_slope { slope } else { deviation };
        let criterion = match goal.is_percent {
            true if mean > 0.0 => 100.0 * found / mean,
            true => 0.0,
            false => found,
        };
        Steadiness {
            goal,
            // Nothing at all is not steady work.
            is_attained: values.len() == goal.intervals()
                && mean > 0.0
                && criterion.abs() < goal.limit,
            criterion,
            deviation,
            slope,
            intervals: self.intervals.iter().copied().collect(),
        }
    }
}

/// Mean of `values`, and slope of the straight line that is closest to them by least squares.
fn line(values: &[f64]) -> (f64, f64) {
    let count = (values.len() as f64).max(1.0);
    let mean = values.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (n, value) in values.iter().enumerate() {
        let x = n as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    (mean, if below > 0.0 { above / below } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(is_slope: bool, limit: f64, intervals: u64) -> SteadyGoal {
        SteadyGoal {
            metric: Metric::Iops,
            is_slope,
            limit,
            is_percent: true,
            duration: Nanos::from_us(100 * intervals),
            ramp: Nanos::from_us(50),
            interval: Nanos::from_us(100),
        }
    }

    /// Feeds so many operations in each interval, and gives in which it became steady.
    fn steady_in(goal: SteadyGoal, counts: &[u64]) -> (Option<usize>, Steadiness) {
        let mut watch = Watch::new(goal);
        watch.start(Nanos::ZERO);
        // What is in front of the first interval does not count.
        assert!(!watch.completed(4096, Nanos(1), Nanos::from_us(49)));
        for (n, count) in counts.iter().enumerate() {
            for k in 0..*count {
                let at = Nanos(50_000 + n as u64 * 100_000 + k);
                if watch.completed(4096, Nanos::from_us(7), at) {
                    return (Some(n), watch.result());
                }
            }
        }
        (None, watch.result())
    }

    #[test]
    fn a_mean_is_kept_to() {
        let counts = [10, 20, 30, 40, 40, 40, 41, 40, 40];
        let (at, result) = steady_in(goal(false, 2.0, 4), &counts);
        // 40, 40, 40 and 41 are within 1.9 % of their mean; the next interval shows it.
        assert_eq!(at, Some(7));
        assert!((result.criterion - 100.0 * 0.75 / 40.25).abs() < 1e-9);
        assert!((result.mean(|of| of.latency_ns) - 7_000.0).abs() < 1e-9);
        assert_eq!(steady_in(goal(false, 1.0, 4), &counts).0, None);
    }

    #[test]
    fn a_slope_comes_to_rest() {
        let counts = [100, 110, 90, 100, 100];
        let (at, result) = steady_in(goal(true, 4.0, 4), &counts);
        // 100, 110, 90, 100: -2 in each interval.
        assert_eq!(at, Some(4));
        assert!(
            (result.slope * 100e-6 + 2.0).abs() < 1e-9,
            "{}",
            result.slope
        );
        assert!(
            (result.criterion + 2.0).abs() < 1e-9,
            "{}",
            result.criterion
        );
        assert!(steady_in(goal(true, 1.0, 4), &[1, 2, 3, 4, 5]).0.is_none());
    }

    #[test]
    fn an_hour_without_work_is_not_steady() {
        let mut watch = Watch::new(goal(false, 50.0, 4));
        watch.start(Nanos::ZERO);
        assert!(!watch.completed(4096, Nanos(1), Nanos::from_us(60)));
        let late = Nanos::from_us(3_600_000_000);
        assert!(!watch.completed(4096, Nanos(1), late));
        assert!(watch.result().mean(|of| of.iops) < 1.0);
        // The interval is the one that it completed in.
        assert!(watch.end > late && watch.end <= late.saturating_add(Nanos::from_us(100)));
    }
}
