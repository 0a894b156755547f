//! Many of something, and what a host beside it sees.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::server::{Attack, Server, Victim, until};
use super::wire::{self, Connect, DISCOVERY, HOST, Host, INVALID_FIELD, Wire};

/// Connections that say nothing, from one address and from many.
#[test]
fn silent_connections_keep_nobody_out() {
    let server = Server::start(true, &[]);
    let mut silent = Vec::new();
    for n in 0..600_u32 {
        let source = [1, if n < 300 { 0 } else { n as u8 }];
        silent.push(Wire::from(source, server.address));
    }
    // One from where they come from, and one from elsewhere.
    for source in [[1, 0], [9, 9]] {
        let mut host = Host::connect(source, server.address, &server.nqn, 32).unwrap();
        host.read().unwrap();
    }
}

/// Many addresses with a single connection each, which is replaced over and over.
#[test]
fn connections_that_are_renewed_keep_nobody_out() {
    let server = Server::start(true, &[]);
    let address = server.address;
    let all = (0..64).map(|number| Wire::from([5, number], address).ok());
    let silent: VecDeque<(u8, Option<Wire>)> = (0..).zip(all).collect();
    let silent = Arc::new(Mutex::new(silent));
    let attack = Attack::start(1, move |_| {
        let mut silent = silent.lock().unwrap();
        let number = silent.front().unwrap().0;
        silent.push_back((number, Wire::from([5, number], address).ok()));
        silent.pop_front();
        // Fifty times a second each: some come while a host logs in.
        std::thread::sleep(Duration::from_micros(300));
        1
    });
    until("connections are renewed", || attack.done() > 0);
    let log_in = |number: u8| {
        let host = Host::connect([9, 10 + number], address, &server.nqn, 32);
        host.and_then(|mut host| host.read()).is_ok()
    };
    // On a busy machine a host can come to its Connect command later than 64 others come: it
    // tries again, as hosts do.
    let logins = (0..25).filter(|number| (0..5).any(|_| log_in(*number)));
    let logins = logins.count();
    attack.end();
    assert_eq!(logins, 25);
}

/// Discovery controllers without keep alive, which nobody needs a key for.
#[test]
fn discovery_keeps_nobody_out() {
    let server = Server::start(true, &[]);
    let mut early = Host::connect([0, 1], server.address, &server.nqn, 32).unwrap();
    let mut discovering = Vec::new();
    for n in 0..200_u8 {
        let mut wire = Wire::open([2, n % 50], server.address).unwrap();
        let (response, _) = wire.call(&Connect::admin(DISCOVERY, HOST).pdu()).unwrap();
        assert_eq!(response.status, 0, "the newest gets in");
        discovering.push(wire);
    }
    let mut late = Host::connect([2, 0], server.address, &server.nqn, 32).unwrap();
    late.read().unwrap();
    early.read().unwrap();
    // A new one still finds the drive.
    let mut wire = Wire::open([3, 3], server.address).unwrap();
    wire.call(&Connect::admin(DISCOVERY, HOST).pdu()).unwrap();
    wire.set_cc(wire::ENABLED & !(7 << 4)).unwrap();
    assert_eq!(wire.identify(1, 0).unwrap().0.status, 0);
}

/// Diffie-Hellman with the largest group, over and over, by peers without a key.
#[test]
fn key_exchanges_do_not_stop_the_loop() {
    let server = Server::start(true, &[]);
    let victim = Victim::start(&server);
    until("a read", || victim.reads() > 0);
    let (address, nqn) = (server.address, server.nqn.clone());
    let attack = Attack::start(3, move |number| {
        let exchange = || {
            let mut wire = Wire::open([4, number], address)?;
            wire.call(&Connect::admin(&nqn, HOST).pdu())?;
            wire.negotiate(5)
        };
        u64::from(exchange().is_ok_and(|response| response.status == 0))
    });
    until("a key exchange", || attack.done() > 0);
    let (reads, exchanges) = (victim.reads(), attack.done());
    until("key exchanges", || attack.done() >= exchanges + 20);
    let exchanges = attack.done() - exchanges;
    let reads = victim.reads() - reads;
    attack.end();
    victim.end();
    println!("{reads} reads beside {exchanges} key exchanges");
    // In the loop, a read would wait for an exchange of each attacker.
    assert!(
        reads > 20 * exchanges,
        "{reads} reads, {exchanges} key exchanges"
    );
}

/// Commands that move no data but are about as many blocks as fields allow.
#[test]
fn large_commands_without_data_are_bounded() {
    let server = Server::start(false, &[]);
    let mut host = server.host();
    let (response, limits) = host.admin.identify(6, 0).unwrap();
    assert_eq!(response.status, 0);
    let pages = |power: u8| 1_u32 << power;
    let (vsl, wzsl, dmrl) = (limits[0], limits[1], limits[3]);
    assert!(
        (1..=8).contains(&vsl) && (1..=8).contains(&wzsl) && dmrl > 0,
        "{limits:?}"
    );
    for (opcode, most) in [(0x0c, pages(vsl)), (0x08, pages(wzsl))] {
        let cid = host.io.next_cid();
        let entry = wire::about_blocks(wire::entry(opcode, cid, 1, 0), 0, most + 1);
        let (response, _) = host.io.call(&wire::capsule(entry, &[])).unwrap();
        assert_eq!(response.status, INVALID_FIELD);
    }
    let victim = Victim::start(&server);
    until("a read", || victim.reads() > 0);
    let (address, nqn, most) = (server.address, server.nqn.clone(), pages(vsl));
    let attack = Attack::start(2, move |number| {
        let Ok(mut host) = Host::connect([5, number], address, &nqn, 128) else {
            return 0;
        };
        for cid in 1..=64 {
            let verify = wire::about_blocks(wire::entry(0x0c, cid, 1, 0), 0, most);
            host.io.send(&wire::capsule(verify, &[])).unwrap();
        }
        for _ in 1..=64 {
            host.io.response().unwrap();
        }
        64
    });
    let reads = victim.reads();
    until("verified blocks", || attack.done() >= 2048);
    let reads = victim.reads() - reads;
    let verified = attack.done();
    attack.end();
    victim.end();
    println!("{reads} reads beside {verified} commands");
    assert!(reads * 64 > verified, "{reads} reads, {verified} commands");
}

/// Nobody can fill a disk with what is said of them.
#[test]
fn logs_are_bounded() {
    let server = Server::start(false, &[]);
    for n in 0..3000_u32 {
        let mut wire = Wire::from([10 + (n >> 8 & 7) as u8, n as u8], server.address).unwrap();
        let _ = wire.send(b"GET / HTTP/1.1\r\n\r\n");
        wire.reset();
    }
    let mut host = server.host();
    host.read().unwrap();
    let lines = server.logs().lines().count();
    println!("{lines} lines");
    assert!(lines < 2000, "{lines} lines about 3000 connections");
    assert!(lines > 10, "something is said: {lines} lines");
}
