//! Whoever owns an emulated drive that jobs run on.

#[cfg(not(target_family = "wasm"))]
use zonelab_endpoint::Endpoint;
use zonelab_sim::{Emulated, SharedDrive};
use zonelab_ssd::Drive;
use zonelab_ssd::faults::FaultyDrive;

/// Whoever owns an emulated drive that jobs run on.
pub trait Owner {
    /// Lets `f` look at the drive, or do something to it.
    fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T;
    /// Lets `f` look at the faults of the drive, or change them.
    fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T;
}

impl Owner for Emulated {
    fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T {
        Self::with_drive(self, f)
    }

    fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
        Self::with_faults(self, f)
    }
}

impl Owner for SharedDrive {
    fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T {
        Self::with_drive(self, f)
    }

    fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
        Self::with_faults(self, f)
    }
}

#[cfg(not(target_family = "wasm"))]
impl Owner for Endpoint {
    fn with_drive<T>(&self, f: impl FnOnce(&mut Drive) -> T) -> T {
        self.with_faults(|faulty| f(faulty.drive_mut()))
    }

    fn with_faults<T>(&self, f: impl FnOnce(&mut FaultyDrive) -> T) -> T {
        self.with_subsystem(|subsystem| f(subsystem.drive_mut()))
    }
}
