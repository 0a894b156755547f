//! What a job hands to its device: when it may, what comes next, and what is kept of it.

use zonelab_device::{Command, Found, Nanos, QueuePair, RejectReason, Rejected, Tag};
use zonelab_nvme::Status;

use super::between::Sync;
use super::flight::{InFlight, Whole};
use super::{Ending, HORIZON, WorkloadJob};
use crate::stats::OpKind;
use crate::workload::source::{Offer, Role, Step};

impl WorkloadJob {
    /// Issues what can be issued. Returns when to go on if nothing completes before.
    #[inline]
    pub(super) fn issue(&mut self, queue: &mut dyn QueuePair) -> Option<Nanos> {
        while let Some(&slot) = self.free.last() {
            let now = queue.now();
            if self.is_over(now) {
                self.stop(now, !self.has_done_its_part(now));
                return None;
            }
            if self.is_flushing(queue, now) {
                return None;
            }
            let step = if self.postponed.is_some() {
                self.postponed.take()?
            } else {
                if let Some(resume) = self.waits(now) {
                    return resume;
                }
                match self.source.offer(now, &mut self.rng) {
                    Offer::Issue(step) => step,
                    Offer::Look(zone) => self.look(zone),
                    Offer::Wait => return None,
                    // Who sleeps notices the end of the run.
                    Offer::PauseUntil(at) => return Some(at.min(self.deadline)),
                    Offer::Exhausted => {
                        self.stopping = true;
                        return None;
                    }
                }
            };
            if !self.submit(queue, slot, step, now) {
                return None;
            }
        }
        None
    }

    /// `Some` if nothing may be issued, by pauses, limits or because the job is
    /// over: until when, if something is to be waited for.
    #[inline]
    fn waits(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        if !self.may_wait {
            return None;
        }
        if let Some(pause) = self.think(now) {
            return Some(pause.map(|until| until.min(self.deadline)));
        }
        if let Some(held) = self.is_held(now) {
            return Some(held);
        }
        if self.rates.exist {
            let ready = self.source.ready_at(&self.rates, now, &mut self.rng);
            if ready > now {
                return Some(Some(match self.spec.ending {
                    Ending::AtDecision => ready.min(HORIZON),
                    Ending::AtLastCompletion => ready.min(self.deadline),
                }));
            }
        }
        if let Some(periods) = self.spec.stop.periods
            && self.issued_ops >= periods
            && self.source.is_between()
        {
            self.stopping = true;
            return Some(None);
        }
        None
    }

    /// Hands a command to the device. Whether it was taken.
    #[inline(always)]
    fn submit(&mut self, queue: &mut dyn QueuePair, slot: u32, step: Step, now: Nanos) -> bool {
        let mut command = Command::on(self.spec.namespace, step.op);
        if let Some(placing) = &self.placing {
            command = placing.place(command);
        }
        let first_block = self.first_block(&step.op);
        let data = match self.carries_data {
            true => self.data_of(slot, &step),
            false => None,
        };
        if let Err(rejected) = queue.submit(command, Tag(slot), data) {
            self.was_rejected(rejected, step, first_block);
            return false;
        }
        self.free.pop();
        if let Some(placing) = &mut self.placing {
            placing.taken(&step.op);
        }
        if self.result.recorder.keeps_issued() {
            let trim = self.source.trim();
            self.result.recorder.issued(now, &step.op, trim);
        }
        let submitted = match self.result.recorder.splits_latency() {
            true => queue.now(),
            false => now,
        };
        let decided = match step.role.begins() {
            true => self.rates.due(now),
            false => now,
        };
        self.slots[slot as usize] = InFlight {
            decided,
            submitted,
            first_block,
            depth: self.in_flight(),
            sent: step.sent(),
        };
        if step.role.begins() {
            self.begun(&step, now, (decided, submitted));
        }
        true
    }

    /// [`Self::submit`] of what comes now and then.
    #[inline(never)]
    pub(super) fn submit_between(
        &mut self,
        queue: &mut dyn QueuePair,
        slot: u32,
        step: Step,
        now: Nanos,
    ) -> bool {
        self.submit(queue, slot, step, now)
    }

    /// A command was not taken.
    #[cold]
    fn was_rejected(&mut self, rejected: Rejected, step: Step, first_block: u64) {
        match &mut self.verify {
            Some(verify) => verify.take_back(rejected.data),
            None => self.keep_buffer(rejected.data),
        }
        match rejected.reason {
            // Everything in flight comes back, so this will go later.
            RejectReason::QueueFull { .. } => self.postponed = Some(step),
            RejectReason::CannotSplit { .. } => {
                self.give_up(&step.sent(), (first_block, 0), Status::INVALID_FIELD);
            }
            // It would be refused for ever.
            RejectReason::NoSuchQueue { .. } | RejectReason::Disconnected => {
                self.give_up(&step.sent(), (first_block, 0), Status::HOST_PATHING_ERROR);
            }
        }
    }

    /// An operation has begun: it counts.
    #[inline(always)]
    fn begun(&mut self, step: &Step, now: Nanos, (decided, submitted): (Nanos, Nanos)) {
        let bytes = step.lbas * self.lba_bytes;
        self.issued_ops += 1;
        self.issued_bytes += bytes;
        if self.at_once.0 == now {
            self.begun_at_once();
        } else {
            self.at_once = (now, 0);
        }
        self.since_pause = self.since_pause.saturating_add(1);
        if matches!(step.kind, OpKind::Write | OpKind::Append) {
            self.issued_writes += 1;
            if self.has_syncs && self.spec.syncs.is_due(self.issued_writes) {
                self.sync = Sync::Due;
            }
        }
        if step.role == Role::FirstPart {
            self.whole = Some(Whole {
                decided,
                submitted,
                link_lbas: 0,
                found: Found::Work(0),
            });
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.begun(self.shared.stop.bell());
        }
        let direction = step.direction;
        self.rates.issued(direction, now, bytes, &mut self.rng);
    }
}
