//! Reservation commands of several hosts, and what a reservation lets the others do.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, Compare, Flush, FormatNvm, GetFeatures, GetLogPage, Identify, IoCommand,
    Protection, Read, ReservationAcquire, ReservationRegister, ReservationRelease,
    ReservationReport, SetFeatures, Verify, Write, WriteZeroes, ZoneAppend, ZoneManagementReceive,
    ZoneManagementSend,
};
use zonelab_nvme::fabrics::Connect;
use zonelab_nvme::feature::{FeatureId, FeatureSelect};
use zonelab_nvme::identify::{Cns, CommandSet, Nqn};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::reservation::{
    AcquireAction, ChangePersistence, NotificationType, RegisterAction, Registrant,
    RegistrantExtended, ReleaseAction, ReservationNotification, ReservationStatus,
    ReservationStatusExtended, ReservationType,
};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::FaultPlan;
use zonelab_target::controller::{NamespaceAccess, Quality, QueueHandle};

use crate::host::{HOST, Host, NQN, Reply, connect, connect_data, enabled, small, with_faults};
use crate::hosts::{divided, rules};

const BLOCK: usize = 4096;
const KEYS: [u64; 3] = [0xa1, 0xb2, 0xc3];
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// Hosts A, B and C at one drive, with identifiers 1, 2 and 3 in each byte.
struct Hosts {
    all: Host,
    queues: Vec<(QueueHandle, QueueHandle)>,
}

/// A host with that identifier, connected and enabled; queues of admin and I/O.
fn join(all: &mut Host, hostid: [u8; 16], hostnqn: &str) -> (QueueHandle, QueueHandle) {
    let (now, before) = (all.now, all.admin);
    let mut data = connect_data(NQN, 0xffff);
    data.hostid = hostid;
    data.hostnqn = Nqn::new(hostnqn).expect("it fits");
    let of_admin = Connect::new(0, 32);
    let (admin, cntlid) = connect(&mut all.subsystem, now, of_admin, &data).expect("it is let in");
    all.admin = admin;
    all.set_cc(enabled());
    all.admin = before;
    data.cntlid = cntlid.into();
    let of_io = Connect::new(1, 64);
    let (io, _) = connect(&mut all.subsystem, all.now, of_io, &data).expect("it is let in");
    (admin, io)
}

impl Hosts {
    fn new() -> Self {
        Self::on(&small())
    }

    fn on(config: &DriveConfig) -> Self {
        let subsystem = with_faults(config, FaultPlan::default());
        let mut all = Host::admin_only(subsystem, Connect::new(0, 32));
        let name = |host: u8| format!("{HOST}-{host}");
        let queues = (1..=3).map(|host| join(&mut all, [host; 16], &name(host)));
        let queues = queues.collect();
        Self { all, queues }
    }

    fn io(&mut self, by: usize, command: IoCommand, data: Option<Vec<u8>>, room: usize) -> Reply {
        let entry = command.to_entry().expect("it fits");
        self.all.call(self.queues[by].1, entry, data, room)
    }

    fn admin(&mut self, by: usize, command: AdminCommand, room: usize) -> Reply {
        let entry = command.to_entry().expect("it fits");
        self.all.call(self.queues[by].0, entry, None, room)
    }

    fn register(&mut self, by: usize, command: ReservationRegister, keys: [u64; 2]) -> Status {
        let command = IoCommand::ReservationRegister(command);
        self.io(by, command, Some(bytes(&keys)), 0).status()
    }

    /// All three have their keys.
    fn register_all(&mut self) {
        for host in [A, B, C] {
            let status = self.register(host, register(RegisterAction::REGISTER), [0, KEYS[host]]);
            assert_eq!(status, Status::SUCCESS);
        }
    }

    fn acquire(&mut self, by: usize, command: ReservationAcquire, prkey: u64) -> Status {
        let command = IoCommand::ReservationAcquire(command);
        self.io(by, command, Some(bytes(&[KEYS[by], prkey])), 0)
            .status()
    }

    fn release(&mut self, by: usize, action: ReleaseAction, rtype: ReservationType) -> Status {
        let command = IoCommand::ReservationRelease(ReservationRelease {
            nsid: 1,
            rrela: action,
            iekey: false,
            rtype,
        });
        self.io(by, command, Some(bytes(&[KEYS[by]])), 0).status()
    }

    /// Type, generation, and of registrants the key and whether it holds the reservation.
    fn report(&mut self, by: usize) -> (u8, u32, Vec<(u64, bool)>) {
        let reply = self.io(by, report(1, 1024, true), None, 1024);
        let data = reply.data();
        let (head, rest) = ReservationStatusExtended::read_from_prefix(data).expect("it fits");
        let entries = rest.chunks(64).take(head.status.regstrnt.get().into());
        let of = |bytes: &[u8]| {
            let entry = RegistrantExtended::read_from_bytes(bytes).expect("it has its length");
            (entry.rkey.get(), entry.rcsts.is_holder())
        };
        let status = head.status;
        (
            status.rtype.0,
            status.generation.get(),
            entries.map(of).collect(),
        )
    }

    /// The oldest notification of a host.
    fn notification(&mut self, by: usize) -> (u64, NotificationType, u8, u32) {
        let get = GetLogPage::new(0, LogPageId::RESERVATION_NOTIFICATION, 16);
        let reply = self.admin(by, AdminCommand::GetLogPage(get), 64);
        let page = ReservationNotification::read_from_bytes(reply.data()).expect("64 bytes");
        (page.lpc.get(), page.rnlpt, page.nalp, page.nsid.get())
    }
}

fn bytes(keys: &[u64]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_le_bytes()).collect()
}

fn register(action: RegisterAction) -> ReservationRegister {
    ReservationRegister {
        nsid: 1,
        rrega: action,
        iekey: false,
        cptpl: ChangePersistence::NO_CHANGE,
    }
}

fn acquire(action: AcquireAction, rtype: ReservationType) -> ReservationAcquire {
    ReservationAcquire {
        nsid: 1,
        racqa: action,
        iekey: false,
        rtype,
    }
}

fn report(nsid: u32, room: u64, eds: bool) -> IoCommand {
    let numd = room / 4;
    IoCommand::ReservationReport(ReservationReport { nsid, numd, eds })
}

const TAKE: AcquireAction = AcquireAction::ACQUIRE;

/// Each command of the groups of the specification: how it begins, its data and its room.
fn reads() -> Vec<(IoCommand, Option<Vec<u8>>, usize)> {
    let (nsid, slba, nlb, lr, fua) = (1, 0, 1, false, false);
    let protection = Protection::default();
    let compare = Compare {
        nsid,
        slba,
        nlb,
        lr,
        fua,
        protection,
    };
    let verify = Verify {
        nsid,
        slba,
        nlb,
        lr,
        fua,
        protection,
    };
    let zones = ZoneManagementReceive::new(1, 0, 64);
    vec![
        (IoCommand::Read(Read::new(1, 0, 1)), None, BLOCK),
        (IoCommand::Compare(compare), Some(vec![0; BLOCK]), 0),
        (IoCommand::Verify(verify), None, 0),
        (IoCommand::ZoneManagementReceive(zones), None, 256),
    ]
}

fn writes() -> Vec<(IoCommand, Option<Vec<u8>>, usize)> {
    let reset = ZoneManagementSend::new(1, 800, ZoneSendAction::RESET);
    let zeroes = WriteZeroes::new(1, 640, 1);
    let block = || Some(vec![1; BLOCK]);
    vec![
        (IoCommand::Write(Write::new(1, 160, 1)), block(), 0),
        (
            IoCommand::ZoneAppend(ZoneAppend::new(1, 320, 1)),
            block(),
            0,
        ),
        (IoCommand::WriteZeroes(zeroes), None, 0),
        (IoCommand::ZoneManagementSend(reset), None, 0),
        (IoCommand::Flush(Flush { nsid: 1 }), None, 0),
    ]
}

/// Of the commands of a host, how many a reservation refuses; any other status is no matter.
fn conflicts(hosts: &mut Hosts, by: usize, all: Vec<(IoCommand, Option<Vec<u8>>, usize)>) -> usize {
    let conflict = |(command, data, room)| {
        hosts.io(by, command, data, room).status() == Status::RESERVATION_CONFLICT
    };
    all.into_iter().map(conflict).filter(|is| *is).count()
}

#[test]
fn each_type_lets_each_host_do_what_the_table_says() {
    let (reads_of, writes_of) = (reads().len(), writes().len());
    // By type: conflicts of a registrant and of a host that is none.
    let table = [
        (1, (0, writes_of), (0, writes_of)),
        (2, (reads_of, writes_of), (reads_of, writes_of)),
        (3, (0, 0), (0, writes_of)),
        (4, (0, 0), (reads_of, writes_of)),
        (5, (0, 0), (0, writes_of)),
        (6, (0, 0), (reads_of, writes_of)),
    ];
    for (rtype, registrant, other) in table {
        let mut hosts = Hosts::new();
        for host in [A, B] {
            hosts.register(host, register(RegisterAction::REGISTER), [0, KEYS[host]]);
        }
        let rtype = ReservationType(rtype);
        assert_eq!(hosts.acquire(A, acquire(TAKE, rtype), 0), Status::SUCCESS);
        for (by, expected) in [(A, (0, 0)), (B, registrant), (C, other)] {
            let found = (
                conflicts(&mut hosts, by, reads()),
                conflicts(&mut hosts, by, writes()),
            );
            assert_eq!(found, expected, "host {by}, {rtype}");
        }
        // Format NVM is a write; admin commands about nothing in particular are not.
        let format = AdminCommand::FormatNvm(FormatNvm::new(1, 1));
        let reply = hosts.admin(C, format, 0);
        assert_eq!(reply.status(), Status::RESERVATION_CONFLICT, "{rtype}");
        let identify = Identify::new(1, Cns::NAMESPACE, CommandSet::NVM);
        let reply = hosts.admin(C, AdminCommand::Identify(identify), BLOCK);
        assert_eq!(reply.status(), Status::SUCCESS);
        assert_eq!(
            hosts.release(A, ReleaseAction::RELEASE, rtype),
            Status::SUCCESS
        );
        assert_eq!(conflicts(&mut hosts, C, writes()), 0, "{rtype}");
    }
}

#[test]
fn a_format_of_all_namespaces_needs_all_of_them() {
    let mut hosts = Hosts::on(&divided());
    let second = |command: ReservationRegister| ReservationRegister { nsid: 2, ..command };
    hosts.register(A, second(register(RegisterAction::REGISTER)), [0, KEYS[A]]);
    let take = ReservationAcquire {
        nsid: 2,
        ..acquire(TAKE, ReservationType::WRITE_EXCLUSIVE)
    };
    assert_eq!(hosts.acquire(A, take, 0), Status::SUCCESS);
    let write = |nsid| IoCommand::Write(Write::new(nsid, 0, 1));
    let block = Some(vec![0; BLOCK]);
    assert_eq!(
        hosts.io(B, write(1), block.clone(), 0).status(),
        Status::SUCCESS
    );
    let refused = hosts.io(B, write(2), block, 0);
    assert_eq!(refused.status(), Status::RESERVATION_CONFLICT);
    assert!(refused.entry.status.dnr());
    let format = AdminCommand::FormatNvm(FormatNvm::new(1, 1));
    assert_eq!(
        hosts.admin(B, format, 0).status(),
        Status::RESERVATION_CONFLICT
    );
    assert_eq!(hosts.admin(A, format, 0).status(), Status::SUCCESS);
    // The format leaves the reservation.
    let reply = hosts.io(B, write(2), Some(vec![0; BLOCK]), 0);
    assert_eq!(reply.status(), Status::RESERVATION_CONFLICT);
}

#[test]
fn keys_are_registered_replaced_and_taken_back() {
    let mut hosts = Hosts::new();
    let (new, replace, gone) = (
        register(RegisterAction::REGISTER),
        register(RegisterAction::REPLACE),
        register(RegisterAction::UNREGISTER),
    );
    let ignored = |command: ReservationRegister| ReservationRegister {
        iekey: true,
        ..command
    };
    let conflict = Status::RESERVATION_CONFLICT;
    assert_eq!(hosts.register(A, new, [0, 1]), Status::SUCCESS);
    assert_eq!(hosts.register(A, new, [0, 1]), Status::SUCCESS);
    assert_eq!(hosts.register(A, new, [0, 2]), conflict);
    assert_eq!(hosts.register(A, replace, [2, 3]), conflict);
    assert_eq!(hosts.register(A, replace, [1, 3]), Status::SUCCESS);
    assert_eq!(hosts.register(B, replace, [0, 3]), conflict);
    assert_eq!(hosts.register(B, ignored(replace), [0, 3]), Status::SUCCESS);
    assert_eq!(hosts.register(B, gone, [1, 0]), conflict);
    assert_eq!(hosts.report(C), (0, 4, vec![(3, false), (3, false)]));
    assert_eq!(hosts.register(B, ignored(gone), [1, 0]), Status::SUCCESS);
    assert_eq!(hosts.register(B, ignored(gone), [1, 0]), conflict);
    assert_eq!(hosts.register(C, new, [0, 0]), Status::INVALID_FIELD);
    let other = register(RegisterAction(3));
    assert_eq!(hosts.register(C, other, [0, 1]), Status::INVALID_FIELD);
    for cptpl in [1, 3] {
        let cptpl = ChangePersistence(cptpl);
        let command = ReservationRegister { cptpl, ..new };
        // Nothing keeps it here.
        assert_eq!(hosts.register(C, command, [0, 1]), Status::INVALID_FIELD);
    }
    assert_eq!(hosts.report(C), (0, 5, vec![(3, false)]));
    let short = IoCommand::ReservationRegister(new);
    let reply = hosts.io(C, short, Some(vec![0; 8]), 0);
    assert_eq!(reply.status(), Status::DATA_SGL_LENGTH_INVALID);
    let nowhere = IoCommand::ReservationRegister(ReservationRegister { nsid: 2, ..new });
    let reply = hosts.io(C, nowhere, Some(vec![1; 16]), 0);
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
}

#[test]
fn one_host_acquires_and_gives_back() {
    let mut hosts = Hosts::new();
    let (one, other) = (
        ReservationType::WRITE_EXCLUSIVE,
        ReservationType::EXCLUSIVE_ACCESS,
    );
    let conflict = Status::RESERVATION_CONFLICT;
    assert_eq!(hosts.acquire(A, acquire(TAKE, one), 0), conflict);
    hosts.register_all();
    assert_eq!(hosts.acquire(A, acquire(TAKE, one), 0), Status::SUCCESS);
    assert_eq!(hosts.acquire(A, acquire(TAKE, one), 0), Status::SUCCESS);
    assert_eq!(hosts.acquire(A, acquire(TAKE, other), 0), conflict);
    assert_eq!(hosts.acquire(B, acquire(TAKE, one), 0), conflict);
    let held = vec![(KEYS[A], true), (KEYS[B], false), (KEYS[C], false)];
    assert_eq!(hosts.report(B), (1, 3, held));
    // Who holds nothing releases nothing, and no other type is released.
    assert_eq!(
        hosts.release(B, ReleaseAction::RELEASE, one),
        Status::SUCCESS
    );
    let wrong = hosts.release(A, ReleaseAction::RELEASE, other);
    assert_eq!(wrong, Status::INVALID_FIELD);
    assert_eq!(hosts.report(B).0, 1);
    assert_eq!(
        hosts.release(A, ReleaseAction::RELEASE, one),
        Status::SUCCESS
    );
    assert_eq!(hosts.report(B).0, 0);
    for rtype in [0, 7] {
        let none = acquire(TAKE, ReservationType(rtype));
        assert_eq!(hosts.acquire(A, none, 0), Status::INVALID_FIELD);
    }
    let ignores = ReservationAcquire {
        iekey: true,
        ..acquire(TAKE, one)
    };
    assert_eq!(hosts.acquire(A, ignores, 0), Status::INVALID_FIELD);
    let all = ReservationType::WRITE_EXCLUSIVE_ALL_REGISTRANTS;
    assert_eq!(hosts.acquire(C, acquire(TAKE, all), 0), Status::SUCCESS);
    assert!(hosts.report(B).2.iter().all(|(_, is_holder)| *is_holder));
    assert_eq!(
        hosts.release(B, ReleaseAction::RELEASE, all),
        Status::SUCCESS
    );
    assert_eq!(hosts.report(B).0, 0);
}

#[test]
fn a_preempted_host_is_told_and_shut_out() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let rtype = ReservationType::WRITE_EXCLUSIVE_REGISTRANTS_ONLY;
    hosts.acquire(A, acquire(TAKE, rtype), 0);
    let event = AdminCommand::AsynchronousEventRequest.to_entry().unwrap();
    let cid = hosts.all.send(hosts.queues[A].0, event, None, 0);
    let preempt = acquire(AcquireAction::PREEMPT, ReservationType::EXCLUSIVE_ACCESS);
    let unknown = hosts.acquire(B, preempt, 0xff);
    assert_eq!(unknown, Status::RESERVATION_CONFLICT);
    assert_eq!(hosts.acquire(B, preempt, 0), Status::INVALID_FIELD);
    assert_eq!(hosts.acquire(B, preempt, KEYS[A]), Status::SUCCESS);
    assert_eq!(
        hosts.report(A),
        (2, 4, vec![(KEYS[B], true), (KEYS[C], false)])
    );
    let told = hosts.all.wait(hosts.queues[A].0, cid);
    assert_eq!(told.entry.result(), 0x0080_0006, "type 6, log page 80h");
    let preempted = NotificationType::REGISTRATION_PREEMPTED;
    assert_eq!(hosts.notification(A), (1, preempted, 0, 1));
    let empty = (0, NotificationType::EMPTY, 0, 0);
    assert_eq!(hosts.notification(A), empty);
    let released = NotificationType::RESERVATION_RELEASED;
    assert_eq!(hosts.notification(C), (1, released, 0, 1));
    assert_eq!(hosts.notification(B), empty);
    assert_eq!(conflicts(&mut hosts, A, reads()), reads().len());
    assert_eq!(
        hosts.release(B, ReleaseAction::CLEAR, ReservationType::NONE),
        Status::SUCCESS
    );
    assert_eq!(hosts.report(A), (0, 5, vec![]));
    let cleared = NotificationType::RESERVATION_PREEMPTED;
    assert_eq!(hosts.notification(C), (2, cleared, 0, 1));
}

#[test]
fn notifications_queue_up_and_have_a_mask() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let rtype = ReservationType::EXCLUSIVE_ACCESS_REGISTRANTS_ONLY;
    let mask = |value| {
        let set = SetFeatures::new(1, FeatureId::RESERVATION_NOTIFICATION_MASK, value);
        AdminCommand::SetFeatures(set)
    };
    // Released.
    assert_eq!(hosts.admin(C, mask(1 << 2), 0).status(), Status::SUCCESS);
    let get = GetFeatures::new(1, FeatureId::RESERVATION_NOTIFICATION_MASK);
    let get = AdminCommand::GetFeatures(get);
    assert_eq!(hosts.admin(C, get, 0).entry.result(), 1 << 2);
    assert_eq!(hosts.admin(B, get, 0).entry.result(), 0);
    for _ in 0..70 {
        hosts.acquire(A, acquire(TAKE, rtype), 0);
        hosts.release(A, ReleaseAction::RELEASE, rtype);
    }
    assert_eq!(hosts.notification(C).1, NotificationType::EMPTY);
    let released = NotificationType::RESERVATION_RELEASED;
    // What finds no room leaves a gap in the numbers.
    for number in 1..=64_u64 {
        let left = 64 - number as u8;
        assert_eq!(hosts.notification(B), (number, released, left, 1));
    }
    assert_eq!(hosts.notification(B).1, NotificationType::EMPTY);
    hosts.release(A, ReleaseAction::CLEAR, rtype);
    let cleared = NotificationType::RESERVATION_PREEMPTED;
    assert_eq!(hosts.notification(B), (71, cleared, 0, 1));
    assert_eq!(hosts.notification(C), (1, cleared, 0, 1));
    let nowhere = GetFeatures::new(u32::MAX, FeatureId::RESERVATION_NOTIFICATION_MASK);
    let reply = hosts.admin(C, AdminCommand::GetFeatures(nowhere), 0);
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
}

#[test]
fn preempt_and_abort_waits_for_what_is_in_flight() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let rtype = ReservationType::WRITE_EXCLUSIVE;
    hosts.acquire(A, acquire(TAKE, rtype), 0);
    let write = IoCommand::Write(Write::new(1, 0, 4)).to_entry().unwrap();
    let written = hosts
        .all
        .send(hosts.queues[A].1, write, Some(vec![7; 4 * BLOCK]), 0);
    let read = IoCommand::Read(Read::new(1, 160, 1)).to_entry().unwrap();
    let of_another = hosts.all.send(hosts.queues[C].1, read, None, BLOCK);
    let command = acquire(AcquireAction::PREEMPT_AND_ABORT, rtype);
    let entry = IoCommand::ReservationAcquire(command).to_entry().unwrap();
    let data = bytes(&[KEYS[B], KEYS[A]]);
    let taken = hosts.all.send(hosts.queues[B].1, entry, Some(data), 0);
    let taken = hosts.all.wait(hosts.queues[B].1, taken);
    assert_eq!(taken.status(), Status::SUCCESS);
    let written = hosts.all.wait(hosts.queues[A].1, written);
    assert_eq!(written.status(), Status::SUCCESS);
    assert!(written.due > Nanos::ZERO && taken.due >= written.due);
    let of_another = hosts.all.wait(hosts.queues[C].1, of_another);
    assert_eq!(of_another.status(), Status::SUCCESS);
    assert_eq!(hosts.report(B).2, [(KEYS[B], true), (KEYS[C], false)]);
    // With nothing in flight it does not wait, and a plain preemption never does.
    let back = hosts.register(A, register(RegisterAction::REGISTER), [0, KEYS[A]]);
    assert_eq!(back, Status::SUCCESS);
    assert_eq!(hosts.acquire(A, command, KEYS[B]), Status::SUCCESS);
}

#[test]
fn a_preemption_outlives_the_queue_that_asked_for_it() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let rtype = ReservationType::WRITE_EXCLUSIVE;
    hosts.acquire(A, acquire(TAKE, rtype), 0);
    let write = IoCommand::Write(Write::new(1, 0, 4)).to_entry().unwrap();
    let written = hosts
        .all
        .send(hosts.queues[A].1, write, Some(vec![7; 4 * BLOCK]), 0);
    let command = acquire(AcquireAction::PREEMPT_AND_ABORT, rtype);
    let entry = IoCommand::ReservationAcquire(command).to_entry().unwrap();
    let data = bytes(&[KEYS[B], KEYS[A]]);
    hosts.all.send(hosts.queues[B].1, entry, Some(data), 0);
    let now = hosts.all.now;
    hosts.all.subsystem.disconnect(now, hosts.queues[B].1);
    let written = hosts.all.wait(hosts.queues[A].1, written);
    assert_eq!(written.status(), Status::SUCCESS);
    assert_eq!(hosts.report(C).2, [(KEYS[B], true), (KEYS[C], false)]);
    assert_eq!(hosts.all.subsystem.in_drive(), 0);
}

#[test]
fn a_report_is_as_long_as_it_is_asked_for_and_of_the_width_of_the_host() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let short = hosts.io(A, report(1, 24, false), None, 24);
    assert_eq!(short.status(), Status::HOST_ID_INCONSISTENT_FORMAT);
    let whole = hosts
        .io(A, report(1, 4096, true), None, 4096)
        .data()
        .to_vec();
    let (head, rest) = ReservationStatusExtended::read_from_prefix(&whole).unwrap();
    assert_eq!((head.status.regstrnt.get(), head.status.ptpls), (3, 0));
    let second = RegistrantExtended::read_from_bytes(&rest[64..128]).unwrap();
    assert_eq!((second.hostid, second.rkey.get()), ([2; 16], KEYS[B]));
    // The first controller is of another host.
    assert_eq!(second.cntlid.get(), 3);
    assert!(rest[192..].iter().all(|byte| *byte == 0));
    let part = hosts.io(A, report(1, 80, true), None, 80).data().to_vec();
    assert_eq!(part, whole[..80]);
    // A registrant that has gone away is still one.
    let (now, admin) = (hosts.all.now, hosts.queues[B].0);
    hosts.all.subsystem.disconnect(now, admin);
    let whole = hosts
        .io(A, report(1, 4096, true), None, 4096)
        .data()
        .to_vec();
    let second = RegistrantExtended::read_from_bytes(&whole[128..192]).unwrap();
    assert_eq!((second.cntlid.get(), second.rkey.get()), (0xffff, KEYS[B]));
}

#[test]
fn a_host_without_an_identifier_says_one_of_64_bits_or_has_no_reservations() {
    let subsystem = with_faults(&small(), FaultPlan::default());
    let mut all = Host::admin_only(subsystem, Connect::new(0, 32));
    // The host that stays is of 128 bits: it goes first.
    let (now, first) = (all.now, all.admin);
    let queues = vec![join(&mut all, [0; 16], HOST)];
    all.subsystem.disconnect(now, first);
    let mut hosts = Hosts { all, queues };
    let new = register(RegisterAction::REGISTER);
    let status = hosts.register(A, new, [0, KEYS[A]]);
    assert_eq!(status, Status::HOST_IDENTIFIER_NOT_INITIALIZED);
    let set = SetFeatures::new(0, FeatureId::HOST_IDENTIFIER, 0);
    let entry = AdminCommand::SetFeatures(set).to_entry().unwrap();
    let admin = hosts.queues[A].0;
    let data = Some(0x1234_u64.to_le_bytes().to_vec());
    let reply = hosts.all.call(admin, entry, data.clone(), 0);
    assert_eq!(reply.status(), Status::SUCCESS);
    let again = hosts.all.call(admin, entry, data, 0);
    assert_eq!(again.status(), Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(hosts.register(A, new, [0, KEYS[A]]), Status::SUCCESS);
    let rtype = ReservationType::EXCLUSIVE_ACCESS;
    assert_eq!(hosts.acquire(A, acquire(TAKE, rtype), 0), Status::SUCCESS);
    let extended = hosts.io(A, report(1, 128, true), None, 128);
    assert_eq!(extended.status(), Status::HOST_ID_INCONSISTENT_FORMAT);
    let reply = hosts.io(A, report(1, 48, false), None, 48);
    let (head, rest) = ReservationStatus::read_from_prefix(reply.data()).unwrap();
    assert_eq!((head.rtype, head.regstrnt.get()), (rtype, 1));
    let entry = Registrant::read_from_bytes(rest).unwrap();
    assert_eq!((entry.hostid.get(), entry.rkey.get()), (0x1234, KEYS[A]));
    assert!(entry.rcsts.is_holder());
    // A host of the other width can neither join nor read, and is shut out.
    let wide = join(&mut hosts.all, [9; 16], HOST);
    hosts.queues.push(wide);
    let status = hosts.register(B, new, [0, KEYS[B]]);
    assert_eq!(status, Status::HOST_ID_INCONSISTENT_FORMAT);
    let reply = hosts.io(B, report(1, 4096, true), None, 4096);
    assert_eq!(reply.status(), Status::HOST_ID_INCONSISTENT_FORMAT);
    assert_eq!(conflicts(&mut hosts, B, reads()), reads().len());
}

#[test]
fn hosts_keep_their_limits() {
    let config = divided();
    let mut hosts = Hosts::on(&config);
    let name = |host: u8| format!("{HOST}-{host}");
    let both = [
        (1, NamespaceAccess::ReadWrite),
        (2, NamespaceAccess::ReadWrite),
    ];
    let slow = Quality {
        operations_per_s: core::num::NonZeroU64::new(1),
        ..Quality::default()
    };
    let mut limited = rules(&name(3), &[(1, NamespaceAccess::ReadWrite)]);
    limited.quality = slow;
    let set = vec![
        rules(&name(1), &both),
        rules(&name(2), &[(1, NamespaceAccess::ReadOnly)]),
        limited,
    ];
    let now = hosts.all.now;
    hosts
        .all
        .subsystem
        .set_hosts(now, Some(set))
        .expect("they are possible");
    let new = register(RegisterAction::REGISTER);
    assert_eq!(hosts.register(A, new, [0, KEYS[A]]), Status::SUCCESS);
    let status = hosts.register(B, new, [0, KEYS[B]]);
    assert_eq!(status, Status::NAMESPACE_WRITE_PROTECTED);
    let persist = SetFeatures::new(1, FeatureId::RESERVATION_PERSISTENCE, 0);
    let reply = hosts.admin(B, AdminCommand::SetFeatures(persist), 0);
    assert_eq!(reply.status(), Status::NAMESPACE_WRITE_PROTECTED);
    assert_eq!(hosts.report(B).2, [(KEYS[A], false)]);
    let elsewhere = IoCommand::ReservationRegister(ReservationRegister { nsid: 2, ..new });
    let reply = hosts.io(B, elsewhere, Some(vec![1; 16]), 0);
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
    // Beyond its rate a host waits, whatever it asks for; preempted, what waits ends.
    let entry = IoCommand::ReservationRegister(new).to_entry().unwrap();
    let queue = hosts.queues[C].1;
    let data = bytes(&[0, KEYS[C]]);
    let registered = hosts.all.send(queue, entry, Some(data), 0);
    hosts.all.run(now);
    let registered = hosts
        .all
        .take(queue, registered)
        .expect("the first one goes at once");
    assert_eq!(registered.status(), Status::SUCCESS);
    let read = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
    let reads: Vec<u16> = (0..3)
        .map(|_| hosts.all.send(queue, read, None, BLOCK))
        .collect();
    let command = acquire(
        AcquireAction::PREEMPT_AND_ABORT,
        ReservationType::EXCLUSIVE_ACCESS,
    );
    assert_eq!(hosts.acquire(A, command, KEYS[C]), Status::SUCCESS);
    let last = hosts.all.wait(queue, reads[2]);
    assert_eq!(last.status(), Status::ABORTED_PREEMPT);
}

#[test]
fn a_loss_of_power_ends_what_is_not_kept() {
    let mut hosts = Hosts::new();
    hosts.register_all();
    let rtype = ReservationType::EXCLUSIVE_ACCESS;
    hosts.acquire(A, acquire(TAKE, rtype), 0);
    let get = GetFeatures::new(1, FeatureId::RESERVATION_PERSISTENCE);
    let reply = hosts.admin(A, AdminCommand::GetFeatures(get), 0);
    assert_eq!((reply.status(), reply.entry.result()), (Status::SUCCESS, 0));
    let supported = GetFeatures {
        sel: FeatureSelect::SUPPORTED_CAPABILITIES,
        ..get
    };
    let reply = hosts.admin(A, AdminCommand::GetFeatures(supported), 0);
    assert_eq!(reply.entry.result(), 0b110, "changeable, of a namespace");
    let set = SetFeatures::new(1, FeatureId::RESERVATION_PERSISTENCE, 1);
    let reply = hosts.admin(A, AdminCommand::SetFeatures(set), 0);
    assert_eq!(
        reply.status(),
        Status::INVALID_FIELD,
        "nothing keeps it here"
    );
    let now = hosts.all.now;
    hosts.all.subsystem.power_cut(now, Nanos::ZERO);
    hosts.all.run(now);
    let again = join(&mut hosts.all, [9; 16], HOST);
    hosts.queues = vec![again];
    assert_eq!(hosts.report(A), (0, 0, vec![]));
}
