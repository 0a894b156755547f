//! What the drive does by itself: filling zones that are finished, erasing
//! blocks of zones that were reset.
//!
//! Every design of ConfZNS++, section 4, is a setting of a few tasks:
//!
//! * [`Fill`] programs the rest of a zone in device writes of a granularity,
//!   the next when the previous is done, with a pause between them, yielding
//!   to host I/O or not.
//! * [`Books`] is what a reset costs the firmware: see `bookkeeping`.
//! * [`EraseAll`] issues all erasures of a zone at once; [`Erase`] takes them
//!   block by block, one [`Task::Step`] per plane of the zone, each yielding to
//!   host I/O that waits for its plane.
//!
//! A task that serves a command (a finish, a synchronous reset) ends it when
//! it is done; a background erasure ends nothing. Where the blocks of a reset
//! are erased by later writes there is no task at all: see [`crate::flash`].

mod bookkeeping;
mod preemptive;

use std::collections::VecDeque;

use zonelab_device::{Nanos, ZoneId};

use crate::account::Cause;
use crate::config::{EraseWhen, FillExtent, FinishConfig, ResetConfig};
use crate::drive::{Drive, Owner};
use crate::event::Event;
use crate::flash::BlockRange;
use crate::mapping::elements::Tail;
use crate::record::{BackgroundKind, Begin};
use crate::slab::Slab;
use crate::zones::Change;
use bookkeeping::Books;
pub use preemptive::ResetState;
use preemptive::{Preemptive, ZoneErase};

/// Designs and running tasks of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Background {
    finish: FinishConfig,
    reset: ResetConfig,
    tasks: Slab<Task>,
    erasures: Slab<Erase>,
    /// Fills that yield to host I/O, oldest first.
    yielding: Vec<u32>,
    /// Fills that have not ended.
    fills: u32,
    /// The bookkeeping that goes on, ...
    books_active: Option<u32>,
    /// ... and those that wait for it, in order.
    books_waiting: VecDeque<u32>,
    /// Erasure by thresholds, if that is the design.
    preemptive: Option<Box<Preemptive>>,
}

#[derive(Clone, Debug)]
enum Task {
    Fill(Fill),
    EraseAll(EraseAll),
    Step(Step),
    Books(Books),
    Zone(ZoneErase),
}

/// Filling one zone for a finish.
#[derive(Clone, Debug)]
struct Fill {
    zone: ZoneId,
    physical: u32,
    /// The command that waits for it.
    request: u32,
    /// Logical blocks of the zone still to be programmed.
    next_lba: u32,
    end_lba: u32,
    /// Blocks of the random write area that the finish commits before it fills.
    commit_lbas: u32,
    /// What of the zone has flash.
    tail: Tail,
    /// Groups of its device write that are on the flash: two if blocks had to be erased first.
    groups: u32,
    /// What it waits for.
    wait: FillWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillWait {
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

/// Erasing all stale blocks of a physical zone at once.
#[derive(Clone, Debug)]
struct EraseAll {
    physical: u32,
    request: Option<u32>,
    /// Blocks before this one are to be erased.
    end_block: u32,
    start: Nanos,
    /// It is on the flash, not waiting for its start.
    issued: bool,
}

/// Erasing a physical zone block by block.
#[derive(Clone, Debug)]
struct Erase {
    physical: u32,
    request: Option<u32>,
    /// Blocks before this one are to be erased.
    end_block: u32,
    /// Planes with blocks left, or an erasure under way.
    steps_running: u32,
    /// A write needs the zone: nothing yields any more.
    hurried: bool,
}

/// The part of an [`Erase`] on one plane.
#[derive(Clone, Debug)]
struct Step {
    erasure: u32,
    /// The next block to erase, counted as in [`crate::layout`].
    next_block: u32,
    wait: StepWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepWait {
    /// Its erasure is on the flash.
    Flash,
    /// It starts then.
    Start(Nanos),
    /// Its plane is idle, or this time.
    Idle(Nanos),
}

impl Background {
    pub(crate) fn new(finish: FinishConfig, reset: ResetConfig, groups: u32) -> Self {
        Self {
            finish,
            reset,
            preemptive: Preemptive::new(&reset, groups).map(Box::new),
            tasks: Slab::default(),
            erasures: Slab::default(),
            yielding: Vec::new(),
            fills: 0,
            books_active: None,
            books_waiting: VecDeque::new(),
        }
    }

    /// Power is lost: all tasks are gone.
    pub(crate) fn power_cut(&mut self) {
        let groups = self.preemptive.as_ref().map_or(0, |of| of.groups());
        *self = Self::new(self.finish, self.reset, groups);
    }

    /// Tasks that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.tasks.len()
    }
}

impl Drive {
    /// Background tasks that have not ended: fills and erasures, by plane if
    /// they go block by block, and programs of the write buffer.
    #[must_use]
    pub fn background_tasks(&self) -> usize {
        let programs = self.buffer.as_ref().map_or(0, |buffer| buffer.running());
        let collections = self.conventional.iter().filter(|of| !of.is_idle()).count();
        self.background.running() + programs + collections
    }

    // ---- finish ----------------------------------------------------------

    /// A zone has become full by a finish; its flash follows from `start` on.
    pub(crate) fn begin_finish(&mut self, change: &Change, request: u32, start: Nanos) {
        self.totals.finishes += 1;
        let page_lbas = self.flash.layout().page_lbas();
        // Fits: see `accept_write`.
        let written = change.host_lbas as u32;
        let commit_lbas = (change.host_lbas - change.written_lbas) as u32;
        let tail = self.trim_finished(change.zone, written);
        // Pages that the host began count as programmed, unless they are in the buffer.
        let (first, end) = match self.background.finish {
            FinishConfig::Fill { buffered: true, .. } => {
                let capacity = self.config().zones.capacity_lbas as u32;
                (written, (tail.end_page * page_lbas).min(capacity))
            }
            FinishConfig::Fill { .. } => {
                let page = tail.next_page(written.div_ceil(page_lbas), self.flash.layout());
                (page * page_lbas, tail.end_page * page_lbas)
            }
            FinishConfig::Metadata => (written, 0),
        };
        if self.background.finish.is_buffered() && first < end {
            self.buffer_expects_fill(change.zone, end);
        }
        if first >= end && !self.finish_waits(change.zone) {
            return;
        }
        let (physical, start) = self.map_zone(change.zone, start);
        let start = self.in_zone_order(change.zone, start);
        self.requests.at(request).pending += 1;
        self.background.fills += 1;
        let task = self.background.tasks.insert(Task::Fill(Fill {
            zone: change.zone,
            physical,
            request,
            next_lba: first,
            end_lba: end,
            commit_lbas,
            tail,
            groups: 0,
            wait: FillWait::Until(start),
        }));
        let number = self.record_background(&Begin {
            kind: BackgroundKind::FinishFill,
            zone: change.zone,
            physical,
            request,
            is_waited_for: true,
            start,
        });
        self.record_task(task, number);
        self.wake_at(start, task);
    }

    /// What a finish fills of a zone of which the host wrote `written` blocks: with
    /// an element-wise finish, the zone gives the rest back.
    fn trim_finished(&mut self, zone: ZoneId, written: u32) -> Tail {
        let layout = self.flash.layout();
        let whole = Tail {
            end_page: layout.zone_pages(),
            slots: layout.width(),
        };
        let FinishConfig::Fill {
            extent: FillExtent::Elements,
            buffered,
            ..
        } = self.background.finish
        else {
            return whole;
        };
        let pages = written.div_ceil(layout.page_lbas());
        match self.mapping.physical(zone) {
            // What goes through the buffer goes over all elements of a line.
            Some(physical) => self.flash.trim(physical, pages, buffered).unwrap_or(whole),
            None => Tail {
                end_page: 0,
                ..whole
            },
        }
    }

    fn wake_at(&mut self, at: Nanos, task: u32) {
        if at == self.now {
            self.task_wakes(task);
        } else {
            self.events.push(at, Event::Task(task));
        }
    }

    /// Goes on with a fill: the next device write, or a wait for host I/O to cease.
    fn fill_on(&mut self, task: u32, may_yield: bool) {
        if !self.copies.is_empty() && self.fill_is_behind_copy(task) {
            return;
        }
        if self.buffer.is_some() && (self.commits(task) || !self.fill_may_start(task)) {
            return;
        }
        if self.background.preemptive.is_some() && self.fill_is_held(task) {
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
        let buffers_host_data = self.buffers_host_data();
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        let group = self.flash.layout().group_of(fill.physical) as usize;
        let host_is_busy = if buffered {
            buffers_host_data
        } else {
            self.host_in_flight[group] > 0
        };
        if let Some(hold) = yield_ns.filter(|_| may_yield)
            && host_is_busy
        {
            let deadline = self.now.saturating_add(hold);
            fill.wait = FillWait::Idle(deadline);
            self.background.yielding.push(task);
            self.events.push(deadline, Event::Task(task));
            self.record_yield(task);
            return;
        }
        self.record_resume(task);
        let granularity_lbas = granularity_bytes / self.config().lba_bytes;
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        if buffered {
            let count = granularity_lbas.min(fill.end_lba - fill.next_lba);
            fill.next_lba += count;
            fill.wait = FillWait::Line;
            let zone = fill.zone;
            self.buffer_fill(task, zone, count);
            return;
        }
        fill.wait = FillWait::Flash;
        let physical = fill.physical;
        self.hurry_erasure(physical);
        let mut left = granularity_lbas;
        while let Some(range) = self.next_of_fill(task, left) {
            left -= range.count;
            let claim = self.flash.claim(physical, range);
            let (_, before) = self.flash.totals();
            let (now, token) = (self.now, Owner::Task(task).token());
            let cause = Cause::FinishFill;
            let groups = self
                .flash
                .program(now, claim, cause, token, &mut self.events);
            self.totals.fill_program_bytes += self.flash.totals().1 - before;
            if let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) {
                fill.groups += groups;
            }
        }
    }

    /// Takes at most `most` blocks from what is left of a fill: neighbours, of which
    /// all have flash.
    fn next_of_fill(&mut self, task: u32, most: u32) -> Option<BlockRange> {
        let layout = self.flash.layout();
        let page_lbas = layout.page_lbas();
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return None;
        };
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
    fn fill_is_held(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let physical = fill.physical;
        let is_held = self.is_fill_held(task, physical);
        if let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task)
            && is_held
        {
            fill.wait = FillWait::Erasure;
        }
        is_held
    }

    /// Commits what the random write area of the zone of a fill holds. Returns
    /// whether that was left to do.
    fn commits(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let (zone, count) = (fill.zone, fill.commit_lbas);
        if count > 0 {
            fill.wait = FillWait::Line;
            self.buffer_fill(task, zone, count);
        }
        count > 0
    }

    /// Whether a fill has to wait for a copy to its zone.
    #[cold]
    fn fill_is_behind_copy(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let zone = fill.zone;
        let wait = std::mem::replace(&mut fill.wait, FillWait::Drain);
        let is_behind = self.fill_waits_for_copy(task, zone);
        if let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task)
            && !is_behind
        {
            fill.wait = wait;
        }
        is_behind
    }

    /// Whether the write buffer has nothing more of the zone of a fill, or is
    /// what it goes through, and there is something to fill.
    fn fill_may_start(&mut self, task: u32) -> bool {
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return false;
        };
        let (zone, is_over) = (fill.zone, fill.next_lba >= fill.end_lba);
        if !is_over && self.background.finish.is_buffered() {
            return true;
        }
        fill.wait = FillWait::Drain;
        let drained = self.drain_zone(zone, task);
        if drained && is_over {
            self.end_fill(task);
        }
        drained && !is_over
    }

    /// A device write of a fill, or what it commits, is in the write buffer, or `is_void`: its zone
    /// was reset.
    pub(crate) fn fill_admitted(&mut self, task: u32, is_void: bool) {
        if is_void {
            self.end_fill(task);
            return;
        }
        let Some(Task::Fill(fill)) = self.background.tasks.get_mut(task) else {
            return;
        };
        let committed = std::mem::take(&mut fill.commit_lbas);
        let pause_ns = match self.background.finish {
            FinishConfig::Fill { pause_ns, .. } if committed == 0 => pause_ns,
            _ => Nanos::ZERO,
        };
        // By an event even without a pause: the buffer may have room for all of
        // them, and they would go on inside each other.
        let until = self.now.saturating_add(pause_ns);
        fill.wait = FillWait::Until(until);
        self.events.push(until, Event::Task(task));
    }

    fn fill_group_done(&mut self, task: u32) {
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
            self.end_fill(task);
        } else if pause_ns > Nanos::ZERO {
            let until = self.now.saturating_add(pause_ns);
            fill.wait = FillWait::Until(until);
            self.events.push(until, Event::Task(task));
        } else {
            self.fill_on(task, true);
        }
    }

    fn end_fill(&mut self, task: u32) {
        self.cancel_drain(task);
        self.copies.cancel_fill(task);
        if self.background.preemptive.is_some() {
            self.forget_fill(task);
        }
        self.background.yielding.retain(|&other| other != task);
        if let Task::Fill(fill) = self.background.tasks.remove(task) {
            self.background.fills -= 1;
            self.record_task_end(task);
            self.part_done(fill.request);
            if self.background.fills == 0 {
                self.all_groups_may_erase();
            }
        }
    }

    /// Host I/O of a group of zones is done: fills that yielded to it may go on.
    #[inline]
    pub(crate) fn host_io_done(&mut self, group: u32) {
        let in_flight = &mut self.host_in_flight[group as usize];
        debug_assert!(*in_flight > 0, "host I/O ends once");
        *in_flight -= 1;
        if *in_flight > 0 {
            return;
        }
        if !self.background.yielding.is_empty() {
            self.wake_yielding(group);
        }
        if self.background.preemptive.is_some() {
            self.group_may_erase(group);
        }
    }

    #[cold]
    fn wake_yielding(&mut self, group: u32) {
        let mut woken = Vec::new();
        let Background {
            yielding, tasks, ..
        } = &mut self.background;
        let layout = self.flash.layout();
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

    /// A reset takes the zone from a fill that still runs: the finish ends as it stands.
    fn cancel_fill(&mut self, physical: u32) {
        let found = self
            .background
            .tasks
            .iter()
            .find_map(|(index, task)| match task {
                // What is in the line of the buffer ends the fill when its turn comes.
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

    // ---- reset -----------------------------------------------------------

    /// A zone has become empty by a reset; its flash follows from `start` on.
    pub(crate) fn begin_reset(&mut self, change: &Change, request: u32, start: Nanos) {
        self.buffer_drop(change.zone);
        let start = self.in_zone_order(change.zone, start);
        self.begin_bookkeeping(change, request, start);
        let Some(physical) = self.mapping.physical(change.zone) else {
            return;
        };
        if self.background.fills > 0 {
            self.cancel_fill(physical);
        }
        self.hurry_erasure(physical);
        if self.background.preemptive.is_some() {
            self.mapping.release(change.zone, &mut self.flash);
            return self.zone_was_released(physical, start);
        }
        if self.mapping.release(change.zone, &mut self.flash).is_none() {
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
        let end_block = self.flash.take_stale(physical);
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

    fn issue_erase_all(&mut self, task: u32) {
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

    fn end_erase_all(&mut self, task: u32) {
        if let Task::EraseAll(erase) = self.background.tasks.remove(task) {
            self.record_task_end(task);
            self.end_erasure(erase.physical, erase.request);
        }
    }

    /// Takes the next block of a plane, if nothing of the host waits there.
    fn step_on(&mut self, task: u32, may_yield: bool) {
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
            let media = self.flash.media_mut();
            if !media.when_idle(now, unit, task, Some(deadline), &mut self.events) {
                step.wait = StepWait::Idle(deadline);
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

    fn end_step(&mut self, task: u32) {
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
            self.mapping.erased(physical);
        }
        if let Some(request) = request {
            self.part_done(request);
        }
    }

    /// The physical zones that fills have not left: one of them may erase
    /// blocks before it programs them.
    pub(crate) fn zones_being_filled(&self) -> impl Iterator<Item = u32> {
        self.background
            .tasks
            .iter()
            .filter_map(|(_, task)| match task {
                Task::Fill(fill) => Some(fill.physical),
                _ => None,
            })
    }

    /// Something is about to be programmed on `physical`: what is left of a
    /// stepwise erasure there is issued at once, so that it comes first.
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
                self.issue_rest_of_step(task);
            }
        }
    }

    /// Issues all remaining blocks of a plane, behind the one under way if there is one.
    fn issue_rest_of_step(&mut self, task: u32) {
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

    // ---- events ----------------------------------------------------------

    /// A task's time has come. Wake-ups may be stale (the task went on for
    /// another reason, or its slot was reused), so what it waits for is asked again.
    pub(crate) fn task_wakes(&mut self, task: u32) {
        let now = self.now;
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
            Some(Task::Books(_)) => self.bookkeeping_on(task),
            Some(Task::Zone(_)) => self.zone_erase_wakes(task),
            Some(Task::EraseAll(erase)) if !erase.issued && now >= erase.start => {
                self.issue_erase_all(task);
            }
            Some(Task::Step(step)) => match step.wait {
                StepWait::Start(at) if now >= at => self.step_on(task, true),
                StepWait::Idle(deadline) => {
                    let erase = self.background.erasures.at(step.erasure);
                    let unit = self.flash.unit_of_block(erase.physical, step.next_block);
                    if now >= deadline {
                        self.step_on(task, false);
                    } else if self.flash.media().is_idle(now, unit) {
                        self.step_on(task, true);
                    } else {
                        let events = &mut self.events;
                        self.flash
                            .media_mut()
                            .when_idle(now, unit, task, Some(deadline), events);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The flash operations of a task are done.
    pub(crate) fn task_group_done(&mut self, task: u32) {
        match self.background.tasks.get_mut(task) {
            Some(Task::Fill(_)) => self.fill_group_done(task),
            Some(Task::EraseAll(_)) => self.end_erase_all(task),
            Some(Task::Zone(_)) => self.zone_erase_done(task),
            Some(Task::Step(step)) => {
                if step.next_block == u32::MAX {
                    self.end_step(task);
                } else {
                    self.step_on(task, true);
                }
            }
            Some(Task::Books(_)) => unreachable!("bookkeeping needs no flash"),
            None => unreachable!("a task lives until its flash operations are done"),
        }
    }
}
