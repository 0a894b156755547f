//! What is on the media, byte by byte: `docs/ftl-format.md`.
//!
//! Each structure is one logical block: 64 bytes of header, then entries, then
//! zeros. All numbers are little endian. The header begins the same way in all of
//! them, and in all versions to come up to byte 15, so that a program can tell a
//! later version from damage.

pub mod anchor;
pub mod footer;
pub mod image;
pub mod journal;

use zerocopy::little_endian::{U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::shape::{HEADER_BYTES, Shape};

/// The version of all structures.
pub const VERSION: u32 = 1;
/// Bytes of magic, version and uuid.
const IDENTITY_BYTES: usize = 28;
/// How the magic of every kind begins.
const MAGIC_OF_ALL: &[u8] = b"ZLFTL";
/// The checksum, in each header.
const CRC_BYTES: core::ops::Range<usize> = 12..16;

/// How a header begins.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    version: U32,
    /// CRC-32C of the block, with zeros in its own place.
    crc: U32,
    uuid: U128,
}

/// What kind of block.
pub(crate) trait Kind: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    const MAGIC: [u8; 8];
}

/// What was found in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// A whole block of that kind, version and uuid.
    Valid(T),
    /// It was one, and is not whole.
    Damaged,
    /// It never was one: nothing was written there, or something else.
    Foreign,
}

impl<T> Found<T> {
    fn and_then<U>(self, f: impl FnOnce(T) -> Option<U>) -> Found<U> {
        match self {
            Self::Valid(value) => f(value).map_or(Found::Damaged, Found::Valid),
            Self::Damaged => Found::Damaged,
            Self::Foreign => Found::Foreign,
        }
    }
}

fn checksum(block: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&block[..CRC_BYTES.start]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &block[CRC_BYTES.end..])
}

/// A block: head, the rest of the header, entries.
fn seal<K: Kind, E: IntoBytes + Immutable>(
    block_bytes: u32,
    uuid: u128,
    rest: &K,
    entries: &[E],
) -> Vec<u8> {
    let head = Head {
        magic: K::MAGIC,
        version: U32::new(VERSION),
        crc: U32::ZERO,
        uuid: U128::new(uuid),
    };
    let mut block = Vec::with_capacity(block_bytes as usize);
    block.extend_from_slice(head.as_bytes());
    block.extend_from_slice(rest.as_bytes());
    block.extend_from_slice(entries.as_bytes());
    assert!(
        block.len() <= block_bytes as usize,
        "entries fit into a block"
    );
    block.resize(block_bytes as usize, 0);
    let crc = checksum(&block);
    block[CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
    block
}

/// What a block is, with the rest of its header and its entries.
fn open<K: Kind>(uuid: u128, block: &[u8]) -> Found<(&K, &[u8])> {
    let Ok((head, rest)) = Head::ref_from_prefix(block) else {
        return Found::Foreign;
    };
    let expected = Head {
        magic: K::MAGIC,
        version: U32::new(VERSION),
        crc: head.crc,
        uuid: U128::new(uuid),
    };
    if head.crc.get() == checksum(block) {
        if head.as_bytes() != expected.as_bytes() {
            return Found::Foreign;
        }
        return match K::ref_from_prefix(rest) {
            Ok(parts) => Found::Valid(parts),
            Err(_) => Found::Foreign,
        };
    }
    // What a flipped bit or two leave of a block still looks like one. What never was
    // one does not: nothing there, or data of somebody else from before a reset.
    let agree = |(found, wanted): &(&u8, &u8)| found == wanted;
    let identity = head.as_bytes().iter().zip(expected.as_bytes());
    let alike = identity
        .enumerate()
        .filter(|(at, _)| !CRC_BYTES.contains(at))
        .filter(|(_, pair)| agree(pair))
        .count();
    let is_blank = block.iter().all(|byte| *byte == block[0]);
    if !is_blank && alike > IDENTITY_BYTES / 2 {
        return Found::Damaged;
    }
    Found::Foreign
}

/// Whether a block is a whole one of this layer, of whatever kind: where another kind belongs,
/// it is there by mistake, and what belongs there is lost.
fn is_of_layer(uuid: u128, block: &[u8]) -> bool {
    Head::ref_from_prefix(block).is_ok_and(|(head, _)| {
        head.uuid.get() == uuid
            && head.version.get() == VERSION
            && head.magic.starts_with(MAGIC_OF_ALL)
            && head.crc.get() == checksum(block)
    })
}

/// The words of a map in a block.
fn words_of(shape: &Shape, count: u32, entries: &[u8]) -> Option<Vec<u32>> {
    if count > shape.words_per_block() {
        return None;
    }
    let words = <[U32]>::ref_from_prefix_with_elems(entries, count as usize).ok()?;
    Some(words.0.iter().map(|word| word.get()).collect())
}

const _: () = assert!(size_of::<Head>() == 32 && HEADER_BYTES == 64);
