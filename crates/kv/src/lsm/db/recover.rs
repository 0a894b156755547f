//! Opening a store.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::super::entry::{Entry, Tag};
use super::super::error::DbError;
use super::super::log::{decode_record, log_name, record_len};
use super::super::manifest::{
    CURRENT, CURRENT_TEMPORARY, Edit, FILE_NUMBER_MAX, FileRecord, Replay, manifest_name,
};
use super::super::memtable::{MemtableCursor, SharedMemtable};
use super::super::merge::Source;
use super::super::table::{Table, table_name};
use super::super::version::{Changes, FileMeta};
use super::background::write_level0;
use super::{Inner, ManifestWriter, files};
use crate::Content;
use crate::files::{Lifetime, Reader};

/// What the name of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Table(u64),
    Log(u64),
    Manifest(u64),
    Current,
    Temporary,
    /// Not a file of a store.
    Other,
}

fn named(name: &str) -> Named {
    let number = |digits: &str| {
        let number = digits.parse::<u64>().ok();
        number.filter(|number| *number <= FILE_NUMBER_MAX)
    };
    if let Some(number) = name.strip_suffix(".sst").and_then(number) {
        Named::Table(number)
    } else if let Some(number) = name.strip_suffix(".log").and_then(number) {
        Named::Log(number)
    } else if let Some(number) = name.strip_prefix("MANIFEST-").and_then(number) {
        Named::Manifest(number)
    } else if name == CURRENT {
        Named::Current
    } else if name == CURRENT_TEMPORARY {
        Named::Temporary
    } else {
        Named::Other
    }
}

/// Brings a store to where the last one ended or was cut off.
pub(super) async fn recover(inner: &Rc<Inner>) -> Result<(), DbError> {
    let names: Vec<(String, Named)> = inner
        .files
        .list()
        .into_iter()
        .map(|(name, _)| (named(&name), name))
        .map(|(kind, name)| (name, kind))
        .collect();
    let replay = match names.iter().any(|&(_, kind)| kind == Named::Current) {
        true => read_manifest(inner).await?,
        // Files without it are of a store that never came to be.
        false => Replay::default(),
    };
    let number_max = names.iter().filter_map(|&(_, kind)| match kind {
        Named::Table(number) | Named::Log(number) | Named::Manifest(number) => Some(number),
        Named::Current | Named::Temporary | Named::Other => None,
    });
    let next_file = number_max.max().unwrap_or(0) + 1;
    inner.next_file.set(next_file.max(replay.next_file).max(1));
    inner.last_sequence.set(replay.last_sequence);
    open_tables(inner, &replay.files).await?;
    replay_logs(inner, &names, replay.log_number).await?;
    let kept = begin_files(inner).await?;
    let live: BTreeSet<u64> = inner
        .version()
        .levels
        .iter()
        .flatten()
        .map(|file| file.number())
        .collect();
    for (name, kind) in &names {
        let is_kept = match kind {
            Named::Table(number) => live.contains(number),
            Named::Log(number) | Named::Manifest(number) => kept.contains(number),
            // What was to become `CURRENT` has become it, or was replaced.
            Named::Current | Named::Temporary | Named::Other => true,
        };
        if !is_kept {
            files::delete(inner, name).await?;
            match kind {
                Named::Table(number) => inner.shadow.forget_table(*number),
                Named::Log(number) => inner.shadow.forget_log(*number),
                _ => {}
            }
        }
    }
    Ok(())
}

async fn read_manifest(inner: &Inner) -> Result<Replay, DbError> {
    let current = files::read(inner, CURRENT).await?;
    let name = core::str::from_utf8(&current).map(str::trim_end);
    let name = name
        .ok()
        .filter(|name| matches!(named(name), Named::Manifest(_)));
    let Some(name) = name else {
        return Err(DbError::Corrupt {
            file: CURRENT.to_owned(),
            offset: 0,
            what: "it does not name a manifest",
        });
    };
    let bytes = files::read(inner, name).await?;
    Replay::of(&bytes, inner.options.num_levels).map_err(|(offset, what)| DbError::Corrupt {
        file: name.to_owned(),
        offset,
        what,
    })
}

async fn open_tables(inner: &Inner, records: &[FileRecord]) -> Result<(), DbError> {
    let mut changes = Changes::default();
    for record in records {
        let reader = inner.files.open(&table_name(record.number))?;
        if reader.len() != record.size {
            return Err(DbError::Corrupt {
                file: table_name(record.number),
                offset: reader.len(),
                what: "its length is not that in the manifest",
            });
        }
        let shadow = inner.shadow.table(record.number);
        let (number, tail_len) = (record.number, record.tail_len);
        let table = Table::open(number, reader, tail_len, shadow, &inner.cache).await?;
        let file = FileMeta {
            table,
            size: record.size,
            tail_len,
            smallest: record.smallest.clone(),
            largest: record.largest.clone(),
            sequences: record.sequences,
            is_compacting: false.into(),
            is_obsolete: false.into(),
            graveyard: Rc::clone(&inner.graveyard),
        };
        changes
            .added
            .push((usize::from(record.level), Rc::new(file)));
    }
    let version = inner.version().with(&changes);
    *inner.version.borrow_mut() = Rc::new(version);
    Ok(())
}

/// Puts what is in the logs into tables. Logs follow each other without a gap:
/// what comes after one is of no use, since it was never acknowledged.
async fn replay_logs(
    inner: &Rc<Inner>,
    names: &[(String, Named)],
    log_number: u64,
) -> Result<(), DbError> {
    let mut logs: Vec<u64> = names
        .iter()
        .filter_map(|&(_, kind)| match kind {
            Named::Log(number) if number >= log_number => Some(number),
            _ => None,
        })
        .collect();
    logs.sort_unstable();
    for number in logs {
        let reader = inner.files.open(&log_name(number))?;
        if !replay_log(inner, number, &reader).await? {
            break;
        }
    }
    flush_memtable(inner).await
}

/// Returns whether the log went on where the one before ended.
async fn replay_log(inner: &Rc<Inner>, number: u64, reader: &Reader) -> Result<bool, DbError> {
    let mut records = match inner.options.keeps_data {
        true => Records::Bytes {
            bytes: Vec::new(),
            at: 0,
        },
        false => Records::shadow(inner, number, reader.len())?,
    };
    // Bytes that were read, and bytes of whole records among them.
    let (mut read, mut whole) = (0, 0);
    while read < reader.len() {
        let step = inner.options.compaction_readahead_size.max(1);
        let len = step.min(reader.len() - read);
        records.extend(reader.read(read, len).await?);
        read += len;
        while let Some((len, is_next)) = records.take(inner, read - whole) {
            if !is_next {
                return Ok(false);
            }
            whole += len;
            if is_full(inner) {
                flush_memtable(inner).await?;
            }
        }
    }
    if inner.options.keeps_data && whole < reader.len() {
        return Err(DbError::Corrupt {
            file: log_name(number),
            offset: whole,
            what: "a record is damaged",
        });
    }
    Ok(true)
}

/// Records of a log.
enum Records {
    /// What was read and is no whole record yet begins at `at`.
    Bytes { bytes: Vec<u8>, at: usize },
    /// On a device without data: the memtable that had them, and the next one.
    Shadow { table: SharedMemtable, next: usize },
}

impl Records {
    fn shadow(inner: &Inner, number: u64, len: u64) -> Result<Self, DbError> {
        let table = match inner.shadow.log(number) {
            Some(table) => table,
            None if len == 0 => inner.new_memtable(),
            None => {
                let file = log_name(number);
                return Err(DbError::Forgotten { file });
            }
        };
        Ok(Self::Shadow { table, next: 0 })
    }

    fn extend(&mut self, content: Content) {
        if let (Self::Bytes { bytes, at }, Content::Bytes(more)) = (self, content) {
            bytes.drain(..core::mem::take(at));
            bytes.extend_from_slice(&more);
        }
    }

    /// Inserts the next record, if it is whole in the `available` bytes that are
    /// there: its length, and whether it is the one that was to come.
    fn take(&mut self, inner: &Inner, available: u64) -> Option<(u64, bool)> {
        match self {
            Self::Bytes { bytes, at } => {
                let (entry, len) = decode_record(&bytes[*at..])?;
                *at += len;
                Some((len as u64, insert(inner, entry)))
            }
            Self::Shadow { table, next } => {
                let table = table.borrow();
                let entry = table.inserted(*next)?;
                let len = record_len(entry, inner.options.key_padding);
                if len > available {
                    return None;
                }
                *next += 1;
                Some((len, insert(inner, entry)))
            }
        }
    }
}

/// Adds a record of a log. Returns whether it is the next one.
fn insert(inner: &Inner, entry: Entry<'_>) -> bool {
    let sequence = entry.tag.sequence();
    if sequence <= inner.last_sequence.get() {
        // It is in a table already.
        return true;
    }
    if sequence != inner.last_sequence.get() + 1 {
        return false;
    }
    inner.last_sequence.set(sequence);
    inner.memtable.borrow().borrow_mut().insert(entry);
    inner.stats.borrow_mut().recovered_records += 1;
    true
}

fn is_full(inner: &Inner) -> bool {
    inner.memtable.borrow().borrow().bytes() >= inner.options.write_buffer_size
}

/// Writes the memtable to a table, which is not in a manifest yet.
async fn flush_memtable(inner: &Rc<Inner>) -> Result<(), DbError> {
    let table = inner.memtable.replace(inner.new_memtable());
    if table.borrow().is_empty() {
        return Ok(());
    }
    let cursor = MemtableCursor::new(&table, &[], Tag::SEQUENCE_MAX);
    let (tables, written) = write_level0(inner, vec![Source::Memtable(cursor)]).await?;
    let changes = Changes {
        added: tables.into_iter().map(|table| (0, table)).collect(),
        ..Changes::default()
    };
    let version = inner.version().with(&changes);
    *inner.version.borrow_mut() = Rc::new(version);
    let mut stats = inner.stats.borrow_mut();
    stats.flushed_memtables += 1;
    stats.levels[0].compactions += 1;
    stats.levels[0].written_bytes += written.bytes;
    Ok(())
}

/// Begins a log and a manifest, and makes the manifest the one that holds. Returns
/// their numbers.
async fn begin_files(inner: &Rc<Inner>) -> Result<[u64; 2], DbError> {
    let log = inner.new_file_number();
    let writer = inner.files.create(&log_name(log), Lifetime::Short).await?;
    inner.wal.start(writer, inner.last_sequence.get()).await;
    inner.log.set(log);
    if !inner.options.keeps_data {
        inner.shadow.keep_log(log, &inner.memtable.borrow());
    }
    let number = inner.new_file_number();
    let name = manifest_name(number);
    let version = inner.version();
    let levels = version.levels.iter().enumerate();
    let edit = Edit {
        log_number: Some(log),
        next_file: Some(inner.next_file.get()),
        last_sequence: Some(inner.last_sequence.get()),
        deleted: Vec::new(),
        added: levels
            .flat_map(|(level, files)| files.iter().map(move |it| FileRecord::of(level, it)))
            .collect(),
    };
    let mut writer = inner.files.create(&name, Lifetime::NotSet).await?;
    files::append(inner, &name, &mut writer, edit.encode()).await?;
    writer.sync().await?;
    let text = format!("{name}\n").into_bytes();
    inner.shadow.forget_text(CURRENT_TEMPORARY);
    if inner.files.open(CURRENT_TEMPORARY).is_ok() {
        files::delete(inner, CURRENT_TEMPORARY).await?;
    }
    let mut current = inner
        .files
        .create(CURRENT_TEMPORARY, Lifetime::NotSet)
        .await?;
    files::append(inner, CURRENT_TEMPORARY, &mut current, text).await?;
    current.close().await?;
    inner.files.rename(CURRENT_TEMPORARY, CURRENT).await?;
    inner.shadow.rename_text(CURRENT_TEMPORARY, CURRENT);
    *inner.manifest.lock().await = Some(ManifestWriter { name, writer });
    Ok([log, number])
}
