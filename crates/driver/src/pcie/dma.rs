//! Memory that the driver shares with a device.
//!
//! The device reads and writes this memory whenever it likes, so Rust references to
//! plain bytes of it would lie. There are two ways in, both sound whatever the
//! device does at its end:
//!
//! * [`DmaRegion`] gives only atomic words. Rings, PRP lists and bounce memory are
//!   accessed that way and no other.
//! * [`DmaBuf`] gives plain bytes, but only while the device has not been given the
//!   buffer. It is behind a [`Buf`], and a queue holds that while a command is in
//!   flight: nobody is left who could look.

#![expect(
    unsafe_code,
    reason = "owns memory that is shared with a device, and nothing else does"
)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use zonelab_device::{Buf, BufMemory};

/// Bytes of a page: the unit of allocations.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of a word of a region.
const WORD_BYTES: usize = size_of::<AtomicU64>();

/// An I/O address space: addresses mean something only to devices in the same one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Domain(u64);

impl Domain {
    /// One that is unlike all others of this process.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

/// What keeps the memory of a region where it is, and its address valid. Dropping
/// it unmaps and frees.
pub trait Keeper: core::fmt::Debug + Send + Sync {
    /// The device may access the memory from now on, or no longer. Hardware behind
    /// an IOMMU that stays mapped has no use for it; a model refuses accesses that
    /// the driver did not ask for.
    fn lend(&self, to_device: bool) {
        let _ = to_device;
    }
}

/// Memory that a device can reach, in one piece for both sides.
#[derive(Debug)]
pub struct DmaRegion {
    first: NonNull<AtomicU64>,
    words: usize,
    iova: u64,
    domain: Domain,
    keeper: Arc<dyn Keeper>,
}

// SAFETY: the memory belongs to `keeper`, which is `Send` and `Sync`, and all
// accesses through a shared region are atomic.
unsafe impl Send for DmaRegion {}
// SAFETY: as for `Send`.
unsafe impl Sync for DmaRegion {}

impl DmaRegion {
    /// A region of `bytes` bytes at `first`, which the device finds at `iova`.
    ///
    /// # Safety
    /// Until `keeper` is dropped, `first` points to `bytes` bytes of initialised
    /// memory, aligned to 8, that nothing in this program accesses but through
    /// regions or atomically, and `iova` to the same bytes in the address space
    /// `domain` of the device. `bytes` is a multiple of 8.
    #[must_use]
    pub unsafe fn new(
        first: NonNull<AtomicU64>,
        bytes: usize,
        (domain, iova): (Domain, u64),
        keeper: Arc<dyn Keeper>,
    ) -> Self {
        debug_assert!(bytes.is_multiple_of(WORD_BYTES));
        Self {
            first,
            words: bytes / WORD_BYTES,
            iova,
            domain,
            keeper,
        }
    }

    /// Its first byte as the device sees it.
    #[must_use]
    pub const fn iova(&self) -> u64 {
        self.iova
    }

    /// The address space of [`Self::iova`].
    #[must_use]
    pub const fn domain(&self) -> Domain {
        self.domain
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.words * WORD_BYTES
    }

    /// The memory as words of 64 bits, in the byte order of the machine.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `new` had this promised, and `keeper` is there as long as `self`.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }

    /// The memory as words of 32 bits. A part of it that is accessed by these is
    /// never accessed by [`Self::words`].
    #[must_use]
    #[inline]
    pub fn dwords(&self) -> &[AtomicU32] {
        let first = self.first.as_ptr().cast::<AtomicU32>();
        // SAFETY: the same memory; the alignment of a word is enough for a half.
        unsafe { core::slice::from_raw_parts(first, self.words * 2) }
    }

    /// Copies `from` to the start of the region. What does not fit is left out.
    pub fn copy_in(&self, from: &[u8]) {
        copy_in(self.words(), 0, from);
    }

    /// Copies the start of the region to `to`; bytes that the region does not have
    /// stay as they are.
    pub fn copy_out(&self, to: &mut [u8]) {
        copy_out(self.words(), 0, to);
    }

    /// Keeps the memory for as long as the program runs: the device may still write to
    /// it after `self` is gone.
    pub fn leak(&self) {
        core::mem::forget(Arc::clone(&self.keeper));
    }
}

/// Copies `from` to `words` from byte `offset` on, as far as they go.
pub fn copy_in(words: &[AtomicU64], offset: usize, from: &[u8]) {
    let (index, skip) = (offset / WORD_BYTES, offset % WORD_BYTES);
    let mut words = words.iter().skip(index);
    let mut rest = from;
    if skip > 0
        && let Some(word) = words.next()
    {
        let count = rest.len().min(WORD_BYTES - skip);
        merge(word, skip, &rest[..count]);
        rest = &rest[count..];
    }
    let (whole, tail) = rest.as_chunks::<WORD_BYTES>();
    for (bytes, word) in whole.iter().zip(&mut words) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if let Some(word) = words.next().filter(|_| !tail.is_empty()) {
        merge(word, 0, tail);
    }
}

/// Changes some bytes of a word.
fn merge(word: &AtomicU64, at: usize, bytes: &[u8]) {
    let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
    whole[at..at + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
}

/// Copies `words` from byte `offset` on to `to`, as far as they go.
pub fn copy_out(words: &[AtomicU64], offset: usize, to: &mut [u8]) {
    let (index, skip) = (offset / WORD_BYTES, offset % WORD_BYTES);
    let mut words = words.iter().skip(index);
    let mut rest = to;
    if skip > 0
        && let Some(word) = words.next()
    {
        let count = rest.len().min(WORD_BYTES - skip);
        let (head, tail) = rest.split_at_mut(count);
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        head.copy_from_slice(&bytes[skip..skip + count]);
        rest = tail;
    }
    let (whole, tail) = rest.as_chunks_mut::<WORD_BYTES>();
    for (bytes, word) in whole.iter_mut().zip(&mut words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if let Some(word) = words.next().filter(|_| !tail.is_empty()) {
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        tail.copy_from_slice(&bytes[..tail.len()]);
    }
}

/// A data buffer in DMA memory: what a queue need not copy.
///
/// The plain bytes are there only through the [`Buf`] that owns this. A queue that
/// submits the buffer keeps that `Buf`, and lends it to the device for the time of the
/// command.
#[derive(Debug)]
pub struct DmaBuf {
    region: DmaRegion,
    bytes: usize,
}

impl DmaBuf {
    /// A buffer of `bytes` bytes at the start of `region`; at most its length.
    #[must_use]
    pub fn new(region: DmaRegion, bytes: usize) -> Self {
        region.keeper.lend(false);
        let bytes = bytes.min(region.bytes());
        Self { region, bytes }
    }

    /// The same as a [`Buf`].
    #[must_use]
    pub fn into_buf(self) -> Buf {
        Buf::from_memory(Box::new(self))
    }

    /// Where the device finds it.
    #[must_use]
    #[inline]
    pub const fn iova(&self) -> u64 {
        self.region.iova
    }

    /// The address space of [`Self::iova`].
    #[must_use]
    #[inline]
    pub const fn domain(&self) -> Domain {
        self.region.domain
    }

    /// As [`DmaRegion::leak`].
    pub(crate) fn leak(&self) {
        self.region.leak();
    }

    /// Says whether a command is in flight that lets the device access the buffer.
    #[inline]
    pub(crate) fn lend(&self, to_device: bool) {
        self.region.keeper.lend(to_device);
    }
}

impl BufMemory for DmaBuf {
    #[inline]
    fn bytes(&self) -> &[u8] {
        let first = self.region.first.as_ptr().cast::<u8>();
        // SAFETY: initialised memory of at least that length, by `DmaRegion::new`.
        // Nothing writes to it meanwhile: this region is shared with nobody in the
        // program, and the device has the buffer only while a queue holds the `Buf`
        // that `self` is in.
        unsafe { core::slice::from_raw_parts(first, self.bytes) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let first = self.region.first.as_ptr().cast::<u8>();
        // SAFETY: as in `bytes`, and `self` is borrowed exclusively. The memory is
        // inside of atomics, so it may be written through a shared pointer.
        unsafe { core::slice::from_raw_parts_mut(first, self.bytes) }
    }
}
