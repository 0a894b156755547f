//! The driver for NVMe controllers on PCIe.
//!
//! | module | what |
//! | --- | --- |
//! | [`bus`] | the traits that a PCI function comes with: registers, DMA memory, time |
//! | [`dma`] | memory that is shared with the device, and [`DmaBuf`] behind a `Buf` |
//! | [`mmio`] | registers that are mapped into memory |
//! | [`memory`] | DMA memory in ordinary memory, for controllers that are models |
//! | [`vfio`] | functions that the kernel hands over, behind an IOMMU |
//! | [`prp`] | where data lies: PRPs and their lists |
//! | [`ids`] | command identifiers with generations |
//! | [`doorbell`] | doorbell registers and their shadows in memory |
//! | [`rings`] | submission and completion rings |
//! | [`pair`] | a pair of rings and what is in flight between them |
//! | [`PcieQueue`] | an I/O queue: a [`QueuePair`](zonelab_device::QueuePair) |
//! | [`PcieController`] | bring-up, admin queue, events, reset, shutdown |
//! | [`RecoveringController`] | the same with time-outs, Abort and reset; [`RecoveringQueue`] |
//! | [`PcieDevice`] | both as a [`Device`](zonelab_device::Device), for a reactor |
//!
//! All `unsafe` code is in `dma`, `memory` and `mmio`. Why it is as it is:
//! `docs/decisions/0028-pcie-driver.md`.

mod admin;
mod bringup;
pub mod bus;
mod controller;
mod device;
pub mod dma;
pub mod doorbell;
mod error;
pub mod ids;
pub mod memory;
pub mod mmio;
mod options;
pub mod pair;
pub mod prp;
mod queue;
mod recovering;
mod recovery;
pub mod rings;
mod slot;
pub mod vfio;

pub use admin::Event;
pub use bus::{DmaError, DmaMemory, Function, ModelledFunction, Registers};
pub use controller::PcieController;
pub use device::{PcieDevice, PcieDeviceQueue};
pub use dma::{DmaBuf, DmaRegion, Domain, Keeper, PAGE_BYTES};
pub use error::{PcieError, Violation};
pub use memory::HostMemory;
pub use mmio::MappedBar;
pub use options::PcieOptions;
pub use queue::{Late, PcieQueue};
pub use recovering::{RecoveringController, RecoveringQueue};
