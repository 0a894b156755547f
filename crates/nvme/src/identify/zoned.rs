//! What the ZNS command set adds (CSI 02h): namespace (CNS 05h) and controller
//! (CNS 06h).

use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Zone operation characteristics (ZOC).
    pub struct ZoneCharacteristics(U16: u16) {
        /// Variable zone capacity: it may change when a zone is reset.
        [0:0] vzc / with_vzc: bool,
        /// Zone active excursions: the device may take active zones to full.
        [1:1] zae / with_zae: bool,
    }
}

bits! {
    /// Optional zoned command support (OZCS).
    pub struct ZonedOptions(U16: u16) {
        /// Read across zone boundaries.
        [0:0] razb / with_razb: bool,
        /// Zone random write areas.
        [1:1] zrwasup / with_zrwasup: bool,
    }
}

bits! {
    /// ZRWA capability (ZRWACAP).
    pub struct ZrwaCapability(u8: u8) {
        /// Explicit flush: Zone Send Action 11h.
        [0:0] expflushsup / with_expflushsup: bool,
    }
}

/// What ZNS adds to an LBA format (LBAFE).
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
pub struct LbaFormatExtension {
    /// Zone size in blocks.
    pub zsze: U64,
    /// Size of a zone descriptor extension in units of 64 bytes; 0: none.
    pub zdes: u8,
    /// Zero.
    pub reserved_9: Reserved<7>,
}

const _: () = assert!(size_of::<LbaFormatExtension>() == 16);

/// I/O Command Set Specific Identify Namespace of the ZNS command set.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyNamespaceZns {
    /// Zone operation characteristics.
    pub zoc: ZoneCharacteristics,
    /// Optional zoned command support.
    pub ozcs: ZonedOptions,
    /// Maximum active resources, zero based; [`NO_LIMIT`](Self::NO_LIMIT).
    pub mar_z: U32,
    /// Maximum open resources, zero based; [`NO_LIMIT`](Self::NO_LIMIT).
    pub mor_z: U32,
    /// Reset recommended limit in seconds; 0: not reported.
    pub rrl: U32,
    /// Finish recommended limit in seconds; 0: not reported.
    pub frl: U32,
    /// Reset recommended limit 1 in seconds.
    pub rrl1: U32,
    /// Reset recommended limit 2 in seconds.
    pub rrl2: U32,
    /// Reset recommended limit 3 in seconds.
    pub rrl3: U32,
    /// Finish recommended limit 1 in seconds.
    pub frl1: U32,
    /// Finish recommended limit 2 in seconds.
    pub frl2: U32,
    /// Finish recommended limit 3 in seconds.
    pub frl3: U32,
    /// Number of ZRWA resources, zero based; [`NO_LIMIT`](Self::NO_LIMIT).
    pub numzrwa_z: U32,
    /// ZRWA flush granularity in blocks.
    pub zrwafg: U16,
    /// ZRWA size in blocks.
    pub zrwasz: U16,
    /// ZRWA capability.
    pub zrwacap: ZrwaCapability,
    /// Zero.
    pub reserved_53: Reserved<2763>,
    /// LBA format extensions: one for each `lbaf` of the namespace.
    pub lbafe: [LbaFormatExtension; 64],
    /// Vendor specific.
    pub vs: Reserved<256>,
}

const _: () = assert!(size_of::<IdentifyNamespaceZns>() == 4096);

impl IdentifyNamespaceZns {
    /// The value of `mar_z`, `mor_z` and `numzrwa_z` if there is no limit.
    pub const NO_LIMIT: u32 = u32::MAX;

    /// The most active zones (MAR as a plain count); `None` if there is no limit.
    #[must_use]
    pub fn max_active(&self) -> Option<u32> {
        self.mar_z.get().checked_add(1)
    }

    /// The most open zones (MOR as a plain count); `None` if there is no limit.
    #[must_use]
    pub fn max_open(&self) -> Option<u32> {
        self.mor_z.get().checked_add(1)
    }

    /// The ZRWA resources (NUMZRWA as a plain count); `None` if there is no limit.
    #[must_use]
    pub fn max_zrwa(&self) -> Option<u32> {
        self.numzrwa_z.get().checked_add(1)
    }
}

/// I/O Command Set Specific Identify Controller of the ZNS command set.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyControllerZns {
    /// Zone append size limit: 2 to the power of it times the smallest memory
    /// page (CAP.MPSMIN); 0: the limit is MDTS.
    pub zasl: u8,
    /// Zero.
    pub reserved_1: Reserved<4095>,
}

const _: () = assert!(size_of::<IdentifyControllerZns>() == 4096);
