//! What of elements has to be erased, block by block, and who erases it.

use std::ops::Range;

use super::{Blocks, Elements, NONE, Shape};

impl Elements {
    /// Erases a block of a physical zone, if it is stale and this is the place to do it.
    /// Returns which it is, counted over the drive.
    pub(crate) fn erase(
        &mut self,
        physical: u32,
        (row, slot): (u32, u32),
        blocks: &mut Blocks,
    ) -> Option<usize> {
        let of = &self.physical[physical as usize];
        if of.zone == NONE && !of.is_erasing {
            return None;
        }
        let is_gathered = of.is_gathered;
        let (element, block) = self.block(physical, row, slot)?;
        // Zones erase what they have got by themselves.
        if is_gathered && self.owner[element] != NONE {
            return None;
        }
        if !blocks.is_stale(block) {
            return None;
        }
        blocks.erase(block);
        assert!(
            self.stale_left[element] > 0,
            "a stale block of element {element} counts"
        );
        self.stale_left[element] -= 1;
        if self.stale_left[element] == 0 {
            let (group, id) = self.name(element);
            let most = self.wear_of(element, blocks);
            self.allocators[group].erased_to(id, most);
        }
        Some(block)
    }

    /// Erasures of the block of an element that has most of them.
    pub(super) fn wear_of(&self, element: usize, blocks: &Blocks) -> u32 {
        let most = self.blocks(element).map(|block| blocks.wear(block)).max();
        most.expect("an element has blocks")
    }

    /// The rows of blocks that the elements in a range of places lie in.
    pub(crate) fn rows_of(&self, places: Range<u32>) -> Range<u32> {
        let Shape {
            line_elements,
            element_rows,
            ..
        } = self.shape;
        let first = places.start / line_elements * element_rows;
        first..places.end.div_ceil(line_elements) * element_rows
    }

    /// Whether the block at a row and position lies in an element of a range of places.
    pub(crate) fn is_in(&self, places: &Range<u32>, row: u32, slot: u32) -> bool {
        let line = row / self.shape.element_rows;
        places.contains(&match self.shape.is_stripe {
            true => line,
            false => line * self.shape.width + slot,
        })
    }

    /// Marks the data of a physical zone as old, and, if it is `full`, what has not
    /// been written, too.
    pub(crate) fn invalidate(&mut self, physical: u32, full: bool, blocks: &mut Blocks) {
        if full {
            self.write_places(physical, 0, self.shape.places);
        }
        for place in 0..self.physical[physical as usize].written {
            // Nothing has been programmed where something is still to be erased.
            if let Some(element) = self.at(physical, place)
                && self.stale_left[element] == 0
            {
                self.mark_stale(element, blocks);
            }
        }
    }

    pub(super) fn mark_stale(&mut self, element: usize, blocks: &mut Blocks) {
        let (planes, n) = self.place_on_planes(element);
        for &plane in &self.planes[planes] {
            let first = self.shape.block(plane, n);
            for block in first..first + self.shape.element_rows as usize {
                blocks.make_stale(block);
            }
        }
        self.stale_left[element] = self.shape.element_blocks;
    }

    /// The place behind the last element of a physical zone that has to be erased.
    pub(super) fn stale_end(&self, physical: u32) -> u32 {
        let is_stale = |place: &u32| {
            let element = self.at(physical, *place);
            element.is_some_and(|element| self.stale_left[element] > 0)
        };
        let last = (0..self.shape.places).rev().find(is_stale);
        last.map_or(0, |last| last + 1)
    }

    /// Elements of a physical zone that have to be erased.
    pub(crate) fn stale_elements(&self, physical: u32) -> u32 {
        let elements = (0..self.shape.places).filter_map(|place| self.at(physical, place));
        let stale = elements.filter(|&element| self.stale_left[element] > 0);
        u32::try_from(stale.count()).expect("a zone has fewer than 2^32 elements")
    }

    /// An erasure begins that a reset asked for: it has the elements of a physical
    /// zone that have to be erased.
    pub(crate) fn erasure_begins(&mut self, physical: u32) {
        let of = &mut self.physical[physical as usize];
        of.is_erasing = true;
        let is_gathered = of.is_gathered;
        for place in 0..self.shape.places {
            if let Some(element) = self.at(physical, place)
                && self.stale_left[element] > 0
                && !(is_gathered && self.owner[element] != NONE)
            {
                self.erasing[element] += 1;
                *self.taken_at(physical, place) = true;
            }
        }
    }

    /// It is over.
    pub(crate) fn erasure_ends(&mut self, physical: u32) {
        self.physical[physical as usize].is_erasing = false;
        for place in 0..self.shape.places {
            let is_taken = std::mem::take(self.taken_at(physical, place));
            if let Some(element) = self.at(physical, place).filter(|_| is_taken) {
                self.erasure_ends_of(element);
            }
        }
        let mut trimmed = std::mem::take(&mut self.trimmed);
        trimmed.retain(|&(of, element)| {
            let is_over = of == physical;
            if is_over {
                self.erasure_ends_of(element);
            }
            !is_over
        });
        self.trimmed = trimmed;
    }

    fn erasure_ends_of(&mut self, element: usize) {
        let erasing = &mut self.erasing[element];
        assert!(*erasing > 0, "the erasure of element {element} ends once");
        *erasing -= 1;
        // It was programmed and given back since its erasure began.
        let is_left = *erasing == 0 && self.stale_left[element] > 0 && self.owner[element] == NONE;
        self.has_given_back_stale |= is_left;
    }
}
