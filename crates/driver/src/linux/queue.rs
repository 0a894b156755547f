//! An I/O queue of a drive of this machine as a queue pair.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, Monotonic, Nanos, Op, QueueId, QueuePair,
    RejectReason, Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, StatusField, SubmissionEntry};

use super::ioctl;
use super::node::{Node, NodeKind};
use super::ring::{Done, Full, Memory, Ring, Work};
use crate::entry::{Direction, Prepared};
use crate::error::DriverError;
use crate::socket::Reply;
use crate::tcp::{RefuseReason, Transfer};
use crate::transport::{Announcement, IoQueue};

/// Token of the command that somebody waits for. Tags have 32 bits.
const CALL: u64 = 1 << 32;

/// An I/O queue of a namespace: an io_uring, of the thread that uses it.
///
/// When the drive is removed, the commands in flight complete with
/// [`Status::HOST_PATHING_ERROR`]; after that nothing is taken any more, and
/// [`IoQueue::error`] says why.
///
/// Commands reach the kernel's driver in the order in which they were submitted.
/// The drive may take them in another, so that whoever has several writes to one
/// zone in flight needs a drive that does not, or appends.
#[derive(Debug)]
pub struct LinuxQueue {
    ring: Ring,
    node: Arc<Node>,
    id: QueueId,
    depth: u16,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
    timeout_ms: u32,
    is_polled: bool,
    /// Completions that were not the kernel's.
    local: Vec<Completion>,
    /// Completions that came while somebody waited for another.
    early: Vec<Done>,
    error: Option<DriverError>,
}

/// What a queue is opened with.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueOptions {
    pub(super) id: QueueId,
    pub(super) depth: u16,
    pub(super) clock: Monotonic,
    pub(super) timeout_ms: u32,
    pub(super) is_polled: bool,
}

impl LinuxQueue {
    pub(super) fn open(
        node: &Arc<Node>,
        info: &Arc<DeviceInfo>,
        options: QueueOptions,
    ) -> Result<Self, DriverError> {
        let QueueOptions {
            id,
            depth,
            clock,
            timeout_ms,
            is_polled,
        } = options;
        let ring = Ring::open(node, depth, is_polled, timeout_ms);
        Ok(Self {
            ring: ring.map_err(|source| DriverError::NoIoUring { source })?,
            node: Arc::clone(node),
            id,
            depth,
            info: Arc::clone(info),
            clock,
            timeout_ms,
            is_polled,
            local: Vec::new(),
            early: Vec::new(),
            error: None,
        })
    }

    /// A command that is not the ring's completes at the next poll.
    fn complete_locally(&mut self, tag: Tag, status: Status, result: u64, data: Option<Buf>) {
        self.local.push(Completion {
            queue: self.id,
            tag,
            status,
            at: self.clock.now(),
            result,
            found: Found::Unknown,
            data,
        });
    }

    /// Hands a command to the ring.
    fn start(&mut self, work: Work, memory: Memory, token: u64, op: Op) -> Result<(), Rejected> {
        let is_ordered = matches!(op, Op::Write { .. } | Op::WriteZeroes { .. });
        let taken = self.ring.submit(work, memory, token, is_ordered);
        taken.map_err(|Full(memory)| Rejected {
            reason: RejectReason::QueueFull {
                queue: self.id,
                depth: self.depth.into(),
            },
            data: memory.into_buf(),
        })
    }

    /// A command on the block device: data through the ring, the rest at once.
    fn start_on_block(
        &mut self,
        op: Op,
        prepared: &Prepared,
        tag: Tag,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        let nsid = zonelab_device::NamespaceId(self.node.nsid);
        let lba_bytes = self.info.namespace(nsid).map_or(0, |of| of.lba_bytes);
        let byte = op.first_block().checked_mul(lba_bytes.into());
        let memory = |data: Option<Buf>| match (data, prepared.direction) {
            (None, _) => Memory::Own(prepared.bytes),
            (Some(buf), Direction::ToHost) => Memory::CopiedTo(buf),
            (Some(buf), _) => Memory::CopiedFrom(buf),
        };
        match (op, byte) {
            (Op::Read { .. }, Some(byte)) => {
                self.start(Work::Read(byte), memory(data), tag.0.into(), op)
            }
            (Op::Write { .. }, Some(byte)) => {
                self.start(Work::Write(byte), memory(data), tag.0.into(), op)
            }
            (Op::Flush, _) => match data {
                None => self.start(Work::Sync, Memory::None, tag.0.into(), op),
                // An empty buffer, which no byte of is moved.
                Some(buf) => self.start(Work::Sync, Memory::Given(buf), tag.0.into(), op),
            },
            (Op::Read { .. } | Op::Write { .. }, None) => {
                self.complete_locally(tag, Status::LBA_OUT_OF_RANGE, 0, data);
                Ok(())
            }
            // The block layer of Linux has none for programs.
            (Op::Append { .. }, _) => {
                self.complete_locally(tag, Status::INVALID_OPCODE, 0, data);
                Ok(())
            }
            _ => {
                let mut data = data;
                let bytes = data.as_deref_mut().unwrap_or_default();
                let ended = ioctl::io(self.node.as_fd(), &prepared.entry, bytes, self.timeout_ms);
                let (status, result) = match ended {
                    Ok(ended) => (field(ended.status).status(), ended.result),
                    Err(errno) => (self.ended_by_kernel(errno), 0),
                };
                self.complete_locally(tag, status, result, data);
                Ok(())
            }
        }
    }

    /// The status of a command that the kernel ended. Some say that the drive is gone.
    fn ended_by_kernel(&mut self, errno: Errno) -> Status {
        let path = || self.node.path.clone();
        let gone = match errno {
            Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN => DriverError::Removed { path: path() },
            Errno::INTR => DriverError::Cancelled { path: path() },
            errno => return status_of(errno),
        };
        self.error.get_or_insert(gone);
        Status::HOST_PATHING_ERROR
    }

    /// The status of a command that the ring has done.
    fn status(&mut self, done: &Done) -> StatusField {
        if let Ok(errno) = i32::try_from(-i64::from(done.outcome))
            && errno > 0
        {
            let status = self.ended_by_kernel(Errno::from_raw_os_error(errno));
            return StatusField::default().with_status(status);
        }
        if self.node.kind == NodeKind::Block {
            let status = match done.outcome as usize == done.bytes {
                true => Status::SUCCESS,
                false => Status::DATA_TRANSFER_ERROR,
            };
            return StatusField::default().with_status(status);
        }
        let field = field((done.outcome & 0x7fff) as u16);
        // These are the driver's and not the drive's.
        let status = field.status();
        if matches!(status, Status::HOST_PATHING_ERROR | Status::ABORTED_BY_HOST) {
            let path = self.node.path.clone();
            self.error.get_or_insert(DriverError::Cancelled { path });
        }
        field
    }

    /// Takes what the ring has done.
    fn receive(&mut self, take: &mut Vec<Done>) {
        let reaped = self.ring.reap(|done| take.push(done));
        if let Err(error) = reaped {
            self.error.get_or_insert(error.into());
        }
    }
}

/// A status field of the kernel, which has no phase bit.
fn field(status: u16) -> StatusField {
    StatusField::from_bits(status << 1)
}

/// What an errno of the block layer stood for, as far as it tells.
fn status_of(errno: Errno) -> Status {
    match errno {
        Errno::INVAL => Status::INVALID_FIELD,
        Errno::OPNOTSUPP => Status::INVALID_OPCODE,
        Errno::NOSPC => Status::LBA_OUT_OF_RANGE,
        Errno::TOOMANYREFS => Status::TOO_MANY_OPEN_ZONES,
        Errno::OVERFLOW => Status::TOO_MANY_ACTIVE_ZONES,
        Errno::NODATA => Status::UNRECOVERED_READ_ERROR,
        Errno::ACCESS | Errno::PERM => Status::OPERATION_DENIED,
        Errno::FAULT => Status::DATA_TRANSFER_ERROR,
        _ => Status::INTERNAL_ERROR,
    }
}

impl QueuePair for LinuxQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.error.is_some() {
            let reason = RejectReason::Disconnected;
            return Err(Rejected { reason, data });
        }
        let given = data.as_ref().map(|buf| buf.len());
        // What is known of the device is the namespace of the node alone.
        let prepared = match Prepared::new(&self.info, &command, given) {
            Ok(prepared) => prepared,
            Err(status) => {
                self.complete_locally(tag, status, 0, data);
                return Ok(());
            }
        };
        if self.node.kind == NodeKind::Block {
            return self.start_on_block(command.op, &prepared, tag, data);
        }
        let memory = match data {
            Some(buf) => Memory::Given(buf),
            None if prepared.direction == Direction::None => Memory::None,
            None => Memory::Own(prepared.bytes),
        };
        let work = Work::Command(prepared.entry);
        self.start(work, memory, tag.0.into(), command.op)
    }

    fn ring(&mut self) {
        if let Err(error) = self.ring.flush() {
            self.error.get_or_insert(error.into());
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        if self.ring.has_unsubmitted() {
            self.ring();
        }
        let mut ended = std::mem::take(&mut self.early);
        self.receive(&mut ended);
        let at = self.now();
        for ended in ended.drain(..) {
            let field = self.status(&ended);
            done.push(Completion {
                queue: self.id,
                tag: Tag((ended.token & u64::from(u32::MAX)) as u32),
                status: field.status(),
                at,
                result: ended.result,
                found: Found::Unknown,
                data: ended.data,
            });
        }
        self.early = ended;
        done.extend(self.local.drain(..).map(|local| Completion { at, ..local }));
        done.len() - before
    }
}

impl IoQueue for LinuxQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn depth(&self) -> u16 {
        self.depth
    }

    /// Once nothing is in flight any more: the kernel ends it all.
    fn error(&self) -> Option<&DriverError> {
        let is_over = self.ring.in_flight() == 0 && self.local.is_empty() && self.early.is_empty();
        self.error.as_ref().filter(|_| is_over)
    }

    fn take_error(&mut self) -> Option<DriverError> {
        let error = self.error.as_mut()?;
        Some(std::mem::replace(error, DriverError::Closed))
    }

    fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let what = "the I/O command";
        if self.node.kind == NodeKind::Block {
            return block_passthrough(&self.node, &entry, transfer, self.timeout_ms);
        }
        let memory = transfer.into_buf().map_or(Memory::None, Memory::Given);
        let refused = |_| DriverError::NotTaken {
            what,
            reason: RefuseReason::Full(self.depth),
        };
        let taken = self.ring.submit(Work::Command(entry), memory, CALL, true);
        taken.map_err(refused)?;
        let mut ended = Vec::new();
        loop {
            self.ring.flush()?;
            self.receive(&mut ended);
            let place = ended.iter().position(|done: &Done| done.token == CALL);
            if let Some(place) = place {
                let done = ended.remove(place);
                self.early.append(&mut ended);
                let status = self.status(&done);
                return match self.take_error() {
                    Some(error) => Err(error),
                    None => Ok(reply(status, done.result, done.data)),
                };
            }
            self.ring.wait()?;
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        if let Some(local) = self.local.first() {
            return Some(local.at);
        }
        if !self.early.is_empty() {
            return Some(Nanos::ZERO);
        }
        // The kernel keeps the time limit of each command.
        (self.ring.in_flight() > 0).then_some(Nanos::MAX)
    }

    fn has_output(&self) -> bool {
        self.ring.has_unsubmitted()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.descriptor()
    }

    fn announcement(&self) -> Announcement {
        match self.is_polled {
            true => Announcement::Polled,
            false => Announcement::Readable,
        }
    }

    fn abandon(&mut self) {
        self.error.get_or_insert(DriverError::Closed);
    }
}

/// How a command ended that somebody waited for. What succeeded has moved all.
pub(super) fn reply(status: StatusField, result: u64, data: Option<Buf>) -> Reply {
    let bytes = data.as_ref().map_or(0, |buf| buf.len());
    let entry = CompletionEntry {
        status,
        ..CompletionEntry::default()
    };
    Reply {
        entry: entry.with_result(result),
        transferred: match status.status().is_success() {
            true => u32::try_from(bytes).unwrap_or(u32::MAX),
            false => 0,
        },
        data,
    }
}

/// An I/O command by ioctl.
fn block_passthrough(
    node: &Node,
    entry: &SubmissionEntry,
    transfer: Transfer,
    timeout_ms: u32,
) -> Result<Reply, DriverError> {
    let mut data = transfer.into_buf();
    let bytes = data.as_deref_mut().unwrap_or_default();
    let ended = ioctl::io(node.as_fd(), entry, bytes, timeout_ms);
    let ended = ended.map_err(|errno| node.failed("the I/O command", errno))?;
    Ok(reply(field(ended.status), ended.result, data))
}
