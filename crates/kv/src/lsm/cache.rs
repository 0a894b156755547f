//! Data blocks that are kept in memory: least recently used first out, by bytes.
//!
//! `RocksDB`'s LRU cache, not sharded. Blocks are found through an array of the
//! table that they belong to, so nothing is hashed. On a device without data
//! only their presence is kept.

use std::cell::RefCell;
use std::rc::Rc;

/// No slot.
const NONE: u32 = u32::MAX;

/// A table that has blocks here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheTable(u32);

/// What a block holds; on a device without data: nothing.
pub(crate) type BlockBytes = Rc<Vec<u8>>;

struct Slot {
    table: u32,
    block: u32,
    bytes: u32,
    newer: u32,
    older: u32,
    content: Option<BlockBytes>,
}

/// What the cache was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Blocks that were there.
    pub hits: u64,
    /// Blocks that were not.
    pub misses: u64,
    /// Blocks that made room for others.
    pub evictions: u64,
    /// Bytes of the blocks that are there.
    pub used_bytes: u64,
}

#[derive(Default)]
struct Lru {
    capacity_bytes: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By table, by block: its slot.
    places: Vec<Vec<u32>>,
    free_tables: Vec<u32>,
    newest: Option<u32>,
    oldest: Option<u32>,
    stats: CacheStats,
}

/// The cache of a store. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct BlockCache {
    lru: Rc<RefCell<Lru>>,
}

impl core::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("BlockCache").field(&self.stats()).finish()
    }
}

impl BlockCache {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let cache = Self::default();
        cache.lru.borrow_mut().capacity_bytes = capacity_bytes;
        cache
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.lru.borrow().stats
    }

    /// A table of so many blocks comes in.
    pub(crate) fn add_table(&self, blocks: usize) -> CacheTable {
        let mut lru = self.lru.borrow_mut();
        let places = vec![NONE; if lru.capacity_bytes == 0 { 0 } else { blocks }];
        if let Some(table) = lru.free_tables.pop() {
            lru.places[table as usize] = places;
            return CacheTable(table);
        }
        lru.places.push(places);
        CacheTable(lru.places.len() as u32 - 1)
    }

    /// A table is no more, nor are its blocks.
    pub(crate) fn remove_table(&self, CacheTable(table): CacheTable) {
        let mut lru = self.lru.borrow_mut();
        for slot in core::mem::take(&mut lru.places[table as usize]) {
            if slot != NONE {
                lru.unlink(slot);
                lru.let_go(slot);
            }
        }
        lru.free_tables.push(table);
    }

    /// A block, if it is there: with what it holds if data is kept.
    #[inline]
    pub(crate) fn get(
        &self,
        CacheTable(table): CacheTable,
        block: u32,
    ) -> Option<Option<BlockBytes>> {
        let mut lru = self.lru.borrow_mut();
        let places = &lru.places[table as usize];
        let slot = places.get(block as usize).copied().unwrap_or(NONE);
        if slot == NONE {
            lru.stats.misses += 1;
            return None;
        }
        lru.stats.hits += 1;
        if lru.newest != Some(slot) {
            lru.unlink(slot);
            lru.link(slot);
        }
        Some(lru.slots[slot as usize].content.clone())
    }

    /// Keeps a block that was not there, of so many bytes.
    pub(crate) fn insert(
        &self,
        CacheTable(table): CacheTable,
        block: u32,
        bytes: u32,
        content: Option<BlockBytes>,
    ) {
        let mut lru = self.lru.borrow_mut();
        if u64::from(bytes) > lru.capacity_bytes
            || lru.places[table as usize].get(block as usize) != Some(&NONE)
        {
            return;
        }
        let entry = Slot {
            table,
            block,
            bytes,
            newer: NONE,
            older: NONE,
            content,
        };
        let slot = match lru.free.pop() {
            Some(slot) => {
                lru.slots[slot as usize] = entry;
                slot
            }
            None => {
                lru.slots.push(entry);
                lru.slots.len() as u32 - 1
            }
        };
        lru.places[table as usize][block as usize] = slot;
        lru.link(slot);
        lru.stats.used_bytes += u64::from(bytes);
        lru.make_room();
    }
}

impl Lru {
    fn link(&mut self, slot: u32) {
        let older = self.newest.replace(slot);
        self.slots[slot as usize].older = older.unwrap_or(NONE);
        self.slots[slot as usize].newer = NONE;
        match older {
            Some(older) => self.slots[older as usize].newer = slot,
            None => self.oldest = Some(slot),
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        let some = |slot| (slot != NONE).then_some(slot);
        match some(newer) {
            Some(newer) => self.slots[newer as usize].older = older,
            None => self.newest = some(older),
        }
        match some(older) {
            Some(older) => self.slots[older as usize].newer = newer,
            None => self.oldest = some(newer),
        }
    }

    /// Frees a slot that is linked no more.
    fn let_go(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.content = None;
        self.stats.used_bytes -= u64::from(entry.bytes);
        self.free.push(slot);
    }

    fn make_room(&mut self) {
        while self.stats.used_bytes > self.capacity_bytes {
            let Some(oldest) = self.oldest else { return };
            let Slot { table, block, .. } = self.slots[oldest as usize];
            self.places[table as usize][block as usize] = NONE;
            self.unlink(oldest);
            self.let_go(oldest);
            self.stats.evictions += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_goes() {
        let cache = BlockCache::new(300);
        let (a, b) = (cache.add_table(4), cache.add_table(4));
        for block in 0..3 {
            cache.insert(a, block, 100, None);
        }
        assert!(cache.get(a, 0).is_some());
        cache.insert(b, 1, 100, None);
        assert!(cache.get(a, 1).is_none(), "the oldest");
        assert!(cache.get(a, 0).is_some() && cache.get(a, 2).is_some());
        cache.insert(b, 2, 200, None);
        assert!(cache.get(b, 1).is_none() && cache.get(a, 0).is_none());
        let stats = cache.stats();
        assert_eq!((stats.used_bytes, stats.evictions), (300, 3));
    }

    #[test]
    fn blocks_go_with_their_table() {
        let cache = BlockCache::new(1_000);
        let a = cache.add_table(2);
        cache.insert(a, 0, 100, Some(Rc::new(vec![1])));
        cache.insert(a, 1, 100, Some(Rc::new(vec![2])));
        assert_eq!(cache.get(a, 1), Some(Some(Rc::new(vec![2]))));
        cache.remove_table(a);
        assert_eq!(cache.stats().used_bytes, 0);
        let b = cache.add_table(2);
        assert!(cache.get(b, 0).is_none(), "its place was taken over");
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let cache = BlockCache::new(100);
        let a = cache.add_table(2);
        cache.insert(a, 0, 101, None);
        assert!(cache.get(a, 0).is_none());
        let none = BlockCache::new(0);
        let a = none.add_table(2);
        none.insert(a, 0, 1, None);
        assert!(none.get(a, 0).is_none());
    }
}
