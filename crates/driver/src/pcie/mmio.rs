//! Registers that are mapped into memory.

#![expect(unsafe_code, reason = "volatile accesses to registers")]

use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use std::any::Any;
use std::sync::Arc;

use super::bus::Registers;

/// BAR 0 of a function, mapped. Copies share the mapping.
#[derive(Clone, Debug)]
pub struct MappedBar {
    first: NonNull<u32>,
    bytes: u64,
    /// Unmaps when it is dropped.
    _mapping: Arc<dyn Any + Send + Sync>,
}

// SAFETY: registers may be accessed from any thread, and the mapping is `Send` and
// `Sync`.
unsafe impl Send for MappedBar {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedBar {}

impl MappedBar {
    /// `bytes` bytes of registers at `first`.
    ///
    /// # Safety
    /// `first` is aligned to 4096 and points to `bytes` bytes of mapped device memory
    /// (not cached) until `mapping` is dropped.
    #[must_use]
    pub unsafe fn new(
        first: NonNull<u32>,
        bytes: u64,
        mapping: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            first,
            bytes,
            _mapping: mapping,
        }
    }

    /// Where a register is, if it is in the BAR and aligned.
    #[inline]
    fn at(&self, offset: u64) -> Option<*mut u32> {
        let is_inside = offset.is_multiple_of(4) && offset < self.bytes & !3;
        let index = usize::try_from(offset / 4).ok().filter(|_| is_inside)?;
        // `wrapping_add` needs no promise, and the index is in range.
        Some(self.first.as_ptr().wrapping_add(index))
    }
}

impl Registers for MappedBar {
    fn bar_bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn read32(&self, offset: u64) -> u32 {
        let Some(at) = self.at(offset) else {
            return u32::MAX;
        };
        // SAFETY: inside of the mapping and aligned, by `at`.
        let value = unsafe { at.read_volatile() };
        fence(Ordering::Acquire);
        u32::from_le(value)
    }

    #[inline]
    fn write32(&self, offset: u64, value: u32) {
        let Some(at) = self.at(offset) else {
            return;
        };
        // What DMA memory holds must be there before the register says so.
        fence(Ordering::SeqCst);
        // SAFETY: inside of the mapping and aligned, by `at`.
        unsafe { at.write_volatile(value.to_le()) }
    }
}
