//! The kernel as a host with TLS, whose handshakes are done by `tlshd` with GnuTLS.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::{Drive, Guest, host};

use crate::auth::{GUEST_NQN, key, trust_the_kernel};
use crate::initiator::Scratch;
use crate::killed::{LIMIT, PATIENCE, StoreFile, expect_kept, keep_and_write};
use crate::served::Served;

/// Derives keys of TLS with OpenSSL.
const DERIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/auth/tests/psk.sh"
);
/// An nvme-cli that asks for TLS.
const NVME: &str = "/later/nvme";
/// What the drive is served as.
const NQN: &str = "nqn.2024-01.io.github.zonelab:guest-tls";

/// Keys of TLS of the guest, as OpenSSL derives them.
struct TlsKey {
    /// For the server: the text that nvme-cli makes.
    configured: String,
    /// For the kernel, in hexadecimal digits, with the identity `NVMe0R01`.
    derived: String,
}

/// Two keys of the same bytes: as a retained and as a configured key.
fn tls_keys() -> Result<[TlsKey; 2]> {
    let output = Command::new("sh").args([DERIVE, GUEST_NQN, NQN]).output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let keys: Vec<TlsKey> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let &[configured, _, derived, ..] = &words[..] else {
                return None;
            };
            Some(TlsKey {
                configured: configured.to_owned(),
                derived: derived.to_owned(),
            })
        })
        .take(2)
        .collect();
    keys.try_into()
        .map_err(|_| anyhow::anyhow!("no two keys: {text}"))
}

/// Starts what does the handshakes for the kernel.
fn start_tlshd(guest: &mut Guest) -> Result<()> {
    guest.ok("set -e
        modprobe tls
        modprobe nvme_tcp
        printf '[authenticate]\\nkeyrings=.nvme\\n' > /run/tlshd.conf
        setsid /later/tlshd --stderr --config /run/tlshd.conf > /run/tlshd.log 2>&1 < /dev/null &
        echo $! > /run/tlshd.pid")?;
    Ok(())
}

/// Gives the kernel a key.
fn insert(guest: &mut Guest, key: &TlsKey) -> Result<()> {
    let pairs = key.derived.as_bytes().chunks(2);
    let bytes: String = pairs
        .map(|pair| format!("\\x{}", String::from_utf8_lossy(pair)))
        .collect();
    guest.ok(&format!(
        "printf '{bytes}' | keyctl padd psk 'NVMe0R01 {GUEST_NQN} {NQN}' %keyring:.nvme"
    ))?;
    Ok(())
}

/// Has nvme-cli derive a key for the kernel, as its libnvme does.
fn insert_by_nvme_cli(guest: &mut Guest, key: &TlsKey) -> Result<()> {
    guest.ok(&format!(
        "{NVME} check-tls-key --keydata={} --hostnqn={GUEST_NQN} --subsysnqn={NQN} --identity=1 \
         --insert",
        key.configured
    ))?;
    Ok(())
}

/// Gives the kernel a key, and only then takes away those that it had: a host that finds no key
/// at all does not connect again ("no valid PSK found", "Removing controller (-126)").
fn replace_keys(guest: &mut Guest, key: &TlsKey) -> Result<()> {
    let had = guest.ok("keyctl rlist %keyring:.nvme")?;
    insert(guest, key)?;
    for id in had.split_whitespace() {
        guest.ok(&format!("keyctl unlink {id} %keyring:.nvme"))?;
    }
    Ok(())
}

/// The files of keys of a server.
struct Files {
    scratch: Scratch,
    store: StoreFile,
    port: String,
}

impl Files {
    fn new() -> Result<Self> {
        Ok(Self {
            scratch: Scratch::new()?,
            store: StoreFile::new("tls"),
            port: format!("127.0.0.1:{}", host::lasting_port()?),
        })
    }

    /// A file with what follows the guest's name, which only its owner can read.
    fn keys(&self, name: &str, key: &str) -> Result<PathBuf> {
        let path = self
            .scratch
            .write(name, format!("{GUEST_NQN} {key}\n").as_bytes())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(path)
    }

    /// Serves the drive over TLS to hosts that authenticate themselves as well.
    fn serve(&self, tls: &str, secret: &str) -> Result<Served> {
        let (tls, secrets) = (self.keys("tls-keys", tls)?, self.keys("secrets", secret)?);
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is text");
        let (tls, secrets) = (text(&tls)?, text(&secrets)?);
        let served = self.store.serve_with(
            host::lasting_port()?.into(),
            &[
                "--nqn",
                NQN,
                "--tls-listen",
                &self.port,
                "--tls-key",
                &tls,
                "--host-key",
                &secrets,
            ],
        )?;
        served.over_tls()
    }
}

/// A file system over TLS with authentication: its server is killed, and starts again with
/// other keys of both kinds. The host does not get in until it has these, and goes on then.
pub(crate) fn survives_a_kill_with_other_keys(guest: &mut Guest) -> Result<()> {
    trust_the_kernel(guest)?;
    let [new, old] = tls_keys()?;
    let secrets = [key(guest, 1)?, key(guest, 1)?];
    let files = Files::new()?;
    start_tlshd(guest)?;

    // nvme-cli makes the first key known to the kernel, OpenSSL the other one.
    let served = files.serve(&format!("{} libnvme", old.configured), &secrets[0])?;
    let connect = format!("{NVME} connect {} -n {NQN} --tls", served.at());
    // Without a key of TLS, and without one of its own.
    guest.fails(&format!("{connect} --dhchap-secret={}", secrets[0]))?;
    insert_by_nvme_cli(guest, &old)?;
    guest.fails(&connect)?;
    let with = |secret: &str| format!("--tls --dhchap-secret={secret} {PATIENCE}");
    let controller = served.connect_by(guest, NVME, &with(&secrets[0]))?;
    let block = Drive::open(guest, &controller, 1, None)?.block();
    // Fewer than without TLS: an emulated processor takes long to encrypt.
    let writer = keep_and_write(guest, &block, 10)?;

    let mut served = served;
    served.kill()?;
    drop(served);
    let served = files.serve(&new.configured, &secrets[1])?;
    guest.ok("sleep 5")?;
    let state = guest.ok(&format!("cat /sys/class/nvme/{controller}/state"))?;
    ensure!(state.trim() == "connecting", "with the old keys: {state}");
    // First its own key: without a key of TLS that is accepted, Linux tries again, but when the
    // secret is refused, it takes the drive away at once ("Removing controller (-129)").
    let attribute = format!("/sys/class/nvme/{controller}/dhchap_secret");
    guest.ok(&format!("echo {} > {attribute}", secrets[1]))?;
    replace_keys(guest, &new)?;
    let live = format!(
        "cd /sys/class/nvme/{controller}
        until grep -q live state; do [ -e state ] || exit 1; sleep 0.2; done"
    );
    guest.ok_for(LIMIT, &live)?;
    guest.ok("touch /scratch/stop")?;
    guest.wait(&writer, LIMIT)?;
    guest.ok_for(LIMIT, "umount /mnt")?;
    served.disconnect(guest)?;

    let controller = served.connect_by(guest, NVME, &with(&secrets[1]))?;
    let block = Drive::open(guest, &controller, 1, None)?.block();
    expect_kept(guest, &block)?;
    served.disconnect(guest)?;
    guest.ok("kill \"$(cat /run/tlshd.pid)\"")?;
    Ok(())
}
