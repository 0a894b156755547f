//! What a reader would conclude from numbers of an experiment of their own, and whether it is so.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// The metrics of each job of each series.
type Measured = BTreeMap<String, BTreeMap<String, f64>>;

/// Runs a file of experiments: what each job of each series at each axis value measured, and what
/// was said.
fn run(scratch: &Scratch, text: &str, more: &[&str]) -> (Measured, String) {
    scratch.write("e.toml", text);
    let output = scratch.zonelab(&[&["run", "e.toml", "--out", "out", "--force"], more].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let mut found = Measured::new();
    for line in scratch.read("out/points.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let metrics = found
            .entry(format!("{} {}", cells[1], cells[4]))
            .or_default();
        metrics.insert(cells[5].to_owned(), cells[7].parse().unwrap_or(f64::NAN));
    }
    (found, said)
}

/// Zones are filled so that there is something to reset and to finish: that is no part of how fast
/// they are reset and finished.
#[test]
fn making_zones_ready_takes_no_time_of_a_rate() {
    let scratch = Scratch::new("conclusions-ready");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"confznspp\"\n\
        [[job]]\nname = \"filled\"\nwork = \"reset\"\nzones = \"0..=7\"\nfill = \"100%\"\n\
        [[job]]\nname = \"found\"\nwork = \"reset\"\nzones = \"0..=7\"\n\
        [[job]]\nname = \"finish\"\nwork = \"finish\"\nzones = \"8..=15\"\nfill = \"50%\"\n\
        [[series]]\nname = \"a\"\njobs = [\"filled\"]\n\
        [[series]]\nname = \"b\"\nfull_zones = \"0..=7\"\njobs = [\"found\"]\n\
        [[series]]\nname = \"c\"\njobs = [\"finish\"]\n";
    let (found, _) = run(&scratch, text, &[]);
    let of = |place: &str, metric: &str| found[place][metric];
    for metric in ["ops_s", "mib_s", "kiops_by_count"] {
        let (filled, other) = (of("a filled", metric), of("b found", metric));
        assert!(
            (filled / other - 1.0).abs() < 0.01,
            "{metric}: {filled} {other}"
        );
    }
    let by_latency = 1e6 / of("c finish", "lat_mean_us");
    let by_count = of("c finish", "ops_s");
    assert!(
        (by_count / by_latency - 1.0).abs() < 0.01,
        "{by_count} {by_latency}"
    );
}

/// M of an experiment that nobody published is by count: slow operations, in samples of half a
/// second, are as many as there are samples with one.
#[test]
fn interference_counts_operations() {
    let scratch = Scratch::new("conclusions-count");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"confznspp\"\n\
        [[job]]\nname = \"f\"\nwork = \"finish\"\nzones = \"0..=7\"\nthreads = 4\nends_run = true\n\
        [[job]]\nname = \"other\"\nwork = \"finish\"\nzones = \"8..=39\"\nthreads = 4\n\
        [[series]]\nname = \"alone\"\njobs = [\"f\"]\n\
        [[series]]\nname = \"beside\"\njobs = [\"f\", \"other\"]\n\
        [[interference]]\nseries = \"beside\"\nisolated = \"alone\"\njob = \"f\"\nalpha = \"100%\"\n\
        [[check]]\nsays = \"s\"\nat_least = 0\n\
        value = { series = \"alone\", job = \"f\", metric = \"kiops\" }\n\
        [[job]]\nname = \"unused\"\nwork = \"read\"\nzones = \"0..=3\"\nruntime = \"1s\"\n";
    let (found, said) = run(&scratch, text, &[]);
    let by_count = |place: &str| found[place]["kiops_by_count"];
    let expected = 1.0 - by_count("beside f") / by_count("alone f");
    let rows: Value = serde_json::from_str(&scratch.read("out/rows.json")).unwrap();
    let rows = rows["rows"].as_array().unwrap();
    let m = rows.iter().find(|row| row["metric"] == "m_inter").unwrap();
    let m = m["ours"].as_f64().unwrap();
    assert!(
        (m - expected).abs() < 1e-3 && m > 0.3,
        "{m}, by count {expected}"
    );
    assert!(said.contains("by count it is "), "{said}");
    assert!(
        said.contains("job \"unused\" is in no series: it is not run"),
        "{said}"
    );
}

/// Two jobs with a rate meet by chance: repeats show by how much their latencies vary with it.
#[test]
fn jobs_with_a_rate_begin_when_the_seed_says() {
    let scratch = Scratch::new("conclusions-phase");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"confznspp\"\n\
        [[job]]\nname = \"w\"\nwork = \"write\"\nzones = \"0..=15\"\nblock = \"64KiB\"\nrate_ops = 160\n\
        runtime = \"500ms\"\n\
        [[job]]\nname = \"r\"\nwork = \"read\"\nzones = \"16..=31\"\nblock = \"16KiB\"\nrate_ops = 80\n\
        runtime = \"500ms\"\n\
        [[series]]\nname = \"both\"\njobs = [\"w\", \"r\"]\nfull_zones = \"16..=31\"\n";
    let mean = |seed: &str| {
        let (found, _) = run(&scratch, text, &["--seed", seed]);
        found["both r"]["lat_mean_us"]
    };
    let means: Vec<f64> = ["1", "2", "3", "4", "5", "6", "7", "8"].map(mean).to_vec();
    let quiet = means.iter().filter(|mean| **mean < 100.0).count();
    // A write takes 725 of 6,250 us: most reads meet none.
    assert!(quiet >= 4, "{means:?}");
    let same = means
        .windows(2)
        .filter(|pair| (pair[0] - pair[1]).abs() < 1e-9);
    assert!(same.count() < 7, "{means:?}");

    // fio's jobs as well.
    let jobs = [
        "--name=w",
        "--rw=write",
        "--bs=64k",
        "--size=8z",
        "--rate_iops=160",
        "--runtime=1",
        "--time_based",
        "--name=r",
        "--rw=randread",
        "--bs=16k",
        "--offset=8z",
        "--size=8z",
        "--rate_iops=80",
        "--runtime=1",
        "--time_based",
    ];
    let fio = |seed: &str| {
        let drive = [
            "fio",
            "--device=confznspp",
            "--full-zones=8..=15",
            "--output-format=json",
        ];
        let output = scratch.zonelab(&[&drive[..], &["--seed", seed], &jobs].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["jobs"][1]["read"]["lat_ns"]["mean"].as_f64().unwrap()
    };
    let means: Vec<f64> = ["1", "2", "3", "4", "5", "6", "7", "8"].map(fio).to_vec();
    let quiet = means.iter().filter(|mean| **mean < 100e3).count();
    assert!(quiet >= 4, "{means:?}");
}

/// What `run` says of one setting, a sweep says of many.
#[test]
fn a_sweep_says_what_a_run_says() {
    let scratch = Scratch::new("conclusions-sweep");
    scratch.write(
        "e.toml",
        "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"small-zones\"\n\
        [[job]]\nname = \"store\"\nwork = \"kv\"\nkv.workload = \"ycsb-c\"\n\
        kv.records = 2000\nkv.operations = 2000\n\
        [[job]]\nname = \"open\"\nwork = \"write\"\nzones = \"0..=7\"\nblock = \"64KiB\"\n\
        rate_ops = 20000\narrival = \"poisson\"\nruntime = \"50ms\"\nrepeat = true\n\
        [[series]]\nname = \"a\"\njobs = [\"store\"]\n\
        [[series]]\nname = \"b\"\njobs = [\"open\"]\n",
    );
    let sweep = "schema = 1\ntitle = \"s\"\nexperiment = \"e.toml\"\n\
        [[vary]]\nkey = \"drive.media.read\"\nvalues = [\"40us\", \"60us\"]\n";
    scratch.write("s.toml", sweep);
    let swept = scratch.zonelab(&["sweep", "s.toml", "--quiet", "--out", "out"]);
    let said = String::from_utf8_lossy(&swept.stdout).into_owned() + &stderr(&swept);
    for part in [
        "reads nothing from the drive",
        "the drive does not keep up with the rate",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A job whose operation failed has no trace of what it was to do.
#[test]
fn a_trace_of_a_job_that_failed_says_so() {
    let scratch = Scratch::new("conclusions-trace");
    scratch.write(
        "e.toml",
        "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"small-zones\"\n\
        [[job]]\nname = \"w\"\nwork = \"write\"\nzones = \"0..=3\"\nblock = \"16KiB\"\n\
        runtime = \"100ms\"\n[[series]]\nname = \"a\"\njobs = [\"w\"]\n",
    );
    scratch.write(
        "f.toml",
        "[[fault]]\non = \"write\"\nskip = 5\ncount = 1\neffect = \"fail\"\n",
    );
    let output = scratch.zonelab(&["trace", "e.toml", "--faults", "f.toml"]);
    let said = stderr(&output);
    assert!(said.contains("job \"w\" ended by a failure"), "{said}");
    assert_eq!(output.status.code(), Some(5), "{said}");
}

/// `io_size` is done as often as `loops` says, and is what is written, whatever is trimmed before.
#[test]
fn sizes_of_fio_jobs_are_what_they_do() {
    let scratch = Scratch::new("conclusions-fio");
    let fio = |job: &[&str]| {
        let drive = [
            "fio",
            "--device=small-zones",
            "--output-format=json",
            "--name=a",
        ];
        let output = scratch.zonelab(&[&drive[..], job].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["jobs"][0].clone()
    };
    let job = [
        "--rw=write",
        "--bs=16k",
        "--size=4z",
        "--io_size=512k",
        "--loops=3",
    ];
    assert_eq!(fio(&job)["write"]["total_ios"], 96);
    let job = [
        "--rw=trimwrite",
        "--bs=16k",
        "--size=4z",
        "--io_size=512k",
        "--full-zones=all",
    ];
    let job = fio(&job);
    assert_eq!(job["write"]["total_ios"], 32, "{job}");
    assert_eq!(job["trim"]["total_ios"], 1, "{job}");
}

/// Devices agree in nothing when what they did was nothing.
#[test]
fn devices_do_not_agree_about_nothing() {
    let scratch = Scratch::new("conclusions-against");
    let job = [
        "fio",
        "--device=small-zones",
        "--against=small-zones",
        "--name=a",
        "--rw=randread",
        "--bs=4k",
        "--size=4z",
        "--read_beyond_wp=1",
        "--number_ios=20000",
    ];
    let output = scratch.zonelab(&job);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("cannot be judged here"), "{said}");
    assert_ne!(output.status.code(), Some(0), "{said}");
}

/// What a job measured that a fault ended is no base for a statement; those of other points are
/// judged as ever.
#[test]
fn a_statement_about_a_job_that_failed_is_not_judged() {
    let scratch = Scratch::new("conclusions-failed");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"small-zones\"\n\
        [[job]]\nname = \"long\"\nwork = \"write\"\nzones = \"0..=3\"\noperations = 20\n\
        [[job]]\nname = \"short\"\nwork = \"write\"\nzones = \"0..=3\"\noperations = 5\n\
        [[series]]\nname = \"a\"\njobs = [\"long\"]\n\
        [[series]]\nname = \"b\"\njobs = [\"short\"]\n\
        [[check]]\nsays = \"long writes\"\nat_least = 0\n\
        value = { series = \"a\", job = \"long\", metric = \"ops\" }\n\
        [[check]]\nsays = \"short writes\"\nat_least = 6\n\
        value = { series = \"b\", job = \"short\", metric = \"ops\" }\n";
    scratch.write("e.toml", text);
    scratch.write(
        "f.toml",
        "[[fault]]\non = \"write\"\nskip = 9\ncount = 1\neffect = \"fail\"\n",
    );
    let run = [
        "run", "e.toml", "--out", "out", "--force", "--faults", "f.toml",
    ];
    let failed = scratch.zonelab(&run);
    assert_eq!(failed.status.code(), Some(5), "{}", stderr(&failed));
    let shown = String::from_utf8(failed.stdout).unwrap();
    let why = "\"long writes\": job \"long\" of \"a\" failed at 1";
    assert!(shown.contains(why), "{shown}");
    let rows: Value = serde_json::from_str(&scratch.read("out/rows.json")).unwrap();
    let rows = rows["rows"].as_array().unwrap();
    let passes: Vec<&Value> = rows.iter().map(|row| &row["pass"]).collect();
    assert_eq!(passes, [&Value::Bool(false)], "the other one is judged");
}

/// Repeats of what nothing is drawn for are all alike, and tell nothing of how others would differ.
#[test]
fn repeats_that_are_all_alike_have_no_interval() {
    let scratch = Scratch::new("conclusions-alike");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"confznspp\"\nrepeats = 3\n\
        [[job]]\nname = \"r\"\nwork = \"read\"\nzones = \"0..=3\"\nblock = \"16KiB\"\n\
        operations = 200\n\
        [[job]]\nname = \"q\"\nwork = \"read\"\nzones = \"0..=3\"\nblock = \"64KiB\"\n\
        operations = 200\n\
        [[series]]\nname = \"a\"\nfull_zones = \"0..=3\"\njobs = [\"r\"]\n\
        [[series]]\nname = \"b\"\nfull_zones = \"0..=3\"\njobs = [\"q\"]\n\
        [[difference]]\nseries = \"a\"\nbaseline = \"b\"\njob = \"r\"\nbaseline_job = \"q\"\n\
        metrics = [\"lat_p95_us\"]\n";
    let (_, _) = run(&scratch, text, &[]);
    let table = scratch.read("out/differences.csv");
    assert!(
        table.contains("no interval: all repeats are alike"),
        "{table}"
    );
}

/// Rows of jobs that failed are marked where they stand.
#[test]
fn a_sweep_marks_rows_of_jobs_that_failed() {
    let scratch = Scratch::new("conclusions-marked");
    let text = "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"small-zones\"\n\
        [[job]]\nname = \"w\"\nwork = \"write\"\nzones = \"0..=3\"\nbytes = \"1MiB\"\n\
        [[series]]\nname = \"s\"\njobs = [\"w\"]\n\
        [faults]\n[[faults.fault]]\non = \"write\"\nskip = 300\ncount = 1\neffect = \"fail\"\n";
    scratch.write("e.toml", text);
    scratch.write(
        "s.toml",
        "schema = 1\nexperiment = \"e.toml\"\nmetrics = [\"ops\"]\n\
         [[vary]]\nkey = \"job.0.bytes\"\nvalues = [\"1MiB\", \"4MiB\"]\n",
    );
    let output = scratch.zonelab(&["sweep", "s.toml", "--out", "out"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let row = |bytes: &str| {
        shown
            .lines()
            .find(|line| line.trim().starts_with(bytes))
            .unwrap()
    };
    assert!(row("4MiB").contains("w (failed)"), "{shown}");
    assert!(!row("1MiB").contains("failed"), "{shown}");
}

/// Keys that cannot do anything are refused.
#[test]
fn what_can_do_nothing_is_refused() {
    let scratch = Scratch::new("conclusions-nothing");
    let check = |host: &str, job: &str| {
        scratch.write(
            "e.toml",
            &format!(
                "schema = 1\nid = \"e\"\ntitle = \"t\"\nprofile = \"small-zones\"\n[host]\n{host}\n\
                 [[job]]\nname = \"w\"\nwork = \"write\"\nzones = \"0..=3\"\nblock = \"16KiB\"\n\
                 runtime = \"10ms\"\n{job}\n[[series]]\nname = \"a\"\njobs = [\"w\"]\n"
            ),
        );
        let output = scratch.zonelab(&["check", "e.toml"]);
        (output.status.code(), stderr(&output))
    };
    let confidence = "confidence = \"5%\"\nconfidence_sample = \"100us\"\n";
    let cases = [
        (
            "",
            format!("{confidence}confidence_after = \"20ms\""),
            "20 ms",
            "`runtime`, 10 ms",
        ),
        (
            "",
            "confidence_after = \"1ms\"".to_owned(),
            "confidence_after",
            "only with `confidence`",
        ),
        (
            "tick = \"4ms\"",
            String::new(),
            "host.tick",
            "only with a `scheduler`",
        ),
        (
            "merged = \"8us\"",
            String::new(),
            "host.merged",
            "no series goes through a scheduler",
        ),
        (
            "tick = \"4ms\"\nscheduler = \"none\"",
            String::new(),
            "host.tick",
            "does nothing",
        ),
    ];
    for (host, job, key, words) in cases {
        let (code, said) = check(host, &job);
        assert_eq!(code, Some(3), "{host}{job}: {said}");
        assert!(said.contains(key) && said.contains(words), "{said}");
    }
    let (code, said) = check(
        "tick = \"4ms\"\nscheduler = \"mq-deadline\"",
        &format!("{confidence}confidence_after = \"5ms\""),
    );
    assert_eq!(code, Some(0), "{said}");
}
