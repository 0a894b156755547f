//! Writes that last: a queue pair over a queue pair.
//!
//! A device with a volatile cache can lose what was written until a Flush has ended.
//! [`WriteThrough`] follows each write with a Flush, and the write completes when that has: what
//! a kernel does for `O_SYNC` where the device cannot force unit access. All else goes on as it
//! is.

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, DeviceQueue, NamespaceId, Nanos, Op, QueueId, QueuePair,
    RejectReason, Rejected, Tag,
};
use zonelab_nvme::Status;

/// The bit that tells the tag of a Flush from that of its write.
const FLUSH: u32 = 1 << 31;

/// What is under way under a tag of the program.
#[derive(Debug, Default)]
enum Place {
    /// Nothing that has to last.
    #[default]
    Other,
    /// A write to this namespace.
    Write(NamespaceId),
    /// A write that has completed, and its Flush is to be sent.
    Unsent(NamespaceId, Completion),
    /// A write that has completed, and whose Flush has not.
    Flushed(Completion),
}

/// A queue pair whose writes last: each completes with a Flush behind it.
#[derive(Debug)]
pub struct WriteThrough<Q> {
    queue: Q,
    /// By the tags of the program.
    places: Vec<Place>,
    /// Writes whose Flush the queue had no room for.
    unsent: Vec<u32>,
    /// Completions of the queue below, between two lines of `poll`.
    arrived: Vec<Completion>,
    /// A Flush was sent of which the device has not been told.
    has_sent: bool,
}

impl<Q: QueuePair> WriteThrough<Q> {
    /// Takes a queue pair over, on which no command may be in flight. Tags of the program are
    /// below 2^31.
    #[must_use]
    pub const fn new(queue: Q) -> Self {
        Self {
            queue,
            places: Vec::new(),
            unsent: Vec::new(),
            arrived: Vec::new(),
            has_sent: false,
        }
    }

    /// Something has completed on the queue below.
    fn arrive(&mut self, completion: Completion, done: &mut Vec<Completion>) {
        let Tag(tag) = completion.tag;
        let Some(place) = self.places.get_mut((tag & !FLUSH) as usize) else {
            return done.push(completion);
        };
        match core::mem::take(place) {
            Place::Flushed(write) if tag & FLUSH != 0 => done.push(Completion {
                at: completion.at,
                status: completion.status,
                ..write
            }),
            Place::Write(nsid) if completion.status.is_success() => {
                *place = Place::Unsent(nsid, completion);
                self.flush(tag, done);
            }
            _ => done.push(completion),
        }
    }

    /// Sends the Flush of a write, now or when there is room.
    fn flush(&mut self, tag: u32, done: &mut Vec<Completion>) {
        let Some(place) = self.places.get_mut(tag as usize) else {
            return;
        };
        let Place::Unsent(nsid, write) = core::mem::take(place) else {
            return;
        };
        let command = Command::on(nsid, Op::Flush);
        match self.queue.submit(command, Tag(tag | FLUSH), None) {
            Ok(()) => {
                *place = Place::Flushed(write);
                self.has_sent = true;
            }
            Err(Rejected {
                reason: RejectReason::QueueFull { .. },
                ..
            }) => {
                *place = Place::Unsent(nsid, write);
                self.unsent.push(tag);
            }
            Err(_) => done.push(Completion {
                status: Status::HOST_PATHING_ERROR,
                ..write
            }),
        }
    }
}

impl<Q: QueuePair> QueuePair for WriteThrough<Q> {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let is_write = matches!(command.op, Op::Write { .. } | Op::Append { .. });
        self.queue.submit(command, tag, data)?;
        let index = tag.0 as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, Place::default);
        }
        self.places[index] = match is_write {
            true => Place::Write(command.nsid),
            false => Place::Other,
        };
        Ok(())
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        let mut arrived = core::mem::take(&mut self.arrived);
        self.queue.poll(&mut arrived);
        for tag in core::mem::take(&mut self.unsent) {
            self.flush(tag, done);
        }
        for completion in arrived.drain(..) {
            self.arrive(completion, done);
        }
        self.arrived = arrived;
        if core::mem::take(&mut self.has_sent) {
            self.queue.ring();
        }
        done.len() - before
    }
}

impl<Q: DeviceQueue> DeviceQueue for WriteThrough<Q> {
    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn enter(&mut self, now: Nanos) {
        self.queue.enter(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zonelab_device::{Found, Lba};

    use super::*;

    /// A device that completes one command at a time, in an order that is drawn.
    struct Fake {
        info: DeviceInfo,
        depth: usize,
        in_flight: Vec<(Op, Tag)>,
        now: u64,
        order: Vec<usize>,
        flushes: u32,
        fails: Option<Op>,
    }

    impl QueuePair for Fake {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn now(&self) -> Nanos {
            Nanos(self.now)
        }

        fn submit(
            &mut self,
            command: Command,
            tag: Tag,
            data: Option<Buf>,
        ) -> Result<(), Rejected> {
            if self.in_flight.len() == self.depth {
                let depth = self.depth as u32;
                let reason = RejectReason::QueueFull {
                    queue: QueueId(0),
                    depth,
                };
                return Err(Rejected { reason, data });
            }
            self.flushes += u32::from(command.op == Op::Flush);
            self.in_flight.push((command.op, tag));
            Ok(())
        }

        fn ring(&mut self) {}

        fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
            if self.in_flight.is_empty() {
                return 0;
            }
            let at = self.order.pop().unwrap_or(0) % self.in_flight.len();
            let (op, tag) = self.in_flight.remove(at);
            self.now += 10;
            done.push(Completion {
                queue: QueueId(0),
                tag,
                status: match self.fails == Some(op) {
                    true => Status::INTERNAL_ERROR,
                    false => Status::SUCCESS,
                },
                at: Nanos(self.now),
                result: 7,
                found: Found::Unknown,
                data: None,
            });
            1
        }
    }

    fn over(depth: usize, order: Vec<usize>) -> WriteThrough<Fake> {
        WriteThrough::new(Fake {
            info: DeviceInfo {
                model: String::new(),
                namespaces: Vec::new(),
                max_transfer_bytes: u32::MAX,
                max_append_bytes: u32::MAX,
                has_volatile_cache: true,
            },
            depth,
            in_flight: Vec::new(),
            now: 0,
            order,
            flushes: 0,
            fails: None,
        })
    }

    const WRITE: Op = Op::Write {
        slba: Lba(0),
        nlb: 1,
    };
    const READ: Op = Op::Read {
        slba: Lba(0),
        nlb: 1,
    };

    fn all(queue: &mut WriteThrough<Fake>) -> Vec<Completion> {
        let mut done = Vec::new();
        while !queue.queue.in_flight.is_empty() || !queue.unsent.is_empty() {
            queue.poll(&mut done);
        }
        done
    }

    proptest! {
        /// Each command completes once, each write after a Flush of its own that began behind it.
        #[test]
        fn writes_complete_when_they_last(
            ops in prop::collection::vec(any::<bool>(), 1..8),
            order in prop::collection::vec(any::<usize>(), 0..20),
            room in 0_usize..3,
        ) {
            let mut queue = over(ops.len() + room, order);
            for (tag, &is_write) in (0..).zip(&ops) {
                let op = if is_write { WRITE } else { READ };
                queue.submit(Command::new(op), Tag(tag), None).unwrap();
            }
            let done = all(&mut queue);
            let mut tags: Vec<u32> = done.iter().map(|completion| completion.tag.0).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..ops.len() as u32).collect::<Vec<_>>());
            let writes = ops.iter().filter(|&&is_write| is_write).count() as u32;
            prop_assert_eq!(queue.queue.flushes, writes);
            prop_assert!(done.iter().all(|completion| completion.result == 7));
        }
    }

    #[test]
    fn a_write_that_fails_is_not_flushed_and_a_flush_that_fails_fails_its_write() {
        for (fails, flushes) in [(WRITE, 0), (Op::Flush, 1)] {
            let mut queue = over(1, Vec::new());
            queue.queue.fails = Some(fails);
            queue.submit(Command::new(WRITE), Tag(0), None).unwrap();
            let done = all(&mut queue);
            assert_eq!(done.len(), 1);
            assert_eq!(done[0].status, Status::INTERNAL_ERROR);
            assert_eq!(queue.queue.flushes, flushes);
        }
    }
}
