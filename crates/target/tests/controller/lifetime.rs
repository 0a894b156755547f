//! Enable, reset, shutdown, keep alive, and the end of queues.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, Identify, IoCommand, Read, Write};
use zonelab_nvme::fabrics::{
    Connect, DISCOVERY_NQN, Disconnect, FabricsCommand, PropertyGet, PropertySet,
};
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::identify::{Cns, CommandSet};
use zonelab_nvme::property::{
    Capabilities, ControllerStatus, Property, ShutdownNotification, ShutdownStatus,
};

use crate::host::{Host, NQN, connect, connect_data, enabled, subsystem};

fn csts(host: &mut Host) -> ControllerStatus {
    ControllerStatus::from_bits(host.property(Property::CSTS) as u32)
}

fn keep_alive(kato: u32) -> Connect {
    Connect {
        kato,
        ..Connect::new(0, 32)
    }
}

#[test]
fn properties_say_what_a_linux_host_needs() {
    let mut host = Host::admin_only(subsystem(), Connect::new(0, 32));
    let cap = Capabilities::from_bits(host.property(Property::CAP));
    assert_eq!(cap.mqes_z(), 127);
    assert!(cap.cqr() && cap.css_nvm() && cap.css_io() && cap.crwms());
    assert_eq!((cap.mpsmin(), cap.mpsmax(), cap.dstrd()), (0, 0, 0));
    assert!(cap.to() > 0);
    assert_eq!(host.property(Property::VS), 0x0002_0000);
    assert_eq!(host.property(Property::CC), 0);
    assert!(!csts(&mut host).rdy());
}

#[test]
fn a_property_that_is_not_there_or_has_another_size_is_refused() {
    let mut host = Host::new();
    let mut get = |ofst, size| {
        let command = FabricsCommand::PropertyGet(PropertyGet { ofst, size });
        let reply = host.fabrics(command);
        assert!(reply.status().is_success() || reply.entry.status.dnr());
        reply.status()
    };
    assert_eq!(get(Property::AQA, 0), Status::INVALID_FIELD);
    assert_eq!(get(Property(0x1000), 0), Status::INVALID_FIELD);
    assert_eq!(get(Property::CAP, 0), Status::INVALID_FIELD);
    assert_eq!(get(Property::CSTS, 1), Status::INVALID_FIELD);
    let mut set = |ofst| {
        let command = FabricsCommand::PropertySet(PropertySet::new(ofst, 1));
        host.fabrics(command).status()
    };
    assert_eq!(set(Property::CSTS), Status::INVALID_FIELD);
    assert_eq!(set(Property::CAP), Status::INVALID_FIELD);
}

#[test]
fn a_controller_takes_commands_once_it_is_enabled() {
    let mut host = Host::admin_only(subsystem(), Connect::new(0, 32));
    let identify = super::identify::controller();
    let early = host.admin(identify, 4096);
    assert_eq!(early.status(), Status::COMMAND_SEQUENCE_ERROR);
    host.set_cc(enabled());
    assert!(csts(&mut host).rdy());
    assert_eq!(host.admin(identify, 4096).status(), Status::SUCCESS);
}

#[test]
fn a_configuration_that_is_not_possible_is_fatal() {
    for cc in [
        enabled().with_mps(1),
        enabled().with_ams(1),
        enabled().with_iosqes(7),
        enabled().with_iocqes(5),
        enabled().with_css(zonelab_nvme::property::CommandSetSelected(3)),
    ] {
        let mut host = Host::admin_only(subsystem(), Connect::new(0, 32));
        host.set_cc(cc);
        let status = csts(&mut host);
        assert!(status.cfs() && !status.rdy(), "{cc:?}");
    }
}

#[test]
fn a_reset_ends_io_queues_and_what_is_in_flight_on_them() {
    let mut host = Host::new();
    let write = IoCommand::Write(Write::new(1, 0, 4)).to_entry().unwrap();
    let io = host.io;
    let cid = host.send(io, write, Some(vec![5; 4 * 4096]), 0);
    host.set_cc(enabled().with_en(false));
    assert_eq!(host.closed, [io]);
    host.run(Nanos::from_secs(1));
    assert!(host.take(io, cid).is_none());
    assert!(!csts(&mut host).rdy());
    host.subsystem.disconnect(host.now, io);

    // The association is still there: enabled again, it has the zone as it is.
    host.set_cc(enabled());
    host.connect_io(1);
    let read = IoCommand::Read(Read::new(1, 0, 4));
    let reply = host.io(read, None, 4 * 4096);
    assert!(reply.data().iter().all(|byte| *byte == 5));
}

#[test]
fn a_number_is_used_again_only_when_the_drive_is_done_with_the_queue() {
    let mut host = Host::new();
    let old = host.io;
    let write = IoCommand::Write(Write::new(1, 0, 4)).to_entry().unwrap();
    host.send(old, write, Some(vec![5; 4 * 4096]), 0);
    host.subsystem.disconnect(host.now, old);
    host.connect_io(1);
    assert_ne!(host.io, old);
    host.run(Nanos::from_secs(1));
    host.connect_io(2);
    assert_eq!(host.io, old);
    assert!(host.inbox.is_empty() && host.closed.is_empty());
}

#[test]
fn a_reset_gives_features_their_default_values_and_ends_event_requests() {
    let mut host = Host::new();
    let aec = FeatureId::ASYNC_EVENT_CONFIGURATION;
    super::admin::set(&mut host, aec, 0x100);
    let request = AdminCommand::AsynchronousEventRequest.to_entry().unwrap();
    let cid = host.send(host.admin, request, None, 0);
    host.set_cc(enabled().with_en(false));
    let reply = host.take(host.admin, cid).unwrap();
    assert_eq!(reply.status(), Status::ABORT_REQUESTED);
    host.set_cc(enabled());
    assert_eq!(super::admin::get(&mut host, aec), 0);
}

#[test]
fn the_association_ends_two_minutes_after_a_reset() {
    let mut host = Host::new();
    host.set_cc(enabled().with_en(false));
    host.closed.clear();
    let end = host.now.saturating_add(Nanos::from_secs(120));
    host.run(end.saturating_sub(Nanos(1)));
    assert!(host.closed.is_empty());
    host.run(end);
    assert_eq!(host.closed, [host.admin]);
    assert_eq!(host.subsystem.controllers(), 0);
}

#[test]
fn a_shutdown_closes_io_queues_and_says_that_it_is_complete() {
    for how in [ShutdownNotification::NORMAL, ShutdownNotification::ABRUPT] {
        let mut host = Host::new();
        host.set_cc(enabled().with_shn(how));
        host.run(Nanos::from_secs(1));
        let status = csts(&mut host);
        assert_eq!(status.shst(), ShutdownStatus::COMPLETE);
        assert_eq!(host.closed, [host.io]);
    }
}

/// A shutdown that goes on for a while, or is over: nothing succeeds but what
/// ends it.
#[test]
fn commands_after_a_shutdown_fail() {
    let read = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
    for how in [ShutdownNotification::NORMAL, ShutdownNotification::ABRUPT] {
        let mut host = Host::new();
        assert_eq!(super::admin::get(&mut host, FeatureId::KEEP_ALIVE_TIMER), 0);
        let set = PropertySet::new(Property::CC, enabled().with_shn(how).bits().into());
        let set = FabricsCommand::PropertySet(set).to_entry().unwrap();
        let (set, cid) = (
            host.send(host.admin, set, None, 0),
            host.send(host.io, read, None, 4096),
        );
        assert_eq!(host.wait(host.admin, set).status(), Status::SUCCESS);
        host.run(Nanos::from_secs(1));
        // If the queue was closed at once, nobody hears of it.
        let reply = host.take(host.io, cid);
        assert!(reply.is_none_or(|reply| reply.status() == Status::COMMAND_SEQUENCE_ERROR));
        let identify = Identify::new(0, Cns::CONTROLLER, CommandSet::NVM);
        let status = host.admin(AdminCommand::Identify(identify), 4096).status();
        assert_eq!(status, Status::COMMAND_SEQUENCE_ERROR);
        assert_eq!(csts(&mut host).shst(), ShutdownStatus::COMPLETE);
        // A reset ends it.
        host.set_cc(enabled().with_en(false));
        host.set_cc(enabled());
        let status = host.admin(AdminCommand::Identify(identify), 4096).status();
        assert_eq!(status, Status::SUCCESS);
    }
}

/// Without keep alive timeout a discovery controller stays for two minutes
/// after the last command, and takes no place of an I/O controller.
#[test]
fn a_discovery_controller_without_commands_ends() {
    let mut host = Host::new();
    let mut discovery = Vec::new();
    for _ in 0..64 {
        let data = connect_data(DISCOVERY_NQN, 0xffff);
        let queue = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data);
        discovery.push(queue.expect("it is let in").0);
    }
    let data = connect_data(DISCOVERY_NQN, 0xffff);
    let more = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data);
    assert!(more.is_err(), "they have places of their own");
    let data = connect_data(NQN, 0xffff);
    let other = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data);
    other.expect("and hosts have theirs");
    // One of them goes on.
    host.run(Nanos::from_secs(100));
    host.now = Nanos::from_secs(100);
    let keep = AdminCommand::KeepAlive.to_entry().unwrap();
    host.call(discovery[0], keep, None, 0);
    host.run(Nanos::from_secs(121));
    let mut closed = core::mem::take(&mut host.closed);
    closed.sort_unstable();
    assert_eq!(closed, discovery[1..]);
    host.run(Nanos::from_secs(221));
    assert_eq!(host.closed, discovery[..1]);
    assert_eq!(host.subsystem.controllers(), 2);
}

#[test]
fn a_silent_host_loses_its_controller() {
    let mut host = Host::admin_only(subsystem(), keep_alive(1_050));
    host.set_cc(enabled());
    host.connect_io(1);
    // Rounded up to 100 ms.
    assert_eq!(
        super::admin::get(&mut host, FeatureId::KEEP_ALIVE_TIMER),
        1_100
    );
    let start = host.now;
    host.run(start.saturating_add(Nanos::from_ms(1_099)));
    assert!(host.closed.is_empty());
    host.run(start.saturating_add(Nanos::from_ms(1_100)));
    assert_eq!(host.closed, [host.admin, host.io]);
    assert_eq!(host.subsystem.controllers(), 0);
    let write = IoCommand::Write(Write::new(1, 0, 1)).to_entry().unwrap();
    let cid = host.send(host.io, write, Some(vec![0; 4096]), 0);
    host.run(Nanos::from_secs(5));
    assert!(host.take(host.io, cid).is_none());
}

#[test]
fn any_command_keeps_a_controller_alive() {
    let mut host = Host::admin_only(subsystem(), keep_alive(1_000));
    host.set_cc(enabled());
    host.connect_io(1);
    for round in 1..10_u64 {
        let at = Nanos::from_ms(900 * round);
        host.run(at);
        host.now = at;
        if round % 2 == 0 {
            let entry = AdminCommand::KeepAlive.to_entry().unwrap();
            host.send(host.admin, entry, None, 0);
        } else {
            let read = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
            host.send(host.io, read, None, 4096);
        }
    }
    assert!(host.closed.is_empty());
    host.run(Nanos::from_secs(20));
    assert_eq!(host.closed.len(), 2);
}

#[test]
fn the_end_of_the_admin_queue_is_that_of_the_controller() {
    let mut host = Host::new();
    let (admin, io) = (host.admin, host.io);
    host.subsystem.disconnect(host.now, admin);
    assert_eq!(host.subsystem.controllers(), 0);
    host.run(host.now);
    assert_eq!(host.closed, [io]);
    host.subsystem.disconnect(host.now, io);
    // Both numbers are free again.
    let data = connect_data(NQN, 0xffff);
    let (queue, _) = connect(&mut host.subsystem, host.now, Connect::new(0, 32), &data).unwrap();
    assert!(queue == admin || queue == io);
}

#[test]
fn disconnect_is_not_offered() {
    let mut host = Host::new();
    let disconnect = FabricsCommand::Disconnect(Disconnect::default());
    assert_eq!(host.fabrics(disconnect).status(), Status::INVALID_OPCODE);
    let entry = disconnect.to_entry().unwrap();
    let reply = host.call(host.io, entry, None, 0);
    assert_eq!(reply.status(), Status::INVALID_OPCODE);
    let again = FabricsCommand::Connect(Connect::new(0, 32));
    assert_eq!(host.fabrics(again).status(), Status::COMMAND_SEQUENCE_ERROR);
}
