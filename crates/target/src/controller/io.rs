//! I/O commands: checks, the way to the drive, and the way back.

use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueueId, Tag};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    CopyCommand, CopyRange, DatasetManagement, DatasetRange, IoCommand, Protection,
    ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::log::{ErrorEntry, ParameterErrorLocation};
use zonelab_nvme::queue::{CompletionEntry, PointerKind, SubmissionEntry};
use zonelab_nvme::status::StatusCodeType;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ZoneReceiveAction, ZoneSendAction};
use zonelab_ssd::config::DataStore;

use super::failure::{Failure, byte};
use super::settings::PAGE_BYTES;
use super::state::Life;
use super::{Done, Namespace, QueueHandle, Subsystem};

/// Most ranges that a command may deallocate (DMRL).
pub(super) const DEALLOCATED_RANGES: u8 = 64;
/// Most blocks that a command may deallocate, in bytes.
const DEALLOCATED_BYTES: u64 = 64 << 20;

/// A command in the drive.
#[derive(Debug)]
pub(super) struct Flight {
    queue: u32,
    cid: u16,
    step: Step,
    nsid: u32,
    op: Op,
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
    /// A controller with this slot is one flush nearer to its shutdown.
    Shutdown(u32),
}

/// An I/O command that has passed its checks.
#[derive(Debug)]
pub(super) struct Plan {
    op: Op,
    pub(super) transfer: Transfer,
    /// Durable before it completes.
    fua: bool,
}

/// Which way data goes, and how many bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    None,
    FromHost(u64),
    /// So many count. Linux sends room for all 256 ranges with Dataset Management.
    AtLeastFromHost(u64),
    ToHost(u64),
}

/// What makes every kind of command wrong.
pub(super) fn check_flags(entry: &SubmissionEntry) -> Result<(), Failure> {
    if entry.cdw0.fuse() != 0 {
        return Err(Failure::field(byte::FLAGS));
    }
    // On a fabric, data lies where an SGL says.
    if entry.cdw0.psdt() != PointerKind::SGL_MPTR_BUFFER {
        return Err(Failure::bit(Status::INVALID_FIELD, byte::FLAGS, 6));
    }
    Ok(())
}

/// Namespaces have no protection information, so no command may ask for it.
fn check_protection(protection: Protection) -> Result<(), Failure> {
    let Protection {
        pract,
        check_guard,
        check_application_tag,
        check_reference_tag,
        ..
    } = protection;
    if pract || check_guard || check_application_tag || check_reference_tag {
        let status = Status::INVALID_PROTECTION_INFORMATION;
        return Err(Failure::bit(status, byte::CDW12 + 3, 2));
    }
    Ok(())
}

/// There are no directives.
fn check_directive(dtype: u8) -> Result<(), Failure> {
    if dtype != 0 {
        return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW12 + 2, 4));
    }
    Ok(())
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

impl Namespace {
    fn plan_copy(&self, copy: CopyCommand) -> Result<Plan, Failure> {
        if copy.desfmt != 0 {
            return Err(Failure::field(byte::CDW12 + 1));
        }
        let read = copy.read_protection;
        check_protection(Protection {
            pract: read.pract,
            check_guard: read.check_guard,
            check_application_tag: read.check_application_tag,
            check_reference_tag: read.check_reference_tag,
            ..Protection::default()
        })?;
        check_protection(copy.protection)?;
        check_directive(copy.dtype)?;
        Ok(Plan {
            op: Op::Copy {
                sdlba: Lba(copy.sdlba),
                ranges: copy.nr,
            },
            transfer: Transfer::FromHost(u64::from(copy.nr) * size_of::<CopyRange>() as u64),
            fua: copy.fua,
        })
    }

    /// Bytes of `nlb` blocks, if one command may have that many.
    fn transfer_bytes(&self, nlb: u32, most: u32) -> Result<u64, Failure> {
        let bytes = u64::from(nlb) * u64::from(self.lba_bytes);
        if bytes > u64::from(most) {
            return Err(Failure::field(byte::CDW12));
        }
        Ok(bytes)
    }

    fn plan_zone_send(&self, send: ZoneManagementSend) -> Result<Plan, Failure> {
        let allocates = |action| {
            let actions = [
                ZoneSendAction::OPEN,
                ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
            ];
            self.has_zrwa && !send.select_all && actions.contains(&action)
        };
        if send.zsaso && !allocates(send.zsa) {
            return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW13 + 1, 1));
        }
        let transfer = match send.zsa {
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION if self.extension_bytes > 0 => {
                Transfer::FromHost(self.extension_bytes.into())
            }
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION => return Err(Failure::field(byte::CDW13)),
            _ => Transfer::None,
        };
        let (slba, action) = (Lba(send.slba), send.zsa);
        let op = if send.zsaso {
            Op::ZrwaSend { slba, action }
        } else {
            Op::ZoneSend {
                slba,
                action,
                select_all: send.select_all,
            }
        };
        Ok(Plan {
            op,
            transfer,
            fua: false,
        })
    }

    fn plan_zone_receive(receive: ZoneManagementReceive, most: u32) -> Result<Plan, Failure> {
        let extended = match receive.zra {
            ZoneReceiveAction::REPORT_ZONES => false,
            ZoneReceiveAction::EXTENDED_REPORT_ZONES => true,
            _ => return Err(Failure::field(byte::CDW13)),
        };
        let bytes = receive.numd * 4;
        if bytes > u64::from(most) {
            return Err(Failure::field(byte::CDW12));
        }
        Ok(Plan {
            op: Op::ZoneReceive {
                slba: Lba(receive.slba),
                filter: receive.filter,
                partial: receive.partial,
                extended,
            },
            transfer: Transfer::ToHost(bytes),
            fua: false,
        })
    }
}

impl Subsystem {
    /// Checks an I/O command and hands it to the drive.
    #[inline]
    pub(super) fn io(
        &mut self,
        (queue, slot): (u32, u32),
        entry: &SubmissionEntry,
        data: &mut Option<Buf>,
        data_len: u32,
    ) -> Result<(), Failure> {
        let (plan, hint) = self.checked(slot, entry)?;
        let caches_writes = self.controllers.at(slot).features.caches_writes();
        let mut payload = self.payload(plan.transfer, data, data_len)?;
        if let (Op::Deallocate { .. }, Some(ranges)) = (plan.op, &mut payload) {
            match hint {
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
            _ => Step::Last,
        };
        self.launch(
            Flight {
                queue,
                cid: entry.cdw0.cid(),
                step,
                nsid: entry.nsid.get(),
                op: plan.op,
                bytes: payload.as_ref().map_or(0, |data| data.len() as u32),
                submitted: self.now,
                result: 0,
                spent: None,
            },
            payload,
        );
        Ok(())
    }

    /// What the drive is to do for a command that it may be asked for, and whether
    /// that is only a hint.
    #[inline]
    pub(super) fn checked(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<(Plan, bool), Failure> {
        check_flags(entry)?;
        let controller = self.controllers.at(slot);
        if !controller.is_ready() {
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        let has_zns = controller.has_zns();
        let command = IoCommand::parse(entry).map_err(|status| Failure::at(status, byte::OPC))?;
        let namespace = self
            .namespace(entry.nsid.get())
            .filter(|namespace| has_zns || namespace.zone_lbas == 0)
            .ok_or(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID))?;
        let is_hint = matches!(
            command,
            IoCommand::DatasetManagement(DatasetManagement { ad: false, .. })
        );
        let plan = self.plan(namespace, command)?;
        if self.format.is_some() {
            return Err(Failure::from(Status::FORMAT_IN_PROGRESS));
        }
        Ok((plan, is_hint))
    }

    /// Whether ranges to be deallocated keep to DMRSL and DMSL.
    fn check_ranges(&self, data: &[u8]) -> Result<(), Failure> {
        let (ranges, _) = data.as_chunks::<{ size_of::<DatasetRange>() }>();
        let most = self.deallocation_lbas();
        let lengths = ranges.iter().filter_map(|range| {
            let range = DatasetRange::ref_from_bytes(range).ok()?;
            Some(u64::from(range.nlb.get()))
        });
        match lengths.sum::<u64>() <= most {
            true => Ok(()),
            false => Err(Failure::field_of_size()),
        }
    }

    /// What the drive is to do. A new operation is one arm here.
    #[inline]
    fn plan(&self, namespace: &Namespace, command: IoCommand) -> Result<Plan, Failure> {
        let is_zoned = namespace.zone_lbas > 0;
        match command {
            IoCommand::Read(read) => {
                check_protection(read.protection)?;
                let bytes = namespace.transfer_bytes(read.nlb, self.max_transfer_bytes)?;
                Ok(Plan {
                    op: Op::Read {
                        slba: Lba(read.slba),
                        nlb: read.nlb,
                    },
                    transfer: Transfer::ToHost(bytes),
                    // What was read from a cache is no other data.
                    fua: false,
                })
            }
            IoCommand::Write(write) => {
                check_protection(write.protection)?;
                check_directive(write.dtype)?;
                let bytes = namespace.transfer_bytes(write.nlb, self.max_transfer_bytes)?;
                Ok(Plan {
                    op: Op::Write {
                        slba: Lba(write.slba),
                        nlb: write.nlb,
                    },
                    transfer: Transfer::FromHost(bytes),
                    fua: write.fua,
                })
            }
            IoCommand::Flush(_) => Ok(Plan {
                op: Op::Flush,
                transfer: Transfer::None,
                fua: false,
            }),
            IoCommand::Compare(_)
            | IoCommand::Verify(_)
            | IoCommand::WriteZeroes(_)
            | IoCommand::DatasetManagement(_) => self.plan_without_transfer(namespace, command),
            IoCommand::Copy(copy) if namespace.has_copy => namespace.plan_copy(copy),
            IoCommand::ZoneAppend(append) if is_zoned => {
                check_protection(append.protection)?;
                check_directive(append.dtype)?;
                let bytes = namespace.transfer_bytes(append.nlb, self.max_append_bytes)?;
                Ok(Plan {
                    op: Op::Append {
                        zslba: Lba(append.zslba),
                        nlb: append.nlb,
                    },
                    transfer: Transfer::FromHost(bytes),
                    fua: append.fua,
                })
            }
            IoCommand::ZoneManagementSend(send) if is_zoned => namespace.plan_zone_send(send),
            IoCommand::ZoneManagementReceive(receive) if is_zoned => {
                Namespace::plan_zone_receive(receive, self.max_transfer_bytes)
            }
            _ => Err(Failure::at(Status::INVALID_OPCODE, byte::OPC)),
        }
    }

    /// Commands on blocks that carry none of them to or from the media.
    fn plan_without_transfer(
        &self,
        namespace: &Namespace,
        command: IoCommand,
    ) -> Result<Plan, Failure> {
        let (op, transfer, fua) = match command {
            IoCommand::Compare(compare) => {
                check_protection(compare.protection)?;
                let bytes = namespace.transfer_bytes(compare.nlb, self.max_transfer_bytes)?;
                let (slba, nlb) = (Lba(compare.slba), compare.nlb);
                (Op::Compare { slba, nlb }, Transfer::FromHost(bytes), false)
            }
            IoCommand::Verify(verify) => {
                check_protection(verify.protection)?;
                namespace.transfer_bytes(verify.nlb, self.work_bytes())?;
                let (slba, nlb) = (Lba(verify.slba), verify.nlb);
                (Op::Verify { slba, nlb }, Transfer::None, false)
            }
            IoCommand::WriteZeroes(zeroes) => {
                check_protection(zeroes.protection)?;
                namespace.transfer_bytes(zeroes.nlb, self.work_bytes())?;
                let (slba, nlb) = (Lba(zeroes.slba), zeroes.nlb);
                (Op::WriteZeroes { slba, nlb }, Transfer::None, zeroes.fua)
            }
            IoCommand::DatasetManagement(DatasetManagement { nr: ranges, ad, .. }) => {
                if ad && u32::from(ranges) > DEALLOCATED_RANGES.into() {
                    return Err(Failure::field_of_size());
                }
                let bytes = u64::from(ranges) * size_of::<DatasetRange>() as u64;
                let transfer = Transfer::AtLeastFromHost(bytes);
                (Op::Deallocate { ranges }, transfer, false)
            }
            _ => return Err(Failure::at(Status::INVALID_OPCODE, byte::OPC)),
        };
        Ok(Plan { op, transfer, fua })
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

    /// Most blocks that a command without transfer may be about, in bytes (VSL,
    /// WZSL): as many as one with.
    pub(super) fn work_bytes(&self) -> u32 {
        // 0 would say that there is no limit.
        self.max_transfer_bytes.max(2 * PAGE_BYTES)
    }

    /// Most blocks that a command may deallocate (DMRSL, DMSL).
    pub(super) fn deallocation_lbas(&self) -> u64 {
        DEALLOCATED_BYTES / u64::from(self.drive.drive().config().lba_bytes)
    }

    /// Hands a command to the drive.
    #[inline]
    fn launch(&mut self, flight: Flight, payload: Option<Buf>) {
        let (queue, nsid, op) = (flight.queue, flight.nsid, flight.op);
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
        self.hand_over(self.now, QueueId(qid), slot, nsid, op, payload);
    }

    /// Hands a step of a flight to the drive; what it does not take ends.
    #[inline]
    fn hand_over(
        &mut self,
        now: Nanos,
        queue: QueueId,
        slot: u32,
        nsid: u32,
        op: Op,
        payload: Option<Buf>,
    ) {
        let command = Command {
            nsid: NamespaceId(nsid),
            op,
        };
        // The drive may have been driven on by its owner.
        let now = now.max(self.drive.drive().now());
        let taken = self.drive.submit(now, queue, Tag(slot), command, payload);
        if let Err(rejected) = taken {
            self.turned_away.push(Completion {
                queue,
                tag: Tag(slot),
                status: Status::NAMESPACE_NOT_READY,
                at: now,
                result: 0,
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
            let nsid = flight.nsid;
            return self.hand_over(until, completion.queue, slot, nsid, Op::Flush, None);
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
        if self.flights.is_empty() {
            self.apply_format();
        }
    }

    /// Counts a command that the drive has done.
    #[inline]
    fn account(&mut self, flight: &Flight, at: Nanos, status: Status) {
        let counters = &mut self.counters;
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
        let to_host = matches!(flight.op, Op::Read { .. } | Op::ZoneReceive { .. });
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
