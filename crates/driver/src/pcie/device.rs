//! A controller and its I/O queues as a device that a reactor drives.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Modelled, Nanos, QueueId, QueuePair,
    Rejected, Tag,
};
use zonelab_nvme::Status;

use super::bus::{Function, ModelledFunction};
use super::controller::PcieController;
use super::error::PcieError;
use super::queue::PcieQueue;
use crate::error::DriverError;

/// How often a controller that has work and does not answer is looked at, if nothing
/// else happens: whether it is still there.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);

/// Resets without a completion in between, before a controller is given up.
const MAX_RESETS: u32 = 3;

/// A queue, and what it has completed.
struct Shared<F: Function> {
    queue: PcieQueue<F>,
    inbox: Vec<Completion>,
}

/// A controller on PCIe and the I/O queues that were opened through it.
///
/// A command that takes too long is aborted. If that does not help, or the controller
/// reports a fatal error or breaks the protocol, the controller is reset: commands in
/// flight complete with [`Status::ABORTED_BY_HOST`], and the queues go on. When the
/// device is gone or does not come back, they complete with
/// [`Status::HOST_PATHING_ERROR`], nothing is taken any more, and [`Self::close`] says
/// why.
pub struct PcieDevice<F: Function> {
    // First: it is dropped first, which disables the controller, and then the queues can
    // free what it knew of.
    controller: PcieController<F>,
    lanes: Vec<Rc<RefCell<Shared<F>>>>,
    error: Option<DriverError>,
    look_at: Nanos,
    /// Since the last completion.
    resets: u32,
    all_resets: u64,
}

impl<F: Function> PcieDevice<F> {
    /// Takes a controller over.
    #[must_use]
    pub fn new(controller: PcieController<F>) -> Self {
        Self {
            controller,
            lanes: Vec::new(),
            error: None,
            look_at: Nanos::ZERO,
            resets: 0,
            all_resets: 0,
        }
    }

    /// What workloads plan with.
    #[must_use]
    pub const fn info(&self) -> &Arc<DeviceInfo> {
        self.controller.info()
    }

    /// The controller.
    #[must_use]
    pub const fn controller(&self) -> &PcieController<F> {
        &self.controller
    }

    /// The controller, for admin commands and events.
    pub const fn controller_mut(&mut self) -> &mut PcieController<F> {
        &mut self.controller
    }

    /// Whether the controller is gone for good: [`Self::close`] says why.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.error.is_some()
    }

    /// How often the controller was reset because of what it did.
    #[must_use]
    pub const fn resets(&self) -> u64 {
        self.all_resets
    }

    /// Opens an I/O queue: one that its owner has dropped, or the next.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue(&mut self) -> Result<PcieDeviceQueue<F>, DriverError> {
        let is_free = |lane: &&Rc<RefCell<Shared<F>>>| {
            let shared = lane.borrow();
            let is_idle = shared.queue.next_deadline().is_none() && shared.inbox.is_empty();
            Rc::strong_count(lane) == 1 && is_idle
        };
        if let Some(lane) = self.lanes.iter().find(is_free) {
            return Ok(PcieDeviceQueue::new(lane, self.info()));
        }
        let queue = self.controller.open_queue()?;
        let inbox = Vec::with_capacity(queue.depth().into());
        let lane = Rc::new(RefCell::new(Shared { queue, inbox }));
        let queue = PcieDeviceQueue::new(&lane, self.info());
        self.lanes.push(lane);
        Ok(queue)
    }

    /// Ends the run: shuts the controller down and disables it. All queues should be
    /// idle.
    ///
    /// # Errors
    /// Why the controller is gone, or it does not shut down.
    pub fn close(self) -> Result<(), DriverError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.controller.shut_down()
    }

    /// Looks at the admin queue, and at what is late or broken.
    fn tend(&mut self, now: Nanos) {
        let pumped = self.controller.pump().map_err(DriverError::from);
        let checked = pumped.and_then(|()| match now >= self.look_at {
            true => {
                self.look_at = now.saturating_add(LOOK_EVERY);
                self.controller.check()
            }
            false => Ok(()),
        });
        match checked.and_then(|()| self.tend_queues(now)) {
            Ok(()) => {}
            Err(DriverError::Pcie(PcieError::Gone)) => self.lose(PcieError::Gone.into()),
            Err(error) => self.recover(error),
        }
    }

    /// What is wrong with a queue, if it is more than an Abort could mend.
    fn tend_queues(&mut self, now: Nanos) -> Result<(), DriverError> {
        for lane in &self.lanes {
            let queue = &mut lane.borrow_mut().queue;
            if let Some(error) = queue.take_error() {
                return Err(error.into());
            }
            let Some(late) = queue.late(now) else {
                continue;
            };
            self.controller.check()?;
            if late.is_aborted {
                let timeout = self.controller.options().command_timeout;
                return Err(PcieError::Late { timeout }.into());
            }
            self.controller.abort(queue.id().0, late.cid);
            queue.aborting(late);
        }
        Ok(())
    }

    /// Resets the controller because of `error`.
    fn recover(&mut self, error: DriverError) {
        if self.resets >= MAX_RESETS {
            return self.lose(error);
        }
        self.resets += 1;
        self.all_resets += 1;
        let mut shared: Vec<RefMut<'_, Shared<F>>> =
            self.lanes.iter().map(|lane| lane.borrow_mut()).collect();
        let mut queues: Vec<&mut PcieQueue<F>> =
            shared.iter_mut().map(|of| &mut of.queue).collect();
        let reset = self.controller.reset(&mut queues, Status::ABORTED_BY_HOST);
        drop(queues);
        drop(shared);
        if let Err(error) = reset {
            self.lose(error);
        }
    }

    /// The controller is gone for good.
    fn lose(&mut self, error: DriverError) {
        for lane in &self.lanes {
            let queue = &mut lane.borrow_mut().queue;
            queue.give_up(Status::HOST_PATHING_ERROR);
            queue.fail(PcieError::Gone);
        }
        self.error.get_or_insert(error);
    }
}

impl<F: Function> Device for PcieDevice<F> {
    type Queue = PcieDeviceQueue<F>;

    fn next_event(&self) -> Option<Nanos> {
        let deadlines = self
            .lanes
            .iter()
            .filter_map(|lane| lane.borrow().queue.next_deadline());
        // What is under way ends when the device says so, or when it is late.
        let deadline = deadlines.min();
        let device = self.controller.function().next_event();
        match (deadline, device) {
            (None, Some(Nanos::MAX)) => None,
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.controller.function().advance(now);
        for lane in &self.lanes {
            let Shared { queue, inbox } = &mut *lane.borrow_mut();
            let (was_empty, before) = (inbox.is_empty(), queue.counts().completions);
            if queue.poll(inbox) > 0 && was_empty {
                ready.push(queue.id());
            }
            if queue.counts().completions > before {
                self.resets = 0;
            }
        }
        if self.error.is_none() {
            self.tend(now);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.controller.function().wait(span)
    }
}

impl<F: ModelledFunction> Modelled for PcieDevice<F> {}

/// An I/O queue of a [`PcieDevice`]. What it completes is received when the device is
/// driven.
pub struct PcieDeviceQueue<F: Function> {
    shared: Rc<RefCell<Shared<F>>>,
    id: QueueId,
    info: Arc<DeviceInfo>,
}

impl<F: Function> PcieDeviceQueue<F> {
    fn new(shared: &Rc<RefCell<Shared<F>>>, info: &Arc<DeviceInfo>) -> Self {
        Self {
            shared: Rc::clone(shared),
            id: shared.borrow().queue.id(),
            info: Arc::clone(info),
        }
    }

    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.shared.borrow().queue.depth()
    }
}

impl<F: Function> DeviceQueue for PcieDeviceQueue<F> {
    fn id(&self) -> QueueId {
        self.id
    }

    /// Its time is that of the function.
    fn enter(&mut self, _now: Nanos) {}
}

impl<F: Function> QueuePair for PcieDeviceQueue<F> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.shared.borrow().queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.shared.borrow_mut().queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.shared.borrow_mut().queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let Shared { queue, inbox } = &mut *self.shared.borrow_mut();
        let count = inbox.len();
        if count > 0 {
            let at = queue.now();
            done.extend(inbox.drain(..).map(|of| Completion { at, ..of }));
        }
        count
    }
}
