//! Jobs that finish zones by writes.

use core::num::NonZeroU64;

use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_host::rate::{Counting, Limit};
use zonelab_host::softfinish::{SoftFinish, max_transfer_lbas};
use zonelab_host::stats::{GroupStats, OpKind};
use zonelab_host::workload::{Fill, JobResult, JobSpec, Stop, Work};
use zonelab_host::{CoreId, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::Drive;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, FaultyDrive, Match, Trigger};
use zonelab_ssd::profile::builtin;
use zonelab_ssd::record::{Counter, Record, RecordLimits};

use super::support::{
    CAPACITY, FREE, NO_FILL, PAGE, Recorder, WRITE, ZONE, costs_us, job, record, run_on_cores,
    spec, tiny, tiny_info, writes,
};

const US: fn(u64) -> Nanos = Nanos::from_us;
const MS: fn(u64) -> Nanos = Nanos::from_ms;
const LBA: u64 = 4096;

fn filled(lbas: u64) -> Fill {
    Fill {
        lbas,
        block_lbas: PAGE,
        ..Fill::default()
    }
}

/// Finishes of `zones` with `fill` blocks, by writes if `soft` says how.
fn finishes(zones: std::ops::Range<u32>, fill: Fill, soft: Option<SoftFinish>) -> JobSpec {
    spec(Work::Finish { zones, fill, soft })
}

fn how(granularity_lbas: u32, pause: Nanos) -> Option<SoftFinish> {
    Some(SoftFinish::new(granularity_lbas, pause, 1 << 20).expect("within the ranges"))
}

/// Runs a job, with a record of what the drive saw.
fn run(device: &Emulated, costs: HostCosts, spec: JobSpec) -> (JobResult, RunEnd, Record) {
    device.with_drive(|drive| drive.record(&RecordLimits::everything(100_000)));
    let mut job = job(spec, device.info(), 1);
    let end = run_on_cores(device, costs, &mut [(&mut job, 0)]);
    assert_eq!(end.stuck_jobs, 0);
    let record = device.with_drive(Drive::take_record);
    (job.into_result(), end, record)
}

fn group(result: &JobResult) -> GroupStats {
    GroupStats::of([&result.recorder.stats], OpKind::Finish).expect("it finished zones")
}

/// Operations that were measured.
fn count(result: &JobResult) -> u64 {
    let stats = result.recorder.stats.get(OpKind::Finish);
    stats.map_or(0, |stats| stats.latency.count())
}

/// Blocks that the host wrote to a zone, and the state of the zone.
fn zone(device: &Emulated, zone: u32) -> (u64, ZoneState) {
    let zone = ZoneId(zone);
    device.with_drive(|drive| (drive.zones().host_lbas(zone), drive.zones().state(zone)))
}

/// What the drive saw of a softfinish, to the nanosecond: the host's costs
/// around each write, the pause between them, one in flight, and the shorter
/// last one.
#[test]
fn a_drive_sees_one_write_at_a_time_and_pauses_between() {
    let device = tiny(&[]);
    let spec = JobSpec {
        queue_depth: 4,
        ..finishes(1..3, filled(4), how(6, US(50)))
    };
    let (result, _, record) = run(&device, costs_us(3, 4), spec);
    // 56 blocks: nine writes of 6 and one of 2, behind the page of the fill.
    let mut at = Nanos::ZERO;
    let mut commands = record.commands.records.iter();
    for zone in [1, 2] {
        let mut latency = Nanos::ZERO;
        let sizes = [4].into_iter().chain([6; 9]).chain([2]);
        let mut next = zone * ZONE;
        for (n, nlb) in sizes.enumerate() {
            let command = commands.next().expect("another write");
            assert_eq!(
                command.op,
                Op::Write {
                    slba: Lba(next),
                    nlb
                }
            );
            // The doorbell is 3 us after the decision.
            assert_eq!(command.submitted, at + US(3), "write {n} of zone {zone}");
            let (done, status) = command.completed.expect("it completed");
            assert_eq!(status, Status::SUCCESS);
            next += u64::from(nlb);
            let seen = done + US(4);
            if n > 0 {
                latency += seen - at;
            }
            let pauses = n > 0 && n < 10;
            at = if pauses { seen + US(50) } else { seen };
            if pauses {
                latency += US(50);
            }
        }
        let stats = result
            .recorder
            .stats
            .get(OpKind::Finish)
            .expect("it finished zones");
        assert_eq!(stats.latency.max(), Some(latency));
    }
    assert_eq!((commands.next(), result.ended), (None, at));
    let in_flight = record.counters.records.iter();
    let most = in_flight.filter(|record| record.counter == Counter::CommandsInFlight);
    assert_eq!(most.map(|record| record.value).max(), Some(1));
    let group = group(&result);
    assert_eq!((group.latency.count(), group.bytes), (2, 2 * 56 * LBA));
    assert_eq!((result.operations, count(&result)), (2, 2));
    assert!(
        result.recorder.stats.get(OpKind::Write).is_none(),
        "parts are not operations"
    );
    for index in [1, 2] {
        assert_eq!(zone(&device, index), (CAPACITY, ZoneState::FULL));
    }
    assert_eq!(zone(&device, 3), (0, ZoneState::EMPTY));
}

/// What is counted is what a finish by the device counts; what crosses the
/// link and is programmed for the host differs.
#[test]
fn the_link_carries_a_softfinish_and_no_finish() {
    let ran = |settings: &[&str], soft: Option<SoftFinish>| {
        let device = tiny(settings);
        let (result, ..) = run(&device, FREE, finishes(0..3, filled(4), soft));
        (group(&result), device.with_drive(|drive| drive.totals()))
    };
    let unwritten = (CAPACITY - 4) * LBA;
    let (by_device, totals) = ran(&[], None);
    assert_eq!(by_device.bytes, 3 * unwritten);
    assert_eq!(by_device.link_bytes_per_operation(), Some(0.0));
    assert_eq!((totals.host_write_bytes, totals.finishes), (3 * 4 * LBA, 3));
    assert_eq!(totals.fill_program_bytes, 3 * unwritten);

    let (by_host, totals) = ran(&[], how(8, Nanos::ZERO));
    assert_eq!(by_host.bytes, 3 * unwritten);
    assert_eq!(by_host.link_bytes_per_operation(), Some(unwritten as f64));
    assert_eq!(
        (totals.host_write_bytes, totals.finishes),
        (3 * CAPACITY * LBA, 0)
    );
    assert_eq!(totals.fill_program_bytes, 0);
    assert_eq!(
        by_host.latency.max(),
        Some(US(7 * 725)),
        "two dies at a time"
    );
    assert_eq!(by_host.latency.max(), by_device.latency.max());

    // 64 KiB a millisecond: 32 KiB take half of one.
    let link = ["front_end.link=65536000B/s"];
    let (slow_host, _) = ran(&link, how(8, Nanos::ZERO));
    assert_eq!(slow_host.latency.max(), Some(US(7 * (725 + 500))));
    let (slow_device, _) = ran(&link, None);
    assert_eq!(slow_device.latency.max(), by_device.latency.max());
}

/// The settle before it and its pauses are sleeps; nothing else is.
#[test]
fn sleeps_last_longer_by_the_slack() {
    let fill = Fill {
        settle: MS(1),
        ..filled(4)
    };
    let ran = |pause: Nanos, sleep_slack: Nanos, fill: Fill| {
        let spec = JobSpec {
            sleep_slack,
            ..finishes(0..1, fill, how(8, pause))
        };
        let (result, end, _) = run(&tiny(&[]), FREE, spec);
        (group(&result).latency.max().expect("one"), end.at)
    };
    let writes = US(7 * 725);
    let slack = US(57);
    assert_eq!(ran(Nanos::ZERO, slack, filled(4)), (writes, WRITE + writes));
    let (latency, end) = ran(US(50), slack, fill);
    assert_eq!(latency, writes + US(6 * 107));
    assert_eq!(end, WRITE + MS(1) + slack + latency);
}

/// The job reports the first error, of the operation that it was part of, and
/// the zone stays as it is.
#[test]
fn a_failed_write_fails_the_softfinish() {
    let config = device_config(&[]);
    let mut when = Match::every(Trigger::Write);
    when.skip = 18;
    let faults = vec![Fault {
        when,
        effect: Effect::Fail(Status::WRITE_FAULT),
    }];
    let plan = FaultPlan { seed: 1, faults };
    let device = Emulated::new(FaultyDrive::new(Drive::new(&config), plan));
    // 15 writes of zone 0, three of zone 1, then the one that fails.
    let (result, end, _) = run(&device, FREE, finishes(0..3, NO_FILL, how(4, US(50))));
    let error = Some((OpKind::Finish, Status::WRITE_FAULT));
    assert_eq!(
        result
            .first_error
            .map(|failed| (failed.kind, failed.status)),
        error
    );
    assert_eq!((result.operations, count(&result)), (2, 1));
    let stats = result
        .recorder
        .stats
        .get(OpKind::Finish)
        .expect("one was done");
    assert_eq!(stats.errors, [(Status::WRITE_FAULT, 1)]);
    assert_eq!(
        (stats.bytes, stats.link_bytes),
        (CAPACITY * LBA, CAPACITY * LBA)
    );
    assert_eq!(zone(&device, 0), (CAPACITY, ZoneState::FULL));
    assert_eq!(zone(&device, 1), (12, ZoneState::IMPLICITLY_OPENED));
    assert_eq!(zone(&device, 2), (0, ZoneState::EMPTY));
    let paused = (14 + 3) * 50;
    assert!(end.at >= US(18 * 725 + paused), "{}", end.at);
}

/// The configuration of the tiny drive.
fn device_config(settings: &[&str]) -> zonelab_ssd::config::DriveConfig {
    tiny(settings).with_drive(|drive| drive.config().clone())
}

/// A softfinish of 6 ms of writes and 10 ms of pauses, over and over.
fn of_16_ms(stop: Stop) -> JobSpec {
    JobSpec {
        stop,
        ..finishes(0..8, NO_FILL, how(10, MS(2)))
    }
}

/// Runs a job on a device that takes 1 ms for a write.
fn paced(spec: JobSpec) -> (JobResult, Nanos, Vec<(Nanos, Op)>) {
    let mut queue = Recorder::steady(tiny_info(), MS(1));
    let (result, end) = record(spec, &mut queue);
    assert_eq!(queue.deepest, 1);
    (result, end, queue.log)
}

/// The time of the run ends a softfinish that is under way, at once if it is
/// pausing and else when its write has completed; it is not counted.
#[test]
fn the_run_time_ends_what_is_under_way() {
    let ends = [
        // In the pause before the last write of the first; in the second pause
        // of the second; in its second write; between the two.
        (US(14_500), US(14_500), 5, 0),
        (US(20_500), US(20_500), 8, 1),
        (US(19_500), US(20_000), 8, 1),
        (US(16_000), US(16_000), 6, 1),
        // In its last write: that makes it whole, as with a finish in flight, so that its time
        // counts, too.
        (US(15_999), US(16_000), 6, 1),
    ];
    for (runtime, end, writes, whole) in ends {
        let is_whole_behind = runtime == US(15_999);
        let stop = Stop {
            runtime: Some(runtime),
            ..Stop::default()
        };
        let (result, at, log) = paced(of_16_ms(stop));
        assert_eq!((at, log.len()), (end, writes), "{runtime}");
        assert_eq!(count(&result), whole, "{runtime}");
        assert_eq!(result.operations, whole, "{runtime}");
        assert_eq!(
            result.recorder.stats.run_time(),
            Some(if is_whole_behind {
                end
            } else {
                runtime.min(end)
            }),
            "{runtime}"
        );
        assert_eq!(result.first_error, None);
    }
}

/// A job that has had its number ends with the last write of the last one.
#[test]
fn a_number_of_softfinishes_is_completed() {
    let (operations, bytes, periods) = (Some(2), Some(CAPACITY * LBA + 1), Some(2));
    let none = Stop::default();
    for stop in [
        Stop { operations, ..none },
        Stop { bytes, ..none },
        Stop { periods, ..none },
    ] {
        for queue_depth in [1, 3] {
            let spec = JobSpec {
                queue_depth,
                ..of_16_ms(stop)
            };
            let (result, end, log) = paced(spec);
            assert_eq!((end, log.len()), (MS(32), 12), "{stop:?}");
            assert_eq!((result.operations, count(&result)), (2, 2), "{stop:?}");
            let latency = &result
                .recorder
                .stats
                .get(OpKind::Finish)
                .expect("two")
                .latency;
            assert_eq!((latency.min(), latency.max()), (Some(MS(16)), Some(MS(16))));
            assert_eq!(group(&result).iops(), Some(2.0 / 0.032));
        }
    }
}

/// The one that ends the run takes a softfinish with it, out of its pause.
#[test]
fn a_signal_ends_what_is_under_way() {
    let leader = JobSpec {
        ends_run: true,
        ..spec(Work::Write(writes(0..1, 4)))
    };
    let sleeper = finishes(4..8, NO_FILL, how(4, Nanos::from_secs(60)));
    let device = tiny(&[]);
    let stop = StopSignal::default();
    let new = |spec: JobSpec, n: u64| {
        let rng = Rng::new(1, n);
        zonelab_host::workload::WorkloadJob::new(spec, device.info(), rng, stop.clone())
    };
    let mut jobs = [new(leader, 0), new(sleeper, 1)];
    let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop.clone());
    for (n, job) in (0..).zip(&mut jobs) {
        let queue = device.open_queue(1, FREE, Rng::new(2, u64::from(n)));
        reactor.add(job, queue, CoreId(n), Nanos::ZERO);
    }
    let end = reactor.run();
    let [leader, sleeper] = jobs.map(zonelab_host::workload::WorkloadJob::into_result);
    assert_eq!((end.at, end.stuck_jobs), (leader.ended, 0));
    assert_eq!((sleeper.ended, sleeper.operations), (leader.ended, 0));
    assert_eq!(zone(&device, 4), (4, ZoneState::IMPLICITLY_OPENED));
}

/// A rate delays a softfinish exactly as it delays a finish of the same
/// length, however operations are counted.
#[test]
fn rates_treat_a_softfinish_as_a_finish() {
    let limits = [
        Limit::ops_per_second(NonZeroU64::new(20).expect("not zero")),
        Limit::bytes_per_second(NonZeroU64::new(5 << 20).expect("not zero")),
        Limit::ops_per_second(NonZeroU64::new(1_000).expect("not zero")),
    ];
    let starts = |rate: Limit, counting: Option<Counting>, soft: Option<SoftFinish>| {
        let spec = JobSpec {
            rate: Some(rate),
            counting,
            ..finishes(0..8, NO_FILL, soft)
        };
        let answer = move |op: &Op| match op {
            Op::ZoneSend { action, .. } if *action == ZoneSendAction::FINISH => {
                (MS(16), Status::SUCCESS)
            }
            _ => (MS(1), Status::SUCCESS),
        };
        let mut queue = Recorder::new(tiny_info(), answer);
        let (result, end) = record(spec, &mut queue);
        assert_eq!(count(&result), 8);
        let first = |op: &Op| op.first_block().is_multiple_of(ZONE);
        let starts = queue.log.iter().filter(|(_, op)| first(op));
        (starts.map(|(at, _)| *at).collect::<Vec<_>>(), end)
    };
    for limit in limits {
        for counting in [None, Some(Counting::AtIssue), Some(Counting::AtCompletion)] {
            let by_device = starts(limit, counting, None);
            let by_host = starts(limit, counting, how(10, MS(2)));
            assert_eq!(by_host, by_device, "{limit:?} {counting:?}");
        }
    }
}

/// Zones without room are passed over, however many.
#[test]
fn full_zones_are_no_operations() {
    let (result, end, log) = paced(finishes(0..8, filled(CAPACITY), how(10, MS(2))));
    assert_eq!((result.operations, count(&result)), (0, 0));
    assert_eq!(
        (log.len(), end),
        (8 * 15, MS(8 * 15)),
        "nothing but the fill"
    );
}

/// Drives with a write buffer and with small zones, at the largest write that
/// each takes, and at one that fits neither their pages nor their capacity.
#[test]
fn zones_of_other_drives_end_full() {
    for (name, whole) in [("qlc-buffered", 30), ("small-zones", 10)] {
        let config = builtin(name).expect("it is built in").config;
        let most = config.front_end.max_transfer_bytes.expect("it has a limit");
        let most = max_transfer_lbas(most, config.lba_bytes);
        assert!(SoftFinish::new(most + 1, Nanos::ZERO, most).is_err());
        for granularity in [most, most / 2 - 1] {
            let device = Emulated::new(Drive::new(&config));
            let capacity = config.zones.capacity_lbas;
            let left = u64::from(granularity) * whole + 1;
            let fill = Fill {
                lbas: capacity - left,
                block_lbas: most,
                ..Fill::default()
            };
            let soft = SoftFinish::new(granularity, US(50), most).expect("within the ranges");
            let (result, ..) = run(&device, FREE, finishes(2..4, fill, Some(soft)));
            assert_eq!((result.first_error, count(&result)), (None, 2));
            let bytes = left * u64::from(config.lba_bytes);
            let group = group(&result);
            assert_eq!((group.bytes, group.link_bytes), (2 * bytes, 2 * bytes));
            for index in [2, 3] {
                assert_eq!(zone(&device, index), (capacity, ZoneState::FULL), "{name}");
            }
            let written = device.with_drive(|drive| drive.totals().host_write_bytes);
            assert_eq!(written, 2 * capacity * u64::from(config.lba_bytes));
        }
    }
}
