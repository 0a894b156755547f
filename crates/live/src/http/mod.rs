//! GET and HEAD over HTTP/1.1, for a browser or a scraper on this machine.
//!
//! Requests are parsed by `httparse`; the hundred lines around it are ours,
//! because no server fits: `tiny_http` (last release in 2022) has neither time
//! limits nor bounds for connections and heads, `hyper` has them and needs an
//! asynchronous runtime, which nothing here has.
//!
//! What a client can cost is bounded by [`Limits`]: connections, each a thread
//! and one request of at most [`HEAD_BYTES`], and time for the request and
//! again for the answer. Every answer ends its connection: what is
//! asked for once a second needs no more, and no idle connection takes the
//! place of another. Requests that follow in the same bytes are not answered.

mod deadline;
mod request;

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use request::{HEAD_BYTES, Refusal, Request, parse};

pub(crate) use deadline::Deadline;

/// What clients may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time; others are closed as soon as they come.
    pub connections: usize,
    /// Time for a request to come, and for its answer to be taken.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16,
            patience: Duration::from_secs(5),
        }
    }
}

/// Stack of the thread of a client: an answer needs little.
pub const STACK_BYTES: usize = 512 << 10;

/// Time and bytes that a client has to close its side after the answer. To
/// close with bytes unread would take the end of the answer from it.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 16;

/// What goes with every answer: no guessing of types, no frames, no caches, no
/// reading by pages of other origins.
const FIELDS: &str = "X-Content-Type-Options: nosniff\r\n\
                      X-Frame-Options: DENY\r\n\
                      Referrer-Policy: no-referrer\r\n\
                      Cross-Origin-Resource-Policy: same-origin\r\n\
                      Cross-Origin-Opener-Policy: same-origin\r\n\
                      Cache-Control: no-store\r\n\
                      Connection: close\r\n";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code and phrase.
    pub status: (u16, &'static str),
    /// Media type of the body.
    pub media_type: &'static str,
    /// What a page may load (Content-Security-Policy).
    pub policy: Cow<'static, str>,
    /// The body.
    pub body: Cow<'static, [u8]>,
}

impl Reply {
    /// A body with success, which loads nothing.
    #[must_use]
    pub fn ok(media_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            status: (200, "OK"),
            media_type,
            policy: Cow::Borrowed("default-src 'none'; frame-ancestors 'none'"),
            body: body.into(),
        }
    }

    /// A line of text with another status.
    #[must_use]
    pub fn text(status: (u16, &'static str), text: &str) -> Self {
        Self {
            status,
            ..Self::ok(
                "text/plain; charset=utf-8",
                format!("{text}\n").into_bytes(),
            )
        }
    }

    fn head(&self) -> String {
        let (code, phrase) = self.status;
        let allow = if code == 405 {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        format!(
            "HTTP/1.1 {code} {phrase}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
             Content-Security-Policy: {}\r\n{allow}{FIELDS}\r\n",
            self.media_type,
            self.body.len(),
            self.policy,
        )
    }
}

/// Answers requests. Several threads call it.
pub trait Handler: Send + Sync + 'static {
    /// The answer for a path.
    fn reply(&self, path: &str) -> Reply;
}

/// A listening socket with its threads. Dropping it closes the socket;
/// connections go on to their end.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens on `address`.
    ///
    /// # Errors
    /// It cannot be listened on, or there is no thread left.
    pub fn start(address: SocketAddr, limits: Limits, handler: impl Handler) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || accept(&listener, limits, &Arc::new(handler), &stopped))?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// The address that it listens on, with the port that it got.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread waits for connections: give it one.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        if TcpStream::connect_timeout(&address, LINGER).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// A place among the connections.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let place = Self(Arc::clone(taken));
        // Whoever is one too many gives its place back at once.
        (taken.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, limits: Limits, handler: &Arc<impl Handler>, stop: &AtomicBool) {
    let taken = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Relaxed) {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: they come back.
                tracing::debug!(%error, "http: not accepted");
                std::thread::park_timeout(LINGER);
                continue;
            }
        };
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(place) = Place::take(&taken, limits.connections) else {
            tracing::debug!(%peer, "http: turned away");
            continue;
        };
        let handler = Arc::clone(handler);
        let spawned = std::thread::Builder::new()
            .name("http".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                if let Err(error) = converse(stream, peer, limits.patience, &*handler) {
                    tracing::debug!(%peer, %error, "http: broken off");
                }
                drop(place);
            });
        if let Err(error) = spawned {
            tracing::warn!(%error, "http: no thread");
        }
    }
}

/// One request and its answer.
fn converse(
    mut stream: TcpStream,
    peer: SocketAddr,
    patience: Duration,
    handler: &impl Handler,
) -> io::Result<()> {
    let local = stream.local_addr()?.ip();
    let Some(request) = read_request(&mut stream, local, patience)? else {
        return Ok(());
    };
    let (reply, is_head) = match &request {
        Ok(request) => (handler.reply(&request.path), request.is_head),
        Err(refusal) => (Reply::text(refusal.status(), &refusal.to_string()), false),
    };
    let path = request.as_ref().map_or("", |request| &request.path);
    tracing::debug!(%peer, path, status = reply.status.0, "http");
    let deadline = Deadline::after(patience);
    write_all(&mut stream, reply.head().as_bytes(), deadline)?;
    if !is_head {
        write_all(&mut stream, &reply.body, deadline)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let (deadline, mut rest) = (Deadline::after(LINGER), [0; 1024]);
    for _ in 0..LINGER_BYTES / rest.len() {
        let Some(left) = deadline.left() else { break };
        stream.set_read_timeout(Some(left))?;
        if !matches!(stream.read(&mut rest), Ok(1..)) {
            break;
        }
    }
    Ok(())
}

/// `None`: the client has closed without a whole request.
fn read_request(
    stream: &mut TcpStream,
    local: IpAddr,
    patience: Duration,
) -> io::Result<Option<Result<Request, Refusal>>> {
    let deadline = Deadline::after(patience);
    let (mut head, mut piece) = (Vec::new(), [0; 2048]);
    loop {
        let Some(left) = deadline.left() else {
            return Ok(Some(Err(Refusal::Slow)));
        };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(len) => head.extend_from_slice(&piece[..len]),
            Err(error) if is_late(&error) => continue,
            Err(error) => return Err(error),
        }
        if let Some(request) = parse(&head, local).transpose() {
            return Ok(Some(request));
        }
    }
}

/// A time limit of the socket, or a signal: the deadline decides.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.left().ok_or(ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
