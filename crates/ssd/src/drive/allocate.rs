//! How long it takes until a zone has flash: the firmware chooses it
//! (`mapping.allocation`), unless it has done so in idle time.

use crate::background::Background;
use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::Core;

impl Background {
    /// The physical zone that `zone` stands on, giving it one if it has none.
    /// The command is processed `at` that time; returns when it goes on.
    #[inline]
    pub(crate) fn map_zone(&mut self, core: &mut Core, zone: ZoneId, at: Nanos) -> (u32, Nanos) {
        match core.flash.mapping().physical(zone) {
            Some(physical) => (physical, at),
            None => self.allocate_zone(core, zone, at),
        }
    }

    #[cold]
    fn allocate_zone(&mut self, core: &mut Core, zone: ZoneId, at: Nanos) -> (u32, Nanos) {
        let physical = match self.erases_by_thresholds() {
            true => self.allocate_by_thresholds(core, zone, at),
            false => {
                core.choose_flash(zone);
                core.flash.map(zone)
            }
        };
        let time_ns = core.config.allocation.time_ns;
        if time_ns == Nanos::ZERO || core.prepared.as_mut().is_some_and(|pool| pool.take()) {
            return (physical, at);
        }
        core.front.prolong(time_ns);
        (physical, at.saturating_add(time_ns))
    }

    /// Zones that were opened explicitly get their flash, if they are to get it
    /// then. Returns when the command goes on that is processed `at` that time.
    pub(crate) fn allocate_opened(&mut self, core: &mut Core, at: Nanos) -> Nanos {
        let mut last = at;
        if core.config.allocation.at_open {
            for index in 0..core.changes.len() {
                let change = &core.changes[index];
                if change.to == ZoneState::EXPLICITLY_OPENED {
                    (_, last) = self.map_zone(core, change.zone, last);
                }
            }
        }
        last
    }
}
