//! Who is next on a unit, and what its array operations set off.

use zonelab_device::Nanos;

use super::queues::{NONE, UnitQueue};
use super::{EventDriven, woken, work};
use crate::account::{Cause, Resource};
use crate::config::{DiePolicy, Suspend};
use crate::event::{Event, EventQueue};
use crate::media::FlashKind;
use crate::record::Work;

/// A unit, and the operations that wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) channel: u32,
    /// When it can take the next operation; [`Nanos::MAX`]: held by a page
    /// that waits for the channel.
    pub(super) free_at: Nanos,
    /// What it is busy with until then, if it is: token and cause of the group.
    pub(super) occupant: (u32, Cause),
    /// The event that counts; [`Nanos::MAX`]: none.
    wake_at: Nanos,
    pub(super) running: Running,
    /// The operation that is to be resumed.
    pub(super) suspended: u32,
    /// The program that has asked for the channel and takes the unit when it
    /// gets it. It is still the first of `writes`.
    pub(super) claimed_by: u32,
    pub(super) reads: UnitQueue,
    /// Programs and erases.
    pub(super) writes: UnitQueue,
    /// Reads started while a program or erase could have been.
    reads_in_turn: u32,
    /// Time that the unit will need for the operations in its lines.
    pub(super) waiting: Nanos,
}

/// What is to be done at the end of an array operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Running {
    /// Nothing: there is none, or all that depends on it is settled.
    Settled,
    /// The page of a read is to be transferred.
    Read(u32),
    /// A program or erase ends that could still be suspended.
    Write(Write),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) op: u32,
    /// When its array time began or goes on.
    from: Nanos,
    /// The unit is booked up to here.
    booked_to: Nanos,
}

/// What a unit does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Read(u32),
    Write(u32),
    Resume(u32),
}

impl Unit {
    pub(super) const fn new(channel: u32) -> Self {
        Self {
            channel,
            free_at: Nanos::ZERO,
            occupant: (0, Cause::HostRead),
            wake_at: Nanos::MAX,
            running: Running::Settled,
            suspended: NONE,
            claimed_by: NONE,
            reads: UnitQueue::EMPTY,
            writes: UnitQueue::EMPTY,
            reads_in_turn: 0,
            waiting: Nanos::ZERO,
        }
    }

    pub(super) fn woken(&mut self, now: Nanos) -> bool {
        woken(&mut self.wake_at, now)
    }
}

impl EventDriven {
    /// Puts `op` in a line of its unit.
    pub(super) fn join_unit(&mut self, unit: u32, op: u32) {
        let need = self.need(op);
        let Self { units, ops, .. } = self;
        let this = &mut units[unit as usize];
        this.waiting += need;
        match ops[op].kind {
            FlashKind::Read => this.reads.push_back(ops, op),
            FlashKind::Program | FlashKind::Erase => this.writes.push_back(ops, op),
        }
    }

    /// Takes `op`, whose turn it is, out of its line.
    fn leave_line(&mut self, unit: u32, op: u32) {
        let need = self.need(op);
        let Self { units, ops, .. } = self;
        let this = &mut units[unit as usize];
        this.waiting = this.waiting - need;
        match ops[op].kind {
            FlashKind::Read => this.reads.take_first(ops, op),
            FlashKind::Program | FlashKind::Erase => this.writes.take_first(ops, op),
        }
    }

    /// How long `op` needs its unit.
    pub(super) fn need(&self, op: u32) -> Nanos {
        let record = &self.ops[op];
        let holds = match record.kind {
            FlashKind::Read => self.rules.hold_reads,
            FlashKind::Program | FlashKind::Erase => self.rules.hold_programs,
        };
        let transfer_ns = if holds { record.transfer_ns } else { 0 };
        Nanos(u64::from(record.array_ns) + u64::from(transfer_ns))
    }

    /// Does what is due on a unit.
    pub(super) fn look_at_unit(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) {
        // Each round ends or starts an operation; those that take no time need
        // more than one.
        while self.units[unit as usize].free_at <= now {
            self.settle(unit, now, events);
            if self.units[unit as usize].free_at > now || !self.serve_next(unit, now, events) {
                break;
            }
        }
        if self.waits.any(unit) && self.is_idle(now, unit) {
            self.waits.wake(now, unit, true, events);
        }
        self.await_end(unit, now, events);
    }

    /// Queues an event for the end of what the unit does, if anything depends
    /// on it.
    pub(super) fn await_end(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) {
        let this = &self.units[unit as usize];
        let (free_at, wake_at) = (this.free_at, this.wake_at);
        if free_at <= now || free_at == Nanos::MAX || free_at == wake_at {
            return;
        }
        // The end of a write has an event of its own.
        let is_read = matches!(this.running, Running::Read(_));
        let wanted = is_read || self.choose(unit).is_some() || self.waits.any(unit);
        if wanted {
            self.units[unit as usize].wake_at = free_at;
            events.push(free_at, Event::Unit(unit));
        }
    }

    /// Ends the array operation that is over.
    fn settle(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) {
        let this = &mut self.units[unit as usize];
        match core::mem::replace(&mut this.running, Running::Settled) {
            Running::Settled => {}
            Running::Read(op) => {
                assert_eq!(this.free_at, now, "a read is handled when it ends");
                if self.rules.hold_reads {
                    this.free_at = Nanos::MAX;
                }
                self.ops.at(op).ready = now;
                self.request_transfer(op, now, events);
            }
            Running::Write(write) => {
                let end = this.free_at;
                let record = &self.ops[write.op];
                let resource = Resource::Unit(unit);
                let work = || work(&self.groups, record);
                self.ledger
                    .occupy(resource, record.cause, write.booked_to, end, work);
                self.has_ended(write.op, end, events);
            }
        }
    }

    /// A write that could be suspended ends, if it was not.
    pub(super) fn write_ends(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) {
        let this = &self.units[unit as usize];
        if this.free_at == now && matches!(this.running, Running::Write(_)) {
            self.settle(unit, now, events);
        }
    }

    /// An operation that can be suspended begins, or goes on, and may end at `end`.
    fn may_end(&mut self, unit: u32, op: u32, end: Nanos, events: &mut EventQueue) {
        let place = events.reserve();
        self.groups.at(self.ops[op].group).place = place;
        events.push_to(place, end, Event::Ended(unit));
    }

    /// Starts whatever is next on a unit that is free. Returns false if there
    /// is nothing, or if it has to wait for the channel.
    fn serve_next(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) -> bool {
        let choice = self.choose(unit);
        let claimed_by = self.units[unit as usize].claimed_by;
        if claimed_by != NONE {
            if choice == Some(Choice::Write(claimed_by)) {
                return false;
            }
            self.units[unit as usize].claimed_by = NONE;
            self.withdraw_transfer(claimed_by);
        }
        match choice {
            None => false,
            Some(Choice::Read(op)) => {
                self.start_read(unit, op, now, events);
                true
            }
            Some(Choice::Resume(op)) => {
                self.resume(unit, op, now, events);
                self.suspend_for_waiting(unit, now);
                true
            }
            Some(Choice::Write(op)) if self.rules.hold_programs && self.ops[op].transfer_ns > 0 => {
                self.units[unit as usize].claimed_by = op;
                self.request_transfer(op, now, events);
                self.units[unit as usize].claimed_by == NONE
            }
            Some(Choice::Write(op)) => {
                self.leave_line(unit, op);
                self.start_write(unit, op, now, events);
                self.suspend_for_waiting(unit, now);
                if self.rules.one_ahead {
                    self.load_next(unit, now, events);
                }
                true
            }
        }
    }

    /// With a cache register: the page of the program that is next may come,
    /// if it has not been asked for.
    pub(super) fn load_next(&mut self, unit: u32, now: Nanos, events: &mut EventQueue) {
        let Some(op) = self.units[unit as usize].writes.first() else {
            return;
        };
        let record = self.ops.at(op);
        let is_asked_for = record.startable || record.transferable || record.under_way;
        if is_asked_for || self.programs.held {
            return;
        }
        record.under_way = true;
        self.programs.under_way += 1;
        self.request_transfer(op, now, events);
    }

    /// Who is next on a unit as things stand.
    fn choose(&self, unit: u32) -> Option<Choice> {
        let this = &self.units[unit as usize];
        let read = this.reads.first();
        let turn_is_over = match self.rules.policy {
            DiePolicy::Weighted { reads } => this.reads_in_turn >= reads,
            DiePolicy::Fifo | DiePolicy::ReadFirst => false,
        };
        if this.suspended != NONE {
            return match read {
                Some(read) if !turn_is_over => Some(Choice::Read(read)),
                _ => Some(Choice::Resume(this.suspended)),
            };
        }
        let first_write = this.writes.first();
        let write = first_write.filter(|op| self.ops[*op].startable);
        let (Some(read), Some(oldest)) = (read, first_write) else {
            return read.map(Choice::Read).or(write.map(Choice::Write));
        };
        let read_goes = match self.rules.policy {
            DiePolicy::Fifo => self.ops[read].sequence < self.ops[oldest].sequence,
            DiePolicy::ReadFirst => true,
            DiePolicy::Weighted { .. } => write.is_none() || !turn_is_over,
        };
        if read_goes {
            Some(Choice::Read(read))
        } else {
            write.map(Choice::Write)
        }
    }

    fn start_read(&mut self, unit: u32, op: u32, now: Nanos, events: &mut EventQueue) {
        self.leave_line(unit, op);
        let record = self.ops[op];
        let end = now + Nanos(u64::from(record.array_ns));
        let this = &mut self.units[unit as usize];
        let write = this.writes.first();
        let write_waits = this.suspended != NONE || write.is_some_and(|w| self.ops[w].startable);
        this.reads_in_turn = if write_waits {
            this.reads_in_turn.saturating_add(1)
        } else {
            0
        };
        this.free_at = end;
        this.occupant = (self.groups[record.group].token, record.cause);
        let resource = Resource::Unit(unit);
        let work = || work(&self.groups, &record);
        self.ledger.occupy(resource, record.cause, now, end, work);
        if record.transfer_ns > 0 {
            this.running = Running::Read(op);
        } else {
            self.end_is_certain(op, end, events);
        }
    }

    /// The channel takes up a piece, not the last, of the page of the program
    /// that has claimed `unit`: nothing else starts there until the last has come.
    pub(super) fn hold_unit(&mut self, unit: u32, piece_ns: u32, occupant: (u32, Cause)) {
        let this = &mut self.units[unit as usize];
        this.occupant = occupant;
        this.free_at = Nanos::MAX;
        this.waiting = this.waiting - Nanos(u64::from(piece_ns));
    }

    /// The channel takes up the last of `op`, which has claimed its unit: it
    /// holds both to `transferred`, and the unit from there to its end.
    pub(super) fn start_held_program(
        &mut self,
        op: u32,
        now: Nanos,
        transferred: Nanos,
        events: &mut EventQueue,
    ) {
        let unit = self.ops[op].unit;
        let this = &mut self.units[unit as usize];
        assert!(
            this.claimed_by == op && (this.free_at <= now || this.free_at == Nanos::MAX),
            "a unit is free for the program that claims it"
        );
        this.claimed_by = NONE;
        self.leave_line(unit, op);
        self.ops.at(op).ready = transferred;
        self.start_write(unit, op, transferred, events);
        self.suspend_for_waiting(unit, now);
        self.await_end(unit, now, events);
    }

    /// Starts the array time of a program or erase at `from`.
    fn start_write(&mut self, unit: u32, op: u32, from: Nanos, events: &mut EventQueue) {
        let record = self.ops[op];
        let is_program = record.kind == FlashKind::Program;
        if is_program && self.rules.reports_loads && self.rules.loads_at_start {
            events.push(from, Event::Loaded(self.groups[record.group].token));
        }
        let end = from + Nanos(u64::from(record.array_ns));
        let this = &mut self.units[unit as usize];
        this.reads_in_turn = 0;
        this.free_at = end;
        this.occupant = (self.groups[record.group].token, record.cause);
        if self.rules.suspends(record.kind) > 0 {
            this.running = Running::Write(Write {
                op,
                from,
                booked_to: from,
            });
            self.may_end(unit, op, end, events);
        } else {
            let resource = Resource::Unit(unit);
            let work = || work(&self.groups, &record);
            self.ledger.occupy(resource, record.cause, from, end, work);
            self.end_is_certain(op, end, events);
        }
    }

    /// A read arrives: stops what runs on the unit, if that can be stopped
    /// before it ends.
    pub(super) fn suspend_for_read(&mut self, unit: u32, now: Nanos) {
        let this = &mut self.units[unit as usize];
        let Running::Write(write) = this.running else {
            return;
        };
        let record = self.ops.at(write.op);
        let Suspend {
            overhead_ns: overhead,
            interval_ns: interval,
            ..
        } = self.rules.suspend;
        // A program whose page is still on its way (hold), or an operation
        // that is being resumed, stops before its array time goes on.
        let mut stop = write.from.max(now);
        if interval > Nanos::ZERO {
            let done = Nanos(u64::from(record.done_ns)) + (stop - write.from);
            let point = Nanos((done.0 / interval.0 + 1) * interval.0);
            stop += point - done;
        }
        let left = this.free_at.saturating_sub(stop);
        if left <= overhead || record.suspends >= self.rules.suspends(record.kind) {
            return;
        }
        record.suspends += 1;
        // Fits: no more than the array time.
        record.done_ns += (stop - write.from).0 as u32;
        record.array_ns = u32::try_from(left.0).expect("less is left than there was");
        this.running = Running::Settled;
        this.suspended = write.op;
        this.free_at = stop + overhead;
        let resource = Resource::Unit(unit);
        let stopped = this.free_at;
        let piece = *record;
        record.ready = stopped;
        let work = || Work {
            suspends: piece.suspends - 1,
            ..work(&self.groups, &piece)
        };
        self.ledger
            .occupy(resource, piece.cause, write.booked_to, stopped, work);
    }

    /// With an interval, reads that were left waiting stop what begins now.
    fn suspend_for_waiting(&mut self, unit: u32, now: Nanos) {
        let waits = self.units[unit as usize].reads.first().is_some();
        if waits && self.rules.suspend.interval_ns > Nanos::ZERO {
            self.suspend_for_read(unit, now);
        }
    }

    fn resume(&mut self, unit: u32, op: u32, now: Nanos, events: &mut EventQueue) {
        let this = &mut self.units[unit as usize];
        let from = now + self.rules.suspend.overhead_ns;
        this.suspended = NONE;
        this.reads_in_turn = 0;
        let record = &self.ops[op];
        this.free_at = from + Nanos(u64::from(record.array_ns));
        this.occupant = (self.groups[record.group].token, record.cause);
        this.running = Running::Write(Write {
            op,
            from,
            booked_to: now,
        });
        let end = this.free_at;
        self.may_end(unit, op, end, events);
    }

    /// The channel has begun to empty the register that holds `unit`: it is
    /// free at `at`.
    pub(super) fn release_unit(
        &mut self,
        unit: u32,
        at: Nanos,
        now: Nanos,
        events: &mut EventQueue,
    ) {
        let this = &mut self.units[unit as usize];
        assert_eq!(this.free_at, Nanos::MAX, "a page holds the unit");
        this.free_at = at;
        self.await_end(unit, now, events);
    }

    pub(in crate::media) fn is_idle(&self, now: Nanos, unit: u32) -> bool {
        let this = &self.units[unit as usize];
        this.free_at <= now
            && !matches!(this.running, Running::Read(_))
            && this.suspended == NONE
            && this.reads.first().is_none()
            && this.writes.first().is_none()
    }

    /// How long `unit` is booked beyond `now`: what can still be suspended is not.
    pub(in crate::media) fn booked_ahead(&self, now: Nanos, unit: u32) -> Nanos {
        let this = &self.units[unit as usize];
        let until = match this.running {
            Running::Write(write) => write.booked_to,
            Running::Settled | Running::Read(_) => this.free_at,
        };
        match until {
            // Held by a page that waits for its channel.
            Nanos::MAX => Nanos::ZERO,
            until => until.saturating_sub(now),
        }
    }

    /// How long what `unit` is doing has run that is not booked yet.
    pub(in crate::media) fn booked_late(&self, now: Nanos, unit: u32) -> Nanos {
        match self.units[unit as usize].running {
            Running::Write(write) => now.saturating_sub(write.booked_to),
            Running::Settled | Running::Read(_) => Nanos::ZERO,
        }
    }

    pub(in crate::media) fn backlog(&self, now: Nanos, unit: u32) -> Nanos {
        let this = &self.units[unit as usize];
        let mut backlog = this.waiting;
        if this.free_at < Nanos::MAX {
            backlog += this.free_at.saturating_sub(now);
        }
        if this.suspended != NONE {
            backlog += Nanos(u64::from(self.ops[this.suspended].array_ns));
        }
        backlog
    }
}
