//! The `zonelab` command as scripts see it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod calibrate;
mod command;
mod conditions;
mod fio_jobs;
mod nvme;
mod scratch;
mod search;
mod store;
mod traces;
