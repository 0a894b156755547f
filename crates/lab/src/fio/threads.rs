//! Threads of a run in real time: each job has a thread of this program, a reactor
//! and a queue pair of its own.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{Scope, ScopedJoinHandle};

use zonelab_device::{Completion, Device, Nanos, QueueId, QueuePair};
use zonelab_host::stats::Latency;
use zonelab_host::workload::directed::DirectedWork;
use zonelab_host::workload::zone_table::{JobId, SharedZones, ZoneTable};
use zonelab_host::workload::{JobSpec, Shared, WorkloadJob};
use zonelab_host::{Bell, CoreId, Job, NextWake, Reactor, RealClock, Rng, StopSignal};

use super::run::ThreadResult;
use super::watch::Watched;

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

/// A job on its way to its thread: all that it is made of there.
pub(super) struct Task<P> {
    pub(super) name: String,
    pub(super) part: P,
    pub(super) spec: JobSpec<DirectedWork>,
    pub(super) rng: Rng,
    pub(super) number: JobId,
    pub(super) stop: StopSignal,
    pub(super) starts_after: Vec<StopSignal>,
    pub(super) ends: Vec<StopSignal>,
    pub(super) ends_on_error: Vec<StopSignal>,
}

/// What the threads of a stage have in common.
pub(super) struct Common<'a> {
    pub(super) zones: &'a Arc<Mutex<ZoneTable>>,
    pub(super) clock: &'a RealClock,
    pub(super) interrupt: &'a Arc<AtomicBool>,
    /// Everybody who is told when the run is interrupted.
    pub(super) signals: &'a [StopSignal],
    pub(super) register: &'a Register,
}

/// What a thread leaves.
pub(super) struct Left<P> {
    pub(super) thread: ThreadResult,
    pub(super) lateness: Latency,
    /// When it ended.
    pub(super) at: Nanos,
    pub(super) part: Option<P>,
}

impl<P: Part> Task<P> {
    /// Runs the job in a thread of `scope`, named after it, with the place `me` in
    /// the register.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn spawn<'s, 'e>(
        self,
        scope: &'s Scope<'s, 'e>,
        common: &'s Common<'_>,
        me: usize,
    ) -> std::io::Result<ScopedJoinHandle<'s, Result<Left<P>, String>>>
    where
        P: 's,
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
    /// The part could not be opened.
    fn run(self, common: &Common<'_>, attending: &Attending<'_>) -> Result<Left<P>, String> {
        let (mut device, queue) = self.part.open()?;
        self.stop.bell().also_wakes(P::waker(&device));
        let start = self.spec.start;
        let shared = Shared {
            zones: Some((
                SharedZones::between_threads(Arc::clone(common.zones)),
                self.number,
            )),
            stop: self.stop.clone(),
            starts_after: self.starts_after,
            ends: self.ends,
            ends_on_error: self.ends_on_error,
            interrupt: Some(Arc::clone(common.interrupt)),
        };
        let mut job = WorkloadJob::new(self.spec, queue.info(), self.rng, shared);
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
        reactor.add(&mut seen, queue, CoreId(0), start);
        let at = reactor.run().at;
        Ok(Left {
            thread: ThreadResult {
                is_stuck: !job.has_ended(),
                result: Some(job.into_result()),
            },
            lateness,
            at,
            part: P::close(device),
        })
    }
}

/// Which threads are at work, and which wait for others. Threads that all wait for
/// each other would do so for ever: nothing is under way for any of them.
pub(super) struct Register {
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
    pub(super) fn new(bell: Bell, threads: usize) -> Self {
        Self {
            bell,
            threads: Mutex::new(vec![State::AtWork; threads]),
        }
    }

    /// Whether all threads have come to their ends.
    pub(super) fn is_over(&self) -> bool {
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
struct Seen<'a> {
    job: &'a mut WorkloadJob,
    bell: Bell,
    last: &'a LastStep,
}

impl Job for Seen<'_> {
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
