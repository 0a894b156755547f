//! Zone reset: preemption, Select All, and resets that meet other work.

use crate::drive_support::{ERASE, Load, PAGE, READ, Rig, WRITE, confznspp, reset, small, us};
use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{
    ChannelArbitration, DiePolicy, DriveConfig, EraseExtent, EraseWhen, PlaneMode,
};

const ERASE_ZONE: Nanos = us(77_000);

fn preemptive(erase: EraseWhen, hold: Nanos) -> DriveConfig {
    let mut config = confznspp();
    config.reset = reset(erase, EraseExtent::Full);
    config.reset.preempt_ns = Some(hold);
    config
}

fn reset_all() -> Op {
    Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: true,
    }
}

/// Reads of full zone 1, `each` on each of its four planes.
fn reads(rig: &Rig, each: u32) -> Vec<Op> {
    let pages = 0..4 * each;
    pages.map(|page| rig.read(1, page * PAGE, PAGE)).collect()
}

#[test]
fn a_preemptive_reset_of_an_idle_drive_takes_no_longer() {
    for erase in [EraseWhen::Synchronous, EraseWhen::Background] {
        let mut rig = Rig::new(&preemptive(erase, us(100_000)));
        rig.precondition(0..1);
        let start = rig.now;
        let reset = rig.submit(rig.reset(0));
        rig.settle();
        assert_eq!(rig.now, start + ERASE_ZONE);
        let expected = match erase {
            EraseWhen::Synchronous => ERASE_ZONE,
            _ => Nanos::ZERO,
        };
        assert_eq!(rig.wait(reset).latency(), expected);
        assert_eq!(rig.drive.totals().erased_blocks, 88);
        let freed = rig.drive.freed();
        assert_eq!((freed.zones, freed.longest), (1, ERASE_ZONE));
    }
}

#[test]
fn the_steps_of_a_preemptive_reset_are_single_blocks() {
    let mut rig = Rig::new(&preemptive(EraseWhen::Synchronous, us(100_000)));
    rig.precondition(0..1);
    let start = rig.now;
    rig.submit(rig.reset(0));
    for step in 0..22 {
        // One block on each plane is under way, and no more.
        rig.run_to(start + Nanos(step * ERASE.0));
        assert_eq!(rig.drive.totals().erased_blocks, 4 * (step + 1));
        rig.run_to(start + Nanos((step + 1) * ERASE.0 - 1));
        assert_eq!(rig.drive.totals().erased_blocks, 4 * (step + 1));
    }
}

#[test]
fn reads_wait_for_one_step_instead_of_the_whole_reset() {
    let slowest = |config: &DriveConfig| {
        let mut rig = Rig::new(config);
        rig.precondition(0..2);
        let reset = rig.submit(rig.reset(0));
        let ops = reads(&rig, 1);
        let mut load = Load::start(&mut rig, ops, us(300));
        let limit = rig.now + us(200_000);
        let reset = load.run_until_done(&mut rig, reset, limit);
        // The reads that waited for its last erasures.
        let end = rig.now + us(1_000);
        load.run_to(&mut rig, end);
        (load.slowest(), reset.latency())
    };
    let mut config = preemptive(EraseWhen::Synchronous, us(1_000_000));
    let (read, reset) = slowest(&config);
    assert!(read <= ERASE + READ, "a read waited {read}");
    // A step, a read, a step, and so on: the reset takes a little longer.
    assert!(
        reset > ERASE_ZONE && reset.0 < ERASE_ZONE.0 + 23 * READ.0,
        "{reset}"
    );

    config.reset.preempt_ns = None;
    let (read, reset) = slowest(&config);
    assert!(
        read.0 > ERASE_ZONE.0 - us(1_000).0,
        "a read waited only {read}"
    );
    assert_eq!(reset, ERASE_ZONE);
}

/// A host that never lets a plane idle holds each step up for the hold, not for ever.
#[test]
fn a_preemptive_reset_ends_under_saturating_load() {
    for (policy, arbitration) in [
        (DiePolicy::Fifo, ChannelArbitration::Arrival),
        (DiePolicy::Fifo, ChannelArbitration::Ready),
        (DiePolicy::Weighted { reads: 4 }, ChannelArbitration::Ready),
    ] {
        let hold = us(2_000);
        let mut config = preemptive(EraseWhen::Synchronous, hold);
        config.media.policy = policy;
        config.media.arbitration = arbitration;
        let mut rig = Rig::new(&config);
        rig.precondition(0..2);
        let ops = reads(&rig, 4);
        let mut load = Load::start(&mut rig, ops, us(3));
        let reset = rig.submit(rig.reset(0));
        let limit = rig.now + us(1_000_000);
        let latency = load.run_until_done(&mut rig, reset, limit).latency();
        // A step waits for its hold, for at most the reads in the line, and for itself.
        let step = hold.0 + 5 * READ.0 + ERASE.0;
        assert!(
            latency.0 >= 22 * (hold.0 + ERASE.0),
            "{policy:?}: {latency}"
        );
        assert!(latency.0 <= 22 * step, "{policy:?}: {latency}");
        assert!(load.slowest().0 <= ERASE.0 + 5 * READ.0, "{policy:?}");
    }
}

#[test]
fn a_long_hold_lets_the_host_have_the_planes() {
    let mut rig = Rig::new(&preemptive(EraseWhen::Background, us(1_000_000)));
    rig.precondition(0..2);
    let ops = reads(&rig, 4);
    let mut load = Load::start(&mut rig, ops, us(3));
    let start = rig.now;
    rig.submit(rig.reset(0));
    load.run_to(&mut rig, start + us(999_999));
    assert_eq!(rig.drive.totals().erased_blocks, 0);
    load.run_to(&mut rig, start + us(1_000_000));
    assert_eq!(rig.drive.totals().erased_blocks, 4);
}

#[test]
fn a_write_to_the_zone_hurries_the_rest_and_comes_after_it() {
    for erase in [EraseWhen::Synchronous, EraseWhen::Background] {
        let mut rig = Rig::new(&preemptive(erase, us(1_000_000)));
        rig.precondition(0..2);
        let ops = reads(&rig, 4);
        let mut load = Load::start(&mut rig, ops, us(3));
        rig.submit(rig.reset(0));
        let soon = rig.now + us(5_000);
        load.run_to(&mut rig, soon);
        assert_eq!(rig.drive.totals().erased_blocks, 0);

        let write = rig.submit(rig.write(0, PAGE));
        assert_eq!(rig.drive.totals().erased_blocks, 88, "all at once");
        let limit = rig.now + us(100_000);
        let latency = load.run_until_done(&mut rig, write, limit).latency();
        assert!(latency.0 >= ERASE_ZONE.0 + us(700).0, "{latency}");
        assert!(
            latency.0 <= ERASE_ZONE.0 + us(700).0 + 5 * READ.0,
            "{latency}"
        );
        assert_eq!(rig.drive.background_tasks(), 0);
    }
}

#[test]
fn a_write_in_the_middle_of_a_step_comes_after_the_rest() {
    let mut rig = Rig::new(&preemptive(EraseWhen::Synchronous, us(1_000_000)));
    rig.precondition(0..1);
    let start = rig.now;
    let reset = rig.submit(rig.reset(0));
    rig.run_to(start + us(10_000));
    let write = rig.submit(rig.write(0, PAGE));
    rig.settle();
    assert_eq!(rig.wait(reset).at, start + ERASE_ZONE);
    assert_eq!(rig.wait(write).at, start + ERASE_ZONE + us(700));
    assert_eq!(rig.drive.totals().erased_blocks, 88);
    let counts = rig.drive.flash().erase_counts();
    assert!(counts.iter().all(|&count| count <= 1), "no block twice");
}

/// A multi-plane erase is one operation for the planes of a die.
#[test]
fn a_multi_plane_die_erases_a_row_at_once() {
    for (planes, rows) in [
        (PlaneMode::Independent, 1),
        (PlaneMode::MultiPlane, 1),
        (PlaneMode::Single, 2),
    ] {
        let mut config = small();
        config.geometry.planes = 2;
        config.zones.stripe = zonelab_ssd::config::StripeOrder::PlaneFirst;
        config.media.planes = planes;
        let mut rig = Rig::new(&config);
        // 32 pages are one row of 8 blocks on the 8 planes.
        rig.precondition(0..1);
        assert_eq!(rig.time(rig.reset(0)).0, rows * ERASE.0, "{planes:?}");
        assert_eq!(rig.drive.totals().erased_blocks, 8);
    }
}

#[test]
fn select_all_charges_every_zone() {
    let mut rig = Rig::new(&small());
    rig.precondition(0..3);
    rig.write_pages(4, 1);
    let start = rig.now;
    let reset = rig.submit(reset_all());
    rig.settle();
    // Three full zones of two rows, and one block.
    let totals = rig.drive.totals();
    assert_eq!(totals.erased_blocks, 3 * 8 + 1);
    assert_eq!(totals.resets, 4);
    assert_eq!(rig.wait(reset).at.0, start.0 + (3 * 2 + 1) * ERASE.0);
    for zone in 0..6 {
        assert_eq!(rig.drive.zones().state(ZoneId(zone)), ZoneState::EMPTY);
    }
}

#[test]
fn resets_of_two_zones_share_the_planes() {
    for preempt_ns in [None, Some(us(50_000))] {
        let mut config = small();
        config.reset.preempt_ns = preempt_ns;
        let mut rig = Rig::new(&config);
        rig.precondition(0..2);
        let start = rig.now;
        for zone in 0..2 {
            rig.submit(rig.reset(zone));
        }
        rig.settle();
        assert_eq!(rig.now.0, start.0 + 4 * ERASE.0);
        assert_eq!(rig.drive.totals().erased_blocks, 16);
    }
}

/// A zone that is reset again while its blocks are still erased in the
/// background has no old data left, so nothing more is to be done for it.
#[test]
fn a_reset_during_a_background_erasure_erases_nothing_twice() {
    for preempt_ns in [None, Some(us(50_000))] {
        let mut config = small();
        config.reset = reset(EraseWhen::Background, EraseExtent::Partial);
        config.reset.preempt_ns = preempt_ns;
        let mut rig = Rig::new(&config);
        rig.precondition(0..1);
        rig.submit(rig.reset(0));
        rig.run_for(us(1_000));
        rig.submit(rig.send(0, ZoneSendAction::OPEN));
        rig.submit(rig.reset(0));
        rig.settle();
        assert_eq!(rig.drive.totals().erased_blocks, 8);
        let op = rig.write(0, PAGE);
        assert_eq!(rig.time(op), WRITE);
    }
}

/// The model is as fast with many zones as with few: a reset does not look at
/// the work of all others.
fn reset_many(zones: u32, preempt_ns: Option<Nanos>) {
    let mut config = small();
    config.zones.count = zones;
    config.geometry.blocks_per_plane = 2 * zones;
    config.reset = reset(EraseWhen::Background, EraseExtent::Partial);
    config.reset.preempt_ns = preempt_ns;
    let mut rig = Rig::new(&config);
    rig.precondition(0..zones);
    rig.submit(reset_all());
    rig.settle();
    assert_eq!(rig.drive.totals().erased_blocks, u64::from(zones) * 8);
    assert_eq!(rig.now.0, u64::from(zones) * 2 * ERASE.0);
}

#[test]
fn resetting_many_zones_takes_time_proportional_to_them() {
    reset_many(20_000, None);
}

#[test]
fn resetting_many_zones_preemptively_takes_time_proportional_to_them() {
    reset_many(2_000, Some(us(1_000_000)));
}
