//! Random write areas of the whole drive: what is programmed when, what reads
//! back, and what losses of power and snapshots keep.

mod random;

use crate::drive_support;
use crate::drive_support::{PAGE, READ, Rig, WRITE, fill, lazy, small};
use proptest::prelude::*;
use zonelab_device::{Buf, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::FaultTarget;
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, FillExtent, FinishConfig, Placement, WriteBufferConfig,
    ZrwaConfig,
};
use zonelab_ssd::snapshot::{self, SnapshotError};

/// Blocks of an area: four pages.
const AREA: u32 = 4 * PAGE;
/// Blocks of a flush granularity: half a page.
const STEP: u32 = PAGE / 2;
const BLOCK: usize = 4_096;

/// Zones of 32 pages on a drive that keeps data, in front of a buffer of 16 pages.
fn config(is_protected: bool) -> DriveConfig {
    let mut config = small();
    config.data = DataStore::Memory;
    config.finish = FinishConfig::Metadata;
    config.zones.descriptor_extension_bytes = 64;
    config.zones.zrwa = Some(ZrwaConfig {
        size_lbas: AREA,
        flush_granularity_lbas: STEP,
        max_areas: Some(2),
        explicit_flush: true,
    });
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 16 * u64::from(config.geometry.page_bytes),
        power_loss_protection: is_protected,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
    });
    config
}

fn open(rig: &Rig, zone: u32) -> Op {
    let action = ZoneSendAction::OPEN;
    let slba = rig.lba(zone, 0);
    Op::ZrwaSend { slba, action }
}

/// Commits a zone up to block `end`.
fn commit(rig: &Rig, zone: u32, end: u32) -> Op {
    Op::ZoneSend {
        slba: rig.lba(zone, end - 1),
        action: ZoneSendAction::ZRWA_FLUSH,
        select_all: false,
    }
}

fn with_area(config: &DriveConfig) -> Rig {
    let mut rig = Rig::new(config);
    let open = open(&rig, 0);
    assert_eq!(rig.exec(open).status, Status::SUCCESS);
    rig
}

fn filled(nlb: u32, byte: u8) -> Option<Buf> {
    Some(Buf::from(vec![byte; nlb as usize * BLOCK]))
}

fn write(rig: &mut Rig, offset: u32, nlb: u32, byte: u8) -> drive_support::Done {
    let op = rig.write_at(0, offset, nlb);
    rig.exec_with(op, filled(nlb, byte))
}

/// The first byte of each block.
fn read(rig: &mut Rig, offset: u32, nlb: u32) -> Vec<u8> {
    let op = rig.read(0, offset, nlb);
    let done = rig.exec_with(op, filled(nlb, 0xee));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    data.chunks(BLOCK).map(|block| block[0]).collect()
}

fn pointer(rig: &Rig) -> u64 {
    rig.drive.zones().written_lbas(ZoneId(0))
}

fn programmed_pages(rig: &Rig) -> u64 {
    let page_bytes = u64::from(rig.drive.config().geometry.page_bytes);
    rig.drive.totals().host_program_bytes / page_bytes
}

#[test]
fn an_area_is_written_in_any_order_and_again_without_flash() {
    let mut rig = with_area(&config(true));
    for (offset, nlb, byte) in [(AREA - 3, 3, 1), (0, 5, 2), (2, 1, 3), (2, 1, 4)] {
        let done = write(&mut rig, offset, nlb, byte);
        assert_eq!(done.status, Status::SUCCESS);
        assert_eq!(done.latency(), Nanos::ZERO);
    }
    assert_eq!(pointer(&rig), 0);
    let mut expected = vec![0; AREA as usize];
    expected[..5].fill(2);
    expected[2] = 4;
    expected[AREA as usize - 3..].fill(1);
    let before = rig.now;
    assert_eq!(read(&mut rig, 0, AREA), expected);
    assert_eq!(rig.now, before, "nothing of it is on the flash");
    assert_eq!(rig.drive.totals().host_write_bytes, 10 * BLOCK as u64);
    rig.settle();
    assert_eq!(programmed_pages(&rig), 0);
    let report = rig.report();
    assert_eq!(report[64 + 2], 1 << 3, "ZRWAV");
}

/// A write that ends `over` blocks behind the area moves the write pointer by
/// the least multiple of the granularity that is enough.
#[test]
fn a_write_beyond_the_area_commits_what_it_must() {
    for over in 1..=AREA {
        let mut rig = with_area(&config(true));
        assert_eq!(write(&mut rig, 1, 2, 7).status, Status::SUCCESS);
        let done = write(&mut rig, AREA + over - 1, 1, 8);
        assert_eq!(done.status, Status::SUCCESS, "{over}");
        let committed = over.next_multiple_of(STEP);
        assert_eq!(pointer(&rig), u64::from(committed), "{over}");
        rig.settle();
        assert_eq!(programmed_pages(&rig), u64::from(committed / PAGE));
        let mut expected = vec![0; (AREA + over) as usize];
        expected[1..3].fill(7);
        expected[(AREA + over) as usize - 1] = 8;
        assert_eq!(read(&mut rig, 0, AREA + over), expected, "{over}");
        // What was committed is behind the area.
        let again = write(&mut rig, committed - 1, 1, 9);
        assert_eq!(again.status, Status::ZONE_INVALID_WRITE);
    }
    let mut rig = with_area(&config(true));
    let done = write(&mut rig, 2 * AREA, 1, 8);
    assert_eq!(done.status, Status::ZONE_INVALID_WRITE, "out of reach");
    let append = rig.append(0, 1);
    let done = rig.exec(append);
    assert_eq!(done.status, Status::INVALID_ZONE_OPERATION_REQUEST);
}

#[test]
fn blocks_are_committed_on_request_up_to_the_end_of_the_zone() {
    let config = config(true);
    let capacity = u32::try_from(config.zones.capacity_lbas).expect("zones are small");
    let mut rig = with_area(&config);
    let refused = |rig: &mut Rig, end| {
        let commit = commit(rig, 0, end);
        let done = rig.exec(commit);
        assert_eq!(done.status, Status::INVALID_ZONE_OPERATION_REQUEST, "{end}");
    };
    refused(&mut rig, 1);
    refused(&mut rig, AREA + STEP);
    let of_other = commit(&rig, 1, STEP);
    let done = rig.exec(of_other);
    assert_eq!(done.status, Status::INVALID_ZONE_OPERATION_REQUEST);

    for start in (0..capacity).step_by(AREA as usize) {
        assert_eq!(
            write(&mut rig, start + 1, AREA - 1, 5).status,
            Status::SUCCESS
        );
        let op = commit(&rig, 0, start + AREA);
        let done = rig.exec(op);
        assert_eq!(done.status, Status::SUCCESS, "{start}");
        assert_eq!(pointer(&rig), u64::from(start + AREA));
    }
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
    assert!(!rig.drive.zones().has_zrwa(ZoneId(0)));
    rig.settle();
    assert_eq!(programmed_pages(&rig), u64::from(capacity / PAGE));
    let mut expected = vec![5; capacity as usize];
    expected
        .iter_mut()
        .step_by(AREA as usize)
        .for_each(|block| *block = 0);
    assert_eq!(read(&mut rig, 0, capacity), expected);
    let read = rig.read(0, 0, 1);
    assert_eq!(rig.time(read), READ, "from the flash");
}

/// Without explicit flush, or without areas, nothing of it exists.
#[test]
fn what_a_drive_does_not_have_is_an_invalid_field() {
    let mut config = config(true);
    let zrwa = config.zones.zrwa.as_mut().expect("it was set");
    zrwa.explicit_flush = false;
    let mut rig = with_area(&config);
    let op = commit(&rig, 0, STEP);
    assert_eq!(rig.exec(op).status, Status::INVALID_FIELD);
    config.zones.zrwa = None;
    let mut rig = Rig::new(&config);
    for op in [commit(&rig, 0, STEP), open(&rig, 0)] {
        assert_eq!(rig.exec(op).status, Status::INVALID_FIELD, "{op:?}");
    }
}

#[test]
fn areas_are_a_resource_of_active_zones() {
    let mut rig = with_area(&config(true));
    let status = |rig: &mut Rig, op| rig.exec(op).status;
    let extension = Op::ZrwaSend {
        slba: rig.lba(1, 0),
        action: ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
    };
    let done = rig.exec_with(extension, Some(Buf::zeroed(64)));
    assert_eq!(done.status, Status::SUCCESS);
    assert_eq!(rig.drive.zones().state(ZoneId(1)), ZoneState::CLOSED);
    let third = open(&rig, 2);
    assert_eq!(status(&mut rig, third), Status::ZRWA_RESOURCES_UNAVAILABLE);
    let again = open(&rig, 0);
    assert_eq!(
        status(&mut rig, again),
        Status::INVALID_ZONE_OPERATION_REQUEST
    );

    // Closing keeps the area, and a write to it opens the zone.
    assert_eq!(write(&mut rig, 3, 1, 1).status, Status::SUCCESS);
    let close = rig.send(0, ZoneSendAction::CLOSE);
    assert_eq!(status(&mut rig, close), Status::SUCCESS);
    assert_eq!(status(&mut rig, third), Status::ZRWA_RESOURCES_UNAVAILABLE);
    assert_eq!(write(&mut rig, 2, 1, 2).status, Status::SUCCESS);
    let state = rig.drive.zones().state(ZoneId(0));
    assert_eq!(state, ZoneState::IMPLICITLY_OPENED);
    assert_eq!(read(&mut rig, 0, 5), [0, 0, 2, 1, 0]);

    // Reset gives it back, with what was written.
    let reset = rig.reset(0);
    assert_eq!(status(&mut rig, reset), Status::SUCCESS);
    assert_eq!(read(&mut rig, 0, 5), [0; 5]);
    assert_eq!(status(&mut rig, third), Status::SUCCESS);
    let reset = rig.reset(1);
    assert_eq!(status(&mut rig, reset), Status::SUCCESS);
    assert_eq!(rig.drive.zones().namespaces()[0].zrwa_count(), 1);
}

/// A finish commits what was written, then fills as its design says.
#[test]
fn a_finish_commits_the_area() {
    let filling = fill(64);
    let through_buffer = FinishConfig::Fill {
        granularity_bytes: 64 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: true,
        takes_core: false,
        extent: FillExtent::Zone,
    };
    for design in [FinishConfig::Metadata, filling, through_buffer] {
        let mut config = config(true);
        config.finish = design;
        let mut rig = with_area(&config);
        assert_eq!(write(&mut rig, 2, 5, 3).status, Status::SUCCESS);
        let finish = rig.finish(0);
        assert!(
            rig.time(finish) >= WRITE,
            "{design:?}: its pages are programmed"
        );
        let zones = rig.drive.zones();
        assert_eq!(zones.state(ZoneId(0)), ZoneState::FULL);
        assert_eq!(zones.host_lbas(ZoneId(0)), 7);
        assert!(!zones.has_zrwa(ZoneId(0)));
        assert_eq!(read(&mut rig, 0, 8), [0, 0, 3, 3, 3, 3, 3, 0]);
        rig.settle();
        let programmed = rig.drive.totals();
        let pages = programmed.host_program_bytes + programmed.fill_program_bytes;
        let pages = pages / u64::from(config.geometry.page_bytes);
        let zone_pages = config.zones.capacity_lbas / u64::from(PAGE);
        match design {
            FinishConfig::Metadata | FinishConfig::AtFold => assert_eq!(pages, 2),
            FinishConfig::Fill { .. } => assert_eq!(pages, zone_pages, "{design:?}"),
        }
    }
}

/// A write within the area waits for commits of its zone that wait for room.
#[test]
fn a_full_buffer_holds_back_commits_and_what_follows_them() {
    let mut config = config(true);
    let page_bytes = u64::from(config.geometry.page_bytes);
    if let Some(buffer) = &mut config.write_buffer {
        buffer.size_bytes = page_bytes;
    }
    let mut rig = with_area(&config);
    let first = rig.write_at(0, AREA, AREA);
    let inside = rig.write_at(0, AREA, 1);
    let (first, inside) = (rig.submit(first), rig.submit(inside));
    let committed = rig.wait(first).latency();
    // Four pages through room for one: the last waits for three programs.
    assert_eq!(committed, Nanos(3 * WRITE.0));
    assert_eq!(rig.wait(inside).latency(), committed);
    let inside = rig.write_at(0, AREA, 1);
    assert_eq!(rig.time(inside), Nanos::ZERO);
}

#[test]
fn power_loss_takes_unprotected_areas_and_leaves_protected_ones() {
    for is_protected in [true, false] {
        let mut rig = with_area(&config(is_protected));
        assert_eq!(write(&mut rig, 0, AREA, 1).status, Status::SUCCESS);
        let op = commit(&rig, 0, PAGE);
        assert_eq!(rig.exec(op).status, Status::SUCCESS);
        // The second zone has an area and an extension; nothing was written.
        let extension = Op::ZrwaSend {
            slba: rig.lba(1, 0),
            action: ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
        };
        rig.exec_with(extension, Some(Buf::zeroed(64)));
        rig.settle();
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
        rig.run_to(loss.ready_at);
        let zones = rig.drive.zones();
        zones.assert_invariants();
        assert_eq!(zones.state(ZoneId(0)), ZoneState::CLOSED);
        assert_eq!(zones.state(ZoneId(1)), ZoneState::CLOSED);
        assert!(zones.extension(ZoneId(1)).is_some());
        assert_eq!(zones.has_zrwa(ZoneId(0)), is_protected);
        assert_eq!(zones.has_zrwa(ZoneId(1)), is_protected);
        assert_eq!(pointer(&rig), u64::from(PAGE));
        let mut expected = vec![1; AREA as usize];
        if !is_protected {
            expected[PAGE as usize..].fill(0);
        }
        assert_eq!(read(&mut rig, 0, AREA), expected);
        // It goes on: with the area, or at the write pointer.
        let offset = if is_protected { PAGE + 1 } else { PAGE };
        assert_eq!(write(&mut rig, offset, 1, 9).status, Status::SUCCESS);
    }
}

/// An empty area does not keep a zone active over a loss of power.
#[test]
fn an_area_without_blocks_is_lost_with_power() {
    let mut rig = with_area(&config(true));
    let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
    rig.run_to(loss.ready_at);
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::EMPTY);
    assert_eq!(rig.drive.zones().namespaces()[0].zrwa_count(), 0);
    rig.drive.zones().assert_invariants();
}

#[test]
fn snapshots_keep_areas() {
    let config = config(false);
    let mut rig = with_area(&config);
    assert_eq!(write(&mut rig, 0, AREA, 1).status, Status::SUCCESS);
    let op = commit(&rig, 0, STEP);
    assert_eq!(rig.exec(op).status, Status::SUCCESS);
    rig.settle();
    let bytes = snapshot::save(&rig.drive).expect("nothing is in flight");
    let mut again = Rig::new(&config);
    again.drive = snapshot::restore(&config, &bytes).expect("it is of the same drive");
    again.drive.zones().assert_invariants();
    let same = snapshot::save(&again.drive).expect("nothing is in flight");
    assert_eq!(bytes, same);
    assert_eq!(
        again.drive.zones().zrwa_end_lbas(ZoneId(0)),
        Some(AREA.into())
    );
    assert_eq!(
        read(&mut again, 0, AREA + 1),
        [[1; 16].as_slice(), &[0]].concat()
    );
    assert_eq!(write(&mut again, STEP, 1, 2).status, Status::SUCCESS);

    let mut other = config.clone();
    other.zones.zrwa = None;
    let refused = snapshot::restore(&other, &bytes).expect_err("it has no areas");
    assert_eq!(
        refused,
        SnapshotError::OtherDrive {
            key: "zones.zrwa".to_owned(),
            saved: "2 of 16 blocks, by 2".to_owned(),
            here: "none".to_owned(),
        }
    );
    for len in 0..bytes.len() {
        assert!(snapshot::restore(&config, &bytes[..len]).is_err());
    }
}
