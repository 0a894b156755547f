//! What the layer costs: the same loop on the emulated drive and on the layer on it, in virtual
//! time, by the time that the processor takes; the difference is the layer's. No data is kept
//! or moved.
//!
//! `cargo bench -p zonelab-ftl --bench layer`

#[path = "support/loops.rs"]
mod loops;

use std::task::Waker;
use std::thread;

use loops::{DEPTH, Loop, config, open, run, writes};
use zonelab_device::{Lba, Nanos, Op};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, FtlShare, Placement, Start};
use zonelab_host::{Rng, VirtualClock};
use zonelab_sim::Emulated;
use zonelab_ssd::Drive;

/// Reads of a block anywhere.
fn reads(blocks: u64) -> impl FnMut(u64, &mut Rng) -> Op {
    move |_, rng| Op::Read {
        slba: Lba(rng.below(blocks)),
        nlb: 1,
    }
}

/// Writes of zones one after the other, a block at a time.
fn zones(at: u64, _: &mut Rng) -> Op {
    Op::Write {
        slba: Lba(at),
        nlb: 1,
    }
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
fn on_layer(
    ftl: &mut FtlDevice<Emulated>,
    work: impl FnMut(u64, &mut Rng) -> Op,
    operations: u64,
    at: Nanos,
) -> (f64, Nanos) {
    let below = open(ftl.inner());
    let queue = ftl.queue(below, DEPTH).expect("there are few queues");
    let mut looped = Loop::new(work, DEPTH, operations);
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
        Loop::new(reads(blocks), DEPTH, operations),
        Nanos::ZERO,
    )
    .0
}

fn main() {
    let operations = 1_000_000;
    let fill = 1_400_000;

    // Directly: zones one after the other, one write in flight, and reads of what they hold.
    let mut drive = Emulated::new(Drive::new(&config(100)));
    let queue = open(&drive);
    let (write, at) = run(&mut drive, queue, Loop::new(zones, 1, fill), Nanos::ZERO);
    let queue = open(&drive);
    let beside = Loop::new(reads(fill), DEPTH, operations);
    let (read, _) = run(&mut drive, queue, beside, at);

    println!("nanoseconds of the processor for 4 KiB, in virtual time, {DEPTH} in flight");
    println!("{:28} {:>9} {:>9} {:>9}", "", "drive", "layer", "on top");
    for placement in [Placement::Append, Placement::Write] {
        let (mut ftl, at) = mount(100, 0.28, placement);
        // Once over: so much that nothing is collected.
        let blocks = u64::from(ftl.shape().logical_blocks);
        let (through, at) = on_layer(&mut ftl, writes(blocks), blocks, at);
        assert_eq!(ftl.metrics().moved_blocks, 0, "nothing is collected");
        let name = format!("random write ({})", placement.name());
        println!(
            "{name:28} {write:9.0} {through:9.0} {:9.0}",
            through - write
        );
        let (through, _) = on_layer(&mut ftl, reads(blocks), operations, at);
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
            at = on_layer(&mut ftl, writes(blocks), blocks, at).1;
        }
        let before = ftl.metrics();
        let (each, _) = on_layer(&mut ftl, writes(blocks), blocks, at);
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
