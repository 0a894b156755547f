//! Command identifiers: a slot, and how often it has been used.

use super::error::Violation;

/// Slots of a queue at most: the rest of an identifier is its generation.
pub const MAX_SLOTS: u16 = 4095;

/// FFFFh means "no command" in the error log.
const NO_COMMAND: u16 = 0xffff;

/// What a free slot expects: no identifier is that large.
const FREE: u32 = u32::MAX;

/// The command identifiers of a queue.
///
/// The low bits of an identifier are a slot, the high ones the generation of the
/// slot, which goes up with every command. A completion that comes twice, or after
/// its command was given up, does not complete the command that has the slot now.
///
/// Some controllers want small identifiers; then there are no generations, and only
/// the slot protects.
#[derive(Debug)]
pub struct CommandIds {
    // Each has a cache line to spare at its end, so that the queues of two threads do not
    // write to one.
    /// By slot: the identifier in flight, or [`FREE`].
    expected: Vec<u32>,
    /// By slot: the next identifier.
    next: Vec<u16>,
    /// Free slots; the one that was freed last is in the cache.
    free: Vec<u16>,
    /// One generation.
    step: u16,
    slot_mask: u16,
}

/// Bytes that processors move between their caches at once: two lines of 64 where they
/// fetch neighbours.
const CACHE_BYTES: usize = 128;

/// A list with room for that many bytes more.
fn padded<T>(items: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut list = Vec::with_capacity(items.len() + CACHE_BYTES / size_of::<T>());
    list.extend(items);
    list
}

impl CommandIds {
    /// `slots` identifiers, 1 to [`MAX_SLOTS`].
    #[must_use]
    pub fn new(slots: u16, has_generations: bool) -> Self {
        let slots = slots.clamp(1, MAX_SLOTS);
        let bits = 16 - (slots - 1).leading_zeros();
        Self {
            expected: padded((0..slots).map(|_| FREE)),
            next: padded(0..slots),
            free: padded((0..slots).rev()),
            step: if has_generations { 1 << bits } else { 0 },
            slot_mask: ((1_u32 << bits) - 1) as u16,
        }
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> u16 {
        self.expected.len() as u16
    }

    /// Number of identifiers in flight.
    #[must_use]
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.expected.len() - self.free.len()
    }

    /// Whether the slot has a command in flight.
    #[must_use]
    #[inline]
    pub fn is_in_flight(&self, slot: u16) -> bool {
        self.identifier(slot).is_some()
    }

    /// The identifier that is in flight in a slot.
    #[must_use]
    pub fn identifier(&self, slot: u16) -> Option<u16> {
        let expected = *self.expected.get(usize::from(slot))?;
        u16::try_from(expected).ok()
    }

    /// The slot that [`Self::take`] would take.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> Option<u16> {
        self.free.last().copied()
    }

    /// Takes a slot: the slot and the identifier. `None`: all are in flight.
    #[inline]
    pub fn take(&mut self) -> Option<(u16, u16)> {
        let slot = self.free.pop()?;
        let place = usize::from(slot);
        let mut cid = self.next[place];
        if cid == NO_COMMAND {
            cid = cid.wrapping_add(self.step);
        }
        self.next[place] = cid.wrapping_add(self.step);
        self.expected[place] = cid.into();
        Some((slot, cid))
    }

    /// The slot of a completion.
    ///
    /// # Errors
    /// No such command is in flight.
    #[inline]
    pub fn resolve(&self, cid: u16) -> Result<u16, Violation> {
        let slot = cid & self.slot_mask;
        match self.expected.get(usize::from(slot)) {
            Some(expected) if *expected == u32::from(cid) => Ok(slot),
            // Without generations, other high bits are no identifier of ours at all.
            Some(_) if self.step > 0 || cid == slot => Err(Violation::NotInFlight { cid }),
            _ => Err(Violation::NoSuchCommand {
                cid,
                last: self.slots() - 1,
            }),
        }
    }

    /// The command of a slot is over; nothing happens if there is none.
    #[inline]
    pub fn release(&mut self, slot: u16) {
        if let Some(expected) = self.expected.get_mut(usize::from(slot))
            && *expected != FREE
        {
            *expected = FREE;
            self.free.push(slot);
        }
    }
}
