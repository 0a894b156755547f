//! A command that failed.

use core::fmt;

use zonelab_device::{Lba, NamespaceId, ZoneId};
use zonelab_nvme::Status;

use crate::stats::OpKind;

/// A command that failed: what it was, where, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCommand {
    /// What it was part of.
    pub kind: OpKind,
    /// Its status.
    pub status: Status,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its first block: of an append or of zone management that of the zone; `None`: it was
    /// a flush.
    pub lba: Option<Lba>,
    /// The zone of that block, if the namespace has zones.
    pub zone: Option<ZoneId>,
}

impl FailedCommand {
    /// A command on a namespace whose zones have that size; 0: it has none.
    pub(super) fn on(
        (namespace, zone_size_lbas): (NamespaceId, u64),
        (kind, status): (OpKind, Status),
        lba: Option<Lba>,
    ) -> Self {
        let zone = lba.and_then(|lba| lba.0.checked_div(zone_size_lbas));
        let zone = zone.and_then(|zone| u32::try_from(zone).ok().map(ZoneId));
        Self {
            kind,
            status,
            namespace,
            lba,
            zone,
        }
    }

    /// What it was, in a word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.lba {
            Some(_) => self.kind.name(),
            None => "flush",
        }
    }
}

/// `write at LBA 0x1800, zone 3 of namespace 2: Zone Is Full (0x1b9)`.
impl fmt::Display for FailedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(lba) = self.lba {
            write!(f, " at LBA {:#x}", lba.0)?;
        }
        match self.zone {
            Some(zone) => write!(f, ", zone {} of", zone.0)?,
            None => f.write_str(" of")?,
        }
        write!(f, " namespace {}: {}", self.namespace.0, self.status)
    }
}
