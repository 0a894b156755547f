//! Details of closely modelled drives on examples that are computed by hand.

use crate::drive_support::random::{NO_FRONT_END, drives};
use crate::drive_support::{PAGE, READ, Rig, WRITE, narrow, small, us};
use proptest::prelude::*;
use zonelab_device::{Buf, Command, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_ssd::config::{
    Bookkeeping, BufferRelease, ChannelArbitration, CommandCosts, DataStore, DiePolicy,
    DriveConfig, EraseWhen, FillExtent, FinishConfig, FrontEndConfig, PageRegister, Placement,
    PlaneMode, ReadParts, StripeOrder, WriteBufferConfig,
};
use zonelab_ssd::layout::Layout;
use zonelab_ssd::{DriveModel, FaultTarget};

const PAGE_BYTES: u64 = 16_384;

/// `config` with transfers in order of readiness, and a buffer of so many pages.
fn buffered(mut config: DriveConfig, pages: u64) -> DriveConfig {
    config.media.arbitration = ChannelArbitration::Ready;
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: pages * PAGE_BYTES,
        appends_per_zone: None,
        power_loss_protection: false,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
        release: BufferRelease::Program,
    });
    config
}

fn releasing(config: DriveConfig, pages: u64) -> DriveConfig {
    let mut config = buffered(config, pages);
    if let Some(buffer) = &mut config.write_buffer {
        buffer.release = BufferRelease::Transfer;
    }
    config
}

/// A page in 100 us.
fn draining(config: DriveConfig, pages: u64) -> DriveConfig {
    let mut config = buffered(config, pages);
    if let Some(buffer) = &mut config.write_buffer {
        buffer.drain_bytes_per_s = Some(PAGE_BYTES * 10_000);
    }
    config
}

/// Finishes through the buffer.
fn filling(config: DriveConfig, pages: u64, yield_ns: Option<Nanos>) -> DriveConfig {
    let mut config = buffered(config, pages);
    config.finish = FinishConfig::Fill {
        granularity_bytes: PAGE_BYTES as u32,
        pause_ns: Nanos::ZERO,
        yield_ns,
        buffered: true,
        extent: FillExtent::Zone,
    };
    config
}

/// 100 us, and 100 us for each page of a zone, of which half without drain.
fn bookkeeping(mut config: DriveConfig) -> DriveConfig {
    config.reset.erase = EraseWhen::FirstZoneWrite;
    config.reset.bookkeeping = Some(Bookkeeping {
        base_ns: us(100),
        full_zone_ns: us(3_200),
        drain_pause_ns: us(1_600),
        slices: 1,
        open_zone_ns: Nanos::ZERO,
        quiesce: false,
    });
    config
}

fn submit_write(rig: &mut Rig, zone: u32, nlb: u32) -> usize {
    let op = rig.write(zone, nlb);
    rig.submit(op)
}

fn completed_at(rig: &Rig, tag: usize) -> Nanos {
    rig.done[tag].as_ref().expect("it has completed").at
}

fn filled_pages(rig: &Rig) -> u64 {
    rig.drive.totals().fill_program_bytes / PAGE_BYTES
}

// ---- reads --------------------------------------------------------------

fn in_parts(mut config: DriveConfig) -> DriveConfig {
    let parts = ReadParts::new(&[us(10), us(20), us(30), us(40)]).expect("there are four");
    config.media.read_ns = parts.mean();
    config.media.details.read_parts = Some(parts);
    config
}

/// Parts of one block each, and a transfer of the page.
#[test]
fn a_read_takes_the_time_of_the_parts_that_it_touches() {
    let mut rig = Rig::new(&in_parts(small()));
    rig.precondition(0..1);
    for (first, nlb, parts) in [
        (0, 1, 10),
        (1, 1, 20),
        (3, 1, 40),
        (1, 2, 50),
        (0, 4, 100),
        // The last part of a page, and the first of one on another channel.
        (3, 2, 40),
        (7, 5, 100),
    ] {
        let read = rig.read(0, first, nlb);
        assert_eq!(rig.time(read), us(parts + 25), "{nlb} from {first}");
    }
}

#[test]
fn planes_of_a_die_read_their_parts_together() {
    let mut config = in_parts(small());
    config.geometry.planes = 2;
    config.media.planes = PlaneMode::MultiPlane;
    config.zones.stripe = StripeOrder::PlaneFirst;
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    assert_eq!(rig.time(rig.read(0, 3, 2)), us(40 + 2 * 25));
    assert_eq!(rig.time(rig.read(0, 0, 2 * PAGE)), us(100 + 2 * 25));
}

/// Zones 0 and 16 of [`narrow`] stand on one die, 0 and 4 on one channel.
#[test]
fn the_transfer_of_a_read_gets_between_the_pieces_of_a_write() {
    // A block is a quarter of a page: 6.25 us.
    for (unit, written, read_at) in [
        // 50 to 75, and the block from there.
        (None, 50_000 + 725_000, 75_000 + 6_250),
        // 50 to 62.5, the block, and the other half.
        (Some(4_096), 50_000 + 731_250, 62_500 + 6_250),
        // Two halves.
        (Some(8_192), 50_000 + 731_250, 62_500 + 6_250),
    ] {
        let mut config = narrow();
        config.media.arbitration = ChannelArbitration::Ready;
        config.media.partial_transfer = true;
        config.media.details.transfer_unit_bytes = unit;
        let mut rig = Rig::new(&config);
        rig.precondition(16..17);
        let groups = rig.drive.flash().layout().groups();
        assert_eq!(groups, 16);
        rig.precondition(4..5);
        let read = rig.submit(rig.read(4, 0, 1));
        rig.run_to(us(50));
        let write = submit_write(&mut rig, 0, PAGE);
        rig.settle();
        assert_eq!(completed_at(&rig, read), Nanos(read_at), "{unit:?}");
        assert_eq!(completed_at(&rig, write), Nanos(written), "{unit:?}");
    }
}

/// A held die takes the pieces of one page, and serves nobody between them, not
/// even reads that go first otherwise.
#[test]
fn a_die_that_is_held_waits_for_the_pieces_of_its_page() {
    for policy in [DiePolicy::Fifo, DiePolicy::ReadFirst] {
        let mut config = narrow();
        config.media.policy = policy;
        config.media.arbitration = ChannelArbitration::Ready;
        config.media.page_register = PageRegister::Hold;
        config.media.details.transfer_unit_bytes = Some(8_192);
        let mut rig = Rig::new(&config);
        rig.precondition(16..17);
        // Pieces of the two writes take turns, 12.5 us each: 0, 25 and 12.5, 37.5.
        let write = submit_write(&mut rig, 0, PAGE);
        let other = submit_write(&mut rig, 4, PAGE);
        rig.run_to(us(20));
        let read = rig.submit(rig.read(16, 0, PAGE));
        rig.settle();
        assert_eq!(completed_at(&rig, write), Nanos(37_500 + 700_000));
        assert_eq!(completed_at(&rig, other), Nanos(50_000 + 700_000));
        assert_eq!(completed_at(&rig, read), Nanos(737_500) + READ);
        let busy: u64 = rig.busy().1.iter().sum();
        assert_eq!(busy, 2 * 725_000 + 85_000, "waiting is not work");
        let unit = rig.drive.flash().layout().stripe(0)[0];
        let backlog = rig.drive.flash().media().backlog(rig.now, unit);
        assert_eq!(backlog, Nanos::ZERO);
    }
}

// ---- the way out of the buffer ------------------------------------------

/// Pages of a zone on one die, in a buffer of two.
#[test]
fn room_is_free_when_a_page_is_at_its_die() {
    let times = |config: &DriveConfig| {
        let mut rig = Rig::new(config);
        let tags: Vec<usize> = (0..5).map(|_| submit_write(&mut rig, 0, PAGE)).collect();
        rig.settle();
        assert_eq!(rig.now, us(25 + 5 * 700));
        assert_eq!(rig.drive.buffered_bytes(), 0);
        let at = |tag: &usize| completed_at(&rig, *tag).0 / 1_000;
        tags.iter().map(at).collect::<Vec<u64>>()
    };
    let program = buffered(narrow(), 2);
    assert_eq!(times(&program), [0, 0, 725, 1_425, 2_125]);
    let mut transfer = releasing(narrow(), 2);
    assert_eq!(times(&transfer), [0, 0, 25, 50, 75]);
    // One page ahead: the third gets to the die when the second is programmed.
    transfer.media.page_register = PageRegister::Cache;
    assert_eq!(times(&transfer), [0, 0, 25, 50, 750]);
}

#[test]
fn room_is_free_piece_by_piece() {
    for (unit, at) in [(None, 25_000), (Some(8_192), 12_500), (Some(4_096), 6_250)] {
        let mut config = releasing(narrow(), 2);
        config.media.details.transfer_unit_bytes = unit;
        let mut rig = Rig::new(&config);
        submit_write(&mut rig, 0, 2 * PAGE);
        let one = submit_write(&mut rig, 0, 1);
        rig.settle();
        assert_eq!(completed_at(&rig, one), Nanos(at), "{unit:?}");
    }
}

#[test]
fn room_is_free_with_the_last_piece_that_a_held_die_takes() {
    let mut config = releasing(narrow(), 1);
    config.media.page_register = PageRegister::Hold;
    let mut rig = Rig::new(&config);
    submit_write(&mut rig, 0, PAGE);
    let next = submit_write(&mut rig, 0, PAGE);
    rig.settle();
    assert_eq!(completed_at(&rig, next), us(25));
    assert_eq!(rig.now, us(2 * 725));
}

/// Four pages for four dies leave 100 us apart.
#[test]
fn units_leave_one_by_one() {
    let mut rig = Rig::new(&draining(small(), 8));
    let op = rig.write(0, 4 * PAGE);
    assert_eq!(rig.time(op), Nanos::ZERO);
    for (at, pages) in [(724, 4), (725, 3), (824, 3), (825, 2), (925, 1), (1_024, 1)] {
        rig.run_to(us(at));
        assert_eq!(rig.drive.buffered_bytes(), pages * PAGE_BYTES, "{at}");
    }
    rig.settle();
    assert_eq!(rig.now, us(1_025));
}

#[test]
fn a_flush_waits_for_units_that_have_not_left() {
    let mut rig = Rig::new(&draining(small(), 8));
    submit_write(&mut rig, 0, 2 * PAGE + 1);
    let flush = rig.submit(Op::Flush);
    rig.settle();
    // The third has one block: 25 us after 200.
    assert_eq!(completed_at(&rig, flush), us(200) + WRITE);
}

/// Units that have not left when their zone is reset never do.
#[test]
fn a_reset_takes_units_that_have_not_left() {
    let mut config = draining(small(), 8);
    config.reset.erase = EraseWhen::FirstZoneWrite;
    let mut rig = Rig::new(&config);
    submit_write(&mut rig, 0, 3 * PAGE);
    submit_write(&mut rig, 1, PAGE);
    rig.run_to(us(50));
    let op = rig.reset(0);
    rig.submit(op);
    rig.settle();
    assert_eq!(rig.drive.totals().host_program_bytes, 2 * PAGE_BYTES);
    // The page of zone 1 leaves first thing at 100, to the die of the other.
    assert_eq!(rig.now, us(25 + 2 * 700));
}

#[test]
fn a_pause_holds_units_back_and_they_leave_one_by_one_behind_it() {
    let mut rig = Rig::new(&bookkeeping(draining(small(), 8)));
    rig.precondition(0..1);
    let reset = rig.submit(rig.reset(0));
    submit_write(&mut rig, 1, 2 * PAGE);
    rig.run_to(us(1_600 + 725) - Nanos(1));
    assert_eq!(rig.drive.buffered_bytes(), 2 * PAGE_BYTES);
    rig.run_to(us(1_600 + 725));
    assert_eq!(rig.drive.buffered_bytes(), PAGE_BYTES);
    rig.run_to(us(1_700 + 725));
    assert_eq!(rig.drive.buffered_bytes(), 0);
    rig.wait(reset);
    assert_eq!(rig.now, us(3_300));
}

// ---- finish through the buffer ------------------------------------------

#[test]
fn a_finish_goes_through_the_buffer() {
    // Eight pages on each of four dies, of which the host had one or a part of one.
    for (written, dies) in [(PAGE, 8), (1, 8), (0, 8)] {
        for granularity in [16_384, 4_096, 20_480, 1 << 20] {
            let mut config = filling(small(), 8, None);
            if let FinishConfig::Fill {
                granularity_bytes, ..
            } = &mut config.finish
            {
                *granularity_bytes = granularity;
            }
            let mut rig = Rig::new(&config);
            if written > 0 {
                let op = rig.write(0, written);
                rig.time(op);
                while rig.next() {}
            }
            assert_eq!(rig.time(rig.finish(0)), us(25 + 700 * dies), "{written}");
            let host = u64::from(written.div_ceil(PAGE));
            assert_eq!(rig.drive.totals().host_program_bytes, host * PAGE_BYTES);
            assert_eq!(filled_pages(&rig), 32 - host);
            assert_eq!(rig.drive.buffered_bytes(), 0);
        }
    }
}

/// A buffer of one page: the host has its turn after the piece that waits.
#[test]
fn a_finish_competes_in_the_line() {
    let mut rig = Rig::new(&filling(small(), 1, None));
    let finish = rig.submit(rig.finish(0));
    rig.run_to(us(1));
    let write = submit_write(&mut rig, 1, PAGE);
    rig.settle();
    assert_eq!(completed_at(&rig, write), Nanos(2 * WRITE.0));
    assert_eq!(completed_at(&rig, finish), Nanos(33 * WRITE.0));
    assert_eq!(filled_pages(&rig), 32);
}

#[test]
fn a_reset_ends_a_finish_in_the_buffer() {
    for pause_ns in [Nanos::ZERO, us(1_000)] {
        let mut config = filling(small(), 1, None);
        config.reset.erase = EraseWhen::FirstZoneWrite;
        if let FinishConfig::Fill { pause_ns: of, .. } = &mut config.finish {
            *of = pause_ns;
        }
        let mut rig = Rig::new(&config);
        let finish = rig.submit(rig.finish(0));
        rig.run_to(us(10));
        let reset = rig.submit(rig.reset(0));
        rig.settle();
        assert_eq!(completed_at(&rig, finish), us(10));
        assert_eq!(completed_at(&rig, reset), us(10));
        assert_eq!(filled_pages(&rig), 1, "the page that was being programmed");
        // The zone can be used again.
        let op = rig.write(0, 32 * PAGE);
        assert_eq!(rig.exec(op).status, Status::SUCCESS);
        rig.settle();
        assert_eq!(rig.drive.buffered_bytes(), 0);
    }
}

#[test]
fn a_loss_of_power_ends_a_finish_in_the_buffer() {
    for is_protected in [false, true] {
        let mut config = filling(small(), 2, None);
        config.write_buffer.as_mut().unwrap().power_loss_protection = is_protected;
        let mut rig = Rig::new(&config);
        let op = rig.write(0, PAGE);
        rig.time(op);
        let finish = Command::new(rig.finish(0));
        rig.drive
            .submit(rig.now, QueueId(0), Tag(99), finish, None)
            .expect("the drive has power");
        rig.run_to(us(2_000));
        assert!(rig.drive.background_tasks() > 0);
        let loss = rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
        assert_eq!(loss.lost.len(), 1);
        assert_eq!(rig.drive.in_flight() + rig.drive.background_tasks(), 0);
        assert_eq!(rig.drive.buffered_bytes(), 0);
        rig.run_to(loss.ready_at);
        assert_eq!(rig.drive.zones().host_lbas(ZoneId(0)), u64::from(PAGE));
        let op = rig.reset(0);
        assert_eq!(rig.exec(op).status, Status::SUCCESS);
        let op = rig.write(0, 32 * PAGE);
        assert_eq!(rig.exec(op).status, Status::SUCCESS);
        rig.settle();
        assert_eq!(rig.drive.buffered_bytes(), 0);
    }
}

/// A page for each time that it may be held back, and all when the host is done.
#[test]
fn a_finish_in_the_buffer_yields_to_programs_of_the_host() {
    let mut rig = Rig::new(&filling(small(), 8, Some(us(50))));
    submit_write(&mut rig, 1, PAGE);
    let finish = rig.submit(rig.finish(0));
    for (at, pages) in [(0, 0), (49, 0), (50, 1), (99, 1), (100, 2), (150, 3)] {
        rig.run_to(us(at));
        assert_eq!(filled_pages(&rig), pages, "{at}");
    }
    rig.settle();
    assert_eq!(filled_pages(&rig), 32);
    // Page 0 is behind the host's on its die, and seven more behind that.
    assert_eq!(completed_at(&rig, finish), us(25 + 9 * 700));
}

/// A write of eight pages fills the buffer of two, and one of two pages of
/// another zone comes: in turns it does not wait for all of the first.
#[test]
fn large_writes_give_others_a_turn() {
    let ends = |turn_pages: Option<u64>, zone: u32| {
        let mut config = buffered(small(), 2);
        config.write_buffer.as_mut().unwrap().turn_bytes = turn_pages.map(|n| n * PAGE_BYTES);
        let mut rig = Rig::new(&config);
        let large = submit_write(&mut rig, 0, 8 * PAGE);
        let small = submit_write(&mut rig, zone, 2 * PAGE);
        rig.settle();
        assert_eq!(rig.drive.buffered_bytes(), 0);
        (completed_at(&rig, large), completed_at(&rig, small))
    };
    let (large, small) = ends(None, 1);
    assert!(small > large, "one after the other: {large}, {small}");
    let (large, small) = ends(Some(1), 1);
    assert!(small < large, "in turns: {large}, {small}");
    // Writes of one zone keep their order.
    assert_eq!(ends(Some(1), 0), ends(None, 0));
}

// ---- resets -------------------------------------------------------------

#[test]
fn bookkeeping_waits_for_programs_that_run_and_none_begins() {
    let mut config = bookkeeping(buffered(small(), 8));
    config.reset.bookkeeping.as_mut().unwrap().quiesce = true;
    let mut rig = Rig::new(&config);
    rig.precondition(0..1);
    submit_write(&mut rig, 1, PAGE);
    rig.run_to(us(10));
    let reset = rig.submit(rig.reset(0));
    rig.run_to(us(20));
    // It goes to another die, and would be done at 745.
    submit_write(&mut rig, 1, PAGE);
    for (at, pages) in [(724, 2), (725, 1), (2_325 + 724, 1), (2_325 + 725, 0)] {
        rig.run_to(us(at));
        assert_eq!(rig.drive.buffered_bytes(), pages * PAGE_BYTES, "{at}");
    }
    rig.settle();
    assert_eq!(completed_at(&rig, reset), us(725 + 3_300));

    // Nothing runs.
    rig.precondition(2..3);
    assert_eq!(rig.time(rig.reset(2)), us(3_300));
}

/// Behind cache registers: what runs and what is in a register ends first, what
/// waits for a register does not start. Pages 0 and 8 of a zone share a die.
#[test]
fn bookkeeping_does_not_wait_for_programs_without_a_register() {
    let with_programs = |pages: u32| {
        let mut config = bookkeeping(buffered(small(), 32));
        config.media.page_register = PageRegister::Cache;
        config.reset.bookkeeping.as_mut().unwrap().quiesce = true;
        let mut rig = Rig::new(&config);
        rig.precondition(0..1);
        submit_write(&mut rig, 1, pages * PAGE);
        rig.run_to(us(400));
        let reset = rig.submit(rig.reset(0));
        rig.settle();
        assert_eq!(rig.drive.buffered_bytes(), 0, "the rest follows");
        completed_at(&rig, reset) - us(3_300)
    };
    let (one, two) = (with_programs(1), with_programs(16));
    let (three, four) = (with_programs(24), with_programs(32));
    assert_eq!(one, us(725));
    assert!(two > us(2 * 700) && two < us(2 * 700 + 200), "{two}");
    assert_eq!((three, four), (two, two), "the third waits for the pause");
}

/// Of two zones with a block each: 125 us, of which 12.5 without drain.
#[test]
fn a_second_reset_has_its_turn_behind_the_first() {
    let mut config = bookkeeping(buffered(small(), 8));
    config.reset.bookkeeping.as_mut().unwrap().quiesce = true;
    let mut rig = Rig::new(&config);
    submit_write(&mut rig, 0, 1);
    submit_write(&mut rig, 2, 1);
    submit_write(&mut rig, 1, PAGE);
    rig.run_to(us(10));
    let first = rig.submit(rig.reset(0));
    let second = rig.submit(rig.reset(2));
    submit_write(&mut rig, 3, PAGE);
    rig.settle();
    assert_eq!(completed_at(&rig, first), us(725 + 125));
    // The page of zone 3 started behind the pause, at 737.5.
    assert_eq!(completed_at(&rig, second), Nanos(737_500) + WRITE + us(125));
}

#[test]
fn an_open_zone_costs_more_to_reset() {
    let mut config = bookkeeping(buffered(small(), 8));
    config.finish = FinishConfig::Metadata;
    config.reset.bookkeeping.as_mut().unwrap().open_zone_ns = us(500);
    let mut rig = Rig::new(&config);
    for (blocks, is_finished, expected) in [
        // An empty zone stays as it is.
        (0, false, Nanos::ZERO),
        // In the buffer: nothing has been programmed.
        (1, false, us(125)),
        (PAGE, false, us(700)),
        (PAGE, true, us(200)),
        (32 * PAGE, false, us(3_300)),
    ] {
        if blocks > 0 {
            let op = rig.write(0, blocks);
            rig.time(op);
        }
        while rig.next() {}
        if is_finished {
            rig.time(rig.finish(0));
        }
        assert_eq!(rig.time(rig.reset(0)), expected, "{blocks} {is_finished}");
        rig.settle();
    }
}

// ---- the front end ------------------------------------------------------

fn completions() -> FrontEndConfig {
    FrontEndConfig {
        cores: 1,
        read_ns: us(2),
        write_ns: us(3),
        append_ns: us(10),
        management_ns: us(100),
        costs: CommandCosts {
            read_completion_ns: us(4),
            write_completion_ns: us(5),
            append_completion_ns: us(7),
            ..CommandCosts::default()
        },
        ..NO_FRONT_END
    }
}

#[test]
fn a_completion_costs_the_core() {
    let mut config = small();
    config.front_end = completions();
    let mut rig = Rig::new(&config);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), us(3) + WRITE + us(5));
    assert_eq!(rig.time(rig.append(0, PAGE)), us(10) + WRITE + us(7));
    assert_eq!(rig.time(rig.read(0, 0, PAGE)), us(2) + READ + us(4));
    assert_eq!(rig.time(rig.read(1, 0, PAGE)), us(2 + 4), "unwritten");
    assert_eq!(rig.time(Op::Flush), us(100));
    // What is refused has nothing to complete.
    let start = rig.now;
    let bad = rig.exec(rig.write_at(0, 5, 1));
    assert_eq!(bad.status, Status::ZONE_INVALID_WRITE);
    assert_eq!(rig.now, start + us(3));
}

/// The core is one: completions wait for commands that came meanwhile.
#[test]
fn completions_and_commands_share_the_core() {
    let mut config = small();
    config.front_end = completions();
    let mut rig = Rig::new(&config);
    let tags: Vec<usize> = (0..2).map(|_| rig.submit(rig.read(0, 0, 1))).collect();
    rig.settle();
    // Through at 2 and 4; the core completes them from 4 and 8 on.
    assert_eq!(completed_at(&rig, tags[0]), us(8));
    assert_eq!(completed_at(&rig, tags[1]), us(12));

    let mut config = buffered(config, 8);
    config.front_end.link_bytes_per_s = Some(1_000_000_000);
    let mut rig = Rig::new(&config);
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), us(3) + Nanos(16_384) + us(5));
    // Data goes over the link when the core is done.
    assert_eq!(rig.time(rig.read(0, 0, PAGE)), us(2 + 4) + Nanos(16_384));
}

// ---- variation ----------------------------------------------------------

/// Times of so many commands, one after the other.
fn times(config: &DriveConfig, count: u32, op: impl Fn(&Rig) -> Op) -> Vec<u64> {
    let mut rig = Rig::new(config);
    let one = |_| {
        let op = op(&rig);
        rig.time(op).0
    };
    (0..count).map(one).collect()
}

fn check_spread(times: &[u64], (least, most): (u64, u64)) {
    let min = times.iter().min().expect("there are times");
    let max = times.iter().max().expect("there are times");
    assert!(*min >= least && *max <= most, "{min} to {max}");
    // Evenly distributed: some in each outer tenth, and the mean in the middle.
    let tenth = (most - least) / 10;
    assert!(
        *min < least + tenth && *max > most - tenth,
        "{min} to {max}"
    );
    let mean = times.iter().sum::<u64>() / times.len() as u64;
    let middle = u64::midpoint(least, most);
    assert!(mean.abs_diff(middle) < tenth, "{mean}, not {middle}");
}

#[test]
fn programs_vary_by_their_share() {
    for (ppm, width) in [(100_000, 70_000), (1_000_000, 700_000), (0, 0)] {
        let mut config = small();
        config.zones.capacity_lbas = 64 * 16 * u64::from(PAGE);
        config.zones.size_lbas = config.zones.capacity_lbas;
        config.geometry.pages_per_block = 256;
        config.media.details.program_variation_ppm = ppm;
        let write = |rig: &Rig| rig.write(0, PAGE);
        let all = times(&config, 400, write);
        assert_eq!(all, times(&config, 400, write), "the same on every run");
        if ppm == 0 {
            assert!(all.iter().all(|time| *time == WRITE.0));
        } else {
            check_spread(&all, (WRITE.0 - width, WRITE.0 + width));
        }
    }
}

#[test]
fn core_times_vary_by_their_share() {
    for (ppm, least, most) in [(500_000, 3_000, 9_000), (1_000_000, 0, 12_000)] {
        let mut config = small();
        config.front_end = completions();
        config.front_end.costs.variation_ppm = ppm;
        // The sum of two times is not evenly distributed.
        config.front_end.costs.read_completion_ns = Nanos::ZERO;
        config.front_end.read_ns = us(6);
        let read = |rig: &Rig| rig.read(0, 0, 1);
        let all = times(&config, 400, read);
        assert_eq!(all, times(&config, 400, read), "the same on every run");
        check_spread(&all, (least, most));
    }
}

// ---- stagger ------------------------------------------------------------

fn staggered(planes: u32) -> DriveConfig {
    let mut config = small();
    config.zones.stagger = planes;
    config
}

#[test]
fn zones_that_are_written_side_by_side_begin_on_different_dies() {
    for (stagger, second) in [(0, us(25 + 2 * 700)), (1, WRITE), (3, WRITE)] {
        let mut config = staggered(stagger);
        config.media.arbitration = ChannelArbitration::Ready;
        let mut rig = Rig::new(&config);
        let tags: Vec<usize> = (0..2)
            .map(|zone| submit_write(&mut rig, zone, PAGE))
            .collect();
        rig.settle();
        assert_eq!(completed_at(&rig, tags[0]), WRITE);
        assert_eq!(completed_at(&rig, tags[1]), second, "stagger {stagger}");
        for zone in 0..6 {
            let layout = rig.drive.flash().layout();
            assert_eq!(layout.stripe(zone)[0], zone * stagger % 4);
        }
    }
}

#[test]
fn data_survives_a_stagger() {
    for planes in [1, 2] {
        let mut config = staggered(planes);
        if planes == 2 {
            config.geometry.planes = 2;
            config.media.planes = PlaneMode::MultiPlane;
            config.zones.stripe = StripeOrder::PlaneFirst;
        }
        config.data = DataStore::Memory;
        let mut rig = Rig::new(&config);
        for zone in 0..6_u8 {
            let mut data = Buf::zeroed(32 * PAGE_BYTES as usize);
            for (block, chunk) in (0..).zip(data.chunks_mut(4_096)) {
                chunk.fill(zone ^ block);
            }
            let op = rig.write(zone.into(), 32 * PAGE);
            assert_eq!(rig.exec_with(op, Some(data)).status, Status::SUCCESS);
        }
        for zone in 0..6_u8 {
            let read = rig.read(zone.into(), 0, 32 * PAGE);
            let done = rig.exec_with(read, Some(Buf::zeroed(32 * PAGE_BYTES as usize)));
            let data = done.data.expect("a buffer comes back");
            for (block, chunk) in (0..).zip(data.chunks(4_096)) {
                assert!(chunk.iter().all(|byte| *byte == zone ^ block));
            }
        }
        // A multi-plane program takes all planes of a die, as without a stagger.
        let programs: u64 = rig.busy().1.iter().sum();
        let reads = 6 * 32 * 60_000 / u64::from(planes);
        assert_eq!(programs, 6 * 32 * 700_000 / u64::from(planes) + reads);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// A stagger turns the stripe of each zone of a group, and blocks stay its own.
    #[test]
    fn a_stagger_turns_stripes(config in drives(), draw in any::<u32>()) {
        let mut config = config;
        let plain = Layout::new(&config);
        config.zones.stagger = draw % plain.width();
        let layout = Layout::new(&config);
        let mut blocks = std::collections::BTreeSet::new();
        for physical in 0..config.zones.count {
            let turns = physical / plain.groups() * config.zones.stagger % plain.width();
            let mut turned = plain.stripe(physical).to_vec();
            turned.rotate_left(turns as usize);
            prop_assert_eq!(layout.stripe(physical), &turned[..]);
            for block in 0..layout.zone_blocks() {
                prop_assert!(blocks.insert(layout.block_index(physical, block)));
            }
        }
    }
}
