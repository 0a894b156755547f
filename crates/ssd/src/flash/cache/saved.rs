//! The SLC cache in snapshots.

use serde::{Deserialize, Serialize};

use super::super::Flash;
use super::{Cache, Extent, FOLDED};
use crate::flash::BlockState;

/// Highest number of a place in a snapshot: what a drive adds to it stays in range.
const PLACE_MAX: u64 = 1 << 62;

/// What an SLC cache holds, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedCache {
    head: u64,
    tail: u64,
    zones: Vec<SavedZone>,
    /// Bytes that folds have programmed.
    pub(crate) fold_program_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedZone {
    physical: u32,
    end: u32,
    /// First blocks and places.
    extents: Vec<(u32, u64)>,
    rest: Option<(u32, u32)>,
}

impl Cache {
    fn save(&self, fold_program_bytes: u64) -> SavedCache {
        let zones = (0..).zip(&self.zones);
        let zones = zones.filter(|(_, of)| !of.extents.is_empty() || of.rest.is_some());
        let zones = zones.map(|(physical, of)| SavedZone {
            physical,
            end: of.end,
            extents: of.extents.iter().map(|of| (of.first, of.place)).collect(),
            rest: of.rest,
        });
        SavedCache {
            head: self.head,
            tail: self.tail,
            zones: zones.collect(),
            fold_program_bytes,
        }
    }

    /// Takes a zone of a snapshot; `is_mapped`: a zone stands on it.
    fn restore_zone(
        &mut self,
        saved: &SavedZone,
        (is_mapped, capacity): (bool, u32),
    ) -> Result<(), String> {
        let physical = saved.physical;
        let wrong = |what: &str| Err(format!("{what} of physical zone {physical} in the cache"));
        if !is_mapped || saved.end > capacity {
            return wrong("blocks");
        }
        let ends = saved.extents.iter().skip(1).map(|(first, _)| *first);
        let ends = ends.chain([saved.end]);
        for (&(first, place), end) in saved.extents.iter().zip(ends) {
            let is_folded = place == FOLDED;
            let most = match is_folded {
                true => u32::MAX,
                false => self.place_lbas,
            };
            // What one program takes of a zone is folded at once.
            let is_in_a_unit = first / self.fold_lbas == end.saturating_sub(1) / self.fold_lbas;
            if first >= end || end - first > most || !(is_folded || is_in_a_unit) {
                return wrong("extents");
            }
            let zone = &mut self.zones[physical as usize];
            if zone.extents.is_empty() && is_folded {
                return wrong("extents");
            }
            zone.extents.push_back(Extent { first, place });
            if is_folded {
                continue;
            }
            if !(self.tail..self.head).contains(&place) {
                return wrong("places");
            }
            let slot = self.slot_of(place);
            if self.owners[slot].0 != u32::MAX {
                return wrong("places");
            }
            self.owners[slot] = (physical, first);
            let row = self.row_of(place);
            self.used[row] += 1;
        }
        let zone = &mut self.zones[physical as usize];
        (zone.end, zone.programmed) = (saved.end, saved.end);
        zone.begun = zone.extents.front().map_or(saved.end, |of| of.first);
        zone.rest = saved.rest;
        Ok(())
    }
}

impl Flash {
    /// What is in the SLC cache, for a snapshot; `None`: there is none.
    pub(crate) fn save_cache(&self, fold_program_bytes: u64) -> Option<SavedCache> {
        self.cache.as_ref().map(|of| of.save(fold_program_bytes))
    }

    /// Puts into flash that was restored what a snapshot kept of its SLC cache, of which
    /// nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it. The flash is of no use then.
    pub(crate) fn restore_cache(&mut self, saved: &SavedCache) -> Result<(), String> {
        let (capacity, page_lbas) = (self.capacity_lbas, self.layout.page_lbas());
        let most = self.layout.zone_pages() * page_lbas;
        let mut mapped = vec![false; self.zones.len()];
        for (_, physical) in self.mapping.mapped() {
            mapped[physical as usize] = true;
        }
        let Some(cache) = &mut self.cache else {
            return Err("what a cache holds, and there is none".to_owned());
        };
        let is_possible = saved.tail <= saved.head
            && saved.head <= PLACE_MAX
            && saved.tail.is_multiple_of(cache.row_places)
            && saved.head - saved.tail <= cache.places();
        if !is_possible {
            return Err(format!(
                "a cache in use from {} to {}",
                saved.tail, saved.head
            ));
        }
        (cache.head, cache.tail) = (saved.head, saved.tail);
        let mut least = 0;
        for zone in &saved.zones {
            let is_mapped = mapped.get(zone.physical as usize).copied();
            let (Some(is_mapped), true) = (is_mapped, zone.physical >= least) else {
                return Err(format!("physical zone {} in the cache", zone.physical));
            };
            least = zone.physical + 1;
            let is_rest = |(first, end): (u32, u32)| {
                first < end && end <= most && first.is_multiple_of(page_lbas)
            };
            if !zone.rest.is_none_or(is_rest) {
                return Err(format!("the rest of physical zone {}", zone.physical));
            }
            cache.restore_zone(zone, (is_mapped, capacity))?;
        }
        // A loss of power may have interrupted the erasure of the oldest row, which is repeated.
        let can_erase = cache.can_erase();
        let oldest = cache.block_in_plane(cache.tail) as usize;
        let per_plane = cache.blocks_per_plane as usize;
        let blocks = 0..self.blocks.len();
        if let Some(block) = blocks
            .filter(|block| cache.has_block(*block))
            .filter(|block| !(can_erase && block % per_plane == oldest))
            .find(|block| self.blocks.state(*block) == BlockState::Stale)
        {
            return Err(format!("block {block} of the cache, which is to be erased"));
        }
        Ok(())
    }

    /// Whether what a physical zone has in the cache ends with its first `lbas` blocks, and
    /// how many of those are on blocks of its own from its start.
    pub(crate) fn cached_of(&self, physical: u32, lbas: u64) -> (bool, u64) {
        let Some(cache) = &self.cache else {
            return (true, lbas);
        };
        let zone = &cache.zones[physical as usize];
        let is_all = zone.extents.is_empty() || u64::from(zone.end) == lbas;
        (is_all, lbas.min(cache.folded(physical).into()))
    }
}
