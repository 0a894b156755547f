//! An I/O queue of a controller as a queue pair.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, Nanos, QueueId, QueuePair, RejectReason, Rejected,
    Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::queue::{StatusField, SubmissionEntry};

use crate::entry::{Direction, Prepared};
use crate::error::DriverError;
use crate::socket::{Reply, Socket};
use crate::tcp::{RefuseReason, Transfer};
use crate::transport::IoQueue;

/// In a token: the buffer is one of the queue's own. The low half is the tag.
const SCRATCH: u64 = 1 << 32;

/// An I/O queue over NVMe/TCP.
///
/// Commands that were in flight when the connection broke complete with
/// [`Status::HOST_PATHING_ERROR`]; after that nothing is taken any more, and
/// [`IoQueue::error`] says why.
///
/// A read, write or append without a buffer gets one of the queue's own, which
/// is used again: for loads that do not look at the data.
#[derive(Debug)]
pub struct TcpQueue {
    socket: Socket,
    id: QueueId,
    info: Arc<DeviceInfo>,
    timeout: Nanos,
    /// Buffers for commands that came without one.
    scratch: Vec<Buf>,
    /// Completions that were not the controller's.
    local: Vec<Completion>,
    error: Option<DriverError>,
    last_status: StatusField,
}

impl TcpQueue {
    pub(crate) fn new(socket: Socket, id: QueueId, info: Arc<DeviceInfo>, timeout: Nanos) -> Self {
        let depth = usize::from(socket.connection.depth());
        Self {
            socket,
            id,
            info,
            timeout,
            scratch: Vec::with_capacity(depth),
            local: Vec::with_capacity(depth),
            error: None,
            last_status: StatusField::default(),
        }
    }

    /// Status field of the completion that [`QueuePair::poll`] moved last, with
    /// its DNR and CRD.
    #[must_use]
    pub fn last_status(&self) -> StatusField {
        self.last_status
    }

    /// Waits until something can be received, at most until `until` on the
    /// queue's clock. For programs that have nothing else to do.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn wait(&mut self, until: Nanos) -> Result<(), DriverError> {
        match self.local.is_empty() {
            true => self.socket.wait(until),
            false => Ok(()),
        }
    }

    /// Ends the connection, and with it the queue.
    pub fn close(mut self) {
        self.socket.close();
    }

    /// A command that fails before it is sent completes at the next poll.
    fn complete_locally(&mut self, tag: Tag, status: Status, data: Option<Buf>) {
        let at = self.now();
        self.local.push(Completion {
            queue: self.id,
            tag,
            status,
            at,
            result: 0,
            found: Found::Unknown,
            data,
        });
    }

    /// A buffer of the queue's own.
    fn scratch(&mut self, bytes: usize) -> Buf {
        match self.scratch.pop() {
            Some(buf) if buf.len() == bytes => buf,
            _ => Buf::zeroed(bytes),
        }
    }

    /// The caller's buffer of a command, if it had one.
    fn keep_scratch(&mut self, token: u64, data: Option<Buf>) -> Option<Buf> {
        if token & SCRATCH == 0 {
            return data;
        }
        self.scratch.extend(data);
        None
    }

    /// The connection is gone: all that was in flight ends.
    fn lose(&mut self, error: DriverError) {
        self.socket.close();
        self.error = Some(error);
        while let Some((token, data)) = self.socket.connection.give_back() {
            let data = self.keep_scratch(token, data);
            self.complete_locally(tag_of(token), Status::HOST_PATHING_ERROR, data);
        }
    }
}

impl IoQueue for TcpQueue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn depth(&self) -> u16 {
        self.socket.connection.depth()
    }

    fn error(&self) -> Option<&DriverError> {
        self.error.as_ref()
    }

    fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let reply = self
            .socket
            .call("the I/O command", entry, transfer, self.timeout);
        if let Err(error) = &reply
            && !matches!(error, DriverError::NotTaken { .. })
        {
            self.lose(DriverError::Closed);
        }
        reply
    }

    fn next_event(&self) -> Option<Nanos> {
        if let Some(local) = self.local.first() {
            return Some(local.at);
        }
        let connection = &self.socket.connection;
        let is_under_way = self.error.is_none() && connection.in_flight() > 0;
        is_under_way.then(|| connection.next_deadline())
    }

    fn has_output(&self) -> bool {
        self.error.is_none() && self.socket.connection.has_output()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    fn abandon(&mut self) {
        if self.error.is_none() {
            self.lose(DriverError::Closed);
        }
    }

    fn take_error(&mut self) -> Option<DriverError> {
        let error = self.error.as_mut()?;
        Some(core::mem::replace(error, DriverError::Closed))
    }
}

fn tag_of(token: u64) -> Tag {
    Tag((token & u64::from(u32::MAX)) as u32)
}

impl QueuePair for TcpQueue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.socket.clock.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.error.is_some() {
            let reason = RejectReason::Disconnected;
            return Err(Rejected { reason, data });
        }
        let given = data.as_ref().map(|buf| buf.len());
        let prepared = match Prepared::new(&self.info, &command, given) {
            Ok(prepared) => prepared,
            Err(status) => {
                self.complete_locally(tag, status, data);
                return Ok(());
            }
        };
        let mut token = u64::from(tag.0);
        let buf = match data {
            None if prepared.bytes > 0 => {
                token |= SCRATCH;
                Some(self.scratch(prepared.bytes))
            }
            data => data,
        };
        let transfer = match (buf, prepared.direction) {
            (None, _) => Transfer::None,
            (Some(buf), Direction::ToHost) => Transfer::ToHost(buf),
            // An empty buffer of a flush moves no byte, and comes back.
            (Some(buf), _) => Transfer::ToController(buf),
        };
        let deadline = self.now().saturating_add(self.timeout);
        let taken = self
            .socket
            .connection
            .submit(prepared.entry, transfer, token, deadline);
        taken.map_err(|refused| {
            let data = self.keep_scratch(token, refused.transfer.into_buf());
            let reason = match refused.reason {
                RefuseReason::Full(depth) => RejectReason::QueueFull {
                    queue: self.id,
                    depth: depth.into(),
                },
                _ => RejectReason::Disconnected,
            };
            Rejected { reason, data }
        })
    }

    fn ring(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.socket.flush()
        {
            self.lose(error);
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        if self.error.is_none() {
            let pumped = self.socket.pump();
            let at = self.now();
            while let Some(finished) = self.socket.next_done() {
                let status = finished.entry.status;
                let bytes = finished.data.as_ref().map_or(0, |buf| buf.len());
                let is_short =
                    status.status().is_success() && finished.transferred as usize != bytes;
                self.last_status = status;
                done.push(Completion {
                    queue: self.id,
                    tag: tag_of(finished.token),
                    status: match is_short {
                        true => Status::DATA_TRANSFER_ERROR,
                        false => status.status(),
                    },
                    at,
                    result: finished.entry.result(),
                    found: Found::Unknown,
                    data: self.keep_scratch(finished.token, finished.data),
                });
            }
            if let Err(error) = pumped {
                self.lose(error);
            }
        }
        if !self.local.is_empty() {
            let at = self.now();
            done.extend(self.local.drain(..).map(|local| Completion { at, ..local }));
        }
        done.len() - before
    }
}
