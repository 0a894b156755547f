//! Taking work back: operations that wait, run or are on their way are gone, and the others
//! move up.

use zonelab_device::Nanos;

use super::EventDriven;
use super::queues::NONE;
use super::unit::Running;
use crate::account::Cause;
use crate::event::{Event, EventQueue};

/// Ends of groups that are certain, and perhaps some that have passed.
#[derive(Clone, Debug, Default)]
pub(super) struct Certain {
    all: Vec<(Nanos, u32, Cause)>,
    /// The first ones go when there are as many.
    room: usize,
    /// What ends by then has passed.
    passed: Nanos,
}

impl Certain {
    pub(super) fn add(&mut self, end: Nanos, token: u32, cause: Cause) {
        if self.all.len() >= self.room {
            let passed = self.passed;
            self.all.retain(|(end, ..)| *end > passed);
            self.room = 2 * self.all.len().max(32);
        }
        self.all.push((end, token, cause));
    }
}

impl EventDriven {
    /// Keeps account of groups from now on.
    pub(in crate::media) fn track(&mut self) {
        self.certain.get_or_insert_default();
    }

    /// It is `now`.
    pub(super) fn note_time(&mut self, now: Nanos) {
        if let Some(certain) = &mut self.certain {
            certain.passed = now;
        }
    }

    /// Groups that have not ended, if they are tracked.
    pub(in crate::media) fn present(&self, now: Nanos) -> Vec<(u32, Cause)> {
        let Some(certain) = &self.certain else {
            return Vec::new();
        };
        let certain = certain.all.iter().filter(|(end, ..)| *end > now);
        let certain = certain.map(|(_, token, cause)| (*token, *cause));
        let uncertain = self.ops.iter();
        let uncertain = uncertain.map(|(_, op)| (self.groups[op.group].token, op.cause));
        certain.chain(uncertain).collect()
    }

    /// Ends the groups that `goes` says at once, and lets the others move up.
    pub(in crate::media) fn remove(
        &mut self,
        now: Nanos,
        goes: impl Fn(u32, Cause) -> bool,
        events: &mut EventQueue,
    ) {
        let of_group = |group: u32| self.groups[group].token;
        // In the order of their slots.
        let gone: Vec<u32> = self
            .ops
            .iter()
            .filter(|(_, op)| goes(of_group(op.group), op.cause))
            .map(|(index, _)| index)
            .collect();
        let Some(certain) = &mut self.certain else {
            return;
        };
        let mut moves = Vec::new();
        certain.all.retain(|(end, token, cause)| {
            let is_gone = *end > now && goes(*token, *cause);
            if is_gone {
                moves.push((*end, *token, *cause));
            }
            *end > now && !is_gone
        });
        if gone.is_empty() && moves.is_empty() {
            return;
        }
        self.forget_loads(&gone, &moves, events);
        events.move_groups(
            moves
                .into_iter()
                .map(|(end, token, _)| (end, token, now))
                .collect(),
        );
        for unit in 0..self.units.len() {
            self.clear_unit(unit, now, &gone, &goes);
        }
        for channel in &mut self.channels {
            channel.line.remove_all(&mut self.ops, &gone);
            if channel.free_at > now && goes(channel.occupant.0, channel.occupant.1) {
                channel.free_at = now;
                channel.arriving = NONE;
            }
        }
        self.forget(now, &gone, events);
        self.look_at_all(now, events);
    }

    /// Arrivals of pages that have been announced, of programs that are gone.
    fn forget_loads(&self, gone: &[u32], moves: &[(Nanos, u32, Cause)], events: &mut EventQueue) {
        if !self.rules.reports_loads {
            return;
        }
        let waiting = gone.iter().map(|&op| {
            let record = &self.ops[op];
            (self.groups[record.group].token, record.cause)
        });
        let certain = moves.iter().map(|(_, token, cause)| (*token, *cause));
        for (token, cause) in waiting.chain(certain) {
            // Erasures before a program have the token of the program.
            if cause.is_program() {
                events.forget(Event::Loaded(token));
            }
        }
    }

    fn clear_unit(
        &mut self,
        unit: usize,
        now: Nanos,
        gone: &[u32],
        goes: &impl Fn(u32, Cause) -> bool,
    ) {
        let is_gone = |op: u32| gone.binary_search(&op).is_ok();
        let this = &mut self.units[unit];
        this.reads.remove_all(&mut self.ops, gone);
        this.writes.remove_all(&mut self.ops, gone);
        if is_gone(this.claimed_by) {
            this.claimed_by = NONE;
        }
        if is_gone(this.suspended) {
            this.suspended = NONE;
        }
        if this.free_at > now && goes(this.occupant.0, this.occupant.1) {
            this.free_at = now;
            this.running = Running::Settled;
        }
        let this = &self.units[unit];
        let lines = this
            .reads
            .iter(&self.ops)
            .chain(this.writes.iter(&self.ops));
        let waiting = lines.fold(Nanos::ZERO, |sum, op| sum + self.need(op));
        self.units[unit].waiting = waiting;
    }

    /// Forgets operations that are in no line any more, and ends their groups.
    fn forget(&mut self, now: Nanos, gone: &[u32], events: &mut EventQueue) {
        let mut groups = Vec::new();
        for &op in gone {
            let record = self.ops.remove(op);
            self.programs.under_way -= u32::from(record.under_way);
            groups.push(record.group);
        }
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let token = self.groups.remove(group).token;
            events.push(now, Event::GroupDone(token));
        }
        let certain = self.certain.iter().flat_map(|certain| &certain.all);
        let programs = certain.filter(|(_, _, cause)| !cause.is_read());
        let end = programs.map(|(end, ..)| *end).max();
        self.programs.end = self.programs.end.min(end.unwrap_or(now));
        if self.programs.held {
            events.forget(Event::Quiet);
            if self.programs.under_way == 0 {
                events.push(self.programs.end.max(now), Event::Quiet);
            }
        }
    }

    /// Lets everything start that can.
    fn look_at_all(&mut self, now: Nanos, events: &mut EventQueue) {
        // Fits: units and channels are counted in 32 bits.
        for unit in 0..self.units.len() as u32 {
            if self.rules.one_ahead {
                self.load_next(unit, now, events);
            }
            self.look_at_unit(unit, now, events);
        }
        for channel in 0..self.channels.len() as u32 {
            self.look_at_channel(channel, now, events);
        }
    }
}
