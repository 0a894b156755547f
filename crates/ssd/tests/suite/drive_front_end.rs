//! Firmware cores and the host link: what commands pass besides the flash.

use crate::drive_support;
use crate::drive_support::random::NO_FRONT_END;
use crate::drive_support::{ERASE, PAGE, READ, Rig, WRITE, reset, small, us};
use zonelab_device::{Command, Lba, NamespaceId, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{
    CommandCosts, DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig, FrontEndConfig,
    Placement, WriteBufferConfig,
};
use zonelab_ssd::flash::BlockState;

/// `cores` cores with a cost of its own for each kind of command.
fn costs(cores: u32) -> FrontEndConfig {
    FrontEndConfig {
        cores,
        read_ns: us(2),
        write_ns: us(3),
        append_ns: us(10),
        management_ns: us(100),
        ..NO_FRONT_END
    }
}

fn with(front_end: FrontEndConfig) -> DriveConfig {
    DriveConfig {
        front_end,
        ..small()
    }
}

/// One byte per nanosecond: a page of 16 KiB takes 16,384 ns.
fn link() -> FrontEndConfig {
    FrontEndConfig {
        link_bytes_per_s: Some(1_000_000_000),
        ..NO_FRONT_END
    }
}

const PAGE_ON_LINK: Nanos = Nanos(16_384);

#[test]
fn each_kind_of_command_has_its_cost() {
    let mut rig = Rig::new(&with(costs(1)));
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), us(3) + WRITE);
    assert_eq!(rig.time(rig.append(0, PAGE)), us(10) + WRITE);
    assert_eq!(rig.time(rig.read(0, 0, PAGE)), us(2) + READ);
    assert_eq!(rig.time(rig.read(1, 0, PAGE)), us(2), "unwritten");
    assert_eq!(rig.time(Op::Flush), us(100));
    assert_eq!(rig.time(rig.reset(0)), us(100) + ERASE);
    let report = rig.now;
    rig.report();
    assert_eq!(rig.now, report + us(100));
}

#[test]
fn cores_serve_in_order_of_arrival() {
    for cores in 1..4_u32 {
        let mut rig = Rig::new(&with(costs(cores)));
        // Nothing is written, so this is front-end time alone.
        let tags: Vec<usize> = (0..10).map(|_| rig.submit(rig.read(0, 0, 1))).collect();
        rig.settle();
        for (index, tag) in (0..).zip(tags) {
            assert_eq!(rig.wait(tag).at.0, (index / u64::from(cores) + 1) * us(2).0);
        }
    }
}

#[test]
fn cores_bound_the_rate_of_commands() {
    let mut rig = Rig::new(&with(costs(2)));
    for _ in 0..1_000 {
        rig.submit(rig.read(0, 0, 1));
    }
    rig.settle();
    assert_eq!(rig.now, us(1_000), "two commands every 2 us");
}

#[test]
fn errors_cost_the_core_as_well() {
    let mut rig = Rig::new(&with(costs(1)));
    let start = rig.now;
    let bad = rig.submit(rig.write_at(0, 5, 1));
    let foreign = Command::on(NamespaceId(2), Op::Flush);
    let foreign = rig.submit_command(foreign, None);
    let op = rig.write(0, PAGE);
    let good = rig.submit(op);
    rig.settle();
    assert_eq!(rig.wait(bad).status, Status::ZONE_INVALID_WRITE);
    assert_eq!(rig.wait(bad).at, start + us(3));
    assert_eq!(
        rig.wait(foreign).status,
        Status::INVALID_NAMESPACE_OR_FORMAT
    );
    assert_eq!(rig.wait(foreign).at, start + us(103));
    assert_eq!(rig.wait(good).at, start + us(106) + WRITE);
}

/// What a command may do is decided when it arrives, in the order of arrival,
/// however long cores take for each.
#[test]
fn decisions_are_made_in_order_of_arrival() {
    let mut rig = Rig::new(&with(costs(4)));
    let append = rig.submit(rig.append(0, PAGE));
    let write = rig.submit(rig.write_at(0, PAGE, PAGE));
    let late = rig.submit(rig.write_at(0, 0, PAGE));
    let last = rig.submit(rig.append(0, 1));
    rig.settle();
    assert_eq!(rig.wait(append).status, Status::SUCCESS);
    assert_eq!(rig.wait(append).result, 0);
    assert_eq!(rig.wait(write).status, Status::SUCCESS);
    assert_eq!(rig.wait(late).status, Status::ZONE_INVALID_WRITE);
    assert_eq!(rig.wait(last).result, u64::from(2 * PAGE));
    // The write is the cheaper one, and waits for the append all the same.
    let (written, appended) = (rig.wait(write).at, rig.wait(append).at);
    assert!(written >= appended);
}

#[test]
fn written_data_comes_over_the_link_before_the_flash() {
    let mut rig = Rig::new(&with(link()));
    let op = rig.write(0, PAGE);
    assert_eq!(rig.time(op), PAGE_ON_LINK + WRITE);
    let start = rig.now;
    let tags: Vec<usize> = (0..4)
        .map(|_| {
            let op = rig.write(0, PAGE);
            rig.submit(op)
        })
        .collect();
    rig.settle();
    for (index, tag) in (1..).zip(tags) {
        assert_eq!(
            rig.wait(tag).at.0,
            start.0 + index * PAGE_ON_LINK.0 + WRITE.0
        );
    }
}

#[test]
fn read_data_goes_over_the_link_after_the_flash() {
    let mut rig = Rig::new(&with(link()));
    rig.precondition(0..1);
    assert_eq!(rig.time(rig.read(0, 0, PAGE)), READ + PAGE_ON_LINK);
    assert_eq!(rig.time(rig.read(0, 0, 1)), READ + Nanos(4_096));
    // Four planes are ready at the same time; the link takes one after the other.
    let start = rig.now;
    for page in 0..4 {
        rig.submit(rig.read(0, page * PAGE, PAGE));
    }
    rig.settle();
    assert_eq!(rig.now.0, start.0 + READ.0 + 4 * PAGE_ON_LINK.0);
}

#[test]
fn the_directions_of_the_link_are_independent() {
    let mut rig = Rig::new(&with(link()));
    rig.precondition(0..1);
    let write = rig.submit(rig.write_at(1, 0, PAGE));
    let read = rig.submit(rig.read(0, PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(write).at, PAGE_ON_LINK + WRITE);
    assert_eq!(rig.wait(read).at, READ + PAGE_ON_LINK);
}

#[test]
fn the_link_bounds_throughput() {
    let mut rig = Rig::new(&with(FrontEndConfig {
        link_bytes_per_s: Some(10_000_000),
        ..NO_FRONT_END
    }));
    rig.precondition(0..1);
    // 512 KiB at 10 MB/s: far slower than the flash.
    for page in 0..32 {
        rig.submit(rig.read(0, page * PAGE, PAGE));
    }
    rig.settle();
    let floor = 32 * 1_638_400;
    assert!(
        (floor..floor + 2 * READ.0).contains(&rig.now.0),
        "{}",
        rig.now
    );
}

/// Zeros are data, too: only the flash is spared.
#[test]
fn reads_of_unwritten_blocks_cross_the_link() {
    let mut rig = Rig::new(&with(link()));
    assert_eq!(rig.time(rig.read(0, 0, PAGE)), PAGE_ON_LINK);
    assert_eq!(rig.busy(), Default::default());
}

/// A command is checked before its data is fetched.
#[test]
fn data_of_refused_writes_does_not_cross_the_link() {
    let mut rig = Rig::new(&with(link()));
    let bad = rig.submit(rig.write_at(0, 64, 16 * PAGE));
    let good = rig.submit(rig.write_at(0, 0, PAGE));
    rig.settle();
    assert_eq!(rig.wait(bad).status, Status::ZONE_INVALID_WRITE);
    assert_eq!(rig.wait(bad).at, Nanos::ZERO);
    assert_eq!(rig.wait(good).at, PAGE_ON_LINK + WRITE);
}

/// Sixteen tebibytes on a slow link, often: time must not run out of bits.
#[test]
fn absurd_writes_on_a_slow_link_are_refused() {
    let mut rig = Rig::new(&with(FrontEndConfig {
        link_bytes_per_s: Some(1_000_000),
        ..NO_FRONT_END
    }));
    for _ in 0..2_000 {
        let op = Op::Write {
            slba: Lba(0),
            nlb: u32::MAX,
        };
        rig.submit(op);
    }
    rig.settle();
    let refused = |done: &drive_support::Done| done.status == Status::LBA_OUT_OF_RANGE;
    assert!(rig.done.iter().flatten().all(refused));
}

/// A drive with a write buffer, so that times are those of the front end alone.
fn buffered(front_end: FrontEndConfig) -> DriveConfig {
    let mut config = with(front_end);
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 1 << 20,
        power_loss_protection: true,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
        release: zonelab_ssd::config::BufferRelease::Program,
    });
    config
}

#[test]
fn costs_depend_on_size_and_on_parts_of_units() {
    let mut front_end = costs(1);
    front_end.costs = CommandCosts {
        read_per_kib_ns: Nanos(100),
        write_per_kib_ns: Nanos(200),
        append_per_kib_ns: Nanos(300),
        unit_bytes: Some(8_192),
        part_of_unit_ns: us(1),
        // Blocks have 4 KiB here.
        small_blocks_ns: us(50),
        ..CommandCosts::default()
    };
    let mut rig = Rig::new(&buffered(front_end));
    for (nlb, write_ns, append_ns) in [
        (1, 3_000 + 800 + 1_000, 10_000 + 1_200 + 1_000),
        (2, 3_000 + 1_600, 10_000 + 2_400),
        (3, 3_000 + 2_400 + 1_000, 10_000 + 3_600 + 1_000),
    ] {
        let op = rig.write(0, nlb);
        assert_eq!(rig.time(op), Nanos(write_ns), "write of {nlb} blocks");
        let op = rig.append(0, nlb);
        assert_eq!(rig.time(op), Nanos(append_ns), "append of {nlb} blocks");
    }
    assert_eq!(rig.time(rig.read(1, 0, 3)), Nanos(2_000 + 1_200));
    // The core is busy with it: the second of two comes out behind the first.
    rig.settle();
    let first = rig.submit(rig.read(1, 0, 3));
    let second = rig.submit(rig.read(1, 0, 3));
    rig.settle();
    let latency = |tag: usize| rig.done[tag].as_ref().map(|done| done.latency());
    assert_eq!(latency(first), Some(Nanos(3_200)));
    assert_eq!(latency(second), Some(Nanos(6_400)));
    // A command that is refused does not cost its size.
    let refused = rig.exec(rig.write_at(0, 100, 3));
    assert_eq!(refused.latency(), us(3));
}

#[test]
fn small_blocks_cost_more() {
    let mut front_end = costs(1);
    front_end.costs.small_blocks_ns = us(9);
    let mut config = buffered(front_end);
    config.lba_bytes = 512;
    let mut rig = Rig::new(&config);
    let op = rig.write(0, 8);
    assert_eq!(rig.time(op), us(3 + 9));
    let op = rig.append(0, 8);
    assert_eq!(rig.time(op), us(10 + 9));
    assert_eq!(rig.time(rig.read(1, 0, 8)), us(2));
}

#[test]
fn opening_and_closing_have_costs_of_their_own() {
    let mut front_end = costs(1);
    front_end.costs.open_ns = Some(us(7));
    front_end.costs.close_ns = Some(us(8));
    front_end.costs.implicit_open_ns = us(5);
    let mut rig = Rig::new(&buffered(front_end));
    assert_eq!(rig.time(rig.send(0, ZoneSendAction::OPEN)), us(7));
    let op = rig.write(0, 1);
    assert_eq!(rig.time(op), us(3), "it was open");
    assert_eq!(rig.time(rig.send(0, ZoneSendAction::CLOSE)), us(8));
    let op = rig.write(0, 1);
    assert_eq!(rig.time(op), us(3 + 5));
    let op = rig.append(1, 1);
    assert_eq!(rig.time(op), us(10 + 5));
    let op = rig.append(1, 1);
    assert_eq!(rig.time(op), us(10));
    assert_eq!(rig.time(rig.send(2, ZoneSendAction::RESET)), us(100));
}

/// Commands on the way do not keep each other waiting.
#[test]
fn latency_occupies_nothing() {
    let mut front_end = costs(1);
    front_end.costs.write_latency_ns = us(6);
    front_end.costs.append_latency_ns = us(7);
    front_end.costs.management_latency_ns = us(8);
    front_end.costs.read_latency_ns = us(9);
    let mut rig = Rig::new(&buffered(front_end));
    let writes = [0, 1].map(|zone| rig.submit(rig.write(zone, 1)));
    rig.settle();
    let at = |tag: usize| rig.done[tag].as_ref().map(|done| done.at);
    assert_eq!(writes.map(at), [Some(us(9)), Some(us(12))]);
    let op = rig.append(0, 1);
    assert_eq!(rig.time(op), us(17));
    assert_eq!(rig.time(rig.read(3, 0, 1)), us(11));
    assert_eq!(rig.time(Op::Flush), us(108));

    // Without cores too.
    let mut front_end = NO_FRONT_END;
    front_end.costs.write_latency_ns = us(6);
    let mut rig = Rig::new(&buffered(front_end));
    let op = rig.write(0, 1);
    assert_eq!(rig.time(op), us(6));
}

#[test]
fn transfers_have_a_largest_size() {
    let mut rig = Rig::new(&with(FrontEndConfig {
        max_transfer_bytes: Some(64 << 10),
        max_append_bytes: Some(16 << 10),
        ..NO_FRONT_END
    }));
    let info = rig.drive.info();
    assert_eq!(
        (info.max_transfer_bytes, info.max_append_bytes),
        (64 << 10, 16 << 10)
    );
    for (op, status) in [
        (rig.write_at(0, 0, 17), Status::INVALID_FIELD),
        (rig.write_at(0, 0, 16), Status::SUCCESS),
        (rig.read(0, 0, 17), Status::INVALID_FIELD),
        (rig.read(0, 0, 16), Status::SUCCESS),
        (rig.append(0, 5), Status::INVALID_FIELD),
        (rig.append(0, 4), Status::SUCCESS),
        (rig.write_at(0, 20, 0), Status::INVALID_FIELD),
        (rig.append(0, 0), Status::INVALID_FIELD),
        (rig.read(0, 0, 0), Status::INVALID_FIELD),
    ] {
        assert_eq!(rig.exec(op).status, status, "{op:?}");
    }
    assert_eq!(rig.drive.zones().written_lbas(ZoneId(0)), 20);
}

/// A write that is still on the link when its zone is reset has nothing to write any
/// more: an erasure first and a program after it would leave a page on a block that
/// counts as erased. It completes, and nothing is programmed.
#[test]
fn a_write_that_a_reset_overtakes_is_void() {
    let mut rig = Rig::new(&with(FrontEndConfig {
        link_bytes_per_s: Some(1_000_000),
        ..NO_FRONT_END
    }));
    // The page is on the link for 16 ms.
    let op = rig.write(0, PAGE);
    let write = rig.submit(op);
    let reset = rig.submit(rig.reset(0));
    rig.settle();
    assert_eq!(rig.wait(write).at.0, 16_384_000);
    assert!(rig.wait(reset).status.is_success());
    let flash = rig.drive.flash();
    assert_eq!(flash.totals(), (0, 0), "blocks erased, bytes programmed");
    assert_eq!(flash.zone_state(0), (0, 0, 0));
    assert!((0..flash.blocks().len()).all(|of| flash.blocks().state(of) == BlockState::Erased));
}

/// Nor is a synchronous reset done before its erasures, whoever issued them.
#[test]
fn a_write_that_overtakes_a_reset_does_not_shorten_it() {
    for preempt_ns in [None, Some(us(10_000))] {
        let mut config = with(costs(2));
        config.reset = reset(EraseWhen::Synchronous, EraseExtent::Full);
        config.reset.preempt_ns = preempt_ns;
        let mut rig = Rig::new(&config);
        rig.precondition(0..1);
        let reset = rig.submit(rig.reset(0));
        let op = rig.write(0, PAGE);
        let write = rig.submit(op);
        rig.settle();
        assert!(
            rig.wait(reset).at.0 >= 2 * ERASE.0,
            "{}",
            rig.wait(reset).at
        );
        assert!(rig.wait(write).at.0 >= 2 * ERASE.0 + us(700).0);
        assert_eq!(rig.drive.totals().erased_blocks, 8);
    }
}

/// Device writes of a finish take the core, one after the other, as long as writes of the host
/// do: a command behind one of them waits for its end. Without the key it does not.
#[test]
fn a_finish_takes_a_core_as_writes_do() {
    let mut front_end = costs(1);
    front_end.costs.write_per_kib_ns = Nanos(200);
    front_end.costs.write_completion_ns = us(1);
    front_end.costs.unit_bytes = Some(8_192);
    front_end.costs.part_of_unit_ns = us(1);
    // A block at a time: 3 us, 4 KiB, a completion, and a part of a unit.
    let each = us(3) + Nanos(800) + us(1) + us(1);
    let read_alone = us(2);
    for takes_core in [false, true] {
        let mut config = buffered(front_end);
        config.finish = FinishConfig::Fill {
            granularity_bytes: config.lba_bytes,
            pause_ns: Nanos::ZERO,
            yield_ns: None,
            buffered: true,
            takes_core,
            extent: FillExtent::Zone,
        };
        let mut rig = Rig::new(&config);
        let op = rig.write(0, 1);
        rig.exec(op);
        let begin = rig.now;
        rig.submit(rig.send(0, ZoneSendAction::FINISH));
        // The finish itself has left the core, and its second device write takes it.
        let first = begin + us(100);
        rig.run_to(first + each + Nanos(500));
        let read = rig.submit(rig.read(1, 0, 1));
        let latency = rig.wait(read).latency();
        let waits = match takes_core {
            true => each - Nanos(500),
            false => Nanos::ZERO,
        };
        assert_eq!(latency, waits + read_alone, "{takes_core}");
    }
}
