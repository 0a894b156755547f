//! What was written, where a drive keeps it.

use serde::{Deserialize, Serialize};
use zonelab_device::ZoneId;

/// Bytes of one piece of a zone's data.
const CHUNK_BYTES: usize = 64 << 10;
/// What a place for a chunk takes in the table of its zone, which grows by doubling.
const PLACE_BYTES: usize = 2 * size_of::<Option<Chunk>>();

/// A piece of the data of a zone: zone, position counted in pieces, bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedChunk(u32, u32, Vec<u8>);

/// A piece of a zone's data. Memory that was used before is not cleared: what
/// lies behind `filled` is not the zone's.
#[derive(Debug, Clone)]
struct Chunk {
    bytes: Box<[u8]>,
    /// Bytes from the start that hold data; the rest reads as zeros.
    filled: usize,
}

impl Chunk {
    fn fresh() -> Self {
        Self {
            bytes: vec![0; CHUNK_BYTES].into_boxed_slice(),
            filled: 0,
        }
    }

    fn write(&mut self, within: usize, piece: &[u8]) {
        if within > self.filled {
            self.bytes[self.filled..within].fill(0);
        }
        let end = within + piece.len();
        self.bytes[within..end].copy_from_slice(piece);
        self.filled = self.filled.max(end);
    }

    /// What there is of `len` bytes at `within`; zeros follow.
    fn held(&self, within: usize, len: usize) -> &[u8] {
        let end = (within + len).min(self.filled);
        self.bytes.get(within..end).unwrap_or_default()
    }

    fn discard(&mut self, within: usize, len: usize) {
        let end = (within + len).min(self.filled);
        if end == self.filled {
            self.filled = self.filled.min(within);
        } else if within < end {
            self.bytes[within..end].fill(0);
        }
    }
}

/// Chunks of a zone, from its start.
type Chunks = Vec<Option<Chunk>>;

/// Sparse data of a drive: only chunks that hold something but zeros cost
/// memory, and what a zone had serves again once it is reset. A first touch of
/// fresh memory takes longer than all the rest of a write.
#[derive(Debug, Default, Clone)]
pub struct SparseData {
    /// By zone; a zone without data has no chunks.
    zones: Vec<Chunks>,
    /// What zones had that were cleared.
    spare: Vec<Chunk>,
    /// Chunks of zones. Those that wait to serve again come first when one is
    /// needed, so that there are never more than zones had at some time.
    held_chunks: usize,
    /// Places for chunks in the tables of zones. Those without a chunk count against the limit:
    /// a chunk at the end of a zone takes a table for all of the zone.
    places: usize,
    /// Most chunks that there may be; `None`: any number.
    chunks_max: Option<usize>,
}

impl SparseData {
    /// Nothing, for `zones` zones.
    #[must_use]
    pub fn new(zones: u32) -> Self {
        Self {
            zones: vec![Vec::new(); zones as usize],
            spare: Vec::new(),
            held_chunks: 0,
            places: 0,
            chunks_max: None,
        }
    }

    /// Lets it take no more than so many bytes of memory.
    pub(crate) fn limit(&mut self, bytes: Option<u64>) {
        let chunks = |bytes: u64| usize::try_from(bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX);
        self.chunks_max = bytes.map(chunks);
    }

    /// Most bytes of memory that it takes.
    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.chunks_max
            .map(|chunks| (chunks as u64).saturating_mul(CHUNK_BYTES as u64))
    }

    #[inline]
    pub(crate) const fn is_limited(&self) -> bool {
        self.chunks_max.is_some()
    }

    /// Whether `bytes` can be stored without exceeding the limit.
    #[inline]
    pub(crate) fn has_room(&self, zone: ZoneId, offset: u64, bytes: &[u8]) -> bool {
        let Some(most) = self.chunks_max else {
            return true;
        };
        let chunks = &self.zones[zone.0 as usize];
        let (mut missing, mut len) = (0, chunks.len());
        for_each_chunk(offset, bytes.len(), |index, _, range| {
            let is_held = chunks.get(index).is_some_and(Option::is_some);
            if !is_held && !is_zero(&bytes[range]) {
                missing += 1;
                len = len.max(index + 1);
            }
        });
        let held = self.held_chunks + missing;
        let empty = self.places + len - chunks.len() - held;
        missing == 0 || held + (empty * PLACE_BYTES).div_ceil(CHUNK_BYTES) <= most
    }

    /// Stores `bytes` at byte `offset` of `zone`.
    pub fn write(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) {
        let Self {
            zones,
            spare,
            held_chunks,
            places,
            ..
        } = self;
        let chunks = &mut zones[zone.0 as usize];
        for_each_chunk(offset, bytes.len(), |index, within, range| {
            let piece = &bytes[range];
            let is_held = chunks.get(index).is_some_and(Option::is_some);
            if !is_held && is_zero(piece) {
                return;
            }
            if chunks.len() <= index {
                *places += index + 1 - chunks.len();
                chunks.resize(index + 1, None);
            }
            chunks[index]
                .get_or_insert_with(|| {
                    *held_chunks += 1;
                    recycled(spare).unwrap_or_else(Chunk::fresh)
                })
                .write(within, piece);
        });
    }

    /// Fills `out` from byte `offset` of `zone`; what was never written reads as zeros.
    pub fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) {
        let chunks = &self.zones[zone.0 as usize];
        for_each_chunk(offset, out.len(), |index, within, range| {
            let piece = &mut out[range];
            let held = held(chunks, index, within, piece.len());
            let (data, rest) = piece.split_at_mut(held.len());
            data.copy_from_slice(held);
            rest.fill(0);
        });
    }

    /// Whether `bytes` are what is at byte `offset` of `zone`.
    #[must_use]
    pub fn is_same(&self, zone: ZoneId, offset: u64, bytes: &[u8]) -> bool {
        let chunks = &self.zones[zone.0 as usize];
        let mut is_same = true;
        for_each_chunk(offset, bytes.len(), |index, within, range| {
            let piece = &bytes[range];
            let held = held(chunks, index, within, piece.len());
            let (data, rest) = piece.split_at(held.len());
            is_same &= data == held && is_zero(rest);
        });
        is_same
    }

    /// Forgets the data of `zone`.
    pub fn clear(&mut self, zone: ZoneId) {
        let chunks = core::mem::take(&mut self.zones[zone.0 as usize]);
        self.places -= chunks.len();
        let before = self.spare.len();
        self.spare.extend(chunks.into_iter().flatten());
        self.held_chunks -= self.spare.len() - before;
    }

    /// Forgets the bytes `range` of `zone`.
    pub fn discard(&mut self, zone: ZoneId, range: core::ops::Range<u64>) {
        let chunks = &mut self.zones[zone.0 as usize];
        let held_chunks = &mut self.held_chunks;
        let held = chunks.len() as u64 * CHUNK_BYTES as u64;
        let end = range.end.min(held);
        // Fits: it is below what is in memory.
        let len = end.saturating_sub(range.start) as usize;
        for_each_chunk(range.start, len, |index, within, piece| {
            if piece.len() == CHUNK_BYTES {
                *held_chunks -= usize::from(chunks[index].take().is_some());
            } else if let Some(chunk) = &mut chunks[index] {
                chunk.discard(within, piece.len());
            }
        });
    }

    /// Everything that a snapshot keeps: zone, position and bytes of each piece.
    pub(crate) fn save(&self) -> Vec<SavedChunk> {
        let mut saved = Vec::new();
        for (zone, chunks) in (0..).zip(&self.zones) {
            for (index, chunk) in (0..).zip(chunks) {
                if let Some(chunk) = chunk {
                    let mut bytes = chunk.held(0, CHUNK_BYTES).to_vec();
                    bytes.resize(CHUNK_BYTES, 0);
                    saved.push(SavedChunk(zone, index, bytes));
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
            let held = chunks.as_ref().map_or(0, |chunks| chunks.len());
            // In ascending order: none comes twice.
            match chunks {
                Some(chunks) if fits && index as usize >= chunks.len() => {
                    chunks.resize(index as usize, None);
                    chunks.push(Some(Chunk {
                        filled: bytes.len(),
                        bytes: bytes.into_boxed_slice(),
                    }));
                    data.held_chunks += 1;
                    data.places += index as usize + 1 - held;
                }
                _ => return Err(format!("piece {index} of the data of zone {zone}")),
            }
        }
        Ok(data)
    }

    /// Bytes of memory that the data takes, without what waits to serve again.
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

/// What a chunk has of `len` bytes at `within`, if there is one.
fn held(chunks: &Chunks, index: usize, within: usize, len: usize) -> &[u8] {
    let chunk = chunks.get(index).and_then(Option::as_ref);
    chunk.map_or(&[][..], |chunk| chunk.held(within, len))
}

/// A chunk that was used before.
fn recycled(spare: &mut Vec<Chunk>) -> Option<Chunk> {
    let mut chunk = spare.pop()?;
    chunk.filled = 0;
    Some(chunk)
}

fn is_zero(bytes: &[u8]) -> bool {
    // By pieces that the compiler makes a few instructions of; the first that is
    // not zero ends it.
    bytes
        .chunks(128)
        .all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same calls on plain bytes.
    fn same_as_plain_bytes(calls: &[(u8, u32, u32, u8)]) {
        const BYTES: usize = 3 * CHUNK_BYTES;
        let mut data = SparseData::new(2);
        let mut plain = [vec![0; BYTES], vec![0; BYTES]];
        for &(what, offset, len, fill) in calls {
            let zone = ZoneId(u32::from(what & 1));
            let start = offset as usize % BYTES;
            let end = (start + len as usize % (2 * CHUNK_BYTES)).min(BYTES);
            let of = &mut plain[zone.0 as usize];
            match what >> 1 & 7 {
                0 => {
                    data.clear(zone);
                    of.fill(0);
                }
                1 => {
                    data.discard(zone, start as u64..end as u64);
                    of[start..end].fill(0);
                }
                _ => {
                    of[start..end].fill(fill & 3);
                    data.write(zone, start as u64, &of[start..end]);
                }
            }
            assert_eq!(data.places, data.zones.iter().map(Vec::len).sum::<usize>());
            for (zone, of) in (0..).map(ZoneId).zip(&plain) {
                let mut out = vec![0xff; BYTES];
                data.read(zone, 0, &mut out);
                assert!(out == *of, "after {what} {start}..{end}");
                assert!(data.is_same(zone, 0, of));
            }
        }
        let restored = SparseData::restore(2, BYTES as u64, data.save()).expect("its own");
        for (zone, of) in (0..).map(ZoneId).zip(&plain) {
            assert!(restored.is_same(zone, 0, of));
        }
    }

    proptest::proptest! {
        #[test]
        fn memory_that_serves_again_shows_nothing_of_before(
            calls in proptest::collection::vec(proptest::prelude::any::<(u8, u32, u32, u8)>(), 1..40)
        ) {
            same_as_plain_bytes(&calls);
        }
    }

    /// A host writes zeros, which cost nothing, and one block at the end of each zone.
    #[test]
    fn tables_of_zones_count_against_the_limit() {
        const LIMIT: u64 = 1 << 20;
        const AT: u64 = 256 << 20;
        let mut data = SparseData::new(64);
        data.limit(Some(LIMIT));
        // One after the other, as many as there are: nothing is lost to tables.
        let mut filled = data.clone();
        let dense = (0..).position(|n| {
            let at = n * CHUNK_BYTES as u64;
            let has_room = filled.has_room(ZoneId(0), at, &[1]);
            if has_room {
                filled.write(ZoneId(0), at, &[1]);
            }
            !has_room
        });
        assert_eq!(dense, Some(16));
        for zone in (0..64).map(ZoneId) {
            if data.has_room(zone, AT, &[1]) {
                data.write(zone, AT, &[1]);
            }
        }
        let taken = |data: &SparseData| {
            let tables: usize = data.zones.iter().map(Vec::capacity).sum();
            data.resident_bytes() + (tables * size_of::<Option<Chunk>>()) as u64
        };
        assert!((1..=LIMIT).contains(&taken(&data)), "{}", taken(&data));
        assert!(!data.has_room(ZoneId(63), AT, &[1]));
        (0..64).for_each(|zone| data.clear(ZoneId(zone)));
        assert!(data.has_room(ZoneId(63), AT, &[1]));
        assert_eq!(taken(&data), 0);
    }

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
