//! What NAND flash asks for, block by block, whatever the drive believes: nothing
//! is programmed twice without an erasure in between, and an erasure that a loss
//! of power interrupted is repeated before anything is programmed.

use std::collections::BTreeMap;

use zonelab_device::ZoneId;
use zonelab_ssd::config::{DriveConfig, MappingConfig};
use zonelab_ssd::flash::BlockEvent;

use super::Rig;

/// A logical block's place in a flash block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Erased,
    Programmed,
    /// A program was under way when power was lost. The drive may count it as
    /// programmed, or program it again: that torn pages have to be written
    /// elsewhere is not modelled.
    Torn,
}

#[derive(Clone, Copy, Debug)]
enum Under {
    Program { block: usize, first: u32, end: u32 },
    Erase { block: usize },
}

#[derive(Clone, Debug)]
struct Block {
    places: Vec<Place>,
    /// An erasure was interrupted: it is neither erased nor programmed.
    is_half_erased: bool,
    /// Erasures of it when there was nothing to erase.
    in_vain: u32,
}

/// Groups that are under way with the same token.
#[derive(Clone, Debug, Default)]
struct Groups {
    number: u32,
    under: Vec<Under>,
}

/// All blocks of a drive.
pub(crate) struct Blocks {
    page_lbas: u32,
    blocks: Vec<Block>,
    groups: BTreeMap<u32, Groups>,
    /// Belongs to the next group.
    next: Vec<Under>,
}

impl Blocks {
    /// Those of a drive that has done nothing.
    pub(crate) fn watch(rig: &mut Rig) -> Self {
        rig.drive.watch_blocks();
        let config: &DriveConfig = rig.drive.config();
        let page_lbas = config.geometry.page_bytes / config.lba_bytes;
        let block = Block {
            places: vec![Place::Erased; (page_lbas * config.geometry.pages_per_block) as usize],
            is_half_erased: false,
            in_vain: 0,
        };
        Self {
            page_lbas,
            blocks: vec![block; rig.drive.flash().erase_counts().len()],
            groups: BTreeMap::new(),
            next: Vec::new(),
        }
    }

    /// Everything since the last look.
    pub(crate) fn look(&mut self, rig: &mut Rig) {
        let mut was_cut = false;
        for event in rig.drive.take_block_events() {
            was_cut |= event == BlockEvent::PowerLoss;
            self.take(event);
        }
        if was_cut {
            self.accept_holes(rig);
        }
    }

    /// What lies before data that was acknowledged is not erased again: the drive does not
    /// model what becomes of it. And where it had a write buffer, what was programmed behind
    /// data that was lost counts as torn. Call [`Self::look`] right after a loss of power.
    fn accept_holes(&mut self, rig: &Rig) {
        let (flash, mapping) = (rig.drive.flash(), rig.drive.mapping());
        let layout = flash.layout();
        for zone in (0..rig.drive.zones().count()).map(ZoneId) {
            let Some(physical) = mapping.physical(zone) else {
                continue;
            };
            let written = rig.drive.zones().written_lbas(zone);
            let pages = written.div_ceil(u64::from(self.page_lbas)) as u32;
            if let Some(elements) = flash.elements() {
                let group = physical % layout.groups();
                let touched = self.elements_touched(rig, pages);
                for element in elements.of_zone(physical).take(touched).flatten() {
                    for block in elements.blocks_of(group, element) {
                        self.blocks[block].is_half_erased = false;
                    }
                }
            } else {
                for block in 0..layout.blocks_touched(pages) {
                    self.blocks[layout.block_index(physical, block)].is_half_erased = false;
                }
            }
            if rig.drive.config().write_buffer.is_some() {
                for page in pages..layout.zone_pages() {
                    self.tear(rig, physical, page);
                }
            }
        }
    }

    /// What has been programmed on a page of a zone is of no use.
    fn tear(&mut self, rig: &Rig, physical: u32, page: u32) {
        let flash = rig.drive.flash();
        let pages_per_block = rig.drive.config().geometry.pages_per_block;
        let line = page / flash.layout().width();
        let first = (line % pages_per_block * self.page_lbas) as usize;
        let Some(block) = flash.block_of_page(physical, page) else {
            return;
        };
        for place in &mut self.blocks[block].places[first..][..self.page_lbas as usize] {
            if *place == Place::Programmed {
                *place = Place::Torn;
            }
        }
    }

    /// How many elements of a zone its first pages touch.
    fn elements_touched(&self, rig: &Rig, pages: u32) -> usize {
        let config = rig.drive.config();
        let width = rig.drive.flash().layout().width();
        let row_pages = width * config.geometry.pages_per_block;
        let (line_pages, beside) = match config.mapping {
            MappingConfig::Chunk { chunk_blocks, .. } => (row_pages * chunk_blocks, width),
            _ => (row_pages, 1),
        };
        (pages / line_pages * beside + (pages % line_pages).min(beside)) as usize
    }

    /// The most erasures that a block had while nothing had been programmed on it. A
    /// loss of power can cost two: it was erased already on its way to an erasure of
    /// more blocks, and a write to it had been accepted and was lost.
    pub(crate) fn in_vain(&self) -> u32 {
        let in_vain = self.blocks.iter().map(|block| block.in_vain);
        in_vain.max().unwrap_or(0)
    }

    fn take(&mut self, event: BlockEvent) {
        match event {
            BlockEvent::Program {
                block,
                page,
                first,
                end,
            } => {
                let start = page * self.page_lbas;
                self.program(block, start + first, start + end);
            }
            BlockEvent::Erase { block } => self.erase(block),
            BlockEvent::Submitted { token } => {
                let groups = self.groups.entry(token).or_default();
                groups.number += 1;
                groups.under.append(&mut self.next);
            }
            BlockEvent::AtOnce => self.next.clear(),
            BlockEvent::Done { token } => {
                let groups = self.groups.get_mut(&token).expect("it was submitted");
                groups.number -= 1;
                // Which of several it was is not known.
                if groups.number == 0 {
                    self.groups.remove(&token);
                }
            }
            BlockEvent::PowerLoss => {
                assert!(self.next.is_empty(), "no group, and not at once");
                for groups in std::mem::take(&mut self.groups).into_values() {
                    self.interrupt(&groups.under);
                }
            }
        }
    }

    fn program(&mut self, block: usize, first: u32, end: u32) {
        let of = &mut self.blocks[block];
        assert!(!of.is_half_erased, "block {block} is erased in part");
        for place in first..end {
            let place = &mut of.places[place as usize];
            assert_ne!(
                *place,
                Place::Programmed,
                "block {block} has data in {first}..{end}"
            );
            *place = Place::Programmed;
        }
        self.next.push(Under::Program { block, first, end });
    }

    fn erase(&mut self, block: usize) {
        let of = &mut self.blocks[block];
        let is_clean = of.places.iter().all(|place| *place == Place::Erased);
        if is_clean && !of.is_half_erased {
            of.in_vain += 1;
        }
        of.places.fill(Place::Erased);
        of.is_half_erased = false;
        self.next.push(Under::Erase { block });
    }

    /// Power was lost during these.
    fn interrupt(&mut self, under: &[Under]) {
        for of in under {
            match *of {
                Under::Program { block, first, end } => {
                    for place in &mut self.blocks[block].places[first as usize..end as usize] {
                        // It may have been erased behind that.
                        if *place == Place::Programmed {
                            *place = Place::Torn;
                        }
                    }
                }
                Under::Erase { block } => self.blocks[block].is_half_erased = true,
            }
        }
    }
}
