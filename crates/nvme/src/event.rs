//! Asynchronous events: what the completion of an Asynchronous Event Request
//! says.
//!
//! Source: NVMe base specification 2.0, section 5.2; ZNS command set 1.1,
//! section 5.1, for its event.

use zerocopy::little_endian::U32;

crate::open_enum! {
    /// Asynchronous Event Type: 3 bits.
    pub enum AsyncEventType: u8 {
        /// Something failed, of no command: the error information log tells.
        ERROR = 0x0,
        /// Health: the SMART log tells.
        SMART = 0x1,
        /// Something changed.
        NOTICE = 0x2,
        /// Reported without a log page.
        IMMEDIATE = 0x3,
        /// Specific to an I/O command set.
        COMMAND_SET = 0x6,
        /// Defined by the vendor.
        VENDOR_SPECIFIC = 0x7,
    }
}

crate::open_enum! {
    /// Asynchronous Event Information of [`AsyncEventType::ERROR`].
    pub enum ErrorEvent: u8 {
        /// A doorbell of a queue that does not exist was written.
        INVALID_DOORBELL_REGISTER = 0x00,
        /// A doorbell got an invalid value.
        INVALID_DOORBELL_VALUE = 0x01,
        /// A diagnosis failed.
        DIAGNOSTIC_FAILURE = 0x02,
        /// An internal error that stays.
        PERSISTENT_INTERNAL_ERROR = 0x03,
        /// An internal error that a reset may remove.
        TRANSIENT_INTERNAL_ERROR = 0x04,
        /// A firmware image could not be loaded.
        FIRMWARE_IMAGE_LOAD_ERROR = 0x05,
    }
}

crate::open_enum! {
    /// Asynchronous Event Information of [`AsyncEventType::SMART`].
    pub enum SmartEvent: u8 {
        /// The subsystem is no longer reliable.
        SUBSYSTEM_RELIABILITY = 0x00,
        /// A temperature passed its threshold.
        TEMPERATURE_THRESHOLD = 0x01,
        /// Spare capacity is below its threshold.
        SPARE_BELOW_THRESHOLD = 0x02,
    }
}

crate::open_enum! {
    /// Asynchronous Event Information of [`AsyncEventType::NOTICE`].
    pub enum NoticeEvent: u8 {
        /// Identify of a namespace changed: the changed namespace list says which.
        NAMESPACE_ATTRIBUTE_CHANGED = 0x00,
        /// Firmware is being activated.
        FIRMWARE_ACTIVATION_STARTING = 0x01,
        /// The telemetry log changed.
        TELEMETRY_LOG_CHANGED = 0x02,
        /// Asymmetric namespace access changed.
        ANA_CHANGE = 0x03,
        /// The predictable latency log changed.
        PREDICTABLE_LATENCY_LOG_CHANGED = 0x04,
        /// LBA status information is there.
        LBA_STATUS_INFORMATION_ALERT = 0x05,
        /// The endurance group log changed.
        ENDURANCE_GROUP_LOG_CHANGED = 0x06,
        /// The device changed zone descriptors: the changed zone list says
        /// which. Dword 1 is the namespace.
        ZONE_DESCRIPTOR_CHANGED = 0xef,
        /// The discovery log changed.
        DISCOVERY_LOG_CHANGED = 0xf0,
    }
}

crate::open_enum! {
    /// Asynchronous Event Information of [`AsyncEventType::COMMAND_SET`].
    pub enum CommandSetEvent: u8 {
        /// There are reservation notifications.
        RESERVATION_LOG_PAGE_AVAILABLE = 0x00,
        /// A sanitize operation has ended.
        SANITIZE_COMPLETED = 0x01,
    }
}

enum_fields!(AsyncEventType: u8);

bits! {
    /// An asynchronous event: dword 0 of the completion. Dword 1 is specific to
    /// the event, and 0 for most.
    pub struct AsyncEvent(U32: u32) {
        /// Asynchronous event type.
        [2:0] event_type / with_event_type: AsyncEventType,
        /// Asynchronous event information: an [`ErrorEvent`], a [`SmartEvent`],
        /// a [`NoticeEvent`] or a [`CommandSetEvent`], as the type says.
        [15:8] information / with_information: u8,
        /// Log page identifier (LID) of the log that tells more, and that
        /// clears the event when it is read.
        [23:16] lid / with_lid: u8,
    }
}

impl AsyncEvent {
    /// A notice, and the log page that tells more.
    #[must_use]
    pub fn notice(notice: NoticeEvent, lid: u8) -> Self {
        Self::default()
            .with_event_type(AsyncEventType::NOTICE)
            .with_information(notice.0)
            .with_lid(lid)
    }
}
