//! `zonelab fio` with jobs on the command line, and the forms of its output.

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::fio_jobs::job;
use super::scratch::{Scratch, stderr};

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A job that writes a zone of 16 MiB and one that reads it.
const WORDS: &str = "--ioengine=libaio --size=1z --name=fill --rw=write --bs 64k --iodepth=4 \
                     --name=look --stonewall -rw=randread --bs=4k --number_ios=100";

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn jobs_of_the_command_line_are_those_of_a_file() {
    let scratch = Scratch::new("fio-words");
    scratch.write(
        "job.fio",
        "[global]\nioengine=libaio\nsize=1z\n[fill]\nrw=write\nbs=64k\niodepth=4\n\
         [look]\nstonewall\nrw=randread\nbs=4k\nnumber_ios=100\n",
    );
    let device = ["--device", "small-zones", "--seed=3"];
    let of_file = scratch.json(&[&["job.fio"], &device[..]].concat());
    let of_words = scratch.json(&[&words(WORDS)[..], &device].concat());
    for (ours, theirs) in of_words["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(of_file["jobs"].as_array().unwrap())
    {
        for key in [
            "jobname",
            "groupid",
            "read",
            "write",
            "latency_depth",
            "zonelab",
        ] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
    }
    assert_eq!(job(&of_words, "look")["read"]["total_ios"], 100);
    assert_eq!(job(&of_words, "fill")["job options"]["name"], "fill");
    // Our options are ours wherever they stand, also behind words without values.
    let mixed = "--name=a --rw=write --bs=64k --size=1z --stonewall --json --set media.read=70us \
                 --device small-zones --number_ios=2";
    let result: Value = serde_json::from_str(&stdout(&scratch.fio(&words(mixed)))).unwrap();
    assert_eq!(result["jobs"][0]["write"]["total_ios"], 2);
}

#[test]
fn standard_input_is_a_job_file() {
    let scratch = Scratch::new("fio-stdin");
    let run = |text: &str, more: &[&str]| {
        let mut child = scratch
            .command(&["fio", "-", "--json", "--device", "small-zones"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    };
    let output = run("[a]\nrw=write\nbs=64k\nnumber_ios=3\n", &[]);
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["jobs"][0]["write"]["total_ios"], 3);
    let output = run("[a]\nrw=wirte\n", &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("stdin:2: rw: "),
        "{}",
        stderr(&output)
    );
    let output = run("", &["-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("-: standard input can be read once"));
}

#[test]
fn several_forms_come_in_the_order_of_fio() {
    let scratch = Scratch::new("fio-forms");
    let run = |more: &[&str]| {
        let device = ["--device", "small-zones"];
        stdout(&scratch.fio(&[&words(WORDS)[..], &device, more].concat()))
    };
    let [terse, json, normal] =
        ["terse", "json", "normal"].map(|form| run(&["--output-format", form]));
    assert_eq!(
        run(&["--output-format=normal,json,terse"]),
        format!("{terse}{json}{normal}")
    );
    assert_eq!(run(&["--minimal"]), terse);
    assert_eq!(run(&["--output-format=normal", "--json"]), json);
    assert_eq!(run(&[]), normal);
    let plus = run(&["--output-format=json+"]);
    // Both at once are one.
    assert_eq!(run(&["--output-format=json,json+"]), plus);
    let (mut plus, json): (Value, Value) = (
        serde_json::from_str(&plus).unwrap(),
        serde_json::from_str(&json).unwrap(),
    );
    let clat = |result: &Value, name: &str, direction: &str| {
        job(result, name)[direction]["clat_ns"].clone()
    };
    let reads = clat(&plus, "look", "read");
    let counts = reads["bins"].as_object().unwrap().values();
    assert_eq!(
        counts.map(|count| count.as_u64().unwrap()).sum::<u64>(),
        100
    );
    for job in plus["jobs"].as_array_mut().unwrap() {
        for direction in ["read", "write", "trim"] {
            for part in ["slat_ns", "clat_ns", "lat_ns"] {
                job[direction][part].as_object_mut().unwrap().remove("bins");
            }
        }
    }
    assert_eq!(plus, json, "nothing else is different");
    // Fields by the names that fio's manual gives them.
    let lines: Vec<Vec<&str>> = terse
        .lines()
        .map(|line| line.split(';').collect())
        .collect();
    assert_eq!(lines.len(), 2);
    let (fill, look) = (&lines[0], &lines[1]);
    assert_eq!(
        (fill[0], fill[2], look[3], look[4]),
        ("3", "fill", "1", "0")
    );
    let write = &job(&json, "fill")["write"];
    assert_eq!(
        fill[46],
        (write["io_bytes"].as_u64().unwrap() / 1024).to_string()
    );
    assert_eq!(fill[49], write["runtime"].to_string());
    let clat = clat(&json, "look", "read");
    let ns = |key: &str| clat[key].as_u64().unwrap();
    assert_eq!(look[13], (ns("min") / 1000).to_string());
    assert_eq!(look[14], (ns("max") / 1000).to_string());
    let percentile = clat["percentile"]["99.000000"].as_u64().unwrap();
    assert_eq!(look[29], format!("99.000000%={}", percentile / 1000));
    assert_eq!(fill.len(), 5 + 2 * 41 + 5 + 7 + 10 + 12);
    let shares = look[look.len() - 22..].iter();
    let sum: f64 = shares
        .map(|share| share.trim_end_matches('%').parse::<f64>().unwrap())
        .sum();
    assert!((sum - 100.0).abs() < 0.2, "{sum}");
}

/// Words, the exit code, and what is said.
const EXITS: &[(&str, i32, &str)] = &[
    ("--device small-zones", 2, "required"),
    (
        "--name=a --rw=read",
        2,
        "a: on which drive? --device PROFILE",
    ),
    (
        "--name=a --devise=small-zones",
        2,
        "--devise: is unknown; did you mean `--device`?",
    ),
    (
        "--name=a --iodeph 4",
        2,
        "--iodeph: is unknown; did you mean `--iodepth`?",
    ),
    (
        "--name=a --bs --device small-zones",
        2,
        "--bs of job a: needs a value",
    ),
    (
        "--name=a --bs=4q --device small-zones",
        3,
        "zonelab: --bs of job a: \"4q\" is not a number",
    ),
    (
        "--name=a --size=4k --device small-zones",
        3,
        "--size of job a: no whole zone",
    ),
    (
        "--name=a --rw=write --zonemode=none --device small-zones",
        3,
        "--zonemode of job a: none, but the namespace is zoned",
    ),
    (
        "--rw=read --device small-zones",
        3,
        "no job; name a job file, or begin a job with --name=",
    ),
    (
        "one.fio --section=c --device small-zones",
        3,
        "no job of the files has the name c; a, b",
    ),
    (
        "--bs=4k one.fio one.fio --device small-zones",
        3,
        "--bs: is for all jobs",
    ),
    ("none.fio --device small-zones", 3, "none.fio: "),
    (
        "one.fio --readonly --device small-zones",
        2,
        "--readonly: job b writes or resets zones",
    ),
    ("one.fio --readonly --section a --device small-zones", 0, ""),
    (
        "one.fio --showcmd",
        2,
        "--showcmd: an option of the program fio that is not supported",
    ),
    (
        "one.fio --eta always --section=b --device small-zones",
        0,
        "--eta: has no meaning here: nothing is printed before the end",
    ),
    (
        "one.fio --overwrite=1 --device small-zones --section=b",
        0,
        "--overwrite: has no meaning here: there is one drive",
    ),
    (
        "one.fio --terse-version=5 --device small-zones",
        2,
        "5 is not in 3..=3",
    ),
    (
        "one.fio --output-format=xml --device small-zones",
        2,
        "json+",
    ),
    (
        "one.fio --host-stack=iouring --device small-zones",
        2,
        "--host-stack iouring: there is no such stack; spdk, vroom, io_uring-sqpoll",
    ),
    (
        "one.fio --host-stack=spdk --device small-zones?clock=real",
        2,
        "--host-stack is for virtual time",
    ),
];

#[test]
fn what_is_wrong_is_named_by_its_option() {
    let scratch = Scratch::new("fio-words-exits");
    scratch.write(
        "one.fio",
        "[a]\nrw=read\nnumber_ios=1\n[b]\nrw=write\nbs=64k\nnumber_ios=1\n",
    );
    for (line, code, says) in EXITS {
        let output = scratch.fio(&words(line));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{line}: {said}");
        assert!(said.contains(says), "{line}: {said}");
    }
}

/// Single writes, one after another, take what the stack takes longer.
#[test]
fn a_stack_of_the_host_takes_its_time() {
    let scratch = Scratch::new("fio-stack");
    let mean = |more: &str| {
        let line = "--name=a --rw=write --bs=64k --number_ios=50 --device zn540 --json";
        let result: Value = serde_json::from_str(&stdout(
            &scratch.fio(&[&words(line)[..], &words(more)].concat()),
        ))
        .unwrap();
        let part = |part: &str| result["jobs"][0]["write"][part]["mean"].as_f64().unwrap();
        (part("slat_ns"), part("clat_ns"))
    };
    let free = mean("");
    assert_eq!(mean("--host-stack=spdk"), free);
    assert!((free.0 - 0.0).abs() < 1e-9, "{free:?}");
    let (submit, complete) = mean("--host-stack io_uring");
    assert!((submit - 4_000.0).abs() < 1e-9, "{submit}");
    // While the host is busy, the drive has time to empty its buffer.
    assert!(
        complete <= free.1 + 6_000.0 && complete > free.1 - 10_000.0,
        "{complete} {free:?}"
    );
    let (submit, _) = mean("--host-stack=io_uring --host-submit=7us");
    assert!((submit - 7_000.0).abs() < 1e-9, "{submit}");
    let (submit, _) = mean("--host-submit 0us --host-stack=ioctl");
    assert!((submit - 0.0).abs() < 1e-9, "{submit}");
}
