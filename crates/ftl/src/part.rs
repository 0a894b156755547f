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
        FtlPart {
            inner,
            port: self.core.open_port(waker),
            core: Arc::clone(&self.core),
            info: Rc::new(self.info.clone()),
            announced: Announced::default(),
            now: Nanos::ZERO,
        }
    }
}

/// The conventional namespace in a thread other than that of upkeep.
pub struct FtlPart<D: Device> {
    inner: D,
    core: Arc<Core>,
    info: Rc<DeviceInfo>,
    announced: Announced,
    port: Arc<Port>,
    now: Nanos,
}

impl<D: Device> FtlPart<D> {
    /// A queue pair that holds `depth` commands, over `queue` of the device below.
    ///
    /// # Errors
    /// Each queue has a zone of its own, and there are no more.
    pub fn queue(&self, queue: D::Queue, depth: u32) -> Result<FtlQueue<D::Queue>, FtlError> {
        self.core.join()?;
        Ok(FtlQueue::new(
            queue,
            Arc::clone(&self.core),
            Rc::clone(&self.info),
            Rc::clone(&self.announced),
            Arc::clone(&self.port),
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

    fn has_something(&self) -> bool {
        self.port.is_released() || !self.announced.borrow().is_empty()
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
            None if self.port.has_waiting() => Some(Nanos::MAX),
            next => next,
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.now = now;
        self.inner.advance(now, ready);
        self.port.take_waiting(ready);
        ready.append(&mut self.announced.borrow_mut());
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.has_something() || self.inner.wait(span) || self.has_something()
    }
}

/// In virtual time, upkeep is in a time of its own, and what needs it does not end: reads do not.
impl<D: Modelled> Modelled for FtlPart<D> {}

impl<D: Device> Drop for FtlPart<D> {
    fn drop(&mut self) {
        self.core.close_port(&self.port);
    }
}
