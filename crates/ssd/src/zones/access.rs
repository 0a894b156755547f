//! Reads, writes and appends: whether zones allow them, and where they go.

use zonelab_device::Lba;
use zonelab_device::ZoneId;
use zonelab_nvme::Status;

use super::Extent;
use super::Zone;
use super::Zones;
use super::table::Event;
use super::table::Placement;
use super::table::State;

/// A place in a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    pub(crate) zone: ZoneId,
    /// Blocks from the start of the zone.
    pub(crate) offset_lbas: u64,
    /// Generation of the zone ([`Zones::generation`]).
    pub(crate) generation: u32,
}

impl Zones {
    /// Writes `nlb` blocks at `slba`: at the write pointer, or in the random write
    /// area of a zone that has one.
    ///
    /// # Errors
    /// Invalid Field (no blocks), LBA Out of Range, Zone Boundary Error, Zone Is
    /// Full, Zone Is Read Only, Zone Is Offline, Zone Invalid Write, Too Many
    /// Active Zones, Too Many Open Zones. Nothing has changed then.
    #[inline]
    pub fn write(&mut self, slba: Lba, nlb: u32) -> Result<Extent, Status> {
        let (index, offset) = self.locate(slba, nlb)?;
        let fits = offset <= self.capacity_lbas && u64::from(nlb) <= self.capacity_lbas - offset;
        if !fits {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if let Some(end) = self.areas.end_of(index) {
            return self.write_zrwa(index, offset, nlb, end);
        }
        let pointer = self.zones[index].written_lbas(self.capacity_lbas);
        if offset == pointer {
            self.place(index, pointer, nlb)
        } else {
            self.place_as(Placement::Elsewhere, index, pointer, nlb)
        }
    }

    /// Appends `nlb` blocks to the zone that starts at `zslba`; the extent says where they went.
    ///
    /// # Errors
    /// Invalid Field (no blocks, or `zslba` is not the start of a zone), LBA Out
    /// of Range, Zone Is Full, Zone Is Read Only, Zone Is Offline, Invalid Zone
    /// Operation Request (the zone has a random write area), Zone Boundary Error,
    /// Too Many Active Zones, Too Many Open Zones. Nothing has changed then.
    #[inline]
    pub fn append(&mut self, zslba: Lba, nlb: u32) -> Result<Extent, Status> {
        let (index, offset) = self.locate(zslba, nlb)?;
        if offset != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if self.areas.end_of(index).is_some() {
            return Err(self.append_zrwa(index));
        }
        let pointer = self.zones[index].written_lbas(self.capacity_lbas);
        self.place(index, pointer, nlb)
    }

    /// Checks a read of `nlb` blocks from `slba`. Blocks that were never written can be read.
    ///
    /// # Errors
    /// Invalid Field (no blocks), LBA Out of Range, Zone Is Offline, Zone
    /// Boundary Error (in more than one zone, and the drive does not allow that).
    #[inline]
    pub fn read(&self, slba: Lba, nlb: u32) -> Result<(), Status> {
        let (first, offset) = self.locate(slba, nlb)?;
        self.check_readable(first)?;
        if u64::from(nlb) <= self.size_lbas - offset {
            return Ok(());
        }
        if !self.read_across {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        let last = self.index_of(slba.0 + u64::from(nlb) - 1);
        (first + 1..=last).try_for_each(|index| self.check_readable(index))
    }

    /// Where a read is that needs no more than a look at one zone, in which all of its blocks
    /// have been written. The blocks are of the drive, and at least one.
    #[inline(always)]
    pub(crate) fn read_within(&self, slba: u64, nlb: u32) -> Option<Within> {
        let (within, zone) = self.within(slba)?;
        let end = within.offset_lbas + u64::from(nlb);
        (end <= zone.host_lbas && zone.state != State::Offline).then_some(within)
    }

    /// Where a write goes that changes nothing but the write pointer of a zone that is open and
    /// stays so. The blocks are of the drive, and at least one.
    #[inline(always)]
    pub(crate) fn write_within(&self, slba: u64, nlb: u32) -> Option<Within> {
        let (within, zone) = self.within(slba)?;
        (within.offset_lbas == zone.host_lbas && self.stays_open(&within, zone, nlb))
            .then_some(within)
    }

    /// The same for an append to the zone that begins at `zslba`.
    #[inline(always)]
    pub(crate) fn append_within(&self, zslba: u64, nlb: u32) -> Option<Within> {
        let (mut within, zone) = self.within(zslba)?;
        let is_start = within.offset_lbas == 0;
        within.offset_lbas = zone.host_lbas;
        (is_start && self.stays_open(&within, zone, nlb)).then_some(within)
    }

    /// A write or append has been put there.
    #[inline]
    pub(crate) fn wrote_within(&mut self, zone: ZoneId, nlb: u32) {
        self.zones[zone.0 as usize].host_lbas += u64::from(nlb);
    }

    #[inline(always)]
    fn within(&self, lba: u64) -> Option<(Within, &Zone)> {
        let index = self.index_of(lba);
        let zone = self.zones.get(index)?;
        let within = Within {
            zone: self.id(index),
            offset_lbas: lba - self.start_of(index).0,
            generation: zone.generation,
        };
        Some((within, zone))
    }

    #[inline(always)]
    fn stays_open(&self, at: &Within, zone: &Zone, nlb: u32) -> bool {
        zone.state.is_open()
            && u64::from(nlb) < self.capacity_lbas - zone.host_lbas
            && self.areas.end_of(at.zone.0 as usize).is_none()
    }

    /// The zone of `nlb` blocks, at least one, from an address of the drive on; `None`: they are
    /// of several.
    #[inline(always)]
    pub(crate) fn only_zone_of(&self, slba: u64, nlb: u32) -> Option<ZoneId> {
        let first = self.index_of(slba);
        (first == self.index_of(slba + u64::from(nlb) - 1)).then(|| self.id(first))
    }

    /// Puts `nlb` blocks at the write pointer of a zone.
    #[inline]
    fn place(&mut self, index: usize, pointer: u64, nlb: u32) -> Result<Extent, Status> {
        self.place_as(self.placement_at(pointer, nlb), index, pointer, nlb)
    }

    #[inline]
    fn placement_at(&self, pointer: u64, nlb: u32) -> Placement {
        debug_assert!(pointer <= self.capacity_lbas, "write pointer past capacity");
        match u64::from(nlb).cmp(&(self.capacity_lbas - pointer)) {
            std::cmp::Ordering::Less => Placement::Within,
            std::cmp::Ordering::Equal => Placement::Filling,
            std::cmp::Ordering::Greater => Placement::Beyond,
        }
    }

    /// Where a write would go, without writing: zone, and blocks from its start.
    ///
    /// # Errors
    /// Those of [`Zones::write`].
    pub(crate) fn place_of_write(&self, slba: Lba, nlb: u32) -> Result<(ZoneId, u64), Status> {
        let (index, offset) = self.locate(slba, nlb)?;
        let fits = offset <= self.capacity_lbas && u64::from(nlb) <= self.capacity_lbas - offset;
        if !fits {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        let pointer = self.zones[index].written_lbas(self.capacity_lbas);
        let (event, placement) = if self.areas.end_of(index).is_some() {
            (
                Event::WriteZrwa,
                self.placement_in_zrwa(index, offset, nlb).0,
            )
        } else if offset == pointer {
            (Event::Write, self.placement_at(pointer, nlb))
        } else {
            (Event::Write, Placement::Elsewhere)
        };
        self.would_allow(index, event, placement)?;
        Ok((self.id(index), offset))
    }

    /// The same for an append.
    ///
    /// # Errors
    /// Those of [`Zones::append`].
    pub(crate) fn place_of_append(&self, zslba: Lba, nlb: u32) -> Result<(ZoneId, u64), Status> {
        let (index, offset) = self.locate(zslba, nlb)?;
        if offset != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if self.areas.end_of(index).is_some() {
            return Err(self.append_zrwa(index));
        }
        let pointer = self.zones[index].written_lbas(self.capacity_lbas);
        self.would_allow(index, Event::Write, self.placement_at(pointer, nlb))?;
        Ok((self.id(index), pointer))
    }

    fn would_allow(&self, index: usize, event: Event, placement: Placement) -> Result<(), Status> {
        let condition = self.condition(index, placement);
        let status = super::table::outcome(self.zones[index].state, event, condition).status;
        if status.is_success() {
            Ok(())
        } else {
            Err(status)
        }
    }

    #[inline]
    fn place_as(
        &mut self,
        placement: Placement,
        index: usize,
        pointer: u64,
        nlb: u32,
    ) -> Result<Extent, Status> {
        let from = self.zones[index].state;
        let outcome = super::table::outcome(from, Event::Write, self.condition(index, placement));
        if !outcome.status.is_success() {
            return Err(outcome.status);
        }
        let closed = self.make_room(index, outcome);
        self.enter(index, outcome);
        self.zones[index].host_lbas += u64::from(nlb);
        Ok(Extent {
            zone: self.id(index),
            slba: Lba(self.start_of(index).0 + pointer),
            offset_lbas: pointer,
            nlb,
            was_empty: from == State::Empty,
            opened: outcome.takes_open,
            filled: outcome.next == State::Full,
            closed: closed.map(|index| self.id(index)),
            zrwa: None,
        })
    }

    /// The zone of a command on `nlb` blocks from `slba`, and the offset of `slba` in it.
    #[inline]
    pub(super) fn locate(&self, slba: Lba, nlb: u32) -> Result<(usize, u64), Status> {
        if nlb == 0 {
            return Err(Status::INVALID_FIELD);
        }
        match slba.0.checked_add(u64::from(nlb)) {
            Some(end) if end <= self.drive_lbas => {
                let index = self.index_of(slba.0);
                Ok((index, slba.0 - self.start_of(index).0))
            }
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    #[inline]
    fn check_readable(&self, index: usize) -> Result<(), Status> {
        match self.zones[index].state {
            State::Offline => Err(Status::ZONE_IS_OFFLINE),
            _ => Ok(()),
        }
    }
}
