//! Our reading of job files beside that of the real fio: the tier `fio`
//! (`cargo xtask test fio`), which needs fio 3.33 or later and Python 3.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use zonelab::host::fio::options;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fio")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fio(args: &[&str]) -> Output {
    let output = Command::new("fio").args(args).current_dir(here()).output();
    output.expect("fio is installed: this tier needs it")
}

fn zonelab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zonelab"))
        .current_dir(here())
        .args(args)
        .output()
        .unwrap()
}

fn job_files() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(here())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    assert!(names.len() > 5, "{names:?}");
    names
}

#[test]
fn every_option_that_fio_lists_is_known() {
    let output = text(&fio(&["--cmdhelp"]).stdout);
    let names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.trim_end_matches(':'))
        .collect();
    assert!(names.len() > 150, "{output}");
    let unknown: Vec<&str> = names
        .into_iter()
        .filter(|name| options::find(name).is_none())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn both_accept_and_refuse_the_same_files() {
    for name in job_files() {
        let theirs = fio(&["--parse-only", &name]);
        let ours = zonelab(&["fio", "--parse-only", &name]);
        let (they, we) = (theirs.status.success(), ours.status.success());
        let both = format!("{name}\n{}\n{}", text(&theirs.stderr), text(&ours.stderr));
        // fio takes some nonsense for zero, or goes on without it.
        let stricter = name.starts_with("stricter");
        assert_eq!(we, they && !stricter, "{both}");
        assert_eq!(we, !stricter && !name.starts_with("refused"), "{both}");
        if !we {
            assert!(text(&ours.stderr).contains(&format!("{name}:")), "{both}");
        }
    }
}

/// The results of both for `common.fio`, and where they are kept.
struct Results {
    theirs: Value,
    ours: Value,
    paths: [PathBuf; 2],
}

impl Results {
    fn get(test: &str) -> Self {
        let scratch =
            std::env::temp_dir().join(format!("zonelab-fio-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        let paths = ["theirs.json", "ours.json"].map(|name| scratch.join(name));
        let to = |path: &Path| format!("--output={}", path.display());
        let theirs = fio(&["--output-format=json", &to(&paths[0]), "common.fio"]);
        assert!(theirs.status.success(), "{}", text(&theirs.stderr));
        let ours = zonelab(&[
            "fio",
            "--json",
            &to(&paths[1]),
            "--device",
            "small-zones",
            "--full-zones",
            "all",
            "common.fio",
        ]);
        assert!(ours.status.success(), "{}", text(&ours.stderr));
        let read = |path: &Path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Self {
            theirs: read(&paths[0]),
            ours: read(&paths[1]),
            paths,
        }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.paths[0].parent().unwrap());
    }
}

/// All keys of a value, as paths. Names of percentiles are keys too.
fn keys(value: &Value, at: &str, all: &mut BTreeSet<String>) {
    if let Value::Object(map) = value {
        for (key, value) in map {
            let path = format!("{at}/{key}");
            keys(value, &path, all);
            all.insert(path);
        }
    }
}

#[test]
fn jobs_groups_and_options_are_the_same() {
    let Results { theirs, ours, .. } = &Results::get("jobs");
    assert_eq!(ours["global options"], theirs["global options"]);
    let (theirs, ours) = (
        theirs["jobs"].as_array().unwrap(),
        ours["jobs"].as_array().unwrap(),
    );
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        for key in [
            "jobname",
            "groupid",
            "job options",
            "error",
            "desc",
            "latency_depth",
        ] {
            assert_eq!(
                ours.get(key),
                theirs.get(key),
                "{key} of {}",
                theirs["jobname"]
            );
        }
    }
}

#[test]
fn results_have_the_same_shape() {
    let Results { theirs, ours, .. } = &Results::get("shape");
    for (ours, theirs) in ours["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(theirs["jobs"].as_array().unwrap())
    {
        let (mut we, mut they) = (BTreeSet::new(), BTreeSet::new());
        keys(ours, "", &mut we);
        keys(theirs, "", &mut they);
        we.retain(|key| !key.starts_with("/zonelab"));
        assert_eq!(we, they, "{}", theirs["jobname"]);
    }
}

#[test]
fn jobs_move_the_same_amounts() {
    let Results { theirs, ours, .. } = &Results::get("amounts");
    let amount = |result: &Value, job: usize, direction: &str, key: &str| {
        result["jobs"][job][direction][key].as_u64().unwrap()
    };
    // Mixed jobs draw their directions, and bsrange its sizes, from other
    // generators than fio's: what is compared does not depend on them.
    let total = |result: &Value| {
        amount(result, 0, "read", "io_bytes") + amount(result, 0, "write", "io_bytes")
    };
    assert!(total(theirs).abs_diff(total(ours)) <= 2 * 8_192 * 4);
    for (job, direction) in [(1, "write"), (3, "read")] {
        for key in ["total_ios", "io_bytes"] {
            let [we, they] = [ours, theirs].map(|result| amount(result, job, direction, key));
            assert_eq!(we, they, "{key} of job {job}");
        }
    }
}

#[test]
fn a_script_for_fio_reads_ours() {
    let results = Results::get("script");
    let summary = |path: &Path| {
        let output = Command::new("python3")
            .arg(here().join("summary.py"))
            .arg(path)
            .output();
        let output = output.expect("Python 3 is installed: this tier needs it");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let [theirs, ours] = [0, 1].map(|index| summary(&results.paths[index]));
    println!("fio's:\n{theirs}\nours:\n{ours}");
    let rows = |text: &str| -> Vec<Vec<String>> {
        let cells = |line: &str| line.split('\t').take(4).map(str::to_owned).collect();
        text.lines().map(cells).collect()
    };
    assert_eq!(rows(&ours), rows(&theirs), "the same jobs and directions");
}

#[test]
fn the_example_is_fio_but_for_the_extension() {
    let path = here().join("../../../../docs/examples/writers-and-finishes.fio");
    let example = std::fs::read_to_string(path).unwrap();
    let plain: String = example
        .lines()
        .filter(|line| !line.starts_with("finish=1"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let file = std::env::temp_dir().join(format!("zonelab-example-{}.fio", std::process::id()));
    std::fs::write(&file, plain).unwrap();
    let output = Command::new("fio")
        .env("WRITERS", "4")
        .arg("--parse-only")
        .arg(&file)
        .output();
    let _ = std::fs::remove_file(&file);
    let output = output.expect("fio is installed: this tier needs it");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
