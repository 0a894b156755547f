//! The loop: sockets, the monotonic clock, and what they serve.
//!
//! One turn goes on with the drive to the present, sends what is done, with
//! one vectored write for each connection that has something, waits for
//! sockets or for the next event of the drive, and reads once from each socket
//! that has something. Near the next event of the drive, and just after a
//! command came, the loop does not sleep: a sleeping thread wakes tens of
//! microseconds late.
//!
//! What peers may cost is in [`Limits`]: connections, memory, time, and a share
//! of each turn; one that misbehaves is logged at a bounded rate.
//!
//! | module | what |
//! | --- | --- |
//! | `limits` | what peers may cost |
//! | `admission` | who gets a connection, and who loses one |
//! | `commands` | what arrives, and what becomes of it |
//! | `sending` | what goes out |
//! | `budget` | how much data of commands is in memory |
//! | `calculations` | Diffie-Hellman, in a thread of its own |
//! | `complaints`, `rates` | what is said of peers, and how often |
//! | `peer`, `socket` | a connection with its socket |
//! | `calls` | calls into the loop from other threads |
//! | `ending` | what becomes of commands when the server ends |

mod admission;
mod backend;
mod budget;
mod calculations;
mod calls;
mod clock;
mod commands;
mod complaints;
mod ending;
mod lateness;
mod limits;
mod peer;
mod rates;
mod sending;
mod socket;
mod strangers;

pub use backend::Backend;
pub use calls::{Ended, LoopCalls, LoopHandle, Present, loop_calls};
pub use lateness::QueueLateness;
pub use limits::{Limits, Memory, MemoryError, OWN_BYTES, Standing};
pub use socket::keep_alive;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use zonelab_device::Nanos;
use zonelab_nvme::identify::Nqn;

use crate::Buffers;
use crate::controller::{Done, QueueHandle};
use crate::tcp;
use budget::Budget;
use calculations::Calculations;
use clock::Monotonic;
use complaints::Complaints;
use ending::Stage;
use lateness::Lateness;
use peer::Peer;

/// The mark of the listening socket.
const LISTENER: u64 = u64::MAX;
/// The mark of calls.
const CALLS: u64 = u64::MAX - 1;
/// The mark of calculations that are done.
const CALCULATIONS: u64 = u64::MAX - 2;
/// The longest sleep: how late a stop or a time limit is noticed.
const TICK: Nanos = Nanos::from_ms(100);
/// Sockets that one wait reports, and connections that one turn accepts.
const BATCH: usize = 64;

/// How a server serves.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// What each connection offers.
    pub tcp: tcp::Settings,
    /// What peers may cost.
    pub limits: Limits,
    /// The loop polls instead of sleeping when the next event of the drive is
    /// nearer than this, and for this long after bytes arrived. Zero: it never
    /// does.
    pub spin: Nanos,
}

/// What a server did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// Its connections.
    pub connections: Connections,
    /// How late responses were.
    pub lateness: Vec<QueueLateness>,
}

/// How many connections there are and were.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that there are.
    pub open: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed for lack of room, as soon as they came or
    /// when they had to make room for others.
    pub turned_away: u64,
    /// Connections that ended because the peer broke the protocol or a time limit,
    /// or failed to authenticate itself.
    pub broken: u64,
    /// Turns of the loop: while nothing happens, a few in a second.
    pub turns: u64,
}

/// A listening socket and its connections.
pub struct Server {
    settings: ServerSettings,
    clock: Monotonic,
    listener: TcpListener,
    epoll: OwnedFd,
    /// Connections; their place is what the loop knows them by.
    peers: Vec<Option<Peer>>,
    vacant: Vec<usize>,
    /// Which connection has a queue, by the number of its handle.
    owners: Vec<Option<usize>>,
    /// Connections that have something to send.
    senders: Vec<usize>,
    /// Connections whose commands are to be looked at though nothing arrives.
    unfinished: Vec<usize>,
    /// Connections whose commands wait for memory that others have, first come
    /// first.
    hungry: VecDeque<usize>,
    /// Connections to be removed.
    gone: Vec<usize>,
    budget: Budget,
    /// Hosts that may not just say who they are, now or since the server runs.
    known_only: Vec<Nqn>,
    calculations: Calculations,
    complaints: Complaints,
    buffers: Buffers,
    done: Vec<Done>,
    closed: Vec<QueueHandle>,
    lateness: Lateness,
    last_arrival: Nanos,
    next_tick: Nanos,
    is_accepting: bool,
    stage: Stage,
    accepted: u64,
    turned_away: u64,
    broken: u64,
    turns: u64,
}

impl Server {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or a setting is not valid.
    pub fn bind(address: SocketAddr, settings: ServerSettings) -> io::Result<Self> {
        let limits = &settings.limits;
        settings.tcp.check().map_err(io::Error::other)?;
        let memory = limits.memory.check(settings.tcp.transfer_bytes);
        memory.map_err(io::Error::other)?;
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mark = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, mark, epoll::EventFlags::IN)?;
        let calculations = Calculations::new(limits.calculations)?;
        let mark = epoll::EventData::new_u64(CALCULATIONS);
        epoll::add(&epoll, calculations.bell(), mark, epoll::EventFlags::IN)?;
        Ok(Self {
            settings,
            clock: Monotonic::new(),
            listener,
            epoll,
            peers: Vec::new(),
            vacant: Vec::new(),
            owners: Vec::new(),
            senders: Vec::new(),
            unfinished: Vec::new(),
            hungry: VecDeque::new(),
            gone: Vec::new(),
            budget: Budget::new(limits.memory),
            known_only: Vec::new(),
            calculations,
            complaints: Complaints::new(),
            buffers: Buffers::default(),
            done: Vec::new(),
            closed: Vec::new(),
            lateness: Lateness::default(),
            last_arrival: Nanos::ZERO,
            next_tick: TICK,
            is_accepting: true,
            stage: Stage::Serving,
            accepted: 0,
            turned_away: 0,
            broken: 0,
            turns: 0,
        })
    }

    /// Bounds the data of commands by `memory` instead of what the settings have, and keeps no
    /// more than `kept_bytes` of buffers for reuse. To be called before it runs.
    ///
    /// # Errors
    /// A bound has no room for the next smaller one.
    pub fn limit_memory(&mut self, memory: Memory, kept_bytes: usize) -> Result<(), MemoryError> {
        memory.check(self.settings.tcp.transfer_bytes)?;
        self.settings.limits.memory = memory;
        self.budget = Budget::new(memory);
        self.buffers.limit(kept_bytes);
        Ok(())
    }

    /// The address that it listens on, with the port that it got.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set. Time for `backend` starts at zero with the
    /// making of the server.
    ///
    /// # Errors
    /// The system refuses to wait, or what is served cannot be kept ([`Backend::keep`]).
    pub fn run<B: Backend>(&mut self, backend: &mut B, stop: &AtomicBool) -> io::Result<()> {
        let (_, calls) = loop_calls()?;
        self.run_with_calls(backend, stop, calls)
    }

    /// The same, and lets other threads call in.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn run_with_calls<B: Backend>(
        &mut self,
        backend: &mut B,
        stop: &AtomicBool,
        calls: LoopCalls<B>,
    ) -> io::Result<()> {
        let mark = epoll::EventData::new_u64(CALLS);
        epoll::add(&self.epoll, calls.bell(), mark, epoll::EventFlags::IN)?;
        let mut events = Vec::with_capacity(BATCH);
        while !stop.load(Ordering::Relaxed) {
            self.turn(backend, &calls, &mut events)?;
        }
        self.end(backend, &calls, &mut events)?;
        epoll::delete(&self.epoll, calls.bell())?;
        // Who waits is told that nobody answers.
        drop(calls);
        let now = self.clock.now();
        self.progress(backend, now)?;
        for index in 0..self.peers.len() {
            self.give_up_queue(index, backend, now);
            self.remove(index, now);
        }
        Ok(())
    }

    /// What it did so far.
    #[must_use]
    pub fn report(&self) -> ServerReport {
        ServerReport {
            connections: self.connections(),
            lateness: self.lateness.report(),
        }
    }

    /// Its connections.
    #[must_use]
    pub const fn connections(&self) -> Connections {
        Connections {
            open: (self.peers.len() - self.vacant.len()) as u64,
            accepted: self.accepted,
            turned_away: self.turned_away,
            broken: self.broken,
            turns: self.turns,
        }
    }

    /// How late responses were, by queue identifier, in nanoseconds.
    pub fn lateness(&self) -> impl Iterator<Item = (u16, &Histogram<u64>)> {
        self.lateness.histograms()
    }

    fn turn<B: Backend>(
        &mut self,
        backend: &mut B,
        calls: &LoopCalls<B>,
        events: &mut Vec<epoll::Event>,
    ) -> io::Result<()> {
        self.turns += 1;
        let now = self.clock.now();
        self.calculate(backend, now);
        self.progress(backend, now)?;
        self.go_on(backend, now);
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(backend, now);
        }
        for index in std::mem::take(&mut self.gone) {
            self.give_up_queue(index, backend, now);
            self.remove(index, now);
        }
        self.wait(self.pause(backend), events)?;
        let now = self.clock.now();
        for event in events {
            let (mark, flags) = (event.data.u64(), event.flags);
            match mark {
                LISTENER => self.accept(backend, now),
                // The result is looked for in each turn.
                CALCULATIONS => self.calculations.heard(),
                CALLS => calls.receive(self, backend, now),
                mark => self.ready(mark as usize, flags, backend, now),
            }
        }
        Ok(())
    }

    /// How long nothing happens.
    fn pause(&self, backend: &impl Backend) -> Nanos {
        let now = self.clock.now();
        let spin = self.settings.spin;
        let is_busy = spin > Nanos::ZERO && now.saturating_sub(self.last_arrival) < spin;
        if is_busy
            || !self.gone.is_empty()
            || !self.senders.is_empty()
            || self.stage != Stage::Draining && !self.unfinished.is_empty()
        {
            return Nanos::ZERO;
        }
        let event = backend.next_event().unwrap_or(Nanos::MAX);
        let left = event.saturating_sub(now).saturating_sub(spin);
        left.min(self.next_tick.saturating_sub(now))
    }

    fn wait(&self, timeout: Nanos, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        events.clear();
        // At most a tick, which is well below a second.
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.min(TICK).0 as _,
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
