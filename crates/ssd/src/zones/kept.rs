//! Zones as they are kept outside of the drive: which have changed since, and
//! how they come back.

use zonelab_device::ZoneId;

use super::saved::SavedZone;
use super::{Finished, State, Zones};
use crate::config::{NamespaceConfig, ZonesConfig};
use crate::contents::ZoneRecord;

/// Zones that are not what was last kept of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Unkept {
    list: Vec<u32>,
    is_listed: Box<[bool]>,
    /// What was kept of it last says that it is active.
    is_active: Box<[bool]>,
}

impl Unkept {
    /// A zone changes.
    pub(super) fn note(&mut self, index: usize) {
        if let Some(is_listed) = self.is_listed.get_mut(index).filter(|listed| !**listed) {
            *is_listed = true;
            // Fits: the number of zones came as u32.
            self.list.push(index as u32);
        }
    }
}

impl Zones {
    /// Notes from now on which zones change.
    pub(crate) fn track(&mut self) {
        self.unkept = Some(Box::new(Unkept {
            list: Vec::new(),
            is_listed: vec![false; self.zones.len()].into_boxed_slice(),
            is_active: vec![false; self.zones.len()].into_boxed_slice(),
        }));
    }

    /// Whether it is noted which zones change.
    pub(crate) const fn are_kept(&self) -> bool {
        self.unkept.is_some()
    }

    /// All zones may have changed.
    pub(super) fn all_changed(&mut self) {
        if let Some(unkept) = &mut self.unkept {
            (0..self.zones.len()).for_each(|index| unkept.note(index));
        }
    }

    /// A zone was kept as it is.
    pub(crate) fn was_kept(&mut self, zone: ZoneId) {
        let index = zone.0 as usize;
        let is_active = self.zones[index].state.is_active();
        if let Some(unkept) = &mut self.unkept {
            unkept.is_active[index] = is_active;
        }
    }

    /// Zones that are not what is kept of them have changed.
    pub(crate) fn note_differences(&mut self, records: &[ZoneRecord]) {
        let differ = |(index, record): &(usize, &ZoneRecord)| {
            // Fits: the number of zones came as u32.
            self.record_of(ZoneId(*index as u32)) != **record
        };
        let all = records.iter().enumerate().take(self.zones.len());
        let changed: Vec<usize> = all.filter(differ).map(|(index, _)| index).collect();
        if let Some(unkept) = &mut self.unkept {
            changed.into_iter().for_each(|index| unkept.note(index));
            for (is_active, record) in unkept.is_active.iter_mut().zip(records) {
                *is_active = record.is_active();
            }
        }
    }

    /// The zones that have changed, in an order in which whoever keeps them one by
    /// one never has more active ones than are allowed, nor zones that need more
    /// flash than there is: first those that are empty; then those that were
    /// active and are not, which a finish may have taken flash from; then others
    /// that are not; then those that are active. (Of a reset zone it is kept at
    /// once that it is empty: none goes from full to full here.)
    pub(crate) fn take_changed(&mut self) -> Vec<ZoneId> {
        let Some(unkept) = self.unkept.as_mut().filter(|of| !of.list.is_empty()) else {
            return Vec::new();
        };
        let mut list = core::mem::take(&mut unkept.list);
        for &zone in &list {
            unkept.is_listed[zone as usize] = false;
        }
        list.sort_by_key(|zone| {
            let (state, index) = (self.zones[*zone as usize].state, *zone as usize);
            match () {
                () if state.is_active() => 3,
                () if state == State::Empty => 0,
                () if unkept.is_active[index] => 1,
                () => 2,
            }
        });
        for &zone in &list {
            unkept.is_active[zone as usize] = self.zones[zone as usize].state.is_active();
        }
        list.into_iter().map(ZoneId).collect()
    }

    /// What there is to keep of a zone.
    pub(crate) fn record_of(&self, zone: ZoneId) -> ZoneRecord {
        let index = zone.0 as usize;
        let of = &self.zones[index];
        ZoneRecord {
            state: of.state.code(),
            host_lbas: of.host_lbas,
            is_finished: of.is_finished(),
            by_controller: of.finished == Finished::ByController,
            zrwa_end_lbas: self.areas.end_of(index),
            extension: self.extension(zone).map(Into::into),
        }
    }

    /// Zones from what was kept of them, of which nothing is believed: as after
    /// a loss of power that took nothing.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn recovered(
        config: &ZonesConfig,
        namespaces: &[NamespaceConfig],
        records: &[ZoneRecord],
    ) -> Result<Self, String> {
        let saved = records.iter().map(SavedZone::switched_off).collect();
        let extensions = (0..).zip(records).filter_map(|(zone, record)| {
            let bytes = record.extension.as_ref()?;
            Some((zone, bytes.to_vec()))
        });
        let saved = super::SavedZones::of_closed(saved, extensions.collect());
        let mut zones = Self::restore(config, namespaces, &saved)?;
        let areas = (0..).zip(records).filter_map(|(zone, record)| {
            let end = record.zrwa_end_lbas?;
            Some((zone, end))
        });
        zones.restore_zrwa(&areas.collect::<Vec<_>>())?;
        zones.power_cycle(|_, host_lbas| host_lbas, true, &mut Vec::new());
        Ok(zones)
    }
}
