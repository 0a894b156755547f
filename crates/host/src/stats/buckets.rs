//! Counts of latencies by their three leading digits, in the layout of HDR histograms.

/// Buckets below this are one nanosecond wide.
const WHOLE: u64 = 2 * HALF;
/// Buckets of one width.
const HALF: u64 = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;
/// Widths, each twice the one before.
const WIDTHS: u64 = 32;
/// Number of buckets.
const COUNT: usize = ((WIDTHS + 1) * HALF) as usize;

/// What is too long for all buckets is in that of this latency, an hour.
pub(super) const HIGHEST: u64 = 3_600_000_000_000;
const TOO_LONG: usize = number_of(HIGHEST);

/// The number of the bucket of a latency, if there were as many as needed.
#[inline]
const fn number_of(latency: u64) -> usize {
    // How often it has to be halved until it is a number of buckets.
    let halvings = u64::BITS - 1 - HALF_BITS - (latency | (WHOLE - 1)).leading_zeros();
    (halvings as u64 * HALF + (latency >> halvings)) as usize
}

/// How many latencies are in each bucket.
///
/// Up to 2,048 ns each has a bucket; then a bucket is as wide as the power of two that makes
/// it at most a 1,024th of its latencies.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    counts: Box<[u64; COUNT]>,
}

impl Buckets {
    pub(super) fn new() -> Self {
        let counts = vec![0; COUNT].into_boxed_slice();
        Self {
            counts: counts.try_into().expect("there are as many as that"),
        }
    }

    /// The bucket of a latency.
    #[inline]
    fn of(latency: u64) -> usize {
        let bucket = number_of(latency);
        if bucket < COUNT { bucket } else { TOO_LONG }
    }

    /// The longest latency of a bucket.
    fn end(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < WHOLE {
            return bucket;
        }
        let halvings = bucket / HALF - 1;
        let first = bucket - halvings * HALF;
        ((first + 1) << halvings) - 1
    }

    /// Counts a latency in nanoseconds.
    #[inline]
    pub(super) fn record(&mut self, latency: u64) {
        self.counts[Self::of(latency)] += 1;
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, of) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += of;
        }
    }

    /// The buckets that hold anything, in ascending order: the longest latency of each, and
    /// how many there are in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (Self::end(bucket), *count))
    }

    /// The longest latency of the bucket in which the latency of a rank is, counted from 1; all
    /// of them are from `min` to `max`.
    pub(super) fn at_rank(&self, rank: u64, (min, max): (u64, u64)) -> u64 {
        let mut before = 0;
        // What is too long comes before some that is not.
        let last = if max > HIGHEST {
            COUNT - 1
        } else {
            Self::of(max)
        };
        for bucket in Self::of(min.min(HIGHEST))..=last {
            before += self.counts[bucket];
            if before >= rank {
                return Self::end(bucket);
            }
        }
        max
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memory_is_as_documented() {
        assert_eq!(size_of_val(&*Buckets::new().counts), 264 << 10);
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_hdr_histograms(
            latencies in prop::collection::vec(
                prop_oneof![0_u64..5_000, 0_u64..5_000_000_000_000, any::<u64>()], 1..100),
        ) {
            let mut buckets = Buckets::new();
            let mut histogram = Histogram::<u64>::new_with_bounds(1, HIGHEST, 3).unwrap();
            for &latency in &latencies {
                buckets.record(latency);
                histogram.saturating_record(latency);
            }
            let recorded = histogram.iter_recorded();
            let expected = recorded.map(|step| (step.value_iterated_to(), step.count_at_value()));
            prop_assert_eq!(buckets.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            let range = (*latencies.iter().min().unwrap(), *latencies.iter().max().unwrap());
            for rank in 1..=latencies.len() {
                let share = (rank as f64 - 0.5) / latencies.len() as f64;
                let expected = histogram.value_at_quantile(share);
                prop_assert_eq!(buckets.at_rank(rank as u64, range), expected, "rank {}", rank);
            }
        }

        #[test]
        fn each_latency_is_in_its_bucket(latency in 0_u64..4_398_046_511_104) {
            let bucket = Buckets::of(latency);
            prop_assert!(latency <= Buckets::end(bucket));
            prop_assert!(bucket == 0 || latency > Buckets::end(bucket - 1));
        }
    }
}
