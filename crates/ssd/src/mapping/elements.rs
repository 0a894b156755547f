//! Zones that are assembled from storage elements (SilentZNS, section 4).
//!
//! An *element* is a chunk, some blocks in a row on one plane, or a stripe, one
//! block on each plane of a group. A zone gets its elements at its first write
//! (`Elements::assemble`): those of least wear that [`Allocator`] finds, as
//! many from each plane. Pages go over them as over the blocks of any zone, so
//! that a zone is as wide with elements as without.
//!
//! What a zone is assembled of is a *physical zone* for the rest of the drive:
//! a number, under which its elements are in a table. It outlives the zone's
//! stay on it while its elements are being erased, and is used again after.
//!
//! Elements of a physical zone have *places*, in the order in which a zone that
//! is written from its start first touches them. Chunks lie in *lines* of one on
//! each plane; a stripe is a line.
//!
//! ```text
//! chunk of 2 blocks, 4 planes              stripe
//! plane     0  1  2  3                     plane     0  1  2  3
//! row 0    [0][1][2][3]  line 0            row 0    [0  0  0  0]  line 0
//! row 1    [0][1][2][3]                    row 1    [1  1  1  1]  line 1
//! row 2    [4][5][6][7]  line 1            row 2    [2  2  2  2]  line 2
//! ```
//!
//! Blocks are erased one by one, by whoever gets to them first: an erasure that
//! a reset began, or a write to the zone that has the element by then. Whether a
//! block has to be erased is a flag of the block, so that none is erased twice.
//!
//! A write that its zone had accepted before it was reset, and that starts after
//! that, takes its time on the planes where the zone was, and leaves no trace.

mod gathered;
mod power;
mod saved;

use zonelab_device::ZoneId;

use super::allocator::{Allocator, Availability, ElementId};
use crate::config::{DriveConfig, EraseWhen, MappingConfig};
use crate::layout::{Divisor, Layout};

pub(crate) use saved::SavedElements;

/// No element, no zone.
const NONE: u32 = u32::MAX;

/// The element had to be erased when the zone was assembled.
const WAS_STALE: u8 = 1;
/// An erasure that a reset began has the element.
const TAKEN: u8 = 2;

/// The storage elements of a drive, and the physical zones made of them.
#[derive(Clone, Debug)]
pub struct Elements {
    shape: Shape,
    /// Of each group of zones.
    allocators: Vec<Allocator>,
    /// Elements by group: of group g from `g * group_elements` on. Blocks of each
    /// that are to be erased, ...
    stale_left: Vec<u32>,
    /// ... erasures that have it, ...
    erasing: Vec<u32>,
    /// ... and the physical zone that a zone stands on and it is part of, or `NONE`.
    owner: Vec<u32>,
    group_elements: u32,
    /// Blocks of the drive that are to be erased.
    stale: Vec<bool>,
    /// Planes of each group, in stripe order.
    planes: Vec<u32>,
    units: UnitTable,
    physical: Vec<Physical>,
    /// Elements of each physical zone by place, or `NONE`: `shape.places` each.
    table: Vec<u32>,
    /// Flags beside it.
    flags: Vec<u8>,
    /// Elements that a finish took from physical zones while erasures had them.
    trimmed: Vec<(u32, usize)>,
    zones: u32,
    /// Scratch.
    chosen: Vec<ElementId>,
    turns: Vec<(u64, u32, ElementId)>,
}

/// Where pages of physical zones are: `width` units for each line of each.
#[derive(Clone, Debug)]
struct UnitTable {
    units: Vec<u32>,
    /// Unit of each plane.
    of_plane: Vec<u32>,
    pages_per_line: Divisor,
    lines: u32,
    width: u32,
}

/// Sizes, in elements and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Planes of a zone.
    width: u32,
    groups: u32,
    is_stripe: bool,
    /// Rows of blocks of an element.
    element_rows: u32,
    /// Blocks of an element.
    element_blocks: u32,
    /// Elements of a line.
    line_elements: u32,
    /// Elements of a zone.
    places: u32,
    /// Elements of a zone on each LUN of the allocator, or on average.
    per_lun: u32,
    /// What an element more on one LUN has to save in wear, if LUNs need not give
    /// as many.
    depth_weight: Option<u32>,
    blocks_per_plane: u32,
}

impl Shape {
    /// Where a place of a physical zone is in the tables.
    #[inline]
    const fn index(&self, physical: u32, place: u32) -> usize {
        physical as usize * self.places as usize + place as usize
    }

    /// A block of a plane, counted over the drive.
    const fn block(&self, plane: u32, n: u32) -> usize {
        plane as usize * self.blocks_per_plane as usize + n as usize
    }
}

impl UnitTable {
    /// Where the units of a line of a physical zone begin.
    #[inline]
    const fn at(&self, physical: u32, line: u32) -> usize {
        (physical as usize * self.lines as usize + line as usize) * self.width as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Physical {
    /// The zone that stands on it, or `NONE`.
    zone: u32,
    /// Positions by which its stripe begins later than that of its group.
    rotation: u32,
    /// Elements that have been written: places before this one.
    written: u32,
    /// An erasure is not over.
    is_erasing: bool,
    /// Elements have been gathered on it to be erased.
    is_gathered: bool,
}

impl Physical {
    const UNUSED: Self = Self {
        zone: NONE,
        rotation: 0,
        written: 0,
        is_erasing: false,
        is_gathered: false,
    };
}

/// What is known of a storage element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementInfo {
    /// The group of zones that can have it.
    pub group: u32,
    /// Its number in the group.
    pub element: ElementId,
    /// What it is used for.
    pub availability: Availability,
    /// It has to be erased before it is written.
    pub is_stale: bool,
    /// Erasures so far.
    pub wear: u32,
    /// The zone that has it.
    pub zone: Option<ZoneId>,
}

/// What an element-wise finish leaves to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The page behind the last of the zone that has flash.
    pub(crate) end_page: u32,
    /// Positions of the stripe that have flash in the last line.
    pub(crate) slots: u32,
}

impl Tail {
    /// The first page from `page` on that has flash; behind the end if none has.
    pub(crate) fn next_page(&self, page: u32, layout: &Layout) -> u32 {
        let slot = layout.slot_of_page(page);
        if slot >= self.slots {
            page + layout.width() - slot
        } else {
            page
        }
    }
}

impl Elements {
    /// The elements of a fresh drive; `None`: its zones do not consist of any.
    #[must_use]
    pub(crate) fn new(config: &DriveConfig, layout: &Layout) -> Option<Self> {
        let (chunk_blocks, physical_zones) = match config.mapping {
            MappingConfig::Direct | MappingConfig::Lazy { .. } => return None,
            MappingConfig::Chunk {
                chunk_blocks,
                physical_zones,
            } => (Some(chunk_blocks), physical_zones),
            MappingConfig::Stripe { physical_zones } => (None, physical_zones),
        };
        let (width, rows, groups) = (layout.width(), layout.rows(), layout.groups());
        let element_rows = chunk_blocks.unwrap_or(1);
        let lines = rows / element_rows;
        let (line_elements, element_blocks) = match chunk_blocks {
            Some(blocks) => (width, blocks),
            None => (1, width),
        };
        let shape = Shape {
            width,
            groups,
            is_stripe: chunk_blocks.is_none(),
            element_rows,
            element_blocks,
            line_elements,
            places: lines * line_elements,
            per_lun: lines,
            depth_weight: config.allocation.depth_weight,
            blocks_per_plane: config.geometry.blocks_per_plane,
        };
        let luns = line_elements;
        let zones_of = |group: u32| physical_zones.saturating_sub(group).div_ceil(groups);
        let allocators: Vec<Allocator> = (0..groups)
            .map(|group| Allocator::new(luns, zones_of(group) * lines))
            .map(|of| match config.reset.erase {
                EraseWhen::Thresholds(thresholds) => of.erased_first(thresholds.victim),
                _ => of,
            })
            .collect();
        let group_elements = luns * zones_of(0) * lines;
        let elements = (groups * group_elements) as usize;
        let zones = config.zones.count;
        let pages_per_line = width * config.geometry.pages_per_block * element_rows;
        let mut made = Self {
            shape,
            allocators,
            stale_left: vec![0; elements],
            erasing: vec![0; elements],
            owner: vec![NONE; elements],
            group_elements,
            stale: vec![
                false;
                config.geometry.planes_total() as usize
                    * config.geometry.blocks_per_plane as usize
            ],
            planes: (0..groups)
                .flat_map(|group| layout.planes_of_group(group))
                .copied()
                .collect(),
            units: UnitTable {
                units: Vec::new(),
                of_plane: layout.unit_of_plane(),
                pages_per_line: Divisor::new(pages_per_line),
                lines,
                width,
            },
            physical: Vec::new(),
            table: Vec::new(),
            flags: Vec::new(),
            trimmed: Vec::new(),
            zones,
            chosen: Vec::new(),
            turns: Vec::new(),
        };
        made.grow(made.fresh_physical_zones());
        Some(made)
    }

    /// Physical zones: those that zones stand on, and some that none does.
    pub(crate) fn physical_zones(&self) -> u32 {
        u32::try_from(self.physical.len()).expect("they are counted in 32 bits")
    }

    /// Elements of a zone.
    pub(crate) const fn places(&self) -> u32 {
        self.shape.places
    }

    fn grow(&mut self, physical_zones: u32) {
        let (count, places) = (physical_zones as usize, self.shape.places as usize);
        self.physical.resize(count, Physical::UNUSED);
        self.table.resize(count * places, NONE);
        self.flags.resize(count * places, 0);
        let line_units = (self.units.lines * self.units.width) as usize;
        self.units.units.resize(count * line_units, 0);
    }

    /// A physical zone of a group on which nothing stands and nothing is erased,
    /// `wanted` if it is one.
    fn unused(&mut self, wanted: u32) -> u32 {
        let is_unused = |of: &Physical| of.zone == NONE && !of.is_erasing && !of.is_gathered;
        if is_unused(&self.physical[wanted as usize]) {
            return wanted;
        }
        let groups = self.shape.groups;
        let first = self.fresh_physical_zones() + wanted % groups;
        let found = (first..self.physical_zones())
            .step_by(groups as usize)
            .find(|&physical| is_unused(&self.physical[physical as usize]));
        found.unwrap_or_else(|| {
            let end = self.physical_zones();
            self.grow(end + groups);
            end + wanted % groups
        })
    }

    /// Gives `zone`, which has none, the elements of least wear. Returns the
    /// physical zone that they make, and the place behind its last element that
    /// has to be erased.
    pub(crate) fn assemble(&mut self, zone: ZoneId, layout: &Layout) -> (u32, u32) {
        let physical = self.unused(zone.0);
        let group = zone.0 % self.shape.groups;
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        let (per_lun, line_elements) = (self.shape.per_lun, self.shape.line_elements);
        let allocator = &mut self.allocators[group as usize];
        let allocated = match self.shape.depth_weight {
            None => allocator.allocate(per_lun, &mut chosen),
            Some(weight) => allocator.allocate_relaxed(per_lun, weight, &mut chosen),
        };
        allocated.expect("a group has elements for at least as many zones as it has");
        self.physical[physical as usize] = Physical {
            zone: zone.0,
            rotation: layout.rotation(zone.0),
            ..Physical::UNUSED
        };
        let rotation = layout.rotation(zone.0);
        self.in_turn(&mut chosen, group, |lun| {
            (lun + line_elements - rotation % line_elements) % line_elements
        });
        for (place, element) in (0..).zip(&chosen) {
            self.put(physical, place, element.0);
        }
        self.chosen = chosen;
        let stale_end = self.stale_end(physical);
        for place in 0..self.shape.places {
            let element = self.at(physical, place).expect("it was put there");
            let is_dirty = self.stale_left[element] > 0 || self.erasing[element] > 0;
            self.owner[element] = physical;
            *self.flags_at(physical, place) = if is_dirty { WAS_STALE } else { 0 };
        }
        (physical, stale_end)
    }

    /// How many more zones of a group the elements that no zone has are enough for.
    pub(crate) fn zones_left(&self, group: u32) -> u32 {
        let (of, per_lun) = (&self.allocators[group as usize], self.shape.per_lun);
        match self.shape.depth_weight {
            None => of.zones_left(per_lun),
            Some(_) => of.zones_left_relaxed(per_lun),
        }
    }

    /// Puts elements, which are listed LUN by LUN, in an order in which LUNs take
    /// turns: those that have the same share of all elements behind them, by their
    /// `position`. If LUNs have as many, that is line by line.
    fn in_turn(&mut self, chosen: &mut [ElementId], group: u32, position: impl Fn(u32) -> u32) {
        let per_lun = self.allocators[group as usize].elements_per_lun();
        self.turns.clear();
        for of_lun in chosen.chunk_by(|a, b| a.0 / per_lun == b.0 / per_lun) {
            let (lun, count) = (of_lun[0].0 / per_lun, of_lun.len() as u64);
            for (nth, &element) in (0..).zip(of_lun) {
                // Equal shares are equal in integers, and others are as far apart as
                // the two counts, below 2^16, can make them.
                let share = ((2 * nth + 1) << 40) / count;
                self.turns.push((share, position(lun), element));
            }
        }
        self.turns.sort_unstable();
        for (element, turn) in chosen.iter_mut().zip(&self.turns) {
            *element = turn.2;
        }
    }

    /// Puts an element of its group in a place.
    fn put(&mut self, physical: u32, place: u32, element: u32) {
        let shape = self.shape;
        self.table[shape.index(physical, place)] = element;
        let group = physical % shape.groups;
        let planes = &self.planes[(group * shape.width) as usize..][..shape.width as usize];
        let rotation = self.physical[physical as usize].rotation;
        let per_lun = self.allocators[group as usize].elements_per_lun();
        let line = place / shape.line_elements;
        let at = self.units.at(physical, line);
        let (of_plane, units) = (&self.units.of_plane, &mut self.units.units);
        let unit_of = |lun: u32| of_plane[planes[lun as usize] as usize];
        if shape.is_stripe {
            for slot in 0..shape.width {
                units[at + slot as usize] = unit_of((slot + rotation) % shape.width);
            }
        } else {
            let slot = place % shape.width;
            units[at + slot as usize] = unit_of(element / per_lun);
        }
    }

    /// The units that pages of a physical zone visit in turn from `page` on, and
    /// the page at which others follow.
    #[inline]
    pub(crate) fn line(&self, physical: u32, page: u32) -> (&[u32], u32) {
        let table = &self.units;
        let line = table.pages_per_line.div(page);
        let at = table.at(physical, line);
        let end_page = table.pages_per_line.value().saturating_mul(line + 1);
        (&table.units[at..at + table.width as usize], end_page)
    }

    /// The unit of a block of a physical zone, by row and position in the stripe.
    pub(crate) fn unit(&self, physical: u32, row: u32, slot: u32) -> u32 {
        let at = self.units.at(physical, row / self.shape.element_rows);
        self.units.units[at + slot as usize]
    }

    /// How many elements of a zone its first `pages` pages touch.
    #[inline]
    pub(crate) fn places_touched(&self, pages: u32) -> u32 {
        let per_line = self.units.pages_per_line;
        let rest = per_line.rem(pages).min(self.shape.line_elements);
        per_line.div(pages) * self.shape.line_elements + rest
    }

    /// The first `pages` pages of a physical zone are going to be programmed.
    #[inline]
    pub(crate) fn write(&mut self, physical: u32, pages: u32) {
        let touched = self.places_touched(pages);
        let written = self.physical[physical as usize].written;
        if touched > written {
            self.write_places(physical, written, touched);
        }
    }

    fn write_places(&mut self, physical: u32, from: u32, to: u32) {
        if self.physical[physical as usize].zone == NONE {
            return;
        }
        self.physical[physical as usize].written = to;
        let group = physical % self.shape.groups;
        for place in from..to {
            let element = self.table[self.shape.index(physical, place)];
            if element != NONE {
                self.allocators[group as usize].write(ElementId(element));
            }
        }
    }

    /// Takes those elements of a zone away from it that its first `pages` pages do
    /// not touch: they can be given to others. If it is `by_line`, those beside
    /// the last that is touched stay. Returns what is left.
    pub(crate) fn trim(&mut self, physical: u32, pages: u32, by_line: bool) -> Tail {
        let Shape {
            line_elements,
            width,
            ..
        } = self.shape;
        let touched = self.places_touched(pages);
        let lines = touched.div_ceil(line_elements);
        let rest = if by_line || self.shape.is_stripe {
            0
        } else {
            touched % line_elements
        };
        let kept = if rest == 0 {
            lines * line_elements
        } else {
            touched
        };
        for place in kept..self.shape.places {
            self.let_go(physical, place);
            if *self.flags_at(physical, place) & TAKEN != 0
                && let Some(element) = self.at(physical, place)
            {
                self.trimmed.push((physical, element));
            }
            let at = self.shape.index(physical, place);
            self.table[at] = NONE;
        }
        // More, if a loss of power took what the host had written there.
        let written = &mut self.physical[physical as usize].written;
        *written = kept.min(*written);
        Tail {
            end_page: self.units.pages_per_line.value().saturating_mul(lines),
            slots: if rest == 0 { width } else { rest },
        }
    }

    /// The element in a place of a physical zone, counted over the drive.
    fn at(&self, physical: u32, place: u32) -> Option<usize> {
        let element = self.table[self.shape.index(physical, place)];
        let group = physical % self.shape.groups;
        (element != NONE).then(|| (group * self.group_elements + element) as usize)
    }

    fn flags_at(&mut self, physical: u32, place: u32) -> &mut u8 {
        let at = self.shape.index(physical, place);
        &mut self.flags[at]
    }

    /// Group and number of an element that is counted over the drive.
    fn name(&self, element: usize) -> (usize, ElementId) {
        let stride = self.group_elements as usize;
        let id = u32::try_from(element % stride).expect("elements are counted in 32 bits");
        (element / stride, ElementId(id))
    }

    /// Where the planes of an element are in `planes`, and its first block on each.
    fn place_on_planes(&self, element: usize) -> (std::ops::Range<usize>, u32) {
        let (group, ElementId(id)) = self.name(element);
        let per_lun = self.allocators[group].elements_per_lun();
        let (width, first) = (self.shape.width as usize, group * self.shape.width as usize);
        let lun = (id / per_lun) as usize;
        let planes = match self.shape.is_stripe {
            true => first..first + width,
            false => first + lun..first + lun + 1,
        };
        (planes, id % per_lun * self.shape.element_rows)
    }

    /// The blocks of an element, counted over the drive.
    fn blocks(&self, element: usize) -> impl Iterator<Item = usize> {
        let (planes, n) = self.place_on_planes(element);
        let shape = self.shape;
        self.planes[planes].iter().flat_map(move |&plane| {
            let first = shape.block(plane, n);
            first..first + shape.element_rows as usize
        })
    }

    /// The element that a block of a physical zone belongs to, and the block
    /// counted over the drive.
    fn block(&self, physical: u32, row: u32, slot: u32) -> Option<(usize, usize)> {
        let shape = &self.shape;
        let line = row / shape.element_rows;
        let place = match shape.is_stripe {
            true => line,
            false => line * shape.width + slot,
        };
        let element = self.at(physical, place)?;
        let (group, ElementId(id)) = self.name(element);
        let per_lun = self.allocators[group].elements_per_lun();
        let lun = match shape.is_stripe {
            true => (slot + self.physical[physical as usize].rotation) % shape.width,
            false => id / per_lun,
        };
        let plane = self.planes[group * shape.width as usize + lun as usize];
        let n = id % per_lun * shape.element_rows + row % shape.element_rows;
        Some((element, shape.block(plane, n)))
    }

    /// Whether a block of a physical zone has to be erased.
    pub(crate) fn is_stale(&self, physical: u32, row: u32, slot: u32) -> bool {
        self.block(physical, row, slot)
            .is_some_and(|(_, block)| self.stale[block])
    }

    /// A block of a physical zone is being erased. Returns which it is, counted
    /// over the drive; `None`: it had not to be.
    pub(crate) fn erase(&mut self, physical: u32, row: u32, slot: u32) -> Option<usize> {
        let of = &self.physical[physical as usize];
        if of.zone == NONE && !of.is_erasing {
            return None;
        }
        let is_gathered = of.is_gathered;
        let (element, block) = self.block(physical, row, slot)?;
        // Zones erase what they have got by themselves.
        if is_gathered && self.owner[element] != NONE {
            return None;
        }
        if !std::mem::take(&mut self.stale[block]) {
            return None;
        }
        self.stale_left[element] -= 1;
        if self.stale_left[element] == 0 {
            let (group, id) = self.name(element);
            self.allocators[group].erased(id);
        }
        Some(block)
    }

    /// The rows of blocks that the elements in a range of places lie in.
    pub(crate) fn rows_of(&self, places: std::ops::Range<u32>) -> std::ops::Range<u32> {
        let Shape {
            line_elements,
            element_rows,
            ..
        } = self.shape;
        let first = places.start / line_elements * element_rows;
        first..places.end.div_ceil(line_elements) * element_rows
    }

    /// Whether the block at a row and position lies in an element of a range of places.
    pub(crate) fn is_in(&self, places: &std::ops::Range<u32>, row: u32, slot: u32) -> bool {
        let line = row / self.shape.element_rows;
        places.contains(&match self.shape.is_stripe {
            true => line,
            false => line * self.shape.width + slot,
        })
    }

    /// Marks the data of a physical zone as old, and, if it is `full`, what has not
    /// been written, too. Returns the place behind the last element that has to be erased.
    pub(crate) fn invalidate(&mut self, physical: u32, full: bool) -> u32 {
        if full {
            self.write_places(physical, 0, self.shape.places);
        }
        for place in 0..self.physical[physical as usize].written {
            // Nothing has been programmed where something is still to be erased.
            if let Some(element) = self.at(physical, place)
                && self.stale_left[element] == 0
            {
                self.mark_stale(element);
            }
        }
        self.stale_end(physical)
    }

    fn mark_stale(&mut self, element: usize) {
        let (planes, n) = self.place_on_planes(element);
        for &plane in &self.planes[planes] {
            let first = self.shape.block(plane, n);
            self.stale[first..first + self.shape.element_rows as usize].fill(true);
        }
        self.stale_left[element] = self.shape.element_blocks;
    }

    /// The place behind the last element of a physical zone that has to be erased.
    fn stale_end(&self, physical: u32) -> u32 {
        let is_stale = |place: &u32| {
            let element = self.at(physical, *place);
            element.is_some_and(|element| self.stale_left[element] > 0)
        };
        let last = (0..self.shape.places).rev().find(is_stale);
        last.map_or(0, |last| last + 1)
    }

    /// Elements of a physical zone that have to be erased.
    pub(crate) fn stale_elements(&self, physical: u32) -> u32 {
        let elements = (0..self.shape.places).filter_map(|place| self.at(physical, place));
        let stale = elements.filter(|&element| self.stale_left[element] > 0);
        u32::try_from(stale.count()).expect("a zone has fewer than 2^32 elements")
    }

    /// Its zone leaves a physical zone, whose elements can be given to others.
    pub(crate) fn release(&mut self, physical: u32) {
        for place in 0..self.shape.places {
            self.let_go(physical, place);
        }
        self.physical[physical as usize].zone = NONE;
    }

    fn let_go(&mut self, physical: u32, place: u32) {
        if let Some(element) = self.at(physical, place) {
            let (group, id) = self.name(element);
            let is_written = self.allocators[group].availability(id) == Availability::Valid;
            if is_written && self.stale_left[element] == 0 {
                self.mark_stale(element);
            }
            self.allocators[group].release(id);
            self.owner[element] = NONE;
        }
    }

    /// An erasure begins that a reset asked for: it has the elements of a physical
    /// zone that have to be erased.
    pub(crate) fn erasure_begins(&mut self, physical: u32) {
        let of = &mut self.physical[physical as usize];
        of.is_erasing = true;
        let is_gathered = of.is_gathered;
        for place in 0..self.shape.places {
            if let Some(element) = self.at(physical, place)
                && self.stale_left[element] > 0
                && !(is_gathered && self.owner[element] != NONE)
            {
                self.erasing[element] += 1;
                *self.flags_at(physical, place) |= TAKEN;
            }
        }
    }

    /// It is over.
    pub(crate) fn erasure_ends(&mut self, physical: u32) {
        self.physical[physical as usize].is_erasing = false;
        for place in 0..self.shape.places {
            let flags = self.flags_at(physical, place);
            let is_taken = *flags & TAKEN != 0;
            *flags &= !TAKEN;
            if let Some(element) = self.at(physical, place).filter(|_| is_taken) {
                self.erasing[element] -= 1;
            }
        }
        let erasing = &mut self.erasing;
        self.trimmed.retain(|(of, element)| {
            let is_over = *of == physical;
            erasing[*element] -= u32::from(is_over);
            !is_over
        });
    }

    /// Whether a physical zone has flash for the first `pages` pages of a zone.
    pub(crate) fn has_pages(&self, physical: u32, pages: u32) -> bool {
        (0..self.places_touched(pages)).all(|place| self.at(physical, place).is_some())
    }

    /// All elements of the drive, group by group.
    pub fn all(&self) -> impl Iterator<Item = ElementInfo> + '_ {
        (0..).zip(&self.allocators).flat_map(move |(group, of)| {
            (0..of.luns() * of.elements_per_lun()).map(move |id| {
                let element = ElementId(id);
                let owner = self.owner[(group * self.group_elements + id) as usize];
                ElementInfo {
                    group,
                    element,
                    availability: of.availability(element),
                    is_stale: of.is_stale(element),
                    wear: of.wear(element),
                    zone: (owner != NONE).then(|| ZoneId(self.physical[owner as usize].zone)),
                }
            })
        })
    }

    /// The blocks of an element, as [`crate::flash::Flash::erase_counts`] counts them.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn blocks_of(&self, group: u32, element: ElementId) -> impl Iterator<Item = usize> {
        self.blocks((group * self.group_elements + element.0) as usize)
    }

    /// The elements of a physical zone in the order in which a zone that is
    /// written from its start touches them; `None`: a finish took the element.
    pub fn of_zone(&self, physical: u32) -> impl Iterator<Item = Option<ElementId>> {
        let places = self.shape.places as usize;
        let table = &self.table[physical as usize * places..][..places];
        let element = |element: &u32| (*element != NONE).then_some(ElementId(*element));
        table.iter().map(element)
    }
}
