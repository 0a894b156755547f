//! Submission and completion rings in DMA memory.
//!
//! Entries are moved as atomic words of 64 bits. On all machines that is the same
//! instruction as a plain move, and the device at the other end can do what it likes
//! without undefined behaviour in here.

use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

use super::bus::Registers;
use super::dma::DmaRegion;
use super::doorbell::Doorbell;
use super::error::Violation;
use super::sync::{AtomicU64, Ordering};

/// Words of a submission queue entry.
const SQE_WORDS: usize = size_of::<SubmissionEntry>() / 8;
/// Words of a completion queue entry.
const CQE_WORDS: usize = size_of::<CompletionEntry>() / 8;
/// The phase tag in the second word of a completion queue entry.
const PHASE_BIT: u32 = 48;

/// Bytes of a submission ring of so many entries.
#[must_use]
pub const fn submission_bytes(entries: u32) -> usize {
    entries as usize * size_of::<SubmissionEntry>()
}

/// Bytes of a completion ring of so many entries.
#[must_use]
pub const fn completion_bytes(entries: u32) -> usize {
    entries as usize * size_of::<CompletionEntry>()
}

/// A submission ring: the driver fills it at the tail, the controller empties it at
/// the head.
///
/// Invariant: the entries from `head` up to `tail` have been pushed and, as far as the
/// driver knows, not been fetched; there is always one free entry, so that equal means
/// empty.
#[derive(Debug)]
pub struct SubmissionRing {
    region: DmaRegion,
    entries: u32,
    head: u16,
    tail: u16,
    doorbell: Doorbell,
}

impl SubmissionRing {
    /// An empty ring of `entries` entries, 2 to 65536, in zeroed memory that has room
    /// for them.
    #[must_use]
    pub fn new(region: DmaRegion, entries: u32, doorbell: Doorbell) -> Self {
        debug_assert!(region.bytes() >= submission_bytes(entries));
        Self {
            region,
            entries,
            head: 0,
            tail: 0,
            doorbell,
        }
    }

    /// Entries that are pushed and not fetched, as far as the driver knows.
    #[inline]
    fn distance(&self, from: u16, to: u16) -> u32 {
        match to.checked_sub(from) {
            Some(distance) => distance.into(),
            None => self.entries - u32::from(from - to),
        }
    }

    /// Whether nothing more fits.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.distance(self.head, self.tail) + 1 >= self.entries
    }

    /// Puts an entry at the tail. False: the ring is full.
    #[inline]
    pub fn push(&mut self, entry: &SubmissionEntry) -> bool {
        if self.is_full() {
            return false;
        }
        let first = usize::from(self.tail) * SQE_WORDS;
        let (words, _) = entry.as_bytes().as_chunks::<8>();
        if let Some(slots) = self.region.words().get(first..first + SQE_WORDS) {
            for (slot, word) in slots.iter().zip(words) {
                slot.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
        }
        self.tail = next(self.tail, self.entries);
        true
    }

    /// Tells the controller of the tail, unless it knows.
    #[inline]
    pub fn ring(&mut self, registers: &impl Registers) {
        self.doorbell.ring(registers, self.tail);
    }

    /// Takes note of a head that the controller reports.
    ///
    /// # Errors
    /// It is not between the last one and the tail. The head stays.
    #[inline]
    pub fn fetched_to(&mut self, head: u16) -> Result<(), Violation> {
        let is_inside = u32::from(head) < self.entries;
        if is_inside && self.distance(self.head, head) <= self.distance(self.head, self.tail) {
            self.head = head;
            return Ok(());
        }
        Err(Violation::BadHead {
            head,
            from: self.head,
            to: self.tail,
            entries: self.entries,
        })
    }

    /// How often its doorbell register was written.
    #[must_use]
    pub const fn doorbell_writes(&self) -> u64 {
        self.doorbell.writes()
    }

    /// Keeps the memory for good: the device may still access it.
    pub fn leak(&self) {
        self.region.leak();
    }
}

/// A completion ring: the controller fills it, the driver empties it at the head.
///
/// Invariant: an entry is new if its phase tag equals `phase`, which changes each time
/// that the head goes round. A ring begins with zeroed memory and phase 1.
#[derive(Debug)]
pub struct CompletionRing {
    region: DmaRegion,
    entries: u32,
    head: u16,
    phase: bool,
    doorbell: Doorbell,
}

impl CompletionRing {
    /// An empty ring of `entries` entries, 2 to 65536, in zeroed memory that has room
    /// for them.
    #[must_use]
    pub fn new(region: DmaRegion, entries: u32, doorbell: Doorbell) -> Self {
        debug_assert!(region.bytes() >= completion_bytes(entries));
        Self {
            region,
            entries,
            head: 0,
            phase: true,
            doorbell,
        }
    }

    /// Takes the entry at the head, if it is new.
    #[inline]
    pub fn pop(&mut self) -> Option<CompletionEntry> {
        let first = usize::from(self.head) * CQE_WORDS;
        let slots = self.region.words().get(first..first + CQE_WORDS)?;
        let [low, high] = slots else {
            return None;
        };
        // The phase tag first, with acquire: the rest is not older than it.
        let high = high.load(Ordering::Acquire);
        if phase_of(high) != self.phase {
            return None;
        }
        let low = low.load(Ordering::Relaxed);
        self.head = next(self.head, self.entries);
        self.phase ^= self.head == 0;
        let mut bytes = [0; size_of::<CompletionEntry>()];
        bytes[..8].copy_from_slice(&low.to_ne_bytes());
        bytes[8..].copy_from_slice(&high.to_ne_bytes());
        CompletionEntry::read_from_bytes(&bytes).ok()
    }

    /// Tells the controller of the head, unless it knows.
    #[inline]
    pub fn ring(&mut self, registers: &impl Registers) {
        self.doorbell.ring(registers, self.head);
    }

    /// How often its doorbell register was written.
    #[must_use]
    pub const fn doorbell_writes(&self) -> u64 {
        self.doorbell.writes()
    }

    /// Keeps the memory for good: the device may still access it.
    pub fn leak(&self) {
        self.region.leak();
    }
}

/// The phase tag of a second word.
#[inline]
const fn phase_of(high: u64) -> bool {
    u64::from_le(high) >> PHASE_BIT & 1 != 0
}

/// The position after `at`.
#[inline]
fn next(at: u16, entries: u32) -> u16 {
    let next = u32::from(at) + 1;
    if next == entries { 0 } else { next as u16 }
}

/// The controller's side of a completion ring, for models: stores an entry so that a
/// driver that sees the phase tag sees all of it. `slots` are the two words of the
/// entry.
pub fn store_completion(slots: &[AtomicU64], entry: &CompletionEntry) {
    let (words, _) = entry.as_bytes().as_chunks::<8>();
    if let ([low, high], [first, second]) = (slots, words) {
        low.store(u64::from_ne_bytes(*first), Ordering::Relaxed);
        high.store(u64::from_ne_bytes(*second), Ordering::Release);
    }
}

/// The controller's side of a submission ring, for models: the entry in these words.
#[must_use]
pub fn load_submission(slots: &[AtomicU64]) -> SubmissionEntry {
    let mut bytes = [0; size_of::<SubmissionEntry>()];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(slots) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    SubmissionEntry::read_from_bytes(&bytes).unwrap_or_default()
}
