//! Copies of a drive in the midst of its work.

use crate::changed::ChangedZones;
use crate::record::ZoneLog;

use super::Drive;
use super::policies::Policies;

impl Drive {
    /// A drive in the same state, with the same work to do, that goes on by itself. It records
    /// nothing and has no data: what it does takes as long as if it had, but reads bring nothing,
    /// and comparisons do not fail.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        // What was recorded can be large.
        let log = self.flash.media_mut().ledger_mut().take_log();
        let flash = self.flash.clone();
        self.flash.media_mut().ledger_mut().put_log(log);
        let mut zones = self.zones.clone();
        zones.keep_journal(false);
        Self {
            config: self.config.clone(),
            info: self.info.clone(),
            now: self.now,
            zones,
            prepared: self.prepared,
            flash,
            front: self.front.clone(),
            data: None,
            is_sync_wanted: false,
            resets_kept: self.resets_kept,
            events: self.events.clone(),
            requests: self.requests.clone(),
            background: self.background.clone(),
            buffer: self.buffer.clone(),
            copies: self.copies.clone(),
            conventional: self.conventional.clone(),
            internal_requests: self.internal_requests,
            totals: self.totals,
            host_in_flight: self.host_in_flight.clone(),
            zone_starts: self.zone_starts.clone(),
            ready_at: self.ready_at,
            // What has completed is the host of this drive's.
            backlog: Vec::new(),
            changes: Vec::new(),
            // They cannot be copied: see `has_policies`.
            policies: Policies::default(),
            changed: ChangedZones::new(self.config.namespaces().len()),
            zone_log: ZoneLog::default(),
            recorder: None,
            watch: None,
            absence: self.absence.clone(),
        }
    }
}
