//! Whoever else reaches the server: garbage, half PDUs, connections that stall, lengths that are
//! lies, and many at once.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use zonelab_device::Nanos;

use super::arena::Arena;
use super::counts::{add, count};
use super::dice::Dice;
use super::stage::{Beat, Phase, Stage};
use super::wire::{self, Connect, DISCOVERY, HOST, Host, Wire};

/// Connections that a neighbour keeps open at a time.
const HELD: usize = 40;
/// Connections of a burst.
const BURST: u64 = 60;
/// Between two things that a neighbour does, in milliseconds.
const SPAN_MS: u64 = 60;
/// How long an answer may take to come that the server may well never give.
const ANSWER: Duration = Duration::from_secs(3);
/// Commands that are sent at once by who does not take what they bring.
const UNTAKEN: u16 = 24;

/// One that means harm.
pub(crate) struct Neighbour<'a> {
    arena: &'a Arena,
    stage: &'a Stage,
    /// Connections come from 127.0.X.Y with this as X: hosts come from elsewhere.
    network: u8,
    dice: Dice,
    held: Vec<Wire>,
}

impl<'a> Neighbour<'a> {
    pub(crate) fn new(arena: &'a Arena, stage: &'a Stage, number: u8) -> Self {
        Self {
            arena,
            stage,
            network: 10 + number,
            dice: Dice::new(stage.seed, "neighbour", number.into()),
            held: Vec::new(),
        }
    }

    /// Disturbs until all is over.
    pub(crate) fn run(&mut self, beat: &Beat) {
        loop {
            match self.stage.phase() {
                Phase::End => return,
                Phase::Calm => {
                    self.held.clear();
                    beat.rest();
                }
                Phase::Storm { .. } => {
                    let action = self.dice.below(11);
                    let span = Nanos::from_ms(self.dice.below(SPAN_MS));
                    beat.doing("it disturbs");
                    if let Some(server) = self.arena.upstream() {
                        // Whatever the server makes of it.
                        let _ = self.act(action, server);
                    }
                    self.tidy();
                    self.stage.pause(span);
                }
            }
        }
    }

    /// Lets go of connections, in one way or another.
    fn tidy(&mut self) {
        while self.held.len() > HELD || !self.held.is_empty() && self.dice.percent(20) {
            let at = self.dice.below(self.held.len() as u64) as usize;
            let wire = self.held.swap_remove(at);
            match self.dice.below(3) {
                0 => wire.half_close(),
                1 => wire.reset(),
                _ => drop(wire),
            }
        }
    }

    fn source(&mut self) -> [u8; 2] {
        [self.network, self.dice.within(1, 200) as u8]
    }

    fn connect(&mut self, server: SocketAddr) -> io::Result<Wire> {
        count(&self.stage.counts.neighbours);
        let wire = Wire::from(self.source(), server)?;
        wire.stream.set_read_timeout(Some(ANSWER))?;
        wire.stream.set_write_timeout(Some(ANSWER))?;
        Ok(wire)
    }

    /// A connection with ICReq and ICResp exchanged.
    fn open(&mut self, server: SocketAddr) -> io::Result<Wire> {
        let mut wire = self.connect(server)?;
        wire.send(&wire::ic_req())?;
        wire.pdu()?;
        Ok(wire)
    }

    /// Sends what no host would, and keeps the connection.
    fn send(&mut self, mut wire: Wire, bytes: &[u8]) -> io::Result<()> {
        count(&self.stage.counts.garbage);
        let sent = wire.send(bytes);
        self.held.push(wire);
        sent
    }

    fn act(&mut self, action: u64, server: SocketAddr) -> io::Result<()> {
        let nqn = self.arena.nqn().to_owned();
        match action {
            0 => {
                let wire = self.connect(server)?;
                let len = self.dice.magnitude(0, 14) as usize;
                let bytes = self.dice.bytes(len);
                self.send(wire, &bytes)
            }
            1 => {
                let wire = self.connect(server)?;
                self.send(wire, b"GET / HTTP/1.1\r\n\r\n")
            }
            // Says nothing.
            2 => {
                let wire = self.connect(server)?;
                self.held.push(wire);
                Ok(())
            }
            3 => self.burst(server),
            4 => self.lying_header(server),
            // Half a PDU, before and after the connection is agreed on.
            5 => {
                let wire = self.connect(server)?;
                let half = self.dice.within(1, 127) as usize;
                self.send(wire, &wire::ic_req()[..half])
            }
            6 => {
                let wire = self.open(server)?;
                let pdu = Connect::admin(&nqn, HOST).pdu();
                let half = self.dice.within(1, pdu.len() as u64 - 1) as usize;
                self.send(wire, &pdu[..half])
            }
            7 => {
                let mut wire = self.open(server)?;
                wire.call(&Connect::admin(DISCOVERY, HOST).pdu())?;
                self.damaged(wire)
            }
            8 => {
                let mut wire = self.open(server)?;
                wire.call(&Connect::admin(&nqn, HOST).pdu())?;
                self.damaged(wire)
            }
            9 => self.greedy(server, &nqn),
            _ => self.strange_commands(server, &nqn),
        }
    }

    /// Many connections at once, of which most end at once.
    fn burst(&mut self, server: SocketAddr) -> io::Result<()> {
        let number = self.dice.within(1, BURST);
        for _ in 0..number {
            let wire = self.connect(server)?;
            if self.dice.percent(25) {
                self.held.push(wire);
            }
        }
        Ok(())
    }

    /// A header with a type, lengths and offsets that are drawn, and much of nothing behind it.
    fn lying_header(&mut self, server: SocketAddr) -> io::Result<()> {
        let wire = match self.dice.percent(50) {
            true => self.connect(server)?,
            false => self.open(server)?,
        };
        let mut pdu = self.dice.bytes(8);
        if self.dice.percent(70) {
            // A type that hosts send, of the right header length.
            let (kind, len) = [(0x00, 128), (0x04, 72), (0x06, 24)][self.dice.below(3) as usize];
            (pdu[0], pdu[2]) = (kind, len);
        }
        let plen = [0, 7, u32::MAX, 1 << 31, 1 << 20][self.dice.below(5) as usize];
        pdu[4..].copy_from_slice(&plen.to_le_bytes());
        pdu.resize(self.dice.magnitude(3, 16) as usize, 0);
        self.send(wire, &pdu)
    }

    /// A capsule of which some bytes are others.
    fn damaged(&mut self, wire: Wire) -> io::Result<()> {
        // Identify, with nowhere for its data to go: whatever becomes of it, it changes nothing.
        let mut pdu = wire::capsule(wire::entry(0x06, 1, 0, 4096), &[]);
        for _ in 0..self.dice.within(1, 6) {
            let at = self.dice.below(8) as usize;
            pdu[at] = self.dice.next() as u8;
        }
        let bytes = self.dice.below(256) as usize;
        pdu.extend(self.dice.bytes(bytes));
        self.send(wire, &pdu)
    }

    /// Reads of a host that takes nothing of what it asked for.
    fn greedy(&mut self, server: SocketAddr, nqn: &str) -> io::Result<()> {
        add(&self.stage.counts.neighbours, 2);
        let Host { admin, mut io } = Host::connect(self.source(), server, nqn, 64)?;
        io.stream.set_write_timeout(Some(ANSWER))?;
        for cid in 1..=UNTAKEN {
            let read = wire::entry(0x02, cid, 1, 65_536);
            io.send(&wire::capsule(wire::about_blocks(read, 0, 16), &[]))?;
        }
        count(&self.stage.counts.garbage);
        self.held.extend([admin, io]);
        Ok(())
    }

    /// Commands whose fields are drawn, of a host that was let in. None of them writes: hosts that
    /// are let in share the drive.
    fn strange_commands(&mut self, server: SocketAddr, nqn: &str) -> io::Result<()> {
        add(&self.stage.counts.neighbours, 2);
        let Host { admin, mut io } = Host::connect(self.source(), server, nqn, 64)?;
        io.stream.set_write_timeout(Some(ANSWER))?;
        for cid in 1..=UNTAKEN {
            // Read, Compare, Verify, Zone Management Receive and one that there is not. No Flush:
            // it would save what hosts have not flushed.
            let opcode = [0x02, 0x05, 0x0c, 0x7a, 0xc1][self.dice.below(5) as usize];
            let nsid = [1, 1, 0, 2, u32::MAX][self.dice.below(5) as usize];
            let len = self.dice.magnitude(0, 22) as u32;
            let mut entry = wire::entry(opcode, cid, nsid, len);
            entry[40..].copy_from_slice(&self.dice.bytes(24));
            if self.dice.percent(30) {
                entry[24..40].copy_from_slice(&self.dice.bytes(16));
            }
            io.send(&wire::capsule(entry, &[]))?;
            count(&self.stage.counts.garbage);
        }
        self.held.extend([admin, io]);
        Ok(())
    }
}
