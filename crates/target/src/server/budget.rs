//! How much data of commands is in memory, by host and in all.

use zonelab_nvme::identify::Nqn;

use super::limits::Memory;

/// A host, by its place in the books.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct HostId(usize);

#[derive(Debug)]
struct Host {
    name: Nqn,
    connections: usize,
    bytes: u64,
}

/// The books of all connections. What a connection may always hold is not in them.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Memory,
    used_bytes: u64,
    hosts: Vec<Option<Host>>,
    /// A command waits for the memory of all: those that come later may not
    /// have it first.
    is_short: bool,
    /// Something was given back since commands that wait were last looked at.
    has_gained: bool,
}

impl Budget {
    pub(super) const fn new(limits: Memory) -> Self {
        Self {
            limits,
            used_bytes: 0,
            hosts: Vec::new(),
            is_short: false,
            has_gained: false,
        }
    }

    /// The host of that name, if it has a connection.
    pub(super) fn find(&self, name: &Nqn) -> Option<HostId> {
        let mut hosts = self.hosts.iter();
        let at = hosts.position(|host| host.as_ref().is_some_and(|host| host.name == *name));
        at.map(HostId)
    }

    /// A connection of the host of that name is there.
    pub(super) fn join(&mut self, name: &Nqn) -> HostId {
        if let Some(HostId(at)) = self.find(name) {
            if let Some(host) = &mut self.hosts[at] {
                host.connections += 1;
            }
            return HostId(at);
        }
        let host = Some(Host {
            name: *name,
            connections: 1,
            bytes: 0,
        });
        match self.hosts.iter().position(Option::is_none) {
            Some(at) => {
                self.hosts[at] = host;
                HostId(at)
            }
            None => {
                self.hosts.push(host);
                HostId(self.hosts.len() - 1)
            }
        }
    }

    /// A connection of a host is gone, and holds nothing any more.
    pub(super) fn leave(&mut self, HostId(at): HostId) {
        if let Some(place) = self.hosts.get_mut(at)
            && let Some(host) = place
        {
            host.connections -= 1;
            if host.connections == 0 {
                *place = None;
            }
        }
    }

    /// Notes that a connection holds `now` bytes, where it held `before`.
    pub(super) fn note(&mut self, host: Option<HostId>, before: &mut u64, now: u64) {
        let was = std::mem::replace(before, now);
        if was == now {
            return;
        }
        self.has_gained |= now < was;
        self.used_bytes = self.used_bytes + now - was;
        if let Some(HostId(at)) = host
            && let Some(Some(host)) = self.hosts.get_mut(at)
        {
            host.bytes = host.bytes + now - was;
        }
    }

    /// Bytes that are left of all; `orphaned` are with the drive, of hosts that are gone.
    pub(super) const fn left(&self, orphaned: u64) -> u64 {
        let left = self.limits.total_bytes.saturating_sub(self.used_bytes);
        left.saturating_sub(orphaned)
    }

    /// Bytes that are left for a host.
    pub(super) fn left_for(&self, host: Option<HostId>, orphaned: u64) -> u64 {
        let of_host = host.and_then(|HostId(at)| self.hosts.get(at)?.as_ref());
        let used = of_host.map_or(0, |host| host.bytes);
        let left = self.limits.host_bytes.saturating_sub(used);
        left.min(self.left(orphaned))
    }

    /// Bytes that a host may take right now, unless others wait for them.
    pub(super) fn room(&self, host: Option<HostId>, orphaned: u64) -> u64 {
        match self.is_short {
            true => 0,
            false => self.left_for(host, orphaned),
        }
    }

    pub(super) const fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Has commands that wait looked at again, whether something was given back or not.
    pub(super) const fn look_again(&mut self) {
        self.has_gained = true;
    }

    /// Whether something was given back since the last call.
    pub(super) const fn take_gain(&mut self) -> bool {
        std::mem::replace(&mut self.has_gained, false)
    }
}
