//! The slowest commands, whatever else is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_nvme::Status;

use super::recorder::{put, take};
use super::{CommandRecord, RecordLimits};

/// The slowest commands of a window, some of those that move or look at blocks and as many of
/// the others. Of equal ones, the earlier count as slower.
#[derive(Clone, Debug)]
pub(super) struct Slowest {
    most: usize,
    window: (Nanos, Nanos),
    in_flight: Vec<Option<CommandRecord>>,
    /// Those with blocks, and those without, by latency.
    kept: [BTreeMap<(Nanos, Reverse<u64>), CommandRecord>; 2],
}

impl Slowest {
    pub(super) fn new(limits: &RecordLimits) -> Self {
        Self {
            most: limits.slowest,
            window: (limits.from, limits.until),
            in_flight: Vec::new(),
            kept: Default::default(),
        }
    }

    pub(super) fn submitted(&mut self, slot: u32, record: &CommandRecord) {
        let (from, until) = self.window;
        if self.most > 0 && from <= record.submitted && record.submitted < until {
            put(&mut self.in_flight, slot, *record);
        } else {
            // Its slot may have been that of one that never completed.
            let _ = take(&mut self.in_flight, slot);
        }
    }

    pub(super) fn started(&mut self, slot: u32, at: Nanos) {
        if let Some(Some(record)) = self.in_flight.get_mut(slot as usize) {
            record.started = Some(at);
        }
    }

    pub(super) fn completed(&mut self, now: Nanos, slot: u32, status: Status) {
        let Some(mut record) = take(&mut self.in_flight, slot) else {
            return;
        };
        record.completed = Some((now, status));
        let kept = &mut self.kept[usize::from(record.op.nlb() == 0)];
        let latency = now.saturating_sub(record.submitted);
        kept.insert((latency, Reverse(record.number)), record);
        if kept.len() > self.most {
            let _ = kept.pop_first();
        }
    }

    /// Power is lost: what is in flight never completes.
    pub(super) fn power_cut(&mut self) {
        self.in_flight.clear();
    }

    /// The slowest first, those with blocks before the others.
    pub(super) fn into_records(self) -> Vec<CommandRecord> {
        let kept = self.kept.into_iter();
        kept.flat_map(|of| of.into_values().rev()).collect()
    }
}
