//! The SLC cache: a log over blocks that store one bit in each cell.
//!
//! What leaves the write buffer is appended to the log, whatever zone it is of, and is read
//! there until it has been *folded*: programmed on the blocks of its zone. The log goes round
//! rows of blocks, one block on each plane of the drive. A *place* of it is what one program
//! takes on one die, and consecutive places are on the next channel each, so that the log is
//! spread over all dies whoever writes. A row whose places are all of no use, because they
//! were folded or their zone was reset, is erased and used again: the oldest first.
//!
//! Of each zone, *extents* say where its blocks are, in their order: at a place, or folded.
//! Those that are folded and that no other is in front of are forgotten. When to fold is not
//! known here: see `background/folding`.

mod operations;
mod saved;

use std::collections::VecDeque;

use super::BlockRange;
use crate::config::{DriveConfig, SlcCacheConfig};
use crate::layout::Layout;

pub(crate) use saved::SavedCache;

/// The place of an extent that was folded.
const FOLDED: u64 = u64::MAX;

/// The log, and what of each zone is in it.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    config: SlcCacheConfig,
    /// Logical blocks of a page, of a place, and of what a program of the zones takes.
    page_lbas: u32,
    place_lbas: u32,
    fold_lbas: u32,
    /// Planes that a place is on.
    planes: u32,
    /// Unit and first plane of each place of a line across the drive.
    columns: Vec<(u32, u32)>,
    /// The unit of each plane.
    unit_of_plane: Vec<u32>,
    /// Places of a row, and rows.
    row_places: u64,
    rows: u64,
    blocks_per_plane: u32,
    /// The next place to be used. Places are numbered from the first that was ever used.
    head: u64,
    /// The first place of the oldest row that is in use.
    tail: u64,
    /// Places that are left free for a loss of power, and what one program may need.
    reserve_places: u64,
    program_places: u64,
    /// By row: places that hold something.
    used: Vec<u32>,
    /// By place in the ring: the physical zone and the first block of what was put there last.
    owners: Vec<(u32, u32)>,
    /// By physical zone.
    zones: Vec<CachedZone>,
    /// The oldest row is being erased.
    is_erasing: bool,
    /// Scratch: places that were just taken, with the blocks that go there.
    taken: Vec<(u64, u32)>,
}

/// What of a zone is in the log.
#[derive(Clone, Debug, Default)]
struct CachedZone {
    /// Extents in order of their blocks. The first is not folded.
    extents: VecDeque<Extent>,
    /// The end of the last one.
    end: u32,
    /// What lies before this has been programmed in the log, or was folded: programs on several
    /// dies end in any order, and nothing is folded that is not there yet.
    programmed: u32,
    /// What lies before this is being folded or was.
    begun: u32,
    /// What a finish left to be programmed behind the data of the host: the blocks from the
    /// first to before the second.
    rest: Option<(u32, u32)>,
}

/// Consecutive blocks of a zone at one place, up to the next extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    first: u32,
    /// [`FOLDED`]: on the blocks of the zone.
    place: u64,
}

/// Something that can be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foldable {
    pub(crate) physical: u32,
    pub(crate) range: BlockRange,
    /// It is no data, but what a finish left.
    pub(crate) is_rest: bool,
}

impl CachedZone {
    /// The position of the extent that has a block; the extents have it.
    fn position(&self, lba: u32) -> usize {
        self.extents.partition_point(|of| of.first <= lba) - 1
    }

    /// The end of an extent.
    fn end_of(&self, position: usize) -> u32 {
        self.extents
            .get(position + 1)
            .map_or(self.end, |next| next.first)
    }

    /// Forgets extents that were folded and have no other in front.
    fn forget_folded(&mut self) {
        while self.extents.front().is_some_and(|of| of.place == FOLDED) {
            self.extents.pop_front();
        }
    }
}

impl Cache {
    /// The empty cache of a fresh drive, if it has one.
    pub(super) fn new(config: &DriveConfig, layout: &Layout, zones: u32) -> Option<Self> {
        let cache = config.slc_cache?;
        let geometry = &config.geometry;
        let planes = config.pages_per_program();
        let page_lbas = cache.page_bytes / config.lba_bytes;
        let unit_of_plane = layout.unit_of_plane();
        // LUNs are numbered channel first.
        let steps = geometry.planes / planes;
        let columns = (0..steps).flat_map(|step| {
            (0..geometry.luns()).map(move |lun| lun * geometry.planes + step * planes)
        });
        let columns = columns.map(|plane| (unit_of_plane[plane as usize], plane));
        let columns: Vec<(u32, u32)> = columns.collect();
        let pages = cache.block_bytes(geometry).0 / u64::from(cache.page_bytes);
        let row_places = pages * columns.len() as u64;
        let rows = config.cache_rows();
        let place_lbas = page_lbas * planes;
        let place_bytes = u64::from(place_lbas) * u64::from(config.lba_bytes);
        let places = usize::try_from(rows * row_places).expect("checked: they fit on the planes");
        Some(Self {
            config: cache,
            page_lbas,
            place_lbas,
            fold_lbas: layout.page_lbas() * planes,
            planes,
            columns,
            unit_of_plane,
            row_places,
            rows,
            blocks_per_plane: geometry.blocks_per_plane,
            head: 0,
            tail: 0,
            reserve_places: config.cache_reserve_bytes() / place_bytes,
            program_places: u64::from(geometry.page_bytes / cache.page_bytes) + 1,
            used: vec![0; rows as usize],
            owners: vec![(u32::MAX, 0); places],
            zones: vec![CachedZone::default(); zones as usize],
            is_erasing: false,
            taken: Vec::new(),
        })
    }

    fn places(&self) -> u64 {
        self.rows * self.row_places
    }

    /// Places in use, with those of the rows that are in use and hold nothing any more.
    fn places_in_use(&self) -> u64 {
        self.head - self.tail
    }

    /// Whether there is room for a program of the write buffer.
    fn has_room(&self) -> bool {
        let left = self.places() - self.places_in_use();
        left >= self.reserve_places + self.program_places
    }

    /// Whether there is room for all that the write buffer can hold.
    fn can_save(&self) -> bool {
        self.places() - self.places_in_use() >= self.reserve_places
    }

    fn row_of(&self, place: u64) -> usize {
        // Fits: rows do.
        (place / self.row_places % self.rows) as usize
    }

    fn slot_of(&self, place: u64) -> usize {
        (place % self.places()) as usize
    }

    /// Takes places for `range` of a physical zone, and keeps them in `taken`.
    fn take_places(&mut self, physical: u32, range: BlockRange) {
        self.taken.clear();
        let (mut first, end) = (range.first, range.first + range.count);
        let zone = &mut self.zones[physical as usize];
        if zone.extents.is_empty() {
            (zone.end, zone.begun, zone.programmed) = (first, first, first);
        }
        assert_eq!(
            zone.end, first,
            "blocks of physical zone {physical} come to the cache in their order"
        );
        zone.end = end;
        while first < end {
            let whole = (first / self.fold_lbas + 1).saturating_mul(self.fold_lbas);
            let until = first.saturating_add(self.place_lbas).min(whole).min(end);
            let place = self.head;
            self.head += 1;
            assert!(
                self.head - self.tail <= self.rows * self.row_places,
                "there is room for what goes to the cache"
            );
            let zone = &mut self.zones[physical as usize];
            zone.extents.push_back(Extent { first, place });
            let (row, slot) = (self.row_of(place), self.slot_of(place));
            self.used[row] += 1;
            self.owners[slot] = (physical, first);
            self.taken.push((place, until - first));
            first = until;
        }
    }

    fn give_up(&mut self, place: u64) {
        let row = self.row_of(place);
        debug_assert!(
            self.used[row] > 0 && (self.tail..self.head).contains(&place),
            "place {place} is given up once"
        );
        self.used[row] -= 1;
    }

    /// The first part of `first..end` of a physical zone that is together, and the place that
    /// it is at; `None`: on the blocks of the zone.
    fn find(&self, physical: u32, first: u32, end: u32) -> (u32, Option<u64>) {
        let zone = &self.zones[physical as usize];
        match zone.extents.front() {
            None => (end, None),
            Some(_) if first >= zone.end => (end, None),
            Some(front) if first < front.first => (end.min(front.first), None),
            Some(_) => {
                let position = zone.position(first);
                let place = zone.extents[position].place;
                let until = end.min(zone.end_of(position));
                (until, (place != FOLDED).then_some(place))
            }
        }
    }

    /// Blocks of a physical zone from its start that are on blocks of its own.
    fn folded(&self, physical: u32) -> u32 {
        let front = self.zones[physical as usize].extents.front();
        front.map_or(u32::MAX, |front| front.first)
    }

    /// The end of what is on blocks of its own, whatever lies before it; `u32::MAX`: all.
    fn folded_last(&self, physical: u32) -> u32 {
        let zone = &self.zones[physical as usize];
        let last = zone.extents.iter().rposition(|of| of.place == FOLDED);
        last.map_or_else(|| self.folded(physical), |at| zone.end_of(at))
    }

    /// Takes what of a zone is to be folded next: up to a whole unit, or if `in_part` what
    /// there is.
    fn take_of_zone(&mut self, physical: u32, in_part: bool, capacity: u32) -> Option<Foldable> {
        let fold_lbas = self.fold_lbas;
        let zone = &mut self.zones[physical as usize];
        let mut position = match zone.extents.front() {
            None => return None,
            Some(_) if zone.begun >= zone.programmed => return None,
            Some(front) => zone.position(zone.begun.max(front.first)),
        };
        // Programs end in any order: after a loss of power some may have been done.
        while zone.extents.get(position)?.place == FOLDED {
            position += 1;
        }
        let first = zone.extents[position].first;
        let whole = (first / fold_lbas + 1)
            .saturating_mul(fold_lbas)
            .min(capacity);
        let is_part_due = (in_part || zone.rest.is_some()) && zone.programmed == zone.end;
        let mut end = match whole <= zone.programmed {
            true => whole,
            false if is_part_due => zone.end,
            false => return None,
        };
        let next = zone.extents.iter().skip(position);
        if let Some(done) = next.clone().find(|of| of.place == FOLDED) {
            end = end.min(done.first);
        }
        zone.begun = end;
        Some(Foldable {
            physical,
            range: BlockRange {
                first,
                count: end - first,
            },
            is_rest: false,
        })
    }

    /// Takes what a finish left of a zone whose data is being folded or was.
    fn take_of_rest(&mut self, physical: u32) -> Option<Foldable> {
        let zone = &mut self.zones[physical as usize];
        let (first, end) = zone.rest?;
        let whole = (first / self.fold_lbas + 1).saturating_mul(self.fold_lbas);
        let until = whole.min(end);
        zone.rest = (until < end).then_some((until, end));
        Some(Foldable {
            physical,
            range: BlockRange {
                first,
                count: until - first,
            },
            is_rest: true,
        })
    }

    /// `range` of a zone is on blocks of its own.
    fn is_folded(&mut self, physical: u32, range: BlockRange) {
        let end = range.first + range.count;
        let zone = &self.zones[physical as usize];
        let mut position = zone.position(range.first);
        while let Some(extent) = self.zones[physical as usize].extents.get_mut(position)
            && extent.first < end
        {
            let place = std::mem::replace(&mut extent.place, FOLDED);
            debug_assert_ne!(place, FOLDED, "blocks are folded once");
            self.give_up(place);
            position += 1;
        }
        self.zones[physical as usize].forget_folded();
    }

    /// Only the first `lbas` blocks of a zone are of use.
    fn truncate(&mut self, physical: u32, lbas: u32) {
        while let Some(last) = self.zones[physical as usize].extents.back().copied()
            && last.first >= lbas
        {
            self.zones[physical as usize].extents.pop_back();
            if last.place != FOLDED {
                self.give_up(last.place);
            }
        }
        let zone = &mut self.zones[physical as usize];
        zone.end = zone.end.min(lbas);
        zone.begun = zone.begun.min(zone.end);
        zone.programmed = zone.programmed.min(zone.end);
        zone.forget_folded();
    }

    /// A zone was reset.
    fn clear(&mut self, physical: u32) {
        self.truncate(physical, 0);
        self.zones[physical as usize].rest = None;
    }

    /// Folds and programs that were under way never end: what is left was programmed.
    fn nothing_is_under_way(&mut self) {
        self.is_erasing = false;
        for zone in &mut self.zones {
            zone.programmed = zone.end;
            zone.begun = zone.extents.front().map_or(zone.end, |front| front.first);
        }
    }

    /// Whether the oldest row can be erased: it was filled, and holds nothing.
    fn can_erase(&self) -> bool {
        !self.is_erasing
            && self.head >= self.tail + self.row_places
            && self.used[self.row_of(self.tail)] == 0
    }

    /// The blocks of the row of a place, plane by plane.
    fn blocks_of_row(&self, place: u64) -> impl Iterator<Item = (u32, usize)> + use<'_> {
        let in_plane = self.block_in_plane(place);
        let units = (0..).zip(&self.unit_of_plane);
        units.map(move |(plane, unit)| (*unit, self.block_index(plane, in_plane)))
    }

    fn block_in_plane(&self, place: u64) -> u32 {
        // Fits: checked, rows are blocks of a plane.
        self.blocks_per_plane - self.rows as u32 + self.row_of(place) as u32
    }

    fn block_index(&self, plane: u32, in_plane: u32) -> usize {
        plane as usize * self.blocks_per_plane as usize + in_plane as usize
    }

    /// Whether a block of the drive belongs to the cache.
    fn has_block(&self, block: usize) -> bool {
        (block % self.blocks_per_plane as usize) as u64
            >= u64::from(self.blocks_per_plane) - self.rows
    }

    /// Panics unless what is known of the log agrees with itself.
    pub(super) fn assert_invariants(&self) {
        assert!(self.places_in_use() <= self.places(), "the log has an end");
        assert!(self.tail.is_multiple_of(self.row_places), "rows are erased");
        let mut used = vec![0; self.used.len()];
        for (physical, zone) in (0_u32..).zip(&self.zones) {
            let is_front_folded = zone.extents.front().is_some_and(|of| of.place == FOLDED);
            assert!(!is_front_folded, "what is folded is forgotten");
            let mut before = None;
            for extent in &zone.extents {
                assert!(before < Some(extent.first), "extents are in order");
                before = Some(extent.first);
                if extent.place == FOLDED {
                    continue;
                }
                let is_in_log = (self.tail..self.head).contains(&extent.place);
                assert!(is_in_log, "place {} of zone {physical}", extent.place);
                let owner = self.owners[self.slot_of(extent.place)];
                assert_eq!(owner, (physical, extent.first), "who has a place");
                used[self.row_of(extent.place)] += 1;
            }
            assert!(before < Some(zone.end) || before.is_none(), "{physical}");
            let is_there = zone.begun <= zone.programmed && zone.programmed <= zone.end;
            assert!(
                is_there || before.is_none(),
                "zone {physical} folds what is not there"
            );
        }
        assert_eq!(used, self.used, "places of rows that hold something");
    }
}
