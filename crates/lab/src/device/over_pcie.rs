//! An emulated drive that jobs reach through the driver for PCIe, in virtual time.

use std::task::Waker;

use zonelab_device::{DeviceInfo, Nanos};
use zonelab_driver::pcie::{Function, PcieController, PcieDevice, PcieDeviceQueue, PcieOptions};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_host::{RealClock, Rng, VirtualClock};
use zonelab_ssd::Drive;
use zonelab_ssd::faults::FaultyDrive;

use super::site::Site;
use super::threads::NoPart;

/// I/O queues of the controller, and of one run at most: one for each thread.
const QUEUES: u16 = 64;
/// Entries of a queue: 1023 commands in flight.
const QUEUE_ENTRIES: u16 = 1024;

/// A drive behind a controller in memory, and the driver's device on it. The rings take
/// no time of the model: commands reach the drive when their doorbell is rung.
pub(crate) struct OverPcie {
    endpoint: Endpoint,
    device: PcieDevice<Endpoint>,
}

/// A controller in memory on a drive.
///
/// # Errors
/// The drive has something that the controller cannot describe: a text that says so.
pub(crate) fn endpoint_of(drive: FaultyDrive) -> Result<Endpoint, String> {
    let settings = EndpointSettings {
        io_queues: QUEUES,
        queue_entries: QUEUE_ENTRIES,
        max_transfer_bytes: drive.info().max_transfer_bytes.clamp(4096, 1 << 24),
        ..EndpointSettings::default()
    };
    Endpoint::new(drive, settings).map_err(|error| error.to_string())
}

impl OverPcie {
    /// Starts the controller.
    ///
    /// # Errors
    /// It does not start: a text that says so.
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, String> {
        let options = PcieOptions {
            queues: QUEUES,
            queue_entries: QUEUE_ENTRIES.into(),
            max_transfer_bytes: 1 << 24,
            ..PcieOptions::default()
        };
        let controller = PcieController::connect(endpoint.clone(), options);
        let controller = controller.map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint: endpoint.clone(),
            device: PcieDevice::new(controller),
        })
    }
}

/// Lets `f` look at the faults of the drive, or change them.
pub(crate) fn with_faults<T>(endpoint: &Endpoint, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
    endpoint.with_subsystem(|subsystem| f(subsystem.drive_mut()))
}

/// Lets `f` look at the drive, or do something to it.
pub(crate) fn with_drive<T>(endpoint: &Endpoint, f: impl FnOnce(&mut Drive) -> T) -> T {
    with_faults(endpoint, |faulty| f(faulty.drive_mut()))
}

impl Site for OverPcie {
    type Device = PcieDevice<Endpoint>;
    type Clock = VirtualClock;

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// Starting the controller has taken some time.
    fn clock(&self, at: Nanos) -> VirtualClock {
        VirtualClock::starting_at(at.max(self.endpoint.now()))
    }

    fn open_queue(&mut self, depth: u32, _rng: Rng) -> Result<PcieDeviceQueue<Endpoint>, String> {
        let queue = self
            .device
            .open_queue()
            .map_err(|error| error.to_string())?;
        let most = u32::from(queue.depth());
        match depth <= most {
            true => Ok(queue),
            false => Err(format!(
                "a job has {depth} operations in flight, and queues over PCIe hold {most}"
            )),
        }
    }

    fn device(&mut self) -> &mut PcieDevice<Endpoint> {
        &mut self.device
    }

    fn is_lost(device: &PcieDevice<Endpoint>) -> bool {
        device.is_lost()
    }

    type Part = NoPart<PcieDevice<Endpoint>>;
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
