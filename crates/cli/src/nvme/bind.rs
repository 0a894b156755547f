//! `zonelab nvme bind` and `release`: who drives a controller on PCIe.

use std::path::Path;

use serde_json::json;
use zonelab_driver::linux::holders::holders;
use zonelab_driver::pcie::vfio::{PciAddress, PciBus, VFIO_DRIVER, VfioError};

use super::fields::pretty;
use crate::exit::{Exit, Failure};

/// Options of both.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The PCI function, as in 0000:01:00.0; pcie://0000:01:00.0 is the same
    #[arg(value_name = "ADDRESS")]
    address: String,
}

impl Args {
    fn address(&self) -> Result<PciAddress, Failure> {
        let address = self
            .address
            .strip_prefix("pcie://")
            .unwrap_or(&self.address);
        let address = address.split('?').next().unwrap_or_default();
        address
            .parse()
            .map_err(|error: zonelab_driver::pcie::vfio::BadAddress| {
                Failure::usage(error.to_string())
            })
    }
}

/// Takes a controller from the kernel's driver, for `pcie://`. Refuses one whose
/// namespaces somebody uses.
///
/// # Errors
/// It is in use, is no controller, or cannot be handed over.
pub(super) fn bind(args: &Args, is_json: bool) -> Result<String, Failure> {
    let address = args.address()?;
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
    let before = bus.bind(address).map_err(failure)?;
    let others = bus.neighbours(address);
    if is_json {
        return Ok(pretty(&json!({
            "address": address.to_string(),
            "driver": VFIO_DRIVER,
            "before": before,
            "iommu_group": bus.group(address),
            "group_members": others.iter().map(PciAddress::to_string).collect::<Vec<_>>(),
        })));
    }
    let mut text = match before.as_deref() {
        Some(VFIO_DRIVER) => format!("{address} is bound to {VFIO_DRIVER} already\n"),
        Some(before) => format!("{address} is bound to {VFIO_DRIVER}; before, {before} had it\n"),
        None => format!("{address} is bound to {VFIO_DRIVER}; before, no driver had it\n"),
    };
    if bus.group(address).is_none() {
        text += "There is no IOMMU for it, which pcie:// needs: see docs/driver.md\n";
    }
    text += &format!("To use it:        --device pcie://{address}?nsid=1\n");
    text += &format!("To give it back:  zonelab nvme release {address}\n");
    Ok(text)
}

/// Gives a controller back to the kernel's driver.
///
/// # Errors
/// It is no controller, or the driver does not take it.
pub(super) fn release(args: &Args, is_json: bool) -> Result<String, Failure> {
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

fn failure(error: VfioError) -> Failure {
    Failure::new(Exit::Environment, error)
}
