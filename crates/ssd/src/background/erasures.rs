//! Erasures that resets ask for: of a zone at once, or block by block on each of its planes.

use zonelab_device::Nanos;
use zonelab_device::ZoneId;

use super::Erase;
use super::EraseAll;
use super::Step;
use super::StepWait;
use super::Task;
use crate::account::Cause;
use crate::config::EraseWhen;
use crate::drive::Drive;
use crate::drive::Owner;
use crate::record::BackgroundKind;
use crate::record::Begin;
use crate::zones::Change;

impl Drive {
    /// A zone has become empty by a reset; its flash follows from `start` on.
    pub(crate) fn begin_reset(&mut self, change: &Change, request: u32, start: Nanos) {
        self.buffer_drop(change.zone);
        let start = self.in_zone_order(change.zone, start);
        self.begin_bookkeeping(change, request, start);
        let Some(physical) = self.flash.mapping().physical(change.zone) else {
            return;
        };
        if self.background.fills > 0 {
            self.cancel_fill(physical);
        }
        self.hurry_erasure(physical);
        self.background.freeing.begins(physical, self.now);
        if self.background.preemptive.is_some() {
            self.flash.release(change.zone);
            return self.zone_was_released(physical, start);
        }
        if self.flash.release(change.zone).is_none() {
            return;
        }
        let reset = self.background.reset;
        match reset.erase {
            EraseWhen::FirstZoneWrite | EraseWhen::FirstBlockWrite | EraseWhen::Thresholds(_) => {}
            EraseWhen::Synchronous => {
                self.requests.at(request).pending += 1;
                self.begin_erasure(change.zone, physical, request, true, start);
            }
            EraseWhen::Background => {
                self.begin_erasure(change.zone, physical, request, false, start);
            }
        }
    }

    /// After a loss of power, goes on with the erasures that a design with
    /// background erasure had not done, from `start` on.
    pub(crate) fn resume_erasures(&mut self, start: Nanos) {
        self.resume_thresholds(start);
        self.erase_waiting(start);
    }

    /// Erases from `start` on what nobody does, if the design erases in the background.
    pub(crate) fn erase_waiting(&mut self, start: Nanos) {
        if self.background.reset.erase != EraseWhen::Background {
            return;
        }
        for physical in self.flash.waiting_for_erasure() {
            // No command asked for it, and its zone may have left it.
            let zone = ZoneId(physical);
            self.begin_erasure(zone, physical, u32::MAX, false, start);
        }
    }

    /// `request` asked for the erasure, and waits for it if `is_waited_for`.
    fn begin_erasure(
        &mut self,
        zone: ZoneId,
        physical: u32,
        request: u32,
        is_waited_for: bool,
        start: Nanos,
    ) {
        let number = self.record_background(&Begin {
            kind: BackgroundKind::Erasure,
            zone,
            physical,
            request,
            is_waited_for,
            start,
        });
        let request = is_waited_for.then_some(request);
        self.flash.erasure_begins(physical);
        let end_block = self.flash.stale_end(physical);
        if self.background.reset.preempt_ns.is_none() {
            let task = EraseAll {
                physical,
                request,
                end_block,
                start,
                issued: false,
            };
            let task = self.background.tasks.insert(Task::EraseAll(task));
            self.record_task(task, number);
            self.wake_at(start, task);
            return;
        }
        let slots = self.flash.layout().width().min(end_block);
        let erasure = self.background.erasures.insert(Erase {
            physical,
            request,
            end_block,
            steps_running: slots,
            hurried: false,
        });
        for slot in 0..slots {
            let wait = StepWait::Start(start);
            let step = Step {
                erasure,
                next_block: slot,
                wait,
            };
            let task = self.background.tasks.insert(Task::Step(step));
            self.record_task(task, number);
            self.wake_at(start, task);
        }
    }

    pub(super) fn issue_erase_all(&mut self, task: u32) {
        let Some(Task::EraseAll(erase)) = self.background.tasks.get_mut(task) else {
            return;
        };
        erase.issued = true;
        let (physical, blocks) = (erase.physical, 0..erase.end_block);
        let (now, token) = (self.now, Owner::Task(task).token());
        self.flash.erase(
            now,
            physical,
            blocks,
            Cause::ResetErase,
            token,
            &mut self.events,
        );
    }

    pub(super) fn end_erase_all(&mut self, task: u32) {
        if let Task::EraseAll(erase) = self.background.tasks.remove(task) {
            self.record_task_end(task);
            self.end_erasure(erase.physical, erase.request);
        }
    }

    /// Takes the next block of a plane, if nothing of the host waits there.
    pub(super) fn step_on(&mut self, task: u32, may_yield: bool) {
        let Some(Task::Step(step)) = self.background.tasks.get_mut(task) else {
            return;
        };
        let erase = self.background.erasures.at(step.erasure);
        let physical = erase.physical;
        step.next_block = self
            .flash
            .next_to_erase(physical, step.next_block, erase.end_block);
        if step.next_block >= erase.end_block {
            self.end_step(task);
            return;
        }
        let unit = self.flash.unit_of_block(physical, step.next_block);
        if may_yield && !erase.hurried {
            let hold = self.background.reset.preempt_ns.unwrap_or(Nanos::ZERO);
            let deadline = self.now.saturating_add(hold);
            let now = self.now;
            if !self.flash.media().is_idle(now, unit) {
                step.wait = StepWait::Idle(deadline);
                self.wake_when_idle(unit, task, deadline);
                self.record_yield(task);
                return;
            }
        }
        let block = step.next_block;
        step.next_block += self.flash.layout().width();
        step.wait = StepWait::Flash;
        self.record_resume(task);
        let (now, token) = (self.now, Owner::Task(task).token());
        let cause = Cause::ResetErase;
        self.flash.erase(
            now,
            physical,
            std::iter::once(block),
            cause,
            token,
            &mut self.events,
        );
    }

    pub(super) fn end_step(&mut self, task: u32) {
        let Task::Step(step) = self.background.tasks.remove(task) else {
            return;
        };
        self.record_task_end(task);
        let erase = self.background.erasures.at(step.erasure);
        erase.steps_running -= 1;
        if erase.steps_running == 0 {
            let erase = self.background.erasures.remove(step.erasure);
            self.end_erasure(erase.physical, erase.request);
        }
    }

    fn end_erasure(&mut self, physical: u32, request: Option<u32>) {
        self.flash.erasure_ends(physical);
        // A zone that was reset again while it was being erased holds old data still.
        if !self.flash.is_being_erased(physical) {
            self.flash.mapping_mut().erased(physical);
            self.background.freeing.ends(physical, self.now);
        }
        if let Some(request) = request {
            self.part_done(request);
        }
    }

    /// Something is about to be programmed on `physical`: what is left of a
    /// stepwise erasure there is issued at once, or when it starts, so that it comes
    /// first.
    #[inline]
    pub(crate) fn hurry_erasure(&mut self, physical: u32) {
        if self.flash.is_being_erased(physical) {
            self.hurry_erasure_on(physical);
        }
    }

    #[cold]
    fn hurry_erasure_on(&mut self, physical: u32) {
        let found: Vec<u32> = self
            .background
            .erasures
            .iter()
            .filter(|(_, erase)| erase.physical == physical && !erase.hurried)
            .map(|(index, _)| index)
            .collect();
        for erasure in found {
            self.background.erasures.at(erasure).hurried = true;
            let steps: Vec<u32> = self
                .background
                .tasks
                .iter()
                .filter(|(_, task)| matches!(task, Task::Step(step) if step.erasure == erasure))
                .map(|(index, _)| index)
                .collect();
            for task in steps {
                if !self.starts_later(task) {
                    self.issue_rest_of_step(task);
                }
            }
        }
    }

    /// Whether a step waits for its start: what its zone accepted before it comes first.
    fn starts_later(&mut self, task: u32) -> bool {
        let now = self.now;
        match self.background.tasks.get_mut(task) {
            Some(Task::Step(step)) => matches!(step.wait, StepWait::Start(at) if at > now),
            _ => false,
        }
    }

    /// Issues all remaining blocks of a plane, behind the one under way if there is one.
    pub(super) fn issue_rest_of_step(&mut self, task: u32) {
        let Some(Task::Step(step)) = self.background.tasks.get_mut(task) else {
            return;
        };
        let erase = self.background.erasures.at(step.erasure);
        let width = self.flash.layout().width();
        let blocks = (step.next_block..erase.end_block).step_by(width as usize);
        let (under_way, physical) = (step.wait == StepWait::Flash, erase.physical);
        let left = blocks.clone().count();
        step.next_block = erase.end_block;
        if left == 0 {
            if !under_way {
                self.end_step(task);
            }
            return;
        }
        step.wait = StepWait::Flash;
        let erasure = step.erasure;
        // The block under way and the rest end separately: one more part each.
        if under_way {
            self.background.erasures.at(erasure).steps_running += 1;
            let rest = Step {
                erasure,
                next_block: u32::MAX,
                wait: StepWait::Flash,
            };
            let rest = self.background.tasks.insert(Task::Step(rest));
            self.record_task_beside(rest, task);
            self.issue_blocks(rest, physical, blocks);
        } else {
            self.record_resume(task);
            self.issue_blocks(task, physical, blocks);
        }
    }

    fn issue_blocks(&mut self, task: u32, physical: u32, blocks: impl Iterator<Item = u32>) {
        let (now, token) = (self.now, Owner::Task(task).token());
        self.flash.erase(
            now,
            physical,
            blocks,
            Cause::WriteErase,
            token,
            &mut self.events,
        );
    }
}
