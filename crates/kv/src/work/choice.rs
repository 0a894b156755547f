//! Which of the keys an operation is about.

use serde::Serialize;
use zonelab_host::rng::{Rng, mix};
use zonelab_host::workload::distribution::Zipf;

/// Ranks that YCSB's scrambled Zipfian draws from, whatever the number of keys
/// (`ScrambledZipfianGenerator.ITEM_COUNT`).
pub const SCRAMBLED_RANKS: u64 = 10_000_000_000;

/// How keys are chosen. Positions go by age: 0 is the oldest key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Every key is equally likely.
    Uniform,
    /// YCSB's scrambled Zipfian: ranks of Zipf's law over [`SCRAMBLED_RANKS`],
    /// each hashed to a key, so that the hot ones are anywhere and stay hot
    /// while others come.
    Zipfian {
        /// The exponent, above 0 and at most 100; YCSB: 0.99.
        theta: f64,
    },
    /// YCSB's latest: Zipf's law over the keys by age, the youngest first.
    Latest {
        /// The exponent, above 0 and at most 100; YCSB: 0.99.
        theta: f64,
    },
    /// The model of `db_bench mixgraph`: hot ranges of keys, and hot keys in them.
    KeyRanges(KeyRanges),
}

/// Hotness of ranges of keys, and of keys in a range (Cao et al.,
/// "Characterizing, Modeling, and Benchmarking `RocksDB` Key-Value Workloads at
/// Facebook", FAST 2020, section 6; `db_bench`'s options `keyrange_*`, `key_dist_*`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeyRanges {
    /// Number of ranges of equal size (`keyrange_num`), 1 to 65536.
    pub ranges: u32,
    /// The `x`-th hottest range has a weight of `a e^(b x) + c e^(d x)`, with `x` from 1.
    pub weights: TwoTermExponential,
    /// Hotness of the keys of a range; `None`: all are equally likely.
    pub within: Option<Power>,
}

/// `a e^(b x) + c e^(d x)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwoTermExponential {
    /// Factor of the first term.
    pub a: f64,
    /// Exponent of the first term.
    pub b: f64,
    /// Factor of the second term.
    pub c: f64,
    /// Exponent of the second term.
    pub d: f64,
}

/// A cumulative distribution of `a x^b` over ranks `x`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// Factor, above 0 (`key_dist_a`).
    pub a: f64,
    /// Exponent, above 0 (`key_dist_b`).
    pub b: f64,
}

impl TwoTermExponential {
    /// Its value at `x`; nothing below 10^-16, as in `db_bench`.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        let value = self.a * libm::exp(self.b * x) + self.c * libm::exp(self.d * x);
        if value >= 1e-16 && value.is_finite() {
            value
        } else {
            0.0
        }
    }
}

impl KeyRanges {
    /// The model of Facebook's ZippyDB by its hot ranges, "prefix-dist": the
    /// command line of the documentation of `db_bench`, which is for 50 million keys.
    pub const ZIPPYDB: Self = Self {
        ranges: 30,
        weights: TwoTermExponential {
            a: 14.18,
            b: -2.917,
            c: 0.0164,
            d: -0.08082,
        },
        within: None,
    };
}

/// Draws positions of a [`Choice`].
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Scrambled(Zipf),
    Latest(Zipf),
    KeyRanges(Ranges),
}

impl Chooser {
    /// A chooser among `n` keys at first.
    pub(super) fn new(choice: Choice, n: u64) -> Self {
        let kind = match choice {
            Choice::Uniform => Kind::Uniform,
            Choice::Zipfian { theta } => Kind::Scrambled(Zipf::new(theta, SCRAMBLED_RANKS)),
            Choice::Latest { theta } => Kind::Latest(Zipf::new(theta, n)),
            Choice::KeyRanges(ranges) => Kind::KeyRanges(Ranges::new(ranges)),
        };
        Self { kind }
    }

    /// A position below `n`, which is at least 1.
    #[inline]
    pub(super) fn next(&mut self, n: u64, rng: &mut Rng) -> u64 {
        match &mut self.kind {
            Kind::Uniform => rng.below(n),
            Kind::Scrambled(zipf) => mix(zipf.next(rng)) % n,
            Kind::Latest(zipf) => {
                if zipf.ranks() != n {
                    zipf.resize(n);
                }
                n - zipf.next(rng)
            }
            Kind::KeyRanges(ranges) => ranges.next(n, rng),
        }
    }
}

/// Ranges of keys in their order, with what they get.
#[derive(Clone, Debug)]
struct Ranges {
    /// Where the share of each range ends, in parts of the last.
    ends: Vec<u64>,
    within: Option<Power>,
}

/// Parts that the weight of all ranges together is divided into.
const PARTS: f64 = (1_u64 << 53) as f64;

impl Ranges {
    fn new(spec: KeyRanges) -> Self {
        let mut weights: Vec<f64> = (1..=spec.ranges.max(1))
            .map(|x| spec.weights.at(f64::from(x)))
            .collect();
        // Hot ranges are anywhere; the same spec has the same ones hot.
        let sum: f64 = weights.iter().sum();
        Rng::new(u64::from(spec.ranges), sum.to_bits()).shuffle(&mut weights);
        let mut so_far = 0.0;
        let mut ends: Vec<u64> = weights
            .into_iter()
            .map(|weight| {
                so_far += weight;
                // Below 2^53, or 0 if there is no weight at all.
                (so_far / sum * PARTS) as u64
            })
            .collect();
        // A spec without weights is refused; here it means the last range.
        if let Some(last) = ends.last_mut() {
            *last = PARTS as u64;
        }
        Self {
            ends,
            within: spec.within,
        }
    }

    fn next(&self, n: u64, rng: &mut Rng) -> u64 {
        let count = self.ends.len() as u64;
        let size = (n / count).max(1);
        let part = rng.below(PARTS as u64);
        let range = self.ends.partition_point(|&end| end <= part) as u64;
        let offset = match self.within {
            None => rng.below(size),
            Some(Power { a, b }) => {
                let rank = libm::ceil(libm::pow(rng.unit() / a, 1.0 / b));
                // The cast saturates.
                mix(rank as u64) % size
            }
        };
        (range * size + offset).min(n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    fn counts(choice: Choice, n: u64) -> Vec<u32> {
        let mut chooser = Chooser::new(choice, n);
        let mut rng = Rng::new(11, 0);
        let mut counts = vec![0; n as usize];
        for _ in 0..DRAWS {
            counts[chooser.next(n, &mut rng) as usize] += 1;
        }
        counts
    }

    /// The sum of Zipf's weights that YCSB has as a constant for its 10^10
    /// ranks and its exponent of 0.99.
    const YCSB_ZETAN: f64 = 26.469_028_201_783_02;

    #[test]
    fn the_hottest_key_of_ycsb_has_its_published_share() {
        let n = 1_000_003;
        let counts = counts(Choice::Zipfian { theta: 0.99 }, n);
        // The hottest ranks hash to these keys; others add next to nothing there.
        for rank in [1_u64, 2, 3, 10] {
            let key = (mix(rank) % n) as usize;
            let weight = libm::pow(rank as f64, -0.99) / YCSB_ZETAN;
            let expected = weight * f64::from(DRAWS);
            let got = f64::from(counts[key]);
            assert!(
                (got - expected).abs() < 5.0 * expected.sqrt() + 5.0,
                "rank {rank}: {got} for {expected}"
            );
        }
    }

    /// YCSB's own way (Gray et al., "Quickly generating billion-record synthetic
    /// databases", 1994) approximates Zipf's law, exactly for its first two
    /// ranks: the head and the body of our exact draws are near it.
    #[test]
    fn latest_is_near_the_generator_of_ycsb() {
        let (n, theta) = (1_000_u64, 0.99);
        let ours = counts(Choice::Latest { theta }, n);
        let zeta = |n: u64| (1..=n).map(|k| libm::pow(k as f64, -theta)).sum::<f64>();
        let (zetan, zeta2) = (zeta(n), zeta(2));
        let eta = (1.0 - libm::pow(2.0 / n as f64, 1.0 - theta)) / (1.0 - zeta2 / zetan);
        let mut theirs = vec![0_u32; n as usize];
        let mut rng = Rng::new(5, 0);
        for _ in 0..DRAWS {
            let u = rng.unit();
            let rank = match u * zetan {
                uz if uz < 1.0 => 0,
                uz if uz < 1.0 + libm::pow(0.5, theta) => 1,
                _ => (n as f64 * libm::pow(eta * u - eta + 1.0, 1.0 / (1.0 - theta))) as usize,
            };
            theirs[rank.min(n as usize - 1)] += 1;
        }
        let youngest = |range: core::ops::Range<usize>| -> f64 {
            range
                .map(|rank| f64::from(ours[n as usize - 1 - rank]))
                .sum()
        };
        let of = |range: core::ops::Range<usize>| -> f64 {
            theirs[range].iter().map(|&count| f64::from(count)).sum()
        };
        for (range, tolerance) in [(0..1, 0.02), (1..2, 0.03), (0..10, 0.06), (0..100, 0.03)] {
            let (ours, theirs) = (youngest(range.clone()), of(range.clone()));
            assert!(
                (ours / theirs - 1.0).abs() < tolerance,
                "ranks {range:?}: {ours} for {theirs}"
            );
        }
    }

    #[test]
    fn latest_follows_the_youngest() {
        let mut chooser = Chooser::new(Choice::Latest { theta: 0.99 }, 10);
        let mut rng = Rng::new(1, 0);
        for n in [10, 1_000, 100_000, 100] {
            let mut hits = 0;
            for _ in 0..10_000 {
                hits += u32::from(chooser.next(n, &mut rng) == n - 1);
            }
            let zetan: f64 = (1..=n).map(|k| libm::pow(k as f64, -0.99)).sum();
            let expected = 10_000.0 / zetan;
            let error = (f64::from(hits) - expected).abs();
            assert!(error < 5.0 * expected.sqrt(), "{n} keys: {hits}");
        }
    }

    #[test]
    fn uniform_is_uniform() {
        let counts = counts(Choice::Uniform, 100);
        let expected = f64::from(DRAWS) / 100.0;
        let chi2: f64 = counts
            .iter()
            .map(|&count| libm::pow(f64::from(count) - expected, 2.0) / expected)
            .sum();
        // 99 degrees of freedom: above 161 once in 10,000 times.
        assert!(chi2 < 161.0, "chi square {chi2}");
    }

    /// Every range gets the share that the two terms say, computed here by the
    /// formula alone.
    #[test]
    fn key_ranges_have_their_shares() {
        let spec = KeyRanges::ZIPPYDB;
        let n = 30_000_u64;
        let counts = counts(Choice::KeyRanges(spec), n);
        let mut ranges: Vec<u32> = counts.chunks(1_000).map(|keys| keys.iter().sum()).collect();
        ranges.sort_unstable_by(|a, b| b.cmp(a));
        let weight = |x: f64| 14.18 * libm::exp(-2.917 * x) + 0.0164 * libm::exp(-0.080_82 * x);
        let sum: f64 = (1..=30).map(|x| weight(f64::from(x))).sum();
        let chi2: f64 = ranges
            .iter()
            .zip(1..)
            .map(|(&count, x)| {
                let expected = weight(f64::from(x)) / sum * f64::from(DRAWS);
                libm::pow(f64::from(count) - expected, 2.0) / expected
            })
            .sum();
        // 29 degrees of freedom: above 63 once in 3,000 times. Sorting brings it down a little.
        assert!(chi2 < 63.0, "{ranges:?}: chi square {chi2}");
        // The paper's point: the hottest of 30 ranges takes most of it.
        assert!(f64::from(ranges[0]) > 0.7 * f64::from(DRAWS));
        // Within a range all are alike.
        let (hot, _) = counts
            .chunks(1_000)
            .map(|keys| (keys, keys.iter().sum::<u32>()))
            .max_by_key(|(_, sum)| *sum)
            .expect("there are 30");
        let expected = f64::from(ranges[0]) / 1_000.0;
        let chi2: f64 = hot
            .iter()
            .map(|&count| libm::pow(f64::from(count) - expected, 2.0) / expected)
            .sum();
        assert!(
            chi2 < 1_180.0,
            "chi square {chi2} of 999 degrees of freedom"
        );
    }

    /// With a power law inside, the number of keys that get a share of the
    /// draws follows it: ranks up to x get a x^b.
    #[test]
    fn hot_keys_of_a_range_follow_the_power_law() {
        let power = Power { a: 0.1, b: 0.5 }; // 100 ranks
        let spec = KeyRanges {
            ranges: 1,
            weights: KeyRanges::ZIPPYDB.weights,
            within: Some(power),
        };
        let mut counts = counts(Choice::KeyRanges(spec), 1 << 20);
        counts.retain(|&count| count > 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(counts.len(), 100, "no two ranks hash to one key here");
        let mut so_far = 0;
        for (x, count) in (1..).zip(counts) {
            so_far += count;
            let expected = 0.1 * f64::from(x).sqrt();
            let got = f64::from(so_far) / f64::from(DRAWS);
            assert!((got - expected).abs() < 0.006, "{x}: {got} for {expected}");
        }
    }

    #[test]
    fn few_keys_are_enough_for_every_choice() {
        let choices = [
            Choice::Uniform,
            Choice::Zipfian { theta: 0.99 },
            Choice::Latest { theta: 0.99 },
            Choice::KeyRanges(KeyRanges::ZIPPYDB),
        ];
        for choice in choices {
            let mut chooser = Chooser::new(choice, 1);
            let mut rng = Rng::new(3, 0);
            for n in [1, 2, 3, 29, 31] {
                assert!(
                    (0..1_000).all(|_| chooser.next(n, &mut rng) < n),
                    "{choice:?}"
                );
            }
        }
    }
}
