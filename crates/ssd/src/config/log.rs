//! The log of a conventional namespace.

/// How the log of a conventional namespace collects and places what hosts write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Zones beyond what the host can address: over-provisioning; at least
    /// [`NamespaceConfig::spare_zones_min`](super::NamespaceConfig::spare_zones_min).
    pub spare_zones: u32,
    /// Flexible data placement: handles that the host chooses among with each
    /// write; `None`: it has one, which the drive chose.
    pub handles: Option<ReclaimUnitHandles>,
    /// Which zone is collected next.
    pub collection: CollectionPolicy,
    /// Blocks that the table maps together, at least 1. They divide the capacity of zones.
    pub mapping_unit_lbas: u32,
}

impl LogConfig {
    /// Memory of the table, and of what finds the way back, for a log over so many zones.
    #[must_use]
    pub const fn table_bytes(&self, zones: u32, capacity_lbas: u64) -> u64 {
        let unit_lbas = if self.mapping_unit_lbas == 0 {
            1
        } else {
            self.mapping_unit_lbas as u64
        };
        let addressable = zones.saturating_sub(self.spare_zones) as u64;
        4 * (addressable + zones as u64) * (capacity_lbas / unit_lbas)
    }

    /// A log with so many spare zones, and everything else as in a profile that says nothing.
    #[must_use]
    pub const fn new(spare_zones: u32) -> Self {
        Self {
            spare_zones,
            handles: None,
            collection: CollectionPolicy::Greedy,
            mapping_unit_lbas: 1,
        }
    }
}

/// Which zone of a log garbage collection empties next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionPolicy {
    /// The one with the fewest blocks that still hold something.
    Greedy,
    /// The one with the largest (1 - u) * age / 2u, `u` being the share of its blocks that
    /// still hold something, and the age what the host has written to the log since it wrote
    /// the youngest of them.
    CostBenefit,
}

/// Reclaim unit handles of a conventional namespace (flexible data placement, NVMe
/// base specification 2.1, section 8.1.10). See `docs/models/fdp.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimUnitHandles {
    /// Number of them, 1 to [`ReclaimUnitHandles::MAX`].
    pub count: u32,
    /// Whether collection keeps their data apart.
    pub isolation: Isolation,
}

impl ReclaimUnitHandles {
    /// Most reclaim unit handles of all namespaces of a drive.
    pub const MAX: u32 = 128;
    /// What a conventional namespace without any of its own has: one.
    pub const ONE: Self = Self {
        count: 1,
        isolation: Isolation::Initially,
    };
}

/// Whether collection keeps data of different reclaim unit handles apart (RUHT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It may move data of several handles into one reclaim unit.
    Initially,
    /// It moves data of each handle into reclaim units of their own.
    Persistently,
}
