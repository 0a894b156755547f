//! The store itself: what clients call, and what it shares with its tasks.

mod background;
mod files;
mod output;
mod read;
mod recover;
mod wal;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures_util::lock::Mutex;
use zonelab_device::Nanos;
use zonelab_host::notify::Notify;
use zonelab_host::tasks::Io;

use super::cache::BlockCache;
use super::error::DbError;
use super::memtable::{Memtable, SharedMemtable};
use super::options::Options;
use super::shadow::Shadow;
use super::stall::{Condition, Pressure, WriteController};
use super::stats::{DbStats, LevelStats, StallCause};
use super::table::TableFormat;
use super::version::{Graveyard, Version, total_size};
use crate::files::{Files, Writer};
use wal::Wal;

/// A store of keys and values. Clones are the same store, each with its own time: a
/// clone stands for a thread of the client (see [`Self::now`]).
///
/// Everything runs on one thread; operations of several clones may wait at the
/// same time.
pub struct Db {
    inner: Rc<Inner>,
    /// Time that the client computed and did not wait for yet.
    debt_ns: Cell<u64>,
}

impl Clone for Db {
    fn clone(&self) -> Self {
        Self {
            inner: Rc::clone(&self.inner),
            debt_ns: Cell::new(0),
        }
    }
}

/// A memtable that is written no more.
struct Immutable {
    table: SharedMemtable,
    /// The log that has its entries.
    log: u64,
}

/// The manifest that is written.
struct ManifestWriter {
    name: String,
    writer: Writer,
}

/// What clients and background tasks share.
struct Inner {
    io: Io,
    files: Files,
    options: Options,
    /// What files of a device without data hold.
    shadow: Shadow,
    format: TableFormat,
    cache: BlockCache,
    graveyard: Graveyard,
    memtable: RefCell<SharedMemtable>,
    /// The log of `memtable`.
    log: Cell<u64>,
    /// Oldest first.
    immutables: RefCell<VecDeque<Immutable>>,
    /// The oldest of them are being flushed.
    is_flushing: Cell<bool>,
    version: RefCell<Rc<Version>>,
    wal: Wal,
    /// Held by who replaces the memtable.
    switching: Mutex<()>,
    /// Held by who makes a new version. `None`: closed, or not open yet.
    manifest: Mutex<Option<ManifestWriter>>,
    next_file: Cell<u64>,
    last_sequence: Cell<u64>,
    controller: RefCell<WriteController>,
    /// Writes need nothing but room in the memtable and in the log.
    is_calm: Cell<bool>,
    compactions: Cell<usize>,
    /// Rings when a background task ends, or the state of writes changes.
    changed: Notify,
    /// Why writes are refused.
    failure: RefCell<Option<DbError>>,
    /// Why a compaction failed last; its tables are left alone.
    compaction_failure: RefCell<Option<DbError>>,
    is_closing: Cell<bool>,
    stats: RefCell<DbStats>,
}

impl Inner {
    fn new(io: &Io, files: &Files, options: Options, shadow: Shadow) -> Self {
        let format = TableFormat {
            keeps_data: options.keeps_data,
            key_padding: options.key_padding,
            block_size: options.block_size,
            compression_percent: options.compression_percent,
            bloom_bits_per_key: options.bloom_bits_per_key,
        };
        let memtable = Rc::new(RefCell::new(Memtable::new(
            options.keeps_data,
            options.key_padding,
        )));
        let stats = DbStats {
            levels: vec![LevelStats::default(); options.num_levels],
            ..DbStats::default()
        };
        Self {
            io: io.clone(),
            files: files.clone(),
            shadow,
            format,
            cache: BlockCache::new(options.block_cache_bytes),
            graveyard: Graveyard::default(),
            memtable: RefCell::new(memtable),
            log: Cell::new(0),
            immutables: RefCell::default(),
            is_flushing: Cell::new(false),
            version: RefCell::new(Rc::new(Version::empty(options.num_levels))),
            wal: Wal::new(options.keeps_data, options.key_padding),
            switching: Mutex::new(()),
            manifest: Mutex::new(None),
            next_file: Cell::new(1),
            last_sequence: Cell::new(0),
            controller: RefCell::new(WriteController::new(&options)),
            is_calm: Cell::new(true),
            compactions: Cell::new(0),
            changed: Notify::default(),
            failure: RefCell::default(),
            compaction_failure: RefCell::default(),
            is_closing: Cell::new(false),
            stats: RefCell::new(stats),
            options,
        }
    }

    fn version(&self) -> Rc<Version> {
        Rc::clone(&self.version.borrow())
    }

    fn new_file_number(&self) -> u64 {
        let number = self.next_file.get();
        self.next_file.set(number + 1);
        number
    }

    fn new_memtable(&self) -> SharedMemtable {
        let table = Memtable::new(self.options.keeps_data, self.options.key_padding);
        Rc::new(RefCell::new(table))
    }

    fn pressure(&self) -> Pressure {
        let version = self.version.borrow();
        Pressure {
            unflushed: self.immutables.borrow().len(),
            level0_files: version.levels[0].len(),
            pending_bytes: version.pending_compaction_bytes(&self.options),
        }
    }

    /// Tables or memtables have changed: writes may go on, or must wait.
    fn update_condition(&self) {
        let pressure = self.pressure();
        let mut controller = self.controller.borrow_mut();
        controller.update(pressure, &self.options);
        let is_normal = controller.condition() == Condition::Normal;
        self.is_calm
            .set(is_normal && self.failure.borrow().is_none());
        drop(controller);
        self.changed.ring();
    }

    /// Refuses writes from now on.
    fn fail(&self, when: &'static str, cause: DbError) {
        self.stats.borrow_mut().background_errors += 1;
        let cause = Box::new(cause);
        let error = DbError::ReadOnly { when, cause };
        self.failure.borrow_mut().get_or_insert(error);
        self.is_calm.set(false);
        self.changed.ring();
    }

    fn check(&self) -> Result<(), DbError> {
        if self.is_closing.get() {
            return Err(DbError::Closed);
        }
        match &*self.failure.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn is_idle(&self) -> bool {
        self.compactions.get() == 0 && !self.is_flushing.get()
    }
}

impl Db {
    /// Opens the store in `files`, or makes one if there is none: replays the
    /// manifest and the logs, writes what was in the logs to a table, and
    /// deletes files that a crash left behind.
    ///
    /// # Errors
    /// An option that cannot work, a file that cannot be read or written, or one
    /// that is damaged. Nothing is deleted then.
    pub async fn open(io: &Io, files: &Files, options: Options) -> Result<Self, DbError> {
        Self::open_with(io, files, options, Shadow::default()).await
    }

    /// As [`Self::open`], for a store that was closed or left earlier in this run, on
    /// a device without data: `shadow` is the one that it had.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        io: &Io,
        files: &Files,
        options: Options,
        shadow: Shadow,
    ) -> Result<Self, DbError> {
        options.check()?;
        let inner = Rc::new(Inner::new(io, files, options, shadow));
        recover::recover(&inner).await?;
        inner.update_condition();
        background::schedule(&inner);
        Ok(Self {
            inner,
            debt_ns: Cell::new(0),
        })
    }

    /// The client's time: that of its tasks, and what it computed since. It is
    /// what latencies are differences of; the client waits for it in quanta
    /// ([`CpuCosts::quantum_ns`](super::CpuCosts::quantum_ns)).
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.inner.io.now() + Nanos(self.debt_ns.get())
    }

    /// Notes time on the client's core.
    #[inline]
    fn owe(&self, ns: u64) {
        self.debt_ns.set(self.debt_ns.get() + ns);
    }

    /// Waits for the time that was computed, if there is enough of it.
    #[inline]
    async fn pay(&self) {
        let quantum = self.inner.options.costs.quantum_ns;
        if self.debt_ns.get() > 0 && self.debt_ns.get() >= quantum {
            self.inner.io.work(Nanos(self.debt_ns.take())).await;
        }
    }

    /// Makes every write durable that has returned.
    ///
    /// # Errors
    /// The log cannot be written; later writes are refused.
    pub async fn sync(&self) -> Result<(), DbError> {
        self.inner.check()?;
        write::sync_log(&self.inner).await
    }

    /// Writes all memtables to tables.
    ///
    /// # Errors
    /// Writes are refused, or a flush fails.
    pub async fn flush(&self) -> Result<(), DbError> {
        self.inner.check()?;
        write::switch_memtable(&self.inner, 1).await?;
        while !self.inner.immutables.borrow().is_empty() {
            background::schedule(&self.inner);
            self.inner.check()?;
            self.inner.changed.next().await;
        }
        self.inner.check()
    }

    /// Waits until no flush or compaction is under way or due.
    ///
    /// # Errors
    /// Writes are refused.
    pub async fn idle(&self) -> Result<(), DbError> {
        loop {
            background::schedule(&self.inner);
            self.inner.check()?;
            if self.inner.is_idle() {
                return Ok(());
            }
            self.inner.changed.next().await;
        }
    }

    /// Tries again what failed in the background: writes memtables to tables, and
    /// lets compactions have the tables that they failed on. If that works, writes
    /// are accepted again. For a device that was full, or came back.
    ///
    /// # Errors
    /// It failed again.
    pub async fn resume(&self) -> Result<(), DbError> {
        background::resume(&self.inner).await
    }

    /// Ends the store: compactions stop where they are, the log becomes durable.
    /// Memtables are not flushed, as in `RocksDB` while there is a log.
    ///
    /// # Errors
    /// The log or the manifest cannot be written, or writes were refused already.
    pub async fn close(self) -> Result<(), DbError> {
        let inner = &self.inner;
        if inner.is_closing.replace(true) {
            return Err(DbError::Closed);
        }
        inner.is_calm.set(false);
        inner.changed.ring();
        while !inner.is_idle() {
            inner.changed.next().await;
        }
        let log = inner.wal.close().await;
        let manifest = inner.manifest.lock().await.take();
        let manifest = match manifest {
            Some(manifest) => manifest.writer.close().await.map_err(DbError::from),
            None => Ok(()),
        };
        files::purge(inner).await;
        let failure = inner.failure.borrow().clone();
        log.and(manifest).and(failure.map_or(Ok(()), Err))
    }

    /// What the store has done since it was opened.
    #[must_use]
    pub fn stats(&self) -> DbStats {
        let inner = &self.inner;
        let mut stats = inner.stats.borrow().clone();
        let version = inner.version.borrow();
        for (level, files) in stats.levels.iter_mut().zip(&version.levels) {
            level.files = files.len() as u64;
            level.bytes = total_size(files);
        }
        stats.wal_bytes = inner.wal.bytes.get();
        stats.wal_syncs = inner.wal.syncs.get();
        stats.block_cache = inner.cache.stats();
        stats.running_compactions = inner.compactions.get() as u64;
        stats.pending_compaction_bytes = version.pending_compaction_bytes(&inner.options);
        stats.stalled_by = self.stalled_by();
        let immutables = inner.immutables.borrow();
        let waiting: u64 = immutables.iter().map(|it| it.table.borrow().bytes()).sum();
        stats.memtable_bytes = waiting + inner.memtable.borrow().borrow().bytes();
        stats
    }

    /// What writes wait for at present.
    #[must_use]
    pub fn stalled_by(&self) -> Option<StallCause> {
        match self.inner.controller.borrow().condition() {
            Condition::Normal => None,
            Condition::Delayed(cause) | Condition::Stopped(cause) => Some(cause),
        }
    }

    /// Why writes are refused or a compaction failed, if that is so.
    #[must_use]
    pub fn background_error(&self) -> Option<DbError> {
        let failure = self.inner.failure.borrow().clone();
        failure.or_else(|| self.inner.compaction_failure.borrow().clone())
    }

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }
}
