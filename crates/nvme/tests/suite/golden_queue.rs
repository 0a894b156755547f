//! Queue entries and commands, byte by byte.
//!
//! The arrays are written by hand from the tables of the specifications: a
//! mistake that is made twice, in `to_entry` and in `parse`, shows here.

use zonelab_nvme::Status;
use zonelab_nvme::command::{
    DatasetHints, Flush, Identify, IoCommand, OutOfRange, Protection, Read, Write, ZoneAppend,
    ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::identify::{Cns, CommandSet};
use zonelab_nvme::queue::{
    AdminOpcode, CompletionEntry, IoOpcode, PointerKind, SglDescriptor, SglId, SglType,
    StatusField, SubmissionEntry,
};
use zonelab_nvme::status::StatusCodeType;
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};
use zonelab_nvme::zns::{ReportFilter, ZoneReceiveAction, ZoneSendAction};

/// An entry from its 16 dwords, each written as its four bytes in memory.
fn bytes(dwords: [[u8; 4]; 16]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (chunk, dword) in bytes.chunks_exact_mut(4).zip(dwords) {
        chunk.copy_from_slice(&dword);
    }
    bytes
}

const ZERO: [u8; 4] = [0; 4];

#[test]
fn zone_append() {
    let golden = bytes([
        [0x7d, 0x00, 0x34, 0x12], // opcode 7Dh, PRP, CID 1234h
        [0x01, 0x00, 0x00, 0x00], // NSID 1
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        [0x00, 0x10, 0x00, 0x00], // PRP1 1000h
        [0x01, 0x00, 0x00, 0x00], // its upper half
        [0x00, 0x20, 0x00, 0x00], // PRP2 2000h
        [0x00, 0x00, 0x00, 0x00],
        [0x00, 0x00, 0x08, 0x00], // ZSLBA 5_0008_0000h, lower half
        [0x05, 0x00, 0x00, 0x00], // upper half
        [0x1f, 0x00, 0x10, 0x42], // NLB 31, DTYPE 1, PIREMAP, FUA
        [0x00, 0x00, 0xef, 0xbe], // DSPEC BEEFh
        ZERO,
        ZERO,
    ]);
    let append = ZoneAppend {
        fua: true,
        piremap: true,
        dtype: 1,
        dspec: 0xbeef,
        ..ZoneAppend::new(1, 0x5_0008_0000, 32)
    };
    let entry = append
        .to_entry()
        .unwrap()
        .with_cid(0x1234)
        .with_prps(0x1_0000_1000, 0x2000);
    assert_eq!(entry.as_bytes(), golden);
    let entry = SubmissionEntry::read_from_bytes(&golden).unwrap();
    assert_eq!(IoCommand::parse(&entry), Ok(IoCommand::ZoneAppend(append)));
    assert_eq!(entry.cdw0.cid(), 0x1234);
    assert_eq!(entry.dptr.prp1.get(), 0x1_0000_1000);
}

#[test]
fn read_with_every_field() {
    let golden = bytes([
        [0x02, 0x00, 0x00, 0x00],
        [0x02, 0x00, 0x00, 0x00], // NSID 2
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        ZERO,
        [0x88, 0x77, 0x66, 0x55], // SLBA 1122334455667788h
        [0x44, 0x33, 0x22, 0x11],
        [0xff, 0xff, 0x00, 0x95], // NLB 65535, STC, reference tag, guard, LR
        [0xe3, 0x00, 0x00, 0x00], // DSM: frequency 3, latency 2, sequential, incompressible
        [0xdd, 0xcc, 0xbb, 0xaa], // EILBRT
        [0x34, 0x12, 0x78, 0x56], // ELBAT 1234h, ELBATM 5678h
    ]);
    let read = Read {
        lr: true,
        dsm: DatasetHints::default()
            .with_access_frequency(3)
            .with_access_latency(2)
            .with_sequential_request(true)
            .with_incompressible(true),
        protection: Protection {
            check_guard: true,
            check_reference_tag: true,
            stc: true,
            ilbrt: 0xaabb_ccdd,
            lbat: 0x1234,
            lbatm: 0x5678,
            ..Protection::default()
        },
        ..Read::new(2, 0x1122_3344_5566_7788, 65_536)
    };
    assert_eq!(read.to_entry().unwrap().as_bytes(), golden);
    let entry = SubmissionEntry::read_from_bytes(&golden).unwrap();
    assert_eq!(IoCommand::parse(&entry), Ok(IoCommand::Read(read)));
}

#[test]
fn write_with_protection_action() {
    let write = Write {
        dtype: 0xf,
        dspec: 0x0102,
        dsm: DatasetHints::from_bits(0x40),
        protection: Protection {
            pract: true,
            check_application_tag: true,
            ..Protection::default()
        },
        ..Write::new(1, 8, 1)
    };
    let entry = write.to_entry().unwrap();
    assert_eq!(entry.cdw0.as_bytes(), [0x01, 0, 0, 0]);
    assert_eq!(entry.cdw10.as_bytes(), [8, 0, 0, 0]);
    assert_eq!(entry.cdw12.as_bytes(), [0x00, 0x00, 0xf0, 0x28]);
    assert_eq!(entry.cdw13.as_bytes(), [0x40, 0x00, 0x02, 0x01]);
    assert_eq!(IoCommand::parse(&entry), Ok(IoCommand::Write(write)));
}

#[test]
fn flush_is_opcode_and_namespace() {
    let entry = Flush { nsid: u32::MAX }.to_entry();
    let mut golden = [0; 64];
    golden[4..8].fill(0xff);
    assert_eq!(entry.as_bytes(), golden);
}

#[test]
fn zone_management_send() {
    let open = ZoneManagementSend {
        zsaso: true,
        ..ZoneManagementSend::new(1, 0x8_0000, ZoneSendAction::OPEN)
    };
    let entry = open.to_entry();
    assert_eq!(entry.as_bytes()[0], 0x79);
    assert_eq!(entry.as_bytes()[40..48], [0, 0, 8, 0, 0, 0, 0, 0]);
    assert_eq!(entry.as_bytes()[48..52], [0; 4]);
    assert_eq!(entry.as_bytes()[52..56], [0x03, 0x02, 0, 0]);
    let reset_all = ZoneManagementSend {
        select_all: true,
        ..ZoneManagementSend::new(1, 0, ZoneSendAction::RESET)
    };
    assert_eq!(reset_all.to_entry().as_bytes()[52..56], [0x04, 0x01, 0, 0]);
    // The last block to commit, not the first of the zone.
    let flush = ZoneManagementSend::new(1, 0x8_001f, ZoneSendAction::ZRWA_FLUSH);
    assert_eq!(flush.to_entry().as_bytes()[40..44], [0x1f, 0, 8, 0]);
    assert_eq!(flush.to_entry().as_bytes()[52..56], [0x11, 0, 0, 0]);
    let extension = ZoneManagementSend::new(1, 0, ZoneSendAction::SET_DESCRIPTOR_EXTENSION);
    assert_eq!(extension.to_entry().as_bytes()[52..56], [0x10, 0, 0, 0]);
}

#[test]
fn zone_management_receive() {
    let report = ZoneManagementReceive {
        zra: ZoneReceiveAction::EXTENDED_REPORT_ZONES,
        filter: ReportFilter::FULL,
        partial: true,
        ..ZoneManagementReceive::new(1, 0x1_0000_0000, 1024)
    };
    let entry = report.to_entry().unwrap();
    assert_eq!(entry.as_bytes()[0], 0x7a);
    assert_eq!(entry.as_bytes()[40..48], [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(entry.as_bytes()[48..52], [0xff, 0x03, 0, 0]);
    assert_eq!(entry.as_bytes()[52..56], [0x01, 0x05, 0x01, 0]);
}

#[test]
fn identify_of_a_command_set() {
    let identify = Identify {
        cntid: 0x0102,
        cns_specific_id: 0x0304,
        uuid_index: 0x7f,
        ..Identify::new(1, Cns::COMMAND_SET_NAMESPACE, CommandSet::ZNS)
    };
    let entry = identify.to_entry().unwrap();
    assert_eq!(entry.as_bytes()[0], 0x06);
    assert_eq!(entry.as_bytes()[4..8], [1, 0, 0, 0]);
    assert_eq!(entry.as_bytes()[40..44], [0x05, 0x00, 0x02, 0x01]);
    assert_eq!(entry.as_bytes()[44..48], [0x04, 0x03, 0x00, 0x02]);
    assert_eq!(entry.as_bytes()[56..60], [0x7f, 0, 0, 0]);
}

#[test]
fn a_transport_sgl_in_the_data_pointer() {
    let sgl = SglDescriptor {
        length: 0x2000.into(),
        id: SglId::default()
            .with_sgl_type(SglType::TRANSPORT_DATA_BLOCK)
            .with_subtype(0xa),
        ..SglDescriptor::default()
    };
    let entry = SubmissionEntry::new(0x02).with_sgl(sgl);
    assert_eq!(entry.as_bytes()[1], 0x40); // PSDT 01b in bits 15:14
    assert_eq!(entry.cdw0.psdt(), PointerKind::SGL_MPTR_BUFFER);
    let golden = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0x5a];
    assert_eq!(entry.as_bytes()[24..40], golden);
    assert_eq!(entry.dptr.as_sgl(), sgl);
}

#[test]
fn fused_commands_are_marked_in_bits_9_8() {
    let mut entry = SubmissionEntry::new(IoOpcode::COMPARE.0);
    entry.cdw0 = entry.cdw0.with_fuse(2);
    assert_eq!(entry.as_bytes()[..2], [0x05, 0x02]);
}

#[test]
fn completion_of_a_zone_append() {
    let golden = [
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // ALBA
        0x09, 0x00, // SQHD 9
        0x03, 0x00, // SQID 3
        0x34, 0x12, // CID 1234h
        0x01, 0x00, // success, phase 1
    ];
    let mut entry =
        CompletionEntry::new(0x1234, Status::SUCCESS).with_result(0x1122_3344_5566_7788);
    entry.sqhd = 9.into();
    entry.sqid = 3.into();
    entry.status = entry.status.with_p(true);
    assert_eq!(entry.as_bytes(), golden);
    let entry = CompletionEntry::read_from_bytes(&golden).unwrap();
    assert_eq!(entry.result(), 0x1122_3344_5566_7788);
    assert!(entry.status.status().is_success() && !entry.status.may_retry());
}

#[test]
fn every_bit_of_the_status_field() {
    let field = |bytes: [u8; 2]| StatusField::read_from_bytes(&bytes).unwrap();
    assert_eq!(field([0x01, 0x00]), StatusField::default().with_p(true));
    assert_eq!(field([0xfe, 0x01]), StatusField::default().with_sc(0xff));
    let vendor = StatusField::default().with_sct(StatusCodeType::VENDOR_SPECIFIC);
    assert_eq!(field([0x00, 0x0e]), vendor);
    assert_eq!(field([0x00, 0x30]), StatusField::default().with_crd(3));
    assert_eq!(field([0x00, 0x40]), StatusField::default().with_m(true));
    assert_eq!(field([0x00, 0x80]), StatusField::default().with_dnr(true));
}

#[test]
fn zone_invalid_write_with_do_not_retry() {
    // SC BCh in bits 8:1 and SCT 1 in bits 11:9 make 378h; DNR adds 8000h.
    let entry = CompletionEntry::new(1, Status::ZONE_INVALID_WRITE).with_dnr(true);
    assert_eq!(entry.as_bytes()[14..], [0x78, 0x83]);
    assert_eq!(entry.status.status(), Status::ZONE_INVALID_WRITE);
    assert!(!entry.status.may_retry());
    assert!(entry.with_dnr(false).status.may_retry());
}

/// The codes that the lab's drives return, typed from the tables once more.
#[test]
fn status_codes_are_those_of_the_specification() {
    let generic = [
        (Status::SUCCESS, 0x00, "Successful Completion"),
        (Status::INVALID_OPCODE, 0x01, "Invalid Command Opcode"),
        (Status::INVALID_FIELD, 0x02, "Invalid Field in Command"),
        (Status::DATA_TRANSFER_ERROR, 0x04, "Data Transfer Error"),
        (Status::INTERNAL_ERROR, 0x06, "Internal Error"),
        (
            Status::NAMESPACE_WRITE_PROTECTED,
            0x20,
            "Namespace is Write Protected",
        ),
        (Status::LBA_OUT_OF_RANGE, 0x80, "LBA Out of Range"),
        (Status::NAMESPACE_NOT_READY, 0x82, "Namespace Not Ready"),
    ];
    let specific = [
        (Status::INVALID_LOG_PAGE, 0x09, "Invalid Log Page"),
        (
            Status::FEATURE_NOT_CHANGEABLE,
            0x0e,
            "Feature Not Changeable",
        ),
        (
            Status::COMMAND_SIZE_LIMIT_EXCEEDED,
            0x83,
            "Command Size Limit Exceeded",
        ),
        (
            Status::INVALID_ZONE_OPERATION_REQUEST,
            0xb6,
            "Invalid Zone Operation Request",
        ),
        (
            Status::ZRWA_RESOURCES_UNAVAILABLE,
            0xb7,
            "ZRWA Resources Unavailable",
        ),
        (Status::ZONE_BOUNDARY_ERROR, 0xb8, "Zone Boundary Error"),
        (Status::ZONE_IS_FULL, 0xb9, "Zone Is Full"),
        (Status::ZONE_IS_READ_ONLY, 0xba, "Zone Is Read Only"),
        (Status::ZONE_IS_OFFLINE, 0xbb, "Zone Is Offline"),
        (Status::ZONE_INVALID_WRITE, 0xbc, "Zone Invalid Write"),
        (Status::TOO_MANY_ACTIVE_ZONES, 0xbd, "Too Many Active Zones"),
        (Status::TOO_MANY_OPEN_ZONES, 0xbe, "Too Many Open Zones"),
        (
            Status::INVALID_ZONE_STATE_TRANSITION,
            0xbf,
            "Invalid Zone State Transition",
        ),
    ];
    let media = [
        (Status::WRITE_FAULT, 0x80, "Write Fault"),
        (
            Status::UNRECOVERED_READ_ERROR,
            0x81,
            "Unrecovered Read Error",
        ),
        (Status::COMPARE_FAILURE, 0x85, "Compare Failure"),
    ];
    let tables = [(0_u16, &generic[..]), (1, &specific), (2, &media)];
    for (sct, table) in tables {
        for (status, sc, name) in table {
            let text = format!("{name} ({:#x})", sct * 0x100 + sc);
            assert_eq!(status.to_string(), text);
        }
    }
}

#[test]
fn opcodes_are_those_of_the_specification() {
    let io = [
        (IoOpcode::FLUSH, 0x00),
        (IoOpcode::WRITE, 0x01),
        (IoOpcode::READ, 0x02),
        (IoOpcode::WRITE_UNCORRECTABLE, 0x04),
        (IoOpcode::COMPARE, 0x05),
        (IoOpcode::WRITE_ZEROES, 0x08),
        (IoOpcode::DATASET_MANAGEMENT, 0x09),
        (IoOpcode::VERIFY, 0x0c),
        (IoOpcode::COPY, 0x19),
        (IoOpcode::ZONE_MANAGEMENT_SEND, 0x79),
        (IoOpcode::ZONE_MANAGEMENT_RECEIVE, 0x7a),
        (IoOpcode::ZONE_APPEND, 0x7d),
    ];
    for (opcode, number) in io {
        assert_eq!(opcode, IoOpcode(number));
        // Bits 1:0 say which way data goes: 01b to the controller, 10b from it.
        let (to, from) = (number & 1 != 0, number & 2 != 0);
        assert!(!(to && from), "{opcode} moves data both ways");
    }
    assert_eq!(AdminOpcode::IDENTIFY.0, 0x06);
    assert_eq!(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST.0, 0x0c);
    assert_eq!(AdminOpcode::FORMAT_NVM.0, 0x80);
}

#[test]
fn a_value_without_a_place_is_named() {
    let error = Read::new(1, 0, 0).to_entry().unwrap_err();
    assert_eq!(
        error.to_string(),
        "nlb is 0, but the entry holds 1 to 65536"
    );
    let error = ZoneAppend::new(1, 0, 65_537).to_entry().unwrap_err();
    assert_eq!(error.value, 65_537);
    let write = Write {
        dtype: 16,
        ..Write::new(1, 0, 1)
    };
    let error = write.to_entry().unwrap_err();
    assert_eq!(
        error,
        OutOfRange {
            field: "dtype",
            value: 16,
            min: 0,
            max: 15
        }
    );
    for (numd, good) in [
        (0, false),
        (1, true),
        (1 << 32, true),
        ((1 << 32) + 1, false),
    ] {
        let entry = ZoneManagementReceive::new(1, 0, numd).to_entry();
        assert_eq!(entry.is_ok(), good, "{numd}");
    }
}

#[test]
fn a_command_is_not_taken_for_another() {
    let read = Read::new(1, 0, 1).to_entry().unwrap();
    assert_eq!(Write::parse(&read), Err(Status::INVALID_OPCODE));
    assert_eq!(ZoneAppend::parse(&read), Err(Status::INVALID_OPCODE));
    assert_eq!(Identify::parse(&read), Err(Status::INVALID_OPCODE));
    let uncorrectable = SubmissionEntry::new(IoOpcode::WRITE_UNCORRECTABLE.0);
    assert_eq!(
        IoCommand::parse(&uncorrectable),
        Err(Status::INVALID_OPCODE)
    );
}
