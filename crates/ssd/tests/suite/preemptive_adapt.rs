//! Thresholds that adapt to the load: rows wait for pauses that they fit in, as
//! long as there are enough free zones.

use crate::drive_support::{ERASE, PAGE, READ, Rig, lazy, reset, small, us};
use zonelab_device::Nanos;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::ResetState::{Full, Partial, Serving};
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, Evaluate, Thresholds, Victim};

/// Pages of a zone of four rows of blocks: 4 planes, 4 pages in each block.
const PAGES: u32 = 4 * 16;

/// Four zones of four rows on so many physical ones.
fn config(physical_zones: u32, adapt: Option<Nanos>) -> DriveConfig {
    let mut config = lazy(small(), physical_zones);
    config.zones.count = 4;
    config.zones.capacity_lbas = u64::from(PAGES * PAGE);
    config.zones.size_lbas = config.zones.capacity_lbas;
    let thresholds = Thresholds {
        free_zones: 0,
        invalid_zones: Some(1),
        evaluate: Evaluate::Allocation,
        zones_at_once: None,
        victim: Victim::Oldest,
        adapt,
    };
    config.reset = reset(EraseWhen::Thresholds(thresholds), EraseExtent::Partial);
    config
}

fn written(config: &DriveConfig) -> Rig {
    let mut rig = Rig::new(config);
    for zone in 0..4 {
        rig.write_pages(zone, PAGES);
    }
    rig
}

fn erased(rig: &Rig) -> u64 {
    rig.drive.totals().erased_blocks
}

/// A read, and then nothing for a while.
fn read_and_pause(rig: &mut Rig, pause: Nanos) -> Nanos {
    let latency = rig.time(rig.read(3, 0, PAGE));
    rig.run_for(pause);
    latency
}

const SECOND: Nanos = Nanos::from_secs(1);

/// Reads at short intervals wait for nothing, though a zone is invalid; when they
/// cease, it is erased as soon as a row has had room.
#[test]
fn rows_wait_for_the_end_of_a_burst() {
    for (adapt, slowest) in [(None, ERASE), (Some(SECOND), READ)] {
        let mut rig = written(&config(8, adapt));
        for _ in 0..16 {
            read_and_pause(&mut rig, us(100));
        }
        rig.time(rig.reset(0));
        let latencies: Vec<Nanos> = (0..64).map(|_| read_and_pause(&mut rig, us(100))).collect();
        let most = latencies.iter().max().copied();
        assert!(most <= Some(slowest + READ), "{adapt:?}: {most:?}");
        if adapt.is_some() {
            assert_eq!((most, erased(&rig)), (Some(READ), 0));
            assert_eq!(rig.drive.reset_state(0), Some(Partial));
            // The pause has begun when the last read was over.
            rig.run_for(ERASE - us(100) - Nanos(1));
            assert_eq!(erased(&rig), 0);
            rig.run_for(Nanos(1));
            assert_eq!(erased(&rig), 4);
        }
        rig.settle();
        assert_eq!(
            (erased(&rig), rig.drive.reset_state(0)),
            (16, Some(Serving))
        );
    }
}

/// Pauses that most rows fit in are used from their start, and one row long.
#[test]
fn rows_begin_at_once_where_pauses_have_room() {
    let mut rig = written(&config(8, Some(SECOND)));
    for _ in 0..64 {
        read_and_pause(&mut rig, ERASE + us(1_000));
    }
    rig.time(rig.read(3, 0, PAGE));
    rig.time(rig.reset(0));
    rig.run_for(ERASE + us(1_000));
    for row in 1..4 {
        assert_eq!(erased(&rig), 4 * row, "one in a pause");
        assert_eq!(read_and_pause(&mut rig, ERASE + us(1_000)), READ);
    }
    assert_eq!(erased(&rig), 16);
}

/// What is left of the spare zones decides: with few, any pause will do.
#[test]
fn rows_do_not_wait_where_zones_run_out() {
    let run = |physical_zones: u32, adapt: Option<Nanos>| {
        let mut rig = written(&config(physical_zones, adapt));
        // Zones come and go, with no pause that has room for a row.
        let mut was_full = false;
        for round in 0..24 {
            let zone = round % 3;
            rig.time(rig.reset(zone));
            let mut left = PAGES;
            while left > 0 {
                rig.time(rig.write(zone, 8 * PAGE));
                was_full |= rig.drive.reset_state(0) == Some(Full);
                left -= 8;
            }
        }
        let free = rig.drive.flash().mapping().pool_sizes().0;
        (was_full, free, erased(&rig))
    };
    // Every pause has a row: eight for each zone, which need four.
    let (was_full, _, eager) = run(8, None);
    assert!(!was_full);
    let (was_full, free, patient) = run(8, Some(SECOND));
    assert!(!was_full && free >= 1, "{free} zones are free");
    assert!(
        patient <= eager,
        "{patient} blocks, {eager} without waiting"
    );
    // The zones that were spare at first, but for one, have not been erased.
    assert!(patient + 16 >= 24 * 16 - 3 * 16, "{patient} blocks");
}

/// A drive that is left alone ends with everything erased, whatever it has seen.
#[test]
fn idle_drives_erase_everything() {
    for pause_us in [10, 3_600, 8_000] {
        for adapt in [us(1), us(50_000), SECOND] {
            let mut rig = written(&config(5, Some(adapt)));
            for round in 0..20 {
                read_and_pause(&mut rig, us(pause_us));
                if round % 5 == 0 {
                    rig.time(rig.reset(round / 5));
                }
            }
            rig.settle();
            assert_eq!(
                rig.drive.flash().mapping().pool_sizes(),
                (5, 0),
                "{pause_us} us"
            );
        }
    }
}

/// A loss of power forgets what was seen; the drive goes on by itself.
#[test]
fn a_loss_of_power_does_not_stop_it() {
    let mut rig = written(&config(8, Some(SECOND)));
    rig.time(rig.reset(0));
    rig.run_for(ERASE + us(1_000));
    assert_eq!(erased(&rig), 4);
    rig.drive.power_cut(rig.now, us(1_000), 1);
    rig.run_for(us(1_000));
    while rig.next() {}
    assert_eq!(
        (erased(&rig), rig.drive.flash().mapping().pool_sizes()),
        (16 + 4, (5, 0))
    );
}
