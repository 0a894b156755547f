//! The same jobs against the clock that ticks. Bounds are generous: the machine
//! may be busy.

use zonelab_device::Nanos;
use zonelab_host::stats::Latency;
use zonelab_host::workload::{JobSpec, ReadWork, Stop, Work, WorkloadJob};
use zonelab_host::{
    Clock, CoreId, NextWake, Reactor, RealClock, Rng, StopSignal, VirtualClock, WaitsFor,
};
use zonelab_sim::Emulated;

use super::support::{FREE, job, script, spec, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;

/// A drive on which a page is read in 6 us and written in 11 us.
const FAST: [&str; 4] = [
    "media.read=5us",
    "media.program=10us",
    "media.transfer=1us",
    "media.erase=20us",
];

#[test]
fn the_clock_ticks_and_waits() {
    let mut clock = RealClock::new();
    assert!(clock.is_real());
    assert!(!VirtualClock::default().is_real());
    let start = clock.now();
    let target = start + US(700);
    let mut device = tiny(&[]);
    let woken = clock.wait(&mut device, target);
    assert!(woken >= target);
    assert!(clock.now() >= woken);
    assert!(
        clock.wait(&mut device, US(0)) >= woken,
        "a time that has passed is no wait"
    );
}

fn random_reads() -> JobSpec {
    let read = ReadWork {
        zones: 0..4,
        block_lbas: 4,
        random: true,
    };
    let mut spec = spec(Work::Read(read));
    spec.queue_depth = 4;
    spec.stop = Stop {
        operations: Some(400),
        ..Stop::default()
    };
    spec
}

/// The tiny drive with zones 0 to 3 full, read by a job: operations, mean
/// latency, and the drive's count of bytes.
fn run_reads<C: WaitsFor<Emulated>>(clock: C) -> (WorkloadJob, zonelab_host::RunEnd, u64) {
    let device = tiny(&FAST);
    let full = zonelab_ssd::Control::PreconditionFull { zones: 0..4 };
    device
        .with_drive(|drive| drive.control(Nanos::ZERO, &full))
        .expect("the zones are empty");
    let mut reads = job(random_reads(), device.info(), 3);
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    let queue = device.open_queue(reads.depth(), FREE, Rng::new(1, 1));
    reactor.add(&mut reads, queue, CoreId(0), Nanos::ZERO);
    let end = reactor.run();
    (
        reads,
        end,
        device.with_drive(|drive| drive.totals().host_read_bytes),
    )
}

/// The same job does the same work under either clock; the real one takes at
/// least as long as the model says, and says how late it was.
#[test]
fn a_workload_runs_in_real_time() {
    let (modelled, virtual_end, virtual_bytes) = run_reads(VirtualClock::default());
    let (measured, end, bytes) = run_reads(RealClock::new());
    assert_eq!((end.stuck_jobs, virtual_end.stuck_jobs), (0, 0));
    assert_eq!(virtual_bytes, 400 * 16_384);
    assert_eq!(bytes, virtual_bytes);
    let (modelled, measured) = (modelled.into_result(), measured.into_result());
    assert_eq!((modelled.operations, measured.operations), (400, 400));
    assert!(measured.first_error.is_none());
    assert_eq!(virtual_end.lateness_max, Nanos::ZERO);
    assert!(
        end.lateness_max > Nanos::ZERO,
        "no thread is on time to the nanosecond"
    );
    assert!(end.lateness_max <= end.at);
    assert!(
        end.at >= virtual_end.at,
        "{} is faster than the model",
        end.at
    );
    // On two dies, 400 reads take 1.2 ms at least.
    assert!(virtual_end.at >= US(1_000), "{}", virtual_end.at);
    let least = |result: &zonelab_host::workload::JobResult| {
        let reads = result
            .recorder
            .stats
            .get(zonelab_host::stats::OpKind::Read)
            .unwrap();
        reads.latency.min().unwrap()
    };
    assert!(
        least(&measured) >= US(6),
        "{} is less than a read takes",
        least(&measured)
    );
}

#[test]
fn wishes_are_kept_in_real_time() {
    let wishes = [US(200), US(900), US(1_000), US(2_500)];
    let mut woken = Vec::new();
    let mut sleeper = script(|now, _, _| {
        woken.push(now);
        wishes
            .get(woken.len() - 1)
            .map_or(NextWake::Finished, |at| NextWake::At(*at))
    });
    let device = tiny(&FAST);
    let mut reactor = Reactor::new(RealClock::new(), device.clone(), StopSignal::default());
    let queue = device.open_queue(1, FREE, Rng::new(1, 1));
    reactor.add(&mut sleeper, queue, CoreId(0), Nanos::ZERO);
    let end = reactor.run();
    for (wish, at) in wishes.iter().zip(&woken[1..]) {
        assert!(at >= wish, "woken at {at} before {wish}");
    }
    assert_eq!(woken.len(), 5);
    assert!(end.at >= US(2_500));
}

/// A stuck job ends the run under the real clock too, instead of parking for ever.
#[test]
fn a_stuck_job_ends_a_real_run() {
    let device = tiny(&FAST);
    let mut stuck = script(|_, _, _| NextWake::Completion);
    let mut reactor = Reactor::new(RealClock::new(), device.clone(), StopSignal::default());
    let queue = device.open_queue(1, FREE, Rng::new(1, 1));
    reactor.add(&mut stuck, queue, CoreId(0), Nanos::ZERO);
    assert_eq!(reactor.run().stuck_jobs, 1);
}

/// Lateness is recorded for each event of the model, with the longest that the
/// run reports; in virtual time nothing is late, and nothing is recorded.
#[test]
fn lateness_is_recorded_in_real_time_alone() {
    fn late<C: WaitsFor<Emulated>>(clock: C) -> (Latency, Nanos) {
        let device = tiny(&FAST);
        let mut reads = job(random_reads(), device.info(), 3);
        let full = zonelab_ssd::Control::PreconditionFull { zones: 0..4 };
        device
            .with_drive(|drive| drive.control(Nanos::ZERO, &full))
            .expect("the zones are empty");
        let mut lateness = Latency::new();
        let queue = device.open_queue(reads.depth(), FREE, Rng::new(1, 1));
        let reactor = Reactor::new(clock, device, StopSignal::default());
        let mut reactor = reactor.recording_lateness(&mut lateness);
        reactor.add(&mut reads, queue, CoreId(0), Nanos::ZERO);
        let max = reactor.run().lateness_max;
        (lateness, max)
    }
    let (recorded, max) = late(RealClock::new());
    assert!(recorded.count() > 0);
    assert_eq!(recorded.max(), Some(max));
    let (recorded, max) = late(VirtualClock::default());
    assert_eq!((recorded.count(), max), (0, Nanos::ZERO));
}
