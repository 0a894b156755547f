//! The slowest commands, whatever else is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use zonelab_device::Nanos;

use super::{CommandRecord, RecordLimits, Times};

/// The slowest commands of a window, some of those that move or look at blocks and some of
/// the others. Of equal ones, the earlier count as slower.
#[derive(Clone, Debug)]
pub(super) struct Slowest {
    most: [usize; 2],
    window: (Nanos, Nanos),
    /// Those with blocks, and those without, by latency.
    kept: [BTreeMap<(Nanos, Reverse<u64>), CommandRecord>; 2],
}

fn class(record: &CommandRecord) -> usize {
    usize::from(record.op.nlb() == 0)
}

impl Slowest {
    pub(super) fn new(limits: &RecordLimits) -> Self {
        Self {
            most: [limits.slowest.data, limits.slowest.management],
            window: (limits.from, limits.until),
            kept: Default::default(),
        }
    }

    /// Whether a command may come to be one of them.
    fn can_be(&self, record: &CommandRecord) -> bool {
        let (from, until) = self.window;
        let is_in_window = from <= record.submitted && record.submitted < until;
        is_in_window && self.most[class(record)] > 0
    }

    /// A command has completed at `now`.
    pub(super) fn completed(&mut self, now: Nanos, record: &CommandRecord) {
        if !self.can_be(record) {
            return;
        }
        let kept = &mut self.kept[class(record)];
        let key = (now.saturating_sub(record.submitted), Reverse(record.number));
        let is_full = kept.len() >= self.most[class(record)];
        if is_full
            && kept
                .first_key_value()
                .is_some_and(|(least, _)| key < *least)
        {
            return;
        }
        kept.insert(key, *record);
        if is_full {
            let _ = kept.pop_first();
        }
    }

    /// The lives of those that are slowest so far, and of those in flight that may be.
    pub(super) fn lives<'a>(
        &self,
        now: Nanos,
        in_flight: impl Iterator<Item = &'a CommandRecord>,
    ) -> Times {
        let kept = self.kept.iter().flat_map(|of| of.values());
        let life = |record: &CommandRecord| Some((record.submitted, record.completed?.0));
        let mut lives: Vec<_> = kept.filter_map(life).collect();
        let open = in_flight.filter(|record| self.can_be(record));
        let since = open.map(|record| record.submitted).min();
        lives.push((since.unwrap_or(now), Nanos::MAX));
        Times::new(lives)
    }

    /// The slowest first, those with blocks before the others.
    pub(super) fn into_records(self) -> Vec<CommandRecord> {
        let kept = self.kept.into_iter();
        kept.flat_map(|of| of.into_values().rev()).collect()
    }
}
