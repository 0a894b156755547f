//! PDUs of NVMe/TCP, byte by byte, from the tables of the transport
//! specification 1.0.

use core::mem::offset_of;
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, SglDescriptor, SubmissionEntry};
use zonelab_nvme::tcp::{
    C2hData, CapsuleCmd, CapsuleResp, CommonHeader, Digests, FatalErrorStatus, Framing, H2cData,
    IcReq, IcResp, PduFlags, PduType, R2t, TermReq,
};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

const PLAIN: Framing = Framing {
    hdgst: false,
    ddgst: false,
    pda_z: 0,
};

const DIGESTS: Framing = Framing {
    hdgst: true,
    ddgst: true,
    pda_z: 0,
};

#[test]
fn the_request_of_a_linux_host_that_wants_both_digests() {
    let mut golden = [0_u8; 128];
    golden[..8].copy_from_slice(&[0x00, 0x00, 0x80, 0x00, 0x80, 0x00, 0x00, 0x00]);
    golden[11] = 0x03; // DGST; PFV and HPDA are 0
    let request = IcReq::new(0, Digests::default().with_hdgst(true).with_ddgst(true), 0);
    assert_eq!(request.as_bytes(), golden);

    golden[8..16].copy_from_slice(&[0x34, 0x12, 0x1f, 0x02, 0x07, 0, 0, 0]);
    let other = IcReq::ref_from_bytes(&golden).unwrap();
    assert_eq!(other.pfv.get(), 0x1234);
    assert_eq!(other.hpda_z, 31);
    assert!(!other.dgst.hdgst() && other.dgst.ddgst());
    assert_eq!(other.maxr2t_z.get(), 7);
}

#[test]
fn the_response_says_how_much_data_a_pdu_may_carry() {
    let mut golden = [0_u8; 128];
    golden[..8].copy_from_slice(&[0x01, 0x00, 0x80, 0x00, 0x80, 0x00, 0x00, 0x00]);
    golden[10] = 3; // CPDA: 16 bytes
    golden[11] = 0x01; // header digests
    golden[12..16].copy_from_slice(&[0x00, 0x00, 0x02, 0x00]); // 128 KiB
    let response = IcResp::new(3, Digests::default().with_hdgst(true), 0x2_0000);
    assert_eq!(response.as_bytes(), golden);
}

#[test]
fn a_read_command_and_one_with_data_in_its_capsule() {
    let entry = SubmissionEntry::new(0x02)
        .with_cid(0x1234)
        .with_sgl(SglDescriptor::transport(4096));
    let capsule = CapsuleCmd::new(PLAIN, entry, 0).unwrap();
    assert_eq!(capsule.as_bytes()[..8], [0x04, 0x00, 72, 0, 72, 0, 0, 0]);
    assert_eq!(
        capsule.as_bytes()[8..12],
        [0x02, 0x40, 0x34, 0x12],
        "the command starts at byte 8"
    );
    assert_eq!(
        capsule.as_bytes()[32..48],
        [0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0x5a]
    );

    let entry = SubmissionEntry::new(0x01).with_sgl(SglDescriptor::in_capsule(0, 4096));
    let capsule = CapsuleCmd::new(DIGESTS, entry, 4096).unwrap();
    // 72 + 4 = 76 to the data, 76 + 4096 + 4 = 4176 = 1050h in all.
    let header = [0x04, 0x03, 72, 76, 0x50, 0x10, 0, 0];
    assert_eq!(capsule.as_bytes()[..8], header);
    assert_eq!(
        capsule.as_bytes()[32..48],
        [0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0x01]
    );
    assert_eq!(capsule.ch.data_len(), Some(4096));
}

#[test]
fn data_is_padded_to_the_alignment_of_the_peer() {
    let pdo = |hdgst, pda_z, pdu_type| {
        let framing = Framing {
            hdgst,
            ddgst: false,
            pda_z,
        };
        let header = CommonHeader::new(pdu_type, framing, 512).unwrap();
        assert_eq!(header.plen.get(), u32::from(header.pdo) + 512);
        assert_eq!(header.data_len(), Some(512));
        header.pdo
    };
    assert_eq!(pdo(false, 0, PduType::C2H_DATA), 24);
    assert_eq!(pdo(true, 0, PduType::C2H_DATA), 28);
    assert_eq!(pdo(true, 3, PduType::C2H_DATA), 32); // 16 bytes
    assert_eq!(pdo(true, 2, PduType::C2H_DATA), 36); // 12 bytes
    assert_eq!(pdo(true, 31, PduType::C2H_DATA), 128);
    assert_eq!(pdo(true, 31, PduType::CAPSULE_CMD), 128);
    assert_eq!(pdo(false, 15, PduType::CAPSULE_CMD), 128);
}

#[test]
fn a_response_capsule() {
    let mut completion = CompletionEntry::new(0x1234, Status::ZONE_INVALID_WRITE).with_dnr(true);
    completion.sqhd = 5.into();
    let capsule = CapsuleResp::new(DIGESTS, completion);
    let golden = [
        0x05, 0x01, 24, 0, 28, 0, 0, 0, // header digest, no data
        0, 0, 0, 0, 0, 0, 0, 0, // result
        0x05, 0, 0, 0, // SQHD
        0x34, 0x12, 0x78, 0x83, // CID, status
    ];
    assert_eq!(capsule.as_bytes(), golden);
}

#[test]
fn data_to_the_host_with_and_without_a_response_capsule() {
    let golden = [
        0x07, 0x0c, 24, 24, 0x18, 0x10, 0, 0, // LAST_PDU and SUCCESS; 24 + 4096
        0x34, 0x12, 0, 0, // CCCID
        0x00, 0x20, 0, 0, // DATAO 8192
        0x00, 0x10, 0, 0, // DATAL 4096
        0, 0, 0, 0,
    ];
    let data = C2hData::new(PLAIN, 0x1234, (8192, 4096), true, true).unwrap();
    assert_eq!(data.as_bytes(), golden);
    assert_eq!(C2hData::read_from_bytes(&golden), Ok(data));
    let flags = |last, success| {
        let data = C2hData::new(DIGESTS, 1, (0, 8), last, success);
        data.unwrap().as_bytes()[1]
    };
    assert_eq!(flags(true, false), 0x07);
    assert_eq!(flags(false, false), 0x03);
    assert_eq!(flags(false, true), 0x03, "no success before the last data");
}

#[test]
fn a_request_for_data_and_its_answer() {
    let golden = [
        0x09, 0x01, 24, 0, 28, 0, 0, 0, // header digest
        0x34, 0x12, 0xcd, 0xab, // CCCID, TTAG
        0x00, 0x00, 0x01, 0, // R2TO 64 KiB
        0x00, 0x80, 0x00, 0, // R2TL 32 KiB
        0, 0, 0, 0,
    ];
    let request = R2t::new(DIGESTS, (0x1234, 0xabcd), (0x1_0000, 0x8000));
    assert_eq!(request.as_bytes(), golden);

    let golden = [
        0x06, 0x07, 24, 28, 0x20, 0x80, 0, 0, // LAST_PDU, digests; 28 + 8000h + 4
        0x34, 0x12, 0xcd, 0xab, // CCCID, TTAG
        0x00, 0x00, 0x01, 0, // DATAO
        0x00, 0x80, 0x00, 0, // DATAL
        0, 0, 0, 0,
    ];
    let data = H2cData::new(DIGESTS, (0x1234, 0xabcd), (0x1_0000, 0x8000), true).unwrap();
    assert_eq!(data.as_bytes(), golden);
}

#[test]
fn the_end_of_a_connection_carries_the_header_in_error() {
    let golden = [
        0x03, 0x00, 24, 0, 0x60, 0, 0, 0, // 24 + 72
        0x01, 0x00, // invalid header field
        0x04, 0x00, 0x00, 0x00, // FEI: PLEN, at byte 4
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let end = TermReq::to_host(FatalErrorStatus::INVALID_PDU_HEADER_FIELD, 4, 72);
    assert_eq!(end.as_bytes(), golden);
    assert_eq!(offset_of!(TermReq, fei), 10);
    let longest = TermReq::to_controller(FatalErrorStatus::HEADER_DIGEST_ERROR, 0xaabb_ccdd, 4096);
    assert_eq!(longest.as_bytes()[..8], [0x02, 0, 24, 0, 152, 0, 0, 0]);
    assert_eq!(longest.as_bytes()[8..14], [0x03, 0, 0xdd, 0xcc, 0xbb, 0xaa]);
    let codes = FatalErrorStatus::NAMED.iter().map(|(code, _)| code.0);
    assert_eq!(codes.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn types_and_flags_are_those_of_the_specification() {
    let types = [
        (PduType::IC_REQ, 0x00, 128),
        (PduType::IC_RESP, 0x01, 128),
        (PduType::H2C_TERM_REQ, 0x02, 24),
        (PduType::C2H_TERM_REQ, 0x03, 24),
        (PduType::CAPSULE_CMD, 0x04, 72),
        (PduType::CAPSULE_RESP, 0x05, 24),
        (PduType::H2C_DATA, 0x06, 24),
        (PduType::C2H_DATA, 0x07, 24),
        (PduType::R2T, 0x09, 24),
    ];
    assert_eq!(types.len(), PduType::NAMED.len());
    for (pdu_type, number, hlen) in types {
        assert_eq!(pdu_type, PduType(number));
        assert_eq!(pdu_type.hlen(), Some(hlen), "{pdu_type}");
        let to_host = matches!(number, 1 | 3 | 5 | 7 | 9);
        assert_eq!(pdu_type.is_to_host(), to_host, "{pdu_type}");
        assert_eq!(pdu_type.has_header_digest(), number >= 4, "{pdu_type}");
        // None of them gets a length that it cannot have.
        let with_data = CommonHeader::new(pdu_type, PLAIN, 8);
        assert_eq!(with_data.is_some(), matches!(number, 4 | 6 | 7));
        let bare = CommonHeader::new(pdu_type, DIGESTS, 0).unwrap();
        let digest = if number >= 4 { 4 } else { 0 };
        assert_eq!(bare.plen.get(), u32::from(hlen) + digest);
        assert_eq!(bare.flags.hdgstf(), number >= 4);
        assert!(!bare.flags.ddgstf(), "no data, no digest of it");
    }
    assert_eq!(PduType(0x08).hlen(), None);
    assert_eq!(CommonHeader::new(PduType(0x08), PLAIN, 0), None);
    let flag = |bit: u8| PduFlags::from_bits(1 << bit);
    assert_eq!(flag(0), PduFlags::default().with_hdgstf(true));
    assert_eq!(flag(1), PduFlags::default().with_ddgstf(true));
    assert_eq!(flag(2), PduFlags::default().with_last_pdu(true));
    assert_eq!(flag(3), PduFlags::default().with_success(true));
}

#[test]
fn lengths_that_contradict_each_other_are_noticed() {
    let header = |flags, hlen, pdo, plen: u32| {
        let bytes = [0x07, flags, hlen, pdo];
        let bytes = [bytes, plen.to_le_bytes()].concat();
        CommonHeader::read_from_bytes(&bytes).unwrap().data_len()
    };
    assert_eq!(header(0x00, 24, 24, 24), Some(0));
    assert_eq!(header(0x00, 24, 0, 24), Some(0));
    assert_eq!(header(0x00, 24, 0, 25), None, "data without an offset");
    assert_eq!(header(0x00, 24, 23, 64), None, "data inside the header");
    assert_eq!(header(0x01, 24, 24, 64), None, "data inside the digest");
    assert_eq!(header(0x00, 24, 32, 31), None, "no room for the padding");
    assert_eq!(header(0x02, 24, 24, 27), None, "no room for the digest");
    assert_eq!(header(0x02, 24, 24, 28), Some(0));
    assert_eq!(header(0x03, 24, 128, u32::MAX), Some(u32::MAX - 132));
    assert_eq!(header(0xff, 255, 255, 0), None);
    // A PDU whose length has no place in PLEN is not made.
    let longest = u32::MAX - 28 - 4;
    assert!(CommonHeader::new(PduType::C2H_DATA, DIGESTS, longest).is_some());
    assert!(CommonHeader::new(PduType::C2H_DATA, DIGESTS, longest + 1).is_none());
}
