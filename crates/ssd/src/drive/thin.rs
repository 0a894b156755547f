//! Drives with more zones than flash (`mapping.thin`).
//!
//! A zone has all its flash from when it leaves the state Empty. If there is not
//! enough it does not leave it: the command ends with Capacity Exceeded, which
//! is what NVMe has for namespaces with thin provisioning (NSFEAT, NCAP, NUSE).
//! So what a zone has accepted, and what it will accept until it is full, always
//! has flash. See decision 20.

use zonelab_device::{Lba, Op, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::{Core, Drive};

/// The address of the one zone that a command could open.
pub(super) const fn opened_by(op: &Op) -> Option<Lba> {
    match *op {
        Op::Write { slba, .. }
        | Op::WriteZeroes { slba, .. }
        | Op::Append { zslba: slba, .. }
        | Op::Copy { sdlba: slba, .. }
        | Op::ZrwaSend { slba, .. }
        | Op::ZoneSend {
            slba,
            select_all: false,
            ..
        } => Some(slba),
        _ => None,
    }
}

impl Core {
    pub(crate) fn is_active(&self, zone: ZoneId) -> bool {
        let state = self.zones.state(zone);
        state == ZoneState::IMPLICITLY_OPENED
            || state == ZoneState::EXPLICITLY_OPENED
            || state == ZoneState::CLOSED
    }

    /// The first zone of a range for which there is no flash, if all are to get some.
    pub(super) fn first_without_flash(&self, zones: std::ops::Range<u32>) -> Option<ZoneId> {
        if !self.config.allocation.thin {
            return None;
        }
        let groups = self.flash.layout().groups();
        let mut needed = vec![0; groups as usize];
        zones.map(ZoneId).find(|zone| {
            let needed = &mut needed[(zone.0 % groups) as usize];
            *needed += u32::from(self.flash.mapping().physical(*zone).is_none());
            *needed > self.flash.zones_left(*zone)
        })
    }
}

impl Drive {
    /// How many more zones can leave the state Empty before a zone is finished or
    /// reset. It is that of the zones there are if there is flash for all.
    #[must_use]
    pub fn zones_left(&self) -> u32 {
        let groups = self
            .core
            .flash
            .layout()
            .groups()
            .min(self.core.config.zones.count);
        let mut empty = vec![0; groups as usize];
        for zone in (0..self.core.config.zones.count).map(ZoneId) {
            let is_empty = self.core.zones.state(zone) == ZoneState::EMPTY;
            empty[(zone.0 % groups) as usize] += u32::from(is_empty);
        }
        if !self.core.config.allocation.thin {
            return empty.iter().sum();
        }
        let backed = |group: u32| self.core.flash.zones_left(ZoneId(group));
        let least = |(group, empty): (u32, u32)| empty.min(backed(group));
        (0..).zip(empty).map(least).sum()
    }
}
