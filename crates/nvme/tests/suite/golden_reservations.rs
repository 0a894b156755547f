//! Reservations: bytes and offsets from the tables of the base specification 2.0.

use core::mem::offset_of;
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    IoCommand, ReservationAcquire, ReservationRegister, ReservationRelease, ReservationReport,
};
use zonelab_nvme::event::{AsyncEvent, AsyncEventType, CommandSetEvent};
use zonelab_nvme::identify::ControllerAttributes;
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::reservation::{
    AcquireAction, AcquireData, ChangePersistence, NotificationMask, NotificationType,
    RegisterAction, RegisterData, Registrant, RegistrantExtended, ReleaseAction,
    ReservationCapabilities, ReservationNotification, ReservationPersistence, ReservationStatus,
    ReservationStatusExtended, ReservationType,
};
use zonelab_nvme::zerocopy::{FromZeros, IntoBytes};

/// A command and its entry are the same.
fn is(command: IoCommand, golden: SubmissionEntry) {
    assert_eq!(command.to_entry(), Ok(golden));
    assert_eq!(IoCommand::parse(&golden), Ok(command));
    assert_eq!(command.nsid(), 1);
}

fn golden(opcode: u8, dword10: u32, dword11: u32) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: dword10.into(),
        cdw11: dword11.into(),
        ..SubmissionEntry::new(opcode).with_nsid(1)
    }
}

#[test]
fn commands_of_known_bytes() {
    let register = ReservationRegister {
        nsid: 1,
        rrega: RegisterAction::REPLACE,
        iekey: true,
        cptpl: ChangePersistence::SET,
    };
    // CPTPL 11b, IEKEY, RREGA 010b.
    let entry = golden(0x0d, 0xc000_000a, 0);
    is(IoCommand::ReservationRegister(register), entry);
    let report = ReservationReport {
        nsid: 1,
        numd: 1024,
        eds: true,
    };
    is(IoCommand::ReservationReport(report), golden(0x0e, 1023, 1));
    let acquire = ReservationAcquire {
        nsid: 1,
        racqa: AcquireAction::PREEMPT_AND_ABORT,
        iekey: false,
        rtype: ReservationType::EXCLUSIVE_ACCESS_ALL_REGISTRANTS,
    };
    is(
        IoCommand::ReservationAcquire(acquire),
        golden(0x11, 0x602, 0),
    );
    let release = ReservationRelease {
        nsid: 1,
        rrela: ReleaseAction::CLEAR,
        iekey: true,
        rtype: ReservationType::WRITE_EXCLUSIVE,
    };
    is(
        IoCommand::ReservationRelease(release),
        golden(0x15, 0x109, 0),
    );
    let long = ReservationReport { numd: 0, ..report };
    assert_eq!(long.to_entry().unwrap_err().field, "numd");
    let cptpl = ChangePersistence(4);
    let wide = ReservationRegister { cptpl, ..register };
    assert_eq!(wide.to_entry().unwrap_err().field, "cptpl");
}

#[test]
fn data_of_known_bytes() {
    let keys = RegisterData {
        crkey: 0x0102.into(),
        nrkey: 0x0304.into(),
    };
    assert_eq!(keys.as_bytes()[..2], [2, 1]);
    assert_eq!(keys.as_bytes()[8..10], [4, 3]);
    assert_eq!(offset_of!(AcquireData, prkey), 8);
    assert_eq!(offset_of!(ReservationStatus, rtype), 4);
    assert_eq!(offset_of!(ReservationStatus, regstrnt), 5);
    assert_eq!(offset_of!(ReservationStatus, ptpls), 9);
    assert_eq!(size_of::<ReservationStatus>(), 24);
    assert_eq!(size_of::<ReservationStatusExtended>(), 64);
    assert_eq!(offset_of!(Registrant, rcsts), 2);
    assert_eq!(offset_of!(Registrant, hostid), 8);
    assert_eq!(offset_of!(Registrant, rkey), 16);
    assert_eq!(offset_of!(RegistrantExtended, rkey), 8);
    assert_eq!(offset_of!(RegistrantExtended, hostid), 16);
    assert_eq!(size_of::<RegistrantExtended>(), 64);
}

#[test]
fn notifications_of_known_bytes() {
    let mut page = ReservationNotification::new_zeroed();
    page.lpc = 0x0102.into();
    page.rnlpt = NotificationType::RESERVATION_PREEMPTED;
    page.nalp = 5;
    page.nsid = 0x0607.into();
    let expected = [2, 1, 0, 0, 0, 0, 0, 0, 3, 5, 0, 0, 7, 6, 0, 0];
    assert_eq!(page.as_bytes()[..16], expected);
    assert_eq!(page.as_bytes().len(), 64);
    let event = AsyncEvent::default()
        .with_event_type(AsyncEventType::COMMAND_SET)
        .with_information(CommandSetEvent::RESERVATION_LOG_PAGE_AVAILABLE.0)
        .with_lid(0x80);
    assert_eq!(event.bits(), 0x0080_0006);
    let mask = NotificationMask::default();
    assert_eq!(mask.with_registration_preempted(true).bits(), 1 << 1);
    assert_eq!(mask.with_reservation_released(true).bits(), 1 << 2);
    assert_eq!(mask.with_reservation_preempted(true).bits(), 1 << 3);
    let persistence = ReservationPersistence::default().with_ptpl(true);
    assert_eq!(persistence.bits(), 1);
}

#[test]
fn identify_says_that_there_are_reservations() {
    let none = ReservationCapabilities::default();
    let each = [
        none.with_persistence(true),
        none.with_write_exclusive(true),
        none.with_exclusive_access(true),
        none.with_write_registrants(true),
        none.with_access_registrants(true),
        none.with_write_all_registrants(true),
        none.with_access_all_registrants(true),
        none.with_ignore_existing_key(true),
    ];
    assert_eq!(each.map(|of| of.bits()), [1, 2, 4, 8, 16, 32, 64, 128]);
    let rhii = ControllerAttributes::default().with_rhii(true);
    assert_eq!(rhii.bits(), 1 << 18);
    let name = Status::HOST_IDENTIFIER_NOT_INITIALIZED.name();
    assert_eq!(name, Some("Host Identifier Not Initialized"));
    assert_eq!(Status::HOST_IDENTIFIER_NOT_INITIALIZED.0, 0x27);
}
