//! What a controller finds of what happened before it was made.

use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, GetLogPage, IoCommand, Write};
use zonelab_nvme::fabrics::Connect;
use zonelab_nvme::log::{ErrorEntry, LogPageId, SmartLog};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::ChangedZoneList;

use crate::host::{HOST, Host, NQN, connect, connect_data, enabled};
use crate::hosts::{OTHER, Pair, RW, divided, rules};

/// A page of the admin queue that `host` has at present.
fn page(host: &mut Host, nsid: u32, lid: LogPageId, rae: bool, bytes: usize) -> Vec<u8> {
    let get = GetLogPage {
        rae,
        ..GetLogPage::new(nsid, lid, bytes as u64 / 4)
    };
    let reply = host.admin(AdminCommand::GetLogPage(get), bytes);
    reply.data().to_vec()
}

/// How many errors SMART counts, and the number of the newest in the error log.
fn errors(host: &mut Host) -> (u128, u64) {
    let smart = page(host, u32::MAX, LogPageId::SMART, false, 512);
    let smart = SmartLog::read_from_bytes(&smart).expect("it has 512 bytes");
    let newest = page(host, 0, LogPageId::ERROR_INFORMATION, false, 64);
    let newest = ErrorEntry::read_from_bytes(&newest).expect("it has 64 bytes");
    (smart.neile.get(), newest.errcnt.get())
}

fn changed_zones(host: &mut Host, nsid: u32, rae: bool) -> Vec<u64> {
    let list = page(host, nsid, LogPageId::CHANGED_ZONES, rae, 4096);
    let list = ChangedZoneList::read_from_bytes(&list).expect("it has 4096 bytes");
    let zones = list.zones().expect("there are few");
    zones.iter().map(|zone| zone.get()).collect()
}

/// A write that fails: it is not at the write pointer.
fn fail(host: &mut Host, nsid: u32) {
    let write = IoCommand::Write(Write::new(nsid, 3, 1));
    let reply = host.io(write, Some(vec![0; 4096]), 0);
    assert_eq!(reply.status(), Status::ZONE_INVALID_WRITE);
}

/// `host` goes on with a new controller; gives the admin queue of the one before.
fn connect_anew(host: &mut Host) -> zonelab_target::controller::QueueHandle {
    let before = host.admin;
    let data = connect_data(NQN, 0xffff);
    let of = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data);
    (host.admin, host.cntlid) = of.expect("it is let in");
    host.set_cc(enabled());
    before
}

#[test]
fn a_later_controller_finds_what_happened_before() {
    let mut host = Host::new();
    assert_eq!(errors(&mut host), (0, 0));
    for _ in 0..3 {
        fail(&mut host, 1);
    }
    host.subsystem.zone_changed(1, 160);
    let first = connect_anew(&mut host);
    assert_eq!(errors(&mut host), (3, 3));
    // What was retained is there for the next one too.
    assert_eq!(changed_zones(&mut host, 1, true), [160]);
    host.subsystem.zone_changed(1, 320);
    let second = connect_anew(&mut host);
    assert_eq!(changed_zones(&mut host, 1, false), [160, 320]);
    connect_anew(&mut host);
    assert!(changed_zones(&mut host, 1, false).is_empty());
    // Those that were there before have lists of their own.
    for earlier in [first, second] {
        host.admin = earlier;
        assert_eq!(changed_zones(&mut host, 1, false), [160, 320]);
        assert_eq!(errors(&mut host), (3, 3));
    }
}

#[test]
fn hosts_with_rules_find_their_own_past() {
    let apart = || vec![rules(HOST, &[(1, RW)]), rules(OTHER, &[(2, RW)])];
    let mut pair = Pair::on(&divided(), apart());
    let (first, other) = (pair.first, pair.other);
    (pair.all.admin, pair.all.io) = (other.admin, other.io);
    fail(&mut pair.all, 2);
    fail(&mut pair.all, 2);
    (pair.all.admin, pair.all.io) = (first.admin, first.io);
    fail(&mut pair.all, 1);
    pair.all.subsystem.zone_changed(1, 160);
    pair.all.subsystem.zone_changed(2, 320);
    // Rules that are read again change nothing of it.
    pair.set(apart());
    connect_anew(&mut pair.all);
    assert_eq!(errors(&mut pair.all), (1, 1));
    assert_eq!(changed_zones(&mut pair.all, 1, false), [160]);
    let get = GetLogPage::new(2, LogPageId::CHANGED_ZONES, 1024);
    let reply = pair.all.admin(AdminCommand::GetLogPage(get), 4096);
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
    pair.all.admin = other.admin;
    assert_eq!(errors(&mut pair.all), (2, 2));
    assert_eq!(changed_zones(&mut pair.all, 2, false), [320]);
}
