use zonelab_nvme::zns::ZoneState;

use super::*;

fn table(limit: Option<u32>, max_open: Option<u32>) -> ZoneTable {
    let zoned = ZonedInfo {
        zones: 8,
        zone_size_lbas: 100,
        zone_capacity_lbas: 90,
        max_active: None,
        max_open,
        read_across_zones: false,
        descriptor_extension_bytes: 0,
        zrwa: None,
    };
    ZoneTable::new(zoned, limit)
}

#[test]
fn writes_of_two_jobs_exclude_each_other_and_appends_do_not() {
    let mut table = table(None, None);
    assert_eq!(table.begin_write(3, 0, 10, false), 0);
    assert_eq!(table.admit(3, 0, false, None), Admission::Granted);
    assert_eq!(table.admit(3, 1, false, None), Admission::Busy);
    assert_eq!(table.admit(3, 1, true, None), Admission::Busy);
    assert_eq!(table.admit(3, 0, true, None), Admission::Granted);
    assert_eq!(table.readable(3), 0, "it is in flight");
    table.begin_write(4, 0, 10, true);
    assert_eq!(table.admit(4, 1, true, None), Admission::Granted);
    table.begin_write(4, 1, 10, true);
    assert_eq!(table.admit(4, 0, true, None), Admission::Granted);
    assert_eq!(table.admit(4, 0, false, None), Admission::Busy);
    table.end_write(3, 10);
    assert_eq!(table.admit(3, 1, false, None), Admission::Granted);
    assert_eq!((table.written(3), table.readable(3)), (10, 10));
}

#[test]
fn a_zone_counts_as_open_from_its_first_write_to_its_last() {
    let mut table = table(Some(2), Some(5));
    table.begin_write(0, 0, 10, false);
    table.begin_write(1, 0, 10, false);
    assert_eq!(table.admit(2, 0, false, None), Admission::TooManyOpen);
    assert_eq!(table.admit(1, 0, false, None), Admission::Granted);
    table.begin_write(1, 0, 80, false);
    table.end_write(1, 10);
    let too_many = Admission::TooManyOpen;
    assert_eq!(table.admit(2, 0, false, None), too_many, "it is filling");
    table.end_write(1, 80);
    assert_eq!(table.open_zones(), [0]);
    assert_eq!(table.admit(2, 0, false, None), Admission::Granted);
    assert_eq!(table.admit(2, 0, false, Some(1)), Admission::TooManyOpen);
    assert_eq!(table.admit(2, 1, false, Some(1)), Admission::Granted);
    table.set_limit(Some(9));
    for zone in 2..6 {
        table.begin_write(zone, 0, 1, false);
    }
    assert_eq!(
        table.admit(6, 0, false, None),
        Admission::TooManyOpen,
        "the device"
    );
}

#[test]
fn what_failed_is_not_written_and_nobody_writes_behind_it() {
    let mut table = table(Some(2), None);
    for lbas in [10, 20, 30] {
        table.begin_write(0, 0, lbas, false);
    }
    table.end_write(0, 10);
    table.fail_write(0, 20, 0);
    assert_eq!(table.admit(0, 0, false, None), Admission::Busy);
    table.fail_write(0, 30, 0);
    assert_eq!((table.written(0), table.readable(0)), (10, 10));
    assert_eq!(table.begin_write(0, 1, 5, false), 10);
    table.fail_write(0, 5, 0);
    assert_eq!((table.open_zones(), table.written_lbas()), (&[0][..], 10));
    // One that never got anything holds nothing.
    table.begin_write(3, 0, 90, false);
    table.fail_write(3, 90, 0);
    assert_eq!((table.open_zones(), table.written(3)), (&[0][..], 0));
}

#[test]
fn what_a_zone_holds_after_a_failure_is_asked_of_the_device() {
    let mut table = table(Some(2), None);
    table.begin_write(0, 0, 10, true);
    table.begin_write(0, 0, 10, true);
    table.fail_write(0, 10, 0);
    assert_eq!(table.admit(0, 1, true, None), Admission::Busy);
    table.end_write(0, 10);
    assert_eq!(table.admit(0, 1, true, None), Admission::InDoubt);
    assert_eq!(table.go_on(0, 0, 10, true), None);
    table.begin_managing(0, 1);
    assert_eq!(table.admit(0, 0, true, None), Admission::Busy);
    // The one that failed is there nevertheless.
    let reported = |state, written_lbas| ReportedZone {
        state,
        written_lbas,
    };
    table.end_look(0, Some(reported(ZoneState::IMPLICITLY_OPENED, 20)));
    assert_eq!(table.admit(0, 1, true, None), Admission::Granted);
    assert_eq!(
        (table.begin_write(0, 1, 70, true), table.written_lbas()),
        (20, 90)
    );
    table.fail_write(0, 70, 0);
    table.begin_managing(0, 1);
    table.end_look(0, Some(reported(ZoneState::FULL, 90)));
    assert!(table.open_zones().is_empty() && table.readable(0) == 90);
    // A device that does not say is taken at its word, until the next failure.
    table.begin_clearing(0, 1);
    table.fail_managing(0);
    // It is full, so it keeps nobody from another zone.
    assert!(table.open_zones().is_empty());
    assert_eq!(table.admit(0, 1, true, None), Admission::InDoubt);
    table.begin_managing(0, 1);
    table.end_look(0, None);
    assert_eq!(
        (table.admit(0, 1, true, None), table.written(0)),
        (Admission::Granted, 90)
    );
    // What is read only can be read as far as it was written, and offline nothing.
    table.begin_managing(0, 1);
    table.end_look(0, Some(reported(ZoneState::READ_ONLY, 90)));
    table.declare(1, reported(ZoneState::OFFLINE, 90));
    assert_eq!((table.readable(0), table.readable(1)), (90, 0));
    for zone in 0..2 {
        assert!(table.is_dead(zone));
        assert_eq!(table.admit(zone, 0, true, None), Admission::Dead);
    }
}

#[test]
fn a_zone_that_is_open_without_data_counts_until_it_is_reset() {
    let mut table = table(Some(2), None);
    table.declare_open(4);
    table.declare_open(4);
    table.declare_written(6, 3);
    assert_eq!(table.open_zones(), [4, 6]);
    assert_eq!(table.admit(0, 0, false, None), Admission::TooManyOpen);
    assert_eq!(table.admit(4, 0, false, None), Admission::Granted);
    assert_eq!(table.begin_write(4, 0, 10, false), 0);
    assert_eq!(table.open_zones(), [4, 6], "it is not opened again");
    table.declare_empty(4..5);
    assert_eq!(table.admit(0, 0, false, None), Admission::Granted);
}

#[test]
fn a_zone_that_is_reset_is_left_alone() {
    let mut table = table(None, None);
    table.declare_full(0..2);
    assert_eq!(table.readable(1), 90);
    table.begin_managing(1, 0);
    assert_eq!(table.readable(1), 0);
    assert_eq!(table.admit(1, 0, true, None), Admission::Busy);
    table.end_managing(1, 0);
    assert_eq!(table.written(1), 0);
    assert!(table.is_quiet(1));
}
