//! Keys with their versions, as every part of the tree sees them.

use core::cmp::Ordering;

use crate::Content;

/// Longest key, in bytes: its length is stored in 16 bits.
pub const KEY_LEN_MAX: usize = 0xffff;

/// Longest value, in bytes.
pub const VALUE_LEN_MAX: usize = 1 << 28;

/// A value that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Its bytes. A store on a device without data takes their number.
    Bytes(&'a [u8]),
    /// So many bytes, of which nothing is known: for devices without data.
    Sized(u32),
}

impl Value<'_> {
    /// Number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            // What is stored was checked against `VALUE_LEN_MAX`.
            Self::Bytes(bytes) => bytes.len() as u32,
            Self::Sized(len) => *len,
        }
    }

    /// No bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn to_content(self) -> Content {
        match self {
            Self::Bytes(bytes) => Content::Bytes(bytes.to_vec()),
            Self::Sized(len) => Content::Sized(u64::from(len)),
        }
    }
}

/// Sequence number and kind of a version: `sequence << 8 | kind`, so that the
/// newer of two versions has the larger tag (`RocksDB` packs them the same way).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(pub(crate) u64);

impl Tag {
    /// Above every tag there is.
    pub(crate) const MAX: Self = Self(u64::MAX);
    /// Largest sequence number.
    pub(crate) const SEQUENCE_MAX: u64 = (1 << 56) - 1;

    pub(crate) fn put(sequence: u64) -> Self {
        Self(sequence << 8 | 1)
    }

    pub(crate) fn delete(sequence: u64) -> Self {
        Self(sequence << 8)
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> 8
    }

    #[inline]
    pub(crate) fn is_delete(self) -> bool {
        self.0 & 0xff == 0
    }
}

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: Tag,
    /// Of a tombstone: nothing.
    pub(crate) value: Value<'a>,
}

/// The first eight bytes of a key as a number that sorts as they do, zeros for
/// what a shorter key lacks: most comparisons end here.
#[inline]
pub(crate) fn prefix_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// Whether a key comes before another.
#[inline]
pub(crate) fn is_before(a: &[u8], b: &[u8]) -> bool {
    match prefix_of(a).cmp(&prefix_of(b)) {
        Ordering::Equal => a < b,
        by_prefix => by_prefix.is_lt(),
    }
}

/// Whether both are the same key.
#[inline]
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && prefix_of(a) == prefix_of(b) && (a.len() <= 8 || a == b)
}

/// Makes `kept` a copy of `key`. That keys of eight bytes follow each other is usual, and then
/// it is one instruction.
#[inline]
pub(crate) fn keep_key(kept: &mut Vec<u8>, key: &[u8]) {
    if let (Ok(kept), Ok(key)) = (<&mut [u8; 8]>::try_from(&mut kept[..]), key.try_into()) {
        *kept = key;
    } else {
        kept.clear();
        kept.extend_from_slice(key);
    }
}

/// Keys one after the other, in one piece of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    pub(crate) fn push(&mut self, key: &[u8]) {
        match <[u8; 8]>::try_from(key) {
            Ok(key) => self.bytes.extend_from_slice(&key),
            Err(_) => self.bytes.extend_from_slice(key),
        }
        self.ends
            .push(u32::try_from(self.bytes.len()).expect("a table has less than 4 GiB of keys"));
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> &[u8] {
        let from = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[from as usize..self.ends[index] as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The first index whose key is not below `key`; [`Self::len`]: none.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.lower_bound_in(key, 0, self.len())
    }

    /// As [`Self::lower_bound`], among the indices `from..to`.
    #[inline]
    pub(crate) fn lower_bound_in(&self, key: &[u8], from: usize, to: usize) -> usize {
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.at(middle), key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys that often begin the same, around the length of which there are short ways.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(1), Just(0xff)];
        prop::collection::vec(byte, 0..12)
    }

    proptest! {
        #[test]
        fn short_ways_of_comparing_and_copying_come_to_the_same(a in keys(), b in keys()) {
            prop_assert_eq!(is_before(&a, &b), a < b);
            prop_assert_eq!(is_same(&a, &b), a == b);
            let mut kept = a;
            keep_key(&mut kept, &b);
            prop_assert_eq!(kept, b);
        }

        #[test]
        fn bounds_are_those_of_a_sorted_list(
            mut list in prop::collection::vec(keys(), 0..20),
            key in keys(),
        ) {
            list.sort();
            let mut sorted = Keys::default();
            list.iter().for_each(|one| sorted.push(one));
            prop_assert_eq!(sorted.lower_bound(&key), list.partition_point(|one| *one < key));
            let kept: Vec<&[u8]> = (0..sorted.len()).map(|at| sorted.at(at)).collect();
            prop_assert_eq!(kept, list);
        }
    }
}
