//! Drives that are handed over by UIO, without an IOMMU.

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::Guest;

use crate::passthrough::{ZONELAB, json, refuses};
use crate::pcie::{PcieCase, Way, bind, nvme, prepare, release};

/// Free huge pages that the cases need, several times over.
const PREPARE: &str = "modprobe uio_pci_generic && \
    echo 32 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages && \
    [ $(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages) = 32 ]";

/// The way, with the kernel's module for it, and memory.
pub(crate) const WAY: Way = Way {
    name: "uio",
    prepare: PREPARE,
    driver: "uio_pci_generic",
    flag: "--unsafe-dma",
};

pub(crate) const CASES: &[(&str, PcieCase)] = &[
    (
        "is_refused_unless_the_danger_is_accepted",
        is_refused_unless_the_danger_is_accepted,
    ),
    (
        "doctor_says_what_helps_and_it_does",
        doctor_says_what_helps_and_it_does,
    ),
];

/// No command goes without the flag, nor without huge pages; by VFIO it cannot be.
fn is_refused_unless_the_danger_is_accepted(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    let by_vfio = format!("{ZONELAB} nvme bind {address}");
    refuses(guest, &by_vfio, 4, "--driver uio_pci_generic")?;
    bind(guest, way, &address)?;
    let device = format!("--device pcie://{address}");
    for command in [
        format!("{ZONELAB} nvme id-ctrl {device}"),
        format!("{ZONELAB} fio --name=a --zonemode=zbd --rw=read --size=16m {device}"),
    ] {
        refuses(guest, &command, 4, "--unsafe-dma says that this may be")?;
    }
    let identify = nvme(way, &address, "id-ctrl --json");
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    guest.ok(&format!("echo 0 > {pages}"))?;
    refuses(guest, &identify, 4, &format!("`echo 64 > {pages}`"))?;
    guest.ok(&format!("echo 32 > {pages}"))?;
    ensure!(json(guest, &identify)?["sn"].is_string());
    let sleeping = nvme(way, &format!("{address}?interrupts=1"), "id-ctrl");
    refuses(guest, &sleeping, 5, "uio_pci_generic has none")?;
    // Every huge page was given back.
    guest.ok(way.prepare)?;
    release(guest, &address).map(drop)
}

/// `zonelab doctor` finds what is not there, and what it says helps does.
fn doctor_says_what_helps_and_it_does(guest: &mut Guest, way: &Way) -> Result<()> {
    const BY_UIO: &str = "pcie:// by uio_pci_generic";
    let doctor = format!("{ZONELAB} doctor --json");
    let (drive, address) = prepare(guest, way)?;
    let block = drive.conventional()?;
    guest.ok("rmmod uio_pci_generic")?;
    guest.ok("echo 0 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")?;
    guest.ok(&format!("mkswap {block} && swapon {block}"))?;
    let before = json(guest, &doctor)?;
    guest.ok(&format!("swapoff {block}"))?;
    let ways = &before["ways"];
    ensure!(
        ways["linux://"] == true && ways[BY_UIO] == false,
        "{before}"
    );
    let lines = before["checks"].as_array().context("no checks")?;
    let of_drive = lines.iter().find(|line| line["name"] == address.as_str());
    let found = of_drive.and_then(|line| line["found"].as_str());
    let is_said = found.is_some_and(|found| found.contains("is swap space"));
    ensure!(is_said, "{before}");
    let missing = lines.iter().filter(|line| line["way"] == BY_UIO);
    let help: Vec<&str> = missing.filter_map(|line| line["help"].as_str()).collect();
    ensure!(help.len() == 2, "{before}");
    guest.ok(&help.join(" && "))?;
    bind(guest, way, &address)?;
    let after = json(guest, &doctor)?;
    let ways = &after["ways"];
    ensure!(ways["linux://"] == false && ways[BY_UIO] == true, "{after}");
    guest.ok(&nvme(way, &address, "id-ctrl"))?;
    release(guest, &address).map(drop)
}
