//! What the driver needs of a PCI function: registers, memory for DMA, and time.
//!
//! Three small traits, so that the driver is the same code above VFIO, above UIO and
//! above a controller in ordinary memory. Nothing in them is `Send` or `Sync` by
//! itself: a queue pair needs only what its own thread has.

use std::io;

use zonelab_device::Nanos;
use zonelab_nvme::property::Property;

use super::dma::DmaRegion;
use super::interrupt::Interrupt;

/// The registers of a controller: BAR 0 of its PCI function.
///
/// Offsets count bytes from the start of the BAR and are multiples of the width of
/// the access. An access outside of the BAR must not be undefined behaviour: a read
/// gives all ones, as one does from a function that is gone, and a write does
/// nothing.
pub trait Registers {
    /// Bytes of the BAR that can be accessed.
    fn bar_bytes(&self) -> u64;

    /// Loads 32 bits. Not reordered with other accesses of the thread to registers,
    /// and no later load from DMA memory comes before it.
    fn read32(&self, offset: u64) -> u32;

    /// Stores 32 bits. All that the thread has stored in DMA memory before is seen
    /// by the device before the register is.
    fn write32(&self, offset: u64, value: u32);

    /// Loads 64 bits. The base specification lets a host use two accesses, and some
    /// controllers need that, so this does it: low half first.
    fn read64(&self, offset: u64) -> u64 {
        let low = u64::from(self.read32(offset));
        u64::from(self.read32(offset + 4)) << 32 | low
    }

    /// Stores 64 bits: low half first.
    fn write64(&self, offset: u64, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }

    /// Whether the device is gone: CSTS, of which no value is all ones, reads as that.
    fn is_gone(&self) -> bool {
        self.read32(Property::CSTS.0.into()) == u32::MAX
    }
}

/// Why there is no memory for DMA.
#[derive(Debug, thiserror::Error)]
pub enum DmaError {
    /// There is no more.
    #[error("no {bytes} bytes of memory that the device can reach: {why}")]
    Exhausted {
        /// How many were asked for.
        bytes: usize,
        /// What the system says, and what would help.
        why: String,
    },
    /// The memory is there, but not in one piece as the device sees it.
    #[error(
        "no {bytes} bytes in one piece as the device sees them: without an IOMMU a piece \
         has at most {most} bytes"
    )]
    NotContiguous {
        /// How many were asked for.
        bytes: usize,
        /// The largest piece.
        most: usize,
    },
}

/// Memory that the device reads and writes.
pub trait DmaMemory {
    /// Zeroed memory of at least `bytes` bytes, in whole pages of 4096 bytes, that
    /// stays where it is. It is in one piece for the device too: its I/O virtual
    /// addresses follow each other from one that is a multiple of 4096. It is given
    /// back when the region is dropped.
    ///
    /// # Errors
    /// [`DmaError`].
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError>;
}

/// A PCI function with an NVMe controller.
///
/// Copies share it. What follows the clock has a default that is right for
/// hardware, which goes on by itself; a controller that is a model does something
/// only when it is told the time.
pub trait Function: Registers + DmaMemory + Clone {
    /// Lets the device access memory. This is called once the controller has been seen to
    /// be disabled: the queues of one that somebody left enabled are in memory that belongs
    /// to others by now. Models need nothing of the kind.
    ///
    /// # Errors
    /// The system refuses.
    fn let_access_memory(&self) -> io::Result<()> {
        Ok(())
    }

    /// Interrupt vectors (MSI-X) that [`Self::connect_interrupts`] can connect; 0: none.
    fn interrupt_vectors(&self) -> u16 {
        0
    }

    /// Lets the device signal these vectors, from vector 0 on; `None`: that vector is not
    /// used. At most [`Self::interrupt_vectors`], and once for a function.
    ///
    /// # Errors
    /// The system refuses.
    fn connect_interrupts(&self, vectors: &[Option<Interrupt>]) -> io::Result<()> {
        match vectors {
            [] => Ok(()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The time: of the clock of the run.
    fn now(&self) -> Nanos;

    /// Lets at most `span` of time pass, and less if something may have happened
    /// before. For what waits for the controller outside of a reactor.
    fn pause(&self, span: Nanos);

    /// When something happens next, as [`zonelab_device::Device::next_event`] has it,
    /// while commands are under way.
    fn next_event(&self) -> Option<Nanos> {
        Some(Nanos::MAX)
    }

    /// Brings a model to `now`.
    fn advance(&self, now: Nanos) {
        let _ = now;
    }

    /// Adds the submission queues of what a model has completed since the last call, each
    /// once, in the order of their first completions.
    fn take_served(&self, served: &mut Vec<u16>) {
        let _ = served;
    }

    /// Blocks the thread for at most `span`, or until the device has something to
    /// say, and returns whether it may have. Hardware that is polled has to be
    /// looked at all the time.
    fn wait(&self, span: Nanos) -> bool {
        let _ = span;
        core::hint::spin_loop();
        true
    }
}

/// A function whose controller is a model: nothing happens but in
/// [`Function::advance`], so a clock may jump.
pub trait ModelledFunction: Function {}
