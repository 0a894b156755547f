//! Several threads, each with a queue pair of its own, on one drive in real time: what each
//! wrote it reads, with collection and commits under way in a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use zonelab_device::{Buf, Command, Completion, Device, Lba, Monotonic, Nanos, Op, QueuePair, Tag};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, FtlShare, Placement, Start};
use zonelab_host::{CoreId, Job, NextWake, Reactor, RealClock, Rng, StopSignal};
use zonelab_nvme::Status;
use zonelab_sim::{PortDevice, SharedDrive};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::{Drive, profile};

const THREADS: u32 = 3;
const DEPTH: u32 = 8;
/// Operations of each thread: enough for every zone to be written several times.
const OPERATIONS: u32 = 6_000;

/// A drive whose flash takes microseconds: the test waits for it.
fn drive() -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::Memory;
    config.media.read_ns = Nanos::from_us(1);
    config.media.program_ns = Nanos::from_us(1);
    config.media.erase_ns = Nanos::from_us(2);
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 1024;
    config.zones.count = 60;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 128;
    config.zones.max_active = Some(14);
    config.zones.max_open = Some(14);
    config
}

/// Stays until the others have ended: its reactor runs upkeep.
struct Keeper {
    running: Arc<AtomicBool>,
}

impl Job for Keeper {
    fn step(
        &mut self,
        now: Nanos,
        _done: &mut Vec<Completion>,
        _queue: &mut dyn QueuePair,
    ) -> NextWake {
        match self.running.load(Ordering::Acquire) {
            true => NextWake::At(now + Nanos::from_ms(1)),
            false => NextWake::Finished,
        }
    }
}

/// Writes, reads, trims and flushes blocks that are its own, several at a time, each of
/// another block.
struct Worker {
    thread: u32,
    /// By tag: the block, and the version that it has when its operation has ended.
    slots: Vec<Option<(u32, u32)>>,
    versions: Vec<u32>,
    left: u32,
    rng: Rng,
}

fn bytes_of(block: u32, version: u32) -> Vec<u8> {
    match version {
        0 => vec![0; 4096],
        _ => (u64::from(block) << 32 | u64::from(version))
            .to_le_bytes()
            .repeat(512),
    }
}

impl Worker {
    /// The block of the namespace that is the `own`th of this thread.
    fn block(&self, own: u32) -> u32 {
        own * THREADS + self.thread
    }

    fn land(&mut self, completion: &Completion) {
        assert_eq!(completion.status, Status::SUCCESS);
        let slot = self.slots[completion.tag.0 as usize].take();
        let (own, version) = slot.expect("an operation ends once");
        if own == u32::MAX {
            return;
        }
        if let Some(data) = &completion.data
            && version & 1 << 31 != 0
        {
            let block = self.block(own);
            let expected = bytes_of(block, self.versions[own as usize]);
            assert!(**data == *expected, "block {block}, {:?}", &data[..8]);
            return;
        }
        self.versions[own as usize] = version;
    }

    fn submit(&mut self, tag: u32, queue: &mut dyn QueuePair) {
        let own = loop {
            let own = self.rng.below(self.versions.len() as u64) as u32;
            let is_busy = |slot: &Option<(u32, u32)>| slot.is_some_and(|(busy, _)| busy == own);
            if !self.slots.iter().any(is_busy) {
                break own;
            }
        };
        let block = self.block(own);
        let (slba, nlb) = (Lba(block.into()), 1);
        let version = self.versions[own as usize] + 1;
        let (op, data, slot) = match self.rng.below(100) {
            0..65 => {
                let data = Buf::from(bytes_of(block, version));
                (Op::Write { slba, nlb }, Some(data), (own, version))
            }
            65..97 => {
                let data = Buf::from(vec![0xee; 4096]);
                (Op::Read { slba, nlb }, Some(data), (own, 1 << 31))
            }
            97..99 => (Op::WriteZeroes { slba, nlb }, None, (own, 0)),
            _ => (Op::Flush, None, (u32::MAX, 0)),
        };
        self.slots[tag as usize] = Some(slot);
        let taken = queue.submit(Command::new(op), Tag(tag), data);
        taken.expect("the queue holds as many");
        self.left -= 1;
    }
}

impl Job for Worker {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.iter() {
            self.land(completion);
        }
        for tag in 0..DEPTH {
            if self.left > 0 && self.slots[tag as usize].is_none() {
                self.submit(tag, queue);
            }
        }
        queue.ring();
        match self.slots.iter().all(Option::is_none) {
            true => NextWake::Finished,
            false => NextWake::Completion,
        }
    }
}

/// What a thread does.
fn work(share: &FtlShare, drive: &SharedDrive, thread: u32, own: u32) {
    let (inner, queue) = drive.port(256).open();
    let waker = inner.waker();
    let part = share.part(inner, waker);
    let queue = part.queue(queue, DEPTH).expect("there are few queues");
    let mut worker = Worker {
        thread,
        slots: vec![None; DEPTH as usize],
        versions: vec![0; own as usize],
        left: OPERATIONS,
        rng: Rng::new(1, thread.into()),
    };
    let clock = RealClock::sharing(drive.clock());
    let mut reactor = Reactor::new(clock, part, StopSignal::default());
    reactor.add(&mut worker, queue, CoreId(0), Nanos::ZERO);
    assert_eq!(reactor.run().stuck_jobs, 0);
    assert_eq!(worker.left, 0);
}

fn run(placement: Placement, map_share: Option<f64>) {
    let drive = SharedDrive::new(Drive::new(&drive()), Monotonic::new());
    let (inner, queue) = drive.port(256).open();
    let waker = inner.waker();
    let clock = RealClock::sharing(drive.clock());
    let start = Start::Format(FormatSettings {
        spare: 0.15,
        ..FormatSettings::new(7)
    });
    let settings = FtlSettings {
        placement,
        map_share,
        ..FtlSettings::default()
    };
    let mounted = FtlDevice::<PortDevice>::start(inner, clock, queue, start, settings);
    let (mut ftl, _) = mounted.expect("it can be mounted");
    ftl.wakes(waker);
    let share = ftl.share();
    let own = ftl.shape().logical_blocks / THREADS;
    let running = Arc::new(AtomicBool::new(true));
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (share, drive) = (share.clone(), drive.clone());
            scope.spawn(move || work(&share, &drive, thread, own))
        });
        let threads: Vec<_> = threads.collect();
        let done = Arc::clone(&running);
        scope.spawn(move || {
            let results: Vec<_> = threads
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect();
            done.store(false, Ordering::Release);
            assert!(results.iter().all(Result::is_ok), "a thread failed");
        });
        let mut keeper = Keeper {
            running: Arc::clone(&running),
        };
        let clock = RealClock::sharing(drive.clock());
        let mut reactor = Reactor::new(clock, Lending(&mut ftl), StopSignal::default());
        let (_, queue) = drive.port(1).open();
        reactor.add(&mut keeper, queue, CoreId(0), Nanos::ZERO);
        assert_eq!(reactor.run().stuck_jobs, 0);
    });
    assert_eq!(ftl.failure(), None);
    let metrics = ftl.metrics();
    assert!(
        metrics.collected_zones > 0,
        "zones are collected: {metrics:?}"
    );
}

/// The layer with a queue pair of the drive for the keeper, which sends nothing.
struct Lending<'a>(&'a mut FtlDevice<PortDevice>);

impl Device for Lending<'_> {
    type Queue = zonelab_sim::PortQueue;

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<zonelab_device::QueueId>) {
        self.0.advance(now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.0.wait(span)
    }
}

#[test]
fn threads_with_zones_of_their_own() {
    run(Placement::Write, None);
}

#[test]
fn threads_that_append_to_zones_of_their_own() {
    run(Placement::Append, None);
}

#[test]
fn threads_that_share_a_zone() {
    run(Placement::SharedAppend, None);
}

/// The least of the map that can be in memory, so that each block is looked up on the
/// drive.
#[test]
fn threads_with_little_of_the_map_in_memory() {
    for placement in [Placement::Write, Placement::Append, Placement::SharedAppend] {
        run(placement, Some(0.001));
    }
}
