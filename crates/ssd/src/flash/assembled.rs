//! Physical zones that are assembled from storage elements: see
//! [`crate::mapping::elements`].

use std::ops::Range;

use super::{
    Cause, Elements, EventQueue, Flash, Nanos, PhysicalZone, SavedElements, SavedFlash, Tail,
    ZoneId,
};
use crate::config::EraseWhen;
use crate::mapping::allocator::ElementId;

impl Flash {
    /// The storage elements, if zones are assembled from them.
    #[must_use]
    pub fn elements(&self) -> Option<&Elements> {
        self.elements.as_deref()
    }

    /// The next zone of a group gets these elements.
    pub(crate) fn choose_elements(&mut self, group: u32, elements: Vec<ElementId>) {
        if let Some(of) = &mut self.elements {
            of.choose(group, elements);
        }
    }

    /// Gives a zone that has none the elements of least wear, or those that were
    /// chosen. Returns the physical zone that they make.
    pub(crate) fn assemble(&mut self, zone: ZoneId) -> u32 {
        let elements = self
            .elements
            .as_mut()
            .expect("other zones have a physical zone, or get one of a list");
        let (physical, stale_blocks) = elements.assemble(zone, &self.layout);
        self.stands_on(physical, stale_blocks);
        physical
    }

    /// Gives a zone that has none, and that was finished after its first `pages`
    /// pages were written, what that left it. Returns the physical zone; `None`:
    /// there are not as many elements.
    pub(crate) fn assemble_finished(
        &mut self,
        zone: ZoneId,
        pages: u32,
        by_line: bool,
    ) -> Option<u32> {
        let elements = self.elements.as_mut()?;
        let (physical, stale_blocks) =
            elements.assemble_finished(zone, (pages, by_line), &self.layout)?;
        self.stands_on(physical, stale_blocks);
        Some(physical)
    }

    /// A physical zone has just been made of elements.
    fn stands_on(&mut self, physical: u32, stale_blocks: u32) {
        let elements = self.elements.as_ref();
        let count = elements.map_or(0, |elements| elements.physical_zones() as usize);
        self.zones
            .resize(count.max(self.zones.len()), PhysicalZone::default());
        self.zones[physical as usize] = PhysicalZone {
            stale_blocks,
            ..PhysicalZone::default()
        };
    }

    /// How many more zones of the group of `zone` there are elements for; without
    /// elements, all.
    pub(crate) fn zones_left(&self, zone: ZoneId) -> u32 {
        let group = zone.0 % self.layout.groups();
        let elements = self.elements.as_ref();
        elements.map_or(u32::MAX, |elements| elements.zones_left(group))
    }

    /// Takes its elements from the zone on a physical zone. Returns whether it
    /// consists of any.
    pub(crate) fn disassemble(&mut self, physical: u32) -> bool {
        match &mut self.elements {
            Some(elements) => {
                elements.release(physical);
                true
            }
            None => false,
        }
    }

    /// Elements of a group that are to be erased next, on a physical zone of their
    /// own; `None`: there are none.
    pub(crate) fn gather(&mut self, group: u32) -> Option<u32> {
        let elements = self.elements.as_mut()?;
        let physical = elements.gather(group)?;
        let count = elements.physical_zones() as usize;
        self.zones.resize(count, PhysicalZone::default());
        self.zones[physical as usize] = PhysicalZone::default();
        Some(physical)
    }

    /// What of gathered elements is to be erased: a row of blocks, or all of them.
    pub(crate) fn gathered_blocks(&self, physical: u32, whole: bool) -> Option<Range<u32>> {
        self.elements.as_ref()?.gathered_blocks(physical, whole)
    }

    /// Gathered elements are erased, or are not to be erased any more.
    pub(crate) fn scatter(&mut self, physical: u32) {
        if let Some(elements) = &mut self.elements {
            elements.scatter(physical);
        }
    }

    /// Whether elements in some places of a physical zone have to be erased.
    pub(crate) fn is_left_of(&self, physical: u32, places: &Range<u32>) -> bool {
        let elements = self.elements.as_ref();
        elements.is_some_and(|elements| elements.is_left_of(physical, places))
    }

    /// Erases the elements of a zone that [`Flash::take_next`] took, of which some
    /// have to be erased; the group ends with `token`.
    pub(crate) fn erase_taken(
        &mut self,
        now: Nanos,
        physical: u32,
        places: &Range<u32>,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.push_erase_elements(physical, places);
        let cause = Cause::WriteErase;
        self.submit(now, token, cause, events);
    }

    /// Takes the elements away that the first `pages` pages of a zone do not
    /// touch; if `by_line`, all of a line or none. Returns what is left.
    pub(crate) fn trim(&mut self, physical: u32, pages: u32, by_line: bool) -> Option<Tail> {
        let tail = self.elements.as_mut()?.trim(physical, pages, by_line);
        Some(Tail {
            end_page: tail.end_page.min(self.layout.zone_pages()),
            ..tail
        })
    }

    /// Whether elements that have to be erased, and that nobody erases, were taken from
    /// a zone since this was asked last: after a loss of power, a zone can have some
    /// behind its data.
    pub(crate) fn has_given_back_stale(&mut self) -> bool {
        let elements = self.elements.as_mut();
        elements.is_some_and(|elements| elements.has_given_back_stale())
    }

    /// How many blocks of a zone its first `pages` pages touch; or elements, if
    /// it consists of any.
    pub(super) fn blocks_touched(&self, pages: u32) -> u32 {
        match &self.elements {
            Some(elements) => elements.places_touched(pages),
            None => self.layout.blocks_touched(pages),
        }
    }

    /// The most that [`Self::blocks_touched`] can be.
    pub(super) fn zone_units(&self) -> u32 {
        match &self.elements {
            Some(elements) => elements.places(),
            None => self.layout.zone_blocks(),
        }
    }

    /// Whether a physical zone has flash for the first `pages` pages of a zone.
    pub(crate) fn has_pages(&self, physical: u32, pages: u32) -> bool {
        let elements = self.elements.as_ref();
        elements.is_none_or(|elements| elements.has_pages(physical, pages))
    }

    /// The next block of a plane of a physical zone from `block` on, and before
    /// `end`, that an erasure has to erase; `end` if there is none.
    pub(crate) fn next_to_erase(&self, physical: u32, block: u32, end: u32) -> u32 {
        let Some(elements) = &self.elements else {
            return block;
        };
        let is_stale = |block: &u32| {
            let (row, slot) = self.layout.block_position(*block);
            elements.is_stale(physical, row, slot)
        };
        (block..end)
            .step_by(self.layout.width() as usize)
            .find(is_stale)
            .unwrap_or(end)
    }

    /// Puts together the erasures of what has to be erased of the elements in
    /// some places. Returns whether there are any.
    #[cold]
    pub(super) fn push_erase_elements(&mut self, physical: u32, places: &Range<u32>) -> bool {
        self.ops.clear();
        let rows = match &self.elements {
            Some(elements) => elements.rows_of(places.clone()),
            None => return false,
        };
        let width = self.layout.width();
        let mut previous = None;
        for block in rows.start * width..rows.end * width {
            if let Some(index) = self.erase_in(physical, places, block) {
                self.push_erase(physical, block, index, previous);
                previous = Some(block);
            }
        }
        !self.ops.is_empty()
    }

    /// Erases a block, if it lies in an element in some places and has to be
    /// erased. Returns its number on the drive.
    fn erase_in(&mut self, physical: u32, places: &Range<u32>, block: u32) -> Option<usize> {
        let (row, slot) = self.layout.block_position(block);
        let elements = self.elements.as_mut()?;
        if elements.is_in(places, row, slot) {
            elements.erase(physical, row, slot, &self.erase_counts)
        } else {
            None
        }
    }

    pub(super) fn precondition_assembled(&mut self, physical: u32, pages: u32) {
        let touched = self.blocks_touched(pages);
        let zone = &mut self.zones[physical as usize];
        let end = match self.erase_when {
            EraseWhen::FirstBlockWrite => touched.min(zone.stale_blocks),
            _ => zone.stale_blocks,
        };
        let places = zone.erased_blocks..end;
        zone.programmed_pages = pages;
        zone.erased_blocks = zone.erased_blocks.max(end);
        if let Some(elements) = &mut self.elements {
            elements.write(physical, pages);
        }
        if !places.is_empty() {
            // Counted, and no time passes.
            self.push_erase_elements(physical, &places);
        }
    }

    /// Power was lost, and of each zone that has flash its first `kept_pages` pages hold
    /// data: blocks behind them whose erasure was not over have to be erased again. What
    /// was to be erased, and had not begun, has to be erased still.
    pub(crate) fn elements_after_power_loss(&mut self, kept_pages: impl Fn(ZoneId) -> u32) {
        let interrupted = self.under_way.as_mut().map(|of| of.interrupt());
        let Some(elements) = &mut self.elements else {
            return;
        };
        let interrupted = interrupted.unwrap_or_default();
        elements.power_was_lost(&interrupted, &self.erase_counts, &kept_pages);
        for (physical, zone) in (0..).zip(&mut self.zones) {
            *zone = PhysicalZone {
                programmed_pages: zone.programmed_pages,
                ..PhysicalZone::default()
            };
            if let Some(of) = elements.zone_on(physical) {
                let (first, end) = elements.stale_places(physical, kept_pages(of));
                (zone.erased_blocks, zone.stale_blocks) = (first, end);
            }
        }
    }

    /// Whether erasures that resets began may be under way on the flash of a zone.
    pub(crate) fn has_erasures(&self, physical: u32) -> bool {
        let elements = self.elements.as_ref();
        self.is_being_erased(physical)
            || elements.is_some_and(|elements| elements.has_erasures(physical))
    }

    /// Physical zones that have to be erased and that nothing is written on. Of
    /// elements, those that no zone has are put on some.
    pub(crate) fn waiting_for_erasure(&mut self) -> Vec<u32> {
        if let Some(elements) = &mut self.elements {
            let collected = elements.collect_stale();
            let count = elements.physical_zones() as usize;
            self.zones.resize(count, PhysicalZone::default());
            for &physical in &collected {
                self.zones[physical as usize] = PhysicalZone::default();
            }
            return collected;
        }
        (0..self.physical_zones())
            .filter(|&physical| self.stale_blocks(physical) > 0 && !self.is_programmed(physical))
            .collect()
    }

    /// Everything that a snapshot keeps. Zones are on the physical zones of their
    /// numbers.
    pub(super) fn save_assembled(&self) -> (SavedFlash, Option<SavedElements>) {
        let (mut erase_counts, mut erased_total) = (self.erase_counts.clone(), self.erased_total);
        let mut elements = self.elements.clone();
        let mut zones = Vec::new();
        if let Some(elements) = &mut elements {
            erased_total += elements.complete(&mut erase_counts);
            zones = vec![(0, 0, 0); elements.fresh_physical_zones() as usize];
            for (physical, zone) in elements.mapped() {
                // What has to be erased follows from the elements.
                zones[zone.0 as usize].0 = self.zones[physical as usize].programmed_pages;
            }
        }
        let flash = SavedFlash {
            zones,
            erase_counts,
            programmed_bytes: self.programmed_bytes,
            erased_total,
        };
        (flash, elements.map(|elements| elements.save()))
    }

    /// What a snapshot keeps of elements, if there are any.
    pub(crate) fn save_elements(&self) -> Option<SavedElements> {
        self.elements.as_ref()?;
        self.save_assembled().1
    }

    /// Puts into the flash of a snapshot what it kept of elements.
    ///
    /// # Errors
    /// What is impossible about it. The flash is of no use then.
    pub(crate) fn restore_elements(&mut self, saved: &SavedElements) -> Result<(), String> {
        let Some(elements) = &mut self.elements else {
            return Err("storage elements of a drive without".to_owned());
        };
        elements.restore(saved, &self.layout, &self.erase_counts)?;
        for (physical, zone) in (0..).zip(&mut self.zones) {
            let (first, end) = elements.stale_places(physical, 0);
            (zone.erased_blocks, zone.stale_blocks) = (first, end);
            let touched = elements.places_touched(zone.programmed_pages);
            if touched > 0 && !elements.is_written(physical, touched) {
                return Err(format!("elements of physical zone {physical}"));
            }
        }
        Ok(())
    }
}
