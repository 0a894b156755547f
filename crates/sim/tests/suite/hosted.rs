//! Costs in front of any model: the same as those of an emulated drive's own queues.

use zonelab_device::{Device, DeviceQueue, Nanos, QueuePair, RejectReason, Tag};
use zonelab_host::workload::{JobSpec, ReadWork, Stop, Work, WorkloadJob};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, HostCosts, Hosted};
use zonelab_ssd::Control;

use super::support::{FREE, IDLE_READ, PAGE, costs_us, first_write, spec, tiny, writes};

/// Jobs that write and read side by side, several operations in flight each.
fn jobs_of(device: &Emulated, stop: &StopSignal) -> Vec<WorkloadJob> {
    let full = Control::PreconditionFull { zones: 4..8 };
    device
        .with_drive(|drive| drive.control(Nanos::ZERO, &full))
        .expect("the zones are there");
    let read = Work::Read(ReadWork {
        zones: 4..8,
        block_lbas: PAGE,
        random: true,
    });
    let specs = [
        spec(Work::Write(writes(0..2, PAGE))),
        JobSpec {
            queue_depth: 4,
            stop: Stop {
                operations: Some(300),
                ..Stop::default()
            },
            ..spec(read)
        },
    ];
    let jobs = (0_u64..).zip(specs).map(|(n, spec)| {
        let rng = Rng::new(1, n);
        WorkloadJob::new(spec, device.info(), rng, stop.clone())
    });
    jobs.collect()
}

/// What the jobs measured, to the last sample.
fn run<D: Device>(
    device: D,
    jobs: Vec<WorkloadJob>,
    stop: StopSignal,
    queues: Vec<D::Queue>,
) -> String
where
    VirtualClock: zonelab_host::WaitsFor<D>,
{
    let mut jobs = jobs;
    let mut reactor = Reactor::new(VirtualClock::default(), device, stop);
    for ((index, job), queue) in (0..).zip(&mut jobs).zip(queues) {
        reactor.add(job, queue, CoreId(index), Nanos::ZERO);
    }
    let end = reactor.run();
    let results: Vec<_> = jobs.into_iter().map(WorkloadJob::into_result).collect();
    format!("{end:?} {results:?}")
}

fn direct(costs: HostCosts) -> String {
    let (device, stop) = (tiny(&[]), StopSignal::default());
    let jobs = jobs_of(&device, &stop);
    let queue =
        |(n, job): (u64, &WorkloadJob)| device.open_queue(job.depth(), costs, Rng::new(2, n));
    let queues = (0..).zip(&jobs).map(queue).collect();
    run(device.clone(), jobs, stop, queues)
}

fn hosted(costs: HostCosts) -> String {
    let (device, stop) = (tiny(&[]), StopSignal::default());
    let jobs = jobs_of(&device, &stop);
    let hosted = Hosted::new(device.clone());
    let queue = |(n, job): (u64, &WorkloadJob)| {
        let inner = device.open_queue(job.depth(), FREE, Rng::new(3, n));
        hosted.queue(inner, job.depth(), costs, Rng::new(2, n))
    };
    let queues = (0..).zip(&jobs).map(queue).collect();
    run(hosted, jobs, stop, queues)
}

#[test]
fn costs_mean_the_same_in_front_of_any_model() {
    let fixed = HostCosts {
        path_ns: Nanos(660),
        turn_ns: Nanos(800),
        ..costs_us(4, 6)
    };
    let drawn = HostCosts {
        jitter_ns: Nanos(300),
        hiccup_one_in: 20,
        hiccup_ns: Nanos::from_us(500),
        ..fixed
    };
    let all = [FREE, fixed, drawn].map(|costs| {
        let (direct, hosted) = (direct(costs), hosted(costs));
        assert!(direct == hosted, "{costs:?}\n{direct}\n{hosted}");
        hosted
    });
    assert!(all[0] != all[1] && all[1] != all[2], "costs count");
}

/// A queue that lets more commands wait on their way than the model holds would lose them.
#[test]
fn commands_on_their_way_count_for_the_depth() {
    let device = tiny(&[]);
    let inner = device.open_queue(2, FREE, Rng::new(1, 1));
    let mut hosted = Hosted::new(device);
    let mut queue = hosted.queue(inner, 2, costs_us(1, 1), Rng::new(1, 2));
    queue.enter(Nanos::ZERO);
    for tag in [0, 1] {
        queue
            .submit(IDLE_READ, Tag(tag), None)
            .expect("there is room");
    }
    assert_eq!(hosted.next_event(), Some(Nanos::from_us(1)));
    let refused = queue
        .submit(IDLE_READ, Tag(2), None)
        .expect_err("it is full");
    assert!(matches!(
        refused.reason,
        RejectReason::QueueFull { depth: 2, .. }
    ));
    let (mut ready, mut done) = (Vec::new(), Vec::new());
    hosted.advance(Nanos::from_us(9), &mut ready);
    queue.enter(Nanos::from_us(9));
    assert_eq!(queue.poll(&mut done), 2);
    let at: Vec<u64> = done.iter().map(|of| of.at.0).collect();
    assert_eq!(at, [10_000, 11_000], "one after another on the core");
    queue
        .submit(IDLE_READ, Tag(2), None)
        .expect("there is room again");
}

/// What the model does not take completes with an error, once.
#[test]
fn a_refusal_on_arrival_is_a_completion() {
    let device = tiny(&[]);
    let inner = device.open_queue(1, FREE, Rng::new(1, 1));
    let mut hosted = Hosted::new(device);
    // Twice as deep as the queue below.
    let mut queue = hosted.queue(inner, 2, costs_us(1, 1), Rng::new(1, 2));
    queue.enter(Nanos::ZERO);
    for tag in [0, 1] {
        queue
            .submit(first_write(tag.into()), Tag(tag), None)
            .expect("there is room");
    }
    let (mut ready, mut done) = (Vec::new(), Vec::new());
    while let Some(at) = hosted.next_event() {
        hosted.advance(at, &mut ready);
        queue.enter(at);
        queue.poll(&mut done);
    }
    let ends: Vec<_> = done
        .iter()
        .map(|of| (of.tag.0, of.status.is_success()))
        .collect();
    assert_eq!(ends, [(1, false), (0, true)]);
}
