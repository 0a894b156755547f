//! Records of operations in flight, and the lines they stand in.
//!
//! A record is in at most one line of a unit and one line of a channel, so the
//! links are part of it and queueing allocates nothing.

use zonelab_device::Nanos;

use crate::account::Cause;
use crate::media::{FlashKind, FlashOp};
use crate::slab::Slab;

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// An operation whose end is not certain yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpRecord {
    /// Order of submission.
    pub(super) sequence: u64,
    pub(super) unit: u32,
    pub(super) group: u32,
    /// What is left of the array time.
    pub(super) array_ns: u32,
    /// What is left of the time on the channel; 0 from the start: it does not use it.
    pub(super) transfer_ns: u32,
    /// Array time before the latest start or resumption.
    pub(super) done_ns: u32,
    /// How often it has been suspended.
    pub(super) suspends: u32,
    /// Since when it could do the next thing, if the resource for that were free.
    pub(super) ready: Nanos,
    next_in_unit: u32,
    next_on_channel: u32,
    previous_on_channel: u32,
    pub(super) kind: FlashKind,
    pub(super) cause: Cause,
    /// The unit may start it: its page, if it needs one, is there.
    pub(super) startable: bool,
    /// Its transfer may start.
    pub(super) transferable: bool,
    /// A program whose page has been asked for, behind a cache register.
    pub(super) under_way: bool,
}

impl OpRecord {
    /// The record of `op` on its arrival. An erase has no page to transfer.
    pub(super) fn new(now: Nanos, op: &FlashOp, cause: Cause, group: u32, sequence: u64) -> Self {
        Self {
            sequence,
            unit: op.unit,
            group,
            array_ns: op.array_ns,
            transfer_ns: match op.kind {
                FlashKind::Read | FlashKind::Program => op.transfer_ns,
                FlashKind::Erase => 0,
            },
            done_ns: 0,
            suspends: 0,
            ready: now,
            next_in_unit: NONE,
            next_on_channel: NONE,
            previous_on_channel: NONE,
            kind: op.kind,
            cause,
            startable: true,
            transferable: false,
            under_way: false,
        }
    }
}

/// First come, first served: the operations that wait for a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitQueue {
    head: u32,
    tail: u32,
}

impl UnitQueue {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    /// The first in the line.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push_back(&mut self, ops: &mut Slab<OpRecord>, op: u32) {
        debug_assert_eq!(ops[op].next_in_unit, NONE, "it stands in one line");
        if self.head == NONE {
            self.head = op;
        } else {
            ops[self.tail].next_in_unit = op;
        }
        self.tail = op;
    }

    /// Takes `op`, which is the first, out of the line.
    pub(super) fn take_first(&mut self, ops: &mut Slab<OpRecord>, op: u32) {
        assert_eq!(self.head, op, "a unit serves each line in order");
        self.head = core::mem::replace(&mut ops[op].next_in_unit, NONE);
        if self.head == NONE {
            self.tail = NONE;
        }
    }
}

impl UnitQueue {
    /// Takes all of `gone`, which is in order, out of the line.
    pub(super) fn remove_all(&mut self, ops: &mut Slab<OpRecord>, gone: &[u32]) {
        let mut old = core::mem::replace(self, Self::EMPTY);
        while let Some(op) = old.first() {
            old.take_first(ops, op);
            if gone.binary_search(&op).is_err() {
                self.push_back(ops, op);
            }
        }
    }

    /// Those in the line, in order.
    pub(super) fn iter<'a>(&self, ops: &'a Slab<OpRecord>) -> impl Iterator<Item = u32> + 'a {
        let next = |op: &u32| Some(ops[*op].next_in_unit).filter(|next| *next != NONE);
        core::iter::successors(self.first(), next)
    }
}

/// The transfers that wait for a channel. Any of them can leave the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelQueue {
    head: u32,
    tail: u32,
}

impl ChannelQueue {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    /// The first in the line.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push_back(&mut self, ops: &mut Slab<OpRecord>, op: u32) {
        debug_assert_eq!(ops[op].next_on_channel, NONE, "it stands in one line");
        ops[op].previous_on_channel = self.tail;
        if self.head == NONE {
            self.head = op;
        } else {
            ops[self.tail].next_on_channel = op;
        }
        self.tail = op;
    }

    pub(super) fn remove(&mut self, ops: &mut Slab<OpRecord>, op: u32) {
        let next = core::mem::replace(&mut ops[op].next_on_channel, NONE);
        let previous = core::mem::replace(&mut ops[op].previous_on_channel, NONE);
        match previous {
            NONE => {
                assert_eq!(self.head, op, "only the first has nobody before it");
                self.head = next;
            }
            previous => ops[previous].next_on_channel = next,
        }
        match next {
            NONE => self.tail = previous,
            next => ops[next].previous_on_channel = previous,
        }
    }
}

impl ChannelQueue {
    /// Takes all of `gone`, which is in order, out of the line.
    pub(super) fn remove_all(&mut self, ops: &mut Slab<OpRecord>, gone: &[u32]) {
        let mut next = self.head;
        while next != NONE {
            let op = next;
            next = ops[op].next_on_channel;
            if gone.binary_search(&op).is_ok() {
                self.remove(ops, op);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Slab<OpRecord>, ChannelQueue) {
        let mut ops = Slab::default();
        let mut queue = ChannelQueue::EMPTY;
        let read = FlashOp {
            unit: 0,
            kind: FlashKind::Read,
            array_ns: 1,
            transfer_ns: 1,
        };
        for sequence in 0..3 {
            let op = ops.insert(OpRecord::new(
                Nanos::ZERO,
                &read,
                Cause::HostRead,
                0,
                sequence,
            ));
            queue.push_back(&mut ops, op);
        }
        (ops, queue)
    }

    fn drain(mut queue: ChannelQueue, ops: &mut Slab<OpRecord>) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(op) = queue.first() {
            queue.remove(ops, op);
            order.push(op);
        }
        order
    }

    #[test]
    fn whoever_leaves_the_channel_line_the_others_keep_their_order() {
        for (gone, left) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
            let (mut ops, mut queue) = three();
            queue.remove(&mut ops, gone);
            assert_eq!(drain(queue, &mut ops), left);
        }
    }

    #[test]
    fn one_who_left_the_channel_line_comes_back_at_its_end() {
        let (mut ops, mut queue) = three();
        queue.remove(&mut ops, 0);
        queue.push_back(&mut ops, 0);
        assert_eq!(drain(queue, &mut ops), [1, 2, 0]);
    }
}
