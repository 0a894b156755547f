//! Flexible data placement: bytes and offsets from the tables of the base
//! specification 2.1.

use core::mem::offset_of;
use zonelab_nvme::Status;
use zonelab_nvme::command::{IoCommand, IoManagementReceive, IoManagementSend, SetFeatures, Write};
use zonelab_nvme::feature::FeatureId;
use zonelab_nvme::identify::{ControllerAttributes, IdentifyController, IdentifyNamespace};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::placement::{
    ConfigurationAttributes, ConfigurationDescriptor, ConfigurationsHeader, DATA_PLACEMENT_DTYPE,
    EnduranceGroupList, EnduranceGroupLog, HandleDescriptor, HandleStatus, HandleStatusHeader,
    HandleType, HandleUsage, HandleUsageHeader, HandleUse, MediaReallocated, PlacementEvent,
    PlacementEventFlags, PlacementEventType, PlacementEventsEnable, PlacementEventsHeader,
    PlacementEventsSelect, PlacementMode, PlacementStatistics, ReallocatedFlags, SupportedEvent,
    SupportedEventAttributes,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};

#[test]
fn identify_says_that_there_is_flexible_data_placement() {
    let none = ControllerAttributes::default();
    assert_eq!(none.with_fdps(true).bits(), 1 << 19);
    assert_eq!(none.with_endurance_groups(true).bits(), 1 << 4);
    assert_eq!(offset_of!(IdentifyController, endgidmax), 340);
    assert_eq!(offset_of!(IdentifyNamespace, endgid), 102);
}

#[test]
fn endurance_groups_of_known_bytes() {
    let mut list = EnduranceGroupList::new_zeroed();
    list.numids = 2.into();
    list.endgid[0] = 1.into();
    list.endgid[1] = 0x102.into();
    assert_eq!(list.as_bytes()[..8], [2, 0, 1, 0, 0x02, 0x01, 0, 0]);
    assert_eq!(offset_of!(EnduranceGroupLog, avsp), 3);
    assert_eq!(offset_of!(EnduranceGroupLog, did), 6);
    assert_eq!(offset_of!(EnduranceGroupLog, ee), 32);
    assert_eq!(offset_of!(EnduranceGroupLog, dur), 48);
    assert_eq!(offset_of!(EnduranceGroupLog, duw), 64);
    assert_eq!(offset_of!(EnduranceGroupLog, muw), 80);
    assert_eq!(offset_of!(EnduranceGroupLog, hrc), 96);
    assert_eq!(offset_of!(EnduranceGroupLog, hwc), 112);
    assert_eq!(offset_of!(EnduranceGroupLog, mdie), 128);
    assert_eq!(offset_of!(EnduranceGroupLog, neile), 144);
    assert_eq!(offset_of!(EnduranceGroupLog, tegcap), 160);
    assert_eq!(offset_of!(EnduranceGroupLog, uegcap), 176);
}

#[test]
fn a_configuration_of_known_bytes() {
    let mut golden = [0_u8; 16 + 64 + 2 * 4];
    golden[4] = 88; // size of the page
    golden[16] = 72; // descriptor size
    golden[18] = 0x92; // valid, volatile write cache, reclaim groups in 2 bits
    golden[19] = 0; // vendor specific size
    golden[20] = 3; // reclaim groups
    golden[24] = 2; // reclaim unit handles
    golden[26] = 1; // two placement identifiers, zero based
    golden[28] = 0xff; // namespaces
    golden[32..40].copy_from_slice(&[0, 0, 0, 0x30, 0, 0, 0, 0]); // 768 MiB
    golden[40..44].copy_from_slice(&[0x2c, 0x01, 0, 0]); // 300 s
    golden[80] = 1; // initially isolated
    golden[84] = 2; // persistently isolated

    let mut header = ConfigurationsHeader::new_zeroed();
    header.size = 88.into();
    let mut of = ConfigurationDescriptor::new_zeroed();
    of.dsze = 72.into();
    of.fdpa = ConfigurationAttributes::default()
        .with_rgif(2)
        .with_fdpvwc(true)
        .with_fdpcv(true);
    of.nrg = 3.into();
    of.nruh = 2.into();
    of.maxpids_z = 1.into();
    of.nnss = 255.into();
    of.runs = (768 << 20).into();
    of.erutl = 300.into();
    let handle = |ruht| {
        let mut handle = HandleDescriptor::new_zeroed();
        handle.ruht = ruht;
        handle
    };
    let handles = [
        handle(HandleType::INITIALLY_ISOLATED),
        handle(HandleType::PERSISTENTLY_ISOLATED),
    ];
    let bytes = [header.as_bytes(), of.as_bytes(), handles.as_bytes()].concat();
    assert_eq!(bytes, golden);
    header.numfdpc_z = 0x102.into();
    header.version = 3;
    assert_eq!(header.as_bytes()[..4], [0x02, 0x01, 3, 0]);
}

#[test]
fn usage_and_statistics_of_known_bytes() {
    let mut header = HandleUsageHeader::new_zeroed();
    header.nruh = 0x102.into();
    assert_eq!(header.as_bytes(), [0x02, 0x01, 0, 0, 0, 0, 0, 0]);
    let mut usage = HandleUsage::new_zeroed();
    usage.ruha = HandleUse::HOST_SPECIFIED;
    assert_eq!(usage.as_bytes(), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(HandleUse::UNUSED.0, 0);
    assert_eq!(HandleUse::CONTROLLER_SPECIFIED.0, 2);

    let mut golden = [0_u8; 64];
    golden[0] = 1;
    golden[8] = 2;
    golden[16] = 3;
    golden[32] = 4;
    let mut statistics = PlacementStatistics::new_zeroed();
    statistics.hbmw = (2_u128 << 64 | 1).into();
    statistics.mbmw = 3.into();
    statistics.mbe = 4.into();
    assert_eq!(statistics.as_bytes(), golden);
}

#[test]
fn an_event_of_known_bytes() {
    let mut golden = [0_u8; 64];
    golden[0] = 0x80; // media reallocated
    golden[1] = 0x07; // everything is valid
    golden[2..4].copy_from_slice(&[0x02, 0x01]); // PID
    golden[4..12].copy_from_slice(&[0x88, 0x13, 0, 0, 0, 0, 0, 0]); // 5 s
    golden[12] = 1; // NSID
    golden[16] = 0x01; // the address is valid
    golden[18..20].copy_from_slice(&[0x20, 0]); // 32 blocks
    golden[20..28].copy_from_slice(&[0, 0, 8, 0, 5, 0, 0, 0]); // LBA
    golden[32..34].copy_from_slice(&[3, 0]); // reclaim group
    golden[34] = 7; // reclaim unit handle
    let mut moved = MediaReallocated::new_zeroed();
    moved.flags = ReallocatedFlags::default().with_lbav(true);
    moved.nlbam = 32.into();
    moved.lba = 0x5_0008_0000.into();
    let mut event = PlacementEvent::new_zeroed();
    event.event_type = PlacementEventType::MEDIA_REALLOCATED;
    event.fdpef = PlacementEventFlags::default()
        .with_piv(true)
        .with_nsidv(true)
        .with_lv(true);
    event.pid = 0x102.into();
    event.timestamp = 5_000.into();
    event.nsid = 1.into();
    event.specific.copy_from_slice(moved.as_bytes());
    event.rgid = 3.into();
    event.ruhid = 7;
    assert_eq!(event.as_bytes(), golden);
    let mut header = PlacementEventsHeader::new_zeroed();
    header.nfdpe = 0x0403_0201.into();
    assert_eq!(header.as_bytes()[..5], [1, 2, 3, 4, 0]);
    let types = [
        (PlacementEventType::NOT_FULLY_WRITTEN, 0x00),
        (PlacementEventType::TIME_LIMIT_EXCEEDED, 0x01),
        (PlacementEventType::RESET_MODIFIED_HANDLES, 0x02),
        (PlacementEventType::INVALID_PLACEMENT_IDENTIFIER, 0x03),
        (PlacementEventType::HANDLE_IMPLICITLY_MODIFIED, 0x81),
    ];
    for (of, code) in types {
        assert_eq!(of.0, code);
    }
}

#[test]
fn reclaim_unit_handle_status_of_known_bytes() {
    let mut golden = [0_u8; 16 + 32];
    golden[14] = 1; // descriptors
    golden[16..18].copy_from_slice(&[0x02, 0x01]); // PID
    golden[18..20].copy_from_slice(&[0x04, 0x03]); // RUHID
    golden[20] = 60; // EARUTR
    golden[24..32].copy_from_slice(&[0, 0, 8, 0, 5, 0, 0, 0]); // RUAMW
    let mut header = HandleStatusHeader::new_zeroed();
    header.nruhsd = 1.into();
    let mut status = HandleStatus::new_zeroed();
    status.pid = 0x102.into();
    status.ruhid = 0x304.into();
    status.earutr = 60.into();
    status.ruamw = 0x5_0008_0000.into();
    assert_eq!([header.as_bytes(), status.as_bytes()].concat(), golden);
}

#[test]
fn commands_of_known_bytes() {
    let mut golden = SubmissionEntry::new(0x12).with_nsid(1);
    golden.cdw10 = 0x01.into(); // reclaim unit handle status
    golden.cdw11 = 1_023.into(); // 4 KiB
    let receive = IoManagementReceive::handle_status(1, 1_024);
    assert_eq!(receive.to_entry(), Ok(golden));
    assert_eq!(
        IoCommand::parse(&golden),
        Ok(IoCommand::IoManagementReceive(receive))
    );

    let mut golden = SubmissionEntry::new(0x1d).with_nsid(1);
    golden.cdw10 = 0x0002_0001.into(); // reclaim unit handle update of 3
    let send = IoManagementSend::handle_update(1, 3).unwrap();
    assert_eq!(send.to_entry(), golden);
    assert_eq!(
        IoCommand::parse(&golden),
        Ok(IoCommand::IoManagementSend(send))
    );
    assert_eq!(send.npid(), 3);
    assert_eq!(
        IoManagementSend::handle_update(1, 0).unwrap_err().field,
        "npid"
    );

    let write = Write {
        dtype: DATA_PLACEMENT_DTYPE,
        dspec: 0x102,
        ..Write::new(1, 8, 1)
    };
    let entry = write.to_entry().unwrap();
    assert_eq!(entry.cdw12.get(), 0x0020_0000);
    assert_eq!(entry.cdw13.get(), 0x0102_0000);
}

#[test]
fn features_and_numbers() {
    assert_eq!(FeatureId::FLEXIBLE_DATA_PLACEMENT.0, 0x1d);
    assert_eq!(FeatureId::FDP_EVENTS.0, 0x1e);
    let mode = PlacementMode::default().with_fdpe(true).with_fdpcidx(2);
    assert_eq!(mode.bits(), 0x201);
    let select = PlacementEventsSelect::default()
        .with_phndl(0x102)
        .with_noet(3);
    assert_eq!(select.bits(), 0x0003_0102);
    let enable = PlacementEventsEnable::default().with_fdpee(true);
    let set = SetFeatures {
        dword12: enable.bits(),
        ..SetFeatures::new(1, FeatureId::FDP_EVENTS, select.bits())
    };
    let entry = set.to_entry().unwrap();
    assert_eq!((entry.cdw11.get(), entry.cdw12.get()), (0x0003_0102, 1));
    assert_eq!(SetFeatures::parse(&entry), Ok(set));
    let event = SupportedEvent {
        event_type: PlacementEventType::MEDIA_REALLOCATED,
        attributes: SupportedEventAttributes::default().with_fdpee(true),
    };
    assert_eq!(event.as_bytes(), [0x80, 0x01]);
    let pages = [
        (LogPageId::FDP_CONFIGURATIONS, 0x20),
        (LogPageId::RECLAIM_UNIT_HANDLE_USAGE, 0x21),
        (LogPageId::FDP_STATISTICS, 0x22),
        (LogPageId::FDP_EVENTS, 0x23),
    ];
    for (page, lid) in pages {
        assert_eq!(page.0, lid);
    }
    assert_eq!(Status::FDP_DISABLED, Status(0x029));
    assert_eq!(Status::INVALID_PLACEMENT_HANDLE_LIST, Status(0x02a));
}
