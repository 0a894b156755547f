//! Zones that are declared full are as those that were written.

use crate::drive_support::random::{Step, drives, streams};
use crate::drive_support::{PAGE, Rig, WRITE, reset, small};
use proptest::prelude::*;
use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig, EraseExtent, EraseWhen, MappingConfig};
use zonelab_ssd::{Control, ControlError, DriveModel};

/// Writes zones one after the other, each from its start to its capacity.
fn write_full(rig: &mut Rig, zones: std::ops::Range<u32>, nlb: u32) {
    let capacity = rig.drive.config().zones.capacity_lbas as u32;
    for zone in zones {
        let mut at = 0;
        while at < capacity {
            let nlb = nlb.min(capacity - at);
            let op = rig.write_at(zone, at, nlb);
            rig.time(op);
            at += nlb;
        }
    }
}

fn run(rig: &mut Rig, stream: &[Step]) {
    for step in stream {
        match (*step, step.op(rig)) {
            (_, Some(op)) => {
                let data = matches!(op, Op::ZoneReceive { .. });
                let data = data.then(|| zonelab_device::Buf::zeroed(64 * 7));
                rig.submit_with(op, data);
            }
            (Step::Pause(ns), None) => rig.run_for(Nanos(ns)),
            (_, None) => rig.settle(),
        }
    }
    rig.settle();
}

fn physical_zones(config: &DriveConfig) -> u32 {
    config.mapping.physical_zones(config.zones.count)
}

/// What can be seen of a drive at rest, its past apart.
fn assert_same_state(declared: &Rig, written: &Rig) {
    let (ours, theirs) = (&declared.drive, &written.drive);
    for zone in (0..ours.zones().count()).map(ZoneId) {
        assert_eq!(ours.zones().state(zone), theirs.zones().state(zone));
        assert_eq!(
            ours.zones().written_lbas(zone),
            theirs.zones().written_lbas(zone)
        );
        assert_eq!(ours.zones().host_lbas(zone), theirs.zones().host_lbas(zone));
    }
    assert_eq!(ours.zones().active_count(), theirs.zones().active_count());
    assert_eq!(ours.zones().open_count(), theirs.zones().open_count());
    assert_eq!(ours.flash().mapping(), theirs.flash().mapping());
    for physical in 0..physical_zones(ours.config()) {
        let state = |rig: &Rig| rig.drive.flash().zone_state(physical);
        assert_eq!(state(declared), state(written), "physical zone {physical}");
    }
    assert_eq!(ours.flash().erase_counts(), theirs.flash().erase_counts());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Whatever came before, and whatever comes after.
    #[test]
    fn declaring_zones_full_equals_writing_them(
        config in drives(),
        before in streams(0..30),
        range in (0..6_u32, 0..6_u32),
        nlb in 1..40_u32,
        after in streams(1..40),
    ) {
        let count = config.zones.count;
        let (a, b) = (range.0.min(count), range.1.min(count));
        let zones = a.min(b)..a.max(b);
        let (mut declared, mut written) = (Rig::new(&config), Rig::new(&config));
        for rig in [&mut declared, &mut written] {
            run(rig, &before);
            rig.exec(Op::ZoneSend {
                slba: Lba(0),
                action: ZoneSendAction::RESET,
                select_all: true,
            });
            rig.settle();
        }
        declared.precondition(zones.clone());
        write_full(&mut written, zones, nlb);
        assert_same_state(&declared, &written);

        let start = declared.now.max(written.now) + Nanos(1);
        let skip = [declared.done.len(), written.done.len()];
        for rig in [&mut declared, &mut written] {
            rig.run_to(start);
            run(rig, &after);
        }
        prop_assert_eq!(declared.report(), written.report());
        prop_assert_eq!(&declared.done[skip[0]..], &written.done[skip[1]..]);
        assert_same_state(&declared, &written);
    }
}

#[test]
fn a_hundred_thousand_zones_are_declared_full_one_by_one() {
    const ZONES: u32 = 100_000;
    let mut config = small();
    config.zones.count = ZONES;
    config.geometry.blocks_per_plane = 2 * ZONES;
    for mapping in [
        MappingConfig::Direct,
        MappingConfig::Lazy {
            physical_zones: ZONES,
        },
    ] {
        config.mapping = mapping;
        let mut rig = Rig::new(&config);
        // Zones are large: a cost per page or block would show.
        for zone in 0..ZONES {
            rig.precondition(zone..zone + 1);
        }
        assert_eq!(rig.drive.zones().state(ZoneId(ZONES - 1)), ZoneState::FULL);
        assert_eq!(rig.drive.next_event(), None);
        assert_eq!(rig.now, Nanos::ZERO);
    }
}

#[test]
fn recycled_flash_counts_as_erased() {
    let mut config = small();
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    for round in 1..4 {
        rig.precondition(0..2);
        assert_eq!(rig.drive.flash().stale_blocks(0), 0);
        rig.time(rig.reset(0));
        rig.time(rig.reset(1));
        assert_eq!(rig.drive.flash().stale_blocks(0), 8);
        assert_eq!(rig.drive.totals().erased_blocks, 16 * (round - 1));
    }
}

#[test]
fn impossible_declarations_change_nothing() {
    let mut rig = Rig::new(&small());
    let op = rig.write(2, PAGE);
    rig.time(op);
    let control = |rig: &mut Rig, zones: std::ops::Range<u32>| {
        let now = rig.now;
        rig.drive.control(now, &Control::PreconditionFull { zones })
    };
    let not_empty = ControlError::NotEmpty { zone: ZoneId(2) };
    assert_eq!(control(&mut rig, 0..6), Err(not_empty.clone()));
    assert_eq!(control(&mut rig, 2..3), Err(not_empty));
    for range in [0..7, 7..8, u32::MAX..u32::MAX] {
        let zones = 6;
        let error = ControlError::NoSuchZone {
            range: range.clone(),
            zones,
        };
        assert_eq!(control(&mut rig, range), Err(error));
    }
    #[expect(clippy::reversed_empty_ranges, reason = "a caller may well do that")]
    let reversed = control(&mut rig, 4..3);
    assert!(matches!(reversed, Err(ControlError::NoSuchZone { .. })));
    // None at all is no mistake.
    assert_eq!(control(&mut rig, 2..2), Ok(()));
    assert_eq!(control(&mut rig, 6..6), Ok(()));
    for zone in [0, 1, 3, 4, 5] {
        assert_eq!(rig.drive.zones().state(ZoneId(zone)), ZoneState::EMPTY);
        assert_eq!(rig.drive.flash().zone_state(zone), (0, 0, 0));
    }
    assert_eq!(control(&mut rig, 3..6), Ok(()));
}

#[test]
fn a_drive_that_keeps_data_cannot_have_zones_without_it() {
    let mut config = small();
    config.data = DataStore::Memory;
    let mut rig = Rig::new(&config);
    let action = Control::PreconditionFull { zones: 0..1 };
    assert_eq!(
        rig.drive.control(Nanos::ZERO, &action),
        Err(ControlError::KeepsData)
    );
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::EMPTY);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), WRITE);
}
