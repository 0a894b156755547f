//! Write Zeroes, Compare, Verify, Deallocate and Copy on zones.

use crate::drive_support::{PAGE, READ, Rig, WRITE, fill, small, us};
use zonelab_config::Override;
use zonelab_device::{Buf, CopyLimits, Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, FinishConfig, Placement, WriteBufferConfig,
};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile::{Profile, to_toml};
use zonelab_ssd::{DriveModel, FaultTarget};

const LBA: usize = 4_096;

fn keeping() -> DriveConfig {
    let mut config = small();
    config.data = DataStore::Memory;
    config.copy = Some(CopyLimits {
        max_ranges: 3,
        max_range_lbas: 8,
        max_lbas: 20,
    });
    config
}

fn buffered() -> DriveConfig {
    let mut config = keeping();
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 1 << 20,
        power_loss_protection: false,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
    });
    config
}

/// Blocks of a byte each.
fn blocks(bytes: &[u8]) -> Buf {
    let blocks: Vec<u8> = bytes.iter().flat_map(|byte| [*byte; LBA]).collect();
    Buf::from(blocks)
}

fn write(rig: &mut Rig, zone: u32, bytes: &[u8]) {
    let op = rig.write(zone, bytes.len() as u32);
    assert_eq!(
        rig.exec_with(op, Some(blocks(bytes))).status,
        Status::SUCCESS
    );
}

/// The byte of each block, of which none is torn.
fn bytes(rig: &mut Rig, zone: u32, offset: u32, nlb: u32) -> Vec<u8> {
    let op = rig.read(zone, offset, nlb);
    let done = rig.exec_with(op, Some(Buf::from(vec![0xa5; nlb as usize * LBA])));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    let byte = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "a torn block");
        block[0]
    };
    data.chunks(LBA).map(byte).collect()
}

/// Source ranges: first block and number of blocks.
type Sources<'a> = &'a [(Lba, u32)];

/// Source ranges as the specification lays them out.
fn sources(ranges: &[(Lba, u32)]) -> Option<Buf> {
    let mut buf = vec![0; 32 * ranges.len()];
    for (entry, (slba, nlb)) in buf.chunks_mut(32).zip(ranges) {
        entry[8..16].copy_from_slice(&slba.0.to_le_bytes());
        entry[16..18].copy_from_slice(&((nlb - 1) as u16).to_le_bytes());
    }
    Some(Buf::from(buf))
}

fn copy(sdlba: Lba, ranges: &[(Lba, u32)]) -> (Op, Option<Buf>) {
    let op = Op::Copy {
        sdlba,
        ranges: ranges.len() as u16,
    };
    (op, sources(ranges))
}

fn status(rig: &mut Rig, (op, data): (Op, Option<Buf>)) -> Status {
    let done = rig.exec_with(op, data);
    if !done.status.is_success() {
        assert_eq!(done.result, 0, "nothing was copied");
    }
    done.status
}

#[test]
fn zeroes_are_a_write_that_the_host_does_not_send() {
    let mut config = keeping();
    config.front_end.link_bytes_per_s = Some(1_000_000_000);
    config.front_end.max_transfer_bytes = Some(4_096);
    let mut rig = Rig::new(&config);
    let zeroes = |rig: &Rig, offset, nlb| Op::WriteZeroes {
        slba: rig.lba(0, offset),
        nlb,
    };
    let op = rig.write_at(0, 0, 1);
    assert_eq!(
        rig.exec_with(op, Some(blocks(&[9]))).status,
        Status::SUCCESS
    );
    let misplaced = zeroes(&rig, 0, 4);
    assert_eq!(rig.exec(misplaced).status, Status::ZONE_INVALID_WRITE);
    // Neither the link nor the limit of transfers is in the way.
    let op = zeroes(&rig, 1, PAGE - 1);
    assert_eq!(rig.time(op), WRITE);
    assert_eq!(bytes(&mut rig, 0, 0, 1), [9]);
    assert_eq!(bytes(&mut rig, 0, 2, 1), [0]);
    assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 4);
    assert_eq!(rig.drive.totals().host_write_bytes, 4 * LBA as u64);
    let rest = config.zones.capacity_lbas as u32 - 4;
    let op = zeroes(&rig, 4, rest);
    assert_eq!(rig.exec(op).status, Status::SUCCESS);
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
    assert_eq!(rig.exec(zeroes(&rig, 0, 1)).status, Status::ZONE_IS_FULL);
    assert_eq!(rig.exec(zeroes(&rig, 0, 0)).status, Status::INVALID_FIELD);
}

#[test]
fn compare_and_verify_read_without_giving_data_back() {
    let mut config = keeping();
    // One byte per nanosecond.
    config.front_end.link_bytes_per_s = Some(1_000_000_000);
    let mut rig = Rig::new(&config);
    write(&mut rig, 0, &[1, 2, 3, 4]);
    let compare = |rig: &Rig, offset, nlb| Op::Compare {
        slba: rig.lba(0, offset),
        nlb,
    };
    let op = compare(&rig, 0, 4);
    let same = rig.exec_with(op, Some(blocks(&[1, 2, 3, 4])));
    assert_eq!(same.status, Status::SUCCESS);
    assert_eq!(same.latency(), Nanos(4 * LBA as u64) + READ);
    let other = rig.exec_with(op, Some(blocks(&[1, 2, 3, 5])));
    assert_eq!(other.status, Status::COMPARE_FAILURE);
    assert_eq!(other.data, Some(blocks(&[1, 2, 3, 5])), "it is as it was");
    // What was never written holds zeros, and costs no flash.
    let op = compare(&rig, 20, 2);
    assert_eq!(
        rig.exec_with(op, Some(blocks(&[0, 0]))).status,
        Status::SUCCESS
    );
    let short = compare(&rig, 0, 4);
    let done = rig.exec_with(short, Some(blocks(&[1])));
    assert_eq!(done.status, Status::INVALID_FIELD);
    // Nothing to compare with: it can only take its time.
    assert_eq!(rig.exec(compare(&rig, 0, 4)).status, Status::SUCCESS);

    let slba = rig.lba(0, 0);
    assert_eq!(rig.time(Op::Verify { slba, nlb: 4 }), READ);
    let slba = rig.lba(6, 0);
    let beyond = rig.exec(Op::Verify { slba, nlb: 1 });
    assert_eq!(beyond.status, Status::LBA_OUT_OF_RANGE);
}

#[test]
fn a_drive_without_data_finds_every_comparison_true() {
    let mut rig = Rig::new(&small());
    let op = rig.write(0, 1);
    rig.exec(op);
    let slba = rig.lba(0, 0);
    let done = rig.exec_with(Op::Compare { slba, nlb: 1 }, Some(blocks(&[7])));
    assert_eq!(done.status, Status::SUCCESS);
}

#[test]
fn a_deallocation_is_checked_and_leaves_zones_alone() {
    let mut rig = Rig::new(&keeping());
    write(&mut rig, 0, &[1, 2, 3, 4]);
    let end = rig.lba(6, 0).0;
    let range = |slba: u64, nlb: u32| {
        let mut entry = [0; 16];
        entry[4..8].copy_from_slice(&nlb.to_le_bytes());
        entry[8..].copy_from_slice(&slba.to_le_bytes());
        entry
    };
    for (ranges, data, status) in [
        (1, vec![range(0, 4)], Status::SUCCESS),
        (2, vec![range(end - 1, 1), range(end, 0)], Status::SUCCESS),
        (1, vec![range(0, 4), range(end, 1)], Status::SUCCESS),
        (
            2,
            vec![range(0, 4), range(end, 1)],
            Status::LBA_OUT_OF_RANGE,
        ),
        (1, vec![range(u64::MAX, 2)], Status::LBA_OUT_OF_RANGE),
        (2, vec![range(0, 4)], Status::INVALID_FIELD),
        (0, vec![range(0, 4)], Status::INVALID_FIELD),
    ] {
        let data = Some(Buf::from(data.concat()));
        let done = rig.exec_with(Op::Deallocate { ranges }, data);
        assert_eq!(done.status, status, "{ranges} ranges");
    }
    let none = rig.exec(Op::Deallocate { ranges: 1 });
    assert_eq!(none.status, Status::INVALID_FIELD);
    assert_eq!(bytes(&mut rig, 0, 0, 4), [1, 2, 3, 4]);
    assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 4);
}

#[test]
fn a_copy_reads_its_sources_and_then_writes_without_the_link() {
    for (config, latency) in [(keeping(), READ + WRITE), (buffered(), READ)] {
        let mut rig = Rig::new(&config);
        write(&mut rig, 0, &[1, 2, 3, 4, 5, 6, 7, 8]);
        write(&mut rig, 1, &[9]);
        rig.settle();
        let before = rig.drive.totals();
        let ranges = [
            (rig.lba(0, 5), 2),
            // Never written: zeros.
            (rig.lba(2, 0), 1),
            (rig.lba(0, 0), 1),
        ];
        let (op, data) = copy(rig.lba(1, 1), &ranges);
        let done = rig.exec_with(op, data);
        assert_eq!(done.status, Status::SUCCESS);
        // Both sources are on dies of their own, and so is the page.
        assert_eq!(done.latency(), latency);
        assert_eq!(bytes(&mut rig, 1, 0, 5), [9, 6, 7, 0, 1]);
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(1)), 5);
        rig.settle();
        let added = rig.drive.totals().since(&before);
        assert_eq!(added.host_write_bytes, 4 * LBA as u64);
    }
}

#[test]
fn a_copy_that_is_not_allowed_changes_nothing() {
    let mut rig = Rig::new(&keeping());
    write(&mut rig, 0, &[1; 24]);
    let (from, to) = (rig.lba(0, 0), rig.lba(1, 0));
    let end = rig.lba(6, 0);
    let cases: [(Lba, Sources<'_>, Status); 9] = [
        (to, &[(from, 1); 4], Status::COMMAND_SIZE_LIMIT_EXCEEDED),
        (to, &[(from, 9)], Status::COMMAND_SIZE_LIMIT_EXCEEDED),
        (to, &[(from, 7); 3], Status::COMMAND_SIZE_LIMIT_EXCEEDED),
        (to, &[(Lba(end.0 - 1), 2)], Status::LBA_OUT_OF_RANGE),
        (to, &[(Lba(u64::MAX), 2)], Status::LBA_OUT_OF_RANGE),
        (Lba(end.0 - 1), &[(from, 2)], Status::LBA_OUT_OF_RANGE),
        (Lba(to.0 + 1), &[(from, 2)], Status::ZONE_INVALID_WRITE),
        (
            Lba(to.0 + small().zones.capacity_lbas - 1),
            &[(from, 2)],
            Status::ZONE_BOUNDARY_ERROR,
        ),
        (to, &[], Status::INVALID_FIELD),
    ];
    for (sdlba, ranges, expected) in cases {
        assert_eq!(
            status(&mut rig, copy(sdlba, ranges)),
            expected,
            "{ranges:?}"
        );
    }
    let (op, _) = copy(to, &[(from, 1)]);
    assert_eq!(status(&mut rig, (op, None)), Status::INVALID_FIELD);
    assert_eq!(rig.drive.zones().state(ZoneId(1)), ZoneState::EMPTY);

    let mut rig = Rig::new(&small());
    let done = status(&mut rig, copy(to, &[(from, 1)]));
    assert_eq!(done, Status::INVALID_OPCODE, "the profile has no copy");
}

#[test]
fn writes_behind_a_copy_wait_for_its_sources() {
    let mut rig = Rig::new(&keeping());
    write(&mut rig, 0, &[1; 8]);
    write(&mut rig, 2, &[1; 8]);
    let (op, data) = copy(rig.lba(1, 0), &[(rig.lba(0, 0), 4)]);
    let copied = rig.submit_with(op, data);
    let op = rig.write(1, PAGE);
    let written = rig.submit(op);
    let other = rig.write(2, PAGE);
    let elsewhere = rig.submit(other);
    // Another page and die, but the same zone: it is programmed behind the copy.
    assert_eq!(rig.wait(copied).latency(), READ + WRITE);
    assert_eq!(rig.wait(written).latency(), READ + WRITE);
    assert_eq!(rig.wait(elsewhere).latency(), WRITE);
}

#[test]
fn a_finish_behind_a_copy_fills_what_is_left() {
    for config in [keeping(), buffered()] {
        for finish in [fill(64), FinishConfig::Metadata] {
            let mut config = config.clone();
            config.finish = finish;
            let mut rig = Rig::new(&config);
            write(&mut rig, 0, &[7; 8]);
            let (op, data) = copy(rig.lba(1, 0), &[(rig.lba(0, 0), 4)]);
            let copied = rig.submit_with(op, data);
            let op = rig.finish(1);
            let finished = rig.submit(op);
            rig.settle();
            assert_eq!(rig.wait(copied).status, Status::SUCCESS);
            assert_eq!(rig.wait(finished).status, Status::SUCCESS);
            assert_eq!(bytes(&mut rig, 1, 0, 5), [7, 7, 7, 7, 0]);
        }
    }
}

#[test]
fn a_reset_makes_a_copy_void() {
    for config in [keeping(), buffered()] {
        let mut rig = Rig::new(&config);
        write(&mut rig, 0, &[7; 8]);
        rig.settle();
        let programmed = rig.drive.totals().host_program_bytes;
        let (op, data) = copy(rig.lba(1, 0), &[(rig.lba(0, 0), 4)]);
        rig.submit_with(op, data);
        let op = rig.write(1, PAGE);
        rig.submit(op);
        let op = rig.reset(1);
        rig.submit(op);
        rig.settle();
        assert_eq!(rig.drive.totals().host_program_bytes, programmed);
        assert_eq!(bytes(&mut rig, 1, 0, 4), [0; 4]);
        write(&mut rig, 1, &[3; 4]);
        assert_eq!(bytes(&mut rig, 1, 0, 4), [3; 4]);
    }
}

#[test]
fn a_copy_that_power_interrupts_is_torn_at_its_end() {
    for at in [us(10), READ + us(10), READ + WRITE + us(10)] {
        for seed in 0..8 {
            let mut rig = Rig::new(&keeping());
            write(&mut rig, 0, &[1, 2, 3, 4, 5, 6, 7, 8]);
            let (op, data) = copy(rig.lba(1, 0), &[(rig.lba(0, 0), 8)]);
            rig.submit_with(op, data);
            let now = rig.now + at;
            rig.drive.power_cut(now, us(1), seed);
            let written = rig.drive.zones().written_lbas(ZoneId(1));
            assert!(written == 0 || at > READ, "its sources were not read");
            assert!(written == 8 || at < READ + WRITE, "it was acknowledged");
            rig.run_to(rig.drive.ready_at());
            let data = bytes(&mut rig, 1, 0, 8);
            for (index, byte) in (0..).zip(data) {
                let expected = if index < written { index as u8 + 1 } else { 0 };
                assert_eq!(byte, expected, "block {index} of {written}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_copy_of_what_cannot_be_read_copies_nothing() {
    let plan = "[[fault]]\non = \"copy\"\neffect = \"media-error\"\n";
    let Ok(plan) = FaultPlan::parse("faults.toml", plan, &[]) else {
        panic!("the plan is valid");
    };
    let drive = Rig::new(&keeping()).drive;
    let mut drive = FaultyDrive::new(drive, plan);
    let (op, data) = copy(Lba(0), &[(Lba(8), 1)]);
    let command = zonelab_device::Command::new(op);
    let (queue, tag) = Default::default();
    drive
        .submit(Nanos::ZERO, queue, tag, command, data)
        .expect("nothing is in flight");
    let mut done = Vec::new();
    drive.advance(us(10_000), &mut done);
    assert_eq!(done[0].status, Status::UNRECOVERED_READ_ERROR);
    assert_eq!(drive.drive().zones().state(ZoneId(0)), ZoneState::EMPTY);
}

#[test]
fn a_profile_states_what_a_copy_may_do() {
    let text = to_toml(&keeping());
    assert!(
        text.contains("[copy]\nmax_ranges = 3\nmax_range = \"32KiB\"\n"),
        "{text}"
    );
    let profile = Profile::parse("p.toml", &text, &[]).expect("it is valid");
    assert_eq!(profile.config.copy, keeping().copy);
    for (set, reason) in [
        ("copy.max_ranges=0", "copy.max_ranges"),
        ("copy.max_ranges=257", "copy.max_ranges"),
        ("copy.max_range=\"0B\"", "copy.max_range"),
        ("copy.max_range=\"1GiB\"", "copy.max_range"),
        ("copy.max_range=\"1KiB\"", "copy.max_range"),
        ("copy.max_length=\"4KiB\"", "copy.max_length"),
        ("copy.max_length=\"64TiB\"", "copy.max_length"),
    ] {
        let refused = Profile::parse("p.toml", &text, &[Override::parse(set).expect("it is one")]);
        let refused = refused.expect_err(set).to_string();
        assert!(refused.contains(reason), "{set}: {refused}");
    }
}
