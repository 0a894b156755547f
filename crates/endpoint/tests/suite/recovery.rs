//! Queues and a controller that are driven in any order, as threads of their own would:
//! each step is one that a thread takes, and a controller that does wrong is among them.

use std::collections::BTreeMap;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::DriverError;
use zonelab_driver::pcie::{
    Function, PcieError, PcieOptions, RecoveringController, RecoveringQueue,
};
use zonelab_endpoint::{Endpoint, EndpointSettings, Fault, Stuck};
use zonelab_nvme::Status;

use crate::drive::{LBA, ZONE, command, connect, endpoint, pattern};

/// What one of the threads does next.
#[derive(Clone, Debug)]
enum Step {
    /// A queue's thread submits an append, and rings.
    Submit { queue: usize, has_copy: bool },
    /// A queue's thread looks.
    Poll(usize),
    /// The controller's thread looks; is it due to look at the status?
    Tend(bool),
    /// Time passes, in milliseconds.
    Pass(u64),
    /// A queue's owner goes.
    Drop(usize),
    /// A queue is opened.
    Open,
    /// The controller does wrong.
    Fault(Fault),
}

fn steps() -> impl Strategy<Value = Step> {
    let queue = 0_usize..3;
    let faults = prop_oneof![
        Just(Fault::Lost),
        Just(Fault::WrongPhase),
        Just(Fault::Command(0xffff)),
        Just(Fault::Repeated),
        Just(Fault::Head(u16::MAX)),
        Just(Fault::Queue(9)),
        Just(Fault::Fatal),
    ];
    prop_oneof![
        6 => (queue.clone(), proptest::bool::ANY)
            .prop_map(|(queue, has_copy)| Step::Submit { queue, has_copy }),
        6 => queue.clone().prop_map(Step::Poll),
        4 => proptest::bool::ANY.prop_map(Step::Tend),
        2 => (0_u64..700).prop_map(Step::Pass),
        1 => queue.prop_map(Step::Drop),
        1 => Just(Step::Open),
        2 => faults.prop_map(Step::Fault),
    ]
}

/// A queue with the commands that it has to account for.
struct Thread {
    queue: RecoveringQueue<Endpoint>,
    open: BTreeMap<u32, bool>,
    next: u32,
}

struct Machine {
    endpoint: Endpoint,
    controller: RecoveringController<Endpoint>,
    threads: Vec<Option<Thread>>,
    /// The controller has been given up.
    error: Option<DriverError>,
    ends: Vec<Status>,
}

impl Machine {
    fn new() -> Self {
        let endpoint = endpoint(EndpointSettings::default());
        let options = PcieOptions {
            command_timeout: Nanos::from_secs(1),
            queue_entries: 8,
            queues: 16,
            ..PcieOptions::default()
        };
        let controller = RecoveringController::new(connect(&endpoint, options));
        let mut machine = Self {
            endpoint,
            controller,
            threads: (0..3).map(|_| None).collect(),
            error: None,
            ends: Vec::new(),
        };
        machine.open(0);
        machine.open(1);
        machine
    }

    fn open(&mut self, place: usize) {
        let was_working = !self.controller.is_stopped() && self.error.is_none();
        match self.controller.open_queue() {
            Ok(queue) => {
                assert!(was_working);
                let (open, next) = (BTreeMap::new(), 0);
                self.threads[place] = Some(Thread { queue, open, next });
            }
            Err(DriverError::Pcie(PcieError::Resetting | PcieError::Gone)) => {
                assert!(!was_working, "it works, and opens no queue");
            }
            // All that are granted were opened: a queue that is dropped is not deleted.
            Err(DriverError::Unusable { .. }) => {}
            // A controller that is broken, and nobody has noticed.
            Err(error) => assert!(self.controller.get().check().is_err(), "{error}"),
        }
    }

    fn submit(&mut self, place: usize, has_copy: bool) {
        let data = match has_copy {
            true => pattern(0, 1),
            false => self.controller.get().buffer(LBA).unwrap(),
        };
        let Some(thread) = &mut self.threads[place] else {
            return;
        };
        let zslba = Lba(place as u64 * ZONE);
        let (append, tag) = (command(Op::Append { zslba, nlb: 1 }), thread.next);
        if thread.queue.submit(append, Tag(tag), Some(data)).is_ok() {
            thread.next += 1;
            thread.open.insert(tag, has_copy);
            thread.queue.ring();
        } else {
            let depth = usize::from(thread.queue.get().depth());
            assert!(thread.queue.has_ended() || thread.open.len() >= depth);
        }
    }

    fn poll(&mut self, place: usize) {
        let Some(thread) = &mut self.threads[place] else {
            return;
        };
        self.endpoint.advance(self.endpoint.now());
        let mut done: Vec<Completion> = Vec::new();
        let count = thread.queue.poll(&mut done);
        assert_eq!(count, done.len());
        for completion in done {
            let has_copy = thread.open.remove(&completion.tag.0);
            let has_copy = has_copy.expect("a command ends once, and was submitted");
            // A buffer that the controller may still use does not come back.
            assert!(completion.data.is_some() || !has_copy);
            self.ends.push(completion.status);
        }
    }

    fn tend(&mut self, is_due: bool) {
        if self.error.is_none() {
            self.error = self.controller.tend(is_due).err();
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit { queue, has_copy } => self.submit(queue, has_copy),
            Step::Poll(queue) => self.poll(queue),
            Step::Tend(is_due) => self.tend(is_due),
            Step::Pass(ms) => {
                let now = self.endpoint.now() + Nanos::from_ms(ms);
                self.endpoint.advance(now);
            }
            Step::Drop(queue) => self.threads[queue] = None,
            Step::Open => {
                if let Some(place) = self.threads.iter().position(Option::is_none) {
                    self.open(place);
                }
            }
            Step::Fault(fault) => self.endpoint.inject(0, fault),
        }
    }

    /// What was submitted is carried out.
    fn pass(&mut self) {
        for _ in 0..2 {
            self.step(&Step::Pass(50));
        }
    }

    fn is_idle(&self) -> bool {
        let threads = self.threads.iter().flatten();
        threads.clone().all(|thread| thread.open.is_empty()) && !self.controller.is_stopped()
    }

    /// All threads go on until nothing is under way.
    fn settle(&mut self) {
        for _ in 0..400 {
            if self.is_idle() {
                return;
            }
            for place in 0..self.threads.len() {
                self.poll(place);
            }
            self.tend(true);
            let now = self.endpoint.now() + Nanos::from_ms(100);
            self.endpoint.advance(now);
        }
        let open: Vec<usize> = self
            .threads
            .iter()
            .flatten()
            .map(|it| it.open.len())
            .collect();
        panic!("commands are not over: {open:?}, error {:?}", self.error);
    }

    /// Each thread that is left can work, unless the controller is given up.
    fn works(&mut self) {
        for place in 0..self.threads.len() {
            if self.threads[place].is_none() {
                continue;
            }
            self.ends.clear();
            self.submit(place, true);
            self.settle();
            match self.error {
                None => assert_eq!(self.ends, [Status::SUCCESS]),
                Some(_) => assert!(self.ends.iter().all(|end| !end.is_success())),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the order, each command ends once, nothing is accessed that was freed,
    /// and the queues go on.
    #[test]
    fn every_command_ends_once(steps in proptest::collection::vec(steps(), 1..120)) {
        let mut machine = Machine::new();
        for step in &steps {
            machine.step(step);
        }
        machine.settle();
        // Faults that have not met a completion yet meet these.
        for _ in 0..steps.len() {
            let before = machine.controller.resets();
            machine.ends.clear();
            for place in 0..machine.threads.len() {
                machine.submit(place, false);
            }
            machine.settle();
            let is_clean = machine.ends.iter().all(|end| end.is_success());
            if machine.error.is_some() || (is_clean && machine.controller.resets() == before) {
                break;
            }
        }
        machine.works();
        assert_eq!(machine.endpoint.memory().faults(), 0);
        let allowed = [Status::SUCCESS, Status::ABORTED_BY_HOST, Status::HOST_PATHING_ERROR];
        assert!(machine.ends.iter().all(|end| allowed.contains(end)), "{:?}", machine.ends);
    }
}

/// The controller's thread finds a queue idle that its owner does not look at for long:
/// it waits for it, and for no other.
#[test]
fn a_reset_waits_for_every_queue() {
    let mut machine = Machine::new();
    machine.endpoint.inject(0, Fault::Fatal);
    machine.submit(0, true);
    machine.pass();
    machine.tend(true);
    assert!(machine.controller.is_stopped());
    machine.poll(0);
    assert_eq!(machine.ends, [Status::ABORTED_BY_HOST]);
    machine.tend(true);
    assert!(
        machine.controller.is_stopped(),
        "the other queue has not looked"
    );
    // What is submitted meanwhile waits.
    machine.submit(0, true);
    machine.poll(0);
    assert_eq!(machine.ends.len(), 1);
    machine.poll(1);
    machine.tend(true);
    assert!(!machine.controller.is_stopped());
    machine.settle();
    assert_eq!(machine.ends, [Status::ABORTED_BY_HOST, Status::SUCCESS]);
    assert_eq!(machine.controller.resets(), 1);
}

/// A queue whose owner goes while the controller is stopped is not waited for.
#[test]
fn who_goes_is_not_waited_for() {
    let mut machine = Machine::new();
    machine.endpoint.inject(0, Fault::Fatal);
    machine.submit(0, true);
    machine.pass();
    machine.tend(true);
    machine.poll(0);
    machine.threads[1] = None;
    machine.tend(true);
    assert!(!machine.controller.is_stopped());
    machine.works();
}

/// A controller that fails again and again is given up, and so is one that does not
/// start again.
#[test]
fn a_controller_that_does_not_recover_is_given_up() {
    let mut machine = Machine::new();
    for _ in 0..20 {
        machine.endpoint.inject(0, Fault::Fatal);
        machine.submit(0, true);
        machine.settle();
    }
    assert_eq!(machine.controller.resets(), 3);
    assert!(matches!(machine.error, Some(DriverError::ControllerFatal)));
    let mut machine = Machine::new();
    machine.endpoint.inject(0, Fault::Fatal);
    machine.endpoint.stick(Some(Stuck::NotReady));
    machine.submit(0, true);
    machine.submit(1, true);
    machine.settle();
    assert!(machine.error.is_some());
    let ends = [Status::ABORTED_BY_HOST, Status::ABORTED_BY_HOST];
    assert_eq!(machine.ends, ends);
    machine.works();
}
