//! What a state depends on, so that one drive's is not taken for another's.

use super::SnapshotError;
use crate::config::{
    CollectionPolicy, DriveConfig, LogConfig, MappingConfig, NamespaceConfig, NamespaceKind,
    ZrwaConfig,
};

/// What the state of a drive depends on: keys and values. Times, costs and policies are
/// not here.
#[must_use]
pub fn shape(config: &DriveConfig) -> Vec<(String, String)> {
    let (geometry, zones) = (&config.geometry, &config.zones);
    let limit =
        |limit: Option<u32>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let mapping = match config.mapping {
        MappingConfig::Direct => "direct".to_owned(),
        MappingConfig::Lazy { physical_zones } => {
            format!("lazy over {physical_zones} physical zones")
        }
        MappingConfig::Chunk {
            chunk_blocks,
            physical_zones,
        } => format!("chunks of {chunk_blocks} blocks for {physical_zones} zones"),
        MappingConfig::Stripe { physical_zones } => format!("stripes for {physical_zones} zones"),
    };
    let mut shape: Vec<(String, String)> = [
        ("geometry.channels", geometry.channels.to_string()),
        ("geometry.ways", geometry.ways.to_string()),
        ("geometry.dies", geometry.dies.to_string()),
        ("geometry.planes", geometry.planes.to_string()),
        (
            "geometry.blocks_per_plane",
            geometry.blocks_per_plane.to_string(),
        ),
        (
            "geometry.pages_per_block",
            geometry.pages_per_block.to_string(),
        ),
        ("geometry.page_bytes", geometry.page_bytes.to_string()),
        ("lba_bytes", config.lba_bytes.to_string()),
        ("zones.count", zones.count.to_string()),
        ("zones.size_lbas", zones.size_lbas.to_string()),
        ("zones.capacity_lbas", zones.capacity_lbas.to_string()),
        ("zones.max_active", limit(zones.max_active)),
        ("zones.max_open", limit(zones.max_open)),
        ("zones.channels", zones.channels.to_string()),
        ("zones.ways", zones.ways.to_string()),
        ("zones.stripe", format!("{:?}", zones.stripe)),
        (
            "zones.descriptor_extension_bytes",
            zones.descriptor_extension_bytes.to_string(),
        ),
        ("mapping", mapping),
        ("data.store", format!("{:?}", config.data)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec();
    // Snapshots of drives with a single namespace say nothing of it, as they always did.
    if !config.namespaces.is_empty() {
        shape.push((NAMESPACES.to_owned(), namespaces(config)));
    }
    // The same of drives without random write areas.
    if let Some(zrwa) = &zones.zrwa {
        let ZrwaConfig {
            size_lbas,
            flush_granularity_lbas,
            max_areas,
            explicit_flush: _, // no state depends on it
        } = *zrwa;
        let areas = limit(max_areas);
        let value = format!("{areas} of {size_lbas} blocks, by {flush_granularity_lbas}");
        shape.push((ZRWA.to_owned(), value));
    }
    if let Some(cache) = &config.slc_cache {
        let (rows, bits) = (config.cache_rows(), cache.bits_per_cell);
        let value = format!(
            "{rows} rows at {bits} bits per cell, pages of {}",
            cache.page_bytes
        );
        shape.push((SLC_CACHE.to_owned(), value));
    }
    shape
}

/// Keys of a shape that not every snapshot has, and what a drive without them has.
const OPTIONAL: [(&str, &str); 3] = [
    (NAMESPACES, "one with all zones"),
    (ZRWA, "none"),
    (SLC_CACHE, "none"),
];
const NAMESPACES: &str = "namespaces";
const ZRWA: &str = "zones.zrwa";
const SLC_CACHE: &str = "slc_cache";

/// Zones and limits of the namespaces, in words.
fn namespaces(config: &DriveConfig) -> String {
    let limit = |limit: Option<u32>| limit.map_or("any".to_owned(), |limit| limit.to_string());
    let namespace = |of: &NamespaceConfig| {
        let (active, open) = (limit(of.max_active), limit(of.max_open));
        match of.kind {
            NamespaceKind::Zoned => format!("{} zones ({active} active, {open} open)", of.zones),
            NamespaceKind::Conventional(LogConfig {
                spare_zones,
                handles,
                collection,
                mapping_unit_lbas,
            }) => {
                let handles = handles.map_or(String::new(), |of| {
                    format!(", {} handles, {:?} isolated", of.count, of.isolation)
                });
                // What a log remembers depends on it.
                let ages = match collection {
                    CollectionPolicy::Greedy => "",
                    CollectionPolicy::CostBenefit => ", with ages",
                };
                let unit = match mapping_unit_lbas {
                    1 => String::new(),
                    lbas => format!(", mapped by {lbas} blocks"),
                };
                format!(
                    "a log of {} zones ({spare_zones} spare{handles}{ages}{unit})",
                    of.zones
                )
            }
        }
    };
    let namespaces: Vec<String> = config.namespaces().iter().map(namespace).collect();
    namespaces.join(", ")
}

/// Whether a state that depends on `saved` can be that of a drive of `config`.
///
/// # Errors
/// [`SnapshotError::OtherDrive`] with the first difference; [`SnapshotError::Impossible`].
pub fn check_shape(saved: &[(String, String)], config: &DriveConfig) -> Result<(), SnapshotError> {
    let here = shape(config);
    for (key, default) in OPTIONAL {
        let of = |shape: &[(String, String)]| {
            let stated = shape.iter().find(|(stated, _)| stated == key);
            stated.map_or(default.to_owned(), |(_, value)| value.clone())
        };
        let (saved, here) = (of(saved), of(&here));
        if saved != here {
            let key = key.to_owned();
            return Err(SnapshotError::OtherDrive { key, saved, here });
        }
    }
    if saved.len() != here.len() {
        return Err(SnapshotError::Impossible {
            what: format!("{} settings of a drive", saved.len()),
        });
    }
    match saved.iter().zip(here).find(|(saved, here)| *saved != here) {
        None => Ok(()),
        Some(((key, saved), (_, here))) => Err(SnapshotError::OtherDrive {
            key: key.clone(),
            saved: saved.clone(),
            here,
        }),
    }
}
