//! Which die takes the next program of a zone, where the write buffer decides.
//!
//! Zones that visit their dies in a fixed order, and that happen to stand at the
//! same die, go on so: they fill one die after the other while the rest idle. So a
//! unit (what one program takes) that leaves the buffer goes to the die of its zone
//! that has the least work. It need not look further than its *line*: as many units
//! as the zone has dies, one on each. Within a line the order is free, so that the
//! page that a unit has on its die follows from the line, blocks fill evenly, and a
//! row of blocks belongs to a zone as a whole. The places of units are kept, since
//! reads have to find them.
//!
//! Units that no program of the buffer has placed (of zones that were declared
//! full, or saved while the power went) are where the stripe has them, or at the
//! next die that the line has left.

use serde::{Deserialize, Serialize};
use zonelab_device::Nanos;

use super::Flash;
use crate::config::DriveConfig;
use crate::layout::{Divisor, Layout};

/// Where the units of all zones are.
#[derive(Clone, Debug)]
pub(super) struct Placements {
    /// Pages of a unit.
    unit_pages: Divisor,
    /// Units of a line: dies of a zone, or planes if a program takes one.
    width: Divisor,
    /// Units of a zone.
    units: u32,
    /// By physical zone.
    zones: Vec<Placed>,
    /// Where to look first, by group: behind the die that was taken last.
    next: Vec<u32>,
    /// Scratch: positions of a line that are taken.
    taken: Vec<bool>,
}

/// Where the units of a zone are.
#[derive(Clone, Debug, Default)]
struct Placed {
    /// Positions in the stripe, counted in units, of the first `count` units. Empty
    /// until the first is placed, and kept for what is written after a reset.
    positions: Box<[u16]>,
    count: u32,
}

/// What [`Placements`] knows, as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPlacements {
    next: Vec<u32>,
    /// Physical zones with units that were placed.
    zones: Vec<(u32, Vec<u16>)>,
}

impl Placements {
    /// Those of a fresh drive; `None`: its zones visit their dies in a fixed order.
    pub(super) fn new(config: &DriveConfig, layout: &Layout, zones: u32) -> Option<Self> {
        if !config.places_by_work() {
            return None;
        }
        let unit_pages = config.pages_per_program();
        let width = layout.width() / unit_pages;
        Some(Self {
            unit_pages: Divisor::new(unit_pages),
            width: Divisor::new(width),
            units: layout.zone_pages().div_ceil(unit_pages),
            zones: vec![Placed::default(); zones as usize],
            next: vec![0; layout.groups() as usize],
            taken: vec![false; width as usize],
        })
    }

    /// The position in the stripe of a page of a zone.
    #[inline]
    pub(super) fn slot(&self, physical: u32, page: u32) -> u32 {
        let unit = self.unit_pages.div(page);
        let placed = &self.zones[physical as usize];
        let position = if unit < placed.count {
            u32::from(placed.positions[unit as usize])
        } else {
            self.width.rem(unit)
        };
        position * self.unit_pages.value() + self.unit_pages.rem(page)
    }

    /// Gives places to the units of pages `first..=last` that have none. `work` is
    /// that of the die at a position of the stripe.
    pub(super) fn place(
        &mut self,
        (physical, group): (u32, u32),
        (first, last): (u32, u32),
        work: impl Fn(u32) -> Nanos,
    ) {
        let (first, last) = (self.unit_pages.div(first), self.unit_pages.div(last));
        if last < self.zones[physical as usize].count {
            return;
        }
        self.settle_units(physical, first);
        let width = self.width.value();
        for unit in self.zones[physical as usize].count..=last {
            self.look_at_line(physical);
            let next = self.next[group as usize];
            // From `next` on and round: of equals, the first.
            let free = (next..width).chain(0..next);
            let free = free.filter(|&position| !self.taken[position as usize]);
            let best = free.min_by_key(|&position| work(position * self.unit_pages.value()));
            let best = best.expect("a line has a place for each of its units");
            self.next[group as usize] = if best + 1 == width { 0 } else { best + 1 };
            self.put(physical, unit, best);
        }
    }

    /// The first `pages` pages of a zone are programmed, some of them not from the buffer.
    pub(super) fn settle(&mut self, physical: u32, pages: u32) {
        let end = pages.div_ceil(self.unit_pages.value());
        // A whole zone of which none was placed is where the stripe has it. Of others
        // the last unit has to stay where it is, as the rest of its blocks may come.
        if self.zones[physical as usize].count > 0 || end < self.units {
            self.settle_units(physical, end);
        }
    }

    fn settle_units(&mut self, physical: u32, end: u32) {
        let width = self.width.value();
        for unit in self.zones[physical as usize].count..end {
            self.look_at_line(physical);
            let usual = self.width.rem(unit);
            let mut free = (usual..width).chain(0..usual);
            let free = free.find(|&position| !self.taken[position as usize]);
            self.put(
                physical,
                unit,
                free.expect("a line has a place for each of its units"),
            );
        }
    }

    /// Notes which positions the line of the next unit of a zone has left.
    fn look_at_line(&mut self, physical: u32) {
        let placed = &self.zones[physical as usize];
        let begun = placed.count - self.width.rem(placed.count);
        self.taken.fill(false);
        // None, if no unit of the zone has ever been placed.
        for &position in placed
            .positions
            .get(begun as usize..placed.count as usize)
            .unwrap_or(&[])
        {
            self.taken[position as usize] = true;
        }
    }

    fn put(&mut self, physical: u32, unit: u32, position: u32) {
        let units = self.units as usize;
        let placed = &mut self.zones[physical as usize];
        if placed.positions.is_empty() {
            placed.positions = vec![0; units].into();
        }
        // Fits: checked, a zone spans fewer than 2^16 planes.
        placed.positions[unit as usize] = position as u16;
        placed.count = unit + 1;
    }

    /// A zone was reset.
    pub(super) fn clear(&mut self, physical: u32) {
        self.zones[physical as usize].count = 0;
    }

    fn save(&self) -> SavedPlacements {
        let of = |(physical, placed): (u32, &Placed)| {
            (physical, placed.positions[..placed.count as usize].to_vec())
        };
        let zones = (0..)
            .zip(&self.zones)
            .filter(|(_, placed)| placed.count > 0);
        SavedPlacements {
            next: self.next.clone(),
            zones: zones.map(of).collect(),
        }
    }

    fn restore(&mut self, saved: &SavedPlacements) -> Result<(), String> {
        let width = self.width.value();
        if saved.next.len() != self.next.len() || saved.next.iter().any(|&next| next >= width) {
            return Err("the die that is next".to_owned());
        }
        self.next.clone_from(&saved.next);
        let mut least = 0;
        for (physical, positions) in &saved.zones {
            let is_known = *physical >= least && (*physical as usize) < self.zones.len();
            if !is_known || positions.len() > self.units as usize {
                return Err(format!("places of pages of physical zone {physical}"));
            }
            least = physical + 1;
            let mut unit = 0;
            for line in positions.chunks(width as usize) {
                self.taken.fill(false);
                for &position in line {
                    match self.taken.get_mut(usize::from(position)) {
                        Some(taken) if !*taken => *taken = true,
                        _ => {
                            let what = format!("pages of physical zone {physical} in one place");
                            return Err(what);
                        }
                    }
                    self.put(*physical, unit, u32::from(position));
                    unit += 1;
                }
            }
        }
        Ok(())
    }
}

impl Flash {
    /// The block that a page of a physical zone is in, as [`Flash::erase_counts`] counts
    /// them; `None`: a finish took it away.
    #[must_use]
    pub fn block_of_page(&self, physical: u32, page: u32) -> Option<usize> {
        let row = page / self.pages_per_row;
        let slot = match &self.placements {
            None => self.layout.slot_of_page(page),
            Some(placements) => placements.slot(physical, page),
        };
        self.mapping.block(physical, (row, slot), &self.layout)
    }

    /// Finds dies for the pages `first..=last` of a physical zone that have none.
    pub(super) fn place(&mut self, now: Nanos, physical: u32, pages: (u32, u32)) {
        if let Some(placements) = &mut self.placements {
            let group = self.layout.group_of(physical);
            let stripe = self.layout.stripe(physical);
            let work = |slot: u32| self.media.backlog(now, stripe[slot as usize]);
            placements.place((physical, group), pages, work);
        }
    }

    /// Places of pages, for a snapshot; `None`: the write buffer has placed none.
    pub(super) fn save_placements(&self) -> Option<SavedPlacements> {
        let saved = self.placements.as_ref()?.save();
        let is_fresh = saved.zones.is_empty() && saved.next.iter().all(|&next| next == 0);
        (!is_fresh).then_some(saved)
    }

    /// Puts pages where a snapshot has them.
    ///
    /// # Errors
    /// What is impossible about it. The flash is of no use then.
    pub(super) fn restore_placements(&mut self, saved: &SavedPlacements) -> Result<(), String> {
        match &mut self.placements {
            Some(placements) => placements.restore(saved),
            // A drive with a fixed order reads them in that.
            None => Ok(()),
        }
    }
}
