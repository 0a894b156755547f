//! What resets and completions cost the firmware, and times that vary.

use super::*;

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
