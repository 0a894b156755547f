//! A log: records are appended to a zone, eight at a time, and the drive says where they are.
//!
//! ```console
//! $ cargo run --example append_log
//! $ cargo run --example append_log tcp://192.0.2.7/nqn.2026-01.org.example:zns
//! ```
//!
//! It takes an empty zone, and empties it afterwards.

#[expect(dead_code, reason = "it has what all of the examples need")]
pub(crate) mod common;

use common::{Drive, Failure, Queue};
use zonelab_device::{Buf, Lba};
use zonelab_driver::zones::{Open, Zone};

/// Records of the log. Each is a block.
const RECORDS: u64 = 64;
/// Appends in flight.
const DEPTH: u32 = 8;

fn main() -> Result<(), Failure> {
    common::run(log)
}

pub(crate) fn log(drive: Drive) -> Result<(), Failure> {
    let mut zone = drive.empty_zone()?.open()?;
    let records = RECORDS.min(zone.room_lbas());
    let index = append_all(&drive, &mut zone, records)?;

    // The write pointer is behind all records now.
    let (first, end) = (zone.start().0, zone.end_of_data().0);
    println!("{records} records in blocks {first} to {}", end - 1);

    // Appends in flight may be carried out in any order. The index knows.
    let moved = index.windows(2).filter(|pair| pair[1] < pair[0]).count();
    println!("{moved} records lie before one that was started earlier");
    for (number, lba) in index.iter().enumerate() {
        let record = zone.read(*lba, Buf::zeroed(drive.namespace.lba_bytes() as usize))?;
        assert_eq!(record, drive.block(&format!("record {number}")));
    }
    println!("all of them are where the index says");
    zone.reset()?;
    Ok(())
}

/// Appends the records. Returns where each is, in the order in which they were started.
fn append_all(
    drive: &Drive,
    zone: &mut Zone<'_, Queue, Open>,
    records: u64,
) -> Result<Vec<Lba>, Failure> {
    let mut index = vec![Lba(0); records as usize];
    let mut appender = zone.appender()?;
    for number in 0..records {
        // No more than DEPTH at a time: whichever ends first makes room.
        if appender.in_flight() == DEPTH
            && let Some(ended) = appender.next()
        {
            let appended = ended?;
            index[appended.id.0 as usize] = appended.lba;
        }
        appender.start(drive.block(&format!("record {number}")))?;
    }
    while let Some(ended) = appender.next() {
        let appended = ended?;
        index[appended.id.0 as usize] = appended.lba;
    }
    Ok(index)
}
