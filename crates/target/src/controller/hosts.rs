//! Which host may do what: namespaces, destructive commands, and how much of the drive.
//!
//! Without rules every host that is let in may do everything. With rules only the hosts
//! that have some are let in, and each finds the namespaces that it was given and no
//! other: a namespace of somebody else is one that there is not, in Identify, log pages,
//! events and commands alike. Rules can be replaced while hosts are connected
//! ([`Subsystem::set_hosts`]).

use std::collections::{BTreeMap, VecDeque};

use zonelab_device::{NamespaceInfo, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::zns::ZoneSendAction;

use super::authentication::check_names;
use super::events::Event;
use super::failure::{Failure, byte};
use super::plan::Plan;
use super::quality::{Meter, Quality};
use super::settings::nqn;
use super::state::Kind;
use super::turns::Held;
use super::{HostSecret, Layer, SettingsError, Subsystem};

/// What a host may do with a namespace.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NamespaceAccess {
    /// What changes nothing.
    ReadOnly,
    /// Everything that [`Permissions`] are not needed for.
    ReadWrite,
}

/// Commands that destroy more than they name, or for ever.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Format NVM, which empties all namespaces of the drive.
    pub format: bool,
    /// Zone Management Send: Reset Zone and Finish Zone of all zones of a namespace.
    pub all_zones: bool,
    /// Zone Management Send: Offline Zone.
    pub offline: bool,
}

/// What one host may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// Qualified name of the host.
    pub hostnqn: String,
    /// Its namespaces by identifier, at least one and each once.
    pub namespaces: Vec<(u32, NamespaceAccess)>,
    /// What it may destroy.
    pub permissions: Permissions,
    /// How much of the drive it gets.
    pub quality: Quality,
}

/// A host that has rules.
#[derive(Debug)]
pub(super) struct Host {
    rules: HostRules,
    /// That of NSID 1 first.
    rights: Vec<Option<NamespaceAccess>>,
    pub(super) meter: Meter,
    /// Commands beyond its rates, of all its queues, in the order in which they came.
    pub(super) held: VecDeque<Held>,
}

/// The hosts that have rules.
#[derive(Debug)]
pub(super) struct Hosts(pub(super) Vec<Host>);

impl Hosts {
    /// The place of a host.
    pub(super) fn find(&self, hostnqn: &str) -> Option<usize> {
        self.0.iter().position(|host| host.rules.hostnqn == hostnqn)
    }
}

/// Rights by namespace, if the rules are possible with `namespaces` of them.
fn rights(
    rules: &HostRules,
    namespaces: usize,
) -> Result<Vec<Option<NamespaceAccess>>, SettingsError> {
    nqn("host.nqn", &rules.hostnqn)?;
    let wrong = |key, value: String, valid: String| SettingsError::Rule {
        host: rules.hostnqn.clone(),
        key,
        value,
        valid,
    };
    let mut rights = vec![None; namespaces];
    for (nsid, access) in &rules.namespaces {
        let place = (*nsid as usize)
            .checked_sub(1)
            .and_then(|index| rights.get_mut(index));
        let valid = || format!("the namespaces of this drive are 1 to {namespaces}");
        let place = place.ok_or_else(|| wrong("namespaces", nsid.to_string(), valid()))?;
        if place.replace(*access).is_some() {
            let valid = "each namespace once, to be read and written or to be read".to_owned();
            return Err(wrong("namespaces", nsid.to_string(), valid));
        }
    }
    if rules.namespaces.is_empty() {
        let valid = format!("at least one of 1 to {namespaces}");
        return Err(wrong("namespaces", "[]".to_owned(), valid));
    }
    let owns_all = rights
        .iter()
        .all(|of| *of == Some(NamespaceAccess::ReadWrite));
    if rules.permissions.format && !owns_all {
        let valid = "a format empties the whole drive: only with all of its namespaces, to be \
                     read and written";
        return Err(wrong("may", "format".to_owned(), valid.to_owned()));
    }
    Ok(rights)
}

impl<L: Layer> Subsystem<L> {
    /// Replaces the rules of all hosts; `None`: there are none, and every host may do
    /// everything. Hosts that have no rules any more lose their controllers, and those
    /// that find other namespaces than before are told. What is with the drive already
    /// comes to its end.
    ///
    /// # Errors
    /// A rule is not possible, and all stay as they were.
    pub fn set_hosts(
        &mut self,
        now: Nanos,
        rules: Option<Vec<HostRules>>,
    ) -> Result<(), SettingsError> {
        self.now = self.now.max(now);
        let mut hosts: Vec<Host> = Vec::new();
        let mut places = BTreeMap::new();
        for rules in rules.iter().flatten() {
            if places.insert(rules.hostnqn.clone(), hosts.len()).is_some() {
                return Err(SettingsError::HostTwice(rules.hostnqn.clone()));
            }
            hosts.push(Host {
                rights: rights(rules, self.namespaces.len())?,
                meter: Meter::new(rules.quality),
                rules: rules.clone(),
                held: VecDeque::new(),
            });
        }
        // Names that are no NQN were refused.
        let names = hosts.iter().map(|host| Nqn::new(&host.rules.hostnqn));
        self.pasts.set_hosts(names.flatten());
        let old = core::mem::replace(&mut self.hosts, rules.map(|_| Hosts(hosts)));
        let before = old
            .as_ref()
            .map(|old| old.0.iter().map(rights_of).collect::<Vec<_>>());
        for host in old.map(|old| old.0).unwrap_or_default() {
            let at = places.get(&host.rules.hostnqn).copied();
            self.take_over(host, at);
        }
        self.sort_controllers(before.as_deref());
        Ok(())
    }

    /// Replaces the secrets of hosts, if authentication is required. Hosts that have none
    /// any more lose their controllers; the others go on, and need the new ones the next
    /// time that they authenticate themselves.
    ///
    /// # Errors
    /// As [`Self::require_authentication`]; all stay as they were.
    pub fn set_secrets(&mut self, now: Nanos, hosts: Vec<HostSecret>) -> Result<(), SettingsError> {
        self.now = self.now.max(now);
        check_names(&hosts)?;
        let Some(by) = &mut self.authentication else {
            return Ok(());
        };
        by.hosts = hosts;
        let gone: Vec<u32> = self
            .controllers
            .iter()
            .filter(|(_, of)| of.kind == Kind::Io)
            .filter(|(_, of)| {
                of.hostnqn
                    .as_str()
                    .is_none_or(|name| by.host(name).is_none())
            })
            .map(|(slot, _)| slot)
            .collect();
        for slot in gone {
            self.drop_controller(slot);
        }
        Ok(())
    }

    /// What a host used and what it waits for goes on under its new rules, which are at `at`.
    fn take_over(&mut self, old: Host, at: Option<usize>) {
        let (has_rules, now) = (self.has_rules(), self.now);
        let new = self.hosts.as_mut().and_then(|hosts| hosts.0.get_mut(at?));
        match new {
            Some(new) => {
                new.meter = old.meter.with(now, new.rules.quality);
                new.held = old.held;
            }
            // Its queues end, unless there are no rules at all any more.
            None if !has_rules => self.let_go(old.held),
            None => old.held.into_iter().for_each(|held| self.forget_held(held)),
        }
    }

    /// Controllers get the rules of their hosts, after those of before.
    fn sort_controllers(&mut self, before: Option<&[Vec<Option<NamespaceAccess>>]>) {
        let io = self
            .controllers
            .iter()
            .filter(|(_, of)| of.kind == Kind::Io);
        let slots: Vec<u32> = io.map(|(slot, _)| slot).collect();
        for slot in slots {
            let controller = self.controllers.at(slot);
            let name = controller.hostnqn;
            let old = controller.host.take();
            let old = old.and_then(|at| before?.get(at)).cloned();
            let Some(hosts) = &self.hosts else {
                self.tell_rights(slot, old.as_deref());
                continue;
            };
            match name.as_str().and_then(|name| hosts.find(name)) {
                None => self.drop_controller(slot),
                found => {
                    self.controllers.at(slot).host = found;
                    self.tell_rights(slot, old.as_deref());
                }
            }
        }
    }

    /// Tells a host which of its namespaces are other than before (`None`: it had all).
    fn tell_rights(&mut self, slot: u32, before: Option<&[Option<NamespaceAccess>]>) {
        let ids = (1_u32..).take(self.namespaces.len());
        let had = |nsid: u32| match before {
            None => Some(NamespaceAccess::ReadWrite),
            Some(rights) => rights.get(nsid as usize - 1).copied().flatten(),
        };
        let changed: Vec<u32> = ids
            .filter(|nsid| had(*nsid) != self.rights(slot, *nsid))
            .collect();
        let controller = self.controllers.at(slot);
        if changed.is_empty() || !controller.is_ready() {
            return;
        }
        for nsid in changed {
            controller.events.note_namespace(nsid);
        }
        let enabled = controller.features.events;
        controller.events.note(Event::Namespace, enabled);
        self.tell_events(slot);
    }

    /// What the host of a controller may do with a namespace; `None`: for it there is
    /// none of that identifier.
    #[inline]
    pub(super) fn rights(&self, slot: u32, nsid: u32) -> Option<NamespaceAccess> {
        let index = nsid.wrapping_sub(1) as usize;
        if !self.has_rules() {
            return (index < self.namespaces.len()).then_some(NamespaceAccess::ReadWrite);
        }
        self.host(slot)?.rights.get(index).copied().flatten()
    }

    /// What the host of a controller may destroy.
    pub(super) fn permissions(&self, slot: u32) -> Permissions {
        if !self.has_rules() {
            return Permissions {
                format: true,
                all_zones: true,
                offline: true,
            };
        }
        let host = self.host(slot);
        host.map_or(Permissions::default(), |host| host.rules.permissions)
    }

    /// Whether there is Format NVM for the host of a controller.
    pub(super) fn may_format(&self, slot: u32) -> bool {
        self.can_format() && self.permissions(slot).format
    }

    /// Whether there are rules. A host that has none then may do nothing.
    #[inline]
    pub(super) const fn has_rules(&self) -> bool {
        self.hosts.is_some()
    }

    /// The largest identifier of a namespace that the host of a controller has.
    pub(super) fn last_nsid(&self, slot: u32) -> u32 {
        self.visible(slot).last().map_or(0, |(nsid, _)| nsid)
    }

    /// The namespaces that the host of a controller has.
    pub(super) fn visible(&self, slot: u32) -> impl Iterator<Item = (u32, &NamespaceInfo)> {
        let all = (1_u32..).zip(&self.shown().namespaces);
        all.filter(move |(nsid, _)| self.rights(slot, *nsid).is_some())
    }

    #[inline]
    fn host(&self, slot: u32) -> Option<&Host> {
        let at = self.controllers.get(slot)?.host?;
        self.hosts.as_ref()?.0.get(at)
    }

    pub(super) fn host_mut(&mut self, slot: u32) -> Option<&mut Host> {
        let at = self.controllers.get(slot)?.host?;
        self.hosts.as_mut()?.0.get_mut(at)
    }

    /// Whether the host of a controller may have that done to the namespace.
    #[inline]
    pub(super) fn permit(
        &self,
        slot: u32,
        (access, plan): (NamespaceAccess, &Plan),
        is_hint: bool,
    ) -> Result<(), Failure> {
        if !self.has_rules() {
            return Ok(());
        }
        if access == NamespaceAccess::ReadOnly && writes(&plan.op) && !is_hint {
            return Err(Failure::at(Status::NAMESPACE_WRITE_PROTECTED, byte::NSID));
        }
        let permissions = self.permissions(slot);
        let is_permitted = match plan.op {
            Op::ZoneSend { action, .. } if action == ZoneSendAction::OFFLINE => permissions.offline,
            Op::ZoneSend {
                action: ZoneSendAction::RESET | ZoneSendAction::FINISH,
                select_all: true,
                ..
            } => permissions.all_zones,
            _ => true,
        };
        match is_permitted {
            true => Ok(()),
            false => Err(Failure::at(Status::OPERATION_DENIED, byte::CDW13)),
        }
    }
}

fn rights_of(host: &Host) -> Vec<Option<NamespaceAccess>> {
    host.rights.clone()
}

/// Whether an operation changes what a namespace holds, or the state of its zones.
const fn writes(op: &Op) -> bool {
    !matches!(
        op,
        Op::Read { .. }
            | Op::Compare { .. }
            | Op::Verify { .. }
            | Op::Flush
            | Op::ZoneReceive { .. }
            | Op::HandleStatus
    )
}

#[cfg(test)]
mod tests {
    use zonelab_nvme::fabrics::{CNTLID_DYNAMIC, Connect, ConnectData};
    use zonelab_nvme::identify::Nqn;
    use zonelab_nvme::zerocopy::FromZeros;
    use zonelab_ssd::faults::FaultyDrive;
    use zonelab_ssd::{Drive, profile};

    use super::*;
    use crate::controller::SubsystemSettings;

    /// No way leads there; whoever finds one shall find nothing.
    #[test]
    fn a_controller_without_rules_among_rules_may_do_nothing() {
        const NQN: &str = "nqn.2026-01.io.zonelab:test";
        const HOST: &str = "nqn.2026-01.io.zonelab:host";
        let config = profile::builtin("small-zones")
            .expect("it is built in")
            .config;
        let drive = FaultyDrive::from(Drive::new(&config));
        let settings = SubsystemSettings::new(NQN);
        let mut subsystem: Subsystem = Subsystem::new(drive, settings).expect("they are possible");
        let rules = HostRules {
            hostnqn: HOST.to_owned(),
            namespaces: vec![(1, NamespaceAccess::ReadWrite)],
            permissions: Permissions {
                format: true,
                all_zones: true,
                offline: true,
            },
            quality: Quality::default(),
        };
        let set = subsystem.set_hosts(Nanos::ZERO, Some(vec![rules]));
        set.expect("they are possible");
        let mut data = ConnectData::new_zeroed();
        data.cntlid = CNTLID_DYNAMIC.into();
        data.subnqn = Nqn::new(NQN).expect("it fits");
        data.hostnqn = Nqn::new(HOST).expect("it fits");
        let connect = Connect::new(0, 32);
        let entry = connect.to_entry().expect("it fits");
        let connected = subsystem.connect(Nanos::ZERO, (&entry, &connect), &data);
        let queue = connected.expect("it is let in").queue;
        let slot = subsystem.queues.at(queue.0).controller;
        assert_eq!(subsystem.rights(slot, 1), Some(NamespaceAccess::ReadWrite));
        assert!(subsystem.permissions(slot).format);
        subsystem.controllers.at(slot).host = None;
        assert_eq!(subsystem.rights(slot, 1), None);
        assert_eq!(subsystem.permissions(slot), Permissions::default());
        assert_eq!(subsystem.last_nsid(slot), 0);
    }
}
