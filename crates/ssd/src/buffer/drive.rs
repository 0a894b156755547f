//! What the drive does with its write buffer.

use std::ops::Range;

use zonelab_device::ZoneId;

use super::{Flush, NONE, WriteBuffer};
use crate::counterfactual::{Factor, Factors};
use crate::drive::{Drive, Owner};
use crate::flash::BlockRange;

impl Drive {
    /// Bytes in the write buffer: admitted, and not programmed yet.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        let fill = self.buffer.as_ref().map_or(0, |buffer| buffer.fill_lbas);
        fill * u64::from(self.config().lba_bytes)
    }

    // ---- admission -------------------------------------------------------

    // ---- drain -----------------------------------------------------------

    // ---- without a factor ------------------------------------------------

    /// Some factors are absent from now on: what is on its way ends, and others may go on.
    pub(crate) fn buffer_leaves_out(&mut self, factors: Factors) {
        let now = self.now;
        let leaving = self.buffer.as_mut().and_then(|buffer| {
            let slot = buffer.leaving;
            let program = buffer.programs.get(slot).copied();
            // A program that is over has left long before.
            program.map(|program| (slot, program.is_fill))
        });
        let is_gone = match leaving {
            Some((slot, is_fill)) => self.is_program_absent(slot, is_fill),
            None => factors.contains(Factor::HostWrite),
        };
        if let Some(buffer) = self.buffer.as_mut().filter(|_| is_gone) {
            buffer.drain_free_at = buffer.drain_free_at.min(now);
        }
        self.drain_on();
        self.admit();
    }

    // ---- flush, finish, reset --------------------------------------------

    /// Starts a flush. Returns whether it waits for programs.
    pub(crate) fn buffer_flush(&mut self, index: u32) -> bool {
        while let Some(buffer) = self.buffer.as_ref().filter(|b| !b.is_protected) {
            if buffer.open_first == NONE {
                break;
            }
            self.issue_rest(ZoneId(buffer.open_first));
        }
        let Some(buffer) = self.buffer.as_mut().filter(|b| !b.is_protected) else {
            return false;
        };
        if buffer.running == 0 {
            return false;
        }
        buffer.flushes.push(Flush {
            request: index,
            before: buffer.issued,
            programs: buffer.running,
        });
        self.requests.at(index).pending = 1;
        true
    }

    /// The program with this number is over.
    pub(super) fn flushes_go_on(&mut self, number: u64) {
        let mut at = 0;
        while let Some(flush) = self.buffer.as_mut().and_then(|b| b.flushes.get_mut(at)) {
            flush.programs -= u32::from(number < flush.before);
            if flush.programs > 0 {
                at += 1;
                continue;
            }
            let request = flush.request;
            if let Some(buffer) = &mut self.buffer {
                buffer.flushes.remove(at);
            }
            self.buffered_request_done(request);
        }
    }

    /// Whether all that the host wrote to a zone, and what a finish fills it
    /// with, is on the flash.
    fn is_drained(&self, zone: ZoneId) -> bool {
        self.buffer.as_ref().is_none_or(|buffer| {
            let blocks = &buffer.zones[zone.0 as usize];
            let on_flash = blocks.first_program == NONE;
            let end = self.zones.host_lbas(zone).max(u64::from(blocks.fill_end));
            on_flash && u64::from(blocks.issued) == end
        })
    }

    /// Sends a zone that was finished to the flash. Returns whether it is
    /// there; if not, `task` is woken when it is.
    pub(crate) fn drain_zone(&mut self, zone: ZoneId, task: u32) -> bool {
        self.issue_rest(zone);
        if self.is_drained(zone) {
            return true;
        }
        if let Some(buffer) = &mut self.buffer
            && !buffer.drains.contains(&(zone, task))
        {
            buffer.drains.push((zone, task));
        }
        false
    }

    /// A task does not wait for its zone any more.
    pub(crate) fn cancel_drain(&mut self, task: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.drains.retain(|(_, other)| *other != task);
        }
    }

    /// A program of a zone is over: fills that waited for that go on.
    pub(super) fn drains_go_on(&mut self, zone: ZoneId) {
        let waits = |buffer: &WriteBuffer| buffer.drains.iter().any(|(of, _)| *of == zone);
        if !self.buffer.as_deref().is_some_and(waits) || !self.is_drained(zone) {
            return;
        }
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        for (_, task) in buffer.drains.extract_if(.., |(of, _)| *of == zone) {
            let event = self.background.wake(task);
            self.events.push(self.now, event);
        }
    }

    /// Whether a finish has to wait for the buffer.
    pub(crate) fn finish_waits(&self, zone: ZoneId) -> bool {
        !self.is_drained(zone)
    }

    /// A zone was reset: what it has in the buffer is dropped.
    pub(crate) fn buffer_drop(&mut self, zone: ZoneId) {
        if let Some(buffer) = &mut self.buffer {
            buffer.drop_zone(zone);
        }
    }

    // ---- reads -----------------------------------------------------------

    /// Reads those of the blocks `range` of a zone that are on the flash for
    /// request `index`. Returns the number of groups of flash operations.
    #[inline]
    pub(crate) fn read_flash(
        &mut self,
        index: u32,
        zone: ZoneId,
        physical: u32,
        range: Range<u32>,
    ) -> u32 {
        let token = Owner::Request(index).token();
        let now = self.now;
        let Some(buffer) = &self.buffer else {
            let range = BlockRange {
                first: range.start,
                count: range.end - range.start,
            };
            self.flash
                .read(now, physical, range, token, &mut self.events);
            return 1;
        };
        let (mut groups, mut rest) = (0, range);
        while let Some(part) = buffer.next_on_flash(zone, rest.clone()) {
            rest.start = part.end;
            let part = BlockRange {
                first: part.start,
                count: part.end - part.start,
            };
            self.flash
                .read(now, physical, part, token, &mut self.events);
            groups += 1;
        }
        groups
    }

    // ---- loss of power, snapshots ----------------------------------------
}
