//! Blocks of the journal: changes of the map, in order.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Found, Kind};
use crate::blocks::{LogicalBlock, MapChange, PhysicalBlock};
use crate::shape::Shape;

/// Bytes 32 to 63 of a block of the journal.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Journal {
    /// The block's number: they follow each other without a gap.
    sequence: U64,
    /// The number of the first block of its commit.
    commit: U64,
    /// The epoch in which it was written.
    epoch: U32,
    /// Number of changes.
    count: U32,
    /// One more than the number of changes of the block before, which stand behind; 0:
    /// they do not.
    repeated: U32,
    zero: [u8; 4],
}

impl Kind for Journal {
    const MAGIC: [u8; 8] = *b"ZLFTLJRN";
}

/// A change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    first: U32,
    count: U32,
    to: U32,
}

/// A block of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// Its number: those that count follow each other without a gap.
    pub sequence: u64,
    /// The number of the first block of its commit.
    pub commit: u64,
    /// The epoch in which it was written.
    pub epoch: u32,
    /// The changes of the map that it makes, in order.
    pub changes: Vec<MapChange>,
    /// Those of the block before, for [`crate::repair`]; `None`: they had no room, or a
    /// checkpoint has made them needless.
    pub before: Option<Vec<MapChange>>,
}

/// The bytes of a block.
pub(crate) fn encode(shape: &Shape, uuid: u128, block: &JournalBlock) -> Vec<u8> {
    let before = block.before.iter().flatten();
    let entries: Vec<Entry> = block.changes.iter().chain(before).map(entry_of).collect();
    let repeated = block.before.as_ref().map_or(0, |before| before.len() + 1);
    let rest = Journal {
        sequence: U64::new(block.sequence),
        commit: U64::new(block.commit),
        epoch: U32::new(block.epoch),
        count: U32::new(block.changes.len() as u32),
        repeated: U32::new(repeated as u32),
        zero: [0; 4],
    };
    super::seal(shape.block_bytes, uuid, &rest, &entries)
}

fn entry_of(change: &MapChange) -> Entry {
    Entry {
        first: U32::new(change.first.0),
        count: U32::new(change.count),
        to: U32::new(PhysicalBlock::word(change.to)),
    }
}

/// What a block is. One with changes that cannot be counts as damaged, and so does one of
/// another kind, which nobody writes to the journal.
pub(crate) fn decode(shape: &Shape, uuid: u128, bytes: &[u8]) -> Found<JournalBlock> {
    let found = match super::open::<Journal>(uuid, bytes) {
        Found::Foreign if super::is_of_layer(uuid, bytes) => Found::Damaged,
        found => found,
    };
    found.and_then(|(rest, entries)| {
        let (count, before) = (rest.count.get(), rest.repeated.get().checked_sub(1));
        let all = count.checked_add(before.unwrap_or(0))?;
        if all > shape.changes_per_block() || rest.commit > rest.sequence {
            return None;
        }
        let entries = <[Entry]>::ref_from_prefix_with_elems(entries, all as usize).ok()?;
        let entries = entries.0.iter().map(|entry| change_of(shape, entry));
        let mut changes = entries.collect::<Option<Vec<_>>>()?;
        let repeated = changes.split_off(count as usize);
        Some(JournalBlock {
            sequence: rest.sequence.get(),
            commit: rest.commit.get(),
            epoch: rest.epoch.get(),
            changes,
            before: before.map(|_| repeated),
        })
    })
}

fn change_of(shape: &Shape, entry: &Entry) -> Option<MapChange> {
    let change = MapChange {
        first: LogicalBlock(entry.first.get()),
        count: entry.count.get(),
        to: PhysicalBlock::from_word(entry.to.get()),
    };
    is_possible(shape, &change).then_some(change)
}

/// Whether a change is one of blocks that there are, to blocks of one zone.
pub(crate) fn is_possible(shape: &Shape, change: &MapChange) -> bool {
    let end = change.first.0.checked_add(change.count);
    let from = change.count > 0 && end.is_some_and(|end| end <= shape.logical_blocks);
    from && change.to.is_none_or(|to| {
        let (zone, offset) = shape.place_of(to);
        zone.0 < shape.data_zones() && change.count <= shape.data_blocks() - offset
    })
}
