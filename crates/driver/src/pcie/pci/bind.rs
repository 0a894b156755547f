//! Handing functions from the kernel's driver to programs, and back.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::{fs, io};

use rustix::fs::FlockOperation;

use super::address::PciAddress;
use super::error::HandoverError;
use super::sysfs::{PciBus, UIO_DRIVER, VFIO_DRIVER};

/// The kernel's own driver of NVMe controllers on PCIe.
pub const KERNEL_DRIVER: &str = "nvme";

/// By which driver of the kernel a program reaches a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `vfio-pci`: an IOMMU keeps the device from memory that it was not given.
    Vfio,
    /// `uio_pci_generic`: nothing does.
    Uio,
}

impl Reach {
    const ALL: [Self; 2] = [Self::Vfio, Self::Uio];

    /// The name of the driver.
    #[must_use]
    pub const fn driver(self) -> &'static str {
        match self {
            Self::Vfio => VFIO_DRIVER,
            Self::Uio => UIO_DRIVER,
        }
    }

    /// That of a driver; none if the driver is not for programs.
    #[must_use]
    pub fn of(driver: Option<&str>) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|reach| driver == Some(reach.driver()))
    }
}

/// A text, and the file of `/sys` that it is written to.
type Write = (PathBuf, String);

impl PciBus {
    /// Hands a function to programs, whichever driver has it. Returns the driver that had
    /// it. Does nothing if it is bound already.
    ///
    /// Who calls this has made sure that nothing uses its namespaces: they vanish. The
    /// binding lasts until [`Self::release`], or until the machine starts anew.
    ///
    /// # Errors
    /// There is no such NVMe controller, the IOMMU makes the way impossible that was chosen,
    /// a program uses it, `/sys` cannot be written to, or the driver does not take it; then it
    /// is given back to the driver that the kernel has for it.
    pub fn bind(&self, address: PciAddress, to: Reach) -> Result<Option<String>, HandoverError> {
        self.check(address)?;
        self.check_iommu(address, to)?;
        let before = self.driver(address);
        let is_bound = || self.driver(address).as_deref() == Some(to.driver());
        if is_bound() {
            return Ok(before);
        }
        let _held = self.hold(address)?;
        self.rebind(address, Some(to.driver()))?;
        if is_bound() {
            return Ok(before);
        }
        self.rebind(address, None)?;
        Err(HandoverError::NotTaken {
            address,
            driver: to.driver(),
        })
    }

    /// Whether the IOMMU, or that there is none, suits a way to the function.
    fn check_iommu(&self, address: PciAddress, to: Reach) -> Result<(), HandoverError> {
        match to {
            Reach::Vfio if self.group(address).is_none() => Err(HandoverError::NoIommu { address }),
            Reach::Vfio => Ok(()),
            Reach::Uio => self.check_untranslated(address),
        }
    }

    /// Whether the addresses that the function uses are those of memory.
    pub(in crate::pcie) fn check_untranslated(
        &self,
        address: PciAddress,
    ) -> Result<(), HandoverError> {
        match self.translation(address) {
            None => Ok(()),
            Some(kind) => Err(HandoverError::Translated { address, kind }),
        }
    }

    /// Gives a function back to the driver that the kernel has for it. Does nothing if such a
    /// driver has it already.
    ///
    /// With `vfio-pci` the kernel waits until programs that use it have ended.
    ///
    /// # Errors
    /// As of [`Self::bind`].
    pub fn release(&self, address: PciAddress) -> Result<(), HandoverError> {
        self.check(address)?;
        let is_back = || {
            let driver = self.driver(address);
            driver.is_some() && Reach::of(driver.as_deref()).is_none()
        };
        if !is_back() {
            let _held = self.hold(address)?;
            self.rebind(address, None)?;
        }
        if !is_back() {
            return Err(HandoverError::NotTaken {
                address,
                driver: KERNEL_DRIVER,
            });
        }
        Ok(())
    }

    /// Sees to it that no program uses the function by UIO: unlike VFIO, the kernel would not
    /// wait for it to end. Nothing is held if another driver has it.
    ///
    /// # Errors
    /// A program does, or the node cannot be opened.
    pub(in crate::pcie) fn hold(&self, address: PciAddress) -> Result<Option<File>, HandoverError> {
        if self.driver(address).as_deref() != Some(UIO_DRIVER) {
            return Ok(None);
        }
        let Some(path) = self.uio_node(address) else {
            return Ok(None);
        };
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let node = opened.map_err(|source| HandoverError::Open {
            path: path.display().to_string(),
            source,
        })?;
        match rustix::fs::flock(&node, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(node)),
            Err(_) => Err(HandoverError::InUse { address }),
        }
    }

    fn rebind(&self, address: PciAddress, to: Option<&str>) -> Result<(), HandoverError> {
        for (path, text) in self.steps(address, to) {
            fs::write(&path, text).map_err(|source| HandoverError::Write {
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
                let device = root.join("sys/bus/pci/devices").join(address);
                fs::create_dir_all(&device).unwrap();
                fs::write(device.join("class"), format!("{class}\n")).unwrap();
                fs::write(device.join("driver_override"), "").unwrap();
            }
            for driver in [KERNEL_DRIVER, VFIO_DRIVER] {
                fs::create_dir_all(root.join("sys/bus/pci/drivers").join(driver)).unwrap();
            }
            fs::create_dir_all(root.join("sys/kernel/iommu_groups/7/devices")).unwrap();
            for address in ["0000:02:00.0", "0000:02:00.1"] {
                let device = root.join("sys/bus/pci/devices").join(address);
                symlink(
                    root.join("sys/kernel/iommu_groups/7"),
                    device.join("iommu_group"),
                )
                .unwrap();
                let entry = root.join("sys/kernel/iommu_groups/7/devices").join(address);
                symlink(&device, entry).unwrap();
            }
            let driver = root.join("sys/bus/pci/drivers").join(KERNEL_DRIVER);
            let device = root.join("sys/bus/pci/devices/0000:01:00.0");
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
        let pci = sys.0.join("sys/bus/pci");
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
        let error = sys
            .bus()
            .bind(at("01:00.0"), Reach::Uio)
            .unwrap_err()
            .to_string();
        assert!(error.contains("modprobe uio_pci_generic"), "{error}");
        let choice = sys
            .0
            .join("sys/bus/pci/devices/0000:01:00.0/driver_override");
        assert_eq!(fs::read_to_string(choice).unwrap(), "\n");
    }

    #[test]
    fn what_is_no_controller_is_refused() {
        let sys = Sys::new("refused");
        let error = sys.bus().bind(at("02:00.1"), Reach::Vfio).unwrap_err();
        assert!(matches!(error, HandoverError::NotNvme { .. }), "{error}");
        let error = sys.bus().bind(at("03:00.0"), Reach::Vfio).unwrap_err();
        let text = "there is no PCI function 0000:03:00.0; NVMe controllers are at: 0000:01:00.0, \
                    0000:02:00.0";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_iommu_decides_which_driver_may_have_a_function() {
        let sys = Sys::new("iommu");
        let bus = sys.bus();
        let error = bus.bind(at("01:00.0"), Reach::Vfio).unwrap_err();
        assert!(matches!(error, HandoverError::NoIommu { .. }), "{error}");
        assert!(error.to_string().contains("--driver uio_pci_generic"));
        let kind = sys.0.join("sys/kernel/iommu_groups/7/type");
        for translating in [None, Some("DMA-FQ\n"), Some("DMA\n")] {
            if let Some(text) = translating {
                fs::write(&kind, text).unwrap();
            }
            let error = bus.bind(at("02:00.0"), Reach::Uio).unwrap_err();
            assert!(matches!(error, HandoverError::Translated { .. }), "{error}");
        }
        // No step was taken.
        let choice = sys
            .0
            .join("sys/bus/pci/devices/0000:02:00.0/driver_override");
        assert_eq!(fs::read_to_string(choice).unwrap(), "");
        fs::write(&kind, "identity\n").unwrap();
        assert_eq!(bus.translation(at("02:00.0")), None);
        let error = bus.bind(at("02:00.0"), Reach::Uio).unwrap_err();
        assert!(matches!(error, HandoverError::NotTaken { .. }), "{error}");
    }

    #[test]
    fn a_function_that_a_program_uses_by_uio_stays() {
        let sys = Sys::new("in-use");
        let bus = sys.bus();
        let device = sys.0.join("sys/bus/pci/devices/0000:01:00.0");
        let driver = sys.0.join("sys/bus/pci/drivers").join(UIO_DRIVER);
        fs::create_dir_all(&driver).unwrap();
        fs::remove_file(device.join("driver")).unwrap();
        symlink(&driver, device.join("driver")).unwrap();
        fs::create_dir_all(device.join("uio/uio3")).unwrap();
        fs::create_dir_all(sys.0.join("dev")).unwrap();
        fs::write(sys.0.join("dev/uio3"), "").unwrap();
        let held = bus.hold(at("01:00.0")).unwrap();
        assert!(held.is_some());
        let error = bus.release(at("01:00.0")).unwrap_err();
        assert!(matches!(error, HandoverError::InUse { .. }), "{error}");
        assert!(!driver.join("unbind").exists(), "nothing was changed");
        drop(held);
        let error = bus.release(at("01:00.0")).unwrap_err();
        assert!(matches!(error, HandoverError::NotTaken { .. }), "{error}");
        assert!(driver.join("unbind").exists(), "it was to be taken away");
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
