//! Erasure ahead of need: what of a group of zones is free, and what is erased next.
//!
//! | | lazy mapping | chunks and stripes |
//! | --- | --- | --- |
//! | free | physical zones on the free list | zones for which the erased elements are enough that no zone has |
//! | invalid | those on the invalid list | zones more for which they are enough once all of them are erased |
//! | a row | a block on every plane of an invalid zone | a block of every plane of a line of invalid elements: one element of each plane, or a stripe |
//! | what is erased next | the zone that was begun, else one that somebody chooses | a line of elements that the allocator chooses |
//!
//! All zones of a group need as many elements of each plane, so that the plane
//! that has the fewest decides. Of elements it does not matter which zone had
//! them: those that several zones left behind may be erased for one.

use std::ops::Range;

use super::{Mapping, Places};
use crate::flash::Blocks;
use crate::layout::Layout;

/// What of a group is to be erased next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextErasure {
    /// A line of elements, on this physical zone.
    Line(u32),
    /// A physical zone, which has to be chosen.
    Zone,
    /// Nothing.
    Nothing,
}

/// What became of a physical zone of which something has been erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// All of it is erased: it is free, unless a zone has got it meanwhile.
    Zone,
    /// Elements are erased, and count for whichever zone gets them.
    Elements,
    /// Some of it has to be erased still.
    Nothing,
}

impl Mapping {
    /// Free and invalid zones of a group: those that could be had without an erasure, and
    /// those more that could be had after one.
    #[must_use]
    pub(crate) fn counts(&self, group: u32) -> (u32, u32) {
        match &self.places {
            Places::Fixed(_) => self.pool_of(group),
            Places::Assembled(elements) => elements.pool(group, self.begun(group)),
        }
    }

    /// The physical zone of a group whose erasure was begun last: it may not be finished.
    pub(crate) fn begun(&self, group: u32) -> Option<u32> {
        self.begun[group as usize]
    }

    /// The erasure of a physical zone is begun, or goes on.
    pub(crate) fn erasure_is_begun(&mut self, group: u32, physical: u32) {
        self.begun[group as usize] = Some(physical);
    }

    /// The next zone of a group that needs flash would get an invalid physical zone.
    pub(crate) fn is_without_free(&self, group: u32) -> bool {
        self.pool()
            .is_some_and(|pool| pool.free[group as usize].is_empty())
    }

    /// Whether the erasure of something would make a zone of a group free; `is_left` says
    /// so of an invalid physical zone.
    pub(crate) fn has_to_erase(&self, group: u32, is_left: impl Fn(u32) -> bool) -> bool {
        match &self.places {
            Places::Fixed(_) => self.invalid(group).any(is_left),
            Places::Assembled(_) => self.counts(group).1 > 0,
        }
    }

    /// What of a group is to be erased next. Elements are put on a physical zone of their
    /// own for it, unless the erasure of others is under way.
    pub(crate) fn next_erasure(
        &mut self,
        group: u32,
        is_under_way: bool,
        blocks: &Blocks,
    ) -> NextErasure {
        let begun = self.begun(group);
        let is_needed = self.counts(group).1 > 0;
        let Some(elements) = self.elements_mut() else {
            return NextErasure::Zone;
        };
        if is_under_way || !is_needed {
            return NextErasure::Nothing;
        }
        if let Some(physical) = begun {
            if elements.gathered_blocks(physical, true, blocks).is_some() {
                return NextErasure::Line(physical);
            }
            elements.disband(physical);
        }
        let next = elements.gather(group);
        self.begun[group as usize] = next;
        next.map_or(NextErasure::Nothing, NextErasure::Line)
    }

    /// The blocks of a physical zone that are erased next: those of a row with stale
    /// blocks, or all from it on if `whole`. Of places before `stale`, none has any.
    pub(crate) fn next_blocks(
        &self,
        physical: u32,
        (stale, whole): (Range<u32>, bool),
        (layout, blocks): (&Layout, &Blocks),
    ) -> Option<Range<u32>> {
        match &self.places {
            Places::Fixed(_) => {
                let row_end = (stale.start / layout.width() + 1) * layout.width();
                let end = match whole {
                    true => stale.end,
                    // No overflow: a zone has fewer blocks than pages.
                    false => stale.end.min(row_end),
                };
                (stale.start < end).then_some(stale.start..end)
            }
            Places::Assembled(elements) => elements.gathered_blocks(physical, whole, blocks),
        }
    }

    /// Something of a physical zone of a group has been erased, and other erasures of it
    /// go on if it `is_being_erased`.
    pub(crate) fn was_erased(
        &mut self,
        (group, physical): (u32, u32),
        is_being_erased: bool,
        blocks: &Blocks,
    ) -> Freed {
        let begun = self.begun(group);
        match &mut self.places {
            Places::Fixed(fixed) if fixed.stale(physical) > 0 || is_being_erased => Freed::Nothing,
            Places::Fixed(_) => {
                self.erased(physical);
                Freed::Zone
            }
            Places::Assembled(elements) => {
                let is_line = begun == Some(physical);
                if is_line && elements.gathered_blocks(physical, false, blocks).is_none() {
                    elements.disband(physical);
                    self.begun[group as usize] = None;
                }
                Freed::Elements
            }
        }
    }

    /// Nothing is being erased any more.
    pub(super) fn forget_begun(&mut self) {
        self.begun.fill(None);
    }
}
