//! Faults at run time, loss of power, controllers that give up.

use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, FormatNvm, IoCommand, Read, Write};
use zonelab_nvme::fabrics::Connect;
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::property::{ControllerStatus, Property, ShutdownNotification};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::status::FabricsStatus;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::faults::{Effect, FaultId, FaultPlan};
use zonelab_target::controller::NoSuchController;

use crate::admin::{fault, set, smart};
use crate::host::{Host, NQN, connect, connect_data, enabled, small, with_faults};

fn write(slba: u64) -> SubmissionEntry {
    IoCommand::Write(Write::new(1, slba, 1))
        .to_entry()
        .expect("it fits")
}

fn block() -> Option<Vec<u8>> {
    Some(vec![5; 4096])
}

fn plan(text: &str) -> FaultPlan {
    FaultPlan::parse("faults.toml", text, &[]).expect("the test's plan is valid")
}

/// The host of a drive whose first write meets this.
fn host_with(effect: Effect) -> Host {
    let mut plan = FaultPlan::default();
    plan.faults.push(fault(effect));
    Host::of(with_faults(&small(), plan))
}

/// The host comes back, with a new association.
fn reconnect(host: &mut Host) {
    let data = connect_data(NQN, 0xffff);
    let (admin, cntlid) =
        connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data).expect("it is let in");
    (host.admin, host.cntlid) = (admin, cntlid);
    host.set_cc(enabled());
    host.connect_io(1);
}

/// Tells the subsystem that its connections are closed, as a transport does.
fn close_connections(host: &mut Host) {
    for queue in core::mem::take(&mut host.closed) {
        host.subsystem.disconnect(host.now, queue);
    }
}

#[test]
fn faults_are_loaded_listed_and_removed_while_hosts_are_there() {
    let mut host = Host::new();
    let weak = "[[fault]]\non = \"read\"\nlbas = \"0..=3\"\neffect = \"media-error\"\n";
    assert_eq!(
        host.subsystem.add_faults(host.now, plan(weak)),
        Ok(vec![FaultId(1)])
    );
    let cid = host.send(host.io, write(0), block(), 0);
    assert_eq!(host.wait(host.io, cid).status(), Status::SUCCESS);
    let read = IoCommand::Read(Read::new(1, 0, 1));
    assert_eq!(
        host.io(read, None, 4096).status(),
        Status::UNRECOVERED_READ_ERROR
    );
    assert_eq!(host.subsystem.faults()[0].struck, 1);
    assert_eq!(smart(&mut host).mdie.get(), 1);
    assert!(host.subsystem.remove_fault(FaultId(1)));
    assert_eq!(host.io(read, None, 4096).status(), Status::SUCCESS);
    let nowhere = plan("[[fault]]\non = \"read\"\nlbas = 960\neffect = \"media-error\"\n");
    let refused = host.subsystem.add_faults(host.now, nowhere).unwrap_err();
    assert!(refused.contains("its last is 959"), "{refused}");
    assert!(host.subsystem.faults().is_empty());
}

#[test]
fn zones_that_fail_are_told_and_seen_in_the_health_log() {
    let mut host = Host::new();
    set(&mut host, FeatureId::ASYNC_EVENT_CONFIGURATION, 1 << 27);
    let entry = AdminCommand::AsynchronousEventRequest.to_entry().unwrap();
    let cid = host.send(host.admin, entry, None, 0);
    let fail = |host: &mut Host, zones, to| {
        let now = host.now;
        host.subsystem.fail_zones(now, NamespaceId(1), &[zones], to)
    };
    assert!(fail(&mut host, 6..=6, ZoneState::OFFLINE).is_err());
    assert_eq!(fail(&mut host, 0..=0, ZoneState::READ_ONLY), Ok(()));
    host.run(host.now);
    let told = host.take(host.admin, cid).expect("an event");
    assert_eq!(told.entry.result(), 1 << 32 | 0x00bf_ef02);
    let cw = smart(&mut host).cw;
    assert_eq!((cw.degraded(), cw.read_only()), (true, false));
    assert_eq!(fail(&mut host, 0..=5, ZoneState::READ_ONLY), Ok(()));
    assert!(smart(&mut host).cw.read_only());
    let cid = host.send(host.io, write(0), block(), 0);
    assert_eq!(host.wait(host.io, cid).status(), Status::ZONE_IS_READ_ONLY);
}

#[test]
fn a_loss_of_power_ends_every_association_and_answers_nothing() {
    let mut host = Host::new();
    let cid = host.send(host.io, write(0), block(), 0);
    let cut = host.subsystem.power_cut(host.now, Nanos::from_ms(500));
    assert_eq!((cut.aborted, cut.at), (1, host.now));
    host.run(host.now);
    assert_eq!(host.closed, [host.admin, host.io]);
    assert_eq!(host.subsystem.controllers(), 0);
    let refused = connect(
        &mut host.subsystem,
        host.now,
        Connect::new(0, 32),
        &connect_data(NQN, 0xffff),
    );
    let refused = refused.expect_err("nobody is there");
    let busy = FabricsStatus::CONNECT_CONTROLLER_BUSY.status();
    assert_eq!(refused.status.status(), busy);
    assert!(refused.status.may_retry());
    assert_eq!(host.subsystem.is_off_until(host.now), Some(cut.ready_at));

    close_connections(&mut host);
    host.now = cut.ready_at;
    host.run(cut.ready_at);
    assert!(host.inbox.iter().all(|done| done.entry.cid.get() != cid));
    assert_eq!(host.subsystem.is_off_until(host.now), None);
    reconnect(&mut host);
    let health = smart(&mut host);
    assert_eq!((health.pwrc.get(), health.upl.get()), (2, 1));
    let cid = host.send(host.io, write(160), block(), 0);
    assert_eq!(host.wait(host.io, cid).status(), Status::SUCCESS);
}

#[test]
fn a_loss_of_power_after_a_shutdown_is_a_safe_one() {
    let mut host = Host::new();
    host.set_cc(enabled().with_shn(ShutdownNotification::NORMAL));
    host.run(Nanos::from_secs(1));
    let cut = host.subsystem.power_cut(host.now, Nanos::ZERO);
    host.now = cut.ready_at;
    host.run(cut.ready_at);
    close_connections(&mut host);
    reconnect(&mut host);
    let health = smart(&mut host);
    assert_eq!((health.pwrc.get(), health.upl.get()), (2, 0));
}

#[test]
fn a_plan_cuts_power_as_the_control_does() {
    let mut host = host_with(Effect::PowerCut {
        off: Nanos::from_ms(2),
    });
    // A format that waits goes with the rest.
    let cid = host.send(host.io, write(0), block(), 0);
    let format = AdminCommand::FormatNvm(FormatNvm::new(1, 0));
    host.send(host.admin, format.to_entry().unwrap(), None, 0);
    assert_eq!(host.subsystem.next_event(), Some(host.now), "at once");
    host.run(Nanos::from_secs(1));
    assert_eq!(host.closed, [host.admin, host.io]);
    assert!(host.inbox.iter().all(|done| done.entry.cid.get() != cid));
    close_connections(&mut host);
    host.now = Nanos::from_secs(1);
    reconnect(&mut host);
    assert_eq!(smart(&mut host).upl.get(), 1);
    assert_eq!(host.subsystem.drive().drive().config().lba_bytes, 4096);
}

#[test]
fn a_lost_completion_holds_up_neither_a_format_nor_its_queue() {
    let timeout = Some(Nanos::from_secs(30));
    let mut host = host_with(Effect::Lose { timeout });
    let cid = host.send(host.io, write(0), block(), 0);
    host.run(Nanos::from_secs(1));
    assert!(host.take(host.io, cid).is_none());
    // Its identifier is in flight as long as the queue is there.
    host.run(Nanos::from_secs(40));
    assert!(host.take(host.io, cid).is_none());
    host.now = Nanos::from_secs(40);
    let format = host.admin(AdminCommand::FormatNvm(FormatNvm::new(1, 0)), 0);
    assert_eq!(format.status(), Status::SUCCESS);
    assert_eq!(smart(&mut host).hwc.get(), 1, "it was carried out");
    let io = host.io;
    host.subsystem.disconnect(host.now, io);
    host.connect_io(1);
    assert_eq!(host.io, io, "the number is free");
}

#[test]
fn a_controller_that_gives_up_says_so_until_its_host_resets_it() {
    let mut host = Host::new();
    let missing = host.subsystem.reset_controllers(host.now, Some(7));
    assert_eq!(missing, Err(NoSuchController(7)));
    assert_eq!(host.subsystem.controller_ids(), [host.cntlid]);
    let (io, cid) = (host.io, host.send(host.io, write(0), block(), 0));
    let only = Some(host.cntlid);
    assert_eq!(host.subsystem.reset_controllers(host.now, only), Ok(1));
    host.run(Nanos::from_secs(1));
    assert_eq!(host.closed, [io]);
    assert!(host.take(io, cid).is_none());
    close_connections(&mut host);
    let csts = host.property(Property::CSTS) as u32;
    assert!(ControllerStatus::from_bits(csts).cfs());
    let health = AdminCommand::AsynchronousEventRequest.to_entry().unwrap();
    let refused = host.send(host.admin, health, None, 0);
    let refused = host.wait(host.admin, refused).status();
    assert_eq!(refused, Status::COMMAND_SEQUENCE_ERROR);

    host.set_cc(enabled().with_en(false));
    host.set_cc(enabled());
    host.connect_io(1);
    // What was in flight was carried out.
    let reply = host.io(IoCommand::Read(Read::new(1, 0, 1)), None, 4096);
    assert!(reply.data().iter().all(|byte| *byte == 5));

    // Without that the association ends after two minutes.
    assert_eq!(host.subsystem.reset_controllers(host.now, None), Ok(1));
    host.run(Nanos::from_secs(200));
    assert_eq!(host.subsystem.controllers(), 0);
}

/// Whoever looks finds why writes fail.
#[test]
fn a_drive_without_room_is_read_only_in_the_health_log() {
    let mut full = fault(Effect::Fail(Status::CAPACITY_EXCEEDED));
    full.when.count = 1;
    let plan = FaultPlan {
        faults: vec![full],
        ..FaultPlan::default()
    };
    let mut host = Host::of(with_faults(&small(), plan));
    let read_only = |host: &mut Host| smart(host).cw.read_only();
    assert!(!read_only(&mut host));
    let io = host.io;
    let failed = host.call(io, write(0), block(), 0).status();
    assert_eq!(failed, Status::CAPACITY_EXCEEDED);
    assert!(read_only(&mut host));
    assert_eq!(
        host.call(io, write(0), block(), 0).status(),
        Status::SUCCESS
    );
    assert!(!read_only(&mut host));
}
