//! What a peer did wrong.

use zonelab_nvme::tcp::FatalErrorStatus;

/// A fatal error of the transport: what the peer is told, and what the log says.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {what}")]
pub struct Violation {
    /// Fatal error status (FES).
    pub status: FatalErrorStatus,
    /// Fatal error information (FEI): the offset of a field in bytes, or the
    /// digest that was received; 0 where the status has none.
    pub information: u32,
    /// What is wrong.
    pub what: &'static str,
}

impl Violation {
    /// The field at `offset` of the header has a value that it must not have.
    pub(super) const fn field(offset: u32, what: &'static str) -> Self {
        Self {
            status: FatalErrorStatus::INVALID_PDU_HEADER_FIELD,
            information: offset,
            what,
        }
    }

    /// A PDU at a time when it must not come.
    pub(super) const fn sequence(what: &'static str) -> Self {
        Self {
            status: FatalErrorStatus::PDU_SEQUENCE_ERROR,
            information: 0,
            what,
        }
    }

    /// The field at `offset` asks for something that is not supported.
    pub(super) const fn unsupported(offset: u32, what: &'static str) -> Self {
        Self {
            status: FatalErrorStatus::UNSUPPORTED_PARAMETER,
            information: offset,
            what,
        }
    }

    /// The header digest is not that of the header.
    pub(super) const fn header_digest(received: u32) -> Self {
        Self {
            status: FatalErrorStatus::HEADER_DIGEST_ERROR,
            information: received,
            what: "the header digest is not that of the header",
        }
    }

    /// Data that nobody asked for.
    pub(super) const fn out_of_range(what: &'static str) -> Self {
        Self {
            status: FatalErrorStatus::DATA_TRANSFER_OUT_OF_RANGE,
            information: 0,
            what,
        }
    }

    /// More data in one PDU than MAXH2CDATA.
    pub(super) const fn limit() -> Self {
        Self {
            status: FatalErrorStatus::LIMIT_EXCEEDED,
            information: 0,
            what: "more data than MAXH2CDATA",
        }
    }
}
