//! When a workload issues, what of it is measured, and when it ends.

use core::num::NonZeroU64;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Nanos, Op, QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_host::rate::{Counting, Limit};
use zonelab_host::stats::{GroupStats, OpKind};
use zonelab_host::workload::directed::{DirectedWork, Direction, Pattern, Sizes};
use zonelab_host::workload::distribution::Distribution;
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::workload::{
    JobResult, JobSpec, ReadWork, Shared, Stop, Work, WorkloadJob, WriteWork,
};
use zonelab_host::{Job, NextWake, Rng, StopSignal};
use zonelab_nvme::Status;

use super::support::{
    CAPACITY, NO_FILL, Recorder, ZONE, job, large_info, record, spec, tiny_info, writes,
};

const MS: fn(u64) -> Nanos = Nanos::from_ms;
const US: fn(u64) -> Nanos = Nanos::from_us;

fn nz(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("not zero")
}

fn per_second(ops: u64) -> Option<Limit> {
    Some(Limit::ops_per_second(nz(ops)))
}

/// Sequential reads of a page, for ever unless something stops them.
fn reads() -> JobSpec {
    spec(Work::Read(ReadWork {
        zones: 0..4,
        block_lbas: 4,
        random: false,
    }))
}

fn resets(count: u32) -> JobSpec {
    spec(Work::Reset {
        zones: 0..count,
        shuffled: false,
        fill: NO_FILL,
    })
}

fn finishes(count: u32) -> JobSpec {
    spec(Work::Finish {
        zones: 0..count,
        fill: NO_FILL,
        soft: None,
    })
}

/// Runs a specification on a device of large zones that takes `latency`.
fn run(spec: JobSpec, latency: Nanos) -> (JobResult, Nanos, Vec<Nanos>) {
    let mut queue = Recorder::steady(large_info(), latency);
    let (result, end) = record(spec, &mut queue);
    (result, end, queue.log.iter().map(|(at, _)| *at).collect())
}

fn count(result: &JobResult, kind: OpKind) -> u64 {
    result
        .recorder
        .stats
        .get(kind)
        .map_or(0, |stats| stats.latency.count())
}

/// 24 resets at a rate: the first at once, the n-th n - 1 periods later, and
/// the run ends with the last (ConfZNS++ (SYSTOR'24), figure 11).
#[test]
fn resets_at_a_rate_end_after_23_periods_and_one_reset() {
    let (result, end, starts) = run(
        JobSpec {
            rate: per_second(10),
            ..resets(24)
        },
        MS(77),
    );
    assert_eq!(starts, (0..24).map(|n| MS(100 * n)).collect::<Vec<_>>());
    assert_eq!(end, MS(23 * 100 + 77));
    assert_eq!((result.ended, result.operations), (end, 24));
    assert_eq!(count(&result, OpKind::Reset), 24);
}

/// The same as bytes: each counts as the zone size, 4 GiB here.
#[test]
fn resets_count_as_the_zone_size() {
    let limit = Limit::bytes_per_second(nz(40 << 30));
    let (_, end, _) = run(
        JobSpec {
            rate: Some(limit),
            ..resets(24)
        },
        MS(77),
    );
    assert_eq!(end, MS(23 * 100 + 77));
}

/// A finish is counted when it is done: two pass before the limit acts.
#[test]
fn two_finishes_pass_before_the_limit_acts() {
    // Each fills 4 GiB, in 100 ms; half of that speed is allowed.
    let limit = Limit::bytes_per_second(nz(20 << 30));
    let (_, end, starts) = run(
        JobSpec {
            rate: Some(limit),
            ..finishes(6)
        },
        MS(100),
    );
    assert_eq!(starts, [0, 100, 200, 400, 600, 800].map(MS));
    assert_eq!(end, MS(900));
}

#[test]
fn a_limit_above_what_the_drive_does_changes_nothing() {
    let spec = JobSpec {
        rate: per_second(1_000_000),
        ..resets(5)
    };
    let (_, end, starts) = run(spec, MS(10));
    assert_eq!(starts, [0, 10, 20, 30, 40].map(MS));
    assert_eq!(end, MS(50));
}

/// The limit is the job's, not of each operation in flight.
#[test]
fn a_deep_queue_keeps_the_limit() {
    let stop = Stop {
        runtime: Some(MS(1_000)),
        ..Stop::default()
    };
    let spec = JobSpec {
        rate: per_second(100),
        queue_depth: 8,
        stop,
        ..reads()
    };
    let (_, _, starts) = run(spec, MS(35));
    assert_eq!(
        starts[..50],
        (0..50).map(|n| MS(10 * n)).collect::<Vec<_>>()
    );
}

/// The writes that prepare a zone are neither limited nor counted.
#[test]
fn a_fill_is_not_limited() {
    let fill = zonelab_host::workload::Fill {
        lbas: 3,
        block_lbas: 1,
        ..zonelab_host::workload::Fill::default()
    };
    let work = Work::Reset {
        zones: 0..3,
        shuffled: false,
        fill,
    };
    let (result, end, starts) = run(
        JobSpec {
            rate: per_second(10),
            ..spec(work)
        },
        MS(1),
    );
    // Three writes and a reset of 1 ms, and the next zone at its time.
    let zone = |n: u64| (0..4).map(move |step| MS(100 * n + step));
    let expected: Vec<_> = zone(0).chain(zone(1).map(|at| at - MS(0))).collect();
    assert_eq!(starts[..4], expected[..4]);
    assert_eq!(result.operations, 3);
    assert_eq!(count(&result, OpKind::Write), 0);
    // The third reset is due 200 ms after the first.
    assert!(end >= MS(200) && end < MS(220), "{end}");
}

#[test]
fn the_ramp_is_done_and_not_measured() {
    let stop = Stop {
        runtime: Some(MS(100)),
        ..Stop::default()
    };
    let (result, end, starts) = run(
        JobSpec {
            ramp: MS(50),
            stop,
            ..reads()
        },
        MS(1),
    );
    assert_eq!((starts.len(), end), (150, MS(150)));
    // A completion at the very end of the ramp counts, and one at the very end
    // of the run does too.
    assert_eq!(count(&result, OpKind::Read), 101);
    assert_eq!(result.operations, 150);
    assert_eq!(result.recorder.stats.run_time(), Some(MS(100)));
    assert_eq!((result.started, result.ended), (MS(0), MS(150)));
}

#[test]
fn first_writes_of_the_ramp_are_not_measured() {
    let stop = Stop {
        operations: Some(10),
        ..Stop::default()
    };
    let work = writes(0..10, 1 << 20);
    let (result, _, _) = run(
        JobSpec {
            ramp: US(3_500),
            stop,
            ..spec(Work::Write(work))
        },
        MS(1),
    );
    assert_eq!(count(&result, OpKind::Write), 7);
    assert_eq!(result.recorder.first_writes.count(), 7);
}

#[test]
fn a_runtime_ends_with_what_is_in_flight() {
    let stop = Stop {
        runtime: Some(MS(10)),
        ..Stop::default()
    };
    let (result, end, starts) = run(
        JobSpec {
            queue_depth: 2,
            stop,
            ..reads()
        },
        MS(4),
    );
    // At 0, 4 and 8 ms, two each; nothing new from 10 ms on.
    assert_eq!(starts, [0, 0, 4, 4, 8, 8].map(MS));
    assert_eq!(end, MS(12));
    assert_eq!(
        result.recorder.stats.run_time(),
        Some(MS(12)),
        "what was in flight counts, and so does its time"
    );
    assert_eq!(result.ended, MS(12));
}

#[test]
fn a_number_of_bytes_is_reached_by_the_last_operation() {
    // Operations of 16 KiB; 100,000 bytes are seven of them.
    let stop = Stop {
        bytes: Some(100_000),
        ..Stop::default()
    };
    let (result, end, starts) = run(JobSpec { stop, ..reads() }, MS(1));
    assert_eq!((starts.len(), end), (7, MS(7)));
    assert_eq!(
        result.recorder.stats.get(OpKind::Read).unwrap().bytes,
        7 * 16_384
    );
}

/// Work that is exhausted is measured to its last operation, though they come
/// back one by one.
#[test]
fn the_last_operations_of_a_deep_queue_are_measured() {
    for depth in [1, 4, 32] {
        let mut turn = 0;
        let mut queue = Recorder::new(large_info(), move |_| {
            turn += 1;
            (US(1_000 + turn), Status::SUCCESS)
        });
        let work = Work::Write(writes(0..1, 1 << 14));
        let (result, _) = record(
            JobSpec {
                queue_depth: depth,
                ..spec(work)
            },
            &mut queue,
        );
        assert_eq!(queue.log.len(), 64);
        assert_eq!(count(&result, OpKind::Write), 64, "depth {depth}");
    }
}

/// Latencies drawn from two values, 10 us and, one time in ten, 910 us: their
/// mean is 100 us, and their spread 270 us.
fn two_valued(seed: u64) -> impl FnMut(&Op) -> (Nanos, Status) + 'static {
    let mut rng = Rng::new(seed, 9);
    move |_| {
        (
            US(if rng.below(10) == 0 { 910 } else { 10 }),
            Status::SUCCESS,
        )
    }
}

#[test]
fn confidence_ends_a_run_near_the_true_mean() {
    let mut within = 0;
    for seed in 0..20 {
        let mut queue = Recorder::new(large_info(), two_valued(seed));
        let stop = Stop {
            runtime: Some(Nanos::from_secs(600)),
            confidence: Some(0.01),
            confidence_after: Nanos::from_secs(2),
            ..Stop::default()
        };
        let (result, end) = record(JobSpec { stop, ..reads() }, &mut queue);
        assert!(end >= Nanos::from_secs(2), "not before it may: {end}");
        assert!(
            end < Nanos::from_secs(200),
            "long before its runtime: {end}"
        );
        let stats = result.recorder.stats.get(OpKind::Read).unwrap();
        let mean = stats.latency.mean_ns().unwrap() / 1e5;
        let rate = stats.intervals.mean_iops().unwrap() / 1e4;
        assert!(
            (mean - 1.0).abs() < 0.03 && (rate - 1.0).abs() < 0.03,
            "{mean}, {rate}"
        );
        within += u32::from((mean - 1.0).abs() <= 0.01);
    }
    // The interval is one of 95 %; looking at it again and again costs a little.
    assert!(
        within >= 16,
        "the true mean is inside in {within} of 20 runs"
    );
}

#[test]
fn confidence_waits_for_its_time_and_no_longer() {
    let stop = Stop {
        confidence: Some(0.05),
        confidence_after: Nanos::from_secs(60),
        ..Stop::default()
    };
    let (_, end, _) = run(JobSpec { stop, ..reads() }, MS(1));
    assert!(
        end >= Nanos::from_secs(60) && end < Nanos::from_secs(61),
        "{end}"
    );
}

/// An operation that fails ends the job, which says what failed.
#[test]
fn an_error_ends_the_job() {
    let mut left = 5;
    let mut queue = Recorder::new(large_info(), move |_| {
        left -= 1;
        (
            MS(1),
            if left == 0 {
                Status::ZONE_IS_READ_ONLY
            } else {
                Status::SUCCESS
            },
        )
    });
    let (result, end) = record(spec(Work::Write(writes(0..1, 1))), &mut queue);
    assert_eq!((queue.log.len(), end), (5, MS(5)));
    assert_eq!(
        result
            .first_error
            .map(|failed| (failed.kind, failed.status)),
        Some((OpKind::Write, Status::ZONE_IS_READ_ONLY))
    );
    let stats = result.recorder.stats.get(OpKind::Write).unwrap();
    assert_eq!(stats.latency.count(), 4);
    assert_eq!(stats.errors, [(Status::ZONE_IS_READ_ONLY, 1)]);
}

#[test]
fn an_error_in_the_preparation_ends_the_job_too() {
    let mut queue = Recorder::new(large_info(), |op| {
        let fails = matches!(op, Op::ZoneSend { .. });
        (
            MS(1),
            if fails {
                Status::ZONE_IS_OFFLINE
            } else {
                Status::SUCCESS
            },
        )
    });
    let work = WriteWork {
        reset_first: true,
        ..writes(0..2, 4)
    };
    let (result, end) = record(spec(Work::Write(work)), &mut queue);
    assert_eq!((queue.log.len(), end), (1, MS(1)));
    assert_eq!(
        result
            .first_error
            .map(|failed| (failed.kind, failed.status)),
        Some((OpKind::Reset, Status::ZONE_IS_OFFLINE))
    );
}

/// A job that is told to stop issues nothing more and takes what is in flight. If the
/// reason is that the device is gone, it has been cut off unless its work was done, even
/// if all that it had issued succeeded.
#[test]
fn a_stop_signal_ends_a_workload() {
    let stop: fn(&StopSignal) = StopSignal::stop;
    let lose: fn(&StopSignal) = StopSignal::device_is_lost;
    for (tell, limit, is_cut_off) in [
        (&[stop][..], None, false),
        (&[lose], None, true),
        (&[lose], Some(12), false),
        (&[stop, lose], None, false),
        (&[lose, stop], None, true),
    ] {
        let signal = StopSignal::default();
        let mut queue = Recorder::steady(large_info(), MS(1));
        let info = large_info();
        let rng = Rng::new(1, 0);
        let mut spec = JobSpec {
            queue_depth: 3,
            ..reads()
        };
        spec.stop.operations = limit;
        let mut job = WorkloadJob::new(spec, &info, rng, signal.clone());
        while queue.log.len() < 12 {
            assert_eq!(queue.run(&mut job, 1), None, "it would go on");
        }
        tell.iter().for_each(|tell| tell(&signal));
        assert!(queue.run(&mut job, 10).is_some());
        assert_eq!(queue.log.len(), 12);
        let result = job.into_result();
        assert_eq!((result.operations, result.errors), (12, 0));
        assert_eq!(result.is_cut_off, is_cut_off, "{limit:?}");
    }
}

/// What a job asks for when it has nothing to do until its limiter lets it.
#[test]
fn a_throttled_job_says_when_to_wake_it() {
    let mut queue = Recorder::steady(large_info(), MS(1));
    let mut job = job(
        JobSpec {
            rate: per_second(10),
            ..resets(2)
        },
        &large_info(),
        1,
    );
    let mut done = Vec::new();
    assert_eq!(job.step(MS(0), &mut done, &mut queue), NextWake::Completion);
    assert_eq!(queue.run(&mut job, 1), None);
    queue.poll(&mut done);
    assert_eq!(
        job.step(queue.now(), &mut done, &mut queue),
        NextWake::At(MS(100))
    );
}

/// A queue pair whose device has gone away.
struct Gone(DeviceInfo);

impl QueuePair for Gone {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn now(&self) -> Nanos {
        MS(3)
    }

    fn submit(&mut self, _: Command, _: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let reason = RejectReason::Disconnected;
        Err(Rejected { reason, data })
    }

    fn ring(&mut self) {}

    fn poll(&mut self, _: &mut Vec<Completion>) -> usize {
        0
    }
}

/// A job with nothing in flight, whose device takes nothing any more, ends with
/// an error instead of trying for ever.
#[test]
fn a_device_that_is_gone_ends_the_job() {
    let paced = JobSpec {
        rate: per_second(10),
        ..resets(2)
    };
    let mut job = job(paced, &large_info(), 1);
    let next = job.step(MS(3), &mut Vec::new(), &mut Gone(large_info()));
    assert_eq!(next, NextWake::Finished);
    let result = job.into_result();
    let status = result.first_error.expect("the reset was refused").status;
    assert_eq!((result.operations, status), (0, Status::HOST_PATHING_ERROR));
}

#[test]
fn a_depth_of_nothing_is_one() {
    let (_, end, _) = run(
        JobSpec {
            queue_depth: 0,
            ..resets(2)
        },
        MS(1),
    );
    assert_eq!(end, MS(2));
}

/// Three periods of 25 ms, of which a finish takes 10: counted at its
/// completion as fio does, two go before any pause; counted when it begins,
/// one, and the run ends when the fourth would begin.
#[test]
fn whole_periods_of_a_square_wave() {
    let bytes = CAPACITY * 4096;
    let rate = Limit::bytes_per_second(nz(bytes * 40));
    let run = |counting, periods| {
        let stop = Stop {
            periods: Some(periods),
            ..Stop::default()
        };
        let spec = JobSpec {
            rate: Some(rate),
            counting,
            stop,
            ..finishes(6)
        };
        let mut queue = Recorder::steady(tiny_info(), MS(10));
        let (result, end) = record(spec, &mut queue);
        let starts: Vec<Nanos> = queue.log.iter().map(|(at, _)| *at).collect();
        (starts, end, result)
    };
    let (starts, end, result) = run(Some(Counting::AtIssue), 3);
    assert_eq!((starts, end), ([0, 25, 50].map(MS).to_vec(), MS(75)));
    let rate = GroupStats::of([&result.recorder.stats], OpKind::Finish)
        .unwrap()
        .iops();
    assert_eq!(rate, Some(40.0), "the pause belongs to it");
    let (starts, end, _) = run(None, 3);
    assert_eq!((starts, end), ([0, 10, 25].map(MS).to_vec(), MS(50)));
    // No zone is left for a seventh.
    let (starts, _, _) = run(Some(Counting::AtIssue), 9);
    assert_eq!(starts.len(), 6);
}

/// Without a limit a period is an operation.
#[test]
fn periods_of_an_unlimited_job_are_its_operations() {
    let stop = Stop {
        periods: Some(3),
        ..Stop::default()
    };
    let mut queue = Recorder::steady(tiny_info(), MS(10));
    let (result, end) = record(JobSpec { stop, ..resets(6) }, &mut queue);
    assert_eq!((result.operations, end), (3, MS(30)));
}

/// Shorter samples, shorter runs: 32 of them are the least.
#[test]
fn confidence_is_computed_from_samples_of_any_length() {
    for sample in [None, Some(MS(10))] {
        let stop = Stop {
            confidence: Some(0.01),
            confidence_sample: sample,
            ..Stop::default()
        };
        let mut queue = Recorder::steady(tiny_info(), MS(1));
        let (_, end) = record(JobSpec { stop, ..reads() }, &mut queue);
        let least = Nanos(32 * sample.unwrap_or(MS(500)).0);
        assert!(end >= least && end < least + MS(10), "{sample:?}: {end:?}");
    }
}

/// `randread:4` of fio: each random position is followed by three more in order.
#[test]
fn operations_in_a_row_follow_each_random_one() {
    let zoned = tiny_info().namespaces[0].zoned.expect("zones");
    let mut table = ZoneTable::new(zoned, None);
    table.declare_full(0..8);
    let mut work = DirectedWork::through(0..8, Direction::Read, Sizes::fixed(2));
    work.repeats = true;
    work.pattern = Pattern::Random {
        distribution: Distribution::Uniform,
        percent: [100; 3],
        in_a_row: 4,
        is_identical: false,
    };
    let mut spec = JobSpec::new("rows", work);
    spec.stop.operations = Some(400);
    let shared = Shared {
        zones: Some((SharedZones::new(table), 0)),
        ..Shared::default()
    };
    let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(3, 0), shared);
    let mut queue = Recorder::steady(tiny_info(), Nanos::from_us(10));
    queue.run(&mut job, 10_000).expect("it ends");
    let places: Vec<u64> = queue.ops().iter().map(Op::first_block).collect();
    assert_eq!(places.len(), 400);
    let follows = |pair: &[u64]| pair[1] == pair[0] + 2;
    for row in places.chunks(4) {
        // The next of the last block of a zone is in the next zone, or the first.
        let crosses = |pair: &[u64]| pair[0] % ZONE == CAPACITY - 2 && pair[1].is_multiple_of(ZONE);
        assert!(
            row.windows(2).all(|pair| follows(pair) || crosses(pair)),
            "{row:?}"
        );
    }
    let rows: Vec<u64> = places.iter().copied().step_by(4).collect();
    let in_order = places
        .chunks(4)
        .zip(&rows[1..])
        .filter(|(row, next)| follows(&[row[3], **next]));
    assert!(in_order.count() < 10, "the first of a row is drawn");
}

/// Reads that fail are counted and do not end a job that tolerates them; a device
/// that is gone ends it.
#[test]
fn tolerated_errors_are_counted_only() {
    for (reads, status, operations) in [
        (true, Status::UNRECOVERED_READ_ERROR, 60),
        (false, Status::UNRECOVERED_READ_ERROR, 1),
        (true, Status::HOST_PATHING_ERROR, 1),
    ] {
        let zoned = tiny_info().namespaces[0].zoned.expect("zones");
        let mut table = ZoneTable::new(zoned, None);
        table.declare_full(0..1);
        let work = DirectedWork::through(0..1, Direction::Read, Sizes::fixed(1));
        let mut spec = JobSpec::new("reads", work);
        spec.tolerates.reads = reads;
        let shared = Shared {
            zones: Some((SharedZones::new(table), 0)),
            ..Shared::default()
        };
        let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(3, 0), shared);
        let mut queue = Recorder::new(tiny_info(), move |_| (Nanos::from_us(10), status));
        queue.run(&mut job, 10_000).expect("it ends");
        assert_eq!(queue.ops().len(), operations);
        let result = job.into_result();
        assert_eq!(result.errors, operations as u64);
        assert_eq!(
            result
                .first_error
                .map(|failed| (failed.kind, failed.status)),
            Some((OpKind::Read, status))
        );
    }
}

/// A job that waits for another starts when that has ended, not before, and its
/// time counts from then on.
#[test]
fn a_job_starts_after_those_that_it_waits_for() {
    let waited = StopSignal::default();
    let work = DirectedWork::through(0..1, Direction::Write, Sizes::fixed(1));
    let spec = JobSpec::new("waits", work);
    let shared = Shared {
        starts_after: vec![waited.clone()],
        ..Shared::default()
    };
    let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(3, 0), shared);
    let mut queue = Recorder::steady(tiny_info(), Nanos::from_us(10));
    assert_eq!(queue.run(&mut job, 10_000), None, "it waits");
    assert!(queue.ops().is_empty());
    queue.now = Nanos::from_us(500);
    waited.stop();
    let end = queue.run(&mut job, 10_000);
    assert_eq!(end, Some(Nanos::from_us(500 + 600)));
    assert_eq!(job.into_result().started, Nanos::from_us(500));
}
