//! The block layer of a host: requests of many queues, one scheduler, one device.
//!
//! A [`BlockLayer`] stands where the block layer of a kernel does, between the
//! queues that programs use and the device. It keeps the requests that its
//! [`Scheduler`] orders, makes one command of those that were merged, and gives
//! each request a completion of its own. It is sans-I/O: whoever drives it
//! hands requests in ([`BlockLayer::insert`]), takes commands out
//! ([`BlockLayer::next`]), submits them to a device of any kind under the tag
//! that comes with them, and hands back what completed
//! ([`BlockLayer::completed`]).
//!
//! The scheduler can be replaced while requests are under way
//! ([`BlockLayer::switch_to`]): as in Linux, the queue stands still until the
//! device is idle, and what waits goes over to the new one.
//!
//! [`Scheduled`] is any queue pair of one program with a scheduler in front,
//! [`Splitting`](split::Splitting) one that takes commands of any length,
//! [`WriteThrough`] one whose writes last when they have completed. An emulated
//! drive (crate `zonelab-sim`) stands behind a block layer with what
//! that costs the host.

mod scheduled;
pub mod split;
mod write_through;

use slab::Slab;
use zonelab_device::{Buf, Command, Completion, Nanos, Op, QueueId, Tag};

use crate::scheduler::{RequestId, Scheduler};

pub use scheduled::Scheduled;
pub use write_through::WriteThrough;

/// How many requests of a queue went in, and how many of them were merged into
/// the command of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCount {
    /// Requests whose commands were dispatched.
    pub requests: u64,
    /// Of these, requests that caused no command of their own.
    pub merged: u64,
}

impl std::ops::AddAssign for MergeCount {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.merged += other.merged;
    }
}

/// A command for the device.
#[derive(Debug)]
pub struct Issue {
    /// The queue of its first request.
    pub queue: QueueId,
    /// What it is to be called on the device.
    pub tag: Tag,
    /// What to do.
    pub command: Command,
    /// Its data, if its requests have some.
    pub data: Option<Buf>,
    /// Whether it carries several requests.
    pub is_merged: bool,
}

/// Requests, a scheduler, and what is in flight.
pub struct BlockLayer {
    scheduler: Box<dyn Scheduler>,
    /// Takes over when nothing is in flight.
    successor: Option<Box<dyn Scheduler>>,
    requests: Slab<Request>,
    commands: Slab<InFlight>,
    /// Requests of the command being dispatched.
    carried: Vec<RequestId>,
    /// By queue.
    merges: Vec<MergeCount>,
}

/// A place in a slab as the number that stands for it.
#[inline]
fn number(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 commands are under way")
}

/// A request that waits or is under way.
#[derive(Debug)]
struct Request {
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
    /// The request behind it in the same command.
    next: Option<RequestId>,
}

/// A command on the device.
#[derive(Debug)]
struct InFlight {
    command: Command,
    first: RequestId,
    is_merged: bool,
}

impl BlockLayer {
    /// A block layer with a scheduler.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            successor: None,
            requests: Slab::default(),
            commands: Slab::default(),
            carried: Vec::new(),
            merges: Vec::new(),
        }
    }

    /// Name of the scheduler in use.
    #[must_use]
    pub fn scheduler_name(&self) -> &'static str {
        self.scheduler.name()
    }

    /// Lets another scheduler take over, with all that waits, as soon as
    /// nothing is in flight. Until then nothing is dispatched.
    pub fn switch_to(&mut self, now: Nanos, scheduler: Box<dyn Scheduler>) {
        self.successor = Some(scheduler);
        self.switch_if_idle(now);
    }

    fn switch_if_idle(&mut self, now: Nanos) {
        if self.commands.is_empty()
            && let Some(successor) = self.successor.take()
        {
            let mut waiting = Vec::with_capacity(self.scheduler.waiting());
            self.scheduler.drain(&mut waiting);
            self.scheduler = successor;
            for (id, command) in waiting {
                self.scheduler.insert(now, id, command);
            }
        }
    }

    /// Takes a request.
    #[inline]
    pub fn insert(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) {
        let id = RequestId(number(self.requests.insert(Request {
            queue,
            tag,
            command,
            data,
            next: None,
        })));
        self.scheduler.insert(now, id, command);
    }

    /// The next command for the device, if one may go now. Ask until there is none.
    #[inline]
    pub fn next(&mut self, now: Nanos) -> Option<Issue> {
        if self.successor.is_some() {
            return None;
        }
        self.carried.clear();
        let command = self.scheduler.dispatch(now, &mut self.carried)?;
        let (&first, rest) = self
            .carried
            .split_first()
            .expect("a command carries a request");
        let mut last = first;
        for &id in rest {
            self.requests[last.0 as usize].next = Some(id);
            last = id;
        }
        let is_merged = !rest.is_empty();
        let queue = self.requests[first.0 as usize].queue;
        self.count_merges();
        let data = if is_merged {
            self.gather()
        } else {
            self.requests[first.0 as usize].data.take()
        };
        let tag = Tag(number(self.commands.insert(InFlight {
            command,
            first,
            is_merged,
        })));
        Some(Issue {
            queue,
            tag,
            command,
            data,
            is_merged,
        })
    }

    fn count_merges(&mut self) {
        for (n, id) in self.carried.iter().enumerate() {
            let queue = usize::from(self.requests[id.0 as usize].queue.0);
            if self.merges.len() <= queue {
                self.merges.resize(queue + 1, MergeCount::default());
            }
            self.merges[queue].requests += 1;
            self.merges[queue].merged += u64::from(n > 0);
        }
    }

    /// One buffer from those of several requests, in their order; they keep
    /// theirs. `None` if none of them has one.
    #[cold]
    fn gather(&mut self) -> Option<Buf> {
        let mut bytes = Vec::new();
        for id in &self.carried {
            if let Some(data) = &self.requests[id.0 as usize].data {
                bytes.extend_from_slice(data);
            }
        }
        (!bytes.is_empty()).then(|| Buf::from(bytes))
    }

    /// A command has completed on the device: adds the completions of its
    /// requests to `done`, all with its status and time.
    #[inline]
    pub fn completed(&mut self, now: Nanos, completion: Completion, done: &mut Vec<Completion>) {
        let Completion {
            tag,
            status,
            at,
            result,
            found,
            data,
            ..
        } = completion;
        let InFlight {
            command,
            first,
            is_merged,
        } = self.commands.remove(tag.0 as usize);
        self.scheduler.completed(now, &command);
        let mut whole = data;
        let mut offset = 0;
        let mut next = Some(first);
        while let Some(id) = next {
            let request = self.requests.remove(id.0 as usize);
            next = request.next;
            let (queue, tag) = (request.queue, request.tag);
            let data = if is_merged {
                scatter(request, whole.as_ref(), &mut offset)
            } else {
                whole.take()
            };
            done.push(Completion {
                queue,
                tag,
                status,
                at,
                result,
                found,
                data,
            });
        }
        self.switch_if_idle(now);
    }

    /// The time that the scheduler asks for has come.
    pub fn timer(&mut self, now: Nanos) {
        self.scheduler.timer(now);
    }

    /// When the scheduler asks to be told the time ([`Self::timer`]).
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Nanos> {
        self.scheduler.next_timer()
    }

    /// Commands on the device.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.commands.len()
    }

    /// What has been merged of a queue's requests so far.
    #[must_use]
    pub fn merges(&self, queue: QueueId) -> MergeCount {
        let count = self.merges.get(usize::from(queue.0));
        count.copied().unwrap_or_default()
    }
}

/// The buffer of one request of a merged command; of a read with its part of
/// the data.
fn scatter(request: Request, whole: Option<&Buf>, offset: &mut usize) -> Option<Buf> {
    let mut own = request.data?;
    let end = *offset + own.len();
    if let (Op::Read { .. }, Some(part)) = (
        request.command.op,
        whole.and_then(|whole| whole.get(*offset..end)),
    ) {
        own.copy_from_slice(part);
    }
    *offset = end;
    Some(own)
}
