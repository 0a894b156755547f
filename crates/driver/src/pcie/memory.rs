//! DMA memory in ordinary memory, for a controller that is a model.

#![expect(unsafe_code, reason = "makes regions of memory that it owns")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::bus::{DmaError, DmaMemory};
use super::dma::{DmaRegion, Domain, Keeper, PAGE_BYTES, copy_in, copy_out};

/// Where the I/O virtual addresses begin. They have nothing to do with those of the
/// program, so a driver that mixes them up is found out.
const FIRST_IOVA: u64 = 0x4000_0000;

/// Memory of the program that a model of a device accesses as if by DMA.
///
/// It has what an IOMMU has: accesses through addresses that are not mapped, or no
/// longer, or of buffers that the driver has not handed over, are refused and
/// counted. Addresses are never used twice.
#[derive(Clone, Debug)]
pub struct HostMemory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    domain: Domain,
    table: Mutex<Table>,
    faults: AtomicU64,
}

#[derive(Debug)]
struct Table {
    /// By first address.
    mapped: BTreeMap<u64, Weak<Allocation>>,
    next: u64,
}

#[derive(Debug)]
struct Allocation {
    words: Box<[AtomicU64]>,
    is_lent: AtomicBool,
}

impl Keeper for Allocation {
    fn lend(&self, to_device: bool) {
        self.is_lent.store(to_device, Ordering::Release);
    }
}

/// An access of a device that the memory refused: an IOMMU would report it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device accessed {bytes} bytes at {iova:#x}, which are not mapped for it")]
pub struct AccessFault {
    /// The address that it used.
    pub iova: u64,
    /// How many bytes from there on.
    pub bytes: usize,
}

/// A part of the memory that a device has looked up, and that stays there as long
/// as this does.
#[derive(Clone, Debug)]
pub struct Window {
    allocation: Arc<Allocation>,
    offset: usize,
    bytes: usize,
}

impl Window {
    /// The words of the window, if it begins and ends with one.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        let words = self.allocation.words.get(self.offset / 8..);
        words
            .and_then(|words| words.get(..self.bytes / 8))
            .unwrap_or_default()
    }

    /// The word of 32 bits at `index`. A part of memory that is accessed by these is
    /// never accessed by [`Self::words`].
    #[must_use]
    pub fn dword(&self, index: usize) -> Option<&AtomicU32> {
        let word = self.words().get(index / 2)?;
        let first = core::ptr::from_ref(word).cast::<AtomicU32>();
        // SAFETY: a word is two halves, aligned better than one, and borrowed as long as
        // `self` is.
        Some(unsafe { &*first.wrapping_add(index % 2) })
    }
}

impl HostMemory {
    /// Memory of which nothing is allocated yet.
    #[must_use]
    pub fn new() -> Self {
        let table = Table {
            mapped: BTreeMap::new(),
            next: FIRST_IOVA,
        };
        let shared = Shared {
            domain: Domain::new(),
            table: Mutex::new(table),
            faults: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Number of accesses that were refused.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Number of regions that are allocated.
    #[must_use]
    pub fn regions(&self) -> usize {
        let table = self.table();
        let live = table.mapped.values().filter(|of| of.strong_count() > 0);
        live.count()
    }

    /// What a device finds at an address.
    ///
    /// # Errors
    /// [`AccessFault`].
    pub fn window(&self, iova: u64, bytes: usize) -> Result<Window, AccessFault> {
        let fault = AccessFault { iova, bytes };
        let found = self.find(iova, bytes);
        if found.is_none() {
            self.shared.faults.fetch_add(1, Ordering::Relaxed);
        }
        found.ok_or(fault)
    }

    fn find(&self, iova: u64, bytes: usize) -> Option<Window> {
        let table = self.table();
        let (first, allocation) = table.mapped.range(..=iova).next_back()?;
        let allocation = allocation.upgrade()?;
        let offset = usize::try_from(iova - first).ok()?;
        let end = offset.checked_add(bytes)?;
        let is_inside = end <= allocation.words.len() * 8;
        let window = Window {
            allocation,
            offset,
            bytes,
        };
        let is_lent = window.allocation.is_lent.load(Ordering::Acquire);
        (is_inside && is_lent).then_some(window)
    }

    /// The device reads.
    ///
    /// # Errors
    /// [`AccessFault`].
    pub fn read(&self, iova: u64, to: &mut [u8]) -> Result<(), AccessFault> {
        let window = self.window(iova, to.len())?;
        copy_out(&window.allocation.words, window.offset, to);
        Ok(())
    }

    /// The device writes.
    ///
    /// # Errors
    /// [`AccessFault`]; nothing is written then.
    pub fn write(&self, iova: u64, from: &[u8]) -> Result<(), AccessFault> {
        let window = self.window(iova, from.len())?;
        copy_in(&window.allocation.words, window.offset, from);
        Ok(())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing in here can panic half-way.
        let table = self.shared.table.lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for HostMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl DmaMemory for HostMemory {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        let exhausted = || DmaError::Exhausted {
            bytes,
            why: "no such length".to_owned(),
        };
        let pages = bytes.max(1).div_ceil(PAGE_BYTES);
        let bytes = pages.checked_mul(PAGE_BYTES).ok_or_else(exhausted)?;
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        let allocation = Arc::new(Allocation {
            words,
            is_lent: AtomicBool::new(true),
        });
        let mut table = self.table();
        table.mapped.retain(|_, of| of.strong_count() > 0);
        let iova = table.next;
        // A page that belongs to nobody lies between any two.
        table.next += (bytes + PAGE_BYTES) as u64;
        table.mapped.insert(iova, Arc::downgrade(&allocation));
        drop(table);
        let first = allocation.words.as_ptr().cast_mut();
        let first = NonNull::new(first).ok_or_else(exhausted)?;
        let place = (self.shared.domain, iova);
        // SAFETY: `allocation` owns that many bytes of initialised atomics, which stay
        // where they are as long as it is there; all else that accesses them is in
        // this module, by way of the atomics and only while they are lent.
        Ok(unsafe { DmaRegion::new(first, bytes, place, allocation) })
    }
}
