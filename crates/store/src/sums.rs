//! Checksums of blocks.
//!
//! That of a block covers its bytes, its place, and the life of its zone: data
//! that was there before the zone was reset is not taken for data that was
//! written since.

use std::io;
use std::ops::Range;

use crate::layout::{REDO_BYTES_MAX, SUM_BYTES};
use crate::medium::Medium;
use crate::store::Store;

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

impl<M: Medium> Store<M> {
    pub(crate) fn sum_at(&self, zone: u32, offset: u64) -> Option<u64> {
        let block = offset / u64::from(self.state.lba_bytes);
        self.layout.sum_at(zone, block)
    }

    pub(crate) fn salt(&self, zone: u32) -> Salt {
        Salt {
            epoch: self.state.epoch,
            zone,
            life: self.zones[zone as usize].life,
            lba_bytes: self.state.lba_bytes,
        }
    }

    /// Checksums of blocks at an offset; none if the store has none.
    pub(crate) fn sums_of(&self, zone: u32, offset: u64, bytes: &[u8], is_spoilt: bool) -> Vec<u8> {
        if self.layout.has_sums() {
            encode(&self.salt(zone), offset, bytes, is_spoilt)
        } else {
            Vec::new()
        }
    }

    pub(crate) fn write_sums(
        &mut self,
        zone: u32,
        offset: u64,
        bytes: &[u8],
        is_spoilt: bool,
    ) -> io::Result<()> {
        match self.sum_at(zone, offset) {
            Some(at) => {
                let sums = self.sums_of(zone, offset, bytes, is_spoilt);
                self.put(at, &sums)
            }
            None => Ok(()),
        }
    }

    pub(crate) fn write_sums_of_zeros(&mut self, zone: u32, range: Range<u64>) -> io::Result<()> {
        if !self.layout.has_sums() || range.is_empty() {
            return Ok(());
        }
        let len = (range.end - range.start).min(REDO_BYTES_MAX as u64);
        // Fits: no more than a piece.
        let zeros = vec![0; len as usize];
        let mut at = range.start;
        while at < range.end {
            let bytes = (range.end - at).min(len) as usize;
            self.write_sums(zone, at, &zeros[..bytes], false)?;
            at += bytes as u64;
        }
        Ok(())
    }
}
