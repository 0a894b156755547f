//! Elements after a loss of power: what was being erased has to be erased again.

use zonelab_device::ZoneId;

use super::{Blocks, Elements, NONE, Physical};
use crate::mapping::allocator::Availability;

impl Elements {
    /// Power was lost while these blocks, counted over the drive, were being erased, and
    /// of each zone that has elements the first `kept_pages` pages hold data: blocks of
    /// other elements have to be erased again.
    pub(crate) fn power_was_lost(
        &mut self,
        interrupted: &[usize],
        blocks: &mut Blocks,
        kept_pages: impl Fn(ZoneId) -> u32,
    ) {
        self.erasing.fill(0);
        self.trimmed.clear();
        self.taken.fill(false);
        for of in &mut self.physical {
            of.is_erasing = false;
            of.is_gathered = false;
        }
        if interrupted.is_empty() {
            return;
        }
        let holds_data = self.with_data(kept_pages);
        let groups = self.groups_of_planes();
        for &block in interrupted {
            let element = self.element_of(block, &groups);
            if holds_data[element] {
                continue;
            }
            let (group, id) = self.name(element);
            if self.allocators[group].availability(id) == Availability::Valid {
                // Its zone has been written there: something may have been programmed on
                // the blocks whose erasure was over.
                self.mark_stale(element, blocks);
            } else if !blocks.is_stale(block) {
                blocks.make_stale(block);
                self.stale_left[element] += 1;
            }
            let most = self.wear_of(element, blocks);
            self.allocators[group].stale_again(id, most);
        }
    }

    /// Whether each element, counted over the drive, is of a zone and touched by its first
    /// `kept_pages` pages.
    fn with_data(&self, kept_pages: impl Fn(ZoneId) -> u32) -> Vec<bool> {
        let mut holds_data = vec![false; self.owner.len()];
        for (physical, zone) in self.mapped() {
            for place in 0..self.places_touched(kept_pages(zone)).min(self.shape.places) {
                if let Some(element) = self.at(physical, place) {
                    holds_data[element] = true;
                }
            }
        }
        holds_data
    }

    /// Group of each plane of the drive, and which of the group it is.
    fn groups_of_planes(&self) -> Vec<(u32, u32)> {
        let mut of_planes = vec![(NONE, NONE); self.planes.len()];
        for (at, &plane) in (0..).zip(&self.planes) {
            of_planes[plane as usize] = (at / self.shape.width, at % self.shape.width);
        }
        of_planes
    }

    /// The element of a block, both counted over the drive.
    fn element_of(&self, block: usize, groups: &[(u32, u32)]) -> usize {
        let shape = &self.shape;
        let per_plane = shape.blocks_per_plane as usize;
        let (group, position) = groups[block / per_plane];
        // Fits: blocks of a plane are counted in 32 bits.
        let line = (block % per_plane) as u32 / shape.element_rows;
        let per_lun = self.allocators[group as usize].elements_per_lun();
        let id = match shape.is_stripe {
            true => line,
            false => position * per_lun + line,
        };
        (group * self.group_elements + id) as usize
    }

    /// Puts all elements that have to be erased, and that no erasure has, on physical
    /// zones of their own, to be erased there. Returns those. Zones that have some of
    /// them are as zones that got elements which are being erased: whoever comes first
    /// erases a block.
    pub(crate) fn collect_stale(&mut self) -> Vec<u32> {
        let (stride, groups) = (self.group_elements, self.shape.groups);
        let mut collected = Vec::new();
        for group in 0..groups {
            let per_lun = self.allocators[group as usize].elements_per_lun();
            let luns = self.allocators[group as usize].luns();
            // Elements of each LUN that are on physical zones already.
            let mut placed = vec![0; luns as usize];
            let mut mine: Vec<u32> = Vec::new();
            for id in 0..luns * per_lun {
                let element = (group * stride + id) as usize;
                if self.stale_left[element] == 0 || self.erasing[element] > 0 {
                    continue;
                }
                let lun = id / per_lun;
                let nth: u32 = placed[lun as usize];
                placed[lun as usize] += 1;
                let (which, line) = (
                    (nth / self.shape.per_lun) as usize,
                    nth % self.shape.per_lun,
                );
                if which == mine.len() {
                    let physical = self.unused(group);
                    let places = self.shape.places as usize;
                    self.table[physical as usize * places..][..places].fill(NONE);
                    self.taken[physical as usize * places..][..places].fill(false);
                    self.physical[physical as usize] = Physical {
                        // So that it is not unused any more.
                        is_erasing: true,
                        ..Physical::UNUSED
                    };
                    mine.push(physical);
                }
                let place = line * self.shape.line_elements + lun;
                self.put(mine[which], place, id);
            }
            collected.append(&mut mine);
        }
        collected
    }
}
