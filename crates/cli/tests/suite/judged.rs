//! What a user states is judged, whatever the run is told, and what was not judged is no pass.

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// Writers at two depths, and a statement that does not hold on any drive.
const EXPERIMENT: &str = r#"
schema = 1
id = "stated"
title = "Writers"
profile = "confznspp"

[axis]
name = "block"
values = ["16KiB", "64KiB"]

[[job]]
name = "write"
work = "write"
zones = "0..=1"
block = "$x"
operations = 20

[[series]]
name = "alone"
jobs = ["write"]

[[series]]
name = "once"
jobs = ["write"]
x = ["16KiB"]

[quick]
series = ["alone"]
"#;

/// A statement about a series at an axis value.
fn check(series: &str, x: &str, at_least: f64) -> String {
    format!(
        "[[check]]\nsays = \"{series} at {x}\"\nat_least = {at_least:.1}\nvalue = {{ series = \
         \"{series}\", x = \"{x}\", job = \"write\", metric = \"kiops\" }}\n"
    )
}

/// Runs the experiment with a statement: exit code, standard output and `rows.json`.
fn run(scratch: &Scratch, check: &str, args: &[&str]) -> (Option<i32>, String, Value) {
    scratch.write("stated.toml", &format!("{EXPERIMENT}\n{check}"));
    let all = [&["run", "stated.toml", "--force", "--out", "out"], args].concat();
    let output = scratch.zonelab(&all);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = std::fs::read(scratch.0.join("out/rows.json"));
    let rows = rows.unwrap_or_else(|error| panic!("{args:?}: {error}: {}", stderr(&output)));
    (
        output.status.code(),
        text,
        serde_json::from_slice(&rows).unwrap(),
    )
}

/// The verdict of the only statement.
fn verdict(rows: &Value) -> &str {
    let mut all = rows["rows"].as_array().unwrap().iter();
    let statement = all.find(|row| row["series"] == "check").unwrap();
    statement["verdict"].as_str().unwrap()
}

#[test]
fn a_users_statement_is_judged_on_any_drive_and_under_any_conditions() {
    let scratch = Scratch::new("judged");
    scratch.write(
        "faults.toml",
        "[[fault]]\non = \"read\"\nlbas = \"4096..=4351\"\neffect = \"media-error\"\n",
    );
    let ways: [&[&str]; 7] = [
        &[],
        &["--set", "profile=zn540"],
        &["--set", "drive.media.program=700us"],
        &["--set", "title=Others"],
        &["--faults", "faults.toml"],
        &["--device", "zn540"],
        &["--device", "confznspp?via=pcie"],
    ];
    for way in ways {
        let (code, text, rows) = run(&scratch, &check("alone", "16KiB", 1e6), way);
        assert_eq!((code, verdict(&rows)), (Some(1), "FAIL"), "{way:?}: {text}");
        assert_eq!(rows["summary"]["pass"], false, "{way:?}");
        let (code, _, rows) = run(&scratch, &check("alone", "16KiB", 0.0), way);
        assert_eq!((code, verdict(&rows)), (Some(0), "ok"), "{way:?}");
    }
}

#[test]
fn a_statement_that_was_not_judged_is_said_and_is_no_pass() {
    let scratch = Scratch::new("unjudged");
    let holds = |series, x| check(series, x, 0.0);
    let cases: [(String, &[&str], &str); 4] = [
        // The points are left out by the command,
        (
            holds("alone", "64KiB"),
            &["--set", "axis.values=[\"16KiB\"]"],
            "\"alone\" was not run at 64KiB",
        ),
        // by [quick],
        (
            holds("once", "16KiB"),
            &["--quick"],
            "\"once\" was not run at 16KiB",
        ),
        // and by the series itself.
        (holds("once", "64KiB"), &[], "\"once\" was not run at 64KiB"),
        // A mean over values that are not those of the file.
        (
            "[[interference]]\nseries = \"once\"\nisolated = \"alone\"\njob = \"write\"\n\
             [[check]]\nsays = \"mean\"\nat_most = 9\nvalue = { interference = \"once\" }\n"
                .to_owned(),
            &["--set", "axis.values=[\"16KiB\"]"],
            "a mean over all values of the axis",
        ),
    ];
    for (check, args, says) in cases {
        let (code, text, rows) = run(&scratch, &check, args);
        assert_eq!(code, Some(1), "{args:?}: {text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not judged") && text.contains(says), "{text}");
        let summary = &rows["summary"];
        assert_eq!(summary["pass"], false);
        let why = summary["unjudged"][0]["why"].as_str().unwrap();
        assert!(why.contains(says), "{why}");
    }
}

/// A point of the writers, or of reads of nothing, which take no time.
fn point(series: &str, job: &str, metric: &str) -> String {
    format!("{{ series = \"{series}\", x = \"16KiB\", job = \"{job}\", metric = \"{metric}\" }}")
}

#[test]
fn what_has_no_value_is_no_pass() {
    let scratch = Scratch::new("no-value");
    let reads = "[[job]]\nname = \"reads\"\nwork = \"read\"\nzones = \"4..=5\"\n\
                 operations = 50\n[[series]]\nname = \"nothing\"\njobs = [\"reads\"]\n";
    let compared = "[[difference]]\nseries = \"alone\"\nbaseline = \"nothing\"\n\
                    job = \"write\"\nbaseline_job = \"reads\"\nmetrics = [\"kiops\"]\n";
    let write = point("alone", "write", "kiops");
    let of =
        |formula: &str| format!("formula = \"{formula}\"\nof = {{ a = {write} }}\nat_least = 1");
    let none = |metric| point("nothing", "reads", metric);
    let cases = [
        of("1 / (a - a)"),
        of("max(1, 1 / (a - a))"),
        of("1 / (a - a) > 5"),
        format!("value = {}\nat_least = 0", none("kiops")),
        format!("smaller = {}\nlarger = {write}", none("kiops")),
        format!(
            "smaller = {}\nlarger = {}",
            none("lat_max_us"),
            point("alone", "write", "lat_max_us")
        ),
        format!(
            "change = [{}, {}]\nat_least = 0",
            none("lat_max_us"),
            point("alone", "write", "lat_max_us")
        ),
    ];
    for case in cases {
        let check = format!("{reads}{compared}[[check]]\nsays = \"It is known\"\n{case}\n");
        let (code, text, rows) = run(&scratch, &check, &[]);
        assert_eq!((code, verdict(&rows)), (Some(1), "FAIL"), "{case}: {text}");
        let row = &rows["rows"][0];
        assert!(row["ours"].is_null(), "{case}: {row}");
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.starts_with("it has no value"), "{case}: {reason}");
        let difference = &rows["differences"][0];
        assert_eq!(difference["verdict"], "cannot be judged: not measured");
        assert!(difference["series_mean"].is_null(), "{difference}");
        let points = scratch.read("out/points.csv");
        assert!(!points.contains(",reads,kiops,"), "{points}");
        assert!(points.contains(",reads,ops,"), "{points}");
    }
}
