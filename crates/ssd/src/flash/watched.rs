//! What was asked of each block, for those who ask.

use super::{BlockRange, Flash};
use crate::drive::Drive;

/// Something that happened to blocks, which count over the drive as in
/// [`Flash::erase_counts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// Logical blocks of a page are to be programmed.
    Program {
        /// The block.
        block: usize,
        /// The page of the block.
        page: u32,
        /// The first logical block, counted from the start of the page.
        first: u32,
        /// The one behind the last.
        end: u32,
    },
    /// A block is to be erased.
    Erase {
        /// The block.
        block: usize,
    },
    /// What came since the last of these was handed to the flash as one group. A
    /// unit programs and erases in the order of submission (see [`crate::media`]),
    /// so that what happens to one block happens in the order of its events.
    Submitted {
        /// Of the group. Several that are under way can have the same.
        token: u32,
    },
    /// What came since was done at once: no time passes while the power goes, or in
    /// a preconditioning.
    AtOnce,
    /// A group has ended.
    Done {
        /// Of the group.
        token: u32,
    },
    /// Power was lost. Groups that have not ended never do.
    PowerLoss,
}

impl Drive {
    /// Starts to keep what happens to blocks. There is no bound: this is for tests.
    pub fn watch_blocks(&mut self) {
        self.core.flash.watched = Some(Vec::new());
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
    }

    /// What happened to blocks since this was asked last, in order.
    #[must_use]
    pub fn take_block_events(&mut self) -> Vec<BlockEvent> {
        let watched = self.core.flash.watched.as_mut();
        watched.map(std::mem::take).unwrap_or_default()
    }
}

impl Flash {
    #[inline]
    pub(super) fn note(&mut self, event: BlockEvent) {
        if let Some(watched) = &mut self.watched {
            watched.push(event);
        }
    }

    /// The pages of `range` are to be programmed.
    #[inline]
    pub(super) fn note_programs(&mut self, physical: u32, range: BlockRange) {
        if self.watched.is_some() {
            self.note_pages(physical, range);
        }
    }

    #[cold]
    fn note_pages(&mut self, physical: u32, range: BlockRange) {
        let (width, lbas) = (self.layout.width(), self.layout.page_lbas());
        let pages_per_block = self.pages_per_row / width;
        let end = range.first + range.count;
        for number in self.layout.page_of(range.first)..=self.layout.page_of(end - 1) {
            let line = number / width;
            let block = self.block_of_page(physical, number);
            let start = number * lbas;
            self.note(BlockEvent::Program {
                block: block.expect("there is flash for what is programmed"),
                page: line % pages_per_block,
                first: range.first.max(start) - start,
                end: end.min(start + lbas) - start,
            });
        }
    }
}
