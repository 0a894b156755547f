//! Flushes and compactions.

use std::rc::Rc;

use super::super::entry::Tag;
use super::super::error::DbError;
use super::super::log::log_name;
use super::super::manifest::{Edit, FileRecord};
use super::super::memtable::MemtableCursor;
use super::super::merge::{Merge, Source};
use super::super::picker::Compaction;
use super::super::table::{ReadMode, RunCursor};
use super::super::version::{Changes, Files, total_size};
use super::output::{Output, Plan};
use super::write::{begin_memtable, delete_log};
use super::{Inner, files};
use crate::files::Lifetime;

/// Starts what is due and may run.
pub(super) fn schedule(inner: &Rc<Inner>) {
    if inner.is_closing.get() {
        return;
    }
    // Flushes are installed in the order of their memtables: one at a time.
    let is_waiting = !inner.immutables.borrow().is_empty();
    if is_waiting && !inner.is_flushing.get() && inner.failure.borrow().is_none() {
        inner.is_flushing.set(true);
        let task = Rc::clone(inner);
        inner.io.spawn(async move { flush(&task).await }).forget();
    }
    let is_pressed = inner.pressure().is_high(&inner.options);
    let compactions_max = if is_pressed {
        inner.options.max_compactions()
    } else {
        1
    };
    while inner.compactions.get() < compactions_max {
        let version = inner.version();
        let Some(compaction) = Compaction::pick(&version, &inner.options) else {
            return;
        };
        drop(version);
        inner.compactions.set(inner.compactions.get() + 1);
        let task = Rc::clone(inner);
        let run = async move { compact(&task, compaction).await };
        inner.io.spawn(run).forget();
    }
}

/// Most bytes of memtables that join another one in its table: offsets in a table
/// have 32 bits.
const FLUSHED_BYTES_MAX: u64 = 1 << 30;

/// How many of the memtables that wait go into the next table.
fn flushed_together(inner: &Inner) -> usize {
    let immutables = inner.immutables.borrow();
    let mut bytes = 0;
    let more = immutables.iter().skip(1).take_while(|it| {
        bytes += it.table.borrow().bytes();
        bytes <= FLUSHED_BYTES_MAX
    });
    more.count() + 1
}

/// Writes the memtables that wait to a table.
async fn flush(inner: &Rc<Inner>) {
    let count = flushed_together(inner);
    let result = flush_oldest(inner, count).await;
    inner.is_flushing.set(false);
    if let Err(error) = result {
        inner.fail("a flush failed", error);
    }
    inner.update_condition();
    schedule(inner);
}

async fn flush_oldest(inner: &Rc<Inner>, count: usize) -> Result<(), DbError> {
    let from = inner.io.now();
    let sources = {
        let immutables = inner.immutables.borrow();
        let oldest = immutables.iter().take(count);
        let cursor = |it: &super::Immutable| MemtableCursor::new(&it.table, &[], Tag::SEQUENCE_MAX);
        oldest.map(|it| Source::Memtable(cursor(it))).collect()
    };
    let (tables, written) = write_level0(inner, sources).await?;
    let logs: Vec<u64> = {
        let immutables = inner.immutables.borrow();
        immutables.iter().take(count).map(|it| it.log).collect()
    };
    let next_log = {
        let immutables = inner.immutables.borrow();
        immutables.get(count).map_or(inner.log.get(), |it| it.log)
    };
    let changes = Changes {
        deleted: Vec::new(),
        added: tables.into_iter().map(|table| (0, table)).collect(),
        log_number: Some(next_log),
    };
    install(inner, changes, || {
        drop(inner.immutables.borrow_mut().drain(..count))
    })
    .await?;
    {
        let mut stats = inner.stats.borrow_mut();
        stats.flushed_memtables += count as u64;
        let level = &mut stats.levels[0];
        level.compactions += 1;
        level.written_bytes += written.bytes;
        level.entries_in += written.entries_in;
        level.entries_dropped += written.entries_dropped;
        level.time += inner.io.now() - from;
    }
    inner.update_condition();
    for log in logs {
        delete_log(inner, log).await;
    }
    Ok(())
}

/// Writes entries of memtables to a table of level 0; none, if there are no entries.
pub(super) async fn write_level0(
    inner: &Rc<Inner>,
    sources: Vec<Source>,
) -> Result<(Files, super::output::Written), DbError> {
    let mut output = Output::new(
        inner,
        Plan {
            level: 0,
            target_size: u64::MAX,
            grandparents: Files::new(),
            overlap_max: u64::MAX,
            bottom: None,
        },
    );
    match output.run(&mut Merge::new(sources)).await {
        Ok(()) => Ok((core::mem::take(&mut output.tables), output.written)),
        Err(error) => {
            output.discard().await;
            Err(error)
        }
    }
}

/// Makes the next version: first on the device, then here. `and_then` runs with the latter.
pub(super) async fn install(
    inner: &Inner,
    changes: Changes,
    and_then: impl FnOnce(),
) -> Result<(), DbError> {
    let mut manifest = inner.manifest.lock().await;
    let manifest = manifest.as_mut().ok_or(DbError::Closed)?;
    // A compaction may drop what was written last; a flush never does.
    let newest = changes.added.iter().map(|(_, file)| file.sequences.1).max();
    let edit = Edit {
        log_number: changes.log_number,
        next_file: Some(inner.next_file.get()),
        last_sequence: newest.filter(|_| changes.log_number.is_some()),
        deleted: changes
            .deleted
            .iter()
            .map(|&(level, number)| (level as u8, number))
            .collect(),
        added: changes
            .added
            .iter()
            .map(|(level, file)| FileRecord::of(*level, file))
            .collect(),
    };
    files::append(inner, &manifest.name, &mut manifest.writer, edit.encode()).await?;
    manifest.writer.sync().await?;
    let version = inner.version();
    let moved = |number: u64| {
        changes
            .added
            .iter()
            .any(|(_, file)| file.number() == number)
    };
    for &(level, number) in &changes.deleted {
        let gone = version.levels[level]
            .iter()
            .find(|file| file.number() == number);
        if let Some(file) = gone
            && !moved(number)
        {
            file.is_obsolete.set(true);
        }
    }
    *inner.version.borrow_mut() = Rc::new(version.with(&changes));
    and_then();
    Ok(())
}

async fn compact(inner: &Rc<Inner>, compaction: Compaction) {
    let result = if compaction.is_trivial_move(&inner.options) {
        move_down(inner, &compaction).await
    } else {
        merge_down(inner, &compaction).await
    };
    inner.compactions.set(inner.compactions.get() - 1);
    match result {
        Ok(()) => compaction.mark(false),
        Err(DbError::Closed) => compaction.mark(false),
        Err(error) => {
            // Its tables stay marked, so that it is not tried again and again.
            inner.stats.borrow_mut().background_errors += 1;
            inner.compaction_failure.replace(Some(error));
        }
    }
    drop(compaction);
    inner.update_condition();
    schedule(inner);
    files::purge(inner).await;
    inner.changed.ring();
}

async fn move_down(inner: &Rc<Inner>, compaction: &Compaction) -> Result<(), DbError> {
    let level = compaction.output_level;
    let changes = Changes {
        deleted: deleted(compaction.level, &compaction.inputs),
        added: compaction
            .inputs
            .iter()
            .map(|file| (level, Rc::clone(file)))
            .collect(),
        log_number: None,
    };
    install(inner, changes, || {}).await?;
    inner.stats.borrow_mut().levels[level].trivial_moves += 1;
    Ok(())
}

fn deleted(level: usize, files: &Files) -> Vec<(usize, u64)> {
    files.iter().map(|file| (level, file.number())).collect()
}

async fn merge_down(inner: &Rc<Inner>, compaction: &Compaction) -> Result<(), DbError> {
    let from = inner.io.now();
    let level = compaction.output_level;
    let mut merge = Merge::new(sources(inner, compaction));
    let mut output = Output::new(
        inner,
        Plan {
            level,
            target_size: inner.options.target_file_size(level),
            grandparents: compaction.grandparents.clone(),
            overlap_max: inner.options.compaction_bytes(),
            bottom: Some(Rc::clone(&compaction.version)),
        },
    );
    if let Err(error) = output.run(&mut merge).await {
        output.discard().await;
        return Err(error);
    }
    let written = output.written;
    let tables = core::mem::take(&mut output.tables);
    let mut gone = deleted(compaction.level, &compaction.inputs);
    gone.extend(deleted(level, &compaction.output_inputs));
    let changes = Changes {
        deleted: gone,
        added: tables.into_iter().map(|table| (level, table)).collect(),
        log_number: None,
    };
    install(inner, changes, || {}).await?;
    let mut stats = inner.stats.borrow_mut();
    let stats = &mut stats.levels[level];
    stats.compactions += 1;
    stats.read_upper_bytes += total_size(&compaction.inputs);
    stats.read_bytes += total_size(&compaction.output_inputs);
    stats.written_bytes += written.bytes;
    stats.entries_in += written.entries_in;
    stats.entries_dropped += written.entries_dropped;
    stats.time += inner.io.now() - from;
    Ok(())
}

fn sources(inner: &Inner, compaction: &Compaction) -> Vec<Source> {
    let mode = ReadMode::Compaction {
        bytes: inner.options.compaction_readahead_size,
        is_ahead: inner.options.compaction_async_io,
    };
    let run = |files: Files| Source::Run(RunCursor::new(&inner.io, files, &[], mode));
    let mut sources = Vec::new();
    if compaction.level == 0 {
        sources.extend(
            compaction
                .inputs
                .iter()
                .map(|file| run(vec![Rc::clone(file)])),
        );
    } else {
        sources.push(run(compaction.inputs.clone()));
    }
    if !compaction.output_inputs.is_empty() {
        sources.push(run(compaction.output_inputs.clone()));
    }
    sources
}

/// Tries again what failed.
pub(super) async fn resume(inner: &Rc<Inner>) -> Result<(), DbError> {
    if inner.is_closing.get() {
        return Err(DbError::Closed);
    }
    while !inner.is_idle() {
        inner.changed.next().await;
    }
    if inner.compaction_failure.take().is_some() {
        for file in inner.version().levels.iter().flatten() {
            file.is_compacting.set(false);
        }
    }
    let failure = inner.failure.take();
    if failure.is_some() {
        write_memtables_again(inner).await;
    }
    inner.update_condition();
    schedule(inner);
    inner.check()
}

/// After a failure: lets another log begin, and writes to tables what the logs may lack.
async fn write_memtables_again(inner: &Rc<Inner>) {
    let number = inner.new_file_number();
    match inner.files.create(&log_name(number), Lifetime::Short).await {
        Ok(next) => {
            let switch = || begin_memtable(inner, number);
            inner.wal.abandon(next, switch).await;
        }
        Err(error) => return inner.fail("no file for a new log", error.into()),
    }
    inner.update_condition();
    schedule(inner);
    while !inner.immutables.borrow().is_empty() && inner.failure.borrow().is_none() {
        inner.changed.next().await;
    }
    let failure = inner.failure.borrow().clone();
    inner.wal.replaced(failure);
}
