//! Features, log pages, Format NVM, and the rest of the admin queue.

use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, FormatNvm, GetFeatures, GetLogPage, IoCommand, Read, SecureErase, SetFeatures,
    Write,
};
use zonelab_nvme::feature::{FeatureId, FeatureSelect};
use zonelab_nvme::identify::{Cns, CommandSet};
use zonelab_nvme::log::{CommandEffectsLog, LogPageId, SmartLog, SupportedLogPages};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

use crate::host::{Host, small, with_faults};

/// A fault that strikes every write.
pub(crate) fn fault(effect: Effect) -> Fault {
    Fault {
        when: Match::every(Trigger::Write),
        effect,
    }
}

pub(crate) fn set(host: &mut Host, fid: FeatureId, value: u32) {
    let command = AdminCommand::SetFeatures(SetFeatures::new(0, fid, value));
    assert_eq!(host.admin(command, 0).status(), Status::SUCCESS, "{fid}");
}

pub(crate) fn get(host: &mut Host, fid: FeatureId) -> u32 {
    let command = AdminCommand::GetFeatures(GetFeatures::new(0, fid));
    let reply = host.admin(command, 0);
    assert_eq!(reply.status(), Status::SUCCESS, "{fid}");
    reply.entry.result() as u32
}

pub(crate) fn smart(host: &mut Host) -> SmartLog {
    let get = GetLogPage::new(u32::MAX, LogPageId::SMART, 128);
    let reply = host.admin(AdminCommand::GetLogPage(get), 512);
    SmartLog::read_from_bytes(reply.data()).expect("it has 512 bytes")
}

#[test]
fn queues_are_granted_until_there_is_one() {
    let mut host = Host::admin_only(
        crate::host::subsystem(),
        zonelab_nvme::fabrics::Connect::new(0, 32),
    );
    host.set_cc(crate::host::enabled());
    let queues =
        |value| AdminCommand::SetFeatures(SetFeatures::new(0, FeatureId::NUMBER_OF_QUEUES, value));
    assert_eq!(
        host.admin(queues(0x0003_0003), 0).entry.result(),
        0x000f_000f
    );
    assert_eq!(
        host.admin(queues(0xffff), 0).status(),
        Status::INVALID_FIELD
    );
    host.connect_io(1);
    let late = host.admin(queues(0x0003_0003), 0);
    assert_eq!(late.status(), Status::COMMAND_SEQUENCE_ERROR);
}

#[test]
fn features_have_current_default_and_saved_values_and_capabilities() {
    let mut host = Host::new();
    let fid = FeatureId::TEMPERATURE_THRESHOLD;
    set(&mut host, fid, 300);
    let mut of = |fid, sel| {
        let command = GetFeatures {
            sel,
            ..GetFeatures::new(1, fid)
        };
        let reply = host.admin(AdminCommand::GetFeatures(command), 0);
        reply.status().is_success().then(|| reply.entry.result())
    };
    assert_eq!(of(fid, FeatureSelect::CURRENT), Some(300));
    assert_eq!(of(fid, FeatureSelect::DEFAULT), Some(343));
    assert_eq!(of(fid, FeatureSelect::SAVED), Some(343));
    let capabilities = FeatureSelect::SUPPORTED_CAPABILITIES;
    assert_eq!(of(fid, capabilities), Some(0b100));
    assert_eq!(of(FeatureId::ERROR_RECOVERY, capabilities), Some(0b110));
    assert_eq!(of(FeatureId::HOST_IDENTIFIER, capabilities), Some(0));
    assert_eq!(of(fid, FeatureSelect(5)), None);
    for absent in [
        FeatureId::VOLATILE_WRITE_CACHE,
        FeatureId::INTERRUPT_COALESCING,
        FeatureId(0),
    ] {
        assert_eq!(of(absent, FeatureSelect::CURRENT), None, "{absent}");
    }
    let saved = SetFeatures {
        sv: true,
        ..SetFeatures::new(0, fid, 300)
    };
    let reply = host.admin(AdminCommand::SetFeatures(saved), 0);
    assert_eq!(reply.status(), Status::FEATURE_NOT_SAVEABLE);
}

#[test]
fn features_refuse_values_that_are_not_possible() {
    let mut host = Host::new();
    let mut status = |nsid, fid, value| {
        let command = AdminCommand::SetFeatures(SetFeatures::new(nsid, fid, value));
        host.admin(command, 0).status()
    };
    let field = Status::INVALID_FIELD;
    assert_eq!(status(0, FeatureId::POWER_MANAGEMENT, 1), field);
    assert_eq!(
        status(1, FeatureId::ERROR_RECOVERY, 1 << 16),
        field,
        "DULBE"
    );
    assert_eq!(status(1, FeatureId::ERROR_RECOVERY, 5), Status::SUCCESS);
    let namespace = Status::INVALID_NAMESPACE_OR_FORMAT;
    assert_eq!(status(7, FeatureId::ERROR_RECOVERY, 5), namespace);
    let rejected = Status::COMMAND_SET_COMBINATION_REJECTED;
    assert_eq!(status(0, FeatureId::COMMAND_SET_PROFILE, 1), rejected);
    let sequence = Status::COMMAND_SEQUENCE_ERROR;
    assert_eq!(status(0, FeatureId::HOST_IDENTIFIER, 1), sequence);
}

#[test]
fn the_host_reads_its_identifier_and_says_how_it_behaves() {
    let mut host = Host::new();
    let mut id = GetFeatures::new(0, FeatureId::HOST_IDENTIFIER);
    let reply = host.admin(AdminCommand::GetFeatures(id), 8);
    assert_eq!(reply.status(), Status::INVALID_FIELD);
    id.dword11 = 1;
    let reply = host.admin(AdminCommand::GetFeatures(id), 16);
    assert_eq!(reply.data(), [7; 16]);

    let mut behavior = vec![0; 512];
    behavior[0] = 1;
    let fid = FeatureId::HOST_BEHAVIOR_SUPPORT;
    let entry = SetFeatures::new(0, fid, 0).to_entry().unwrap();
    let reply = host.call(host.admin, entry, Some(behavior), 0);
    assert_eq!(reply.status(), Status::SUCCESS);
    let get = AdminCommand::GetFeatures(GetFeatures::new(0, fid));
    assert_eq!(host.admin(get, 512).data()[..2], [1, 0]);
    let reply = host.call(host.admin, entry, Some(vec![0; 100]), 0);
    assert_eq!(reply.status(), Status::DATA_SGL_LENGTH_INVALID);
}

#[test]
fn the_smart_log_counts_what_the_drive_did() {
    let mut host = Host::new();
    let data = vec![1; 128 * 4096];
    host.io(IoCommand::Write(Write::new(1, 0, 128)), Some(data), 0);
    for slba in 0..4 {
        host.io(IoCommand::Read(Read::new(1, slba, 64)), None, 64 * 4096);
    }
    let log = smart(&mut host);
    assert_eq!((log.hwc.get(), log.hrc.get()), (1, 4));
    // 524,288 and 1,048,576 bytes in thousands of 512, rounded up.
    assert_eq!((log.duw.get(), log.dur.get()), (2, 3));
    assert_eq!((log.mdie.get(), log.neile.get()), (0, 0));
    assert_eq!((log.avsp, log.ctemp.get()), (100, 298));
    assert!(!log.cw.degraded());
    // What was done before a format counts too.
    host.admin(AdminCommand::FormatNvm(FormatNvm::new(1, 1)), 0);
    assert_eq!(smart(&mut host).duw.get(), 2);
}

#[test]
fn log_pages_are_read_in_parts() {
    let mut host = Host::new();
    let mut page = |lid, lpo, bytes: usize| {
        let get = GetLogPage {
            lpo,
            ..GetLogPage::new(u32::MAX, lid, bytes as u64 / 4)
        };
        host.admin(AdminCommand::GetLogPage(get), bytes)
    };
    let whole = page(LogPageId::COMMAND_EFFECTS, 0, 4096).data().to_vec();
    let part = page(LogPageId::COMMAND_EFFECTS, 1024, 64);
    assert_eq!(part.data(), &whole[1024..1088]);
    let end = page(LogPageId::COMMAND_EFFECTS, 4096 - 4, 64);
    assert!(end.data().iter().all(|byte| *byte == 0));
    assert_eq!(
        page(LogPageId::SMART, 513, 4).status(),
        Status::INVALID_FIELD
    );
    assert_eq!(
        page(LogPageId::SMART, 516, 4).status(),
        Status::INVALID_FIELD
    );
    assert_eq!(
        page(LogPageId::DISCOVERY, 0, 4).status(),
        Status::INVALID_LOG_PAGE
    );
    assert_eq!(
        page(LogPageId(0xd0), 0, 4).status(),
        Status::INVALID_LOG_PAGE
    );
    let firmware = page(LogPageId::FIRMWARE_SLOTS, 0, 512);
    assert_eq!(firmware.data()[0], 1);
    let pages = page(LogPageId::SUPPORTED_LOG_PAGES, 0, 1024);
    let pages = SupportedLogPages::read_from_bytes(pages.data()).unwrap();
    let supported: Vec<usize> = (0..256).filter(|lid| pages.lids[*lid].lsupp()).collect();
    assert_eq!(supported, [0, 1, 2, 3, 4, 5, 0x80, 0xbf]);
    let get = GetLogPage::new(0, LogPageId::SMART, 128);
    let reply = host.admin(AdminCommand::GetLogPage(get), 500);
    assert_eq!(reply.status(), Status::DATA_SGL_LENGTH_INVALID);
}

/// The effects log says what is supported: a command that it names is not
/// refused as an unknown one, and every other is.
#[test]
fn the_effects_log_agrees_with_what_commands_do() {
    let mut host = Host::new();
    let get = GetLogPage {
        csi: CommandSet::ZNS,
        ..GetLogPage::new(0, LogPageId::COMMAND_EFFECTS, 1024)
    };
    let reply = host.admin(AdminCommand::GetLogPage(get), 4096);
    let log = CommandEffectsLog::read_from_bytes(reply.data()).unwrap();
    for opcode in 0..=0xff_u8 {
        for (queue, effects) in [
            (host.admin, log.acs[usize::from(opcode)]),
            (host.io, log.iocs[usize::from(opcode)]),
        ] {
            // Fabrics commands are not in the log; event requests wait.
            if opcode == 0x7f || (queue == host.admin && opcode == 0x0c) {
                continue;
            }
            let entry = SubmissionEntry::new(opcode).with_nsid(1);
            let reply = host.call(queue, entry, None, 0);
            let is_known = reply.status() != Status::INVALID_OPCODE;
            assert_eq!(is_known, effects.csupp(), "{opcode:#x} on {queue:?}");
        }
    }
}

#[test]
fn a_format_changes_the_size_of_blocks_and_erases() {
    let mut host = Host::new();
    host.io(
        IoCommand::Write(Write::new(1, 0, 1)),
        Some(vec![9; 4096]),
        0,
    );
    let format = |lbaf| AdminCommand::FormatNvm(FormatNvm::new(1, lbaf));
    assert_eq!(host.admin(format(0), 0).status(), Status::SUCCESS);
    let identify = zonelab_nvme::command::Identify::new(1, Cns::NAMESPACE, CommandSet::NVM);
    let ns = host.admin(AdminCommand::Identify(identify), 4096);
    assert_eq!(ns.data()[26], 0, "FLBAS");
    assert_eq!(&ns.data()[..8], (6_u64 * 160 * 8).to_le_bytes());
    let read = host.io(IoCommand::Read(Read::new(1, 0, 8)), None, 8 * 512);
    assert!(read.data().iter().all(|byte| *byte == 0));
    let write = host.io(
        IoCommand::Write(Write::new(1, 0, 3)),
        Some(vec![4; 3 * 512]),
        0,
    );
    assert_eq!(write.status(), Status::SUCCESS);
    assert_eq!(host.admin(format(1), 0).status(), Status::SUCCESS);
    let read = host.io(IoCommand::Read(Read::new(1, 0, 1)), None, 4096);
    assert!(read.data().iter().all(|byte| *byte == 0));
}

#[test]
fn a_format_waits_for_what_is_in_flight_and_lets_nothing_else_in() {
    let mut host = Host::new();
    let write = IoCommand::Write(Write::new(1, 0, 1)).to_entry().unwrap();
    let first = host.send(host.io, write, Some(vec![9; 4096]), 0);
    let format = AdminCommand::FormatNvm(FormatNvm::new(u32::MAX, 0));
    let entry = format.to_entry().unwrap();
    let waiting = host.send(host.admin, entry, None, 0);
    let second = host.send(host.io, write, Some(vec![9; 4096]), 0);
    let other = host.send(host.admin, entry, None, 0);
    host.run(host.now);
    for (queue, cid) in [(host.io, second), (host.admin, other)] {
        let refused = host.take(queue, cid).unwrap();
        assert_eq!(refused.status(), Status::FORMAT_IN_PROGRESS);
        assert!(refused.entry.status.may_retry());
    }
    let format = host.wait(host.admin, waiting);
    let write = host.take(host.io, first).unwrap();
    assert_eq!(
        (write.status(), format.status()),
        (Status::SUCCESS, Status::SUCCESS)
    );
    assert!(write.due <= format.due);
}

#[test]
fn a_format_that_is_not_possible_is_refused() {
    let mut host = Host::new();
    let mut status = |change: fn(&mut FormatNvm)| {
        let mut format = FormatNvm::new(1, 1);
        change(&mut format);
        host.admin(AdminCommand::FormatNvm(format), 0).status()
    };
    assert_eq!(status(|of| of.lbaf = 2), Status::INVALID_FORMAT);
    assert_eq!(status(|of| of.pi = 1), Status::INVALID_FORMAT);
    assert_eq!(status(|of| of.mset = true), Status::INVALID_FORMAT);
    assert_eq!(
        status(|of| of.ses = SecureErase::CRYPTOGRAPHIC),
        Status::INVALID_FIELD
    );
    assert_eq!(
        status(|of| of.nsid = 2),
        Status::INVALID_NAMESPACE_OR_FORMAT
    );
    assert_eq!(
        status(|of| of.ses = SecureErase::USER_DATA),
        Status::SUCCESS
    );

    // Zones of 514 blocks of 512 bytes hold no whole number of larger ones.
    let mut config = small();
    config.lba_bytes = 512;
    config.zones.size_lbas = 8 * 160 + 2;
    config.zones.capacity_lbas = 8 * 128;
    let mut host = Host::of(with_faults(&config, FaultPlan::default()));
    let format = AdminCommand::FormatNvm(FormatNvm::new(1, 1));
    assert_eq!(host.admin(format, 0).status(), Status::INVALID_FORMAT);
}
