//! What the layer has done.

use crate::segments::Usage;
use crate::sync::{AtomicU64, Ordering};

/// Counters since the mount.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) host_written: AtomicU64,
    pub(crate) moved: AtomicU64,
    pub(crate) footers: AtomicU64,
    pub(crate) journal: AtomicU64,
    pub(crate) images: AtomicU64,
    pub(crate) collected: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    pub(crate) stalls: AtomicU64,
    pub(crate) unreadable: AtomicU64,
}

impl Counters {
    /// Counts.
    #[inline]
    pub(crate) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    /// What was counted.
    pub(crate) fn metrics(&self, (free_zones, active_zones): (u32, u32), map: Usage) -> Metrics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            host_blocks: of(&self.host_written),
            moved_blocks: of(&self.moved),
            footer_blocks: of(&self.footers),
            journal_blocks: of(&self.journal),
            image_blocks: of(&self.images),
            collected_zones: of(&self.collected),
            commits: of(&self.commits),
            trimmed_blocks: of(&self.trimmed),
            stalls: of(&self.stalls),
            unreadable_blocks: of(&self.unreadable),
            free_zones,
            active_zones,
            map_hits: map.hits,
            map_misses: map.misses,
            map_bytes: map.bytes,
        }
    }
}

/// What the layer has done since the mount, and how it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Blocks that programs wrote.
    pub host_blocks: u64,
    /// Blocks that the collector moved.
    pub moved_blocks: u64,
    /// Blocks of footers.
    pub footer_blocks: u64,
    /// Blocks of the journal.
    pub journal_blocks: u64,
    /// Blocks of images of the map.
    pub image_blocks: u64,
    /// Zones that the collector emptied.
    pub collected_zones: u64,
    /// Commits of the journal.
    pub commits: u64,
    /// Blocks that were trimmed or written with zeroes.
    pub trimmed_blocks: u64,
    /// Times that a queue had to wait for space.
    pub stalls: u64,
    /// Blocks that the collector could not read, and left where they are.
    pub unreadable_blocks: u64,
    /// Zones that are free now.
    pub free_zones: u32,
    /// Zones that are active for data now.
    pub active_zones: u32,
    /// Times that a piece of the map was needed and was in memory, if only
    /// [a share](crate::FtlSettings::map_share) of the map is.
    pub map_hits: u64,
    /// Times that it had to be read.
    pub map_misses: u64,
    /// Memory that the map takes now, with what changed since the last checkpoint if only
    /// a share of it is in memory.
    pub map_bytes: u64,
}

impl Metrics {
    /// Blocks written to the drive, by blocks written by programs: data and what the
    /// collector moved, without metadata. `None`: nothing was written.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.host_blocks + self.moved_blocks;
        (self.host_blocks > 0).then(|| written as f64 / self.host_blocks as f64)
    }

    /// The same with metadata.
    #[must_use]
    pub fn total_write_amplification(&self) -> Option<f64> {
        let metadata = self.footer_blocks + self.journal_blocks + self.image_blocks;
        let written = self.host_blocks + self.moved_blocks + metadata;
        (self.host_blocks > 0).then(|| written as f64 / self.host_blocks as f64)
    }

    /// Share of the times that a piece of the map was needed and was in memory. `None`: all
    /// of the map is, or nothing was needed.
    #[must_use]
    pub fn map_hit_rate(&self) -> Option<f64> {
        let needed = self.map_hits + self.map_misses;
        (needed > 0).then(|| self.map_hits as f64 / needed as f64)
    }

    /// What was done since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            host_blocks: self.host_blocks - earlier.host_blocks,
            moved_blocks: self.moved_blocks - earlier.moved_blocks,
            footer_blocks: self.footer_blocks - earlier.footer_blocks,
            journal_blocks: self.journal_blocks - earlier.journal_blocks,
            image_blocks: self.image_blocks - earlier.image_blocks,
            collected_zones: self.collected_zones - earlier.collected_zones,
            commits: self.commits - earlier.commits,
            trimmed_blocks: self.trimmed_blocks - earlier.trimmed_blocks,
            stalls: self.stalls - earlier.stalls,
            unreadable_blocks: self.unreadable_blocks - earlier.unreadable_blocks,
            free_zones: self.free_zones,
            active_zones: self.active_zones,
            map_hits: self.map_hits - earlier.map_hits,
            map_misses: self.map_misses - earlier.map_misses,
            map_bytes: self.map_bytes,
        }
    }
}
