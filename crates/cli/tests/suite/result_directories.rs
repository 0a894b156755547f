//! Where results go: a directory for each configuration, and a link to the newest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::scratch::{Scratch, stderr};

/// One point on a drive, in no time.
const EXPERIMENT: &str = r#"
schema = 1
id = "one"
title = "A writer"
profile = "confznspp"
[[job]]
name = "write"
work = "write"
zones = "0..=1"
block = "16KiB"
operations = 20
[[series]]
name = "alone"
jobs = ["write"]
"#;

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

/// Runs the experiment, and gives the directory that the link leads to.
fn newest(scratch: &Scratch, more: &[&str]) -> PathBuf {
    let output = scratch.zonelab(&[&["run", "one.toml"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let link = scratch.0.join("results/one/latest");
    let target = std::fs::read_link(&link).unwrap();
    assert_eq!(target.components().count(), 1, "it is relative: {target:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = Path::new("results/one").join(target);
    let line = format!(
        "results: {} (results/one/latest leads to it)",
        path.display()
    );
    assert!(said.contains(&line), "{said}");
    scratch.0.join(path)
}

#[test]
fn an_edited_file_runs_again_and_the_old_results_stay() {
    let scratch = Scratch::new("directories");
    scratch.write("one.toml", EXPERIMENT);
    let first = newest(&scratch, &[]);
    let bytes = files(&first);
    assert!(bytes.contains_key("rows.json"));

    assert_eq!(newest(&scratch, &[]), first, "the same configuration");
    assert_eq!(files(&first), bytes);

    let edited = EXPERIMENT.replace("operations = 20", "operations = 30");
    scratch.write("one.toml", &edited);
    let second = newest(&scratch, &[]);
    assert_ne!(second, first);
    assert_eq!(files(&first), bytes, "the old ones stay");
    assert_ne!(newest(&scratch, &["--seed", "2"]), second);
    assert_ne!(newest(&scratch, &["--set", "job.0.operations=31"]), second);
    assert_ne!(newest(&scratch, &["--repeats", "2"]), second);
    assert_eq!(
        newest(&scratch, &["--repeats", "1"]),
        second,
        "once, as before"
    );
    assert_eq!(newest(&scratch, &["--set", "repeats=1"]), second);

    // Back to the first: the link follows.
    scratch.write("one.toml", EXPERIMENT);
    assert_eq!(newest(&scratch, &[]), first);
    assert_eq!(
        std::fs::read_dir(scratch.0.join("results/one"))
            .unwrap()
            .count(),
        6
    );
}

#[test]
fn a_named_directory_is_that_and_is_protected() {
    let scratch = Scratch::new("named");
    scratch.write("one.toml", EXPERIMENT);
    let run = |more: &[&str]| {
        let output = scratch.zonelab(&[&["run", "one.toml", "--out", "out"], more].concat());
        output.status.code()
    };
    assert_eq!(run(&[]), Some(0));
    let first = files(&scratch.0.join("out"));
    assert!(first.contains_key("rows.json") && !first.contains_key("latest"));
    assert_eq!(run(&["--seed", "2"]), Some(4));
    assert_eq!(files(&scratch.0.join("out")), first);
    assert_eq!(run(&["--seed", "2", "--force"]), Some(0));
    assert_ne!(files(&scratch.0.join("out")), first);
    assert!(!scratch.0.join("results").exists());
}

/// Something else where the link should be is left alone, and results are there anyway.
#[test]
fn what_is_no_link_is_not_replaced() {
    let scratch = Scratch::new("no-link");
    scratch.write("one.toml", EXPERIMENT);
    std::fs::create_dir_all(scratch.0.join("results/one")).unwrap();
    scratch.write("results/one/latest", "mine");
    let output = scratch.zonelab(&["run", "one.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("results/one/latest: it is not a link"));
    assert_eq!(scratch.read("results/one/latest"), "mine");
}

/// Published values are part of what results are results of.
#[test]
fn another_table_of_published_results_is_another_configuration() {
    let scratch = Scratch::new("table");
    let text = EXPERIMENT.replace(
        "[[job]]",
        "[reference]\nfile = \"mine.csv\"\n[[compare]]\njob = \"write\"\nmetrics = [\"kiops\"]\n[[job]]",
    );
    scratch.write("one.toml", &text);
    scratch.write("mine.csv", "x,series,kiops\n1,alone,1.4\n");
    let first = newest(&scratch, &[]);
    scratch.write("mine.csv", "x,series,kiops\n1,alone,1.5\n");
    let second = newest(&scratch, &[]);
    assert_ne!(first, second);
    let rows = std::fs::read_to_string(first.join("rows.csv")).unwrap();
    assert!(rows.contains(",1.4,"), "{rows}");
}
