//! The driver for PCIe on an endpoint in memory.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod bringup;
mod commands;
mod drive;
mod faults;
mod interrupts;
mod queues;
mod random;
mod reactor;
mod recovery;
mod sgls;
mod split;
