//! A hostile client for `zonelab serve`, and a host beside it that has to go on.
//!
//! The client knows NVMe/TCP from its specification alone (`wire`): it shares no
//! code with the initiator of this repository, nor with its wire layouts. What a
//! test bounds is counted (descriptors, bytes, commands of one against commands
//! of the other) and not timed, so that slow machines get the same verdict.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it waits for a server in another process"
)]

mod floods;
mod manners;
mod memory;
mod resets;
mod server;
mod tenants;
mod wire;
