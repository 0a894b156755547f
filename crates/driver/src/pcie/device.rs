//! A controller and its I/O queues as a device that a reactor drives.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Modelled, Nanos, QueueId, QueuePair,
    Rejected, Tag,
};

use super::bus::{Function, ModelledFunction};
use super::controller::PcieController;
use super::recovering::{RecoveringController, RecoveringQueue};
use crate::error::DriverError;

/// How often a controller that has work and does not answer is looked at, if nothing
/// else happens: whether it is still there.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);

/// A queue, and what it has completed.
struct Shared<F: Function> {
    queue: RecoveringQueue<F>,
    inbox: Vec<Completion>,
}

/// A controller on PCIe and the I/O queues that were opened through it.
///
/// It is reset if it has to be, as [`RecoveringController`] describes. When the device is
/// gone or does not come back, nothing is taken any more, and [`Self::close`] says why.
pub struct PcieDevice<F: Function> {
    // First: it is dropped first, which disables the controller, and then the queues can
    // free what it knew of.
    controller: RecoveringController<F>,
    lanes: Vec<Rc<RefCell<Shared<F>>>>,
    error: Option<DriverError>,
    look_at: Nanos,
    /// Scratch: queues in the order in which a model completed what they have.
    served: Vec<u16>,
}

impl<F: Function> PcieDevice<F> {
    /// Takes a controller over.
    #[must_use]
    pub fn new(controller: PcieController<F>) -> Self {
        Self {
            controller: RecoveringController::new(controller),
            lanes: Vec::new(),
            error: None,
            look_at: Nanos::ZERO,
            served: Vec::new(),
        }
    }

    /// What workloads plan with.
    #[must_use]
    pub const fn info(&self) -> &Arc<DeviceInfo> {
        self.controller.get().info()
    }

    /// The controller.
    #[must_use]
    pub const fn controller(&self) -> &PcieController<F> {
        self.controller.get()
    }

    /// The controller, for admin commands and events.
    pub const fn controller_mut(&mut self) -> &mut PcieController<F> {
        self.controller.get_mut()
    }

    /// Whether the controller is gone for good: [`Self::close`] says why.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.error.is_some()
    }

    /// How often the controller was reset because of what it did.
    #[must_use]
    pub const fn resets(&self) -> u64 {
        self.controller.resets()
    }

    /// Opens an I/O queue: one that its owner has dropped, or the next.
    ///
    /// # Errors
    /// The controller grants no more, or refuses.
    pub fn open_queue(&mut self) -> Result<PcieDeviceQueue<F>, DriverError> {
        let is_free = |lane: &&Rc<RefCell<Shared<F>>>| {
            let shared = lane.borrow();
            let is_idle = shared.queue.is_idle() && shared.inbox.is_empty();
            Rc::strong_count(lane) == 1 && is_idle
        };
        if let Some(lane) = self.lanes.iter().find(is_free) {
            return Ok(PcieDeviceQueue::new(lane, self.info()));
        }
        let queue = self.controller.open_queue()?;
        let inbox = Vec::with_capacity(queue.get().depth().into());
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

    /// Receives what the queues have.
    /// What a model completed first is told first: who hears of it goes on first.
    fn receive(&mut self, ready: &mut Vec<QueueId>) {
        let from = ready.len();
        for lane in &self.lanes {
            let Shared { queue, inbox } = &mut *lane.borrow_mut();
            let was_empty = inbox.is_empty();
            if queue.poll(inbox) > 0 && was_empty {
                ready.push(queue.get().id());
            }
        }
        self.served.clear();
        self.controller
            .get()
            .function()
            .take_served(&mut self.served);
        let place = |id: &QueueId| self.served.iter().position(|served| *served == id.0);
        // A drive of its own says nothing of that.
        if !self.served.is_empty() && ready.len() > from + 1 {
            ready[from..].sort_by_key(|id| place(id).unwrap_or(usize::MAX));
        }
    }

    /// Looks at the admin queue, and at what is late or broken.
    fn tend(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now.saturating_add(LOOK_EVERY);
        }
        loop {
            if let Err(error) = self.controller.tend(is_due) {
                self.error.get_or_insert(error);
                return self.receive(ready);
            }
            if !self.controller.is_stopped() {
                return;
            }
            // All queues are here: each is quiet after this, and has new rings next time.
            self.receive(ready);
        }
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
        let device = self.controller.get().function().next_event();
        match (deadline, device) {
            (None, Some(Nanos::MAX)) => None,
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.controller.get().function().advance(now);
        self.receive(ready);
        if self.error.is_none() {
            self.tend(now, ready);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.controller.get().function().wait(span)
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
            id: shared.borrow().queue.get().id(),
            info: Arc::clone(info),
        }
    }

    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.shared.borrow().queue.get().depth()
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
