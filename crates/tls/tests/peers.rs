//! OpenSSL's client at the port: keys, identities, and what is refused.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use zonelab_auth::{IdentityVersion, TlsKey, TlsNames};
use zonelab_nvme::auth::{Hash, Psk};
use zonelab_tls::{Admitted, Front, FrontLimits, HostPsk, Keys};

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const SUB: &str = "nqn.2024-01.io.github.zonelab:test";
const PATIENCE: Duration = Duration::from_secs(60);

fn psk(byte: u8) -> Psk {
    Psk::new(Some(Hash::SHA_256), &[byte; 32]).unwrap()
}

fn keys(byte: u8) -> Keys {
    let entry = HostPsk {
        hostnqn: HOST.to_owned(),
        psk: psk(byte),
    };
    Keys::new(&[entry], SUB).unwrap()
}

fn derived(byte: u8, version: IdentityVersion) -> TlsKey {
    let names = TlsNames {
        hostnqn: HOST,
        subnqn: SUB,
    };
    TlsKey::derive(&psk(byte), names, version).unwrap()
}

/// A front, and who was let in.
fn front() -> (Front, Receiver<Admitted>) {
    let (to, admitted) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let admit = move |peer| to.send(peer).is_ok();
    let front = Front::start(listener, keys(1), FrontLimits::default(), admit).unwrap();
    (front, admitted)
}

/// `openssl s_client` with a key.
fn client(front: &Front, key: &TlsKey, more: &[&str]) -> Command {
    let hex: String = key.key().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new("openssl");
    command.args([
        "s_client",
        "-quiet",
        "-connect",
        &front.address().to_string(),
    ]);
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

/// Another key, another identity, another version of TLS, no group in common, no TLS.
#[test]
fn who_has_not_the_key_is_not_let_in() {
    let (front, admitted) = front();
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
        let mut child = client(&front, key, more).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut text = Vec::new();
        // A server that suspects something keeps silent for a while before it closes.
        drop(child.stdin.take());
        std::thread::spawn(move || stdout.read_to_end(&mut text));
        assert!(
            admitted.recv_timeout(Duration::from_secs(2)).is_err(),
            "{more:?}"
        );
        let _ = child.kill();
        child.wait().unwrap();
    }
    let mut plain = std::net::TcpStream::connect(front.address()).unwrap();
    plain.write_all(&[0, 0, 128, 0, 128, 0, 0, 0]).unwrap();
    assert!(admitted.recv_timeout(Duration::from_secs(1)).is_err());
    // And the one with the key still is.
    let mut child = client(&front, &right, &["-tls1_3"]).spawn().unwrap();
    assert!(admitted.recv_timeout(PATIENCE).is_ok());
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
    let connect = |_| std::net::TcpStream::connect(front.address()).unwrap();
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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let limits = FrontLimits {
        handshake: Duration::from_secs(2),
        ..FrontLimits::default()
    };
    let front = Front::start(listener, keys(1), limits, |_| true).unwrap();
    let unknown = derived(2, IdentityVersion::V1);
    let mut child = client(&front, &unknown, &["-tls1_3"]).spawn().unwrap();
    let says = |line: &String| line.contains("no TLS") && line.contains(&unknown.identity);
    let found = std::iter::from_fn(|| lines.recv_timeout(PATIENCE).ok()).any(|line| says(&line));
    let _ = child.kill();
    child.wait().unwrap();
    assert!(found);
}
