//! Fabrics commands as plain structs, to and from their entries.

use super::{ConnectAttributes, FabricsDword1, FabricsType};
use crate::Status;
use crate::command::{OutOfRange, expect_opcode};
use crate::property::Property;
use crate::queue::{AdminOpcode, SubmissionEntry};
use zerocopy::little_endian::U32;

bits! {
    /// Dword 10 of Connect.
    struct ConnectDword10(U32: u32) {
        /// Record format (RECFMT).
        [15:0] recfmt / with_recfmt: u16,
        /// Queue identifier (QID).
        [31:16] qid / with_qid: u16,
    }
}

bits! {
    /// Dword 11 of Connect.
    struct ConnectDword11(U32: u32) {
        /// Submission queue size (SQSIZE), zero based.
        [15:0] sqsize_z / with_sqsize_z: u16,
        /// Connect attributes (CATTR).
        [23:16] cattr / with_cattr: u8,
    }
}

bits! {
    /// Dword 10 of Property Get and Property Set.
    struct PropertyDword10(U32: u32) {
        /// Size of the property (ATTRIB bits 2:0): 0 is 4 bytes, 1 is 8 bytes.
        [2:0] size / with_size: u8,
    }
}

bits! {
    /// Dword 10 of Authentication Send and Authentication Receive.
    struct AuthenticationDword10(U32: u32) {
        /// Security protocol specific field 0 (SPSP0).
        [15:8] spsp0 / with_spsp0: u8,
        /// Security protocol specific field 1 (SPSP1).
        [23:16] spsp1 / with_spsp1: u8,
        /// Security protocol (SECP).
        [31:24] secp / with_secp: u8,
    }
}

bits! {
    /// Dword 10 of Disconnect.
    struct DisconnectDword10(U32: u32) {
        /// Record format (RECFMT).
        [15:0] recfmt / with_recfmt: u16,
    }
}

/// An entry of a fabrics command with nothing but its type.
fn entry(fctype: FabricsType) -> SubmissionEntry {
    let dword1 = FabricsDword1::default().with_fctype(fctype);
    SubmissionEntry::new(AdminOpcode::FABRICS.0).with_nsid(dword1.bits())
}

/// The type of a fabrics command.
fn fctype(entry: &SubmissionEntry) -> Result<FabricsType, Status> {
    expect_opcode(entry, AdminOpcode::FABRICS.0)?;
    Ok(FabricsDword1::from_bits(entry.nsid.get()).fctype())
}

/// [`Status::INVALID_OPCODE`] unless the entry is a fabrics command of type
/// `expected`.
fn expect_type(entry: &SubmissionEntry, expected: FabricsType) -> Result<(), Status> {
    if fctype(entry)? == expected {
        return Ok(());
    }
    Err(Status::INVALID_OPCODE)
}

/// Connect: make the connection that carries it a queue of a controller. Its
/// data is a [`ConnectData`](super::ConnectData).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// Record format (RECFMT): 0.
    pub recfmt: u16,
    /// Queue identifier: 0 is the admin queue.
    pub qid: u16,
    /// Submission queue size in entries, 1 to 65536. Controllers refuse 1.
    pub sqsize: u32,
    /// Connect attributes.
    pub cattr: ConnectAttributes,
    /// Keep alive timeout in milliseconds; 0: none. Admin queue only.
    pub kato: u32,
}

impl Connect {
    /// Queue `qid` with `sqsize` entries, without keep alive.
    #[must_use]
    pub fn new(qid: u16, sqsize: u32) -> Self {
        Self {
            qid,
            sqsize,
            ..Self::default()
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `sqsize` is not one of 1 to 65536.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let sqsize = OutOfRange::check("sqsize", self.sqsize.into(), 1, 1 << 16)?;
        let dword10 = ConnectDword10::default()
            .with_recfmt(self.recfmt)
            .with_qid(self.qid);
        let dword11 = ConnectDword11::default()
            .with_sqsize_z((sqsize - 1) as u16)
            .with_cattr(self.cattr.bits());
        Ok(SubmissionEntry {
            cdw10: dword10.bits().into(),
            cdw11: dword11.bits().into(),
            cdw12: self.kato.into(),
            ..entry(FabricsType::CONNECT)
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::CONNECT)?;
        let dword10 = ConnectDword10::from_bits(entry.cdw10.get());
        let dword11 = ConnectDword11::from_bits(entry.cdw11.get());
        Ok(Self {
            recfmt: dword10.recfmt(),
            qid: dword10.qid(),
            sqsize: u32::from(dword11.sqsize_z()) + 1,
            cattr: ConnectAttributes::from_bits(dword11.cattr()),
            kato: entry.cdw12.get(),
        })
    }
}

/// Property Get: the completion carries the value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PropertyGet {
    /// Which property (OFST).
    pub ofst: Property,
    /// Size code (ATTRIB bits 2:0), 0 to 7: 0 is 4 bytes, 1 is 8 bytes.
    pub size: u8,
}

impl PropertyGet {
    /// Reads property `ofst` with the size that it has.
    #[must_use]
    pub fn new(ofst: Property) -> Self {
        Self {
            ofst,
            size: size_code(ofst),
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `size` exceeds 7.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        Ok(SubmissionEntry {
            cdw10: property_dword10(self.size)?,
            cdw11: self.ofst.0.into(),
            ..entry(FabricsType::PROPERTY_GET)
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::PROPERTY_GET)?;
        Ok(Self {
            ofst: Property(entry.cdw11.get()),
            size: PropertyDword10::from_bits(entry.cdw10.get()).size(),
        })
    }
}

/// Property Set.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PropertySet {
    /// Which property (OFST).
    pub ofst: Property,
    /// Size code (ATTRIB bits 2:0), 0 to 7: 0 is 4 bytes, 1 is 8 bytes.
    pub size: u8,
    /// The value; of 4 bytes, the low half.
    pub value: u64,
}

impl PropertySet {
    /// Writes `value` to property `ofst` with the size that it has.
    #[must_use]
    pub fn new(ofst: Property, value: u64) -> Self {
        Self {
            ofst,
            size: size_code(ofst),
            value,
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if `size` exceeds 7.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        let [low, high]: [U32; 2] = zerocopy::transmute!(self.value.to_le_bytes());
        Ok(SubmissionEntry {
            cdw10: property_dword10(self.size)?,
            cdw11: self.ofst.0.into(),
            cdw12: low,
            cdw13: high,
            ..entry(FabricsType::PROPERTY_SET)
        })
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::PROPERTY_SET)?;
        let value = [entry.cdw12, entry.cdw13];
        Ok(Self {
            ofst: Property(entry.cdw11.get()),
            size: PropertyDword10::from_bits(entry.cdw10.get()).size(),
            value: u64::from_le_bytes(zerocopy::transmute!(value)),
        })
    }
}

/// The size code of a property; 0 if it has no name.
fn size_code(property: Property) -> u8 {
    u8::from(property.bytes() == Some(8))
}

fn property_dword10(size: u8) -> Result<U32, OutOfRange> {
    OutOfRange::check("size", size.into(), 0, 7)?;
    Ok(PropertyDword10::default().with_size(size).bits().into())
}

/// What an authentication command is about: the security protocol (SECP) and
/// what is specific to it (SPSP0, SPSP1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SecurityProtocol {
    /// Security protocol (SECP).
    pub secp: u8,
    /// Security protocol specific field 0.
    pub spsp0: u8,
    /// Security protocol specific field 1.
    pub spsp1: u8,
}

impl SecurityProtocol {
    /// NVMe in-band authentication: the only one that fabrics have.
    pub const NVME: Self = Self {
        secp: 0xe9,
        spsp0: 0x01,
        spsp1: 0x01,
    };

    fn dword10(self) -> U32 {
        AuthenticationDword10::default()
            .with_secp(self.secp)
            .with_spsp0(self.spsp0)
            .with_spsp1(self.spsp1)
            .bits()
            .into()
    }

    fn of(entry: &SubmissionEntry) -> Self {
        let dword10 = AuthenticationDword10::from_bits(entry.cdw10.get());
        Self {
            secp: dword10.secp(),
            spsp0: dword10.spsp0(),
            spsp1: dword10.spsp1(),
        }
    }
}

/// Authentication Send: a message to the controller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationSend {
    /// The protocol.
    pub protocol: SecurityProtocol,
    /// Transfer length in bytes (TL).
    pub tl: u32,
}

impl AuthenticationSend {
    /// A message of `tl` bytes.
    #[must_use]
    pub fn new(tl: u32) -> Self {
        Self {
            protocol: SecurityProtocol::NVME,
            tl,
        }
    }

    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        SubmissionEntry {
            cdw10: self.protocol.dword10(),
            cdw11: self.tl.into(),
            ..entry(FabricsType::AUTHENTICATION_SEND)
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::AUTHENTICATION_SEND)?;
        Ok(Self {
            protocol: SecurityProtocol::of(entry),
            tl: entry.cdw11.get(),
        })
    }
}

/// Authentication Receive: a message from the controller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AuthenticationReceive {
    /// The protocol.
    pub protocol: SecurityProtocol,
    /// Allocation length in bytes (AL): the size of the buffer.
    pub al: u32,
}

impl AuthenticationReceive {
    /// A message of up to `al` bytes.
    #[must_use]
    pub fn new(al: u32) -> Self {
        Self {
            protocol: SecurityProtocol::NVME,
            al,
        }
    }

    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        SubmissionEntry {
            cdw10: self.protocol.dword10(),
            cdw11: self.al.into(),
            ..entry(FabricsType::AUTHENTICATION_RECEIVE)
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::AUTHENTICATION_RECEIVE)?;
        Ok(Self {
            protocol: SecurityProtocol::of(entry),
            al: entry.cdw11.get(),
        })
    }
}

/// Disconnect: delete the I/O queue that carries it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// Record format (RECFMT): 0.
    pub recfmt: u16,
}

impl Disconnect {
    /// The entry of the command.
    #[must_use]
    pub fn to_entry(&self) -> SubmissionEntry {
        let dword10 = DisconnectDword10::default().with_recfmt(self.recfmt);
        SubmissionEntry {
            cdw10: dword10.bits().into(),
            ..entry(FabricsType::DISCONNECT)
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is another one.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        expect_type(entry, FabricsType::DISCONNECT)?;
        Ok(Self {
            recfmt: DisconnectDword10::from_bits(entry.cdw10.get()).recfmt(),
        })
    }
}

/// A fabrics command, parsed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FabricsCommand {
    /// Make a queue.
    Connect(Connect),
    /// Read a property.
    PropertyGet(PropertyGet),
    /// Write a property.
    PropertySet(PropertySet),
    /// Authentication, to the controller.
    AuthenticationSend(AuthenticationSend),
    /// Authentication, from the controller.
    AuthenticationReceive(AuthenticationReceive),
    /// Delete an I/O queue.
    Disconnect(Disconnect),
}

impl FabricsCommand {
    /// The command of an entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is not a fabrics command, or its type
    /// has no name.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        match fctype(entry)? {
            FabricsType::CONNECT => Connect::parse(entry).map(Self::Connect),
            FabricsType::PROPERTY_GET => PropertyGet::parse(entry).map(Self::PropertyGet),
            FabricsType::PROPERTY_SET => PropertySet::parse(entry).map(Self::PropertySet),
            FabricsType::AUTHENTICATION_SEND => {
                AuthenticationSend::parse(entry).map(Self::AuthenticationSend)
            }
            FabricsType::AUTHENTICATION_RECEIVE => {
                AuthenticationReceive::parse(entry).map(Self::AuthenticationReceive)
            }
            FabricsType::DISCONNECT => Disconnect::parse(entry).map(Self::Disconnect),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// The entry of the command.
    ///
    /// # Errors
    /// [`OutOfRange`] if a value has no place in it.
    pub fn to_entry(&self) -> Result<SubmissionEntry, OutOfRange> {
        match self {
            Self::Connect(command) => command.to_entry(),
            Self::PropertyGet(command) => command.to_entry(),
            Self::PropertySet(command) => command.to_entry(),
            Self::AuthenticationSend(command) => Ok(command.to_entry()),
            Self::AuthenticationReceive(command) => Ok(command.to_entry()),
            Self::Disconnect(command) => Ok(command.to_entry()),
        }
    }
}
