//! The driver's own files, and what they find beside them.

pub(crate) mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

pub(crate) mod error {
    pub(crate) use zonelab_driver::pcie::{PcieError, Violation};
}

pub(crate) use crate::model::{bus, controller, dma, pair, queue};

#[path = "../../src/pcie/doorbell.rs"]
pub(crate) mod doorbell;
#[path = "../../src/pcie/recovering.rs"]
pub(crate) mod recovering;
#[path = "../../src/pcie/recovery.rs"]
pub(crate) mod recovery;
#[path = "../../src/pcie/rings.rs"]
pub(crate) mod rings;
