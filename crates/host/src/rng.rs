//! Randomness that is the same everywhere.
//!
//! Every random choice of an experiment comes from an [`Rng`] that was made
//! from the experiment's seed and the number of the job that draws from it.
//! The output is part of the file formats of this project: **the same seed and
//! stream give the same values on every machine and in every release.** Tests
//! pin them to the published reference output, so an accident cannot change
//! them.
//!
//! The generator is xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear
//! pseudorandom number generators", 2021), its state filled by SplitMix64 as
//! its authors advise. It is own code because general-purpose libraries
//! reserve the right to change values between releases. Not for secrets.

mod logarithm;

use zonelab_device::Nanos;

/// What SplitMix64 adds to its state per output: 2^64 divided by the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seeded generator of random numbers: xoshiro256++.
///
/// ```
/// use zonelab_host::rng::Rng;
///
/// let mut rng = Rng::new(42, 0);
/// let zone = rng.below(904);
/// assert!(zone < 904);
/// assert_eq!(Rng::new(42, 0).below(904), zone, "same seed, same choice");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of `stream` under `seed`; jobs take their number as stream.
    ///
    /// Streams of one seed start at different points of one sequence of
    /// 2^256 - 1 values. The points are pseudorandom, so that two of a million
    /// streams come within 2^64 draws of each other with a probability below
    /// 2^-150. Every pair of arguments is valid, zeros included.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        // `mix` is a bijection with mix(0) = 0: streams of a seed never share
        // a key, and stream 0 is the seeding that other libraries use.
        let key = seed ^ mix(stream);
        let mut state = [0; 4];
        let mut i = 0;
        while i < 4 {
            state[i] = mix(key.wrapping_add(GOLDEN_GAMMA.wrapping_mul(i as u64 + 1)));
            i += 1;
        }
        // Never all zero, which would be a fixed point: `mix` maps four
        // different inputs to four different words.
        Self { state }
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `n - 1`, each equally likely; 0 if `n` is 0.
    ///
    /// Unbiased (Lemire, "Fast random integer generation in an interval",
    /// 2019): almost always one multiplication, no division.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        let mut product = self.next_u64() as u128 * n as u128;
        if (product as u64) < n {
            // 2^64 mod n: that many low words are one too many.
            let excess = n.wrapping_neg() % n;
            while (product as u64) < excess {
                product = self.next_u64() as u128 * n as u128;
            }
        }
        (product >> 64) as u64
    }

    /// True with probability `num / den`: never if `num` is 0, always if it is
    /// `den` or more.
    #[inline]
    pub const fn ratio(&mut self, num: u64, den: u64) -> bool {
        self.below(den) < num
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Puts `items` into a random order, each order equally likely
    /// (Fisher and Yates, from the last item down).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// A span from the exponential distribution with this mean, rounded to the
    /// nanosecond: the time between arrivals of a Poisson process.
    ///
    /// At most 36.74 times the mean, as the uniform number behind it has 53 bits.
    #[inline]
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        // Uniform in (0, 1]: the logarithm of 0 would be infinite.
        // Fits: it has 54 bits at most, and the signed conversion is one instruction.
        let number = ((self.next_u64() >> 11) + 1) as i64;
        let uniform = number as f64 * (1.0 / (1_u64 << 53) as f64);
        let mean = mean.0 as f64;
        let span = mean * logarithm::negative_log(uniform) + 0.5;
        // Twice what the logarithm can be off by, since the exact one is rounded, too.
        let margin = mean * (2.0 * logarithm::ERROR);
        if span < QUICK_MAX {
            let whole = span as i64;
            let rest = span - whole as f64;
            // Neither the nanosecond before nor the next is meant.
            if rest > margin && rest < 1.0 - margin {
                return Nanos(whole as u64);
            }
        }
        exactly(mean, uniform)
    }
}

/// Spans up to here are whole numbers of nanoseconds between which there are others.
const QUICK_MAX: f64 = (1_u64 << 45) as f64;

/// The span that belongs to a uniform number, to the nanosecond.
#[cold]
fn exactly(mean: f64, uniform: f64) -> Nanos {
    // The logarithm of `libm`, not of the platform: its bits are the same everywhere.
    let span = mean * -libm::log(uniform);
    // The cast saturates.
    Nanos((span + 0.5) as u64)
}

/// A bijection of 64-bit numbers that scatters neighbours: the output function of
/// SplitMix64 (Steele, Lea and Flood, 2014, in Stafford's variant 13). 0 stays 0.
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng as RngTrait, SeedableRng};

    // By name: proptest's prelude has an `Rng` too.
    use super::{Nanos, Rng};

    /// Output of the authors' `xoshiro256plusplus.c` for the state 1, 2, 3, 4.
    const REFERENCE_XOSHIRO: [u64; 10] = [
        41_943_041,
        58_720_359,
        3_588_806_011_781_223,
        3_591_011_842_654_386,
        9_228_616_714_210_784_205,
        9_973_669_472_204_895_162,
        14_011_001_112_246_962_877,
        12_406_186_145_184_390_807,
        15_849_039_046_786_891_736,
        10_450_023_813_501_588_000,
    ];

    /// Output of the authors' `splitmix64.c` for this state.
    const REFERENCE_SPLITMIX_SEED: u64 = 1_477_776_061_723_855_037;
    const REFERENCE_SPLITMIX: [u64; 4] = [
        1_985_237_415_132_408_290,
        2_979_275_885_539_914_483,
        13_511_426_838_097_143_398,
        8_488_337_342_461_049_707,
    ];

    #[test]
    fn generator_matches_the_reference_implementation() {
        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        assert_eq!([(); 10].map(|()| rng.next_u64()), REFERENCE_XOSHIRO);
    }

    #[test]
    fn seeding_matches_the_reference_implementation() {
        assert_eq!(
            Rng::new(REFERENCE_SPLITMIX_SEED, 0).state,
            REFERENCE_SPLITMIX
        );
    }

    /// Files written by one release must mean the same to the next.
    #[test]
    fn derived_values_never_change() {
        let mut rng = Rng::new(7, 3);
        assert_eq!([(); 4].map(|()| rng.below(904)), [62, 380, 310, 831]);
        let mut order: Vec<u32> = (0..8).collect();
        rng.shuffle(&mut order);
        assert_eq!(order, [6, 5, 1, 3, 0, 4, 7, 2]);
        let mean = Nanos::from_us(100);
        assert_eq!(
            [(); 4].map(|()| rng.exponential(mean).0),
            [237_690, 21_787, 92_678, 116_295]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The quick logarithm changes nothing.
        #[test]
        fn spans_are_those_of_the_exact_logarithm(seed: u64, mean: u64, shift in 0_u32..64) {
            let (mut rng, mut same) = (Rng::new(seed, 0), Rng::new(seed, 0));
            for mean in [mean >> shift, 300, 1] {
                for _ in 0..100 {
                    let uniform =
                        ((same.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
                    let exact = super::exactly(mean as f64, uniform);
                    prop_assert_eq!(rng.exponential(Nanos(mean)), exact);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_another_implementation(seed: u64) {
            let mut ours = Rng::new(seed, 0);
            let mut theirs = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..100 {
                prop_assert_eq!(ours.next_u64(), RngTrait::next_u64(&mut theirs));
            }
        }

        #[test]
        fn below_stays_below(seed: u64, n in 1_u64..) {
            let mut rng = Rng::new(seed, 0);
            for _ in 0..20 {
                prop_assert!(rng.below(n) < n);
            }
        }

        #[test]
        fn shuffle_keeps_every_item(seed: u64, len in 0_usize..200) {
            let mut items: Vec<usize> = (0..len).collect();
            Rng::new(seed, 0).shuffle(&mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn streams_of_a_seed_differ(seed: u64, a: u64, b: u64) {
            prop_assume!(a != b);
            prop_assert_ne!(Rng::new(seed, a), Rng::new(seed, b));
        }
    }

    #[test]
    fn neighbouring_streams_are_not_correlated() {
        // Bits in which the outputs of streams 0 and 1 differ: binomial(64 n, 1/2).
        let (mut a, mut b) = (Rng::new(0, 0), Rng::new(0, 1));
        let n = 10_000;
        let differing: u32 = (0..n)
            .map(|_| (a.next_u64() ^ b.next_u64()).count_ones())
            .sum();
        // Five standard deviations of sqrt(64 n) / 2.
        assert!(
            differing.abs_diff(32 * n) < 2_000,
            "{differing} of {} bits differ",
            64 * n
        );
    }

    #[test]
    fn below_has_no_bias() {
        // 3 * 2^62: without rejection, numbers in every third place would be
        // twice as likely as their neighbours.
        let n = 3_u64 << 62;
        let mut rng = Rng::new(1, 0);
        let mut by_remainder = [0_u32; 3];
        for _ in 0..30_000 {
            by_remainder[(rng.below(n) % 3) as usize] += 1;
        }
        for count in by_remainder {
            // Six standard deviations of sqrt(30000 * 2 / 9).
            assert!(count.abs_diff(10_000) < 490, "{by_remainder:?}");
        }
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(2, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // Chi square with 9 degrees of freedom exceeds 33.7 once in 10,000 times.
        let chi2: f64 = counts
            .iter()
            .map(|&c| libm::pow(f64::from(c) - 1e4, 2.0) / 1e4)
            .sum();
        assert!(chi2 < 33.7, "{counts:?}: chi square {chi2}");
    }

    #[test]
    fn shuffle_reaches_every_order_equally() {
        let mut rng = Rng::new(3, 0);
        let mut counts = [0_u32; 27];
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            counts[items[0] * 9 + items[1] * 3 + items[2]] += 1;
        }
        let reached: Vec<u32> = counts.into_iter().filter(|&c| c > 0).collect();
        assert_eq!(reached.len(), 6);
        // Six standard deviations of sqrt(60000 * 5 / 36).
        assert!(
            reached.iter().all(|c| c.abs_diff(10_000) < 550),
            "{reached:?}"
        );
    }

    #[test]
    fn ratio_has_its_probability() {
        let mut rng = Rng::new(4, 0);
        assert!((0..1_000).all(|_| !rng.ratio(0, 5)), "0 of 5 is never");
        assert!((0..1_000).all(|_| rng.ratio(5, 5)), "5 of 5 is always");
        let hits = (0..100_000).filter(|_| rng.ratio(1, 4)).count();
        assert!(hits.abs_diff(25_000) < 820, "{hits} of 100000 at 1/4");
    }

    #[test]
    fn empty_ranges_are_harmless() {
        let mut rng = Rng::new(5, 0);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert!(!rng.ratio(0, 0));
        rng.shuffle::<u8>(&mut []);
        assert_eq!(rng.exponential(Nanos::ZERO), Nanos::ZERO);
        assert!(rng.exponential(Nanos::MAX) > Nanos::ZERO);
    }

    #[test]
    fn exponential_has_its_mean_and_tail() {
        let mut rng = Rng::new(6, 0);
        let (n, mean) = (200_000_u64, 10_000_u64);
        let spans: Vec<u64> = (0..n).map(|_| rng.exponential(Nanos(mean)).0).collect();
        let sum: u64 = spans.iter().sum();
        // The mean of n draws has a standard deviation of mean / sqrt(n), here 22.
        assert!((sum / n).abs_diff(mean) < 110, "mean {}", sum / n);
        // P(X > 3 mean) = exp(-3) = 4.98 %.
        let tail = spans.iter().filter(|&&s| s > 3 * mean).count();
        assert!(tail.abs_diff(9_957) < 490, "{tail} beyond three means");
    }
}
