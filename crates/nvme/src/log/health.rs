//! Logs about the controller: errors, health, firmware.

use crate::Reserved;
use crate::identify::Ascii;
use crate::queue::StatusField;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Parameter Error Location (PEL) in a command;
    /// [`ParameterErrorLocation::NONE`] if it is not about a parameter.
    pub struct ParameterErrorLocation(U16: u16) {
        /// Byte in the command, 0 to 63.
        [7:0] byte / with_byte: u8,
        /// Bit in the byte, 0 to 7.
        [10:8] bit / with_bit: u8,
    }
}

impl ParameterErrorLocation {
    /// All bits of the field if the error is not about a parameter.
    pub const NONE: u16 = 0xffff;
}

/// An entry of the Error Information log. Those that are not used are zero.
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
pub struct ErrorEntry {
    /// Error count: a number of this error, from 1; 0: the entry is not valid.
    pub errcnt: U64,
    /// Submission queue; FFFFh if it is about no command.
    pub sqid: U16,
    /// Command identifier; FFFFh if it is about no command.
    pub cid: U16,
    /// Status field of the completion, with its phase tag.
    pub status: StatusField,
    /// Parameter error location.
    pub pel: ParameterErrorLocation,
    /// First block with the error, if it is about blocks.
    pub lba: U64,
    /// Namespace.
    pub nsid: U32,
    /// Vendor specific information available: a log page identifier of the
    /// vendor; 0: none.
    pub vsia: u8,
    /// Transport type: 3 is TCP; 0 if it is not about the transport.
    pub trtype: u8,
    /// Zero.
    pub reserved_30: Reserved<2>,
    /// Command specific information.
    pub csinfo: U64,
    /// Transport type specific information.
    pub ttsi: U16,
    /// Zero.
    pub reserved_42: Reserved<22>,
}

const _: () = assert!(size_of::<ErrorEntry>() == 64);

bits! {
    /// Critical Warning (CW) of the SMART log.
    pub struct CriticalWarning(u8: u8) {
        /// Spare capacity is below its threshold.
        [0:0] spare / with_spare: bool,
        /// A temperature is beyond its threshold.
        [1:1] temperature / with_temperature: bool,
        /// The subsystem is no longer reliable.
        [2:2] degraded / with_degraded: bool,
        /// All media is read only.
        [3:3] read_only / with_read_only: bool,
        /// The backup of volatile memory failed.
        [4:4] volatile_backup / with_volatile_backup: bool,
        /// The persistent memory region is read only or unreliable.
        [5:5] persistent_memory / with_persistent_memory: bool,
    }
}

/// The SMART / Health Information log.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SmartLog {
    /// Critical warning.
    pub cw: CriticalWarning,
    /// Composite temperature in kelvins.
    pub ctemp: U16,
    /// Available spare in per cent.
    pub avsp: u8,
    /// Available spare threshold in per cent.
    pub avspt: u8,
    /// Percentage of the endurance that is used; it may exceed 100, and 255
    /// stands for more than 254.
    pub pused: u8,
    /// Endurance group critical warning summary.
    pub egcws: u8,
    /// Zero.
    pub reserved_7: Reserved<25>,
    /// Data units read: thousands of 512 bytes, rounded up.
    pub dur: U128,
    /// Data units written: thousands of 512 bytes, rounded up.
    pub duw: U128,
    /// Host read commands.
    pub hrc: U128,
    /// Host write commands.
    pub hwc: U128,
    /// Controller busy time in minutes.
    pub cbt: U128,
    /// Power cycles.
    pub pwrc: U128,
    /// Power on hours.
    pub poh: U128,
    /// Unexpected power losses (unsafe shutdowns).
    pub upl: U128,
    /// Media and data integrity errors.
    pub mdie: U128,
    /// Number of error information log entries over the life of the controller.
    pub neile: U128,
    /// Warning composite temperature time in minutes.
    pub wctt: U32,
    /// Critical composite temperature time in minutes.
    pub cctt: U32,
    /// Temperature sensors 1 to 8 in kelvins; 0: there is none.
    pub tsen: [U16; 8],
    /// Thermal management temperature 1 transition count.
    pub tmt1tc: U32,
    /// Thermal management temperature 2 transition count.
    pub tmt2tc: U32,
    /// Total time for thermal management temperature 1 in seconds.
    pub ttfm1: U32,
    /// Total time for thermal management temperature 2 in seconds.
    pub ttfm2: U32,
    /// Zero.
    pub reserved_232: Reserved<280>,
}

const _: () = assert!(size_of::<SmartLog>() == 512);

bits! {
    /// Active Firmware Info (AFI).
    pub struct ActiveFirmware(u8: u8) {
        /// The slot that runs, 1 to 7.
        [2:0] active / with_active: u8,
        /// The slot that will run after the next reset; 0: not said.
        [6:4] next / with_next: u8,
    }
}

/// The Firmware Slot Information log.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct FirmwareSlots {
    /// Active firmware info.
    pub afi: ActiveFirmware,
    /// Zero.
    pub reserved_1: Reserved<7>,
    /// Firmware revision of slots 1 to 7; zero if there is none.
    pub frs: [Ascii<8>; 7],
    /// Zero.
    pub reserved_64: Reserved<448>,
}

const _: () = assert!(size_of::<FirmwareSlots>() == 512);
