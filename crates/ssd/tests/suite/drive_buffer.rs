//! The write-back buffer, by hand and under random commands.

use crate::drive_support;
use crate::drive_support::random::{Step, drives, front_ends, streams};
use crate::drive_support::{PAGE, READ, Rig, WRITE, narrow, reset, small, us};
use proptest::prelude::*;
use zonelab_device::{Buf, Nanos, Op, Tag, ZoneId};
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
        appends_per_zone: None,
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

#[test]
fn appends_of_a_zone_take_turns() {
    let mut config = buffered(small(), 1);
    if let Some(buffer) = &mut config.write_buffer {
        buffer.appends_per_zone = Some(1);
    }
    let mut rig = Rig::new(&config);
    let append = rig.append(0, PAGE);
    let appends: Vec<usize> = (0..4).map(|_| rig.submit(append)).collect();
    let writes: Vec<usize> = (0..2).map(|_| submit_write(&mut rig, 1, PAGE)).collect();
    // Behind the appends of its own zone, whose blocks come before its own.
    let last = submit_write(&mut rig, 0, PAGE);
    rig.settle();
    let [a, b, c, d] = appends[..] else {
        panic!("four appends")
    };
    assert_eq!(rig.order, [a, b, writes[0], writes[1], c, d, last]);
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

fn with_bookkeeping(mut config: DriveConfig, slices: u32) -> DriveConfig {
    config.reset.bookkeeping = Some(Bookkeeping {
        base_ns: us(100),
        full_zone_ns: us(3_200),
        drain_pause_ns: us(1_600),
        slices,
        open_zone_ns: Nanos::ZERO,
        quiesce: false,
    });
    config
}

/// 100 us, and 100 us for each of the 32 pages that the host wrote.
#[test]
fn a_reset_costs_bookkeeping_for_what_the_host_wrote() {
    let mut config = with_bookkeeping(buffered(small(), 64), 1);
    config.reset.erase = EraseWhen::Background;
    let mut rig = Rig::new(&config);
    for (pages, is_finished) in [(0, true), (1, true), (1, false), (16, false), (32, false)] {
        if pages > 0 {
            rig.write_pages(0, pages);
        }
        if is_finished {
            let op = rig.finish(0);
            rig.exec(op);
        }
        rig.settle();
        let op = rig.reset(0);
        assert_eq!(rig.time(op), us(100 + 100 * u64::from(pages)));
        rig.settle();
    }
    // One zone after another.
    rig.write_pages(0, 1);
    rig.write_pages(1, 1);
    rig.settle();
    let tags = [0, 1].map(|zone| rig.submit(rig.reset(zone)));
    rig.settle();
    let latency = |tag: usize| rig.done[tag].as_ref().map(|done| done.latency());
    assert_eq!(tags.map(latency), [Some(us(200)), Some(us(400))]);
}

/// A full zone takes 3,300 us, of which 1,600 in two pauses: 0 to 800 and
/// 1,650 to 2,450.
#[test]
fn bookkeeping_pauses_the_drain_in_slices() {
    let mut config = with_bookkeeping(buffered(small(), 1), 2);
    config.reset.erase = EraseWhen::FirstZoneWrite;
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    let op = rig.reset(0);
    let reset = rig.submit(op);
    let writes: Vec<usize> = (0..4).map(|_| submit_write(&mut rig, 1, PAGE)).collect();
    rig.settle();
    let at = |tag: usize| completed_at(&rig, tag);
    assert_eq!(at(reset), us(3_300));
    // A program under way at the second pause goes on: 1,525 to 2,250.
    let times = [0, 800 + 725, 800 + 2 * 725, 2_450 + 725].map(us);
    assert_eq!(writes.iter().map(|tag| at(*tag)).collect::<Vec<_>>(), times);
}

/// What waits for the end of a pause is no more than buffered.
#[test]
fn a_reset_and_a_loss_of_power_during_a_pause() {
    for is_protected in [false, true] {
        let mut config = with_bookkeeping(buffered(keeping(small()), 8), 1);
        config.reset.erase = EraseWhen::FirstZoneWrite;
        config.write_buffer.as_mut().unwrap().power_loss_protection = is_protected;
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 32);
        rig.settle();
        for op in [rig.reset(0), rig.write(1, PAGE), rig.write(2, PAGE + 1)] {
            rig.submit(op);
        }
        let op = rig.reset(1);
        rig.run_for(us(10));
        rig.submit(op);
        rig.run_for(us(10));
        let before = rig.drive.totals().host_program_bytes;
        rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
        let left = if is_protected { 5 } else { 0 };
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(2)), left);
        assert_eq!(rig.drive.zones().written_lbas(ZoneId(1)), 0);
        let saved = rig.drive.totals().host_program_bytes - before;
        assert_eq!(saved, if is_protected { 2 * PAGE_BYTES } else { 0 });
    }
}

/// Pages, appends of a zone, protection, and the way out.
fn buffers() -> impl Strategy<Value = (u64, Option<u32>, bool, WayOut)> {
    let way_out = (
        any::<bool>(),
        prop::option::of(10_000_000..4_000_000_000_u64),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let way_out = way_out.prop_map(
        |(early, drain_bytes_per_s, fills, quiesce, by_work)| WayOut {
            early,
            drain_bytes_per_s,
            fills,
            quiesce,
            by_work,
        },
    );
    let appends = prop::option::of(1..4_u32);
    (1..40_u64, appends, any::<bool>(), way_out)
}

/// How blocks leave a buffer.
#[derive(Clone, Copy, Debug)]
struct WayOut {
    early: bool,
    drain_bytes_per_s: Option<u64>,
    /// The buffer chooses dies.
    by_work: bool,
    /// Finishes fill through the buffer.
    fills: bool,
    /// Resets wait for programs.
    quiesce: bool,
}

impl WayOut {
    /// Of the buffer of `config`, as far as its flash allows it.
    fn apply(self, config: &mut DriveConfig) {
        if let Some(buffer) = &mut config.write_buffer {
            buffer.drain_bytes_per_s = self.drain_bytes_per_s;
            if self.by_work {
                buffer.placement = Placement::LeastWork;
            }
            if self.early && config.media.arbitration == ChannelArbitration::Ready {
                buffer.release = BufferRelease::Transfer;
            }
        }
        if let FinishConfig::Fill { buffered, .. } = &mut config.finish {
            *buffered = self.fills;
        }
        if let Some(books) = &mut config.reset.bookkeeping {
            books.quiesce = self.quiesce;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// Whatever a host does, every command ends as without a buffer, the buffer
    /// never holds more than fits, and a flush brings everything to the flash.
    #[test]
    fn every_block_gets_to_the_flash(
        config in drives(),
        front_end in prop::option::of(front_ends()),
        (pages, appends_per_zone, is_protected, way_out) in buffers(),
        slices in prop::option::of(1..4_u32),
        stream in streams(1..100),
    ) {
        let mut config = config;
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        let mut plain = Rig::new(&config);
        let size_bytes = pages * u64::from(config.geometry.page_bytes);
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes,
            appends_per_zone,
            power_loss_protection: is_protected,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        if let Some(slices) = slices {
            config = with_bookkeeping(config, slices);
        }
        way_out.apply(&mut config);
        let mut rig = Rig::new(&config);
        for step in stream {
            match (step, step.op(&rig)) {
                (_, Some(op)) => {
                    rig.submit(op);
                    plain.submit(op);
                }
                (Step::Pause(ns), None) => {
                    let until = rig.now + Nanos(ns);
                    while let Some(at) = rig.drive.next_event().filter(|at| *at <= until) {
                        rig.run_to(at);
                        prop_assert!(rig.drive.buffered_bytes() <= size_bytes);
                    }
                    rig.run_to(until);
                    plain.run_to(until);
                }
                (_, None) => {
                    rig.settle();
                    let now = rig.now.max(plain.now);
                    rig.run_to(now);
                    plain.run_to(now);
                }
            }
            prop_assert!(rig.drive.buffered_bytes() <= size_bytes);
        }
        rig.settle();
        plain.settle();
        for (ours, theirs) in rig.done.iter().flatten().zip(plain.done.iter().flatten()) {
            prop_assert_eq!((ours.status, ours.result), (theirs.status, theirs.result));
        }
        rig.exec(Op::Flush);
        rig.settle();
        let ours = rig.drive.totals();
        prop_assert_eq!(ours.host_write_bytes, plain.drive.totals().host_write_bytes);
        let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
        for zone in (0..config.zones.count).map(ZoneId) {
            let written = rig.drive.zones().host_lbas(zone).div_ceil(page_lbas);
            let physical = rig.drive.mapping().physical(zone);
            let programmed = physical.map_or(0, |p| rig.drive.flash().zone_state(p).0);
            prop_assert!(is_protected || written <= u64::from(programmed), "{:?}", zone);
        }
        prop_assert!(is_protected || rig.drive.buffered_bytes() == 0);
        while rig.next() {}
    }

    /// A loss of power leaves what was flushed, or protected, and takes only
    /// from the end of zones; the drive goes on as one without losses.
    #[test]
    fn a_loss_of_power_takes_no_more_than_it_may(
        config in drives(),
        (pages, appends_per_zone, is_protected, way_out) in buffers(),
        slices in prop::option::of(1..4_u32),
        stream in streams(1..60),
        seed in any::<u64>(),
        off in 0..2_000_000_u64,
    ) {
        let mut config = config;
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: pages * u64::from(config.geometry.page_bytes),
            appends_per_zone,
            power_loss_protection: is_protected,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
        });
        if let Some(slices) = slices {
            config = with_bookkeeping(config, slices);
        }
        way_out.apply(&mut config);
        let mut rig = Rig::new(&config);
        for step in stream {
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                }
                None => rig.run_for(Nanos(400_000)),
            }
        }
        let zones = || (0..config.zones.count).map(ZoneId);
        let flushed: Vec<u64> = zones().map(|zone| acknowledged(&rig, zone)).collect();
        rig.exec(Op::Flush);
        let protected: Vec<u64> = zones().map(|zone| acknowledged(&rig, zone)).collect();
        rig.run_for(Nanos(off));
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, seed);
        let lost: Vec<Tag> = loss.lost.iter().map(|lost| lost.tag).collect();
        let safe = if is_protected { protected } else { flushed };
        for (zone, safe) in zones().zip(safe) {
            let left = rig.drive.zones().host_lbas(zone);
            prop_assert!(left >= safe, "{:?}: {} of {}", zone, left, safe);
        }
        rig.drive.zones().assert_invariants();
        prop_assert_eq!(rig.drive.buffered_bytes(), 0);
        prop_assert_eq!(rig.drive.in_flight(), 0);
        prop_assert!(lost.len() <= rig.done.len());
        // Every zone can be used to its end.
        rig.run_to(loss.ready_at);
        let mut after = Rig::new(&config);
        after.drive = rig.drive;
        after.now = loss.ready_at;
        for zone in zones() {
            let op = after.reset(zone.0);
            after.exec(op);
        }
        for zone in zones() {
            let op = after.write(zone.0, config.zones.capacity_lbas as u32);
            after.time(op);
        }
        after.settle();
        prop_assert_eq!(after.drive.buffered_bytes(), 0);
    }
}

/// Blocks of a zone whose writes have certainly completed: all if no command is
/// in flight.
fn acknowledged(rig: &Rig, zone: ZoneId) -> u64 {
    if rig.done.iter().any(Option::is_none) {
        return 0;
    }
    rig.drive.zones().host_lbas(zone)
}
