//! Throughput by intervals of time.

use zonelab_device::Nanos;

use super::Moments;
use super::timeline::{Slot, Timeline};

/// Operations per second are kept in millionths.
const MICRO: u64 = 1_000_000;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Cuts time into intervals of one length.
///
/// Interval `i` holds the times `start + i * length` (inclusive) to
/// `start + (i + 1) * length` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalClock {
    length: Nanos,
    /// End of the open interval.
    end: Nanos,
}

impl IntervalClock {
    /// Intervals of `length` (at least 1 ns) from `start` on.
    #[must_use]
    pub fn new(start: Nanos, length: Nanos) -> Self {
        let length = length.max(Nanos(1));
        Self {
            length,
            end: start.saturating_add(length),
        }
    }

    /// Length of an interval.
    #[must_use]
    pub const fn length(&self) -> Nanos {
        self.length
    }

    /// Number of intervals that end by `now`, counted once each: the open one
    /// first, then those in which nothing can have happened. 0 if the open
    /// interval goes on, also if `now` is before it.
    #[inline]
    pub fn ended_by(&mut self, now: Nanos) -> u64 {
        if now < self.end { 0 } else { self.roll(now) }
    }

    #[cold]
    fn roll(&mut self, now: Nanos) -> u64 {
        let ended = (now - self.end).0 / self.length.0 + 1;
        self.end = self
            .end
            .saturating_add(Nanos(ended.saturating_mul(self.length.0)));
        ended
    }
}

/// The throughput of one kind of operation of one job, sampled as fio samples
/// what it reports as `iops_mean` and `bw_mean`.
///
/// A sample is taken at the end of each interval: the operations that completed
/// in it, scaled to a second. Two rules of fio's shape the result:
///
/// * The interval that is still open when the job ends gives no sample. If no
///   interval ended at all, there is one sample over what there was of it.
/// * An interval without a single operation gives no sample either. The mean is
///   then that of the *active* intervals, above what the bytes over the run
///   time give: [`Self::empty`] tells how many were left out, and
///   [`Self::mean_iops_of_all`] counts them as zero.
///
/// [`Self::slots`] tells how throughput went over time.
///
/// Takes constant memory. Samples are kept to a millionth of an operation per
/// second, where fio rounds down to whole ones.
#[derive(Clone, Debug)]
pub struct Intervals {
    clock: IntervalClock,
    start: Nanos,
    open_ops: u64,
    open_bytes: u64,
    micro_iops: Moments,
    bytes_per_second: Moments,
    empty: u64,
    timeline: Timeline,
    /// Operations and length of what there was of the last interval.
    tail: (u64, Nanos),
}

impl Intervals {
    /// fio's default (`iopsavgtime`, `bwavgtime`).
    pub const DEFAULT_LENGTH: Nanos = Nanos::from_ms(500);

    /// Intervals of `length` (at least 1 ns), the first of which begins at `start`.
    #[must_use]
    pub fn new(start: Nanos, length: Nanos) -> Self {
        Self {
            clock: IntervalClock::new(start, length),
            start,
            open_ops: 0,
            open_bytes: 0,
            micro_iops: Moments::default(),
            bytes_per_second: Moments::default(),
            empty: 0,
            timeline: Timeline::new(),
            tail: (0, Nanos::ZERO),
        }
    }

    /// Counts an operation of `bytes` that completed at `at`. Times should not
    /// decrease; what comes late counts in the open interval.
    #[inline]
    pub fn record(&mut self, at: Nanos, bytes: u64) {
        let ended = self.clock.ended_by(at);
        if ended > 0 {
            self.close(ended);
        }
        self.open_ops += 1;
        self.open_bytes = self.open_bytes.saturating_add(bytes);
    }

    /// Counts operations: when each completed, and its bytes. The last of them completed at
    /// `latest`, and all together they are so many with so many bytes.
    pub fn record_all(
        &mut self,
        operations: impl Iterator<Item = (Nanos, u64)>,
        latest: Nanos,
        (count, bytes): (u64, u64),
    ) {
        if latest >= self.clock.end {
            operations.for_each(|(at, bytes)| self.record(at, bytes));
            return;
        }
        self.open_ops += count;
        self.open_bytes = self.open_bytes.saturating_add(bytes);
    }

    /// Ends the run at `at`: takes the samples that are due and drops the
    /// interval that is still open, unless it is all there is.
    pub fn finish(&mut self, at: Nanos) {
        let ended = self.clock.ended_by(at);
        if ended > 0 {
            self.close(ended);
        } else if self.samples() + self.empty == 0 {
            let ops = self.open_ops;
            self.sample(at.saturating_sub(self.start));
            self.open_ops = ops;
        }
        let whole = self
            .timeline
            .intervals()
            .saturating_mul(self.clock.length().0);
        let from = self.start.saturating_add(Nanos(whole));
        self.tail = (self.open_ops, at.saturating_sub(from));
        self.open_ops = 0;
        self.open_bytes = 0;
    }

    #[cold]
    fn close(&mut self, ended: u64) {
        self.timeline.push(self.open_ops, ended);
        self.sample(self.clock.length());
        self.empty = self.empty.saturating_add(ended - 1);
    }

    /// Turns the open interval into a sample over `length`.
    fn sample(&mut self, length: Nanos) {
        let (ops, bytes) = (self.open_ops, self.open_bytes);
        self.open_ops = 0;
        self.open_bytes = 0;
        if ops == 0 || length == Nanos::ZERO {
            self.empty = self.empty.saturating_add(u64::from(length > Nanos::ZERO));
            return;
        }
        self.micro_iops
            .add(per_second(u128::from(ops) * u128::from(MICRO), length));
        self.bytes_per_second
            .add(per_second(u128::from(bytes), length));
    }

    /// Number of samples: intervals with at least one operation.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.micro_iops.count()
    }

    /// Number of intervals without an operation, which gave no sample.
    #[must_use]
    pub const fn empty(&self) -> u64 {
        self.empty
    }

    /// Mean operations per second of the samples: fio's `iops_mean`. `None` without samples.
    #[must_use]
    pub fn mean_iops(&self) -> Option<f64> {
        self.micro_iops.mean().map(|micro| micro / MICRO as f64)
    }

    /// Mean operations per second of all intervals, empty ones as zero. `None` without any.
    #[must_use]
    pub fn mean_iops_of_all(&self) -> Option<f64> {
        let intervals = self.samples() + self.empty;
        (intervals > 0).then(|| self.micro_iops.sum() as f64 / MICRO as f64 / intervals as f64)
    }

    /// Standard deviation of the samples in operations per second. `None` without samples.
    #[must_use]
    pub fn stddev_iops(&self) -> Option<f64> {
        self.micro_iops.stddev().map(|micro| micro / MICRO as f64)
    }

    /// Lowest and highest sample in operations per second. `None` without samples.
    #[must_use]
    pub fn range_iops(&self) -> Option<(f64, f64)> {
        let [min, max] = [self.micro_iops.min()?, self.micro_iops.max()?];
        Some((min as f64 / MICRO as f64, max as f64 / MICRO as f64))
    }

    /// The samples in bytes per second (rounded down): fio's `bw_mean` and its relatives.
    #[must_use]
    pub const fn bytes_per_second(&self) -> &Moments {
        &self.bytes_per_second
    }

    /// Throughput over time, from the start of the measurement to its end: equal
    /// slots of one interval or, in long runs, of several, and at the end what
    /// there was of the last interval. At most [`Timeline::SLOTS`] and one.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let slots = self.timeline.slots(self.start, self.clock.length());
        let (operations, length) = self.tail;
        let from = slots.last().map_or(self.start, |slot| slot.to);
        let tail = Slot {
            from,
            to: from.saturating_add(length),
            operations,
        };
        let has_tail = length > Nanos::ZERO;
        slots.into_iter().chain(has_tail.then_some(tail))
    }

    /// Operations per second of a group of jobs: the sum of the means of the
    /// jobs, as in fio's group reporting. Jobs without samples add nothing.
    #[must_use]
    pub fn sum_mean_iops<'a>(jobs: impl IntoIterator<Item = &'a Self>) -> f64 {
        jobs.into_iter().filter_map(Self::mean_iops).sum()
    }
}

/// `amount` in `length` (not zero), scaled to a second.
fn per_second(amount: u128, length: Nanos) -> u64 {
    let rate = amount * u128::from(SECOND) / u128::from(length.0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_ms(ms)
    }

    fn intervals() -> Intervals {
        Intervals::new(Nanos::ZERO, Intervals::DEFAULT_LENGTH)
    }

    /// ConfZNS++ (SYSTOR'24), figure 11 at concurrency 7: the stored run of
    /// 3.627 s has 10156 writes and `iops_mean` 2823.14, which is 9881 writes
    /// in the seven whole intervals; the last 127 ms are left out.
    #[test]
    fn published_mean_leaves_out_the_open_interval() {
        let mut jobs = vec![intervals(); 7];
        for i in 0..9_881_u64 {
            jobs[(i % 7) as usize].record(Nanos(i * 3_500_000_000 / 9_881), 16_384);
        }
        for i in 0..275_u64 {
            jobs[(i % 7) as usize].record(ms(3_500) + Nanos(i * 127_000_000 / 275), 16_384);
        }
        jobs.iter_mut().for_each(|job| job.finish(ms(3_627)));
        assert!(jobs.iter().all(|job| job.samples() == 7));
        let kiops = Intervals::sum_mean_iops(&jobs) / 1e3;
        assert!((kiops - 2.82314).abs() < 5e-6, "{kiops}");
    }

    #[test]
    fn an_operation_at_the_end_of_an_interval_is_in_the_next() {
        let mut series = intervals();
        series.record(ms(499), 1);
        series.record(ms(500), 1);
        series.record(ms(999), 1);
        series.finish(ms(1_000));
        assert_eq!(series.range_iops(), Some((2.0, 4.0)));
    }

    #[test]
    fn empty_intervals_are_no_samples() {
        let mut series = intervals();
        for at in [100, 200, 2_100] {
            series.record(ms(at), 4_096);
        }
        series.finish(ms(3_700));
        // Intervals 0 (two operations) and 4 (one); 1 to 3, 5 and 6 are empty.
        assert_eq!((series.samples(), series.empty()), (2, 5));
        assert_eq!(series.mean_iops(), Some(3.0));
        assert_eq!(series.mean_iops_of_all(), Some(6.0 / 7.0));
        assert!((series.stddev_iops().unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(series.bytes_per_second().mean(), Some(4_096.0 * 3.0));
    }

    #[test]
    fn slots_cover_the_run_from_start_to_end() {
        let mut series = Intervals::new(ms(1_000), ms(500));
        for at in [1_100, 1_200, 3_100, 4_600] {
            series.record(ms(at), 4_096);
        }
        series.finish(ms(4_700));
        let slots: Vec<_> = series
            .slots()
            .map(|s| (s.from, s.to, s.operations))
            .collect();
        let expected = [2, 0, 0, 0, 1, 0, 0];
        for (i, operations) in (0_u64..).zip(expected) {
            let from = ms(1_000 + i * 500);
            assert_eq!(slots[i as usize], (from, from + ms(500), operations));
        }
        assert_eq!(
            slots[7..],
            [(ms(4_500), ms(4_700), 1)],
            "the rest of the last interval"
        );

        let mut short = Intervals::new(ms(5_000), ms(500));
        short.record(ms(5_010), 1);
        short.finish(ms(5_040));
        let slots: Vec<_> = short
            .slots()
            .map(|s| (s.from, s.to, s.operations))
            .collect();
        assert_eq!(slots, [(ms(5_000), ms(5_040), 1)]);
    }

    #[test]
    fn a_short_run_is_one_sample_of_its_length() {
        let mut series = Intervals::new(ms(5_000), ms(500));
        series.record(ms(5_010), 1);
        series.record(ms(5_020), 1);
        series.finish(ms(5_040));
        assert_eq!((series.samples(), series.mean_iops()), (1, Some(50.0)));

        let mut idle = intervals();
        idle.finish(ms(40));
        assert_eq!(
            (idle.samples(), idle.empty(), idle.mean_iops()),
            (0, 1, None)
        );
        assert_eq!(idle.mean_iops_of_all(), Some(0.0));

        let mut nothing = intervals();
        nothing.record(Nanos::ZERO, 1);
        nothing.finish(Nanos::ZERO);
        assert_eq!((nothing.samples(), nothing.mean_iops_of_all()), (0, None));
    }

    #[test]
    fn what_comes_late_is_counted_in_the_open_interval() {
        let mut series = intervals();
        series.record(ms(600), 1);
        series.record(ms(499), 1);
        series.finish(ms(1_000));
        assert_eq!(
            (series.samples(), series.empty(), series.mean_iops()),
            (1, 1, Some(4.0))
        );
    }

    #[test]
    fn absurd_times_do_no_harm() {
        let mut series = Intervals::new(Nanos::ZERO, Nanos::ZERO);
        series.record(Nanos::MAX, u64::MAX);
        series.record(Nanos::MAX, u64::MAX);
        series.finish(Nanos::MAX);
        assert!(series.mean_iops().is_some());
        series.finish(Nanos::MAX);
        assert!(series.slots().count() <= Timeline::SLOTS + 1);
        let mut late = Intervals::new(Nanos::MAX, Nanos::MAX);
        late.record(Nanos::MAX, 1);
        late.finish(Nanos::ZERO);
        assert!(Intervals::sum_mean_iops([&intervals()]).abs() < 1e-12);
    }

    proptest! {
        /// Against the definition, computed from the list of all times.
        #[test]
        fn agrees_with_the_definition(
            mut times in prop::collection::vec(0_u64..100_000, 0..200),
            length in 1_u64..20_000,
            end in 0_u64..120_000,
        ) {
            times.sort_unstable();
            times.retain(|&t| t < end);
            let mut series = Intervals::new(Nanos::ZERO, Nanos(length));
            times.iter().for_each(|&t| series.record(Nanos(t), 0));
            series.finish(Nanos(end));
            let counted: u64 = series.slots().map(|slot| slot.operations).sum();
            prop_assert_eq!(counted, times.len() as u64);
            prop_assert_eq!(series.slots().last().map_or(0, |slot| slot.to.0), end);

            let whole = end / length;
            let samples: Vec<u64> = (0..whole)
                .map(|i| times.iter().filter(|&&t| t / length == i).count() as u64)
                .collect();
            let active: Vec<u64> = samples.iter().copied().filter(|&ops| ops > 0).collect();
            if whole > 0 {
                prop_assert_eq!(series.samples(), active.len() as u64);
                prop_assert_eq!(series.empty(), whole - active.len() as u64);
                if let Some(mean) = series.mean_iops() {
                    let ops = active.iter().sum::<u64>() as f64 / active.len() as f64;
                    let expected = ops * 1e9 / length as f64;
                    prop_assert!((mean - expected).abs() <= 1e-6 + expected * 1e-12);
                }
            }
        }
    }
}
