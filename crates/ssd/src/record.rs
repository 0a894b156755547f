//! What happened in a drive, kept in order of time, within bounds.
//!
//! Nothing is recorded unless the drive's owner asks for it
//! ([`Drive::record`]). Every kind of record has a bound of its own: the first
//! ones are kept, and those that come after are counted, so that a long run
//! cannot fill the memory and nobody mistakes a part for the whole.

use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

use crate::drive::Drive;

/// How much is recorded of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Changes of zone states; 0: they are not recorded.
    pub zone_changes: usize,
}

/// One change of the state of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRecord {
    /// When the drive made the change: on arrival of the command that caused it.
    pub at: Nanos,
    /// The zone.
    pub zone: ZoneId,
    /// Its state before.
    pub from: ZoneState,
    /// Its state from then on.
    pub to: ZoneState,
    /// Its write pointer just before the change, in logical blocks from its
    /// start: at a finish or reset, how full the zone was.
    pub written_lbas: u64,
}

/// The changes of zone states of a run, in the order in which they were made.
///
/// Zones are empty before their first change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneHistory {
    /// The first ones.
    pub records: Vec<ZoneRecord>,
    /// How many more there were after these.
    pub dropped: u64,
}

/// What was recorded of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Changes of zone states.
    pub zones: ZoneHistory,
}

/// The zone changes of a drive that records them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneLog {
    limit: usize,
    history: ZoneHistory,
}

impl Drive {
    /// Starts to record; what was recorded before is dropped. On a drive that
    /// has done nothing yet, the record covers its whole life.
    pub fn record(&mut self, limits: &RecordLimits) {
        self.zones.keep_journal(limits.zone_changes > 0);
        self.zone_log = ZoneLog {
            limit: limits.zone_changes,
            history: ZoneHistory::default(),
        };
    }

    /// What was recorded since [`Drive::record`], and stops recording.
    #[must_use]
    pub fn take_record(&mut self) -> Record {
        self.zones.keep_journal(false);
        Record {
            zones: core::mem::take(&mut self.zone_log).history,
        }
    }

    /// Files the changes that zones have just made, which is whenever their
    /// journal is not empty after a command, a control action or an event that
    /// touches zones.
    #[cold]
    pub(crate) fn record_zone_changes(&mut self) {
        let ZoneLog { limit, history } = &mut self.zone_log;
        for change in self.zones.drain_journal() {
            if history.records.len() == *limit {
                history.dropped += 1;
                continue;
            }
            history.records.push(ZoneRecord {
                at: self.now,
                zone: change.zone,
                from: change.from,
                to: change.to,
                written_lbas: change.written_lbas,
            });
        }
    }
}
