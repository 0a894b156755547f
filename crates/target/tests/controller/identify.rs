//! Identify, byte by byte where a Linux host reads it.

use std::net::{IpAddr, Ipv4Addr};

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{AdminCommand, GetLogPage, Identify};
use zonelab_nvme::fabrics::{Connect, DISCOVERY_NQN};
use zonelab_nvme::identify::{Cns, CommandSet, NamespaceIdType, namespace_ids};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::property::CommandSetSelected;
use zonelab_ssd::Drive;
use zonelab_ssd::config::{NamespaceConfig, NamespaceKind};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_target::controller::{DiscoveryAddress, Subsystem, SubsystemSettings};

use crate::host::{Host, NQN, connect, connect_data, enabled, small, with_faults};

pub(crate) fn controller() -> AdminCommand {
    of(0, Cns::CONTROLLER, CommandSet::NVM)
}

fn of(nsid: u32, cns: Cns, csi: CommandSet) -> AdminCommand {
    AdminCommand::Identify(Identify::new(nsid, cns, csi))
}

fn bytes(host: &mut Host, nsid: u32, cns: Cns, csi: CommandSet) -> Vec<u8> {
    host.admin(of(nsid, cns, csi), 4096).data().to_vec()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(
        bytes[at..at + 2]
            .try_into()
            .expect("the range has its length"),
    )
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        bytes[at..at + 4]
            .try_into()
            .expect("the range has its length"),
    )
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        bytes[at..at + 8]
            .try_into()
            .expect("the range has its length"),
    )
}

#[test]
fn the_controller_structure_has_what_a_linux_host_reads() {
    let mut host = Host::new();
    let id = bytes(&mut host, 0, Cns::CONTROLLER, CommandSet::NVM);
    assert_eq!(&id[24..46], b"zonelab emulated drive");
    assert_eq!(id[76], 0, "CMIC: no multipath");
    assert_eq!(id[77], 8, "MDTS: 1 MiB");
    assert_eq!(u16_at(&id, 78), host.cntlid);
    assert_eq!(u32_at(&id, 80), 0x0002_0000, "VER");
    assert_eq!(u32_at(&id, 92), 1 << 27 | 1 << 8, "OAES");
    assert_eq!(
        u32_at(&id, 96),
        1 << 18 | 1 << 6 | 1,
        "CTRATT: RHII, TBKAS, 128-bit host identifier"
    );
    assert_eq!(id[111], 1, "CNTRLTYPE: I/O");
    assert_eq!(u16_at(&id, 256), 1 << 1, "OACS: Format NVM");
    assert_eq!((id[258], id[259]), (3, 3), "ACL, AERL");
    assert_eq!(id[261], 1 << 1 | 1 << 2, "LPA: effects, extended");
    assert_eq!(id[262], 63, "ELPE");
    assert_eq!(u16_at(&id, 320), 1, "KAS: 100 ms");
    assert_eq!((id[512], id[513]), (0x66, 0x44), "SQES, CQES");
    assert_eq!(u16_at(&id, 514), 128, "MAXCMD");
    assert_eq!(u32_at(&id, 516), 1, "NN");
    assert_eq!(
        u16_at(&id, 520),
        0b1011_1101,
        "ONCS: all but Write Uncorrectable, Timestamp and Copy"
    );
    assert_eq!(id[525], 3 << 1, "VWC: none, a flush of all");
    assert_eq!(u32_at(&id, 536), 1 | 1 << 20 | 1 << 21, "SGLS");
    assert!(id[768..].starts_with(NQN.as_bytes()), "SUBNQN");
    assert_eq!(u32_at(&id, 1792), (64 + 8192) / 16, "IOCCSZ");
    assert_eq!(u32_at(&id, 1796), 1, "IORCSZ");
    assert_eq!(u16_at(&id, 1800), 0, "ICDOFF");
    assert_eq!(id[1802], 0, "FCATT: dynamic model");
    assert_eq!(id[1803], 1, "MSDBD");
}

#[test]
fn a_zoned_namespace_says_its_size_and_its_limits() {
    let mut host = Host::new();
    let ns = bytes(&mut host, 1, Cns::NAMESPACE, CommandSet::NVM);
    assert_eq!(u64_at(&ns, 0), 6 * 160, "NSZE");
    assert_eq!(u64_at(&ns, 8), 6 * 160, "NCAP");
    assert_eq!((ns[25], ns[26]), (1, 1), "two formats, of which the second");
    assert_eq!(ns[30], 0, "NMIC: private");
    assert_eq!(ns[31], 0b1111_1110, "RESCAP: all types, nothing is kept");
    assert_eq!(u64_at(&ns, 48), 6 * 128 * 4096, "NVMCAP");
    assert_eq!((ns[128 + 2], ns[132 + 2]), (9, 12), "LBADS");
    let zns = bytes(&mut host, 1, Cns::COMMAND_SET_NAMESPACE, CommandSet::ZNS);
    assert_eq!(u16_at(&zns, 2), 0, "OZCS");
    assert_eq!(u32_at(&zns, 4), 3, "MAR");
    assert_eq!(u32_at(&zns, 8), 2, "MOR");
    assert_eq!(u64_at(&zns, 2816), 160 * 8, "ZSZE with 512 bytes");
    assert_eq!(u64_at(&zns, 2832), 160, "ZSZE");
    assert_eq!(zns[2832 + 8], 1, "ZDES");
    let nvm = bytes(&mut host, 1, Cns::COMMAND_SET_NAMESPACE, CommandSet::NVM);
    assert!(nvm.iter().all(|byte| *byte == 0));
    let common = bytes(
        &mut host,
        1,
        Cns::COMMAND_SET_INDEPENDENT_NAMESPACE,
        CommandSet::NVM,
    );
    assert_eq!((common[1], common[14]), (0, 1), "private and ready");
    assert_eq!(common[2], ns[31], "RESCAP");
}

#[test]
fn a_shared_namespace_says_so() {
    let settings = SubsystemSettings {
        is_shared: true,
        ..SubsystemSettings::new(NQN)
    };
    let drive = FaultyDrive::from(Drive::new(&small()));
    let mut host = Host::of(Subsystem::new(drive, settings).unwrap());
    let id = bytes(&mut host, 0, Cns::CONTROLLER, CommandSet::NVM);
    assert_eq!(id[76], 1 << 1, "CMIC: several controllers");
    let ns = bytes(&mut host, 1, Cns::NAMESPACE, CommandSet::NVM);
    let cns = Cns::COMMAND_SET_INDEPENDENT_NAMESPACE;
    let common = bytes(&mut host, 1, cns, CommandSet::NVM);
    assert_eq!((ns[30], common[1]), (1, 1), "NMIC: shared");
}

#[test]
fn the_append_limit_is_said_if_it_is_less_than_the_transfer_limit() {
    let mut host = Host::new();
    let zns = bytes(&mut host, 0, Cns::COMMAND_SET_CONTROLLER, CommandSet::ZNS);
    assert_eq!(zns[0], 0, "as MDTS");
    let mut config = small();
    config.front_end.max_append_bytes = Some(200 << 10);
    config.front_end.max_transfer_bytes = Some(300 << 10);
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    let zns = bytes(&mut host, 0, Cns::COMMAND_SET_CONTROLLER, CommandSet::ZNS);
    assert_eq!(zns[0], 5, "128 KiB");
    let id = bytes(&mut host, 0, Cns::CONTROLLER, CommandSet::NVM);
    assert_eq!(id[77], 6, "256 KiB");
}

#[test]
fn identifiers_follow_from_the_name_of_the_subsystem() {
    let serial = |nqn: &str| SubsystemSettings::new(nqn).serial_number;
    assert_ne!(serial(NQN), serial("nqn.2026-01.io.zonelab:tess"));
    let list = bytes(
        &mut Host::new(),
        1,
        Cns::NAMESPACE_ID_DESCRIPTORS,
        CommandSet::NVM,
    );
    let again = bytes(
        &mut Host::new(),
        1,
        Cns::NAMESPACE_ID_DESCRIPTORS,
        CommandSet::NVM,
    );
    assert_eq!(list, again);
    let found: Vec<_> = namespace_ids(&list).collect();
    let types: Vec<_> = found.iter().map(|(nidt, nid)| (*nidt, nid.len())).collect();
    assert_eq!(
        types,
        [
            (NamespaceIdType::EUI64, 8),
            (NamespaceIdType::NGUID, 16),
            (NamespaceIdType::UUID, 16),
            (NamespaceIdType::CSI, 1),
        ]
    );
    assert_eq!(found[2].1[6] >> 4, 8, "UUID of version 8");
    assert_eq!(found[2].1[8] >> 6, 2, "and of the variant of RFC 9562");
    assert_eq!(found[3].1, [2], "zoned");
    let ns = bytes(&mut Host::new(), 1, Cns::NAMESPACE, CommandSet::NVM);
    assert_eq!((&ns[104..120], &ns[120..128]), (found[1].1, found[0].1));
}

#[test]
fn lists_name_the_namespaces_after_the_one_given() {
    let mut config = small();
    let part = |zones| NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones,
        max_active: None,
        max_open: None,
    };
    config.namespaces = vec![part(2), part(1), part(3)];
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    let mut list = |nsid, cns, csi| {
        let list = bytes(&mut host, nsid, cns, csi);
        let ids: Vec<u32> = (0..4).map(|at| u32_at(&list, 4 * at)).collect();
        ids
    };
    assert_eq!(
        list(0, Cns::ACTIVE_NAMESPACES, CommandSet::NVM),
        [1, 2, 3, 0]
    );
    assert_eq!(
        list(1, Cns::ACTIVE_NAMESPACES, CommandSet::NVM),
        [2, 3, 0, 0]
    );
    assert_eq!(
        list(0, Cns::COMMAND_SET_ACTIVE_NAMESPACES, CommandSet::ZNS),
        [1, 2, 3, 0]
    );
    assert_eq!(
        list(0, Cns::COMMAND_SET_ACTIVE_NAMESPACES, CommandSet::NVM),
        [0; 4]
    );
    let mut ids: Vec<Vec<u8>> = (1..=3)
        .map(|nsid| {
            bytes(
                &mut host,
                nsid,
                Cns::NAMESPACE_ID_DESCRIPTORS,
                CommandSet::NVM,
            )
        })
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has identifiers of its own");
    let limits = bytes(&mut host, 3, Cns::COMMAND_SET_NAMESPACE, CommandSet::ZNS);
    assert_eq!(
        (u32_at(&limits, 4), u32_at(&limits, 8)),
        (u32::MAX, u32::MAX)
    );
    let controllers = bytes(&mut host, 0, Cns::CONTROLLERS, CommandSet::NVM);
    assert_eq!((u16_at(&controllers, 0), u16_at(&controllers, 2)), (1, 1));
    let mut sets = Identify::new(0, Cns::COMMAND_SETS, CommandSet::NVM);
    let other = host.admin(AdminCommand::Identify(sets), 4096);
    assert_eq!(other.status(), Status::INVALID_FIELD, "controller 0");
    sets.cntid = 0xffff;
    let sets = host.admin(AdminCommand::Identify(sets), 4096);
    assert_eq!(u64_at(sets.data(), 0), 0b101, "NVM and ZNS");
}

#[test]
fn what_is_not_there_is_refused() {
    let mut host = Host::new();
    let mut status = |nsid, cns, csi| {
        let reply = host.admin(of(nsid, cns, csi), 4096);
        assert!(reply.entry.status.dnr() && reply.data.is_none());
        reply.status()
    };
    let namespace = Status::INVALID_NAMESPACE_OR_FORMAT;
    for nsid in [0, 2, u32::MAX] {
        assert_eq!(status(nsid, Cns::NAMESPACE, CommandSet::NVM), namespace);
        assert_eq!(
            status(nsid, Cns::COMMAND_SET_NAMESPACE, CommandSet::ZNS),
            namespace
        );
        assert_eq!(
            status(nsid, Cns::NAMESPACE_ID_DESCRIPTORS, CommandSet::NVM),
            namespace
        );
    }
    assert_eq!(
        status(u32::MAX, Cns::ACTIVE_NAMESPACES, CommandSet::NVM),
        namespace
    );
    let field = Status::INVALID_FIELD;
    assert_eq!(
        status(1, Cns::COMMAND_SET_NAMESPACE, CommandSet::KEY_VALUE),
        field
    );
    assert_eq!(status(0, Cns::COMMAND_SET_CONTROLLER, CommandSet(9)), field);
    assert_eq!(status(0, Cns(0xff), CommandSet::NVM), field);
    let short = host.admin(controller(), 2048);
    assert_eq!(short.status(), Status::DATA_SGL_LENGTH_INVALID);
}

#[test]
fn a_discovery_controller_lists_where_the_subsystem_is() {
    let mut settings = SubsystemSettings::new(NQN);
    let at = |port, has_tls| DiscoveryAddress {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        has_tls,
    };
    settings.addresses = vec![at(4420, false), at(4421, true)];
    let drive = FaultyDrive::from(Drive::new(&small()));
    let mut subsystem = Subsystem::new(drive, settings).unwrap();
    let data = connect_data(DISCOVERY_NQN, 0xffff);
    let admin = Connect::new(0, 32);
    let (queue, cntlid) = connect(&mut subsystem, Nanos::ZERO, admin, &data).unwrap();
    let mut host = Host::admin_only(subsystem, Connect::new(0, 32));
    (host.admin, host.cntlid) = (queue, cntlid);
    host.set_cc(enabled().with_css(CommandSetSelected::NVM));
    let id = bytes(&mut host, 0, Cns::CONTROLLER, CommandSet::NVM);
    assert_eq!(id[111], 2, "CNTRLTYPE: discovery");
    assert!(id[768..].starts_with(DISCOVERY_NQN.as_bytes()));
    assert_eq!(u32_at(&id, 92), 1 << 31, "OAES");
    let other = host.admin(of(1, Cns::NAMESPACE, CommandSet::NVM), 4096);
    assert_eq!(other.status(), Status::INVALID_FIELD);

    let log = GetLogPage::new(0, LogPageId::DISCOVERY, 3072 / 4);
    let log = host.admin(AdminCommand::GetLogPage(log), 3072);
    let log = log.data();
    assert_eq!((u64_at(log, 0), u64_at(log, 8), u16_at(log, 16)), (1, 2, 0));
    let entry = &log[2048..];
    assert_eq!(entry[3], 1 | 1 << 2, "TREQ: a secure channel is required");
    assert_eq!(&entry[32..37], b"4421 ");
    assert_eq!(entry[768], 2, "SECTYPE: TLS 1.3");
    let entry = &log[1024..2048];
    assert_eq!(entry[768], 0, "SECTYPE: none");
    assert_eq!(
        &entry[..4],
        [3, 1, 2, 2 | 1 << 2],
        "TCP, IPv4, NVM subsystem"
    );
    assert_eq!(u16_at(entry, 6), 0xffff);
    assert_eq!(&entry[32..37], b"4420 ");
    assert!(entry[256..].starts_with(NQN.as_bytes()));
    assert_eq!(&entry[512..522], b"127.0.0.1 ");

    // It moves: who waits for it is told.
    let request = AdminCommand::AsynchronousEventRequest.to_entry().unwrap();
    let cid = host.send(host.admin, request, None, 0);
    host.subsystem.set_addresses(Vec::new());
    let event = host.wait(host.admin, cid);
    assert_eq!(event.entry.result(), 0x0070_f002);
    let log = GetLogPage::new(0, LogPageId::DISCOVERY, 1024 / 4);
    let log = host.admin(AdminCommand::GetLogPage(log), 1024);
    assert_eq!((u64_at(log.data(), 0), u64_at(log.data(), 8)), (2, 0));
}
