//! What happened before a controller was there, and its host should know.
//!
//! With controllers that are made by Connect, the life of one is that of a connection, and a
//! tool that connects for each of its commands would never find an error or a changed zone.
//! So the error log is one for all controllers of a host, and a new controller begins with the
//! changed zones that none before it has read. Without rules for hosts, all are one host.

use zonelab_nvme::identify::Nqn;
use zonelab_nvme::log::ErrorEntry;

use super::state::{Controller, ErrorLog, Kind};

/// Zones that a Changed Zone List holds.
const LISTED_ZONES: usize = 511;

/// Zones of a namespace that the device changed and a host does not know of.
#[derive(Clone, Debug, Default)]
struct ChangedZones {
    nsid: u32,
    /// First blocks, without order or repetition; no more than a list holds.
    zslba: Vec<u64>,
    overflow: bool,
}

/// Zones that the device changed and a host does not know of, by namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneLists(Vec<ChangedZones>);

impl ZoneLists {
    /// The device changed the zone that starts at `zslba`.
    pub(super) fn note(&mut self, nsid: u32, zslba: u64) {
        let zones = self.at(nsid);
        if zones.overflow || zones.zslba.contains(&zslba) {
            return;
        }
        if zones.zslba.len() == LISTED_ZONES {
            zones.overflow = true;
            zones.zslba.clear();
        } else {
            zones.zslba.push(zslba);
        }
    }

    /// The device changed more zones than a list holds.
    pub(super) fn note_overflow(&mut self, nsid: u32) {
        let zones = self.at(nsid);
        zones.overflow = true;
        zones.zslba.clear();
    }

    /// The list of a namespace.
    fn at(&mut self, nsid: u32) -> &mut ChangedZones {
        let found = self.0.iter().position(|zones| zones.nsid == nsid);
        let at = found.unwrap_or_else(|| {
            self.0.push(ChangedZones {
                nsid,
                ..ChangedZones::default()
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// First blocks of the zones of a namespace that changed; `None`: too many.
    pub(super) fn of(&self, nsid: u32) -> Option<&[u64]> {
        match self.0.iter().find(|zones| zones.nsid == nsid) {
            None => Some(&[]),
            Some(zones) if zones.overflow => None,
            Some(zones) => Some(&zones.zslba),
        }
    }

    /// The host has read the list of a namespace.
    pub(super) fn forget(&mut self, nsid: u32) {
        self.0.retain(|zones| zones.nsid != nsid);
    }
}

/// What all controllers of a host have in common.
#[derive(Debug, Default)]
struct Past {
    errors: ErrorLog,
    /// What none of its controllers has read.
    zones: ZoneLists,
}

/// The past of every host.
#[derive(Debug, Default)]
pub(super) struct Pasts {
    /// That of all hosts together, while they have no rules.
    common: Past,
    /// That of discovery controllers, which are of another subsystem.
    discovery: Past,
    /// Those of hosts that have rules.
    hosts: Vec<(Nqn, Past)>,
}

impl Pasts {
    /// Keeps the pasts of the hosts that have rules, and begins those of new ones.
    pub(super) fn set_hosts(&mut self, names: impl Iterator<Item = Nqn>) {
        let mut old = core::mem::take(&mut self.hosts);
        self.hosts = names
            .map(|name| {
                let at = old.iter().position(|(of, _)| *of == name);
                at.map_or_else(|| (name, Past::default()), |at| old.swap_remove(at))
            })
            .collect();
    }

    fn of(&self, controller: &Controller) -> &Past {
        match controller.kind {
            Kind::Discovery => &self.discovery,
            Kind::Io => {
                let found = self.hosts.iter().find(|(of, _)| *of == controller.hostnqn);
                found.map_or(&self.common, |(_, past)| past)
            }
        }
    }

    fn of_mut(&mut self, controller: &Controller) -> &mut Past {
        match controller.kind {
            Kind::Discovery => &mut self.discovery,
            Kind::Io => {
                let mut hosts = self.hosts.iter_mut();
                let found = hosts.find(|(of, _)| *of == controller.hostnqn);
                found.map_or(&mut self.common, |(_, past)| past)
            }
        }
    }

    /// A command of a controller failed.
    pub(super) fn note_error(&mut self, controller: &Controller, entry: ErrorEntry) {
        self.of_mut(controller).errors.push(entry);
    }

    /// The errors that a controller shows.
    pub(super) fn errors(&self, controller: &Controller) -> &ErrorLog {
        &self.of(controller).errors
    }

    /// The device changed zones of a namespace: `note` puts them down for a host.
    pub(super) fn note_zones(&mut self, note: impl Fn(&mut ZoneLists)) {
        note(&mut self.common.zones);
        for (_, past) in &mut self.hosts {
            note(&mut past.zones);
        }
    }

    /// The changed zones that a new controller begins with.
    pub(super) fn zones(&self, controller: &Controller) -> ZoneLists {
        self.of(controller).zones.clone()
    }

    /// A controller has read the changed zones of a namespace.
    pub(super) fn forget_zones(&mut self, controller: &Controller, nsid: u32) {
        self.of_mut(controller).zones.forget(nsid);
    }

    /// A format has made all zones anew.
    pub(super) fn forget_all_zones(&mut self) {
        let hosts = self.hosts.iter_mut().map(|(_, past)| past);
        for past in hosts.chain([&mut self.common]) {
            past.zones = ZoneLists::default();
        }
    }
}
