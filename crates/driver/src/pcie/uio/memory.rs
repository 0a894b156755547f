//! Memory in huge pages, whose place the device is told as it is.

#![expect(unsafe_code, reason = "shares memory with a device")]

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use super::{Device, pagemap};
use crate::pcie::bus::DmaError;
use crate::pcie::dma::{DmaRegion, Domain, Keeper, PAGE_BYTES};
use crate::pcie::iova::Iovas;
use crate::pcie::mapping::Pages;

/// Bytes of a huge page: the longest piece of memory that is in one piece for certain.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Why there is no memory whose place is known.
#[derive(Debug, thiserror::Error)]
pub enum HugePageError {
    /// None are reserved, or all are used.
    #[error(
        "no huge page of 2 MiB is free ({source}); \
         `echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages` reserves 64 of them, \
         128 MiB"
    )]
    Missing {
        /// What the kernel says.
        source: io::Error,
    },
    /// It cannot be kept in place.
    #[error("a huge page cannot be locked: {source}; run as root, or raise `ulimit -l`")]
    NotLocked {
        /// What the kernel says.
        source: io::Error,
    },
    /// The kernel does not say where pages are.
    #[error("{}: {source}", pagemap::PATH)]
    Pagemap {
        /// What the kernel says.
        source: io::Error,
    },
    /// It says that a page is not there.
    #[error(
        "{} says that a page is not in memory that was locked there",
        pagemap::PATH
    )]
    NotPresent,
    /// It hides where pages are.
    #[error(
        "{} hides where pages are in memory (frame number 0): that needs root, or CAP_SYS_ADMIN",
        pagemap::PATH
    )]
    NoFrameNumber,
    /// A huge page is not in one piece.
    #[error("a huge page is not 2 MiB in one piece: it begins at {first:#x} and ends at {last:#x}")]
    Scattered {
        /// Where its first page is.
        first: u64,
        /// Where its last page is.
        last: u64,
    },
}

/// The memory that one device is given.
///
/// Pages are added as they are needed, and stay until all of this goes: in front of that the
/// device is made quiet.
pub(super) struct HugeMemory {
    device: Device,
    domain: Domain,
    pagemap: File,
    pages: Mutex<Vec<HugePage>>,
}

/// A huge page, and which parts of it are free.
struct HugePage {
    pages: Pages,
    /// Keeps the page after the mapping has gone, as it does first when a program is killed.
    _file: OwnedFd,
    physical: u64,
    /// By address in memory.
    free: Iovas,
}

impl HugePage {
    fn new(pagemap: &File) -> Result<Self, HugePageError> {
        let missing = |errno: Errno| HugePageError::Missing {
            source: errno.into(),
        };
        let kind = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let file = rustix::fs::memfd_create("zonelab-dma", kind).map_err(missing)?;
        rustix::fs::ftruncate(&file, HUGE_PAGE_BYTES as u64).map_err(missing)?;
        let pages = Pages::of_file(&file, 0, HUGE_PAGE_BYTES).map_err(missing)?;
        pages.pin().map_err(|errno| HugePageError::NotLocked {
            source: errno.into(),
        })?;
        let address = pages.first().as_ptr().addr() as u64;
        let last = (HUGE_PAGE_BYTES - PAGE_BYTES) as u64;
        let physical = pagemap::physical(pagemap, address)?;
        let end = pagemap::physical(pagemap, address + last)?;
        if end != physical + last {
            return Err(HugePageError::Scattered {
                first: physical,
                last: end,
            });
        }
        let range = (physical, physical + HUGE_PAGE_BYTES as u64 - 1);
        Ok(Self {
            pages,
            _file: file,
            physical,
            free: Iovas::new([range]),
        })
    }
}

impl fmt::Debug for HugeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages: Vec<u64> = self.pages().iter().map(|page| page.physical).collect();
        let mut shown = f.debug_struct("HugeMemory");
        shown.field("device", &self.device).field("pages", &pages);
        shown.finish_non_exhaustive()
    }
}

impl HugeMemory {
    /// With one page, which shows that there are any.
    pub(super) fn new(device: Device) -> Result<Self, HugePageError> {
        let pagemap = File::open(pagemap::PATH);
        let pagemap = pagemap.map_err(|source| HugePageError::Pagemap { source })?;
        let first = HugePage::new(&pagemap)?;
        Ok(Self {
            device,
            domain: Domain::new(),
            pagemap,
            pages: Mutex::new(vec![first]),
        })
    }

    /// The device that has it.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Memory of whole pages, within one huge page.
    pub(super) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<DmaRegion, DmaError> {
        let whole = bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
        let whole = whole.filter(|whole| *whole <= HUGE_PAGE_BYTES);
        let whole = whole.ok_or(DmaError::NotContiguous {
            bytes,
            most: HUGE_PAGE_BYTES,
        })?;
        let mut pages = self.pages();
        let (index, physical) = match take(&mut pages, whole) {
            Some(found) => found,
            None => {
                let exhausted = |error: HugePageError| DmaError::Exhausted {
                    bytes,
                    why: error.to_string(),
                };
                pages.push(HugePage::new(&self.pagemap).map_err(exhausted)?);
                take(&mut pages, whole).ok_or_else(|| exhausted(HugePageError::NotPresent))?
            }
        };
        let page = &pages[index];
        let offset = (physical - page.physical) as usize;
        let first = page.pages.first().cast::<AtomicU64>();
        // SAFETY: the piece was taken from this huge page, so it is inside of it.
        let first = unsafe { first.byte_add(offset) };
        drop(pages);
        let piece = Piece {
            memory: Arc::clone(self),
            index,
            physical,
            bytes: whole,
        };
        let place = (self.domain, physical);
        // SAFETY: `piece` keeps the memory, aligned to a page and initialised by the kernel
        // or whoever had it before, and nobody else has been given these bytes; memory that
        // is locked in a huge page stays where the kernel said that it is.
        let region = unsafe { DmaRegion::new(first, whole, place, Arc::new(piece)) };
        for word in region.words() {
            word.store(0, Ordering::Relaxed);
        }
        Ok(region)
    }

    fn pages(&self) -> MutexGuard<'_, Vec<HugePage>> {
        // Nothing in there panics half-way.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of the first huge page that has one: which page, and where it is in memory.
fn take(pages: &mut [HugePage], bytes: usize) -> Option<(usize, u64)> {
    let mut pages = pages.iter_mut().enumerate();
    pages.find_map(|(index, page)| Some((index, page.free.take(bytes as u64)?)))
}

impl Drop for HugeMemory {
    /// Memory that the device may still write to serves for nothing else.
    fn drop(&mut self) {
        if !self.device.quiet() {
            core::mem::forget(core::mem::take(&mut *self.pages()));
        }
    }
}

/// A part of a huge page that a region has.
#[derive(Debug)]
struct Piece {
    memory: Arc<HugeMemory>,
    index: usize,
    physical: u64,
    bytes: usize,
}

impl Keeper for Piece {}

impl Drop for Piece {
    fn drop(&mut self) {
        // Pages are never taken out, so the index is that of the same page.
        if let Some(page) = self.memory.pages().get_mut(self.index) {
            page.free.give_back(self.physical, self.bytes as u64);
        }
    }
}
