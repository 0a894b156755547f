//! Work that does nothing is named, by every verb that measures.

use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// Reads and resets of zones that nothing fills, and of such as are full.
const IDLE: &str = r#"
schema = 1
id = "idle"
title = "Jobs that may find nothing to do"
profile = "confznspp"

[axis]
name = "depth"
values = [1, 4]

[host]
submit = "1us"

[[job]]
name = "reads"
work = "read"
zones = "0..=1"
block = "16KiB"
queue_depth = "$x"
operations = 600

[[job]]
name = "resets"
work = "reset"
zones = "2..=3"

[[series]]
name = "empty"
phases = [["reads"], ["resets"]]

[[series]]
name = "filled"
phases = [["reads"], ["resets"]]
full_zones = "0..=3"
"#;

/// The same reads beside finishes.
const MATRIX: &str = r#"
schema = 1
id = "pairs"
title = "Reads of nothing beside finishes"
profile = "confznspp"

[axis]
name = "depth"
values = [1]

[host]
submit = "1us"

[matrix]
explain_for = "1ms"

[[matrix.foreground]]
name = "read"
work = "read"
zones = "24..=31"
runtime = "5ms"
ends_run = true

[[matrix.background]]
name = "finish"
work = "finish"
zones = "0..=7"
"#;

/// A finish beside reads that end before it does.
const OUTLAST: &str = r#"
schema = 1
id = "outlast"
title = "A finish that goes on"
profile = "confznspp"
drive = ["zones.size=64MiB", "zones.capacity=64MiB"]

[axis]
name = "depth"
values = [1, 4]

[[job]]
name = "read"
work = "read"
zones = 8
block = "16KiB"
queue_depth = "$x"
runtime = "100ms"
ends_run = true

[[job]]
name = "finish"
work = "finish"
zones = 0

[[series]]
name = "beside"
full_zones = 8
jobs = ["read", "finish"]
"#;

const SWEEP: &str = r#"
schema = 1
experiment = "idle.toml"
sample = "grid"
metrics = ["kiops", "nothing_share"]
[[vary]]
key = "drive.media.read"
name = "read"
values = ["65us", "80us"]
"#;

/// What is said of the reads and resets of nothing.
const READS: &str = "no flash is read for blocks that hold nothing";
const RESETS: &str = "nothing is erased in zones that hold nothing";

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("idle.toml", IDLE);
    scratch.write("pairs.toml", MATRIX);
    scratch.write("sweep.toml", SWEEP);
    scratch.write("outlast.toml", OUTLAST);
    scratch
}

pub(crate) fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines of warnings in a text.
pub(crate) fn warnings(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter_map(|line| Some(line.split_once("warning: ")?.1))
        .collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A metric of a job at the first value of the axis.
fn metric(points: &Value, series: &str, job: &str, metric: &str) -> Option<f64> {
    let mut points = points["points"].as_array().unwrap().iter();
    let point = points.find(|point| point["series"] == series).unwrap();
    let mut jobs = point["jobs"].as_array().unwrap().iter();
    let job = jobs.find(|one| one["name"] == job).unwrap();
    job["metrics"][metric].as_f64()
}

#[test]
fn check_says_which_jobs_will_do_nothing() {
    let scratch = scratch("idle-check");
    let said = stdout(&scratch.zonelab(&["check", "idle.toml"]));
    let series = "series \"empty\", depth 1, 4, job";
    assert_eq!(
        warnings(&said),
        [
            format!(
                "{series} \"reads\" does nothing: {READS} (full_zones = \"0..=1\" fills zones)"
            ),
            format!(
                "{series} \"resets\" does nothing: {RESETS} (fill = \"100%\", or full_zones = \
                 \"2..=3\", fills zones)"
            ),
        ]
    );
    let checked = json(&stdout(&scratch.zonelab(&[
        "check",
        "sweep.toml",
        "--json",
    ])));
    assert_eq!(checked["warnings"].as_array().map(Vec::len), Some(2));
    // Of a job that is meant to find nothing nobody is warned, before and after.
    let meant = ["--set", "job.0.finds_nothing=true"];
    let said = stdout(&scratch.zonelab(&[&["check", "idle.toml"], &meant[..]].concat()));
    assert!(
        said.contains("\"resets\"") && !said.contains("\"reads\""),
        "{said}"
    );
    let output = scratch.zonelab(&[&["run", "idle.toml", "--out", "out"], &meant[..]].concat());
    let said = stderr(&output);
    assert!(
        said.contains("\"resets\"") && !said.contains("\"reads\""),
        "{said}"
    );
    let points = json(&scratch.read("out/points.json"));
    assert_eq!(
        metric(&points, "empty", "reads", "nothing_share"),
        Some(1.0)
    );
    // A job that writes them before, or a fill of its own, gives it something to do.
    let filled = [
        "--set",
        "series.0.full_zones=0..=1",
        "--set",
        "job.1.fill=10%",
    ];
    let said = scratch.zonelab(&[&["check", "idle.toml"], &filled[..]].concat());
    assert_eq!(warnings(&stdout(&said)), [""; 0]);
}

/// `full_zones` counts over all namespaces, the zones of a job do not.
#[test]
fn the_remedy_in_another_namespace_says_how_zones_are_counted() {
    let scratch = Scratch::new("idle-namespace");
    let text = IDLE.replace("work = \"read\"", "work = \"read\"\nnamespace = 2");
    let drive = "\"confznspp\"\ndrive = [\"namespaces=[{zones=24},{zones=24}]\"]";
    scratch.write("two.toml", &text.replace("\"confznspp\"", drive));
    let said = stdout(&scratch.zonelab(&["check", "two.toml"]));
    let expected = "(full_zones fills zones, and counts them over all namespaces of the drive: \
                    those of namespace 2 come after those of the ones before it)";
    assert!(warnings(&said)[0].contains(expected), "{said}");
}

#[test]
fn run_counts_what_did_nothing_and_says_so_everywhere() {
    let scratch = scratch("idle-run");
    let output = scratch.zonelab(&["run", "idle.toml", "--out", "out"]);
    stdout(&output);
    let said = stderr(&output);
    let series = "series \"empty\", depth 1, 4, job";
    let expected = [
        format!(
            "{series} \"reads\": 100.0 % of 1,200 reads did nothing: {READS} (full_zones = \"0..=1\" fills zones)"
        ),
        format!("{series} \"resets\": 100.0 % of 4 resets did nothing: {RESETS}"),
    ];
    let warned = warnings(&said);
    assert_eq!(warned.len(), 2, "{said}");
    for (warned, expected) in warned.iter().zip(&expected) {
        assert!(warned.starts_with(expected), "{warned}");
        for file in ["summary.md", "report.html", "rows.json"] {
            let text = scratch.read(&format!("out/{file}")).replace("\\\"", "\"");
            assert!(text.contains(expected), "{file} does not say: {expected}");
        }
    }
    let points = json(&scratch.read("out/points.json"));
    let of = |series, job, name| metric(&points, series, job, name);
    for job in ["reads", "resets"] {
        assert_eq!(of("empty", job, "nothing_share"), Some(1.0), "{job}");
        assert_eq!(of("filled", job, "nothing_share"), Some(0.0), "{job}");
    }
    assert_eq!(of("filled", "reads", "buffered_share"), Some(0.0));
    // No bytes that were not there, and those that were.
    assert_eq!(of("empty", "resets", "mib_s"), Some(0.0));
    let rate = of("filled", "resets", "mib_s").unwrap() / of("filled", "resets", "ops_s").unwrap();
    assert!((rate - 1056.0).abs() < 0.01, "a zone holds {rate} MiB");
}

#[test]
fn a_job_that_others_did_not_last_as_long_as_is_named() {
    let scratch = scratch("idle-outlast");
    let run = |set: &[&str]| {
        let set = set.iter().flat_map(|set| ["--set", set]);
        let run = ["run", "outlast.toml", "--out", "out", "--force"];
        let output = scratch.zonelab(&run.into_iter().chain(set).collect::<Vec<_>>());
        stdout(&output);
        stderr(&output)
    };
    let said = run(&[]);
    let [warned] = warnings(&said)[..] else {
        panic!("{said}");
    };
    let job = "series \"beside\", depth 1, 4, job \"finish\": up to the last ";
    let (start, end) = (
        warned.strip_prefix(job),
        "were without \"read\", which had ended",
    );
    let times = start.and_then(|of| of.strip_suffix(end));
    let words: Vec<_> = times.unwrap_or_default().split_whitespace().collect();
    let ["6", _] = [&words[0][..1], words[1]] else {
        panic!("{warned}");
    };
    for file in ["summary.md", "report.html", "rows.json"] {
        let text = scratch.read(&format!("out/{file}")).replace("\\\"", "\"");
        assert!(text.contains(warned), "{file} does not say: {warned}");
    }
    // The only finish ended in no whole sample of half a second: that is no rate of 0.
    let points = json(&scratch.read("out/points.json"));
    assert_eq!(metric(&points, "beside", "finish", "kiops"), None);
    // Reads that last as long, and such as end with the finish.
    for set in [
        &["job.0.runtime=5s"][..],
        &["job.0.runtime=", "job.1.ends_run=true"],
    ] {
        let set = [set, &["job.0.ends_run=false"]].concat();
        let said = run(&set);
        let is_finish = |of: &&str| of.contains("job \"finish\"");
        assert_eq!(warnings(&said).into_iter().find(is_finish), None, "{said}");
    }
}

#[test]
fn a_matrix_and_a_sweep_say_it_too() {
    let scratch = scratch("idle-many");
    let output = scratch.zonelab(&["run", "pairs.toml", "--out", "out"]);
    stdout(&output);
    let said = stderr(&output);
    for series in ["read alone", "finish on read"] {
        let named = format!("series \"{series}\", depth 1, job \"read\": 100.0 % of");
        let is_named = warnings(&said).iter().any(|of| of.starts_with(&named));
        assert!(is_named, "{series}: {said}");
    }
    let said = stdout(&scratch.zonelab(&["sweep", "sweep.toml", "--quiet", "--out", "swept"]));
    let expected = [
        format!(
            "series \"empty\", job \"reads\": in 4 of 4 runs up to 100.0 % of the reads did nothing: {READS}"
        ),
        format!(
            "series \"empty\", job \"resets\": in 4 of 4 runs up to 100.0 % of the resets did nothing: {RESETS}"
        ),
    ];
    assert_eq!(warnings(&said), expected);
    let summary = json(&scratch.read("swept/sweep.json"));
    assert_eq!(summary["warnings"], Value::from(expected.to_vec()));
    // What was asked for, at each point; none of it is on a front.
    let rows = said.lines().filter(|line| line.contains("reads")).count();
    assert!(said.contains("kiops  nothing_share") && rows >= 8, "{said}");
    assert!(!said.contains("front"), "{said}");
    let meant = "idle.toml\"\nset = [\"job.0.finds_nothing=true\", \"job.1.finds_nothing=true\"]";
    scratch.write("sweep.toml", &SWEEP.replace("idle.toml\"", meant));
    let said = stdout(&scratch.zonelab(&["sweep", "sweep.toml", "--quiet", "--out", "meant"]));
    assert_eq!(warnings(&said), [""; 0]);
}

#[test]
fn of_devices_that_do_not_tell_only_what_the_file_says_is_said() {
    let scratch = scratch("idle-devices");
    let listen = [
        "serve",
        "confznspp",
        "--log",
        "warn",
        "--json",
        "--no-timing",
    ];
    let at = ["--listen", "127.0.0.1:0", "--set", "zones.capacity=16MiB"];
    let small = ["--set", "zones.size=16MiB"];
    let served = Served::start(scratch.command(&[&listen[..], &at, &small].concat()));
    for device in ["confznspp?via=pcie", &served.url()] {
        let output = scratch.zonelab(&[
            "run",
            "idle.toml",
            "--out",
            "out",
            "--force",
            "--device",
            device,
        ]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let idle = "series \"empty\", depth 1, 4, job \"reads\" does nothing";
        let mut warned = warnings(&said)
            .into_iter()
            .filter(|of| of.starts_with("series"));
        assert!(
            warned.next().is_some_and(|of| of.starts_with(idle)),
            "{said}"
        );
        // On a busy host operations stall, which is said as well.
        let mut idle = warned.filter(|of| !of.contains("the time of its operations"));
        assert!(idle.all(|of| !of.contains("filled\"")), "{said}");
        let points = json(&scratch.read("out/points.json"));
        assert_eq!(metric(&points, "filled", "reads", "nothing_share"), None);
        // What zones hold is in their report.
        let resets = |series, name| metric(&points, series, "resets", name).unwrap();
        assert!(resets("empty", "mib_s") <= 0.0, "{device}");
        let zone_mib = resets("filled", "mib_s") / resets("filled", "ops_s");
        let capacity = if device.starts_with("tcp") {
            16.0
        } else {
            1056.0
        };
        assert!((zone_mib - capacity).abs() < 0.01, "{device}: {zone_mib}");
    }
}

#[test]
fn fio_counts_what_did_nothing() {
    let scratch = scratch("idle-fio");
    let fio = [
        "fio",
        "--device",
        "confznspp",
        "--name=r",
        "--rw=randread",
        "--bs=16k",
        "--size=2z",
    ];
    let nothing = ["--number_ios=500", "--read_beyond_wp=1"];
    let output = scratch.zonelab(&[&fio[..], &nothing].concat());
    let expected = format!("100.0 % of 500 reads did nothing: {READS}");
    assert_eq!(warnings(&stderr(&output)), [format!("job r: {expected}")]);
    assert!(stdout(&output).contains(&format!("     warning    : {expected}\n")));
    let output = scratch.zonelab(&[&fio[..], &nothing, &["--json"]].concat());
    let job = json(&stdout(&output))["jobs"][0].clone();
    assert_eq!(job["read"]["total_ios"], 500);
    assert_eq!(job["zonelab"]["nothing_ios"]["read"], 500);
    assert_eq!(job["zonelab"]["warnings"][0], expected);
    let full = ["--number_ios=500", "--full-zones", "0..=1"];
    let output = scratch.zonelab(&[&fio[..], &full, &["--json"]].concat());
    assert_eq!(warnings(&stderr(&output)), [""; 0]);
    let job = json(&stdout(&output))["jobs"][0].clone();
    assert_eq!(job["zonelab"]["nothing_ios"]["read"], 0);
    assert_eq!(job["zonelab"]["warnings"], Value::Null);
}

/// What a drive that is not emulated here does not tell, the zones at the start do.
#[test]
fn fio_counts_what_did_nothing_on_a_served_drive() {
    let scratch = Scratch::new("idle-fio-served");
    let serve = [
        "serve",
        "small-zones",
        "--listen",
        "127.0.0.1:0",
        "--no-timing",
        "--json",
    ];
    let served = Served::start(scratch.command(&serve));
    let url = served.url();
    let fio = ["fio", "--device", &url, "--json", "--bs=16k", "--size=4z"];
    let run = |more: &[&str]| {
        let output = scratch.zonelab(&[&fio[..], more].concat());
        json(&stdout(&output))["jobs"][0].clone()
    };
    let reads = [
        "--name=r",
        "--rw=randread",
        "--number_ios=400",
        "--read_beyond_wp=1",
    ];
    let job = run(&reads);
    assert_eq!(job["zonelab"]["nothing_ios"]["read"], 400, "{job}");
    assert_eq!(job["zonelab"]["buffered_reads"], Value::Null, "{job}");
    let trims = ["--name=t", "--rw=trim", "--bs=32m"];
    let job = run(&trims);
    assert_eq!(job["zonelab"]["nothing_ios"]["trim"], 4, "{job}");
    let warning = job["zonelab"]["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("100.0 % of 4 trims did nothing"),
        "{warning}"
    );
    run(&["--name=w", "--rw=write", "--size=2z", "--number_ios=20"]);
    let job = run(&reads);
    let nothing = job["zonelab"]["nothing_ios"]["read"].as_u64().unwrap();
    assert!(
        (380..400).contains(&nothing),
        "20 of 8,192 blocks are written: {job}"
    );
    let job = run(&[&trims[..], &["--overwrite"]].concat());
    assert_eq!(job["zonelab"]["nothing_ios"]["trim"], 3, "{job}");
}

#[test]
fn a_replay_says_how_much_of_its_trace_it_left_out() {
    let scratch = scratch("idle-replay");
    let mut log = "fio version 3 iolog\n0 dev add\n0 dev open\n".to_owned();
    for (at, offset) in (0..20_u64).zip((0..20_u64).map(|n| n * 16_384)) {
        let action = if at < 8 { "write" } else { "read" };
        log += &format!("{at} dev {action} {offset} 16384\n");
    }
    scratch.write("log", &log);
    let fio = [
        "fio",
        "--device",
        "confznspp",
        "--name=r",
        "--rw=read",
        "--read_iolog=log",
    ];
    let said = stderr(&scratch.zonelab(&fio));
    let expected = "job r: 100.0 % of 12 reads of the trace were not issued, or in part: nothing is \
                    written there";
    assert!(warnings(&said).contains(&expected), "{said}");
}

#[test]
fn kv_says_what_answered_its_gets() {
    let scratch = scratch("idle-kv");
    let kv = [
        "kv",
        "ycsb-c",
        "--device",
        "confznspp",
        "--quiet",
        "--records",
        "20000",
    ];
    let few = ["--operations", "4000"];
    let said = stdout(&scratch.zonelab(&[&kv[..], &few].concat()));
    let expected = "none of 4,000 queries read from the drive: 4,000 were answered by memtables";
    assert!(
        warnings(&said)
            .first()
            .is_some_and(|of| of.starts_with(expected)),
        "{said}"
    );
    let small = [
        "--kv",
        "store.write_buffer_size=1MiB",
        "--kv",
        "store.block_cache=0KiB",
        "--json",
    ];
    let result = json(&stdout(&scratch.zonelab(&[&kv[..], &few, &small].concat())));
    let tree = |key: &str| result["tree"][key].as_u64().unwrap();
    assert_eq!(result["warnings"], Value::Array(Vec::new()));
    assert_eq!(tree("gets"), 4_000);
    assert!(tree("gets_from_files") > 3_000, "{}", result["tree"]);
    assert!(tree("gets_from_memtables") > 0, "{}", result["tree"]);
}

#[test]
fn jobs_whose_operations_take_no_time_end_however_many_they_are() {
    let scratch = Scratch::new("idle-endless");
    let text = IDLE.replace("submit = \"1us\"", "submit = \"0us\"");
    let text = text.replace("operations = 600", "runtime = \"10ms\"\nthreads = 2");
    scratch.write("endless.toml", &text);
    let output = scratch.zonelab(&["run", "endless.toml", "--out", "out"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("began at one time and none of them took any"),
        "{said}"
    );
    let checked = stderr(&scratch.zonelab(&["check", "endless.toml"]));
    assert_eq!(checked, said, "for the same reason");
    // The layer answers for itself what nothing has written, whatever the stack costs.
    let layer = "schema = 1\nid = \"layer\"\ntitle = \"t\"\nprofile = \"confznspp\"\n\
                 drive = [\"zones.size=2MiB\", \"zones.capacity=2MiB\", \
                 \"geometry.pages_per_block=4\"]\n\
                 [host]\nstack = \"io_uring\"\nvia = \"ftl\"\n[[job]]\nname = \"read\"\n\
                 work = \"read\"\nblocks = \"0%..100%\"\nruntime = \"10ms\"\n[[series]]\n\
                 name = \"empty\"\njobs = [\"read\"]\n";
    scratch.write("layer.toml", layer);
    for verb in [&["check", "layer.toml"][..], &["run", "layer.toml"]] {
        let output = scratch.zonelab(verb);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{verb:?}: {said}");
        let why = "the layer answers that itself, without the drive and without the storage stack: \
                   let a job of an earlier phase write it";
        assert!(said.contains(why), "{verb:?}: {said}");
    }
    // In real time there is no layer to go through.
    let real = ["run", "layer.toml", "--device", "confznspp?clock=real"];
    let said = stderr(&scratch.zonelab(&real));
    assert!(said.contains("(via = \"ftl\"), in virtual time"), "{said}");
    scratch.write(
        "counted.toml",
        &layer.replace("runtime = \"10ms\"", "operations = 100"),
    );
    stdout(&scratch.zonelab(&["check", "counted.toml"]));
    stdout(&scratch.zonelab(&["run", "counted.toml"]));
}

#[test]
fn kv_says_what_was_neither_flushed_nor_compacted() {
    let scratch = Scratch::new("idle-kv-flush");
    let kv = |more: &[&str]| {
        let kv = [
            "kv",
            "fillrandom",
            "--device",
            "confznspp",
            "--quiet",
            "--json",
        ];
        json(&stdout(&scratch.zonelab(&[&kv[..], more].concat())))
    };
    let few = ["--operations", "1000", "--records", "1000"];
    let said = kv(&few)["warnings"].clone();
    let said = said[0].as_str().unwrap();
    assert!(
        said.starts_with("nothing was flushed or compacted: "),
        "{said}"
    );
    let small = [
        "--kv",
        "store.write_buffer_size=64KiB",
        "--value-bytes",
        "1000",
    ];
    let once = kv(&[
        &few[..],
        &small,
        &["--kv", "store.level0_file_num_compaction_trigger=20"],
    ]
    .concat());
    let said = once["warnings"][0].as_str().unwrap();
    assert!(said.starts_with("nothing was compacted: "), "{said}");
    let both = kv(&[
        &few[..],
        &small,
        &["--kv", "store.level0_file_num_compaction_trigger=2"],
    ]
    .concat());
    assert_eq!(both["warnings"], Value::Array(Vec::new()), "{both}");
    // The same as a job, beside one that it outlasts.
    let text = "schema = 1\nid = \"store\"\ntitle = \"t\"\nprofile = \"confznspp\"\n\
                [[job]]\nname = \"puts\"\nwork = \"kv\"\nzones = \"0..=20\"\n[job.kv]\n\
                workload = \"fillrandom\"\noperations = 1000\nrecords = 1000\n\
                [[job]]\nname = \"write\"\nwork = \"write\"\nzones = 30\noperations = 1\n\
                [[series]]\nname = \"a\"\njobs = [\"puts\", \"write\"]\n";
    scratch.write("store.toml", text);
    let output = scratch.zonelab(&["run", "store.toml", "--out", "out"]);
    stdout(&output);
    let said = stderr(&output);
    let job = "series \"a\", run 1, job \"puts\"";
    let expected = format!("{job} flushes and compacts nothing: ");
    assert!(
        warnings(&said).iter().any(|of| of.starts_with(&expected)),
        "{said}"
    );
    let expected = format!("{job}: the last ");
    let alone = warnings(&said)
        .into_iter()
        .find(|of| of.starts_with(&expected));
    assert!(
        alone.is_some_and(|of| of.ends_with("were without \"write\", which had ended")),
        "{said}"
    );
}

#[test]
fn a_sweep_names_jobs_that_others_did_not_last_as_long_as() {
    let scratch = scratch("idle-outlast-sweep");
    let sweep = SWEEP
        .replace("idle.toml", "outlast.toml")
        .replace("\"nothing_share\"", "\"ops\"");
    scratch.write("sweep.toml", &sweep);
    let said = stdout(&scratch.zonelab(&["sweep", "sweep.toml", "--quiet", "--out", "swept"]));
    let [warned] = warnings(&said)[..] else {
        panic!("{said}");
    };
    let start = "series \"beside\", job \"finish\": in 4 of 4 runs up to the last 8";
    let end = " % of its time were without \"read\", which had ended";
    assert!(
        warned.starts_with(start) && warned.ends_with(end),
        "{warned}"
    );
}

/// A read that a fault lost for a minute is in no latency: who reads the summary has to know.
#[test]
fn a_job_that_a_fault_ended_stands_in_the_summary() {
    let scratch = scratch("idle-lost");
    scratch.write(
        "faults.toml",
        "[[fault]]\non = \"read\"\nskip = 5\neffect = \"lose\"\ntimeout = \"60s\"\n",
    );
    let series = ["run", "idle.toml", "--set", "axis.values=[1]"];
    let faults = ["--faults", "faults.toml", "--out", "out"];
    let output = scratch.zonelab(&[&series[..], &faults].concat());
    let said = stderr(&output);
    assert!(said.contains("ended by a failure"), "{said}");
    for file in ["out/summary.md", "out/rows.json", "out/report.html"] {
        let text = scratch.read(file);
        assert!(text.contains("ended by a failure"), "{file}: {text}");
    }
}

#[test]
fn check_refuses_jobs_that_fail_at_once() {
    let scratch = Scratch::new("idle-refused");
    let refused = |text: &str, says: &str| {
        scratch.write("refused.toml", text);
        let output = scratch.zonelab(&["check", "refused.toml"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(says), "{said}");
    };
    let small = IDLE.replace("\"confznspp\"", "\"small-zones\"");
    refused(&small, "let a job of an earlier phase write them");
    let write = IDLE.replace("\"read\"", "\"write\"");
    refused(
        &write,
        "job \"reads\" writes to zone 0, which full_zones has full",
    );
    for work in ["reset", "finish", "close"] {
        let work = format!("work = \"{work}\"\nfill = \"10%\"");
        let fills = IDLE.replace("work = \"reset\"", &work);
        refused(
            &fills.replace("[[\"reads\"], [\"resets\"]]", "[[\"resets\"]]"),
            "job \"resets\" fills zone 2, which full_zones has full: let it do without fill",
        );
    }
    let closes = "[[job]]\nname = \"closes\"\nwork = \"close\"\nzones = \"8..=9\"\n\
                  [[series]]\nname = \"closed\"\njobs = [\"closes\"]\n";
    refused(
        &format!("{IDLE}{closes}"),
        "job \"closes\" closes zones that are not open",
    );
    scratch.write(
        "sound.toml",
        &format!("{IDLE}{}", closes.replace("\nzones", "\nfill = 4\nzones")),
    );
    stdout(&scratch.zonelab(&["check", "sound.toml"]));
    stdout(&scratch.zonelab(&["run", "sound.toml", "--out", "sound"]));
}

#[test]
fn sweeps_and_searches_name_what_they_do_not_judge_and_what_did_nothing() {
    let scratch = scratch("idle-unjudged");
    let check = "[[check]]\nsays = \"Reads are fast\"\nat_least = 1e9\nvalue = { series = \
                 \"filled\", x = 1, job = \"reads\", metric = \"kiops\" }\n";
    scratch.write("idle.toml", &format!("{IDLE}{check}"));
    let expected = "1 statement ([[check]]) of idle.toml are not judged here, the first of them \
                    \"Reads are fast\"";
    let said = stdout(&scratch.zonelab(&["sweep", "sweep.toml", "--quiet", "--out", "swept"]));
    assert!(said.contains(expected), "{said}");
    let search = [
        "search",
        "idle.toml",
        "--over",
        "drive.media.read=65us,80us",
        "--quiet",
    ];
    let aims = [
        "--maximize",
        "empty/reads/kiops_by_count",
        "--minimize",
        "empty/reads/lat_mean_us",
    ];
    let said = stdout(&scratch.zonelab(&[&search[..], &aims].concat()));
    assert!(said.contains(expected), "{said}");
    assert!(
        said.contains(&format!("of the reads did nothing: {READS}")),
        "{said}"
    );
}

#[test]
fn faults_that_nothing_met_and_a_ramp_that_outlasted_its_job_are_named() {
    let scratch = scratch("idle-faults");
    scratch.write(
        "faults.toml",
        "[[fault]]\non = \"read\"\nlbas = \"4096..=4351\"\neffect = \"media-error\"\n",
    );
    let expected = "no fault of faults.toml struck";
    let faults = ["--faults", "faults.toml"];
    let run = ["run", "idle.toml", "--set", "job.0.zones=0..=0", "--set"];
    let writes = ["job.0.work=write", "--set", "series.1.full_zones=2..=3"];
    let output = scratch.zonelab(&[&run[..], &writes, &faults, &["--out", "out"]].concat());
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let fio = [
        "fio",
        "--device",
        "confznspp",
        "--name=w",
        "--rw=write",
        "--bs=16k",
        "--size=1z",
    ];
    let few = ["--number_ios=50"];
    let output = scratch.zonelab(&[&fio[..], &few, &faults].concat());
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    // One of three, and of another plan all but one.
    let rule = |zone: &str| {
        format!("[[fault]]\non = \"write\"\nzones = {zone}\neffect = \"delay\"\ndelay = \"1us\"\n")
    };
    scratch.write("one.toml", &[rule("0"), rule("40")].concat());
    scratch.write("two.toml", &[rule("41"), rule("0"), rule("40")].concat());
    for (file, expected) in [
        ("one.toml", "[[fault]] number 2 of one.toml never struck"),
        (
            "two.toml",
            "[[fault]] numbers 1 and 3 of two.toml never struck",
        ),
    ] {
        let faults = ["--faults", file];
        let output = scratch.zonelab(&[&fio[..], &few, &faults].concat());
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        let out = ["--out", file.trim_end_matches(".toml")];
        let output = scratch.zonelab(&[&run[..], &writes, &out, &faults].concat());
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let output = scratch.zonelab(&[&fio[..], &few, &["--ramp_time=10s"]].concat());
    let said = stderr(&output);
    assert!(
        said.contains("before its ramp_time of 10 s was over"),
        "{said}"
    );
    assert!(!said.contains("need written zones"), "{said}");
}

#[test]
fn data_of_a_snapshot_are_kept_by_who_does_not_look_at_them() {
    let scratch = Scratch::new("idle-snapshot");
    let fio = [
        "fio",
        "--device",
        "small-zones",
        "--bs=16k",
        "--size=1z",
        "--name=j",
    ];
    let saved = ["--rw=write", "--verify=crc32c", "--snapshot", "state"];
    stdout(&scratch.zonelab(&[&fio[..], &saved].concat()));
    stdout(&scratch.zonelab(&[&fio[..], &["--rw=read", "--restore", "state"]].concat()));
    let plain = ["--rw=write", "--snapshot", "plain"];
    stdout(&scratch.zonelab(&[&fio[..], &plain].concat()));
    let text = IDLE.replace("\"confznspp\"", "\"small-zones\"");
    scratch.write("small.toml", &text.replace("full_zones = \"0..=3\"", ""));
    let run = [
        "run",
        "small.toml",
        "--force",
        "--out",
        "out",
        "--restore",
        "plain",
    ];
    let output = scratch.zonelab(&run);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("--set drive.data.store=none"),
        "{}",
        stderr(&output)
    );
    stdout(&scratch.zonelab(&[&run[..], &["--set", "drive.data.store=none"]].concat()));
}

#[test]
fn fio_names_zones_that_hold_nothing_to_read() {
    let scratch = Scratch::new("idle-empty-zones");
    let fio = [
        "fio",
        "--device",
        "confznspp",
        "--name=r",
        "--rw=read",
        "--bs=64k",
        "--full-zones",
        "1..=2",
        "--size=6z",
    ];
    let expected = "job r: 4 of 6 zones were not read: nothing is written there";
    let output = scratch.zonelab(&fio);
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    // What is read again is counted once; who reads what it wrote leaves nothing out.
    let again = ["--time_based", "--runtime=5s"];
    let output = scratch.zonelab(&[&fio[..], &again].concat());
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let output = scratch.zonelab(&[&fio[..], &["--size=2z", "--offset=1z"]].concat());
    assert!(!stderr(&output).contains("not read"), "{}", stderr(&output));
    let output = scratch.zonelab(&[&fio[..], &["--rw=rw"]].concat());
    assert!(!stderr(&output).contains("not read"), "{}", stderr(&output));
}
