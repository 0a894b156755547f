//! Each status code of the zone state machine, and the rules that a host relies on.

mod report;

use zonelab_device::{Lba, NamespaceId, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction as Action, ZoneState};
use zonelab_ssd::config::{StripeOrder, ZonesConfig};
use zonelab_ssd::zones::{Change, Zones};

/// Eight zones of 16 blocks, of which 12 can be written; three active, two open.
const CONFIG: ZonesConfig = ZonesConfig {
    count: 8,
    size_lbas: 16,
    capacity_lbas: 12,
    max_active: Some(3),
    max_open: Some(2),
    channels: 1,
    ways: 1,
    stripe: StripeOrder::ChannelFirst,
    stagger: 0,
    read_across: false,
    descriptor_extension_bytes: 64,
    zrwa: None,
};

/// First block of a zone.
fn at(zone: u64) -> Lba {
    Lba(zone * 16)
}

fn send(zones: &mut Zones, zone: u64, action: Action) -> Result<(), Status> {
    zones.send(at(zone), action, &mut Vec::new())
}

fn send_all(zones: &mut Zones, action: Action) -> Result<Vec<Change>, Status> {
    let mut changes = Vec::new();
    zones.send_all(NamespaceId::FIRST, action, &mut changes)?;
    Ok(changes)
}

fn states<const N: usize>(zones: &Zones) -> [ZoneState; N] {
    std::array::from_fn(|zone| zones.state(ZoneId(zone as u32)))
}

use ZoneState as S;

#[test]
fn invalid_field() {
    let mut zones = Zones::new(&CONFIG);
    let refused = Err(Status::INVALID_FIELD);
    // No blocks.
    assert_eq!(zones.write(at(0), 0).map(drop), refused);
    assert_eq!(zones.append(at(0), 0).map(drop), refused);
    assert_eq!(zones.read(at(0), 0), refused);
    // Not the start of a zone.
    assert_eq!(zones.append(Lba(1), 1).map(drop), refused);
    for action in [Action::OPEN, Action::RESET, Action(0x7f)] {
        assert_eq!(zones.send(Lba(17), action, &mut Vec::new()), refused);
    }
    assert_eq!(zones.set_extension(Lba(17), &[0; 64]), refused);
    // Unknown, not supported, or in need of data.
    for action in [
        Action(0),
        Action(0x7f),
        Action::ZRWA_FLUSH,
        Action::SET_DESCRIPTOR_EXTENSION,
    ] {
        assert_eq!(send(&mut zones, 0, action), refused);
        assert_eq!(send_all(&mut zones, action), Err(Status::INVALID_FIELD));
    }
    // Too few bytes; no extension at all.
    assert_eq!(zones.set_extension(at(0), &[0; 63]), refused);
    let mut plain = Zones::new(&ZonesConfig {
        descriptor_extension_bytes: 0,
        ..CONFIG
    });
    assert_eq!(plain.set_extension(at(0), &[0; 64]), refused);
    // Reports.
    let out = &mut [0; 128];
    let error = Err(Status::INVALID_FIELD);
    assert_eq!(
        zones.report(at(0), ReportFilter(8), false, false, out),
        error
    );
    assert_eq!(
        plain.report(at(0), ReportFilter::ALL, false, true, out),
        error
    );
    assert_eq!(
        zones.report(at(0), ReportFilter::ALL, false, false, &mut out[..63]),
        error
    );
    // A fault leads to no other states.
    assert_eq!(zones.fail(ZoneId(0), S::FULL, &mut Vec::new()), refused);
    assert_eq!(states(&zones), [S::EMPTY; 8]);
}

#[test]
fn lba_out_of_range() {
    let mut zones = Zones::new(&ZonesConfig {
        stagger: 0,
        read_across: true,
        ..CONFIG
    });
    let refused = Err(Status::LBA_OUT_OF_RANGE);
    for (slba, nlb) in [
        (Lba(128), 1),
        (Lba(127), 2),
        (Lba(u64::MAX), 1),
        (Lba(1), u32::MAX),
    ] {
        assert_eq!(zones.write(slba, nlb).map(drop), refused);
        assert_eq!(zones.append(slba, nlb).map(drop), refused);
        assert_eq!(zones.read(slba, nlb), refused);
    }
    assert_eq!(zones.read(Lba(127), 1), Ok(()));
    assert_eq!(send(&mut zones, 8, Action::RESET), refused);
    assert_eq!(zones.set_extension(at(8), &[0; 64]), refused);
    let report = zones.report(at(8), ReportFilter::ALL, false, false, &mut [0; 64]);
    assert_eq!(report, Err(Status::LBA_OUT_OF_RANGE));
    assert_eq!(zones.fail(ZoneId(8), S::OFFLINE, &mut Vec::new()), refused);
    assert_eq!(zones.precondition_full(7..9), refused);
    assert_eq!(zones.zone_of(Lba(128)), None);
}

#[test]
fn zone_boundary_error() {
    let mut zones = Zones::new(&CONFIG);
    let refused = Err(Status::ZONE_BOUNDARY_ERROR);
    assert_eq!(zones.write(at(0), 13).map(drop), refused);
    assert_eq!(
        zones.write(Lba(12), 1).map(drop),
        refused,
        "between capacity and size"
    );
    assert_eq!(zones.append(at(0), 13).map(drop), refused);
    zones.append(at(0), 11).unwrap();
    assert_eq!(zones.append(at(0), 2).map(drop), refused);
    assert_eq!(
        zones.append(at(0), 1).map(|extent| extent.slba),
        Ok(Lba(11))
    );
    // Reads may go up to the size of the zone, and no further.
    assert_eq!(zones.read(Lba(10), 6), Ok(()));
    assert_eq!(zones.read(Lba(10), 7), refused);
    let across = Zones::new(&ZonesConfig {
        stagger: 0,
        read_across: true,
        ..CONFIG
    });
    assert_eq!(across.read(Lba(10), 100), Ok(()));
}

#[test]
fn zone_is_full() {
    let mut zones = Zones::new(&CONFIG);
    assert!(zones.write(at(0), 12).unwrap().filled);
    let refused = Err(Status::ZONE_IS_FULL);
    assert_eq!(zones.write(at(0), 1).map(drop), refused);
    assert_eq!(zones.append(at(0), 1).map(drop), refused);
    assert_eq!(
        zones.append(at(0), 13).map(drop),
        refused,
        "the state before the boundary"
    );
    assert_eq!(zones.read(at(0), 12), Ok(()));
}

#[test]
fn zone_is_read_only_or_offline() {
    let mut zones = Zones::new(&ZonesConfig {
        stagger: 0,
        read_across: true,
        ..CONFIG
    });
    zones.write(at(1), 3).unwrap();
    let changes = &mut Vec::new();
    zones.fail(ZoneId(1), S::READ_ONLY, changes).unwrap();
    assert_eq!(
        zones.write(Lba(19), 1).map(drop),
        Err(Status::ZONE_IS_READ_ONLY)
    );
    assert_eq!(
        zones.append(at(1), 1).map(drop),
        Err(Status::ZONE_IS_READ_ONLY)
    );
    assert_eq!(zones.read(at(1), 3), Ok(()));
    assert_eq!(
        (zones.active_count(), zones.written_lbas(ZoneId(1))),
        (0, 3)
    );
    send(&mut zones, 1, Action::OFFLINE).unwrap();
    assert_eq!(
        zones.write(Lba(19), 1).map(drop),
        Err(Status::ZONE_IS_OFFLINE)
    );
    assert_eq!(
        zones.append(at(1), 1).map(drop),
        Err(Status::ZONE_IS_OFFLINE)
    );
    assert_eq!(zones.read(at(1), 1), Err(Status::ZONE_IS_OFFLINE));
    assert_eq!(
        zones.read(at(0), 17),
        Err(Status::ZONE_IS_OFFLINE),
        "on the way"
    );
    let back = zones.fail(ZoneId(1), S::READ_ONLY, &mut Vec::new());
    assert_eq!(back, Err(Status::INVALID_ZONE_STATE_TRANSITION));
}

#[test]
fn zone_invalid_write() {
    let mut zones = Zones::new(&CONFIG);
    let refused = Err(Status::ZONE_INVALID_WRITE);
    assert_eq!(zones.write(Lba(1), 1).map(drop), refused);
    zones.write(at(0), 4).unwrap();
    assert_eq!(zones.write(Lba(3), 1).map(drop), refused);
    assert_eq!(zones.write(Lba(5), 1).map(drop), refused);
    assert_eq!(
        zones.write(Lba(4), 1).map(|extent| extent.offset_lbas),
        Ok(4)
    );
}

#[test]
fn too_many_active_zones() {
    let mut zones = Zones::new(&CONFIG);
    for zone in 0..3 {
        zones.write(at(zone), 1).unwrap();
    }
    let refused = Err(Status::TOO_MANY_ACTIVE_ZONES);
    assert_eq!(zones.write(at(3), 1).map(drop), refused);
    assert_eq!(zones.append(at(3), 1).map(drop), refused);
    assert_eq!(
        zones.append(at(3), 12).map(drop),
        refused,
        "even if it fills the zone"
    );
    assert_eq!(send(&mut zones, 3, Action::OPEN), refused);
    assert_eq!(zones.set_extension(at(3), &[0; 64]), refused);
    // None of that closed a zone; finish needs no resource.
    assert_eq!(zones.open_count(), 2);
    assert_eq!(send(&mut zones, 3, Action::FINISH), Ok(()));
}

#[test]
fn too_many_open_zones() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(2), 1).unwrap();
    send(&mut zones, 2, Action::CLOSE).unwrap();
    send(&mut zones, 0, Action::OPEN).unwrap();
    send(&mut zones, 1, Action::OPEN).unwrap();
    let refused = Err(Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(zones.write(Lba(33), 1).map(drop), refused);
    assert_eq!(zones.append(at(2), 1).map(drop), refused);
    assert_eq!(send(&mut zones, 2, Action::OPEN), refused);
    assert_eq!(
        send_all(&mut zones, Action::OPEN),
        Err(Status::TOO_MANY_OPEN_ZONES)
    );
    // An empty zone lacks an active resource too: that comes first.
    assert_eq!(
        zones.append(at(3), 1).map(drop),
        Err(Status::TOO_MANY_ACTIVE_ZONES)
    );
}

#[test]
fn invalid_zone_state_transition() {
    let mut zones = Zones::new(&CONFIG);
    let refused = Err(Status::INVALID_ZONE_STATE_TRANSITION);
    assert_eq!(send(&mut zones, 0, Action::CLOSE), refused);
    assert_eq!(send(&mut zones, 0, Action::OFFLINE), refused);
    zones.write(at(0), 12).unwrap();
    assert_eq!(send(&mut zones, 0, Action::OPEN), refused);
    assert_eq!(send(&mut zones, 0, Action::CLOSE), refused);
    assert_eq!(zones.set_extension(at(0), &[0; 64]), refused);
    assert_eq!(zones.precondition_full(0..2), refused);
    assert_eq!(states(&zones), [S::FULL, S::EMPTY], "all or nothing");
    zones
        .fail(ZoneId(0), S::READ_ONLY, &mut Vec::new())
        .unwrap();
    for action in [Action::OPEN, Action::CLOSE, Action::FINISH, Action::RESET] {
        assert_eq!(send(&mut zones, 0, action), refused);
    }
}

#[test]
fn the_oldest_implicitly_opened_zone_is_closed() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(0), 1).unwrap();
    zones.write(at(1), 1).unwrap();
    // Written last, but opened first.
    zones.write(Lba(1), 1).unwrap();
    let extent = zones.write(at(2), 1).unwrap();
    assert_eq!(extent.closed, Some(ZoneId(0)));
    assert!(extent.was_empty && extent.opened && !extent.filled);
    assert_eq!(
        states(&zones),
        [S::CLOSED, S::IMPLICITLY_OPENED, S::IMPLICITLY_OPENED]
    );
    // An open by the host takes the place of the next one.
    let changes = &mut Vec::new();
    zones.send(at(0), Action::OPEN, changes).unwrap();
    let change = |zone, from, to, written_lbas| Change {
        zone: ZoneId(zone),
        from,
        to,
        written_lbas,
        host_lbas: written_lbas,
    };
    assert_eq!(changes[0], change(1, S::IMPLICITLY_OPENED, S::CLOSED, 1));
    assert_eq!(changes[1], change(0, S::CLOSED, S::EXPLICITLY_OPENED, 2));
    assert_eq!(changes.len(), 2);
}

#[test]
fn an_opened_zone_closes_to_closed_even_if_nothing_was_written() {
    let mut zones = Zones::new(&CONFIG);
    send(&mut zones, 0, Action::OPEN).unwrap();
    send(&mut zones, 0, Action::CLOSE).unwrap();
    assert_eq!(zones.state(ZoneId(0)), S::CLOSED);
    assert_eq!((zones.open_count(), zones.active_count()), (0, 1));
}

#[test]
fn actions_without_effect_succeed() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(1), 12).unwrap();
    send(&mut zones, 2, Action::OPEN).unwrap();
    zones.set_extension(at(3), &[1; 64]).unwrap();
    zones.fail(ZoneId(4), S::OFFLINE, &mut Vec::new()).unwrap();
    let changes = &mut Vec::new();
    let same = [
        Action::RESET,
        Action::FINISH,
        Action::OPEN,
        Action::CLOSE,
        Action::OFFLINE,
    ];
    for (zone, action) in same.into_iter().enumerate() {
        assert_eq!(
            zones.send(at(zone as u64), action, changes),
            Ok(()),
            "{action}"
        );
    }
    assert_eq!(changes, &[]);
}

#[test]
fn finish_moves_the_pointer_and_not_what_the_host_wrote() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(0), 5).unwrap();
    let changes = &mut Vec::new();
    zones.send(at(0), Action::FINISH, changes).unwrap();
    assert_eq!(
        (zones.written_lbas(ZoneId(0)), zones.host_lbas(ZoneId(0))),
        (12, 5)
    );
    assert_eq!(changes[0].written_lbas, 5);
    zones.send(at(0), Action::RESET, changes).unwrap();
    assert_eq!(
        (zones.written_lbas(ZoneId(0)), zones.host_lbas(ZoneId(0))),
        (0, 0)
    );
    assert_eq!(changes[1].written_lbas, 12);
    zones.precondition_full(0..1).unwrap();
    assert_eq!(
        (zones.written_lbas(ZoneId(0)), zones.host_lbas(ZoneId(0))),
        (12, 12)
    );
    // An empty zone becomes full too, with nothing in it.
    send(&mut zones, 1, Action::FINISH).unwrap();
    assert_eq!(
        (zones.written_lbas(ZoneId(1)), zones.host_lbas(ZoneId(1))),
        (12, 0)
    );
}

#[test]
fn open_all_makes_room_or_does_nothing() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(0), 1).unwrap();
    zones.write(at(1), 1).unwrap();
    zones.write(at(2), 1).unwrap();
    assert_eq!(
        states(&zones),
        [S::CLOSED, S::IMPLICITLY_OPENED, S::IMPLICITLY_OPENED]
    );
    // One closed zone: the oldest implicitly opened one makes room and stays closed.
    assert_eq!(send_all(&mut zones, Action::OPEN).unwrap().len(), 2);
    assert_eq!(
        states(&zones),
        [S::EXPLICITLY_OPENED, S::CLOSED, S::IMPLICITLY_OPENED]
    );
    assert_eq!(send_all(&mut zones, Action::OPEN).unwrap().len(), 2);
    assert_eq!(
        states(&zones),
        [S::EXPLICITLY_OPENED, S::EXPLICITLY_OPENED, S::CLOSED]
    );
    assert_eq!(
        send_all(&mut zones, Action::OPEN),
        Err(Status::TOO_MANY_OPEN_ZONES)
    );
    assert_eq!(
        states(&zones),
        [S::EXPLICITLY_OPENED, S::EXPLICITLY_OPENED, S::CLOSED]
    );
}

#[test]
fn select_all_takes_the_states_of_the_action() {
    let mut zones = Zones::new(&CONFIG);
    zones.write(at(0), 12).unwrap();
    zones.write(at(1), 1).unwrap();
    zones.write(at(2), 1).unwrap();
    zones
        .fail(ZoneId(3), S::READ_ONLY, &mut Vec::new())
        .unwrap();
    send_all(&mut zones, Action::CLOSE).unwrap();
    assert_eq!(
        states(&zones),
        [S::FULL, S::CLOSED, S::CLOSED, S::READ_ONLY, S::EMPTY]
    );
    send_all(&mut zones, Action::FINISH).unwrap();
    assert_eq!(
        states(&zones),
        [S::FULL, S::FULL, S::FULL, S::READ_ONLY, S::EMPTY]
    );
    assert_eq!(send_all(&mut zones, Action::RESET).unwrap().len(), 3);
    assert_eq!(
        states(&zones),
        [S::EMPTY, S::EMPTY, S::EMPTY, S::READ_ONLY, S::EMPTY]
    );
    send_all(&mut zones, Action::OFFLINE).unwrap();
    assert_eq!(zones.state(ZoneId(3)), S::OFFLINE);
    assert_eq!(
        send_all(&mut zones, Action::RESET),
        Ok(vec![]),
        "nothing to do"
    );
}

#[test]
fn an_extension_lives_until_the_zone_is_empty_or_offline() {
    let mut zones = Zones::new(&CONFIG);
    let id = ZoneId(0);
    zones.set_extension(at(0), &[7; 64]).unwrap();
    assert_eq!((zones.state(id), zones.active_count()), (S::CLOSED, 1));
    zones.write(at(0), 12).unwrap();
    assert_eq!(zones.extension(id), Some(&[7; 64][..]));
    send(&mut zones, 0, Action::RESET).unwrap();
    assert_eq!(zones.extension(id), None);
    zones.set_extension(at(0), &[8; 64]).unwrap();
    zones.fail(id, S::READ_ONLY, &mut Vec::new()).unwrap();
    assert_eq!(zones.extension(id), Some(&[8; 64][..]));
    send(&mut zones, 0, Action::OFFLINE).unwrap();
    assert_eq!(zones.extension(id), None);
}
