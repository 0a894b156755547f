//! Physical zones between programs and erasures: which zone stands on them, and what of
//! them has to be erased.

use std::ops::Range;

use zonelab_device::ZoneId;

use super::{EraseExtent, Flash, PhysicalZone};
use crate::layout::PlaneSet;
use crate::mapping::ahead::{Freed, NextErasure};
use crate::mapping::elements::Tail;

impl Flash {
    /// State of a physical zone for comparison in tests: programmed pages, and the places
    /// with blocks that are stale or have been since the last reset: their end, and how
    /// many of them have been erased.
    #[must_use]
    pub fn zone_state(&self, physical: u32) -> (u32, u32, u32) {
        let zone = &self.zones[physical as usize];
        (zone.programmed_pages, zone.stale_end, zone.stale_first)
    }

    /// The physical zone that `zone` stands on, giving it one if it has none.
    pub(crate) fn map(&mut self, zone: ZoneId) -> u32 {
        match self.mapping.physical(zone) {
            Some(physical) => physical,
            None => {
                let physical = self.mapping.bind(zone, &self.layout);
                debug_assert_eq!(
                    self.layout.group_of(physical),
                    self.layout.group_of(zone.0),
                    "a zone keeps to the dies of its group"
                );
                self.was_assembled(physical);
                physical
            }
        }
    }

    /// Gives a zone that has none, and that was finished after its first pages were
    /// written, what that left it. Returns the physical zone; `None`: there are not as
    /// many elements.
    pub(crate) fn map_finished(&mut self, zone: ZoneId, written: (u32, bool)) -> Option<u32> {
        let physical = self.mapping.bind_finished(zone, written, &self.layout)?;
        self.was_assembled(physical);
        Some(physical)
    }

    /// A zone has got a physical zone, which may just have been made of elements.
    fn was_assembled(&mut self, physical: u32) {
        self.add_physical_zones();
        self.begins_anew(physical);
    }

    fn add_physical_zones(&mut self) {
        let count = self.mapping.physical_zones() as usize;
        self.zones
            .resize(count.max(self.zones.len()), PhysicalZone::default());
    }

    /// Nothing is programmed on a physical zone, and any of its blocks may be stale.
    fn begins_anew(&mut self, physical: u32) {
        let on = (&self.layout, &self.blocks);
        let (_, stale_end) = self.mapping.stale_range(physical, 0, on);
        let zone = &mut self.zones[physical as usize];
        *zone = PhysicalZone {
            stale_end,
            erasures: zone.erasures,
            ..PhysicalZone::default()
        };
    }

    /// Looks for stale blocks of all physical zones.
    pub(super) fn find_stale(&mut self, kept_pages: impl Fn(ZoneId) -> u32) {
        let mut kept = vec![0; self.zones.len()];
        for (zone, physical) in self.mapping.mapped() {
            kept[physical as usize] = kept_pages(zone);
        }
        for (physical, kept) in (0..).zip(kept) {
            let on = (&self.layout, &self.blocks);
            let (first, end) = self.mapping.stale_range(physical, kept, on);
            let zone = &mut self.zones[physical as usize];
            zone.known_pages = kept;
            zone.stale_end = zone.stale_end.max(end);
            zone.stale_first = match first < end {
                true => first,
                false => zone.stale_end,
            };
        }
    }

    /// Marks the data of a zone as old and, unless mapping is direct, takes the flash
    /// from it. What has to be erased before it can be programmed again follows from the
    /// extent of erasure. Returns the physical zone, if there is something to erase.
    pub(crate) fn release(&mut self, zone: ZoneId) -> Option<u32> {
        let physical = self.mapping.physical(zone)?;
        if let Some(placements) = &mut self.placements {
            placements.clear(physical);
        }
        self.clear_cached(physical);
        let is_full = self.erase_extent == EraseExtent::Full;
        let on = (&self.layout, &mut self.blocks);
        let pages = self.zones[physical as usize].programmed_pages;
        self.mapping.invalidate(physical, (pages, is_full), on);
        self.begins_anew(physical);
        let is_clean = self.mapping.stale(physical) == 0;
        self.mapping.release(zone, &mut self.blocks);
        debug_assert!(!self.is_programmed(physical), "a reset leaves no data");
        (!is_clean).then_some(physical)
    }

    /// How many more zones of the group of `zone` there is flash for; without elements,
    /// all.
    pub(crate) fn zones_left(&self, zone: ZoneId) -> u32 {
        self.mapping.zones_left(self.layout.group_of(zone.0))
    }

    /// Whether a physical zone has flash for the first `pages` pages of a zone.
    pub(crate) fn has_pages(&self, physical: u32, pages: u32) -> bool {
        self.mapping.has_pages(physical, pages)
    }

    /// Takes those elements away that the first `pages` pages of a zone do not
    /// touch; if `by_line`, all of a line or none. Returns what is left.
    pub(crate) fn trim(&mut self, physical: u32, pages: u32, by_line: bool) -> Option<Tail> {
        let tail = self
            .mapping
            .trim(physical, (pages, by_line), &mut self.blocks)?;
        Some(Tail {
            end_page: tail.end_page.min(self.layout.zone_pages()),
            ..tail
        })
    }

    /// Whether anything of a physical zone has been programmed since its last reset.
    #[must_use]
    pub fn is_programmed(&self, physical: u32) -> bool {
        self.zones[physical as usize].programmed_pages > 0
    }

    /// Physical zones.
    #[must_use]
    pub fn physical_zones(&self) -> u32 {
        u32::try_from(self.zones.len()).expect("their number came as u32")
    }

    /// Stale blocks of a physical zone, or its elements that have some.
    #[must_use]
    pub fn stale_blocks(&self, physical: u32) -> u32 {
        self.mapping.stale(physical)
    }

    /// Erasures so far of the blocks of a physical zone.
    pub(crate) fn wear_of(&self, physical: u32) -> u64 {
        let blocks = (0..self.layout.zone_blocks()).map(|n| self.layout.block_position(n));
        let blocks = blocks.filter_map(|at| self.mapping.block(physical, at, &self.layout));
        blocks.map(|block| u64::from(self.blocks.wear(block))).sum()
    }

    // ---- erasures of the background --------------------------------------

    /// A background erasure of a physical zone begins.
    pub fn erasure_begins(&mut self, physical: u32) {
        self.zones[physical as usize].erasures += 1;
        self.mapping.erasure_begins(physical);
    }

    /// A background erasure of a physical zone is over.
    pub fn erasure_ends(&mut self, physical: u32) {
        let zone = &mut self.zones[physical as usize];
        assert!(zone.erasures > 0, "an erasure ends once");
        zone.erasures -= 1;
        self.mapping.erasure_ends(physical);
    }

    /// Whether background erasures of a physical zone are not over.
    #[inline]
    #[must_use]
    pub fn is_being_erased(&self, physical: u32) -> bool {
        self.zones[physical as usize].erasures > 0
    }

    /// The end of the blocks of a physical zone, row by row, that may be stale.
    pub(crate) fn stale_end(&self, physical: u32) -> u32 {
        let zone = &self.zones[physical as usize];
        self.mapping.block_end(zone.stale_end, &self.layout)
    }

    /// The next row of a physical zone, from `row` on, in which a block on some planes of it is
    /// stale, and the first such block; none lies behind block `end`.
    pub(crate) fn next_to_erase(
        &self,
        physical: u32,
        planes: PlaneSet,
        (row, end): (u32, u32),
    ) -> Option<(u32, u32)> {
        let is_stale = |block: &u32| {
            let at = self.layout.block_position(*block);
            let index = self.mapping.block(physical, at, &self.layout);
            index.is_some_and(|index| self.blocks.is_stale(index))
        };
        let rows = row..end.div_ceil(self.layout.width());
        rows.into_iter().find_map(|row| {
            let mut blocks = self.layout.blocks_of_row(row, planes, end);
            blocks.find(is_stale).map(|block| (row, block))
        })
    }

    /// The places of a physical zone with stale blocks.
    pub(crate) fn stale_places(&self, physical: u32) -> Range<u32> {
        let zone = &self.zones[physical as usize];
        zone.stale_first..zone.stale_end
    }

    /// Whether some places of a physical zone have stale blocks.
    pub(crate) fn is_stale_in(&self, physical: u32, places: &Range<u32>) -> bool {
        let on = (&self.layout, &self.blocks);
        self.mapping.is_stale_in(physical, places, on)
    }

    /// Takes the next row of blocks of a physical zone that have to be erased, or all
    /// that are left if `whole`: whoever takes them erases them.
    pub(crate) fn take_next(&mut self, physical: u32, whole: bool) -> Option<Range<u32>> {
        let places = self.stale_places(physical);
        let on = (&self.layout, &self.blocks);
        let blocks = self.mapping.next_blocks(physical, (places, whole), on)?;
        debug_assert!(
            !blocks.is_empty(),
            "what is taken to be erased is something"
        );
        let zone = &mut self.zones[physical as usize];
        zone.stale_first = zone.stale_end.min(blocks.end);
        Some(blocks)
    }

    /// What of a group is to be erased next, ahead of need.
    pub(crate) fn next_erasure(&mut self, group: u32, is_under_way: bool) -> NextErasure {
        let next = self.mapping.next_erasure(group, is_under_way, &self.blocks);
        self.add_physical_zones();
        next
    }

    /// Something of a physical zone of a group has been erased.
    pub(crate) fn was_erased(&mut self, group: u32, physical: u32) -> Freed {
        let is_being_erased = self.is_being_erased(physical);
        self.mapping
            .was_erased((group, physical), is_being_erased, &self.blocks)
    }

    /// Physical zones that have to be erased and that nothing is written on. Of
    /// elements, those that no zone has are put on some.
    pub(crate) fn waiting_for_erasure(&mut self) -> Vec<u32> {
        let zones = &self.zones;
        let is_programmed = |physical: u32| zones[physical as usize].programmed_pages > 0;
        let waiting = self.mapping.waiting_for_erasure(is_programmed);
        self.add_physical_zones();
        for &physical in &waiting {
            assert!(
                !self.is_programmed(physical),
                "nothing is erased under the data of a zone"
            );
            self.begins_anew(physical);
        }
        waiting
    }
}
