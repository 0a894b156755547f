//! A command in flight.

use zonelab_device::{Buf, Nanos};

use super::send::Outgoing;

/// The data of a command, and where it goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// None.
    #[default]
    None,
    /// From the controller into the buffer.
    ToHost(Buf),
    /// From the buffer to the controller.
    ToController(Buf),
}

impl Transfer {
    /// Bytes of the buffer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buf().map_or(0, |buf| buf.len())
    }

    /// True if no byte moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer.
    #[must_use]
    pub fn into_buf(self) -> Option<Buf> {
        match self {
            Self::None => None,
            Self::ToHost(buf) | Self::ToController(buf) => Some(buf),
        }
    }

    pub(super) fn buf(&self) -> Option<&Buf> {
        match self {
            Self::None => None,
            Self::ToHost(buf) | Self::ToController(buf) => Some(buf),
        }
    }
}

/// What an R2T asked for and was not sent yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requested {
    /// Transfer tag.
    pub(super) ttag: u16,
    /// Offset of the next byte.
    pub(super) at: u32,
    /// Offset after the last.
    pub(super) end: u32,
}

/// One command identifier: free, or a command in flight.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) busy: bool,
    pub(super) opcode: u8,
    /// What the submitter calls the command.
    pub(super) token: u64,
    pub(super) deadline: Nanos,
    pub(super) transfer: Transfer,
    /// Bytes of `transfer`.
    pub(super) size: u32,
    /// Bytes received, or asked for by R2Ts, or sent in the capsule.
    pub(super) moved: u32,
    /// Data did not match its digest.
    pub(super) damaged: bool,
    /// The PDU that waits for the socket, if `queued`.
    pub(super) out: Outgoing,
    pub(super) queued: bool,
    pub(super) requested: Option<Requested>,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            busy: false,
            opcode: 0,
            token: 0,
            deadline: Nanos::MAX,
            transfer: Transfer::None,
            size: 0,
            moved: 0,
            damaged: false,
            out: Outgoing::new(),
            queued: false,
            requested: None,
        }
    }
}
