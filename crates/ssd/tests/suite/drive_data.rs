//! Data of a drive that keeps it.

use crate::drive_support::{PAGE, Rig, reset, small};
use proptest::collection::vec;
use proptest::prelude::*;
use zonelab_device::{Buf, Lba, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_ssd::config::{DataStore, DriveConfig, EraseExtent, EraseWhen};

const LBA: usize = 4_096;

fn keeping() -> DriveConfig {
    let mut config = small();
    config.data = DataStore::Memory;
    config
}

/// The same with zones whose size is their capacity, in small blocks.
fn keeping_512() -> DriveConfig {
    let mut config = keeping();
    config.lba_bytes = 512;
    config.zones.capacity_lbas = 32 * 32;
    config.zones.size_lbas = 32 * 32;
    config
}

/// Bytes that say where they belong.
fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..bytes).map(next).collect()
}

fn write(rig: &mut Rig, zone: u32, bytes: &[u8]) {
    let lba_bytes = rig.drive.config().lba_bytes as usize;
    let op = rig.write(zone, (bytes.len() / lba_bytes) as u32);
    let done = rig.exec_with(op, Some(Buf::from(bytes.to_vec())));
    assert_eq!(done.status, Status::SUCCESS);
    assert_eq!(
        done.data.as_deref(),
        Some(bytes),
        "the buffer comes back as it was"
    );
}

/// Reads into a buffer that is not zero.
fn read(rig: &mut Rig, slba: Lba, nlb: u32) -> Vec<u8> {
    let lba_bytes = rig.drive.config().lba_bytes as usize;
    let buf = Buf::from(vec![0xa5; nlb as usize * lba_bytes]);
    let done = rig.exec_with(Op::Read { slba, nlb }, Some(buf));
    assert_eq!(done.status, Status::SUCCESS);
    done.data.expect("a buffer comes back").to_vec()
}

#[test]
fn what_was_written_comes_back() {
    let mut rig = Rig::new(&keeping());
    // Pieces that end inside chunks of 64 KiB, and pages.
    let bytes = pattern(1, 32 * 4 * LBA);
    let mut at = 0;
    for nlb in [1, 2, 30, 17, 5, 73] {
        write(&mut rig, 0, &bytes[at..at + nlb * LBA]);
        at += nlb * LBA;
    }
    assert_eq!(at, bytes.len(), "the zone is full");
    for (first, nlb) in [(0, 128), (0, 1), (127, 1), (15, 2), (16, 16), (31, 70)] {
        let expected = &bytes[first * LBA..(first + nlb) * LBA];
        let lba = rig.lba(0, first as u32);
        assert_eq!(read(&mut rig, lba, nlb as u32), expected, "{first} + {nlb}");
    }
}

#[test]
fn appended_data_is_where_the_result_says() {
    let mut rig = Rig::new(&keeping());
    write(&mut rig, 2, &pattern(1, 3 * LBA));
    let bytes = pattern(2, 5 * LBA);
    let op = rig.append(2, 5);
    let done = rig.exec_with(op, Some(Buf::from(bytes.clone())));
    assert_eq!(done.result, rig.lba(2, 3).0);
    assert_eq!(read(&mut rig, Lba(done.result), 5), bytes);
}

/// From the end of one zone, over what lies beyond its capacity, into the next.
#[test]
fn a_read_across_zones_gets_the_data_of_both() {
    let mut rig = Rig::new(&keeping());
    let capacity = 128;
    let size = 160;
    let (first, second) = (pattern(1, capacity * LBA), pattern(2, 3 * LBA));
    write(&mut rig, 0, &first);
    write(&mut rig, 1, &second);
    let got = read(&mut rig, Lba(120), (size - 120 + 8) as u32);
    let gap = (size - capacity) * LBA;
    let (head, rest) = got.split_at(8 * LBA);
    let (zeros, tail) = rest.split_at(gap);
    let (data, unwritten) = tail.split_at(3 * LBA);
    assert_eq!(head, &first[120 * LBA..]);
    assert!(zeros.iter().all(|&b| b == 0));
    assert_eq!(data, &second[..]);
    assert!(unwritten.iter().all(|&b| b == 0) && unwritten.len() == 5 * LBA);
}

#[test]
fn reads_across_zones_can_be_forbidden() {
    let mut config = keeping();
    config.zones.read_across = false;
    let mut rig = Rig::new(&config);
    let op = rig.read(0, 159, 2);
    let done = rig.exec_with(op, Some(Buf::from(vec![7; 2 * LBA])));
    assert_eq!(done.status, Status::ZONE_BOUNDARY_ERROR);
    assert_eq!(done.data.as_deref(), Some(&[7; 2 * LBA][..]), "untouched");
}

#[test]
fn a_reset_leaves_zeros() {
    for erase in [
        EraseWhen::Synchronous,
        EraseWhen::FirstZoneWrite,
        EraseWhen::FirstBlockWrite,
        EraseWhen::Background,
    ] {
        let mut config = keeping();
        config.reset = reset(erase, EraseExtent::Partial);
        let mut rig = Rig::new(&config);
        write(&mut rig, 0, &pattern(1, 9 * LBA));
        write(&mut rig, 1, &pattern(2, LBA));
        rig.time(rig.reset(0));
        assert!(read(&mut rig, Lba(0), 9).iter().all(|&b| b == 0));
        // The old data does not shine through where less is written.
        write(&mut rig, 0, &pattern(3, LBA));
        assert_eq!(read(&mut rig, Lba(0), 1), pattern(3, LBA));
        assert!(read(&mut rig, Lba(1), 8).iter().all(|&b| b == 0));
        assert_eq!(read(&mut rig, Lba(160), 1), pattern(2, LBA));
    }
}

#[test]
fn reads_of_what_nobody_wrote_are_zeros_without_flash_work() {
    let mut rig = Rig::new(&keeping());
    write(&mut rig, 0, &pattern(1, PAGE as usize * LBA));
    rig.time(rig.finish(0));
    let busy = rig.busy();
    // Filled by a finish, beyond the capacity, and in an empty zone.
    for (lba, nlb) in [(4, 1), (100, 28), (128, 32), (320, 160)] {
        let start = rig.now;
        assert!(read(&mut rig, Lba(lba), nlb).iter().all(|&b| b == 0));
        assert_eq!(rig.now, start, "no time without flash");
    }
    assert_eq!(rig.busy(), busy);
    // A read that is written in part pays for that part: one page.
    read(&mut rig, Lba(2), 20);
    assert_eq!(rig.busy().1[0], busy.1[0] + 60_000);
}

#[test]
fn buffers_must_have_the_length_of_the_transfer() {
    let mut rig = Rig::new(&keeping());
    for bytes in [0, 1, LBA - 1, LBA + 1, 2 * LBA] {
        for op in [rig.write(0, 1), rig.append(0, 1), rig.read(0, 0, 1)] {
            let buf = Buf::from(vec![3; bytes]);
            let done = rig.exec_with(op, Some(buf.clone()));
            assert_eq!(
                done.status,
                Status::INVALID_FIELD,
                "{op:?} with {bytes} bytes"
            );
            assert_eq!(done.data, Some(buf));
        }
    }
    assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 0);
    assert_eq!(rig.drive.totals(), zonelab_ssd::account::Totals::default());
}

#[test]
fn a_drive_for_timing_alone_returns_buffers_as_they_came() {
    let mut rig = Rig::new(&small());
    let op = rig.write(0, 1);
    rig.exec_with(op, Some(Buf::from(vec![1; LBA])));
    let op = rig.read(0, 0, 1);
    let done = rig.exec_with(op, Some(Buf::from(vec![9; LBA])));
    assert_eq!(done.data.as_deref(), Some(&[9; LBA][..]));
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32, u32, u64),
    Append(u32, u32, u64),
    Read(u64, u32),
    Finish(u32),
    Reset(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let zone = || 0..6_u32;
    let nlb = || prop_oneof![1..9_u32, 1..300_u32];
    let step = prop_oneof![
        5 => (zone(), nlb(), any::<u64>()).prop_map(|(z, n, s)| Step::Write(z, n, s)),
        2 => (zone(), nlb(), any::<u64>()).prop_map(|(z, n, s)| Step::Append(z, n, s)),
        6 => (0..6 * 1_024_u64, nlb()).prop_map(|(lba, n)| Step::Read(lba, n)),
        1 => zone().prop_map(Step::Finish),
        1 => zone().prop_map(Step::Reset),
    ];
    vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Against an array of bytes. Each command waits for the one before it.
    #[test]
    fn data_is_that_of_an_array(steps in steps()) {
        let config = keeping_512();
        let mut rig = Rig::new(&config);
        let (lba_bytes, size) = (512_usize, config.zones.size_lbas);
        let mut array = vec![0_u8; 6 * size as usize * lba_bytes];
        for step in steps {
            match step {
                Step::Write(zone, nlb, seed) | Step::Append(zone, nlb, seed) => {
                    let bytes = pattern(seed, nlb as usize * lba_bytes);
                    let at = rig.lba(zone, 0).0 + rig.drive.zones().written_lbas(ZoneId(zone));
                    let op = match step {
                        Step::Write(..) => rig.write(zone, nlb),
                        _ => rig.append(zone, nlb),
                    };
                    let done = rig.exec_with(op, Some(Buf::from(bytes.clone())));
                    if done.status.is_success() {
                        let start = at as usize * lba_bytes;
                        array[start..start + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                Step::Read(lba, nlb) => {
                    let nlb = nlb.min((6 * size - lba) as u32);
                    let start = lba as usize * lba_bytes;
                    let got = read(&mut rig, Lba(lba), nlb);
                    prop_assert!(got == array[start..start + got.len()], "{} + {}", lba, nlb);
                }
                Step::Finish(zone) => { rig.exec(rig.finish(zone)); }
                Step::Reset(zone) => {
                    rig.exec(rig.reset(zone));
                    let start = rig.lba(zone, 0).0 as usize * lba_bytes;
                    array[start..start + size as usize * lba_bytes].fill(0);
                }
            }
        }
    }
}
