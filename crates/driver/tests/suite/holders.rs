//! Who uses a drive, by made-up trees of `/sys` and `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use zonelab_driver::linux::holders::{Holder, holders};

/// A directory that stands for `/`, and ends with this value.
struct Root(PathBuf);

impl Root {
    /// A machine with a drive `nvme0n1` of number 259:0, which has a partition
    /// `nvme0n1p1` of number 259:1.
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zonelab-holders-{}-{count}", std::process::id());
        let root = Self(std::env::temp_dir().join(name));
        root.write("sys/class/block/nvme0n1/dev", "259:0\n");
        root.write("sys/class/block/nvme0n1/queue/zoned", "host-managed\n");
        root.write("sys/class/block/nvme0n1/nvme0n1p1/partition", "1\n");
        root.write("sys/class/block/nvme0n1/nvme0n1p1/dev", "259:1\n");
        root.write("sys/class/block/nvme0n1p1/dev", "259:1\n");
        root.write("sys/class/block/nvme0n10/dev", "259:7\n");
        let line = "25 1 259:7 / /elsewhere rw shared:1 - ext4 /dev/nvme0n10 rw\n";
        root.write("proc/self/mountinfo", line);
        root.write("proc/swaps", "Filename Type Size Used Priority\n");
        root
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn append(&self, path: &str, line: &str) {
        let before = fs::read_to_string(self.0.join(path)).unwrap();
        self.write(path, &format!("{before}{line}\n"));
    }

    fn holders(&self) -> Vec<Holder> {
        holders(&self.0, "nvme0n1")
    }

    fn say(&self) -> Vec<String> {
        self.holders().iter().map(Holder::to_string).collect()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_drive_that_nobody_uses_has_no_holders() {
    let root = Root::new();
    assert_eq!(root.holders(), []);
    // A machine without any of the files.
    assert_eq!(holders(Path::new("/nonexistent"), "nvme0n1"), []);
}

#[test]
fn mounts_are_found_by_number_and_by_source() {
    let root = Root::new();
    let info = "proc/self/mountinfo";
    // Bind mounts and subvolumes have several points; the root field is not the point.
    root.append(
        info,
        "30 1 259:0 /sub /mnt/a rw,noatime shared:2 master:1 - f2fs /dev/root rw",
    );
    assert_eq!(root.say(), ["nvme0n1 is mounted on /mnt/a"]);
    // btrfs has a number of its own.
    root.append(
        info,
        "31 1 0:44 / /mnt/b rw - btrfs /dev/nvme0n1p1 rw,subvol=/",
    );
    assert_eq!(
        root.say(),
        [
            "nvme0n1 is mounted on /mnt/a",
            "nvme0n1p1 is mounted on /mnt/b"
        ]
    );
}

#[test]
fn a_second_drive_of_a_btrfs_is_held() {
    let root = Root::new();
    root.write("sys/fs/btrfs/1234-5678/devices/nvme0n1/dev", "259:0\n");
    assert_eq!(root.say(), ["nvme0n1 is mounted on the btrfs 1234-5678"]);
}

#[test]
fn swap_devices_loops_and_targets_hold() {
    let root = Root::new();
    root.append(
        "proc/swaps",
        "/dev/nvme0n1p1                          partition 1024 0 -2",
    );
    assert_eq!(root.say(), ["nvme0n1p1 is swap space"]);
    root.write("sys/class/block/nvme0n1/holders/dm-3/dev", "253:3\n");
    root.write("sys/class/block/loop4/loop/backing_file", "/dev/nvme0n1\n");
    let namespace = "sys/kernel/config/nvmet/subsystems/nqn.a/namespaces/1";
    root.write(&format!("{namespace}/device_path"), "/dev/nvme0n1\n");
    root.write(&format!("{namespace}/enable"), "0\n");
    assert_eq!(
        root.say(),
        [
            "nvme0n1 is part of dm-3",
            "nvme0n1 is behind loop4",
            "nvme0n1p1 is swap space",
        ]
    );
    root.write(&format!("{namespace}/enable"), "1\n");
    assert!(
        root.say()
            .contains(&"nvme0n1 is served by the kernel as nqn.a".to_owned())
    );
}

#[test]
fn lines_that_are_cut_hold_nothing() {
    let root = Root::new();
    for line in [
        "",
        "30",
        "30 1 259:0",
        "30 1 259:0 / /mnt - ",
        " - f2fs",
        "- - -",
    ] {
        root.append("proc/self/mountinfo", line);
    }
    // Two of them name the number of the drive; the point of one is missing.
    let points: Vec<_> = root.say();
    assert_eq!(
        points,
        ["nvme0n1 is mounted on ", "nvme0n1 is mounted on /mnt"]
    );
}
