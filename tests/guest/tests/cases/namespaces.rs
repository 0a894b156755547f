//! Every verb that writes, on one of the three namespaces of QEMU's drive: the other two stay
//! as they are, byte for byte, as the kernel's driver finds them before and after.

use anyhow::{Result, ensure};
use zonelab_guest_tests::{Drive, Guest};

use crate::ServedCase;
use crate::passthrough::{LIMIT, ZONELAB, install, refuses};
use crate::pcie::{PcieCase, Way, bind, prepare, release};

/// Through the kernel's driver.
pub(crate) const LINUX: &[(&str, ServedCase)] = &[(
    "passthrough::leaves_other_namespaces_alone",
    through_the_kernel,
)];

/// Through our own.
pub(crate) const PCIE: &[(&str, PcieCase)] =
    &[("leaves_other_namespaces_alone", by_our_own_driver)];

/// The namespace that is written to.
const NSID: u32 = 3;

/// Verbs that write, in their order on one drive.
const VERBS: [&str; 5] = [
    "fio --name=a --zonemode=zbd --rw=write --bs=64k --size=16m --io_size=1m --overwrite",
    "kv fillrandom --quiet --operations=100 --value-bytes=512 --overwrite",
    "ftl format --overwrite",
    "nvme zns reset-zone --all",
    "nvme zns finish-zone --zone 2",
];

/// Those that measure for minutes: they have reset and written long before they are interrupted.
const STUDIES: [&str; 2] = ["characterize", "fit"];

/// Puts something into each namespace: the third one, zoned.
fn fill(guest: &mut Guest, drive: &Drive) -> Result<Drive> {
    let third = Drive::open(guest, "nvme0", NSID, None)?;
    third.reset_all(guest)?;
    let script = [
        drive.random(16, "/scratch/data"),
        drive.append(0, 16, "/scratch/data"),
        third.append(0, 16, "/scratch/data"),
        format!(
            "dd if=/scratch/data of={} oflag=direct bs=64k",
            drive.conventional()?
        ),
    ];
    guest.ok(&script.join(" && "))?;
    Ok(third)
}

/// Report of zones and all blocks of the first two namespaces, and the report of the third.
fn contents(guest: &mut Guest, drive: &Drive) -> Result<(String, String)> {
    let third = Drive::open(guest, "nvme0", NSID, None)?;
    let report = |drive: &Drive| format!("nvme zns report-zones {} -o json", drive.generic());
    let sum = |node: &str| format!("dd if={node} bs=1M iflag=direct status=none | sha256sum");
    let others = [
        report(drive),
        sum(&drive.block()),
        sum(&drive.conventional()?),
    ];
    let others = guest.ok_for(LIMIT, &others.join(" && "))?;
    Ok((others, guest.ok(&report(&third))?))
}

/// Runs every verb with `device`, the options that name the third namespace.
fn run_all(guest: &mut Guest, device: &str) -> Result<()> {
    for study in STUDIES {
        // 130: interrupted; 0: it was faster.
        let run = format!("{ZONELAB} {study} --quiet --repeats=1 --overwrite {device}");
        let script = format!(
            "cd /scratch && timeout -s INT 60 {run}; code=$?; [ $code = 0 ] || [ $code = 130 ] || [ $code = 124 ]"
        );
        guest.ok_for(LIMIT, &script)?;
    }
    for verb in VERBS {
        let output = guest.ok_for(LIMIT, &format!("cd /scratch && {ZONELAB} {verb} {device}"))?;
        let is_named = output.contains(&format!("of namespace {NSID}"));
        ensure!(
            is_named || !verb.contains("--overwrite"),
            "{verb}: {output}"
        );
    }
    Ok(())
}

fn through_the_kernel(guest: &mut Guest) -> Result<()> {
    install(guest)?;
    let drive = Drive::open(guest, "nvme0", 1, Some(2))?;
    drive.reset_all(guest)?;
    let third = fill(guest, &drive)?;
    let (others, written) = contents(guest, &drive)?;
    run_all(guest, &format!("--device linux://{}", third.generic()))?;
    let after = contents(guest, &drive)?;
    ensure!(others == after.0, "{others}\nthen\n{}", after.0);
    ensure!(written != after.1, "nothing was written: {written}");
    third.reset_all(guest)?;
    drive.reset_all(guest)
}

fn by_our_own_driver(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    fill(guest, &drive)?;
    let (others, written) = contents(guest, &drive)?;
    bind(guest, way, &address)?;
    let (device, flag) = (format!("--device pcie://{address}"), way.flag);
    for verb in VERBS
        .iter()
        .chain(&["characterize --overwrite", "fit --overwrite"])
    {
        for (query, words) in [("", "it has 3 namespaces"), ("?nsid=7", "no namespace 7")] {
            let script = format!("{ZONELAB} {verb} {flag} {device}{query}");
            refuses(guest, &script, 2, words)?;
        }
    }
    run_all(guest, &format!("{flag} {device}?nsid={NSID}"))?;
    let drive = release(guest, &address)?;
    let after = contents(guest, &drive)?;
    ensure!(others == after.0, "{others}\nthen\n{}", after.0);
    ensure!(written != after.1, "nothing was written: {written}");
    Drive::open(guest, "nvme0", NSID, None)?.reset_all(guest)?;
    drive.reset_all(guest)
}
