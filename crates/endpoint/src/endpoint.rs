//! The endpoint as the driver sees it: a PCI function.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zonelab_device::{Monotonic, Nanos};
use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::{
    DmaError, DmaMemory, DmaRegion, Function, HostMemory, Interrupt, ModelledFunction, Registers,
};
use zonelab_ssd::DriveModel;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_target::controller::{SettingsError, Subsystem, SubsystemSettings, TransportLimits};

use crate::clock::Clock;
use crate::controller::Controller;
use crate::fault::{Fault, Stuck};

/// Bytes of BAR 0: doorbells of 1024 queues at the narrowest stride.
const BAR_BYTES: u64 = 0x4000;

/// What an endpoint is like, beyond its drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Entries of a queue at most (MQES + 1), 2 to 4096.
    pub queue_entries: u16,
    /// I/O queues, 1 to 64.
    pub io_queues: u16,
    /// Doorbell stride (DSTRD), 0 to 4.
    pub dstrd: u8,
    /// How long it takes to become ready, and to be disabled.
    pub ready_after: Nanos,
    /// CAP.TO in units of 500 ms.
    pub cap_to: u8,
    /// CRTO.CRWMT in units of 500 ms; `None`: CAP.CRMS is 0.
    pub crto: Option<u16>,
    /// Whether it has Doorbell Buffer Config.
    pub has_shadow_doorbells: bool,
    /// Whether I/O commands may have SGLs.
    pub has_sgls: bool,
    /// Interrupt vectors (MSI-X), 0 to 2048.
    pub interrupt_vectors: u16,
    /// Most data of a command in bytes (MDTS is the largest power of two of pages that
    /// is not larger).
    pub max_transfer_bytes: u32,
}

impl Default for EndpointSettings {
    /// 16 queues of 1024 entries with a vector each, ready at once, and PRPs alone.
    fn default() -> Self {
        Self {
            queue_entries: 1024,
            io_queues: 16,
            dstrd: 0,
            ready_after: Nanos::ZERO,
            cap_to: 15,
            crto: Some(15),
            has_shadow_doorbells: false,
            has_sgls: false,
            interrupt_vectors: 17,
            max_transfer_bytes: 1 << 20,
        }
    }
}

/// Why there is no such endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// A setting of its controller.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A setting of its own.
    #[error("{key} is {value}, but must be {least} to {most}")]
    Number {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
}

/// An emulated drive with a controller behind registers, doorbells and rings.
///
/// Copies share it, in whichever threads they are.
#[derive(Clone, Debug)]
pub struct Endpoint {
    controller: Arc<Mutex<Controller>>,
    clock: Arc<Clock>,
    memory: HostMemory,
}

impl Endpoint {
    /// An endpoint in virtual time.
    ///
    /// # Errors
    /// [`EndpointError`]: a setting is not possible.
    pub fn new(
        drive: impl Into<FaultyDrive>,
        settings: EndpointSettings,
    ) -> Result<Self, EndpointError> {
        let drive = drive.into();
        let now = drive.drive().now();
        Self::with_clock(drive, settings, Clock::Virtual(now.0.into()))
    }

    /// An endpoint in real time, on a clock that it shares with whoever uses it.
    ///
    /// # Errors
    /// [`EndpointError`]: a setting is not possible.
    pub fn in_real_time(
        drive: impl Into<FaultyDrive>,
        settings: EndpointSettings,
        clock: Monotonic,
    ) -> Result<Self, EndpointError> {
        Self::with_clock(drive.into(), settings, Clock::Real(clock))
    }

    fn with_clock(
        drive: FaultyDrive,
        settings: EndpointSettings,
        clock: Clock,
    ) -> Result<Self, EndpointError> {
        check("io_queues", settings.io_queues.into(), 1, 64)?;
        check("dstrd", settings.dstrd.into(), 0, 4)?;
        check(
            "interrupt_vectors",
            settings.interrupt_vectors.into(),
            0,
            2048,
        )?;
        let of_subsystem = SubsystemSettings {
            limits: TransportLimits {
                queue_depth: settings.queue_entries,
                ..TransportLimits::default()
            },
            io_queues: settings.io_queues,
            max_transfer_bytes: settings.max_transfer_bytes,
            model_number: drive.drive().info().model.chars().take(40).collect(),
            ..SubsystemSettings::new("nqn.2025-01.io.zonelab:endpoint")
        };
        let subsystem = Subsystem::new(drive, of_subsystem)?;
        let memory = HostMemory::new();
        let controller = Controller::new(subsystem, settings, memory.clone());
        Ok(Self {
            controller: Arc::new(Mutex::new(controller)),
            clock: Arc::new(clock),
            memory,
        })
    }

    /// The controller, which one thread has at a time.
    fn controller(&self) -> MutexGuard<'_, Controller> {
        // Whoever panics in it has lost its run; the others end theirs.
        self.controller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that it accesses.
    #[must_use]
    pub const fn memory(&self) -> &HostMemory {
        &self.memory
    }

    /// Lets the I/O completion after `after` more have a fault.
    pub fn inject(&self, after: u64, fault: Fault) {
        self.controller().faults.plan(after, fault);
    }

    /// Lets a bit be stuck, or none.
    pub fn stick(&self, stuck: Option<Stuck>) {
        self.controller().stuck = stuck;
    }

    /// Pulls the device out.
    pub fn remove(&self) {
        self.controller().remove();
    }

    /// The controller reports a fatal error of its own.
    pub fn fail(&self) {
        self.controller().fail();
    }

    /// Doorbells with values or of queues that there are not.
    #[must_use]
    pub fn bad_doorbells(&self) -> u64 {
        self.controller().bad_doorbells
    }

    /// I/O commands with SGLs so far.
    #[must_use]
    pub fn sgl_commands(&self) -> u64 {
        self.controller().sgl_commands
    }

    /// Where the rings of queue `qid` are, and their entries: submission, completion.
    pub(crate) fn rings(&self, qid: u16) -> Option<[(Window, u32); 2]> {
        self.controller().rings(qid)
    }

    /// Lets `f` look at the subsystem behind it.
    pub fn with_subsystem<T>(&self, f: impl FnOnce(&mut Subsystem) -> T) -> T {
        f(self.controller().subsystem_mut())
    }
}

fn check(key: &'static str, value: u64, least: u64, most: u64) -> Result<(), EndpointError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(EndpointError::Number {
        key,
        value,
        least,
        most,
    })
}

impl Registers for Endpoint {
    fn bar_bytes(&self) -> u64 {
        BAR_BYTES
    }

    fn read32(&self, offset: u64) -> u32 {
        let now = self.clock.now();
        self.controller().read(now, offset)
    }

    fn write32(&self, offset: u64, value: u32) {
        let now = self.clock.now();
        self.controller().write(now, offset, value);
    }
}

impl DmaMemory for Endpoint {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        self.memory.allocate(bytes)
    }
}

impl Function for Endpoint {
    fn interrupt_vectors(&self) -> u16 {
        self.controller().settings().interrupt_vectors
    }

    fn connect_interrupts(&self, vectors: &[Option<Interrupt>]) -> io::Result<()> {
        if vectors.len() > usize::from(self.interrupt_vectors()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.controller().interrupts = vectors.to_vec();
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// In virtual time, on to what happens next.
    fn pause(&self, span: Nanos) {
        let now = self.clock.now();
        let end = now.saturating_add(span);
        self.advance(now);
        let next = self.controller().next_event(now);
        let next = next.unwrap_or(end).clamp(now, end);
        match &*self.clock {
            Clock::Virtual(_) => self.advance(next.max(now + Nanos(1)).min(end)),
            Clock::Real(_) => {
                park(next.saturating_sub(now));
                self.advance(self.clock.now());
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.controller().next_event(self.clock.now())
    }

    fn advance(&self, now: Nanos) {
        self.clock.reach(now);
        self.controller().advance(self.clock.now());
    }

    fn take_served(&self, served: &mut Vec<u16>) {
        self.controller().take_served(served);
    }

    /// Nothing comes from outside.
    fn wait(&self, span: Nanos) -> bool {
        park(span);
        false
    }
}

impl ModelledFunction for Endpoint {}

fn park(span: Nanos) {
    if span > Nanos::ZERO {
        std::thread::park_timeout(Duration::from_nanos(span.0));
    }
}
