//! Seeded draws: faults, and variation of times.

use zonelab_device::Nanos;

/// What SplitMix64 adds to its state per output: 2^64 over the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A small seeded generator: SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014). The same seed gives the same draws
/// on every machine. Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The generator of a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`, which is not 0; its bias is below `n / 2^64`.
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// A time up to `ppm` parts per million (at most all of it) longer or
    /// shorter than `time`, evenly distributed.
    pub(crate) const fn vary(&mut self, time: Nanos, ppm: u32) -> Nanos {
        // Fits: times that vary are far below 2^40 ns.
        let width = (time.0 as u128 * ppm as u128 / 1_000_000) as u64;
        Nanos(time.0 - width + self.below(2 * width + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 1234567, as other implementations publish them.
    #[test]
    fn it_is_splitmix64() {
        let mut draw = Draw::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(
            [draw.next_u64(), draw.next_u64(), draw.next_u64()],
            expected
        );
    }
}
