//! What goes out: completions of the drive, to the sockets of their queues.

use std::io;

use rustix::event::epoll;
use zonelab_device::Nanos;

use super::ending::Stage;
use super::peer::Progress;
use super::{Backend, Server};
use crate::controller::{Done, QueueHandle};
use crate::tcp::End;

impl Server {
    /// Takes the drive to `now`, and sends what is done, which has been kept by then.
    pub(super) fn progress(&mut self, backend: &mut impl Backend, now: Nanos) -> io::Result<()> {
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
                    self.complaints.misbehaved(now, address, &what);
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

    pub(super) fn owner(&self, queue: QueueHandle) -> Option<usize> {
        self.owners.get(queue.0 as usize).copied().flatten()
    }

    /// Marks a connection as one that has something to send, or has ended.
    pub(super) fn list(&mut self, index: usize) {
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
        let progress = peer.write(&mut self.buffers, |due, data| {
            lateness.record(qid, now.saturating_sub(due));
            data.into_iter().for_each(|buf| backend.recycle(buf));
        });
        let is_over = peer.connection.end().is_some();
        if peer.connection.wanted_room().is_some() {
            // What went out may have made room.
            self.take_up(index);
        }
        match progress {
            Progress::Gone => self.lose(index),
            Progress::Blocked => self.watch_room(index, true),
            Progress::Done => {
                self.watch_room(index, false);
                if is_over {
                    self.shut_down(index, now);
                }
            }
        }
        self.settle(index);
        if is_over {
            self.give_up_queue(index, backend, now);
        }
    }

    /// The last PDU is with the socket.
    fn shut_down(&mut self, index: usize, now: Nanos) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && peer.ended.is_none()
            && peer.shut_down(now).is_err()
        {
            // The peer is gone already, and the socket has nothing more to say.
            self.lose(index);
        }
    }

    /// Tells the budget what a connection holds.
    pub(super) fn settle(&mut self, index: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(index) {
            let shared = peer.connection.shared_bytes();
            self.budget
                .note(peer.host, &mut peer.accounted_bytes, shared);
        }
    }

    /// Asks to be told when a socket has room, or no longer.
    fn watch_room(&mut self, index: usize, wants_room: bool) {
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && std::mem::replace(&mut peer.waits_for_room, wants_room) != wants_room
        {
            self.watch(index);
        }
    }

    /// Reads from a socket, or no longer. Nothing is read while the server drains.
    pub(super) fn watch_input(&mut self, index: usize, is_read: bool) {
        let is_read = is_read && self.stage != Stage::Draining;
        if let Some(Some(peer)) = self.peers.get_mut(index)
            && std::mem::replace(&mut peer.is_read, is_read) != is_read
        {
            self.watch(index);
        }
    }

    /// Tells the system what the loop wants to know of a socket.
    fn watch(&mut self, index: usize) {
        let Some(Some(peer)) = self.peers.get(index) else {
            return;
        };
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, peer.is_read);
        flags.set(epoll::EventFlags::OUT, peer.waits_for_room);
        let mark = epoll::EventData::new_u64(index as u64);
        if epoll::modify(&self.epoll, &peer.stream, mark, flags).is_err() {
            self.lose(index);
        }
    }
}
