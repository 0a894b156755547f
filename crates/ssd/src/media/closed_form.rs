//! The engine for service in order of arrival: one time per resource.

mod without;

use zonelab_device::Nanos;

use super::idle::IdleWaits;
use super::{FlashKind, FlashOp};
use crate::account::{Cause, Ledger, Resource};
use crate::event::{Event, EventQueue};
use crate::record::Work;
use without::Flights;

/// Channels and units, each with the time at which it is next free.
#[derive(Clone, Debug)]
pub(super) struct ClosedForm {
    /// A unit is held during transfers.
    hold: bool,
    units: Vec<Unit>,
    /// When each channel is next free.
    channels: Vec<Nanos>,
    waits: IdleWaits,
    /// The event that is queued on behalf of those who wait for a unit to be
    /// idle, deadlines apart; [`Nanos::MAX`]: none.
    wake_at: Vec<Nanos>,
    /// Groups that have not ended, if they are tracked.
    flights: Option<Box<Flights>>,
    pub(super) ledger: Ledger,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    free_at: Nanos,
    channel: u32,
}

impl ClosedForm {
    pub(super) fn new(channel_of_unit: &[u16], channels: u32, hold: bool) -> Self {
        let unit = |channel: &u16| Unit {
            free_at: Nanos::ZERO,
            channel: u32::from(*channel),
        };
        let units: Vec<Unit> = channel_of_unit.iter().map(unit).collect();
        let count = units.len();
        Self {
            hold,
            units,
            channels: vec![Nanos::ZERO; channels as usize],
            waits: IdleWaits::new(count),
            wake_at: vec![Nanos::MAX; count],
            flights: None,
            ledger: Ledger::new(channels, count as u32),
        }
    }

    #[inline]
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        token: u32,
        cause: Cause,
        ops: &[FlashOp],
        events: &mut EventQueue,
    ) {
        if self.flights.is_some() {
            return self.submit_tracked(now, token, cause, ops, events);
        }
        let mut end = now;
        for op in ops {
            end = end.max(self.reserve(now, token, cause, op));
        }
        events.push(end, Event::GroupDone(token));
    }

    #[cold]
    fn submit_tracked(
        &mut self,
        now: Nanos,
        token: u32,
        cause: Cause,
        ops: &[FlashOp],
        events: &mut EventQueue,
    ) {
        let mut end = now;
        let mut planned = Vec::with_capacity(ops.len());
        for op in ops {
            planned.push((*op, self.plan(now, op, None)));
            end = end.max(self.reserve(now, token, cause, op));
        }
        if let Some(flights) = &mut self.flights {
            flights.add(now, (token, cause), planned);
        }
        events.push(end, Event::GroupDone(token));
    }

    /// Keeps account of groups from now on.
    pub(super) fn track(&mut self) {
        self.flights.get_or_insert_default();
    }

    /// Groups that have not ended, if they are tracked.
    pub(super) fn present(&self, now: Nanos) -> Vec<(u32, Cause)> {
        let flights = self.flights.as_deref();
        flights.map_or_else(Vec::new, |flights| flights.after(now).collect())
    }

    /// Reserves what `op` needs; returns when it ends.
    #[inline(always)]
    fn reserve(&mut self, now: Nanos, token: u32, cause: Cause, op: &FlashOp) -> Nanos {
        match op.kind {
            FlashKind::Read if op.transfer_ns > 0 => self.reserve_read(now, token, cause, op),
            FlashKind::Program if op.transfer_ns > 0 => self.reserve_program(now, token, cause, op),
            _ => self.reserve_array(now, token, cause, op),
        }
    }

    #[inline(always)]
    fn reserve_array(&mut self, ready: Nanos, token: u32, cause: Cause, op: &FlashOp) -> Nanos {
        let unit = &mut self.units[op.unit as usize];
        let start = ready.max(unit.free_at);
        unit.free_at = start + op.array();
        let resource = Resource::Unit(op.unit);
        let work = || work(token, op, ready);
        self.ledger
            .occupy(resource, cause, start, unit.free_at, work);
        unit.free_at
    }

    #[inline(always)]
    fn reserve_program(&mut self, now: Nanos, token: u32, cause: Cause, op: &FlashOp) -> Nanos {
        let unit = &self.units[op.unit as usize];
        let earliest = if self.hold {
            now.max(unit.free_at)
        } else {
            now
        };
        let work = || work(token, op, now);
        let (start, end) = self.reserve_channel(earliest, cause, op, work);
        if self.hold {
            let resource = Resource::Unit(op.unit);
            self.ledger.occupy(resource, cause, start, end, work);
        }
        self.reserve_array(end, token, cause, op)
    }

    #[inline(always)]
    fn reserve_read(&mut self, now: Nanos, token: u32, cause: Cause, op: &FlashOp) -> Nanos {
        let sensed = self.reserve_array(now, token, cause, op);
        let work = || work(token, op, sensed);
        let (start, end) = self.reserve_channel(sensed, cause, op, work);
        if self.hold {
            self.units[op.unit as usize].free_at = end;
            let resource = Resource::Unit(op.unit);
            self.ledger.occupy(resource, cause, start, end, work);
        }
        end
    }

    #[inline(always)]
    fn reserve_channel(
        &mut self,
        earliest: Nanos,
        cause: Cause,
        op: &FlashOp,
        work: impl FnOnce() -> Work,
    ) -> (Nanos, Nanos) {
        let channel = self.units[op.unit as usize].channel;
        let free_at = &mut self.channels[channel as usize];
        let start = earliest.max(*free_at);
        *free_at = start + op.transfer();
        let resource = Resource::Channel(channel);
        self.ledger.occupy(resource, cause, start, *free_at, work);
        (start, *free_at)
    }

    /// Events come only on behalf of those who wait for an idle unit.
    pub(super) fn handle(&mut self, now: Nanos, event: Event, events: &mut EventQueue) {
        let unit = match event {
            Event::Unit(unit) => {
                let wake_at = &mut self.wake_at[unit as usize];
                if *wake_at <= now {
                    *wake_at = Nanos::MAX;
                }
                unit
            }
            Event::Idle(unit) => {
                self.waits.has_told(unit);
                unit
            }
            _ => return,
        };
        if self.waits.any(unit) {
            let idle = self.is_idle(now, unit);
            self.waits.wake(now, unit, idle, events);
            self.watch(now, unit, events);
        }
    }

    pub(super) fn wait_for_idle(
        &mut self,
        now: Nanos,
        unit: u32,
        task: u32,
        deadline: Option<Nanos>,
        events: &mut EventQueue,
    ) {
        self.waits.add(now, unit, task, deadline, events);
        self.watch(now, unit, events);
    }

    /// Queues an event for when the unit will be idle as far as is known now.
    /// If more work comes, the event finds it busy and is queued again. If it is idle now,
    /// those who wait are being told.
    fn watch(&mut self, now: Nanos, unit: u32, events: &mut EventQueue) {
        let wake_at = &mut self.wake_at[unit as usize];
        let free_at = self.units[unit as usize].free_at;
        if self.waits.any(unit) && *wake_at == Nanos::MAX && free_at > now {
            *wake_at = free_at;
            events.push(free_at, Event::Unit(unit));
        }
    }

    pub(super) fn is_idle(&self, now: Nanos, unit: u32) -> bool {
        self.units[unit as usize].free_at <= now
    }

    /// How long `unit` is booked beyond `now`: for all that it was given.
    pub(super) fn booked_ahead(&self, now: Nanos, unit: u32) -> Nanos {
        self.backlog(now, unit)
    }

    /// All is booked when it is submitted.
    #[expect(clippy::unused_self, reason = "the other engine has it")]
    pub(super) const fn booked_late(&self, _now: Nanos, _unit: u32) -> Nanos {
        Nanos::ZERO
    }

    pub(super) fn backlog(&self, now: Nanos, unit: u32) -> Nanos {
        self.units[unit as usize].free_at.saturating_sub(now)
    }
}

/// A group that is being put together.
pub(crate) struct Group<'a> {
    engine: &'a mut ClosedForm,
    now: Nanos,
    token: u32,
    cause: Cause,
    end: Nanos,
}

impl<'a> Group<'a> {
    #[inline]
    pub(super) fn new(engine: &'a mut ClosedForm, now: Nanos, token: u32, cause: Cause) -> Self {
        let end = now;
        Self {
            engine,
            now,
            token,
            cause,
            end,
        }
    }

    /// Adds an operation.
    #[inline(always)]
    pub(crate) fn add(&mut self, op: &FlashOp) {
        self.engine.ledger.count_one(self.cause, op.unit);
        let end = self.engine.reserve(self.now, self.token, self.cause, op);
        self.end = self.end.max(end);
    }

    /// Nothing more is added: queues the event of its end.
    #[inline(always)]
    pub(crate) fn end(self, events: &mut EventQueue) {
        events.push(self.end, Event::GroupDone(self.token));
    }
}

/// `op` of the group of `token`, for which a resource could have been taken from `ready` on.
const fn work(token: u32, op: &FlashOp, ready: Nanos) -> Work {
    Work {
        token,
        kind: op.kind,
        ready,
        suspends: 0,
    }
}
