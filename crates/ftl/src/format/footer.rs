//! Footers: which logical block each block of a data zone is.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Found, Kind};
use crate::shape::Shape;

/// Bytes 32 to 63 of a footer block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Footer {
    /// The zone of the namespace.
    zone: U32,
    /// Which of the footer blocks of the zone, from 0.
    index: U32,
    /// Number of words.
    count: U32,
    zero: [u8; 20],
}

impl Kind for Footer {
    const MAGIC: [u8; 8] = *b"ZLFTLFTR";
}

/// A footer block: of each data block its logical block, `u32::MAX` for one that
/// holds none.
///
/// # Panics
/// If there are more words than [`Shape::words_per_block`].
#[must_use]
pub fn encode(shape: &Shape, uuid: u128, zone: u32, index: u32, words: &[u32]) -> Vec<u8> {
    let words: Vec<U32> = words.iter().map(|word| U32::new(*word)).collect();
    let rest = Footer {
        zone: U32::new(zone),
        index: U32::new(index),
        count: U32::new(words.len() as u32),
        zero: [0; 20],
    };
    super::seal(shape.block_bytes, uuid, &rest, &words)
}

/// The words of a footer block; `None`: it is not that block, or not whole.
#[must_use]
pub fn decode(shape: &Shape, uuid: u128, zone: u32, index: u32, bytes: &[u8]) -> Option<Vec<u32>> {
    match look(shape, uuid, zone, index, bytes) {
        Found::Valid(words) => Some(words),
        Found::Damaged | Found::Foreign => None,
    }
}

/// What a block at the place of a footer block is. One of another place counts as
/// damaged.
pub(crate) fn look(
    shape: &Shape,
    uuid: u128,
    zone: u32,
    index: u32,
    bytes: &[u8],
) -> Found<Vec<u32>> {
    let Some(bytes) = bytes.get(..shape.block_bytes as usize) else {
        return Found::Foreign;
    };
    super::open::<Footer>(uuid, bytes).and_then(|(rest, entries)| {
        let is_here = (rest.zone.get(), rest.index.get()) == (zone, index);
        is_here.then(|| super::words_of(shape, rest.count.get(), entries))?
    })
}
