//! Which physical zone a zone stands on (ConfZNS++, section 4.3; SilentZNS,
//! section 4).
//!
//! *Direct*: zone `n` always stands on physical zone `n`. *Lazy*: a zone has no
//! flash until its first write; it then gets a physical zone from the free
//! list, else the oldest of the invalidated list, which still holds old data.
//! *Chunk* and *stripe*: a physical zone is assembled at the first write, from
//! storage elements ([`elements`]) that [`allocator`] chooses.

pub mod allocator;
pub mod elements;
pub(crate) mod prepared;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use zonelab_device::ZoneId;

use crate::config::MappingConfig;
use crate::flash::Flash;
use elements::Elements;

/// "Not mapped".
const NONE: u32 = u32::MAX;

/// The zone mapping of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical zone of each zone, or `NONE`.
    physical: Vec<u32>,
    pool: Option<Pool>,
    /// Zones are assembled from elements.
    has_elements: bool,
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
                has_elements: false,
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
                    has_elements: false,
                }
            }
            MappingConfig::Chunk { .. } | MappingConfig::Stripe { .. } => Self {
                physical: vec![NONE; zones as usize],
                pool: None,
                has_elements: true,
            },
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
    /// There always is one: a drive has at least as many physical zones, or
    /// elements for as many, as zones in each group, and those without a zone
    /// are in its lists.
    #[inline]
    pub(crate) fn map(&mut self, zone: ZoneId, flash: &mut Flash) -> u32 {
        let physical = self.physical[zone.0 as usize];
        if physical != NONE {
            physical
        } else {
            self.take(zone, flash)
        }
    }

    #[cold]
    fn take(&mut self, zone: ZoneId, flash: &mut Flash) -> u32 {
        let physical = match &mut self.pool {
            Some(pool) => {
                let group = zone.0 as usize % pool.free.len();
                pool.free[group]
                    .pop_front()
                    .or_else(|| pool.invalidated[group].pop_front())
                    .expect("a group has at least as many physical zones as zones")
            }
            None => flash.assemble(zone),
        };
        self.physical[zone.0 as usize] = physical;
        physical
    }

    /// Gives `zone`, which consists of elements and has none, what a finish left it
    /// after its first `pages` pages were written. Returns the physical zone; `None`:
    /// there are not as many elements.
    pub(crate) fn map_finished(
        &mut self,
        zone: ZoneId,
        (pages, by_line): (u32, bool),
        flash: &mut Flash,
    ) -> Option<u32> {
        let physical = flash.assemble_finished(zone, pages, by_line)?;
        self.physical[zone.0 as usize] = physical;
        Some(physical)
    }

    /// Marks what is on the flash of `zone` as old and, unless mapping is direct,
    /// takes the flash from it. Returns it, if there is something to erase.
    pub(crate) fn release(&mut self, zone: ZoneId, flash: &mut Flash) -> Option<u32> {
        let physical = self.physical(zone)?;
        flash.invalidate(physical);
        let is_clean = flash.stale_blocks(physical) == 0;
        if let Some(pool) = &mut self.pool {
            let group = zone.0 as usize % pool.free.len();
            self.physical[zone.0 as usize] = NONE;
            let list = if is_clean {
                &mut pool.free
            } else {
                &mut pool.invalidated
            };
            list[group].push_back(physical);
        } else if flash.disassemble(physical) {
            self.physical[zone.0 as usize] = NONE;
        }
        (!is_clean).then_some(physical)
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

    /// Free physical zones of a group, from the one that is so for longest.
    pub(crate) fn free(&self, group: u32) -> impl Iterator<Item = u32> {
        let lists = self.pool.iter().map(|pool| &pool.free);
        lists.flat_map(move |lists| lists[group as usize].iter().copied())
    }

    /// The next zone of its group that needs flash is given this free physical zone.
    pub(crate) fn prefer_free(&mut self, physical: u32) {
        if let Some(pool) = &mut self.pool {
            let group = physical as usize % pool.free.len();
            let free = &mut pool.free[group];
            if let Some(at) = free.iter().position(|&p| p == physical) {
                free.remove(at);
                free.push_front(physical);
            }
        }
    }

    /// Invalid physical zones of a group, oldest first, as a list: for comparison in tests.
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
            physical: match self.has_elements {
                true => vec![NONE; self.physical.len()],
                false => self.physical.clone(),
            },
            free,
            invalidated,
        }
    }

    /// Zones stand on what their elements say, which a snapshot kept.
    pub(crate) fn restored_elements(&mut self, flash: &Flash) {
        for (physical, zone) in flash.elements().into_iter().flat_map(Elements::mapped) {
            self.physical[zone.0 as usize] = physical;
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
            // Elements say for themselves which zone has them: see `restored_elements`.
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
