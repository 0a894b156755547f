//! Logs of drives that do what flash does not allow: an oracle that cannot see that sees
//! nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::profile;

use super::*;

const TOKEN: u32 = 7;

/// A small drive, with zone 0 written, and what watches it.
fn written() -> (Drive, Blocks) {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 64;
    config.zones.count = 6;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 128;
    let mut drive = Drive::new(&config);
    let mut blocks = Blocks::watch(&mut drive);
    let write = Op::Write {
        slba: Lba(0),
        nlb: 64,
    };
    run(&mut drive, write);
    blocks.look(&mut drive);
    (drive, blocks)
}

fn run(drive: &mut Drive, op: Op) {
    let now = drive.now();
    drive
        .submit(now, QueueId(0), Tag(0), Command::new(op), None)
        .expect("nothing is in flight");
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut Vec::new());
    }
    assert!(drive.now() > Nanos::ZERO);
}

/// What the oracle says of events that come now.
fn complaint(events: &[BlockEvent]) -> String {
    let (_, mut blocks) = written();
    let all = AssertUnwindSafe(|| events.iter().for_each(|event| blocks.take(*event)));
    let panic = catch_unwind(all).expect_err("it says nothing");
    let text = panic.downcast::<String>();
    *text.expect("assertions say what is wrong")
}

const fn program(block: usize, page: u32) -> BlockEvent {
    BlockEvent::Program {
        block,
        page,
        first: 0,
        end: 4,
    }
}

/// A block that nothing has been written to.
const FRESH: usize = 40;

#[test]
fn what_flash_does_not_allow_is_seen() {
    let submitted = BlockEvent::Submitted { token: TOKEN };
    let done = BlockEvent::Done { token: TOKEN };
    let erase = BlockEvent::Erase { block: FRESH };
    for (events, says) in [
        (&[program(0, 0)][..], "block 0 has data in 0..4"),
        (&[program(FRESH, 0), program(FRESH, 0)], "has data"),
        (
            &[program(FRESH, 2), program(FRESH, 1)],
            "programmed up to 12",
        ),
        (
            &[erase, submitted, BlockEvent::PowerLoss, program(FRESH, 0)],
            "erased in part",
        ),
        (&[submitted, done, done], "group 7 ends once more"),
        (
            &[erase, submitted, BlockEvent::PowerLoss, done],
            "group 7 ends once more",
        ),
    ] {
        let complaint = complaint(events);
        assert!(complaint.contains(says), "{complaint}");
    }
}

#[test]
fn what_flash_allows_is_accepted() {
    let (_, mut blocks) = written();
    let erase = BlockEvent::Erase { block: FRESH };
    for event in [
        program(FRESH, 0),
        program(FRESH, 2),
        BlockEvent::AtOnce,
        erase,
        BlockEvent::AtOnce,
        program(FRESH, 0),
        BlockEvent::Submitted { token: TOKEN },
        BlockEvent::Submitted { token: TOKEN },
        BlockEvent::Done { token: TOKEN },
        BlockEvent::PowerLoss,
        // It may have been programmed, or not.
        program(FRESH, 0),
    ] {
        blocks.take(event);
    }
    assert_eq!(blocks.in_vain(), 0);
    blocks.take(erase);
    blocks.take(erase);
    assert_eq!(blocks.in_vain(), 1);
}

/// Erasures of what nobody gave up, or gave up once.
#[test]
fn only_what_a_zone_gave_up_may_be_erased() {
    let complaint = |blocks: &mut Blocks, drive: &mut Drive, block| {
        let seen = Seen {
            erased: vec![block],
            was_cut: false,
        };
        let look = AssertUnwindSafe(|| blocks.owners.look(drive, &seen));
        catch_unwind(look)
            .err()
            .map(|text| *text.downcast::<String>().expect("it says what is wrong"))
    };
    let (mut drive, mut blocks) = written();
    let held = complaint(&mut blocks, &mut drive, 0).expect("zone 0 holds it");
    assert!(held.contains("data of zone 0"), "{held}");
    let fresh = complaint(&mut blocks, &mut drive, FRESH).expect("it was never used");
    assert!(fresh.contains("no zone has given it up"), "{fresh}");
    let reset = Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    run(&mut drive, reset);
    blocks.look(&mut drive);
    let again = complaint(&mut blocks, &mut drive, 0).expect("it was erased for that");
    assert!(again.contains("no zone has given it up"), "{again}");
}

/// Data that is gone, groups that never end and erasures that are not counted.
#[test]
fn what_is_missing_is_seen_at_rest() {
    let erase = BlockEvent::Erase { block: 0 };
    let submitted = BlockEvent::Submitted { token: TOKEN };
    for (events, says) in [
        (&[erase, BlockEvent::AtOnce][..], "erasures of block 0"),
        (&[submitted], "groups never end"),
        (&[program(FRESH, 0)], "operations in no group"),
    ] {
        let (mut drive, mut blocks) = written();
        for event in events {
            blocks.take(*event);
        }
        blocks.has_news = true;
        let look = AssertUnwindSafe(|| blocks.look(&mut drive));
        let panic = catch_unwind(look).expect_err("it says nothing");
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        let text = text.expect("assertions say what is wrong");
        assert!(text.contains(says), "{text}");
    }
    let (drive, mut blocks) = written();
    blocks.blocks[0].clear();
    let check = AssertUnwindSafe(|| blocks.check_data(&drive, ZoneId(0)));
    assert!(catch_unwind(check).is_err(), "block 0 of zone 0 is gone");
}
