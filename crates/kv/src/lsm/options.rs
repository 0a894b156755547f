//! Settings of a store, by `RocksDB`'s names.

use zonelab_device::Nanos;

use serde::Serialize;

use super::error::DbError;

/// When the write-ahead log is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WalSync {
    /// When asked ([`Db::sync`](super::Db::sync)), and when a log ends:
    /// `RocksDB`'s `WriteOptions::sync = false`, its default.
    OnDemand,
    /// Before a write returns; writes that wait together share one sync:
    /// `WriteOptions::sync = true`.
    EachWrite,
    /// After so many bytes (at least 1) of log: `wal_bytes_per_sync`.
    EveryBytes(u64),
}

/// Time that the store takes on a core of the host.
///
/// The defaults are round figures of the order that `RocksDB` shows on one core of
/// a server, as its public benchmarks tell: some 400,000 writes without sync and
/// some 500,000 cached reads per second, 250 MB/s of compaction of 1 KiB entries.
/// They are parameters and not measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CpuCosts {
    /// Of a put or delete: log record and memtable.
    pub put_ns: u64,
    /// Of a point query that ends in memory.
    pub get_ns: u64,
    /// Of each table that a query looks into (filter, index).
    pub probe_ns: u64,
    /// Of a data block that comes from the device: check, insertion into the cache.
    pub block_ns: u64,
    /// Of moving a range query on by one entry.
    pub next_ns: u64,
    /// Of an entry that a flush or compaction reads.
    pub merge_ns: u64,
    /// Of 1 KiB that a flush or compaction writes.
    pub merge_kib_ns: u64,
    /// A client computes this long before it gives up its core. Larger is faster
    /// to simulate; the time of a single operation is off by up to this much.
    pub quantum_ns: u64,
}

impl Default for CpuCosts {
    fn default() -> Self {
        Self {
            put_ns: 2_500,
            get_ns: 1_500,
            probe_ns: 400,
            block_ns: 1_000,
            next_ns: 300,
            merge_ns: 1_500,
            merge_kib_ns: 2_500,
            quantum_ns: 25_000,
        }
    }
}

impl CpuCosts {
    /// Nothing takes time on the host.
    pub const FREE: Self = Self {
        put_ns: 0,
        get_ns: 0,
        probe_ns: 0,
        block_ns: 0,
        next_ns: 0,
        merge_ns: 0,
        merge_kib_ns: 0,
        quantum_ns: 0,
    };

    pub(crate) fn merge(&self, entries: u64, bytes: u64) -> Nanos {
        Nanos(entries * self.merge_ns + bytes * self.merge_kib_ns / 1024)
    }
}

/// How a store works. Names, meanings and defaults are those of `RocksDB` 8
/// where it has them; others say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// The device keeps data, so contents are bytes. Not of `RocksDB`; default true.
    pub keeps_data: bool,
    /// By so many bytes a key is longer on the device than in memory, for stores
    /// on devices without data: a number of 8 bytes can stand for a key of 48. Must be 0
    /// with data. Not of `RocksDB`; default 0.
    pub key_padding: usize,
    /// Bytes of a memtable that end it (64 MiB).
    pub write_buffer_size: u64,
    /// Memtables, the one that is written included; writes stop when this many
    /// wait for their flush (2).
    pub max_write_buffer_number: usize,
    /// Tables in level 0 that start a compaction (4).
    pub level0_file_num_compaction_trigger: usize,
    /// Tables in level 0 that slow down writes (20).
    pub level0_slowdown_writes_trigger: usize,
    /// Tables in level 0 that stop writes (36).
    pub level0_stop_writes_trigger: usize,
    /// Size of tables from level 1 on (64 MiB).
    pub target_file_size_base: u64,
    /// Factor of table sizes from level to level (1).
    pub target_file_size_multiplier: u64,
    /// Size of level 1 that starts a compaction (256 MiB).
    pub max_bytes_for_level_base: u64,
    /// Factor of sizes from level to level (10).
    pub max_bytes_for_level_multiplier: u64,
    /// Levels, 2 to 16 (7).
    pub num_levels: usize,
    /// Largest compaction that is put together beyond what is necessary, and
    /// most bytes of the level below its output that one table of it overlaps;
    /// 0: 25 times the table size (0).
    pub max_compaction_bytes: u64,
    /// Size of a data block (4 KiB).
    pub block_size: usize,
    /// What compression leaves of a data block, in percent, for stores on devices
    /// without data: a block ends at `block_size` before it, and tables, compactions
    /// and the cache count what is left. The log is not compressed. With data it must be
    /// 100, for nothing is compressed. Not of `RocksDB`; default 100.
    pub compression_percent: u32,
    /// Bits of a bloom filter per key; 0: no filter. `RocksDB` has none by
    /// default, and 10 is what its documentation advises (10).
    pub bloom_bits_per_key: u32,
    /// Bytes of data blocks that are kept in memory (32 MiB); 0: none.
    pub block_cache_bytes: u64,
    /// Flushes and compactions at a time: a quarter are flushes, at least one,
    /// the rest compactions, at least one (2).
    pub max_background_jobs: usize,
    /// Bytes that a compaction reads at a time (2 MiB).
    pub compaction_readahead_size: u64,
    /// A compaction reads the next bytes of each table while it uses these. `RocksDB`
    /// waits for each read, so that a compaction has one on its way at a time.
    /// Not of `RocksDB`; default true.
    pub compaction_async_io: bool,
    /// Bytes that range queries read ahead at most (256 KiB).
    pub max_auto_readahead_size: u64,
    /// Bytes of the log that are collected before they go to the file
    /// (64 KiB, with which `writable_file_max_buffer_size` begins).
    pub wal_buffer_bytes: u64,
    /// When the log is made durable.
    pub wal_sync: WalSync,
    /// Bytes per second at which delayed writes begin (16 MiB/s).
    pub delayed_write_rate: u64,
    /// Bytes that compactions owe before writes are delayed (64 GiB).
    pub soft_pending_compaction_bytes_limit: u64,
    /// Bytes that compactions owe before writes stop (256 GiB).
    pub hard_pending_compaction_bytes_limit: u64,
    /// Time on the host.
    pub costs: CpuCosts,
}

/// Name and value of an option, whether it can be that, and what it may be.
type Rule = (&'static str, u64, bool, &'static str);

impl Default for Options {
    fn default() -> Self {
        Self {
            keeps_data: true,
            key_padding: 0,
            write_buffer_size: 64 << 20,
            max_write_buffer_number: 2,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 20,
            level0_stop_writes_trigger: 36,
            target_file_size_base: 64 << 20,
            target_file_size_multiplier: 1,
            max_bytes_for_level_base: 256 << 20,
            max_bytes_for_level_multiplier: 10,
            num_levels: 7,
            max_compaction_bytes: 0,
            block_size: 4 << 10,
            compression_percent: 100,
            bloom_bits_per_key: 10,
            block_cache_bytes: 32 << 20,
            max_background_jobs: 2,
            compaction_readahead_size: 2 << 20,
            compaction_async_io: true,
            max_auto_readahead_size: 256 << 10,
            wal_buffer_bytes: 64 << 10,
            wal_sync: WalSync::OnDemand,
            delayed_write_rate: 16 << 20,
            soft_pending_compaction_bytes_limit: 64 << 30,
            hard_pending_compaction_bytes_limit: 256 << 30,
            costs: CpuCosts::default(),
        }
    }
}

impl Options {
    /// # Errors
    /// [`DbError::Option`]: a value that cannot work.
    pub fn check(&self) -> Result<(), DbError> {
        let mut rules = self.write_rules().into_iter().chain(self.table_rules());
        match rules.find(|&(_, _, holds, _)| !holds) {
            Some((name, value, _, valid)) => Err(DbError::Option { name, value, valid }),
            None => Ok(()),
        }
    }

    fn write_rules(&self) -> [Rule; 8] {
        [
            (
                "key_padding",
                self.key_padding as u64,
                self.key_padding == 0 || (!self.keeps_data && self.key_padding <= 0x8000),
                "0 if data is kept, otherwise 0 to 32768",
            ),
            (
                "write_buffer_size",
                self.write_buffer_size,
                (1..=1 << 30).contains(&self.write_buffer_size),
                "1 to 1073741824 bytes",
            ),
            (
                "max_write_buffer_number",
                self.max_write_buffer_number as u64,
                self.max_write_buffer_number >= 1,
                "at least 1",
            ),
            (
                "level0_slowdown_writes_trigger",
                self.level0_slowdown_writes_trigger as u64,
                self.level0_slowdown_writes_trigger >= self.level0_file_num_compaction_trigger,
                "at least level0_file_num_compaction_trigger",
            ),
            (
                "level0_stop_writes_trigger",
                self.level0_stop_writes_trigger as u64,
                self.level0_stop_writes_trigger >= self.level0_slowdown_writes_trigger,
                "at least level0_slowdown_writes_trigger",
            ),
            (
                "wal_sync",
                0,
                self.wal_sync != WalSync::EveryBytes(0),
                "at least 1 byte",
            ),
            (
                "delayed_write_rate",
                self.delayed_write_rate,
                self.delayed_write_rate >= 1,
                "at least 1 byte per second",
            ),
            (
                "hard_pending_compaction_bytes_limit",
                self.hard_pending_compaction_bytes_limit,
                self.hard_pending_compaction_bytes_limit
                    >= self.soft_pending_compaction_bytes_limit,
                "at least soft_pending_compaction_bytes_limit",
            ),
        ]
    }

    fn table_rules(&self) -> [Rule; 10] {
        [
            (
                "compression_percent",
                u64::from(self.compression_percent),
                self.compression_percent == 100
                    || (!self.keeps_data && (1..100).contains(&self.compression_percent)),
                "100 if data is kept, otherwise 1 to 100",
            ),
            (
                "level0_file_num_compaction_trigger",
                self.level0_file_num_compaction_trigger as u64,
                self.level0_file_num_compaction_trigger >= 1,
                "at least 1",
            ),
            (
                "target_file_size_base",
                self.target_file_size_base,
                (1..=1 << 31).contains(&self.target_file_size_base),
                "1 to 2147483648 bytes",
            ),
            (
                "target_file_size_multiplier",
                self.target_file_size_multiplier,
                (1..=100).contains(&self.target_file_size_multiplier),
                "1 to 100",
            ),
            (
                "max_bytes_for_level_base",
                self.max_bytes_for_level_base,
                self.max_bytes_for_level_base >= 1,
                "at least 1",
            ),
            (
                "max_bytes_for_level_multiplier",
                self.max_bytes_for_level_multiplier,
                (1..=1000).contains(&self.max_bytes_for_level_multiplier),
                "1 to 1000",
            ),
            (
                "num_levels",
                self.num_levels as u64,
                (2..=16).contains(&self.num_levels),
                "2 to 16",
            ),
            (
                "block_size",
                self.block_size as u64,
                (64..=1 << 20).contains(&self.block_size),
                "64 to 1048576 bytes",
            ),
            (
                "bloom_bits_per_key",
                u64::from(self.bloom_bits_per_key),
                self.bloom_bits_per_key <= 100,
                "0 to 100",
            ),
            (
                "max_background_jobs",
                self.max_background_jobs as u64,
                (1..=64).contains(&self.max_background_jobs),
                "1 to 64",
            ),
        ]
    }

    /// Size at which a table of `level` ends.
    pub(crate) fn target_file_size(&self, level: usize) -> u64 {
        let steps = level.saturating_sub(1) as u32;
        let factor = self.target_file_size_multiplier.saturating_pow(steps);
        // An index has 32 bits for keys and entries.
        self.target_file_size_base
            .saturating_mul(factor)
            .min(1 << 31)
    }

    /// Size of `level` (from 1) above which it is compacted.
    pub(crate) fn max_bytes_for_level(&self, level: usize) -> u64 {
        let steps = level.saturating_sub(1) as u32;
        let factor = self.max_bytes_for_level_multiplier.saturating_pow(steps);
        self.max_bytes_for_level_base.saturating_mul(factor)
    }

    /// See [`Self::max_compaction_bytes`].
    pub(crate) fn compaction_bytes(&self) -> u64 {
        match self.max_compaction_bytes {
            0 => self.target_file_size_base.saturating_mul(25),
            bytes => bytes,
        }
    }

    pub(crate) fn max_flushes(&self) -> usize {
        (self.max_background_jobs / 4).max(1)
    }

    pub(crate) fn max_compactions(&self) -> usize {
        (self.max_background_jobs - self.max_flushes().min(self.max_background_jobs)).max(1)
    }
}
