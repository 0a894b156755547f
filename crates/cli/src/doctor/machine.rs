//! What this machine is, as `/sys`, `/proc` and `/dev` show it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use zonelab_driver::linux::holders::holders;
use zonelab_driver::pcie::pci::{PciAddress, PciBus, UIO_DRIVER, VFIO_DRIVER};

/// Bits of a set of capabilities (`linux/capability.h`).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;

/// What drives of a machine need of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) controllers: Vec<Controller>,
    pub(super) nvme: Module,
    pub(super) vfio_pci: Module,
    pub(super) uio_pci_generic: Module,
    /// Groups of devices that an IOMMU keeps apart.
    pub(super) iommu_groups: usize,
    pub(super) vfio_node: Node,
    /// Huge pages of 2 MiB: free ones, and all.
    pub(super) huge_pages: (u64, u64),
    /// Whether the kernel is locked down, as with Secure Boot: registers are out of reach.
    pub(super) is_locked_down: bool,
    /// Bytes that a process may lock; none if there is no limit.
    pub(super) locked_bytes: Option<u64>,
    /// Effective capabilities of this process.
    pub(super) capabilities: u64,
    /// The kernel's release: `6.1.0-18-amd64`.
    pub(super) release: String,
    /// `kernel.io_uring_disabled`: 0 for all, 1 for the privileged, 2 for nobody.
    pub(super) io_uring_disabled: u8,
    /// Whether an io_uring could be made just now, else what the kernel said.
    pub(super) io_uring: Result<(), String>,
    /// Processors that are online, and those that this process may use.
    pub(super) cpus: (usize, usize),
}

/// An NVMe controller on PCIe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Controller {
    pub(super) address: PciAddress,
    pub(super) driver: Option<String>,
    pub(super) group: Option<String>,
    /// How its IOMMU translates; none if nothing does.
    pub(super) translation: Option<String>,
    /// The generic nodes of its namespaces, under the kernel's driver.
    pub(super) namespaces: Vec<(PathBuf, Node)>,
    /// Who uses them.
    pub(super) users: Vec<String>,
    /// The node by which a driver for programs offers it.
    pub(super) handed: Option<(PathBuf, Node)>,
}

/// A module of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    /// Loaded, or a part of the kernel.
    Here,
    /// Can be loaded, as far as can be seen.
    Loadable,
    /// The kernel was built without it.
    NotBuilt,
}

/// A device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// This process may read and write.
    Open,
    /// It may not.
    Denied,
    /// There is none.
    Absent,
}

impl Machine {
    /// Looks at the tree at `root`, which is `/` but for tests. `io_uring` is what came of
    /// making one.
    pub(super) fn at(root: &Path, io_uring: Result<(), String>) -> Self {
        let bus = PciBus::at(root);
        let addresses = bus.controllers().unwrap_or_default();
        let controllers = addresses.into_iter();
        let release = line(&root.join("proc/sys/kernel/osrelease"));
        let module = |name| module(root, &release, name);
        let huge = root.join("sys/kernel/mm/hugepages/hugepages-2048kB");
        let lockdown = line(&root.join("sys/kernel/security/lockdown"));
        let status = text(&root.join("proc/self/status"));
        let capabilities = field(&status, "CapEff:").map_or("", str::trim);
        let allowed = field(&status, "Cpus_allowed_list:").unwrap_or_default();
        Self {
            controllers: controllers
                .map(|address| Controller::new(root, &bus, address))
                .collect(),
            nvme: module("nvme"),
            vfio_pci: module("vfio-pci"),
            uio_pci_generic: module("uio_pci_generic"),
            iommu_groups: entries(&root.join("sys/kernel/iommu_groups")).len(),
            vfio_node: Node::at(&root.join("dev/vfio/vfio")),
            huge_pages: (
                number(&huge.join("free_hugepages")),
                number(&huge.join("nr_hugepages")),
            ),
            // The state that holds is in brackets.
            is_locked_down: lockdown.contains('[') && !lockdown.contains("[none]"),
            locked_bytes: locked_bytes(&text(&root.join("proc/self/limits"))),
            capabilities: u64::from_str_radix(capabilities, 16).unwrap_or(0),
            io_uring_disabled: number(&root.join("proc/sys/kernel/io_uring_disabled")) as u8,
            io_uring,
            cpus: (
                cpus(&line(&root.join("sys/devices/system/cpu/online"))),
                cpus(allowed.trim()),
            ),
            release,
        }
    }

    /// The kernel's version, as far as it can be read.
    pub(super) fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }

    /// Whether it may lock as much memory as it likes.
    pub(super) fn may_lock(&self) -> bool {
        self.has(CAP_IPC_LOCK)
    }

    /// Whether it may see where its memory is, and much else.
    pub(super) fn is_admin(&self) -> bool {
        self.has(CAP_SYS_ADMIN)
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 != 0
    }
}

impl Controller {
    fn new(root: &Path, bus: &PciBus, address: PciAddress) -> Self {
        let driver = bus.driver(address);
        let group = bus.group(address);
        let blocks = bus.block_devices(address);
        let generic = blocks.iter().filter_map(|name| name.strip_prefix("nvme"));
        let node = |path: PathBuf| {
            let state = Node::at(&path);
            let shown = path.strip_prefix(root).unwrap_or(&path);
            (Path::new("/").join(shown), state)
        };
        let handed = match driver.as_deref() {
            Some(VFIO_DRIVER) => group
                .as_ref()
                .map(|group| root.join("dev/vfio").join(group)),
            Some(UIO_DRIVER) => bus.uio_node(address),
            _ => None,
        };
        Self {
            address,
            translation: bus.translation(address),
            namespaces: generic
                .map(|name| node(root.join(format!("dev/ng{name}"))))
                .collect(),
            users: blocks
                .iter()
                .flat_map(|name| holders(root, name))
                .map(|holder| holder.to_string())
                .collect(),
            handed: handed.map(node),
            driver,
            group,
        }
    }
}

impl Node {
    fn at(path: &Path) -> Self {
        match rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => Self::Open,
            Err(_) if path.exists() => Self::Denied,
            Err(_) => Self::Absent,
        }
    }
}

/// Whether a module is there, or could be. Its name may have dashes.
fn module(root: &Path, release: &str, name: &str) -> Module {
    let plain = |name: &str| name.replace('-', "_");
    if root.join("sys/module").join(plain(name)).exists() {
        return Module::Here;
    }
    let directory = root.join("lib/modules").join(release);
    let lists = |file: &str| {
        let list = text(&directory.join(file));
        list.lines().any(|line| {
            let path = line.split(':').next().unwrap_or_default();
            let file = path.rsplit('/').next().unwrap_or_default();
            file.split(".ko").next().map(plain) == Some(plain(name))
        })
    };
    if lists("modules.builtin") {
        return Module::Here;
    }
    // Without the directory, as in a container, nothing can be said.
    match lists("modules.dep") || !directory.exists() {
        true => Module::Loadable,
        false => Module::NotBuilt,
    }
}

/// The soft limit of locked memory in `/proc/self/limits`.
fn locked_bytes(limits: &str) -> Option<u64> {
    let rest = field(limits, "Max locked memory")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// How many processors a list such as `0-3,8` has.
fn cpus(list: &str) -> usize {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    list.split(',').filter_map(count).sum()
}

/// What stands behind `key` at the start of a line.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &Path) -> String {
    text(path).trim().to_owned()
}

fn number(path: &Path) -> u64 {
    line(path).parse().unwrap_or(0)
}

fn entries(path: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(path).into_iter().flatten().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(cpus("0-3,8"), 5);
        assert_eq!(cpus("0"), 1);
        assert_eq!(cpus(""), 0);
        assert_eq!(cpus("7-3"), 0);
    }

    #[test]
    fn the_soft_limit_counts() {
        let line = "Max locked memory         8388608              unlimited            bytes";
        assert_eq!(locked_bytes(line), Some(8 << 20));
        let line = "Max locked memory         unlimited            unlimited            bytes";
        assert_eq!(locked_bytes(line), None);
    }
}
