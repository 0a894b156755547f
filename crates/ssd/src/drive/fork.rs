//! Copies of a drive in the midst of its work.

use crate::changed::ChangedZones;
use crate::record::ZoneLog;

use super::effect::Effects;
use super::plain::PlainWay;
use super::policies::Policies;
use super::{Core, Drive};

impl Drive {
    /// A drive in the same state, with the same work to do, that goes on by itself. It records
    /// nothing and has no data: what it does takes as long as if it had, but reads bring nothing,
    /// and comparisons do not fail.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        // What was recorded can be large.
        let log = self.core.flash.media_mut().ledger_mut().take_log();
        let flash = self.core.flash.clone();
        self.core.flash.media_mut().ledger_mut().put_log(log);
        let mut zones = self.core.zones.clone();
        zones.keep_journal(false);
        let core = Core {
            config: self.core.config.clone(),
            info: self.core.info.clone(),
            now: self.core.now,
            zones,
            prepared: self.core.prepared,
            flash,
            front: self.core.front.clone(),
            window: self.core.window.clone(),
            data: None,
            is_sync_wanted: false,
            reservations: Vec::new(),
            resets_kept: self.core.resets_kept,
            events: self.core.events.clone(),
            requests: self.core.requests.clone(),
            has_logs: self.core.has_logs,
            placement: self.core.placement.clone(),
            internal_requests: self.core.internal_requests,
            totals: self.core.totals,
            host_in_flight: self.core.host_in_flight.clone(),
            zone_starts: self.core.zone_starts.clone(),
            ready_at: self.core.ready_at,
            effects: Effects::default(),
            // What has completed is the host of this drive's.
            backlog: Vec::new(),
            changes: Vec::new(),
            // They cannot be copied: see `has_policies`.
            policies: Policies::default(),
            changed: ChangedZones::new(self.core.config.namespaces().len()),
            zone_log: ZoneLog::default(),
            recorder: None,
            watch: None,
            absence: self.core.absence.clone(),
        };
        let mut fork = Self {
            core,
            background: self.background.clone(),
            buffer: self.buffer.clone(),
            copies: self.copies.clone(),
            conventional: self.conventional.clone(),
            plain: PlainWay::default(),
        };
        fork.plain
            .look(&fork.core, &fork.background, fork.buffer.is_some());
        fork
    }
}
