//! Choices from a seed.

use zonelab_host::Rng;

/// Draws what a case is made of.
#[derive(Clone, Debug)]
pub struct Draw(Rng);

impl Draw {
    /// The choices of a seed; streams of one seed are independent.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self(Rng::new(seed, stream))
    }

    /// A number in a range, ends included.
    pub const fn int(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    /// One of these, each equally likely. An item that is there twice is twice as likely.
    ///
    /// # Panics
    /// There is none.
    pub const fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u64) as usize]
    }

    /// True once in `n` times.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.0.ratio(1, n)
    }

    /// Either.
    pub const fn flag(&mut self) -> bool {
        self.one_in(2)
    }

    /// A divisor of a number.
    pub fn divisor(&mut self, of: u64) -> u64 {
        let divisors: Vec<u64> = (1..=of).filter(|part| of.is_multiple_of(*part)).collect();
        self.of(&divisors)
    }

    /// A time as a profile states it: a multiple of 1,024 ns, so that what is charged for a part
    /// of a page or of a KiB is a whole number of nanoseconds.
    pub fn time(&mut self, least_us: u64, most_us: u64) -> String {
        let (least, most) = (least_us * 1_000 / 1_024, most_us * 1_000 / 1_024);
        format!("{}ns", self.int(least, most.max(least + 1)) * 1_024)
    }
}
