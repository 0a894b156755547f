//! Details of flash timing on examples that are computed by hand: points at
//! which an operation can stop, and the cache register.

use crate::media_support::{Rig, erase, program, read, ready};
use zonelab_device::Nanos;
use zonelab_ssd::account::Resource;
use zonelab_ssd::config::{DiePolicy, MediaConfig, PageRegister, Suspend};

/// Stops every 100 us of array time, 5 us each.
fn in_steps(policy: DiePolicy, max_per_operation: u32) -> MediaConfig {
    MediaConfig {
        suspend: Suspend {
            program: true,
            erase: true,
            overhead_ns: Nanos::from_us(5),
            max_per_operation,
            interval_ns: Nanos::from_us(100),
        },
        ..ready(policy)
    }
}

#[test]
fn an_operation_stops_at_the_next_point() {
    // Stop at 1100, there to 1105, sense to 1165, resume to 1170, 2400 left.
    // A read that comes at a point is too late for it: that is where the time
    // to decide has passed.
    for (at, stop) in [(1_000, 1_100), (1_030, 1_100), (1_099, 1_100), (1, 100)] {
        let mut rig = Rig::new(1, &in_steps(DiePolicy::ReadFirst, 8));
        rig.submit(0, 0, &[erase(0)]);
        rig.submit(at, 1, &[read(0)]);
        let read_end = stop + 5 + 60 + 25;
        assert_eq!(rig.ends_us(), [3_500 + 5 + 60 + 5, read_end], "{at}");
    }
}

#[test]
fn a_program_stops_at_points_too() {
    let mut rig = Rig::new(1, &in_steps(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[program(0)]);
    // 25 us of transfer, so the points are at 125, 225, ...
    rig.submit(130, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [725 + 70, 225 + 5 + 85]);
}

#[test]
fn there_is_no_point_at_the_end() {
    let mut rig = Rig::new(1, &in_steps(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(3_410, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [3_500, 3_585]);

    let mut rig = Rig::new(1, &in_steps(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(3_390, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [3_570, 3_405 + 85]);
}

/// Without an interval, a read during the resumption stops it without any progress.
#[test]
fn after_it_was_resumed_an_operation_makes_progress() {
    let mut rig = Rig::new(1, &in_steps(DiePolicy::ReadFirst, 8));
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(1_030, 1, &[read(0)]);
    rig.submit(1_167, 2, &[read(0)]);
    // Stopped at 1100, resumed at 1170, stopped at 1270, sensed from 1275 to
    // 1335, resumed at 1340, 2300 left.
    assert_eq!(rig.ends_us(), [3_640, 1_190, 1_335 + 25]);
}

/// Weights leave a read behind, which stops the operation again after an interval.
#[test]
fn reads_that_were_left_waiting_stop_what_goes_on() {
    let weighted = DiePolicy::Weighted { reads: 1 };
    let mut rig = Rig::new(1, &in_steps(weighted, 8));
    rig.submit(0, 0, &[erase(0)]);
    for token in 1..4 {
        rig.submit(1_000, token, &[read(0)]);
    }
    // Stopped after 1100, 1200 and 1300 us of array time: each time 70 us.
    let ends = [3_500 + 3 * 70, 1_190, 1_190 + 170, 1_190 + 2 * 170];
    assert_eq!(rig.ends_us(), ends);

    // As often as it may be.
    let mut rig = Rig::new(1, &in_steps(weighted, 2));
    rig.submit(0, 0, &[erase(0)]);
    for token in 1..4 {
        rig.submit(1_000, token, &[read(0)]);
    }
    let end = 3_500 + 2 * 70;
    assert_eq!(rig.ends_us(), [end, 1_190, 1_190 + 170, end + 85]);
}

/// The same for one that begins while reads wait for it to have had its turn.
#[test]
fn reads_that_were_left_waiting_stop_what_begins() {
    let mut rig = Rig::new(1, &in_steps(DiePolicy::Weighted { reads: 1 }, 8));
    rig.submit(0, 0, &[read(0)]);
    rig.submit(1, 1, &[erase(0)]);
    rig.submit(2, 2, &[read(0)]);
    rig.submit(3, 3, &[read(0)]);
    // No write was there when the first read started, so one more goes before
    // the erase: that runs from 120, and stops at 220 for the last read.
    assert_eq!(rig.ends_us(), [85, 120 + 3_500 + 70, 145, 225 + 85]);
}

fn cache() -> MediaConfig {
    MediaConfig {
        page_register: PageRegister::Cache,
        ..ready(DiePolicy::Fifo)
    }
}

/// Starts of transfers, in microseconds.
fn transfers(rig: &mut Rig) -> Vec<u64> {
    let mut spans = rig.spans();
    spans.retain(|span| span.resource == Resource::Channel(0));
    spans.iter().map(|span| span.start.0 / 1_000).collect()
}

#[test]
fn one_page_waits_in_the_cache_register_and_no_further_one() {
    let overlap = MediaConfig {
        page_register: PageRegister::Overlap,
        ..cache()
    };
    let hold = MediaConfig {
        page_register: PageRegister::Hold,
        ..cache()
    };
    for (config, starts, ends) in [
        (cache(), [0, 25, 725], [725, 1_425, 2_125]),
        (overlap, [0, 25, 50], [725, 1_425, 2_125]),
        (hold, [0, 725, 1_450], [725, 1_450, 2_175]),
    ] {
        let mut rig = Rig::new(1, &config);
        for token in 0..3 {
            rig.submit(0, token, &[program(0)]);
        }
        assert_eq!(rig.ends_us(), ends, "{config:?}");
        assert_eq!(transfers(&mut rig), starts, "{config:?}");
    }
}

/// The page of the next program waits behind an erase too.
#[test]
fn an_erase_needs_no_register() {
    let mut rig = Rig::new(1, &cache());
    rig.submit(0, 0, &[erase(0)]);
    rig.submit(0, 1, &[program(0)]);
    assert_eq!(rig.ends_us(), [3_500, 4_200]);
    assert_eq!(transfers(&mut rig), [0]);
}

#[test]
fn reads_hold_a_die_with_a_cache_register() {
    let mut rig = Rig::new(1, &cache());
    rig.submit(0, 0, &[read(0)]);
    rig.submit(0, 1, &[read(0)]);
    assert_eq!(rig.ends_us(), [85, 170]);

    // The page of a program comes meanwhile, and it starts when the page of the
    // read has left.
    let mut rig = Rig::new(1, &cache());
    rig.submit(0, 0, &[read(0)]);
    rig.submit(0, 1, &[program(0)]);
    assert_eq!(rig.ends_us(), [85, 785]);
    assert_eq!(transfers(&mut rig), [0, 60]);
}
