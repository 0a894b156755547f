//! `zonelab serve` with TLS, and OpenSSL's client in front of NVMe/TCP.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it waits for a server in another process"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const OTHER: &str = "nqn.2014-08.org.nvmexpress:uuid:66666666-6666-6666-6666-666666666666";
const NQN: &str = "nqn.2024-01.io.github.zonelab:test";
/// The key of the bytes 00h to 1Fh, and what OpenSSL derived of it for these names: the
/// second line of `crates/auth/tests/psk.txt`.
const KEY: &str = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const DERIVED: &str = "f4eb0956ec8b5cdbd7c3925955947b7dfd901f03a8bdec2c97defa8172da8454";
const PATIENCE: Duration = Duration::from_secs(60);
const INVALID_PARAMETERS: u16 = 0x182;
const INVALID_HOST: u16 = 0x184;

/// `zonelab serve` with a port for TLS.
struct Server {
    child: Child,
    port: u16,
    tls_port: u16,
    keys: PathBuf,
}

impl Server {
    fn start() -> Self {
        let keys = scratch("keys");
        write_private(&keys, &format!("{HOST} {KEY}\n"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonelab"));
        command.args([
            "serve",
            "small-zones",
            "--json",
            "--no-timing",
            "--nqn",
            NQN,
        ]);
        command.args(["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"]);
        command.arg("--tls-key").arg(&keys);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let port = |key: &str| u16::try_from(said[key].as_u64().unwrap()).unwrap();
        Self {
            port: port("port"),
            tls_port: port("tls_port"),
            child,
            keys,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.keys);
    }
}

/// A path of a file that there is not yet.
fn scratch(extension: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("zonelab-tls-{}-{count}.{extension}", std::process::id());
    std::env::temp_dir().join(name)
}

/// Writes a file that is for its owner alone, as a whole.
fn write_private(path: &std::path::Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&new, path).unwrap();
}

impl Server {
    /// A connection without TLS.
    fn plain(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Status of a Connect without TLS.
    fn plain_status(&self, hostnqn: &str) -> u16 {
        let stream = self.plain();
        connected(&stream, &stream, hostnqn)
    }
}

/// A connection with TLS, which ends with this.
struct Inside {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Inside {
    fn new(server: &Server) -> Self {
        let mut child = openssl(server);
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from }
    }

    fn status(&mut self, hostnqn: &str) -> u16 {
        connected(&mut self.to, &mut self.from, hostnqn)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `openssl s_client`, which knows TLS and no NVMe.
fn openssl(server: &Server) -> Child {
    let mut command = Command::new("openssl");
    let at = format!("127.0.0.1:{}", server.tls_port);
    command.args([
        "s_client", "-quiet", "-tls1_3", "-connect", &at, "-psk", DERIVED,
    ]);
    command.args(["-psk_identity", &format!("NVMe0R01 {HOST} {NQN}")]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn ic_req() -> Vec<u8> {
    let mut pdu = vec![0x00, 0, 128, 0, 128, 0, 0, 0];
    pdu.resize(128, 0);
    pdu
}

/// A Connect command of an admin queue.
fn connect(hostnqn: &str) -> Vec<u8> {
    let mut pdu = vec![0x04, 0, 72, 72];
    pdu.extend((72_u32 + 1024).to_le_bytes());
    let mut entry = [0; 64];
    entry[..8].copy_from_slice(&[0x7f, 0x40, 0, 0, 1, 0, 0, 0]);
    entry[32..36].copy_from_slice(&1024_u32.to_le_bytes());
    entry[39] = 0x01;
    entry[44] = 31;
    pdu.extend(entry);
    let mut data = [0; 1024];
    data[..16].fill(7);
    data[16..18].fill(0xff);
    data[256..256 + NQN.len()].copy_from_slice(NQN.as_bytes());
    data[512..512 + hostnqn.len()].copy_from_slice(hostnqn.as_bytes());
    pdu.extend(data);
    pdu
}

/// Status of the response to a Connect of that host.
fn connected(mut to: impl Write, mut from: impl Read, hostnqn: &str) -> u16 {
    to.write_all(&ic_req()).unwrap();
    to.flush().unwrap();
    from.read_exact(&mut [0; 128]).unwrap();
    to.write_all(&connect(hostnqn)).unwrap();
    to.flush().unwrap();
    let mut response = [0; 24];
    from.read_exact(&mut response).unwrap();
    assert_eq!(response[0], 0x05);
    u16::from_le_bytes([response[22], response[23]]) >> 1 & 0x7ff
}

/// A host has what its key says it is, and nobody is it without.
#[test]
fn a_host_with_a_key_of_tls_connects_with_tls_alone() {
    let server = Server::start();
    // The same name, with something behind its end.
    let (longer, other) = (&format!("{HOST}\0x"), &format!("{OTHER}\0x"));
    for (hostnqn, status) in [
        (HOST, 0),
        (OTHER, INVALID_HOST),
        (longer, INVALID_PARAMETERS),
        (other, INVALID_HOST),
    ] {
        let mut inside = Inside::new(&server);
        assert_eq!(
            inside.status(hostnqn),
            status,
            "{hostnqn:?} with the key of {HOST}"
        );
    }
    for (hostnqn, status) in [
        (HOST, INVALID_HOST),
        (longer, INVALID_HOST),
        (OTHER, 0),
        (other, INVALID_PARAMETERS),
    ] {
        let plain = server.plain_status(hostnqn);
        assert_eq!(plain, status, "{hostnqn:?} without TLS");
    }
}

/// A host that gets a key has to come with it from then on, and one that loses its key is
/// let in no more: nobody else gets its name either.
#[test]
fn keys_of_tls_are_read_again_when_their_file_changes() {
    let server = Server::start();
    let mut host = Inside::new(&server);
    assert_eq!(host.status(HOST), 0);
    let mut other = server.plain();
    assert_eq!(connected(&other, &other, OTHER), 0);
    write_private(&server.keys, &format!("{OTHER} {KEY}\n"));
    assert_eq!(host.from.read(&mut [0]).unwrap(), 0, "{HOST} lost its key");
    let ends = other.read(&mut [0]);
    let is_over = ends.as_ref().map_or_else(
        |error| error.kind() == std::io::ErrorKind::ConnectionReset,
        |len| *len == 0,
    );
    assert!(is_over, "{OTHER} got a key: {ends:?}");
    for hostnqn in [HOST, OTHER] {
        assert_eq!(server.plain_status(hostnqn), INVALID_HOST, "{hostnqn}");
    }
    // The key of the one is not that of the other, and it has none any more.
    let mut host = Inside::new(&server);
    assert_eq!(host.from.read(&mut [0]).unwrap(), 0);
}

/// Peers that vanish are found by TCP, on this port as on the other.
#[test]
fn accepted_sockets_of_tls_are_kept_alive() {
    let server = Server::start();
    let mut host = Inside::new(&server);
    assert_eq!(host.status(HOST), 0);
    let local = format!("0100007F:{:04X}", server.tls_port);
    let has_timer = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        // The connection of the server: 01 is established, 02 the timer of keep-alive.
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1] == local && fields[3] == "01" && fields[5].starts_with("02")
        })
    };
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    // Another timer runs while something is not acknowledged.
    while !has_timer() {
        assert!(waited < PATIENCE, "there is no keep-alive timer");
        std::thread::sleep(step);
        waited += step;
    }
}

/// What is wrong with the keys is said before anything is made.
#[test]
fn a_wrong_file_of_keys_leaves_no_store_behind() {
    let (keys, store) = (scratch("keys"), scratch("zonelab"));
    write_private(&keys, &format!("{HOST} NVMeTLSkey-1:01:none:\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonelab"));
    command.args(["serve", "small-zones", "--listen", "127.0.0.1:0"]);
    command.args(["--tls-listen", "127.0.0.1:0", "--tls-key"]);
    command.arg(&keys).arg("--store").arg(&store);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(says.contains(":1: the key is none"), "{says}");
    assert!(!store.exists());
    std::fs::remove_file(&keys).unwrap();
}

/// The unit of systemd: its command line, with other places and ports, is one that serves.
#[test]
fn the_unit_has_a_command_line_that_is_understood() {
    let unit = include_str!("../../../contrib/zonelab.service").replace("\\\n", " ");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let place = scratch("unit");
    std::fs::create_dir_all(&place).unwrap();
    let here = place.to_str().unwrap();
    let secret = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    for (name, text) in [
        ("tls-keys", format!("{HOST} {KEY}\n")),
        ("host-keys", format!("{HOST} {secret}\n")),
        (
            "hosts.toml",
            format!("[[host]]\nnqn = \"{HOST}\"\nnamespaces = [1]\n"),
        ),
    ] {
        write_private(&place.join(name), &text);
    }
    let words = start.unwrap().split_whitespace().map(|word| {
        let word = word
            .replace("${STATE_DIRECTORY}", here)
            .replace("${RUNTIME_DIRECTORY}", here)
            .replace("/etc/zonelab", here)
            .replace("zn540", "small-zones");
        on_a_free_port(&word)
    });
    let mut words = words.collect::<Vec<_>>().into_iter();
    assert_eq!(words.next().as_deref(), Some("/usr/bin/zonelab"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonelab"));
    command.args(words).arg("--json").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["authentication"], true, "{line}");
    assert!(
        said["tls_port"].is_u64() && said["web"].is_string(),
        "{line}"
    );
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(sent.success());
    assert!(child.wait().unwrap().success(), "it ends in good order");
    std::fs::remove_dir_all(&place).unwrap();
}

/// `ADDR:PORT` with any free port of the loopback instead; other words as they are.
fn on_a_free_port(word: &str) -> String {
    match word.parse::<std::net::SocketAddr>() {
        Ok(_) => "127.0.0.1:0".to_owned(),
        Err(_) => word.to_owned(),
    }
}
