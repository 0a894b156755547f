//! Erasure by thresholds: groups of zones, records, and what a loss of power and a snapshot keep.

use zonelab_ssd::config::{FillExtent, FinishConfig};

use super::*;

/// Of zones that share no die, each group has its own state.
#[test]
fn groups_are_erased_by_their_own_counts() {
    let mut config = lazy(small(), 6);
    config.zones.channels = 2;
    config.zones.count = 4;
    config.reset = reset(
        EraseWhen::Thresholds(thresholds(0, Some(1))),
        EraseExtent::Partial,
    );
    let mut rig = Rig::new(&config);
    for zone in 0..4 {
        rig.write_pages(zone, 32);
    }
    rig.submit(rig.reset(0));
    assert_eq!(rig.drive.reset_state(0), Some(Partial));
    assert_eq!(rig.drive.reset_state(1), Some(Serving));
    assert_eq!(rig.drive.reset_state(2), None);
    // What the other group does is none of its business.
    let start = rig.now;
    let mut reads = 0;
    while rig.drive.flash().mapping().pool_of(0) != (2, 0) {
        rig.time(rig.read(1, 0, PAGE));
        reads += 1;
    }
    assert_eq!(reads, erases(4).0.div_ceil(READ.0));
    assert!(rig.now < start + erases(4) + READ);
}

#[test]
fn a_trace_shows_rows_between_commands_and_the_states() {
    let mut rig = written(&rows(thresholds(1, Some(1))), 4);
    rig.drive.record(&RecordLimits::everything(1 << 12));
    rig.time(rig.reset(0));
    rig.time(rig.write(0, PAGE));
    rig.submit(rig.reset(1));
    rig.submit(rig.write(1, PAGE));
    rig.settle();
    let record = rig.drive.take_record();
    let kinds: Vec<_> = record.background.records.iter().map(|of| of.kind).collect();
    let (row, whole) = (BackgroundKind::PartialErase, BackgroundKind::FullErase);
    // The other zone follows when the host is done.
    assert_eq!(kinds, [row, row, whole, row, row, row, row]);
    let states: Vec<u64> = record
        .counters
        .records
        .iter()
        .filter(|of| of.counter == Counter::ResetState)
        .map(|of| of.value)
        .collect();
    assert_eq!(states, [0, 1, 2, 1, 0]);
    // A command between the first two rows.
    let write = &record.commands.records[1];
    let rows = &record.background.records;
    assert_eq!(
        Some(write.completed.expect("it has").0),
        Some(rows[1].start)
    );
    assert_eq!(rows[0].end, Some(rows[0].start + ERASE));
}

/// A loss of power costs the row under way, and no other.
#[test]
fn a_loss_of_power_repeats_one_row() {
    let mut rig = written(&rows(thresholds(0, Some(1))), 4);
    rig.submit(rig.reset(0));
    rig.run_for(erases(2) + us(1_000));
    assert_eq!(erased(&rig), 12);
    rig.drive.power_cut(rig.now, us(1_000), 1);
    rig.run_for(us(1_000));
    while rig.next() {}
    assert_eq!(erased(&rig), 12 + 8, "the third row again, and the fourth");
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (3, 0));
}

/// A zone that is reset again and again has a physical zone that is erased for two resets at
/// once, and is free when both erasures are over. A loss of power between the two ends must
/// not leave it invalid with nothing to erase. (Found by 5,000 runs of the property above.)
#[test]
fn a_loss_of_power_forgets_no_zone_that_is_erased() {
    let mut config = rows(Thresholds {
        evaluate: Evaluate::Allocation,
        ..thresholds(0, Some(1))
    });
    config.mapping = MappingConfig::Lazy { physical_zones: 2 };
    config.geometry.pages_per_block = 3;
    config.zones.count = 1;
    config.zones.capacity_lbas = u64::from(17 * PAGE);
    config.zones.size_lbas = config.zones.capacity_lbas;
    config.reset.extent = EraseExtent::Full;
    config.finish = FinishConfig::Fill {
        granularity_bytes: 16_384,
        pause_ns: us(50),
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Zone,
    };
    let mut rig = Rig::new(&config);
    for step in "WPWRPFPWRPWWPPPRWRWWRWPWPRFPWPWPPPPPWPP".chars() {
        let op = match step {
            'W' => rig.write(0, PAGE),
            'R' => rig.reset(0),
            'F' => rig.finish(0),
            _ => {
                rig.run_for(us(1_000));
                continue;
            }
        };
        rig.submit(op);
    }
    rig.now = rig.drive.power_cut(rig.now, us(1_000), 1).ready_at;
    rig.drive.assert_invariants();
    while rig.next() {}
    assert_eq!(counts(&rig), (1, 0, 1));
}

/// Power goes while a zone is being erased that has been written and reset since:
/// what it held before that must be erased again.
#[test]
fn a_loss_of_power_forgets_no_erasure_of_a_zone_that_was_reset_again() {
    let mut config = rows(thresholds(0, None));
    config.mapping = MappingConfig::Lazy { physical_zones: 4 };
    let mut rig = Rig::new(&config);
    let mut blocks = Blocks::watch(&mut rig.drive);
    for zone in 0..4 {
        rig.write_pages(zone, PAGES);
    }
    rig.time(rig.reset(2));
    rig.submit(rig.write(2, PAGE));
    assert_eq!(state(&rig), Full);
    // One page of it was to be written.
    rig.submit(rig.reset(2));
    rig.run_for(us(1_000));
    rig.now = rig.drive.power_cut(rig.now, us(1_000), 1).ready_at;
    blocks.look(&mut rig.drive);
    rig.write_pages(2, PAGES);
    blocks.look(&mut rig.drive);
    assert_eq!((erased(&rig), blocks.in_vain()), (2 * 16, 0));
}

/// What was erased of a zone is part of a snapshot.
#[test]
fn a_snapshot_keeps_how_far_a_zone_is_erased() {
    let mut config = rows(thresholds(0, Some(2)));
    let mut rig = written(&config, 4);
    rig.submit(rig.reset(0));
    rig.submit(rig.reset(1));
    rig.run_for(erases(3) + us(1_000));
    rig.drive.power_cut(rig.now, us(1_000), 1);
    // Where S1 has a higher threshold, nothing goes on.
    config.reset.erase = EraseWhen::Thresholds(thresholds(0, Some(3)));
    while rig.next() {}
    let bytes = snapshot::save(&rig.drive).expect("it is idle");
    assert_eq!(erased(&rig), 16 + 4);
    let same = snapshot::restore(&config, &bytes).expect("it is the same drive");
    assert_eq!(same.flash().mapping().pool_sizes(), (3, 1));
    assert_eq!(snapshot::save(&same).expect("it is idle"), bytes);
    let mut again = Rig::new(&config);
    again.drive = same;
    // Two of three: still S0.
    again.submit(again.reset(2));
    again.settle();
    assert_eq!((state(&again), erased(&again)), (Serving, 16 + 4));
}

/// What the design needs is refused with what would fit.
#[test]
fn impossible_thresholds_are_refused() {
    let refused = |config: &DriveConfig| {
        let broken = profile::check(config).expect_err("it is impossible");
        let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
        broken.join("; ")
    };
    let mut direct = rows(thresholds(0, None));
    direct.mapping = MappingConfig::Direct;
    let says = refused(&direct);
    for design in ["mapping.design = \"lazy\"", "\"chunk\"", "\"stripe\""] {
        assert!(says.contains(design), "{says}");
    }
    let adaptive = rows(Thresholds {
        adapt: Some(us(1)),
        ..thresholds(1, None)
    });
    assert!(refused(&adaptive).contains("reset.thresholds.adapt"));
    let many = rows(thresholds(7, None));
    assert!(refused(&many).contains("at most 6"));
    let mut preemptive = rows(thresholds(1, Some(1)));
    preemptive.reset.preempt_ns = Some(us(1));
    assert!(refused(&preemptive).contains("reset.preemptive"));
}
