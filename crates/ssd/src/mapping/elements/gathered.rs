//! Elements that are erased before a zone needs them (erasure by thresholds).
//!
//! They are *gathered* on a physical zone of their own: a line of those that are
//! to be erased next, one of each plane if they are chunks, and are erased there
//! row by row. Which rows are left is known from the flags of their blocks.

use std::ops::Range;

use super::{Blocks, Elements, NONE, Physical};

impl Elements {
    /// How many zones the elements of a group that no zone has are enough for:
    /// with those alone that are erased, and after the erasure of the others.
    /// Those on `gathered` are not erased while their erasure is under way.
    pub(crate) fn pool(&self, group: u32, gathered: Option<u32>) -> (u32, u32) {
        let (of, shape) = (&self.allocators[group as usize], &self.shape);
        let under_way = |lun: u32| match gathered {
            Some(physical) => u32::from(self.is_erased_free(physical, lun)),
            None => 0,
        };
        let free = of.zones_free(shape.per_lun, shape.depth_weight.is_some(), under_way);
        (free, self.zones_left(group).saturating_sub(free))
    }

    /// Whether an element that is gathered in a place counts as free already, and
    /// its erasure is not over.
    fn is_erased_free(&self, physical: u32, place: u32) -> bool {
        self.at(physical, place).is_some_and(|element| {
            let is_mine = self.owner[element] == NONE;
            is_mine && self.stale_left[element] == 0 && self.erasing[element] > 0
        })
    }

    /// Gathers the elements of a group that are to be erased next. Returns the
    /// physical zone; `None`: there are none.
    pub(crate) fn gather(&mut self, group: u32) -> Option<u32> {
        let luns = self.allocators[group as usize].luns();
        let next = |of: &Self, lun| of.allocators[group as usize].next_invalid(lun);
        (0..luns).find_map(|lun| next(self, lun))?;
        let physical = self.unused(group);
        let places = self.shape.places as usize;
        self.table[physical as usize * places..][..places].fill(NONE);
        self.taken[physical as usize * places..][..places].fill(false);
        self.physical[physical as usize] = Physical {
            is_gathered: true,
            ..Physical::UNUSED
        };
        for lun in 0..luns {
            if let Some(element) = next(self, lun) {
                self.put(physical, lun, element.0);
            }
        }
        Some(physical)
    }

    /// The blocks of gathered elements that are to be erased: those of a row, or
    /// all from it on if `whole`. Elements that zones got are left to those.
    pub(crate) fn gathered_blocks(
        &self,
        physical: u32,
        whole: bool,
        blocks: &Blocks,
    ) -> Option<Range<u32>> {
        let width = self.shape.width;
        let is_left = |row: &u32| {
            (0..width).any(|slot| {
                self.block(physical, *row, slot)
                    .is_some_and(|(element, block)| {
                        self.owner[element] == NONE && blocks.is_stale(block)
                    })
            })
        };
        let rows = self.shape.element_rows;
        let row = (0..rows).find(is_left)?;
        Some(row * width..if whole { rows } else { row + 1 } * width)
    }

    /// Lines of elements of a zone.
    pub(crate) const fn lines(&self) -> u32 {
        self.units.lines
    }

    /// Whether elements in some places of a physical zone have to be erased.
    pub(crate) fn is_left_of(&self, physical: u32, places: &Range<u32>) -> bool {
        let left = |place| {
            let element = self.at(physical, place);
            element.is_some_and(|element| self.stale_left[element] > 0)
        };
        places.clone().any(left)
    }

    /// What was gathered is erased.
    pub(crate) fn disband(&mut self, physical: u32) {
        self.physical[physical as usize].is_gathered = false;
    }
}
