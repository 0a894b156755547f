//! What a connection comes through.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt;

/// A peer that is silent for so long is asked whether it is still there, so
/// often and at such intervals.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_PROBES: u32 = 6;

/// Has the system find out when the peer of a TCP socket has vanished: after two minutes.
///
/// # Errors
/// The system refuses.
pub fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, KEEP_ALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEP_ALIVE_PROBES)?;
    Ok(())
}

/// A stream of bytes that does not block.
#[derive(Debug)]
pub(super) enum Socket {
    /// To a peer.
    Tcp(TcpStream),
    /// To somebody in this process who stands between.
    Local(UnixStream),
}

impl Socket {
    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Local(stream) => stream.shutdown(how),
        }
    }

    pub(super) fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_vectored(slices),
            Self::Local(stream) => stream.read_vectored(slices),
        }
    }

    pub(super) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            Self::Local(stream) => stream.write_vectored(slices),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Local(stream) => stream.as_fd(),
        }
    }
}
