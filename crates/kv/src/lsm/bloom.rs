//! Bloom filters within cache lines.
//!
//! The kind of `RocksDB`'s format version 5: a key sets all its bits within one
//! line of 64 bytes, so that a query touches one line of memory. Putze,
//! Sanders and Singler, "Cache-, hash- and space-efficient bloom filters",
//! 2007. The filters are also there on devices without data: they decide which
//! tables are read.

/// Bits of a line.
const LINE_BITS: u64 = 512;

/// A hash of a key, for all filters that it is looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// CRC-32C, spread over 64 bits by the output function of `SplitMix64`. Two keys of a
    /// table of a million agree in 32 bits once in 4,000 pairs with a table's
    /// key, far below the rate of the filter itself.
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut z = u64::from(crc32c::crc32c(key)) | (key.len() as u64) << 32;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }
}

/// Which keys a table may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Empty: every key may be there.
    words: Vec<u64>,
    probes: u32,
}

impl Filter {
    /// A filter for these keys.
    pub(crate) fn new(hashes: &[KeyHash], bits_per_key: u32) -> Self {
        if bits_per_key == 0 || hashes.is_empty() {
            return Self::default();
        }
        let bits = hashes.len() as u64 * u64::from(bits_per_key);
        let lines = bits.div_ceil(LINE_BITS);
        let mut filter = Self {
            words: vec![0; (lines * LINE_BITS / 64) as usize],
            probes: probes(bits_per_key),
        };
        for &hash in hashes {
            let (line, mut bits) = filter.place(hash);
            for _ in 0..filter.probes {
                let bit = bits.next_bit();
                filter.words[line + (bit >> 6)] |= 1 << (bit & 63);
            }
        }
        filter
    }

    #[inline]
    fn place(&self, KeyHash(hash): KeyHash) -> (usize, Bits) {
        let lines = self.words.len() as u64 / (LINE_BITS / 64);
        let line = ((hash >> 32) * lines) >> 32;
        ((line * (LINE_BITS / 64)) as usize, Bits(hash as u32))
    }

    /// Whether the key may be there; never false for one that is.
    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let (line, mut bits) = self.place(hash);
        (0..self.probes).all(|_| {
            let bit = bits.next_bit();
            self.words[line + (bit >> 6)] >> (bit & 63) & 1 == 1
        })
    }

    /// Bytes in a table.
    pub(crate) fn encoded_len(&self) -> usize {
        4 + self.words.len() * 8
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.probes.to_le_bytes());
        for word in &self.words {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// `None`: these bytes are no filter.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (probes, words) = bytes.split_first_chunk::<4>()?;
        let (words, rest) = words.as_chunks::<8>();
        let probes = u32::from_le_bytes(*probes);
        let is_whole = words.len() % (LINE_BITS as usize / 64) == 0;
        (rest.is_empty() && is_whole && probes <= 30).then(|| Self {
            words: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
            probes,
        })
    }
}

/// Probes that are best for so many bits of a key: ln 2 of them, rounded down,
/// as the lines make long filters a little worse.
fn probes(bits_per_key: u32) -> u32 {
    (bits_per_key * 693 / 1000).clamp(1, 30)
}

/// The bits of a key within its line.
struct Bits(u32);

impl Bits {
    #[inline]
    fn next_bit(&mut self) -> usize {
        // Nine bits from the top, which the multiplication mixes best.
        let bit = self.0 >> 23;
        self.0 = self.0.wrapping_mul(0x9e37_79b9);
        bit as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(keys: std::ops::Range<u64>) -> Vec<KeyHash> {
        keys.map(|key| KeyHash::of(&key.to_be_bytes())).collect()
    }

    #[test]
    fn every_key_is_found_and_one_in_a_hundred_strangers() {
        for count in [1, 63, 1_000, 60_000] {
            let inside = hashes(0..count);
            let filter = Filter::new(&inside, 10);
            assert!(inside.iter().all(|&hash| filter.may_contain(hash)));
            let strangers = hashes(1 << 40..(1 << 40) + 100_000);
            let found = strangers.iter().filter(|&&h| filter.may_contain(h)).count();
            // 10 bits and 6 probes: 0.84 %, and some more for the lines.
            assert!(found < 1_500, "{found} of 100,000 with {count} keys");
        }
    }

    #[test]
    fn a_filter_reads_back() {
        let filter = Filter::new(&hashes(0..1_000), 10);
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(bytes.len(), filter.encoded_len());
        assert_eq!(Filter::decode(&bytes), Some(filter));
        assert_eq!(Filter::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Filter::decode(&[]), None);
    }

    #[test]
    fn without_bits_everything_may_be_there() {
        assert!(Filter::new(&hashes(0..10), 0).may_contain(KeyHash::of(b"stranger")));
    }
}
