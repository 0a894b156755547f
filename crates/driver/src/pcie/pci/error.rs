//! Why a PCI function cannot be used.

use std::io;

use super::address::{BadAddress, PciAddress};
use super::sysfs::{UIO_DRIVER, VFIO_DRIVER};
use crate::pcie::uio::HugePageError;

/// Why a PCI function cannot be used by this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// A text that is no address.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// There is no such function.
    #[error(
        "there is no PCI function {address}; NVMe controllers are at: {}",
        listed(known)
    )]
    NoSuchDevice {
        /// The address.
        address: PciAddress,
        /// Where NVMe controllers are.
        known: Vec<PciAddress>,
    },
    /// Something else.
    #[error("PCI function {address} is no NVMe controller: its class is not 010802h")]
    NotNvme {
        /// The address.
        address: PciAddress,
    },
    /// Another driver has it.
    #[error(
        "{address} belongs to {}; `zonelab nvme bind {address}` hands it over",
        driver.as_ref().map_or_else(|| "no driver".to_owned(), |name| format!("the driver {name}"))
    )]
    NotBound {
        /// The address.
        address: PciAddress,
        /// Its driver.
        driver: Option<String>,
    },
    /// No IOMMU.
    #[error(
        "{address} is behind no IOMMU, which vfio-pci needs: switch it on in the firmware (VT-d or \
         AMD-Vi) and on the kernel's command line (intel_iommu=on on Intel); without one, \
         `zonelab nvme bind --driver uio_pci_generic {address}` hands the drive over, and it can \
         then reach all memory of this machine"
    )]
    NoIommu {
        /// The address.
        address: PciAddress,
    },
    /// An IOMMU translates, so that addresses of memory mean nothing to the device.
    #[error(
        "{address} is behind an IOMMU that translates addresses (its group has type {kind}): by \
         {UIO_DRIVER} each of its accesses to memory would fault; \
         `zonelab nvme bind --driver {VFIO_DRIVER} {address}` uses the IOMMU"
    )]
    Translated {
        /// The address.
        address: PciAddress,
        /// How it translates, as the kernel names it.
        kind: String,
    },
    /// Nothing would keep the device from any memory, and nobody has said that this may be.
    #[error(
        "{address} is bound to {UIO_DRIVER}, without an IOMMU: a fault of the drive, or of this \
         program, could overwrite any memory of this machine, that of the kernel included, and \
         lose data on any of its drives; --unsafe-dma says that this may be"
    )]
    UnsafeDma {
        /// The address.
        address: PciAddress,
    },
    /// A program uses it.
    #[error("{address} is used by another program; nothing was changed")]
    InUse {
        /// The address.
        address: PciAddress,
    },
    /// No memory whose place is known.
    #[error("memory for {address}: {source}")]
    Memory {
        /// The address.
        address: PciAddress,
        /// Why.
        source: HugePageError,
    },
    /// Other functions of the group have drivers of the kernel.
    #[error(
        "{address} shares its IOMMU group with {}, which a driver of the kernel has: hand these \
         over, too, or leave them without driver",
        listed(others)
    )]
    GroupInUse {
        /// The address.
        address: PciAddress,
        /// The others.
        others: Vec<PciAddress>,
    },
    /// VFIO is not as this program knows it.
    #[error("VFIO of this kernel {0}")]
    Unsupported(&'static str),
    /// A file by which the kernel hands functions over cannot be opened.
    #[error("{path}: {source}{}", advice(source))]
    Open {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file of `/sys` cannot be written to.
    #[error("{path}: {source}{}", super::bind::advice(source))]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A driver did not take the function.
    #[error(
        "the driver {driver} does not take {address}; is it loaded? `modprobe {driver}` does that"
    )]
    NotTaken {
        /// The address.
        address: PciAddress,
        /// The driver.
        driver: &'static str,
    },
    /// A call failed.
    #[error("{what} of {address}: {source}")]
    Call {
        /// What was asked for.
        what: &'static str,
        /// Of which function.
        address: PciAddress,
        /// Why.
        source: io::Error,
    },
}

fn listed(all: &[PciAddress]) -> String {
    match all {
        [] => "none".to_owned(),
        all => {
            let all: Vec<String> = all.iter().map(PciAddress::to_string).collect();
            all.join(", ")
        }
    }
}

/// What helps when a file cannot be opened.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "; `modprobe vfio-pci` or `modprobe uio_pci_generic` loads the driver"
        }
        io::ErrorKind::PermissionDenied => "; run as root, or give your user access to the file",
        io::ErrorKind::ResourceBusy => "; another program uses the device",
        _ => "",
    }
}
