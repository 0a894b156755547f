//! A drive that a test serves over NVMe/TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_target::controller::{Subsystem, SubsystemSettings};
use zonelab_target::server::{Server, ServerSettings};

/// Why a drive is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system has no socket for it.
    #[error("no socket to listen at: {0}")]
    Listen(#[from] std::io::Error),
    /// The drive cannot be put behind a controller.
    #[error("{0}")]
    Subsystem(String),
}

/// A drive behind an NVMe/TCP port of the loopback, in real time, until it is dropped: for
/// engines that bring an initiator of their own, such as SPDK's.
#[derive(Debug)]
pub struct ServedDrive {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl ServedDrive {
    /// Its NVMe qualified name.
    pub const NQN: &str = "nqn.2024-01.io.github.zonelab:test";

    /// Serves a fresh drive, with faults, in a thread of its own.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(config: &DriveConfig, faults: FaultPlan) -> Result<Self, ServeError> {
        let drive = FaultyDrive::new(Drive::new(config), faults);
        let settings = SubsystemSettings::new(Self::NQN);
        let mut subsystem = Subsystem::new(drive, settings)
            .map_err(|error| ServeError::Subsystem(error.to_string()))?;
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server::bind(any_port, ServerSettings::default())?;
        let address = server.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(&mut subsystem, &flag));
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address in the form that `--device` of the command takes.
    #[must_use]
    pub fn url(&self) -> String {
        format!("tcp://{}/{}", self.address, Self::NQN)
    }
}

impl Drop for ServedDrive {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it has to say about its end is nothing to a test that is over.
            drop(thread.join());
        }
    }
}
