//! The reactor: the only place that waits.
//!
//! It runs jobs on cores, over the queue pairs of a device, under one of two
//! clocks. Virtual: jump to the next event. Real: wait until it, or until the
//! device has something. A job never blocks; it handles what completed,
//! submits what it likes, and says when it wants to run again.
//!
//! Of a device it knows what [`Device`] says. Its loop is compiled once, here: a device is
//! called through a pointer, once or twice a turn, and whoever has a device of its own
//! compiles no more than these two calls.

use core::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use zonelab_device::{Completion, Device, DeviceQueue, Nanos, QueueId, QueuePair};

use crate::clock::WaitsFor;
use crate::slices::Slices;
use crate::stats::Latency;
use crate::wakes::Wakes;

/// When a job wants to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWake {
    /// When one of its commands completes.
    Completion,
    /// At that time, or when one of its commands completes.
    At(Nanos),
    /// Never: it is done.
    Finished,
}

/// A workload, scheduler or other host program as a state machine.
pub trait Job {
    /// Goes on. `done` holds what completed since the last call (take what you
    /// need out of it; it is cleared afterwards). `now` is when the core began
    /// to run the job; `queue.now()` moves on while host code takes its time.
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake;
}

/// Wakes every waiting job of a run, for what concerns jobs and is no
/// completion of theirs: another job ends them, or gave something back.
///
/// Jobs of one run may be on several reactors, each in a thread of its own. Those
/// that sleep are woken by what [`Self::also_wakes`] was told of.
#[derive(Clone, Debug, Default)]
pub struct Bell {
    shared: Arc<Ropes>,
}

#[derive(Debug, Default)]
struct Ropes {
    rings: AtomicU64,
    has_sleepers: AtomicBool,
    sleepers: Mutex<Vec<Waker>>,
}

impl Bell {
    /// Wakes all jobs that wait, at the present time.
    #[inline]
    pub fn ring(&self) {
        // What was changed before is seen by who hears it.
        self.shared.rings.fetch_add(1, Ordering::Release);
        if self.shared.has_sleepers.load(Ordering::Acquire) {
            self.wake_sleepers();
        }
    }

    /// Lets each ring wake a thread, too, that may be waiting for its device.
    pub fn also_wakes(&self, sleeper: Waker) {
        self.sleepers().push(sleeper);
        self.shared.has_sleepers.store(true, Ordering::Release);
    }

    #[cold]
    fn wake_sleepers(&self) {
        self.sleepers().iter().for_each(Waker::wake_by_ref);
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<Waker>> {
        // A list is whole whatever became of whoever had it.
        let sleepers = self.shared.sleepers.lock();
        sleepers.unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it has rung.
    #[inline]
    #[must_use]
    pub fn rings(&self) -> u64 {
        self.shared.rings.load(Ordering::Acquire)
    }
}

/// Tells jobs to come to an end, and whether they were told.
///
/// Usually all jobs of a run share one. Jobs that end by groups have one for
/// each group, over the bell of the run ([`Self::over`]).
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    /// [`RUNNING`], or why jobs should finish: the first reason that was given.
    state: Arc<AtomicU8>,
    bell: Bell,
}

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const DEVICE_LOST: u8 = 2;

impl StopSignal {
    /// A signal of its own that rings `bell`, so that the jobs of a run hear it.
    #[must_use]
    pub fn over(bell: &Bell) -> Self {
        Self {
            state: Arc::default(),
            bell: bell.clone(),
        }
    }

    /// The bell that it rings.
    #[must_use]
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Asks every job to stop issuing and to finish.
    pub fn stop(&self) {
        self.give(STOPPED);
    }

    /// Asks every job to finish because the device is gone. Jobs that had more to do
    /// have failed then, even if no command of theirs was under way.
    pub fn device_is_lost(&self) {
        self.give(DEVICE_LOST);
    }

    fn give(&self, reason: u8) {
        let (order, state) = (Ordering::Relaxed, &self.state);
        if state
            .compare_exchange(RUNNING, reason, order, order)
            .is_ok()
        {
            self.bell.ring();
        }
    }

    /// Whether jobs should finish.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::Relaxed) != RUNNING
    }

    /// Whether they should because the device is gone.
    #[must_use]
    pub fn was_device_lost(&self) -> bool {
        self.state.load(Ordering::Relaxed) == DEVICE_LOST
    }
}

/// A core of the host, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreId(pub u32);

/// A device and the clock under which programs run on it.
trait Ground {
    /// See [`Device::next_event`].
    fn next_event(&self) -> Option<Nanos>;

    /// Waits until `until`, or until the device has something before, and has the device do what
    /// is due: [`WaitsFor::wait`], then [`Device::advance`]. Returns the time.
    fn pass(&mut self, until: Nanos, ready: &mut Vec<QueueId>) -> Nanos;

    /// What the clock shows.
    fn now(&self) -> Nanos;
}

struct Under<C, D> {
    clock: C,
    device: D,
}

impl<C: WaitsFor<D>, D: Device> Ground for Under<C, D> {
    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn pass(&mut self, until: Nanos, ready: &mut Vec<QueueId>) -> Nanos {
        let now = self.clock.wait(&mut self.device, until);
        self.device.advance(now, ready);
        now
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

struct Slot<'a> {
    job: &'a mut dyn Job,
    queue: Box<dyn DeviceQueue + 'a>,
    core: CoreId,
    state: SlotState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    /// Waits for a completion, or for its time in `wakes`.
    Waiting,
    /// Wants its core, which is taken until its time in `wakes`.
    Runnable,
    Finished,
}

/// Runs jobs over a device until all have finished.
///
/// Jobs that are due at the same time run in the order in which they were
/// added; a core runs one job at a time, each to the end of its step. Jobs of
/// one core share it step by step, as parts of one program do, or in time
/// slices, as threads that poll do ([`Self::in_slices`]).
pub struct Reactor<'a, D: Device> {
    turns: Turns<'a>,
    /// Queues are of this kind of device.
    device: PhantomData<D>,
}

/// What is the same for all devices.
struct Turns<'a> {
    ground: Box<dyn Ground + 'a>,
    /// The clock is a real one.
    is_real: bool,
    slots: Vec<Slot<'a>>,
    /// When each core is free.
    cores: Vec<Nanos>,
    /// Whose turn it is on each core, if jobs have time slices.
    slices: Option<Slices>,
    wakes: Wakes,
    bell: Bell,
    /// Rings of the bell that were answered.
    heard: u64,
    done: Vec<Completion>,
    ready: Vec<QueueId>,
    slot_of_queue: Vec<u32>,
    /// Latest that a job ran after it wanted to, under the real clock.
    lateness_max: Nanos,
    /// Where lateness is recorded, if it is.
    lateness: Option<&'a mut Latency>,
    /// Whether nobody waits for the jobs any more.
    abandoned: Option<&'a dyn Fn() -> bool>,
}

/// Turns of the loop between two looks at whether anybody waits for the jobs: some hundred
/// microseconds.
const TURNS_BETWEEN_LOOKS: u32 = 1024;

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The time when the last job finished.
    pub at: Nanos,
    /// Jobs that had not finished although nothing could happen any more: a
    /// lost completion, or a job that forgot to say when to wake it.
    pub stuck_jobs: u32,
    /// Under the real clock, the longest delay between an event and its handling.
    pub lateness_max: Nanos,
}

impl<'a, D: Device<Queue: 'a> + 'a> Reactor<'a, D> {
    /// A reactor without jobs. It wakes them when `stop`, or any signal over
    /// the same bell, says so.
    #[must_use]
    pub fn new(clock: impl WaitsFor<D> + 'a, device: D, stop: StopSignal) -> Self {
        let is_real = clock.is_real();
        Self {
            turns: Turns::new(Box::new(Under { clock, device }), is_real, stop.bell),
            device: PhantomData,
        }
    }

    /// Records how late what is due by time is handled, under the real clock:
    /// wakes of jobs, and events of a model. What a device from outside
    /// completes has no time at which it was due.
    #[must_use]
    pub fn recording_lateness(mut self, lateness: &'a mut Latency) -> Self {
        self.turns.lateness = Some(lateness);
        self
    }

    /// Leaves the jobs where they are as soon as `abandoned` says so, which is asked now and
    /// then. They count as stuck, and what they measured is worth nothing.
    #[must_use]
    pub fn abandoned_if(mut self, abandoned: &'a dyn Fn() -> bool) -> Self {
        self.turns.abandoned = Some(abandoned);
        self
    }

    /// Lets the jobs of a core have it in turn for `slice` (at least 1 ns) each, from
    /// their start to their end, whether they have something to do or not: what
    /// threads do that poll. A job that does not have its core neither submits
    /// nor sees completions. A step that has begun goes on beyond the end of
    /// its slice.
    #[must_use]
    pub fn in_slices(mut self, slice: Nanos) -> Self {
        self.turns.slices = Some(Slices::new(slice));
        self
    }

    /// Adds a job that runs on `core` and first runs at `start`.
    pub fn add(&mut self, job: &'a mut dyn Job, queue: D::Queue, core: CoreId, start: Nanos) {
        self.turns.add(job, Box::new(queue), core, start);
    }

    /// The same, with something between the job and a queue of the device.
    pub fn add_through(
        &mut self,
        job: &'a mut dyn Job,
        queue: Box<dyn DeviceQueue + 'a>,
        core: CoreId,
        start: Nanos,
    ) {
        self.turns.add(job, queue, core, start);
    }

    /// Runs until every job has finished, or nothing can happen any more.
    pub fn run(self) -> RunEnd {
        self.turns.run()
    }
}

impl<'a> Turns<'a> {
    fn new(ground: Box<dyn Ground + 'a>, is_real: bool, bell: Bell) -> Self {
        Self {
            ground,
            is_real,
            slots: Vec::new(),
            cores: Vec::new(),
            slices: None,
            wakes: Wakes::default(),
            heard: 0,
            bell,
            done: Vec::new(),
            ready: Vec::new(),
            slot_of_queue: Vec::new(),
            lateness_max: Nanos::ZERO,
            lateness: None,
            abandoned: None,
        }
    }

    fn add(
        &mut self,
        job: &'a mut dyn Job,
        queue: Box<dyn DeviceQueue + 'a>,
        core: CoreId,
        start: Nanos,
    ) {
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 jobs");
        let id = queue.id().0 as usize;
        if self.slot_of_queue.len() <= id {
            self.slot_of_queue.resize(id + 1, u32::MAX);
        }
        self.slot_of_queue[id] = index;
        if self.cores.len() <= core.0 as usize {
            self.cores.resize(core.0 as usize + 1, Nanos::ZERO);
        }
        self.slots.push(Slot {
            job,
            queue,
            core,
            state: SlotState::Waiting,
        });
        self.wakes.add(start);
    }

    fn run(mut self) -> RunEnd {
        let mut unfinished = self.slots.len();
        let mut turns = 0;
        while unfinished > 0 {
            turns += 1;
            if turns == TURNS_BETWEEN_LOOKS {
                turns = 0;
                if self.abandoned.is_some_and(|abandoned| abandoned()) {
                    break;
                }
            }
            let wake = self.wakes.first().map(|(at, _)| at);
            let next = match (self.ground.next_event(), wake) {
                (Some(d), Some(w)) => d.min(w),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => break,
            };
            let now = self.ground.pass(next, &mut self.ready);
            if self.is_real {
                self.note_lateness(now, next);
            }
            unfinished -= self.run_ready(now);
            unfinished -= self.run_due(now);
            if self.heard != self.bell.rings() {
                self.heard = self.bell.rings();
                self.wake_all(now);
            }
        }
        RunEnd {
            at: self.ground.now(),
            stuck_jobs: unfinished as u32,
            lateness_max: self.lateness_max,
        }
    }

    /// Notes when something was handled that was due at `due`. Before that the
    /// device had something.
    fn note_lateness(&mut self, now: Nanos, due: Nanos) {
        if now >= due {
            let late = now - due;
            self.lateness_max = self.lateness_max.max(late);
            if let Some(lateness) = &mut self.lateness {
                lateness.record(late);
            }
        }
    }

    /// Runs jobs with new completions. Returns how many finished.
    #[inline]
    fn run_ready(&mut self, now: Nanos) -> usize {
        let mut finished = 0;
        for i in 0..self.ready.len() {
            let queue = self.ready[i];
            // Queues of an earlier run on the same drive have no job here.
            let index = self
                .slot_of_queue
                .get(usize::from(queue.0))
                .copied()
                .unwrap_or(u32::MAX);
            if let Some(slot) = self.slots.get(index as usize)
                && slot.state == SlotState::Waiting
            {
                finished += usize::from(self.run_or_defer(index, now));
            }
        }
        self.ready.clear();
        finished
    }

    /// Runs jobs whose time has come. Returns how many finished.
    #[inline]
    fn run_due(&mut self, now: Nanos) -> usize {
        let mut finished = 0;
        while let Some((at, index)) = self.wakes.first() {
            if at > now {
                break;
            }
            self.wakes.set(index, Nanos::MAX);
            finished += usize::from(self.run_or_defer(index, now));
        }
        finished
    }

    /// Runs a job, or lets it wait for its core. Returns whether it finished.
    #[inline]
    fn run_or_defer(&mut self, index: u32, now: Nanos) -> bool {
        let slot = &mut self.slots[index as usize];
        let mut core_free = self.cores[slot.core.0 as usize];
        if let Some(slices) = &mut self.slices {
            core_free = core_free.max(slices.turn(slot.core.0, index, now));
        }
        if core_free > now {
            slot.state = SlotState::Runnable;
            self.wakes.set(index, core_free);
            return false;
        }
        slot.queue.enter(now);
        slot.queue.poll(&mut self.done);
        let next = slot.job.step(now, &mut self.done, &mut *slot.queue);
        self.done.clear();
        self.cores[slot.core.0 as usize] = slot.queue.now();
        slot.state = SlotState::Waiting;
        let wake = match next {
            NextWake::Completion => Nanos::MAX,
            // A time that has passed means: as soon as the core is free again.
            NextWake::At(at) => at.max(now),
            NextWake::Finished => {
                slot.state = SlotState::Finished;
                Nanos::MAX
            }
        };
        self.wakes.set(index, wake);
        if next == NextWake::Finished {
            self.leave(index, now);
        }
        next == NextWake::Finished
    }

    /// A job has finished: if its core goes in slices, others have theirs sooner.
    #[cold]
    fn leave(&mut self, index: u32, now: Nanos) {
        let core = self.slots[index as usize].core;
        let Some(slices) = &mut self.slices else {
            return;
        };
        slices.leave(core.0, index, now);
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.core == core && slot.state == SlotState::Runnable {
                self.wakes.set(index as u32, now);
            }
        }
    }

    #[cold]
    fn wake_all(&mut self, now: Nanos) {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.state == SlotState::Waiting {
                self.wakes.set(index as u32, now);
            }
        }
    }
}
