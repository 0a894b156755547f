//! What a controller can do wrong on a connection.

use zonelab_device::Nanos;
use zonelab_nvme::tcp::{FatalErrorStatus, PduType};

/// Why a connection cannot go on. All of them are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A field of a PDU holds a value that it must not.
    #[error("{pdu}: {field} is {value:#x}, valid is {valid}")]
    Field {
        /// The PDU.
        pdu: PduType,
        /// Abbreviation of the field.
        field: &'static str,
        /// Its offset in the PDU in bytes.
        offset: u32,
        /// What it holds.
        value: u64,
        /// What it may hold.
        valid: &'static str,
    },
    /// A PDU came when it must not.
    #[error("{pdu} came {when}")]
    Sequence {
        /// The PDU.
        pdu: PduType,
        /// When it came.
        when: &'static str,
    },
    /// A PDU is about a command identifier that no command in flight has.
    #[error("{pdu} is about command identifier {cid}, which is not in flight")]
    NoSuchCommand {
        /// The PDU.
        pdu: PduType,
        /// The identifier.
        cid: u16,
    },
    /// A header does not match its digest.
    #[error("{pdu}: header digest {received:#010x} received, {computed:#010x} computed")]
    HeaderDigest {
        /// The PDU.
        pdu: PduType,
        /// The digest that came with it.
        received: u32,
        /// The digest of what came.
        computed: u32,
    },
    /// Data outside the buffer of its command, or not the data that is next.
    #[error(
        "{pdu} for command identifier {cid}: {len} bytes at offset {offset}, \
         but offset {next} of {size} bytes is next"
    )]
    DataOutOfRange {
        /// The PDU.
        pdu: PduType,
        /// The command.
        cid: u16,
        /// Offset that the PDU names, in bytes.
        offset: u32,
        /// Bytes that it carries or asks for.
        len: u32,
        /// The offset that is next.
        next: u32,
        /// Bytes of the command's buffer.
        size: u32,
    },
    /// A second R2T of a command before the first was answered.
    #[error("R2T for command identifier {cid} while another is being answered (MAXR2T is 1)")]
    R2tLimit {
        /// The command.
        cid: u16,
    },
    /// The controller ended the connection.
    #[error("the controller ended the connection: {fes}, information {fei:#x}")]
    Terminated {
        /// Its reason.
        fes: FatalErrorStatus,
        /// What goes with it.
        fei: u32,
    },
    /// The controller did not answer the connection request in time.
    #[error("no answer to the connection request (ICReq) in time")]
    OpenTimeout,
    /// A command did not complete in time.
    #[error("command identifier {cid} (opcode {opcode:#04x}) did not complete by {deadline}")]
    CommandTimeout {
        /// The command.
        cid: u16,
        /// Its opcode.
        opcode: u8,
        /// When it should have been done, on the host's clock.
        deadline: Nanos,
    },
}

impl ProtocolError {
    /// What the host tells the controller before it closes the connection;
    /// `None` if there is nothing to be told.
    #[must_use]
    pub fn termination(&self) -> Option<(FatalErrorStatus, u32)> {
        match *self {
            Self::Field { offset, .. } => {
                Some((FatalErrorStatus::INVALID_PDU_HEADER_FIELD, offset))
            }
            Self::Sequence { .. } => Some((FatalErrorStatus::PDU_SEQUENCE_ERROR, 0)),
            // CCCID of data and R2T PDUs lies at offset 8, CID of a response at 20.
            Self::NoSuchCommand { pdu, .. } => {
                let offset = if pdu == PduType::CAPSULE_RESP { 20 } else { 8 };
                Some((FatalErrorStatus::INVALID_PDU_HEADER_FIELD, offset))
            }
            Self::HeaderDigest { received, .. } => {
                Some((FatalErrorStatus::HEADER_DIGEST_ERROR, received))
            }
            Self::DataOutOfRange { .. } => Some((FatalErrorStatus::DATA_TRANSFER_OUT_OF_RANGE, 0)),
            Self::R2tLimit { .. } => Some((FatalErrorStatus::LIMIT_EXCEEDED, 0)),
            Self::Terminated { .. } | Self::OpenTimeout | Self::CommandTimeout { .. } => None,
        }
    }
}
