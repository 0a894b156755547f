//! Connections that are reset in every phase of a session.

use std::io;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::server::{Server, Victim, until};
use super::wire::{self, Connect, HOST, Host, Wire};

/// Phases of a session that any peer can reach.
const PHASES: u64 = 12;
/// Phases of a host with an I/O queue.
const IO_PHASES: u64 = 5;
/// Sessions that are open at a time.
const OPEN: usize = 24;

/// A session up to one of the phases. An error is a session that the server
/// ended first, to make room: it is in some phase too.
fn begin(server: &Server, phase: u64) -> io::Result<Vec<Wire>> {
    let nqn = &server.nqn;
    let mut wire = Wire::to(server.address)?;
    match phase {
        0 => (),
        1 => wire.send(&wire::ic_req()[..50])?,
        2 => wire.send(&wire::term_req())?,
        3 => wire.send(b"GET / HTTP/1.1\r\n\r\n")?,
        4 => wire.send(&wire::ic_req())?,
        _ => {
            wire.send(&wire::ic_req())?;
            wire.pdu()?;
        }
    }
    match phase {
        6 => wire.send(&Connect::admin("nqn.2026-01.org.example:no", HOST).pdu())?,
        7 => wire.send(&Connect::admin(nqn, HOST).pdu()[..200])?,
        8 => wire.send(&Connect::admin(nqn, HOST).pdu())?,
        9 | 10 => {
            wire.call(&Connect::admin(nqn, HOST).pdu())?;
            // In authentication, if there is one.
            let _ = wire.negotiate(u8::from(phase == 10));
        }
        11 => {
            wire.call(&Connect::admin(nqn, HOST).pdu())?;
            wire.send(&wire::term_req())?;
        }
        _ => (),
    }
    Ok(vec![wire])
}

/// A session with an I/O queue.
fn begin_io(server: &Server, phase: u64) -> io::Result<Vec<Wire>> {
    let Host { admin, mut io } = Host::connect([0, 1], server.address, &server.nqn, 64)?;
    let write = |cid, slba| wire::about_blocks(wire::entry(0x01, cid, 1, 65536), slba, 16);
    match phase {
        // Reads whose data nobody takes.
        0 => {
            for cid in 1..=32 {
                let read = wire::entry(0x02, cid, 1, 65536);
                io.send(&wire::capsule(wire::about_blocks(read, 0, 16), &[]))?;
            }
        }
        // An R2T, some data of it, all of it.
        1..=3 => {
            io.send(&wire::capsule(write(1, 0), &[]))?;
            let r2t = io.pdu()?;
            let tag = u16::from_le_bytes([r2t[10], r2t[11]]);
            let data = wire::h2c_data(1, tag, &[9; 65536]);
            let sent = [0, 1000, data.len()][phase as usize - 1];
            io.send(&data[..sent])?;
        }
        // Half a capsule.
        _ => io.send(&wire::capsule(write(1, 0), &[])[..40])?,
    }
    Ok(vec![io, admin])
}

/// Begins and resets sessions in a random order, and looks at what is left.
fn reset_in_every_phase(has_keys: bool, sessions: usize, seed: u64) {
    let other = std::env::var("ZONELAB_HOSTILE_SEED").ok();
    let seed = other.map_or(seed, |text| text.parse().expect("a seed is a number"));
    println!("replay: ZONELAB_HOSTILE_SEED={seed} cargo test -p zonelab --test hostile resets");
    let server = Server::start(has_keys, &[]);
    let victim = Victim::start(&server);
    until("a read", || victim.reads() > 0);
    let before = server.descriptors();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut open: Vec<Vec<Wire>> = Vec::new();
    let mut begun = [0; (PHASES + IO_PHASES) as usize];
    for _ in 0..sessions {
        let phases = PHASES + if has_keys { 0 } else { IO_PHASES };
        let phase = rng.next_u64() % phases;
        let session = match phase.checked_sub(PHASES) {
            None => begin(&server, phase),
            Some(phase) => begin_io(&server, phase),
        };
        begun[phase as usize] += 1;
        // Refused by a server that has no place: that would be what is looked for.
        open.push(session.unwrap_or_default());
        while open.len() > OPEN || rng.next_u64() % 3 == 0 && !open.is_empty() {
            let at = rng.next_u64() as usize % open.len();
            for wire in open.swap_remove(at) {
                if rng.next_u64() % 4 == 0 {
                    wire.half_close();
                }
                wire.reset();
            }
        }
    }
    open.drain(..).flatten().for_each(Wire::reset);
    let reads = victim.reads();
    until("the victim goes on", || victim.reads() > reads + 100);
    until("all descriptors are closed", || {
        server.descriptors() <= before
    });
    victim.end();
    until("no connection is left", || {
        server.descriptors() + 2 <= before
    });
    println!("sessions by phase: {begun:?}");
    // A loop that waits uses next to nothing; one that spins uses all it gets.
    std::thread::sleep(Duration::from_secs(1));
    let ticks = server.ticks();
    std::thread::sleep(Duration::from_secs(3));
    let used = server.ticks() - ticks;
    assert!(used < 30, "{used} of 300 ticks while nothing happens");
}

#[test]
fn sockets_reset_in_every_phase_leave_nothing_behind() {
    reset_in_every_phase(false, 2500, 1601);
}

#[test]
fn sockets_reset_before_authentication_leave_nothing_behind() {
    reset_in_every_phase(true, 2500, 1602);
}
