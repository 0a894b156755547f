//! How units leave the buffer: whole ones at once, others when somebody waits for them,
//! and none while the drain is paused.

use zonelab_device::Nanos;
use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;

use super::NONE;
use super::Program;
use super::WriteBuffer;
use super::ZoneBlocks;
use crate::account::Cause;
use crate::drive::Owner;
use crate::drive::{Below, Core, Effect};
use crate::event::Event;
use crate::flash::BlockRange;
use crate::flash::Target;
use crate::front::transfer;

impl Core {
    pub(super) fn is_program_absent(&mut self, slot: u32, cause: Cause) -> bool {
        let tracking = self.flash.media_mut().tracking_mut();
        tracking.is_some_and(|tracking| tracking.is_absent(Owner::Program(slot).token(), cause))
    }
}

impl WriteBuffer {
    /// What a program is booked as.
    #[inline]
    pub(super) fn cause_of(&self, program: &Program) -> Cause {
        if program.is_fill {
            Cause::FinishFill
        } else if self.zones[program.zone.0 as usize].is_collected {
            Cause::CollectWrite
        } else {
            Cause::HostWrite
        }
    }

    /// Sends the whole units of a zone to the flash, and what is left of a zone
    /// that gets no more blocks.
    pub(super) fn issue_whole_units(&mut self, below: &mut Below<'_>, zone: ZoneId) {
        let zones = &below.core.zones;
        // Fits: see `blocks_of`.
        let capacity = below.core.config.zones.capacity_lbas as u32;
        // One that failed gets no more than it had accepted, as a full one.
        let takes_no_more = [ZoneState::FULL, ZoneState::READ_ONLY, ZoneState::OFFLINE]
            .contains(&zones.state(zone));
        let host_lbas = zones.host_lbas(zone);
        loop {
            let ZoneBlocks {
                admitted,
                issued,
                fill_end,
                ..
            } = self.zones[zone.0 as usize];
            let zone_end = host_lbas.max(u64::from(fill_end));
            let begun = issued / self.unit_lbas * self.unit_lbas;
            let boundary = begun.saturating_add(self.unit_lbas).min(capacity);
            let is_last = takes_no_more && u64::from(admitted) == zone_end;
            if issued < admitted && (boundary <= admitted || is_last) {
                self.issue(below, zone, boundary.min(admitted));
                continue;
            }
            if issued < admitted {
                self.list(zone);
            }
            return;
        }
    }

    /// Sends what a zone has in the buffer to the flash.
    pub(super) fn issue_rest(&mut self, below: &mut Below<'_>, zone: ZoneId) {
        let ZoneBlocks {
            admitted, issued, ..
        } = self.zones[zone.0 as usize];
        if issued < admitted {
            self.issue(below, zone, admitted);
        }
    }

    /// Programs the blocks of a zone up to `end`.
    fn issue(&mut self, below: &mut Below<'_>, zone: ZoneId, end: u32) {
        let physical = below.core.flash.mapping().physical(zone);
        let physical = physical.expect("a zone with blocks has flash");
        self.unlist(zone);
        let blocks = &mut self.zones[zone.0 as usize];
        let first = std::mem::replace(&mut blocks.issued, end);
        assert!(
            first < end && end <= blocks.admitted,
            "{zone:?} sends {first}..{end} of {} blocks in the buffer",
            blocks.admitted
        );
        debug_assert!(
            end - first <= self.unit_lbas,
            "a program has no more than a unit"
        );
        let number = self.issued;
        let is_fill = u64::from(first) >= below.core.zones.host_lbas(zone);
        let slot = self.link(Program {
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
        self.running += 1;
        self.zones[zone.0 as usize].running += 1;
        self.host_programs += u32::from(!is_fill);
        self.issued += 1;
        // Those that wait leave by an event. It must not happen here:
        // ending one whose zone was reset would admit more in the midst of this.
        if self.ready.is_empty() && self.may_leave(below.core) {
            self.leave(below, slot);
        } else {
            self.ready.push_back(slot);
        }
    }

    /// Lets no unit leave until the next pause ends, and no page go to a cache
    /// register. Returns whether no program is under way; if one is,
    /// [`Effect::DrainIsQuiet`] follows.
    ///
    /// Without cache registers the programs that wait at a die are under way
    /// too: their pages are in its register, or claim the channel.
    pub(crate) fn hold_drain(&mut self, core: &mut Core) -> bool {
        self.is_held = true;
        let media = core.flash.media_mut();
        let is_quiet = media.hold_programs(core.now, &mut core.events);
        self.holds_media = is_quiet.is_some();
        is_quiet.unwrap_or(self.started == 0)
    }

    /// No program is under way in the media.
    pub(crate) fn media_is_quiet(&self, core: &mut Core) {
        if self.is_held && self.holds_media {
            core.effects.push(Effect::DrainIsQuiet);
        }
    }

    /// Lets no unit leave before `until`.
    pub(crate) fn pause_drain(&mut self, core: &mut Core, until: Nanos) {
        self.is_held = false;
        self.paused_until = self.paused_until.max(until);
        core.events.push(until, Event::Drain);
    }

    /// Lets units leave that may, in order.
    pub(crate) fn drain_on(&mut self, below: &mut Below<'_>) {
        let core = &mut *below.core;
        let now = core.now;
        if self.holds_media && !self.is_held && now >= self.paused_until {
            self.holds_media = false;
            let media = core.flash.media_mut();
            media.release_programs(now, &mut core.events);
        }
        while self.may_leave(below.core) {
            let Some(slot) = self.ready.pop_front() else {
                return;
            };
            if self.programs.at(slot).is_orphan {
                // Its zone was reset before it started.
                self.program_over(below, slot);
            } else {
                self.leave(below, slot);
            }
        }
    }

    /// A unit leaves for its die.
    fn leave(&mut self, below: &mut Below<'_>, slot: u32) {
        if below.core.is_tracked() && self.leaves_at_once(below, slot) {
            return self.start_program(below, slot);
        }
        if let Some(rate) = self.drain_bytes_per_s {
            let core = &mut *below.core;
            let program = self.programs.at(slot);
            let lba_bytes = u64::from(core.config.lba_bytes);
            let bytes = u64::from(program.end - program.first) * lba_bytes;
            self.drain_free_at = core.now.saturating_add(transfer(bytes, rate));
            self.leaving = slot;
            core.events.push(self.drain_free_at, Event::Drain);
        }
        self.start_program(below, slot);
    }

    fn start_program(&mut self, below: &mut Below<'_>, slot: u32) {
        self.started += 1;
        let program = self.programs.at(slot);
        debug_assert!(!program.has_started, "a program starts once");
        debug_assert!(
            !program.is_orphan,
            "what was reset before it started is not programmed"
        );
        debug_assert_eq!(
            below.core.flash.mapping().physical(program.zone),
            Some(program.physical),
            "a program goes to the flash of its zone"
        );
        program.has_started = true;
        let program = *program;
        let cause = self.cause_of(&program);
        let Program {
            physical,
            first,
            end,
            is_fill,
            ..
        } = program;
        let core = &mut *below.core;
        if !core.flash.has_cache() {
            below.background.hurry_erasure(core, physical);
        }
        if !is_fill {
            let group = core.flash.layout().group_of(physical) as usize;
            core.host_in_flight[group] += 1;
        }
        let count = end - first;
        let range = BlockRange { first, count };
        let target = Target { physical, range };
        let (now, token) = (core.now, Owner::Program(slot).token());
        let is_collected = cause == Cause::CollectWrite;
        if core.recorder.is_some() && core.has_logs {
            core.record_program(slot, is_collected);
        }
        let before = core.flash.programmed_bytes();
        let groups = match core.flash.has_cache() {
            false => core
                .flash
                .program(now, target, cause, token, &mut core.events),
            true => {
                core.flash
                    .program_cached(now, target, token, &mut core.events);
                1
            }
        };
        let programmed_bytes = core.flash.programmed_bytes() - before;
        if is_fill {
            core.totals.fill_program_bytes += programmed_bytes;
        }
        if is_collected {
            core.totals.collect_program_bytes += programmed_bytes;
        }
        self.programs.at(slot).groups = groups;
    }

    /// A group of flash operations of a program is over. If it was the last, gives the
    /// physical zone, and whether the host's data was written to it: [`Self::program_over`]
    /// follows.
    pub(crate) fn group_done(&mut self, slot: u32) -> Option<(u32, bool)> {
        let program = self.programs.at(slot);
        debug_assert!(
            program.has_started && program.groups > 0,
            "a program that has started ends once"
        );
        program.groups -= 1;
        (program.groups == 0).then_some((program.physical, !program.is_fill))
    }

    /// A piece of a program is at its die.
    pub(crate) fn program_loaded(&mut self, below: &mut Below<'_>, slot: u32) {
        let program = self.programs.at(slot);
        let left = program.end - program.first - program.released;
        let freed = self.piece_lbas.min(left);
        program.released += freed;
        self.fill_lbas -= u64::from(freed);
        if freed > 0 {
            self.admit(below);
        }
    }

    /// A program is over, or never started: its room is free.
    pub(crate) fn program_over(&mut self, below: &mut Below<'_>, slot: u32) {
        let program = *self.programs.at(slot);
        debug_assert!(
            program.groups == 0 || (program.is_orphan && !program.has_started),
            "nothing of a program that is over is on its way"
        );
        debug_assert!(self.running > 0, "a program that is over was under way");
        self.running -= 1;
        self.zones[program.zone.0 as usize].running -= 1;
        self.started -= u32::from(program.has_started);
        let is_quiet = self.is_held && !self.holds_media && self.started == 0;
        self.host_programs -= u32::from(!program.is_fill);
        self.fill_lbas -= u64::from(program.end - program.first - program.released);
        if program.is_orphan {
            self.programs.free(slot);
        } else {
            self.unlink_ended(program.zone);
            if below.core.flash.has_cache() {
                let durable = self.durable_lbas(program.zone);
                let flash = &mut below.core.flash;
                flash.cache_is_programmed(program.physical, durable);
            }
        }
        self.flushes_go_on(below.core, program.number);
        self.drains_go_on(below, program.zone);
        if is_quiet {
            below.core.effects.push(Effect::DrainIsQuiet);
        }
        self.admit(below);
    }

    /// Says whose program is about to leave. Returns whether that takes no time.
    #[cold]
    fn leaves_at_once(&mut self, below: &mut Below<'_>, slot: u32) -> bool {
        let program = *self.programs.at(slot);
        let range = (program.first, program.end);
        let cause = self.cause_of(&program);
        let core = &mut *below.core;
        core.mark_program(slot, program.physical, range);
        core.is_program_absent(slot, cause)
    }

    /// Ends a pause of the drain, and lets it go on if it was held.
    pub(crate) fn end_pause(&mut self, below: &mut Below<'_>) {
        self.is_held = false;
        self.paused_until = self.paused_until.min(below.core.now);
        self.drain_on(below);
    }
}
