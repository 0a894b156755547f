//! Erasures that resets ask for: of a zone at once, or row by row on each of its dies, or of
//! its planes where they erase one by one.

use crate::background::Background;
use zonelab_device::Nanos;
use zonelab_device::ZoneId;

use super::Erase;
use super::EraseAll;
use super::Step;
use super::StepWait;
use super::Task;
use crate::account::Cause;
use crate::config::EraseWhen;
use crate::drive::Owner;
use crate::drive::{BackEnd, Core, Effect};
use crate::record::BackgroundKind;
use crate::record::Begin;
use crate::zones::Change;

impl Core {
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

impl Background {
    pub(super) fn issue_erase_all(&mut self, core: &mut Core, task: u32) {
        let Some(Task::EraseAll(erase)) = self.tasks.get_mut(task) else {
            return;
        };
        debug_assert!(!erase.issued, "an erasure is issued once");
        erase.issued = true;
        debug_assert!(
            core.flash.is_being_erased(erase.physical),
            "an erasure that is issued has begun"
        );
        let (physical, blocks, cause) = (erase.physical, 0..erase.end_block, erase.cause);
        let (now, token) = (core.now, Owner::Task(task).token());
        let events = &mut core.events;
        core.flash
            .erase(now, physical, blocks, cause, token, events);
    }

    /// Whether a step waits for its start: what its zone accepted before it comes first.
    fn starts_later(&mut self, core: &mut Core, task: u32) -> bool {
        let now = core.now;
        match self.tasks.get_mut(task) {
            Some(Task::Step(step)) => matches!(step.wait, StepWait::Start(at) if at > now),
            _ => false,
        }
    }
}

impl Background {
    /// After a loss of power, goes on with the erasures that a design with
    /// background erasure had not done, from `start` on.
    pub(crate) fn resume_erasures(&mut self, core: &mut Core, start: Nanos) {
        self.resume_thresholds(core, start);
        self.erase_waiting(core, start);
    }

    /// Erases from `start` on what nobody does, if the design erases in the background.
    pub(crate) fn erase_waiting(&mut self, core: &mut Core, start: Nanos) {
        if self.reset.erase != EraseWhen::Background {
            return;
        }
        for physical in core.flash.waiting_for_erasure() {
            let begin = Begin {
                kind: BackgroundKind::Erasure,
                // No command asked for it, and its zone may have left it.
                zone: ZoneId(physical),
                physical,
                request: u32::MAX,
                is_waited_for: false,
                start,
            };
            self.begin_erasure(core, &begin, Cause::ResetErase);
        }
    }

    /// Begins to erase what is stale of a physical zone.
    fn begin_erasure(&mut self, core: &mut Core, begin: &Begin, cause: Cause) {
        let number = core.record_background(begin);
        let &Begin {
            physical,
            request,
            is_waited_for,
            start,
            ..
        } = begin;
        let request = is_waited_for.then_some(request);
        core.flash.erasure_begins(physical);
        let end_block = core.flash.stale_end(physical);
        if self.reset.preempt_ns.is_none() {
            let task = EraseAll {
                physical,
                cause,
                request,
                end_block,
                start,
                issued: false,
            };
            let task = self.tasks.insert(Task::EraseAll(task));
            self.record_task(core, task, number);
            self.erasure_starts(core, start, task);
            return;
        }
        let layout = core.flash.layout();
        // The first row is there whenever another is.
        let has_blocks = |planes: &_| {
            let mut blocks = layout.blocks_of_row(0, *planes, end_block);
            blocks.next().is_some()
        };
        let sets: Vec<_> = layout.plane_sets().filter(has_blocks).collect();
        let erasure = self.erasures.insert(Erase {
            physical,
            cause,
            request,
            end_block,
            // Fits: no more than planes.
            steps_running: sets.len() as u32,
            hurried: false,
        });
        for planes in sets {
            let step = Step {
                erasure,
                planes,
                next_row: 0,
                wait: StepWait::Start(start),
            };
            let task = self.tasks.insert(Task::Step(step));
            self.record_task(core, task, number);
            self.erasure_starts(core, start, task);
        }
    }

    fn erasure_starts(&mut self, core: &mut Core, start: Nanos, task: u32) {
        if start == core.now {
            self.erasure_goes_on(core, task);
        } else {
            self.push_wake(core, start, task);
        }
    }

    /// An erasure may have gone on for another reason since it asked to be woken, so what it
    /// waits for is asked again.
    pub(super) fn erasure_goes_on(&mut self, core: &mut Core, task: u32) {
        let now = core.now;
        match self.tasks.get_mut(task) {
            Some(Task::EraseAll(erase)) if !erase.issued && now >= erase.start => {
                self.issue_erase_all(core, task);
            }
            Some(Task::Step(step)) => match step.wait {
                StepWait::Start(at) if now >= at => {
                    if self.erasures.at(step.erasure).hurried {
                        self.issue_rest_of_step(core, task);
                    } else {
                        self.step_on(core, task, true);
                    }
                }
                StepWait::Idle(deadline, unit) => {
                    if now >= deadline {
                        self.step_on(core, task, false);
                    } else if core.flash.media().is_idle(now, unit) {
                        self.step_on(core, task, true);
                    } else {
                        self.wake_when_idle(core, unit, task, deadline);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    pub(super) fn end_erase_all(&mut self, core: &mut Core, task: u32) {
        if let Task::EraseAll(erase) = self.tasks.remove(task) {
            core.record_task_end(task);
            self.end_erasure(core, erase.physical, erase.request);
        }
    }

    /// Erases the next row of blocks, if nothing of the host waits there.
    pub(super) fn step_on(&mut self, core: &mut Core, task: u32, may_yield: bool) {
        let Some(Task::Step(step)) = self.tasks.get_mut(task) else {
            return;
        };
        let erase = self.erasures.at(step.erasure);
        let (physical, cause) = (erase.physical, erase.cause);
        let (planes, end) = (step.planes, erase.end_block);
        let next = core
            .flash
            .next_to_erase(physical, planes, (step.next_row, end));
        let Some((row, block)) = next else {
            self.end_step(core, task);
            return;
        };
        step.next_row = row;
        let unit = core.flash.unit_of_block(physical, block);
        if may_yield && !erase.hurried {
            let hold = self.reset.preempt_ns.unwrap_or(Nanos::ZERO);
            let deadline = core.now.saturating_add(hold);
            let now = core.now;
            if !core.flash.media().is_idle(now, unit) {
                step.wait = StepWait::Idle(deadline, unit);
                self.wake_when_idle(core, unit, task, deadline);
                core.record_yield(task);
                return;
            }
        }
        step.next_row += 1;
        step.wait = StepWait::Flash;
        core.record_resume(task);
        let (now, token) = (core.now, Owner::Task(task).token());
        let blocks = core.flash.layout().blocks_of_row(row, planes, end);
        let events = &mut core.events;
        core.flash
            .erase(now, physical, blocks, cause, token, events);
    }

    pub(super) fn end_step(&mut self, core: &mut Core, task: u32) {
        let Task::Step(step) = self.tasks.remove(task) else {
            return;
        };
        core.record_task_end(task);
        let erase = self.erasures.at(step.erasure);
        debug_assert!(erase.steps_running > 0, "each step of an erasure ends once");
        erase.steps_running -= 1;
        if erase.steps_running == 0 {
            let erase = self.erasures.remove(step.erasure);
            self.end_erasure(core, erase.physical, erase.request);
        }
    }

    fn end_erasure(&mut self, core: &mut Core, physical: u32, request: Option<u32>) {
        core.flash.erasure_ends(physical);
        if core.flash.mapping_mut().has_given_back_stale() {
            self.erase_waiting(core, core.now);
        }
        // A zone that was reset again while it was being erased holds old data still.
        if !core.flash.is_being_erased(physical) {
            core.flash.mapping_mut().erased(physical);
            self.freeing.ends(physical, core.now);
        }
        if let Some(request) = request {
            core.effects.push(Effect::PartDone(request));
        }
    }

    /// Something is about to be programmed on `physical`: what is left of a
    /// stepwise erasure there is issued at once, or when it starts, so that it comes
    /// first.
    #[inline]
    pub(crate) fn hurry_erasure(&mut self, core: &mut Core, physical: u32) {
        if core.flash.is_being_erased(physical) {
            self.hurry_erasure_on(core, physical);
        }
    }

    #[cold]
    fn hurry_erasure_on(&mut self, core: &mut Core, physical: u32) {
        let found: Vec<u32> = self
            .erasures
            .iter()
            .filter(|(_, erase)| erase.physical == physical && !erase.hurried)
            .map(|(index, _)| index)
            .collect();
        for erasure in found {
            self.erasures.at(erasure).hurried = true;
            let steps: Vec<u32> = self
                .tasks
                .iter()
                .filter(|(_, task)| matches!(task, Task::Step(step) if step.erasure == erasure))
                .map(|(index, _)| index)
                .collect();
            for task in steps {
                if !self.starts_later(core, task) {
                    self.issue_rest_of_step(core, task);
                }
            }
        }
    }

    /// Issues all remaining rows of a step, behind the one under way if there is one.
    pub(super) fn issue_rest_of_step(&mut self, core: &mut Core, task: u32) {
        let Some(Task::Step(step)) = self.tasks.get_mut(task) else {
            return;
        };
        let erase = self.erasures.at(step.erasure);
        let (planes, end) = (step.planes, erase.end_block);
        let layout = core.flash.layout();
        let rows = step.next_row..end.div_ceil(layout.width());
        let row = |row| layout.blocks_of_row(row, planes, end);
        let blocks: Vec<u32> = rows.flat_map(row).collect();
        let (under_way, physical) = (step.wait == StepWait::Flash, erase.physical);
        step.next_row = u32::MAX;
        if blocks.is_empty() {
            if !under_way {
                self.end_step(core, task);
            }
            return;
        }
        step.wait = StepWait::Flash;
        let erasure = step.erasure;
        // The block under way and the rest end separately: one more part each.
        if under_way {
            self.erasures.at(erasure).steps_running += 1;
            let rest = Step {
                erasure,
                planes,
                next_row: u32::MAX,
                wait: StepWait::Flash,
            };
            let rest = self.tasks.insert(Task::Step(rest));
            self.record_task_beside(core, rest, task);
            core.issue_blocks(rest, physical, blocks.into_iter());
        } else {
            core.record_resume(task);
            core.issue_blocks(task, physical, blocks.into_iter());
        }
    }
}

impl BackEnd<'_> {
    /// A zone has become empty by a reset; its flash follows from `start` on.
    pub(crate) fn begin_reset(&mut self, change: &Change, request: u32, start: Nanos) {
        if let Some(buffer) = &mut self.buffer {
            buffer.drop_zone(change.zone);
        }
        let start = self.core.in_zone_order(change.zone, start);
        self.background
            .begin_bookkeeping(self.core, change, request, start);
        let Some(physical) = self.core.flash.mapping().physical(change.zone) else {
            return;
        };
        if self.background.fills > 0 {
            self.cancel_fill(physical);
        }
        self.background.drop_folds(physical);
        self.background.hurry_erasure(self.core, physical);
        self.background.freeing.begins(physical, self.core.now);
        if self.background.preemptive.is_some() {
            self.core.flash.release(change.zone);
            return self
                .background
                .zone_was_released(self.core, physical, start);
        }
        if self.core.flash.release(change.zone).is_none() {
            return;
        }
        let begin = |is_waited_for| Begin {
            kind: BackgroundKind::Erasure,
            zone: change.zone,
            physical,
            request,
            is_waited_for,
            start,
        };
        let cause = self.core.requests.at(request).role.erase_cause();
        match self.background.reset.erase {
            EraseWhen::FirstZoneWrite | EraseWhen::FirstBlockWrite | EraseWhen::Thresholds(_) => {}
            EraseWhen::Synchronous => {
                self.core.requests.at(request).pending += 1;
                self.background
                    .begin_erasure(self.core, &begin(true), cause);
            }
            EraseWhen::Background => {
                self.background
                    .begin_erasure(self.core, &begin(false), cause);
            }
        }
    }
}
