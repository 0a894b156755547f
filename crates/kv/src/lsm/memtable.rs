//! What was written last, sorted, in memory.
//!
//! All versions stay, as in `RocksDB`: an update takes its room in the buffer.
//! The order is kept in leaves of up to [`LEAF_MAX`] slots, two levels in all,
//! with the first bytes of each key beside it: an insertion is two binary
//! searches in memory that is close together, and moves 2 KiB.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{Entry, Tag, Value, prefix_of};

/// Slots of a leaf, at most.
const LEAF_MAX: usize = 256;

/// What an entry takes beyond key and value: tag, lengths, and the links of a
/// node of `RocksDB`'s skip list (branching 4: 1.33 links of 8 bytes).
const ENTRY_OVERHEAD_BYTES: u64 = 24;

#[derive(Clone, Copy, Debug)]
struct Slot {
    prefix: u64,
    node: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    tag: Tag,
    key_at: u32,
    value_at: u32,
    value_len: u32,
    key_len: u16,
}

/// A memtable. Sequence numbers of what is inserted must increase.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    keeps_data: bool,
    key_padding: usize,
    /// Keys, and values if data is kept.
    arena: Vec<u8>,
    nodes: Vec<Node>,
    leaves: Vec<Vec<Slot>>,
    /// The first slot of each leaf.
    firsts: Vec<Slot>,
    bytes: u64,
    deletions: u64,
}

/// Shared by the store, by flushes, and by range queries that go on.
pub(crate) type SharedMemtable = Rc<RefCell<Memtable>>;

impl Memtable {
    pub(crate) fn new(keeps_data: bool, key_padding: usize) -> Self {
        Self {
            keeps_data,
            key_padding,
            ..Self::default()
        }
    }

    /// Bytes that it counts for.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn key_of(&self, node: u32) -> &[u8] {
        let node = &self.nodes[node as usize];
        &self.arena[node.key_at as usize..][..usize::from(node.key_len)]
    }

    fn entry(&self, node: u32) -> Entry<'_> {
        let Node {
            tag,
            value_at,
            value_len,
            ..
        } = self.nodes[node as usize];
        let value = if self.keeps_data {
            Value::Bytes(&self.arena[value_at as usize..][..value_len as usize])
        } else {
            Value::Sized(value_len)
        };
        Entry {
            key: self.key_of(node),
            tag,
            value,
        }
    }

    /// The entry that was inserted after so many others.
    pub(crate) fn inserted(&self, index: usize) -> Option<Entry<'_>> {
        (index < self.nodes.len()).then(|| self.entry(index as u32))
    }

    /// Whether the slot comes before every version of `key`.
    #[inline]
    fn is_below(&self, slot: Slot, prefix: u64, key: &[u8]) -> bool {
        slot.prefix < prefix || (slot.prefix == prefix && self.key_of(slot.node) < key)
    }

    /// Leaf and place of the first entry that is not below `key`. The place
    /// may be the end of its leaf.
    #[inline]
    fn lower_bound(&self, key: &[u8]) -> (usize, usize) {
        let prefix = prefix_of(key);
        let below = |slot: &Slot| self.is_below(*slot, prefix, key);
        let leaf = self.firsts.partition_point(below).saturating_sub(1);
        match self.leaves.get(leaf) {
            Some(slots) => (leaf, slots.partition_point(below)),
            None => (0, 0),
        }
    }

    fn slot(&self, (leaf, place): (usize, usize)) -> Option<Slot> {
        match self.leaves.get(leaf)?.get(place) {
            Some(slot) => Some(*slot),
            None => self.firsts.get(leaf + 1).copied(),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry<'_>) {
        let node = u32::try_from(self.nodes.len()).expect("write_buffer_size limits its entries");
        let at = |arena: &Vec<u8>| {
            u32::try_from(arena.len()).expect("write_buffer_size and VALUE_LEN_MAX are below 2 GiB")
        };
        let (leaf, place) = self.lower_bound(entry.key);
        let key_at = at(&self.arena);
        self.arena.extend_from_slice(entry.key);
        let value_at = at(&self.arena);
        if let (true, Value::Bytes(bytes)) = (self.keeps_data, entry.value) {
            self.arena.extend_from_slice(bytes);
        }
        self.nodes.push(Node {
            tag: entry.tag,
            key_at,
            value_at,
            value_len: entry.value.len(),
            key_len: entry.key.len() as u16,
        });
        self.bytes += (entry.key.len() + self.key_padding) as u64
            + u64::from(entry.value.len())
            + ENTRY_OVERHEAD_BYTES;
        self.deletions += u64::from(entry.tag.is_delete());
        let slot = Slot {
            prefix: prefix_of(entry.key),
            node,
        };
        self.insert_slot(leaf, place, slot);
    }

    fn insert_slot(&mut self, leaf: usize, place: usize, slot: Slot) {
        if self.leaves.is_empty() {
            self.leaves.push(Vec::with_capacity(LEAF_MAX));
            self.firsts.push(slot);
        }
        let slots = &mut self.leaves[leaf];
        slots.insert(place, slot);
        if place == 0 {
            self.firsts[leaf] = slot;
        }
        if slots.len() == LEAF_MAX {
            let mut upper = Vec::with_capacity(LEAF_MAX);
            // Ascending insertions leave full leaves behind.
            let is_ascending = place == LEAF_MAX - 1 && leaf + 1 == self.leaves.len();
            let keep = if is_ascending {
                LEAF_MAX - 1
            } else {
                LEAF_MAX / 2
            };
            let slots = &mut self.leaves[leaf];
            upper.extend(slots.drain(keep..));
            self.firsts.insert(leaf + 1, upper[0]);
            self.leaves.insert(leaf + 1, upper);
        }
    }

    /// The newest version of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        let slot = self.slot(self.lower_bound(key))?;
        let entry = self.entry(slot.node);
        (entry.key == key).then_some(entry)
    }
}

/// Goes through a memtable in order, while others may insert.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    table: SharedMemtable,
    /// Versions above it are not seen.
    sequence_max: u64,
    leaf: usize,
    place: usize,
    /// Number of nodes when the place was right.
    nodes: usize,
    is_valid: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    value_len: u32,
    tag: Tag,
}

impl MemtableCursor {
    /// At the first entry whose key is not below `from`.
    pub(crate) fn new(table: &SharedMemtable, from: &[u8], sequence_max: u64) -> Self {
        let mut cursor = Self {
            table: Rc::clone(table),
            sequence_max,
            leaf: 0,
            place: 0,
            nodes: 0,
            is_valid: false,
            key: from.to_vec(),
            value: Vec::new(),
            value_len: 0,
            tag: Tag::MAX,
        };
        cursor.seek();
        cursor
    }

    /// Finds the first entry after the present key and tag.
    fn seek(&mut self) {
        let table = Rc::clone(&self.table);
        let table = table.borrow();
        (self.leaf, self.place) = table.lower_bound(&self.key);
        self.nodes = table.nodes.len();
        while let Some(slot) = table.slot((self.leaf, self.place)) {
            let entry = table.entry(slot.node);
            if entry.key != self.key || entry.tag < self.tag {
                break;
            }
            self.step(&table);
        }
        self.take(&table);
    }

    fn step(&mut self, table: &Memtable) {
        self.place += 1;
        if self.place > table.leaves[self.leaf].len() {
            // The place was the end of its leaf: it stood for the next one's first.
            self.leaf += 1;
            self.place = 1;
        }
    }

    /// Copies what it points at, past versions that are not seen.
    fn take(&mut self, table: &Memtable) {
        loop {
            let Some(slot) = table.slot((self.leaf, self.place)) else {
                self.is_valid = false;
                return;
            };
            let entry = table.entry(slot.node);
            if entry.tag.sequence() > self.sequence_max {
                self.step(table);
                continue;
            }
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            self.value.clear();
            if let Value::Bytes(bytes) = entry.value {
                self.value.extend_from_slice(bytes);
            }
            (self.value_len, self.tag) = (entry.value.len(), entry.tag);
            self.is_valid = true;
            return;
        }
    }

    pub(crate) fn peek(&self) -> Option<Entry<'_>> {
        let keeps_data = self.table.borrow().keeps_data;
        self.is_valid.then(|| Entry {
            key: &self.key,
            tag: self.tag,
            value: if keeps_data {
                Value::Bytes(&self.value)
            } else {
                Value::Sized(self.value_len)
            },
        })
    }

    pub(crate) fn advance(&mut self) {
        let table = Rc::clone(&self.table);
        let table = table.borrow();
        if self.nodes == table.nodes.len() {
            self.step(&table);
            self.take(&table);
        } else {
            drop(table);
            self.seek();
        }
    }
}
