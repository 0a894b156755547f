//! I/O commands: the way to the drive, and the way back.

use zonelab_device::{Buf, Command, Completion, Found, NamespaceId, Nanos, Op, QueueId, Tag};
use zonelab_nvme::Status;
use zonelab_nvme::command::DatasetRange;
use zonelab_nvme::log::{ErrorEntry, ParameterErrorLocation};
use zonelab_nvme::queue::{CompletionEntry, IoOpcode, SubmissionEntry};
use zonelab_nvme::status::StatusCodeType;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::DriveModel;
use zonelab_ssd::config::DataStore;

use super::failure::{Failure, byte};
use super::plan::{Plan, Transfer};
use super::state::Life;
use super::{Done, Layer, QueueHandle, Subsystem};

/// A command in the drive.
#[derive(Debug)]
pub(super) struct Flight {
    queue: u32,
    cid: u16,
    step: Step,
    nsid: u32,
    op: Op,
    /// Placement identifier of a write.
    placement: u16,
    /// Bytes of data that the drive has for it.
    bytes: u32,
    /// When it came.
    submitted: Nanos,
    /// The result and the data of the first of two steps.
    result: u64,
    spent: Option<Buf>,
}

/// What happens when the drive is done.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The command completes.
    Last,
    /// A flush follows: a write with force unit access.
    ThenFlush,
    /// A flush of all namespaces of the host: that of the next one follows.
    EachNamespace,
    /// A controller with this slot is one flush nearer to its shutdown.
    Shutdown(u32),
}

/// Whether a command is a Flush of all namespaces.
pub(super) fn is_of_all(entry: &SubmissionEntry) -> bool {
    entry.nsid.get() == u32::MAX && entry.cdw0.opc() == IoOpcode::FLUSH.0
}

/// Takes the blocks out of ranges that are only hints.
fn empty_ranges(data: &mut [u8]) {
    let (ranges, _) = data.as_chunks_mut::<{ size_of::<DatasetRange>() }>();
    for range in ranges {
        if let Ok(range) = DatasetRange::mut_from_bytes(range) {
            range.nlb = 0.into();
        }
    }
}

impl Flight {
    /// Whether it is a command of a host in that namespace.
    pub(super) fn is_in(&self, nsid: u32) -> bool {
        self.nsid == nsid && !matches!(self.step, Step::Shutdown(_))
    }

    /// Its queue.
    pub(super) const fn queue(&self) -> u32 {
        self.queue
    }
}

impl<L: Layer> Subsystem<L> {
    /// Checks an I/O command and hands it to the drive.
    #[inline]
    pub(super) fn io(
        &mut self,
        (queue, slot): (u32, u32),
        entry: &SubmissionEntry,
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> Result<(), Failure> {
        let (plan, is_hint) = self.checked(slot, entry)?;
        if self.hold((queue, slot), (entry, &plan), data, data_len) {
            return Ok(());
        }
        let came = self.now;
        self.start((queue, came), (entry, &plan, is_hint), data, data_len)
    }

    /// Hands a command that has passed its checks, and came at that time, to the drive.
    #[inline]
    pub(super) fn start(
        &mut self,
        (queue, came): (u32, Nanos),
        (entry, plan, is_hint): (&SubmissionEntry, &Plan, bool),
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> Result<(), Failure> {
        let slot = self.queues.at(queue).controller;
        let caches_writes = self.controllers.at(slot).features.caches_writes();
        let mut payload = self.payload(plan.transfer, data, data_len)?;
        if let (Op::Deallocate { .. }, Some(ranges)) = (plan.op, &mut payload) {
            match is_hint {
                true => empty_ranges(ranges),
                false => self.check_ranges(ranges)?,
            }
        }
        let is_cached = self.has_volatile_cache();
        let step = match plan.op {
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. }
                if is_cached && (plan.fua || !caches_writes) =>
            {
                Step::ThenFlush
            }
            Op::Flush if is_of_all(entry) => Step::EachNamespace,
            _ => Step::Last,
        };
        let nsid = match step {
            Step::EachNamespace => self.next_namespace(slot, 0).unwrap_or(0),
            _ => entry.nsid.get(),
        };
        self.launch(
            Flight {
                queue,
                cid: entry.cdw0.cid(),
                step,
                nsid,
                op: plan.op,
                placement: plan.placement,
                bytes: payload.as_ref().map_or(0, |data| data.len() as u32),
                submitted: came,
                result: 0,
                spent: None,
            },
            payload,
        );
        Ok(())
    }

    /// The buffer that goes to the drive with a command.
    #[inline]
    fn payload(
        &mut self,
        transfer: Transfer,
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> Result<Option<Buf>, Failure> {
        let sent = data.as_ref().map_or(0, |data| data.len() as u64);
        let (from_host, to_host) = match transfer {
            Transfer::None => (0, 0),
            Transfer::FromHost(bytes) => (bytes, sent),
            Transfer::AtLeastFromHost(bytes) => (bytes.max(sent), sent),
            Transfer::ToHost(bytes) => (0, bytes),
        };
        let room = match transfer {
            // For data from the host, its length is that of the data.
            Transfer::FromHost(_) | Transfer::AtLeastFromHost(_) => sent,
            _ => u64::from(data_len),
        };
        if sent != from_host || room != to_host {
            return Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8));
        }
        Ok(match transfer {
            Transfer::None => None,
            Transfer::FromHost(_) | Transfer::AtLeastFromHost(_) => data.take(),
            // Fits: it is at most the largest transfer.
            Transfer::ToHost(bytes) if self.drive.drive().config().data == DataStore::Memory => {
                Some(self.pool.take(bytes as usize))
            }
            // The drive leaves the buffer as it is.
            Transfer::ToHost(bytes) => Some(self.pool.take_zeroed(bytes as usize)),
        })
    }

    /// Hands a command to the drive.
    #[inline]
    fn launch(&mut self, flight: Flight, payload: Option<Buf>) {
        let queue = flight.queue;
        let command = Command::on(NamespaceId(flight.nsid), flight.op).placed(flight.placement);
        if self.flights.is_empty() {
            self.counters.busy_since = Some(self.now);
        }
        let qid = match flight.step {
            Step::Shutdown(_) => 0,
            _ => {
                let queue = self.queues.at(queue);
                queue.in_drive += 1;
                queue.drive_bytes += u64::from(flight.bytes);
                queue.qid
            }
        };
        let slot = self.flights.insert(flight);
        self.hand_over(self.now, QueueId(qid), slot, command, payload);
    }

    /// Hands a step of a flight to the drive; what it does not take ends.
    #[inline]
    fn hand_over(
        &mut self,
        now: Nanos,
        queue: QueueId,
        slot: u32,
        command: Command,
        payload: Option<Buf>,
    ) {
        // The drive may have been driven on by its owner.
        let now = now.max(self.drive.drive().now());
        let taken = self.give(now, queue, Tag(slot), command, payload);
        if let Err(rejected) = taken {
            self.turned_away.push(Completion {
                queue,
                tag: Tag(slot),
                status: Status::NAMESPACE_NOT_READY,
                at: now,
                result: 0,
                found: Found::Unknown,
                data: rejected.data,
            });
        }
    }

    /// Flushes every namespace for the shutdown of a controller. Returns the
    /// number of flushes; each of them calls `Subsystem::shutdown_goes_on`.
    pub(super) fn flush_all(&mut self, slot: u32) -> u32 {
        if !self.has_volatile_cache() || self.format.is_some() {
            return 0;
        }
        let mut flushes = 0;
        for nsid in self.namespace_ids() {
            self.launch(
                Flight {
                    queue: 0,
                    cid: 0,
                    step: Step::Shutdown(slot),
                    nsid: nsid.0,
                    op: Op::Flush,
                    placement: 0,
                    bytes: 0,
                    submitted: self.now,
                    result: 0,
                    spent: None,
                },
                None,
            );
            flushes += 1;
        }
        flushes
    }

    /// Forgets the flushes that a controller waits for.
    pub(super) fn forget_shutdown(&mut self, slot: u32) {
        let waiting = |flight: &Flight| flight.step == Step::Shutdown(slot);
        let slots: Vec<u32> = self
            .flights
            .iter()
            .filter(|(_, flight)| waiting(flight))
            .map(|(index, _)| index)
            .collect();
        for index in slots {
            // A slot that no controller has.
            self.flights.at(index).step = Step::Shutdown(u32::MAX);
        }
    }

    /// The completion of a step of a command was lost.
    pub(super) fn swallowed(&mut self, slot: u32) {
        if self.flights.get_mut(slot).is_none() {
            return;
        }
        let flight = self.flights.remove(slot);
        self.account(&flight, self.now, Status::ABORTED_BY_HOST);
        if let Some(spent) = flight.spent {
            self.pool.give(spent);
        }
        match flight.step {
            // No host waits for a flush of the controller itself.
            Step::Shutdown(controller) => self.shutdown_goes_on(controller),
            _ => self.leave(flight.queue, flight.bytes),
        }
        if !self.preemptions.is_empty() {
            self.preemptions_go_on(slot);
        }
    }

    /// The drive is done with a step of a command. `until` is how far it has come.
    #[inline]
    pub(super) fn completed(
        &mut self,
        mut completion: Completion,
        until: Nanos,
        done: &mut Vec<Done>,
    ) {
        let slot = completion.tag.0;
        self.now = self.now.max(completion.at);
        let Some(flight) = self.flights.get_mut(slot) else {
            return;
        };
        if flight.step == Step::ThenFlush && completion.status.is_success() {
            flight.step = Step::Last;
            flight.result = completion.result;
            flight.spent = completion.data;
            let flush = Command::on(NamespaceId(flight.nsid), Op::Flush);
            return self.hand_over(until, completion.queue, slot, flush, None);
        }
        if flight.step == Step::EachNamespace && completion.status.is_success() {
            let of = (flight.queue, flight.nsid);
            if let Some(next) = self.next_of_flush(of) {
                self.flights.at(slot).nsid = next;
                let flush = Command::on(NamespaceId(next), Op::Flush);
                return self.hand_over(until, completion.queue, slot, flush, None);
            }
        }
        let mut flight = self.flights.remove(slot);
        if let Some(spent) = flight.spent.take() {
            completion.data = Some(spent);
            completion.result = flight.result;
        }
        self.account(&flight, completion.at, completion.status);
        if let Step::Shutdown(controller) = flight.step {
            self.shutdown_goes_on(controller);
        } else {
            self.finish(&flight, completion, done);
        }
        if !self.preemptions.is_empty() {
            self.preemptions_go_on(slot);
        }
        if self.flights.is_empty() {
            self.apply_format();
        }
    }

    /// The first namespace after `nsid` that the host of a controller has.
    pub(super) fn next_namespace(&self, slot: u32, nsid: u32) -> Option<u32> {
        let mut ids = self.visible(slot).map(|(nsid, _)| nsid);
        ids.find(|other| *other > nsid)
    }

    /// The namespace that a flush of all of them goes on with; `None`: nobody waits for it, or
    /// it was the last one.
    fn next_of_flush(&self, (queue, nsid): (u32, u32)) -> Option<u32> {
        let of = self.queues.get(queue)?;
        let is_open = of.life == Life::Open;
        is_open.then(|| self.next_namespace(of.controller, nsid))?
    }

    /// Counts a command that the drive has done.
    #[inline]
    fn account(&mut self, flight: &Flight, at: Nanos, status: Status) {
        let counters = &mut self.counters;
        if matches!(flight.op, Op::Write { .. } | Op::Append { .. }) {
            counters.has_no_room = status == Status::CAPACITY_EXCEEDED;
        }
        match flight.op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => counters.reads += 1,
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
                counters.writes += 1;
            }
            _ => {}
        }
        if self.flights.is_empty()
            && let Some(since) = counters.busy_since.take()
        {
            counters.busy_ns += at.saturating_sub(since).0;
        }
        if !matches!(flight.step, Step::Shutdown(_)) {
            let took = at.saturating_sub(flight.submitted);
            let is_error = !status.is_success();
            let lba_bytes = self.namespace(flight.nsid).map_or(0, |of| of.lba_bytes);
            let activity = &mut self.activity;
            activity.done(flight.nsid, &flight.op, lba_bytes, is_error, took);
        }
    }

    /// Completes a command of a host.
    #[inline]
    fn finish(&mut self, flight: &Flight, completion: Completion, done: &mut Vec<Done>) {
        let Completion {
            status, at, data, ..
        } = completion;
        let queue = self.queues.at(flight.queue);
        queue.in_drive -= 1;
        queue.drive_bytes -= u64::from(flight.bytes);
        if queue.life != Life::Open {
            if queue.life == Life::Closed {
                self.orphaned_bytes -= u64::from(flight.bytes);
            }
            if let Some(buf) = data {
                self.pool.give(buf);
            }
            return self.free_if_over(flight.queue);
        }
        queue.end(flight.cid);
        let to_host = matches!(
            flight.op,
            Op::Read { .. } | Op::ZoneReceive { .. } | Op::HandleStatus
        );
        let (data, spent) = if to_host { (data, None) } else { (None, data) };
        let (entry, data) = if status.is_success() {
            let entry = CompletionEntry::new(flight.cid, status).with_result(completion.result);
            (entry, data)
        } else {
            if let Some(buf) = data {
                self.pool.give(buf);
            }
            (self.drive_failed(flight, status), None)
        };
        done.push(Done {
            queue: QueueHandle(flight.queue),
            entry,
            data,
            spent,
            due: at,
        });
    }

    /// The completion of a command that the drive has failed.
    #[cold]
    fn drive_failed(&mut self, flight: &Flight, status: Status) -> CompletionEntry {
        let failure = Failure {
            pel: location(flight.op, status),
            ..Failure::from(status)
        };
        // Data that differs is no error of the media.
        if status.sct() == StatusCodeType::MEDIA && status != Status::COMPARE_FAILURE {
            self.counters.media_errors += 1;
            self.activity.media_error(flight.nsid);
        }
        let lba = flight.op.first_block();
        let about = ErrorEntry {
            nsid: flight.nsid.into(),
            lba: lba.into(),
            ..ErrorEntry::default()
        };
        self.failed(flight.queue, flight.cid, failure, about)
    }
}

/// Which field of a command made the drive refuse it.
fn location(op: Op, status: Status) -> ParameterErrorLocation {
    let at = |byte| ParameterErrorLocation::default().with_byte(byte);
    match (status, op) {
        (Status::INVALID_FIELD, Op::ZoneReceive { .. }) => at(byte::CDW13),
        (Status::INVALID_FIELD, Op::HandleUpdate { .. }) => at(byte::DPTR),
        (Status::INVALID_FIELD, Op::ZoneSend { action, .. })
            if ZoneSendAction::NAMED
                .iter()
                .all(|(named, _)| *named != action) =>
        {
            at(byte::CDW13)
        }
        (Status::ZONE_BOUNDARY_ERROR, _) => at(byte::CDW12),
        (Status::INVALID_ZONE_STATE_TRANSITION, Op::ZoneSend { .. }) => at(byte::CDW13),
        (Status::INVALID_FIELD | Status::LBA_OUT_OF_RANGE | Status::ZONE_INVALID_WRITE, _) => {
            at(byte::CDW10)
        }
        _ => ParameterErrorLocation::from_bits(ParameterErrorLocation::NONE),
    }
}
