//! What erasure by thresholds counts and erases.
//!
//! `Z_free` and `Z_invalid` are the counts of [`crate::mapping::ahead`], where it also
//! says what a row is, and what is erased next; `Z_alloc` is the rest of the zones that
//! there is flash for. Of invalid zones, the one that was begun is erased to its end, then
//! the oldest or the least worn. A zone gets the free physical zone that is so for
//! longest, or the erased elements of least wear.
//!
//! Which row is next is known from the states of blocks, and outlives a loss of power.

use crate::background::Background;
use std::ops::Range;

use super::ResetState;
use crate::config::Victim;
use crate::drive::{Core, Drive};
use crate::mapping::ahead::{Freed, NextErasure};
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

impl Core {
    /// `Z_free` and `Z_invalid` of a group.
    pub(crate) fn pool(&self, group: u32) -> (u32, u32) {
        self.flash.mapping().counts(group)
    }

    /// Parts of a zone that are erased whole one after another: lines of elements.
    pub(crate) fn parts_of_zone(&self) -> u32 {
        self.flash.mapping().lines()
    }

    /// Whether erasing something would free a zone.
    pub(crate) fn has_victim(&self, group: u32) -> bool {
        let begun = self.begun_victim(group);
        let is_left = |physical| begun == Some(physical) || self.is_left_to_erase(physical);
        self.flash.mapping().has_to_erase(group, is_left)
    }

    /// The zone that has been begun and is not erased to its end. It may have a row under
    /// way.
    fn begun_victim(&self, group: u32) -> Option<u32> {
        let mapping = self.flash.mapping();
        let begun = mapping.begun(group)?;
        let is_begun = self.flash.zone_state(begun).2 > 0;
        let is_invalid = is_begun && mapping.invalid(group).any(|physical| physical == begun);
        is_invalid.then_some(begun)
    }

    /// Invalid zones whose erasure can begin, from the one that was reset first.
    fn left_to_erase(&self, group: u32) -> impl Iterator<Item = u32> {
        let invalid = self.flash.mapping().invalid(group);
        invalid.filter(|physical| self.is_left_to_erase(*physical))
    }

    /// Whether the erasure of an invalid zone can begin: not if it is being erased from an
    /// earlier reset.
    fn is_left_to_erase(&self, physical: u32) -> bool {
        self.flash.stale_blocks(physical) > 0 && !self.flash.is_being_erased(physical)
    }
}

impl Background {
    /// The zones of a group, if zones are erased by thresholds.
    pub(crate) fn zone_counts(&self, core: &Core, group: u32) -> Option<ZoneCounts> {
        self.reset_state(group)?;
        let groups = core.flash.layout().groups();
        let zones = core.config.zones.count;
        let all = core.config.mapping.physical_zones(zones);
        let total = all.saturating_sub(group).div_ceil(groups);
        let (free, invalid) = core.pool(group);
        Some(ZoneCounts {
            allocated: total.saturating_sub(free + invalid),
            invalid,
            free,
        })
    }

    /// Rows to be erased before one more zone is free, at most.
    pub(crate) fn rows_of_next(&self, core: &Core, group: u32) -> u32 {
        let layout = core.flash.layout();
        match self.victim_of_profile(core, group) {
            Some(physical) => core.flash.stale_blocks(physical).div_ceil(layout.width()),
            None => layout.rows(),
        }
    }

    /// Takes what is to be erased next: a row of blocks, or all that is left of a
    /// zone, or of a line of elements, if `whole`.
    pub(super) fn take_to_erase(
        &mut self,
        core: &mut Core,
        group: u32,
        whole: bool,
    ) -> Option<(u32, Range<u32>)> {
        let is_under_way = self.reset_group(group)?.under_way > 0;
        let physical = match core.flash.next_erasure(group, is_under_way) {
            NextErasure::Nothing => return None,
            NextErasure::Line(physical) => physical,
            NextErasure::Zone => {
                // The rest of the zone of which a row is under way, else one after another.
                let begun = core.flash.mapping().begun(group);
                self.victim(core, group)
                    .filter(|physical| !is_under_way || begun == Some(*physical))?
            }
        };
        let blocks = core.flash.take_next(physical, whole)?;
        core.flash.erasure_begins(physical);
        Some((physical, blocks))
    }

    /// An erasure on a physical zone is over.
    pub(super) fn was_erased(&mut self, core: &mut Core, group: u32, physical: u32) {
        let now = core.now;
        match core.flash.was_erased(group, physical) {
            // Some of it is left, or it was allocated and reset meanwhile.
            Freed::Nothing => return,
            Freed::Zone => self.freeing.ends(physical, now),
            Freed::Elements => {}
        }
        self.after(core, ResetEvent::Erased, group, now);
    }

    /// The next invalid zone to be erased: one that has been begun, else by the
    /// rule.
    pub(super) fn victim(&mut self, core: &mut Core, group: u32) -> Option<u32> {
        if !self.has_own_rules() {
            return self.victim_of_profile(core, group);
        }
        if let Some(begun) = core.begun_victim(group) {
            return Some(begun);
        }
        let candidate = |physical| ZoneToErase {
            physical,
            stale_blocks: core.flash.stale_blocks(physical),
            wear: core.flash.wear_of(physical),
        };
        let candidates: Vec<_> = core.left_to_erase(group).map(candidate).collect();
        self.ask_victim(core, group, &candidates)
    }

    /// The same by the rule of the profile.
    fn victim_of_profile(&self, core: &Core, group: u32) -> Option<u32> {
        if let Some(begun) = core.begun_victim(group) {
            return Some(begun);
        }
        let mut left = core.left_to_erase(group);
        match self.preemptive.as_ref()?.thresholds.victim {
            Victim::Oldest => left.next(),
            Victim::LeastWorn => left.min_by_key(|physical| core.flash.wear_of(*physical)),
        }
    }
}

impl Drive {
    /// The zones of a group, if zones are erased by thresholds.
    #[must_use]
    pub fn zone_counts(&self, group: u32) -> Option<ZoneCounts> {
        self.background.zone_counts(&self.core, group)
    }

    /// The state of a group of zones, if zones are erased by thresholds.
    #[must_use]
    pub fn reset_state(&self, group: u32) -> Option<ResetState> {
        self.background.reset_state(group)
    }
}
