//! Folding: what is in the SLC cache is read, programmed on the blocks of its zone, and given
//! up in the cache, whose rows are erased when they hold nothing any more.
//!
//! A *fold* takes what one program takes of one zone. It reads the cache, and programs when it
//! has read, behind the folds of its zone that began before it: so pages of a block are
//! programmed in order. What was folded stays in the cache until its program is over, so a loss
//! of power loses nothing of it. As many folds are under way as the profile has room for. They
//! share dies and channels with the host, in line like everything else.
//!
//! The log of the cache is folded from its oldest place on. Zones that were finished come
//! after it: what a finish left to be programmed makes no room. Nobody waits for that, so it is
//! left to idle time.

use std::collections::VecDeque;

use zonelab_device::Nanos;

use super::{Background, Task};
use crate::account::Cause;
use crate::config::{DriveConfig, FinishConfig};
use crate::drive::{Core, Effect, Owner};
use crate::event::Event;
use crate::flash::{Foldable, Target};
use crate::layout::Layout;

/// "None" of a link.
const NONE: u32 = u32::MAX;

/// When it is folded, and what is under way.
#[derive(Clone, Debug)]
pub(super) struct Folding {
    after_idle: Option<Nanos>,
    /// Places of the cache that may hold something without folding beside the host.
    threshold_places: u64,
    most_lbas: u64,
    unit_lbas: u64,
    /// The place of the log to look at next.
    cursor: u64,
    /// Physical zones that were finished and of which something is left, in order.
    finished: VecDeque<u32>,
    /// Whether each physical zone is in [`Self::finished`].
    is_finished: Vec<bool>,
    /// Folds that have not programmed yet, by physical zone.
    lines: Vec<Line>,
    /// Blocks that are being folded.
    under_way_lbas: u64,
    /// Since when the host has had nothing in flight.
    idle_since: Option<Nanos>,
    /// There is an event at this time.
    wakes_at: Option<Nanos>,
}

/// Folds of a zone, in the order of its blocks.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
}

impl Line {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// A fold under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    of: Foldable,
    stage: FoldStage,
    /// Its zone was reset: it ends with what is on the flash of it.
    is_orphan: bool,
    /// The next of its zone that has not programmed yet.
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoldStage {
    Reading,
    /// It waits for folds of its zone that began before.
    Read,
    /// Blocks of its row are erased, which has to be before it programs. That is a group of
    /// operations of its own, so that the fold is over when its program is: if it waited for
    /// erasures on other dies, a loss of power would have it programmed a second time, behind
    /// later folds of the same block.
    Erasing,
    Programming,
}

impl Folding {
    /// Of a drive with an SLC cache.
    pub(super) fn new(config: &DriveConfig, core: &Core) -> Option<Self> {
        let cache = config.slc_cache?;
        let places = core.flash.cache_places();
        // Fits: a share of a number of 64 bits.
        let share = u128::from(places) * u128::from(cache.fold_above_ppm) / 1_000_000;
        let unit_bytes = config.geometry.page_bytes * config.pages_per_program();
        let lba_bytes = u64::from(config.lba_bytes);
        Some(Self {
            after_idle: cache.fold_after_idle_ns,
            // From there on the write buffer waits, which is reason enough to fold.
            threshold_places: (share as u64).min(core.flash.cache_places_usable()),
            most_lbas: cache.fold_bytes / lba_bytes,
            unit_lbas: u64::from(unit_bytes) / lba_bytes,
            cursor: 0,
            finished: VecDeque::new(),
            is_finished: vec![false; core.flash.physical_zones() as usize],
            lines: vec![Line::EMPTY; core.flash.physical_zones() as usize],
            under_way_lbas: 0,
            idle_since: None,
            wakes_at: None,
        })
    }

    fn is_idle(&self, now: Nanos) -> bool {
        match (self.after_idle, self.idle_since) {
            (Some(after), Some(since)) => now >= since.saturating_add(after),
            _ => false,
        }
    }

    /// Whether more is in the cache that is not being folded than may be, or somebody waits.
    fn is_pressed(&mut self, core: &Core) -> bool {
        let (tail, _, head) = core.flash.cache_log();
        self.cursor = self.cursor.max(tail);
        while head - self.cursor > self.threshold_places && !core.flash.is_to_be_folded(self.cursor)
        {
            self.cursor += 1;
        }
        head - self.cursor > self.threshold_places || !core.flash.cache_has_room()
    }

    /// What is folded next.
    fn next(&mut self, core: &mut Core, (is_idle, is_pressed): (bool, bool)) -> Option<Foldable> {
        let (tail, row_end, head) = core.flash.cache_log();
        self.cursor = self.cursor.max(tail);
        let nothing_is_under_way = is_pressed && self.under_way_lbas == 0;
        let mut looks_back = nothing_is_under_way && core.flash.is_oldest_row_held();
        loop {
            if looks_back && self.cursor >= row_end {
                // Parts of units were left behind that nothing followed.
                (looks_back, self.cursor) = (false, tail);
            }
            if self.cursor >= head || core.flash.is_being_programmed(self.cursor) {
                break;
            }
            let is_oldest = self.cursor < row_end && row_end <= head;
            let found = core
                .flash
                .take_to_fold(self.cursor, is_pressed && is_oldest);
            if found.is_some() {
                return found;
            }
            self.cursor += 1;
        }
        if !is_idle {
            return None;
        }
        while let Some(&physical) = self.finished.front() {
            if core.flash.has_rest(physical) {
                let found = core.flash.take_of_finished(physical);
                if found.is_some() {
                    return found;
                }
            }
            self.finished.pop_front();
            self.is_finished[physical as usize] = false;
        }
        None
    }

    /// Something is left of a physical zone that was finished. It stays in the line when it is
    /// reset.
    fn has_finished(&mut self, physical: u32) {
        if !std::mem::replace(&mut self.is_finished[physical as usize], true) {
            self.finished.push_back(physical);
        }
    }

    fn has_work(&self, core: &Core) -> bool {
        self.cursor < core.flash.cache_log().2 || !self.finished.is_empty()
    }
}

impl Background {
    /// Whether there is an SLC cache.
    #[inline]
    pub(crate) const fn folds(&self) -> bool {
        self.folding.is_some()
    }

    /// Begins to look after the SLC cache, at the start of the drive or after a loss of power:
    /// the host is idle from `start` on.
    pub(crate) fn resume_folding(&mut self, core: &mut Core, start: Nanos) {
        self.folding = Folding::new(&core.config, core).map(Box::new);
        if let Some(folding) = &mut self.folding {
            let zones = 0..core.flash.physical_zones();
            zones
                .filter(|of| core.flash.has_rest(*of))
                .for_each(|of| folding.has_finished(of));
            folding.cursor = core.flash.cache_log().0;
            if folding.cursor == core.flash.cache_log().2 && folding.finished.is_empty() {
                return;
            }
            folding.idle_since = Some(start);
            folding.wakes_at = Some(start);
            core.events.push(start, Event::Fold);
        }
    }

    /// Folds what is due. Whatever may have changed that, it is asked after each event.
    pub(crate) fn fold_on(&mut self, core: &mut Core) {
        let Some(folding) = &mut self.folding else {
            return;
        };
        let now = core.now;
        if now < core.ready_at {
            // The drive is starting, and there is an event when it has.
            return;
        }
        match (core.in_flight(), folding.idle_since) {
            (0, None) => folding.idle_since = Some(now),
            (0, Some(_)) => {}
            _ => folding.idle_since = None,
        }
        if core.flash.can_erase_row() {
            let task = self.tasks.insert(Task::EraseRow);
            self.begins_folding(core, task);
            let token = Owner::Task(task).token();
            core.flash.erase_row(now, token, &mut core.events);
        }
        while let Some(of) = self.next_fold(core) {
            self.begin_fold(core, of);
        }
        self.wake_when_due(core);
    }

    fn next_fold(&mut self, core: &mut Core) -> Option<Foldable> {
        let folding = self.folding.as_mut()?;
        let is_idle = folding.is_idle(core.now);
        let is_pressed = folding.is_pressed(core);
        let has_room = folding.under_way_lbas == 0
            || folding.under_way_lbas + folding.unit_lbas <= folding.most_lbas;
        match has_room && (is_idle || is_pressed) {
            true => folding.next(core, (is_idle, is_pressed)),
            false => None,
        }
    }

    /// Asks for an event when the host will have been idle for long enough.
    fn wake_when_due(&mut self, core: &mut Core) {
        let Some(folding) = &mut self.folding else {
            return;
        };
        if let (Some(after), Some(since)) = (folding.after_idle, folding.idle_since)
            && !folding.is_idle(core.now)
            && folding.has_work(core)
        {
            // One that comes too early asks again: the host has been idle since a later time.
            let at = since.saturating_add(after);
            if folding.wakes_at.is_none_or(|wakes_at| wakes_at <= core.now) {
                folding.wakes_at = Some(at);
                core.events.push(at, Event::Fold);
            }
        }
    }

    fn begins_folding(&mut self, core: &mut Core, task: u32) {
        if core.is_tracked() {
            self.mark_task(core, task);
        }
        if core.recorder.is_some() {
            // The task may have the number of an earlier one, which served something.
            core.record_served(Owner::Task(task), None);
        }
    }

    fn begin_fold(&mut self, core: &mut Core, of: Foldable) {
        let stage = match of.is_rest {
            true => FoldStage::Read,
            false => FoldStage::Reading,
        };
        let task = self.tasks.insert(Task::Fold(Fold {
            of,
            stage,
            is_orphan: false,
            next: NONE,
        }));
        self.begins_folding(core, task);
        let Some(folding) = &mut self.folding else {
            return;
        };
        folding.under_way_lbas += u64::from(of.range.count);
        let line = &mut folding.lines[of.physical as usize];
        let last = std::mem::replace(&mut line.last, task);
        match self.tasks.get_mut(last) {
            Some(Task::Fold(before)) if last != NONE => before.next = task,
            _ => line.first = task,
        }
        if of.is_rest {
            return self.program_folds(core, of.physical);
        }
        let token = Owner::Task(task).token();
        core.flash
            .read_to_fold(core.now, &of, token, &mut core.events);
    }

    /// Programs what has been read of a zone, in order.
    fn program_folds(&mut self, core: &mut Core, physical: u32) {
        loop {
            let Some(folding) = &mut self.folding else {
                return;
            };
            let task = folding.lines[physical as usize].first;
            let Some(Task::Fold(fold)) = self.tasks.get_mut(task) else {
                return;
            };
            if fold.stage != FoldStage::Read {
                return;
            }
            let (of, next) = (fold.of, fold.next);
            self.hurry_erasure(core, physical);
            let (now, token) = (core.now, Owner::Task(task).token());
            let target = Target {
                physical,
                range: of.range,
            };
            let cause = match of.is_rest {
                true => Cause::FinishFill,
                false => Cause::Fold,
            };
            let erases =
                core.flash
                    .erase_before_program(now, target, cause, token, &mut core.events);
            self.set_stage(
                task,
                match erases {
                    true => FoldStage::Erasing,
                    false => FoldStage::Programming,
                },
            );
            if erases {
                return;
            }
            if let Some(folding) = &mut self.folding {
                let line = &mut folding.lines[physical as usize];
                line.first = next;
                if next == NONE {
                    *line = Line::EMPTY;
                }
            }
            let total = match of.is_rest {
                true => &mut core.totals.fill_program_bytes,
                false => &mut core.totals.fold_program_bytes,
            };
            let before = core.flash.programmed_bytes();
            let groups = core
                .flash
                .program(now, target, cause, token, &mut core.events);
            *total += core.flash.programmed_bytes() - before;
            debug_assert_eq!(groups, 1, "nothing is left to be erased");
        }
    }

    fn set_stage(&mut self, task: u32, stage: FoldStage) {
        if let Some(Task::Fold(fold)) = self.tasks.get_mut(task) {
            fold.stage = stage;
        }
    }

    /// A group of operations of a fold is over.
    pub(super) fn fold_group_done(&mut self, core: &mut Core, task: u32) {
        let Some(Task::Fold(fold)) = self.tasks.get_mut(task) else {
            return;
        };
        let of = fold.of;
        if fold.stage != FoldStage::Programming {
            fold.stage = FoldStage::Read;
            match fold.is_orphan {
                true => self.end_fold(task),
                false => self.program_folds(core, of.physical),
            }
            return;
        }
        if !fold.is_orphan && !of.is_rest {
            core.flash.was_folded(of.physical, of.range);
        }
        self.end_fold(task);
    }

    fn end_fold(&mut self, task: u32) {
        if let Task::Fold(fold) = self.tasks.remove(task)
            && let Some(folding) = &mut self.folding
        {
            folding.under_way_lbas -= u64::from(fold.of.range.count);
        }
    }

    /// A row of the cache is erased.
    pub(super) fn row_is_erased(&mut self, core: &mut Core, task: u32) {
        self.tasks.remove(task);
        core.flash.row_is_erased();
        core.effects.push(Effect::CacheHasRoom);
    }

    /// A zone is reset: its folds come to nothing. What of them is on the flash ends first.
    pub(super) fn drop_folds(&mut self, physical: u32) {
        let Some(folding) = &mut self.folding else {
            return;
        };
        let line = &mut folding.lines[physical as usize];
        let mut task = std::mem::replace(line, Line::EMPTY).first;
        while let Some(Task::Fold(fold)) = self.tasks.get_mut(task) {
            let (this, next) = (task, fold.next);
            fold.is_orphan = true;
            if fold.stage == FoldStage::Read {
                self.end_fold(this);
            }
            task = next;
        }
        for of in self.tasks.values_mut() {
            if let Task::Fold(fold) = of
                && fold.of.physical == physical
            {
                fold.is_orphan = true;
            }
        }
    }

    /// A zone was finished, and all that the host wrote to it has left the write buffer.
    pub(crate) fn fills_at_fold(&mut self, core: &mut Core, physical: u32, written: u32) {
        core.flash.fill_at_fold(physical, written);
        if let Some(folding) = &mut self.folding
            && core.flash.has_rest(physical)
        {
            folding.has_finished(physical);
        }
    }

    /// Logical blocks that finishes will fill and have given to no die, without those that the
    /// cache knows of; and those that are in the cache and being programmed elsewhere.
    pub(crate) fn unfilled_and_folding_lbas(&self, layout: &Layout) -> (u64, u64) {
        let page_lbas = layout.page_lbas();
        let zone_end = layout.zone_pages() * page_lbas;
        let (mut unfilled, mut folding) = (0, 0);
        for (_, task) in self.tasks.iter() {
            match task {
                // It waits until the write buffer has nothing more of its zone.
                Task::Fill(fill) if self.finish == FinishConfig::AtFold => {
                    let first = fill.next_lba.next_multiple_of(page_lbas);
                    unfilled += u64::from(zone_end.saturating_sub(first));
                }
                Task::Fold(fold) if !fold.is_orphan => {
                    let is_begun = fold.stage == FoldStage::Programming;
                    match (fold.of.is_rest, is_begun) {
                        (true, false) => unfilled += u64::from(fold.of.range.count),
                        (false, true) => folding += u64::from(fold.of.range.count),
                        (true, true) | (false, false) => {}
                    }
                }
                _ => {}
            }
        }
        (unfilled, folding)
    }

    pub(super) fn assert_folding(&self) {
        let Some(folding) = &self.folding else { return };
        let folds = self.tasks.iter().filter_map(|(_, task)| match task {
            Task::Fold(fold) => Some(u64::from(fold.of.range.count)),
            _ => None,
        });
        assert_eq!(folding.under_way_lbas, folds.sum::<u64>(), "what is folded");
    }
}
