//! Background tasks as the drive goes on with them: what one of them does next can depend on
//! components that know nothing of each other.

use zonelab_device::Nanos;

use super::fill::FillWait;
use super::{Background, Task};
use crate::config::FinishConfig;
use crate::drive::Drive;

impl Background {
    /// Whether fills wait for the host to be idle.
    #[inline]
    pub(crate) fn has_yielding(&self) -> bool {
        !self.yielding.is_empty()
    }
}

impl Drive {
    /// A wake-up is due.
    pub(crate) fn task_wakes(&mut self, wakeup: u32) {
        let now = self.core.now;
        let Some(task) = self.background.tasks.woken(wakeup) else {
            return;
        };
        // It may have gone on for another reason since it asked to be woken, so what it waits
        // for is asked again.
        match self.background.tasks.get_mut(task) {
            Some(Task::Fill(fill)) => match fill.wait {
                FillWait::Until(at) if now >= at => self.fill_on(task, true),
                FillWait::Idle(at) if now >= at => {
                    self.background.yielding.retain(|&other| other != task);
                    self.fill_on(task, false);
                }
                FillWait::Drain => self.fill_on(task, true),
                _ => {}
            },
            Some(Task::Metadata(_)) => self.back_end().bookkeeping_on(task),
            Some(Task::Zone(_)) => self.background.zone_erase_wakes(&mut self.core, task),
            Some(Task::EraseAll(_) | Task::Step(_)) => {
                self.background.erasure_goes_on(&mut self.core, task)
            }
            // They are woken by the flash alone.
            Some(Task::Fold(_) | Task::EraseRow) | None => {}
        }
    }

    /// The flash operations of a task are done.
    pub(crate) fn task_group_done(&mut self, task: u32) {
        match self.background.tasks.get_mut(task) {
            Some(Task::Fill(_)) => self.fill_group_done(task),
            Some(Task::EraseAll(_)) => self.background.end_erase_all(&mut self.core, task),
            Some(Task::Zone(_)) => self.background.zone_erase_done(&mut self.core, task),
            Some(Task::Step(step)) => {
                if step.next_row == u32::MAX {
                    self.background.end_step(&mut self.core, task);
                } else {
                    self.background.step_on(&mut self.core, task, true);
                }
            }
            Some(Task::Fold(_)) => self.background.fold_group_done(&mut self.core, task),
            Some(Task::EraseRow) => self.background.row_is_erased(&mut self.core, task),
            Some(Task::Metadata(_)) => unreachable!("bookkeeping needs no flash"),
            None => unreachable!("a task lives until its flash operations are done"),
        }
    }
    /// Goes on with a fill: the next device write, or a wait for host I/O to cease.
    pub(crate) fn fill_on(&mut self, task: u32, may_yield: bool) {
        let (core, copies) = (&self.core, &mut self.copies);
        if copies.is_empty() || !self.background.is_behind_copy(core, copies, task) {
            self.back_end().fill_goes_on(task, may_yield);
        }
    }

    pub(super) fn fill_group_done(&mut self, task: u32) {
        let FinishConfig::Fill { pause_ns, .. } = self.background.finish else {
            return;
        };
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        fill.groups -= 1;
        if fill.groups > 0 {
            return;
        }
        if fill.next_lba >= fill.end_lba {
            self.back_end().end_fill(task);
        } else if pause_ns > Nanos::ZERO {
            let until = self.core.now.saturating_add(pause_ns);
            fill.wait = FillWait::Until(until);
            self.background.push_wake(&mut self.core, until, task);
        } else {
            self.fill_on(task, true);
        }
    }

    /// Host I/O of a group of zones is done: fills that yielded to it may go on.
    #[inline]
    pub(crate) fn host_io_done(&mut self, group: u32) {
        let in_flight = &mut self.core.host_in_flight[group as usize];
        debug_assert!(*in_flight > 0, "host I/O ends once");
        *in_flight -= 1;
        if *in_flight > 0 {
            return;
        }
        if !self.background.yielding.is_empty() {
            self.wake_yielding(group);
        }
        if self.background.preemptive.is_some() {
            self.background.group_may_erase(&mut self.core, group);
        }
    }

    #[cold]
    pub(super) fn wake_yielding(&mut self, group: u32) {
        let mut woken = Vec::new();
        let Background {
            yielding, tasks, ..
        } = &mut self.background;
        let layout = self.core.flash.layout();
        yielding.retain(|&task| match tasks.get_mut(task) {
            Some(Task::Fill(fill)) if matches!(fill.wait, FillWait::Idle(_)) => {
                let mine = layout.group_of(fill.physical) == group;
                if mine {
                    woken.push(task);
                }
                !mine
            }
            _ => false,
        });
        for task in woken {
            self.fill_on(task, false);
        }
    }
}
