//! Commands longer than a device takes: a queue pair over a queue pair.
//!
//! A device moves at most so many bytes with one command (MDTS). [`Splitting`] takes
//! commands of any length, on every transport, and sends them in parts:
//!
//! | command | parts |
//! | --- | --- |
//! | a read, a compare | all at once, as far as the queue has room |
//! | a read across the end of a zone, where the drive does not allow that (OZCS) | one for each zone |
//! | a write to a namespace without zones | all at once |
//! | a write to a zone | one after the other, and what changes the zone meanwhile waits |
//! | a write across the end of a zone | none: *Zone Boundary Error*, as from the drive |
//! | an append | none: it is refused, since other data could come between its parts |
//!
//! The parts of a write to a zone are in order also if the zone has a random write area: a
//! part that ends beyond the area commits what is before, and a part that came after it
//! could then be behind the write pointer.
//!
//! Each command completes once, when none of its parts is under way any more, with the
//! status of the first part, by address, that failed. The result is then the number of
//! blocks before that part: all of these were moved. Nothing else is begun after an error,
//! but parts that were under way by then may have been carried out.
//!
//! A command that fits goes to the device as it is. Data of parts is copied, since a buffer
//! belongs to one command: programs that want none of that plan with the limits of the device
//! ([`Splitting::get`]).

mod job;
mod zones;

use std::collections::VecDeque;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, DeviceQueue, Found, Nanos, Op, QueueId, QueuePair,
    RejectReason, Rejected, Tag,
};
use zonelab_nvme::Status;

use job::{Job, Part};
use zones::{Changes, ZoneKey};

/// What was sent under a tag of ours.
#[derive(Debug)]
enum Sent {
    /// Nothing: the next tag without.
    Free(Option<u32>),
    /// A command of the program, whose tag this is.
    Whole(Tag),
    /// A part of a job: its first block in the command, and blocks.
    Part { job: u32, from: u32, nlb: u32 },
}

/// A queue pair that takes commands longer than the one below. See the [module](self).
#[derive(Debug)]
pub struct Splitting<Q> {
    queue: Q,
    id: QueueId,
    info: DeviceInfo,
    depth: u32,
    /// By tag on the queue below.
    sent: Vec<Sent>,
    free: Option<u32>,
    jobs: Vec<Option<Job>>,
    /// Jobs that have parts to send, the oldest first.
    sending: VecDeque<u32>,
    /// A part of the first of them that the queue had no room for.
    unsent: Option<(Part, Command, Option<Buf>)>,
    /// Zones that are written to in order, and by which job.
    busy: Vec<(ZoneKey, u32)>,
    /// Commands that wait for such a zone, in the order of their submission.
    held: VecDeque<(Command, Tag, Option<Buf>)>,
    /// Commands that have not completed, of all kinds.
    taken: u32,
    /// Completions that no device has a part in.
    local: Vec<Completion>,
    /// Completions of the queue below, between two lines of `poll`.
    done: Vec<Completion>,
    disconnected: bool,
}

impl<Q: QueuePair> Splitting<Q> {
    /// Takes a queue pair over. It is called `id` in completions of commands that never
    /// reach it. At most `depth` commands are taken at a time, whatever their length; at
    /// least 1.
    ///
    /// No command may be in flight on the queue pair.
    #[must_use]
    pub fn new(queue: Q, id: QueueId, depth: u16) -> Self {
        let info = DeviceInfo {
            max_transfer_bytes: u32::MAX,
            ..queue.info().clone()
        };
        Self {
            queue,
            id,
            info,
            depth: u32::from(depth.max(1)),
            sent: Vec::new(),
            free: None,
            jobs: Vec::new(),
            sending: VecDeque::new(),
            unsent: None,
            busy: Vec::new(),
            held: VecDeque::new(),
            taken: 0,
            local: Vec::new(),
            done: Vec::new(),
            disconnected: false,
        }
    }

    /// The queue pair below, with the limits of the device.
    #[must_use]
    pub const fn get(&self) -> &Q {
        &self.queue
    }

    /// Gives the queue pair back. Parts may still be in flight on it.
    #[must_use]
    pub fn into_inner(self) -> Q {
        self.queue
    }

    /// Sends a command of the program as it is, or as a job.
    fn start(
        &mut self,
        command: Command,
        tag: Tag,
        data: Option<Buf>,
    ) -> Result<(), (RejectReason, Option<Buf>)> {
        let plan = job::plan(self.queue.info(), &command, data.as_ref());
        match plan {
            job::Plan::Whole => self.send(Sent::Whole(tag), command, data),
            job::Plan::Fails(status) => {
                self.fail(tag, status, data);
                Ok(())
            }
            job::Plan::Parts(limits) => {
                let job = Job::new((command, tag), limits, data);
                let zone = job.zone();
                let index = self.keep(job);
                if let Some(zone) = zone {
                    self.busy.push((zone, index));
                }
                self.sending.push_back(index);
                self.send_parts();
                Ok(())
            }
        }
    }

    fn keep(&mut self, job: Job) -> u32 {
        let free = self.jobs.iter().position(Option::is_none);
        let index = free.unwrap_or(self.jobs.len());
        match self.jobs.get_mut(index) {
            Some(place) => *place = Some(job),
            None => self.jobs.push(Some(job)),
        }
        // Fits: there are at most as many as `depth`.
        index as u32
    }

    /// Hands something to the queue below, under a tag that tells what it is.
    fn send(
        &mut self,
        sent: Sent,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), (RejectReason, Option<Buf>)> {
        let tag = self.free.unwrap_or(self.sent.len() as u32);
        if let Err(rejected) = self.queue.submit(command, Tag(tag), data) {
            return Err((rejected.reason, rejected.data));
        }
        match self.sent.get_mut(tag as usize) {
            Some(place) => {
                if let Sent::Free(next) = core::mem::replace(place, sent) {
                    self.free = next;
                }
            }
            None => self.sent.push(sent),
        }
        Ok(())
    }

    /// Sends parts of jobs, as far as the queue below has room.
    fn send_parts(&mut self) {
        while let Some(&index) = self.sending.front() {
            let Some(job) = self.jobs.get_mut(index as usize).and_then(Option::as_mut) else {
                self.sending.pop_front();
                continue;
            };
            let unsent = self.unsent.take();
            let part = unsent.or_else(|| {
                let part = job.next_part()?;
                let (command, data) = job.make(part);
                Some((part, command, data))
            });
            let Some((part, command, data)) = part else {
                // It has none for now: of one in order, the next comes when this is over.
                self.sending.pop_front();
                continue;
            };
            let sent = Sent::Part {
                job: index,
                from: part.from,
                nlb: part.nlb,
            };
            match self.send(sent, command, data) {
                Ok(()) => {
                    if let Some(Some(job)) = self.jobs.get_mut(index as usize) {
                        job.sent(part);
                    }
                }
                Err((RejectReason::QueueFull { .. }, data)) => {
                    self.unsent = Some((part, command, data));
                    return;
                }
                Err(_) => {
                    self.disconnected = true;
                    if let Some(Some(job)) = self.jobs.get_mut(index as usize) {
                        job.fail(part.from, Status::HOST_PATHING_ERROR);
                    }
                    self.sending.pop_front();
                    self.end_if_over(index);
                }
            }
        }
    }

    /// What is held and need not wait any more.
    fn release(&mut self) {
        let mut later = VecDeque::new();
        let mut waiting: Vec<Changes> = Vec::new();
        while let Some((command, tag, data)) = self.held.pop_front() {
            let changes = zones::changes(self.queue.info(), &command);
            let must_wait =
                self.is_busy(changes) || waiting.iter().any(|earlier| earlier.meets(changes));
            if must_wait {
                waiting.push(changes);
                later.push_back((command, tag, data));
                continue;
            }
            match self.start(command, tag, data) {
                Ok(()) => {}
                Err((RejectReason::QueueFull { .. }, data)) => {
                    waiting.push(changes);
                    later.push_back((command, tag, data));
                }
                Err((_, data)) => self.fail(tag, Status::HOST_PATHING_ERROR, data),
            }
        }
        self.held = later;
    }

    fn is_busy(&self, changes: Changes) -> bool {
        self.busy.iter().any(|(zone, _)| changes.meets_zone(*zone))
    }

    /// A command of the program has failed before the device heard of it.
    fn fail(&mut self, tag: Tag, status: Status, data: Option<Buf>) {
        self.local.push(Completion {
            queue: self.id,
            tag,
            status,
            at: Nanos::ZERO,
            result: 0,
            found: Found::Unknown,
            data,
        });
    }

    /// Completes a job none of whose parts is under way.
    fn end_if_over(&mut self, index: u32) {
        let Some(place) = self.jobs.get_mut(index as usize) else {
            return;
        };
        let Some(job) = place.take_if(|job| job.is_over()) else {
            return;
        };
        self.busy.retain(|(_, of)| *of != index);
        if self.sending.front() == Some(&index) {
            self.unsent = None;
        }
        self.sending.retain(|of| *of != index);
        let end = job.end();
        self.local.push(Completion {
            queue: self.id,
            tag: end.tag,
            status: end.status,
            at: Nanos::ZERO,
            result: end.moved,
            found: end.found,
            data: end.data,
        });
    }

    /// Something has completed on the queue below.
    fn arrived(&mut self, completion: Completion, done: &mut Vec<Completion>) {
        let Tag(tag) = completion.tag;
        let free = Sent::Free(self.free);
        let Some(place) = self.sent.get_mut(tag as usize) else {
            return;
        };
        match core::mem::replace(place, free) {
            // One that was not in flight is nobody's.
            Sent::Free(next) => *place = Sent::Free(next),
            Sent::Whole(tag) => {
                self.free = Some(completion.tag.0);
                self.taken = self.taken.saturating_sub(1);
                done.push(Completion { tag, ..completion });
            }
            Sent::Part { job, from, nlb } => {
                self.free = Some(completion.tag.0);
                if let Some(Some(of)) = self.jobs.get_mut(job as usize) {
                    of.arrived((from, nlb), completion);
                    if of.zone().is_some() && !of.is_over() {
                        self.sending.push_back(job);
                    }
                }
                self.end_if_over(job);
            }
        }
    }
}

impl<Q: QueuePair> QueuePair for Splitting<Q> {
    /// That of the queue below, but that transfers have no limit.
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    /// # Errors
    /// [`RejectReason::CannotSplit`] for an append of more than
    /// [`DeviceInfo::max_append_bytes`]; else as of the queue below.
    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.taken >= self.depth {
            let (queue, depth) = (self.id, self.depth);
            let reason = RejectReason::QueueFull { queue, depth };
            return Err(Rejected { reason, data });
        }
        if let Some(reason) = too_long(&self.info, &command) {
            return Err(Rejected { reason, data });
        }
        let changes = zones::changes(self.queue.info(), &command);
        let mut earlier = self.held.iter();
        let must_wait = self.is_busy(changes)
            || earlier.any(|(of, ..)| zones::changes(self.queue.info(), of).meets(changes));
        if must_wait && !self.disconnected {
            self.held.push_back((command, tag, data));
        } else if let Err((reason, data)) = self.start(command, tag, data) {
            return Err(Rejected { reason, data });
        }
        self.taken += 1;
        Ok(())
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        let mut arrived = core::mem::take(&mut self.done);
        self.queue.poll(&mut arrived);
        for completion in arrived.drain(..) {
            self.arrived(completion, done);
        }
        self.done = arrived;
        if !self.sending.is_empty() || !self.held.is_empty() {
            self.send_parts();
            self.release();
            self.queue.ring();
        }
        if !self.local.is_empty() {
            let at = self.queue.now();
            self.taken = self.taken.saturating_sub(self.local.len() as u32);
            done.extend(self.local.drain(..).map(|local| Completion { at, ..local }));
        }
        done.len() - before
    }
}

impl<Q: DeviceQueue> DeviceQueue for Splitting<Q> {
    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn enter(&mut self, now: Nanos) {
        self.queue.enter(now);
    }
}

/// Why an append cannot be taken, if it is too long.
fn too_long(info: &DeviceInfo, command: &Command) -> Option<RejectReason> {
    let Op::Append { nlb, .. } = command.op else {
        return None;
    };
    let namespace = info.namespace(command.nsid)?;
    let bytes = u64::from(nlb) * u64::from(namespace.lba_bytes);
    let most = info.max_append_bytes;
    (bytes > u64::from(most)).then_some(RejectReason::CannotSplit { bytes, most })
}
