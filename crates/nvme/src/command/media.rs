//! Commands of the NVM command set that name blocks and move no data, or move
//! it only to look at it: Compare, Verify and Write Zeroes (1.0, sections
//! 3.2.1, 3.2.6 and 3.2.8).

use super::dwords::{TransferDword12, nlb_z};
use super::{OutOfRange, Protection, expect_opcode};
use crate::Status;
use crate::queue::{IoOpcode, SubmissionEntry};

/// The entry of a command whose fields are in dwords 10 to 12, 14 and 15.
fn entry(
    opcode: IoOpcode,
    nsid: u32,
    slba: u64,
    dword12: TransferDword12,
    protection: Protection,
) -> SubmissionEntry {
    let entry = SubmissionEntry::new(opcode.0)
        .with_nsid(nsid)
        .with_slba(slba);
    let (entry, dword12) = protection.store(entry, dword12);
    SubmissionEntry {
        cdw12: dword12.bits().into(),
        ..entry
    }
}

/// A command that looks at blocks and changes none. They differ in their opcode.
macro_rules! looks_at_blocks {
    ($(#[$doc:meta])* $name:ident, $opcode:ident, $does:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
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
            /// End-to-end protection.
            pub protection: Protection,
        }

        impl $name {
            #[doc = concat!($does, " `nlb` blocks from `slba`, with no option set.")]
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
                let dword12 = TransferDword12::default()
                    .with_nlb_z(nlb_z(self.nlb)?)
                    .with_lr(self.lr)
                    .with_fua(self.fua);
                let Self { nsid, slba, .. } = *self;
                let opcode = IoOpcode::$opcode;
                Ok(entry(opcode, nsid, slba, dword12, self.protection))
            }

            /// The command of an entry.
            ///
            /// # Errors
            /// [`Status::INVALID_OPCODE`] if it is another one.
            pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
                expect_opcode(entry, IoOpcode::$opcode.0)?;
                let dword12 = TransferDword12::from_bits(entry.cdw12.get());
                Ok(Self {
                    nsid: entry.nsid.get(),
                    slba: entry.slba(),
                    nlb: u32::from(dword12.nlb_z()) + 1,
                    lr: dword12.lr(),
                    fua: dword12.fua(),
                    protection: Protection::load(entry),
                })
            }
        }
    };
}

looks_at_blocks!(
    /// Compare: blocks with the data buffer.
    Compare,
    COMPARE,
    "Compare"
);

looks_at_blocks!(
    /// Verify: read blocks and check them, without a transfer.
    Verify,
    VERIFY,
    "Verify"
);

/// Write Zeroes: blocks that read as zero from then on. In a zone, at its write
/// pointer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteZeroes {
    /// Namespace.
    pub nsid: u32,
    /// First block.
    pub slba: u64,
    /// Number of blocks, 1 to 65536.
    pub nlb: u32,
    /// Deallocate (DEAC): the controller should free the blocks.
    pub deac: bool,
    /// Limited retry: give up early rather than try all means.
    pub lr: bool,
    /// Force unit access: durable before it completes.
    pub fua: bool,
    /// End-to-end protection.
    pub protection: Protection,
}

impl WriteZeroes {
    /// Zero `nlb` blocks from `slba`, with no option set.
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
        let dword12 = TransferDword12::default()
            .with_nlb_z(nlb_z(self.nlb)?)
            .with_bit_25(self.deac)
            .with_lr(self.lr)
            .with_fua(self.fua);
        let Self { nsid, slba, .. } = *self;
        Ok(entry(
            IoOpcode::WRITE_ZEROES,
            nsid,
            slba,
            dword12,
            self.protection,
        ))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::WRITE_ZEROES.0)?;
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            slba: entry.slba(),
            nlb: u32::from(dword12.nlb_z()) + 1,
            deac: dword12.bit_25(),
            lr: dword12.lr(),
            fua: dword12.fua(),
            protection: Protection::load(entry),
        })
    }
}
