//! I/O commands: data, zones, and each way to fail.

use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, Flush, GetLogPage, IoCommand, Protection, Read, Write, ZoneAppend,
    ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::log::{ErrorEntry, LogPageId};
use zonelab_nvme::queue::{SglDescriptor, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ReportFilter, ZoneReceiveAction, ZoneSendAction, ZoneState};
use zonelab_ssd::Control;
use zonelab_ssd::config::{BufferRelease, DriveConfig, Placement, WriteBufferConfig, ZrwaConfig};
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

use crate::host::{Host, Reply, small, with_faults};
use crate::hosts::divided;

const BLOCK: usize = 4096;
const ZONE: u64 = 160;

fn write(host: &mut Host, slba: u64, nlb: u32) -> Reply {
    let data = vec![slba as u8; nlb as usize * BLOCK];
    host.io(IoCommand::Write(Write::new(1, slba, nlb)), Some(data), 0)
}

fn read(host: &mut Host, slba: u64, nlb: u32) -> Reply {
    let room = nlb as usize * BLOCK;
    host.io(IoCommand::Read(Read::new(1, slba, nlb)), None, room)
}

fn append(host: &mut Host, zslba: u64, nlb: u32) -> Reply {
    let data = vec![0xaa; nlb as usize * BLOCK];
    host.io(
        IoCommand::ZoneAppend(ZoneAppend::new(1, zslba, nlb)),
        Some(data),
        0,
    )
}

fn send(host: &mut Host, slba: u64, action: ZoneSendAction) -> Reply {
    let send = ZoneManagementSend::new(1, slba, action);
    host.io(IoCommand::ZoneManagementSend(send), None, 0)
}

fn send_all(host: &mut Host, action: ZoneSendAction) -> Reply {
    let send = ZoneManagementSend {
        select_all: true,
        ..ZoneManagementSend::new(1, 0, action)
    };
    host.io(IoCommand::ZoneManagementSend(send), None, 0)
}

/// State and write pointer of all zones, as a report gives them.
fn zones(host: &mut Host) -> Vec<(ZoneState, u64)> {
    let bytes = 64 * 7;
    let receive = ZoneManagementReceive::new(1, 0, bytes as u64 / 4);
    let reply = host.io(IoCommand::ZoneManagementReceive(receive), None, bytes);
    let report = reply.data();
    assert_eq!(report[0], 6);
    let zone = |at: usize| {
        let descriptor = &report[64 * at..64 * (at + 1)];
        let pointer = u64::from_le_bytes(descriptor[24..32].try_into().expect("it has 8 bytes"));
        (ZoneState(descriptor[1] >> 4), pointer)
    };
    (1..=6).map(zone).collect()
}

fn newest_error(host: &mut Host) -> ErrorEntry {
    let get = GetLogPage::new(0, LogPageId::ERROR_INFORMATION, 64 / 4);
    let reply = host.admin(AdminCommand::GetLogPage(get), 64);
    ErrorEntry::read_from_bytes(reply.data()).expect("it has 64 bytes")
}

/// The status of a command that failed for good, and has gone into the error log.
fn failed(reply: &Reply) -> Status {
    assert!(
        reply.entry.status.dnr() && reply.entry.status.m(),
        "{:?}",
        reply.entry
    );
    assert!(reply.data.is_none());
    reply.status()
}

#[test]
fn what_was_written_is_read() {
    let mut host = Host::new();
    assert_eq!(write(&mut host, 0, 8).status(), Status::SUCCESS);
    assert_eq!(write(&mut host, 8, 4).status(), Status::SUCCESS);
    let reply = read(&mut host, 4, 10);
    let blocks: Vec<u8> = reply.data().chunks(BLOCK).map(|block| block[0]).collect();
    // What was never written reads as zero, also in a buffer that held other data.
    assert_eq!(blocks, [0, 0, 0, 0, 8, 8, 8, 8, 0, 0]);
    assert!(reply.due > Nanos::ZERO);
    host.subsystem.recycle(vec![0xff; 2 * BLOCK].into());
    assert!(
        read(&mut host, ZONE, 2)
            .data()
            .iter()
            .all(|byte| *byte == 0)
    );
    let flush = host.io(IoCommand::Flush(Flush { nsid: 1 }), None, 0);
    assert_eq!(flush.status(), Status::SUCCESS);
}

#[test]
fn an_append_says_where_it_went() {
    let mut host = Host::new();
    assert_eq!(append(&mut host, ZONE, 4).entry.result(), ZONE);
    assert_eq!(append(&mut host, ZONE, 2).entry.result(), ZONE + 4);
    assert_eq!(
        zones(&mut host)[1],
        (ZoneState::IMPLICITLY_OPENED, ZONE + 6)
    );
    assert_eq!(
        failed(&append(&mut host, ZONE + 1, 1)),
        Status::INVALID_FIELD
    );
}

#[test]
fn zones_go_through_their_states() {
    let mut host = Host::new();
    let states = |host: &mut Host| zones(host)[0];
    assert_eq!(states(&mut host), (ZoneState::EMPTY, 0));
    for (action, state, pointer) in [
        (ZoneSendAction::OPEN, ZoneState::EXPLICITLY_OPENED, 0),
        (ZoneSendAction::CLOSE, ZoneState::CLOSED, 0),
        (ZoneSendAction::FINISH, ZoneState::FULL, 128),
        (ZoneSendAction::RESET, ZoneState::EMPTY, 0),
    ] {
        assert_eq!(send(&mut host, 0, action).status(), Status::SUCCESS);
        assert_eq!(states(&mut host), (state, pointer));
    }
    assert_eq!(write(&mut host, 0, 128).status(), Status::SUCCESS);
    assert_eq!(states(&mut host).0, ZoneState::FULL);
}

#[test]
fn select_all_acts_on_the_zones_of_its_states() {
    let mut host = Host::new();
    for zone in 0..3 {
        write(&mut host, zone * ZONE, 1);
    }
    assert_eq!(
        send_all(&mut host, ZoneSendAction::CLOSE).status(),
        Status::SUCCESS
    );
    let closed = zones(&mut host)
        .iter()
        .filter(|zone| zone.0 == ZoneState::CLOSED)
        .count();
    assert_eq!(closed, 3);
    assert_eq!(
        send_all(&mut host, ZoneSendAction::OPEN).status(),
        Status::SUCCESS
    );
    assert_eq!(zones(&mut host)[2].0, ZoneState::EXPLICITLY_OPENED);
    assert_eq!(
        send_all(&mut host, ZoneSendAction::FINISH).status(),
        Status::SUCCESS
    );
    assert_eq!(zones(&mut host)[2].0, ZoneState::FULL);
    assert_eq!(zones(&mut host)[3].0, ZoneState::EMPTY);
    assert_eq!(
        send_all(&mut host, ZoneSendAction::RESET).status(),
        Status::SUCCESS
    );
    assert!(
        zones(&mut host)
            .iter()
            .all(|zone| zone.0 == ZoneState::EMPTY)
    );
}

#[test]
fn each_error_of_the_state_machine_has_its_status() {
    let mut host = Host::new();
    assert_eq!(failed(&write(&mut host, 1, 1)), Status::ZONE_INVALID_WRITE);
    assert_eq!(
        failed(&write(&mut host, 120, 9)),
        Status::ZONE_BOUNDARY_ERROR
    );
    assert_eq!(
        failed(&read(&mut host, 158, 4)),
        Status::ZONE_BOUNDARY_ERROR
    );
    assert_eq!(
        failed(&read(&mut host, 6 * ZONE, 1)),
        Status::LBA_OUT_OF_RANGE
    );
    assert_eq!(
        failed(&read(&mut host, u64::MAX, 2)),
        Status::LBA_OUT_OF_RANGE
    );
    let close_empty = send(&mut host, 0, ZoneSendAction::CLOSE);
    assert_eq!(failed(&close_empty), Status::INVALID_ZONE_STATE_TRANSITION);
    assert_eq!(
        failed(&send(&mut host, 1, ZoneSendAction::OPEN)),
        Status::INVALID_FIELD
    );
    assert_eq!(
        failed(&send(&mut host, 0, ZoneSendAction(0x7f))),
        Status::INVALID_FIELD
    );

    for zone in 0..3 {
        send(&mut host, zone * ZONE, ZoneSendAction::OPEN);
    }
    assert_eq!(
        failed(&write(&mut host, 3 * ZONE, 1)),
        Status::TOO_MANY_OPEN_ZONES
    );
    send(&mut host, 0, ZoneSendAction::CLOSE);
    send(&mut host, 3 * ZONE, ZoneSendAction::OPEN);
    send(&mut host, ZONE, ZoneSendAction::CLOSE);
    assert_eq!(
        failed(&append(&mut host, 4 * ZONE, 1)),
        Status::TOO_MANY_ACTIVE_ZONES
    );
    send(&mut host, 0, ZoneSendAction::FINISH);
    assert_eq!(failed(&write(&mut host, 0, 1)), Status::ZONE_IS_FULL);

    for (zone, to) in [(4, ZoneState::READ_ONLY), (5, ZoneState::OFFLINE)] {
        let zone = zonelab_device::ZoneId(zone);
        let now = host.now;
        let drive = host.subsystem.drive_mut().drive_mut();
        drive.control(now, &Control::FailZone { zone, to }).unwrap();
    }
    assert_eq!(
        failed(&write(&mut host, 4 * ZONE, 1)),
        Status::ZONE_IS_READ_ONLY
    );
    assert_eq!(
        failed(&write(&mut host, 5 * ZONE, 1)),
        Status::ZONE_IS_OFFLINE
    );
    assert_eq!(
        failed(&read(&mut host, 5 * ZONE, 1)),
        Status::ZONE_IS_OFFLINE
    );
    assert_eq!(read(&mut host, 4 * ZONE, 1).status(), Status::SUCCESS);
    let offline = send(&mut host, 4 * ZONE, ZoneSendAction::OFFLINE);
    assert_eq!(offline.status(), Status::SUCCESS);
}

#[test]
fn the_error_log_says_which_field_of_which_command() {
    let mut host = Host::new();
    let reply = write(&mut host, 3, 1);
    let error = newest_error(&mut host);
    assert_eq!(error.errcnt.get(), 1);
    assert_eq!((error.sqid.get(), error.cid), (1, reply.entry.cid));
    assert_eq!(error.status, reply.entry.status);
    assert_eq!((error.pel.byte(), error.pel.bit()), (40, 0));
    assert_eq!((error.lba.get(), error.nsid.get()), (3, 1));

    let protected = Read {
        protection: Protection {
            check_guard: true,
            ..Protection::default()
        },
        ..Read::new(1, 0, 1)
    };
    let reply = host.io(IoCommand::Read(protected), None, BLOCK);
    assert_eq!(failed(&reply), Status::INVALID_PROTECTION_INFORMATION);
    let error = newest_error(&mut host);
    assert_eq!((error.pel.byte(), error.pel.bit()), (51, 2));
    assert_eq!(error.errcnt.get(), 2);

    // As many as there is room for, newest first.
    for _ in 0..70 {
        write(&mut host, 3, 1);
    }
    let get = GetLogPage::new(0, LogPageId::ERROR_INFORMATION, 64 * 64 / 4);
    let log = host.admin(AdminCommand::GetLogPage(get), 64 * 64);
    let count = |at: usize| u64::from_le_bytes(log.data()[64 * at..][..8].try_into().unwrap());
    assert_eq!((count(0), count(1), count(63)), (72, 71, 9));
}

#[test]
fn lengths_must_agree_with_the_command() {
    let mut host = Host::new();
    let length = Status::DATA_SGL_LENGTH_INVALID;
    for room in [0, BLOCK, 3 * BLOCK] {
        let reply = host.io(IoCommand::Read(Read::new(1, 0, 2)), None, room);
        assert_eq!(failed(&reply), length);
    }
    for sent in [BLOCK, 3 * BLOCK] {
        let data = Some(vec![0; sent]);
        let reply = host.io(IoCommand::Write(Write::new(1, 0, 2)), data, 0);
        assert_eq!(failed(&reply), length);
    }
    let reply = host.io(IoCommand::Write(Write::new(1, 0, 2)), None, 0);
    assert_eq!(failed(&reply), length);
    // Nothing was written.
    assert_eq!(zones(&mut host)[0], (ZoneState::EMPTY, 0));
    let open = ZoneManagementSend::new(1, 0, ZoneSendAction::OPEN);
    let reply = host.io(IoCommand::ZoneManagementSend(open), Some(vec![0; 64]), 0);
    assert_eq!(failed(&reply), length);
    // More than a command may have (1 MiB).
    let reply = read(&mut host, 0, 257);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
    assert_eq!(newest_error(&mut host).pel.byte(), 48);
}

#[test]
fn a_command_for_no_namespace_or_of_another_kind_is_refused() {
    let mut host = Host::new();
    for nsid in [0, 2, u32::MAX] {
        let reply = host.io(IoCommand::Read(Read::new(nsid, 0, 1)), None, BLOCK);
        assert_eq!(failed(&reply), Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    for nsid in [0, 2] {
        let reply = host.io(IoCommand::Flush(Flush { nsid }), None, 0);
        assert_eq!(failed(&reply), Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    for opcode in [0x04, 0x0f, 0x19, 0x20, 0x7f, 0xc0, 0xff] {
        let entry = SubmissionEntry::new(opcode).with_nsid(1);
        let reply = host.call(host.io, entry, None, 0);
        assert_eq!(failed(&reply), Status::INVALID_OPCODE, "{opcode:#x}");
    }
    let mut fused = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
    fused.cdw0 = fused.cdw0.with_fuse(1);
    let reply = host.call(host.io, fused, None, BLOCK);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
    let directive = Write {
        dtype: 1,
        ..Write::new(1, 0, 1)
    };
    let reply = host.io(IoCommand::Write(directive), Some(vec![0; BLOCK]), 0);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
}

#[test]
fn a_command_with_prps_is_refused() {
    let mut host = Host::new();
    let read = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
    let entry = read.with_prps(0x1000, 0).with_cid(500);
    host.subsystem.submit(host.now, host.io, &entry, None, 4096);
    let reply = host.wait(host.io, 500);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
    assert_eq!(newest_error(&mut host).pel.bits(), 1 | 6 << 8);
}

#[test]
fn an_identifier_in_flight_is_not_taken_twice() {
    let mut host = Host::new();
    let entry = IoCommand::Read(Read::new(1, 0, 1)).to_entry().unwrap();
    let entry = entry.with_sgl(SglDescriptor::transport(4096)).with_cid(77);
    for _ in 0..2 {
        host.subsystem.submit(host.now, host.io, &entry, None, 4096);
    }
    host.run(Nanos::from_secs(1));
    let statuses: Vec<Status> = host
        .inbox
        .drain(..)
        .map(|done| done.entry.status.status())
        .collect();
    assert_eq!(statuses, [Status::COMMAND_ID_CONFLICT, Status::SUCCESS]);
    // Free again after its completion; and another queue has its own.
    host.subsystem.submit(host.now, host.io, &entry, None, 4096);
    assert_eq!(host.wait(host.io, 77).status(), Status::SUCCESS);
}

#[test]
fn reports_are_filtered_and_partial_and_have_extensions() {
    let mut host = Host::new();
    write(&mut host, ZONE, 1);
    write(&mut host, 3 * ZONE, 1);
    let extension = ZoneManagementSend::new(1, 4 * ZONE, ZoneSendAction::SET_DESCRIPTOR_EXTENSION);
    let command = IoCommand::ZoneManagementSend(extension);
    assert_eq!(
        host.io(command, Some(vec![0xe5; 64]), 0).status(),
        Status::SUCCESS
    );
    let reply = host.io(command, Some(vec![0xe5; 128]), 0);
    assert_eq!(failed(&reply), Status::DATA_SGL_LENGTH_INVALID);

    let mut report = |change: fn(&mut ZoneManagementReceive), bytes: usize| {
        let mut receive = ZoneManagementReceive::new(1, 0, bytes as u64 / 4);
        change(&mut receive);
        host.io(IoCommand::ZoneManagementReceive(receive), None, bytes)
    };
    let opened = report(|of| of.filter = ReportFilter::IMPLICITLY_OPENED, 128);
    assert_eq!(opened.data()[0], 2, "all that match, though one fits");
    let partial = report(
        |of| {
            of.filter = ReportFilter::IMPLICITLY_OPENED;
            of.partial = true;
        },
        128,
    );
    assert_eq!(partial.data()[0], 1);
    let extended = report(
        |of| {
            of.zra = ZoneReceiveAction::EXTENDED_REPORT_ZONES;
            of.filter = ReportFilter::CLOSED;
        },
        192,
    );
    assert_eq!(extended.data()[64 + 2] & 0x80, 0x80, "ZDEV");
    assert_eq!(&extended.data()[128..], [0xe5; 64]);
    let from = report(|of| of.slba = 5 * ZONE + 7, 128);
    assert_eq!(from.data()[0], 1);
    let unknown = report(|of| of.filter = ReportFilter(0x1f), 128);
    assert_eq!(failed(&unknown), Status::INVALID_FIELD);
    let unknown = report(|of| of.zra = ZoneReceiveAction(2), 128);
    assert_eq!(failed(&unknown), Status::INVALID_FIELD);
    assert_eq!(failed(&report(|_| {}, 32)), Status::INVALID_FIELD);
    let outside = report(|of| of.slba = 6 * ZONE, 128);
    assert_eq!(failed(&outside), Status::LBA_OUT_OF_RANGE);
}

/// [`small`] behind a write buffer that power loss empties.
fn buffered_config() -> DriveConfig {
    let mut config = small();
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 1 << 20,
        power_loss_protection: false,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
    });
    config
}

fn buffered() -> Host {
    Host::of(with_faults(&buffered_config(), FaultPlan::default()))
}

#[test]
fn a_flush_can_be_of_all_namespaces() {
    let mut plan = FaultPlan::default();
    let of_second = Match {
        namespace: Some(NamespaceId(2)),
        ..Match::every(Trigger::Flush)
    };
    plan.faults.push(Fault {
        when: Match {
            count: 1,
            ..of_second.clone()
        },
        effect: Effect::Fail(Status::INTERNAL_ERROR),
    });
    let late = Nanos::from_ms(1);
    plan.faults.push(Fault {
        when: of_second,
        effect: Effect::Delay(late),
    });
    let mut host = Host::of(with_faults(&divided(), plan));
    let flush = |host: &mut Host, nsid: u32| {
        let begun = host.now;
        let reply = host.io(IoCommand::Flush(Flush { nsid }), None, 0);
        (reply.status(), reply.due.saturating_sub(begun))
    };
    assert_eq!(flush(&mut host, 1).0, Status::SUCCESS);
    // One that fails is the end of it, and of which namespace it was stands in the log.
    assert_eq!(flush(&mut host, u32::MAX).0, Status::INTERNAL_ERROR);
    assert_eq!(newest_error(&mut host).nsid.get(), 2);
    let (status, took) = flush(&mut host, u32::MAX);
    assert_eq!(status, Status::SUCCESS);
    assert!(took >= late, "{took}");
    assert!(flush(&mut host, 1).1 < late);
    // No other command is of all namespaces.
    let reply = host.io(IoCommand::Read(Read::new(u32::MAX, 0, 1)), None, BLOCK);
    assert_eq!(failed(&reply), Status::INVALID_NAMESPACE_OR_FORMAT);
}

#[test]
fn force_unit_access_waits_for_the_flash() {
    let mut host = buffered();
    let took = |host: &mut Host, slba, fua| {
        let start = host.now;
        let write = Write {
            fua,
            ..Write::new(1, slba, 4)
        };
        let reply = host.io(IoCommand::Write(write), Some(vec![1; 4 * BLOCK]), 0);
        assert_eq!(reply.status(), Status::SUCCESS);
        reply.due.saturating_sub(start)
    };
    let cached = took(&mut host, 0, false);
    let durable = took(&mut host, 4, true);
    // A program takes 700 us.
    assert!(cached < Nanos::from_us(100), "{cached}");
    assert!(durable >= Nanos::from_us(700), "{durable}");
    // With the write cache disabled, every write is like that.
    let cache = zonelab_nvme::feature::FeatureId::VOLATILE_WRITE_CACHE;
    assert_eq!(super::admin::get(&mut host, cache), 1);
    super::admin::set(&mut host, cache, 0);
    assert!(took(&mut host, 8, false) >= Nanos::from_us(700));
    // An append keeps the address that it got.
    let append = append(&mut host, ZONE, 4);
    assert_eq!(
        (append.status(), append.entry.result()),
        (Status::SUCCESS, ZONE)
    );
    assert!(host.inbox.iter().all(|done| done.spent.is_none()));
}

#[test]
fn a_normal_shutdown_waits_for_the_buffer() {
    let mut host = buffered();
    write(&mut host, 0, 4);
    write(&mut host, 4, 4);
    let cc = crate::host::enabled();
    use zonelab_nvme::property::{
        ControllerStatus, Property, ShutdownNotification, ShutdownStatus,
    };
    let set = zonelab_nvme::fabrics::PropertySet::new(
        Property::CC,
        cc.with_shn(ShutdownNotification::NORMAL).bits().into(),
    );
    let set = zonelab_nvme::fabrics::FabricsCommand::PropertySet(set)
        .to_entry()
        .unwrap();
    let cid = host.send(host.admin, set, None, 0);
    host.run(host.now);
    assert!(host.take(host.admin, cid).is_some());
    assert!(host.closed.is_empty(), "data is on its way to the flash");
    host.run(host.now.saturating_add(Nanos::from_ms(10)));
    assert_eq!(host.closed, [host.io]);
    let csts = ControllerStatus::from_bits(host.property(Property::CSTS) as u32);
    assert_eq!(csts.shst(), ShutdownStatus::COMPLETE);
}

#[test]
fn a_zone_with_a_random_write_area_is_written_anywhere_in_it() {
    let mut config = buffered_config();
    config.zones.zrwa = Some(ZrwaConfig {
        size_lbas: 16,
        flush_granularity_lbas: 4,
        max_areas: Some(2),
        explicit_flush: true,
    });
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    let open = ZoneManagementSend {
        zsaso: true,
        ..ZoneManagementSend::new(1, 0, ZoneSendAction::OPEN)
    };
    let reply = host.io(IoCommand::ZoneManagementSend(open), None, 0);
    assert_eq!(reply.status(), Status::SUCCESS);
    for slba in [8, 2, 8, 0] {
        assert_eq!(write(&mut host, slba, 2).status(), Status::SUCCESS);
    }
    assert_eq!(zones(&mut host)[0], (ZoneState::EXPLICITLY_OPENED, 0));
    let flush = send(&mut host, 7, ZoneSendAction::ZRWA_FLUSH);
    assert_eq!(flush.status(), Status::SUCCESS);
    assert_eq!(zones(&mut host)[0], (ZoneState::EXPLICITLY_OPENED, 8));
    assert_eq!(failed(&write(&mut host, 4, 2)), Status::ZONE_INVALID_WRITE);
    let close = ZoneManagementSend {
        zsaso: true,
        ..ZoneManagementSend::new(1, 0, ZoneSendAction::CLOSE)
    };
    let reply = host.io(IoCommand::ZoneManagementSend(close), None, 0);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
    // Where there are none, none can be asked for.
    let mut host = Host::new();
    let reply = host.io(IoCommand::ZoneManagementSend(open), None, 0);
    assert_eq!(failed(&reply), Status::INVALID_FIELD);
}
