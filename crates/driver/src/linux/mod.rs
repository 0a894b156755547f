//! Drives of this machine, through the kernel's own driver.
//!
//! | module | what |
//! | --- | --- |
//! | [`holders`] | who else uses a drive: then it is not touched |
//! | [`LinuxController`] | a namespace as a controller: admin commands by ioctl |
//! | [`LinuxQueue`] | an I/O queue: commands by io_uring |
//! | `node` | the opened device node, and what sysfs says of it |
//! | `ioctl` | the two passthrough calls of the kernel (unsafe) |
//! | `ring` | an io_uring whose buffers belong to it while they are in flight (unsafe) |
//!
//! There are two ways to a namespace. The generic character device
//! (`/dev/ng0n1`) takes any NVMe command by io_uring, append included, and tells
//! the drive's own status. The block device (`/dev/nvme0n1`) is for kernels
//! without the former: reads and writes go through the block layer, which tells an
//! errno instead of a status, and everything else goes one command at a time.
//! `docs/decisions/0029-linux-passthrough.md` says why.

mod controller;
pub mod holders;
mod ioctl;
mod node;
mod queue;
mod ring;

pub use controller::{LinuxController, LinuxOptions};
pub use node::NodeKind;
pub use queue::LinuxQueue;

/// Whether this process may make an io_uring, of the kind that takes NVMe commands; it is
/// closed at once.
///
/// # Errors
/// What the kernel says: it is too old, or io_uring is switched off or forbidden.
pub fn try_io_uring() -> std::io::Result<()> {
    ring::try_one()
}
