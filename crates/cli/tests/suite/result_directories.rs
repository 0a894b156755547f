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

/// A sweep of the experiment.
const SWEEP: &str = r#"
schema = 1
title = "Blocks"
experiment = "../one.toml"

[[vary]]
name = "block"
key = "job.0.block"
values = ["16KiB", "32KiB"]
"#;

/// A job file that writes a log, so that it has results.
const JOBS: &str = "[w]\nrw=write\nzonemode=zbd\nbs=16k\nsize=1z\nio_size=1m\nwrite_lat_log=w\n";

/// Every verb whose results have a link: its words for a file of this name, and where the
/// link is.
fn verbs(file: &str) -> [(Vec<String>, &'static str); 5] {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    [
        (words(&format!("run {file}.toml")), "results/one"),
        (words(&format!("trace {file}.toml")), "results/one-trace"),
        (
            words(&format!(
                "search {file}.toml --over job.0.block=16KiB,32KiB --maximize kiops --minimize \
                 lat_p95_us"
            )),
            "results/one-search",
        ),
        (
            words(&format!("sweep {file}/points.toml")),
            "results/points",
        ),
        (
            words(&format!("fio {file}/jobs.fio --device confznspp")),
            "results/jobs",
        ),
    ]
}

#[test]
fn the_link_stays_with_the_file_that_it_led_to() {
    let scratch = Scratch::new("same-id");
    for (file, operations) in [("one", 20), ("other", 30)] {
        let text = EXPERIMENT.replace("operations = 20", &format!("operations = {operations}"));
        scratch.write(&format!("{file}.toml"), &text);
        std::fs::create_dir(scratch.0.join(file)).unwrap();
        let sweep = SWEEP.replace("one.toml", &format!("{file}.toml"));
        scratch.write(&format!("{file}/points.toml"), &sweep);
        let size = format!("io_size={operations}m");
        scratch.write(
            &format!("{file}/jobs.fio"),
            &JOBS.replace("io_size=1m", &size),
        );
    }
    let run = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = scratch.zonelab(&words);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {text}");
        text
    };
    for ((first, place), (second, _)) in verbs("one").into_iter().zip(verbs("other")) {
        let link = || std::fs::read_link(scratch.0.join(place).join("latest")).unwrap();
        run(&first);
        let ours = link();
        let text = run(&second);
        assert_eq!(link(), ours, "{second:?}");
        let says = format!("{place}/latest stays with the results of one");
        assert!(text.contains(&says), "{second:?}: {text}");
        // The same file, by another name of it.
        let dotted = first.iter().map(|word| match word.starts_with("one") {
            true => format!("./{word}"),
            false => word.clone(),
        });
        let text = run(&dotted
            .chain(["--seed".into(), "7".into()])
            .collect::<Vec<_>>());
        assert_ne!(link(), ours, "{first:?}");
        assert!(!text.contains("stays with"), "{text}");
        // Files that are gone have no results to keep.
        let named = scratch.0.join(&first[1]);
        std::fs::rename(&named, scratch.0.join("away")).unwrap();
        let before = link();
        run(&second);
        assert_ne!(link(), before, "{second:?}");
        std::fs::rename(scratch.0.join("away"), named).unwrap();
    }
}

/// Runs a command until a line on standard error has `mark`, then interrupts it.
#[cfg(unix)]
fn interrupted(scratch: &Scratch, args: &[&str], mark: &str) -> String {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let mut command = scratch.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        said += &format!("{line}\n");
        if line.contains(mark) {
            let pid = child.id().to_string();
            Command::new("kill").args(["-INT", &pid]).status().unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}: {said}");
    said
}

/// In real time, a point that takes two seconds.
#[cfg(unix)]
#[test]
fn what_was_interrupted_takes_the_place_of_nothing() {
    let scratch = Scratch::new("interrupted");
    let text = EXPERIMENT.replace("operations = 20", "repeat = true\nruntime = \"2s\"");
    scratch.write("one.toml", &text);
    let args = ["run", "one.toml", "--device", "confznspp?clock=real"];
    let whole = newest(&scratch, &args[2..]);
    let bytes = files(&whole);
    let link = || std::fs::read_link(scratch.0.join("results/one/latest")).unwrap();
    let target = link();
    // The same, and another one.
    for more in [&[][..], &["--seed", "3"]] {
        let said = interrupted(&scratch, &[&args[..], more].concat(), "point 1 of 1");
        let line = said.lines().find(|line| line.contains("interrupted:"));
        let path = line.unwrap().split(' ').nth(2).unwrap();
        let part = scratch.read(&format!("{path}/manifest.json"));
        assert!(part.contains("\"complete\": false"), "{said}");
        assert_eq!(files(&whole), bytes, "{more:?}");
        assert_eq!(link(), target, "{more:?}");
    }
    // Of a named directory, too.
    let named = [&args[..], &["--out", "out"]].concat();
    assert_eq!(scratch.zonelab(&named).status.code(), Some(0));
    let bytes = files(&scratch.0.join("out"));
    let said = interrupted(&scratch, &named, "point 1 of 1");
    assert!(said.contains("interrupted: out-partial holds"), "{said}");
    assert_eq!(files(&scratch.0.join("out")), bytes);
}

/// What goes on where it was leads nowhere until it is done, and keeps what was whole.
#[cfg(unix)]
#[test]
fn a_link_leads_to_a_sweep_when_it_is_done() {
    let scratch = Scratch::new("unfinished");
    let text = EXPERIMENT.replace("operations = 20", "operations = 20\nrepeat = true");
    scratch.write("one.toml", &text);
    std::fs::create_dir(scratch.0.join("one")).unwrap();
    scratch.write("one/points.toml", SWEEP);
    let sweep = ["sweep", "one/points.toml", "--threads=1", "--quiet"];
    assert_eq!(scratch.zonelab(&sweep).status.code(), Some(0));
    let results = scratch.0.join("results/points");
    let link = || std::fs::read_link(results.join("latest")).unwrap();
    let whole = link();
    // Long enough to be interrupted.
    let long = ["--repeats=60", "--set=job.0.operations=100000"];
    let mut child = scratch
        .command(&[&sweep[..], &long].concat())
        .spawn()
        .unwrap();
    let begun = || {
        let dirs = std::fs::read_dir(&results).unwrap().flatten();
        let dirs = dirs.filter(|dir| dir.file_name() != whole && dir.file_name() != "latest");
        let logs = dirs.map(|dir| std::fs::read_to_string(dir.path().join("evaluations.jsonl")));
        logs.flatten().any(|log| log.lines().count() > 1)
    };
    while !begun() && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    // Meanwhile the directory is somebody's.
    let other = scratch.zonelab(&[&sweep[..], &long].concat());
    assert_eq!(other.status.code(), Some(4), "{}", stderr(&other));
    assert!(stderr(&other).contains("another zonelab is writing to results/points/"));
    let pid = child.id().to_string();
    std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(link(), whole);
}

/// What decides verdicts or files is part of what results are results of.
#[test]
fn what_decides_a_verdict_has_a_directory_of_its_own() {
    let scratch = Scratch::new("decides");
    let text = EXPERIMENT.replace(
        "[[job]]",
        "reference = \"mine.csv\"\n[[compare]]\njob = \"write\"\nmetrics = [\"kiops\"]\n[[job]]",
    );
    scratch.write("mine.csv", "x,series,kiops\n1,alone,1.4\n");
    scratch.write("one.toml", &text.replace("confznspp", "zn540"));
    let edited = newest(&scratch, &[]);
    scratch.write("one.toml", &text);
    let set = newest(&scratch, &["--set", "profile=zn540"]);
    let verdict = |path: &Path| {
        let rows = std::fs::read_to_string(path.join("rows.json")).unwrap();
        rows.contains("settings or conditions differ")
    };
    assert_eq!((verdict(&edited), verdict(&set)), (false, true));
    assert_ne!(edited, set);
    let plain = newest(&scratch, &[]);
    for more in [
        &["--quick"][..],
        &["--figure-width", "85mm"],
        &["--trace"],
        &["--trace", "--uncompressed"],
    ] {
        assert_ne!(newest(&scratch, more), plain, "{more:?}");
    }
    // Of a store, the way to the drive.
    let kv = [
        "kv",
        "fillrandom",
        "--records=200",
        "--operations=200",
        "--out=kv",
        "--device",
    ];
    let code = |device| {
        scratch
            .zonelab(&[&kv[..], &[device]].concat())
            .status
            .code()
    };
    assert_eq!(code("confznspp"), Some(0));
    assert_eq!(code("confznspp?via=pcie"), Some(4));
}

#[test]
fn another_spelling_of_a_path_is_the_same_file() {
    let scratch = Scratch::new("spelling");
    let whole = scratch.write("one.toml", EXPERIMENT);
    std::fs::create_dir(scratch.0.join("a")).unwrap();
    for (path, seed) in [("one.toml", "1"), (&whole, "2"), ("a/../one.toml", "3")] {
        let output = scratch.zonelab(&["run", path, "--seed", seed]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(!said.contains("stays with the results"), "{path}: {said}");
    }
}
