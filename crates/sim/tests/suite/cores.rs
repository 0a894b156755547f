//! What using a queue pair costs: on whose core, in whose latency, how it varies.

use proptest::prelude::*;
use zonelab_device::{Nanos, Tag};
use zonelab_host::NextWake;
use zonelab_sim::HostCosts;

use super::support::{FREE, IDLE_READ, Log, costs_us, first_write, run_on_cores, script, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;

/// When a job's steps began and ended on its core.
type Stretches = Log<(Nanos, Nanos)>;

/// Runs two jobs, each of `operations` reads that take no time on the drive,
/// one after another; stretches of core time in which they ran, in order.
fn two_readers(costs: HostCosts, cores: [u32; 2], operations: u32) -> (Stretches, Nanos) {
    let stretches: Stretches = Log::default();
    let reader = || {
        let stretches = stretches.clone();
        let mut left = operations;
        script(move |now, _, queue| {
            let last = left == 0;
            if !last {
                left -= 1;
                queue
                    .submit(IDLE_READ, Tag(0), None)
                    .expect("the queue has room");
            }
            stretches.borrow_mut().push((now, queue.now()));
            if last {
                NextWake::Finished
            } else {
                NextWake::Completion
            }
        })
    };
    let (mut a, mut b) = (reader(), reader());
    let mut jobs: [(&mut dyn zonelab_host::Job, u32); 2] = [(&mut a, cores[0]), (&mut b, cores[1])];
    run_on_cores(&tiny(&[]), costs, &mut jobs);
    let last = stretches
        .borrow()
        .iter()
        .map(|(_, end)| *end)
        .max()
        .expect("there were steps");
    (stretches, last)
}

#[test]
fn jobs_on_one_core_take_turns() {
    let (stretches, end) = two_readers(costs_us(10, 5), [0, 0], 3);
    let stretches = stretches.borrow();
    for pair in stretches.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap on one core");
    }
    assert_eq!(end, US(2 * 3 * (10 + 5)), "never idle, never two at once");
}

#[test]
fn jobs_on_two_cores_do_not_meet() {
    let (_, end) = two_readers(costs_us(10, 5), [0, 1], 3);
    assert_eq!(end, US(3 * (10 + 5)));
}

/// The first job submits at 10 us; the second waits for the core, and its 10 us
/// are part of what it sees, not of what the first one sees.
#[test]
fn a_busy_core_delays_the_other_job_alone() {
    let latencies: Log<(u32, Nanos)> = Log::default();
    let writer = |number: u32| {
        let latencies = latencies.clone();
        let mut submitted = Nanos::ZERO;
        script(move |_, done, queue| {
            if let Some(completion) = done.first() {
                latencies
                    .borrow_mut()
                    .push((number, completion.at - submitted));
                return NextWake::Finished;
            }
            submitted = queue.now();
            // Zone 0 starts on the first die, and so does zone 1.
            queue
                .submit(first_write(u64::from(number)), Tag(0), None)
                .unwrap();
            NextWake::Completion
        })
    };
    let (mut a, mut b) = (writer(0), writer(1));
    run_on_cores(&tiny(&[]), costs_us(10, 5), &mut [(&mut a, 0), (&mut b, 0)]);
    // The second arrives 10 us later, and its program starts after the first.
    let expected = [(0, US(10 + 725 + 5)), (1, US(10 + 725 + 700 - 10 + 5))];
    assert_eq!(*latencies.borrow(), expected);
}

#[test]
fn costs_are_part_of_the_latency() {
    let mut seen = None;
    let mut job = script(|now, done, queue| {
        if let Some(completion) = done.first() {
            seen = Some((now, completion.at, queue.now()));
            return NextWake::Finished;
        }
        assert_eq!(queue.now(), US(0));
        queue.submit(first_write(0), Tag(0), None).unwrap();
        assert_eq!(queue.now(), US(2), "the core was busy for that long");
        NextWake::Completion
    });
    run_on_cores(&tiny(&[]), costs_us(2, 3), &mut [(&mut job, 0)]);
    // At the drive from 2 to 727 us; then 3 us to take the completion.
    assert_eq!(seen, Some((US(727), US(730), US(730))));
}

/// A batch is submitted one by one, and its completions are taken one by one.
#[test]
fn a_batch_costs_each_of_its_commands() {
    let mut seen = Vec::new();
    let mut job = script(|_, done, queue| {
        seen.extend(done.iter().map(|c| (c.tag.0, c.at)));
        if seen.is_empty() {
            for tag in 0..3 {
                queue.submit(IDLE_READ, Tag(tag), None).unwrap();
            }
            queue.ring();
        }
        if seen.len() == 3 {
            NextWake::Finished
        } else {
            NextWake::Completion
        }
    });
    run_on_cores(&tiny(&[]), costs_us(10, 4), &mut [(&mut job, 0)]);
    // They complete at 10, 20 and 30 us. The core is free at 30 us.
    assert_eq!(seen, [(0, US(34)), (1, US(38)), (2, US(42))]);
}

/// The program keeps its accounts of a batch once, when it has taken all of it: no latency has
/// that, and the next submission comes behind it.
#[test]
fn the_turn_of_the_program_is_between_operations() {
    let costs = HostCosts {
        turn_ns: US(7),
        ..costs_us(10, 4)
    };
    let mut seen = Vec::new();
    let mut job = script(|_, done, queue| {
        seen.extend(done.iter().map(|c| (c.tag.0, c.at)));
        if seen.len() == 4 {
            return NextWake::Finished;
        }
        let next = seen.len() as u32;
        let count = if next == 0 { 3 } else { 1 };
        for tag in next..next + count {
            queue.submit(IDLE_READ, Tag(tag), None).unwrap();
        }
        queue.ring();
        NextWake::Completion
    });
    run_on_cores(&tiny(&[]), costs, &mut [(&mut job, 0)]);
    // The three end at 34, 38 and 42 us; the turn lasts until 49. The fourth is submitted
    // until 59, and taken until 63.
    let ends: Vec<Nanos> = seen.iter().map(|(_, at)| *at).collect();
    assert_eq!(ends, [US(34), US(38), US(42), US(63)]);
}

/// Latencies of reads that take no time on the drive: what the host costs.
fn drawn(costs: HostCosts, seed: u64, operations: u32) -> Vec<Nanos> {
    let device = tiny(&[]);
    let mut latencies = Vec::new();
    let mut submitted = Nanos::ZERO;
    let mut job = script(|_, done, queue| {
        latencies.extend(done.iter().map(|c| c.at - submitted));
        if latencies.len() == operations as usize {
            return NextWake::Finished;
        }
        submitted = queue.now();
        queue
            .submit(IDLE_READ, Tag(0), None)
            .expect("the queue has room");
        NextWake::Completion
    });
    let mut reactor = zonelab_host::Reactor::new(
        zonelab_host::VirtualClock::default(),
        device.clone(),
        zonelab_host::StopSignal::default(),
    );
    let queue = device.open_queue(1, costs, zonelab_host::Rng::new(seed, 3));
    reactor.add(&mut job, queue, zonelab_host::CoreId(0), Nanos::ZERO);
    assert_eq!(reactor.run().stuck_jobs, 0);
    latencies
}

fn mean_us(latencies: &[Nanos]) -> f64 {
    latencies.iter().map(|ns| ns.0 as f64).sum::<f64>() / latencies.len() as f64 / 1e3
}

#[test]
fn jitter_follows_its_seed() {
    let costs = HostCosts {
        jitter_ns: US(1),
        ..costs_us(3, 4)
    };
    let latencies = drawn(costs, 7, 20_000);
    assert_eq!(latencies, drawn(costs, 7, 20_000));
    assert_ne!(latencies, drawn(costs, 8, 20_000));
    assert!(
        latencies.iter().all(|latency| *latency >= US(7)),
        "it is an addition"
    );
    // Two exponential additions of mean 1 us: their mean has a standard error of 0.01 us.
    let mean = mean_us(&latencies);
    assert!((mean - 9.0).abs() < 0.05, "{mean} us");
}

#[test]
fn hiccups_are_rare_and_long() {
    let costs = HostCosts {
        hiccup_one_in: 100,
        hiccup_ns: US(1_000),
        ..costs_us(1, 1)
    };
    let latencies = drawn(costs, 7, 50_000);
    let hit = latencies.iter().filter(|latency| **latency > US(2)).count();
    // One in a hundred draws, and two draws an operation: about 1,000 of 50,000.
    assert!((850..1_150).contains(&hit), "{hit} operations were hit");
    let mean = mean_us(&latencies);
    assert!(
        (mean - 22.0).abs() < 2.5,
        "{mean} us: 2 us and 20 us of hiccups"
    );
}

#[test]
fn a_hiccup_at_every_operation_is_possible() {
    let costs = HostCosts {
        hiccup_one_in: 1,
        hiccup_ns: US(10),
        ..FREE
    };
    let mean = mean_us(&drawn(costs, 1, 20_000));
    assert!((mean - 20.0).abs() < 0.5, "{mean} us");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// On one core the end is the sum of all costs, whatever they are; on two,
    /// that of each job by itself.
    #[test]
    fn host_time_is_conserved(
        submit in 1_u64..50, complete in 0_u64..50, operations in 1_u32..20,
    ) {
        let each = u64::from(operations) * (submit + complete);
        let (stretches, end) = two_readers(costs_us(submit, complete), [0, 0], operations);
        prop_assert_eq!(end, US(2 * each));
        let stretches = stretches.borrow();
        prop_assert!(stretches.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let (_, end) = two_readers(costs_us(submit, complete), [0, 1], operations);
        prop_assert_eq!(end, US(each));
    }
}
