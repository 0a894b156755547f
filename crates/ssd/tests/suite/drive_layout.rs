//! Pages of zones on planes and blocks: each in a place of its own, in the
//! order of the stripe.

use crate::drive_support;
use std::collections::BTreeSet;

use crate::drive_support::random::{drives, width};
use proptest::prelude::*;
use zonelab_ssd::config::{DriveConfig, PlaneMode, StripeOrder};
use zonelab_ssd::layout::Layout;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    channel: u32,
    way: u32,
    die: u32,
    plane: u32,
    block: u32,
    page: u32,
}

/// The place of a page, from what the layout says about its block.
fn place(config: &DriveConfig, layout: &Layout, physical: u32, page: u32) -> Place {
    let geometry = &config.geometry;
    let width = layout.width();
    let row_pages = width * geometry.pages_per_block;
    let (row, slot) = (page / row_pages, layout.slot_of_page(page));
    let block = row * width + slot;
    assert_eq!(layout.block_position(block), (row, slot));
    let index = layout.block_index(physical, block) as u32;
    let (plane, block) = (
        index / geometry.blocks_per_plane,
        index % geometry.blocks_per_plane,
    );
    let lun = plane / geometry.planes;
    // The unit that works for this place of the stripe is the one of this plane.
    let unit = match config.media.planes {
        PlaneMode::Independent => plane,
        PlaneMode::MultiPlane | PlaneMode::Single => lun,
    };
    assert_eq!(layout.stripe(physical)[slot as usize], unit);
    let channel = lun % geometry.channels;
    assert_eq!(u32::from(layout.channel_of_unit()[unit as usize]), channel);
    Place {
        channel,
        way: lun / geometry.channels % geometry.ways,
        die: lun / geometry.channels / geometry.ways,
        plane: plane % geometry.planes,
        block,
        page: page % row_pages / width,
    }
}

/// Pages that follow each other step through these, the first fastest.
fn odometer(config: &DriveConfig, at: &Place, first: &Place) -> [(u32, u32); 4] {
    let (zones, geometry) = (&config.zones, &config.geometry);
    let channel = (at.channel - first.channel, zones.channels);
    let way = (at.way - first.way, zones.ways);
    let die = (at.die, geometry.dies);
    let plane = (at.plane, geometry.planes);
    match zones.stripe {
        StripeOrder::ChannelFirst => [channel, way, die, plane],
        StripeOrder::PlaneFirst => [plane, channel, way, die],
    }
}

fn physical_zones(config: &DriveConfig) -> u32 {
    config.mapping.physical_zones(config.zones.count)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn every_page_has_a_place_of_its_own(config in drives()) {
        let layout = Layout::new(&config);
        let geometry = &config.geometry;
        let mut places = BTreeSet::new();
        for physical in 0..physical_zones(&config) {
            for page in 0..layout.zone_pages() {
                let place = place(&config, &layout, physical, page);
                prop_assert!(place.channel < geometry.channels && place.way < geometry.ways);
                prop_assert!(place.die < geometry.dies && place.plane < geometry.planes);
                prop_assert!(place.block < geometry.blocks_per_plane);
                prop_assert!(place.page < geometry.pages_per_block);
                prop_assert!(places.insert(place), "{place:?} twice");
            }
        }
    }

    #[test]
    fn consecutive_pages_visit_the_stripe_in_its_order(config in drives()) {
        let layout = Layout::new(&config);
        prop_assert_eq!(layout.width(), width(&config));
        for physical in 0..physical_zones(&config) {
            let first = place(&config, &layout, physical, 0);
            // A zone begins at the first of the dies that its group owns.
            prop_assert_eq!(first.channel % config.zones.channels, 0);
            prop_assert_eq!(first.way % config.zones.ways, 0);
            for page in 0..layout.zone_pages() {
                let at = place(&config, &layout, physical, page);
                let mut count = page % layout.width();
                for (digit, base) in odometer(&config, &at, &first) {
                    prop_assert_eq!(digit, count % base, "page {}", page);
                    count /= base;
                }
            }
        }
    }

    /// Groups own dies: those of different groups never meet, and together they
    /// have them all.
    #[test]
    fn groups_share_no_plane(config in drives()) {
        let layout = Layout::new(&config);
        let mut owner = vec![None; config.geometry.planes_total() as usize];
        for group in 0..layout.groups() {
            prop_assert_eq!(layout.group_of(group), group);
            prop_assert_eq!(layout.group_of(group + 7 * layout.groups()), group);
            for block in 0..layout.width() {
                let index = layout.block_index(group, block) as u32;
                let plane = index / config.geometry.blocks_per_plane;
                prop_assert_eq!(owner[plane as usize].replace(group), None);
            }
        }
        prop_assert!(owner.iter().all(Option::is_some));
    }

    #[test]
    fn blocks_touched_are_the_blocks_of_the_first_pages(config in drives()) {
        let layout = Layout::new(&config);
        let row_pages = layout.width() * config.geometry.pages_per_block;
        let mut blocks = BTreeSet::new();
        prop_assert_eq!(layout.blocks_touched(0), 0);
        for page in 0..layout.zone_pages() {
            blocks.insert(page / row_pages * layout.width() + page % layout.width());
            let touched = layout.blocks_touched(page + 1);
            prop_assert_eq!(touched as usize, blocks.len());
            prop_assert_eq!(blocks.last().copied(), Some(touched - 1), "they are a prefix");
        }
        prop_assert!(layout.blocks_touched(layout.zone_pages()) <= layout.zone_blocks());
        prop_assert_eq!(layout.zone_blocks(), layout.rows() * layout.width());
    }

    #[test]
    fn logical_blocks_are_in_pages(config in drives(), lba in any::<u32>()) {
        let layout = Layout::new(&config);
        let page_lbas = config.geometry.page_bytes / config.lba_bytes;
        prop_assert_eq!(layout.page_lbas(), page_lbas);
        prop_assert_eq!(layout.page_of(lba), lba / page_lbas);
        prop_assert_eq!(layout.slot_of_page(lba), lba % layout.width());
    }
}

/// The picture in the module's documentation, and its sister.
#[test]
fn the_two_orders_on_a_drive_of_two_by_two_planes() {
    let mut config = drive_support::small();
    config.geometry.channels = 2;
    config.geometry.planes = 2;
    config.zones.channels = 2;
    for (stripe, expected) in [
        (
            StripeOrder::ChannelFirst,
            [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0)],
        ),
        (
            StripeOrder::PlaneFirst,
            [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)],
        ),
    ] {
        config.zones.stripe = stripe;
        let layout = Layout::new(&config);
        let places = [0, 1, 2, 3, 4].map(|page| place(&config, &layout, 0, page));
        assert_eq!(
            places.map(|at| (at.channel, at.plane)),
            expected,
            "{stripe:?}"
        );
        assert_eq!(places.map(|at| at.page), [0, 0, 0, 0, 1]);
    }
}
