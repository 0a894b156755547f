//! `zonelab nvme bind` and `release`: who drives a controller on PCIe.

use std::path::Path;

use serde_json::json;
use zonelab_driver::linux::holders::holders;
use zonelab_driver::pcie::pci::{
    BadAddress, HandoverError, PciAddress, PciBus, Reach, UIO_DRIVER, VFIO_DRIVER,
};

use super::fields::pretty;
use crate::exit::{Exit, Failure};

/// Options of `release`.
#[derive(clap::Args)]
pub(super) struct ReleaseArgs {
    /// The PCI function, as in 0000:01:00.0; pcie://0000:01:00.0 is the same
    #[arg(value_name = "ADDRESS")]
    address: String,
}

/// Options of `bind`.
#[derive(clap::Args)]
pub(super) struct BindArgs {
    #[command(flatten)]
    function: ReleaseArgs,
    /// By which driver of the kernel. uio_pci_generic is for drives without an IOMMU,
    /// which can then overwrite any memory of this machine: see --unsafe-dma
    #[arg(long, value_enum, value_name = "DRIVER", default_value = VFIO_DRIVER)]
    driver: Driver,
}

/// The drivers that hand a controller to programs.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Driver {
    /// Behind an IOMMU
    #[value(name = VFIO_DRIVER)]
    Vfio,
    /// Without one
    #[value(name = UIO_DRIVER)]
    Uio,
}

impl From<Driver> for Reach {
    fn from(driver: Driver) -> Self {
        match driver {
            Driver::Vfio => Self::Vfio,
            Driver::Uio => Self::Uio,
        }
    }
}

impl ReleaseArgs {
    fn address(&self) -> Result<PciAddress, Failure> {
        let address = self
            .address
            .strip_prefix("pcie://")
            .unwrap_or(&self.address);
        let address = address.split('?').next().unwrap_or_default();
        address
            .parse()
            .map_err(|error: BadAddress| Failure::usage(error.to_string()))
    }
}

/// Takes a controller from the kernel's driver, for `pcie://`. Refuses one whose
/// namespaces somebody uses.
///
/// # Errors
/// It is in use, is no controller, or cannot be handed over.
pub(super) fn bind(args: &BindArgs, is_json: bool) -> Result<String, Failure> {
    let address = args.function.address()?;
    let reach = Reach::from(args.driver);
    let driver = reach.driver();
    let bus = PciBus::default();
    bus.check(address).map_err(failure)?;
    let blocks = bus.block_devices(address);
    let users = blocks.iter().flat_map(|name| holders(Path::new("/"), name));
    let users: Vec<String> = users.map(|holder| holder.to_string()).collect();
    if !users.is_empty() {
        let message = format!(
            "{address} is in use: {}; nothing was changed",
            users.join(", ")
        );
        return Err(Failure::new(Exit::Environment, anyhow::anyhow!(message)));
    }
    let before = bus.bind(address, reach).map_err(failure)?;
    let others = bus.neighbours(address);
    if is_json {
        return Ok(pretty(&json!({
            "address": address.to_string(),
            "driver": driver,
            "before": before,
            "iommu_group": bus.group(address),
            "group_members": others.iter().map(PciAddress::to_string).collect::<Vec<_>>(),
        })));
    }
    let mut text = match before.as_deref() {
        Some(before) if before == driver => format!("{address} is bound to {driver} already\n"),
        Some(before) => format!("{address} is bound to {driver}; before, {before} had it\n"),
        None => format!("{address} is bound to {driver}; before, no driver had it\n"),
    };
    let flag = match reach {
        Reach::Vfio => "",
        Reach::Uio => " --unsafe-dma",
    };
    text += &format!("To use it:        --device pcie://{address}?nsid=1{flag}\n");
    text += &format!("To give it back:  zonelab nvme release {address}\n");
    if reach == Reach::Uio {
        text += "No IOMMU is between the drive and memory: a fault of the drive or of a program that\n\
                 uses it can overwrite any memory of this machine (docs/driver.md)\n";
    }
    Ok(text)
}

/// Gives a controller back to the kernel's driver.
///
/// # Errors
/// It is no controller, or the driver does not take it.
pub(super) fn release(args: &ReleaseArgs, is_json: bool) -> Result<String, Failure> {
    let address = args.address()?;
    let bus = PciBus::default();
    bus.release(address).map_err(failure)?;
    let driver = bus.driver(address);
    if is_json {
        return Ok(pretty(
            &json!({ "address": address.to_string(), "driver": driver }),
        ));
    }
    let driver = driver.unwrap_or_default();
    Ok(format!("{address} is bound to {driver}\n"))
}

fn failure(error: HandoverError) -> Failure {
    Failure::new(Exit::Environment, error)
}
