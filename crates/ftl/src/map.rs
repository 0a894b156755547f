//! The forward map: where each logical block is.

use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::sync::{AtomicU32, Ordering};

/// Where each logical block is: four bytes a block, read without a lock.
///
/// Whoever changes an entry holds the lock of its stripe
/// (module `changes`), so that the order of changes is that of the
/// journal; readers look at any time.
#[derive(Debug)]
pub struct ForwardMap {
    words: Box<[AtomicU32]>,
}

impl ForwardMap {
    /// A map of blocks that are nowhere.
    #[must_use]
    pub fn empty(blocks: u32) -> Self {
        let words = (0..blocks).map(|_| AtomicU32::new(PhysicalBlock::NOWHERE));
        Self {
            words: words.collect(),
        }
    }

    /// Number of logical blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.words.len() as u32
    }

    /// Where a block is; `None`: nowhere, or there is no such block.
    #[inline]
    #[must_use]
    pub fn get(&self, block: LogicalBlock) -> Option<PhysicalBlock> {
        let word = self.words.get(block.0 as usize)?;
        // What was written there before the map said so is seen.
        PhysicalBlock::from_word(word.load(Ordering::Acquire))
    }

    /// Puts a block somewhere, and returns where it was. The caller holds the lock
    /// of its stripe, or is alone.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn set(&self, block: LogicalBlock, to: Option<PhysicalBlock>) -> Option<PhysicalBlock> {
        let word = &self.words[block.0 as usize];
        PhysicalBlock::from_word(word.swap(PhysicalBlock::word(to), Ordering::AcqRel))
    }
}
