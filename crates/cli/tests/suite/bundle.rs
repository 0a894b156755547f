//! `zonelab bundle`, and `zonelab reproduce` of what it packs.

use std::fs;
use std::process::Output;

use serde_json::Value;
use zonelab_lab::bundle::{Bundle, Limits, RECIPE};

use super::scratch::{Scratch, stderr};

/// Everything that an experiment reads from files: a drive, a table of published results.
const EXPERIMENT: &str = r#"
schema = 1
id = "small"
title = "Writers"
profile = "drives/mine.toml"
reference = "published.csv"
[axis]
name = "concurrency"
values = [1, 3]
[[job]]
name = "write"
work = "write"
threads = "$x"
zones = "0..=14"
block = "16KiB"
runtime = "200ms"
[[series]]
name = "alone"
jobs = ["write"]
[[compare]]
job = "write"
metrics = ["kiops"]
[figure]
job = "write"
x = "axis"
y = "kiops"
"#;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory with an experiment and all of its files.
fn prepared(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.0.join("drives")).unwrap();
    let profile = scratch.zonelab(&["profiles", "show", "confznspp", "--toml"]);
    scratch.write("drives/mine.toml", &stdout(&profile));
    scratch.write("published.csv", "series,x,kiops\nalone,1,1.3\nalone,3,4\n");
    scratch.write("small.toml", EXPERIMENT);
    scratch
}

/// The bundle of a run, in a directory that has nothing else.
fn moved(scratch: &Scratch, run: &[&str]) -> Scratch {
    let output = scratch.zonelab(&[run, &["--out", "out", "--threads", "2"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = scratch.zonelab(&["bundle", "out", "--out", "small.tar.gz"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let elsewhere = Scratch::new("bundle-elsewhere");
    let file = elsewhere.0.join("b.tar.gz");
    fs::rename(scratch.0.join("small.tar.gz"), file).unwrap();
    elsewhere
}

fn read(scratch: &Scratch) -> Bundle {
    let bytes = fs::read(scratch.0.join("b.tar.gz")).unwrap();
    Bundle::read(&bytes, Limits::default()).unwrap()
}

fn write(scratch: &Scratch, bundle: &Bundle) {
    let bytes = bundle.to_bytes().unwrap();
    fs::write(scratch.0.join("b.tar.gz"), bytes).unwrap();
}

#[test]
fn a_run_is_reproduced_elsewhere_without_its_files() {
    let scratch = prepared("bundle");
    let set = [
        "--set",
        "job.0.block=32KiB",
        "--figure-width",
        "85mm",
        "--seed",
        "7",
    ];
    let elsewhere = moved(&scratch, &[&["run", "small.toml"], &set[..]].concat());
    drop(scratch);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz", "--threads", "1"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let files = read(&elsewhere).results;
    assert!(stdout(&output).contains(&format!("all {} files are the same", files.len())));
    let svg = String::from_utf8_lossy(&files["small.svg"]).into_owned();
    assert!(svg.contains("width=\"85mm\""));
    // Nothing is left behind.
    let left: Vec<_> = fs::read_dir(&elsewhere.0).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn paths_from_the_root_and_a_trace_are_reproduced_as_well() {
    let scratch = prepared("bundle-absolute");
    let file = scratch.0.join("small.toml").display().to_string();
    let set = ["--set", "axis.values=[1]", "--trace", "--trace-for", "5ms"];
    let device = ["--device", "drives/mine.toml"];
    let elsewhere = moved(&scratch, &[&["run", &file], &set[..], &device[..]].concat());
    drop(scratch);
    let names: Vec<String> = read(&elsewhere).results.into_keys().collect();
    assert!(
        names.iter().any(|name| name.ends_with(".pftrace.gz")),
        "{names:?}"
    );
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz", "--out", "again", "--json"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&value["same"], value["files"].as_u64()),
        (&Value::Bool(true), Some(names.len() as u64))
    );
    assert!(elsewhere.0.join("again/rows.csv").exists());
}

#[test]
fn published_results_are_reproduced_from_a_bundle() {
    let scratch = Scratch::new("bundle-published");
    let elsewhere = moved(&scratch, &["reproduce", "C9b", "--quick"]);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

/// A sweep of the experiment, which names its drive and its published results by path.
const SWEEP: &str = r#"
schema = 1
experiment = "small.toml"
[[vary]]
key = "job.0.block"
values = ["16KiB", "32KiB"]
"#;

#[test]
fn a_sweep_is_reproduced_elsewhere_with_its_page() {
    let scratch = prepared("bundle-sweep");
    scratch.write("blocks.toml", SWEEP);
    let elsewhere = moved(&scratch, &["sweep", "blocks.toml", "--repeats", "2"]);
    drop(scratch);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz", "--threads", "1"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let files = read(&elsewhere).results;
    for name in ["sweep.jsonl", "sweep.html", "sweep-pack.json"] {
        assert!(files.contains_key(name), "{name}");
    }
}

#[test]
fn a_search_is_reproduced_elsewhere_unless_it_looked_at_another_one() {
    const OVER: [&str; 2] = ["--over", "job.0.block=16KiB..1MiB"];
    const OBJECTIVES: [&str; 3] = ["--maximize", "mib_s", "ops_s"];
    let scratch = prepared("bundle-search");
    let search = [
        "search",
        "small.toml",
        "--budget",
        "12",
        "--method",
        "evolve",
    ];
    let words = [&search[..], &OVER, &OBJECTIVES].concat();
    let elsewhere = moved(&scratch, &words);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz", "--threads", "1"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let files = read(&elsewhere).results;
    for name in ["sweep.csv", "search.html", "front.svg", "search.json"] {
        assert!(files.contains_key(name), "{name}");
    }
    // What was chosen for other objectives would not be chosen for these.
    let others = ["--minimize", "mib_s", "ops_s"];
    let out = ["--out", "two"];
    for objectives in [OBJECTIVES, others] {
        let words = [&search[..], &OVER, &objectives, &out, &["--quiet"]].concat();
        let output = scratch.zonelab(&words);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = scratch.zonelab(&["bundle", "two"]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("several searches"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_bundle_is_called_what_its_results_are_called() {
    let scratch = prepared("bundle-name");
    let run = scratch.zonelab(&["run", "small.toml"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let output = scratch.zonelab(&["bundle", "results/small/latest"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let target = fs::read_link(scratch.0.join("results/small/latest")).unwrap();
    let name = format!("small-{}.tar.gz", target.display());
    assert!(stdout(&output).starts_with(&name), "{}", stdout(&output));
    assert!(scratch.0.join(name).exists());
}

#[test]
fn the_same_results_are_the_same_bundle() {
    let scratch = prepared("bundle-bytes");
    let first = moved(&scratch, &["run", "small.toml"]);
    let second = moved(&scratch, &["run", "small.toml", "--force"]);
    let bytes = |scratch: &Scratch| fs::read(scratch.0.join("b.tar.gz")).unwrap();
    assert_eq!(bytes(&first), bytes(&second));
}

#[test]
fn a_bundle_that_is_not_there_is_said_to_be_missing() {
    let scratch = Scratch::new("bundle-missing");
    for name in ["./nothing.tar.gz", "nothing.tar.gz", "results/nothing"] {
        let output = scratch.zonelab(&["reproduce", name]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(name) && said.contains("No such file"),
            "{said}"
        );
    }
}

#[test]
fn one_changed_byte_is_named() {
    let scratch = prepared("bundle-changed");
    let elsewhere = moved(&scratch, &["run", "small.toml"]);
    let mut bundle = read(&elsewhere);
    let rows = bundle.results.get_mut("rows.csv").unwrap();
    let text = String::from_utf8(rows.clone()).unwrap();
    let second = text.lines().nth(1).unwrap();
    let at = text.find(second).unwrap();
    let digit = at + second.rfind(|c: char| c.is_ascii_digit()).unwrap();
    rows[digit] = if rows[digit] == b'9' { b'8' } else { b'9' };
    write(&elsewhere, &bundle);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(said.starts_with("rows.csv: 1 line differs"), "{said}");
    assert!(
        said.contains("line 2\n") && said.contains(&format!("again:  {second}")),
        "{said}"
    );
    // What was made again stays, to look at.
    let kept = said.rsplit("is in ").next().unwrap().trim();
    let kept = std::path::Path::new(kept);
    assert_eq!(fs::read_to_string(kept.join("rows.csv")).unwrap(), text);
    fs::remove_dir_all(kept).unwrap();
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz", "--json", "--out", "again"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(value["differences"][0]["file"], "rows.csv");
    assert_eq!(value["differences"][0]["first"][0]["line"], 2);
}

#[test]
fn damaged_and_hostile_bundles_are_refused() {
    let scratch = prepared("bundle-hostile");
    let elsewhere = moved(&scratch, &["run", "small.toml"]);
    let whole = read(&elsewhere);
    let refused = |what: &str| {
        let output = elsewhere.zonelab(&["reproduce", "b.tar.gz"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{what}: {said}");
        assert!(said.contains(what), "{what}: {said}");
    };
    let path = elsewhere.0.join("b.tar.gz");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    refused("no bundle, or a damaged one");
    fs::write(&path, "nothing of the kind").unwrap();
    refused("no bundle, or a damaged one");
    // Commands that no results come from, or that write or reach elsewhere.
    let commands: [(&[&str], &str); 6] = [
        (&["serve", "zn540"], "not one whose results are compared"),
        (&["run", "small.toml", "--trace=/var/x"], "--trace=FILE"),
        (
            &["run", "small.toml", "--device", "linux:///dev/ng0n1"],
            "a device in real time",
        ),
        (
            &["run", "small.toml", "--device", "tcp://127.0.0.1:1/n"],
            "a device in real time",
        ),
        (
            &["run", "/etc/hostname"],
            "not among the files of the bundle",
        ),
        (&["reproduce", "--nothing"], "the command in the bundle"),
    ];
    for (words, what) in commands {
        let mut bundle = whole.clone();
        let recipe = bundle.results.get_mut(RECIPE).unwrap();
        let mut value: Value = serde_json::from_slice(recipe).unwrap();
        value["words"] = words.iter().copied().collect();
        *recipe = value.to_string().into_bytes();
        write(&elsewhere, &bundle);
        refused(what);
    }
    let mut bundle = whole.clone();
    bundle.results.remove(RECIPE);
    write(&elsewhere, &bundle);
    refused("inputs.json");
    // One of another version says so, and is still compared.
    let older = Bundle {
        tool: "zonelab 0.0.1".to_owned(),
        ..whole
    };
    write(&elsewhere, &older);
    let output = elsewhere.zonelab(&["reproduce", "b.tar.gz"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("was made by zonelab 0.0.1"));
}

#[test]
fn what_cannot_be_packed_says_why() {
    let scratch = prepared("bundle-refused");
    let refused = |words: &[&str], code: i32, what: &str| {
        let output = scratch.zonelab(words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(what), "{said}");
    };
    refused(&["bundle", "nothing"], 3, "nothing");
    refused(&["bundle", "drives"], 3, "manifest.json");
    refused(&["bundle", "small.toml"], 3, "this is a file");
    let run = ["run", "small.toml", "--out", "out"];
    assert_eq!(scratch.zonelab(&run).status.code(), Some(0));
    scratch.write("mine.tar.gz", "something else");
    refused(
        &["bundle", "out", "--out", "mine.tar.gz"],
        4,
        "something else",
    );
    let manifest = scratch.read("out/manifest.json");
    scratch.write("out/manifest.json", &manifest.replace("true", "false"));
    refused(&["bundle", "out"], 3, "not complete");
    let real = ["--device", "confznspp?clock=real", "--out", "real"];
    let output = scratch.zonelab(&[&["run", "small.toml"], &real[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    refused(&["bundle", "real"], 3, "in real time");
}
