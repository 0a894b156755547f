//! The conventional namespace as a device.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use zonelab_device::{
    Completion, Device, DeviceInfo, DeviceQueue, Modelled, NamespaceInfo, Nanos, QueueId, QueuePair,
};
use zonelab_host::notify::Notify;
use zonelab_host::tasks::{Tasks, TasksConfig};
use zonelab_host::{CoreId, Job, NextWake, Reactor, StopSignal, WaitsFor};

use crate::FtlError;
use crate::core::Core;
use crate::metrics::Metrics;
use crate::mount::{Start, mount};
use crate::part::{FtlPart, FtlShare};
use crate::queue::FtlQueue;
use crate::settings::FtlSettings;
use crate::shape::Shape;
use crate::upkeep::Upkeep;
use crate::zones::ZoneTable;

/// What a mount comes to.
type Mounted = Rc<RefCell<Option<Result<Arc<Core>, FtlError>>>>;

/// A conventional namespace on the zones of a device: a device itself.
///
/// Upkeep runs in [`Device::advance`], over a queue pair of its own.
pub struct FtlDevice<D: Device> {
    /// All but upkeep.
    part: FtlPart<D>,
    upkeep: Tasks<Infallible>,
    bell: Rc<Notify>,
    queue: D::Queue,
    /// Upkeep has something to do that is not to wait for its core.
    is_due: bool,
    /// When upkeep wants to go on.
    wake: Option<Nanos>,
    /// When the core of upkeep is free.
    core_free: Nanos,
    ready: Vec<QueueId>,
    done: Vec<Completion>,
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

/// The program of upkeep, up to where everything is mounted.
struct Mounting<'a> {
    upkeep: &'a mut Tasks<Infallible>,
    mounted: Mounted,
}

impl Job for Mounting<'_> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        let next = self.upkeep.step(now, done, queue);
        match self.mounted.borrow().is_some() {
            true => NextWake::Finished,
            false => next,
        }
    }
}

impl<D: Device> FtlDevice<D> {
    /// Mounts, or formats and mounts, what is on `inner`. `queue` is a queue pair of it
    /// for that, and for upkeep afterwards. Waits by `clock` until that is done; returns
    /// when.
    ///
    /// # Errors
    /// The device has no such zones, or not enough, or what is on it cannot be mounted.
    pub fn start<C>(
        mut inner: D,
        clock: C,
        mut queue: D::Queue,
        start: Start,
        settings: FtlSettings,
    ) -> Result<(Self, Nanos), FtlError>
    where
        C: for<'d> WaitsFor<Lent<'d, D>>,
    {
        let info = queue.info().clone();
        let bell = Rc::new(Notify::default());
        let mounted: Mounted = Rc::default();
        let (rings, says) = (Rc::clone(&bell), Rc::clone(&mounted));
        let mut upkeep = Tasks::new(&info, TasksConfig::default(), async move |io| {
            let seen = rings.changes();
            match mount(&io, &start, &settings, &rings).await {
                Ok((core, upkeep)) => {
                    *says.borrow_mut() = Some(Ok(core));
                    rings.after(seen).await;
                    Upkeep::start(&upkeep);
                }
                Err(error) => *says.borrow_mut() = Some(Err(error)),
            }
            pending().await
        });
        let at = clock.now();
        let mut mounting = Mounting {
            upkeep: &mut upkeep,
            mounted: Rc::clone(&mounted),
        };
        let mut reactor = Reactor::new(clock, Lent(&mut inner), StopSignal::default());
        reactor.add(&mut mounting, &mut queue, CoreId(0), at);
        let end = reactor.run();
        let mounted = mounted.borrow_mut().take();
        let core = mounted.unwrap_or(Err(FtlError::Stuck))?;
        let shown = info_of(&info, &core.shape);
        let mut part = FtlPart::new(inner, &core, shown, Waker::noop().clone());
        part.now = end.at;
        let device = Self {
            part,
            upkeep,
            bell,
            queue,
            is_due: true,
            wake: None,
            core_free: Nanos::ZERO,
            ready: Vec::new(),
            done: Vec::new(),
        };
        device.bell.ring();
        Ok((device, end.at))
    }

    /// What wakes the thread of this device, if other threads have
    /// [parts](Self::share) of it.
    pub fn wakes(&self, waker: Waker) {
        self.core().set_waker(waker);
    }

    /// For other threads, of which each can have a [part](FtlShare::part).
    #[must_use]
    pub fn share(&self) -> FtlShare {
        FtlShare {
            core: Arc::clone(self.core()),
            info: DeviceInfo::clone(&self.part.info),
        }
    }

    /// A queue pair that holds `depth` commands, over `queue` of the device below.
    ///
    /// # Errors
    /// Each queue has a zone of its own, and there are no more.
    pub fn queue(&self, queue: D::Queue, depth: u32) -> Result<FtlQueue<D::Queue>, FtlError> {
        self.part.queue(queue, depth)
    }

    /// Most queue pairs at a time.
    #[must_use]
    pub fn most_queues(&self) -> u32 {
        self.core().most_writers()
    }

    /// The device below.
    #[must_use]
    pub const fn inner(&self) -> &D {
        &self.part.inner
    }

    /// The device below, to open queues of it.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.part.inner
    }

    /// The device below, when the layer is not needed any more. What was not flushed is
    /// lost, as when power is.
    #[must_use]
    pub fn into_inner(self) -> D {
        self.part.inner
    }

    /// What programs plan with: a device of one conventional namespace.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.part.info
    }

    /// Which zones are for what.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.core().shape
    }

    /// The data zones.
    #[must_use]
    pub fn zones(&self) -> &ZoneTable {
        &self.core().zones
    }

    /// What has been done since the mount.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let zones = &self.core().zones;
        self.core().counters.metrics(zones.free(), zones.active())
    }

    /// Why nothing is written any more; `None`: nothing is wrong.
    #[must_use]
    pub fn failure(&self) -> Option<FtlError> {
        self.core().failure()
    }

    const fn core(&self) -> &Arc<Core> {
        &self.part.door.core
    }

    /// Whether upkeep or a queue has something that no event of the device announces.
    fn has_something(&self) -> bool {
        self.is_due || self.core().wants_attention() || self.part.has_something()
    }

    /// Lets upkeep go on.
    fn step_upkeep(&mut self, now: Nanos) {
        self.queue.enter(now);
        self.queue.poll(&mut self.done);
        let next = self.upkeep.step(now, &mut self.done, &mut self.queue);
        self.done.clear();
        self.core_free = self.queue.now();
        self.wake = match next {
            NextWake::At(at) => Some(at.max(now)),
            NextWake::Completion | NextWake::Finished => None,
        };
    }
}

/// What programs see of a device of this shape.
#[must_use]
pub fn info_of(inner: &DeviceInfo, shape: &Shape) -> DeviceInfo {
    DeviceInfo {
        model: inner.model.clone(),
        namespaces: vec![NamespaceInfo {
            lba_bytes: shape.block_bytes,
            size_lbas: u64::from(shape.logical_blocks),
            zoned: None,
            copy: None,
        }],
        max_transfer_bytes: u32::MAX,
        max_append_bytes: u32::MAX,
    }
}

impl<D: Device> Device for FtlDevice<D> {
    type Queue = FtlQueue<D::Queue>;

    fn next_event(&self) -> Option<Nanos> {
        if self.has_something() {
            let now = self.part.now;
            return Some(match self.part.has_something() {
                true => now,
                false => now.max(self.core_free),
            });
        }
        match (self.part.inner.next_event(), self.wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.part.now = now;
        self.part.inner.advance(now, &mut self.ready);
        for id in self.ready.drain(..) {
            match id == self.queue.id() {
                true => self.is_due = true,
                false => ready.push(id),
            }
        }
        if self.wake.is_some_and(|at| at <= now) {
            self.is_due = true;
        }
        while self.is_due || self.core().wants_attention() {
            if self.core_free > now {
                break;
            }
            self.is_due = false;
            if self.core().wants_attention() {
                self.core().answer_call();
                self.bell.ring();
            }
            self.step_upkeep(now);
        }
        self.part.take_ready(ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.has_something() || self.part.inner.wait(span)
    }
}

impl<D: Modelled> Modelled for FtlDevice<D> {}
