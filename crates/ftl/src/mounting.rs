//! A mount that is under way, and the program that goes on as upkeep.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use futures_util::future::{FutureExt, LocalBoxFuture};
use zonelab_device::{
    Completion, Device, DeviceInfo, DeviceQueue, Modelled, Nanos, QueueId, QueuePair,
};
use zonelab_host::notify::Notify;
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Job, NextWake, Reactor, StopSignal, WaitsFor};

use crate::FtlError;
use crate::core::Core;
use crate::device::{FtlDevice, info_of};
use crate::mount::{Start, mount};
use crate::part::FtlPart;
use crate::settings::FtlSettings;
use crate::upkeep::Upkeep;

/// What a mount comes to.
type Mounted = Rc<RefCell<Option<Result<Arc<Core>, FtlError>>>>;

/// The program that mounts, and is upkeep from then on, with its queue pair.
pub(crate) struct Program<Q> {
    tasks: Tasks<Infallible>,
    pub(crate) queue: Q,
    pub(crate) bell: Rc<Notify>,
    /// It has something to do that is not to wait for its core.
    pub(crate) is_due: bool,
    /// When it wants to go on.
    pub(crate) wake: Option<Nanos>,
    /// When its core is free.
    pub(crate) core_free: Nanos,
    done: Vec<Completion>,
}

impl<Q: DeviceQueue> Program<Q> {
    /// Lets it go on.
    pub(crate) fn step(&mut self, now: Nanos) {
        self.queue.enter(now);
        self.queue.poll(&mut self.done);
        let next = self.tasks.step(now, &mut self.done, &mut self.queue);
        self.done.clear();
        self.core_free = self.queue.now();
        self.wake = match next {
            NextWake::At(at) => Some(at.max(now)),
            NextWake::Completion | NextWake::Finished => None,
        };
    }
}

/// A mount of what is on a device, as far as it has come.
///
/// Whoever has the device's time takes the mount along: [`Self::advance`] until
/// [`Self::is_over`], then [`Self::finish`]. [`FtlDevice::start`] is that with a clock.
pub struct FtlMount<D: Device> {
    inner: D,
    info: DeviceInfo,
    program: Program<D::Queue>,
    mounted: Mounted,
    ready: Vec<QueueId>,
}

/// A device that is lent with its queue pair, while it is mounted.
pub struct Lent<'a, D>(&'a mut D);

impl<'a, D: Device> Device for Lent<'a, D> {
    type Queue = &'a mut D::Queue;

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.0.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.0.wait(span)
    }
}

impl<D: Modelled> Modelled for Lent<'_, D> {}

/// The program, up to where everything is mounted.
struct Mounting<'a> {
    tasks: &'a mut Tasks<Infallible>,
    mounted: Mounted,
}

impl Job for Mounting<'_> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        let next = self.tasks.step(now, done, queue);
        match self.mounted.borrow().is_some() {
            true => NextWake::Finished,
            false => next,
        }
    }
}

/// Mounts, and is upkeep as soon as `bell` rings after that. Boxed, it is compiled here, once,
/// and not for each kind of device.
fn program(
    io: Io,
    (start, settings): (Start, FtlSettings),
    bell: Rc<Notify>,
    mounted: Mounted,
) -> LocalBoxFuture<'static, Infallible> {
    let program = async move {
        let seen = bell.changes();
        match mount(&io, &start, &settings, &bell).await {
            Ok((core, upkeep)) => {
                *mounted.borrow_mut() = Some(Ok(core));
                bell.after(seen).await;
                Upkeep::start(&upkeep);
            }
            Err(error) => *mounted.borrow_mut() = Some(Err(error)),
        }
        pending().await
    };
    program.boxed_local()
}

impl<D: Device> FtlMount<D> {
    /// Begins to mount, or to format and mount, what is on `inner`. `queue` is a queue
    /// pair of it for that, and for upkeep afterwards. Nothing is submitted in here.
    #[must_use]
    pub fn new(inner: D, queue: D::Queue, start: Start, settings: FtlSettings) -> Self {
        let info = queue.info().clone();
        let bell = Rc::new(Notify::default());
        let mounted: Mounted = Rc::default();
        let (rings, says) = (Rc::clone(&bell), Rc::clone(&mounted));
        let tasks = Tasks::new(&info, TasksConfig::default(), move |io| {
            program(io, (start, settings), rings, says)
        });
        Self {
            inner,
            info,
            program: Program {
                tasks,
                queue,
                bell,
                is_due: true,
                wake: None,
                core_free: Nanos::ZERO,
                done: Vec::new(),
            },
            mounted,
            ready: Vec::new(),
        }
    }

    /// Waits by `clock` until it is over; returns when.
    pub(crate) fn run<C>(&mut self, clock: C) -> Nanos
    where
        C: for<'d> WaitsFor<Lent<'d, D>>,
    {
        let at = clock.now();
        let Program { tasks, queue, .. } = &mut self.program;
        let mut mounting = Mounting {
            tasks,
            mounted: Rc::clone(&self.mounted),
        };
        let mut reactor = Reactor::new(clock, Lent(&mut self.inner), StopSignal::default());
        reactor.add(&mut mounting, queue, CoreId(0), at);
        reactor.run().at
    }

    /// When it goes on next, as [`Device::next_event`] has it.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        if self.program.is_due {
            return Some(self.program.core_free);
        }
        [self.inner.next_event(), self.program.wake]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does all that is due until `now`.
    pub fn advance(&mut self, now: Nanos) {
        self.inner.advance(now, &mut self.ready);
        let program = &mut self.program;
        program.is_due |= !self.ready.is_empty() || program.wake.is_some_and(|at| at <= now);
        self.ready.clear();
        while program.is_due && program.core_free <= now && self.mounted.borrow().is_none() {
            program.is_due = false;
            program.step(now);
        }
    }

    /// Whether it is over, well or not.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.mounted.borrow().is_some()
    }

    /// The conventional namespace, from `now` on.
    ///
    /// # Errors
    /// Why what is on the device cannot be mounted; [`FtlError::Stuck`] before it is over.
    pub fn finish(self, now: Nanos) -> Result<FtlDevice<D>, FtlError> {
        let mounted = self.mounted.borrow_mut().take();
        let core = mounted.unwrap_or(Err(FtlError::Stuck))?;
        let shown = info_of(&self.info, &core.shape);
        let mut part = FtlPart::new(self.inner, &core, shown, Waker::noop().clone());
        part.now = now;
        let mut program = self.program;
        program.is_due = true;
        program.bell.ring();
        Ok(FtlDevice::mounted(part, program))
    }
}
