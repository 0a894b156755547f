//! The requests that wait, by their numbers, and the commands they make together.

use zonelab_device::{Command, Lba, NamespaceId, Nanos, Op};

use super::direction::Address;
use crate::scheduler::RequestId;
use crate::scheduler::tree::NONE;

/// How a request is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not ordered.
    AtOnce,
    Read,
    /// To a zone, counted over all namespaces; [`NONE`] where there are none.
    Write {
        zone: u32,
    },
    Append,
}

/// A command in the making: adjacent requests. It has the number of the one
/// that came first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) nsid: NamespaceId,
    pub(super) slba: u64,
    pub(super) nlb: u32,
    /// Neighbours among the writes that wait for a zone.
    pub(super) previous: u32,
    pub(super) next: u32,
    /// Its requests with the lowest and the highest address.
    first: u32,
    last: u32,
}

impl Unit {
    /// The block behind the last.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.slba.saturating_add(u64::from(self.nlb))
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    waits: bool,
    command: Command,
    kind: Kind,
    sequence: u64,
    inserted: Nanos,
    /// The request behind it in the same command.
    next: u32,
    /// The command that it is the first to make; meaningless once it has joined
    /// that of another.
    unit: Unit,
}

impl Request {
    const FREE: Self = Self {
        waits: false,
        command: Command::new(Op::Flush),
        kind: Kind::AtOnce,
        sequence: 0,
        inserted: Nanos::ZERO,
        next: NONE,
        unit: Unit {
            nsid: NamespaceId::FIRST,
            slba: 0,
            nlb: 0,
            previous: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
        },
    };
}

/// What waits. A slot is a request's number; where a command is meant, it is
/// that of the request that came first.
#[derive(Debug)]
pub(super) struct Requests {
    slots: Vec<Request>,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Keeps a request, as a command of its own.
    #[inline]
    pub(super) fn put(
        &mut self,
        slot: u32,
        sequence: u64,
        now: Nanos,
        command: Command,
        kind: Kind,
    ) {
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, Request::FREE);
        }
        debug_assert!(!self.slots[slot as usize].waits, "request {slot} is free");
        self.slots[slot as usize] = Request {
            waits: true,
            command,
            kind,
            sequence,
            inserted: now,
            next: NONE,
            unit: Unit {
                nsid: command.nsid,
                slba: command.op.first_block(),
                nlb: command.op.nlb(),
                previous: NONE,
                next: NONE,
                first: slot,
                last: slot,
            },
        };
    }

    #[inline]
    pub(super) fn unit(&self, slot: u32) -> &Unit {
        &self.slots[slot as usize].unit
    }

    #[inline]
    pub(super) fn unit_mut(&mut self, slot: u32) -> &mut Unit {
        &mut self.slots[slot as usize].unit
    }

    #[inline]
    pub(super) fn kind(&self, slot: u32) -> Kind {
        self.slots[slot as usize].kind
    }

    /// Placement identifier of its command.
    #[inline]
    pub(super) fn placement(&self, slot: u32) -> u16 {
        self.slots[slot as usize].command.placement
    }

    /// When the first request of a command was inserted.
    #[inline]
    pub(super) fn inserted(&self, slot: u32) -> Nanos {
        self.slots[slot as usize].inserted
    }

    #[inline]
    pub(super) fn address(&self, slot: u32) -> Address {
        let request = &self.slots[slot as usize];
        Address {
            nsid: request.unit.nsid.0,
            lba: request.unit.slba,
            sequence: request.sequence,
        }
    }

    /// The request `back` joins the command `front` at its end.
    pub(super) fn join_back(&mut self, front: u32, back: u32) {
        let nlb = self.unit(back).nlb;
        let unit = self.unit_mut(front);
        let last = std::mem::replace(&mut unit.last, back);
        unit.nlb += nlb;
        self.slots[last as usize].next = back;
    }

    /// The request `front` joins the command `back` at its start.
    pub(super) fn join_front(&mut self, front: u32, back: u32) {
        let Unit { slba, nlb, .. } = *self.unit(front);
        let unit = self.unit_mut(back);
        let behind = std::mem::replace(&mut unit.first, front);
        unit.slba = slba;
        unit.nlb += nlb;
        self.slots[front as usize].next = behind;
    }

    /// Lets go of a command: adds its requests to `carried`.
    #[inline]
    pub(super) fn release(&mut self, slot: u32, carried: &mut Vec<RequestId>) -> Command {
        let Request { command, unit, .. } = self.slots[slot as usize];
        let mut next = unit.first;
        while next != NONE {
            let request = &mut self.slots[next as usize];
            request.waits = false;
            carried.push(RequestId(next));
            next = request.next;
        }
        let (slba, nlb) = (Lba(unit.slba), unit.nlb);
        let op = match command.op {
            Op::Read { .. } => Op::Read { slba, nlb },
            Op::Write { .. } => Op::Write { slba, nlb },
            other => other,
        };
        Command { op, ..command }
    }

    /// Gives back all requests as they came, each with its place in the order
    /// of insertion.
    pub(super) fn drain(&mut self, waiting: &mut Vec<(u64, RequestId, Command)>) {
        for (slot, request) in (0..).zip(&mut self.slots) {
            if std::mem::take(&mut request.waits) {
                waiting.push((request.sequence, RequestId(slot), request.command));
            }
        }
    }
}
