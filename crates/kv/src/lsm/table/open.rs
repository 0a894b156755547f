//! Tables that are read.

use std::rc::Rc;

use super::super::bloom::KeyHash;
use super::super::cache::{BlockBytes, BlockCache, CacheTable};
use super::super::entry::{Entry, is_same};
use super::super::error::DbError;
use super::contents::{TableContents, decode_entry};
use crate::Content;
use crate::files::Reader;

/// What a table says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Its filter or its index excludes it; nothing was read.
    Excluded,
    /// A block was looked into, and the key was not there.
    Absent,
    Deleted,
    Put(Content),
}

/// A block in memory.
pub(crate) enum Block {
    Bytes(BlockBytes),
    /// On a device without data.
    Sized,
}

/// A file that is open.
pub(crate) struct Table {
    pub(crate) number: u64,
    pub(crate) contents: Rc<TableContents>,
    reader: Reader,
    cache: BlockCache,
    in_cache: CacheTable,
}

impl core::fmt::Debug for Table {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Table").field(&self.number).finish()
    }
}

/// Name of the file of a table.
pub(crate) fn table_name(number: u64) -> String {
    format!("{number:06}.sst")
}

impl Table {
    pub(crate) fn new(
        number: u64,
        reader: Reader,
        contents: Rc<TableContents>,
        cache: &BlockCache,
    ) -> Self {
        Self {
            number,
            in_cache: cache.add_table(contents.blocks()),
            contents,
            reader,
            cache: cache.clone(),
        }
    }

    /// Opens a table that is on the device: reads its tail. `shadow` has its
    /// contents if the device keeps no data.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or forgotten.
    pub(crate) async fn open(
        number: u64,
        reader: Reader,
        tail_len: u64,
        shadow: Option<Rc<TableContents>>,
        cache: &BlockCache,
    ) -> Result<Self, DbError> {
        let corrupt = |offset, what| DbError::Corrupt {
            file: table_name(number),
            offset,
            what,
        };
        let Some(offset) = reader.len().checked_sub(tail_len) else {
            return Err(corrupt(reader.len(), "it is shorter than its tail"));
        };
        let contents = match reader.read(offset, tail_len).await? {
            Content::Bytes(tail) => {
                let contents = TableContents::decode_tail(&tail);
                Rc::new(contents.map_err(|what| corrupt(offset, what))?)
            }
            Content::Sized(_) => shadow.ok_or_else(|| DbError::Forgotten {
                file: table_name(number),
            })?,
        };
        if contents.block_start(contents.blocks()) != offset {
            return Err(corrupt(offset, "its blocks do not end at its tail"));
        }
        Ok(Self::new(number, reader, contents, cache))
    }

    /// The newest version of a key in here, and whether a block was read from the file for it.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) async fn get(&self, key: &[u8], hash: KeyHash) -> Result<(Lookup, bool), DbError> {
        if !self.contents.filter.may_contain(hash) {
            return Ok((Lookup::Excluded, false));
        }
        let Some(index) = self.contents.block_of(key) else {
            return Ok((Lookup::Excluded, false));
        };
        let found = |entry: Entry<'_>| match entry.tag.is_delete() {
            true => Lookup::Deleted,
            false => Lookup::Put(entry.value.to_content()),
        };
        let (block, was_read) = self.block(index).await?;
        let lookup = match block {
            Block::Bytes(bytes) => {
                let mut rest = bytes.as_slice();
                loop {
                    let Some((entry, len)) = decode_entry(rest) else {
                        break Lookup::Absent;
                    };
                    match entry.key.cmp(key) {
                        core::cmp::Ordering::Less => rest = &rest[len..],
                        core::cmp::Ordering::Equal => break found(entry),
                        core::cmp::Ordering::Greater => break Lookup::Absent,
                    }
                }
            }
            Block::Sized => match &self.contents.shadow {
                Some(shadow) => {
                    let (from, to) = shadow.range(index, index + 1);
                    let at = shadow.keys.lower_bound_in(key, from, to);
                    match at < to && is_same(shadow.keys.at(at), key) {
                        true => found(shadow.at(at)),
                        false => Lookup::Absent,
                    }
                }
                None => Lookup::Absent,
            },
        };
        Ok((lookup, was_read))
    }

    /// A block, from memory or, if it `was_read`, from the device.
    async fn block(&self, index: usize) -> Result<(Block, bool), DbError> {
        if let Some(block) = self.cached(index) {
            return Ok((block, false));
        }
        let (offset, len) = self.contents.span(index, index + 1);
        match self.reader.read(offset, len).await? {
            Content::Bytes(bytes) => {
                let bytes = Rc::new(self.strip(index, index + 1, bytes)?);
                self.keep(index, Some(&bytes));
                Ok((Block::Bytes(bytes), true))
            }
            Content::Sized(_) => {
                self.keep(index, None);
                Ok((Block::Sized, true))
            }
        }
    }

    /// A block, if it is in memory.
    pub(crate) fn cached(&self, index: usize) -> Option<Block> {
        let content = self.cache.get(self.in_cache, index as u32)?;
        Some(content.map_or(Block::Sized, Block::Bytes))
    }

    /// Keeps a block in the cache.
    pub(crate) fn keep(&self, index: usize, content: Option<&BlockBytes>) {
        let (_, len) = self.contents.span(index, index + 1);
        let content = content.map(Rc::clone);
        self.cache
            .insert(self.in_cache, index as u32, len as u32, content);
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Entries of blocks as they were read.
    ///
    /// # Errors
    /// A block is damaged.
    pub(crate) fn strip(&self, from: usize, to: usize, bytes: Vec<u8>) -> Result<Vec<u8>, DbError> {
        let damaged = |block: usize| DbError::Corrupt {
            file: table_name(self.number),
            offset: self.contents.block_start(block),
            what: "the checksum of a block is wrong",
        };
        self.contents.strip(from, to, bytes).map_err(damaged)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.cache.remove_table(self.in_cache);
    }
}
