//! How units leave the buffer: whole ones at once, others when somebody waits for them,
//! and none while the drain is paused.

use zonelab_device::Nanos;
use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;

use super::NONE;
use super::Program;
use super::ZoneBlocks;
use crate::account::Cause;
use crate::drive::Drive;
use crate::drive::Owner;
use crate::event::Event;
use crate::flash::BlockRange;
use crate::flash::Target;
use crate::front::transfer;

impl Drive {
    /// Sends the whole units of a zone to the flash, and what is left of a zone
    /// that gets no more blocks.
    pub(super) fn issue_whole_units(&mut self, zone: ZoneId) {
        // Fits: see `blocks_of`.
        let capacity = self.config().zones.capacity_lbas as u32;
        let is_full = self.zones.state(zone) == ZoneState::FULL;
        let host_lbas = self.zones.host_lbas(zone);
        loop {
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            let ZoneBlocks {
                admitted,
                issued,
                fill_end,
                ..
            } = buffer.zones[zone.0 as usize];
            let zone_end = host_lbas.max(u64::from(fill_end));
            let begun = issued / buffer.unit_lbas * buffer.unit_lbas;
            let boundary = begun.saturating_add(buffer.unit_lbas).min(capacity);
            let is_last = is_full && u64::from(admitted) == zone_end;
            if issued < admitted && (boundary <= admitted || is_last) {
                self.issue(zone, boundary.min(admitted));
                continue;
            }
            if issued < admitted {
                buffer.list(zone);
            }
            return;
        }
    }

    /// Sends what a zone has in the buffer to the flash.
    pub(super) fn issue_rest(&mut self, zone: ZoneId) {
        let Some(buffer) = &self.buffer else { return };
        let ZoneBlocks {
            admitted, issued, ..
        } = buffer.zones[zone.0 as usize];
        if issued < admitted {
            self.issue(zone, admitted);
        }
    }

    /// Programs the blocks of a zone up to `end`.
    fn issue(&mut self, zone: ZoneId, end: u32) {
        let physical = self
            .flash
            .mapping()
            .physical(zone)
            .expect("a zone with blocks has flash");
        let now = self.now;
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        buffer.unlist(zone);
        let first = std::mem::replace(&mut buffer.zones[zone.0 as usize].issued, end);
        let number = buffer.issued;
        let is_fill = u64::from(first) >= self.zones.host_lbas(zone);
        let slot = buffer.link(Program {
            zone,
            physical,
            number,
            first,
            end,
            released: 0,
            groups: 1,
            has_started: false,
            is_fill,
            is_orphan: false,
            next: NONE,
        });
        buffer.running += 1;
        buffer.zones[zone.0 as usize].running += 1;
        buffer.host_programs += u32::from(!is_fill);
        buffer.issued += 1;
        // Those that wait are let go by an event. It must not happen here:
        // ending one whose zone was reset would admit more in the midst of this.
        if buffer.ready.is_empty() && buffer.may_leave(now) {
            self.leave(slot);
        } else {
            buffer.ready.push_back(slot);
        }
    }

    /// Lets no unit leave until the next pause ends, and no page go to a cache
    /// register. Returns whether no program is under way; if one is,
    /// [`Self::drain_is_quiet`] follows.
    ///
    /// Without cache registers the programs that wait at a die are under way
    /// too: their pages are in its register, or claim the channel.
    pub(crate) fn hold_drain(&mut self) -> bool {
        let Some(buffer) = &mut self.buffer else {
            return true;
        };
        buffer.is_held = true;
        let media = self.flash.media_mut();
        let is_quiet = media.hold_programs(self.now, &mut self.events);
        buffer.holds_media = is_quiet.is_some();
        is_quiet.unwrap_or(buffer.started == 0)
    }

    /// No program is under way in the media.
    pub(crate) fn media_is_quiet(&mut self) {
        let buffer = self.buffer.as_ref();
        if buffer.is_some_and(|buffer| buffer.is_held && buffer.holds_media) {
            self.drain_is_quiet();
        }
    }

    /// Lets no unit leave before `until`.
    pub(crate) fn pause_drain(&mut self, until: Nanos) {
        if let Some(buffer) = &mut self.buffer {
            buffer.is_held = false;
            buffer.paused_until = buffer.paused_until.max(until);
            self.events.push(until, Event::Drain);
        }
    }

    /// Lets units leave that may, in order.
    pub(crate) fn drain_on(&mut self) {
        let now = self.now;
        if let Some(buffer) = &mut self.buffer
            && buffer.holds_media
            && !buffer.is_held
            && now >= buffer.paused_until
        {
            buffer.holds_media = false;
            let media = self.flash.media_mut();
            media.release_programs(now, &mut self.events);
        }
        while let Some(buffer) = self.buffer.as_mut().filter(|b| b.may_leave(now)) {
            let Some(slot) = buffer.ready.pop_front() else {
                return;
            };
            if buffer.programs.at(slot).is_orphan {
                // Its zone was reset before it started.
                self.program_over(slot);
            } else {
                self.leave(slot);
            }
        }
    }

    /// A unit leaves for its die.
    fn leave(&mut self, slot: u32) {
        let lba_bytes = u64::from(self.config().lba_bytes);
        if self.is_tracked() && self.leaves_at_once(slot) {
            return self.start_program(slot);
        }
        if let Some(buffer) = &mut self.buffer
            && let Some(rate) = buffer.drain_bytes_per_s
        {
            let program = buffer.programs.at(slot);
            let bytes = u64::from(program.end - program.first) * lba_bytes;
            buffer.drain_free_at = self.now.saturating_add(transfer(bytes, rate));
            buffer.leaving = slot;
            self.events.push(buffer.drain_free_at, Event::Drain);
        }
        self.start_program(slot);
    }

    fn start_program(&mut self, slot: u32) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        buffer.started += 1;
        let program = buffer.programs.at(slot);
        program.has_started = true;
        let Program {
            zone,
            physical,
            first,
            end,
            is_fill,
            ..
        } = *program;
        self.hurry_erasure(physical);
        if !is_fill {
            let group = self.flash.layout().group_of(physical) as usize;
            self.host_in_flight[group] += 1;
        }
        let count = end - first;
        let range = BlockRange { first, count };
        let target = Target { physical, range };
        let (now, token) = (self.now, Owner::Program(slot).token());
        let cause = if is_fill {
            Cause::FinishFill
        } else {
            Cause::HostWrite
        };
        let is_collected = !self.conventional.is_empty() && self.is_collected(zone);
        if self.recorder.is_some() && !self.conventional.is_empty() {
            self.record_program(slot, is_collected);
        }
        let before = self.flash.programmed_bytes();
        let groups = self
            .flash
            .program(now, target, cause, token, &mut self.events);
        if is_fill {
            self.totals.fill_program_bytes += self.flash.programmed_bytes() - before;
        }
        if is_collected {
            self.totals.collect_program_bytes += self.flash.programmed_bytes() - before;
        }
        if let Some(buffer) = &mut self.buffer {
            let program = buffer.programs.at(slot);
            program.groups = groups;
        }
    }

    /// A group of flash operations of a program is over.
    pub(crate) fn program_group_done(&mut self, slot: u32) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let program = buffer.programs.at(slot);
        program.groups -= 1;
        if program.groups > 0 {
            return;
        }
        let (physical, is_fill) = (program.physical, program.is_fill);
        if !is_fill {
            self.host_io_done(self.flash.layout().group_of(physical));
        }
        self.program_over(slot);
    }

    /// A piece of a program is at its die.
    pub(crate) fn program_loaded(&mut self, slot: u32) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let piece_lbas = buffer.piece_lbas;
        let program = buffer.programs.at(slot);
        let left = program.end - program.first - program.released;
        let freed = piece_lbas.min(left);
        program.released += freed;
        buffer.fill_lbas -= u64::from(freed);
        if freed > 0 {
            self.admit();
        }
    }

    /// A program is over, or never started: its room is free.
    fn program_over(&mut self, slot: u32) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let program = *buffer.programs.at(slot);
        buffer.running -= 1;
        buffer.zones[program.zone.0 as usize].running -= 1;
        buffer.started -= u32::from(program.has_started);
        let is_quiet = buffer.is_held && !buffer.holds_media && buffer.started == 0;
        buffer.host_programs -= u32::from(!program.is_fill);
        buffer.fill_lbas -= u64::from(program.end - program.first - program.released);
        if program.is_orphan {
            buffer.programs.free(slot);
        } else {
            buffer.unlink_ended(program.zone);
        }
        self.flushes_go_on(program.number);
        self.drains_go_on(program.zone);
        if is_quiet {
            self.drain_is_quiet();
        }
        self.admit();
    }

    /// Says whose program is about to leave. Returns whether that takes no time.
    #[cold]
    fn leaves_at_once(&mut self, slot: u32) -> bool {
        let Some(program) = self.buffer.as_mut().map(|buffer| *buffer.programs.at(slot)) else {
            return false;
        };
        let range = (program.first, program.end);
        self.mark_program(slot, (program.zone, program.physical), range);
        self.is_program_absent(slot, program.is_fill)
    }

    pub(super) fn is_program_absent(&mut self, slot: u32, is_fill: bool) -> bool {
        let cause = if is_fill {
            Cause::FinishFill
        } else {
            Cause::HostWrite
        };
        let tracking = self.flash.media_mut().tracking_mut();
        tracking.is_some_and(|tracking| tracking.is_absent(Owner::Program(slot).token(), cause))
    }

    /// Ends a pause of the drain, and lets it go on if it was held.
    pub(crate) fn end_pause(&mut self) {
        let now = self.now;
        if let Some(buffer) = &mut self.buffer {
            buffer.is_held = false;
            buffer.paused_until = buffer.paused_until.min(now);
        }
        self.drain_on();
    }
}
