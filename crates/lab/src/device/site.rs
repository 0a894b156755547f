//! What a run needs of a device, and emulated drives as that.

use std::task::Waker;

use zonelab_device::{Device, DeviceInfo, Nanos};
use zonelab_host::{RealClock, Rng, VirtualClock, WaitsFor};
use zonelab_sim::{Emulated, HostCosts, Port, PortDevice, PortQueue, SharedDrive};

use super::threads::{NoPart, Part};
use super::watch::Watched;

/// A device that jobs run on, with the clock of the run.
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

    /// What a thread has of the device, if jobs have threads of their own.
    type Part: Part;

    /// Whether each job has a thread of this program: in real time. Else all of a
    /// stage are run by one reactor, and [`Self::part`] and what follows it are not
    /// called.
    const HAS_THREADS: bool;

    /// A part for a thread, with a queue pair that holds `depth` commands.
    ///
    /// # Errors
    /// The device has no such queue: a text that says so.
    fn part(&mut self, depth: u32) -> Result<Self::Part, String>;

    /// Takes a part back.
    ///
    /// # Errors
    /// The system has nothing left that it takes: a text that says so.
    fn take_back(&mut self, part: Self::Part) -> Result<(), String>;

    /// What ends a wait of the device from another thread.
    fn waker(&self) -> Waker;

    /// The clock of all threads.
    fn real_clock(&self) -> RealClock;

    /// Whether the device is gone: jobs end, and no further stage begins.
    fn is_lost(_device: &Self::Device) -> bool {
        false
    }
}

/// The queue pairs of a site.
pub type QueueOf<S> = <<S as Site>::Device as Device>::Queue;

/// An emulated drive in virtual time.
pub struct InVirtualTime {
    /// The drive.
    pub device: Emulated,
    /// What using it costs a job.
    pub costs: HostCosts,
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

    type Part = NoPart<Emulated>;
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

/// An emulated drive in real time, where the code of the host takes the time
/// that it takes.
pub struct InRealTime {
    drive: SharedDrive,
    /// Of this thread.
    device: PortDevice,
}

impl InRealTime {
    /// A drive, with a port for this thread.
    #[must_use]
    pub fn new(drive: SharedDrive) -> Self {
        let (device, _) = drive.port(1).open();
        Self { drive, device }
    }
}

impl Site for InRealTime {
    type Device = PortDevice;
    type Clock = RealClock;

    fn info(&self) -> &DeviceInfo {
        self.drive.info()
    }

    fn clock(&self, _at: Nanos) -> RealClock {
        self.real_clock()
    }

    fn open_queue(&mut self, depth: u32, _rng: Rng) -> Result<QueueOf<Self>, String> {
        let (device, queue) = self.drive.port(depth).open();
        self.device = device;
        Ok(queue)
    }

    fn device(&mut self) -> &mut PortDevice {
        &mut self.device
    }

    type Part = Port;
    const HAS_THREADS: bool = true;

    fn part(&mut self, depth: u32) -> Result<Port, String> {
        Ok(self.drive.port(depth))
    }

    fn take_back(&mut self, _part: Port) -> Result<(), String> {
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.device.waker()
    }

    fn real_clock(&self) -> RealClock {
        RealClock::sharing(self.drive.clock())
    }
}

impl Part for Port {
    type Device = PortDevice;

    fn open(self) -> Result<(PortDevice, PortQueue), String> {
        Ok(Port::open(self))
    }

    fn waker(device: &PortDevice) -> Waker {
        device.waker()
    }

    fn is_lost(_device: &PortDevice) -> bool {
        false
    }

    /// The drive has as many as there are threads.
    fn close(_device: PortDevice) -> Option<Self> {
        None
    }
}
