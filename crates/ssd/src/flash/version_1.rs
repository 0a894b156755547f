//! Mapping and flash as snapshots of version 1 and the checkpoints of that time hold them:
//! how far each physical zone was programmed, stale and erased, in place of the state of
//! each block.

use serde::Deserialize;

use super::blocks::saved_word;
use super::placement::SavedPlacements;
use super::{BlockState, SavedFlash};
use crate::config::DriveConfig;
use crate::layout::Layout;
use crate::mapping::SavedMapping;
use crate::mapping::elements::{Elements, SavedElements};

/// What was kept of mapping and flash. That of elements and of places followed elsewhere.
#[derive(Debug, Deserialize)]
pub(crate) struct Version1 {
    /// By zone; `u32::MAX`: none.
    physical: Vec<u32>,
    /// Lists by group.
    free: Vec<Vec<u32>>,
    invalid: Vec<Vec<u32>>,
    /// Programmed pages of each physical zone, the end of the blocks that had to be
    /// erased, and the end of those of them that had been. Of elements, programmed pages
    /// by zone.
    zones: Vec<(u32, u32, u32)>,
    erase_counts: Vec<u32>,
    programmed_bytes: u64,
    erased_total: u64,
}

impl Version1 {
    /// The same as it is kept now.
    ///
    /// # Errors
    /// What is impossible about it, as far as it is looked at here.
    pub(crate) fn into_saved(
        self,
        config: &DriveConfig,
        elements: Option<SavedElements>,
        placements: Option<SavedPlacements>,
    ) -> Result<SavedFlash, String> {
        let layout = Layout::new(config);
        let mut states = vec![BlockState::Erased; self.erase_counts.len()];
        match (&elements, Elements::new(config, &layout)) {
            (Some(saved), Some(of)) => {
                for block in of.stale_blocks_of(saved)? {
                    *state_of(&mut states, block)? = BlockState::Stale;
                }
            }
            (None, None) => self.mark_states(&layout, config, &mut states)?,
            _ => return Err("storage elements of a drive without, or none".to_owned()),
        }
        let words = self.erase_counts.iter().zip(states);
        Ok(SavedFlash {
            mapping: SavedMapping::new(self.physical, [self.free, self.invalid], elements),
            blocks: words
                .map(|(&wear, state)| saved_word(wear, state))
                .collect(),
            programmed_pages: self.zones.iter().map(|zone| zone.0).collect(),
            erased_total: self.erased_total,
            programmed_bytes: self.programmed_bytes,
            placements,
        })
    }

    /// Blocks up to the end of those that had to be erased were stale, but for those that
    /// had been; others were programmed as far as pages were.
    fn mark_states(
        &self,
        layout: &Layout,
        config: &DriveConfig,
        states: &mut [BlockState],
    ) -> Result<(), String> {
        let physical_zones = config.mapping.physical_zones(config.zones.count);
        if self.zones.len() != physical_zones as usize {
            return Err(format!("{} physical zones", self.zones.len()));
        }
        let blocks = layout.zone_blocks();
        for (physical, &(pages, stale_end, erased_end)) in (0..).zip(&self.zones) {
            let is_impossible =
                pages > layout.zone_pages() || stale_end > blocks || erased_end > stale_end;
            if is_impossible {
                return Err(format!("state of physical zone {physical}"));
            }
            for block in 0..stale_end.max(layout.blocks_touched(pages)) {
                let is_stale = (erased_end..stale_end).contains(&block);
                *state_of(states, layout.block_index(physical, block))? = match is_stale {
                    true => BlockState::Stale,
                    false if block < layout.blocks_touched(pages) => BlockState::Programmed,
                    false => BlockState::Erased,
                };
            }
        }
        Ok(())
    }
}

fn state_of(states: &mut [BlockState], block: usize) -> Result<&mut BlockState, String> {
    let count = states.len();
    states
        .get_mut(block)
        .ok_or_else(|| format!("{count} erase blocks"))
}
