//! Status codes: how a command ended.
//!
//! Source: NVMe base specification 2.0, section 3.3.3.2.1 (Status Field
//! Definition); NVM command set 1.0 and ZNS command set 1.1 for theirs.
//!
//! Codes 80h and up of the command specific type belong to the I/O command
//! set, and the same number means something else on a fabrics command. The
//! names of [`Status`] are those of the NVM and ZNS command sets, those of
//! [`FabricsStatus`] the others.

crate::open_enum! {
    /// Status Code Type (SCT): which table a status code is from. 3 bits.
    pub enum StatusCodeType: u8 {
        /// Any command can end so.
        GENERIC = 0x0 => "Generic Command Status",
        /// The meaning depends on the command.
        COMMAND_SPECIFIC = 0x1 => "Command Specific Status",
        /// The media failed, or a check of the data did.
        MEDIA = 0x2 => "Media and Data Integrity Errors",
        /// The way to the namespace failed.
        PATH = 0x3 => "Path Related Status",
        /// Defined by the vendor.
        VENDOR_SPECIFIC = 0x7 => "Vendor Specific",
    }
}

enum_fields!(StatusCodeType: u8);

crate::open_enum! {
    /// Status code type and status code in one value: `SCT << 8 | SC`, 11 bits.
    ///
    /// It prints as `Zone Invalid Write (0x1bc)`. Whether the host may try
    /// again is not part of it: see [`StatusField`](crate::queue::StatusField).
    pub enum Status: u16 {
        // Generic command status (SCT 0h).

        /// The command completed without error.
        SUCCESS = 0x000 => "Successful Completion",
        /// The opcode is not supported.
        INVALID_OPCODE = 0x001 => "Invalid Command Opcode",
        /// A field of the command holds a value that is not allowed.
        INVALID_FIELD = 0x002 => "Invalid Field in Command",
        /// The command identifier is in use on this queue.
        COMMAND_ID_CONFLICT = 0x003 => "Command ID Conflict",
        /// Data or metadata could not be transferred.
        DATA_TRANSFER_ERROR = 0x004 => "Data Transfer Error",
        /// Aborted because power is about to go.
        ABORTED_POWER_LOSS = 0x005 => "Commands Aborted due to Power Loss Notification",
        /// The device failed inside.
        INTERNAL_ERROR = 0x006 => "Internal Error",
        /// Aborted by an Abort command.
        ABORT_REQUESTED = 0x007 => "Command Abort Requested",
        /// Aborted because its submission queue was deleted.
        ABORTED_SQ_DELETION = 0x008 => "Command Aborted due to SQ Deletion",
        /// The other command of the fused pair failed.
        ABORTED_FAILED_FUSED = 0x009 => "Command Aborted due to Failed Fused Command",
        /// The other command of the fused pair is not there.
        ABORTED_MISSING_FUSED = 0x00a => "Command Aborted due to Missing Fused Command",
        /// The namespace or its format is not valid.
        INVALID_NAMESPACE_OR_FORMAT = 0x00b => "Invalid Namespace or Format",
        /// A command that must come before this one did not.
        COMMAND_SEQUENCE_ERROR = 0x00c => "Command Sequence Error",
        /// A segment descriptor or its length is not valid.
        INVALID_SGL_SEGMENT_DESCRIPTOR = 0x00d => "Invalid SGL Segment Descriptor",
        /// A segment holds a number of descriptors that is not allowed.
        INVALID_SGL_DESCRIPTOR_COUNT = 0x00e => "Invalid Number of SGL Descriptors",
        /// The list for data is too short, or too long where that is not supported.
        DATA_SGL_LENGTH_INVALID = 0x00f => "Data SGL Length Invalid",
        /// The list for metadata is too short, or too long where that is not supported.
        METADATA_SGL_LENGTH_INVALID = 0x010 => "Metadata SGL Length Invalid",
        /// A descriptor has a type that is not supported.
        SGL_DESCRIPTOR_TYPE_INVALID = 0x011 => "SGL Descriptor Type Invalid",
        /// An address in the controller memory buffer is used in a way that is not supported.
        INVALID_USE_OF_CMB = 0x012 => "Invalid Use of Controller Memory Buffer",
        /// A PRP entry has an offset where none is allowed.
        PRP_OFFSET_INVALID = 0x013 => "PRP Offset Invalid",
        /// The write is larger than the atomic write unit.
        ATOMIC_WRITE_UNIT_EXCEEDED = 0x014 => "Atomic Write Unit Exceeded",
        /// Access rights do not allow it.
        OPERATION_DENIED = 0x015 => "Operation Denied",
        /// The offset of a descriptor is not valid.
        SGL_OFFSET_INVALID = 0x016 => "SGL Offset Invalid",
        /// Host identifiers of 64 and 128 bits are mixed.
        HOST_ID_INCONSISTENT_FORMAT = 0x018 => "Host Identifier Inconsistent Format",
        /// The keep alive timer ran out.
        KEEP_ALIVE_EXPIRED = 0x019 => "Keep Alive Timer Expired",
        /// The keep alive timeout is not valid.
        KEEP_ALIVE_TIMEOUT_INVALID = 0x01a => "Keep Alive Timeout Invalid",
        /// Aborted by a reservation action.
        ABORTED_PREEMPT = 0x01b => "Command Aborted due to Preempt and Abort",
        /// The last sanitize operation failed and was not recovered from.
        SANITIZE_FAILED = 0x01c => "Sanitize Failed",
        /// Not allowed while a sanitize operation runs.
        SANITIZE_IN_PROGRESS = 0x01d => "Sanitize In Progress",
        /// The length or address of a data block has the wrong granularity.
        SGL_DATA_BLOCK_GRANULARITY_INVALID = 0x01e => "SGL Data Block Granularity Invalid",
        /// The queue lies in the controller memory buffer, where this is not supported.
        NOT_SUPPORTED_FOR_QUEUE_IN_CMB = 0x01f => "Command Not Supported for Queue in CMB",
        /// The namespace must not be changed.
        NAMESPACE_WRITE_PROTECTED = 0x020 => "Namespace is Write Protected",
        /// Interrupted by the device; the host may send it again.
        COMMAND_INTERRUPTED = 0x021 => "Command Interrupted",
        /// The transport failed; the host may send it again.
        TRANSIENT_TRANSPORT_ERROR = 0x022 => "Transient Transport Error",
        /// A lockdown forbids it.
        PROHIBITED_BY_LOCKDOWN = 0x023 => "Command Prohibited by Command and Feature Lockdown",
        /// An admin command needs media that is not ready yet.
        ADMIN_COMMAND_MEDIA_NOT_READY = 0x024 => "Admin Command Media Not Ready",
        /// The host has said no identifier.
        HOST_IDENTIFIER_NOT_INITIALIZED = 0x027 => "Host Identifier Not Initialized",
        /// Flexible data placement is not enabled in the endurance group.
        FDP_DISABLED = 0x029 => "FDP Disabled",
        /// The list of placement handles is not possible.
        INVALID_PLACEMENT_HANDLE_LIST = 0x02a => "Invalid Placement Handle List",
        /// The range exceeds the size of the namespace.
        LBA_OUT_OF_RANGE = 0x080 => "LBA Out of Range",
        /// More would be used than the capacity of the namespace.
        CAPACITY_EXCEEDED = 0x081 => "Capacity Exceeded",
        /// The namespace cannot be used yet.
        NAMESPACE_NOT_READY = 0x082 => "Namespace Not Ready",
        /// A reservation of another host forbids it.
        RESERVATION_CONFLICT = 0x083 => "Reservation Conflict",
        /// The namespace is being formatted.
        FORMAT_IN_PROGRESS = 0x084 => "Format In Progress",
        /// Key value: the size of the value is not valid.
        INVALID_VALUE_SIZE = 0x085 => "Invalid Value Size",
        /// Key value: the size of the key is not valid.
        INVALID_KEY_SIZE = 0x086 => "Invalid Key Size",
        /// Key value: there is no such key.
        KV_KEY_DOES_NOT_EXIST = 0x087 => "KV Key Does Not Exist",
        /// Key value: data could not be recovered.
        UNRECOVERED_ERROR = 0x088 => "Unrecovered Error",
        /// Key value: the key is there already.
        KEY_EXISTS = 0x089 => "Key Exists",

        // Command specific status (SCT 1h).

        /// The completion queue of a new submission queue does not exist.
        CQ_INVALID = 0x100 => "Completion Queue Invalid",
        /// The queue identifier is in use, or too large.
        INVALID_QUEUE_IDENTIFIER = 0x101 => "Invalid Queue Identifier",
        /// The queue size is zero or too large.
        INVALID_QUEUE_SIZE = 0x102 => "Invalid Queue Size",
        /// More Abort commands at once than the limit (ACL).
        ABORT_LIMIT_EXCEEDED = 0x103 => "Abort Command Limit Exceeded",
        /// More event requests at once than the limit (AERL).
        AER_LIMIT_EXCEEDED = 0x105 => "Asynchronous Event Request Limit Exceeded",
        /// The firmware slot is not valid, or read only.
        INVALID_FIRMWARE_SLOT = 0x106 => "Invalid Firmware Slot",
        /// The firmware image is not valid, or was not loaded.
        INVALID_FIRMWARE_IMAGE = 0x107 => "Invalid Firmware Image",
        /// There is no such interrupt vector.
        INVALID_INTERRUPT_VECTOR = 0x108 => "Invalid Interrupt Vector",
        /// There is no such log page.
        INVALID_LOG_PAGE = 0x109 => "Invalid Log Page",
        /// The LBA format, or what goes with it, is not supported.
        INVALID_FORMAT = 0x10a => "Invalid Format",
        /// Committed; active after a conventional reset.
        FIRMWARE_NEEDS_CONVENTIONAL_RESET = 0x10b => "Firmware Activation Requires Conventional Reset",
        /// The completion queue still has submission queues.
        INVALID_QUEUE_DELETION = 0x10c => "Invalid Queue Deletion",
        /// The feature has no saveable value.
        FEATURE_NOT_SAVEABLE = 0x10d => "Feature Identifier Not Saveable",
        /// The feature cannot be changed.
        FEATURE_NOT_CHANGEABLE = 0x10e => "Feature Not Changeable",
        /// The feature is not one of a namespace.
        FEATURE_NOT_NAMESPACE_SPECIFIC = 0x10f => "Feature Not Namespace Specific",
        /// Committed; active after a reset of the subsystem.
        FIRMWARE_NEEDS_SUBSYSTEM_RESET = 0x110 => "Firmware Activation Requires NVM Subsystem Reset",
        /// Committed; active after a reset of the controller.
        FIRMWARE_NEEDS_CONTROLLER_RESET = 0x111 => "Firmware Activation Requires Controller Level Reset",
        /// Activating it at once would take longer than allowed (MTFA).
        FIRMWARE_MAXIMUM_TIME_VIOLATION = 0x112 => "Firmware Activation Requires Maximum Time Violation",
        /// The image must not be activated.
        FIRMWARE_ACTIVATION_PROHIBITED = 0x113 => "Firmware Activation Prohibited",
        /// Two ranges overlap.
        OVERLAPPING_RANGE = 0x114 => "Overlapping Range",
        /// Not enough free space for the namespace.
        NAMESPACE_INSUFFICIENT_CAPACITY = 0x115 => "Namespace Insufficient Capacity",
        /// As many namespaces exist as can.
        NAMESPACE_ID_UNAVAILABLE = 0x116 => "Namespace Identifier Unavailable",
        /// The controller has it already.
        NAMESPACE_ALREADY_ATTACHED = 0x118 => "Namespace Already Attached",
        /// Another controller has it, and it cannot be shared.
        NAMESPACE_IS_PRIVATE = 0x119 => "Namespace Is Private",
        /// The controller does not have it.
        NAMESPACE_NOT_ATTACHED = 0x11a => "Namespace Not Attached",
        /// Size and capacity must be equal.
        THIN_PROVISIONING_NOT_SUPPORTED = 0x11b => "Thin Provisioning Not Supported",
        /// The controller list is not valid.
        CONTROLLER_LIST_INVALID = 0x11c => "Controller List Invalid",
        /// A self-test runs already.
        SELF_TEST_IN_PROGRESS = 0x11d => "Device Self-test In Progress",
        /// The boot partition is locked.
        BOOT_PARTITION_WRITE_PROHIBITED = 0x11e => "Boot Partition Write Prohibited",
        /// There is no such controller.
        INVALID_CONTROLLER_IDENTIFIER = 0x11f => "Invalid Controller Identifier",
        /// The secondary controller's state does not allow it.
        INVALID_SECONDARY_CONTROLLER_STATE = 0x120 => "Invalid Secondary Controller State",
        /// The number of controller resources is not valid.
        INVALID_CONTROLLER_RESOURCE_COUNT = 0x121 => "Invalid Number of Controller Resources",
        /// There is no such resource.
        INVALID_RESOURCE_IDENTIFIER = 0x122 => "Invalid Resource Identifier",
        /// Disable the persistent memory region first.
        SANITIZE_PROHIBITED_PMR_ENABLED = 0x123 => "Sanitize Prohibited While Persistent Memory Region is Enabled",
        /// The ANA group identifier is not valid.
        ANA_GROUP_IDENTIFIER_INVALID = 0x124 => "ANA Group Identifier Invalid",
        /// The ANA group cannot take the namespace.
        ANA_ATTACH_FAILED = 0x125 => "ANA Attach Failed",
        /// Not enough free capacity.
        INSUFFICIENT_CAPACITY = 0x126 => "Insufficient Capacity",
        /// More attachments than the limit.
        NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED = 0x127 => "Namespace Attachment Limit Exceeded",
        /// Lockdown cannot forbid this command.
        COMMAND_PROHIBITION_NOT_SUPPORTED = 0x128 => "Prohibition of Command Execution Not Supported",
        /// The I/O command set is not supported.
        COMMAND_SET_NOT_SUPPORTED = 0x129 => "I/O Command Set Not Supported",
        /// The I/O command set is not enabled.
        COMMAND_SET_NOT_ENABLED = 0x12a => "I/O Command Set Not Enabled",
        /// The combination of I/O command sets is not supported.
        COMMAND_SET_COMBINATION_REJECTED = 0x12b => "I/O Command Set Combination Rejected",
        /// The I/O command set is not valid here.
        INVALID_COMMAND_SET = 0x12c => "Invalid I/O Command Set",
        /// As many endurance groups or NVM sets exist as can.
        IDENTIFIER_UNAVAILABLE = 0x12d => "Identifier Unavailable",
        /// Attributes of the command contradict each other.
        CONFLICTING_ATTRIBUTES = 0x180 => "Conflicting Attributes",
        /// The protection settings do not fit the namespace's format.
        INVALID_PROTECTION_INFORMATION = 0x181 => "Invalid Protection Information",
        /// The range is read only.
        WRITE_TO_READ_ONLY_RANGE = 0x182 => "Attempted Write to Read Only Range",
        /// The command is larger than a limit of its command set.
        COMMAND_SIZE_LIMIT_EXCEEDED = 0x183 => "Command Size Limit Exceeded",
        /// The operation needs a ZRWA and the zone has none, or the reverse: a
        /// zone that is not empty cannot get one.
        INVALID_ZONE_OPERATION_REQUEST = 0x1b6 => "Invalid Zone Operation Request",
        /// No ZRWA resource is left.
        ZRWA_RESOURCES_UNAVAILABLE = 0x1b7 => "ZRWA Resources Unavailable",
        /// A read or write runs across the end of a zone, or beyond its capacity.
        ZONE_BOUNDARY_ERROR = 0x1b8 => "Zone Boundary Error",
        /// The zone is full.
        ZONE_IS_FULL = 0x1b9 => "Zone Is Full",
        /// The zone is read only.
        ZONE_IS_READ_ONLY = 0x1ba => "Zone Is Read Only",
        /// The zone is offline.
        ZONE_IS_OFFLINE = 0x1bb => "Zone Is Offline",
        /// The write does not start at the write pointer.
        ZONE_INVALID_WRITE = 0x1bc => "Zone Invalid Write",
        /// The active resources are used up.
        TOO_MANY_ACTIVE_ZONES = 0x1bd => "Too Many Active Zones",
        /// The open resources are used up.
        TOO_MANY_OPEN_ZONES = 0x1be => "Too Many Open Zones",
        /// The zone has no transition for this action.
        INVALID_ZONE_STATE_TRANSITION = 0x1bf => "Invalid Zone State Transition",

        // Media and data integrity errors (SCT 2h).

        /// Data could not be written to the media.
        WRITE_FAULT = 0x280 => "Write Fault",
        /// Data could not be read from the media.
        UNRECOVERED_READ_ERROR = 0x281 => "Unrecovered Read Error",
        /// The guard does not match the data.
        GUARD_CHECK_ERROR = 0x282 => "End-to-end Guard Check Error",
        /// The application tag is not the expected one.
        APPLICATION_TAG_CHECK_ERROR = 0x283 => "End-to-end Application Tag Check Error",
        /// The reference tag is not the expected one.
        REFERENCE_TAG_CHECK_ERROR = 0x284 => "End-to-end Reference Tag Check Error",
        /// Compare found a difference.
        COMPARE_FAILURE = 0x285 => "Compare Failure",
        /// Access rights do not allow it.
        ACCESS_DENIED = 0x286 => "Access Denied",
        /// A block was never written, and the namespace reports that (DULBE).
        DEALLOCATED_OR_UNWRITTEN_BLOCK = 0x287 => "Deallocated or Unwritten Logical Block",
        /// The storage tag is not the expected one.
        STORAGE_TAG_CHECK_ERROR = 0x288 => "End-to-End Storage Tag Check Error",

        // Path related status (SCT 3h).

        /// The path failed inside the controller.
        INTERNAL_PATH_ERROR = 0x300 => "Internal Path Error",
        /// The namespace is gone for good on this path.
        ANA_PERSISTENT_LOSS = 0x301 => "Asymmetric Access Persistent Loss",
        /// The namespace cannot be reached on this path.
        ANA_INACCESSIBLE = 0x302 => "Asymmetric Access Inaccessible",
        /// The access state of this path is changing.
        ANA_TRANSITION = 0x303 => "Asymmetric Access Transition",
        /// The controller found the path broken.
        CONTROLLER_PATHING_ERROR = 0x360 => "Controller Pathing Error",
        /// The host found the path broken.
        HOST_PATHING_ERROR = 0x370 => "Host Pathing Error",
        /// The host gave the command up.
        ABORTED_BY_HOST = 0x371 => "Command Aborted By Host",
    }
}

crate::open_enum! {
    /// Status of a fabrics command, where the number means something else than
    /// on an I/O command: command specific status (SCT 1h), 80h and up. Any
    /// other status of a fabrics command is a [`Status`].
    pub enum FabricsStatus: u16 {
        /// The record format is not supported.
        CONNECT_INCOMPATIBLE_FORMAT = 0x180 => "Connect Incompatible Format",
        /// The controller, or the identifier asked for, is in use.
        CONNECT_CONTROLLER_BUSY = 0x181 => "Connect Controller Busy",
        /// A parameter is not valid; the completion says where it lies.
        CONNECT_INVALID_PARAMETERS = 0x182 => "Connect Invalid Parameters",
        /// The subsystem moved: read the discovery log again.
        CONNECT_RESTART_DISCOVERY = 0x183 => "Connect Restart Discovery",
        /// The host may not connect.
        CONNECT_INVALID_HOST = 0x184 => "Connect Invalid Host",
        /// The admin queue cannot be disconnected.
        INVALID_QUEUE_TYPE = 0x185 => "Disconnect Invalid Queue Type",
        /// The log changed while it was read: read it again.
        DISCOVER_RESTART = 0x190 => "Discover Restart",
        /// Authenticate first.
        AUTHENTICATION_REQUIRED = 0x191 => "Authentication Required",
    }
}

impl FabricsStatus {
    /// The same number among all statuses, as a completion carries it.
    #[must_use]
    pub const fn status(self) -> Status {
        Status(self.0)
    }
}

impl From<FabricsStatus> for Status {
    fn from(status: FabricsStatus) -> Self {
        status.status()
    }
}

impl Status {
    /// Its name as the outcome of a fabrics command, if it has one.
    #[must_use]
    pub fn fabrics_name(self) -> Option<&'static str> {
        FabricsStatus(self.0).name().or_else(|| self.name())
    }

    /// The status with code `sc` of type `sct`, of which the low 3 bits count.
    #[must_use]
    pub const fn new(sct: StatusCodeType, sc: u8) -> Self {
        Self(u16::from_be_bytes([sct.0 & 0x7, sc]))
    }

    /// True for successful completion.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }

    /// Status Code Type (SCT).
    #[must_use]
    pub const fn sct(self) -> StatusCodeType {
        StatusCodeType(self.0.to_be_bytes()[0] & 0x7)
    }

    /// Status Code (SC).
    #[must_use]
    pub const fn sc(self) -> u8 {
        self.0.to_be_bytes()[1]
    }
}

/// A failed command, for `?`: every status can stand in an error chain.
impl core::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn a_status_prints_its_name_and_number() {
        assert_eq!(
            format!("{}", Status::ZONE_INVALID_WRITE),
            "Zone Invalid Write (0x1bc)"
        );
        assert_eq!(
            format!("{:?}", Status::LBA_OUT_OF_RANGE),
            "LBA Out of Range (0x80)"
        );
        assert_eq!(format!("{}", Status(0x7c1)), "Status(0x7c1)");
    }

    #[test]
    fn type_and_code_are_the_two_halves() {
        let status = Status::new(StatusCodeType::COMMAND_SPECIFIC, 0xbc);
        assert_eq!(status, Status::ZONE_INVALID_WRITE);
        assert_eq!(Status::UNRECOVERED_READ_ERROR.sct(), StatusCodeType::MEDIA);
        assert_eq!(Status::UNRECOVERED_READ_ERROR.sc(), 0x81);
        assert!(Status::SUCCESS.is_success() && !Status::CQ_INVALID.is_success());
    }

    #[test]
    fn no_value_and_no_name_is_given_twice() {
        for (position, (status, name)) in Status::NAMED.iter().enumerate() {
            let rest = &Status::NAMED[position + 1..];
            assert!(rest.iter().all(|(other, _)| other != status), "{status}");
            assert!(rest.iter().all(|(_, other)| other != name), "{name}");
            assert!(status.0 < 1 << 11, "{status} does not fit SCT and SC");
        }
    }
}
