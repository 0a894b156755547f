//! A port on which TLS ends.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use s2n_tls::callbacks::{ClientHelloCallback, ConnectionFuture};
use s2n_tls::config::Config;
use s2n_tls::connection::{Builder, Connection};
use s2n_tls::enums::{Mode, Version};
use s2n_tls::error::Error;
use s2n_tls::security::DEFAULT_TLS13;
use s2n_tls_tokio::TlsAcceptor;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::Keys;
use crate::guests::Guests;
use crate::offer::identities;
use crate::relay::{Impatient, relay};

/// How long no connection is accepted when the system has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// What peers may cost before they have shown a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrontLimits {
    /// Handshakes at a time. Who comes when there are so many ends an older one.
    pub handshakes: usize,
    /// Those of an address.
    pub address_handshakes: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a peer may take for a record (16 KiB) of what it is sent, before its
    /// connection ends.
    pub stall: Duration,
}

impl FrontLimits {
    /// 64, 16 of an address, 10 s, and 30 s for a record.
    pub const DEFAULT: Self = Self {
        handshakes: 64,
        address_handshakes: 16,
        handshake: Duration::from_secs(10),
        stall: Duration::from_secs(30),
    };

    /// How long a peer that has done something wrong waits for an answer, at most, in
    /// seconds. The library makes that a random time, so that how long it took says nothing
    /// about the key. It has to be over before the time of the handshake is, or the log
    /// would say that there was no time, and not what was wrong.
    fn silence_s(&self) -> u32 {
        u32::try_from(self.handshake.as_secs() / 2).unwrap_or(u32::MAX)
    }
}

impl Default for FrontLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A peer that has shown its key.
#[derive(Debug)]
pub struct Admitted {
    /// What is inside TLS.
    pub stream: UnixStream,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Whose key it was.
    pub hostnqn: String,
    /// The identity by which it was offered.
    pub identity: String,
}

/// What stands behind a [`Front`]. A closure that takes peers in is one.
pub trait Behind: Send + Sync + 'static {
    /// Gives the socket of a peer that has just connected the options that it is to have.
    ///
    /// # Errors
    /// The system refuses one of them; the connection then ends.
    fn prepare(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let _ = socket;
        Ok(())
    }

    /// Takes in a peer that has shown its key. False: nobody does, and it is closed.
    fn admit(&self, admitted: Admitted) -> bool;

    /// Learns that a peer with the right key could not be let in, and why.
    fn failed(&self, peer: SocketAddr, reason: &'static str) {
        tracing::warn!(%peer, reason, "no connection with TLS");
    }
}

impl<F: Fn(Admitted) -> bool + Send + Sync + 'static> Behind for F {
    fn admit(&self, admitted: Admitted) -> bool {
        self(admitted)
    }
}

/// Ends TLS until it is dropped.
#[derive(Debug)]
pub struct Front {
    address: SocketAddr,
    keys: watch::Sender<Arc<Keys>>,
    _ends: oneshot::Sender<()>,
}

impl Front {
    /// Ends TLS on `listener` in a thread of its own, which hands every peer that has shown
    /// its key to what is `behind`.
    ///
    /// # Errors
    /// The system has no thread or descriptor left, or the library cannot be set up.
    pub fn start(
        listener: TcpListener,
        keys: Keys,
        limits: FrontLimits,
        behind: impl Behind,
    ) -> io::Result<Self> {
        let mut config = Config::builder();
        config.set_security_policy(&DEFAULT_TLS13)?;
        config.set_max_blinding_delay(limits.silence_s())?;
        config.set_client_hello_callback(Listens)?;
        let config = config.build()?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (keys, shown) = watch::channel(Arc::new(keys));
        let (ends, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let door = Arc::new(Door {
            config,
            limits,
            keys: shown,
            guests: Guests::default(),
            behind: Box::new(behind),
        });
        let serves = move || {
            let accepts = async {
                let mut ended = pin!(ended);
                let mut accepts = pin!(accept(listener, door));
                poll_fn(|cx| match ended.as_mut().poll(cx) {
                    Poll::Ready(_) => Poll::Ready(()),
                    Poll::Pending => accepts.as_mut().poll(cx),
                })
                .await;
            };
            runtime.block_on(accepts);
        };
        let thread = std::thread::Builder::new().name("tls".to_owned());
        thread.spawn(serves)?;
        Ok(Self {
            address,
            keys,
            _ends: ends,
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where keys can be replaced: see [`Self::replace`].
    #[must_use]
    pub fn keys(&self) -> watch::Sender<Arc<Keys>> {
        self.keys.clone()
    }

    /// Replaces the keys. Connections of hosts that have none any more end; the others go
    /// on, and need the new ones the next time.
    pub fn replace(keys: &watch::Sender<Arc<Keys>>, new: Keys) {
        keys.send_replace(Arc::new(new));
    }
}

/// What all connections share.
struct Door {
    config: Config,
    limits: FrontLimits,
    keys: watch::Receiver<Arc<Keys>>,
    guests: Guests,
    behind: Box<dyn Behind>,
}

/// The place of a handshake, which is free again when this is dropped.
struct Place {
    door: Arc<Door>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.door.guests.leave(self.number);
    }
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "cannot listen for TLS"),
    };
    let mut number = 0;
    let mut is_failing = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                is_failing = false;
                number += 1;
                door.guests.make_room(peer.ip(), &door.limits);
                let place = Place {
                    door: Arc::clone(&door),
                    number,
                };
                let task = tokio::spawn(serve(stream, peer, place)).abort_handle();
                // The task has not run yet: there is one thread.
                door.guests.enter(number, peer.ip(), task);
            }
            Err(error) => {
                // Out of descriptors, mostly. It is said once, until it is over.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "cannot accept connections for TLS");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A connection from its first byte to its last.
async fn serve(stream: TcpStream, peer: SocketAddr, place: Place) {
    let door = Arc::clone(&place.door);
    let _ = stream.set_nodelay(true);
    if let Err(error) = door.behind.prepare(stream.as_fd()) {
        return tracing::debug!(%peer, %error, "not admitted");
    }
    let mut keys = door.keys.clone();
    let offered = Offered {
        config: door.config.clone(),
        keys: Arc::clone(&keys.borrow_and_update()),
        heard: Heard::default(),
    };
    let known = Arc::clone(&offered.keys);
    let heard = offered.heard.clone();
    let shakes = TlsAcceptor::new(offered);
    let stream = Impatient::new(stream, door.limits.stall);
    let shaken = timeout(door.limits.handshake, shakes.accept(stream)).await;
    drop(place);
    let tls = match shaken {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => return tracing::debug!(%peer, offered = %heard, %error, "no TLS"),
        Err(_) => return tracing::debug!(%peer, offered = %heard, "no TLS in time"),
    };
    let Some(identity) = identity(tls.as_ref()) else {
        return tracing::debug!(%peer, "no key of TLS was shown");
    };
    let Some(hostnqn) = known.host(&identity).map(str::to_owned) else {
        return;
    };
    if !keys.borrow().has_same_key(&known, &hostnqn) {
        return tracing::debug!(%peer, identity, "the key was replaced during the handshake");
    }
    let Ok((inside, outside)) = UnixStream::pair() else {
        return door
            .behind
            .failed(peer, "no descriptor is left for its connection with TLS");
    };
    let is_set = inside.set_nonblocking(true).is_ok();
    let Some(Ok(inside)) = is_set.then(|| tokio::net::UnixStream::from_std(inside)) else {
        return door
            .behind
            .failed(peer, "the system cannot wait for its connection with TLS");
    };
    let admitted = Admitted {
        stream: outside,
        peer,
        hostnqn: hostnqn.clone(),
        identity,
    };
    if door.behind.admit(admitted) {
        relay(tls, inside, async {
            let is_gone = keys.wait_for(|keys| !keys.knows(&hostnqn)).await.is_ok();
            // Nobody can replace the keys any more: they stay.
            if !is_gone {
                std::future::pending::<()>().await;
            }
        })
        .await;
    }
}

/// The identity of the key that was shown, if all is as it has to be.
fn identity(connection: &Connection) -> Option<String> {
    let is_tls13 = connection.actual_protocol_version().ok()? == Version::TLS13;
    let length = connection.negotiated_psk_identity_length().ok()?;
    let mut identity = vec![0; length];
    connection.negotiated_psk_identity(&mut identity).ok()?;
    String::from_utf8(identity)
        .ok()
        .filter(|_| is_tls13 && length > 0)
}

/// The keys of a handshake.
#[derive(Clone)]
struct Offered {
    config: Config,
    keys: Arc<Keys>,
    heard: Heard,
}

/// The identities that a client offered.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.write_str(&heard.join(", "))
    }
}

/// Notes what a client offers.
struct Listens;

impl ClientHelloCallback for Listens {
    fn on_client_hello(
        &self,
        connection: &mut Connection,
    ) -> Result<Option<Pin<Box<dyn ConnectionFuture>>>, Error> {
        let hello = connection.client_hello()?.raw_message()?;
        if let Some(Heard(heard)) = connection.application_context::<Heard>() {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = identities(&hello);
        }
        Ok(None)
    }
}

impl Builder for Offered {
    type Output = Connection;

    fn build_connection(&self, mode: Mode) -> Result<Connection, Error> {
        let mut connection = Connection::new(mode);
        connection.set_config(self.config.clone())?;
        connection.set_application_context(self.heard.clone());
        for psk in &self.keys.psks {
            connection.append_psk(psk)?;
        }
        Ok(connection)
    }
}
