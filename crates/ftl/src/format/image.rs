//! Images: the words of the whole map.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Found, Kind};
use crate::shape::{HEADER_BYTES, Shape};

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

/// Bytes 32 to 63 of the parity of an image.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ParityHead {
    /// Number of the checkpoint.
    checkpoint: U64,
    /// Blocks of the image.
    count: U32,
    /// Exclusive or of their checksums.
    crcs: U32,
    zero: [u8; 16],
}

impl Kind for ParityHead {
    const MAGIC: [u8; 8] = *b"ZLFTLPAR";
}

/// The exclusive or of all blocks of an image: any of them can be made of it and the
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parity {
    pub(crate) checkpoint: u64,
    /// Blocks that are in it.
    pub(crate) count: u32,
    crcs: u32,
    /// Of what stands behind the headers.
    bytes: Vec<u8>,
}

impl Parity {
    /// Of no block.
    pub(crate) fn new(shape: &Shape, checkpoint: u64) -> Self {
        Self {
            checkpoint,
            count: 0,
            crcs: 0,
            bytes: vec![0; shape.bytes(1) - HEADER_BYTES as usize],
        }
    }

    /// With another block, or without it if it is in there. `block` is its bytes.
    pub(crate) fn add(&mut self, block: &[u8]) {
        let (head, entries) = block.split_at(HEADER_BYTES as usize);
        for (sum, byte) in self.bytes.iter_mut().zip(entries) {
            *sum ^= byte;
        }
        if let Ok((head, _)) = super::Head::ref_from_prefix(head) {
            self.crcs ^= head.crc.get();
        }
        self.count += 1;
    }

    /// The only block that was not added twice: of that index, with so many words.
    /// `None`: it is not what the checksums say, so that more than one is missing.
    pub(crate) fn rest(
        &self,
        shape: &Shape,
        uuid: u128,
        (index, words): (u32, u32),
    ) -> Option<ImageBlock> {
        let block = ImageBlock {
            checkpoint: self.checkpoint,
            index,
            words: super::words_of(shape, words, &self.bytes)?,
        };
        let bytes = encode(shape, uuid, &block);
        let (head, _) = super::Head::ref_from_prefix(&bytes).ok()?;
        (head.crc.get() == self.crcs).then_some(block)
    }
}

/// The bytes of a parity.
pub(crate) fn encode_parity(shape: &Shape, uuid: u128, parity: &Parity) -> Vec<u8> {
    let rest = ParityHead {
        checkpoint: U64::new(parity.checkpoint),
        count: U32::new(parity.count),
        crcs: U32::new(parity.crcs),
        zero: [0; 16],
    };
    super::seal(shape.block_bytes, uuid, &rest, &parity.bytes[..])
}

/// What a block is.
pub(crate) fn decode_parity(uuid: u128, bytes: &[u8]) -> Found<Parity> {
    super::open::<ParityHead>(uuid, bytes).and_then(|(rest, entries)| {
        Some(Parity {
            checkpoint: rest.checkpoint.get(),
            count: rest.count.get(),
            crcs: rest.crcs.get(),
            bytes: entries.to_vec(),
        })
    })
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
