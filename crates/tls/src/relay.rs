//! The way of bytes between TLS and the server, once a peer has shown its key.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use s2n_tls_tokio::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf, copy_buf, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep, timeout};

/// Bytes that are on their way inside, in each direction of a connection.
const BUFFER_BYTES: usize = 64 << 10;
/// How long the end of a connection may take once there is nothing more to say.
const LINGER: Duration = Duration::from_secs(2);

/// The socket of a peer, which is broken once the peer has not taken for so long what it is
/// sent. Without that, a peer that reads no more would keep what the server said last, and
/// with it the connection, for ever.
pub(crate) struct Impatient {
    stream: TcpStream,
    stall: Duration,
    /// Runs while something waits to be taken.
    waits: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    pub(crate) const fn new(stream: TcpStream, stall: Duration) -> Self {
        Self {
            stream,
            stall,
            waits: None,
        }
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
    /// A call has one record of TLS at most, or what is left of it: 16 KiB.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(Ok(len)) => {
                if len == bytes.len() {
                    self.waits = None;
                }
                Poll::Ready(Ok(len))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let stall = self.stall;
                let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(stall)));
                ready!(waits.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Passes bytes on until either end has no more, the peer takes none, or `revoked` is.
pub(crate) async fn relay(
    tls: TlsStream<Impatient>,
    inside: UnixStream,
    revoked: impl Future<Output = ()>,
) {
    let (from_host, mut to_host) = split(tls);
    let (from_server, mut to_server) = inside.into_split();
    {
        let mut from_host = BufReader::with_capacity(BUFFER_BYTES, from_host);
        let mut from_server = BufReader::with_capacity(BUFFER_BYTES, from_server);
        let mut inwards = pin!(copy_buf(&mut from_host, &mut to_server));
        let mut outwards = pin!(copy_buf(&mut from_server, &mut to_host));
        let mut revoked = pin!(revoked);
        poll_fn(|cx| {
            let is_over = inwards.as_mut().poll(cx).is_ready()
                || outwards.as_mut().poll(cx).is_ready()
                || revoked.as_mut().poll(cx).is_ready();
            match is_over {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
    let _ = timeout(LINGER, to_host.shutdown()).await;
}
