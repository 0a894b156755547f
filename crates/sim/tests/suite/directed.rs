//! Jobs in directions, on the tiny drive: 8 zones of 15 pages, 725 us a page.

use std::num::NonZeroU64;
use std::ops::Range;

use zonelab_device::Nanos;
use zonelab_host::rate::Limit;
use zonelab_host::softfinish::SoftFinish;
use zonelab_host::stats::OpKind;
use zonelab_host::workload::directed::{
    DirectedWork, Direction, EarlyReset, Flow, Pattern, Sizes, WriteStyle,
};
use zonelab_host::workload::distribution::Distribution;
use zonelab_host::workload::record::{DirectionRecording, Recording, Spread};
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::workload::{
    Ending, Fill, JobResult, JobSpec, Shared, Syncs, Think, Work, WorkloadJob,
};
use zonelab_host::{CoreId, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::Control;

use super::support::{FREE, PAGE, WRITE, costs_us, run_alone, spec as plain_spec, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;
const PAGE_BYTES: u64 = 16_384;
const BLOCKS_PER_PAGE: u64 = PAGE as u64;

fn flow() -> Flow {
    Flow::unlimited(Sizes::fixed(PAGE))
}

type Spec = JobSpec<DirectedWork>;

/// A job that does one thing in order, page by page.
fn spec(direction: Direction, zones: Range<u32>) -> Spec {
    let work = DirectedWork::through(zones, direction, Sizes::fixed(PAGE));
    let directions = DirectionRecording {
        submission_percentiles: false,
        completion_percentiles: true,
        total_percentiles: false,
        bandwidth_interval: Nanos::from_ms(500),
        iops_interval: Nanos::from_ms(500),
        confidence: false,
        log: true,
        log_window: Nanos::ZERO,
    };
    JobSpec {
        ending: Ending::AtLastCompletion,
        recording: Recording {
            issued: None,
            kinds: false,
            directions: Some(directions),
        },
        ..JobSpec::new("job", work)
    }
}

const RANDOM: Pattern = Pattern::Random {
    distribution: Distribution::Uniform,
    percent: [100; 3],
    in_a_row: 1,
    is_identical: false,
};

/// Runs jobs side by side on a drive of which `full` zones are full.
fn run_on(
    device: &Emulated,
    full: Range<u32>,
    limit: Option<u32>,
    costs: HostCosts,
    specs: &[Spec],
) -> (Vec<JobResult>, RunEnd, SharedZones) {
    let zoned = device.info().namespaces[0].zoned.expect("it has zones");
    let zones = SharedZones::new(ZoneTable::new(zoned, limit));
    if !full.is_empty() {
        let control = Control::PreconditionFull {
            zones: full.clone(),
        };
        device
            .with_drive(|drive| drive.control(Nanos::ZERO, &control))
            .expect("the zones are empty");
        zones.borrow_mut().declare_full(full);
    }
    let stop = StopSignal::default();
    zones
        .borrow_mut()
        .start_run(stop.bell().clone(), specs.len() as u32);
    let mut jobs: Vec<WorkloadJob> = (0_u32..)
        .zip(specs)
        .map(|(id, spec)| {
            let shared = Shared {
                zones: Some((zones.clone(), id)),
                ..Shared::from(stop.clone())
            };
            let rng = Rng::new(1, u64::from(id));
            WorkloadJob::new(spec.clone(), device.info(), rng, shared)
        })
        .collect();
    let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop);
    for (index, job) in jobs.iter_mut().enumerate() {
        let queue = device.open_queue(job.depth(), costs, Rng::new(2, index as u64));
        reactor.add(job, queue, CoreId(index as u32), specs[index].start);
    }
    let end = reactor.run();
    let results = jobs.into_iter().map(WorkloadJob::into_result).collect();
    (results, end, zones)
}

fn run(full: Range<u32>, specs: &[Spec]) -> (Vec<JobResult>, RunEnd) {
    let (results, end, _) = run_on(&tiny(&[]), full, None, FREE, specs);
    for result in &results {
        assert_eq!(result.first_error, None);
    }
    (results, end)
}

fn count(result: &JobResult, direction: Direction) -> u64 {
    let stats = result.recorder.directions[direction as usize].as_ref();
    stats.map_or(0, |stats| stats.operations)
}

/// Places of the operations, in pages of the device.
fn places(result: &JobResult) -> Vec<u64> {
    result
        .recorder
        .log
        .iter()
        .map(|sample| sample.offset / PAGE_BYTES)
        .collect()
}

#[test]
fn writes_in_order_fill_zone_after_zone_and_count_whole() {
    let (results, end) = run(0..0, &[spec(Direction::Write, 0..2)]);
    assert_eq!((end.at, end.stuck_jobs), (US(30 * 725), 0));
    assert_eq!(count(&results[0], Direction::Write), 30);
    let expected: Vec<u64> = (0..15).chain(16..31).collect();
    assert_eq!(
        places(&results[0]),
        expected,
        "the gap behind the capacity is left out"
    );
    let stats = results[0].recorder.directions[1].as_ref().unwrap();
    assert_eq!(stats.completion.moments().max(), Some(WRITE.0));
}

#[test]
fn full_zones_are_reset_when_they_are_written_again() {
    let (results, _) = run(0..2, &[spec(Direction::Write, 0..2)]);
    assert_eq!(count(&results[0], Direction::Write), 30);
    assert_eq!(results[0].cleared_zones, 2);
    assert_eq!(
        results[0].recorder.counts[OpKind::Reset as usize],
        0,
        "not measured"
    );
}

/// A full zone that is drawn is reset and written, and stays open until it is
/// full again: so resets follow what is written, whatever is drawn. (fio 3.33
/// resets 3, 4 and 12 zones of such a device with limits of 1, 4 and 12.)
#[test]
fn random_writes_to_full_zones_reset_only_what_they_write() {
    for (limit, most) in [(1, 14), (4, 17), (7, 20)] {
        let mut writer = spec(Direction::Write, 0..8);
        writer.work.pattern = RANDOM;
        writer.stop.operations = Some(200);
        let (results, _, zones) = run_on(&tiny(&[]), 0..8, Some(limit), FREE, &[writer]);
        assert_eq!(results[0].first_error, None);
        assert_eq!(count(&results[0], Direction::Write), 200);
        let cleared = results[0].cleared_zones;
        // 200 writes fill 13 zones, and others are written in part.
        assert!((13..=most).contains(&cleared), "limit {limit}: {cleared}");
        let written = (0..8).map(|zone| zones.borrow().written(zone)).sum::<u64>();
        let pages = 8 * 15 + 200 - 15 * cleared;
        assert_eq!(written, pages * BLOCKS_PER_PAGE);
    }
}

#[test]
fn a_rest_that_is_too_small_for_a_write_is_finished() {
    // 15 pages hold seven writes of two.
    let mut writer = spec(Direction::Write, 0..3);
    let sizes = Sizes::fixed(2 * PAGE);
    writer.work.flows[Direction::Write as usize]
        .as_mut()
        .unwrap()
        .sizes = sizes;
    for pattern in [Pattern::Sequential, RANDOM] {
        let mut writer = writer.clone();
        writer.work.pattern = pattern;
        // The size of a pass is its end: without one it would go on from the first zone.
        writer.stop.operations = Some(21);
        let (results, end, zones) = run_on(&tiny(&[]), 0..0, Some(1), FREE, &[writer]);
        assert_eq!((results[0].first_error, end.stuck_jobs), (None, 0));
        assert_eq!(count(&results[0], Direction::Write), 21);
        assert_eq!((results[0].ended_zones, results[0].cleared_zones), (2, 0));
        let full = (0..3).filter(|zone| zones.borrow().written(*zone) == 15 * BLOCKS_PER_PAGE);
        assert_eq!(full.count() as u64, results[0].ended_zones);
    }
}

/// With a threshold of half the zones and every fourth write, a reset follows
/// each fourth write that finds so much written (fio's `zbd_adjust_block`).
#[test]
fn zones_are_reset_early_by_threshold_and_frequency() {
    let half = 4 * 15 * BLOCKS_PER_PAGE;
    let mut writer = spec(Direction::Write, 0..8);
    writer.work.pattern = RANDOM;
    writer.work.early_reset = Some(EarlyReset {
        threshold_lbas: half,
        every_writes: 4,
    });
    writer.stop.operations = Some(400);
    let (results, end, zones) = run_on(&tiny(&[]), 0..0, None, FREE, &[writer]);
    assert_eq!((results[0].first_error, end.stuck_jobs), (None, 0));
    assert_eq!(count(&results[0], Direction::Write), 400);
    // As fio's manual has it: while the threshold is exceeded, each fourth write
    // resets its zone first. What the writes say of it, one after the other:
    let (mut levels, mut above, mut cleared) = ([0_u64; 8], 0, 0);
    for place in places(&results[0]) {
        let (zone, page) = (place as usize / 16, place % 16);
        let is_above = levels.iter().sum::<u64>() * BLOCKS_PER_PAGE >= half;
        above += u64::from(is_above);
        let is_early = is_above && above % 4 == 0;
        if levels[zone] == 15 || is_early && levels[zone] > 0 {
            levels[zone] = 0;
            cleared += 1;
        }
        assert_eq!(page, levels[zone], "zone {zone}");
        levels[zone] += 1;
    }
    assert_eq!(results[0].cleared_zones, cleared);
    assert!(cleared > 20);
    for (zone, level) in (0..8).zip(levels) {
        assert_eq!(zones.borrow().written(zone), level * BLOCKS_PER_PAGE);
    }
}

#[test]
fn every_third_write_is_flushed_and_the_end() {
    for (depth, ends) in [(1, true), (4, true), (4, false)] {
        let mut writer = spec(Direction::Write, 0..2);
        writer.queue_depth = depth;
        writer.syncs = Syncs {
            every_writes: [3, 0],
            at_end: ends,
        };
        writer.stop.operations = Some(20);
        let (results, end, _) = run_on(&tiny(&[]), 0..0, None, FREE, &[writer]);
        assert_eq!((results[0].first_error, end.stuck_jobs), (None, 0));
        assert_eq!(count(&results[0], Direction::Write), 20);
        let syncs = results[0].recorder.syncs.as_ref().unwrap();
        assert_eq!(syncs.moments().count(), 6);
        assert_eq!(results[0].recorder.flushes, 6 + u64::from(ends));
    }
}

#[test]
fn several_jobs_write_one_zone_without_racing() {
    // With host costs that differ by jitter, writes of two cores would reach
    // the drive out of order if they did not wait for each other.
    let costs = HostCosts {
        jitter_ns: US(50),
        ..costs_us(3, 3)
    };
    let mut writer = spec(Direction::Write, 0..4);
    writer.queue_depth = 4;
    let writers = vec![writer; 3];
    let (results, end, zones) = run_on(&tiny(&[]), 0..0, None, costs, &writers);
    assert_eq!(end.stuck_jobs, 0);
    for result in &results {
        assert_eq!(result.first_error, None);
        assert!(count(result, Direction::Write) > 0);
    }
    assert!((0..4).all(|zone| zones.borrow().is_quiet(zone)));
}

#[test]
fn random_writes_keep_to_the_limit_of_open_zones() {
    let mut writer = spec(Direction::Write, 0..8);
    writer.work.pattern = RANDOM;
    writer.stop.operations = Some(100);
    let (results, _, zones) = run_on(&tiny(&[]), 0..0, Some(2), FREE, &[writer]);
    assert_eq!(results[0].first_error, None);
    assert_eq!(count(&results[0], Direction::Write), 100);
    assert!(zones.borrow().open_zones().len() <= 2);
    let mut open = std::collections::BTreeMap::new();
    for place in places(&results[0]) {
        let written = open.entry(place / 16).or_insert(0);
        *written += 1;
        if *written == 15 {
            open.remove(&(place / 16));
        }
        assert!(open.len() <= 2, "{open:?}");
    }
}

#[test]
fn reads_stay_below_the_write_pointer() {
    let mut writer = spec(Direction::Write, 2..4);
    writer.stop.operations = Some(20);
    let mut reader = spec(Direction::Read, 0..8);
    reader.work.pattern = RANDOM;
    reader.start = Nanos::from_ms(100);
    reader.stop.operations = Some(500);
    let mut in_order = spec(Direction::Read, 0..8);
    in_order.start = Nanos::from_ms(100);
    let (results, _) = run(0..0, &[writer, reader, in_order]);
    let written: Vec<u64> = (32..47).chain(48..53).collect();
    let mut read = places(&results[1]);
    read.sort_unstable();
    read.dedup();
    assert_eq!(read, written, "all that was written, and nothing else");
    assert_eq!(places(&results[2]), written);
}

#[test]
fn nothing_to_read_is_the_end() {
    let (results, end) = run(0..0, &[spec(Direction::Read, 0..8)]);
    assert_eq!(
        (count(&results[0], Direction::Read), end.at),
        (0, Nanos::ZERO)
    );
}

#[test]
fn resets_take_each_zone_with_data_once() {
    let mut resets = spec(Direction::Trim, 0..8);
    resets.work.pattern = RANDOM;
    let (results, _) = run(1..6, &[resets]);
    assert_eq!(count(&results[0], Direction::Trim), 5);
    let mut zones: Vec<u64> = places(&results[0]).iter().map(|place| place / 16).collect();
    assert_ne!(zones, [1, 2, 3, 4, 5], "in random order");
    zones.sort_unstable();
    assert_eq!(zones, [1, 2, 3, 4, 5]);
    let stats = results[0].recorder.directions[2].as_ref().unwrap();
    assert_eq!(stats.bytes, 5 * 16 * PAGE_BYTES, "zone sizes");
}

#[test]
fn a_finish_counts_what_it_fills() {
    let mut finishes = spec(Direction::Write, 0..3);
    finishes.work.style = WriteStyle::Finish;
    let (results, _) = run(0..0, &[finishes.clone()]);
    let stats = results[0].recorder.directions[1].as_ref().unwrap();
    assert_eq!((stats.operations, stats.bytes), (3, 3 * 14 * PAGE_BYTES));
    assert_eq!(results[0].recorder.counts[OpKind::Finish as usize], 3);
    assert_eq!(
        results[0].recorder.counts[OpKind::Write as usize],
        0,
        "only prepares"
    );

    // From the host: 14 pages one by one, with a pause after each but the last.
    let how = SoftFinish::new(PAGE, US(50), PAGE).expect("a page is one transfer");
    finishes.work.style = WriteStyle::SoftFinish(how);
    let (results, _) = run(0..0, &[finishes]);
    let stats = results[0].recorder.directions[1].as_ref().unwrap();
    assert_eq!((stats.operations, stats.bytes), (3, 3 * 14 * PAGE_BYTES));
    let expected = 14 * 725 + 13 * 50;
    assert_eq!(stats.total.moments().min(), Some(US(expected).0));
}

#[test]
fn jobs_that_finish_the_same_zones_finish_each_once() {
    let mut finishes = spec(Direction::Write, 2..6);
    finishes.work.style = WriteStyle::Finish;
    let mut resets = spec(Direction::Trim, 2..6);
    resets.work.pattern = RANDOM;
    let (results, end) = run(0..0, &vec![finishes; 3]);
    assert_eq!(end.stuck_jobs, 0);
    let all: u64 = results
        .iter()
        .map(|result| count(result, Direction::Write))
        .sum();
    assert_eq!(all, 4);
    let (results, end) = run(2..6, &vec![resets; 3]);
    assert_eq!(end.stuck_jobs, 0);
    let all: u64 = results
        .iter()
        .map(|result| count(result, Direction::Trim))
        .sum();
    assert_eq!(all, 4);
}

/// The jobs with which published results are compared do the same.
#[test]
fn paced_finishes_are_those_of_the_experiments() {
    let rate = NonZeroU64::new(5 << 20).unwrap();
    let work = Work::Finish {
        zones: 0..6,
        fill: Fill {
            lbas: u64::from(PAGE),
            block_lbas: PAGE,
            ..Fill::default()
        },
        soft: None,
    };
    let mut plain = plain_spec(work);
    plain.rate = Some(Limit::bytes_per_second(rate));
    let device = tiny(&[]);
    let mut job = WorkloadJob::new(plain, device.info(), Rng::new(1, 0), StopSignal::default());
    let expected = run_alone(&device, &mut job);

    let mut finishes = spec(Direction::Write, 0..6);
    finishes.work.style = WriteStyle::Finish;
    finishes.work.flows[1] = Some(Flow {
        bytes_per_second: Some(rate),
        ..flow()
    });
    let (results, end) = run(0..0, &[finishes]);
    assert_eq!(end.at, expected.at);
    let theirs = job.into_result();
    let theirs = theirs.recorder.stats.get(OpKind::Finish).unwrap();
    let ours = results[0].recorder.directions[1].as_ref().unwrap();
    assert_eq!((ours.operations, ours.bytes), (6, theirs.bytes));
    assert_eq!(ours.total.moments().mean(), theirs.latency.mean_ns());
}

#[test]
fn each_direction_has_its_own_rate() {
    let mut mixed = spec(Direction::Read, 0..8);
    mixed.work.flows[1] = Some(flow());
    mixed.work.pattern = RANDOM;
    let rate = |ops: u64| {
        Some(Flow {
            ops_per_second: NonZeroU64::new(ops),
            ..flow()
        })
    };
    mixed.work.flows[0] = rate(200);
    mixed.work.flows[1] = rate(50);
    mixed.stop.runtime = Some(Nanos::from_secs(2));
    let (results, _) = run(0..8, &[mixed]);
    assert!(count(&results[0], Direction::Read).abs_diff(400) <= 2);
    assert!(count(&results[0], Direction::Write).abs_diff(100) <= 2);
}

#[test]
fn poisson_arrivals_have_the_mean_of_the_rate() {
    let mut reader = spec(Direction::Read, 0..8);
    reader.work.pattern = RANDOM;
    reader.work.flows[0] = Some(Flow {
        ops_per_second: NonZeroU64::new(1_000),
        poisson: true,
        ..flow()
    });
    reader.queue_depth = 16;
    reader.stop.runtime = Some(Nanos::from_secs(4));
    let (results, _) = run(0..8, &[reader]);
    // 4000 arrivals with a standard deviation of 63.
    assert!(count(&results[0], Direction::Read).abs_diff(4_000) < 300);
    let times: Vec<u64> = results[0].recorder.log.iter().map(|s| s.at.0).collect();
    let short = times
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < 500_000)
        .count();
    // 39 % of exponential gaps are below half the mean; of even ones none.
    assert!(short > 1_000, "{short}");
}

#[test]
fn thinking_waits_for_what_is_in_flight() {
    let mut writer = spec(Direction::Write, 0..1);
    writer.queue_depth = 4;
    writer.think = Some(Think {
        time: Nanos::from_ms(10),
        after_ops: 5,
        after_time: None,
    });
    let (results, end) = run(0..0, &[writer]);
    assert_eq!(count(&results[0], Direction::Write), 15);
    let times: Vec<u64> = results[0].recorder.log.iter().map(|s| s.at.0).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let long: Vec<usize> = (1..)
        .zip(&gaps)
        .filter(|(_, gap)| **gap >= 10_000_000)
        .map(|(n, _)| n)
        .collect();
    assert_eq!(long, [5, 10], "{times:?}");
    assert!(end.at > Nanos::from_ms(20));
}

/// A pause comes between operations: never between the write in front of a
/// finish and the finish, nor between the writes of a softfinish.
#[test]
fn thinking_does_not_interrupt_an_operation() {
    let how = SoftFinish::new(PAGE, Nanos::ZERO, PAGE).expect("a page is one transfer");
    for (style, operation) in [
        (WriteStyle::Finish, None),
        (WriteStyle::SoftFinish(how), Some(14 * 725)),
    ] {
        let mut finishes = spec(Direction::Write, 0..3);
        finishes.work.style = style;
        let (_, without) = run(0..0, &[finishes.clone()]);
        finishes.think = Some(Think {
            time: Nanos::from_ms(10),
            after_ops: 1,
            after_time: None,
        });
        let (results, end) = run(0..0, &[finishes]);
        assert_eq!(count(&results[0], Direction::Write), 3);
        // The last pause is cut short by there being no more zones, or not.
        let pauses = (end.at - without.at).0 / 10_000_000;
        assert_eq!((end.at - without.at).0 % 10_000_000, 0, "{style:?}");
        assert!((2..=3).contains(&pauses), "{style:?}: {pauses} pauses");
        let stats = results[0].recorder.directions[1].as_ref().unwrap();
        if let Some(us) = operation {
            assert_eq!(stats.total.moments().max(), Some(US(us).0));
        }
    }
}

/// Of a zone that the write in front fills, a softfinish has nothing to do.
#[test]
fn softfinishes_of_full_zones_are_not_counted() {
    let how = SoftFinish::new(PAGE, Nanos::ZERO, PAGE).expect("a page is one transfer");
    let mut finishes = spec(Direction::Write, 0..3);
    finishes.work.style = WriteStyle::SoftFinish(how);
    finishes.work.flows[1] = Some(Flow::unlimited(Sizes::fixed(15 * PAGE)));
    let (results, end, zones) = run_on(&tiny(&[]), 0..0, None, FREE, &[finishes]);
    assert_eq!((results[0].first_error, end.stuck_jobs), (None, 0));
    assert_eq!(count(&results[0], Direction::Write), 0);
    assert!((0..3).all(|zone| zones.borrow().written(zone) == 15 * BLOCKS_PER_PAGE));
}

/// The end of a job is data: what is in flight when its time is over is measured
/// or not, by the same job.
#[test]
fn what_is_in_flight_at_the_end_is_measured_or_not() {
    let measured = |ending: Ending| {
        let mut writer = spec(Direction::Write, 0..8);
        writer.ending = ending;
        writer.queue_depth = 4;
        writer.recording.kinds = true;
        writer.stop.runtime = Some(US(10 * 725 + 1));
        let (results, _) = run(0..0, &[writer]);
        let by_kind = results[0].recorder.stats.get(OpKind::Write).unwrap();
        let count = count(&results[0], Direction::Write);
        assert_eq!(by_kind.latency.count(), count, "both ways of recording");
        assert_eq!(results[0].recorder.counts[OpKind::Write as usize], count);
        (count, results[0].operations)
    };
    let (at_last, all) = measured(Ending::AtLastCompletion);
    assert_eq!(at_last, all);
    let (at_decision, same) = measured(Ending::AtDecision);
    assert_eq!(same, all, "the same operations");
    assert!(at_decision < all, "{at_decision} of {all}");
}

#[test]
fn latency_has_two_parts() {
    let mut writer = spec(Direction::Write, 0..1);
    let directions = writer.recording.directions.as_mut().unwrap();
    directions.submission_percentiles = true;
    let (results, _, _) = run_on(&tiny(&[]), 0..0, None, costs_us(3, 2), &[writer]);
    let stats = results[0].recorder.directions[1].as_ref().unwrap();
    let of = |spread: &Spread| spread.moments().max();
    assert_eq!(of(&stats.submission), Some(3_000));
    assert_eq!(of(&stats.completion), Some(WRITE.0 + 2_000));
    assert_eq!(of(&stats.total), Some(WRITE.0 + 5_000));
}

#[test]
fn a_job_that_starts_later_is_not_woken_early() {
    let first = spec(Direction::Write, 0..1);
    let mut contender = first.clone();
    contender.queue_depth = 2;
    let mut late = spec(Direction::Read, 0..1);
    late.start = Nanos::from_ms(300);
    let (results, _) = run(0..0, &[first, contender, late]);
    assert_eq!(results[2].started, Nanos::from_ms(300));
    assert_eq!(count(&results[2], Direction::Read), 15);
}

#[test]
fn a_failed_operation_ends_its_job_and_is_named() {
    // The table does not know of the drive's limit, as if another host had
    // taken its resources.
    let device = tiny(&["zones.max_active=2", "zones.max_open=2"]);
    let mut writer = spec(Direction::Write, 0..8);
    writer.work.pattern = RANDOM;
    let mut zoned = device.info().namespaces[0].zoned.unwrap();
    zoned.max_active = None;
    zoned.max_open = None;
    let zones = SharedZones::new(ZoneTable::new(zoned, None));
    let stop = StopSignal::default();
    zones.borrow_mut().start_run(stop.bell().clone(), 1);
    let shared = Shared {
        zones: Some((zones, 0)),
        ..Shared::from(stop.clone())
    };
    let mut job = WorkloadJob::new(writer, device.info(), Rng::new(1, 0), shared);
    let queue = device.open_queue(job.depth(), FREE, Rng::new(2, 0));
    let mut reactor = Reactor::new(VirtualClock::default(), device, stop);
    reactor.add(&mut job, queue, CoreId(0), Nanos::ZERO);
    assert_eq!(reactor.run().stuck_jobs, 0);
    let result = job.into_result();
    assert_eq!(result.errors, 1);
    assert_eq!(
        result.first_error.map(|failed| failed.kind),
        Some(OpKind::Write)
    );
}
