//! Commands on a conventional namespace.

use core::ops::Range;

use zonelab_device::{Found, Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;

use super::Conventional;
use super::log::NONE;
use crate::contents::{Data, NotWritten, Unreadable};
use crate::drive::{BackEnd, Core, Drive, Request, Stage};
use crate::event::Event;
use crate::ranges::{self, LbaRange};

impl Core {
    /// The work of a command is done: it goes to the host.
    pub(crate) fn conclude_conventional(&mut self, index: u32) {
        let bytes_per_lba = u64::from(self.config.lba_bytes);
        let request = self.requests.at(index);
        request.stage = Stage::Completion;
        request.result = 0;
        let op = request.op;
        let bytes = match op {
            Op::Read { nlb, .. } => u64::from(nlb) * bytes_per_lba,
            _ => 0,
        };
        let ready = self.front.conclude(self.now, &op).unwrap_or(self.now);
        let at = self.front.deliver(ready, bytes).unwrap_or(ready);
        self.events.push(at, Event::Request(index));
    }

    /// What a request waits for on the flash is done: that of a command, of a
    /// part of one, or of the collection.
    #[cold]
    pub(crate) fn conventional_flash_done(&mut self, index: u32) {
        let request = self.requests.at(index);
        if !request.role.is_internal() {
            return self.conclude_conventional(index);
        }
        request.stage = Stage::Completion;
        self.events.push(self.now, Event::Request(index));
    }

    /// The rest of a write cannot be written: it ends when what was written of
    /// it does. Returns that nothing of it waits for collection.
    #[cold]
    pub(super) fn write_fails(&mut self, index: u32, nlb: u32, status: Status) -> bool {
        let request = self.requests.at(index);
        request.status = status;
        request.result = u64::from(nlb);
        if request.pending == 0 {
            self.conclude_conventional(index);
        }
        true
    }

    /// Adds a request of the drive itself.
    pub(super) fn insert_internal(&mut self, request: Request) -> u32 {
        self.internal_requests += 1;
        let role = request.role;
        let index = self.requests.insert(request);
        if self.is_tracked() {
            self.mark_internal(index, role);
        }
        if self.recorder.is_some() {
            self.record_internal(index, role);
        }
        index
    }

    pub(crate) fn remove_internal(&mut self, index: u32) -> Request {
        self.internal_requests -= 1;
        self.requests.remove(index)
    }
}

impl Conventional {
    /// Checks a command. Returns when its work starts.
    pub(crate) fn accept_conventional(
        &mut self,
        end: &mut BackEnd<'_>,
        op: Op,
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        let changes = matches!(
            op,
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Deallocate { .. }
        );
        if changes && self.log.is_read_only() {
            return Err(Status::NAMESPACE_WRITE_PROTECTED);
        }
        let max_transfer = end.core.info.max_transfer_bytes;
        let bytes = u64::from(op.nlb()) * u64::from(end.core.config.lba_bytes);
        match op {
            Op::Read { slba, nlb } | Op::Compare { slba, nlb } => {
                end.core.check_transfer(nlb, max_transfer, request)?;
                self.check_blocks(end, slba, nlb)?;
                let processed = processed.saturating_add(end.core.charge(&op, nlb, false));
                Ok(match op {
                    Op::Compare { .. } => end.core.front.fetch(processed, bytes),
                    _ => processed,
                })
            }
            Op::Verify { slba, nlb } => {
                end.core.check_transfer(nlb, u32::MAX, request)?;
                self.check_blocks(end, slba, nlb)?;
                Ok(processed.saturating_add(end.core.charge(&op, nlb, false)))
            }
            Op::Write { slba, nlb } => {
                end.core.check_transfer(nlb, max_transfer, request)?;
                self.check_blocks(end, slba, nlb)?;
                self.check_placement(end.core, request);
                end.core.totals.host_write_bytes += bytes;
                let processed = processed.saturating_add(end.core.charge(&op, nlb, false));
                Ok(end.core.front.fetch(processed, bytes))
            }
            Op::WriteZeroes { slba, nlb } => {
                end.core.check_transfer(nlb, u32::MAX, request)?;
                self.check_blocks(end, slba, nlb)?;
                Ok(processed.saturating_add(end.core.charge(&op, nlb, false)))
            }
            Op::Deallocate { ranges } => {
                let nsid = self.nsid;
                end.core.accept_deallocate(nsid, ranges, request, processed)
            }
            Op::Flush => Ok(processed),
            Op::HandleStatus if end.core.placement.is_some() => Ok(processed),
            Op::HandleUpdate { handles } if end.core.placement.is_some() => {
                self.check_update(end.core, request, handles)?;
                Ok(processed)
            }
            Op::Append { .. }
            | Op::Copy { .. }
            | Op::ZoneSend { .. }
            | Op::ZrwaSend { .. }
            | Op::ZoneReceive { .. }
            | Op::HandleStatus
            | Op::HandleUpdate { .. } => Err(Status::INVALID_OPCODE),
        }
    }

    /// All of the blocks are of the namespace.
    fn check_blocks(&self, end: &mut BackEnd<'_>, slba: Lba, nlb: u32) -> Result<(), Status> {
        let nsid = self.nsid;
        let namespace = end.core.zones.namespace(nsid);
        if namespace.is_some_and(|namespace| namespace.has_on_drive(slba, nlb)) {
            Ok(())
        } else {
            Err(Status::LBA_OUT_OF_RANGE)
        }
    }

    /// The block of the namespace at an accepted address.
    pub(super) fn block_of(&self, slba: Lba) -> u32 {
        // Fits: checked, as the blocks of the namespace do.
        (slba.0 - self.first_lba) as u32
    }

    /// The front end lets a command through.
    pub(crate) fn start_conventional(&mut self, end: &mut BackEnd<'_>, index: u32) {
        let request = end.core.requests.at(index);
        request.stage = Stage::Flash;
        match request.op {
            Op::Read { slba, nlb } | Op::Compare { slba, nlb } | Op::Verify { slba, nlb } => {
                self.read_conventional(end, index, slba, nlb);
            }
            Op::Write { .. } | Op::WriteZeroes { .. } => self.start_write(end, index),
            Op::Deallocate { ranges } => {
                let data = request.data.take();
                let all = data
                    .as_deref()
                    .and_then(|data| ranges::of_deallocate(data, ranges));
                let mut forgotten = 0;
                for LbaRange { slba, nlb } in all.into_iter().flatten() {
                    // Fits: accepted, so they are blocks of the namespace.
                    match self.forget_blocks(end, slba as u32, nlb) {
                        Ok(blocks) => forgotten += u64::from(blocks),
                        Err(why) => {
                            end.core.requests.at(index).status = why.status();
                            break;
                        }
                    }
                }
                let request = end.core.requests.at(index);
                request.data = data;
                request.found = Found::blocks(forgotten);
                end.core.conclude_conventional(index);
            }
            Op::HandleStatus => {
                self.handle_status(end.core, index);
                end.core.conclude_conventional(index);
            }
            Op::HandleUpdate { handles } => {
                self.update_handles(end, index, handles);
                end.core.conclude_conventional(index);
            }
            _ => {
                if !end.flush_buffer(index) {
                    end.core.conclude_conventional(index);
                }
            }
        }
    }

    /// The units that are all of these blocks hold nothing any more. Of a unit that some of
    /// them are in, nothing changes. Returns how many blocks held something.
    pub(super) fn forget_blocks(
        &mut self,
        end: &mut BackEnd<'_>,
        first: u32,
        nlb: u32,
    ) -> Result<u32, NotWritten> {
        let unit_lbas = self.log.unit_lbas();
        let units = first.div_ceil(unit_lbas)..(first + nlb) / unit_lbas;
        if units.is_empty() {
            return Ok(0);
        }
        if let Some(contents) = end.core.data.as_mut().and_then(Data::outside) {
            contents.forget(self.which, units.start * unit_lbas..units.end * unit_lbas)?;
        }
        let held = units.filter(|&unit| self.log.forget(unit) != NONE);
        // Fits: no more than the command has.
        Ok(held.count() as u32 * unit_lbas)
    }

    /// Reads blocks. Their data is that of this moment: the place that it comes
    /// from may be erased before the host has it.
    fn read_conventional(&mut self, end: &mut BackEnd<'_>, index: u32, slba: Lba, nlb: u32) {
        let lba_bytes = end.core.config.lba_bytes as usize;
        end.core.totals.host_read_bytes += u64::from(nlb) * lba_bytes as u64;
        let first = self.block_of(slba);
        let (mut groups, mut holds_data) = (0, false);
        let mut block = first;
        while block < first + nlb {
            let log = &self.log;
            let Some((zone, offset)) = log.block_position(block) else {
                block += 1;
                continue;
            };
            holds_data = true;
            let is_next = |(at, to): &(u32, u32)| log.block_position(*at) == Some((zone, *to));
            let run = (block..first + nlb).zip(offset..).take_while(is_next);
            // Fits: no more than the command has.
            let count = run.count() as u32;
            groups += self.read_zone(end, index, (zone, offset..offset + count));
            block += count;
        }
        self.take_data(end, index, first);
        let request = end.core.requests.at(index);
        request.pending = groups;
        request.found = Found::by_read(nlb, groups > 0, holds_data);
        if groups == 0 {
            end.core.conclude_conventional(index);
        }
    }

    /// Copies the data of a read, or compares it.
    fn take_data(&mut self, end: &mut BackEnd<'_>, index: u32, first: u32) {
        let lba_bytes = end.core.config.lba_bytes as usize;
        let log = &self.log;
        let request = end.core.requests.at(index);
        let Some(data) = &end.core.data else {
            return;
        };
        let nlb = request.op.nlb();
        if let Op::Verify { .. } = request.op {
            let mut at = (first..first + nlb).filter_map(|block| log.block_position(block));
            let is_readable = at.all(|(zone, offset)| {
                let offset = u64::from(offset) * lba_bytes as u64;
                data.verify(zone, offset..offset + lba_bytes as u64).is_ok()
            });
            if !is_readable {
                request.status = Status::UNRECOVERED_READ_ERROR;
            }
            return;
        }
        let Some(buf) = &mut request.data else {
            return;
        };
        let is_read = matches!(request.op, Op::Read { .. });
        let (mut is_same, mut is_readable) = (true, true);
        for (block, out) in (first..).zip(buf.chunks_mut(lba_bytes)) {
            match log.block_position(block) {
                Some((zone, offset)) => {
                    let offset = u64::from(offset) * lba_bytes as u64;
                    if is_read {
                        is_readable &= data.read(zone, offset, out).is_ok();
                    } else {
                        match data.is_same(zone, offset, out) {
                            Ok(is) => is_same &= is,
                            Err(Unreadable) => is_readable = false,
                        }
                    }
                }
                None if is_read => out.fill(0),
                None => is_same &= out.iter().all(|byte| *byte == 0),
            }
        }
        if !is_readable {
            request.status = Status::UNRECOVERED_READ_ERROR;
        } else if !is_same {
            request.status = Status::COMPARE_FAILURE;
        }
    }

    /// Reads `units` units of one zone from a place on for a request. Returns
    /// the number of groups of flash operations.
    pub(super) fn read_log(
        &mut self,
        end: &mut BackEnd<'_>,
        index: u32,
        place: u32,
        units: u32,
    ) -> u32 {
        let (zone, first) = self.log.position(place);
        let behind = first + units * self.log.unit_lbas();
        self.read_zone(end, index, (zone, first..behind))
    }

    /// The same of blocks of a zone.
    fn read_zone(
        &mut self,
        end: &mut BackEnd<'_>,
        index: u32,
        (zone, blocks): (ZoneId, Range<u32>),
    ) -> u32 {
        match end.core.flash.mapping().physical(zone) {
            Some(physical) => end.read_flash(index, zone, physical, blocks),
            None => 0,
        }
    }
}

impl Drive {
    /// A conventional namespace, and the back end that its log is on.
    pub(crate) fn conventional(&mut self, which: u8) -> (&mut Conventional, BackEnd<'_>) {
        let end = BackEnd {
            core: &mut self.core,
            background: &mut self.background,
            buffer: self.buffer.as_deref_mut(),
        };
        (&mut self.conventional[usize::from(which)], end)
    }
}
