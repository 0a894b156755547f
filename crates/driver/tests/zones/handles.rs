//! What a handle allows, and what it knows.

use zonelab_device::{Lba, NamespaceId, ZoneId};
use zonelab_driver::zones::{AnyZone, Settings, ZoneError, ZonedNamespace};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use crate::rig::{CAPACITY, LBA, Rig, ZONE, ZONES, blocks};

#[test]
fn a_zone_lives_from_empty_to_empty() {
    let rig = Rig::new();
    let zone = rig.namespace.zone(ZoneId(2)).unwrap();
    let AnyZone::Empty(zone) = zone else {
        panic!("{zone:?}");
    };
    let start = 2 * ZONE;
    let mut zone = zone.open().unwrap();
    for (byte, count) in [(1, 3), (2, 1), (3, 8)] {
        let at = zone.write_pointer();
        let written = zone.write(blocks(count, byte)).unwrap();
        assert_eq!((written.lba, written.data), (at, blocks(count, byte)));
    }
    assert_eq!(
        (zone.write_pointer(), zone.room_lbas()),
        (Lba(start + 12), CAPACITY - 12)
    );
    let zone = zone.close().unwrap();
    assert_eq!(
        zone.read(Lba(start + 3), blocks(1, 0)).unwrap(),
        blocks(1, 2)
    );
    let zone = zone.open().unwrap().finish().unwrap();
    assert_eq!(zone.end_of_data(), Lba(start + CAPACITY));
    assert_eq!(
        zone.read(Lba(start + 4), blocks(8, 0)).unwrap(),
        blocks(8, 3)
    );
    let mut zone = zone.reset().unwrap().open().unwrap();
    assert_eq!(zone.write(blocks(1, 9)).unwrap().lba, Lba(start));
    drop(zone);
    let states: Vec<_> = rig
        .namespace
        .report()
        .map(|info| info.unwrap().state)
        .collect();
    let mut expected = [ZoneState::EMPTY; ZONES as usize];
    expected[2] = ZoneState::EXPLICITLY_OPENED;
    assert_eq!(states, expected);
}

#[test]
fn what_does_not_fit_is_not_sent_and_comes_back() {
    let rig = Rig::new();
    let zone = ZoneId(0);
    let mut open = rig.namespace.zone(zone).unwrap().open().unwrap();
    open.write(blocks(CAPACITY - 2, 1)).unwrap();
    let at = rig.endpoint.bad_doorbells();
    for refused in [open.write(blocks(3, 7)), open.append(blocks(3, 7))] {
        let refused = refused.unwrap_err();
        let (blocks_, room) = (3, 2);
        assert_eq!(
            refused.error,
            ZoneError::NoRoom {
                zone,
                blocks: blocks_,
                room
            }
        );
        assert_eq!(refused.data.unwrap(), blocks(3, 7));
    }
    let odd = zonelab_device::Buf::zeroed(LBA + 1);
    let refused = open.write(odd).unwrap_err();
    let expected = ZoneError::NotBlocks {
        bytes: LBA + 1,
        lba_bytes: LBA as u32,
    };
    assert_eq!(refused.error, expected);
    let large = zonelab_device::Buf::zeroed((1 << 20) + LBA);
    let refused = open.write(large).unwrap_err();
    let expected = ZoneError::TooLarge {
        bytes: (1 << 20) + LBA,
        most: 1 << 20,
    };
    assert_eq!(refused.error, expected);
    assert!(!open.needs_refresh());
    // What fits, does.
    open = open.seal().unwrap_err();
    open.append(blocks(2, 2)).unwrap();
    assert!(matches!(
        open.write(blocks(1, 3)).unwrap_err().error,
        ZoneError::NoRoom { .. }
    ));
    let full = open.seal().unwrap();
    let read = full.read(Lba(CAPACITY - 2), blocks(2, 0)).unwrap();
    assert_eq!(read, blocks(2, 2));
    let info = rig.namespace.report().next().unwrap().unwrap();
    assert_eq!((info.state, info.write_pointer), (ZoneState::FULL, None));
    assert_eq!(rig.endpoint.bad_doorbells(), at);
}

#[test]
fn only_what_is_written_is_read() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(1)).unwrap().open().unwrap();
    zone.write(blocks(4, 1)).unwrap();
    for (lba, count) in [
        (ZONE + 3, 2),
        (ZONE + 4, 1),
        (ZONE - 1, 2),
        (0, 1),
        (u64::MAX, 1),
    ] {
        let refused = zone.read(Lba(lba), blocks(count, 5)).unwrap_err();
        assert!(
            matches!(refused.error, ZoneError::NotWritten { .. }),
            "{refused}"
        );
        assert_eq!(refused.data.unwrap(), blocks(count, 5));
    }
    zone.read(Lba(ZONE), blocks(4, 0)).unwrap();
}

#[test]
fn a_zone_has_one_handle() {
    let rig = Rig::new();
    let zone = ZoneId(3);
    let first = rig.namespace.zone(zone).unwrap().open().unwrap();
    let taken = rig.namespace.zone(zone).unwrap_err();
    assert_eq!(taken, ZoneError::Taken { zone });
    let _another = rig.namespace.zone(ZoneId(4)).unwrap();
    // A move does not give it back, a drop does.
    let first = first.finish().unwrap();
    assert_eq!(rig.namespace.zone(zone).unwrap_err(), taken);
    drop(first);
    assert!(matches!(
        rig.namespace.zone(zone).unwrap(),
        AnyZone::Full(_)
    ));
    let none = rig.namespace.zone(ZoneId(ZONES)).unwrap_err();
    let expected = ZoneError::NoSuchZone {
        zone: ZoneId(ZONES),
        zones: ZONES,
    };
    assert_eq!(none, expected);
}

#[test]
fn resources_of_the_drive_are_errors_with_the_handle() {
    let rig = Rig::new();
    let open = |zone| rig.namespace.zone(ZoneId(zone)).unwrap().open();
    let held: Vec<_> = (0..3).map(|zone| open(zone).unwrap()).collect();
    let failed = open(3).unwrap_err();
    let status = Status::TOO_MANY_OPEN_ZONES;
    let expected = ZoneError::Failed {
        command: "the open",
        status,
    };
    assert_eq!(failed.error, expected);
    let mut held = held.into_iter();
    held.next().unwrap().finish().unwrap();
    let AnyZone::Empty(zone) = failed.zone.refresh().unwrap() else {
        panic!("nothing was done");
    };
    zone.open().unwrap();
}

#[test]
fn a_full_zone_is_not_closed() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    zone.write(blocks(CAPACITY, 1)).unwrap();
    let failed = zone.close().unwrap_err();
    assert!(matches!(failed.error, ZoneError::WrongState { .. }));
    assert!(matches!(failed.zone.refresh().unwrap(), AnyZone::Full(_)));
}

#[test]
fn a_namespace_has_to_be_there() {
    let queue = Rig::new().namespace.into_queue();
    let nsid = NamespaceId(2);
    let opened = ZonedNamespace::open(queue, nsid, Settings::default());
    assert_eq!(opened.err(), Some(ZoneError::NotZoned { nsid }));
}
