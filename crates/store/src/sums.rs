//! Checksums of blocks.
//!
//! That of a block covers its bytes, its place, and the life of its zone: data
//! that was there before the zone was reset is not taken for data that was
//! written since.

use std::io;

use crate::layout::SUM_BYTES;
use crate::medium::Medium;

/// What the checksums of a zone cover besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Salt {
    pub(crate) epoch: u32,
    pub(crate) zone: u32,
    pub(crate) life: u32,
    pub(crate) lba_bytes: u32,
}

impl Salt {
    fn sum(&self, block: u64, bytes: &[u8]) -> u32 {
        let mut salt = [0; 24];
        let words = [self.epoch, self.zone, self.life, self.lba_bytes];
        for (place, word) in salt.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        salt[16..].copy_from_slice(&block.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c(&salt), bytes)
    }

    /// Checksums of blocks from an offset on.
    fn all(&self, offset: u64, bytes: &[u8]) -> impl Iterator<Item = u32> {
        let first = offset / u64::from(self.lba_bytes);
        let blocks = (first..).zip(bytes.chunks(self.lba_bytes as usize));
        blocks.map(|(block, bytes)| self.sum(block, bytes))
    }
}

/// As they are in the file; spoilt ones are of no block.
pub(crate) fn encode(salt: &Salt, offset: u64, bytes: &[u8], is_spoilt: bool) -> Vec<u8> {
    let flip = if is_spoilt { u32::MAX } else { 0 };
    let sums = salt.all(offset, bytes);
    sums.flat_map(|sum| (sum ^ flip).to_le_bytes()).collect()
}

/// Whether bytes are those of the checksums at `at`.
pub(crate) fn are_right(
    medium: &impl Medium,
    at: u64,
    salt: &Salt,
    offset: u64,
    bytes: &[u8],
) -> io::Result<bool> {
    let blocks = bytes.len().div_ceil(salt.lba_bytes as usize);
    let mut few = [0; 64];
    let mut many = Vec::new();
    let len = blocks * SUM_BYTES as usize;
    let read = match few.get_mut(..len) {
        Some(few) => few,
        None => {
            many.resize(len, 0);
            &mut many[..]
        }
    };
    medium.read(at, read)?;
    let mut written = read.chunks_exact(SUM_BYTES as usize);
    Ok(salt
        .all(offset, bytes)
        .all(|sum| written.next() == Some(&sum.to_le_bytes()[..])))
}
