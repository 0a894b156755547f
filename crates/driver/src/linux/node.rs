//! The device node of a namespace, and what sysfs says of it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, major, minor, open, stat};
use rustix::io::Errno;

use super::holders::{Holder, holders};
use super::ioctl;
use crate::error::DriverError;

/// Bytes that a transfer may have if the kernel does not say: 127 segments of a
/// page each, less one for a buffer that begins within a page.
const DEFAULT_TRANSFER_BYTES: u32 = 126 * PAGE_BYTES;

/// Bytes of the smallest memory page.
const PAGE_BYTES: u32 = 4096;

/// Which device node a namespace is used through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The generic character device, as `/dev/ng0n1`: takes NVMe commands.
    Generic,
    /// The block device, as `/dev/nvme0n1`: reads and writes through the block
    /// layer, other commands one by one.
    Block,
}

/// An opened node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) path: String,
    pub(super) nsid: u32,
    /// Largest transfer that the kernel takes, in bytes.
    pub(super) max_transfer_bytes: u32,
    /// Whether the kernel has queues that are polled.
    pub(super) has_polled_queues: bool,
    descriptor: OwnedFd,
    /// Keeps others from mounting the block device meanwhile.
    _claim: Option<OwnedFd>,
}

impl Node {
    /// Opens the node of a namespace that nobody else uses.
    pub(super) fn open(path: &str) -> Result<Self, DriverError> {
        let failed = |source: Errno| DriverError::Node {
            path: path.to_owned(),
            source: source.into(),
        };
        let of_node = stat(path).map_err(failed)?;
        let root = Path::new("/");
        let (kind, name) = identify(root, path, &of_node)?;
        let block = block_name(&name);
        let held = |by: Vec<Holder>| DriverError::Held {
            path: path.to_owned(),
            by: by
                .iter()
                .map(Holder::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        };
        let by = holders(root, &block);
        if !by.is_empty() {
            return Err(held(by));
        }
        let claimed = || {
            held(vec![Holder::Claim {
                device: block.clone(),
            }])
        };
        let (flags, claim) = match kind {
            NodeKind::Generic => (OFlags::RDWR, claim(path, &block)),
            NodeKind::Block => (OFlags::RDWR | OFlags::DIRECT | OFlags::EXCL, Ok(None)),
        };
        let claim = claim.map_err(|_| claimed())?;
        let opened = open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let descriptor = opened.map_err(|error| match error {
            Errno::BUSY => claimed(),
            error => failed(error),
        })?;
        let nsid = ioctl::namespace_id(descriptor.as_fd()).map_err(failed)?;
        let limits = root.join("sys/class/block").join(&block).join("queue");
        Ok(Self {
            kind,
            path: path.to_owned(),
            nsid,
            max_transfer_bytes: max_transfer_bytes(&limits),
            has_polled_queues: number(&limits.join("io_poll")) == Some(1),
            descriptor,
            _claim: claim,
        })
    }
}

impl Node {
    /// What it means that the kernel did not pass a command on.
    pub(super) fn failed(&self, what: &'static str, errno: Errno) -> DriverError {
        let path = self.path.clone();
        match errno {
            Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN => DriverError::Removed { path },
            Errno::INTR => DriverError::Cancelled { path },
            errno => DriverError::Kernel {
                what,
                path,
                source: errno.into(),
            },
        }
    }
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Claims the block device of a generic one, if there is such a device and we may
/// open it: the kernel lets nobody mount it then.
fn claim(path: &str, block: &str) -> Result<Option<OwnedFd>, Errno> {
    let node = Path::new(path).with_file_name(block);
    match open(
        &node,
        OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(claim) => Ok(Some(claim)),
        Err(Errno::BUSY) => Err(Errno::BUSY),
        // A namespace that the kernel shows no block device of cannot be mounted.
        Err(_) => Ok(None),
    }
}

/// The kind of a node, and its name in sysfs.
fn identify(root: &Path, path: &str, of_node: &Stat) -> Result<(NodeKind, String), DriverError> {
    let none = |what: &str| DriverError::NotANamespace {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let directory = match FileType::from_raw_mode(of_node.st_mode) {
        FileType::CharacterDevice => "sys/dev/char",
        FileType::BlockDevice => "sys/dev/block",
        _ => return Err(none("is no device")),
    };
    let number = format!("{}:{}", major(of_node.st_rdev), minor(of_node.st_rdev));
    let link = root.join(directory).join(&number);
    let device: PathBuf = fs::canonicalize(&link).map_err(|source| DriverError::Node {
        path: path.to_owned(),
        source: io::Error::new(source.kind(), format!("{}: {source}", link.display())),
    })?;
    if device.join("partition").exists() {
        return Err(none("is a partition"));
    }
    let name = device.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_owned();
    match name.strip_prefix("ng").or(name.strip_prefix("nvme")) {
        Some(rest) if is_namespace(rest) => match name.starts_with("ng") {
            true => Ok((NodeKind::Generic, name)),
            false => Ok((NodeKind::Block, name)),
        },
        Some(_) => Err(none("is a controller")),
        None => Err(none("is no NVMe device")),
    }
}

/// True of `0n1`: controller (or subsystem) and namespace.
fn is_namespace(numbers: &str) -> bool {
    let parts = numbers.split_once('n');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    parts.is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace))
}

/// The block device of a namespace by the name of either node.
fn block_name(name: &str) -> String {
    match name.strip_prefix("ng") {
        Some(rest) => format!("nvme{rest}"),
        None => name.to_owned(),
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What the kernel takes with one command: by its limit of bytes, and by that of
/// segments, of which a buffer in ordinary memory has one for each page.
fn max_transfer_bytes(limits: &Path) -> u32 {
    let bytes = number(&limits.join("max_hw_sectors_kb")).map(|kib| kib.saturating_mul(1024));
    let segments = number(&limits.join("max_segments"));
    let by_segments = segments.map(|count| count.saturating_sub(1).max(1) * u64::from(PAGE_BYTES));
    match (bytes, by_segments) {
        (Some(bytes), Some(by_segments)) => {
            u32::try_from(bytes.min(by_segments)).unwrap_or(u32::MAX)
        }
        _ => DEFAULT_TRANSFER_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_namespaces() {
        assert!(is_namespace("0n1") && is_namespace("12n345"));
        assert!(!is_namespace("0") && !is_namespace("0n") && !is_namespace("0c1n1"));
        assert!(!is_namespace("-subsys0") && !is_namespace("0n1p1"));
        assert_eq!(block_name("ng0n1"), "nvme0n1");
        assert_eq!(block_name("nvme3n2"), "nvme3n2");
    }
}
