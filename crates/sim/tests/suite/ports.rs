//! One drive, several threads, in real time.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

use zonelab_device::{
    Command, Completion, Lba, Monotonic, Nanos, Op, QueuePair, RejectReason, Tag,
};
use zonelab_host::{Bell, Clock, CoreId, Job, NextWake, Reactor, RealClock, StopSignal};
use zonelab_sim::{Port, SharedDrive};
use zonelab_ssd::{Drive, profile};

const DEPTH: u32 = 8;

/// A drive whose flash takes microseconds: the tests wait for it.
fn drive() -> SharedDrive {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.media.read_ns = Nanos::from_us(2);
    config.media.program_ns = Nanos::from_us(3);
    SharedDrive::new(Drive::new(&config), Monotonic::new())
}

/// Commands of either kind that each thread sends.
const COMMANDS: u64 = 500;

/// Writes to a zone in order, four blocks at a time, and reads it again: each
/// command completes once, with success.
struct Worker {
    zslba: u64,
    next: u64,
    reads: bool,
    in_flight: BTreeSet<u32>,
    completed: u64,
}

impl Job for Worker {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.iter() {
            let Tag(tag) = completion.tag;
            assert!(completion.status.is_success(), "{completion:?}");
            assert!(self.in_flight.remove(&tag), "{tag} completed twice");
            self.completed += 1;
        }
        loop {
            if self.next == COMMANDS && !self.reads && self.in_flight.is_empty() {
                (self.next, self.reads) = (0, true);
            }
            // A zone is written in order: one write at a time.
            let most = if self.reads { DEPTH as usize } else { 1 };
            if self.next == COMMANDS || self.in_flight.len() == most {
                break;
            }
            let slba = Lba(self.zslba + 4 * self.next);
            let op = match self.reads {
                true => Op::Read { slba, nlb: 4 },
                false => Op::Write { slba, nlb: 4 },
            };
            let tag = (0..DEPTH)
                .find(|tag| !self.in_flight.contains(tag))
                .expect("fewer than DEPTH are in flight");
            queue
                .submit(Command::new(op), Tag(tag), None)
                .expect("the queue holds DEPTH commands");
            self.in_flight.insert(tag);
            self.next += 1;
        }
        match self.in_flight.is_empty() {
            true => NextWake::Finished,
            false => NextWake::Completion,
        }
    }
}

#[test]
fn threads_write_and_read_at_once_and_lose_nothing() {
    let shared = drive();
    let zoned = shared.info().namespaces[0].zoned.unwrap();
    let threads: u64 = 4;
    let together = Arc::new(Barrier::new(threads as usize));
    let ports: Vec<Port> = (0..threads).map(|_| shared.port(DEPTH)).collect();
    let completed: Vec<u64> = std::thread::scope(|scope| {
        let run = |(zone, port): (u64, Port)| {
            let (clock, together) = (shared.clock(), Arc::clone(&together));
            scope.spawn(move || {
                let (device, queue) = port.open();
                let mut worker = Worker {
                    zslba: zone * zoned.zone_size_lbas,
                    next: 0,
                    reads: false,
                    in_flight: BTreeSet::new(),
                    completed: 0,
                };
                together.wait();
                let clock = RealClock::sharing(clock);
                let start = clock.now();
                let mut reactor = Reactor::new(clock, device, StopSignal::default());
                reactor.add(&mut worker, queue, CoreId(0), start);
                let end = reactor.run();
                assert_eq!(end.stuck_jobs, 0);
                worker.completed
            })
        };
        let running: Vec<_> = (0..).zip(ports).map(run).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(completed, vec![2 * COMMANDS; threads as usize]);
    shared.with_drive(|drive| {
        let written = |zone| drive.zones().written_lbas(zonelab_device::ZoneId(zone));
        let written: Vec<u64> = (0..=threads as u32).map(written).collect();
        let (theirs, rest) = written.split_at(threads as usize);
        assert_eq!(theirs, vec![4 * COMMANDS; threads as usize]);
        assert_eq!(rest, [0]);
    });
}

/// Waits for a bell that only another thread rings.
struct Waits {
    stop: StopSignal,
    steps: u32,
}

impl Job for Waits {
    fn step(
        &mut self,
        now: Nanos,
        _done: &mut Vec<Completion>,
        _queue: &mut dyn QueuePair,
    ) -> NextWake {
        self.steps += 1;
        match self.stop.is_stopped() {
            true => NextWake::Finished,
            // An hour: the bell must come before.
            false => NextWake::At(now + Nanos::from_secs(3_600)),
        }
    }
}

#[test]
fn a_bell_that_another_thread_rings_ends_a_sleep() {
    let shared = drive();
    let port = shared.port(1);
    let stop = StopSignal::over(&Bell::default());
    let heard = stop.clone();
    let clock = shared.clock();
    let asleep = Arc::new(Barrier::new(2));
    let is_asleep = Arc::clone(&asleep);
    let thread = std::thread::spawn(move || {
        let (device, queue) = port.open();
        heard.bell().also_wakes(device.waker());
        let mut job = Waits {
            stop: heard.clone(),
            steps: 0,
        };
        let clock = RealClock::sharing(clock);
        let start = clock.now();
        let mut reactor = Reactor::new(clock, device, heard);
        reactor.add(&mut job, queue, CoreId(0), start);
        is_asleep.wait();
        reactor.run();
        job.steps
    });
    asleep.wait();
    stop.stop();
    let steps = thread.join().unwrap();
    assert!((1..=2).contains(&steps), "{steps}");
}

#[test]
fn a_queue_that_is_full_refuses() {
    let shared = drive();
    let (_device, mut queue) = shared.port(1).open();
    let read = Command::new(Op::Write {
        slba: Lba(0),
        nlb: 4,
    });
    queue.submit(read, Tag(0), None).unwrap();
    let refused = queue.submit(read, Tag(1), None).unwrap_err();
    assert!(matches!(
        refused.reason,
        RejectReason::QueueFull { depth: 1, .. }
    ));
}
