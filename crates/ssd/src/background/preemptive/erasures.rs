//! Erasures by thresholds: rows in S1, zones in S2.

use crate::background::Background;
use std::ops::Range;

use zonelab_device::Nanos;
use zonelab_device::ZoneId;

use super::super::Task;
use super::ResetState;
use super::What;
use super::ZoneErase;
use crate::account::Cause;
use crate::drive::Owner;
use crate::drive::{Core, Effect};
use crate::policy::ResetEvent;
use crate::policy::ResetStep;
use crate::record::BackgroundKind;
use crate::record::Begin;

impl Background {
    /// S1: erases the next row, if it is time for one.
    fn erase_row(&mut self, core: &mut Core, group: u32) {
        if self.group_of_reset(group).is_none_or(|of| of.under_way > 0) {
            return;
        }
        let whole = match self.ask_step(core, group) {
            ResetStep::Wait => return,
            ResetStep::LookAt(at) => return self.look_once_at(core, group, at),
            ResetStep::Row => false,
            ResetStep::Zone => true,
        };
        if let Some((physical, blocks)) = self.take_to_erase(core, group, whole) {
            self.erase_blocks(core, group, physical, blocks, Cause::ResetErase);
        }
    }

    /// Looks at a group at a time to come, unless one is looked at until then anyway.
    fn look_once_at(&mut self, core: &mut Core, group: u32, at: Nanos) {
        let now = core.now;
        let Some(of) = self.reset_group(group) else {
            return;
        };
        if !of.look.is_some_and(|look| look > now && look <= at) {
            of.look = Some(at);
            self.look_at(core, group, at);
        }
    }

    fn next_reserved(&mut self, group: u32) -> Option<(u32, Range<u32>)> {
        self.reset_group(group)?.reserved.pop_front()
    }

    /// Erases what was taken of a zone that S2 has to erase, or of elements.
    fn erase_blocks(
        &mut self,
        core: &mut Core,
        group: u32,
        physical: u32,
        blocks: Range<u32>,
        cause: Cause,
    ) {
        let task = self.begin_zone_erase(core, group, physical, cause);
        core.flash.mapping_mut().erasure_is_begun(group, physical);
        let (now, token) = (core.now, Owner::Task(task).token());
        let events = &mut core.events;
        core.flash
            .erase(now, physical, blocks, cause, token, events);
    }

    /// Erases what a zone has been reserved. Returns whether anything was left of it.
    fn erase_reserved(
        &mut self,
        core: &mut Core,
        group: u32,
        physical: u32,
        blocks: Range<u32>,
    ) -> bool {
        let cause = Cause::WriteErase;
        if !core.flash.is_stale_in(physical, &blocks) {
            // Somebody else has erased it.
            core.flash.erasure_ends(physical);
            self.was_erased(core, group, physical);
            return false;
        }
        let task = self.begin_zone_erase(core, group, physical, cause);
        let (now, token) = (core.now, Owner::Task(task).token());
        let events = &mut core.events;
        core.flash
            .erase_places(now, physical, &blocks, token, events);
        true
    }

    fn begin_zone_erase(
        &mut self,
        core: &mut Core,
        group: u32,
        physical: u32,
        cause: Cause,
    ) -> u32 {
        if let Some(of) = self.reset_group(group) {
            of.under_way += 1;
        }
        let kind = match cause {
            Cause::ResetErase => BackgroundKind::PartialErase,
            _ => BackgroundKind::FullErase,
        };
        let task = ZoneErase {
            group,
            what: What::Erasure { physical },
        };
        let task = self.tasks.insert(Task::Zone(task));
        let number = core.record_background(&Begin {
            kind,
            // No zone stands on it.
            zone: ZoneId(physical),
            physical,
            request: u32::MAX,
            is_waited_for: false,
            start: core.now,
        });
        self.record_task(core, task, number);
        task
    }
}

impl Background {
    /// Something that a group may have waited for is over.
    #[cold]
    pub(crate) fn group_may_erase(&mut self, core: &mut Core, group: u32) {
        match self.reset_state(group) {
            Some(ResetState::Partial) => self.erase_row(core, group),
            Some(ResetState::Full) => self.full_goes_on(core, group),
            Some(ResetState::Serving) | None => {}
        }
    }

    #[cold]
    pub(in crate::background) fn all_groups_may_erase(&mut self, core: &mut Core) {
        let groups = self.preemptive.as_ref();
        for group in 0..groups.map_or(0, |of| of.groups()) {
            self.group_may_erase(core, group);
        }
    }

    /// S2: erases zones one at a time until enough are free, or it has erased as
    /// many as it may; then it ends.
    fn full_goes_on(&mut self, core: &mut Core, group: u32) {
        while let Some((physical, blocks)) = self.next_reserved(group) {
            if self.erase_reserved(core, group, physical, blocks) {
                return;
            }
        }
        let next = match self.ask_for_more(core, group) {
            true => self.take_to_erase(core, group, true),
            false => None,
        };
        if let Some((physical, blocks)) = next {
            if let Some(of) = self.reset_group(group) {
                of.begun_whole += 1;
            }
            self.erase_blocks(core, group, physical, blocks, Cause::WriteErase);
        } else if self.reset_group(group).is_some_and(|of| of.under_way == 0) {
            self.leave_full(core, group);
        }
    }

    fn leave_full(&mut self, core: &mut Core, group: u32) {
        let Some(of) = self.reset_group(group) else {
            return;
        };
        of.state = ResetState::Serving;
        of.begun_whole = 0;
        let held = std::mem::take(&mut of.held);
        let held_fills = std::mem::take(&mut of.held_fills);
        let now = core.now;
        self.after(core, ResetEvent::Served, group, now);
        core.effects.push(Effect::Served {
            group,
            requests: held,
            fills: held_fills,
        });
    }

    /// The time for a look at a group has come.
    pub(in crate::background) fn zone_erase_wakes(&mut self, core: &mut Core, task: u32) {
        let now = core.now;
        if let Some(Task::Zone(ZoneErase {
            group,
            what: What::Look(at),
        })) = self.tasks.get_mut(task)
            && now >= *at
        {
            let group = *group;
            self.tasks.remove(task);
            self.group_may_erase(core, group);
        }
    }

    /// An erasure is over.
    pub(in crate::background) fn zone_erase_done(&mut self, core: &mut Core, task: u32) {
        let Task::Zone(ZoneErase { group, what }) = self.tasks.remove(task) else {
            return;
        };
        let What::Erasure { physical } = what else {
            return;
        };
        core.record_task_end(task);
        if let Some(of) = self.reset_group(group) {
            assert!(of.under_way > 0, "an erasure that is over was under way");
            of.under_way -= 1;
        }
        core.flash.erasure_ends(physical);
        self.was_erased(core, group, physical);
        self.group_may_erase(core, group);
    }
}
