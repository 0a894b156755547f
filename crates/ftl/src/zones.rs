//! The data zones: what state each is in, and how many of its blocks hold something.

use crate::blocks::DataZone;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Mutex, Ordering, lock};

/// What a data zone is to the layer. (The drive has states of its own.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ZoneUse {
    /// Empty, to be written.
    Free,
    /// Somebody writes it, or its footer is being written.
    Open,
    /// Written as far as it will be: a victim for the collector, sooner or later.
    Closed,
    /// The collector moves its blocks, or waits to reset it.
    Collecting,
    /// It cannot be reset any more, or not be emptied, since blocks in it cannot be read.
    Retired,
}

impl ZoneUse {
    const ALL: [Self; 5] = [
        Self::Free,
        Self::Open,
        Self::Closed,
        Self::Collecting,
        Self::Retired,
    ];
}

#[derive(Debug)]
struct Cell {
    state: AtomicU8,
    generation: AtomicU8,
    /// Blocks that the map knows here.
    valid: AtomicU32,
    /// The number of the zone among those that were closed: the smaller, the older.
    closed: AtomicU64,
}

/// The data zones of a drive.
#[derive(Debug)]
pub struct ZoneTable {
    cells: Box<[Cell]>,
    /// Zones to be written, in the order in which they became free.
    free: Mutex<std::collections::VecDeque<DataZone>>,
    free_count: AtomicU32,
    /// Zones that were closed.
    closings: AtomicU64,
    /// Zones that the drive counts as active for data: of programs, and of the collector.
    active: [AtomicU32; 2],
}

/// How often what a zone was opened for had been moved: 0 is what programs write, 1 what the
/// collector moves out of such zones, and so on. (After a mount all closed zones are taken for
/// the former.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) u8);

impl Generation {
    /// What programs write.
    pub(crate) const QUEUES: Self = Self(0);
    /// What the collector moves for the first time.
    pub(crate) const MOVED: Self = Self(1);

    /// What is moved out of such a zone, if there are `most` generations of moved blocks.
    pub(crate) fn next(self, most: u32) -> Self {
        Self(u32::from(self.0 + 1).min(most) as u8)
    }

    /// Where the active zones of those who write it are counted.
    const fn writer(self) -> usize {
        (self.0 > 0) as usize
    }
}

impl ZoneTable {
    /// Zones of which nothing is known: all are [`ZoneUse::Closed`] and empty.
    pub(crate) fn new(zones: u32) -> Self {
        let cells = (0..zones).map(|_| Cell {
            state: AtomicU8::new(ZoneUse::Closed as u8),
            generation: AtomicU8::new(Generation::QUEUES.0),
            valid: AtomicU32::new(0),
            closed: AtomicU64::new(0),
        });
        Self {
            cells: cells.collect(),
            free: Mutex::default(),
            free_count: AtomicU32::new(0),
            closings: AtomicU64::new(0),
            active: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// All data zones.
    pub fn all(&self) -> impl Iterator<Item = DataZone> + Clone + use<> {
        (0..self.cells.len() as u32).map(DataZone)
    }

    fn cell(&self, zone: DataZone) -> &Cell {
        &self.cells[zone.0 as usize]
    }

    /// What it is.
    #[must_use]
    pub fn state(&self, zone: DataZone) -> ZoneUse {
        ZoneUse::ALL[usize::from(self.cell(zone).state.load(Ordering::Acquire))]
    }

    pub(crate) fn set_state(&self, zone: DataZone, state: ZoneUse) {
        self.cell(zone).state.store(state as u8, Ordering::Release);
    }

    /// Blocks in it that hold something.
    #[must_use]
    pub fn valid(&self, zone: DataZone) -> u32 {
        self.cell(zone).valid.load(Ordering::Acquire)
    }

    /// Its place in the order of closing: the smaller, the longer ago.
    #[must_use]
    pub fn closed_as(&self, zone: DataZone) -> u64 {
        self.cell(zone).closed.load(Ordering::Relaxed)
    }

    /// Zones that were closed since the mount.
    #[must_use]
    pub fn closings(&self) -> u64 {
        self.closings.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn add_valid(&self, zone: DataZone, blocks: u32) {
        self.cell(zone).valid.fetch_add(blocks, Ordering::AcqRel);
    }

    /// A block of it holds nothing any more. Returns whether none does now.
    #[inline]
    pub(crate) fn lose_valid(&self, zone: DataZone) -> bool {
        let before = self.cell(zone).valid.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "zone {zone:?} had no valid block to lose");
        before == 1
    }

    /// Zones that can be taken.
    #[inline]
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free_count.load(Ordering::Acquire)
    }

    /// Zones that the drive counts as active for data.
    #[must_use]
    pub fn active(&self) -> u32 {
        let each = self.active.iter();
        each.map(|zones| zones.load(Ordering::Acquire)).sum()
    }

    /// It is empty and can be written.
    pub(crate) fn add_free(&self, zone: DataZone) {
        self.set_state(zone, ZoneUse::Free);
        let mut free = lock(&self.free);
        free.push_back(zone);
        self.free_count.store(free.len() as u32, Ordering::Release);
    }

    /// How often what it was opened for had been moved.
    pub(crate) fn generation(&self, zone: DataZone) -> Generation {
        Generation(self.cell(zone).generation.load(Ordering::Relaxed))
    }

    /// Takes a zone to write, if more than `keep` are free and fewer than `active` are
    /// active of those that the same write: programs, or the collector.
    pub(crate) fn take_free(
        &self,
        generation: Generation,
        keep: u32,
        active: u32,
    ) -> Option<DataZone> {
        let mut free = lock(&self.free);
        let written = self.active[generation.writer()].load(Ordering::Acquire);
        if free.len() as u32 <= keep || written >= active {
            return None;
        }
        let zone = free.pop_front()?;
        self.free_count.store(free.len() as u32, Ordering::Release);
        self.note_open(zone, generation);
        Some(zone)
    }

    /// It is open: taken, or found so.
    pub(crate) fn note_open(&self, zone: DataZone, generation: Generation) {
        self.active[generation.writer()].fetch_add(1, Ordering::AcqRel);
        let cell = self.cell(zone);
        cell.generation.store(generation.0, Ordering::Relaxed);
        self.set_state(zone, ZoneUse::Open);
    }

    /// An open zone is written as far as it will be, and not active any more.
    pub(crate) fn note_closed(&self, zone: DataZone) {
        self.active[self.generation(zone).writer()].fetch_sub(1, Ordering::AcqRel);
        self.note_found_closed(zone);
    }

    /// It was found written.
    pub(crate) fn note_found_closed(&self, zone: DataZone) {
        let number = self.closings.fetch_add(1, Ordering::Relaxed);
        self.cell(zone).closed.store(number, Ordering::Relaxed);
        self.set_state(zone, ZoneUse::Closed);
    }

    /// An open zone can be written no more, and never again.
    pub(crate) fn note_lost(&self, zone: DataZone) {
        self.active[self.generation(zone).writer()].fetch_sub(1, Ordering::AcqRel);
        self.set_state(zone, ZoneUse::Retired);
    }
}
