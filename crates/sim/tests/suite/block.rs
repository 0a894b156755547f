//! The block layer: in front of a drive in virtual time, and of any queue pair.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use zonelab_device::{Buf, Command, Completion, DeviceQueue, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_host::scheduler::{MqDeadlineSettings, SchedulerSpec, ZincSettings};
use zonelab_host::{NextWake, Rng};
use zonelab_sim::{BlockCosts, Emulated, HostCosts};

use super::support::{CAPACITY, FREE, PAGE, WRITE, ZONE, run_alone, script, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;
const MQ: fn() -> SchedulerSpec = || SchedulerSpec::MqDeadline(MqDeadlineSettings::default());

fn write(zone: u64, offset: u64, nlb: u32) -> Command {
    let slba = Lba(zone * ZONE + offset);
    Command::new(Op::Write { slba, nlb })
}

fn behind(device: Emulated, scheduler: &SchedulerSpec, costs: BlockCosts) -> Emulated {
    device.behind(scheduler, costs).expect("settings in range")
}

/// Submits all `commands` at once, and gives what completed and when, by tag.
fn run_at_once(device: &Emulated, commands: &[(Command, Option<Buf>)]) -> Vec<(u32, Completion)> {
    run_rounds(device, &[commands]).remove(0)
}

/// The same, one round when the round before is done.
fn run_rounds(
    device: &Emulated,
    rounds: &[&[(Command, Option<Buf>)]],
) -> Vec<Vec<(u32, Completion)>> {
    let finished = Rc::new(RefCell::new(Vec::new()));
    let log = finished.clone();
    let mut rounds = rounds.iter().map(|round| round.to_vec());
    let mut left = 0;
    let mut job = script(move |_, done, queue: &mut dyn QueuePair| {
        let mut log = log.borrow_mut();
        left -= done.len();
        if let Some(round) = log.last_mut() {
            let round: &mut Vec<_> = round;
            round.extend(
                done.drain(..)
                    .map(|completion| (completion.tag.0, completion)),
            );
        }
        if left > 0 {
            return NextWake::Completion;
        }
        let Some(round) = rounds.next() else {
            return NextWake::Finished;
        };
        left = round.len();
        log.push(Vec::with_capacity(left));
        for (tag, (command, data)) in (0..).zip(round) {
            queue
                .submit(command, Tag(tag), data)
                .expect("there is room");
        }
        NextWake::Completion
    });
    assert_eq!(run_alone(device, &mut job).stuck_jobs, 0);
    finished.take()
}

/// The first of four writes goes at once; the others wait for its zone and go
/// as one, with the costs of the lock, of a dispatch, and of a merged command.
#[test]
fn a_lock_costs_its_time_and_merging_some_more() {
    let costs = BlockCosts {
        dispatch_ns: US(2),
        merged_ns: US(5),
        tick_ns: Nanos::ZERO,
    };
    let device = behind(tiny(&[]), &MQ(), costs);
    let commands: Vec<_> = (0..4).map(|n| (write(0, n * 4, PAGE), None)).collect();
    let done = run_at_once(&device, &commands);
    let times: Vec<_> = done.iter().map(|(tag, done)| (*tag, done.at)).collect();
    let first = US(2) + WRITE;
    // Three pages over two dies, the third behind the first of them.
    let rest = first + US(2 + 5) + WRITE + US(700);
    assert_eq!(times, [(0, first), (1, rest), (2, rest), (3, rest)]);
    assert!(done.iter().all(|(_, done)| done.status.is_success()));
}

/// Data of merged writes reaches the drive in order, that of merged reads comes
/// back in the buffers of the requests.
#[test]
fn merged_requests_keep_their_data() {
    let device = behind(tiny(&["data.store=memory"]), &MQ(), BlockCosts::default());
    let filled = |n: u64| Buf::from(vec![n as u8 + 1; 4 * 4096]);
    let writes: Vec<_> = (0..4)
        .map(|n| (write(0, n * 4, PAGE), Some(filled(n))))
        .collect();
    let reads: Vec<_> = (0..4)
        .map(|n| {
            let slba = Lba(n * 4);
            let op = Op::Read { slba, nlb: PAGE };
            (Command::new(op), Some(Buf::zeroed(4 * 4096)))
        })
        .collect();
    for round in run_rounds(&device, &[&writes, &reads]) {
        assert_eq!(round.len(), 4);
        for (tag, done) in round {
            assert!(done.status.is_success());
            assert_eq!(done.data, Some(filled(u64::from(tag))), "request {tag}");
        }
    }
}

/// With QD requests in flight in one zone, two commands carry them all: one is
/// on the drive, the rest waits and is merged (ZN540 characterisation, 4a).
#[test]
fn all_but_two_of_a_round_are_merged() {
    for depth in [2_u64, 4, 8, 12] {
        let device = behind(tiny(&[]), &MQ(), BlockCosts::default());
        let mut next = 0;
        let mut in_flight = 0;
        let mut queue = device.open_queue(64, FREE, Rng::new(1, 0));
        let id = queue.id();
        let _ = &mut queue;
        let mut job = script(
            move |_, done: &mut Vec<Completion>, queue: &mut dyn QueuePair| {
                in_flight -= done.len() as u64;
                while in_flight < depth && next < CAPACITY {
                    queue
                        .submit(write(0, next, 1), Tag(next as u32), None)
                        .expect("there is room");
                    next += 1;
                    in_flight += 1;
                }
                if in_flight == 0 {
                    NextWake::Finished
                } else {
                    NextWake::Completion
                }
            },
        );
        run_alone(&device, &mut job);
        // The queue above has taken number 0; the job's is the next.
        let mut own = id;
        own.0 += 1;
        let merges = device.merges(own);
        assert_eq!(merges.requests, CAPACITY);
        let commands = merges.requests - merges.merged;
        let rounds = CAPACITY.div_ceil(depth);
        assert!(
            commands >= 2 * rounds - 1 && commands <= 2 * rounds + 1,
            "{commands} commands of depth {depth}"
        );
    }
}

#[test]
fn timers_ring_at_the_tick_after_their_time() {
    let costs = BlockCosts {
        tick_ns: Nanos::from_ms(4),
        ..BlockCosts::default()
    };
    for (set, rings) in [(0, 4), (1, 4), (3, 4), (4, 8), (64, 68), (67, 68)] {
        let at = costs.rings_at(Nanos::from_ms(set));
        assert_eq!(at, Nanos::from_ms(rings), "{set}");
    }
    assert_eq!(BlockCosts::default().rings_at(US(7)), US(7), "exact");
}

/// The epoch of 64 ms of a kernel with ticks of 4 ms lasts 68.
#[test]
fn a_held_reset_waits_for_the_tick() {
    let mut settings = ZincSettings::default();
    settings.reset.min_concurrency = 0;
    settings.reset.write_tokens = 1_000_000;
    settings.reset.max_epoch_holds = 1;
    let costs = BlockCosts {
        tick_ns: Nanos::from_ms(4),
        ..BlockCosts::default()
    };
    let device = behind(tiny(&[]), &SchedulerSpec::Zinc(settings), costs);
    let reset = Command::new(Op::ZoneSend {
        slba: Lba(0),
        action: zonelab_nvme::zns::ZoneSendAction::RESET,
        select_all: false,
    });
    let rounds = run_rounds(&device, &[&[(write(0, 0, PAGE), None)], &[(reset, None)]]);
    // Two epochs from the start of time, and two erasures one beside the other.
    let at = rounds[1][0].1.at;
    let erased = Nanos::from_ms(2 * 68);
    assert!(at >= erased && at <= erased + Nanos::from_ms(8), "{at}");
}

fn schedulers() -> impl Strategy<Value = SchedulerSpec> {
    prop_oneof![
        Just(MQ()),
        Just(SchedulerSpec::Zinc(ZincSettings::default())),
    ]
}

proptest! {
    /// Schedulers change hands while a deep writer is at work: every write
    /// completes, none before the one in front of it in its zone, and the
    /// drive, which refuses writes out of order, refuses none.
    #[test]
    fn schedulers_can_be_switched_under_load(
        depth in 1_u64..24,
        switches in prop::collection::vec((0_u64..40, schedulers()), 0..5),
        cost in 0_u64..3,
    ) {
        let costs = BlockCosts { dispatch_ns: US(cost), ..BlockCosts::default() };
        let device = behind(tiny(&[]), &MQ(), costs);
        let order = Rc::new(RefCell::new(Vec::new()));
        let (log, drive) = (order.clone(), device.clone());
        let (mut next, mut in_flight) = (0, 0);
        let mut job = script(move |now, done: &mut Vec<Completion>, queue: &mut dyn QueuePair| {
            in_flight -= done.len() as u64;
            for completion in done.drain(..) {
                log.borrow_mut().push((completion.tag.0, completion.status));
            }
            while in_flight < depth && next < 2 * CAPACITY {
                for (at, scheduler) in &switches {
                    if *at == next {
                        drive.switch_scheduler(now, scheduler).expect("in range");
                    }
                }
                let command = write(next % 2, next / 2, 1);
                queue.submit(command, Tag(next as u32), None).expect("there is room");
                next += 1;
                in_flight += 1;
            }
            if in_flight == 0 { NextWake::Finished } else { NextWake::Completion }
        });
        prop_assert_eq!(run_alone(&device, &mut job).stuck_jobs, 0);
        let order = order.borrow();
        prop_assert_eq!(order.len() as u64, 2 * CAPACITY);
        for zone in 0..2 {
            let tags: Vec<_> = order.iter().filter(|(tag, _)| tag % 2 == zone).collect();
            prop_assert!(tags.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        prop_assert!(order.iter().all(|(_, status)| status.is_success()));
    }
}

#[test]
fn without_a_block_layer_there_is_nothing_to_switch_or_count() {
    let device = tiny(&[]);
    assert_eq!(device.switch_scheduler(Nanos::ZERO, &MQ()), Ok(false));
    let queue = device.open_queue(1, HostCosts::FREE, Rng::new(1, 0));
    assert_eq!(device.merges(queue.id()).requests, 0);
}
