//! `zonelab sweep`: the documented file, the example, what is refused, and the same bytes
//! however they come about.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::scratch::{Scratch, stderr};

const DOCUMENT: &str = include_str!("../../../../docs/sweep.md");
const EXPERIMENT: &str = include_str!("../../../../docs/examples/finish-and-reset.toml");

impl Scratch {
    /// The documented file, and the experiment that it names.
    fn of_sweep(name: &str) -> Self {
        let scratch = Self::new(&format!("sweep-{name}"));
        let (_, file) = DOCUMENT.split_once("## In a file\n\n```toml\n").unwrap();
        let (file, _) = file.split_once("```").unwrap();
        std::fs::create_dir_all(scratch.0.join("docs/examples")).unwrap();
        scratch.write("docs/examples/finish-and-reset.toml", EXPERIMENT);
        scratch.write("s.toml", file);
        scratch
    }

    fn sweep(&self, out: &str, args: &[&str]) -> Output {
        let command = ["sweep", "s.toml", "--quiet", "--out", out];
        self.zonelab(&[&command[..], args].concat())
    }

    /// Every file of a sweep.
    fn swept(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.0.join(out)).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_documented_file_runs_and_its_results_are_as_documented() {
    let scratch = Scratch::of_sweep("documented");
    let check = scratch.zonelab(&["check", "s.toml"]);
    assert!(check.status.success(), "{}", stderr(&check));
    // 2 granularities, 3 depths, 2 designs, without 16 KiB block by block.
    let said = "3 keys, 9 points (grid), 18 runs; all can be run";
    assert!(text(&check).contains(said), "{}", text(&check));
    let list = scratch.sweep("none", &["--list"]);
    assert!(text(&list).contains("9 points, 18 runs"), "{}", text(&list));
    assert!(!scratch.0.join("none").exists());
    let output = scratch.sweep("out", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        text(&output).contains("points on the front"),
        "{}",
        text(&output)
    );
    let summary: Value = serde_json::from_str(&scratch.read("out/sweep.json")).unwrap();
    // Each column that is there stands in the table of the documentation.
    let (_, columns) = DOCUMENT.split_once("### Columns").unwrap();
    let names = summary["columns"].as_array().unwrap().iter();
    let names: Vec<&str> = names
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    let documented: Vec<&str> = columns
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names[..documented.len()], documented);
    assert_eq!(
        names[documented.len()..],
        [
            "granularity_bytes",
            "depth",
            "reset",
            "ops_s",
            "lat_p50_us",
            "lat_p99_us"
        ]
    );
    let csv = scratch.read("out/sweep.csv");
    // One job alone and three side by side, each behind the one that ages the drive.
    assert_eq!(csv.lines().count(), 1 + 18 * (2 + 4));
    assert!(csv.lines().skip(1).all(|line| line.contains(",ok,")));
    // Each file of the directory is in the table of files.
    for name in scratch.swept("out").keys() {
        let is_there = name == "manifest.json" || DOCUMENT.contains(&format!("| `{name}` |"));
        assert!(is_there, "{name}");
    }
    // Once more runs nothing, and says the same.
    let files = scratch.swept("out");
    assert_eq!(json(&scratch.sweep("out", &["--json"])), summary);
    assert_eq!(scratch.swept("out"), files);
}

/// Killed without a word, twice, and then left alone.
#[cfg(unix)]
#[test]
fn a_sweep_that_is_killed_goes_on_to_the_same_bytes() {
    let scratch = Scratch::of_sweep("killed");
    let args = ["sweep", "s.toml", "--quiet", "--out=out", "--threads=2"];
    for lines in [4, 9] {
        let mut child = scratch.command(&args).spawn().unwrap();
        let written = || {
            let log = std::fs::read_to_string(scratch.0.join("out/evaluations.jsonl"));
            log.unwrap_or_default().lines().count()
        };
        while written() < lines && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        let pid = child.id().to_string();
        Command::new("kill").args(["-KILL", &pid]).status().unwrap();
        child.wait().unwrap();
    }
    if scratch.interrupted(&args, "out/evaluations.jsonl", 12) == 130 {
        assert!(!scratch.0.join("out/sweep.csv").exists());
        let output = scratch.zonelab(&args);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert!(scratch.sweep("other", &["--threads=1"]).status.success());
    assert_eq!(scratch.swept("out"), scratch.swept("other"));
}

/// A run of a sweep is a run: what it measured is what `run` measures.
#[test]
fn a_row_is_what_run_gives_with_the_same_settings() {
    let scratch = Scratch::of_sweep("row");
    let output = scratch.sweep("out", &["--points=1", "--repeats=1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = [
        "run",
        "docs/examples/finish-and-reset.toml",
        "--quiet",
        "--out=run",
        "--set=job.0.runtime=20ms",
        "--set=drive.finish.granularity=16KiB",
        "--set=job.0.queue_depth=1",
    ];
    let output = scratch.zonelab(&run);
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = scratch.read("out/sweep.csv");
    let mut rows = csv.lines();
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let points = scratch.read("run/points.csv");
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let of = |name: &str| fields[place(name)];
        for metric in ["ops_s", "lat_p50_us", "lat_p99_us"] {
            let of_run = points.lines().find(|line| {
                let fields: Vec<&str> = line.split(',').collect();
                (fields[1], fields[4], fields[5]) == (of("series"), of("job"), metric)
            });
            let of_run: f64 = of_run.unwrap().rsplit(',').next().unwrap().parse().unwrap();
            let ours: f64 = of(metric).parse().unwrap();
            assert!(
                (ours - of_run).abs() <= 1e-9 * of_run.abs(),
                "{metric}: {ours} {of_run}"
            );
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_exit_code() {
    let scratch = Scratch::of_sweep("refused");
    let file = scratch.read("s.toml");
    for (from, to, args, code, message) in [
        ("", "", &["--set", "x"][..], 2, "there is no `=`"),
        ("", "", &["--points", "0"], 2, "--points"),
        ("", "", &["--set=job.7.block=4KiB"], 3, "job"),
        (
            "key = \"job.0.queue_depth\"",
            "key = \"job.0.queue_deep\"",
            &[],
            3,
            ": vary.1.name: 1 is refused",
        ),
        (
            "sample = \"grid\"",
            "sample = \"gird\"",
            &[],
            3,
            "s.toml:5: sample: ",
        ),
        (
            "sample = \"grid\"",
            "smaple = \"grid\"",
            &[],
            3,
            "s.toml:5: smaple: unknown key `smaple`; did you mean `sample`?",
        ),
        (
            "finish-and-reset.toml\"",
            "none.toml\"",
            &[],
            3,
            "s.toml:3: experiment: docs/examples/none.toml",
        ),
    ] {
        scratch.write("s.toml", &file.replacen(from, to, 1));
        let output = scratch.sweep("out", args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{to} {said}");
        assert!(said.contains(message), "{to}: {said}");
        let others = said.contains("unknown key `vary`");
        assert!(!others, "{to}: {said}");
    }
    assert!(!scratch.0.join("out").exists());
    // Another configuration in the directory stays.
    scratch.write("s.toml", &file);
    assert!(scratch.sweep("out", &["--quick"]).status.success());
    let output = scratch.sweep("out", &["--quick", "--seed=2"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        scratch
            .sweep("out", &["--quick", "--seed=2", "--force"])
            .status
            .success()
    );
}

#[test]
fn the_example_runs_in_its_quick_form() {
    let scratch = Scratch::new("sweep-example");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let example = docs.join("sweep-interference.toml");
    let example = example.to_str().unwrap();
    let args = [
        "sweep",
        example,
        "--quick",
        "--points=8",
        "--out=out",
        "--json",
    ];
    let found = json(&scratch.zonelab(&args));
    assert_eq!(found["points"].as_array().unwrap().len(), 8);
    assert_eq!(found["failed_tasks"], 0);
    let list = scratch.zonelab(&["sweep", example, "--list", "--json"]);
    assert_eq!(json(&list)["points"].as_array().unwrap().len(), 2000);
}
