//! What a host costs that uses a model of any kind.
//!
//! [`Emulated`](crate::Emulated) counts the costs of its hosts itself, since its block
//! layer shares them. [`Hosted`] puts the same costs in front of any other model, the
//! driver for PCIe on a controller in memory for one: a command reaches the queue pair
//! below when the core has got that far, and a completion counts from when the core has
//! taken it off the queue.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Found, Modelled, Nanos, QueueId,
    QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_host::Rng;
use zonelab_nvme::Status;

use crate::costs::HostCosts;

/// A queue pair of the model below.
struct Lane<Q> {
    queue: Q,
    /// Commands that the queue below did not take when they arrived.
    refused: Vec<Completion>,
}

/// A command on its way to the queue below.
struct Arrival<Q> {
    lane: Rc<RefCell<Lane<Q>>>,
    command: Command,
    tag: Tag,
    data: Option<Buf>,
}

/// The commands on their way.
struct Way<Q> {
    /// By time of arrival, then by order of submission.
    due: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    in_transit: Vec<Option<Arrival<Q>>>,
    free: Vec<usize>,
    sequence: u64,
}

impl<Q> Way<Q> {
    fn send(&mut self, at: Nanos, arrival: Arrival<Q>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.in_transit.push(None);
            self.in_transit.len() - 1
        });
        self.in_transit[slot] = Some(arrival);
        self.sequence += 1;
        self.due.push(Reverse((at, self.sequence, slot)));
    }

    /// The first command that is due by `now`, and when it is.
    fn next(&mut self, now: Nanos) -> Option<(Nanos, Arrival<Q>)> {
        let &Reverse((at, _, slot)) = self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        self.free.push(slot);
        let arrival = self.in_transit[slot].take();
        Some((
            at,
            arrival.expect("a command is in transit until its only time"),
        ))
    }
}

/// A model whose hosts take time.
pub struct Hosted<D: Device> {
    inner: D,
    way: Rc<RefCell<Way<D::Queue>>>,
}

impl<D: Modelled> Hosted<D> {
    /// Takes a model over.
    #[must_use]
    pub fn new(inner: D) -> Self {
        let way = Way {
            due: BinaryHeap::new(),
            in_transit: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        };
        Self {
            inner,
            way: Rc::new(RefCell::new(way)),
        }
    }

    /// The model.
    #[must_use]
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The model, to open a queue of it.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The queue pair for a job whose host code costs `costs`, over `queue` of the model,
    /// of which it has at most `depth` commands in flight (not more than `queue` holds);
    /// `rng` is for its jitter.
    #[must_use]
    pub fn queue(
        &self,
        queue: D::Queue,
        depth: u32,
        costs: HostCosts,
        rng: Rng,
    ) -> HostedQueue<D::Queue> {
        let info = Rc::new(queue.info().clone());
        HostedQueue {
            id: queue.id(),
            lane: Rc::new(RefCell::new(Lane {
                queue,
                refused: Vec::new(),
            })),
            way: Rc::clone(&self.way),
            info,
            core_now: Nanos::ZERO,
            in_flight: 0,
            depth,
            is_free: costs == HostCosts::FREE,
            costs,
            rng,
        }
    }
}

impl<D: Modelled> Device for Hosted<D> {
    type Queue = HostedQueue<D::Queue>;

    fn next_event(&self) -> Option<Nanos> {
        let way = self.way.borrow();
        let arrival = way.due.peek().map(|Reverse((at, ..))| *at);
        match (arrival, self.inner.next_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        loop {
            let next = self.way.borrow_mut().next(now);
            let Some((at, arrival)) = next else {
                break;
            };
            self.inner.advance(at, ready);
            let lane = &mut *arrival.lane.borrow_mut();
            lane.queue.enter(at);
            match lane
                .queue
                .submit(arrival.command, arrival.tag, arrival.data)
            {
                Ok(()) => lane.queue.ring(),
                Err(rejected) => {
                    let queue = lane.queue.id();
                    lane.refused.push(Completion {
                        queue,
                        tag: arrival.tag,
                        status: Status::HOST_PATHING_ERROR,
                        at,
                        result: 0,
                        found: Found::Unknown,
                        data: rejected.data,
                    });
                    ready.push(queue);
                }
            }
        }
        self.inner.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.inner.wait(span)
    }
}

impl<D: Modelled> Modelled for Hosted<D> {}

/// A queue pair of a [`Hosted`] model.
pub struct HostedQueue<Q> {
    id: QueueId,
    lane: Rc<RefCell<Lane<Q>>>,
    way: Rc<RefCell<Way<Q>>>,
    info: Rc<DeviceInfo>,
    /// Time on the core of its job, which moves on as host code takes its time.
    core_now: Nanos,
    /// Commands that the job has not had back, on their way or below.
    in_flight: u32,
    depth: u32,
    is_free: bool,
    costs: HostCosts,
    rng: Rng,
}

impl<Q: DeviceQueue> DeviceQueue for HostedQueue<Q> {
    fn id(&self) -> QueueId {
        self.id
    }

    fn enter(&mut self, now: Nanos) {
        self.core_now = now;
        self.lane.borrow_mut().queue.enter(now);
    }
}

impl<Q: DeviceQueue> QueuePair for HostedQueue<Q> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.core_now
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.in_flight == self.depth {
            let reason = RejectReason::QueueFull {
                queue: self.id,
                depth: self.depth,
            };
            return Err(Rejected { reason, data });
        }
        if self.is_free {
            self.lane.borrow_mut().queue.submit(command, tag, data)?;
        } else {
            self.core_now += self.costs.draw(self.costs.submit_ns, &mut self.rng);
            let arrival = Arrival {
                lane: Rc::clone(&self.lane),
                command,
                tag,
                data,
            };
            let at = self.core_now + self.costs.path_ns;
            self.way.borrow_mut().send(at, arrival);
        }
        self.in_flight += 1;
        Ok(())
    }

    /// What has costs travels one by one, and rings when it arrives.
    fn ring(&mut self) {
        if self.is_free {
            self.lane.borrow_mut().queue.ring();
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        let mut lane = self.lane.borrow_mut();
        lane.queue.poll(done);
        done.append(&mut lane.refused);
        let count = done.len() - before;
        self.in_flight = self.in_flight.saturating_sub(count as u32);
        let fresh = &mut done[before..];
        match self.is_free {
            true => fresh.iter_mut().for_each(|of| of.at = self.core_now),
            false => self.core_now = self.costs.take(self.core_now, fresh, &mut self.rng),
        }
        count
    }
}
