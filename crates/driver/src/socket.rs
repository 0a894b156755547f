//! A connection with its socket. Nothing in here blocks but `open` and `call`.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use zonelab_device::{Buf, Monotonic, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

use crate::clock::time_limit;
use crate::error::DriverError;
use crate::tcp::{Connection, Done, Settings, Transfer};

/// Slices of a vectored write: 21 PDUs with data.
const SLICES: usize = 64;

/// Tokens of commands that somebody waits for.
const CALL: u64 = 1 << 63;

/// How a command ended that somebody waited for.
#[derive(Debug)]
pub struct Reply {
    /// The completion.
    pub entry: CompletionEntry,
    /// The buffer that came with the command.
    pub data: Option<Buf>,
    /// Bytes of it that were moved.
    pub transferred: u32,
}

impl Reply {
    /// The same if the command succeeded.
    ///
    /// # Errors
    /// [`DriverError::Command`] with the status. `what` says which command it was.
    pub fn ok(self, what: &'static str) -> Result<Self, DriverError> {
        self.ok_by(what, |status| status.name())
    }

    /// The same for a fabrics command, whose statuses have names of their own.
    pub(crate) fn fabrics_ok(self, what: &'static str) -> Result<Self, DriverError> {
        self.ok_by(what, Status::fabrics_name)
    }

    fn ok_by(
        self,
        what: &'static str,
        name: impl Fn(Status) -> Option<&'static str>,
    ) -> Result<Self, DriverError> {
        let status = self.entry.status.status();
        if status.is_success() {
            return Ok(self);
        }
        Err(DriverError::Command {
            what,
            status,
            name: name(status).unwrap_or("a status without a name"),
            dnr: self.entry.status.dnr(),
        })
    }
}

/// A connection and its socket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    pub(crate) connection: Connection,
    pub(crate) clock: Monotonic,
    next_call: u64,
    /// Finished commands that nobody waits for in `call`.
    others: Vec<Done>,
}

impl Socket {
    /// Connects, and exchanges the connection request and response.
    pub(crate) fn open(
        (host, port): (&str, u16),
        settings: Settings,
        clock: Monotonic,
        timeout: Nanos,
    ) -> Result<Self, DriverError> {
        let stream = connect(host, port, timeout).map_err(|source| DriverError::Unreachable {
            address: format!("{host}:{port}"),
            source,
        })?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut socket = Self {
            stream,
            connection: Connection::new(settings),
            clock,
            next_call: CALL,
            others: Vec::new(),
        };
        loop {
            socket.pump()?;
            if socket.connection.is_open() {
                return Ok(socket);
            }
            socket.wait(settings.open_by)?;
        }
    }

    /// Sends what can be sent, receives what is there, looks for late commands.
    pub(crate) fn pump(&mut self) -> Result<(), DriverError> {
        self.flush()?;
        let filled = self.fill();
        // An answer to an R2T, or the reason why the connection ends.
        let flushed = self.flush();
        filled.and(flushed)?;
        let now = self.clock.now();
        Ok(self.connection.expire(now)?)
    }

    /// Sends until the socket takes no more.
    pub(crate) fn flush(&mut self) -> Result<(), DriverError> {
        while self.connection.has_output() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.connection.output(&mut slices);
            match self.stream.write_vectored(&slices[..filled]) {
                Ok(0) => return Err(DriverError::Closed),
                Ok(bytes) => self.connection.sent(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives until the socket has no more.
    fn fill(&mut self) -> Result<(), DriverError> {
        loop {
            let [data, rest] = self.connection.input();
            let room = data.len() + rest.len();
            let mut slices = [IoSliceMut::new(data), IoSliceMut::new(rest)];
            // An empty first slice costs nothing.
            match self.stream.read_vectored(&mut slices) {
                Ok(0) => return Err(DriverError::Closed),
                Ok(bytes) => {
                    self.connection.received(bytes)?;
                    // Less than there was room for: the socket is empty.
                    if bytes < room {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until something can be received, or sent if something is to be, at
    /// most until `until`.
    pub(crate) fn wait(&mut self, until: Nanos) -> Result<(), DriverError> {
        let span = until.saturating_sub(self.clock.now());
        if span == Nanos::ZERO {
            return Ok(());
        }
        let mut flags = PollFlags::IN;
        if self.connection.has_output() {
            flags |= PollFlags::OUT;
        }
        let mut asked = [PollFd::new(&self.stream, flags)];
        // Data, an end or an error: the next receive meets it, too.
        match poll(&mut asked, Some(&time_limit(span))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    /// What the system calls the socket.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Submits a command and waits for its end, at most for `timeout`.
    pub(crate) fn call(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
        timeout: Nanos,
    ) -> Result<Reply, DriverError> {
        let token = self.next_call;
        self.next_call = CALL | self.next_call.wrapping_add(1);
        let deadline = self.clock.now().saturating_add(timeout);
        self.connection
            .submit(entry, transfer, token, deadline)
            .map_err(|refused| DriverError::NotTaken {
                what,
                reason: refused.reason,
            })?;
        loop {
            self.pump()?;
            while let Some(done) = self.connection.next_done() {
                if done.token != token {
                    self.others.push(done);
                    continue;
                }
                return Ok(Reply {
                    entry: done.entry,
                    data: done.data,
                    transferred: done.transferred,
                });
            }
            // The deadline itself makes `pump` fail.
            self.wait(deadline.saturating_add(Nanos(1)))?;
        }
    }

    /// The next finished command that was not submitted by `call`.
    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.others.pop().or_else(|| self.connection.next_done())
    }

    /// Ends the TCP connection. What was sent still arrives.
    pub(crate) fn close(&mut self) {
        // A connection that is gone already is closed, too.
        let _gone = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// The first address of the host that takes the connection.
fn connect(host: &str, port: u16, timeout: Nanos) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, Duration::from_nanos(timeout.0.max(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
