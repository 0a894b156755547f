//! What reports say of zones.

use super::*;

#[test]
fn the_report_has_the_layout_of_the_specification() {
    let mut zones = Zones::new(&CONFIG);
    zones.set_extension(at(1), &[9; 64]).unwrap();
    zones.write(at(1), 5).unwrap();
    let mut out = [0xff; 64 + 2 * 128 + 1];
    // From the middle of zone 1; seven zones match, two fit.
    let used = zones.report(Lba(20), ReportFilter::ALL, false, true, &mut out);
    assert_eq!(used, Ok(64 + 2 * 128));
    assert_eq!(out[..8], 7_u64.to_le_bytes());
    assert_eq!(out[8..64], [0; 56]);
    let descriptor = &out[64..128];
    assert_eq!(descriptor[..8], [0x02, 0x20, 0x80, 0, 0, 0, 0, 0]);
    assert_eq!(descriptor[8..16], 12_u64.to_le_bytes(), "capacity");
    assert_eq!(descriptor[16..24], 16_u64.to_le_bytes(), "start");
    assert_eq!(descriptor[24..32], 21_u64.to_le_bytes(), "write pointer");
    assert_eq!(descriptor[32..], [0; 32]);
    assert_eq!(out[128..192], [9; 64], "extension");
    assert_eq!(out[192..200], [0x02, 0x10, 0, 0, 0, 0, 0, 0]);
    assert_eq!(out[256..], [0; 65], "no extension, then no room");
    // The same, counting what fits.
    zones
        .report(at(1), ReportFilter::ALL, true, true, &mut out)
        .unwrap();
    assert_eq!(out[..8], 2_u64.to_le_bytes());
    let used = zones.report(
        at(0),
        ReportFilter::IMPLICITLY_OPENED,
        true,
        false,
        &mut out,
    );
    assert_eq!((used, &out[..8]), (Ok(128), &1_u64.to_le_bytes()[..]));
    // Only the header: how many there are.
    let used = zones.report(at(0), ReportFilter::EMPTY, false, false, &mut out[..64]);
    assert_eq!((used, &out[..8]), (Ok(64), &7_u64.to_le_bytes()[..]));
}

/// The specification leaves open what a full zone reports. A ZN540 reports the end of its
/// capacity (ZNS in a user-space driver, listing 4.1); one that cannot be used any more has
/// no write pointer.
#[test]
fn a_full_zone_reports_the_end_of_its_capacity() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(0), 12).unwrap();
    let reported = |zones: &Zones| {
        let mut out = [0; 128];
        zones
            .report(at(0), ReportFilter::ALL, true, false, &mut out)
            .unwrap();
        (out[64 + 1], out[64 + 24..64 + 32].to_vec())
    };
    assert_eq!(reported(&zones), (0xe0, 12_u64.to_le_bytes().to_vec()));
    zones.fail(ZoneId(0), S::OFFLINE, &mut Vec::new()).unwrap();
    assert_eq!(reported(&zones), (0xf0, vec![0xff; 8]));
}

/// A drive of the largest kind: set-up and Select All stay proportional to zones.
#[test]
fn a_hundred_thousand_zones() {
    let config = ZonesConfig {
        count: 100_000,
        size_lbas: 1 << 19,
        capacity_lbas: 275_712,
        ..CONFIG
    };
    let mut zones = Zones::new(&config);
    zones.precondition_full(0..99_999).unwrap();
    let last = Lba(99_999 << 19);
    assert_eq!(
        zones.append(last, 1).map(|extent| extent.zone),
        Ok(ZoneId(99_999))
    );
    assert_eq!(send_all(&mut zones, Action::RESET).unwrap().len(), 100_000);
    zones.assert_invariants();
}
