//! Programs written as async code, run as one [`Job`].
//!
//! A workload on the hot path is a plain state machine. Software whose control
//! flow is complex (a key-value store with its flushes and compactions, a
//! translation layer) is easier to get right as code that waits in the middle:
//! [`Tasks`] runs such code over any queue pair, on one thread, without a clock
//! of its own. Tasks run in the order in which they were woken, so the same
//! program on the same drive does the same in the same order.
//!
//! ```
//! use zonelab_device::{Command, Lba, Nanos, Op, RejectReason};
//! use zonelab_host::tasks::Io;
//!
//! /// A program: returns when its write has ended.
//! async fn program(io: Io) -> Result<Nanos, RejectReason> {
//!     io.work(Nanos::from_us(5)).await; // thinks for 5 us
//!     let write = Command::new(Op::Write { slba: Lba(0), nlb: 4 });
//!     io.run(write, None).await.map(|answer| answer.at)
//! }
//! ```
//!
//! The documentation of the crate `zonelab-sim` runs it on an emulated drive.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures_executor::{LocalPool, LocalSpawner};
use futures_util::future::{FutureExt, RemoteHandle};
use futures_util::task::LocalSpawnExt;
use slab::Slab;
use zonelab_device::{Buf, Command, Completion, DeviceInfo, Nanos, QueuePair, RejectReason, Tag};
use zonelab_nvme::Status;

use crate::reactor::{Job, NextWake};

/// What a program of tasks runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TasksConfig {
    /// Cores of the host that [`Io::work`] shares; 0: one for everybody.
    pub cores: u32,
}

/// How a command ended.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: Status,
    /// Command-specific result. Zone Append: the block that was assigned.
    pub result: u64,
    /// The buffer that was handed over with the command.
    pub data: Option<Buf>,
    /// When it ended.
    pub at: Nanos,
}

/// A command on its way.
#[derive(Debug)]
enum Flight {
    /// Nobody has asked yet, or whoever asks is woken.
    Waiting(Option<Waker>),
    Over(Result<Answer, RejectReason>),
    /// Whoever gave it no longer cares.
    Abandoned,
}

struct Timer {
    at: Nanos,
    sequence: u64,
    bell: Rc<TimerBell>,
}

#[derive(Default)]
struct TimerBell {
    has_rung: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

struct Shared {
    info: DeviceInfo,
    now: Cell<Nanos>,
    flights: RefCell<Slab<Flight>>,
    /// Commands that the queue has not taken yet.
    outbox: RefCell<VecDeque<(Tag, Command, Option<Buf>)>>,
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    sequence: Cell<u64>,
    /// When each core is free; empty: nobody waits for one.
    cores: RefCell<Vec<Nanos>>,
}

/// The hands of a task: commands, time and other tasks. Clones are the same.
#[derive(Clone)]
pub struct Io {
    shared: Rc<Shared>,
    spawner: LocalSpawner,
}

impl Io {
    /// What the device is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// The time on the core of the program.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.shared.now.get()
    }

    /// Runs a command to its end. If the queue is full it waits for its turn, in
    /// order. A future that is dropped leaves the command on its way.
    ///
    /// # Errors
    /// The command was not taken: the device is gone.
    pub async fn run(&self, command: Command, data: Option<Buf>) -> Result<Answer, RejectReason> {
        self.begin(command, data).await
    }

    /// As [`Self::run`], but the command is on its way when this returns.
    pub fn begin(&self, command: Command, data: Option<Buf>) -> InFlight {
        let slot = self
            .shared
            .flights
            .borrow_mut()
            .insert(Flight::Waiting(None));
        let mut outbox = self.shared.outbox.borrow_mut();
        let tag = u32::try_from(slot).expect("fewer than 2^32 commands are under way");
        outbox.push_back((Tag(tag), command, data));
        InFlight {
            shared: Rc::clone(&self.shared),
            slot: Some(slot),
        }
    }

    /// Waits until `at`; returns at once if that has passed.
    pub async fn sleep_until(&self, at: Nanos) {
        if at <= self.now() {
            return;
        }
        let bell = Rc::new(TimerBell::default());
        let sequence = self.shared.sequence.get();
        self.shared.sequence.set(sequence + 1);
        self.shared.timers.borrow_mut().push(Reverse(Timer {
            at,
            sequence,
            bell: Rc::clone(&bell),
        }));
        poll_fn(|context| {
            if bell.has_rung.get() {
                return Poll::Ready(());
            }
            bell.waker.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Lets those go on who were woken before.
    pub async fn yield_now(&self) {
        let mut has_waited = false;
        poll_fn(|context| {
            if has_waited {
                return Poll::Ready(());
            }
            has_waited = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Computes for `span` on the first core that is free.
    pub async fn work(&self, span: Nanos) {
        if span == Nanos::ZERO {
            return;
        }
        let until = {
            let mut cores = self.shared.cores.borrow_mut();
            match cores.iter_mut().min() {
                Some(free_at) => {
                    *free_at = self.now().max(*free_at) + span;
                    *free_at
                }
                None => self.now() + span,
            }
        };
        self.sleep_until(until).await;
    }

    /// Starts a task beside this one. Dropping the handle ends it, unless it
    /// was [forgotten](RemoteHandle::forget).
    ///
    /// # Panics
    /// If the program has ended, which no task survives.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> RemoteHandle<T> {
        self.spawner
            .spawn_local_with_handle(task)
            .expect("whoever holds this is a task, and tasks end with their executor")
    }
}

/// A command that was given: a future of how it ends.
#[must_use]
pub struct InFlight {
    shared: Rc<Shared>,
    /// `None`: it has been answered.
    slot: Option<usize>,
}

impl Future for InFlight {
    type Output = Result<Answer, RejectReason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut core::task::Context<'_>) -> Poll<Self::Output> {
        let Some(slot) = self.slot else {
            return Poll::Pending;
        };
        let mut flights = self.shared.flights.borrow_mut();
        if let Flight::Waiting(waker) = &mut flights[slot] {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let flight = flights.remove(slot);
        drop(flights);
        self.slot = None;
        match flight {
            Flight::Over(answer) => Poll::Ready(answer),
            Flight::Waiting(_) | Flight::Abandoned => unreachable!("it was looked at before"),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut flights = self.shared.flights.borrow_mut();
        match &mut flights[slot] {
            Flight::Over(_) => drop(flights.remove(slot)),
            flight => *flight = Flight::Abandoned,
        }
    }
}

/// A program of tasks, as a job. It ends when its main task has ended and
/// nothing is in flight; other tasks end with the main one.
pub struct Tasks<T> {
    program: Program,
    result: Rc<Cell<Option<T>>>,
}

/// What is the same whatever a program returns.
struct Program {
    shared: Rc<Shared>,
    pool: LocalPool,
    is_over: Rc<Cell<bool>>,
    in_flight: usize,
}

impl<T: 'static> Tasks<T> {
    /// The program `main`, for a device that is known by `info`.
    pub fn new<F: Future<Output = T> + 'static>(
        info: &DeviceInfo,
        config: TasksConfig,
        main: impl FnOnce(Io) -> F,
    ) -> Self {
        let (program, io) = Program::new(info, config);
        let result = Rc::new(Cell::new(None));
        let main = main(io.clone()).map({
            let (result, is_over) = (Rc::clone(&result), Rc::clone(&program.is_over));
            move |value| {
                result.set(Some(value));
                is_over.set(true);
            }
        });
        io.spawn(main).forget();
        Self { program, result }
    }

    /// What the main task returned; `None`: it has not ended.
    #[must_use]
    pub fn into_result(self) -> Option<T> {
        self.result.take()
    }
}

impl<T> Job for Tasks<T> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        self.program.step(now, done, queue)
    }
}

impl Program {
    /// One without a task, and the hands of its tasks.
    fn new(info: &DeviceInfo, config: TasksConfig) -> (Self, Io) {
        let shared = Rc::new(Shared {
            info: info.clone(),
            now: Cell::new(Nanos::ZERO),
            flights: RefCell::default(),
            outbox: RefCell::default(),
            timers: RefCell::default(),
            sequence: Cell::new(0),
            cores: RefCell::new(vec![Nanos::ZERO; config.cores as usize]),
        });
        let pool = LocalPool::new();
        let io = Io {
            shared: Rc::clone(&shared),
            spawner: pool.spawner(),
        };
        let program = Self {
            shared,
            pool,
            is_over: Rc::default(),
            in_flight: 0,
        };
        (program, io)
    }

    fn land(&mut self, done: &mut Vec<Completion>) {
        let mut flights = self.shared.flights.borrow_mut();
        for completion in done.drain(..) {
            self.in_flight -= 1;
            let answer = Answer {
                status: completion.status,
                result: completion.result,
                data: completion.data,
                at: completion.at,
            };
            end_flight(&mut flights, completion.tag, Ok(answer));
        }
    }

    /// Hands over what the queue takes. Returns whether a command was refused for good.
    fn submit(&mut self, queue: &mut dyn QueuePair) -> bool {
        let mut refused = false;
        loop {
            let next = self.shared.outbox.borrow_mut().pop_front();
            let Some((tag, command, data)) = next else {
                return refused;
            };
            match queue.submit(command, tag, data) {
                Ok(()) => self.in_flight += 1,
                Err(rejected) => match rejected.reason {
                    RejectReason::QueueFull { .. } if self.in_flight > 0 => {
                        let mut outbox = self.shared.outbox.borrow_mut();
                        outbox.push_front((tag, command, rejected.data));
                        return refused;
                    }
                    reason => {
                        let mut flights = self.shared.flights.borrow_mut();
                        end_flight(&mut flights, tag, Err(reason));
                        refused = true;
                    }
                },
            }
        }
    }

    /// Wakes who waits for a time that has come. Returns whether there was any.
    fn ring(&self, now: Nanos) -> bool {
        let mut timers = self.shared.timers.borrow_mut();
        let mut rang = false;
        while timers.peek().is_some_and(|Reverse(timer)| timer.at <= now) {
            let Some(Reverse(timer)) = timers.pop() else {
                break;
            };
            timer.bell.has_rung.set(true);
            if let Some(waker) = timer.bell.waker.take() {
                waker.wake();
            }
            rang = true;
        }
        rang
    }

    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        self.shared.now.set(now.max(queue.now()));
        self.land(done);
        loop {
            self.ring(self.shared.now.get());
            self.pool.run_until_stalled();
            if self.is_over.get() {
                // Tasks beside the main one, and what they wanted, end here.
                self.pool = LocalPool::new();
                self.shared.outbox.borrow_mut().clear();
                break;
            }
            let refused = self.submit(queue);
            self.shared.now.set(queue.now().max(self.shared.now.get()));
            let is_due = |Reverse(timer): &Reverse<Timer>| timer.at <= self.shared.now.get();
            if !refused && !self.shared.timers.borrow().peek().is_some_and(is_due) {
                break;
            }
        }
        queue.ring();
        if self.is_over.get() {
            return match self.in_flight {
                0 => NextWake::Finished,
                _ => NextWake::Completion,
            };
        }
        match self.shared.timers.borrow().peek() {
            Some(Reverse(timer)) => NextWake::At(timer.at),
            None => NextWake::Completion,
        }
    }
}

/// Notes how a command ended, for who waits for it.
fn end_flight(flights: &mut Slab<Flight>, tag: Tag, end: Result<Answer, RejectReason>) {
    let slot = tag.0 as usize;
    let flight = &mut flights[slot];
    match core::mem::replace(flight, Flight::Over(end)) {
        Flight::Waiting(waker) => {
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Flight::Abandoned => drop(flights.remove(slot)),
        Flight::Over(_) => unreachable!("a command ends once"),
    }
}
