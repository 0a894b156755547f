//! Flexible data placement (FDP): its log pages, its features, and the data of
//! I/O Management Receive and I/O Management Send.
//!
//! Source: NVMe base specification 2.1, sections 5.1.12.1.28 to 5.1.12.1.31
//! (log pages 20h to 23h), 5.1.25.1.20 and 5.1.25.1.21 (features 1Dh and 1Eh),
//! 7.3 and 7.4 (I/O Management Receive and Send) and 8.1.10; first published as
//! technical proposal 4146.
//!
//! A *reclaim unit* is flash that a controller collects and erases as one. A
//! *reclaim unit handle* refers to the one that is being written through it, and
//! a *placement handle* is what a namespace calls a reclaim unit handle. A
//! *placement identifier* (PID) travels with a write: a reclaim group in its
//! upper bits, as many as the format of reclaim group identifiers (RGIF) says,
//! and a placement handle in the others.

use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Directive type (DTYPE) of a write that carries a placement identifier in its
/// directive specific field (DSPEC): Data Placement.
pub const DATA_PLACEMENT_DTYPE: u8 = 0x02;

crate::open_enum! {
    /// Management operation (MO) of I/O Management Receive.
    pub enum ReceiveOperation: u8 {
        /// Nothing is transferred.
        NONE = 0x00,
        /// Reclaim unit handle status: [`HandleStatusHeader`], then
        /// [`HandleStatus`]es.
        HANDLE_STATUS = 0x01,
    }
}

crate::open_enum! {
    /// Management operation (MO) of I/O Management Send.
    pub enum SendOperation: u8 {
        /// Nothing is transferred.
        NONE = 0x00,
        /// Reclaim unit handle update: placement identifiers of 16 bits.
        HANDLE_UPDATE = 0x01,
    }
}

enum_fields!(ReceiveOperation: u8, SendOperation: u8);

crate::open_enum! {
    /// Reclaim unit handle type (RUHT).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum HandleType: u8 {
        /// Collection may put data of several of these handles into one reclaim unit.
        INITIALLY_ISOLATED = 0x01,
        /// Data of the handle stays apart for ever.
        PERSISTENTLY_ISOLATED = 0x02,
    }
}

const _: () = assert!(size_of::<HandleType>() == 1);

crate::open_enum! {
    /// Reclaim unit handle attributes (RUHA): whose it is.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum HandleUse: u8 {
        /// Of no namespace.
        UNUSED = 0x00,
        /// Of a namespace, whose host chose it.
        HOST_SPECIFIED = 0x01,
        /// Of a namespace, for which the controller chose it.
        CONTROLLER_SPECIFIED = 0x02,
    }
}

const _: () = assert!(size_of::<HandleUse>() == 1);

crate::open_enum! {
    /// Type of an event. Those from 80h on are events of the controller, the
    /// others those of the host.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum PlacementEventType: u8 {
        /// A handle went on to another reclaim unit before its own was full.
        NOT_FULLY_WRITTEN = 0x00,
        /// A reclaim unit was being written for too long.
        TIME_LIMIT_EXCEEDED = 0x01,
        /// A controller level reset changed what handles refer to.
        RESET_MODIFIED_HANDLES = 0x02,
        /// A write had a placement identifier that there is not.
        INVALID_PLACEMENT_IDENTIFIER = 0x03,
        /// Data was moved to another reclaim unit: [`MediaReallocated`].
        MEDIA_REALLOCATED = 0x80,
        /// A handle went on to another reclaim unit though nobody asked for it.
        HANDLE_IMPLICITLY_MODIFIED = 0x81,
    }
}

const _: () = assert!(size_of::<PlacementEventType>() == 1);

/// What the FDP Configurations log (20h) starts with. Descriptors follow, of
/// [`ConfigurationDescriptor`] and what belongs to it.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ConfigurationsHeader {
    /// Number of FDP configurations, zero based.
    pub numfdpc_z: U16,
    /// Version of this page: 0.
    pub version: u8,
    /// Zero.
    pub reserved_3: Reserved<1>,
    /// Size of the log page in bytes.
    pub size: U32,
    /// Zero.
    pub reserved_8: Reserved<8>,
}

const _: () = assert!(size_of::<ConfigurationsHeader>() == 16);

bits! {
    /// FDP attributes (FDPA).
    pub struct ConfigurationAttributes(u8: u8) {
        /// Reclaim group identifier format (RGIF): bits of a placement
        /// identifier that hold the reclaim group.
        [3:0] rgif / with_rgif: u8,
        /// FDP volatile write cache (FDPVWC).
        [4:4] fdpvwc / with_fdpvwc: bool,
        /// The configuration is valid (FDPCV).
        [7:7] fdpcv / with_fdpcv: bool,
    }
}

/// A configuration. [`HandleDescriptor`]s follow, `nruh` of them, then vendor
/// specific bytes, `vss` of them.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ConfigurationDescriptor {
    /// Descriptor size: bytes with all that follows.
    pub dsze: U16,
    /// Attributes.
    pub fdpa: ConfigurationAttributes,
    /// Vendor specific size in bytes.
    pub vss: u8,
    /// Number of reclaim groups.
    pub nrg: U32,
    /// Number of reclaim unit handles.
    pub nruh: U16,
    /// Most placement identifiers of a namespace, zero based.
    pub maxpids_z: U16,
    /// Number of namespaces supported.
    pub nnss: U32,
    /// Reclaim unit nominal size in bytes.
    pub runs: U64,
    /// Estimated reclaim unit time limit in seconds; 0: not reported.
    pub erutl: U32,
    /// Zero.
    pub reserved_28: Reserved<36>,
}

const _: () = assert!(size_of::<ConfigurationDescriptor>() == 64);

/// A reclaim unit handle of a configuration.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HandleDescriptor {
    /// Reclaim unit handle type.
    pub ruht: HandleType,
    /// Zero.
    pub reserved_1: Reserved<3>,
}

const _: () = assert!(size_of::<HandleDescriptor>() == 4);

/// What the Reclaim Unit Handle Usage log (21h) starts with.
/// [`HandleUsage`]s follow, `nruh` of them.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HandleUsageHeader {
    /// Number of reclaim unit handles.
    pub nruh: U16,
    /// Zero.
    pub reserved_2: Reserved<6>,
}

const _: () = assert!(size_of::<HandleUsageHeader>() == 8);

/// Whose a reclaim unit handle is.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HandleUsage {
    /// Reclaim unit handle attributes.
    pub ruha: HandleUse,
    /// Zero.
    pub reserved_1: Reserved<7>,
}

const _: () = assert!(size_of::<HandleUsage>() == 8);

/// The FDP Statistics log (22h): bytes since the endurance group was formed.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct PlacementStatistics {
    /// Host bytes with metadata written.
    pub hbmw: U128,
    /// Media bytes with metadata written, those of the host included.
    pub mbmw: U128,
    /// Media bytes erased.
    pub mbe: U128,
    /// Zero.
    pub reserved_48: Reserved<16>,
}

const _: () = assert!(size_of::<PlacementStatistics>() == 64);

/// What the FDP Events log (23h) starts with. [`PlacementEvent`]s follow, the
/// oldest first.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct PlacementEventsHeader {
    /// Number of FDP events.
    pub nfdpe: U32,
    /// Zero.
    pub reserved_4: Reserved<60>,
}

const _: () = assert!(size_of::<PlacementEventsHeader>() == 64);

bits! {
    /// FDP event flags (FDPEF): what of an event is valid.
    pub struct PlacementEventFlags(u8: u8) {
        /// Placement identifier valid (PIV).
        [0:0] piv / with_piv: bool,
        /// NSID valid (NSIDV).
        [1:1] nsidv / with_nsidv: bool,
        /// Location valid (LV): reclaim group and reclaim unit handle.
        [2:2] lv / with_lv: bool,
    }
}

/// An event.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct PlacementEvent {
    /// What happened.
    pub event_type: PlacementEventType,
    /// What of the rest is valid.
    pub fdpef: PlacementEventFlags,
    /// Placement identifier.
    pub pid: U16,
    /// When it happened: milliseconds in the lower 48 bits.
    pub timestamp: U64,
    /// Namespace.
    pub nsid: U32,
    /// What the type says, such as [`MediaReallocated`].
    pub specific: [u8; 16],
    /// Reclaim group identifier.
    pub rgid: U16,
    /// Reclaim unit handle identifier.
    pub ruhid: u8,
    /// Zero.
    pub reserved_35: Reserved<5>,
    /// Vendor specific.
    pub vs: Reserved<24>,
}

const _: () = assert!(size_of::<PlacementEvent>() == 64);

impl PlacementEvent {
    /// Log specific parameter (LSP) of Get Log Page for events of the host. For
    /// 0, they are those of the controller.
    pub const HOST_EVENTS_LSP: u8 = 1;
}

bits! {
    /// Flags of [`MediaReallocated`].
    pub struct ReallocatedFlags(u8: u8) {
        /// The address is valid (LBAV).
        [0:0] lbav / with_lbav: bool,
    }
}

/// What is specific to [`PlacementEventType::MEDIA_REALLOCATED`].
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct MediaReallocated {
    /// What of the rest is valid (SEF).
    pub flags: ReallocatedFlags,
    /// Zero.
    pub reserved_1: Reserved<1>,
    /// Number of logical blocks that were moved.
    pub nlbam: U16,
    /// One of them.
    pub lba: U64,
    /// Zero.
    pub reserved_12: Reserved<4>,
}

const _: () = assert!(size_of::<MediaReallocated>() == 16);

/// What Reclaim Unit Handle Status starts with. [`HandleStatus`]es follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HandleStatusHeader {
    /// Zero.
    pub reserved_0: Reserved<14>,
    /// Number of descriptors: one for each handle and reclaim group.
    pub nruhsd: U16,
}

const _: () = assert!(size_of::<HandleStatusHeader>() == 16);

/// A reclaim unit handle, and what it refers to.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HandleStatus {
    /// Placement identifier.
    pub pid: U16,
    /// Reclaim unit handle identifier.
    pub ruhid: U16,
    /// Estimated active reclaim unit time remaining in seconds; 0: not reported.
    pub earutr: U32,
    /// Reclaim unit available media writes: blocks that fit into its reclaim unit.
    pub ruamw: U64,
    /// Zero.
    pub reserved_16: Reserved<16>,
}

const _: () = assert!(size_of::<HandleStatus>() == 32);

bits! {
    /// Flexible Data Placement (feature 1Dh): dword 0 of the completion of Get
    /// Features, and dword 12 of Set Features.
    pub struct PlacementMode(U32: u32) {
        /// Flexible data placement enable (FDPE).
        [0:0] fdpe / with_fdpe: bool,
        /// Flexible data placement configuration index (FDPCIDX).
        [15:8] fdpcidx / with_fdpcidx: u8,
    }
}

bits! {
    /// FDP Events (feature 1Eh): dword 11 of both commands.
    pub struct PlacementEventsSelect(U32: u32) {
        /// Placement handle (PHNDL).
        [15:0] phndl / with_phndl: u16,
        /// Number of FDP event types (NOET). Get Features: most descriptors that
        /// the host has room for. Set Features: types in the data buffer, one
        /// byte each.
        [23:16] noet / with_noet: u8,
    }
}

bits! {
    /// FDP Events (feature 1Eh): dword 12 of Set Features.
    pub struct PlacementEventsEnable(U32: u32) {
        /// FDP event enable (FDPEE).
        [0:0] fdpee / with_fdpee: bool,
    }
}

bits! {
    /// FDP event type attributes.
    pub struct SupportedEventAttributes(u8: u8) {
        /// FDP event enabled (FDPEE).
        [0:0] fdpee / with_fdpee: bool,
    }
}

/// A supported type of event: what Get Features of FDP Events returns.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SupportedEvent {
    /// Its type.
    pub event_type: PlacementEventType,
    /// Its attributes.
    pub attributes: SupportedEventAttributes,
}

const _: () = assert!(size_of::<SupportedEvent>() == 2);

/// Endurance group list (CNS 19h): the endurance groups of a subsystem from an
/// identifier on, in ascending order.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct EnduranceGroupList {
    /// Number of identifiers.
    pub numids: U16,
    /// Endurance group identifiers.
    pub endgid: [U16; 2047],
}

const _: () = assert!(size_of::<EnduranceGroupList>() == 4096);

/// Endurance Group Information (log page 09h), selected as the log pages of FDP
/// are. Numbers of data are in units of 10^9 bytes, rounded up.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct EnduranceGroupLog {
    /// Critical warning: bit 0 spare capacity, bit 2 reliability, bit 3 read only.
    pub egcw: u8,
    /// Endurance group features.
    pub egfeat: u8,
    /// Zero.
    pub reserved_2: Reserved<1>,
    /// Available spare in per cent.
    pub avsp: u8,
    /// Available spare threshold in per cent.
    pub avspt: u8,
    /// Percentage of the endurance that is used.
    pub pused: u8,
    /// Domain identifier; 0: there are no domains.
    pub did: U16,
    /// Zero.
    pub reserved_8: Reserved<24>,
    /// Endurance estimate; 0: not reported.
    pub ee: U128,
    /// Data units read.
    pub dur: U128,
    /// Data units written.
    pub duw: U128,
    /// Media units written, those of the controller included.
    pub muw: U128,
    /// Host read commands.
    pub hrc: U128,
    /// Host write commands.
    pub hwc: U128,
    /// Media and data integrity errors.
    pub mdie: U128,
    /// Number of error information log entries.
    pub neile: U128,
    /// Total endurance group capacity in bytes.
    pub tegcap: U128,
    /// Unallocated endurance group capacity in bytes.
    pub uegcap: U128,
    /// Zero.
    pub reserved_192: Reserved<320>,
}

const _: () = assert!(size_of::<EnduranceGroupLog>() == 512);
