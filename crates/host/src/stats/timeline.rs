//! How throughput went over time, in bounded memory.

use zonelab_device::Nanos;

/// Operations that completed in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its start (inclusive).
    pub from: Nanos,
    /// Its end (exclusive).
    pub to: Nanos,
    /// Operations that completed in it.
    pub operations: u64,
}

/// Operations by equal slots of time.
///
/// A slot is one interval at first. Whenever there are more than
/// [`Timeline::SLOTS`], two neighbours become one: a run of any length takes
/// the same memory, and its slots are between half that number and all of it.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Intervals in a slot: a power of two.
    per_slot: u64,
    /// Intervals that ended.
    intervals: u64,
    operations: Vec<u64>,
}

impl Timeline {
    /// Greatest number of slots.
    pub const SLOTS: usize = 240;

    /// Nothing yet. Allocates all that it will ever need.
    pub(super) fn new() -> Self {
        Self {
            per_slot: 1,
            intervals: 0,
            operations: Vec::with_capacity(Self::SLOTS),
        }
    }

    /// Intervals that ended.
    pub(super) const fn intervals(&self) -> u64 {
        self.intervals
    }

    /// Adds `ended` (at least one) intervals: `operations` completed in the
    /// first, none in the others.
    #[cold]
    pub(super) fn push(&mut self, operations: u64, ended: u64) {
        let first = self.intervals;
        self.intervals = first.saturating_add(ended);
        while self.intervals.div_ceil(self.per_slot) > Self::SLOTS as u64 {
            self.fold();
        }
        // Both fit: they are at most SLOTS.
        let slots = self.intervals.div_ceil(self.per_slot) as usize;
        self.operations.resize(slots, 0);
        let slot = ((first / self.per_slot) as usize).min(slots - 1);
        self.operations[slot] += operations;
    }

    fn fold(&mut self) {
        self.per_slot *= 2;
        let slots = self.operations.len().div_ceil(2);
        for slot in 0..slots {
            let pair = self.operations.iter().skip(2 * slot).take(2);
            self.operations[slot] = pair.sum();
        }
        self.operations.truncate(slots);
    }

    /// The slots of intervals of `length` from `start` on. The last one may be
    /// shorter: it holds the intervals that there are.
    pub(super) fn slots(&self, start: Nanos, length: Nanos) -> Vec<Slot> {
        let at = |interval: u64| {
            let since = interval.min(self.intervals).saturating_mul(length.0);
            start.saturating_add(Nanos(since))
        };
        (0_u64..)
            .zip(&self.operations)
            .map(|(slot, &operations)| Slot {
                from: at(slot.saturating_mul(self.per_slot)),
                to: at((slot + 1).saturating_mul(self.per_slot)),
                operations,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(timeline: &Timeline) -> Vec<(u64, u64, u64)> {
        let slots = timeline.slots(Nanos(100), Nanos(10));
        slots
            .iter()
            .map(|s| (s.from.0, s.to.0, s.operations))
            .collect()
    }

    #[test]
    fn neighbours_become_one_when_there_are_too_many() {
        let mut timeline = Timeline::new();
        let most = Timeline::SLOTS as u64;
        for interval in 0..most {
            timeline.push(interval, 1);
        }
        assert_eq!(timeline.operations.len(), Timeline::SLOTS);
        assert_eq!(slots(&timeline)[1], (110, 120, 1));
        timeline.push(7, 1);
        let folded = slots(&timeline);
        assert_eq!(folded.len(), Timeline::SLOTS / 2 + 1);
        assert_eq!(folded[..2], [(100, 120, 1), (120, 140, 2 + 3)]);
        let end = 100 + 10 * (most + 1);
        assert_eq!(
            *folded.last().unwrap(),
            (end - 10, end, 7),
            "half a slot so far"
        );
        let total: u64 = folded.iter().map(|slot| slot.2).sum();
        assert_eq!(total, (0..most).sum::<u64>() + 7);
    }

    #[test]
    fn intervals_without_operations_count_as_time() {
        let mut timeline = Timeline::new();
        timeline.push(5, 3);
        timeline.push(2, 1);
        let expected = [(100, 110, 5), (110, 120, 0), (120, 130, 0), (130, 140, 2)];
        assert_eq!(slots(&timeline), expected);
        timeline.push(1, u64::MAX);
        timeline.push(1, u64::MAX);
        let all = slots(&timeline);
        assert!(all.len() <= Timeline::SLOTS);
        assert_eq!(all.iter().map(|slot| slot.2).sum::<u64>(), 9);
        assert!(timeline.operations.capacity() == Timeline::SLOTS);
    }
}
