//! The initiator against bytes written by hand.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod authentication;
mod bytes;
mod connection;
mod device;
mod emulated;
mod examples;
mod holders;
mod hostile;
mod peer;
mod session;
mod wire;
mod zones;
