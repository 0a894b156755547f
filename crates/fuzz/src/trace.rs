//! Traces that jobs of fio replay.

use std::io::{BufRead, Cursor};

use zonelab_config::Place;
use zonelab_host::fio::trace::{read_trace, to_iolog};
use zonelab_host::fio::{JobFile, Outside};
use zonelab_host::workload::replay::{Action, Operation, Trace};
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

use crate::draw::Draw;
use crate::text;

/// Logs to begin with.
const LOGS: &[&str] = &[
    "fio version 3 iolog\n0 a add\n1 a open\n2 a write 0 4096\n5 a write 4096 8192\n\
     9 a read 0 4096\n9 a sync 0 0\n10 a trim 0 33554432\n11 a write 0 4096\n99 a close\n",
    "fio version 2 iolog\na add\na open\na write 33554432 65536\na wait 250 0\n\
     a datasync 0 0\na read 33554432 512\na write 33619968 4096\na trim 0 512\na close\n",
];

/// Texts of blkparse to begin with.
const EVENTS: &[&str] = &[
    "  8,0    3        1     0.000000000   697  Q   W 0 + 8 [k]\n\
       8,0    3        2     0.000100000   697  D   W 0 + 8 [k]\n\
       8,0    3        3     0.000200000   697  C   W 0 + 8 [0]\n\
       8,0    3        4     0.000300000   697  D FWFS 8 + 8 [k]\n\
       8,0    3        5     0.000400000   697  D  FN [k]\n\
       8,0    3        6     0.000500000   697  D  RA 0 + 16 [k]\n\
       8,0    3        7     0.000600000   697  D   D 0 + 65536 [k]\nCPU3 (sda):\n Reads 1\n",
    "259,1 0 1 7.0 1 Q ZA 65536 + 8 [k]\n259,1 0 1 7.1 1 Q ZF 65536 + 0 [k]\n\
     259,1 0 1 7.2 1 Q ZR 65536 + 65536 [k]\n259,1 0 1 7.2 1 Q ZRA 0 + 0 [k]\n\
     259,1 0 1 7.3 1 Q F [k]\n259,1 0 1 7.4 1 Q R 800 + 8 [k]\n",
];

/// Options of replays, one set of which is drawn.
const OPTIONS: &[&str] = &[
    "",
    "replay_zones=append\nreplay_align=4k",
    "replay_zones=append\nreplay_align=64k\nreplay_scale=3\nmax_open_zones=2\nioengine=libaio\niodepth=8",
    "replay_no_stall=1\nreplay_skip=sync,trim\nloops=2",
    "replay_time_scale=1000\nread_beyond_wp=1\nreplay_align=512\nruntime=1s\ntime_based",
];

/// The target `fio_iolog`.
///
/// # Panics
/// Something is wrong.
pub fn run_iolog(data: &[u8]) {
    run(data, LOGS);
}

/// The target `fio_blkparse`.
///
/// # Panics
/// Something is wrong.
pub fn run_blkparse(data: &[u8]) {
    run(data, EVENTS);
}

fn run(data: &[u8], bases: &[&str]) {
    let mut draw = Draw::new(data);
    let verbatim = text::verbatim(data);
    let (joins, options) = (draw.flag(), draw.pick(OPTIONS));
    let text = verbatim.unwrap_or_else(|| text::draw(&mut draw, bases));
    let trace = match read_trace("fuzz", text.as_bytes(), joins, None) {
        Ok(trace) => trace,
        Err(problem) => {
            assert!(!problem.what.is_empty(), "refused without a reason");
            if let Place::Line { line, .. } = problem.place {
                let lines = text.split('\n').count();
                assert!((1..=lines).contains(&line), "line {line} of {lines}");
            }
            return;
        }
    };
    prints_and_reads_back(&trace);
    replay(&text, options, joins);
}

fn prints_and_reads_back(trace: &Trace) {
    let has_action = |operation: &Operation| {
        let is_of_logs = !matches!(
            operation.action,
            Action::Append | Action::ResetAll | Action::Finish
        );
        is_of_logs && (operation.bytes > 0 || operation.action == Action::Sync)
    };
    let in_us = |operation: Operation| Operation {
        at: zonelab_device::Nanos(operation.at.0 / 1_000 * 1_000),
        ..operation
    };
    let expected: Vec<Operation> = trace.iter().filter(has_action).map(in_us).collect();
    if expected.is_empty() {
        return;
    }
    let text = to_iolog(trace, &trace.file);
    let back = read_trace("back", text.as_bytes(), false, None).unwrap_or_else(|problem| {
        panic!("what was printed is refused: {problem}\n{text}");
    });
    assert_eq!(back.iter().collect::<Vec<_>>(), expected, "{text}");
}

/// Replays a trace, if it fits: whatever comes of it, the job ends.
fn replay(text: &str, options: &str, joins: bool) {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let redirect = if joins { "replay_redirect=x\n" } else { "" };
    // Times of years are no matter of the replay.
    let job = format!("[r]\nread_iolog=t\nruntime=1s\nnumber_ios=200\n{redirect}{options}\n");
    let mut file = JobFile::parse("fuzz.fio", &job, &outside).expect("the job is right");
    let open = |_: &str| Ok(Box::new(Cursor::new(text.to_owned())) as Box<dyn BufRead>);
    file.read_traces(&open).expect("it was read before");
    let profile = Profile::load("small-zones", &[], |_| Err::<String, &str>("no files"))
        .expect("built-in profiles are right");
    let info = Drive::new(&profile.config).info().clone();
    let Ok(plan) = file.plan(&info, 1) else {
        return;
    };
    let settings = crate::fio::settings();
    let run = zonelab_fronts::fio::run(&plan, &profile.config, &settings).expect("it runs");
    assert!(!run.threads[0].is_stuck, "it never ended");
    let report = zonelab_fronts::fio::Report::new(&file, &plan, &run, "fuzz", 1);
    if options.contains("append") {
        let failed = report.entries.iter().find_map(|entry| entry.first_error);
        assert_eq!(failed, None, "the drive refused what was moved: {text}");
    }
    assert!(zonelab_fronts::fio::to_json(&report).contains("\"replay\""));
}
