//! Commands as plain structs, to and from their submission queue entries.
//!
//! Counts are plain here: `nlb == 1` is one block, although the entry holds 0.
//! `to_entry` fails only if a value has no place in the entry, and names it.
//! `parse` fails only if the opcode is another one: which values make sense is
//! for the device to say, with the status that fits. The command identifier,
//! fusing and the data pointer belong to the queue and stay in the entry, where
//! [`SubmissionEntry`] sets them.

mod admin;
mod dwords;
mod features;
mod log_page;
mod media;
mod nvm;
mod placement;
mod queues;
mod ranges;
mod reservations;
mod zoned;

pub use admin::{Abort, AdminCommand, FormatNvm, Identify, SecureErase};
pub use dwords::DatasetHints;
pub use features::{GetFeatures, SetFeatures};
pub use log_page::GetLogPage;
pub use media::{Compare, Verify, WriteZeroes};
pub use nvm::{Flush, Protection, Read, Write};
pub use placement::{IoManagementReceive, IoManagementSend};
pub use queues::{
    CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoQueue, DoorbellBufferConfig,
};
pub use ranges::{
    CopyCommand, CopyRange, CopyReadProtection, DatasetManagement, DatasetRange, RangeContext,
};
pub use reservations::{
    ReservationAcquire, ReservationRegister, ReservationRelease, ReservationReport,
};
pub use zoned::{ZoneAppend, ZoneManagementReceive, ZoneManagementSend};

use crate::Status;
use crate::queue::{IoOpcode, SubmissionEntry};
use core::fmt;

/// A value that its field cannot hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The field, as the struct calls it.
    pub field: &'static str,
    /// What it was to hold.
    pub value: u64,
    /// The least it can hold.
    pub min: u64,
    /// The most it can hold.
    pub max: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            value,
            min,
            max,
        } = self;
        write!(f, "{field} is {value}, but the entry holds {min} to {max}")
    }
}

impl core::error::Error for OutOfRange {}

impl OutOfRange {
    /// `value`, if it is one of `min` to `max`.
    pub(crate) fn check(field: &'static str, value: u64, min: u64, max: u64) -> Result<u64, Self> {
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(Self {
            field,
            value,
            min,
            max,
        })
    }
}

/// [`Status::INVALID_OPCODE`] unless the entry has opcode `expected`.
pub(crate) fn expect_opcode(entry: &SubmissionEntry, expected: u8) -> Result<(), Status> {
    if entry.cdw0.opc() == expected {
        return Ok(());
    }
    Err(Status::INVALID_OPCODE)
}

/// A command of an I/O queue, parsed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IoCommand {
    /// Make written data durable.
    Flush(Flush),
    /// Read blocks.
    Read(Read),
    /// Write blocks.
    Write(Write),
    /// Compare blocks with a buffer.
    Compare(Compare),
    /// Check that blocks can be read.
    Verify(Verify),
    /// Write zeroes without a transfer.
    WriteZeroes(WriteZeroes),
    /// Hints on ranges.
    DatasetManagement(DatasetManagement),
    /// Copy ranges of blocks inside the device.
    Copy(CopyCommand),
    /// Write blocks at the write pointer of a zone.
    ZoneAppend(ZoneAppend),
    /// Change the state of a zone, or of all.
    ZoneManagementSend(ZoneManagementSend),
    /// Report zones.
    ZoneManagementReceive(ZoneManagementReceive),
    /// Report reclaim unit handles.
    IoManagementReceive(IoManagementReceive),
    /// Change what reclaim unit handles refer to.
    IoManagementSend(IoManagementSend),
    /// Register a reservation key.
    ReservationRegister(ReservationRegister),
    /// Read the state of reservations.
    ReservationReport(ReservationReport),
    /// Take a reservation.
    ReservationAcquire(ReservationAcquire),
    /// Release a reservation.
    ReservationRelease(ReservationRelease),
}

impl IoCommand {
    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if the opcode has no parsed form here.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        match IoOpcode(entry.cdw0.opc()) {
            IoOpcode::FLUSH => Flush::parse(entry).map(Self::Flush),
            IoOpcode::READ => Read::parse(entry).map(Self::Read),
            IoOpcode::WRITE => Write::parse(entry).map(Self::Write),
            IoOpcode::COMPARE => Compare::parse(entry).map(Self::Compare),
            IoOpcode::VERIFY => Verify::parse(entry).map(Self::Verify),
            IoOpcode::WRITE_ZEROES => WriteZeroes::parse(entry).map(Self::WriteZeroes),
            IoOpcode::DATASET_MANAGEMENT => {
                DatasetManagement::parse(entry).map(Self::DatasetManagement)
            }
            IoOpcode::COPY => CopyCommand::parse(entry).map(Self::Copy),
            IoOpcode::ZONE_APPEND => ZoneAppend::parse(entry).map(Self::ZoneAppend),
            IoOpcode::ZONE_MANAGEMENT_SEND => {
                ZoneManagementSend::parse(entry).map(Self::ZoneManagementSend)
            }
            IoOpcode::ZONE_MANAGEMENT_RECEIVE => {
                ZoneManagementReceive::parse(entry).map(Self::ZoneManagementReceive)
            }
            IoOpcode::IO_MANAGEMENT_RECEIVE => {
                IoManagementReceive::parse(entry).map(Self::IoManagementReceive)
            }
            IoOpcode::IO_MANAGEMENT_SEND => {
                IoManagementSend::parse(entry).map(Self::IoManagementSend)
            }
            IoOpcode::RESERVATION_REGISTER => {
                ReservationRegister::parse(entry).map(Self::ReservationRegister)
            }
            IoOpcode::RESERVATION_REPORT => {
                ReservationReport::parse(entry).map(Self::ReservationReport)
            }
            IoOpcode::RESERVATION_ACQUIRE => {
                ReservationAcquire::parse(entry).map(Self::ReservationAcquire)
            }
            IoOpcode::RESERVATION_RELEASE => {
                ReservationRelease::parse(entry).map(Self::ReservationRelease)
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if a value has no place in it.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        match self {
            Self::Flush(command) => Ok(command.to_entry()),
            Self::Read(command) => command.to_entry(),
            Self::Write(command) => command.to_entry(),
            Self::Compare(command) => command.to_entry(),
            Self::Verify(command) => command.to_entry(),
            Self::WriteZeroes(command) => command.to_entry(),
            Self::DatasetManagement(command) => command.to_entry(),
            Self::Copy(command) => command.to_entry(),
            Self::ZoneAppend(command) => command.to_entry(),
            Self::ZoneManagementSend(command) => Ok(command.to_entry()),
            Self::ZoneManagementReceive(command) => command.to_entry(),
            Self::IoManagementReceive(command) => command.to_entry(),
            Self::IoManagementSend(command) => Ok(command.to_entry()),
            Self::ReservationRegister(command) => command.to_entry(),
            Self::ReservationReport(command) => command.to_entry(),
            Self::ReservationAcquire(command) => command.to_entry(),
            Self::ReservationRelease(command) => command.to_entry(),
        }
    }

    /// The namespace that the command is for (NSID).
    #[must_use]
    pub fn nsid(&self) -> u32 {
        match self {
            Self::Flush(command) => command.nsid,
            Self::Read(command) => command.nsid,
            Self::Write(command) => command.nsid,
            Self::Compare(command) => command.nsid,
            Self::Verify(command) => command.nsid,
            Self::WriteZeroes(command) => command.nsid,
            Self::DatasetManagement(command) => command.nsid,
            Self::Copy(command) => command.nsid,
            Self::ZoneAppend(command) => command.nsid,
            Self::ZoneManagementSend(command) => command.nsid,
            Self::ZoneManagementReceive(command) => command.nsid,
            Self::IoManagementReceive(command) => command.nsid,
            Self::IoManagementSend(command) => command.nsid,
            Self::ReservationRegister(command) => command.nsid,
            Self::ReservationReport(command) => command.nsid,
            Self::ReservationAcquire(command) => command.nsid,
            Self::ReservationRelease(command) => command.nsid,
        }
    }
}
