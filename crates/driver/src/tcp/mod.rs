//! The host's end of an NVMe/TCP connection as a state machine: bytes in, bytes
//! out, no socket and no clock.
//!
//! ```text
//! submit ─► slot ─► ring of PDUs ─► output / sent ─► socket
//! next_done ◄─ slot ◄─ parser ◄─ input / received ◄─ socket
//! ```
//!
//! * A command has the identifier of its slot. All slots are made at the start,
//!   and no operation allocates.
//! * The buffer of a command lives in its slot until the command is done. Data
//!   is sent from there and received to there: while the data of a read is being
//!   received, [`Connection::input`] offers that buffer to the socket.
//! * A controller must send the data of a command in order and ask for it in
//!   order, as the Linux host demands it, too. Then no byte can be missing or
//!   come twice.
//! * Reserved fields are not looked at, so that a younger controller may use them.
//! * The first violation ends the connection: the output becomes an H2CTermReq,
//!   and [`Connection::give_back`] returns the buffers.
//!
//! Source: NVMe/TCP transport specification 1.0, sections 3.3 to 3.6.

mod error;
mod receive;
mod send;
mod slot;

pub use error::ProtocolError;
pub use slot::Transfer;

use std::collections::VecDeque;

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SglDescriptor, SubmissionEntry};
use zonelab_nvme::tcp::{
    CapsuleCmd, Digests, Framing, IcReq, MAX_ADMIN_IN_CAPSULE, MAX_PDA_Z, MIN_MAXH2CDATA, TermReq,
};
use zonelab_nvme::zerocopy::IntoBytes;

use receive::Receiver;
use slot::Slot;

/// What a connection is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Want header digests.
    pub hdgst: bool,
    /// Want data digests.
    pub ddgst: bool,
    /// Alignment of the data that the controller sends, zero based in dwords:
    /// 0 to 31 (HPDA).
    pub hpda_z: u8,
    /// Commands in flight at most, 1 to 65535: one less than the queue's entries.
    pub slots: u16,
    /// Bytes that a command which is no fabrics command may carry in its
    /// capsule. 8192 on an admin queue; on an I/O queue what IOCCSZ leaves.
    pub in_capsule_bytes: u32,
    /// When the controller must have answered the connection request.
    pub open_by: Nanos,
}

impl Settings {
    /// An admin queue: without digests, 31 commands in flight.
    #[must_use]
    pub const fn admin(open_by: Nanos) -> Self {
        Self {
            hdgst: false,
            ddgst: false,
            hpda_z: 0,
            slots: 31,
            in_capsule_bytes: MAX_ADMIN_IN_CAPSULE,
            open_by,
        }
    }
}

/// A finished command.
#[derive(Debug)]
pub struct Done {
    /// What the submitter called it.
    pub token: u64,
    /// How it ended. Where the controller sent the SUCCESS flag with the data
    /// instead of a response, it is made here.
    pub entry: CompletionEntry,
    /// The buffer that came with the command.
    pub data: Option<Buf>,
    /// Bytes of it that were moved.
    pub transferred: u32,
}

/// Why a command was not taken, with what came with it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("command not taken: {reason}")]
pub struct Refused {
    /// Why.
    pub reason: RefuseReason,
    /// The data that came with it.
    pub transfer: Transfer,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefuseReason {
    /// All slots hold commands.
    #[error("{0} commands are in flight, which is all that the queue holds")]
    Full(u16),
    /// The controller has not answered the connection request.
    #[error("the connection is not open yet")]
    NotOpen,
    /// The connection failed.
    #[error("the connection failed")]
    Failed,
    /// The data exceeds what a PDU can say.
    #[error("{0} bytes of data exceed what a command can carry")]
    TooLarge(usize),
}

/// The host's end of one connection: one queue.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    /// What the controller agreed on; `None` before it answered.
    open: Option<Digests>,
    failed: Option<ProtocolError>,
    framing_out: Framing,
    max_h2c_data: u32,
    slots: Box<[Slot]>,
    free: Vec<u16>,
    /// Slots with a PDU to send, in order; each at most once.
    ring: VecDeque<u16>,
    /// What is sent before the ring: the first PDU, or the last.
    prologue: Vec<u8>,
    /// Bytes of the front of the output that are sent.
    front_sent: usize,
    receiver: Receiver,
    done: VecDeque<Done>,
    /// No command is due before.
    next_deadline: Nanos,
}

impl Connection {
    /// A connection whose first output is the connection request.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let settings = Settings {
            slots: settings.slots.max(1),
            hpda_z: settings.hpda_z.min(MAX_PDA_Z),
            ..settings
        };
        let count = usize::from(settings.slots);
        let wanted = Digests::default()
            .with_hdgst(settings.hdgst)
            .with_ddgst(settings.ddgst);
        let request = IcReq::new(settings.hpda_z, wanted, 0);
        Self {
            settings,
            open: None,
            failed: None,
            framing_out: Framing::default(),
            max_h2c_data: MIN_MAXH2CDATA,
            slots: (0..count).map(|_| Slot::new()).collect(),
            free: (0..settings.slots).rev().collect(),
            ring: VecDeque::with_capacity(count),
            prologue: request.as_bytes().to_vec(),
            front_sent: 0,
            receiver: Receiver::new(),
            done: VecDeque::with_capacity(count),
            next_deadline: settings.open_by,
        }
    }

    /// True once the controller has answered the connection request.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some() && self.failed.is_none()
    }

    /// The digests that the connection has, once it is open.
    #[must_use]
    pub fn digests(&self) -> Option<Digests> {
        self.open
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&ProtocolError> {
        self.failed.as_ref()
    }

    /// Commands in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.settings.slots
    }

    /// Takes a command. The connection fills in its identifier and its data
    /// pointer; the command must complete by `deadline`. `token` comes back.
    ///
    /// # Errors
    /// [`Refused`] gives the data back.
    pub fn submit(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
        token: u64,
        deadline: Nanos,
    ) -> Result<(), Refused> {
        let reason = if self.failed.is_some() {
            Some(RefuseReason::Failed)
        } else if self.open.is_none() {
            Some(RefuseReason::NotOpen)
        } else if self.free.is_empty() {
            Some(RefuseReason::Full(self.settings.slots))
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(Refused { reason, transfer });
        }
        let Some((capsule, in_capsule)) = self.capsule(entry, &transfer) else {
            let reason = RefuseReason::TooLarge(transfer.len());
            return Err(Refused { reason, transfer });
        };
        let Some(cid) = self.free.pop() else {
            let reason = RefuseReason::Full(self.settings.slots);
            return Err(Refused { reason, transfer });
        };
        let slot = &mut self.slots[usize::from(cid)];
        let capsule = CapsuleCmd {
            ccsqe: capsule.ccsqe.with_cid(cid),
            ..capsule
        };
        slot.busy = true;
        slot.opcode = entry.cdw0.opc();
        slot.token = token;
        slot.deadline = deadline;
        slot.size = transfer.len() as u32;
        slot.moved = in_capsule;
        slot.damaged = false;
        slot.requested = None;
        slot.transfer = transfer;
        let buf = slot.transfer.buf().map_or(&[][..], |buf| buf);
        slot.out.set_capsule(&capsule, buf, in_capsule as usize);
        slot.queued = true;
        self.ring.push_back(cid);
        self.next_deadline = self.next_deadline.min(deadline);
        Ok(())
    }

    /// The capsule of a command, and how many bytes of data are in it.
    fn capsule(&self, entry: SubmissionEntry, transfer: &Transfer) -> Option<(CapsuleCmd, u32)> {
        let len = u32::try_from(transfer.len()).ok()?;
        let is_fabrics = entry.cdw0.opc() == AdminOpcode::FABRICS.0;
        let limit = if is_fabrics {
            MAX_ADMIN_IN_CAPSULE
        } else {
            self.settings.in_capsule_bytes
        };
        let in_capsule = match transfer {
            Transfer::ToController(_) if len <= limit => len,
            _ => 0,
        };
        let sgl = match in_capsule {
            0 => SglDescriptor::transport(len),
            len => SglDescriptor::in_capsule(0, len),
        };
        let capsule = CapsuleCmd::new(self.framing_out, entry.with_sgl(sgl), in_capsule)?;
        Some((capsule, in_capsule))
    }

    /// The next finished command.
    pub fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Looks for commands that are late at `now`. Cheap unless one may be.
    ///
    /// # Errors
    /// One is late, or the controller has not answered the connection request:
    /// the connection failed.
    pub fn expire(&mut self, now: Nanos) -> Result<(), ProtocolError> {
        if now < self.next_deadline || self.failed.is_some() {
            return Ok(());
        }
        if self.open.is_none() {
            return Err(self.fail(ProtocolError::OpenTimeout, &[]));
        }
        let busy = || self.slots.iter().zip(0_u16..).filter(|(slot, _)| slot.busy);
        if let Some((slot, cid)) = busy().find(|(slot, _)| slot.deadline <= now) {
            let error = ProtocolError::CommandTimeout {
                cid,
                opcode: slot.opcode,
                deadline: slot.deadline,
            };
            return Err(self.fail(error, &[]));
        }
        self.next_deadline = busy()
            .map(|(slot, _)| slot.deadline)
            .min()
            .unwrap_or(Nanos::MAX);
        Ok(())
    }

    /// No command in flight is late before then; [`Self::expire`] moves it on.
    #[must_use]
    pub fn next_deadline(&self) -> Nanos {
        self.next_deadline
    }

    /// After a failure, or when the socket is gone: a command that was in
    /// flight, by its token, and its buffer. `None`: there is none left.
    pub fn give_back(&mut self) -> Option<(u64, Option<Buf>)> {
        let slot = self.slots.iter_mut().find(|slot| slot.busy)?;
        slot.busy = false;
        Some((slot.token, core::mem::take(&mut slot.transfer).into_buf()))
    }

    /// Ends the connection with `error`, which is about the PDU that starts
    /// with `header`. What is said to the controller is the output from now on.
    fn fail(&mut self, error: ProtocolError, header: &[u8]) -> ProtocolError {
        // In the middle of a PDU nothing else can be said.
        let can_speak = self.front_sent == 0;
        self.ring.clear();
        self.prologue.clear();
        self.front_sent = 0;
        if let Some((fes, fei)) = error.termination().filter(|_| can_speak) {
            let header = &header[..header.len().min(TermReq::MAX_DATA as usize)];
            let request = TermReq::to_controller(fes, fei, header.len() as u32);
            self.prologue.extend_from_slice(request.as_bytes());
            self.prologue.extend_from_slice(header);
        }
        self.failed = Some(error);
        error
    }
}
