//! What comes between the operations of a job: pauses, shares of others, latencies
//! that are too long, and flushes, of which one can come at its end too.

use zonelab_device::{Nanos, Op, QueuePair};

use super::{AT_ONCE, WorkloadJob};
use crate::stats::OpKind;
use crate::workload::Work;
use crate::workload::directed::Direction;
use crate::workload::latency::Verdict;
use crate::workload::record::Recorder;
use crate::workload::source::{Role, Step};

/// A flush.
pub(super) const FLUSH: Step = Step {
    op: Op::Flush,
    kind: OpKind::Write,
    direction: Direction::Write,
    lbas: 0,
    stream: 0,
    role: Role::Sync,
};

/// Where a job is with its flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// None is due.
    None,
    /// One comes before anything else.
    Due,
    /// One is under way.
    InFlight,
    /// None is, but nothing else may be issued either: blocks are to be verified.
    Held,
    /// The last one has been.
    Over,
}

impl WorkloadJob {
    /// `Some` if the job pauses, or is about to: until when, if that is known.
    #[inline]
    pub(super) fn think(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        let think = self.spec.think?;
        if now < self.paused_until {
            return Some(Some(self.paused_until));
        }
        let is_due = match think.after_time {
            Some(time) => self.since_pause > 0 && now.saturating_sub(self.worked_from) >= time,
            None => self.since_pause >= think.after_ops.max(1),
        };
        if !is_due || !self.source.is_between() {
            return None;
        }
        if self.in_flight() > 0 {
            return Some(None);
        }
        self.since_pause = 0;
        self.paused_until = now.saturating_add(think.time);
        self.worked_from = self.paused_until;
        (think.time > Nanos::ZERO).then_some(Some(self.paused_until))
    }

    /// One more operation has begun at the same time as the last.
    pub(super) fn begun_at_once(&mut self) {
        self.at_once.1 = self.at_once.1.saturating_add(1);
        let stop = &self.spec.stop;
        if self.at_once.1 >= AT_ONCE && stop.bytes.is_none() && stop.operations.is_none() {
            self.result.errors += u64::from(!self.result.is_timeless);
            self.result.is_timeless = true;
            self.stopping = true;
            // Time stands still for all of them.
            self.shared.stop.stop();
        }
    }

    /// A job that does something to each zone of a list has had one made ready: that takes none of
    /// the time in which it works, and what it does goes one by one.
    #[cold]
    pub(super) fn has_prepared(&mut self, begun: Nanos, ended: Nanos) {
        if self.source.is_one_by_one() && !matches!(self.spec.work, Work::Directed(_)) {
            self.result.recorder.prepared(begun, ended);
        }
    }

    /// A latency was longer than it may be.
    #[cold]
    pub(super) fn is_too_late(&mut self) {
        if !self.stopping {
            self.result.errors += 1;
        }
        self.stopping = true;
    }

    /// Looks at the latencies of a job that searches for a depth.
    #[cold]
    pub(super) fn check_goals(&mut self, now: Nanos) {
        let Some(goals) = &mut self.goals else {
            return;
        };
        match goals.check(now) {
            Verdict::GoOn => {}
            Verdict::Done => self.stopping = true,
            Verdict::Restart => {
                // Only what is done at the depth that was found is reported.
                let is_open = self.spec.arrival.is_open();
                let recorder = Recorder::new(self.spec.recording, is_open, self.lba_bytes);
                self.result.recorder = recorder;
                self.result.recorder.start(self.result.started, now);
                self.result.measured_from = now;
            }
        }
    }

    /// `Some` if the job has done more than its share, or has as much in flight as
    /// latencies allow: until when, if something is to be waited for.
    #[inline]
    pub(super) fn is_held(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        let in_flight = self.in_flight();
        if let Some(goals) = &mut self.goals
            && goals.holds(in_flight)
        {
            return Some(None);
        }
        let sharing = self.sharing.as_ref()?;
        if now < self.paused_until {
            return Some(Some(self.paused_until.min(self.deadline)));
        }
        if !self.source.is_between() || !sharing.is_ahead() {
            return None;
        }
        let sleep = sharing.sleep();
        if sleep == Nanos::ZERO || in_flight > 0 {
            // What is in flight is waited for before it sleeps.
            return Some(None);
        }
        self.paused_until = now.saturating_add(sleep);
        Some(Some(self.paused_until.min(self.deadline)))
    }

    /// Whether a flush is under way, so that nothing else is issued: one that is
    /// due begins.
    #[inline]
    pub(super) fn is_flushing(&mut self, queue: &mut dyn QueuePair, now: Nanos) -> bool {
        if self.sync == Sync::Due
            && let Some(&slot) = self.free.last()
        {
            self.flush(queue, slot, now);
        }
        matches!(self.sync, Sync::Due | Sync::InFlight | Sync::Held)
    }

    /// A flush has completed.
    pub(super) fn flushed(&mut self, at: Nanos, latency: Nanos) {
        let mut counts = false;
        if self.sync == Sync::InFlight {
            self.sync = Sync::None;
            // Nothing was written since it became due.
            counts = self.spec.syncs.counts(self.issued_writes);
        }
        self.result.recorder.record_sync(at, latency, counts);
    }

    /// Hands a flush to the device. Whether it was taken.
    fn flush(&mut self, queue: &mut dyn QueuePair, slot: u32, now: Nanos) -> bool {
        let is_taken = self.submit_between(queue, slot, FLUSH, now);
        // A full queue takes it later; it is still due.
        self.postponed = None;
        if is_taken {
            self.sync = Sync::InFlight;
        }
        is_taken
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
        let is_taken = self.flush(queue, slot, now);
        queue.ring();
        // Whatever it comes to, it is the last.
        self.sync = Sync::Over;
        is_taken
    }
}
