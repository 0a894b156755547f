//! Zone management, and what happens to zones without a host.

use std::ops::Range;

use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::{Effect, Zone, Zones, number};

impl Zones {
    /// Zone management of one zone; for [`ZoneSendAction::ZRWA_FLUSH`] see [`Zones::commit`].
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn send(&mut self, slba: u64, action: ZoneSendAction) -> Result<(), Status> {
        let zone = self.zone_at(slba)?;
        self.act(zone, action)
    }

    fn act(&mut self, zone: usize, action: ZoneSendAction) -> Result<(), Status> {
        match action {
            ZoneSendAction::OPEN => self.open_zone(zone),
            ZoneSendAction::CLOSE => self.close(zone),
            ZoneSendAction::FINISH => self.finish(zone),
            ZoneSendAction::RESET => self.reset(zone),
            ZoneSendAction::OFFLINE => self.offline(zone),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Zone management of all zones of the namespace that an action is for, all or none.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn send_all(&mut self, action: ZoneSendAction) -> Result<(), Status> {
        let selected: fn(&Zone) -> bool = match action {
            ZoneSendAction::OPEN => |zone| zone.state == ZoneState::CLOSED,
            ZoneSendAction::CLOSE => Zone::is_open,
            ZoneSendAction::FINISH => Zone::is_active,
            ZoneSendAction::RESET => |zone| zone.is_active() || zone.state == ZoneState::FULL,
            ZoneSendAction::OFFLINE => |zone| zone.state == ZoneState::READ_ONLY,
            _ => return Err(Status::INVALID_FIELD),
        };
        let mine = self.space.first..self.space.first + self.space.count;
        let zones: Vec<usize> = mine.filter(|zone| selected(&self.zones[*zone])).collect();
        let mut copy = self.clone();
        for zone in zones {
            copy.act(zone, action)?;
        }
        *self = copy;
        Ok(())
    }

    /// Gives an empty zone an extension, and makes it closed.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn set_extension(&mut self, slba: u64, bytes: &[u8]) -> Result<(), Status> {
        let zone = self.zone_at(slba)?;
        let len = self.config.descriptor_extension_bytes as usize;
        if len == 0 || bytes.len() < len {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].state != ZoneState::EMPTY {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.take_active(zone)?;
        self.zones[zone].state = ZoneState::CLOSED;
        self.zones[zone].extension = Some(bytes[..len].to_vec());
        Ok(())
    }

    pub(super) fn open_zone(&mut self, zone: usize) -> Result<(), Status> {
        if self.zones[zone].state == ZoneState::FULL || self.zones[zone].has_failed() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.take_open(zone)?;
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
        if self.zones[zone].has_failed() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        let pointer = self.zones[zone].pointer;
        let end = self.zones[zone].area.take().unwrap_or(0).max(pointer);
        if end > pointer {
            // What was written to the area is the host's, and committed with the zone.
            self.zones[zone].pointer = end;
            self.zones[zone].host = end;
            self.committed(zone, pointer, end - pointer);
        }
        if self.zones[zone].state != ZoneState::FULL {
            let finished = Effect::Finished {
                zone: number(zone),
                from: end,
            };
            self.effects.push(finished);
            self.zones[zone].state = ZoneState::FULL;
            self.zones[zone].pointer = self.config.capacity_lbas;
        }
        Ok(())
    }

    fn reset(&mut self, zone: usize) -> Result<(), Status> {
        if self.zones[zone].has_failed() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        if self.zones[zone].state != ZoneState::EMPTY {
            self.zones[zone] = Zone::EMPTY;
            let zone = number(zone);
            self.effects.push(Effect::Reset { zone });
        }
        Ok(())
    }

    fn offline(&mut self, zone: usize) -> Result<(), Status> {
        let zone = &mut self.zones[zone];
        if !zone.has_failed() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        zone.state = ZoneState::OFFLINE;
        zone.extension = None;
        Ok(())
    }

    /// A zone of the drive fails.
    ///
    /// # Errors
    /// There is no such zone, or no such way for a zone to fail.
    pub fn fail(&mut self, zone: usize, to: ZoneState) -> Result<(), Status> {
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

    /// Declares zones of the drive full that are empty.
    ///
    /// # Errors
    /// They are not there, or not all empty: nothing has changed.
    pub fn precondition_full(&mut self, zones: Range<usize>) -> Result<(), Status> {
        if zones.is_empty() {
            return Ok(());
        }
        let Some(of) = self.zones.get_mut(zones) else {
            return Err(Status::LBA_OUT_OF_RANGE);
        };
        if of.iter().any(|zone| zone.state != ZoneState::EMPTY) {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        let capacity = self.config.capacity_lbas;
        for zone in of {
            (zone.state, zone.pointer, zone.host) = (ZoneState::FULL, capacity, capacity);
        }
        Ok(())
    }
}
