//! Loss of power: what is left of zones and data.

use crate::drive_support::{PAGE, READ, Rig, WRITE, confznspp, lazy, reset, small, us};
use proptest::prelude::*;
use zonelab_device::{Buf, Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig, EraseExtent, EraseWhen};
use zonelab_ssd::{Control, DriveModel, FaultTarget};

const LBA: usize = 4_096;

fn keeping() -> DriveConfig {
    DriveConfig {
        data: DataStore::Memory,
        ..small()
    }
}

fn written(zone: u32, offset: u64, pages: u32, byte: u8) -> (Op, Option<Buf>) {
    let nlb = pages * PAGE;
    let slba = Lba(u64::from(zone) * small().zones.size_lbas + offset);
    let data = Buf::from(vec![byte; nlb as usize * LBA]);
    (Op::Write { slba, nlb }, Some(data))
}

fn byte_at(rig: &mut Rig, zone: u32, offset: u64) -> u8 {
    let slba = Lba(u64::from(zone) * rig.drive.config().zones.size_lbas + offset);
    let buf = Buf::from(vec![0xee; LBA]);
    let done = rig.exec_with(Op::Read { slba, nlb: 1 }, Some(buf));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    assert!(
        data.iter().all(|byte| *byte == data[0]),
        "blocks are not torn"
    );
    data[0]
}

/// Cuts the power now and waits until the drive is back.
fn cut(rig: &mut Rig, seed: u64) -> zonelab_ssd::PowerLoss {
    let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), seed);
    rig.now = loss.ready_at;
    rig.drive.zones().assert_invariants();
    loss
}

#[test]
fn what_was_acknowledged_is_left_and_what_was_not_sent_to_flash_is_not() {
    let mut rig = Rig::new(&keeping());
    let (op, data) = written(0, 0, 2, 1);
    assert_eq!(rig.exec_with(op, data).status, Status::SUCCESS);
    let (op, data) = written(0, 8, 1, 2);
    rig.submit_with(op, data);
    let loss = rig.drive.power_cut(rig.now, us(500), 0);
    assert_eq!(loss.lost.len(), 1, "the write in flight");
    assert!(loss.lost[0].data.is_some(), "its buffer comes back");
    let pointer = rig.drive.zones().written_lbas(ZoneId(0));
    assert!(pointer == 8 || pointer == 12, "{pointer}");
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::CLOSED);
    assert_eq!(rig.drive.in_flight(), 0);
    assert!(loss.ready_at >= rig.now + us(500));

    // It takes nothing before it is ready.
    let early = rig.drive.submit(
        rig.now,
        zonelab_device::QueueId(0),
        zonelab_device::Tag(9),
        zonelab_device::Command::new(Op::Flush),
        None,
    );
    assert!(early.is_err());
    rig.now = loss.ready_at;
    assert_eq!(byte_at(&mut rig, 0, 7), 1);
    let (op, data) = written(0, pointer, 1, 3);
    assert_eq!(rig.exec_with(op, data).status, Status::SUCCESS);
    assert_eq!(byte_at(&mut rig, 0, pointer), 3);
}

#[test]
fn both_ends_of_an_unacknowledged_write_happen() {
    let outcomes: Vec<u64> = (0..32)
        .map(|seed| {
            let mut rig = Rig::new(&keeping());
            let (op, data) = written(1, 0, 4, 7);
            rig.submit_with(op, data);
            cut(&mut rig, seed);
            let pointer = rig.drive.zones().written_lbas(ZoneId(1));
            for lba in 0..pointer {
                assert_eq!(byte_at(&mut rig, 1, lba), 7);
            }
            assert_eq!(byte_at(&mut rig, 1, pointer), 0, "unwritten");
            pointer
        })
        .collect();
    for pages in 0..=4 {
        assert!(
            outcomes.contains(&(pages * u64::from(PAGE))),
            "{outcomes:?}"
        );
    }
    assert!(
        outcomes
            .iter()
            .all(|pointer| pointer.is_multiple_of(u64::from(PAGE)))
    );
}

/// The second write completes first, since the first waits behind reads of its
/// planes: its blocks stay, and so does the write pointer.
#[test]
fn an_acknowledged_write_behind_a_torn_one_is_left() {
    let mut config = keeping();
    config.geometry.planes = 1;
    config.zones.count = 2;
    let mut rig = Rig::new(&config);
    // Work for the plane of the first page.
    let (op, data) = written(1, 0, 1, 9);
    rig.submit_with(op, data);
    let (op, data) = written(0, 0, 1, 1);
    let first = rig.submit_with(op, data);
    let (op, data) = written(0, 4, 1, 2);
    let second = rig.submit_with(op, data);
    rig.run_to(WRITE + us(200));
    assert!(rig.done[first].is_none(), "it waits for its plane");
    assert!(rig.done[second].is_some(), "it does not");
    cut(&mut rig, 1);
    assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 8);
    assert_eq!(byte_at(&mut rig, 0, 4), 2);
    let torn = byte_at(&mut rig, 0, 0);
    assert!(torn == 0 || torn == 1, "{torn}");
}

#[test]
fn open_zones_are_closed_and_unwritten_ones_empty() {
    let mut rig = Rig::new(&small());
    let open = |rig: &Rig, zone| rig.send(zone, ZoneSendAction::OPEN);
    for zone in [0, 1] {
        let op = open(&rig, zone);
        assert_eq!(rig.exec(op).status, Status::SUCCESS);
    }
    let write = rig.write(1, PAGE);
    rig.exec(write);
    let write = rig.write(2, PAGE);
    rig.exec(write);
    let write = rig.write(3, PAGE);
    rig.exec(write);
    let finish = rig.send(3, ZoneSendAction::FINISH);
    rig.exec(finish);
    let loss = cut(&mut rig, 0);
    let state = |zone| rig.drive.zones().state(ZoneId(zone));
    assert_eq!(state(0), ZoneState::EMPTY, "opened, never written");
    assert_eq!(state(1), ZoneState::CLOSED, "opened explicitly");
    assert_eq!(state(2), ZoneState::CLOSED, "opened implicitly");
    assert_eq!(state(3), ZoneState::FULL);
    assert_eq!(loss.changes.len(), 3);
    assert_eq!(rig.drive.zones().open_count(), 0);
}

/// One active zone; in front of a slow front end, nothing of a last write gets
/// to the flash in time.
fn one_active_zone() -> DriveConfig {
    let mut config = small();
    config.zones.max_active = Some(1);
    config.zones.max_open = Some(1);
    config.zones.descriptor_extension_bytes = 64;
    config.front_end.cores = 1;
    config.front_end.write_ns = us(10_000);
    config
}

/// Writes zone 0 to its capacity, the last page not to the flash.
fn almost_fill(rig: &mut Rig) -> u64 {
    let zone_lbas = rig.drive.config().zones.capacity_lbas;
    let most = u32::try_from(zone_lbas).expect("zones are small") - PAGE;
    let write = rig.write(0, most);
    rig.exec(write);
    let write = rig.write(0, PAGE);
    rig.submit(write);
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
    u64::from(most)
}

/// The last write of a zone makes it full at once; lost, it leaves a zone that
/// is active again if it can be.
#[test]
fn a_zone_that_loses_its_last_blocks_is_active_again() {
    let mut rig = Rig::new(&one_active_zone());
    let left = almost_fill(&mut rig);
    // This one gives the only active resource back: nothing was written to it.
    let open = rig.send(1, ZoneSendAction::OPEN);
    rig.submit(open);
    assert_eq!(rig.drive.zones().active_count(), 1);
    cut(&mut rig, 0);
    let zones = rig.drive.zones();
    assert_eq!(zones.state(ZoneId(1)), ZoneState::EMPTY);
    assert_eq!(zones.state(ZoneId(0)), ZoneState::CLOSED);
    assert_eq!(zones.written_lbas(ZoneId(0)), left);
}

#[test]
fn a_zone_without_resource_is_finished_by_the_controller() {
    let mut rig = Rig::new(&one_active_zone());
    let left = almost_fill(&mut rig);
    // Zone 1 is closed with an extension: it keeps its resource over the loss.
    let set = rig.send(1, ZoneSendAction::SET_DESCRIPTOR_EXTENSION);
    rig.submit_with(set, Some(Buf::zeroed(64)));
    rig.run_to(rig.now + us(100));
    assert_eq!(rig.drive.zones().state(ZoneId(1)), ZoneState::CLOSED);
    cut(&mut rig, 0);
    let zones = rig.drive.zones();
    assert_eq!(zones.state(ZoneId(1)), ZoneState::CLOSED);
    assert_eq!(zones.state(ZoneId(0)), ZoneState::FULL);
    assert_eq!(zones.host_lbas(ZoneId(0)), left);
    let op = Op::ZoneReceive {
        slba: Lba(0),
        filter: zonelab_nvme::zns::ReportFilter::ALL,
        partial: true,
        extended: false,
    };
    let report = rig.exec_with(op, Some(Buf::zeroed(128)));
    let report = report.data.expect("the buffer comes back");
    assert_eq!(
        report[64 + 2] & 1,
        1,
        "zone attribute ZFC, byte 2 of the descriptor"
    );
}

/// Blocks that were being erased are erased again before they are programmed.
#[test]
fn an_interrupted_erasure_is_repeated() {
    for when in [
        EraseWhen::Synchronous,
        EraseWhen::Background,
        EraseWhen::FirstZoneWrite,
        EraseWhen::FirstBlockWrite,
    ] {
        for is_lazy in [false, true] {
            let mut config = small();
            config.reset = reset(when, EraseExtent::Partial);
            if is_lazy {
                config = lazy(config, 7);
            }
            let mut rig = Rig::new(&config);
            let fill = rig.write(0, 8 * PAGE);
            rig.exec(fill);
            let reset = rig.send(0, ZoneSendAction::RESET);
            rig.submit(reset);
            rig.run_to(rig.now + us(100));
            let write = rig.write(0, PAGE);
            rig.submit(write);
            rig.run_to(rig.now + us(100));
            let erased = rig.drive.totals().erased_blocks;
            cut(&mut rig, 0);
            while rig.next() {}
            assert_eq!(rig.drive.background_tasks(), 0);
            let write = rig.write(0, PAGE);
            assert_eq!(
                rig.exec(write).status,
                Status::SUCCESS,
                "{when:?} lazy {is_lazy}"
            );
            // With direct mapping the zone is on the same flash again: all blocks
            // that had been begun are erased once more.
            let again = rig.drive.totals().erased_blocks - erased;
            let expected = match (is_lazy, when) {
                (true, EraseWhen::Background) => 4,
                (true, _) => 0,
                (false, EraseWhen::FirstBlockWrite) => 1,
                (false, _) => 4,
            };
            assert_eq!(again, expected, "{when:?} lazy {is_lazy}");
            let slba = Lba(0);
            let read = rig.exec(Op::Read { slba, nlb: PAGE });
            assert!(read.latency() >= READ);
        }
    }
}

/// After a loss at any time under any load, the drive works as a fresh one
/// whose zones are where they are.
#[test]
fn preconditioned_zones_stay_full() {
    let mut rig = Rig::new(&confznspp());
    let full = Control::PreconditionFull { zones: 0..4 };
    rig.drive.control(rig.now, &full).expect("they are empty");
    cut(&mut rig, 0);
    assert_eq!(rig.drive.zones().state(ZoneId(3)), ZoneState::FULL);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The write pointer never goes below what was acknowledged nor above what
    /// was written, and the same seed leaves the same.
    #[test]
    fn pointers_stay_between_acknowledged_and_written(
        writes in prop::collection::vec((0_u32..3, 1_u32..6), 1..12),
        at_us in 0_u64..6_000,
        seed: u64,
    ) {
        let run = || {
            let mut rig = Rig::new(&keeping());
            let mut acknowledged = [0_u64; 3];
            let mut tags = Vec::new();
            let mut pointer = [0_u64; 3];
            for &(zone, pages) in &writes {
                let end = pointer[zone as usize] + u64::from(pages * PAGE);
                if end > rig.drive.config().zones.capacity_lbas {
                    continue;
                }
                let (op, data) = written(zone, pointer[zone as usize], pages, zone as u8 + 1);
                tags.push((rig.submit_with(op, data), zone, end));
                pointer[zone as usize] = end;
            }
            rig.run_to(us(at_us));
            for &(tag, zone, end) in &tags {
                if rig.done[tag].is_some() {
                    acknowledged[zone as usize] = acknowledged[zone as usize].max(end);
                }
            }
            cut(&mut rig, seed);
            let left: Vec<u64> = (0..3).map(|zone| rig.drive.zones().written_lbas(ZoneId(zone))).collect();
            (acknowledged, pointer, left)
        };
        let (acknowledged, pointer, left) = run();
        for zone in 0..3 {
            prop_assert!(acknowledged[zone] <= left[zone] && left[zone] <= pointer[zone],
                "zone {}: {} <= {} <= {}", zone, acknowledged[zone], left[zone], pointer[zone]);
        }
        prop_assert_eq!(run().2, left);
    }
}
