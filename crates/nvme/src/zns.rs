//! Zones: descriptors, reports, the changed zone list, and their code points.
//!
//! Source: ZNS command set specification 1.1, section 3.4.2 (Zone Management
//! Receive), section 3.4.3 (Zone Management Send) and the Changed Zone List log
//! page. The structures that Identify returns are in
//! [`identify`](crate::identify).

use crate::Reserved;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// Zone Send Action (ZSA) of Zone Management Send.
    pub enum ZoneSendAction: u8 {
        /// Close the zone.
        CLOSE = 0x01,
        /// Finish the zone: it becomes full.
        FINISH = 0x02,
        /// Open the zone explicitly.
        OPEN = 0x03,
        /// Reset the zone: it becomes empty.
        RESET = 0x04,
        /// Take a read-only zone offline.
        OFFLINE = 0x05,
        /// Attach a zone descriptor extension.
        SET_DESCRIPTOR_EXTENSION = 0x10,
        /// Commit data of the zone random write area.
        ZRWA_FLUSH = 0x11,
    }
}

crate::open_enum! {
    /// Zone Receive Action (ZRA) of Zone Management Receive.
    pub enum ZoneReceiveAction: u8 {
        /// Zone descriptors.
        REPORT_ZONES = 0x00,
        /// Zone descriptors, each followed by its extension.
        EXTENDED_REPORT_ZONES = 0x01,
    }
}

crate::open_enum! {
    /// Which zones a zone report lists: Zone Receive Action Specific Field.
    pub enum ReportFilter: u8 {
        /// All zones.
        ALL = 0x0,
        /// Empty zones.
        EMPTY = 0x1,
        /// Implicitly opened zones.
        IMPLICITLY_OPENED = 0x2,
        /// Explicitly opened zones.
        EXPLICITLY_OPENED = 0x3,
        /// Closed zones.
        CLOSED = 0x4,
        /// Full zones.
        FULL = 0x5,
        /// Read-only zones.
        READ_ONLY = 0x6,
        /// Offline zones.
        OFFLINE = 0x7,
    }
}

crate::open_enum! {
    /// Zone type (ZT): 4 bits.
    pub enum ZoneType: u8 {
        /// Written from its start to its end, at the write pointer.
        SEQUENTIAL_WRITE_REQUIRED = 0x2,
    }
}

crate::open_enum! {
    /// Zone state (ZS) as a zone descriptor reports it: 4 bits.
    pub enum ZoneState: u8 {
        /// Empty.
        EMPTY = 0x1,
        /// Implicitly opened.
        IMPLICITLY_OPENED = 0x2,
        /// Explicitly opened.
        EXPLICITLY_OPENED = 0x3,
        /// Closed.
        CLOSED = 0x4,
        /// Read only.
        READ_ONLY = 0xd,
        /// Full.
        FULL = 0xe,
        /// Offline.
        OFFLINE = 0xf,
    }
}

enum_fields!(ZoneSendAction: u8, ZoneReceiveAction: u8, ReportFilter: u8, ZoneType: u8, ZoneState: u8);

bits! {
    /// Byte 0 of a zone descriptor.
    pub struct ZoneTypeByte(u8: u8) {
        /// Zone type (ZT).
        [3:0] zt / with_zt: ZoneType,
    }
}

bits! {
    /// Byte 1 of a zone descriptor. The state is in its upper half.
    pub struct ZoneStateByte(u8: u8) {
        /// Zone state (ZS).
        [7:4] zs / with_zs: ZoneState,
    }
}

bits! {
    /// Zone attributes (ZA): byte 2 of a zone descriptor.
    pub struct ZoneAttributes(u8: u8) {
        /// Zone finished by controller (ZFC): the device made the zone full.
        [0:0] zfc / with_zfc: bool,
        /// Finish zone recommended (FZR).
        [1:1] fzr / with_fzr: bool,
        /// Reset zone recommended (RZR).
        [2:2] rzr / with_rzr: bool,
        /// Zone random write area valid (ZRWAV): the zone has a ZRWA.
        [3:3] zrwav / with_zrwav: bool,
        /// Zone descriptor extension valid (ZDEV).
        [7:7] zdev / with_zdev: bool,
    }
}

bits! {
    /// Zone attributes information (ZAI): byte 3 of a zone descriptor. It says
    /// which time limit goes with a recommendation.
    pub struct ZoneAttributesInfo(u8: u8) {
        /// With FZR: 0 stands for the limit `frl` of the namespace, 1 to 3 for
        /// `frl1` to `frl3`.
        [1:0] finish_limit / with_finish_limit: u8,
        /// With RZR: 0 stands for the limit `rrl` of the namespace, 1 to 3 for
        /// `rrl1` to `rrl3`.
        [3:2] reset_limit / with_reset_limit: u8,
    }
}

/// A zone descriptor: one zone in a zone report.
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
pub struct ZoneDescriptor {
    /// Zone type.
    pub zt: ZoneTypeByte,
    /// Zone state.
    pub zs: ZoneStateByte,
    /// Zone attributes.
    pub za: ZoneAttributes,
    /// Zone attributes information.
    pub zai: ZoneAttributesInfo,
    /// Zero.
    pub reserved_4: Reserved<4>,
    /// Zone capacity in logical blocks.
    pub zcap: U64,
    /// Zone start logical block address.
    pub zslba: U64,
    /// Write pointer: the LBA that is written next. It has no meaning, and is
    /// FFFFFFFFFFFFFFFFh by convention, in a zone that is full, read only or
    /// offline.
    pub wp: U64,
    /// Zero.
    pub reserved_32: Reserved<32>,
}

const _: () = assert!(size_of::<ZoneDescriptor>() == 64);

impl ZoneDescriptor {
    /// A sequential zone in `state`, without attributes; capacity and addresses
    /// are zero.
    #[must_use]
    pub fn sequential(state: ZoneState) -> Self {
        Self {
            zt: ZoneTypeByte::default().with_zt(ZoneType::SEQUENTIAL_WRITE_REQUIRED),
            zs: ZoneStateByte::default().with_zs(state),
            ..Self::default()
        }
    }
}

/// What a zone report starts with.
///
/// Zone descriptors follow it without gaps. In an extended report each is
/// followed by its extension, [`LbaFormatExtension::zdes`] units of 64 bytes.
///
/// [`LbaFormatExtension::zdes`]: crate::identify::LbaFormatExtension::zdes
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
pub struct ReportHeader {
    /// Number of zones. Partial report: the descriptors that follow. Else: all
    /// zones from the starting one on that match, even if fewer follow.
    pub nr_zones: U64,
    /// Zero.
    pub reserved_8: Reserved<56>,
}

const _: () = assert!(size_of::<ReportHeader>() == 64);

/// Log page identifier (LID) of the [`ChangedZoneList`].
pub const CHANGED_ZONE_LIST_LID: u8 = 0xbf;

/// The Changed Zone List log page: zones whose descriptor the device changed by
/// itself since the page was last read.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ChangedZoneList {
    /// Number of zone identifiers: 0 to 511, or [`ChangedZoneList::OVERFLOW`].
    pub nrzid: U16,
    /// Zero.
    pub reserved_2: Reserved<6>,
    /// Zone identifiers: the first LBA of each zone.
    pub zid: [U64; 511],
}

const _: () = assert!(size_of::<ChangedZoneList>() == 4096);

impl ChangedZoneList {
    /// The value of `nrzid` if more zones changed than fit. The list is then
    /// empty, and the host reads all zones anew.
    pub const OVERFLOW: u16 = 0xffff;

    /// The zones that changed; `None` if the list does not name them: too many
    /// changed, or the count is not a valid one.
    #[must_use]
    pub fn zones(&self) -> Option<&[U64]> {
        self.zid.get(..usize::from(self.nrzid.get()))
    }
}
