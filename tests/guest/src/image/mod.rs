//! The guest: a kernel and an initramfs from packages of Debian 12, and what TLS takes from
//! Debian 13.
//!
//! Nothing is installed. `apt-get` downloads the packages with lists and a
//! cache of its own below the directory of the build, `dpkg-deb` unpacks them
//! there, and what the cases use goes into one archive for each kernel.

mod apt;
mod archive;
mod modules;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use apt::{Apt, BOOKWORM, TRIXIE};
use archive::Archive;
use tree::{LOADER_PLACE, PLACE, Tree};

/// What the guest runs first: it mounts, loads, and then obeys.
const INIT: &str = include_str!("init.sh");

/// Packages whose programs the cases use; those that they depend on follow.
const PACKAGES: [&str; 12] = [
    "btrfs-progs",
    "busybox-static",
    "coreutils",
    "e2fsprogs",
    "f2fs-tools",
    "fio",
    "keyutils",
    "kmod",
    "libzbd2",
    "nvme-cli",
    "util-linux",
    "xfsprogs",
];
/// Packages that are wanted without what they depend on: the window program
/// beside `zbd` would bring a desktop.
const ALONE: [&str; 1] = ["zbd-utils"];
/// Packages of Debian 13: what does the handshakes of TLS for the kernel, and an nvme-cli that
/// asks for TLS.
const LATER_PACKAGES: [&str; 2] = ["ktls-utils", "nvme-cli"];
/// Programs of these.
const LATER_PROGRAMS: [&str; 2] = ["nvme", "tlshd"];
/// Where the guest has them, with libraries of their own.
const LATER: &str = "later";

/// Programs that go into the guest.
const PROGRAMS: [&str; 19] = [
    "blkdiscard",
    "blkid",
    "blkzone",
    "btrfs",
    "busybox",
    "fio",
    "fsck.ext4",
    "fsck.f2fs",
    "keyctl",
    "kmod",
    "lsblk",
    "mkfs.btrfs",
    "mkfs.ext4",
    "mkfs.f2fs",
    "mkfs.xfs",
    "nvme",
    "timeout",
    "xfs_repair",
    "zbd",
];

/// Modules that go into the guest; those that they depend on follow. `aesni_intel` is none of
/// them: an emulated processor does its instructions one bit after the other.
const MODULES: [&str; 33] = [
    "blake2b_generic",
    "btrfs",
    "configfs",
    "crc32_generic",
    "crc32_pclmul",
    "crc32c_generic",
    "crc32c_intel",
    "ctr",
    "ext4",
    "f2fs",
    "gcm",
    "ghash_generic",
    "loop",
    "mq_deadline",
    "null_blk",
    "nvme",
    "nvme_core",
    "nvme_fabrics",
    "nvme_tcp",
    "nvmet",
    "nvmet_tcp",
    "sha256_generic",
    "tls",
    "uio_pci_generic",
    "vfio_iommu_type1",
    "vfio_pci",
    "virtio_console",
    "virtio_net",
    "virtio_pci",
    "xfs",
    "xor",
    "xxhash_generic",
    "zonefs",
];

/// A kernel that the guest can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// That of Debian 12: 6.1.
    Stable,
    /// That of the backports to Debian 12: 6.12.
    Backports,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Stable, Self::Backports];

    /// Name of its directory, and of its cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Backports => "backports",
        }
    }

    /// Whether a version of the package `linux-image-amd64` is of this kernel.
    fn has_version(self, version: &str) -> bool {
        let is_backport = version.contains("~bpo");
        match self {
            Self::Stable => !is_backport,
            Self::Backports => is_backport,
        }
    }
}

/// A guest that can be booted.
#[derive(Clone, Debug)]
pub struct Image {
    /// The kernel.
    pub vmlinuz: PathBuf,
    /// The initramfs: all there is in the guest.
    pub initramfs: PathBuf,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
}

impl Image {
    /// The image of `kernel` in a directory that [`build`] filled.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn open(directory: &Path, kernel: Kernel) -> Result<Self> {
        let directory = directory.join(kernel.name());
        let release = directory.join("release");
        let release = fs::read_to_string(&release).with_context(|| {
            format!(
                "no guest in {}: `cargo xtask test guest` makes it",
                directory.display()
            )
        })?;
        Ok(Self {
            vmlinuz: directory.join("vmlinuz"),
            initramfs: directory.join("initramfs.cpio"),
            release,
        })
    }
}

/// Where the images are: `ZONELAB_GUEST`, or `guest` in cargo's directory of
/// the repository.
pub fn directory() -> PathBuf {
    if let Some(directory) = std::env::var_os("ZONELAB_GUEST") {
        return directory.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    target.join("guest")
}

/// Makes the images of all kernels in `directory`, unless those that are there
/// are of the same recipe. Later versions of the packages do not make them
/// stale: remove the directory for that.
///
/// # Errors
///
/// A package cannot be had or lacks what is expected in it.
pub fn build(directory: &Path) -> Result<()> {
    let stamp = directory.join("recipe");
    let recipe = recipe();
    if fs::read_to_string(&stamp).is_ok_and(|text| text == recipe) {
        println!("the guest in {} is up to date", directory.display());
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    let apt = Apt::new(directory.join("apt"), BOOKWORM)?;
    apt.update()?;
    println!("downloading the guest's programs");
    apt.download_all(&PACKAGES)?;
    apt.download(&ALONE)?;
    let tree = unpacked(&apt, directory.join("root"))?;
    let later = Apt::new(directory.join("apt-later"), TRIXIE)?;
    later.update()?;
    later.download_all(&LATER_PACKAGES)?;
    let later = unpacked(&later, directory.join("root-later"))?;
    for kernel in Kernel::ALL {
        let directory = directory.join(kernel.name());
        build_kernel(&apt, (&tree, &later), &directory, kernel)?;
    }
    fs::write(stamp, recipe)?;
    Ok(())
}

/// All packages in the cache of `apt`, unpacked into a directory.
fn unpacked(apt: &Apt, root: PathBuf) -> Result<Tree> {
    let tree = Tree::new(root)?;
    for package in apt.archives()? {
        tree.unpack(&package)?;
    }
    Ok(tree)
}

/// All that decides what is in an image, but for the versions of packages.
fn recipe() -> String {
    let lists = [
        &PACKAGES[..],
        &ALONE[..],
        &PROGRAMS[..],
        &MODULES[..],
        &LATER_PACKAGES[..],
        &LATER_PROGRAMS[..],
    ];
    let lists: Vec<String> = lists.iter().map(|list| list.join(" ")).collect();
    format!("{}\n{INIT}", lists.join("\n"))
}

fn build_kernel(
    apt: &Apt,
    (tree, later): (&Tree, &Tree),
    directory: &Path,
    kernel: Kernel,
) -> Result<()> {
    let (package, version) = apt.kernel(|version| kernel.has_version(version))?;
    println!("making the guest with {package} {version}");
    let unpacked = Tree::new(directory.join("package"))?;
    unpacked.unpack(&apt.fetch(&package, directory)?)?;
    let modules = modules::collect(tree, &unpacked, &MODULES, &directory.join("modules"))?;

    let mut archive = Archive::new();
    for name in [
        "dev", "proc", "sys", "run", "scratch", "mnt", "etc/nvme", "root", "sbin", "usr/bin",
    ] {
        archive.directory(name);
    }
    archive.console();
    archive.file("init", INIT.as_bytes(), true);
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let source = tree.program(name)?;
        archive.file(&format!("bin/{name}"), &tree.read(&source)?, true);
        programs.push(source);
    }
    for library in tree.libraries(programs)? {
        archive.file(&library.place, &tree.read(&library.source)?, true);
    }
    add_later(&mut archive, later)?;
    for name in ["modprobe", "insmod", "rmmod", "lsmod"] {
        archive.link(&format!("sbin/{name}"), "/bin/kmod");
    }
    archive.link("etc/mtab", "/proc/self/mounts");
    for (place, content) in modules.files {
        archive.file(&place, &content, false);
    }

    let release = modules.release;
    let vmlinuz = unpacked.path(&format!("boot/vmlinuz-{release}"));
    fs::copy(&vmlinuz, directory.join("vmlinuz"))
        .with_context(|| format!("cannot copy {}", vmlinuz.display()))?;
    let archive = archive.finish();
    ensure!(
        archive.len() < 1 << 28,
        "the guest does not fit in its memory"
    );
    fs::write(directory.join("initramfs.cpio"), archive)?;
    unpacked.remove()?;
    fs::write(directory.join("release"), release)?;
    Ok(())
}

/// Adds what is of Debian 13. Its programs are started by their own loader, which finds their
/// own libraries: `/later/nvme`.
fn add_later(archive: &mut Archive, later: &Tree) -> Result<()> {
    let mut programs = Vec::new();
    for name in LATER_PROGRAMS {
        let source = later.program(name)?;
        archive.file(&format!("{LATER}/bin/{name}"), &later.read(&source)?, true);
        programs.push(source);
        let script = format!(
            "#!/bin/sh\n\
             cd /{LATER}\n\
             exec ./{LOADER_PLACE} --library-path ./{PLACE} ./bin/{name} \"$@\"\n"
        );
        archive.file(&format!("{LATER}/{name}"), script.as_bytes(), true);
    }
    for library in later.libraries(programs)? {
        let content = later.read(&library.source)?;
        archive.file(&format!("{LATER}/{}", library.place), &content, true);
    }
    Ok(())
}
