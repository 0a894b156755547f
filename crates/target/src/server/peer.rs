//! One connection with its socket.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use zonelab_device::{Buf, Nanos};

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

/// A connection, its socket, and what the server remembers of it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) connection: Connection,
    /// Its queue, once there is one and until it is given up.
    pub(super) queue: Option<QueueHandle>,
    /// Number of that queue.
    pub(super) qid: u16,
    /// It is in the list of those that have something to send.
    pub(super) is_listed: bool,
    /// The loop is told when the socket has room again.
    pub(super) waits_for_room: bool,
    /// When it was accepted.
    pub(super) opened: Nanos,
    /// When bytes last arrived.
    pub(super) arrived: Nanos,
    /// Since when it takes nothing of what it is sent.
    pub(super) blocked: Option<Nanos>,
    /// When nothing more was to be sent after its end.
    pub(super) ended: Option<Nanos>,
    /// To be removed.
    pub(super) is_gone: bool,
}

impl Peer {
    pub(super) fn new(
        stream: TcpStream,
        address: SocketAddr,
        connection: Connection,
        now: Nanos,
    ) -> Self {
        Self {
            stream,
            address,
            connection,
            queue: None,
            qid: 0,
            is_listed: false,
            waits_for_room: false,
            opened: now,
            arrived: now,
            blocked: None,
            ended: None,
            is_gone: false,
        }
    }

    /// Reads once.
    pub(super) fn read(&mut self, now: Nanos) -> Progress {
        let mut slices = self.connection.receive_slices();
        match self.stream.read_vectored(&mut slices) {
            Ok(0) => Progress::Gone,
            Ok(len) => {
                self.connection.received(len);
                self.arrived = now;
                Progress::Done
            }
            Err(error) => Progress::of(&error),
        }
    }

    /// Writes until there is nothing more or no room.
    pub(super) fn write(
        &mut self,
        now: Nanos,
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
                    self.blocked = None;
                }
                Err(error) => {
                    self.blocked.get_or_insert(now);
                    return Progress::of(&error);
                }
            }
        }
        self.blocked = None;
        Progress::Done
    }

    /// Says that nothing more will come, and leaves it to the host to close: to
    /// close with bytes unread would take the last PDU from it.
    pub(super) fn shut_down(&mut self, now: Nanos) {
        self.ended = Some(now);
        if self.stream.shutdown(Shutdown::Write).is_err() {
            self.is_gone = true;
        }
    }
}
