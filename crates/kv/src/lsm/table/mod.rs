//! Tables: sorted files that never change.
//!
//! | part | bytes |
//! | --- | --- |
//! | data blocks | entries, then a byte for the compression (0: none) and a CRC-32C |
//! | filter | probes, and the bits |
//! | index | of each data block its end and its last key |
//! | footer | lengths and counts, a CRC-32C of the tail, a magic number |
//!
//! Filter, index and footer are the tail, which is read when a table is opened
//! and stays in memory (`cache_index_and_filter_blocks = false`). An entry is
//! the length of its value (4 bytes) and key (2), its tag (8), key and value: keys
//! are whole, as with `use_delta_encoding = false`, and blocks not compressed, so
//! that sizes follow from lengths alone. Integers are little-endian.
//!
//! On a device without data the same sizes are written, and [`Entries`] keeps
//! keys, tags and lengths.

mod builder;
mod contents;
mod cursor;
mod open;

pub(crate) use builder::{BuiltTable, TableBuilder, TableFormat};
pub(crate) use contents::TableContents;
pub(crate) use cursor::{ReadMode, RunCursor};
pub(crate) use open::{Lookup, Table, table_name};

/// Length of value and key, and tag.
pub(crate) const ENTRY_HEADER_BYTES: usize = 14;

/// Compression byte and checksum behind a block.
pub(crate) const BLOCK_TRAILER_BYTES: usize = 5;

/// End and length of the key of an index entry.
pub(crate) const INDEX_HEADER_BYTES: usize = 6;

pub(crate) const FOOTER_BYTES: usize = 56;

/// "ZLABSST1".
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ZLABSST1");
