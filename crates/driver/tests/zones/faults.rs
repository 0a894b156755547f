//! Commands that fail, are lost, or meet a zone that another host has changed.

use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_driver::zones::{AnyZone, Settings, ZoneError};
use zonelab_endpoint::Fault;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use crate::rig::{CAPACITY, Rig, blocks, send};

const ABORTED: Fault = Fault::Status(Status::ABORT_REQUESTED);

/// The drive has written, and the host hears that the command was aborted.
#[test]
fn after_an_aborted_write_only_a_refresh_is_possible() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(1)).unwrap().open().unwrap();
    zone.write(blocks(2, 1)).unwrap();
    rig.endpoint.inject(0, ABORTED);
    let refused = zone.write(blocks(3, 2)).unwrap_err();
    let (command, status) = ("the write", Status::ABORT_REQUESTED);
    assert_eq!(refused.error, ZoneError::Failed { command, status });
    assert_eq!(refused.data.unwrap(), blocks(3, 2));

    let unknown = ZoneError::NotKnown { zone: ZoneId(1) };
    assert!(zone.needs_refresh());
    let refused = zone.write(blocks(1, 3)).unwrap_err();
    assert_eq!(
        (refused.error, refused.data.unwrap()),
        (unknown, blocks(1, 3))
    );
    assert_eq!(zone.append(blocks(1, 3)).unwrap_err().error, unknown);
    assert_eq!(
        zone.read(zone.start(), blocks(1, 3)).unwrap_err().error,
        unknown
    );
    assert_eq!(zone.appender().err(), Some(unknown));
    let failed = zone.finish().unwrap_err();
    assert_eq!(failed.error, unknown);

    let AnyZone::Open(mut zone) = failed.zone.refresh().unwrap() else {
        panic!("nothing has closed it");
    };
    let start = zone.start().0;
    assert_eq!(
        zone.write_pointer(),
        Lba(start + 5),
        "the drive had written"
    );
    assert_eq!(zone.write(blocks(1, 4)).unwrap().lba, Lba(start + 5));
}

#[test]
fn a_move_that_fails_gives_a_handle_that_is_refreshed() {
    let rig = Rig::new();
    let zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    rig.endpoint.inject(0, ABORTED);
    let failed = zone.finish().unwrap_err();
    // Whatever the host was told, it is full.
    rig.endpoint
        .inject(0, Fault::Status(Status::INTERNAL_ERROR));
    let failed = failed.zone.refresh().unwrap_err();
    let status = Status::INTERNAL_ERROR;
    let command = "the zone report";
    assert_eq!(failed.error, ZoneError::Failed { command, status });
    assert!(matches!(failed.zone.refresh().unwrap(), AnyZone::Full(_)));
}

#[test]
fn a_read_that_fails_changes_nothing() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    zone.write(blocks(2, 1)).unwrap();
    rig.endpoint
        .inject(0, Fault::Status(Status::UNRECOVERED_READ_ERROR));
    let refused = zone.read(Lba(0), blocks(1, 0)).unwrap_err();
    assert!(refused.data.is_some() && !zone.needs_refresh());
    rig.endpoint
        .inject(0, Fault::Status(Status::ZONE_IS_OFFLINE));
    zone.read(Lba(0), blocks(1, 0)).unwrap_err();
    assert!(zone.needs_refresh());
}

#[test]
fn a_write_to_a_zone_that_another_host_has_reset_fails_and_is_refreshed() {
    let mut rig = Rig::new();
    let (namespace, mut elsewhere) = rig.split();
    let mut zone = namespace.zone(ZoneId(2)).unwrap().open().unwrap();
    zone.write(blocks(4, 1)).unwrap();
    assert!(
        elsewhere(send(2, ZoneSendAction::RESET), None)
            .status
            .is_success()
    );
    let refused = zone.write(blocks(1, 2)).unwrap_err();
    let (command, status) = ("the write", Status::ZONE_INVALID_WRITE);
    assert_eq!(refused.error, ZoneError::Failed { command, status });
    let AnyZone::Empty(zone) = zone.refresh().unwrap() else {
        panic!("it was reset");
    };
    zone.open().unwrap().write(blocks(1, 2)).unwrap();
}

#[test]
fn an_append_to_a_zone_that_another_host_writes_to_is_misplaced() {
    let mut rig = Rig::new();
    let (namespace, mut elsewhere) = rig.split();
    let mut zone = namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    zone.write(blocks(4, 1)).unwrap();
    let (slba, nlb) = (Lba(4), 3);
    assert!(
        elsewhere(Op::Write { slba, nlb }, Some(blocks(3, 9)))
            .status
            .is_success()
    );
    let refused = zone.append(blocks(2, 2)).unwrap_err();
    let expected = ZoneError::Misplaced {
        zone: ZoneId(0),
        lba: Lba(7),
        start: Lba(4),
        end: Lba(6),
    };
    assert_eq!(refused.error, expected);
    let AnyZone::Open(zone) = zone.refresh().unwrap() else {
        panic!("it is open");
    };
    // Neither has damaged what the other wrote.
    assert_eq!(zone.end_of_data(), Lba(9));
    assert_eq!(zone.read(Lba(4), blocks(3, 0)).unwrap(), blocks(3, 9));
    assert_eq!(zone.read(Lba(7), blocks(2, 0)).unwrap(), blocks(2, 2));
}

#[test]
fn a_zone_that_another_host_has_finished_is_refreshed_to_full() {
    let mut rig = Rig::new();
    let (namespace, mut elsewhere) = rig.split();
    let mut zone = namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    elsewhere(send(0, ZoneSendAction::FINISH), None);
    let status = Status::ZONE_IS_FULL;
    let error = zone.write(blocks(1, 2)).unwrap_err().error;
    assert_eq!(
        error,
        ZoneError::Failed {
            command: "the write",
            status
        }
    );
    let AnyZone::Full(full) = zone.refresh().unwrap() else {
        panic!("it was finished");
    };
    assert_eq!(full.end_of_data(), Lba(CAPACITY));
}

#[test]
fn a_command_that_is_lost_ends_in_time_and_its_zone_stays_unknown() {
    let deadline = Nanos::from_ms(200);
    let rig = Rig::with(Settings {
        deadline,
        ..Settings::default()
    });
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    let began = zonelab_driver::pcie::Function::now(&rig.endpoint);
    rig.endpoint.inject(0, Fault::Lost);
    let refused = zone.write(blocks(1, 2)).unwrap_err();
    let (command, after) = ("the write", deadline);
    assert_eq!(refused.error, ZoneError::TimedOut { command, after });
    assert!(refused.data.is_none(), "the device may read it still");
    assert!(zonelab_driver::pcie::Function::now(&rig.endpoint) >= began + deadline);
    // The write may still come: what a report says now would not last.
    let failed = zone.refresh().unwrap_err();
    assert!(matches!(failed.error, ZoneError::TimedOut { .. }));
    drop(failed);
    assert!(matches!(
        rig.namespace.zone(ZoneId(0)).unwrap_err(),
        ZoneError::TimedOut { .. }
    ));
    // Other zones have nothing to do with it.
    rig.namespace
        .zone(ZoneId(1))
        .unwrap()
        .open()
        .unwrap()
        .write(blocks(1, 1))
        .unwrap();
}

#[test]
fn a_device_that_is_gone_takes_nothing_and_buffers_come_back() {
    let rig = Rig::with(Settings {
        deadline: Nanos::from_ms(50),
        ..Settings::default()
    });
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    rig.endpoint.remove();
    let first = zone.write(blocks(1, 2)).unwrap_err();
    assert!(zone.needs_refresh() || first.data.is_some(), "{first}");
    assert!(zone.refresh().is_err());
}
