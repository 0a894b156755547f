//! What a point measures, and which points cannot be run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use zonelab_host::stats::OpKind;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::run::{self, DriveMeasured, PointResult, RunOptions};
use zonelab_lab::wear::WearUnit;

use super::support::{SMALL, Tiny, points, run, with};

/// What is said of the first point that cannot be run.
fn unfit(text: &str) -> String {
    let points = points(text, &[]).expect("the file is sound");
    let said = points.iter().find_map(|point| point.check(&Tiny).err());
    said.expect("one point cannot be run").to_string()
}

/// What the drive of a point did: all of these are emulated.
fn drive_of(result: &PointResult) -> &DriveMeasured {
    result.drive.as_ref().expect("it is emulated")
}

#[test]
fn a_point_counts_what_its_drive_did() {
    let results = run(SMALL, 1, 2).unwrap();
    let alone = &results[0];
    assert_eq!((alone.jobs.len(), alone.jobs[0].kind), (1, OpKind::Read));
    let reads = alone.jobs[0].metrics.get("ops").unwrap();
    // 20 ms of reads that take 85 us of flash and 5 us of host, and jitter.
    assert!((190.0..=222.0).contains(&reads), "{reads} reads");
    let drive = drive_of(alone);
    assert_eq!(drive.totals.host_read_bytes / 16_384, alone.operations);
    assert_eq!((drive.totals.resets, drive.totals.host_write_bytes), (0, 0));

    let beside = &results[1];
    let resets = beside.jobs[1].metrics.get("ops").unwrap();
    assert_eq!(beside.jobs[1].kind, OpKind::Reset);
    let drive = drive_of(beside);
    assert_eq!((resets as u64, drive.totals.resets), (4, 4));
    assert_eq!(
        drive.totals.host_write_bytes,
        4 * 16_384,
        "a page before each"
    );
    assert!(drive.busy_ns.1["reset-erase"] > 0, "{:?}", drive.busy_ns);
}

/// Metrics of a host and a drive that are exact: reads of 85 us, 5 us of host.
#[test]
fn metrics_agree_with_each_other() {
    let text = with(SMALL, "jitter = \"1us\"\nstart_spread = \"50us\"\n", "");
    let text = with(&text, "runtime = \"20ms\"", "runtime = \"9s\"");
    let results = run(&with(&text, "values = [1, 2, 4]", "values = [4, 1]"), 1, 2).unwrap();
    let one = results
        .iter()
        .find(|r| r.x.text == "1" && r.series == "alone")
        .unwrap();
    let value = |metric: &str| one.jobs[0].metrics.get(metric).unwrap();
    assert!((value("ops") - 100_000.0).abs() <= 1.0, "{}", value("ops"));
    for metric in [
        "lat_mean_us",
        "lat_min_us",
        "lat_p50_us",
        "lat_p95_us",
        "lat_max_us",
    ] {
        assert!(
            (value(metric) - 90.0).abs() < 0.1,
            "{metric} {}",
            value(metric)
        );
    }
    for metric in ["kiops", "kiops_by_count"] {
        assert!(
            (value(metric) - 1e3 / 90.0).abs() < 0.01,
            "{metric} {}",
            value(metric)
        );
    }
    assert!((value("ops_s") - 1e6 / 90.0).abs() < 1.0);
    assert!((value("mib_s") - 1e6 / 90.0 / 64.0).abs() < 0.1);
    assert_eq!(
        one.jobs[0].metrics.get("first_write_mean_us"),
        None,
        "it wrote nothing"
    );
    let (low, high) = one.jobs[0].metrics.neighbours["lat_p95_us"];
    assert!(low <= value("lat_p95_us") && value("lat_p95_us") <= high);
}

/// Each mapping shows what it erases: blocks, or elements on the planes they have.
#[test]
fn a_map_of_wear_has_every_erasure() {
    let mappings = [
        ("\"mapping.design=direct\"", WearUnit::Block, (2, 1)),
        (
            "\"mapping.design=chunk\", \"finish.extent=elements\"",
            WearUnit::Element,
            (2, 1),
        ),
        (
            "\"mapping.design=stripe\", \"finish.extent=elements\"",
            WearUnit::Element,
            (1, 2),
        ),
    ];
    for (drive, unit, (rows, blocks)) in mappings {
        let settings = format!("drive = [{drive}]\njobs = [\"read\", \"reset\"]");
        let text = with(SMALL, "jobs = [\"read\", \"reset\"]", &settings);
        // Each zone four times over: they are erased whenever a mapping does that.
        let text = with(
            &text,
            "work = \"reset\"\nzones = \"4..=7\"\nfill = \"16KiB\"\nshuffled = true\nrate_ops = 300",
            "work = \"write\"\nzones = \"4..=7\"\nblock = \"16KiB\"\nrepeat = true\nbytes = \"3840KiB\"",
        );
        let text = with(&text, "runtime = \"20ms\"", "runtime = \"400ms\"");
        let results = run(&text, 1, 1).unwrap();
        let beside = results.iter().find(|result| result.series != "alone");
        let beside = beside.expect("there is such a series");
        let of_drive = drive_of(beside);
        let erased = of_drive.totals.erased_blocks;
        let Some(map) = &of_drive.detail.wear_map else {
            panic!("{drive}: {erased} blocks erased, and no map");
        };
        assert_eq!(
            (map.unit, map.rows.len(), map.per_cell),
            (unit, rows, 1),
            "{drive}"
        );
        let tenths: u64 = map.rows.iter().flat_map(|row| &row.tenths).sum();
        assert_eq!(tenths / 10 * blocks, erased, "{drive}");
        assert_eq!(map.rows[rows - 1].planes.1, 1, "{drive}");
    }
    let results = run(SMALL, 1, 1).unwrap();
    let alone = results.iter().find(|result| result.series == "alone");
    assert!(alone.is_some_and(|alone| drive_of(alone).detail.wear_map.is_none()));
}

/// Phases follow one another on one drive; each job is measured by itself.
#[test]
fn phases_follow_one_another() {
    let text = with(
        SMALL,
        "jobs = [\"read\"]",
        "phases = [[\"reset\"], [\"read\"]]",
    );
    let results = run(&text, 1, 1).unwrap();
    let point = &results[0];
    let names: Vec<_> = point.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["reset", "read"]);
    assert!(
        point.took > zonelab_device::Nanos::from_ms(30),
        "one after the other"
    );
}

#[test]
fn jobs_that_do_not_fit_the_drive_are_refused() {
    let place = "small, series \"alone\", depth 1: ";
    let zones = with(SMALL, "\nzones = \"0..=3\"", "\nzones = \"0..=8\"");
    let says = format!(
        "{place}job \"read\": thread 0 needs zones 0 to 8, but its zones end at 8 and the drive's at 7"
    );
    assert_eq!(unfit(&zones), says);
    let threads = with(
        SMALL,
        "\nzones = \"0..=3\"",
        "\nzones = \"0..=3\"\nthreads = 5",
    );
    assert_eq!(
        unfit(&threads),
        format!("{place}job \"read\": 5 threads do not find a zone each in 4")
    );
    let block = with(SMALL, "block = \"16KiB\"", "block = \"5000B\"");
    let says = unfit(&block);
    assert!(
        says.contains("block of 5000 bytes is no multiple of the logical block of 4096"),
        "{says}"
    );
    let scheduler = format!(
        "{SMALL}\n[[scheduler]]\nname = \"small\"\nkind = \"mq-deadline\"\nmax_request = \"512B\"\n"
    );
    let scheduler = with(
        &scheduler,
        "name = \"alone\"",
        "name = \"alone\"\nscheduler = \"small\"",
    );
    assert_eq!(
        unfit(&scheduler),
        format!("{place}mq-deadline.max_request = 512 is out of range: 4096 to 268435456 bytes")
    );
    let endless = with(SMALL, "runtime = \"20ms\"\nends_run = true\n", "");
    let says = unfit(&endless);
    assert!(
        says.contains("job \"read\" never ends: give it a runtime"),
        "{says}"
    );
    let profile = with(SMALL, "profile = \"tiny\"", "profile = \"tinny\"");
    assert!(
        unfit(&profile).contains("no built-in profile"),
        "{}",
        unfit(&profile)
    );
    let drive = with(
        SMALL,
        "full_zones = \"0..=3\"\njobs = [\"read\"]",
        "full_zones = \"0..=3\"\njobs = [\"read\"]\ndrive = [\"media.raed=1us\"]",
    );
    assert!(
        unfit(&drive).contains("did you mean `read`?"),
        "{}",
        unfit(&drive)
    );
}

/// An operation that the drive refuses ends the run, with what failed.
#[test]
fn an_error_of_the_drive_is_reported() {
    let text = with(SMALL, "fill = \"16KiB\"", "");
    let text = with(&text, "work = \"reset\"", "work = \"write\"");
    let text = with(&text, "shuffled = true\n", "");
    let text = with(
        &text,
        "full_zones = \"0..=3\"\njobs = [\"read\"]",
        "full_zones = \"0..=4\"\njobs = [\"reset\"]",
    );
    let says = run(&text, 1, 2).unwrap_err().to_string();
    // The first of its zones that is full.
    let start = "small, series \"alone\", depth 1: job \"reset\" failed: write at LBA 0x";
    let end = ", zone 4 of namespace 1: Zone Is Full (0x1b9)";
    assert!(says.starts_with(start) && says.ends_with(end), "{says}");
}

/// Settings of the command line come after those of the file.
#[test]
fn the_last_setting_of_the_drive_counts() {
    let text = with(
        SMALL,
        "profile = \"tiny\"",
        "profile = \"tiny\"\ndrive = [\"media.read=70us\"]",
    );
    let mut point = points(&text, &[]).unwrap().remove(0);
    let read = |point: &run::Point| point.drive(&Tiny).unwrap().config.media.read_ns.0;
    assert_eq!(read(&point), 70_000);
    let set = super::support::overrides(&["media.read=80us"]);
    point.set_drive(&set).unwrap();
    assert_eq!(read(&point), 80_000);
}

/// What is interrupted gives what was done, and says which points are missing.
#[test]
fn an_interrupted_run_keeps_what_was_done() {
    let points = points(SMALL, &[]).unwrap();
    let done = AtomicUsize::new(0);
    let seen = Mutex::new(Vec::new());
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|_, result| {
            done.fetch_add(1, Ordering::Relaxed);
            seen.lock().unwrap().push(result.x.text.clone());
        },
        interrupted: &|| done.load(Ordering::Relaxed) >= 2,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let results = pool.install(|| run::run(&points, &options)).unwrap();
    assert_eq!(results.len(), 6);
    assert_eq!(results.iter().flatten().count(), 2);
    // The largest axis value is the most work, and comes first.
    assert_eq!(*seen.lock().unwrap(), ["4", "4"]);
    assert!(results[..4].iter().all(Option::is_none) && results[4].is_some());
}

/// A point that nobody waits for any more is left in the middle: it would run for days of
/// the drive's time.
#[test]
fn an_abandoned_point_is_left_while_it_runs() {
    let points = points(SMALL, &["job.0.runtime=1000000s"]).unwrap();
    let asked = AtomicUsize::new(0);
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed: 1,
        profiles: &Tiny,
        on_point: &|_, _| panic!("no point comes to its end"),
        interrupted: &|| false,
        abandoned: &|| asked.fetch_add(1, Ordering::Relaxed) >= 10,
    };
    let results = run::run(&points[..1], &options).unwrap();
    assert!(results[0].is_none());
    asked.store(0, Ordering::Relaxed);
    let results = run::run_repeated(&points[..1], &options, &|_| {}).unwrap();
    assert!(results[0].is_none());
    assert!(asked.into_inner() > 10);
}

/// What the users of a drive see of a reset is not what a job sees that waits for each of its
/// reads: 1 read in 271 is slow there, and nearly all are late for who does not wait.
#[test]
fn arrivals_that_do_not_wait_meet_the_stall() {
    let file = include_str!("../../data/examples/reset-under-reads.toml");
    let open = with(
        file,
        "queue_depth = \"$x\"",
        "arrival = \"fixed\"\nrate_ops = 2000",
    );
    let results = run(&open, 1, 2).unwrap();
    let of = |results: &[PointResult], series: &str, metric: &str| {
        let mut points = results.iter();
        let point = points.find(|of| of.series == series).expect("a series");
        point.jobs[0].metrics.get(metric).expect("it was measured")
    };
    let p95_ms = |series| of(&results, series, "lat_p95_us") / 1e3;
    assert!(
        (p95_ms("all at once") - 71.8).abs() < 0.5,
        "{}",
        p95_ms("all at once")
    );
    assert!(
        (p95_ms("preemptive") - 3.4).abs() < 0.3,
        "{}",
        p95_ms("preemptive")
    );
    let ops = of(&results, "all at once", "ops");
    assert!(
        (ops - 200.0).abs() < 0.5,
        "all that were due in 100 ms, and not {ops}"
    );

    // The closed job says what it leaves out.
    let closed = run(file, 1, 2).unwrap();
    assert!(of(&closed, "all at once", "lat_p95_us") < 100.0);
    assert!(of(&closed, "all at once", "lat_by_time_p95_us") > 76_000.0);
    let blocked = of(&closed, "all at once", "blocked_share");
    assert!((0.7..0.9).contains(&blocked), "{blocked}");
}

/// What cannot be is refused with what would be.
#[test]
fn arrivals_need_a_rate_and_transfers() {
    let file = include_str!("../../data/examples/reset-under-reads.toml");
    let depth = "queue_depth = \"$x\"";
    for (from, to, says) in [
        (depth, "arrival = \"fixed\"", "say `rate_ops`, or `rate`"),
        (
            depth,
            "arrival = \"poisson\"\nrate_ops = 9\nrate_counts = \"issue\"",
            "counts when it is due",
        ),
        (
            "start = \"5ms\"",
            "arrival = \"poisson\"\nrate_ops = 9",
            "zones are managed one after another",
        ),
        ("start = \"5ms\"", "repeat = true", "say `fill`"),
    ] {
        let errors = points(&with(file, from, to), &[]).expect_err(to);
        assert!(errors.to_string().contains(says), "{to}: {errors}");
    }
}

/// A drive that does not keep up with its arrivals, and zones that are full before the time of a
/// job is over, are said beside the numbers.
#[test]
fn arrivals_that_are_not_met_are_named() {
    let file = |job: &str| {
        format!(
            "schema = 1\nid = \"x\"\ntitle = \"x\"\nprofile = \"tiny\"\n[[job]]\nname = \"j\"\n{job}\n\
             arrival = \"poisson\"\nblock = \"16KiB\"\nruntime = \"100ms\"\n\
             [[series]]\nname = \"s\"\nfull_zones = \"4..=5\"\njobs = [\"j\"]\n"
        )
    };
    for (job, says) in [
        (
            "work = \"read\"\nzones = \"4..=5\"\nrate_ops = 1_000_000",
            Some("the drive does not keep up with the rate"),
        ),
        (
            "work = \"write\"\nzones = \"0..=0\"\nrate_ops = 100_000",
            Some("its zones were full"),
        ),
        ("work = \"read\"\nzones = \"4..=5\"\nrate_ops = 1_000", None),
    ] {
        let file = file(job);
        let points = points(&file, &[]).expect("the file is sound");
        let results = run(&file, 1, 1).unwrap();
        let measured = (points[0].experiment(), &points[..], &results[..]);
        let said = zonelab_lab::idle::warnings(&[measured], true);
        match says {
            Some(says) => assert!(said.iter().any(|of| of.contains(says)), "{says}: {said:?}"),
            None => assert_eq!(said, [""; 0]),
        }
    }
}

/// A drive that erases with the first write after a reset owes the erasure until then: two
/// blocks of 3.5 ms for each zone that held something. One that erases at once owes nothing.
#[test]
fn what_is_put_off_is_owed() {
    let file = |drive: &str| {
        format!(
            "schema = 1\nid = \"x\"\ntitle = \"x\"\nprofile = \"tiny\"\ndrive = [{drive}]\n\
             [[job]]\nname = \"j\"\nwork = \"reset\"\nzones = \"4..=6\"\n\
             [[series]]\nname = \"s\"\nfull_zones = \"4..=7\"\njobs = [\"j\"]\n"
        )
    };
    let later = "\"reset.timing=asynchronous\", \"reset.erase_at=first-write\", \
                 \"mapping.design=lazy\"";
    for (drive, blocks) in [("", 0), (later, 6)] {
        let file = file(drive);
        let results = run(&file, 1, 1).unwrap();
        let owed = drive_of(&results[0]).owed;
        let (cached, unfilled) = (owed.cached_bytes, owed.unfilled_bytes);
        assert_eq!((owed.stale_blocks, cached, unfilled), (blocks, 0, 0));
        assert_eq!(owed.die_time.0, blocks * 3_500_000);
        // All of it, where the dies did nothing.
        let share = (blocks > 0).then_some(1.0);
        assert_eq!(results[0].jobs[0].metrics.get("owed_share"), share);
        let points = points(&file, &[]).expect("the file is sound");
        let measured = (points[0].experiment(), &points[..], &results[..]);
        let said = zonelab_lab::idle::warnings(&[measured], true);
        let says = |of: &String| of.contains("still owed at the end (6 blocks to be erased)");
        assert_eq!(said.iter().any(says), blocks > 0, "{said:?}");
    }
}

/// A finish that only changes the state of its zone fills nothing; one that fills counts what the
/// zone lacked.
#[test]
fn finishes_count_what_they_fill() {
    let file = |drive: &str| {
        format!(
            "schema = 1\nid = \"x\"\ntitle = \"x\"\nprofile = \"tiny\"\ndrive = [{drive}]\n\
             [[job]]\nname = \"j\"\nwork = \"finish\"\nzones = \"4..=6\"\n\
             [[series]]\nname = \"s\"\njobs = [\"j\"]\n"
        )
    };
    let takes_time = "\"front_end.cores=1\", \"front_end.management=5us\"";
    let metadata = "\"finish.design=metadata\", \"finish.granularity=\"";
    for (drive, fills) in [
        (takes_time.to_owned(), true),
        (format!("{takes_time}, {metadata}"), false),
    ] {
        let results = run(&file(&drive), 1, 1).unwrap();
        let metric = |name| results[0].jobs[0].metrics.get(name);
        assert_eq!(metric("mib_s").unwrap() > 0.0, fills);
        assert_eq!(metric("nothing_share"), Some(0.0));
        let filled = drive_of(&results[0]).totals.fill_program_bytes as f64;
        let counted = metric("mib_s").unwrap() / metric("ops_s").unwrap() * 3.0;
        assert!(
            (counted * (1 << 20) as f64 - filled).abs() < 1.0,
            "{counted} {filled}"
        );
    }
}

/// Reads "beside resets" are beside writes if the resets' zones are filled first, and beside
/// resets if they are full.
#[test]
fn jobs_that_mostly_prepare_are_named() {
    let file = |reset: &str, full: &str| {
        format!(
            "schema = 1\nid = \"x\"\ntitle = \"x\"\nprofile = \"tiny\"\n\
             [[job]]\nname = \"reset\"\nwork = \"reset\"\nzones = \"2..=4\"\n{reset}ends_run = true\n\
             [[job]]\nname = \"read\"\nwork = \"read\"\nzones = \"0..=1\"\n\
             [[series]]\nname = \"s\"\nfull_zones = \"0..={full}\"\njobs = [\"read\", \"reset\"]\n"
        )
    };
    for (reset, full, is_named) in [("fill = \"100%\"\n", "1", true), ("", "4", false)] {
        let file = file(reset, full);
        let points = points(&file, &[]).expect("the file is sound");
        let results = run(&file, 1, 1).unwrap();
        let measured = (points[0].experiment(), &points[..1], &results[..1]);
        let said = zonelab_lab::idle::warnings(&[measured], true);
        let names = |of: &String| of.contains("what ran beside it ran beside writes");
        assert_eq!(said.iter().any(names), is_named, "{said:?}");
    }
}
