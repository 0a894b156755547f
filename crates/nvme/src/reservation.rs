//! Reservations: the data of their commands, the notification log page, and the
//! values of their features.
//!
//! Source: NVMe base specification 2.0, sections 7.2 to 7.6 (commands), 8.19
//! (what they do), 5.16.1.19 (log page 80h), 5.27.1.26 and 5.27.1.27 (features 82h
//! and 83h), and Identify Namespace (RESCAP).

use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// Reservation type (RTYPE).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum ReservationType: u8 {
        /// There is no reservation.
        NONE = 0x0,
        /// Only the holder writes; everybody reads.
        WRITE_EXCLUSIVE = 0x1 => "Write Exclusive",
        /// Only the holder writes and reads.
        EXCLUSIVE_ACCESS = 0x2 => "Exclusive Access",
        /// Registrants write; everybody reads. One registrant is the holder.
        WRITE_EXCLUSIVE_REGISTRANTS_ONLY = 0x3 => "Write Exclusive - Registrants Only",
        /// Registrants write and read. One registrant is the holder.
        EXCLUSIVE_ACCESS_REGISTRANTS_ONLY = 0x4 => "Exclusive Access - Registrants Only",
        /// Registrants write; everybody reads. Every registrant is a holder.
        WRITE_EXCLUSIVE_ALL_REGISTRANTS = 0x5 => "Write Exclusive - All Registrants",
        /// Registrants write and read. Every registrant is a holder.
        EXCLUSIVE_ACCESS_ALL_REGISTRANTS = 0x6 => "Exclusive Access - All Registrants",
    }
}

const _: () = assert!(size_of::<ReservationType>() == 1);

crate::open_enum! {
    /// Reservation register action (RREGA): 3 bits.
    pub enum RegisterAction: u8 {
        /// Register a key.
        REGISTER = 0x0,
        /// Take the key back.
        UNREGISTER = 0x1,
        /// Put another key in its place.
        REPLACE = 0x2,
    }
}

crate::open_enum! {
    /// Reservation acquire action (RACQA): 3 bits.
    pub enum AcquireAction: u8 {
        /// Take the reservation.
        ACQUIRE = 0x0,
        /// Take the reservation or the registration of others.
        PREEMPT = 0x1,
        /// Preempt, and end what the others have in flight.
        PREEMPT_AND_ABORT = 0x2,
    }
}

crate::open_enum! {
    /// Reservation release action (RRELA): 3 bits.
    pub enum ReleaseAction: u8 {
        /// Give the reservation back.
        RELEASE = 0x0,
        /// End the reservation and all registrations.
        CLEAR = 0x1,
    }
}

crate::open_enum! {
    /// Change Persist Through Power Loss State (CPTPL): 2 bits.
    pub enum ChangePersistence: u8 {
        /// It stays.
        NO_CHANGE = 0x0,
        /// A loss of power ends reservations and registrations.
        CLEAR = 0x2,
        /// They outlive a loss of power.
        SET = 0x3,
    }
}

enum_fields!(
    ReservationType: u8,
    RegisterAction: u8,
    AcquireAction: u8,
    ReleaseAction: u8,
    ChangePersistence: u8,
);

/// Data of Reservation Register.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct RegisterData {
    /// Current reservation key (CRKEY), to unregister or replace.
    pub crkey: U64,
    /// New reservation key (NRKEY), to register or replace.
    pub nrkey: U64,
}

const _: () = assert!(size_of::<RegisterData>() == 16);

/// Data of Reservation Acquire.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AcquireData {
    /// Current reservation key (CRKEY).
    pub crkey: U64,
    /// Preempt reservation key (PRKEY): of those who lose theirs.
    pub prkey: U64,
}

const _: () = assert!(size_of::<AcquireData>() == 16);

/// Data of Reservation Release.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ReleaseData {
    /// Current reservation key (CRKEY).
    pub crkey: U64,
}

const _: () = assert!(size_of::<ReleaseData>() == 8);

/// Reservation status: what Reservation Report begins with. [`Registrant`]s follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ReservationStatus {
    /// Generation (GEN): counts registrations, preemptions and clears, and wraps.
    pub generation: U32,
    /// Type of the reservation.
    pub rtype: ReservationType,
    /// Number of registrants (REGSTRNT, formerly REGCTL).
    pub regstrnt: U16,
    /// Zero.
    pub reserved_7: Reserved<2>,
    /// Persist through power loss state: bit 0.
    pub ptpls: u8,
    /// Zero.
    pub reserved_10: Reserved<14>,
}

const _: () = assert!(size_of::<ReservationStatus>() == 24);

/// Reservation status with 128-bit host identifiers. [`RegistrantExtended`]s follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ReservationStatusExtended {
    /// What the short form has, too.
    pub status: ReservationStatus,
    /// Zero.
    pub reserved_24: Reserved<40>,
}

const _: () = assert!(size_of::<ReservationStatusExtended>() == 64);

bits! {
    /// Reservation status of a registrant (RCSTS).
    pub struct RegistrantStatus(u8: u8) {
        /// It holds the reservation.
        [0:0] is_holder / with_is_holder: bool,
    }
}

/// A registrant with a 64-bit host identifier.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Registrant {
    /// Controller identifier; FFFFh if its host has no controller.
    pub cntlid: U16,
    /// Reservation status.
    pub rcsts: RegistrantStatus,
    /// Zero.
    pub reserved_3: Reserved<5>,
    /// Host identifier.
    pub hostid: U64,
    /// Reservation key.
    pub rkey: U64,
}

const _: () = assert!(size_of::<Registrant>() == 24);

/// A registrant with a 128-bit host identifier.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct RegistrantExtended {
    /// Controller identifier; FFFFh if its host has no controller.
    pub cntlid: U16,
    /// Reservation status.
    pub rcsts: RegistrantStatus,
    /// Zero.
    pub reserved_3: Reserved<5>,
    /// Reservation key.
    pub rkey: U64,
    /// Host identifier.
    pub hostid: [u8; 16],
    /// Zero.
    pub reserved_32: Reserved<32>,
}

const _: () = assert!(size_of::<RegistrantExtended>() == 64);

crate::open_enum! {
    /// Reservation notification log page type (RNLPT).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum NotificationType: u8 {
        /// There is nothing to tell.
        EMPTY = 0x0,
        /// The registration of the host was preempted.
        REGISTRATION_PREEMPTED = 0x1,
        /// The reservation was released.
        RESERVATION_RELEASED = 0x2,
        /// The reservation was preempted.
        RESERVATION_PREEMPTED = 0x3,
    }
}

const _: () = assert!(size_of::<NotificationType>() == 1);

/// Reservation notification log page: the oldest notification that the host has not read.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ReservationNotification {
    /// Log page count: number of this notification, which wraps; 0 if there is none.
    pub lpc: U64,
    /// Log page type.
    pub rnlpt: NotificationType,
    /// Number of available log pages: how many are behind this one, at most 255.
    pub nalp: u8,
    /// Zero.
    pub reserved_10: Reserved<2>,
    /// The namespace.
    pub nsid: U32,
    /// Zero.
    pub reserved_16: Reserved<48>,
}

const _: () = assert!(size_of::<ReservationNotification>() == 64);

bits! {
    /// Notifications that are not made: value of the feature Reservation Notification Mask.
    pub struct NotificationMask(U32: u32) {
        /// Registration preempted (REGPRE).
        [1:1] registration_preempted / with_registration_preempted: bool,
        /// Reservation released (RESREL).
        [2:2] reservation_released / with_reservation_released: bool,
        /// Reservation preempted (RESPRE).
        [3:3] reservation_preempted / with_reservation_preempted: bool,
    }
}

bits! {
    /// Value of the feature Reservation Persistence.
    pub struct ReservationPersistence(U32: u32) {
        /// Persist through power loss (PTPL).
        [0:0] ptpl / with_ptpl: bool,
    }
}

bits! {
    /// Reservation capabilities of a namespace (RESCAP).
    pub struct ReservationCapabilities(u8: u8) {
        /// Persist through power loss.
        [0:0] persistence / with_persistence: bool,
        /// Write Exclusive.
        [1:1] write_exclusive / with_write_exclusive: bool,
        /// Exclusive Access.
        [2:2] exclusive_access / with_exclusive_access: bool,
        /// Write Exclusive - Registrants Only.
        [3:3] write_registrants / with_write_registrants: bool,
        /// Exclusive Access - Registrants Only.
        [4:4] access_registrants / with_access_registrants: bool,
        /// Write Exclusive - All Registrants.
        [5:5] write_all_registrants / with_write_all_registrants: bool,
        /// Exclusive Access - All Registrants.
        [6:6] access_all_registrants / with_access_all_registrants: bool,
        /// Ignore Existing Key is as revision 1.3 or later has it.
        [7:7] ignore_existing_key / with_ignore_existing_key: bool,
    }
}
