//! Where a zone's pages and blocks are: pure arithmetic on the geometry.
//!
//! A *physical zone* is a set of erase blocks: `rows` blocks on each plane of
//! its *stripe*. Consecutive pages visit the planes of the stripe in turn; when
//! a row of blocks is full, the next row begins. Zones that do not span the
//! whole drive fall into *groups* with a stripe each: physical zone `n` belongs
//! to group `n % groups`, so neighbours land on different dies. With a *stagger*,
//! the stripe of each zone of a group begins so many planes later than that of
//! the one before it.
//!
//! ```text
//! page   0 1 2 3 | 4 5 6 7 | ...        stripe of 4 planes
//! plane  0 1 2 3 | 0 1 2 3 | ...        block row 0 until 4 x pages_per_block pages
//! ```

use std::ops::Range;

use crate::config::{DriveConfig, PlaneMode, StripeOrder};

/// Divides by a constant: by multiplying with its reciprocal (Lemire, Kaser and Kurz, "Faster
/// remainder by direct computation", 2019), which is exact for 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    value: u32,
    /// 2^64 over the divisor, rounded up; 0 for a divisor of 1.
    reciprocal: u64,
}

impl Divisor {
    pub(crate) fn new(value: u32) -> Self {
        assert!(value > 0, "a divisor is positive");
        Self {
            value,
            reciprocal: (u64::MAX / u64::from(value)).wrapping_add(1),
        }
    }

    #[inline]
    pub(crate) const fn value(self) -> u32 {
        self.value
    }

    #[inline]
    pub(crate) fn div(self, n: u32) -> u32 {
        match self.reciprocal {
            0 => n,
            of => ((u128::from(of) * u128::from(n)) >> 64) as u32,
        }
    }

    #[inline]
    pub(crate) fn rem(self, n: u32) -> u32 {
        // Nothing wraps: the product is at most `n`.
        n.wrapping_sub(self.div(n).wrapping_mul(self.value))
    }
}

/// Planes of a stripe, by their positions in it, that erase together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaneSet {
    first: u32,
    stride: u32,
    count: u32,
}

/// The physical layout of a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Unit (see [`crate::media`]) of each plane of each stripe, group after
    /// group; each stripe twice in a row, so that it can be read from any plane on.
    stripe_units: Vec<u32>,
    /// Plane of the drive at the same positions.
    stripe_planes: Vec<u32>,
    channel_of_unit: Vec<u16>,
    /// Planes in a stripe.
    width: Divisor,
    groups: u32,
    page_lbas: Divisor,
    /// Planes by which the stripe of each zone of a group begins later.
    stagger: u32,
    /// Pages of one row of blocks: width x pages per block.
    pages_per_row: Divisor,
    /// Planes that erase together: those of a die with multi-plane operations.
    planes_together: u32,
    /// Whether the planes of a die are neighbours in a stripe.
    is_plane_first: bool,
    /// A page anywhere in a row of blocks touches all of them.
    whole_rows: bool,
    rows: u32,
    zone_pages: u32,
    blocks_per_plane: u32,
}

impl Layout {
    /// The layout of a drive whose configuration passed [`crate::profile::check`].
    #[must_use]
    pub fn new(config: &DriveConfig) -> Self {
        let geometry = &config.geometry;
        let zones = &config.zones;
        let luns_per_zone = zones.channels * zones.ways * geometry.dies;
        let width = luns_per_zone * geometry.planes;
        let groups = geometry.luns() / luns_per_zone;
        let page_lbas = geometry.page_bytes / config.lba_bytes;
        let zone_pages = zones.capacity_lbas.div_ceil(u64::from(page_lbas));
        let zone_pages =
            u32::try_from(zone_pages).expect("checked: a zone has fewer than 2^32 pages");
        let pages_per_row = width * geometry.pages_per_block;

        let mut stripe_units = Vec::with_capacity(2 * geometry.planes_total() as usize);
        let mut stripe_planes = Vec::with_capacity(2 * geometry.planes_total() as usize);
        for group in 0..groups {
            for slot in (0..width).chain(0..width) {
                let (lun, plane) = stripe_slot(config, group, slot);
                let plane = lun * geometry.planes + plane;
                stripe_planes.push(plane);
                stripe_units.push(match config.media.planes {
                    PlaneMode::Independent => plane,
                    PlaneMode::MultiPlane | PlaneMode::Single => lun,
                });
            }
        }
        let units_per_lun = match config.media.planes {
            PlaneMode::Independent => geometry.planes,
            PlaneMode::MultiPlane | PlaneMode::Single => 1,
        };
        let channel_of_unit = (0..geometry.luns() * units_per_lun)
            .map(|unit| {
                let channel = unit / units_per_lun % geometry.channels;
                u16::try_from(channel).expect("checked: fewer than 2^16 channels")
            })
            .collect();
        Self {
            stripe_units,
            stripe_planes,
            channel_of_unit,
            width: Divisor::new(width),
            groups,
            page_lbas: Divisor::new(page_lbas),
            stagger: zones.stagger,
            pages_per_row: Divisor::new(pages_per_row),
            planes_together: match config.media.planes {
                PlaneMode::MultiPlane => geometry.planes,
                PlaneMode::Independent | PlaneMode::Single => 1,
            },
            is_plane_first: zones.stripe == StripeOrder::PlaneFirst,
            whole_rows: config.places_by_work(),
            rows: zone_pages.div_ceil(pages_per_row),
            zone_pages,
            blocks_per_plane: geometry.blocks_per_plane,
        }
    }

    /// Planes that erase and program together, as one.
    #[must_use]
    pub const fn planes_together(&self) -> u32 {
        self.planes_together
    }

    /// Number of units of the drive.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.channel_of_unit.len() as u32
    }

    /// The channel of each unit.
    #[must_use]
    pub fn channel_of_unit(&self) -> &[u16] {
        &self.channel_of_unit
    }

    /// Planes that a zone stripes over.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width.value
    }

    /// Rows of blocks of a zone: its blocks on each plane of its stripe.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Groups of zones that share no die.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Pages of a zone up to its capacity.
    #[must_use]
    pub fn zone_pages(&self) -> u32 {
        self.zone_pages
    }

    /// Blocks of a zone.
    #[must_use]
    pub fn zone_blocks(&self) -> u32 {
        self.rows * self.width.value
    }

    /// Logical blocks in a page.
    #[must_use]
    pub fn page_lbas(&self) -> u32 {
        self.page_lbas.value
    }

    /// The page that holds logical block `lba` of a zone.
    #[inline]
    #[must_use]
    pub fn page_of(&self, lba: u32) -> u32 {
        self.page_lbas.div(lba)
    }

    /// The position in the stripe of page `page` of a zone.
    #[inline]
    #[must_use]
    pub fn slot_of_page(&self, page: u32) -> u32 {
        self.width.rem(page)
    }

    /// The group of a physical zone.
    #[inline]
    #[must_use]
    pub fn group_of(&self, physical: u32) -> u32 {
        if self.groups == 1 {
            0
        } else {
            physical % self.groups
        }
    }

    /// The units of a physical zone's stripe, one per plane, in page order.
    #[inline(always)]
    #[must_use]
    pub fn stripe(&self, physical: u32) -> &[u32] {
        &self.stripe_units[self.stripe_range(physical)]
    }

    #[inline(always)]
    fn stripe_range(&self, physical: u32) -> Range<usize> {
        let width = self.width.value as usize;
        let mut start = self.group_of(physical) as usize * 2 * width;
        if self.stagger > 0 {
            start += self.rotation(physical) as usize;
        }
        start..start + width
    }

    /// Planes by which the stripe of a zone begins later than that of its group.
    #[inline]
    pub(crate) fn rotation(&self, zone: u32) -> u32 {
        let turns = u64::from(zone / self.groups) * u64::from(self.stagger);
        // Fits: less than the width.
        (turns % u64::from(self.width.value)) as u32
    }

    /// Planes of a group of zones, in stripe order.
    pub(crate) fn planes_of_group(&self, group: u32) -> &[u32] {
        let width = self.width.value as usize;
        &self.stripe_planes[group as usize * 2 * width..][..width]
    }

    /// The units of a group of zones, each once.
    pub(crate) fn units_of_group(&self, group: u32) -> Vec<u32> {
        let width = self.width.value as usize;
        let mut units = self.stripe_units[group as usize * 2 * width..][..width].to_vec();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// The unit of each plane of the drive.
    pub(crate) fn unit_of_plane(&self) -> Vec<u32> {
        let mut units = vec![0; self.stripe_planes.len() / 2];
        for (plane, unit) in self.stripe_planes.iter().zip(&self.stripe_units) {
            units[*plane as usize] = *unit;
        }
        units
    }

    /// How many blocks of a zone its first `pages` pages touch.
    ///
    /// Blocks count in the order in which a zone that is written from its
    /// start first touches them: row by row, and across the stripe in a row.
    /// Where the write buffer chooses dies ([`crate::config::Placement`]), a zone
    /// begins a row as a whole.
    #[must_use]
    pub fn blocks_touched(&self, pages: u32) -> u32 {
        let rows = self.pages_per_row.div(pages);
        let rest = self.pages_per_row.rem(pages);
        let begun = match self.whole_rows {
            true if rest > 0 => self.width.value,
            _ => rest.min(self.width.value),
        };
        rows * self.width.value + begun
    }

    /// Pages of a zone, from a multiple of them on, that one operation programs: those on the
    /// planes of a die with multi-plane operations, if the stripe brings them together.
    pub(crate) fn operation_pages(&self) -> u32 {
        let is_together = self.is_plane_first || self.width.value == self.planes_together;
        if is_together { self.planes_together } else { 1 }
    }

    /// The planes of a stripe in sets that erase together.
    pub(crate) fn plane_sets(&self) -> impl Iterator<Item = PlaneSet> + use<> {
        let (width, count) = (self.width.value, self.planes_together);
        let is_plane_first = self.is_plane_first;
        (0..width / count).map(move |set| match is_plane_first {
            true => PlaneSet {
                first: set * count,
                stride: 1,
                count,
            },
            false => PlaneSet {
                first: set,
                stride: width / count,
                count,
            },
        })
    }

    /// Blocks of a row of a zone on some planes, before block `end`.
    pub(crate) fn blocks_of_row(
        &self,
        row: u32,
        planes: PlaneSet,
        end: u32,
    ) -> impl Iterator<Item = u32> + use<> {
        let first = row * self.width.value + planes.first;
        (0..planes.count)
            .map(move |n| first + n * planes.stride)
            .filter(move |block| *block < end)
    }

    /// Row and stripe position of a zone's block, counted as in [`Self::blocks_touched`].
    #[must_use]
    pub fn block_position(&self, block: u32) -> (u32, u32) {
        (self.width.div(block), self.width.rem(block))
    }

    /// Index of a zone's block among all blocks of the drive: plane by plane.
    #[must_use]
    pub fn block_index(&self, physical: u32, block: u32) -> usize {
        let (row, slot) = self.block_position(block);
        let plane = self.stripe_planes[self.stripe_range(physical)][slot as usize];
        let in_plane = physical / self.groups * self.rows + row;
        debug_assert!(
            in_plane < self.blocks_per_plane,
            "block {in_plane} lies on the plane"
        );
        plane as usize * self.blocks_per_plane as usize + in_plane as usize
    }

    /// The physical zone of a block of the drive, and the block of it: the opposite of
    /// [`Self::block_index`]. Blocks that no zone uses have a physical zone behind the last.
    #[must_use]
    pub fn block_at(&self, index: usize) -> (u32, u32) {
        let per_plane = self.blocks_per_plane as usize;
        let (plane, in_plane) = (index / per_plane, (index % per_plane) as u32);
        let width = self.width.value;
        // Each group has its planes twice, one after the other.
        let at = self
            .stripe_planes
            .iter()
            .position(|of| *of as usize == plane);
        let at = at.expect("every plane is part of a stripe") as u32;
        let (group, slot) = (at / (2 * width), at % (2 * width));
        let physical = in_plane / self.rows * self.groups + group;
        let slot = (slot + width - self.rotation(physical)) % width;
        (physical, in_plane % self.rows * width + slot)
    }
}

/// LUN of the drive, and plane within it, of position `slot` in the stripe of `group`.
fn stripe_slot(config: &DriveConfig, group: u32, slot: u32) -> (u32, u32) {
    let (geometry, zones) = (&config.geometry, &config.zones);
    let (plane, rest) = match config.zones.stripe {
        StripeOrder::PlaneFirst => (slot % geometry.planes, slot / geometry.planes),
        StripeOrder::ChannelFirst => {
            let luns = zones.channels * zones.ways * geometry.dies;
            (slot / luns, slot % luns)
        }
    };
    let channel_groups = geometry.channels / zones.channels;
    let channel = group % channel_groups * zones.channels + rest % zones.channels;
    let way = group / channel_groups * zones.ways + rest / zones.channels % zones.ways;
    let die = rest / zones.channels / zones.ways;
    // LUNs are numbered channel first, so that `lun % channels` is the channel.
    let lun = (die * geometry.ways + way) * geometry.channels + channel;
    (lun, plane)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Divisor;

    proptest! {
        #[test]
        fn reciprocals_divide(
            value in prop_oneof![1_u32..100, 1..=u32::MAX, Just(u32::MAX)],
            n in prop_oneof![0_u32..1_000, any::<u32>(), Just(u32::MAX)],
        ) {
            let divisor = Divisor::new(value);
            let multiple = n / value * value;
            for n in [n, multiple, multiple.saturating_sub(1)] {
                prop_assert_eq!((divisor.div(n), divisor.rem(n)), (n / value, n % value));
            }
        }
    }
}
