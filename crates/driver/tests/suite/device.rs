//! Programs that a reactor runs on a device over NVMe/TCP, in real time.

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{
    Buf, Command, Completion, DeviceQueue, Lba, Nanos, Op, QueuePair, RejectReason, Tag,
};
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::ProtocolError;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{DriverError, Options, TcpController, TcpDevice};
use zonelab_host::stats::OpKind;
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::workload::{JobSpec, ReadWork, Stop, Work, WorkloadJob, WriteWork};
use zonelab_host::{Clock, CoreId, Job, NextWake, Reactor, RealClock, Rng, RunEnd, StopSignal};
use zonelab_nvme::Status;

use crate::bytes::pattern;
use crate::emulated::Target;
use crate::peer::{FATAL_LBA, LBA, Peer, SILENT_LBA};

/// A job from a closure.
struct Script<F>(F);

impl<F> Job for Script<F>
where
    F: FnMut(Nanos, &mut Vec<Completion>, &mut dyn QueuePair) -> NextWake,
{
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        (self.0)(now, done, queue)
    }
}

/// Runs jobs at once, each on a core and a queue of its own. The time of their
/// start, and how it ended.
fn run(device: &mut TcpDevice, jobs: &mut [&mut dyn Job]) -> (Nanos, RunEnd) {
    let queues: Vec<_> = jobs.iter().map(|_| device.open_queue().unwrap()).collect();
    let clock = RealClock::sharing(device.clock());
    let start = clock.now();
    let mut reactor = Reactor::new(clock, device, StopSignal::default());
    for (core, (job, queue)) in (0..).zip(jobs.iter_mut().zip(queues)) {
        assert!(queue.depth() > 0 && queue.id().0 > 0);
        reactor.add(*job, queue, CoreId(core), start);
    }
    (start, reactor.run())
}

fn device_at(peer: &Peer, change: impl FnOnce(&mut Options)) -> TcpDevice {
    let mut options = Options::new(TcpAddress::parse(&peer.url("")).unwrap());
    change(&mut options);
    TcpDevice::new(TcpController::connect(options).unwrap()).unwrap()
}

/// A queue that its owner drops is opened again, one that is held is not.
#[test]
fn a_dropped_queue_is_opened_again() {
    let target = Target::start();
    let mut options = target.options("");
    options.queues = 1;
    let controller = TcpController::connect(options).unwrap();
    let mut device = TcpDevice::new(controller).unwrap();
    assert_eq!(device.granted_queues(), 1);
    for _ in 0..3 {
        let mut is_sent = false;
        let mut reads = 0;
        let mut job = Script(|_, done: &mut Vec<Completion>, queue: &mut dyn QueuePair| {
            reads += done.iter().filter(|done| done.status.is_success()).count();
            if !std::mem::replace(&mut is_sent, true) {
                queue.submit(read(0), Tag(1), None).unwrap();
                queue.ring();
                return NextWake::Completion;
            }
            NextWake::Finished
        });
        run(&mut device, &mut [&mut job]);
        assert_eq!(reads, 1);
    }
    let held = device.open_queue().unwrap();
    let refused = device.open_queue().unwrap_err();
    assert!(matches!(refused, DriverError::Unusable { .. }), "{refused}");
    assert!(!device.is_lost());
    drop(held);
    device.close().unwrap().disconnect().unwrap();
}

fn read(slba: u64) -> Command {
    let slba = Lba(slba);
    Command::new(Op::Read { slba, nlb: 1 })
}

/// Two workloads side by side do what they do on any other device: one writes
/// three zones, the other reads others, which is zeros.
#[test]
fn workloads_run_on_a_served_drive() {
    let target = Target::start();
    let mut options = target.options("");
    options.queues = 2;
    let controller = TcpController::connect(options).unwrap();
    let mut device = TcpDevice::new(controller).unwrap();
    let info = device.info().as_ref().clone();
    let spec = |name: &str, work: Work, queue_depth: u32, operations: Option<u64>| JobSpec {
        queue_depth,
        stop: Stop {
            operations,
            ..Stop::default()
        },
        ..JobSpec::new(name, work)
    };
    let writes = Work::Write(WriteWork {
        zones: 0..3,
        block_lbas: 16,
        append: true,
        open_zones: 3,
        repeat: false,
        reset_first: false,
        open_first: false,
        command_lbas: None,
    });
    let reads = Work::Read(ReadWork {
        zones: 3..6,
        block_lbas: 4,
        random: true,
    });
    let stop = StopSignal::default;
    let mut writer = WorkloadJob::new(
        spec("writes", writes, 8, None),
        &info,
        Rng::new(1, 0),
        stop(),
    );
    let mut reader = WorkloadJob::new(
        spec("reads", reads, 4, Some(500)),
        &info,
        Rng::new(1, 1),
        stop(),
    );
    let (start, end) = run(&mut device, &mut [&mut writer, &mut reader]);
    assert_eq!(end.stuck_jobs, 0);
    assert!(end.at > start);
    let (wrote, read) = (writer.into_result(), reader.into_result());
    assert_eq!((wrote.first_error, read.first_error), (None, None));
    assert_eq!((wrote.operations, read.operations), (3 * 8, 500));
    let latency = &read.recorder.stats.get(OpKind::Read).unwrap().latency;
    assert!(latency.min().unwrap() > Nanos::ZERO);
    device.close().unwrap().disconnect().unwrap();
}

/// 20,000 times 2.5 us of core time, as a key-value store has it, are not
/// rounded to the ticks of a kernel; what is written meanwhile is where the
/// drive says, and is read back.
#[test]
fn short_waits_stay_short_and_data_stays_right() {
    const STEPS: u64 = 20_000;
    const WORK: Nanos = Nanos(2_500);
    async fn program(io: Io) -> Result<Vec<u64>, RejectReason> {
        let block = io.info().namespaces[0].lba_bytes as usize;
        let mut places = Vec::new();
        for step in 0..STEPS {
            io.work(WORK).await;
            if step.is_multiple_of(200) {
                let op = Op::Append {
                    zslba: Lba(0),
                    nlb: 1,
                };
                let mut data = pattern(block);
                data[0] = places.len() as u8;
                let answer = io.run(Command::new(op), Some(Buf::from(data))).await?;
                assert_eq!(answer.status, Status::SUCCESS);
                places.push(answer.result);
            }
        }
        for (count, place) in (0..).zip(&places) {
            let buf = Some(Buf::zeroed(block));
            let answer = io.run(read(*place), buf).await?;
            let data = answer.data.expect("a buffer comes back");
            assert_eq!((answer.status, data[0]), (Status::SUCCESS, count));
            assert_eq!(data[1..], pattern(block)[1..]);
        }
        Ok(places)
    }
    let target = Target::start();
    let mut device = TcpDevice::new(target.connect("")).unwrap();
    let info = device.info().as_ref().clone();
    let mut tasks = Tasks::new(&info, TasksConfig { cores: 1 }, program);
    let (start, end) = run(&mut device, &mut [&mut tasks]);
    assert_eq!(end.stuck_jobs, 0);
    let places = tasks.into_result().unwrap().unwrap();
    assert_eq!(places, (0..100).collect::<Vec<_>>());
    let (took, least) = (end.at - start, Nanos(STEPS * WORK.0));
    println!("{STEPS} waits of {WORK} and 200 commands: {took}, at least {least}");
    assert!(took >= least, "the waits are {least} long");
    device.close().unwrap().disconnect().unwrap();
}

/// Commands in flight end with a status, later ones are not taken, and the
/// device says why: for each way in which a peer can go away.
#[test]
fn a_device_that_goes_away_is_an_error() {
    type Expected = fn(&DriverError) -> bool;
    let is_closed: Expected = |error| matches!(error, DriverError::Closed | DriverError::Io(_));
    let is_late: Expected = |error| {
        matches!(
            error,
            DriverError::Protocol(ProtocolError::CommandTimeout { .. })
        )
    };
    for (block, expected) in [(FATAL_LBA, is_closed), (SILENT_LBA, is_late)] {
        let peer = Peer::start();
        let mut device = device_at(&peer, |options| {
            options.command_timeout = Nanos::from_ms(300);
        });
        let mut seen = Vec::new();
        let mut job = Script(|_, done: &mut Vec<Completion>, queue: &mut dyn QueuePair| {
            seen.extend(done.drain(..).map(|completion| completion.status));
            match seen.len() {
                0 => queue
                    .submit(read(0), Tag(0), Some(Buf::zeroed(LBA)))
                    .unwrap(),
                1 => {
                    for tag in 1..3 {
                        queue.submit(read(block), Tag(tag), None).unwrap();
                    }
                }
                _ => {
                    let gone = queue.submit(read(0), Tag(3), None).unwrap_err();
                    assert_eq!(gone.reason, RejectReason::Disconnected);
                    return NextWake::Finished;
                }
            }
            queue.ring();
            NextWake::Completion
        });
        let (_, end) = run(&mut device, &mut [&mut job]);
        assert_eq!(end.stuck_jobs, 0);
        let lost = Status::HOST_PATHING_ERROR;
        assert_eq!(seen, [Status::SUCCESS, lost, lost]);
        let error = device.close().expect_err("it is gone");
        assert!(expected(&error), "{error}");
    }
}

/// A job that waits for nothing is stuck, on a device that is there and stays so.
#[test]
fn a_job_without_commands_is_not_waited_for() {
    let peer = Peer::start();
    let mut device = device_at(&peer, |_| {});
    let mut job = Script(|_, _: &mut Vec<Completion>, _: &mut dyn QueuePair| NextWake::Completion);
    let (_, end) = run(&mut device, &mut [&mut job]);
    assert_eq!(end.stuck_jobs, 1);
    device.close().unwrap();
}

/// A server that is shut down in the middle of a run takes admin queue and I/O
/// queue with it.
#[test]
fn a_server_that_ends_ends_the_run() {
    let target = RefCell::new(Some(Target::start()));
    let controller = target.borrow().as_ref().unwrap().connect("");
    let mut device = TcpDevice::new(controller).unwrap();
    let statuses = Rc::new(RefCell::new(Vec::new()));
    let mut job = Script(|_, done: &mut Vec<Completion>, queue: &mut dyn QueuePair| {
        let mut statuses = statuses.borrow_mut();
        statuses.extend(done.drain(..).map(|completion| completion.status));
        if statuses.len() == 10 {
            drop(target.take());
        }
        match queue.submit(read(0), Tag(0), None) {
            Ok(()) => {
                queue.ring();
                NextWake::Completion
            }
            Err(rejected) => {
                assert_eq!(rejected.reason, RejectReason::Disconnected);
                NextWake::Finished
            }
        }
    });
    let (_, end) = run(&mut device, &mut [&mut job]);
    assert_eq!(end.stuck_jobs, 0);
    let statuses = statuses.take();
    assert!(statuses[..10].iter().all(|status| status.is_success()));
    assert_eq!(statuses[10..], [Status::HOST_PATHING_ERROR]);
    assert!(device.close().is_err());
}

/// The device keeps the controller's timer while jobs sleep, and only then wakes.
#[test]
fn the_controller_hears_from_a_host_that_sleeps() {
    let peer = Peer::start();
    let mut device = device_at(&peer, |options| options.kato_ms = 400);
    let mut steps = 0;
    let mut job = Script(
        |now: Nanos, _: &mut Vec<Completion>, _: &mut dyn QueuePair| {
            steps += 1;
            match steps {
                1 => NextWake::At(now + Nanos::from_ms(700)),
                _ => NextWake::Finished,
            }
        },
    );
    let (start, end) = run(&mut device, &mut [&mut job]);
    assert_eq!((end.stuck_jobs, steps), (0, 2));
    assert!(end.at - start >= Nanos::from_ms(700));
    assert!(peer.state.lock().unwrap().keep_alives >= 1);
    device.close().unwrap();
}
