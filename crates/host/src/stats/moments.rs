//! Exact count, mean, deviation and extremes of integer samples.

/// What can be said of a series of samples without keeping them.
///
/// Sums are integers, so the order of samples (and of merges) cannot change a
/// result; floating point is only used for what is read out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    sum: u128,
    /// Saturates; until then (2^128) it is exact.
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            sum_of_squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Moments {
    /// Those of so many zeros.
    #[must_use]
    pub fn of_zeros(count: u64) -> Self {
        Self {
            count,
            min: if count > 0 { 0 } else { u64::MAX },
            ..Self::default()
        }
    }

    /// Those of some samples, as if they were added one by one.
    #[must_use]
    pub fn of(samples: &[u64]) -> Self {
        // Fewer samples, all below this, have sums of squares of 64 bits.
        const SMALL: u64 = 1 << 29;
        let mut moments = Self::default();
        let max = samples.iter().copied().max().unwrap_or(0);
        if max >= SMALL || samples.len() > 64 {
            samples.iter().for_each(|&sample| moments.add(sample));
            return moments;
        }
        let (mut sum, mut squares) = (0_u64, 0_u64);
        for &sample in samples {
            // Nothing wraps, and without a check several are added at a time.
            sum = sum.wrapping_add(sample);
            squares = squares.wrapping_add(sample.wrapping_mul(sample));
            moments.min = moments.min.min(sample);
        }
        moments.count = samples.len() as u64;
        (moments.sum, moments.sum_of_squares) = (sum.into(), squares.into());
        moments.max = max;
        moments
    }

    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, sample: u64) {
        let wide = u128::from(sample);
        self.count += 1;
        self.sum += wide;
        self.sum_of_squares = self.sum_of_squares.saturating_add(wide * wide);
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            count,
            sum,
            sum_of_squares,
            min,
            max,
        } = other;
        self.count += count;
        self.sum += sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(*sum_of_squares);
        self.min = self.min.min(*min);
        self.max = self.max.max(*max);
    }

    /// Number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the samples.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest sample. `None` without samples.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest sample. `None` without samples.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean. `None` without samples.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample standard deviation (divisor `n - 1`, as fio's); 0 for one
    /// sample, `None` without samples.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        if self.count < 2 {
            return (self.count == 1).then_some(0.0);
        }
        // Squared deviations from the integer part of the mean, so that
        // nothing cancels in floating point; then from the mean itself.
        let count = u128::from(self.count);
        let (floor, rest) = (self.sum / count, self.sum % count);
        let about_zero = floor.saturating_mul(self.sum.saturating_add(rest));
        let about_floor = self.sum_of_squares.saturating_sub(about_zero);
        let rest = rest as f64;
        let about_mean = (about_floor as f64 - rest * rest / self.count as f64).max(0.0);
        Some((about_mean / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moments(samples: &[u64]) -> Moments {
        let mut moments = Moments::default();
        samples.iter().for_each(|&s| moments.add(s));
        moments
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
    }

    #[test]
    fn empty_and_single_series() {
        let none = Moments::default();
        assert_eq!((none.count(), none.min(), none.max()), (0, None, None));
        assert_eq!((none.mean(), none.stddev()), (None, None));
        let one = moments(&[7]);
        assert_eq!((one.min(), one.max()), (Some(7), Some(7)));
        assert_eq!((one.mean(), one.stddev()), (Some(7.0), Some(0.0)));
    }

    #[test]
    fn textbook_series() {
        // Deviations -3, -1, -1, -1, 0, 0, 2, 4: squares 32, divided by 7.
        let series = moments(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(series.mean(), Some(5.0));
        assert!(close(series.stddev().unwrap(), (32.0_f64 / 7.0).sqrt()));
    }

    #[test]
    fn a_large_offset_does_not_cancel() {
        // Naive doubles lose all digits here: the squares differ in the 19th.
        let offset = 1_000_000_000_000;
        let series = moments(&[offset, offset + 1, offset + 2, offset + 4]);
        assert!(close(series.stddev().unwrap(), (8.75_f64 / 3.0).sqrt()));
    }

    #[test]
    fn as_many_as_are_small_have_squares_of_64_bits() {
        let most = [(1 << 29) - 1; 64];
        assert_eq!(Moments::of(&most), moments(&most));
    }

    #[test]
    fn extreme_samples_do_not_overflow() {
        let series = moments(&[u64::MAX; 100]);
        assert_eq!(series.max(), Some(u64::MAX));
        assert!(close(series.mean().unwrap(), u64::MAX as f64));
        assert!(series.stddev().unwrap().is_finite());
    }

    proptest! {
        #[test]
        fn agree_with_two_passes(samples in prop::collection::vec(0_u64..1_000_000, 2..100)) {
            let n = samples.len() as f64;
            let mean = samples.iter().sum::<u64>() as f64 / n;
            let squares: f64 = samples.iter().map(|&s| libm::pow(s as f64 - mean, 2.0)).sum();
            let got = moments(&samples);
            prop_assert!(close(got.mean().unwrap(), mean));
            prop_assert!((got.stddev().unwrap() - (squares / (n - 1.0)).sqrt()).abs() < 1e-6);
        }

        #[test]
        fn merging_is_adding(a: Vec<u32>, b: Vec<u32>) {
            let [a, b] = [a, b].map(|v| v.into_iter().map(u64::from).collect::<Vec<_>>());
            let mut merged = moments(&a);
            merged.merge(&moments(&b));
            prop_assert_eq!(merged, moments(&[a, b].concat()));
        }

        #[test]
        fn together_they_are_what_they_are_one_by_one(
            samples in prop::collection::vec(
                prop_oneof![0_u64..1 << 29, 0_u64..1 << 32, any::<u64>()], 0..70),
            small in prop::collection::vec(0_u64..1 << 29, 0..70),
        ) {
            prop_assert_eq!(Moments::of(&samples), moments(&samples));
            prop_assert_eq!(Moments::of(&small), moments(&small));
            let zeros = vec![0; small.len()];
            prop_assert_eq!(Moments::of_zeros(zeros.len() as u64), moments(&zeros));
        }
    }
}
