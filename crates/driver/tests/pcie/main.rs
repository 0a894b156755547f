//! Rings, identifiers, doorbells and PRPs of the driver for PCIe, without a controller:
//! small enough for Miri (`cargo miri test -p zonelab-driver --test pcie`).

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod doorbells;
mod ids;
mod memory;
mod prps;
mod rings;

use std::cell::RefCell;

use zonelab_driver::pcie::Registers;

/// Registers that only note what is written.
#[derive(Debug, Default)]
pub(crate) struct Notes(RefCell<Vec<(u64, u32)>>);

impl Notes {
    /// What was written since the last call.
    pub(crate) fn take(&self) -> Vec<(u64, u32)> {
        self.0.take()
    }
}

impl Registers for Notes {
    fn bar_bytes(&self) -> u64 {
        1 << 20
    }

    fn read32(&self, _offset: u64) -> u32 {
        0
    }

    fn write32(&self, offset: u64, value: u32) {
        self.0.borrow_mut().push((offset, value));
    }
}
