//! What the data pointer of a command asks the transport to do.

use zonelab_nvme::Status;
use zonelab_nvme::queue::{AdminOpcode, PointerKind, SglDescriptor, SubmissionEntry};

/// What is to be done about the data of a command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It has none.
    Nothing,
    /// `len` bytes at `offset` of the data of its capsule.
    InCapsule { offset: u32, len: u32 },
    /// `len` bytes that the host has to be asked for.
    FromHost { len: u32 },
    /// The host has room for `len` bytes.
    ToHost { len: u32 },
}

/// Limits that a data pointer must keep to, in bytes.
#[derive(Copy, Clone, Debug)]
pub(super) struct PointerLimits {
    /// Data that the capsule of this command came with.
    pub(super) capsule: u32,
    /// Most data in a capsule of this queue.
    pub(super) in_capsule: u32,
    /// Most data of a command.
    pub(super) transfer: u32,
}

/// Bits 1:0 of an opcode, and of the type of a fabrics command: which way data goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Direction {
    None,
    FromHost,
    ToHost,
}

impl Direction {
    fn of(entry: &SubmissionEntry) -> Self {
        let opcode = entry.cdw0.opc();
        let code = if opcode == AdminOpcode::FABRICS.0 {
            entry.nsid.get()
        } else {
            u32::from(opcode)
        };
        match code & 0b11 {
            0b01 => Self::FromHost,
            0b10 => Self::ToHost,
            // No command moves data both ways; the controller refuses the opcode.
            _ => Self::None,
        }
    }
}

/// What the data pointer of `entry` asks for.
///
/// # Errors
/// The status with which the command fails.
pub(super) fn plan(entry: &SubmissionEntry, limits: PointerLimits) -> Result<Plan, Status> {
    let direction = Direction::of(entry);
    if direction == Direction::None {
        return Ok(Plan::Nothing);
    }
    if entry.cdw0.psdt() != PointerKind::SGL_MPTR_BUFFER {
        return Err(Status::INVALID_FIELD);
    }
    let sgl = entry.dptr.as_sgl();
    let len = sgl.length.get();
    if len > limits.transfer {
        return Err(Status::INVALID_FIELD);
    }
    match direction {
        _ if len == 0 => Ok(Plan::Nothing),
        Direction::ToHost if sgl.is_transport() => Ok(Plan::ToHost { len }),
        Direction::FromHost if sgl.is_transport() => Ok(Plan::FromHost { len }),
        Direction::FromHost if sgl.is_in_capsule() => in_capsule(sgl, limits),
        _ => Err(Status::SGL_DESCRIPTOR_TYPE_INVALID),
    }
}

fn in_capsule(sgl: SglDescriptor, limits: PointerLimits) -> Result<Plan, Status> {
    let len = sgl.length.get();
    let offset = u32::try_from(sgl.address.get()).map_err(|_| Status::SGL_OFFSET_INVALID)?;
    if offset > limits.capsule {
        return Err(Status::SGL_OFFSET_INVALID);
    }
    // The difference is not negative, by the line before.
    if len > limits.in_capsule || len > limits.capsule - offset {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok(Plan::InCapsule { offset, len })
}
