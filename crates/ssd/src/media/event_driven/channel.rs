//! Who is next on a channel, and what a transfer sets off.

use zonelab_device::Nanos;

use super::queues::{ChannelQueue, NONE};
use super::{EventDriven, woken, work};
use crate::account::{Cause, Resource};
use crate::event::{Event, EventQueue};
use crate::media::FlashKind;

/// A channel, and the transfers that wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) free_at: Nanos,
    /// What it is busy with until then, if it is: token and cause of the group.
    pub(super) occupant: (u32, Cause),
    /// The event that counts; [`Nanos::MAX`]: none.
    wake_at: Nanos,
    /// What is to be done at `free_at` for this operation: the page of a
    /// program arrives, or a piece of a page, and the rest joins the line again.
    pub(super) arriving: u32,
    pub(super) line: ChannelQueue,
}

impl Channel {
    pub(super) const IDLE: Self = Self {
        free_at: Nanos::ZERO,
        occupant: (0, Cause::HostRead),
        wake_at: Nanos::MAX,
        arriving: NONE,
        line: ChannelQueue::EMPTY,
    };

    pub(super) fn woken(&mut self, now: Nanos) -> bool {
        woken(&mut self.wake_at, now)
    }
}

impl EventDriven {
    fn channel_of(&self, op: u32) -> u32 {
        self.units[self.ops[op].unit as usize].channel
    }

    /// Reserves the next place on the channel of `op`.
    pub(super) fn draw_ticket(&mut self, op: u32) {
        let channel = self.channel_of(op) as usize;
        self.channels[channel].line.push_back(&mut self.ops, op);
    }

    /// `op` is ready for its transfer from now on.
    pub(super) fn request_transfer(&mut self, op: u32, now: Nanos, events: &mut EventQueue) {
        self.ops[op].transferable = true;
        if !self.rules.tickets {
            self.draw_ticket(op);
        }
        let channel = self.channel_of(op);
        self.look_at_channel(channel, now, events);
    }

    /// `op` is no longer ready for its transfer, and leaves the line.
    pub(super) fn withdraw_transfer(&mut self, op: u32) {
        assert!(!self.rules.tickets, "tickets are never given back");
        self.ops[op].transferable = false;
        let channel = self.channel_of(op) as usize;
        self.channels[channel].line.remove(&mut self.ops, op);
    }

    /// The transfer that may start next.
    fn next_transfer(&self, channel: u32) -> Option<u32> {
        let first = self.channels[channel as usize].line.first();
        first.filter(|op| self.ops[*op].transferable)
    }

    /// Does what is due on a channel.
    ///
    /// A unit that gets its page may in turn look at this channel, so its state
    /// is read again after that.
    pub(super) fn look_at_channel(&mut self, channel: u32, now: Nanos, events: &mut EventQueue) {
        let c = channel as usize;
        if self.channels[c].free_at <= now && self.channels[c].arriving != NONE {
            let op = core::mem::replace(&mut self.channels[c].arriving, NONE);
            let arrived = self.channels[c].free_at;
            self.piece_arrived(op, arrived, now, events);
        }
        if self.channels[c].free_at <= now
            && let Some(op) = self.next_transfer(channel)
        {
            self.start_transfer(channel, op, now, events);
        }
        let free_at = self.channels[c].free_at;
        let wanted = self.channels[c].arriving != NONE || self.next_transfer(channel).is_some();
        if wanted && free_at > now && self.channels[c].wake_at != free_at {
            self.channels[c].wake_at = free_at;
            events.push(free_at, Event::Channel(channel));
        }
    }

    /// A piece of a page has crossed the channel of `op`.
    fn piece_arrived(&mut self, op: u32, arrived: Nanos, now: Nanos, events: &mut EventQueue) {
        let record = self.ops.at(op);
        record.ready = arrived;
        let (unit, group) = (record.unit, record.group);
        let is_program = record.kind == FlashKind::Program;
        let is_whole = record.transfer_ns == 0;
        record.startable = is_program && is_whole;
        if is_program && self.rules.reports_loads && !self.rules.loads_at_start {
            events.push(now, Event::Loaded(self.groups[group].token));
        }
        if is_whole {
            self.look_at_unit(unit, now, events);
        } else {
            self.draw_ticket(op);
        }
    }

    fn start_transfer(&mut self, channel: u32, op: u32, now: Nanos, events: &mut EventQueue) {
        let record = self.ops[op];
        let piece_ns = record.transfer_ns.min(self.rules.piece_ns);
        let end = now + Nanos(u64::from(piece_ns));
        let this = &mut self.channels[channel as usize];
        assert!(
            this.free_at <= now && this.arriving == NONE,
            "a channel carries one page at a time"
        );
        this.line.remove(&mut self.ops, op);
        this.free_at = end;
        this.occupant = (self.groups[record.group].token, record.cause);
        let occupant = this.occupant;
        let resource = Resource::Channel(channel);
        let work = || work(&self.groups, &record);
        self.ledger.occupy(resource, record.cause, now, end, work);
        let holds = match record.kind {
            FlashKind::Read => self.rules.hold_reads,
            FlashKind::Program | FlashKind::Erase => self.rules.hold_programs,
        };
        if holds {
            let resource = Resource::Unit(record.unit);
            self.ledger.occupy(resource, record.cause, now, end, work);
        }
        let left_ns = record.transfer_ns - piece_ns;
        if left_ns > 0 {
            self.ops.at(op).transfer_ns = left_ns;
            self.channels[channel as usize].arriving = op;
            if record.kind == FlashKind::Program && holds {
                self.hold_unit(record.unit, piece_ns, occupant);
            }
            return;
        }
        match (record.kind, holds) {
            (FlashKind::Read, false) => self.end_is_certain(op, end, events),
            (FlashKind::Read, true) => {
                self.end_is_certain(op, end, events);
                self.release_unit(record.unit, end, now, events);
            }
            (_, false) => {
                self.ops.at(op).transfer_ns = 0;
                self.channels[channel as usize].arriving = op;
            }
            (_, true) => {
                if self.rules.reports_loads {
                    events.push(end, Event::Loaded(self.groups[record.group].token));
                }
                self.start_held_program(op, now, end, events);
            }
        }
    }
}
