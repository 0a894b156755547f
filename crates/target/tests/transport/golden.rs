//! Exact bytes.

use zonelab_target::tcp::{End, Event, Settings, SuccessFlag};

use crate::wire::{Dialect, Owner, by_transport, completion, crc32c, entry, in_capsule};

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

/// A response capsule without digest.
fn response(cid: u16, sqhd: u16, status: u16) -> Vec<u8> {
    let mut pdu = vec![0x05, 0, 24, 0, 24, 0, 0, 0];
    pdu.extend([0; 8]);
    pdu.extend(sqhd.to_le_bytes());
    pdu.extend([0; 2]);
    pdu.extend(cid.to_le_bytes());
    pdu.extend(status.to_le_bytes());
    pdu
}

#[test]
fn the_response_to_ic_req_says_what_was_agreed() {
    let settings = Settings {
        maxh2cdata: 0x20000,
        cpda_z: 1,
        ..Settings::default()
    };
    let mut owner = Owner::new(settings);
    owner.feed(
        &Dialect {
            hdgst: true,
            ddgst: false,
            hpda: 3,
        }
        .ic_req(),
    );
    let mut expected = vec![0x01, 0, 128, 0, 128, 0, 0, 0, 0, 0, 1, 0x01, 0, 0, 2, 0];
    expected.resize(128, 0);
    assert_eq!(owner.take_sent(), expected);
}

#[test]
fn connect_makes_the_queue_and_counts_its_head() {
    let mut owner = Owner::new(Settings::default());
    owner.feed(&PLAIN.ic_req());
    owner.take_sent();
    owner.feed(&PLAIN.connect(0x1234, 7, false));
    assert_eq!(owner.take_sent(), response(0x1234, 1, 0));
    for cid in 0..8 {
        owner.feed(&PLAIN.capsule(entry(0x00, cid, (0, 0, 0x5a)), &[]));
        owner.complete(cid, None);
        let head = (cid + 2) % 8;
        assert_eq!(owner.take_sent(), response(cid, head, 0));
    }
}

#[test]
fn a_host_without_flow_control_is_told_once_and_gets_the_success_flag() {
    let mut owner = Owner::new(Settings::default());
    owner.feed(&PLAIN.ic_req());
    owner.take_sent();
    owner.feed(&PLAIN.connect(1, 7, true));
    assert_eq!(owner.take_sent(), response(1, 0xffff, 0));
    owner.feed(&PLAIN.capsule(by_transport(0x02, 9, 4), &[]));
    owner.complete(9, Some(vec![1, 2, 3, 4]));
    let mut expected = vec![
        0x07, 0x0c, 24, 24, 28, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0,
    ];
    expected.extend([0; 4]);
    expected.extend([1, 2, 3, 4]);
    assert_eq!(owner.take_sent(), expected);
    owner.feed(&PLAIN.capsule(entry(0x00, 2, (0, 0, 0x5a)), &[]));
    owner.complete(2, None);
    assert_eq!(owner.take_sent(), response(2, 0, 0));
}

#[test]
fn a_result_does_not_fit_into_a_success_flag() {
    let settings = Settings {
        success: SuccessFlag::Always,
        ..Settings::default()
    };
    let mut owner = Owner::connected(settings, PLAIN);
    owner.feed(&PLAIN.capsule(by_transport(0x02, 9, 4), &[]));
    let completion = completion(9).with_result(5);
    owner.connection.complete(
        completion,
        Some(vec![0; 4].into()),
        zonelab_device::Nanos(1),
    );
    owner.flush();
    let sent = owner.take_sent();
    assert_eq!(sent[1], 0x04, "last, without success");
    assert_eq!(sent.len(), 28 + 24);
    assert_eq!(sent[28..37], [0x05, 0, 24, 0, 24, 0, 0, 0, 5]);
}

#[test]
fn data_to_the_host_is_aligned_and_has_digests() {
    let dialect = Dialect {
        hpda: 15,
        ..DIGESTS
    };
    let mut owner = Owner::connected(Settings::default(), dialect);
    owner.feed(&dialect.capsule(by_transport(0x02, 0x0305, 8), &[]));
    owner.complete(0x0305, Some(vec![7; 8]));
    let sent = owner.take_sent();
    let mut header = vec![
        0x07, 0x07, 24, 64, 76, 0, 0, 0, 5, 3, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0,
    ];
    header.extend([0; 4]);
    assert_eq!(sent[..24], header);
    assert_eq!(sent[24..28], crc32c(&header));
    assert_eq!(sent[28..64], [0; 36]);
    assert_eq!(sent[64..72], [7; 8]);
    assert_eq!(sent[72..76], crc32c(&[7; 8]));
    assert_eq!(sent[76..80], [0x05, 0x01, 24, 0]);
    assert_eq!(sent[100..], crc32c(&sent[76..100]));
}

#[test]
fn data_from_the_host_is_asked_for_and_collected() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    owner.feed(&PLAIN.capsule(by_transport(0x01, 0x0a0b, 8192), &[]));
    let r2t = owner.take_sent();
    assert_eq!(r2t[..10], [0x09, 0, 24, 0, 24, 0, 0, 0, 0x0b, 0x0a]);
    assert_eq!(r2t[12..], [0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    let ids = (0x0a0b, u16::from_le_bytes([r2t[10], r2t[11]]));
    owner.feed(&PLAIN.h2c_data(ids, 0, &[1; 4096], false));
    assert!(owner.events.is_empty());
    owner.feed(&PLAIN.h2c_data(ids, 4096, &[2; 4096], true));
    let Some(Event::Command {
        data: Some(data),
        data_len,
        ..
    }) = owner.events.pop()
    else {
        panic!("the write is whole");
    };
    assert_eq!(
        (&data[..4096], &data[4096..]),
        (&[1; 4096][..], &[2; 4096][..])
    );
    assert_eq!(data_len, 8192);
}

#[test]
fn data_in_the_capsule_lies_where_its_descriptor_says() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    let data: Vec<u8> = (0..200).collect();
    owner.feed(&PLAIN.capsule(entry(0x01, 3, (16, 100, 0x01)), &data));
    let Some(Event::Command {
        data: Some(received),
        ..
    }) = owner.events.pop()
    else {
        panic!("the write is whole");
    };
    assert_eq!(received[..], data[16..116]);
}

/// Status field of the last response, without phase.
fn status(owner: &mut Owner) -> u16 {
    let sent = owner.take_sent();
    let at = sent.len() - 2;
    u16::from_le_bytes([sent[at], sent[at + 1]]) >> 1
}

#[test]
fn a_damaged_data_digest_fails_the_command_and_not_the_connection() {
    let mut owner = Owner::connected(
        Settings::default(),
        Dialect {
            ddgst: true,
            ..PLAIN
        },
    );
    let dialect = Dialect {
        ddgst: true,
        ..PLAIN
    };
    let mut pdu = dialect.capsule(in_capsule(0x01, 3, 64), &[5; 64]);
    *pdu.last_mut().unwrap() ^= 1;
    owner.feed(&pdu);
    assert_eq!(
        status(&mut owner),
        0x022,
        "Transient Transport Error, may retry"
    );
    owner.feed(&dialect.capsule(by_transport(0x01, 4, 64), &[]));
    let r2t = owner.take_sent();
    let ids = (4, u16::from_le_bytes([r2t[10], r2t[11]]));
    let mut pdu = dialect.h2c_data(ids, 0, &[5; 32], false);
    *pdu.last_mut().unwrap() ^= 1;
    owner.feed(&pdu);
    assert!(owner.sent.is_empty(), "not before all data is here");
    owner.feed(&dialect.h2c_data(ids, 32, &[5; 32], true));
    assert_eq!(status(&mut owner), 0x022);
    assert!(owner.events.is_empty());
    assert_eq!(owner.connection.end(), None);
}

#[test]
fn commands_that_the_transport_refuses() {
    const DNR: u16 = 0x4000;
    let mut no_sgl = by_transport(0x02, 1, 4096);
    no_sgl[1] = 0;
    let cases = [
        (no_sgl, 0x002, "PSDT is not SGL"),
        (
            by_transport(0x02, 1, (1 << 20) + 1),
            0x002,
            "beyond the transfer limit",
        ),
        (
            entry(0x02, 1, (0, 512, 0x01)),
            0x011,
            "a read into its own capsule",
        ),
        (entry(0x01, 1, (0, 512, 0x40)), 0x011, "keyed"),
        (
            entry(0x01, 1, (65, 1, 0x01)),
            0x016,
            "offset beyond the capsule",
        ),
        (
            entry(0x01, 1, (1, 64, 0x01)),
            0x00f,
            "longer than the capsule",
        ),
    ];
    for (entry, expected, why) in cases {
        let mut owner = Owner::connected(Settings::default(), PLAIN);
        let data: &[u8] = if entry[39] == 0x01 { &[0; 64] } else { &[] };
        owner.feed(&PLAIN.capsule(entry, data));
        assert_eq!(status(&mut owner), expected | DNR, "{why}");
        assert!(owner.events.is_empty() && owner.connection.end().is_none());
    }
}

#[test]
fn nothing_but_connect_comes_first_and_connect_comes_once() {
    let mut owner = Owner::new(Settings::default());
    owner.feed(&PLAIN.ic_req());
    let mut get = entry(0x7f, 4, (0, 0, 0x5a));
    get[4] = 0x04;
    owner.feed(&PLAIN.capsule(get, &[]));
    assert_eq!(status(&mut owner), 0x400c);
    owner.feed(&PLAIN.connect(1, 7, false));
    assert!(owner.connection.is_live());
    owner.feed(&PLAIN.connect(2, 7, false));
    assert_eq!(status(&mut owner), 0x400c);
}

#[test]
fn an_identifier_in_use_is_a_conflict() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    for _ in 0..2 {
        owner.feed(&PLAIN.capsule(by_transport(0x02, 77, 4), &[]));
    }
    assert_eq!(status(&mut owner), 0x4003);
    owner.complete(77, Some(vec![0; 4]));
    owner.feed(&PLAIN.capsule(by_transport(0x02, 77, 4), &[]));
    assert_eq!(owner.events.len(), 2);
}

#[test]
fn a_host_that_terminates_gets_no_answer() {
    let mut owner = Owner::connected(Settings::default(), PLAIN);
    let mut pdu = vec![0x02, 0, 24, 0, 32, 0, 0, 0, 0x01, 0, 0x04, 0, 0, 0];
    pdu.resize(32, 0);
    owner.feed(&pdu);
    let end = owner.connection.end();
    assert!(
        matches!(end, Some(End::HostTerminated(status, 4)) if status.0 == 1),
        "{end:?}"
    );
    assert!(owner.sent.is_empty());
}
