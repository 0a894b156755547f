//! The emulated drive behind queue pairs, in this process.
//!
//! [`Emulated`] owns the drive. Each [`EmulatedQueue`] belongs to one job. What
//! host code costs is time on the job's core ([`HostCosts`]): a command reaches
//! the drive when the core has got that far, and a completion counts from when
//! the core has taken it off the queue.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Nanos, QueueId, QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_ssd::Drive;
use zonelab_ssd::faults::FaultyDrive;

use crate::rng::Rng;

/// What it costs a host to use a queue pair: occupancy of the job's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// Core time from the job's decision to the drive's doorbell.
    pub submit_ns: Nanos,
    /// Time that a command is on its way between the doorbell and the drive: in
    /// a kernel thread with a core of its own, say. It occupies nothing.
    pub path_ns: Nanos,
    /// Core time to take a completion off the queue and hand it to the job.
    pub complete_ns: Nanos,
    /// Mean of an exponentially distributed addition to each of the two.
    pub jitter_ns: Nanos,
    /// One submission or completion in so many ...
    pub hiccup_one_in: u64,
    /// ... finds its core taken away, for an exponentially distributed time of this mean.
    pub hiccup_ns: Nanos,
}

impl HostCosts {
    /// A host that takes no time.
    pub const FREE: Self = Self {
        submit_ns: Nanos::ZERO,
        path_ns: Nanos::ZERO,
        complete_ns: Nanos::ZERO,
        jitter_ns: Nanos::ZERO,
        hiccup_one_in: 0,
        hiccup_ns: Nanos::ZERO,
    };

    #[inline]
    fn draw(&self, base: Nanos, rng: &mut Rng) -> Nanos {
        let mut cost = base;
        if self.jitter_ns > Nanos::ZERO {
            cost += rng.exponential(self.jitter_ns);
        }
        if self.hiccup_one_in > 0 && rng.below(self.hiccup_one_in) == 0 {
            cost += rng.exponential(self.hiccup_ns);
        }
        cost
    }
}

/// A command on its way: its core is done with it at `at`.
#[derive(Debug)]
struct Arrival {
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
}

/// State that the drive's owner and its queues share.
#[derive(Debug)]
struct Shared {
    drive: FaultyDrive,
    /// Commands on their way, by time of arrival, then by order of submission.
    arrivals: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    parked: Vec<Option<Arrival>>,
    parked_free: Vec<u32>,
    sequence: u64,
    queues: Vec<QueueState>,
    scratch: Vec<Completion>,
}

#[derive(Debug, Default)]
struct QueueState {
    inbox: Vec<Completion>,
    in_flight: u32,
    depth: u32,
}

/// An emulated drive whose queue pairs live in this process.
#[derive(Clone, Debug)]
pub struct Emulated {
    shared: Rc<RefCell<Shared>>,
    info: Rc<DeviceInfo>,
}

impl Emulated {
    /// Takes a drive over, with or without faults.
    #[must_use]
    pub fn new(drive: impl Into<FaultyDrive>) -> Self {
        let drive = drive.into();
        let info = Rc::new(drive.info().clone());
        let shared = Shared {
            drive,
            arrivals: BinaryHeap::new(),
            parked: Vec::new(),
            parked_free: Vec::new(),
            sequence: 0,
            queues: Vec::new(),
            scratch: Vec::new(),
        };
        Self {
            shared: Rc::new(RefCell::new(shared)),
            info,
        }
    }

    /// What the drive is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Opens a queue pair that holds `depth` commands, for a job whose host
    /// code costs `costs`; `rng` is for its jitter.
    #[must_use]
    pub fn open_queue(&self, depth: u32, costs: HostCosts, rng: Rng) -> EmulatedQueue {
        let mut shared = self.shared.borrow_mut();
        let id = u16::try_from(shared.queues.len()).expect("fewer than 2^16 jobs use one drive");
        shared.queues.push(QueueState {
            depth,
            ..QueueState::default()
        });
        EmulatedQueue {
            shared: Rc::clone(&self.shared),
            info: Rc::clone(&self.info),
            id: QueueId(id),
            core_now: Nanos::ZERO,
            is_free: costs == HostCosts::FREE,
            costs,
            rng,
        }
    }

    /// Lets `f` look at the drive, or do something to it.
    pub fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T {
        f(self.shared.borrow_mut().drive.drive_mut())
    }

    /// Lets `f` look at the faults of the drive, or change them.
    pub fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
        f(&mut self.shared.borrow_mut().drive)
    }

    /// When something happens next: a command arrives or the drive does something.
    #[inline]
    #[must_use]
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.shared.borrow().next_event()
    }

    /// Runs drive and arrivals up to `now`, and adds to `ready` the queues
    /// that had nothing to poll before and have now.
    #[inline]
    pub(crate) fn advance(&self, now: Nanos, ready: &mut Vec<u32>) {
        self.shared.borrow_mut().advance(now, ready);
    }
}

impl Shared {
    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        let arrival = self.arrivals.peek().map(|Reverse((at, ..))| *at);
        match (arrival, self.drive.next_event()) {
            (Some(a), Some(d)) => Some(a.min(d)),
            (a, d) => a.or(d),
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanos, ready: &mut Vec<u32>) {
        while let Some(&Reverse((at, _, slot))) = self.arrivals.peek() {
            if at > now {
                break;
            }
            self.arrivals.pop();
            self.advance_drive(at, ready);
            let arrival = self.parked[slot as usize]
                .take()
                .expect("an arrival is parked until it is due");
            self.parked_free.push(slot);
            self.hand_over(at, arrival);
        }
        self.advance_drive(now, ready);
    }

    #[inline]
    fn advance_drive(&mut self, to: Nanos, ready: &mut Vec<u32>) {
        let Self {
            drive,
            scratch,
            queues,
            ..
        } = self;
        drive.advance(to, scratch);
        for completion in scratch.drain(..) {
            let id = completion.queue.0;
            let inbox = &mut queues[id as usize].inbox;
            if inbox.is_empty() {
                ready.push(u32::from(id));
            }
            inbox.push(completion);
        }
    }

    #[inline]
    fn hand_over(&mut self, at: Nanos, arrival: Arrival) {
        let Arrival {
            queue,
            tag,
            command,
            data,
        } = arrival;
        self.drive
            .submit(at, queue, tag, command, data)
            .expect("queue depths keep the drive below what it can hold");
    }

    fn park(&mut self, at: Nanos, arrival: Arrival) {
        let slot = self.parked_free.pop().unwrap_or_else(|| {
            self.parked.push(None);
            u32::try_from(self.parked.len() - 1).expect("fewer than 2^32 commands are on their way")
        });
        self.parked[slot as usize] = Some(arrival);
        self.sequence += 1;
        self.arrivals.push(Reverse((at, self.sequence, slot)));
    }
}

/// A queue pair of an emulated drive.
#[derive(Debug)]
pub struct EmulatedQueue {
    shared: Rc<RefCell<Shared>>,
    info: Rc<DeviceInfo>,
    id: QueueId,
    /// Time on the core of its job, which moves on as host code takes its time.
    core_now: Nanos,
    is_free: bool,
    costs: HostCosts,
    rng: Rng,
}

impl EmulatedQueue {
    /// Its id on the drive.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Its job begins to run at `now`.
    #[inline]
    pub(crate) fn enter(&mut self, now: Nanos) {
        self.core_now = now;
    }
}

impl QueuePair for EmulatedQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.core_now
    }

    #[inline]
    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let shared = &mut *self.shared.borrow_mut();
        let queue = &mut shared.queues[self.id.0 as usize];
        if queue.in_flight == queue.depth {
            let reason = RejectReason::QueueFull {
                queue: self.id,
                depth: queue.depth,
            };
            return Err(Rejected { reason, data });
        }
        queue.in_flight += 1;
        let arrival = Arrival {
            queue: self.id,
            tag,
            command,
            data,
        };
        if self.is_free {
            shared.hand_over(self.core_now, arrival);
        } else {
            self.core_now += self.costs.draw(self.costs.submit_ns, &mut self.rng);
            shared.park(self.core_now + self.costs.path_ns, arrival);
        }
        Ok(())
    }

    #[inline]
    fn ring(&mut self) {
        // Commands travel one by one: their costs are those of `submit`.
    }

    #[inline]
    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let shared = &mut *self.shared.borrow_mut();
        let queue = &mut shared.queues[self.id.0 as usize];
        let count = queue.inbox.len();
        queue.in_flight -= count as u32;
        if self.is_free {
            for mut completion in queue.inbox.drain(..) {
                completion.at = self.core_now;
                done.push(completion);
            }
        } else {
            for mut completion in queue.inbox.drain(..) {
                self.core_now += self.costs.draw(self.costs.complete_ns, &mut self.rng);
                completion.at = self.core_now;
                done.push(completion);
            }
        }
        count
    }
}
