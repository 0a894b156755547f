//! Memory of this process that devices of a container can reach, and their registers.

#![expect(unsafe_code, reason = "maps memory and shares it with a device")]

use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::ioctl::{self, Place};
use super::iova::Iovas;
use crate::pcie::bus::DmaError;
use crate::pcie::dma::{DmaRegion, Domain, Keeper, PAGE_BYTES};
use crate::pcie::mmio::MappedBar;

/// From this length on the memory should be in huge pages: the IOMMU translates a page
/// at a time.
const HUGE_BYTES: usize = 2 << 20;

/// Pages of this process at an address that stays.
struct Pages {
    first: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: memory that is mapped belongs to no thread.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`; a shared `Pages` accesses nothing.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed memory of whole pages.
    fn zeroed(bytes: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let private = MapFlags::PRIVATE;
        // SAFETY: a new mapping where the kernel likes it touches no other.
        let first =
            unsafe { rustix::mm::mmap_anonymous(core::ptr::null_mut(), bytes, access, private) }?;
        let pages = Self::at(first, bytes)?;
        if bytes >= HUGE_BYTES {
            // SAFETY: the range is the mapping just made; what it holds stays the same.
            // Whether there are huge pages makes no other difference than speed.
            let _ = unsafe { rustix::mm::madvise(first, bytes, Advice::LinuxHugepage) };
        }
        Ok(pages)
    }

    /// A part of the file of a device.
    fn of_device(device: impl AsFd, offset: u64, bytes: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes it touches no other.
        let first = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                device,
                offset,
            )
        }?;
        Self::at(first, bytes)
    }

    fn at(first: *mut c_void, bytes: usize) -> Result<Self, Errno> {
        let first = NonNull::new(first).ok_or(Errno::NOMEM)?;
        Ok(Self { first, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nobody has a pointer to it: who keeps this keeps them. It can only fail
        // for a range that is no mapping.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr(), self.bytes) };
    }
}

/// The registers of BAR 0, which a region of the device's file has.
pub(super) fn registers(device: impl AsFd, region: ioctl::Region) -> Result<MappedBar, Errno> {
    let bytes = usize::try_from(region.bytes).map_err(|_| Errno::OVERFLOW)?;
    let pages = Pages::of_device(device, region.offset, bytes)?;
    let first = pages.first.cast();
    // SAFETY: the kernel maps BARs uncached and at whole pages, and `pages` keeps it.
    Ok(unsafe { MappedBar::new(first, region.bytes, Arc::new(pages)) })
}

/// What the devices of a container can reach.
#[derive(Debug)]
pub(super) struct AddressSpace {
    container: OwnedFd,
    /// Closed behind the device, in front of the container.
    _group: OwnedFd,
    domain: Domain,
    iovas: Mutex<Iovas>,
}

impl AddressSpace {
    /// That of a container in which an IOMMU was chosen.
    pub(super) fn new(container: OwnedFd, group: OwnedFd) -> Result<Self, Errno> {
        let ranges = ioctl::iova_ranges(&container)?;
        Ok(Self {
            container,
            _group: group,
            domain: Domain::new(),
            iovas: Mutex::new(Iovas::new(ranges)),
        })
    }

    /// Memory of whole pages that the devices can reach.
    pub(super) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<DmaRegion, DmaError> {
        let exhausted = |why: &str| DmaError::Exhausted {
            bytes,
            why: why.to_owned(),
        };
        let whole = bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
        let whole = whole.ok_or_else(|| exhausted("no such length"))?;
        let pages = Pages::zeroed(whole).map_err(|error| exhausted(&error.to_string()))?;
        let iova = self.iovas(|iovas| iovas.take(whole as u64));
        let iova = iova.ok_or_else(|| exhausted("no addresses of the IOMMU are left"))?;
        let first = pages.first;
        let place = Place {
            address: first.as_ptr().addr() as u64,
            iova,
            bytes: whole as u64,
        };
        // SAFETY: `Mapping` unmaps before it gives the pages back; what they hold is
        // accessed as `DmaRegion` has it.
        if let Err(error) = unsafe { ioctl::map(&self.container, place) } {
            self.iovas(|iovas| iovas.give_back(iova, whole as u64));
            return Err(exhausted(&why_not_mapped(error)));
        }
        let mapping = Mapping {
            space: Arc::clone(self),
            place,
            pages: Some(pages),
        };
        let first = first.cast::<AtomicU64>();
        // SAFETY: zeroed memory of that length and aligned to a page, which `mapping`
        // keeps and nothing else accesses; the device finds it at `iova`.
        Ok(unsafe { DmaRegion::new(first, whole, (self.domain, iova), Arc::new(mapping)) })
    }

    fn iovas<T>(&self, with: impl FnOnce(&mut Iovas) -> T) -> T {
        // Nothing in there panics half-way.
        let mut iovas = self.iovas.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut iovas)
    }
}

/// Why memory was not mapped, and what helps.
fn why_not_mapped(error: Errno) -> String {
    match error {
        Errno::NOMEM => "the limit of locked memory is too low: see `ulimit -l`, or \
                         LimitMEMLOCK in a unit of systemd"
            .to_owned(),
        Errno::NOSPC => "the kernel maps no more pieces: see dma_entry_limit of the module \
                         vfio_iommu_type1"
            .to_owned(),
        other => other.to_string(),
    }
}

/// Memory, and that the devices can reach it.
struct Mapping {
    space: Arc<AddressSpace>,
    place: Place,
    /// There until this is dropped.
    pages: Option<Pages>,
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl Keeper for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        let pages = self.pages.take();
        if ioctl::unmap(&self.space.container, self.place) {
            let Place { iova, bytes, .. } = self.place;
            self.space.iovas(|iovas| iovas.give_back(iova, bytes));
        } else {
            // A device may still write to it, so it serves for nothing else.
            core::mem::forget(pages);
        }
    }
}
