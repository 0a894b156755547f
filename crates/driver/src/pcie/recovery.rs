//! A controller that has to be reset while threads of their own drive its queues.
//!
//! The controller's thread and those of the queues share a [`Recovery`]. Who drives a
//! queue says what is wrong; who has the controller aborts commands, and resets the
//! controller if that does not help:
//!
//! 1. It disables the controller, so that the device accesses no memory any more, and
//!    begins an odd epoch.
//! 2. Each queue sees that at its next poll, ends what it has in flight, and is quiet
//!    from then on: what is submitted to it waits.
//! 3. When all queues are quiet it enables the controller, makes new rings for each of
//!    them, and begins an even epoch.
//! 4. Each queue takes its rings at its next poll, and submits what waits.
//!
//! So no command of before the reset can be carried out after one of after it, and no
//! thread waits for another: on the path of I/O a queue loads one word that is written
//! at resets only. `tests/schedules` takes this file and `recovering.rs` through every
//! schedule of few switches between threads.

use zonelab_device::QueueId;

use super::error::PcieError;
use super::pair::RingPair;
use super::sync::{Arc, AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering, PoisonError};

/// The epoch of a controller that does not come back.
const LOST: u32 = u32::MAX;

/// Odd while the controller is stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u32);

/// What queues are to do in an epoch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The controller takes commands.
    Working,
    /// The controller is disabled.
    Stopped,
    /// It does not come back.
    Lost,
}

impl Epoch {
    pub(crate) const fn phase(self) -> Phase {
        match self.0 {
            LOST => Phase::Lost,
            odd if odd % 2 == 1 => Phase::Stopped,
            _ => Phase::Working,
        }
    }
}

/// What a controller and its queues agree on.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    epoch: AtomicU32,
    /// A queue has asked for something: read without the lock.
    is_asked: AtomicBool,
    /// A command was completed since the controller was started.
    has_progress: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<(QueueId, Stage)>,
    wishes: Wishes,
}

/// How far a queue is with a reset.
#[derive(Debug)]
enum Stage {
    /// It has not heard of it yet, or there is none.
    Working,
    /// Nothing of it is in flight, and it submits nothing.
    Quiet,
    /// It can go on with these.
    Ready(Box<RingPair>),
}

/// What queues want of the controller.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Commands to be aborted: their queues and identifiers.
    pub(crate) aborts: Vec<(QueueId, u16)>,
    /// Why it should be reset.
    pub(crate) reset: Option<PcieError>,
}

impl Recovery {
    /// The epoch now.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it has the lock but for want of memory.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The side of a queue.

    /// A queue takes part from now on, in the epoch that this gives.
    pub(crate) fn join(&self, id: QueueId) -> Epoch {
        let mut state = self.state();
        debug_assert!(state.queues.iter().all(|(other, _)| *other != id));
        state.queues.push((id, Stage::Working));
        self.epoch()
    }

    /// A queue takes no part any more; it may have left before.
    pub(crate) fn leave(&self, id: QueueId) {
        let mut state = self.state();
        let at = state.queues.iter().position(|(other, _)| *other == id);
        let left = at.map(|at| state.queues.swap_remove(at));
        if let Some((_, Stage::Ready(rings))) = left {
            // The controller knows them, and nobody deletes them.
            rings.leak();
        }
    }

    /// Asks for a command to be aborted, if the epoch is still `since`.
    pub(crate) fn ask_abort(&self, since: Epoch, id: QueueId, cid: u16) {
        self.ask(since, |wishes| wishes.aborts.push((id, cid)));
    }

    /// Asks for a reset, if the epoch is still `since`.
    pub(crate) fn ask_reset(&self, since: Epoch, error: PcieError) {
        self.ask(since, |wishes| {
            wishes.reset.get_or_insert(error);
        });
    }

    fn ask(&self, since: Epoch, wish: impl FnOnce(&mut Wishes)) {
        let mut state = self.state();
        // What is wrong with rings that are gone is of no interest.
        if self.epoch() == since {
            wish(&mut state.wishes);
            self.is_asked.store(true, Ordering::Relaxed);
        }
    }

    /// A queue has had a completion.
    pub(crate) fn note_progress(&self) {
        self.has_progress.store(true, Ordering::Relaxed);
    }

    /// Nothing of a queue is in flight, and it submits nothing in this epoch.
    pub(crate) fn note_quiet(&self, id: QueueId) {
        if let Some(stage) = self.state().of(id) {
            *stage = Stage::Quiet;
        }
    }

    /// The rings with which a queue goes on, once.
    pub(crate) fn take_rings(&self, id: QueueId) -> Option<RingPair> {
        let mut state = self.state();
        let stage = state.of(id)?;
        match core::mem::replace(stage, Stage::Working) {
            Stage::Ready(rings) => Some(*rings),
            other => {
                *stage = other;
                None
            }
        }
    }

    // The side of the controller.

    /// What queues have asked for.
    pub(crate) fn take_wishes(&self) -> Option<Wishes> {
        if !self.is_asked.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state();
        self.is_asked.store(false, Ordering::Relaxed);
        Some(core::mem::take(&mut state.wishes))
    }

    /// Whether a command was completed since this was last asked.
    pub(crate) fn take_progress(&self) -> bool {
        self.has_progress.swap(false, Ordering::Relaxed)
    }

    /// The controller is disabled.
    pub(crate) fn stopped(&self) {
        let mut state = self.state();
        state.wishes = Wishes::default();
        for (_, stage) in &mut state.queues {
            // Rings that were not taken are not known to the controller any more.
            *stage = Stage::Working;
        }
        self.begin(Phase::Stopped);
    }

    /// The queues, if all are quiet.
    pub(crate) fn quiet_queues(&self) -> Option<Vec<QueueId>> {
        let state = self.state();
        let is_quiet = |(_, stage): &(QueueId, Stage)| matches!(stage, Stage::Quiet);
        let ids = || state.queues.iter().map(|(id, _)| *id).collect();
        state.queues.iter().all(is_quiet).then(ids)
    }

    /// The controller works, and knows these rings.
    pub(crate) fn started(&self, rings: Vec<(QueueId, RingPair)>) {
        let mut state = self.state();
        for (id, rings) in rings {
            match state.of(id) {
                Some(stage) => *stage = Stage::Ready(Box::new(rings)),
                // It has left meanwhile, and the controller knows them.
                None => rings.leak(),
            }
        }
        self.begin(Phase::Working);
    }

    /// The controller does not come back.
    pub(crate) fn lose(&self) {
        let _state = self.state();
        self.epoch.store(LOST, Ordering::Release);
    }

    /// Goes on to the next epoch; the lock is held.
    fn begin(&self, phase: Phase) {
        let next = Epoch(self.epoch().0.wrapping_add(1));
        debug_assert_eq!(next.phase(), phase);
        self.epoch.store(next.0, Ordering::Release);
    }
}

impl State {
    fn of(&mut self, id: QueueId) -> Option<&mut Stage> {
        let found = self.queues.iter_mut().find(|(other, _)| *other == id);
        found.map(|(_, stage)| stage)
    }
}

/// A queue's part: it leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    recovery: Arc<Recovery>,
    id: QueueId,
}

impl Member {
    pub(crate) const fn new(recovery: Arc<Recovery>, id: QueueId) -> Self {
        Self { recovery, id }
    }
}

impl core::ops::Deref for Member {
    type Target = Recovery;

    fn deref(&self) -> &Recovery {
        &self.recovery
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.recovery.leave(self.id);
    }
}
