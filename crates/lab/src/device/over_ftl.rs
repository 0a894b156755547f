//! An emulated drive that jobs reach through the flash translation layer of the host, in
//! virtual time.

use std::rc::Rc;

use zonelab_device::{Device, DeviceInfo, NamespaceId, Nanos, QueueId};
use zonelab_ftl::{FtlDevice, FtlSettings, Shape, Start};
use zonelab_host::block::MergeCount;
use zonelab_host::{Rng, VirtualClock};
use zonelab_sim::{Emulated, HostCosts};

use super::reached::{FtlWork, Reached};
use crate::experiment::FtlTemplate;

/// Commands that the queue pair of upkeep holds.
const UPKEEP_DEPTH: u32 = 256;
/// Fewest commands that a queue pair below one of the layer holds: an operation may take
/// several.
const LEAST_DEPTH: u32 = 64;

/// A drive that was just formatted, and the layer's conventional namespace on it. Each
/// queue pair of the layer lies on one of the drive, which has the costs of its job's host;
/// the one of upkeep has those of the host, on a core of its own.
pub(crate) struct OverFtl {
    drive: Emulated,
    device: FtlDevice<Emulated>,
    /// When it was formatted and mounted.
    ready_at: Nanos,
}

/// What jobs see of a drive with the layer on a namespace of it.
///
/// # Errors
/// It has no such zones, or not enough, or a setting is out of its range: a text that says
/// so.
pub(crate) fn seen_through(
    info: &DeviceInfo,
    ftl: &FtlTemplate,
    nsid: NamespaceId,
) -> Result<DeviceInfo, String> {
    let shape = Shape::new(info, &ftl.format(nsid)).map_err(|error| format!("ftl: {error}"))?;
    Ok(zonelab_ftl::device::info_of(info, &shape))
}

impl OverFtl {
    /// Formats a drive, and mounts the layer on it. Jitter of upkeep is drawn with the
    /// seed of `settings`.
    ///
    /// # Errors
    /// That cannot be done: a text that says so.
    pub(crate) fn new(
        drive: Emulated,
        ftl: &FtlTemplate,
        settings: FtlSettings,
        costs: HostCosts,
    ) -> Result<Self, String> {
        let rng = Rng::new(settings.seed, 1);
        let queue = drive.open_queue(UPKEEP_DEPTH, costs, rng);
        let start = Start::Format(ftl.format(settings.nsid));
        let clock = VirtualClock::default();
        let started = FtlDevice::start(drive.clone(), clock, queue, start, settings);
        let (device, ready_at) = started.map_err(|error| format!("ftl: {error}"))?;
        Ok(Self {
            drive,
            device,
            ready_at,
        })
    }
}

impl Reached for OverFtl {
    type Device = FtlDevice<Emulated>;
    type Owner = Emulated;

    fn info(&self) -> Rc<DeviceInfo> {
        Rc::new(self.device.info().clone())
    }

    fn owner(&self) -> &Emulated {
        &self.drive
    }

    fn open_queue(
        &mut self,
        depth: u32,
        costs: HostCosts,
        rng: Rng,
    ) -> Result<<Self::Device as Device>::Queue, String> {
        let below = self.drive.open_queue(depth.max(LEAST_DEPTH), costs, rng);
        let queue = self.device.queue(below, depth);
        queue.map_err(|error| format!("via = \"ftl\": {error}"))
    }

    fn device(&mut self) -> &mut Self::Device {
        &mut self.device
    }

    /// There is no block layer in front of it.
    fn merges(&self, _queue: QueueId) -> MergeCount {
        MergeCount::default()
    }

    fn ftl(&self) -> Option<FtlWork> {
        Some(FtlWork {
            done: self.device.metrics(),
            block_bytes: self.device.shape().block_bytes,
        })
    }

    /// Formatting has taken some time.
    fn ready_at(&self) -> Nanos {
        self.ready_at
    }

    /// Before those of jobs, the layer has opened two: for the mount, and for upkeep.
    fn name_queues(names: &mut Vec<String>, phase: Vec<String>) {
        if names.is_empty() {
            names.extend(["mount", "upkeep"].map(|name| format!("{name} of the layer")));
        }
        names.extend(phase);
    }
}
