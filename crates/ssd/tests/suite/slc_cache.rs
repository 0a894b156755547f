//! The SLC cache: what it takes and holds, folding, and what becomes of writes when it is full.

mod random;

use crate::drive_support::{PAGE, READ, Rig, WRITE, small, us};
use proptest::prelude::*;
use zonelab_device::{Buf, Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::account::Cause;
use zonelab_ssd::config::{
    BufferRelease, ChannelArbitration, DataStore, DriveConfig, EraseWhen, FinishConfig,
    MappingConfig, Placement, SlcCacheConfig, WriteBufferConfig, ZrwaConfig,
};
use zonelab_ssd::{DriveModel, FaultTarget, profile, snapshot};

const PAGE_BYTES: u64 = 16_384;
/// Program and transfer of a page of the cache.
const PUT: Nanos = Nanos::from_us(225);
/// Read of a page of the cache, and transfer.
const GET: Nanos = Nanos::from_us(50);

/// `small` with a buffer of 8 pages and a cache of `rows` rows, each of 4 blocks with 4 pages.
fn cached(rows: u32) -> DriveConfig {
    let mut config = small();
    config.geometry.pages_per_block = 16;
    config.zones.capacity_lbas = 128 * u64::from(PAGE);
    config.zones.size_lbas = 128 * u64::from(PAGE);
    config.geometry.blocks_per_plane = 12 + rows;
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 8 * PAGE_BYTES,
        power_loss_protection: false,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::LeastWork,
    });
    config.finish = FinishConfig::AtFold;
    config.slc_cache = Some(SlcCacheConfig {
        size_bytes: u64::from(rows) * 16 * PAGE_BYTES,
        bits_per_cell: 4,
        page_bytes: 16_384,
        read_ns: us(25),
        program_ns: us(200),
        erase_ns: us(1_500),
        fold_after_idle_ns: None,
        fold_above_ppm: 1_000_000,
        fold_bytes: 4 * PAGE_BYTES,
    });
    config
}

/// The same that folds as soon as the host has been idle for a millisecond.
fn folding(rows: u32) -> DriveConfig {
    let mut config = cached(rows);
    if let Some(cache) = &mut config.slc_cache {
        cache.fold_after_idle_ns = Some(us(1_000));
    }
    config
}

/// Writes pages of a zone one after the other. Returns how long that took.
fn time_of_pages(rig: &mut Rig, zone: u32, pages: u32) -> Nanos {
    let begun = rig.now;
    for _ in 0..pages {
        let op = rig.write(zone, PAGE);
        rig.time(op);
    }
    rig.now - begun
}

fn run_out(rig: &mut Rig) {
    while rig.next() {}
    rig.drive.assert_invariants();
}

fn page_read(rig: &mut Rig, zone: u32, page: u32) -> Nanos {
    let op = rig.read(zone, page * PAGE, PAGE);
    rig.time(op)
}

#[test]
fn what_is_written_is_programmed_and_read_as_slc() {
    let mut rig = Rig::new(&cached(4));
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), Nanos::ZERO, "it is in the buffer");
    rig.run_to(PUT - Nanos(1));
    assert_eq!(rig.drive.buffered_bytes(), PAGE_BYTES);
    rig.run_to(PUT);
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.flash().cached_bytes(), PAGE_BYTES);
    assert_eq!(
        rig.drive.flash().zone_state(0).0,
        0,
        "nothing is on its blocks"
    );
    assert_eq!(page_read(&mut rig, 0, 0), GET);
    assert_eq!(rig.drive.next_event(), None, "nothing says when to fold");
}

#[test]
fn idle_time_folds_all_whole_units() {
    let mut rig = Rig::new(&folding(4));
    time_of_pages(&mut rig, 0, 8);
    let op = rig.write(0, 1);
    rig.time(op);
    let idle_since = rig.now;
    rig.settle();
    assert_eq!(rig.drive.flash().cached_bytes(), 8 * PAGE_BYTES);
    rig.run_to(idle_since + us(1_000) - Nanos(1));
    assert_eq!(rig.drive.background_tasks(), 0, "the host may come back");
    run_out(&mut rig);
    assert_eq!(rig.drive.flash().cached_bytes(), 0);
    assert_eq!(
        page_read(&mut rig, 0, 3),
        READ,
        "it is on the blocks of the zone"
    );
    let totals = rig.drive.totals();
    assert_eq!(totals.host_program_bytes, 8 * PAGE_BYTES);
    assert_eq!(totals.fold_program_bytes, 8 * PAGE_BYTES);
}

/// Written once to the cache and once to the zone, and every row of the cache is erased.
#[test]
fn amplification_and_wear_count_folds() {
    let mut rig = Rig::new(&folding(4));
    time_of_pages(&mut rig, 1, 128);
    run_out(&mut rig);
    let totals = rig.drive.totals();
    assert_eq!(totals.dlwa(), Some(2.0));
    // 8 rows of 16 pages, with a block on each of 4 planes.
    assert_eq!(totals.erased_blocks, 32);
    let wear: Vec<u32> = rig.drive.flash().erase_counts();
    let of_cache = |block: &usize| rig.drive.flash().is_of_cache(*block);
    assert!((0..wear.len()).all(|block| wear[block] == 2 * u32::from(of_cache(&block))));
    let busy = rig.busy().1[Cause::Fold as usize];
    assert_eq!(busy, (128 * (25 + 700) + 32 * 1_500) * 1_000);
    assert_eq!(rig.busy().1[Cause::HostWrite as usize], 128 * 200_000);
}

/// Before the cache is full, a page costs a die a program of SLC; behind that also a read of
/// it, a program of the zone, and its part of an erasure. Idle time brings the first back.
#[test]
fn writes_fall_off_a_cliff_when_the_cache_is_full() {
    let mut rig = Rig::new(&folding(4));
    let dies = 4;
    let per_page = |took: Nanos, pages: u64| took.0 / pages;
    for _ in 0..2 {
        let took = per_page(time_of_pages(&mut rig, 0, 40), 40);
        let alone = 200_000 / dies;
        assert!(
            (alone * 3 / 4..alone * 5 / 4).contains(&took),
            "{took} ns for a page"
        );
        // What is left of the cache, and of the buffer.
        time_of_pages(&mut rig, 0, 40);
        let begun = rig.now;
        time_of_pages(&mut rig, 0, 48);
        time_of_pages(&mut rig, 1, 112);
        let took = per_page(rig.now - begun, 160);
        let folding = (200 + 25 + 700 + 1_500 / 4) * 1_000 / dies;
        assert!(
            (folding * 9 / 10..folding * 5 / 4).contains(&took),
            "{took} ns for a page"
        );
        run_out(&mut rig);
        assert_eq!(rig.drive.flash().cached_bytes(), 0);
        for zone in 0..2 {
            let op = rig.reset(zone);
            rig.exec(op);
        }
        rig.settle();
    }
}

/// A share of the cache that is in use is folded beside the host.
#[test]
fn folding_begins_above_a_share() {
    let mut config = cached(4);
    if let Some(cache) = &mut config.slc_cache {
        cache.fold_above_ppm = 500_000;
    }
    let mut rig = Rig::new(&config);
    time_of_pages(&mut rig, 0, 32);
    run_out(&mut rig);
    assert_eq!(rig.drive.flash().cached_bytes(), 32 * PAGE_BYTES);
    time_of_pages(&mut rig, 0, 20);
    run_out(&mut rig);
    assert_eq!(rig.drive.flash().cached_bytes(), 32 * PAGE_BYTES);
    assert_eq!(rig.drive.totals().fold_program_bytes, 20 * PAGE_BYTES);
}

/// However much was written: nobody waits for the rest of the zone, which is programmed when
/// the host is idle.
#[test]
fn a_finish_takes_as_long_at_any_occupancy() {
    for pages in [0, 1, 64, 127] {
        let mut rig = Rig::new(&folding(4));
        time_of_pages(&mut rig, 0, pages);
        rig.settle();
        let op = rig.finish(0);
        assert_eq!(rig.time(op), Nanos::ZERO, "{pages} pages are in the cache");
        run_out(&mut rig);
        assert_eq!(
            rig.drive.flash().zone_state(0).0,
            128,
            "all of it is programmed"
        );
        let totals = rig.drive.totals();
        assert_eq!(
            totals.fill_program_bytes,
            u64::from(128 - pages) * PAGE_BYTES
        );
        assert_eq!(totals.fold_program_bytes, u64::from(pages) * PAGE_BYTES);
    }
}

/// A finish that comes before the buffer is empty waits for that, unless the buffer outlives a
/// loss of power as the cache does.
#[test]
fn a_finish_waits_for_a_volatile_buffer() {
    for (is_protected, waits) in [(false, PUT), (true, Nanos::ZERO)] {
        let mut config = folding(4);
        if let Some(buffer) = &mut config.write_buffer {
            buffer.power_loss_protection = is_protected;
        }
        let mut rig = Rig::new(&config);
        let op = rig.write(0, PAGE);
        rig.time(op);
        let op = rig.finish(0);
        assert_eq!(rig.time(op), waits);
        run_out(&mut rig);
        assert_eq!(
            rig.drive.flash().zone_state(0).0,
            128,
            "all of it is programmed"
        );
    }
}

/// The drive of C1q.
#[test]
fn finishes_of_qlc_cached_take_as_long_at_any_occupancy() {
    let config = profile::builtin("qlc-cached")
        .expect("it is built in")
        .config;
    let times = [1, 1_441_792].map(|lbas: u32| {
        let mut rig = Rig::new(&config);
        let mut left = lbas;
        while left > 0 {
            let nlb = left.min(256);
            let op = rig.write(0, nlb);
            rig.time(op);
            left -= nlb;
        }
        let op = rig.finish(0);
        rig.time(op)
    });
    assert_eq!(
        times, [config.front_end.management_ns; 2],
        "empty, and half full"
    );
}

#[test]
fn a_reset_drops_what_is_being_folded() {
    for after in [0, 100, 300, 1_000, 3_000] {
        let mut config = folding(6);
        config.reset.erase = EraseWhen::Background;
        let mut rig = Rig::new(&config);
        time_of_pages(&mut rig, 0, 40);
        time_of_pages(&mut rig, 1, 4);
        rig.settle();
        rig.run_for(us(1_000 + after));
        let op = rig.reset(0);
        rig.exec(op);
        rig.drive.assert_invariants();
        let folded = rig.drive.totals().fold_program_bytes;
        assert!(folded < 44 * PAGE_BYTES, "it is in the midst of it");
        time_of_pages(&mut rig, 0, 3);
        run_out(&mut rig);
        assert!(rig.drive.totals().fold_program_bytes <= folded + 7 * PAGE_BYTES);
        assert_eq!(rig.drive.flash().zone_state(0).0, 3);
        assert_eq!(rig.drive.flash().zone_state(1).0, 4);
    }
}

#[test]
fn reads_go_on_while_their_data_is_folded() {
    let mut rig = Rig::new(&folding(4));
    time_of_pages(&mut rig, 0, 40);
    rig.settle();
    rig.run_for(us(1_200));
    let mut longest = Nanos::ZERO;
    for page in 0..40 {
        longest = longest.max(page_read(&mut rig, 0, page));
    }
    assert!(longest > GET, "folds are in line with reads");
    assert!(
        longest < WRITE + WRITE,
        "and no more of them than were begun: {longest}"
    );
}

#[test]
fn the_cache_outlives_a_loss_of_power() {
    let mut rig = Rig::new(&folding(4));
    time_of_pages(&mut rig, 0, 20);
    rig.settle();
    rig.run_for(us(1_400));
    assert!(rig.drive.background_tasks() > 0, "it is folding");
    let loss = rig.drive.power_cut(rig.now, us(5), 1);
    assert_eq!(rig.drive.zones().host_lbas(ZoneId(0)), 20 * u64::from(PAGE));
    rig.drive.assert_invariants();
    rig.run_to(loss.ready_at);
    run_out(&mut rig);
    assert_eq!(rig.drive.flash().cached_bytes(), 0);
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::CLOSED);
}

/// What is impossible about a cache, with the key that is named.
#[test]
fn what_cannot_be_beside_a_cache_is_refused() {
    type Change = fn(&mut DriveConfig);
    let cases: [(&str, Change); 8] = [
        ("slc_cache.mode", |of| of.write_buffer = None),
        ("finish.design", |of| of.slc_cache = None),
        ("finish.design", |of| {
            of.finish = crate::drive_support::fill(64)
        }),
        ("slc_cache.mode", |of| {
            of.mapping = MappingConfig::Stripe { physical_zones: 6 }
        }),
        ("slc_cache.mode", |of| {
            of.zones.zrwa = Some(ZrwaConfig {
                size_lbas: 8,
                flush_granularity_lbas: 4,
                max_areas: None,
                explicit_flush: true,
            });
        }),
        ("slc_cache.size", |of| {
            if let Some(cache) = &mut of.slc_cache {
                cache.size_bytes -= PAGE_BYTES;
            }
        }),
        ("slc_cache.page_size", |of| {
            if let Some(cache) = &mut of.slc_cache {
                cache.page_bytes = 12_288;
            }
        }),
        ("slc_cache.bits_per_cell", |of| {
            if let Some(cache) = &mut of.slc_cache {
                cache.bits_per_cell = 3;
            }
        }),
    ];
    for (key, change) in cases {
        let mut config = cached(4);
        change(&mut config);
        let broken = profile::check(&config).expect_err(key);
        assert!(broken.iter().any(|of| of.key == key), "{key}: {broken:?}");
    }
}

/// A part of a unit that nothing follows stays in the oldest row. When every other place of the
/// row has been folded, and there is no later row, it is folded too, or nobody makes room.
#[test]
fn a_part_of_a_unit_does_not_hold_the_only_full_row() {
    let mut config = cached(2);
    config.geometry.ways = 4;
    config.geometry.channels = 1;
    config.geometry.pages_per_block = 2;
    config.geometry.page_bytes = 8_192;
    config.zones.count = 3;
    config.zones.channels = 1;
    config.zones.ways = 2;
    config.zones.size_lbas = 12;
    config.zones.capacity_lbas = 12;
    config.finish = FinishConfig::Metadata;
    if let Some(buffer) = &mut config.write_buffer {
        buffer.size_bytes = 8_192;
    }
    if let Some(cache) = &mut config.slc_cache {
        cache.bits_per_cell = 2;
        cache.page_bytes = 8_192;
        cache.size_bytes = 2 * 4 * 8_192;
        cache.fold_bytes = 8_192;
    }
    profile::check(&config).expect("it is the smallest cache that such a buffer can have");
    let mut rig = Rig::new(&config);
    for (zone, nlb) in [(0, 2), (1, 1), (2, 7)] {
        let op = rig.write(zone, nlb);
        rig.submit(op);
        rig.run_for(Nanos::from_ms(1));
    }
    run_out(&mut rig);
    assert_eq!(rig.drive.in_flight(), 0, "nobody waits for ever");
}

/// Zones may each have a part of a unit on its way to a full cache and the beginning of the next
/// unit in the buffer. A loss of power puts all of that into the room that is kept for it.
#[test]
fn the_reserve_has_room_for_two_parts_of_each_zone() {
    let mut config = cached(6);
    config.zones.count = 3;
    if let Some(buffer) = &mut config.write_buffer {
        buffer.power_loss_protection = true;
        buffer.size_bytes = 2 * PAGE_BYTES;
    }
    // Of 8 blocks in the buffer, 3 zones can have 6 parts.
    assert_eq!(config.cache_reserve_bytes(), (2 + 6) * PAGE_BYTES);
    config.zones.count = 6;
    assert_eq!(config.cache_reserve_bytes(), (2 + 8) * PAGE_BYTES);
}

/// The geometry of a profile is asked for the size of its rows before it is known to be possible.
#[test]
fn rows_of_an_impossible_geometry_have_a_size() {
    let mut geometry = cached(4).geometry;
    geometry.channels = 65_536;
    geometry.ways = 256;
    geometry.planes = 256;
    let cache = cached(4).slc_cache.expect("it has one");
    let row = cache.row_bytes(&geometry);
    assert_eq!(
        row,
        (1 << 32) * u64::from(geometry.dies) * cache.block_bytes(&geometry).0
    );
    assert_eq!(cache.rows(&geometry), 0);
}

/// While the host comes back before it has been idle for long enough, one event says when to
/// look again, and not one for each pause.
#[test]
fn pauses_that_are_too_short_leave_no_events_behind() {
    let mut config = folding(4);
    if let Some(cache) = &mut config.slc_cache {
        cache.fold_after_idle_ns = Some(Nanos::from_ms(1_000));
    }
    let mut rig = Rig::new(&config);
    time_of_pages(&mut rig, 0, 8);
    let before = rig.drive.events_handled();
    for _ in 0..100 {
        page_read(&mut rig, 0, 0);
    }
    let of_reads = rig.drive.events_handled() - before;
    run_out(&mut rig);
    let left = rig.drive.events_handled() - before - of_reads;
    assert!(left < 100, "{left} events after {of_reads} of 100 reads");
    assert_eq!(rig.drive.flash().cached_bytes(), 0, "and it was folded");
}
