//! What threads share in the driver for PCIe, and what it shares with a device, under every
//! schedule: the driver's own files, with loom's atomics and locks in place of the standard
//! library's ([`pcie::sync`]), above a device that is a model.
//!
//! loom runs a test again and again, until it has taken every order of its steps with at most so
//! many switches of threads that nothing forced, and every value that a relaxed load may see.
//! `ZONELAB_SCHEDULES` is that many, 3 unless it is set (three seconds; 4 takes a quarter of a
//! minute, 5 more than one):
//!
//! ```console
//! $ ZONELAB_SCHEDULES=5 cargo test -p zonelab-driver --test schedules
//! ```
//!
//! Defects that were planted to see whether it finds them, and were found with two switches: a
//! request for a reset that does not look at the epoch, a controller that starts again before all
//! queues are quiet, a phase tag that is stored without release or loaded without acquire, and
//! shadow doorbells without the fence, or with one that is weaker than sequentially consistent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]
#![expect(
    dead_code,
    unreachable_pub,
    reason = "the driver's files have more than is tried here"
)]

mod model;
mod pcie;
mod resets;
mod rings;

/// Where the driver's files look for what else is in its crate.
mod error {
    pub(crate) use zonelab_driver::DriverError;
}
mod socket {
    pub(crate) use zonelab_driver::Reply;
}
mod tcp {
    pub(crate) use zonelab_driver::tcp::Transfer;
}

/// Runs a test under every schedule.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let bound = std::env::var("ZONELAB_SCHEDULES");
    let bound = bound.map(|text| text.parse().expect("ZONELAB_SCHEDULES is a number"));
    builder.preemption_bound = Some(bound.unwrap_or(3));
    builder.max_branches = 10_000;
    builder.check(test);
}
