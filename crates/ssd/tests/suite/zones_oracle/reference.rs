//! A second implementation of the zone state machine, to compare with.
//!
//! It follows the prose of the ZNS command set and is naive on purpose: nothing
//! is kept that can be counted, write pointers are addresses, and every rule is
//! an `if` where it applies. It shares no code with the drive.

use std::collections::BTreeSet;

use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_ssd::config::ZonesConfig;

#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) state: ZoneState,
    /// The address that is written next; the end of the capacity if nothing is.
    pub(crate) pointer: u64,
    pub(crate) host_lbas: u64,
    pub(crate) extension: Option<Vec<u8>>,
    /// With a random write area: the addresses in it that were written.
    pub(crate) area: Option<BTreeSet<u64>>,
    /// When it was opened implicitly.
    opened_at: u64,
}

impl Zone {
    pub(crate) fn is_open(&self) -> bool {
        self.state == ZoneState::IMPLICITLY_OPENED || self.state == ZoneState::EXPLICITLY_OPENED
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_open() || self.state == ZoneState::CLOSED
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) config: ZonesConfig,
    pub(crate) zones: Vec<Zone>,
    clock: u64,
}

impl Reference {
    pub(crate) fn new(config: &ZonesConfig) -> Self {
        let zone = |index: u32| Zone {
            state: ZoneState::EMPTY,
            pointer: u64::from(index) * config.size_lbas,
            host_lbas: 0,
            extension: None,
            area: None,
            opened_at: 0,
        };
        Self {
            config: *config,
            zones: (0..config.count).map(zone).collect(),
            clock: 0,
        }
    }

    pub(crate) fn start(&self, zone: usize) -> u64 {
        zone as u64 * self.config.size_lbas
    }

    pub(crate) fn end(&self, zone: usize) -> u64 {
        self.start(zone) + self.config.capacity_lbas
    }

    pub(crate) fn open(&self) -> usize {
        self.zones.iter().filter(|z| z.is_open()).count()
    }

    pub(crate) fn active(&self) -> usize {
        self.zones.iter().filter(|z| z.is_active()).count()
    }

    pub(crate) fn in_state(&self, state: ZoneState) -> Vec<usize> {
        let is = |zone: &usize| self.zones[*zone].state == state;
        (0..self.zones.len()).filter(is).collect()
    }

    /// Blocks of a random write area; 0 if there are none.
    pub(crate) fn area_lbas(&self) -> u64 {
        self.config.zrwa.map_or(0, |zrwa| zrwa.size_lbas.into())
    }

    pub(crate) fn areas(&self) -> usize {
        self.zones.iter().filter(|z| z.area.is_some()).count()
    }

    /// Returns the first address written.
    pub(crate) fn write(&mut self, slba: u64, nlb: u32) -> Result<u64, Status> {
        let zone = self.zone_of_blocks(slba, nlb)?;
        if slba + u64::from(nlb) > self.end(zone) {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        self.check_writable(zone)?;
        if self.zones[zone].area.is_some() {
            return self.write_in_area(zone, slba, nlb);
        }
        if slba != self.zones[zone].pointer {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.write_at_pointer(zone, nlb)
    }

    /// Returns the first address written.
    pub(crate) fn append(&mut self, zslba: u64, nlb: u32) -> Result<u64, Status> {
        let zone = self.zone_of_blocks(zslba, nlb)?;
        if zslba != self.start(zone) {
            return Err(Status::INVALID_FIELD);
        }
        self.check_writable(zone)?;
        if self.zones[zone].area.is_some() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        if self.zones[zone].pointer + u64::from(nlb) > self.end(zone) {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        self.write_at_pointer(zone, nlb)
    }

    fn write_in_area(&mut self, zone: usize, slba: u64, nlb: u32) -> Result<u64, Status> {
        let (size, granularity) = self.area_shape();
        let pointer = self.zones[zone].pointer;
        let last = slba + u64::from(nlb) - 1;
        if slba < pointer || last >= pointer + 2 * size {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.open_implicitly(zone)?;
        // The area moves on until the last block is in it.
        let mut moved = pointer;
        while last >= moved + size {
            moved += granularity;
        }
        if let Some(area) = &mut self.zones[zone].area {
            area.extend(slba..=last);
        }
        self.commit_up_to(zone, moved);
        Ok(slba)
    }

    /// Flush Explicit ZRWA up to the block `last`. Returns the first block committed.
    pub(crate) fn commit(&mut self, last: u64) -> Result<u64, Status> {
        let zone = self.zone_of_blocks(last, 1)?;
        if !self.config.zrwa.is_some_and(|zrwa| zrwa.explicit_flush) {
            return Err(Status::INVALID_FIELD);
        }
        let (size, granularity) = self.area_shape();
        let pointer = self.zones[zone].pointer;
        let in_area = self.zones[zone].area.is_some()
            && last >= pointer
            && last < pointer + size
            && last < self.end(zone);
        if !in_area || !(last + 1 - self.start(zone)).is_multiple_of(granularity) {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        self.open_implicitly(zone)?;
        self.commit_up_to(zone, last + 1);
        Ok(pointer)
    }

    /// Moves the write pointer of a zone with an area, which is open.
    fn commit_up_to(&mut self, zone: usize, pointer: u64) {
        let end = self.end(zone);
        let zone = &mut self.zones[zone];
        zone.host_lbas += pointer - zone.pointer;
        zone.pointer = pointer;
        if let Some(area) = &mut zone.area {
            area.retain(|lba| *lba >= pointer);
        }
        if pointer == end {
            zone.state = ZoneState::FULL;
            zone.area = None;
        }
    }

    fn area_shape(&self) -> (u64, u64) {
        let zrwa = self.config.zrwa.expect("a zone has an area");
        (zrwa.size_lbas.into(), zrwa.flush_granularity_lbas.into())
    }

    fn check_area(&self) -> Result<(), Status> {
        let limit = self.config.zrwa.and_then(|zrwa| zrwa.max_areas);
        match limit {
            Some(limit) if self.areas() >= limit as usize => {
                Err(Status::ZRWA_RESOURCES_UNAVAILABLE)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn open_with_area(&mut self, slba: u64) -> Result<(), Status> {
        let zone = self.zone_starting_at(slba)?;
        if self.config.zrwa.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].is_active() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        // Nothing may have changed if the last of the resources is missing.
        let mut copy = self.clone();
        copy.open_explicitly(zone)?;
        self.check_area()?;
        *self = copy;
        self.zones[zone].area = Some(BTreeSet::new());
        Ok(())
    }

    pub(crate) fn set_extension_with_area(
        &mut self,
        slba: u64,
        bytes: &[u8],
    ) -> Result<(), Status> {
        let zone = self.zone_starting_at(slba)?;
        if self.config.zrwa.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        let mut copy = self.clone();
        copy.set_extension(slba, bytes)?;
        self.check_area()?;
        *self = copy;
        self.zones[zone].area = Some(BTreeSet::new());
        Ok(())
    }

    pub(crate) fn read(&self, slba: u64, nlb: u32) -> Result<(), Status> {
        let first = self.zone_of_blocks(slba, nlb)?;
        for lba in slba..slba + u64::from(nlb) {
            let zone = (lba / self.config.size_lbas) as usize;
            if zone != first && !self.config.read_across {
                return Err(Status::ZONE_BOUNDARY_ERROR);
            }
            if self.zones[zone].state == ZoneState::OFFLINE {
                return Err(Status::ZONE_IS_OFFLINE);
            }
        }
        Ok(())
    }

    pub(crate) fn send(&mut self, slba: u64, action: ZoneSendAction) -> Result<(), Status> {
        let zone = self.zone_starting_at(slba)?;
        match action {
            ZoneSendAction::OPEN => self.open_explicitly(zone),
            ZoneSendAction::CLOSE => self.close(zone),
            ZoneSendAction::FINISH => self.finish(zone),
            ZoneSendAction::RESET => self.reset(zone),
            ZoneSendAction::OFFLINE => self.offline(zone),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub(crate) fn send_all(&mut self, action: ZoneSendAction) -> Result<(), Status> {
        use ZoneState as S;
        let states: &[S] = match action {
            ZoneSendAction::OPEN => &[S::CLOSED],
            ZoneSendAction::CLOSE => &[S::IMPLICITLY_OPENED, S::EXPLICITLY_OPENED],
            ZoneSendAction::FINISH => &[S::IMPLICITLY_OPENED, S::EXPLICITLY_OPENED, S::CLOSED],
            ZoneSendAction::RESET => &[
                S::IMPLICITLY_OPENED,
                S::EXPLICITLY_OPENED,
                S::CLOSED,
                S::FULL,
            ],
            ZoneSendAction::OFFLINE => &[S::READ_ONLY],
            _ => return Err(Status::INVALID_FIELD),
        };
        // All or nothing: try it on a copy.
        let mut copy = self.clone();
        for zone in 0..self.zones.len() {
            if states.contains(&self.zones[zone].state) {
                copy.send(self.start(zone), action)?;
            }
        }
        *self = copy;
        Ok(())
    }

    pub(crate) fn set_extension(&mut self, slba: u64, bytes: &[u8]) -> Result<(), Status> {
        let zone = self.zone_starting_at(slba)?;
        let len = self.config.descriptor_extension_bytes as usize;
        if len == 0 || bytes.len() < len {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].state != ZoneState::EMPTY {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.check_active()?;
        self.zones[zone].state = ZoneState::CLOSED;
        self.zones[zone].extension = Some(bytes[..len].to_vec());
        Ok(())
    }

    pub(crate) fn fail(&mut self, zone: usize, to: ZoneState) -> Result<(), Status> {
        let Some(zone) = self.zones.get_mut(zone) else {
            return Err(Status::LBA_OUT_OF_RANGE);
        };
        if to != ZoneState::READ_ONLY && to != ZoneState::OFFLINE {
            return Err(Status::INVALID_FIELD);
        }
        if zone.state == ZoneState::OFFLINE && to == ZoneState::READ_ONLY {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        zone.state = to;
        zone.area = None;
        if to == ZoneState::OFFLINE {
            zone.extension = None;
        }
        Ok(())
    }

    pub(crate) fn precondition_full(&mut self, from: usize, to: usize) -> Result<(), Status> {
        if from >= to {
            return Ok(());
        }
        if to > self.zones.len() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        for zone in from..to {
            if self.zones[zone].state != ZoneState::EMPTY {
                return Err(Status::INVALID_ZONE_STATE_TRANSITION);
            }
        }
        for zone in from..to {
            self.zones[zone].pointer = self.end(zone);
            self.zones[zone].host_lbas = self.config.capacity_lbas;
            self.zones[zone].state = ZoneState::FULL;
        }
        Ok(())
    }

    /// Returns the report in `len` bytes, and how many of them mean something.
    pub(crate) fn report(
        &self,
        slba: u64,
        filter: ReportFilter,
        partial: bool,
        extended: bool,
        len: usize,
    ) -> Result<(Vec<u8>, usize), Status> {
        let first = self.zone_of_blocks(slba, 1)?;
        let extension_len = self.config.descriptor_extension_bytes as usize;
        if filter.0 > 7 || (extended && extension_len == 0) || len < 64 {
            return Err(Status::INVALID_FIELD);
        }
        let entry_len = if extended { 64 + extension_len } else { 64 };
        let mut report = vec![0; 64];
        let mut matching = 0_u64;
        let mut reported = 0_u64;
        for zone in first..self.zones.len() {
            let wanted = [0x0, 0x1, 0x2, 0x3, 0x4, 0xe, 0xd, 0xf][filter.0 as usize];
            if wanted != 0 && self.zones[zone].state.0 != wanted {
                continue;
            }
            matching += 1;
            if report.len() + entry_len <= len {
                report.extend(self.describe(zone));
                if extended {
                    let none = vec![0; extension_len];
                    report.extend(self.zones[zone].extension.as_ref().unwrap_or(&none));
                }
                reported += 1;
            }
        }
        let nr_zones = if partial { reported } else { matching };
        report[..8].copy_from_slice(&nr_zones.to_le_bytes());
        let used = report.len();
        report.resize(len, 0);
        Ok((report, used))
    }

    /// The 64 bytes of a zone descriptor.
    fn describe(&self, index: usize) -> Vec<u8> {
        let zone = &self.zones[index];
        let extension = if zone.extension.is_some() { 0x80 } else { 0 };
        let area = if zone.area.is_some() { 0x08 } else { 0 };
        let attributes = extension | area;
        let pointer = match zone.state {
            ZoneState::READ_ONLY | ZoneState::OFFLINE => 0xffff_ffff_ffff_ffff,
            // The specification leaves it open; a ZN540 says the end of its capacity.
            ZoneState::FULL => self.end(index),
            _ => zone.pointer,
        };
        let mut bytes = vec![2, zone.state.0 << 4, attributes, 0, 0, 0, 0, 0];
        bytes.extend(self.config.capacity_lbas.to_le_bytes());
        bytes.extend(self.start(index).to_le_bytes());
        bytes.extend(u64::to_le_bytes(pointer));
        bytes.resize(64, 0);
        bytes
    }

    fn zone_of_blocks(&self, slba: u64, nlb: u32) -> Result<usize, Status> {
        if nlb == 0 {
            return Err(Status::INVALID_FIELD);
        }
        let blocks = u128::from(self.config.count) * u128::from(self.config.size_lbas);
        if u128::from(slba) + u128::from(nlb) > blocks {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok((slba / self.config.size_lbas) as usize)
    }

    fn zone_starting_at(&self, slba: u64) -> Result<usize, Status> {
        let zone = self.zone_of_blocks(slba, 1)?;
        if slba != self.start(zone) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(zone)
    }

    fn check_writable(&self, zone: usize) -> Result<(), Status> {
        match self.zones[zone].state {
            ZoneState::FULL => Err(Status::ZONE_IS_FULL),
            ZoneState::READ_ONLY => Err(Status::ZONE_IS_READ_ONLY),
            ZoneState::OFFLINE => Err(Status::ZONE_IS_OFFLINE),
            _ => Ok(()),
        }
    }

    fn check_active(&self) -> Result<(), Status> {
        match self.config.max_active {
            Some(limit) if self.active() >= limit as usize => Err(Status::TOO_MANY_ACTIVE_ZONES),
            _ => Ok(()),
        }
    }

    /// Gets the resources to open a zone; closes the oldest implicitly opened zone if it must.
    fn acquire(&mut self, zone: usize) -> Result<(), Status> {
        if self.zones[zone].is_open() {
            return Ok(());
        }
        if !self.zones[zone].is_active() {
            self.check_active()?;
        }
        if self.config.max_open == Some(self.open() as u32) {
            let implicit = self.in_state(ZoneState::IMPLICITLY_OPENED);
            let oldest = implicit.iter().min_by_key(|z| self.zones[**z].opened_at);
            let Some(&oldest) = oldest else {
                return Err(Status::TOO_MANY_OPEN_ZONES);
            };
            self.zones[oldest].state = ZoneState::CLOSED;
        }
        Ok(())
    }

    fn open_implicitly(&mut self, zone: usize) -> Result<(), Status> {
        self.acquire(zone)?;
        self.clock += 1;
        let zone = &mut self.zones[zone];
        if !zone.is_open() {
            zone.state = ZoneState::IMPLICITLY_OPENED;
            zone.opened_at = self.clock;
        }
        Ok(())
    }

    fn write_at_pointer(&mut self, zone: usize, nlb: u32) -> Result<u64, Status> {
        self.open_implicitly(zone)?;
        let end = self.end(zone);
        let zone = &mut self.zones[zone];
        let lba = zone.pointer;
        zone.pointer += u64::from(nlb);
        zone.host_lbas += u64::from(nlb);
        if zone.pointer == end {
            zone.state = ZoneState::FULL;
        }
        Ok(lba)
    }

    fn open_explicitly(&mut self, zone: usize) -> Result<(), Status> {
        match self.zones[zone].state {
            ZoneState::FULL | ZoneState::READ_ONLY | ZoneState::OFFLINE => {
                return Err(Status::INVALID_ZONE_STATE_TRANSITION);
            }
            _ => self.acquire(zone)?,
        }
        self.zones[zone].state = ZoneState::EXPLICITLY_OPENED;
        Ok(())
    }

    fn close(&mut self, zone: usize) -> Result<(), Status> {
        if !self.zones[zone].is_active() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.zones[zone].state = ZoneState::CLOSED;
        Ok(())
    }

    fn finish(&mut self, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        if state == ZoneState::READ_ONLY || state == ZoneState::OFFLINE {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        if let Some(written) = self.zones[zone].area.take()
            && let Some(last) = written.last()
        {
            // What was written to the area is committed with the zone.
            self.zones[zone].host_lbas = last + 1 - self.start(zone);
        }
        self.zones[zone].pointer = self.end(zone);
        self.zones[zone].state = ZoneState::FULL;
        Ok(())
    }

    fn reset(&mut self, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        if state == ZoneState::READ_ONLY || state == ZoneState::OFFLINE {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.zones[zone].pointer = self.start(zone);
        self.zones[zone].host_lbas = 0;
        self.zones[zone].area = None;
        self.zones[zone].extension = None;
        self.zones[zone].state = ZoneState::EMPTY;
        Ok(())
    }

    fn offline(&mut self, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        if state != ZoneState::READ_ONLY && state != ZoneState::OFFLINE {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.zones[zone].state = ZoneState::OFFLINE;
        self.zones[zone].extension = None;
        Ok(())
    }
}
