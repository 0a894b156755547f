//! The layer on large drives, in virtual time: how long the steady state of 64 GiB takes to
//! reach, and how long a mount of 1 TB takes whose map is full.
//!
//! `cargo bench -p zonelab-ftl --bench large`: some minutes, and 5 GB of memory.

#[path = "support/kept.rs"]
mod kept;
#[path = "support/loops.rs"]
mod loops;

use kept::Kept;
use loops::{DEPTH, Loop, config, open, run};
use zonelab_device::{Device, Lba, Monotonic, Nanos, Op};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, Placement, Shape, Start};
use zonelab_host::{Rng, VirtualClock, WaitsFor};
use zonelab_sim::Emulated;
use zonelab_ssd::Drive;

/// Bytes of a zone, as in `config`.
const ZONE_BYTES: u64 = 64 << 20;

fn main() {
    steady();
    recovery();
}

fn format_settings() -> FormatSettings {
    FormatSettings {
        spare: 0.07,
        ..FormatSettings::new(1)
    }
}

fn format() -> Start {
    Start::Format(format_settings())
}

/// Random overwrites of 64 GiB until the amplification is steady.
fn steady() {
    let zones = (64 << 30) / ZONE_BYTES;
    let drive = Emulated::new(Drive::new(&config(zones as u32)));
    let queue = open(&drive);
    let settings = FtlSettings {
        keeps_data: false,
        placement: Placement::Append,
        ..FtlSettings::default()
    };
    let started = FtlDevice::start(drive, VirtualClock::default(), queue, format(), settings);
    let (mut ftl, mut at) = started.expect("it can be mounted");
    let blocks = u64::from(ftl.shape().logical_blocks);
    println!("64 GiB, {blocks} blocks of 4 KiB, 7 % spare, uniform overwrites:");
    let all = Monotonic::new();
    for pass in 1..=4 {
        let before = ftl.metrics();
        let clock = Monotonic::new();
        at = random(&mut ftl, |ftl| open(ftl.inner()), blocks, at);
        let wrote = ftl.metrics().since(&before).write_amplification();
        println!(
            "  pass {pass}: {:5.1} s of the processor, {:5.2} million writes a second, write \
             amplification {:.2}",
            clock.now().0 as f64 / 1e9,
            blocks as f64 * 1e3 / clock.now().0 as f64,
            wrote.unwrap_or_default(),
        );
    }
    println!("  in all {:.1} s", all.now().0 as f64 / 1e9);
}

/// So many blocks written at random.
fn random<D: Device>(
    ftl: &mut FtlDevice<D>,
    open: impl FnOnce(&FtlDevice<D>) -> D::Queue,
    writes: u64,
    at: Nanos,
) -> Nanos
where
    VirtualClock: for<'d> WaitsFor<&'d mut FtlDevice<D>>,
{
    let blocks = u64::from(ftl.shape().logical_blocks);
    let below = open(ftl);
    let queue = ftl.queue(below, DEPTH).expect("there are few queues");
    let mut looped = Loop::new(loops::writes(blocks), DEPTH, writes);
    looped.rng = Rng::new(at.0, 0);
    run(ftl, queue, looped, at).1
}

/// A mount after power was lost, on 1 TB of which every block is mapped and a sixth of the
/// blocks were written again, so that there is an image and a journal behind it.
fn recovery() {
    let zones = 1_000_000_000_000 / ZONE_BYTES;
    let config = config(zones as u32);
    let drive = Emulated::new(Drive::new(&config));
    let shape = Shape::new(drive.info(), &format_settings()).expect("it can be formatted");
    let drive = Kept::new(drive, &shape);
    let settings = FtlSettings::default();
    let queue = drive.open();
    let clock = VirtualClock::default();
    let started = FtlDevice::start(drive.clone(), clock, queue, format(), settings.clone());
    let (mut ftl, at) = started.expect("it can be mounted");
    let blocks = u64::from(ftl.shape().logical_blocks);
    println!("1 TB, {blocks} blocks of 4 KiB, every one mapped, a sixth written again at random:");
    let clock = Monotonic::new();
    let below = drive.open();
    let queue = ftl.queue(below, DEPTH).expect("there are few queues");
    let in_order = |at, _: &mut Rng| Op::Write {
        slba: Lba(256 * at),
        nlb: 256,
    };
    let fill = Loop::new(in_order, 8, blocks / 256);
    let (_, at) = run(&mut ftl, queue, fill, at);
    let at = random(&mut ftl, |_| drive.open(), blocks / 6, at);
    let metrics = ftl.metrics();
    println!(
        "  written in {:.0} s of the processor, with {:.2} GB of journal and {:.2} GB of images",
        clock.now().0 as f64 / 1e9,
        metrics.journal_blocks as f64 * 4096.0 / 1e9,
        metrics.image_blocks as f64 * 4096.0 / 1e9,
    );
    drop(ftl);
    let before = drive.read_bytes();
    let clock = Monotonic::new();
    let queue = drive.open();
    let from = VirtualClock::starting_at(at);
    let mounted = FtlDevice::start(drive.clone(), from, queue, Start::Mount, settings);
    let (ftl, until) = mounted.expect("it can be mounted");
    println!(
        "  mounted in {:.2} s of the drive's time, {:.2} s of the processor; {:.2} GB were read",
        (until - at).0 as f64 / 1e9,
        clock.now().0 as f64 / 1e9,
        (drive.read_bytes() - before) as f64 / 1e9,
    );
    drop(ftl);
}
