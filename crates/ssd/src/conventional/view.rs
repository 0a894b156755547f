//! Flexible data placement of a drive as a whole: what a host is told of it, and what a
//! snapshot keeps.

use zonelab_device::{Lba, NamespaceId, Nanos};
use zonelab_nvme::placement::PlacementEventType;

use super::Conventional;
use super::placement::{
    PlacementEvent, PlacementHandle, PlacementLog, PlacementStatistics, SavedPlacement, bit_of,
};
use crate::drive::{Core, Drive};

/// Flexible data placement of a drive, to look at. Of a drive without it, there are no
/// handles and no events.
#[derive(Clone, Copy, Debug)]
pub struct PlacementView<'a> {
    core: &'a Core,
    conventional: &'a [Conventional],
}

impl PlacementView<'_> {
    fn namespace(&self, nsid: NamespaceId) -> Option<&Conventional> {
        self.conventional.iter().find(|of| of.nsid == nsid)
    }

    /// The reclaim unit handles of the drive, in the order of their identifiers.
    #[must_use]
    pub fn handles(&self) -> Vec<PlacementHandle> {
        if self.core.placement.is_none() {
            return Vec::new();
        }
        let of_namespace = |of: &Conventional| -> Vec<PlacementHandle> {
            let handles = 0..u16::from(of.log.streams().handles());
            handles.filter_map(|handle| of.handle(handle)).collect()
        };
        self.conventional.iter().flat_map(of_namespace).collect()
    }

    /// Bytes since the drive was made: those of FDP Statistics, of any drive.
    #[must_use]
    pub fn statistics(&self) -> PlacementStatistics {
        let (erased_blocks, programmed_bytes) = self.core.flash.totals();
        let geometry = &self.core.config.geometry;
        let block_bytes = u128::from(geometry.pages_per_block) * u128::from(geometry.page_bytes);
        PlacementStatistics {
            host_write_bytes: self.core.totals.host_write_bytes.into(),
            media_write_bytes: programmed_bytes.into(),
            media_erase_bytes: u128::from(erased_blocks) * block_bytes,
        }
    }

    /// The events, oldest first: of the host, or of the controller. At most
    /// [`PLACEMENT_EVENTS`](super::PLACEMENT_EVENTS) of each; older ones are forgotten.
    #[must_use]
    pub fn events(&self, of_host: bool) -> Vec<PlacementEvent> {
        let log = self.core.placement.as_deref();
        log.map_or_else(Vec::new, |log| log.events(of_host).copied().collect())
    }

    /// Whether events of a type are logged for a handle of a namespace; `None`: there is no
    /// such handle, or there are no such events.
    #[must_use]
    pub fn is_event_enabled(
        &self,
        nsid: NamespaceId,
        placement: u16,
        event_type: PlacementEventType,
    ) -> Option<bool> {
        self.core.placement.as_ref()?;
        let of = self.namespace(nsid)?;
        let enabled = of.handles.enabled.get(usize::from(placement))?;
        Some(enabled & bit_of(event_type)? != 0)
    }

    /// Which reclaim unit of a conventional namespace the data of a block is in, counted
    /// from 0; `None`: it holds nothing, or there is no such block.
    #[must_use]
    pub fn reclaim_unit(&self, nsid: NamespaceId, lba: Lba) -> Option<u32> {
        let of = self.namespace(nsid)?;
        let block = u32::try_from(lba.0).ok()?;
        let (zone, _) = of.log.block_position(block)?;
        Some(zone.0 - of.log.zones().start)
    }

    /// What a snapshot keeps of it, if the drive has it.
    pub(crate) fn save(&self) -> Option<SavedPlacement> {
        let log = self.core.placement.as_deref()?;
        let event = |of: &PlacementEvent| (of.at.0, of.nsid.0, of.placement, of.handle, of.what);
        let logs = self.conventional.iter().map(Conventional::save_handles);
        let events = log.events(true).chain(log.events(false)).map(event);
        Some(SavedPlacement {
            logs: logs.collect(),
            events: events.collect(),
        })
    }
}

impl SavedPlacement {
    /// Puts it back into a drive that has flexible data placement.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore(
        &self,
        core: &mut Core,
        conventional: &mut [Conventional],
    ) -> Result<(), String> {
        if self.logs.len() != conventional.len() {
            return Err(format!("handles of {} namespaces", self.logs.len()));
        }
        for (of, saved) in conventional.iter_mut().zip(&self.logs) {
            of.restore_handles(saved)?;
        }
        let mut log = PlacementLog::default();
        for &(at, nsid, placement, handle, what) in &self.events {
            let nsid = NamespaceId(nsid);
            if !conventional.iter().any(|of| of.nsid == nsid) {
                return Err(format!("an event of namespace {}", nsid.0));
            }
            log.note(PlacementEvent {
                at: Nanos(at),
                nsid,
                placement,
                handle,
                what,
            });
        }
        core.placement = Some(Box::new(log));
        Ok(())
    }
}

impl Drive {
    /// Flexible data placement, to look at.
    #[must_use]
    pub fn placement(&self) -> PlacementView<'_> {
        PlacementView {
            core: &self.core,
            conventional: &self.conventional,
        }
    }

    /// Logs events of a type for a handle of a namespace from now on, or no more. Returns
    /// whether there is such a handle, and are such events.
    pub fn enable_placement_event(
        &mut self,
        nsid: NamespaceId,
        placement: u16,
        event_type: PlacementEventType,
        is_enabled: bool,
    ) -> bool {
        let of = self.conventional.iter_mut().find(|of| of.nsid == nsid);
        let enabled = of.and_then(|of| of.handles.enabled.get_mut(usize::from(placement)));
        let is_placed = self.core.placement.is_some();
        let (Some(enabled), Some(bit), true) = (enabled, bit_of(event_type), is_placed) else {
            return false;
        };
        match is_enabled {
            true => *enabled |= bit,
            false => *enabled &= !bit,
        }
        true
    }
}
