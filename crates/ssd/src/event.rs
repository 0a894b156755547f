//! The one queue of future events of a drive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use zonelab_device::Nanos;

/// What is due, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A group of flash operations is done ([`crate::media`]); the payload is its token.
    GroupDone(u32),
    /// The array operation that runs on a unit ends, or is due to be looked at again.
    Unit(u32),
    /// The transfer that runs on a channel ends.
    Channel(u32),
    /// A background task wants to run ([`crate::background`]).
    Task(u32),
    /// A command completes without flash work, or leaves the host link.
    Request(u32),
}

impl Event {
    const fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::GroupDone(i) => (0, i),
            Self::Unit(i) => (1, i),
            Self::Channel(i) => (2, i),
            Self::Task(i) => (3, i),
            Self::Request(i) => (4, i),
        };
        assert!(index < 1 << 28, "an event index fits in 28 bits");
        kind << 28 | index
    }

    const fn unpack(word: u32) -> Self {
        let index = word & ((1 << 28) - 1);
        match word >> 28 {
            0 => Self::GroupDone(index),
            1 => Self::Unit(index),
            2 => Self::Channel(index),
            3 => Self::Task(index),
            _ => Self::Request(index),
        }
    }
}

/// Events in order of time, and of insertion where times are equal.
#[derive(Debug, Default, Clone)]
pub struct EventQueue {
    /// `(time, sequence number, packed event)`; the sequence number makes every key unique.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
}

impl EventQueue {
    /// Adds an event.
    pub fn push(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at.0, self.sequence, event.pack())));
    }

    /// The time of the earliest event.
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| Nanos(*at))
    }

    /// Takes the earliest event if it is due by `to`.
    pub fn pop_due(&mut self, to: Nanos) -> Option<(Nanos, Event)> {
        if self.heap.peek().is_none_or(|Reverse((at, ..))| *at > to.0) {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, word))| (Nanos(at), Event::unpack(word)))
    }

    /// Number of events waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
