//! A controller and its I/O queues as a device that a reactor drives.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Monotonic, Nanos, QueueId,
    QueuePair, Rejected, Tag,
};

use crate::clock::time_limit;
use crate::controller::TcpController;
use crate::error::DriverError;
use crate::queue::TcpQueue;

/// What epoll calls the admin queue; I/O queues are called by their places.
const ADMIN: u64 = u64::MAX;

/// Sockets of which one look at epoll tells.
const EVENTS: usize = 64;

/// A controller over NVMe/TCP and the I/O queues that were opened through it.
///
/// Whoever runs programs on it shares its clock ([`Self::clock`]). It keeps the
/// controller's keep alive timer by itself while it is driven.
///
/// When a connection breaks, the commands on it complete with
/// [`Status::HOST_PATHING_ERROR`](zonelab_nvme::Status::HOST_PATHING_ERROR), and
/// nothing is taken any more; with the admin queue all others end. Why is said
/// by [`Self::close`].
pub struct TcpDevice {
    controller: TcpController,
    /// Why the controller is gone.
    error: Option<DriverError>,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    lanes: Vec<Lane>,
    /// Epoll was asked since the last [`Device::advance`].
    has_looked: bool,
    admin_is_ready: bool,
}

/// A queue from the side of the device.
#[derive(Debug)]
struct Lane {
    shared: Rc<RefCell<Shared>>,
    /// Epoll tells when it can be sent to, besides.
    wants_room: bool,
    /// Epoll does not tell of it any more: the connection is gone.
    is_gone: bool,
    /// Epoll told of it.
    is_ready: bool,
}

#[derive(Debug)]
struct Shared {
    queue: TcpQueue,
    /// What completed and was not polled.
    inbox: Vec<Completion>,
}

impl TcpDevice {
    /// Takes a controller over.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(controller: TcpController) -> Result<Self, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let mark = epoll::EventData::new_u64(ADMIN);
        epoll::add(&epoll, controller.descriptor(), mark, epoll::EventFlags::IN)
            .map_err(std::io::Error::from)?;
        Ok(Self {
            controller,
            error: None,
            epoll,
            events: Vec::with_capacity(EVENTS),
            lanes: Vec::new(),
            has_looked: false,
            admin_is_ready: false,
        })
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
        self.error.is_some() || self.lanes.iter().any(Lane::is_lost)
    }

    /// Opens an I/O queue: one that its owner has dropped, or the next.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue(&mut self) -> Result<TcpDeviceQueue, DriverError> {
        if let Some(lane) = self.lanes.iter().find(|lane| lane.is_free()) {
            return Ok(self.queue_of(&lane.shared));
        }
        let queue = self.controller.open_queue()?;
        let mark = epoll::EventData::new_u64(self.lanes.len() as u64);
        epoll::add(&self.epoll, queue.descriptor(), mark, epoll::EventFlags::IN)
            .map_err(std::io::Error::from)?;
        let depth = queue.depth();
        let shared = Rc::new(RefCell::new(Shared {
            queue,
            inbox: Vec::with_capacity(depth.into()),
        }));
        let opened = self.queue_of(&shared);
        self.lanes.push(Lane {
            shared,
            wants_room: false,
            is_gone: false,
            is_ready: false,
        });
        Ok(opened)
    }

    /// A queue from the side of the programs.
    fn queue_of(&self, shared: &Rc<RefCell<Shared>>) -> TcpDeviceQueue {
        TcpDeviceQueue {
            shared: Rc::clone(shared),
            id: shared.borrow().queue.id(),
            info: Arc::clone(self.info()),
            clock: self.clock(),
        }
    }

    /// Ends the run: gives the controller back, and closes the queues.
    ///
    /// # Errors
    /// Why the controller, or the first of the queues that lost its connection,
    /// is gone.
    pub fn close(self) -> Result<TcpController, DriverError> {
        let mut error = self.error;
        for lane in &self.lanes {
            let queue = &mut lane.shared.borrow_mut().queue;
            error = error.or_else(|| queue.take_error());
            queue.abandon();
        }
        match error {
            Some(error) => Err(error),
            None => Ok(self.controller),
        }
    }

    /// Asks epoll who has something, and waits for that for `span` at most.
    /// Returns whether anybody has.
    fn look(&mut self, span: Nanos) -> bool {
        self.events.clear();
        self.has_looked = true;
        let limit = time_limit(span);
        // What epoll could refuse is wrong use. A signal ends the wait early.
        let told = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&limit));
        debug_assert!(!matches!(told, Err(error) if error != rustix::io::Errno::INTR));
        for event in &self.events {
            match event.data.u64() {
                ADMIN => self.admin_is_ready = true,
                lane => {
                    if let Some(lane) = self.lanes.get_mut(lane as usize) {
                        lane.is_ready = true;
                    }
                }
            }
        }
        !self.events.is_empty()
    }

    /// Tells the controller that we are here, if it is time to.
    fn tend(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.controller.keep_alive()
        {
            self.error = Some(error);
            let _known = epoll::delete(&self.epoll, self.controller.descriptor());
            for lane in &mut self.lanes {
                lane.shared.borrow_mut().queue.abandon();
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

impl Lane {
    /// Receives what is there.
    fn poll(&mut self, epoll: &OwnedFd, ready: &mut Vec<QueueId>) {
        let Shared { queue, inbox } = &mut *self.shared.borrow_mut();
        let was_empty = inbox.is_empty();
        if queue.poll(inbox) > 0 && was_empty {
            ready.push(queue.id());
        }
        if queue.error().is_some() && !self.is_gone {
            self.is_gone = true;
            let _known = epoll::delete(epoll, queue.descriptor());
        }
    }

    /// Lets epoll tell of room in the socket if, and only if, something waits for it.
    fn watch(&mut self, epoll: &OwnedFd, place: usize) {
        let queue = &self.shared.borrow().queue;
        let wants_room = queue.has_output();
        if self.is_gone || wants_room == self.wants_room {
            return;
        }
        let flags = match wants_room {
            true => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            false => epoll::EventFlags::IN,
        };
        let mark = epoll::EventData::new_u64(place as u64);
        // It was added, so it can be changed.
        self.wants_room = wants_room;
        let _known = epoll::modify(epoll, queue.descriptor(), mark, flags);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.shared.borrow().queue.next_event()
    }

    fn is_lost(&self) -> bool {
        self.shared.borrow().queue.error().is_some()
    }

    /// Whether it can be given out: nobody has it, and nothing of whoever had it
    /// is left.
    fn is_free(&self) -> bool {
        Rc::strong_count(&self.shared) == 1
            && !self.is_lost()
            && self.next_event().is_none()
            && self.shared.borrow().inbox.is_empty()
    }
}

impl Device for TcpDevice {
    type Queue = TcpDeviceQueue;

    /// When a command that is under way is late.
    fn next_event(&self) -> Option<Nanos> {
        self.lanes.iter().filter_map(Lane::next_event).min()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        if self.admin_is_ready || self.alive_until() <= now {
            self.tend();
        }
        for lane in &mut self.lanes {
            // Who was not asked may have something.
            let is_asked = lane.is_ready || !self.has_looked;
            if is_asked || lane.next_event().is_some_and(|at| at <= now) {
                lane.poll(&self.epoll, ready);
            }
            lane.is_ready = false;
        }
        self.admin_is_ready = false;
        self.has_looked = false;
    }

    fn wait(&mut self, span: Nanos) -> bool {
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            lane.watch(&self.epoll, place);
        }
        let mut span = span;
        if span > Nanos::ZERO {
            let now = self.clock().now();
            span = span.min(self.alive_until().saturating_sub(now));
            if span == Nanos::ZERO {
                return true;
            }
        }
        self.look(span)
    }
}

/// An I/O queue of a [`TcpDevice`]. What it completes is received when the
/// device is driven.
#[derive(Debug)]
pub struct TcpDeviceQueue {
    shared: Rc<RefCell<Shared>>,
    id: QueueId,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
}

impl TcpDeviceQueue {
    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.shared.borrow().queue.depth()
    }
}

impl DeviceQueue for TcpDeviceQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    /// Its time goes on by itself.
    fn enter(&mut self, _now: Nanos) {}
}

impl QueuePair for TcpDeviceQueue {
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
