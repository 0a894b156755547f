//! Made-up machines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checks::{Check, State, Way, checks, is_open};
use super::machine::{Machine, Module, Node};
use super::{Exit, Report};

const RELEASE: &str = "6.1.0-18-amd64";
const ALL_CAPABILITIES: &str = "000001ffffffffff";

/// A directory that stands for `/`, and ends with this value.
struct Root(PathBuf);

impl Root {
    /// A machine of two processors whose user has no privileges, with no drive.
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zonelab-doctor-{}-{count}", std::process::id());
        let root = Self(std::env::temp_dir().join(name));
        root.write("proc/sys/kernel/osrelease", &format!("{RELEASE}\n"));
        root.write("sys/devices/system/cpu/online", "0-1\n");
        root.write(
            "proc/self/limits",
            "Max locked memory  8388608  8388608  bytes\n",
        );
        root.privileges("0000000000000000");
        let modules = format!("lib/modules/{RELEASE}");
        root.write(
            &format!("{modules}/modules.dep"),
            "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n\
             kernel/drivers/uio/uio_pci_generic.ko: kernel/drivers/uio/uio.ko\n",
        );
        root.write(&format!("{modules}/modules.builtin"), "kernel/fs/fuse.ko\n");
        root
    }

    fn privileges(&self, capabilities: &str) {
        let status = format!("Name:\tzonelab\nCapEff:\t{capabilities}\nCpus_allowed_list:\t1\n");
        self.write("proc/self/status", &status);
    }

    /// A controller that `driver` has, in an IOMMU group of type DMA-FQ if one is named.
    fn controller(&self, address: &str, driver: Option<&str>, group: Option<&str>) {
        let device = self.0.join("sys/bus/pci/devices").join(address);
        self.write(
            &format!("sys/bus/pci/devices/{address}/class"),
            "0x010802\n",
        );
        if let Some(driver) = driver {
            let at = self.0.join("sys/bus/pci/drivers").join(driver);
            fs::create_dir_all(&at).unwrap();
            symlink(at, device.join("driver")).unwrap();
        }
        if let Some(group) = group {
            self.write(&format!("sys/kernel/iommu_groups/{group}/type"), "DMA-FQ\n");
            let at = self.0.join("sys/kernel/iommu_groups").join(group);
            symlink(at, device.join("iommu_group")).unwrap();
        }
        if driver == Some("nvme") {
            self.write("sys/module/nvme/refcnt", "1\n");
            fs::create_dir_all(device.join("nvme/nvme0/nvme0n1")).unwrap();
            self.write("sys/class/block/nvme0n1/dev", "259:0\n");
            self.write("dev/ng0n1", "");
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(&self) -> Machine {
        Machine::at(&self.0, Ok(()))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named<'a>(checks: &'a [Check], way: Way, name: &str) -> &'a Check {
    let found = checks
        .iter()
        .find(|check| check.way == way && check.name == name);
    found.unwrap_or_else(|| panic!("no line {name}: {checks:#?}"))
}

fn open(machine: &Machine) -> [bool; 3] {
    let checks = checks(machine);
    Way::ALL.map(|way| is_open(&checks, way))
}

#[test]
fn a_machine_without_drives_needs_nothing() {
    let machine = Root::new().machine();
    let report = Report::new(&machine);
    assert_eq!(report.exit(), Exit::Done);
    assert!(
        report
            .checks
            .iter()
            .all(|check| check.state != State::Missing)
    );
    assert_eq!(open(&machine), [false; 3]);
    // Nor does one of which nothing can be read.
    let nothing = Machine::at(&PathBuf::from("/nowhere"), Err("none".to_owned()));
    assert_eq!(Report::new(&nothing).exit(), Exit::Done);
}

#[test]
fn what_the_kernel_drives_is_open_to_who_may_use_it() {
    let root = Root::new();
    root.controller("0000:01:00.0", Some("nvme"), None);
    let mut machine = root.machine();
    assert_eq!(open(&machine), [true, false, false]);
    assert_eq!(Report::new(&machine).exit(), Exit::Done);
    let lines = checks(&machine);
    let found = &named(&lines, Way::Any, "0000:01:00.0").found;
    assert_eq!(found, "nvme has it, and nobody uses it: /dev/ng0n1");
    assert_eq!(named(&lines, Way::Vfio, "IOMMU").state, State::Missing);
    machine.controllers[0].namespaces[0].1 = Node::Denied;
    let lines = checks(&machine);
    let node = named(&lines, Way::Linux, "/dev/ng0n1");
    let help = "run as root, or chown $USER /dev/ng0n1";
    assert_eq!(
        (node.state, node.help.as_deref()),
        (State::Missing, Some(help))
    );
    assert_eq!(Report::new(&machine).exit(), Exit::Environment);
}

#[test]
fn who_uses_a_drive_is_named() {
    let root = Root::new();
    root.controller("0000:01:00.0", Some("nvme"), None);
    let mount = "25 1 259:0 / /data rw shared:1 - ext4 /dev/nvme0n1 rw\n";
    root.write("proc/self/mountinfo", mount);
    let lines = checks(&root.machine());
    let found = &named(&lines, Way::Any, "0000:01:00.0").found;
    assert!(found.contains("nvme0n1 is mounted on /data"), "{found}");
}

#[test]
fn io_uring_that_is_switched_off_closes_the_way_through_the_kernel() {
    let root = Root::new();
    root.controller("0000:01:00.0", Some("nvme"), None);
    root.write("proc/sys/kernel/io_uring_disabled", "2\n");
    let mut machine = Machine::at(&root.0, Err("Operation not permitted".to_owned()));
    assert_eq!(open(&machine), [false; 3]);
    let lines = checks(&machine);
    let line = named(&lines, Way::Linux, "io_uring");
    let help = "sysctl kernel.io_uring_disabled=0";
    assert_eq!(line.help.as_deref(), Some(help));
    // Refused by something else, as in a container.
    machine.io_uring_disabled = 0;
    let lines = checks(&machine);
    let line = named(&lines, Way::Linux, "io_uring");
    assert!(line.found.ends_with("Operation not permitted"), "{line:?}");
    machine.io_uring = Ok(());
    for (release, is_enough) in [
        ("5.19.0", true),
        ("5.18.2", false),
        ("4.9", false),
        ("", false),
    ] {
        machine.release = release.to_owned();
        assert_eq!(open(&machine)[0], is_enough, "{release}");
    }
}

#[test]
fn an_iommu_needs_vfio_and_no_uio() {
    let root = Root::new();
    root.controller("0000:01:00.0", Some("vfio-pci"), Some("7"));
    let mut machine = root.machine();
    assert_eq!(machine.vfio_pci, Module::Loadable);
    let lines = checks(&machine);
    let help = |way, name: &str| named(&lines, way, name).help.as_deref();
    assert_eq!(
        help(Way::Vfio, "module vfio-pci"),
        Some("modprobe vfio-pci")
    );
    assert_eq!(help(Way::Vfio, "locked memory"), Some("ulimit -l 262144"));
    let uio = named(&lines, Way::Uio, "module uio_pci_generic");
    assert_eq!(uio.state, State::NotNeeded);
    // With all of it.
    root.write("sys/module/vfio_pci/refcnt", "1\n");
    root.write("dev/vfio/vfio", "");
    root.write("dev/vfio/7", "");
    root.privileges(ALL_CAPABILITIES);
    machine = root.machine();
    assert_eq!(open(&machine), [false, true, false]);
    let lines = checks(&machine);
    let found = &named(&lines, Way::Any, "0000:01:00.0").found;
    assert_eq!(found, "vfio-pci has it: --device pcie://0000:01:00.0");
    assert_eq!(named(&lines, Way::Vfio, "/dev/vfio/7").state, State::Ok);
}

#[test]
fn a_machine_without_iommu_needs_huge_pages_and_root() {
    let root = Root::new();
    root.controller("0000:01:00.0", Some("uio_pci_generic"), None);
    fs::create_dir_all(root.0.join("sys/bus/pci/devices/0000:01:00.0/uio/uio0")).unwrap();
    root.write("dev/uio0", "");
    root.write("sys/module/uio_pci_generic/refcnt", "1\n");
    let pages = "sys/kernel/mm/hugepages/hugepages-2048kB";
    root.write(&format!("{pages}/nr_hugepages"), "64\n");
    root.write(&format!("{pages}/free_hugepages"), "15\n");
    let lines = checks(&root.machine());
    let missing: Vec<&str> = lines
        .iter()
        .filter(|check| check.way == Way::Uio && check.state == State::Missing)
        .map(|check| check.name.as_str())
        .collect();
    assert_eq!(missing, ["huge pages", "CAP_SYS_ADMIN"]);
    root.write(&format!("{pages}/free_hugepages"), "16\n");
    root.privileges(ALL_CAPABILITIES);
    let machine = root.machine();
    assert_eq!(open(&machine), [false, false, true]);
    let lines = checks(&machine);
    assert_eq!(named(&lines, Way::Uio, "/dev/uio0").state, State::Ok);
    let lockdown = "sys/kernel/security/lockdown";
    root.write(lockdown, "[none] integrity confidentiality\n");
    assert_eq!(open(&root.machine()), [false, false, true]);
    root.write(lockdown, "none [integrity] confidentiality\n");
    assert_eq!(open(&root.machine()), [false, false, false]);
}

#[test]
fn modules_are_loaded_built_in_to_be_loaded_or_not_there() {
    let root = Root::new();
    let modules = format!("lib/modules/{RELEASE}");
    root.write(
        &format!("{modules}/modules.builtin"),
        "kernel/drivers/nvme/host/nvme.ko\n",
    );
    root.write(
        &format!("{modules}/modules.dep"),
        "kernel/x/vfio-pci-core.ko:\n",
    );
    let machine = root.machine();
    let found = (machine.nvme, machine.vfio_pci);
    assert_eq!(found, (Module::Here, Module::NotBuilt));
    fs::remove_dir_all(root.0.join("lib")).unwrap();
    // Nobody knows, so that it may be tried.
    assert_eq!(root.machine().vfio_pci, Module::Loadable);
}

#[test]
fn text_and_json_say_the_same() {
    let root = Root::new();
    root.controller("0000:01:00.0", None, None);
    let report = Report::new(&root.machine());
    assert_eq!(report.exit(), Exit::Environment);
    let text = report.to_text();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    for check in json["checks"].as_array().unwrap() {
        let name = check["name"].as_str().unwrap();
        let line = text
            .lines()
            .find(|line| line.contains(name) && line.contains(check["found"].as_str().unwrap()));
        let line = line.unwrap_or_else(|| panic!("no line of {name}:\n{text}"));
        assert!(
            line.trim_start()
                .starts_with(check["state"].as_str().unwrap())
        );
        let help = check["help"].as_str();
        assert!(help.is_none_or(|help| line.ends_with(help)), "{line}");
    }
    assert_eq!(json["ways"]["linux://"], false);
    assert!(text.contains("linux://: not open\n"), "{text}");
}
