//! The distribution of latencies.

use zonelab_device::Nanos;

use super::buckets::Buckets;
use super::{Moments, Samples};

/// The distribution of the latencies of one kind of operation.
///
/// Count, mean, standard deviation, minimum and maximum are exact. Percentiles
/// have three significant digits: a reported one is at most 0.1 % above the
/// latency that it stands for, never below, and never above the maximum.
///
/// Takes 264 KiB, whatever it records; nothing grows afterwards.
///
/// ```
/// use zonelab_device::Nanos;
/// use zonelab_host::stats::Latency;
///
/// let mut latency = Latency::new();
/// for us in 1..=100 {
///     latency.record(Nanos::from_us(us));
/// }
/// let p95 = latency.percentile(95.0).expect("not empty");
/// assert!((95_000..=95_095).contains(&p95.0));
/// ```
#[derive(Clone, Debug)]
pub struct Latency {
    buckets: Buckets,
    moments: Moments,
}

impl Latency {
    /// Latencies longer than this, one hour, may share a bucket of the distribution. Only
    /// percentiles notice.
    pub const HIGHEST: Nanos = Nanos(super::buckets::HIGHEST);

    /// The percentiles that fio prints by default.
    pub const PERCENTILES: [f64; 17] = [
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];

    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: Buckets::new(),
            moments: Moments::default(),
        }
    }

    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.buckets.record(latency.0);
        self.moments.add(latency.0);
    }

    /// Adds latencies in nanoseconds.
    pub fn record_all(&mut self, latencies: &Samples) {
        for &latency in latencies.all() {
            self.buckets.record(latency);
        }
        self.moments.merge(latencies.moments());
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        let Self { buckets, moments } = other;
        self.buckets.merge(buckets);
        self.moments.merge(moments);
    }

    /// Number of latencies.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Sum of the latencies in nanoseconds.
    #[must_use]
    pub const fn sum_ns(&self) -> u128 {
        self.moments.sum()
    }

    /// The shortest latency. `None` if there is none.
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        self.moments.min().map(Nanos)
    }

    /// The longest latency. `None` if there is none.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        self.moments.max().map(Nanos)
    }

    /// The mean in nanoseconds. `None` if there is no latency.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        self.moments.mean()
    }

    /// The sample standard deviation in nanoseconds. `None` if there is no latency.
    #[must_use]
    pub fn stddev_ns(&self) -> Option<f64> {
        self.moments.stddev()
    }

    /// The buckets of the distribution that hold anything, in ascending order: the
    /// upper end of each and the number of latencies in it. A bucket is at most a
    /// 1024th of its latencies wide, and begins and ends at multiples of its width,
    /// a power of two.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.buckets.iter().map(|(end, count)| (Nanos(end), count))
    }

    /// The share of the time of all operations that passed in operations longer than `limit`, to
    /// a thousandth. `None` if there is no latency, or none took time.
    #[must_use]
    pub fn share_of_time_beyond(&self, limit: Nanos) -> Option<f64> {
        let all = self.moments.sum();
        let beyond = self.buckets().filter(|(latency, _)| *latency > limit);
        let beyond: u128 = beyond.map(time_of).sum();
        (all > 0).then(|| (beyond as f64 / all as f64).min(1.0))
    }

    /// The smallest latency such that operations that do not exceed it took `percent` of the time
    /// of all. Somebody who comes at a random time meets an operation of this distribution, where
    /// [`Self::percentile`] counts a long operation as one among many short ones. `None` if there
    /// is no latency, or none took time.
    #[must_use]
    pub fn percentile_by_time(&self, percent: f64) -> Option<Nanos> {
        let all: u128 = self.buckets().map(time_of).sum();
        let wanted = all as f64 * percent / 100.0;
        let mut passed = 0;
        let max = self.moments.max()?;
        let found = self.buckets().find(|bucket| {
            passed += time_of(*bucket);
            passed as f64 >= wanted
        });
        (all > 0).then(|| found.map_or(Nanos(max), |(latency, _)| latency.min(Nanos(max))))
    }

    /// The smallest latency that at least `percent` of all do not exceed
    /// (nearest rank, no interpolation). `None` if there is no latency.
    ///
    /// `percent` is clamped to 0 to 100, where it gives minimum and maximum,
    /// and is taken to a millionth of a percent.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let (min, max) = (self.moments.min()?, self.moments.max()?);
        let rank = self.rank(percent);
        if rank >= self.count() {
            return Some(Nanos(max));
        }
        // A bucket reports its upper end.
        let bucket = self.buckets.at_rank(rank, (min, max));
        Some(Nanos(bucket.clamp(min, max)))
    }

    /// [`Self::percentile`] of each of `percents`, which must not decrease, in
    /// one pass. Empty if there is no latency.
    #[must_use]
    pub fn percentiles(&self, percents: &[f64]) -> Vec<Nanos> {
        let (Some(min), Some(max)) = (self.moments.min(), self.moments.max()) else {
            return Vec::new();
        };
        let mut buckets = self.buckets.iter();
        let (mut below, mut value) = (0, min);
        let mut values = Vec::with_capacity(percents.len());
        for &percent in percents {
            let rank = self.rank(percent);
            while below < rank {
                let Some((end, count)) = buckets.next() else {
                    break;
                };
                below += count;
                value = end.clamp(min, max);
            }
            let last = rank >= self.count();
            values.push(Nanos(if last { max } else { value }));
        }
        values
    }

    /// The percentiles one point below and above `percent`: P94 and P96 for 95.
    /// A steep distribution moves a percentile by much when little changes;
    /// a comparison may accept what lies between its neighbours.
    #[must_use]
    pub fn neighbours(&self, percent: f64) -> Option<(Nanos, Nanos)> {
        Some((
            self.percentile(percent - 1.0)?,
            self.percentile(percent + 1.0)?,
        ))
    }

    /// The rank of a percentile among `count` latencies, from 1. In integers:
    /// 99.9 % of 1000 is rank 999, and would be 1000 in floating point.
    fn rank(&self, percent: f64) -> u64 {
        const WHOLE: u64 = 100_000_000;
        // The cast saturates; not-a-number becomes 0.
        let part = ((percent.clamp(0.0, 100.0) * (WHOLE / 100) as f64).round()) as u64;
        let rank = (u128::from(self.count()) * u128::from(part)).div_ceil(u128::from(WHOLE));
        u64::try_from(rank).unwrap_or(u64::MAX).max(1)
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// The time of the operations in a bucket.
fn time_of((latency, count): (Nanos, u64)) -> u128 {
    u128::from(latency.0) * u128::from(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latency(samples: &[u64]) -> Latency {
        let mut latency = Latency::new();
        samples.iter().for_each(|&ns| latency.record(Nanos(ns)));
        latency
    }

    #[test]
    fn empty_has_no_values() {
        let none = Latency::default();
        assert_eq!(none.count(), 0);
        assert_eq!((none.min(), none.max()), (None, None));
        assert_eq!((none.mean_ns(), none.stddev_ns()), (None, None));
        assert_eq!((none.percentile(50.0), none.neighbours(50.0)), (None, None));
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        // Values below 2048 ns have buckets of their own, so these are exact.
        let thousand = latency(&(1..=1000).collect::<Vec<_>>());
        for (percent, value) in [
            (0.0, 1),
            (0.1, 1),
            (0.11, 2),
            (50.0, 500),
            (95.0, 950),
            (99.9, 999),
            (99.95, 1000),
        ] {
            assert_eq!(
                thousand.percentile(percent),
                Some(Nanos(value)),
                "P{percent}"
            );
        }
        assert_eq!(thousand.percentile(-5.0), Some(Nanos(1)));
        assert_eq!(thousand.percentile(200.0), Some(Nanos(1000)));
        assert_eq!(thousand.percentile(f64::NAN), Some(Nanos(1)));
        assert_eq!(thousand.neighbours(95.0), Some((Nanos(940), Nanos(960))));
        assert_eq!(thousand.neighbours(99.5), Some((Nanos(985), Nanos(1000))));
    }

    #[test]
    fn one_latency_is_every_percentile() {
        let one = latency(&[733_184]);
        for percent in Latency::PERCENTILES {
            assert_eq!(one.percentile(percent), Some(Nanos(733_184)));
        }
    }

    #[test]
    fn no_percentile_exceeds_the_maximum() {
        // Both are in the bucket that ends at 733,183.
        let two = latency(&[732_700, 732_800]);
        assert_eq!(two.percentile(50.0), Some(Nanos(732_800)));
    }

    #[test]
    fn beyond_an_hour_only_percentiles_saturate() {
        let day = Nanos::from_secs(86_400);
        let mut latency = latency(&[0, 0, 1]);
        latency.record(day);
        latency.record(day);
        latency.record(Nanos::MAX);
        assert_eq!(latency.min(), Some(Nanos::ZERO));
        assert_eq!(latency.max(), Some(Nanos::MAX));
        assert_eq!(
            latency.percentile(100.0),
            Some(Nanos::MAX),
            "the maximum is exact"
        );
        let p80 = latency.percentile(80.0).unwrap();
        assert!(
            p80 >= Latency::HIGHEST && p80 < Nanos::from_secs(3_604),
            "{p80}"
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_thousandth(
            samples in prop::collection::vec(
                prop_oneof![0_u64..5_000, 0_u64..10_000_000, 0_u64..3_600_000_000_000], 1..200),
            percent in 0.0_f64..=100.0,
        ) {
            let latency = latency(&samples);
            let mut sorted = samples;
            sorted.sort_unstable();
            let rank = (sorted.len() as f64 * percent / 100.0 - 1e-9).ceil().max(1.0) as usize;
            let exact = sorted[rank - 1];
            let got = latency.percentile(percent).unwrap().0;
            prop_assert!(
                exact <= got && got <= exact + exact / 1_000,
                "P{percent}: {got} for {exact}",
            );
        }

        #[test]
        fn many_percentiles_are_each_what_it_is_alone(
            samples in prop::collection::vec(0_u64..10_000_000, 0..200),
            mut percents in prop::collection::vec(0.0_f64..=100.0, 0..20),
        ) {
            percents.sort_by(f64::total_cmp);
            percents.push(100.0);
            let latency = latency(&samples);
            let alone = percents.iter().filter_map(|&percent| latency.percentile(percent));
            prop_assert_eq!(latency.percentiles(&percents), alone.collect::<Vec<_>>());
        }

        #[test]
        fn merging_is_recording(a: Vec<u32>, b: Vec<u32>) {
            let [a, b] = [a, b].map(|v| v.into_iter().map(u64::from).collect::<Vec<_>>());
            let mut merged = latency(&a);
            merged.merge(&latency(&b));
            let whole = latency(&[a, b].concat());
            prop_assert_eq!(&merged.moments, &whole.moments);
            for percent in Latency::PERCENTILES {
                prop_assert_eq!(merged.percentile(percent), whole.percentile(percent));
            }
        }
    }

    /// Nine operations of 1 ms and one of 91 ms: by operations nearly all are short, by time
    /// nearly all is the long one.
    #[test]
    fn time_is_spent_in_the_long_ones() {
        let mut latency = Latency::new();
        assert_eq!(latency.percentile_by_time(95.0), None);
        assert_eq!(latency.share_of_time_beyond(Nanos(1)), None);
        (0..9).for_each(|_| latency.record(Nanos::from_ms(1)));
        latency.record(Nanos::from_ms(91));
        let ms = |percent| {
            latency
                .percentile_by_time(percent)
                .map(|at| at.0 / 1_000_000)
        };
        assert_eq!((ms(8.0), ms(9.5), ms(100.0)), (Some(1), Some(91), Some(91)));
        let beyond = latency.share_of_time_beyond(Nanos::from_ms(10)).unwrap();
        assert!((beyond - 0.91).abs() < 1e-3, "{beyond}");
        assert_eq!(latency.share_of_time_beyond(Nanos::from_ms(92)), Some(0.0));
    }
}
