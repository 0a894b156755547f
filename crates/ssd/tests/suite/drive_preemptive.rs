//! The zone mapping method and preemptive zone reset: states, what waits for
//! what, and what must hold at every step (Electronics 12, 798, section 3.2).

mod kept;

use crate::drive_support::random::{bodies, designs, drive, front_ends, streams};
use crate::drive_support::thresholds::{any_thresholds, thresholds, within};
use crate::drive_support::{ERASE, PAGE, READ, Rig, WRITE, lazy, reset, small, us};
use proptest::prelude::*;
use zonelab_device::{Nanos, ZoneId};
use zonelab_oracle::blocks::Blocks;
use zonelab_ssd::ResetState::{Full, Partial, Serving};
use zonelab_ssd::config::{
    DriveConfig, EraseExtent, EraseWhen, Evaluate, MappingConfig, Thresholds, Victim,
};
use zonelab_ssd::flash::BlockState;
use zonelab_ssd::record::{BackgroundKind, Counter, RecordLimits};
use zonelab_ssd::{DriveModel, FaultTarget, ResetState, profile, snapshot};

/// Rows of blocks of a zone of [`rows`].
const ROWS: u32 = 4;
/// Pages of such a zone: 4 planes, 4 pages in each block.
const PAGES: u32 = ROWS * 16;

const fn erases(rows: u64) -> Nanos {
    Nanos(ERASE.0 * rows)
}

/// Four zones of four rows on six physical ones.
fn rows(thresholds: Thresholds) -> DriveConfig {
    let mut config = lazy(small(), 6);
    config.zones.count = 4;
    config.zones.capacity_lbas = u64::from(PAGES * PAGE);
    config.zones.size_lbas = config.zones.capacity_lbas;
    config.reset = reset(EraseWhen::Thresholds(thresholds), EraseExtent::Partial);
    config
}

/// `Z_alloc`, `Z_invalid`, `Z_free`.
fn counts(rig: &Rig) -> (usize, usize, usize) {
    let mapping = rig.drive.flash().mapping();
    let zones = 0..rig.drive.zones().count();
    let allocated = zones.filter(|zone| mapping.physical(ZoneId(*zone)).is_some());
    let (free, invalid) = mapping.pool_sizes();
    (allocated.count(), invalid, free)
}

fn state(rig: &Rig) -> ResetState {
    rig.drive.reset_state(0).expect("erasure by thresholds")
}

fn erased(rig: &Rig) -> u64 {
    rig.drive.totals().erased_blocks
}

/// A drive with so many zones written whole.
fn written(config: &DriveConfig, zones: u32) -> Rig {
    let mut rig = Rig::new(config);
    for zone in 0..zones {
        rig.write_pages(zone, PAGES);
    }
    rig
}

#[test]
fn without_invalid_zones_nothing_is_erased() {
    let mut rig = written(&rows(thresholds(6, Some(1))), 4);
    rig.run_for(us(100_000));
    assert_eq!(counts(&rig), (4, 0, 2));
    assert_eq!((state(&rig), erased(&rig)), (Serving, 0));
}

/// Section 2.2.2: nothing happens before flash is needed; then a zone is erased
/// whole and the host waits.
#[test]
fn the_mapping_method_erases_whole_zones_when_few_are_free() {
    let mut rig = written(&rows(thresholds(1, None)), 4);
    assert!(rig.time(rig.reset(0)) < us(1));
    rig.run_for(us(100_000));
    assert_eq!((counts(&rig), state(&rig)), ((3, 1, 2), Serving));
    // Two are free, which is more than the threshold.
    assert_eq!(rig.time(rig.write(0, PAGE)), WRITE);
    assert_eq!(counts(&rig), (4, 1, 1));
    rig.time(rig.reset(1));
    assert_eq!(counts(&rig), (3, 2, 1));
    assert_eq!(rig.drive.freed().mean(), None);
    // Now one is. The oldest is erased before anything else happens.
    let start = rig.now;
    let write = rig.submit(rig.write(1, PAGE));
    let read = rig.submit(rig.read(2, 0, PAGE));
    assert_eq!((counts(&rig), state(&rig)), ((4, 2, 0), Full));
    rig.run_to(start + erases(4) - Nanos(1));
    assert_eq!((counts(&rig), state(&rig)), ((4, 2, 0), Full));
    rig.run_to(start + erases(4));
    // With that one, two were free before the zone took one of them.
    assert_eq!((counts(&rig), state(&rig)), ((4, 1, 1), Serving));
    assert_eq!(rig.wait(write).latency(), erases(4) + WRITE);
    // Nothing was done about the first zone for 100 ms.
    let freed = rig.drive.freed();
    assert_eq!(freed.zones, 1);
    assert!(freed.longest > us(100_000) + erases(4));
    // The read goes on behind the write that came first.
    assert_eq!(rig.wait(read).latency(), erases(4) + WRITE + READ);
    assert_eq!(erased(&rig), 16);
}

/// Figure 4: a row at a time, the next one when nothing of the host is pending.
#[test]
fn rows_are_erased_between_commands_of_the_host() {
    let mut rig = written(&rows(thresholds(0, Some(1))), 4);
    rig.time(rig.reset(0));
    assert_eq!((state(&rig), erased(&rig)), (Partial, 4));
    let start = rig.now;
    // It comes during the first row, and waits for it alone.
    rig.run_for(us(1_000));
    let read = rig.submit(rig.read(1, 0, PAGE));
    assert_eq!(rig.wait(read).latency(), ERASE - us(1_000) + READ);
    assert_eq!(erased(&rig), 8, "the next row begins with its completion");
    // Two of them: no row between them.
    let first = rig.submit(rig.read(1, 0, PAGE));
    let second = rig.submit(rig.read(1, 0, PAGE));
    rig.wait(first);
    assert_eq!(erased(&rig), 8);
    rig.wait(second);
    assert_eq!(erased(&rig), 12);
    rig.settle();
    assert_eq!((counts(&rig), state(&rig)), ((3, 0, 3), Serving));
    assert_eq!(erased(&rig), 16);
    assert!(rig.now >= start + erases(4));
}

/// Section 3.2.3: up to the write pointer.
#[test]
fn only_what_was_written_is_erased() {
    for (extent, blocks) in [(EraseExtent::Partial, 6), (EraseExtent::Full, 16)] {
        for invalid_zones in [Some(1), None] {
            let mut config = rows(thresholds(5, invalid_zones));
            config.reset.extent = extent;
            let mut rig = Rig::new(&config);
            rig.write_pages(0, 16 + 2);
            rig.time(rig.reset(0));
            rig.settle();
            // Five are free when it asks: the threshold.
            rig.time(rig.write(1, PAGE));
            assert_eq!(erased(&rig), blocks, "{extent:?} {invalid_zones:?}");
        }
    }
}

/// S2 takes the row under way into account, and what comes before it.
#[test]
fn a_zone_that_was_begun_is_erased_to_its_end() {
    let mut rig = written(&rows(thresholds(1, Some(1))), 4);
    rig.time(rig.reset(0));
    rig.run_for(ERASE - us(1_000));
    rig.time(rig.write(0, PAGE));
    // Its allocation left one free, which is at the threshold.
    assert_eq!((counts(&rig), state(&rig)), ((4, 1, 1), Partial));
    // A row went before that write, and another has just begun.
    assert_eq!(erased(&rig), 8);
    let reset = rig.submit(rig.reset(1));
    let write = rig.submit(rig.write(1, PAGE));
    assert_eq!((counts(&rig), state(&rig)), ((4, 2, 0), Full));
    rig.wait(reset);
    // The row under way, its third and its fourth.
    assert_eq!(rig.wait(write).latency(), erases(3) + WRITE);
    assert_eq!((counts(&rig), state(&rig)), ((4, 1, 1), Partial));
    assert_eq!(erased(&rig), 16 + 4, "and the first of the other zone");
}

/// One that is needed when none is free: it is the invalid one.
#[test]
fn the_last_zone_is_erased_whole_whatever_the_threshold() {
    let mut config = rows(thresholds(0, None));
    config.mapping = MappingConfig::Lazy { physical_zones: 4 };
    let mut rig = written(&config, 4);
    rig.time(rig.reset(2));
    assert_eq!(counts(&rig), (3, 1, 0));
    let before = rig.drive.flash().mapping().invalid_zones(0);
    let write = rig.submit(rig.write(2, PAGE));
    assert_eq!((counts(&rig), state(&rig)), ((4, 0, 0), Full));
    assert_eq!(rig.wait(write).latency(), erases(4) + WRITE);
    assert_eq!(
        rig.drive.flash().mapping().physical(ZoneId(2)),
        Some(before[0])
    );
    assert_eq!((erased(&rig), state(&rig)), (16, Serving));
}

/// Table of figure 5, with each of the three ways to look at `Z_free`.
#[test]
fn when_free_zones_are_counted_is_a_setting() {
    for (evaluate, at_reset, at_write, at_next) in [
        // Two are free when it asks, ...
        (Evaluate::Allocation, Partial, Partial, Partial),
        // ... one is when it has had its own.
        (Evaluate::Command, Partial, Full, Full),
        (Evaluate::Change, Partial, Full, Full),
    ] {
        let config = rows(Thresholds {
            evaluate,
            ..thresholds(1, Some(1))
        });
        let mut rig = written(&config, 4);
        rig.submit(rig.reset(0));
        assert_eq!(state(&rig), at_reset, "{evaluate:?}");
        rig.submit(rig.write(0, PAGE));
        assert_eq!(state(&rig), at_write, "{evaluate:?}");
        rig.submit(rig.read(1, 0, PAGE));
        assert_eq!(state(&rig), at_next, "{evaluate:?}");
        rig.settle();
        assert_eq!((counts(&rig), state(&rig)), ((4, 0, 2), Serving));
    }
    // A threshold that is met at the reset blocks with `change` alone.
    for (evaluate, expected) in [
        (Evaluate::Allocation, Partial),
        (Evaluate::Command, Partial),
        (Evaluate::Change, Full),
    ] {
        let config = rows(Thresholds {
            evaluate,
            ..thresholds(2, Some(1))
        });
        let mut rig = written(&config, 4);
        rig.submit(rig.reset(0));
        assert_eq!(state(&rig), expected, "{evaluate:?}");
    }
}

/// Where S2 begins and ends: with `change` as section 3.2.2 has it, at the change that
/// leaves `T_free` zones free, until more are; before an allocation, one zone later.
#[test]
fn s2_begins_at_t_free_and_ends_above_it() {
    // Allocations, the free zones that S2 begins with, and those that it ends with.
    for (evaluate, allocations, begins, ends) in [
        (Evaluate::Change, 1, 1, 2),
        (Evaluate::Command, 1, 1, 2),
        (Evaluate::Allocation, 2, 0, 1),
    ] {
        let config = rows(Thresholds {
            evaluate,
            ..thresholds(1, None)
        });
        let mut rig = written(&config, 4);
        for zone in 0..allocations {
            assert_eq!(state(&rig), Serving, "{evaluate:?}");
            rig.time(rig.reset(zone));
            rig.submit(rig.write(zone, PAGE));
            if zone + 1 < allocations {
                rig.settle();
            }
        }
        let start = rig.now;
        let invalid = allocations as usize;
        let expected = ((4, invalid, begins), Full);
        assert_eq!((counts(&rig), state(&rig)), expected, "{evaluate:?}");
        rig.run_to(start + erases(4) - Nanos(1));
        assert_eq!((counts(&rig), state(&rig)), expected, "{evaluate:?}");
        rig.run_to(start + erases(4));
        let expected = ((4, invalid - 1, ends), Serving);
        assert_eq!((counts(&rig), state(&rig)), expected, "{evaluate:?}");
    }
}

/// The paper's S2 blocks the host until a zone is free. One with nothing to erase would
/// do so for ever, so the host is served until something is.
#[test]
fn where_nothing_can_be_erased_the_host_is_served() {
    let config = rows(Thresholds {
        evaluate: Evaluate::Change,
        ..thresholds(2, Some(1))
    });
    let mut rig = written(&config, 4);
    assert_eq!((counts(&rig), state(&rig)), ((4, 0, 2), Serving));
    assert_eq!(rig.time(rig.read(1, 0, PAGE)), READ);
    let start = rig.now;
    rig.submit(rig.reset(0));
    assert_eq!((counts(&rig), state(&rig)), ((3, 1, 2), Full));
    let read = rig.submit(rig.read(1, 0, PAGE));
    assert_eq!(rig.wait(read).latency(), erases(4) + READ);
    assert!(rig.now >= start + erases(4));
    assert_eq!((counts(&rig), state(&rig)), ((3, 0, 3), Serving));
}

#[test]
fn s1_needs_as_many_invalid_zones_as_its_threshold() {
    let mut rig = written(&rows(thresholds(0, Some(2))), 4);
    rig.time(rig.reset(0));
    rig.run_for(us(50_000));
    assert_eq!((counts(&rig), state(&rig)), ((3, 1, 2), Serving));
    rig.submit(rig.reset(3));
    assert_eq!(state(&rig), Partial);
    // One of them is enough: then there are fewer than two.
    rig.settle();
    assert_eq!((counts(&rig), state(&rig)), ((2, 1, 3), Serving));
    assert_eq!(erased(&rig), 16);
}

#[test]
fn the_least_worn_zone_is_erased_first() {
    for (victim, left) in [(Victim::Oldest, [1, 4]), (Victim::LeastWorn, [0, 1])] {
        let config = rows(Thresholds {
            victim,
            ..thresholds(0, Some(3))
        });
        let mut rig = written(&config, 4);
        // Physical zones 0 to 3 are erased once, in this order: equal wear.
        let turns = [
            (&[0, 1, 2][..], &[0, 1, 2][..]),
            (&[3, 2], &[2, 3]),
            (&[2], &[]),
        ];
        for (reset, write) in turns {
            for zone in reset {
                rig.submit(rig.reset(*zone));
                rig.settle();
            }
            for zone in write {
                rig.time(rig.write(*zone, PAGE));
            }
        }
        assert_eq!(
            rig.drive.flash().mapping().invalid_zones(0),
            [0, 1],
            "{victim:?}"
        );
        // 4 never was.
        assert_eq!(rig.drive.flash().mapping().physical(ZoneId(0)), Some(4));
        rig.submit(rig.reset(0));
        rig.settle();
        assert_eq!(
            rig.drive.flash().mapping().invalid_zones(0),
            left,
            "{victim:?}"
        );
    }
}

/// Everything that must hold between one event and the next.
struct Watch {
    blocks: Blocks,
    state: Vec<ResetState>,
    /// Losses of power.
    cuts: u32,
}

impl Watch {
    fn new(rig: &mut Rig) -> Self {
        let blocks = Blocks::watch(&mut rig.drive);
        let flash = rig.drive.flash();
        Self {
            blocks,
            state: vec![Serving; flash.layout().groups() as usize],
            cuts: 0,
        }
    }

    /// What blocks that no zone has are outlives a loss of power, but for those of the row
    /// under way, or of what S2 was erasing: they are stale again.
    fn cut(&mut self, rig: &mut Rig, seed: u64) {
        rig.run_to(rig.now);
        let flash = rig.drive.flash();
        let (layout, groups) = (flash.layout().clone(), flash.layout().groups());
        let state = |rig: &Rig, block| rig.drive.flash().blocks().state(block);
        let of_zone = |physical| {
            let blocks = 0..layout.zone_blocks();
            blocks
                .map(|block| layout.block_index(physical, block))
                .collect::<Vec<_>>()
        };
        let zones = (0..rig.drive.zones().count()).map(ZoneId);
        let physical = |zone| rig.drive.flash().mapping().physical(zone);
        let mapped: Vec<u32> = zones.filter_map(physical).collect();
        let unmapped = (0..flash.physical_zones()).filter(|of| !mapped.contains(of));
        let before: Vec<(u32, Vec<BlockState>)> = unmapped
            .map(|of| {
                (
                    of,
                    of_zone(of).iter().map(|block| state(rig, *block)).collect(),
                )
            })
            .collect();
        let states: Vec<_> = (0..groups).map(|of| rig.drive.reset_state(of)).collect();
        let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), seed);
        rig.now = loss.ready_at;
        for lost in &loss.lost {
            rig.forget(lost.tag.0 as usize);
        }
        self.cuts += 1;
        for (of, before) in before {
            let interrupted = before.iter().filter(|of| **of == BlockState::Erasing);
            let is_full = states[(of % groups) as usize] == Some(Full);
            assert!(is_full || interrupted.count() as u32 <= layout.width());
            assert_eq!(rig.drive.flash().zone_state(of).0, 0, "pages of {of}");
            for (block, before) in of_zone(of).into_iter().zip(before) {
                let after = match before {
                    BlockState::Erasing => BlockState::Stale,
                    other => other,
                };
                // If the drive goes on with its erasure at once, that is not seen yet.
                assert_eq!(state(rig, block), after, "block {block}");
            }
        }
    }

    fn look(&mut self, rig: &mut Rig, thresholds: Thresholds) {
        self.blocks.look(&mut rig.drive);
        let mapping = rig.drive.flash().mapping();
        let (allocated, invalid, free) = counts(rig);
        let total = rig.drive.flash().physical_zones() as usize;
        assert_eq!(allocated + invalid + free, total);
        for (group, before) in (0..).zip(&mut self.state) {
            let now = rig.drive.reset_state(group).expect("it has this group");
            let (_, invalid) = mapping.pool_of(group);
            let partial = thresholds.invalid_zones.is_some_and(|of| invalid >= of);
            match now {
                Full => {}
                Partial => assert!(partial, "S1 with {invalid} invalid zones"),
                Serving => assert!(!partial, "S0 with {invalid} invalid zones"),
            }
            *before = now;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// On any drive, under any load: Z_total = Z_alloc + Z_invalid + Z_free, the
    /// states are those of the counts, no block is programmed before it is
    /// erased, and with the optimisation none is erased more often than it was
    /// written.
    #[test]
    fn invariants_hold_at_every_step(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        (thresholds, extent) in any_thresholds(),
        front_end in prop::option::of(front_ends()),
        stream in streams(1..120),
        cuts in prop::collection::vec((0..120_usize, any::<u64>()), 0..4),
    ) {
        let mut designs = designs;
        designs.lazy = true;
        designs.reset.preempt_ns = None;
        designs.reset.extent = extent;
        let mut config = drive(body, designs, spare);
        config.reset.erase = within(thresholds, &config);
        let EraseWhen::Thresholds(thresholds) = config.reset.erase else {
            unreachable!("that is what it says")
        };
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        let mut rig = Rig::new(&config);
        let mut watch = Watch::new(&mut rig);
        for (at, step) in stream.iter().enumerate() {
            for (_, seed) in cuts.iter().filter(|(when, _)| *when == at) {
                watch.cut(&mut rig, *seed);
                watch.look(&mut rig, thresholds);
            }
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                }
                None => {
                    let until = rig.now + Nanos(1_000_000);
                    while rig.drive.next_event().is_some_and(|at| at <= until) {
                        rig.next();
                        watch.look(&mut rig, thresholds);
                    }
                    rig.run_to(until);
                }
            }
            watch.look(&mut rig, thresholds);
        }
        while rig.next() {
            watch.look(&mut rig, thresholds);
        }
        assert_eq!(rig.drive.in_flight() + rig.drive.background_tasks(), 0);
        if extent == EraseExtent::Partial {
            let in_vain = watch.blocks.in_vain();
            prop_assert!(in_vain <= 2 * watch.cuts, "{in_vain} in vain");
        }
        let enough = |group| {
            let (free, invalid) = rig.drive.flash().mapping().pool_of(group);
            (free, invalid, rig.drive.reset_state(group))
        };
        for group in 0..rig.drive.flash().layout().groups() {
            let (_, invalid, state) = enough(group);
            prop_assert_ne!(state, Some(Full));
            if let Some(threshold) = thresholds.invalid_zones {
                prop_assert!(invalid < threshold, "idle with {} invalid zones", invalid);
            }
        }
    }
}
