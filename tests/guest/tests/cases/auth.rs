//! In-band authentication between zonelab and the kernel, at either end.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::{Drive, Guest};

use crate::initiator::{Ended, Scratch, nvme};
use crate::served::Served;
use crate::target::{self, NQN};

/// The name of the guest as a host, as its init has it.
pub(crate) const GUEST_NQN: &str =
    "nqn.2014-08.org.nvmexpress:uuid:5a4f4e45-4c41-4220-8755-455354000001";
/// The name of zonelab as a host.
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:5a4f4e45-4c41-4220-8755-455354000003";
/// Each hash function and each group, in the names that both ends have for them.
const ALGORITHMS: [(&str, &str); 6] = [
    ("sha256", "null"),
    ("sha384", "ffdhe2048"),
    ("sha512", "ffdhe3072"),
    ("sha256", "ffdhe4096"),
    ("sha384", "ffdhe6144"),
    ("sha512", "ffdhe8192"),
];

/// Has the kernel take its implementations of the groups as they are: its tests
/// of a large one take half a minute of an emulated processor.
pub(crate) fn trust_the_kernel(guest: &mut Guest) -> Result<()> {
    guest.ok("echo 1 > /sys/module/cryptomgr/parameters/notests")?;
    Ok(())
}

/// A key that nvme-cli makes, for a host that transforms it by a hash or not.
pub(crate) fn key(guest: &mut Guest, hmac: u32) -> Result<String> {
    let text = guest.ok(&format!(
        "nvme gen-dhchap-key --hmac={hmac} --nqn={GUEST_NQN}"
    ))?;
    let key = text.lines().find(|line| line.starts_with("DHHC-1:"));
    Ok(key.with_context(|| format!("no key: {text}"))?.to_owned())
}

/// A file of keys with this line, which only its owner can read.
fn key_file(scratch: &Scratch, line: &str) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch.write("keys", format!("# keys\n{line}\n").as_bytes())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

/// A drive that is served to the guest with these keys.
fn serve(scratch: &Scratch, keys: &str, more: &[&str]) -> Result<Served> {
    let file = key_file(scratch, &format!("{GUEST_NQN} {keys}"))?;
    let file = file.to_str().context("a path of the host is text")?;
    Served::start_with(&[&["--host-key", file], more].concat())
}

/// Keys of a given secret are those of nvme-cli, which takes them.
pub(crate) fn keys_are_those_of_nvme_cli(guest: &mut Guest) -> Result<()> {
    for (hmac, bytes) in [("0", 32), ("1", 32), ("2", 48), ("3", 64)] {
        let secret: String = (0..bytes).map(|byte| format!("{:02x}", byte * 3)).collect();
        let options = [
            format!("--hmac={hmac}"),
            format!("--secret={secret}"),
            format!("--nqn={GUEST_NQN}"),
        ];
        let theirs = guest.ok(&format!("nvme gen-dhchap-key {}", options.join(" ")))?;
        let args = [&["gen-dhchap-key".to_owned()], &options[..]].concat();
        let ours = nvme(&args)?;
        ensure!(ours.output == theirs, "{ours:?} is not {theirs}");
        let ours = nvme(&["gen-dhchap-key", "--hmac", hmac])?;
        guest.ok(&format!(
            "nvme check-dhchap-key --key={}",
            ours.output.trim()
        ))?;
    }
    Ok(())
}

/// The kernel is let in by every hash and group, and lets the controller show
/// its key.
pub(crate) fn lets_the_kernel_in(guest: &mut Guest) -> Result<()> {
    let scratch = Scratch::new()?;
    trust_the_kernel(guest)?;
    let (own, controller) = (key(guest, 1)?, key(guest, 3)?);
    for (hash, group) in ALGORITHMS {
        let choice = ["--dhchap-hash", hash, "--dhchap-dhgroup", group];
        let served = serve(&scratch, &own, &choice)?;
        guest.ok("dmesg -c > /dev/null")?;
        served.connect_with(guest, &format!("--dhchap-secret={own}"))?;
        let log = guest.ok("dmesg")?;
        let said = format!("hash hmac({hash}) dhgroup {group}");
        ensure!(log.contains(&said), "{hash} {group}: {log}");
        served.disconnect(guest)?;
    }
    let served = serve(&scratch, &format!("{own} {controller}"), &[])?;
    let options = format!("--dhchap-secret={own} --dhchap-ctrl-secret={controller}");
    let name = served.connect_with(guest, &options)?;
    let drive = Drive::open(guest, &name, 1, None)?;
    drive.reset_all(guest)?;
    // The kernel authenticates itself anew when it is given a key.
    guest.ok("dmesg -c > /dev/null")?;
    let attribute = format!("/sys/class/nvme/{name}/dhchap_secret");
    guest.ok(&format!("echo {own} > {attribute}"))?;
    guest.ok("until dmesg | grep -q authenticated; do sleep 0.1; done")?;
    drive.reset_all(guest)?;
    served.disconnect(guest)
}

/// Hosts without key, with another, with another name, and those that want
/// another key of the controller are refused; the next one is let in.
pub(crate) fn refuses_the_kernel(guest: &mut Guest) -> Result<()> {
    let scratch = Scratch::new()?;
    let (own, other) = (key(guest, 0)?, key(guest, 0)?);
    let (controller, another) = (key(guest, 2)?, key(guest, 2)?);
    let served = serve(&scratch, &format!("{own} {controller}"), &[])?;
    guest.ok("modprobe nvme_tcp")?;
    let connect = format!("nvme connect {} -n {}", served.at(), served.nqn);
    for options in [
        String::new(),
        format!("--dhchap-secret={other}"),
        format!("--dhchap-secret={own} --dhchap-ctrl-secret={another}"),
        format!("--dhchap-secret={own} --hostnqn={HOST_NQN}"),
    ] {
        guest.fails(&format!("{connect} {options}"))?;
        let connected = guest.ok("nvme list-subsys")?;
        ensure!(!connected.contains(&served.nqn), "{options}: {connected}");
    }
    served.connect_with(guest, &format!("--dhchap-secret={own}"))?;
    served.disconnect(guest)
}

/// A kernel without in-band authentication is refused, and can still discover.
pub(crate) fn refuses_a_kernel_without_authentication(guest: &mut Guest) -> Result<()> {
    let scratch = Scratch::new()?;
    let served = serve(&scratch, &key(guest, 0)?, &[])?;
    guest.ok("modprobe nvme_tcp")?;
    let found = guest.ok(&format!("nvme discover {}", served.at()))?;
    ensure!(found.contains(&served.nqn), "{found}");
    guest.fails(&format!("nvme connect {} -n {}", served.at(), served.nqn))?;
    Ok(())
}

/// The kernel's target in the guest, which authenticates [`HOST_NQN`].
struct Target {
    scratch: Scratch,
    url: String,
}

impl Target {
    fn start(guest: &mut Guest) -> Result<Self> {
        let drive = Drive::open(guest, "nvme0", 1, None)?;
        drive.reset_all(guest)?;
        target::export(guest, &drive)?;
        guest.ok(&format!(
            "set -e
            cd /sys/kernel/config/nvmet
            mkdir hosts/{HOST_NQN}
            echo 0 > subsystems/{NQN}/attr_allow_any_host
            ln -s /sys/kernel/config/nvmet/hosts/{HOST_NQN} subsystems/{NQN}/allowed_hosts/"
        ))?;
        let address = guest.forward(target::PORT)?;
        Ok(Self {
            scratch: Scratch::new()?,
            url: format!("tcp://{address}/{NQN}?hostnqn={HOST_NQN}"),
        })
    }

    /// Sets an attribute of the host.
    fn set(&self, guest: &mut Guest, attribute: &str, value: &str) -> Result<()> {
        let file = format!("/sys/kernel/config/nvmet/hosts/{HOST_NQN}/{attribute}");
        guest.ok(&format!("echo '{value}' > {file}"))?;
        Ok(())
    }

    /// Asks the target for its zones, which takes an admin and an I/O queue.
    fn report(&self, keys: Option<&str>) -> Result<Ended> {
        let mut args = vec!["zns", "report-zones", "--device", &self.url];
        let file = keys.map(|keys| key_file(&self.scratch, &format!("{HOST_NQN} {keys}")));
        let file = file.transpose()?;
        if let Some(file) = &file {
            let file = file.to_str().context("a path of the host is text")?;
            args.extend(["--host-key", file]);
        }
        nvme(&args)
    }

    fn lets_in(&self, keys: &str) -> Result<()> {
        let ended = self.report(Some(keys))?;
        let is_in = ended.code == Some(0) && ended.output.contains("nr_zones: 64");
        ensure!(is_in && ended.errors.is_empty(), "{ended:?}");
        Ok(())
    }

    fn refuses(&self, keys: Option<&str>, why: &str) -> Result<()> {
        let ended = self.report(keys)?;
        let is_refused = ended.code == Some(5) && ended.errors.contains(why);
        ensure!(is_refused, "not \"{why}\": {ended:?}");
        Ok(())
    }

    fn end(&self, guest: &mut Guest) -> Result<()> {
        guest.ok(&format!(
            "set -e
            cd /sys/kernel/config/nvmet
            rm subsystems/{NQN}/allowed_hosts/{HOST_NQN}
            rmdir hosts/{HOST_NQN}"
        ))?;
        target::withdraw(guest)
    }
}

/// The kernel's target lets zonelab in by every hash and group, and shows its key.
pub(crate) fn is_let_in_by_the_kernel(guest: &mut Guest) -> Result<()> {
    trust_the_kernel(guest)?;
    let (own, controller) = (key(guest, 1)?, key(guest, 3)?);
    let target = Target::start(guest)?;
    target.set(guest, "dhchap_key", &own)?;
    for (hash, group) in ALGORITHMS {
        target.set(guest, "dhchap_hash", &format!("hmac({hash})"))?;
        target.set(guest, "dhchap_dhgroup", group)?;
        target
            .lets_in(&own)
            .with_context(|| format!("{hash} {group}"))?;
    }
    target.set(guest, "dhchap_dhgroup", "ffdhe2048")?;
    target.set(guest, "dhchap_ctrl_key", &controller)?;
    target.lets_in(&own)?;
    target.lets_in(&format!("{own} {controller}"))?;
    target.end(guest)
}

/// The kernel's target refuses zonelab without key and with another, and is
/// refused if it has another key itself.
pub(crate) fn is_refused_by_the_kernel(guest: &mut Guest) -> Result<()> {
    let (own, other) = (key(guest, 2)?, key(guest, 2)?);
    let controller = key(guest, 0)?;
    let target = Target::start(guest)?;
    target.set(guest, "dhchap_key", &own)?;
    target.set(guest, "dhchap_dhgroup", "ffdhe2048")?;
    target.refuses(None, "no key was given")?;
    target.refuses(Some(&other), "has another key for this host")?;
    // It has none.
    target.refuses(
        Some(&format!("{own} {controller}")),
        "authentication failed",
    )?;
    target.set(guest, "dhchap_ctrl_key", &controller)?;
    let wrong = format!("{own} {other}");
    target.refuses(Some(&wrong), "does not know the controller key")?;
    target.lets_in(&format!("{own} {controller}"))?;
    target.end(guest)
}
