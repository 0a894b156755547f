//! How a controller on PCIe is to be used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_device::Nanos;

/// How a controller on PCIe is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcieOptions {
    /// Longest time of one command. After that it is aborted, and after as long again
    /// the controller is reset.
    pub command_timeout: Nanos,
    /// Longest time of a shutdown.
    pub shutdown_timeout: Nanos,
    /// Entries of an I/O queue, 2 to 4096: one more than commands in flight. The
    /// controller's limit (CAP.MQES) applies besides.
    pub queue_entries: u32,
    /// I/O queues to ask for, at least 1.
    pub queues: u16,
    /// Largest transfer of one command in bytes, where the controller has a larger
    /// limit or none. At least 4096; every slot of a queue has lists of PRPs for it.
    pub max_transfer_bytes: u32,
    /// Whether command identifiers have generations: off for controllers that want
    /// small identifiers.
    pub has_generations: bool,
    /// Whether doorbells have shadows in memory, if the controller can do that.
    pub has_shadow_doorbells: bool,
    /// Whether data for which PRPs would need a list has an SGL descriptor instead, if the
    /// controller takes them.
    pub has_sgls: bool,
    /// Whether each I/O queue has an interrupt vector, so that a thread can sleep until
    /// something completes. Without, queues are polled.
    pub has_interrupts: bool,
}

impl Default for PcieOptions {
    /// One I/O queue for 127 commands of up to 1 MiB, 30 s for a command, polled.
    fn default() -> Self {
        Self {
            command_timeout: Nanos::from_secs(30),
            shutdown_timeout: Nanos::from_secs(10),
            queue_entries: 128,
            queues: 1,
            max_transfer_bytes: 1 << 20,
            has_generations: true,
            has_shadow_doorbells: true,
            has_sgls: true,
            has_interrupts: false,
        }
    }
}

/// Whether the controller may access memory: it is enabled, or could not be disabled.
///
/// Memory that it knows of is freed only while it may not.
#[derive(Debug, Clone)]
pub(crate) struct Access(Arc<AtomicBool>);

impl Access {
    pub(crate) fn none() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    pub(crate) fn is_possible(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, is_possible: bool) {
        self.0.store(is_possible, Ordering::Release);
    }
}
