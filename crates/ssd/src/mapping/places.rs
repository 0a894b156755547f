//! Places of physical zones: which block and which unit a page of a zone is on.

use std::ops::Range;

use super::Mapping;
use super::Places;
use super::elements::Elements;
use crate::layout::Layout;

impl Mapping {
    /// Physical zones: those that zones stand on, and those that none does.
    pub(crate) fn physical_zones(&self) -> u32 {
        match &self.places {
            Places::Fixed(fixed) => fixed.physical_zones(),
            Places::Assembled(elements) => elements.physical_zones(),
        }
    }

    /// How many places of a zone its first `pages` pages touch.
    #[inline]
    pub(crate) fn places_touched(&self, pages: u32, layout: &Layout) -> u32 {
        match &self.places {
            Places::Fixed(_) => layout.blocks_touched(pages),
            Places::Assembled(elements) => elements.places_touched(pages),
        }
    }

    /// The rows of blocks that places lie in.
    pub(crate) fn rows_of(&self, places: &Range<u32>, layout: &Layout) -> Range<u32> {
        let width = layout.width();
        match &self.places {
            Places::Fixed(_) => places.start / width..places.end.div_ceil(width),
            Places::Assembled(elements) => elements.rows_of(places.clone()),
        }
    }

    /// Whether the block at a row and a position of the stripe lies in some places.
    pub(crate) fn is_in(
        &self,
        places: &Range<u32>,
        (row, slot): (u32, u32),
        layout: &Layout,
    ) -> bool {
        match &self.places {
            Places::Fixed(_) => places.contains(&(row * layout.width() + slot)),
            Places::Assembled(elements) => elements.is_in(places, row, slot),
        }
    }

    /// The end of the blocks, row by row, that an erasure of the places before `end` may
    /// be of.
    pub(crate) fn block_end(&self, end: u32, layout: &Layout) -> u32 {
        match &self.places {
            Places::Fixed(_) => end,
            Places::Assembled(_) => layout.zone_blocks(),
        }
    }

    /// The block at a row of a physical zone and a position of its stripe, counted over
    /// the drive; `None`: a finish took it.
    pub(crate) fn block(
        &self,
        physical: u32,
        (row, slot): (u32, u32),
        layout: &Layout,
    ) -> Option<usize> {
        match &self.places {
            Places::Fixed(_) => Some(layout.block_index(physical, row * layout.width() + slot)),
            Places::Assembled(elements) => elements.block_index(physical, row, slot),
        }
    }

    /// The unit of that block.
    pub(crate) fn unit(&self, physical: u32, (row, slot): (u32, u32), layout: &Layout) -> u32 {
        match &self.places {
            Places::Fixed(_) => layout.stripe(physical)[slot as usize],
            Places::Assembled(elements) => elements.unit(physical, row, slot),
        }
    }

    /// The units that pages of a physical zone visit in turn from `page` on, and the page
    /// at which others follow.
    #[inline]
    pub(crate) fn line<'a>(
        &'a self,
        physical: u32,
        page: u32,
        layout: &'a Layout,
    ) -> (&'a [u32], u32) {
        match &self.places {
            Places::Fixed(_) => (layout.stripe(physical), u32::MAX),
            Places::Assembled(elements) => elements.line(physical, page),
        }
    }

    /// Whether a physical zone has flash for the first `pages` pages of a zone.
    pub(crate) fn has_pages(&self, physical: u32, pages: u32) -> bool {
        let elements = self.elements();
        elements.is_none_or(|elements| elements.has_pages(physical, pages))
    }

    /// Lines of a zone that are erased one after another, if it is erased whole.
    pub(crate) fn lines(&self) -> u32 {
        self.elements().map_or(1, Elements::lines)
    }
}
