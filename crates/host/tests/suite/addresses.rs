//! Which operations a workload issues, in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use zonelab_device::{Lba, Nanos, Op};
use zonelab_host::Rng;
use zonelab_host::stats::OpKind;
use zonelab_host::workload::directed::{DirectedWork, Direction, Sizes};
use zonelab_host::workload::record::DirectionRecording;
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::workload::{
    Ending, Fill, JobSpec, ReadWork, Shared, Stop, Syncs, Work, WorkloadJob, WriteWork, slice_of,
};
use zonelab_nvme::zns::ZoneSendAction;

use super::support::{
    CAPACITY, NO_FILL, Recorder, ZONE, job, large_info, record, spec, tiny_info, writes,
};

const US: fn(u64) -> Nanos = Nanos::from_us;

fn recorder() -> Recorder {
    Recorder::steady(tiny_info(), US(10))
}

/// The operations of a specification on the tiny drive's zones.
fn ops_of(spec: JobSpec) -> Vec<Op> {
    let mut queue = recorder();
    record(spec, &mut queue);
    queue.ops()
}

fn write(zone: u64, offset: u64, nlb: u32) -> Op {
    Op::Write {
        slba: Lba(zone * ZONE + offset),
        nlb,
    }
}

fn reset(zone: u64) -> Op {
    let action = ZoneSendAction::RESET;
    Op::ZoneSend {
        slba: Lba(zone * ZONE),
        action,
        select_all: false,
    }
}

fn finish(zone: u64) -> Op {
    let action = ZoneSendAction::FINISH;
    Op::ZoneSend {
        slba: Lba(zone * ZONE),
        action,
        select_all: false,
    }
}

/// One pass over a zone in blocks of 16: the last one is shorter.
fn pass(zone: u64) -> [Op; 4] {
    [
        write(zone, 0, 16),
        write(zone, 16, 16),
        write(zone, 32, 16),
        write(zone, 48, 12),
    ]
}

#[test]
fn writes_go_through_the_zones_up_to_their_capacity() {
    let ops = ops_of(spec(Work::Write(writes(2..4, 16))));
    assert_eq!(ops, [pass(2), pass(3)].concat());
}

#[test]
fn a_block_larger_than_a_zone_is_cut() {
    let ops = ops_of(spec(Work::Write(writes(0..2, 1_000))));
    assert_eq!(ops, [write(0, 0, 60), write(1, 0, 60)]);
}

#[test]
fn appends_name_the_zone_and_keep_their_sizes() {
    let work = WriteWork {
        append: true,
        ..writes(1..2, 16)
    };
    let ops = ops_of(JobSpec {
        queue_depth: 3,
        ..spec(Work::Write(work))
    });
    let append = |nlb| Op::Append {
        zslba: Lba(ZONE),
        nlb,
    };
    assert_eq!(ops, [append(16), append(16), append(16), append(12)]);
}

#[test]
fn a_repeated_range_is_reset_zone_by_zone() {
    let work = WriteWork {
        repeat: true,
        ..writes(5..7, 16)
    };
    let stop = Stop {
        operations: Some(12),
        ..Stop::default()
    };
    let ops = ops_of(JobSpec {
        stop,
        ..spec(Work::Write(work))
    });
    let mut expected = [pass(5), pass(6)].concat();
    expected.push(reset(5));
    expected.extend(pass(5));
    // Resets prepare and do not count: 8 writes, then 4.
    assert_eq!(ops, expected);
}

#[test]
fn zones_that_are_not_empty_are_reset_first() {
    let work = WriteWork {
        reset_first: true,
        ..writes(0..2, 16)
    };
    let ops = ops_of(spec(Work::Write(work)));
    let expected: Vec<Op> = [0, 1]
        .iter()
        .flat_map(|&z| [vec![reset(z)], pass(z).to_vec()].concat())
        .collect();
    assert_eq!(ops, expected);
}

/// Nothing is written to a zone before its reset is done, nor reset while
/// writes are on their way, however deep the queue.
#[test]
fn a_deep_queue_waits_for_resets() {
    let work = WriteWork {
        repeat: true,
        ..writes(0..2, 16)
    };
    let stop = Stop {
        operations: Some(64),
        ..Stop::default()
    };
    let mut queue = recorder();
    record(
        JobSpec {
            queue_depth: 8,
            stop,
            ..spec(Work::Write(work))
        },
        &mut queue,
    );
    assert!(queue.deepest <= 4, "a zone has four writes");
    let resets: Vec<_> = queue
        .log
        .iter()
        .enumerate()
        .filter(|(_, (_, op))| matches!(op, Op::ZoneSend { .. }))
        .collect();
    assert!(resets.len() >= 10);
    for (index, (at, _)) in resets {
        let (before, _) = queue.log[index - 1];
        assert!(*at >= before + US(10), "reset at {at}, write at {before}");
        if let Some((after, _)) = queue.log.get(index + 1) {
            assert!(*after >= *at + US(10), "write at {after}, reset at {at}");
        }
    }
}

/// What writes to several zones at once must keep: each zone from its start to
/// its capacity, without gaps. Gives the zones in order of their first write.
fn assert_whole(ops: &[Op], zones: Range<u64>) -> Vec<u64> {
    let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
    let mut order = Vec::new();
    for op in ops {
        let Op::Write {
            slba: Lba(slba),
            nlb,
        } = *op
        else {
            panic!("{op:?} is no write")
        };
        let pointer = pointers.entry(slba / ZONE).or_insert_with(|| {
            order.push(slba / ZONE);
            0
        });
        assert_eq!(slba % ZONE, *pointer, "not at the write pointer");
        *pointer += u64::from(nlb);
    }
    let written: Vec<_> = pointers.into_iter().collect();
    let expected: Vec<_> = zones.map(|zone| (zone, CAPACITY)).collect();
    assert_eq!(written, expected);
    order
}

#[test]
fn open_zones_are_written_side_by_side_at_random() {
    let work = WriteWork {
        open_zones: 3,
        ..writes(0..8, 2)
    };
    let ops = ops_of(spec(Work::Write(work)));
    let order = assert_whole(&ops, 0..8);
    assert_eq!(
        order[..3].iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([&0, &1, &2])
    );
    let zones: Vec<u64> = ops
        .iter()
        .map(|op| {
            if let Op::Write { slba, .. } = op {
                slba.0 / ZONE
            } else {
                0
            }
        })
        .collect();
    // All three in turn from the start: of 30 draws each gets about ten.
    for zone in 0..3 {
        let share = zones[..30].iter().filter(|z| **z == zone).count();
        assert!(
            (4..=18).contains(&share),
            "zone {zone} has {share} of the first 30"
        );
    }
    // Never more than three that have begun and are not full.
    let mut left = BTreeMap::new();
    for zone in zones {
        *left.entry(zone).or_insert(CAPACITY / 2) -= 1;
        assert!(left.values().filter(|left| **left > 0).count() <= 3);
    }
}

#[test]
fn random_choices_follow_the_seed() {
    let of_seed = |seed| {
        let mut queue = recorder();
        let work = WriteWork {
            open_zones: 4,
            ..writes(0..8, 2)
        };
        let mut job = job(spec(Work::Write(work)), &tiny_info(), seed);
        queue.run(&mut job, 10_000).expect("it ends");
        queue.ops()
    };
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn more_open_zones_than_zones_are_as_many_as_there_are() {
    let work = WriteWork {
        open_zones: 100,
        ..writes(6..8, 16)
    };
    assert_whole(&ops_of(spec(Work::Write(work))), 6..8);
}

#[test]
fn reads_ascend_and_start_over() {
    // Three whole blocks of 16 fit into 60.
    let read = ReadWork {
        zones: 2..4,
        block_lbas: 16,
        random: false,
    };
    let stop = Stop {
        operations: Some(8),
        ..Stop::default()
    };
    let ops = ops_of(JobSpec {
        stop,
        ..spec(Work::Read(read))
    });
    let starts = [128, 144, 160, 192, 208, 224, 128, 144];
    assert_eq!(
        ops,
        starts.map(|slba| Op::Read {
            slba: Lba(slba),
            nlb: 16
        })
    );
}

#[test]
fn random_reads_are_aligned_and_uniform() {
    let read = ReadWork {
        zones: 2..4,
        block_lbas: 16,
        random: true,
    };
    let stop = Stop {
        operations: Some(6_000),
        ..Stop::default()
    };
    let ops = ops_of(JobSpec {
        stop,
        queue_depth: 5,
        ..spec(Work::Read(read))
    });
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for op in &ops {
        let Op::Read { slba, nlb: 16 } = op else {
            panic!("{op:?}")
        };
        *counts.entry(slba.0).or_default() += 1;
    }
    let blocks: Vec<u64> = counts.keys().copied().collect();
    assert_eq!(blocks, [128, 144, 160, 192, 208, 224]);
    // 1,000 each, with a standard deviation of 29.
    assert!(
        counts.values().all(|count| (880..1_120).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn finishes_come_after_their_fill() {
    let fill = Fill {
        lbas: 10,
        block_lbas: 4,
        ..Fill::default()
    };
    let spec = spec(Work::Finish {
        zones: 3..5,
        fill,
        soft: None,
    });
    let mut queue = recorder();
    let (result, _) = record(
        JobSpec {
            queue_depth: 8,
            ..spec
        },
        &mut queue,
    );
    let zone = |z| [write(z, 0, 4), write(z, 4, 4), write(z, 8, 2), finish(z)];
    assert_eq!(queue.ops(), [zone(3), zone(4)].concat());
    assert_eq!(queue.deepest, 1, "one by one, whatever the depth");
    let finishes = result
        .recorder
        .stats
        .get(OpKind::Finish)
        .expect("they were measured");
    assert_eq!(
        (finishes.latency.count(), finishes.bytes),
        (2, 2 * 50 * 4096),
        "what they filled"
    );
    assert!(
        result.recorder.stats.get(OpKind::Write).is_none(),
        "the fill is not measured"
    );
    assert_eq!(result.operations, 2);
}

#[test]
fn a_fill_stops_at_the_capacity() {
    let fill = Fill {
        lbas: 1_000,
        block_lbas: 40,
        ..Fill::default()
    };
    let ops = ops_of(spec(Work::Finish {
        zones: 0..1,
        fill,
        soft: None,
    }));
    assert_eq!(ops, [write(0, 0, 40), write(0, 40, 20), finish(0)]);
    // A fill in blocks of nothing still gets on.
    let fill = Fill {
        lbas: 2,
        block_lbas: 0,
        ..Fill::default()
    };
    let ops = ops_of(spec(Work::Finish {
        zones: 0..1,
        fill,
        soft: None,
    }));
    assert_eq!(ops, [write(0, 0, 1), write(0, 1, 1), finish(0)]);
}

#[test]
fn resets_ascend_and_count_as_what_zones_hold() {
    let mut queue = recorder();
    let work = Work::Reset {
        zones: 1..4,
        shuffled: false,
        fill: NO_FILL,
    };
    let (result, _) = record(spec(work), &mut queue);
    assert_eq!(queue.ops(), [reset(1), reset(2), reset(3)]);
    let resets = result
        .recorder
        .stats
        .get(OpKind::Reset)
        .expect("they were measured");
    assert_eq!(resets.bytes, 3 * CAPACITY * 4096);
}

#[test]
fn resets_come_after_their_fill() {
    let fill = Fill {
        lbas: 5,
        block_lbas: 4,
        ..Fill::default()
    };
    let ops = ops_of(spec(Work::Reset {
        zones: 1..3,
        shuffled: false,
        fill,
    }));
    let zone = |z| [write(z, 0, 4), write(z, 4, 1), reset(z)];
    assert_eq!(ops, [zone(1), zone(2)].concat());
}

fn send(zone: u64, action: ZoneSendAction) -> Op {
    Op::ZoneSend {
        slba: Lba(zone * ZONE),
        action,
        select_all: false,
    }
}

/// Opens are measured, the resets that give back what they hold are not.
#[test]
fn zones_are_opened_and_closed_one_by_one() {
    let open = |z| send(z, ZoneSendAction::OPEN);
    let mut queue = recorder();
    let work = Work::Open {
        zones: 1..3,
        fill: NO_FILL,
    };
    let (result, _) = record(spec(work), &mut queue);
    assert_eq!(queue.ops(), [open(1), reset(1), open(2), reset(2)]);
    let count = |kind| {
        result
            .recorder
            .stats
            .get(kind)
            .map(|stats| stats.latency.count())
    };
    assert_eq!((count(OpKind::Open), count(OpKind::Reset)), (Some(2), None));

    let fill = Fill {
        lbas: 5,
        block_lbas: 4,
        open_first: true,
        ..Fill::default()
    };
    let mut queue = recorder();
    let (result, _) = record(spec(Work::Close { zones: 2..3, fill }), &mut queue);
    let close = send(2, ZoneSendAction::CLOSE);
    assert_eq!(
        queue.ops(),
        [open(2), write(2, 0, 4), write(2, 4, 1), close, reset(2)]
    );
    assert_eq!(result.operations, 1, "only the close is measured");
}

/// Opened, written, finished, left alone, reset; each step when the one before
/// has completed.
#[test]
fn zones_are_prepared_in_steps() {
    let fill = Fill {
        lbas: 4,
        block_lbas: 4,
        open_first: true,
        finish_first: true,
        settle: US(1_000),
        repeat: false,
    };
    let work = Work::Reset {
        zones: 0..2,
        shuffled: false,
        fill,
    };
    let mut queue = Recorder::steady(tiny_info(), US(10));
    let (result, _) = record(spec(work), &mut queue);
    let zone = |z| {
        [
            send(z, ZoneSendAction::OPEN),
            write(z, 0, 4),
            finish(z),
            reset(z),
        ]
    };
    assert_eq!(queue.ops(), [zone(0), zone(1)].concat());
    let times: Vec<Nanos> = queue.log.iter().map(|(at, _)| *at).collect();
    let first = [0, 10, 20, 1_030];
    assert_eq!(times[..4], first.map(US));
    assert_eq!(times[4..], first.map(|at| US(at + 1_040)));
    let resets = result
        .recorder
        .stats
        .get(OpKind::Reset)
        .expect("they were measured");
    assert_eq!(
        resets.latency.max(),
        Some(US(10)),
        "the rest is no part of it"
    );
}

/// Zones that are to be opened are, before their first write, and again after
/// they were reset.
#[test]
fn writers_open_their_zones() {
    let work = WriteWork {
        open_first: true,
        reset_first: true,
        ..writes(0..2, 30)
    };
    let open = |z| send(z, ZoneSendAction::OPEN);
    let mut queue = recorder();
    let (result, _) = record(spec(Work::Write(work)), &mut queue);
    let zone = |z| [reset(z), open(z), write(z, 0, 30), write(z, 30, 30)];
    assert_eq!(queue.ops(), [zone(0), zone(1)].concat());
    assert_eq!(result.recorder.first_writes.count(), 2);
    assert!(
        result.recorder.stats.get(OpKind::Open).is_none(),
        "it prepares"
    );
}

fn shuffled(seed: u64) -> Vec<u64> {
    let mut queue = Recorder::steady(large_info(), US(1));
    let work = Work::Reset {
        zones: 100..200,
        shuffled: true,
        fill: NO_FILL,
    };
    let mut job = job(spec(work), &large_info(), seed);
    queue.run(&mut job, 10_000).expect("it ends");
    let zone = |op: &Op| {
        if let Op::ZoneSend { slba, .. } = op {
            slba.0 >> 20
        } else {
            0
        }
    };
    queue.ops().iter().map(zone).collect()
}

#[test]
fn a_shuffled_order_is_a_permutation() {
    let order = shuffled(1);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (100..200).collect::<Vec<_>>());
    assert_ne!(order, sorted);
    assert_eq!(order, shuffled(1));
    assert_ne!(order, shuffled(2));
}

/// Reads and writes by lot: the share, and each of the two as if it were alone.
#[test]
fn mixed_work_keeps_its_share() {
    for (percent, range) in [(0, 0..=0), (30, 240..=360), (100, 1_000..=1_000)] {
        let read = ReadWork {
            zones: 0..2,
            block_lbas: 1 << 18,
            random: false,
        };
        let work = Work::Mixed {
            read,
            write: writes(4..6, 16),
            read_percent: percent,
        };
        let stop = Stop {
            operations: Some(1_000),
            ..Stop::default()
        };
        let mut queue = Recorder::steady(large_info(), US(10));
        record(
            JobSpec {
                stop,
                queue_depth: 3,
                ..spec(work)
            },
            &mut queue,
        );
        let (mut reads, mut written) = (0, 0);
        for op in queue.ops() {
            match op {
                Op::Read { slba, nlb } => {
                    // Eight blocks, four in each of two zones, and again.
                    assert_eq!((slba.0, nlb), ((reads % 8) << 18, 1 << 18));
                    reads += 1;
                }
                Op::Write { slba, nlb } => {
                    assert_eq!((slba.0, nlb), ((4 << 20) + written * 16, 16));
                    written += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(range.contains(&reads), "{reads} reads at {percent} %");
        assert_eq!(reads + written, 1_000);
    }
}

#[test]
fn threads_get_equal_slices() {
    let slices = |threads| {
        (0..threads)
            .map(|t| slice_of(&(10..34), t, threads))
            .collect::<Vec<_>>()
    };
    assert_eq!(slices(1), [Range { start: 10, end: 34 }]);
    assert_eq!(slices(3), [10..18, 18..26, 26..34]);
    // What does not divide is left out, for all to be equal.
    assert_eq!(slices(7).last(), Some(&(28..31)));
    assert!(slices(25).iter().all(Range::is_empty));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the blocks, the depth, the number of open zones and the order in
    /// which the drive completes: every zone is written once, in order, whole.
    #[test]
    fn writes_cover_their_zones(
        block in 1_u32..80,
        queue_depth in 1_u32..20,
        open_zones in 1_u32..10,
        zones in (0_u32..7).prop_flat_map(|first| (Just(first), first + 1..=8)),
        reset_first: bool,
        slow in 0_u64..100,
    ) {
        let mut turn = 0;
        let mut queue = Recorder::new(tiny_info(), move |_| {
            turn += 1;
            (US(10 + slow * (turn % 3)), zonelab_nvme::Status::SUCCESS)
        });
        let (first, end) = zones;
        let work = WriteWork { open_zones, reset_first, ..writes(first..end, block) };
        let (result, _) = record(JobSpec { queue_depth, ..spec(Work::Write(work)) }, &mut queue);
        let mut ops = queue.ops();
        let resets = ops.len();
        ops.retain(|op| !matches!(op, Op::ZoneSend { .. }));
        let expected = if reset_first { (end - first) as usize } else { 0 };
        prop_assert_eq!(resets - ops.len(), expected);
        assert_whole(&ops, u64::from(first)..u64::from(end));
        prop_assert_eq!(result.operations, ops.len() as u64);
        prop_assert_eq!(result.recorder.first_writes.count(), u64::from(end - first));
        prop_assert!(queue.deepest <= queue_depth as usize);
    }
}

/// As fio 3.33 does it beside a drive with zones of 8 MiB: what an earlier job of
/// another size has left of a zone has a pass go on from the first.
#[test]
fn a_rest_has_a_pass_go_on_from_the_first_zone() {
    for (zone, left_lbas, block, passes) in [
        // 60 blocks are 10 writes, 55 are 9 and a rest; 3 of 32 writes are done again.
        (6, 55, 6, vec![10 + 3, 10, 9]),
        (4, 55, 6, vec![9 + 3, 10, 10]),
        // Nothing is left over: the pass ends with the last zone.
        (6, 54, 6, vec![10, 10, 9]),
        (4, 54, 6, vec![9, 10, 10]),
        // Each zone has a rest. 24 writes are all of the size.
        (6, 54, 8, vec![7 + 4, 7, 6]),
    ] {
        let zoned = tiny_info().namespaces[0].zoned.expect("zones");
        let mut table = ZoneTable::new(zoned, None);
        table.declare_full(4..7);
        table.declare_empty(zone..zone + 1);
        table.declare_written(zone, CAPACITY - left_lbas);
        let work = DirectedWork::through(4..7, Direction::Write, Sizes::fixed(block));
        let mut spec = JobSpec::new("pass", work);
        spec.stop.bytes = Some(3 * ZONE * 4096);
        let shared = Shared {
            zones: Some((SharedZones::new(table), 0)),
            ..Shared::default()
        };
        let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(1, 0), shared);
        let mut queue = recorder();
        queue.run(&mut job, 10_000).expect("it ends");
        let writes = |zone: u64| {
            let is_here = |op: &&Op| matches!(op, Op::Write { slba, .. } if slba.0 / ZONE == zone);
            queue.ops().iter().filter(is_here).count()
        };
        assert_eq!(
            [4, 5, 6].map(writes).to_vec(),
            passes,
            "{zone} {left_lbas} {block}"
        );
        assert_eq!(job.into_result().errors, 0);
    }
}

/// Whether a flush follows the write behind which it is due depends on what ends
/// the job, as in fio; and only those of the first count have their latencies kept.
#[test]
fn flushes_behind_the_last_write_are_those_of_fio() {
    for (bytes, flushes) in [(2 * ZONE, 12), (2 * CAPACITY, 11)] {
        for (every_writes, at_end, counted) in [
            ([10, 0], false, true),
            ([0, 10], false, false),
            ([0, 10], true, false),
        ] {
            let work = DirectedWork::through(0..2, Direction::Write, Sizes::fixed(1));
            let mut spec = JobSpec::new("flushes", work);
            spec.stop.bytes = Some(bytes * 4096);
            spec.ending = Ending::AtLastCompletion;
            spec.recording.directions = Some(DirectionRecording {
                submission_percentiles: false,
                completion_percentiles: false,
                total_percentiles: false,
                bandwidth_interval: US(500),
                iops_interval: US(500),
                confidence: false,
                log: false,
                log_window: Nanos::ZERO,
            });
            spec.syncs = Syncs {
                every_writes,
                at_end,
            };
            let mut queue = recorder();
            let (result, _) = record(spec.into(), &mut queue);
            let of = &result.recorder;
            assert_eq!(of.flushes, flushes + u64::from(at_end), "{bytes}");
            let count = of.syncs.as_ref().map_or(0, |all| all.moments().count());
            assert_eq!(count, if counted { flushes } else { 0 });
            let is_flush = |op: &&Op| matches!(op, Op::Flush);
            let sent = queue.ops().iter().filter(is_flush).count() as u64;
            assert_eq!(sent, of.flushes);
        }
    }
}

/// A zone takes 15 operations, which is no multiple of four: appends of two zones are under way
/// together where one ends, and writes are not.
#[test]
fn appends_do_not_wait_for_the_last_of_a_zone() {
    let end_of = |append: bool, open_zones: u32| {
        let work = WriteWork {
            append,
            open_zones,
            ..writes(0..8, 4)
        };
        let mut spec = spec(Work::Write(work));
        spec.queue_depth = 4;
        let mut queue = recorder();
        let (result, end) = record(spec, &mut queue);
        assert_eq!(result.errors, 0);
        assert_eq!(queue.ops().len(), 8 * 15);
        end
    };
    assert_eq!(end_of(true, 1), US(8 * 15 / 4 * 10));
    assert_eq!(end_of(true, 2), US(8 * 15 / 4 * 10));
    assert_eq!(end_of(false, 1), US(8 * 4 * 10));
}

/// A zone that is written again is reset when all of it is on the drive.
#[test]
fn a_zone_is_reset_when_its_last_append_has_completed() {
    let work = WriteWork {
        append: true,
        repeat: true,
        ..writes(0..4, 4)
    };
    let mut spec = spec(Work::Write(work));
    spec.queue_depth = 32;
    spec.stop.operations = Some(400);
    let mut queue = recorder();
    record(spec, &mut queue);
    let mut left = BTreeMap::new();
    for op in queue.ops() {
        match op {
            Op::Append { zslba, nlb } => {
                let written: &mut u32 = left.entry(zslba.0).or_default();
                *written += nlb;
                assert!(u64::from(*written) <= CAPACITY, "zone at {zslba:?}");
            }
            Op::ZoneSend { slba, .. } => {
                let written = left.insert(slba.0, 0).unwrap_or(0);
                assert_eq!(u64::from(written), CAPACITY, "zone at {slba:?}");
            }
            other => panic!("{other:?} is no part of the work"),
        }
    }
}
