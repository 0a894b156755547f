//! What must hold of a common header before more of the PDU is read.

use zonelab_nvme::tcp::{CommonHeader, DIGEST_LEN, Framing, PduType, TermReq};

use super::Violation;

/// Offsets of fields in a PDU header, in bytes.
pub(super) mod offset {
    pub(in crate::tcp) const TYPE: u32 = 0;
    pub(in crate::tcp) const FLAGS: u32 = 1;
    pub(in crate::tcp) const HLEN: u32 = 2;
    pub(in crate::tcp) const PDO: u32 = 3;
    pub(in crate::tcp) const PLEN: u32 = 4;
    /// ICReq.
    pub(in crate::tcp) const PFV: u32 = 8;
    /// ICReq.
    pub(in crate::tcp) const HPDA: u32 = 10;
    /// H2CData.
    pub(in crate::tcp) const CCCID: u32 = 8;
    /// H2CData.
    pub(in crate::tcp) const TTAG: u32 = 10;
    /// H2CData.
    pub(in crate::tcp) const DATAL: u32 = 16;
}

/// How far a connection is, as far as headers care.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Expectation {
    /// ICReq was received.
    pub(super) is_initialized: bool,
    /// How PDUs to the controller are laid out.
    pub(super) framing: Framing,
    /// Most data in a command capsule, in bytes.
    pub(super) capsule: u32,
}

/// Where the parts of a PDU lie, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Header without digest.
    pub(super) header: usize,
    /// A header digest follows the header.
    pub(super) hdgst: bool,
    /// Up to the data: header, digest and padding.
    pub(super) lead: usize,
    /// Data.
    pub(super) data: u32,
    /// A data digest follows the data.
    pub(super) ddgst: bool,
}

/// Checks a common header of a host.
///
/// # Errors
/// The first thing that is wrong with it.
pub(super) fn check(ch: &CommonHeader, now: Expectation) -> Result<Layout, Violation> {
    check_type(ch.pdu_type, now.is_initialized)?;
    let hlen = ch.pdu_type.hlen();
    if hlen != Some(ch.hlen) {
        return Err(Violation::field(
            offset::HLEN,
            "HLEN is not that of the type",
        ));
    }
    match ch.pdu_type {
        PduType::IC_REQ => fixed(ch, 0),
        PduType::H2C_TERM_REQ => fixed(ch, TermReq::MAX_DATA),
        _ => with_data(ch, now),
    }
}

fn check_type(pdu_type: PduType, is_initialized: bool) -> Result<(), Violation> {
    match pdu_type {
        PduType::H2C_TERM_REQ => Ok(()),
        PduType::IC_REQ if is_initialized => Err(Violation::sequence("a second ICReq")),
        PduType::IC_REQ => Ok(()),
        PduType::CAPSULE_CMD | PduType::H2C_DATA if is_initialized => Ok(()),
        PduType::CAPSULE_CMD | PduType::H2C_DATA => {
            Err(Violation::sequence("the first PDU is no ICReq"))
        }
        _ => Err(Violation::field(
            offset::TYPE,
            "hosts send no PDU of this type",
        )),
    }
}

/// A PDU without digests, and with at most `most` bytes behind its header.
fn fixed(ch: &CommonHeader, most: u32) -> Result<Layout, Violation> {
    if ch.flags.hdgstf() || ch.flags.ddgstf() {
        return Err(Violation::field(
            offset::FLAGS,
            "a digest where none can be",
        ));
    }
    match ch.plen.get().checked_sub(u32::from(ch.hlen)) {
        Some(data) if data <= most => Ok(Layout {
            header: usize::from(ch.hlen),
            hdgst: false,
            lead: usize::from(ch.hlen),
            data,
            ddgst: false,
        }),
        _ => Err(Violation::field(
            offset::PLEN,
            "PLEN is not that of the type",
        )),
    }
}

/// A command capsule, or data.
fn with_data(ch: &CommonHeader, now: Expectation) -> Result<Layout, Violation> {
    let (flags, pdo) = (ch.flags, u32::from(ch.pdo));
    let has_data = pdo != 0 && ch.plen.get() > pdo;
    if flags.hdgstf() != now.framing.hdgst || flags.ddgstf() != (has_data && now.framing.ddgst) {
        return Err(Violation::field(offset::FLAGS, "digests are not as agreed"));
    }
    let digest = if flags.hdgstf() { DIGEST_LEN } else { 0 };
    let header = u32::from(ch.hlen) + digest;
    let is_misplaced = pdo < header || pdo % now.framing.alignment() != 0;
    let needs_data = ch.pdu_type == PduType::H2C_DATA;
    if (pdo != 0 || needs_data) && is_misplaced {
        return Err(Violation::field(offset::PDO, "PDO is no place for data"));
    }
    let data = ch.data_len().ok_or(Violation::field(
        offset::PLEN,
        "PLEN does not fit the rest of the header",
    ))?;
    if ch.pdu_type == PduType::CAPSULE_CMD && data > now.capsule {
        return Err(Violation::field(
            offset::PLEN,
            "more data than a capsule may have",
        ));
    }
    Ok(Layout {
        header: usize::from(ch.hlen),
        hdgst: flags.hdgstf(),
        lead: pdo.max(header) as usize,
        data,
        ddgst: flags.ddgstf(),
    })
}
