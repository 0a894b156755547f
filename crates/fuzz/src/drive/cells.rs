//! What of the flash is used and erased as a whole: erase blocks, or storage
//! elements if zones consist of those; and in which of them pages of a zone are.
//!
//! Which elements a zone got is what the drive says. Which page is in which of
//! them, and which of them a finish leaves, is worked out here from SilentZNS,
//! section 4: LBAs go over all LUNs, and elements that were not written are given
//! back.

use std::ops::Range;

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DriveConfig, FillExtent, FinishConfig, MappingConfig, Placement};
use zonelab_ssd::mapping::allocator::ElementId;

/// The flash that a zone stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) physical: u32,
    /// Cells in the order in which a zone is written; `None`: a finish gave it back.
    cells: Vec<Option<usize>>,
}

/// Where the cells of a drive are.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    width: u32,
    row_pages: u32,
    /// Rows of blocks of an element and whether it is a stripe, if there are any.
    elements: Option<(u32, bool)>,
    /// Of elements: those of groups before each group, and of all.
    first: Vec<usize>,
    /// A finish gives back what was not written, and all that shares no row of
    /// elements with what was.
    gives_back: Option<bool>,
    /// A page anywhere in a row of blocks is the use of all of them.
    whole_rows: bool,
}

impl Cells {
    pub(super) fn new(drive: &Drive) -> Self {
        let (config, layout) = (drive.config(), drive.flash().layout());
        let mut of_group = vec![0; layout.groups() as usize];
        if let Some(elements) = drive.flash().elements() {
            elements
                .all()
                .for_each(|of| of_group[of.group as usize] += 1);
        }
        let sums = of_group.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Self {
            width: layout.width(),
            row_pages: layout.width() * config.geometry.pages_per_block,
            elements: match config.mapping {
                MappingConfig::Direct | MappingConfig::Lazy { .. } => None,
                MappingConfig::Chunk { chunk_blocks, .. } => Some((chunk_blocks, false)),
                MappingConfig::Stripe { .. } => Some((1, true)),
            },
            first: std::iter::once(0).chain(sums).collect(),
            gives_back: match config.finish {
                FinishConfig::Fill {
                    extent: FillExtent::Elements,
                    buffered,
                    ..
                } => Some(buffered),
                _ => None,
            },
            whole_rows: config
                .write_buffer
                .is_some_and(|buffer| buffer.placement == Placement::LeastWork),
        }
    }

    /// How many there are.
    pub(super) fn count(&self, drive: &Drive) -> usize {
        match (self.elements, self.first.last()) {
            (Some(_), Some(count)) => *count,
            _ => drive.flash().blocks().len(),
        }
    }

    /// The blocks of the drive that a cell consists of.
    pub(super) fn blocks(&self, drive: &Drive, cell: usize) -> Vec<usize> {
        let Some(elements) = drive.flash().elements() else {
            return vec![cell];
        };
        let group = self.first.partition_point(|first| *first <= cell) - 1;
        let id = u32::try_from(cell - self.first[group]).expect("drives are small");
        let group = u32::try_from(group).expect("drives are small");
        elements.blocks_of(group, ElementId(id)).collect()
    }

    /// What each zone stands on.
    pub(super) fn standing(&self, drive: &Drive) -> Vec<Option<Standing>> {
        let zones = (0..drive.zones().count()).map(ZoneId);
        zones.map(|zone| self.of_zone(drive, zone)).collect()
    }

    pub(super) fn of_zone(&self, drive: &Drive, zone: ZoneId) -> Option<Standing> {
        let physical = drive.flash().mapping().physical(zone)?;
        let layout = drive.flash().layout();
        let cells = match drive.flash().elements() {
            None => (0..layout.zone_blocks())
                .map(|block| Some(layout.block_index(physical, block)))
                .collect(),
            Some(elements) => {
                let first = self.first[(zone.0 % layout.groups()) as usize];
                let cell = |id: ElementId| first + id.0 as usize;
                elements.of_zone(physical).map(|id| id.map(cell)).collect()
            }
        };
        Some(Standing { physical, cells })
    }

    /// The place of the cell that a page of a zone is in.
    fn place(&self, page: u32) -> usize {
        let row = page / self.row_pages;
        let place = match self.elements {
            None => row * self.width + page % self.width,
            Some((_, true)) => row,
            Some((rows, false)) => row / rows * self.width + page % self.width,
        };
        place as usize
    }

    /// The cell that a page of a zone is in; `None`: a finish gave it back.
    pub(super) fn of_page(&self, standing: &Standing, page: u32) -> Option<usize> {
        standing.cells[self.place(page)]
    }

    /// The cells that are in use once some pages are programmed.
    pub(super) fn used(&self, standing: &Standing, pages: Range<u32>) -> Vec<usize> {
        if self.whole_rows && !pages.is_empty() {
            let rows = pages.start / self.row_pages..(pages.end - 1) / self.row_pages + 1;
            let places = (rows.start * self.width) as usize..(rows.end * self.width) as usize;
            return standing.cells[places].iter().flatten().copied().collect();
        }
        pages
            .filter_map(|page| self.of_page(standing, page))
            .collect()
    }

    /// The pages among some that have flash.
    pub(super) fn pages(&self, standing: &Standing, pages: Range<u32>) -> Vec<u32> {
        pages
            .filter(|page| self.of_page(standing, *page).is_some())
            .collect()
    }

    /// A zone of which the host wrote the first `written` pages has been finished: it
    /// has what was written, and no more than the design fills.
    pub(super) fn check_finished(&self, standing: &Standing, written: u32) {
        let Some(by_row) = self.gives_back else {
            assert!(standing.cells.iter().all(Option::is_some));
            return;
        };
        let touched = (0..written).map(|page| self.place(page) + 1).max();
        let is_stripe = self.elements.is_some_and(|of| of.1);
        let kept = match touched.unwrap_or(0) {
            places if by_row && !is_stripe => places.next_multiple_of(self.width as usize),
            places => places,
        };
        for (place, cell) in standing.cells.iter().enumerate() {
            assert_eq!(
                cell.is_some(),
                place < kept,
                "element {place} after a finish at page {written}"
            );
        }
    }

    /// A finish gives back what was not written.
    pub(super) const fn gives_back(&self) -> bool {
        self.gives_back.is_some()
    }

    /// All cells of a zone.
    pub(super) fn all<'a>(&self, standing: &'a Standing) -> impl Iterator<Item = usize> + 'a {
        standing.cells.iter().copied().flatten()
    }

    /// Elements are of one zone or of none, and as their states say; of each block,
    /// the drive knows the wear. Nothing runs any more.
    pub(super) fn check(&self, drive: &Drive, are_erased: bool) {
        let Some(elements) = drive.flash().elements() else {
            return;
        };
        let mut owners = vec![None; self.count(drive)];
        for (zone, standing) in (0..).zip(self.standing(drive)) {
            for cell in standing.iter().flat_map(|of| self.all(of)) {
                let other = owners[cell].replace(zone);
                assert_eq!(other, None, "element {cell} of zone {zone}, too");
            }
            let state = drive.zones().state(ZoneId(zone));
            let is_active = state != ZoneState::EMPTY && state != ZoneState::FULL;
            let has_all = standing.is_some_and(|of| of.cells.iter().all(Option::is_some));
            let is_thin = drive.config().allocation.thin;
            assert!(
                has_all || !(is_active && is_thin),
                "zone {zone} lacks flash"
            );
        }
        for (cell, of) in elements.all().enumerate() {
            assert_eq!(of.zone.map(|zone| zone.0), owners[cell], "{of:?}");
            assert_eq!(of.availability.is_available(), of.zone.is_none(), "{of:?}");
            assert!(!(are_erased && of.is_stale), "{of:?} is left to erase");
            let blocks = drive.flash().blocks();
            for block in self.blocks(drive, cell) {
                // A write erases the row that it comes to, on all planes of a die that it
                // programs at once. A finish can give back an element of which that was a
                // part: the rest is erased by whoever gets it next.
                let is_ahead = of.is_stale && !blocks.is_stale(block);
                let erasures = of.wear + u32::from(is_ahead);
                assert_eq!(blocks.wear(block), erasures, "block {block} of {of:?}");
            }
        }
    }
}

/// For how many more zones of each group there are elements, by their states.
pub(super) fn zones_left(drive: &Drive, config: &DriveConfig) -> Vec<u32> {
    let layout = drive.flash().layout();
    let luns = match config.mapping {
        MappingConfig::Chunk { .. } => layout.width() as usize,
        _ => 1,
    };
    let per_lun = match config.mapping {
        MappingConfig::Chunk { chunk_blocks, .. } => layout.rows() / chunk_blocks,
        _ => layout.rows(),
    };
    let mut is_available = vec![Vec::new(); layout.groups() as usize];
    for of in drive.flash().elements().iter().flat_map(|of| of.all()) {
        is_available[of.group as usize].push(of.availability.is_available());
    }
    let left = |of_group: &Vec<bool>| {
        let count = |of_lun: &[bool]| of_lun.iter().filter(|is| **is).count();
        let of_luns = of_group.chunks(of_group.len() / luns).map(count);
        let zones = match config.allocation.depth_weight {
            None => of_luns.min().unwrap_or(0),
            Some(_) => of_luns.sum::<usize>() / luns,
        };
        u32::try_from(zones).expect("drives are small") / per_lun
    };
    is_available.iter().map(left).collect()
}
