//! The conventional namespace as a device.

use std::sync::Arc;
use std::task::Waker;

use zonelab_device::{Device, DeviceInfo, DeviceQueue, Modelled, NamespaceInfo, Nanos, QueueId};
use zonelab_host::WaitsFor;

use crate::FtlError;
use crate::core::Core;
use crate::metrics::Metrics;
use crate::mount::Start;
use crate::mounting::{FtlMount, Lent, Program};
use crate::part::{FtlPart, FtlShare};
use crate::queue::FtlQueue;
use crate::settings::FtlSettings;
use crate::shape::Shape;
use crate::zones::ZoneTable;

/// A conventional namespace on the zones of a device: a device itself.
///
/// Upkeep runs in [`Device::advance`], over a queue pair of its own.
pub struct FtlDevice<D: Device> {
    /// All but upkeep.
    part: FtlPart<D>,
    upkeep: Program<D::Queue>,
    ready: Vec<QueueId>,
}

impl<D: Device> FtlDevice<D> {
    /// Mounts, or formats and mounts, what is on `inner`. `queue` is a queue pair of it
    /// for that, and for upkeep afterwards. Waits by `clock` until that is done; returns
    /// when.
    ///
    /// # Errors
    /// The device has no such zones, or not enough, or what is on it cannot be mounted.
    pub fn start<C>(
        inner: D,
        clock: C,
        queue: D::Queue,
        start: Start,
        settings: FtlSettings,
    ) -> Result<(Self, Nanos), FtlError>
    where
        C: for<'d> WaitsFor<Lent<'d, D>>,
    {
        let mut mount = FtlMount::new(inner, queue, start, settings);
        let at = mount.run(clock);
        Ok((mount.finish(at)?, at))
    }

    pub(crate) const fn mounted(part: FtlPart<D>, upkeep: Program<D::Queue>) -> Self {
        Self {
            part,
            upkeep,
            ready: Vec::new(),
        }
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
        let core = self.core();
        let zones = (core.zones.free(), core.zones.active());
        core.counters.metrics(zones, core.changes.map.usage())
    }

    /// Whether the drive has no room for what the layer has to write: writes and flushes fail
    /// until it has.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.core().is_starved()
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
        self.upkeep.is_due || self.core().wants_attention() || self.part.has_something()
    }
}

/// What programs see of a device of this shape.
#[must_use]
pub fn info_of(inner: &DeviceInfo, shape: &Shape) -> DeviceInfo {
    DeviceInfo {
        model: inner.model.clone(),
        namespaces: vec![NamespaceInfo {
            placements: None,
            lba_bytes: shape.block_bytes,
            size_lbas: u64::from(shape.logical_blocks),
            zoned: None,
            copy: None,
        }],
        max_transfer_bytes: u32::MAX,
        max_append_bytes: u32::MAX,
        has_volatile_cache: true,
    }
}

impl<D: Device> Device for FtlDevice<D> {
    type Queue = FtlQueue<D::Queue>;

    fn next_event(&self) -> Option<Nanos> {
        if self.has_something() {
            let now = self.part.now;
            return Some(match self.part.has_something() {
                true => now,
                false => now.max(self.upkeep.core_free),
            });
        }
        match (self.part.inner.next_event(), self.upkeep.wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.part.now = now;
        self.part.inner.advance(now, &mut self.ready);
        for id in self.ready.drain(..) {
            match id == self.upkeep.queue.id() {
                true => self.upkeep.is_due = true,
                false => ready.push(id),
            }
        }
        if self.upkeep.wake.is_some_and(|at| at <= now) {
            self.upkeep.is_due = true;
        }
        while self.upkeep.is_due || self.core().wants_attention() {
            if self.upkeep.core_free > now {
                break;
            }
            self.upkeep.is_due = false;
            if self.core().wants_attention() {
                self.core().answer_call();
                self.upkeep.bell.ring();
            }
            self.upkeep.step(now);
        }
        self.part.take_ready(ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.has_something() || self.part.inner.wait(span)
    }
}

impl<D: Modelled> Modelled for FtlDevice<D> {}
