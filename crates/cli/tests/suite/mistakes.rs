//! What a mistake gets: a line that names what is wrong, where it stands, and what is right.

use std::process::Output;

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// What a mistake is made in.
#[derive(Debug)]
enum Kind {
    /// Words of the command line.
    Words,
    /// A name of an experiment, of results, of a drive.
    Name,
    /// A key or value of a file.
    File,
}

/// A command with a mistake, its exit code, and the parts of its message.
struct Mistake {
    kind: Kind,
    args: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
}

const fn mistake(
    kind: Kind,
    args: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
) -> Mistake {
    Mistake {
        kind,
        args,
        code,
        says,
    }
}

/// An experiment without a mistake.
const EXPERIMENT: &str = r#"schema = 1
id = "mine"
title = "Reads"
profile = "confznspp"
drive = ["finish.granularity=64KiB"]
[[job]]
name = "read"
work = "read"
zones = "8..=9"
block = "16KiB"
queue_depth = 4
runtime = "20ms"
[[series]]
name = "alone"
full_zones = "8..=9"
jobs = ["read"]
[[compare]]
job = "read"
metrics = ["kiops", "lat_p95_us"]
"#;

/// Files with one mistake each: a name, and what stands for what in [`EXPERIMENT`].
const FILES: &[(&str, &str, &str)] = &[
    ("mine.toml", "", ""),
    ("metric.toml", "lat_p95_us", "lat_p99"),
    ("blocksize.toml", "block =", "blocksize ="),
    ("bs.toml", "block =", "bs ="),
    ("iodepth.toml", "queue_depth", "iodepth"),
    ("drive-key.toml", "granularity", "granulrity"),
    ("drive-value.toml", "64KiB", "64KB"),
    ("runtime.toml", "\"20ms\"", "10"),
    (
        "tib.toml",
        "finish.granularity=64KiB",
        "zones.size=1TiB\", \"zones.capacity=1TiB",
    ),
    ("left-over.toml", "granularity=64KiB", "design=metadata"),
];

use Kind::{File, Name, Words};

const MISTAKES: &[Mistake] = &[
    mistake(
        Words,
        &["serve", "zn540", "--web", "8420"],
        2,
        &["127.0.0.1:8420"],
    ),
    mistake(
        Words,
        &["serve", "zn540", "--listen", ":4420"],
        2,
        &["127.0.0.1:4420"],
    ),
    mistake(
        Words,
        &["serve", "zn540", "--max-connections", "1"],
        2,
        &["two connections"],
    ),
    mistake(
        Words,
        &["nvme", "id-ns", "tcp://127.0.0.1:4420/nqn.a"],
        2,
        &["--device tcp://127.0.0.1:4420/nqn.a"],
    ),
    mistake(
        Words,
        &["nvme", "list", "/dev/ng0n1"],
        2,
        &["--device linux:///dev/ng0n1"],
    ),
    mistake(Words, &["nvme", "list"], 2, &["--device is missing"]),
    mistake(
        Words,
        &["reproduce", "CM", "--json=1"],
        2,
        &["--json takes no value"],
    ),
    mistake(
        Words,
        &["run", "mine.toml", "--set", "job.0.runtime=10"],
        3,
        &[
            "mine.toml: --set job.0.runtime=10: 10 has no unit",
            "\"10s\"",
        ],
    ),
    mistake(
        Name,
        &["run", "mine"],
        2,
        &["did you mean the file mine.toml?"],
    ),
    mistake(
        Name,
        &["run", "finish-on-raed"],
        2,
        &["did you mean finish-on-read?"],
    ),
    mistake(
        Name,
        &["run", "nothing-like-it"],
        2,
        &["name a file", "finish-on-read"],
    ),
    mistake(
        Name,
        &["run", "drive.toml"],
        3,
        &["this is a drive profile", "profile = \"drive.toml\""],
    ),
    mistake(
        Name,
        &["bundle", "results/mine"],
        3,
        &["did you mean results/mine/latest?"],
    ),
    mistake(
        Name,
        &["bundle", "mine"],
        3,
        &["did you mean results/mine/latest?"],
    ),
    mistake(
        Name,
        &["bundle", "results/none"],
        3,
        &["there is no such directory", "results/NAME/latest"],
    ),
    mistake(
        File,
        &["run", "metric.toml"],
        3,
        &["metric.toml:19: ", "did you mean \"lat_p99_us\"?"],
    ),
    mistake(
        File,
        &["run", "blocksize.toml"],
        3,
        &["blocksize.toml:10: ", "did you mean `block`?"],
    ),
    mistake(
        File,
        &["run", "bs.toml"],
        3,
        &["bs.toml:10: ", "did you mean `block`?"],
    ),
    mistake(
        File,
        &["run", "iodepth.toml"],
        3,
        &["iodepth.toml:11: ", "did you mean `queue_depth`?"],
    ),
    mistake(
        File,
        &["run", "drive-key.toml"],
        3,
        &[
            "zonelab: drive-key.toml:5: drive.0: finish.granulrity=64KiB: ",
            "did you mean `granularity`?",
        ],
    ),
    mistake(
        File,
        &["run", "drive-value.toml"],
        3,
        &["zonelab: drive-value.toml:5: drive.0: ", "64KiB"],
    ),
    mistake(
        File,
        &["run", "runtime.toml"],
        3,
        &["runtime.toml:12: ", "\"10us\" or \"10s\""],
    ),
    mistake(
        File,
        &["run", "tib.toml"],
        3,
        &[
            "tib.toml:5: drive.",
            "a zone of 1TiB takes",
            "make zones smaller",
        ],
    ),
    mistake(
        File,
        &["run", "left-over.toml"],
        3,
        &[
            "finish.granularity: ",
            "only has an effect with design = \"fill\"; leave it out",
        ],
    ),
];

fn refused(mistake: &Mistake, output: &Output) {
    let Mistake {
        kind, args, code, ..
    } = mistake;
    let message = stderr(output);
    assert_eq!(
        output.status.code(),
        Some(*code),
        "{kind:?} {args:?}: {message}"
    );
    for says in mistake.says {
        assert!(
            message.contains(says),
            "{kind:?} {args:?}: {says}: {message}"
        );
    }
    // What went wrong in the system is said in words.
    assert!(
        !message.contains("os error"),
        "{kind:?} {args:?}: {message}"
    );
}

#[test]
fn a_mistake_gets_what_is_wrong_where_and_what_is_right() {
    let scratch = Scratch::new("mistakes");
    for (name, text, instead) in FILES {
        assert!(EXPERIMENT.contains(text), "{name}: {text}");
        let text = match text.is_empty() {
            true => EXPERIMENT.to_owned(),
            false => EXPERIMENT.replacen(text, instead, 1),
        };
        scratch.write(name, &text);
    }
    let output = scratch.zonelab(&["profiles", "show", "confznspp", "--toml"]);
    scratch.write("drive.toml", &String::from_utf8_lossy(&output.stdout));
    let output = scratch.zonelab(&["run", "mine.toml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for mistake in MISTAKES {
        refused(mistake, &scratch.zonelab(mistake.args));
    }
}

/// A directory is no file to name.
/// What the parser of the command line repeats of it is the name of a file, perhaps.
#[test]
fn words_that_are_not_expected_move_no_cursor() {
    let scratch = Scratch::new("mistakes-control");
    let output = scratch.zonelab(&["store", "check", "a", "b\r\u{9b}2J\u{1b}[2J"]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("unexpected argument 'b\u{fffd}\u{fffd}2J"),
        "{message}"
    );
    let is_harmful = |c: char| c.is_control() && c != '\n';
    assert!(!message.contains(is_harmful), "{message:?}");
}

#[test]
fn a_directory_is_not_taken_for_a_file() {
    let scratch = Scratch::new("mistakes-directory");
    std::fs::create_dir(scratch.0.join("mine.toml")).unwrap();
    let output = scratch.zonelab(&["run", "mine"]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(!message.contains("mine.toml"), "{message}");
}

/// Of a served drive: a name that it does not have, and none.
#[test]
fn a_wrong_name_of_a_subsystem_gets_the_right_ones() {
    let scratch = Scratch::new("mistakes-served");
    let serve = ["serve", "small-zones", "--listen", "127.0.0.1:0", "--json"];
    let served = Served::start(scratch.command(&serve));
    let url = served.url();
    let (address, _) = url.rsplit_once('/').unwrap();
    let list = |device: &str| {
        let output = scratch.zonelab(&["nvme", "list", "--device", device]);
        (output.status.code().unwrap(), stderr(&output))
    };
    let (code, message) = list(&format!("{address}/nqn.2024-01.org.example:none"));
    assert_eq!(code, 5, "{message}");
    let says = format!("`zonelab nvme discover --device {address}` lists");
    for says in ["has no subsystem \"nqn.2024-01.org.example:none\"", &says] {
        assert!(message.contains(says), "{says}: {message}");
    }
    let (code, message) = list(address);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains(&url), "{url}: {message}");
}

/// An option that is about another one, or about something that is not there, is not dropped.
#[test]
fn options_without_what_they_are_about_are_refused() {
    let scratch = Scratch::new("mistakes-dropped");
    let job = ["--name=a", "--rw=write", "--bs=64k", "--size=1z"];
    let fio = [&["fio", "--device", "confznspp"][..], &job].concat();
    let run = ["run", "finish-on-read"];
    let kv = ["kv", "fillrandom", "--device", "confznspp"];
    for verb in [&run[..], &fio] {
        for option in ["--trace-from=1ms", "--trace-for=1ms", "--trace-limit=10"] {
            let output = scratch.zonelab(&[verb, &[option]].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{verb:?} {option}: {said}");
            assert!(said.contains("--trace"), "{said}");
        }
    }
    for verb in [
        &run[..],
        &fio,
        &kv,
        &["characterize", "--device", "confznspp"],
        &["fit", "--device", "confznspp"],
    ] {
        for option in ["--host-key=nowhere", "--unsafe-dma", "--command-timeout=1s"] {
            let output = scratch.zonelab(&[verb, &[option]].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{verb:?} {option}: {said}");
            let name = option.split('=').next().unwrap();
            let says = format!("{name} is about the way to a real drive");
            assert!(said.contains(&says), "{said}");
        }
    }
    let serve = ["serve", "confznspp", "--listen", "127.0.0.1:0"];
    let limit = ["--data", "none", "--data-limit", "1MiB"];
    let output = scratch.zonelab(&[&serve[..], &limit].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("keeps no data that could be limited"),
        "{said}"
    );
    // A directory is no file that could have been meant.
    std::fs::create_dir(scratch.0.join("mine.toml")).unwrap();
    let said = stderr(&scratch.zonelab(&["run", "mine"]));
    assert!(!said.contains("did you mean the file"), "{said}");
}
