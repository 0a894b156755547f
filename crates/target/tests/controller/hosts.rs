//! Hosts with namespaces of their own, one of which is hostile.

use core::num::NonZeroU64;

use zonelab_device::{CopyLimits, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, CopyCommand, CopyRange, DatasetManagement, DatasetRange, Flush, FormatNvm,
    GetFeatures, GetLogPage, Identify, IoCommand, Read, SetFeatures, Write, WriteZeroes,
    ZoneAppend, ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::fabrics::Connect;
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::identify::{Cns, CommandSet, Nqn};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::queue::{SglDescriptor, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DriveConfig, NamespaceConfig, NamespaceKind};
use zonelab_ssd::faults::FaultPlan;
use zonelab_target::controller::{
    BURST, HostRules, NamespaceAccess, Permissions, Quality, QueueHandle, SettingsError,
};

use crate::host::{HOST, Host, NQN, connect, connect_data, enabled, small, with_faults};

pub(crate) const OTHER: &str = "nqn.2026-01.io.zonelab:other";
const BLOCK: usize = 4096;

/// Two namespaces of three zones, with Copy.
pub(crate) fn divided() -> DriveConfig {
    let mut config = small();
    let half = NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones: 3,
        max_active: None,
        max_open: None,
    };
    config.namespaces = vec![half; 2];
    config.copy = Some(CopyLimits {
        max_ranges: 2,
        max_range_lbas: 8,
        max_lbas: 8,
    });
    config
}

pub(crate) fn rules(hostnqn: &str, namespaces: &[(u32, NamespaceAccess)]) -> HostRules {
    HostRules {
        hostnqn: hostnqn.to_owned(),
        namespaces: namespaces.to_vec(),
        permissions: Permissions::default(),
        quality: Quality::default(),
    }
}

pub(crate) const RW: NamespaceAccess = NamespaceAccess::ReadWrite;
pub(crate) const RO: NamespaceAccess = NamespaceAccess::ReadOnly;

/// [`HOST`] has namespace 1, [`OTHER`] has namespace 2.
fn apart() -> Vec<HostRules> {
    vec![rules(HOST, &[(1, RW)]), rules(OTHER, &[(2, RW)])]
}

/// Queues of one host.
#[derive(Clone, Copy)]
pub(crate) struct Queues {
    pub(crate) admin: QueueHandle,
    pub(crate) io: QueueHandle,
}

/// [`HOST`] and [`OTHER`] at one drive.
pub(crate) struct Pair {
    pub(crate) all: Host,
    pub(crate) first: Queues,
    pub(crate) other: Queues,
}

impl Pair {
    fn with(rules: Vec<HostRules>) -> Self {
        Self::on(&divided(), rules)
    }

    pub(crate) fn on(config: &DriveConfig, rules: Vec<HostRules>) -> Self {
        let mut subsystem = with_faults(config, FaultPlan::default());
        let now = Nanos::ZERO;
        subsystem
            .set_hosts(now, Some(rules))
            .expect("they are possible");
        let mut all = Host::of(subsystem);
        let first = Queues {
            admin: all.admin,
            io: all.io,
        };
        let mut data = connect_data(NQN, 0xffff);
        data.hostnqn = Nqn::new(OTHER).expect("it fits");
        let admin = Connect::new(0, 32);
        let (admin, cntlid) = connect(&mut all.subsystem, now, admin, &data).expect("it is let in");
        all.admin = admin;
        all.set_cc(enabled());
        data.cntlid = cntlid.into();
        let io = Connect::new(1, 64);
        let (io, _) = connect(&mut all.subsystem, all.now, io, &data).expect("it is let in");
        all.admin = first.admin;
        Self {
            all,
            first,
            other: Queues { admin, io },
        }
    }

    /// Replaces the rules.
    pub(crate) fn set(&mut self, rules: Vec<HostRules>) {
        let set = self.all.subsystem.set_hosts(self.all.now, Some(rules));
        set.expect("they are possible");
    }

    pub(crate) fn admin(
        &mut self,
        by: Queues,
        command: AdminCommand,
        room: usize,
    ) -> (Status, Vec<u8>) {
        let entry = command.to_entry().expect("it fits");
        let reply = self.all.call(by.admin, entry, None, room);
        (
            reply.status(),
            reply.data.map_or_else(Vec::new, |data| data.to_vec()),
        )
    }

    pub(crate) fn io(
        &mut self,
        by: Queues,
        command: IoCommand,
        data: Option<Vec<u8>>,
        room: usize,
    ) -> Status {
        let entry = command.to_entry().expect("it fits");
        self.all.call(by.io, entry, data, room).status()
    }

    pub(crate) fn identify(&mut self, by: Queues, nsid: u32, cns: Cns) -> (Status, Vec<u8>) {
        let identify = Identify::new(nsid, cns, CommandSet::ZNS);
        self.admin(by, AdminCommand::Identify(identify), 4096)
    }
}

pub(crate) fn read(nsid: u32) -> IoCommand {
    IoCommand::Read(Read::new(nsid, 0, 1))
}

pub(crate) fn write(nsid: u32, slba: u64) -> IoCommand {
    IoCommand::Write(Write::new(nsid, slba, 1))
}

fn send(nsid: u32, action: ZoneSendAction) -> ZoneManagementSend {
    ZoneManagementSend::new(nsid, 0, action)
}

fn report(nsid: u32) -> IoCommand {
    IoCommand::ZoneManagementReceive(ZoneManagementReceive::new(nsid, 0, 1024))
}

/// Commands that change namespace 1, with their data.
fn changes() -> Vec<(IoCommand, Option<Vec<u8>>)> {
    let data = || Some(vec![7; BLOCK]);
    let all = |action| {
        IoCommand::ZoneManagementSend(ZoneManagementSend {
            select_all: true,
            ..send(1, action)
        })
    };
    let one = |action| IoCommand::ZoneManagementSend(send(1, action));
    let range = |bytes: usize| Some(vec![0; bytes]);
    vec![
        (write(1, 0), data()),
        (IoCommand::ZoneAppend(ZoneAppend::new(1, 0, 1)), data()),
        (IoCommand::WriteZeroes(WriteZeroes::new(1, 0, 1)), None),
        (
            IoCommand::DatasetManagement(DatasetManagement::deallocate(1, 1)),
            range(size_of::<DatasetRange>()),
        ),
        (
            IoCommand::Copy(CopyCommand::new(1, 160, 1)),
            range(size_of::<CopyRange>()),
        ),
        (one(ZoneSendAction::RESET), None),
        (one(ZoneSendAction::FINISH), None),
        (one(ZoneSendAction::OPEN), None),
        (one(ZoneSendAction::CLOSE), None),
        (one(ZoneSendAction::OFFLINE), None),
        (
            one(ZoneSendAction::SET_DESCRIPTOR_EXTENSION),
            Some(vec![1; 64]),
        ),
        (all(ZoneSendAction::RESET), None),
        (all(ZoneSendAction::FINISH), None),
    ]
}

#[test]
fn a_hostile_host_can_neither_read_nor_change_what_is_not_its_own() {
    let mut pair = Pair::with(apart());
    let (first, other) = (pair.first, pair.other);
    assert_eq!(
        pair.io(first, write(1, 0), Some(vec![5; BLOCK]), 0),
        Status::SUCCESS
    );
    let invalid = Status::INVALID_NAMESPACE_OR_FORMAT;
    assert_eq!(pair.io(other, read(1), None, BLOCK), invalid);
    assert_eq!(pair.io(other, report(1), None, 4096), invalid);
    for (command, data) in changes() {
        assert_eq!(pair.io(other, command, data, 0), invalid, "{command:?}");
    }
    // Data is not even asked for.
    let entry = write(1, 0)
        .to_entry()
        .expect("it fits")
        .with_cid(999)
        .with_sgl(SglDescriptor::transport(BLOCK as u32));
    let now = pair.all.now;
    let refused = pair
        .all
        .subsystem
        .admit(now, other.io, &entry, BLOCK as u32);
    assert_eq!(
        refused.expect_err("it is not its own").status.status(),
        invalid
    );
    let entry = read(1).to_entry().expect("it fits");
    let reply = pair.all.call(first.io, entry, None, BLOCK);
    assert_eq!(reply.data(), [5; BLOCK]);
    // What is its own works as ever.
    assert_eq!(
        pair.io(other, write(2, 0), Some(vec![6; BLOCK]), 0),
        Status::SUCCESS
    );
}

#[test]
fn a_hostile_host_does_not_learn_of_what_is_not_its_own() {
    let mut pair = Pair::with(vec![rules(HOST, &[(2, RW)]), rules(OTHER, &[(1, RW)])]);
    let (first, other) = (pair.first, pair.other);
    for list in [Cns::ACTIVE_NAMESPACES, Cns::COMMAND_SET_ACTIVE_NAMESPACES] {
        let (_, list) = pair.identify(other, 0, list);
        assert_eq!(&list[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    }
    let (_, controller) = pair.identify(other, 0, Cns::CONTROLLER);
    assert_eq!(controller[516], 1, "NN: as if there were one namespace");
    for cns in [
        Cns::NAMESPACE,
        Cns::NAMESPACE_ID_DESCRIPTORS,
        Cns::COMMAND_SET_NAMESPACE,
        Cns::COMMAND_SET_INDEPENDENT_NAMESPACE,
        Cns::ATTACHED_CONTROLLERS,
    ] {
        let (status, _) = pair.identify(other, 2, cns);
        assert_eq!(status, Status::INVALID_NAMESPACE_OR_FORMAT, "{cns:?}");
    }
    // Its own has identifiers below: the one that it has not is inactive, and all zero.
    let (status, inactive) = pair.identify(first, 1, Cns::NAMESPACE);
    assert_eq!((status, inactive), (Status::SUCCESS, vec![0; 4096]));
    let (_, controllers) = pair.identify(other, 0, Cns::CONTROLLERS);
    assert_eq!(controllers[0], 1, "only its own controller");
    let changed = AdminCommand::GetLogPage(GetLogPage::new(2, LogPageId::CHANGED_ZONES, 1024));
    let (status, _) = pair.admin(other, changed, 4096);
    assert_eq!(status, Status::INVALID_NAMESPACE_OR_FORMAT);
    for command in [
        AdminCommand::GetFeatures(GetFeatures::new(2, FeatureId::ERROR_RECOVERY)),
        AdminCommand::SetFeatures(SetFeatures::new(2, FeatureId::ERROR_RECOVERY, 0)),
    ] {
        let (status, _) = pair.admin(other, command, 0);
        assert_eq!(status, Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    // What others do shows in no count.
    let smart = || AdminCommand::GetLogPage(GetLogPage::new(0, LogPageId::SMART, 128));
    let (_, before) = pair.admin(other, smart(), 512);
    for lba in 0..8 {
        assert_eq!(
            pair.io(first, write(2, lba), Some(vec![1; BLOCK]), 0),
            Status::SUCCESS
        );
    }
    assert_eq!(
        pair.io(first, write(2, 0), Some(vec![1; BLOCK]), 0),
        Status::ZONE_INVALID_WRITE
    );
    let (_, after) = pair.admin(other, smart(), 512);
    assert_eq!(before, after);
    let (_, own) = pair.admin(first, smart(), 512);
    assert_eq!((own[80], own[176]), (8, 1), "write commands; errors");
}

#[test]
fn events_reach_the_hosts_that_have_the_namespace() {
    let mut pair = Pair::with(apart());
    let (first, other) = (pair.first, pair.other);
    for by in [first, other] {
        // Zone Descriptor Changed, namespace attributes, and the reliability of the media.
        let value = 1 << 27 | 1 << 8 | 1 << 2;
        let set = SetFeatures::new(0, FeatureId::ASYNC_EVENT_CONFIGURATION, value);
        let (status, _) = pair.admin(by, AdminCommand::SetFeatures(set), 0);
        assert_eq!(status, Status::SUCCESS);
    }
    let request = || {
        AdminCommand::AsynchronousEventRequest
            .to_entry()
            .expect("it fits")
    };
    let asked = pair.all.send(first.admin, request(), None, 0);
    let other_asked = pair.all.send(other.admin, request(), None, 0);
    let now = pair.all.now;
    let nsid = zonelab_device::NamespaceId(1);
    let failed = pair
        .all
        .subsystem
        .fail_zones(now, nsid, &[0..=0], ZoneState::OFFLINE);
    failed.expect("it can fail");
    pair.all.run(now.saturating_add(Nanos::from_ms(1)));
    assert!(pair.all.take(first.admin, asked).is_some());
    assert!(pair.all.take(other.admin, other_asked).is_none());
}

#[test]
fn what_may_be_read_may_not_be_changed() {
    let mut pair = Pair::with(vec![
        rules(HOST, &[(1, RW), (2, RW)]),
        rules(OTHER, &[(1, RO), (2, RW)]),
    ]);
    let (first, other) = (pair.first, pair.other);
    assert_eq!(
        pair.io(first, write(1, 0), Some(vec![5; BLOCK]), 0),
        Status::SUCCESS
    );
    assert_eq!(pair.io(other, read(1), None, BLOCK), Status::SUCCESS);
    assert_eq!(pair.io(other, report(1), None, 4096), Status::SUCCESS);
    let flush = IoCommand::Flush(Flush { nsid: 1 });
    assert_eq!(pair.io(other, flush, None, 0), Status::SUCCESS);
    let protected = Status::NAMESPACE_WRITE_PROTECTED;
    for (command, data) in changes() {
        assert_eq!(pair.io(other, command, data, 0), protected, "{command:?}");
    }
    // A Linux host makes a read-only disk of it.
    let (_, id) = pair.identify(other, 1, Cns::NAMESPACE);
    assert_eq!(id[99], 1, "NSATTR");
    let (_, id) = pair.identify(other, 2, Cns::NAMESPACE);
    assert_eq!(id[99], 0);
}

#[test]
fn destructive_commands_need_a_permission() {
    let mut pair = Pair::with(apart());
    let first = pair.first;
    let of = |action, select_all| {
        IoCommand::ZoneManagementSend(ZoneManagementSend {
            select_all,
            ..send(1, action)
        })
    };
    let denied = [
        of(ZoneSendAction::RESET, true),
        of(ZoneSendAction::FINISH, true),
        of(ZoneSendAction::OFFLINE, false),
    ];
    for command in denied {
        assert_eq!(pair.io(first, command, None, 0), Status::OPERATION_DENIED);
    }
    assert_eq!(
        pair.io(first, of(ZoneSendAction::RESET, false), None, 0),
        Status::SUCCESS
    );
    let format = || AdminCommand::FormatNvm(FormatNvm::new(1, 1));
    let (status, _) = pair.admin(first, format(), 0);
    assert_eq!(status, Status::INVALID_OPCODE);
    let (_, id) = pair.identify(first, 0, Cns::CONTROLLER);
    assert_eq!(id[256] & 1 << 1, 0, "OACS: no Format NVM");
    let effects = GetLogPage::new(0, LogPageId::COMMAND_EFFECTS, 1024);
    let (_, effects) = pair.admin(first, AdminCommand::GetLogPage(effects), 4096);
    assert_eq!(effects[0x80 * 4], 0);
    let mut may = rules(HOST, &[(1, RW), (2, RW)]);
    may.permissions = Permissions {
        format: true,
        all_zones: true,
        offline: true,
    };
    let now = pair.all.now;
    let changed = pair
        .all
        .subsystem
        .set_hosts(now, Some(vec![may, rules(OTHER, &[(2, RW)])]));
    changed.expect("they are possible");
    assert_eq!(
        pair.io(first, of(ZoneSendAction::RESET, true), None, 0),
        Status::SUCCESS
    );
    let (status, _) = pair.admin(first, format(), 0);
    assert_eq!(status, Status::SUCCESS);
}

#[test]
fn rules_that_are_not_possible_change_nothing() {
    let mut pair = Pair::with(apart());
    let mut formats = rules(HOST, &[(1, RW), (2, RO)]);
    formats.permissions.format = true;
    for (wrong, says) in [
        (vec![rules("host", &[(1, RW)])], "no NVMe qualified name"),
        (
            vec![rules(HOST, &[(1, RW)]), rules(HOST, &[(2, RW)])],
            "is listed twice; valid",
        ),
        (
            vec![rules(HOST, &[(3, RW)])],
            "namespaces: 3: the namespaces of this drive are 1 to 2",
        ),
        (vec![rules(HOST, &[(0, RW)])], "namespaces: 0"),
        (
            vec![rules(HOST, &[(1, RW), (1, RO)])],
            "each namespace once",
        ),
        (vec![rules(HOST, &[])], "at least one of 1 to 2"),
        (
            vec![formats],
            "may: format: a format empties the whole drive",
        ),
    ] {
        let now = pair.all.now;
        let error = pair
            .all
            .subsystem
            .set_hosts(now, Some(wrong))
            .expect_err("it is wrong");
        assert!(error.to_string().contains(says), "{error}");
        let is_named = matches!(&error, SettingsError::Rule { host, .. } if host == HOST);
        assert!(is_named || !says.contains(": "), "{error:?}");
    }
    let other = pair.other;
    assert_eq!(
        pair.io(other, read(1), None, BLOCK),
        Status::INVALID_NAMESPACE_OR_FORMAT
    );
}

#[test]
fn hosts_without_rules_are_let_in_no_more() {
    let mut pair = Pair::with(apart());
    let now = pair.all.now;
    pair.all
        .subsystem
        .set_hosts(now, Some(vec![rules(HOST, &[(2, RW)])]))
        .expect("possible");
    let mut done = Vec::new();
    pair.all
        .subsystem
        .advance(now, &mut done, &mut pair.all.closed);
    assert_eq!(pair.all.closed, [pair.other.admin, pair.other.io]);
    let mut data = connect_data(NQN, 0xffff);
    data.hostnqn = Nqn::new(OTHER).expect("it fits");
    let refused = connect(&mut pair.all.subsystem, now, Connect::new(0, 32), &data);
    let status = refused.expect_err("it has no rules").status.status();
    assert_eq!(status, FabricsStatus::CONNECT_INVALID_HOST.status());
    // Who stays finds other namespaces, and can read which.
    let first = pair.first;
    assert_eq!(
        pair.io(first, read(1), None, BLOCK),
        Status::INVALID_NAMESPACE_OR_FORMAT
    );
    assert_eq!(pair.io(first, read(2), None, BLOCK), Status::SUCCESS);
    let log = GetLogPage::new(0, LogPageId::CHANGED_NAMESPACES, 1024);
    let (_, changed) = pair.admin(first, AdminCommand::GetLogPage(log), 4096);
    assert_eq!(&changed[..12], [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
}

/// Rules with which [`OTHER`] gets so many operations per second.
fn bounded(per_s: u64) -> Vec<HostRules> {
    let mut hosts = apart();
    hosts[1].quality.operations_per_s = NonZeroU64::new(per_s);
    hosts
}

fn entries(nsid: u32) -> SubmissionEntry {
    read(nsid).to_entry().expect("it fits")
}

#[test]
fn a_host_gets_no_more_than_its_rate() {
    let mut pair = Pair::with(bounded(1000));
    let (start, other) = (pair.all.now, pair.other);
    let sent: Vec<u16> = (0..60)
        .map(|_| pair.all.send(other.io, entries(2), None, BLOCK))
        .collect();
    // Ten that it saved up, and one for each millisecond.
    let due = |pair: &mut Pair, cid| pair.all.take(other.io, cid).expect("it is done").due;
    pair.all.run(start.saturating_add(Nanos::from_secs(1)));
    let due: Vec<Nanos> = sent.into_iter().map(|cid| due(&mut pair, cid)).collect();
    for (n, at) in due.iter().enumerate() {
        let earliest = start + Nanos::from_ms(n as u64);
        let least = earliest.saturating_sub(BURST);
        let most = least.max(start) + Nanos::from_ms(1);
        assert!((least..most).contains(at), "read {n} of 60: {at:?}");
    }
}

#[test]
fn admin_commands_count_in_a_hosts_rate() {
    let identify = |nsid| {
        let identify = Identify::new(nsid, Cns::NAMESPACE, CommandSet::NVM);
        identify.to_entry().expect("it fits")
    };
    let smart = GetLogPage::new(0xffff_ffff, LogPageId::SMART, 512);
    let smart = smart.to_entry().expect("it fits");
    for entry in [identify(2), smart] {
        let mut pair = Pair::with(bounded(1000));
        let (start, other) = (pair.all.now, pair.other);
        // What waits of I/O is behind them.
        for _ in 0..40 {
            pair.all.send(other.io, entries(2), None, BLOCK);
        }
        let room = 4096;
        let sent: Vec<u16> = (0..60)
            .map(|_| pair.all.send(other.admin, entry, None, room))
            .collect();
        pair.all.run(start.saturating_add(Nanos::from_ms(200)));
        for (n, cid) in (10..).zip(sent) {
            let at = pair.all.take(other.admin, cid).expect("it is done").due;
            let least = (start + Nanos::from_ms(n)).saturating_sub(BURST);
            let most = least.max(start) + Nanos::from_ms(2);
            assert!((least..most).contains(&at), "command {n}: {at:?}");
        }
    }
}

#[test]
fn a_host_that_floods_starves_nobody() {
    let alone = victim_time(&[]);
    let beside = victim_time(&[64]);
    // What the other may have is one read in a millisecond, after its burst.
    assert!(
        beside <= alone + Nanos::from_ms(1),
        "{alone:?} alone, {beside:?} beside"
    );
}

/// How long 20 reads of [`HOST`] take, one after the other, while the other host has sent
/// so many.
fn victim_time(others: &[usize]) -> Nanos {
    let mut pair = Pair::with(bounded(1000));
    let (first, other) = (pair.first, pair.other);
    for count in others {
        for _ in 0..*count {
            pair.all.send(other.io, entries(2), None, BLOCK);
        }
    }
    let start = pair.all.now;
    for _ in 0..20 {
        let reply = pair.all.call(first.io, entries(1), None, BLOCK);
        assert_eq!(reply.status(), Status::SUCCESS);
    }
    pair.all.now - start
}

#[test]
fn commands_that_wait_end_with_their_queue_and_obey_new_rules() {
    let mut pair = Pair::with(bounded(1));
    let other = pair.other;
    let first: Vec<u16> = (0..3)
        .map(|_| pair.all.send(other.io, entries(2), None, BLOCK))
        .collect();
    pair.all
        .run(pair.all.now.saturating_add(Nanos::from_ms(50)));
    assert!(pair.all.take(other.io, first[0]).is_some());
    assert!(pair.all.take(other.io, first[1]).is_none());
    // A faster rate counts at once for what waits, and what it lost meanwhile fails.
    let mut hosts = apart();
    hosts[1].namespaces = vec![(1, RO)];
    let now = pair.all.now;
    pair.all
        .subsystem
        .set_hosts(now, Some(hosts))
        .expect("they are possible");
    let limit = pair.all.now.saturating_add(Nanos::from_secs(3));
    pair.all.run(limit);
    let reply = pair.all.take(other.io, first[1]).expect("it ends");
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
    let now = pair.all.now;
    pair.all
        .subsystem
        .set_hosts(now, Some(bounded(1)))
        .expect("they are possible");
    for _ in 0..3 {
        pair.all.send(other.io, entries(2), None, BLOCK);
    }
    pair.all.subsystem.disconnect(now, other.io);
    pair.all
        .run(pair.all.now.saturating_add(Nanos::from_secs(10)));
    assert_eq!(pair.all.subsystem.orphaned_bytes(), 0);
    assert_eq!(pair.all.subsystem.next_event(), None);
}
