//! Choices that follow from the seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A sequence of choices. Whoever chooses has one of their own, which follows from the seed, their
/// name and a number, so that what one does changes nothing of what another chooses.
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64, name: &str, number: u64) -> Self {
        // FNV-1a: all it has to do is to tell names apart.
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        let numbers = number.to_le_bytes().into_iter().fold(name, fold);
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ numbers))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `first` to `last`.
    pub(crate) fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from `1 << first` to `1 << last`, small ones as often as large ones.
    pub(crate) fn magnitude(&mut self, first: u32, last: u32) -> u64 {
        let power = self.within(first.into(), u64::from(last) - 1);
        (1 << power) + self.below(1 << power)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
