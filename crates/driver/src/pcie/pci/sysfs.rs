//! What the kernel says of a PCI function in `/sys`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::address::PciAddress;
use super::error::HandoverError;

/// Class, subclass and programming interface of an NVMe I/O controller (PCIe transport,
/// Class Code).
const NVME_CLASS: &str = "0x010802";

/// The driver that hands functions behind an IOMMU to programs.
pub const VFIO_DRIVER: &str = "vfio-pci";

/// The driver that hands any function to programs, without an IOMMU.
pub const UIO_DRIVER: &str = "uio_pci_generic";

/// The PCI functions of a machine, as `/sys` shows them.
#[derive(Clone, Debug)]
pub struct PciBus {
    devices: PathBuf,
    drivers: PathBuf,
    nodes: PathBuf,
}

impl Default for PciBus {
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl PciBus {
    /// That of the tree at `root`, which is `/` but for tests.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        let sys = root.join("sys");
        Self {
            devices: sys.join("bus/pci/devices"),
            drivers: sys.join("bus/pci/drivers"),
            nodes: root.join("dev"),
        }
    }

    /// The directory of a function.
    #[must_use]
    pub fn path(&self, address: PciAddress) -> PathBuf {
        self.devices.join(address.to_string())
    }

    /// The directory of a driver.
    pub(super) fn driver_path(&self, driver: &str) -> PathBuf {
        self.drivers.join(driver)
    }

    /// The file that has a function looked at by the drivers again.
    pub(super) fn probe_path(&self) -> PathBuf {
        self.devices.with_file_name("drivers_probe")
    }

    /// All functions that are NVMe controllers, in order.
    ///
    /// # Errors
    /// The directory cannot be read; a machine without PCI has none, and no functions.
    pub fn controllers(&self) -> io::Result<Vec<PciAddress>> {
        let entries = match fs::read_dir(&self.devices) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all: Vec<PciAddress> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|address| self.is_nvme(*address))
            .collect();
        all.sort_unstable();
        Ok(all)
    }

    fn is_nvme(&self, address: PciAddress) -> bool {
        let class = fs::read_to_string(self.path(address).join("class"));
        class.is_ok_and(|class| class.trim() == NVME_CLASS)
    }

    /// Checks that the function is there, and an NVMe controller.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self, address: PciAddress) -> Result<(), HandoverError> {
        if !self.path(address).exists() {
            let known = self.controllers().unwrap_or_default();
            return Err(HandoverError::NoSuchDevice { address, known });
        }
        match self.is_nvme(address) {
            true => Ok(()),
            false => Err(HandoverError::NotNvme { address }),
        }
    }

    /// The driver of a function.
    #[must_use]
    pub fn driver(&self, address: PciAddress) -> Option<String> {
        self.link(address, "driver")
    }

    /// Its IOMMU group.
    #[must_use]
    pub fn group(&self, address: PciAddress) -> Option<String> {
        self.link(address, "iommu_group")
    }

    /// The way in which an IOMMU translates the addresses that the function uses, as the
    /// kernel names it (`DMA`, `DMA-FQ`); none if they are those of memory: there is no
    /// IOMMU, or it passes them on as they are.
    #[must_use]
    pub fn translation(&self, address: PciAddress) -> Option<String> {
        self.group(address)?;
        let path = self.path(address).join("iommu_group/type");
        // A kernel that does not say counts as one that translates, as is usual.
        let kind = fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_owned());
        let kind = kind.trim();
        (kind != "identity").then(|| kind.to_owned())
    }

    /// The node by which `uio_pci_generic` offers a function, as in `/dev/uio0`.
    #[must_use]
    pub fn uio_node(&self, address: PciAddress) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.path(address).join("uio")).ok()?;
        let name = entries.find_map(|entry| entry.ok()?.file_name().into_string().ok())?;
        Some(self.nodes.join(name))
    }

    /// The other functions of its IOMMU group, which can only be handed over together.
    #[must_use]
    pub fn neighbours(&self, address: PciAddress) -> Vec<PciAddress> {
        let entries = fs::read_dir(self.path(address).join("iommu_group/devices"));
        let entries = entries.into_iter().flatten().flatten();
        let mut others: Vec<PciAddress> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|other| *other != address)
            .collect();
        others.sort_unstable();
        others
    }

    fn link(&self, address: PciAddress, name: &str) -> Option<String> {
        let target = fs::read_link(self.path(address).join(name)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// The block devices of its namespaces, under the kernel's driver.
    #[must_use]
    pub fn block_devices(&self, address: PciAddress) -> Vec<String> {
        let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let mut all: Vec<String> = entries(self.path(address).join("nvme"))
            .flat_map(|controller| entries(controller.path()))
            .filter_map(name)
            // nvme0n1, or nvme0c0n1 with several paths to one namespace.
            .filter(|name| name.starts_with("nvme") && name[4..].contains('n'))
            .map(|name| without_path(&name))
            .collect();
        all.sort_unstable();
        all
    }
}

/// The name of a namespace whatever the path: `nvme0n1` of `nvme0c1n1`.
fn without_path(name: &str) -> String {
    match (name.find('c'), name.rfind('n')) {
        (Some(path), Some(namespace)) if path < namespace => {
            format!("{}{}", &name[..path], &name[namespace..])
        }
        _ => name.to_owned(),
    }
}
