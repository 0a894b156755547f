//! The Discovery log (base specification 2.0, section 5.16.1.23): which
//! subsystems there are, and where.

use crate::Reserved;
use crate::identify::{Ascii, Nqn};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

crate::open_enum! {
    /// Transport Type (TRTYPE).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum TransportType: u8 {
        /// RDMA.
        RDMA = 0x01,
        /// Fibre Channel.
        FIBRE_CHANNEL = 0x02,
        /// TCP.
        TCP = 0x03,
        /// Inside a host.
        INTRA_HOST = 0xfe,
    }
}

const _: () = assert!(size_of::<TransportType>() == 1);

crate::open_enum! {
    /// Address Family (ADRFAM).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum AddressFamily: u8 {
        /// IPv4.
        IPV4 = 0x01,
        /// IPv6.
        IPV6 = 0x02,
        /// InfiniBand.
        INFINIBAND = 0x03,
        /// Fibre Channel.
        FIBRE_CHANNEL = 0x04,
        /// Inside a host.
        INTRA_HOST = 0xfe,
    }
}

const _: () = assert!(size_of::<AddressFamily>() == 1);

crate::open_enum! {
    /// Subsystem Type (SUBTYPE).
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum SubsystemType: u8 {
        /// Another discovery subsystem: a referral.
        REFERRAL = 0x01,
        /// A subsystem with namespaces.
        NVM = 0x02,
        /// The discovery subsystem that returned the log.
        CURRENT_DISCOVERY = 0x03,
    }
}

const _: () = assert!(size_of::<SubsystemType>() == 1);

bits! {
    /// Transport Requirements (TREQ).
    pub struct TransportRequirements(u8: u8) {
        /// Secure channel: 0 not said, 1 required, 2 not required.
        [1:0] secure_channel / with_secure_channel: u8,
        /// Submission queue flow control can be disabled.
        [2:2] disable_sq_flow_control / with_disable_sq_flow_control: bool,
    }
}

bits! {
    /// Entry Flags (EFLAGS).
    pub struct DiscoveryEntryFlags(U16: u16) {
        /// Duplicate returned information (DUPRETINFO): other addresses of this
        /// entry return the same log.
        [0:0] dupretinfo / with_dupretinfo: bool,
        /// Explicit persistent connection support (EPCSD) of the discovery
        /// subsystem.
        [1:1] epcsd / with_epcsd: bool,
    }
}

crate::open_enum! {
    /// Security Type (SECTYPE) of a TCP address.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum TcpSecurity: u8 {
        /// None.
        NONE = 0x00,
        /// TLS 1.2.
        TLS_1_2 = 0x01,
        /// TLS 1.3.
        TLS_1_3 = 0x02,
    }
}

const _: () = assert!(size_of::<TcpSecurity>() == 1);

/// Transport Specific Address Subtype (TSAS) of a TCP address.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct TcpAddressSpecific {
    /// Security type.
    pub sectype: TcpSecurity,
    /// Zero.
    pub reserved_1: Reserved<255>,
}

const _: () = assert!(size_of::<TcpAddressSpecific>() == 256);

/// What the Discovery log starts with. [`DiscoveryEntry`]s follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// Generation counter: another one if the log changed. A host that reads in
    /// parts reads it again at the end.
    pub genctr: U64,
    /// Number of records: entries that follow.
    pub numrec: U64,
    /// Record format: 0.
    pub recfmt: U16,
    /// Zero.
    pub reserved_18: Reserved<1006>,
}

const _: () = assert!(size_of::<DiscoveryHeader>() == 1024);

/// An entry of the Discovery log: one way to a subsystem. Its transport is TCP
/// where `tsas` is of use.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// Transport type.
    pub trtype: TransportType,
    /// Address family.
    pub adrfam: AddressFamily,
    /// Subsystem type.
    pub subtype: SubsystemType,
    /// Transport requirements.
    pub treq: TransportRequirements,
    /// Port identifier.
    pub portid: U16,
    /// Controller identifier: FFFFh any (dynamic model), FFFEh any (static
    /// model).
    pub cntlid: U16,
    /// Admin maximum submission queue size in entries.
    pub asqsz: U16,
    /// Entry flags.
    pub eflags: DiscoveryEntryFlags,
    /// Zero.
    pub reserved_12: Reserved<20>,
    /// Transport service identifier: the port, in decimal.
    pub trsvcid: Ascii<32>,
    /// Zero.
    pub reserved_64: Reserved<192>,
    /// NVM subsystem NVMe qualified name.
    pub subnqn: Nqn,
    /// Transport address: of TCP the IP address as text.
    pub traddr: Ascii<256>,
    /// Transport specific address subtype.
    pub tsas: TcpAddressSpecific,
}

const _: () = assert!(size_of::<DiscoveryEntry>() == 1024);
