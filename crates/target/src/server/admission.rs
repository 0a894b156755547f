//! Who gets a connection, and who loses one.
//!
//! Strangers are connections that have not shown that they may be there (no
//! queue, no authentication yet), and those of discovery. They have places of
//! their own, in all and by network, and one of them makes room for a new one
//! (`strangers`). So strangers never take the places of hosts, and
//! neither those that stay nor those that are renewed keep a host from getting in.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::event::epoll;
use zonelab_device::Nanos;
use zonelab_nvme::identify::Nqn;

use super::ending::Stage;
use super::peer::Peer;
use super::socket::{Socket, keep_alive};
use super::strangers::{Network, Progress, Stranger, victim};
use super::{BATCH, Backend, LISTENER, Server, Standing};
use crate::tcp::Connection;

/// The part of all places that hosts with [`FEW_CONNECTIONS`] or more leave to others.
const KEPT_SHARE: usize = 8;
/// An admin queue and two more.
const FEW_CONNECTIONS: usize = 3;

impl Server {
    pub(super) fn accept(&mut self, backend: &impl Backend, now: Nanos) {
        for _ in 0..BATCH {
            match self.listener.accept() {
                // A drive without power has no address to connect to.
                Ok(_) if !backend.is_on(now) => (),
                Ok((stream, address)) => {
                    if !self.make_room(address.ip(), now) {
                        self.turned_away += 1;
                        let what = "turned away: as many connections as are allowed";
                        self.complaints.misbehaved(now, address, what);
                    } else if let Err(error) = self.admit(stream, address, now) {
                        tracing::debug!(peer = %address, %error, "not admitted");
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

    /// Whether there is a place for one more connection from `address`, made by
    /// closing that of a stranger if need be.
    fn make_room(&mut self, address: IpAddr, now: Nanos) -> bool {
        let limits = self.settings.limits;
        let network = Network::of(address);
        let crowd = Crowd::of(self.peers.iter().flatten(), network);
        let only = if crowd.own >= limits.address_connections
            || crowd.own_strangers >= limits.address_strangers
        {
            Some(network)
        } else if crowd.all >= limits.connections || crowd.strangers >= limits.strangers {
            None
        } else {
            return true;
        };
        let strangers = self.peers.iter().enumerate().filter_map(|(index, peer)| {
            let peer = peer.as_ref().filter(|peer| is_stranger(peer))?;
            let is_calculated = peer.queue.is_some_and(|of| self.calculations.has(of));
            // It waits for this server.
            let moved = if is_calculated { now } else { peer.moved };
            let progress = match peer.standing {
                Standing::Discovery => Progress::Silent,
                _ => Progress::of((peer.opened, moved), now, peer.queue.is_some()),
            };
            let stranger = Stranger {
                index,
                network: Network::of(peer.address.ip()),
                progress,
                moved,
            };
            only.is_none_or(|only| only == stranger.network)
                .then_some(stranger)
        });
        let crowd = limits.address_strangers / 2;
        let Some(index) = victim(strangers.collect(), crowd) else {
            return false;
        };
        self.turned_away += 1;
        if let Some(Some(peer)) = self.peers.get(index) {
            let what = "made room for others: too many connections without a host";
            self.complaints.misbehaved(now, peer.address, what);
        }
        self.lose(index);
        true
    }

    /// Whether a host may have one more connection. None may have more than its share, from
    /// however many addresses it comes, and the last places are for hosts that have few: so
    /// there is a place for a host that has none. Those that have not shown who they are do not
    /// count, or they could keep a host out under its name.
    pub(super) fn has_place_for(&self, host: &Nqn) -> bool {
        let limits = self.settings.limits;
        let id = self.budget.find(host);
        let peers = self.peers.iter().flatten();
        let hosts = peers.filter(|peer| peer.standing == Standing::Host && !peer.is_gone);
        let (mut all, mut own) = (0, 0);
        for peer in hosts {
            all += 1;
            own += usize::from(peer.host.is_some() && peer.host == id);
        }
        let kept = limits.connections / KEPT_SHARE;
        own < FEW_CONNECTIONS || (own < limits.host_connections && all + kept < limits.connections)
    }

    fn admit(&mut self, stream: TcpStream, address: SocketAddr, now: Nanos) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        self.take_in(Socket::Tcp(stream), (address, None), now)
    }

    /// Takes a connection over from somebody in this process who stands between, and knows
    /// the name of its host (by TLS). It may connect under that name alone, and counts as
    /// one from `address` like any other. False: there is no place for it.
    pub fn adopt(
        &mut self,
        stream: UnixStream,
        (address, host): (SocketAddr, Nqn),
        now: Nanos,
    ) -> bool {
        if self.stage != Stage::Serving {
            return false;
        }
        if !self.make_room(address.ip(), now) {
            self.turned_away += 1;
            let what = "turned away: as many connections as are allowed";
            self.complaints.misbehaved(now, address, what);
            return false;
        }
        let taken = stream
            .set_nonblocking(true)
            .and_then(|()| self.take_in(Socket::Local(stream), (address, Some(host)), now));
        if let Err(error) = &taken {
            tracing::debug!(peer = %address, %error, "not admitted");
        }
        taken.is_ok()
    }

    /// From now on, lets in hosts of these names only if they have shown who they are
    /// before they came here ([`Self::adopt`]). Connections under these names that have not
    /// end, but those of discovery, which anybody may have.
    ///
    /// A name stays one of them as long as the server runs: if that of a host which is let in
    /// no more were free again, anybody could come under it.
    pub fn require_known(&mut self, hosts: impl IntoIterator<Item = Nqn>) {
        for host in hosts {
            if self.known_only.contains(&host) {
                continue;
            }
            self.known_only.push(host);
            let Some(id) = self.budget.find(&host) else {
                continue;
            };
            for index in 0..self.peers.len() {
                let is_unknown = self.peers[index].as_ref().is_some_and(|peer| {
                    let is_discovery = peer.standing == Standing::Discovery;
                    peer.host == Some(id) && peer.known_as.is_none() && !is_discovery
                });
                if is_unknown {
                    self.lose(index);
                }
            }
        }
    }

    /// A peer has not behaved before it came here: says so, as often as may be.
    pub fn complain(&mut self, now: Nanos, peer: SocketAddr, reason: &str) {
        self.complaints.misbehaved(now, peer, reason);
    }

    /// Whether to log what happened to a connection before it came here: the bound is that
    /// of all such messages.
    pub fn has_news(&mut self, now: Nanos) -> bool {
        self.complaints.has_news(now)
    }

    fn take_in(
        &mut self,
        stream: Socket,
        (address, known_as): (SocketAddr, Option<Nqn>),
        now: Nanos,
    ) -> io::Result<()> {
        let settings = &self.settings;
        let terms = settings.limits.terms(Standing::Stranger, &settings.tcp);
        let connection = Connection::on(settings.tcp, terms).map_err(io::Error::other)?;
        let index = self.vacant.last().copied().unwrap_or(self.peers.len());
        let mark = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &stream, mark, epoll::EventFlags::IN)?;
        let peer = Some(Peer::new(stream, (address, known_as), connection, now));
        match self.vacant.pop() {
            Some(vacant) => self.peers[vacant] = peer,
            None => self.peers.push(peer),
        }
        self.accepted += 1;
        tracing::debug!(peer = %address, "accepted");
        Ok(())
    }

    /// Time limits.
    pub(super) fn tick(&mut self, backend: &mut impl Backend, now: Nanos) {
        if !self.is_accepting && self.stage == Stage::Serving {
            let mark = epoll::EventData::new_u64(LISTENER);
            let added = epoll::add(&self.epoll, &self.listener, mark, epoll::EventFlags::IN);
            self.is_accepting = added.is_ok();
        }
        self.complaints.tick(now);
        self.budget.look_again();
        let limits = self.settings.limits;
        for index in 0..self.peers.len() {
            let Some(peer) = &mut self.peers[index] else {
                continue;
            };
            // While nothing is read, nobody is to blame for what did not come.
            let overdue = (self.stage != Stage::Draining).then(|| peer.overdue(&limits, now));
            if let Some(what) = overdue.flatten() {
                let address = peer.address;
                self.broken += 1;
                self.complaints.misbehaved(now, address, what);
                self.give_up_queue(index, backend, now);
                self.lose(index);
            } else if peer
                .ended
                .is_some_and(|at| now.saturating_sub(at) > limits.linger)
            {
                self.lose(index);
            }
        }
        let owners = &self.owners;
        self.calculations.retain(|work| {
            let owner = owners.get(work.queue().0 as usize);
            owner.is_some_and(Option::is_some)
        });
    }

    /// Marks a connection to be removed at the end of the turn. Nothing else
    /// does, so whatever is marked is in the list.
    pub(super) fn lose(&mut self, index: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && !std::mem::replace(&mut peer.is_gone, true)
        {
            self.gone.push(index);
        }
    }

    pub(super) fn give_up_queue(&mut self, index: usize, backend: &mut impl Backend, now: Nanos) {
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
    pub(super) fn remove(&mut self, index: usize, now: Nanos) {
        if let Some(mut peer) = self.peers.get_mut(index).and_then(Option::take) {
            self.budget.note(peer.host, &mut peer.accounted_bytes, 0);
            if let Some(host) = peer.host {
                self.budget.leave(host);
            }
            if self.complaints.has_news(now) {
                tracing::info!(peer = %peer.address, queue = peer.qid, "closed");
            }
            for list in [&mut self.unfinished, &mut self.senders] {
                list.retain(|of| *of != index);
            }
            self.hungry.retain(|of| *of != index);
            // The others need not wait for it any more.
            self.budget.look_again();
            self.vacant.push(index);
        }
    }
}

/// Whether a connection may be closed to make room.
fn is_stranger(peer: &Peer) -> bool {
    let is_host = peer.standing == Standing::Host && peer.queue.is_some();
    !peer.is_gone && !is_host
}

/// How many connections there are.
#[derive(Debug, Default)]
struct Crowd {
    all: usize,
    strangers: usize,
    /// Of the network.
    own: usize,
    own_strangers: usize,
}

impl Crowd {
    fn of<'a>(peers: impl Iterator<Item = &'a Peer>, network: Network) -> Self {
        let mut crowd = Self::default();
        for peer in peers.filter(|peer| !peer.is_gone) {
            let is_own = Network::of(peer.address.ip()) == network;
            crowd.all += 1;
            crowd.own += usize::from(is_own);
            if is_stranger(peer) {
                crowd.strangers += 1;
                crowd.own_strangers += usize::from(is_own);
            }
        }
        crowd
    }
}
