//! Going through tables in order.

use std::collections::VecDeque;
use std::rc::Rc;

use futures_util::future::RemoteHandle;
use zonelab_host::tasks::Io;

use super::super::cache::BlockBytes;
use super::super::entry::Entry;
use super::super::error::DbError;
use super::super::version::FileMeta;
use super::contents::{TableContents, decode_entry};
use super::open::{Block, Table};
use crate::Content;
use crate::files::FilesError;

/// `RocksDB` reads ahead from the third block of a sequence on.
const READS_BEFORE_READAHEAD: u32 = 2;

/// The first bytes that are read ahead: `initial_auto_readahead_size`.
const READAHEAD_START_BYTES: u64 = 8 << 10;

/// How blocks come to a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// So many bytes at a time, the next while these are used if it `is_ahead`;
    /// past the cache.
    Compaction { bytes: u64, is_ahead: bool },
    /// Through the cache; ahead, twice as far each time, up to so many bytes.
    Scan { bytes_max: u64 },
}

/// Blocks that are in memory.
enum Loaded {
    Nothing,
    /// Entries, and the place of the present one and of the next.
    Bytes(BlockBytes, usize, usize),
    /// On a device without data: whose entries, the present one, and the end.
    Entries(Rc<TableContents>, usize, usize),
}

/// Blocks that are on their way.
struct Ahead {
    from: usize,
    to: usize,
    content: RemoteHandle<Result<Content, FilesError>>,
}

/// Goes through tables that follow each other.
pub(crate) struct RunCursor {
    io: Io,
    mode: ReadMode,
    /// The present table first.
    tables: VecDeque<Rc<FileMeta>>,
    /// The next block of it.
    next_block: usize,
    loaded: Loaded,
    ahead: Option<Ahead>,
    /// Reads from the device so far, and how far the next one reads.
    reads: u32,
    readahead_bytes: u64,
}

impl RunCursor {
    /// At the first entry whose key is not below `from`; nothing is loaded yet.
    pub(crate) fn new(io: &Io, tables: Vec<Rc<FileMeta>>, from: &[u8], mode: ReadMode) -> Self {
        let mut tables = VecDeque::from(tables);
        while tables.front().is_some_and(|table| *table.largest < *from) {
            tables.pop_front();
        }
        let first_block = |table: &Rc<FileMeta>| table.table.contents.block_of(from);
        let next_block = tables.front().and_then(first_block).unwrap_or(0);
        Self {
            io: io.clone(),
            mode,
            tables,
            next_block,
            loaded: Loaded::Nothing,
            ahead: None,
            reads: 0,
            readahead_bytes: READAHEAD_START_BYTES,
        }
    }

    /// The present entry; `None`: [`Self::load`] gets more, if there is more.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry<'_>> {
        match &self.loaded {
            Loaded::Nothing => None,
            Loaded::Bytes(bytes, at, end) => Some(decode_entry(&bytes[*at..*end])?.0),
            Loaded::Entries(of, at, end) => {
                let shadow = of.shadow.as_ref()?;
                (at < end).then(|| shadow.at(*at))
            }
        }
    }

    #[inline]
    pub(crate) fn advance(&mut self) {
        match &mut self.loaded {
            Loaded::Nothing => {}
            Loaded::Bytes(bytes, at, next) => {
                *at = *next;
                *next += decode_entry(&bytes[*at..]).map_or(0, |(_, len)| len);
                if at == next {
                    self.loaded = Loaded::Nothing;
                }
            }
            Loaded::Entries(_, at, end) => {
                *at += 1;
                if at == end {
                    self.loaded = Loaded::Nothing;
                }
            }
        }
    }

    /// Whether entries may follow that are not in memory.
    #[inline]
    pub(crate) fn wants_load(&self) -> bool {
        matches!(self.loaded, Loaded::Nothing) && !self.tables.is_empty()
    }

    /// Gets the next blocks.
    ///
    /// # Errors
    /// A table cannot be read, or is damaged.
    pub(crate) async fn load(&mut self) -> Result<(), DbError> {
        while let Some(file) = self.tables.front().map(Rc::clone) {
            if self.next_block < file.table.contents.blocks() {
                return match self.mode {
                    ReadMode::Compaction { bytes, is_ahead } => {
                        self.load_ahead(&file, bytes, is_ahead).await
                    }
                    ReadMode::Scan { bytes_max } => self.load_cached(&file, bytes_max).await,
                };
            }
            self.tables.pop_front();
            self.next_block = 0;
        }
        Ok(())
    }

    async fn load_ahead(
        &mut self,
        file: &Rc<FileMeta>,
        bytes: u64,
        is_ahead: bool,
    ) -> Result<(), DbError> {
        let ahead = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.read_ahead(file, self.next_block, bytes),
        };
        let content = ahead.content.await?;
        self.show(file, ahead.from, ahead.to, content, false)?;
        self.ahead = if !is_ahead {
            None
        } else if ahead.to < file.table.contents.blocks() {
            Some(self.read_ahead(file, ahead.to, bytes))
        } else {
            let next = self.tables.get(1).map(Rc::clone);
            next.map(|next| self.read_ahead(&next, 0, bytes))
        };
        Ok(())
    }

    fn read_ahead(&self, file: &Rc<FileMeta>, from: usize, bytes: u64) -> Ahead {
        let to = blocks_within(&file.table, from, bytes);
        let (offset, len) = file.table.contents.span(from, to);
        // The read holds the table, so that nobody deletes its file meanwhile.
        let file = Rc::clone(file);
        let read = async move { file.table.reader().read(offset, len).await };
        Ahead {
            from,
            to,
            content: self.io.spawn(read),
        }
    }

    async fn load_cached(&mut self, file: &Rc<FileMeta>, bytes_max: u64) -> Result<(), DbError> {
        let from = self.next_block;
        if let Some(block) = file.table.cached(from) {
            let content = match block {
                Block::Bytes(bytes) => Ok(bytes),
                Block::Sized => Err(()),
            };
            self.put(file, from, from + 1, content);
            return Ok(());
        }
        let mut to = from + 1;
        if self.reads >= READS_BEFORE_READAHEAD {
            to = blocks_within(&file.table, from, self.readahead_bytes.min(bytes_max));
            self.readahead_bytes = (self.readahead_bytes * 2).min(bytes_max);
        }
        self.reads += 1;
        let (offset, len) = file.table.contents.span(from, to);
        let content = file.table.reader().read(offset, len).await?;
        self.show(file, from, to, content, true)
    }

    /// Checks what was read, keeps it in the cache if that is wanted, and goes on with it.
    fn show(
        &mut self,
        file: &Rc<FileMeta>,
        from: usize,
        to: usize,
        content: Content,
        cache: bool,
    ) -> Result<(), DbError> {
        let contents = &file.table.contents;
        let content = match content {
            Content::Bytes(bytes) => {
                if cache {
                    let base = contents.block_start(from) as usize;
                    for block in from..to {
                        let start = contents.block_start(block) as usize - base;
                        let end = contents.block_start(block + 1) as usize - base;
                        let whole = bytes.get(start..end).unwrap_or_default().to_vec();
                        let stripped = file.table.strip(block, block + 1, whole)?;
                        file.table.keep(block, Some(&Rc::new(stripped)));
                    }
                }
                Ok(Rc::new(file.table.strip(from, to, bytes)?))
            }
            Content::Sized(_) => {
                if cache {
                    (from..to).for_each(|block| file.table.keep(block, None));
                }
                Err(())
            }
        };
        self.put(file, from, to, content);
        Ok(())
    }

    fn put(
        &mut self,
        file: &Rc<FileMeta>,
        from: usize,
        to: usize,
        content: Result<BlockBytes, ()>,
    ) {
        self.next_block = to;
        self.loaded = match (content, &file.table.contents.shadow) {
            (Ok(bytes), _) => match decode_entry(&bytes) {
                Some((_, len)) => Loaded::Bytes(bytes, 0, len),
                None => Loaded::Nothing,
            },
            (Err(()), Some(shadow)) => {
                let (from, to) = shadow.range(from, to);
                Loaded::Entries(Rc::clone(&file.table.contents), from, to)
            }
            (Err(()), None) => Loaded::Nothing,
        };
    }
}

/// The end of the blocks from `from` that have so many bytes together; at least one.
fn blocks_within(table: &Table, from: usize, bytes: u64) -> usize {
    let contents = &table.contents;
    let end = contents.block_start(from) + bytes;
    let within = contents.ends[from..].partition_point(|&e| u64::from(e) <= end);
    from + within.max(1)
}
