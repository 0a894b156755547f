//! The `zonelab` command as scripts see it: exit codes, JSON, result files.

use std::collections::BTreeMap;
use std::path::Path;

use super::scratch::{Scratch, stderr};

/// Every file of a result directory.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Writers beside finishes, small enough to run in a moment, with jitter.
const EXPERIMENT: &str = r#"
schema = 1
id = "small"
title = "Writers beside finishes"
kind = "S"
profile = "confznspp"
[axis]
name = "concurrency"
values = [1, 3, 5]
[host]
submit = "3us"
complete = "3us"
jitter = "2us"
hiccup_one_in = 500
hiccup = "1ms"
[[job]]
name = "write"
work = "write"
threads = "$x"
zones = "11..=25"
block = "16KiB"
runtime = "2s"
ends_run = true
[[job]]
name = "finish"
work = "finish"
zones = "0..=9"
fill = "16KiB"
[[series]]
name = "alone"
jobs = ["write"]
[[series]]
name = "beside finishes"
jobs = ["write", "finish"]
[[compare]]
job = "write"
metrics = ["kiops", "lat_mean_us", "lat_p95_us"]
[figure]
job = "write"
x = "kiops"
y = "lat_p95_us"
"#;

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let scratch = Scratch::new("determinism");
    let file = scratch.write("small.toml", EXPERIMENT);
    let run = |out: &str, more: &[&str]| {
        let output = scratch.zonelab(&[&["run", &file, "--out", out], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        files(&scratch.0.join(out))
    };
    let one = run("one", &["--threads", "1"]);
    assert_eq!(
        one.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "inputs.json",
            "manifest.json",
            "points.csv",
            "points.json",
            "report.html",
            "rows.csv",
            "rows.json",
            "small.svg",
            "summary.md"
        ]
    );
    assert_eq!(one, run("two", &["--threads", "2"]));
    assert_eq!(one, run("again", &["--threads", "2"]));
    assert_ne!(
        one["points.csv"],
        run("seed", &["--seed", "2"])["points.csv"]
    );
}

#[test]
fn reproduced_results_are_the_same_twice() {
    let scratch = Scratch::new("reproduce");
    let run = |out: &str, threads: &str| {
        let what = ["reproduce", "CM", "C9b", "--out", out, "--threads", threads];
        let output = scratch.zonelab(&what);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        files(&scratch.0.join(out))
    };
    assert_eq!(run("a", "1"), run("b", "2"));
}

/// Several figures end in a few lines: one for each paper, the bars, and where everything is.
/// With `--rows` the tables come, and a line for each figure as it is done.
#[test]
fn several_figures_end_in_a_few_lines() {
    let scratch = Scratch::new("few-lines");
    let run = |more: &[&str]| {
        let args = ["reproduce", "CM", "C9b", "Z10a", "S3a", "--quick"];
        let output = scratch.zonelab(&[&args[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, stderr(&output))
    };
    let (few, messages) = run(&[]);
    let count = few.lines().count() + messages.lines().count();
    assert!(count <= 25, "{count} lines: {few}{messages}");
    for paper in ["ConfZNS++ ", "ZN540 (CLUSTER'23) ", "SilentZNS "] {
        let of_paper = few.lines().filter(|line| line.starts_with(paper));
        assert_eq!(of_paper.count(), 1, "{paper}: {few}");
    }
    for file in ["figure: ", "report: ", "results:"] {
        let line = few.lines().find(|line| line.starts_with(file));
        let path = line.and_then(|line| line.split_whitespace().nth(1));
        let path = path.unwrap_or_else(|| panic!("{file}: {few}"));
        assert!(scratch.0.join(path).exists(), "{path}");
    }
    assert!(few.contains("S3a.svg") && !few.contains("kiops"), "{few}");

    let (all, messages) = run(&["--rows"]);
    assert!(all.contains("published") && all.contains("needs"), "{all}");
    // CM is a sum over published numbers, of which nothing is run.
    assert!(all.contains("CM: 3 rows"), "{all}");
    for id in ["C9b: ", "Z10a: ", "S3a: "] {
        let is_told = |text: &str| text.lines().any(|line| line.starts_with(id));
        assert!(is_told(&all) && is_told(&messages), "{id}: {all}{messages}");
    }
}

/// Lines of the list of results are chosen by their names, also those that stand for several
/// figures; a word that is wrong is refused.
#[test]
fn results_are_chosen_by_their_lines() {
    let scratch = Scratch::new("lines");
    let output = scratch.zonelab(&["reproduce", "V55"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nothing to reproduce"));
    let output = scratch.zonelab(&["reproduce", "V6-8", "--quick", "--out", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let points: serde_json::Value = serde_json::from_str(&scratch.read("out/points.json")).unwrap();
    let configured = points["configuration"].as_array().unwrap().iter();
    let ids: Vec<_> = configured.map(|of| of["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["V6", "V7", "V8"]);
    let output = scratch.zonelab(&["reproduce", "--list"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let list = String::from_utf8_lossy(&output.stdout);
    let (built, elsewhere) = list.split_once("what is no row").unwrap();
    for id in ["C10a", "V5", "V8", "Vgd"] {
        let is_there = |line: &str| line.split_whitespace().next() == Some(id);
        assert!(built.lines().any(is_there), "{id}: {list}");
    }
    assert!(!list.contains("not built"), "{list}");
    assert!(elsewhere.contains("zonelab bench scheduler"), "{list}");
}

#[test]
fn json_is_rows_and_nothing_else() {
    let scratch = Scratch::new("json");
    let output = scratch.zonelab(&["reproduce", "CM", "C9b", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&value), ["rows", "schema", "seed", "summary"]);
    assert!(
        stderr(&output).is_empty(),
        "no lines of figures: {}",
        stderr(&output)
    );
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 + 12);
    assert!(
        rows.iter()
            .all(|row| row["unit"] != "M" || row["id"] == "CM")
    );
}

#[test]
fn exit_codes_say_what_went_wrong() {
    let scratch = Scratch::new("exit");
    let failing = EXPERIMENT.replace(
        "[figure]",
        "[[check]]\nsays = \"finishes help\"\n\
         smaller = { series = \"alone\", x = 5, job = \"write\", metric = \"kiops\" }\n\
         larger = { series = \"beside finishes\", x = 5, job = \"write\", metric = \"kiops\" }\n\
         [figure]",
    );
    let failing = scratch.write("failing.toml", &failing);
    let unknown = scratch.write("unknown.toml", &EXPERIMENT.replace("runtime", "runtme"));
    let endless = scratch.write(
        "endless.toml",
        &EXPERIMENT.replace("runtime = \"2s\"", "repeat = true"),
    );
    let good = scratch.write("good.toml", EXPERIMENT);
    let file_in_the_way = scratch.write("file", "");
    let out = format!("{file_in_the_way}/results");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["profiles"], 0, ""),
        (&["check", &good], 0, ""),
        (&["run", &failing, "--out", "failing"], 1, ""),
        (&["run"], 2, "Usage"),
        (&["reproduce", "C99"], 2, "did you mean"),
        (&["run", "nosuch"], 2, "there is no experiment"),
        (&["run", "Z14"], 2, "(did you mean Z"),
        (&["run", "good"], 2, "did you mean the file good.toml?"),
        (&["run", &unknown], 3, "did you mean `runtime`?"),
        (&["run", &endless], 3, "never ends"),
        (&["check", "."], 3, "directory"),
        (
            &["profiles", "show", "confznspp", "--set", "zones.count=60"],
            3,
            "set count = 48",
        ),
        (&["run", &good, "--out", &out], 4, "results"),
    ];
    for (args, code, says) in cases {
        let output = scratch.zonelab(args);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
    assert!(
        !scratch.0.join("results").exists(),
        "nothing is written for what cannot run"
    );
}

#[test]
fn the_report_names_a_command_that_gives_the_same_point() {
    let scratch = Scratch::new("again");
    let file = scratch.write("small.toml", EXPERIMENT);
    let run = |args: &[&str], out: &str| {
        let output = scratch.zonelab(&[args, &["--out", out]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("report:  {out}")), "{text}");
        files(&scratch.0.join(out))
    };
    let all = run(&["run", &file, "--seed", "7"], "all");
    let html = String::from_utf8_lossy(&all["report.html"]).into_owned();
    let command = format!("zonelab run {file} --set 'axis.values=[3]' --seed 7");
    assert!(html.contains(&command), "{command}");
    let one = run(
        &["run", &file, "--set", "axis.values=[3]", "--seed", "7"],
        "one",
    );
    let points = |files: &BTreeMap<String, Vec<u8>>| -> Vec<serde_json::Value> {
        let value: serde_json::Value = serde_json::from_slice(&files["points.json"]).unwrap();
        let points = value["points"].as_array().unwrap().iter();
        points
            .filter(|point| point["x_label"] == "3")
            .cloned()
            .collect()
    };
    assert_eq!(points(&one).len(), 2);
    assert_eq!(points(&all), points(&one));
    assert_ne!(html, String::from_utf8_lossy(&one["report.html"]));
}

#[test]
fn results_of_another_configuration_are_left_alone() {
    let scratch = Scratch::new("other");
    let file = scratch.write("small.toml", EXPERIMENT);
    let run = |more: &[&str]| {
        let args = [&["run", &file, "--out", "results"], more].concat();
        scratch.zonelab(&args)
    };
    assert_eq!(run(&[]).status.code(), Some(0));
    let before = files(&scratch.0.join("results"));
    let refused = run(&["--seed", "2"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(stderr(&refused).contains("--out"), "{}", stderr(&refused));
    assert_eq!(files(&scratch.0.join("results")), before);
    assert_eq!(run(&["--seed", "2", "--force"]).status.code(), Some(0));
    assert_ne!(files(&scratch.0.join("results")), before);
}

#[test]
fn a_changed_drive_is_not_judged_by_published_values() {
    let scratch = Scratch::new("changed");
    let slow = [
        "run",
        "C9b",
        "--set",
        "drive.media.erase=10ms",
        "--out",
        "slow",
    ];
    let output = scratch.zonelab(&slow);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("not judged"));
}

/// With nothing published there is nothing to say of it.
#[test]
fn what_is_not_published_is_not_said_to_be_shown() {
    let scratch = Scratch::new("unpublished");
    let file = scratch.write("small.toml", EXPERIMENT);
    let run = [
        "run",
        &file,
        "--set",
        "drive.media.read=70us",
        "--out",
        "out",
    ];
    let output = scratch.zonelab(&run);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        !stderr(&output).contains("published"),
        "{}",
        stderr(&output)
    );
    assert!(
        !scratch
            .read("out/report.html")
            .contains("Settings or conditions differ")
    );
}

#[test]
fn a_file_of_another_kind_is_named() {
    let scratch = Scratch::new("kinds");
    let profile = scratch.zonelab(&["profiles", "show", "confznspp", "--toml"]);
    scratch.write("my.toml", &String::from_utf8_lossy(&profile.stdout));
    scratch.write("e.toml", EXPERIMENT);
    let sweep = "schema = 1\nexperiment = \"e.toml\"\n[[vary]]\nkey = \"drive.media.read\"\n\
                 values = [\"60us\"]\n";
    scratch.write("s.toml", sweep);
    for (args, says) in [
        (
            &["run", "my.toml"][..],
            "my.toml: this is a drive profile, not an experiment; an experiment names it: \
             profile = \"my.toml\"",
        ),
        (
            &["run", "s.toml"],
            "s.toml: this is a sweep, not an experiment; `zonelab sweep s.toml` runs it",
        ),
        (
            &["sweep", "e.toml"],
            "e.toml: this is an experiment, not a sweep; `zonelab run e.toml` runs it",
        ),
        (
            &[
                "fio",
                "--device",
                "./e.toml",
                "--name=r",
                "--rw=read",
                "--size=1z",
            ],
            "this is an experiment, not a drive profile; `zonelab run ",
        ),
    ] {
        let output = scratch.zonelab(args);
        assert!(
            [Some(2), Some(3)].contains(&output.status.code()),
            "{args:?}"
        );
        let said = stderr(&output);
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn quick_runs_the_series_that_the_file_names_for_it() {
    let scratch = Scratch::new("quick-series");
    let quick = "[quick]\nset = [\"axis.values=[1]\"]\nseries = [\"alone\"]\n";
    let file = scratch.write("small.toml", &format!("{EXPERIMENT}{quick}"));
    let output = scratch.zonelab(&["run", &file, "--quick", "--out", "quick"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let points = std::fs::read_to_string(scratch.0.join("quick/points.csv")).unwrap();
    assert!(points.contains("alone") && !points.contains("beside finishes"));
}

/// A disk that is full takes the message and not the exit code; so does whoever closed
/// standard error.
#[test]
#[cfg(target_os = "linux")]
fn messages_that_nobody_can_read_change_no_exit_code() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_zonelab"));
        command.args(args).stdin(std::process::Stdio::null());
        let command = command.stderr(full().expect("Linux has it"));
        command.output().expect("it starts").status.code()
    };
    assert_eq!(run(&["check", "nosuch"]), Some(2));
    assert_eq!(
        run(&["check", "zn540", "--set", "geometry.ways=0"]),
        Some(3)
    );
    assert_eq!(run(&["check", "zn540"]), Some(0));
}

#[test]
fn the_first_minute_shows_what_one_line_changes() {
    let scratch = Scratch::new("demo");
    let output = scratch.zonelab(&["demo"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Reads beside a finish at a depth of 64, before and after.
    let rate = |line: &str| -> Option<f64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.starts_with(&["beside", "a", "finish", "64", "read"]);
        words.get(6).filter(|_| is_it)?.parse().ok()
    };
    let rates: Vec<f64> = text.lines().filter_map(rate).collect();
    assert!(rates.len() == 2 && rates[0] < rates[1], "{rates:?}\n{text}");
    for name in ["as-it-is", "changed"] {
        let report = format!("results/demo/{name}/report.html");
        assert!(text.contains(&report) && scratch.0.join(report).exists());
    }
    // Again: results of a demo are nothing to be careful with.
    assert_eq!(scratch.zonelab(&["demo"]).status.code(), Some(0));
    // The finish has reads beside it until its end, and nothing is published.
    assert_eq!(stderr(&output).trim(), "");
}

#[test]
fn what_files_of_others_hold_is_shown_without_control_characters() {
    let scratch = Scratch::new("control");
    let job = scratch.write("bad.fio", "[job]\nrw=\u{1b}[2Jread\u{9b}x\n");
    let trace = scratch.write("bad.csv", "\u{1b}]0;title\u{7},b\n1,2\n");
    for words in [
        &["fio", &job, "--device", "zn540"][..],
        &["trace", "replay", &trace, "--device", "zn540"],
        &["check", &trace],
    ] {
        let output = scratch.zonelab(words);
        assert!(!output.status.success(), "{words:?}");
        let said = stderr(&output);
        let is_harmful = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(is_harmful), "{words:?}: {said:?}");
    }
    let said = stderr(&scratch.zonelab(&["fio", &job, "--device", "zn540"]));
    assert!(said.contains("\u{fffd}[2Jread\u{fffd}x"), "{said:?}");
}
