//! What a drive says of itself, which is not fitted.

use serde::{Deserialize, Serialize};
use zonelab_device::{DeviceInfo, NamespaceId, ZonedInfo};

use crate::characterize::{Facts, FactsError, Reach};

/// What a drive says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Known {
    /// What a suite of workloads has to know.
    pub facts: Facts,
    /// Distance between zone starts, in logical blocks.
    pub zone_size_lbas: u64,
    /// Most zones that are active; `None`: any number.
    pub max_active: Option<u32>,
    /// Most zones that are open; `None`: any number.
    pub max_open: Option<u32>,
    /// Largest transfer, in bytes; `None`: any size.
    pub max_transfer_bytes: Option<u32>,
    /// Largest append, in bytes; `None`: as the largest transfer.
    pub max_append_bytes: Option<u32>,
    /// A read may cross from one zone into the next.
    pub read_across_zones: bool,
}

impl Known {
    /// What a drive says of a namespace, and that it grants `queues` queues of `depth` entries;
    /// `None`: as many as one likes.
    ///
    /// # Errors
    /// It has no zones, or too few to measure.
    pub fn of(
        info: &DeviceInfo,
        nsid: NamespaceId,
        reach: Reach,
        granted: Option<(u32, u32)>,
    ) -> Result<Self, FactsError> {
        let facts = Facts::of(info, nsid, reach, granted)?;
        let zoned: Option<ZonedInfo> = info.namespace(nsid).and_then(|of| of.zoned);
        let limit = |bytes: u32| (bytes < 1 << 31).then_some(bytes);
        Ok(Self {
            zone_size_lbas: zoned.map_or(facts.zone_capacity_lbas, |zoned| zoned.zone_size_lbas),
            max_active: zoned.and_then(|zoned| zoned.max_active),
            max_open: zoned.and_then(|zoned| zoned.max_open),
            read_across_zones: zoned.is_some_and(|zoned| zoned.read_across_zones),
            max_transfer_bytes: limit(info.max_transfer_bytes),
            max_append_bytes: limit(info.max_append_bytes)
                .filter(|bytes| *bytes < info.max_transfer_bytes),
            facts,
        })
    }

    /// Keys of a profile that follow, with their values as a file says them.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let lba = u64::from(self.facts.lba_bytes);
        let bytes = |lbas: u64| format!("{}B", lbas.saturating_mul(lba));
        let mut settings = vec![
            ("namespace.lba_size", format!("{lba}B")),
            ("zones.count", self.facts.zones.to_string()),
            ("zones.size", bytes(self.zone_size_lbas)),
            ("zones.capacity", bytes(self.facts.zone_capacity_lbas)),
            ("zones.read_across", self.read_across_zones.to_string()),
        ];
        let limits = [
            ("zones.max_active", self.max_active),
            ("zones.max_open", self.max_open),
        ];
        for (key, limit) in limits {
            settings.extend(limit.map(|limit| (key, limit.to_string())));
        }
        let sizes = [
            ("front_end.max_transfer", self.max_transfer_bytes),
            ("front_end.max_append", self.max_append_bytes),
        ];
        for (key, size) in sizes {
            settings.extend(size.map(|size| (key, format!("{size}B"))));
        }
        settings
    }
}
