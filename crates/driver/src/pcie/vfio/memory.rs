//! Memory of this process that devices of a container can reach, and their registers.

#![expect(unsafe_code, reason = "maps memory and shares it with a device")]

use core::fmt;
use core::sync::atomic::AtomicU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::ioctl::{self, Place};
use crate::pcie::bus::DmaError;
use crate::pcie::dma::{DmaRegion, Domain, Keeper, PAGE_BYTES};
use crate::pcie::iova::Iovas;
use crate::pcie::mapping::{self, Pages};
use crate::pcie::mmio::MappedBar;

/// The registers of BAR 0, which a region of the device's file has.
pub(super) fn registers(device: impl AsFd, region: ioctl::Region) -> Result<MappedBar, Errno> {
    let bytes = usize::try_from(region.bytes).map_err(|_| Errno::OVERFLOW)?;
    let pages = Arc::new(Pages::of_file(device, region.offset, bytes)?);
    // SAFETY: the region is BAR 0, and the mapping keeps itself.
    Ok(unsafe { mapping::bar(&pages, Arc::clone(&pages) as _) })
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
        let first = pages.first();
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
