//! The flash of a drive: what its zones stand on ([`Mapping`]), what its erase blocks are
//! ([`Blocks`]), and the operations that host and background work turn into ([`Media`]).

mod blocks;
mod cache;
mod operations;
mod owed;
mod placement;
mod plain;
mod power;
mod saved;
mod version_1;
mod watched;
mod zones;

use std::ops::Range;

use zonelab_device::Nanos;

use crate::account::Cause;
use crate::config::{BufferRelease, DriveConfig, EraseExtent, EraseWhen, MediaConfig};
use crate::draw::Draw;
use crate::event::EventQueue;
use crate::layout::Layout;
use crate::mapping::Mapping;
use crate::mapping::elements::Elements;
use crate::media::{FlashKind, FlashOp, Media};

pub use blocks::{BlockState, Blocks};
use cache::Cache;
pub(crate) use cache::{Foldable, SavedCache};
use operations::duration_ns;
pub(crate) use owed::Left;
pub use owed::Owed;
use placement::Placements;
use plain::PageTimes;
pub(crate) use saved::{SavedFlash, TOTAL_MAX};
pub(crate) use version_1::Version1;
pub use watched::BlockEvent;

/// How far a physical zone is programmed and erased: limits between which its blocks need
/// not be looked at one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PhysicalZone {
    /// Pages programmed since the zone was last reset.
    programmed_pages: u32,
    /// Pages before this one are on blocks that are known to be programmed.
    known_pages: u32,
    /// First place with stale blocks.
    stale_first: u32,
    /// Place behind the last with stale blocks.
    stale_end: u32,
    /// Erasures of the background that are not over.
    erasures: u32,
}

/// The flash of a drive: layout, mapping, blocks and timing.
#[derive(Clone, Debug)]
pub struct Flash {
    layout: Layout,
    mapping: Mapping,
    blocks: Blocks,
    /// Where pages are, if the write buffer decides that.
    placements: Option<Box<Placements>>,
    /// The SLC cache, if the drive has one.
    cache: Option<Box<Cache>>,
    /// Logical blocks of a zone that can be written.
    capacity_lbas: u32,
    media: Media,
    timing: MediaConfig,
    /// Those of operations on pages, if they are the same for all.
    page_times: Option<PageTimes>,
    erase_when: EraseWhen,
    erase_extent: EraseExtent,
    zones: Vec<PhysicalZone>,
    page_bytes: u32,
    pages_per_row: u32,
    programmed_bytes: u64,
    /// Arrivals of pages at their dies are reported.
    reports_loads: bool,
    /// Deviations of program times. Part of the drive: every drive of a
    /// configuration has the same.
    variation: Draw,
    /// Scratch: operations of the group that is being put together.
    ops: Vec<FlashOp>,
    /// What happened to blocks, if that is kept.
    watched: Option<Vec<BlockEvent>>,
}

/// A range of logical blocks within one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First block, counted from the start of the zone.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

/// Logical blocks of a physical zone: where a write goes, or what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The physical zone.
    pub physical: u32,
    /// The blocks.
    pub range: BlockRange,
}

impl Target {
    /// Nothing.
    pub const NONE: Self = Self {
        physical: 0,
        range: BlockRange { first: 0, count: 0 },
    };
}

impl Flash {
    /// The flash of a fresh drive.
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let layout = Layout::new(config);
        let mapping = Mapping::new(config, &layout);
        let physical_zones = mapping.physical_zones();
        let geometry = &config.geometry;
        let blocks = geometry.planes_total() as usize * geometry.blocks_per_plane as usize;
        let reports_loads = config
            .write_buffer
            .is_some_and(|buffer| buffer.release == BufferRelease::Transfer);
        let mut flash = Self {
            media: Media::new(layout.channel_of_unit(), geometry.channels, &config.media),
            placements: Placements::new(config, &layout, physical_zones).map(Box::new),
            cache: Cache::new(config, &layout, physical_zones).map(Box::new),
            // Fits: see `Layout`.
            capacity_lbas: config.zones.capacity_lbas as u32,
            pages_per_row: layout.width() * geometry.pages_per_block,
            page_times: PageTimes::of(config, &layout),
            layout,
            mapping,
            blocks: Blocks::new(blocks),
            timing: config.media,
            erase_when: config.reset.erase,
            erase_extent: config.reset.extent,
            zones: vec![PhysicalZone::default(); physical_zones as usize],
            page_bytes: geometry.page_bytes,
            programmed_bytes: 0,
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

    /// The zone mapping.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn mapping_mut(&mut self) -> &mut Mapping {
        &mut self.mapping
    }

    /// State and wear of the erase blocks.
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
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

    /// The storage elements, if zones are assembled from them.
    #[must_use]
    pub fn elements(&self) -> Option<&Elements> {
        self.mapping.elements()
    }

    /// Erasures of each block of the drive, plane by plane. It is a copy: of single
    /// blocks, ask [`Self::blocks`].
    #[must_use]
    pub fn erase_counts(&self) -> Vec<u32> {
        self.blocks.wears().collect()
    }

    /// Blocks erased, and bytes programmed, since the drive was made.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        (self.blocks.erased_total(), self.programmed_bytes)
    }

    /// Bytes programmed since the drive was made.
    #[inline]
    pub(crate) fn programmed_bytes(&self) -> u64 {
        self.programmed_bytes
    }

    // ---- operations ------------------------------------------------------

    /// Hands the operations that were put together to the flash, as one group.
    #[inline]
    fn submit(&mut self, now: Nanos, token: u32, cause: Cause, events: &mut EventQueue) {
        self.note(BlockEvent::Submitted { token });
        self.blocks.submitted(token);
        self.media.submit(now, token, cause, &self.ops, events);
    }

    /// What was put together takes no time.
    fn at_once(&mut self) {
        self.note(BlockEvent::AtOnce);
        self.blocks.at_once();
    }

    /// A group of operations has ended.
    #[inline]
    pub(crate) fn group_done(&mut self, token: u32) {
        self.note(BlockEvent::Done { token });
        self.blocks.done(token);
    }

    /// Reads the blocks of `target`; the group ends with `token`.
    pub fn read(
        &mut self,
        now: Nanos,
        target: Target,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) {
        let Target { physical, range } = target;
        debug_assert!(range.count > 0, "a read has blocks");
        self.ops.clear();
        match self.cache.is_some() {
            false => self.push_pages(FlashKind::Read, physical, range),
            true => self.push_reads(physical, range),
        }
        self.submit(now, token, cause, events);
    }

    /// Programs the pages of `target`, after erasing what must be erased before. Returns
    /// the number of groups submitted (1, or 2 with an erasure), each of which ends with
    /// `token`.
    #[inline]
    pub fn program(
        &mut self,
        now: Nanos,
        target: Target,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) -> u32 {
        let Target { physical, range } = target;
        debug_assert!(range.count > 0, "a program has blocks");
        let first_page = self.layout.page_of(range.first);
        let last_page = self.layout.page_of(range.first + range.count - 1);
        debug_assert!(
            last_page < self.layout.zone_pages(),
            "page {last_page} is on physical zone {physical}"
        );
        let zone = &mut self.zones[physical as usize];
        zone.programmed_pages = zone.programmed_pages.max(last_page + 1);
        let mut groups = 1;
        if self.erase_before_program(now, target, cause, token, events) {
            groups += 1;
        }
        self.place(now, physical, (first_page, last_page));
        if last_page >= self.zones[physical as usize].known_pages {
            self.blocks_are_programmed(physical, first_page, last_page + 1);
        }
        self.ops.clear();
        self.push_pages(FlashKind::Program, physical, range);
        let pages = last_page - first_page + 1;
        self.programmed_bytes += u64::from(pages) * u64::from(self.page_bytes);
        self.note_programs(physical, range);
        self.submit(now, token, cause, events);
        groups
    }

    /// Erases what must be erased before `target` is programmed, if anything: then that is a
    /// group of its own, which ends with `token`, and [`Flash::program`] erases nothing.
    #[inline]
    pub(crate) fn erase_before_program(
        &mut self,
        now: Nanos,
        target: Target,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) -> bool {
        let Target { physical, range } = target;
        let last_page = self.layout.page_of(range.first + range.count - 1);
        let zone = &self.zones[physical as usize];
        let erases =
            zone.stale_first < zone.stale_end && self.erase_before(physical, last_page + 1);
        if erases {
            self.submit(now, token, cause.of_erasure_before(), events);
        }
        erases
    }

    /// Puts the erasures together that come before a program of the pages before
    /// `end_page` of a physical zone. Returns whether there are any.
    #[cold]
    fn erase_before(&mut self, physical: u32, end_page: u32) -> bool {
        let touched = self.mapping.places_touched(end_page, &self.layout);
        let zone = &mut self.zones[physical as usize];
        let end = match self.erase_when {
            EraseWhen::FirstBlockWrite => touched.min(zone.stale_end),
            _ => zone.stale_end,
        };
        let places = zone.stale_first..end;
        zone.stale_first = zone.stale_first.max(end);
        debug_assert!(
            zone.stale_first <= zone.stale_end,
            "stale places are counted once: {zone:?}"
        );
        self.push_erasures_in(physical, &places);
        !self.ops.is_empty()
    }

    /// Puts the erasures of the stale blocks in some places together.
    fn push_erasures_in(&mut self, physical: u32, places: &Range<u32>) {
        let rows = self.mapping.rows_of(places, &self.layout);
        let width = self.layout.width();
        let blocks = rows.start * width..rows.end * width;
        self.push_erasures(physical, blocks, Some(places));
    }

    /// The pages `first..end` of a physical zone are going to be programmed, on blocks of
    /// which some have not been so far.
    ///
    /// In the first pages of a row of blocks each is on another block; then they come
    /// round again.
    #[cold]
    fn blocks_are_programmed(&mut self, physical: u32, first: u32, end: u32) {
        let width = self.layout.width();
        let mut page = first.max(self.zones[physical as usize].known_pages);
        while page < end {
            if page % self.pages_per_row >= width {
                page = (page / self.pages_per_row + 1) * self.pages_per_row;
                continue;
            }
            if let Some(block) = self.block_of_page(physical, page) {
                self.blocks.program(block);
            }
            page += 1;
        }
        let known = match end % self.pages_per_row >= width {
            true => (end / self.pages_per_row + 1) * self.pages_per_row,
            false => end,
        };
        let zone = &mut self.zones[physical as usize];
        if first <= zone.known_pages {
            zone.known_pages = zone.known_pages.max(known);
        }
        self.mapping.programmed(physical, end);
    }

    /// Erases those of `blocks` of a physical zone that are stale; the group ends with
    /// `token`.
    pub fn erase(
        &mut self,
        now: Nanos,
        physical: u32,
        blocks: impl Iterator<Item = u32>,
        cause: Cause,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.push_erasures(physical, blocks, None);
        self.submit(now, token, cause, events);
    }

    /// Erases the stale blocks in places of a physical zone ([`Flash::stale_places`]); the
    /// group ends with `token`.
    pub(crate) fn erase_places(
        &mut self,
        now: Nanos,
        physical: u32,
        places: &Range<u32>,
        token: u32,
        events: &mut EventQueue,
    ) {
        let zone = &mut self.zones[physical as usize];
        if places.contains(&zone.stale_first) {
            zone.stale_first = places.end.min(zone.stale_end);
        }
        self.push_erasures_in(physical, places);
        self.submit(now, token, Cause::WriteErase, events);
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
        if let Some(placements) = &mut self.placements {
            placements.settle(physical, pages);
        }
        if pages > 0 {
            self.erase_before(physical, pages);
            // Counted, and no time passes.
            self.ops.clear();
        }
        assert!(
            pages <= self.layout.zone_pages(),
            "{pages} pages of a zone are programmed"
        );
        let zone = &mut self.zones[physical as usize];
        zone.programmed_pages = pages;
        zone.known_pages = 0;
        self.blocks_are_programmed(physical, 0, pages);
    }

    /// Programs `range` without time passing, while the drive is off or going off.
    pub(crate) fn settle(&mut self, physical: u32, range: BlockRange) {
        if self.cache.is_some() {
            return self.settle_cached(Target { physical, range });
        }
        let last_page = self.layout.page_of(range.first + range.count - 1);
        let pages = last_page - self.layout.page_of(range.first) + 1;
        self.programmed_bytes += u64::from(pages) * u64::from(self.page_bytes);
        let programmed = self.zones[physical as usize].programmed_pages;
        self.declare(physical, programmed.max(last_page + 1));
        self.note_programs(physical, range);
        self.at_once();
    }

    /// Panics unless what the flash knows agrees with itself.
    ///
    /// # Panics
    /// As said. It looks at every block.
    pub fn assert_invariants(&self) {
        self.blocks.assert_invariants();
        self.mapping.assert_invariants(&self.layout, &self.blocks);
        if let Some(cache) = &self.cache {
            cache.assert_invariants();
        }
        for physical in (0..self.layout.groups()).flat_map(|group| self.mapping.invalid(group)) {
            assert!(
                self.mapping.stale(physical) > 0 || self.is_being_erased(physical),
                "invalid physical zone {physical} has nothing to be erased"
            );
        }
        for (_, physical) in self.mapping.mapped() {
            let zone = &self.zones[physical as usize];
            let on = (&self.layout, &self.blocks);
            let (first, end) = self.mapping.stale_range(physical, 0, on);
            assert!(
                first >= end || (zone.stale_first <= first && end <= zone.stale_end),
                "stale blocks of physical zone {physical} in places {first}..{end}: {zone:?}"
            );
        }
    }
}
