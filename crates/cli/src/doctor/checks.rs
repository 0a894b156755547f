//! What a machine has and lacks, and what helps.

use zonelab_driver::pcie::pci::{KERNEL_DRIVER, Reach, UIO_DRIVER, VFIO_DRIVER};

use super::machine::{Controller, Machine, Module, Node};

/// Locked memory for VFIO: queues and buffers of some jobs.
const LOCKED_BYTES: u64 = 256 << 20;
/// Huge pages for UIO: four jobs and their buffers.
const HUGE_PAGES: u64 = 16;
/// The first kernels with generic nodes of namespaces, and with their commands by io_uring.
const GENERIC_NODES: (u32, u32) = (5, 13);
const PASSTHROUGH: (u32, u32) = (5, 19);

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Any way to a drive.
    Any,
    /// `linux://`.
    Linux,
    /// `pcie://` behind an IOMMU.
    Vfio,
    /// `pcie://` without one.
    Uio,
}

impl Way {
    /// The three ways.
    pub(super) const ALL: [Self; 3] = [Self::Linux, Self::Vfio, Self::Uio];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "drives",
            Self::Linux => "linux://",
            Self::Vfio => "pcie:// by vfio-pci",
            Self::Uio => "pcie:// by uio_pci_generic",
        }
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is there.
    Ok,
    /// It is not, and the way is closed without it.
    Missing,
    /// Nothing on this machine needs it.
    NotNeeded,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::NotNeeded => "not needed",
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) way: Way,
    pub(super) name: String,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// A command that helps, or what else does.
    pub(super) help: Option<String>,
}

impl Check {
    fn new(way: Way, name: &str, state: State, found: impl Into<String>) -> Self {
        Self {
            way,
            name: name.to_owned(),
            state,
            found: found.into(),
            help: None,
        }
    }

    fn ok(way: Way, name: &str, found: impl Into<String>) -> Self {
        Self::new(way, name, State::Ok, found)
    }

    fn not_needed(way: Way, name: &str, found: impl Into<String>) -> Self {
        Self::new(way, name, State::NotNeeded, found)
    }

    fn missing(way: Way, name: &str, found: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..Self::new(way, name, State::Missing, found)
        }
    }
}

/// All checks, those of each way together.
pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let mut all = drives(machine);
    all.push(cpus(machine));
    all.extend(linux(machine));
    all.extend(vfio(machine));
    all.extend(uio(machine));
    all
}

/// Whether a way to a drive is open: it is needed, and nothing is missing.
pub(super) fn is_open(checks: &[Check], way: Way) -> bool {
    let states = || {
        checks
            .iter()
            .filter(|check| check.way == way)
            .map(|check| check.state)
    };
    states().any(|state| state == State::Ok) && states().all(|state| state != State::Missing)
}

/// Each controller: who has it.
fn drives(machine: &Machine) -> Vec<Check> {
    if machine.controllers.is_empty() {
        let found = "no NVMe controller on PCIe; emulated drives and NVMe/TCP need none";
        return vec![Check::not_needed(Way::Any, "controllers", found)];
    }
    machine.controllers.iter().map(controller).collect()
}

fn controller(of: &Controller) -> Check {
    let name = of.address.to_string();
    let address = of.address;
    let Some(driver) = of.driver.as_deref() else {
        let help = format!("zonelab nvme release {address}");
        return Check::missing(Way::Any, &name, "no driver has it", help);
    };
    let found = match Reach::of(Some(driver)) {
        Some(Reach::Vfio) => format!("{driver} has it: --device pcie://{address}"),
        Some(Reach::Uio) => format!("{driver} has it: --device pcie://{address} --unsafe-dma"),
        None if !of.users.is_empty() => {
            let users = of.users.join(", ");
            format!("{driver} has it, and it is in use: {users}; zonelab does not touch it")
        }
        None => {
            let nodes = of.namespaces.iter();
            let nodes: Vec<String> = nodes.map(|(path, _)| path.display().to_string()).collect();
            format!("{driver} has it, and nobody uses it: {}", nodes.join(", "))
        }
    };
    Check::ok(Way::Any, &name, found)
}

fn cpus(machine: &Machine) -> Check {
    let (online, allowed) = machine.cpus;
    let found = format!(
        "{allowed} of {online} for this process; in real time each job has a thread, which on \
         pcie:// takes a processor for itself"
    );
    Check::ok(Way::Any, "processors", found)
}

fn module(way: Way, name: &str, state: Module) -> Check {
    let label = format!("module {name}");
    match state {
        Module::Here => Check::ok(way, &label, "loaded"),
        Module::Loadable => Check::missing(way, &label, "not loaded", format!("modprobe {name}")),
        Module::NotBuilt => {
            let help = "a kernel that has it";
            Check::missing(way, &label, "this kernel was built without it", help)
        }
    }
}

/// The way through the kernel.
fn linux(machine: &Machine) -> Vec<Check> {
    const WAY: Way = Way::Linux;
    let is_kernels = |of: &&Controller| of.driver.as_deref() == Some(KERNEL_DRIVER);
    let of_kernel: Vec<&Controller> = machine.controllers.iter().filter(is_kernels).collect();
    let needs_driver = machine.controllers.iter().any(|of| of.driver.is_none());
    if of_kernel.is_empty() && !needs_driver {
        let found = "the kernel's driver has no controller";
        return vec![Check::not_needed(WAY, "module nvme", found)];
    }
    let mut all = vec![module(WAY, "nvme", machine.nvme), kernel(machine)];
    all.push(io_uring(machine));
    let nodes = of_kernel.iter().flat_map(|of| &of.namespaces);
    all.extend(nodes.map(|(path, state)| {
        let path = path.display().to_string();
        match state {
            Node::Open => Check::ok(WAY, &path, "this process may read and write"),
            Node::Denied => {
                let help = format!("run as root, or chown $USER {path}");
                Check::missing(WAY, &path, "this process may not read and write", help)
            }
            Node::Absent => {
                let help = format!("use {} instead", path.replacen("/dev/ng", "/dev/nvme", 1));
                Check::missing(WAY, &path, "there is no such node", help)
            }
        }
    }));
    all
}

fn kernel(machine: &Machine) -> Check {
    const NAME: &str = "NVMe commands by io_uring";
    let release = &machine.release;
    match machine.version() {
        Some(version) if version >= PASSTHROUGH => {
            Check::ok(Way::Linux, NAME, format!("Linux {release}"))
        }
        Some(version) if version >= GENERIC_NODES => {
            let found = format!("Linux {release} has none");
            Check::missing(Way::Linux, NAME, found, "Linux 5.19 or later")
        }
        _ => {
            let found = format!("Linux {release} has no generic nodes of namespaces");
            Check::missing(Way::Linux, NAME, found, "Linux 5.19 or later")
        }
    }
}

fn io_uring(machine: &Machine) -> Check {
    const NAME: &str = "io_uring";
    let switched_off = |found: &str| {
        let help = "sysctl kernel.io_uring_disabled=0";
        Check::missing(Way::Linux, NAME, found, help)
    };
    match (&machine.io_uring, machine.io_uring_disabled) {
        (Ok(()), _) => Check::ok(Way::Linux, NAME, "this process may use it"),
        (Err(_), 2) => switched_off("switched off for all (kernel.io_uring_disabled = 2)"),
        (Err(_), 1) => {
            switched_off("switched off but for the privileged (kernel.io_uring_disabled = 1)")
        }
        (Err(error), _) => {
            let found = format!("the kernel refuses it: {error}");
            let help = "run outside of the container, whose seccomp profile may forbid it";
            Check::missing(Way::Linux, NAME, found, help)
        }
    }
}

/// The way behind an IOMMU.
fn vfio(machine: &Machine) -> Vec<Check> {
    const WAY: Way = Way::Vfio;
    if machine.controllers.is_empty() {
        return vec![Check::not_needed(
            WAY,
            "IOMMU",
            "no controller could be behind it",
        )];
    }
    if machine.controllers.iter().all(|of| of.group.is_none()) {
        let found = match machine.iommu_groups {
            0 => "none, or switched off".to_owned(),
            groups => format!("{groups} groups, none of which has an NVMe controller"),
        };
        let help = "VT-d or AMD-Vi in the firmware, on Intel intel_iommu=on on the kernel's \
                    command line";
        return vec![Check::missing(WAY, "IOMMU", found, help)];
    }
    let mut all = vec![
        Check::ok(WAY, "IOMMU", format!("{} groups", machine.iommu_groups)),
        module(WAY, VFIO_DRIVER, machine.vfio_pci),
    ];
    all.push(match machine.vfio_node {
        Node::Open => Check::ok(WAY, "/dev/vfio/vfio", "this process may use it"),
        Node::Denied => denied(WAY, "/dev/vfio/vfio"),
        Node::Absent => Check::missing(WAY, "/dev/vfio/vfio", "not there", "modprobe vfio-pci"),
    });
    all.push(match machine.locked_bytes {
        _ if machine.may_lock() => Check::not_needed(
            WAY,
            "locked memory",
            "no limit for this process (CAP_IPC_LOCK)",
        ),
        None => Check::ok(WAY, "locked memory", "no limit"),
        Some(bytes) => {
            let found = format!("{} MiB may be locked", bytes >> 20);
            match bytes >= LOCKED_BYTES {
                true => Check::ok(WAY, "locked memory", found),
                false => Check::missing(WAY, "locked memory", found, "ulimit -l 262144"),
            }
        }
    });
    all.extend(handed(machine, Reach::Vfio));
    all
}

/// The way without one.
fn uio(machine: &Machine) -> Vec<Check> {
    const WAY: Way = Way::Uio;
    let exposed = |of: &&Controller| of.translation.is_none();
    if !machine.controllers.iter().any(|of| exposed(&of)) {
        let found = match machine.controllers.is_empty() {
            true => "no controller could need it",
            false => "each controller is behind an IOMMU",
        };
        let name = format!("module {UIO_DRIVER}");
        return vec![Check::not_needed(WAY, &name, found)];
    }
    let (free, total) = machine.huge_pages;
    let found = format!("{free} of {total} of 2 MiB are free");
    let pages = match free >= HUGE_PAGES {
        true => Check::ok(WAY, "huge pages", found),
        false => {
            let help = "echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
            Check::missing(WAY, "huge pages", found, help)
        }
    };
    let privilege = match machine.is_admin() {
        true => Check::ok(
            WAY,
            "CAP_SYS_ADMIN",
            "this process sees where its memory is",
        ),
        false => {
            let found = "this process does not see where its memory is";
            Check::missing(WAY, "CAP_SYS_ADMIN", found, "run as root")
        }
    };
    let mut all = vec![
        module(WAY, UIO_DRIVER, machine.uio_pci_generic),
        pages,
        privilege,
    ];
    if machine.is_locked_down {
        let found = "the kernel is locked down, so that registers are out of reach";
        let help = "Secure Boot switched off in the firmware";
        all.push(Check::missing(WAY, "lockdown", found, help));
    }
    all.extend(handed(machine, Reach::Uio));
    all
}

/// The nodes by which a driver has handed controllers over.
fn handed(machine: &Machine, reach: Reach) -> Vec<Check> {
    let way = match reach {
        Reach::Vfio => Way::Vfio,
        Reach::Uio => Way::Uio,
    };
    let of_driver = machine
        .controllers
        .iter()
        .filter(|of| of.driver.as_deref() == Some(reach.driver()));
    let nodes = of_driver.filter_map(|of| of.handed.as_ref());
    nodes
        .map(|(path, state)| {
            let path = path.display().to_string();
            match state {
                Node::Open => Check::ok(way, &path, "this process may use it"),
                Node::Denied | Node::Absent => denied(way, &path),
            }
        })
        .collect()
}

fn denied(way: Way, path: &str) -> Check {
    let help = format!("run as root, or chown $USER {path}");
    Check::missing(way, path, "this process may not use it", help)
}
