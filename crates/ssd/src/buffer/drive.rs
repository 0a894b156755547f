//! What the drive does with its write buffer.

use std::ops::Range;

use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::{Deferred, Flush, NONE, Program, Waiting, WriteBuffer, Writer, ZoneBlocks, blocks_of};
use crate::account::Cause;
use crate::conventional::Role;
use crate::counterfactual::{Factor, Factors};
use crate::draw::Draw;
use crate::drive::{Drive, Owner, Stage};
use crate::event::Event;
use crate::flash::{BlockRange, Flash, Target};
use crate::front::transfer;

impl Drive {
    /// Bytes in the write buffer: admitted, and not programmed yet.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        let fill = self.buffer.as_ref().map_or(0, |buffer| buffer.fill_lbas);
        fill * u64::from(self.config().lba_bytes)
    }

    // ---- admission -------------------------------------------------------

    /// The front end lets a write through: it joins the admission queue, or waits for its
    /// turn to. A write to a random write area, or an explicit commit, joins with
    /// what it commits; one that commits nothing is done, unless earlier ones of
    /// its zone wait.
    pub(crate) fn buffer_write(&mut self, index: u32) {
        let request = self.requests.at(index);
        request.pending = 1;
        let (slba, is_append) = match request.op {
            Op::Append { .. } => (Lba(request.result), true),
            op => (Lba(op.first_block()), false),
        };
        let (generation, count) = (request.generation, request.target.range.count);
        let zone = self
            .zones
            .zone_of(slba)
            .expect("a write that was accepted is on the drive");
        if count == 0 && !self.has_writes_queued(zone) {
            // It is in the random write area.
            self.buffered_request_done(index);
            return;
        }
        self.join_admission_queue(Waiting {
            whose: Writer::Host(index),
            zone,
            generation,
            count,
            is_append,
        });
    }

    /// Whether writes of a zone wait for room. Then its random write area may
    /// still hold what they commit.
    fn has_writes_queued(&self, zone: ZoneId) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| {
            let blocks = &buffer.zones[zone.0 as usize];
            blocks.queued > 0 || blocks.first_deferred != NONE
        })
    }

    /// The next `count` blocks of the zone of a fill join the admission queue.
    pub(crate) fn buffer_fill(&mut self, task: u32, zone: ZoneId, count: u32) {
        self.join_admission_queue(Waiting {
            whose: Writer::Fill(task),
            zone,
            generation: self.zones.generation(zone),
            count,
            is_append: false,
        });
    }

    /// A finish will fill a zone through the buffer up to `end`.
    pub(crate) fn buffer_expects_fill(&mut self, zone: ZoneId, end: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.zones[zone.0 as usize].fill_end = end;
        }
    }

    /// Whether programs of the host's data are under way or wait.
    pub(crate) fn buffers_host_data(&self) -> bool {
        self.buffer
            .as_ref()
            .is_some_and(|buffer| buffer.host_programs > 0)
    }

    fn join_admission_queue(&mut self, write: Waiting) {
        let Waiting {
            zone, is_append, ..
        } = write;
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let blocks = &mut buffer.zones[zone.0 as usize];
        let may_join = !is_append || blocks.appends < buffer.appends_per_zone;
        if may_join && blocks.first_deferred == NONE {
            blocks.appends += u32::from(is_append);
            blocks.queued += 1;
            buffer.admission_queue.push_back(write);
            if buffer.admission_queue.len() == 1 {
                self.admit();
            }
            return;
        }
        // Nothing must get ahead of an append that its zone accepted first.
        let deferred = buffer.deferred.insert(Deferred { write, next: NONE });
        match buffer.deferred.get_mut(blocks.last_deferred) {
            Some(last) => last.next = deferred,
            None => blocks.first_deferred = deferred,
        }
        blocks.last_deferred = deferred;
    }

    /// Admits the head of the queue as far as there is room.
    pub(crate) fn admit(&mut self) {
        loop {
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            let Some(&head) = buffer.admission_queue.front() else {
                break;
            };
            let zone = head.zone;
            if self.zones.generation(zone) != head.generation {
                // Reset meanwhile: its blocks are nobody's.
                self.leave_admission_queue(head);
                continue;
            }
            // What is absent takes more than there is.
            let room = buffer.size_lbas.saturating_sub(buffer.fill_lbas);
            let left = head.count - buffer.head_lbas;
            let turn = buffer.turn_of(&head).unwrap_or(left);
            let share = buffer.share_of(&head, room).unwrap_or(left);
            // Fits: no more than is left.
            let mut taken = u64::from(left.min(turn).min(share)).min(room) as u32;
            if self.absence.is_some() && self.takes_no_room(&head) {
                taken = left;
            }
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            buffer.fill_lbas += u64::from(taken);
            buffer.head_lbas += taken;
            buffer.zones[zone.0 as usize].admitted += taken;
            if taken > 0 {
                self.issue_whole_units(zone);
            }
            if taken == left {
                self.leave_admission_queue(head);
                continue;
            }
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            if taken == turn {
                buffer.next_turn();
                continue;
            }
            if buffer.running == 0 {
                // Full of units that are not whole: the oldest makes room.
                let oldest = ZoneId(buffer.open_first);
                self.issue_rest(oldest);
            }
            break;
        }
        self.record_buffer_fill();
    }

    /// The head of the queue is in, or has become void.
    fn leave_admission_queue(&mut self, head: Waiting) {
        if let Some(buffer) = &mut self.buffer {
            buffer.admission_queue.pop_front();
            buffer.head_lbas = 0;
            let blocks = &mut buffer.zones[head.zone.0 as usize];
            blocks.appends -= u32::from(head.is_append);
            blocks.queued -= 1;
            while let Some(&mut Deferred { write, next }) =
                buffer.deferred.get_mut(blocks.first_deferred)
            {
                if write.is_append && blocks.appends >= buffer.appends_per_zone {
                    break;
                }
                buffer.deferred.free(blocks.first_deferred);
                blocks.first_deferred = next;
                if next == NONE {
                    blocks.last_deferred = NONE;
                }
                blocks.appends += u32::from(write.is_append);
                blocks.queued += 1;
                buffer.admission_queue.push_back(write);
            }
        }
        match head.whose {
            Writer::Host(request) => self.buffered_request_done(request),
            Writer::Fill(task) => {
                let is_void = self.zones.generation(head.zone) != head.generation;
                self.fill_admitted(task, is_void);
            }
        }
    }

    /// What a request waits for in the buffer has happened.
    pub(crate) fn buffered_request_done(&mut self, index: u32) {
        let request = self.requests.at(index);
        request.pending = 0;
        request.stage = Stage::Completion;
        if request.role.is_internal() {
            self.events.push(self.now, Event::Request(index));
            return;
        }
        let at = self.front.conclude(self.now, &request.op);
        self.events
            .push(at.unwrap_or(self.now), Event::Request(index));
    }

    // ---- drain -----------------------------------------------------------

    /// Sends the whole units of a zone to the flash, and what is left of a zone
    /// that gets no more blocks.
    fn issue_whole_units(&mut self, zone: ZoneId) {
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
    fn issue_rest(&mut self, zone: ZoneId) {
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

    // ---- without a factor ------------------------------------------------

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

    fn is_program_absent(&mut self, slot: u32, is_fill: bool) -> bool {
        let cause = if is_fill {
            Cause::FinishFill
        } else {
            Cause::HostWrite
        };
        let tracking = self.flash.media_mut().tracking_mut();
        tracking.is_some_and(|tracking| tracking.is_absent(Owner::Program(slot).token(), cause))
    }

    /// Whether a write in the admission queue holds back nobody: a fill, or what a collection moves, that is
    /// absent.
    #[cold]
    fn takes_no_room(&self, head: &Waiting) -> bool {
        match head.whose {
            Writer::Fill(task) => self.is_absent(Factor::FinishFill, self.request_of_task(task)),
            Writer::Host(request) => {
                let role = self.requests.get(request).map(|request| request.role);
                matches!(role, Some(Role::Collection(_)))
                    && self.is_absent(Factor::Collection, None)
            }
        }
    }

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

    /// Ends a pause of the drain, and lets it go on if it was held.
    pub(crate) fn end_pause(&mut self) {
        let now = self.now;
        if let Some(buffer) = &mut self.buffer {
            buffer.is_held = false;
            buffer.paused_until = buffer.paused_until.min(now);
        }
        self.drain_on();
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
    fn flushes_go_on(&mut self, number: u64) {
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
    fn drains_go_on(&mut self, zone: ZoneId) {
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

    /// How many blocks of each zone a loss of power leaves, for those that lose
    /// any: with protection all that were admitted, else those that are on the
    /// flash, and what is contiguous behind them of programs under way.
    pub(crate) fn buffered_remains(
        &self,
        unfinished: &[usize],
        draw: &mut Draw,
    ) -> Vec<(ZoneId, u64)> {
        let Some(buffer) = &self.buffer else {
            return Vec::new();
        };
        let mut remains = Vec::new();
        for (zone, blocks) in (0..).map(ZoneId).zip(&buffer.zones) {
            if self.log_with(zone).is_some() {
                // Loses nothing: see `conventional`.
                continue;
            }
            let durable = if buffer.is_protected {
                self.saved_end(zone, blocks)
            } else {
                self.programmed_prefix((buffer, blocks), unfinished, draw)
            };
            // What a random write area holds is behind the write pointer.
            let written = self.zones.zrwa_end_lbas(zone);
            let written = written.filter(|_| !buffer.is_protected);
            if u64::from(durable) < written.unwrap_or(self.zones.host_lbas(zone)) {
                remains.push((zone, u64::from(durable)));
            }
        }
        remains
    }

    /// How far stored energy saves a zone: what was admitted, and what waited in
    /// the random write area to be.
    fn saved_end(&self, zone: ZoneId, blocks: &ZoneBlocks) -> u32 {
        let committed = if self.zones.came_through_zrwa(zone) {
            blocks_of(self.zones.host_lbas(zone))
        } else {
            0
        };
        blocks.admitted.max(committed)
    }

    fn programmed_prefix(
        &self,
        (buffer, blocks): (&WriteBuffer, &ZoneBlocks),
        unfinished: &[usize],
        draw: &mut Draw,
    ) -> u32 {
        let page_lbas = self.flash.layout().page_lbas();
        let mut slot = blocks.first_program;
        while slot != NONE {
            let program = &buffer.programs[slot];
            slot = program.next;
            if program.groups == 0 {
                continue;
            }
            let range = BlockRange {
                first: program.first,
                count: program.end - program.first,
            };
            let target = Target {
                physical: program.physical,
                range,
            };
            if !program.has_started || self.flash.waits_for_erasure(target, unfinished) {
                return program.first;
            }
            let first_page = program.first / page_lbas;
            let pages = (program.end - 1) / page_lbas - first_page + 1;
            // Fits: no more than there are pages.
            let programmed = draw.below(u64::from(pages) + 1) as u32;
            if programmed < pages {
                return ((first_page + programmed) * page_lbas).max(program.first);
            }
        }
        blocks.issued
    }

    /// Puts into `flash` what is in the buffer and on no way to the flash, as
    /// an orderly shutdown, or one on stored energy, would.
    pub(crate) fn settle_buffer_into(&self, flash: &mut Flash) {
        self.settle_zones_into(flash, |_| true);
    }

    /// The same for some zones.
    pub(crate) fn settle_zones_into(&self, flash: &mut Flash, which: impl Fn(ZoneId) -> bool) {
        let Some(buffer) = &self.buffer else { return };
        let zones = (0..).map(ZoneId).zip(&buffer.zones);
        for (zone, blocks) in zones.filter(|(zone, _)| which(*zone)) {
            let started = buffer.first_not_started(blocks);
            let end = match self.log_with(zone) {
                // Nothing of a log is lost, wherever it is.
                Some(_) => self.zones.host_lbas(zone) as u32,
                None => self.saved_end(zone, blocks),
            };
            if started >= end {
                continue;
            }
            let physical = self.flash.mapping().physical(zone);
            let physical = physical.expect("a zone with blocks has flash");
            let range = BlockRange {
                first: started,
                count: end - started,
            };
            flash.settle(physical, range);
        }
    }
}
