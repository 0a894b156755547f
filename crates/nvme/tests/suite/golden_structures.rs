//! Structures that Identify, Zone Management Receive and Get Log Page return:
//! bytes and bits from the tables of the specifications.

use zonelab_nvme::Reserved;
use zonelab_nvme::identify::{
    Ascii, AsyncEvents, CommandSetVector, ControllerAttributes, ControllerList, ControllerType,
    EntrySizes, ExtendedLbaFormat, FabricsAttributes, FirmwareUpdates, FormatAttributes,
    FormattedLba, FusedOperations, IdentifyController, IdentifyNamespace, IdentifyNamespaceZns,
    IndependentFeatures, LbaFormat, LogPageAttributes, MultiPath, NamespaceFeatures,
    NamespaceIdHeader, NamespaceIdType, NamespaceList, NamespaceStatus, NvmOptions, OptionalAdmin,
    OptionalFabrics, ProtectionCapabilities, SglSupport, Version, VolatileWriteCache,
    ZoneCharacteristics, ZonedOptions, ZrwaCapability, namespace_ids,
};
use zonelab_nvme::zerocopy::{FromBytes, FromZeros, IntoBytes};
use zonelab_nvme::zns::{
    ChangedZoneList, ReportHeader, ZoneAttributes, ZoneAttributesInfo, ZoneDescriptor, ZoneState,
    ZoneType,
};

#[test]
fn a_controller_of_known_bytes() {
    let mut bytes = [0_u8; 4096];
    bytes[0..2].copy_from_slice(&[0x1b, 0x96]); // VID 961Bh
    bytes[4..24].copy_from_slice(b"ZL0001              ");
    bytes[24..64].copy_from_slice(b"zonelab ZN540                           ");
    bytes[77] = 5; // MDTS
    bytes[80..84].copy_from_slice(&[0x00, 0x00, 0x02, 0x00]); // 2.0.0
    bytes[95] = 0x08; // OAES bit 27
    bytes[111] = 1; // I/O controller
    bytes[256..258].copy_from_slice(&[0x02, 0x01]); // Format NVM, doorbell buffer
    bytes[512] = 0x66; // SQES
    bytes[513] = 0x44; // CQES
    bytes[516] = 32; // NN
    bytes[520..522].copy_from_slice(&[0x04, 0x01]); // DSM, Copy
    bytes[525] = 0x07; // VWC
    bytes[536..540].copy_from_slice(&[0x01, 0x00, 0x30, 0x00]); // SGLS
    bytes[768..783].copy_from_slice(b"nqn.2024-01.lab");

    let controller = IdentifyController::ref_from_bytes(&bytes).unwrap();
    assert_eq!(controller.vid.get(), 0x961b);
    assert_eq!(controller.sn.as_str(), Some("ZL0001"));
    assert_eq!(controller.mn, Ascii::new("zonelab ZN540").unwrap());
    assert_eq!(controller.mdts, 5);
    assert_eq!(controller.ver, Version::default().with_mjr(2));
    assert!(controller.oaes.zone_descriptor_changed());
    assert_eq!(controller.cntrltype, ControllerType::IO);
    assert!(controller.oacs.format_nvm() && controller.oacs.doorbell_buffer());
    assert_eq!(
        controller.sqes,
        EntrySizes::default().with_min(6).with_max(6)
    );
    assert_eq!((controller.cqes.min(), controller.cqes.max()), (4, 4));
    assert_eq!(controller.nn.get(), 32);
    assert!(controller.oncs.dataset_management() && controller.oncs.copy());
    let cache = VolatileWriteCache::default()
        .with_present(true)
        .with_flush_all(3);
    assert_eq!(controller.vwc, cache);
    let sgls = SglSupport::default()
        .with_support(1)
        .with_offset(true)
        .with_transport(true);
    assert_eq!(controller.sgls, sgls);
    assert_eq!(controller.subnqn.as_str(), Some("nqn.2024-01.lab"));
    assert_eq!(controller.as_bytes(), bytes);
}

#[test]
fn the_format_of_a_namespace() {
    // MS 8, LBADS 12, RP 2.
    let format = LbaFormat::read_from_bytes(&[0x08, 0x00, 0x0c, 0x02]).unwrap();
    assert_eq!((format.ms(), format.lbads(), format.rp()), (8, 12, 2));
    assert_eq!(format.block_bytes(), Some(4096));
    assert_eq!(format.with_lbads(0).block_bytes(), None);
    assert_eq!(format.with_lbads(31).block_bytes(), Some(1 << 31));
    assert_eq!(format.with_lbads(32).block_bytes(), None);

    // Index 35 is 10_0011b: 2 in bits 6:5 and 3 in bits 3:0. Bit 4 is not part of it.
    let flbas = FormattedLba::default().with_index(35).with_extended(true);
    assert_eq!(flbas.as_bytes(), [0b0101_0011]);
    assert_eq!(flbas.index(), 35);

    let mut namespace = IdentifyNamespace::new_zeroed();
    namespace.flbas = flbas;
    namespace.lbaf[35] = format;
    assert_eq!(
        namespace.format(),
        LbaFormat::default(),
        "16 formats or fewer: index 3"
    );
    namespace.nlbaf_z = 16;
    assert_eq!(namespace.format(), format);
    assert_eq!(
        namespace.as_bytes()[128 + 35 * 4..][..4],
        [0x08, 0x00, 0x0c, 0x02]
    );
}

#[test]
fn a_zoned_namespace_of_known_bytes() {
    let mut bytes = [0_u8; 4096];
    bytes[0] = 0x02; // ZAE
    bytes[2] = 0x03; // RAZB, ZRWASUP
    bytes[4..8].copy_from_slice(&[13, 0, 0, 0]); // MAR: 14 zones
    bytes[8..12].fill(0xff); // MOR: no limit
    bytes[52] = 0x01; // EXPFLUSHSUP
    bytes[2816 + 16..][..9].copy_from_slice(&[0, 0, 8, 0, 0, 0, 0, 0, 2]);
    let namespace = IdentifyNamespaceZns::ref_from_bytes(&bytes).unwrap();
    assert!(namespace.zoc.zae() && !namespace.zoc.vzc());
    assert!(namespace.ozcs.razb() && namespace.ozcs.zrwasup());
    assert_eq!(namespace.max_active(), Some(14));
    assert_eq!(namespace.max_open(), None);
    assert_eq!(namespace.max_zrwa(), Some(1));
    assert!(namespace.zrwacap.expflushsup());
    assert_eq!(namespace.lbafe[1].zsze.get(), 0x8_0000);
    assert_eq!(namespace.lbafe[1].zdes, 2);
}

#[test]
fn a_zone_descriptor_of_known_bytes() {
    let mut golden = [0_u8; 64];
    golden[0] = 0x02; // sequential write required
    golden[1] = 0xe0; // full
    golden[2] = 0b1000_0101; // ZDEV, RZR, ZFC
    golden[3] = 0b0000_1101; // reset limit 3, finish limit 1
    golden[8..16].copy_from_slice(&[0x00, 0x50, 0x04, 0, 0, 0, 0, 0]); // ZCAP 4_5000h
    golden[16..24].copy_from_slice(&[0x00, 0x00, 0x10, 0, 0x01, 0, 0, 0]); // ZSLBA
    golden[24..32].fill(0xff); // WP

    let zone = ZoneDescriptor {
        za: ZoneAttributes::default()
            .with_zfc(true)
            .with_rzr(true)
            .with_zdev(true),
        zai: ZoneAttributesInfo::default()
            .with_reset_limit(3)
            .with_finish_limit(1),
        zcap: 0x4_5000.into(),
        zslba: 0x1_0010_0000.into(),
        wp: u64::MAX.into(),
        ..ZoneDescriptor::sequential(ZoneState::FULL)
    };
    assert_eq!(zone.as_bytes(), golden);
    assert_eq!(ZoneDescriptor::read_from_bytes(&golden), Ok(zone));
    assert_eq!(zone.zt.zt(), ZoneType::SEQUENTIAL_WRITE_REQUIRED);
    assert_eq!(zone.zs.zs(), ZoneState::FULL);
}

#[test]
fn attributes_are_one_bit_each() {
    let bit = |number: u32| ZoneAttributes::from_bits(1 << number);
    assert_eq!(bit(0), ZoneAttributes::default().with_zfc(true));
    assert_eq!(bit(1), ZoneAttributes::default().with_fzr(true));
    assert_eq!(bit(2), ZoneAttributes::default().with_rzr(true));
    assert_eq!(bit(3), ZoneAttributes::default().with_zrwav(true));
    assert_eq!(bit(7), ZoneAttributes::default().with_zdev(true));
}

/// Asserts which bit each flag is, as the specification numbers them.
macro_rules! assert_flags {
    ($type:ty { $($with:ident: $bit:literal),* $(,)? }) => {
        $( assert_eq!(<$type>::default().$with(true).bits(), 1 << $bit, stringify!($with)); )*
    };
}

#[test]
fn controller_flags() {
    assert_flags!(AsyncEvents {
        with_namespace_attribute: 8,
        with_firmware_activation: 9,
        with_ana_change: 11,
        with_predictable_latency: 12,
        with_lba_status: 13,
        with_endurance_group: 14,
        with_subsystem_shutdown: 15,
        with_zone_descriptor_changed: 27,
        with_discovery_log: 31,
    });
    assert_flags!(OptionalAdmin {
        with_security: 0,
        with_format_nvm: 1,
        with_firmware: 2,
        with_namespace_management: 3,
        with_self_test: 4,
        with_directives: 5,
        with_nvme_mi: 6,
        with_virtualization: 7,
        with_doorbell_buffer: 8,
        with_get_lba_status: 9,
        with_lockdown: 10,
    });
    assert_flags!(NvmOptions {
        with_compare: 0,
        with_write_uncorrectable: 1,
        with_dataset_management: 2,
        with_write_zeroes: 3,
        with_save_select: 4,
        with_reservations: 5,
        with_timestamp: 6,
        with_verify: 7,
        with_copy: 8,
    });
}

#[test]
fn controller_attributes() {
    assert_flags!(SglSupport {
        with_keyed: 2,
        with_bit_bucket: 16,
        with_metadata_byte_aligned: 17,
        with_oversize: 18,
        with_mptr_sgl: 19,
        with_offset: 20,
        with_transport: 21,
    });
    assert_flags!(MultiPath {
        with_ports: 0,
        with_controllers: 1,
        with_sr_iov: 2,
        with_ana: 3,
    });
    assert_flags!(ControllerAttributes {
        with_host_id_128: 0,
        with_non_operational_permissive: 1,
        with_nvm_sets: 2,
        with_read_recovery_levels: 3,
        with_endurance_groups: 4,
        with_predictable_latency: 5,
        with_tbkas: 6,
        with_namespace_granularity: 7,
        with_sq_associations: 8,
        with_uuid_list: 9,
        with_multi_domain: 10,
        with_fixed_capacity: 11,
        with_variable_capacity: 12,
        with_delete_endurance_group: 13,
        with_delete_nvm_set: 14,
        with_elbas: 15,
    });
    assert_flags!(LogPageAttributes {
        with_smart_per_namespace: 0,
        with_command_effects: 1,
        with_extended: 2,
        with_telemetry: 3,
        with_persistent_events: 4,
        with_supported_logs: 5,
        with_telemetry_area_4: 6,
    });
    assert_flags!(FormatAttributes {
        with_format_all: 0,
        with_erase_all: 1,
        with_cryptographic: 2,
        with_no_broadcast: 3,
    });
    assert_flags!(FusedOperations {
        with_compare_and_write: 0
    });
    assert_flags!(FabricsAttributes {
        with_static_model: 0
    });
    assert_flags!(OptionalFabrics { with_disconnect: 0 });
    // Slot 1 read only, 7 slots, no reset needed, overlaps noticed.
    let firmware = FirmwareUpdates::default()
        .with_slot_1_read_only(true)
        .with_slots(7)
        .with_without_reset(true)
        .with_smud(true);
    assert_eq!(firmware.bits(), 0x3f);
    let version = Version::default().with_mjr(1).with_mnr(4).with_ter(2);
    assert_eq!(version.bits(), 0x0001_0402);
}

#[test]
fn namespace_flags() {
    assert_flags!(NamespaceFeatures {
        with_thinp: 0,
        with_nsabp: 1,
        with_dae: 2,
        with_uidreuse: 3,
        with_optperf: 4,
    });
    assert_flags!(IndependentFeatures {
        with_uidreuse: 3,
        with_rmedia: 4
    });
    assert_flags!(NamespaceStatus { with_nrdy: 0 });
    assert_flags!(ProtectionCapabilities {
        with_storage_tag_16: 0,
        with_storage_tag_16_mask: 1,
        with_stcrs: 2
    });
    let format = ExtendedLbaFormat::default().with_sts(16).with_pif(2);
    assert_eq!(format.bits(), 0x110);
    assert_flags!(ZoneCharacteristics {
        with_vzc: 0,
        with_zae: 1
    });
    assert_flags!(ZonedOptions {
        with_razb: 0,
        with_zrwasup: 1
    });
    assert_flags!(ZrwaCapability {
        with_expflushsup: 0
    });
    assert_flags!(CommandSetVector {
        with_nvm: 0,
        with_key_value: 1,
        with_zns: 2
    });
}

#[test]
fn zone_states_are_those_of_the_specification() {
    let states = [
        (ZoneState::EMPTY, 0x10),
        (ZoneState::IMPLICITLY_OPENED, 0x20),
        (ZoneState::EXPLICITLY_OPENED, 0x30),
        (ZoneState::CLOSED, 0x40),
        (ZoneState::READ_ONLY, 0xd0),
        (ZoneState::FULL, 0xe0),
        (ZoneState::OFFLINE, 0xf0),
    ];
    assert_eq!(states.len(), ZoneState::NAMED.len());
    for (state, byte) in states {
        assert_eq!(ZoneDescriptor::sequential(state).as_bytes()[1], byte);
    }
}

#[test]
fn the_changed_zone_list_names_its_zones_or_none() {
    let mut bytes = [0_u8; 4096];
    bytes[0] = 2;
    bytes[8..16].copy_from_slice(&[0, 0, 8, 0, 0, 0, 0, 0]);
    bytes[16..24].copy_from_slice(&[0, 0, 16, 0, 0, 0, 0, 0]);
    let mut list = ChangedZoneList::read_from_bytes(&bytes).unwrap();
    let zones: Vec<u64> = list.zones().unwrap().iter().map(|zid| zid.get()).collect();
    assert_eq!(zones, [0x8_0000, 0x10_0000]);
    for (nrzid, named) in [(0, Some(0)), (511, Some(511)), (512, None), (0xffff, None)] {
        list.nrzid = nrzid.into();
        assert_eq!(list.zones().map(<[_]>::len), named, "{nrzid}");
    }
}

#[test]
fn lists_of_namespaces_end_at_zero() {
    let mut list = NamespaceList::new_zeroed();
    list.nsid[0] = 1.into();
    list.nsid[1] = 7.into();
    list.nsid[3] = 9.into();
    assert_eq!(list.iter().collect::<Vec<_>>(), [1, 7]);
    list.nsid.fill(1.into());
    assert_eq!(list.iter().count(), 1024);
}

#[test]
fn lists_of_controllers_have_a_count() {
    let mut bytes = [0_u8; 4096];
    bytes[..6].copy_from_slice(&[2, 0, 1, 0, 0x34, 0x12]);
    let mut list = ControllerList::read_from_bytes(&bytes).unwrap();
    let controllers = list.controllers().unwrap();
    assert_eq!(controllers.as_bytes(), [1, 0, 0x34, 0x12]);
    for (numids, named) in [(0, Some(0)), (2047, Some(2047)), (2048, None)] {
        list.numids = numids.into();
        assert_eq!(list.controllers().map(<[_]>::len), named, "{numids}");
    }
}

#[test]
fn the_identifiers_of_a_namespace() {
    let mut list = [0_u8; 64];
    list[..4].copy_from_slice(&[0x03, 16, 0, 0]);
    list[4..20].fill(0xa5); // UUID
    list[20..24].copy_from_slice(&[0x01, 8, 0, 0]);
    list[24..32].fill(0x5a); // EUI-64
    list[32..37].copy_from_slice(&[0x04, 1, 0, 0, 0x02]); // CSI: no padding behind it
    let ids: Vec<_> = namespace_ids(&list).collect();
    let golden: [(NamespaceIdType, &[u8]); 3] = [
        (NamespaceIdType::UUID, &[0xa5; 16]),
        (NamespaceIdType::EUI64, &[0x5a; 8]),
        (NamespaceIdType::CSI, &[0x02]),
    ];
    assert_eq!(ids, golden);
    assert_eq!(namespace_ids(&list[..36]).count(), 2, "cut off");
    assert_eq!(namespace_ids(&list[..34]).count(), 2, "cut off");
    assert_eq!(namespace_ids(&[]).count(), 0);
    let header = NamespaceIdHeader::new(NamespaceIdType::NGUID, 16);
    assert_eq!(header.as_bytes(), [0x02, 16, 0, 0]);
}

#[test]
fn how_a_host_learns_that_a_namespace_is_zoned() {
    // Identifier type 4h, length 1, two reserved bytes; the CSI 02h follows.
    let header = NamespaceIdHeader {
        nidt: NamespaceIdType::CSI,
        nidl: 1,
        reserved_2: Reserved::ZERO,
    };
    assert_eq!(header.as_bytes(), [0x04, 0x01, 0x00, 0x00]);
    let both = CommandSetVector::default().with_nvm(true).with_zns(true);
    assert_eq!(both.as_bytes(), [0x05, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn reserved_bytes_that_a_peer_set_are_kept_and_shown() {
    let mut bytes = [0_u8; 64];
    let zero = ReportHeader::read_from_bytes(&bytes).unwrap();
    assert!(zero.reserved_8.is_zero());
    assert!(format!("{zero:?}").ends_with("[0; 56] }"));
    bytes[63] = 1;
    let set = ReportHeader::read_from_bytes(&bytes).unwrap();
    assert!(!set.reserved_8.is_zero());
    assert_eq!(set.as_bytes(), bytes);
    assert!(format!("{set:?}").ends_with("0, 1] }"));
}
