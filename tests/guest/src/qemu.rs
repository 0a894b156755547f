//! The machine around the guest.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::Image;

/// The emulator.
const PROGRAM: &str = "qemu-system-x86_64";
/// What QEMU calls the NVMe drive.
pub(crate) const DRIVE: &str = "nvme";
/// Memory of the guest. What it runs takes less than a tenth of it, and its
/// file system, all in memory, another.
const MEMORY: &str = "1G";
/// The processor: what Debian asks for, random numbers, and instructions that save others. One
/// with all that QEMU emulates takes a fifth more: Linux prefers vectors and a fifth level of
/// page tables, each of which is many instructions of the host.
const PROCESSOR: &str = "qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt,+movbe,+fsgsbase";
/// What the kernel is told: a console, an end at once if it panics, and none
/// of the work that only matters where there are secrets, or that tests the kernel itself.
const KERNEL_LINE: &str = "console=ttyS0 panic=-1 mitigations=off random.trust_cpu=on no_timer_check \
     cryptomgr.notests apparmor=0 audit=0";
/// Looks at whether QEMU has connected, and the pause between them.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// A namespace of the NVMe drive that QEMU emulates.
#[derive(Clone, Copy, Debug)]
pub enum Disk {
    /// An ordinary one.
    Conventional {
        /// Its size.
        mib: u64,
    },
    /// A zoned one.
    Zoned {
        /// Number of zones.
        zones: u64,
        /// Size of a zone.
        zone_mib: u64,
        /// Part of a zone that can be written.
        capacity_mib: u64,
        /// Most open zones.
        max_open: u32,
        /// Most active zones.
        max_active: u32,
    },
}

impl Disk {
    /// A zoned namespace that all file systems of Linux can use, beside it a conventional
    /// one with the same block size, and a second zoned one.
    pub const NAMESPACES: [Self; 3] = [
        Self::Zoned {
            zones: 64,
            zone_mib: 16,
            capacity_mib: 16,
            max_open: 10,
            max_active: 12,
        },
        Self::Conventional { mib: 256 },
        Self::Zoned {
            zones: 24,
            zone_mib: 16,
            capacity_mib: 16,
            max_open: 10,
            max_active: 12,
        },
    ];
}

/// What the guest's devices are plugged into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chassis {
    /// PCI without an IOMMU.
    #[default]
    Plain,
    /// PCI Express with an IOMMU, which lets programs drive devices.
    Iommu,
}

impl Chassis {
    /// The type of the machine, and what it has besides.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["-machine", "pc"],
            Self::Iommu => &[
                "-machine",
                "q35",
                "-device",
                "intel-iommu,intremap=on",
                "-device",
                "pcie-root-port,id=rootport,chassis=1",
            ],
        }
    }

    /// What the kernel is told besides.
    fn kernel_line(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Iommu => " intel_iommu=on",
        }
    }

    /// Where the NVMe drive is plugged in.
    fn slot(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Iommu => ",bus=rootport",
        }
    }
}

/// A QEMU process, which ends with this value.
#[derive(Debug)]
pub(crate) struct Machine {
    process: Child,
    directory: PathBuf,
    /// Whether its console is worth something.
    is_kept: bool,
}

impl Machine {
    /// Starts one, with a directory of its own for its files. Gives the
    /// connections to the guest's first program and to QEMU's monitor.
    ///
    /// The process also ends with the thread that calls this, whatever ends
    /// that (`setpriv`).
    pub(crate) fn start(
        image: &Image,
        chassis: Chassis,
        disks: &[Disk],
        directory: PathBuf,
    ) -> Result<(Self, TcpStream, TcpStream)> {
        std::fs::create_dir_all(&directory)?;
        let agent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let monitor = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", PROGRAM]);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-nographic"]);
        command.args(chassis.options());
        command.args([
            "-accel", "tcg", "-cpu", PROCESSOR, "-smp", "1", "-m", MEMORY,
        ]);
        let kernel_line = format!("{KERNEL_LINE}{}", chassis.kernel_line());
        option(&mut command, "-append", &kernel_line);
        command.arg("-kernel").arg(&image.vmlinuz);
        command.arg("-initrd").arg(&image.initramfs);
        option(
            &mut command,
            "-serial",
            &format!("file:{}", path(&console(&directory))?),
        );
        option(&mut command, "-chardev", &socket("agent", &agent)?);
        option(&mut command, "-device", "virtio-serial-pci");
        option(&mut command, "-device", "virtserialport,chardev=agent");
        option(&mut command, "-chardev", &socket("monitor", &monitor)?);
        option(&mut command, "-mon", "chardev=monitor,mode=control");
        option(&mut command, "-netdev", "user,id=net");
        option(
            &mut command,
            "-device",
            "virtio-net-pci,netdev=net,romfile=",
        );
        add_disks(&mut command, chassis, disks, &directory)?;
        let errors = File::create(directory.join("qemu.log"))?;
        command
            .stdin(Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors);
        let process = command
            .spawn()
            .context("cannot start setpriv, of util-linux")?;
        // From here on the process is killed if anything fails.
        let mut machine = Self {
            process,
            directory,
            is_kept: true,
        };
        let agent = machine.accept(&agent)?;
        let monitor = machine.accept(&monitor)?;
        Ok((machine, agent, monitor))
    }

    /// Where its console is kept.
    pub(crate) fn console(&self) -> PathBuf {
        console(&self.directory)
    }

    /// Where what namespace `id` of the NVMe drive holds is kept.
    pub(crate) fn disk(&self, id: u32) -> PathBuf {
        disk(&self.directory, id)
    }

    /// Says that the files are not to be kept when this ends, or that they are.
    pub(crate) fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Waits for QEMU to connect.
    #[expect(
        clippy::disallowed_methods,
        reason = "another process takes as long as it takes"
    )]
    fn accept(&mut self, listener: &TcpListener) -> Result<TcpStream> {
        listener.set_nonblocking(true)?;
        for _ in 0..LOOKS {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
            if let Some(status) = self.process.try_wait()? {
                let log = std::fs::read_to_string(self.directory.join("qemu.log"))?;
                bail!("{PROGRAM} ended, {status}:\n{log}");
            }
        }
        bail!("{PROGRAM} does not connect");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself: nothing is lost if this fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
        discard(&self.directory, self.is_kept);
    }
}

/// Removes the files of a machine that has ended, or only its disks, which are large.
fn discard(directory: &Path, is_kept: bool) {
    // What cannot be removed stays: that is no reason to fail.
    if !is_kept {
        let _ = std::fs::remove_dir_all(directory);
        return;
    }
    let entries = std::fs::read_dir(directory);
    for path in entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        if path.extension().is_some_and(|extension| extension == "raw") {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A directory below `parent` for the files of one machine. Disks that were
/// left by processes that ended at once are removed.
pub(crate) fn new_directory(parent: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.split('-').next().unwrap_or_default();
        if !process.is_empty() && !Path::new("/proc").join(process).exists() {
            discard(&path, true);
        }
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    parent.join(format!("{}-{count}", std::process::id()))
}

fn console(directory: &Path) -> PathBuf {
    directory.join("console.log")
}

fn disk(directory: &Path, id: u32) -> PathBuf {
    directory.join(format!("disk{id}.raw"))
}

fn option(command: &mut Command, name: &str, value: &str) {
    command.arg(name).arg(value);
}

fn socket(id: &str, listener: &TcpListener) -> Result<String> {
    let port = listener.local_addr()?.port();
    Ok(format!("socket,id={id},host=127.0.0.1,port={port}"))
}

/// A path as part of an option, where a comma has to be doubled.
fn path(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path is not UTF-8")?;
    Ok(text.replace(',', ",,"))
}

/// Adds the namespaces, 1 and on, of one private NVMe controller.
fn add_disks(
    command: &mut Command,
    chassis: Chassis,
    disks: &[Disk],
    directory: &Path,
) -> Result<()> {
    if disks.is_empty() {
        return Ok(());
    }
    let slot = chassis.slot();
    let controller = format!("nvme,id={DRIVE},serial=emulated,mdts=7{slot}");
    option(command, "-device", &controller);
    for (id, namespace) in (1..).zip(disks) {
        let file = disk(directory, id);
        let (mib, zoned) = match *namespace {
            Disk::Conventional { mib } => (mib, String::new()),
            Disk::Zoned {
                zones,
                zone_mib,
                capacity_mib,
                max_open,
                max_active,
            } => (
                zones * zone_mib,
                format!(
                    ",zoned=on,zoned.zone_size={zone_mib}M,zoned.zone_capacity={capacity_mib}M,\
                     zoned.max_open={max_open},zoned.max_active={max_active}"
                ),
            ),
        };
        File::create(&file)?.set_len(mib << 20)?;
        let drive = format!(
            "if=none,id=disk{id},format=raw,discard=unmap,file={}",
            path(&file)?
        );
        option(command, "-drive", &drive);
        let device = format!(
            "nvme-ns,drive=disk{id},bus=nvme,nsid={id},\
             logical_block_size=4096,physical_block_size=4096{zoned}"
        );
        option(command, "-device", &device);
    }
    Ok(())
}
