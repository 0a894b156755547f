//! Read and Write of the NVM command set (1.0, section 3.2), and Flush (base
//! specification 2.0, section 7.1).

use super::dwords::{
    DatasetHints, TransferDword12, TransferDword13, TransferDword15, dtype, nlb_z,
};
use super::{OutOfRange, expect_opcode};
use crate::Status;
use crate::queue::{IoOpcode, SubmissionEntry};

/// End-to-end protection fields of commands that name blocks.
///
/// All zero, which is the default, where the namespace has no protection
/// information.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// The controller inserts or strips the information (PRACT).
    pub pract: bool,
    /// Check the guard (PRCHK bit 2).
    pub check_guard: bool,
    /// Check the application tag (PRCHK bit 1).
    pub check_application_tag: bool,
    /// Check the reference tag (PRCHK bit 0).
    pub check_reference_tag: bool,
    /// Check the storage tag (STC).
    pub stc: bool,
    /// Initial reference tag, with the storage tag in its upper bits if there
    /// is one (ILBRT and LBST, or EILBRT and ELBST of a Read).
    pub ilbrt: u32,
    /// Application tag (LBAT, ELBAT of a Read).
    pub lbat: u16,
    /// Which bits of the application tag are compared (LBATM, ELBATM).
    pub lbatm: u16,
}

impl Protection {
    /// The entry and its dword 12 with these fields set.
    pub(super) fn store(
        self,
        entry: SubmissionEntry,
        dword12: TransferDword12,
    ) -> (SubmissionEntry, TransferDword12) {
        let dword15 = TransferDword15::default()
            .with_lbat(self.lbat)
            .with_lbatm(self.lbatm);
        let entry = SubmissionEntry {
            cdw14: self.ilbrt.into(),
            cdw15: dword15.bits().into(),
            ..entry
        };
        let dword12 = dword12
            .with_pract(self.pract)
            .with_check_guard(self.check_guard)
            .with_check_application_tag(self.check_application_tag)
            .with_check_reference_tag(self.check_reference_tag)
            .with_stc(self.stc);
        (entry, dword12)
    }

    /// The fields of an entry.
    pub(super) fn load(entry: &SubmissionEntry) -> Self {
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        let dword15 = TransferDword15::from_bits(entry.cdw15.get());
        Self {
            pract: dword12.pract(),
            check_guard: dword12.check_guard(),
            check_application_tag: dword12.check_application_tag(),
            check_reference_tag: dword12.check_reference_tag(),
            stc: dword12.stc(),
            ilbrt: entry.cdw14.get(),
            lbat: dword15.lbat(),
            lbatm: dword15.lbatm(),
        }
    }
}

/// Flush: make written data durable.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Namespace; FFFFFFFFh for all of them, where the controller supports that.
    pub nsid: u32,
}

impl Flush {
    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        SubmissionEntry::new(IoOpcode::FLUSH.0).with_nsid(self.nsid)
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::FLUSH.0)?;
        Ok(Self {
            nsid: entry.nsid.get(),
        })
    }
}

/// Read: blocks into the data buffer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Namespace.
    pub nsid: u32,
    /// First block.
    pub slba: u64,
    /// Number of blocks, 1 to 65536.
    pub nlb: u32,
    /// Limited retry: give up early rather than try all means.
    pub lr: bool,
    /// Force unit access: read from the media.
    pub fua: bool,
    /// What the host knows about the blocks.
    pub dsm: DatasetHints,
    /// End-to-end protection.
    pub protection: Protection,
}

impl Read {
    /// Read `nlb` blocks from `slba`, with no option set.
    #[must_use]
    pub fn new(nsid: u32, slba: u64, nlb: u32) -> Self {
        Self {
            nsid,
            slba,
            nlb,
            ..Self::default()
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `nlb` is not one of 1 to 65536.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let entry = SubmissionEntry::new(IoOpcode::READ.0)
            .with_nsid(self.nsid)
            .with_slba(self.slba);
        let dword12 = TransferDword12::default()
            .with_nlb_z(nlb_z(self.nlb)?)
            .with_lr(self.lr)
            .with_fua(self.fua);
        let (entry, dword12) = self.protection.store(entry, dword12);
        let dword13 = TransferDword13::default().with_dsm(self.dsm.bits());
        Ok(SubmissionEntry {
            cdw12: dword12.bits().into(),
            cdw13: dword13.bits().into(),
            ..entry
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::READ.0)?;
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        let dword13 = TransferDword13::from_bits(entry.cdw13.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            slba: entry.slba(),
            nlb: u32::from(dword12.nlb_z()) + 1,
            lr: dword12.lr(),
            fua: dword12.fua(),
            dsm: DatasetHints::from_bits(dword13.dsm()),
            protection: Protection::load(entry),
        })
    }
}

/// Write: blocks from the data buffer. In a zone, at its write pointer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Namespace.
    pub nsid: u32,
    /// First block.
    pub slba: u64,
    /// Number of blocks, 1 to 65536.
    pub nlb: u32,
    /// Limited retry: give up early rather than try all means.
    pub lr: bool,
    /// Force unit access: durable before it completes.
    pub fua: bool,
    /// What the host knows about the blocks.
    pub dsm: DatasetHints,
    /// Directive type (DTYPE), 0 to 15: 0 none, 1 streams.
    pub dtype: u8,
    /// Directive specific (DSPEC): with streams, the stream.
    pub dspec: u16,
    /// End-to-end protection.
    pub protection: Protection,
}

impl Write {
    /// Write `nlb` blocks at `slba`, with no option set.
    #[must_use]
    pub fn new(nsid: u32, slba: u64, nlb: u32) -> Self {
        Self {
            nsid,
            slba,
            nlb,
            ..Self::default()
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `nlb` is not one of 1 to 65536, or `dtype` exceeds 15.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let entry = SubmissionEntry::new(IoOpcode::WRITE.0)
            .with_nsid(self.nsid)
            .with_slba(self.slba);
        let dword12 = TransferDword12::default()
            .with_nlb_z(nlb_z(self.nlb)?)
            .with_dtype(dtype(self.dtype)?)
            .with_lr(self.lr)
            .with_fua(self.fua);
        let (entry, dword12) = self.protection.store(entry, dword12);
        let dword13 = TransferDword13::default()
            .with_dsm(self.dsm.bits())
            .with_dspec(self.dspec);
        Ok(SubmissionEntry {
            cdw12: dword12.bits().into(),
            cdw13: dword13.bits().into(),
            ..entry
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::WRITE.0)?;
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        let dword13 = TransferDword13::from_bits(entry.cdw13.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            slba: entry.slba(),
            nlb: u32::from(dword12.nlb_z()) + 1,
            lr: dword12.lr(),
            fua: dword12.fua(),
            dsm: DatasetHints::from_bits(dword13.dsm()),
            dtype: dword12.dtype(),
            dspec: dword13.dspec(),
            protection: Protection::load(entry),
        })
    }
}
