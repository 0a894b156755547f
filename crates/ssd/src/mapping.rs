//! Which physical zone a zone stands on (ConfZNS++, section 4.3).
//!
//! *Direct*: zone `n` always stands on physical zone `n`. *Lazy*: a zone has no
//! flash until its first write; it then gets a physical zone from the free
//! list, else the oldest of the invalidated list, which still holds old data.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use zonelab_device::ZoneId;

use crate::config::MappingConfig;

/// "Not mapped".
const NONE: u32 = u32::MAX;

/// The zone mapping of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical zone of each zone, or `NONE`.
    physical: Vec<u32>,
    pool: Option<Pool>,
}

/// Physical zones that no zone stands on, by group: a zone keeps to the dies
/// of its group, or isolation between groups would be lost at the first reset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pool {
    free: Vec<VecDeque<u32>>,
    invalidated: Vec<VecDeque<u32>>,
}

/// What [`Mapping`] knows, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMapping {
    /// By zone; `u32::MAX`: none.
    physical: Vec<u32>,
    /// Lists by group; none with direct mapping.
    free: Vec<Vec<u32>>,
    invalidated: Vec<Vec<u32>>,
}

impl Mapping {
    /// The mapping of a fresh drive with `zones` zones in `groups` groups.
    #[must_use]
    pub fn new(config: MappingConfig, zones: u32, groups: u32) -> Self {
        match config {
            MappingConfig::Direct => Self {
                physical: (0..zones).collect(),
                pool: None,
            },
            MappingConfig::Lazy { physical_zones } => {
                let free = (0..groups)
                    .map(|group| (group..physical_zones).step_by(groups as usize).collect())
                    .collect();
                Self {
                    physical: vec![NONE; zones as usize],
                    pool: Some(Pool {
                        free,
                        invalidated: vec![VecDeque::new(); groups as usize],
                    }),
                }
            }
        }
    }

    /// The physical zone that `zone` stands on, if it has one.
    #[inline]
    #[must_use]
    pub fn physical(&self, zone: ZoneId) -> Option<u32> {
        let physical = self.physical[zone.0 as usize];
        (physical != NONE).then_some(physical)
    }

    /// The physical zone that `zone` stands on, giving it one if it has none.
    ///
    /// There always is one: a drive has at least as many physical zones as
    /// zones in each group, and those without a zone are in its lists.
    #[inline]
    pub fn map(&mut self, zone: ZoneId) -> u32 {
        let physical = self.physical[zone.0 as usize];
        if physical != NONE {
            physical
        } else {
            self.take(zone)
        }
    }

    #[cold]
    fn take(&mut self, zone: ZoneId) -> u32 {
        let pool = self
            .pool
            .as_mut()
            .expect("only lazy mapping leaves a zone without flash");
        let group = zone.0 as usize % pool.free.len();
        let physical = pool.free[group]
            .pop_front()
            .or_else(|| pool.invalidated[group].pop_front())
            .expect("a group has at least as many physical zones as zones");
        self.physical[zone.0 as usize] = physical;
        physical
    }

    /// Takes the flash from `zone` after a reset, and returns it; with direct
    /// mapping the zone keeps it. `erased`: it can be programmed as it is.
    pub fn release(&mut self, zone: ZoneId, erased: bool) -> Option<u32> {
        let physical = self.physical(zone)?;
        if let Some(pool) = &mut self.pool {
            let group = zone.0 as usize % pool.free.len();
            self.physical[zone.0 as usize] = NONE;
            let list = if erased {
                &mut pool.free
            } else {
                &mut pool.invalidated
            };
            list[group].push_back(physical);
        }
        Some(physical)
    }

    /// An invalidated physical zone has been erased: it is free, unless a zone
    /// took it in the meantime.
    pub fn erased(&mut self, physical: u32) {
        if let Some(pool) = &mut self.pool {
            let group = physical as usize % pool.free.len();
            let invalidated = &mut pool.invalidated[group];
            if let Some(at) = invalidated.iter().position(|&p| p == physical) {
                invalidated.remove(at);
                pool.free[group].push_back(physical);
            }
        }
    }

    /// Free and invalid zones of a group.
    #[must_use]
    pub fn pool_of(&self, group: u32) -> (u32, u32) {
        let count = |lists: &[VecDeque<u32>]| lists[group as usize].len() as u32;
        self.pool
            .as_ref()
            .map_or((0, 0), |pool| (count(&pool.free), count(&pool.invalidated)))
    }

    /// Invalid zones of a group, from the one that was reset first.
    pub(crate) fn invalid(&self, group: u32) -> impl Iterator<Item = u32> {
        let lists = self.pool.iter().map(|pool| &pool.invalidated);
        lists.flat_map(move |lists| lists[group as usize].iter().copied())
    }

    /// The same, for comparison in tests.
    #[must_use]
    pub fn invalid_zones(&self, group: u32) -> Vec<u32> {
        self.invalid(group).collect()
    }

    /// The next zone that needs flash and finds none free is given this
    /// invalid physical zone.
    pub(crate) fn prefer(&mut self, physical: u32) {
        if let Some(pool) = &mut self.pool {
            let group = physical as usize % pool.free.len();
            let invalidated = &mut pool.invalidated[group];
            if let Some(at) = invalidated.iter().position(|&p| p == physical) {
                invalidated.remove(at);
                invalidated.push_front(physical);
            }
        }
    }

    /// Everything that a snapshot keeps.
    pub(crate) fn save(&self) -> SavedMapping {
        let lists = |lists: &[VecDeque<u32>]| {
            lists
                .iter()
                .map(|list| list.iter().copied().collect())
                .collect()
        };
        let (free, invalidated) = self.pool.as_ref().map_or_else(Default::default, |pool| {
            (lists(&pool.free), lists(&pool.invalidated))
        });
        SavedMapping {
            physical: self.physical.clone(),
            free,
            invalidated,
        }
    }

    /// A mapping from data, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore(
        config: MappingConfig,
        zones: u32,
        groups: u32,
        saved: &SavedMapping,
    ) -> Result<Self, String> {
        let mut mapping = Self::new(config, zones, groups);
        if saved.physical.len() != mapping.physical.len() {
            return Err(format!("a mapping of {} zones", saved.physical.len()));
        }
        let MappingConfig::Lazy { physical_zones } = config else {
            let is_same = saved.physical == mapping.physical;
            return if is_same && saved.free.is_empty() && saved.invalidated.is_empty() {
                Ok(mapping)
            } else {
                Err("a direct mapping that is not direct".to_owned())
            };
        };
        let lists_fit =
            saved.free.len() == groups as usize && saved.invalidated.len() == groups as usize;
        if !lists_fit {
            return Err(format!(
                "lists of free zones of {} groups",
                saved.free.len()
            ));
        }
        // Every physical zone is in exactly one place, and in its group.
        let mut seen = vec![false; physical_zones as usize];
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
        for lists in [&saved.free, &saved.invalidated] {
            for (group, list) in (0..).zip(lists) {
                list.iter().try_for_each(|&physical| see(physical, group))?;
            }
        }
        if let Some(lost) = seen.iter().position(|seen| !seen) {
            return Err(format!("physical zone {lost} is nowhere"));
        }
        let lists = |lists: &[Vec<u32>]| {
            lists
                .iter()
                .map(|list| list.iter().copied().collect())
                .collect()
        };
        mapping.physical.clone_from(&saved.physical);
        mapping.pool = Some(Pool {
            free: lists(&saved.free),
            invalidated: lists(&saved.invalidated),
        });
        Ok(mapping)
    }

    /// Physical zones on the free list and on the invalidated list.
    #[must_use]
    pub fn pool_sizes(&self) -> (usize, usize) {
        let count = |lists: &[VecDeque<u32>]| lists.iter().map(VecDeque::len).sum();
        self.pool
            .as_ref()
            .map_or((0, 0), |pool| (count(&pool.free), count(&pool.invalidated)))
    }
}
