//! Flexible data placement as a host has it.

use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, GetFeatures, GetLogPage, Identify, IoCommand, IoManagementReceive,
    IoManagementSend, SetFeatures, Write, ZoneAppend,
};
use zonelab_nvme::feature::{FeatureId, FeatureSelect};
use zonelab_nvme::identify::{Cns, CommandSet, IdentifyController, IdentifyNamespace};
use zonelab_nvme::log::{CommandEffectsLog, LogPageId, SupportedLogPages};
use zonelab_nvme::placement::{
    DATA_PLACEMENT_DTYPE, EnduranceGroupLog, HandleStatus, MediaReallocated, PlacementEvent,
    PlacementEventType, PlacementEventsEnable, PlacementEventsSelect, PlacementStatistics,
    ReceiveOperation, SendOperation,
};
use zonelab_nvme::queue::IoOpcode;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_ssd::config::{
    DriveConfig, Isolation, LogConfig, NamespaceConfig, NamespaceKind, ReclaimUnitHandles,
};
use zonelab_ssd::faults::FaultPlan;

use crate::host::{Host, Reply, small, with_faults};

const BLOCK: usize = 4096;
/// Blocks of a reclaim unit.
const UNIT: u64 = 128;

/// Two namespaces: one with a handle that the drive chose, and one with two that are
/// persistently isolated.
pub(crate) fn config() -> DriveConfig {
    let namespace = |zones, spare_zones, handles| NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig {
            handles,
            ..LogConfig::new(spare_zones)
        }),
        zones,
        max_active: None,
        max_open: None,
    };
    let handles = ReclaimUnitHandles {
        count: 2,
        isolation: Isolation::Persistently,
    };
    let mut config = small();
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.zones.count = 12;
    config.namespaces = vec![namespace(4, 3, None), namespace(8, 5, Some(handles))];
    config
}

fn host() -> Host {
    Host::of(with_faults(&config(), FaultPlan::default()))
}

fn page(host: &mut Host, lid: LogPageId, group: u16, lsp: u8, bytes: usize) -> Reply {
    let get = GetLogPage {
        lsp,
        lsi: group,
        ..GetLogPage::new(0, lid, bytes as u64 / 4)
    };
    host.admin(AdminCommand::GetLogPage(get), bytes)
}

fn write(host: &mut Host, directive: (u8, u16), slba: u64, nlb: u32) -> Status {
    let write = Write {
        dtype: directive.0,
        dspec: directive.1,
        ..Write::new(2, slba, nlb)
    };
    let data = vec![7; nlb as usize * BLOCK];
    host.io(IoCommand::Write(write), Some(data), 0).status()
}

fn placed(host: &mut Host, pid: u16, slba: u64, nlb: u32) {
    let status = write(host, (DATA_PLACEMENT_DTYPE, pid), slba, nlb);
    assert_eq!(status, Status::SUCCESS);
}

/// Placement identifier, handle and room of each handle.
fn handles(host: &mut Host, nsid: u32) -> Vec<(u16, u16, u64)> {
    let receive = IoManagementReceive::handle_status(nsid, 1_024);
    let reply = host.io(IoCommand::IoManagementReceive(receive), None, 4_096);
    let data = reply.data();
    let count = usize::from(u16::from_le_bytes([data[14], data[15]]));
    data[16..16 + count * 32]
        .chunks(32)
        .map(|of| HandleStatus::read_from_bytes(of).expect("a whole one"))
        .map(|of| (of.pid.get(), of.ruhid.get(), of.ruamw.get()))
        .collect()
}

fn update(host: &mut Host, nsid: u32, pids: &[u16]) -> Status {
    let send = IoManagementSend::handle_update(nsid, pids.len() as u32).expect("it fits");
    let data = pids.iter().flat_map(|pid| pid.to_le_bytes()).collect();
    let send = IoCommand::IoManagementSend(send);
    host.io(send, Some(data), 0).status()
}

fn select(phndl: u16, noet: u8) -> u32 {
    PlacementEventsSelect::default()
        .with_phndl(phndl)
        .with_noet(noet)
        .bits()
}

fn enable(host: &mut Host, nsid: u32, phndl: u16, types: &[u8], is_on: bool) -> Status {
    let noet = types.len() as u8;
    let set = SetFeatures {
        dword12: PlacementEventsEnable::default().with_fdpee(is_on).bits(),
        ..SetFeatures::new(nsid, FeatureId::FDP_EVENTS, select(phndl, noet))
    };
    let entry = set.to_entry().expect("it fits");
    let reply = host.call(host.admin, entry, Some(types.to_vec()), 0);
    reply.status()
}

fn events(host: &mut Host, lsp: u8) -> Vec<PlacementEvent> {
    let reply = page(host, LogPageId::FDP_EVENTS, 1, lsp, 64 * 64);
    let data = reply.data();
    let count = data[0] as usize;
    data[64..64 + count * 64]
        .chunks(64)
        .map(|of| PlacementEvent::read_from_bytes(of).expect("a whole one"))
        .collect()
}

#[test]
fn a_controller_says_that_it_has_flexible_data_placement() {
    let mut host = host();
    let identify = |nsid, cns| AdminCommand::Identify(Identify::new(nsid, cns, CommandSet::NVM));
    let reply = host.admin(identify(0, Cns::CONTROLLER), 4_096);
    let of = IdentifyController::read_from_bytes(reply.data()).unwrap();
    assert!(of.ctratt.fdps() && of.ctratt.endurance_groups());
    assert_eq!(of.endgidmax.get(), 1);
    let reply = host.admin(identify(2, Cns::NAMESPACE), 4_096);
    let of = IdentifyNamespace::read_from_bytes(reply.data()).unwrap();
    assert_eq!(of.endgid.get(), 1);

    let pages = page(&mut host, LogPageId::SUPPORTED_LOG_PAGES, 0, 0, 1_024);
    let pages = SupportedLogPages::read_from_bytes(pages.data()).unwrap();
    let effects = page(&mut host, LogPageId::COMMAND_EFFECTS, 0, 0, 4_096);
    let effects = CommandEffectsLog::read_from_bytes(effects.data()).unwrap();
    for lid in [0x09, 0x20, 0x21, 0x22, 0x23] {
        assert!(pages.lids[lid].lsupp());
    }
    for opcode in [
        IoOpcode::IO_MANAGEMENT_RECEIVE,
        IoOpcode::IO_MANAGEMENT_SEND,
    ] {
        assert!(effects.iocs[usize::from(opcode.0)].csupp());
    }
}

#[test]
fn there_is_one_endurance_group() {
    let mut host = host();
    let list = |host: &mut Host, first| {
        let identify = Identify {
            cns_specific_id: first,
            ..Identify::new(0, Cns::ENDURANCE_GROUPS, CommandSet::NVM)
        };
        let reply = host.admin(AdminCommand::Identify(identify), 4_096);
        reply.data()[..6].to_vec()
    };
    for first in [0, 1] {
        assert_eq!(list(&mut host, first), [1, 0, 1, 0, 0, 0]);
    }
    assert_eq!(list(&mut host, 2), [0; 6]);
    placed(&mut host, 1, 0, 8);
    let reply = page(&mut host, LogPageId::ENDURANCE_GROUP, 1, 0, 512);
    let of = EnduranceGroupLog::read_from_bytes(reply.data()).unwrap();
    assert_eq!((of.dur.get(), of.duw.get(), of.muw.get()), (0, 1, 1));
    assert_eq!((of.hwc.get(), of.avsp), (1, 100));
    assert_eq!(of.tegcap.get(), 4 * u128::from(UNIT) * BLOCK as u128);
    let refused = Host::new().admin(
        AdminCommand::Identify(Identify::new(0, Cns::ENDURANCE_GROUPS, CommandSet::NVM)),
        4_096,
    );
    assert_eq!(refused.status(), Status::INVALID_FIELD);
}

#[test]
fn one_without_has_none_of_it() {
    let mut host = Host::new();
    let identify = AdminCommand::Identify(Identify::new(0, Cns::CONTROLLER, CommandSet::NVM));
    let reply = host.admin(identify, 4_096);
    let of = IdentifyController::read_from_bytes(reply.data()).unwrap();
    assert!(!of.ctratt.fdps() && !of.ctratt.endurance_groups());
    assert_eq!(of.endgidmax.get(), 0);
    let refused = page(&mut host, LogPageId::FDP_STATISTICS, 1, 0, 64);
    assert_eq!(refused.status(), Status::INVALID_LOG_PAGE);
    let get = GetFeatures {
        dword11: 1,
        ..GetFeatures::new(0, FeatureId::FLEXIBLE_DATA_PLACEMENT)
    };
    let refused = host.admin(AdminCommand::GetFeatures(get), 0);
    assert_eq!(refused.status(), Status::INVALID_FIELD);
    let receive = IoCommand::IoManagementReceive(IoManagementReceive::handle_status(1, 16));
    let refused = host.io(receive, None, 64);
    assert_eq!(refused.status(), Status::INVALID_OPCODE);
    assert_eq!(update(&mut host, 1, &[0]), Status::INVALID_OPCODE);
    let write = Write {
        dtype: DATA_PLACEMENT_DTYPE,
        ..Write::new(1, 0, 1)
    };
    let refused = host.io(IoCommand::Write(write), Some(vec![0; BLOCK]), 0);
    assert_eq!(refused.status(), Status::INVALID_FIELD);
}

#[test]
fn logs_of_the_endurance_group() {
    let mut host = host();
    let configurations = page(&mut host, LogPageId::FDP_CONFIGURATIONS, 1, 0, 128);
    let mut expected = vec![0; 128];
    expected[4] = 16 + 64 + 3 * 4; // size of the page
    expected[16] = 64 + 3 * 4; // descriptor size
    expected[18] = 0x80; // valid
    expected[20] = 1; // reclaim groups
    expected[24] = 3; // reclaim unit handles
    expected[26] = 1; // two placement identifiers at most
    expected[28] = 2; // namespaces
    expected[32..40].copy_from_slice(&(UNIT * BLOCK as u64).to_le_bytes());
    expected[80] = 1; // initially isolated
    expected[84] = 2; // persistently isolated
    expected[88] = 2;
    assert_eq!(configurations.data(), expected);

    let usage = page(&mut host, LogPageId::RECLAIM_UNIT_HANDLE_USAGE, 1, 0, 32);
    let mut expected = vec![0; 32];
    expected[0] = 3;
    expected[8] = 2; // the drive chose it
    expected[16] = 1;
    expected[24] = 1;
    assert_eq!(usage.data(), expected);

    placed(&mut host, 1, 0, 8);
    let statistics = |host: &mut Host| {
        let reply = page(host, LogPageId::FDP_STATISTICS, 1, 0, 64);
        let of = PlacementStatistics::read_from_bytes(reply.data()).unwrap();
        (of.hbmw.get(), of.mbmw.get(), of.mbe.get())
    };
    let bytes = 8 * BLOCK as u128;
    assert_eq!(statistics(&mut host), (bytes, bytes, 0));
    // The same drive goes on, though it is empty again.
    let format = zonelab_nvme::command::FormatNvm::new(u32::MAX, 1);
    let reply = host.admin(AdminCommand::FormatNvm(format), 0);
    assert_eq!(reply.status(), Status::SUCCESS);
    assert_eq!(statistics(&mut host), (bytes, bytes, 0));

    for group in [0, 2, u16::MAX] {
        for lid in 0x20..=0x23 {
            let refused = page(&mut host, LogPageId(lid), group, 0, 64);
            assert_eq!(refused.status(), Status::INVALID_FIELD);
        }
    }
}

#[test]
fn writes_go_where_their_placement_identifier_says() {
    let mut host = host();
    assert_eq!(handles(&mut host, 1), [(0, 0, UNIT)]);
    assert_eq!(handles(&mut host, 2), [(0, 1, UNIT), (1, 2, UNIT)]);
    placed(&mut host, 1, 0, 8);
    assert_eq!(write(&mut host, (0, 1), 8, 4), Status::SUCCESS);
    assert_eq!(handles(&mut host, 2), [(0, 1, UNIT - 4), (1, 2, UNIT - 8)]);
    // One that there is not goes through the default handle.
    placed(&mut host, 2, 12, 4);
    assert_eq!(handles(&mut host, 2), [(0, 1, UNIT - 8), (1, 2, UNIT - 8)]);
    for dtype in [1, 3, 15] {
        let refused = write(&mut host, (dtype, 0), 0, 1);
        assert_eq!(refused, Status::INVALID_FIELD);
    }
    let append = IoCommand::ZoneAppend(ZoneAppend::new(2, 0, 1));
    let refused = host.io(append, Some(vec![0; BLOCK]), 0);
    assert_eq!(refused.status(), Status::INVALID_OPCODE);
}

#[test]
fn handles_are_updated_and_their_status_is_as_long_as_it_is_asked_for() {
    let mut host = host();
    placed(&mut host, 1, 0, 8);
    assert_eq!(update(&mut host, 2, &[1]), Status::SUCCESS);
    assert_eq!(handles(&mut host, 2), [(0, 1, UNIT), (1, 2, UNIT)]);
    assert_eq!(update(&mut host, 2, &[0, 2]), Status::INVALID_FIELD);
    assert_eq!(update(&mut host, 2, &[0, 1, 0]), Status::INVALID_FIELD);
    let namespace = Status::INVALID_NAMESPACE_OR_FORMAT;
    assert_eq!(update(&mut host, 3, &[0]), namespace);
    let short = IoManagementReceive::handle_status(2, 4);
    let reply = host.io(IoCommand::IoManagementReceive(short), None, 16);
    let mut expected = [0; 16];
    expected[14] = 2;
    assert_eq!(reply.data(), expected);
    // Operations that there are not, and those that do nothing.
    for (mo, status) in [(0, Status::SUCCESS), (2, Status::INVALID_FIELD)] {
        let receive = IoManagementReceive {
            mo: ReceiveOperation(mo),
            ..short
        };
        let reply = host.io(IoCommand::IoManagementReceive(receive), None, 16);
        assert_eq!(reply.status(), status);
        let send = IoManagementSend {
            nsid: 2,
            mo: SendOperation(mo),
            mos: 0,
        };
        let reply = host.io(IoCommand::IoManagementSend(send), None, 0);
        assert_eq!(reply.status(), status);
    }
}

#[test]
fn features_of_flexible_data_placement() {
    let mut host = host();
    let get = |dword11, sel| {
        AdminCommand::GetFeatures(GetFeatures {
            dword11,
            sel,
            ..GetFeatures::new(0, FeatureId::FLEXIBLE_DATA_PLACEMENT)
        })
    };
    let current = FeatureSelect::CURRENT;
    let reply = host.admin(get(1, current), 0);
    assert_eq!((reply.status(), reply.entry.result()), (Status::SUCCESS, 1));
    let refused = host.admin(get(2, current), 0);
    assert_eq!(refused.status(), Status::INVALID_FIELD);
    // There are namespaces, so that it stays enabled.
    let mut set = SetFeatures::new(0, FeatureId::FLEXIBLE_DATA_PLACEMENT, 1);
    let refused = host.admin(AdminCommand::SetFeatures(set), 0);
    assert_eq!(refused.status(), Status::COMMAND_SEQUENCE_ERROR);
    set.dword11 = 0;
    let refused = host.admin(AdminCommand::SetFeatures(set), 0);
    assert_eq!(refused.status(), Status::INVALID_FIELD);

    let get_events = |host: &mut Host, nsid, phndl, noet, sel| {
        let get = GetFeatures {
            dword11: select(phndl, noet),
            sel,
            ..GetFeatures::new(nsid, FeatureId::FDP_EVENTS)
        };
        host.admin(AdminCommand::GetFeatures(get), 510)
    };
    let reply = get_events(&mut host, 2, 1, 255, current);
    assert_eq!(reply.entry.result(), 3);
    assert_eq!(reply.data()[..8], [0x00, 0, 0x03, 0, 0x80, 0, 0, 0]);
    let set = enable(&mut host, 2, 1, &[0x00, 0x80], true);
    assert_eq!(set, Status::SUCCESS);
    let reply = get_events(&mut host, 2, 1, 255, current);
    assert_eq!(reply.data()[..8], [0x00, 1, 0x03, 0, 0x80, 1, 0, 0]);
    let reply = get_events(&mut host, 2, 1, 255, FeatureSelect::DEFAULT);
    assert_eq!(reply.data()[..8], [0x00, 0, 0x03, 0, 0x80, 0, 0, 0]);
    let reply = get_events(&mut host, 2, 0, 1, current);
    assert_eq!(reply.entry.result(), 1);
    assert_eq!(reply.data()[..4], [0x00, 0, 0, 0]);
    let set = enable(&mut host, 2, 1, &[0x00], false);
    assert_eq!(set, Status::SUCCESS);
    let reply = get_events(&mut host, 2, 1, 255, current);
    assert_eq!(reply.data()[..8], [0x00, 0, 0x03, 0, 0x80, 1, 0, 0]);

    let set = enable(&mut host, 2, 2, &[0x00], true);
    assert_eq!(set, Status::INVALID_FIELD, "there is no such handle");
    let set = enable(&mut host, 2, 0, &[0x01], true);
    assert_eq!(set, Status::INVALID_FIELD, "it never happens");
    let set = enable(&mut host, 3, 0, &[0x00], true);
    assert_eq!(set, Status::INVALID_NAMESPACE_OR_FORMAT);
}

#[test]
fn events_are_told_if_they_are_enabled() {
    let mut host = host();
    placed(&mut host, 1, 0, 8);
    assert_eq!(update(&mut host, 2, &[1]), Status::SUCCESS);
    placed(&mut host, 9, 0, 1);
    assert_eq!(events(&mut host, 1), [], "nobody wants to know");
    let all = [0x00, 0x03, 0x80];
    for phndl in [0, 1] {
        assert_eq!(enable(&mut host, 2, phndl, &all, true), Status::SUCCESS);
    }
    placed(&mut host, 1, 0, 8);
    assert_eq!(update(&mut host, 2, &[1]), Status::SUCCESS);
    placed(&mut host, 9, 8, 1);
    let told = events(&mut host, 1);
    let seen: Vec<_> = told
        .iter()
        .map(|of| (of.event_type, of.pid.get(), of.nsid.get(), of.ruhid))
        .collect();
    let left = PlacementEventType::NOT_FULLY_WRITTEN;
    let invalid = PlacementEventType::INVALID_PLACEMENT_IDENTIFIER;
    assert_eq!(seen, [(left, 1, 2, 2), (invalid, 9, 2, 1)]);
    assert!(told.iter().all(|of| of.fdpef.bits() == 0b111));
    assert_eq!(events(&mut host, 0), []);
    // Data that stays is moved away from data that does not.
    let mut x = 1_u64;
    for _ in 0..20 * UNIT {
        x = x
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        placed(&mut host, 1, (x >> 33) % (3 * UNIT), 1);
    }
    let told = events(&mut host, 0);
    assert!(!told.is_empty(), "data was moved");
    for event in told {
        assert_eq!(event.event_type, PlacementEventType::MEDIA_REALLOCATED);
        assert_eq!((event.pid.get(), event.ruhid), (1, 2));
        let moved = MediaReallocated::read_from_bytes(&event.specific).unwrap();
        assert!(moved.flags.lbav() && moved.lba.get() < 3 * UNIT);
        assert!(moved.nlbam.get() > 0);
    }
}
