//! Rate limits that behave as those of the measured experiments.
//!
//! An intensity of "50 % of the reset rate" is, in the published workloads, a
//! limit in bytes per second on a job that resets zones, each counted as some
//! number of bytes. How exactly the load generator keeps it decides what the
//! drive sees, so [`Limiter`] follows fio's linear rate process:
//!
//! * One line is drawn from the start of the job: after everything counted so
//!   far, the next operation may start at `start + counted / rate`. The line
//!   never moves, so a job that fell behind catches up without pauses, and no
//!   rounding accumulates.
//! * The line is looked at once per operation, when one has been issued, and
//!   whole operations pass. A finish of 1056 MiB at half the drive's speed is
//!   therefore a square wave, not a stream at half speed.
//! * What has been counted at that moment depends on the operation:
//!   [`Counting`].

use core::num::NonZeroU64;

use zonelab_device::Nanos;

use crate::rng::Rng;

/// Nanoseconds in a second.
const SECOND: NonZeroU64 = NonZeroU64::new(1_000_000_000).expect("not zero");

/// What a [`Limiter`] lets through: bytes or operations, per span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    unit: Unit,
    /// Units that are let through in each span of time.
    amount: NonZeroU64,
    /// Length of that span.
    per_ns: NonZeroU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Ops,
}

impl Limit {
    /// `bytes` per second.
    #[must_use]
    pub const fn bytes_per_second(bytes: NonZeroU64) -> Self {
        Self {
            unit: Unit::Bytes,
            amount: bytes,
            per_ns: SECOND,
        }
    }

    /// `ops` operations per second, however many bytes each has.
    #[must_use]
    pub const fn ops_per_second(ops: NonZeroU64) -> Self {
        Self {
            unit: Unit::Ops,
            amount: ops,
            per_ns: SECOND,
        }
    }

    /// `ops` operations in every `seconds`: 129,625 in 20,000 s for 6.48125 per second.
    #[must_use]
    pub const fn ops_per_seconds(ops: NonZeroU64, seconds: NonZeroU64) -> Self {
        // Saturates at 584 years, beyond which nothing runs.
        Self {
            unit: Unit::Ops,
            amount: ops,
            per_ns: seconds.saturating_mul(SECOND),
        }
    }

    /// The time that an operation of `bytes` takes at the limit.
    #[must_use]
    pub fn period(self, bytes: u64) -> Nanos {
        let ns = u128::from(self.units(bytes)) * u128::from(self.per_ns.get());
        let period = ns / u128::from(self.amount.get());
        Nanos(u64::try_from(period).unwrap_or(u64::MAX))
    }

    const fn units(self, bytes: u64) -> u64 {
        match self.unit {
            Unit::Bytes => bytes,
            Unit::Ops => 1,
        }
    }
}

/// How much later than the first thread of a job another begins, if each issues an operation
/// every `period`.
///
/// Threads that are created one after another are out of step for as long as they run, since none
/// of them falls behind its rate. If they all began at the same instant, their operations would
/// arrive together in every period. Thread `number` begins a share of the period later, which is
/// the fractional part of `number` times the golden ratio: no two are close to each other.
#[must_use]
pub fn out_of_step(number: u32, period: Nanos) -> Nanos {
    const GOLDEN: u32 = 2_654_435_769;
    let share = u128::from(number.wrapping_mul(GOLDEN));
    // Fits: less than the period.
    Nanos(((u128::from(period.0) * share) >> 32) as u64)
}

/// How much later than others another job with a rate begins, whose operations come every
/// `period`: a time within the period that `seed` draws for `job`.
///
/// Two jobs that begin together meet in every period that both divide, or never: what their
/// latencies come to then depends on the rates, and repeats say nothing of it.
#[must_use]
pub fn phase(seed: u64, job: u32, period: Nanos) -> Nanos {
    Nanos(Rng::new(seed, u64::from(job) | 1 << 41).below(period.0.max(1)))
}

/// When an operation counts against the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// When it is issued, because its size is known: reads, writes, appends,
    /// and resets, which count as the zone size.
    ///
    /// Of operations of one size the n-th (from 1) starts no earlier than
    /// `n - 1` periods after the start.
    AtIssue,
    /// When it completes, because only then is known what it did: a finish
    /// counts what it filled.
    ///
    /// The time of the next operation is computed at issue, so it does not
    /// contain the operation just issued: one after another, the first two
    /// start without delay and the n-th no earlier than `n - 2` periods after
    /// the start.
    AtCompletion,
}

/// Says when a job may issue its next operation.
///
/// With one operation in flight at a time, the bytes issued by a time `t` after
/// the start never exceed `rate * t` by more than the last operation
/// ([`Counting::AtIssue`]) or the last two ([`Counting::AtCompletion`]).
/// Operations in flight beyond one add to the latter.
///
/// ```
/// use core::num::NonZeroU64;
/// use zonelab_device::Nanos;
/// use zonelab_host::rate::{Counting, Limit, Limiter};
///
/// let ten = NonZeroU64::new(10).expect("not zero");
/// let mut limiter = Limiter::new(Limit::ops_per_second(ten), Counting::AtIssue);
/// limiter.issued(Nanos::from_ms(5), 4096);
/// assert_eq!(limiter.ready_at(), Nanos::from_ms(105));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limiter {
    limit: Limit,
    counting: Counting,
    /// Where the line starts; unknown until the first operation.
    start: Option<Nanos>,
    /// Time that everything counted so far takes at the limit, in whole nanoseconds.
    due_ns: u64,
    /// Fraction of a nanosecond beyond [`Self::due_ns`], in `1 / limit.amount`.
    fraction: u64,
    ready: Nanos,
}

impl Limiter {
    /// A limiter whose line starts when the first operation is issued.
    #[must_use]
    pub const fn new(limit: Limit, counting: Counting) -> Self {
        Self {
            limit,
            counting,
            start: None,
            due_ns: 0,
            fraction: 0,
            ready: Nanos::ZERO,
        }
    }

    /// The same, with a line that starts at `at`: the first operation is not
    /// delayed, and if it comes later the next ones catch up.
    #[must_use]
    pub const fn starting_at(mut self, at: Nanos) -> Self {
        self.start = Some(at);
        self.ready = at;
        self
    }

    /// The time from which the next operation may be issued; in the past if it may at once.
    #[inline]
    #[must_use]
    pub const fn ready_at(&self) -> Nanos {
        self.ready
    }

    /// Notes that an operation of `bytes` was issued at `now`.
    ///
    /// Under [`Counting::AtCompletion`] `bytes` means nothing.
    #[inline]
    pub fn issued(&mut self, now: Nanos, bytes: u64) {
        let start = *self.start.get_or_insert(now);
        if self.counting == Counting::AtIssue {
            self.count(bytes);
        }
        // Rounded up: a nanosecond early would be above the limit.
        let due = self.due_ns.saturating_add(u64::from(self.fraction > 0));
        self.ready = start.saturating_add(Nanos(due));
    }

    /// Notes that an operation completed and had `bytes`; an operation that
    /// failed had none. Needed under [`Counting::AtCompletion`], where it
    /// delays the operation after the next one issued.
    #[inline]
    pub fn completed(&mut self, bytes: u64) {
        if self.counting == Counting::AtCompletion {
            self.count(bytes);
        }
    }

    /// Adds an operation to what was counted, exactly.
    #[inline]
    fn count(&mut self, bytes: u64) {
        let (units, amount) = (self.limit.units(bytes), self.limit.amount);
        let per_ns = self.limit.per_ns.get();
        let whole = units
            .checked_mul(per_ns)
            .and_then(|p| p.checked_add(self.fraction));
        let spent = match whole {
            Some(product) => {
                self.fraction = product % amount;
                product / amount
            }
            // More than 18 GB in one operation: rare, and 128-bit division is slow.
            None => {
                let product = u128::from(units) * u128::from(per_ns) + u128::from(self.fraction);
                let amount = u128::from(amount.get());
                self.fraction = (product % amount) as u64;
                u64::try_from(product / amount).unwrap_or(u64::MAX)
            }
        };
        self.due_ns = self.due_ns.saturating_add(spent);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn nz(n: u64) -> NonZeroU64 {
        NonZeroU64::new(n).unwrap()
    }

    /// Start times of `ops` issued one after another, each as early as it may
    /// be, and the end of the last. An op is (service time, bytes).
    fn run(limiter: &mut Limiter, ops: &[(Nanos, u64)]) -> (Vec<Nanos>, Nanos) {
        let mut now = Nanos::ZERO;
        let mut starts = Vec::new();
        for &(service, bytes) in ops {
            now = now.max(limiter.ready_at());
            starts.push(now);
            limiter.issued(now, bytes);
            now = now.saturating_add(service);
            limiter.completed(bytes);
        }
        (starts, now)
    }

    /// Of up to 32 threads no two are as close as a fifth of an even share.
    #[test]
    fn threads_are_out_of_step() {
        let period = Nanos::from_ms(4);
        assert_eq!(out_of_step(0, period), Nanos::ZERO);
        for threads in 2..=32_u32 {
            let mut begins: Vec<u64> = (0..threads).map(|n| out_of_step(n, period).0).collect();
            begins.sort_unstable();
            begins.push(begins[0] + period.0);
            let closest = begins.windows(2).map(|pair| pair[1] - pair[0]).min();
            let even = period.0 / u64::from(threads);
            assert!(
                closest > Some(even / 5),
                "{threads} threads: {closest:?} of {even}"
            );
            assert!(begins.iter().rev().skip(1).all(|at| *at < period.0));
        }
    }

    #[test]
    fn a_period_is_that_of_the_limit() {
        let of = |limit: Limit| limit.period(1 << 20);
        assert_eq!(
            of(Limit::bytes_per_second(nz(250 << 20))),
            Nanos::from_ms(4)
        );
        assert_eq!(of(Limit::ops_per_second(nz(1_000))), Nanos::from_ms(1));
        assert_eq!(
            of(Limit::ops_per_seconds(nz(1), nz(1 << 60))),
            Nanos(u64::MAX)
        );
    }

    /// ConfZNS++ (SYSTOR'24), figure 11: 24 resets of 77 ms at half of
    /// 12.9625 per second, each counted as a zone size of 2 GiB. The stored
    /// run lasts 3.627 s with 77.1 ms resets.
    #[test]
    fn resets_are_paced_from_the_first() {
        let rate = nz(6_481_250 * 2048 * MIB / 1_000_000);
        let mut limiter = Limiter::new(Limit::bytes_per_second(rate), Counting::AtIssue);
        let (starts, end) = run(&mut limiter, &[(Nanos::from_ms(77), 2048 * MIB); 24]);
        for (n, start) in (0_u64..).zip(&starts) {
            // Periods of 1 / 6.48125 s; the rate in whole bytes is a nanosecond off.
            let line = (n * 20_000_000_000_000).div_ceil(129_625);
            assert!(start.0.abs_diff(line) <= 1, "reset {n} at {start}");
        }
        assert_eq!(end.0 / 100_000, 36_256, "23 x 154.291 ms + 77 ms");
    }

    /// The same figure, limit given in operations.
    #[test]
    fn fractional_operation_rates_are_exact() {
        let limit = Limit::ops_per_seconds(nz(129_625), nz(20_000));
        let mut limiter = Limiter::new(limit, Counting::AtIssue);
        for _ in 0..129_625 {
            limiter.issued(Nanos::ZERO, 1);
        }
        assert_eq!(limiter.ready_at(), Nanos::from_secs(20_000), "no drift");
    }

    /// ConfZNS++ (SYSTOR'24), figure 10: finishes of 1056 MiB that take 12.0 s,
    /// at 43.9235 MiB/s. Two pass before the limit acts.
    #[test]
    fn finishes_are_paced_from_the_third() {
        let rate = nz(439_235 * MIB / 10_000);
        let mut limiter = Limiter::new(Limit::bytes_per_second(rate), Counting::AtCompletion);
        let service = Nanos::from_secs(12);
        let (starts, _) = run(&mut limiter, &[(service, 1056 * MIB); 6]);
        assert_eq!(starts[0], Nanos::ZERO);
        assert_eq!(starts[1], service, "when the first ends");
        for (n, start) in (3_u64..).zip(&starts[2..]) {
            // 1056 / 43.9235 s = 24.0418 s.
            assert_eq!(
                start.0 / 100_000,
                240_418 * (n - 2),
                "finish {n} at {start}"
            );
        }
    }

    #[test]
    fn a_job_that_fell_behind_catches_up() {
        let mut limiter = Limiter::new(Limit::ops_per_second(nz(10)), Counting::AtIssue);
        let mut ops = vec![(Nanos::from_secs(1), 1)];
        ops.extend([(Nanos::from_ms(1), 1); 12]);
        let (starts, _) = run(&mut limiter, &ops);
        assert_eq!(starts[9], Nanos::from_ms(1_008), "nine without a pause");
        assert_eq!(starts[10], Nanos::from_ms(1_009));
        assert_eq!(starts[11], Nanos::from_ms(1_100), "back on the line");
    }

    #[test]
    fn the_line_starts_where_it_is_told_to() {
        let limit = Limit::ops_per_second(nz(10));
        let mut limiter = Limiter::new(limit, Counting::AtIssue);
        assert_eq!(limiter.ready_at(), Nanos::ZERO);
        limiter.issued(Nanos::from_secs(5), 1);
        assert_eq!(
            limiter.ready_at(),
            Nanos::from_ms(5_100),
            "the first operation"
        );

        let mut limiter = limiter_at(limit, 3);
        assert_eq!(limiter.ready_at(), Nanos::from_secs(3));
        limiter.issued(Nanos::from_secs(5), 1);
        assert_eq!(limiter.ready_at(), Nanos::from_ms(3_100), "the given time");
    }

    fn limiter_at(limit: Limit, seconds: u64) -> Limiter {
        Limiter::new(limit, Counting::AtIssue).starting_at(Nanos::from_secs(seconds))
    }

    #[test]
    fn a_failed_finish_costs_nothing() {
        let limit = Limit::bytes_per_second(nz(MIB));
        let mut limiter = Limiter::new(limit, Counting::AtCompletion);
        limiter.issued(Nanos::ZERO, 0);
        limiter.completed(0);
        limiter.issued(Nanos::from_ms(1), 0);
        assert_eq!(limiter.ready_at(), Nanos::ZERO);
    }

    #[test]
    fn absurd_sizes_saturate() {
        let limit = Limit::bytes_per_second(nz(1));
        let mut limiter = Limiter::new(limit, Counting::AtIssue);
        limiter.issued(Nanos::from_secs(1), u64::MAX);
        limiter.issued(Nanos::MAX, u64::MAX);
        assert_eq!(limiter.ready_at(), Nanos::MAX);
    }

    fn counting() -> impl Strategy<Value = Counting> {
        prop_oneof![Just(Counting::AtIssue), Just(Counting::AtCompletion)]
    }

    proptest! {
        /// The bytes issued never exceed the line by more than the documented credit.
        #[test]
        fn the_limit_holds(
            counting in counting(),
            rate in prop_oneof![1_u64..1_000, 1_u64..10_000_000_000, 1_u64..],
            ops in prop::collection::vec((0_u64..1_000_000_000, 0_u64..4_000_000_000), 1..60),
        ) {
            let ops: Vec<_> = ops.into_iter().map(|(ns, bytes)| (Nanos(ns), bytes)).collect();
            let mut limiter = Limiter::new(Limit::bytes_per_second(nz(rate)), counting);
            let (starts, _) = run(&mut limiter, &ops);
            let credit = if counting == Counting::AtIssue { 1 } else { 2 };
            for (n, start) in starts.iter().enumerate().skip(credit) {
                let counted: u128 = ops[..=n - credit].iter().map(|op| u128::from(op.1)).sum();
                // A line that leaves the range of time is not reached.
                if *start == Nanos::MAX {
                    break;
                }
                prop_assert!(
                    counted * 1_000_000_000 <= u128::from(start.0) * u128::from(rate),
                    "op {n} at {start} after {counted} counted bytes",
                );
            }
        }

        /// And the limiter asks for no more than that: a job that is always ready is
        /// never more than a nanosecond behind the line.
        #[test]
        fn the_limit_is_used(
            counting in counting(),
            rate in prop_oneof![1_u64..1_000, 1_u64..10_000_000_000, 1_u64..],
            sizes in prop::collection::vec(
                prop_oneof![0_u64..4_000_000_000, 0_u64..100_000_000_000], 1..60),
        ) {
            let ops: Vec<_> = sizes.iter().map(|&bytes| (Nanos::ZERO, bytes)).collect();
            let mut limiter = Limiter::new(Limit::bytes_per_second(nz(rate)), counting);
            let (starts, _) = run(&mut limiter, &ops);
            let credit = if counting == Counting::AtIssue { 1 } else { 2 };
            for (n, start) in starts.iter().enumerate().skip(credit) {
                let counted: u128 = sizes[..=n - credit].iter().map(|&b| u128::from(b)).sum();
                let line = (counted * 1_000_000_000).div_ceil(u128::from(rate));
                prop_assert_eq!(u128::from(start.0), line.min(u128::from(u64::MAX)), "op {}", n);
            }
        }
    }
}
