//! The namespace structure of the NVM command set (CNS 00h).

use crate::Reserved;
use crate::reservation::ReservationCapabilities;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Namespace features (NSFEAT).
    pub struct NamespaceFeatures(u8: u8) {
        /// Thin provisioning: NCAP may be less than NSZE.
        [0:0] thinp / with_thinp: bool,
        /// NAWUN, NAWUPF and NACWU are valid.
        [1:1] nsabp / with_nsabp: bool,
        /// The error for deallocated or unwritten blocks can be enabled.
        [2:2] dae / with_dae: bool,
        /// NGUID and EUI64 are never used again for another namespace.
        [3:3] uidreuse / with_uidreuse: bool,
        /// NPWG, NPWA, NPDG, NPDA and NOWS are valid.
        [4:4] optperf / with_optperf: bool,
    }
}

bits! {
    /// Formatted LBA size (FLBAS): which format the namespace has.
    pub struct FormattedLba(u8: u8) {
        /// Bits 3 to 0 of the index into `lbaf`.
        [3:0] index_low / with_index_low: u8,
        /// Metadata follows each block (set) or lies in a buffer of its own.
        [4:4] extended / with_extended: bool,
        /// Bits 5 and 4 of the index. Not used if there are 16 formats or fewer.
        [6:5] index_high / with_index_high: u8,
    }
}

impl FormattedLba {
    /// The index into `lbaf`, 0 to 63.
    #[must_use]
    pub fn index(self) -> u8 {
        self.index_high() << 4 | self.index_low()
    }

    /// The same with the low 6 bits of `index`.
    #[must_use]
    pub fn with_index(self, index: u8) -> Self {
        self.with_index_low(index).with_index_high(index >> 4)
    }
}

bits! {
    /// An LBA format (LBAF).
    pub struct LbaFormat(U32: u32) {
        /// Metadata size (MS) in bytes per block.
        [15:0] ms / with_ms: u16,
        /// LBA data size (LBADS): 2 to the power of it is the bytes of a block.
        /// At least 9; 0 if the format is not available.
        [23:16] lbads / with_lbads: u8,
        /// Relative performance (RP): 0 best to 3 degraded.
        [25:24] rp / with_rp: u8,
    }
}

impl LbaFormat {
    /// Bytes of a block; `None` if the format is not available or has more than
    /// 2^31 of them.
    #[must_use]
    pub fn block_bytes(self) -> Option<u32> {
        match self.lbads() {
            lbads @ 9.. => 1_u32.checked_shl(lbads.into()),
            _ => None,
        }
    }
}

/// Identify Namespace of the NVM command set; zoned namespaces have it too.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyNamespace {
    /// Namespace size in blocks.
    pub nsze: U64,
    /// Namespace capacity: blocks that can be allocated at a time.
    pub ncap: U64,
    /// Namespace utilization: blocks allocated now.
    pub nuse: U64,
    /// Namespace features.
    pub nsfeat: NamespaceFeatures,
    /// Number of LBA formats, zero based.
    pub nlbaf_z: u8,
    /// Formatted LBA size.
    pub flbas: FormattedLba,
    /// Metadata capabilities.
    pub mc: u8,
    /// End-to-end data protection capabilities.
    pub dpc: u8,
    /// End-to-end data protection type settings.
    pub dps: u8,
    /// Multi-path I/O and sharing capabilities. Bit 0: may be shared.
    pub nmic: u8,
    /// Reservation capabilities.
    pub rescap: ReservationCapabilities,
    /// Format progress indicator.
    pub fpi: u8,
    /// Deallocate logical block features.
    pub dlfeat: u8,
    /// Namespace atomic write unit normal in blocks, zero based.
    pub nawun_z: U16,
    /// Namespace atomic write unit power fail in blocks, zero based.
    pub nawupf_z: U16,
    /// Namespace atomic compare and write unit in blocks, zero based.
    pub nacwu_z: U16,
    /// Namespace atomic boundary size normal in blocks, zero based; 0: none.
    pub nabsn_z: U16,
    /// Namespace atomic boundary offset: the first block of the first boundary.
    pub nabo: U16,
    /// Namespace atomic boundary size power fail in blocks, zero based; 0: none.
    pub nabspf_z: U16,
    /// Namespace optimal I/O boundary in blocks; 0: none.
    pub noiob: U16,
    /// NVM capacity in bytes.
    pub nvmcap: U128,
    /// Namespace preferred write granularity in blocks, zero based.
    pub npwg_z: U16,
    /// Namespace preferred write alignment in blocks, zero based.
    pub npwa_z: U16,
    /// Namespace preferred deallocate granularity in blocks, zero based.
    pub npdg_z: U16,
    /// Namespace preferred deallocate alignment in blocks, zero based.
    pub npda_z: U16,
    /// Namespace optimal write size in blocks, zero based.
    pub nows_z: U16,
    /// Maximum single source range length of Copy in blocks.
    pub mssrl: U16,
    /// Maximum copy length in blocks.
    pub mcl: U32,
    /// Maximum source range count of Copy, zero based.
    pub msrc_z: u8,
    /// Zero.
    pub reserved_81: Reserved<1>,
    /// Number of unique attribute LBA formats.
    pub nulbaf: u8,
    /// Zero.
    pub reserved_83: Reserved<9>,
    /// ANA group identifier.
    pub anagrpid: U32,
    /// Zero.
    pub reserved_96: Reserved<3>,
    /// Namespace attributes. Bit 0: write protected.
    pub nsattr: u8,
    /// NVM set identifier.
    pub nvmsetid: U16,
    /// Endurance group identifier.
    pub endgid: U16,
    /// Namespace globally unique identifier, big endian.
    pub nguid: [u8; 16],
    /// IEEE extended unique identifier, big endian.
    pub eui64: [u8; 8],
    /// LBA formats.
    pub lbaf: [LbaFormat; 64],
    /// Vendor specific.
    pub vs: Reserved<3712>,
}

const _: () = assert!(size_of::<IdentifyNamespace>() == 4096);

impl IdentifyNamespace {
    /// The format that the namespace has. The upper bits of the index count
    /// only if there are more than 16 formats.
    #[must_use]
    pub fn format(&self) -> LbaFormat {
        let formats = u16::from(self.nlbaf_z) + 1 + u16::from(self.nulbaf);
        let index = match formats {
            0..=16 => self.flbas.index_low(),
            _ => self.flbas.index(),
        };
        self.lbaf
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }
}
