//! What it costs to have a share of the map in memory, in virtual time: 7 reads to 3 writes
//! of 4 KiB on a full drive, anywhere or mostly in a part of it.
//!
//! `cargo bench -p zonelab-ftl --bench share`

#[expect(dead_code, reason = "each bench uses its part of it")]
#[path = "support/kept.rs"]
mod kept;
#[expect(dead_code, reason = "each bench uses its part of it")]
#[path = "support/loops.rs"]
mod loops;

use kept::Kept;
use loops::{DEPTH, Loop, config, run};
use zonelab_device::{Lba, Nanos, Op};
use zonelab_ftl::{FormatSettings, FtlDevice, FtlSettings, Placement, Shape, Start};
use zonelab_host::{Rng, VirtualClock};
use zonelab_sim::Emulated;
use zonelab_ssd::Drive;

/// Of the drive, 64 MiB each.
const ZONES: u32 = 100;
const OPERATIONS: u64 = 400_000;

/// Operations anywhere, or nine of ten in the first tenth of the blocks.
fn mixed(blocks: u64, is_hot: bool) -> impl FnMut(u64, &mut Rng) -> Op {
    move |_, rng| {
        let within = match is_hot && rng.below(10) > 0 {
            true => blocks / 10,
            false => blocks,
        };
        let (slba, nlb) = (Lba(rng.below(within)), 1);
        match rng.below(10) {
            0..7 => Op::Read { slba, nlb },
            _ => Op::Write { slba, nlb },
        }
    }
}

fn loops(ftl: &mut FtlDevice<Kept>, drive: &Kept, is_hot: bool, at: Nanos) -> Nanos {
    let blocks = u64::from(ftl.shape().logical_blocks);
    let queue = ftl
        .queue(drive.open(), DEPTH)
        .expect("there are few queues");
    let mut looped = Loop::new(mixed(blocks, is_hot), DEPTH, OPERATIONS);
    looped.rng = Rng::new(at.0, 0);
    run(ftl, queue, looped, at).1
}

fn measure(share: Option<f64>, is_hot: bool) {
    let inner = Emulated::new(Drive::new(&config(ZONES)));
    let format = FormatSettings {
        spare: 0.28,
        ..FormatSettings::new(1)
    };
    let shape = Shape::new(inner.info(), &format).expect("it can be formatted");
    let drive = Kept::new(inner, &shape);
    let settings = FtlSettings {
        placement: Placement::Append,
        map_share: share,
        ..FtlSettings::default()
    };
    let (queue, clock) = (drive.open(), VirtualClock::default());
    let start = Start::Format(format);
    let started = FtlDevice::start(drive.clone(), clock, queue, start, settings);
    let (mut ftl, at) = started.expect("it can be mounted");
    let blocks = u64::from(ftl.shape().logical_blocks);
    let queue = ftl.queue(drive.open(), 8).expect("there are few queues");
    let in_order = |at, _: &mut Rng| Op::Write {
        slba: Lba(256 * at),
        nlb: 256,
    };
    let (_, at) = run(&mut ftl, queue, Loop::new(in_order, 8, blocks / 256), at);
    let at = loops(&mut ftl, &drive, is_hot, at);
    let before = ftl.metrics();
    let end = loops(&mut ftl, &drive, is_hot, at);
    let metrics = ftl.metrics().since(&before);
    let name = share.map_or("all".to_owned(), |share| format!("{:.0} %", 100.0 * share));
    let found = metrics.map_hit_rate().unwrap_or(1.0);
    let written = metrics.total_write_amplification().unwrap_or_default();
    println!(
        "{name:>6} {:>8.2} {:>8.1} % {:>9.1} {written:>8.2}",
        metrics.map_bytes as f64 / 1e6,
        100.0 * found,
        OPERATIONS as f64 * 1e6 / (end - at).0 as f64,
    );
}

fn main() {
    for (is_hot, what) in [
        (true, "nine of ten in a tenth of the blocks"),
        (false, "anywhere"),
    ] {
        println!("7 reads to 3 writes of 4 KiB, {DEPTH} in flight, {what}:");
        println!(" share       MB      found  thousand/s  written per byte");
        for share in [
            None,
            Some(0.5),
            Some(0.2),
            Some(0.1),
            Some(0.05),
            Some(0.02),
        ] {
            measure(share, is_hot);
        }
    }
}
