//! More polling threads than cores.

use zonelab_device::Nanos;
use zonelab_host::stats::{GroupStats, OpKind};
use zonelab_host::workload::{JobResult, JobSpec, ReadWork, Stop, Work, WorkloadJob};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::HostCosts;
use zonelab_ssd::Control;

use super::support::{NO_FILL, costs_us, job, spec, tiny};

const SLICE: Nanos = Nanos::from_ms(16);

/// Reads of what was never written, for a second: only the host takes time.
fn reads() -> JobSpec {
    let work = ReadWork {
        zones: 0..1,
        block_lbas: 4,
        random: true,
    };
    let stop = Stop {
        runtime: Some(Nanos::from_secs(1)),
        ..Stop::default()
    };
    JobSpec {
        stop,
        ..spec(Work::Read(work))
    }
}

/// Runs each job on its core, in slices if there are any.
fn run(
    settings: &[&str],
    costs: HostCosts,
    slice: Option<Nanos>,
    specs: Vec<(JobSpec, u32)>,
) -> Vec<JobResult> {
    let device = tiny(settings);
    let full = Control::PreconditionFull { zones: 1..8 };
    device
        .with_drive(|drive| drive.control(Nanos::ZERO, &full))
        .expect("zones that there are");
    let mut jobs: Vec<(WorkloadJob, u32)> = specs
        .into_iter()
        .map(|(spec, core)| (job(spec, device.info(), u64::from(core)), core))
        .collect();
    let clock = VirtualClock::default();
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    if let Some(slice) = slice {
        reactor = reactor.in_slices(slice);
    }
    for (job, core) in &mut jobs {
        let queue = device.open_queue(1, costs, Rng::new(1, u64::from(*core)));
        reactor.add(job, queue, CoreId(*core), Nanos::ZERO);
    }
    assert_eq!(reactor.run().stuck_jobs, 0);
    jobs.into_iter().map(|(job, _)| job.into_result()).collect()
}

/// Fourteen threads on ten cores: eight of them share four, so that four wait
/// at any time. Throughput is that of ten threads, and 250 operations a second
/// of 125,000 take a slice longer: P99 does not show it, P99.9 is one slice.
#[test]
fn p99_9_of_fourteen_threads_on_ten_cores_is_a_slice() {
    let threads = |cores: u32| (0..14).map(|i| (reads(), i % cores)).collect();
    let shared = run(&[], costs_us(40, 40), Some(SLICE), threads(10));
    let group = GroupStats::of(shared.iter().map(|job| &job.recorder.stats), OpKind::Read).unwrap();
    let us = |percent| group.latency.percentile(percent).unwrap().as_us_f64();
    assert!((us(50.0) - 80.0).abs() < 1.0, "P50 {}", us(50.0));
    assert!((us(99.0) - 80.0).abs() < 1.0, "P99 {}", us(99.0));
    assert!((us(99.9) - 16_040.0).abs() < 160.0, "P99.9 {}", us(99.9));
    let per_s = group.latency.count() as f64;
    assert!((per_s - 125_000.0).abs() < 1_500.0, "{per_s} a second");

    let own = run(&[], costs_us(40, 40), Some(SLICE), threads(14));
    let free = run(&[], costs_us(40, 40), None, threads(14));
    for (own, free) in own.iter().zip(&free) {
        let [own, free] = [own, free].map(|job| job.recorder.stats.get(OpKind::Read).unwrap());
        assert_eq!(own.latency.max(), Some(Nanos::from_us(80)), "a core each");
        assert_eq!(own.latency.count(), free.latency.count());
    }
}

/// A reset of 20 ms beside another thread on its core: decided at the start of
/// a slice, done while the other polls, seen at the start of the next slice but
/// one. With a core for each, it takes 20 ms.
#[test]
fn a_reset_on_a_shared_core_takes_whole_slices() {
    let resets = || {
        let work = Work::Reset {
            zones: 1..8,
            shuffled: false,
            fill: NO_FILL,
        };
        JobSpec {
            name: "reset".to_owned(),
            ..spec(work)
        }
    };
    let settings = ["media.erase=20ms"];
    let seen = |cores: [u32; 2]| -> Vec<Nanos> {
        let specs = vec![(resets(), cores[0]), (reads(), cores[1])];
        // Reads that take no time would be endless in number.
        let results = run(&settings, costs_us(0, 50), Some(SLICE), specs);
        let stats = results[0].recorder.stats.get(OpKind::Reset).unwrap();
        [stats.latency.min().unwrap(), stats.latency.max().unwrap()].into()
    };
    let apart = seen([0, 1]);
    assert_eq!(apart, [Nanos::from_us(20_050); 2]);
    let slices = |latency: Nanos| latency.0 as f64 / SLICE.0 as f64;
    for latency in seen([0, 0]) {
        let off = (slices(latency) - 2.0).abs();
        assert!(off < 0.01, "{} slices", slices(latency));
    }
}

/// A thread that has ended leaves its core to the others.
#[test]
fn a_thread_that_has_ended_takes_no_slices() {
    let short = JobSpec {
        stop: Stop {
            operations: Some(10),
            ..Stop::default()
        },
        ..reads()
    };
    let results = run(
        &[],
        costs_us(0, 50),
        Some(SLICE),
        vec![(short, 0), (reads(), 0)],
    );
    let latency = &results[1].recorder.stats.get(OpKind::Read).unwrap().latency;
    // The other had its first turn when the first had made its ten reads.
    assert_eq!(latency.max(), Some(Nanos::from_us(50)));
    assert_eq!(results[1].started, Nanos::from_us(500));
    assert_eq!(latency.count(), 20_000);
}

/// The way to the drive adds to the latency, and nothing to the core.
#[test]
fn the_way_to_the_drive_occupies_no_core() {
    let costs = HostCosts {
        path_ns: Nanos::from_us(30),
        ..costs_us(2, 3)
    };
    let deep = JobSpec {
        queue_depth: 1,
        ..reads()
    };
    let one = run(&[], costs, None, vec![(deep.clone(), 0)]);
    let latency = |result: &JobResult| {
        result
            .recorder
            .stats
            .get(OpKind::Read)
            .unwrap()
            .latency
            .clone()
    };
    assert_eq!(latency(&one[0]).max(), Some(Nanos::from_us(35)));
    // Four jobs on the core: 20 us of its time for four reads, less than the way.
    let four = run(
        &[],
        costs,
        None,
        (0..4).map(|_| (deep.clone(), 0)).collect(),
    );
    let ops: u64 = four.iter().map(|result| latency(result).count()).sum();
    assert!(ops > 4 * 25_000, "{ops} in a second");
}
