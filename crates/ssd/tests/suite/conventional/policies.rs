//! What the choice of the next zone to collect makes of write amplification.

use super::*;

/// A log of 40 zones, seven of which are spare.
const ZONES: u32 = 40;
const SPARE: u32 = 7;
/// Pages that can be addressed.
const PAGES: u64 = (ZONES - SPARE) as u64 * 16;

/// The drive of [`config`] with a log of so many zones, of which some are spare.
pub(super) fn with_zones(zones: u32, spare_zones: u32) -> DriveConfig {
    let mut config = config();
    config.data = DataStore::None;
    config.namespaces[1] = conventional(zones, spare_zones);
    config.zones.count = 2 + zones;
    config.geometry.blocks_per_plane = 1 + config.zones.count;
    config
}

fn with(collection: CollectionPolicy) -> DriveConfig {
    let mut config = with_zones(ZONES, SPARE);
    let log = LogConfig {
        collection,
        ..LogConfig::new(SPARE)
    };
    config.namespaces[1].kind = NamespaceKind::Conventional(log);
    config
}

/// Pages that are programmed for each that the host writes, once the order in which the
/// drive was filled is forgotten. `next` makes a page of `pages` of what is drawn. If collection
/// `keeps_up`, two zones are empty whenever the host writes.
pub(super) fn amplification_of(
    config: &DriveConfig,
    pages: u64,
    keeps_up: bool,
    next: impl Fn(u64) -> u64,
) -> f64 {
    let mut rig = Rig::new(config);
    let mut x = 7_u64;
    let mut drawn = || {
        x = x
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        next(x >> 33)
    };
    for page in 0..pages {
        exec(&mut rig, write(page * 4, 4), None);
    }
    let mut before = rig.drive.totals();
    for round in 0..40 * pages {
        if round == 15 * pages {
            before = rig.drive.totals();
        }
        let slba = drawn() * 4;
        assert_eq!(exec(&mut rig, write(slba, 4), None).status, Status::SUCCESS);
        if keeps_up {
            rig.settle();
        }
    }
    rig.settle();
    rig.drive.assert_invariants();
    let totals = rig.drive.totals().since(&before);
    totals.dlwa().expect("something was written")
}

/// Pages that collection moves for each that the host writes.
fn moved_per_write(collection: CollectionPolicy, next: impl Fn(u64) -> u64) -> f64 {
    amplification_of(&with(collection), PAGES, false, next) - 1.0
}

#[test]
fn cost_and_benefit_move_less_than_greed_where_some_data_is_hot() {
    // Nine of ten writes go to a tenth of the pages.
    let hot = PAGES / 10;
    let next = |drawn: u64| match drawn % 10 {
        0 => hot + drawn / 10 % (PAGES - hot),
        _ => drawn / 10 % hot,
    };
    let greedy = moved_per_write(CollectionPolicy::Greedy, next);
    let by_cost = moved_per_write(CollectionPolicy::CostBenefit, next);
    println!("hot and cold: {greedy} and {by_cost}");
    assert!(by_cost < 0.8 * greedy, "{by_cost} and {greedy}");
}

#[test]
fn where_all_data_is_alike_there_is_little_between_them() {
    let next = |drawn: u64| drawn % PAGES;
    let greedy = moved_per_write(CollectionPolicy::Greedy, next);
    let by_cost = moved_per_write(CollectionPolicy::CostBenefit, next);
    println!("uniform: {greedy} and {by_cost}");
    assert!(
        (by_cost / greedy - 1.0).abs() < 0.1,
        "{by_cost} and {greedy}"
    );
}
