//! The SLC cache.

use zonelab_device::Nanos;

use super::{DriveConfig, Geometry};

/// Blocks of the flash that store one bit in each cell, and take what leaves the write buffer
/// until it is folded into the blocks of its zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcCacheConfig {
    /// Bytes that fit: whole rows of blocks, one block on each plane of the drive, and at
    /// least two of them.
    pub size_bytes: u64,
    /// Bits that a cell stores in the blocks of zones, at least 2. A block holds so much
    /// less as SLC.
    pub bits_per_cell: u32,
    /// Bytes of a page of such a block: whole logical blocks that divide a page.
    pub page_bytes: u32,
    /// Time from cells to page register (tR).
    pub read_ns: Nanos,
    /// Time from page register to cells (tPROG).
    pub program_ns: Nanos,
    /// Time to erase a block (tBERS).
    pub erase_ns: Nanos,
    /// Folding begins when no command has been in flight for so long; `None`: idle time is
    /// not used.
    pub fold_after_idle_ns: Option<Nanos>,
    /// Folding goes on beside the host while the log, from its oldest place that is still to
    /// be folded to its end, is longer than this share of the cache, in parts per million.
    pub fold_above_ppm: u32,
    /// Bytes that are folded at the same time, at least what one program takes.
    pub fold_bytes: u64,
}

impl SlcCacheConfig {
    /// Bytes of a block of the cache, and whether its pages fill it exactly.
    #[must_use]
    pub const fn block_bytes(&self, geometry: &Geometry) -> (u64, bool) {
        let bytes = geometry.pages_per_block as u64 * geometry.page_bytes as u64;
        let bits = self.bits_per_cell as u64;
        let block = bytes / bits;
        let is_whole = bytes.is_multiple_of(bits) && block.is_multiple_of(self.page_bytes as u64);
        (block, is_whole && block > 0)
    }

    /// Bytes of a row of blocks of the cache.
    #[must_use]
    pub fn row_bytes(&self, geometry: &Geometry) -> u64 {
        // Asked before planes are known to be few enough to be counted.
        let Geometry {
            channels,
            ways,
            dies,
            planes,
            ..
        } = *geometry;
        let block = self.block_bytes(geometry).0;
        [channels, ways, dies, planes]
            .into_iter()
            .fold(block, |bytes, of| bytes.saturating_mul(of.into()))
    }

    /// Rows of blocks of the cache, rounded down.
    #[must_use]
    pub fn rows(&self, geometry: &Geometry) -> u64 {
        match self.row_bytes(geometry) {
            0 => 0,
            row => self.size_bytes / row,
        }
    }
}

impl DriveConfig {
    /// Blocks of each plane that the SLC cache has.
    #[must_use]
    pub fn cache_rows(&self) -> u64 {
        let cache = self.slc_cache.as_ref();
        cache.map_or(0, |cache| cache.rows(&self.geometry))
    }

    /// Bytes of the SLC cache that only a loss of power or an orderly shutdown may use: room
    /// for what the write buffer holds then, with two parts of a page for each zone: the end of
    /// one that it left in part before, and the beginning of the next.
    #[must_use]
    pub fn cache_reserve_bytes(&self) -> u64 {
        let (Some(cache), Some(buffer)) = (&self.slc_cache, &self.write_buffer) else {
            return 0;
        };
        let unit = u64::from(cache.page_bytes) * u64::from(self.pages_per_program());
        let blocks = buffer.size_bytes / u64::from(self.lba_bytes.max(1));
        let parts = (2 * u64::from(self.zones.count)).min(blocks);
        buffer
            .size_bytes
            .div_ceil(unit.max(1))
            .saturating_add(parts)
            .saturating_mul(unit)
    }
}
