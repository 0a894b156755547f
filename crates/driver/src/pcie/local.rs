//! A controller of this machine among the other transports, whichever driver of the kernel
//! has handed it over: `pcie://0000:01:00.0`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Monotonic, NamespaceId, Nanos, QueueId, QueuePair,
    Rejected, Tag,
};
use zonelab_nvme::queue::SubmissionEntry;

use super::bus::{DmaError, DmaMemory, Function, Registers};
use super::dma::{DmaRegion, PAGE_BYTES};
use super::interrupt::Interrupt;
use super::pci::{HandoverError, PciAddress, PciBus, Reach};
use super::uio::{HUGE_PAGE_BYTES, UioFunction};
use super::vfio::VfioFunction;
use super::{PcieController, PcieError, PcieOptions, RecoveringController, RecoveringQueue};
use crate::error::DriverError;
use crate::identity::Identity;
use crate::socket::Reply;
use crate::tcp::Transfer;
use crate::transport::{Announcement, Controller, IoQueue};
use crate::url::PcieAddress;

/// Most entries of a queue without an IOMMU: the lists of PRPs, a page for each command, are
/// in one piece, which is a huge page at most.
const MAX_ENTRIES_WITHOUT_IOMMU: u32 = (HUGE_PAGE_BYTES / PAGE_BYTES) as u32;

/// How often it is asked whether the device is still there, and what queues that other
/// threads drive want of the controller.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);
/// The same while the controller is being reset.
const LOOK_FOR_QUIET_EVERY: Nanos = Nanos::from_ms(1);

/// How a controller of this machine is to be used.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Where it is.
    pub address: PcieAddress,
    /// How it is used.
    pub pcie: PcieOptions,
    /// Somebody has accepted that the drive can reach all memory of the machine: it may be
    /// one without an IOMMU.
    pub is_unsafe_dma_allowed: bool,
}

impl LocalOptions {
    /// The defaults of [`PcieOptions`], and as many queues as there are threads to be
    /// expected.
    #[must_use]
    pub fn new(address: PcieAddress) -> Self {
        let pcie = PcieOptions {
            queues: 64,
            has_interrupts: address.has_interrupts,
            has_sgls: address.has_sgls,
            ..PcieOptions::default()
        };
        Self {
            address,
            pcie,
            is_unsafe_dma_allowed: false,
        }
    }
}

/// A PCI function that a driver of the kernel has handed to this program.
#[derive(Clone, Debug)]
pub enum LocalFunction {
    /// Behind an IOMMU.
    Vfio(VfioFunction),
    /// Without one.
    Uio(UioFunction),
}

/// The same call of either.
macro_rules! either {
    ($self:expr, $it:ident => $call:expr) => {
        match $self {
            Self::Vfio($it) => $call,
            Self::Uio($it) => $call,
        }
    };
}

impl LocalFunction {
    /// Takes a function from whichever driver has it for programs. `clock` is that of the
    /// run.
    ///
    /// # Errors
    /// No such driver has it, or as of [`VfioFunction::open`] and [`UioFunction::open`].
    pub fn open(
        address: PciAddress,
        clock: Monotonic,
        is_unsafe_dma_allowed: bool,
    ) -> Result<Self, HandoverError> {
        let bus = PciBus::default();
        bus.check(address)?;
        let driver = bus.driver(address);
        match Reach::of(driver.as_deref()) {
            Some(Reach::Vfio) => VfioFunction::open(address, clock).map(Self::Vfio),
            Some(Reach::Uio) => {
                UioFunction::open(address, clock, is_unsafe_dma_allowed).map(Self::Uio)
            }
            None => Err(HandoverError::NotBound { address, driver }),
        }
    }

    /// Whether the host has asked for the device back, or has given it to another driver.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        either!(self, it => it.is_asked_for())
    }

    /// What becomes readable when the host asks for the device, where it does.
    fn requests(&self) -> BorrowedFd<'_> {
        either!(self, it => it.requests())
    }
}

impl Registers for LocalFunction {
    fn bar_bytes(&self) -> u64 {
        either!(self, it => it.bar_bytes())
    }

    #[inline]
    fn read32(&self, offset: u64) -> u32 {
        either!(self, it => it.read32(offset))
    }

    #[inline]
    fn write32(&self, offset: u64, value: u32) {
        either!(self, it => it.write32(offset, value));
    }
}

impl DmaMemory for LocalFunction {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        either!(self, it => it.allocate(bytes))
    }
}

impl Function for LocalFunction {
    fn let_access_memory(&self) -> io::Result<()> {
        either!(self, it => it.let_access_memory())
    }

    fn now(&self) -> Nanos {
        either!(self, it => it.now())
    }

    fn interrupt_vectors(&self) -> u16 {
        either!(self, it => it.interrupt_vectors())
    }

    fn connect_interrupts(&self, vectors: &[Option<Interrupt>]) -> io::Result<()> {
        either!(self, it => it.connect_interrupts(vectors))
    }

    fn pause(&self, span: Nanos) {
        either!(self, it => it.pause(span));
    }
}

/// An NVMe controller that this program drives by itself.
#[derive(Debug)]
pub struct LocalController {
    controller: RecoveringController<LocalFunction>,
    clock: Monotonic,
    nsid: Option<u32>,
    look_at: Nanos,
}

impl LocalController {
    /// Takes a controller that was bound to a driver for programs, starts it, and asks it
    /// what it is.
    ///
    /// # Errors
    /// It is not there, not handed over, or not what it should be.
    pub fn connect(options: LocalOptions) -> Result<Self, DriverError> {
        let clock = Monotonic::new();
        let LocalOptions {
            address,
            mut pcie,
            is_unsafe_dma_allowed,
        } = options;
        let function = LocalFunction::open(address.function, clock, is_unsafe_dma_allowed)?;
        if matches!(function, LocalFunction::Uio(_)) {
            pcie.queue_entries = pcie.queue_entries.min(MAX_ENTRIES_WITHOUT_IOMMU);
        }
        let controller = PcieController::connect(function, pcie)?;
        Ok(Self {
            controller: RecoveringController::new(controller),
            clock,
            nsid: address.nsid,
            look_at: Nanos::ZERO,
        })
    }

    /// The namespace that its address names.
    #[must_use]
    pub const fn nsid(&self) -> Option<u32> {
        self.nsid
    }

    /// Queues that are opened from now on are for this namespace alone.
    pub fn confine(&mut self, nsid: NamespaceId) {
        self.controller.get_mut().confine(nsid);
    }
}

impl Controller for LocalController {
    type Queue = LocalQueue;

    fn info(&self) -> &Arc<DeviceInfo> {
        self.controller.get().info()
    }

    fn identity(&self) -> &Identity {
        self.controller.get().identity()
    }

    fn clock(&self) -> Monotonic {
        self.clock
    }

    fn granted_queues(&self) -> u16 {
        self.controller.get().granted_queues()
    }

    fn open_queue(&mut self) -> Result<LocalQueue, DriverError> {
        let queue = self.controller.open_queue()?;
        let function = self.controller.get().function();
        Ok(LocalQueue {
            requests: function.requests().try_clone_to_owned()?,
            function: function.clone(),
            queue,
            error: None,
            look_at: Nanos::ZERO,
        })
    }

    fn admin(
        &mut self,
        _: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        self.controller.get_mut().admin(entry, transfer)
    }

    fn resets(&self) -> u64 {
        self.controller.resets()
    }

    /// Looks at the admin queue, whether the device is there and ours, and what its queues
    /// want.
    fn keep_alive(&mut self) -> Result<(), DriverError> {
        if self.controller.get().function().is_asked_for() {
            self.controller.abandon();
            return Err(PcieError::AskedFor.into());
        }
        let now = self.clock.now();
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now.saturating_add(LOOK_EVERY);
        }
        self.controller.tend(is_due)?;
        if self.controller.is_stopped() {
            self.look_at = now.saturating_add(LOOK_FOR_QUIET_EVERY);
        }
        Ok(())
    }

    fn next_keep_alive(&self) -> Nanos {
        self.look_at
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.controller.get().function().requests())
    }

    fn disconnect(self) -> Result<(), DriverError> {
        self.controller.shut_down()
    }
}

/// An I/O queue of such a controller. It is polled, or announced by interrupts if
/// [`PcieOptions::has_interrupts`] was set.
///
/// It takes part in resets of the controller, and ends with a device that is gone or that
/// the host wants back: what is in flight completes with
/// [`Status::HOST_PATHING_ERROR`](zonelab_nvme::Status::HOST_PATHING_ERROR) then.
#[derive(Debug)]
pub struct LocalQueue {
    queue: RecoveringQueue<LocalFunction>,
    function: LocalFunction,
    /// A descriptor of its own for what the function signals.
    requests: OwnedFd,
    error: Option<DriverError>,
    look_at: Nanos,
}

impl LocalQueue {
    /// Why the queue cannot go on, if it cannot.
    fn trouble(&mut self) -> Option<PcieError> {
        if self.queue.has_ended() {
            return Some(PcieError::Gone);
        }
        let now = self.queue.get().last_look();
        if now < self.look_at {
            return None;
        }
        self.look_at = now.saturating_add(LOOK_EVERY);
        if self.function.is_asked_for() {
            return Some(PcieError::AskedFor);
        }
        self.function.is_gone().then_some(PcieError::Gone)
    }

    fn end(&mut self, error: PcieError) {
        if self.error.is_none() {
            self.error = Some(error.into());
            self.queue.end();
        }
    }
}

impl QueuePair for LocalQueue {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        self.queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let found = self.queue.poll(done);
        // What completes shows that the device is there.
        if self.error.is_some() || (found > 0 && !self.queue.has_ended()) {
            return found;
        }
        match self.trouble() {
            None => found,
            Some(error) => {
                self.end(error);
                found + self.queue.poll(done)
            }
        }
    }
}

impl IoQueue for LocalQueue {
    fn id(&self) -> QueueId {
        self.queue.get().id()
    }

    fn depth(&self) -> u16 {
        self.queue.get().depth()
    }

    fn error(&self) -> Option<&DriverError> {
        self.error.as_ref()
    }

    fn take_error(&mut self) -> Option<DriverError> {
        // It takes no commands any more, whoever has the reason.
        self.error
            .as_mut()
            .map(|error| core::mem::replace(error, PcieError::Gone.into()))
    }

    fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        Ok(self.queue.passthrough(entry, transfer)?)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.queue.next_deadline()
    }

    fn has_output(&self) -> bool {
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self.queue.get().interrupt() {
            Some(interrupt) => interrupt.as_fd(),
            None => self.requests.as_fd(),
        }
    }

    fn announcement(&self) -> Announcement {
        match self.queue.get().interrupt() {
            Some(_) => Announcement::Interrupt,
            None => Announcement::Polled,
        }
    }

    fn abandon(&mut self) {
        self.end(PcieError::Gone);
    }
}
