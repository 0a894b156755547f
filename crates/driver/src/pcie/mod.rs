//! The driver for NVMe controllers on PCIe.
//!
//! | module | what |
//! | --- | --- |
//! | [`bus`] | the traits that a PCI function comes with: registers, DMA memory, time |
//! | [`dma`] | memory that is shared with the device, and [`DmaBuf`] behind a `Buf` |
//! | [`mmio`] | registers that are mapped into memory |
//! | [`memory`] | DMA memory in ordinary memory, for controllers that are models |
//! | [`pci`] | PCI functions of this machine, and which driver has them |
//! | [`vfio`] | functions that the kernel hands over, behind an IOMMU |
//! | [`uio`] | the same without an IOMMU: the device can reach all memory |
//! | [`LocalFunction`] | whichever of both, for [`LocalController`] |
//! | [`prp`] | where data lies: PRPs and their lists |
//! | [`Interrupt`] | vectors that a thread can sleep on |
//! | [`ids`] | command identifiers with generations |
//! | [`doorbell`] | doorbell registers and their shadows in memory |
//! | [`rings`] | submission and completion rings |
//! | [`pair`] | a pair of rings and what is in flight between them |
//! | [`PcieQueue`] | an I/O queue: a [`QueuePair`](zonelab_device::QueuePair) |
//! | [`PcieController`] | bring-up, admin queue, events, reset, shutdown |
//! | [`RecoveringController`] | the same with time-outs, Abort and reset; [`RecoveringQueue`] |
//! | [`PcieDevice`] | both as a [`Device`](zonelab_device::Device), for a reactor |
//!
//! The `unsafe` code is in `dma`, `memory`, `mmio` and `mapping`, and for drives of this
//! machine in `vfio` and `uio`. Why it is as it is: `docs/decisions/0028-pcie-driver.md` and
//! `0030-drives-without-an-iommu.md`.

mod admin;
mod bringup;
pub mod bus;
mod controller;
mod device;
pub mod dma;
pub mod doorbell;
mod error;
pub mod ids;
mod interrupt;
mod iova;
mod local;
mod mapping;
pub mod memory;
pub mod mmio;
mod options;
pub mod pair;
pub mod pci;
pub mod prp;
mod queue;
mod recovering;
mod recovery;
pub mod rings;
mod slot;
mod sync;
pub mod uio;
pub mod vfio;

pub use admin::Event;
pub use bus::{DmaError, DmaMemory, Function, ModelledFunction, Registers};
pub use controller::PcieController;
pub use device::{PcieDevice, PcieDeviceQueue};
pub use dma::{DmaBuf, DmaRegion, Domain, Keeper, PAGE_BYTES};
pub use error::{PcieError, Violation};
pub use interrupt::Interrupt;
pub use local::{LocalController, LocalFunction, LocalOptions, LocalQueue};
pub use memory::HostMemory;
pub use mmio::MappedBar;
pub use options::PcieOptions;
pub use queue::{Late, PcieQueue};
pub use recovering::{RecoveringController, RecoveringQueue};
