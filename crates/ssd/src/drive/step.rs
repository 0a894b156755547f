//! How a command that was accepted goes on, up to its completion.

use zonelab_device::{Completion, Lba, NamespaceId, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::{Core, Drive, Owner, Stage};
use crate::account::Cause;
use crate::contents::{Data, Unreadable};
use crate::conventional::Role;
use crate::event::Event;

impl Core {
    /// Whether the zone of a write that was accepted has been reset since.
    #[inline]
    fn was_reset_since(&mut self, index: u32) -> bool {
        let request = self.requests.at(index);
        let (op, generation) = (request.op, request.generation);
        // A copy keeps its own.
        if request.role != Role::Zoned || matches!(op, Op::Copy { .. }) {
            return false;
        }
        let zone = self.zones.zone_of(Lba(op.first_block()));
        zone.is_some_and(|zone| self.zones.generation(zone) != generation)
    }

    /// Flash reads of accepted blocks are in flight.
    #[inline]
    pub(crate) fn host_read_begins(&mut self, slba: Lba, nlb: u32) {
        for zone in self.zones_read(slba, nlb) {
            let group = self.flash.layout().group_of(zone) as usize;
            self.host_in_flight[group] += 1;
        }
    }

    /// The zones that an accepted read touches. Their groups are those of the
    /// flash under them, with either mapping.
    #[inline]
    pub(crate) fn zones_read(&self, slba: Lba, nlb: u32) -> core::ops::RangeInclusive<u32> {
        let zone_of = |lba| {
            self.zones
                .zone_of(Lba(lba))
                .expect("a read that was accepted is on the drive")
                .0
        };
        let (first, last) = (slba.0, slba.0 + u64::from(nlb) - 1);
        zone_of(first)..=zone_of(last)
    }

    /// First block of the namespace of an accepted command, counted over the drive.
    #[inline]
    pub(crate) fn first_lba(&self, nsid: NamespaceId) -> u64 {
        let namespace = self.zones.namespace(nsid);
        namespace
            .expect("a command for no namespace is not accepted")
            .first_lba()
            .0
    }

    pub(crate) fn copy_out(
        &self,
        data: &Data,
        slba: Lba,
        buf: &mut [u8],
    ) -> Result<(), Unreadable> {
        let mut done = 0;
        for (zone, within, bytes) in self.pieces(slba, buf.len()) {
            data.read(zone, within, &mut buf[done..done + bytes])?;
            done += bytes;
        }
        Ok(())
    }

    /// Looks at the data of accepted blocks.
    #[cold]
    fn verify(&self, slba: Lba, nlb: u32) -> Result<(), Unreadable> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.pieces(slba, bytes)
            .try_for_each(|(zone, at, bytes)| data.verify(zone, at..at + bytes as u64))
    }

    /// Whether blocks hold what is in a buffer.
    #[cold]
    fn is_same(&self, data: &Data, slba: Lba, buf: &[u8]) -> Result<bool, Unreadable> {
        let mut done = 0;
        for (zone, within, bytes) in self.pieces(slba, buf.len()) {
            if !data.is_same(zone, within, &buf[done..done + bytes])? {
                return Ok(false);
            }
            done += bytes;
        }
        Ok(true)
    }

    /// The parts of `bytes` from an accepted block on that lie in one zone
    /// each: zone, first byte in it, number of bytes.
    fn pieces(&self, slba: Lba, bytes: usize) -> impl Iterator<Item = (ZoneId, u64, usize)> {
        let lba_bytes = u64::from(self.config.lba_bytes);
        let zone_bytes = self.config.zones.size_lbas * lba_bytes;
        let (mut at, mut rest) = (slba.0 * lba_bytes, bytes);
        core::iter::from_fn(move || {
            let within = at % zone_bytes;
            let piece = rest.min(usize::try_from(zone_bytes - within).unwrap_or(usize::MAX));
            // Fits: the command was accepted, so the zone is one of the drive's.
            let zone = ZoneId((at / zone_bytes) as u32);
            at += piece as u64;
            rest -= piece;
            (piece > 0).then_some((zone, within, piece))
        })
    }
}

impl Drive {
    /// Moves a request on when its own event is due.
    #[inline]
    pub(crate) fn step(&mut self, index: u32) {
        if self.background.erases_by_thresholds() && self.background.is_held(&mut self.core, index)
        {
            return;
        }
        let request = self.core.requests.at(index);
        match request.stage {
            Stage::Admission => {
                if let Role::Conventional(which) = request.role {
                    return self.start_conventional(which, index);
                }
                request.stage = Stage::Flash;
                let op = request.op;
                match op {
                    Op::Read { slba, nlb }
                    | Op::Compare { slba, nlb }
                    | Op::Verify { slba, nlb } => self.start_read(index, slba, nlb),
                    Op::Write { .. }
                    | Op::Append { .. }
                    | Op::WriteZeroes { .. }
                    | Op::ZoneSend {
                        action: ZoneSendAction::ZRWA_FLUSH,
                        ..
                    } => {
                        if !self.copies.is_empty() && self.copies.holds_request(index) {
                            return self.write_behind_copies(index);
                        }
                        // What its zone stood on may be another's by now.
                        let is_void = self.buffer.is_none() && self.core.was_reset_since(index);
                        if !is_void {
                            return self.issue_write(index);
                        }
                    }
                    Op::Copy { .. } => return self.start_copy(index),
                    _ => {}
                }
                if op == Op::Flush && self.flush_buffer(index) {
                    return;
                }
                let request = self.core.requests.at(index);
                if request.pending == 0 {
                    request.stage = Stage::Completion;
                    let bytes = match request.op {
                        Op::Read { nlb, .. } => {
                            u64::from(nlb) * u64::from(self.core.config.lba_bytes)
                        }
                        _ => 0,
                    };
                    // Nothing completes inside `submit`: even what needs no
                    // time takes its turn in the queue of events.
                    let (now, op) = (self.core.now, request.op);
                    let ready = self.core.front.conclude(now, &op).unwrap_or(now);
                    let at = self.core.front.deliver(ready, bytes).unwrap_or(ready);
                    self.core.events.push(at, Event::Request(index));
                }
            }
            Stage::Flash | Stage::Sources => {
                unreachable!("a request with flash work in flight has no event")
            }
            Stage::Completion if request.role.is_internal() => self.internal_request_over(index),
            Stage::Completion => self.complete(index),
        }
    }

    /// Sends a write to the buffer, or to the flash.
    #[inline]
    pub(crate) fn issue_write(&mut self, index: u32) {
        if let Some((buffer, mut below)) = self.with_buffer() {
            buffer.write(&mut below, index);
        } else {
            self.start_write(index);
        }
    }

    #[inline]
    fn start_write(&mut self, index: u32) {
        let target = self.core.requests.at(index).target;
        self.background
            .hurry_erasure(&mut self.core, target.physical);
        let group = self.core.flash.layout().group_of(target.physical) as usize;
        self.core.host_in_flight[group] += 1;
        let token = Owner::Request(index).token();
        let cause = Cause::HostWrite;
        let before = self.core.flash.programmed_bytes();
        let groups =
            self.core
                .flash
                .program(self.core.now, target, cause, token, &mut self.core.events);
        let request = self.core.requests.at(index);
        request.pending = groups;
        if let Role::Collection(_) = request.role {
            self.core.totals.collect_program_bytes += self.core.flash.programmed_bytes() - before;
        }
    }

    /// Reads what the host has written; the rest needs no flash.
    #[inline]
    fn start_read(&mut self, index: u32, slba: Lba, nlb: u32) {
        self.core.totals.host_read_bytes += u64::from(nlb) * u64::from(self.core.config.lba_bytes);
        let groups = self.read_blocks(index, slba, nlb);
        self.core.requests.at(index).pending = groups;
        if groups > 0 {
            self.core.host_read_begins(slba, nlb);
        }
    }

    /// Reads blocks for a request. Returns the number of groups of flash operations.
    #[inline]
    pub(crate) fn read_blocks(&mut self, index: u32, slba: Lba, nlb: u32) -> u32 {
        let size = self.core.config.zones.size_lbas;
        let (mut at, end) = (slba.0, slba.0 + u64::from(nlb));
        let mut groups = 0;
        while at < end {
            let zone = self
                .core
                .zones
                .zone_of(Lba(at))
                .expect("a read that was accepted is on the drive");
            let start = u64::from(zone.0) * size;
            let written_end = start + self.core.zones.host_lbas(zone);
            let piece_end = end.min(start + size);
            let readable_end = piece_end.min(written_end);
            if at < readable_end
                && let Some(physical) = self.core.flash.mapping().physical(zone)
            {
                let range = (at - start) as u32..(readable_end - start) as u32;
                groups += self.read_flash(index, zone, physical, range);
            }
            at = piece_end;
        }
        groups
    }

    /// They are over.
    #[inline]
    pub(crate) fn host_read_ends(&mut self, slba: Lba, nlb: u32) {
        for zone in self.core.zones_read(slba, nlb) {
            self.host_io_done(self.core.flash.layout().group_of(zone));
        }
    }

    /// One of the things that a request waits for is done.
    #[inline]
    pub(crate) fn part_done(&mut self, index: u32) {
        let request = self.core.requests.at(index);
        debug_assert!(request.pending > 0, "a request is completed once");
        request.pending -= 1;
        if request.pending > 0 || request.stage == Stage::Admission {
            return;
        }
        if request.stage == Stage::Sources {
            return self.copy_was_read(index);
        }
        if request.role != Role::Zoned {
            return self.conventional_flash_done(index);
        }
        request.stage = Stage::Completion;
        let (op, physical) = (request.op, request.target.physical);
        let mut bytes = 0;
        match op {
            Op::Read { slba, nlb } => {
                bytes = u64::from(nlb) * u64::from(self.core.config.lba_bytes);
                self.host_read_ends(slba, nlb);
            }
            Op::Compare { slba, nlb } | Op::Verify { slba, nlb } => {
                self.host_read_ends(slba, nlb);
            }
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
                self.host_io_done(self.core.flash.layout().group_of(physical));
            }
            _ => {}
        }
        let concluded = self.core.front.conclude(self.core.now, &op);
        let ready = concluded.unwrap_or(self.core.now);
        match self.core.front.deliver(ready, bytes).or(concluded) {
            Some(at) => self.core.events.push(at, Event::Request(index)),
            None => self.complete(index),
        }
    }

    #[inline]
    fn complete(&mut self, index: u32) {
        let request = self.core.requests.at(index);
        let mut completion = Completion {
            queue: request.queue,
            tag: request.tag,
            status: request.status,
            at: self.core.now,
            result: request.result,
            data: request.data.take(),
        };
        let (op, nsid, role) = (request.op, request.nsid, request.role);
        let is_accepted = request.status.is_success();
        if self.core.is_tracked() {
            self.core.watch_completion(index);
            self.core.note_over(index);
        }
        self.core.requests.free(index);
        if self.background.erases_by_thresholds() && is_accepted {
            self.background.host_ends(&mut self.core, op);
        }
        if self.in_flight() == 0
            && let Some(pool) = &mut self.core.prepared
        {
            pool.idles(self.core.now);
        }
        self.core.is_sync_wanted |= matches!(op, Op::Flush);
        if let Op::Append { .. } = op
            && completion.status.is_success()
        {
            completion.result -= self.core.first_lba(nsid);
        }
        if let (Some(data), Some(buf)) = (&self.core.data, &mut completion.data)
            && completion.status.is_success()
            && role == Role::Zoned
        {
            match op {
                Op::Read { slba, .. } if self.core.copy_out(data, slba, buf).is_err() => {
                    completion.status = Status::UNRECOVERED_READ_ERROR;
                }
                Op::Compare { slba, .. } => match self.core.is_same(data, slba, buf) {
                    Ok(true) => {}
                    Ok(false) => completion.status = Status::COMPARE_FAILURE,
                    Err(Unreadable) => completion.status = Status::UNRECOVERED_READ_ERROR,
                },
                _ => {}
            }
        }
        if let Op::Verify { slba, nlb } = op
            && completion.status.is_success()
            && role == Role::Zoned
            && self.core.verify(slba, nlb).is_err()
        {
            completion.status = Status::UNRECOVERED_READ_ERROR;
        }
        if self.core.recorder.is_some() {
            self.core.record_completion(index, completion.status);
        }
        self.core.backlog.push(completion);
    }
}
