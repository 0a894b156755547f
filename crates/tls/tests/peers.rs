//! OpenSSL's client at the port: keys, identities, and what is refused.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use zonelab_auth::{Derivation, IdentityVersion, TlsKey, TlsNames};
use zonelab_nvme::auth::{Hash, Psk};
use zonelab_tls::{Admitted, Front, FrontLimits, HostPsk, Keys};

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const SUB: &str = "nqn.2024-01.io.github.zonelab:test";
const PATIENCE: Duration = Duration::from_secs(60);

fn psk(byte: u8) -> Psk {
    Psk::new(Some(Hash::SHA_256), &[byte; 32]).unwrap()
}

fn keys(byte: u8) -> Keys {
    keys_as(byte, Derivation::Specified)
}

fn keys_as(byte: u8, derivation: Derivation) -> Keys {
    let entry = HostPsk {
        hostnqn: HOST.to_owned(),
        psk: psk(byte),
        derivation,
    };
    Keys::new(&[entry], SUB).unwrap()
}

fn derived(byte: u8, version: IdentityVersion) -> TlsKey {
    derived_as(byte, version, Derivation::Specified)
}

fn derived_as(byte: u8, version: IdentityVersion, derivation: Derivation) -> TlsKey {
    let names = TlsNames {
        hostnqn: HOST,
        subnqn: SUB,
    };
    TlsKey::derive_as(&psk(byte), names, version, derivation).unwrap()
}

/// A front, and who was let in.
fn front() -> (Front, Receiver<Admitted>) {
    front_with(FrontLimits::default())
}

fn front_with(limits: FrontLimits) -> (Front, Receiver<Admitted>) {
    front_of(keys(1), limits)
}

fn front_of(keys: Keys, limits: FrontLimits) -> (Front, Receiver<Admitted>) {
    let (to, admitted) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let admit = move |peer: Admitted| to.send(peer).is_ok();
    let front = Front::start(listener, keys, limits, admit).unwrap();
    (front, admitted)
}

/// `openssl s_client` with a key.
fn client(front: &Front, key: &TlsKey, more: &[&str]) -> Command {
    client_at(front.address(), key, more)
}

fn client_at(address: SocketAddr, key: &TlsKey, more: &[&str]) -> Command {
    let hex: String = key.key().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &address.to_string()]);
    command
        .args(["-psk", &hex, "-psk_identity", &key.identity])
        .args(more);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Both identities lead to the name of their host, and bytes go both ways.
#[test]
fn openssl_shows_its_key_by_either_identity() {
    let (front, admitted) = front();
    for version in [IdentityVersion::V0, IdentityVersion::V1] {
        let key = derived(1, version);
        let mut child = client(&front, &key, &["-tls1_3"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"of the host").unwrap();
        let mut peer = admitted.recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            (peer.hostnqn.as_str(), &peer.identity),
            (HOST, &key.identity)
        );
        let mut bytes = [0; 11];
        peer.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.stream.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"of the host");
        peer.stream.write_all(b"of the server").unwrap();
        drop(peer);
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "of the server");
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// A host of which it is said that libnvme derives its keys is let in by these, and by the one
/// of the specification whose identity tells that it is one.
#[test]
fn a_host_of_libnvme_is_let_in_if_that_is_said_of_it() {
    use Derivation::{Libnvme, Specified};
    use IdentityVersion::{V0, V1};

    let limits = FrontLimits {
        handshake: Duration::from_secs(2),
        ..FrontLimits::default()
    };
    for (said, ways) in [
        (
            Libnvme,
            [
                (V0, Libnvme, true),
                (V1, Libnvme, true),
                (V1, Specified, true),
            ],
        ),
        (
            Specified,
            [
                (V0, Libnvme, false),
                (V1, Libnvme, false),
                (V0, Specified, true),
            ],
        ),
    ] {
        let (front, admitted) = front_of(keys_as(1, said), limits);
        for (version, derivation, is_let_in) in ways {
            let key = derived_as(1, version, derivation);
            let mut child = client(&front, &key, &["-tls1_3"]).spawn().unwrap();
            // Without an end of its input it stays until it is let go.
            let stdin = child.stdin.take();
            let about = format!("{version:?} as {derivation:?} where {said:?} is said");
            if is_let_in {
                let peer = admitted.recv_timeout(PATIENCE).expect(&about);
                assert_eq!(
                    (peer.hostnqn.as_str(), &peer.identity),
                    (HOST, &key.identity)
                );
                let _ = child.kill();
            }
            child.wait().unwrap();
            assert!(admitted.try_recv().is_err(), "{about}");
            drop(stdin);
        }
    }
}

/// What passes between a client and a front.
enum Passed {
    /// The first bytes of the client.
    Hello(Vec<u8>),
    /// The front has answered something.
    Answer,
    /// The front has closed.
    Closed,
}

/// Stands between one client and a front.
struct Between {
    address: SocketAddr,
    passed: Receiver<Passed>,
    /// What the client sends after its first message waits until this is dropped.
    holds: Option<Sender<()>>,
}

impl Between {
    fn new(front: &Front) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, at) = (listener.local_addr().unwrap(), front.address());
        let (tell, passed) = mpsc::channel();
        let (holds, held) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut front = TcpStream::connect(at).unwrap();
            let mut answers = (front.try_clone().unwrap(), client.try_clone().unwrap());
            let tells = tell.clone();
            std::thread::spawn(move || {
                while let Some(bytes) = some(&mut answers.0) {
                    let _ = tells.send(Passed::Answer);
                    let _ = answers.1.write_all(&bytes);
                }
                let _ = tells.send(Passed::Closed);
                let _ = answers.1.shutdown(Shutdown::Both);
            });
            let mut is_first = true;
            while let Some(bytes) = some(&mut client) {
                if std::mem::take(&mut is_first) {
                    let _ = tell.send(Passed::Hello(bytes.clone()));
                } else {
                    let _ = held.recv();
                }
                let _ = front.write_all(&bytes);
            }
            let _ = front.shutdown(Shutdown::Write);
        });
        Self {
            address,
            passed,
            holds: Some(holds),
        }
    }

    fn go_on(&mut self) {
        self.holds = None;
    }

    /// Waits for something that passes.
    fn until(&self, is_it: impl Fn(&Passed) -> bool) -> Passed {
        loop {
            let passed = self.passed.recv_timeout(PATIENCE).unwrap();
            if is_it(&passed) {
                return passed;
            }
        }
    }
}

/// The next bytes; `None`: there are no more.
fn some(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 1 << 14];
    let len = stream.read(&mut bytes).ok().filter(|len| *len > 0)?;
    bytes.truncate(len);
    Some(bytes)
}

/// Another key, another identity, another version of TLS, no group in common, no TLS.
#[test]
fn who_has_not_the_key_is_not_let_in() {
    // So that the front is not silent for long before it closes.
    let limits = FrontLimits {
        handshake: Duration::from_secs(2),
        ..FrontLimits::default()
    };
    let (front, admitted) = front_with(limits);
    let (right, wrong) = (
        derived(1, IdentityVersion::V0),
        derived(2, IdentityVersion::V0),
    );
    let unknown = derived(2, IdentityVersion::V1);
    for (key, more) in [
        (&wrong, &["-tls1_3"][..]),
        (&unknown, &["-tls1_3"]),
        (&right, &["-tls1_2"]),
        (&right, &["-tls1_3", "-groups", "ffdhe2048"]),
    ] {
        let mut between = Between::new(&front);
        let mut child = client_at(between.address, key, more).spawn().unwrap();
        let first = between.until(|_| true);
        // A record of a handshake, and in it a ClientHello.
        let is_hello = matches!(&first, Passed::Hello(bytes) if bytes[0] == 22 && bytes[5] == 1);
        assert!(is_hello, "{more:?}");
        between.go_on();
        between.until(|passed| matches!(passed, Passed::Closed));
        assert!(admitted.try_recv().is_err(), "{more:?}");
        let _ = child.kill();
        child.wait().unwrap();
    }
    let mut plain = TcpStream::connect(front.address()).unwrap();
    plain.write_all(&[0, 0, 128, 0, 128, 0, 0, 0]).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    let read = plain.read_to_end(&mut answer);
    let is_closed = !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(is_closed && admitted.try_recv().is_err());
    // And the one with the key still is.
    let mut child = client(&front, &right, &["-tls1_3"]).spawn().unwrap();
    assert!(admitted.recv_timeout(PATIENCE).is_ok());
    let _ = child.kill();
    child.wait().unwrap();
}

/// A key that is replaced while its host shows it is none any more; one that stays is.
#[test]
fn a_handshake_that_has_begun_needs_the_key_of_its_end() {
    let key = derived(1, IdentityVersion::V0);
    for (replaced_by, is_let_in) in [(1, true), (2, false)] {
        let (front, admitted) = front();
        let mut between = Between::new(&front);
        let mut child = client_at(between.address, &key, &["-tls1_3"])
            .spawn()
            .unwrap();
        between.until(|passed| matches!(passed, Passed::Answer));
        Front::replace(&front.keys(), keys(replaced_by));
        between.go_on();
        if is_let_in {
            assert!(admitted.recv_timeout(PATIENCE).is_ok());
        } else {
            between.until(|passed| matches!(passed, Passed::Closed));
            assert!(admitted.try_recv().is_err());
        }
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// A host that takes nothing any more keeps neither its connection nor what it is sent.
#[test]
fn who_takes_nothing_any_more_is_let_go() {
    let limits = FrontLimits {
        stall: Duration::from_secs(1),
        ..FrontLimits::default()
    };
    let (front, admitted) = front_with(limits);
    let key = derived(1, IdentityVersion::V1);
    // Nobody reads what OpenSSL prints, and so it does not read on.
    let mut child = client(&front, &key, &["-tls1_3"]).spawn().unwrap();
    let mut peer = admitted.recv_timeout(PATIENCE).unwrap();
    peer.stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let error = loop {
        if let Err(error) = peer.stream.write(&[0; 1 << 16]) {
            break error;
        }
    };
    let is_gone = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind());
    assert!(is_gone, "{error}");
    let _ = child.kill();
    child.wait().unwrap();
}

/// Keys that are replaced count for the next handshake; a host without one is let go.
#[test]
fn keys_of_tls_are_replaced_and_revoked() {
    let (front, admitted) = front();
    let old = derived(1, IdentityVersion::V1);
    let mut child = client(&front, &old, &["-tls1_3"]).spawn().unwrap();
    let mut peer = admitted.recv_timeout(PATIENCE).unwrap();
    peer.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let handle = front.keys();
    Front::replace(&handle, keys(2));
    let mut refused = client(&front, &old, &["-tls1_3"]).spawn().unwrap();
    assert!(admitted.recv_timeout(Duration::from_secs(2)).is_err());
    let new = derived(2, IdentityVersion::V1);
    let mut second = client(&front, &new, &["-tls1_3"]).spawn().unwrap();
    let mut other = admitted.recv_timeout(PATIENCE).unwrap();
    // The first one is still there.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    peer.stream.read_exact(&mut [0]).unwrap();
    Front::replace(&handle, Keys::new(&[], SUB).unwrap());
    other.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(peer.stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(other.stream.read(&mut [0]).unwrap(), 0);
    for child in [&mut child, &mut refused, &mut second] {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// Connections that say nothing, more than there may be handshakes.
#[test]
fn handshakes_that_never_end_keep_nobody_out() {
    let (front, admitted) = front();
    let connect = |_| TcpStream::connect(front.address()).unwrap();
    let mut silent: Vec<_> = (0..200).map(connect).collect();
    let key = derived(1, IdentityVersion::V1);
    let mut child = client(&front, &key, &["-tls1_3"]).spawn().unwrap();
    assert!(admitted.recv_timeout(PATIENCE).is_ok());
    // The first ones were let go to make room.
    silent[0].set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    let _ = child.kill();
    child.wait().unwrap();
}

/// Sends what is logged.
struct Log(Sender<String>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a client offered that nobody knows: a host whose key is derived otherwise.
#[test]
fn the_offered_identity_is_in_the_log() {
    let (to, lines) = mpsc::channel();
    let logs = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || Log(to.clone()));
    logs.init();
    let (front, _admitted) = front();
    let unknown = derived(2, IdentityVersion::V1);
    let mut child = client(&front, &unknown, &["-tls1_3"]).spawn().unwrap();
    // And what the library did not like.
    let says = |line: &String| {
        ["no TLS", &unknown.identity, "error="]
            .iter()
            .all(|part| line.contains(part))
    };
    let found = std::iter::from_fn(|| lines.recv_timeout(PATIENCE).ok()).any(|line| says(&line));
    let _ = child.kill();
    child.wait().unwrap();
    assert!(found);
}
