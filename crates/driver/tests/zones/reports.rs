//! Reports: their pages, and what hostile ones say.

use zonelab_device::{Lba, ZoneId};
use zonelab_driver::zones::ZoneError;
use zonelab_nvme::zns::ReportFilter;

use crate::rig::{CAPACITY, Change, Rig, ZONE};

/// Bytes of the header, and of each descriptor.
const ENTRY: usize = 64;

#[test]
fn reports_are_by_state_and_from_a_zone_on() {
    let rig = Rig::new();
    rig.namespace
        .zone(ZoneId(4))
        .unwrap()
        .open()
        .unwrap()
        .finish()
        .unwrap();
    let zones = |first, filter| -> Vec<u32> {
        let report = rig.namespace.report_from(ZoneId(first), filter);
        report.map(|info| info.unwrap().zone.0).collect()
    };
    assert_eq!(zones(0, ReportFilter::ALL), [0, 1, 2, 3, 4, 5]);
    assert_eq!(zones(2, ReportFilter::EMPTY), [2, 3, 5]);
    assert_eq!(zones(0, ReportFilter::FULL), [4]);
    assert!(zones(5, ReportFilter::FULL).is_empty());
    assert!(zones(6, ReportFilter::ALL).is_empty());
    assert_eq!(rig.namespace.zone_of(Lba(ZONE * 5 + 1)), Some(ZoneId(5)));
    assert_eq!(rig.namespace.zone_of(Lba(ZONE * 6)), None);
}

/// Pages of two zones, of one zone, and pages that are too small for any: those have one, too.
#[test]
fn reports_come_in_pages() {
    for (bytes, pages) in [
        (3 * ENTRY + 10, 3),
        (2 * ENTRY, 6),
        (ENTRY, 6),
        (7 * ENTRY, 1),
    ] {
        let rig = Rig::moving(bytes as u32);
        let zones: Vec<_> = rig.namespace.report().map(|info| info.unwrap()).collect();
        let expected: Vec<_> = (0..6)
            .map(|zone| (ZoneId(zone), Lba(u64::from(zone) * ZONE)))
            .collect();
        let found: Vec<_> = zones.iter().map(|info| (info.zone, info.start)).collect();
        assert_eq!(found, expected);
        assert!(zones.iter().all(|info| info.capacity_lbas == CAPACITY));
        assert_eq!(rig.meddling.reports.get(), pages, "pages of {bytes} bytes");
    }
}

/// Stores 64 bits at a place of the first descriptor.
fn put(report: &mut [u8], at: usize, value: u64) {
    report[ENTRY + at..ENTRY + at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn reports_that_cannot_be_are_errors_and_end() {
    let cases: [(&str, Change); 8] = [
        ("ZCAP", |report| put(report, 8, 0)),
        ("ZCAP", |report| put(report, 8, ZONE + 1)),
        ("ZCAP", |report| put(report, 8, u64::MAX)),
        ("ZSLBA", |report| put(report, 16, 1)),
        ("ZSLBA", |report| put(report, 16, 6 * ZONE)),
        ("ZSLBA", |report| put(report, 16, u64::MAX / ZONE * ZONE)),
        ("write pointer", |report| put(report, 24, 1)),
        ("state", |report| report[ENTRY + 1] = 0x70),
    ];
    for (expected, change) in cases {
        let rig = Rig::new();
        rig.meddling.report.set(Some(change));
        let mut report = rig.namespace.report();
        let error = report.next().unwrap().unwrap_err();
        assert!(
            matches!(error, ZoneError::BadReport { field, .. } if field == expected),
            "{error}"
        );
        assert!(report.next().is_none());
        let error = rig.namespace.zone(ZoneId(0)).unwrap_err();
        assert!(
            matches!(error, ZoneError::BadReport { field, .. } if field == expected),
            "{error}"
        );
        // The zone is not taken by that.
        rig.meddling.report.set(None);
        rig.namespace.zone(ZoneId(0)).unwrap();
    }
}

#[test]
fn a_report_is_read_as_far_as_it_goes() {
    let rig = Rig::moving(3 * ENTRY as u32);
    // It counts more zones than it has room for.
    rig.meddling
        .report
        .set(Some(|report| report[..8].fill(0xff)));
    let zones: Result<Vec<_>, _> = rig.namespace.report().collect();
    assert_eq!(zones.unwrap().len(), 6);
    // It has none at all.
    rig.meddling.report.set(Some(|report| report[..8].fill(0)));
    assert_eq!(rig.namespace.report().count(), 0);
    let error = rig.namespace.zone(ZoneId(3)).unwrap_err();
    assert!(matches!(error, ZoneError::BadReport { .. }), "{error}");
    // It goes back to a zone that it has had: that would never end.
    rig.meddling.report.set(Some(|report| {
        put(report, 16, 0);
        put(report, 24, 0);
    }));
    let ends: Vec<_> = rig.namespace.report().take(10).collect();
    assert!(ends.len() == 3 && ends[2].is_err(), "{ends:?}");
    // It is of another zone than it was asked for.
    rig.meddling.report.set(Some(|report| {
        put(report, 16, 4 * ZONE);
        put(report, 24, 4 * ZONE);
    }));
    let error = rig.namespace.zone(ZoneId(3)).unwrap_err();
    assert!(
        matches!(error, ZoneError::BadReport { field: "ZSLBA", .. }),
        "{error}"
    );
}
