//! The one queue of future events of a drive.

mod order;

use zonelab_device::Nanos;

use order::Ordered;

/// What is due, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A group of flash operations is done ([`crate::media`]); the payload is its token.
    GroupDone(u32),
    /// The array operation that runs on a unit ends, or is due to be looked at again.
    Unit(u32),
    /// The array operation that runs on a unit ends, if it was not suspended.
    Ended(u32),
    /// Who was told that a unit is idle has had its turn: the next may be told.
    Idle(u32),
    /// The transfer that runs on a channel ends.
    Channel(u32),
    /// A wake-up of a background task; the payload is the number of the wake-up, as
    /// given to [`crate::media::Media::when_idle`] (`background`).
    Task(u32),
    /// A command completes without flash work, or leaves the host link.
    Request(u32),
    /// The write buffer's drain is done with a unit, or a pause of it ends.
    Drain,
    /// A piece of the page of a program is in a register of its die; the
    /// payload is the token of its group.
    Loaded(u32),
    /// No program is under way in the media, whose pages were held
    /// for a while ([`crate::media`]).
    Quiet,
    /// The front end can turn to commands that wait in line.
    Line,
    /// The host may have been idle for so long that the SLC cache is folded.
    Fold,
}

/// Bits of an index; three more tell the kind.
const INDEX_BITS: u32 = EVENT_BITS - 3;

impl Event {
    #[inline]
    const fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::GroupDone(i) => (0, i),
            Self::Unit(i) => (1, i),
            Self::Channel(i) => (2, i),
            Self::Task(i) => (3, i),
            Self::Request(i) => (4, i),
            // These have no index, and leave the rest of their kind to another.
            Self::Drain => (5, 0),
            Self::Quiet => (5, 1),
            Self::Line => (5, 2),
            Self::Fold => (5, 3),
            Self::Ended(i) => (5, i + 4),
            Self::Loaded(i) => (6, i),
            Self::Idle(i) => (7, i),
        };
        assert!(index < 1 << INDEX_BITS, "an event index fits in 26 bits");
        kind << INDEX_BITS | index
    }

    #[inline]
    const fn unpack(word: u32) -> Self {
        let index = word & ((1 << INDEX_BITS) - 1);
        match word >> INDEX_BITS {
            0 => Self::GroupDone(index),
            1 => Self::Unit(index),
            2 => Self::Channel(index),
            3 => Self::Task(index),
            4 => Self::Request(index),
            5 => match index {
                0 => Self::Drain,
                1 => Self::Quiet,
                2 => Self::Line,
                3 => Self::Fold,
                _ => Self::Ended(index - 4),
            },
            6 => Self::Loaded(index),
            _ => Self::Idle(index),
        }
    }
}

/// The place of an event among those of the same time ([`EventQueue::reserve`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(u64);

/// Events in order of time, and of insertion where times are equal.
///
/// Time, sequence number and event are one 128-bit key, so that a single integer
/// is compared and moved.
#[derive(Debug, Default, Clone)]
pub struct EventQueue {
    keys: Ordered,
    sequence: u64,
    handled: u64,
}

/// Bits of an event in a key; the sequence number has the next [`SEQUENCE_BITS`].
const EVENT_BITS: u32 = 29;
/// When they run out, those of the waiting events are counted anew.
const SEQUENCE_BITS: u32 = 35;
const _: () = assert!(
    EVENT_BITS + SEQUENCE_BITS == 64,
    "the upper half of a key is the time"
);

impl EventQueue {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: Event) {
        let place = self.reserve();
        self.push_to(place, at, event);
    }

    /// The place that an event would have which was added now: for one that may be added later,
    /// and is to come in the order in which it would have come.
    #[inline]
    pub fn reserve(&mut self) -> Place {
        self.sequence += 1;
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        Place(self.sequence)
    }

    /// Adds an event to a place that was reserved.
    #[inline]
    pub fn push_to(&mut self, place: Place, at: Nanos, event: Event) {
        let low = place.0 << EVENT_BITS | u64::from(event.pack());
        self.keys.push(u128::from(at.0) << 64 | u128::from(low));
    }

    /// Gives the waiting events new sequence numbers, in the same order.
    #[cold]
    fn renumber(&mut self) {
        self.sequence = 0;
        for key in self.keys.take() {
            self.sequence += 1;
            let event = (key as u64) & ((1 << EVENT_BITS) - 1);
            let low = self.sequence << EVENT_BITS | event;
            self.keys.push(key >> 64 << 64 | u128::from(low));
        }
        self.sequence += 1;
        assert!(
            self.sequence >> SEQUENCE_BITS == 0,
            "fewer than 2^35 events wait"
        );
    }

    /// The time of the earliest event.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.keys.first().map(|key| Nanos((key >> 64) as u64))
    }

    /// Takes the earliest event if it is due by `to`.
    #[inline]
    pub fn pop_due(&mut self, to: Nanos) -> Option<(Nanos, Event)> {
        if self.next_at().is_none_or(|at| at > to) {
            return None;
        }
        let key = self.keys.pop()?;
        self.handled += 1;
        let event = (key as u32) & ((1 << EVENT_BITS) - 1);
        Some((Nanos((key >> 64) as u64), Event::unpack(event)))
    }

    /// Moves ends of groups: from the first time, of the group with the token, to the second
    /// time. Each move is of one event that waits.
    pub(crate) fn move_groups(&mut self, mut moves: Vec<(Nanos, u32, Nanos)>) {
        let mut moved = Vec::new();
        self.keys.retain(|key| {
            let at = Nanos((key >> 64) as u64);
            let event = Event::unpack((*key as u32) & ((1 << EVENT_BITS) - 1));
            let found = moves
                .iter()
                .position(|(from, token, _)| (*from, Event::GroupDone(*token)) == (at, event));
            if let Some(found) = found {
                let (_, token, to) = moves.swap_remove(found);
                moved.push((to, token));
            }
            found.is_none()
        });
        debug_assert!(moves.is_empty(), "the end of each group is an event");
        moved.sort_unstable();
        for (to, token) in moved {
            self.push(to, Event::GroupDone(token));
        }
    }

    /// Forgets the events of a kind that carries no index.
    pub(crate) fn forget(&mut self, event: Event) {
        self.keys
            .retain(|key| Event::unpack((*key as u32) & ((1 << EVENT_BITS) - 1)) != event);
    }

    /// Forgets all events that wait.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// Events handled since the queue was made.
    #[must_use]
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Number of events waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_insertion_when_numbers_run_out() {
        let mut queue = EventQueue {
            sequence: (1 << SEQUENCE_BITS) - 3,
            ..EventQueue::default()
        };
        for i in 0..6 {
            queue.push(Nanos(7), Event::Task(i));
        }
        queue.push(Nanos(3), Event::Unit(9));
        assert_eq!(queue.next_at(), Some(Nanos(3)));
        assert_eq!(queue.pop_due(Nanos(2)), None);
        assert_eq!(queue.pop_due(Nanos(9)), Some((Nanos(3), Event::Unit(9))));
        for i in 0..6 {
            assert_eq!(queue.pop_due(Nanos(9)), Some((Nanos(7), Event::Task(i))));
        }
        assert!(queue.is_empty());
        assert_eq!(queue.handled(), 7);
    }

    #[test]
    fn events_survive_packing() {
        let last = (1 << INDEX_BITS) - 1;
        for index in [0, 1, last] {
            for event in [
                Event::GroupDone(index),
                Event::Unit(index),
                Event::Ended(index - index.min(4)),
                Event::Channel(index),
                Event::Task(index),
                Event::Request(index),
                Event::Drain,
                Event::Loaded(index),
                Event::Quiet,
                Event::Fold,
                Event::Line,
                Event::Idle(index),
            ] {
                assert_eq!(Event::unpack(event.pack()), event);
            }
        }
    }
}
