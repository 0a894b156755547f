//! Elements in snapshots and checkpoints.

use serde::{Deserialize, Serialize};
use zonelab_device::ZoneId;

use super::{Blocks, Elements, NONE, Physical};
use crate::layout::Layout;
use crate::mapping::allocator::{Allocator, Availability, ElementId, SavedAllocator};

/// What [`Elements`] know, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedElements {
    /// Of each group of zones.
    allocators: Vec<SavedAllocator>,
    /// Elements of each zone, by place; `u32::MAX`: none. Empty: it is not mapped.
    zones: Vec<Vec<u32>>,
}

impl Elements {
    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedElements {
        let mut zones = vec![Vec::new(); self.zones as usize];
        for (physical, of) in (0..).zip(&self.physical) {
            if of.zone != NONE {
                let table = &self.table[self.shape.index(physical, 0)..];
                zones[of.zone as usize] = table[..self.shape.places as usize].to_vec();
            }
        }
        SavedElements {
            allocators: self.allocators.iter().map(Allocator::save).collect(),
            zones,
        }
    }

    /// All blocks of the elements that a snapshot has as stale, counted over the drive.
    ///
    /// # Errors
    /// It is of other elements.
    pub(crate) fn stale_blocks_of(&self, saved: &SavedElements) -> Result<Vec<usize>, String> {
        let mut stale = Vec::new();
        for (group, (of, saved)) in (0..).zip(self.allocators.iter().zip(&saved.allocators)) {
            let restored = Allocator::restore(of.luns(), of.elements_per_lun(), saved)?;
            for id in 0..of.luns() * of.elements_per_lun() {
                if restored.is_stale(ElementId(id)) {
                    stale.extend(self.blocks_of(group, ElementId(id)));
                }
            }
        }
        Ok(stale)
    }

    /// The physical zones that zones stand on, and those.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, ZoneId)> {
        let all = (0..).zip(&self.physical);
        all.filter(|(_, of)| of.zone != NONE)
            .map(|(physical, of)| (physical, ZoneId(of.zone)))
    }

    /// Puts into fresh elements what a snapshot kept, of which nothing is
    /// believed. Zones that have elements stand on the physical zone of their
    /// number. `blocks` have been restored.
    ///
    /// # Errors
    /// What is impossible about it. The elements are of no use then.
    pub(crate) fn restore(
        &mut self,
        saved: &SavedElements,
        layout: &Layout,
        blocks: &Blocks,
    ) -> Result<(), String> {
        let (groups, zones) = (saved.allocators.len(), saved.zones.len());
        if groups != self.allocators.len() || zones != self.zones as usize {
            return Err(format!(
                "storage elements of {groups} groups, {zones} zones"
            ));
        }
        for (of, saved) in self.allocators.iter_mut().zip(&saved.allocators) {
            let restored = Allocator::restore(of.luns(), of.elements_per_lun(), saved)?;
            *of = match of.victim() {
                Some(victim) => restored.erased_first(victim),
                None => restored,
            };
        }
        for (zone, table) in (0..).zip(&saved.zones).filter(|(_, of)| !of.is_empty()) {
            self.restore_zone(zone, table, layout)?;
        }
        for element in 0..self.stale_left.len() {
            let (group, id) = self.name(element);
            let of = &self.allocators[group];
            if id.0 >= of.luns() * of.elements_per_lun() {
                continue;
            }
            if of.availability(id).is_available() != (self.owner[element] == NONE) {
                return Err(format!("state of storage element {}", id.0));
            }
            let stale = self.blocks(element).filter(|block| blocks.is_stale(*block));
            let stale_left = u32::try_from(stale.count()).expect("blocks of an element are few");
            let wear = self.wear_of(element, blocks);
            // Of one that has been erased in part, the rest is to follow.
            let knows = of.wear(id) == wear || (stale_left > 0 && of.wear(id) < wear);
            if !knows || of.is_stale(id) != (stale_left > 0) {
                return Err(format!("wear of storage element {}", id.0));
            }
            self.stale_left[element] = stale_left;
        }
        Ok(())
    }

    fn restore_zone(&mut self, zone: u32, table: &[u32], layout: &Layout) -> Result<(), String> {
        let impossible = || format!("storage elements of zone {zone}");
        let group = (zone % self.shape.groups) as usize;
        if table.len() != self.shape.places as usize {
            return Err(impossible());
        }
        self.physical[zone as usize] = Physical {
            zone,
            rotation: layout.rotation(zone),
            ..Physical::UNUSED
        };
        // First those that were written, then those that were not, then none.
        let mut before = Availability::Valid;
        for (place, &id) in (0..).zip(table) {
            let of = &self.allocators[group];
            if id == NONE {
                before = Availability::Free;
                continue;
            }
            if id >= of.luns() * of.elements_per_lun() {
                return Err(impossible());
            }
            // Where all LUNs have to give as many, others would lack some later.
            let line_elements = self.shape.line_elements;
            let lun = (place % line_elements + layout.rotation(zone)) % line_elements;
            let is_elsewhere = id / of.elements_per_lun() != lun;
            if is_elsewhere && self.shape.depth_weight.is_none() {
                return Err(impossible());
            }
            let element = group * self.group_elements as usize + id as usize;
            let state = of.availability(ElementId(id));
            let is_next = match state {
                Availability::Valid => before == Availability::Valid,
                Availability::Allocated => before != Availability::Free,
                Availability::Free | Availability::Invalid => false,
            };
            if !is_next || self.owner[element] != NONE {
                return Err(impossible());
            }
            before = state;
            self.owner[element] = zone;
            self.put(zone, place, id);
            if state == Availability::Valid {
                self.physical[zone as usize].written = place + 1;
            }
        }
        Ok(())
    }

    /// The places of the first element of a physical zone behind its first `kept_pages`
    /// pages that has to be erased, and behind the last.
    pub(crate) fn stale_places(&self, physical: u32, kept_pages: u32) -> (u32, u32) {
        let is_stale = |place: &u32| {
            let element = self.at(physical, *place);
            element.is_some_and(|element| self.stale_left[element] > 0)
        };
        let (kept, end) = (self.places_touched(kept_pages), self.stale_end(physical));
        ((kept..end).find(is_stale).unwrap_or(end), end)
    }

    /// Whether those elements of a physical zone that are left of its first
    /// `touched` were written, and no others.
    pub(crate) fn is_written(&self, physical: u32, touched: u32) -> bool {
        let lines = touched.div_ceil(self.shape.line_elements) * self.shape.line_elements;
        let left = (0..lines).take_while(|&place| self.at(physical, place).is_some());
        let written = self.physical[physical as usize].written;
        let left = u32::try_from(left.count()).expect("a zone has fewer than 2^32 elements");
        written <= lines && written >= touched.min(left)
    }

    /// Physical zones of a fresh drive.
    pub(crate) const fn fresh_physical_zones(&self) -> u32 {
        self.zones.next_multiple_of(self.shape.groups)
    }
}
