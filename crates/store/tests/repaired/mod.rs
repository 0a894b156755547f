//! Damaged stores that `repair` lets be served again.

use std::collections::BTreeSet;

use zonelab_device::{Lba, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::DriveConfig;
use zonelab_store::check::{check, repair};
use zonelab_store::{Medium, OpenError, Options, create, open};

use super::promises::{changed, copy, flush};
use super::{Memory, config, conventional, drive_in, filled, read, run, write};

/// The store with one bit of a byte flipped.
fn flipped(of: &Memory, at: u64) -> Memory {
    let mut damaged = copy(of);
    let mut byte = [0];
    damaged.read(at, &mut byte).unwrap();
    damaged.write(at, &[byte[0] ^ 4]).unwrap();
    damaged
}

/// A store that was switched off in good order after two writes and Flushes, and
/// the places that the last changed.
fn switched_off(config: &DriveConfig) -> (Memory, Vec<u64>) {
    let mut memory = Memory::default();
    create(&mut memory, config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, config);
    write(&mut drive, 0, 2, 0x11);
    flush(&mut drive);
    let before = copy(&memory);
    write(&mut drive, 2, 2, 0x22);
    flush(&mut drive);
    drive.switch_off().unwrap();
    drop(drive);
    let places = changed(&before, &memory);
    (memory, places)
}

#[test]
fn damaged_notes_are_made_anew_and_nothing_is_lost() {
    let config = config();
    let (memory, places) = switched_off(&config);
    let mut repaired_count = 0;
    for at in places {
        let mut damaged = flipped(&memory, at);
        match open(damaged.clone(), &config) {
            Err(OpenError::Damaged { what }) if what.contains("how much a Flush covers") => {}
            _ => continue,
        }
        assert!(check(&damaged).unwrap().damage.is_some(), "byte {at}");
        assert_eq!(repair(&mut damaged).unwrap(), [], "byte {at}");
        assert!(check(&damaged).unwrap().is_sound(), "byte {at}");
        for _ in 0..2 {
            let mut drive = drive_in(&damaged, &config);
            assert_eq!(drive.zones().state(ZoneId(0)), ZoneState::CLOSED);
            assert_eq!(drive.zones().written_lbas(ZoneId(0)), 4);
            for (slba, with) in [(0, 0x11), (2, 0x22)] {
                let data = read(&mut drive, 1, slba, 2);
                assert!(data.iter().all(|byte| *byte == with), "byte {at}");
            }
            drive.switch_off().unwrap();
        }
        repaired_count += 1;
    }
    assert!(repaired_count > 0);
}

/// What each block of the conventional namespace got, in order.
type Written = Vec<Vec<u8>>;

/// A conventional namespace that was written over several times and switched off.
fn written_over(config: &DriveConfig, has_checksums: bool) -> (Memory, Written) {
    let mut memory = Memory::default();
    create(&mut memory, config, Options { has_checksums }).unwrap();
    let mut drive = drive_in(&memory, config);
    let blocks = drive.info().namespaces[1].size_lbas;
    let mut written: Written = vec![vec![0]; blocks as usize];
    let mut draw = 5_u64;
    for turn in 0..blocks * 8 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (block, with) = ((draw >> 33) % blocks, (turn % 250) as u8 + 1);
        let (slba, nlb) = (Lba(block), 1);
        let data = filled(config, 1, with);
        let (status, _) = run(&mut drive, 2, Op::Write { slba, nlb }, Some(data));
        assert!(status.is_success(), "{status:?}");
        written[block as usize].push(with);
        if turn % 100 == 0 {
            flush(&mut drive);
        }
    }
    flush(&mut drive);
    drive.switch_off().unwrap();
    (memory, written)
}

/// Places where the newest record of a zone can be damaged: one for each zone of
/// the namespace.
fn places_of_records(memory: &Memory, config: &DriveConfig) -> Vec<u64> {
    // In place: the store was switched off, so that opening it writes nothing.
    let flip = |at: u64| {
        let mut byte = [0];
        memory.read(at, &mut byte).unwrap();
        memory.clone().write(at, &[byte[0] ^ 4]).unwrap();
    };
    let lost = |at: u64| {
        flip(at);
        let zone = match open(memory.clone(), config) {
            Err(OpenError::Lost(lost)) => Some(lost[0].zone),
            _ => None,
        };
        flip(at);
        zone
    };
    let mut zones = BTreeSet::new();
    let pages: Vec<u64> = memory.0.lock().unwrap().pages.keys().copied().collect();
    let records = pages.iter().flat_map(|page| {
        let first = page * super::PAGE;
        (first..first + super::PAGE).step_by(64)
    });
    // Records are in the first pages that hold something.
    let newest = records.take(4096).filter(|at| {
        let mut bytes = [0; 4];
        memory.read(*at, &mut bytes).unwrap();
        bytes != [0; 4] && lost(*at).is_some_and(|zone| zone >= 8 && zones.insert(zone))
    });
    newest.collect()
}

#[test]
fn a_repaired_conventional_namespace_holds_nothing_that_was_never_written() {
    let mut config = conventional();
    // Small, so that its zones are collected soon.
    config.zones.capacity_lbas = 32;
    for has_checksums in [true, false] {
        let (memory, written) = written_over(&config, has_checksums);
        let places = places_of_records(&memory, &config);
        assert!(places.len() >= 3, "{places:?}");
        for at in places {
            let mut damaged = flipped(&memory, at);
            let repaired = repair(&mut damaged).unwrap();
            assert_eq!(repaired.len(), 1);
            assert!(check(&damaged).unwrap().lost.is_empty());
            let mut drive = drive_in(&damaged, &config);
            drive.assert_invariants();
            let (mut lost, mut kept) = (0, 0);
            for (block, of) in (0..).zip(&written) {
                let (slba, nlb) = (Lba(block), 1);
                let data = Some(filled(&config, 1, 0xaa));
                let (status, data) = run(&mut drive, 2, Op::Read { slba, nlb }, data);
                if status == Status::UNRECOVERED_READ_ERROR {
                    assert!(has_checksums);
                    lost += 1;
                    continue;
                }
                assert!(status.is_success(), "{status:?}");
                let data = data.unwrap();
                let is_whole = data.iter().all(|byte| *byte == data[0]);
                assert!(is_whole && of.contains(&data[0]), "block {block}");
                kept += u64::from(Some(&data[0]) == of.last());
                lost += u64::from(Some(&data[0]) != of.last());
            }
            // One zone of several.
            assert!(kept > lost, "{kept} and {lost}");
            // It goes on: what is written is read, zeros too.
            for with in [0, 7] {
                for block in 0..written.len() as u64 {
                    let data = filled(&config, 1, with);
                    let op = Op::Write {
                        slba: Lba(block),
                        nlb: 1,
                    };
                    let (status, _) = run(&mut drive, 2, op, Some(data));
                    assert!(status.is_success(), "{status:?}");
                }
                for block in 0..written.len() as u64 {
                    let data = read(&mut drive, 2, block, 1);
                    assert!(data.iter().all(|byte| *byte == with), "block {block}");
                }
            }
            drive.keep().unwrap();
        }
    }
}
