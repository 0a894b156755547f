//! The changed zone list: what a drive tells of zones that it changed by itself.

use crate::drive_support::{Rig, small};
use zonelab_device::{NamespaceId, Nanos, ZoneId};
use zonelab_nvme::zns::{ChangedZoneList, ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DriveConfig, NamespaceConfig, NamespaceKind};
use zonelab_ssd::{Control, FaultTarget};

/// Two namespaces of `zones` zones each, 40 pages apart.
fn halves(zones: u32) -> DriveConfig {
    let mut config = small();
    config.zones.count = 2 * zones;
    config.geometry.blocks_per_plane = 4 * zones;
    let half = NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones,
        max_active: None,
        max_open: None,
    };
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.namespaces = vec![half; 2];
    config
}

fn fail(rig: &mut Rig, zone: u32, to: ZoneState) {
    let zone = ZoneId(zone);
    let control = Control::FailZone { zone, to };
    rig.drive.control(rig.now, &control).expect("it can fail");
}

fn zones(page: Option<ChangedZoneList>) -> Vec<u64> {
    let page = page.expect("there is such a namespace");
    let zones = page.zones().expect("they are few");
    zones.iter().map(|lba| lba.get()).collect()
}

const FIRST: NamespaceId = NamespaceId(1);
const SECOND: NamespaceId = NamespaceId(2);

#[test]
fn zones_that_fail_are_listed_once_by_namespace_until_they_are_taken() {
    let config = halves(3);
    let size = config.zones.size_lbas;
    let mut rig = Rig::new(&config);
    assert!(!rig.drive.has_zone_event(FIRST));
    fail(&mut rig, 5, ZoneState::READ_ONLY);
    fail(&mut rig, 3, ZoneState::OFFLINE);
    fail(&mut rig, 5, ZoneState::OFFLINE);
    // No change is no event.
    fail(&mut rig, 5, ZoneState::OFFLINE);
    assert!(!rig.drive.has_zone_event(FIRST));
    assert!(rig.drive.has_zone_event(SECOND));
    assert_eq!(zones(rig.drive.changed_zones(SECOND)), [0, 2 * size]);
    assert_eq!(zones(rig.drive.take_changed_zones(SECOND)), [0, 2 * size]);
    assert!(!rig.drive.has_zone_event(SECOND));
    assert_eq!(zones(rig.drive.take_changed_zones(SECOND)), [0_u64; 0]);
    fail(&mut rig, 4, ZoneState::READ_ONLY);
    assert_eq!(zones(rig.drive.changed_zones(SECOND)), [size]);
    assert_eq!(zones(rig.drive.changed_zones(FIRST)), [0_u64; 0]);
    for nsid in [NamespaceId(0), NamespaceId(3)] {
        assert!(!rig.drive.has_zone_event(nsid));
        assert!(rig.drive.take_changed_zones(nsid).is_none());
    }
}

/// What the host asked for it knows.
#[test]
fn changes_by_the_host_are_not_listed() {
    let mut rig = Rig::new(&halves(3));
    fail(&mut rig, 0, ZoneState::READ_ONLY);
    rig.drive.take_changed_zones(FIRST);
    for (zone, action) in [
        (0, ZoneSendAction::OFFLINE),
        (1, ZoneSendAction::FINISH),
        (2, ZoneSendAction::OPEN),
    ] {
        let send = rig.send(zone, action);
        rig.time(send);
    }
    assert!(!rig.drive.has_zone_event(FIRST));
}

#[test]
fn more_than_511_zones_are_not_named() {
    let mut rig = Rig::new(&halves(600));
    for zone in 0..511 {
        fail(&mut rig, zone, ZoneState::OFFLINE);
    }
    assert_eq!(zones(rig.drive.changed_zones(FIRST)).len(), 511);
    fail(&mut rig, 511, ZoneState::OFFLINE);
    let page = rig.drive.take_changed_zones(FIRST).expect("it exists");
    assert_eq!(page.nrzid.get(), ChangedZoneList::OVERFLOW);
    assert!(page.zid.iter().all(|zone| zone.get() == 0));
    fail(&mut rig, 512, ZoneState::OFFLINE);
    assert_eq!(zones(rig.drive.changed_zones(FIRST)).len(), 1);
}

/// A host that comes back reads all zones.
#[test]
fn a_loss_of_power_leaves_nothing_to_tell() {
    let mut rig = Rig::new(&halves(3));
    fail(&mut rig, 1, ZoneState::READ_ONLY);
    rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
    assert!(!rig.drive.has_zone_event(FIRST));
    assert_eq!(rig.drive.zones().state(ZoneId(1)), ZoneState::READ_ONLY);
}
