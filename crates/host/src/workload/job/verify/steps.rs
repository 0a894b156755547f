//! The steps of a job that verifies: what takes the place of its own operations, and
//! what follows them.

use zonelab_device::{Completion, Nanos, QueuePair};

use super::{Pending, Phase, Verifying};
use crate::reactor::NextWake;
use crate::stats::OpKind;
use crate::workload::job::WorkloadJob;
use crate::workload::job::between::Sync;
use crate::workload::job::flight::InFlight;
use crate::workload::source::{Role, Step};

impl WorkloadJob {
    /// A command has completed: what it wrote is remembered, what it read compared.
    /// Whether it was one of verification, with which nothing else is to be done.
    #[cold]
    pub(in crate::workload::job) fn verified(
        &mut self,
        slot: u32,
        op: &InFlight,
        completion: &mut Completion,
    ) -> bool {
        let data = completion.data.take();
        let is_success = completion.status.is_success();
        let Some(verify) = &mut self.verify else {
            return false;
        };
        let sent = &op.sent;
        let is_check = sent.role == Role::Check;
        if is_check && sent.kind == OpKind::Reset {
            let mut table = verify.table.borrow_mut();
            let written = if is_success {
                0
            } else {
                table.written(sent.stream)
            };
            table.end_managing(sent.stream, written);
            drop(table);
            return is_success;
        }
        if !is_success {
            verify.take_back(data);
            return false;
        }
        let mut is_wrong = false;
        match verify.pending.get(slot as usize) {
            Some(Pending::Write(write, written)) => {
                let write = (*write, *written);
                verify.has_written(sent.stream, write, completion.result);
            }
            Some(Pending::Check(_) | Pending::Read(_)) => {
                let read = data.as_deref().unwrap_or_default();
                is_wrong = verify.compare(slot, read).is_some();
            }
            _ => {}
        }
        verify.take_back(data);
        if is_wrong {
            let is_fatal = verify.how.is_fatal;
            self.result.errors += 1;
            if is_fatal {
                verify.give_up();
                self.stopping = true;
            }
        }
        if is_check {
            let link_bytes = sent.lbas * self.lba_bytes;
            self.record(op, completion.at, (link_bytes, completion.found));
        }
        is_check
    }

    /// Whether somebody or the time ends the job before it has done its work.
    fn is_told_to_end(&self, now: Nanos) -> bool {
        now >= self.deadline || self.shared.stop.is_stopped() || self.is_interrupted()
    }

    /// Whether a command has failed after which the job does not go on.
    fn has_failed(&self) -> bool {
        self.verify.as_ref().is_some_and(|verify| verify.has_failed)
    }

    /// The job has come to its end. If it only read, what it should have found is counted;
    /// not if somebody or the time ended it before.
    #[cold]
    pub(in crate::workload::job) fn counts_missing(&mut self, now: Nanos) {
        let is_told = self.is_told_to_end(now);
        let tried_bytes = self.issued_bytes;
        let reads_only = |verify: &&mut Box<Verifying>| !verify.writes && verify.how.reads_back;
        if let Some(verify) = self.verify.as_mut().filter(reads_only)
            && !is_told
            && !verify.is_given_up
        {
            self.result.errors += u64::from(!verify.found_all(tried_bytes));
        }
    }

    /// Issues what verification needs, instead of what the job is there for. When
    /// to go on if nothing completes before.
    #[cold]
    pub(in crate::workload::job) fn issue_checks(
        &mut self,
        queue: &mut dyn QueuePair,
    ) -> Option<Nanos> {
        loop {
            let now = queue.now();
            let is_over = self.is_told_to_end(now) || self.has_failed();
            let is_idle = self.in_flight() == 0;
            let verify = self.verify.as_mut()?;
            if is_over {
                let has_more = now < self.deadline && verify.phase != Phase::Over;
                verify.give_up();
                self.stop(now, has_more);
            }
            let verify = self.verify.as_mut()?;
            match verify.phase {
                Phase::Over => return None,
                Phase::Writing => return self.issue(queue),
                Phase::Draining if !is_idle => return None,
                Phase::Draining => {
                    verify.begin_check(now);
                    continue;
                }
                Phase::Clearing | Phase::Checking => {}
            }
            let &slot = self.free.last()?;
            match verify.next() {
                Some(step) if !self.submit_check(queue, slot, step, now) => return None,
                Some(_) => {}
                None if !is_idle => return None,
                None => self.ends_phase(now),
            }
        }
    }

    /// Hands a command of verification to the device. Whether it was taken.
    fn submit_check(
        &mut self,
        queue: &mut dyn QueuePair,
        slot: u32,
        step: Step,
        now: Nanos,
    ) -> bool {
        let postponed = self.postponed.take();
        let is_taken = self.submit_between(queue, slot, step, now);
        // If the queue is full, it is still the next.
        self.postponed = postponed;
        if let Some(verify) = &mut self.verify {
            match is_taken {
                true => {
                    verify.to_check.pop_front();
                }
                false => verify.is_not_taken(&step),
            }
        }
        is_taken
    }

    /// Zones are clear, or blocks have been read back: what comes next.
    fn ends_phase(&mut self, now: Nanos) {
        let Some(verify) = &mut self.verify else {
            return;
        };
        if verify.phase == Phase::Clearing {
            verify.phase = if self.stopping {
                Phase::Over
            } else {
                Phase::Writing
            };
            return;
        }
        let took = now.saturating_sub(verify.checking_from);
        verify.verified.checking = verify.verified.checking.saturating_add(took);
        if self.sync == Sync::Held {
            self.sync = Sync::None;
        }
        verify.phase = Phase::Writing;
        if !verify.is_last {
            return;
        }
        let has_done_any = self.issued_ops > verify.issued_at_pass;
        if verify.passes_left == 0 || self.stopping || !has_done_any {
            verify.phase = Phase::Over;
            self.stopping = true;
            return;
        }
        verify.passes_left -= 1;
        verify.is_last = false;
        self.sync = Sync::None;
        verify.issued_at_pass = self.issued_ops;
        let (bytes, operations) = verify.pass;
        let stop = &mut self.spec.stop;
        stop.bytes = bytes.map(|bytes| bytes.saturating_add(self.issued_bytes));
        stop.operations = operations.map(|n| n.saturating_add(self.issued_ops));
    }

    /// `Some` if the job goes on although its work is done, and until when it
    /// waits: blocks are read back, or another pass begins.
    #[cold]
    pub(in crate::workload::job) fn verifies_more(
        &mut self,
        queue: &mut dyn QueuePair,
    ) -> Option<NextWake> {
        let now = queue.now();
        let is_cut_short = self.is_told_to_end(now) || self.has_failed();
        let verify = self.verify.as_mut()?;
        let reads_back = verify.writes && verify.how.reads_back;
        let may_go_on = reads_back && !is_cut_short;
        if self.is_ended || verify.phase != Phase::Writing || verify.is_given_up {
            return None;
        }
        if !may_go_on {
            self.stop(now, reads_back && now < self.deadline);
            return None;
        }
        verify.is_last = true;
        verify.begin_check(now);
        self.stopping = false;
        let resume = self.issue_checks(queue);
        queue.ring();
        if self.stopping && self.in_flight() == 0 {
            return None;
        }
        Some(resume.map_or(NextWake::Completion, NextWake::At))
    }
}
