//! What is in memory of a table.

use super::super::bloom::Filter;
use super::super::entry::{Entry, Keys, Tag, Value};
use super::{BLOCK_TRAILER_BYTES, ENTRY_HEADER_BYTES, FOOTER_BYTES, INDEX_HEADER_BYTES, MAGIC};

/// Index and filter of a table; on a device without data its entries, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableContents {
    /// Where each block ends in the file, its trailer included.
    pub(crate) ends: Vec<u32>,
    /// Last key of each block.
    pub(crate) last_keys: Keys,
    pub(crate) filter: Filter,
    pub(crate) entries: u64,
    pub(crate) deletions: u64,
    /// On a device without data.
    pub(crate) shadow: Option<Entries>,
}

/// Entries without their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    pub(crate) keys: Keys,
    pub(crate) tags: Vec<Tag>,
    pub(crate) value_lens: Vec<u32>,
    /// The first entry of each block.
    pub(crate) starts: Vec<u32>,
}

impl Entries {
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Entry<'_> {
        Entry {
            key: self.keys.at(index),
            tag: self.tags[index],
            value: Value::Sized(self.value_lens[index]),
        }
    }

    /// Indices of the entries of the blocks `from..to`.
    pub(crate) fn range(&self, from: usize, to: usize) -> (usize, usize) {
        let end = match self.starts.get(to) {
            Some(&start) => start as usize,
            None => self.tags.len(),
        };
        (self.starts[from] as usize, end)
    }
}

impl TableContents {
    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(crate) fn block_start(&self, block: usize) -> u64 {
        if block == 0 {
            return 0;
        }
        u64::from(self.ends[block - 1])
    }

    /// Offset and length in the file of the blocks `from..to`.
    pub(crate) fn span(&self, from: usize, to: usize) -> (u64, u64) {
        let start = self.block_start(from);
        (start, self.block_start(to) - start)
    }

    /// The only block that can hold `key`; `None`: it is above all keys.
    #[inline]
    pub(crate) fn block_of(&self, key: &[u8]) -> Option<usize> {
        let block = self.last_keys.lower_bound(key);
        (block < self.blocks()).then_some(block)
    }

    /// Length of filter, index and footer, with keys that are so much longer.
    pub(crate) fn tail_len(&self, key_padding: usize) -> u64 {
        let keys: usize = (0..self.blocks())
            .map(|block| self.last_keys.at(block).len() + key_padding + INDEX_HEADER_BYTES)
            .sum();
        (self.filter.encoded_len() + keys + FOOTER_BYTES) as u64
    }

    pub(crate) fn encode_tail(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.tail_len(0) as usize);
        self.filter.encode(&mut out);
        for (block, end) in self.ends.iter().enumerate() {
            let key = self.last_keys.at(block);
            out.extend_from_slice(&end.to_le_bytes());
            out.extend_from_slice(&(key.len() as u16).to_le_bytes());
            out.extend_from_slice(key);
        }
        let counts = [
            self.filter.encoded_len() as u64,
            self.blocks() as u64,
            self.entries,
            self.deletions,
            // Room for what a later version wants to say.
            0,
        ];
        for count in counts {
            out.extend_from_slice(&count.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out
    }

    /// # Errors
    /// What is wrong with the tail.
    pub(crate) fn decode_tail(tail: &[u8]) -> Result<Self, &'static str> {
        let body_len = tail
            .len()
            .checked_sub(FOOTER_BYTES)
            .ok_or("it is too short")?;
        let (body, footer) = tail.split_at(body_len);
        let (words, _) = footer.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        if words[6] != MAGIC {
            return Err("it does not end as a table");
        }
        if (words[5] >> 32) as u32 != crc32c::crc32c(&tail[..tail.len() - 12]) {
            return Err("the checksum of its tail is wrong");
        }
        let filter_len = usize::try_from(words[0]).unwrap_or(usize::MAX);
        let (filter, mut index) = body
            .split_at_checked(filter_len)
            .ok_or("its filter is cut off")?;
        let mut contents = Self {
            filter: Filter::decode(filter).ok_or("its filter is none")?,
            entries: words[2],
            deletions: words[3],
            ..Self::default()
        };
        while let Some((end, key, rest)) = split_index_entry(index) {
            if end <= contents.ends.last().copied().unwrap_or(0) {
                return Err("its index goes backwards");
            }
            contents.ends.push(end);
            contents.last_keys.push(key);
            index = rest;
        }
        if !index.is_empty() || contents.blocks() as u64 != words[1] {
            return Err("its index is cut off");
        }
        Ok(contents)
    }

    /// Checks the blocks `from..to` as they were read, and takes their trailers
    /// away: entries one after the other.
    ///
    /// # Errors
    /// Which block is damaged.
    pub(crate) fn strip(
        &self,
        from: usize,
        to: usize,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, usize> {
        let base = self.block_start(from) as usize;
        let mut kept = 0;
        for block in from..to {
            let start = self.block_start(block) as usize - base;
            let end = self.ends[block] as usize - base;
            let len = (end - start)
                .checked_sub(BLOCK_TRAILER_BYTES)
                .ok_or(block)?;
            let whole = bytes.get(start..end).ok_or(block)?;
            let (checked, crc) = whole.split_at(len + 1);
            if crc != crc32c::crc32c(checked).to_le_bytes() {
                return Err(block);
            }
            bytes.copy_within(start..start + len, kept);
            kept += len;
        }
        bytes.truncate(kept);
        Ok(bytes)
    }
}

fn split_index_entry(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (end, rest) = bytes.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    Some((u32::from_le_bytes(*end), key, rest))
}

/// Appends an entry to a block.
pub(crate) fn encode_entry(entry: Entry<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.value.len().to_le_bytes());
    out.extend_from_slice(&(entry.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&entry.tag.0.to_le_bytes());
    out.extend_from_slice(entry.key);
    if let Value::Bytes(bytes) = entry.value {
        out.extend_from_slice(bytes);
    }
}

/// The first entry of these bytes, and how long it is; `None`: nothing whole is there.
#[inline]
pub(crate) fn decode_entry(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let (header, rest) = bytes.split_first_chunk::<ENTRY_HEADER_BYTES>()?;
    let (value_len, header) = header.split_first_chunk::<4>()?;
    let (key_len, tag) = header.split_first_chunk::<2>()?;
    let value_len = u32::from_le_bytes(*value_len) as usize;
    let tag = Tag(u64::from_le_bytes(*tag.first_chunk()?));
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_len)))?;
    let value = Value::Bytes(rest.get(..value_len)?);
    let len = ENTRY_HEADER_BYTES + key.len() + value_len;
    Some((Entry { key, tag, value }, len))
}
