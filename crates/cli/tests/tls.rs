//! `zonelab serve` with TLS, and OpenSSL's client in front of NVMe/TCP.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const OTHER: &str = "nqn.2014-08.org.nvmexpress:uuid:66666666-6666-6666-6666-666666666666";
const NQN: &str = "nqn.2024-01.io.github.zonelab:test";
/// The key of the bytes 00h to 1Fh, and what OpenSSL derived of it for these names: the
/// second line of `crates/auth/tests/psk.txt`.
const KEY: &str = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const DERIVED: &str = "f4eb0956ec8b5cdbd7c3925955947b7dfd901f03a8bdec2c97defa8172da8454";
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
        let keys = std::env::temp_dir().join(format!("zonelab-tls-{}.keys", std::process::id()));
        std::fs::write(&keys, format!("{HOST} {KEY}\n")).unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
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
        let mut child = openssl(&server);
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        assert_eq!(
            connected(&to, from, hostnqn),
            status,
            "{hostnqn} with the key of {HOST}"
        );
        let _ = child.kill();
        child.wait().unwrap();
    }
    for (hostnqn, status) in [
        (HOST, INVALID_HOST),
        (longer, INVALID_HOST),
        (OTHER, 0),
        (other, INVALID_PARAMETERS),
    ] {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        assert_eq!(
            connected(&stream, &stream, hostnqn),
            status,
            "{hostnqn} without TLS"
        );
    }
}
