//! Queue pairs to real things: drives that zonelab did not make.
//!
//! | module | what |
//! | --- | --- |
//! | [`tcp`] | the host's end of an NVMe/TCP connection: bytes in, bytes out |
//! | [`linux`] | drives of this machine, through the kernel's own driver |
//! | [`url`] | `tcp://host:port/nqn?nsid=1`, `linux:///dev/ng0n1` |
//! | [`Controller`], [`IoQueue`] | what all transports have in common |
//! | [`AnyController`], [`AnyQueue`] | whichever transport an address names |
//! | [`TcpController`] | admin queue: enabling, identifying, keep alive, shutting down |
//! | [`TcpQueue`] | I/O queue: a [`QueuePair`](zonelab_device::QueuePair) |
//! | [`DriverDevice`] | a controller and its queues as a [`Device`](zonelab_device::Device), for a reactor |
//! | [`Lane`] | an I/O queue alone as a device, for a thread of its own |
//! | [`HostSecrets`] | what a host authenticates itself with, if it is asked |
//! | [`Identity`] | what a controller says of itself |
//! | [`pcie`] | the driver for controllers on PCIe: rings, DMA memory, doorbells |
//! | [`zones`] | zones as values, on a queue pair of any kind |
//!
//! Calls of the controller wait, and so does who asks a queue or the device to;
//! all of them to the nanosecond that they are told, as far as the kernel goes.

mod any;
mod authentication;
mod clock;
mod controller;
mod device;
mod entry;
mod error;
mod identity;
mod inquiry;
pub mod linux;
pub mod pcie;
mod poller;
mod queue;
mod socket;
mod starting;
pub mod tcp;
mod transport;
pub mod url;
pub mod zones;

pub use any::{AnyController, AnyOptions, AnyQueue};
pub use authentication::HostSecrets;
pub use controller::{Backoff, DiscoveryLog, Options, TcpController};
pub use device::{DetachedQueue, DriverDevice, DriverQueue, Lane};
pub use error::DriverError;
pub use identity::{Identity, Namespace};
pub use poller::WaitCounts;
pub use queue::TcpQueue;
pub use socket::Reply;
pub use transport::{Announcement, Controller, IoQueue};

/// A controller over NVMe/TCP and its queues as a device.
pub type TcpDevice = DriverDevice<TcpController>;
/// A queue of it from the side of a program.
pub type TcpDeviceQueue = DriverQueue<TcpQueue>;
/// A queue of it alone as a device.
pub type TcpLane = Lane<TcpQueue>;
