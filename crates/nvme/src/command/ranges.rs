//! Commands of the NVM command set whose data buffer lists ranges: Dataset
//! Management and Copy (1.0, sections 3.2.3 and 3.2.2).

use super::dwords::{TransferDword12, TransferDword13, dtype};
use super::{OutOfRange, Protection, expect_opcode};
use crate::queue::{IoOpcode, SubmissionEntry};
use crate::{Reserved, Status};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Dword 10 of Dataset Management.
    struct DatasetDword10(U32: u32) {
        /// Number of ranges (NR), zero based.
        [7:0] nr_z / with_nr_z: u8,
    }
}

bits! {
    /// Dword 11 of Dataset Management.
    struct DatasetDword11(U32: u32) {
        /// Integral dataset for read (IDR).
        [0:0] idr / with_idr: bool,
        /// Integral dataset for write (IDW).
        [1:1] idw / with_idw: bool,
        /// Deallocate (AD).
        [2:2] ad / with_ad: bool,
    }
}

bits! {
    /// Context Attributes (CATTR) of a range of Dataset Management.
    pub struct RangeContext(U32: u32) {
        /// Access frequency (AF): 0 says nothing; the NVM command set lists the others.
        [3:0] af / with_af: u8,
        /// Access latency (AL): 0 none, 1 idle, 2 normal, 3 low.
        [5:4] al / with_al: u8,
        /// Sequential read range (SR).
        [8:8] sr / with_sr: bool,
        /// Sequential write range (SW).
        [9:9] sw / with_sw: bool,
        /// Write prepare (WP): it will be written soon.
        [10:10] wp / with_wp: bool,
        /// Command access size in blocks; 0: not said.
        [31:24] access_size / with_access_size: u8,
    }
}

/// A range of Dataset Management. Up to 256 of them are its data.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct DatasetRange {
    /// Context attributes.
    pub cattr: RangeContext,
    /// Length in blocks. Not zero based.
    pub nlb: U32,
    /// First block.
    pub slba: U64,
}

const _: () = assert!(size_of::<DatasetRange>() == 16);

/// Dataset Management (DSM): hints on ranges, of which deallocation is the one
/// that hosts give. Its data are [`DatasetRange`]s.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DatasetManagement {
    /// Namespace.
    pub nsid: u32,
    /// Number of ranges, 1 to 256.
    pub nr: u16,
    /// Integral dataset for read (IDR): the ranges are read as a whole.
    pub idr: bool,
    /// Integral dataset for write (IDW): the ranges are written as a whole.
    pub idw: bool,
    /// Deallocate (AD): the blocks may be freed.
    pub ad: bool,
}

impl DatasetManagement {
    /// Deallocate `nr` ranges.
    #[must_use]
    pub fn deallocate(nsid: u32, nr: u16) -> Self {
        Self {
            nsid,
            nr,
            idr: false,
            idw: false,
            ad: true,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `nr` is not one of 1 to 256.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let dword10 = DatasetDword10::default().with_nr_z(nr_z(self.nr)?);
        let dword11 = DatasetDword11::default()
            .with_idr(self.idr)
            .with_idw(self.idw)
            .with_ad(self.ad);
        let entry = SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: dword11.bits().into(),
            ..SubmissionEntry::new(IoOpcode::DATASET_MANAGEMENT.0)
        };
        Ok(entry.with_nsid(self.nsid))
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_opcode(entry, IoOpcode::DATASET_MANAGEMENT.0)?;
        let dword10 = DatasetDword10::from_bits(entry.cdw10.get());
        let dword11 = DatasetDword11::from_bits(entry.cdw11.get());
        Ok(Self {
            nsid: entry.nsid.get(),
            nr: u16::from(dword10.nr_z()) + 1,
            idr: dword11.idr(),
            idw: dword11.idw(),
            ad: dword11.ad(),
        })
    }
}

bits! {
    /// Bits 15 to 0 of dword 12 of Copy, where other commands have NLB.
    struct CopyBits(U16: u16) {
        /// Number of ranges (NR), zero based.
        [7:0] nr_z / with_nr_z: u8,
        /// Descriptor format (DESFMT).
        [11:8] desfmt / with_desfmt: u8,
        /// PRINFOR: check the reference tag (PRCHK bit 0).
        [12:12] check_reference_tag / with_check_reference_tag: bool,
        /// PRINFOR: check the application tag (PRCHK bit 1).
        [13:13] check_application_tag / with_check_application_tag: bool,
        /// PRINFOR: check the guard (PRCHK bit 2).
        [14:14] check_guard / with_check_guard: bool,
        /// PRINFOR: protection information action (PRACT).
        [15:15] pract / with_pract: bool,
    }
}

/// What a Copy does with the protection information that it reads. The tags to
/// expect are in the [`CopyRange`]s.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReadProtection {
    /// Strip the information (PRACT).
    pub pract: bool,
    /// Check the guard (PRCHK bit 2).
    pub check_guard: bool,
    /// Check the application tag (PRCHK bit 1).
    pub check_application_tag: bool,
    /// Check the reference tag (PRCHK bit 0).
    pub check_reference_tag: bool,
    /// Check the storage tag (STCR).
    pub stc: bool,
}

/// A source range of Copy, format 0h. Up to 256 of them are its data.
#[derive(
    Copy,
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct CopyRange {
    /// Zero.
    pub reserved_0: Reserved<8>,
    /// First block.
    pub slba: U64,
    /// Number of blocks, zero based.
    pub nlb_z: U16,
    /// Zero.
    pub reserved_18: Reserved<6>,
    /// Expected initial reference tag, with the storage tag in its upper bits
    /// if there is one.
    pub eilbrt: U32,
    /// Expected application tag.
    pub elbat: U16,
    /// Which bits of the application tag are compared.
    pub elbatm: U16,
}

const _: () = assert!(size_of::<CopyRange>() == 32);

/// Copy: blocks of several ranges, one after the other, to one destination. In
/// a zone, at its write pointer. Its data are [`CopyRange`]s.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyCommand {
    /// Namespace.
    pub nsid: u32,
    /// First block of the destination (SDLBA).
    pub sdlba: u64,
    /// Number of ranges, 1 to 256.
    pub nr: u16,
    /// Descriptor format (DESFMT) of the ranges, 0 to 15: 0 is [`CopyRange`].
    pub desfmt: u8,
    /// Limited retry: give up early rather than try all means.
    pub lr: bool,
    /// Force unit access: durable before it completes.
    pub fua: bool,
    /// Directive type (DTYPE), 0 to 15: 0 none, 1 streams.
    pub dtype: u8,
    /// Directive specific (DSPEC): with streams, the stream.
    pub dspec: u16,
    /// End-to-end protection of what is read (PRINFOR, STCR).
    pub read_protection: CopyReadProtection,
    /// End-to-end protection of what is written (PRINFOW, STCW and the tags).
    pub protection: Protection,
}

impl CopyCommand {
    /// Copy `nr` ranges of format 0 to `sdlba`, with no option set.
    #[must_use]
    pub fn new(nsid: u32, sdlba: u64, nr: u16) -> Self {
        Self {
            nsid,
            sdlba,
            nr,
            ..Self::default()
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `nr` is not one of 1 to 256, or `desfmt` or `dtype`
    /// exceeds 15.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        OutOfRange::check("desfmt", self.desfmt.into(), 0, 0xf)?;
        let read = self.read_protection;
        let low = CopyBits::default()
            .with_nr_z(nr_z(self.nr)?)
            .with_desfmt(self.desfmt)
            .with_check_reference_tag(read.check_reference_tag)
            .with_check_application_tag(read.check_application_tag)
            .with_check_guard(read.check_guard)
            .with_pract(read.pract);
        let dword12 = TransferDword12::default()
            .with_nlb_z(low.bits())
            .with_bit_25(read.stc)
            .with_dtype(dtype(self.dtype)?)
            .with_lr(self.lr)
            .with_fua(self.fua);
        let entry = SubmissionEntry::new(IoOpcode::COPY.0)
            .with_nsid(self.nsid)
            .with_slba(self.sdlba);
        let (entry, dword12) = self.protection.store(entry, dword12);
        let dword13 = TransferDword13::default().with_dspec(self.dspec);
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
        expect_opcode(entry, IoOpcode::COPY.0)?;
        let dword12 = TransferDword12::from_bits(entry.cdw12.get());
        let low = CopyBits::from_bits(dword12.nlb_z());
        Ok(Self {
            nsid: entry.nsid.get(),
            sdlba: entry.slba(),
            nr: u16::from(low.nr_z()) + 1,
            desfmt: low.desfmt(),
            lr: dword12.lr(),
            fua: dword12.fua(),
            dtype: dword12.dtype(),
            dspec: TransferDword13::from_bits(entry.cdw13.get()).dspec(),
            read_protection: CopyReadProtection {
                pract: low.pract(),
                check_guard: low.check_guard(),
                check_application_tag: low.check_application_tag(),
                check_reference_tag: low.check_reference_tag(),
                stc: dword12.bit_25(),
            },
            protection: Protection::load(entry),
        })
    }
}

/// The zero-based NR field for `nr` ranges.
fn nr_z(nr: u16) -> Result<u8, OutOfRange> {
    let nr = OutOfRange::check("nr", nr.into(), 1, 1 << 8)?;
    Ok((nr - 1) as u8)
}
