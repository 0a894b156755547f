//! Drives with more zones than flash: what a zone accepts always has flash.

use std::cell::Cell;

use crate::drive_support::random::{Step, drives, streams};
use crate::drive_support::{PAGE, Rig, small};
use crate::elements_oracle::with_elements;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_oracle::blocks::Blocks;
use zonelab_ssd::config::{
    DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, MappingConfig,
};
use zonelab_ssd::{Control, ControlError, FaultTarget, profile, snapshot};

const ZONE_PAGES: u32 = 32;

/// Six zones of eight chunks, and flash for `physical_zones`.
fn thin(physical_zones: u32) -> DriveConfig {
    let mut config = small();
    config.mapping = MappingConfig::Chunk {
        chunk_blocks: 1,
        physical_zones,
    };
    config.finish = FinishConfig::Fill {
        granularity_bytes: 16 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Elements,
    };
    config.reset = crate::drive_support::reset(EraseWhen::FirstZoneWrite, EraseExtent::Partial);
    config.allocation.thin = true;
    config
}

/// The paper's section 6: all zones are finished, and there is flash left. Here
/// there are more zones, to write it.
#[test]
fn what_finish_gives_back_is_for_further_zones() {
    let mut rig = Rig::new(&thin(2));
    // One row of four blocks of eight.
    for zone in 0..2 {
        rig.write_pages(zone, 16);
        assert_eq!(rig.drive.zones_left(), 1 - zone);
        if zone == 1 {
            // Two zones are not finished: no third.
            assert_eq!(rig.exec(rig.write(2, 1)).status, Status::CAPACITY_EXCEEDED);
        }
    }
    for zone in 0..2 {
        let finish = rig.finish(zone);
        assert_eq!(rig.exec(finish).status, Status::SUCCESS);
    }
    assert_eq!(rig.drive.zones_left(), 1);
    rig.write_pages(2, ZONE_PAGES);
    assert_eq!(rig.drive.zones_left(), 0);

    // Nothing has changed by a refusal, whatever command it was.
    for op in [
        rig.write(3, PAGE),
        rig.append(3, PAGE),
        rig.send(3, ZoneSendAction::OPEN),
        Op::WriteZeroes {
            slba: rig.lba(3, 0),
            nlb: 1,
        },
    ] {
        assert_eq!(rig.exec(op).status, Status::CAPACITY_EXCEEDED, "{op:?}");
        assert_eq!(rig.drive.zones().state(ZoneId(3)), ZoneState::EMPTY);
    }
    // What is wrong with a command is said first, and no flash is needed to finish.
    let elsewhere = rig.write_at(3, PAGE, PAGE);
    assert_eq!(rig.exec(elsewhere).status, Status::ZONE_INVALID_WRITE);
    let finish = rig.finish(4);
    assert_eq!(rig.exec(finish).status, Status::SUCCESS);

    // A finished zone gives back what it has, and not what it once had.
    assert_eq!(rig.exec(rig.reset(0)).status, Status::SUCCESS);
    assert_eq!(
        rig.exec(rig.write(0, PAGE)).status,
        Status::CAPACITY_EXCEEDED
    );
    assert_eq!(rig.exec(rig.reset(1)).status, Status::SUCCESS);
    assert_eq!(rig.exec(rig.write(0, PAGE)).status, Status::SUCCESS);
}

/// What is open has flash up to its capacity, even if nothing was written.
#[test]
fn an_open_zone_can_be_filled() {
    let mut rig = Rig::new(&thin(1));
    assert_eq!(
        rig.exec(rig.send(5, ZoneSendAction::OPEN)).status,
        Status::SUCCESS
    );
    assert_eq!(
        rig.exec(rig.write(0, PAGE)).status,
        Status::CAPACITY_EXCEEDED
    );
    // Without power it is empty again, and anybody can have its flash.
    rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
    assert_eq!(rig.exec(rig.write(0, PAGE)).status, Status::SUCCESS);
    assert_eq!(rig.exec(rig.reset(0)).status, Status::SUCCESS);
    assert_eq!(
        rig.exec(rig.send(5, ZoneSendAction::OPEN)).status,
        Status::SUCCESS
    );
    rig.write_pages(5, ZONE_PAGES);
}

#[test]
fn preconditioning_needs_flash_too() {
    let mut rig = Rig::new(&thin(3));
    let fill = |zones| Control::PreconditionFull { zones };
    let refused = rig.drive.control(rig.now, &fill(1..5));
    assert_eq!(refused, Err(ControlError::NoFlash { zone: ZoneId(4) }));
    assert_eq!(rig.drive.control(rig.now, &fill(1..4)), Ok(()));
    assert_eq!(rig.drive.zones_left(), 0);
}

/// What there is flash for is no more than the flash, however many zones there are.
#[test]
fn a_thin_drive_can_have_more_zones_than_its_flash_has_bytes() {
    let mut config = thin(2);
    config.geometry.blocks_per_plane = 2 * 2;
    let derived = profile::check(&config).expect("there is flash for two zones");
    assert_eq!(derived.usable_bytes, derived.raw_bytes);
    assert_eq!(derived.over_provisioning_ppm, 0);
    let namespace_bytes = 6 * config.zones.size_lbas * u64::from(config.lba_bytes);
    assert_eq!(derived.namespace_bytes, namespace_bytes);
}

#[test]
fn impossible_thin_drives_are_refused() {
    let refused = |config: &DriveConfig, key: &str| {
        let broken = profile::check(config).expect_err("it is impossible");
        assert!(broken.iter().any(|of| of.key == key), "{broken:?}");
    };
    refused(&thin(0), "mapping.physical_zones");
    let mut filled = thin(3);
    filled.finish = FinishConfig::Metadata;
    refused(&filled, "mapping.thin");
    let mut lazy = thin(3);
    lazy.mapping = MappingConfig::Lazy { physical_zones: 6 };
    refused(&lazy, "mapping.thin");
    let mut thick = thin(3);
    thick.allocation.thin = false;
    refused(&thick, "mapping.physical_zones");
}

/// What holds at any time, from what the drive says of its elements and zones.
fn check(rig: &Rig) -> Result<(), TestCaseError> {
    let (drive, config) = (&rig.drive, rig.drive.config());
    let elements = drive.flash().elements().expect("it has some");
    for zone in (0..config.zones.count).map(ZoneId) {
        let state = drive.zones().state(zone);
        let physical = drive.flash().mapping().physical(zone);
        let has_all = physical.is_some_and(|of| elements.of_zone(of).all(|of| of.is_some()));
        let is_active = state == ZoneState::IMPLICITLY_OPENED
            || state == ZoneState::EXPLICITLY_OPENED
            || state == ZoneState::CLOSED;
        prop_assert!(!is_active || has_all, "{zone:?} in {state} has no flash");
        prop_assert!(
            state != ZoneState::EMPTY || physical.is_none(),
            "{zone:?} has some"
        );
    }
    Ok(())
}

/// Zones of the group of `zone` that are not empty.
fn taken(rig: &Rig, zone: ZoneId) -> u32 {
    let groups = rig.drive.flash().layout().groups();
    let of_group = (zone.0 % groups..rig.drive.config().zones.count).step_by(groups as usize);
    let taken = of_group.filter(|zone| rig.drive.zones().state(ZoneId(*zone)) != ZoneState::EMPTY);
    u32::try_from(taken.count()).expect("there are few")
}

/// What a command that may be refused met, and left.
#[derive(Debug)]
struct Met {
    tag: usize,
    before: ZoneState,
    after: ZoneState,
    /// Zones of its group that were not empty, and those that there is flash for.
    taken: u32,
    backed: usize,
}

fn cuts() -> impl Strategy<Value = Vec<(usize, u64, bool)>> {
    prop::collection::vec((0..90_usize, any::<u64>(), any::<bool>()), 0..3)
}

/// Runs commands, and checks after each. Returns how many were refused for want of
/// flash: only commands to an empty zone, which stays empty, and only if as many
/// others of its group are not empty as there is flash for.
fn run(
    config: &DriveConfig,
    steps: &[Step],
    cuts: &[(usize, u64, bool)],
) -> Result<u32, TestCaseError> {
    let mut rig = Rig::new(config);
    let groups = rig.drive.flash().layout().groups();
    let physical_zones = config.mapping.physical_zones(config.zones.count);
    let mut met = Vec::new();
    let mut blocks = Blocks::watch(&mut rig.drive);
    for (at, step) in steps.iter().enumerate() {
        for &(_, seed, is_snapshot) in cuts.iter().filter(|(when, ..)| *when == at) {
            if is_snapshot {
                rig.settle();
                if let Ok(saved) = snapshot::save(&rig.drive) {
                    let restored = snapshot::restore(config, &saved);
                    prop_assert!(restored.is_ok(), "{:?}", restored.err());
                }
            } else {
                let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, seed);
                rig.now = loss.ready_at;
                for lost in &loss.lost {
                    rig.forget(lost.tag.0 as usize);
                }
                blocks.look(&mut rig.drive);
                rig.run_to(rig.now);
            }
            check(&rig)?;
        }
        let Some(op) = step.op(&rig) else {
            match *step {
                Step::Pause(ns) => rig.run_for(Nanos(ns)),
                _ => rig.settle(),
            }
            continue;
        };
        let zone = rig.drive.zones().zone_of(Lba(op.first_block()));
        let before = zone.map(|zone| (rig.drive.zones().state(zone), taken(&rig, zone)));
        let tag = rig.submit(op);
        if let (Some(zone), Some((before, taken))) = (zone, before) {
            met.push(Met {
                tag,
                before,
                after: rig.drive.zones().state(zone),
                taken,
                backed: (zone.0 % groups..physical_zones)
                    .step_by(groups as usize)
                    .count(),
            });
        }
        check(&rig)?;
        blocks.look(&mut rig.drive);
    }
    rig.settle();
    check(&rig)?;
    blocks.look(&mut rig.drive);
    let is_refused = |met: &&Met| {
        let done = rig.done[met.tag].as_ref();
        done.is_some_and(|done| done.status == Status::CAPACITY_EXCEEDED)
    };
    let mut refused = 0;
    for met in met.iter().filter(is_refused) {
        prop_assert_eq!(met.before, ZoneState::EMPTY);
        prop_assert_eq!(met.after, ZoneState::EMPTY);
        prop_assert!(met.taken as usize >= met.backed, "{:?}", met);
        refused += 1;
    }
    Ok(refused)
}

/// A drive that accepted what it has no flash for would stop: elements would be
/// missing for it.
#[test]
fn what_is_accepted_has_flash() {
    let weight = prop_oneof![3 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(2))];
    let design = (any::<(u32, bool)>(), weight, 1..5_u32);
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        max_global_rejects: 20_000,
        ..Config::with_cases(800)
    });
    let refused = Cell::new(0);
    let strategy = (drives(), design, streams(1..90), cuts());
    let result = runner.run(&strategy, |(config, design, steps, cuts)| {
        let ((kind, has_buffer), weight, backed) = design;
        let mut config = with_elements(config, (kind, true, has_buffer), 0);
        match &mut config.mapping {
            MappingConfig::Chunk { physical_zones, .. } => {
                *physical_zones = backed.min(*physical_zones);
                config.allocation.depth_weight = weight;
            }
            MappingConfig::Stripe { physical_zones } => {
                *physical_zones = backed.min(*physical_zones);
            }
            _ => {}
        }
        config.allocation.thin = true;
        prop_assume!(profile::check(&config).is_ok());
        refused.set(refused.get() + run(&config, &steps, &cuts)?);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
    assert!(refused.get() > 800, "{refused:?} were refused");
}
