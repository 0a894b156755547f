//! Drives that are handed over by UIO, without an IOMMU.

use anyhow::{Result, ensure};
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

pub(crate) const CASES: &[(&str, PcieCase)] = &[(
    "is_refused_unless_the_danger_is_accepted",
    is_refused_unless_the_danger_is_accepted,
)];

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
    // Every huge page was given back.
    guest.ok(way.prepare)?;
    release(guest, &address).map(drop)
}
