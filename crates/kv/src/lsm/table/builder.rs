//! Tables in the making.

use super::super::bloom::{Filter, KeyHash};
use super::super::entry::{Entry, keep_key};
use super::contents::{Entries, TableContents, encode_entry};
use super::{BLOCK_TRAILER_BYTES, ENTRY_HEADER_BYTES};
use crate::Content;

/// A data block ends before it is full if it is fuller than this and the next
/// entry does not fit: `RocksDB`'s `block_size_deviation` of 10 %.
const FULL_ENOUGH_PERCENT: usize = 90;

/// What decides how a table looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableFormat {
    pub(crate) keeps_data: bool,
    pub(crate) key_padding: usize,
    pub(crate) block_size: usize,
    /// What compression leaves of a block.
    pub(crate) compression_percent: u32,
    pub(crate) bloom_bits_per_key: u32,
}

/// Takes entries in order, and gives the bytes of a file.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    format: TableFormat,
    contents: TableContents,
    hashes: Vec<KeyHash>,
    /// Entries of the block that is not full yet.
    block_len: usize,
    /// What was not taken yet, with data only.
    bytes: Vec<u8>,
    /// Where the last block of `bytes` begins.
    block_at: usize,
    /// Bytes of whole blocks that were not taken yet.
    ready_len: u64,
    /// Length of the whole blocks.
    data_len: u64,
    smallest: Vec<u8>,
    last_key: Vec<u8>,
    sequences: (u64, u64),
}

/// A table whose last bytes are there.
#[derive(Debug)]
pub(crate) struct BuiltTable {
    pub(crate) contents: TableContents,
    pub(crate) size: u64,
    pub(crate) tail_len: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// Smallest and largest.
    pub(crate) sequences: (u64, u64),
}

impl TableBuilder {
    pub(crate) fn new(format: TableFormat) -> Self {
        let contents = TableContents {
            shadow: (!format.keeps_data).then(Entries::default),
            ..TableContents::default()
        };
        Self {
            format,
            contents,
            hashes: Vec::new(),
            block_len: 0,
            bytes: Vec::new(),
            block_at: 0,
            ready_len: 0,
            data_len: 0,
            smallest: Vec::new(),
            last_key: Vec::new(),
            sequences: (u64::MAX, 0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.contents.entries == 0
    }

    /// Length of the data so far.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.data_len + self.block_len as u64
    }

    /// Bytes that [`Self::take`] would give.
    #[inline]
    pub(crate) fn ready_len(&self) -> u64 {
        self.ready_len
    }

    /// The next entry; its key is above all before.
    #[inline]
    pub(crate) fn add(&mut self, entry: Entry<'_>) {
        let len = ENTRY_HEADER_BYTES
            + entry.key.len()
            + self.format.key_padding
            + entry.value.len() as usize;
        let (full, size) = (self.block_len, self.format.block_size);
        if full >= size || (full + len > size && full > size * FULL_ENOUGH_PERCENT / 100) {
            self.end_block();
        }
        if self.is_empty() {
            self.smallest.extend_from_slice(entry.key);
        }
        match &mut self.contents.shadow {
            Some(shadow) => {
                if self.block_len == 0 {
                    shadow.starts.push(shadow.tags.len() as u32);
                }
                shadow.keys.push(entry.key);
                shadow.tags.push(entry.tag);
                shadow.value_lens.push(entry.value.len());
            }
            None => encode_entry(entry, &mut self.bytes),
        }
        self.block_len += len;
        keep_key(&mut self.last_key, entry.key);
        if self.format.bloom_bits_per_key > 0 {
            self.hashes.push(KeyHash::of(entry.key));
        }
        self.contents.entries += 1;
        self.contents.deletions += u64::from(entry.tag.is_delete());
        let sequence = entry.tag.sequence();
        self.sequences = (
            self.sequences.0.min(sequence),
            self.sequences.1.max(sequence),
        );
    }

    fn end_block(&mut self) {
        if self.block_len == 0 {
            return;
        }
        let left = self.block_len as u64 * u64::from(self.format.compression_percent) / 100;
        let len = left + BLOCK_TRAILER_BYTES as u64;
        self.data_len += len;
        self.ready_len += len;
        let end = u32::try_from(self.data_len).expect("tables end at 2 GiB, entries are smaller");
        self.contents.ends.push(end);
        self.contents.last_keys.push(&self.last_key);
        self.block_len = 0;
        if self.format.keeps_data {
            self.bytes.push(0);
            let crc = crc32c::crc32c(&self.bytes[self.block_at..]);
            self.bytes.extend_from_slice(&crc.to_le_bytes());
            self.block_at = self.bytes.len();
        }
    }

    /// The whole blocks that were not taken yet.
    pub(crate) fn take(&mut self) -> Content {
        let len = core::mem::take(&mut self.ready_len);
        if !self.format.keeps_data {
            return Content::Sized(len);
        }
        let rest = self.bytes.split_off(self.block_at);
        self.block_at = 0;
        Content::Bytes(core::mem::replace(&mut self.bytes, rest))
    }

    /// The last bytes, and what is known of the table then.
    pub(crate) fn finish(mut self) -> (Content, BuiltTable) {
        self.end_block();
        let mut contents = self.contents;
        contents.filter = Filter::new(&self.hashes, self.format.bloom_bits_per_key);
        contents.last_keys.shrink_to_fit();
        if let Some(shadow) = &mut contents.shadow {
            shadow.keys.shrink_to_fit();
            shadow.tags.shrink_to_fit();
            shadow.value_lens.shrink_to_fit();
        }
        let tail_len = contents.tail_len(self.format.key_padding);
        let content = if self.format.keeps_data {
            self.bytes.extend_from_slice(&contents.encode_tail());
            Content::Bytes(self.bytes)
        } else {
            Content::Sized(self.ready_len + tail_len)
        };
        let table = BuiltTable {
            contents,
            size: self.data_len + tail_len,
            tail_len,
            smallest: self.smallest,
            largest: self.last_key,
            sequences: self.sequences,
        };
        (content, table)
    }
}
