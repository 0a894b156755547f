//! The emulated drive behind queue pairs, in this process.
//!
//! [`Emulated`] owns the drive. Each [`EmulatedQueue`] belongs to one job. What
//! host code costs is time on the job's core ([`HostCosts`]): a command reaches
//! the drive when the core has got that far, and a completion counts from when
//! the core has taken it off the queue. Between queues and drive there may be a
//! block layer ([`Emulated::behind`]).

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::Duration;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Modelled, Nanos, QueueId, QueuePair,
    RejectReason, Rejected, Tag,
};
use zonelab_host::Rng;
use zonelab_host::block::{BlockLayer, MergeCount};
use zonelab_host::scheduler::{Scheduler, SchedulerSpec, SettingError};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, DriveModel};

use crate::costs::{BlockCosts, HostCosts};

/// A command on its way: to the block layer, if there is one, then to the drive.
#[derive(Debug)]
struct Arrival {
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
    to: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// At the block layer, if there is one, where it waits for the lock.
    Host,
    /// With the scheduler.
    Scheduler,
    Drive,
}

/// The block layer between the queues and the drive, and what it costs.
struct Block {
    layer: BlockLayer,
    costs: BlockCosts,
    /// When the lock of the scheduler is free.
    free_at: Nanos,
    /// When its timer rings.
    rings_at: Option<Nanos>,
    /// Completions of requests on their way to their queues.
    done: Vec<Completion>,
}

/// State that the drive's owner and its queues share.
struct Shared {
    drive: FaultyDrive,
    block: Option<Box<Block>>,
    /// Commands on their way, by time of arrival, then by order of submission.
    arrivals: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    in_transit: Vec<Option<Arrival>>,
    in_transit_free: Vec<u32>,
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

impl Block {
    /// Takes the lock of the scheduler for `time`, as soon as it is free from
    /// `now` on. Returns when it is given back.
    fn has_lock_until(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now) + time;
        self.free_at
    }
}

/// An emulated drive whose queue pairs live in this process.
#[derive(Clone)]
pub struct Emulated {
    shared: Rc<RefCell<Shared>>,
    info: Rc<DeviceInfo>,
}

impl Emulated {
    /// Takes a drive over, with or without faults.
    #[must_use]
    pub fn new(drive: impl Into<FaultyDrive>) -> Self {
        let drive = drive.into();
        let info = Rc::new(drive.drive().info().clone());
        let shared = Shared {
            drive,
            block: None,
            arrivals: BinaryHeap::new(),
            in_transit: Vec::new(),
            in_transit_free: Vec::new(),
            sequence: 0,
            queues: Vec::new(),
            scratch: Vec::new(),
        };
        Self {
            shared: Rc::new(RefCell::new(shared)),
            info,
        }
    }

    /// Puts a block layer between the queues and the drive. Nothing may be in
    /// flight: do it before jobs run.
    ///
    /// # Errors
    /// A setting of the scheduler is out of its range.
    pub fn behind(
        self,
        scheduler: &SchedulerSpec,
        costs: BlockCosts,
    ) -> Result<Self, SettingError> {
        let scheduler = scheduler.build(&self.info)?;
        Ok(self.behind_own(scheduler, costs))
    }

    /// The same with a scheduler of one's own: whatever implements
    /// [`Scheduler`].
    #[must_use]
    pub fn behind_own(self, scheduler: Box<dyn Scheduler>, costs: BlockCosts) -> Self {
        self.shared.borrow_mut().block = Some(Box::new(Block {
            layer: BlockLayer::new(scheduler),
            costs,
            free_at: Nanos::ZERO,
            rings_at: None,
            done: Vec::new(),
        }));
        self
    }

    /// Lets another scheduler take over at `now`, if there is a block layer
    /// ([`BlockLayer::switch_to`]). Whether there is one.
    ///
    /// # Errors
    /// A setting of the scheduler is out of its range: the old one stays.
    pub fn switch_scheduler(
        &self,
        now: Nanos,
        scheduler: &SchedulerSpec,
    ) -> Result<bool, SettingError> {
        let scheduler = scheduler.build(&self.info)?;
        let mut shared = self.shared.borrow_mut();
        let Some(block) = &mut shared.block else {
            return Ok(false);
        };
        block.layer.switch_to(now, scheduler);
        shared.dispatch(now, Nanos::ZERO);
        Ok(true)
    }

    /// Requests of a queue that the block layer merged; none without one.
    #[must_use]
    pub fn merges(&self, queue: QueueId) -> MergeCount {
        let shared = self.shared.borrow();
        let block = shared.block.as_ref();
        block.map_or_else(MergeCount::default, |block| block.layer.merges(queue))
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
}

impl Device for Emulated {
    type Queue = EmulatedQueue;

    /// A command arrives, or the drive does something.
    fn next_event(&self) -> Option<Nanos> {
        self.shared.borrow().next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        self.shared.borrow_mut().advance(now, ready);
    }

    /// Nothing comes from outside.
    fn wait(&mut self, span: Nanos) -> bool {
        if span > Nanos::ZERO {
            std::thread::park_timeout(Duration::from_nanos(span.0));
        }
        false
    }
}

impl Modelled for Emulated {}

impl Shared {
    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        let arrival = self.arrivals.peek().map(|Reverse((at, ..))| *at);
        let next = match (arrival, self.drive.next_event()) {
            (Some(a), Some(d)) => Some(a.min(d)),
            (a, d) => a.or(d),
        };
        match self.block.as_ref().and_then(|block| block.rings_at) {
            Some(timer) => Some(next.map_or(timer, |at| at.min(timer))),
            None => next,
        }
    }

    #[inline]
    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        while let Some(&Reverse((at, _, slot))) = self.arrivals.peek() {
            if at > now {
                break;
            }
            self.arrivals.pop();
            // A block layer hears of what has completed before the command comes. Without
            // one, the drive itself does everything in order.
            if self.block.is_some() {
                self.advance_drive(at, ready);
            }
            let arrival = self.in_transit[slot as usize]
                .take()
                .expect("a command is in transit until it is due");
            self.in_transit_free.push(slot);
            self.hand_over(at, arrival);
        }
        self.advance_drive(now, ready);
        if let Some(block) = &mut self.block
            && block.rings_at.is_some_and(|at| at <= now)
        {
            block.layer.timer(now);
            let cost = block.costs.dispatch_ns;
            self.dispatch(now, cost);
        }
    }

    #[inline]
    fn advance_drive(&mut self, to: Nanos, ready: &mut Vec<QueueId>) {
        if let ([queue], None) = (&mut *self.queues, &self.block) {
            // All that completes is its.
            let was_empty = queue.inbox.is_empty();
            self.drive.advance(to, &mut queue.inbox);
            if was_empty && !queue.inbox.is_empty() {
                ready.push(QueueId(0));
            }
            return;
        }
        self.drive.advance(to, &mut self.scratch);
        if self.scratch.is_empty() {
            return;
        }
        let Some(block) = &mut self.block else {
            deliver(&mut self.scratch, &mut self.queues, ready);
            return;
        };
        for completion in self.scratch.drain(..) {
            block.layer.completed(to, completion, &mut block.done);
        }
        let cost = block.costs.dispatch_ns;
        deliver(&mut block.done, &mut self.queues, ready);
        self.dispatch(to, cost);
    }

    #[inline]
    fn hand_over(&mut self, at: Nanos, arrival: Arrival) {
        let Arrival {
            queue,
            tag,
            command,
            data,
            to,
        } = arrival;
        match &mut self.block {
            Some(block) if to == Stage::Host && block.costs.dispatch_ns > Nanos::ZERO => {
                let at = block.has_lock_until(at, block.costs.dispatch_ns);
                let to = Stage::Scheduler;
                self.send(
                    at,
                    Arrival {
                        queue,
                        tag,
                        command,
                        data,
                        to,
                    },
                );
            }
            Some(block) if to != Stage::Drive => {
                block.layer.insert(at, queue, tag, command, data);
                self.dispatch(at, Nanos::ZERO);
            }
            _ => self.take(at, (queue, tag), command, data),
        }
    }

    /// The drive gets a command.
    #[inline]
    fn take(
        &mut self,
        at: Nanos,
        (queue, tag): (QueueId, Tag),
        command: Command,
        data: Option<Buf>,
    ) {
        self.drive
            .submit(at, queue, tag, command, data)
            .expect("queue depths keep the drive below what it can hold");
    }

    /// Sends to the drive what the scheduler lets go, each command after it has
    /// had the lock for `cost`.
    fn dispatch(&mut self, now: Nanos, cost: Nanos) {
        while let Some(block) = &mut self.block {
            let Some(issue) = block.layer.next(now) else {
                block.rings_at = block.layer.next_timer().map(|at| block.costs.rings_at(at));
                return;
            };
            let mut at = now;
            if cost > Nanos::ZERO {
                at = block.has_lock_until(now, cost);
            }
            if issue.is_merged {
                at += block.costs.merged_ns;
            }
            let arrival = Arrival {
                queue: issue.queue,
                tag: issue.tag,
                command: issue.command,
                data: issue.data,
                to: Stage::Drive,
            };
            if at == now {
                self.hand_over(now, arrival);
            } else {
                self.send(at, arrival);
            }
        }
    }

    fn send(&mut self, at: Nanos, arrival: Arrival) {
        let slot = self.in_transit_free.pop().unwrap_or_else(|| {
            self.in_transit.push(None);
            u32::try_from(self.in_transit.len() - 1)
                .expect("fewer than 2^32 commands are on their way")
        });
        self.in_transit[slot as usize] = Some(arrival);
        self.sequence += 1;
        self.arrivals.push(Reverse((at, self.sequence, slot)));
    }
}

/// Puts completions into the inboxes of their queues, and notes the queues
/// that had none before.
#[inline]
fn deliver(done: &mut Vec<Completion>, queues: &mut [QueueState], ready: &mut Vec<QueueId>) {
    for completion in done.drain(..) {
        let id = completion.queue;
        let inbox = &mut queues[usize::from(id.0)].inbox;
        if inbox.is_empty() {
            ready.push(id);
        }
        inbox.push(completion);
    }
}

/// A queue pair of an emulated drive.
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

impl DeviceQueue for EmulatedQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn enter(&mut self, now: Nanos) {
        self.core_now = now;
    }
}

impl QueuePair for EmulatedQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.core_now
    }

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
        if self.is_free && shared.block.is_none() {
            shared.take(self.core_now, (self.id, tag), command, data);
            return Ok(());
        }
        let arrival = Arrival {
            queue: self.id,
            tag,
            command,
            data,
            to: Stage::Host,
        };
        if self.is_free {
            shared.hand_over(self.core_now, arrival);
        } else {
            self.core_now += self.costs.draw(self.costs.submit_ns, &mut self.rng);
            shared.send(self.core_now + self.costs.path_ns, arrival);
        }
        Ok(())
    }

    fn ring(&mut self) {
        // Commands travel one by one: their costs are those of `submit`.
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let shared = &mut *self.shared.borrow_mut();
        let queue = &mut shared.queues[self.id.0 as usize];
        let count = queue.inbox.len();
        queue.in_flight -= count as u32;
        let before = done.len();
        if before == 0 {
            core::mem::swap(done, &mut queue.inbox);
        } else {
            done.append(&mut queue.inbox);
        }
        let fresh = &mut done[before..];
        match self.is_free {
            true => fresh.iter_mut().for_each(|of| of.at = self.core_now),
            false => self.core_now = self.costs.take(self.core_now, fresh, &mut self.rng),
        }
        count
    }
}
