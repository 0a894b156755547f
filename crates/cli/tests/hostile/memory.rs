//! Peers that want the server to hold more than it has.

use super::server::{Server, Victim, until};
use super::wire::{
    self, AUTHENTICATION_REQUIRED, CAPACITY_EXCEEDED, Connect, DATA, HOST, Host, R2T, Wire,
};

/// A write of 1 MiB whose data has to be asked for.
fn large_write(cid: u16, nsid: u32) -> Vec<u8> {
    let entry = wire::entry(0x01, cid, nsid, 1 << 20);
    wire::capsule(wire::about_blocks(entry, 0, 256), &[])
}

/// Bytes and blocks of a large command that the drive takes: 128 of them are the
/// 16 MiB of which a connection may have half.
const LARGE: u32 = 128 << 10;
const BLOCKS: u32 = LARGE / 4096;

/// A command about that much.
fn large(opcode: u8, cid: u16) -> Vec<u8> {
    let entry = wire::entry(opcode, cid, 1, LARGE);
    wire::capsule(wire::about_blocks(entry, 0, BLOCKS), &[])
}

/// Commands of 1 MiB of peers that have no key: each is refused, and none is
/// asked for its data.
#[test]
fn before_authentication_nothing_is_set_aside() {
    let mut server = Server::start(true, &[]);
    let victim = Victim::start(&server);
    let before = server.memory_kib("VmData");
    let mut wires = Vec::new();
    for _ in 0..24 {
        let mut wire = Wire::open([0, 2], server.address).unwrap();
        let connect = Connect::admin(&server.nqn, HOST);
        assert_eq!(wire.call(&connect.pdu()).unwrap().0.status, 0);
        for cid in 1..=8 {
            wire.send(&large_write(cid, 1)).unwrap();
        }
        for _ in 1..=8 {
            let pdu = wire.pdu().unwrap();
            assert_ne!(pdu[0], R2T, "data of a peer that nobody knows is asked for");
            let status = u16::from_le_bytes([pdu[22], pdu[23]]) >> 1 & 0x7ff;
            assert_eq!(status, AUTHENTICATION_REQUIRED);
        }
        wires.push(wire);
    }
    let grown = server.memory_kib("VmData").saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB for 24 connections");
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 1000);
    victim.end();
    assert!(server.is_alive());
}

/// A command that would fail is not asked for its data.
#[test]
fn a_command_that_fails_is_not_asked_for_data() {
    let server = Server::start(false, &[]);
    let mut host = server.host();
    let mut unknown = wire::entry(0xc1, 1, 1, 1 << 20);
    unknown[40] = 1;
    let wrong_length = wire::about_blocks(wire::entry(0x01, 2, 1, 1 << 20), 0, 8);
    for (what, pdu, status) in [
        (
            "an opcode that there is not",
            wire::capsule(unknown, &[]),
            0x001,
        ),
        ("a namespace that there is not", large_write(3, 77), 0x00b),
        (
            "a length that is not the command's",
            wire::capsule(wrong_length, &[]),
            0x00f,
        ),
    ] {
        host.io.send(&pdu).unwrap();
        let (response, _) = host
            .io
            .response()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(response.status, status, "{what}");
    }
}

/// Hosts that ask for all the memory there is, and do nothing with it: others
/// go on with small commands, and get room for large ones in the end.
#[test]
fn hosts_that_hoard_memory_wait_for_each_other() {
    let bounds = "--max-memory 32MiB --max-memory-per-host 32MiB --max-memory-per-connection 8MiB";
    let args: Vec<&str> = bounds.split(' ').chain(["--stall", "3s"]).collect();
    let mut server = Server::start(false, &args);
    let victim = Victim::start(&server);
    let mut hoarders: Vec<Host> = (0..12)
        .map(|n| Host::connect([1, n], server.address, &server.nqn, 128).unwrap())
        .collect();
    let before = server.memory_kib("VmData");
    for host in &mut hoarders {
        for cid in 1..=100 {
            host.io.send(&large(0x01, cid)).unwrap();
        }
    }
    // Those that got room are asked for their data, and no more than have room.
    assert_eq!(hoarders[0].io.pdu().unwrap()[0], R2T);
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 2000);
    let grown = server.memory_kib("VmData").saturating_sub(before);
    assert!(grown < 128 << 10, "{grown} KiB where 32 MiB are allowed");
    // One more, which has to wait until the hoarders are let go for doing nothing.
    let mut patient = server.host();
    patient.io.send(&large(0x01, 1)).unwrap();
    let r2t = patient.io.pdu().unwrap();
    assert_eq!(r2t[0], R2T);
    let tag = u16::from_le_bytes([r2t[10], r2t[11]]);
    let data = wire::h2c_data(1, tag, &vec![3; LARGE as usize]);
    let (response, _) = patient.io.call(&data).unwrap();
    assert_eq!(response.status, 0);
    victim.end();
    assert!(server.is_alive());
}

/// Hosts that ask for data and do not take it.
#[test]
fn data_that_nobody_takes_is_bounded() {
    let bounds = "--max-memory 32MiB --max-memory-per-host 32MiB --max-memory-per-connection 8MiB";
    let args: Vec<&str> = bounds.split(' ').collect();
    let server = Server::start(false, &args);
    let victim = Victim::start(&server);
    let before = server.memory_kib("VmRSS");
    let mut hoarders: Vec<Host> = (0..12)
        .map(|n| Host::connect([1, n], server.address, &server.nqn, 128).unwrap())
        .collect();
    for host in &mut hoarders {
        for cid in 1..=100 {
            host.io.send(&large(0x02, cid)).unwrap();
        }
    }
    assert_eq!(hoarders[0].io.pdu().unwrap()[0], DATA);
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 2000);
    let grown = server.memory_kib("VmRSS").saturating_sub(before);
    assert!(grown < 160 << 10, "{grown} KiB where 32 MiB are allowed");
    victim.end();
}

/// Blocks of a zone.
const ZONE: u64 = 8192;

/// Fills zones from the second on until a write fails, and returns how many bytes there was
/// room for. A write takes no more memory than a connection has of its own.
fn fill(host: &mut Host) -> u64 {
    let data = [7; 64 << 10];
    let blocks = data.len() as u32 / 4096;
    let mut slba = ZONE;
    loop {
        assert!(slba < 64 * ZONE, "2 GiB fit into less");
        let write = wire::in_capsule(0x01, host.io.next_cid(), 1, data.len() as u32);
        let write = wire::about_blocks(write, slba, blocks);
        let (response, _) = host.io.call(&wire::capsule(write, &data)).unwrap();
        match response.status {
            0 => slba += u64::from(blocks),
            CAPACITY_EXCEEDED => return (slba - ZONE) * 4096,
            other => panic!("block {slba}: status {other:#x}"),
        }
    }
}

/// Whatever address space a server is given, hosts that want all of it get a failing status,
/// or it says that it is too little. It never ends.
#[test]
fn limits_of_memory_end_no_server() {
    for kib in (75_000..=500_000).step_by(25_000) {
        let started = Server::start_within(Some(kib), false, &["--web", "127.0.0.1:0"]);
        let mut server = match started {
            Ok(server) => server,
            Err((status, said)) => {
                assert_eq!(status.code(), Some(4), "{kib} KiB: {said}");
                assert!(said.contains("this process may have"), "{kib} KiB: {said}");
                assert!(kib < 200_000, "{kib} KiB: {said}");
                continue;
            }
        };
        let connect = |source| Host::connect(source, server.address, &server.nqn, 128).unwrap();
        let mut hoarders: Vec<Host> = (0..48).map(|n| connect([1 + n % 3, n])).collect();
        for (index, host) in hoarders.iter_mut().enumerate() {
            // Half of them send no data, and half take none.
            let opcode = [0x01, 0x02][index % 2];
            for cid in 1..=120 {
                host.io.send(&large(opcode, cid)).unwrap();
            }
        }
        let mut writer = connect([5, 1]);
        let room = fill(&mut writer);
        assert!(room >= 4 << 20, "{kib} KiB: room for {room} bytes");
        // There is memory for those who come, and for all but the data of the drive.
        for n in 0..12 {
            connect([6, n]).read().unwrap();
        }
        writer.read().unwrap();
        let status = writer.write(1, 1000 * ZONE, &[9; 4096]);
        assert_eq!(status, CAPACITY_EXCEEDED, "{kib} KiB");
        assert!(server.is_alive(), "{kib} KiB: {}", server.logs());
    }
}

/// The map of the layer is four bytes a block, 30 MiB for this drive: it is there, or refused
/// before it is made, by a line that says what to do.
#[test]
fn a_map_that_takes_too_much_memory_is_refused() {
    let (mut served, mut refused) = (0, 0);
    for kib in (100_000..=300_000).step_by(25_000) {
        for share in [&[][..], &["--ftl-map-share", "10%"]] {
            let args = [&["--ftl"], share].concat();
            match Server::start_within(Some(kib), false, &args) {
                Ok(mut server) => {
                    let mut host = server.host();
                    assert_eq!(host.write(1, 7, &[3; 4096]), 0, "{kib} KiB {share:?}");
                    host.read().unwrap();
                    assert!(server.is_alive(), "{kib} KiB: {}", server.logs());
                    served += 1;
                }
                Err((status, said)) => {
                    assert_eq!(status.code(), Some(4), "{kib} KiB {share:?}: {said}");
                    let of_map = said.contains("--ftl-map-share PERCENT");
                    let of_all = said.contains("this process may have");
                    assert!(of_map || of_all, "{kib} KiB {share:?}: {said}");
                    refused += usize::from(of_map && said.contains("takes 30 MiB"));
                }
            }
        }
    }
    assert!(
        served > 6 && refused > 0,
        "{served} served, {refused} refused"
    );
}
