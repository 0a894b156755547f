//! What was written, where a drive keeps it.

use serde::{Deserialize, Serialize};
use zonelab_device::ZoneId;

/// Bytes of one piece of a zone's data.
const CHUNK_BYTES: usize = 64 << 10;

/// A piece of the data of a zone: zone, position counted in pieces, bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedChunk(u32, u32, Vec<u8>);

/// Sparse data of a drive: only chunks that hold something but zeros cost memory.
#[derive(Debug, Default, Clone)]
pub struct SparseData {
    /// By zone; a zone without data has no chunks.
    zones: Vec<Vec<Option<Box<[u8]>>>>,
}

impl SparseData {
    /// Nothing, for `zones` zones.
    #[must_use]
    pub fn new(zones: u32) -> Self {
        Self {
            zones: vec![Vec::new(); zones as usize],
        }
    }

    /// Stores `bytes` at byte `offset` of `zone`.
    pub fn write(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) {
        let chunks = &mut self.zones[zone.0 as usize];
        for_each_chunk(offset, bytes.len(), |index, within, range| {
            let piece = &bytes[range];
            if chunks.len() <= index {
                if is_zero(piece) {
                    return;
                }
                chunks.resize(index + 1, None);
            }
            if chunks[index].is_none() && is_zero(piece) {
                return;
            }
            let chunk =
                chunks[index].get_or_insert_with(|| vec![0; CHUNK_BYTES].into_boxed_slice());
            chunk[within..within + piece.len()].copy_from_slice(piece);
        });
    }

    /// Fills `out` from byte `offset` of `zone`; what was never written reads as zeros.
    pub fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) {
        let chunks = &self.zones[zone.0 as usize];
        for_each_chunk(offset, out.len(), |index, within, range| {
            let piece = &mut out[range];
            match chunks.get(index).and_then(Option::as_ref) {
                Some(chunk) => piece.copy_from_slice(&chunk[within..within + piece.len()]),
                None => piece.fill(0),
            }
        });
    }

    /// Whether `bytes` are what is at byte `offset` of `zone`.
    #[must_use]
    pub fn is_same(&self, zone: ZoneId, offset: u64, bytes: &[u8]) -> bool {
        let chunks = &self.zones[zone.0 as usize];
        let mut is_same = true;
        for_each_chunk(offset, bytes.len(), |index, within, range| {
            let piece = &bytes[range];
            is_same &= match chunks.get(index).and_then(Option::as_ref) {
                Some(chunk) => piece == &chunk[within..within + piece.len()],
                None => is_zero(piece),
            };
        });
        is_same
    }

    /// Forgets the data of `zone`.
    pub fn clear(&mut self, zone: ZoneId) {
        self.zones[zone.0 as usize] = Vec::new();
    }

    /// Forgets the bytes `range` of `zone`.
    pub fn discard(&mut self, zone: ZoneId, range: core::ops::Range<u64>) {
        let chunks = &mut self.zones[zone.0 as usize];
        let held = chunks.len() as u64 * CHUNK_BYTES as u64;
        let end = range.end.min(held);
        // Fits: it is below what is in memory.
        let len = end.saturating_sub(range.start) as usize;
        for_each_chunk(range.start, len, |index, within, piece| {
            if piece.len() == CHUNK_BYTES {
                chunks[index] = None;
            } else if let Some(chunk) = &mut chunks[index] {
                chunk[within..within + piece.len()].fill(0);
            }
        });
    }

    /// Everything that a snapshot keeps: zone, position and bytes of each piece.
    pub(crate) fn save(&self) -> Vec<SavedChunk> {
        let mut saved = Vec::new();
        for (zone, chunks) in (0..).zip(&self.zones) {
            for (index, chunk) in (0..).zip(chunks) {
                if let Some(chunk) = chunk {
                    saved.push(SavedChunk(zone, index, chunk.to_vec()));
                }
            }
        }
        saved
    }

    /// Data from pieces, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn restore(
        zones: u32,
        zone_bytes: u64,
        saved: Vec<SavedChunk>,
    ) -> Result<Self, String> {
        let mut data = Self::new(zones);
        let chunks_max = zone_bytes.div_ceil(CHUNK_BYTES as u64);
        for SavedChunk(zone, index, bytes) in saved {
            let chunks = data.zones.get_mut(zone as usize);
            let fits = u64::from(index) < chunks_max && bytes.len() == CHUNK_BYTES;
            // In ascending order: none comes twice.
            match chunks {
                Some(chunks) if fits && index as usize >= chunks.len() => {
                    chunks.resize(index as usize, None);
                    chunks.push(Some(bytes.into_boxed_slice()));
                }
                _ => return Err(format!("piece {index} of the data of zone {zone}")),
            }
        }
        Ok(data)
    }

    /// Bytes of memory that the data takes.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let chunks: usize = self
            .zones
            .iter()
            .map(|zone| zone.iter().flatten().count())
            .sum();
        chunks as u64 * CHUNK_BYTES as u64
    }
}

/// Calls `f(chunk, offset within it, range of the caller's bytes)` for each
/// chunk that `len` bytes at `offset` touch.
fn for_each_chunk(
    offset: u64,
    len: usize,
    mut f: impl FnMut(usize, usize, std::ops::Range<usize>),
) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let within = (at % CHUNK_BYTES as u64) as usize;
        let piece = (CHUNK_BYTES - within).min(len - done);
        f(
            (at / CHUNK_BYTES as u64) as usize,
            within,
            done..done + piece,
        );
        done += piece;
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_comes_back_across_chunks_and_zeros_cost_nothing() {
        let mut data = SparseData::new(2);
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        data.write(ZoneId(1), 12_345, &bytes);
        let mut out = vec![0xff; 200_010];
        data.read(ZoneId(1), 12_340, &mut out);
        assert_eq!(&out[..5], &[0; 5]);
        assert_eq!(&out[5..200_005], &bytes[..]);
        assert_eq!(&out[200_005..], &[0; 5]);
        assert!(data.is_same(ZoneId(1), 12_340, &out));
        out[150_000] ^= 1;
        assert!(!data.is_same(ZoneId(1), 12_340, &out));

        let resident = data.resident_bytes();
        data.write(ZoneId(0), 0, &[0; 300_000]);
        assert_eq!(data.resident_bytes(), resident);
        data.clear(ZoneId(1));
        assert_eq!(data.resident_bytes(), 0);
        data.read(ZoneId(1), 12_345, &mut out);
        assert!(is_zero(&out));
    }
}
