//! Emulated drives in virtual time, as the jobs of experiments reach them: directly, or
//! through the driver for PCIe.

use std::rc::Rc;

use zonelab_device::{Device, DeviceInfo, Modelled, Nanos, QueueId};
use zonelab_host::Rng;
use zonelab_host::block::MergeCount;
use zonelab_sim::{Emulated, HostCosts};

use super::owner::Owner;

/// An emulated drive that jobs reach in one way or another.
pub trait Reached {
    /// What the reactor drives.
    type Device: Modelled;
    /// Who owns the drive.
    type Owner: Owner + Clone + 'static;

    /// What jobs plan with.
    fn info(&self) -> Rc<DeviceInfo>;

    /// Who owns the drive.
    fn owner(&self) -> &Self::Owner;

    /// A queue pair that holds `depth` commands, for a job whose host code costs `costs`;
    /// `rng` is for its jitter.
    ///
    /// # Errors
    /// There is no such queue: a text that says so.
    fn open_queue(
        &mut self,
        depth: u32,
        costs: HostCosts,
        rng: Rng,
    ) -> Result<<Self::Device as Device>::Queue, String>;

    /// What the reactor drives.
    fn device(&mut self) -> &mut Self::Device;

    /// Requests of a queue that a block layer merged.
    fn merges(&self, queue: QueueId) -> MergeCount;

    /// What the flash translation layer has done so far, if jobs go through it.
    fn ftl(&self) -> Option<FtlWork> {
        None
    }

    /// The time at which jobs can begin: that of the device, if opening queues takes time.
    fn ready_at(&self) -> Nanos;

    /// Adds the names of those who open queues in the next phase, in their order, to the
    /// names of queues as the drive numbers them.
    fn name_queues(names: &mut Vec<String>, phase: Vec<String>) {
        names.extend(phase);
    }
}

/// What a flash translation layer has done.
#[derive(Clone, Copy, Debug)]
pub struct FtlWork {
    /// Its counters.
    pub done: zonelab_ftl::Metrics,
    /// Size of a block.
    pub block_bytes: u32,
}

impl FtlWork {
    /// What was done since `earlier`.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            done: self.done.since(&earlier.done),
            block_bytes: self.block_bytes,
        }
    }
}

impl Reached for Emulated {
    type Device = Self;
    type Owner = Self;

    fn info(&self) -> Rc<DeviceInfo> {
        Rc::new(Self::info(self).clone())
    }

    fn owner(&self) -> &Self {
        self
    }

    fn open_queue(
        &mut self,
        depth: u32,
        costs: HostCosts,
        rng: Rng,
    ) -> Result<<Self as Device>::Queue, String> {
        Ok(Self::open_queue(self, depth, costs, rng))
    }

    fn device(&mut self) -> &mut Self {
        self
    }

    fn merges(&self, queue: QueueId) -> MergeCount {
        Self::merges(self, queue)
    }

    fn ready_at(&self) -> Nanos {
        Nanos::ZERO
    }
}
