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
//! a reset began, or a write to the zone that has the element by then. Which blocks have
//! to be erased is known by [`Blocks`]; elements count those of theirs.

mod assembly;
mod erasure;
mod gathered;
mod invariants;
mod power;
mod saved;

use zonelab_device::ZoneId;

use super::allocator::{Allocator, Availability, ElementId};
use crate::config::{DriveConfig, EraseWhen, MappingConfig};
use crate::flash::Blocks;
use crate::layout::{Divisor, Layout};

pub(crate) use saved::SavedElements;

/// No element, no zone.
const NONE: u32 = u32::MAX;

/// The storage elements of a drive, and the physical zones made of them.
#[derive(Clone, Debug)]
pub struct Elements {
    shape: Shape,
    /// Of each group of zones.
    allocators: Vec<Allocator>,
    /// Blocks of each element that are to be erased. Elements stand by group, here and in
    /// the two tables that follow: those of group g from `g * group_elements` on.
    stale_left: Vec<u32>,
    /// Erasures under way or waiting that have each element.
    erasing: Vec<u32>,
    /// Owning physical zone of each element, or `NONE`.
    owner: Vec<u32>,
    group_elements: u32,
    /// Planes of each group, in stripe order.
    planes: Vec<u32>,
    units: UnitTable,
    physical: Vec<Physical>,
    /// Elements of each physical zone by place, or `NONE`: `shape.places` each.
    table: Vec<u32>,
    /// Beside it: an erasure that a reset began has the element.
    taken: Vec<bool>,
    /// Elements that a finish took from physical zones while erasures had them.
    trimmed: Vec<(u32, usize)>,
    zones: u32,
    /// See [`Self::has_given_back_stale`].
    has_given_back_stale: bool,
    /// What the next zone gets, if somebody has chosen: LUN by LUN.
    choice: Vec<ElementId>,
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
            taken: Vec::new(),
            trimmed: Vec::new(),
            zones,
            has_given_back_stale: false,
            choice: Vec::new(),
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

    fn grow(&mut self, physical_zones: u32) {
        let (count, places) = (physical_zones as usize, self.shape.places as usize);
        self.physical.resize(count, Physical::UNUSED);
        self.table.resize(count * places, NONE);
        self.taken.resize(count * places, false);
        let line_units = (self.units.lines * self.units.width) as usize;
        self.units.units.resize(count * line_units, 0);
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

    /// The element in a place of a physical zone, counted over the drive.
    fn at(&self, physical: u32, place: u32) -> Option<usize> {
        let element = self.table[self.shape.index(physical, place)];
        let group = physical % self.shape.groups;
        (element != NONE).then(|| (group * self.group_elements + element) as usize)
    }

    fn taken_at(&mut self, physical: u32, place: u32) -> &mut bool {
        let at = self.shape.index(physical, place);
        &mut self.taken[at]
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

    /// The block in a row of a physical zone and a position of its stripe, counted over
    /// the drive as [`crate::flash::Flash::erase_counts`] does; `None`: a finish took it.
    #[must_use]
    pub fn block_index(&self, physical: u32, row: u32, slot: u32) -> Option<usize> {
        self.block(physical, row, slot).map(|(_, block)| block)
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
