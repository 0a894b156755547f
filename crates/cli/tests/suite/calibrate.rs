//! `zonelab calibrate`: known drives are found again, bad input is refused, and
//! results are the same bytes however they come about.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// Keys that the guess has wrong, with what they are, in microseconds.
const TRUTH: [(&str, f64); 5] = [
    ("media.read", 58.0),
    ("media.program", 530.0),
    ("media.transfer", 21.0),
    ("front_end.write", 6.2),
    ("front_end.append", 8.8),
];

impl Scratch {
    /// A directory with the files of the worked example.
    fn of_example(name: &str) -> Self {
        let scratch = Self::new(&format!("fit-{name}"));
        std::fs::create_dir(scratch.0.join("data")).unwrap();
        for file in [
            "drive.toml",
            "guess.toml",
            "experiment.toml",
            "data/points.csv",
        ] {
            scratch.write(file, &example(file));
        }
        scratch
    }

    /// Calibrates the guess against the data of the example.
    fn fit(&self, args: &[&str]) -> Output {
        self.zonelab(&[&FIT[..], args].concat())
    }

    /// What is wrong with a fit, and that its exit code says so.
    fn refused(&self, args: &[&str], code: i32) -> String {
        let output = self.fit(args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
        text
    }

    /// Every file of a calibration, and its profile.
    fn results(&self, out: &str) -> BTreeMap<String, String> {
        let dir = format!("{out}.calibration");
        let mut files: BTreeMap<String, String> = std::fs::read_dir(self.0.join(&dir))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .map(|name| (name.clone(), self.read(&format!("{dir}/{name}"))))
            .collect();
        files.insert("profile".to_owned(), self.read(out));
        files
    }
}

const FIT: [&str; 6] = [
    "calibrate",
    "--data=data",
    "--start=guess.toml",
    "--experiments=experiment.toml",
    "--coarse",
    "--quiet",
];

fn example(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/calibrate");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    super::schemas::valid("calibrate", &output.stdout);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn microseconds(value: &Value) -> f64 {
    value
        .as_str()
        .unwrap()
        .strip_suffix("us")
        .unwrap()
        .parse()
        .unwrap()
}

/// Every key of a summary is within 2 % of what the drive has.
fn assert_found(summary: &Value, keys: &[&str]) {
    let parameters = summary["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), keys.len());
    for parameter in parameters {
        let key = parameter["key"].as_str().unwrap();
        let (_, truth) = TRUTH.iter().find(|(known, _)| *known == key).unwrap();
        let fitted = microseconds(&parameter["fitted"]);
        let start = microseconds(&parameter["start"]);
        assert!((start / truth - 1.0).abs() > 0.1, "{key}: nothing to find");
        let error = fitted / truth - 1.0;
        assert!(error.abs() < 0.02, "{key}: {fitted} is not {truth}");
        assert_eq!(parameter["determined"], true, "{key}");
    }
}

/// The table of the example is what the drive of the example measures.
fn measured(scratch: &Scratch) -> String {
    let text = example("experiment.toml").replace("\"bench-drive\"", "\"drive.toml\"");
    let mut plain = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(plain, "{line}");
    }
    scratch.write("measure.toml", &plain);
    let output = scratch.zonelab(&["run", "measure.toml", "--quiet", "--out=measured"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut rows: BTreeMap<(String, u32), BTreeMap<String, String>> = BTreeMap::new();
    let points = scratch.read("measured/points.csv");
    for line in points.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let point = (fields[1].to_owned(), fields[3].parse().unwrap());
        let metrics = rows.entry(point).or_default();
        metrics.insert(fields[5].to_owned(), fields[7].to_owned());
    }
    let mut table = String::from("series,depth,kiops,lat_mean_us,lat_p95_us\n");
    for ((series, depth), of) in rows {
        let values = ["kiops", "lat_mean_us", "lat_p95_us"].map(|name| of[name].clone());
        let _ = writeln!(table, "{series},{depth},{}", values.join(","));
    }
    table
}

#[test]
fn a_known_drive_is_found_again_from_a_table() {
    let scratch = Scratch::of_example("table");
    assert_eq!(measured(&scratch), example("data/points.csv"));
    let keys = TRUTH.map(|(key, _)| key);
    let output = scratch.zonelab(&[
        "calibrate",
        "--data=data",
        "--start=guess.toml",
        "--experiments=experiment.toml",
        "--out=fitted.toml",
        "--json",
        "--free",
        keys[0],
        keys[1],
        keys[2],
        keys[3],
        "front_end.append=5us..20us",
    ]);
    let summary = json(&output);
    assert_found(&summary, &keys);
    let all = &summary["all"];
    assert!(all["before"]["all"]["median"].as_f64().unwrap() > 0.1);
    assert!(all["after"]["all"]["p90"].as_f64().unwrap() < 0.02);
    // Half of the data predicts most of the other half.
    let folds = summary["cross_validation"].as_array().unwrap();
    assert_eq!(folds.len(), 2);
    for fold in folds {
        assert!(
            fold["left_out"]["all"]["median"].as_f64().unwrap() < 0.02,
            "{fold}"
        );
    }
    // Only values differ from the start profile, comments are there.
    let (before, after) = (scratch.read("guess.toml"), scratch.read("fitted.toml"));
    assert_eq!(before.lines().count(), after.lines().count());
    for (old, new) in before.lines().zip(after.lines()) {
        let same = |line: &str| {
            let parts: Vec<&str> = line.split('"').collect();
            (parts[0].to_owned(), parts.get(2).map(ToString::to_string))
        };
        assert_eq!(same(old), same(new));
    }
    let files = scratch.results("fitted.toml");
    for name in [
        "residuals.csv",
        "sensitivity.csv",
        "experiment-bench.svg",
        "fit.svg",
    ] {
        assert!(files.contains_key(name), "{name}");
    }
    let residuals = &files["residuals.csv"];
    assert!(
        residuals.contains("data/points.csv,2,bench,appends,1,append,kiops,"),
        "{residuals}"
    );
}

#[test]
fn a_known_drive_is_found_again_from_results_of_fio() {
    let scratch = Scratch::of_example("fio");
    std::fs::create_dir(scratch.0.join("results")).unwrap();
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrate");
    for (name, more) in [("reads", "--full-zones=all"), ("writes", "--seed=1")] {
        let file = jobs.join(format!("{name}.fio"));
        let out = format!("--output=results/{name}.json");
        let args = [
            "fio",
            file.to_str().unwrap(),
            "--device=drive.toml",
            "--json",
            &out,
            more,
        ];
        let output = scratch.zonelab(&args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let fit = [
        "calibrate",
        "--data=results",
        "--start=guess.toml",
        "--out=fitted.toml",
        "--folds=0",
        "--json",
        "--free",
        "media.read",
        "media.program",
        "media.transfer",
        "front_end.write",
    ];
    // A flag without a value is not in fio's JSON, but its groups are.
    let output = scratch.zonelab(&fit);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("results/writes.json:"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("stonewall"), "{}", stderr(&output));
    // Nor are results those of a job file that says otherwise.
    let written = std::fs::read_to_string(jobs.join("writes.fio")).unwrap();
    let other = written.replace("bs=16k", "bs=8k");
    std::fs::write(scratch.0.join("results/writes.fio"), &other).unwrap();
    let output = scratch.zonelab(&fit);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("the results are not of these jobs"),
        "{}",
        stderr(&output)
    );
    std::fs::write(scratch.0.join("results/writes.fio"), &written).unwrap();
    let summary = json(&scratch.zonelab(&fit));
    assert_found(&summary, &fit[7..]);
}

#[test]
fn the_same_bytes_whether_interrupted_or_not_on_any_number_of_threads() {
    let scratch = Scratch::of_example("bytes");
    let free = [
        "--free",
        "media.read",
        "front_end.write",
        "--max-evaluations=14",
        "--folds=2",
    ];
    let fit = |out: &str, threads: &str| {
        let command = [&free[..], &[out, threads]].concat();
        let output = scratch.fit(&command);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout)
            .unwrap()
            .replace(out.trim_start_matches("--out="), "")
    };
    let text = fit("--out=one.toml", "--threads=1");
    let one = scratch.results("one.toml");
    assert_eq!(fit("--out=two.toml", "--threads=2"), text);
    assert_eq!(scratch.results("two.toml"), one);
    // What an interruption leaves: some evaluations, the last cut off.
    let evaluations = &one["evaluations.jsonl"];
    assert!(evaluations.lines().count() > 10, "{evaluations}");
    std::fs::create_dir(scratch.0.join("three.toml.calibration")).unwrap();
    let half = evaluations.len() / 2;
    scratch.write(
        "three.toml.calibration/evaluations.jsonl",
        &evaluations[..half],
    );
    let manifest = one["manifest.json"].replace("\"complete\": true", "\"complete\": false");
    scratch.write("three.toml.calibration/manifest.json", &manifest);
    assert_eq!(fit("--out=three.toml", "--threads=2"), text);
    assert_eq!(scratch.results("three.toml"), one);
}

#[cfg(unix)]
#[test]
fn an_interruption_can_be_gone_on_from() {
    let scratch = Scratch::of_example("interrupt");
    let free = [
        "--free",
        "media.read",
        "media.program",
        "--max-evaluations=30",
    ];
    let command = [&FIT[..], &free, &["--out=out.toml"]].concat();
    let evaluations = "out.toml.calibration/evaluations.jsonl";
    if scratch.interrupted(&command, evaluations, 3) == 130 {
        assert!(!scratch.0.join("out.toml").exists());
        let output = scratch.zonelab(&command);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let again = [&FIT[..], &free, &["--out=other.toml"]].concat();
    assert!(scratch.zonelab(&again).status.success());
    assert_eq!(scratch.results("out.toml"), scratch.results("other.toml"));
}

#[test]
fn bad_tables_are_refused_with_file_row_and_column() {
    let scratch = Scratch::of_example("tables");
    let table = example("data/points.csv");
    let first = table.lines().nth(1).unwrap();
    let cells: Vec<&str> = first.split(',').collect();
    let with = |column: usize, value: &str| {
        let mut cells = cells.clone();
        cells[column] = value;
        table.replacen(first, &cells.join(","), 1)
    };
    let bad = [
        (
            with(2, "-3"),
            "data/points.csv:2: column `kiops`: -3 is no possible value",
        ),
        (
            with(3, "0"),
            "data/points.csv:2: column `lat_mean_us`: 0 is no possible value",
        ),
        (
            with(4, "NaN"),
            "data/points.csv:2: column `lat_p95_us`: `NaN` is not a number",
        ),
        (
            with(4, "fast"),
            "data/points.csv:2: column `lat_p95_us`: `fast` is not a number",
        ),
        (
            with(2, "1e9"),
            "data/points.csv:2: column `kiops`: 1000000000 is no possible value",
        ),
        // Nanoseconds in a column of microseconds.
        (
            with(3, "63800"),
            "operations in flight, and the experiment has 4",
        ),
        (
            with(4, "1,2"),
            "data/points.csv:2: 6 fields, but the header has 5",
        ),
        (
            table.lines().next().unwrap().to_owned(),
            "data/points.csv:1: the file has a header and",
        ),
        (
            table.replacen("depth", "qd", 1),
            "data/points.csv:1: column `depth`: the file has no such column; it has: series, qd, kiops",
        ),
        // A table of another country's spreadsheet.
        (
            table.replace(',', ";"),
            "data/points.csv:1: column `series`: the file has no such column; it has: series;depth;",
        ),
        // A table that was pasted twice.
        (
            format!("{table}{}\n", table.lines().nth(1).unwrap()),
            "data/points.csv: lines 2, ",
        ),
        (
            table.replace("lat_", "l_").replace("kiops", "k"),
            "the data hold none of its values",
        ),
        (
            table.replace("reads,", "red,"),
            "no row of \"bench/points\" answers to series=reads",
        ),
        (String::new(), "data/points.csv:1: the file has no header"),
    ];
    for (text, message) in bad {
        scratch.write("data/points.csv", &text);
        let said = scratch.refused(&["--free=media.read", "--out=out.toml"], 3);
        assert!(said.contains(message), "{message}: {said}");
        assert!(!scratch.0.join("out.toml").exists());
    }
    std::fs::remove_file(scratch.0.join("data/points.csv")).unwrap();
    let said = scratch.refused(&["--free=media.read", "--out=out.toml"], 3);
    assert!(said.contains("needs the table bench/points"), "{said}");
}

#[test]
fn bad_results_of_fio_are_refused_with_file_row_and_column() {
    let scratch = Scratch::of_example("results");
    for (text, message) in [
        ("{", "this is no JSON"),
        ("{}", "no `jobs` in it"),
        ("{\"jobs\":[{\"jobname\":\"a\"}]}", "no `job options` in it"),
        (
            "{\"jobs\":[\n{\n\"jobname\":\"a\",\"job options\":{\"rw\":\"read\",\"runtime\":\"1\"},\
             \"read\":{\"total_ios\":5,\"iops\":-1.5}}]}",
            "data/a.json:3: column `read.kiops`: -1.5 IOPS is no possible value of kiops",
        ),
        (
            "{\"jobs\":[{\"jobname\":\"a\",\"job options\":{\"rw\":\"read\",\"rumtime\":\"1\"},\
             \"read\":{\"total_ios\":5,\"iops\":1.5}}]}",
            "data/a.json: these jobs cannot be run here",
        ),
    ] {
        scratch.write("data/a.json", text);
        let args = [
            "calibrate",
            "--data=data",
            "--start=guess.toml",
            "--out=out.toml",
        ];
        let output = scratch.zonelab(&[&args[..], &["--free=media.read"]].concat());
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(
            stderr(&output).contains(message),
            "{message}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn bad_keys_and_places_are_refused() {
    let scratch = Scratch::of_example("keys");
    for (free, message) in [
        ("media.raed", "did you mean media.read?"),
        ("media", "no such key"),
        (
            "media.channel_arbitration",
            "no number that could be fitted",
        ),
        ("media.read=90us..50us", "the lower comes first"),
        ("media.read=75us..90us", "70us is not within 75us..90us"),
        ("media.read=1MiB..2MiB", "unknown unit"),
        ("finish.design", "no number"),
    ] {
        let said = scratch.refused(&[&format!("--free={free}"), "--out=out.toml"], 2);
        assert!(said.contains(message), "{free}: {said}");
    }
    let twice = ["--free", "media.read", "media.read", "--out=out.toml"];
    assert!(scratch.refused(&twice, 2).contains("named twice"));
    let said = scratch.refused(&["--free=media.read", "--out=guess.toml"], 4);
    assert!(said.contains("guess.toml exists"), "{said}");
    // Results of another configuration.
    let short = ["--out=out.toml", "--max-evaluations=2", "--folds=0"];
    assert!(
        scratch
            .fit(&[&short[..], &["--free=media.read"]].concat())
            .status
            .success()
    );
    std::fs::remove_file(scratch.0.join("out.toml")).unwrap();
    let other = [&short[..], &["--free=media.program"]].concat();
    assert!(scratch.refused(&other, 4).contains("another configuration"));
    assert!(
        scratch
            .fit(&[&other[..], &["--force"]].concat())
            .status
            .success()
    );
}

#[test]
fn what_the_data_do_not_determine_is_said_and_left_alone() {
    let scratch = Scratch::of_example("undetermined");
    let free = [
        "--free",
        "media.read",
        "zones.max_active=8..32",
        "--max-evaluations=12",
    ];
    let summary = json(&scratch.fit(&[&free[..], &["--out=out.toml", "--json"]].concat()));
    let parameter = &summary["parameters"][1];
    assert_eq!(parameter["determined"], false);
    assert_eq!(parameter["fitted"], "16");
    let warning = "zones.max_active: not determined by the data";
    assert!(summary["warnings"].to_string().contains(warning));
    let sensitivity = scratch.read("out.toml.calibration/sensitivity.csv");
    assert!(
        sensitivity.contains("zones.max_active,bench,kiops,15,0,0\n"),
        "{sensitivity}"
    );
}

#[test]
fn results_beside_the_data_are_no_data() {
    let scratch = Scratch::of_example("beside");
    let fit = [
        "--free=media.read",
        "--out=data/out.toml",
        "--max-evaluations=4",
        "--folds=0",
    ];
    let first = scratch.fit(&fit);
    assert!(first.status.success(), "{}", stderr(&first));
    let results = scratch.results("data/out.toml");
    // The same again: everything was evaluated before.
    let again = scratch.fit(&[&fit[..], &["--force"]].concat());
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(scratch.results("data/out.toml"), results);
}
