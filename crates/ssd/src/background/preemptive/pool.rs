//! What erasure by thresholds counts and erases.
//!
//! `Z_free` and `Z_invalid` are the counts of [`crate::mapping::ahead`], where it also
//! says what a row is, and what is erased next; `Z_alloc` is the rest of the zones that
//! there is flash for. Of invalid zones, the one that was begun is erased to its end, then
//! the oldest or the least worn. A zone gets the free physical zone that is so for
//! longest, or the erased elements of least wear.
//!
//! Which row is next is known from the states of blocks, and outlives a loss of power.

use std::ops::Range;

use crate::config::Victim;
use crate::drive::Drive;
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
        self.flash.mapping().counts(group)
    }

    /// Rows to be erased before one more zone is free, at most.
    pub(crate) fn rows_of_next(&self, group: u32) -> u32 {
        let layout = self.flash.layout();
        match self.victim_of_profile(group) {
            Some(physical) => self.flash.stale_blocks(physical).div_ceil(layout.width()),
            None => layout.rows(),
        }
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

    /// Takes what is to be erased next: a row of blocks, or all that is left of a
    /// zone, or of a line of elements, if `whole`.
    pub(super) fn take_to_erase(&mut self, group: u32, whole: bool) -> Option<(u32, Range<u32>)> {
        let is_under_way = self.reset_group(group)?.under_way > 0;
        let physical = match self.flash.next_erasure(group, is_under_way) {
            NextErasure::Nothing => return None,
            NextErasure::Line(physical) => physical,
            NextErasure::Zone => {
                // The rest of the zone of which a row is under way, else one after another.
                let begun = self.flash.mapping().begun(group);
                self.victim(group)
                    .filter(|physical| !is_under_way || begun == Some(*physical))?
            }
        };
        let blocks = self.flash.take_next(physical, whole)?;
        self.flash.erasure_begins(physical);
        Some((physical, blocks))
    }

    /// An erasure on a physical zone is over.
    pub(super) fn was_erased(&mut self, group: u32, physical: u32) {
        let now = self.now;
        match self.flash.was_erased(group, physical) {
            // Some of it is left, or it was allocated and reset meanwhile.
            Freed::Nothing => return,
            Freed::Zone => self.background.freeing.ends(physical, now),
            Freed::Elements => {}
        }
        self.after(ResetEvent::Erased, group, now);
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
