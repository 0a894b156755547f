//! Queue pairs of the conventional namespace that programs see.

mod land;
mod load;
mod operation;
mod read;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;
use zerocopy::FromBytes;
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, DeviceQueue, Found, Nanos, Op, QueueId, QueuePair,
    RejectReason, Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::command::DatasetRange;

use crate::blocks::DataZone;
use crate::changes::Lane;
use crate::core::{Core, Port};
use crate::epochs::Reads;
use crate::frontier::Writer;
use crate::metrics::Counters;
use crate::settings::Placement;
use load::{ToLoad, Want};
use operation::{Flight, Kind, Operation, Part, Spare};

/// Queues that have completions which no event of the drive announces.
pub(crate) type Announced = Rc<RefCell<Vec<QueueId>>>;

/// A queue pair of the conventional namespace, over a queue pair of the zoned one.
///
/// It does its own share of the work: it looks up and changes the map, splits and
/// gathers commands, and writes zones. What takes the drive as a whole (commits,
/// collecting, footers, checkpoints) is upkeep's.
#[derive(Debug)]
pub struct FtlQueue<Q: ?Sized> {
    core: Arc<Core>,
    info: Rc<DeviceInfo>,
    announced: Announced,
    port: Arc<Port>,
    lane: Arc<Lane>,
    reads: Reads,
    /// The zones that this queue writes, unless all share one.
    writer: Writer,
    operations: Slab<Operation>,
    flights: Slab<Flight>,
    to_load: ToLoad,
    to_read: VecDeque<Part>,
    to_write: VecDeque<Part>,
    /// Flushes, by the ticket of their commit.
    flushes: VecDeque<(usize, u64)>,
    finished: Vec<Completion>,
    arrived: Vec<Completion>,
    spare: Spare,
    depth: u32,
    /// Commands were submitted below that the drive has not been told of.
    has_submitted: bool,
    /// Upkeep will announce the queue when it has done something.
    is_waiting: bool,
    /// When the completion from below that is being looked at was taken: what ends with it has
    /// ended then, whatever the program does before it goes on.
    taken_at: Option<Nanos>,
    /// Last, so that what works on it need not know what it is ([`FtlQueue::over_any`]).
    inner: Q,
}

impl<Q: DeviceQueue> FtlQueue<Q> {
    pub(crate) fn new(
        inner: Q,
        core: Arc<Core>,
        info: Rc<DeviceInfo>,
        announced: Announced,
        port: Arc<Port>,
        depth: u32,
    ) -> Self {
        let lane = core.changes.join();
        let reads = core.epochs.join();
        Self {
            info,
            announced,
            port,
            lane,
            reads,
            writer: Writer::default(),
            operations: Slab::with_capacity(depth as usize),
            flights: Slab::with_capacity(depth as usize),
            to_load: ToLoad::default(),
            to_read: VecDeque::new(),
            to_write: VecDeque::new(),
            flushes: VecDeque::new(),
            finished: Vec::new(),
            arrived: Vec::new(),
            spare: Spare::new(core.shape.block_bytes),
            core,
            depth,
            has_submitted: false,
            is_waiting: false,
            taken_at: None,
            inner,
        }
    }

    /// The same over any queue: all work is compiled here, once, and not for each kind of device.
    fn over_any(&mut self) -> &mut FtlQueue<dyn DeviceQueue + '_> {
        self
    }
}

impl FtlQueue<dyn DeviceQueue + '_> {
    /// Upkeep has to do something before this queue can go on.
    fn wait(&mut self) {
        self.port.wait(self.inner.id());
        self.is_waiting = true;
    }

    /// An operation has ended if nothing of it is left.
    #[inline]
    fn settle(&mut self, index: usize) {
        let operation = &self.operations[index];
        if operation.left > 0 {
            return;
        }
        let operation = self.operations.remove(index);
        if let Some(epoch) = operation.epoch
            && self.reads.end(epoch)
        {
            self.core.note_reads_ended();
        }
        self.finished.push(Completion {
            queue: self.inner.id(),
            tag: operation.tag,
            status: operation.status,
            at: self.taken_at.unwrap_or_else(|| self.inner.now()),
            result: 0,
            found: operation.found,
            data: operation.data,
        });
    }

    /// Ends the flushes whose commits are over.
    fn end_flushes(&mut self) {
        while let Some(&(index, ticket)) = self.flushes.front() {
            let is_over = self.core.is_committed(ticket);
            let (has_failed, is_starved) = (self.core.has_failed(), self.core.is_starved());
            if !is_over && !has_failed && !is_starved {
                self.wait();
                break;
            }
            self.flushes.pop_front();
            let operation = &mut self.operations[index];
            operation.left = 0;
            if !is_over {
                operation.status = match has_failed {
                    true => Status::WRITE_FAULT,
                    false => Status::CAPACITY_EXCEEDED,
                };
            }
            self.settle(index);
        }
    }

    /// Does what can be done now.
    fn go_on(&mut self) {
        if !self.flushes.is_empty() {
            self.end_flushes();
        }
        if !self.to_load.is_empty() {
            self.issue_loads();
        }
        if !self.to_read.is_empty() {
            self.issue_reads();
        }
        if !self.to_write.is_empty() {
            self.issue_writes();
        }
        if self.has_submitted {
            self.has_submitted = false;
            self.inner.ring();
        }
    }

    /// Sees to it that finished operations are asked for.
    fn announce(&self) {
        if !self.finished.is_empty() {
            self.announced.borrow_mut().push(self.inner.id());
        }
    }

    /// What is wrong with a command, if something is.
    fn refusal(&self, command: &Command, data: Option<&Buf>) -> Option<Status> {
        if command.nsid.0 != 1 {
            return Some(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        let (has_data, nlb) = match command.op {
            Op::Read { nlb, .. } | Op::Write { nlb, .. } | Op::Compare { nlb, .. } => (true, nlb),
            Op::Verify { nlb, .. } | Op::WriteZeroes { nlb, .. } => (false, nlb),
            Op::Flush | Op::Deallocate { .. } => return None,
            _ => return Some(Status::INVALID_OPCODE),
        };
        let end = command.op.first_block().checked_add(u64::from(nlb));
        if end.is_none_or(|end| end > u64::from(self.core.shape.logical_blocks)) {
            return Some(Status::LBA_OUT_OF_RANGE);
        }
        let wrong_length = data.is_some_and(|data| data.len() != self.core.shape.bytes(nlb));
        if nlb == 0 || (has_data && wrong_length) {
            return Some(Status::INVALID_FIELD);
        }
        None
    }

    /// Blocks of these ranges, by first block and number, hold nothing any more.
    fn clear(&mut self, mut operation: Operation, mut ranges: Vec<(u64, u64)>) {
        let trimmed = ranges.iter().map(|(_, count)| count).sum();
        Counters::add(&self.core.counters.trimmed, trimmed);
        // Blocks that are in several ranges count once.
        ranges.sort_unstable();
        let mut next = 0;
        for (first, count) in &mut ranges {
            let end = *first + *count;
            *first = next.max(*first);
            *count = end.saturating_sub(*first);
            next = next.max(end);
        }
        ranges.retain(|(_, count)| *count > 0);
        operation.first = 0;
        operation.left = ranges.iter().map(|(_, count)| *count as u32).sum();
        let index = self.operations.insert(operation);
        for (first, count) in &ranges {
            let part = Part {
                operation: index,
                at: *first as u32,
                count: *count as u32,
            };
            self.look_up(part, Want::Clear);
        }
        if ranges.is_empty() {
            self.settle(index);
        }
    }

    /// The ranges of a Dataset Management command, by first block and number.
    fn ranges(&self, ranges: u16, data: Option<&Buf>) -> Result<Vec<(u64, u64)>, Status> {
        let data = data.ok_or(Status::INVALID_FIELD)?;
        // Linux sends room for all 256 ranges, whatever the command says.
        let (list, _) = data.as_chunks::<{ size_of::<DatasetRange>() }>();
        let list = list
            .get(..usize::from(ranges))
            .ok_or(Status::INVALID_FIELD)?;
        let blocks = u64::from(self.core.shape.logical_blocks);
        let ranges = list
            .iter()
            .filter_map(|range| DatasetRange::read_from_bytes(range).ok())
            .map(|range| (range.slba.get(), u64::from(range.nlb.get())));
        let is_inside = |(first, count): &(u64, u64)| {
            first.checked_add(*count).is_some_and(|end| end <= blocks)
        };
        let ranges: Vec<_> = ranges.collect();
        match ranges.iter().all(is_inside) {
            true => Ok(ranges),
            false => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// Begins an operation that was taken.
    fn begin(&mut self, command: Command, tag: Tag, data: Option<Buf>) {
        let mut operation = Operation::new(tag, data);
        let refused = self.refusal(&command, operation.data.as_ref());
        let nlb = command.op.nlb();
        operation.first = command.op.first_block() as u32;
        if let Some(status) = refused {
            operation.status = status;
            self.settle_now(operation);
            return;
        }
        match command.op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => {
                operation.kind = match command.op {
                    Op::Read { .. } => Kind::Read,
                    Op::Compare { .. } => Kind::Compare,
                    _ => Kind::Verify,
                };
                operation.left = nlb;
                operation.found = Found::Nothing;
                operation.epoch = Some(self.reads.begin());
                let index = self.operations.insert(operation);
                self.look_up(Part::whole(index, nlb), Want::Read);
                if !self.to_load.is_empty() {
                    self.issue_loads();
                }
                self.issue_reads();
            }
            Op::Write { .. } => {
                operation.left = nlb;
                operation.found = Found::Work(nlb);
                let index = self.operations.insert(operation);
                self.look_up(Part::whole(index, nlb), Want::Write);
            }
            Op::WriteZeroes { .. } => {
                let first = u64::from(operation.first);
                self.clear(operation, vec![(first, nlb.into())]);
            }
            Op::Deallocate { ranges } => match self.ranges(ranges, operation.data.as_ref()) {
                Ok(ranges) => self.clear(operation, ranges),
                Err(status) => {
                    operation.status = status;
                    self.settle_now(operation);
                }
            },
            _ => {
                operation.left = 1;
                let ticket = self.core.ask_commit();
                let index = self.operations.insert(operation);
                self.flushes.push_back((index, ticket));
                self.wait();
            }
        }
    }

    /// See [`QueuePair::submit`].
    fn take(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.operations.len() + self.finished.len() >= self.depth as usize {
            let reason = RejectReason::QueueFull {
                queue: self.inner.id(),
                depth: self.depth,
            };
            return Err(Rejected { reason, data });
        }
        self.begin(command, tag, data);
        Ok(())
    }

    /// See [`QueuePair::ring`].
    fn ring_all(&mut self) {
        self.go_on();
        self.announce();
    }

    /// See [`QueuePair::poll`].
    fn hand_out(&mut self, done: &mut Vec<Completion>) -> usize {
        self.is_waiting = false;
        let mut arrived = std::mem::take(&mut self.arrived);
        self.inner.poll(&mut arrived);
        for completion in arrived.drain(..) {
            self.taken_at = Some(completion.at);
            self.land(completion);
        }
        self.taken_at = None;
        self.arrived = arrived;
        self.go_on();
        let count = self.finished.len();
        done.append(&mut self.finished);
        count
    }

    /// An operation has ended as it began.
    fn settle_now(&mut self, operation: Operation) {
        let index = self.operations.insert(operation);
        self.settle(index);
    }
}

impl<Q: DeviceQueue> DeviceQueue for FtlQueue<Q> {
    #[inline]
    fn id(&self) -> QueueId {
        self.inner.id()
    }

    #[inline]
    fn enter(&mut self, now: Nanos) {
        self.inner.enter(now);
    }
}

impl<Q: DeviceQueue> QueuePair for FtlQueue<Q> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.over_any().take(command, tag, data)
    }

    fn ring(&mut self) {
        self.over_any().ring_all();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        self.over_any().hand_out(done)
    }
}

impl<Q: ?Sized> FtlQueue<Q> {
    /// Runs `f` with the zones that this queue writes to.
    #[inline]
    fn with_writer<T>(&mut self, f: impl FnOnce(&mut Writer) -> T) -> T {
        match self.core.settings.placement {
            Placement::SharedAppend => f(&mut crate::sync::lock(&self.core.shared)),
            Placement::Write | Placement::Append => f(&mut self.writer),
        }
    }

    /// A command to a zone has ended.
    fn end_command(&mut self, zone: DataZone, has_failed: bool) {
        let over = self.with_writer(|writer| {
            let frontier = writer.zone(zone);
            frontier.in_flight -= 1;
            frontier.has_failed |= has_failed;
            match frontier.is_over() {
                true => writer.put_away(),
                false => None,
            }
        });
        if let Some(over) = over {
            self.core.hand_in(over);
        }
    }
}

/// The zone that the queue has not written full goes to others.
impl<Q: ?Sized> Drop for FtlQueue<Q> {
    fn drop(&mut self) {
        self.let_all_go();
        // What becomes of commands under way nobody will hear: their zones are given up.
        for flight in std::mem::take(&mut self.flights) {
            if let (_, Flight::Write { zone, .. }) = flight {
                self.end_command(zone, true);
            }
        }
        for frontier in std::mem::take(&mut self.writer).into_zones() {
            debug_assert_eq!(frontier.in_flight, 0, "commands have been ended");
            self.core.give_back(frontier);
        }
        self.core.leave();
    }
}
