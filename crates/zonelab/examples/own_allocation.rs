//! An allocation policy of one's own, without touching the crate.
//!
//! ```console
//! $ cargo run --release -p zonelab --example own_allocation
//! ```
//!
//! The drive gives a zone the physical zone that has been free for longest, and so wears
//! all of its flash alike. `LastFreed` gives it the one that became free last: zones that
//! are reset over and over stay where they are, and the spare flash stays new.

use zonelab::device::{Command, Lba, Op, QueueId, Tag};
use zonelab::nvme::zns::ZoneSendAction;
use zonelab::ssd::config::{EraseExtent, EraseWhen, MappingConfig};
use zonelab::ssd::policy::{AllocationPolicy, PolicyError, ZoneRequest};
use zonelab::ssd::{Drive, DriveModel, profile};

/// Gives zones the physical zone that became free last.
#[derive(Debug)]
struct LastFreed;

impl AllocationPolicy for LastFreed {
    fn name(&self) -> &str {
        "last-freed"
    }

    // Candidates are in the order in which they became free, and there is one at least.
    fn physical_zone(&mut self, request: &ZoneRequest<'_>) -> Result<usize, PolicyError> {
        Ok(request.candidates.len() - 1)
    }

    // It goes by what it is told alone, so drives with it can be saved and restored.
    fn has_memory(&self) -> bool {
        false
    }
}

/// A drive of small zones that has flash for three more than it shows.
fn drive() -> Drive {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 128;
    config.mapping = MappingConfig::Lazy { physical_zones: 9 };
    config.reset.erase = EraseWhen::Background;
    config.reset.extent = EraseExtent::Full;
    Drive::new(&config)
}

fn finish(drive: &mut Drive, op: Op) {
    let now = drive.now();
    drive
        .submit(now, QueueId(0), Tag(0), Command::new(op), None)
        .expect("nothing is in flight");
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
    assert!(done.iter().all(|of| of.status.is_success()));
}

/// Four of six zones are written once; the others over and over. Returns how many blocks
/// were ever erased.
fn worn_blocks(mut drive: Drive) -> Result<usize, PolicyError> {
    let write = |zone: u64| Op::Write {
        slba: Lba(zone * 128),
        nlb: 128,
    };
    let reset = |zone: u64| Op::ZoneSend {
        slba: Lba(zone * 128),
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    for zone in 0..6 {
        finish(&mut drive, write(zone));
    }
    for round in 0..50 {
        let zone = 4 + round % 2;
        finish(&mut drive, reset(zone));
        finish(&mut drive, write(zone));
    }
    if let Some(error) = drive.policy_error() {
        return Err(error.clone());
    }
    let counts = drive.flash().blocks().wears();
    Ok(counts.filter(|count| *count > 0).count())
}

/// Blocks ever erased by the built-in rule, and by the one of this file.
pub(crate) fn compare() -> Result<[usize; 2], PolicyError> {
    let mut own = drive();
    own.set_allocation_policy(Box::new(LastFreed))?;
    Ok([worn_blocks(drive())?, worn_blocks(own)?])
}

fn main() -> Result<(), PolicyError> {
    let [built_in, own] = compare()?;
    println!("blocks ever erased: {built_in} by the built-in rule, {own} by that of the example");
    Ok(())
}
