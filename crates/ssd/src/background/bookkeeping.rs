//! What the firmware does in its tables for a zone that is reset.
//!
//! One zone after another, each in a time that grows with what the host wrote
//! there. It needs no flash and no core of the front end, but the write buffer
//! starts no programs during parts of it: the tables that say where a page goes
//! are in use. It may also have to wait, before it begins, until programs that
//! run have ended.

use crate::background::Background;
use zonelab_device::Nanos;
use zonelab_nvme::zns::ZoneState;

use super::Task;
use crate::config::Bookkeeping;
use crate::counterfactual::Factor;
use crate::drive::{BackEnd, Core, Effect};
use crate::zones::Change;

/// The bookkeeping of one zone.
#[derive(Clone, Debug)]
pub(super) struct MetadataUpdate {
    request: u32,
    phase: Phase,
    length: Nanos,
    /// Length of each pause of the drain.
    pause: Nanos,
    pauses: u32,
    /// Pauses that have begun.
    begun: u32,
}

/// What bookkeeping waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The front end lets its reset through.
    Start,
    /// That of other zones is done.
    Turn,
    /// Programs that run have ended.
    Quiet,
    /// It began at the first time, and goes on at the second.
    Work(Nanos, Nanos),
}

impl MetadataUpdate {
    /// When the next pause begins or, behind the last, everything ends.
    fn next_at(&self, from: Nanos) -> Nanos {
        let length = u128::from(self.length.0) * u128::from(self.begun) / u128::from(self.pauses);
        // Fits: no more than the whole length.
        from.saturating_add(Nanos(length as u64))
    }
}

impl Background {
    /// A zone was reset by `request`: its bookkeeping begins at `start`, or
    /// when that of zones before it is done.
    pub(super) fn begin_bookkeeping(
        &mut self,
        core: &mut Core,
        change: &Change,
        request: u32,
        start: Nanos,
    ) {
        let Some(Bookkeeping {
            base_ns,
            full_zone_ns,
            drain_pause_ns,
            slices,
            open_zone_ns,
            quiesce: _,
        }) = self.reset.bookkeeping
        else {
            return;
        };
        let capacity = u128::from(core.config.zones.capacity_lbas);
        let host_lbas = u128::from(change.host_lbas);
        // Fits: a zone holds no more than its capacity.
        let share = |of: Nanos| Nanos((u128::from(of.0) * host_lbas / capacity) as u64);
        // A zone that can still be written, and of which something has been programmed.
        let is_open = change.from != ZoneState::FULL && {
            let physical = core.flash.mapping().physical(change.zone);
            physical.is_some_and(|physical| core.flash.is_programmed(physical))
        };
        let close = if is_open { open_zone_ns } else { Nanos::ZERO };
        let length = base_ns
            .saturating_add(share(full_zone_ns))
            .saturating_add(close);
        core.requests.at(request).pending += 1;
        let is_absent = core.is_absent(Factor::Bookkeeping, Some(request));
        let update = MetadataUpdate {
            request,
            phase: Phase::Start,
            length,
            pause: Nanos(share(drain_pause_ns).0 / u64::from(slices)),
            pauses: slices,
            // What is absent is done when it has its turn.
            begun: if is_absent { slices } else { 0 },
        };
        let task = self.tasks.insert(Task::Metadata(update));
        self.push_wake(core, start, task);
    }

    /// Whether bookkeeping goes on, or may yet.
    pub(crate) fn updates_metadata(&self) -> bool {
        self.reset.bookkeeping.is_some()
    }
}

impl BackEnd<'_> {
    /// The time may have come for the start, for the next pause, or for the end.
    pub(super) fn bookkeeping_on(&mut self, task: u32) {
        let now = self.core.now;
        let Some(Task::Metadata(update)) = self.background.tasks.get_mut(task) else {
            return;
        };
        match update.phase {
            Phase::Start if self.background.updating.is_some() => {
                update.phase = Phase::Turn;
                self.background.updates_waiting.push_back(task);
            }
            Phase::Start => self.bookkeeping_has_its_turn(task),
            Phase::Work(from, next) if now >= next => self.bookkeeping_works(task, from),
            Phase::Turn | Phase::Quiet | Phase::Work(..) => {}
        }
    }

    fn bookkeeping_has_its_turn(&mut self, task: u32) {
        self.background.updating = Some(task);
        let books = self.background.reset.bookkeeping;
        let is_done = match self.background.tasks.get_mut(task) {
            Some(Task::Metadata(update)) => update.begun == update.pauses,
            _ => false,
        };
        let waits = books.is_some_and(|books| books.quiesce) && !is_done;
        if let Some(buffer) = self.buffer.as_mut().filter(|_| waits)
            && !buffer.hold_drain(self.core)
        {
            if let Some(Task::Metadata(update)) = self.background.tasks.get_mut(task) {
                update.phase = Phase::Quiet;
            }
            return;
        }
        self.bookkeeping_works(task, self.core.now);
    }

    /// Ends all bookkeeping that goes on or waits, with its pauses: it is absent from now on.
    pub(crate) fn end_bookkeeping(&mut self) {
        for task in self.background.tasks.values_mut() {
            if let Task::Metadata(update) = task {
                update.begun = update.pauses;
            }
        }
        if let Some(active) = self.background.updating {
            self.bookkeeping_works(active, self.core.now);
        }
        if let Some((buffer, mut below)) = self.with_buffer() {
            buffer.end_pause(&mut below);
        }
    }

    /// Programs that ran when the drain was held have ended.
    pub(crate) fn drain_is_quiet(&mut self) {
        let Some(task) = self.background.updating else {
            return;
        };
        if let Some(Task::Metadata(update)) = self.background.tasks.get_mut(task)
            && update.phase == Phase::Quiet
        {
            self.bookkeeping_works(task, self.core.now);
        }
    }

    /// The next pause, or the end, of bookkeeping that began at `from`.
    fn bookkeeping_works(&mut self, task: u32, from: Nanos) {
        let now = self.core.now;
        let Some(Task::Metadata(update)) = self.background.tasks.get_mut(task) else {
            return;
        };
        if update.begun == update.pauses {
            let request = update.request;
            self.background.tasks.remove(task);
            self.background.updating = None;
            self.core.effects.push(Effect::PartDone(request));
            if let Some(next) = self.background.updates_waiting.pop_front() {
                self.bookkeeping_has_its_turn(next);
            }
            return;
        }
        update.begun += 1;
        let (next, pause) = (update.next_at(from), update.pause);
        update.phase = Phase::Work(from, next);
        self.background.push_wake(self.core, next, task);
        if let Some(buffer) = &mut self.buffer {
            buffer.pause_drain(self.core, now.saturating_add(pause));
        }
    }
}
