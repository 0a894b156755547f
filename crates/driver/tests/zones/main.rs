//! Zones as values, on the driver for PCIe and an endpoint in memory.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod appends;
mod faults;
mod handles;
mod oracle;
mod random;
mod reports;
mod rig;
