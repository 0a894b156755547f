//! I/O Management Receive and I/O Management Send (base specification 2.1,
//! sections 7.3 and 7.4).

use super::dwords::numd_z;
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::placement::{ReceiveOperation, SendOperation};
use crate::queue::{IoOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of I/O Management Receive.
    struct ReceiveDword10(U32: u32) {
        /// Management operation (MO).
        [7:0] mo / with_mo: ReceiveOperation,
        /// Management operation specific (MOS).
        [31:16] mos / with_mos: u16,
    }
}

bits! {
    /// Dword 10 of I/O Management Send.
    struct SendDword10(U32: u32) {
        /// Management operation (MO).
        [7:0] mo / with_mo: SendOperation,
        /// Management operation specific (MOS).
        [31:16] mos / with_mos: u16,
    }
}

/// I/O Management Receive: what the controller knows of reclaim unit handles.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IoManagementReceive {
    /// Namespace.
    pub nsid: u32,
    /// What to do.
    pub mo: ReceiveOperation,
    /// Management operation specific.
    pub mos: u16,
    /// Length of the data buffer in dwords, 1 to 2^32.
    pub numd: u64,
}

impl IoManagementReceive {
    /// Reclaim unit handle status, as much of it as fits into `numd` dwords.
    #[must_use]
    pub fn handle_status(nsid: u32, numd: u64) -> Self {
        Self {
            nsid,
            mo: ReceiveOperation::HANDLE_STATUS,
            mos: 0,
            numd,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `numd` is not one of 1 to 2^32.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword10 = ReceiveDword10::default()
            .with_mo(self.mo)
            .with_mos(self.mos);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: numd_z(self.numd)?.into(),
            ..SubmissionEntry::new(IoOpcode::IO_MANAGEMENT_RECEIVE.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::IO_MANAGEMENT_RECEIVE.0)?;
        let dword10 = ReceiveDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            mo: dword10.mo(),
            mos: dword10.mos(),
            numd: u64::from(entry.cdw11.get()) + 1,
        })
    }
}

/// I/O Management Send: what reclaim unit handles are to do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IoManagementSend {
    /// Namespace.
    pub nsid: u32,
    /// What to do.
    pub mo: SendOperation,
    /// Management operation specific. Reclaim unit handle update: number of
    /// placement identifiers (NPID), zero based.
    pub mos: u16,
}

impl IoManagementSend {
    /// Reclaim unit handle update, of handles with placement identifiers that are
    /// in the data buffer, 2 bytes each.
    ///
    /// # Errors
    /// [`OutOfRange`] if `npid` is not one of 1 to 65536.
    pub fn handle_update(nsid: u32, npid: u32) -> Result<Self, OutOfRange> {
        let npid = OutOfRange::check("npid", npid.into(), 1, 1 << 16)?;
        Ok(Self {
            nsid,
            mo: SendOperation::HANDLE_UPDATE,
            mos: (npid - 1) as u16,
        })
    }

    /// Number of placement identifiers of a reclaim unit handle update, 1 to 65536.
    #[must_use]
    pub fn npid(&self) -> u32 {
        u32::from(self.mos) + 1
    }

    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let dword10 = SendDword10::default().with_mo(self.mo).with_mos(self.mos);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..SubmissionEntry::new(IoOpcode::IO_MANAGEMENT_SEND.0)
        };
        entry.with_nsid(self.nsid)
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::IO_MANAGEMENT_SEND.0)?;
        let dword10 = SendDword10::from_bits(entry.cdw10.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            mo: dword10.mo(),
            mos: dword10.mos(),
        })
    }
}
