//! The write-back buffer, by hand and under random commands.

mod bookkeeping;
mod random;

use crate::drive_support;
use crate::drive_support::random::{Step, drives, front_ends, streams};
use crate::drive_support::{PAGE, READ, Rig, WRITE, narrow, reset, small, us};
use proptest::prelude::*;
use zonelab_device::{Buf, Nanos, Op, Tag, ZoneId};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{
    Bookkeeping, BufferRelease, ChannelArbitration, DataStore, DriveConfig, EraseExtent, EraseWhen,
    FinishConfig, Placement, WriteBufferConfig,
};
use zonelab_ssd::record::{Counter, RecordLimits};
use zonelab_ssd::snapshot;
use zonelab_ssd::{DriveModel, FaultTarget};

const PAGE_BYTES: u64 = 16_384;
const BLOCK_BYTES: u64 = 4_096;

/// `config` with a buffer of so many pages.
fn buffered(mut config: DriveConfig, pages: u64) -> DriveConfig {
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: pages * u64::from(config.geometry.page_bytes),
        power_loss_protection: false,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
        release: BufferRelease::Program,
    });
    config
}

fn protected(config: DriveConfig, pages: u64) -> DriveConfig {
    let mut config = buffered(config, pages);
    if let Some(buffer) = &mut config.write_buffer {
        buffer.power_loss_protection = true;
    }
    config
}

/// Submits a write of `nlb` blocks at the write pointer of a zone.
fn submit_write(rig: &mut Rig, zone: u32, nlb: u32) -> usize {
    let op = rig.write(zone, nlb);
    rig.submit(op)
}

fn completed_at(rig: &Rig, tag: usize) -> Nanos {
    rig.done[tag].as_ref().expect("it has completed").at
}

#[test]
fn a_write_completes_when_it_is_in_the_buffer() {
    let mut rig = Rig::new(&buffered(small(), 8));
    let op = rig.write(0, 2 * PAGE);
    assert_eq!(rig.time(op), Nanos::ZERO);
    assert_eq!(rig.drive.buffered_bytes(), 2 * PAGE_BYTES);
    assert_eq!(rig.drive.background_tasks(), 2);
    rig.run_to(WRITE - Nanos(1));
    assert_eq!(rig.drive.buffered_bytes(), 2 * PAGE_BYTES);
    rig.run_to(WRITE);
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.background_tasks(), 0);
}

#[test]
fn a_page_is_programmed_when_it_is_whole() {
    let mut rig = Rig::new(&buffered(small(), 8));
    for _ in 0..PAGE - 1 {
        let op = rig.write(0, 1);
        assert_eq!(rig.time(op), Nanos::ZERO);
    }
    assert_eq!(rig.drive.next_event(), None, "three blocks are no page");
    assert_eq!(rig.drive.buffered_bytes(), 3 * BLOCK_BYTES);
    assert_eq!(rig.drive.totals().host_program_bytes, 0);
    let op = rig.append(0, 1);
    assert_eq!(rig.time(op), Nanos::ZERO);
    rig.settle();
    assert_eq!(rig.now, WRITE);
    let totals = rig.drive.totals();
    assert_eq!(totals.host_program_bytes, PAGE_BYTES);
    assert_eq!(totals.dlwa(), Some(1.0));
}

/// Pages of a zone on one die: transfers overlap, programs do not, and each
/// program makes room for one page.
#[test]
fn a_full_buffer_takes_writes_as_programs_end() {
    let mut rig = Rig::new(&buffered(narrow(), 2));
    let tags: Vec<usize> = (0..5).map(|_| submit_write(&mut rig, 0, PAGE)).collect();
    rig.settle();
    let at = |index: usize| completed_at(&rig, tags[index]);
    assert_eq!(at(0), Nanos::ZERO);
    assert_eq!(at(1), Nanos::ZERO);
    assert_eq!(at(2), us(725));
    assert_eq!(at(3), us(1_425));
    assert_eq!(at(4), us(2_125));
}

/// Order of arrival, whatever zone and size: a small write does not get past a
/// large one that waits.
#[test]
fn the_line_is_one_for_all_zones() {
    let mut rig = Rig::new(&buffered(small(), 4));
    let first = submit_write(&mut rig, 0, 3 * PAGE);
    let large = submit_write(&mut rig, 1, 3 * PAGE);
    let little = submit_write(&mut rig, 2, 1);
    rig.settle();
    assert_eq!(completed_at(&rig, first), Nanos::ZERO);
    // Its first page gets in at once and its others when the first write's are done.
    assert_eq!(completed_at(&rig, large), WRITE);
    assert_eq!(completed_at(&rig, little), WRITE);
    assert_eq!(rig.order, [first, large, little]);
}

#[test]
fn a_write_larger_than_the_buffer_goes_through_in_pieces() {
    let mut rig = Rig::new(&buffered(small(), 1));
    let op = rig.write(0, 4 * PAGE);
    assert_eq!(rig.time(op), Nanos(3 * WRITE.0));
    rig.settle();
    assert_eq!(rig.drive.totals().host_program_bytes, 4 * PAGE_BYTES);
}

/// A buffer full of parts of pages programs the oldest with padding.
#[test]
fn parts_of_pages_do_not_block_the_line() {
    let mut rig = Rig::new(&buffered(small(), 1));
    for zone in [0, 0, 0, 1] {
        let op = rig.write(zone, 1);
        assert_eq!(rig.time(op), Nanos::ZERO);
    }
    let op = rig.write(2, 1);
    assert_eq!(rig.time(op), WRITE, "after the page of zone 0");
    assert_eq!(rig.drive.buffered_bytes(), 2 * BLOCK_BYTES);
    assert_eq!(rig.drive.totals().host_program_bytes, PAGE_BYTES);
}

#[test]
fn what_is_in_the_buffer_is_read_from_it() {
    let mut rig = Rig::new(&buffered(small(), 8));
    let op = rig.write(0, PAGE + 2);
    rig.time(op);
    let whole = rig.read(0, 0, PAGE + 2);
    assert_eq!(rig.time(whole), Nanos::ZERO);
    rig.settle();
    // One page is on the flash now, half a page is not.
    assert_eq!(rig.time(rig.read(0, PAGE, 2)), Nanos::ZERO);
    let (before, _) = rig.busy();
    assert_eq!(rig.time(whole), READ);
    let (after, _) = rig.busy();
    assert_eq!(after[0] - before[0], 25_000, "one page of two");
}

/// Planes end in any order: what is on the flash is read from there, what is
/// not comes from the buffer.
#[test]
fn a_page_that_overtook_another_is_read_from_the_flash() {
    let mut rig = Rig::new(&buffered(small(), 8));
    // The first plane is busy with another zone.
    let op = rig.write(1, PAGE);
    rig.time(op);
    let op = rig.write(0, 2 * PAGE);
    rig.time(op);
    rig.run_to(WRITE);
    assert_eq!(rig.drive.buffered_bytes(), PAGE_BYTES);
    let (before, _) = rig.busy();
    assert_eq!(rig.time(rig.read(0, 0, 2 * PAGE)), READ);
    let (after, _) = rig.busy();
    assert_eq!(after[0] - before[0], 25_000);
}

#[test]
fn a_flush_waits_for_what_was_admitted_before_it() {
    let mut rig = Rig::new(&buffered(small(), 8));
    let op = rig.write(0, 1);
    rig.time(op);
    rig.run_to(us(100));
    let flush = rig.submit(Op::Flush);
    rig.run_to(us(200));
    submit_write(&mut rig, 1, PAGE);
    rig.wait(flush);
    assert_eq!(completed_at(&rig, flush), us(100) + WRITE);
    assert_eq!(rig.drive.totals().host_program_bytes, 2 * PAGE_BYTES);
    rig.settle();
    assert_eq!(rig.time(Op::Flush), Nanos::ZERO, "nothing is left");
    // The rest of the page is programmed with it again.
    let op = rig.write(0, PAGE - 1);
    rig.time(op);
    rig.settle();
    assert_eq!(rig.drive.totals().host_program_bytes, 3 * PAGE_BYTES);
}

#[test]
fn a_protected_buffer_has_nothing_to_flush() {
    let mut rig = Rig::new(&protected(small(), 8));
    let op = rig.write(0, 1);
    rig.time(op);
    assert_eq!(rig.time(Op::Flush), Nanos::ZERO);
    assert_eq!(rig.drive.totals().host_program_bytes, 0);
}

#[test]
fn a_zone_that_is_full_leaves_the_buffer() {
    let mut config = small();
    config.zones.capacity_lbas -= 2;
    let mut rig = Rig::new(&buffered(config, 64));
    let op = rig.write(0, 32 * PAGE - 2);
    assert_eq!(rig.time(op), Nanos::ZERO);
    rig.settle();
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.totals().host_program_bytes, 32 * PAGE_BYTES);
}

#[test]
fn a_finish_drains_and_then_fills() {
    for (design, fill, pages) in [
        (FinishConfig::Metadata, Nanos::ZERO, 0),
        // 30 pages one by one.
        (drive_support::fill(16), Nanos(30 * WRITE.0), 30),
    ] {
        let mut config = small();
        config.finish = design;
        let mut rig = Rig::new(&buffered(config, 8));
        let op = rig.write(0, PAGE + 2);
        rig.time(op);
        let finish = rig.finish(0);
        assert_eq!(rig.time(finish), WRITE + fill);
        let totals = rig.drive.totals();
        assert_eq!(totals.host_program_bytes, 2 * PAGE_BYTES);
        assert_eq!(totals.fill_program_bytes, pages * PAGE_BYTES);
        assert_eq!(rig.drive.buffered_bytes(), 0);
    }
}

/// Writes that wait for room when their zone is finished still get there first.
#[test]
fn a_finish_waits_for_the_line() {
    let mut config = small();
    config.finish = FinishConfig::Metadata;
    let mut rig = Rig::new(&buffered(config, 1));
    submit_write(&mut rig, 0, PAGE);
    submit_write(&mut rig, 0, PAGE + 1);
    let op = rig.finish(0);
    assert_eq!(rig.time(op), Nanos(3 * WRITE.0));
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.totals().host_program_bytes, 3 * PAGE_BYTES);
}

/// The zone fails after its finish was accepted: the rest of it is still programmed.
#[test]
fn a_finish_of_a_zone_that_fails_meanwhile_ends() {
    for state in [ZoneState::READ_ONLY, ZoneState::OFFLINE] {
        let mut config = small();
        config.finish = FinishConfig::Metadata;
        let mut rig = Rig::new(&buffered(config, 1));
        submit_write(&mut rig, 0, PAGE);
        submit_write(&mut rig, 0, PAGE + 1);
        let finish = rig.finish(0);
        let finish = rig.submit(finish);
        let now = rig.now;
        rig.drive
            .fail_zone(now, ZoneId(0), state)
            .expect("a zone can fail");
        rig.settle();
        assert_eq!(completed_at(&rig, finish), Nanos(3 * WRITE.0));
        assert_eq!(rig.drive.buffered_bytes(), 0);
    }
}

#[test]
fn a_reset_drops_what_is_in_the_buffer() {
    let mut config = buffered(small(), 8);
    config.reset = reset(EraseWhen::Synchronous, EraseExtent::Partial);
    let mut rig = Rig::new(&config);
    let op = rig.write(0, 2);
    rig.time(op);
    let op = rig.reset(0);
    assert_eq!(rig.time(op), Nanos::ZERO, "no block holds anything");
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.totals().erased_blocks, 0);

    // A page under way ends, and its block is erased behind it.
    let op = rig.write(0, PAGE + 2);
    rig.time(op);
    let op = rig.reset(0);
    let tag = rig.submit(op);
    assert_eq!(rig.drive.buffered_bytes(), PAGE_BYTES);
    rig.wait(tag);
    assert_eq!(rig.now, WRITE + us(3_500));
    assert_eq!(rig.drive.buffered_bytes(), 0);
    assert_eq!(rig.drive.totals().host_program_bytes, PAGE_BYTES);
    assert_eq!(rig.drive.totals().erased_blocks, 1);
}

/// A finish whose zone is reset while it waits for the buffer ends there.
#[test]
fn a_reset_ends_a_finish_that_waits() {
    let mut rig = Rig::new(&buffered(small(), 8));
    submit_write(&mut rig, 0, PAGE + 2);
    let op = rig.finish(0);
    let finish = rig.submit(op);
    rig.run_to(us(10));
    let op = rig.reset(0);
    rig.submit(op);
    rig.settle();
    assert_eq!(completed_at(&rig, finish), us(10));
    assert_eq!(rig.drive.totals().fill_program_bytes, 0);
}

/// Stamps a page, and says what a block begins with.
fn stamped(rig: &Rig, zone: u32, nlb: u32, byte: u8) -> (Op, Option<Buf>) {
    let mut data = Buf::zeroed(nlb as usize * BLOCK_BYTES as usize);
    data.fill(byte);
    (rig.write(zone, nlb), Some(data))
}

fn keeping(mut config: DriveConfig) -> DriveConfig {
    config.data = DataStore::Memory;
    config
}

#[test]
fn without_protection_what_was_not_flushed_can_be_lost_from_the_end() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..32 {
        let mut rig = Rig::new(&keeping(buffered(small(), 8)));
        let (op, data) = stamped(&rig, 0, PAGE, 1);
        rig.exec_with(op, data);
        rig.exec(Op::Flush);
        let (op, data) = stamped(&rig, 0, 2 * PAGE + 1, 2);
        rig.exec_with(op, data);
        rig.run_for(us(100));
        let now = rig.now;
        rig.drive.power_cut(now, Nanos::ZERO, seed);
        let left = rig.drive.zones().written_lbas(ZoneId(0));
        seen.insert(left);
        assert_eq!(rig.drive.buffered_bytes(), 0);
        rig.run_to(rig.drive.ready_at());
        let read = rig.read(0, 0, 3 * PAGE + 1);
        let data = rig.exec_with(read, Some(Buf::zeroed(13 * 4_096))).data;
        for (lba, block) in (0_u64..).zip(data.unwrap().chunks(4_096)) {
            let expected = match lba {
                0..4 => 1,
                lba if lba < left => 2,
                _ => 0,
            };
            assert!(block.iter().all(|byte| *byte == expected), "block {lba}");
        }
        // It goes on from there.
        let op = rig.write(0, PAGE);
        rig.time(op);
        assert_eq!(rig.exec(Op::Flush).status.0, 0);
    }
    // The page that was flushed, and of those under way none, one, or both; the
    // block that was not sent never.
    assert_eq!(Vec::from_iter(seen), [4, 8, 12]);
}

#[test]
fn with_protection_everything_acknowledged_is_left() {
    for seed in 0..8 {
        let mut rig = Rig::new(&keeping(protected(small(), 8)));
        let (op, data) = stamped(&rig, 0, 2 * PAGE + 1, 2);
        rig.exec_with(op, data);
        rig.run_for(us(100));
        let now = rig.now;
        rig.drive.power_cut(now, Nanos::ZERO, seed);
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 9);
        assert_eq!(rig.drive.totals().host_program_bytes, 3 * PAGE_BYTES);
        rig.run_to(rig.drive.ready_at());
        let read = rig.read(0, 8, 1);
        let data = rig.exec_with(read, Some(Buf::zeroed(4_096))).data;
        assert!(data.unwrap().iter().all(|byte| *byte == 2));
    }
}

#[test]
fn a_snapshot_is_that_of_an_orderly_shutdown() {
    let config = keeping(buffered(small(), 8));
    let mut rig = Rig::new(&config);
    let (op, data) = stamped(&rig, 0, PAGE + 2, 3);
    rig.exec_with(op, data);
    assert!(
        snapshot::save(&rig.drive).is_err(),
        "a page is being programmed"
    );
    rig.settle();
    let saved = snapshot::save(&rig.drive).unwrap();
    assert_eq!(
        rig.drive.buffered_bytes(),
        2 * BLOCK_BYTES,
        "saving changes nothing"
    );
    let mut same = Rig::new(&config);
    same.drive = snapshot::restore(&config, &saved).unwrap();
    assert_eq!(same.drive.buffered_bytes(), 0);
    assert_eq!(same.drive.totals().host_program_bytes, 2 * PAGE_BYTES);
    assert_eq!(same.time(same.read(0, PAGE, 2)), READ);
    let op = same.write(0, 2);
    assert_eq!(same.time(op), Nanos::ZERO);
    same.settle();
    assert_eq!(same.drive.buffered_bytes(), 0, "the page is whole");
}

#[test]
fn the_fill_is_recorded() {
    let mut rig = Rig::new(&buffered(small(), 8));
    rig.drive.record(&RecordLimits::everything(100));
    let op = rig.write(0, PAGE + 1);
    rig.time(op);
    rig.settle();
    let record = rig.drive.take_record();
    let fill: Vec<(Nanos, u64)> = record
        .counters
        .records
        .iter()
        .filter(|record| record.counter == Counter::BufferedBytes)
        .map(|record| (record.at, record.value))
        .collect();
    assert_eq!(fill, [(Nanos::ZERO, 5 * BLOCK_BYTES), (WRITE, BLOCK_BYTES)]);
}
