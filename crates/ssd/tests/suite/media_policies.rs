//! What holds on events under every policy, for random groups.
//!
//! Every operation gets times that name it: `time % NAMES` is its number. From
//! the bookings alone it is worked out when each operation was served, and the
//! rules of the policy are checked on that, without looking into the engine.

use crate::media_support::random::{configs, workload};
use crate::media_support::service::{Interval, Run, Served, covered, sorted};
use crate::media_support::{Arrival, Rig, Shape};
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::account::BusyByCause;
use zonelab_ssd::config::{DiePolicy, MediaConfig};
use zonelab_ssd::media::{FlashKind, Media};

fn run(config: MediaConfig, shape: &Shape, arrivals: &[Arrival]) -> Run {
    let media = Media::event_driven(&shape.channel_of_unit, shape.channels, &config);
    let mut rig = Rig::of(media);
    for (token, arrival) in arrivals.iter().enumerate() {
        rig.submit_at(arrival.at, token as u32, &arrival.ops);
    }
    rig.run_to(Nanos::MAX);
    let all_idle = (0..shape.channel_of_unit.len() as u32)
        .all(|u| rig.media.is_idle(Nanos::MAX, u) && rig.media.backlog(Nanos::MAX, u).0 == 0);
    assert!(all_idle, "nothing is left to do");
    let spans = rig.spans();
    let run = Run::new(config, shape.clone(), arrivals, spans);
    check_groups(&run, &rig, arrivals);
    check_ledger(&run, &rig);
    run
}

/// Each group ends once, with the slowest of its operations.
fn check_groups(run: &Run, rig: &Rig, arrivals: &[Arrival]) {
    let mut ended = rig.ended.clone();
    ended.sort_by_key(|(_, token)| *token);
    assert_eq!(ended.len(), arrivals.len(), "each group ends once");
    for (group, (at, token)) in ended.iter().enumerate() {
        assert_eq!(*token as usize, group);
        let ops = run.ops.iter().filter(|served| served.group == group);
        assert_eq!(Some(at.0), ops.map(Served::end).max());
    }
}

/// Busy time is the sum of all times, and the overheads of each suspend.
fn check_ledger(run: &Run, rig: &Rig) {
    let ledger = rig.media.ledger();
    let booked = |rows: &[BusyByCause]| rows.iter().flatten().sum::<u64>();
    let (mut units, mut channels) = (0, 0);
    for served in &run.ops {
        let transfer = u64::from(served.op.transfer_ns);
        units += u64::from(served.op.array_ns) + 2 * run.overhead() * served.suspends();
        units += if run.holds(served.op.kind) {
            transfer
        } else {
            0
        };
        channels += transfer;
    }
    assert_eq!(booked(&ledger.units), units);
    assert_eq!(booked(&ledger.channels), channels);
}

/// Pages come before their program and after their read, and with hold at once
/// before.
fn check_phases(run: &Run) {
    for served in &run.ops {
        assert!(served.first_start() >= served.arrived);
        let Some(transfer) = served.transfer else {
            continue;
        };
        match served.op.kind {
            FlashKind::Read => assert!(transfer.start >= served.array[0].end),
            FlashKind::Program if run.holds(FlashKind::Program) => {
                assert_eq!(transfer.end, served.array[0].start);
            }
            FlashKind::Program => {
                assert!(transfer.end <= served.array[0].start);
                assert!(transfer.start >= run.loadable(served), "{served:?}");
            }
            FlashKind::Erase => unreachable!("an erase has no page"),
        }
    }
}

/// A unit or channel that could work, works.
fn check_work_conservation(run: &Run) {
    for served in &run.ops {
        let unit = run.unit_busy(served.op.unit);
        let channel = run.channel_busy(run.channel_of(served));
        let both = sorted(unit.iter().chain(&channel).copied().collect());
        let start = served.first_start();
        let ready = if served.is_write() && !run.holds(served.op.kind) {
            if let Some(transfer) = served.transfer {
                let loadable = run.loadable(served);
                assert!(covered(&channel, loadable, transfer.start), "{served:?}");
            }
            run.startable(served)
        } else {
            served.arrived
        };
        // With hold, units wait for channels; in order of arrival, they also
        // wait for the page of an older program.
        let fifo_waits = run.config.policy == DiePolicy::Fifo;
        let holds = run.holds(FlashKind::Read) || run.holds(FlashKind::Program);
        let allowed = if holds || fifo_waits { &both } else { &unit };
        assert!(
            covered(allowed, ready, start),
            "{served:?} waits for nothing"
        );
        if served.op.kind == FlashKind::Read
            && let Some(transfer) = served.transfer
        {
            assert!(covered(&channel, served.array[0].end, transfer.start));
        }
    }
}

/// Programs and erases of a unit keep their order; under `fifo` without
/// suspend everything does.
fn check_order(run: &Run) {
    let strict = run.config.policy == DiePolicy::Fifo && !run.suspends_anything();
    for unit in 0..run.units() {
        let mut line: Vec<&Served> = run.on_unit(unit).collect();
        line.retain(|served| strict || served.is_write());
        for pair in line.windows(2) {
            assert!(pair[0].unit_released(run) <= pair[1].first_start());
        }
    }
}

/// Transfers that become ready earlier go earlier.
fn check_arbitration(run: &Run) {
    // When a program is ready is not visible from outside with hold.
    let holds = run.holds(FlashKind::Program);
    let visible = |s: &&Served| !(holds && s.op.kind == FlashKind::Program);
    for channel in 0..run.shape.channels {
        let ops = run.ops.iter().filter(visible);
        let mut line: Vec<(u64, u64)> = ops
            .filter(|served| run.channel_of(served) == channel)
            .filter_map(|served| {
                let ready = match served.op.kind {
                    FlashKind::Read => served.array[0].end,
                    FlashKind::Program | FlashKind::Erase => run.loadable(served),
                };
                Some((ready, served.transfer?.start))
            })
            .collect();
        line.sort_unstable();
        for pair in line.windows(2) {
            assert!(pair[0].0 == pair[1].0 || pair[0].1 < pair[1].1, "{line:?}");
        }
    }
}

/// `read-first`: no program or erase starts or goes on while a read waits.
/// `weighted`: only after its reads, and after no more than those.
fn check_policy(run: &Run) {
    for unit in 0..run.units() {
        let reads: Vec<&Served> = run.on_unit(unit).filter(|s| !s.is_write()).collect();
        let waits_at = |at| {
            reads
                .iter()
                .any(|read| read.arrived < at && read.first_start() > at)
        };
        let between = |after: u64, before: u64| {
            let starts = reads.iter().map(|read| read.first_start());
            starts.filter(|&s| after < s && s < before).count() as u64
        };
        let at = |time: u64| reads.iter().any(|read| read.first_start() == time);
        for write in run.on_unit(unit).filter(|s| s.is_write()) {
            for (waited_from, start) in run.turns(write) {
                match run.config.policy {
                    DiePolicy::ReadFirst => assert!(!waits_at(start), "{write:?}"),
                    DiePolicy::Weighted { reads } => {
                        let (reads, seen) = (u64::from(reads), between(waited_from, start));
                        assert!(seen <= reads, "{seen} reads before {write:?}");
                        let possible = seen + u64::from(at(waited_from));
                        assert!(!waits_at(start) || possible >= reads, "{write:?}");
                    }
                    DiePolicy::Fifo => {}
                }
            }
        }
    }
}

/// Who is suspended, when, how often, and that nobody is spared.
fn check_suspends(run: &Run) {
    for write in run.ops.iter().filter(|s| s.is_write()) {
        let limit = run.suspend_limit(write.op.kind);
        assert!(write.suspends() <= limit);
        let reads: Vec<&Served> = run
            .on_unit(write.op.unit)
            .filter(|s| !s.is_write())
            .collect();
        let mut done = 0;
        for (index, piece) in write.array.iter().enumerate() {
            let last = index as u64 == write.suspends();
            let (held_from, from) = run.progress_of(write, index);
            // Reads that were there before count where there are points to stop at.
            let asks = |read: &&&Served, strictly: bool| {
                let arrives = if strictly {
                    held_from < read.arrived
                } else {
                    held_from <= read.arrived
                };
                let waits = run.has_points() && read.first_start() > held_from;
                arrives || waits
            };
            let stop = |read: &Served| run.stop_after(read.arrived, from, done);
            if last {
                // A read of the very start may have come before it.
                let mut during = reads
                    .iter()
                    .filter(|read| asks(read, true) && read.arrived < piece.end);
                let spared = |read: &&Served| piece.end <= stop(read) + run.overhead();
                let exhausted = write.suspends() == limit;
                assert!(exhausted || during.all(spared), "{write:?} was not stopped");
            } else {
                let mut asking = reads.iter().filter(|read| asks(read, false));
                let asked = |read: &&Served| stop(read) + run.overhead() == piece.end;
                assert!(asking.any(asked), "{write:?} was stopped without cause");
                done += piece.end - run.overhead() - from;
                let gap = Interval {
                    start: piece.end,
                    end: write.array[index + 1].start,
                };
                let busy = run.unit_busy(write.op.unit);
                assert!(covered(&busy, gap.start, gap.end), "{write:?} rests");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_holds_under_every_policy(
        config in configs(),
        (shape, arrivals) in workload(),
    ) {
        let run = run(config, &shape, &arrivals);
        run.check_exclusive();
        check_phases(&run);
        check_work_conservation(&run);
        check_order(&run);
        check_arbitration(&run);
        check_policy(&run);
        check_suspends(&run);
    }
}
