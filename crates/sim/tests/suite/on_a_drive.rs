//! Workloads against the model, and against each other.

use zonelab_device::{Nanos, ZoneId};
use zonelab_host::stats::OpKind;
use zonelab_host::workload::{Fill, JobResult, JobSpec, ReadWork, Stop, Work, WriteWork};
use zonelab_host::{CoreId, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_sim::Emulated;
use zonelab_ssd::Control;

use super::support::{FREE, NO_FILL, WRITE, costs_us, spec, tiny, writes};

const US: fn(u64) -> Nanos = Nanos::from_us;

/// Runs specifications side by side, each on a core of its own.
fn run_on(
    device: &Emulated,
    costs: zonelab_sim::HostCosts,
    specs: &[JobSpec],
) -> (Vec<JobResult>, RunEnd) {
    let stop = StopSignal::default();
    let mut jobs: Vec<_> = (0_u64..)
        .zip(specs)
        .map(|(n, spec)| {
            let rng = Rng::new(1, n);
            zonelab_host::workload::WorkloadJob::new(spec.clone(), device.info(), rng, stop.clone())
        })
        .collect();
    let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop);
    for (index, job) in jobs.iter_mut().enumerate() {
        let queue = device.open_queue(job.depth(), costs, Rng::new(2, index as u64));
        reactor.add(job, queue, CoreId(index as u32), Nanos::ZERO);
    }
    let end = reactor.run();
    (
        jobs.into_iter()
            .map(zonelab_host::workload::WorkloadJob::into_result)
            .collect(),
        end,
    )
}

fn run(device: &Emulated, spec: JobSpec) -> (JobResult, RunEnd) {
    let (mut results, end) = run_on(device, FREE, &[spec]);
    (results.remove(0), end)
}

fn states(device: &Emulated) -> Vec<ZoneState> {
    device.with_drive(|drive| {
        (0..8)
            .map(|zone| drive.zones().state(ZoneId(zone)))
            .collect()
    })
}

fn fill_zones(device: &Emulated, zones: std::ops::Range<u32>) {
    let full = Control::PreconditionFull { zones };
    device
        .with_drive(|drive| drive.control(Nanos::ZERO, &full))
        .expect("the zones are empty");
}

/// Pages one after another, 725 us each: 15 in a zone.
#[test]
fn writes_one_by_one_take_their_time_on_the_flash() {
    let device = tiny(&[]);
    let (result, end) = run(&device, spec(Work::Write(writes(0..2, 4))));
    assert_eq!((end.at, end.stuck_jobs), (US(30 * 725), 0));
    let stats = result.recorder.stats.get(OpKind::Write).unwrap();
    assert_eq!((stats.latency.count(), stats.bytes), (30, 30 * 16_384));
    assert_eq!(
        (stats.latency.min(), stats.latency.max()),
        (Some(WRITE), Some(WRITE))
    );
    assert_eq!(result.first_error, None);
    assert_eq!(
        states(&device)[..3],
        [ZoneState::FULL, ZoneState::FULL, ZoneState::EMPTY]
    );
    assert_eq!(
        device.with_drive(|drive| drive.totals().host_write_bytes),
        30 * 16_384
    );
}

/// Host costs lie in the latency, and in the time from one write to the next.
#[test]
fn a_workload_pays_for_its_host() {
    let device = tiny(&[]);
    let (results, _) = run_on(
        &device,
        costs_us(4, 3),
        &[spec(Work::Write(writes(0..1, 4)))],
    );
    let stats = results[0].recorder.stats.get(OpKind::Write).unwrap();
    assert_eq!(stats.latency.min(), Some(US(4 + 725 + 3)));
    assert_eq!(results[0].ended, US(15 * (4 + 725 + 3)));
}

/// Block size, depth and open zones, all at once, over and over: the drive
/// refuses nothing, so every write was at its write pointer.
#[test]
fn no_combination_breaks_the_rules_of_the_drive() {
    for depth in [1, 3, 16] {
        for open_zones in [1, 2, 5] {
            for append in [false, true] {
                let work = WriteWork {
                    append,
                    open_zones,
                    reset_first: true,
                    ..writes(1..7, 7)
                };
                let device = tiny(&[]);
                fill_zones(&device, 0..4);
                let spec = JobSpec {
                    queue_depth: depth,
                    ..spec(Work::Write(work))
                };
                let (result, end) = run(&device, spec);
                assert_eq!(result.first_error, None, "{depth} {open_zones} {append}");
                assert_eq!(end.stuck_jobs, 0);
                let written = device.with_drive(|drive| drive.totals().host_write_bytes);
                assert_eq!(written, 6 * 240 * 1024);
            }
        }
    }
}

/// A write in several commands is one write: it takes as long as all of them, one
/// after another, and its last part is there when the job has had its bytes.
#[test]
fn a_write_in_several_commands_is_measured_as_one() {
    for (open_zones, depth) in [(1, 1), (2, 1), (2, 4)] {
        let work = WriteWork {
            open_zones,
            command_lbas: Some(4),
            repeat: true,
            ..writes(0..2, 12)
        };
        let device = tiny(&[]);
        let mut spec = JobSpec {
            queue_depth: depth,
            ..spec(Work::Write(work))
        };
        // Three passes through both zones of 60 blocks.
        spec.stop.bytes = Some(3 * 2 * 60 * 4096);
        // A rate holds back writes, not their parts.
        spec.rate = std::num::NonZeroU64::new(100).map(zonelab_host::rate::Limit::ops_per_second);
        let (result, end) = run(&device, spec);
        assert_eq!((result.first_error, end.stuck_jobs), (None, 0));
        let stats = result.recorder.stats.get(OpKind::Write).expect("it wrote");
        assert_eq!(stats.latency.count(), 30, "{open_zones} {depth}");
        assert_eq!(stats.latency.min(), Some(US(3 * 725)));
        // To three digits.
        let median = stats.latency.percentile(50.0).expect("it wrote");
        assert!(median.0.abs_diff(US(3 * 725).0) < 5_000, "{median}");
        let written = device.with_drive(|drive| drive.totals().host_write_bytes);
        assert_eq!(written, 3 * 2 * 60 * 4096);
    }
}

#[test]
fn finishes_fill_zones_and_resets_empty_them() {
    let device = tiny(&[]);
    let fill = Fill {
        lbas: 4,
        block_lbas: 4,
        ..Fill::default()
    };
    let (result, _) = run(
        &device,
        spec(Work::Finish {
            zones: 0..3,
            fill,
            soft: None,
        }),
    );
    let finishes = result.recorder.stats.get(OpKind::Finish).unwrap();
    // 14 pages in seven writes of two, one on each die.
    assert_eq!(finishes.latency.max(), Some(US(7 * 725)));
    assert_eq!(finishes.bytes, 3 * 56 * 4096);
    assert_eq!(
        states(&device)[..4],
        [
            ZoneState::FULL,
            ZoneState::FULL,
            ZoneState::FULL,
            ZoneState::EMPTY
        ]
    );
    let totals = device.with_drive(|drive| drive.totals());
    assert_eq!(
        (totals.finishes, totals.fill_program_bytes),
        (3, 3 * 14 * 16_384)
    );

    let clock_left = Nanos::from_secs(1);
    let stop = StopSignal::default();
    let work = Work::Reset {
        zones: 0..3,
        shuffled: true,
        fill: NO_FILL,
    };
    let mut job = super::support::job(spec(work), device.info(), 1);
    let mut reactor = Reactor::new(VirtualClock::starting_at(clock_left), device.clone(), stop);
    let queue = device.open_queue(1, FREE, Rng::new(1, 1));
    reactor.add(&mut job, queue, CoreId(0), clock_left);
    reactor.run();
    let resets = job.into_result();
    assert_eq!(
        resets
            .recorder
            .stats
            .get(OpKind::Reset)
            .unwrap()
            .latency
            .min(),
        Some(US(3_500))
    );
    assert!(
        states(&device)
            .iter()
            .all(|state| *state == ZoneState::EMPTY)
    );
}

/// Writes to a full zone: the drive says so, the job stops, and the result
/// names what failed.
#[test]
fn a_full_zone_stops_its_writer() {
    let device = tiny(&[]);
    fill_zones(&device, 1..2);
    let (result, end) = run(&device, spec(Work::Write(writes(0..3, 4))));
    assert_eq!(
        result
            .first_error
            .map(|failed| (failed.kind, failed.status)),
        Some((OpKind::Write, Status::ZONE_IS_FULL))
    );
    let stats = result.recorder.stats.get(OpKind::Write).unwrap();
    assert_eq!(stats.latency.count(), 15, "the zone before it was written");
    assert_eq!(stats.errors, [(Status::ZONE_IS_FULL, 1)]);
    assert_eq!(end.at, US(15 * 725));
    assert_eq!(states(&device)[2], ZoneState::EMPTY);
}

/// The one that ends the run takes the other with it: at once, though its
/// limiter would let it sleep for 100 s.
#[test]
fn a_job_that_ends_the_run_ends_the_others() {
    let leader = JobSpec {
        ends_run: true,
        ..spec(Work::Write(writes(0..1, 4)))
    };
    let limit = zonelab_host::rate::Limit::ops_per_seconds(
        1.try_into().expect("not zero"),
        100.try_into().expect("not zero"),
    );
    let sleeper = JobSpec {
        rate: Some(limit),
        ..spec(Work::Reset {
            zones: 4..8,
            shuffled: false,
            fill: NO_FILL,
        })
    };
    let busy = JobSpec {
        queue_depth: 2,
        ..spec(Work::Read(ReadWork {
            zones: 1..2,
            block_lbas: 4,
            random: false,
        }))
    };
    let device = tiny(&[]);
    fill_zones(&device, 1..2);
    let (results, end) = run_on(&device, FREE, &[leader, sleeper, busy]);
    assert_eq!(end.stuck_jobs, 0);
    let [leader, sleeper, busy] = &results[..] else {
        panic!("three results")
    };
    assert_eq!(sleeper.operations, 1);
    assert_eq!(sleeper.ended, leader.ended);
    assert!(
        busy.ended >= leader.ended && busy.ended < leader.ended + US(500),
        "{}",
        busy.ended
    );
    // With its queue full it notices the stop when something completes.
    let measured = busy.recorder.stats.run_time().expect("it was measured");
    assert!(
        measured >= leader.ended && measured <= busy.ended,
        "{measured}"
    );
}

/// Without it, everybody goes on to his own end.
#[test]
fn jobs_end_by_themselves_otherwise() {
    let short = spec(Work::Write(writes(0..1, 4)));
    let long = spec(Work::Write(writes(1..4, 4)));
    let (results, end) = run_on(&tiny(&[]), FREE, &[short, long]);
    assert!(results[0].ended < results[1].ended);
    assert_eq!(results[1].operations, 45);
    assert_eq!(end.at, results[1].ended);
}

/// Same specification, same seeds, same nanoseconds.
#[test]
fn runs_are_repeatable() {
    let one = || {
        let device = tiny(&["media.die_queue=read-first"]);
        fill_zones(&device, 0..2);
        let costs = zonelab_sim::HostCosts {
            jitter_ns: US(2),
            ..costs_us(3, 3)
        };
        let stop = Stop {
            runtime: Some(Nanos::from_ms(200)),
            ..Stop::default()
        };
        let reader = JobSpec {
            queue_depth: 4,
            stop,
            ..spec(Work::Read(ReadWork {
                zones: 0..2,
                block_lbas: 4,
                random: true,
            }))
        };
        let writer = JobSpec {
            queue_depth: 2,
            stop,
            ..spec(Work::Write(WriteWork {
                repeat: true,
                ..writes(4..6, 4)
            }))
        };
        let (results, end) = run_on(&device, costs, &[reader, writer]);
        let of = |n: usize, kind| {
            let stats = results[n].recorder.stats.get(kind).expect("it did some");
            (
                stats.latency.count(),
                stats.latency.percentile(99.0),
                results[n].ended,
            )
        };
        (of(0, OpKind::Read), of(1, OpKind::Write), end)
    };
    assert_eq!(one(), one());
}
