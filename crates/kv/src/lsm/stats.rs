//! What a store has done.

use zonelab_device::Nanos;

use super::cache::CacheStats;

/// Why writes had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StallCause {
    /// All memtables wait for their flush: stopped.
    MemtableLimit,
    /// Level 0 has `level0_stop_writes_trigger` tables: stopped.
    Level0Stop,
    /// Level 0 has `level0_slowdown_writes_trigger` tables: delayed.
    Level0Slowdown,
    /// Compactions owe `hard_pending_compaction_bytes_limit`: stopped.
    PendingBytesStop,
    /// Compactions owe `soft_pending_compaction_bytes_limit`: delayed.
    PendingBytesSlowdown,
    /// More than three memtables are allowed, and all but one are full: delayed.
    MemtableSlowdown,
}

impl StallCause {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::MemtableLimit,
        Self::Level0Stop,
        Self::Level0Slowdown,
        Self::PendingBytesStop,
        Self::PendingBytesSlowdown,
        Self::MemtableSlowdown,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MemtableLimit => "memtable limit",
            Self::Level0Stop => "level 0 stop",
            Self::Level0Slowdown => "level 0 slowdown",
            Self::PendingBytesStop => "pending bytes stop",
            Self::PendingBytesSlowdown => "pending bytes slowdown",
            Self::MemtableSlowdown => "memtable slowdown",
        }
    }
}

/// Waits of writes for one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallStats {
    /// Writes that waited.
    pub count: u64,
    /// How long, together.
    pub time: Nanos,
}

/// A level, and the compactions whose output it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Tables that are there.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Compactions into this level; level 0: flushes.
    pub compactions: u64,
    /// Tables that came here as they were.
    pub trivial_moves: u64,
    /// Bytes of tables of the level above that compactions read.
    pub read_upper_bytes: u64,
    /// Bytes of tables of this level that compactions read.
    pub read_bytes: u64,
    /// Bytes that were written here.
    pub written_bytes: u64,
    /// Entries that compactions read.
    pub entries_in: u64,
    /// Entries that they left out: overwritten, deleted, or tombstones of nothing.
    pub entries_dropped: u64,
    /// From the start of each compaction to its end, together.
    pub time: Nanos,
}

/// What a store has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DbStats {
    /// Values written.
    pub puts: u64,
    /// Tombstones written.
    pub deletes: u64,
    /// Point queries.
    pub gets: u64,
    /// Point queries that a memtable answered.
    pub gets_from_memtables: u64,
    /// Those for which a block was read from a file. What is left, filters and blocks in
    /// memory answered.
    pub gets_from_files: u64,
    /// Point queries that found a value.
    pub gets_found: u64,
    /// Range queries.
    pub scans: u64,
    /// Range queries for which no file was looked into.
    pub scans_from_memtables: u64,
    /// Entries that range queries gave.
    pub scanned_entries: u64,
    /// Keys and values of puts and deletes, with `key_padding`.
    pub user_bytes: u64,
    /// Records of the log.
    pub wal_bytes: u64,
    /// Syncs of the log.
    pub wal_syncs: u64,
    /// Memtables that became tables.
    pub flushed_memtables: u64,
    /// Bytes of manifests.
    pub manifest_bytes: u64,
    /// Tables that point queries looked into, filters included.
    pub tables_probed: u64,
    /// Probes that a filter, or the index, ended without reading.
    pub tables_excluded: u64,
    /// Probes that looked into a block in vain: the filter was wrong.
    pub false_positives: u64,
    /// Blocks in memory.
    pub block_cache: CacheStats,
    /// Waits of writes, in the order of [`StallCause::ALL`].
    pub stalls: [StallStats; StallCause::ALL.len()],
    /// Writes wait for this at present.
    pub stalled_by: Option<StallCause>,
    /// Levels.
    pub levels: Vec<LevelStats>,
    /// Compactions that are under way.
    pub running_compactions: u64,
    /// Bytes that compactions owe.
    pub pending_compaction_bytes: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Flushes and compactions that failed.
    pub background_errors: u64,
    /// Records of logs that were read when the store was opened.
    pub recovered_records: u64,
}

impl DbStats {
    /// Bytes that went to files for each byte of keys and values that was put:
    /// log, flushes, compactions and manifest. 0: nothing was put.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        let tables: u64 = self.levels.iter().map(|level| level.written_bytes).sum();
        share(
            tables + self.wal_bytes + self.manifest_bytes,
            self.user_bytes,
        )
    }

    /// Data blocks that a point query looked into, on average, cached or not.
    #[must_use]
    pub fn read_amplification(&self) -> f64 {
        share(self.tables_probed - self.tables_excluded, self.gets)
    }

    /// Bytes of all tables for each byte of the lowest level that has any: near
    /// 1 if little is overwritten or deleted above it. 1: there are no tables.
    #[must_use]
    pub fn space_amplification(&self) -> f64 {
        let lowest = self.levels.iter().rev().find(|level| level.bytes > 0);
        lowest.map_or(1.0, |lowest| share(self.table_bytes(), lowest.bytes))
    }

    /// Bytes of all tables.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Bytes that flushes wrote.
    #[must_use]
    pub fn flushed_bytes(&self) -> u64 {
        self.levels.first().map_or(0, |level| level.written_bytes)
    }

    /// Bytes that compactions wrote.
    #[must_use]
    pub fn compacted_bytes(&self) -> u64 {
        self.levels
            .iter()
            .skip(1)
            .map(|level| level.written_bytes)
            .sum()
    }

    /// How long writes waited, whatever the cause.
    #[must_use]
    pub fn stall_time(&self) -> Nanos {
        Nanos(self.stalls.iter().map(|stall| stall.time.0).sum())
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}
