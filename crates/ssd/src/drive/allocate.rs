//! How long it takes until a zone has flash: the firmware chooses it
//! (`mapping.allocation`), unless it has done so in idle time.

use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::Drive;

impl Drive {
    /// The physical zone that `zone` stands on, giving it one if it has none.
    /// The command is processed `at` that time; returns when it goes on.
    #[inline]
    pub(crate) fn map_zone(&mut self, zone: ZoneId, at: Nanos) -> (u32, Nanos) {
        match self.flash.mapping().physical(zone) {
            Some(physical) => (physical, at),
            None => self.allocate_zone(zone, at),
        }
    }

    #[cold]
    fn allocate_zone(&mut self, zone: ZoneId, at: Nanos) -> (u32, Nanos) {
        let physical = match self.erases_by_thresholds() {
            true => self.allocate_by_thresholds(zone, at),
            false => {
                self.choose_flash(zone);
                self.flash.map(zone)
            }
        };
        let time_ns = self.config.allocation.time_ns;
        if time_ns == Nanos::ZERO || self.prepared.as_mut().is_some_and(|pool| pool.take()) {
            return (physical, at);
        }
        self.front.prolong(time_ns);
        (physical, at.saturating_add(time_ns))
    }

    /// Zones that were opened explicitly get their flash, if they are to get it
    /// then. Returns when the command goes on that is processed `at` that time.
    pub(crate) fn allocate_opened(&mut self, at: Nanos) -> Nanos {
        let mut last = at;
        if self.config.allocation.at_open {
            for index in 0..self.changes.len() {
                let change = &self.changes[index];
                if change.to == ZoneState::EXPLICITLY_OPENED {
                    (_, last) = self.map_zone(change.zone, last);
                }
            }
        }
        last
    }
}
