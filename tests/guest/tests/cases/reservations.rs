//! Reservations of two hosts, which the kernel is at the same time, with nvme-cli's
//! `resv-*`: they conflict, outlive SIGKILL of the server, and are released.
//!
//! To the kernel both controllers are paths to one namespace, of which it chooses one for
//! each command to the block device. So commands go to the character devices of the
//! controllers.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::Guest;
use zonelab_guest_tests::drive::Status;

use super::killed::StoreFile;
use super::served::Served;

const RESERVATION_CONFLICT: u16 = 0x083;
/// The kernel takes no second controller of a subsystem whose namespaces are private.
const SHARED: [&str; 1] = ["--shared"];
/// How often the guest looks for something, twice a second.
const LOOKS: u32 = 480;
/// Blocks of a zone of the drive, which have 4 KiB each.
const ZONE_LBAS: u64 = 4096;

/// A host, its key and its controller in the guest.
struct Host {
    hostid: String,
    key: u64,
    device: String,
}

impl Host {
    /// Connects the guest as the host of that number.
    fn connect(guest: &mut Guest, served: &Served, number: u64) -> Result<Self> {
        let hostid = format!("5a4f4e45-4c41-4220-8755-4553540000f{number}");
        let hostnqn = format!("nqn.2014-08.org.nvmexpress:uuid:{hostid}");
        let (address, port, nqn) = (served.host(), served.port(), &served.nqn);
        // nvme-cli of Debian 12 takes another host at an address for one that is connected.
        guest.ok(&format!(
            "echo transport=tcp,traddr={address},trsvcid={port},nqn={nqn},hostnqn={hostnqn},\
             hostid={hostid},reconnect_delay=1,ctrl_loss_tmo=600 > /dev/nvme-fabrics"
        ))?;
        let name = until(guest, |guest| {
            let find = format!(
                "for c in /sys/class/nvme/nvme*; do
                    [ \"$(cat $c/hostnqn 2> /dev/null)\" = {hostnqn} ] || continue
                    ls $c | grep -q '^nvme.*n1$' && basename $c
                done"
            );
            let name = guest.run(&find)?.text.trim().to_owned();
            Ok(Some(name).filter(|name| !name.is_empty()))
        })?;
        Ok(Self {
            hostid: hostid.replace('-', ""),
            key: 100 + number,
            device: format!("/dev/{name}"),
        })
    }

    /// A command of nvme-cli to its controller.
    fn command(&self, verb: &str, options: &str) -> String {
        format!("nvme {verb} {} -n 1 {options}", self.device)
    }

    fn register(&self, guest: &mut Guest, options: &str) -> Result<()> {
        let options = format!("--nrkey={} {options}", self.key);
        guest.ok(&self.command("resv-register", &options))?;
        Ok(())
    }

    fn acquire(&self) -> String {
        let options = format!("--crkey={} --rtype=1 --racqa=0", self.key);
        self.command("resv-acquire", &options)
    }

    /// Write of the first block of a zone, which is empty.
    fn write(&self, zone: u64) -> String {
        let slba = zone * ZONE_LBAS;
        let options = format!("-o 1 --cdw10={slba} -l 4096 -w -i /scratch/block");
        self.command("io-passthru", &options)
    }

    fn read(&self) -> String {
        self.command("io-passthru", "-o 2 -l 4096 -r > /dev/null")
    }

    fn report(&self) -> String {
        self.command("resv-report", "--eds -o json")
    }
}

/// What `look` gives at last.
fn until<T>(guest: &mut Guest, mut look: impl FnMut(&mut Guest) -> Result<Option<T>>) -> Result<T> {
    for _ in 0..LOOKS {
        if let Some(found) = look(guest)? {
            return Ok(found);
        }
        guest.ok("sleep 0.5")?;
    }
    anyhow::bail!("it does not appear")
}

/// A command that another host's reservation forbids.
fn conflicts(guest: &mut Guest, command: &str) -> Result<()> {
    let said = guest.fails(command)?;
    let status = Status::parse(&said).with_context(|| said.clone())?;
    ensure!(status.code == RESERVATION_CONFLICT, "{command}: {said}");
    Ok(())
}

/// Type of the reservation, whether it outlives a loss of power, and of each registrant the
/// identifier, the key, and whether it is the holder.
type Found = (u64, u64, Vec<(String, u64, bool)>);

fn found(text: &str) -> Result<Found> {
    let start = text.find('{').with_context(|| text.to_owned())?;
    let report: Value = serde_json::from_str(&text[start..]).with_context(|| text.to_owned())?;
    let number = |of: &Value, key: &str| of[key].as_u64().with_context(|| text.to_owned());
    let rows = report["regctlext"].as_array();
    let row = |of: &Value| {
        let hostid = of["hostid"].as_str().with_context(|| text.to_owned())?;
        Ok((
            hostid.to_owned(),
            number(of, "rkey")?,
            number(of, "rcsts")? == 1,
        ))
    };
    let rows = rows.into_iter().flatten().map(row).collect::<Result<_>>()?;
    Ok((number(&report, "rtype")?, number(&report, "ptpls")?, rows))
}

/// Kills the server and serves its store again where it was, until both hosts are back.
fn killed(
    guest: &mut Guest,
    mut served: Served,
    file: &StoreFile,
    hosts: &[&Host],
) -> Result<Served> {
    let port = served.port();
    served.kill()?;
    drop(served);
    // The kernel has seen it go.
    guest.ok("sleep 2")?;
    let served = file.serve_with(port, &SHARED)?;
    for host in hosts {
        until(guest, |guest| {
            let output = guest.run(&host.report())?;
            Ok((output.code == 0).then_some(()))
        })?;
    }
    Ok(served)
}

pub(crate) fn of_two_hosts_outlive_a_kill(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("reservations");
    let served = file.serve_with(0, &SHARED)?;
    guest.ok("modprobe nvme_tcp; head -c 4096 /dev/urandom > /scratch/block")?;
    let first = Host::connect(guest, &served, 1)?;
    let second = Host::connect(guest, &served, 2)?;
    conflicts(guest, &first.acquire())?;
    first.register(guest, "--cptpl=3")?;
    second.register(guest, "")?;
    guest.ok(&first.acquire())?;
    conflicts(guest, &second.acquire())?;
    guest.ok(&first.write(0))?;
    conflicts(guest, &second.write(1))?;
    guest.ok(&second.read())?;
    let registrants = |first_holds| {
        let of = |host: &Host, holds| (host.hostid.clone(), host.key, holds);
        vec![of(&first, first_holds), of(&second, false)]
    };
    let expected = (1, 1, registrants(true));
    let report = found(&guest.ok(&second.report())?)?;
    ensure!(report == expected, "{report:?} is not {expected:?}");

    let served = killed(guest, served, &file, &[&first, &second])?;
    let report = found(&guest.ok(&second.report())?)?;
    ensure!(report == expected, "{report:?} is not {expected:?}");
    conflicts(guest, &second.write(1))?;
    guest.ok(&first.write(2))?;
    guest.ok(&second.read())?;

    let release = format!("--crkey={} --rtype=1 --rrela=0", first.key);
    guest.ok(&first.command("resv-release", &release))?;
    guest.ok(&second.write(1))?;
    let served = killed(guest, served, &file, &[&first, &second])?;
    let report = found(&guest.ok(&first.report())?)?;
    let expected = (0, 1, registrants(false));
    ensure!(report == expected, "{report:?} is not {expected:?}");
    guest.ok(&second.write(3))?;
    let clear = format!("--crkey={} --rrela=1", second.key);
    guest.ok(&second.command("resv-release", &clear))?;
    let report = found(&guest.ok(&first.report())?)?;
    ensure!(report == (0, 1, Vec::new()), "{report:?}");
    served.disconnect(guest)
}
