//! Physical zones whose blocks are always the same: those of direct and lazy mapping.
//!
//! Their blocks are their places, in the order of [`Layout::blocks_touched`]. With
//! lazy mapping a zone has a physical zone from its first write to its reset, and those
//! that no zone stands on are in a [`Pool`].

use std::collections::VecDeque;

use crate::flash::Blocks;
use crate::layout::Layout;

/// All physical zones of a drive.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    /// Stale blocks of each.
    pub(super) stale: Vec<u32>,
    /// Those that no zone stands on; `None`: the mapping is direct.
    pub(super) pool: Option<Pool>,
}

/// Physical zones that no zone stands on, by group: a zone keeps to the dies
/// of its group, or isolation between groups would be lost at the first reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    /// Without stale blocks, from the one that is so for longest.
    pub(super) free: Vec<VecDeque<u32>>,
    /// With some, from the one that was reset first.
    pub(super) invalid: Vec<VecDeque<u32>>,
}

impl Fixed {
    pub(super) fn new(physical_zones: u32, pool: Option<Pool>) -> Self {
        Self {
            stale: vec![0; physical_zones as usize],
            pool,
        }
    }

    pub(super) fn physical_zones(&self) -> u32 {
        u32::try_from(self.stale.len()).expect("their number came as u32")
    }

    /// Stale blocks of a physical zone.
    #[inline]
    pub(super) fn stale(&self, physical: u32) -> u32 {
        self.stale[physical as usize]
    }

    /// Erases a block of a physical zone, if it is stale. Returns which it is, counted
    /// over the drive.
    pub(super) fn erase(
        &mut self,
        physical: u32,
        block: u32,
        (layout, blocks): (&Layout, &mut Blocks),
    ) -> Option<usize> {
        let index = layout.block_index(physical, block);
        if !blocks.is_stale(index) {
            return None;
        }
        blocks.erase(index);
        let stale = &mut self.stale[physical as usize];
        assert!(
            *stale > 0,
            "a stale block of physical zone {physical} counts"
        );
        *stale -= 1;
        Some(index)
    }

    /// Makes the first blocks of a physical zone stale, up to `end`.
    pub(super) fn invalidate(
        &mut self,
        physical: u32,
        end: u32,
        (layout, blocks): (&Layout, &mut Blocks),
    ) {
        debug_assert!(
            end <= layout.zone_blocks(),
            "only blocks of the zone become stale"
        );
        for block in 0..end {
            self.make_stale(physical, layout.block_index(physical, block), blocks);
        }
    }

    /// Makes a block of a physical zone stale.
    pub(super) fn make_stale(&mut self, physical: u32, index: usize, blocks: &mut Blocks) {
        self.stale[physical as usize] += u32::from(!blocks.is_stale(index));
        blocks.make_stale(index);
    }

    /// The stale blocks of a physical zone lie in these places.
    pub(super) fn stale_range(
        &self,
        physical: u32,
        (layout, blocks): (&Layout, &Blocks),
    ) -> (u32, u32) {
        if self.stale(physical) == 0 {
            return (0, 0);
        }
        let is_stale = |block: &u32| blocks.is_stale(layout.block_index(physical, *block));
        let all = 0..layout.zone_blocks();
        let first = all.clone().find(is_stale);
        let last = all.rev().find(is_stale);
        (first.unwrap_or(0), last.map_or(0, |last| last + 1))
    }

    /// Counts the stale blocks anew: blocks have been restored.
    pub(super) fn count_stale(&mut self, layout: &Layout, blocks: &Blocks) {
        for (physical, stale) in (0..).zip(&mut self.stale) {
            let of_zone = (0..layout.zone_blocks()).map(|n| layout.block_index(physical, n));
            let count = of_zone.filter(|block| blocks.is_stale(*block)).count();
            *stale = u32::try_from(count).expect("a zone has fewer than 2^32 blocks");
        }
    }

    /// Panics unless stale blocks are counted right, and the lists have the physical zones
    /// that no zone `stands` on, each once.
    pub(super) fn assert_invariants(&self, stands: &[bool], (layout, blocks): (&Layout, &Blocks)) {
        let mut counted = self.clone();
        counted.count_stale(layout, blocks);
        assert_eq!(counted.stale, self.stale, "stale blocks of physical zones");
        let Some(pool) = &self.pool else { return };
        let mut has_place = stands.to_vec();
        for (list, is_free) in [(&pool.free, true), (&pool.invalid, false)] {
            for &physical in list.iter().flatten() {
                let has_place = &mut has_place[physical as usize];
                assert!(!*has_place, "physical zone {physical} is in one place");
                *has_place = true;
                let is_clean = self.stale(physical) == 0;
                assert!(
                    !is_free || is_clean,
                    "free physical zone {physical} has nothing to be erased"
                );
            }
        }
        assert!(
            has_place.iter().all(|has_place| *has_place),
            "every physical zone has a zone or is on a list"
        );
    }

    /// Nothing is being erased any more: invalid physical zones without stale blocks are
    /// free, in their order. One that was erased for two resets was to be free when both
    /// erasures are over. One that a zone had and left unwritten while it was being erased is
    /// not free if that was interrupted.
    pub(super) fn free_erased(&mut self) {
        let Self { stale, pool } = self;
        let Some(pool) = pool else { return };
        let has_stale = |physical: &u32| stale[*physical as usize] > 0;
        for (free, invalid) in pool.free.iter_mut().zip(&mut pool.invalid) {
            free.extend(invalid.iter().filter(|physical| !has_stale(physical)));
            invalid.retain(has_stale);
            invalid.extend(free.iter().filter(|physical| has_stale(physical)));
            free.retain(|physical| !has_stale(physical));
        }
    }

    /// A zone leaves a physical zone, which is of use to others now.
    pub(super) fn give_back(&mut self, physical: u32) -> bool {
        let is_clean = self.stale(physical) == 0;
        let Some(pool) = &mut self.pool else {
            return false;
        };
        let group = physical as usize % pool.free.len();
        debug_assert!(
            !pool.free[group].contains(&physical) && !pool.invalid[group].contains(&physical),
            "physical zone {physical} is given back once"
        );
        let list = match is_clean {
            true => &mut pool.free,
            false => &mut pool.invalid,
        };
        list[group].push_back(physical);
        true
    }
}

impl Pool {
    pub(super) fn new(physical_zones: u32, groups: u32) -> Self {
        let of_group = |group| (group..physical_zones).step_by(groups as usize).collect();
        Self {
            free: (0..groups).map(of_group).collect(),
            invalid: vec![VecDeque::new(); groups as usize],
        }
    }

    /// Takes a physical zone of a group: a free one, else the invalid one that was reset
    /// first.
    pub(super) fn take(&mut self, group: usize) -> Option<u32> {
        let free = self.free[group].pop_front();
        free.or_else(|| self.invalid[group].pop_front())
    }

    /// An invalid physical zone has been erased: it is free, unless a zone took it in
    /// the meantime.
    pub(super) fn erased(&mut self, physical: u32) {
        let group = physical as usize % self.free.len();
        let invalid = &mut self.invalid[group];
        if let Some(at) = invalid.iter().position(|&of| of == physical) {
            invalid.remove(at);
            debug_assert!(
                !self.free[group].contains(&physical),
                "physical zone {physical} is on one list"
            );
            self.free[group].push_back(physical);
        }
    }

    /// The next zone that gets a physical zone from the list that has this one gets
    /// this one.
    pub(super) fn prefer(&mut self, physical: u32) {
        let group = physical as usize % self.free.len();
        for list in [&mut self.free[group], &mut self.invalid[group]] {
            if let Some(at) = list.iter().position(|&of| of == physical) {
                list.remove(at);
                list.push_front(physical);
            }
        }
    }
}
