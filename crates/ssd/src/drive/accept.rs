//! What happens to a command when it arrives: it is refused, or has its place.

use zonelab_device::{Found, Lba, NamespaceId, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::thin::opened_by;
use super::{Core, Drive};
use crate::background::Background;
use crate::contents::{Data, NotWritten};
use crate::copy::Copies;
use crate::flash::{BlockRange, Target};
use crate::ranges::{self, LbaRange};
use crate::zones::{Change, Extent, Zones};

impl Core {
    /// Makes the blocks of a write of zeros zeros before its zone takes them.
    fn zero_ahead(&mut self, slba: Lba, nlb: u32) -> Result<(), Status> {
        let has_areas = self.config.zones.zrwa.is_some();
        let lba_bytes = u64::from(self.config.lba_bytes);
        let Some(data) = &mut self.data else {
            return Ok(());
        };
        // Without random write areas, the blocks behind the write pointer hold
        // zeros already.
        if !has_areas && matches!(data, Data::Memory(_)) {
            return Ok(());
        }
        let (zone, offset) = self.zones.place_of_write(slba, nlb)?;
        let range = offset * lba_bytes..(offset + u64::from(nlb)) * lba_bytes;
        match data {
            Data::Memory(data) => data.discard(zone, range),
            Data::Outside(contents) => {
                let written = contents.write_zeroes(zone, range);
                written.map_err(NotWritten::status)?;
            }
        }
        Ok(())
    }

    /// Writes data that can fail to be written before its zone takes it: behind
    /// a write pointer, nothing counts.
    #[inline]
    fn write_ahead(
        &mut self,
        request: u32,
        place: impl FnOnce(&Zones) -> Result<(ZoneId, u64), Status>,
    ) -> Result<(), Status> {
        let lba_bytes = u64::from(self.config.lba_bytes);
        let Some(data) = self.data.as_mut().filter(|data| data.can_fail()) else {
            return Ok(());
        };
        let (zone, offset) = place(&self.zones)?;
        match &self.requests.at(request).data {
            Some(buf) => data
                .write(zone, offset * lba_bytes, buf)
                .map_err(NotWritten::status),
            None => Ok(()),
        }
    }

    /// What the front end charges for a transfer that was accepted.
    #[inline]
    pub(crate) fn charge(&mut self, op: &Op, nlb: u32, opened: bool) -> Nanos {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        self.front.charge(op, bytes, opened)
    }

    /// Counts the zone that a write closed, and charges the write. Returns when it is processed.
    #[inline]
    pub(crate) fn charge_write(
        &mut self,
        op: &Op,
        nlb: u32,
        extent: &Extent,
        processed: Nanos,
    ) -> Nanos {
        self.totals.implicit_closes += u64::from(extent.closed.is_some());
        processed.saturating_add(self.charge(op, nlb, extent.opened))
    }

    /// What zone management found to do in the zones that it changes: a reset the blocks that
    /// they held. A finish adds what it fills as it does so ([`Self::finish_fills`]).
    fn found_in_zones(action: ZoneSendAction, changes: &[Change]) -> Found {
        match action {
            ZoneSendAction::RESET => Found::blocks(changes.iter().map(|of| of.written_lbas).sum()),
            _ if changes.is_empty() => Found::Nothing,
            _ => Found::Work(0),
        }
    }

    /// A finish, for which a command waits or none, programs these blocks of its zone.
    pub(crate) fn finish_fills(&mut self, request: Option<u32>, range: BlockRange) {
        let Some(request) = request else { return };
        // What comes behind the capacity is the rest of its last page.
        let end = u64::from(range.first + range.count).min(self.config.zones.capacity_lbas);
        let filled = Found::blocks(end.saturating_sub(u64::from(range.first)));
        let request = self.requests.at(request);
        request.found = request.found.with(filled);
    }

    /// The rules that hold for every data transfer.
    pub(crate) fn check_transfer(
        &mut self,
        nlb: u32,
        max_bytes: u32,
        request: u32,
    ) -> Result<(), Status> {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let fits = match &self.requests.at(request).data {
            Some(buf) => buf.len() as u64 == bytes,
            None => true,
        };
        if nlb == 0 || !fits || (max_bytes != u32::MAX && bytes > u64::from(max_bytes)) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(())
    }

    /// `start`, but not before what was accepted for the zone earlier starts:
    /// a cheap command must not get to the flash before a dear one that its
    /// zone accepted first.
    #[inline]
    pub(crate) fn in_zone_order(&mut self, zone: ZoneId, start: Nanos) -> Nanos {
        match self.zone_starts.get_mut(zone.0 as usize) {
            Some(last) => {
                *last = start.max(*last);
                *last
            }
            // Without delays, the order of arrival is that of the starts.
            None => start,
        }
    }

    /// Dataset Management, Deallocate. A zone gives its flash back when it is
    /// reset and not before, so that nothing becomes of it there: the ranges
    /// are checked, and keep their data.
    #[cold]
    pub(crate) fn accept_deallocate(
        &mut self,
        nsid: NamespaceId,
        ranges: u16,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        let data = self.requests.at(request).data.as_deref();
        let all = data.and_then(|data| ranges::of_deallocate(data, ranges));
        let mut all = all.filter(|_| ranges > 0).ok_or(Status::INVALID_FIELD)?;
        let namespace = self.zones.namespace(nsid);
        let namespace = namespace.ok_or(Status::INVALID_NAMESPACE_OR_FORMAT)?;
        if !all.all(|LbaRange { slba, nlb }| namespace.contains(slba, nlb)) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok(self
            .front
            .fetch(processed, ranges::deallocate_bytes(ranges)))
    }
}

/// What takes writes that a zone accepts: it gives them their place, and data theirs, in order
/// of arrival.
pub(crate) struct Acceptance<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) background: &'a mut Background,
    pub(crate) copies: &'a mut Copies,
}

impl Acceptance<'_> {
    /// A write of zeros, which the host does not send.
    fn accept_zeroes(&mut self, op: Op, request: u32, processed: Nanos) -> Result<Nanos, Status> {
        let (slba, nlb) = (Lba(op.first_block()), op.nlb());
        self.core.check_transfer(nlb, u32::MAX, request)?;
        self.core.zero_ahead(slba, nlb)?;
        let extent = self.core.zones.write(slba, nlb)?;
        let processed = self.core.charge_write(&op, nlb, &extent, processed);
        Ok(self.place_write(&extent, nlb, request, (processed, 0)))
    }

    /// A write of data that the host sends.
    #[inline]
    fn accept_write(&mut self, op: Op, request: u32, processed: Nanos) -> Result<Nanos, Status> {
        let (slba, nlb) = (Lba(op.first_block()), op.nlb());
        let most_bytes = self.core.info.max_transfer_bytes;
        self.core.check_transfer(nlb, most_bytes, request)?;
        self.core
            .write_ahead(request, |zones| zones.place_of_write(slba, nlb))?;
        let extent = self.core.zones.write(slba, nlb)?;
        Ok(self.take_write(&op, &extent, request, processed))
    }

    /// The same at the write pointer of a zone.
    #[inline]
    fn accept_append(&mut self, op: Op, request: u32, processed: Nanos) -> Result<Nanos, Status> {
        let (zslba, nlb) = (Lba(op.first_block()), op.nlb());
        let most_bytes = self.core.info.max_append_bytes;
        self.core.check_transfer(nlb, most_bytes, request)?;
        self.core
            .write_ahead(request, |zones| zones.place_of_append(zslba, nlb))?;
        let extent = self.core.zones.append(zslba, nlb)?;
        self.core.requests.at(request).result = zslba.0 + extent.offset_lbas;
        Ok(self.take_write(&op, &extent, request, processed))
    }

    /// Takes a write that its zone has accepted. Returns when its flash work starts.
    #[inline]
    fn take_write(&mut self, op: &Op, extent: &Extent, request: u32, processed: Nanos) -> Nanos {
        let nlb = op.nlb();
        let processed = self.core.charge_write(op, nlb, extent, processed);
        let lba_bytes = u64::from(self.core.config.lba_bytes);
        if let (Some(Data::Memory(data)), Some(buf)) =
            (&mut self.core.data, &self.core.requests.at(request).data)
            && !data.is_limited()
        {
            data.write(extent.zone, extent.offset_lbas * lba_bytes, buf);
        }
        let fetched = (processed, u64::from(nlb) * lba_bytes);
        self.place_write(extent, nlb, request, fetched)
    }

    /// Finds flash for blocks that a zone has accepted, or a place in its random
    /// write area. The command is `processed` then, and so many bytes of it are
    /// fetched from the host. Returns when its flash work starts.
    #[inline]
    pub(crate) fn place_write(
        &mut self,
        extent: &Extent,
        nlb: u32,
        request: u32,
        (processed, fetched_bytes): (Nanos, u64),
    ) -> Nanos {
        if extent.zrwa.is_some() {
            return self.place_in_zrwa(extent, nlb, request, (processed, fetched_bytes));
        }
        let (zone, offset_lbas) = (extent.zone, extent.offset_lbas);
        let (physical, processed) = self.background.map_zone(self.core, zone, processed);
        // Fits: a zone has fewer than 2^32 pages, and profiles keep its blocks below 2^32 too.
        let range = BlockRange {
            first: offset_lbas as u32,
            count: nlb,
        };
        let generation = self.core.zones.generation(zone);
        if !self.copies.is_empty() {
            self.copies.join_behind(zone, generation, request);
        }
        let lba_bytes = u64::from(self.core.config.lba_bytes);
        self.core.totals.host_write_bytes += u64::from(nlb) * lba_bytes;
        let request = self.core.requests.at(request);
        request.target = Target { physical, range };
        request.generation = generation;
        let fetched = self.core.front.fetch(processed, fetched_bytes);
        self.core.in_zone_order(zone, fetched)
    }
}

impl Drive {
    #[inline]
    fn acceptance(&mut self) -> Acceptance<'_> {
        Acceptance {
            core: &mut self.core,
            background: &mut self.background,
            copies: &mut self.copies,
        }
    }

    /// Checks a command on a namespace that exists, with its address counted
    /// over the drive, and does everything about it that must happen in order
    /// of arrival: zone states, mapping, data. Returns when it goes on:
    /// `processed`, or when its data has arrived.
    #[inline]
    pub(super) fn accept(
        &mut self,
        nsid: NamespaceId,
        op: Op,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        if self.core.config.allocation.thin {
            self.accept_thin(nsid, op, request, processed)
        } else {
            self.accept_backed(nsid, op, request, processed)
        }
    }

    /// [`Drive::accept`] of a thin drive.
    #[cold]
    pub(super) fn accept_thin(
        &mut self,
        nsid: NamespaceId,
        op: Op,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        let zone = opened_by(&op).and_then(|slba| self.core.zones.zone_of(slba));
        let Some(zone) = zone.filter(|zone| self.core.flash.mapping().physical(*zone).is_none())
        else {
            return self.accept_backed(nsid, op, request, processed);
        };
        let is_short = self.core.flash.zones_left(zone) == 0;
        self.core.zones.set_short_of_flash(is_short);
        let accepted = self.accept_backed(nsid, op, request, processed);
        self.core.zones.set_short_of_flash(false);
        match accepted {
            Err(Status::TOO_MANY_ACTIVE_ZONES)
                if is_short && self.core.zones.can_be_active(zone) =>
            {
                Err(Status::CAPACITY_EXCEEDED)
            }
            // Explicitly opened, with a descriptor extension, or with a random write
            // area that has committed nothing yet.
            Ok(start) if self.core.is_active(zone) => {
                let (_, start) = self.background.map_zone(&mut self.core, zone, start);
                Ok(self.core.in_zone_order(zone, start))
            }
            other => other,
        }
    }

    /// The same where there is flash for the zone of the command, or the zones know
    /// that there is none.
    #[inline]
    pub(super) fn accept_backed(
        &mut self,
        nsid: NamespaceId,
        op: Op,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        match op {
            Op::Read { slba, nlb } => {
                self.core
                    .check_transfer(nlb, self.core.info.max_transfer_bytes, request)?;
                self.core.zones.read(slba, nlb)?;
                Ok(processed.saturating_add(self.core.charge(&op, nlb, false)))
            }
            Op::Verify { slba, nlb } => {
                // No data is transferred, so the limit of transfers does not hold.
                self.core.check_transfer(nlb, u32::MAX, request)?;
                self.core.zones.read(slba, nlb)?;
                Ok(processed.saturating_add(self.core.charge(&op, nlb, false)))
            }
            Op::Compare { slba, nlb } => {
                self.core
                    .check_transfer(nlb, self.core.info.max_transfer_bytes, request)?;
                self.core.zones.read(slba, nlb)?;
                let processed = processed.saturating_add(self.core.charge(&op, nlb, false));
                let bytes = u64::from(nlb) * u64::from(self.core.config.lba_bytes);
                Ok(self.core.front.fetch(processed, bytes))
            }
            Op::WriteZeroes { .. } => self.acceptance().accept_zeroes(op, request, processed),
            Op::Deallocate { ranges } => self
                .core
                .accept_deallocate(nsid, ranges, request, processed),
            Op::Copy { sdlba, ranges } => {
                self.acceptance()
                    .accept_copy(nsid, (sdlba, ranges), request, processed)
            }
            Op::Write { .. } => self.acceptance().accept_write(op, request, processed),
            Op::Append { .. } => self.acceptance().accept_append(op, request, processed),
            Op::Flush => Ok(processed),
            Op::ZoneSend {
                slba,
                action: ZoneSendAction::ZRWA_FLUSH,
                select_all: false,
            } => {
                let extent = self.core.zones.commit_zrwa(slba)?;
                self.core.totals.implicit_closes += u64::from(extent.closed.is_some());
                Ok(self
                    .acceptance()
                    .place_in_zrwa(&extent, 0, request, (processed, 0)))
            }
            Op::ZrwaSend { slba, action } => {
                self.core.accept_zrwa_send(slba, action, request)?;
                Ok(self.background.allocate_opened(&mut self.core, processed))
            }
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } => {
                let zone = (!select_all).then_some(slba);
                self.core.changes.clear();
                self.accept_zone_send(nsid, zone, action, request, processed)?;
                Ok(match action {
                    ZoneSendAction::OPEN => {
                        self.background.allocate_opened(&mut self.core, processed)
                    }
                    _ => processed,
                })
            }
            Op::HandleStatus | Op::HandleUpdate { .. } => Err(Status::INVALID_OPCODE),
            Op::ZoneReceive {
                slba,
                filter,
                partial,
                extended,
            } => {
                let request = self.core.requests.at(request);
                let out = request.data.as_deref_mut().ok_or(Status::INVALID_FIELD)?;
                self.core
                    .zones
                    .report(slba, filter, partial, extended, out)?;
                Ok(processed)
            }
        }
    }

    /// Zone management of the zone that starts at `zone`, or of all zones of a namespace.
    fn accept_zone_send(
        &mut self,
        nsid: NamespaceId,
        zone: Option<Lba>,
        action: ZoneSendAction,
        request: u32,
        start: Nanos,
    ) -> Result<(), Status> {
        if action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION {
            let slba = zone.ok_or(Status::INVALID_FIELD)?;
            let data = self
                .core
                .requests
                .at(request)
                .data
                .as_deref()
                .ok_or(Status::INVALID_FIELD)?;
            return self.core.zones.set_extension(slba, data);
        }
        let mut changes = core::mem::take(&mut self.core.changes);
        changes.clear();
        let result = match zone {
            Some(slba) => self.core.zones.send(slba, action, &mut changes),
            None => self.core.zones.send_all(nsid, action, &mut changes),
        };
        self.core.requests.at(request).found = Core::found_in_zones(action, &changes);
        for change in &changes {
            match action {
                ZoneSendAction::FINISH => {
                    self.back_end().begin_finish(change, request, start);
                    self.settle();
                }
                ZoneSendAction::RESET => {
                    self.core.totals.resets += 1;
                    self.core.clear_data(change.zone);
                    self.back_end().begin_reset(change, request, start);
                    self.settle();
                }
                ZoneSendAction::OPEN => {
                    let closed = change.to == ZoneState::CLOSED;
                    self.core.totals.implicit_closes += u64::from(closed);
                }
                _ => {}
            }
        }
        self.core.changes = changes;
        if action == ZoneSendAction::RESET {
            self.back_end().admit_writes();
        }
        result
    }
}
