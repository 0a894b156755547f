//! The controller structure (CNS 01h).

use super::attributes::{
    AsyncEvents, ControllerAttributes, ControllerType, EntrySizes, FabricsAttributes,
    FirmwareUpdates, FormatAttributes, FusedOperations, LogPageAttributes, MultiPath, NvmOptions,
    OptionalAdmin, OptionalFabrics, SglSupport, Version, VolatileWriteCache,
};
use super::{Ascii, Nqn};
use crate::Reserved;
use zerocopy::little_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
    pub cmic: MultiPath,
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
    pub ctratt: ControllerAttributes,
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
    pub frmw: FirmwareUpdates,
    /// Log page attributes.
    pub lpa: LogPageAttributes,
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
    /// Fused operation support.
    pub fuses: FusedOperations,
    /// Format NVM attributes.
    pub fna: FormatAttributes,
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
    pub fcatt: FabricsAttributes,
    /// Maximum SGL data block descriptors in a capsule; 0: no limit (fabrics).
    pub msdbd: u8,
    /// Optional fabric commands support.
    pub ofcs: OptionalFabrics,
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
