//! What erasure by thresholds counts and erases.
//!
//! | | lazy mapping | chunks and stripes |
//! | --- | --- | --- |
//! | `Z_free` | physical zones on the free list | zones for which the erased elements are enough that no zone has |
//! | `Z_invalid` | those on the invalidated list | zones more for which they are enough once all of them are erased |
//! | `Z_alloc` | those that zones stand on | the rest of the zones for which there are elements |
//! | a row | a block on every plane of an invalid zone | a block of every plane of a line of invalid elements: one element of each plane, or a stripe |
//! | the next to be erased | the oldest zone, or the least worn | the oldest element of each plane, or the least worn |
//! | a zone gets | the free zone that is so for longest | of the erased elements those of least wear |
//!
//! All zones of a group need as many elements of each plane, so that the plane
//! that has the fewest decides. Of elements it does not matter which zone had
//! them: those that several zones left behind may be erased for one.
//!
//! Which row of an invalid zone is next is part of the flash (`Flash::take_next`),
//! and outlives a loss of power; which blocks of elements are left, too.

use std::ops::Range;

use crate::config::Victim;
use crate::drive::Drive;
use crate::policy::{ResetEvent, ZoneToErase};

/// Physical zones of a group, or zones for which it has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneCounts {
    /// In use (`Z_alloc`).
    pub allocated: u32,
    /// To be erased (`Z_invalid`).
    pub invalid: u32,
    /// Erased (`Z_free`).
    pub free: u32,
}

impl Drive {
    /// The zones of a group, if zones are erased by thresholds.
    #[must_use]
    pub fn zone_counts(&self, group: u32) -> Option<ZoneCounts> {
        self.reset_state(group)?;
        let groups = self.flash.layout().groups();
        let zones = self.config().zones.count;
        let all = self.config().mapping.physical_zones(zones);
        let total = all.saturating_sub(group).div_ceil(groups);
        let (free, invalid) = self.pool(group);
        Some(ZoneCounts {
            allocated: total.saturating_sub(free + invalid),
            invalid,
            free,
        })
    }

    /// `Z_free` and `Z_invalid` of a group.
    pub(crate) fn pool(&self, group: u32) -> (u32, u32) {
        let Some(elements) = self.flash.elements() else {
            return self.flash.mapping().pool_of(group);
        };
        elements.pool(group, self.current(group))
    }

    fn current(&self, group: u32) -> Option<u32> {
        let groups = &self.background.preemptive.as_ref()?.groups;
        groups.get(group as usize)?.current
    }

    /// Rows to be erased before one more zone is free, at most.
    pub(crate) fn rows_of_next(&self, group: u32) -> u32 {
        let layout = self.flash.layout();
        let victim = match self.flash.elements() {
            Some(_) => None,
            None => self.victim_of_profile(group),
        };
        match victim {
            Some(physical) => self.flash.stale_blocks(physical).div_ceil(layout.width()),
            None => layout.rows(),
        }
    }

    /// Parts of a zone that are erased whole one after another: lines of elements.
    pub(crate) fn parts_of_zone(&self) -> u32 {
        self.flash.elements().map_or(1, |elements| elements.lines())
    }

    /// Whether erasing something would free a zone.
    pub(crate) fn has_victim(&self, group: u32) -> bool {
        match self.flash.elements() {
            Some(_) => self.pool(group).1 > 0,
            None => {
                let mut left = self.left_to_erase(group);
                self.begun_victim(group).is_some() || left.next().is_some()
            }
        }
    }

    /// Takes what is to be erased next: a row of blocks, or all that is left of a
    /// zone, or of a line of elements, if `whole`.
    pub(super) fn take_to_erase(&mut self, group: u32, whole: bool) -> Option<(u32, Range<u32>)> {
        let under_way = self.reset_group(group)?.under_way;
        let current = self.current(group);
        if self.flash.elements().is_none() {
            // The rest of the zone of which a row is under way, else one after another.
            let physical = self.victim(group).filter(|physical| {
                let has_rest = self.flash.stale_blocks(*physical) > 0;
                has_rest && (under_way == 0 || current == Some(*physical))
            })?;
            let blocks = self.flash.take_next(physical, whole);
            self.flash.erasure_begins(physical);
            return Some((physical, blocks));
        }
        if under_way > 0 || self.pool(group).1 == 0 {
            return None;
        }
        let left = current.and_then(|physical| self.left_of_line(physical, whole));
        let (physical, blocks) = match left {
            Some(left) => left,
            None => {
                self.scatter(group);
                let physical = self.flash.gather(group)?;
                self.reset_group(group)?.current = Some(physical);
                self.left_of_line(physical, whole)?
            }
        };
        self.flash.erasure_begins(physical);
        Some((physical, blocks))
    }

    fn left_of_line(&self, physical: u32, whole: bool) -> Option<(u32, Range<u32>)> {
        let blocks = self.flash.elements()?.gathered_blocks(physical, whole, self.flash.blocks())?;
        Some((physical, blocks))
    }

    /// Elements that were being erased are so no longer.
    fn scatter(&mut self, group: u32) {
        let current = self.reset_group(group).and_then(|of| of.current.take());
        if let Some(physical) = current {
            self.flash.mapping_mut().scatter(physical);
        }
    }

    /// An erasure on a physical zone is over.
    pub(super) fn was_erased(&mut self, group: u32, physical: u32) {
        if self.flash.elements().is_some() {
            let is_line = self.current(group) == Some(physical);
            if is_line && self.left_of_line(physical, false).is_none() {
                self.scatter(group);
            }
            let now = self.now;
            return self.after(ResetEvent::Erased, group, now);
        }
        // Some of it may be left, or it was allocated and reset meanwhile.
        let is_clean = self.flash.stale_blocks(physical) == 0;
        if is_clean && !self.flash.is_being_erased(physical) {
            self.flash.mapping_mut().erased(physical);
            let now = self.now;
            self.background.freeing.ends(physical, now);
            self.after(ResetEvent::Erased, group, now);
        }
    }

    /// The next invalid zone to be erased: one that has been begun, else by the
    /// rule.
    pub(super) fn victim(&mut self, group: u32) -> Option<u32> {
        if !self.has_own_rules() {
            return self.victim_of_profile(group);
        }
        if let Some(begun) = self.begun_victim(group) {
            return Some(begun);
        }
        let candidate = |physical| ZoneToErase {
            physical,
            stale_blocks: self.flash.stale_blocks(physical),
            wear: self.flash.wear_of(physical),
        };
        let candidates: Vec<_> = self.left_to_erase(group).map(candidate).collect();
        self.ask_victim(group, &candidates)
    }

    /// The same by the rule of the profile.
    fn victim_of_profile(&self, group: u32) -> Option<u32> {
        if let Some(begun) = self.begun_victim(group) {
            return Some(begun);
        }
        let mut left = self.left_to_erase(group);
        match self.background.preemptive.as_ref()?.thresholds.victim {
            Victim::Oldest => left.next(),
            Victim::LeastWorn => left.min_by_key(|physical| self.flash.wear_of(*physical)),
        }
    }

    /// The zone that has been begun and is not erased to its end. It may have a row under
    /// way.
    fn begun_victim(&self, group: u32) -> Option<u32> {
        let current = self.current(group);
        let begun = current.filter(|physical| self.flash.zone_state(*physical).2 > 0)?;
        let is_invalid = self
            .flash
            .mapping()
            .invalid(group)
            .any(|physical| physical == begun);
        is_invalid.then_some(begun)
    }

    /// Invalid zones whose erasure can begin, from the one that was reset first: not one
    /// that is being erased from an earlier reset.
    fn left_to_erase(&self, group: u32) -> impl Iterator<Item = u32> {
        self.flash.mapping().invalid(group).filter(|physical| {
            let waits = self.flash.stale_blocks(*physical) > 0;
            waits && !self.flash.is_being_erased(*physical)
        })
    }
}
