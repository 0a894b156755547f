//! What the drive does by itself: filling zones that are finished, erasing
//! blocks of zones that were reset.
//!
//! Every design of ConfZNS++, section 4, is a setting of a few tasks:
//!
//! * [`Fill`] programs the rest of a zone in device writes of a granularity,
//!   the next when the previous is done, with a pause between them, yielding
//!   to host I/O or not.
//! * [`Fold`] moves data from the SLC cache to the blocks of their zones: see `folding`.
//! * [`MetadataUpdate`] is what a reset costs the firmware: see `bookkeeping`.
//! * [`EraseAll`] issues all erasures of a zone at once; [`Erase`] takes them
//!   block by block, one [`Task::Step`] per plane of the zone, each yielding to
//!   host I/O that waits for its plane.
//!
//! A task that serves a command (a finish, a synchronous reset) ends it when
//! it is done; a background erasure ends nothing. Where the blocks of a reset
//! are erased by later writes there is no task at all: see [`crate::flash`].

mod bookkeeping;
mod drive;
mod erasures;
mod fill;
mod folding;
mod freeing;
mod invariants;
mod preemptive;
mod tasks;

use std::collections::VecDeque;

use zonelab_device::Nanos;

use crate::account::Cause;
use crate::config::{FinishConfig, ResetConfig};
use crate::drive::{Core, Drive};
use crate::event::Event;
use crate::layout::PlaneSet;
use crate::slab::Slab;
use bookkeeping::MetadataUpdate;
use fill::Fill;
use folding::{Fold, Folding};
pub use freeing::Freed;
use freeing::Freeing;
use preemptive::{Preemptive, ZoneErase};
pub use preemptive::{ResetState, ZoneCounts};
use tasks::Tasks;

/// Designs and running tasks of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Background {
    finish: FinishConfig,
    reset: ResetConfig,
    tasks: Tasks,
    erasures: Slab<Erase>,
    /// Fills that yield to host I/O, oldest first.
    yielding: Vec<u32>,
    /// Fills that have not ended.
    fills: u32,
    /// Task of the bookkeeping that goes on.
    updating: Option<u32>,
    /// Tasks of bookkeeping that waits for its turn, in order.
    updates_waiting: VecDeque<u32>,
    /// Erasure by thresholds, if that is the design.
    preemptive: Option<Box<Preemptive>>,
    /// How long flash takes to be free again.
    freeing: Freeing,
    /// What is folded from the SLC cache, if there is one.
    folding: Option<Box<Folding>>,
}

#[derive(Clone, Debug)]
enum Task {
    Fill(Fill),
    EraseAll(EraseAll),
    Step(Step),
    Metadata(MetadataUpdate),
    Zone(ZoneErase),
    Fold(Fold),
    /// A row of the SLC cache is being erased.
    EraseRow,
}

/// Erasing all stale blocks of a physical zone at once.
#[derive(Clone, Debug)]
struct EraseAll {
    physical: u32,
    cause: Cause,
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
    cause: Cause,
    request: Option<u32>,
    /// Blocks before this one are to be erased.
    end_block: u32,
    /// Steps with blocks left, or an erasure under way.
    steps_running: u32,
    /// A write needs the zone: nothing yields any more.
    hurried: bool,
}

/// The part of an [`Erase`] on planes that erase together, a row of blocks at a time.
#[derive(Clone, Debug)]
struct Step {
    erasure: u32,
    planes: PlaneSet,
    /// The next row of blocks to erase, or `u32::MAX`: what is under way is the last.
    next_row: u32,
    wait: StepWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepWait {
    /// Its erasure is on the flash.
    Flash,
    /// It starts then.
    Start(Nanos),
    /// This unit of the flash, on which its next erasure is, is idle; or until this time.
    Idle(Nanos, u32),
}

impl Background {
    pub(crate) fn new(finish: FinishConfig, reset: ResetConfig, groups: u32) -> Self {
        Self {
            finish,
            reset,
            preemptive: Preemptive::new(&reset, groups).map(Box::new),
            tasks: Tasks::default(),
            erasures: Slab::default(),
            yielding: Vec::new(),
            fills: 0,
            updating: None,
            updates_waiting: VecDeque::new(),
            freeing: Freeing::default(),
            folding: None,
        }
    }

    /// Power is lost: all tasks are gone.
    pub(crate) fn power_cut(&mut self) {
        let groups = self.preemptive.as_ref().map_or(0, |of| of.groups());
        let mut freeing = std::mem::take(&mut self.freeing);
        freeing.power_cut();
        let preemptive = self.preemptive.take();
        *self = Self {
            freeing,
            ..Self::new(self.finish, self.reset, groups)
        };
        if let (Some(fresh), Some(before)) = (&mut self.preemptive, preemptive) {
            fresh.keep_own_rules(*before);
        }
    }

    /// An event that wakes a task.
    pub(crate) fn wake(&mut self, task: u32) -> Event {
        Event::Task(self.tasks.wakeup(task))
    }

    /// Tasks that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.tasks.len()
    }
}

impl Background {
    // ---- reset -----------------------------------------------------------

    /// The request that a task does its work for and that waits for it.
    pub(crate) fn request_of_task(&self, task: u32) -> Option<u32> {
        match self.tasks.get(task)? {
            Task::Fill(fill) => fill.request,
            Task::EraseAll(erase) => erase.request,
            Task::Step(step) => self.erasures[step.erasure].request,
            Task::Metadata(_) | Task::Zone(_) | Task::Fold(_) | Task::EraseRow => None,
        }
    }

    // ---- events ----------------------------------------------------------

    /// Wakes a task at a time that is not past.
    pub(crate) fn push_wake(&mut self, core: &mut Core, at: Nanos, task: u32) {
        let event = self.wake(task);
        core.events.push(at, event);
    }

    /// Wakes a task when a unit that is not idle becomes so, at the latest at a time.
    fn wake_when_idle(&mut self, core: &mut Core, unit: u32, task: u32, deadline: Nanos) {
        let wakeup = self.tasks.wakeup(task);
        let (now, events) = (core.now, &mut core.events);
        let media = core.flash.media_mut();
        let is_idle = media.when_idle(now, unit, wakeup, Some(deadline), events);
        debug_assert!(!is_idle, "then nobody would be woken");
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

    /// Times from resets to erased flash, since the drive was made or restored.
    /// Flash that a write erases is not among them: it is never free.
    #[must_use]
    pub fn freed(&self) -> Freed {
        self.background.freeing.freed()
    }
}
