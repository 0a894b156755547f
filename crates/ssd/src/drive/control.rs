//! What a drive can be made to do that no command of a host could.

use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::Drive;
use crate::conventional::log_with;
use crate::interface::FaultTarget;

/// An action on a drive that no command of a host could do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Declares a range of empty zones full, as if they had been written from
    /// start to end by now. Takes time proportional to the number of zones.
    PreconditionFull {
        /// The zones, counted over the drive.
        zones: core::ops::Range<u32>,
    },
    /// A fault: a zone becomes read-only or offline.
    FailZone {
        /// The zone, counted over the drive.
        zone: ZoneId,
        /// [`ZoneState::READ_ONLY`] or [`ZoneState::OFFLINE`].
        to: ZoneState,
    },
}

/// Why a control action was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The range leaves the drive.
    #[error("zones {}..{} are not all on the drive, which has {zones}", range.start, range.end)]
    NoSuchZone {
        /// The range asked for.
        range: core::ops::Range<u32>,
        /// Zones of the drive.
        zones: u32,
    },
    /// A zone of the range is not empty.
    #[error("zone {} is not empty: only empty zones can be declared full", zone.0)]
    NotEmpty {
        /// The first such zone.
        zone: ZoneId,
    },
    /// The zone is part of a conventional namespace, which has no zones for hosts.
    #[error("zone {} belongs to a conventional namespace", zone.0)]
    Conventional {
        /// The first such zone.
        zone: ZoneId,
    },
    /// A drive that keeps data cannot have written zones without data.
    #[error("the drive keeps data (data.store = \"memory\"), so zones cannot be declared written")]
    KeepsData,
    /// The drive has more zones than flash (mapping.thin).
    #[error("there is no flash for zone {}: finish or reset others first", zone.0)]
    NoFlash {
        /// The first such zone.
        zone: ZoneId,
    },
    /// There is no way from the state of the zone to the one asked for.
    #[error("zone {} cannot go from {from} to {to}: a zone fails to read-only or offline", zone.0)]
    CannotFail {
        /// The zone.
        zone: ZoneId,
        /// Its state.
        from: ZoneState,
        /// The state asked for.
        to: ZoneState,
    },
}

impl Drive {
    /// Does what no command of a host could.
    ///
    /// # Errors
    /// [`ControlError`] if the action is not possible; nothing has changed then.
    pub fn control(&mut self, now: Nanos, action: &Control) -> Result<(), ControlError> {
        self.catch_up(now);
        self.core.watch_is_disturbed();
        let result = match action {
            Control::PreconditionFull { zones } => self.precondition_full(zones.clone()),
            Control::FailZone { zone, to } => self.force_zone(*zone, *to),
        };
        if self.core.zones.has_journal() {
            self.core.record_zone_changes();
        }
        result
    }

    fn force_zone(&mut self, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        self.check_failure(zone, to)?;
        let from = self.core.zones.state(zone);
        let mut changes = core::mem::take(&mut self.core.changes);
        changes.clear();
        let result = self.core.zones.fail(zone, to, &mut changes);
        let log = self
            .conventional
            .iter()
            .position(|of| of.log.zones().contains(&zone.0));
        if log.is_none() {
            for change in &changes {
                let (nsid, zone) = self.core.zones.in_namespace(change.zone);
                self.core.changed.note(nsid, zone);
            }
        }
        self.core.changes = changes;
        result.map_err(|_| ControlError::CannotFail { zone, from, to })?;
        if let Some(which) = log {
            // Fits: a drive has few.
            let (of, mut end) = self.conventional(which as u8);
            of.zone_fails(&mut end, zone);
            self.settle();
        }
        Ok(())
    }

    fn precondition_full(&mut self, zones: core::ops::Range<u32>) -> Result<(), ControlError> {
        let count = self.core.config.zones.count;
        if zones.start > zones.end || zones.end > count {
            return Err(ControlError::NoSuchZone {
                range: zones,
                zones: count,
            });
        }
        if self.core.data.is_some() {
            return Err(ControlError::KeepsData);
        }
        let of_log = |zone: &u32| log_with(&self.conventional, ZoneId(*zone)).is_some();
        if let Some(zone) = zones.clone().find(of_log) {
            return Err(ControlError::Conventional { zone: ZoneId(zone) });
        }
        let is_empty = |zone: &u32| self.core.zones.state(ZoneId(*zone)) == ZoneState::EMPTY;
        if let Some(zone) = zones.clone().find(|zone| !is_empty(zone)) {
            return Err(ControlError::NotEmpty { zone: ZoneId(zone) });
        }
        if let Some(zone) = self.core.first_without_flash(zones.clone()) {
            return Err(ControlError::NoFlash { zone });
        }
        self.core
            .zones
            .precondition_full(zones.clone())
            .expect("all of them were seen to be on the drive and empty");
        for zone in zones {
            let physical = self.core.flash.map(ZoneId(zone));
            self.background.hurry_erasure(&mut self.core, physical);
            let pages = self.core.flash.layout().zone_pages();
            self.core.flash.precondition(physical, pages);
            if let Some(buffer) = &mut self.buffer {
                buffer.settle_zone(ZoneId(zone), self.core.config.zones.capacity_lbas);
            }
        }
        self.settle();
        Ok(())
    }
}
