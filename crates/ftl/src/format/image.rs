//! Images: the words of the whole map.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Found, Kind};
use crate::shape::Shape;

/// Bytes 32 to 63 of a block of an image.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Image {
    /// Number of the checkpoint.
    checkpoint: U64,
    /// Which block of the image, from 0.
    index: U32,
    /// Number of words.
    count: U32,
    zero: [u8; 16],
}

impl Kind for Image {
    const MAGIC: [u8; 8] = *b"ZLFTLIMG";
}

/// A block of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageBlock {
    pub(crate) checkpoint: u64,
    pub(crate) index: u32,
    pub(crate) words: Vec<u32>,
}

/// The bytes of a block.
pub(crate) fn encode(shape: &Shape, uuid: u128, block: &ImageBlock) -> Vec<u8> {
    let words: Vec<U32> = block.words.iter().map(|word| U32::new(*word)).collect();
    let rest = Image {
        checkpoint: U64::new(block.checkpoint),
        index: U32::new(block.index),
        count: U32::new(words.len() as u32),
        zero: [0; 16],
    };
    super::seal(shape.block_bytes, uuid, &rest, &words)
}

/// What a block is.
pub(crate) fn decode(shape: &Shape, uuid: u128, bytes: &[u8]) -> Found<ImageBlock> {
    super::open::<Image>(uuid, bytes).and_then(|(rest, entries)| {
        Some(ImageBlock {
            checkpoint: rest.checkpoint.get(),
            index: rest.index.get(),
            words: super::words_of(shape, rest.count.get(), entries)?,
        })
    })
}
