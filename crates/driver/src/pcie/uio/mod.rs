//! PCI functions by UIO (`uio_pci_generic`): without an IOMMU, so that the device can reach
//! all memory of the machine.
//!
//! What an IOMMU would do is done by order here: the device may not access memory before its
//! controller has been disabled, and may no longer access any before the first page is given
//! back. Why it is as it is: `docs/decisions/0030-drives-without-an-iommu.md`.

mod memory;
mod pagemap;
mod removed;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::event::EventfdFlags;
use zonelab_device::{Monotonic, Nanos};

pub use memory::HugePageError;

use super::bus::{DmaError, DmaMemory, Function, Registers};
use super::dma::DmaRegion;
use super::mmio::MappedBar;
use super::pci::{HandoverError, PciAddress, PciBus, Reach, UIO_DRIVER};
use crate::clock;
use memory::HugeMemory;

/// The command register in configuration space (PCI), and its bits: the function answers
/// to accesses of memory, makes some, and does not use its interrupt pin.
const COMMAND: u64 = 4;
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;
const INTERRUPT_DISABLE: u16 = 1 << 10;
/// Of a function that is gone, all registers read as this.
const GONE: u16 = u16::MAX;

/// The longest piece of memory that the device finds in one piece: a huge page.
pub use memory::HUGE_PAGE_BYTES;

/// An NVMe controller that `uio_pci_generic` has handed to this program.
///
/// Copies share it. When the last one is gone, and all memory that was allocated for it, the
/// device may no longer access memory.
#[derive(Clone, Debug)]
pub struct UioFunction {
    bar: MappedBar,
    /// Has the device: nothing of the memory goes before that is quiet.
    memory: Arc<HugeMemory>,
    clock: Monotonic,
}

/// The device itself.
#[derive(Debug)]
pub(super) struct Device {
    bus: PciBus,
    address: PciAddress,
    config: File,
    /// The command register as it was found.
    before: u16,
    /// `/dev/uioN`, locked against other programs. When it is closed, whatever has ended the
    /// program, the kernel takes the right to access memory from the device.
    _node: File,
    /// Never readable: UIO has no way to ask for a device.
    requests: OwnedFd,
}

impl UioFunction {
    /// Takes a function that is bound to `uio_pci_generic`. `clock` is that of the run.
    /// `is_unsafe_allowed` says that somebody has accepted that the device can reach all
    /// memory.
    ///
    /// # Errors
    /// [`HandoverError`], with what can be done about it.
    pub fn open(
        address: PciAddress,
        clock: Monotonic,
        is_unsafe_allowed: bool,
    ) -> Result<Self, HandoverError> {
        let bus = PciBus::default();
        bus.check(address)?;
        let driver = bus.driver(address);
        if Reach::of(driver.as_deref()) != Some(Reach::Uio) {
            return Err(HandoverError::NotBound { address, driver });
        }
        bus.check_untranslated(address)?;
        if !is_unsafe_allowed {
            return Err(HandoverError::UnsafeDma { address });
        }
        let Some(node) = bus.hold(address)? else {
            return Err(HandoverError::NotBound { address, driver });
        };
        let bar = registers(&bus.path(address).join("resource0"))?;
        let device = Device::new(bus, address, node)?;
        let memory = HugeMemory::new(device);
        let memory = memory.map_err(|source| HandoverError::Memory { address, source })?;
        Ok(Self {
            bar,
            memory: Arc::new(memory),
            clock,
        })
    }

    /// Whether another driver has the function, or is about to: it is being removed, or was
    /// bound to it by somebody.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        !self.memory.device().is_ours()
    }

    /// Something to wait for that never comes.
    pub(super) fn requests(&self) -> BorrowedFd<'_> {
        self.memory.device().requests.as_fd()
    }
}

fn open(path: &Path) -> Result<File, HandoverError> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|source| HandoverError::Open {
        path: path.display().to_string(),
        source,
    })
}

/// BAR 0, from the file of it in `/sys`.
fn registers(path: &Path) -> Result<MappedBar, HandoverError> {
    let failed = |source: io::Error| HandoverError::Open {
        path: path.display().to_string(),
        source,
    };
    let file = open(path)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let bytes = usize::try_from(bytes).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
    removed::map_registers(&file, bytes).map_err(|errno| failed(errno.into()))
}

impl Device {
    /// Sets a device up, as far as that its registers can be accessed. It may not access
    /// memory yet.
    fn new(bus: PciBus, address: PciAddress, node: File) -> Result<Self, HandoverError> {
        let config = open(&bus.path(address).join("config"))?;
        let requests = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let requests = requests.map_err(|errno| HandoverError::Call {
            what: "setting up",
            address,
            source: errno.into(),
        })?;
        let call = |source| HandoverError::Call {
            what: "the command register",
            address,
            source,
        };
        let before = command(&config).map_err(call)?;
        let device = Self {
            bus,
            address,
            config,
            before: before & !BUS_MASTER,
            _node: node,
            requests,
        };
        let bits = device.before | MEMORY_SPACE | INTERRUPT_DISABLE;
        device.set_command(bits).map_err(call)?;
        Ok(device)
    }

    fn set_command(&self, bits: u16) -> io::Result<()> {
        self.config.write_all_at(&bits.to_le_bytes(), COMMAND)
    }

    /// Whether the driver still has the function that handed it to us.
    fn is_ours(&self) -> bool {
        self.bus.driver(self.address).as_deref() == Some(UIO_DRIVER)
    }

    /// Takes the right to access memory from the device. False: it may still have it, so
    /// that memory must stay.
    pub(super) fn quiet(&self) -> bool {
        // The driver that has it by now has seen to that: it has disabled the function, and
        // what it allows since is its own.
        if !self.is_ours() {
            return true;
        }
        let _ = self.set_command(self.before);
        // Reading it back also has all that the device has written so far arrive.
        match command(&self.config) {
            Ok(bits) => bits == GONE || bits & BUS_MASTER == 0,
            // Removed meanwhile.
            Err(_) => !self.is_ours(),
        }
    }
}

impl Drop for Device {
    /// Whoever has it next finds the command register as we did.
    fn drop(&mut self) {
        self.quiet();
    }
}

fn command(config: &File) -> io::Result<u16> {
    let mut bytes = [0; 2];
    config.read_exact_at(&mut bytes, COMMAND)?;
    Ok(u16::from_le_bytes(bytes))
}

impl Registers for UioFunction {
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

impl DmaMemory for UioFunction {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        self.memory.allocate(bytes)
    }
}

impl Function for UioFunction {
    fn let_access_memory(&self) -> io::Result<()> {
        let device = self.memory.device();
        device.set_command(device.before | MEMORY_SPACE | INTERRUPT_DISABLE | BUS_MASTER)
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn pause(&self, span: Nanos) {
        clock::sleep(self.clock, span);
    }
}
