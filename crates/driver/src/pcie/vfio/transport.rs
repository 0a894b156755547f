//! A controller behind VFIO among the other transports: `pcie://0000:01:00.0`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Monotonic, Nanos, QueueId, QueuePair, Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::queue::SubmissionEntry;

use super::VfioFunction;
use crate::error::DriverError;
use crate::identity::Identity;
use crate::pcie::{PcieController, PcieError, PcieOptions, PcieQueue};
use crate::socket::Reply;
use crate::tcp::Transfer;
use crate::transport::{Controller, IoQueue};
use crate::url::PcieAddress;

/// How often it is asked whether the device is still there.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);

/// How a controller behind VFIO is to be used.
#[derive(Debug, Clone)]
pub struct VfioOptions {
    /// Where it is.
    pub address: PcieAddress,
    /// How it is used.
    pub pcie: PcieOptions,
}

impl VfioOptions {
    /// The defaults of [`PcieOptions`], and as many queues as there are threads to be
    /// expected.
    #[must_use]
    pub fn new(address: PcieAddress) -> Self {
        let pcie = PcieOptions {
            queues: 64,
            ..PcieOptions::default()
        };
        Self { address, pcie }
    }
}

/// An NVMe controller that this program drives by itself.
#[derive(Debug)]
pub struct VfioController {
    controller: PcieController<VfioFunction>,
    clock: Monotonic,
    nsid: u32,
    look_at: Nanos,
}

impl VfioController {
    /// Takes a controller that was bound to `vfio-pci`, starts it, and asks it what it is.
    ///
    /// # Errors
    /// It is not there, not handed over, or not what it should be.
    pub fn connect(options: VfioOptions) -> Result<Self, DriverError> {
        let clock = Monotonic::new();
        let VfioOptions { address, pcie } = options;
        let function = VfioFunction::open(address.function, clock)?;
        let controller = PcieController::connect(function, pcie)?;
        Ok(Self {
            controller,
            clock,
            nsid: address.nsid,
            look_at: Nanos::ZERO,
        })
    }

    /// The namespace that commands are for if nobody says otherwise.
    #[must_use]
    pub const fn nsid(&self) -> u32 {
        self.nsid
    }
}

impl Controller for VfioController {
    type Queue = VfioQueue;

    fn info(&self) -> &Arc<DeviceInfo> {
        self.controller.info()
    }

    fn identity(&self) -> &Identity {
        self.controller.identity()
    }

    fn clock(&self) -> Monotonic {
        self.clock
    }

    fn granted_queues(&self) -> u16 {
        self.controller.granted_queues()
    }

    fn open_queue(&mut self) -> Result<VfioQueue, DriverError> {
        let queue = self.controller.open_queue()?;
        let function = self.controller.function();
        Ok(VfioQueue {
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
        self.controller.admin(entry, transfer)
    }

    /// Looks at the admin queue, and whether the device is there and ours.
    fn keep_alive(&mut self) -> Result<(), DriverError> {
        self.look_at = self.clock.now().saturating_add(LOOK_EVERY);
        if self.controller.function().is_asked_for() {
            return Err(PcieError::AskedFor.into());
        }
        self.controller.pump()?;
        self.controller.check()
    }

    fn next_keep_alive(&self) -> Nanos {
        self.look_at
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.controller.function().requests())
    }

    fn disconnect(self) -> Result<(), DriverError> {
        self.controller.shut_down()
    }
}

/// An I/O queue of such a controller. It is polled.
///
/// A command that is not over in time ends the queue, and so does a device that is gone
/// or that the host wants back: what is in flight completes with
/// [`Status::HOST_PATHING_ERROR`].
#[derive(Debug)]
pub struct VfioQueue {
    queue: PcieQueue<VfioFunction>,
    function: VfioFunction,
    /// A descriptor of its own for what the function signals.
    requests: OwnedFd,
    error: Option<DriverError>,
    look_at: Nanos,
}

impl VfioQueue {
    /// Why the queue cannot go on at `now`, if it cannot.
    fn trouble(&mut self, now: Nanos) -> Option<PcieError> {
        if self.queue.error().is_some() {
            return self.queue.take_error();
        }
        if let Some(late) = self.queue.late_error(now) {
            return Some(late);
        }
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
            self.queue.fail(PcieError::Gone);
            self.queue.give_up(Status::HOST_PATHING_ERROR);
        }
    }
}

impl QueuePair for VfioQueue {
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
        if found > 0 || self.error.is_some() {
            return found;
        }
        let now = self.queue.now();
        match self.trouble(now) {
            None => 0,
            Some(error) => {
                self.end(error);
                self.queue.poll(done)
            }
        }
    }
}

impl IoQueue for VfioQueue {
    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn depth(&self) -> u16 {
        self.queue.depth()
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
        self.requests.as_fd()
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn abandon(&mut self) {
        self.end(PcieError::Gone);
    }
}
