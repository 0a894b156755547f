//! The loop: sockets, the monotonic clock, and what they serve.
//!
//! One turn goes on with the drive to the present, sends what is done, with
//! one vectored write for each connection that has something, waits for
//! sockets or for the next event of the drive, and reads once from each socket
//! that has something. Near the next event of the drive, and just after a
//! command came, the loop does not sleep: a sleeping thread wakes tens of
//! microseconds late.
//!
//! Peers that are slow, silent or half open are held to time limits, see
//! [`Limits`]; one that misbehaves is logged once.

mod backend;
mod clock;
mod lateness;
mod peer;
mod visits;

pub use backend::Backend;
pub use lateness::QueueLateness;
pub use visits::{Ended, Present, Visitor, Visits, visits};

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use zonelab_device::Nanos;
use zonelab_nvme::fabrics::{Connect, ConnectData};

use crate::Buffers;
use crate::controller::{Done, QueueHandle};
use crate::tcp::{self, Connection, End, Event};
use clock::Monotonic;
use lateness::Lateness;
use peer::{Peer, Progress};

/// The mark of the listening socket.
const LISTENER: u64 = u64::MAX;
/// The mark of visits.
const VISITS: u64 = u64::MAX - 1;
/// The longest sleep: how late a stop or a time limit is noticed.
const TICK: Nanos = Nanos::from_ms(100);
/// Sockets that one wait reports, and connections that one turn accepts.
const BATCH: usize = 64;
/// Addresses of misbehaving peers that are remembered.
const REMEMBERED: usize = 64;

/// What peers may cost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time; others are closed as soon as they come.
    pub connections: usize,
    /// Time from the connection to a Connect command that succeeded.
    pub handshake: Nanos,
    /// Time without a byte while a peer owes the rest of a PDU, or does not
    /// take what it is sent.
    pub stall: Nanos,
    /// Time that a peer has to close its side after the last PDU.
    pub linger: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            handshake: Nanos::from_secs(10),
            stall: Nanos::from_secs(30),
            linger: Nanos::from_secs(2),
        }
    }
}

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
    /// Connections that were closed for lack of room.
    pub turned_away: u64,
    /// Connections that ended because the peer broke the protocol or a time limit,
    /// or failed to authenticate itself.
    pub broken: u64,
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
    /// Connections to be removed.
    gone: Vec<usize>,
    buffers: Buffers,
    done: Vec<Done>,
    closed: Vec<QueueHandle>,
    lateness: Lateness,
    /// Addresses whose misbehaviour was logged.
    logged: Vec<IpAddr>,
    last_arrival: Nanos,
    next_tick: Nanos,
    is_accepting: bool,
    accepted: u64,
    turned_away: u64,
    broken: u64,
}

impl Server {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or a setting is not valid.
    pub fn bind(address: SocketAddr, settings: ServerSettings) -> io::Result<Self> {
        settings.tcp.check().map_err(io::Error::other)?;
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mark = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, mark, epoll::EventFlags::IN)?;
        Ok(Self {
            settings,
            clock: Monotonic::new(),
            listener,
            epoll,
            peers: Vec::new(),
            vacant: Vec::new(),
            owners: Vec::new(),
            senders: Vec::new(),
            gone: Vec::new(),
            buffers: Buffers::default(),
            done: Vec::new(),
            closed: Vec::new(),
            lateness: Lateness::default(),
            logged: Vec::new(),
            last_arrival: Nanos::ZERO,
            next_tick: TICK,
            is_accepting: true,
            accepted: 0,
            turned_away: 0,
            broken: 0,
        })
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
        let (_, visits) = visits()?;
        self.run_visited(backend, stop, visits)
    }

    /// The same, and lets other threads call in.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn run_visited<B: Backend>(
        &mut self,
        backend: &mut B,
        stop: &AtomicBool,
        visits: Visits<B>,
    ) -> io::Result<()> {
        let mark = epoll::EventData::new_u64(VISITS);
        epoll::add(&self.epoll, visits.bell(), mark, epoll::EventFlags::IN)?;
        let mut events = Vec::with_capacity(BATCH);
        while !stop.load(Ordering::Relaxed) {
            self.turn(backend, &visits, &mut events)?;
        }
        epoll::delete(&self.epoll, visits.bell())?;
        // Who waits is told that nobody answers.
        drop(visits);
        let now = self.clock.now();
        self.progress(backend, now)?;
        for index in 0..self.peers.len() {
            self.give_up_queue(index, backend, now);
            self.remove(index);
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
        }
    }

    /// How late responses were, by queue identifier, in nanoseconds.
    pub fn lateness(&self) -> impl Iterator<Item = (u16, &Histogram<u64>)> {
        self.lateness.histograms()
    }

    fn turn<B: Backend>(
        &mut self,
        backend: &mut B,
        visits: &Visits<B>,
        events: &mut Vec<epoll::Event>,
    ) -> io::Result<()> {
        let now = self.clock.now();
        self.progress(backend, now)?;
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(backend, now);
        }
        for index in std::mem::take(&mut self.gone) {
            self.give_up_queue(index, backend, now);
            self.remove(index);
        }
        self.wait(self.pause(backend), events)?;
        let now = self.clock.now();
        for event in events {
            let (mark, flags) = (event.data.u64(), event.flags);
            match mark {
                LISTENER => self.accept(backend, now),
                VISITS => visits.receive(self, backend, now),
                mark => self.ready(mark as usize, flags, backend, now),
            }
        }
        Ok(())
    }

    /// Takes the drive to `now`, and sends what is done, which has been kept by then.
    fn progress(&mut self, backend: &mut impl Backend, now: Nanos) -> io::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        let mut closed = std::mem::take(&mut self.closed);
        backend.advance(now, &mut done, &mut closed);
        backend.keep().map_err(io::Error::other)?;
        for done in done.drain(..) {
            self.complete(done, backend);
        }
        for queue in closed.drain(..) {
            if let Some(index) = self.owner(queue)
                && let Some(peer) = &mut self.peers[index]
            {
                peer.connection.close(End::Closed);
                let address = peer.address;
                self.list(index);
                if let Some(what) = backend.complaint(queue) {
                    self.broken += 1;
                    self.log(address, &what);
                }
            }
        }
        (self.done, self.closed) = (done, closed);
        while let Some(index) = self.senders.pop() {
            self.send(index, backend);
        }
        Ok(())
    }

    fn complete(&mut self, done: Done, backend: &mut impl Backend) {
        let Done {
            queue,
            entry,
            data,
            spent,
            due,
        } = done;
        spent.into_iter().for_each(|buf| self.buffers.give(buf));
        let index = self.owner(queue);
        let peer = index.and_then(|index| self.peers[index].as_mut());
        let unused = match peer {
            Some(peer) => peer.connection.complete(entry, data, due),
            None => data,
        };
        unused.into_iter().for_each(|buf| backend.recycle(buf));
        index.into_iter().for_each(|index| self.list(index));
    }

    fn owner(&self, queue: QueueHandle) -> Option<usize> {
        self.owners.get(queue.0 as usize).copied().flatten()
    }

    /// Marks a connection as one that has something to send, or has ended.
    fn list(&mut self, index: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && !peer.is_listed
            && !peer.waits_for_room
        {
            peer.is_listed = true;
            self.senders.push(index);
        }
    }

    fn send(&mut self, index: usize, backend: &mut impl Backend) {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        peer.is_listed = false;
        let (qid, lateness) = (peer.qid, &mut self.lateness);
        let now = self.clock.now();
        let progress = peer.write(now, &mut self.buffers, |due, data| {
            lateness.record(qid, now.saturating_sub(due));
            data.into_iter().for_each(|buf| backend.recycle(buf));
        });
        let is_over = peer.connection.end().is_some();
        match progress {
            Progress::Gone => self.lose(index),
            Progress::Blocked => self.watch(index, true),
            Progress::Done => {
                if is_over && peer.ended.is_none() {
                    peer.shut_down(now);
                }
                self.watch(index, false);
            }
        }
        if is_over {
            self.give_up_queue(index, backend, now);
        }
    }

    /// Asks to be told when a socket has room, or no longer.
    fn watch(&mut self, index: usize, wants_room: bool) {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        if peer.waits_for_room == wants_room {
            return;
        }
        peer.waits_for_room = wants_room;
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, wants_room);
        let mark = epoll::EventData::new_u64(index as u64);
        if epoll::modify(&self.epoll, &peer.stream, mark, flags).is_err() {
            self.lose(index);
        }
    }

    /// How long nothing happens.
    fn pause(&self, backend: &impl Backend) -> Nanos {
        let now = self.clock.now();
        let spin = self.settings.spin;
        let is_busy = spin > Nanos::ZERO && now.saturating_sub(self.last_arrival) < spin;
        if is_busy || !self.gone.is_empty() || !self.senders.is_empty() {
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

    fn accept(&mut self, backend: &impl Backend, now: Nanos) {
        for _ in 0..BATCH {
            match self.listener.accept() {
                // A drive without power has no address to connect to.
                Ok(_) if !backend.is_on(now) => (),
                Ok((stream, address)) => {
                    if self.peers.len() - self.vacant.len() >= self.settings.limits.connections {
                        self.turned_away += 1;
                        self.log(address, "turned away: as many connections as are allowed");
                    } else if let Err(error) = self.admit(stream, address, now) {
                        tracing::warn!(peer = %address, %error, "not admitted");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => (),
                Err(error) => {
                    // Out of descriptors, mostly: try again at the next tick.
                    tracing::warn!(%error, "cannot accept connections");
                    self.is_accepting = epoll::delete(&self.epoll, &self.listener).is_err();
                    return;
                }
            }
        }
    }

    fn admit(
        &mut self,
        stream: std::net::TcpStream,
        address: SocketAddr,
        now: Nanos,
    ) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let connection = Connection::new(self.settings.tcp).map_err(io::Error::other)?;
        let index = self.vacant.last().copied().unwrap_or(self.peers.len());
        let mark = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &stream, mark, epoll::EventFlags::IN)?;
        let peer = Some(Peer::new(stream, address, connection, now));
        match self.vacant.pop() {
            Some(vacant) => self.peers[vacant] = peer,
            None => self.peers.push(peer),
        }
        self.accepted += 1;
        tracing::debug!(peer = %address, "accepted");
        Ok(())
    }

    fn ready(
        &mut self,
        index: usize,
        flags: epoll::EventFlags,
        backend: &mut impl Backend,
        now: Nanos,
    ) {
        if flags.contains(epoll::EventFlags::OUT)
            && let Some(Some(peer)) = self.peers.get_mut(index)
        {
            peer.is_listed = true;
            self.senders.push(index);
        }
        if !flags
            .intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
        {
            return;
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        match peer.read(now) {
            Progress::Gone => self.lose(index),
            Progress::Blocked => (),
            Progress::Done => {
                self.last_arrival = now;
                self.take_events(index, backend, now);
            }
        }
    }

    fn take_events(&mut self, index: usize, backend: &mut impl Backend, now: Nanos) {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        let was_over = peer.connection.end().is_some();
        while let Some(event) = peer.connection.next_event(&mut self.buffers) {
            match event {
                Event::Command {
                    entry,
                    data,
                    data_len,
                } => {
                    if let Some(queue) = peer.queue {
                        backend.submit(now, queue, &entry, data, data_len);
                    }
                }
                Event::Connect {
                    entry,
                    command,
                    data,
                } => match backend.connect(now, (&entry, &command), &data) {
                    Ok(connected) => {
                        own(&mut self.owners, connected.queue, index);
                        self.lateness.add_queue(command.qid);
                        peer.queue = Some(connected.queue);
                        peer.qid = command.qid;
                        peer.connection.connected(&connected);
                        log_connected(peer, &command, &data);
                    }
                    Err(completion) => peer.connection.refused(completion),
                },
            }
        }
        let (end, address) = (peer.connection.end(), peer.address);
        if peer.connection.has_output() || end.is_some() {
            self.list(index);
        }
        if let Some(end) = end.filter(|_| !was_over) {
            self.log_end(address, end);
        }
    }

    fn log_end(&mut self, address: SocketAddr, end: End) {
        match end {
            End::Violation(violation) => {
                self.broken += 1;
                self.log(address, &violation.to_string());
            }
            End::HostTerminated(status, information) => {
                let what = format!("ended by the host: {status}, information {information}");
                self.log(address, &what);
            }
            End::Refused => self.log(address, "its Connect command was refused"),
            End::Closed => (),
        }
    }

    /// Says what is wrong with a peer, loudly the first time.
    fn log(&mut self, address: SocketAddr, what: &str) {
        if self.logged.contains(&address.ip()) {
            tracing::debug!(peer = %address, reason = what, "misbehaved");
            return;
        }
        if self.logged.len() == REMEMBERED {
            self.logged.remove(0);
        }
        self.logged.push(address.ip());
        tracing::warn!(peer = %address, reason = what, logged = "once", "misbehaved");
    }

    /// Time limits.
    fn tick(&mut self, backend: &mut impl Backend, now: Nanos) {
        if !self.is_accepting {
            let mark = epoll::EventData::new_u64(LISTENER);
            let added = epoll::add(&self.epoll, &self.listener, mark, epoll::EventFlags::IN);
            self.is_accepting = added.is_ok();
        }
        for index in 0..self.peers.len() {
            let Some(peer) = &self.peers[index] else {
                continue;
            };
            if let Some(what) = overdue(peer, &self.settings.limits, now) {
                let address = peer.address;
                self.broken += 1;
                self.log(address, what);
                self.give_up_queue(index, backend, now);
                self.lose(index);
            } else if peer
                .ended
                .is_some_and(|at| now.saturating_sub(at) > self.settings.limits.linger)
            {
                self.lose(index);
            }
        }
    }

    /// Marks a connection to be removed at the end of the turn.
    fn lose(&mut self, index: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && !std::mem::replace(&mut peer.is_gone, true)
        {
            self.gone.push(index);
        }
    }

    fn give_up_queue(&mut self, index: usize, backend: &mut impl Backend, now: Nanos) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && let Some(queue) = peer.queue.take()
        {
            if let Some(owner) = self.owners.get_mut(queue.0 as usize) {
                *owner = None;
            }
            backend.disconnect(now, queue);
        }
    }

    /// Closes a socket, which takes it out of the loop too.
    fn remove(&mut self, index: usize) {
        if let Some(peer) = self.peers.get_mut(index).and_then(Option::take) {
            tracing::info!(peer = %peer.address, queue = peer.qid, "closed");
            self.vacant.push(index);
        }
    }
}

fn own(owners: &mut Vec<Option<usize>>, queue: QueueHandle, index: usize) {
    let at = queue.0 as usize;
    if at >= owners.len() {
        owners.resize(at + 1, None);
    }
    owners[at] = Some(index);
}

fn log_connected(peer: &Peer, command: &Connect, data: &ConnectData) {
    tracing::info!(
        peer = %peer.address,
        queue = command.qid,
        entries = command.sqsize,
        nqn = data.subnqn.as_str(),
        host = data.hostnqn.as_str(),
        "connected"
    );
}

/// Which time limit a peer has broken.
fn overdue(peer: &Peer, limits: &Limits, now: Nanos) -> Option<&'static str> {
    let is_long_ago = |since| now.saturating_sub(since) > limits.stall;
    if peer.ended.is_some() {
        None
    } else if peer.queue.is_none() && now.saturating_sub(peer.opened) > limits.handshake {
        Some("no queue was made in time")
    } else if peer.blocked.is_some_and(is_long_ago) {
        Some("it does not take what it is sent")
    } else if peer.connection.is_in_pdu() && is_long_ago(peer.arrived) {
        Some("it owes the rest of a PDU")
    } else {
        None
    }
}
