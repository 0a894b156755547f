//! Traces that jobs replay: what is read, what is refused at which line, and what
//! fits a device.

use std::io::BufRead;

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_host::fio::trace::{read_trace, to_iolog};
use zonelab_host::fio::{JobFile, Outside, Plan};
use zonelab_host::workload::directed::Direction;
use zonelab_host::workload::replay::{Action, Operation, Trace};

use super::support::tiny_info;

fn read(text: &str) -> Result<Trace, String> {
    read_trace("t", text.as_bytes(), false, None).map_err(|problem| problem.to_string())
}

fn refused(text: &str) -> String {
    read(text).expect_err("it is wrong")
}

fn operation(us: u64, action: Action, offset: u64, bytes: u64) -> Operation {
    Operation {
        at: Nanos::from_us(us),
        action,
        offset,
        bytes,
    }
}

#[test]
fn version_2_waits_add_up_and_version_3_has_times() {
    let two = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read 0 4096\n\
               /dev/a wait 250 0\n/dev/a write 8192 512\n/dev/a wait 99 0\n/dev/a sync 0 0\n\
               /dev/a wait 100 0\n/dev/a trim 4096 1024\n/dev/a close\n";
    let expected = [
        operation(0, Action::Read, 0, 4_096),
        operation(250, Action::Write, 8_192, 512),
        operation(250, Action::Sync, 0, 0),
        operation(350, Action::Trim, 4_096, 1_024),
    ];
    let trace = read(two).unwrap();
    assert_eq!(trace.iter().collect::<Vec<_>>(), expected);
    assert_eq!(trace.line_of(3), 10);
    let three = "\n fio version 3 iolog\n0 a add\n1 a open\n0 a read 0 4096\n250 a write 8192 512\n\
                 250 a datasync 0 0\n350 a trim 4096 1024\n400 a close\n";
    let trace = read(three).unwrap();
    assert_eq!(trace.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn lines_of_logs_are_refused_with_their_numbers() {
    let head = "fio version 3 iolog\n0 a add\n";
    for (line, what) in [
        ("x a read 0 1", "t:3: \"x\" is no time"),
        ("1 a read 0", "\"1 a read 0\" is no action"),
        ("1 a wait 5 0", "wait is an action of version 2"),
        ("1 b read 0 1", "the file \"b\" has not been added"),
        ("1 b add", "\"b\" is another device than a"),
        ("1 a read -5 1", "\"-5\" is no offset"),
        ("1 a read 0 0", "nothing: 0 bytes"),
        (
            "1 a read 0 99999999999999",
            "99999999999999 bytes in one operation",
        ),
        ("1 a erase 0 1", "\"erase\" is no action"),
    ] {
        let problem = refused(&format!("{head}{line}\n"));
        assert!(problem.contains("t:3:"), "{line}: {problem}");
        assert!(problem.contains(what), "{line}: {problem}");
    }
    for (text, what) in [
        ("", "an empty file"),
        (
            "fio version 1 iolog\n",
            "\"fio version 1 iolog\" is not supported",
        ),
        ("\u{7}tae0000", "event 1: the file ends within an event"),
        ("\u{1f}\u{1}", "\"\\u{1f}\\u{1}\" begins no trace"),
        ("hello\n", "\"hello\" begins no trace"),
        (
            "fio version 3 iolog\n0 a add\n",
            "a trace without operations",
        ),
    ] {
        assert!(refused(text).contains(what), "{text}: {}", refused(text));
    }
    let endless = "x".repeat(10_000);
    assert!(refused(&endless).contains("a line of more than 4096 bytes"));
    let two_files = format!("{head}1 b add\n1 a read 0 512\n2 b read 512 512\n");
    let joined = read_trace("t", two_files.as_bytes(), true, None).unwrap();
    assert_eq!(joined.len(), 2);
}

#[test]
fn of_blkparse_issues_count_and_otherwise_what_was_queued() {
    let queued = "  8,0    3        1     5.000000100   697  Q   W 223490 + 8 [kjournald]\n\
                  8,0 3 2 5.000001100 697 G W 223490 + 8 [kjournald]\n\
                  8,0 3 3 5.000002000 697 P N [kjournald]\n\
                  8,0 3 4 5.000003000 697 Q RA 0 + 16 [(null)]\n";
    let trace = read(queued).unwrap();
    let all: Vec<Operation> = trace.iter().collect();
    assert_eq!(
        all,
        [
            operation(0, Action::Write, 223_490 * 512, 4_096),
            Operation {
                at: Nanos(2_900),
                ..operation(0, Action::Read, 0, 8_192)
            },
        ]
    );
    let issued = format!(
        "{queued}8,0 3 5 6.0 697 D W 8 + 8 [x]\n8,0 3 6 6.1 697 Q W 16 + 8 [x]\n\
         8,0 3 7 6.2 697 D WFS 16 + 8 [x]\n8,0 3 7 6.3 697 D FWS [x]\n\
         8,0 3 7 6.3 697 D FN [x]\n8,0 3 7 6.4 697 D N 0 (12 00) [x]\n\
         8,0 3 8 6.4 0 m N cfq workload\n\
         8,0 3 7 6.5 697 D FWFS 24 + 8 [x]\n8,0 3 7 6.6 697 D DS 64 + 64 [x]\n\
         8,0 3 7 6.7 697 D ZA 128 + 8 [x]\n8,0 3 7 6.7 697 D ZR 128 + 64 [x]\n\
         8,0 3 7 6.7 697 D ZRA 0 + 0 [x]\n8,0 3 7 6.7 697 D ZF 128 + 0 [x]\n\
         8,0 3 7 6.7 697 D ZO 128 + 0 [x]\n\
         CPU0 (sda):\n Reads Queued:  1\nTotal (sda):\n nonsense\n"
    );
    let trace = read(&issued).unwrap();
    let actions: Vec<(Action, u64)> = trace
        .iter()
        .map(|op| (op.action, op.offset / 512))
        .collect();
    assert_eq!(
        actions,
        [
            (Action::Write, 8),
            (Action::Write, 16),
            (Action::Sync, 0),
            (Action::Sync, 0),
            (Action::Sync, 24),
            (Action::Write, 24),
            (Action::Trim, 64),
            (Action::Append, 128),
            (Action::Trim, 128),
            (Action::ResetAll, 0),
            (Action::Finish, 128),
        ]
    );
    assert_eq!(trace.line_of(0), 5);
    for (text, what) in [
        ("8,0 3 1 0.1 1 D X 0 + 8 [x]", "\"X\" is no operation"),
        ("8,0 3 1 0.1.2 1 D R 0 + 8 [x]", "\"1.2\" is no time"),
        ("8,0 3 1 0.1 1 D R z + 8 [x]", "\"z\" is no sector"),
        (
            "8,0 3 1 0.1 1 D R 99999999999999999 + 8 [x]",
            "sector 99999999999999999 + 8 is too far",
        ),
        ("8,0 3 1 0.1 1 D", "is no event of blkparse"),
        (
            "8,0 3 1 0.1 1 D R 0 + 8 [x]\n8,16 3 1 0.1 1 D R 0 + 8 [x]",
            "\"8,16\" is another device than 8,0",
        ),
        (
            "8,0 3 1 0.1 1 D R 0 + 8 [x]\nhello",
            "\"hello\" is no event",
        ),
    ] {
        assert!(refused(text).contains(what), "{text}: {}", refused(text));
    }
}

fn any_operation() -> impl Strategy<Value = (u64, u8, u64, u64)> {
    (0..5_000_u64, 0..4_u8, 0..1_u64 << 50, 1..Trace::MAX_BYTES)
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(drawn in prop::collection::vec(any_operation(), 1..50)) {
        let mut trace = Trace::new("t");
        let mut at = 0;
        for (number, (us, action, offset, bytes)) in (4..).zip(drawn) {
            at += us;
            let actions = [Action::Read, Action::Write, Action::Trim, Action::Sync];
            let action = actions[usize::from(action)];
            trace.push(operation(at, action, offset, bytes), number).unwrap();
        }
        let text = to_iolog(&trace, "a device");
        let back = read_trace("t", text.as_bytes(), false, None).unwrap();
        prop_assert_eq!(back.iter().collect::<Vec<_>>(), trace.iter().collect::<Vec<_>>());
        prop_assert_eq!(back.fingerprint() == trace.fingerprint(), true);
        let sectors = trace.iter().map(|op| Operation {
            offset: op.offset / 512 * 512,
            bytes: op.bytes.div_ceil(512).min(1 << 30) * 512,
            ..op
        });
        let mut expected: Vec<Operation> = sectors.collect();
        let mut text = String::new();
        for op in &mut expected {
            let (rwbs, is_sync) = match op.action {
                Action::Read => ("R", false),
                Action::Write => ("WS", false),
                Action::Trim => ("D", false),
                _ => ("F", true),
            };
            if is_sync {
                op.bytes = 0;
            }
            let (ns, sector, count) = (op.at.0, op.offset / 512, op.bytes / 512);
            let (seconds, nanos) = (ns / 1_000_000_000, ns % 1_000_000_000);
            text += &format!("8,0 1 1 {seconds}.{nanos:09} 7 D {rwbs} {sector} + {count} [p]\n");
        }
        let first = expected.first().map_or(Nanos::ZERO, |op| op.at);
        for op in &mut expected {
            op.at = op.at.saturating_sub(first);
        }
        let back = read_trace("t", text.as_bytes(), false, None).unwrap();
        prop_assert_eq!(back.iter().collect::<Vec<_>>(), expected);
    }
}

/// A plan for the tiny drive: 8 zones of 256 KiB, 240 KiB of which can be written.
fn planned(options: &str, trace: &str) -> Result<Plan, String> {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let text = format!("[r]\nread_iolog=t\n{options}\n");
    let mut file = JobFile::parse("j.fio", &text, &outside).map_err(|e| e.to_string())?;
    file.read_traces(&|name| match name {
        "t" => Ok(Box::new(std::io::Cursor::new(trace.to_owned())) as Box<dyn BufRead>),
        _ => Err("not found".to_owned()),
    })
    .map_err(|e| e.to_string())?;
    file.plan(&tiny_info(), 1).map_err(|e| e.to_string())
}

fn log(lines: &str) -> String {
    format!("fio version 3 iolog\n0 a add\n{lines}")
}

#[test]
fn what_does_not_fit_the_device_is_refused_at_its_line() {
    for (options, lines, what) in [
        (
            "",
            "0 a read 100 4096\n",
            "t:3: 4096 bytes at 100 are no whole",
        ),
        (
            "",
            "0 a read 2097152 4096\n",
            "lie outside of what the job works on",
        ),
        (
            "offset=1z",
            "0 a read 0 4096\n",
            "lie outside of what the job works on",
        ),
        (
            "",
            "0 a write 0 4096\n0 a write 8192 4096\n",
            "t:4: a write at 8192 that is not at the write pointer of zone 0, 4096",
        ),
        ("", "0 a write 241664 8192\n", "goes beyond zone 0"),
        (
            "replay_zones=append",
            "0 a write 0 258048\n",
            "longer than a zone",
        ),
        ("read_iolog=u", "", "j.fio:3: read_iolog: u: not found"),
        (
            "merge_blktrace_file=x",
            "",
            "merge_blktrace_file: is not supported",
        ),
        ("replay_align=3k", "", "3072 is no power of two"),
        (
            "replay_skip=read,erase",
            "",
            "\"erase\" is none of the values",
        ),
        ("replay_zones=none", "", "\"none\" is none of the values"),
        (
            "write_iolog=f\nnumjobs=2",
            "0 a read 0 4096\n",
            "the log of several threads",
        ),
    ] {
        let lines = if lines.is_empty() {
            "0 a read 0 4096\n"
        } else {
            lines
        };
        let problem = planned(options, &log(lines)).expect_err(options);
        assert!(problem.contains(what), "{options} {lines}: {problem}");
    }
    for (options, lines) in [
        ("replay_align=4k", "0 a read 100 4000\n"),
        ("replay_scale=2", "0 a read 2097152 4096\n"),
        ("replay_skip=write", "0 a read 0 4096\n1 a write 9 9\n"),
        (
            "replay_zones=append",
            "0 a write 0 4096\n0 a write 8192 4096\n",
        ),
        (
            "",
            "0 a write 0 4096\n0 a write 4096 4096\n0 a write 0 8192\n",
        ),
        (
            "",
            "0 a write 0 4096\n0 a trim 0 262144\n0 a write 0 4096\n",
        ),
        // Where the write pointer is when the run begins, nobody knows yet.
        ("", "0 a write 8192 4096\n0 a write 12288 4096\n"),
    ] {
        if let Err(problem) = planned(options, &log(lines)) {
            panic!("{options} {lines}: {problem}");
        }
    }
}

#[test]
fn a_plan_says_in_which_directions_a_trace_goes() {
    let plan = planned(
        "numjobs=2\nloops=3",
        &log("0 a read 0 4096\n1 a trim 0 4096\n"),
    )
    .unwrap();
    assert_eq!(plan.jobs.len(), 2);
    let spec = &plan.jobs[1].spec;
    let has = Direction::ALL.map(|direction| spec.work.flows[direction as usize].is_some());
    assert_eq!(has, [true, false, true]);
    let replay = spec.work.replay.as_ref().unwrap();
    assert_eq!((replay.passes, replay.speed_percent), (3, Some(100)));
    assert_eq!(spec.stop.bytes, None);
}
