//! The mapping in snapshots and checkpoints.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::elements::{Elements, SavedElements};
use super::fixed::Pool;
use super::{Mapping, NONE, Places};
use crate::config::DriveConfig;
use crate::flash::Blocks;
use crate::layout::Layout;

/// What [`Mapping`] knows, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMapping {
    /// By zone; `u32::MAX`: none. Elements say for themselves which zone has them.
    physical: Vec<u32>,
    /// Lists by group; none unless the mapping is lazy.
    free: Vec<Vec<u32>>,
    invalid: Vec<Vec<u32>>,
    elements: Option<SavedElements>,
}

impl SavedMapping {
    /// Physical zones by zone, and the lists of free and of invalid ones by group.
    pub(crate) fn new(
        physical: Vec<u32>,
        [free, invalid]: [Vec<Vec<u32>>; 2],
        elements: Option<SavedElements>,
    ) -> Self {
        Self {
            physical,
            free,
            invalid,
            elements,
        }
    }

    /// The number of bytes that it never exceeds.
    pub(crate) fn bytes_max(config: &DriveConfig, layout: &Layout) -> u64 {
        let zones = u64::from(config.zones.count);
        // Elements of a group may make one for each of its zones.
        let physical = u64::from(config.mapping.physical_zones(config.zones.count)).max(zones)
            + u64::from(layout.groups());
        // A number has at most 5 bytes if it is one of 32 bits, and 10 otherwise. Each
        // physical zone is in a list, and has state of its own.
        let of_zones = 5 * (zones + physical * 5 + physical * 2);
        if !config.mapping.has_elements() {
            return of_zones;
        }
        // Wear, state and age of each, of which there are no more than blocks; and of
        // each zone, which it has, or had.
        let geometry = &config.geometry;
        let blocks = u64::from(geometry.planes_total()) * u64::from(geometry.blocks_per_plane);
        let of_zone = 5 + 5 * u64::from(layout.zone_blocks());
        of_zones + blocks * (5 + 1 + 10) + zones * of_zone
    }
}

/// The elements that snapshots and checkpoints had behind the rest before states of blocks
/// were kept, if zones consist of any.
pub(crate) fn elements_behind<E>(
    config: &DriveConfig,
    take: impl FnOnce() -> Result<SavedElements, E>,
) -> Result<Option<SavedElements>, E> {
    config.mapping.has_elements().then(take).transpose()
}

impl Mapping {
    /// Everything that a snapshot keeps. Erasures that have been submitted count as over.
    pub(crate) fn save(&self) -> SavedMapping {
        let list = |list: &VecDeque<u32>| list.iter().copied().collect();
        let (free, invalid) = self.settled_pool().map_or_else(Default::default, |pool| {
            let lists = |lists: &[VecDeque<u32>]| lists.iter().map(list).collect();
            (lists(&pool.free), lists(&pool.invalid))
        });
        let elements = self.elements().map(Elements::save);
        SavedMapping {
            physical: match elements {
                Some(_) => vec![NONE; self.physical.len()],
                None => self.physical.clone(),
            },
            free,
            invalid,
            elements,
        }
    }

    /// The lists of physical zones once no erasure is under way.
    fn settled_pool(&self) -> Option<Pool> {
        match &self.places {
            Places::Fixed(fixed) if fixed.pool.is_some() => {
                let mut fixed = fixed.clone();
                fixed.free_erased();
                fixed.pool
            }
            Places::Fixed(_) | Places::Assembled(_) => None,
        }
    }

    /// A mapping from data, of which nothing is believed, over blocks that have been
    /// restored.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore(
        config: &DriveConfig,
        (layout, blocks): (&Layout, &Blocks),
        saved: &SavedMapping,
    ) -> Result<Self, String> {
        let mut mapping = Self::new(config, layout);
        if saved.physical.len() != mapping.physical.len() {
            return Err(format!("a mapping of {} zones", saved.physical.len()));
        }
        match (&mut mapping.places, &saved.elements) {
            (Places::Assembled(elements), Some(saved)) => {
                elements.restore(saved, layout, blocks)?;
                for (physical, zone) in elements.mapped() {
                    mapping.physical[zone.0 as usize] = physical;
                }
                return Ok(mapping);
            }
            (Places::Fixed(fixed), None) => {
                fixed.count_stale(layout, blocks);
                match &mut fixed.pool {
                    Some(pool) => {
                        let physical_zones = fixed.stale.len();
                        *pool = restored_pool(physical_zones, layout.groups(), saved)?;
                        mapping.physical.clone_from(&saved.physical);
                        fixed.free_erased();
                    }
                    None if saved.physical == mapping.physical => {}
                    None => return Err("a direct mapping that is not direct".to_owned()),
                }
            }
            _ => return Err("storage elements of a drive without, or none".to_owned()),
        }
        Ok(mapping)
    }
}

/// The lists of physical zones, if each is in exactly one place, and in its group.
fn restored_pool(physical_zones: usize, groups: u32, saved: &SavedMapping) -> Result<Pool, String> {
    for lists in [&saved.free, &saved.invalid] {
        if lists.len() != groups as usize {
            return Err(format!("lists of free zones of {} groups", lists.len()));
        }
    }
    let mut seen = vec![false; physical_zones];
    let mut see = |physical: u32, group: u32| match seen.get_mut(physical as usize) {
        Some(seen) if !*seen && physical % groups == group => {
            *seen = true;
            Ok(())
        }
        _ => Err(format!("physical zone {physical} in group {group}")),
    };
    for (zone, &physical) in (0..).zip(&saved.physical) {
        if physical != NONE {
            see(physical, zone % groups)?;
        }
    }
    for lists in [&saved.free, &saved.invalid] {
        for (group, list) in (0..).zip(lists) {
            list.iter().try_for_each(|&physical| see(physical, group))?;
        }
    }
    if let Some(lost) = seen.iter().position(|seen| !seen) {
        return Err(format!("physical zone {lost} is nowhere"));
    }
    let lists = |lists: &[Vec<u32>]| {
        let list = |list: &Vec<u32>| list.iter().copied().collect();
        lists.iter().map(list).collect()
    };
    Ok(Pool {
        free: lists(&saved.free),
        invalid: lists(&saved.invalid),
    })
}
