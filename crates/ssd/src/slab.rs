//! Slots that are reused: stable small indices without hashing or allocation
//! in the steady state.

use core::ops::{Index, IndexMut};

/// A vector whose slots are handed out, given back, and handed out again.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts `value` into a free slot and returns its index.
    ///
    /// # Panics
    /// If 2^32 slots are in use.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        self.insert_with(|| value)
    }

    /// Puts what `make` makes into a free slot, where it is made, and returns its index.
    ///
    /// # Panics
    /// If 2^32 slots are in use.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce() -> T) -> u32 {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            *slot = Some(make());
            index
        } else {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 slots are in use");
            self.slots.push(Some(make()));
            index
        }
    }

    /// The slot that the next value gets, if one is free without more memory.
    #[inline(always)]
    pub fn vacant(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Takes the value out of slot `index`.
    ///
    /// # Panics
    /// If the slot is not in use.
    #[inline]
    pub fn remove(&mut self, index: u32) -> T {
        let value = self.slots[index as usize]
            .take()
            .expect("a slot in use is removed once");
        self.free.push(index);
        value
    }

    /// Drops the value in slot `index` where it is, without moving it out.
    ///
    /// # Panics
    /// If the slot is not in use.
    #[inline(always)]
    pub fn free(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.is_some(), "a slot in use is freed once");
        *slot = None;
        self.free.push(index);
    }

    /// The value in slot `index`, if the slot is in use.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize).and_then(Option::as_ref)
    }

    /// The value in slot `index`, if the slot is in use.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize).and_then(Option::as_mut)
    }

    /// The value in slot `index`.
    ///
    /// # Panics
    /// If the slot is not in use.
    #[inline]
    pub fn at(&mut self, index: u32) -> &mut T {
        self.get_mut(index).expect("the slot is in use")
    }

    /// Values in use with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(i, slot)| Some((i as u32, slot.as_ref()?)))
    }

    /// Values in use, in the order of their indices.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// Takes all values out, in the order of their indices.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        std::mem::take(&mut self.slots).into_iter().flatten()
    }

    /// Number of slots in use.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no slot is in use.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The value in a slot that is in use.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        self.slots[index as usize]
            .as_ref()
            .expect("the slot is in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.at(index)
    }
}
