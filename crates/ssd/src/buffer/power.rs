//! What of the buffer outlives a loss of power, or gets into a snapshot.

use zonelab_device::ZoneId;

use super::NONE;
use super::WriteBuffer;
use super::ZoneBlocks;
use super::blocks_of;
use crate::conventional::{Conventional, log_with};
use crate::draw::Draw;
use crate::drive::Core;
use crate::flash::BlockRange;
use crate::flash::Flash;
use crate::flash::Target;

impl Core {
    /// How far stored energy saves a zone: what was admitted, and what waited in
    /// the random write area to be.
    fn saved_end(&self, zone: ZoneId, blocks: &ZoneBlocks) -> u32 {
        let committed = if self.zones.came_through_zrwa(zone) {
            blocks_of(self.zones.host_lbas(zone))
        } else {
            0
        };
        blocks.admitted.max(committed)
    }

    fn programmed_prefix(
        &self,
        (buffer, blocks): (&WriteBuffer, &ZoneBlocks),
        unfinished: &[usize],
        draw: &mut Draw,
    ) -> u32 {
        let page_lbas = self.flash.layout().page_lbas();
        let mut slot = blocks.first_program;
        while slot != NONE {
            let program = &buffer.programs[slot];
            slot = program.next;
            if program.groups == 0 {
                continue;
            }
            let range = BlockRange {
                first: program.first,
                count: program.end - program.first,
            };
            let target = Target {
                physical: program.physical,
                range,
            };
            if !program.has_started || self.flash.waits_for_erasure(target, unfinished) {
                return program.first;
            }
            let first_page = program.first / page_lbas;
            let pages = (program.end - 1) / page_lbas - first_page + 1;
            // Fits: no more than there are pages.
            let programmed = draw.below(u64::from(pages) + 1) as u32;
            if programmed < pages {
                return ((first_page + programmed) * page_lbas).max(program.first);
            }
        }
        blocks.issued
    }
}

impl WriteBuffer {
    /// Blocks of a zone from its start that are on the flash.
    pub(crate) fn durable_lbas(&self, zone: ZoneId) -> u32 {
        let blocks = &self.zones[zone.0 as usize];
        let mut slot = blocks.first_program;
        while slot != NONE {
            let program = &self.programs[slot];
            if program.groups > 0 {
                return program.first;
            }
            slot = program.next;
        }
        blocks.issued
    }

    /// How many blocks of each zone a loss of power leaves, for those that lose
    /// any: with protection all that were admitted, else those that are on the
    /// flash, and what is contiguous behind them of programs under way.
    pub(crate) fn remains(
        &self,
        (core, logs): (&Core, &[Conventional]),
        unfinished: &[usize],
        draw: &mut Draw,
    ) -> Vec<(ZoneId, u64)> {
        let mut remains = Vec::new();
        for (zone, blocks) in (0..).map(ZoneId).zip(&self.zones) {
            let durable = if self.is_protected && log_with(logs, zone).is_some() {
                // What has a place in a log is saved.
                continue;
            } else if self.is_protected {
                core.saved_end(zone, blocks)
            } else {
                core.programmed_prefix((self, blocks), unfinished, draw)
            };
            // What a random write area holds is behind the write pointer.
            let written = core.zones.zrwa_end_lbas(zone);
            let written = written.filter(|_| !self.is_protected);
            if u64::from(durable) < written.unwrap_or(core.zones.host_lbas(zone)) {
                remains.push((zone, u64::from(durable)));
            }
        }
        remains
    }

    /// Puts into `flash` what is in the buffer and on no way to the flash, as
    /// an orderly shutdown, or one on stored energy, would.
    pub(crate) fn settle_into(&self, (core, logs): (&Core, &[Conventional]), flash: &mut Flash) {
        for (zone, blocks) in (0..).map(ZoneId).zip(&self.zones) {
            let started = self.first_not_started(blocks);
            let end = match log_with(logs, zone) {
                // What has a place in a log is saved, admitted or not.
                Some(_) => core.zones.host_lbas(zone) as u32,
                None => core.saved_end(zone, blocks),
            };
            if started >= end {
                continue;
            }
            let physical = core.flash.mapping().physical(zone);
            let physical = physical.expect("a zone with blocks has flash");
            let range = BlockRange {
                first: started,
                count: end - started,
            };
            flash.settle(physical, range);
        }
    }
}
