//! What the NVM command set adds (CSI 00h): namespace (CNS 05h) and controller
//! (CNS 06h); and what all command sets have in common about a namespace
//! (CNS 08h).

use crate::Reserved;
use crate::reservation::ReservationCapabilities;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Protection information capabilities (PIC).
    pub struct ProtectionCapabilities(u8: u8) {
        /// 16-bit guards with storage tags.
        [0:0] storage_tag_16 / with_storage_tag_16: bool,
        /// 16-bit guards: the storage tag must be masked as a whole.
        [1:1] storage_tag_16_mask / with_storage_tag_16_mask: bool,
        /// Storage tag checks of reads (STCRS).
        [2:2] stcrs / with_stcrs: bool,
    }
}

bits! {
    /// What the NVM command set adds to an LBA format (ELBAF).
    pub struct ExtendedLbaFormat(U32: u32) {
        /// Storage tag size (STS) in bits.
        [6:0] sts / with_sts: u8,
        /// Protection information format (PIF): 0 16-bit, 1 32-bit, 2 64-bit guard.
        [8:7] pif / with_pif: u8,
    }
}

/// I/O Command Set Specific Identify Namespace of the NVM command set.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyNamespaceNvm {
    /// Logical block storage tag mask.
    pub lbstm: U64,
    /// Protection information capabilities.
    pub pic: ProtectionCapabilities,
    /// Zero.
    pub reserved_9: Reserved<3>,
    /// Extended LBA formats: one for each `lbaf` of the namespace.
    pub elbaf: [ExtendedLbaFormat; 64],
    /// Zero.
    pub reserved_268: Reserved<3828>,
}

const _: () = assert!(size_of::<IdentifyNamespaceNvm>() == 4096);

/// I/O Command Set Specific Identify Controller of the NVM command set: limits
/// of commands that move no data.
///
/// A size limit is 2 to the power of it times the smallest memory page
/// (CAP.MPSMIN); 0: no limit.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyControllerNvm {
    /// Verify size limit.
    pub vsl: u8,
    /// Write zeroes size limit.
    pub wzsl: u8,
    /// Write uncorrectable size limit.
    pub wusl: u8,
    /// Dataset management ranges limit: of one command; 0: no limit.
    pub dmrl: u8,
    /// Dataset management range size limit in blocks; 0: no limit.
    pub dmrsl: U32,
    /// Dataset management size limit in blocks of one command; 0: no limit.
    pub dmsl: U64,
    /// Zero.
    pub reserved_16: Reserved<4080>,
}

const _: () = assert!(size_of::<IdentifyControllerNvm>() == 4096);

bits! {
    /// Common namespace features (NSFEAT) of [`IdentifyNamespaceIndependent`].
    pub struct IndependentFeatures(u8: u8) {
        /// NGUID and EUI64 are never used again for another namespace.
        [3:3] uidreuse / with_uidreuse: bool,
        /// Rotational media (RMEDIA).
        [4:4] rmedia / with_rmedia: bool,
    }
}

bits! {
    /// Namespace status (NSTAT).
    pub struct NamespaceStatus(u8: u8) {
        /// Namespace ready (NRDY).
        [0:0] nrdy / with_nrdy: bool,
    }
}

/// I/O Command Set Independent Identify Namespace.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyNamespaceIndependent {
    /// Common namespace features.
    pub nsfeat: IndependentFeatures,
    /// Multi-path I/O and sharing capabilities. Bit 0: may be shared.
    pub nmic: u8,
    /// Reservation capabilities.
    pub rescap: ReservationCapabilities,
    /// Format progress indicator.
    pub fpi: u8,
    /// ANA group identifier.
    pub anagrpid: U32,
    /// Namespace attributes. Bit 0: write protected.
    pub nsattr: u8,
    /// Zero.
    pub reserved_9: Reserved<1>,
    /// NVM set identifier.
    pub nvmsetid: U16,
    /// Endurance group identifier.
    pub endgid: U16,
    /// Namespace status.
    pub nstat: NamespaceStatus,
    /// Zero.
    pub reserved_15: Reserved<4081>,
}

const _: () = assert!(size_of::<IdentifyNamespaceIndependent>() == 4096);
