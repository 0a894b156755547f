//! What is behind the front end: the flash with what programs and erases it.

use std::ops::Range;

use zonelab_device::{Found, Lba, ZoneId};

use super::{Core, Drive, Owner};
use crate::background::Background;
use crate::buffer::WriteBuffer;
use crate::conventional::Role;
use crate::flash::{BlockRange, Target};

/// The back end of a drive: what reads, writes, flushes and erases for requests, whether they are
/// commands of hosts or parts of a log. It knows neither copies nor conventional namespaces.
pub(crate) struct BackEnd<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) background: &'a mut Background,
    pub(crate) buffer: Option<&'a mut WriteBuffer>,
}

/// What the write buffer stands on: it programs flash on which the background may be erasing.
pub(crate) struct Below<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) background: &'a mut Background,
}

impl Drive {
    /// The back end.
    #[inline]
    pub(crate) fn back_end(&mut self) -> BackEnd<'_> {
        BackEnd {
            core: &mut self.core,
            background: &mut self.background,
            buffer: self.buffer.as_deref_mut(),
        }
    }
}

impl BackEnd<'_> {
    /// The write buffer, if there is one, and what it stands on.
    #[inline]
    pub(crate) fn with_buffer(&mut self) -> Option<(&mut WriteBuffer, Below<'_>)> {
        let buffer = self.buffer.as_deref_mut()?;
        let below = Below {
            core: self.core,
            background: self.background,
        };
        Some((buffer, below))
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
        self.background.hurry_erasure(self.core, target.physical);
        let group = self.core.flash.layout().group_of(target.physical) as usize;
        self.core.host_in_flight[group] += 1;
        let token = Owner::Request(index).token();
        let role = self.core.requests.at(index).role;
        let cause = role.write_cause();
        let before = self.core.flash.programmed_bytes();
        let groups =
            self.core
                .flash
                .program(self.core.now, target, cause, token, &mut self.core.events);
        self.core.requests.at(index).pending = groups;
        if let Role::Collection(_) = role {
            self.core.totals.collect_program_bytes += self.core.flash.programmed_bytes() - before;
        }
    }

    /// Reads what the host has written; the rest needs no flash.
    #[inline]
    pub(super) fn start_read(&mut self, index: u32, slba: Lba, nlb: u32) {
        self.core.totals.host_read_bytes += u64::from(nlb) * u64::from(self.core.config.lba_bytes);
        let (groups, found) = self.read_blocks(index, slba, nlb);
        let request = self.core.requests.at(index);
        request.pending = groups;
        request.found = found;
        if groups > 0 {
            self.core.host_read_begins(slba, nlb);
        }
    }

    /// Reads blocks for a request. Returns the number of groups of flash operations, and
    /// whether there was anything to read.
    #[inline]
    pub(crate) fn read_blocks(&mut self, index: u32, slba: Lba, nlb: u32) -> (u32, Found) {
        let size = self.core.config.zones.size_lbas;
        let (mut at, end) = (slba.0, slba.0 + u64::from(nlb));
        let (mut groups, mut holds_data) = (0, false);
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
            // In a random write area there is data that is not on the flash.
            let zrwa_end = || self.core.zones.zrwa_end_lbas(zone);
            holds_data |= at < readable_end || zrwa_end().is_some_and(|end| at < start + end);
            if at < readable_end
                && let Some(physical) = self.core.flash.mapping().physical(zone)
            {
                let range = (at - start) as u32..(readable_end - start) as u32;
                groups += self.read_flash(index, zone, physical, range);
            }
            at = piece_end;
        }
        (groups, Found::by_read(nlb, groups > 0, holds_data))
    }

    /// Writes that wait for room get what there is.
    pub(crate) fn admit_writes(&mut self) {
        if let Some((buffer, mut below)) = self.with_buffer() {
            buffer.admit(&mut below);
        }
    }

    /// Starts a flush. Returns whether it waits for programs.
    pub(crate) fn flush_buffer(&mut self, index: u32) -> bool {
        let buffer = self.with_buffer();
        buffer.is_some_and(|(buffer, mut below)| buffer.flush(&mut below, index))
    }

    /// Whether nothing of a zone is in the write buffer.
    pub(crate) fn is_drained(&self, zone: ZoneId) -> bool {
        let buffer = self.buffer.as_ref();
        buffer.is_none_or(|buffer| buffer.is_drained(self.core, zone))
    }

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
        let core = &mut *self.core;
        let request = core.requests.at(index);
        let cause = request.role.read_cause(&request.op);
        let mut read = |of: Range<u32>| {
            let range = BlockRange {
                first: of.start,
                count: of.end - of.start,
            };
            let (now, events) = (core.now, &mut core.events);
            let target = Target { physical, range };
            core.flash.read(now, target, cause, token, events);
        };
        let Some(buffer) = &self.buffer else {
            read(range);
            return 1;
        };
        let (mut groups, mut rest) = (0, range);
        while let Some(part) = buffer.next_on_flash(zone, rest.clone()) {
            rest.start = part.end;
            read(part);
            groups += 1;
        }
        groups
    }
}
