//! The connection: golden byte streams, and that it does not matter how a
//! stream is cut.

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_driver::tcp::{Connection, ProtocolError, Settings};
use zonelab_nvme::Status;

use crate::bytes::*;
use crate::wire::*;

#[test]
fn the_first_pdu_asks_for_what_the_settings_say() {
    let settings = Settings {
        hdgst: true,
        ddgst: true,
        hpda_z: 3,
        ..Settings::admin(Nanos::from_secs(1))
    };
    let mut expected = vec![0x00, 0, 128, 0, 128, 0, 0, 0];
    expected.extend([0, 0, 3, 0b11, 0, 0, 0, 0]);
    expected.resize(128, 0);
    assert_eq!(drain(&mut Connection::new(settings)), expected);
}

#[test]
fn a_read_ends_with_the_success_flag_of_its_data() {
    let mut connection = open(4, 0, 0, Dgst::default());
    read(&mut connection, 77, 1024);
    let capsule = drain(&mut connection);
    assert_eq!(capsule.len(), 72);
    assert_eq!(capsule[..8], [0x04, 0, 72, 0, 72, 0, 0, 0]);
    // Opcode, PSDT 01b, CID 0, namespace 1.
    assert_eq!(capsule[8..16], [0x02, 0x40, 0, 0, 1, 0, 0, 0]);
    // SGL: address 0, length 1024, transport data block with sub type Ah.
    assert_eq!(capsule[32..40], [0; 8]);
    assert_eq!(capsule[40..48], [0, 4, 0, 0, 0, 0, 0, 0x5a]);
    assert_eq!(capsule[56], 1, "two blocks, zero based");
    let data = pattern(1024);
    connection
        .feed(&c2h_data(0, 0, &data[..600], 0, Dgst::default()))
        .unwrap();
    assert!(connection.next_done().is_none());
    connection
        .feed(&c2h_data(0, 600, &data[600..], 0b1100, Dgst::default()))
        .unwrap();
    let done = connection.next_done().unwrap();
    assert_eq!((done.token, done.transferred), (77, 1024));
    assert!(done.entry.status.status().is_success());
    assert_eq!(&done.data.unwrap()[..], data);
    assert_eq!(connection.in_flight(), 0);
}

#[test]
fn a_small_write_travels_in_its_capsule_at_the_alignment_of_the_controller() {
    // CPDA 15: data at multiples of 64 bytes, so at 128 behind 72 + 4.
    let dgst = Dgst {
        header: true,
        data: true,
    };
    let mut connection = open(4, 4096, 15, dgst);
    let data = pattern(512);
    write(&mut connection, 1, data.clone());
    let capsule = drain(&mut connection);
    assert_eq!(capsule.len(), 128 + 512 + 4);
    assert_eq!(capsule[..8], [0x04, 0b11, 72, 128, 0x84, 2, 0, 0]);
    // SGL: offset 0, length 512, data block with an offset.
    assert_eq!(capsule[40..48], [0, 2, 0, 0, 0, 0, 0, 0x01]);
    assert_eq!(capsule[72..76], crc32c(&capsule[..72]).to_le_bytes());
    assert_eq!(capsule[76..128], [0; 52]);
    assert_eq!(capsule[128..640], data);
    assert_eq!(capsule[640..], crc32c(&data).to_le_bytes());
    connection.feed(&capsule_resp(0, 0, 0, dgst)).unwrap();
    let done = connection.next_done().unwrap();
    assert_eq!(&done.data.unwrap()[..], data, "the buffer comes back");
}

#[test]
fn an_r2t_is_answered_in_pdus_of_at_most_maxh2cdata() {
    let mut connection = open(4, 0, 0, Dgst::default());
    let data = pattern(10_240);
    write(&mut connection, 1, data.clone());
    assert_eq!(drain(&mut connection).len(), 72);
    connection
        .feed(&r2t(0, 0xbeef, 0, 9_000, Dgst::default()))
        .unwrap();
    let sent = drain(&mut connection);
    let mut rest = &sent[..];
    for (offset, len, flags) in [(0_u32, 4096_u32, 0), (4096, 4096, 0), (8192, 808, 4)] {
        let (pdu, later) = rest.split_at(24 + len as usize);
        assert_eq!(pdu[..4], [0x06, flags, 24, 24]);
        assert_eq!(pdu[4..8], (24 + len).to_le_bytes());
        assert_eq!(pdu[8..12], [0, 0, 0xef, 0xbe]);
        assert_eq!(pdu[12..16], offset.to_le_bytes());
        assert_eq!(pdu[16..20], len.to_le_bytes());
        assert_eq!(pdu[24..], data[offset as usize..(offset + len) as usize]);
        rest = later;
    }
    assert!(rest.is_empty());
    connection
        .feed(&r2t(0, 1, 9_000, 1_240, Dgst::default()))
        .unwrap();
    assert_eq!(drain(&mut connection)[24..], data[9_000..]);
    connection
        .feed(&capsule_resp(0, 0, 0, Dgst::default()))
        .unwrap();
    assert_eq!(connection.next_done().unwrap().transferred, 10_240);
}

#[test]
fn a_failed_command_keeps_its_status_and_result() {
    let mut connection = open(4, 0, 0, Dgst::default());
    read(&mut connection, 5, 512);
    drain(&mut connection);
    // SCT 1, SC BCh, DNR (bit 14 of the 15 above the phase tag).
    let response = capsule_resp(0, 0x41bc, 0x1_0000_0002, Dgst::default());
    connection.feed(&response).unwrap();
    let done = connection.next_done().unwrap();
    assert_eq!(done.entry.status.status(), Status::ZONE_INVALID_WRITE);
    assert!(done.entry.status.dnr());
    assert_eq!(done.entry.result(), 0x1_0000_0002);
}

#[test]
fn damaged_data_fails_its_command_and_no_other() {
    let dgst = Dgst {
        header: false,
        data: true,
    };
    let mut connection = open(4, 0, 0, dgst);
    read(&mut connection, 1, 512);
    read(&mut connection, 2, 512);
    drain(&mut connection);
    let mut damaged = c2h_data(0, 0, &pattern(512), 0b1100, dgst);
    damaged[100] ^= 1;
    connection.feed(&damaged).unwrap();
    connection
        .feed(&c2h_data(1, 0, &pattern(512), 0b1100, dgst))
        .unwrap();
    let statuses = [1, 2].map(|_| connection.next_done().unwrap().entry.status.status());
    assert_eq!(
        statuses,
        [Status::TRANSIENT_TRANSPORT_ERROR, Status::SUCCESS]
    );
}

#[test]
fn what_is_late_ends_the_connection_and_gives_the_buffers_back() {
    let mut connection = open(2, 0, 0, Dgst::default());
    read(&mut connection, 9, 512);
    drain(&mut connection);
    assert_eq!(connection.expire(Nanos::from_ms(999)), Ok(()));
    let late = connection.expire(Nanos::from_secs(1)).unwrap_err();
    assert!(matches!(
        late,
        ProtocolError::CommandTimeout {
            cid: 0,
            opcode: 2,
            ..
        }
    ));
    assert_eq!(
        drain(&mut connection),
        [0_u8; 0],
        "there is nothing to be told"
    );
    let (token, data) = connection.give_back().unwrap();
    assert_eq!((token, data.unwrap().len()), (9, 512));
    assert!(connection.give_back().is_none());
    let mut silent = Connection::new(Settings::admin(Nanos::from_secs(3)));
    assert_eq!(silent.expire(Nanos::from_secs(2)), Ok(()));
    assert_eq!(
        silent.expire(Nanos::from_secs(3)),
        Err(ProtocolError::OpenTimeout)
    );
}

/// Four reads and a write, answered in an order that interleaves them.
fn stream(dgst: Dgst) -> Vec<u8> {
    let data = pattern(3072);
    let mut stream = c2h_data(2, 0, &data[..1000], 0, dgst);
    stream.extend(c2h_data(0, 0, &data[..512], 0b0100, dgst));
    stream.extend(c2h_data(2, 1000, &data[1000..], 0b1100, dgst));
    stream.extend(capsule_resp(3, 0x181, 0, dgst));
    stream.extend(capsule_resp(0, 0, 0, dgst));
    stream.extend(c2h_data(1, 0, &data[..2048], 0b1100, dgst));
    stream.extend(capsule_resp(4, 0, 0x55, dgst));
    stream
}

fn loaded(dgst: Dgst) -> Connection {
    let mut connection = open(8, 4096, 0, dgst);
    for (token, bytes) in [(10, 512), (11, 2048), (12, 3072), (13, 512)] {
        read(&mut connection, token, bytes);
    }
    write(&mut connection, 14, pattern(512));
    drain(&mut connection);
    connection
}

fn results(connection: &mut Connection) -> Vec<(u64, u16, u64, Vec<u8>)> {
    let done = core::iter::from_fn(|| connection.next_done());
    done.map(|done| {
        let data = done.data.map_or(Vec::new(), |buf| buf.to_vec());
        (
            done.token,
            done.entry.status.bits(),
            done.entry.result(),
            data,
        )
    })
    .collect()
}

proptest! {
    #[test]
    fn it_does_not_matter_how_the_stream_is_cut(
        cuts in proptest::collection::vec(1_usize..700, 0..40),
        header: bool,
        data: bool,
    ) {
        let dgst = Dgst { header, data };
        let stream = stream(dgst);
        let mut whole = loaded(dgst);
        whole.feed(&stream).unwrap();
        let mut cut = loaded(dgst);
        let mut rest = &stream[..];
        for len in cuts {
            let (now, later) = rest.split_at(len.min(rest.len()));
            cut.feed(now).unwrap();
            rest = later;
        }
        cut.feed(rest).unwrap();
        let expected = results(&mut whole);
        prop_assert_eq!(expected.len(), 5);
        prop_assert_eq!(expected, results(&mut cut));
    }

    #[test]
    fn whatever_arrives_nothing_panics_and_no_buffer_is_lost(
        changes in proptest::collection::vec((0_usize..9000, any::<u8>()), 1..6),
        header: bool,
        data: bool,
    ) {
        let dgst = Dgst { header, data };
        let mut stream = stream(dgst);
        for (at, value) in changes {
            let len = stream.len();
            stream[at % len] = value;
        }
        let mut connection = loaded(dgst);
        let outcome = connection.feed(&stream);
        prop_assert_eq!(outcome.err(), connection.error().copied());
        drain(&mut connection);
        let mut tokens: Vec<u64> = results(&mut connection).iter().map(|done| done.0).collect();
        while let Some((token, data)) = connection.give_back() {
            prop_assert!(data.is_some());
            tokens.push(token);
        }
        tokens.sort_unstable();
        prop_assert_eq!(tokens, [10, 11, 12, 13, 14]);
    }

    #[test]
    fn noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut connection = Connection::new(Settings::admin(Nanos::from_secs(1)));
        drain(&mut connection);
        // Only 8 bytes and more can be wrong, and these cannot be right.
        let outcome = connection.feed(&noise);
        prop_assert!(outcome.is_err() || noise.len() < 128);
        drain(&mut connection);
    }
}
