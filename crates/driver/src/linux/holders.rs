//! Who uses a drive of this machine.
//!
//! Everything is read below a directory that stands for `/`, so that tests can
//! make one up.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Something that uses a drive or a partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A mounted file system.
    Mount {
        /// The drive or partition, as in `nvme0n1p1`.
        device: String,
        /// Where it is mounted.
        point: String,
    },
    /// Swap space.
    Swap {
        /// The drive or partition.
        device: String,
    },
    /// Another block device that is made of it: device mapper, RAID, bcache.
    Device {
        /// The drive or partition.
        device: String,
        /// The other, as in `dm-0`.
        holder: String,
    },
    /// A loop device.
    Loop {
        /// The drive or partition.
        device: String,
        /// The loop device.
        holder: String,
    },
    /// The kernel's NVMe target, which serves it to other machines.
    Target {
        /// The drive or partition.
        device: String,
        /// The subsystem that it is a namespace of.
        subsystem: String,
    },
    /// Something that claimed it exclusively, and that the kernel does not name.
    Claim {
        /// The drive.
        device: String,
    },
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount { device, point } => write!(f, "{device} is mounted on {point}"),
            Self::Swap { device } => write!(f, "{device} is swap space"),
            Self::Device { device, holder } => write!(f, "{device} is part of {holder}"),
            Self::Loop { device, holder } => write!(f, "{device} is behind {holder}"),
            Self::Target { device, subsystem } => {
                write!(f, "{device} is served by the kernel as {subsystem}")
            }
            Self::Claim { device } => write!(f, "another process has {device} for itself"),
        }
    }
}

/// A block device as sysfs names and numbers it.
struct Block {
    name: String,
    /// Major and minor number, as in `259:0`.
    number: String,
}

/// Who uses the block device `name`, as in `nvme0n1`, or a partition of it. `root`
/// is the directory that stands for `/`.
///
/// What cannot be read counts as empty: a system without swap or NVMe target does
/// not have the files.
#[must_use]
pub fn holders(root: &Path, name: &str) -> Vec<Holder> {
    let mut found = Vec::new();
    for block in blocks(root, name) {
        mounts(root, &block, &mut found);
        swaps(root, &block, &mut found);
        devices(root, &block, &mut found);
        loops(root, &block, &mut found);
        targets(root, &block, &mut found);
    }
    found
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn entries(directory: PathBuf) -> Vec<String> {
    let listed = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = listed.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// The drive and its partitions.
fn blocks(root: &Path, name: &str) -> Vec<Block> {
    let drive = root.join("sys/class/block").join(name);
    let number = |path: &Path| text(path.join("dev")).trim().to_owned();
    let mut blocks = vec![Block {
        name: name.to_owned(),
        number: number(&drive),
    }];
    for partition in entries(drive.clone()) {
        let path = drive.join(&partition);
        if path.join("partition").exists() {
            blocks.push(Block {
                number: number(&path),
                name: partition,
            });
        }
    }
    blocks
}

/// True if `path` is the node of the block device.
fn names(path: &str, block: &Block) -> bool {
    path.strip_prefix("/dev/") == Some(&block.name)
}

fn mounts(root: &Path, block: &Block, found: &mut Vec<Holder>) {
    for line in text(root.join("proc/self/mountinfo")).lines() {
        // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS
        let (before, after) = line.split_once(" - ").unwrap_or((line, ""));
        let mut fields = before.split(' ');
        let (number, point) = (fields.nth(2), fields.nth(1));
        let source = after.split(' ').nth(1).unwrap_or_default();
        let is_numbered = !block.number.is_empty() && number == Some(&block.number);
        // File systems with several drives have a number of their own.
        if is_numbered || names(source, block) {
            found.push(Holder::Mount {
                device: block.name.clone(),
                point: point.unwrap_or_default().to_owned(),
            });
        }
    }
    if !found.is_empty() {
        return;
    }
    let btrfs = root.join("sys/fs/btrfs");
    for id in entries(btrfs.clone()) {
        if btrfs.join(&id).join("devices").join(&block.name).exists() {
            found.push(Holder::Mount {
                device: block.name.clone(),
                point: format!("the btrfs {id}"),
            });
        }
    }
}

fn swaps(root: &Path, block: &Block, found: &mut Vec<Holder>) {
    let swaps = text(root.join("proc/swaps"));
    let mut used = swaps.lines().filter_map(|line| line.split(' ').next());
    if used.any(|path| names(path.trim_end(), block)) {
        let device = block.name.clone();
        found.push(Holder::Swap { device });
    }
}

fn devices(root: &Path, block: &Block, found: &mut Vec<Holder>) {
    let directory = root.join("sys/class/block").join(&block.name);
    for holder in entries(directory.join("holders")) {
        let device = block.name.clone();
        found.push(Holder::Device { device, holder });
    }
}

fn loops(root: &Path, block: &Block, found: &mut Vec<Holder>) {
    let all = root.join("sys/class/block");
    for holder in entries(all.clone()) {
        let file = text(all.join(&holder).join("loop/backing_file"));
        if names(file.trim(), block) {
            let device = block.name.clone();
            found.push(Holder::Loop { device, holder });
        }
    }
}

fn targets(root: &Path, block: &Block, found: &mut Vec<Holder>) {
    let all = root.join("sys/kernel/config/nvmet/subsystems");
    for subsystem in entries(all.clone()) {
        let namespaces = all.join(&subsystem).join("namespaces");
        for nsid in entries(namespaces.clone()) {
            let namespace = namespaces.join(nsid);
            let is_enabled = text(namespace.join("enable")).trim() == "1";
            if is_enabled && names(text(namespace.join("device_path")).trim(), block) {
                found.push(Holder::Target {
                    device: block.name.clone(),
                    subsystem: subsystem.clone(),
                });
            }
        }
    }
}
