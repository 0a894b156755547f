//! The controller structure (CNS 01h).

use super::{Ascii, Nqn};
use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U128};
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

/// A power state descriptor (PSD).
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
pub struct PowerState {
    /// Maximum power, in units of 0.01 W, or 0.0001 W if bit 0 of `flags` is set.
    pub mp: U16,
    /// Zero.
    pub reserved_2: Reserved<1>,
    /// Bit 0: scale of `mp` (MXPS); bit 1: non-operational state (NOPS).
    pub flags: u8,
    /// Entry latency in microseconds.
    pub enlat: U32,
    /// Exit latency in microseconds.
    pub exlat: U32,
    /// Relative read throughput: less is more.
    pub rrt: u8,
    /// Relative read latency.
    pub rrl: u8,
    /// Relative write throughput.
    pub rwt: u8,
    /// Relative write latency.
    pub rwl: u8,
    /// Idle power, in the unit of `ips`.
    pub idlp: U16,
    /// Idle power scale, in bits 7:6.
    pub ips: u8,
    /// Zero.
    pub reserved_19: Reserved<1>,
    /// Active power, in the unit of `apws`.
    pub actp: U16,
    /// Bits 2:0: workload that `actp` is for (APW); bits 7:6: its scale (APS).
    pub apws: u8,
    /// Zero.
    pub reserved_23: Reserved<9>,
}

const _: () = assert!(size_of::<PowerState>() == 32);

/// Identify Controller.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyController {
    /// PCI vendor identifier.
    pub vid: U16,
    /// PCI subsystem vendor identifier.
    pub ssvid: U16,
    /// Serial number.
    pub sn: Ascii<20>,
    /// Model number.
    pub mn: Ascii<40>,
    /// Firmware revision.
    pub fr: Ascii<8>,
    /// Recommended arbitration burst: 2 to the power of it in commands.
    pub rab: u8,
    /// IEEE OUI identifier, low byte first.
    pub ieee: [u8; 3],
    /// Multi-path I/O and namespace sharing capabilities.
    pub cmic: u8,
    /// Maximum data transfer size: 2 to the power of it times the smallest
    /// memory page (CAP.MPSMIN); 0: no limit.
    pub mdts: u8,
    /// Controller identifier.
    pub cntlid: U16,
    /// Version.
    pub ver: Version,
    /// RTD3 resume latency in microseconds.
    pub rtd3r: U32,
    /// RTD3 entry latency in microseconds.
    pub rtd3e: U32,
    /// Optional asynchronous events supported.
    pub oaes: AsyncEvents,
    /// Controller attributes.
    pub ctratt: U32,
    /// Read recovery levels supported, one bit each.
    pub rrls: U16,
    /// Zero.
    pub reserved_102: Reserved<9>,
    /// Controller type.
    pub cntrltype: ControllerType,
    /// FRU globally unique identifier.
    pub fguid: [u8; 16],
    /// Command retry delay time 1 in units of 100 ms.
    pub crdt1: U16,
    /// Command retry delay time 2 in units of 100 ms.
    pub crdt2: U16,
    /// Command retry delay time 3 in units of 100 ms.
    pub crdt3: U16,
    /// Zero.
    pub reserved_134: Reserved<119>,
    /// NVM subsystem report (NVMe-MI).
    pub nvmsr: u8,
    /// VPD write cycle information (NVMe-MI).
    pub vwci: u8,
    /// Management endpoint capabilities (NVMe-MI).
    pub mec: u8,
    /// Optional admin command support.
    pub oacs: OptionalAdmin,
    /// Abort command limit, zero based.
    pub acl_z: u8,
    /// Asynchronous event request limit, zero based.
    pub aerl_z: u8,
    /// Firmware updates.
    pub frmw: u8,
    /// Log page attributes.
    pub lpa: u8,
    /// Error log page entries, zero based.
    pub elpe_z: u8,
    /// Number of power states supported, zero based.
    pub npss_z: u8,
    /// Admin vendor specific command configuration.
    pub avscc: u8,
    /// Autonomous power state transition attributes.
    pub apsta: u8,
    /// Warning composite temperature threshold in kelvins.
    pub wctemp: U16,
    /// Critical composite temperature threshold in kelvins.
    pub cctemp: U16,
    /// Maximum time for firmware activation in units of 100 ms.
    pub mtfa: U16,
    /// Host memory buffer preferred size in units of 4 KiB.
    pub hmpre: U32,
    /// Host memory buffer minimum size in units of 4 KiB.
    pub hmmin: U32,
    /// Total NVM capacity in bytes.
    pub tnvmcap: U128,
    /// Unallocated NVM capacity in bytes.
    pub unvmcap: U128,
    /// Replay protected memory block support.
    pub rpmbs: U32,
    /// Extended device self-test time in minutes.
    pub edstt: U16,
    /// Device self-test options.
    pub dsto: u8,
    /// Firmware update granularity in units of 4 KiB.
    pub fwug: u8,
    /// Keep alive support: granularity of the timer in units of 100 ms; 0: none.
    pub kas: U16,
    /// Host controlled thermal management attributes.
    pub hctma: U16,
    /// Minimum thermal management temperature in kelvins.
    pub mntmt: U16,
    /// Maximum thermal management temperature in kelvins.
    pub mxtmt: U16,
    /// Sanitize capabilities.
    pub sanicap: U32,
    /// Host memory buffer minimum descriptor entry size in units of 4 KiB.
    pub hmminds: U32,
    /// Host memory maximum descriptors entries.
    pub hmmaxd: U16,
    /// NVM set identifier maximum.
    pub nsetidmax: U16,
    /// Endurance group identifier maximum.
    pub endgidmax: U16,
    /// ANA transition time in seconds.
    pub anatt: u8,
    /// Asymmetric namespace access capabilities.
    pub anacap: u8,
    /// ANA group identifier maximum.
    pub anagrpmax: U32,
    /// Number of ANA group identifiers.
    pub nanagrpid: U32,
    /// Persistent event log size in units of 64 KiB.
    pub pels: U32,
    /// Domain identifier.
    pub domainid: U16,
    /// Zero.
    pub reserved_358: Reserved<10>,
    /// Maximum endurance group capacity in bytes.
    pub megcap: U128,
    /// Zero.
    pub reserved_384: Reserved<128>,
    /// Submission queue entry size.
    pub sqes: EntrySizes,
    /// Completion queue entry size.
    pub cqes: EntrySizes,
    /// Maximum outstanding commands.
    pub maxcmd: U16,
    /// Number of namespaces: the largest valid NSID.
    pub nn: U32,
    /// Optional NVM command support.
    pub oncs: NvmOptions,
    /// Fused operation support. Bit 0: Compare and Write.
    pub fuses: U16,
    /// Format NVM attributes.
    pub fna: u8,
    /// Volatile write cache.
    pub vwc: VolatileWriteCache,
    /// Atomic write unit normal in blocks, zero based.
    pub awun_z: U16,
    /// Atomic write unit power fail in blocks, zero based.
    pub awupf_z: U16,
    /// I/O command set vendor specific command configuration.
    pub icsvscc: u8,
    /// Namespace write protection capabilities.
    pub nwpc: u8,
    /// Atomic compare and write unit in blocks, zero based.
    pub acwu_z: U16,
    /// Optional copy formats supported, one bit each.
    pub ocfs: U16,
    /// SGL support.
    pub sgls: SglSupport,
    /// Maximum number of allowed namespaces.
    pub mnan: U32,
    /// Maximum domain namespace attachments.
    pub maxdna: U128,
    /// Maximum I/O controller namespace attachments.
    pub maxcna: U32,
    /// Zero.
    pub reserved_564: Reserved<204>,
    /// NVM subsystem NVMe qualified name.
    pub subnqn: Nqn,
    /// Zero.
    pub reserved_1024: Reserved<768>,
    /// I/O queue command capsule supported size in units of 16 bytes (fabrics).
    pub ioccsz: U32,
    /// I/O queue response capsule supported size in units of 16 bytes (fabrics).
    pub iorcsz: U32,
    /// In capsule data offset in units of 16 bytes (fabrics).
    pub icdoff: U16,
    /// Fabrics controller attributes.
    pub fcatt: u8,
    /// Maximum SGL data block descriptors in a capsule; 0: no limit (fabrics).
    pub msdbd: u8,
    /// Optional fabric commands support.
    pub ofcs: U16,
    /// Discovery controller type.
    pub dctype: u8,
    /// Zero.
    pub reserved_1807: Reserved<241>,
    /// Power state descriptors.
    pub psd: [PowerState; 32],
    /// Vendor specific.
    pub vs: Reserved<1024>,
}

const _: () = assert!(size_of::<IdentifyController>() == 4096);
