//! What several sockets have, asked of epoll at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::{BorrowedFd, OwnedFd};
use zonelab_device::{Completion, Nanos, QueueId};

use crate::clock::time_limit;
use crate::error::DriverError;
use crate::pcie::Interrupt;
use crate::transport::{Announcement, IoQueue};

/// What epoll calls the admin queue; I/O queues are called by their places.
const ADMIN: u64 = u64::MAX;

/// What epoll calls the descriptor by which other threads end a wait.
const WOKEN: u64 = u64::MAX - 1;

/// Sockets of which one look at epoll tells.
const EVENTS: usize = 64;

/// How often a queue that is polled is looked at while nothing of it is under way, and one
/// with interrupts in any case: its controller may have been reset, or be gone.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);

/// The I/O queues of one thread, and the descriptor of an admin queue if that
/// thread looks after it.
pub(crate) struct Poller<Q> {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    /// `None`: the queue was taken away.
    lanes: Vec<Option<Lane<Q>>>,
    alarm: Arc<Alarm>,
    /// Epoll was asked since the last [`Self::receive`].
    has_looked: bool,
    waits: WaitCounts,
    admin_is_ready: bool,
}

/// How a thread has waited for its queues.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Waits in which the thread could sleep: nothing was there, and time was left.
    pub sleeps: u64,
    /// Those of them that something ended before their time.
    pub announced: u64,
}

/// A queue, with those who use it.
#[derive(Debug)]
struct Lane<Q> {
    shared: Rc<RefCell<Shared<Q>>>,
    /// Epoll tells when it can be sent to, besides.
    wants_room: bool,
    /// Epoll does not tell of it any more: the connection is gone.
    is_gone: bool,
    /// Epoll told of it.
    is_ready: bool,
}

/// What a queue's owner and the thread's poller share.
#[derive(Debug)]
pub(crate) struct Shared<Q> {
    pub(crate) queue: Q,
    /// What completed and was not polled.
    pub(crate) inbox: Vec<Completion>,
}

/// Ends a wait from another thread.
#[derive(Debug)]
struct Alarm(Interrupt);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.signal();
    }
}

impl<Q: IoQueue> Poller<Q> {
    /// # Errors
    /// The system has no more file descriptors.
    pub(crate) fn new() -> Result<Self, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let alarm = Interrupt::new()?;
        let mark = epoll::EventData::new_u64(WOKEN);
        epoll::add(&epoll, &alarm, mark, epoll::EventFlags::IN).map_err(std::io::Error::from)?;
        Ok(Self {
            epoll,
            events: Vec::with_capacity(EVENTS),
            lanes: Vec::new(),
            alarm: Arc::new(Alarm(alarm)),
            has_looked: false,
            waits: WaitCounts::default(),
            admin_is_ready: false,
        })
    }

    /// Looks after an admin queue too.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn watch_admin(&self, admin: BorrowedFd<'_>) -> Result<(), DriverError> {
        let mark = epoll::EventData::new_u64(ADMIN);
        let added = epoll::add(&self.epoll, admin, mark, epoll::EventFlags::IN);
        Ok(added.map_err(std::io::Error::from)?)
    }

    /// The admin queue is gone.
    pub(crate) fn forget_admin(&self, admin: BorrowedFd<'_>) {
        let _known = epoll::delete(&self.epoll, admin);
    }

    /// How the thread has waited.
    pub(crate) const fn waits(&self) -> WaitCounts {
        self.waits
    }

    /// What ends a wait from another thread.
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.alarm))
    }

    /// Takes a queue over.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn add(&mut self, queue: Q) -> Result<Rc<RefCell<Shared<Q>>>, DriverError> {
        let free = self.lanes.iter().position(Option::is_none);
        let place = free.unwrap_or(self.lanes.len());
        let mark = epoll::EventData::new_u64(place as u64);
        let flags = match queue.announcement() {
            Announcement::Interrupt => epoll::EventFlags::IN | epoll::EventFlags::ET,
            _ => epoll::EventFlags::IN,
        };
        epoll::add(&self.epoll, queue.descriptor(), mark, flags).map_err(std::io::Error::from)?;
        let depth = queue.depth();
        let shared = Rc::new(RefCell::new(Shared {
            queue,
            inbox: Vec::with_capacity(depth.into()),
        }));
        let lane = Some(Lane {
            shared: Rc::clone(&shared),
            wants_room: false,
            is_gone: false,
            is_ready: false,
        });
        match free {
            Some(place) => self.lanes[place] = lane,
            None => self.lanes.push(lane),
        }
        Ok(shared)
    }

    /// A queue that nobody has, and of whose last owner nothing is left.
    pub(crate) fn free(&self) -> Option<&Rc<RefCell<Shared<Q>>>> {
        let mut lanes = self.lanes.iter().flatten();
        lanes.find(|lane| lane.is_free()).map(|lane| &lane.shared)
    }

    /// Takes such a queue away, for another thread.
    pub(crate) fn take_free(&mut self) -> Option<Q> {
        let is_free = |lane: &Option<Lane<Q>>| lane.as_ref().is_some_and(Lane::is_free);
        let place = self.lanes.iter().position(is_free)?;
        self.take(place)
    }

    /// Takes the only queue away, if nobody has it any more.
    pub(crate) fn into_queue(mut self) -> Option<Q> {
        self.take(0)
    }

    fn take(&mut self, place: usize) -> Option<Q> {
        let lane = self.lanes.get_mut(place)?.take()?;
        let is_gone = lane.is_gone;
        let shared = Rc::into_inner(lane.shared)?.into_inner();
        if !is_gone {
            let _known = epoll::delete(&self.epoll, shared.queue.descriptor());
        }
        Some(shared.queue)
    }

    /// The queues.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Rc<RefCell<Shared<Q>>>> {
        self.lanes.iter().flatten().map(|lane| &lane.shared)
    }

    /// Whether a connection broke.
    pub(crate) fn is_lost(&self) -> bool {
        self.lanes.iter().flatten().any(Lane::is_lost)
    }

    /// When a command that is under way is late.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let lanes = self.lanes.iter().flatten();
        lanes.filter_map(Lane::next_event).min()
    }

    /// Whether epoll told of the admin queue since this was last asked.
    pub(crate) fn take_admin(&mut self) -> bool {
        std::mem::take(&mut self.admin_is_ready)
    }

    /// Receives what epoll told of; what may be there, if it was not asked.
    pub(crate) fn receive(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        for lane in self.lanes.iter_mut().flatten() {
            // Who was not asked may have something.
            let is_asked = lane.is_ready || !self.has_looked;
            if is_asked || lane.next_event().is_some_and(|at| at <= now) {
                lane.poll(&self.epoll, ready);
            }
            lane.is_ready = false;
        }
        self.has_looked = false;
    }

    /// Asks epoll who has something, and waits for that for `span` at most.
    /// Returns whether anybody has, or another thread ended the wait.
    pub(crate) fn look(&mut self, span: Nanos) -> bool {
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(lane) = lane {
                lane.watch(&self.epoll, place);
            }
        }
        self.events.clear();
        self.has_looked = true;
        let mut has_work = false;
        let mut limit = span;
        for lane in self.lanes.iter_mut().flatten() {
            // `receive` looks at the ring after epoll has taken note of interrupts, so that
            // none is lost.
            if lane.announcement() != Announcement::Readable {
                // Looking costs little, and only that shows that the controller was reset
                // or is gone.
                lane.is_ready = true;
                limit = limit.min(LOOK_EVERY);
                has_work |= lane.must_be_polled();
            }
        }
        let is_shorter = limit < span;
        let may_sleep = !has_work && limit > Nanos::ZERO;
        let limit = time_limit(if has_work { Nanos::ZERO } else { limit });
        // What epoll could refuse is wrong use. A signal ends the wait early.
        let told = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&limit));
        debug_assert!(!matches!(told, Err(error) if error != rustix::io::Errno::INTR));
        for event in &self.events {
            match event.data.u64() {
                ADMIN => self.admin_is_ready = true,
                WOKEN => drop(self.alarm.0.clear()),
                place => {
                    if let Some(Some(lane)) = self.lanes.get_mut(place as usize) {
                        lane.is_ready = true;
                    }
                }
            }
        }
        self.waits.sleeps += u64::from(may_sleep);
        self.waits.announced += u64::from(may_sleep && !self.events.is_empty());
        has_work || is_shorter || !self.events.is_empty()
    }
}

impl<Q: IoQueue> Lane<Q> {
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

    fn announcement(&self) -> Announcement {
        self.shared.borrow().queue.announcement()
    }

    /// Whether something may complete that epoll does not tell of.
    fn must_be_polled(&self) -> bool {
        self.announcement() == Announcement::Polled && self.next_event().is_some()
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
