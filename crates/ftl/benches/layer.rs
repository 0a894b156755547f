//! What the layer costs: the same loop on the emulated drive and on the layer on it, in virtual
//! time, by the time that the processor takes; the difference is the layer's. No data is kept
//! or moved.
//!
//! `cargo bench -p zonelab-ftl`

use std::task::Waker;
use std::thread;

use zonelab_device::{Command, Completion, Device, Lba, Monotonic, Nanos, Op, QueuePair, Tag};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, FtlShare, Placement, Start};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, EmulatedQueue, HostCosts};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::{Drive, profile};

const DEPTH: u32 = 32;

/// A drive of `zones` zones of 64 MiB in blocks of 4 KiB that only models time.
fn config(zones: u32) -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::None;
    config.geometry.pages_per_block = 512;
    config.geometry.blocks_per_plane = 64 * zones;
    config.zones.count = zones;
    config.zones.capacity_lbas = 16384;
    config.zones.size_lbas = 16384;
    config.zones.max_active = Some(14);
    config.zones.max_open = Some(14);
    config
}

/// What a loop does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Reads blocks anywhere.
    Read,
    /// Writes blocks anywhere.
    Write,
    /// Writes zones of the drive one after the other, one block at a time.
    Zones { size: u64, capacity: u64 },
}

/// So many operations, with so many in flight.
struct Loop {
    work: Work,
    blocks: u64,
    depth: u32,
    left: u64,
    in_flight: u32,
    next: u64,
    rng: Rng,
}

impl Loop {
    fn new(work: Work, blocks: u64, depth: u32, operations: u64) -> Self {
        Self {
            work,
            blocks,
            depth,
            left: operations,
            in_flight: 0,
            next: 0,
            rng: Rng::new(1, 0),
        }
    }

    fn op(&mut self) -> Op {
        let at = self.next;
        self.next += 1;
        match self.work {
            Work::Read => Op::Read {
                slba: Lba(self.rng.below(self.blocks)),
                nlb: 1,
            },
            Work::Write => Op::Write {
                slba: Lba(self.rng.below(self.blocks)),
                nlb: 1,
            },
            Work::Zones { size, capacity } => Op::Write {
                slba: Lba(at / capacity * size + at % capacity),
                nlb: 1,
            },
        }
    }
}

impl Job for Loop {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.iter() {
            assert!(completion.status.is_success(), "{completion:?}");
            self.in_flight -= 1;
        }
        while self.left > 0 && self.in_flight < self.depth {
            let command = Command::new(self.op());
            let taken = queue.submit(command, Tag(0), None);
            taken.expect("the queue holds as many");
            self.left -= 1;
            self.in_flight += 1;
        }
        queue.ring();
        match self.in_flight {
            0 => NextWake::Finished,
            _ => NextWake::Completion,
        }
    }
}

fn open(drive: &Emulated) -> EmulatedQueue {
    drive.open_queue(256, HostCosts::FREE, Rng::new(1, 0))
}

/// Runs a loop, and returns nanoseconds of the processor for each operation, and the time then.
fn run<D: Device>(device: D, queue: D::Queue, mut work: Loop, at: Nanos) -> (f64, Nanos)
where
    VirtualClock: zonelab_host::WaitsFor<D>,
{
    let operations = work.left as f64;
    let processor = Monotonic::new();
    let clock = VirtualClock::starting_at(at);
    let mut reactor = Reactor::new(clock, device, StopSignal::default());
    reactor.add(&mut work, queue, CoreId(0), at);
    let end = reactor.run();
    assert_eq!(end.stuck_jobs, 0);
    (processor.now().0 as f64 / operations, end.at)
}

fn mount(zones: u32, spare: f64, placement: Placement) -> (FtlDevice<Emulated>, Nanos) {
    let drive = Emulated::new(Drive::new(&config(zones)));
    let queue = open(&drive);
    let start = Start::Format(FormatSettings {
        spare,
        ..FormatSettings::new(1)
    });
    let settings = FtlSettings {
        keeps_data: false,
        placement,
        ..FtlSettings::default()
    };
    let mounted = FtlDevice::start(drive, VirtualClock::default(), queue, start, settings);
    mounted.expect("it can be mounted")
}

/// The same, with a loop of random operations on the layer.
fn on_layer(ftl: &mut FtlDevice<Emulated>, work: Work, operations: u64, at: Nanos) -> (f64, Nanos) {
    let blocks = u64::from(ftl.shape().logical_blocks);
    let below = open(ftl.inner());
    let queue = ftl.queue(below, DEPTH).expect("there are few queues");
    let mut looped = Loop::new(work, blocks, DEPTH, operations);
    // Other blocks than the loop before.
    looped.rng = Rng::new(at.0, 0);
    run(ftl, queue, looped, at)
}

/// Reads of the layer by a thread with a drive of its own below, so that the map is all that
/// threads share.
fn read_in_thread(share: &FtlShare, blocks: u64, operations: u64) -> f64 {
    let drive = Emulated::new(Drive::new(&config(100)));
    let queue = open(&drive);
    let part = share.part(drive, Waker::noop().clone());
    let queue = part.queue(queue, DEPTH).expect("there are few queues");
    run(
        part,
        queue,
        Loop::new(Work::Read, blocks, DEPTH, operations),
        Nanos::ZERO,
    )
    .0
}

fn main() {
    let operations = 1_000_000;
    let fill = 1_400_000;

    // Directly: zones one after the other, one write in flight, and reads of what they hold.
    let mut drive = Emulated::new(Drive::new(&config(100)));
    let zones = Work::Zones {
        size: 16384,
        capacity: 16384,
    };
    let queue = open(&drive);
    let (write, at) = run(&mut drive, queue, Loop::new(zones, 0, 1, fill), Nanos::ZERO);
    let queue = open(&drive);
    let reads = Loop::new(Work::Read, fill, DEPTH, operations);
    let (read, _) = run(&mut drive, queue, reads, at);

    println!("nanoseconds of the processor for 4 KiB, in virtual time, {DEPTH} in flight");
    println!("{:28} {:>9} {:>9} {:>9}", "", "drive", "layer", "on top");
    for placement in [Placement::Append, Placement::Write] {
        let (mut ftl, at) = mount(100, 0.28, placement);
        // Once over: so much that nothing is collected.
        let blocks = u64::from(ftl.shape().logical_blocks);
        let (through, at) = on_layer(&mut ftl, Work::Write, blocks, at);
        assert_eq!(ftl.metrics().moved_blocks, 0, "nothing is collected");
        let name = format!("random write ({})", placement.name());
        println!(
            "{name:28} {write:9.0} {through:9.0} {:9.0}",
            through - write
        );
        let (through, _) = on_layer(&mut ftl, Work::Read, operations, at);
        let name = "random read";
        println!("{name:28} {read:9.0} {through:9.0} {:9.0}", through - read);
        if placement == Placement::Write {
            scale(&ftl, blocks, operations);
        }
    }
    collect();
}

/// Reads in one thread and in two.
fn scale(ftl: &FtlDevice<Emulated>, blocks: u64, operations: u64) {
    let share = ftl.share();
    let alone = read_in_thread(&share, blocks, operations);
    let together: Vec<f64> = thread::scope(|scope| {
        let threads = (0..2).map(|_| scope.spawn(|| read_in_thread(&share, blocks, operations)));
        let threads: Vec<_> = threads.collect();
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().expect("it reads"));
        ends.collect()
    });
    let rate: f64 = together.iter().map(|each| alone / each).sum();
    println!("reads by two threads: {rate:.2} times those of one");
}

/// Random overwrites in the steady state of collection.
fn collect() {
    for spare in [0.07, 0.28] {
        let (mut ftl, mut at) = mount(200, spare, Placement::Append);
        let blocks = u64::from(ftl.shape().logical_blocks);
        for _ in 0..3 {
            at = on_layer(&mut ftl, Work::Write, blocks, at).1;
        }
        let before = ftl.metrics();
        let (each, _) = on_layer(&mut ftl, Work::Write, blocks, at);
        let amplification = ftl.metrics().since(&before).write_amplification();
        let amplification = amplification.unwrap_or_default();
        println!(
            "collection at {:.0} % spare: {:.2} million writes a second, write amplification \
             {amplification:.2}",
            100.0 * spare,
            1000.0 / each
        );
    }
}
