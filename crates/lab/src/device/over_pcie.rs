//! An emulated drive that jobs reach through the driver for PCIe, in virtual time.

use std::rc::Rc;
use std::task::Waker;

use zonelab_device::{DeviceInfo, Nanos, QueueId};
use zonelab_driver::pcie::{Function, PcieController, PcieDevice, PcieDeviceQueue, PcieOptions};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_host::block::MergeCount;
use zonelab_host::{RealClock, Rng, VirtualClock};
use zonelab_sim::{HostCosts, Hosted, HostedQueue};
use zonelab_ssd::faults::FaultyDrive;

use super::reached::Reached;
use super::site::Site;
use super::threads::NoPart;

/// I/O queues of the controller, and of one run at most: one for each thread.
pub(crate) const QUEUES: u16 = 64;
/// Commands that a queue holds.
pub(crate) const QUEUE_DEPTH: u16 = 1024;
/// Entries of a queue, of which one is always free.
const QUEUE_ENTRIES: u16 = QUEUE_DEPTH + 1;

/// Longest time of one command: that of the slowest operation that a model has, with much
/// to spare. (A finish on the emulator of ConfZNS++ takes 48.6 s, and the driver gives up
/// commands of real drives sooner.)
const COMMAND_TIMEOUT: Nanos = Nanos::from_secs(3600);

/// The queue pairs that jobs have.
type Queue = HostedQueue<PcieDeviceQueue<Endpoint>>;

/// A drive behind a controller in memory, and the driver's device on it. The rings take
/// no time of the model: commands reach the drive when their doorbell is rung. What the
/// host costs besides is modelled in front of the driver, as it is for a drive that jobs
/// reach directly.
pub struct OverPcie {
    endpoint: Endpoint,
    device: Hosted<PcieDevice<Endpoint>>,
    /// Of queues that do not say otherwise.
    costs: HostCosts,
}

/// A controller in memory on a drive.
///
/// # Errors
/// The drive has something that the controller cannot describe: a text that says so.
pub fn endpoint_of(drive: FaultyDrive) -> Result<Endpoint, String> {
    let settings = EndpointSettings {
        io_queues: QUEUES,
        queue_entries: QUEUE_ENTRIES,
        max_transfer_bytes: drive.drive().info().max_transfer_bytes.clamp(4096, 1 << 24),
        ..EndpointSettings::default()
    };
    Endpoint::new(drive, settings).map_err(|error| error.to_string())
}

impl OverPcie {
    /// Starts the controller.
    ///
    /// # Errors
    /// It does not start: a text that says so.
    pub fn new(endpoint: &Endpoint, costs: HostCosts) -> Result<Self, String> {
        let options = PcieOptions {
            command_timeout: COMMAND_TIMEOUT,
            queues: QUEUES,
            queue_entries: QUEUE_ENTRIES.into(),
            max_transfer_bytes: 1 << 24,
            ..PcieOptions::default()
        };
        let controller = PcieController::connect(endpoint.clone(), options);
        let controller = controller.map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint: endpoint.clone(),
            device: Hosted::new(PcieDevice::new(controller)),
            costs,
        })
    }

    fn queue(&mut self, depth: u32, costs: HostCosts, rng: Rng) -> Result<Queue, String> {
        let opened = self.device.inner_mut().open_queue();
        let queue = opened.map_err(|error| error.to_string())?;
        let most = u32::from(queue.depth());
        match depth <= most {
            true => Ok(self.device.queue(queue, depth, costs, rng)),
            false => Err(format!(
                "a job has {depth} operations in flight, and queues over PCIe hold {most}"
            )),
        }
    }
}

impl Reached for OverPcie {
    type Device = Hosted<PcieDevice<Endpoint>>;
    type Owner = Endpoint;

    fn info(&self) -> Rc<DeviceInfo> {
        Rc::new(DeviceInfo::clone(self.device.inner().info()))
    }

    fn owner(&self) -> &Endpoint {
        &self.endpoint
    }

    fn open_queue(&mut self, depth: u32, costs: HostCosts, rng: Rng) -> Result<Queue, String> {
        self.queue(depth, costs, rng)
    }

    fn device(&mut self) -> &mut Self::Device {
        &mut self.device
    }

    /// There is no block layer in front of it.
    fn merges(&self, _queue: QueueId) -> MergeCount {
        MergeCount::default()
    }

    /// Starting the controller has taken some time.
    fn ready_at(&self) -> Nanos {
        self.endpoint.now()
    }

    /// Queue 0 is the controller's own, and a phase has the queues of the one before.
    fn name_queues(names: &mut Vec<String>, phase: Vec<String>) {
        if names.is_empty() {
            names.push("admin queue".to_owned());
        }
        for (queue, name) in (1..).zip(phase) {
            match names.get_mut(queue) {
                None => names.push(name),
                Some(known) if *known == name => {}
                Some(known) => *known = format!("{known}, then {name}"),
            }
        }
    }
}

impl Site for OverPcie {
    type Device = Hosted<PcieDevice<Endpoint>>;
    type Clock = VirtualClock;

    fn info(&self) -> &DeviceInfo {
        self.device.inner().info()
    }

    /// Starting the controller has taken some time.
    fn clock(&self, at: Nanos) -> VirtualClock {
        VirtualClock::starting_at(at.max(self.endpoint.now()))
    }

    fn open_queue(&mut self, depth: u32, rng: Rng) -> Result<Queue, String> {
        self.queue(depth, self.costs, rng)
    }

    fn device(&mut self) -> &mut Self::Device {
        &mut self.device
    }

    fn is_lost(device: &Self::Device) -> bool {
        device.inner().is_lost()
    }

    type Part = NoPart<Hosted<PcieDevice<Endpoint>>>;
    const HAS_THREADS: bool = false;

    fn part(&mut self, _depth: u32) -> Result<Self::Part, String> {
        Err("virtual time has no threads".to_owned())
    }

    fn take_back(&mut self, _part: Self::Part) -> Result<(), String> {
        Ok(())
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }

    fn real_clock(&self) -> RealClock {
        RealClock::new()
    }
}
