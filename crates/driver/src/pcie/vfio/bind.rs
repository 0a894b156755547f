//! Handing functions from the kernel's driver to programs, and back.

use std::path::PathBuf;
use std::{fs, io};

use super::address::PciAddress;
use super::error::VfioError;
use super::sysfs::{PciBus, VFIO_DRIVER};

/// The kernel's own driver of NVMe controllers on PCIe.
pub const KERNEL_DRIVER: &str = "nvme";

/// A text, and the file of `/sys` that it is written to.
type Write = (PathBuf, String);

impl PciBus {
    /// Hands a function to programs: to `vfio-pci`, whichever driver has it. Returns the
    /// driver that had it. Does nothing if it is bound already.
    ///
    /// Who calls this has made sure that nothing uses its namespaces: they vanish. The
    /// binding lasts until [`Self::release`], or until the machine starts anew.
    ///
    /// # Errors
    /// There is no such NVMe controller, `/sys` cannot be written to, or the driver does not
    /// take it; then it is given back to the driver that had it.
    pub fn bind(&self, address: PciAddress) -> Result<Option<String>, VfioError> {
        self.check(address)?;
        let before = self.driver(address);
        if before.as_deref() == Some(VFIO_DRIVER) {
            return Ok(before);
        }
        self.rebind(address, Some(VFIO_DRIVER))?;
        if self.driver(address).as_deref() == Some(VFIO_DRIVER) {
            return Ok(before);
        }
        self.rebind(address, None)?;
        Err(VfioError::NotTaken {
            address,
            driver: VFIO_DRIVER,
        })
    }

    /// Gives a function back to the driver that the kernel has for it. Does nothing if
    /// `vfio-pci` does not have it.
    ///
    /// The kernel waits until programs that use it have ended.
    ///
    /// # Errors
    /// As of [`Self::bind`].
    pub fn release(&self, address: PciAddress) -> Result<(), VfioError> {
        self.check(address)?;
        if self.driver(address).as_deref() == Some(VFIO_DRIVER) {
            self.rebind(address, None)?;
        }
        match self.driver(address).as_deref() {
            Some(VFIO_DRIVER) | None => Err(VfioError::NotTaken {
                address,
                driver: KERNEL_DRIVER,
            }),
            Some(_) => Ok(()),
        }
    }

    fn rebind(&self, address: PciAddress, to: Option<&str>) -> Result<(), VfioError> {
        for (path, text) in self.steps(address, to) {
            fs::write(&path, text).map_err(|source| VfioError::Write {
                path: path.display().to_string(),
                source,
            })?;
        }
        Ok(())
    }

    /// What gives a function to the driver `to`, or to the one that the kernel finds.
    fn steps(&self, address: PciAddress, to: Option<&str>) -> Vec<Write> {
        let name = address.to_string();
        // An empty line takes the choice back.
        let choice = format!("{}\n", to.unwrap_or_default());
        let mut steps = vec![(self.path(address).join("driver_override"), choice)];
        if let Some(driver) = self.driver(address) {
            steps.push((self.driver_path(&driver).join("unbind"), name.clone()));
        }
        steps.push((self.probe_path(), name));
        steps
    }
}

/// What helps when `/sys` cannot be written to.
pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root",
        io::ErrorKind::ReadOnlyFilesystem => "; /sys is read-only here, as in a container",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// A made-up `/sys` with a controller that the kernel's driver has, and one that
    /// nobody has, of a group of two.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str) -> Self {
            let name = format!("zonelab-pci-{}-{name}", std::process::id());
            let root = std::env::temp_dir().join(name);
            let sys = Self(root.clone());
            for (address, class) in [
                ("0000:01:00.0", "0x010802"),
                ("0000:02:00.0", "0x010802"),
                ("0000:02:00.1", "0x020000"),
            ] {
                let device = root.join("bus/pci/devices").join(address);
                fs::create_dir_all(&device).unwrap();
                fs::write(device.join("class"), format!("{class}\n")).unwrap();
                fs::write(device.join("driver_override"), "").unwrap();
            }
            for driver in [KERNEL_DRIVER, VFIO_DRIVER] {
                fs::create_dir_all(root.join("bus/pci/drivers").join(driver)).unwrap();
            }
            fs::create_dir_all(root.join("kernel/iommu_groups/7/devices")).unwrap();
            for address in ["0000:02:00.0", "0000:02:00.1"] {
                let device = root.join("bus/pci/devices").join(address);
                symlink(
                    root.join("kernel/iommu_groups/7"),
                    device.join("iommu_group"),
                )
                .unwrap();
                let entry = root.join("kernel/iommu_groups/7/devices").join(address);
                symlink(&device, entry).unwrap();
            }
            let driver = root.join("bus/pci/drivers").join(KERNEL_DRIVER);
            let device = root.join("bus/pci/devices/0000:01:00.0");
            symlink(driver, device.join("driver")).unwrap();
            fs::create_dir_all(device.join("nvme/nvme0/nvme0c0n1")).unwrap();
            fs::create_dir_all(device.join("nvme/nvme0/ng0n1")).unwrap();
            sys
        }

        fn bus(&self) -> PciBus {
            PciBus::at(&self.0)
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn at(text: &str) -> PciAddress {
        text.parse().unwrap()
    }

    #[test]
    fn a_function_is_chosen_for_taken_away_and_looked_at_again() {
        let sys = Sys::new("steps");
        let bus = sys.bus();
        let pci = sys.0.join("bus/pci");
        let shown = |address, to| -> Vec<(String, String)> {
            let steps = bus.steps(at(address), to);
            let short = |path: &Path| path.strip_prefix(&pci).unwrap().display().to_string();
            steps
                .iter()
                .map(|(path, text)| (short(path), text.clone()))
                .collect()
        };
        let of = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            shown("01:00.0", Some(VFIO_DRIVER)),
            [
                of("devices/0000:01:00.0/driver_override", "vfio-pci\n"),
                of("drivers/nvme/unbind", "0000:01:00.0"),
                of("drivers_probe", "0000:01:00.0"),
            ]
        );
        assert_eq!(
            shown("02:00.0", None),
            [
                of("devices/0000:02:00.0/driver_override", "\n"),
                of("drivers_probe", "0000:02:00.0"),
            ]
        );
    }

    #[test]
    fn a_function_that_no_driver_takes_is_given_back() {
        let sys = Sys::new("not-taken");
        let error = sys.bus().bind(at("01:00.0")).unwrap_err().to_string();
        assert!(error.contains("modprobe vfio-pci"), "{error}");
        let choice = sys.0.join("bus/pci/devices/0000:01:00.0/driver_override");
        assert_eq!(fs::read_to_string(choice).unwrap(), "\n");
    }

    #[test]
    fn what_is_no_controller_is_refused() {
        let sys = Sys::new("refused");
        let error = sys.bus().bind(at("02:00.1")).unwrap_err();
        assert!(matches!(error, VfioError::NotNvme { .. }), "{error}");
        let error = sys.bus().bind(at("03:00.0")).unwrap_err();
        let text = "there is no PCI function 0000:03:00.0; NVMe controllers are at: 0000:01:00.0, \
                    0000:02:00.0";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn groups_and_namespaces_are_found() {
        let sys = Sys::new("found");
        let bus = sys.bus();
        assert_eq!(bus.driver(at("01:00.0")).as_deref(), Some(KERNEL_DRIVER));
        assert_eq!(bus.driver(at("02:00.0")), None);
        assert_eq!(bus.group(at("02:00.0")).as_deref(), Some("7"));
        assert_eq!(bus.neighbours(at("02:00.0")), [at("02:00.1")]);
        assert_eq!(bus.block_devices(at("01:00.0")), ["nvme0n1"]);
    }
}
