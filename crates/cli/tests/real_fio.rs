//! Our reading of job files beside that of the real fio: the tier `fio`
//! (`cargo xtask test fio`), which needs fio 3.33 or later and Python 3.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

#[path = "real_fio/blocks.rs"]
mod blocks;
#[path = "real_fio/examples.rs"]
mod examples;
#[path = "real_fio/traces.rs"]
mod traces;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use zonelab_host::fio::options;

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
        Self::in_form(test, "json")
    }

    fn in_form(test: &str, form: &str) -> Self {
        let (paths, [theirs, ours]) = outputs(test, form);
        let read = |text: &str| serde_json::from_str(text).unwrap();
        Self {
            theirs: read(&theirs),
            ours: read(&ours),
            paths,
        }
    }
}

/// What both print for `common.fio` in this form, theirs first, and where it is kept.
fn outputs(test: &str, form: &str) -> ([PathBuf; 2], [String; 2]) {
    let scratch = std::env::temp_dir().join(format!("zonelab-fio-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let paths = ["theirs", "ours"].map(|name| scratch.join(name));
    let to = |path: &Path| format!("--output={}", path.display());
    let form = format!("--output-format={form}");
    let theirs = fio(&[&form, &to(&paths[0]), "common.fio"]);
    assert!(theirs.status.success(), "{}", text(&theirs.stderr));
    let drive = ["--device", "small-zones", "--full-zones", "all"];
    let output = to(&paths[1]);
    let ours = [&["fio", &form, &output], &drive[..], &["common.fio"]].concat();
    let ours = zonelab(&ours);
    assert!(ours.status.success(), "{}", text(&ours.stderr));
    let texts = paths
        .each_ref()
        .map(|path| std::fs::read_to_string(path).unwrap());
    (paths, texts)
}

impl Drop for Results {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.paths[0].parent().unwrap());
    }
}

/// All keys of a value, as paths. Names of percentiles are keys too; those of bins
/// are measurements.
fn keys(value: &Value, at: &str, all: &mut BTreeSet<String>) {
    if let Value::Object(map) = value
        && !at.ends_with("/bins")
    {
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

fn assert_same_shape(Results { theirs, ours, .. }: &Results) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
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
        all.extend(we);
    }
    all
}

#[test]
fn results_have_the_same_shape() {
    assert_same_shape(&Results::get("shape"));
}

#[test]
fn distributions_have_the_same_shape() {
    let results = Results::in_form("bins", "json+");
    let keys = assert_same_shape(&results);
    for part in [
        "read/clat_ns",
        "write/clat_ns",
        "read/lat_ns",
        "read/slat_ns",
    ] {
        assert!(keys.contains(&format!("/{part}/bins")), "{keys:?}");
    }
    // In both, bins are named in ascending order and hold every latency; and the
    // name of a bin lies in the bin, the middle of a 64th of a power of two.
    for result in [&results.theirs, &results.ours] {
        for job in result["jobs"].as_array().unwrap() {
            for direction in ["read", "write", "trim"] {
                let latency = &job[direction]["clat_ns"];
                let Some(bins) = latency["bins"].as_object() else {
                    continue;
                };
                let sum: u64 = bins.values().map(|count| count.as_u64().unwrap()).sum();
                assert_eq!(Some(sum), latency["N"].as_u64(), "{latency}");
                for name in bins.keys() {
                    let ns: u64 = name.parse().unwrap();
                    let width = if ns < 128 { 1 } else { 1 << (ns.ilog2() - 6) };
                    assert_eq!(ns % width, width / 2, "{ns}");
                }
            }
        }
    }
}

#[test]
fn terse_lines_have_the_same_fields() {
    let (paths, texts) = outputs("terse", "terse");
    let [theirs, ours] = texts.each_ref().map(|text| -> Vec<Vec<&str>> {
        let lines = text.lines().filter(|line| line.starts_with("3;"));
        lines.map(|line| line.split(';').collect()).collect()
    });
    assert_eq!(theirs.len(), 4);
    assert_eq!(ours.len(), theirs.len(), "a line for each group or job");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len(), "{ours:?}\n{theirs:?}");
        // Version, name, group and error; names of percentiles; what is a share;
        // and how many decimals a number has.
        for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
            let both = format!("field {index}: {our} and {their}");
            if matches!(index, 0 | 2..=4) {
                assert_eq!(our, their, "{both}");
            }
            let percentile = |field: &str| field.split_once('=').map(|(name, _)| name.to_owned());
            assert_eq!(percentile(our), percentile(their), "{both}");
            assert_eq!(our.ends_with('%'), their.ends_with('%'), "{both}");
            let decimals = |field: &str| {
                let number = field.trim_end_matches('%').parse::<f64>();
                let (_, decimals) = field.trim_end_matches('%').split_once('.')?;
                number.is_ok().then_some(decimals.len())
            };
            if index != 1 {
                assert_eq!(decimals(our), decimals(their), "{both}");
            }
        }
    }
    // KiB that were read and written, by those that do the same amount in both.
    let renamed = |lines: &[Vec<&str>]| {
        (
            lines[1][46].to_owned(),
            lines[1].last().map(|t| (*t).to_owned()),
        )
    };
    assert_eq!(renamed(&ours), renamed(&theirs));
    assert_eq!(renamed(&ours).1.as_deref(), Some("after the first"));
    assert_eq!(ours[3][5], theirs[3][5], "64 reads");
    std::fs::remove_dir_all(paths[0].parent().unwrap()).unwrap();
}

/// Of fio's options, those whose value may be left out are those that do not take
/// the next word as their value.
#[test]
fn options_without_values_are_those_of_fio() {
    let output = text(&fio(&["--cmdhelp"]).stdout);
    let names = output
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    for name in names.map(|name| name.trim_end_matches(':')) {
        let help = text(&fio(&[&format!("--cmdhelp={name}")]).stdout);
        let theirs = help.contains("type: empty or boolean value");
        let ours = options::find(name).is_some_and(|option| option.may_lack_value());
        assert_eq!(ours, theirs, "{help}");
    }
}

/// Jobs on the command line, of files, and of both.
#[test]
fn both_find_the_same_jobs_on_a_command_line() {
    let scratch = std::env::temp_dir().join(format!("zonelab-words-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let file = |name: &str, text: &str| {
        let path = scratch.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let one = file(
        "one.fio",
        "[global]\nioengine=null\nsize=64m\nbs=8k\n[a]\nrw=read\nnumber_ios=3\n[b]\nrw=write\nio_size=1m\n",
    );
    let two = file(
        "two.fio",
        "[c]\nrw=write\nioengine=null\nsize=64m\nnumber_ios=5\n",
    );
    let bare = file("bare.fio", "[d]\nrw=write\nnumber_ios=7\n");
    for line in [
        "--ioengine=null --size 64m --name=x --rw=read --bs=16k --number_ios 9 \
         --name y --new_group -rw=write --numjobs 2 --group_reporting --io_size=2m"
            .to_owned(),
        format!("{one} {two}"),
        format!("--bs=64k --ioengine=null --size=64m {bare}"),
        format!("--ioengine=null --size=64m --name=x --rw=write --bs=32k --number_ios=4 {bare}"),
        format!("--name=x --ioengine=null --size=64m --rw=read --number_ios=2 {one} {two}"),
        format!("{one} --section=b"),
        "--name=global --ioengine=null --size=64m --name=p --number_ios=1 \
         --name=global --bs=8k --name=q --number_ios=2 --new_group"
            .to_owned(),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let form = ["--output-format=json"];
        let theirs = fio(&[&form, &words[..]].concat());
        let drive = ["--device", "small-zones", "--full-zones", "all"];
        let ours = zonelab(&[&["fio"], &form[..], &drive, &words[..]].concat());
        assert!(theirs.status.success(), "{line}: {}", text(&theirs.stderr));
        assert!(ours.status.success(), "{line}: {}", text(&ours.stderr));
        let json = |output: &Output| -> Value {
            let text = text(&output.stdout);
            // fio prints about names of files before its results.
            serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
        };
        let (theirs, ours) = (json(&theirs), json(&ours));
        let none = serde_json::json!({});
        let globals = theirs.get("global options").unwrap_or(&none);
        assert_eq!(ours["global options"], *globals, "{line}");
        let jobs = |result: &Value| result["jobs"].as_array().unwrap().clone();
        let (theirs, ours) = (jobs(&theirs), jobs(&ours));
        assert_eq!(ours.len(), theirs.len(), "{line}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            for key in ["jobname", "groupid", "job options"] {
                assert_eq!(ours[key], theirs[key], "{line}");
            }
            for direction in ["read", "write"] {
                for key in ["total_ios", "io_bytes"] {
                    assert_eq!(
                        ours[direction][key], theirs[direction][key],
                        "{line}: {key}"
                    );
                }
            }
        }
    }
    std::fs::remove_dir_all(&scratch).unwrap();
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
    let output = Command::new("fio").arg("--parse-only").arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let output = output.expect("fio is installed: this tier needs it");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// What we log is a trace that fio replays, and what fio logs is one that we do.
#[test]
fn logs_of_commands_go_both_ways() {
    let scratch = std::env::temp_dir().join(format!("zonelab-fio-iolog-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let out = format!("--out={}", scratch.join("ours").display());
    let job = "--name=a --rw=write --bs=8k --number_ios=20 --fsync=4 --write_iolog=ours.log";
    let mut args = vec!["fio", "--device", "small-zones", &out];
    args.extend(job.split(' '));
    let ours = zonelab(&args);
    assert!(ours.status.success(), "{}", text(&ours.stderr));
    let log = scratch.join("ours/ours.log");
    let read = format!("--read_iolog={}", log.display());
    let theirs = fio(&[
        "--name=a",
        "--ioengine=null",
        "--size=32m",
        "--output-format=json",
        &read,
    ]);
    assert!(theirs.status.success(), "{}", text(&theirs.stderr));
    let result: Value = serde_json::from_slice(&theirs.stdout).unwrap();
    assert_eq!(result["jobs"][0]["write"]["total_ios"], 20);
    assert_eq!(result["jobs"][0]["write"]["io_bytes"], 20 * 8_192);

    let log = scratch.join("theirs.log");
    let write = format!("--write_iolog={}", log.display());
    let job = "--name=a --ioengine=null --rw=write --bs=8k --size=160k";
    let mut args: Vec<&str> = job.split(' ').collect();
    args.push(&write);
    let theirs = fio(&args);
    assert!(theirs.status.success(), "{}", text(&theirs.stderr));
    let read = format!("--read_iolog={}", log.display());
    let device = ["fio", "--device", "small-zones", "--json", "--name=a"];
    let ours = zonelab(&[&device[..], &[&read]].concat());
    assert!(ours.status.success(), "{}", text(&ours.stderr));
    let result: Value = serde_json::from_slice(&ours.stdout).unwrap();
    assert_eq!(result["jobs"][0]["write"]["total_ios"], 20);
    let _ = std::fs::remove_dir_all(&scratch);
}
