//! A pipe in the place of a file that a command reads: it is refused, and not waited for.

use std::path::Path;
use std::process::{Command, Output};

use super::documented::EXPERIMENT;
use super::scratch::{Scratch, stderr};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");

fn make_pipe(at: &Path) {
    let made = Command::new("mkfifo").arg(at).status();
    assert!(made.unwrap().success());
}

/// Runs the command, which gets a minute and then ends with 124.
fn within_a_minute(scratch: &Scratch, words: &[&str]) -> Output {
    let zonelab = scratch.command(words);
    let mut command = Command::new("timeout");
    command.arg("60").arg(zonelab.get_program());
    let output = command.args(words).current_dir(&scratch.0).output();
    output.unwrap()
}

fn refused(scratch: &Scratch, words: &[&str], says: &[&str]) {
    let output = within_a_minute(scratch, words);
    let said = stderr(&output);
    assert!(
        matches!(output.status.code(), Some(3 | 4)),
        "{words:?}: {:?}: {said}",
        output.status
    );
    for says in says {
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn pipes_are_refused_wherever_a_file_is_named() {
    let scratch = Scratch::new("pipes");
    make_pipe(&scratch.0.join("pipe"));
    let here = "127.0.0.1:0";
    let words: [&[&str]; 16] = [
        &["store", "check", "./pipe"],
        &["store", "repair", "./pipe"],
        &["store", "repair", "./pipe", "--force"],
        &["serve", PROFILE, "--listen", here, "--store", "./pipe"],
        &["ftl", "check", "--device", PROFILE, "--store", "./pipe"],
        &["ftl", "format", "--device", PROFILE, "--store", "./pipe"],
        &["serve", "./pipe", "--listen", here],
        &["serve", PROFILE, "--listen", here, "--faults", "./pipe"],
        &["serve", PROFILE, "--listen", here, "--hosts", "./pipe"],
        &["reproduce", "./pipe"],
        &["reproduce", "./pipe.tar.gz"],
        &["run", "./pipe.toml"],
        &["check", "./pipe.toml"],
        &["sweep", "./pipe.toml"],
        &["fio", "./pipe", "--device", "confznspp"],
        &["kv", "kvbench-ii", "--device", "./pipe.toml"],
    ];
    make_pipe(&scratch.0.join("pipe.toml"));
    make_pipe(&scratch.0.join("pipe.tar.gz"));
    for words in words {
        refused(&scratch, words, &["./pipe", "no ordinary file"]);
    }
}

const SWEEP: &str = r#"
schema = 1
experiment = "small.toml"
sample = "grid"
metrics = ["kiops"]
[[vary]]
key = "drive.media.program"
name = "program"
values = ["400us", "0us"]
"#;

/// Files that a command has written and reads again.
#[test]
fn pipes_in_the_place_of_results_are_refused() {
    let scratch = Scratch::new("pipes-results");
    scratch.write("small.toml", EXPERIMENT);
    scratch.write("grid.toml", SWEEP);
    let sweep = ["sweep", "grid.toml", "--out", "swept"];
    let output = scratch.zonelab(&sweep);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = ["run", "small.toml", "--out", "ran"];
    let output = scratch.zonelab(&run);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let place = |file: &str| {
        let path = scratch.0.join(file);
        std::fs::remove_file(&path).unwrap();
        make_pipe(&path);
    };
    place("swept/evaluations.jsonl");
    let says = ["swept/evaluations.jsonl", "no ordinary file"];
    refused(&scratch, &sweep, &says);
    place("ran/manifest.json");
    let says = ["ran/manifest.json", "no ordinary file"];
    refused(&scratch, &["bundle", "ran", "--out", "b.tar.gz"], &says);
    refused(&scratch, &run, &says);
}
