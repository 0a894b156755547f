//! The metadata log in bytes.
//!
//! A zone of the log holds batches, each from the start of a block. The first
//! is a snapshot of all files; the others are records of what happened since.
//! A batch counts as a whole or, if its checksum is wrong, not at all. Numbers
//! are little endian.
//!
//! | bytes of a batch | what |
//! | --- | --- |
//! | 0 to 3 | magic |
//! | 4 to 7 | CRC-32C of all that follows |
//! | 8 to 11 | bytes of records |
//! | 12 to 15 | version of this format |
//! | 16 to 23 | epoch: counts snapshots |
//! | 24 to 31 | index of the batch in its epoch |
//! | 32 to 39 | identifier of the next file |
//! | 40 to 71 | bytes of a block, blocks from zone to zone, first zone and end |
//! | 72 on | records |

use super::config::Shape;
use super::table::{Extent, Record};
use super::{FileId, Lifetime};

const MAGIC: u32 = u32::from_le_bytes(*b"ZLFS");
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 72;
/// Files and epochs are counted up to this, so that there is always a next one.
pub(super) const NUMBER_MAX: u64 = 1 << 62;

const CREATE: u8 = 1;
const EXTEND: u8 = 2;
const DELETE: u8 = 3;
const RENAME: u8 = 4;

/// What stands at the start of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) epoch: u64,
    pub(super) index: u64,
    pub(super) next_file: u64,
    /// Bytes of a block, blocks from zone to zone, first zone and end.
    pub(super) shape: [u64; 4],
}

/// The shape as batches name it.
pub(super) fn shape_of(shape: &Shape) -> [u64; 4] {
    let zones = &shape.zones;
    [
        shape.lba_bytes,
        shape.zone_lbas,
        zones.start.into(),
        zones.end.into(),
    ]
}

/// A batch, filled up to whole blocks.
pub(super) fn batch(header: &Header, records: &[u8], lba_bytes: u64) -> Vec<u8> {
    let bytes = HEADER_BYTES + records.len();
    let mut batch = Vec::with_capacity(bytes.next_multiple_of(lba_bytes as usize));
    batch.extend(MAGIC.to_le_bytes());
    batch.extend([0; 4]);
    // Fits: a batch is at most a zone of a log.
    batch.extend((records.len() as u32).to_le_bytes());
    batch.extend(header.version.to_le_bytes());
    for number in [header.epoch, header.index, header.next_file] {
        batch.extend(number.to_le_bytes());
    }
    for number in header.shape {
        batch.extend(number.to_le_bytes());
    }
    batch.extend(records);
    let crc = crc32c::crc32c(&batch[8..]);
    batch[4..8].copy_from_slice(&crc.to_le_bytes());
    batch.resize(bytes.next_multiple_of(lba_bytes as usize), 0);
    batch
}

/// Blocks of the batch that begins with this block, if one does.
pub(super) fn lbas_of_batch(block: &[u8], lba_bytes: u64) -> Option<u64> {
    let mut reader = Reader(block);
    (reader.u32()? == MAGIC).then_some(())?;
    reader.u32()?;
    let records = u64::from(reader.u32()?);
    Some((HEADER_BYTES as u64 + records).div_ceil(lba_bytes))
}

/// Header and records of a batch, if it is whole.
pub(super) fn open_batch(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let mut reader = Reader(bytes);
    (reader.u32()? == MAGIC).then_some(())?;
    let crc = reader.u32()?;
    let len = reader.u32()? as usize;
    let end = HEADER_BYTES.checked_add(len)?;
    (crc == crc32c::crc32c(bytes.get(8..end)?)).then_some(())?;
    let header = Header {
        version: reader.u32()?,
        epoch: reader.u64()?,
        index: reader.u64()?,
        next_file: reader.u64()?,
        shape: [reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?],
    };
    Some((header, bytes.get(HEADER_BYTES..end)?))
}

/// Adds a record.
pub(super) fn encode(record: &Record, out: &mut Vec<u8>) {
    let name_into = |name: &str, out: &mut Vec<u8>| {
        // Fits: names have at most 255 bytes.
        out.push(name.len() as u8);
        out.extend(name.as_bytes());
    };
    match record {
        Record::Create { id, lifetime, name } => {
            out.push(CREATE);
            out.extend(id.0.to_le_bytes());
            out.push(lifetime.code());
            name_into(name, out);
        }
        Record::Extend { id, extents } => {
            out.push(EXTEND);
            out.extend(id.0.to_le_bytes());
            out.extend((extents.len() as u32).to_le_bytes());
            for extent in extents {
                out.extend(extent.zone.to_le_bytes());
                out.extend(extent.block.to_le_bytes());
                out.extend(extent.bytes.to_le_bytes());
            }
        }
        Record::Delete { id } => {
            out.push(DELETE);
            out.extend(id.0.to_le_bytes());
        }
        Record::Rename { id, name } => {
            out.push(RENAME);
            out.extend(id.0.to_le_bytes());
            name_into(name, out);
        }
    }
}

/// All records of a batch; `None`: it holds something else.
pub(super) fn decode(records: &[u8]) -> Option<Vec<Record>> {
    let mut reader = Reader(records);
    let mut all = Vec::new();
    while !reader.0.is_empty() {
        all.push(reader.record()?);
    }
    Some(all)
}

/// What is left to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn name(&mut self) -> Option<String> {
        let len = self.u8()?;
        let bytes = self.take(usize::from(len))?;
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    fn record(&mut self) -> Option<Record> {
        let kind = self.u8()?;
        let id = FileId(self.u64()?);
        Some(match kind {
            CREATE => Record::Create {
                id,
                lifetime: Lifetime::of_code(self.u8()?)?,
                name: self.name()?,
            },
            EXTEND => {
                let count = self.u32()?;
                let mut extents = Vec::new();
                for _ in 0..count {
                    extents.push(Extent {
                        zone: self.u32()?,
                        block: self.u64()?,
                        bytes: self.u64()?,
                    });
                }
                Record::Extend { id, extents }
            }
            DELETE => Record::Delete { id },
            RENAME => Record::Rename {
                id,
                name: self.name()?,
            },
            _ => return None,
        })
    }
}
