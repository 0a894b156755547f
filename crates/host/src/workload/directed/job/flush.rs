//! Flushes between the writes of a job, and at its end.

use zonelab_device::{Nanos, Op, QueuePair};

use super::super::Direction;
use super::super::targets::{Role, Step};
use super::DirectedJob;

/// Where a job is with its flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// None is due.
    None,
    /// One comes before anything else.
    Due,
    /// One is under way.
    InFlight,
    /// The last one has been.
    Over,
}

impl DirectedJob {
    /// Whether a flush is under way, so that nothing else is issued: one that is
    /// due begins.
    pub(super) fn is_flushing(&mut self, queue: &mut dyn QueuePair, now: Nanos) -> bool {
        if self.sync == Sync::Due
            && let Some(&slot) = self.free.last()
        {
            self.flush(queue, slot, now);
        }
        self.sync == Sync::InFlight
    }

    /// A flush has completed.
    pub(super) fn flushed(&mut self, at: Nanos, latency: Nanos) {
        if self.sync == Sync::InFlight {
            self.sync = Sync::None;
        }
        self.result.recorder.record_sync(at, latency);
    }

    /// Hands a flush to the device.
    fn flush(&mut self, queue: &mut dyn QueuePair, slot: u32, now: Nanos) {
        let step = Step {
            op: Op::Flush,
            direction: Direction::Write,
            zone: self.spec.zones.start,
            lbas: 0,
            counted: 0,
            role: Role::Sync,
            paced: false,
        };
        self.sync = Sync::InFlight;
        self.submit(queue, slot, step, now, false);
    }

    /// Whether a flush is still to come now that nothing is in flight and the
    /// job is over; it is under way then.
    pub(super) fn flushes_at_end(&mut self, queue: &mut dyn QueuePair) -> bool {
        let is_due = self.spec.syncs.at_end && self.issued_writes > 0 && self.result.errors == 0;
        if !is_due || self.sync == Sync::Over || self.is_ended {
            return false;
        }
        let Some(&slot) = self.free.last() else {
            return false;
        };
        let now = queue.now();
        self.flush(queue, slot, now);
        queue.ring();
        // Whatever it comes to, it is the last.
        self.sync = Sync::Over;
        true
    }
}
