//! Many appends in flight.

use zonelab_device::{Lba, ZoneId};
use zonelab_driver::zones::{AnyZone, AppendId, Settings, ZoneError};
use zonelab_endpoint::Fault;
use zonelab_nvme::Status;

use crate::rig::{CAPACITY, Rig, blocks};

#[test]
fn appends_end_in_any_order_and_say_where_they_are() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    zone.write(blocks(5, 0xff)).unwrap();
    rig.meddling.together.set(4);
    let mut appender = zone.appender().unwrap();
    for number in 0..4 {
        let count = u64::from(number) + 1;
        let id = appender.start(blocks(count, number)).unwrap();
        assert_eq!(id, AppendId(number.into()));
    }
    assert_eq!(
        (appender.in_flight(), appender.room_lbas()),
        (4, CAPACITY - 15)
    );
    let mut ends = Vec::new();
    let mut places = Vec::new();
    while let Some(ended) = appender.next() {
        let appended = ended.unwrap();
        ends.push(appended.id.0);
        places.push((appended.lba, appended.data));
    }
    drop(appender);
    rig.meddling.together.set(0);
    let mut sorted = ends.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3]);
    assert_eq!(zone.write_pointer(), Lba(15));
    for (lba, data) in places {
        let empty = blocks((data.len() / 4096) as u64, 0);
        assert_eq!(zone.read(lba, empty).unwrap(), data);
    }
    assert_eq!(zone.write(blocks(1, 7)).unwrap().lba, Lba(15));
}

#[test]
fn room_is_counted_when_an_append_starts() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    let mut appender = zone.appender().unwrap();
    for _ in 0..CAPACITY / 8 {
        appender.start(blocks(8, 1)).unwrap();
    }
    let refused = appender.start(blocks(1, 2)).unwrap_err();
    assert!(matches!(refused.error, ZoneError::NoRoom { room: 0, .. }));
    assert_eq!(refused.data.unwrap(), blocks(1, 2));
    let mut ended = 0;
    while let Some(appended) = appender.next() {
        appended.unwrap();
        ended += 1;
    }
    assert_eq!(ended, CAPACITY / 8);
    drop(appender);
    zone.seal().unwrap();
}

#[test]
fn the_limit_of_commands_in_flight_is_an_error() {
    let rig = Rig::with(Settings {
        in_flight: 2,
        ..Settings::default()
    });
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    let mut appender = zone.appender().unwrap();
    appender.start(blocks(1, 1)).unwrap();
    appender.start(blocks(1, 2)).unwrap();
    let refused = appender.start(blocks(1, 3)).unwrap_err();
    assert_eq!(refused.error, ZoneError::TooManyInFlight { limit: 2 });
    appender.next().unwrap().unwrap();
    appender.start(refused.data.unwrap()).unwrap();
    while let Some(ended) = appender.next() {
        ended.unwrap();
    }
    drop(appender);
    assert_eq!(zone.write_pointer(), Lba(3));
}

#[test]
fn an_append_that_fails_ends_the_appender_and_the_others_end() {
    let rig = Rig::new();
    let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    rig.endpoint
        .inject(1, Fault::Status(Status::ABORT_REQUESTED));
    let mut appender = zone.appender().unwrap();
    for number in 0..3 {
        appender.start(blocks(1, number)).unwrap();
    }
    let (mut good, mut bad) = (0, 0);
    while let Some(ended) = appender.next() {
        match ended {
            Ok(_) => good += 1,
            Err(failed) => {
                assert!(failed.data.is_some() && failed.id.is_some());
                bad += 1;
                let refused = appender.start(blocks(1, 9)).unwrap_err();
                assert_eq!(refused.error, ZoneError::NotKnown { zone: ZoneId(0) });
            }
        }
    }
    assert_eq!((good, bad), (2, 1));
    drop(appender);
    assert!(zone.needs_refresh());
    let AnyZone::Open(zone) = zone.refresh().unwrap() else {
        panic!("it is open");
    };
    assert_eq!(zone.write_pointer(), Lba(3));
}

/// A device that says that an append went where it cannot have gone.
#[test]
fn an_address_that_cannot_be_is_an_error() {
    for shift in [1, CAPACITY, u64::MAX / 2] {
        let rig = Rig::new();
        let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
        let mut appender = zone.appender().unwrap();
        appender.start(blocks(2, 1)).unwrap();
        rig.meddling.shift.set(shift);
        let failed = appender.next().unwrap().unwrap_err();
        assert!(
            matches!(failed.error, ZoneError::Misplaced { .. }),
            "{failed}"
        );
        drop(appender);
        assert!(zone.needs_refresh());
    }
}

#[test]
fn an_appender_that_is_dropped_or_forgotten_leaves_its_appends_to_the_refresh() {
    for is_forgotten in [false, true] {
        // They have all places that there are: the refresh gets one when they have ended.
        let rig = Rig::with(Settings {
            in_flight: 4,
            ..Settings::default()
        });
        let mut zone = rig.namespace.zone(ZoneId(0)).unwrap().open().unwrap();
        let mut appender = zone.appender().unwrap();
        for number in 0..4 {
            appender.start(blocks(2, number)).unwrap();
        }
        match is_forgotten {
            true => core::mem::forget(appender),
            false => drop(appender),
        }
        let refused = zone.write(blocks(1, 1)).unwrap_err();
        assert_eq!(refused.error, ZoneError::NotKnown { zone: ZoneId(0) });
        let AnyZone::Open(mut zone) = zone.refresh().unwrap() else {
            panic!("it is open");
        };
        assert_eq!(zone.write_pointer(), Lba(8), "the refresh waits for them");
        zone.write(blocks(1, 1)).unwrap();
    }
}

#[test]
fn appenders_of_several_zones_share_a_queue() {
    let rig = Rig::new();
    let open = |zone| rig.namespace.zone(ZoneId(zone)).unwrap().open().unwrap();
    let (mut first, mut second) = (open(0), open(1));
    let (mut a, mut b) = (first.appender().unwrap(), second.appender().unwrap());
    for number in 0..6 {
        a.start(blocks(1, number)).unwrap();
        b.start(blocks(2, number)).unwrap();
    }
    let mut of_b = 0;
    while let Some(ended) = b.next() {
        of_b += ended.unwrap().data.len();
    }
    let mut of_a = 0;
    while let Some(ended) = a.next() {
        of_a += ended.unwrap().data.len();
    }
    assert_eq!((of_a, of_b), (6 * 4096, 12 * 4096));
    assert!(a.try_next().is_none());
    drop((a, b));
    assert_eq!(first.end_of_data().0 - first.start().0, 6);
    assert_eq!(second.end_of_data().0 - second.start().0, 12);
}
