//! Threads of a run in real time: each job has a thread of this program, a reactor
//! and a queue pair of its own.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{Scope, ScopedJoinHandle};

use zonelab_device::{Completion, Device, DeviceInfo, DeviceQueue, Nanos, QueueId, QueuePair};
use zonelab_host::block::WriteThrough;
use zonelab_host::block::split::Splitting;
use zonelab_host::stats::Latency;
use zonelab_host::workload::{JobResult, WorkloadJob};
use zonelab_host::{Bell, Clock, CoreId, Job, NextWake, Reactor, RealClock, StopSignal};

use super::pin;
use super::site::Site;
use super::watch::{LOOK_EVERY, Watched};

/// What a thread has of a device. It is made before the thread, sent there, and is
/// a device there.
pub trait Part: Sized + Send {
    /// The device that the thread's reactor drives.
    type Device: Device + 'static;

    /// Makes it a device of this thread, with a queue pair.
    ///
    /// # Errors
    /// The system has nothing left that it takes: a text that says so.
    fn open(self) -> Result<(Self::Device, <Self::Device as Device>::Queue), String>;

    /// What ends a wait of the device from another thread.
    fn waker(device: &Self::Device) -> Waker;

    /// Whether the device is gone.
    fn is_lost(device: &Self::Device) -> bool;

    /// Gives it back, so that another thread may have it. `None`: there is nothing
    /// to be given back.
    fn close(device: Self::Device) -> Option<Self>;
}

/// A part of devices that all threads of a run drive together.
#[derive(Debug)]
pub enum NoPart<D> {
    /// There is none.
    Never(
        std::convert::Infallible,
        std::marker::PhantomData<fn() -> D>,
    ),
}

impl<D: Device + 'static> Part for NoPart<D> {
    type Device = D;

    fn open(self) -> Result<(D, D::Queue), String> {
        match self {
            Self::Never(never, _) => match never {},
        }
    }

    fn waker(_device: &D) -> Waker {
        Waker::noop().clone()
    }

    fn is_lost(_device: &D) -> bool {
        false
    }

    fn close(_device: D) -> Option<Self> {
        None
    }
}

/// A job whose results can be sent to another thread.
pub trait Program: Job {
    /// What it leaves.
    type Output: Send;

    /// What it leaves, once its reactor has ended.
    fn into_output(self) -> Self::Output;
}

/// What a workload in a thread of its own did.
#[derive(Clone, Debug)]
pub struct ThreadResult {
    /// What it measured; `None` if it was ended before it began.
    pub result: Option<JobResult>,
    /// It waited for something that could not happen any more.
    pub is_stuck: bool,
}

impl Program for WorkloadJob {
    type Output = ThreadResult;

    fn into_output(self) -> ThreadResult {
        ThreadResult {
            is_stuck: !self.has_ended(),
            result: Some(self.into_result()),
        }
    }
}

/// What a host does between a job and the queue pair of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Commands longer than the device takes are sent in parts, of up to so many at a time.
    pub splits: Option<u16>,
    /// Writes complete when they can not be lost any more: on a device with a volatile cache, with
    /// a Flush.
    pub writes_through: bool,
}

impl Between {
    /// A queue pair with that in front.
    pub fn over<'a, Q: DeviceQueue + 'a>(self, queue: Q) -> Box<dyn DeviceQueue + 'a> {
        let id = queue.id();
        let flushes = self.writes_through && queue.info().has_volatile_cache;
        match (self.splits, flushes) {
            (None, false) => Box::new(queue),
            (None, true) => Box::new(WriteThrough::new(queue)),
            (Some(depth), false) => Box::new(Splitting::new(queue, id, depth)),
            (Some(depth), true) => Box::new(WriteThrough::new(Splitting::new(queue, id, depth))),
        }
    }
}

/// Makes a job in its thread, for the device of that thread.
pub type Make<J> = Box<dyn FnOnce(&DeviceInfo) -> J + Send>;

/// A job on its way to its thread.
pub struct Task<P, J> {
    /// Name of the thread.
    pub name: String,
    /// Its part of the device.
    pub part: P,
    /// The processors that it may run on; `None`: any.
    pub cpus: Option<Vec<u32>>,
    /// What is between it and its queue.
    pub between: Between,
    /// When it starts.
    pub start: Nanos,
    /// What tells it to end; the bell of it wakes its thread.
    pub stop: StopSignal,
    /// Makes the job.
    pub make: Make<J>,
}

/// What threads have in common.
struct Common<'a> {
    clock: &'a RealClock,
    interrupt: &'a AtomicBool,
    /// Everybody who is told when the run is interrupted.
    signals: &'a [StopSignal],
    register: &'a Register,
}

/// What a thread leaves.
struct Left<P, T> {
    output: T,
    lateness: Latency,
    /// When it ended.
    at: Nanos,
    part: Option<P>,
}

/// How a thread ends: with what it leaves, or because its part could not be opened.
type Ran<P, J> = Result<Left<P, <J as Program>::Output>, String>;

/// What threads that ran side by side leave.
pub struct Ended<T> {
    /// In the order of the tasks.
    pub outputs: Vec<T>,
    /// How long what was due waited for its handling.
    pub lateness: Latency,
    /// When the last of them ended.
    pub at: Nanos,
}

/// Runs jobs in threads of their own until all have ended, while this thread looks
/// after the device. All hear `bell`. They are told to end by `signals` if the run is
/// interrupted or the device is lost.
///
/// # Errors
/// A part could not be opened, or the system has no more threads: a text that says so.
pub fn run<S: Site, J: Program>(
    site: &mut S,
    tasks: Vec<Task<S::Part, J>>,
    bell: &Bell,
    signals: &[StopSignal],
    interrupt: &AtomicBool,
) -> Result<Ended<J::Output>, String> {
    let register = Register::new(bell.clone(), tasks.len());
    bell.also_wakes(site.waker());
    let clock = site.real_clock();
    let mut ended = Ended {
        outputs: Vec::with_capacity(tasks.len()),
        lateness: Latency::new(),
        at: clock.now(),
    };
    let common = Common {
        clock: &clock,
        interrupt,
        signals,
        register: &register,
    };
    let joined: Vec<_> = std::thread::scope(|scope| {
        let tasks = (0..).zip(tasks);
        let threads: Vec<_> = tasks
            .map(|(me, task)| task.spawn(scope, &common, me))
            .collect();
        if threads.iter().any(Result::is_err) {
            signals.iter().for_each(StopSignal::stop);
        }
        attend(site, &common);
        let threads = threads.into_iter();
        threads.map(|thread| Ok(thread?.join())).collect()
    });
    for thread in joined {
        let joined: std::thread::Result<_> =
            thread.map_err(|error: std::io::Error| format!("no thread for a job: {error}"))?;
        let left = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        ended.at = ended.at.max(left.at);
        ended.lateness.merge(&left.lateness);
        if let Some(part) = left.part {
            site.take_back(part)?;
        }
        ended.outputs.push(left.output);
    }
    Ok(ended)
}

/// Looks after the device until all threads have ended, and lets them end if it is
/// gone.
fn attend<S: Site>(site: &mut S, common: &Common<'_>) {
    let mut ready = Vec::new();
    while !common.register.is_over() {
        let device = site.device();
        device.wait(LOOK_EVERY);
        device.advance(common.clock.now(), &mut ready);
        ready.clear();
        if S::is_lost(device) {
            common.signals.iter().for_each(StopSignal::device_is_lost);
        }
    }
}

impl<P: Part, J: Program> Task<P, J> {
    /// Runs the job in a thread of `scope`, named after it, with the place `me` in
    /// the register.
    ///
    /// # Errors
    /// The system has no more threads.
    fn spawn<'s, 'e>(
        self,
        scope: &'s Scope<'s, 'e>,
        common: &'s Common<'_>,
        me: usize,
    ) -> std::io::Result<ScopedJoinHandle<'s, Ran<P, J>>>
    where
        P: 's,
        J: 's,
        J::Output: 's,
    {
        let name = self.name.replace('\0', "");
        let attending = Attending {
            register: common.register,
            me,
        };
        // If there is no thread, its entry is given up with the closure.
        std::thread::Builder::new()
            .name(name)
            .spawn_scoped(scope, move || self.run(common, &attending))
    }

    /// Runs the job in this thread.
    ///
    /// # Errors
    /// The part could not be opened, or the thread not kept to its processors.
    fn run(self, common: &Common<'_>, attending: &Attending<'_>) -> Ran<P, J> {
        if let Some(cpus) = &self.cpus {
            pin::pin(cpus)?;
        }
        let (mut device, queue) = self.part.open()?;
        let queue = self.between.over(queue);
        self.stop.bell().also_wakes(P::waker(&device));
        let mut job = (self.make)(queue.info());
        let mut lateness = Latency::new();
        // It starts by itself.
        let last = LastStep {
            has_time: Cell::new(true),
            rings: Cell::new(0),
        };
        let signals = common.signals.to_vec();
        let watched = Watched::new(&mut device, P::is_lost, common.interrupt, signals);
        let attended = Attended {
            device: watched,
            attending,
            last: &last,
            waits: Cell::new(false),
        };
        let mut seen = Seen {
            job: &mut job,
            bell: self.stop.bell().clone(),
            last: &last,
        };
        let reactor = Reactor::new(common.clock.clone(), attended, self.stop);
        let mut reactor = reactor.recording_lateness(&mut lateness);
        reactor.add_through(&mut seen, queue, CoreId(0), self.start);
        let at = reactor.run().at;
        Ok(Left {
            output: job.into_output(),
            lateness,
            at,
            part: P::close(device),
        })
    }
}

/// Which threads are at work, and which wait for others. Threads that all wait for
/// each other would do so for ever: nothing is under way for any of them.
struct Register {
    bell: Bell,
    threads: Mutex<Vec<State>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Something is under way, or it goes on at some time.
    AtWork,
    /// Nothing is. When it last looked, the bell had rung so often.
    Waiting(u64),
    /// The thread has come to its end.
    Gone,
}

impl Register {
    /// So many threads that hear `bell`.
    fn new(bell: Bell, threads: usize) -> Self {
        Self {
            bell,
            threads: Mutex::new(vec![State::AtWork; threads]),
        }
    }

    /// Whether all threads have come to their ends.
    fn is_over(&self) -> bool {
        self.threads().iter().all(|state| *state == State::Gone)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<State>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread has something to wait for by itself.
    fn works(&self, me: usize) {
        self.threads()[me] = State::AtWork;
    }

    /// A thread has nothing to wait for but others; when it last looked, the bell had
    /// rung so often. Whether that is all there is: nobody is at work, and nobody
    /// has been rung for who has not looked since.
    fn waits(&self, me: usize, looked_at: u64) -> bool {
        let mut threads = self.threads();
        let rings = self.bell.rings();
        threads[me] = State::Waiting(looked_at);
        threads
            .iter()
            .all(|state| matches!(state, State::Gone) || *state == State::Waiting(rings))
    }
}

/// The entry of a thread, until the thread ends, in whatever way.
struct Attending<'a> {
    register: &'a Register,
    me: usize,
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        self.register.threads()[self.me] = State::Gone;
        // Who waits for this thread waits in vain, and should look again.
        self.register.bell.ring();
    }
}

/// What the last step of a job came to.
#[derive(Debug)]
struct LastStep {
    /// It goes on by itself at some time.
    has_time: Cell<bool>,
    /// How often the bell had rung when it began.
    rings: Cell<u64>,
}

/// A job that lets its device know of its steps.
struct Seen<'a, J> {
    job: &'a mut J,
    bell: Bell,
    last: &'a LastStep,
}

impl<J: Job> Job for Seen<'_, J> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        self.last.rings.set(self.bell.rings());
        let next = self.job.step(now, done, queue);
        let has_time = matches!(next, NextWake::At(at) if at < Nanos::MAX);
        self.last.has_time.set(has_time);
        next
    }
}

/// A device that is never at its end while another thread is at work: that may
/// give something back.
struct Attended<'a, D> {
    device: D,
    attending: &'a Attending<'a>,
    last: &'a LastStep,
    waits: Cell<bool>,
}

impl<D: Device> Device for Attended<'_, D> {
    type Queue = D::Queue;

    fn next_event(&self) -> Option<Nanos> {
        let Attending { register, me } = self.attending;
        let next = self.device.next_event();
        if next.is_some() || self.last.has_time.get() {
            if self.waits.replace(false) {
                register.works(*me);
            }
            return next;
        }
        self.waits.set(true);
        let is_over = register.waits(*me, self.last.rings.get());
        (!is_over).then_some(Nanos::MAX)
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.device.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.device.wait(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_been_rung_for_is_not_waiting() {
        let bell = Bell::default();
        let register = Register::new(bell.clone(), 2);
        assert!(!register.waits(0, 0), "the other is at work");
        bell.ring();
        assert!(!register.waits(1, 1), "the first has not heard the bell");
        assert!(register.waits(0, 1), "both have, and wait");
        register.works(1);
        assert!(!register.waits(0, 1));
    }

    #[test]
    fn who_is_gone_is_not_waited_for() {
        let bell = Bell::default();
        let register = Register::new(bell.clone(), 3);
        for me in 0..3 {
            assert!(!register.is_over());
            let attending = Attending {
                register: &register,
                me,
            };
            assert!(!register.waits(me, bell.rings()) || me == 2);
            drop(attending);
            assert_eq!(bell.rings(), me as u64 + 1, "others look again");
        }
        assert!(register.is_over());
    }
}
