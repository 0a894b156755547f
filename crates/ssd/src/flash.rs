//! Physical zones: what is programmed on them, what must be erased, and the
//! flash operations that host and background work turn into.

mod assembled;
mod blocks;
mod placement;
mod under_way;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use zonelab_device::{Nanos, ZoneId};

use crate::account::Cause;
use crate::config::{
    BufferRelease, DriveConfig, EraseExtent, EraseWhen, MediaConfig, PlaneMode, ReadParts,
};
use crate::draw::Draw;
use crate::event::EventQueue;
use crate::layout::Layout;
use crate::mapping::elements::{Elements, SavedElements, Tail};
use crate::media::{FlashKind, FlashOp, Media};

pub use blocks::BlockEvent;
use placement::Placements;
pub(crate) use placement::SavedPlacements;
use under_way::ErasuresUnderWay;

/// State of a physical zone.
///
/// Blocks count in the order of [`Layout::blocks_touched`], so that what was
/// programmed and what was erased are prefixes and need no bit per block.
///
/// Where zones are assembled from elements, it is elements that are counted here
/// as stale or erased, by their places. Not all of those before `stale_blocks`
/// have to be erased then: [`Elements`] knows which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PhysicalZone {
    /// Pages programmed since the zone was last reset.
    programmed_pages: u32,
    /// Blocks before this one hold old data, unless ...
    stale_blocks: u32,
    /// ... they come before this one: those have been erased since the reset.
    erased_blocks: u32,
    /// Erasures of the background that are not over, ...
    erasures: u32,
    /// ... and the end of the blocks that they have. A zone that was written and
    /// reset meanwhile no longer counts them as stale.
    erasing_end: u32,
}

/// The flash of a drive: layout, timing, and state of the physical zones.
#[derive(Clone, Debug)]
pub struct Flash {
    layout: Layout,
    /// What zones consist of, if they are assembled from elements.
    elements: Option<Box<Elements>>,
    /// Where pages are, if the write buffer decides that.
    placements: Option<Box<Placements>>,
    media: Media,
    timing: MediaConfig,
    erase_when: EraseWhen,
    erase_extent: EraseExtent,
    zones: Vec<PhysicalZone>,
    erase_counts: Vec<u32>,
    page_bytes: u32,
    pages_per_block: u32,
    programmed_bytes: u64,
    erased_total: u64,
    /// Arrivals of pages at their dies are reported.
    reports_loads: bool,
    /// Deviations of program times. Part of the drive: every drive of a
    /// configuration has the same.
    variation: Draw,
    /// Scratch: operations of the group that is being put together.
    ops: Vec<FlashOp>,
    /// Erasures that are not over, if zones are assembled from elements: of other zones
    /// they are known by their ends.
    under_way: Option<Box<ErasuresUnderWay>>,
    /// What happened to blocks, if that is kept.
    watched: Option<Vec<BlockEvent>>,
}

/// Highest erase count of a block in a snapshot: no flash comes near, and what
/// a drive adds to it stays in range.
const ERASE_COUNT_MAX: u32 = 1 << 30;
/// Highest total in a snapshot, for the same reason.
pub(crate) const TOTAL_MAX: u64 = 1 << 62;

/// What [`Flash`] knows besides timing, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedFlash {
    /// Programmed pages, stale blocks, erased blocks of each physical zone.
    zones: Vec<(u32, u32, u32)>,
    erase_counts: Vec<u32>,
    programmed_bytes: u64,
    erased_total: u64,
}

/// A range of logical blocks within one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First block, counted from the start of the zone.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

/// Pages that are going to be programmed, and blocks to be erased before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The physical zone.
    pub physical: u32,
    /// The logical blocks to be programmed.
    pub range: BlockRange,
    /// Blocks from this one ...
    erase_first: u32,
    /// ... up to this one are erased first.
    erase_end: u32,
}

impl Claim {
    /// Blocks have to be erased before it is programmed.
    #[must_use]
    pub const fn erases(&self) -> bool {
        self.erase_first < self.erase_end
    }

    /// The end of the blocks that are erased first; 0: there are none.
    #[must_use]
    pub(crate) const fn erase_end(&self) -> u32 {
        if self.erases() { self.erase_end } else { 0 }
    }

    /// Where blocks will go that are not programmed yet. Nothing is claimed.
    #[must_use]
    pub(crate) const fn later(physical: u32, range: BlockRange) -> Self {
        Self {
            physical,
            range,
            erase_first: u32::MAX,
            erase_end: 0,
        }
    }

    /// Nothing is claimed yet.
    #[must_use]
    #[inline]
    pub(crate) const fn is_later(&self) -> bool {
        self.erase_first == u32::MAX
    }

    /// Nothing.
    pub const NONE: Self = Self {
        physical: 0,
        range: BlockRange { first: 0, count: 0 },
        erase_first: 0,
        erase_end: 0,
    };
}

impl Flash {
    /// The flash of a fresh drive with `physical_zones` physical zones.
    #[must_use]
    pub fn new(config: &DriveConfig, physical_zones: u32) -> Self {
        let layout = Layout::new(config);
        let elements = Elements::new(config, &layout);
        let physical_zones = elements
            .as_ref()
            .map_or(physical_zones, Elements::physical_zones);
        let geometry = &config.geometry;
        let blocks = geometry.planes_total() as usize * geometry.blocks_per_plane as usize;
        let reports_loads = config
            .write_buffer
            .is_some_and(|buffer| buffer.release == BufferRelease::Transfer);
        let mut flash = Self {
            media: Media::new(layout.channel_of_unit(), geometry.channels, &config.media),
            placements: Placements::new(config, &layout, physical_zones).map(Box::new),
            layout,
            under_way: elements.is_some().then(Box::default),
            elements: elements.map(Box::new),
            timing: config.media,
            erase_when: config.reset.erase,
            erase_extent: config.reset.extent,
            zones: vec![PhysicalZone::default(); physical_zones as usize],
            erase_counts: vec![0; blocks],
            page_bytes: geometry.page_bytes,
            pages_per_block: geometry.pages_per_block,
            programmed_bytes: 0,
            erased_total: 0,
            reports_loads,
            variation: Draw::new(0),
            ops: Vec::new(),
            watched: None,
        };
        flash.set_up_media();
        flash
    }

    /// Tells fresh media what follows from more than its own configuration.
    fn set_up_media(&mut self) {
        if let Some(bytes) = self.timing.details.transfer_unit_bytes {
            let piece_ns =
                self.timing.transfer_ns.0 * u64::from(bytes) / u64::from(self.page_bytes);
            self.media.limit_pieces(duration_ns(Nanos(piece_ns)));
        }
        if self.reports_loads {
            self.media.report_loads();
        }
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The timing engine.
    #[must_use]
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// The timing engine, to hand events to it.
    pub fn media_mut(&mut self) -> &mut Media {
        &mut self.media
    }

    /// Erasures of each block of the drive, plane by plane.
    #[must_use]
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// Blocks erased, and bytes programmed, since the drive was made.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        (self.erased_total, self.programmed_bytes)
    }

    /// State of a physical zone for comparison in tests: programmed pages,
    /// stale blocks, and how many of those have been erased.
    #[must_use]
    pub fn zone_state(&self, physical: u32) -> (u32, u32, u32) {
        let zone = &self.zones[physical as usize];
        (zone.programmed_pages, zone.stale_blocks, zone.erased_blocks)
    }

    /// Declares the first `pages` pages of a physical zone programmed, without
    /// time passing. Blocks that a program would have erased before count as erased.
    pub fn precondition(&mut self, physical: u32, pages: u32) {
        let lbas = self.layout.page_lbas();
        let before = self.zones[physical as usize].programmed_pages.min(pages);
        self.declare(physical, pages);
        if before < pages {
            let range = BlockRange {
                first: before * lbas,
                count: (pages - before) * lbas,
            };
            self.note_programs(physical, range);
        }
        self.at_once();
    }

    fn declare(&mut self, physical: u32, pages: u32) {
        if self.elements.is_some() {
            return self.precondition_assembled(physical, pages);
        }
        if let Some(placements) = &mut self.placements {
            placements.settle(physical, pages);
        }
        let zone = self.zones[physical as usize];
        let end = match self.erase_when {
            EraseWhen::FirstBlockWrite => self.layout.blocks_touched(pages).min(zone.stale_blocks),
            _ => zone.stale_blocks,
        };
        for block in zone.erased_blocks..end {
            self.count_erasure(self.layout.block_index(physical, block));
        }
        let zone = &mut self.zones[physical as usize];
        zone.programmed_pages = pages;
        zone.erased_blocks = zone.erased_blocks.max(end);
    }

    /// Programs `range` without time passing, while the drive is off or going off,
    /// behind the erasure of `unerased`, blocks that the background has taken.
    pub(crate) fn settle(
        &mut self,
        physical: u32,
        range: BlockRange,
        unerased: impl IntoIterator<Item = u32>,
    ) {
        for block in unerased {
            self.count_erasure(self.layout.block_index(physical, block));
        }
        let last_page = self.layout.page_of(range.first + range.count - 1);
        let pages = last_page - self.layout.page_of(range.first) + 1;
        self.programmed_bytes += u64::from(pages) * u64::from(self.page_bytes);
        let programmed = self.zones[physical as usize].programmed_pages;
        self.declare(physical, programmed.max(last_page + 1));
        self.note_programs(physical, range);
        self.at_once();
    }

    /// Hands the operations that were put together to the flash, as one group.
    #[inline]
    fn submit(&mut self, now: Nanos, token: u32, cause: Cause, events: &mut EventQueue) {
        self.note(BlockEvent::Submitted { token });
        if let Some(under_way) = &mut self.under_way {
            under_way.submitted(token);
        }
        self.media.submit(now, token, cause, &self.ops, events);
    }

    /// A block is erased.
    fn count_erasure(&mut self, index: usize) {
        self.erase_counts[index] += 1;
        self.erased_total += 1;
        self.note(BlockEvent::Erase { block: index });
        if let Some(under_way) = &mut self.under_way {
            under_way.push(index);
        }
    }

    /// What was put together takes no time.
    fn at_once(&mut self) {
        self.note(BlockEvent::AtOnce);
        if let Some(under_way) = &mut self.under_way {
            under_way.at_once();
        }
    }

    /// Reads `range`; the group ends with `token`.
    pub fn read(
        &mut self,
        now: Nanos,
        physical: u32,
        range: BlockRange,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.ops.clear();
        self.push_pages(FlashKind::Read, physical, range);
        self.submit(now, token, Cause::HostRead, events);
    }

    /// Notes that `range` is going to be programmed, and says which blocks have
    /// to be erased before. Decisions about the state of a physical zone are
    /// made in order of arrival; the flash operations follow when the front
    /// end lets them through ([`Flash::program`]).
    #[inline]
    pub fn claim(&mut self, physical: u32, range: BlockRange) -> Claim {
        let end_page = self.layout.page_of(range.first + range.count - 1) + 1;
        let zone = &mut self.zones[physical as usize];
        zone.programmed_pages = zone.programmed_pages.max(end_page);
        if let Some(elements) = &mut self.elements {
            elements.write(physical, end_page);
        }
        if zone.erased_blocks < zone.stale_blocks {
            return self.claim_stale(physical, range, end_page);
        }
        Claim {
            physical,
            range,
            erase_first: 0,
            erase_end: 0,
        }
    }

    #[cold]
    fn claim_stale(&mut self, physical: u32, range: BlockRange, end_page: u32) -> Claim {
        let touched = self.blocks_touched(end_page);
        let zone = &mut self.zones[physical as usize];
        let end = match self.erase_when {
            EraseWhen::FirstBlockWrite => touched.min(zone.stale_blocks),
            _ => zone.stale_blocks,
        };
        let first = zone.erased_blocks;
        zone.erased_blocks = first.max(end);
        Claim {
            physical,
            range,
            erase_first: first,
            erase_end: zone.erased_blocks,
        }
    }

    /// Programs the pages of a claim, after erasing what must be erased
    /// before. Returns the number of groups submitted (1, or 2 with an
    /// erasure), each of which ends with `token`.
    #[inline]
    pub fn program(
        &mut self,
        now: Nanos,
        claim: Claim,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) -> u32 {
        let Claim {
            physical,
            range,
            erase_first,
            erase_end,
        } = claim;
        let mut groups = 1;
        if erase_first < erase_end {
            let blocks = erase_first..erase_end;
            if self.elements.is_none() {
                self.erase(now, physical, blocks, Cause::WriteErase, token, events);
                groups += 1;
            } else if self.push_erase_elements(physical, &blocks) {
                let cause = Cause::WriteErase;
                self.submit(now, token, cause, events);
                groups += 1;
            }
        }
        self.ops.clear();
        let first_page = self.layout.page_of(range.first);
        let last_page = self.layout.page_of(range.first + range.count - 1);
        let pages = last_page - first_page + 1;
        self.place(now, physical, (first_page, last_page));
        self.push_pages(FlashKind::Program, physical, range);
        self.programmed_bytes += u64::from(pages) * u64::from(self.page_bytes);
        self.note_programs(physical, range);
        self.submit(now, token, cause, events);
        groups
    }

    /// Marks the data of a physical zone as old. What has to be erased before
    /// it can be programmed again follows from the extent of erasure.
    pub fn invalidate(&mut self, physical: u32) {
        let zone = &mut self.zones[physical as usize];
        if let Some(elements) = &mut self.elements {
            *zone = PhysicalZone {
                stale_blocks: elements.invalidate(physical, self.erase_extent == EraseExtent::Full),
                erasures: zone.erasures,
                erasing_end: zone.erasing_end,
                ..PhysicalZone::default()
            };
            return;
        }
        if let Some(placements) = &mut self.placements {
            placements.clear(physical);
        }
        let touched = self.layout.blocks_touched(zone.programmed_pages);
        let unerased = if zone.erased_blocks < zone.stale_blocks {
            zone.stale_blocks
        } else {
            0
        };
        zone.stale_blocks = match self.erase_extent {
            EraseExtent::Full => self.layout.zone_blocks(),
            EraseExtent::Partial => touched.max(unerased),
        };
        zone.erased_blocks = 0;
        zone.programmed_pages = 0;
    }

    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedFlash {
        if self.elements.is_some() {
            return self.save_assembled().0;
        }
        let zone =
            |zone: &PhysicalZone| (zone.programmed_pages, zone.stale_blocks, zone.erased_blocks);
        SavedFlash {
            zones: self.zones.iter().map(zone).collect(),
            erase_counts: self.erase_counts.clone(),
            programmed_bytes: self.programmed_bytes,
            erased_total: self.erased_total,
        }
    }

    /// Puts into fresh flash what a snapshot kept, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it. The flash is of no use then.
    pub(crate) fn restore(&mut self, saved: &SavedFlash) -> Result<(), String> {
        if self.zones.len() != saved.zones.len() {
            return Err(format!("{} physical zones", saved.zones.len()));
        }
        let pages = self.layout.zone_pages();
        let blocks = self.zone_units();
        for (index, &(programmed_pages, stale_blocks, erased_blocks)) in
            saved.zones.iter().enumerate()
        {
            if programmed_pages > pages || stale_blocks > blocks || erased_blocks > stale_blocks {
                return Err(format!("state of physical zone {index}"));
            }
            self.zones[index] = PhysicalZone {
                programmed_pages,
                stale_blocks,
                erased_blocks,
                ..PhysicalZone::default()
            };
            if let Some(placements) = &mut self.placements {
                // Unless the snapshot says otherwise.
                placements.settle(index as u32, programmed_pages);
            }
        }
        let counts_fit = saved.erase_counts.len() == self.erase_counts.len()
            && saved
                .erase_counts
                .iter()
                .all(|count| *count <= ERASE_COUNT_MAX);
        if !counts_fit || saved.erased_total > TOTAL_MAX || saved.programmed_bytes > TOTAL_MAX {
            return Err("erase counts or totals".to_owned());
        }
        self.erase_counts.clone_from(&saved.erase_counts);
        self.programmed_bytes = saved.programmed_bytes;
        self.erased_total = saved.erased_total;
        Ok(())
    }

    /// Notes that a background erasure of a physical zone begins.
    pub fn erasure_begins(&mut self, physical: u32) {
        self.zones[physical as usize].erasures += 1;
        if let Some(elements) = &mut self.elements {
            elements.erasure_begins(physical);
        }
    }

    /// Notes that a background erasure of a physical zone is over.
    pub fn erasure_ends(&mut self, physical: u32) {
        let zone = &mut self.zones[physical as usize];
        zone.erasures -= 1;
        if zone.erasures == 0 {
            zone.erasing_end = 0;
        }
        if let Some(elements) = &mut self.elements {
            elements.erasure_ends(physical);
        }
    }

    /// Whether background erasures of a physical zone are not over.
    #[inline]
    #[must_use]
    pub fn is_being_erased(&self, physical: u32) -> bool {
        self.zones[physical as usize].erasures > 0
    }

    /// Power is lost at `now`: what runs and waits on the flash is gone. Returns
    /// when the last of what had been booked would have ended; nothing may be
    /// submitted before that, since bookings are not taken back.
    ///
    /// Erasures that were not over have to be repeated: see [`Flash::erase_again`].
    pub fn power_cut(&mut self, channels: u32) -> Nanos {
        let idle = Media::new(self.layout.channel_of_unit(), channels, &self.timing);
        let before = std::mem::replace(&mut self.media, idle);
        self.note(BlockEvent::PowerLoss);
        self.set_up_media();
        *self.media.ledger_mut() = before.into_ledger();
        self.media.ledger().booked_until()
    }

    /// Power was lost during erasures of a physical zone, of which the first
    /// `kept_pages` pages hold data: blocks behind them that had to be erased
    /// have to be erased still, or again, unless they come before `erased`. Those
    /// erasures were of blocks before `end`, or before what the background had taken.
    ///
    /// Not for storage elements: of those it is known block by block.
    pub fn erase_again(&mut self, physical: u32, kept_pages: u32, erased: u32, end: u32) {
        let kept_blocks = self.layout.blocks_touched(kept_pages).max(erased);
        let zone = &mut self.zones[physical as usize];
        let end = end.max(zone.erasing_end);
        zone.erasures = 0;
        zone.erasing_end = 0;
        // A reset since then has left what it found programmed, and no more.
        zone.stale_blocks = zone.stale_blocks.max(end);
        zone.erased_blocks = zone.erased_blocks.min(kept_blocks);
    }

    /// Whether anything of a physical zone has been programmed since its last reset.
    #[must_use]
    pub fn is_programmed(&self, physical: u32) -> bool {
        self.zones[physical as usize].programmed_pages > 0
    }

    /// The physical zones that background erasures have not left.
    pub(crate) fn being_erased(&self) -> impl Iterator<Item = u32> {
        let erased = |(_, zone): &(u32, &PhysicalZone)| zone.erasures > 0;
        (0..)
            .zip(&self.zones)
            .filter(erased)
            .map(|(physical, _)| physical)
    }

    /// Physical zones.
    #[must_use]
    pub fn physical_zones(&self) -> u32 {
        u32::try_from(self.zones.len()).expect("their number came as u32")
    }

    /// Blocks of a physical zone that have to be erased, or elements.
    #[must_use]
    pub fn stale_blocks(&self, physical: u32) -> u32 {
        if let Some(elements) = &self.elements {
            return elements.stale_elements(physical);
        }
        let zone = &self.zones[physical as usize];
        zone.stale_blocks - zone.erased_blocks
    }

    /// Hands the stale blocks of a physical zone to an erasure: they no longer
    /// count as stale here, and the caller sees to it that they are erased
    /// before anything is programmed. Returns their end; they start at 0.
    pub fn take_stale(&mut self, physical: u32) -> u32 {
        let zone = &mut self.zones[physical as usize];
        debug_assert_eq!(
            zone.erased_blocks, 0,
            "an erasure starts right after a reset"
        );
        zone.erased_blocks = zone.stale_blocks;
        zone.erasing_end = zone.erasing_end.max(zone.stale_blocks);
        match self.elements {
            // Those that need no erasure are left out one by one.
            Some(_) => self.layout.zone_blocks(),
            None => zone.stale_blocks,
        }
    }

    /// As [`Self::take_stale`], of the blocks that are left of a zone that may
    /// have been erased in part: a row of them, or all if `whole`.
    pub(crate) fn take_next(&mut self, physical: u32, whole: bool) -> Range<u32> {
        let width = self.layout.width();
        let zone = &mut self.zones[physical as usize];
        let first = zone.erased_blocks;
        zone.erased_blocks = if whole {
            zone.stale_blocks
        } else {
            // No overflow: a zone has fewer blocks than pages.
            zone.stale_blocks.min((first / width + 1) * width)
        };
        zone.erasing_end = zone.erasing_end.max(zone.erased_blocks);
        first..zone.erased_blocks
    }

    /// Erasures so far of the blocks of a physical zone.
    pub(crate) fn wear_of(&self, physical: u32) -> u64 {
        let blocks = 0..self.layout.zone_blocks();
        let count = |block| self.erase_counts[self.layout.block_index(physical, block)];
        blocks.map(|block| u64::from(count(block))).sum()
    }

    /// Erases `blocks` of a physical zone; the group ends with `token`.
    pub fn erase(
        &mut self,
        now: Nanos,
        physical: u32,
        blocks: impl Iterator<Item = u32>,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.ops.clear();
        let mut previous = None;
        for block in blocks {
            let counted = match &mut self.elements {
                None => Some(self.layout.block_index(physical, block)),
                Some(elements) => {
                    let (row, slot) = self.layout.block_position(block);
                    elements.erase(physical, row, slot, &self.erase_counts)
                }
            };
            if let Some(index) = counted {
                self.push_erase(physical, block, index, previous);
                previous = Some(block);
            }
        }
        self.submit(now, token, cause, events);
    }

    /// The unit of a block of a physical zone.
    #[must_use]
    pub fn unit_of_block(&self, physical: u32, block: u32) -> u32 {
        let (row, slot) = self.layout.block_position(block);
        match &self.elements {
            None => self.layout.stripe(physical)[slot as usize],
            Some(elements) => elements.unit(physical, row, slot),
        }
    }

    /// Adds the erasure of a block to the group; `index` is its number on the
    /// drive, `previous` the block added before it.
    fn push_erase(&mut self, physical: u32, block: u32, index: usize, previous: Option<u32>) {
        let (_, slot) = self.layout.block_position(block);
        let unit = self.unit_of_block(physical, block);
        self.count_erasure(index);
        // Neighbours in the stripe that share a die are one multi-plane erase.
        let is_neighbour = slot > 0 && previous == Some(block - 1);
        if self.timing.planes == PlaneMode::MultiPlane
            && is_neighbour
            && self.ops.last().is_some_and(|op| op.unit == unit)
        {
            return;
        }
        let array_ns = duration_ns(self.timing.erase_ns);
        self.ops.push(FlashOp {
            unit,
            kind: FlashKind::Erase,
            array_ns,
            transfer_ns: 0,
        });
    }

    /// Adds the page operations of `range` to the group.
    #[inline]
    fn push_pages(&mut self, kind: FlashKind, physical: u32, range: BlockRange) {
        let Self {
            layout,
            elements,
            placements,
            timing,
            variation,
            ops,
            ..
        } = self;
        let (elements, placements) = (elements.as_deref(), placements.as_deref());
        let parts = match kind {
            FlashKind::Read => timing.details.read_parts,
            FlashKind::Program | FlashKind::Erase => None,
        };
        let vary_ppm = match kind {
            FlashKind::Program => timing.details.program_variation_ppm,
            FlashKind::Read | FlashKind::Erase => 0,
        };
        let array_ns = duration_ns(match kind {
            FlashKind::Read => timing.read_ns,
            FlashKind::Program => timing.program_ns,
            FlashKind::Erase => timing.erase_ns,
        });
        let end = range.first + range.count;
        let last = layout.page_of(end - 1);
        let mut page = layout.page_of(range.first);
        let mut slot = layout.slot_of_page(page) as usize;
        let (mut stripe, mut stripe_end) = match elements {
            None => (layout.stripe(physical), u32::MAX),
            Some(elements) => elements.line(physical, page),
        };
        while page <= last {
            let unit = match placements {
                None => stripe[slot],
                Some(placements) => stripe[placements.slot(physical, page) as usize],
            };
            let start = page * layout.page_lbas();
            let array_ns = match parts {
                Some(parts) => {
                    let first = range.first.max(start) - start;
                    let end = end.min(start + layout.page_lbas()) - start;
                    parts_ns(&parts, layout.page_lbas(), first, end)
                }
                None => array_ns,
            };
            let transfer_ns = if timing.partial_transfer {
                let lbas = end.min(start + layout.page_lbas()) - range.first.max(start);
                duration_ns(timing.transfer_ns) * lbas / layout.page_lbas()
            } else {
                duration_ns(timing.transfer_ns)
            };
            match ops.last_mut() {
                Some(op)
                    if timing.planes == PlaneMode::MultiPlane && slot > 0 && op.unit == unit =>
                {
                    op.transfer_ns += transfer_ns;
                    // The planes of a die read together.
                    op.array_ns = op.array_ns.max(array_ns);
                }
                _ => ops.push(FlashOp {
                    unit,
                    kind,
                    array_ns: match vary_ppm {
                        0 => array_ns,
                        ppm => duration_ns(variation.vary(Nanos(u64::from(array_ns)), ppm)),
                    },
                    transfer_ns,
                }),
            }
            page += 1;
            slot += 1;
            if slot == stripe.len() {
                slot = 0;
                if page >= stripe_end
                    && let Some(elements) = elements
                    && page <= last
                {
                    (stripe, stripe_end) = elements.line(physical, page);
                }
            }
        }
    }
}

/// Time to read the logical blocks `first..end` of a page of `page_lbas`, part by part.
fn parts_ns(parts: &ReadParts, page_lbas: u32, first: u32, end: u32) -> u32 {
    let times = parts.times();
    // Checked: they divide the page.
    let part_lbas = page_lbas / times.len() as u32;
    let touched = (first / part_lbas) as usize..=((end - 1) / part_lbas) as usize;
    let sum = times[touched].iter().map(|time| time.0).sum();
    duration_ns(Nanos(sum))
}

/// A time of one flash operation. Profiles keep them below four seconds.
fn duration_ns(time: Nanos) -> u32 {
    u32::try_from(time.0).expect("checked: a flash operation takes less than 4 s")
}
