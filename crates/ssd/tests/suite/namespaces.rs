//! Namespaces: address spaces and limits of their own on shared flash.

mod random;

use crate::drive_support;
use crate::drive_support::{PAGE, Rig, WRITE, small};
use proptest::prelude::*;
use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig, NamespaceConfig, NamespaceKind};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile::{Profile, describe, to_toml};
use zonelab_ssd::snapshot::{self, SnapshotError};
use zonelab_ssd::{Drive, DriveModel, FaultTarget, profile};

const FIRST: NamespaceId = NamespaceId(1);
const SECOND: NamespaceId = NamespaceId(2);
/// Zones of the first namespace of [`divided`]; the second has four.
const OF_FIRST: u32 = 2;

fn limited(zones: u32, max_active: u32, max_open: u32) -> NamespaceConfig {
    NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones,
        max_active: Some(max_active),
        max_open: Some(max_open),
    }
}

/// Two zones of which one may be open, and four of which two may.
fn divided() -> DriveConfig {
    let mut config = small();
    config.data = DataStore::Memory;
    config.zones.max_active = Some(3);
    config.zones.max_open = Some(2);
    config.namespaces = vec![limited(OF_FIRST, 2, 1), limited(4, 3, 2)];
    config
}

fn start(zone: u32) -> Lba {
    Lba(u64::from(zone) * small().zones.size_lbas)
}

fn append(zone: u32) -> Op {
    Op::Append {
        zslba: start(zone),
        nlb: PAGE,
    }
}

fn send(zone: u32, action: ZoneSendAction) -> Op {
    Op::ZoneSend {
        slba: start(zone),
        action,
        select_all: false,
    }
}

const RESET_ALL: Op = Op::ZoneSend {
    slba: Lba(u64::MAX),
    action: ZoneSendAction::RESET,
    select_all: true,
};

/// Status and result of a command that runs alone.
fn exec(rig: &mut Rig, nsid: NamespaceId, op: Op) -> (Status, u64) {
    exec_with(rig, nsid, op, None).0
}

fn exec_with(
    rig: &mut Rig,
    nsid: NamespaceId,
    op: Op,
    data: Option<Buf>,
) -> ((Status, u64), Option<Buf>) {
    let tag = rig.submit_command(Command::on(nsid, op), data);
    rig.settle();
    let done = rig.done[tag].clone().expect("it has settled");
    ((done.status, done.result), done.data)
}

fn states(rig: &Rig) -> Vec<ZoneState> {
    let zones = rig.drive.zones();
    (0..zones.count())
        .map(|zone| zones.state(ZoneId(zone)))
        .collect()
}

#[test]
fn each_namespace_is_identified_with_its_zones_and_limits() {
    let drive = Drive::new(&divided());
    let namespaces = &drive.info().namespaces;
    let size = small().zones.size_lbas;
    let zoned: Vec<_> = namespaces
        .iter()
        .map(|n| n.zoned.expect("it is zoned"))
        .collect();
    let summary: Vec<_> = zoned
        .iter()
        .map(|z| (z.zones, z.max_active, z.max_open))
        .collect();
    assert_eq!(summary, [(2, Some(2), Some(1)), (4, Some(3), Some(2))]);
    let sizes: Vec<u64> = namespaces.iter().map(|n| n.size_lbas).collect();
    assert_eq!(sizes, [2 * size, 4 * size]);
    assert!(drive.info().namespace(NamespaceId(3)).is_none());
    assert!(drive.info().namespace(NamespaceId(0)).is_none());
}

#[test]
fn addresses_start_at_zero_in_each_and_do_not_meet() {
    let mut rig = Rig::new(&divided());
    for (nsid, byte) in [(FIRST, 1), (SECOND, 2)] {
        let data = Some(Buf::from(vec![byte; PAGE as usize * 4_096]));
        let (outcome, _) = exec_with(&mut rig, nsid, append(1), data);
        // The address assigned counts from the start of the namespace.
        assert_eq!(outcome, (Status::SUCCESS, start(1).0));
    }
    for (nsid, byte) in [(FIRST, 1), (SECOND, 2)] {
        let read = Op::Read {
            slba: start(1),
            nlb: PAGE,
        };
        let buffer = Some(Buf::zeroed(PAGE as usize * 4_096));
        let (outcome, data) = exec_with(&mut rig, nsid, read, buffer);
        assert_eq!(outcome.0, Status::SUCCESS);
        assert!(data.expect("it comes back").iter().all(|b| *b == byte));
    }
    let written: Vec<u64> = (0..6)
        .map(|z| rig.drive.zones().written_lbas(ZoneId(z)))
        .collect();
    let page = u64::from(PAGE);
    assert_eq!(written, [0, page, 0, page, 0, 0]);
}

#[test]
fn what_lies_behind_a_namespace_is_out_of_range_though_the_drive_goes_on() {
    let mut rig = Rig::new(&divided());
    let end = start(OF_FIRST);
    let last = Lba(end.0 - 1);
    for op in [
        append(OF_FIRST),
        Op::Write { slba: end, nlb: 1 },
        Op::Read { slba: last, nlb: 2 },
        Op::Read {
            slba: Lba(u64::MAX),
            nlb: 1,
        },
        send(OF_FIRST, ZoneSendAction::OPEN),
        Op::ZoneReceive {
            slba: end,
            filter: ReportFilter::ALL,
            partial: false,
            extended: false,
        },
    ] {
        let buffer = matches!(op, Op::ZoneReceive { .. }).then(|| Buf::zeroed(4_096));
        let (outcome, _) = exec_with(&mut rig, FIRST, op, buffer);
        assert_eq!(outcome.0, Status::LBA_OUT_OF_RANGE, "{op:?}");
    }
    assert_eq!(
        exec(&mut rig, FIRST, Op::Read { slba: last, nlb: 1 }).0,
        Status::SUCCESS
    );
    for nsid in [0, 3, u32::MAX] {
        let outcome = exec(&mut rig, NamespaceId(nsid), append(0));
        assert_eq!(outcome, (Status::INVALID_NAMESPACE_OR_FORMAT, 0));
    }
    assert_eq!(states(&rig), [ZoneState::EMPTY; 6]);
}

#[test]
fn limits_are_those_of_each_namespace() {
    let mut rig = Rig::new(&divided());
    let open = |rig: &mut Rig, nsid, zone| exec(rig, nsid, send(zone, ZoneSendAction::OPEN)).0;
    assert_eq!(open(&mut rig, FIRST, 0), Status::SUCCESS);
    assert_eq!(open(&mut rig, FIRST, 1), Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(open(&mut rig, SECOND, 0), Status::SUCCESS);
    assert_eq!(open(&mut rig, SECOND, 1), Status::SUCCESS);
    assert_eq!(open(&mut rig, SECOND, 2), Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(
        exec(&mut rig, SECOND, send(1, ZoneSendAction::CLOSE)).0,
        Status::SUCCESS
    );
    assert_eq!(exec(&mut rig, SECOND, append(2)).0, Status::SUCCESS);
    // Room is made by closing a zone of the same namespace.
    assert_eq!(
        exec(&mut rig, SECOND, append(3)).0,
        Status::TOO_MANY_ACTIVE_ZONES
    );
    let resources: Vec<_> = rig
        .drive
        .zones()
        .namespaces()
        .iter()
        .map(|n| (n.open_count(), n.active_count()))
        .collect();
    assert_eq!(resources, [(1, 1), (2, 3)]);
    rig.drive.zones().assert_invariants();
}

#[test]
fn implicit_close_takes_the_oldest_of_the_same_namespace() {
    let mut config = divided();
    config.namespaces[0] = limited(OF_FIRST, 2, 1);
    let mut rig = Rig::new(&config);
    assert_eq!(exec(&mut rig, SECOND, append(0)).0, Status::SUCCESS);
    assert_eq!(exec(&mut rig, FIRST, append(0)).0, Status::SUCCESS);
    assert_eq!(exec(&mut rig, FIRST, append(1)).0, Status::SUCCESS);
    let (open, closed, empty) = (
        ZoneState::IMPLICITLY_OPENED,
        ZoneState::CLOSED,
        ZoneState::EMPTY,
    );
    // Zone 0 of the second was opened before, and stays.
    assert_eq!(states(&rig), [closed, open, open, empty, empty, empty]);
}

#[test]
fn select_all_touches_only_its_own() {
    let mut rig = Rig::new(&divided());
    for (nsid, zone) in [(FIRST, 0), (SECOND, 0), (SECOND, 3)] {
        assert_eq!(exec(&mut rig, nsid, append(zone)).0, Status::SUCCESS);
    }
    assert_eq!(exec(&mut rig, SECOND, RESET_ALL).0, Status::SUCCESS);
    let (open, empty) = (ZoneState::IMPLICITLY_OPENED, ZoneState::EMPTY);
    assert_eq!(states(&rig), [open, empty, empty, empty, empty, empty]);
    assert_eq!(
        exec(&mut rig, NamespaceId(3), RESET_ALL).0,
        Status::INVALID_NAMESPACE_OR_FORMAT
    );
    assert_eq!(exec(&mut rig, FIRST, RESET_ALL).0, Status::SUCCESS);
    assert_eq!(states(&rig), [empty; 6]);
}

#[test]
fn a_report_ends_with_the_namespace_and_has_its_addresses() {
    let mut rig = Rig::new(&divided());
    exec(&mut rig, FIRST, append(1));
    exec(&mut rig, SECOND, append(1));
    for (nsid, zones) in [(FIRST, 2_u64), (SECOND, 4)] {
        let op = Op::ZoneReceive {
            slba: start(1),
            filter: ReportFilter::ALL,
            partial: false,
            extended: false,
        };
        let (_, data) = exec_with(&mut rig, nsid, op, Some(Buf::zeroed(4_096)));
        let data = data.expect("it comes back");
        let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight"));
        assert_eq!(word(0), zones - 1, "zones from the second on");
        assert_eq!(word(64 + 16), start(1).0, "ZSLBA");
        assert_eq!(word(64 + 24), start(1).0 + u64::from(PAGE), "WP");
    }
}

#[test]
fn namespaces_share_the_dies() {
    let mut rig = Rig::new(&divided());
    // A page of zone 0 lies on the first plane in both namespaces.
    let tags = [FIRST, SECOND].map(|nsid| {
        let op = append(0);
        rig.submit_command(Command::on(nsid, op), None)
    });
    rig.settle();
    let ends = tags.map(|tag| rig.done[tag].as_ref().expect("it has settled").at);
    assert_eq!(ends[0], WRITE);
    assert!(ends[1] > WRITE, "the second waits for the die of the first");
}

#[test]
fn a_snapshot_is_one_of_a_drive_divided_in_the_same_way() {
    let config = divided();
    let mut rig = Rig::new(&config);
    for (nsid, zone) in [(FIRST, 0), (SECOND, 1), (SECOND, 0)] {
        assert_eq!(exec(&mut rig, nsid, append(zone)).0, Status::SUCCESS);
    }
    let bytes = snapshot::save(&rig.drive).expect("nothing is in flight");
    let before = states(&rig);
    rig.restart(snapshot::restore(&config, &bytes).expect("it is of the same drive"));
    rig.drive.zones().assert_invariants();
    assert_eq!(states(&rig), before);
    // Zone 1 was opened first, so it is the one to be closed.
    assert_eq!(exec(&mut rig, SECOND, append(2)).0, Status::SUCCESS);
    assert_eq!(states(&rig)[3], ZoneState::CLOSED);

    let mut whole = config.clone();
    whole.namespaces = Vec::new();
    let mut other = config.clone();
    other.namespaces.swap(0, 1);
    for (config, here) in [
        (whole, "one with all zones"),
        (other, "4 zones (3 active, 2 open), "),
    ] {
        match snapshot::restore(&config, &bytes) {
            Err(SnapshotError::OtherDrive {
                key, here: found, ..
            }) => {
                assert_eq!(key, "namespaces");
                assert!(found.starts_with(here), "{found}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_power_cut_keeps_each_namespace_within_its_limits() {
    let mut config = divided();
    config.data = DataStore::None;
    config.namespaces[0] = limited(OF_FIRST, 1, 1);
    let mut rig = Rig::new(&config);
    assert_eq!(exec(&mut rig, FIRST, append(0)).0, Status::SUCCESS);
    let tag = rig.submit_command(Command::on(SECOND, append(3)), None);
    let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
    rig.drive.zones().assert_invariants();
    // The command comes back as the host gave it.
    let lost: Vec<_> = loss.lost.iter().map(|l| (l.tag, l.nsid, l.op)).collect();
    assert_eq!(lost, [(Tag(tag as u32), SECOND, append(3))]);
    assert_eq!(states(&rig)[0], ZoneState::CLOSED);
}

#[test]
fn faults_count_zones_in_their_namespace_or_on_the_drive() {
    let struck = |fault: &str, nsid: NamespaceId, zone: u32| {
        let text = format!("[[fault]]\non = \"append\"\n{fault}\neffect = \"fail\"\n");
        let plan = FaultPlan::parse("faults.toml", &text, &[]).expect("it is valid");
        plan.check(&divided()).expect("it fits");
        let mut drive = FaultyDrive::new(Drive::new(&divided()), plan);
        let op = append(zone);
        drive
            .submit(Nanos::ZERO, QueueId(0), Tag(0), Command::on(nsid, op), None)
            .expect("nothing is in flight");
        drive.faults_struck() == 1
    };
    for (fault, strikes) in [
        // Zones 0 and 1 of the first, 0 and 1 of the second namespace.
        ("namespace = 2", [false, false, true, true]),
        ("namespace = 2\nzones = 1", [false, false, false, true]),
        ("zones = \"1..=2\"", [false, true, true, false]),
        (
            "namespace = 1\nlbas = \"0..=9\"",
            [true, false, false, false],
        ),
        (
            "namespace = 2\nlbas = \"0..=9\"",
            [false, false, true, false],
        ),
        ("", [true, true, true, true]),
    ] {
        let zones = [(FIRST, 0), (FIRST, 1), (SECOND, 0), (SECOND, 1)];
        let found = zones.map(|(nsid, zone)| struck(fault, nsid, zone));
        assert_eq!(found, strikes, "{fault}");
    }
    for (fault, why) in [
        ("namespace = 3", "there is no namespace 3: the drive has 2"),
        ("namespace = 1\nzones = 2", "in namespace 1: its last is 1"),
    ] {
        let text = format!("[[fault]]\non = \"append\"\n{fault}\neffect = \"fail\"\n");
        let plan = FaultPlan::parse("faults.toml", &text, &[]).expect("it is valid");
        let error = plan.check(&divided()).expect_err("it does not fit");
        assert!(error.ends_with(why), "{error}");
    }
}

#[test]
fn a_failed_program_kills_the_zone_of_its_namespace() {
    let text = "[[fault]]\non = \"append\"\nnamespace = 2\neffect = \"read-only\"\n";
    let plan = FaultPlan::parse("faults.toml", text, &[]).expect("it is valid");
    let mut drive = FaultyDrive::new(Drive::new(&divided()), plan);
    let command = Command::on(SECOND, append(1));
    drive
        .submit(Nanos::ZERO, QueueId(0), Tag(0), command, None)
        .expect("nothing is in flight");
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
    assert_eq!(done[0].status, Status::WRITE_FAULT);
    let zone = ZoneId(OF_FIRST + 1);
    assert_eq!(drive.drive().zones().state(zone), ZoneState::READ_ONLY);
}

#[test]
fn a_file_divides_the_zones() {
    let text = |namespaces: &str| {
        let base = profile::builtin_text("confznspp").expect("it is built in");
        format!("{base}\n{namespaces}")
    };
    let parse = |namespaces: &str, set: &[&str]| {
        let set: Vec<_> = set
            .iter()
            .map(|text| zonelab_config::Override::parse(text).expect("it is one"))
            .collect();
        Profile::parse("x.toml", &text(namespaces), &set)
    };
    let both = "[[namespaces]]\nzones = 8\n[[namespaces]]\nzones = 40\nmax_open = 5\n";
    let profile = parse(both, &["zones.max_active=14"]).expect("it is valid");
    let expected = [limited(8, 8, 8), limited(40, 14, 5)];
    assert_eq!(profile.config.namespaces, expected);
    let again = Profile::parse("y.toml", &to_toml(&profile.config), &[]).expect("it reads back");
    assert_eq!(again.config, profile.config);
    let rows = describe(&profile);
    let row = rows.iter().filter(|row| row.section == "namespaces").nth(1);
    let value = "2: 40 zones (those of the drive from 8 to 47), 14 active, 5 open";
    assert_eq!(row.expect("there are two").value, value);

    for (namespaces, why) in [
        (
            "[[namespaces]]\nzones = 48\n",
            "a single namespace has all zones",
        ),
        (
            "[[namespaces]]\nzones = 8\n[[namespaces]]\nzones = 8\n",
            "they have 16 zones together, the drive has 48",
        ),
        (
            "[[namespaces]]\nzones = 0\n[[namespaces]]\nzones = 48\n",
            "namespace 1: it has no zones",
        ),
        (
            "[[namespaces]]\nzones = 8\nmax_open = 9\n[[namespaces]]\nzones = 40\n",
            "namespace 1: max_open = 9 is out of range",
        ),
    ] {
        let errors = parse(namespaces, &[])
            .expect_err("it is not valid")
            .to_string();
        assert!(errors.contains(why), "{errors}");
    }
}
