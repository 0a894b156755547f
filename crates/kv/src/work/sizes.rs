//! Sizes of values, and lengths of scans.

use serde::Serialize;
use zonelab_host::rng::Rng;

/// A distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// From `min` to `max`, each equally likely.
    Uniform {
        /// The smallest.
        min: u32,
        /// The largest, not below `min`.
        max: u32,
    },
    /// The generalised Pareto distribution of `db_bench mixgraph`, rounded up
    /// (location 0). What exceeds `max` begins anew from 0, as it does there,
    /// and what is below `min` is `min`.
    Pareto {
        /// Shape (`value_k`, `iter_k`), not 0.
        k: f64,
        /// Scale (`value_sigma`, `iter_sigma`), above 0.
        sigma: f64,
        /// The smallest.
        min: u32,
        /// The modulus, above `min`.
        max: u32,
    },
}

impl Sizes {
    /// Values of Facebook's ZippyDB, as `db_bench`'s documentation has them.
    pub const ZIPPYDB_VALUES: Self = Self::Pareto {
        k: 0.2615,
        sigma: 25.45,
        min: 10,
        max: 1 << 20,
    };

    /// Scans of Facebook's ZippyDB, as `db_bench`'s documentation has them.
    pub const ZIPPYDB_SCANS: Self = Self::Pareto {
        k: 2.517,
        sigma: 14.236,
        min: 1,
        max: 10_000,
    };

    /// The next size.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u32 {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { min, max } => {
                let span = u64::from(max.saturating_sub(min)) + 1;
                min.saturating_add(rng.below(span) as u32)
            }
            Self::Pareto { k, sigma, min, max } => {
                // In (0, 1]: 0 would be infinite.
                let u = 1.0 - rng.unit();
                let size = libm::ceil(sigma * (libm::pow(u, -k) - 1.0) / k);
                // The cast saturates.
                ((size as u64 % u64::from(max.max(1))) as u32).max(min)
            }
        }
    }

    /// The largest that can come.
    #[must_use]
    pub const fn largest(&self) -> u32 {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { max, .. } | Self::Pareto { max, .. } => max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sizes: Sizes) -> Vec<u32> {
        let mut rng = Rng::new(4, 0);
        let mut sample: Vec<u32> = (0..100_000).map(|_| sizes.next(&mut rng)).collect();
        sample.sort_unstable();
        sample
    }

    /// Quantiles of the generalised Pareto distribution in closed form, by
    /// the distance of Kolmogorov and Smirnov.
    #[test]
    fn values_of_mixgraph_are_distributed_as_stated() {
        let Sizes::Pareto { k, sigma, .. } = Sizes::ZIPPYDB_VALUES else {
            unreachable!("it is one");
        };
        let sample = sample(Sizes::ZIPPYDB_VALUES);
        let n = sample.len() as f64;
        for size in [11_u32, 20, 26, 50, 100, 200, 400] {
            let below = sample.partition_point(|&s| s <= size) as f64 / n;
            let exact = 1.0 - libm::pow(1.0 + k * f64::from(size) / sigma, -1.0 / k);
            // Once in 10,000 times beyond 2.2 / sqrt(n).
            assert!((below - exact).abs() < 0.007, "{size}: {below} for {exact}");
        }
        // The paper's mean of values is some tens of bytes: sigma / (1 - k) and a little.
        let mean = sample.iter().map(|&s| f64::from(s)).sum::<f64>() / n;
        assert!((34.0..38.0).contains(&mean), "{mean}");
    }

    #[test]
    fn long_scans_begin_anew() {
        let sample = sample(Sizes::ZIPPYDB_SCANS);
        assert_eq!(sample.first(), Some(&1));
        assert!(sample.last().is_some_and(|&longest| longest < 10_000));
        let median = sample[sample.len() / 2];
        // sigma (2^k - 1) / k = 26.7, rounded up; the twentieth that begins anew lies above.
        assert!((26..=28).contains(&median), "{median}");
    }

    #[test]
    fn uniform_has_its_bounds() {
        let sample = sample(Sizes::Uniform { min: 1, max: 100 });
        assert_eq!((sample[0], sample[sample.len() - 1]), (1, 100));
        let mean = sample.iter().map(|&s| f64::from(s)).sum::<f64>() / sample.len() as f64;
        assert!((mean - 50.5).abs() < 0.5, "{mean}");
    }
}
