//! Reads, or writes, that could go: the elevator and the queue by age.

use zonelab_device::Nanos;

use crate::scheduler::tree::Tree;

/// Where a command starts; commands at one block are in the order of insertion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) nsid: u32,
    pub(super) lba: u64,
    pub(super) sequence: u64,
}

/// The commands of one direction that could go now.
pub(super) struct Direction {
    pub(super) by_address: Tree<Address>,
    by_age: Tree<u64>,
    /// Just behind the command that went last.
    position: Address,
    /// How long a command may wait before a batch begins with it.
    pub(super) expire: Nanos,
}

impl Direction {
    pub(super) fn new(expire: Nanos) -> Self {
        Self {
            by_address: Tree::new(),
            by_age: Tree::new(),
            position: Address::default(),
            expire,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    pub(super) fn insert(&mut self, slot: u32, address: Address) {
        self.by_address.insert(slot, address);
        self.by_age.insert(slot, address.sequence);
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.by_address.remove(slot);
        self.by_age.remove(slot);
    }

    /// A command that may be among them starts elsewhere now.
    pub(super) fn moved(&mut self, slot: u32, address: Address) {
        if self.by_address.remove(slot) {
            self.by_address.insert(slot, address);
        }
    }

    /// The command that went last is this one.
    #[inline]
    pub(super) fn passed(&mut self, address: Address) {
        self.position = Address {
            sequence: address.sequence + 1,
            ..address
        };
    }

    /// The first above the one that went last.
    #[inline]
    pub(super) fn above(&self) -> Option<u32> {
        self.by_address.at_or_after(self.position)
    }

    #[inline]
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first()
    }

    pub(super) fn clear(&mut self) {
        self.by_address.clear();
        self.by_age.clear();
        self.position = Address::default();
    }
}
