//! The forward map: where each logical block is.

use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::segments::{Segments, Usage};
use crate::sync::{AtomicU32, Ordering};

/// Where each logical block is: four bytes a block, read without a lock; or a share of
/// that in memory and the rest on the drive.
///
/// Whoever changes an entry holds the lock of its stripe
/// (module `changes`), so that the order of changes is that of the
/// journal; readers look at any time.
#[derive(Debug)]
pub struct ForwardMap {
    /// Of all blocks, or of none.
    words: Box<[AtomicU32]>,
    /// If words are of none.
    segments: Option<Box<Segments>>,
}

impl ForwardMap {
    /// A map of blocks that are nowhere.
    #[must_use]
    pub fn empty(blocks: u32) -> Self {
        let words = (0..blocks).map(|_| AtomicU32::new(PhysicalBlock::NOWHERE));
        Self {
            words: words.collect(),
            segments: None,
        }
    }

    /// A map of which a share is in memory. Who looks at or changes a block holds its
    /// segment.
    pub(crate) fn in_segments(segments: Segments) -> Self {
        Self {
            words: Box::default(),
            segments: Some(Box::new(segments)),
        }
    }

    /// Its segments, if only a share of it is in memory.
    #[inline]
    pub(crate) fn segments(&self) -> Option<&Segments> {
        self.segments.as_deref()
    }

    /// The memory that it takes, and how well that serves if it is a share.
    pub(crate) fn usage(&self) -> Usage {
        let whole = Usage {
            bytes: size_of_val(&*self.words) as u64,
            ..Usage::default()
        };
        self.segments().map_or(whole, Segments::usage)
    }

    /// Number of logical blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        let whole = self.words.len() as u32;
        self.segments().map_or(whole, Segments::blocks)
    }

    /// Where a block is; `None`: nowhere, or there is no such block.
    #[inline]
    #[must_use]
    pub fn get(&self, block: LogicalBlock) -> Option<PhysicalBlock> {
        match self.words.get(block.0 as usize) {
            // What was written there before the map said so is seen.
            Some(word) => PhysicalBlock::from_word(word.load(Ordering::Acquire)),
            None => {
                let segments = self.segments().filter(|of| block.0 < of.blocks())?;
                PhysicalBlock::from_word(segments.get(block.0))
            }
        }
    }

    /// Puts a block somewhere, and returns where it was. The caller holds the lock
    /// of its stripe, or is alone.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    pub fn set(&self, block: LogicalBlock, to: Option<PhysicalBlock>) -> Option<PhysicalBlock> {
        let to = PhysicalBlock::word(to);
        PhysicalBlock::from_word(match &self.segments {
            None => self.words[block.0 as usize].swap(to, Ordering::AcqRel),
            Some(segments) => segments.set(block.0, to),
        })
    }
}
