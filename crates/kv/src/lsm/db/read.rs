//! Point and range queries.

use super::super::bloom::KeyHash;
use super::super::entry::{Tag, is_before};
use super::super::error::DbError;
use super::super::memtable::MemtableCursor;
use super::super::merge::{Merge, Source};
use super::super::table::{Lookup, ReadMode, RunCursor};
use super::super::version::FileMeta;
use super::{Db, Inner, files};
use crate::Content;

impl Db {
    /// What is stored under a key.
    ///
    /// # Errors
    /// A table that may have it cannot be read, or is damaged.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Content>, DbError> {
        let inner = &self.inner;
        self.owe(inner.options.costs.get_ns);
        inner.stats.borrow_mut().gets += 1;
        let found = match in_memory(inner, key) {
            Some(found) => {
                inner.stats.borrow_mut().gets_from_memtables += 1;
                found
            }
            None => {
                let (found, was_read) = self.get_from_tables(key).await?;
                inner.stats.borrow_mut().gets_from_files += u64::from(was_read);
                found
            }
        };
        inner.stats.borrow_mut().gets_found += u64::from(found.is_some());
        self.pay().await;
        Ok(found)
    }

    /// What tables say about a key, and whether a block was read from a file for it.
    async fn get_from_tables(&self, key: &[u8]) -> Result<(Option<Content>, bool), DbError> {
        let inner = &self.inner;
        let version = inner.version();
        let hash = KeyHash::of(key);
        let (mut found, mut was_read) = (None, false);
        for file in &version.levels[0] {
            if *file.smallest <= *key && *key <= *file.largest {
                found = self.probe(file, key, hash, &mut was_read).await?;
                if found.is_some() {
                    break;
                }
            }
        }
        for level in 1..version.levels.len() {
            if found.is_some() {
                break;
            }
            if let Some(file) = version.file_of(level, key) {
                found = self.probe(file, key, hash, &mut was_read).await?;
            }
        }
        drop(version);
        files::purge_soon(inner);
        Ok((found.flatten(), was_read))
    }

    /// Looks into a table: `None`: not there; `Some(None)`: deleted. Notes if a block was read.
    async fn probe(
        &self,
        file: &FileMeta,
        key: &[u8],
        hash: KeyHash,
        any_read: &mut bool,
    ) -> Result<Option<Option<Content>>, DbError> {
        let costs = &self.inner.options.costs;
        let looked = file.table.get(key, hash).await;
        let was_read = matches!(looked, Ok((_, true)));
        *any_read |= was_read;
        self.owe(costs.probe_ns + u64::from(was_read) * costs.block_ns);
        let mut stats = self.inner.stats.borrow_mut();
        stats.tables_probed += 1;
        let (lookup, _) = looked?;
        Ok(match lookup {
            Lookup::Excluded => {
                stats.tables_excluded += 1;
                None
            }
            Lookup::Absent => {
                stats.false_positives += 1;
                None
            }
            Lookup::Deleted => Some(None),
            Lookup::Put(content) => Some(Some(content)),
        })
    }

    /// Calls `each` with keys from `from` on, in order, and the lengths of
    /// their values, until there were `limit` of them. Returns how many there were.
    /// It sees the store as it was when it began.
    ///
    /// # Errors
    /// A table cannot be read, or is damaged; `each` has been called for what was before.
    pub async fn scan(
        &self,
        from: &[u8],
        limit: usize,
        mut each: impl FnMut(&[u8], u64),
    ) -> Result<usize, DbError> {
        let inner = &self.inner;
        let mut merge = Merge::new(sources(inner, from));
        let mut last: Vec<u8> = Vec::new();
        let mut last_tag = None;
        let mut count = 0;
        let mut steps = 0;
        let mut looks_into_files = false;
        while count < limit {
            if merge.wants_load() {
                looks_into_files = true;
                self.owe(core::mem::take(&mut steps) * inner.options.costs.next_ns);
                self.pay().await;
                merge.load().await?;
            }
            let Some(entry) = merge.peek() else { break };
            steps += 1;
            // Of several versions the newest comes first.
            let is_older = last_tag.is_some() && *last == *entry.key;
            if entry.key >= from && !is_older {
                last.clear();
                last.extend_from_slice(entry.key);
                last_tag = Some(entry.tag);
                if !entry.tag.is_delete() {
                    each(entry.key, u64::from(entry.value.len()));
                    count += 1;
                }
            }
            merge.advance();
        }
        drop(merge);
        files::purge_soon(inner);
        {
            let mut stats = inner.stats.borrow_mut();
            stats.scans += 1;
            stats.scans_from_memtables += u64::from(!looks_into_files);
            stats.scanned_entries += count as u64;
        }
        self.owe(inner.options.costs.get_ns + steps * inner.options.costs.next_ns);
        self.pay().await;
        Ok(count)
    }
}

/// What memtables say about a key: `None`: nothing; `Some(None)`: deleted.
#[inline]
fn in_memory(inner: &Inner, key: &[u8]) -> Option<Option<Content>> {
    let found =
        |tag: Tag, value: super::super::Value<'_>| (!tag.is_delete()).then(|| value.to_content());
    if let Some(entry) = inner.memtable.borrow().borrow_mut().get(key) {
        return Some(found(entry.tag, entry.value));
    }
    for immutable in inner.immutables.borrow().iter().rev() {
        if let Some(entry) = immutable.table.borrow_mut().get(key) {
            return Some(found(entry.tag, entry.value));
        }
    }
    None
}

/// All that a range query goes through: memtables, tables of level 0, and each other level.
fn sources(inner: &Inner, from: &[u8]) -> Vec<Source> {
    let sequence = inner.last_sequence.get();
    let in_memtable = |table: &_| Source::Memtable(MemtableCursor::new(table, from, sequence));
    let mut sources = vec![in_memtable(&inner.memtable.borrow())];
    for immutable in inner.immutables.borrow().iter() {
        sources.push(in_memtable(&immutable.table));
    }
    let mode = ReadMode::Scan {
        bytes_max: inner.options.max_auto_readahead_size,
    };
    let version = inner.version();
    let run = |files| Source::Run(RunCursor::new(&inner.io, files, from, mode));
    for file in &version.levels[0] {
        sources.push(run(vec![file.clone()]));
    }
    for files in &version.levels[1..] {
        let first = files.partition_point(|file| is_before(&file.largest, from));
        if first < files.len() {
            sources.push(run(files[first..].to_vec()));
        }
    }
    sources
}
