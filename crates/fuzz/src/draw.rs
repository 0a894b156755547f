//! Structured values from the bytes of an input.

use std::ops::RangeInclusive;

use arbitrary::Unstructured;
use arbitrary::unstructured::Int;

/// The bytes of an input that have not been used yet.
///
/// Drawing never fails: behind the end of the input every byte is zero, which
/// gives the first value of a range and of a list, and `false`. So shorter
/// inputs are simpler, and an input can be cut anywhere.
#[derive(Debug)]
pub struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    /// Draws from `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// True if all bytes have been used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number of `range`.
    ///
    /// # Panics
    /// The range is empty.
    pub fn int<T: Int>(&mut self, range: RangeInclusive<T>) -> T {
        let first = *range.start();
        self.0.int_in_range(range).unwrap_or(first)
    }

    /// True or false.
    pub fn flag(&mut self) -> bool {
        self.int(0..=1_u8) == 1
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.int(1..=n) == n && n > 0
    }

    /// One of `values`, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.int(0..=values.len() - 1)]
    }

    /// Something or nothing.
    pub fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    /// A number of any size: small ones, edges of types and any other, each often.
    pub fn wide(&mut self) -> u64 {
        match self.int(0..=3_u8) {
            0 => self.int(0..=9),
            1 => (1_u64 << self.int(0..=63_u32)).wrapping_sub(self.int(0..=2)),
            2 => u64::MAX >> self.int(0..=63_u32),
            _ => self.int(0..=u64::MAX),
        }
    }

    /// Up to `n` bytes: fewer at the end of the input.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let n = n.min(self.0.len());
        self.0.bytes(n).unwrap_or_default()
    }
}

/// How often each of `N` kinds of things happens, drawn for a whole run: many
/// of them never, some of them much more often than others (swarm testing).
/// What happens with every kind enabled all the time looks the same each time.
#[derive(Clone, Copy, Debug)]
pub struct Weights<const N: usize>([u32; N]);

impl<const N: usize> Weights<N> {
    /// Draws the weights.
    pub fn draw(draw: &mut Draw<'_>) -> Self {
        Self(std::array::from_fn(|_| draw.pick(&[1, 0, 0, 2, 8, 32])))
    }

    /// The weights themselves.
    #[must_use]
    pub const fn values(&self) -> [u32; N] {
        self.0
    }

    /// A kind; the first if none is enabled.
    pub fn choose(&self, draw: &mut Draw<'_>) -> usize {
        let total: u32 = self.0.iter().sum();
        let mut at = draw.int(1..=total.max(1));
        for (kind, weight) in self.0.iter().enumerate() {
            if at <= *weight {
                return kind;
            }
            at -= weight;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_input_gives_the_first_of_everything() {
        let mut draw = Draw::new(&[]);
        assert_eq!(draw.int(3..=9), 3);
        assert!(!draw.flag());
        assert!(!draw.one_in(4));
        assert_eq!(draw.pick(&["a", "b"]), "a");
        assert_eq!(draw.maybe(|_| 1), None);
        assert_eq!(draw.bytes(4), &[] as &[u8]);
        assert!(draw.is_empty());
    }

    #[test]
    fn only_kinds_with_a_weight_are_chosen() {
        let weights = Weights([0, 3, 0, 1]);
        let data: Vec<u8> = (0..=255).collect();
        let mut draw = Draw::new(&data);
        let mut seen = [0; 4];
        while !draw.is_empty() {
            seen[weights.choose(&mut draw)] += 1;
        }
        assert_eq!(seen, [0, 192, 0, 64]);
        assert_eq!(Weights([0; 3]).choose(&mut Draw::new(&[7])), 0);
    }
}
