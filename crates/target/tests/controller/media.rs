//! Commands on blocks besides reads and writes, and conventional namespaces.

use zonelab_device::{CopyLimits, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, Compare, CopyCommand, CopyRange, DatasetManagement, DatasetRange, GetLogPage,
    Identify, IoCommand, Read, Verify, Write, WriteZeroes, ZoneManagementSend,
};
use zonelab_nvme::identify::{
    Cns, CommandSet, IdentifyController, IdentifyControllerNvm, IdentifyNamespace, NamespaceList,
};
use zonelab_nvme::log::{CommandEffectsLog, LogPageId, SmartLog};
use zonelab_nvme::queue::IoOpcode;
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{
    FillExtent, FinishConfig, LogConfig, MappingConfig, NamespaceConfig, NamespaceKind,
};
use zonelab_ssd::faults::FaultPlan;

use crate::host::{Host, small, with_faults};

const BLOCK: usize = 4096;
const ZONE: u64 = 160;
/// Blocks of the conventional namespace of [`host`].
const BLOCKS: u64 = 2 * 128;

/// Two zones, and a conventional namespace on four.
fn host() -> Host {
    let mut config = small();
    let zoned = NamespaceConfig {
        kind: NamespaceKind::Zoned,
        zones: 2,
        max_active: None,
        max_open: None,
    };
    let conventional = NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(2)),
        zones: 4,
        ..zoned
    };
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.namespaces = vec![zoned, conventional];
    config.copy = Some(CopyLimits {
        max_ranges: 3,
        max_range_lbas: 8,
        max_lbas: 12,
    });
    Host::of(with_faults(&config, FaultPlan::default()))
}

fn write(host: &mut Host, nsid: u32, slba: u64, bytes: &[u8]) -> Status {
    let data: Vec<u8> = bytes.iter().flat_map(|byte| [*byte; BLOCK]).collect();
    let write = Write::new(nsid, slba, bytes.len() as u32);
    host.io(IoCommand::Write(write), Some(data), 0).status()
}

/// The first byte of each block.
fn read(host: &mut Host, nsid: u32, slba: u64, nlb: u32) -> Vec<u8> {
    let read = Read::new(nsid, slba, nlb);
    let reply = host.io(IoCommand::Read(read), None, nlb as usize * BLOCK);
    let blocks = reply.data().chunks(BLOCK);
    blocks.map(|block| block[0]).collect()
}

fn zeroes(host: &mut Host, nsid: u32, slba: u64, nlb: u32) -> Status {
    let zeroes = WriteZeroes::new(nsid, slba, nlb);
    host.io(IoCommand::WriteZeroes(zeroes), None, 0).status()
}

fn dataset(host: &mut Host, command: DatasetManagement, ranges: &[(u64, u32)]) -> Status {
    let range = |(slba, nlb): &(u64, u32)| DatasetRange {
        slba: (*slba).into(),
        nlb: (*nlb).into(),
        ..DatasetRange::default()
    };
    let data = ranges.iter().flat_map(|of| range(of).as_bytes().to_vec());
    let data = data.collect();
    let command = IoCommand::DatasetManagement(command);
    host.io(command, Some(data), 0).status()
}

fn copy(host: &mut Host, command: CopyCommand, sources: &[(u64, u16)]) -> Status {
    let range = |(slba, nlb): &(u64, u16)| CopyRange {
        slba: (*slba).into(),
        nlb_z: (nlb - 1).into(),
        ..CopyRange::default()
    };
    let data = sources.iter().flat_map(|of| range(of).as_bytes().to_vec());
    let data = data.collect();
    host.io(IoCommand::Copy(command), Some(data), 0).status()
}

fn identify<T: FromBytes>(host: &mut Host, nsid: u32, cns: Cns, csi: CommandSet) -> T {
    let identify = AdminCommand::Identify(Identify::new(nsid, cns, csi));
    let reply = host.admin(identify, 4096);
    T::read_from_bytes(reply.data()).expect("it has 4096 bytes")
}

fn smart(host: &mut Host) -> SmartLog {
    let get = GetLogPage::new(0, LogPageId::SMART, 512 / 4);
    let reply = host.admin(AdminCommand::GetLogPage(get), 512);
    SmartLog::read_from_bytes(reply.data()).expect("it has 512 bytes")
}

#[test]
fn a_compare_finds_a_difference_and_a_verify_reads() {
    let mut host = host();
    for nsid in [1, 2] {
        assert_eq!(write(&mut host, nsid, 0, &[1, 2]), Status::SUCCESS);
        for (second, status) in [(2, Status::SUCCESS), (3, Status::COMPARE_FAILURE)] {
            let data = [vec![1; BLOCK], vec![second; BLOCK]].concat();
            let compare = IoCommand::Compare(Compare::new(nsid, 0, 2));
            assert_eq!(host.io(compare, Some(data), 0).status(), status);
        }
        let short = IoCommand::Compare(Compare::new(nsid, 0, 2));
        assert_eq!(
            host.io(short, Some(vec![1; BLOCK]), 0).status(),
            Status::DATA_SGL_LENGTH_INVALID
        );
        let mut verify =
            |slba, nlb| host.io(IoCommand::Verify(Verify::new(nsid, slba, nlb)), None, 0);
        assert_eq!(verify(0, 100).status(), Status::SUCCESS);
        assert_eq!(verify(2 * ZONE, 1).status(), Status::LBA_OUT_OF_RANGE);
    }
    let smart = smart(&mut host);
    assert_eq!((smart.hrc.get(), smart.hwc.get()), (8, 2));
    assert_eq!(smart.mdie.get(), 0, "a difference is no error of the media");
}

#[test]
fn zeroes_are_written_where_a_write_could_be() {
    let mut host = host();
    assert_eq!(write(&mut host, 1, 0, &[1, 2]), Status::SUCCESS);
    assert_eq!(zeroes(&mut host, 1, 1, 1), Status::ZONE_INVALID_WRITE);
    assert_eq!(zeroes(&mut host, 1, 2, 127), Status::ZONE_BOUNDARY_ERROR);
    assert_eq!(zeroes(&mut host, 1, 2, 2), Status::SUCCESS);
    assert_eq!(write(&mut host, 1, 4, &[5]), Status::SUCCESS);
    assert_eq!(read(&mut host, 1, 0, 5), [1, 2, 0, 0, 5]);

    assert_eq!(write(&mut host, 2, 0, &[1, 2, 3]), Status::SUCCESS);
    assert_eq!(zeroes(&mut host, 2, 1, 1), Status::SUCCESS);
    assert_eq!(read(&mut host, 2, 0, 3), [1, 0, 3]);
    assert_eq!(zeroes(&mut host, 2, BLOCKS, 1), Status::LBA_OUT_OF_RANGE);
}

#[test]
fn what_is_deallocated_reads_as_zero_and_a_hint_changes_nothing() {
    let mut host = host();
    assert_eq!(write(&mut host, 2, 0, &[1, 2, 3, 4]), Status::SUCCESS);
    let hint = DatasetManagement {
        ad: false,
        idr: true,
        ..DatasetManagement::deallocate(2, 1)
    };
    assert_eq!(dataset(&mut host, hint, &[(0, 4)]), Status::SUCCESS);
    assert_eq!(read(&mut host, 2, 0, 4), [1, 2, 3, 4]);

    // Linux sends more ranges than count.
    let two = DatasetManagement::deallocate(2, 2);
    let mut ranges = vec![(0, 4); 256];
    ranges[..2].copy_from_slice(&[(0, 1), (2, 1)]);
    assert_eq!(dataset(&mut host, two, &ranges), Status::SUCCESS);
    assert_eq!(read(&mut host, 2, 0, 4), [0, 2, 0, 4]);

    let length = Status::DATA_SGL_LENGTH_INVALID;
    assert_eq!(dataset(&mut host, two, &[(0, 1)]), length);
    let beyond = [(1, 1), (BLOCKS, 1)];
    let status = dataset(&mut host, two, &beyond);
    assert_eq!(status, Status::LBA_OUT_OF_RANGE);
    assert_eq!(read(&mut host, 2, 0, 4), [0, 2, 0, 4]);

    // A zone keeps its data until it is reset.
    assert_eq!(write(&mut host, 1, 0, &[7]), Status::SUCCESS);
    let one = DatasetManagement::deallocate(1, 1);
    assert_eq!(dataset(&mut host, one, &[(0, 1)]), Status::SUCCESS);
    assert_eq!(read(&mut host, 1, 0, 1), [7]);
}

#[test]
fn a_copy_puts_ranges_one_behind_the_other_within_its_limits() {
    let mut host = host();
    let blocks: Vec<u8> = (1..=20).collect();
    assert_eq!(write(&mut host, 1, 0, &blocks), Status::SUCCESS);
    let to = |nr| CopyCommand::new(1, ZONE, nr);
    let status = copy(&mut host, to(2), &[(10, 2), (0, 3)]);
    assert_eq!(status, Status::SUCCESS);
    assert_eq!(read(&mut host, 1, ZONE, 5), [11, 12, 1, 2, 3]);

    let too_much = Status::COMMAND_SIZE_LIMIT_EXCEEDED;
    let next = |nr| CopyCommand::new(1, ZONE + 5, nr);
    for sources in [&[(0, 1); 4][..], &[(0, 9)], &[(0, 8), (0, 5)]] {
        let command = next(sources.len() as u16);
        assert_eq!(copy(&mut host, command, sources), too_much);
    }
    for (command, status) in [
        (to(1), Status::ZONE_INVALID_WRITE),
        (
            CopyCommand {
                desfmt: 1,
                ..next(1)
            },
            Status::INVALID_FIELD,
        ),
        (next(2), Status::DATA_SGL_LENGTH_INVALID),
        (CopyCommand::new(2, 0, 1), Status::INVALID_OPCODE),
    ] {
        assert_eq!(copy(&mut host, command, &[(0, 1)]), status);
    }
    assert_eq!(copy(&mut host, next(1), &[(19, 1)]), Status::SUCCESS);
    assert_eq!(read(&mut host, 1, ZONE + 4, 2), [3, 20]);
}

#[test]
fn a_conventional_namespace_is_one_of_the_nvm_command_set() {
    let mut host = host();
    let ids: NamespaceList = identify(
        &mut host,
        0,
        Cns::COMMAND_SET_ACTIVE_NAMESPACES,
        CommandSet::NVM,
    );
    assert_eq!([ids.nsid[0].get(), ids.nsid[1].get()], [2, 0]);
    let ns: IdentifyNamespace = identify(&mut host, 2, Cns::NAMESPACE, CommandSet::NVM);
    assert_eq!((ns.nsze.get(), ns.ncap.get()), (BLOCKS, BLOCKS));
    assert_eq!((ns.dlfeat, ns.mssrl.get(), ns.mcl.get()), (0b1001, 0, 0));

    // Written in any order, and again.
    for (slba, byte) in [(BLOCKS - 1, 1), (0, 2), (0, 3)] {
        assert_eq!(write(&mut host, 2, slba, &[byte]), Status::SUCCESS);
    }
    assert_eq!(read(&mut host, 2, 0, 2), [3, 0]);
    assert_eq!(read(&mut host, 2, BLOCKS - 1, 1), [1]);
    assert_eq!(write(&mut host, 2, BLOCKS, &[1]), Status::LBA_OUT_OF_RANGE);
    let open = ZoneManagementSend::new(2, 0, ZoneSendAction::OPEN);
    let reply = host.io(IoCommand::ZoneManagementSend(open), None, 0);
    assert_eq!(reply.status(), Status::INVALID_OPCODE);
}

#[test]
fn optional_commands_are_announced_and_have_their_limits() {
    let mut host = host();
    let controller: IdentifyController = identify(&mut host, 0, Cns::CONTROLLER, CommandSet::NVM);
    // Compare, Dataset Management, Write Zeroes, Save/Select, reservations, Verify, Copy.
    assert_eq!(controller.oncs.bits(), 0b1_1011_1101);
    assert_eq!(controller.ocfs.get(), 1);
    let ns: IdentifyNamespace = identify(&mut host, 1, Cns::NAMESPACE, CommandSet::NVM);
    let limits = (ns.mssrl.get(), ns.mcl.get(), ns.msrc_z);
    assert_eq!((limits, ns.dlfeat), ((8, 12, 2), 1));
    let get = GetLogPage::new(0, LogPageId::COMMAND_EFFECTS, 1024);
    let log = host.admin(AdminCommand::GetLogPage(get), 4096);
    let log = CommandEffectsLog::read_from_bytes(log.data()).expect("it has 4096 bytes");
    for (opcode, changes) in [
        (IoOpcode::COMPARE, false),
        (IoOpcode::VERIFY, false),
        (IoOpcode::WRITE_ZEROES, true),
        (IoOpcode::DATASET_MANAGEMENT, true),
        (IoOpcode::COPY, true),
    ] {
        let effects = log.iocs[usize::from(opcode.0)];
        assert_eq!((effects.csupp(), effects.lbcc()), (true, changes));
    }
}

/// Commands that move no data are about no more blocks than those that do.
#[test]
fn commands_without_transfer_keep_to_vsl_wzsl_and_dmrl() {
    let mut config = small();
    config.lba_bytes = 4096;
    config.front_end.max_transfer_bytes = Some(16 << 10);
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    let limits: IdentifyControllerNvm =
        identify(&mut host, 0, Cns::COMMAND_SET_CONTROLLER, CommandSet::NVM);
    assert_eq!((limits.vsl, limits.wzsl, limits.dmrl), (2, 2, 64));
    assert_eq!((limits.dmrsl.get(), limits.dmsl.get()), (16384, 16384));
    assert_eq!(zeroes(&mut host, 1, 0, 4), Status::SUCCESS);
    assert_eq!(zeroes(&mut host, 1, 4, 5), Status::INVALID_FIELD);
    let mut verify = |nlb| {
        let verify = IoCommand::Verify(Verify::new(1, 0, nlb));
        host.io(verify, None, 0).status()
    };
    assert_eq!(
        (verify(4), verify(5)),
        (Status::SUCCESS, Status::INVALID_FIELD)
    );
    let deallocate = |nr| DatasetManagement::deallocate(1, nr);
    let too_large = Status::COMMAND_SIZE_LIMIT_EXCEEDED;
    let status = dataset(&mut host, deallocate(65), &[(0, 1); 65]);
    assert_eq!(status, too_large);
    let status = dataset(&mut host, deallocate(2), &[(0, 16000), (0, 400)]);
    assert_eq!(status, too_large);
    // Of hints there may be as many as fit.
    let status = dataset(
        &mut host,
        DatasetManagement {
            ad: false,
            ..deallocate(256)
        },
        &[(0, 16000); 256],
    );
    assert_eq!(status, Status::SUCCESS);
}

/// NCAP is what there is flash for, and NCAP less NUSE what can be opened now.
#[test]
fn a_thin_namespace_says_how_much_flash_is_left() {
    let mut config = small();
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.mapping = MappingConfig::Stripe { physical_zones: 2 };
    config.allocation.thin = true;
    config.finish = FinishConfig::Fill {
        granularity_bytes: config.geometry.page_bytes,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Elements,
    };
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    for (zone, used, status) in [
        (0, 0, Status::SUCCESS),
        (1, 1, Status::SUCCESS),
        (2, 2, Status::CAPACITY_EXCEEDED),
    ] {
        let ns: IdentifyNamespace = identify(&mut host, 1, Cns::NAMESPACE, CommandSet::NVM);
        assert!(ns.nsfeat.thinp());
        assert!(ns.nsze.get() > ns.ncap.get());
        assert_eq!((ns.ncap.get(), ns.nuse.get()), (2 * ZONE, used * ZONE));
        assert_eq!(write(&mut host, 1, zone * ZONE, &[1]), status);
    }
}

#[test]
fn the_health_log_tells_of_zones_of_a_log_that_fail() {
    let mut config = small();
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.namespaces = vec![NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(4)),
        zones: config.zones.count,
        max_active: None,
        max_open: None,
    }];
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    assert_eq!(write(&mut host, 1, 3, &[7]), Status::SUCCESS);
    let fail = |host: &mut Host, zone: u32| {
        let text = format!(
            "[[fault]]\non = \"time\"\nat = \"1us\"\nzones = \"{zone}..={zone}\"\n\
             effect = \"read-only\"\n"
        );
        let plan = FaultPlan::parse("faults.toml", &text, &[]).expect("it is valid");
        host.subsystem
            .add_faults(host.now, plan)
            .expect("it has such a zone");
        host.run(host.now.saturating_add(Nanos(1_000_000_000)));
    };
    let seen = |host: &mut Host| {
        let log = smart(host);
        (
            log.avsp,
            log.cw.spare(),
            log.cw.degraded(),
            log.cw.read_only(),
        )
    };
    assert_eq!(seen(&mut host), (100, false, false, false));
    fail(&mut host, 0);
    assert_eq!(seen(&mut host), (50, false, true, false));
    assert_eq!(write(&mut host, 1, 4, &[8]), Status::SUCCESS);
    fail(&mut host, 5);
    assert_eq!(seen(&mut host), (0, true, true, true));
    let protected = Status::NAMESPACE_WRITE_PROTECTED;
    assert_eq!(write(&mut host, 1, 4, &[9]), protected);
    assert_eq!(read(&mut host, 1, 3, 2), [7, 8]);
}
