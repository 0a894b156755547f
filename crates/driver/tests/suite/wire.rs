//! PDUs byte by byte, as the tables of the NVMe/TCP specification lay them out.
//! Nothing of the crates under test is used to make them.

/// CRC32C bit by bit (RFC 3720, appendix B.4: reflected polynomial 82F63B78h).
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

/// Which digests PDUs get.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Dgst {
    pub(crate) header: bool,
    pub(crate) data: bool,
}

/// Common header, specific header, digest, data, digest.
fn pdu(pdu_type: u8, flags: u8, specific: &[u8], data: &[u8], dgst: Dgst) -> Vec<u8> {
    let hlen = 8 + specific.len();
    let head = hlen + if dgst.header { 4 } else { 0 };
    let (mut flags, mut pdo, mut plen) = (flags, 0, head);
    flags |= u8::from(dgst.header);
    if !data.is_empty() {
        flags |= u8::from(dgst.data) << 1;
        pdo = head;
        plen = head + data.len() + if dgst.data { 4 } else { 0 };
    }
    let mut bytes = vec![pdu_type, flags, hlen as u8, pdo as u8];
    bytes.extend((plen as u32).to_le_bytes());
    bytes.extend(specific);
    if dgst.header {
        bytes.extend(crc32c(&bytes).to_le_bytes());
    }
    bytes.extend(data);
    if dgst.data && !data.is_empty() {
        bytes.extend(crc32c(data).to_le_bytes());
    }
    bytes
}

/// ICResp: PFV, CPDA, DGST, MAXH2CDATA, 112 reserved bytes.
pub(crate) fn ic_resp(cpda: u8, dgst: Dgst, maxh2cdata: u32) -> Vec<u8> {
    let bits = u8::from(dgst.header) | u8::from(dgst.data) << 1;
    let mut specific = vec![0, 0, cpda, bits];
    specific.extend(maxh2cdata.to_le_bytes());
    specific.resize(120, 0);
    pdu(0x01, 0, &specific, &[], Dgst::default())
}

/// CapsuleResp: dword 0 and 1, SQHD FFFFh, SQID, CID, status with phase bit 0.
pub(crate) fn capsule_resp(cid: u16, status: u16, result: u64, dgst: Dgst) -> Vec<u8> {
    let mut specific = result.to_le_bytes().to_vec();
    specific.extend([0xff, 0xff, 0, 0]);
    specific.extend(cid.to_le_bytes());
    specific.extend((status << 1).to_le_bytes());
    pdu(0x05, 0, &specific, &[], dgst)
}

/// C2HData: CCCID, reserved, DATAO, DATAL, reserved. Flags: 4 LAST, 8 SUCCESS.
pub(crate) fn c2h_data(cid: u16, offset: u32, data: &[u8], flags: u8, dgst: Dgst) -> Vec<u8> {
    let mut specific = cid.to_le_bytes().to_vec();
    specific.extend([0, 0]);
    specific.extend(offset.to_le_bytes());
    specific.extend((data.len() as u32).to_le_bytes());
    specific.extend([0; 4]);
    pdu(0x07, flags, &specific, data, dgst)
}

/// R2T: CCCID, TTAG, R2TO, R2TL, reserved.
pub(crate) fn r2t(cid: u16, ttag: u16, offset: u32, len: u32, dgst: Dgst) -> Vec<u8> {
    let mut specific = cid.to_le_bytes().to_vec();
    specific.extend(ttag.to_le_bytes());
    specific.extend(offset.to_le_bytes());
    specific.extend(len.to_le_bytes());
    specific.extend([0; 4]);
    pdu(0x09, 0, &specific, &[], dgst)
}
