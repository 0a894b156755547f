//! The write-ahead log that is written.
//!
//! Records are collected in memory, in the order of their sequence numbers, and
//! go to the file when there are enough of them, when somebody wants them durable,
//! or when the log ends. A log that ended becomes durable before anything of
//! the next one does, so that what survives a crash has no gap.

use std::cell::{Cell, RefCell};
use zonelab_host::notify::Notify;

use futures_util::lock::{Mutex, MutexGuard};

use super::super::entry::Entry;
use super::super::error::DbError;
use super::super::log::{encode_record, record_len};
use crate::Content;
use crate::files::Writer;

/// The log of a store.
pub(crate) struct Wal {
    keeps_data: bool,
    key_padding: usize,
    /// Records that are not in the file yet.
    pending: RefCell<Vec<u8>>,
    pending_len: Cell<u64>,
    /// The last record.
    last_sequence: Cell<u64>,
    /// What is durable.
    durable: Cell<u64>,
    /// Bytes that are in the file since the last sync.
    unsynced_bytes: Cell<u64>,
    /// `None`: the store is closed, or not open yet.
    writer: Mutex<Option<Writer>>,
    /// Logs that ended and are not durable yet.
    endings: Cell<u32>,
    ended: Notify,
    /// Records were lost on their way: nothing after them may become durable.
    failure: RefCell<Option<DbError>>,
    /// Syncs, and bytes of records.
    pub(crate) syncs: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
}

impl Wal {
    pub(crate) fn new(keeps_data: bool, key_padding: usize) -> Self {
        Self {
            keeps_data,
            key_padding,
            pending: RefCell::default(),
            pending_len: Cell::new(0),
            last_sequence: Cell::new(0),
            durable: Cell::new(0),
            unsynced_bytes: Cell::new(0),
            writer: Mutex::new(None),
            endings: Cell::new(0),
            ended: Notify::default(),
            failure: RefCell::default(),
            syncs: Cell::new(0),
            bytes: Cell::new(0),
        }
    }

    /// The first log; what came before it is durable.
    pub(crate) async fn start(&self, writer: Writer, last_sequence: u64) {
        *self.writer.lock().await = Some(writer);
        self.last_sequence.set(last_sequence);
        self.durable.set(last_sequence);
    }

    #[inline]
    pub(crate) fn pending_len(&self) -> u64 {
        self.pending_len.get()
    }

    /// Bytes that a power cut would take.
    pub(crate) fn unsynced_bytes(&self) -> u64 {
        self.unsynced_bytes.get() + self.pending_len.get()
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn push(&self, entry: Entry<'_>) {
        let len = record_len(entry, self.key_padding);
        if self.keeps_data {
            encode_record(entry, &mut self.pending.borrow_mut());
        }
        self.pending_len.set(self.pending_len.get() + len);
        self.bytes.set(self.bytes.get() + len);
        self.last_sequence.set(entry.tag.sequence());
    }

    /// Brings records to the file if there are as many as `limit` bytes.
    ///
    /// # Errors
    /// The file cannot be written, or there is none.
    pub(crate) async fn drain(&self, limit: u64) -> Result<(), DbError> {
        let mut writer = self.writer.lock().await;
        if self.pending_len() < limit {
            return Ok(());
        }
        self.drain_into(&mut writer).await
    }

    async fn drain_into(&self, writer: &mut MutexGuard<'_, Option<Writer>>) -> Result<(), DbError> {
        self.check()?;
        let writer = writer.as_mut().ok_or(DbError::Closed)?;
        let len = self.pending_len.take();
        if len == 0 {
            return Ok(());
        }
        let capacity = self.pending.borrow().len();
        let content = match self.keeps_data {
            true => Content::Bytes(self.pending.replace(Vec::with_capacity(capacity))),
            false => Content::Sized(len),
        };
        let result = writer.append(content).await;
        self.unsynced_bytes.set(self.unsynced_bytes.get() + len);
        self.noted(result.map_err(DbError::from))
    }

    /// Remembers a failure.
    fn noted(&self, result: Result<(), DbError>) -> Result<(), DbError> {
        if let Err(error) = &result {
            self.failure.borrow_mut().get_or_insert(error.clone());
        }
        result
    }

    fn check(&self) -> Result<(), DbError> {
        match &*self.failure.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Makes all records durable that are there now. Those who wait at the same time
    /// share a sync.
    ///
    /// # Errors
    /// The file cannot be written, or there is none.
    pub(crate) async fn sync(&self) -> Result<(), DbError> {
        let target = self.last_sequence.get();
        let mut writer = self.writer.lock().await;
        if self.durable.get() >= target {
            return Ok(());
        }
        self.wait_for_endings().await;
        self.check()?;
        let reached = self.last_sequence.get();
        self.drain_into(&mut writer).await?;
        if let Some(writer) = writer.as_mut() {
            let result = writer.sync().await;
            self.noted(result.map_err(DbError::from))?;
        }
        self.syncs.set(self.syncs.get() + 1);
        self.unsynced_bytes.set(0);
        self.durable.set(reached);
        Ok(())
    }

    /// Waits until the logs that ended are durable and have no writer.
    pub(crate) async fn wait_for_endings(&self) {
        while self.endings.get() > 0 {
            self.ended.next().await;
        }
    }

    /// Goes on in another file. `switch` runs when all records so far are in the
    /// old one; no record comes between. Gives the old file, which must be
    /// [closed](Self::end).
    ///
    /// # Errors
    /// The old file cannot be written, or there is none; nothing was switched.
    pub(crate) async fn rotate(
        &self,
        next: Writer,
        switch: impl FnOnce(),
    ) -> Result<Option<Writer>, DbError> {
        let mut writer = self.writer.lock().await;
        // Others may add records while the last ones are on their way.
        while self.pending_len() > 0 {
            self.drain_into(&mut writer).await?;
        }
        switch();
        self.endings.set(self.endings.get() + 1);
        self.unsynced_bytes.set(0);
        Ok(writer.replace(next))
    }

    /// Goes on in another file although the old one failed. Its records must become
    /// durable in another way; until that is [done](Self::replaced), no later one does.
    pub(crate) async fn abandon(&self, next: Writer, switch: impl FnOnce()) {
        let mut writer = self.writer.lock().await;
        self.pending_len.set(0);
        self.pending.borrow_mut().clear();
        self.failure.take();
        switch();
        self.endings.set(self.endings.get() + 1);
        self.unsynced_bytes.set(0);
        *writer = Some(next);
    }

    /// The records of an abandoned log are durable, unless that failed.
    pub(crate) fn replaced(&self, failure: Option<DbError>) {
        self.endings.set(self.endings.get() - 1);
        self.ended.ring();
        if let Some(error) = failure {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    /// Makes a log durable that ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn end(&self, old: Option<Writer>) -> Result<(), DbError> {
        let result = match old {
            Some(old) => old.close().await.map_err(DbError::from),
            None => Ok(()),
        };
        self.endings.set(self.endings.get() - 1);
        self.ended.ring();
        self.noted(result)
    }

    /// The last log ends.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn close(&self) -> Result<(), DbError> {
        self.wait_for_endings().await;
        let mut writer = self.writer.lock().await;
        if writer.is_some() {
            self.drain_into(&mut writer).await?;
        }
        match writer.take() {
            Some(writer) => self.noted(writer.close().await.map_err(DbError::from)),
            None => self.check(),
        }
    }
}
