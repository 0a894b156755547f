//! What goes with a Connect command: its attributes, its data, its response.

use crate::Reserved;
use crate::identify::Nqn;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Connect Attributes (CATTR).
    pub struct ConnectAttributes(u8: u8) {
        /// Priority class of an I/O queue: 0 urgent, 1 high, 2 medium, 3 low.
        [1:0] priority / with_priority: u8,
        /// Disable submission queue flow control: SQHD is FFFFh if the
        /// controller agrees.
        [2:2] disable_sq_flow_control / with_disable_sq_flow_control: bool,
        /// The host can delete I/O queues one by one, by Disconnect.
        [3:3] individual_queue_deletion / with_individual_queue_deletion: bool,
    }
}

/// The data of a Connect command.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ConnectData {
    /// Host identifier: the same on all queues of an association.
    pub hostid: [u8; 16],
    /// Controller identifier. On the admin queue
    /// [`CNTLID_DYNAMIC`](super::CNTLID_DYNAMIC) if the host takes any; on an I/O
    /// queue the one that the admin queue got.
    pub cntlid: U16,
    /// Zero.
    pub reserved_18: Reserved<238>,
    /// NVM subsystem NVMe qualified name: whom the host wants.
    pub subnqn: Nqn,
    /// Host NVMe qualified name: who the host is.
    pub hostnqn: Nqn,
    /// Zero.
    pub reserved_768: Reserved<256>,
}

const _: () = assert!(size_of::<ConnectData>() == 1024);

bits! {
    /// Authentication and Security Requirements (AUTHREQ) of a queue.
    pub struct AuthenticationRequirements(U16: u16) {
        /// Authentication transaction required (ATR).
        [1:1] atr / with_atr: bool,
        /// Authentication and secure channel required (ASCR).
        [2:2] ascr / with_ascr: bool,
    }
}

/// Dword 0 of the completion of a Connect command that succeeded.
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
pub struct ConnectResponse {
    /// Controller identifier: which controller the queue is of.
    pub cntlid: U16,
    /// What the host must do before it may send other commands.
    pub authreq: AuthenticationRequirements,
}

const _: () = assert!(size_of::<ConnectResponse>() == 4);

impl ConnectResponse {
    /// The response in dword 0 of a completion.
    #[must_use]
    pub fn from_dword0(dw0: U32) -> Self {
        zerocopy::transmute!(dw0)
    }

    /// Dword 0 of the completion.
    #[must_use]
    pub fn to_dword0(self) -> U32 {
        zerocopy::transmute!(self)
    }
}

bits! {
    /// Dword 0 of the completion of a Connect command that failed with
    /// [`CONNECT_INVALID_PARAMETERS`](crate::status::FabricsStatus::CONNECT_INVALID_PARAMETERS):
    /// where the invalid parameter lies.
    pub struct InvalidParameter(U32: u32) {
        /// Invalid parameter offset (IPO) in bytes.
        [15:0] ipo / with_ipo: u16,
        /// Invalid attributes (IATTR) bit 0: the offset is one of the data and
        /// not of the command.
        [16:16] in_data / with_in_data: bool,
    }
}
