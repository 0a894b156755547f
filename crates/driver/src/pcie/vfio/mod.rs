//! PCI functions by VFIO: the kernel hands a device to this program, and an IOMMU lets
//! the device reach only the memory that was mapped for it.

mod ioctl;
mod memory;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use zonelab_device::{Monotonic, Nanos};

use super::bus::{DmaError, DmaMemory, Function, Registers};
use super::dma::DmaRegion;
use super::interrupt::Interrupt;
use super::mmio::MappedBar;
use super::pci::{HandoverError, PciAddress, PciBus, VFIO_DRIVER};
use crate::clock::time_limit;
use memory::AddressSpace;

/// The command register in configuration space (PCI), and its bits: the function answers
/// to accesses of memory, and makes some.
const COMMAND: u64 = 4;
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;

/// An NVMe controller that VFIO has handed to this program.
///
/// Copies share it. When the last one is gone, and all memory that was allocated for it,
/// the device is the kernel's again, which resets it.
#[derive(Clone, Debug)]
pub struct VfioFunction {
    bar: MappedBar,
    space: Arc<AddressSpace>,
    device: Arc<Device>,
    clock: Monotonic,
}

/// The device itself.
#[derive(Debug)]
struct Device {
    file: File,
    config: ioctl::Region,
    /// Readable when the host wants the device back.
    requests: OwnedFd,
}

impl VfioFunction {
    /// Takes a function that is bound to `vfio-pci`. `clock` is that of the run.
    ///
    /// # Errors
    /// [`HandoverError`], with what can be done about it.
    pub fn open(address: PciAddress, clock: Monotonic) -> Result<Self, HandoverError> {
        let bus = PciBus::default();
        bus.check(address)?;
        let driver = bus.driver(address);
        if driver.as_deref() != Some(VFIO_DRIVER) {
            return Err(HandoverError::NotBound { address, driver });
        }
        let Some(group) = bus.group(address) else {
            return Err(HandoverError::NoIommu { address });
        };
        let call = |what| {
            move |source: Errno| HandoverError::Call {
                what,
                address,
                source: source.into(),
            }
        };
        let container = open("/dev/vfio/vfio")?;
        check_interface(&container).map_err(call("looking at VFIO"))??;
        let group = open(&format!("/dev/vfio/{group}"))?;
        if !ioctl::is_viable(&group).map_err(call("state of the IOMMU group"))? {
            let others = bus.neighbours(address);
            return Err(HandoverError::GroupInUse { address, others });
        }
        let joined = ioctl::set_container(&group, container.as_raw_fd());
        joined.map_err(call("use of the IOMMU group"))?;
        let chosen = ioctl::set_iommu(&container, ioctl::TYPE1V2);
        chosen.map_err(call("use of the IOMMU"))?;
        let device = ioctl::device(&group, &address.to_string()).map_err(call("opening"))?;
        let device = Device::new(device).map_err(call("setting up"))?;
        let bar = ioctl::region(&device.file, ioctl::BAR0).map_err(call("BAR 0"))?;
        if !bar.can_be_mapped || bar.bytes == 0 {
            return Err(HandoverError::Unsupported(
                "does not map BAR 0 of the device",
            ));
        }
        let bar = memory::registers(&device.file, bar).map_err(call("mapping BAR 0"))?;
        let space = AddressSpace::new(container.into(), group.into());
        let space = Arc::new(space.map_err(call("addresses of the IOMMU"))?);
        Ok(Self {
            bar,
            space,
            device: Arc::new(device),
            clock,
        })
    }

    /// Whether the host has asked for the device back: it is about to be removed, or to be
    /// bound to another driver, which waits until this program has let it go.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.device.is_asked_for(Nanos::ZERO)
    }

    /// What becomes readable when the host asks for the device.
    pub(super) fn requests(&self) -> BorrowedFd<'_> {
        self.device.requests.as_fd()
    }
}

fn open(path: &str) -> Result<File, HandoverError> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|source| HandoverError::Open {
        path: path.to_owned(),
        source,
    })
}

/// Whether VFIO is the one that this program knows.
fn check_interface(container: &File) -> Result<Result<(), HandoverError>, Errno> {
    if ioctl::api_version(container)? != ioctl::API_VERSION {
        return Ok(Err(HandoverError::Unsupported(
            "has another version than 0",
        )));
    }
    Ok(match ioctl::has_extension(container, ioctl::TYPE1V2)? {
        true => Ok(()),
        false => Err(HandoverError::Unsupported(
            "knows no IOMMU of its type 1, version 2; `modprobe vfio_iommu_type1` may help",
        )),
    })
}

impl Device {
    /// Sets a device up, as far as that its registers can be accessed. It may not access
    /// memory yet.
    fn new(device: OwnedFd) -> Result<Self, Errno> {
        if !ioctl::is_pci(&device)? {
            return Err(Errno::NODEV);
        }
        // Registers as after power-on. A function that cannot be reset alone is disabled
        // by the driver before anything else.
        let _ = ioctl::reset(&device);
        let config = ioctl::region(&device, ioctl::CONFIG_SPACE)?;
        let requests = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Kernels can be older than this signal.
        let _older = ioctl::watch_requests(&device, requests.as_raw_fd());
        let device = Self {
            file: device.into(),
            config,
            requests,
        };
        let command = device.command()? & !BUS_MASTER;
        device.set_command(command | MEMORY_SPACE)?;
        Ok(device)
    }

    fn command(&self) -> Result<u16, Errno> {
        let mut bytes = [0; 2];
        let at = self.config.offset + COMMAND;
        self.file.read_exact_at(&mut bytes, at).map_err(errno)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn set_command(&self, command: u16) -> Result<(), Errno> {
        let at = self.config.offset + COMMAND;
        let written = self.file.write_all_at(&command.to_le_bytes(), at);
        written.map_err(errno)
    }

    /// Whether the host asks for the device, now or within `span`.
    fn is_asked_for(&self, span: Nanos) -> bool {
        let mut watched = [PollFd::new(&self.requests, PollFlags::IN)];
        // Whatever ended the wait, the signal stays.
        let polled = rustix::event::poll(&mut watched, Some(&time_limit(span)));
        polled.is_ok() && watched.iter().any(|of| !of.revents().is_empty())
    }
}

impl Drop for Device {
    /// The device no longer accesses memory, whatever it was doing.
    fn drop(&mut self) {
        if let Ok(command) = self.command() {
            // Nothing is left to be done if it fails: the kernel resets it in any case.
            let _ = self.set_command(command & !BUS_MASTER);
        }
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Registers for VfioFunction {
    fn bar_bytes(&self) -> u64 {
        self.bar.bar_bytes()
    }

    #[inline]
    fn read32(&self, offset: u64) -> u32 {
        self.bar.read32(offset)
    }

    #[inline]
    fn write32(&self, offset: u64, value: u32) {
        self.bar.write32(offset, value);
    }
}

impl DmaMemory for VfioFunction {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        self.space.allocate(bytes)
    }
}

impl Function for VfioFunction {
    /// The memory that is mapped for it, that is.
    fn let_access_memory(&self) -> io::Result<()> {
        let command = self.device.command()?;
        Ok(self.device.set_command(command | BUS_MASTER)?)
    }

    fn interrupt_vectors(&self) -> u16 {
        let vectors = ioctl::vectors(&self.device.file).unwrap_or(0);
        u16::try_from(vectors).unwrap_or(u16::MAX)
    }

    fn connect_interrupts(&self, vectors: &[Option<Interrupt>]) -> io::Result<()> {
        let eventfds: Vec<_> = vectors
            .iter()
            .map(|of| of.as_ref().map(AsFd::as_fd))
            .collect();
        Ok(ioctl::connect_vectors(&self.device.file, &eventfds)?)
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn pause(&self, span: Nanos) {
        self.device.is_asked_for(span);
    }
}
