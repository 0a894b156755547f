//! A drive in ten lines: what a write and a read of it take.
//!
//! ```console
//! $ cargo run --release -p zonelab --example ten_lines
//! ```

use zonelab::device::{Command, Lba, Op, QueueId, Tag};
use zonelab::ssd::{Drive, DriveModel, profile};

fn main() {
    let profile = profile::builtin("confznspp").expect("it is built in");
    for (name, took) in times(&mut Drive::new(&profile.config)) {
        println!("{name:26} {took}");
    }
}

/// Each command by itself, and how long the drive took for it.
pub(crate) fn times(drive: &mut Drive) -> Vec<(&'static str, zonelab::device::Nanos)> {
    let (slba, zslba) = (Lba(0), Lba(0));
    let commands = [
        ("a write of a page", Op::Write { slba, nlb: 4 }),
        ("an append of four pages", Op::Append { zslba, nlb: 16 }),
        ("a read of a block", Op::Read { slba, nlb: 1 }),
    ];
    let mut done = Vec::new();
    let timed = commands.map(|(name, op)| {
        let start = drive.now();
        // Time is what the caller says it is: it jumps from event to event here.
        drive
            .submit(start, QueueId(0), Tag(0), Command::new(op), None)
            .expect("nothing is in flight");
        while let Some(at) = drive.next_event() {
            drive.advance(at, &mut done);
        }
        let end = done.pop().expect("a command completes");
        assert!(end.status.is_success(), "{}", end.status);
        (name, end.at.saturating_sub(start))
    });
    timed.to_vec()
}
