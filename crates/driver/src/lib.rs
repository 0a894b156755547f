//! Queue pairs to real things: drives that zonelab did not make.
//!
//! | module | what |
//! | --- | --- |
//! | [`tcp`] | the host's end of an NVMe/TCP connection: bytes in, bytes out |
//! | [`url`] | `tcp://host:port/nqn?nsid=1` |
//! | [`TcpController`] | admin queue: enabling, identifying, keep alive, shutting down |
//! | [`TcpQueue`] | I/O queue: a [`QueuePair`](zonelab_device::QueuePair) |
//! | [`TcpDevice`] | both as a [`Device`](zonelab_device::Device), for a reactor |
//! | [`TcpLane`] | an I/O queue alone as a device, for a thread of its own |
//! | [`HostSecrets`] | what a host authenticates itself with, if it is asked |
//! | [`Identity`] | what a controller says of itself |
//! | [`pcie`] | the driver for controllers on PCIe: rings, DMA memory, doorbells |
//!
//! Calls of the controller wait, and so does who asks a queue or the device to;
//! all of them to the nanosecond that they are told, as far as the kernel goes.

mod authentication;
mod clock;
mod controller;
mod device;
mod entry;
mod error;
mod identify;
mod identity;
pub mod pcie;
mod poller;
mod queue;
mod socket;
mod starting;
pub mod tcp;
pub mod url;

pub use authentication::HostSecrets;
pub use controller::{Backoff, DiscoveryLog, Options, TcpController};
pub use device::{DetachedQueue, TcpDevice, TcpDeviceQueue, TcpLane};
pub use error::DriverError;
pub use identity::{Identity, Namespace};
pub use queue::TcpQueue;
pub use socket::Reply;
