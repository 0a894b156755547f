//! Zones that a drive changed by itself, until its host has been told.
//!
//! A zone that fails becomes read-only or offline without a command. The drive
//! remembers it for the Changed Zone List log page of its namespace (ZNS command
//! set 1.1), and has an event to report (Zone Descriptor Changed) until the list
//! is taken. It does not remember that over a loss of power: a host that comes
//! back reads all zones anew.

use zonelab_device::{NamespaceId, ZoneId};
use zonelab_nvme::zns::ChangedZoneList;

use crate::drive::Drive;

/// Entries of the log page.
const ENTRIES: usize = 511;

/// The zones of each namespace that changed.
#[derive(Clone, Debug)]
pub(crate) struct ChangedZones {
    lists: Box<[List]>,
}

#[derive(Clone, Debug, Default)]
struct List {
    /// Counted from the start of the namespace.
    zones: Vec<ZoneId>,
    /// More changed than the list has room for.
    has_overflowed: bool,
}

impl ChangedZones {
    pub(crate) fn new(namespaces: usize) -> Self {
        Self {
            lists: vec![List::default(); namespaces].into_boxed_slice(),
        }
    }

    fn list(&self, nsid: NamespaceId) -> Option<&List> {
        self.lists.get(nsid.0.checked_sub(1)? as usize)
    }

    fn list_mut(&mut self, nsid: NamespaceId) -> Option<&mut List> {
        self.lists.get_mut(nsid.0.checked_sub(1)? as usize)
    }

    /// The descriptor of a zone of a namespace has changed.
    pub(crate) fn note(&mut self, nsid: NamespaceId, zone: ZoneId) {
        let Some(list) = self.list_mut(nsid) else {
            return;
        };
        if list.has_overflowed || list.zones.contains(&zone) {
            return;
        }
        if list.zones.len() == ENTRIES {
            list.zones.clear();
            list.has_overflowed = true;
        } else {
            list.zones.push(zone);
        }
    }

    /// Nobody is left to be told.
    pub(crate) fn clear(&mut self) {
        self.lists.fill(List::default());
    }
}

impl List {
    const fn is_empty(&self) -> bool {
        self.zones.is_empty() && !self.has_overflowed
    }

    /// The log page, of zones of this size.
    fn page(&self, size_lbas: u64) -> ChangedZoneList {
        let mut page = ChangedZoneList {
            nrzid: ChangedZoneList::OVERFLOW.into(),
            reserved_2: Default::default(),
            zid: [0.into(); ENTRIES],
        };
        if !self.has_overflowed {
            let mut zones = self.zones.clone();
            zones.sort_unstable();
            // Fits: there are fewer entries.
            page.nrzid = (zones.len() as u16).into();
            for (entry, zone) in page.zid.iter_mut().zip(zones) {
                *entry = (u64::from(zone.0) * size_lbas).into();
            }
        }
        page
    }
}

impl Drive {
    /// Whether zones of a namespace changed by themselves that no
    /// [`Drive::take_changed_zones`] has told of: the owner reports the
    /// asynchronous event Zone Descriptor Changed. False if there is no such
    /// namespace.
    #[must_use]
    pub fn has_zone_event(&self, nsid: NamespaceId) -> bool {
        self.core
            .changed
            .list(nsid)
            .is_some_and(|list| !list.is_empty())
    }

    /// The Changed Zone List log page of a namespace: the zones that became
    /// read-only or offline by themselves since it was taken, by their first
    /// blocks, in ascending order; in the overflow form if they are more than
    /// 511. `None` if there is no such namespace.
    #[must_use]
    pub fn changed_zones(&self, nsid: NamespaceId) -> Option<ChangedZoneList> {
        let list = self.core.changed.list(nsid)?;
        Some(list.page(self.core.config.zones.size_lbas))
    }

    /// The same, and forgets it: what a host that reads the page without
    /// retaining the event causes.
    pub fn take_changed_zones(&mut self, nsid: NamespaceId) -> Option<ChangedZoneList> {
        let page = self.changed_zones(nsid);
        if let Some(list) = self.core.changed.list_mut(nsid) {
            *list = List::default();
        }
        page
    }
}
