//! Between hosts and a server: it delays, sends bytes one at a time, closes and resets.
//!
//! A connection has a thread that owns both of its sockets, since only who owns a socket can
//! end it by a reset. The thread waits for the sockets and for the end of a delay, and for
//! nothing else.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use zonelab_device::Nanos;

use super::arena::Arena;
use super::counts::{add, count};
use super::dice::Dice;
use super::stage::Stage;

/// Bytes that are passed on at a time.
const CHUNK: usize = 32 << 10;
/// A chunk is held back for at most so long.
const DELAY_US: u64 = 4_000;
/// A connection ends after between 2^6 and 2^26 bytes in one direction, if it does.
const END_AFTER: [u32; 2] = [6, 26];
/// As many bytes of a connection are sent one at a time, as a power of two.
const SINGLE: [u32; 2] = [4, 13];
/// How long a connection waits until it looks whether all is over.
const LOOK_NS: u64 = 1_000_000_000;

/// How a connection ends if not by its peers.
#[derive(Clone, Copy, Debug)]
enum End {
    Close,
    Reset,
}

/// What becomes of a connection.
#[derive(Debug)]
struct Fate {
    /// One chunk in so many is held back; 0: none.
    delays_one_in: u64,
    /// So many bytes of each direction go one at a time, behind as many that do not.
    single: [u64; 2],
    /// It ends after so many bytes of one direction.
    end: Option<(usize, u64, End)>,
}

impl Fate {
    /// Nothing is done to it.
    const CALM: Self = Self {
        delays_one_in: 0,
        single: [0, 0],
        end: None,
    };

    fn draw(dice: &mut Dice) -> Self {
        let delays_one_in = [0, 0, 1, 8, 64][dice.below(5) as usize];
        let single = match dice.percent(35) {
            true => [dice.magnitude(0, 16), dice.magnitude(SINGLE[0], SINGLE[1])],
            false => [0, 0],
        };
        let end = dice.percent(60).then(|| {
            let end = [End::Close, End::Reset][dice.below(2) as usize];
            let after = dice.magnitude(END_AFTER[0], END_AFTER[1]);
            (dice.below(2) as usize, after, end)
        });
        Self {
            delays_one_in,
            single,
            end,
        }
    }
}

/// A proxy in front of the server of an arena.
pub(crate) struct Proxy {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(arena: &Arc<Arena>, stage: &Arc<Stage>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        arena.set_proxy(address);
        let is_over = Arc::new(AtomicBool::new(false));
        let (arena, stage, over) = (Arc::clone(arena), Arc::clone(stage), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                let Ok((host, _)) = listener.accept() else {
                    continue;
                };
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let Some(upstream) = arena.upstream() else {
                    continue;
                };
                let mut dice = Dice::new(stage.seed, arena.kind.name(), 1_000_000 + number);
                let stage = Arc::clone(&stage);
                std::thread::spawn(move || {
                    let fate = match stage.is_storm() {
                        true => Fate::draw(&mut dice),
                        false => Fate::CALM,
                    };
                    count(&stage.counts.connections);
                    // The server may be gone.
                    if let Ok(server) = TcpStream::connect(upstream) {
                        let _ = Relay::new([host, server], fate, dice).run(&stage);
                    }
                });
            }
        });
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One direction of a connection.
struct Lane {
    /// What has been received and is to be sent.
    bytes: Vec<u8>,
    sent: usize,
    /// Bytes that were passed on so far.
    passed: u64,
    /// When the rest of `bytes` may be sent.
    not_before: Nanos,
    /// Nothing more comes.
    has_ended: bool,
}

impl Lane {
    const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            sent: 0,
            passed: 0,
            not_before: Nanos::ZERO,
            has_ended: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }
}

/// A connection: lane 0 goes from the host to the server, lane 1 the other way. Lane N receives
/// from socket N, and sends to the other one.
struct Relay {
    sockets: [TcpStream; 2],
    lanes: [Lane; 2],
    fate: Fate,
    dice: Dice,
}

impl Relay {
    fn new(sockets: [TcpStream; 2], fate: Fate, dice: Dice) -> Self {
        Self {
            sockets,
            lanes: [Lane::new(), Lane::new()],
            fate,
            dice,
        }
    }

    /// Passes on until an end.
    fn run(mut self, stage: &Stage) -> std::io::Result<()> {
        for socket in &self.sockets {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
        }
        loop {
            self.wait(stage)?;
            for from in 0..2 {
                if self.lanes[from].is_empty() {
                    self.receive(from, stage)?;
                }
                if self.send(from, stage)? {
                    return self.end(stage);
                }
            }
            let is_through = self
                .lanes
                .iter()
                .any(|lane| lane.has_ended && lane.is_empty());
            if is_through || stage.is_over() {
                return Ok(());
            }
        }
    }

    /// Waits until something can be done.
    fn wait(&self, stage: &Stage) -> std::io::Result<()> {
        let now = stage.clock.now();
        let mut span = LOOK_NS;
        let mut flags = [PollFlags::empty(); 2];
        for (from, lane) in self.lanes.iter().enumerate() {
            if !lane.is_empty() && lane.not_before > now {
                span = span.min(lane.not_before.0 - now.0);
            } else if !lane.is_empty() {
                flags[1 - from] |= PollFlags::OUT;
            } else if !lane.has_ended {
                flags[from] |= PollFlags::IN;
            }
        }
        // A socket announces its end whether that is asked for or not: who asks for nothing of it
        // must not wait for it.
        let asked = self.sockets.iter().zip(flags);
        let asked = asked.filter(|(_, flags)| !flags.is_empty());
        let mut asked: Vec<_> = asked
            .map(|(socket, flags)| PollFd::new(socket, flags))
            .collect();
        let limit = Timespec::try_from(Duration::from_nanos(span)).expect("at most a second");
        match poll(&mut asked, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives a chunk, if there is one.
    fn receive(&mut self, from: usize, stage: &Stage) -> std::io::Result<()> {
        let lane = &mut self.lanes[from];
        lane.bytes.resize(CHUNK, 0);
        lane.sent = 0;
        let received = match self.sockets[from].read(&mut lane.bytes) {
            Ok(bytes) => {
                lane.has_ended |= bytes == 0;
                bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        lane.bytes.truncate(received);
        let one_in = self.fate.delays_one_in;
        if received > 0 && one_in > 0 && self.dice.below(one_in) == 0 {
            let span = Nanos::from_us(self.dice.below(DELAY_US));
            lane.not_before = stage.clock.now().saturating_add(span);
            count(&stage.counts.delays);
        }
        Ok(())
    }

    /// Sends what may be sent. True once the connection has to end.
    fn send(&mut self, from: usize, stage: &Stage) -> std::io::Result<bool> {
        let lane = &mut self.lanes[from];
        while !lane.is_empty() && stage.clock.now() >= lane.not_before {
            let mut piece = (lane.bytes.len() - lane.sent) as u64;
            if let Some((direction, after, _)) = self.fate.end
                && direction == from
            {
                piece = piece.min(after - lane.passed);
                if piece == 0 {
                    return Ok(true);
                }
            }
            let [first, number] = self.fate.single;
            let is_single = (first..first + number).contains(&lane.passed);
            if is_single {
                piece = 1;
            } else if lane.passed < first {
                piece = piece.min(first - lane.passed);
            }
            let bytes = &lane.bytes[lane.sent..][..piece as usize];
            match self.sockets[1 - from].write(bytes) {
                Ok(sent) => {
                    lane.sent += sent;
                    lane.passed += sent as u64;
                    add(&stage.counts.single_bytes, u64::from(is_single));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Ends both sockets as the fate of the connection is.
    fn end(self, stage: &Stage) -> std::io::Result<()> {
        match self.fate.end {
            Some((_, _, End::Reset)) => {
                for socket in &self.sockets {
                    // Then closing it sends a reset.
                    sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
                }
                count(&stage.counts.resets);
            }
            _ => count(&stage.counts.closes),
        }
        Ok(())
    }
}
