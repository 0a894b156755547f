//! A controller behind VFIO among the other transports: `pcie://0000:01:00.0`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Monotonic, Nanos, QueueId, QueuePair, Rejected, Tag,
};
use zonelab_nvme::queue::SubmissionEntry;

use super::VfioFunction;
use crate::error::DriverError;
use crate::identity::Identity;
use crate::pcie::{PcieController, PcieError, PcieOptions, RecoveringController, RecoveringQueue};
use crate::socket::Reply;
use crate::tcp::Transfer;
use crate::transport::{Controller, IoQueue};
use crate::url::PcieAddress;

/// How often it is asked whether the device is still there, and what queues that other
/// threads drive want of the controller.
const LOOK_EVERY: Nanos = Nanos::from_ms(100);
/// The same while the controller is being reset.
const LOOK_FOR_QUIET_EVERY: Nanos = Nanos::from_ms(1);

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
    controller: RecoveringController<VfioFunction>,
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
            controller: RecoveringController::new(controller),
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

    fn open_queue(&mut self) -> Result<VfioQueue, DriverError> {
        let queue = self.controller.open_queue()?;
        let function = self.controller.get().function();
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
        self.controller.get_mut().admin(entry, transfer)
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

/// An I/O queue of such a controller. It is polled.
///
/// It takes part in resets of the controller, and ends with a device that is gone or that
/// the host wants back: what is in flight completes with
/// [`Status::HOST_PATHING_ERROR`](zonelab_nvme::Status::HOST_PATHING_ERROR) then.
#[derive(Debug)]
pub struct VfioQueue {
    queue: RecoveringQueue<VfioFunction>,
    function: VfioFunction,
    /// A descriptor of its own for what the function signals.
    requests: OwnedFd,
    error: Option<DriverError>,
    look_at: Nanos,
}

impl VfioQueue {
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

impl IoQueue for VfioQueue {
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
        self.requests.as_fd()
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn abandon(&mut self) {
        self.end(PcieError::Gone);
    }
}
