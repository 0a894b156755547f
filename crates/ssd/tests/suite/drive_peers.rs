//! Defects of other emulators of zoned drives, which this one must not have.

use crate::drive_support::{
    ERASE, PAGE, READ, Rig, WRITE, confznspp, fill, narrow, reset, small, us,
};
use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{EraseExtent, EraseWhen, FinishConfig};

/// FEMU pays a tR for each of the four logical blocks of a page.
#[test]
fn an_aligned_read_of_a_page_is_one_array_read() {
    let mut rig = Rig::new(&confznspp());
    rig.precondition(0..1);
    assert_eq!(rig.time(rig.read(0, 7 * PAGE, PAGE)), READ);
    assert_eq!(rig.busy().1[0], us(60).0);
}

/// ConfZNS advances an address that it has advanced already, so that requests
/// above 32 KiB go to wrong planes, and to some of them repeatedly.
#[test]
fn each_page_of_a_request_is_touched_once_on_its_plane() {
    for pages in [2, 3, 4, 7, 8, 16] {
        for first in 0..6 {
            let mut rig = Rig::new(&small());
            rig.precondition(0..1);
            rig.time(rig.read(0, first * PAGE, pages * PAGE));
            let mut expected = [0; 4];
            for page in first..first + pages {
                expected[page as usize % 4] += us(60).0;
            }
            let units = &rig.drive.flash().media().ledger().units;
            let busy: Vec<u64> = units.iter().map(|unit| unit[0]).collect();
            assert_eq!(busy, expected, "{pages} pages from page {first}");
        }
    }
}

/// ConfZNS charges a write to the plane of its successor.
#[test]
fn a_write_is_charged_to_its_own_plane() {
    let mut rig = Rig::new(&small());
    for plane in 0..4 {
        let op = rig.write(0, PAGE);
        rig.time(op);
        let units = &rig.drive.flash().media().ledger().units;
        let busy: Vec<u64> = units.iter().map(|unit| unit[1]).collect();
        let mut expected = [0; 4];
        expected[..=plane].fill(us(700).0);
        assert_eq!(busy, expected);
    }
}

/// FEMU tests the bounds of an append at the start of the zone.
#[test]
fn an_append_cannot_run_past_the_capacity() {
    let mut rig = Rig::new(&small());
    rig.write_pages(0, 31);
    let done = rig.exec(rig.append(0, PAGE + 1));
    assert_eq!(done.status, Status::ZONE_BOUNDARY_ERROR);
    assert_eq!(
        rig.drive.zones().written_lbas(ZoneId(0)),
        u64::from(31 * PAGE)
    );
    assert_eq!(rig.time(rig.append(0, PAGE)), WRITE);
    assert_eq!(rig.exec(rig.append(0, 1)).status, Status::ZONE_IS_FULL);
    assert_eq!(rig.drive.flash().zone_state(0).0, 32);
}

/// In FEMU a plain write skips the check and runs into an assertion.
#[test]
fn plain_writes_respect_the_limits() {
    let mut config = small();
    config.zones.max_active = Some(3);
    config.zones.max_open = Some(2);
    let mut rig = Rig::new(&config);
    for zone in 0..2 {
        rig.time(rig.send(zone, ZoneSendAction::OPEN));
    }
    let done = rig.exec(rig.write_at(2, 0, 1));
    assert_eq!(done.status, Status::TOO_MANY_OPEN_ZONES);
    rig.time(rig.send(0, ZoneSendAction::CLOSE));
    assert_eq!(rig.exec(rig.write_at(2, 0, 1)).status, Status::SUCCESS);
    let done = rig.exec(rig.write_at(3, 0, 1));
    assert_eq!(done.status, Status::TOO_MANY_ACTIVE_ZONES);
    // What was refused left no trace on the flash.
    assert_eq!(rig.drive.flash().zone_state(3), (0, 0, 0));
    assert_eq!(rig.drive.totals().host_write_bytes, 4_096);
}

/// An implicitly opened zone makes room instead, whoever needs it.
#[test]
fn implicit_closes_are_counted() {
    let mut config = small();
    config.zones.max_open = Some(1);
    let mut rig = Rig::new(&config);
    rig.time(rig.write_at(0, 0, 1));
    rig.time(rig.write_at(1, 0, 1));
    assert_eq!(rig.drive.totals().implicit_closes, 1);
    rig.time(rig.append(2, 1));
    assert_eq!(rig.drive.totals().implicit_closes, 2);
    rig.time(rig.send(3, ZoneSendAction::OPEN));
    assert_eq!(rig.drive.totals().implicit_closes, 3);
    assert_eq!(rig.drive.zones().state(ZoneId(2)), ZoneState::CLOSED);
    // Closing on request is none.
    rig.time(rig.send(3, ZoneSendAction::CLOSE));
    assert_eq!(rig.drive.totals().implicit_closes, 3);
}

/// The resets of ConfZNS run on timelines that I/O never looks at.
#[test]
fn a_reset_delays_reads_and_writes() {
    let mut rig = Rig::new(&small());
    rig.precondition(0..2);
    rig.submit(rig.reset(0));
    let write = rig.submit(rig.write_at(2, 0, PAGE));
    let read = rig.submit(rig.read(1, PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(write).at.0, 2 * ERASE.0 + us(700).0);
    assert_eq!(rig.wait(read).at.0, 2 * ERASE.0 + READ.0);
}

/// In ConfZNS++ the finish of an empty zone costs one device write, and that of
/// a full zone a transfer.
#[test]
fn a_finish_costs_what_is_unwritten() {
    let mut config = small();
    config.finish = fill(64);
    let mut rig = Rig::new(&config);
    assert_eq!(rig.time(rig.finish(0)).0, 8 * WRITE.0);
    let busy = rig.busy();
    assert_eq!(rig.time(rig.finish(0)), Nanos::ZERO);
    rig.precondition(1..2);
    assert_eq!(rig.time(rig.finish(1)), Nanos::ZERO);
    assert_eq!(rig.busy(), busy);
    assert_eq!(
        rig.drive.totals().finishes,
        1,
        "the others were full already"
    );
}

/// ConfZNS charges one zone for a reset of all; it also forgets the erasure of
/// those on other dies.
#[test]
fn a_reset_of_all_charges_each_zone_on_its_own_dies() {
    let mut rig = Rig::new(&narrow());
    rig.precondition(0..32);
    let op = Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: true,
    };
    // Two zones on each die, with 8 blocks each.
    assert_eq!(rig.time(op).0, 16 * ERASE.0);
    assert_eq!(rig.drive.totals().erased_blocks, 32 * 8);
    for unit in &rig.drive.flash().media().ledger().units {
        assert_eq!(unit[3], 16 * ERASE.0);
    }
}

/// FEMU erases every channel on the reset of a zone that is on one of them.
#[test]
fn a_reset_erases_the_blocks_of_its_zone_only() {
    let mut config = narrow();
    config.reset = reset(EraseWhen::Synchronous, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    rig.precondition(0..32);
    rig.time(rig.reset(21));
    let flash = rig.drive.flash();
    let mine: Vec<usize> = (0..8)
        .map(|block| flash.layout().block_index(21, block))
        .collect();
    for (index, &count) in flash.erase_counts().iter().enumerate() {
        assert_eq!(count, u32::from(mine.contains(&index)), "block {index}");
    }
}

/// NVMeVirt loses buffer space with each write that it refuses.
#[test]
fn refused_commands_leave_everything_as_it_was() {
    let mut rig = Rig::new(&small());
    rig.write_pages(0, 3);
    rig.precondition(5..6);
    let before = (
        rig.drive.totals(),
        rig.busy(),
        rig.drive.flash().zone_state(0),
    );
    let refused = [
        rig.write_at(0, 0, 1),
        rig.write_at(0, 13, 1),
        rig.write_at(0, 12, 117),
        rig.write_at(0, 12, 0),
        rig.write_at(5, 0, 1),
        rig.append(5, 1),
        rig.append(0, 117),
        rig.write_at(6, 0, 1),
        rig.read(5, 150, 11),
        rig.send(0, ZoneSendAction::OFFLINE),
        rig.send(0, ZoneSendAction(0x7f)),
        rig.send(0, ZoneSendAction::ZRWA_FLUSH),
        rig.send(0, ZoneSendAction::SET_DESCRIPTOR_EXTENSION),
        Op::Append {
            zslba: Lba(1),
            nlb: 1,
        },
        Op::Write {
            slba: Lba(u64::MAX),
            nlb: u32::MAX,
        },
        Op::ZoneReceive {
            slba: Lba(0),
            filter: zonelab_nvme::zns::ReportFilter::ALL,
            partial: false,
            extended: false,
        },
    ];
    for _ in 0..50 {
        for op in refused {
            let done = rig.exec(op);
            assert!(!done.status.is_success(), "{op:?}");
            assert_eq!((done.latency(), done.result), (Nanos::ZERO, 0), "{op:?}");
        }
    }
    let after = (
        rig.drive.totals(),
        rig.busy(),
        rig.drive.flash().zone_state(0),
    );
    assert_eq!(after, before);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), WRITE);
}

/// A drive of 4 TB with 100,000 zones is ready, and as quick as a small one.
#[test]
fn size_costs_nothing() {
    let mut config = confznspp();
    config.geometry.channels = 16;
    config.geometry.ways = 8;
    config.zones.channels = 2;
    config.zones.ways = 1;
    config.zones.count = 100_000;
    config.zones.capacity_lbas = 2 * 768 * u64::from(PAGE);
    config.zones.size_lbas = 8_192;
    config.geometry.blocks_per_plane = 100_000 / 64 + 1;
    config.finish = FinishConfig::Metadata;
    let mut rig = Rig::new(&config);
    for zone in (0..100_000).step_by(997) {
        let op = rig.write(zone, PAGE);
        assert_eq!(rig.time(op), WRITE);
        assert_eq!(rig.time(rig.read(zone, 0, PAGE)), READ);
        rig.time(rig.finish(zone));
        assert_eq!(rig.time(rig.reset(zone)), ERASE);
    }
}
