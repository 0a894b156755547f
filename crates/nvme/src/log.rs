//! Log pages: what Get Log Page returns.
//!
//! Source: NVMe base specification 2.0, section 5.16.1. Fields that it does not
//! abbreviate have the abbreviation of revision 2.1. The changed zone list is in
//! [`zns`](crate::zns).

mod discovery;
mod effects;
mod health;

pub use discovery::{
    AddressFamily, DiscoveryEntry, DiscoveryEntryFlags, DiscoveryHeader, SubsystemType,
    TcpAddressSpecific, TcpSecurity, TransportRequirements, TransportType,
};
pub use effects::{CommandEffects, CommandEffectsLog, SupportedLogPage, SupportedLogPages};
pub use health::{
    ActiveFirmware, CriticalWarning, ErrorEntry, FirmwareSlots, ParameterErrorLocation, SmartLog,
};

crate::open_enum! {
    /// Log Page Identifier (LID).
    pub enum LogPageId: u8 {
        /// [`SupportedLogPages`].
        SUPPORTED_LOG_PAGES = 0x00,
        /// Error information: [`ErrorEntry`], newest first.
        ERROR_INFORMATION = 0x01,
        /// SMART / health information: [`SmartLog`].
        SMART = 0x02,
        /// [`FirmwareSlots`].
        FIRMWARE_SLOTS = 0x03,
        /// Namespaces that changed since it was read:
        /// [`NamespaceList`](crate::identify::NamespaceList), or
        /// [`CHANGED_NAMESPACES_OVERFLOW`].
        CHANGED_NAMESPACES = 0x04,
        /// [`CommandEffectsLog`].
        COMMAND_EFFECTS = 0x05,
        /// Device self-test.
        DEVICE_SELF_TEST = 0x06,
        /// Telemetry that the host asked for.
        TELEMETRY_HOST = 0x07,
        /// Telemetry of the controller.
        TELEMETRY_CONTROLLER = 0x08,
        /// Endurance group information:
        /// [`EnduranceGroupLog`](crate::placement::EnduranceGroupLog).
        ENDURANCE_GROUP = 0x09,
        /// Predictable latency of an NVM set.
        PREDICTABLE_LATENCY_NVM_SET = 0x0a,
        /// Predictable latency events.
        PREDICTABLE_LATENCY_EVENTS = 0x0b,
        /// Asymmetric namespace access.
        ANA = 0x0c,
        /// Persistent event log.
        PERSISTENT_EVENTS = 0x0d,
        /// LBA status information.
        LBA_STATUS = 0x0e,
        /// Endurance group events.
        ENDURANCE_GROUP_EVENTS = 0x0f,
        /// Media unit status.
        MEDIA_UNIT_STATUS = 0x10,
        /// Supported capacity configurations.
        SUPPORTED_CAPACITY = 0x11,
        /// Supported features and their effects.
        FEATURE_EFFECTS = 0x12,
        /// Supported NVMe-MI commands and their effects.
        NVME_MI_EFFECTS = 0x13,
        /// Command and feature lockdown.
        LOCKDOWN = 0x14,
        /// Boot partition.
        BOOT_PARTITION = 0x15,
        /// FDP configurations, of an endurance group as the next three:
        /// [`ConfigurationsHeader`](crate::placement::ConfigurationsHeader).
        FDP_CONFIGURATIONS = 0x20,
        /// Reclaim unit handle usage:
        /// [`HandleUsageHeader`](crate::placement::HandleUsageHeader).
        RECLAIM_UNIT_HANDLE_USAGE = 0x21,
        /// [`PlacementStatistics`](crate::placement::PlacementStatistics).
        FDP_STATISTICS = 0x22,
        /// FDP events:
        /// [`PlacementEventsHeader`](crate::placement::PlacementEventsHeader).
        FDP_EVENTS = 0x23,
        /// Discovery: [`DiscoveryHeader`], then [`DiscoveryEntry`]s.
        DISCOVERY = 0x70,
        /// [`ReservationNotification`](crate::reservation::ReservationNotification), one at a
        /// time.
        RESERVATION_NOTIFICATION = 0x80,
        /// Sanitize status.
        SANITIZE_STATUS = 0x81,
        /// [`ChangedZoneList`](crate::zns::ChangedZoneList).
        CHANGED_ZONES = crate::zns::CHANGED_ZONE_LIST_LID,
    }
}

enum_fields!(LogPageId: u8);

/// The first and only identifier of the changed namespace list if more than
/// 1024 changed.
pub const CHANGED_NAMESPACES_OVERFLOW: u32 = u32::MAX;
