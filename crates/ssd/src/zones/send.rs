//! Zone Management Send, descriptor extensions, and transitions that no host asks for.

use std::ops::Range;

use zonelab_device::{Lba, NamespaceId, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::table::{self, Event, Placement, State};
use super::{Change, Finished, Zones};

impl Zones {
    /// Zone Management Send without data to the zone that starts at `slba`:
    /// open, close, finish, reset, offline. Each change of state, implicit
    /// closes included, is added to `changes` in the order in which it took place.
    ///
    /// # Errors
    /// LBA Out of Range; Invalid Field (`slba` is not the start of a zone, or the
    /// action is unknown or one with a function of its own:
    /// [`Zones::set_extension`], [`Zones::commit_zrwa`]); Invalid Zone State Transition, Too Many
    /// Active Zones, Too Many Open Zones. Nothing has changed then.
    pub fn send(
        &mut self,
        slba: Lba,
        action: ZoneSendAction,
        changes: &mut Vec<Change>,
    ) -> Result<(), Status> {
        let index = self.index_of_start(slba)?;
        let event = Event::of_action(action).ok_or(Status::INVALID_FIELD)?;
        self.apply(index, event, changes)
    }

    /// Open Zone with ZRWA Allocation (ZRWAA): the empty zone that starts at
    /// `slba` is opened and gets a random write area. Changes are added to
    /// `changes` as by [`Zones::send`].
    ///
    /// # Errors
    /// LBA Out of Range; Invalid Field (`slba` is not the start of a zone, or
    /// zones have no areas); Invalid Zone Operation Request (the zone is active
    /// already); Invalid Zone State Transition; Too Many Active Zones, Too Many
    /// Open Zones, ZRWA Resources Unavailable. Nothing has changed then.
    pub fn open_with_zrwa(&mut self, slba: Lba, changes: &mut Vec<Change>) -> Result<(), Status> {
        let index = self.index_of_start(slba)?;
        if !self.areas.are_supported() {
            return Err(Status::INVALID_FIELD);
        }
        self.apply(index, Event::OpenZrwa, changes)
    }

    /// The same with Select All: the action applies to every zone of a
    /// namespace in the states of [`Event::select_all`], in order of address.
    /// Open opens all closed zones or none.
    ///
    /// # Errors
    /// Invalid Namespace or Format; Invalid Field (the action is unknown, or
    /// not for all zones); Too Many Open Zones. Nothing has changed then.
    pub fn send_all(
        &mut self,
        nsid: NamespaceId,
        action: ZoneSendAction,
        changes: &mut Vec<Change>,
    ) -> Result<(), Status> {
        let namespace = self
            .namespace(nsid)
            .ok_or(Status::INVALID_NAMESPACE_OR_FORMAT)?;
        let event = Event::of_action(action).ok_or(Status::INVALID_FIELD)?;
        // Every closed zone is active, so the only resource to run out of is
        // open zones, and those that are implicitly open can be closed for it.
        let open_after = namespace.active - namespace.implicit.len();
        if event == Event::Open && open_after > namespace.max_open {
            return Err(Status::TOO_MANY_OPEN_ZONES);
        }
        // Selected before anything changes: zones that are closed to make room
        // are not among those to open.
        let states = event.select_all();
        let zones = namespace.zones();
        let selected: Vec<usize> = (zones.start as usize..zones.end as usize)
            .filter(|&index| states.contains(&self.zones[index].state))
            .collect();
        selected
            .into_iter()
            .try_for_each(|index| self.apply(index, event, changes))
    }

    /// Set Zone Descriptor Extension: attaches the first bytes of `bytes` to the
    /// empty zone that starts at `slba`, which becomes closed. Reset removes them.
    ///
    /// # Errors
    /// LBA Out of Range; Invalid Field (`slba` is not the start of a zone, zones
    /// have no extension, or `bytes` is shorter than one); Invalid Zone State
    /// Transition (not empty); Too Many Active Zones. Nothing has changed then.
    pub fn set_extension(&mut self, slba: Lba, bytes: &[u8]) -> Result<(), Status> {
        self.attach_extension(slba, bytes, Event::SetExtension)
    }

    /// The same with ZRWA Allocation (ZRWAA): the zone gets a random write area too.
    ///
    /// # Errors
    /// As [`Zones::set_extension`]; Invalid Field if zones have no areas, and
    /// ZRWA Resources Unavailable. Nothing has changed then.
    pub fn set_extension_with_zrwa(&mut self, slba: Lba, bytes: &[u8]) -> Result<(), Status> {
        self.attach_extension(slba, bytes, Event::SetExtensionZrwa)
    }

    fn attach_extension(&mut self, slba: Lba, bytes: &[u8], event: Event) -> Result<(), Status> {
        let index = self.index_of_start(slba)?;
        let is_supported = event == Event::SetExtension || self.areas.are_supported();
        if self.extension_bytes == 0 || !is_supported {
            return Err(Status::INVALID_FIELD);
        }
        let bytes = bytes
            .get(..self.extension_bytes)
            .ok_or(Status::INVALID_FIELD)?;
        // The one change that is possible, empty to closed, tells the caller nothing new.
        self.apply(index, event, &mut Vec::new())?;
        self.zones[index].has_extension = true;
        self.extensions.insert(index, bytes.into());
        Ok(())
    }

    /// The descriptor extension of a zone, if it has one.
    #[must_use]
    pub fn extension(&self, zone: ZoneId) -> Option<&[u8]> {
        self.extensions.get(&(zone.0 as usize)).map(|b| &**b)
    }

    /// A fault: forces a zone to read only or offline.
    ///
    /// # Errors
    /// LBA Out of Range (no such zone); Invalid Field (`to` is another state);
    /// Invalid Zone State Transition (from offline back to read only).
    pub fn fail(
        &mut self,
        zone: ZoneId,
        to: ZoneState,
        changes: &mut Vec<Change>,
    ) -> Result<(), Status> {
        if zone.0 >= self.count() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let event = match to {
            ZoneState::READ_ONLY => Event::FailReadOnly,
            ZoneState::OFFLINE => Event::FailOffline,
            _ => return Err(Status::INVALID_FIELD),
        };
        self.apply(zone.0 as usize, event, changes)
    }

    /// Control of an experiment: makes empty zones full, as if the host had
    /// written them to their capacity. All of them, or none.
    ///
    /// # Errors
    /// LBA Out of Range (no such zones); Invalid Zone State Transition (one of
    /// them is not empty).
    pub fn precondition_full(&mut self, zones: Range<u32>) -> Result<(), Status> {
        if zones.is_empty() {
            return Ok(());
        }
        if zones.end > self.count() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let zones = zones.start as usize..zones.end as usize;
        let outcome = |zones: &Self, index: usize| {
            let condition = zones.condition(index, Placement::Within);
            table::outcome(zones.zones[index].state, Event::Precondition, condition)
        };
        let statuses = zones.clone().map(|index| outcome(self, index).status);
        if let Some(status) = statuses.into_iter().find(|status| !status.is_success()) {
            return Err(status);
        }
        for index in zones {
            self.enter(index, outcome(self, index));
            self.zones[index].host_lbas = self.capacity_lbas;
        }
        Ok(())
    }

    /// The zone that starts at `slba`.
    fn index_of_start(&self, slba: Lba) -> Result<usize, Status> {
        match self.locate(slba, 1)? {
            (index, 0) => Ok(index),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Applies an event to one zone.
    fn apply(
        &mut self,
        index: usize,
        event: Event,
        changes: &mut Vec<Change>,
    ) -> Result<(), Status> {
        let from = self.zones[index].state;
        let outcome = table::outcome(from, event, self.condition(index, Placement::Within));
        if !outcome.status.is_success() {
            return Err(outcome.status);
        }
        if let Some(closed) = self.make_room(index, outcome) {
            changes.push(self.change(closed, State::ImplicitlyOpened));
        }
        if outcome.next == from {
            return Ok(());
        }
        let zrwa_end = self.areas.end_of(index);
        self.enter(index, outcome);
        let mut change = self.change(index, from);
        if let Some(end) = zrwa_end.filter(|_| event == Event::Finish) {
            change.host_lbas = change.host_lbas.max(end);
            self.zones[index].host_lbas = change.host_lbas;
        }
        changes.push(change);
        self.after(index, event);
        Ok(())
    }

    /// What goes with a change of state that `event` caused.
    fn after(&mut self, index: usize, event: Event) {
        let zone = &mut self.zones[index];
        match event {
            Event::Finish => zone.finished = Finished::ByHost,
            Event::Reset => {
                zone.host_lbas = 0;
                zone.finished = Finished::No;
                zone.generation = zone.generation.wrapping_add(1);
            }
            _ => {}
        }
        let keeps_extension = !matches!(zone.state, State::Empty | State::Offline);
        if zone.has_extension && !keeps_extension {
            zone.has_extension = false;
            self.extensions.remove(&index);
        }
    }

    /// The change that a zone has just made. Its write pointer is still the old one.
    fn change(&self, index: usize, from: State) -> Change {
        let zone = &self.zones[index];
        Change {
            zone: self.id(index),
            from: from.code(),
            to: zone.state.code(),
            written_lbas: zone.written_lbas(self.capacity_lbas),
            host_lbas: zone.host_lbas,
        }
    }
}
