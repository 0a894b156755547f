//! PCI functions of this machine: where they are, which driver has them, and how they are
//! handed to programs and back.

mod address;
mod bind;
mod error;
mod sysfs;

pub use address::{BadAddress, PciAddress};
pub use bind::{KERNEL_DRIVER, Reach};
pub use error::HandoverError;
pub use sysfs::{PciBus, UIO_DRIVER, VFIO_DRIVER};
