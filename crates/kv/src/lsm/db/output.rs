//! Writing tables: what flushes and compactions have in common.

use std::rc::Rc;

use super::super::entry::{Entry, is_before, is_same, keep_key};
use super::super::error::DbError;
use super::super::merge::Merge;
use super::super::table::{BuiltTable, Table, TableBuilder, table_name};
use super::super::version::{FileMeta, Files, Version};
use super::Inner;
use crate::Content;
use crate::files::{Lifetime, Writer};

/// Bytes that are handed to a file at a time: `writable_file_max_buffer_size`.
const WRITE_BYTES: u64 = 1 << 20;

/// Entries that are merged without giving up the core.
const ENTRIES_PER_TURN: u64 = 256;

/// How long tables of a level live, as `RocksDB` tells the file system: the log
/// is short-lived, levels 0 and 1 medium, 2 long, the rest extreme.
fn lifetime_of(level: usize) -> Lifetime {
    match level {
        0 | 1 => Lifetime::Medium,
        2 => Lifetime::Long,
        _ => Lifetime::Extreme,
    }
}

/// What tables are written, and where they end.
pub(super) struct Plan {
    pub(super) level: usize,
    /// A table ends at this size.
    pub(super) target_size: u64,
    /// A table ends when it overlaps more bytes than `overlap_max` of these.
    pub(super) grandparents: Files,
    pub(super) overlap_max: u64,
    /// Tombstones go if no level below the output has their key in this version.
    pub(super) bottom: Option<Rc<Version>>,
}

/// What was read and written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) entries_in: u64,
    pub(super) entries_dropped: u64,
    pub(super) bytes: u64,
}

/// A table that is being written.
struct Open {
    number: u64,
    writer: Writer,
    builder: TableBuilder,
    /// Grandparents that it overlaps, the last one included.
    overlap: u64,
}

/// Writes all entries of a merge to tables.
pub(super) struct Output<'a> {
    inner: &'a Rc<Inner>,
    plan: Plan,
    open: Option<Open>,
    /// Files that were made, the open one included.
    created: Vec<u64>,
    pub(super) tables: Files,
    pub(super) written: Written,
    last_key: Vec<u8>,
    /// The first grandparent whose end was not passed.
    grandparent: usize,
    /// Of each level below the output, the first table whose end was not passed.
    below: Vec<usize>,
    /// What was merged and not paid for.
    debt_entries: u64,
    debt_bytes: u64,
}

/// Why the merging of entries stopped.
enum Pause {
    /// Blocks are to be loaded, bytes to be written, time to be paid.
    Turn,
    /// The table ends before the next entry.
    Cut,
    /// There are no more entries.
    End,
}

impl<'a> Output<'a> {
    pub(super) fn new(inner: &'a Rc<Inner>, plan: Plan) -> Self {
        Self {
            inner,
            below: vec![0; inner.options.num_levels],
            plan,
            open: None,
            created: Vec::new(),
            tables: Files::new(),
            written: Written::default(),
            last_key: Vec::new(),
            grandparent: 0,
            debt_entries: 0,
            debt_bytes: 0,
        }
    }

    /// Writes everything. If it fails, what was written is to be
    /// [discarded](Self::discard).
    pub(super) async fn run(&mut self, merge: &mut Merge) -> Result<(), DbError> {
        loop {
            if merge.wants_load() {
                self.pay().await;
                merge.load().await?;
            }
            if self.open.is_none() && merge.peek().is_some() {
                self.begin().await?;
            }
            let pause = self.merge_some(merge);
            if self.debt_entries >= ENTRIES_PER_TURN {
                self.pay().await;
            }
            match pause {
                Pause::Turn => self.write_ready().await?,
                Pause::Cut => self.end().await?,
                Pause::End => break,
            }
            if self.plan.level > 0 && self.inner.is_closing.get() {
                return Err(DbError::Closed);
            }
        }
        self.end().await?;
        self.pay().await;
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), DbError> {
        let number = self.inner.new_file_number();
        let lifetime = lifetime_of(self.plan.level);
        self.created.push(number);
        let writer = self
            .inner
            .files
            .create(&table_name(number), lifetime)
            .await?;
        self.open = Some(Open {
            number,
            writer,
            builder: TableBuilder::new(self.inner.format),
            overlap: 0,
        });
        Ok(())
    }

    /// Merges entries that are in memory.
    fn merge_some(&mut self, merge: &mut Merge) -> Pause {
        let Some(open) = &mut self.open else {
            return Pause::End;
        };
        let mut turn = 0;
        while !merge.wants_load() {
            let Some(entry) = merge.peek() else {
                return Pause::End;
            };
            let is_older = self.written.entries_in > 0 && is_same(&self.last_key, entry.key);
            let is_gone = |below: &mut [usize]| {
                let bottom = self.plan.bottom.as_deref();
                entry.tag.is_delete()
                    && bottom.is_some_and(|it| !is_below(it, self.plan.level, below, entry.key))
            };
            if is_older || is_gone(&mut self.below) {
                self.written.entries_dropped += 1;
            } else {
                let passed = pass_grandparents(&self.plan, &mut self.grandparent, entry.key);
                open.overlap += passed;
                let is_long = open.builder.len() >= self.plan.target_size
                    || open.overlap > self.plan.overlap_max;
                if is_long && !open.builder.is_empty() {
                    return Pause::Cut;
                }
                self.debt_bytes += entry_bytes(entry);
                open.builder.add(entry);
            }
            if !is_older {
                keep_key(&mut self.last_key, entry.key);
            }
            merge.advance();
            self.written.entries_in += 1;
            self.debt_entries += 1;
            turn += 1;
            if turn >= ENTRIES_PER_TURN || open.builder.ready_len() >= WRITE_BYTES {
                break;
            }
        }
        Pause::Turn
    }

    async fn pay(&mut self) {
        let entries = core::mem::take(&mut self.debt_entries);
        let bytes = core::mem::take(&mut self.debt_bytes);
        let time = self.inner.options.costs.merge(entries, bytes);
        self.inner.io.work(time).await;
    }

    async fn write_ready(&mut self) -> Result<(), DbError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if open.builder.ready_len() >= WRITE_BYTES {
            append(open, |open| open.builder.take(), &mut self.written).await?;
        }
        Ok(())
    }

    /// Ends the open table, if there is one with entries.
    async fn end(&mut self) -> Result<(), DbError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        if open.builder.is_empty() {
            // All that it would have held was dropped.
            open.writer.close().await?;
            return self.delete(open.number).await;
        }
        let (rest, built) = open.builder.finish();
        self.written.bytes += rest.len();
        open.writer.append(rest).await?;
        open.writer.close().await?;
        let table = self.inner.adopt(open.number, built)?;
        self.tables.push(table);
        Ok(())
    }

    async fn delete(&mut self, number: u64) -> Result<(), DbError> {
        self.created.retain(|&created| created != number);
        Ok(super::files::delete(self.inner, &table_name(number)).await?)
    }

    /// Deletes what was written.
    pub(super) async fn discard(mut self) {
        self.open = None;
        self.tables.clear();
        for number in self.created {
            // What cannot be deleted goes when the store is opened again.
            drop(super::files::delete(self.inner, &table_name(number)).await);
            self.inner.shadow.forget_table(number);
        }
    }
}

async fn append(
    open: &mut Open,
    take: impl FnOnce(&mut Open) -> Content,
    written: &mut Written,
) -> Result<(), DbError> {
    let content = take(open);
    written.bytes += content.len();
    Ok(open.writer.append(content).await?)
}

fn entry_bytes(entry: Entry<'_>) -> u64 {
    entry.key.len() as u64 + u64::from(entry.value.len())
}

/// Whether a level below `level` has a table whose keys include `key`. Keys come in order.
fn is_below(version: &Version, level: usize, below: &mut [usize], key: &[u8]) -> bool {
    let levels = version.levels.iter().zip(below).skip(level + 1);
    let mut found = false;
    for (files, next) in levels {
        while files
            .get(*next)
            .is_some_and(|file| is_before(&file.largest, key))
        {
            *next += 1;
        }
        found |= files.get(*next).is_some_and(|file| *file.smallest <= *key);
    }
    found
}

/// Goes on past the grandparents that end before `key`. Returns their bytes.
fn pass_grandparents(plan: &Plan, next: &mut usize, key: &[u8]) -> u64 {
    let mut bytes = 0;
    while let Some(file) = plan.grandparents.get(*next)
        && is_before(&file.largest, key)
    {
        bytes += file.size;
        *next += 1;
    }
    bytes
}

impl Inner {
    /// Makes a table of the tree of one that was written.
    fn adopt(&self, number: u64, built: BuiltTable) -> Result<Rc<FileMeta>, DbError> {
        let contents = Rc::new(built.contents);
        if !self.options.keeps_data {
            self.shadow.keep_table(number, &contents);
        }
        let reader = self.files.open(&table_name(number))?;
        Ok(Rc::new(FileMeta {
            table: Table::new(number, reader, contents, &self.cache),
            size: built.size,
            tail_len: built.tail_len,
            smallest: built.smallest,
            largest: built.largest,
            sequences: built.sequences,
            is_compacting: false.into(),
            is_obsolete: false.into(),
            graveyard: Rc::clone(&self.graveyard),
        }))
    }
}
