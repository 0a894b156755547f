//! Log pages: bytes and offsets from the tables of the base specification 2.0.

use core::mem::offset_of;
use zonelab_nvme::Status;
use zonelab_nvme::identify::{Ascii, Nqn};
use zonelab_nvme::log::{
    AddressFamily, CommandEffects, CommandEffectsLog, CriticalWarning, DiscoveryEntry,
    DiscoveryEntryFlags, DiscoveryHeader, ErrorEntry, FirmwareSlots, LogPageId,
    ParameterErrorLocation, SmartLog, SubsystemType, SupportedLogPage, SupportedLogPages,
    TcpSecurity, TransportRequirements, TransportType,
};
use zonelab_nvme::queue::StatusField;
use zonelab_nvme::zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Asserts the offset of each field, as the specification prints it.
macro_rules! assert_offsets {
    ($type:ty { $($field:ident: $offset:literal),* $(,)? }) => {
        $( assert_eq!(offset_of!($type, $field), $offset, stringify!($field)); )*
    };
}

#[test]
fn an_error_of_known_bytes() {
    let mut golden = [0_u8; 64];
    golden[0] = 7; // error count
    golden[8..10].copy_from_slice(&[0x02, 0x01]); // SQID 102h
    golden[10..12].copy_from_slice(&[0x34, 0x12]); // CID
    golden[12..14].copy_from_slice(&[0x78, 0xc3]); // Zone Invalid Write, more, do not retry
    golden[14..16].copy_from_slice(&[40, 0x03]); // byte 40, bit 3
    golden[16..24].copy_from_slice(&[0, 0, 8, 0, 5, 0, 0, 0]); // LBA
    golden[24] = 1; // NSID
    golden[29] = 3; // TCP
    let entry = ErrorEntry {
        errcnt: 7.into(),
        sqid: 0x102.into(),
        cid: 0x1234.into(),
        status: StatusField::default()
            .with_status(Status::ZONE_INVALID_WRITE)
            .with_m(true)
            .with_dnr(true),
        pel: ParameterErrorLocation::default().with_byte(40).with_bit(3),
        lba: 0x5_0008_0000.into(),
        nsid: 1.into(),
        trtype: TransportType::TCP.0,
        ..ErrorEntry::default()
    };
    assert_eq!(entry.as_bytes(), golden);
    assert_offsets!(ErrorEntry {
        vsia: 28,
        csinfo: 32,
        ttsi: 40,
    });
}

#[test]
fn smart_offsets_and_warnings() {
    assert_offsets!(SmartLog {
        cw: 0,
        ctemp: 1,
        avsp: 3,
        avspt: 4,
        pused: 5,
        egcws: 6,
        dur: 32,
        duw: 48,
        hrc: 64,
        hwc: 80,
        cbt: 96,
        pwrc: 112,
        poh: 128,
        upl: 144,
        mdie: 160,
        neile: 176,
        wctt: 192,
        cctt: 196,
        tsen: 200,
        tmt1tc: 216,
        tmt2tc: 220,
        ttfm1: 224,
        ttfm2: 228,
    });
    let warning = |bit: u8| CriticalWarning::from_bits(1 << bit);
    let none = CriticalWarning::default();
    assert_eq!(warning(0), none.with_spare(true));
    assert_eq!(warning(1), none.with_temperature(true));
    assert_eq!(warning(2), none.with_degraded(true));
    assert_eq!(warning(3), none.with_read_only(true));
    assert_eq!(warning(4), none.with_volatile_backup(true));
    assert_eq!(warning(5), none.with_persistent_memory(true));
    let mut log = SmartLog::new_zeroed();
    log.ctemp = 300.into();
    log.hwc = (1_u128 << 64 | 2).into();
    assert_eq!(log.as_bytes()[..4], [0, 0x2c, 0x01, 0]);
    assert_eq!(log.as_bytes()[80..90], [2, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn firmware_slots() {
    let mut bytes = [0_u8; 512];
    bytes[0] = 0x21; // slot 1 runs, slot 2 is next
    bytes[8..16].copy_from_slice(b"1.0     ");
    bytes[56..64].copy_from_slice(b"7.7     ");
    let slots = FirmwareSlots::ref_from_bytes(&bytes).unwrap();
    assert_eq!((slots.afi.active(), slots.afi.next()), (1, 2));
    assert_eq!(slots.frs[0].as_str(), Some("1.0"));
    assert_eq!(slots.frs[1].as_str(), Some(""));
    assert_eq!(slots.frs[6].as_str(), Some("7.7"));
}

#[test]
fn effects_of_commands_and_pages() {
    let none = CommandEffects::default();
    assert_eq!(none.with_csupp(true).bits(), 1);
    assert_eq!(none.with_lbcc(true).bits(), 1 << 1);
    assert_eq!(none.with_ncc(true).bits(), 1 << 2);
    assert_eq!(none.with_nic(true).bits(), 1 << 3);
    assert_eq!(none.with_ccc(true).bits(), 1 << 4);
    assert_eq!(none.with_cse(2).bits(), 0x2_0000);
    assert_eq!(none.with_uss(true).bits(), 1 << 19);
    assert_eq!(none.with_csp(1).bits(), 1 << 20);
    let mut log = CommandEffectsLog::new_zeroed();
    log.acs[0x80] = none.with_csupp(true).with_lbcc(true).with_cse(1);
    log.iocs[0x7d] = none.with_csupp(true).with_lbcc(true);
    assert_eq!(log.as_bytes()[0x200..0x204], [0x03, 0, 0x01, 0]);
    assert_eq!(log.as_bytes()[1024 + 0x1f4..][..4], [0x03, 0, 0, 0]);

    let mut pages = SupportedLogPages::new_zeroed();
    let smart = usize::from(LogPageId::SMART.0);
    pages.lids[smart] = SupportedLogPage::default().with_lsupp(true).with_lidsp(1);
    assert_eq!(pages.as_bytes()[8..12], [1, 0, 1, 0]);
    assert_eq!(SupportedLogPage::default().with_ios(true).bits(), 2);
}

#[test]
fn a_discovery_log_of_one_subsystem() {
    let mut bytes = [0_u8; 2048];
    bytes[0] = 3; // generation
    bytes[8] = 1; // one record
    let entry = &mut bytes[1024..];
    entry[..4].copy_from_slice(&[0x03, 0x01, 0x02, 0x06]); // TCP, IPv4, NVM, TREQ
    entry[4] = 9; // port identifier
    entry[6..10].copy_from_slice(&[0xff, 0xff, 0x80, 0x00]); // any controller, 128 entries
    entry[10] = 0x01;
    entry[32..64].copy_from_slice(b"4420                            ");
    entry[256..271].copy_from_slice(b"nqn.2024-01.lab");
    entry[512..768].fill(b' ');
    entry[512..521].copy_from_slice(b"127.0.0.1");
    entry[768] = 0x02; // TLS 1.3

    let (header, rest) = DiscoveryHeader::ref_from_prefix(&bytes).unwrap();
    assert_eq!(header.genctr.get(), 3);
    assert_eq!(header.numrec.get(), 1);
    assert_eq!(header.recfmt.get(), 0);
    let entry = DiscoveryEntry::ref_from_bytes(rest).unwrap();
    assert_eq!(entry.trtype, TransportType::TCP);
    assert_eq!(entry.adrfam, AddressFamily::IPV4);
    assert_eq!(entry.subtype, SubsystemType::NVM);
    let treq = TransportRequirements::default()
        .with_secure_channel(2)
        .with_disable_sq_flow_control(true);
    assert_eq!(entry.treq, treq);
    assert_eq!(entry.portid.get(), 9);
    assert_eq!((entry.cntlid.get(), entry.asqsz.get()), (0xffff, 128));
    let flags = DiscoveryEntryFlags::default();
    assert_eq!(entry.eflags, flags.with_dupretinfo(true));
    assert_eq!(flags.with_epcsd(true).bits(), 2);
    assert_eq!(entry.trsvcid, Ascii::new("4420").unwrap());
    assert_eq!(entry.subnqn, Nqn::new("nqn.2024-01.lab").unwrap());
    assert_eq!(entry.traddr, Ascii::new("127.0.0.1").unwrap());
    assert_eq!(entry.tsas.sectype, TcpSecurity::TLS_1_3);
    assert_offsets!(DiscoveryHeader { recfmt: 16 });
}

#[test]
fn log_pages_are_those_of_the_specification() {
    let pages = [
        (LogPageId::SUPPORTED_LOG_PAGES, 0x00),
        (LogPageId::ERROR_INFORMATION, 0x01),
        (LogPageId::SMART, 0x02),
        (LogPageId::FIRMWARE_SLOTS, 0x03),
        (LogPageId::CHANGED_NAMESPACES, 0x04),
        (LogPageId::COMMAND_EFFECTS, 0x05),
        (LogPageId::DISCOVERY, 0x70),
        (LogPageId::CHANGED_ZONES, 0xbf),
    ];
    for (page, number) in pages {
        assert_eq!(page, LogPageId(number));
    }
}
