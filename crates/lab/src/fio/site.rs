//! What a run of job files needs of a device, and emulated drives as that.

use zonelab_device::{Device, DeviceInfo, Monotonic, Nanos};
use zonelab_host::{RealClock, Rng, VirtualClock, WaitsFor};
use zonelab_sim::{Emulated, HostCosts};

use super::watch::Watched;

/// A device that job files run on, with the clock of the run.
///
/// Everything else that jobs do is the same on all devices. What a device is
/// before the first job (what its zones hold) is the [`ZoneTable`] that the run
/// is given.
///
/// [`ZoneTable`]: zonelab_host::workload::zone_table::ZoneTable
pub trait Site {
    /// The device.
    type Device: Device + 'static;
    /// The clock: [`VirtualClock`] for models, or [`RealClock`].
    type Clock: for<'a> WaitsFor<Watched<'a, Self::Device>>;

    /// What the device is.
    fn info(&self) -> &DeviceInfo;

    /// The clock. Virtual time goes on from `at`, where the run has got to; real
    /// time is what it is.
    fn clock(&self, at: Nanos) -> Self::Clock;

    /// A queue pair that holds `depth` commands; `rng` is for what is modelled
    /// of the host.
    ///
    /// # Errors
    /// The device has no such queue: a text that says so.
    fn open_queue(&mut self, depth: u32, rng: Rng) -> Result<QueueOf<Self>, String>;

    /// What the reactor drives.
    fn device(&mut self) -> &mut Self::Device;

    /// Whether the device is gone: jobs end, and no further stage begins.
    fn is_lost(_device: &Self::Device) -> bool {
        false
    }
}

/// The queue pairs of a site.
pub type QueueOf<S> = <<S as Site>::Device as Device>::Queue;

/// An emulated drive in virtual time.
pub(super) struct InVirtualTime {
    pub(super) device: Emulated,
    pub(super) costs: HostCosts,
}

impl Site for InVirtualTime {
    type Device = Emulated;
    type Clock = VirtualClock;

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn clock(&self, at: Nanos) -> VirtualClock {
        VirtualClock::starting_at(at)
    }

    fn open_queue(&mut self, depth: u32, rng: Rng) -> Result<QueueOf<Self>, String> {
        Ok(self.device.open_queue(depth, self.costs, rng))
    }

    fn device(&mut self) -> &mut Emulated {
        &mut self.device
    }
}

/// An emulated drive in real time, where the code of the host takes the time
/// that it takes.
pub(super) struct InRealTime {
    pub(super) device: Emulated,
    pub(super) clock: Monotonic,
}

impl Site for InRealTime {
    type Device = Emulated;
    type Clock = RealClock;

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn clock(&self, _at: Nanos) -> RealClock {
        RealClock::sharing(self.clock)
    }

    fn open_queue(&mut self, depth: u32, rng: Rng) -> Result<QueueOf<Self>, String> {
        Ok(self.device.open_queue(depth, HostCosts::FREE, rng))
    }

    fn device(&mut self) -> &mut Emulated {
        &mut self.device
    }
}
