//! Random write areas (ZRWA).

use zonelab_nvme::Status;

use super::{Effect, Zone, Zones, number};

impl Zones {
    /// Blocks of a random write area; 0 if there are none.
    #[must_use]
    pub fn area_lbas(&self) -> u64 {
        self.config.zrwa.map_or(0, |zrwa| zrwa.size_lbas.into())
    }

    /// Random write areas of the namespace.
    #[must_use]
    pub fn areas(&self) -> u32 {
        self.count(&self.space, |zone| zone.area.is_some())
    }

    /// Blocks of an area, and of the granularity of its commits.
    fn area_shape(&self) -> (u64, u64) {
        let zrwa = self.config.zrwa.expect("a zone has an area");
        (zrwa.size_lbas.into(), zrwa.flush_granularity_lbas.into())
    }

    pub(super) fn write_area(&mut self, zone: usize, offset: u64, nlb: u32) -> Result<(), Status> {
        let (size, granularity) = self.area_shape();
        let (pointer, end) = (self.zones[zone].pointer, offset + u64::from(nlb));
        if offset < pointer || end > pointer + 2 * size {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.open_for_write(zone)?;
        self.zones[zone].area = self.zones[zone].area.max(Some(end));
        let stored = Effect::Stored {
            zone: number(zone),
            offset,
            nlb,
        };
        self.effects.push(stored);
        // The area moves on until the last block is in it.
        let mut moved = 0;
        while end > pointer + moved + size {
            moved += granularity;
        }
        self.commit_lbas(zone, moved);
        Ok(())
    }

    /// Moves the write pointer of a zone with an area.
    fn commit_lbas(&mut self, zone: usize, lbas: u64) {
        let offset = self.zones[zone].pointer;
        self.advance(zone, lbas);
        if lbas > 0 {
            self.committed(zone, offset, lbas);
        }
    }

    pub(super) fn committed(&mut self, zone: usize, offset: u64, lbas: u64) {
        let zone = number(zone);
        let nlb = u32::try_from(lbas).expect("zones are small");
        self.effects.push(Effect::Committed { zone, offset, nlb });
    }

    /// Flush Explicit ZRWA up to the block `last`. Returns the first block committed.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn commit(&mut self, last: u64) -> Result<u64, Status> {
        let (zone, offset) = self.blocks(last, 1)?;
        if !self.config.zrwa.is_some_and(|zrwa| zrwa.explicit_flush) {
            return Err(Status::INVALID_FIELD);
        }
        let (size, granularity) = self.area_shape();
        let Zone { pointer, area, .. } = self.zones[zone];
        let in_area = area.is_some()
            && (pointer..pointer + size).contains(&offset)
            && offset < self.config.capacity_lbas;
        if !in_area || !(offset + 1).is_multiple_of(granularity) {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        self.open_for_write(zone)?;
        self.commit_lbas(zone, offset + 1 - pointer);
        Ok(last - offset + pointer)
    }

    /// An area can be had.
    fn check_area(&self) -> Result<(), Status> {
        let limit = self.config.zrwa.and_then(|zrwa| zrwa.max_areas);
        match limit {
            Some(limit) if self.areas() >= limit => Err(Status::ZRWA_RESOURCES_UNAVAILABLE),
            _ => Ok(()),
        }
    }

    /// Open Zone that gives the zone an area too.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn open_with_area(&mut self, slba: u64) -> Result<(), Status> {
        let zone = self.zone_at(slba)?;
        if self.config.zrwa.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].is_active() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        self.with_area(zone, |zones| zones.open_zone(zone))
    }

    /// Set Zone Descriptor Extension that gives the zone an area too.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn set_extension_with_area(&mut self, slba: u64, bytes: &[u8]) -> Result<(), Status> {
        let zone = self.zone_at(slba)?;
        if self.config.zrwa.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        self.with_area(zone, |zones| zones.set_extension(slba, bytes))
    }

    /// Nothing has changed if the last of the resources is missing.
    fn with_area(
        &mut self,
        zone: usize,
        activate: impl FnOnce(&mut Self) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let mut copy = self.clone();
        activate(&mut copy)?;
        self.check_area()?;
        *self = copy;
        self.zones[zone].area = Some(0);
        Ok(())
    }
}
