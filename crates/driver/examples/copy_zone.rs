//! Copies what a zone holds to an empty zone, as garbage collection does.
//!
//! ```console
//! $ cargo run --example copy_zone                                   # fills one, and copies it
//! $ cargo run --example copy_zone 'pcie://0000:01:00.0?nsid=1' 17   # copies zone 17
//! ```
//!
//! The source stays as it is. The destination is an empty zone; if there is none, `--overwrite`
//! lets it reset one.

#[expect(dead_code, reason = "it has what all of the examples need")]
pub(crate) mod common;

use common::{Drive, Failure};
use zonelab_device::{Buf, Lba, QueuePair};
use zonelab_driver::zones::{AnyZone, Open, Readable, Zone, ZoneError};

/// Blocks that are moved at a time.
const STEP: u64 = 8;

fn main() -> Result<(), Failure> {
    common::run(copy)
}

pub(crate) fn copy(drive: Drive) -> Result<(), Failure> {
    // Two handles at a time: of two zones. A second one of the same zone would be an error.
    let source = drive.zone_with_data()?;
    let to = drive.empty_zone()?.open()?;
    println!("from zone {} to zone {}", source.id().0, to.id().0);

    let lba_bytes = drive.namespace.lba_bytes();
    let copied = match &source {
        AnyZone::Open(zone) => copy_data(zone, to, lba_bytes)?,
        AnyZone::Closed(zone) => copy_data(zone, to, lba_bytes)?,
        AnyZone::OpenRandom(zone) => copy_data(zone, to, lba_bytes)?,
        AnyZone::ClosedRandom(zone) => copy_data(zone, to, lba_bytes)?,
        AnyZone::Full(zone) => copy_data(zone, to, lba_bytes)?,
        AnyZone::ReadOnly(zone) => copy_data(zone, to, lba_bytes)?,
        // These two have no `read`, so that nobody can pass them on.
        AnyZone::Empty(_) => return Err("there is nothing in the source".into()),
        AnyZone::Offline(_) => return Err("the source is offline".into()),
    };
    println!("copied {copied} blocks");
    Ok(())
}

/// Copies from a zone in any state that can be read, and finishes the other. Returns the blocks.
fn copy_data<Q: QueuePair>(
    from: &Zone<'_, Q, impl Readable>,
    mut to: Zone<'_, Q, Open>,
    lba_bytes: u32,
) -> Result<u64, ZoneError> {
    let (start, end) = (from.start().0, from.end_of_data().0);
    let mut at = start;
    while at < end {
        let blocks = STEP.min(end - at);
        let buf = Buf::zeroed((blocks * u64::from(lba_bytes)) as usize);
        // The buffer that was read into is the one that is written: nothing is copied in memory.
        to.write(from.read(Lba(at), buf)?)?;
        at += blocks;
    }
    // A zone that is written full is full, and `seal` says so. Another one is finished.
    match to.seal() {
        Ok(_full) => {}
        Err(open) => drop(open.finish()?),
    }
    Ok(end - start)
}
