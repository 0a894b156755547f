//! Zones of a log whose flash has failed.
//!
//! A zone in which a program or an erasure failed is written no more, and not erased again:
//! what it holds can be read, is moved, and from then on the zone serves no more. So each
//! failure takes one of the spare zones. With fewer of them than collection needs, nothing
//! can be written any more, and everything can be read.

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;

use super::{Log, NONE};

impl Log {
    /// A zone fails. Returns whether it had not before.
    pub(crate) fn fail(&mut self, zone: u32) -> bool {
        let is_new = !std::mem::replace(&mut self.failed[zone as usize], true);
        if is_new {
            self.failed_zones += 1;
            self.free.retain(|of| *of != zone);
            for open in self.open.iter_mut().filter(|open| **open == zone) {
                *open = NONE;
            }
        }
        is_new
    }

    /// Zones that have failed are those of the drive that have.
    pub(crate) fn find_failed(&mut self, state: impl Fn(ZoneId) -> ZoneState) {
        for (zone, failed) in (self.zones.start..).zip(&mut self.failed) {
            let state = state(ZoneId(zone));
            *failed = [ZoneState::READ_ONLY, ZoneState::OFFLINE].contains(&state);
        }
        // Fits: they are zones of the drive.
        self.failed_zones = self.failed.iter().filter(|failed| **failed).count() as u32;
    }

    /// A zone has failed.
    #[inline]
    pub(crate) fn has_failed(&self, zone: u32) -> bool {
        self.failed[zone as usize]
    }

    /// A zone that has failed and still holds something.
    pub(crate) fn failed_to_move(&self) -> Option<u32> {
        if self.failed_zones == 0 {
            return None;
        }
        let failed = self.failed.iter().zip(&self.valid);
        let position = failed
            .into_iter()
            .position(|(failed, valid)| *failed && *valid > 0);
        // Fits: they are zones of the drive.
        position.map(|zone| zone as u32)
    }

    /// Zones that are spare, of those that serve.
    pub(crate) fn spare_left(&self) -> u32 {
        self.spare_zones().saturating_sub(self.failed_zones)
    }

    /// Zones that were spare when all of them served.
    pub(crate) fn spare_zones(&self) -> u32 {
        // Fit: they are zones of the drive.
        let addressable = self.places.len() as u32 / self.capacity.max(1);
        (self.failed.len() as u32).saturating_sub(addressable)
    }

    /// It takes no more writes: there are fewer spare zones than collection needs.
    #[inline]
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Takes no more writes from now on.
    pub(crate) fn be_read_only(&mut self) {
        self.is_read_only = true;
    }

    /// Whether failures have left fewer spare zones than collection needs.
    pub(crate) fn has_too_few(&self) -> bool {
        self.spare_left() < self.spare_needed().min(self.spare_zones())
    }

    /// Spare zones without which collection may find no room.
    pub(crate) fn spare_needed(&self) -> u32 {
        // Fits: there are at most 256 streams.
        self.streams.count() as u32 + 1
    }

    /// What a zone that has failed holds is moved from now on, or not any more. Meanwhile the
    /// host leaves one empty zone more: this gives none back.
    pub(crate) fn moves_failed(&mut self, is_moving: bool) {
        self.kept_zones = if is_moving { 2 } else { 1 };
    }
}
