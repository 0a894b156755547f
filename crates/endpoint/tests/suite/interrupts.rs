//! Queues with interrupts, in the poller that threads sleep in. When a completion comes
//! between two of its steps is planned, so that each order is tried.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, Monotonic, Nanos, QueueId, QueuePair, Rejected,
    Tag,
};
use zonelab_driver::pcie::{
    Function, PcieError, PcieOptions, RecoveringController, RecoveringQueue,
};
use zonelab_driver::tcp::Transfer;
use zonelab_driver::{
    Announcement, Controller, DriverDevice, DriverError, DriverQueue, Identity, IoQueue, Reply,
    WaitCounts,
};
use zonelab_endpoint::{Endpoint, EndpointSettings, Fault};
use zonelab_nvme::Status;
use zonelab_nvme::queue::SubmissionEntry;

use crate::drive::{connect, endpoint, reset_all};

/// Longer than any test: a wait that lasts so long has missed something.
const LONG: Nanos = Nanos::from_secs(60);

/// Where in the steps of a thread its command completes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Moment {
    /// It has woken up, and has not looked at the ring yet.
    BeforeTheLook,
    /// It has looked at the ring, which was empty.
    AfterTheLook,
    /// All that it asks of the queue before it sleeps has been asked.
    BeforeTheSleep,
}

/// When the endpoint does what it was told to.
#[derive(Clone)]
struct Plan {
    endpoint: Endpoint,
    moment: Rc<Cell<Option<Moment>>>,
}

impl Plan {
    fn reached(&self, moment: Moment) {
        if self.moment.get() == Some(moment) {
            self.moment.set(None);
            pass(&self.endpoint);
        }
    }
}

/// What was submitted is carried out.
fn pass(endpoint: &Endpoint) {
    for _ in 0..2 {
        endpoint.advance(endpoint.now() + Nanos::from_ms(50));
    }
}

/// A queue of the driver among the other transports, as `LocalQueue` is.
struct Queue {
    queue: RecoveringQueue<Endpoint>,
    plan: Plan,
}

impl QueuePair for Queue {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        self.plan.reached(Moment::BeforeTheLook);
        let found = self.queue.poll(done);
        self.plan.reached(Moment::AfterTheLook);
        found
    }
}

impl IoQueue for Queue {
    fn id(&self) -> QueueId {
        self.queue.get().id()
    }

    fn depth(&self) -> u16 {
        self.queue.get().depth()
    }

    fn error(&self) -> Option<&DriverError> {
        None
    }

    fn take_error(&mut self) -> Option<DriverError> {
        None
    }

    fn passthrough(&mut self, _: SubmissionEntry, _: Transfer) -> Result<Reply, DriverError> {
        Err(PcieError::Gone.into())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.queue.next_deadline()
    }

    fn has_output(&self) -> bool {
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.queue.get().interrupt().unwrap().as_fd()
    }

    fn announcement(&self) -> Announcement {
        self.plan.reached(Moment::BeforeTheSleep);
        Announcement::Interrupt
    }

    fn abandon(&mut self) {
        self.queue.end();
    }
}

/// A controller whose admin queue the test looks after.
struct Shared {
    controller: Rc<RefCell<RecoveringController<Endpoint>>>,
    info: Arc<DeviceInfo>,
    identity: Identity,
    clock: Monotonic,
    plan: Plan,
}

impl Controller for Shared {
    type Queue = Queue;

    fn info(&self) -> &Arc<DeviceInfo> {
        &self.info
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn clock(&self) -> Monotonic {
        self.clock
    }

    fn granted_queues(&self) -> u16 {
        self.controller.borrow().get().granted_queues()
    }

    fn open_queue(&mut self) -> Result<Queue, DriverError> {
        Ok(Queue {
            queue: self.controller.borrow_mut().open_queue()?,
            plan: self.plan.clone(),
        })
    }

    fn admin(
        &mut self,
        _: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        self.controller
            .borrow_mut()
            .get_mut()
            .admin(entry, transfer)
    }

    fn keep_alive(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn next_keep_alive(&self) -> Nanos {
        Nanos::MAX
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn disconnect(self) -> Result<(), DriverError> {
        Ok(())
    }
}

struct Rig {
    endpoint: Endpoint,
    controller: Rc<RefCell<RecoveringController<Endpoint>>>,
    plan: Plan,
    queue: DriverQueue<Queue>,
    device: DriverDevice<Shared>,
}

fn options() -> PcieOptions {
    PcieOptions {
        has_interrupts: true,
        queues: 4,
        command_timeout: Nanos::from_secs(1),
        ..PcieOptions::default()
    }
}

impl Rig {
    fn new() -> Self {
        let endpoint = endpoint(EndpointSettings::default());
        let controller = connect(&endpoint, options());
        let (info, identity) = (Arc::clone(controller.info()), controller.identity().clone());
        let controller = Rc::new(RefCell::new(RecoveringController::new(controller)));
        let plan = Plan {
            endpoint: endpoint.clone(),
            moment: Rc::default(),
        };
        let shared = Shared {
            controller: Rc::clone(&controller),
            info,
            identity,
            clock: Monotonic::new(),
            plan: plan.clone(),
        };
        let mut device = DriverDevice::new(shared).unwrap();
        let queue = device.open_queue().unwrap();
        Self {
            endpoint,
            controller,
            plan,
            queue,
            device,
        }
    }

    fn submit(&mut self, moment: Option<Moment>) {
        self.queue.submit(reset_all(), Tag(1), None).unwrap();
        self.queue.ring();
        self.plan.moment.set(moment);
    }

    /// One round of a thread: it sleeps, and looks at what it was woken for.
    fn round(&mut self) -> Vec<Completion> {
        self.device.wait(LONG);
        self.receive()
    }

    fn receive(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.device.advance(self.endpoint.now(), &mut Vec::new());
        self.queue.poll(&mut done);
        done
    }

    /// Goes round until the command has completed.
    fn until_done(&mut self) -> Status {
        for _ in 0..10 {
            if let Some(completion) = self.round().pop() {
                return completion.status;
            }
        }
        panic!("it does not complete");
    }

    /// Nothing is under way, and the thread knows.
    fn settle(&mut self) {
        while self.device.wait(Nanos::ZERO) {
            assert!(self.receive().is_empty());
        }
    }

    /// Sleeps since `before`, and how many of them were ended by an event.
    fn slept(&self, before: WaitCounts) -> (u64, u64) {
        let now = self.device.waits();
        (now.sleeps - before.sleeps, now.announced - before.announced)
    }
}

/// No sleep lasts until its time is over: whenever the completion comes, it ends the sleep
/// or is found before.
#[test]
fn no_completion_is_missed() {
    for moment in [
        Moment::BeforeTheLook,
        Moment::AfterTheLook,
        Moment::BeforeTheSleep,
    ] {
        let mut rig = Rig::new();
        for _ in 0..3 {
            rig.settle();
            let before = rig.device.waits();
            rig.submit(Some(moment));
            if moment != Moment::BeforeTheSleep {
                // Something else wakes the thread up, and it looks at the ring.
                rig.device.waker().wake();
            }
            assert_eq!(rig.until_done(), Status::SUCCESS, "{moment:?}");
            let sleeps = match moment {
                Moment::AfterTheLook => 2,
                _ => 1,
            };
            assert_eq!(rig.slept(before), (sleeps, sleeps), "{moment:?}");
        }
    }
}

/// A signal that was heard keeps nobody awake.
#[test]
fn who_has_nothing_to_do_sleeps() {
    let mut rig = Rig::new();
    rig.submit(None);
    pass(&rig.endpoint);
    assert_eq!(rig.until_done(), Status::SUCCESS);
    for _ in 0..3 {
        assert!(!rig.device.wait(Nanos::ZERO), "nothing has been signalled");
    }
    // A queue that is under way is not polled either.
    rig.submit(None);
    assert!(!rig.device.wait(Nanos::ZERO));
    pass(&rig.endpoint);
    assert!(rig.device.wait(Nanos::ZERO));
    assert_eq!(rig.receive().len(), 1);
}

/// A command without an end is late all the same; the controller is reset, and the new
/// rings have the vector of the old.
#[test]
fn interrupts_come_again_after_a_reset() {
    let mut rig = Rig::new();
    rig.endpoint.inject(0, Fault::Lost);
    rig.submit(None);
    let mut end = None;
    for _ in 0..10 {
        rig.endpoint
            .advance(rig.endpoint.now() + Nanos::from_ms(400));
        end = end.or(rig.receive().pop());
        rig.controller.borrow_mut().tend(true).unwrap();
    }
    assert_eq!(end.unwrap().status, Status::ABORTED_BY_HOST);
    assert_eq!(rig.controller.borrow().resets(), 1);
    rig.settle();
    let before = rig.device.waits();
    rig.submit(Some(Moment::BeforeTheSleep));
    assert_eq!(rig.until_done(), Status::SUCCESS);
    assert_eq!(rig.slept(before), (1, 1));
}

/// There are as many queues as there are vectors for them, and each has one of its own.
#[test]
fn queues_have_vectors_of_their_own() {
    let with = |interrupt_vectors| {
        endpoint(EndpointSettings {
            interrupt_vectors,
            ..EndpointSettings::default()
        })
    };
    let few = with(3);
    let mut controller = connect(&few, options());
    assert_eq!(controller.granted_queues(), 2);
    let mut first = controller.open_queue().unwrap();
    let second = controller.open_queue().unwrap();
    for queue in [&first, &second] {
        queue.interrupt().unwrap().clear();
    }
    first.submit(reset_all(), Tag(0), None).unwrap();
    first.ring();
    pass(&few);
    assert!(first.interrupt().unwrap().clear());
    assert!(!second.interrupt().unwrap().clear());
    drop(controller);
    for vectors in [0, 1] {
        let connected = zonelab_driver::pcie::PcieController::connect(with(vectors), options());
        let error = connected.unwrap_err();
        assert!(
            matches!(
                error,
                DriverError::Pcie(PcieError::NoInterrupts { vectors: said }) if said == vectors
            ),
            "{error}"
        );
    }
    // Without, a queue is polled.
    let mut controller = connect(&with(0), PcieOptions::default());
    assert!(controller.open_queue().unwrap().interrupt().is_none());
}
