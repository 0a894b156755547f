//! How a command fails: status, where in the command, and whether to try again.

use zonelab_nvme::Status;
use zonelab_nvme::log::ParameterErrorLocation;
use zonelab_nvme::status::StatusCodeType;

/// Bytes of a submission queue entry, for [`Failure::at`].
pub(super) mod byte {
    /// Opcode.
    pub(in crate::controller) const OPC: u8 = 0;
    /// Fused operation, kind of data pointer.
    pub(in crate::controller) const FLAGS: u8 = 1;
    /// Namespace identifier; type of a fabrics command.
    pub(in crate::controller) const NSID: u8 = 4;
    /// Data pointer.
    pub(in crate::controller) const DPTR: u8 = 24;
    /// Dword 10: starting LBA; CNS, LID or FID.
    pub(in crate::controller) const CDW10: u8 = 40;
    /// Dword 11.
    pub(in crate::controller) const CDW11: u8 = 44;
    /// Dword 12: number of blocks; log page offset.
    pub(in crate::controller) const CDW12: u8 = 48;
    /// Dword 13: zone send and receive action.
    pub(in crate::controller) const CDW13: u8 = 52;
}

/// A command that failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: Status,
    /// Parameter error location.
    pub(super) pel: ParameterErrorLocation,
    /// Dword 0 of the completion.
    pub(super) dw0: u32,
}

impl From<Status> for Failure {
    /// A failure that no field of the command is to blame for.
    fn from(status: Status) -> Self {
        Self {
            status,
            pel: ParameterErrorLocation::from_bits(ParameterErrorLocation::NONE),
            dw0: 0,
        }
    }
}

impl Failure {
    /// A failure because of the field at `byte` of the command.
    pub(super) fn at(status: Status, byte: u8) -> Self {
        Self::bit(status, byte, 0)
    }

    /// A failure because of the field that starts at a bit of `byte`.
    pub(super) fn bit(status: Status, byte: u8, bit: u8) -> Self {
        Self {
            status,
            pel: ParameterErrorLocation::default()
                .with_byte(byte)
                .with_bit(bit),
            dw0: 0,
        }
    }

    /// A limit of the command set on the size of a command that moves no blocks.
    pub(super) fn field_of_size() -> Self {
        Self::at(Status::COMMAND_SIZE_LIMIT_EXCEEDED, byte::CDW10)
    }

    /// Invalid Field because of the field at `byte`.
    pub(super) fn field(byte: u8) -> Self {
        Self::at(Status::INVALID_FIELD, byte)
    }
}

/// Do Not Retry (DNR): whether the same command would fail again if it were
/// sent again with nothing else done in between.
pub(super) fn do_not_retry(status: Status) -> bool {
    if status.is_success() || status.sct() == StatusCodeType::PATH {
        return false;
    }
    !matches!(
        status,
        Status::COMMAND_ID_CONFLICT
            | Status::DATA_TRANSFER_ERROR
            | Status::ABORTED_POWER_LOSS
            | Status::INTERNAL_ERROR
            | Status::ABORT_REQUESTED
            | Status::ABORTED_SQ_DELETION
            | Status::COMMAND_INTERRUPTED
            | Status::TRANSIENT_TRANSPORT_ERROR
            | Status::NAMESPACE_NOT_READY
            | Status::FORMAT_IN_PROGRESS
            | Status::ABORT_LIMIT_EXCEEDED
            | Status::AER_LIMIT_EXCEEDED
    )
}
