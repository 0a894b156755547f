//! Registers of the controller, and where doorbells are.

use zonelab_nvme::property::{AdminQueueAttributes, Configuration};

/// Where the doorbells begin.
pub(crate) const FIRST_DOORBELL: u64 = 0x1000;

/// A doorbell: whose it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doorbell {
    SubmissionTail(u16),
    CompletionHead(u16),
}

/// The doorbell at `offset` in the BAR, if it is one.
pub(crate) fn doorbell(offset: u64, dstrd: u8) -> Option<Doorbell> {
    let from_first = offset.checked_sub(FIRST_DOORBELL)?;
    let stride = 4_u64 << dstrd;
    if !from_first.is_multiple_of(stride) {
        return None;
    }
    let index = from_first / stride;
    let qid = u16::try_from(index / 2).ok()?;
    Some(match index % 2 {
        0 => Doorbell::SubmissionTail(qid),
        _ => Doorbell::CompletionHead(qid),
    })
}

/// What the host has written.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) cc: Configuration,
    pub(crate) aqa: AdminQueueAttributes,
    pub(crate) asq: u64,
    pub(crate) acq: u64,
}

/// The half of a 64-bit register that is at `offset`, 0 or 4.
pub(crate) const fn half(value: u64, offset: u64) -> u32 {
    if offset == 0 {
        value as u32
    } else {
        (value >> 32) as u32
    }
}

/// `value` with the half at `offset`, 0 or 4, changed.
pub(crate) const fn with_half(value: u64, offset: u64, half: u32) -> u64 {
    if offset == 0 {
        value & !0xffff_ffff | half as u64
    } else {
        value & 0xffff_ffff | (half as u64) << 32
    }
}
