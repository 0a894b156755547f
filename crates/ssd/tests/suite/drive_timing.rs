//! Times on the emulated drive of ConfZNS++ (SYSTOR'24), worked out by hand:
//! 4 planes on a channel each, 25 us of transfer, 60 us tR, 700 us tPROG,
//! 3.5 ms tBERS; zones of 22 x 4 blocks with 768 pages of 16 KiB.

use crate::drive_support::{ERASE, PAGE, READ, Rig, WRITE, confznspp, fill, reset, us};
use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{EraseExtent, EraseWhen, FillExtent, FinishConfig};

/// Pages of a zone.
const ZONE: u32 = 67_584;
/// Four pages on each plane, whose transfers overlap the programs.
const WRITE_256K: Nanos = us(25 + 4 * 700);
/// All 22 blocks of each plane.
const ERASE_ZONE: Nanos = us(77_000);

fn rig_with_reset(erase: EraseWhen, extent: EraseExtent) -> Rig {
    let mut config = confznspp();
    config.reset = reset(erase, extent);
    Rig::new(&config)
}

fn rig_with_fill(granularity_kib: u32) -> Rig {
    let mut config = confznspp();
    config.finish = fill(granularity_kib);
    Rig::new(&config)
}

#[test]
fn writes_end_with_their_slowest_page() {
    let mut rig = Rig::new(&confznspp());
    for (pages, time) in [
        (1, us(25 + 700)),
        (2, us(25 + 700)),
        (4, us(25 + 700)),
        (5, us(25 + 2 * 700)),
        (16, WRITE_256K),
    ] {
        let op = rig.write(0, pages * PAGE);
        assert_eq!(rig.time(op), time, "{pages} pages");
    }
    // A quarter of a page moves and programs as a whole one.
    let op = rig.write(0, 1);
    assert_eq!(rig.time(op), WRITE);
}

#[test]
fn an_append_takes_as_long_as_a_write_and_says_where_it_went() {
    let mut rig = Rig::new(&confznspp());
    for (pages, time, offset) in [(1, WRITE, 0), (16, WRITE_256K, 4)] {
        let done = rig.exec(rig.append(3, pages * PAGE));
        assert_eq!((done.status, done.latency()), (Status::SUCCESS, time));
        assert_eq!(done.result, rig.lba(3, offset).0);
    }
}

#[test]
fn reads_take_the_plane_and_then_the_channel() {
    let mut rig = Rig::new(&confznspp());
    rig.precondition(0..1);
    for (pages, time) in [
        (1, us(60 + 25)),
        (4, us(60 + 25)),
        // The second page of a plane is sensed while the first one moves.
        (5, us(2 * 60 + 25)),
        (16, us(4 * 60 + 25)),
    ] {
        assert_eq!(
            rig.time(rig.read(0, 8, pages * PAGE)),
            time,
            "{pages} pages"
        );
    }
    assert_eq!(rig.time(rig.read(0, 1, 2)), READ, "part of a page");
    assert_eq!(rig.time(rig.read(0, 3, 2)), READ, "parts of two pages");
}

#[test]
fn a_read_waits_for_the_program_before_it_on_its_plane_only() {
    let mut rig = Rig::new(&confznspp());
    rig.precondition(0..1);
    let write = rig.submit(rig.write(1, PAGE));
    let same = rig.submit(rig.read(0, 0, PAGE));
    let other = rig.submit(rig.read(0, PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(write).at, WRITE);
    assert_eq!(rig.wait(same).at, us(25 + 700 + 60 + 25));
    assert_eq!(rig.wait(other).at, READ);
}

#[test]
fn a_finish_is_a_series_of_device_writes() {
    for (granularity_kib, chunks, chunk) in [
        (16, ZONE - 1, WRITE),
        (32, (ZONE - 1).div_ceil(2), WRITE),
        (64, (ZONE - 1).div_ceil(4), WRITE),
        (256, (ZONE - 1).div_ceil(16), WRITE_256K),
    ] {
        let mut rig = rig_with_fill(granularity_kib);
        rig.write_pages(0, 1);
        let time = rig.time(rig.finish(0));
        assert_eq!(time.0, u64::from(chunks) * chunk.0, "{granularity_kib} KiB");
        assert_eq!(rig.drive.background_tasks(), 0);
        let filled = u64::from(ZONE - 1) * 16_384;
        assert_eq!(rig.drive.totals().fill_program_bytes, filled);
    }
}

#[test]
fn the_time_of_a_finish_is_that_of_what_is_unwritten() {
    let mut rig = rig_with_fill(256);
    // Half, all but 17 pages, all but one, and nothing left.
    for (zone, pages, time) in [
        (0, ZONE / 2, 2_112 * WRITE_256K.0),
        (1, ZONE - 17, WRITE_256K.0 + WRITE.0),
        (2, ZONE - 1, WRITE.0),
        (3, ZONE, 0),
    ] {
        rig.write_pages(zone, pages);
        assert_eq!(rig.time(rig.finish(zone)).0, time, "{pages} pages");
    }
}

/// The emulator of the paper charges a page of a zone that is not written at all.
#[test]
fn finishing_an_empty_zone_fills_all_of_it() {
    let mut rig = rig_with_fill(256);
    assert_eq!(rig.time(rig.finish(0)).0, 4_224 * WRITE_256K.0);
    assert_eq!(
        rig.drive.totals().fill_program_bytes,
        u64::from(ZONE) * 16_384
    );
}

#[test]
fn a_pause_comes_between_device_writes() {
    let time = |pause_ns: Nanos| {
        let mut config = confznspp();
        config.finish = FinishConfig::Fill {
            granularity_bytes: 256 << 10,
            pause_ns,
            yield_ns: None,
            buffered: false,
            takes_core: false,
            extent: FillExtent::Zone,
        };
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 1);
        rig.time(rig.finish(0))
    };
    let without = time(Nanos::ZERO);
    assert_eq!(time(us(50)).0 - without.0, 4_223 * us(50).0);
    assert_eq!(time(Nanos(1)).0 - without.0, 4_223);
}

#[test]
fn a_finish_in_metadata_takes_no_time_and_no_flash() {
    let mut config = confznspp();
    config.finish = FinishConfig::Metadata;
    let mut rig = Rig::new(&config);
    rig.write_pages(0, 1);
    let busy = rig.busy();
    assert_eq!(rig.time(rig.finish(0)), Nanos::ZERO);
    assert_eq!(rig.busy(), busy);
    assert_eq!(rig.drive.totals().dlwa(), Some(1.0));
}

#[test]
fn a_full_synchronous_reset_takes_77_ms_at_any_occupancy() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Full);
    rig.write_pages(0, 1);
    rig.write_pages(1, ZONE / 2);
    rig.precondition(2..3);
    for zone in 0..3 {
        assert_eq!(rig.time(rig.reset(zone)), ERASE_ZONE);
    }
    assert_eq!(rig.drive.totals().erased_blocks, 3 * 88);
}

#[test]
fn a_partial_synchronous_reset_erases_the_blocks_that_hold_something() {
    for (pages, time, blocks) in [
        (1, ERASE, 1),
        (4, ERASE, 4),
        (5, ERASE, 4),
        (4 * 768, ERASE, 4),
        (4 * 768 + 1, us(7_000), 5),
        (ZONE / 2, us(38_500), 44),
        (ZONE, ERASE_ZONE, 88),
    ] {
        let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Partial);
        rig.write_pages(0, pages);
        assert_eq!(rig.time(rig.reset(0)), time, "{pages} pages");
        assert_eq!(rig.drive.totals().erased_blocks, blocks);
    }
}

#[test]
fn resetting_an_empty_zone_costs_nothing() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Partial);
    assert_eq!(rig.time(rig.reset(0)), Nanos::ZERO);
    // Opened, but not written: the state changes, the flash does not.
    rig.time(rig.send(0, ZoneSendAction::OPEN));
    assert_eq!(rig.time(rig.reset(0)), Nanos::ZERO);
    assert_eq!(rig.drive.totals().erased_blocks, 0);
}

/// What a finish filled has to be erased as well.
#[test]
fn a_finished_zone_is_erased_as_a_full_one() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Partial);
    rig.write_pages(0, 1);
    rig.time(rig.finish(0));
    assert_eq!(rig.time(rig.reset(0)), ERASE_ZONE);
}

#[test]
fn a_reset_delays_io_on_its_planes() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Partial);
    rig.precondition(0..2);
    let start = rig.now;
    let reset = rig.submit(rig.reset(0));
    let write = rig.submit(rig.write(2, PAGE));
    let read = rig.submit(rig.read(1, PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(reset).at, start + ERASE_ZONE);
    // The page of the write is in its register by the time the erasures end.
    assert_eq!(rig.wait(write).at, start + us(77_000 + 700));
    assert_eq!(rig.wait(read).at, start + us(77_000 + 60 + 25));
}

#[test]
fn a_reset_of_one_page_delays_one_plane() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Partial);
    rig.write_pages(0, 1);
    let start = rig.now;
    rig.submit(rig.reset(0));
    let first = rig.submit(rig.write(1, PAGE));
    let second = rig.submit(rig.write(1, PAGE));
    rig.settle();
    assert_eq!(rig.wait(first).at, start + us(3_500 + 700));
    assert_eq!(rig.wait(second).at, start + WRITE);
}

#[test]
fn the_first_write_after_an_asynchronous_reset_pays_for_the_zone() {
    let mut rig = rig_with_reset(EraseWhen::FirstZoneWrite, EraseExtent::Full);
    rig.precondition(0..1);
    assert_eq!(rig.time(rig.reset(0)), Nanos::ZERO);
    assert_eq!(rig.drive.totals().erased_blocks, 0);
    assert_eq!(rig.drive.flash().stale_blocks(0), 88);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), us(77_000 + 700));
    assert_eq!(rig.drive.totals().erased_blocks, 88);
    for _ in 0..8 {
        let op = rig.write(0, PAGE);
        assert_eq!(rig.time(op), WRITE);
    }
}

#[test]
fn the_first_write_to_each_block_pays_for_the_block() {
    let mut rig = rig_with_reset(EraseWhen::FirstBlockWrite, EraseExtent::Full);
    rig.precondition(0..1);
    assert_eq!(rig.time(rig.reset(0)), Nanos::ZERO);
    for block in 0..4 {
        let op = rig.write(0, PAGE);
        assert_eq!(rig.time(op), us(3_500 + 700), "block {block}");
    }
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), WRITE);
    rig.write_pages(0, 4 * 768 - 5);
    assert_eq!(rig.drive.totals().erased_blocks, 4);
    // Two pages in the next row: two blocks, side by side.
    let op = rig.write(0, 2 * PAGE);
    assert_eq!(rig.time(op), us(3_500 + 700));
    assert_eq!(rig.drive.totals().erased_blocks, 6);
}

/// Only what was written before the reset holds old data.
#[test]
fn a_partial_erasure_at_the_write_leaves_clean_blocks_alone() {
    for erase in [EraseWhen::FirstZoneWrite, EraseWhen::FirstBlockWrite] {
        let mut rig = rig_with_reset(erase, EraseExtent::Partial);
        rig.write_pages(0, 2);
        rig.time(rig.reset(0));
        let pays = us(3_500 + 700);
        let times = match erase {
            EraseWhen::FirstBlockWrite => [pays, pays, WRITE],
            _ => [pays, WRITE, WRITE],
        };
        for time in times {
            let op = rig.write(0, PAGE);
            assert_eq!(rig.time(op), time, "{erase:?}");
        }
        assert_eq!(rig.drive.totals().erased_blocks, 2);
    }
}

#[test]
fn a_background_erasure_completes_at_once_and_delays_what_comes_soon() {
    let mut rig = rig_with_reset(EraseWhen::Background, EraseExtent::Full);
    rig.precondition(0..1);
    let start = rig.now;
    assert_eq!(rig.time(rig.reset(0)), Nanos::ZERO);
    assert_eq!(rig.drive.background_tasks(), 1);
    rig.run_to(start + us(7_000));
    let write = rig.submit(rig.write(0, PAGE));
    rig.settle();
    assert_eq!(rig.wait(write).at, start + us(77_000 + 700));
}

#[test]
fn a_background_erasure_costs_nothing_to_those_who_come_later() {
    let mut rig = rig_with_reset(EraseWhen::Background, EraseExtent::Full);
    rig.precondition(0..1);
    rig.time(rig.reset(0));
    rig.run_for(ERASE_ZONE);
    assert_eq!(rig.drive.background_tasks(), 0);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), WRITE);
}

#[test]
fn after_a_synchronous_reset_writes_take_as_long_as_ever() {
    let mut rig = rig_with_reset(EraseWhen::Synchronous, EraseExtent::Full);
    for _ in 0..2 {
        for _ in 0..8 {
            let op = rig.write(0, PAGE);
            assert_eq!(rig.time(op), WRITE);
        }
        rig.time(rig.finish(0));
        rig.time(rig.reset(0));
    }
}
