//! How a server ends: what the drive works on is done and answered first.

use std::io;

use rustix::event::epoll;
use zonelab_device::Nanos;

use super::calls::LoopCalls;
use super::{Backend, Server};
use crate::tcp::End;

/// How long hosts have at most to close their connections once all is answered. A connection that is
/// closed while bytes of its host are unread takes answers from it that it has not read yet.
const PARTING: Nanos = Nanos::from_secs(1);

/// How far the end of a server has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It serves.
    Serving,
    /// It takes no connections and reads nothing: what the drive has is done and answered.
    Draining,
    /// All connections end. What hosts still send is read, and nothing becomes of it.
    Parting,
}

impl Server {
    /// Takes no connection and no command any more. Goes on until the drive has done those
    /// that it has and hosts have their answers, or until [`super::Limits::drain`] has passed, and then
    /// closes all connections.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub(super) fn end<B: Backend>(
        &mut self,
        backend: &mut B,
        calls: &LoopCalls<B>,
        events: &mut Vec<epoll::Event>,
    ) -> io::Result<()> {
        self.stage = Stage::Draining;
        backend.begin_to_end();
        if std::mem::replace(&mut self.is_accepting, false) {
            epoll::delete(&self.epoll, &self.listener)?;
        }
        self.watch_inputs();
        let until = self.clock.now().saturating_add(self.settings.limits.drain);
        while self.is_owed(backend) && self.clock.now() < until {
            self.turn(backend, calls, events)?;
        }
        self.stage = Stage::Parting;
        for index in 0..self.peers.len() {
            if let Some(Some(peer)) = self.peers.get_mut(index) {
                peer.connection.close(End::Closed);
                self.list(index);
            }
        }
        self.watch_inputs();
        let parting = PARTING.min(self.settings.limits.drain);
        let until = self.clock.now().saturating_add(parting);
        while self.peers.iter().any(Option::is_some) && self.clock.now() < until {
            self.turn(backend, calls, events)?;
        }
        Ok(())
    }

    /// Whether the drive works on something, or an answer is not with its socket yet.
    fn is_owed(&self, backend: &impl Backend) -> bool {
        let mut peers = self.peers.iter().flatten();
        backend.in_drive() > 0 || peers.any(|peer| !peer.is_gone && peer.connection.has_output())
    }

    /// Reads from all sockets, or from none if the server ends.
    fn watch_inputs(&mut self) {
        for index in 0..self.peers.len() {
            self.watch_input(index, true);
        }
    }
}
