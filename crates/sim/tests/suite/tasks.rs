//! Programs of tasks: order, waiting, ends.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::join_all;
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, Nanos, Op, QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::{Drive, profile};

/// Runs a program on a drive whose page program takes 725 us.
fn run<T: 'static, F: Future<Output = T> + 'static>(
    depth: u32,
    cores: u32,
    main: impl FnOnce(Io) -> F,
) -> (Option<T>, RunEnd) {
    let profile = profile::builtin("confznspp").expect("it is built in");
    let device = Emulated::new(Drive::new(&profile.config));
    let queue = device.open_queue(depth, HostCosts::FREE, Rng::new(1, 0));
    let info = Drive::info_of(&profile.config);
    let mut tasks = Tasks::new(&info, TasksConfig { cores }, main);
    let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
    reactor.add(&mut tasks, queue, CoreId(0), Nanos::ZERO);
    let end = reactor.run();
    (tasks.into_result(), end)
}

/// A write of one page, to zone `zone` at page `page`.
fn write(zone: u64, page: u64) -> Command {
    let slba = Lba(zone * 524_288 + page * 4);
    Command::new(Op::Write { slba, nlb: 4 })
}

#[test]
fn sleeps_end_in_order_of_time_then_of_asking() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&order);
    let (result, end) = run(1, 0, async move |io| {
        let sleeper = |name: &'static str, us| {
            let (io, order) = (io.clone(), Rc::clone(&order));
            async move {
                io.sleep_until(Nanos::from_us(us)).await;
                order.borrow_mut().push((name, io.now()));
            }
        };
        join_all([
            sleeper("late", 9),
            sleeper("a", 5),
            sleeper("b", 5),
            sleeper("now", 0),
        ])
        .await;
    });
    let us = Nanos::from_us;
    let expected = [("now", us(0)), ("a", us(5)), ("b", us(5)), ("late", us(9))];
    assert_eq!(*heard.borrow(), expected);
    assert!(result.is_some());
    assert_eq!((end.at, end.stuck_jobs), (us(9), 0));
}

#[test]
fn work_shares_the_cores_that_there_are() {
    let finish = |cores| {
        run(1, cores, async |io| {
            let work = |_| {
                let io = io.clone();
                async move {
                    io.work(Nanos::from_us(10)).await;
                    io.now()
                }
            };
            join_all((0..4).map(work)).await
        })
    };
    let us = |all: [u64; 4]| Some(all.map(Nanos::from_us).to_vec());
    assert_eq!(finish(0).0, us([10, 10, 10, 10]));
    assert_eq!(finish(1).0, us([10, 20, 30, 40]));
    assert_eq!(finish(3).0, us([10, 10, 10, 20]));
}

#[test]
fn commands_wait_for_room_in_the_queue_in_order() {
    let (result, _) = run(1, 0, async |io| {
        let all = (0..3).map(|zone| io.begin(write(zone, 0), None));
        join_all(all).await
    });
    let ends: Vec<_> = result
        .expect("it ended")
        .into_iter()
        .map(|answer| answer.expect("the drive is there"))
        .map(|answer| (answer.status, answer.at))
        .collect();
    let expected = [725, 1450, 2175].map(|us| (Status::SUCCESS, Nanos::from_us(us)));
    assert_eq!(ends, expected);
}

#[test]
fn a_command_that_nobody_waits_for_is_done_all_the_same() {
    let (result, end) = run(4, 0, async |io| {
        drop(io.begin(write(0, 0), None));
        // At the write pointer only if the first one came before it.
        io.run(write(0, 1), None).await.map(|answer| answer.status)
    });
    assert_eq!(result, Some(Ok(Status::SUCCESS)));
    assert_eq!(end.stuck_jobs, 0);
}

#[test]
fn everything_ends_with_the_main_task() {
    let ticks = Rc::new(RefCell::new(0));
    let count = Rc::clone(&ticks);
    let (result, end) = run(4, 0, async move |io| {
        let clock = {
            let io = io.clone();
            async move {
                loop {
                    io.sleep_until(io.now() + Nanos::from_us(1)).await;
                    *ticks.borrow_mut() += 1;
                }
            }
        };
        io.spawn(clock).forget();
        drop(io.begin(write(0, 0), None));
        io.sleep_until(Nanos(9_500)).await;
        7
    });
    assert_eq!(result, Some(7));
    assert_eq!(
        *count.borrow(),
        9,
        "one a microsecond, until the main task ended"
    );
    // What was in flight has to come back.
    assert_eq!((end.at, end.stuck_jobs), (Nanos::from_us(725), 0));
}

#[test]
fn a_handle_gives_what_its_task_returned_and_ends_it_when_dropped() {
    let (result, _) = run(1, 0, async |io| {
        let quick = io.spawn(async { 3 });
        let endless = io.spawn(std::future::pending::<()>());
        drop(endless);
        quick.await
    });
    assert_eq!(result, Some(3));
}

#[test]
fn a_program_that_waits_for_nothing_is_stuck() {
    let (result, end) = run(1, 0, async |_| std::future::pending::<u32>().await);
    assert_eq!((result, end.stuck_jobs), (None, 1));
}

/// A queue pair of a device that has gone.
struct Gone(DeviceInfo);

impl QueuePair for Gone {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }
    fn now(&self) -> Nanos {
        Nanos::ZERO
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

#[test]
fn a_device_that_has_gone_is_an_error_for_who_asked() {
    let profile = profile::builtin("confznspp").expect("it is built in");
    let info = Drive::info_of(&profile.config);
    let mut tasks = Tasks::new(&info, TasksConfig::default(), async |io| {
        let first = io.run(write(0, 0), None).await.map(|answer| answer.at);
        // And again: the program decides what to make of it.
        (
            first,
            io.run(write(0, 0), None).await.map(|answer| answer.at),
        )
    });
    let next = tasks.step(Nanos::ZERO, &mut Vec::new(), &mut Gone(info));
    assert_eq!(next, NextWake::Finished);
    let gone = Err(RejectReason::Disconnected);
    assert_eq!(tasks.into_result(), Some((gone, gone)));
}
