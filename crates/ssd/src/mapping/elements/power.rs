//! Elements after a loss of power: what was being erased has to be erased again.

use super::{Elements, NONE, Physical, TAKEN, WAS_STALE};

impl Elements {
    /// The physical zones that zones stand on with elements which erasures have
    /// that a reset began: the zones got them before those were over.
    pub(crate) fn zones_with_erasures(&self) -> impl Iterator<Item = u32> {
        (0..self.physical_zones())
            .filter(|&physical| self.physical[physical as usize].zone != NONE)
            .filter(|&physical| self.has_erasures(physical))
    }

    /// Whether erasures that resets began have elements of a physical zone.
    pub(crate) fn has_erasures(&self, physical: u32) -> bool {
        (0..self.shape.places)
            .filter_map(|place| self.at(physical, place))
            .any(|element| self.erasing[element] > 0)
    }

    /// Erasures on a physical zone were not over when power was lost. Its first
    /// `kept_pages` pages hold data; what had to be erased behind them has to be
    /// erased still, or again. Returns the places of the first and behind the last
    /// such element, if a zone stands on it.
    pub(crate) fn erase_again(
        &mut self,
        physical: u32,
        kept_pages: u32,
    ) -> Option<std::ops::Range<u32>> {
        let stands = self.physical[physical as usize].zone != NONE;
        let kept = self.places_touched(kept_pages);
        let mut places: Option<std::ops::Range<u32>> = None;
        for place in 0..self.shape.places {
            let flags = *self.flags_at(physical, place);
            let Some(element) = self.at(physical, place).filter(|_| flags != 0) else {
                continue;
            };
            let owner = self.owner[element];
            let is_mine = owner == physical && place >= kept;
            // Those that another zone got are left to what that has kept.
            if is_mine && flags & WAS_STALE != 0 || owner == NONE && flags & TAKEN != 0 {
                self.is_stale_again(element);
                if stands {
                    let first = places.as_ref().map_or(place, |places| places.start);
                    places = Some(first..place + 1);
                }
            }
        }
        for at in 0..self.trimmed.len() {
            let (of, element) = self.trimmed[at];
            if of == physical && self.owner[element] == NONE {
                self.is_stale_again(element);
            }
        }
        places
    }

    fn is_stale_again(&mut self, element: usize) {
        let (group, id) = self.name(element);
        let left = self.stale_left[element];
        if left > 0 && left < self.shape.element_blocks {
            // Some of its blocks have been erased: its wear is that of those.
            self.allocators[group].erased(id);
        }
        self.allocators[group].stale_again(id);
        self.mark_stale(element);
    }

    /// All erasures are gone with the power, after [`Self::erase_again`] for each.
    pub(crate) fn power_cut(&mut self) {
        self.erasing.fill(0);
        self.trimmed.clear();
        for flags in &mut self.flags {
            *flags &= !TAKEN;
        }
        for of in &mut self.physical {
            of.is_erasing = false;
            of.is_gathered = false;
        }
    }

    /// Puts all elements that have to be erased, and that no erasure has, on physical
    /// zones of their own, to be erased there. Returns those. Zones that have some of them are as zones that
    /// got elements which are being erased: whoever comes first erases a block.
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
                    self.flags[physical as usize * places..][..places].fill(0);
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
