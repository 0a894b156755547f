//! Writes a block to a zone, reads it, and leaves the zone as it was.
//!
//! ```console
//! $ cargo run --example hello_zone                                 # on an emulated drive
//! $ cargo run --example hello_zone linux:///dev/ng0n1              # on a real one
//! ```
//!
//! It takes an empty zone. If there is none, `--overwrite` lets it reset one.

#[expect(dead_code, reason = "it has what all of the examples need")]
pub(crate) mod common;

use common::{Drive, Failure};
use zonelab_device::Buf;

fn main() -> Result<(), Failure> {
    common::run(hello)
}

pub(crate) fn hello(drive: Drive) -> Result<(), Failure> {
    // An empty zone has no `write`. It has `open`, which gives an open zone, which has.
    let zone = drive.empty_zone()?;
    println!(
        "zone {} has room for {} blocks",
        zone.id().0,
        zone.capacity_lbas()
    );
    let mut zone = zone.open()?;

    // A write names no address: it goes to the write pointer. The buffer comes back.
    let written = zone.write(drive.block("Hello, zone!"))?;
    println!(
        "wrote to block {}; the write pointer is {}",
        written.lba.0,
        zone.write_pointer().0
    );

    let read = zone.read(written.lba, Buf::zeroed(written.data.len()))?;
    assert_eq!(read, written.data);
    println!("read: {}", String::from_utf8_lossy(&read[..12]));

    // A finished zone can be read and reset, and that is all.
    let zone = zone.finish()?;
    println!(
        "finished: blocks up to {} can be read",
        zone.end_of_data().0
    );
    let zone = zone.reset()?;
    println!("zone {} is empty again", zone.id().0);
    Ok(())
}
