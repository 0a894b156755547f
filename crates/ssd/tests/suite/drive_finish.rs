//! Zone finish beside host I/O, and what can happen to it on the way.

use crate::drive_support::{ERASE, Load, PAGE, Rig, WRITE, fill, narrow, reset, small, us};
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig};

const PAGE_BYTES: u64 = 16_384;
const HOLD: Nanos = us(10_000);

/// Finishes page by page, and yields to the host for [`HOLD`].
fn dynamic() -> DriveConfig {
    let mut config = small();
    config.finish = FinishConfig::Fill {
        granularity_bytes: 16 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: Some(HOLD),
        buffered: false,
        takes_core: false,
        extent: FillExtent::Zone,
    };
    config
}

/// Two reads of a full zone on planes that the first pages of a fill leave alone.
fn reads(rig: &Rig, zone: u32) -> Vec<Op> {
    vec![
        rig.read(zone, 2 * PAGE, PAGE),
        rig.read(zone, 3 * PAGE, PAGE),
    ]
}

fn filled_pages(rig: &Rig) -> u64 {
    rig.drive.totals().fill_program_bytes / PAGE_BYTES
}

#[test]
fn a_dynamic_finish_of_an_idle_drive_goes_at_full_speed() {
    let mut rig = Rig::new(&dynamic());
    rig.write_pages(0, 1);
    assert_eq!(rig.time(rig.finish(0)).0, 31 * WRITE.0);
}

#[test]
fn a_dynamic_finish_waits_for_the_host_until_its_hold_expires() {
    let mut rig = Rig::new(&dynamic());
    rig.precondition(1..2);
    let ops = reads(&rig, 1);
    let mut load = Load::start(&mut rig, ops, us(40));
    let start = rig.now;
    let finish = rig.submit(rig.finish(0));

    // One page per hold; the next hold begins when the page is programmed.
    let mut at = start;
    for page in 0..3 {
        at += HOLD;
        load.run_to(&mut rig, at.saturating_sub(Nanos(1)));
        assert_eq!(filled_pages(&rig), page, "nothing before the hold is over");
        load.run_to(&mut rig, at);
        assert_eq!(filled_pages(&rig), page + 1);
        // Pages 0 and 1 are on planes without reads, page 2 waits for one.
        if page < 2 {
            at += WRITE;
        }
    }

    // When the host stops, the rest goes on at once.
    drop(load);
    while rig.drive.in_flight() > 1 {
        assert!(rig.next());
    }
    let idle = rig.now;
    let end = rig.wait(finish).at;
    assert!(end.saturating_sub(idle).0 <= 30 * WRITE.0);
    assert_eq!(filled_pages(&rig), 32);
}

#[test]
fn a_dynamic_finish_goes_on_when_the_last_command_of_the_host_is_done() {
    let mut rig = Rig::new(&dynamic());
    rig.precondition(1..2);
    rig.submit(rig.read(1, 2 * PAGE, PAGE));
    rig.run_for(us(40));
    rig.submit(rig.read(1, 3 * PAGE, PAGE));
    let start = rig.now;
    let finish = rig.submit(rig.finish(0));
    rig.run_to(start + us(84));
    assert_eq!(filled_pages(&rig), 0);
    rig.settle();
    assert_eq!(rig.wait(finish).at, start + Nanos(85_000 + 32 * WRITE.0));
}

#[test]
fn a_dynamic_finish_waits_for_writes_too() {
    let mut rig = Rig::new(&dynamic());
    let write = rig.submit(rig.write(1, 16 * PAGE));
    let finish = rig.submit(rig.finish(0));
    rig.settle();
    let written = rig.wait(write).at;
    assert_eq!(rig.wait(finish).at.0, written.0 + 32 * WRITE.0);
}

/// Dies that share nothing with those of the zone are none of its business.
#[test]
fn a_dynamic_finish_looks_at_its_own_dies_only() {
    let mut config = narrow();
    config.finish = dynamic().finish;
    let mut rig = Rig::new(&config);
    rig.precondition(1..2);
    let ops = reads(&rig, 1);
    let mut load = Load::start(&mut rig, ops, us(40));
    let finish = rig.submit(rig.finish(0));
    let limit = rig.now + us(1_000_000);
    let done = load.run_until_done(&mut rig, finish, limit);
    assert_eq!(done.latency().0, 32 * WRITE.0);
}

#[test]
fn the_end_of_host_io_elsewhere_wakes_nobody() {
    let mut config = narrow();
    config.finish = dynamic().finish;
    let mut rig = Rig::new(&config);
    rig.precondition(1..2);
    rig.precondition(16..17);
    // Zone 16 is on the die of zone 0, and being read all the time.
    let ops = reads(&rig, 16);
    let mut load = Load::start(&mut rig, ops, us(40));
    let start = rig.now;
    rig.submit(rig.finish(0));
    let elsewhere = rig.submit(rig.read(1, 0, PAGE));
    load.run_to(&mut rig, start + us(9_999));
    assert!(rig.done[elsewhere].is_some());
    assert_eq!(filled_pages(&rig), 0);
    load.run_to(&mut rig, start + HOLD);
    assert_eq!(filled_pages(&rig), 1);
}

/// All zones that a read touches are read: whoever finishes there yields.
#[test]
fn a_read_across_zones_counts_on_the_dies_of_both() {
    let mut config = narrow();
    config.finish = dynamic().finish;
    config.zones.size_lbas = config.zones.capacity_lbas;
    let mut rig = Rig::new(&config);
    rig.precondition(0..2);
    // Zone 17 shares the die of zone 1.
    let start = rig.now;
    let read = rig.submit(rig.read(0, 31 * PAGE, 8 * PAGE));
    let finish = rig.submit(rig.finish(17));
    rig.run_to(start + us(1));
    assert_eq!(
        filled_pages(&rig),
        0,
        "the read is in flight on the die of zone 1"
    );
    rig.settle();
    let read = rig.wait(read).at;
    assert_eq!(rig.wait(finish).at.0, read.0 + 32 * WRITE.0);
}

/// A fill that was cancelled while it yielded leaves nothing behind.
#[test]
fn a_finish_that_is_cancelled_while_it_yields_is_forgotten() {
    let mut config = dynamic();
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Partial);
    let mut rig = Rig::new(&config);
    rig.write_pages(0, 1);
    let write = rig.submit(rig.write(1, 16 * PAGE));
    let cancelled = rig.submit(rig.finish(0));
    rig.submit(rig.reset(0));
    assert_eq!(rig.drive.background_tasks(), 0);
    // This one may get the same slot.
    let finish = rig.submit(rig.finish(2));
    rig.settle();
    let idle = rig.wait(write).at;
    assert_eq!(rig.wait(cancelled).status, Status::SUCCESS);
    assert_eq!(rig.wait(finish).at.0, idle.0 + 32 * WRITE.0);
    assert_eq!(filled_pages(&rig), 32);
}

#[test]
fn a_reset_ends_a_finish_that_is_under_way() {
    let mut config = small();
    config.finish = fill(16);
    let mut rig = Rig::new(&config);
    rig.write_pages(0, 1);
    let start = rig.now;
    let finish = rig.submit(rig.finish(0));
    rig.run_to(start + us(1_000));
    let reset = rig.submit(rig.reset(0));
    rig.settle();
    // Its second device write is the last: pages 1 and 2 on planes 1 and 2.
    assert_eq!(rig.wait(finish).at.0, start.0 + 2 * WRITE.0);
    assert_eq!(filled_pages(&rig), 2);
    // The erasure of plane 2 waits for it.
    assert_eq!(rig.wait(reset).at.0, start.0 + 2 * WRITE.0 + ERASE.0);
    assert_eq!(rig.drive.totals().erased_blocks, 3);
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::EMPTY);
    assert_eq!(rig.drive.flash().zone_state(0).0, 0);
}

/// Finish, reset, finish, reset in a row: the first fill still has a device
/// write on the flash when the second reset comes, which is about the second.
#[test]
fn each_reset_ends_the_finish_before_it() {
    let mut config = small();
    config.finish = fill(64);
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Partial);
    let mut rig = Rig::new(&config);
    for _ in 0..2 {
        rig.submit(rig.write(0, PAGE));
        rig.submit(rig.finish(0));
        rig.submit(rig.reset(0));
    }
    rig.settle();
    assert_eq!(filled_pages(&rig), 2 * 4, "one device write each");
    assert_eq!(
        rig.drive.flash().zone_state(0).0,
        0,
        "an empty zone holds nothing"
    );
    // What the host writes next goes to the start of the zone, in normal time.
    let op = rig.write(0, PAGE);
    assert!(rig.time(op) > WRITE, "after erasures");
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), WRITE);
    assert_eq!(rig.drive.flash().zone_state(0).0, 2);
}

#[test]
fn finish_of_all_zones_ends_when_the_last_one_is_full() {
    let mut config = small();
    config.finish = fill(16);
    let mut rig = Rig::new(&config);
    for (zone, pages) in [(0, 1), (2, 30), (5, 17)] {
        rig.write_pages(zone, pages);
    }
    let before = rig.drive.totals();
    let op = Op::ZoneSend {
        slba: rig.lba(0, 0),
        action: ZoneSendAction::FINISH,
        select_all: true,
    };
    rig.time(op);
    let totals = rig.drive.totals();
    assert_eq!(totals.finishes - before.finishes, 3);
    assert_eq!(filled_pages(&rig), 31 + 2 + 15);
    for zone in [0, 2, 5] {
        assert_eq!(rig.drive.zones().state(ZoneId(zone)), ZoneState::FULL);
        assert_eq!(rig.drive.flash().zone_state(zone).0, 32);
    }
    assert_eq!(rig.drive.zones().state(ZoneId(1)), ZoneState::EMPTY);
}

/// A page that the host began is whole already, and the last page of a zone may
/// be used in part.
#[test]
fn parts_of_pages_are_not_filled_twice() {
    let mut config = small();
    config.zones.capacity_lbas -= 1;
    config.finish = fill(64);
    let mut rig = Rig::new(&config);
    let op = rig.write(0, PAGE + 1);
    rig.time(op);
    rig.time(rig.finish(0));
    assert_eq!(filled_pages(&rig), 30);
    let totals = rig.drive.totals();
    assert_eq!(totals.host_program_bytes, 2 * PAGE_BYTES);
    assert_eq!(totals.host_write_bytes, 5 * 4_096);
    assert_eq!(totals.dlwa(), Some((32.0 * 16_384.0) / (5.0 * 4_096.0)));
}
