//! What NAND flash asks for, block by block, whatever the drive believes of itself.
//!
//! The oracle reads the block log of a drive ([`BlockEvent`]) and what the drive says of its
//! zones. With each event:
//!
//! * nothing is programmed twice without an erasure in between;
//! * pages of a block are programmed in order;
//! * an erasure that a loss of power interrupted is repeated before anything is programmed;
//! * a group of flash operations ends once, and only after it was submitted;
//! * the drive counts each erasure.
//!
//! With each look, which should come after each command:
//!
//! * only blocks are erased that a zone owned which has been reset, or gave up at its finish,
//!   and once for each time;
//! * no block is erased while it holds data of a zone that still counts.
//!
//! Whenever the drive is at rest:
//!
//! * every group that was submitted has ended;
//! * what zones hold is programmed, but for what may be in the write buffer;
//! * totals of erasures and programs are those of the log.

use std::collections::BTreeMap;
use std::ops::Range;

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::flash::BlockEvent;
use zonelab_ssd::{Drive, DriveModel};

use crate::owners::{Owners, Seen, blocks_touched};

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
    Program {
        block: usize,
        first: u32,
        end: u32,
    },
    /// The erasure by which the wear of the block became so much.
    Erase {
        block: usize,
        wear: u32,
    },
}

#[derive(Clone, Debug)]
struct Block {
    /// By logical block; none if all are erased.
    places: Vec<Place>,
    /// Behind the last place that is programmed.
    end: usize,
    /// An erasure was interrupted: it is neither erased nor programmed.
    is_half_erased: bool,
    /// Erasures, with those before the log.
    wear: u32,
    /// Erasures of it when there was nothing to erase.
    in_vain: u32,
}

impl Block {
    fn find_end(&mut self) {
        let last = |place: &Place| *place == Place::Programmed;
        self.end = self
            .places
            .iter()
            .rposition(last)
            .map_or(0, |last| last + 1);
    }

    /// What is programmed in some places is of no use.
    fn tear(&mut self, places: Range<usize>) {
        let len = self.places.len();
        for place in &mut self.places[places.start.min(len)..places.end.min(len)] {
            // It may have been erased behind that.
            if *place == Place::Programmed {
                *place = Place::Torn;
            }
        }
        self.find_end();
    }

    fn is_clean(&self) -> bool {
        !self.is_half_erased && self.places.iter().all(|place| *place == Place::Erased)
    }

    /// All places are erased.
    fn clear(&mut self) {
        self.places.clear();
        self.end = 0;
        self.is_half_erased = false;
    }
}

/// Groups that are under way with the same token.
#[derive(Clone, Debug, Default)]
struct Groups {
    number: u32,
    under: Vec<Under>,
}

/// All blocks of a drive.
#[derive(Clone, Debug)]
pub struct Blocks {
    page_lbas: u32,
    pages_per_block: u32,
    block_lbas: usize,
    blocks: Vec<Block>,
    groups: BTreeMap<u32, Groups>,
    /// Belongs to the next group.
    next: Vec<Under>,
    /// Bytes of pages of the blocks of zones, and of an SLC cache.
    page_bytes: (u64, u64),
    /// Bytes of pages that were programmed by groups.
    programmed_bytes: u64,
    /// Bytes that the drive counts as programmed besides: before the log, and at once
    /// when power was lost.
    other_bytes: Option<u64>,
    owners: Owners,
    /// Something happened since the drive was last at rest.
    has_news: bool,
}

impl Blocks {
    /// Starts the log of a drive that has not programmed anything.
    ///
    /// # Panics
    /// It has.
    pub fn watch(drive: &mut Drive) -> Self {
        drive.watch_blocks();
        let config = drive.config();
        let page_lbas = config.geometry.page_bytes / config.lba_bytes;
        let block = Block {
            places: Vec::new(),
            end: 0,
            is_half_erased: false,
            wear: 0,
            in_vain: 0,
        };
        let counts = drive.flash().erase_counts();
        let blocks = Self {
            page_lbas,
            pages_per_block: config.geometry.pages_per_block,
            block_lbas: (page_lbas * config.geometry.pages_per_block) as usize,
            blocks: vec![block; counts.len()],
            groups: BTreeMap::new(),
            next: Vec::new(),
            page_bytes: (
                config.geometry.page_bytes.into(),
                config.slc_cache.map_or(0, |cache| cache.page_bytes.into()),
            ),
            programmed_bytes: 0,
            other_bytes: Some(0),
            owners: Owners::new(drive),
            has_news: true,
        };
        assert!(counts.iter().all(|count| *count == 0), "it is used");
        blocks
    }

    /// Goes on with a drive that was restored from what was saved of the one before. Both
    /// were at rest; an orderly shutdown may have programmed what was buffered, and erased
    /// what had been erased in part.
    pub fn restored(&mut self, drive: &mut Drive) {
        drive.watch_blocks();
        self.groups.clear();
        self.next.clear();
        self.other_bytes = None;
        let counts = drive.flash().erase_counts();
        for (block, count) in self.blocks.iter_mut().zip(counts) {
            if block.wear != count {
                assert!(block.wear < count, "erasures are forgotten");
                block.wear = count;
                block.clear();
            }
        }
        for zone in (0..drive.zones().count()).map(ZoneId) {
            let lbas = drive.zones().host_lbas(zone);
            let Some(physical) = drive.flash().mapping().physical(zone) else {
                continue;
            };
            for lba in 0..u32::try_from(lbas).expect("zones are small") {
                let Some((block, place)) = self.place_of(drive, physical, lba) else {
                    continue;
                };
                let block = &mut self.blocks[block];
                block.places.resize(self.block_lbas, Place::Erased);
                if block.places[place] == Place::Erased {
                    block.places[place] = Place::Programmed;
                    block.end = block.end.max(place + 1);
                }
            }
        }
        self.owners = Owners::new(drive);
        self.owners.forgive(drive);
        self.has_news = true;
    }

    /// Everything since the last look.
    ///
    /// # Panics
    /// Something is wrong.
    pub fn look(&mut self, drive: &mut Drive) {
        let mut seen = Seen::default();
        for event in drive.take_block_events() {
            match event {
                BlockEvent::Erase { block } => seen.erased.push(block),
                BlockEvent::PowerLoss => seen.was_cut = true,
                _ => {}
            }
            self.has_news = true;
            self.take(event);
            if event == BlockEvent::PowerLoss {
                self.accept_holes(drive);
            }
        }
        for block in &seen.erased {
            let count = drive.flash().blocks().wear(*block);
            assert_eq!(count, self.blocks[*block].wear, "erasures of block {block}");
        }
        self.has_news |= self.owners.look(drive, &seen);
        let is_busy = drive.in_flight() + drive.background_tasks() > 0;
        if self.has_news && !is_busy && drive.next_event().is_none() {
            self.check_at_rest(drive);
            self.has_news = false;
        }
    }

    /// Zones were declared full while something was under way, and nobody has looked since:
    /// what was on its way to them gets there still, behind what was declared.
    pub fn declared_full(&mut self, drive: &mut Drive, zones: Range<u32>) {
        for is_behind in [false, true] {
            for zone in zones.clone().map(ZoneId) {
                for block in self.owners.overtaken(drive, zone) {
                    let block = &mut self.blocks[block];
                    block.is_half_erased = false;
                    block.tear(0..self.block_lbas);
                }
            }
            if !is_behind {
                self.look(drive);
            }
        }
    }

    /// The most erasures that a block had while nothing had been programmed on it. A
    /// loss of power can cost two: it was erased already on its way to an erasure of
    /// more blocks, and a write to it had been accepted and was lost.
    #[must_use]
    pub fn in_vain(&self) -> u32 {
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
                let bytes = self.next.iter().map(|of| match of {
                    Under::Program { block, .. } if self.owners.is_of_cache(*block) => {
                        self.page_bytes.1
                    }
                    Under::Program { .. } => self.page_bytes.0,
                    Under::Erase { .. } => 0,
                });
                self.programmed_bytes += bytes.sum::<u64>();
                let groups = self.groups.entry(token).or_default();
                groups.number += 1;
                groups.under.append(&mut self.next);
            }
            BlockEvent::AtOnce => self.next.clear(),
            BlockEvent::Done { token } => {
                let groups = self.groups.get_mut(&token);
                let groups = groups.unwrap_or_else(|| panic!("group {token} ends once more"));
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
                self.other_bytes = None;
            }
        }
    }

    fn program(&mut self, block: usize, first: u32, end: u32) {
        let of = &mut self.blocks[block];
        assert!(!of.is_half_erased, "block {block} is erased in part");
        let places = first as usize..end as usize;
        of.places.resize(self.block_lbas, Place::Erased);
        for place in &mut of.places[places.clone()] {
            assert_ne!(
                *place,
                Place::Programmed,
                "block {block} has data in {first}..{end}"
            );
            *place = Place::Programmed;
        }
        assert!(
            of.end <= places.start,
            "block {block} is programmed up to {}, and then {first}..{end}",
            of.end
        );
        of.end = places.end;
        self.next.push(Under::Program { block, first, end });
    }

    fn erase(&mut self, block: usize) {
        let of = &mut self.blocks[block];
        of.in_vain += u32::from(of.is_clean());
        of.wear += 1;
        of.clear();
        let wear = of.wear;
        self.next.push(Under::Erase { block, wear });
    }

    /// Power was lost during these.
    fn interrupt(&mut self, under: &[Under]) {
        for of in under {
            match *of {
                Under::Program { block, first, end } => {
                    self.blocks[block].tear(first as usize..end as usize);
                }
                // A unit does the erasures of a block in their order, though groups end in
                // any: if another followed, that one says whether the block is erased.
                Under::Erase { block, wear } => {
                    let of = &mut self.blocks[block];
                    of.is_half_erased |= of.wear == wear;
                }
            }
        }
    }

    /// What lies before data that was acknowledged is not erased again: the drive does not
    /// model what becomes of it. And where it had a write buffer, what was programmed behind
    /// data that was lost counts as torn.
    fn accept_holes(&mut self, drive: &Drive) {
        let config = drive.config();
        let zone_pages = drive.flash().layout().zone_pages();
        for zone in (0..drive.zones().count()).map(ZoneId) {
            let Some(physical) = drive.flash().mapping().physical(zone) else {
                continue;
            };
            let written = drive.zones().written_lbas(zone);
            let pages = pages_of(written, self.page_lbas);
            for block in blocks_touched(drive, physical, pages) {
                self.blocks[block].is_half_erased = false;
            }
            if config.write_buffer.is_some() {
                for page in pages..zone_pages {
                    let first = self.place_of(drive, physical, page * self.page_lbas);
                    if let Some((block, first)) = first {
                        self.blocks[block].tear(first..first + self.page_lbas as usize);
                    }
                }
            }
        }
        self.owners.forgive(drive);
    }

    /// The block and the place in it of a logical block of a physical zone, in the SLC cache if
    /// the drive says so; `None`: a finish gave it back.
    fn place_of(&self, drive: &Drive, physical: u32, lba: u32) -> Option<(usize, usize)> {
        if let Some((block, place)) = drive.flash().cached_block(physical, lba) {
            return Some((block, place as usize));
        }
        let page = lba / self.page_lbas;
        let line = page / drive.flash().layout().width();
        let place = line % self.pages_per_block * self.page_lbas + lba % self.page_lbas;
        let block = drive.flash().block_of_page(physical, page)?;
        Some((block, place as usize))
    }

    fn check_at_rest(&mut self, drive: &Drive) {
        assert!(self.next.is_empty(), "operations in no group");
        assert!(
            self.groups.is_empty(),
            "groups never end: {:?}",
            self.groups
        );
        let mut erased = 0;
        for (index, (block, count)) in
            (0..).zip(self.blocks.iter().zip(drive.flash().erase_counts()))
        {
            assert_eq!(block.wear, count, "erasures of block {index}");
            erased += u64::from(count);
        }
        let totals = drive.totals();
        assert_eq!(totals.erased_blocks, erased, "blocks erased");
        if let Some(other) = self.other_bytes {
            let bytes = totals.programmed_bytes();
            assert_eq!(bytes, self.programmed_bytes + other, "bytes programmed");
        }
        for zone in self.owners.zones_to_check(drive) {
            let held = self.check_data(drive, zone);
            self.owners.holds(zone, held);
        }
    }

    /// What a zone holds is programmed. Returns the blocks that it is in.
    fn check_data(&self, drive: &Drive, zone: ZoneId) -> Vec<usize> {
        let lbas = drive.zones().host_lbas(zone);
        let is_full = drive.zones().state(zone) == ZoneState::FULL;
        // A buffer keeps what is no whole unit.
        let lbas = if drive.config().write_buffer.is_none() || is_full {
            lbas
        } else {
            let unit = u64::from(self.page_lbas * drive.config().geometry.planes);
            lbas / unit * unit
        };
        let Some(physical) = drive.flash().mapping().physical(zone) else {
            assert_eq!(
                lbas, 0,
                "{zone:?} has no flash, and {lbas} blocks of the host"
            );
            return Vec::new();
        };
        let mut held = Vec::new();
        let first = u32::try_from(self.owners.excused(zone)).expect("zones are small");
        for lba in first..u32::try_from(lbas).expect("zones are small") {
            let place = self.place_of(drive, physical, lba);
            let (block, place) =
                place.unwrap_or_else(|| panic!("block {lba} of {zone:?} has no flash"));
            let what = self.blocks[block].places.get(place);
            assert!(
                what.is_some_and(|what| *what != Place::Erased),
                "block {lba} of {zone:?} is not in block {block}, place {place}"
            );
            held.push(block);
        }
        held.sort_unstable();
        held.dedup();
        held
    }
}

fn pages_of(lbas: u64, page_lbas: u32) -> u32 {
    u32::try_from(lbas.div_ceil(u64::from(page_lbas))).expect("zones are small")
}

#[cfg(test)]
mod tests;
