//! Finish: the rest of a zone, or of its storage elements, is programmed in a
//! series of device writes.

use zonelab_device::{Nanos, ZoneId};

use super::{Background, Task};
use crate::account::Cause;
use crate::config::{FillExtent, FinishConfig};
use crate::copy::Copies;
use crate::drive::{BackEnd, Core, Effect, Owner};
use crate::flash::{BlockRange, Target};
use crate::layout::Layout;
use crate::mapping::elements::Tail;
use crate::record::{BackgroundKind, Begin};
use crate::zones::Change;

/// Filling one zone for a finish.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    pub(super) zone: ZoneId,
    pub(super) physical: u32,
    /// The command that waits for it, if one does.
    pub(super) request: Option<u32>,
    /// Logical blocks of the zone still to be programmed.
    pub(super) next_lba: u32,
    pub(super) end_lba: u32,
    /// Blocks of the random write area that the finish commits before it fills.
    pub(super) commit_lbas: u32,
    /// What of the zone has flash.
    pub(super) tail: Tail,
    /// Groups of its device write that are on the flash: two if blocks had to be erased first.
    pub(super) groups: u32,
    /// What it waits for.
    pub(super) wait: FillWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FillWait {
    /// Its device write is on the flash.
    Flash,
    /// The pause, or its first start, ends then.
    Until(Nanos),
    /// No host I/O in its group, or this time.
    Idle(Nanos),
    /// What the write buffer has of its zone is on the flash.
    Drain,
    /// Its device write is in the write buffer.
    Line,
    /// Zones are erased before anything else is done.
    Erasure,
}

impl Background {
    /// What a finish fills of a zone of which the host wrote `written` blocks: with
    /// an element-wise finish, the zone gives the rest back.
    pub(crate) fn trim_finished(&mut self, core: &mut Core, zone: ZoneId, written: u32) -> Tail {
        let layout = core.flash.layout();
        let whole = Tail {
            end_page: layout.zone_pages(),
            slots: layout.width(),
        };
        let Some(by_line) = self.gives_back() else {
            return whole;
        };
        let pages = written.div_ceil(layout.page_lbas());
        match core.flash.mapping().physical(zone) {
            // What goes through the buffer goes over all elements of a line.
            Some(physical) => core.flash.trim(physical, pages, by_line).unwrap_or(whole),
            None => Tail {
                end_page: 0,
                ..whole
            },
        }
    }

    /// Whether a finish gives back elements that were not written: only whole lines
    /// of them (`true`), or each.
    pub(crate) const fn gives_back(&self) -> Option<bool> {
        match self.finish {
            FinishConfig::Fill {
                extent: FillExtent::Elements,
                buffered,
                ..
            } => Some(buffered),
            _ => None,
        }
    }

    /// Takes at most `most` blocks from what is left of a fill: neighbours, of which
    /// all have flash.
    pub(super) fn next_of_fill(
        &mut self,
        core: &mut Core,
        task: u32,
        most: u32,
    ) -> Option<BlockRange> {
        let layout = core.flash.layout();
        let page_lbas = layout.page_lbas();
        let Some(Task::Fill(fill)) = self.tasks.get_mut(task) else {
            return None;
        };
        debug_assert!(
            fill.next_lba <= fill.end_lba,
            "a fill ends where it is to: {fill:?}"
        );
        let first = fill.next_lba;
        let mut count = most.min(fill.end_lba - first);
        if count == 0 {
            return None;
        }
        if fill.tail.slots < layout.width() {
            let page = first / page_lbas;
            let pages = fill.tail.slots - layout.slot_of_page(page);
            count = count.min(pages * page_lbas);
            let next = fill.tail.next_page(page + count / page_lbas, layout);
            fill.next_lba = (next * page_lbas).min(fill.end_lba);
        } else {
            fill.next_lba += count;
        }
        Some(BlockRange { first, count })
    }

    /// Whether a fill has to wait until zones have been erased.
    #[cold]
    pub(super) fn fill_is_held(&mut self, core: &mut Core, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.tasks.get_mut(task) else {
            return false;
        };
        let physical = fill.physical;
        let is_held = self.is_fill_held(core, task, physical);
        if let Some(Task::Fill(fill)) = self.tasks.get_mut(task)
            && is_held
        {
            fill.wait = FillWait::Erasure;
        }
        is_held
    }
}

impl Background {
    /// Whether a fill has to wait for a copy to its zone.
    #[cold]
    pub(super) fn is_behind_copy(&mut self, core: &Core, copies: &mut Copies, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.tasks.get_mut(task) else {
            return false;
        };
        let zone = fill.zone;
        let wait = std::mem::replace(&mut fill.wait, FillWait::Drain);
        let generation = core.zones.generation(zone);
        let is_behind = copies.hold_fill(task, (zone, generation));
        if let Some(Task::Fill(fill)) = self.tasks.get_mut(task)
            && !is_behind
        {
            fill.wait = wait;
        }
        is_behind
    }

    /// A device write of a fill, or what it commits, is in the write buffer, or `is_void`: its zone
    /// was reset.
    pub(crate) fn fill_admitted(&mut self, core: &mut Core, task: u32, is_void: bool) {
        if is_void {
            self.fill_ends(core, task);
            return;
        }
        let Some(Task::Fill(fill)) = self.tasks.get_mut(task) else {
            return;
        };
        let committed = std::mem::take(&mut fill.commit_lbas);
        let (pause_ns, core_bytes) = match self.finish {
            FinishConfig::Fill {
                pause_ns,
                takes_core,
                granularity_bytes,
                ..
            } if committed == 0 => (pause_ns, takes_core.then_some(granularity_bytes)),
            _ => (Nanos::ZERO, None),
        };
        // By an event even without a pause: the buffer may have room for all of
        // them, and they would go on inside each other.
        let mut until = core.now.saturating_add(pause_ns);
        if let Some(bytes) = core_bytes {
            until = until.max(core.front.own_write(core.now, u64::from(bytes)));
        }
        fill.wait = FillWait::Until(until);
        self.push_wake(core, until, task);
    }

    /// A fill for which neither the write buffer nor a copy is waited is over.
    fn fill_ends(&mut self, core: &mut Core, task: u32) {
        if self.preemptive.is_some() {
            self.forget_fill(task);
        }
        self.yielding.retain(|&other| other != task);
        if let Task::Fill(fill) = self.tasks.remove(task) {
            assert!(self.fills > 0, "a fill that ends was counted");
            debug_assert_eq!(fill.groups, 0, "nothing of a fill that ends is on its way");
            self.fills -= 1;
            core.record_task_end(task);
            core.effects.push(Effect::FillEnded {
                task,
                request: fill.request,
            });
        }
    }

    /// What the last fill held back goes on: erasures by thresholds.
    pub(crate) fn fill_has_ended(&mut self, core: &mut Core) {
        if self.fills == 0 {
            self.all_groups_may_erase(core);
        }
    }
}

/// Blocks of a device write of `most` from `first` on: fewer if the host began an operation of
/// the flash, whose rest comes first, so that the writes behind it have whole operations.
fn whole_operations(layout: &Layout, first: u32, most: u32) -> u32 {
    let whole = layout.operation_pages() * layout.page_lbas();
    let part = whole.min(most);
    match whole.max(most).is_multiple_of(part) {
        true => most - first % part,
        // Then they have no whole operations anyway.
        false => most,
    }
}

impl BackEnd<'_> {
    /// A zone has become full by a finish; its flash follows from `start` on.
    pub(crate) fn begin_finish(&mut self, change: &Change, request: u32, start: Nanos) {
        self.core.totals.finishes += 1;
        let page_lbas = self.core.flash.layout().page_lbas();
        // Fits: see `accept_write`.
        let written = change.host_lbas as u32;
        let commit_lbas = (change.host_lbas - change.written_lbas) as u32;
        let mut start = start;
        if commit_lbas > 0 && self.background.gives_back().is_some() {
            // What is in a random write area only has no flash yet: it needs some,
            // and gives the rest back.
            (_, start) = self.background.map_zone(self.core, change.zone, start);
        }
        let group = self.core.flash.layout().group_of(change.zone.0);
        let by_thresholds = self.background.erases_by_thresholds();
        let before = by_thresholds.then(|| self.core.pool(group));
        let tail = self
            .background
            .trim_finished(self.core, change.zone, written);
        if self.core.flash.mapping_mut().has_given_back_stale() {
            self.background.erase_waiting(self.core, start);
        }
        if by_thresholds && before != Some(self.core.pool(group)) {
            self.background
                .flash_was_given_back(self.core, group, start);
        }
        // Pages that the host began count as programmed, unless they are in the buffer.
        let (first, end) = match self.background.finish {
            FinishConfig::Fill { buffered: true, .. } => {
                let capacity = self.core.config.zones.capacity_lbas as u32;
                (written, (tail.end_page * page_lbas).min(capacity))
            }
            FinishConfig::Fill { .. } => {
                let page = tail.next_page(written.div_ceil(page_lbas), self.core.flash.layout());
                (page * page_lbas, tail.end_page * page_lbas)
            }
            FinishConfig::Metadata | FinishConfig::AtFold => (written, 0),
        };
        if let Some(buffer) = &mut self.buffer
            && self.background.finish.is_buffered()
            && first < end
        {
            buffer.expects_fill(change.zone, end);
        }
        if first >= end && self.is_drained(change.zone) {
            return self.finish_drained(change.zone, written, start);
        }
        let (physical, start) = self.background.map_zone(self.core, change.zone, start);
        let start = self.core.in_zone_order(change.zone, start);
        let is_waited_for = self.waits_for_buffer();
        self.core.requests.at(request).pending += u32::from(is_waited_for);
        self.background.fills += 1;
        let task = self.background.tasks.insert(Task::Fill(Fill {
            zone: change.zone,
            physical,
            request: is_waited_for.then_some(request),
            next_lba: first,
            end_lba: end,
            commit_lbas,
            tail,
            groups: 0,
            wait: FillWait::Until(start),
        }));
        let number = self.core.record_background(&Begin {
            kind: BackgroundKind::FinishFill,
            zone: change.zone,
            physical,
            request,
            is_waited_for,
            start,
        });
        self.background.record_task(self.core, task, number);
        if start == self.core.now {
            self.core.effects.push(Effect::FillGoesOn(task));
        } else {
            self.background.push_wake(self.core, start, task);
        }
    }

    /// A zone was finished of which nothing is in the write buffer, and now there is nothing to
    /// fill.
    fn finish_drained(&mut self, zone: ZoneId, written: u32, start: Nanos) {
        if self.background.finish == FinishConfig::AtFold {
            let (physical, _) = self.background.map_zone(self.core, zone, start);
            self.background.fills_at_fold(self.core, physical, written);
        }
    }

    /// Whether a finish waits for what its zone has in the write buffer: not if it fills
    /// nothing itself, and the buffer is not volatile either.
    fn waits_for_buffer(&self) -> bool {
        let is_protected = self.buffer.as_ref().is_some_and(|of| of.is_protected);
        !(is_protected && self.background.finish == FinishConfig::AtFold)
    }

    /// Goes on with a fill, to whose zone no copy is ahead of it.
    pub(super) fn fill_goes_on(&mut self, task: u32, may_yield: bool) {
        if self.buffer.is_some() && (self.commits(task) || !self.fill_may_start(task)) {
            return;
        }
        if self.background.preemptive.is_some() && self.background.fill_is_held(self.core, task) {
            return;
        }
        let FinishConfig::Fill {
            granularity_bytes,
            yield_ns,
            buffered,
            ..
        } = self.background.finish
        else {
            unreachable!("only a filling finish makes fill tasks")
        };
        let buffers_host_data = self.buffer.as_ref().is_some_and(|of| of.has_host_data());
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        let group = self.core.flash.layout().group_of(fill.physical) as usize;
        let host_is_busy = if buffered {
            buffers_host_data
        } else {
            self.core.host_in_flight[group] > 0
        };
        if let Some(hold) = yield_ns.filter(|_| may_yield)
            && host_is_busy
        {
            let deadline = self.core.now.saturating_add(hold);
            fill.wait = FillWait::Idle(deadline);
            self.background.yielding.push(task);
            self.background.push_wake(self.core, deadline, task);
            self.core.record_yield(task);
            return;
        }
        self.core.record_resume(task);
        let granularity_lbas = granularity_bytes / self.core.config.lba_bytes;
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        if buffered {
            let count = granularity_lbas.min(fill.end_lba - fill.next_lba);
            fill.next_lba += count;
            fill.wait = FillWait::Line;
            let (zone, request) = (fill.zone, fill.request);
            let first = fill.next_lba - count;
            self.core.finish_fills(request, BlockRange { first, count });
            if let Some((buffer, mut below)) = self.with_buffer() {
                buffer.fill(&mut below, task, zone, count);
            }
            return;
        }
        fill.wait = FillWait::Flash;
        let (physical, first, request) = (fill.physical, fill.next_lba, fill.request);
        self.background.hurry_erasure(self.core, physical);
        let mut left = whole_operations(self.core.flash.layout(), first, granularity_lbas);
        while let Some(range) = self.background.next_of_fill(self.core, task, left) {
            left -= range.count;
            self.core.finish_fills(request, range);
            let target = Target { physical, range };
            let before = self.core.flash.programmed_bytes();
            let (now, token) = (self.core.now, Owner::Task(task).token());
            let cause = Cause::FinishFill;
            let groups = self
                .core
                .flash
                .program(now, target, cause, token, &mut self.core.events);
            self.core.totals.fill_program_bytes += self.core.flash.programmed_bytes() - before;
            if let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) {
                fill.groups += groups;
            }
        }
    }

    /// Commits what the random write area of the zone of a fill holds. Returns
    /// whether that was left to do.
    pub(super) fn commits(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let (zone, count) = (fill.zone, fill.commit_lbas);
        if count > 0 {
            fill.wait = FillWait::Line;
            if let Some((buffer, mut below)) = self.with_buffer() {
                buffer.fill(&mut below, task, zone, count);
            }
        }
        count > 0
    }

    /// Whether the write buffer has nothing more of the zone of a fill, or is
    /// what it goes through, and there is something to fill.
    pub(super) fn fill_may_start(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let (zone, is_over) = (fill.zone, fill.next_lba >= fill.end_lba);
        if !is_over && self.background.finish.is_buffered() {
            return true;
        }
        fill.wait = FillWait::Drain;
        let drained = match self.with_buffer() {
            Some((buffer, mut below)) => buffer.drain_zone(&mut below, zone, task),
            None => true,
        };
        if drained && is_over {
            self.fill_later(task);
            self.end_fill(task);
        }
        drained && !is_over
    }

    /// What a fill leaves to the fold of its zone.
    fn fill_later(&mut self, task: u32) {
        if self.background.finish != FinishConfig::AtFold {
            return;
        }
        if let Some(Task::Fill(fill)) = self.background.tasks.get(task) {
            let (physical, written) = (fill.physical, fill.next_lba);
            self.background.fills_at_fold(self.core, physical, written);
        }
    }

    /// A fill is over, and nobody needs to wake it any more.
    pub(super) fn end_fill(&mut self, task: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.cancel_drain(task);
        }
        self.background.fill_ends(self.core, task);
    }

    /// A reset takes the zone from a fill that still runs: the finish ends as it stands.
    pub(super) fn cancel_fill(&mut self, physical: u32) {
        let found = self
            .background
            .tasks
            .iter()
            .find_map(|(index, task)| match task {
                // What is in the admission queue ends the fill when its turn comes.
                Task::Fill(fill) if fill.physical == physical && fill.wait != FillWait::Line => {
                    let is_last = fill.next_lba >= fill.end_lba && fill.wait == FillWait::Flash;
                    (!is_last).then_some((index, fill.wait))
                }
                _ => None,
            });
        let Some((task, wait)) = found else { return };
        if wait == FillWait::Flash {
            // The device write on the flash is its last.
            if let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) {
                fill.next_lba = fill.end_lba;
            }
        } else {
            self.end_fill(task);
        }
    }
}
