//! A controller and its I/O queues as a device that a reactor drives, and a queue
//! alone as one that a thread drives.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Monotonic, Nanos, QueueId,
    QueuePair, Rejected, Tag,
};

use crate::error::DriverError;
use crate::poller::{Poller, Shared, WaitCounts};
use crate::transport::{Controller, IoQueue};

/// A controller of any transport and the I/O queues that were opened through it.
///
/// Whoever runs programs on it shares its clock ([`Self::clock`]). It keeps the
/// controller's keep alive timer by itself while it is driven.
///
/// When a connection breaks, the commands on it complete with
/// [`Status::HOST_PATHING_ERROR`](zonelab_nvme::Status::HOST_PATHING_ERROR), and
/// nothing is taken any more; with the admin queue all others end. Why is said
/// by [`Self::close`].
pub struct DriverDevice<C: Controller> {
    controller: C,
    /// Why the controller, or a queue that other threads had, is gone.
    error: Option<DriverError>,
    poller: Poller<C::Queue>,
}

impl<C: Controller> DriverDevice<C> {
    /// Takes a controller over.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(controller: C) -> Result<Self, DriverError> {
        let poller = Poller::new()?;
        if let Some(admin) = controller.descriptor() {
            poller.watch_admin(admin)?;
        }
        Ok(Self {
            controller,
            error: None,
            poller,
        })
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &C {
        &self.controller
    }

    /// What workloads plan with.
    #[must_use]
    pub fn info(&self) -> &Arc<DeviceInfo> {
        self.controller.info()
    }

    /// The clock of its queues.
    #[must_use]
    pub fn clock(&self) -> Monotonic {
        self.controller.clock()
    }

    /// I/O queues that the controller grants.
    #[must_use]
    pub fn granted_queues(&self) -> u16 {
        self.controller.granted_queues()
    }

    /// Whether a connection broke: [`Self::close`] says why.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.error.is_some() || self.poller.is_lost()
    }

    /// How the thread has waited so far.
    #[must_use]
    pub fn waits(&self) -> WaitCounts {
        self.poller.waits()
    }

    /// Ends a wait of this device from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.poller.waker()
    }

    /// Opens an I/O queue: one that its owner has dropped, or the next.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue(&mut self) -> Result<DriverQueue<C::Queue>, DriverError> {
        if let Some(shared) = self.poller.free() {
            return Ok(self.queue_of(shared));
        }
        let queue = self.controller.open_queue()?;
        let shared = self.poller.add(queue)?;
        Ok(self.queue_of(&shared))
    }

    /// Opens an I/O queue that another thread is going to drive
    /// ([`Lane::new`]). This device goes on to keep the controller alive.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue_elsewhere(&mut self) -> Result<DetachedQueue<C::Queue>, DriverError> {
        let queue = match self.poller.take_free() {
            Some(queue) => queue,
            None => self.controller.open_queue()?,
        };
        Ok(DetachedQueue {
            queue,
            info: Arc::clone(self.info()),
            clock: self.clock(),
        })
    }

    /// Takes a queue back, to open it again or to say why it is gone.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn take_back(&mut self, detached: DetachedQueue<C::Queue>) -> Result<(), DriverError> {
        let mut queue = detached.queue;
        match queue.take_error() {
            Some(error) => {
                self.error.get_or_insert(error);
                queue.abandon();
            }
            None => drop(self.poller.add(queue)?),
        }
        Ok(())
    }

    /// A queue from the side of the programs.
    fn queue_of(&self, shared: &Rc<RefCell<Shared<C::Queue>>>) -> DriverQueue<C::Queue> {
        DriverQueue::new(shared, self.info(), self.clock())
    }

    /// Ends the run: gives the controller back, and closes the queues.
    ///
    /// # Errors
    /// Why the controller, or the first of the queues that lost its connection,
    /// is gone.
    pub fn close(self) -> Result<C, DriverError> {
        let mut error = self.error;
        for shared in self.poller.queues() {
            let queue = &mut shared.borrow_mut().queue;
            error = error.or_else(|| queue.take_error());
            queue.abandon();
        }
        match error {
            Some(error) => Err(error),
            None => Ok(self.controller),
        }
    }

    /// Tells the controller that we are here, if it is time to.
    fn tend(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.controller.keep_alive()
        {
            self.error = Some(error);
            if let Some(admin) = self.controller.descriptor() {
                self.poller.forget_admin(admin);
            }
            for shared in self.poller.queues() {
                shared.borrow_mut().queue.abandon();
            }
        }
    }

    /// When the controller must hear from us, or answer.
    fn alive_until(&self) -> Nanos {
        match self.error {
            Some(_) => Nanos::MAX,
            None => self.controller.next_keep_alive(),
        }
    }
}

impl<C: Controller> Device for DriverDevice<C> {
    type Queue = DriverQueue<C::Queue>;

    /// When a command that is under way is late.
    fn next_event(&self) -> Option<Nanos> {
        self.poller.next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        if self.poller.take_admin() || self.alive_until() <= now {
            self.tend();
        }
        self.poller.receive(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        let mut span = span;
        if span > Nanos::ZERO {
            let now = self.clock().now();
            span = span.min(self.alive_until().saturating_sub(now));
            if span == Nanos::ZERO {
                return true;
            }
        }
        self.poller.look(span)
    }
}

/// An I/O queue on its way from one thread to another.
#[derive(Debug)]
pub struct DetachedQueue<Q> {
    queue: Q,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
}

impl<Q: IoQueue> DetachedQueue<Q> {
    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.queue.depth()
    }

    /// The clock of the queue, which is the controller's.
    #[must_use]
    pub fn clock(&self) -> Monotonic {
        self.clock
    }
}

/// One I/O queue as a device that a thread drives by itself, while another keeps
/// the controller alive ([`DriverDevice::open_queue_elsewhere`]).
pub struct Lane<Q: IoQueue> {
    poller: Poller<Q>,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
}

impl<Q: IoQueue> Lane<Q> {
    /// The queue as a device, and for programs.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(detached: DetachedQueue<Q>) -> Result<(Self, DriverQueue<Q>), DriverError> {
        let DetachedQueue { queue, info, clock } = detached;
        let mut poller = Poller::new()?;
        let shared = poller.add(queue)?;
        let queue = DriverQueue::new(&shared, &info, clock);
        let lane = Self {
            poller,
            info,
            clock,
        };
        Ok((lane, queue))
    }

    /// Ends a wait of this device from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.poller.waker()
    }

    /// How the thread has waited so far.
    #[must_use]
    pub fn waits(&self) -> WaitCounts {
        self.poller.waits()
    }

    /// Whether the connection broke: who takes the queue back learns why.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.poller.is_lost()
    }

    /// The queue, to be given back; `None`: a program has it still.
    #[must_use]
    pub fn into_queue(self) -> Option<DetachedQueue<Q>> {
        let Self {
            poller,
            info,
            clock,
        } = self;
        let queue = poller.into_queue()?;
        Some(DetachedQueue { queue, info, clock })
    }
}

impl<Q: IoQueue> Device for Lane<Q> {
    type Queue = DriverQueue<Q>;

    fn next_event(&self) -> Option<Nanos> {
        self.poller.next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.poller.receive(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.poller.look(span)
    }
}

/// An I/O queue of a [`DriverDevice`] or [`Lane`]. What it completes is received when the
/// device is driven.
#[derive(Debug)]
pub struct DriverQueue<Q> {
    shared: Rc<RefCell<Shared<Q>>>,
    id: QueueId,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
}

impl<Q: IoQueue> DriverQueue<Q> {
    fn new(shared: &Rc<RefCell<Shared<Q>>>, info: &Arc<DeviceInfo>, clock: Monotonic) -> Self {
        Self {
            shared: Rc::clone(shared),
            id: shared.borrow().queue.id(),
            info: Arc::clone(info),
            clock,
        }
    }

    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.shared.borrow().queue.depth()
    }
}

impl<Q: IoQueue> DeviceQueue for DriverQueue<Q> {
    fn id(&self) -> QueueId {
        self.id
    }

    /// Its time goes on by itself.
    fn enter(&mut self, _now: Nanos) {}
}

impl<Q: IoQueue> QueuePair for DriverQueue<Q> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.shared.borrow_mut().queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.shared.borrow_mut().queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let inbox = &mut self.shared.borrow_mut().inbox;
        if inbox.is_empty() {
            return 0;
        }
        let (count, at) = (inbox.len(), self.clock.now());
        done.extend(
            inbox
                .drain(..)
                .map(|completion| Completion { at, ..completion }),
        );
        count
    }
}
