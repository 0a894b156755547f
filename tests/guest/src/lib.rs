//! Unmodified Linux kernels and their tools, as a client of a zoned drive.
//!
//! [`image`] makes a kernel and an initramfs from packages of Debian.
//! [`Guest`] boots them under QEMU's software emulation and runs commands
//! inside. [`Drive`] is a zoned namespace as the guest sees it; the cases take
//! one, whoever serves it.

pub mod console;
pub mod drive;
pub mod host;
pub mod image;
pub mod queues;

mod bytes;
mod channel;
mod guest;
mod monitor;
mod qemu;

pub use bytes::Bytes;
pub use drive::Drive;
pub use guest::{Guest, Job, Output};
pub use image::{Image, Kernel};
pub use qemu::{Chassis, Disk};
pub use queues::Queues;

/// Address under which the guest reaches the loopback of its host.
pub const HOST: &str = "10.0.2.2";
