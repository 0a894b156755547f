//! Asynchronous events and the logs behind them.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{Abort, AdminCommand, FormatNvm, GetLogPage, IoCommand, Write};
use zonelab_nvme::fabrics::Connect;
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::ChangedZoneList;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

use crate::host::{Host, NQN, Reply, connect, connect_data, enabled, small, with_faults};

const ZONES: u32 = 1 << 27;
const NAMESPACES: u32 = 1 << 8;

fn request(host: &mut Host) -> u16 {
    let entry = AdminCommand::AsynchronousEventRequest
        .to_entry()
        .expect("it has no fields");
    host.send(host.admin, entry, None, 0)
}

fn log(host: &mut Host, nsid: u32, lid: LogPageId, rae: bool) -> Reply {
    let get = GetLogPage {
        rae,
        ..GetLogPage::new(nsid, lid, 1024)
    };
    host.admin(AdminCommand::GetLogPage(get), 4096)
}

fn event(host: &mut Host, cid: u16) -> Option<u64> {
    host.run(host.now);
    host.take(host.admin, cid).map(|reply| {
        assert_eq!(reply.status(), Status::SUCCESS);
        reply.entry.result()
    })
}

/// Type 2, information EFh, log BFh; namespace 1.
const ZONE_EVENT: u64 = 1 << 32 | 0x00bf_ef02;

#[test]
fn a_zone_that_fails_is_told_once_until_its_log_is_read() {
    let mut host = Host::new();
    super::admin::set(&mut host, FeatureId::ASYNC_EVENT_CONFIGURATION, ZONES);
    let first = request(&mut host);
    assert_eq!(event(&mut host, first), None);
    host.subsystem.zone_changed(1, 160);
    assert_eq!(event(&mut host, first), Some(ZONE_EVENT));
    // Masked: the list grows, and nothing is told.
    let second = request(&mut host);
    host.subsystem.zone_changed(1, 320);
    host.subsystem.zone_changed(1, 160);
    assert_eq!(event(&mut host, second), None);
    let retained = log(&mut host, 1, LogPageId::CHANGED_ZONES, true);
    assert_eq!(retained.data()[0], 2);
    assert_eq!(&retained.data()[8..10], 160_u16.to_le_bytes());
    assert_eq!(&retained.data()[16..18], 320_u16.to_le_bytes());
    host.subsystem.zone_changed(1, 480);
    assert_eq!(event(&mut host, second), None);
    assert_eq!(
        log(&mut host, 1, LogPageId::CHANGED_ZONES, false).data()[0],
        3
    );
    assert_eq!(
        log(&mut host, 1, LogPageId::CHANGED_ZONES, false).data()[0],
        0
    );
    host.subsystem.zone_changed(1, 640);
    assert_eq!(event(&mut host, second), Some(ZONE_EVENT));
}

#[test]
fn an_event_waits_for_a_request_and_is_told_only_if_it_is_enabled() {
    let mut host = Host::new();
    host.subsystem.zone_changed(1, 0);
    let cid = request(&mut host);
    assert_eq!(event(&mut host, cid), None);
    super::admin::set(&mut host, FeatureId::ASYNC_EVENT_CONFIGURATION, ZONES);
    host.subsystem.zone_changed(1, 160);
    assert_eq!(event(&mut host, cid), Some(ZONE_EVENT));
    let _ = log(&mut host, 1, LogPageId::CHANGED_ZONES, false);
    host.subsystem.zone_changed(1, 0);
    let cid = request(&mut host);
    assert_eq!(event(&mut host, cid), Some(ZONE_EVENT));
}

#[test]
fn too_many_changed_zones_are_not_listed() {
    let mut host = Host::new();
    for zone in 0..511 {
        host.subsystem.zone_changed(1, zone);
    }
    let list = log(&mut host, 1, LogPageId::CHANGED_ZONES, true);
    assert_eq!(&list.data()[..2], 511_u16.to_le_bytes());
    host.subsystem.zone_changed(1, 511);
    let list = log(&mut host, 1, LogPageId::CHANGED_ZONES, true);
    assert_eq!(&list.data()[..2], [0xff; 2]);
    assert!(list.data()[8..].iter().all(|byte| *byte == 0));
    let reply = log(&mut host, 2, LogPageId::CHANGED_ZONES, true);
    assert_eq!(reply.status(), Status::INVALID_NAMESPACE_OR_FORMAT);
}

#[test]
fn requests_have_a_limit_and_can_be_aborted() {
    let mut host = Host::new();
    let requests: Vec<u16> = (0..4).map(|_| request(&mut host)).collect();
    let fifth = request(&mut host);
    let refused = host.wait(host.admin, fifth);
    assert_eq!(refused.status(), Status::AER_LIMIT_EXCEEDED);
    assert!(refused.entry.status.may_retry());
    let abort = |cid| AdminCommand::Abort(Abort { sqid: 0, cid });
    let reply = host.admin(abort(requests[2]), 0);
    assert_eq!((reply.status(), reply.entry.result()), (Status::SUCCESS, 0));
    let aborted = host.take(host.admin, requests[2]).unwrap();
    assert_eq!(aborted.status(), Status::ABORT_REQUESTED);
    // It is over, and so is a command that never was.
    assert_eq!(host.admin(abort(requests[2]), 0).entry.result(), 1);
    let write = IoCommand::Write(Write::new(1, 0, 1)).to_entry().unwrap();
    let cid = host.send(host.io, write, Some(vec![0; 4096]), 0);
    let command = AdminCommand::Abort(Abort { sqid: 1, cid });
    assert_eq!(host.admin(command, 0).entry.result(), 1);
    assert_eq!(host.wait(host.io, cid).status(), Status::SUCCESS);
    request(&mut host);
}

#[test]
fn a_format_is_told_to_the_others() {
    let mut host = Host::new();
    let (admin, io, cntlid) = (host.admin, host.io, host.cntlid);
    let data = connect_data(NQN, 0xffff);
    let second = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data).unwrap();
    (host.admin, host.cntlid) = second;
    host.set_cc(enabled());
    super::admin::set(&mut host, FeatureId::ASYNC_EVENT_CONFIGURATION, NAMESPACES);
    let cid = request(&mut host);
    (host.admin, host.io, host.cntlid) = (admin, io, cntlid);
    let own = request(&mut host);
    let format = host.admin(AdminCommand::FormatNvm(FormatNvm::new(1, 0)), 0);
    assert_eq!(format.status(), Status::SUCCESS);
    assert_eq!(event(&mut host, own), None);
    host.admin = second.0;
    assert_eq!(event(&mut host, cid), Some(0x0004_0002));
    let list = log(&mut host, u32::MAX, LogPageId::CHANGED_NAMESPACES, false);
    assert_eq!(&list.data()[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    let list = log(&mut host, u32::MAX, LogPageId::CHANGED_NAMESPACES, false);
    assert_eq!(list.data()[0], 0);
}

#[test]
fn a_write_that_takes_its_zone_away_is_an_event() {
    let mut plan = FaultPlan::default();
    plan.faults.push(super::admin::fault(Effect::ReadOnly));
    let mut host = Host::of(with_faults(&small(), plan));
    super::admin::set(
        &mut host,
        FeatureId::ASYNC_EVENT_CONFIGURATION,
        ZONES | 1 << 2,
    );
    let (zone, health) = (request(&mut host), request(&mut host));
    let write = IoCommand::Write(Write::new(1, 0, 1));
    let reply = host.io(write, Some(vec![0; 4096]), 0);
    assert_eq!(reply.status(), Status::WRITE_FAULT);
    assert_eq!(event(&mut host, zone), Some(ZONE_EVENT));
    assert_eq!(
        event(&mut host, health),
        Some(0x0002_0001),
        "SMART: reliability"
    );
    assert_eq!(
        log(&mut host, 1, LogPageId::CHANGED_ZONES, false).data()[0],
        1
    );
    let smart = super::admin::smart(&mut host);
    assert!(smart.cw.degraded());
    assert_eq!(smart.mdie.get(), 1);
}

#[test]
fn a_zone_that_fails_by_itself_is_an_event() {
    let mut plan = FaultPlan::default();
    let at = Nanos::from_ms(5);
    plan.faults.push(Fault {
        when: Match {
            zones: Some(2..=3),
            ..Match::every(Trigger::Time(at))
        },
        effect: Effect::Offline,
    });
    let mut host = Host::of(with_faults(&small(), plan));
    super::admin::set(&mut host, FeatureId::ASYNC_EVENT_CONFIGURATION, ZONES);
    let cid = request(&mut host);
    host.run(Nanos::from_ms(4));
    assert_eq!(event(&mut host, cid), None);
    host.run(at);
    let reply = host.take(host.admin, cid).unwrap();
    assert_eq!((reply.entry.result(), reply.due), (ZONE_EVENT, at));
    let list = log(&mut host, 1, LogPageId::CHANGED_ZONES, false);
    let list = ChangedZoneList::read_from_bytes(list.data()).unwrap();
    assert_eq!(list.zones().unwrap(), [320, 480]);
}
