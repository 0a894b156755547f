//! Looking up where blocks are, if only a share of the map is in memory: operations wait
//! here for the segments of the map that they need.

use std::collections::VecDeque;

use zonelab_device::{Buf, Command, DeviceQueue, Op, RejectReason, Tag};
use zonelab_nvme::Status;

use super::FtlQueue;
use super::operation::{Flight, Part};
use crate::blocks::{LogicalBlock, MapChange};
use crate::durable::block_of;
use crate::segments::{Hold, Holder, Load, Loaded};

/// What is done with blocks when their segment is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Read,
    Write,
    /// They hold nothing any more.
    Clear,
}

impl Want {
    /// For what their segment is held.
    pub(super) const fn holder(self) -> Holder {
        match self {
            Self::Read => Holder::Read,
            Self::Write | Self::Clear => Holder::Write,
        }
    }
}

/// Blocks that wait for segments, in order.
#[derive(Debug, Default)]
pub(super) struct ToLoad {
    /// Apart from the others, which may wait for the collector, which waits for reads.
    reads: VecDeque<(Part, Want)>,
    writes: VecDeque<(Part, Want)>,
}

impl ToLoad {
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    fn of(&mut self, holder: Holder) -> &mut VecDeque<(Part, Want)> {
        match holder {
            Holder::Read => &mut self.reads,
            Holder::Write | Holder::Upkeep => &mut self.writes,
        }
    }
}

/// Whether the next blocks may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// All of the part went on its way.
    Next,
    /// The rest of it waits; others may go on.
    Keep,
    /// The rest of it waits, and so do all others.
    Stop,
}

impl FtlQueue<dyn DeviceQueue + '_> {
    /// Some blocks of an operation wait for what is in their way, if anything is.
    #[inline]
    pub(super) fn look_up(&mut self, part: Part, want: Want) {
        match self.core.changes.map.segments() {
            None => self.go(part, want),
            Some(_) => self.to_load.of(want.holder()).push_back((part, want)),
        }
    }

    /// Where blocks are is in memory.
    #[inline]
    fn go(&mut self, part: Part, want: Want) {
        match want {
            Want::Read => self.to_read.push_back(part),
            Want::Write => self.to_write.push_back(part),
            Want::Clear => {
                let first = self.operations[part.operation].first + part.at;
                let change = MapChange {
                    first: LogicalBlock(first),
                    count: part.count,
                    to: None,
                };
                self.core.put(&self.lane, change);
                self.end_part(part, Holder::Write, Status::SUCCESS);
            }
        }
    }

    /// Blocks of an operation have ended: their segment is held no longer.
    #[inline]
    pub(super) fn end_part(&mut self, part: Part, holder: Holder, status: Status) {
        self.let_go(part, holder);
        self.operations[part.operation].note(part.count, status);
        self.settle(part.operation);
    }

    /// Holds the segments of what waits for them, and reads those that are not there.
    pub(super) fn issue_loads(&mut self) {
        for holder in [Holder::Read, Holder::Write] {
            let mut waiting = std::mem::take(self.to_load.of(holder));
            if holder == Holder::Write && self.core.has_failed() {
                // No checkpoint comes that they may wait for.
                for (part, _) in waiting {
                    self.operations[part.operation].note(part.count, Status::WRITE_FAULT);
                    self.settle(part.operation);
                }
                continue;
            }
            let mut kept = VecDeque::new();
            while let Some((mut part, want)) = waiting.pop_front() {
                let then = self.look_up_segments(&mut part, want);
                if then != Then::Next {
                    kept.push_back((part, want));
                }
                if then == Then::Stop {
                    break;
                }
            }
            kept.append(&mut waiting);
            // What came back meanwhile goes on first.
            self.to_load.of(holder).append(&mut kept);
        }
    }

    /// Segment by segment, takes from `part` what goes on its way.
    fn look_up_segments(&mut self, part: &mut Part, want: Want) -> Then {
        let core = std::sync::Arc::clone(&self.core);
        let Some(segments) = core.changes.map.segments() else {
            return Then::Stop;
        };
        while part.count > 0 {
            let first = self.operations[part.operation].first + part.at;
            let segment = segments.of(first);
            let count = part.count.min(segments.range(segment).end - first);
            match segments.hold(segment, want.holder(), count) {
                Hold::Now => {
                    let part = part.split(count);
                    self.go(part, want);
                }
                Hold::Load(load) => {
                    let mut rest = *part;
                    let some = rest.split(count);
                    if !self.issue_load(load, some, want) {
                        return Then::Stop;
                    }
                    *part = rest;
                }
                Hold::Busy => {
                    self.wait();
                    return Then::Keep;
                }
                Hold::Full => {
                    self.wait();
                    // A checkpoint may have to come first.
                    self.core.call();
                    return Then::Stop;
                }
            }
        }
        Then::Next
    }

    /// Sends the read of a segment on its way. `false`: the queue below is full, and nothing
    /// is held.
    fn issue_load(&mut self, load: Load, part: Part, want: Want) -> bool {
        let shape = &self.core.shape;
        let command = Command::on(
            shape.nsid,
            Op::Read {
                slba: shape.lba(load.at.zone, load.at.offset),
                nlb: 1,
            },
        );
        let data = Some(self.spare.buffer(1));
        let flight = self.flights.insert(Flight::Load { load, part, want });
        match self.inner.submit(command, Tag(flight as u32), data) {
            Ok(()) => {
                self.has_submitted = true;
                true
            }
            Err(rejected) => {
                self.flights.remove(flight);
                if let Some(buffer) = rejected.data {
                    self.spare.keep_buffer(buffer);
                }
                self.abandon(load, part, want);
                let is_full = matches!(rejected.reason, RejectReason::QueueFull { .. });
                if !is_full {
                    self.operations[part.operation].note(part.count, Status::HOST_PATHING_ERROR);
                    self.settle(part.operation);
                }
                !is_full
            }
        }
    }

    /// A segment was read, or not.
    pub(super) fn land_load(
        &mut self,
        (load, part, want): (Load, Part, Want),
        status: Status,
        data: Option<Buf>,
    ) {
        let core = std::sync::Arc::clone(&self.core);
        let Some(segments) = core.changes.map.segments() else {
            return;
        };
        let identity = (load.checkpoint, load.index());
        let words = data
            .as_deref()
            .filter(|_| status.is_success())
            .and_then(|block| block_of(&core.shape, core.uuid, block, identity));
        let read = words.as_deref().map(|words| (load.checkpoint, words));
        let loaded = segments.loaded(&load, want.holder(), part.count, read);
        if let Some(buffer) = data {
            self.spare.keep_buffer(buffer);
        }
        if segments.take_waiters() {
            core.wake_holders();
        }
        match loaded {
            Loaded::Now => self.go(part, want),
            Loaded::Outdated => self.to_load.of(want.holder()).push_front((part, want)),
            Loaded::Failed => {
                let status = match status.is_success() {
                    true => Status::UNRECOVERED_READ_ERROR,
                    false => status,
                };
                self.operations[part.operation].note(part.count, status);
                self.settle(part.operation);
            }
        }
    }
}

impl<Q: ?Sized> FtlQueue<Q> {
    #[inline]
    fn let_go(&self, part: Part, holder: Holder) {
        if let Some(segments) = self.core.changes.map.segments() {
            let first = self.operations[part.operation].first + part.at;
            if segments.release(segments.of(first), holder, part.count) {
                self.core.wake_holders();
            }
        }
    }

    /// Nobody reads a segment that was to be read.
    pub(super) fn abandon(&self, load: Load, part: Part, want: Want) {
        if let Some(segments) = self.core.changes.map.segments()
            && segments.abandon(&load, want.holder(), part.count)
        {
            self.core.wake_holders();
        }
    }

    /// Nothing is held any more: the queue is closed.
    pub(super) fn let_all_go(&mut self) {
        if self.core.changes.map.segments().is_none() {
            return;
        }
        for part in std::mem::take(&mut self.to_read) {
            self.let_go(part, Holder::Read);
        }
        for part in std::mem::take(&mut self.to_write) {
            self.let_go(part, Holder::Write);
        }
        for (_, flight) in &self.flights {
            match flight {
                Flight::Read { part, .. } => self.let_go(*part, Holder::Read),
                Flight::Write { parts, .. } => {
                    parts
                        .iter()
                        .for_each(|part| self.let_go(*part, Holder::Write));
                }
                Flight::Load { load, part, want } => self.abandon(*load, *part, *want),
            }
        }
    }
}
