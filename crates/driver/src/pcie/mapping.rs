//! Mappings of this process: memory, and registers of a device.

#![expect(unsafe_code, reason = "maps memory, and registers of a device")]

use core::ffi::c_void;
use core::ptr::NonNull;
use std::any::Any;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::mmio::MappedBar;

/// From this length on memory should be in huge pages: an IOMMU translates a page at a
/// time.
const HUGE_BYTES: usize = 2 << 20;

/// Pages of this process at an address that stays.
#[derive(Debug)]
pub(super) struct Pages {
    first: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: memory that is mapped belongs to no thread.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`; a shared `Pages` accesses nothing.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed memory of whole pages.
    pub(super) fn zeroed(bytes: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let private = MapFlags::PRIVATE;
        // SAFETY: a new mapping where the kernel likes it touches no other.
        let first =
            unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), bytes, access, private) }?;
        let pages = Self::at(first, bytes)?;
        if bytes >= HUGE_BYTES {
            // Whether there are huge pages makes no other difference than speed.
            let _ = pages.advise(Advice::LinuxHugepage);
        }
        Ok(pages)
    }

    /// A part of a file: of memory, or of the registers of a device.
    pub(super) fn of_file(file: impl AsFd, offset: u64, bytes: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes it touches no other.
        let first = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        Self::at(first, bytes)
    }

    fn at(first: *mut c_void, bytes: usize) -> Result<Self, Errno> {
        let first = NonNull::new(first).ok_or(Errno::NOMEM)?;
        Ok(Self { first, bytes })
    }

    /// Where it begins.
    pub(super) fn first(&self) -> NonNull<c_void> {
        self.first
    }

    /// Its length.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the memory in place, without swapping, and all of it there from now on. Children of
    /// the process do not have it.
    pub(super) fn pin(&self) -> Result<(), Errno> {
        self.advise(Advice::LinuxDontFork)?;
        // SAFETY: the range is a mapping of ours; locking changes nothing of what it holds.
        unsafe { rustix::mm::mlock(self.first.as_ptr(), self.bytes) }
    }

    /// `advice` is one that leaves what the memory holds as it is.
    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        debug_assert!(matches!(
            advice,
            Advice::LinuxHugepage | Advice::LinuxDontFork
        ));
        // SAFETY: the range is a mapping of ours, and what it holds stays the same.
        unsafe { rustix::mm::madvise(self.first.as_ptr(), self.bytes, advice) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nobody has a pointer to it: who keeps this keeps them. It can only fail
        // for a range that is no mapping.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr(), self.bytes) };
    }
}

/// BAR 0 of a function, whose registers `pages` are a mapping of.
///
/// # Safety
/// `pages` is a mapping of BAR 0 that the kernel has made, and `keeper` keeps it.
pub(super) unsafe fn bar(pages: &Pages, keeper: Arc<dyn Any + Send + Sync>) -> MappedBar {
    let first = pages.first.cast();
    // SAFETY: the kernel maps BARs uncached and at whole pages, and the caller has said that
    // `keeper` keeps the mapping.
    unsafe { MappedBar::new(first, pages.bytes as u64, keeper) }
}
