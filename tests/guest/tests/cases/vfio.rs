//! Drives that are handed over by VFIO, behind QEMU's emulated IOMMU.

use anyhow::Result;
use zonelab_guest_tests::Guest;

use crate::passthrough::{ZONELAB, refuses};
use crate::pcie::{PcieCase, Way, prepare};

/// The way, with the kernel's modules for it.
pub(crate) const WAY: Way = Way {
    name: "vfio",
    prepare: "modprobe vfio_iommu_type1 && modprobe vfio_pci",
    driver: "vfio-pci",
    flag: "",
};

pub(crate) const CASES: &[(&str, PcieCase)] = &[(
    "refuses_to_go_around_the_iommu",
    refuses_to_go_around_the_iommu,
)];

/// By UIO the drive would be given addresses that its IOMMU does not know.
fn refuses_to_go_around_the_iommu(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    let bind = format!("{ZONELAB} nvme bind --driver uio_pci_generic {address}");
    refuses(guest, &bind, 4, "behind an IOMMU that translates")?;
    guest.ok(&format!(
        "[ \"$(basename $(readlink /sys/bus/pci/devices/{address}/driver))\" = nvme ]"
    ))?;
    Ok(())
}
