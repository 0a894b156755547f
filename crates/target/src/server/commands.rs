//! What arrives: commands, and what becomes of them.
//!
//! A connection gets a share of each turn, so that one with many large commands
//! does not keep the others waiting; and the data of its commands has to have
//! room in the budget. Commands that find none wait in the order in which their
//! connections came to it, one command of each at a time.

use std::net::SocketAddr;

use rustix::event::epoll;
use zonelab_device::Nanos;
use zonelab_nvme::fabrics::{Connect, ConnectData, DISCOVERY_NQN};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;

use super::ending::Stage;
use super::peer::{Peer, Progress};
use super::{Backend, Server, Standing};
use crate::controller::QueueHandle;
use crate::tcp::{End, Event};

/// What the commands of a connection may cost in one turn, in bytes of data.
const SHARE_BYTES: u64 = 1 << 20;
/// What a command counts as at least, with data and without: one without may
/// be about as many blocks as one with.
const LEAST_BYTES: u64 = 4096;
const WITHOUT_DATA_BYTES: u64 = 64 << 10;

impl Server {
    pub(super) fn ready(
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
        let broken = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if !flags.intersects(epoll::EventFlags::IN | broken) {
            return;
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        if !peer.is_read {
            // Nothing of it is wanted, and both directions are closed.
            return self.lose(index);
        }
        if peer.is_unfinished {
            return;
        }
        match peer.read() {
            Progress::Gone => self.lose(index),
            Progress::Blocked => (),
            Progress::Done => {
                self.last_arrival = now;
                self.take_events(index, None, backend, now);
            }
        }
    }

    /// Has the commands of a connection looked at in the next turn.
    pub(super) fn take_up(&mut self, index: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && !std::mem::replace(&mut peer.is_unfinished, true)
        {
            self.unfinished.push(index);
        }
    }

    /// Goes on with connections that can, though nothing arrives.
    pub(super) fn go_on(&mut self, backend: &mut impl Backend, now: Nanos) {
        if self.stage == Stage::Draining {
            return;
        }
        for index in std::mem::take(&mut self.unfinished) {
            if let Some(Some(peer)) = self.peers.get_mut(index) {
                peer.is_unfinished = false;
                self.take_events(index, None, backend, now);
            }
        }
        if !self.hungry.is_empty() && self.budget.take_gain() {
            self.feed(backend, now);
        }
    }

    /// Shares out memory that was given back, among those that wait for it.
    fn feed(&mut self, backend: &mut impl Backend, now: Nanos) {
        self.budget.set_short(false);
        for _ in 0..self.hungry.len() {
            let Some(index) = self.hungry.pop_front() else {
                break;
            };
            let Some(Some(peer)) = self.peers.get_mut(index) else {
                continue;
            };
            let orphaned = backend.orphaned_bytes();
            let wanted = peer.connection.wanted_room().unwrap_or(0);
            if wanted > self.budget.left(orphaned) {
                // It is the first: nobody gets any before it.
                self.hungry.push_front(index);
                return self.budget.set_short(true);
            }
            if wanted > self.budget.left_for(peer.host, orphaned) {
                // Its own host has to give something back.
                self.hungry.push_back(index);
                continue;
            }
            peer.is_hungry = false;
            self.take_events(index, Some(wanted), backend, now);
        }
    }

    /// Takes what a connection has, within its share and with `room` bytes of
    /// memory (`None`: as much as there is).
    fn take_events(
        &mut self,
        index: usize,
        room: Option<u64>,
        backend: &mut impl Backend,
        now: Nanos,
    ) {
        self.promote(index, backend);
        let orphaned = backend.orphaned_bytes();
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        let was_over = peer.connection.end().is_some();
        let room = room.unwrap_or_else(|| self.budget.room(peer.host, orphaned));
        peer.connection.set_room(room);
        let mut cost = 0;
        while let Some(Some(peer)) = self.peers.get_mut(index)
            && let Some(event) = peer.connection.next_event(&mut self.buffers)
        {
            cost += self.take(index, event, backend, now);
            if cost >= SHARE_BYTES {
                self.take_up(index);
                break;
            }
        }
        self.settle(index);
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        let waits = peer
            .connection
            .wanted_room()
            .is_some_and(|wanted| wanted > 0);
        if waits && !std::mem::replace(&mut peer.is_hungry, true) {
            self.hungry.push_back(index);
        }
        let is_read = !peer.connection.is_paused();
        let (end, address) = (peer.connection.end(), peer.address);
        let is_listed = peer.connection.has_output() || end.is_some();
        self.watch_input(index, is_read);
        if is_listed {
            self.list(index);
        }
        if let Some(end) = end.filter(|_| !was_over) {
            self.log_end(now, address, end);
        }
    }

    /// Learns whether a stranger has become a host.
    fn promote(&mut self, index: usize, backend: &mut impl Backend) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && peer.standing == Standing::Stranger
            && let Some(queue) = peer.queue
        {
            peer.standing = backend.standing(queue);
            if peer.standing != Standing::Stranger {
                let terms = self
                    .settings
                    .limits
                    .terms(peer.standing, &self.settings.tcp);
                peer.connection.set_terms(terms);
            }
        }
    }

    /// Hands over what arrived; returns what that counts as.
    fn take(&mut self, index: usize, event: Event, backend: &mut impl Backend, now: Nanos) -> u64 {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return 0;
        };
        if peer.queue.is_some() {
            peer.moved = now;
        }
        match event {
            Event::Command {
                entry,
                data,
                data_len,
            } => {
                if let Some(queue) = peer.queue {
                    let address = peer.address;
                    backend.submit(now, queue, &entry, data, data_len);
                    while let Some(work) = backend.take_calculation() {
                        self.calculations.add(address.ip(), work);
                    }
                }
                match data_len {
                    0 => WITHOUT_DATA_BYTES,
                    len => u64::from(len).max(LEAST_BYTES),
                }
            }
            Event::Announced { entry, data_len } => {
                let Some(queue) = peer.queue else {
                    return 0;
                };
                match backend.admit(now, queue, &entry, data_len) {
                    Ok(()) => peer.connection.accept(entry.cdw0.cid()),
                    Err(completion) => peer.connection.decline(completion),
                }
                LEAST_BYTES
            }
            Event::Connect {
                entry,
                command,
                data,
            } => {
                self.connect(index, (&entry, &command, &data), backend, now);
                WITHOUT_DATA_BYTES
            }
        }
    }

    fn connect(
        &mut self,
        index: usize,
        (entry, command, data): (&SubmissionEntry, &Connect, &ConnectData),
        backend: &mut impl Backend,
        now: Nanos,
    ) {
        // Discovery needs no key: whoever asks learns where to go with one.
        let is_discovery = data.subnqn.as_str() == Some(DISCOVERY_NQN);
        let has_place = is_discovery || self.has_place_for(&data.hostnqn);
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return;
        };
        let is_itself = match &peer.known_as {
            Some(name) => *name == data.hostnqn,
            None => is_discovery || !self.known_only.contains(&data.hostnqn),
        };
        if !is_itself {
            let status = FabricsStatus::CONNECT_INVALID_HOST.status();
            let completion = CompletionEntry::new(entry.cdw0.cid(), status).with_dnr(true);
            return peer.connection.refused(completion);
        }
        if !has_place {
            // Not for good: it may come again.
            let status = FabricsStatus::CONNECT_CONTROLLER_BUSY.status();
            let completion = CompletionEntry::new(entry.cdw0.cid(), status);
            return peer.connection.refused(completion);
        }
        match backend.connect(now, (entry, command), data) {
            Ok(connected) => {
                own(&mut self.owners, connected.queue, index);
                self.lateness.add_queue(command.qid);
                peer.queue = Some(connected.queue);
                peer.moved = now;
                peer.qid = command.qid;
                peer.host = Some(self.budget.join(&data.hostnqn));
                peer.connection.connected(&connected);
                if self.complaints.has_news(now) {
                    log_connected(peer, command, data);
                }
                self.promote(index, backend);
            }
            Err(completion) => peer.connection.refused(completion),
        }
    }

    fn log_end(&mut self, now: Nanos, address: SocketAddr, end: End) {
        let what = match end {
            End::Violation(violation) => {
                self.broken += 1;
                violation.to_string()
            }
            End::HostTerminated(status, information) => {
                format!("ended by the host: {status}, information {information}")
            }
            End::Refused => "its Connect command was refused".to_owned(),
            End::Closed => return,
        };
        self.complaints.misbehaved(now, address, &what);
    }

    /// Takes results of calculations, and begins the next one.
    pub(super) fn calculate(&mut self, backend: &mut impl Backend, now: Nanos) {
        if let Some((queue, result)) = self.calculations.finished() {
            if let Some(index) = self.owner(queue)
                && let Some(Some(peer)) = self.peers.get_mut(index)
            {
                peer.moved = now;
            }
            backend.calculated(now, result);
        }
        self.calculations.begin(now);
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
