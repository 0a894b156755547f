//! One connection with its socket.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::identify::Nqn;

use super::budget::HostId;
use super::limits::{Limits, Standing};
use super::socket::Socket;
use crate::Buffers;
use crate::controller::QueueHandle;
use crate::tcp::Connection;

/// Pieces of one write: the kernel takes up to 1024, and what is more goes
/// with the next.
const SLICES: usize = 96;

/// What became of a socket.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All that there was went through.
    Done,
    /// The socket has no room, or nothing more.
    Blocked,
    /// It is closed or broken.
    Gone,
}

impl Progress {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Self::Blocked,
            _ => Self::Gone,
        }
    }
}

/// Whether a peer moves what it has to move.
#[derive(Copy, Clone, Debug, Default)]
struct Meter {
    /// Since when it has to; `None`: it has not.
    since: Option<Nanos>,
    bytes: u64,
}

impl Meter {
    /// Whether less than the limits ask for was moved for as long as they say.
    fn is_slow(&mut self, has_to: bool, limits: &Limits, now: Nanos) -> bool {
        let restart = |meter: &mut Self, since| {
            *meter = Self { since, bytes: 0 };
        };
        let since = match self.since {
            Some(since) if has_to => since,
            _ => {
                restart(self, has_to.then_some(now));
                return false;
            }
        };
        let elapsed = now.saturating_sub(since);
        if elapsed < limits.stall {
            return false;
        }
        let per_s = u128::from(limits.least_bytes_per_s);
        let least = per_s * u128::from(elapsed.0) / 1_000_000_000;
        let is_slow = self.bytes == 0 || u128::from(self.bytes) < least;
        restart(self, Some(now));
        is_slow
    }
}

/// A connection, its socket, and what the server remembers of it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: Socket,
    pub(super) address: SocketAddr,
    /// The host that it has shown to be before it came here; `None`: none.
    pub(super) known_as: Option<Nqn>,
    pub(super) connection: Connection,
    pub(super) standing: Standing,
    /// Its queue, once there is one and until it is given up.
    pub(super) queue: Option<QueueHandle>,
    /// Number of that queue.
    pub(super) qid: u16,
    /// Its host, once there is a queue.
    pub(super) host: Option<HostId>,
    /// Bytes that the budget knows of.
    pub(super) accounted_bytes: u64,
    /// It is in the list of those that have something to send.
    pub(super) is_listed: bool,
    /// It is in the list of those whose commands are to be looked at.
    pub(super) is_unfinished: bool,
    /// It is in the list of those that wait for memory of others.
    pub(super) is_hungry: bool,
    /// The loop is told when the socket has room again.
    pub(super) waits_for_room: bool,
    /// The loop is told when there is something to read.
    pub(super) is_read: bool,
    /// When it was accepted.
    pub(super) opened: Nanos,
    /// When it came a step further for the last time, while it is a stranger.
    pub(super) moved: Nanos,
    /// When nothing more was to be sent after its end.
    pub(super) ended: Option<Nanos>,
    /// To be removed. Only the server says so, which then does it.
    pub(super) is_gone: bool,
    received: Meter,
    sent: Meter,
}

impl Peer {
    pub(super) fn new(
        stream: Socket,
        (address, known_as): (SocketAddr, Option<Nqn>),
        connection: Connection,
        now: Nanos,
    ) -> Self {
        Self {
            stream,
            address,
            known_as,
            connection,
            standing: Standing::Stranger,
            queue: None,
            qid: 0,
            host: None,
            accounted_bytes: 0,
            is_listed: false,
            is_unfinished: false,
            is_hungry: false,
            waits_for_room: false,
            is_read: true,
            opened: now,
            moved: now,
            ended: None,
            is_gone: false,
            received: Meter::default(),
            sent: Meter::default(),
        }
    }

    /// Reads once.
    pub(super) fn read(&mut self) -> Progress {
        let mut slices = self.connection.receive_slices();
        match self.stream.read_vectored(&mut slices) {
            Ok(0) => Progress::Gone,
            Ok(len) => {
                self.connection.received(len);
                self.received.bytes += len as u64;
                Progress::Done
            }
            Err(error) => Progress::of(&error),
        }
    }

    /// Writes until there is nothing more or no room.
    pub(super) fn write(
        &mut self,
        buffers: &mut Buffers,
        mut finished: impl FnMut(Nanos, Option<Buf>),
    ) -> Progress {
        while self.connection.has_output() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.connection.send_slices(&mut slices);
            match self.stream.write_vectored(&slices[..count]) {
                Ok(0) => return Progress::Gone,
                Ok(len) => {
                    self.connection.sent(len, buffers, &mut finished);
                    self.sent.bytes += len as u64;
                }
                Err(error) => return Progress::of(&error),
            }
        }
        Progress::Done
    }

    /// Says that nothing more will come, and leaves it to the host to close: to
    /// close with bytes unread would take the last PDU from it.
    ///
    /// # Errors
    /// The host has closed already, or reset the connection.
    pub(super) fn shut_down(&mut self, now: Nanos) -> io::Result<()> {
        self.ended = Some(now);
        self.stream.shutdown(Shutdown::Write)
    }

    /// Which time limit it has broken.
    pub(super) fn overdue(&mut self, limits: &Limits, now: Nanos) -> Option<&'static str> {
        if self.ended.is_some() {
            return None;
        }
        let has_none = self.queue.is_none() && self.connection.end().is_none();
        let is_late = has_none && now.saturating_sub(self.opened) > limits.handshake;
        let takes_slowly = self.sent.is_slow(self.waits_for_room, limits, now);
        let sends_slowly = self
            .received
            .is_slow(self.connection.is_owed(), limits, now);
        if is_late {
            Some("no queue was made in time")
        } else if takes_slowly {
            Some("it does not take what it is sent, or too slowly")
        } else if sends_slowly {
            Some("it owes the rest of a PDU or data, and does not send it, or too slowly")
        } else {
            None
        }
    }
}
