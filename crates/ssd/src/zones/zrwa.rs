//! Zone random write areas (ZRWA; ZNS command set 1.1, and TP4076 before it).
//!
//! A zone that is opened with ZRWA Allocation, or gets its descriptor extension
//! so, has an *area*: the blocks from its write pointer on, as many as the size
//! of areas (ZRWASZ) and as the zone has left. They can be written in any order
//! and again. Behind the area, and as large, is the *implicit commit region*: a
//! write that reaches into it moves the write pointer, in multiples of the flush
//! granularity (ZRWAFG), as far as it must for the write to end within the area.
//! Flush Explicit ZRWA moves it to behind a block of the area. What the write
//! pointer moves over is *committed*: it is as final as other written blocks,
//! and what was not written of it reads as zeros.
//!
//! A zone keeps its area as long as it is active, closed or open. A finish
//! commits what was written to it.
//!
//! The write pointer of a zone with an area is always a multiple of the flush
//! granularity, since the profile checks make the size of areas and the zone
//! capacity multiples of it.

use zonelab_device::{Lba, ZoneId};
use zonelab_nvme::Status;

use super::table::{self, Event, Placement, State};
use super::{Committed, Extent, Zones};
use crate::config::ZonesConfig;

/// No area, and no block came through one.
const NONE: u64 = u64::MAX;
/// The zone had an area until it became full or failed.
const LEFT: u64 = u64::MAX - 1;

/// The areas of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Areas {
    size_lbas: u64,
    granularity_lbas: u64,
    explicit_flush: bool,
    /// By zone: the block behind the last that was written, from the start of
    /// the zone; [`NONE`] or [`LEFT`]. Empty if zones have no areas.
    ends: Box<[u64]>,
}

impl Areas {
    pub(super) fn new(config: &ZonesConfig) -> Self {
        let Some(zrwa) = &config.zrwa else {
            return Self::default();
        };
        Self {
            size_lbas: zrwa.size_lbas.into(),
            granularity_lbas: zrwa.flush_granularity_lbas.into(),
            explicit_flush: zrwa.explicit_flush,
            ends: vec![NONE; config.count as usize].into_boxed_slice(),
        }
    }

    /// Zones can have areas.
    #[inline]
    pub(super) const fn are_supported(&self) -> bool {
        !self.ends.is_empty()
    }

    /// If the zone has an area: the block behind the last that was written.
    #[inline]
    pub(super) fn end_of(&self, index: usize) -> Option<u64> {
        self.ends.get(index).copied().filter(|end| *end < LEFT)
    }

    /// The zone has an area, or its blocks came through one.
    fn was_used(&self, index: usize) -> bool {
        self.ends.get(index).is_some_and(|end| *end != NONE)
    }

    /// How far a write that ends at `end` moves the write pointer.
    fn implicit_commit(&self, pointer: u64, end: u64) -> u64 {
        end.saturating_sub(pointer + self.size_lbas)
            .next_multiple_of(self.granularity_lbas)
    }
}

impl Zones {
    /// Whether a zone has a random write area (ZRWAV of its descriptor).
    #[must_use]
    pub fn has_zrwa(&self, zone: ZoneId) -> bool {
        self.areas.end_of(zone.0 as usize).is_some()
    }

    /// The block behind the last one that the host wrote to the random write
    /// area of a zone, or its write pointer if that is further, from the start
    /// of the zone; `None` if it has none.
    #[must_use]
    pub fn zrwa_end_lbas(&self, zone: ZoneId) -> Option<u64> {
        let end = self.areas.end_of(zone.0 as usize)?;
        Some(end.max(self.host_lbas(zone)))
    }

    /// Whether the blocks of a zone came through a random write area.
    pub(crate) fn came_through_zrwa(&self, zone: ZoneId) -> bool {
        self.areas.was_used(zone.0 as usize)
    }

    /// A write to a zone whose area was written up to `written_end`. The blocks
    /// are within the capacity.
    pub(super) fn write_zrwa(
        &mut self,
        index: usize,
        offset: u64,
        nlb: u32,
        written_end: u64,
    ) -> Result<Extent, Status> {
        let end = offset + u64::from(nlb);
        let (placement, commit) = self.placement_in_zrwa(index, offset, nlb);
        let mut extent = self.commit(index, Event::WriteZrwa, placement, commit)?;
        if let Some(written) = self.areas.ends.get_mut(index).filter(|end| **end < LEFT) {
            *written = written_end.max(end);
        }
        extent.slba = Lba(self.start_of(index).0 + offset);
        extent.offset_lbas = offset;
        extent.nlb = nlb;
        Ok(extent)
    }

    /// Where a write to a zone with an area is, and how many blocks it commits.
    pub(super) fn placement_in_zrwa(
        &self,
        index: usize,
        offset: u64,
        nlb: u32,
    ) -> (Placement, u64) {
        let pointer = self.zones[index].host_lbas;
        let end = offset + u64::from(nlb);
        let is_in_reach = offset >= pointer && end <= pointer + 2 * self.areas.size_lbas;
        let commit = self.areas.implicit_commit(pointer, end);
        if is_in_reach {
            (self.placement_of_commit(pointer, commit), commit)
        } else {
            (Placement::Elsewhere, commit)
        }
    }

    /// An append to a zone that has an area.
    pub(super) fn append_zrwa(&self, index: usize) -> Status {
        let condition = self.condition(index, Placement::Within);
        table::outcome(self.zones[index].state, Event::AppendZrwa, condition).status
    }

    /// Flush Explicit ZRWA: commits the blocks from the write pointer of a zone
    /// up to `last`. The extent is what was committed.
    ///
    /// # Errors
    /// LBA Out of Range; Invalid Field (zones have no areas, or the drive has no
    /// explicit flush); Invalid Zone Operation Request (`last` is not in the
    /// area, or not the last block of a flush granularity, or the zone has no
    /// area); Too Many Open Zones. Nothing has changed then.
    pub fn commit_zrwa(&mut self, last: Lba) -> Result<Extent, Status> {
        let (index, offset) = self.locate(last, 1)?;
        if !self.areas.explicit_flush {
            return Err(Status::INVALID_FIELD);
        }
        let pointer = self.zones[index].host_lbas;
        let area_end = (pointer + self.areas.size_lbas).min(self.capacity_lbas);
        let is_in_area =
            self.areas.end_of(index).is_some() && (pointer..area_end).contains(&offset);
        let commit = (offset + 1).saturating_sub(pointer);
        let placement = if is_in_area && commit.is_multiple_of(self.areas.granularity_lbas) {
            self.placement_of_commit(pointer, commit)
        } else {
            Placement::Elsewhere
        };
        self.commit(index, Event::CommitZrwa, placement, commit)
    }

    const fn placement_of_commit(&self, pointer: u64, commit: u64) -> Placement {
        if pointer + commit < self.capacity_lbas {
            Placement::Within
        } else {
            Placement::Filling
        }
    }

    /// Moves the write pointer of a zone with an area by `commit`, if the table
    /// lets it.
    fn commit(
        &mut self,
        index: usize,
        event: Event,
        placement: Placement,
        commit: u64,
    ) -> Result<Extent, Status> {
        let pointer = self.zones[index].host_lbas;
        let from = self.zones[index].state;
        let outcome = table::outcome(from, event, self.condition(index, placement));
        if !outcome.status.is_success() {
            return Err(outcome.status);
        }
        let closed = self.make_room(index, outcome);
        self.enter(index, outcome);
        self.zones[index].host_lbas += commit;
        let committed = Committed {
            offset_lbas: pointer,
            // Fits: no more than the size of an area.
            nlb: commit as u32,
        };
        Ok(Extent {
            zone: self.id(index),
            slba: Lba(self.start_of(index).0 + pointer),
            offset_lbas: pointer,
            nlb: committed.nlb,
            was_empty: false,
            opened: outcome.takes_open,
            filled: outcome.next == State::Full,
            closed: closed.map(|index| self.id(index)),
            zrwa: Some(committed),
        })
    }

    /// Gives a zone an area, with nothing written to it.
    pub(super) fn allocate_zrwa(&mut self, index: usize) {
        if let Some(end) = self.areas.ends.get_mut(index) {
            *end = 0;
            let of = &mut self.namespaces[usize::from(self.zones[index].namespace)];
            of.zrwa += 1;
            assert!(of.zrwa <= of.max_zrwa, "too many random write areas");
        }
    }

    /// A zone is not active any more: it has no area.
    pub(super) fn leave_zrwa(&mut self, index: usize, next: State) {
        self.take_zrwa(index);
        if let Some(end) = self.areas.ends.get_mut(index)
            && next == State::Empty
        {
            *end = NONE;
        }
    }

    /// Takes the area from a zone that has one, which is remembered.
    pub(super) fn take_zrwa(&mut self, index: usize) {
        if let Some(end) = self.areas.ends.get_mut(index).filter(|end| **end < LEFT) {
            *end = LEFT;
            let of = &mut self.namespaces[usize::from(self.zones[index].namespace)];
            of.zrwa = of
                .zrwa
                .checked_sub(1)
                .expect("a count is the number of zones with an area");
        }
    }

    /// Areas as a snapshot keeps them: zone, and how far its area was written.
    pub(crate) fn saved_zrwa(&self) -> Vec<(u32, u64)> {
        let zones = (0..self.count()).map(ZoneId);
        zones
            .filter_map(|zone| Some((zone.0, self.areas.end_of(zone.0 as usize)?)))
            .collect()
    }

    /// Gives zones areas from data, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn restore_zrwa(&mut self, saved: &[(u32, u64)]) -> Result<(), String> {
        for &(zone, end) in saved {
            let index = zone as usize;
            let impossible = || format!("random write area of zone {zone}");
            let of = self.zones.get(index).ok_or_else(impossible)?;
            let namespace = &self.namespaces[usize::from(of.namespace)];
            let fits = of.state.is_active()
                && namespace.zrwa < namespace.max_zrwa
                && self.areas.are_supported()
                && !self.areas.was_used(index)
                && self.is_possible_area(index, end);
            if !fits {
                return Err(impossible());
            }
            self.allocate_zrwa(index);
            self.areas.ends[index] = end;
        }
        Ok(())
    }

    /// Whether an active zone can have an area that was written up to `end`.
    fn is_possible_area(&self, index: usize, end: u64) -> bool {
        let pointer = self.zones[index].host_lbas;
        let area_end = (pointer + self.areas.size_lbas).min(self.capacity_lbas);
        end <= area_end && pointer.is_multiple_of(self.areas.granularity_lbas)
    }

    /// Asserts what must always hold of areas.
    pub(super) fn assert_zrwa(&self) {
        let has = |index: &usize| self.areas.end_of(*index).is_some();
        for namespace in &self.namespaces {
            let range = namespace.zones();
            let held = (range.start as usize..range.end as usize).filter(has);
            assert_eq!(namespace.zrwa as usize, held.count());
            assert!(namespace.zrwa <= namespace.max_zrwa);
        }
        for index in (0..self.zones.len()).filter(has) {
            let end = self.areas.ends[index];
            assert!(self.zones[index].state.is_active());
            assert!(self.is_possible_area(index, end));
        }
    }
}
