//! Features: what Set Features writes and Get Features reads.
//!
//! Source: NVMe base specification 2.0, section 5.27.1 (Set Features), and
//! section 5.15 (Get Features) for the selection.
//!
//! Where no other place is named, the type is the layout of command dword 11 of
//! Set Features and of dword 0 of the completion of both. The Keep Alive Timer
//! is a plain number of milliseconds there.

use crate::Reserved;
use crate::identify::AsyncEvents;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// Feature Identifier (FID).
    pub enum FeatureId: u8 {
        /// Arbitration: [`Arbitration`].
        ARBITRATION = 0x01,
        /// Power Management: [`PowerManagement`].
        POWER_MANAGEMENT = 0x02,
        /// LBA Range Type.
        LBA_RANGE_TYPE = 0x03,
        /// Temperature Threshold: [`TemperatureThreshold`].
        TEMPERATURE_THRESHOLD = 0x04,
        /// Error Recovery: [`ErrorRecovery`].
        ERROR_RECOVERY = 0x05,
        /// Volatile Write Cache: [`WriteCache`].
        VOLATILE_WRITE_CACHE = 0x06,
        /// Number of Queues: [`NumberOfQueues`].
        NUMBER_OF_QUEUES = 0x07,
        /// Interrupt Coalescing: [`InterruptCoalescing`].
        INTERRUPT_COALESCING = 0x08,
        /// Interrupt Vector Configuration: [`InterruptVector`].
        INTERRUPT_VECTOR_CONFIGURATION = 0x09,
        /// Write Atomicity Normal: [`WriteAtomicity`].
        WRITE_ATOMICITY_NORMAL = 0x0a,
        /// Asynchronous Event Configuration: [`AsyncEventConfiguration`].
        ASYNC_EVENT_CONFIGURATION = 0x0b,
        /// Autonomous Power State Transition.
        AUTONOMOUS_POWER_STATE_TRANSITION = 0x0c,
        /// Host Memory Buffer.
        HOST_MEMORY_BUFFER = 0x0d,
        /// Timestamp: [`Timestamp`] in the data buffer.
        TIMESTAMP = 0x0e,
        /// Keep Alive Timer in milliseconds.
        KEEP_ALIVE_TIMER = 0x0f,
        /// Host Controlled Thermal Management.
        HOST_CONTROLLED_THERMAL_MANAGEMENT = 0x10,
        /// Non-Operational Power State Config.
        NON_OPERATIONAL_POWER_STATE_CONFIG = 0x11,
        /// Read Recovery Level Config.
        READ_RECOVERY_LEVEL_CONFIG = 0x12,
        /// Predictable Latency Mode Config.
        PREDICTABLE_LATENCY_MODE_CONFIG = 0x13,
        /// Predictable Latency Mode Window.
        PREDICTABLE_LATENCY_MODE_WINDOW = 0x14,
        /// LBA Status Information Report Interval.
        LBA_STATUS_REPORT_INTERVAL = 0x15,
        /// Host Behavior Support: [`HostBehaviorSupport`] in the data buffer.
        HOST_BEHAVIOR_SUPPORT = 0x16,
        /// Sanitize Config.
        SANITIZE_CONFIG = 0x17,
        /// Endurance Group Event Configuration.
        ENDURANCE_GROUP_EVENT_CONFIGURATION = 0x18,
        /// I/O Command Set Profile: [`CommandSetProfile`].
        COMMAND_SET_PROFILE = 0x19,
        /// Spinup Control.
        SPINUP_CONTROL = 0x1a,
        /// Flexible Data Placement:
        /// [`PlacementMode`](crate::placement::PlacementMode).
        FLEXIBLE_DATA_PLACEMENT = 0x1d,
        /// FDP Events:
        /// [`PlacementEventsSelect`](crate::placement::PlacementEventsSelect).
        FDP_EVENTS = 0x1e,
        /// Enhanced Controller Metadata.
        ENHANCED_CONTROLLER_METADATA = 0x7d,
        /// Controller Metadata.
        CONTROLLER_METADATA = 0x7e,
        /// Namespace Metadata.
        NAMESPACE_METADATA = 0x7f,
        /// Software Progress Marker.
        SOFTWARE_PROGRESS_MARKER = 0x80,
        /// Host Identifier: [`HostIdentifier`], and the identifier in the data
        /// buffer.
        HOST_IDENTIFIER = 0x81,
        /// Reservation Notification Mask:
        /// [`NotificationMask`](crate::reservation::NotificationMask).
        RESERVATION_NOTIFICATION_MASK = 0x82,
        /// Reservation Persistence:
        /// [`ReservationPersistence`](crate::reservation::ReservationPersistence).
        RESERVATION_PERSISTENCE = 0x83,
        /// Namespace Write Protection Config: [`WriteProtection`].
        NAMESPACE_WRITE_PROTECTION_CONFIG = 0x84,
    }
}

crate::open_enum! {
    /// Select (SEL) of Get Features: which value. 3 bits.
    pub enum FeatureSelect: u8 {
        /// The value in effect.
        CURRENT = 0x0,
        /// The value of the factory.
        DEFAULT = 0x1,
        /// The value that survives power loss and reset.
        SAVED = 0x2,
        /// No value, but a [`FeatureCapabilities`].
        SUPPORTED_CAPABILITIES = 0x3,
    }
}

enum_fields!(FeatureId: u8, FeatureSelect: u8);

bits! {
    /// What can be done with a feature: dword 0 of the completion of Get
    /// Features with [`FeatureSelect::SUPPORTED_CAPABILITIES`].
    pub struct FeatureCapabilities(U32: u32) {
        /// Its value can be saved.
        [0:0] saveable / with_saveable: bool,
        /// Each namespace has its own value.
        [1:1] namespace_specific / with_namespace_specific: bool,
        /// Its value can be changed.
        [2:2] changeable / with_changeable: bool,
    }
}

bits! {
    /// Arbitration.
    pub struct Arbitration(U32: u32) {
        /// Arbitration burst (AB): 2 to the power of it in commands; 7: no limit.
        [2:0] ab / with_ab: u8,
        /// Low priority weight (LPW), zero based.
        [15:8] lpw_z / with_lpw_z: u8,
        /// Medium priority weight (MPW), zero based.
        [23:16] mpw_z / with_mpw_z: u8,
        /// High priority weight (HPW), zero based.
        [31:24] hpw_z / with_hpw_z: u8,
    }
}

bits! {
    /// Power Management.
    pub struct PowerManagement(U32: u32) {
        /// Power state (PS).
        [4:0] ps / with_ps: u8,
        /// Workload hint (WH).
        [7:5] wh / with_wh: u8,
    }
}

bits! {
    /// Temperature Threshold. Dword 11 of Get Features selects by the upper
    /// fields, too.
    pub struct TemperatureThreshold(U32: u32) {
        /// Temperature threshold (TMPTH) in kelvins.
        [15:0] tmpth / with_tmpth: u16,
        /// Threshold temperature select (TMPSEL): 0 composite, 1 to 8 the
        /// sensors, Fh all of them (Set Features only).
        [19:16] tmpsel / with_tmpsel: u8,
        /// Threshold type select (THSEL): 0 over, 1 under.
        [21:20] thsel / with_thsel: u8,
    }
}

bits! {
    /// Error Recovery, one value for each namespace.
    pub struct ErrorRecovery(U32: u32) {
        /// Time limited error recovery (TLER) in units of 100 ms; 0: no limit.
        [15:0] tler / with_tler: u16,
        /// Deallocated or unwritten logical block error enable (DULBE).
        [16:16] dulbe / with_dulbe: bool,
    }
}

bits! {
    /// Volatile Write Cache.
    pub struct WriteCache(U32: u32) {
        /// Volatile write cache enable (WCE).
        [0:0] wce / with_wce: bool,
    }
}

bits! {
    /// Number of Queues, without the admin queue. In dword 11 the numbers that
    /// the host wants (NSQR, NCQR), in the completion those that it has (NSQA,
    /// NCQA).
    pub struct NumberOfQueues(U32: u32) {
        /// Number of I/O submission queues, zero based.
        [15:0] nsq_z / with_nsq_z: u16,
        /// Number of I/O completion queues, zero based.
        [31:16] ncq_z / with_ncq_z: u16,
    }
}

bits! {
    /// Interrupt Coalescing. Not on fabrics.
    pub struct InterruptCoalescing(U32: u32) {
        /// Aggregation threshold (THR) in completions, zero based.
        [7:0] thr_z / with_thr_z: u8,
        /// Aggregation time (TIME) in units of 100 us.
        [15:8] time / with_time: u8,
    }
}

bits! {
    /// Interrupt Vector Configuration. Not on fabrics.
    pub struct InterruptVector(U32: u32) {
        /// Interrupt vector (IV).
        [15:0] iv / with_iv: u16,
        /// Coalescing disable (CD).
        [16:16] cd / with_cd: bool,
    }
}

bits! {
    /// Write Atomicity Normal.
    pub struct WriteAtomicity(U32: u32) {
        /// Disable normal (DN): only the power fail units of atomicity hold.
        [0:0] dn / with_dn: bool,
    }
}

bits! {
    /// Asynchronous Event Configuration: which events are reported.
    pub struct AsyncEventConfiguration(U32: u32) {
        /// Critical warnings of the SMART log, bit for bit as there.
        [7:0] smart / with_smart: u8,
        /// The telemetry log changed.
        [10:10] telemetry / with_telemetry: bool,
    }
}

impl AsyncEventConfiguration {
    /// The bits that a controller announces in OAES.
    const OPTIONAL: u32 = !0x4ff;

    /// The events that a controller need not support (OAES).
    #[must_use]
    pub fn optional(self) -> AsyncEvents {
        AsyncEvents::from_bits(self.bits() & Self::OPTIONAL)
    }

    /// The same with these of the events that a controller need not support.
    #[must_use]
    pub fn with_optional(self, events: AsyncEvents) -> Self {
        Self::from_bits(self.bits() & !Self::OPTIONAL | events.bits() & Self::OPTIONAL)
    }
}

bits! {
    /// I/O Command Set Profile.
    pub struct CommandSetProfile(U32: u32) {
        /// I/O command set combination index (IOCSCI): position in
        /// [`CommandSetCombinations`](crate::identify::CommandSetCombinations).
        [8:0] iocsci / with_iocsci: u16,
    }
}

bits! {
    /// Host Identifier.
    pub struct HostIdentifier(U32: u32) {
        /// Enable extended host identifier (EXHID): 16 bytes rather than 8.
        [0:0] exhid / with_exhid: bool,
    }
}

crate::open_enum! {
    /// Write Protection State (WPS): 3 bits.
    pub enum WriteProtectionState: u8 {
        /// The namespace can be written.
        NONE = 0x0,
        /// Protected until it is set otherwise.
        WRITE_PROTECT = 0x1,
        /// Protected until the next power cycle.
        UNTIL_POWER_CYCLE = 0x2,
        /// Protected for good.
        PERMANENT = 0x3,
    }
}

enum_fields!(WriteProtectionState: u8);

bits! {
    /// Namespace Write Protection Config.
    pub struct WriteProtection(U32: u32) {
        /// Write protection state (WPS).
        [2:0] wps / with_wps: WriteProtectionState,
    }
}

bits! {
    /// Where a timestamp is from: byte 6 of a [`Timestamp`].
    pub struct TimestampAttributes(u8: u8) {
        /// Synch: the clock may have stopped in between.
        [0:0] synch / with_synch: bool,
        /// Timestamp origin: 0 the last reset set it to 0, 1 a host set it.
        [3:1] origin / with_origin: u8,
    }
}

/// The data of the Timestamp feature.
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
pub struct Timestamp {
    /// Milliseconds since 1970 began, UTC: 48 bits, low byte first.
    pub timestamp: [u8; 6],
    /// Attributes. Set Features: zero.
    pub attributes: TimestampAttributes,
    /// Zero.
    pub reserved_7: Reserved<1>,
}

const _: () = assert!(size_of::<Timestamp>() == 8);

/// The data of the Host Behavior Support feature: what the host can deal with.
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
pub struct HostBehaviorSupport {
    /// Advanced command retry enable: 1 if the host knows the retry delay (CRD).
    pub acre: u8,
    /// Extended telemetry data area 4 supported.
    pub etdas: u8,
    /// LBA format extension enable: 1 if the host knows more than 16 formats.
    pub lbafee: u8,
    /// Zero.
    pub reserved_3: Reserved<509>,
}

const _: () = assert!(size_of::<HostBehaviorSupport>() == 512);
