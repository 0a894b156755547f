//! Traces: true to the run, readable by others, without effect on results.

use zonelab_device::{Nanos, Op};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::library;
use zonelab_lab::run::{self, Point, PointResult, RunOptions};
use zonelab_lab::table::Style;
use zonelab_lab::trace::PointTrace;
use zonelab_ssd::record::{CommandRecord, RecordLimits, SlowestOf};

use super::perfetto::{self, Slice};
use super::support::{SMALL, Tiny, overrides, points};

const ALL: RecordLimits = RecordLimits::everything(1 << 20);

/// Read and transfer of a page on every drive here.
const READ: Nanos = Nanos::from_us(85);

fn run_points(points: &[Point], threads: usize) -> Vec<PointResult> {
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    let results = pool
        .install(|| run::run(points, &options))
        .expect("it runs");
    results.into_iter().flatten().collect()
}

fn traced(mut points: Vec<Point>, limits: RecordLimits, threads: usize) -> Vec<PointResult> {
    for point in &mut points {
        point.trace(limits);
    }
    run_points(&points, threads)
}

fn traces(results: Vec<PointResult>) -> Vec<PointTrace> {
    let traces = results.into_iter().filter_map(|result| result.trace);
    traces.map(|trace| *trace).collect()
}

/// The points of the example, by series.
fn example() -> Vec<Point> {
    let text = library::example("reset-under-reads").expect("it is built in");
    run::points("reset-under-reads.toml", text, &[]).expect("it is sound")
}

/// What is done here is what traces are for: a read that takes longer than
/// flash and channel need for it says that an erasure is what it waited for.
#[test]
fn a_trace_of_a_reset_under_reads_shows_the_erase_that_delays_a_read() {
    for trace in traces(traced(example(), ALL, 2)) {
        let mut delayed = 0;
        for (command, waits) in trace.waits() {
            let Op::Read { .. } = command.op else {
                continue;
            };
            let (completed, _) = command.completed.expect("all is done");
            let waits = waits.expect("all is recorded");
            let latency = completed - command.submitted;
            assert!(latency >= READ);
            let blocked: u64 = waits.blocked_by.iter().map(|(_, time)| time.0).sum();
            assert_eq!(latency.0, READ.0 + blocked, "{command:?}: {waits:?}");
            let by_erase = waits
                .blocked_by
                .iter()
                .find(|(by, _)| by == "erase (reset of zone 3)");
            delayed += u32::from(by_erase.is_some());
            // Reads do not take that long.
            assert!(
                latency < Nanos::from_us(1_000) || by_erase.is_some(),
                "{waits:?}"
            );
        }
        assert!(delayed > 0, "{}", trace.title);
    }
}

/// The same in the file, found by a reader of its own: the read, its time on
/// the die, and the erasure on that die which ends when the read starts there.
#[test]
fn the_file_links_a_delayed_read_to_the_erase() {
    let trace = &traces(traced(example(), ALL, 1))[0];
    let file = perfetto::read(&trace.perfetto());
    let is_delayed = |slice: &&Slice| {
        slice.track == ("Jobs".to_owned(), "read".to_owned()) && slice.end - slice.start > READ.0
    };
    let [read] = file.slices.iter().filter(is_delayed).collect::<Vec<_>>()[..] else {
        panic!("one read is delayed at depth 1 by erasures that are issued at once")
    };
    let erase = "erase (reset of zone 3)";
    assert_eq!(read.args["blocked_by"], erase);
    assert_eq!(read.arg("blocked_ns"), read.end - read.start - READ.0);
    assert_eq!(read.arg("waited_ns"), read.arg("blocked_ns"));
    assert!(read.name.starts_with("read 16 KiB zone "), "{}", read.name);
    assert!(read.name.ends_with(&format!("@{}", read.arg("lba"))));

    let of_read = |slice: &&Slice| slice.flow == read.flow && slice.track.0 == "Dies";
    let on_die = file
        .slices
        .iter()
        .find(of_read)
        .expect("an arrow leads to its die");
    assert_eq!(on_die.args["blocked_by"], erase);
    assert_eq!(on_die.arg("waited_ns"), read.arg("waited_ns"));
    assert_eq!(
        (on_die.end - on_die.start, on_die.end),
        (60_000, read.end - 25_000)
    );
    let before = file.slices.iter().find(|slice| {
        slice.track == on_die.track && slice.end == on_die.start && slice.category == "reset-erase"
    });
    let before = before.expect("the erasure is on the same die");
    assert_eq!(
        (before.name.as_str(), before.end - before.start),
        (erase, 3_500_000)
    );

    // The command that asked for it, the operation in the background, and its zone.
    let find = |group: &str, name: &str| {
        let mut named = file.slices.iter();
        named
            .find(|slice| slice.track.0 == group && slice.name == name)
            .unwrap_or_else(|| panic!("{name} in {group}"))
    };
    let (command, background) = (
        find("Jobs", "reset zone 3"),
        find("Background", "reset of zone 3"),
    );
    assert_eq!(command.flow, background.flow);
    assert_eq!(
        (command.start, command.end),
        (background.start, background.end)
    );
    assert_eq!(find("Zones and counters", "empty").track.1, "zone 3");
    let in_flight = &file.counters["commands in flight"];
    assert!(
        in_flight
            .iter()
            .any(|(at, n)| *at == 5_000_000 + 15_000 && *n == 2)
    );
}

/// Settings of the drive of `SMALL` under which all that can wait waits.
const DRIVES: &[&[&str]] = &[
    &[],
    &["media.page_register=hold"],
    &[
        "media.page_register=hold",
        "media.channel_arbitration=arrival",
    ],
    &["media.channel_arbitration=arrival"],
    &["media.die_queue=read-first"],
    &[
        "media.die_queue=read-first",
        "media.suspend.program=true",
        "media.suspend.erase=true",
        "media.suspend.overhead=5us",
        "media.suspend.max_per_operation=4",
    ],
    &[
        "reset.preemptive=true",
        "reset.timing=asynchronous",
        "reset.erase_at=background",
    ],
    &["reset.timing=asynchronous", "reset.erase_at=first-write"],
    &[
        "front_end.cores=1",
        "front_end.read=3us",
        "front_end.write=4us",
        "front_end.link=1GB/s",
    ],
];

/// Figure 4 of the paper on preemptive zone reset, as `docs/traces.md` shows it: the zone
/// of a writer is reset, and between two of its commands a row of the old flash is erased.
#[test]
fn the_trace_of_a_reset_shows_rows_erased_between_commands() {
    const ROWS: usize = 8;
    let text = library::text("P6").expect("it is built in");
    let fewer = overrides(&["job.0.zones=0", "job.0.bytes=1100MiB"]);
    let points = run::points("P6.toml", text, &fewer).expect("it is sound");
    let preemptive = |point: &Point| point.series() == "preemptive, 1 GiB";
    let points: Vec<_> = points.into_iter().filter(preemptive).collect();
    let (from, until) = (Nanos::from_us(3_060_000), Nanos::from_us(3_260_000));
    let limits = RecordLimits { from, until, ..ALL };
    let trace = &traces(traced(points, limits, 1))[0];
    let file = perfetto::read(&trace.perfetto());

    let of_group = |group: &str, name: &str| -> Vec<&Slice> {
        let named = |slice: &&Slice| slice.track.0 == group && slice.name.starts_with(name);
        file.slices.iter().filter(named).collect()
    };
    let resets = of_group("Jobs", "reset zone 0");
    let rows = of_group("Background", "row of physical zone 0");
    let writes = of_group("Jobs", "write 512 KiB zone 0 @");
    assert_eq!((resets.len(), rows.len()), (1, ROWS));
    assert!(rows[0].start >= resets[0].end);
    for row in &rows {
        assert_eq!(row.end - row.start, 5_000_000, "{row:?}");
        // It began when the host had nothing on its way; a command came meanwhile
        // that waited for this row alone, and the next row for that command.
        let is_pending = |write: &&&Slice| write.start < row.start && write.end > row.start;
        assert_eq!(writes.iter().find(is_pending), None, "{row:?}");
        let met = |write: &&&Slice| (row.start..row.end).contains(&write.start);
        let [write] = writes.iter().filter(met).collect::<Vec<_>>()[..] else {
            panic!("one command comes during {row:?}")
        };
        assert_eq!(write.args["blocked_by"], "erase (row of physical zone 0)");
        assert!(write.arg("blocked_ns") < 5_000_000, "{write:?}");
        let next = rows.iter().find(|next| next.start > row.start);
        assert!(next.is_none_or(|next| next.start >= write.end), "{row:?}");
    }
    // On each of the 32 dies: an erasure, the program of that command, an erasure, ...
    let erasures = of_group("Dies", "erase (row of physical zone 0)");
    assert_eq!(erasures.len(), 32 * ROWS);
    let die = &erasures[0].track;
    let on_die = file.slices.iter().filter(|slice| slice.track == *die);
    let after = on_die.filter(|slice| slice.start >= rows[0].start);
    let kinds: Vec<&str> = after.map(|slice| slice.category.as_str()).collect();
    let expected = ["reset-erase", "host-write"].repeat(ROWS);
    assert_eq!(kinds[..2 * ROWS], expected);
}

#[test]
fn the_parts_of_a_latency_add_up_to_it() {
    for settings in DRIVES {
        let mut points = points(SMALL, &[]).expect("it is sound");
        for point in &mut points {
            point.set_drive(&overrides(settings)).unwrap();
        }
        let mut blocked = 0;
        for trace in traces(traced(points, ALL, 2)) {
            for (command, waits) in trace.waits() {
                let (completed, _) = command.completed.expect("all is done");
                let waits = waits.expect("all is recorded");
                let latency = completed - command.submitted;
                assert_eq!(waits.total(), latency, "{settings:?} {command:?} {waits:?}");
                blocked += waits.blocked_by.len();
            }
            // Reading it checks that nothing on a track overlaps.
            perfetto::read(&trace.perfetto());
        }
        assert!(blocked > 0, "{settings:?}: nothing ever waited");
    }
}

#[test]
fn results_are_the_same_with_and_without_a_trace() {
    for (limit, threads) in [(1 << 20, 1), (1 << 20, 2), (5, 2)] {
        let points = points(SMALL, &[]).expect("it is sound");
        let plain = run_points(&points, 1);
        let mut results = traced(points, RecordLimits::everything(limit), threads);
        for result in &mut results {
            assert!(result.trace.take().is_some());
        }
        assert_eq!(format!("{plain:?}"), format!("{results:?}"));
    }
}

#[test]
fn traces_are_the_same_bytes_on_any_number_of_threads() {
    let written = |threads| -> Vec<_> {
        let points = points(SMALL, &[]).expect("it is sound");
        let traces = traces(traced(points, ALL, threads));
        let files = |trace: &PointTrace| {
            let text = trace.summary(&trace.explain(), &Style::default());
            (trace.perfetto(), trace.zone_history_csv(), text)
        };
        traces.iter().map(files).collect()
    };
    let one = written(1);
    assert_eq!(one.len(), 6);
    for threads in [2, 5] {
        assert!(one == written(threads), "{threads} threads");
    }
}

#[test]
fn bounds_hold_in_the_file_and_it_says_what_is_missing() {
    let limits = RecordLimits::everything(40);
    let trace = &traces(traced(example(), limits, 1))[0];
    let whole = &traces(traced(example(), ALL, 1))[0];
    let dropped = trace.dropped().expect("40 records are not all");
    let record = &trace.record;
    let missing = whole.record.commands.records.len() - record.commands.records.len();
    assert_eq!(record.commands.dropped, missing as u64);
    assert!(
        dropped.contains(&format!("{missing} commands")),
        "{dropped}"
    );
    let file = perfetto::read(&trace.perfetto());
    let on_resources = |slice: &&Slice| ["Dies", "Channels"].contains(&slice.track.0.as_str());
    assert_eq!(file.slices.iter().filter(on_resources).count(), 40);
    assert!(
        file.slices
            .iter()
            .filter(|slice| slice.track.0 == "Jobs")
            .count()
            <= 40
    );
    let [about, end] = &file.instants[..] else {
        panic!("{:?}", file.instants)
    };
    assert_eq!(about.arg("dropped_commands"), missing as u64);
    assert_eq!(end.name, format!("records end here: {dropped} dropped"));
    let complete_until = record.complete_until.expect("something was dropped");
    assert_eq!(end.start, complete_until.0);
    assert!(
        trace
            .summary(&[], &Style::default())
            .contains(&format!("dropped: {dropped}"))
    );
    assert_eq!(whole.dropped(), None);
}

#[test]
fn a_window_holds_what_happens_in_it() {
    let (from, until) = (Nanos::from_us(20_000), Nanos::from_us(30_000));
    let limits = RecordLimits { from, until, ..ALL };
    let trace = &traces(traced(example(), limits, 1))[3];
    let file = perfetto::read(&trace.perfetto());
    assert!(trace.title.contains("preemptive"), "{}", trace.title);
    assert!(file.slices.len() > 20, "{}", file.slices.len());
    // Of commands that began before it or ended after it, not all is known.
    let waits = trace.waits().into_iter();
    let (known, unknown): (Vec<_>, Vec<_>) = waits.partition(|(_, waits)| waits.is_some());
    let is_inside = |command: &CommandRecord| {
        let completed = command.completed.map(|(at, _)| at);
        command.submitted >= from && completed.is_some_and(|at| at <= until)
    };
    assert!(known.iter().all(|(command, _)| is_inside(command)));
    assert!(!unknown.is_empty() && unknown.iter().all(|(command, _)| !is_inside(command)));
    for slice in &file.slices {
        assert!(slice.start < until.0 && slice.end > from.0, "{slice:?}");
    }
    assert_eq!(trace.dropped(), None);
}

#[test]
fn zone_history_and_summary_are_as_documented() {
    let limits = RecordLimits {
        slowest: SlowestOf::both(10),
        ..ALL
    };
    let trace = &traces(traced(example(), limits, 1))[0];
    let csv = trace.zone_history_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "time_ns,zone,from,to,written_lbas");
    assert_eq!(lines[1], "0,3,empty,full,0");
    assert_eq!(lines[6..], ["5000000,3,full,empty,270336"]);
    let summary = trace.summary(&trace.explain(), &Style::default());
    let slowest = summary
        .lines()
        .skip_while(|line| !line.starts_with("slowest reads"))
        .nth(2)
        .expect("a line for the slowest read");
    assert!(
        slowest.contains("erase (reset of zone 3) 76.98 ms"),
        "{summary}"
    );
    assert!(
        summary.contains("channel 0 way 0 die 0 plane 0"),
        "{summary}"
    );
}

/// Reads that come while an erasure has used up its suspends wait for its end, and are told
/// so; with suspends left, nobody waits for an erasure that long.
#[test]
fn an_erasure_that_has_used_up_its_suspends_is_named() {
    let waited = |most: u32| {
        let mut points = example();
        let most = format!("media.suspend.max_per_operation={most}");
        let sets = overrides(&[
            "media.channel_arbitration=ready",
            "media.die_queue=read-first",
            "media.suspend.erase=true",
            "media.suspend.overhead=5us",
            &most,
        ]);
        for point in &mut points {
            point.set_drive(&sets).expect("settings of a drive");
        }
        let mut longest: Option<(String, Nanos)> = None;
        for trace in traces(traced(points, ALL, 2)) {
            let waits = trace.waits().into_iter().filter_map(|(_, waits)| waits);
            let erases = waits.flat_map(|waits| waits.blocked_by);
            let erases = erases.filter(|(by, _)| by.starts_with("erase ("));
            longest = longest
                .into_iter()
                .chain(erases)
                .max_by_key(|(_, time)| *time);
        }
        longest.expect("reads meet erasures")
    };
    let (by, time) = waited(2);
    assert_eq!(
        by,
        "erase (reset of zone 3; suspended 2 times, and no more)"
    );
    assert!(time > Nanos::from_us(1_000), "{time}");
    let (by, time) = waited(10_000);
    assert!(!by.contains("no more"), "{by}");
    assert!(time < Nanos::from_us(100), "{time}");
}
