//! Resets of a controller while threads of their own drive its queues.

use zonelab_device::{Command, Completion, Op, QueuePair, Tag};
use zonelab_nvme::Status;

use crate::explore;
use crate::model::Model;
use crate::pcie::controller::PcieController;
use crate::pcie::recovering::{RecoveringController, RecoveringQueue};

/// A queue's thread: it submits two commands, and looks now and then.
struct Worker {
    queue: RecoveringQueue<Model>,
    done: Vec<Completion>,
}

impl Worker {
    fn submit(&mut self, tag: u32) {
        let submitted = self.queue.submit(Command::new(Op::Flush), Tag(tag), None);
        submitted.unwrap();
        self.queue.ring();
    }

    fn poll(&mut self) {
        self.queue.poll(&mut self.done);
    }

    fn work(mut self) -> Self {
        self.submit(0);
        self.poll();
        self.submit(1);
        self.poll();
        self
    }

    /// Each command has ended once.
    fn check(&self) {
        let mut tags: Vec<u32> = self.done.iter().map(|done| done.tag.0).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1], "each command ends once");
        let allowed = [Status::SUCCESS, Status::ABORTED_BY_HOST];
        assert!(self.done.iter().all(|done| allowed.contains(&done.status)));
    }
}

/// Two queues, whose first rings break the protocol if they are among `broken`.
fn start(broken: &[u32]) -> (RecoveringController<Model>, [Worker; 2]) {
    let device = Model::default();
    device.state().broken = broken.to_vec();
    let mut controller = RecoveringController::new(PcieController::new(device));
    let workers = [(); 2].map(|()| Worker {
        queue: controller.open_queue().unwrap(),
        done: Vec::new(),
    });
    (controller, workers)
}

/// All go on by turns until nothing is under way.
fn settle(controller: &mut RecoveringController<Model>, workers: &mut [Worker]) {
    for _ in 0..8 {
        workers.iter_mut().for_each(Worker::poll);
        controller.tend(false).unwrap();
    }
    assert!(!controller.is_stopped(), "all queues are quiet");
}

fn is_reset_once(broken: &'static [u32]) {
    explore(move || {
        let (mut controller, [first, mut second]) = start(broken);
        let first = loom::thread::spawn(move || first.work());
        let tending = loom::thread::spawn(move || {
            for _ in 0..3 {
                controller.tend(false).unwrap();
            }
            controller
        });
        second = second.work();
        let mut controller = tending.join().unwrap();
        let mut workers = [first.join().unwrap(), second];
        settle(&mut controller, &mut workers);
        workers.iter().for_each(Worker::check);
        assert_eq!(controller.resets(), 1);
    });
}

#[test]
fn one_queue_that_is_broken_costs_one_reset() {
    is_reset_once(&[1]);
}

/// What the second has to say of rings that are gone by then leads to nothing.
#[test]
fn two_queues_that_are_broken_cost_one_reset() {
    is_reset_once(&[1, 2]);
}

/// A queue whose owner goes is not waited for, and takes no rings with it.
#[test]
fn who_goes_is_not_waited_for() {
    explore(|| {
        let (mut controller, [first, second]) = start(&[1]);
        let first = loom::thread::spawn(move || first.work());
        let goes = loom::thread::spawn(move || {
            let mut second = second;
            second.submit(0);
            second.poll();
        });
        for _ in 0..3 {
            controller.tend(false).unwrap();
        }
        goes.join().unwrap();
        let mut workers = [first.join().unwrap()];
        settle(&mut controller, &mut workers);
        workers[0].check();
    });
}

/// A controller that is given up ends every command.
#[test]
fn a_controller_that_is_lost_ends_every_command() {
    explore(|| {
        let (controller, [first, second]) = start(&[]);
        let workers = [first, second].map(|worker| loom::thread::spawn(move || worker.work_on()));
        controller.abandon();
        for worker in workers {
            let mut worker = worker.join().unwrap();
            worker.poll();
            assert_eq!(worker.done.len(), worker.taken());
            assert!(worker.queue.has_ended());
        }
    });
}

impl Worker {
    /// As [`Self::work`], until nothing is taken.
    fn work_on(mut self) -> Self {
        for tag in 0..2 {
            let submitted = self.queue.submit(Command::new(Op::Flush), Tag(tag), None);
            if submitted.is_err() {
                break;
            }
            self.queue.ring();
            self.poll();
        }
        self
    }

    /// Commands that have ended, each once.
    fn taken(&self) -> usize {
        let mut tags: Vec<u32> = self.done.iter().map(|done| done.tag.0).collect();
        tags.sort_unstable();
        tags.dedup();
        tags.len()
    }
}
