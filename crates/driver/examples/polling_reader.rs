//! Reads a zone with several reads in flight, on the queue pair itself, and says how long they took.
//!
//! ```console
//! $ cargo run --example polling_reader                                   # fills one, and reads it
//! $ cargo run --example polling_reader 'pcie://0000:01:00.0?nsid=1' 17   # reads zone 17
//! ```
//!
//! Reads need no exclusive handle, so this is one level below: commands, tags, and a loop that
//! polls. With the name of a zone nothing is written.

pub(crate) mod common;

use common::{Drive, Failure};
use zonelab_device::{Buf, Command, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::zones::AnyZone;

/// Reads in flight.
const DEPTH: u32 = 4;

fn main() -> Result<(), Failure> {
    common::run(read)
}

pub(crate) fn read(drive: Drive) -> Result<(), Failure> {
    // What there is to read, the handle knows.
    let (start, end) = match drive.zone_with_data()? {
        AnyZone::Open(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::Closed(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::OpenRandom(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::ClosedRandom(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::Full(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::ReadOnly(zone) => (zone.start(), zone.end_of_data()),
        AnyZone::Empty(_) | AnyZone::Offline(_) => return Err("there is nothing to read".into()),
    };
    let (mut pause, nsid) = (drive.pause(), drive.namespace.nsid());
    let mut free: Vec<(Tag, Buf)> = (0..DEPTH).map(|tag| (Tag(tag), drive.block(""))).collect();
    let mut queue = drive.namespace.into_queue();

    let mut next = start.0;
    let mut submitted_at = [Nanos::ZERO; DEPTH as usize];
    let mut latencies_ns = Vec::new();
    let mut done = Vec::new();
    while latencies_ns.len() as u64 != end.0 - start.0 {
        // Whatever is free goes out, and one doorbell tells the device of all of it.
        while next < end.0
            && let Some((tag, buf)) = free.pop()
        {
            let op = Op::Read {
                slba: Lba(next),
                nlb: 1,
            };
            submitted_at[tag.0 as usize] = queue.now();
            queue.submit(Command::on(nsid, op), tag, Some(buf))?;
            next += 1;
        }
        queue.ring();
        if queue.poll(&mut done) == 0 {
            pause(Nanos::from_secs(1));
        }
        for completion in done.drain(..) {
            if !completion.status.is_success() {
                return Err(format!("a read failed: {}", completion.status).into());
            }
            let began = submitted_at[completion.tag.0 as usize];
            latencies_ns.push(completion.at.saturating_sub(began).0);
            let buf = completion.data.ok_or("a read has its buffer")?;
            free.push((completion.tag, buf));
        }
    }

    latencies_ns.sort_unstable();
    let at = |percent: usize| Nanos(latencies_ns[(latencies_ns.len() - 1) * percent / 100]);
    println!(
        "{} blocks, {DEPTH} reads in flight: median {}, 99 % within {}, longest {}",
        latencies_ns.len(),
        at(50),
        at(99),
        at(100)
    );
    Ok(())
}
