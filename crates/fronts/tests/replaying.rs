//! Replays of traces on emulated drives: which commands, when, and to which zones.

use std::io::BufRead;

use zonelab_device::Nanos;
use zonelab_fronts::fio::{RunSettings, run};
use zonelab_host::Rng;
use zonelab_host::fio::trace::to_iolog;
use zonelab_host::fio::{JobFile, Outside};
use zonelab_host::workload::JobResult;
use zonelab_host::workload::replay::{Action, Operation, Trace};
use zonelab_sim::HostCosts;
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

#[path = "../../lab/tests/suite/tiny.rs"]
mod tiny;

mod limits;

use tiny::TINY;

const BLOCK: u64 = 4_096;
/// Blocks of a zone of the tiny drive, and how many of them hold data.
const ZONE: u64 = 64;
const CAPACITY: u64 = 60;
const ZONES: u64 = 8;

/// Runs a job on the tiny drive, of which the first zones may be full, and gives
/// what it did. `trace` is the file `t`.
fn result(options: &str, trace: &str, full_zones: u32) -> JobResult {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let text = format!("[r]\nwrite_iolog=w\n{options}\n");
    let mut file = JobFile::parse("j.fio", &text, &outside).expect("the job file is right");
    file.read_traces(&|_| Ok(Box::new(std::io::Cursor::new(trace.to_owned())) as Box<dyn BufRead>))
        .expect("the trace is right");
    let profile = Profile::parse("tiny.toml", TINY, &[]).expect("it is a profile");
    let info = Drive::new(&profile.config).info().clone();
    let plan = file
        .plan(&info, 1)
        .unwrap_or_else(|error| panic!("{error}"));
    let settings = RunSettings {
        conditions: Default::default(),
        trace: None,
        saves: false,
        seed: 1,
        costs: HostCosts::FREE,
        full_zones: (full_zones > 0).then_some(0..full_zones),
        interrupt: std::sync::Arc::default(),
    };
    let mut run = run(&plan, &profile.config, &settings).expect("it runs");
    run.threads.remove(0).result.expect("it has begun")
}

fn issued(result: &JobResult) -> Vec<Operation> {
    result
        .recorder
        .issued
        .as_ref()
        .expect("they are recorded")
        .iter()
        .collect()
}

fn log(operations: &[Operation]) -> String {
    let mut trace = Trace::new("t");
    for operation in operations {
        trace.push(*operation, 1).expect("there is room");
    }
    to_iolog(&trace, "a")
}

fn operation(us: u64, action: Action, block: u64, blocks: u64) -> Operation {
    Operation {
        at: Nanos::from_us(us),
        action,
        offset: block * BLOCK,
        bytes: blocks * BLOCK,
    }
}

const SEEDS: std::ops::Range<u64> = 0..50;

/// With enough in flight, every operation goes out at its very time.
#[test]
fn operations_go_out_as_they_are_and_at_their_times() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed, 0);
        let mut us = 0;
        let operations: Vec<Operation> = (0..40)
            .map(|_| {
                us += rng.below(300);
                let (zone, blocks) = (rng.below(4), 1 + rng.below(4));
                let block = zone * ZONE + rng.below(CAPACITY - blocks);
                match rng.below(8) {
                    0 => operation(us, Action::Sync, 0, 0),
                    _ => operation(us, Action::Read, block, blocks),
                }
            })
            .collect();
        for (speed, percent) in [
            ("", 100),
            ("replay_time_scale=50", 50),
            ("replay_time_scale=400", 400),
        ] {
            let options = format!("read_iolog=t\nioengine=libaio\niodepth=64\n{speed}");
            let result = result(&options, &log(&operations), 4);
            let expected: Vec<Operation> = operations
                .iter()
                .map(|operation| Operation {
                    at: Nanos(operation.at.0 * 100 / percent),
                    ..*operation
                })
                .collect();
            assert_eq!(issued(&result), expected, "seed {seed} {speed}");
            let replayed = result.replayed.unwrap();
            assert_eq!(replayed.lateness.max(), Some(Nanos::ZERO), "seed {seed}");
            assert_eq!(replayed.lateness.count(), 40);
        }
    }
}

#[test]
fn with_one_in_flight_what_is_late_is_said_to_be() {
    let operations: Vec<Operation> = (0..20).map(|n| operation(n, Action::Read, n, 1)).collect();
    let result = result("read_iolog=t", &log(&operations), 1);
    let issued = issued(&result);
    let late: u128 = issued
        .iter()
        .zip(&operations)
        .map(|(is, due)| u128::from((is.at - due.at).0))
        .sum();
    let lateness = &result.replayed.as_ref().unwrap().lateness;
    assert!(late > 0);
    assert_eq!((lateness.count(), lateness.sum_ns()), (20, late));
    let no_stall = self::result("read_iolog=t\nreplay_no_stall=1", &log(&operations), 1);
    assert_eq!(no_stall.operations, 20);
    assert_eq!(no_stall.replayed.unwrap().lateness.count(), 0);
}

/// The rule for zones, written down a second time.
#[derive(Default)]
struct Oracle {
    written: [u64; ZONES as usize],
    open: Vec<u64>,
    commands: Vec<(Action, u64, u64)>,
    moved: u64,
    skipped_reads: u64,
    skipped_trims: u64,
    cleared: u64,
    ended: u64,
}

/// Zones written in part at a time.
const OPEN: usize = 3;

impl Oracle {
    fn apply(&mut self, action: Action, block: u64, blocks: u64) {
        let (zone, at) = (block / ZONE, block % ZONE);
        match action {
            Action::Read if at + blocks <= self.written[zone as usize] => {
                self.commands.push((Action::Read, block, blocks));
            }
            Action::Read => self.skipped_reads += 1,
            Action::Trim if at == 0 && blocks >= CAPACITY => self.reset(zone),
            Action::Trim => self.skipped_trims += 1,
            _ => self.write(zone, at, blocks),
        }
    }

    fn reset(&mut self, zone: u64) {
        self.commands.push((Action::Trim, zone * ZONE, ZONE));
        self.written[zone as usize] = 0;
        self.open.retain(|open| *open != zone);
    }

    fn write(&mut self, zone: u64, at: u64, blocks: u64) {
        if !self.open.contains(&zone) && self.open.len() == OPEN {
            let oldest = self.open.remove(0);
            self.commands.push((Action::Finish, oldest * ZONE, 0));
            self.written[oldest as usize] = CAPACITY;
            self.ended += 1;
        }
        let written = self.written[zone as usize];
        let is_there = at == written && at + blocks <= CAPACITY;
        let is_anew = at == 0 && written > 0;
        self.moved += u64::from(!is_there && !is_anew);
        if !is_there && (is_anew || written + blocks > CAPACITY) {
            let was_open = self.open.clone();
            self.reset(zone);
            self.cleared += 1;
            if was_open.contains(&zone) {
                self.open = was_open;
            }
        }
        let to = self.written[zone as usize];
        self.commands
            .push((Action::Write, zone * ZONE + to, blocks));
        self.written[zone as usize] += blocks;
        let is_full = to + blocks == CAPACITY;
        self.open.retain(|open| *open != zone || !is_full);
        if !is_full && !self.open.contains(&zone) {
            self.open.push(zone);
        }
    }
}

#[test]
fn writes_are_moved_by_the_rule() {
    let mut moved = 0;
    for seed in SEEDS {
        let mut rng = Rng::new(seed, 1);
        let mut oracle = Oracle::default();
        let operations: Vec<Operation> = (0..200)
            .map(|_| {
                let (zone, blocks) = (rng.below(6), 1 + rng.below(4));
                let at = match rng.below(4) {
                    0 => 0,
                    1 => oracle.written[zone as usize].min(ZONE - blocks),
                    _ => rng.below(ZONE - blocks),
                };
                let (action, at, blocks) = match rng.below(10) {
                    0 => (Action::Trim, 0, ZONE),
                    1 => (Action::Trim, at, blocks),
                    2 | 3 => (Action::Read, at, blocks),
                    _ => (Action::Write, at, blocks),
                };
                oracle.apply(action, zone * ZONE + at, blocks);
                operation(0, action, zone * ZONE + at, blocks)
            })
            .collect();
        let options = "read_iolog=t\nreplay_zones=append\nmax_open_zones=3\nreplay_no_stall=1";
        let result = result(options, &log(&operations), 0);
        let commands: Vec<(Action, u64, u64)> = issued(&result)
            .iter()
            .map(|operation| {
                let blocks = operation.bytes / BLOCK;
                (operation.action, operation.offset / BLOCK, blocks)
            })
            .collect();
        assert_eq!(commands, oracle.commands, "seed {seed}");
        assert_eq!(result.errors, 0, "seed {seed}: {:?}", result.first_error);
        let replayed = result.replayed.unwrap();
        assert_eq!(replayed.moved_writes, oracle.moved, "seed {seed}");
        assert_eq!(replayed.skipped_reads, oracle.skipped_reads, "seed {seed}");
        assert_eq!(replayed.skipped_trims, oracle.skipped_trims, "seed {seed}");
        assert_eq!(result.cleared_zones, oracle.cleared, "seed {seed}");
        assert_eq!(result.ended_zones, oracle.ended, "seed {seed}");
        moved += oracle.moved;
    }
    assert!(moved > 1_000, "{moved}");
}

#[test]
fn a_strict_replay_resets_at_starts_of_zones_and_leaves_the_rest_to_the_drive() {
    let trace = [
        operation(0, Action::Write, 0, 2),
        operation(1, Action::Write, 2, 2),
        operation(2, Action::Write, 0, 1),
    ];
    let anew = result("read_iolog=t\nioengine=libaio\niodepth=8", &log(&trace), 1);
    assert_eq!((anew.errors, anew.cleared_zones), (0, 2));
    let in_the_middle = [operation(0, Action::Write, 5, 1)];
    let refused = result("read_iolog=t", &log(&in_the_middle), 1);
    assert_eq!(refused.errors, 1);
    let status = refused.first_error.unwrap().status;
    assert!(status.to_string().contains("Zone"), "{status}");
}

#[test]
fn long_operations_are_split_and_zones_of_long_trims_reset() {
    // The tiny drive moves what a zone holds in one command, and a read does not
    // reach across zones.
    let trace = [
        operation(0, Action::Read, 50, 20),
        operation(1, Action::Trim, 0, 3 * ZONE),
    ];
    let result = result("read_iolog=t\nread_beyond_wp=1", &log(&trace), 3);
    let actions: Vec<Action> = issued(&result).iter().map(|op| op.action).collect();
    let replayed = result.replayed.unwrap();
    // Blocks 60 to 63 of a zone cannot be read.
    assert_eq!(replayed.skipped_reads, 1);
    assert_eq!(
        actions,
        [Action::Read, Action::Trim, Action::Trim, Action::Trim]
    );
}

/// What a job wrote to its log is what a replay of the log does, and when.
#[test]
fn a_log_of_a_job_replays_as_the_same_log() {
    for (seed, job) in [
        "rw=write\nbs=8k\nrate_iops=2000\nsize=4z",
        "rw=randwrite\nbs=4k\nnumber_ios=300\nrate_iops=3000\nfsync=7",
        "rw=randrw\nbs=16k\nnumber_ios=200\nrate_iops=1000\niodepth=4\nioengine=libaio",
        "rw=trim\nsize=2z\nthinktime=100us",
    ]
    .into_iter()
    .enumerate()
    {
        let first = result(job, "", 2);
        let text = to_iolog(
            first.recorder.issued.as_ref().expect("they are recorded"),
            "a",
        );
        assert!(text.lines().count() > 4, "{text}");
        let again = result("read_iolog=t\nioengine=libaio\niodepth=64", &text, 2);
        let replayed = to_iolog(
            again.recorder.issued.as_ref().expect("they are recorded"),
            "a",
        );
        assert_eq!(again.errors, 0, "job {seed}: {:?}", again.first_error);
        assert_eq!(actions_of(&text), actions_of(&replayed), "job {seed}");
    }
}

/// The lines of a log without their times: a reset that the zone waits for makes
/// what follows late.
fn actions_of(text: &str) -> Vec<String> {
    let without_time = |line: &str| {
        line.split_once(' ')
            .expect("a time comes first")
            .1
            .to_owned()
    };
    text.lines().skip(1).map(without_time).collect()
}

#[test]
fn a_trace_is_repeated_and_one_of_nothing_ends() {
    let trace = [
        operation(0, Action::Read, 0, 1),
        operation(100, Action::Read, 1, 1),
    ];
    let thrice = result("read_iolog=t\nloops=3", &log(&trace), 1);
    assert_eq!(thrice.operations, 6);
    let nothing = result(
        "read_iolog=t\ntime_based\nruntime=1s\nreplay_skip=read",
        &log(&trace),
        1,
    );
    assert_eq!(nothing.operations, 0);
    let unwritten = result("read_iolog=t\ntime_based\nruntime=1s", &log(&trace), 0);
    assert_eq!(unwritten.operations, 0);
    let timed = result("read_iolog=t\ntime_based\nruntime=1ms", &log(&trace), 1);
    assert!(timed.operations > 4, "{}", timed.operations);
    assert!(timed.ended >= Nanos::from_ms(1));
}
