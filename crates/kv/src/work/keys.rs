//! The keys that there are, and what they look like.

use zonelab_host::rng::mix;

/// Where keys lie among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// In the order in which they were made: those of `db_bench`.
    ByAge,
    /// Anywhere: the hashed keys of YCSB, the random ones of `KVBench`.
    Scattered,
}

/// Bytes of a key that tell it from others; what follows is padding.
pub const DISTINCT_BYTES: usize = 8;

impl KeyOrder {
    /// The bytes of key number `id` that tell it from all others.
    #[inline]
    #[must_use]
    pub const fn distinct(self, id: u64) -> [u8; DISTINCT_BYTES] {
        match self {
            Self::ByAge => id.to_be_bytes(),
            Self::Scattered => mix(id).to_be_bytes(),
        }
    }

    /// Key number `id` in `key`, which has at least [`DISTINCT_BYTES`]. The padding is
    /// that of `db_bench`, zeros as text.
    pub fn write(self, id: u64, key: &mut [u8]) {
        let (distinct, padding) = key.split_at_mut(DISTINCT_BYTES.min(key.len()));
        distinct.copy_from_slice(&self.distinct(id)[..distinct.len()]);
        padding.fill(b'0');
    }
}

/// The keys that operations choose from, by position.
#[derive(Clone, Debug)]
pub struct KeySpace {
    /// Keys made so far.
    made: u64,
    /// Those that live, if any was deleted ever; otherwise all.
    live: Option<Vec<u32>>,
}

impl KeySpace {
    /// `records` keys. With `deletes`, which costs four bytes per key, keys can be removed.
    #[must_use]
    pub fn new(records: u64, deletes: bool) -> Self {
        Self {
            made: records,
            // Fits: a workload has at most `MAX_OPERATIONS` keys.
            live: deletes.then(|| (0..records as u32).collect()),
        }
    }

    /// Number of keys that live.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.live
            .as_ref()
            .map_or(self.made, |live| live.len() as u64)
    }

    /// No key lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes a key.
    pub fn insert(&mut self) -> u64 {
        let id = self.made;
        self.made += 1;
        if let Some(live) = &mut self.live {
            live.push(id as u32);
        }
        id
    }

    /// The key at `position`, below [`Self::len`]. Without deletes positions go by age.
    #[inline]
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        self.live
            .as_ref()
            .map_or(position, |live| u64::from(live[position as usize]))
    }

    /// Takes the key at `position` away; the youngest takes its place.
    pub fn remove(&mut self, position: u64) -> u64 {
        match &mut self.live {
            Some(live) => u64::from(live.swap_remove(position as usize)),
            None => position,
        }
    }
}

/// An order of `0..n` that looks random: a Feistel network of four rounds over
/// the next power of four, whose values beyond `n` are walked past. Takes no memory.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// An order of `0..n`, another for every `key`.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).clamp(1, 31),
            key,
        }
    }

    /// What comes at place `i`, below `n`.
    #[must_use]
    pub const fn at(&self, i: u64) -> u64 {
        let mut value = self.scramble(i);
        while value >= self.n {
            value = self.scramble(value);
        }
        value
    }

    const fn scramble(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits & mask, value & mask);
        let mut round = 1;
        while round <= 4 {
            let hash = mix(right.wrapping_add(self.key.wrapping_mul(round)) ^ round << 60);
            (left, right) = (right, left ^ hash & mask);
            round += 1;
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_every_number_once() {
        for n in [1_u64, 2, 3, 10, 64, 1_000, 65_537] {
            let order = Permutation::new(n, 7);
            let mut values: Vec<u64> = (0..n).map(|i| order.at(i)).collect();
            values.sort_unstable();
            assert_eq!(values, (0..n).collect::<Vec<_>>());
        }
    }

    /// Neighbours in the order are no neighbours in value, and keys differ.
    #[test]
    fn a_permutation_looks_random() {
        let n = 100_000_u64;
        let order = Permutation::new(n, 3);
        let rises = (1..n).filter(|&i| order.at(i) > order.at(i - 1)).count();
        // A random order rises half the time: standard deviation sqrt(n / 12) = 91.
        assert!(rises.abs_diff(50_000) < 500, "{rises}");
        let gaps: f64 = (1..n)
            .map(|i| order.at(i).abs_diff(order.at(i - 1)) as f64)
            .sum();
        let mean = gaps / n as f64;
        assert!((mean - n as f64 / 3.0).abs() < 500.0, "{mean}");
        let other = Permutation::new(n, 4);
        let same = (0..n).filter(|&i| order.at(i) == other.at(i)).count();
        assert!(same < 10, "{same} places agree");
    }

    #[test]
    fn deleted_keys_are_chosen_no_more() {
        let mut space = KeySpace::new(3, true);
        assert_eq!(space.insert(), 3);
        assert_eq!(space.remove(1), 1);
        let left: Vec<u64> = (0..space.len())
            .map(|position| space.at(position))
            .collect();
        assert_eq!(left, [0, 3, 2]);
        assert_eq!(space.insert(), 4, "numbers are not used again");
    }

    #[test]
    fn keys_are_padded_and_distinct() {
        let mut key = [0; 12];
        KeyOrder::ByAge.write(258, &mut key);
        assert_eq!(&key, &[0, 0, 0, 0, 0, 0, 1, 2, b'0', b'0', b'0', b'0']);
        let mut all: Vec<_> = (0..10_000)
            .map(|id| KeyOrder::Scattered.distinct(id))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10_000);
    }
}
