//! The driver for NVMe controllers on PCIe.
//!
//! | module | what |
//! | --- | --- |
//! | [`bus`] | the traits that a PCI function comes with: registers, DMA memory, time |
//! | [`dma`] | memory that is shared with the device, and [`DmaBuf`] behind a `Buf` |
//! | [`mmio`] | registers that are mapped into memory |
//! | [`memory`] | DMA memory in ordinary memory, for controllers that are models |

pub mod bus;
pub mod dma;
pub mod memory;
pub mod mmio;

pub use bus::{DmaError, DmaMemory, Function, ModelledFunction, Registers};
pub use dma::{DmaBuf, DmaRegion, Domain, Keeper, PAGE_BYTES};
pub use memory::HostMemory;
pub use mmio::MappedBar;
