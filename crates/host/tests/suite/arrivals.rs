//! Operations that are due at times of their own, against a queue of a few lines.

use core::num::NonZeroU64;

use proptest::prelude::*;
use zonelab_device::{Nanos, Op};
use zonelab_host::rate::Limit;
use zonelab_host::stats::OpKind;
use zonelab_host::workload::{
    Arrival, Ending, Fill, JobResult, JobSpec, ReadWork, Stop, Work, WorkloadJob,
};

use zonelab_host::{Rng, StopSignal};
use zonelab_nvme::zns::ZoneSendAction;

use super::support::{Recorder, large_info, record, spec, tiny_info};

const MS: fn(u64) -> Nanos = Nanos::from_ms;

/// Random reads of a page that arrive for a while.
fn arriving(arrival: Arrival, per_second: u64, depth: u32, runtime: Nanos) -> JobSpec {
    JobSpec {
        queue_depth: depth,
        rate: NonZeroU64::new(per_second).map(Limit::ops_per_second),
        arrival,
        ending: Ending::AtLastCompletion,
        stop: Stop {
            runtime: Some(runtime),
            ..Stop::default()
        },
        ..spec(Work::Read(ReadWork {
            zones: 0..4,
            block_lbas: 4,
            random: true,
        }))
    }
}

/// What it measured on a device that takes `latency` for each.
fn run(spec: JobSpec, latency: Nanos) -> JobResult {
    record(spec, &mut Recorder::steady(large_info(), latency)).0
}

/// Latencies of `count` operations that are due every `period`, of which `depth` are served at
/// once.
fn queued(count: u64, period: Nanos, depth: usize, service: Nanos) -> Vec<u64> {
    let mut ends: Vec<u64> = Vec::new();
    let latency = |index: u64| {
        let due = index * period.0;
        let begins = match (index as usize).checked_sub(depth) {
            Some(before) => due.max(ends[before]),
            None => due,
        };
        ends.push(begins + service.0);
        begins + service.0 - due
    };
    (0..count).map(latency).collect()
}

proptest! {
    /// Even arrivals: each operation counts from when it was due, all that are due before the end
    /// are carried out, however far behind the device is, and service is told apart.
    #[test]
    fn even_arrivals_wait_as_in_a_queue(
        per_second in 1_u64..=40, depth in 1_u32..=4, service_ms in 1_u64..=200,
        runtime_ms in 1_u64..=2_000,
    ) {
        let (rate, runtime) = (per_second * 25, MS(runtime_ms));
        let period = Nanos(1_000_000_000 / rate);
        prop_assume!(period.0 * rate == 1_000_000_000);
        let result = run(arriving(Arrival::Fixed, rate, depth, runtime), MS(service_ms));
        let due = runtime.0.div_ceil(period.0);
        let expected = queued(due, period, depth as usize, MS(service_ms));
        let reads = result.recorder.stats.get(OpKind::Read).expect("it read");
        prop_assert_eq!(reads.latency.count(), due);
        prop_assert_eq!(reads.latency.sum_ns(), expected.iter().map(|ns| u128::from(*ns)).sum());
        prop_assert_eq!(reads.latency.max(), expected.iter().copied().max().map(Nanos));
        let service = result.recorder.service.expect("it is told apart");
        prop_assert_eq!((service.min(), service.max()), (Some(MS(service_ms)), Some(MS(service_ms))));
        prop_assert_eq!(result.behind, Nanos::ZERO);
    }
}

/// Random arrivals to one server that is busy half of the time wait half a service on average
/// (Pollaczek and Khinchine, with a service that does not vary).
#[test]
fn random_arrivals_wait_as_queueing_theory_says() {
    let seconds = Nanos::from_secs(400);
    let result = run(arriving(Arrival::Poisson, 500, 1, seconds), MS(1));
    let reads = result.recorder.stats.get(OpKind::Read).expect("it read");
    let count = reads.latency.count() as f64;
    assert!((count / 200_000.0 - 1.0).abs() < 0.01, "{count} arrivals");
    let mean_ms = reads.latency.mean_ns().expect("it read") / 1e6;
    assert!((mean_ms - 1.5).abs() < 0.03, "{mean_ms} ms");
}

/// Who waits for others notices a stall once; who arrives meanwhile notices it each time.
#[test]
fn closed_jobs_count_from_their_decision() {
    let closed = run(arriving(Arrival::Closed, 1_000, 1, MS(100)), MS(10));
    let reads = closed.recorder.stats.get(OpKind::Read).expect("it read");
    assert_eq!(reads.latency.max(), Some(MS(10)));
    assert!(closed.recorder.service.is_none());
}

/// A job that is told to end says how far behind it was then, and not when what was in flight had
/// completed.
#[test]
fn arrivals_that_are_cut_off_are_known() {
    let signal = StopSignal::default();
    let spec = arriving(Arrival::Fixed, 1_000, 4, Nanos::from_secs(10));
    let mut queue = Recorder::steady(large_info(), MS(10));
    let mut reader = WorkloadJob::new(spec, &large_info(), Rng::new(1, 0), signal.clone());
    while queue.log.len() < 8 {
        assert_eq!(queue.run(&mut reader, 1), None, "it would go on");
    }
    signal.stop();
    // Four were issued by 3 ms and four from 10 on; at 20 the one that was due at 8 is next.
    assert_eq!(queue.run(&mut reader, 10), Some(MS(23)));
    assert_eq!(reader.into_result().behind, MS(12));
}

/// One that has had its number of operations has none left, however late they were.
#[test]
fn who_has_issued_all_is_not_behind() {
    let mut spec = arriving(Arrival::Fixed, 1_000, 1, Nanos::from_secs(10));
    spec.stop.operations = Some(10);
    let result = run(spec, MS(10));
    assert_eq!((result.operations, result.behind), (10, MS(0)));
}

/// Zones that come round again are ready again: one that was finished is reset before.
#[test]
fn finishes_and_resets_begin_again() {
    let again = Fill {
        lbas: 2,
        block_lbas: 2,
        repeat: true,
        ..Fill::default()
    };
    for (work, per_round) in [
        (
            Work::Finish {
                zones: 0..3,
                fill: again,
                soft: None,
            },
            "WF WF WF",
        ),
        (
            Work::Reset {
                zones: 0..3,
                shuffled: false,
                fill: again,
            },
            "WR WR WR",
        ),
    ] {
        let finishes = matches!(work, Work::Finish { .. });
        let stop = Stop {
            operations: Some(7),
            ..Stop::default()
        };
        let mut queue = Recorder::steady(tiny_info(), MS(1));
        let (result, _) = record(JobSpec { stop, ..spec(work) }, &mut queue);
        assert_eq!((result.operations, result.errors), (7, 0));
        let letter = |op: &Op| match op {
            Op::Write { .. } => "W",
            Op::ZoneSend { action, .. } if *action == ZoneSendAction::FINISH => "F",
            Op::ZoneSend { action, .. } if *action == ZoneSendAction::RESET => "R",
            _ => "?",
        };
        let did: String = queue.ops().iter().map(letter).collect();
        let round = per_round.replace(' ', "");
        let rest = match finishes {
            true => "RWFRWFRWFRWF".to_owned(),
            false => format!("{round}WR"),
        };
        assert_eq!(did, format!("{round}{rest}"));
    }
}
