//! Erasure by thresholds of zones that are assembled from storage elements.

use crate::drive_support::random::{bodies, designs, drive, front_ends, streams};
use crate::drive_support::thresholds::{any_thresholds, thresholds, within};
use crate::drive_support::{ERASE, PAGE, Rig, WRITE, reset, small, us};
use crate::elements_oracle::{Oracle, Shock, with_elements};
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::ResetState::{Full, Partial, Serving};
use zonelab_ssd::config::{
    DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, MappingConfig, Thresholds,
    Victim,
};
use zonelab_ssd::{DriveModel, FaultTarget, ResetState, ZoneCounts, profile, snapshot};

/// Pages of a zone of four rows of blocks: 4 planes, 4 pages in each block.
const PAGES: u32 = 4 * 16;

const fn erases(rows: u64) -> Nanos {
    Nanos(ERASE.0 * rows)
}

fn mappings(physical_zones: u32) -> [MappingConfig; 4] {
    let chunk = |chunk_blocks| MappingConfig::Chunk {
        chunk_blocks,
        physical_zones,
    };
    [
        chunk(1),
        chunk(2),
        chunk(4),
        MappingConfig::Stripe { physical_zones },
    ]
}

/// Four zones of four rows, and elements for six.
fn config(mapping: MappingConfig, thresholds: Thresholds) -> DriveConfig {
    let mut config = small();
    config.mapping = mapping;
    config.zones.count = 4;
    config.zones.capacity_lbas = u64::from(PAGES * PAGE);
    config.zones.size_lbas = config.zones.capacity_lbas;
    config.reset = reset(EraseWhen::Thresholds(thresholds), EraseExtent::Partial);
    config
}

/// `Z_alloc`, `Z_invalid`, `Z_free`.
fn counts(rig: &Rig) -> (u32, u32, u32) {
    let ZoneCounts {
        allocated,
        invalid,
        free,
    } = rig.drive.zone_counts(0).expect("by thresholds");
    (allocated, invalid, free)
}

fn state(rig: &Rig) -> ResetState {
    rig.drive.reset_state(0).expect("by thresholds")
}

fn erased(rig: &Rig) -> u64 {
    rig.drive.totals().erased_blocks
}

fn written(config: &DriveConfig, zones: u32) -> Rig {
    let mut rig = Rig::new(config);
    for zone in 0..zones {
        rig.write_pages(zone, PAGES);
    }
    rig
}

/// What is free goes to the next zone, though others have less wear: the host
/// waits for an erasure when nothing else is left.
#[test]
fn zones_get_erased_elements_while_there_are_enough() {
    for mapping in mappings(6) {
        let mut rig = written(&config(mapping, thresholds(0, None)), 4);
        for round in 0..2 {
            rig.time(rig.reset(round));
            assert_eq!(rig.time(rig.write(round, PAGE)), WRITE, "{mapping:?}");
        }
        assert_eq!((counts(&rig), erased(&rig)), ((4, 2, 0), 0));
        rig.time(rig.reset(2));
        let write = rig.submit(rig.write(2, PAGE));
        assert_eq!(state(&rig), Full);
        assert_eq!(rig.wait(write).latency(), erases(4) + WRITE, "{mapping:?}");
        assert_eq!((counts(&rig), state(&rig)), ((4, 2, 0), Serving));
        assert_eq!(erased(&rig), 16);
    }
}

/// Elements that were not written are free at once, so that four zones of one row
/// leave behind the elements of one zone to be erased.
#[test]
fn rows_that_several_zones_left_make_one_zone() {
    for mapping in [mappings(6)[0], mappings(6)[3]] {
        let mut rig = Rig::new(&config(mapping, thresholds(0, Some(1))));
        for zone in 0..4 {
            rig.write_pages(zone, 16);
        }
        assert_eq!(counts(&rig), (4, 0, 2));
        for zone in 0..4 {
            rig.submit(rig.reset(zone));
        }
        // 24 rows, of which 20 are free.
        assert_eq!(counts(&rig), (0, 1, 5), "{mapping:?}");
        let start = rig.now;
        rig.settle();
        assert_eq!((counts(&rig), state(&rig)), ((0, 0, 6), Serving));
        assert_eq!((rig.now, erased(&rig)), (start + erases(4), 16));
    }
}

/// A row of blocks at a time, whatever elements consist of.
#[test]
fn a_command_waits_for_one_row() {
    for mapping in mappings(6) {
        let mut rig = written(&config(mapping, thresholds(0, Some(1))), 4);
        rig.time(rig.reset(0));
        assert_eq!((state(&rig), erased(&rig)), (Partial, 4), "{mapping:?}");
        rig.run_for(us(1_000));
        let write = rig.submit(rig.write(0, PAGE));
        // Its data crosses the channel meanwhile.
        let program = WRITE - us(25);
        assert_eq!(rig.wait(write).latency(), ERASE - us(1_000) + program);
        assert_eq!(erased(&rig), 8, "the next row begins with its completion");
        rig.settle();
        assert_eq!((counts(&rig), erased(&rig)), ((4, 0, 2), 16));
    }
}

/// A loss of power costs what is under way: a row of blocks, whatever elements consist of.
#[test]
fn a_loss_of_power_repeats_one_row() {
    for mapping in mappings(6) {
        let mut rig = written(&config(mapping, thresholds(0, Some(1))), 4);
        rig.submit(rig.reset(0));
        rig.run_for(erases(2) + us(1_000));
        assert_eq!(erased(&rig), 12);
        rig.drive.power_cut(rig.now, us(1_000), 1);
        rig.run_for(us(1_000));
        while rig.next() {}
        assert_eq!(erased(&rig), 16 + 4, "{mapping:?}");
        assert_eq!(counts(&rig), (3, 0, 3));
    }
}

/// Of elements that wait, those that came first are erased, or those of least wear.
#[test]
fn the_least_worn_elements_are_erased_first() {
    for (victim, most_worn) in [(Victim::Oldest, 2), (Victim::LeastWorn, 1)] {
        let mapping = MappingConfig::Stripe { physical_zones: 6 };
        let of = Thresholds {
            victim,
            ..thresholds(0, Some(3))
        };
        let mut rig = written(&config(mapping, of), 4);
        // With the third that is invalid, one is erased.
        let turns = [
            (&[0, 1, 2][..], &[0, 1, 2][..]),
            (&[2], &[2]),
            (&[0], &[0]),
            (&[1], &[]),
        ];
        for (reset, write) in turns {
            for zone in reset {
                rig.submit(rig.reset(*zone));
                rig.settle();
            }
            for zone in write {
                rig.write_pages(*zone, PAGES);
            }
        }
        // At the last, the one that came first had been erased before.
        assert_eq!((counts(&rig), erased(&rig)), ((3, 2, 1), 4 * 16));
        let elements = rig.drive.flash().elements().expect("stripes");
        let most = elements.all().map(|of| of.wear).max();
        assert_eq!(most, Some(most_worn), "{victim:?}");
    }
}

/// A zone that is finished while S2 erases what it got gives some of it back:
/// nothing is lost of it, and what power interrupts is repeated.
#[test]
fn a_finish_during_s2_gives_elements_back() {
    for (mapping, is_cut) in [(0, true), (3, true), (0, false), (3, false)] {
        let mut config = config(mappings(4)[mapping], thresholds(0, Some(1)));
        config.finish = FinishConfig::Fill {
            granularity_bytes: 64 << 10,
            pause_ns: Nanos::ZERO,
            yield_ns: None,
            buffered: false,
            takes_core: false,
            extent: FillExtent::Elements,
        };
        let mut rig = written(&config, 4);
        rig.submit(rig.reset(0));
        rig.submit(rig.write(0, PAGE));
        assert_eq!(state(&rig), Full);
        // Some of it is being erased.
        rig.run_for(us(1_000));
        assert_eq!(erased(&rig), 16);
        rig.submit(rig.finish(0));
        rig.run_for(us(1_000));
        if is_cut {
            rig.drive.power_cut(rig.now, us(1_000), 1);
            rig.now = rig.drive.ready_at();
            while rig.next() {}
        } else {
            rig.settle();
        }
        // The zone keeps an element, and the others are not enough for another zone.
        assert_eq!((counts(&rig), erased(&rig)), ((4, 0, 0), 16));
        rig.exec(rig.reset(0));
        while rig.next() {}
        assert_eq!((counts(&rig), state(&rig)), ((3, 0, 1), Serving));
        // All again, or the element that was filled.
        let filled = if mapping == 0 { 1 } else { 4 };
        assert_eq!(erased(&rig), 16 + if is_cut { 16 } else { filled });
        rig.write_pages(0, PAGES);
        assert_eq!(counts(&rig), (4, 0, 0));
    }
}

/// How far elements are erased is part of a snapshot, row of elements by row.
#[test]
fn a_snapshot_keeps_which_elements_are_erased() {
    for mapping in [mappings(6)[0], mappings(6)[3]] {
        let mut config = config(mapping, thresholds(0, Some(1)));
        let mut rig = written(&config, 4);
        rig.submit(rig.reset(0));
        rig.run_for(erases(2) + us(1_000));
        rig.drive.power_cut(rig.now, us(1_000), 1);
        let before = erased(&rig);
        while rig.next() {}
        config.reset.erase = EraseWhen::Thresholds(thresholds(0, Some(2)));
        let bytes = snapshot::save(&rig.drive).expect("it is idle");
        assert_eq!(erased(&rig), before + 8);
        let same = snapshot::restore(&config, &bytes).expect("it is the same drive");
        assert_eq!(same.zone_counts(0), rig.drive.zone_counts(0));
        assert_eq!(snapshot::save(&same).expect("it is idle"), bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Random commands, losses of power and snapshots, both methods, beside a model
    /// of elements as sets.
    #[test]
    fn elements_are_as_in_the_model(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        draw in any::<(u32, bool, bool)>(),
        (thresholds, extent) in any_thresholds(),
        steps in streams(1..80),
        shocks in prop::collection::vec((0..80_usize, any::<Shock>()), 0..4),
    ) {
        let mut config = with_elements(drive(body, designs, 0), draw, spare);
        config.reset = reset(within(thresholds, &config), extent);
        prop_assume!(profile::check(&config).is_ok());
        let mut rig = Rig::new(&config);
        Oracle::new(&config).run(&mut rig, &steps, &shocks);
    }

    /// Where zones are erased whole, it makes no difference to the host, in time or
    /// in counts, what they consist of.
    #[test]
    fn whole_zones_take_the_time_that_they_take_with_lazy_mapping(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        kind in any::<u32>(),
        (mut thresholds, _) in any_thresholds(),
        front_end in prop::option::of(front_ends()),
        steps in streams(1..80),
    ) {
        // Wear of a zone and of elements are not the same.
        thresholds.victim = Victim::Oldest;
        // Nor is how much of a zone is left.
        thresholds.adapt = None;
        let mut designs = designs;
        designs.lazy = true;
        let mut lazy = drive(body, designs, spare);
        if let Some(front_end) = front_end {
            lazy.front_end = front_end;
        }
        lazy.reset = reset(within(thresholds, &lazy), EraseExtent::Full);
        let elements = with_elements(lazy.clone(), (kind, false, false), spare);
        let (mut one, mut other) = (Rig::new(&lazy), Rig::new(&elements));
        for step in steps {
            if let Some(op) = step.op(&one) {
                one.settle();
                other.settle();
                prop_assert_eq!(one.now, other.now);
                one.submit(op);
                other.submit(op);
            } else {
                let until = one.now + us(700);
                one.run_to(until);
                other.run_to(until);
            }
            for group in 0..one.drive.flash().layout().groups() {
                prop_assert_eq!(one.drive.zone_counts(group), other.drive.zone_counts(group));
                prop_assert_eq!(one.drive.reset_state(group), other.drive.reset_state(group));
            }
        }
        one.settle();
        other.settle();
        prop_assert_eq!(one.done, other.done);
        prop_assert_eq!(one.drive.totals().erased_blocks, other.drive.totals().erased_blocks);
    }
}
