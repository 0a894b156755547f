//! What follows from a configuration.

use super::figures::Figures;
use crate::config::{DriveConfig, MappingConfig};

/// Everything that a configuration implies, computed in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Dies of the drive.
    pub luns: u32,
    /// Planes of the drive.
    pub planes: u32,
    /// Groups of zones that share no die; zone `n` belongs to group `n % zone_groups`.
    pub zone_groups: u32,
    /// Planes that a zone stripes over.
    pub planes_per_zone: u32,
    /// Blocks of a zone on each of its planes.
    pub zone_blocks_per_plane: u32,
    /// Blocks of a zone.
    pub zone_blocks: u32,
    /// Pages of a zone up to its capacity; the last may be used in part.
    pub zone_pages: u32,
    /// Physical zones: the number of zones with direct mapping. Of storage elements,
    /// zones for which there are some.
    pub physical_zones: u32,
    /// Storage elements, if zones are assembled from them.
    pub elements: Option<DerivedElements>,
    /// Bytes of a zone that can be written.
    pub zone_capacity_bytes: u64,
    /// Flash of a zone: whole blocks.
    pub zone_flash_bytes: u64,
    /// Flash of the drive.
    pub raw_bytes: u64,
    /// Address space of the namespace: zones times their size.
    pub namespace_bytes: u64,
    /// What can be written: zones times their capacity.
    pub usable_bytes: u64,
    /// Flash beyond what can be written, in parts per million of the latter.
    pub over_provisioning_ppm: u64,
    /// Blocks of each plane that no physical zone stands on.
    pub unused_blocks_per_plane: u32,
    /// What an idle drive can be expected to do.
    pub figures: Figures,
}

/// What follows for storage elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DerivedElements {
    /// Elements of the drive.
    pub count: u64,
    /// Elements of a zone.
    pub per_zone: u32,
    /// Elements of a zone on each of its planes; of stripes, as many as it has.
    pub per_plane: u32,
    /// Blocks of an element.
    pub blocks: u32,
}

impl DerivedElements {
    fn new(config: &DriveConfig, needs: &Needs, rows: u32) -> Option<Self> {
        let (per_zone, per_plane, blocks) = match config.mapping {
            MappingConfig::Direct | MappingConfig::Lazy { .. } => return None,
            MappingConfig::Chunk { chunk_blocks, .. } => {
                let per_plane = rows / chunk_blocks;
                (per_plane * needs.width, per_plane, chunk_blocks)
            }
            MappingConfig::Stripe { .. } => (rows, rows, needs.width),
        };
        Some(Self {
            count: u64::from(needs.physical_zones) * u64::from(per_zone),
            per_zone,
            per_plane,
            blocks,
        })
    }
}

/// The flash that zones need, whether or not there is as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Planes that a zone stripes over.
    pub(super) width: u32,
    /// Groups of zones that share no die.
    pub(super) groups: u32,
    /// Pages of a zone.
    pub(super) pages: u32,
    /// Blocks of a zone on each of its planes.
    pub(super) rows: u64,
    /// Physical zones.
    pub(super) physical_zones: u32,
    /// Blocks of each plane that the SLC cache has.
    pub(super) cache_rows: u64,
}

impl Needs {
    /// `None`: values are out of range or do not divide each other, so that the
    /// question makes no sense.
    pub(super) fn of(config: &DriveConfig) -> Option<Self> {
        let DriveConfig {
            geometry, zones, ..
        } = config;
        let product = |factors: [u32; 3]| {
            factors
                .into_iter()
                .try_fold(1, u32::checked_mul)
                .filter(|product| *product > 0)
        };
        let luns = product([zones.channels, zones.ways, geometry.dies])?;
        let width = luns.checked_mul(geometry.planes)?;
        let drive_luns = product([geometry.channels, geometry.ways, geometry.dies])?;
        let groups = drive_luns / luns;
        let page_lbas = geometry.page_bytes.checked_div(config.lba_bytes)?;
        let pages = zones
            .capacity_lbas
            .checked_add(u64::from(page_lbas).checked_sub(1)?)?
            / u64::from(page_lbas);
        let pages = u32::try_from(pages).ok()?;
        let row_pages = u64::from(width) * u64::from(geometry.pages_per_block);
        if row_pages == 0 || groups == 0 {
            return None;
        }
        Some(Self {
            width,
            groups,
            pages,
            rows: u64::from(pages).div_ceil(row_pages),
            physical_zones: config.mapping.physical_zones(zones.count),
            cache_rows: config.cache_rows(),
        })
    }

    /// Physical zones of the group that has most.
    pub(super) const fn zones_per_group(&self) -> u64 {
        self.physical_zones.div_ceil(self.groups) as u64
    }

    /// Blocks that each plane must have.
    pub(super) const fn blocks_per_plane(&self) -> u64 {
        (self.zones_per_group() * self.rows).saturating_add(self.cache_rows)
    }
}

impl Derived {
    /// What follows from a configuration that has enough flash.
    pub(super) fn new(config: &DriveConfig, needs: &Needs) -> Self {
        let geometry = &config.geometry;
        let lba_bytes = u64::from(config.lba_bytes);
        let rows = u32::try_from(needs.rows).expect("checked: rows fit on a plane");
        let zone_blocks = rows * needs.width;
        let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
        let raw_bytes = geometry.raw_bytes();
        let zone_capacity_bytes = config.zones.capacity_lbas * lba_bytes;
        // Of a thin drive, that of as many zones as there is flash for.
        let backed = needs.physical_zones.min(config.zones.count);
        let usable_bytes = zone_capacity_bytes * u64::from(backed);
        assert!(
            usable_bytes <= raw_bytes,
            "checked: every zone has its flash"
        );
        let spare_ppm = u128::from(raw_bytes - usable_bytes) * 1_000_000 / u128::from(usable_bytes);
        let used = u32::try_from(needs.blocks_per_plane()).expect("checked: they fit on a plane");
        Self {
            luns: geometry.luns(),
            planes: geometry.planes_total(),
            zone_groups: needs.groups,
            planes_per_zone: needs.width,
            zone_blocks_per_plane: rows,
            zone_blocks,
            zone_pages: needs.pages,
            physical_zones: needs.physical_zones,
            elements: DerivedElements::new(config, needs, rows),
            zone_capacity_bytes,
            zone_flash_bytes: u64::from(zone_blocks) * block_bytes,
            raw_bytes,
            namespace_bytes: config.zones.size_lbas * u64::from(config.zones.count) * lba_bytes,
            usable_bytes,
            over_provisioning_ppm: u64::try_from(spare_ppm).unwrap_or(u64::MAX),
            unused_blocks_per_plane: geometry.blocks_per_plane - used,
            figures: Figures::new(config, needs.pages, rows),
        }
    }
}
