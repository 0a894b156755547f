//! Fabrics commands, the data of Connect and controller properties: bytes and
//! bits from the tables of the base specification 2.0.

use core::mem::offset_of;
use zonelab_nvme::Status;
use zonelab_nvme::command::OutOfRange;
use zonelab_nvme::fabrics::{
    AuthenticationReceive, AuthenticationRequirements, AuthenticationSend, Connect,
    ConnectAttributes, ConnectData, ConnectResponse, DISCOVERY_NQN, Disconnect, FabricsCommand,
    InvalidParameter, PropertyGet, PropertySet,
};
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::property::{
    AdminQueueAttributes, Capabilities, CommandSetSelected, Configuration, ControllerStatus,
    Property, ReadyTimeouts, SUBSYSTEM_RESET, ShutdownNotification, ShutdownStatus,
};
use zonelab_nvme::queue::{SglDescriptor, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;
use zonelab_nvme::zerocopy::{FromBytes, FromZeros};

/// The command of the entry with these bytes, and zeroes elsewhere.
fn parse(parts: &[(usize, &[u8])]) -> (SubmissionEntry, Result<FabricsCommand, Status>) {
    let mut bytes = [0_u8; 64];
    for (offset, part) in parts {
        bytes[*offset..*offset + part.len()].copy_from_slice(part);
    }
    let entry = SubmissionEntry::read_from_bytes(&bytes).expect("64 bytes are an entry");
    (entry, FabricsCommand::parse(&entry))
}

#[test]
fn connect_of_an_admin_queue() {
    let (golden, parsed) = parse(&[
        (0, &[0x7f, 0x40, 0x34, 0x12]), // fabrics, SGL, CID 1234h
        (4, &[0x01]),                   // Connect
        (32, &[0x00, 0x04, 0, 0]),      // 1024 bytes
        (39, &[0x01]),                  // in the capsule
        (40, &[0, 0, 0, 0]),            // RECFMT, QID
        (44, &[31, 0, 0x04]),           // SQSIZE, CATTR: no flow control
        (48, &[0x88, 0x13, 0, 0]),      // KATO 5 s
    ]);
    let connect = Connect {
        cattr: ConnectAttributes::default().with_disable_sq_flow_control(true),
        kato: 5000,
        ..Connect::new(0, 32)
    };
    assert_eq!(parsed, Ok(FabricsCommand::Connect(connect)));
    let entry = connect
        .to_entry()
        .unwrap()
        .with_cid(0x1234)
        .with_sgl(SglDescriptor::in_capsule(0, 1024));
    assert_eq!(entry, golden);
}

#[test]
fn connect_of_an_io_queue() {
    let (golden, parsed) = parse(&[
        (0, &[0x7f, 0, 0, 0, 0x01]),
        (40, &[0x02, 0x01, 0x04, 0x03]), // RECFMT 102h, QID 304h
        (44, &[0xff, 0xff, 0x09]),       // SQSIZE 65536, CATTR: high, individual deletion
    ]);
    let connect = Connect {
        recfmt: 0x102,
        cattr: ConnectAttributes::default()
            .with_priority(1)
            .with_individual_queue_deletion(true),
        ..Connect::new(0x304, 65_536)
    };
    assert_eq!(parsed, Ok(FabricsCommand::Connect(connect)));
    assert_eq!(connect.to_entry().unwrap(), golden);
    for sqsize in [0, 65_537] {
        let error = Connect::new(1, sqsize).to_entry().unwrap_err();
        assert_eq!((error.field, error.value), ("sqsize", sqsize.into()));
    }
}

#[test]
fn the_data_of_connect() {
    let mut bytes = [0_u8; 1024];
    bytes[..16].fill(0xa5);
    bytes[16..18].fill(0xff);
    bytes[256..292].copy_from_slice(b"nqn.2014-08.org.nvmexpress.discovery");
    bytes[512..527].copy_from_slice(b"nqn.2024-01.lab");
    let data = ConnectData::ref_from_bytes(&bytes).unwrap();
    assert_eq!(data.hostid, [0xa5; 16]);
    assert_eq!(data.cntlid.get(), 0xffff);
    assert_eq!(data.subnqn, Nqn::new(DISCOVERY_NQN).unwrap());
    assert_eq!(data.hostnqn.as_str(), Some("nqn.2024-01.lab"));
    assert_eq!(offset_of!(ConnectData, subnqn), 256);
    assert_eq!(offset_of!(ConnectData, hostnqn), 512);
    assert_eq!(ConnectData::new_zeroed().subnqn.as_str(), Some(""));
}

#[test]
fn the_response_to_connect() {
    // Bits 15:0 are the controller, bit 17 asks for authentication.
    let response = ConnectResponse::from_dword0(0x0002_0007.into());
    assert_eq!(response.cntlid.get(), 7);
    let atr = AuthenticationRequirements::default().with_atr(true);
    assert_eq!(response.authreq, atr);
    assert_eq!(response.to_dword0().get(), 0x0002_0007);
    let ascr = AuthenticationRequirements::default().with_ascr(true);
    assert_eq!(ascr.bits(), 1 << 2);
    // SUBNQN, at byte 256 of the data, is invalid.
    let invalid = InvalidParameter::default().with_ipo(256).with_in_data(true);
    assert_eq!(invalid.bits(), 0x0001_0100);
}

#[test]
fn property_get_and_set() {
    let (golden, parsed) = parse(&[
        (0, &[0x7f, 0, 0, 0, 0x04]),
        (40, &[0x01]), // 8 bytes
    ]);
    let get = PropertyGet::new(Property::CAP);
    assert_eq!(parsed, Ok(FabricsCommand::PropertyGet(get)));
    assert_eq!(get.to_entry().unwrap(), golden);

    let (golden, parsed) = parse(&[
        (0, &[0x7f]),              // type 00h
        (44, &[0x14]),             // CC
        (48, &[0x61, 0, 0x46, 0]), // enabled, all command sets, entries of 64 and 16 bytes
    ]);
    let configuration = Configuration::default()
        .with_en(true)
        .with_css(CommandSetSelected::ALL)
        .with_iosqes(6)
        .with_iocqes(4);
    let set = PropertySet::new(Property::CC, configuration.bits().into());
    assert_eq!(parsed, Ok(FabricsCommand::PropertySet(set)));
    assert_eq!(set.to_entry().unwrap(), golden);

    let (_, parsed) = parse(&[
        (0, &[0x7f]),
        (40, &[0xff, 0, 0, 0, 0x34, 0x12]),
        (48, &[8, 7, 6, 5, 4, 3, 2, 1]),
    ]);
    let odd = PropertySet {
        size: 7,
        ofst: Property(0x1234),
        value: 0x0102_0304_0506_0708,
    };
    assert_eq!(parsed, Ok(FabricsCommand::PropertySet(odd)));
    let wide = PropertyGet {
        size: 8,
        ..PropertyGet::new(Property::VS)
    };
    assert!(matches!(
        wide.to_entry(),
        Err(OutOfRange { field: "size", .. })
    ));
}

#[test]
fn authentication_and_disconnect() {
    let (golden, parsed) = parse(&[
        (0, &[0x7f, 0, 0, 0, 0x05]),
        (41, &[0x01, 0x01, 0xe9]), // SPSP0, SPSP1, SECP
        (44, &[0x00, 0x02]),       // TL 512
    ]);
    let send = AuthenticationSend::new(512);
    assert_eq!(parsed, Ok(FabricsCommand::AuthenticationSend(send)));
    assert_eq!(send.to_entry(), golden);

    let (golden, parsed) = parse(&[
        (0, &[0x7f, 0, 0, 0, 0x06]),
        (41, &[0x01, 0x01, 0xe9]),
        (44, &[0x00, 0x10]), // AL 4096
    ]);
    let receive = AuthenticationReceive::new(4096);
    assert_eq!(parsed, Ok(FabricsCommand::AuthenticationReceive(receive)));
    assert_eq!(receive.to_entry(), golden);

    let (golden, parsed) = parse(&[(0, &[0x7f, 0, 0, 0, 0x08]), (40, &[0x02, 0x01])]);
    let disconnect = Disconnect { recfmt: 0x102 };
    assert_eq!(parsed, Ok(FabricsCommand::Disconnect(disconnect)));
    assert_eq!(disconnect.to_entry(), golden);
}

#[test]
fn any_fabrics_command_is_understood_or_refused() {
    for fctype in 0..=u8::MAX {
        let (entry, parsed) = parse(&[
            (0, &[0x7f, 0, 0, 0, fctype]),
            (40, &[0xff; 24]), // every field of every type, as large as it gets
        ]);
        let known = matches!(fctype, 0x00 | 0x01 | 0x04 | 0x05 | 0x06 | 0x08);
        assert_eq!(parsed.is_ok(), known, "{fctype:#x}");
        if let Ok(command) = parsed {
            let again = command.to_entry().unwrap();
            assert_eq!(FabricsCommand::parse(&again), Ok(command));
            assert_eq!(again.nsid, entry.nsid);
        }
    }
    let identify = SubmissionEntry::new(0x06).with_nsid(1);
    assert_eq!(
        FabricsCommand::parse(&identify),
        Err(Status::INVALID_OPCODE)
    );
    assert_eq!(Connect::parse(&identify), Err(Status::INVALID_OPCODE));
    let get = PropertyGet::new(Property::CAP).to_entry().unwrap();
    assert_eq!(Connect::parse(&get), Err(Status::INVALID_OPCODE));
}

#[test]
fn properties_lie_where_the_specification_says() {
    let properties = [
        (Property::CAP, 0x00, 8, true),
        (Property::VS, 0x08, 4, true),
        (Property::INTMS, 0x0c, 4, false),
        (Property::INTMC, 0x10, 4, false),
        (Property::CC, 0x14, 4, true),
        (Property::CSTS, 0x1c, 4, true),
        (Property::NSSR, 0x20, 4, true),
        (Property::AQA, 0x24, 4, false),
        (Property::ASQ, 0x28, 8, false),
        (Property::ACQ, 0x30, 8, false),
        (Property::NSSD, 0x64, 4, true),
        (Property::CRTO, 0x68, 4, true),
    ];
    assert_eq!(properties.len(), Property::NAMED.len());
    for (property, offset, bytes, on_fabrics) in properties {
        assert_eq!(property, Property(offset));
        assert_eq!(property.bytes(), Some(bytes), "{property}");
        assert_eq!(property.is_on_fabrics(), on_fabrics, "{property}");
    }
    assert_eq!(Property(0x04).bytes(), None);
    assert_eq!(SUBSYSTEM_RESET.to_be_bytes(), *b"NVMe");
}

#[test]
fn every_bit_of_the_properties() {
    let capabilities = |bit: u32| Capabilities::from_bits(1 << bit);
    let none = Capabilities::default();
    assert_eq!(none.with_mqes_z(u16::MAX).bits(), 0xffff);
    assert_eq!(capabilities(16), none.with_cqr(true));
    assert_eq!(capabilities(17), none.with_ams(1));
    assert_eq!(capabilities(24), none.with_to(1));
    assert_eq!(capabilities(32), none.with_dstrd(1));
    assert_eq!(capabilities(36), none.with_nssrs(true));
    assert_eq!(capabilities(37), none.with_css_nvm(true));
    assert_eq!(capabilities(43), none.with_css_io(true));
    assert_eq!(capabilities(44), none.with_css_admin_only(true));
    assert_eq!(capabilities(45), none.with_bps(true));
    assert_eq!(capabilities(46), none.with_cps(1));
    assert_eq!(capabilities(48), none.with_mpsmin(1));
    assert_eq!(capabilities(52), none.with_mpsmax(1));
    assert_eq!(capabilities(56), none.with_pmrs(true));
    assert_eq!(capabilities(57), none.with_cmbs(true));
    assert_eq!(capabilities(58), none.with_nsss(true));
    assert_eq!(capabilities(59), none.with_crwms(true));
    assert_eq!(capabilities(60), none.with_crims(true));

    let none = Configuration::default();
    let normal = none.with_shn(ShutdownNotification::NORMAL);
    assert_eq!(normal.bits(), 0x4000);
    assert_eq!(none.with_mps(1).bits(), 1 << 7);
    assert_eq!(none.with_ams(1).bits(), 1 << 11);
    assert_eq!(none.with_crime(true).bits(), 1 << 24);

    let none = ControllerStatus::default();
    assert_eq!(none.with_rdy(true).bits(), 1);
    assert_eq!(none.with_cfs(true).bits(), 1 << 1);
    assert_eq!(none.with_shst(ShutdownStatus::COMPLETE).bits(), 1 << 3);
    assert_eq!(none.with_nssro(true).bits(), 1 << 4);
    assert_eq!(none.with_pp(true).bits(), 1 << 5);
    assert_eq!(none.with_st(true).bits(), 1 << 6);

    let admin = AdminQueueAttributes::default()
        .with_asqs_z(31)
        .with_acqs_z(4095);
    assert_eq!(admin.bits(), 0x0fff_001f);
    let ready = ReadyTimeouts::default().with_crwmt(2).with_crimt(1);
    assert_eq!(ready.bits(), 0x0001_0002);
}

#[test]
fn statuses_of_fabrics_commands() {
    let codes = [
        (FabricsStatus::CONNECT_INCOMPATIBLE_FORMAT, 0x80),
        (FabricsStatus::CONNECT_CONTROLLER_BUSY, 0x81),
        (FabricsStatus::CONNECT_INVALID_PARAMETERS, 0x82),
        (FabricsStatus::CONNECT_RESTART_DISCOVERY, 0x83),
        (FabricsStatus::CONNECT_INVALID_HOST, 0x84),
        (FabricsStatus::INVALID_QUEUE_TYPE, 0x85),
        (FabricsStatus::DISCOVER_RESTART, 0x90),
        (FabricsStatus::AUTHENTICATION_REQUIRED, 0x91),
    ];
    assert_eq!(codes.len(), FabricsStatus::NAMED.len());
    for (status, sc) in codes {
        assert_eq!(Status::from(status).sct().0, 1);
        assert_eq!(Status::from(status).sc(), sc);
    }
    let status = FabricsStatus::CONNECT_INVALID_PARAMETERS.status();
    assert_eq!(status.fabrics_name(), Some("Connect Invalid Parameters"));
    assert_eq!(
        Status::INVALID_FIELD.fabrics_name(),
        Some("Invalid Field in Command")
    );
    assert_eq!(Status(0x1ff).fabrics_name(), None);
}
