//! NVMe over TCP: the protocol data units (PDUs) of a connection.
//!
//! Source: NVMe/TCP transport specification 1.0, section 3.6 (PDU definitions)
//! and section 3.3 (data transfer).
//!
//! A PDU is a header of HLEN bytes, a header digest if the connection has them,
//! padding up to PDO, data, and a data digest. The structs are the headers.
//! Each starts with a [`CommonHeader`], which says where the rest lies.
//!
//! Digests are CRC32C of what they cover, low byte first; this crate does not
//! calculate them.

mod pdu;

pub use pdu::{
    C2hData, CapsuleCmd, CapsuleResp, Digests, FatalErrorStatus, FatalErrorStatusField, H2cData,
    IcReq, IcResp, R2t, TermReq,
};

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// TCP port of subsystems that do I/O, as assigned.
pub const IO_PORT: u16 = 4420;

/// TCP port of discovery subsystems, as assigned.
pub const DISCOVERY_PORT: u16 = 8009;

/// The PDU format version (PFV) of this specification.
pub const PFV: u16 = 0;

/// Bytes of a header digest (HDGST), and of a data digest (DDGST).
pub const DIGEST_LEN: u32 = 4;

/// The largest HPDA and CPDA, zero based in dwords: data is aligned to 128
/// bytes at most.
pub const MAX_PDA_Z: u8 = 31;

/// The least MAXH2CDATA that a controller should ask for, in bytes. Linux hosts
/// refuse less.
pub const MIN_MAXH2CDATA: u32 = 4096;

/// The most bytes of data that a command on the admin queue, and a fabrics
/// command on any queue, may carry in its capsule.
pub const MAX_ADMIN_IN_CAPSULE: u32 = 8192;

crate::open_enum! {
    /// PDU type. Odd ones travel to the host.
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
    pub enum PduType: u8 {
        /// Initialize connection request, the first PDU: [`IcReq`].
        IC_REQ = 0x00 => "ICReq",
        /// Initialize connection response: [`IcResp`].
        IC_RESP = 0x01 => "ICResp",
        /// The host found a fatal error: [`TermReq`].
        H2C_TERM_REQ = 0x02 => "H2CTermReq",
        /// The controller found a fatal error: [`TermReq`].
        C2H_TERM_REQ = 0x03 => "C2HTermReq",
        /// Command capsule: [`CapsuleCmd`].
        CAPSULE_CMD = 0x04 => "CapsuleCmd",
        /// Response capsule: [`CapsuleResp`].
        CAPSULE_RESP = 0x05 => "CapsuleResp",
        /// Data to the controller: [`H2cData`].
        H2C_DATA = 0x06 => "H2CData",
        /// Data to the host: [`C2hData`].
        C2H_DATA = 0x07 => "C2HData",
        /// The controller is ready for data: [`R2t`].
        R2T = 0x09 => "R2T",
    }
}

const _: () = assert!(size_of::<PduType>() == 1);

impl PduType {
    /// The only header length (HLEN) that PDUs of this type have, in bytes;
    /// `None` if there is no such type.
    #[must_use]
    pub const fn hlen(self) -> Option<u8> {
        match self {
            Self::IC_REQ | Self::IC_RESP => Some(size_of::<IcReq>() as u8),
            Self::H2C_TERM_REQ | Self::C2H_TERM_REQ => Some(size_of::<TermReq>() as u8),
            Self::CAPSULE_CMD => Some(size_of::<CapsuleCmd>() as u8),
            Self::CAPSULE_RESP => Some(size_of::<CapsuleResp>() as u8),
            Self::H2C_DATA => Some(size_of::<H2cData>() as u8),
            Self::C2H_DATA => Some(size_of::<C2hData>() as u8),
            Self::R2T => Some(size_of::<R2t>() as u8),
            _ => None,
        }
    }

    /// True if PDUs of this type have a header digest where the connection has
    /// header digests: all but those that open a connection and end it.
    #[must_use]
    pub const fn has_header_digest(self) -> bool {
        matches!(
            self,
            Self::CAPSULE_CMD | Self::CAPSULE_RESP | Self::H2C_DATA | Self::C2H_DATA | Self::R2T
        )
    }

    /// True if PDUs of this type may have data at PDO. What follows the header
    /// of a [`TermReq`] is not data in this sense: it has neither padding nor a
    /// digest.
    #[must_use]
    pub const fn may_have_data(self) -> bool {
        matches!(self, Self::CAPSULE_CMD | Self::H2C_DATA | Self::C2H_DATA)
    }

    /// True if controllers send PDUs of this type, false if hosts do.
    #[must_use]
    pub const fn is_to_host(self) -> bool {
        self.0 & 1 != 0
    }
}

bits! {
    /// Flags (FLAGS) of the common header.
    pub struct PduFlags(u8: u8) {
        /// A header digest follows the header (HDGSTF).
        [0:0] hdgstf / with_hdgstf: bool,
        /// A data digest follows the data (DDGSTF).
        [1:1] ddgstf / with_ddgstf: bool,
        /// The last data PDU of a request to transfer, or of a command that
        /// reads (LAST_PDU). [`H2cData`] and [`C2hData`] only.
        [2:2] last_pdu / with_last_pdu: bool,
        /// The command succeeded and gets no response capsule (SUCCESS).
        /// [`C2hData`] only, with LAST_PDU.
        [3:3] success / with_success: bool,
    }
}

/// The common header (CH), with which every PDU starts.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CommonHeader {
    /// PDU type.
    pub pdu_type: PduType,
    /// Flags.
    pub flags: PduFlags,
    /// Header length in bytes, without digest.
    pub hlen: u8,
    /// PDU data offset: from the first byte of the PDU to its data; 0 if it has
    /// none.
    pub pdo: u8,
    /// PDU length in bytes: header, digests, padding and data.
    pub plen: U32,
}

const _: () = assert!(size_of::<CommonHeader>() == 8);

impl CommonHeader {
    /// The header of a PDU that has no data, or `data_len` bytes of them at PDO.
    ///
    /// `None` if there is no such type, if it has no data, or if the PDU would
    /// exceed 2^32 - 1 bytes.
    #[must_use]
    pub fn new(pdu_type: PduType, framing: Framing, data_len: u32) -> Option<Self> {
        let header = Self::bare(pdu_type, pdu_type.hlen()?).digested(framing);
        match data_len {
            0 => Some(header),
            _ if pdu_type.may_have_data() => header.with_data(framing, data_len),
            _ => None,
        }
    }

    /// A header with nothing behind it.
    fn bare(pdu_type: PduType, hlen: u8) -> Self {
        Self {
            pdu_type,
            flags: PduFlags::default(),
            hlen,
            pdo: 0,
            plen: u32::from(hlen).into(),
        }
    }

    /// The same with a header digest, if connection and type have it.
    fn digested(self, framing: Framing) -> Self {
        let hdgstf = framing.hdgst && self.pdu_type.has_header_digest();
        Self {
            flags: self.flags.with_hdgstf(hdgstf),
            plen: (u32::from(self.hlen) + digest_len(hdgstf)).into(),
            ..self
        }
    }

    /// The same with padding, `data_len` bytes of data and their digest.
    fn with_data(self, framing: Framing, data_len: u32) -> Option<Self> {
        let pdo = self.plen.get().next_multiple_of(framing.alignment());
        let plen = pdo
            .checked_add(data_len)?
            .checked_add(digest_len(framing.ddgst))?;
        Some(Self {
            flags: self.flags.with_ddgstf(framing.ddgst),
            pdo: u8::try_from(pdo).ok()?,
            plen: plen.into(),
            ..self
        })
    }

    /// Bytes of data at PDO, by what the header says: 0 if PDO is; `None` if
    /// its lengths contradict each other. Whether they are right for the type
    /// and the connection is not looked at.
    #[must_use]
    pub fn data_len(&self) -> Option<u32> {
        let header = u32::from(self.hlen) + digest_len(self.flags.hdgstf());
        let rest = match u32::from(self.pdo) {
            0 => return (self.plen.get() == header).then_some(0),
            pdo if pdo < header => return None,
            pdo => self.plen.get().checked_sub(pdo)?,
        };
        rest.checked_sub(digest_len(self.flags.ddgstf()))
    }
}

/// How the PDUs of one direction of a connection are laid out: what the
/// exchange of [`IcReq`] and [`IcResp`] agreed on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Headers have digests.
    pub hdgst: bool,
    /// Data has digests.
    pub ddgst: bool,
    /// Alignment of data from the start of the PDU, zero based in dwords: HPDA
    /// on the way to the host, CPDA on the way to the controller.
    pub pda_z: u8,
}

impl Framing {
    /// Alignment of data from the start of the PDU in bytes.
    #[must_use]
    pub fn alignment(self) -> u32 {
        (u32::from(self.pda_z) + 1) * 4
    }
}

/// Bytes of a digest that may be there.
fn digest_len(is_there: bool) -> u32 {
    if is_there { DIGEST_LEN } else { 0 }
}
