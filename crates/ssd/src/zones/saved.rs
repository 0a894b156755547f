//! States and write pointers of zones as data, for snapshots.

use serde::{Deserialize, Serialize};

use super::table::State;
use super::{Zone, Zones};
use crate::config::ZonesConfig;

/// What [`Zones`] knows, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedZones {
    zones: Vec<SavedZone>,
    /// The implicitly opened zones, oldest first.
    implicit: Vec<u32>,
    /// Descriptor extensions, by zone.
    extensions: Vec<(u32, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SavedZone {
    /// As in a zone descriptor.
    state: u8,
    host_lbas: u64,
    finished: bool,
    finished_by_controller: bool,
}

impl Zones {
    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedZones {
        let saved = |zone: &Zone| SavedZone {
            state: zone.state.code().0,
            host_lbas: zone.host_lbas,
            finished: zone.finished,
            finished_by_controller: zone.finished_by_controller,
        };
        let extensions = self.extensions.iter().map(|(index, bytes)| {
            let zone = u32::try_from(*index).expect("the number of zones came as u32");
            (zone, bytes.to_vec())
        });
        SavedZones {
            zones: self.zones.iter().map(saved).collect(),
            implicit: self.implicit.in_order(&self.zones),
            extensions: extensions.collect(),
        }
    }

    /// Zones from data, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn restore(config: &ZonesConfig, saved: &SavedZones) -> Result<Self, String> {
        let mut zones = Self::new(config);
        if saved.zones.len() != zones.zones.len() {
            return Err(format!("{} zones", saved.zones.len()));
        }
        for (index, from) in saved.zones.iter().enumerate() {
            let zone = restored(from, zones.capacity_lbas)
                .ok_or_else(|| format!("zone {index}: {from:?}"))?;
            zones.open += u32::from(zone.state.is_open());
            zones.active += u32::from(zone.state.is_active());
            zones.zones[index] = zone;
        }
        if zones.open > zones.max_open || zones.active > zones.max_active {
            return Err(format!(
                "{} open and {} active zones",
                zones.open, zones.active
            ));
        }
        zones.restore_implicit(&saved.implicit)?;
        zones.restore_extensions(&saved.extensions)?;
        Ok(zones)
    }

    fn restore_implicit(&mut self, order: &[u32]) -> Result<(), String> {
        for &zone in order {
            let index = zone as usize;
            let fits = self.zones.get(index).is_some_and(|zone| {
                zone.state == State::ImplicitlyOpened && zone.links == super::implicit::Links::NONE
            });
            // The first of a list of one has no links either.
            if !fits || self.implicit.oldest() == Some(index) {
                return Err(format!(
                    "zone {zone} in the list of implicitly opened zones"
                ));
            }
            self.implicit.push(&mut self.zones, index);
        }
        let opened = |zone: &&Zone| zone.state == State::ImplicitlyOpened;
        if self.zones.iter().filter(opened).count() != order.len() {
            return Err("an implicitly opened zone that is not in their list".to_owned());
        }
        Ok(())
    }

    fn restore_extensions(&mut self, extensions: &[(u32, Vec<u8>)]) -> Result<(), String> {
        for (zone, bytes) in extensions {
            let index = *zone as usize;
            let fits = self.zones.get(index).is_some_and(|zone| {
                !matches!(zone.state, State::Empty | State::Offline) && !zone.has_extension
            });
            if !fits || bytes.len() != self.extension_bytes || bytes.is_empty() {
                return Err(format!("descriptor extension of zone {zone}"));
            }
            self.zones[index].has_extension = true;
            self.extensions.insert(index, bytes.as_slice().into());
        }
        Ok(())
    }
}

/// A zone, if it is possible.
fn restored(saved: &SavedZone, capacity_lbas: u64) -> Option<Zone> {
    let state = State::ALL
        .into_iter()
        .find(|state| state.code().0 == saved.state)?;
    let zone = Zone {
        host_lbas: saved.host_lbas,
        state,
        finished: saved.finished,
        finished_by_controller: saved.finished_by_controller,
        ..Zone::EMPTY
    };
    if zone.host_lbas > capacity_lbas || (zone.finished_by_controller && !zone.finished) {
        return None;
    }
    let written = zone.written_lbas(capacity_lbas);
    let possible = match state {
        State::Empty => written == 0,
        State::Full => written == capacity_lbas,
        State::ReadOnly | State::Offline => true,
        _ => written < capacity_lbas,
    };
    possible.then_some(zone)
}
