//! Snapshots: a drive that was saved and restored is the same drive, and what
//! is no snapshot of it is refused.

use crate::drive_support::{PAGE, Rig, lazy, small};
use proptest::prelude::*;
use zonelab_device::{Buf, Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::snapshot::{self, SnapshotError};
use zonelab_ssd::{Drive, profile};

fn keeping() -> DriveConfig {
    let mut config = lazy(small(), 8);
    config.data = DataStore::Memory;
    config.zones.descriptor_extension_bytes = 64;
    config.zones.max_active = Some(5);
    config.zones.max_open = Some(4);
    config
}

/// A drive with zones in every state that commands lead to, and data.
fn used(config: &DriveConfig) -> Rig {
    let mut rig = Rig::new(config);
    for (zone, pages) in [(0, 3), (1, 8), (2, 1), (3, 5)] {
        let nlb = pages * PAGE;
        let write = rig.write(zone, nlb);
        let data = vec![zone as u8 + 1; nlb as usize * 4_096];
        let done = rig.exec_with(write, Some(Buf::from(data)));
        assert_eq!(done.status, Status::SUCCESS);
    }
    for (zone, action) in [
        (1, ZoneSendAction::FINISH),
        (2, ZoneSendAction::CLOSE),
        (3, ZoneSendAction::RESET),
    ] {
        let send = rig.send(zone, action);
        assert_eq!(rig.exec(send).status, Status::SUCCESS);
    }
    let set = rig.send(4, ZoneSendAction::SET_DESCRIPTOR_EXTENSION);
    rig.exec_with(set, Some(Buf::from(vec![7; 64])));
    let open = rig.send(5, ZoneSendAction::OPEN);
    rig.exec(open);
    while rig.next() {}
    rig
}

/// The rig with the drive that comes back.
fn again(config: &DriveConfig, drive: &Drive) -> Rig {
    let bytes = snapshot::save(drive).expect("nothing is in flight");
    let mut rig = Rig::new(config);
    rig.drive = snapshot::restore(config, &bytes).expect("it is of the same drive");
    rig
}

#[test]
fn a_restored_drive_is_the_same_drive() {
    let config = keeping();
    let mut before = used(&config);
    let mut after = again(&config, &before.drive);
    after.drive.zones().assert_invariants();
    assert_eq!(before.report(), after.report());
    assert_eq!(before.drive.totals(), after.drive.totals());
    assert_eq!(
        before.drive.flash().erase_counts(),
        after.drive.flash().erase_counts()
    );
    assert_eq!(
        before.drive.flash().mapping(),
        after.drive.flash().mapping()
    );
    for zone in 0..6 {
        let slba = before.lba(zone, 0);
        let nlb = 4 * PAGE;
        let read = |rig: &mut Rig| {
            let buf = Buf::from(vec![0xee; nlb as usize * 4_096]);
            rig.exec_with(Op::Read { slba, nlb }, Some(buf)).data
        };
        assert_eq!(read(&mut before), read(&mut after), "zone {zone}");
    }
    // And goes on as the same: the same commands take as long and do the same.
    for zone in [0, 2, 3, 5, 4] {
        let write = before.write(zone, PAGE);
        let (was, is) = (before.exec(write), after.exec(write));
        assert_eq!(
            (was.status, was.latency()),
            (is.status, is.latency()),
            "zone {zone}"
        );
    }
    assert_eq!(before.report(), after.report());
}

#[test]
fn saving_what_was_restored_gives_the_same_bytes() {
    let config = keeping();
    let bytes = snapshot::save(&used(&config).drive).expect("nothing is in flight");
    let drive = snapshot::restore(&config, &bytes).expect("it is of the same drive");
    assert_eq!(snapshot::save(&drive).expect("nothing is in flight"), bytes);
}

#[test]
fn timing_may_differ_and_nothing_else() {
    let config = keeping();
    let bytes = snapshot::save(&used(&config).drive).expect("nothing is in flight");
    let mut faster = config.clone();
    faster.media.program_ns = Nanos::from_us(100);
    faster.name = "faster".into();
    snapshot::restore(&faster, &bytes).expect("only the timing differs");

    let differs = |change: fn(&mut DriveConfig), key: &str| {
        let mut other = config.clone();
        change(&mut other);
        match snapshot::restore(&other, &bytes) {
            Err(SnapshotError::OtherDrive { key: found, .. }) => assert_eq!(found, key),
            other => panic!("{key}: {other:?}"),
        }
    };
    differs(
        |c| c.geometry.blocks_per_plane += 1,
        "geometry.blocks_per_plane",
    );
    differs(|c| c.zones.capacity_lbas -= 1, "zones.capacity_lbas");
    differs(|c| c.zones.max_active = None, "zones.max_active");
    differs(
        |c| c.mapping = zonelab_ssd::config::MappingConfig::Direct,
        "mapping",
    );
    differs(|c| c.data = DataStore::None, "data.store");
    differs(|c| c.lba_bytes = 512, "lba_bytes");
}

#[test]
fn a_busy_drive_is_not_saved() {
    let mut rig = Rig::new(&keeping());
    let write = rig.write(0, PAGE);
    rig.submit(write);
    let busy = SnapshotError::Busy {
        commands: 1,
        tasks: 0,
    };
    assert_eq!(snapshot::save(&rig.drive), Err(busy));
}

#[test]
fn every_truncation_is_refused() {
    let config = keeping();
    let bytes = snapshot::save(&used(&config).drive).expect("nothing is in flight");
    // All short ones, then a sample.
    let lengths = (0..200).chain((200..bytes.len()).step_by(1 + bytes.len() / 200));
    for length in lengths {
        let refused = snapshot::restore(&config, &bytes[..length]);
        assert!(refused.is_err(), "{length} of {} bytes", bytes.len());
    }
    let mut longer = bytes;
    longer.push(0);
    let error = snapshot::restore(&config, &longer).expect_err("it is too long");
    assert!(matches!(error, SnapshotError::Length { .. }), "{error}");
    for foreign in [&b""[..], b"#!/bin/sh\nexit 0\n", &[0; 4_096]] {
        let error = snapshot::restore(&config, foreign).expect_err("it is something else");
        assert_eq!(error, SnapshotError::Foreign);
    }
}

/// The layout of the header is part of the format.
#[test]
fn the_header_is_as_documented() {
    let config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    let mut bytes = snapshot::save(&Drive::new(&config)).expect("it is idle");
    assert_eq!(&bytes[..8], b"ZONELAB\0");
    assert_eq!(bytes[8..12], 2_u32.to_le_bytes());
    assert_eq!(bytes[12..20], (bytes.len() as u64 - 24).to_le_bytes());
    bytes[8] = 3;
    let error = snapshot::restore(&config, &bytes).expect_err("of the future");
    assert_eq!(error, SnapshotError::Version { found: 3 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Damage is seen; and where the checksum is made to fit, what is impossible
    /// is refused, and what is possible makes a drive that works.
    #[test]
    fn damage_is_refused_or_harmless(
        at: prop::sample::Index,
        flip in 1_u8..,
        forge: bool,
    ) {
        let config = keeping();
        let mut bytes = snapshot::save(&used(&config).drive).expect("nothing is in flight");
        // Not in the data, which can hold anything.
        let at = if forge { 24 + at.index(1_200.min(bytes.len() - 24)) } else { at.index(bytes.len()) };
        bytes[at] ^= flip;
        if forge {
            let checksum = crc32c::crc32c(&bytes[24..]);
            bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
        }
        match snapshot::restore(&config, &bytes) {
            Err(_) => {}
            Ok(drive) => {
                prop_assert!(forge, "a flipped bit at {} went unseen", at);
                let mut rig = Rig::new(&config);
                rig.drive = drive;
                rig.drive.zones().assert_invariants();
                for zone in 0..6 {
                    let reset = rig.send(zone, ZoneSendAction::RESET);
                    rig.exec(reset);
                    let write = Op::Write { slba: rig.lba(zone, 0), nlb: PAGE };
                    rig.exec(write);
                    let slba = Lba(u64::from(zone) * config.zones.size_lbas);
                    rig.exec(Op::Read { slba, nlb: PAGE });
                }
                let _ = rig.drive.zones().state(ZoneId(0));
            }
        }
    }
}
