//! What a host must not do, one thing at a time.

use std::time::Duration;

use super::server::{Server, Victim, until};
use super::wire::{self, C2H_TERM_REQ, Connect, HOST, INVALID_PARAMETERS, SHUTDOWN, Wire};

/// Names of hosts have a form.
#[test]
fn a_host_needs_a_name_that_is_one() {
    let server = Server::start(false, &[]);
    for name in [
        "",
        "host",
        "nqn.",
        "nqn.test",
        "nqn.2026-13.org.example:host",
        "nqn.26-01.org.example",
        "nqn.2026-01.",
        "nqn.2026-01..example",
        "nqn.2026-01.org.exa mple",
        "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeef",
        "nqn.2014-08.org.nvmexpress:uuid:g0112233-4455-6677-8899-aabbccddeeff",
    ] {
        let mut wire = Wire::open([0, 1], server.address).unwrap();
        let (response, _) = wire.call(&Connect::admin(&server.nqn, name).pdu()).unwrap();
        assert_eq!(response.status, INVALID_PARAMETERS, "{name:?}");
        assert_eq!(response.dw0, 1 << 16 | 512, "{name:?}: HOSTNQN is to blame");
    }
    for name in [HOST, "nqn.2016-06.io.spdk:host1", "nqn.2026-01.org.example"] {
        let mut wire = Wire::open([0, 1], server.address).unwrap();
        let (response, _) = wire.call(&Connect::admin(&server.nqn, name).pdu()).unwrap();
        assert_eq!(response.status, 0, "{name:?}");
    }
}

/// A controller that was shut down carries nothing out.
#[test]
fn nothing_is_carried_out_after_a_shutdown() {
    let server = Server::start(false, &[]);
    let mut host = server.host();
    assert_eq!(host.admin.identify(1, 0).unwrap().0.status, 0);
    host.admin.set_cc(wire::ENABLED | SHUTDOWN).unwrap();
    assert_ne!(host.admin.identify(1, 0).unwrap().0.status, 0);
    assert!(host.read().is_err());
}

/// A PDU of which a byte comes now and then, by a host without keep alive.
#[test]
fn a_pdu_that_never_ends_is_ended() {
    let server = Server::start(false, &["--stall", "1s"]);
    let victim = Victim::start(&server);
    let mut host = server.host();
    let read = wire::capsule(wire::about_blocks(wire::entry(0x02, 1, 1, 4096), 0, 1), &[]);
    let mut stream = host.io.stream.try_clone().unwrap();
    let drip = std::thread::spawn(move || {
        use std::io::Write;
        for byte in &read[..read.len() - 1] {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    assert!(host.io.is_closed(), "it is still open");
    drip.join().unwrap();
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 100);
    victim.end();
}

/// Connections that the server has ended, whose peers neither read what they were told nor close.
/// Neither a stall nor a silence is what ends them: those may last ten minutes here.
#[test]
fn an_ended_connection_that_its_peer_keeps_open_is_closed() {
    let server = Server::start(false, &["--stall", "600s"]);
    let victim = Victim::start(&server);
    let before = server.descriptors();
    let keepers: Vec<Wire> = (0..16)
        .map(|_| {
            let mut wire = Wire::open([0, 1], server.address).unwrap();
            wire.send(&wire::h2c_data(1, 1, &[0; 512])).unwrap();
            let told = wire.pdu().unwrap();
            assert_eq!(told[0], C2H_TERM_REQ, "data that nobody asked for");
            wire
        })
        .collect();
    until("their descriptors come back", || {
        server.descriptors() == before
    });
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 100);
    victim.end();
    drop(keepers);
}

/// Peers that vanish without a word are found by the system.
#[test]
fn accepted_sockets_are_kept_alive() {
    let server = Server::start(false, &[]);
    let _host = server.host();
    let local = format!("0100007F:{:04X}", server.address.port());
    let timers = || -> Vec<String> {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields[1] == local && fields[3] == "01")
            .map(|fields| fields[5][..2].to_owned())
            .collect()
    };
    // 02 is that of keep-alive; 01 is there while something is not acknowledged.
    until("keep-alive timers", || timers() == ["02", "02"]);
}
