//! The flash in snapshots and checkpoints: mapping, and blocks as they are.

use serde::{Deserialize, Serialize};

use super::placement::SavedPlacements;
use super::{Flash, PhysicalZone};
use crate::config::DriveConfig;
use crate::mapping::{Mapping, SavedMapping};

/// Highest total in a snapshot: what a drive adds to it stays in range.
pub(crate) const TOTAL_MAX: u64 = 1 << 62;

/// What [`Flash`] knows besides timing, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedFlash {
    pub(super) mapping: SavedMapping,
    /// State and wear of each block.
    pub(super) blocks: Vec<u32>,
    /// Programmed pages of each physical zone. Zones that consist of elements have the
    /// physical zone of their number when they are restored.
    pub(super) programmed_pages: Vec<u32>,
    pub(super) erased_total: u64,
    pub(super) programmed_bytes: u64,
    /// Where pages are, if the write buffer has placed any.
    pub(super) placements: Option<SavedPlacements>,
}

impl SavedFlash {
    /// The same but for places of pages, which can be many.
    pub(crate) fn without_placements(self) -> Self {
        Self {
            placements: None,
            ..self
        }
    }
}

impl Flash {
    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedFlash {
        let (blocks, erased_total) = self.blocks.save();
        let pages = |physical: u32| self.zones[physical as usize].programmed_pages;
        let order = self.mapping.saved_order().into_iter();
        let programmed_pages = order.map(|physical| physical.map_or(0, pages)).collect();
        SavedFlash {
            mapping: self.mapping.save(),
            blocks,
            programmed_pages,
            erased_total,
            programmed_bytes: self.programmed_bytes,
            placements: self.save_placements(),
        }
    }

    /// Puts into fresh flash what a snapshot kept, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it. The flash is of no use then.
    pub(crate) fn restore(
        &mut self,
        config: &DriveConfig,
        saved: &SavedFlash,
    ) -> Result<(), String> {
        self.blocks.restore(&saved.blocks, saved.erased_total)?;
        let on = (&self.layout, &self.blocks);
        self.mapping = Mapping::restore(config, on, &saved.mapping)?;
        if self.zones.len() != saved.programmed_pages.len() {
            return Err(format!("{} physical zones", saved.programmed_pages.len()));
        }
        let pages = self.layout.zone_pages();
        for (physical, &programmed_pages) in (0..).zip(&saved.programmed_pages) {
            let touched = self.mapping.places_touched(programmed_pages, &self.layout);
            if programmed_pages > pages || !self.mapping.is_written(physical, touched) {
                return Err(format!("state of physical zone {physical}"));
            }
            self.zones[physical as usize] = PhysicalZone {
                programmed_pages,
                ..PhysicalZone::default()
            };
            if let Some(placements) = &mut self.placements {
                // Unless the snapshot says otherwise.
                placements.settle(physical, programmed_pages);
            }
        }
        if saved.programmed_bytes > TOTAL_MAX {
            return Err("bytes programmed".to_owned());
        }
        self.programmed_bytes = saved.programmed_bytes;
        self.find_stale(|_| 0);
        match &saved.placements {
            None => Ok(()),
            Some(_) if config.write_buffer.is_none() => {
                Err("places of pages of a drive without a write buffer".to_owned())
            }
            Some(placements) => self.restore_placements(placements),
        }
    }

    /// Whether no page of the first `pages` pages of a physical zone is on a block that has
    /// to be erased.
    pub(crate) fn holds(&self, physical: u32, pages: u32) -> bool {
        (0..pages).all(|page| {
            let block = self.block_of_page(physical, page);
            block.is_some_and(|block| !self.blocks.is_stale(block))
        })
    }
}
