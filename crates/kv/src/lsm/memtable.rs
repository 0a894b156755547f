//! What was written last, sorted, in memory.
//!
//! All versions stay, as in `RocksDB`: an update takes its room in the buffer.
//! The order is kept in leaves of up to [`LEAF_MAX`] slots, two levels in all,
//! with the first bytes of each key beside it: to put an entry in its place is two
//! binary searches in memory that is close together, and moves 2 KiB. That is done when
//! somebody looks ([`Memtable::settle`]). What comes until then is only noted, and if it
//! is much, it is sorted at once, for a tenth of the time.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{Entry, Tag, Value, is_same, keep_key, prefix_of};

/// Slots of a leaf, at most.
const LEAF_MAX: usize = 256;

/// Entries that came since the last look are put in their places one by one, if there are
/// at most so many, or so many times more were there before. Otherwise they are sorted.
const FEW: usize = 16;

/// Slots of a leaf that is made when entries are sorted: some room is left.
const LEAF_SORTED: usize = LEAF_MAX * 3 / 4;

/// Keys of up to so many bytes are in the nodes themselves.
const KEY_INLINE: usize = 8;

/// Nodes that are fetched together. They lie where they were inserted, in no order that a
/// processor could guess: one at a time, each would be waited for.
const FETCHED: usize = 16;

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
    key_inline: [u8; KEY_INLINE],
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
    /// Longer keys, and values if data is kept.
    arena: Vec<u8>,
    nodes: Vec<Node>,
    /// So many of the nodes are in their places.
    settled: usize,
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
        self.key_in(&self.nodes[node as usize])
    }

    fn key_in<'a>(&'a self, node: &'a Node) -> &'a [u8] {
        let len = usize::from(node.key_len);
        match node.key_inline.get(..len) {
            Some(key) => key,
            None => &self.arena[node.key_at as usize..][..len],
        }
    }

    fn entry(&self, node: u32) -> Entry<'_> {
        self.entry_in(&self.nodes[node as usize])
    }

    fn entry_in<'a>(&'a self, node: &'a Node) -> Entry<'a> {
        let Node {
            tag,
            value_at,
            value_len,
            ..
        } = *node;
        let value = if self.keeps_data {
            Value::Bytes(&self.arena[value_at as usize..][..value_len as usize])
        } else {
            Value::Sized(value_len)
        };
        Entry {
            key: self.key_in(node),
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
        // Numbers of nodes fit, too: each counts for 24 bytes of `write_buffer_size`, or more.
        let at = |arena: &Vec<u8>| {
            u32::try_from(arena.len()).expect("write_buffer_size and VALUE_LEN_MAX are below 2 GiB")
        };
        let (key_at, key_len) = (at(&self.arena), entry.key.len());
        let mut key_inline = [0; KEY_INLINE];
        match key_inline.get_mut(..key_len) {
            Some(inline) => inline.copy_from_slice(entry.key),
            None => self.arena.extend_from_slice(entry.key),
        }
        let value_at = at(&self.arena);
        if let (true, Value::Bytes(bytes)) = (self.keeps_data, entry.value) {
            self.arena.extend_from_slice(bytes);
        }
        self.nodes.push(Node {
            tag: entry.tag,
            key_inline,
            key_at,
            value_at,
            value_len: entry.value.len(),
            key_len: key_len as u16,
        });
        self.bytes += (key_len + self.key_padding) as u64
            + u64::from(entry.value.len())
            + ENTRY_OVERHEAD_BYTES;
        self.deletions += u64::from(entry.tag.is_delete());
    }

    /// Puts what was inserted in its place.
    fn settle(&mut self) {
        let (from, to) = (self.settled, self.nodes.len());
        if from == to {
            return;
        }
        self.settled = to;
        let fresh = from as u32..to as u32;
        if to - from <= FEW.max(from / FEW) {
            for node in fresh {
                let (leaf, place) = self.lower_bound(self.key_of(node));
                self.insert_slot(leaf, place, self.slot_of(node));
            }
            return;
        }
        let mut fresh: Vec<Slot> = fresh.map(|node| self.slot_of(node)).collect();
        fresh.sort_unstable_by(|a, b| self.compare(*a, *b));
        let mut old = self.leaves.iter().flatten().copied().peekable();
        let mut merged = Vec::with_capacity(to);
        for slot in fresh {
            let is_before = |old: &Slot| self.compare(*old, slot).is_lt();
            while let Some(before) = old.next_if(is_before) {
                merged.push(before);
            }
            merged.push(slot);
        }
        merged.extend(old);
        let leaf = |slots: &[Slot]| {
            let mut leaf = Vec::with_capacity(LEAF_MAX);
            leaf.extend_from_slice(slots);
            leaf
        };
        self.leaves = merged.chunks(LEAF_SORTED).map(leaf).collect();
        self.firsts = self.leaves.iter().map(|leaf| leaf[0]).collect();
    }

    fn slot_of(&self, node: u32) -> Slot {
        let prefix = prefix_of(self.key_of(node));
        Slot { prefix, node }
    }

    /// The order: by key, and of one key the newest first.
    #[inline]
    fn compare(&self, a: Slot, b: Slot) -> core::cmp::Ordering {
        let by_prefix = a.prefix.cmp(&b.prefix);
        by_prefix.then_with(|| {
            let by_key = self.key_of(a.node).cmp(self.key_of(b.node));
            by_key.then(b.node.cmp(&a.node))
        })
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
    pub(crate) fn get(&mut self, key: &[u8]) -> Option<Entry<'_>> {
        self.settle();
        let slot = self.slot(self.lower_bound(key))?;
        let entry = self.entry(slot.node);
        is_same(entry.key, key).then_some(entry)
    }
}

/// Goes through a memtable in order, while others may insert.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    table: SharedMemtable,
    keeps_data: bool,
    /// Versions above it are not seen.
    sequence_max: u64,
    leaf: usize,
    place: usize,
    /// Number of nodes when the place was right.
    nodes: usize,
    /// Copies of the nodes from the present place on; the last one first.
    fetched: Vec<Node>,
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
            keeps_data: table.borrow().keeps_data,
            sequence_max,
            leaf: 0,
            place: 0,
            nodes: 0,
            fetched: Vec::new(),
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
        table.borrow_mut().settle();
        let table = table.borrow();
        (self.leaf, self.place) = table.lower_bound(&self.key);
        self.nodes = table.nodes.len();
        self.fetched.clear();
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
        self.fetched.pop();
        self.place += 1;
        if self.place > table.leaves[self.leaf].len() {
            // The place was the end of its leaf: it stood for the next one's first.
            self.leaf += 1;
            self.place = 1;
        }
    }

    /// The node that it points at.
    fn node(&mut self, table: &Memtable) -> Option<Node> {
        if let Some(node) = self.fetched.last() {
            return Some(*node);
        }
        let node_of = |slot: &Slot| table.nodes[slot.node as usize];
        let slots = table.leaves.get(self.leaf)?.get(self.place..)?;
        let some = &slots[..slots.len().min(FETCHED)];
        self.fetched.extend(some.iter().rev().map(node_of));
        let last = self.fetched.last().copied();
        last.or_else(|| table.firsts.get(self.leaf + 1).map(node_of))
    }

    /// Copies what it points at, past versions that are not seen.
    fn take(&mut self, table: &Memtable) {
        loop {
            let Some(node) = self.node(table) else {
                self.is_valid = false;
                return;
            };
            let entry = table.entry_in(&node);
            if entry.tag.sequence() > self.sequence_max {
                self.step(table);
                continue;
            }
            keep_key(&mut self.key, entry.key);
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
        self.is_valid.then(|| Entry {
            key: &self.key,
            tag: self.tag,
            value: if self.keeps_data {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BTreeMap;
    use zonelab_host::Rng;

    /// Versions by key, the newest first: what a memtable is beside.
    type Oracle = BTreeMap<(Vec<u8>, Reverse<u64>), Vec<u8>>;

    fn random_key(rng: &mut Rng) -> Vec<u8> {
        // Few different bytes, so that prefixes are equal, and zeros, which pad them.
        let len = 1 + rng.below(11);
        (0..len).map(|_| rng.below(3) as u8).collect()
    }

    fn put(table: &SharedMemtable, oracle: &mut Oracle, rng: &mut Rng, sequence: u64) {
        let key = random_key(rng);
        let value: Vec<u8> = sequence.to_le_bytes()[..rng.below(8) as usize].to_vec();
        table.borrow_mut().insert(Entry {
            key: &key,
            tag: Tag::put(sequence),
            value: Value::Bytes(&value),
        });
        oracle.insert((key, Reverse(sequence)), value);
    }

    /// What a cursor gives from where it is, while `more` may insert.
    fn rest(cursor: &mut MemtableCursor, mut more: impl FnMut()) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some(entry) = cursor.peek() {
            let Value::Bytes(value) = entry.value else {
                panic!("data is kept");
            };
            found.push((entry.key.to_vec(), entry.tag.sequence(), value.to_vec()));
            more();
            cursor.advance();
        }
        found
    }

    /// Few and many insertions between looks: one by one and sorted, into little and much.
    #[test]
    fn whoever_looks_finds_everything_in_order() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed, 0);
            let table = Rc::new(RefCell::new(Memtable::new(true, 0)));
            let (mut oracle, mut sequence) = (Oracle::new(), 0);
            for _ in 0..12 {
                for _ in 0..[1, 3, 40, 700, 1500][rng.below(5) as usize] {
                    sequence += 1;
                    put(&table, &mut oracle, &mut rng, sequence);
                }
                let key = random_key(&mut rng);
                let newest = oracle.range((key.clone(), Reverse(u64::MAX))..).next();
                let newest = newest.filter(|((of, _), _)| *of == key);
                let mut table_now = table.borrow_mut();
                let found = table_now.get(&key);
                assert_eq!(
                    found.map(|entry| (entry.tag.sequence(), entry.value)),
                    newest.map(|((_, version), value)| (version.0, Value::Bytes(value))),
                );
                drop(table_now);
                let expected: Vec<_> = oracle
                    .range((key.clone(), Reverse(u64::MAX))..)
                    .map(|((key, version), value)| (key.clone(), version.0, value.clone()))
                    .collect();
                let mut cursor = MemtableCursor::new(&table, &key, sequence);
                let mut left = rng.below(5);
                let found = rest(&mut cursor, || {
                    // What comes meanwhile is not seen.
                    if left > 0 {
                        (left, sequence) = (left - 1, sequence + 1);
                        put(&table, &mut oracle, &mut rng, sequence);
                    }
                });
                assert_eq!(found, expected, "seed {seed}");
            }
            let all: Vec<u64> = (0..oracle.len())
                .filter_map(|nth| Some(table.borrow().inserted(nth)?.tag.sequence()))
                .collect();
            assert!(
                all.iter().copied().eq(1..=sequence),
                "in order of insertion"
            );
        }
    }
}
