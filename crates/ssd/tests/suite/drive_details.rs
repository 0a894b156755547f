//! Details of closely modelled drives on examples that are computed by hand.

mod costs;
mod stagger;

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
        takes_core: false,
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
    // Registers have no number: a page is in one when its program begins.
    assert_eq!(times(&transfer), [0, 0, 25, 725, 1_425]);
    // One page ahead: the third gets to the die when the second is programmed.
    transfer.media.page_register = PageRegister::Cache;
    assert_eq!(times(&transfer), [0, 0, 25, 50, 750]);
}

#[test]
fn room_is_free_piece_by_piece() {
    for (unit, at) in [(None, 25_000), (Some(8_192), 12_500), (Some(4_096), 6_250)] {
        let mut config = releasing(narrow(), 2);
        config.media.page_register = PageRegister::Cache;
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
