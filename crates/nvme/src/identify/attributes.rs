//! The fields of the controller structure, bit by bit.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Version (VER): 2.0.0 is 00020000h.
    pub struct Version(U32: u32) {
        /// Tertiary version (TER).
        [7:0] ter / with_ter: u8,
        /// Minor version (MNR).
        [15:8] mnr / with_mnr: u8,
        /// Major version (MJR).
        [31:16] mjr / with_mjr: u16,
    }
}

bits! {
    /// Optional asynchronous events supported (OAES).
    pub struct AsyncEvents(U32: u32) {
        /// Namespace attributes changed.
        [8:8] namespace_attribute / with_namespace_attribute: bool,
        /// Firmware is being activated.
        [9:9] firmware_activation / with_firmware_activation: bool,
        /// Asymmetric namespace access changed.
        [11:11] ana_change / with_ana_change: bool,
        /// Predictable latency log changed.
        [12:12] predictable_latency / with_predictable_latency: bool,
        /// LBA status information is there.
        [13:13] lba_status / with_lba_status: bool,
        /// Endurance group log changed.
        [14:14] endurance_group / with_endurance_group: bool,
        /// Normal subsystem shutdown.
        [15:15] subsystem_shutdown / with_subsystem_shutdown: bool,
        /// Zone descriptors changed: the changed zone list says which.
        [27:27] zone_descriptor_changed / with_zone_descriptor_changed: bool,
        /// Discovery log changed.
        [31:31] discovery_log / with_discovery_log: bool,
    }
}

crate::open_enum! {
    /// Controller type (CNTRLTYPE).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum ControllerType: u8 {
        /// Not reported.
        NOT_REPORTED = 0x0,
        /// I/O controller.
        IO = 0x1,
        /// Discovery controller.
        DISCOVERY = 0x2,
        /// Administrative controller.
        ADMINISTRATIVE = 0x3,
    }
}

const _: () = assert!(size_of::<ControllerType>() == 1);

bits! {
    /// Optional admin command support (OACS).
    pub struct OptionalAdmin(U16: u16) {
        /// Security Send and Security Receive.
        [0:0] security / with_security: bool,
        /// Format NVM.
        [1:1] format_nvm / with_format_nvm: bool,
        /// Firmware Commit and Firmware Image Download.
        [2:2] firmware / with_firmware: bool,
        /// Namespace Management and Namespace Attachment.
        [3:3] namespace_management / with_namespace_management: bool,
        /// Device Self-test.
        [4:4] self_test / with_self_test: bool,
        /// Directives.
        [5:5] directives / with_directives: bool,
        /// NVMe-MI Send and NVMe-MI Receive.
        [6:6] nvme_mi / with_nvme_mi: bool,
        /// Virtualization Management.
        [7:7] virtualization / with_virtualization: bool,
        /// Doorbell Buffer Config.
        [8:8] doorbell_buffer / with_doorbell_buffer: bool,
        /// Get LBA Status.
        [9:9] get_lba_status / with_get_lba_status: bool,
        /// Command and feature lockdown.
        [10:10] lockdown / with_lockdown: bool,
    }
}

bits! {
    /// Entry sizes of a queue (SQES, CQES) as powers of two: 6 is 64 bytes.
    pub struct EntrySizes(u8: u8) {
        /// The size required.
        [3:0] min / with_min: u8,
        /// The largest size.
        [7:4] max / with_max: u8,
    }
}

bits! {
    /// Optional NVM command support (ONCS).
    pub struct NvmOptions(U16: u16) {
        /// Compare.
        [0:0] compare / with_compare: bool,
        /// Write Uncorrectable.
        [1:1] write_uncorrectable / with_write_uncorrectable: bool,
        /// Dataset Management.
        [2:2] dataset_management / with_dataset_management: bool,
        /// Write Zeroes.
        [3:3] write_zeroes / with_write_zeroes: bool,
        /// Save and select fields of Set Features and Get Features.
        [4:4] save_select / with_save_select: bool,
        /// Reservations.
        [5:5] reservations / with_reservations: bool,
        /// The timestamp feature.
        [6:6] timestamp / with_timestamp: bool,
        /// Verify.
        [7:7] verify / with_verify: bool,
        /// Copy.
        [8:8] copy / with_copy: bool,
    }
}

bits! {
    /// Volatile write cache (VWC).
    pub struct VolatileWriteCache(u8: u8) {
        /// There is one.
        [0:0] present / with_present: bool,
        /// Flush for all namespaces: 0 not said, 2 not supported, 3 supported.
        [2:1] flush_all / with_flush_all: u8,
    }
}

bits! {
    /// SGL support (SGLS).
    pub struct SglSupport(U32: u32) {
        /// 0 none, 1 with any alignment, 2 with dword alignment.
        [1:0] support / with_support: u8,
        /// Keyed data blocks.
        [2:2] keyed / with_keyed: bool,
        /// Bit buckets.
        [16:16] bit_bucket / with_bit_bucket: bool,
        /// Metadata in one buffer of any alignment.
        [17:17] metadata_byte_aligned / with_metadata_byte_aligned: bool,
        /// A list may be longer than the data.
        [18:18] oversize / with_oversize: bool,
        /// The metadata pointer may point to an SGL descriptor.
        [19:19] mptr_sgl / with_mptr_sgl: bool,
        /// The address may be an offset.
        [20:20] offset / with_offset: bool,
        /// Transport data blocks.
        [21:21] transport / with_transport: bool,
    }
}

bits! {
    /// Controller multi-path I/O and namespace sharing capabilities (CMIC).
    pub struct MultiPath(u8: u8) {
        /// The subsystem may have more than one port.
        [0:0] ports / with_ports: bool,
        /// The subsystem may have more than one controller.
        [1:1] controllers / with_controllers: bool,
        /// The controller is an SR-IOV virtual function.
        [2:2] sr_iov / with_sr_iov: bool,
        /// Asymmetric namespace access reporting.
        [3:3] ana / with_ana: bool,
    }
}

bits! {
    /// Controller attributes (CTRATT).
    pub struct ControllerAttributes(U32: u32) {
        /// Host identifiers of 16 bytes.
        [0:0] host_id_128 / with_host_id_128: bool,
        /// Non-operational power state permissive mode.
        [1:1] non_operational_permissive / with_non_operational_permissive: bool,
        /// NVM sets.
        [2:2] nvm_sets / with_nvm_sets: bool,
        /// Read recovery levels.
        [3:3] read_recovery_levels / with_read_recovery_levels: bool,
        /// Endurance groups.
        [4:4] endurance_groups / with_endurance_groups: bool,
        /// Predictable latency mode.
        [5:5] predictable_latency / with_predictable_latency: bool,
        /// Traffic based keep alive (TBKAS): any command restarts the timer.
        [6:6] tbkas / with_tbkas: bool,
        /// Namespace granularities.
        [7:7] namespace_granularity / with_namespace_granularity: bool,
        /// Submission queue associations.
        [8:8] sq_associations / with_sq_associations: bool,
        /// UUID list.
        [9:9] uuid_list / with_uuid_list: bool,
        /// Multiple domains.
        [10:10] multi_domain / with_multi_domain: bool,
        /// Fixed capacity management.
        [11:11] fixed_capacity / with_fixed_capacity: bool,
        /// Variable capacity management.
        [12:12] variable_capacity / with_variable_capacity: bool,
        /// Delete endurance group.
        [13:13] delete_endurance_group / with_delete_endurance_group: bool,
        /// Delete NVM set.
        [14:14] delete_nvm_set / with_delete_nvm_set: bool,
        /// Extended LBA formats (ELBAS).
        [15:15] elbas / with_elbas: bool,
        /// Reservations need a host identifier (RHII).
        [18:18] rhii / with_rhii: bool,
        /// Flexible data placement (FDPS).
        [19:19] fdps / with_fdps: bool,
    }
}

bits! {
    /// Firmware updates (FRMW).
    pub struct FirmwareUpdates(u8: u8) {
        /// Slot 1 is read only.
        [0:0] slot_1_read_only / with_slot_1_read_only: bool,
        /// Number of slots, 1 to 7.
        [3:1] slots / with_slots: u8,
        /// Activation without a reset.
        [4:4] without_reset / with_without_reset: bool,
        /// Overlapping updates are noticed (SMUD).
        [5:5] smud / with_smud: bool,
    }
}

bits! {
    /// Log page attributes (LPA).
    pub struct LogPageAttributes(u8: u8) {
        /// A SMART log for each namespace.
        [0:0] smart_per_namespace / with_smart_per_namespace: bool,
        /// The Commands Supported and Effects log.
        [1:1] command_effects / with_command_effects: bool,
        /// Extended data: offset and 32-bit length of Get Log Page.
        [2:2] extended / with_extended: bool,
        /// Telemetry.
        [3:3] telemetry / with_telemetry: bool,
        /// Persistent event log.
        [4:4] persistent_events / with_persistent_events: bool,
        /// The logs 0h, 12h and 13h, which say what is supported.
        [5:5] supported_logs / with_supported_logs: bool,
        /// Telemetry data area 4.
        [6:6] telemetry_area_4 / with_telemetry_area_4: bool,
    }
}

bits! {
    /// Fused operation support (FUSES).
    pub struct FusedOperations(U16: u16) {
        /// Compare and Write.
        [0:0] compare_and_write / with_compare_and_write: bool,
    }
}

bits! {
    /// Format NVM attributes (FNA).
    pub struct FormatAttributes(u8: u8) {
        /// A format applies to all namespaces.
        [0:0] format_all / with_format_all: bool,
        /// A secure erase applies to all namespaces.
        [1:1] erase_all / with_erase_all: bool,
        /// Cryptographic erase is supported.
        [2:2] cryptographic / with_cryptographic: bool,
        /// Namespace FFFFFFFFh is not supported.
        [3:3] no_broadcast / with_no_broadcast: bool,
    }
}

bits! {
    /// Fabrics controller attributes (FCATT).
    pub struct FabricsAttributes(u8: u8) {
        /// Static controller model, rather than dynamic.
        [0:0] static_model / with_static_model: bool,
    }
}

bits! {
    /// Optional fabrics commands support (OFCS).
    pub struct OptionalFabrics(U16: u16) {
        /// Disconnect.
        [0:0] disconnect / with_disconnect: bool,
    }
}
