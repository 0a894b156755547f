//! Admin commands, features and asynchronous events, byte by byte.

use zonelab_nvme::Status;
use zonelab_nvme::command::{
    Abort, AdminCommand, FormatNvm, GetFeatures, GetLogPage, Identify, SecureErase, SetFeatures,
};
use zonelab_nvme::event::{AsyncEvent, AsyncEventType, NoticeEvent};
use zonelab_nvme::feature::{
    Arbitration, AsyncEventConfiguration, CommandSetProfile, ErrorRecovery, FeatureCapabilities,
    FeatureId, FeatureSelect, HostBehaviorSupport, HostIdentifier, InterruptCoalescing,
    InterruptVector, NumberOfQueues, PowerManagement, TemperatureThreshold, Timestamp,
    WriteAtomicity, WriteCache, WriteProtection, WriteProtectionState,
};
use zonelab_nvme::identify::{AsyncEvents, Cns, CommandSet};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::queue::{AdminOpcode, SubmissionEntry};
use zonelab_nvme::zerocopy::{FromBytes, FromZeros, IntoBytes};

/// An entry of opcode and namespace with these dwords 10 to 15.
fn entry(opcode: u8, nsid: u32, dwords: [u32; 6]) -> SubmissionEntry {
    let [cdw10, cdw11, cdw12, cdw13, cdw14, cdw15] = dwords.map(Into::into);
    SubmissionEntry {
        cdw10,
        cdw11,
        cdw12,
        cdw13,
        cdw14,
        cdw15,
        ..SubmissionEntry::new(opcode).with_nsid(nsid)
    }
}

/// `golden` is `command` and the other way round.
fn assert_command(golden: SubmissionEntry, command: AdminCommand) {
    assert_eq!(AdminCommand::parse(&golden), Ok(command));
    assert_eq!(command.to_entry(), Ok(golden));
}

#[test]
fn get_log_page() {
    // 512 bytes of SMART, as nvme-cli asks: NUMD 7Fh.
    let smart = GetLogPage::new(u32::MAX, LogPageId::SMART, 128);
    let golden = entry(0x02, u32::MAX, [0x007f_0002, 0, 0, 0, 0, 0]);
    assert_command(golden, AdminCommand::GetLogPage(smart));

    // Every field: NUMDL and NUMDU of 2_0001h - 1, LSP, RAE, LSI, LPO, OT, CSI, UUID.
    let dwords = [
        0x0000_ff05,
        0x0304_0002,
        0x9abc_def0,
        0x1234_5678,
        0x0280_007f,
        0,
    ];
    let full = GetLogPage {
        lsp: 0x7f,
        rae: true,
        lsi: 0x304,
        lpo: 0x1234_5678_9abc_def0,
        ot: true,
        csi: CommandSet::ZNS,
        uuid_index: 0x7f,
        ..GetLogPage::new(1, LogPageId::COMMAND_EFFECTS, 0x2_0001)
    };
    assert_command(entry(0x02, 1, dwords), AdminCommand::GetLogPage(full));
    for numd in [0, (1 << 32) + 1] {
        let page = GetLogPage::new(0, LogPageId::SMART, numd);
        assert_eq!(page.to_entry().unwrap_err().field, "numd");
    }
    let wide = GetLogPage { lsp: 0x80, ..smart };
    assert_eq!(wide.to_entry().unwrap_err().field, "lsp");
}

#[test]
fn get_and_set_features() {
    let queues = NumberOfQueues::default().with_nsq_z(7).with_ncq_z(3);
    let set = SetFeatures::new(0, FeatureId::NUMBER_OF_QUEUES, queues.bits());
    let golden = entry(0x09, 0, [0x07, 0x0003_0007, 0, 0, 0, 0]);
    assert_command(golden, AdminCommand::SetFeatures(set));
    let save = SetFeatures {
        sv: true,
        uuid_index: 2,
        ..SetFeatures::new(1, FeatureId::ERROR_RECOVERY, 0x1_0000)
    };
    let golden = entry(0x09, 1, [0x8000_0005, 0x1_0000, 0, 0, 2, 0]);
    assert_command(golden, AdminCommand::SetFeatures(save));

    let get = GetFeatures {
        sel: FeatureSelect::SUPPORTED_CAPABILITIES,
        dword11: 1,
        uuid_index: 0x7f,
        ..GetFeatures::new(1, FeatureId::TIMESTAMP)
    };
    let golden = entry(0x0a, 1, [0x0000_030e, 1, 0, 0, 0x7f, 0]);
    assert_command(golden, AdminCommand::GetFeatures(get));
    let wide = GetFeatures {
        sel: FeatureSelect(8),
        ..get
    };
    assert_eq!(wide.to_entry().unwrap_err().field, "sel");
}

#[test]
fn abort_keep_alive_and_event_request() {
    let abort = Abort {
        sqid: 0x102,
        cid: 0x1234,
    };
    let golden = entry(0x08, 0, [0x1234_0102, 0, 0, 0, 0, 0]);
    assert_command(golden, AdminCommand::Abort(abort));
    assert_command(SubmissionEntry::new(0x18), AdminCommand::KeepAlive);
    let request = AdminCommand::AsynchronousEventRequest;
    assert_command(SubmissionEntry::new(0x0c), request);
}

#[test]
fn format_nvm() {
    // LBAF 35: 2 in bits 13:12, 3 in bits 3:0. SES 1, PIL, PI 2, MSET.
    let format = FormatNvm {
        mset: true,
        pi: 2,
        pil: true,
        ses: SecureErase::USER_DATA,
        ..FormatNvm::new(1, 35)
    };
    let dword10 = 0b0010_0011_0101_0011;
    let golden = entry(0x80, 1, [dword10, 0, 0, 0, 0, 0]);
    assert_command(golden, AdminCommand::FormatNvm(format));
    let refused = |format: FormatNvm| format.to_entry().unwrap_err().field;
    assert_eq!(refused(FormatNvm::new(1, 64)), "lbaf");
    assert_eq!(refused(FormatNvm { pi: 8, ..format }), "pi");
    let ses = SecureErase(8);
    assert_eq!(refused(FormatNvm { ses, ..format }), "ses");
}

/// Whatever a peer sends is a command or an unknown opcode, and what was
/// understood can be said again with the same meaning.
#[test]
fn any_entry_is_understood_or_refused() {
    let known = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x80];
    for opcode in 0..=u8::MAX {
        for dword in [0, 1, 0x5555_5555, 0xaaaa_aaaa, u32::MAX] {
            let parsed = AdminCommand::parse(&entry(opcode, dword, [dword; 6]));
            assert_eq!(parsed.is_ok(), known.contains(&opcode), "{opcode:#x}");
            if let Ok(command) = parsed {
                let again = command.to_entry().unwrap();
                assert_eq!(AdminCommand::parse(&again), Ok(command));
            }
        }
    }
    let identify = Identify::new(1, Cns::NAMESPACE, CommandSet::NVM);
    let identify = identify.to_entry().unwrap();
    assert_eq!(FormatNvm::parse(&identify), Err(Status::INVALID_OPCODE));
    assert_eq!(GetLogPage::parse(&identify), Err(Status::INVALID_OPCODE));
    assert_eq!(AdminOpcode::FABRICS.0, 0x7f);
}

#[test]
fn features_are_those_of_the_specification() {
    let features = [
        (FeatureId::ARBITRATION, 0x01),
        (FeatureId::POWER_MANAGEMENT, 0x02),
        (FeatureId::LBA_RANGE_TYPE, 0x03),
        (FeatureId::TEMPERATURE_THRESHOLD, 0x04),
        (FeatureId::ERROR_RECOVERY, 0x05),
        (FeatureId::VOLATILE_WRITE_CACHE, 0x06),
        (FeatureId::NUMBER_OF_QUEUES, 0x07),
        (FeatureId::INTERRUPT_COALESCING, 0x08),
        (FeatureId::INTERRUPT_VECTOR_CONFIGURATION, 0x09),
        (FeatureId::WRITE_ATOMICITY_NORMAL, 0x0a),
        (FeatureId::ASYNC_EVENT_CONFIGURATION, 0x0b),
        (FeatureId::AUTONOMOUS_POWER_STATE_TRANSITION, 0x0c),
        (FeatureId::TIMESTAMP, 0x0e),
        (FeatureId::KEEP_ALIVE_TIMER, 0x0f),
        (FeatureId::HOST_BEHAVIOR_SUPPORT, 0x16),
        (FeatureId::COMMAND_SET_PROFILE, 0x19),
        (FeatureId::HOST_IDENTIFIER, 0x81),
        (FeatureId::NAMESPACE_WRITE_PROTECTION_CONFIG, 0x84),
    ];
    for (feature, number) in features {
        assert_eq!(feature, FeatureId(number));
    }
}

#[test]
fn layouts_of_feature_values() {
    let arbitration = Arbitration::default()
        .with_ab(7)
        .with_lpw_z(1)
        .with_mpw_z(2)
        .with_hpw_z(3);
    assert_eq!(arbitration.bits(), 0x0302_0107);
    let power = PowerManagement::default().with_ps(1).with_wh(2);
    assert_eq!(power.bits(), 0x41);
    let threshold = TemperatureThreshold::default()
        .with_tmpth(0x157)
        .with_tmpsel(2)
        .with_thsel(1);
    assert_eq!(threshold.bits(), 0x0012_0157);
    let recovery = ErrorRecovery::default().with_tler(5).with_dulbe(true);
    assert_eq!(recovery.bits(), 0x0001_0005);
    assert_eq!(WriteCache::default().with_wce(true).bits(), 1);
    let coalescing = InterruptCoalescing::default().with_thr_z(8).with_time(10);
    assert_eq!(coalescing.bits(), 0x0a08);
    let vector = InterruptVector::default().with_iv(4).with_cd(true);
    assert_eq!(vector.bits(), 0x0001_0004);
    assert_eq!(WriteAtomicity::default().with_dn(true).bits(), 1);
    let profile = CommandSetProfile::default().with_iocsci(0x1ff);
    assert_eq!(profile.bits(), 0x1ff);
    assert_eq!(HostIdentifier::default().with_exhid(true).bits(), 1);
    let protected = WriteProtection::default().with_wps(WriteProtectionState::PERMANENT);
    assert_eq!(protected.bits(), 3);
    let capabilities = FeatureCapabilities::default();
    assert_eq!(capabilities.with_saveable(true).bits(), 1);
    assert_eq!(capabilities.with_namespace_specific(true).bits(), 2);
    assert_eq!(capabilities.with_changeable(true).bits(), 4);

    let bytes = [0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x03, 0x00];
    let timestamp = Timestamp::read_from_bytes(&bytes).unwrap();
    assert_eq!(timestamp.timestamp, [6, 5, 4, 3, 2, 1]);
    assert!(timestamp.attributes.synch());
    assert_eq!(timestamp.attributes.origin(), 1);
    let mut behavior = HostBehaviorSupport::new_zeroed();
    (behavior.acre, behavior.etdas, behavior.lbafee) = (1, 2, 3);
    assert_eq!(behavior.as_bytes()[..4], [1, 2, 3, 0]);
}

/// What a Linux host sets if the controller announces namespace, firmware and
/// discovery events, and what goes with zones.
#[test]
fn which_events_a_host_wants() {
    let events = AsyncEvents::default()
        .with_namespace_attribute(true)
        .with_firmware_activation(true)
        .with_zone_descriptor_changed(true)
        .with_discovery_log(true);
    let wanted = AsyncEventConfiguration::default()
        .with_smart(0x1f)
        .with_telemetry(true)
        .with_optional(events);
    assert_eq!(wanted.bits(), 0x8800_071f);
    assert_eq!(wanted.optional(), events);
    let all = AsyncEventConfiguration::from_bits(u32::MAX);
    let none = all.with_optional(AsyncEvents::default());
    assert_eq!(none.bits(), 0x4ff, "SMART and telemetry are left alone");
    // Bits of OAES that are not events of OAES set nothing here.
    let odd = AsyncEventConfiguration::default().with_optional(AsyncEvents::from_bits(0x4ff));
    assert_eq!(odd.bits(), 0);
}

#[test]
fn events_and_their_log_pages() {
    let zones = AsyncEvent::notice(
        NoticeEvent::ZONE_DESCRIPTOR_CHANGED,
        LogPageId::CHANGED_ZONES.0,
    );
    assert_eq!(zones.bits(), 0x00bf_ef02);
    let namespaces = AsyncEvent::notice(
        NoticeEvent::NAMESPACE_ATTRIBUTE_CHANGED,
        LogPageId::CHANGED_NAMESPACES.0,
    );
    assert_eq!(namespaces.bits(), 0x0004_0002);
    let discovery = AsyncEvent::notice(NoticeEvent::DISCOVERY_LOG_CHANGED, 0x70);
    assert_eq!(discovery.bits(), 0x0070_f002);
    let smart = AsyncEvent::from_bits(0x0002_0101);
    assert_eq!(smart.event_type(), AsyncEventType::SMART);
    assert_eq!((smart.information(), smart.lid()), (1, 2));
}
