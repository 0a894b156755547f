//! Parts of the conventional namespace for further threads.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use zonelab_device::{Device, DeviceInfo, Modelled, Nanos, QueueId};

use crate::FtlError;
use crate::core::{Core, Port};
use crate::queue::{Announced, FtlQueue};

/// The layer, to be carried to another thread. Upkeep stays where it is, and has to run
/// as long as there are parts.
#[derive(Clone, Debug)]
pub struct FtlShare {
    pub(crate) core: Arc<Core>,
    pub(crate) info: DeviceInfo,
}

impl FtlShare {
    /// The part of the thread that calls, over `inner`, which has queue pairs of the same
    /// drive. `waker` ends a [`Device::wait`] of `inner`.
    #[must_use]
    pub fn part<D: Device>(&self, inner: D, waker: Waker) -> FtlPart<D> {
        FtlPart::new(inner, &self.core, self.info.clone(), waker)
    }
}

/// The conventional namespace in one thread, without upkeep.
pub struct FtlPart<D> {
    pub(crate) inner: D,
    pub(crate) info: Rc<DeviceInfo>,
    /// Queues of which the caller of [`Device::advance`] has to hear.
    pub(crate) announced: Announced,
    pub(crate) door: Door,
    pub(crate) now: Nanos,
}

/// Where upkeep knows the queues of a thread, as long as there are any.
pub(crate) struct Door {
    pub(crate) core: Arc<Core>,
    pub(crate) port: Arc<Port>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.core.close_port(&self.port);
    }
}

impl<D> FtlPart<D> {
    pub(crate) fn new(inner: D, core: &Arc<Core>, info: DeviceInfo, waker: Waker) -> Self {
        Self {
            inner,
            info: Rc::new(info),
            announced: Announced::default(),
            door: Door {
                core: Arc::clone(core),
                port: core.open_port(waker),
            },
            now: Nanos::ZERO,
        }
    }

    /// Whether a queue can go on though no event of the device says so.
    pub(crate) fn has_something(&self) -> bool {
        self.door.port.is_released() || !self.announced.borrow().is_empty()
    }

    /// Queues that can go on though no event of the device said so.
    pub(crate) fn take_ready(&self, ready: &mut Vec<QueueId>) {
        self.door.port.take_waiting(ready);
        ready.append(&mut self.announced.borrow_mut());
    }
}

impl<D: Device> FtlPart<D> {
    /// A queue pair that holds `depth` commands, over `queue` of the device below.
    ///
    /// # Errors
    /// Each queue has a zone of its own, and there are no more.
    pub fn queue(&self, queue: D::Queue, depth: u32) -> Result<FtlQueue<D::Queue>, FtlError> {
        self.door.core.join()?;
        Ok(FtlQueue::new(
            queue,
            Arc::clone(&self.door.core),
            Rc::clone(&self.info),
            Rc::clone(&self.announced),
            Arc::clone(&self.door.port),
            depth,
        ))
    }

    /// The device below, to open queues of it.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// What programs plan with.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }
}

impl<D: Device> Device for FtlPart<D> {
    type Queue = FtlQueue<D::Queue>;

    fn next_event(&self) -> Option<Nanos> {
        if self.has_something() {
            return Some(self.now);
        }
        match self.inner.next_event() {
            // The thread of upkeep will say.
            None if self.door.port.has_waiting() => Some(Nanos::MAX),
            next => next,
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.now = now;
        self.inner.advance(now, ready);
        self.take_ready(ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.has_something() || self.inner.wait(span) || self.has_something()
    }
}

/// In virtual time, upkeep is in a time of its own, and what needs it does not end: reads do not.
impl<D: Modelled> Modelled for FtlPart<D> {}
