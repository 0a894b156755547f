//! What the drive does with commands on random write areas. Which zones have one
//! and what is committed is the business of [`crate::zones`].

use zonelab_device::{Lba, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use crate::drive::{Acceptance, Core};
use crate::flash::{BlockRange, Target};
use crate::zones::{Change, Extent};

impl Core {
    /// Zone management with ZRWA Allocation.
    pub(crate) fn accept_zrwa_send(
        &mut self,
        slba: Lba,
        action: ZoneSendAction,
        request: u32,
    ) -> Result<(), Status> {
        match action {
            ZoneSendAction::OPEN => {
                let mut changes = core::mem::take(&mut self.changes);
                changes.clear();
                let result = self.zones.open_with_zrwa(slba, &mut changes);
                let is_closed = |change: &&Change| change.to == ZoneState::CLOSED;
                self.totals.implicit_closes += changes.iter().filter(is_closed).count() as u64;
                self.changes = changes;
                result
            }
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION => {
                self.changes.clear();
                let data = &self.requests.at(request).data;
                let data = data.as_deref().ok_or(Status::INVALID_FIELD)?;
                self.zones.set_extension_with_zrwa(slba, data)
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

impl Acceptance<'_> {
    /// Takes a write of `nlb` blocks to a random write area, or an explicit
    /// commit of none. The command is `processed` then, and so many bytes of it
    /// are fetched from the host. Returns when it goes on.
    pub(crate) fn place_in_zrwa(
        &mut self,
        extent: &Extent,
        nlb: u32,
        request: u32,
        (mut processed, fetched_bytes): (Nanos, u64),
    ) -> Nanos {
        let zone = extent.zone;
        let bytes = u64::from(nlb) * u64::from(self.core.config.lba_bytes);
        let mut target = Target::NONE;
        if let Some(committed) = extent.zrwa.filter(|committed| committed.nlb > 0) {
            // Fits: see `place_write`.
            let first = committed.offset_lbas as u32;
            let count = committed.nlb;
            let physical;
            (physical, processed) = self.background.map_zone(self.core, zone, processed);
            let range = BlockRange { first, count };
            target = Target { physical, range };
        }
        self.core.totals.host_write_bytes += bytes;
        let generation = self.core.zones.generation(zone);
        if !self.copies.is_empty() {
            self.copies.join_behind(zone, generation, request);
        }
        let request = self.core.requests.at(request);
        request.target = target;
        request.generation = generation;
        let fetched = match fetched_bytes {
            0 => processed,
            _ => self.core.front.fetch(processed, fetched_bytes),
        };
        self.core.in_zone_order(zone, fetched)
    }
}
