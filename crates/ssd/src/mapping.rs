//! Which physical zone a zone stands on (ConfZNS++, section 4.3; SilentZNS,
//! section 4).
//!
//! *Direct*: zone `n` always stands on physical zone `n`. *Lazy*: a zone has no
//! flash until its first write; it then gets a physical zone from the free
//! list, else the oldest of the invalidated list, which still holds old data.
//! *Chunk* and *stripe*: a physical zone is assembled at the first write, from
//! storage elements ([`elements`]) that [`allocator`] chooses.

pub(crate) mod ahead;
pub mod allocator;
pub mod elements;
mod fixed;
mod places;
pub(crate) mod prepared;
mod saved;

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::ZoneId;

use crate::config::{DriveConfig, MappingConfig};
use crate::flash::Blocks;
use crate::layout::Layout;
use crate::policy::ElementCandidate;
use allocator::ElementId;
use elements::{Elements, Tail};
use fixed::{Fixed, Pool};
pub(crate) use saved::{SavedMapping, elements_behind};

/// "Not mapped".
const NONE: u32 = u32::MAX;

/// The zone mapping of a drive.
///
/// Every physical zone is a list of *places*, in the order in which a zone that is
/// written from its start first touches them. With direct and lazy mapping a place is a
/// block; with chunks and stripes it is a storage element.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Physical zone of each zone, or `NONE`.
    physical: Vec<u32>,
    places: Places,
    /// Of each group, the physical zone whose erasure ahead of need was begun last.
    begun: Vec<Option<u32>>,
}

/// What a zone that has no flash can get.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// One of these physical zones.
    PhysicalZones(Vec<u32>),
    /// Some of these elements: of so many LUNs, so many of each, and whether only their
    /// number in all matters.
    Elements(Vec<ElementCandidate>, (u32, u32, bool)),
}

#[derive(Clone, Debug)]
enum Places {
    Fixed(Fixed),
    Assembled(Box<Elements>),
}

/// Two mappings are the same if zones stand on the same physical zones, and those
/// without a zone are in the same order.
impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        self.physical == other.physical && self.pool() == other.pool()
    }
}

impl Eq for Mapping {}

impl Mapping {
    /// The mapping of a fresh drive.
    #[must_use]
    pub fn new(config: &DriveConfig, layout: &Layout) -> Self {
        let zones = config.zones.count;
        let unmapped = vec![NONE; zones as usize];
        let (physical, places) = match (Elements::new(config, layout), config.mapping) {
            (Some(elements), _) => (unmapped, Places::Assembled(Box::new(elements))),
            (None, MappingConfig::Lazy { physical_zones }) => {
                let pool = Pool::new(physical_zones, layout.groups());
                let fixed = Fixed::new(physical_zones, Some(pool));
                (unmapped, Places::Fixed(fixed))
            }
            (None, _) => ((0..zones).collect(), Places::Fixed(Fixed::new(zones, None))),
        };
        Self {
            physical,
            places,
            begun: vec![None; layout.groups() as usize],
        }
    }

    fn pool(&self) -> Option<&Pool> {
        match &self.places {
            Places::Fixed(fixed) => fixed.pool.as_ref(),
            Places::Assembled(_) => None,
        }
    }

    fn pool_mut(&mut self) -> Option<&mut Pool> {
        match &mut self.places {
            Places::Fixed(fixed) => fixed.pool.as_mut(),
            Places::Assembled(_) => None,
        }
    }

    /// The storage elements, if zones are assembled from them.
    #[must_use]
    pub fn elements(&self) -> Option<&Elements> {
        match &self.places {
            Places::Fixed(_) => None,
            Places::Assembled(elements) => Some(elements),
        }
    }

    fn elements_mut(&mut self) -> Option<&mut Elements> {
        match &mut self.places {
            Places::Fixed(_) => None,
            Places::Assembled(elements) => Some(elements),
        }
    }

    // ---- zones -----------------------------------------------------------

    /// The physical zone that `zone` stands on, if it has one.
    #[inline]
    #[must_use]
    pub fn physical(&self, zone: ZoneId) -> Option<u32> {
        let physical = self.physical[zone.0 as usize];
        (physical != NONE).then_some(physical)
    }

    /// Gives `zone`, which has none, a physical zone, and returns it.
    ///
    /// There always is one: a drive has at least as many physical zones, or
    /// elements for as many, as zones in each group, and those without a zone
    /// are in its lists.
    #[cold]
    pub(crate) fn bind(&mut self, zone: ZoneId, layout: &Layout) -> u32 {
        let physical = match &mut self.places {
            Places::Fixed(fixed) => {
                let pool = fixed.pool.as_mut();
                let pool = pool.expect("with direct mapping every zone has a physical zone");
                pool.take(layout.group_of(zone.0) as usize)
                    .expect("a group has at least as many physical zones as zones")
            }
            Places::Assembled(elements) => elements.assemble(zone, layout),
        };
        let before = std::mem::replace(&mut self.physical[zone.0 as usize], physical);
        assert_eq!(before, NONE, "{zone:?} has flash already");
        physical
    }

    /// Gives `zone`, which has none, what a finish left it after its first `pages` pages
    /// were written. Returns the physical zone; `None`: zones do not consist of elements,
    /// or there are not as many.
    pub(crate) fn bind_finished(
        &mut self,
        zone: ZoneId,
        written: (u32, bool),
        layout: &Layout,
    ) -> Option<u32> {
        let physical = self
            .elements_mut()?
            .assemble_finished(zone, written, layout)?;
        let before = std::mem::replace(&mut self.physical[zone.0 as usize], physical);
        assert_eq!(before, NONE, "{zone:?} has flash already");
        Some(physical)
    }

    /// Takes its flash from a zone that was reset, unless mapping is direct. What has to
    /// be erased of it is known already.
    pub(crate) fn release(&mut self, zone: ZoneId, blocks: &mut Blocks) {
        let Some(physical) = self.physical(zone) else {
            return;
        };
        let has_left = match &mut self.places {
            Places::Fixed(fixed) => fixed.give_back(physical),
            Places::Assembled(elements) => {
                elements.release(physical, blocks);
                true
            }
        };
        if has_left {
            self.physical[zone.0 as usize] = NONE;
        }
    }

    /// How many more zones of the group of `zone` there is flash for; without elements,
    /// all.
    pub(crate) fn zones_left(&self, group: u32) -> u32 {
        self.elements()
            .map_or(u32::MAX, |elements| elements.zones_left(group))
    }

    // ---- what has to be erased -------------------------------------------

    /// The first `pages` pages of a physical zone are programmed.
    #[inline]
    pub(crate) fn programmed(&mut self, physical: u32, pages: u32) {
        if let Places::Assembled(elements) = &mut self.places {
            elements.write(physical, pages);
        }
    }

    /// Makes the places stale that the first `pages` pages of a physical zone touch, all
    /// of which are programmed; or all places if it is `full`.
    pub(crate) fn invalidate(
        &mut self,
        physical: u32,
        (pages, full): (u32, bool),
        (layout, blocks): (&Layout, &mut Blocks),
    ) {
        match &mut self.places {
            Places::Fixed(fixed) => {
                let end = match full {
                    true => layout.zone_blocks(),
                    false => layout.blocks_touched(pages),
                };
                fixed.invalidate(physical, end, (layout, blocks));
            }
            Places::Assembled(elements) => elements.invalidate(physical, full, blocks),
        }
    }

    /// Erases a block of a physical zone, if it is stale and this is the place to do it.
    /// Returns which it is, counted over the drive.
    pub(crate) fn erase(
        &mut self,
        physical: u32,
        (row, slot): (u32, u32),
        (layout, blocks): (&Layout, &mut Blocks),
    ) -> Option<usize> {
        match &mut self.places {
            Places::Fixed(fixed) => {
                let block = row * layout.width() + slot;
                fixed.erase(physical, block, (layout, blocks))
            }
            Places::Assembled(elements) => elements.erase(physical, (row, slot), blocks),
        }
    }

    /// Stale blocks of a physical zone, or its elements that have some.
    pub(crate) fn stale(&self, physical: u32) -> u32 {
        match &self.places {
            Places::Fixed(fixed) => fixed.stale(physical),
            Places::Assembled(elements) => elements.stale_elements(physical),
        }
    }

    /// The places of a physical zone from the first to behind the last with stale blocks,
    /// those before its first `kept_pages` pages left out.
    pub(crate) fn stale_range(
        &self,
        physical: u32,
        kept_pages: u32,
        (layout, blocks): (&Layout, &Blocks),
    ) -> (u32, u32) {
        match &self.places {
            Places::Fixed(fixed) => fixed.stale_range(physical, (layout, blocks)),
            Places::Assembled(elements) => elements.stale_places(physical, kept_pages),
        }
    }

    /// Whether some places of a physical zone have stale blocks.
    pub(crate) fn is_stale_in(
        &self,
        physical: u32,
        places: &Range<u32>,
        (layout, blocks): (&Layout, &Blocks),
    ) -> bool {
        match &self.places {
            Places::Fixed(_) => places
                .clone()
                .any(|block| blocks.is_stale(layout.block_index(physical, block))),
            Places::Assembled(elements) => elements.is_left_of(physical, places),
        }
    }

    /// Whether the first `touched` places of a physical zone, as far as there are, have
    /// been written, and no others.
    pub(crate) fn is_written(&self, physical: u32, touched: u32) -> bool {
        self.elements()
            .is_none_or(|elements| touched == 0 || elements.is_written(physical, touched))
    }

    /// Zones that have flash, and the physical zones that they stand on.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (ZoneId, u32)> {
        let zones = (0..).map(ZoneId).zip(self.physical.iter().copied());
        zones.filter(|(_, physical)| *physical != NONE)
    }

    /// Panics unless what the mapping knows agrees with itself and with the blocks.
    ///
    /// # Panics
    /// As said.
    pub(crate) fn assert_invariants(&self, layout: &Layout, blocks: &Blocks) {
        let mut stands = vec![false; self.physical_zones() as usize];
        for (zone, physical) in self.mapped() {
            let stands = &mut stands[physical as usize];
            assert!(
                !*stands,
                "zone {} has physical zone {physical} alone",
                zone.0
            );
            *stands = true;
        }
        match &self.places {
            Places::Fixed(fixed) => fixed.assert_invariants(&stands, (layout, blocks)),
            Places::Assembled(elements) => elements.assert_invariants(blocks),
        }
    }

    /// An erasure that a reset asked for has the stale blocks of a physical zone.
    pub(crate) fn erasure_begins(&mut self, physical: u32) {
        if let Some(elements) = self.elements_mut() {
            elements.erasure_begins(physical);
        }
    }

    /// It is over.
    pub(crate) fn erasure_ends(&mut self, physical: u32) {
        if let Some(elements) = self.elements_mut() {
            elements.erasure_ends(physical);
        }
    }

    /// Power was lost while these blocks were being erased, each of which is erased again
    /// unless it holds data of a zone: of each, its first `kept_pages` pages.
    pub(crate) fn power_was_lost(
        &mut self,
        interrupted: &[usize],
        kept_pages: impl Fn(ZoneId) -> u32,
        (layout, blocks): (&Layout, &mut Blocks),
    ) {
        self.forget_begun();
        match &mut self.places {
            Places::Assembled(elements) => {
                elements.power_was_lost(interrupted, blocks, kept_pages);
            }
            Places::Fixed(fixed) => {
                let mut kept = vec![0; fixed.physical_zones() as usize];
                for (zone, &physical) in (0..).map(ZoneId).zip(&self.physical) {
                    if physical != NONE {
                        kept[physical as usize] = layout.blocks_touched(kept_pages(zone));
                    }
                }
                for &index in interrupted {
                    let (physical, block) = layout.block_at(index);
                    if kept
                        .get(physical as usize)
                        .is_some_and(|kept| block >= *kept)
                    {
                        fixed.make_stale(physical, index, blocks);
                    }
                }
                fixed.free_erased();
            }
        }
    }

    /// Takes the places away from a zone that its first pages do not touch
    /// ([`Elements::trim`]); `None`: it keeps them.
    pub(crate) fn trim(
        &mut self,
        physical: u32,
        written: (u32, bool),
        blocks: &mut Blocks,
    ) -> Option<Tail> {
        Some(self.elements_mut()?.trim(physical, written, blocks))
    }

    /// Whether stale places that nobody erases were taken from a zone since this was
    /// asked last.
    pub(crate) fn has_given_back_stale(&mut self) -> bool {
        let elements = self.elements_mut();
        elements.is_some_and(Elements::has_given_back_stale)
    }

    /// Physical zones with stale blocks and nothing that is programmed. Elements that no
    /// zone has are put on some.
    pub(crate) fn waiting_for_erasure(&mut self, is_programmed: impl Fn(u32) -> bool) -> Vec<u32> {
        match &mut self.places {
            Places::Fixed(fixed) => (0..fixed.physical_zones())
                .filter(|&physical| fixed.stale(physical) > 0 && !is_programmed(physical))
                .collect(),
            Places::Assembled(elements) => elements.collect_stale(),
        }
    }

    /// The physical zones in the order in which a snapshot has them.
    pub(crate) fn saved_order(&self) -> Vec<Option<u32>> {
        match &self.places {
            Places::Fixed(fixed) => (0..fixed.physical_zones()).map(Some).collect(),
            Places::Assembled(elements) => {
                let mut order = vec![None; elements.fresh_physical_zones() as usize];
                for (physical, zone) in elements.mapped() {
                    order[zone.0 as usize] = Some(physical);
                }
                order
            }
        }
    }

    /// What a zone of a group can get that has no flash.
    pub(crate) fn choice(&self, group: u32) -> Choice {
        match &self.places {
            Places::Fixed(_) => {
                let free: Vec<u32> = self.free(group).collect();
                Choice::PhysicalZones(match free.is_empty() {
                    true => self.invalid_zones(group),
                    false => free,
                })
            }
            Places::Assembled(elements) => {
                let (candidates, needed) = elements.candidates(group);
                Choice::Elements(candidates, needed)
            }
        }
    }

    // ---- lists of physical zones -----------------------------------------

    /// An invalid physical zone has been erased: it is free, unless a zone
    /// took it in the meantime.
    pub fn erased(&mut self, physical: u32) {
        if let Some(pool) = self.pool_mut() {
            pool.erased(physical);
        }
    }

    /// Physical zones on the lists of free and of invalid ones of a group.
    #[must_use]
    pub fn pool_of(&self, group: u32) -> (u32, u32) {
        let count = |lists: &[VecDeque<u32>]| lists[group as usize].len() as u32;
        self.pool()
            .map_or((0, 0), |pool| (count(&pool.free), count(&pool.invalid)))
    }

    /// Invalid zones of a group, from the one that was reset first.
    pub(crate) fn invalid(&self, group: u32) -> impl Iterator<Item = u32> {
        let lists = self.pool().into_iter();
        lists.flat_map(move |pool| pool.invalid[group as usize].iter().copied())
    }

    /// Free physical zones of a group, from the one that is so for longest.
    pub(crate) fn free(&self, group: u32) -> impl Iterator<Item = u32> {
        let lists = self.pool().into_iter();
        lists.flat_map(move |pool| pool.free[group as usize].iter().copied())
    }

    /// The next zone that gets a physical zone from the list that has this one gets this
    /// one.
    pub(crate) fn prefer(&mut self, physical: u32) {
        if let Some(pool) = self.pool_mut() {
            pool.prefer(physical);
        }
    }

    /// The next zone of a group gets these elements.
    pub(crate) fn choose_elements(&mut self, group: u32, chosen: Vec<ElementId>) {
        if let Some(elements) = self.elements_mut() {
            elements.choose(group, chosen);
        }
    }

    /// Invalid physical zones of a group, oldest first, as a list: for comparison in tests.
    #[must_use]
    pub fn invalid_zones(&self, group: u32) -> Vec<u32> {
        self.invalid(group).collect()
    }

    /// Physical zones on the free list and on the invalidated list.
    #[must_use]
    pub fn pool_sizes(&self) -> (usize, usize) {
        let count = |lists: &[VecDeque<u32>]| lists.iter().map(VecDeque::len).sum();
        self.pool()
            .map_or((0, 0), |pool| (count(&pool.free), count(&pool.invalid)))
    }
}
