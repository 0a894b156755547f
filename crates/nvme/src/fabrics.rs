//! NVMe over fabrics: how a host connects to a controller, reads and writes its
//! properties, and leaves.
//!
//! Source: NVMe base specification 2.0, section 6 (Fabrics Command Set) and
//! section 4.5 (NVMe qualified names).
//!
//! A fabrics command has opcode [`FABRICS`](crate::queue::AdminOpcode::FABRICS)
//! on any queue; byte 4, where others have the first byte of the namespace, is
//! its type.

mod command;
mod connect;

pub use command::{
    AuthenticationReceive, AuthenticationSend, Connect, Disconnect, FabricsCommand, PropertyGet,
    PropertySet, SecurityProtocol,
};
pub use connect::{
    AuthenticationRequirements, ConnectAttributes, ConnectData, ConnectResponse, InvalidParameter,
};

use zerocopy::little_endian::U32;

/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// What the names that are made of a UUID start with; its text follows.
pub const UUID_NQN_PREFIX: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// The controller identifier by which a host asks for any controller of the
/// dynamic model.
pub const CNTLID_DYNAMIC: u16 = 0xffff;

/// The controller identifier by which a host asks for any controller of the
/// static model.
pub const CNTLID_STATIC_ANY: u16 = 0xfffe;

crate::open_enum! {
    /// Fabrics Command Type (FCTYPE).
    pub enum FabricsType: u8 {
        /// Write a property: [`PropertySet`].
        PROPERTY_SET = 0x00,
        /// Make a queue: [`Connect`].
        CONNECT = 0x01,
        /// Read a property: [`PropertyGet`].
        PROPERTY_GET = 0x04,
        /// Authentication, to the controller: [`AuthenticationSend`].
        AUTHENTICATION_SEND = 0x05,
        /// Authentication, from the controller: [`AuthenticationReceive`].
        AUTHENTICATION_RECEIVE = 0x06,
        /// Delete a queue: [`Disconnect`].
        DISCONNECT = 0x08,
    }
}

enum_fields!(FabricsType: u8);

bits! {
    /// Bytes 4 to 7 of a fabrics command, where others have their namespace.
    pub(crate) struct FabricsDword1(U32: u32) {
        /// Fabrics command type (FCTYPE).
        [7:0] fctype / with_fctype: FabricsType,
    }
}
