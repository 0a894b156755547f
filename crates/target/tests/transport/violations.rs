//! Peers that break the protocol.

use zonelab_target::tcp::{End, Settings};

use crate::wire::{Dialect, Owner, by_transport};

const PLAIN: Dialect = Dialect {
    hdgst: false,
    ddgst: false,
    hpda: 0,
};
const DIGESTS: Dialect = Dialect {
    hdgst: true,
    ddgst: true,
    hpda: 0,
};

const FIELD: u16 = 1;
const SEQUENCE: u16 = 2;
const HEADER_DIGEST: u16 = 3;
const OUT_OF_RANGE: u16 = 4;
const LIMIT: u16 = 5;
const UNSUPPORTED: u16 = 6;

/// Checks that all that was sent is one termination request; its FES and FEI.
pub(crate) fn termination(owner: &Owner) -> (u16, u32) {
    let sent = &owner.sent;
    assert!(matches!(owner.connection.end(), Some(End::Violation(_))));
    assert_eq!(sent[..4], [0x03, 0, 24, 0]);
    let plen = u32::from_le_bytes(sent[4..8].try_into().unwrap());
    assert_eq!(plen as usize, sent.len());
    assert!((24..=152).contains(&plen));
    assert_eq!(sent[14..24], [0; 10]);
    let fes = u16::from_le_bytes([sent[8], sent[9]]);
    (fes, u32::from_le_bytes(sent[10..14].try_into().unwrap()))
}

fn with(mut pdu: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    pdu[at..at + bytes.len()].copy_from_slice(bytes);
    pdu
}

#[test]
fn before_a_connection_is_agreed_on() {
    let request = PLAIN.ic_req();
    let flush = PLAIN.capsule(by_transport(0x00, 1, 0), &[]);
    let cases = [
        (flush, SEQUENCE, 0, "no ICReq"),
        (
            with(request.clone(), 0, &[0x01]),
            FIELD,
            0,
            "a PDU of controllers",
        ),
        (with(request.clone(), 0, &[0x08]), FIELD, 0, "no such type"),
        (with(request.clone(), 1, &[0x01]), FIELD, 1, "a digest"),
        (with(request.clone(), 2, &[127]), FIELD, 2, "HLEN"),
        (with(request.clone(), 4, &[129]), FIELD, 4, "PLEN"),
        (with(request.clone(), 8, &[1]), UNSUPPORTED, 8, "PFV"),
        (with(request, 10, &[32]), FIELD, 10, "HPDA"),
    ];
    for (bytes, fes, fei, why) in cases {
        let mut owner = Owner::new(Settings::default());
        owner.feed(&bytes);
        assert_eq!(termination(&owner), (fes, fei), "{why}");
    }
}

#[test]
fn on_a_queue() {
    let flush = PLAIN.capsule(by_transport(0x00, 1, 0), &[]);
    let write = PLAIN.capsule(by_transport(0x01, 1, 8), &[0; 8]);
    let cases = [
        (PLAIN.ic_req(), SEQUENCE, 0, "a second ICReq"),
        (
            with(flush.clone(), 1, &[0x01]),
            FIELD,
            1,
            "HDGSTF, not agreed on",
        ),
        (with(flush.clone(), 2, &[71]), FIELD, 2, "HLEN"),
        (with(flush.clone(), 4, &[73]), FIELD, 4, "PLEN without PDO"),
        (with(write.clone(), 3, &[73]), FIELD, 3, "PDO not aligned"),
        (with(write.clone(), 3, &[68]), FIELD, 3, "PDO in the header"),
        (
            with(write, 4, &[0, 0, 1]),
            FIELD,
            4,
            "more than a capsule may have",
        ),
        (
            PLAIN.h2c_data((1, 1), 0, &[0; 8], true),
            FIELD,
            10,
            "data without R2T",
        ),
        (
            PLAIN.h2c_data((1, 999), 0, &[0; 8], true),
            FIELD,
            10,
            "no such tag",
        ),
    ];
    for (bytes, fes, fei, why) in cases {
        let mut owner = Owner::connected(Settings::default(), PLAIN);
        owner.feed(&bytes);
        assert_eq!(termination(&owner), (fes, fei), "{why}");
        assert_eq!(
            owner.sent[24..32],
            bytes[..8],
            "{why}: the header in error follows"
        );
    }
}

#[test]
fn in_answer_to_an_r2t() {
    let data = [0; 8192];
    let cases: [(u32, usize, bool, i32, u16, u32, &str); 6] = [
        (0, 4096, true, 0, FIELD, 1, "LAST_PDU too early"),
        (0, 6000, false, 0, FIELD, 1, "LAST_PDU missing"),
        (4, 4096, false, 0, OUT_OF_RANGE, 0, "DATAO ahead"),
        (0, 6004, true, 0, OUT_OF_RANGE, 0, "more than asked for"),
        (0, 8192, true, 0, LIMIT, 0, "MAXH2CDATA"),
        (0, 6000, true, 1, FIELD, 8, "CCCID of another command"),
    ];
    for (offset, len, last, cid, fes, fei, why) in cases {
        let settings = Settings {
            maxh2cdata: 8188,
            ..Settings::default()
        };
        let mut owner = Owner::connected(settings, PLAIN);
        owner.feed(&PLAIN.capsule(by_transport(0x01, 5, 6000), &[]));
        let r2t = owner.take_sent();
        let ids = ((5 + cid) as u16, u16::from_le_bytes([r2t[10], r2t[11]]));
        owner.feed(&PLAIN.h2c_data(ids, offset, &data[..len], last));
        assert_eq!(termination(&owner), (fes, fei), "{why}");
    }
}

#[test]
fn plen_and_datal_must_agree() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    owner.feed(&PLAIN.capsule(by_transport(0x01, 5, 64), &[]));
    let r2t = owner.take_sent();
    let ids = (5, u16::from_le_bytes([r2t[10], r2t[11]]));
    owner.feed(&with(PLAIN.h2c_data(ids, 0, &[0; 64], true), 16, &[60]));
    assert_eq!(termination(&owner), (FIELD, 4));
}

#[test]
fn a_damaged_header_digest_is_reported_as_it_came() {
    let mut owner = Owner::connected(Settings::default(), DIGESTS);
    let flush = DIGESTS.capsule(by_transport(0x00, 1, 0), &[]);
    owner.feed(&with(flush, 72, &[1, 2, 3, 4]));
    assert_eq!(termination(&owner), (HEADER_DIGEST, 0x0403_0201));
    assert_eq!(owner.sent.len(), 24 + 72);
}

#[test]
fn digests_that_were_agreed_on_must_be_there() {
    let mut owner = Owner::connected(Settings::default(), DIGESTS);
    owner.feed(&PLAIN.capsule(by_transport(0x00, 1, 0), &[]));
    assert_eq!(termination(&owner), (FIELD, 1));
}

#[test]
fn a_queue_holds_no_more_commands_than_it_is_deep() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    for cid in 0..8 {
        owner.feed(&PLAIN.capsule(by_transport(0x02, cid, 512), &[]));
    }
    assert_eq!(owner.connection.end(), None);
    owner.feed(&PLAIN.capsule(by_transport(0x02, 8, 512), &[]));
    assert_eq!(termination(&owner), (SEQUENCE, 0));
    assert_eq!(owner.events.len(), 8);
}
