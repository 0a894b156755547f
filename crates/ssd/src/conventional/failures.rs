//! Flash of a log that fails, and what is left of its spare zones.

use zonelab_device::{NamespaceId, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::{Conventional, log_with};
use crate::drive::{BackEnd, Drive};
use crate::zones::Zones;

/// What is left of the spare zones of a conventional namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHealth {
    /// Spare zones that it was made with.
    pub spare_zones: u32,
    /// Those that are left.
    pub spare_left: u32,
    /// Those without which it takes no more writes.
    pub spare_needed: u32,
    /// It takes no more writes.
    pub is_read_only: bool,
}

impl LogHealth {
    /// Failures that it outlives, and the one that it does not, of those that it could when it
    /// was made, in per cent (Available Spare of the SMART log).
    #[must_use]
    pub fn available_percent(&self) -> u8 {
        if self.is_read_only {
            return 0;
        }
        let beyond = |spare: u32| u64::from(spare.saturating_sub(self.spare_needed)) + 1;
        // Fits: there are no more than there were.
        (100 * beyond(self.spare_left) / beyond(self.spare_zones)).min(100) as u8
    }
}

impl Conventional {
    /// A program or an erasure of a zone of the log has failed.
    pub(crate) fn zone_fails(&mut self, end: &mut BackEnd<'_>, zone: ZoneId) {
        if !self.log.fail(zone.0 - self.log.zones().start) {
            return;
        }
        if self.log.has_too_few() {
            self.be_read_only(end);
        }
        self.collect_if_needed(end);
    }

    /// Takes no more writes: those that wait fail.
    #[cold]
    pub(super) fn be_read_only(&mut self, end: &mut BackEnd<'_>) {
        self.log.be_read_only();
        self.waiting_writes_fail(end, Status::NAMESPACE_WRITE_PROTECTED);
    }

    /// Writes that wait for room get none.
    pub(super) fn waiting_writes_fail(&mut self, end: &mut BackEnd<'_>, status: Status) {
        for index in core::mem::take(&mut self.waiting) {
            let nlb = end.core.requests.at(index).op.nlb();
            end.core.write_fails(index, nlb, status);
        }
    }

    /// Zones that have failed are those that the drive says have.
    pub(super) fn find_failed(&mut self, zones: &Zones) {
        self.log.find_failed(|zone| zones.state(zone));
        if self.log.has_too_few() {
            self.log.be_read_only();
        }
    }

    /// After a restart, collection may have nowhere to go, as before: failures took the zones
    /// that it needs.
    pub(super) fn find_stuck(&mut self) {
        if self.log.free_zones() == 0 && self.log.victim().is_none() {
            self.log.be_read_only();
        }
    }
}

impl Drive {
    /// What is left of the spare zones of a conventional namespace; `None`: it is none.
    #[must_use]
    pub fn log_health(&self, nsid: NamespaceId) -> Option<LogHealth> {
        let of = self.conventional.iter().find(|of| of.nsid == nsid)?;
        Some(LogHealth {
            spare_zones: of.log.spare_zones(),
            spare_left: of.log.spare_left(),
            spare_needed: of.log.spare_needed(),
            is_read_only: of.log.is_read_only(),
        })
    }

    /// Whether nothing of it can be written: its zones are read-only or offline, and its logs
    /// have too few zones left.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let zones = &self.core.zones;
        (0..zones.count())
            .map(ZoneId)
            .all(|zone| match log_with(&self.conventional, zone) {
                Some(of) => of.log.is_read_only(),
                None => [ZoneState::READ_ONLY, ZoneState::OFFLINE].contains(&zones.state(zone)),
            })
    }
}
