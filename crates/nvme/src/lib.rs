//! Wire layouts of NVMe: what travels between a host and a drive, and nothing else.
#![no_std]
#![forbid(unsafe_code)]

mod open_enum;
pub mod status;
pub mod zns;

pub use status::Status;
