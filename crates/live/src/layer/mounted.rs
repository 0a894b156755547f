//! The layer at work: its queues, and which commands of hosts are on them.

use std::collections::VecDeque;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, Device as _, DeviceInfo, DeviceQueue as _, Found, Nanos, QueueId,
    QueuePair as _, Tag,
};
use zonelab_ftl::{FtlDevice, FtlError, FtlQueue, Metrics};
use zonelab_nvme::Status;

use super::QUEUES;
use super::mail::{Below, BelowQueue, Mail};

/// Commands in flight of a queue of the layer; more wait.
const DEPTH: u32 = 1024;

/// A command of a host.
pub(super) struct Asked {
    /// The queue of the host.
    pub(super) queue: QueueId,
    pub(super) tag: Tag,
    pub(super) command: Command,
    pub(super) data: Option<Buf>,
}

impl Asked {
    /// It ends without having been carried out.
    pub(super) fn end(self, at: Nanos) -> Completion {
        Completion {
            queue: self.queue,
            tag: self.tag,
            status: Status::NAMESPACE_NOT_READY,
            at,
            result: 0,
            found: Found::Unknown,
            data: self.data,
        }
    }
}

/// A queue of the layer.
struct Lane {
    queue: FtlQueue<BelowQueue>,
    in_flight: u32,
    waiting: VecDeque<Asked>,
}

impl Lane {
    /// Lets the queue have what waits, as far as it has room.
    fn feed(&mut self) {
        while self.in_flight < DEPTH
            && let Some(asked) = self.waiting.pop_front()
        {
            let taken = self.queue.submit(asked.command, asked.tag, asked.data);
            debug_assert!(taken.is_ok(), "it has room for {DEPTH}");
            self.in_flight += 1;
        }
        self.queue.ring();
    }
}

/// The layer at work.
pub(super) struct Mounted {
    device: FtlDevice<Below>,
    lanes: Vec<Lane>,
    /// Scratch for queues that have something.
    ready: Vec<QueueId>,
}

impl Mounted {
    /// Opens `queues` queues of the layer, or as many as it is usual and possible.
    ///
    /// # Errors
    /// There cannot be so many.
    pub(super) fn new(
        device: FtlDevice<Below>,
        mail: &Mail,
        below: &Rc<DeviceInfo>,
        queues: Option<u32>,
    ) -> Result<Self, FtlError> {
        let queues = queues.unwrap_or(QUEUES.min(device.most_queues()));
        let lanes = (0..queues).map(|_| {
            Ok(Lane {
                queue: device.queue(mail.open(below), DEPTH)?,
                in_flight: 0,
                waiting: VecDeque::new(),
            })
        });
        Ok(Self {
            lanes: lanes.collect::<Result<_, FtlError>>()?,
            device,
            ready: Vec::new(),
        })
    }

    /// What hosts see.
    pub(super) fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.device.metrics()
    }

    /// Zones for data.
    pub(super) fn data_zones(&self) -> u32 {
        self.device.shape().data_zones()
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<FtlError> {
        self.device.failure()
    }

    /// The drive has no room for what upkeep has to write.
    pub(super) fn is_starved(&self) -> bool {
        self.device.is_starved()
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    /// Takes a command. Those of a queue of a host go to the same queue of the layer.
    pub(super) fn submit(&mut self, now: Nanos, asked: Asked) {
        let place = usize::from(asked.queue.0) % self.lanes.len();
        let lane = &mut self.lanes[place];
        lane.waiting.push_back(asked);
        lane.queue.enter(now);
        lane.feed();
    }

    /// Does what is due at `now`.
    pub(super) fn advance(&mut self, now: Nanos, mail: &Mail, done: &mut Vec<Completion>) {
        self.device.advance(now, &mut self.ready);
        for id in self.ready.drain(..) {
            // The first queue pair is that of upkeep.
            let lane = mail.place(id).checked_sub(1);
            let Some(lane) = lane.and_then(|place| self.lanes.get_mut(place)) else {
                continue;
            };
            lane.queue.enter(now);
            lane.in_flight -= lane.queue.poll(done) as u32;
            if !lane.waiting.is_empty() {
                lane.feed();
            }
        }
    }
}
