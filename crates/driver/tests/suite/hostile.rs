//! What a controller must not do, and what it is told then.

use zonelab_driver::tcp::{Connection, ProtocolError};
use zonelab_driver::{Identity, Namespace};
use zonelab_nvme::identify::{
    CommandSet, IdentifyController, IdentifyNamespace, IdentifyNamespaceZns, LbaFormat,
};
use zonelab_nvme::property::Capabilities;
use zonelab_nvme::tcp::FatalErrorStatus;
use zonelab_nvme::zerocopy::FromZeros;

use crate::bytes::*;
use crate::wire::*;

const PLAIN: Dgst = Dgst {
    header: false,
    data: false,
};

/// A connection with a read of 1024 bytes (CID 0) and a write of 4096 (CID 1),
/// both sent.
fn loaded() -> Connection {
    let mut connection = open(4, 0, 0, PLAIN);
    read(&mut connection, 1, 1024);
    write(&mut connection, 2, pattern(4096));
    drain(&mut connection);
    connection
}

/// Feeds a PDU that must be refused, checks what the controller is told, and
/// returns the error.
fn refused(connection: &mut Connection, pdu: &[u8], fes: u16) -> ProtocolError {
    let error = connection.feed(pdu).unwrap_err();
    let told = drain(connection);
    assert_eq!(told[..4], [0x02, 0, 24, 0], "{error}: an H2CTermReq");
    assert_eq!(told[4..8], (told.len() as u32).to_le_bytes());
    assert_eq!(told[8..10], fes.to_le_bytes(), "{error}");
    assert_eq!(
        told[24..],
        pdu[..told.len() - 24],
        "{error}: the header in error"
    );
    assert_eq!(connection.feed(pdu), Err(error), "it stays refused");
    error
}

#[test]
fn an_r2t_asks_for_the_next_bytes_of_a_write_and_no_others() {
    for (offset, len) in [
        (0, 4097),
        (4096, 1),
        (1, 4095),
        (u32::MAX, 1),
        (u32::MAX, u32::MAX),
        (0, u32::MAX),
    ] {
        let error = refused(&mut loaded(), &r2t(1, 9, offset, len, PLAIN), 0x04);
        assert!(matches!(
            error,
            ProtocolError::DataOutOfRange {
                cid: 1,
                next: 0,
                ..
            }
        ));
    }
    refused(&mut loaded(), &r2t(1, 9, 0, 0, PLAIN), 0x01);
    refused(&mut loaded(), &r2t(0, 9, 0, 512, PLAIN), 0x02);
    refused(&mut loaded(), &r2t(2, 9, 0, 512, PLAIN), 0x01);
    refused(&mut loaded(), &r2t(0xffff, 9, 0, 512, PLAIN), 0x01);
}

#[test]
fn bytes_are_asked_for_once_and_one_r2t_at_a_time() {
    let mut connection = loaded();
    connection.feed(&r2t(1, 9, 0, 512, PLAIN)).unwrap();
    drain(&mut connection);
    refused(&mut connection, &r2t(1, 9, 0, 512, PLAIN), 0x04);

    let mut connection = open(4, 0, 0, PLAIN);
    write(&mut connection, 2, pattern(16_384));
    drain(&mut connection);
    connection.feed(&r2t(0, 9, 0, 8192, PLAIN)).unwrap();
    let error = refused(&mut connection, &r2t(0, 9, 8192, 512, PLAIN), 0x05);
    assert_eq!(error, ProtocolError::R2tLimit { cid: 0 });
}

#[test]
fn data_comes_in_order_and_inside_the_buffer() {
    let data = pattern(2048);
    let c2h = |offset, len: usize, flags| c2h_data(0, offset, &data[..len], flags, PLAIN);
    refused(&mut loaded(), &c2h(512, 512, 4), 0x04);
    refused(&mut loaded(), &c2h(0, 1025, 4), 0x04);
    refused(&mut loaded(), &c2h(u32::MAX, 1, 4), 0x04);
    // LAST_PDU too early, too late; SUCCESS without it.
    refused(&mut loaded(), &c2h(0, 512, 0b0100), 0x01);
    refused(&mut loaded(), &c2h(0, 1024, 0), 0x01);
    refused(&mut loaded(), &c2h(0, 512, 0b1000), 0x01);
    // For a write; for nobody.
    refused(&mut loaded(), &c2h_data(1, 0, &data[..512], 0, PLAIN), 0x02);
    refused(&mut loaded(), &c2h_data(3, 0, &data[..512], 0, PLAIN), 0x01);
}

#[test]
fn nothing_is_answered_before_it_is_sent() {
    let mut connection = open(4, 0, 0, PLAIN);
    read(&mut connection, 1, 512);
    refused(&mut connection, &capsule_resp(0, 0, 0, PLAIN), 0x02);
    // A part of the capsule is sent: the connection just ends.
    let mut connection = open(4, 0, 0, PLAIN);
    read(&mut connection, 1, 512);
    connection.sent(10);
    assert!(connection.feed(&capsule_resp(0, 0, 0, PLAIN)).is_err());
    assert!(!connection.has_output());
}

#[test]
fn every_field_of_a_header_is_looked_at() {
    let good = c2h_data(0, 0, &pattern(1024), 0b1100, PLAIN);
    let changed = |at: usize, value: u8| {
        let mut pdu = good.clone();
        pdu[at] = value;
        pdu
    };
    for (at, value, offset) in [
        (0, 0x08, 0),   // no such type
        (0, 0x06, 0),   // a type of hosts
        (1, 0b1101, 1), // a header digest that was not agreed on
        (1, 0b1110, 1), // a data digest
        (2, 28, 2),     // header length
        (3, 0, 3),      // data offset
        (3, 20, 3),     // data in the header
        (3, 26, 3),     // not aligned
        (4, 23, 4),     // shorter than its header
        (16, 1, 16),    // data length
    ] {
        let mut connection = loaded();
        let pdu = changed(at, value);
        // 23 bytes in all, with the next byte of the length cleared, too.
        let pdu = if (at, value) == (4, 23) {
            let mut p = pdu;
            p[5] = 0;
            p
        } else {
            pdu
        };
        let error = refused(&mut connection, &pdu, 0x01);
        let termination = error.termination().unwrap();
        assert_eq!(
            termination,
            (FatalErrorStatus::INVALID_PDU_HEADER_FIELD, offset),
            "{error}"
        );
    }
    let mut long = capsule_resp(0, 0, 0, PLAIN);
    long[4] = 28;
    refused(&mut loaded(), &long, 0x01);
    refused(&mut loaded(), &capsule_resp(7, 0, 0, PLAIN), 0x01);
    refused(&mut loaded(), &ic_resp(0, PLAIN, 4096), 0x02);
}

#[test]
fn a_connection_response_must_be_one_that_was_asked_for() {
    let fresh = || {
        let settings = zonelab_driver::tcp::Settings::admin(zonelab_device::Nanos::from_secs(1));
        let mut connection = Connection::new(settings);
        drain(&mut connection);
        connection
    };
    let with = |at: usize, value: u8| {
        let mut pdu = ic_resp(0, PLAIN, 4096);
        pdu[at] = value;
        pdu
    };
    for (at, value) in [(8, 1), (10, 32), (11, 1), (11, 2), (13, 0), (12, 2)] {
        refused(&mut fresh(), &with(at, value), 0x01);
    }
    refused(&mut fresh(), &capsule_resp(0, 0, 0, PLAIN), 0x02);
}

#[test]
fn a_header_that_does_not_match_its_digest_ends_the_connection() {
    let dgst = Dgst {
        header: true,
        data: false,
    };
    let mut connection = open(4, 0, 0, dgst);
    read(&mut connection, 1, 512);
    drain(&mut connection);
    let mut pdu = capsule_resp(0, 0, 0, dgst);
    pdu[24] ^= 0x80;
    let error = connection.feed(&pdu).unwrap_err();
    assert!(matches!(error, ProtocolError::HeaderDigest { .. }));
    let told = drain(&mut connection);
    assert_eq!(told[8..10], [3, 0]);
    assert_eq!(told[10..14], pdu[24..28], "the digest that was received");
}

#[test]
fn the_reason_of_a_controller_that_ends_the_connection_is_kept() {
    let mut connection = loaded();
    let mut pdu = vec![0x03, 0, 24, 0, 26, 0, 0, 0, 4, 0, 0x44, 0, 0, 0];
    pdu.resize(26, 0);
    let error = connection.feed(&pdu).unwrap_err();
    let expected = ProtocolError::Terminated {
        fes: FatalErrorStatus::DATA_TRANSFER_OUT_OF_RANGE,
        fei: 0x44,
    };
    assert_eq!(error, expected);
    assert!(!connection.has_output());
}

/// A controller with one zoned namespace: blocks and blocks of a zone, the exponent of its
/// block size, the capacity of its first zone.
fn zoned(nsze: u64, zsze: u64, lbads: u8, zcap: Option<u64>) -> Identity {
    let mut nvm = Box::new(IdentifyNamespace::new_zeroed());
    nvm.nsze = nsze.into();
    nvm.lbaf[0] = LbaFormat::default().with_lbads(lbads);
    let mut zns = Box::new(IdentifyNamespaceZns::new_zeroed());
    zns.lbafe[0].zsze = zsze.into();
    Identity {
        cap: Capabilities::new_zeroed(),
        controller: Box::new(IdentifyController::new_zeroed()),
        zoned: None,
        namespaces: vec![Namespace {
            nsid: 1,
            csi: CommandSet::ZNS,
            nvm,
            zns: Some(zns),
            zone_capacity_lbas: zcap,
        }],
    }
}

/// Whatever a controller says of its zones: what hosts multiply, allocate or divide by is
/// within bounds, or the controller is refused with the field.
#[test]
fn sizes_that_hosts_cannot_count_with_are_refused() {
    let none = None;
    for (nsze, zsze, lbads, zcap, field) in [
        (1 << 20, 1 << 10, 12, none, ""),
        (1 << 20, 1 << 10, 12, Some(1 << 10), ""),
        ((1 << 51) - 1, 1 << 40, 12, none, ""),
        (1 << 24, 1, 9, none, ""),
        (1 << 51, 1 << 40, 12, none, "NSZE "),
        (1 << 63, 1 << 40, 9, none, "NSZE "),
        (u64::MAX, u64::MAX, 9, none, "NSZE "),
        (u64::MAX, 1, 9, none, "NSZE "),
        (1 << 40, 0, 9, none, "ZSZE "),
        (1 << 40, 1 << 41, 9, none, "ZSZE "),
        (1 << 40, 1 << 63, 9, none, "ZSZE "),
        (1 << 40, u64::MAX, 9, none, "ZSZE "),
        ((1 << 24) + 1, 1, 9, none, "NSZE / ZSZE "),
        (1 << 50, 1, 9, none, "NSZE / ZSZE "),
        (1 << 50, 1 << 20, 9, none, "NSZE / ZSZE "),
        (1 << 20, 1 << 10, 12, Some(0), "ZCAP "),
        (1 << 20, 1 << 10, 12, Some((1 << 10) + 1), "ZCAP "),
        (1 << 20, 1 << 10, 12, Some(1 << 63), "ZCAP "),
        (1 << 20, 1 << 10, 12, Some(u64::MAX), "ZCAP "),
        (1 << 20, 1 << 10, 8, none, "LBADS "),
        (1 << 20, 1 << 10, 32, none, "LBADS "),
        (1 << 20, 1 << 10, 255, none, "LBADS "),
    ] {
        let at = format!("NSZE {nsze}, ZSZE {zsze}, LBADS {lbads}, ZCAP {zcap:?}");
        match zoned(nsze, zsze, lbads, zcap).device_info() {
            Ok(info) => {
                assert_eq!(field, "", "{at}");
                let of = info.namespaces[0].zoned.unwrap();
                assert_eq!(u64::from(of.zones), nsze / zsze, "{at}");
            }
            Err(error) => {
                let says = format!("the controller reports {field}");
                assert!(
                    !field.is_empty() && error.to_string().starts_with(&says),
                    "{at}: {error}"
                );
            }
        }
    }
}

#[test]
fn random_write_areas_that_cannot_be_are_refused() {
    for (size, granularity, field) in [
        (64_u16, 16_u16, ""),
        (0, 16, "ZRWASZ"),
        (u16::MAX, 16, "ZRWASZ"),
        (64, 0, "ZRWAFG"),
        (64, 65, "ZRWAFG"),
    ] {
        let mut identity = zoned(1 << 20, 1 << 10, 12, None);
        let zns = identity.namespaces[0].zns.as_mut().unwrap();
        zns.ozcs = zns.ozcs.with_zrwasup(true);
        zns.zrwasz = size.into();
        zns.zrwafg = granularity.into();
        match identity.device_info() {
            Ok(_) => assert_eq!(field, "", "{size}, {granularity}"),
            Err(error) => assert!(
                error.to_string().contains(field) && !field.is_empty(),
                "{error}"
            ),
        }
    }
}
