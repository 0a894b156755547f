//! Puts and deletes.

use std::rc::Rc;

use zonelab_device::Nanos;

use super::super::entry::{Entry, KEY_LEN_MAX, Tag, VALUE_LEN_MAX, Value};
use super::super::error::DbError;
use super::super::log::log_name;
use super::super::options::WalSync;
use super::super::stall::Condition;
use super::super::stats::StallCause;
use super::background::schedule;
use super::{Db, Immutable, Inner, files};
use crate::files::Lifetime;

impl Db {
    /// Stores a value. It is durable when [`Options::wal_sync`] says so.
    ///
    /// [`Options::wal_sync`]: super::super::Options::wal_sync
    ///
    /// # Errors
    /// Key or value cannot be stored, or writes are refused.
    #[inline]
    pub async fn put(&self, key: &[u8], value: Value<'_>) -> Result<(), DbError> {
        if let Value::Bytes(bytes) = value
            && bytes.len() > VALUE_LEN_MAX
        {
            let (len, max) = (bytes.len(), VALUE_LEN_MAX);
            return Err(DbError::ValueTooLong { len, max });
        }
        let value = match (self.inner.options.keeps_data, value) {
            (true, Value::Sized(_)) => return Err(DbError::NoBytes),
            (true, Value::Bytes(_)) => value,
            (false, _) => Value::Sized(value.len().min(VALUE_LEN_MAX as u32)),
        };
        self.write(key, Some(value)).await
    }

    /// Removes what is stored under a key, if anything is.
    ///
    /// # Errors
    /// The key cannot be stored, or writes are refused.
    #[inline]
    pub async fn delete(&self, key: &[u8]) -> Result<(), DbError> {
        self.write(key, None).await
    }

    #[inline]
    async fn write(&self, key: &[u8], value: Option<Value<'_>>) -> Result<(), DbError> {
        let inner = &self.inner;
        let options = &inner.options;
        if key.len() + options.key_padding > KEY_LEN_MAX {
            let (len, max) = (key.len(), KEY_LEN_MAX - options.key_padding);
            return Err(DbError::KeyTooLong { len, max });
        }
        let bytes = (key.len() + options.key_padding) as u64
            + value.map_or(0, |value| u64::from(value.len()));
        if !has_room(inner) {
            make_room(inner, bytes).await?;
        }
        let sequence = inner.last_sequence.get() + 1;
        inner.last_sequence.set(sequence);
        let entry = Entry {
            key,
            tag: match value {
                Some(_) => Tag::put(sequence),
                None => Tag::delete(sequence),
            },
            value: value.unwrap_or(match options.keeps_data {
                true => Value::Bytes(&[]),
                false => Value::Sized(0),
            }),
        };
        inner.wal.push(entry);
        inner.memtable.borrow().borrow_mut().insert(entry);
        {
            let mut stats = inner.stats.borrow_mut();
            stats.puts += u64::from(value.is_some());
            stats.deletes += u64::from(value.is_none());
            stats.user_bytes += bytes;
        }
        if options.wal_sync != WalSync::OnDemand {
            sync_as_configured(inner).await?;
        }
        self.owe(options.costs.put_ns);
        self.pay().await;
        Ok(())
    }
}

/// Whether a write may go on at once.
#[inline]
fn has_room(inner: &Inner) -> bool {
    inner.is_calm.get()
        && inner.wal.pending_len() < inner.options.wal_buffer_bytes
        && inner.memtable.borrow().borrow().bytes() < inner.options.write_buffer_size
}

#[cold]
async fn sync_as_configured(inner: &Rc<Inner>) -> Result<(), DbError> {
    match inner.options.wal_sync {
        WalSync::OnDemand => Ok(()),
        WalSync::EachWrite => sync_log(inner).await,
        WalSync::EveryBytes(bytes) if inner.wal.unsynced_bytes() < bytes => Ok(()),
        WalSync::EveryBytes(_) => sync_log(inner).await,
    }
}

/// Makes the log durable.
pub(super) async fn sync_log(inner: &Rc<Inner>) -> Result<(), DbError> {
    let result = inner.wal.sync().await;
    result.inspect_err(|error| inner.fail("a sync of the log failed", error.clone()))
}

/// Waits until a write may go on.
#[cold]
async fn make_room(inner: &Rc<Inner>, bytes: u64) -> Result<(), DbError> {
    let mut was_delayed = false;
    loop {
        inner.check()?;
        let condition = inner.controller.borrow().condition();
        match condition {
            Condition::Stopped(cause) => {
                schedule(inner);
                if inner.is_idle() {
                    return Err(stuck(inner, cause));
                }
                let from = inner.io.now();
                inner.changed.next().await;
                note_stall(inner, cause, inner.io.now() - from, 0);
                if inner.controller.borrow().condition() != condition {
                    note_stall(inner, cause, Nanos::ZERO, 1);
                }
                continue;
            }
            Condition::Delayed(cause) if !was_delayed => {
                was_delayed = true;
                let now = inner.io.now();
                let delay = inner.controller.borrow_mut().delay(now, bytes);
                if delay > Nanos::ZERO {
                    inner.io.sleep_until(now + delay).await;
                    note_stall(inner, cause, delay, 1);
                    continue;
                }
            }
            Condition::Delayed(_) | Condition::Normal => {}
        }
        let is_full = |inner: &Inner| {
            inner.memtable.borrow().borrow().bytes() >= inner.options.write_buffer_size
        };
        if is_full(inner) {
            switch_memtable(inner, inner.options.write_buffer_size).await?;
        } else if inner.wal.pending_len() >= inner.options.wal_buffer_bytes.max(1) {
            let drained = inner.wal.drain(inner.options.wal_buffer_bytes).await;
            drained.inspect_err(|error| inner.fail("a write of the log failed", error.clone()))?;
        } else {
            return Ok(());
        }
    }
}

fn note_stall(inner: &Inner, cause: StallCause, time: Nanos, count: u64) {
    let stall = &mut inner.stats.borrow_mut().stalls[cause as usize];
    stall.time += time;
    stall.count += count;
}

/// Writes are stopped, and nothing goes on that could end it.
fn stuck(inner: &Inner, cause: StallCause) -> DbError {
    let failure = inner.compaction_failure.borrow().clone();
    DbError::ReadOnly {
        when: "compactions failed and writes stopped",
        cause: Box::new(failure.unwrap_or(DbError::Option {
            name: cause.name(),
            value: 0,
            valid: "writes stop and no compaction is due: let compactions start sooner",
        })),
    }
}

/// Lets a new memtable and a new log begin, if the memtable has so many bytes.
pub(super) async fn switch_memtable(inner: &Rc<Inner>, bytes_min: u64) -> Result<(), DbError> {
    let _turn = inner.switching.lock().await;
    if inner.memtable.borrow().borrow().bytes() < bytes_min {
        return Ok(());
    }
    let number = inner.new_file_number();
    let name = log_name(number);
    let created = inner.files.create(&name, Lifetime::Short).await;
    let next = match created {
        Ok(next) => next,
        Err(error) => {
            let error = DbError::from(error);
            inner.fail("no file for a new log", error.clone());
            return Err(error);
        }
    };
    let rotated = inner
        .wal
        .rotate(next, || begin_memtable(inner, number))
        .await;
    match rotated {
        Ok(old) => {
            let task = Rc::clone(inner);
            let end = async move {
                if let Err(error) = task.wal.end(old).await {
                    task.fail("the end of a log could not be written", error);
                }
            };
            inner.io.spawn(end).forget();
        }
        Err(error) => {
            // The new log has nothing, and recovery skips it.
            inner.fail("a write of the log failed", error.clone());
            return Err(error);
        }
    }
    inner.update_condition();
    schedule(inner);
    Ok(())
}

/// The memtable is full: the next one is written, with the log of this number.
pub(super) fn begin_memtable(inner: &Inner, log: u64) {
    let next = inner.new_memtable();
    if !inner.options.keeps_data {
        inner.shadow.keep_log(log, &next);
    }
    let table = inner.memtable.replace(next);
    let old = inner.log.replace(log);
    let mut immutables = inner.immutables.borrow_mut();
    if table.borrow().is_empty() {
        return;
    }
    immutables.push_back(Immutable { table, log: old });
}

/// Deletes a log whose entries are in tables. One that cannot be deleted goes
/// when the store is opened the next time.
pub(super) async fn delete_log(inner: &Inner, number: u64) {
    inner.wal.wait_for_endings().await;
    files::delete_or_note(inner, &log_name(number)).await;
    inner.shadow.forget_log(number);
}
