//! Which flash a zone stands on, and what its first write pays for it.

use crate::drive_support::{ERASE, PAGE, Rig, WRITE, lazy, narrow, reset, small, us};
use zonelab_device::{Nanos, ZoneId};
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen};

/// Two rows of blocks.
const ERASE_ZONE: Nanos = us(7_000);

/// Three zones on four physical zones, erased at the first write.
fn three_on_four() -> DriveConfig {
    let mut config = lazy(small(), 4);
    config.zones.count = 3;
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Full);
    config
}

fn physical(rig: &Rig, zone: u32) -> Option<u32> {
    rig.drive.flash().mapping().physical(ZoneId(zone))
}

/// Latency of the first write of a zone, which then is reset again if so asked.
fn first_write(rig: &mut Rig, zone: u32) -> Nanos {
    let op = rig.write(zone, PAGE);
    rig.time(op)
}

#[test]
fn a_zone_has_no_flash_until_it_is_written() {
    let mut rig = Rig::new(&three_on_four());
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (4, 0));
    for zone in 0..3 {
        assert_eq!(physical(&rig, zone), None);
    }
    // Reading and resetting an empty zone does not change that.
    rig.time(rig.read(0, 0, PAGE));
    rig.time(rig.reset(0));
    assert_eq!(physical(&rig, 0), None);
    first_write(&mut rig, 2);
    assert_eq!(physical(&rig, 2), Some(0));
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (3, 0));
}

#[test]
fn free_flash_comes_first_then_the_oldest_invalidated() {
    let mut rig = Rig::new(&three_on_four());
    assert_eq!(first_write(&mut rig, 0), WRITE);
    assert_eq!(first_write(&mut rig, 1), WRITE);
    rig.time(rig.reset(1));
    rig.time(rig.reset(0));
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (2, 2));
    // 2 and 3 are free; 1 was invalidated before 0.
    assert_eq!(first_write(&mut rig, 1), WRITE);
    assert_eq!(first_write(&mut rig, 2), WRITE);
    assert_eq!(first_write(&mut rig, 0), ERASE_ZONE + us(700));
    assert_eq!(
        [0, 1, 2].map(|zone| physical(&rig, zone)),
        [Some(1), Some(2), Some(3)]
    );
    rig.time(rig.reset(2));
    assert_eq!(first_write(&mut rig, 2), ERASE_ZONE + us(700));
    assert_eq!(physical(&rig, 2), Some(0));
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (0, 1));
    // The erasure is paid for once.
    assert_eq!(first_write(&mut rig, 2), WRITE);
}

/// ConfZNS++, section 5.2: one zone, filled again and again, goes round all the
/// flash before it has to erase; then it does so each time.
#[test]
fn a_zone_that_is_refilled_uses_up_the_free_list_first() {
    let mut rig = Rig::new(&three_on_four());
    for round in 0..8 {
        let latency = first_write(&mut rig, 0);
        let expected = if round < 4 {
            WRITE
        } else {
            ERASE_ZONE + us(700)
        };
        assert_eq!(latency, expected, "round {round}");
        assert_eq!(physical(&rig, 0), Some(round % 4));
        rig.write_pages(0, 31);
        rig.time(rig.reset(0));
    }
}

/// With direct mapping it is the same blocks each time.
#[test]
fn a_direct_zone_pays_after_its_first_reset() {
    let mut config = three_on_four();
    config.mapping = zonelab_ssd::config::MappingConfig::Direct;
    let mut rig = Rig::new(&config);
    for round in 0..3 {
        let expected = if round == 0 {
            WRITE
        } else {
            ERASE_ZONE + us(700)
        };
        assert_eq!(first_write(&mut rig, 0), expected, "round {round}");
        assert_eq!(physical(&rig, 0), Some(0));
        rig.time(rig.reset(0));
        assert_eq!(physical(&rig, 0), Some(0));
        assert_eq!(rig.drive.flash().mapping().pool_sizes(), (0, 0));
    }
}

#[test]
fn erased_flash_is_free_again() {
    for preempt_ns in [None, Some(us(10_000))] {
        for erase in [EraseWhen::Synchronous, EraseWhen::Background] {
            let mut config = three_on_four();
            config.reset = reset(erase, EraseExtent::Full);
            config.reset.preempt_ns = preempt_ns;
            let mut rig = Rig::new(&config);
            first_write(&mut rig, 0);
            let start = rig.now;
            rig.submit(rig.reset(0));
            rig.run_to(start + us(1));
            assert_eq!(rig.drive.flash().mapping().pool_sizes(), (3, 1));
            rig.run_to(start + ERASE_ZONE);
            assert_eq!(rig.drive.flash().mapping().pool_sizes(), (4, 0));
            // Behind those that were free before.
            for free in [1, 2, 3, 0] {
                assert_eq!(first_write(&mut rig, 0), WRITE);
                assert_eq!(physical(&rig, 0), Some(free));
                rig.time(rig.reset(0));
                rig.run_for(ERASE_ZONE);
            }
        }
    }
}

/// Flash that was never programmed needs no erasure, unless all is erased anyway.
#[test]
fn clean_flash_goes_back_to_the_free_list() {
    let mut config = three_on_four();
    config.reset.extent = EraseExtent::Partial;
    config.finish = zonelab_ssd::config::FinishConfig::Metadata;
    let mut rig = Rig::new(&config);
    // A finish in metadata maps nothing.
    rig.time(rig.finish(0));
    rig.time(rig.reset(0));
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (4, 0));
    assert_eq!(first_write(&mut rig, 0), WRITE);
    rig.time(rig.reset(0));
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (3, 1));
}

/// Flash that is taken from the invalidated list while it is being erased in
/// the background belongs to its new zone: the end of the erasure, and of the
/// zone's next life, find each its own.
#[test]
fn flash_that_holds_old_data_is_never_free() {
    let mut config = lazy(small(), 1);
    config.zones.count = 1;
    config.reset = reset(EraseWhen::Background, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    let start = rig.now;
    rig.submit(rig.reset(0));
    rig.run_to(start + us(1_000));
    // Taken, written, and given back before the first erasure is over.
    let write = rig.submit(rig.write(0, PAGE));
    rig.submit(rig.reset(0));
    rig.run_to(start + ERASE_ZONE);
    assert_eq!(
        rig.drive.flash().mapping().pool_sizes(),
        (0, 1),
        "there is a page on it"
    );
    rig.settle();
    assert_eq!(rig.wait(write).at, start + ERASE_ZONE + us(700));
    assert_eq!(rig.now, start + ERASE_ZONE + us(700) + ERASE_ZONE);
    assert_eq!(rig.drive.flash().mapping().pool_sizes(), (1, 0));
}

#[test]
fn a_zone_stays_on_the_dies_of_its_group() {
    let mut config = lazy(narrow(), 32);
    config.zones.count = 20;
    config.reset = reset(EraseWhen::FirstZoneWrite, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    for round in 0..5 {
        for zone in (0..20).rev() {
            first_write(&mut rig, zone);
            let physical = physical(&rig, zone).unwrap();
            assert_eq!(physical % 16, zone % 16, "round {round}");
            if round % 2 == 0 {
                rig.time(rig.reset(zone));
            }
        }
        for zone in 0..20 {
            rig.time(rig.reset(zone));
        }
    }
}

#[test]
fn erasure_at_each_block_spreads_over_the_writes_of_recycled_flash() {
    let mut config = lazy(small(), 1);
    config.zones.count = 1;
    config.reset = reset(EraseWhen::FirstBlockWrite, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    rig.time(rig.reset(0));
    let times: Vec<Nanos> = (0..32).map(|_| first_write(&mut rig, 0)).collect();
    for (page, time) in times.into_iter().enumerate() {
        // The first page of each of the 8 blocks: 0 to 3 and 16 to 19.
        let pays = page % 16 < 4;
        let expected = if pays { ERASE + us(700) } else { WRITE };
        assert_eq!(time, expected, "page {page}");
    }
}
