//! A failure must be seen, named, and reproduced by what it prints; and no
//! target may be missing from a list.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use zonelab_fuzz::harness::{self, Extent, Origin};
use zonelab_fuzz::{CANARY, TARGETS};

fn fuzz(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zonelab-fuzz"))
        .args(args)
        .output()
        .expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_canary_fails_with_its_seed_and_a_replay_command() {
    let extent = Extent {
        first: 42,
        runs: Some(10),
        seconds: None,
    };
    let failure = harness::run_seeds(&CANARY, extent).unwrap_err();
    assert_eq!(failure.origin, Origin::Seed(42));

    let output = fuzz(&["canary", "--seed", "42", "--runs", "10"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("the canary fails on every input"), "{text}");
    assert!(text.contains("seed 42"), "{text}");
    assert!(
        text.contains("cargo xtask fuzz canary --seed 42 --runs 1"),
        "{text}"
    );

    // What it prints does reproduce it.
    let replay = fuzz(&["canary", "--seed", "42", "--runs", "1"]);
    assert!(
        stderr(&replay).contains(&failure.message),
        "{}",
        stderr(&replay)
    );
}

#[test]
fn a_minimised_input_is_written_and_fails_too() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("canary.min");
    let path = file.to_str().expect("the build directory has a plain name");
    let output = fuzz(&["canary", "--seed", "42", "--minimise", path]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(fs::read(&file).expect("it was written"), b"");
    let replay = fuzz(&["canary", "--input", path]);
    assert!(
        stderr(&replay).contains("fuzz target canary failed"),
        "{}",
        stderr(&replay)
    );
}

#[test]
fn usage_errors_name_what_there_is() {
    let output = fuzz(&["no-such-target"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        TARGETS.iter().all(|target| text.contains(target.name)),
        "{text}"
    );
    assert!(stderr(&fuzz(&["smoke", "--runs", "x"])).contains("`x` is not a number"));
    assert!(stderr(&fuzz(&["smoke", "--what"])).contains("--what"));
    assert!(stderr(&fuzz(&["smoke", "--runs"])).contains("--runs needs a value"));
    let list = fuzz(&["--list"]);
    let list = String::from_utf8_lossy(&list.stdout);
    assert!(
        TARGETS.iter().all(|target| list.contains(target.name)),
        "{list}"
    );
}

/// Names of the entries of a directory of the repository, without extension.
fn names(directory: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = fs::read_dir(root.join(directory)).expect("the repository has it");
    let mut names: Vec<String> = entries
        .map(|entry| {
            let path = entry.expect("it can be listed").path();
            path.file_stem()
                .expect("an entry has a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_target_has_a_test_a_wrapper_and_a_corpus_and_nothing_else_does() {
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    let tests = include_str!("targets.rs");
    for name in &targets {
        assert!(
            tests.contains(&format!("fn {name}() {{\n    run(\"{name}\");")),
            "{name}: no test"
        );
    }
    targets.retain(|name| *name != "smoke");
    assert_eq!(names("crates/fuzz/corpus"), targets, "corpus directories");
    assert_eq!(names("fuzz/fuzz_targets"), targets, "wrappers");
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    for name in &targets {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name}: not in the manifest"
        );
    }
}
