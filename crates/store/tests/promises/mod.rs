//! What the store promises: flushed data is not given up silently, wrong bytes
//! are not read, a full medium fails what does not fit and nothing else, and a
//! new file has one maker.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use zonelab_device::{Buf, Lba, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::Drive;
use zonelab_store::check::{check, repair};
use zonelab_store::{Medium, OpenError, Options, Store, create, open};

use super::{Memory, PAGE, Scratch, config, conventional, drive_in, filled, read, run, write};

pub(super) fn flush(drive: &mut Drive) {
    assert!(run(drive, 1, Op::Flush, None).0.is_success());
    drive.keep().unwrap();
}

/// The places where pages differ.
pub(super) fn changed(before: &Memory, after: &Memory) -> Vec<u64> {
    let (before, after) = (before.0.lock().unwrap(), after.0.lock().unwrap());
    let empty = vec![0; PAGE as usize].into_boxed_slice();
    let mut places = Vec::new();
    for (number, page) in &after.pages {
        let old = before.pages.get(number).unwrap_or(&empty);
        let differ = (0..PAGE).filter(|at| old[*at as usize] != page[*at as usize]);
        places.extend(differ.map(|at| number * PAGE + at));
    }
    places
}

pub(super) fn copy(of: &Memory) -> Memory {
    let copy = Memory::default();
    copy.0.lock().unwrap().pages = of.0.lock().unwrap().pages.clone();
    copy
}

/// The bits of everything that a write and a Flush wrote are flipped one by one,
/// as after a kill: the data is there, or the store or the read says that it is not.
#[test]
fn a_flipped_bit_gives_up_no_flushed_data_silently() {
    let config = config();
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    write(&mut drive, 0, 2, 0x11);
    flush(&mut drive);
    let before = copy(&memory);
    write(&mut drive, 2, 2, 0x22);
    flush(&mut drive);
    drop(drive);
    // All of what says something, and some of the data.
    let is_data = |at: &u64| {
        let page = &memory.0.lock().unwrap().pages[&(at / PAGE)];
        page.iter().all(|byte| *byte == 0x22)
    };
    let (data, said): (Vec<u64>, Vec<u64>) =
        changed(&before, &memory).into_iter().partition(is_data);
    let places: Vec<u64> = data.into_iter().step_by(500).chain(said).collect();
    let (mut refused, mut unreadable) = (0, 0);
    for at in &places {
        let mut damaged = copy(&memory);
        let mut byte = [0];
        damaged.read(*at, &mut byte).unwrap();
        damaged.write(*at, &[byte[0] ^ 4]).unwrap();
        let (store, found) = match open(damaged.clone(), &config) {
            Ok(opened) => opened,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("damaged"), "{text}");
                if matches!(error, OpenError::Lost(_)) {
                    assert!(text.contains("store repair FILE"), "{text}");
                }
                refused += 1;
                continue;
            }
        };
        let mut drive = Drive::stored(&config, &found.kept, Box::new(store)).unwrap();
        assert_eq!(drive.zones().written_lbas(ZoneId(0)), 4, "byte {at}");
        for (slba, with) in [(0, 0x11), (2, 0x22)] {
            let (slba, nlb) = (Lba(slba), 2);
            let data = filled(&config, nlb, 0xaa);
            let (status, data) = run(&mut drive, 1, Op::Read { slba, nlb }, Some(data));
            if status == Status::UNRECOVERED_READ_ERROR {
                unreadable += 1;
                continue;
            }
            assert!(status.is_success());
            assert!(data.unwrap().iter().all(|byte| *byte == with), "byte {at}");
        }
    }
    assert!(refused > 0 && unreadable > 0, "{refused} and {unreadable}");
}

/// Flips a bit of the newest record of zone 0, wherever it is.
fn with_a_lost_record() -> (Memory, zonelab_ssd::config::DriveConfig) {
    let config = config();
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    write(&mut drive, 0, 2, 0x11);
    flush(&mut drive);
    let before = copy(&memory);
    write(&mut drive, 2, 2, 0x22);
    flush(&mut drive);
    drop(drive);
    for at in changed(&before, &memory) {
        let mut damaged = copy(&memory);
        let mut byte = [0];
        damaged.read(at, &mut byte).unwrap();
        damaged.write(at, &[byte[0] ^ 4]).unwrap();
        if matches!(open(damaged.clone(), &config), Err(OpenError::Lost(_))) {
            return (damaged, config);
        }
    }
    panic!("no bit is of a record");
}

#[test]
fn a_lost_record_is_named_and_repaired_to_a_read_only_zone() {
    let (mut memory, config) = with_a_lost_record();
    let Err(OpenError::Lost(lost)) = open(memory.clone(), &config) else {
        panic!("it was refused before");
    };
    assert_eq!((lost.len(), lost[0].zone), (1, 0));
    assert_eq!(lost[0].damaged_slots.len(), 1);
    assert!(lost[0].found.unwrap() < lost[0].expected);
    let report = check(&memory).unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.lost, lost);
    let repaired = repair(&mut memory).unwrap();
    assert_eq!(repaired.len(), 1);
    assert_eq!(
        (repaired[0].state, repaired[0].host_lbas),
        (ZoneState::READ_ONLY, 2)
    );
    assert!(check(&memory).unwrap().is_sound());
    let mut drive = drive_in(&memory, &config);
    assert_eq!(drive.zones().state(ZoneId(0)), ZoneState::READ_ONLY);
    assert!(read(&mut drive, 1, 0, 2).iter().all(|byte| *byte == 0x11));
}

#[test]
fn data_that_rots_cannot_be_read_unless_nobody_wants_to_know() {
    for has_checksums in [true, false] {
        let config = config();
        let mut memory = Memory::default();
        create(&mut memory, &config, Options { has_checksums }).unwrap();
        let mut drive = drive_in(&memory, &config);
        write(&mut drive, 0, 4, 0x5c);
        drive.keep().unwrap();
        {
            let mut inner = memory.0.lock().unwrap();
            let is_data = |page: &&mut Box<[u8]>| page.iter().all(|byte| *byte == 0x5c);
            inner.pages.values_mut().find(is_data).unwrap()[100] ^= 1;
        }
        let (slba, nlb) = (Lba(0), 4);
        let data = filled(&config, nlb, 0);
        let (status, _) = run(&mut drive, 1, Op::Read { slba, nlb }, Some(data));
        let (verified, _) = run(&mut drive, 1, Op::Verify { slba, nlb }, None);
        let expected = match has_checksums {
            true => Status::UNRECOVERED_READ_ERROR,
            false => Status::SUCCESS,
        };
        assert_eq!((status, verified), (expected, expected));
        assert_eq!(
            check(&memory).unwrap().bad_blocks.is_empty(),
            !has_checksums
        );
    }
}

#[test]
fn a_full_medium_fails_what_does_not_fit_and_the_drive_goes_on() {
    let config = conventional();
    for left in 0..40 {
        let mut memory = Memory::default();
        create(&mut memory, &config, Options::default()).unwrap();
        let mut drive = drive_in(&memory, &config);
        memory.0.lock().unwrap().left = Some(left);
        let (mut told, mut block) = (0, 0);
        loop {
            let with = told as u8 + 1;
            let (slba, nlb) = (Lba(told * 2), 2);
            let data = filled(&config, nlb, with);
            let (zoned, _) = run(&mut drive, 1, Op::Write { slba, nlb }, Some(data));
            told += u64::from(zoned.is_success());
            let data = filled(&config, 1, with);
            let op = Op::Write {
                slba: Lba(7),
                nlb: 1,
            };
            let (placed, _) = run(&mut drive, 2, op, Some(data));
            if placed.is_success() {
                block = with;
            }
            drive.keep().unwrap();
            if !zoned.is_success() && !placed.is_success() {
                assert_eq!(
                    (zoned, placed),
                    (Status::CAPACITY_EXCEEDED, Status::CAPACITY_EXCEEDED)
                );
                break;
            }
        }
        assert_eq!(drive.zones().written_lbas(ZoneId(0)), told * 2);
        for is_again in [false, true] {
            if is_again {
                drop(drive);
                memory.0.lock().unwrap().left = None;
                drive = drive_in(&memory, &config);
            }
            assert_eq!(drive.zones().written_lbas(ZoneId(0)), told * 2);
            for index in 0..told {
                let data = read(&mut drive, 1, index * 2, 2);
                assert!(data.iter().all(|byte| u64::from(*byte) == index + 1));
            }
            assert!(read(&mut drive, 2, 7, 1).iter().all(|byte| *byte == block));
            let behind = read(&mut drive, 1, told * 2, 2);
            assert!(behind.iter().all(|byte| *byte == 0), "behind the pointer");
        }
        write(&mut drive, told * 2, 2, 9);
        drive.keep().unwrap();
    }
}

/// Writes that fail at random, for want of space or because the medium failed:
/// what was told to be written is there, and nothing else.
#[test]
fn writes_that_fail_at_random_change_nothing() {
    let config = conventional();
    let blocks = 24_u64;
    for seed in 0..150_u64 {
        let mut memory = Memory::default();
        create(&mut memory, &config, Options::default()).unwrap();
        let mut drive = drive_in(&memory, &config);
        memory.0.lock().unwrap().fails = Some(seed);
        let mut zone = Vec::new();
        let mut may_be: Vec<BTreeSet<u8>> = vec![BTreeSet::from([0]); blocks as usize];
        let (mut draw, mut failed) = (seed, 0);
        for turn in 0..120_u64 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let with = (turn % 250) as u8 + 1;
            if draw >> 62 == 0 {
                let (slba, nlb) = (Lba(zone.len() as u64), 1);
                let data = filled(&config, nlb, with);
                let (status, _) = run(&mut drive, 1, Op::Write { slba, nlb }, Some(data));
                match status {
                    Status::SUCCESS => zone.push(with),
                    Status::CAPACITY_EXCEEDED | Status::WRITE_FAULT => failed += 1,
                    other => panic!("{other:?}"),
                }
                if zone.len() > 40 {
                    let op = Op::ZoneSend {
                        slba: Lba(0),
                        action: ZoneSendAction::RESET,
                        select_all: false,
                    };
                    assert!(run(&mut drive, 1, op, None).0.is_success());
                    zone.clear();
                }
            } else {
                let block = (draw >> 33) % blocks;
                let (slba, nlb) = (Lba(block), 1);
                let data = filled(&config, nlb, with);
                let (status, _) = run(&mut drive, 2, Op::Write { slba, nlb }, Some(data));
                let of = &mut may_be[block as usize];
                if status.is_success() {
                    of.clear();
                } else {
                    failed += 1;
                }
                of.insert(with);
            }
            drive
                .keep()
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        assert!(failed > 5, "seed {seed}: {failed}");
        for is_again in [false, true] {
            if is_again {
                drop(drive);
                memory.0.lock().unwrap().fails = None;
                drive = drive_in(&memory, &config);
            }
            assert_eq!(
                drive.zones().written_lbas(ZoneId(0)),
                zone.len() as u64,
                "seed {seed}"
            );
            for (lba, with) in (0..).zip(&zone) {
                let data = read(&mut drive, 1, lba, 1);
                assert!(
                    data.iter().all(|byte| byte == with),
                    "seed {seed}: block {lba}"
                );
            }
            for (block, of) in (0..).zip(&may_be) {
                let data = read(&mut drive, 2, block, 1);
                assert!(data.iter().all(|byte| *byte == data[0]) && of.contains(&data[0]));
            }
        }
    }
}

#[test]
fn memory_has_a_limit_that_fails_writes_and_nothing_else() {
    let config = config();
    let mut drive = Drive::new(&config);
    drive.limit_data(Some(128 << 10));
    let bytes = u64::from(config.lba_bytes);
    let per_chunk = (64 << 10) / bytes;
    let size = config.zones.size_lbas;
    for zone in 0..2 {
        write(&mut drive, zone * size, 1, zone as u8 + 1);
    }
    let (slba, nlb) = (Lba(2 * size), 1);
    let one = || Some(filled(&config, 1, 9));
    let (status, _) = run(&mut drive, 1, Op::Write { slba, nlb }, one());
    assert_eq!(status, Status::CAPACITY_EXCEEDED);
    assert_eq!(drive.zones().state(ZoneId(2)), ZoneState::EMPTY);
    let (status, _) = run(&mut drive, 1, Op::Append { zslba: slba, nlb }, one());
    assert_eq!(status, Status::CAPACITY_EXCEEDED);
    // What has its memory goes on, and zeros take none.
    write(&mut drive, 1, (per_chunk - 1) as u32, 1);
    let zeros = Some(Buf::zeroed(bytes as usize));
    assert!(
        run(&mut drive, 1, Op::Write { slba, nlb }, zeros)
            .0
            .is_success()
    );
    let op = Op::ZoneSend {
        slba: Lba(size),
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    assert!(run(&mut drive, 1, op, None).0.is_success());
    write(&mut drive, 2 * size + 1, 1, 9);
    assert!(read(&mut drive, 1, 0, 1).iter().all(|byte| *byte == 1));
}

#[test]
fn a_new_store_follows_no_link_and_is_its_owners() {
    let (scratch, config) = (Scratch::new("link"), config());
    let target = scratch.0.join("precious");
    fs::write(&target, b"precious").unwrap();
    let own = format!("drive.new-{}", std::process::id());
    for name in ["drive.new", &own] {
        symlink(&target, scratch.0.join(name)).unwrap();
    }
    let error = Store::at(&scratch.file(), &config, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::InTheWay { .. }), "{error}");
    fs::remove_file(scratch.0.join(&own)).unwrap();
    drop(Store::at(&scratch.file(), &config, Options::default()).unwrap());
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    let mode = fs::metadata(scratch.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Somebody else makes the store while this process is making it: whichever gets
/// the name has it, and is not replaced.
#[test]
fn what_appears_while_a_store_is_made_is_not_replaced() {
    let (scratch, config) = (Scratch::new("appears"), config());
    let theirs = scratch.0.join("theirs");
    drop(Store::at(&theirs, &config, Options::default()).unwrap());
    let is_being_made = || {
        let entries = fs::read_dir(&scratch.0).unwrap();
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("drive.new")
        })
    };
    let mut replaced = 0;
    let (mut others, mut rounds) = (0, 0);
    while others < 5 && rounds < 1000 {
        rounds += 1;
        let (made, is_theirs) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !is_being_made() && !scratch.file().exists() {
                    std::hint::spin_loop();
                }
                fs::hard_link(&theirs, scratch.file()).is_ok()
            });
            let made = Store::at(&scratch.file(), &config, Options::default());
            (made, other.join().unwrap())
        });
        match &made {
            Ok(_) if is_theirs => replaced += 1,
            Ok(_) => (),
            Err(OpenError::MadeByAnother) => others += u32::from(is_theirs),
            Err(error) => panic!("{error}"),
        }
        assert!(made.is_ok() || is_theirs, "nobody has made it");
        assert_eq!(replaced, 0, "round {rounds}: a store was replaced");
        drop(made);
        fs::remove_file(scratch.file()).unwrap();
    }
    assert_eq!(others, 5, "after {rounds} rounds");
}
