//! Taking work back that has been promised: the groups that have not ended, and what becomes
//! of the others when some of them go.

use zonelab_device::Nanos;

use super::ClosedForm;
use crate::account::Cause;
use crate::event::{Event, EventQueue};
use crate::media::{FlashKind, FlashOp};

/// A group that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    token: u32,
    cause: Cause,
    end: Nanos,
    ops: Vec<(FlashOp, Times)>,
}

/// When an operation has its unit and its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    array: (Nanos, Nanos),
    /// [`None`]: it needs no channel.
    transfer: Option<(Nanos, Nanos)>,
}

impl Times {
    fn end(&self) -> Nanos {
        self.transfer
            .map_or(self.array.1, |(_, end)| end.max(self.array.1))
    }
}

/// The groups that have not ended, and perhaps some that have.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    all: Vec<Flight>,
    /// Those that have ended go when there are as many.
    room: usize,
}

impl Flights {
    pub(super) fn add(
        &mut self,
        now: Nanos,
        (token, cause): (u32, Cause),
        ops: Vec<(FlashOp, Times)>,
    ) {
        if self.all.len() >= self.room {
            self.all.retain(|flight| flight.end > now);
            self.room = 2 * self.all.len().max(32);
        }
        let ends = ops.iter().map(|(_, times)| times.end());
        let end = ends.fold(now, Nanos::max);
        self.all.push(Flight {
            token,
            cause,
            end,
            ops,
        });
    }

    /// Groups that end after `now`.
    pub(super) fn after(&self, now: Nanos) -> impl Iterator<Item = (u32, Cause)> {
        let left = self.all.iter().filter(move |flight| flight.end > now);
        left.map(|flight| (flight.token, flight.cause))
    }
}

impl ClosedForm {
    /// When an operation that joins the lines at `at` would have what it needs. What it began
    /// `before` then stays as it is.
    pub(super) fn plan(&self, at: Nanos, op: &FlashOp, before: Option<&Times>) -> Times {
        let unit = &self.units[op.unit as usize];
        let channel_free_at = self.channels[unit.channel as usize];
        let begun =
            |stage: Option<(Nanos, Nanos)>| stage.filter(|(start, end)| *start < at || *end <= at);
        let array = |ready: Nanos| {
            let start = ready.max(unit.free_at);
            begun(before.map(|times| times.array)).unwrap_or((start, start + op.array()))
        };
        let transfer = |ready: Nanos| {
            let start = ready.max(channel_free_at);
            begun(before.and_then(|times| times.transfer)).unwrap_or((start, start + op.transfer()))
        };
        match op.kind {
            FlashKind::Read if op.transfer_ns > 0 => {
                let array = array(at);
                let transfer = Some(transfer(array.1.max(at)));
                Times { array, transfer }
            }
            FlashKind::Program if op.transfer_ns > 0 => {
                let ready = if self.hold { at.max(unit.free_at) } else { at };
                let transfer = transfer(ready);
                Times {
                    array: array(transfer.1.max(at)),
                    transfer: Some(transfer),
                }
            }
            _ => Times {
                array: array(at),
                transfer: None,
            },
        }
    }

    /// Gives an operation what it needs at its times.
    fn take(&mut self, op: &FlashOp, times: &Times) {
        let unit = &mut self.units[op.unit as usize];
        let holds_to = match (op.kind, times.transfer) {
            (FlashKind::Read, Some((_, end))) if self.hold => end,
            _ => times.array.1,
        };
        unit.free_at = unit.free_at.max(holds_to);
        if let Some((_, end)) = times.transfer {
            let free_at = &mut self.channels[unit.channel as usize];
            *free_at = end.max(*free_at);
        }
    }

    /// Ends the groups that `goes` says at once, and lets the others move up.
    pub(in crate::media) fn remove(
        &mut self,
        now: Nanos,
        goes: impl Fn(u32, Cause) -> bool,
        events: &mut EventQueue,
    ) {
        let Some(flights) = &mut self.flights else {
            return;
        };
        if !flights.after(now).any(|(token, cause)| goes(token, cause)) {
            return;
        }
        let mut flights = std::mem::take(&mut **flights);
        for unit in &mut self.units {
            unit.free_at = unit.free_at.min(now);
        }
        for free_at in &mut self.channels {
            *free_at = now.min(*free_at);
        }
        let mut moves = Vec::new();
        flights.all.retain(|flight| flight.end > now);
        flights.all.retain_mut(|flight| {
            let (before, is_gone) = (flight.end, goes(flight.token, flight.cause));
            flight.end = now;
            if !is_gone {
                for (op, times) in &mut flight.ops {
                    *times = self.plan(now, op, Some(times));
                    self.take(op, times);
                    flight.end = flight.end.max(times.end());
                }
            }
            if flight.end != before {
                moves.push((before, flight.token, flight.end));
            }
            !is_gone
        });
        self.flights = Some(Box::new(flights));
        events.move_groups(moves);
        // Fits: units are counted in 32 bits.
        for unit in 0..self.units.len() as u32 {
            if self.waits.any(unit) {
                let due = self.units[unit as usize].free_at.max(now);
                self.wake_at[unit as usize] = due;
                events.push(due, Event::Unit(unit));
            }
        }
    }
}
