//! The headers of the PDUs.

use super::{CommonHeader, Framing, PFV, PduType};
use crate::Reserved;
use crate::queue::{CompletionEntry, SubmissionEntry};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

bits! {
    /// Digests (DGST): wanted in a request, enabled in the response.
    pub struct Digests(u8: u8) {
        /// Header digests (HDGST_ENABLE).
        [0:0] hdgst / with_hdgst: bool,
        /// Data digests (DDGST_ENABLE).
        [1:1] ddgst / with_ddgst: bool,
    }
}

/// Initialize Connection Request (ICReq): the first PDU of a host.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IcReq {
    /// Common header.
    pub ch: CommonHeader,
    /// PDU format version: [`PFV`].
    pub pfv: U16,
    /// Host PDU data alignment, zero based in dwords: what C2HData PDUs must obey.
    /// At most [`MAX_PDA_Z`](super::MAX_PDA_Z).
    pub hpda_z: u8,
    /// Digests that the host wants.
    pub dgst: Digests,
    /// Maximum outstanding R2Ts of a command, zero based.
    pub maxr2t_z: U32,
    /// Zero.
    pub reserved_16: Reserved<112>,
}

const _: () = assert!(size_of::<IcReq>() == 128);

impl IcReq {
    /// A request with these fields.
    #[must_use]
    pub fn new(hpda_z: u8, dgst: Digests, maxr2t_z: u32) -> Self {
        Self {
            ch: CommonHeader::bare(PduType::IC_REQ, size_of::<Self>() as u8),
            pfv: PFV.into(),
            hpda_z,
            dgst,
            maxr2t_z: maxr2t_z.into(),
            reserved_16: Reserved::ZERO,
        }
    }
}

/// Initialize Connection Response (ICResp): the first PDU of a controller.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IcResp {
    /// Common header.
    pub ch: CommonHeader,
    /// PDU format version: [`PFV`].
    pub pfv: U16,
    /// Controller PDU data alignment, zero based in dwords: what CapsuleCmd and
    /// H2CData PDUs must obey. At most [`MAX_PDA_Z`](super::MAX_PDA_Z).
    pub cpda_z: u8,
    /// Digests that the connection has: of those that the host wants.
    pub dgst: Digests,
    /// Maximum data of an H2CData PDU in bytes: a multiple of 4, not below
    /// [`MIN_MAXH2CDATA`](super::MIN_MAXH2CDATA).
    pub maxh2cdata: U32,
    /// Zero.
    pub reserved_16: Reserved<112>,
}

const _: () = assert!(size_of::<IcResp>() == 128);

impl IcResp {
    /// A response with these fields.
    #[must_use]
    pub fn new(cpda_z: u8, dgst: Digests, maxh2cdata: u32) -> Self {
        Self {
            ch: CommonHeader::bare(PduType::IC_RESP, size_of::<Self>() as u8),
            pfv: PFV.into(),
            cpda_z,
            dgst,
            maxh2cdata: maxh2cdata.into(),
            reserved_16: Reserved::ZERO,
        }
    }
}

crate::open_enum! {
    /// Fatal Error Status (FES) of a [`TermReq`]. What the Fatal Error
    /// Information (FEI) says depends on it.
    pub enum FatalErrorStatus: u16 {
        /// A field of a PDU header is not valid. FEI: its offset in bytes.
        INVALID_PDU_HEADER_FIELD = 0x01 => "Invalid PDU Header Field",
        /// A PDU came at a time when it must not.
        PDU_SEQUENCE_ERROR = 0x02 => "PDU Sequence Error",
        /// A header digest does not match. FEI: the digest that was received.
        HEADER_DIGEST_ERROR = 0x03 => "Header Digest Error",
        /// Data outside what its command or its R2T allows.
        DATA_TRANSFER_OUT_OF_RANGE = 0x04 => "Data Transfer Out of Range",
        /// To the controller: more R2Ts than MAXR2T allows (R2T Limit Exceeded).
        /// To the host: more data than MAXH2CDATA allows (Data Transfer Limit
        /// Exceeded).
        LIMIT_EXCEEDED = 0x05 => "R2T or Data Transfer Limit Exceeded",
        /// A parameter is not supported. FEI: its offset in bytes.
        UNSUPPORTED_PARAMETER = 0x06 => "Unsupported Parameter",
    }
}

enum_fields!(FatalErrorStatus: u16);

bits! {
    /// The Fatal Error Status field.
    pub struct FatalErrorStatusField(U16: u16) {
        /// Fatal Error Status (FES).
        [15:0] fes / with_fes: FatalErrorStatus,
    }
}

/// Terminate Connection Request: the last PDU, of a host (H2CTermReq) or of a
/// controller (C2HTermReq).
///
/// The header of the PDU in error follows it, up to [`TermReq::MAX_DATA`] bytes,
/// without padding or digest.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct TermReq {
    /// Common header.
    pub ch: CommonHeader,
    /// Fatal error status.
    pub fes: FatalErrorStatusField,
    /// Fatal error information. It lies at offset 10, not aligned.
    pub fei: U32,
    /// Zero.
    pub reserved_14: Reserved<10>,
}

const _: () = assert!(size_of::<TermReq>() == 24);

impl TermReq {
    /// The most bytes of the PDU in error that follow.
    pub const MAX_DATA: u32 = 128;

    /// The last PDU of a controller, followed by `data_len` bytes of the PDU in
    /// error, of which [`TermReq::MAX_DATA`] count.
    #[must_use]
    pub fn to_host(fes: FatalErrorStatus, fei: u32, data_len: u32) -> Self {
        Self::new(PduType::C2H_TERM_REQ, fes, fei, data_len)
    }

    /// The same of a host.
    #[must_use]
    pub fn to_controller(fes: FatalErrorStatus, fei: u32, data_len: u32) -> Self {
        Self::new(PduType::H2C_TERM_REQ, fes, fei, data_len)
    }

    fn new(pdu_type: PduType, fes: FatalErrorStatus, fei: u32, data_len: u32) -> Self {
        let bare = CommonHeader::bare(pdu_type, size_of::<Self>() as u8);
        let plen = u32::from(bare.hlen) + data_len.min(Self::MAX_DATA);
        Self {
            ch: CommonHeader {
                plen: plen.into(),
                ..bare
            },
            fes: FatalErrorStatusField::default().with_fes(fes),
            fei: fei.into(),
            reserved_14: Reserved::ZERO,
        }
    }
}

/// Command Capsule (CapsuleCmd). In-capsule data may follow.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CapsuleCmd {
    /// Common header.
    pub ch: CommonHeader,
    /// The command.
    pub ccsqe: SubmissionEntry,
}

const _: () = assert!(size_of::<CapsuleCmd>() == 72);

impl CapsuleCmd {
    /// The capsule of a command with `data_len` bytes of data in it, which may
    /// be 0; `None` if they exceed what a PDU holds.
    #[must_use]
    pub fn new(framing: Framing, ccsqe: SubmissionEntry, data_len: u32) -> Option<Self> {
        let ch = CommonHeader::new(PduType::CAPSULE_CMD, framing, data_len)?;
        Some(Self { ch, ccsqe })
    }
}

/// Response Capsule (CapsuleResp).
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CapsuleResp {
    /// Common header.
    pub ch: CommonHeader,
    /// The completion. Submission queue identifier and phase tag are reserved.
    pub rccqe: CompletionEntry,
}

const _: () = assert!(size_of::<CapsuleResp>() == 24);

impl CapsuleResp {
    /// The capsule of a completion.
    #[must_use]
    pub fn new(framing: Framing, rccqe: CompletionEntry) -> Self {
        let bare = CommonHeader::bare(PduType::CAPSULE_RESP, size_of::<Self>() as u8);
        Self {
            ch: bare.digested(framing),
            rccqe,
        }
    }
}

/// Host to Controller Data (H2CData): an answer to an R2T. Data follows.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct H2cData {
    /// Common header.
    pub ch: CommonHeader,
    /// Command capsule command identifier: whose data this is.
    pub cccid: U16,
    /// Transfer tag, from the R2T.
    pub ttag: U16,
    /// Data offset in bytes from the start of the data of the command.
    pub datao: U32,
    /// Data length in bytes.
    pub datal: U32,
    /// Zero.
    pub reserved_20: Reserved<4>,
}

const _: () = assert!(size_of::<H2cData>() == 24);

impl H2cData {
    /// `datal` bytes at offset `datao` of the data of command `cccid`, for
    /// transfer tag `ttag`. `last`: they are the last that the R2T asked for.
    /// `None` if they exceed what a PDU holds.
    #[must_use]
    pub fn new(
        framing: Framing,
        (cccid, ttag): (u16, u16),
        (datao, datal): (u32, u32),
        last: bool,
    ) -> Option<Self> {
        let ch = CommonHeader::new(PduType::H2C_DATA, framing, datal)?;
        Some(Self {
            ch: CommonHeader {
                flags: ch.flags.with_last_pdu(last),
                ..ch
            },
            cccid: cccid.into(),
            ttag: ttag.into(),
            datao: datao.into(),
            datal: datal.into(),
            reserved_20: Reserved::ZERO,
        })
    }
}

/// Controller to Host Data (C2HData): what a command reads. Data follows.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct C2hData {
    /// Common header.
    pub ch: CommonHeader,
    /// Command capsule command identifier: whose data this is.
    pub cccid: U16,
    /// Zero.
    pub reserved_10: Reserved<2>,
    /// Data offset in bytes from the start of the data of the command.
    pub datao: U32,
    /// Data length in bytes.
    pub datal: U32,
    /// Zero.
    pub reserved_20: Reserved<4>,
}

const _: () = assert!(size_of::<C2hData>() == 24);

impl C2hData {
    /// `datal` bytes at offset `datao` of the data of command `cccid`. `last`:
    /// they are the last of the command. `success`: the command succeeded, and
    /// no response capsule follows; only with `last`.
    /// `None` if they exceed what a PDU holds.
    #[must_use]
    pub fn new(
        framing: Framing,
        cccid: u16,
        (datao, datal): (u32, u32),
        last: bool,
        success: bool,
    ) -> Option<Self> {
        let ch = CommonHeader::new(PduType::C2H_DATA, framing, datal)?;
        Some(Self {
            ch: CommonHeader {
                flags: ch.flags.with_last_pdu(last).with_success(success && last),
                ..ch
            },
            cccid: cccid.into(),
            reserved_10: Reserved::ZERO,
            datao: datao.into(),
            datal: datal.into(),
            reserved_20: Reserved::ZERO,
        })
    }
}

/// Ready to Transfer (R2T): the controller asks for data of a command that writes.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct R2t {
    /// Common header.
    pub ch: CommonHeader,
    /// Command capsule command identifier.
    pub cccid: U16,
    /// Transfer tag: the controller chooses it, the H2CData PDUs repeat it.
    pub ttag: U16,
    /// Requested data offset in bytes from the start of the data of the command.
    pub r2to: U32,
    /// Requested data length in bytes.
    pub r2tl: U32,
    /// Zero.
    pub reserved_20: Reserved<4>,
}

const _: () = assert!(size_of::<R2t>() == 24);

impl R2t {
    /// Asks for `r2tl` bytes at offset `r2to` of the data of command `cccid`.
    #[must_use]
    pub fn new(framing: Framing, (cccid, ttag): (u16, u16), (r2to, r2tl): (u32, u32)) -> Self {
        let bare = CommonHeader::bare(PduType::R2T, size_of::<Self>() as u8);
        Self {
            ch: bare.digested(framing),
            cccid: cccid.into(),
            ttag: ttag.into(),
            r2to: r2to.into(),
            r2tl: r2tl.into(),
            reserved_20: Reserved::ZERO,
        }
    }
}
