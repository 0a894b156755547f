//! States and write pointers of zones as data, for snapshots.

use serde::{Deserialize, Serialize};
use zonelab_nvme::zns::ZoneState;

use super::table::State;
use super::{Finished, Zone, Zones};
use crate::config::{NamespaceConfig, ZonesConfig};
use crate::contents::ZoneRecord;

/// What [`Zones`] knows, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedZones {
    zones: Vec<SavedZone>,
    /// The implicitly opened zones: those of each namespace in turn, oldest first.
    implicit: Vec<u32>,
    /// Descriptor extensions, by zone.
    extensions: Vec<(u32, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct SavedZone {
    /// As in a zone descriptor.
    state: u8,
    host_lbas: u64,
    finished: bool,
    finished_by_controller: bool,
}

impl SavedZone {
    /// A zone of a drive that was switched off: closed, if it was open.
    pub(super) fn switched_off(record: &ZoneRecord) -> Self {
        Self {
            state: match record.state {
                ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED => ZoneState::CLOSED.0,
                state => state.0,
            },
            host_lbas: record.host_lbas,
            finished: record.is_finished,
            finished_by_controller: record.by_controller,
        }
    }
}

impl SavedZones {
    /// Zones of which none is open.
    pub(super) fn of_closed(zones: Vec<SavedZone>, extensions: Vec<(u32, Vec<u8>)>) -> Self {
        Self {
            zones,
            implicit: Vec::new(),
            extensions,
        }
    }
}

impl Zones {
    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedZones {
        let saved = |zone: &Zone| SavedZone {
            state: zone.state.code().0,
            host_lbas: zone.host_lbas,
            finished: zone.is_finished(),
            finished_by_controller: zone.finished == Finished::ByController,
        };
        let extensions = self.extensions.iter().map(|(index, bytes)| {
            let zone = u32::try_from(*index).expect("the number of zones came as u32");
            (zone, bytes.to_vec())
        });
        SavedZones {
            zones: self.zones.iter().map(saved).collect(),
            implicit: self
                .namespaces
                .iter()
                .flat_map(|namespace| namespace.implicit.in_order(&self.zones))
                .collect(),
            extensions: extensions.collect(),
        }
    }

    /// Zones from data, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn restore(
        config: &ZonesConfig,
        namespaces: &[NamespaceConfig],
        saved: &SavedZones,
    ) -> Result<Self, String> {
        let mut zones = Self::with_namespaces(config, namespaces);
        if saved.zones.len() != zones.zones.len() {
            return Err(format!("{} zones", saved.zones.len()));
        }
        for (index, from) in saved.zones.iter().enumerate() {
            let zone = restored(from, zones.capacity_lbas)
                .ok_or_else(|| format!("zone {index}: {from:?}"))?;
            let namespace = zones.zones[index].namespace;
            let of = &mut zones.namespaces[usize::from(namespace)];
            of.open += u32::from(zone.state.is_open());
            of.active += u32::from(zone.state.is_active());
            zones.zones[index] = Zone { namespace, ..zone };
        }
        for of in &zones.namespaces {
            if of.open > of.max_open || of.active > of.max_active {
                return Err(format!("{} open and {} active zones", of.open, of.active));
            }
        }
        zones.restore_implicit(&saved.implicit)?;
        zones.restore_extensions(&saved.extensions)?;
        Ok(zones)
    }

    fn restore_implicit(&mut self, order: &[u32]) -> Result<(), String> {
        for &zone in order {
            let index = zone as usize;
            let unlisted = self.zones.get(index).filter(|zone| {
                zone.state == State::ImplicitlyOpened && zone.links == super::implicit::Links::NONE
            });
            let of = unlisted.map(|zone| &mut self.namespaces[usize::from(zone.namespace)]);
            // The first of a list of one has no links either.
            let Some(of) = of.filter(|of| of.implicit.oldest() != Some(index)) else {
                return Err(format!(
                    "zone {zone} in the list of implicitly opened zones"
                ));
            };
            of.implicit.push(&mut self.zones, index);
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
        finished: match (saved.finished, saved.finished_by_controller) {
            (false, false) => Finished::No,
            (true, false) => Finished::ByHost,
            (true, true) => Finished::ByController,
            (false, true) => return None,
        },
        ..Zone::EMPTY
    };
    if zone.host_lbas > capacity_lbas {
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
