//! What `--json` prints, beside the schemas in `docs/schemas`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::documented::EXPERIMENT;
use super::scratch::{Scratch, stderr};
use super::store::Served;

/// The page that describes the schemas.
const PAGE: &str = include_str!("../../../../docs/json.md");

/// Schemas of which no test has output, and why.
const NOT_VALIDATED: [(&str, &str); 2] = [
    ("nvme-bind", "needs root and a controller on PCIe"),
    ("nvme-release", "needs root and a controller on PCIe"),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

fn schema(name: &str) -> Value {
    let path = directory().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Fails unless each value of a text is as the schema says.
pub(crate) fn valid(name: &str, text: &[u8]) {
    let validator = jsonschema::draft202012::new(&schema(name)).unwrap();
    let mut count = 0;
    for value in serde_json::Deserializer::from_slice(text).into_iter::<Value>() {
        let value = value.unwrap_or_else(|error| panic!("{name}: {error}"));
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        count += 1;
    }
    assert!(count > 0, "{name}: nothing was printed");
}

/// Runs a command that ends with this code, and compares what it prints with a schema.
fn prints(scratch: &Scratch, name: &str, code: i32, words: &[&str]) {
    let output = scratch.zonelab(&[words, &["--json"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    valid(name, &output.stdout);
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

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("small.toml", EXPERIMENT);
    scratch.write("grid.toml", SWEEP);
    scratch
}

#[test]
fn results_are_as_their_schemas_say() {
    let scratch = scratch("schemas-results");
    let run = ["run", "small.toml", "--out"];
    prints(&scratch, "reproduce", 1, &[&run[..], &["once"]].concat());
    let often = [&run[..], &["often", "--repeats", "2"]].concat();
    prints(&scratch, "reproduce", 1, &often);
    let clock = ["real", "--device", "confznspp?clock=real"];
    let output = scratch.zonelab(&[&run[..], &clock, &["--json"]].concat());
    valid("reproduce", &output.stdout);
    prints(&scratch, "reproduce", 0, &["reproduce", "CM", "C9b"]);
    prints(&scratch, "reproduce-list", 0, &["reproduce", "--list"]);
    let bundle = ["bundle", "once", "--out", "b.tar.gz"];
    prints(&scratch, "bundle", 0, &bundle);
    prints(&scratch, "reproduce-bundle", 0, &["reproduce", "b.tar.gz"]);
    prints(&scratch, "demo", 0, &["demo"]);
    prints(&scratch, "sweep", 0, &["sweep", "grid.toml"]);
    prints(&scratch, "sweep-list", 0, &["sweep", "grid.toml", "--list"]);
    let trace = ["trace", "small.toml", "--slowest", "2"];
    prints(&scratch, "trace", 0, &trace);
}

#[test]
fn descriptions_and_measurements_are_as_their_schemas_say() {
    let scratch = scratch("schemas-more");
    prints(&scratch, "check", 0, &["check", "small.toml"]);
    prints(&scratch, "check", 0, &["check", "grid.toml"]);
    prints(&scratch, "profile", 0, &["check", "zn540"]);
    prints(&scratch, "profile", 0, &["profiles", "show", "confznspp"]);
    prints(&scratch, "profiles", 0, &["profiles"]);
    let bench = ["bench", "scheduler", "--operations", "1000", "--runs", "1"];
    prints(&scratch, "bench", 0, &bench);
    let output = scratch.zonelab(&["doctor", "--json"]);
    valid("doctor", &output.stdout);
    let kv = ["kv", "kvbench-ii", "--device", "confznspp"];
    let few = ["--operations", "2000", "--records", "2000"];
    prints(&scratch, "kv", 0, &[&kv[..], &few].concat());
    let often = [&kv[..], &few, &["--repeats", "2"]].concat();
    prints(&scratch, "kv", 0, &often);
}

#[test]
fn results_of_fio_are_as_their_schemas_say() {
    let scratch = Scratch::new("schemas-fio");
    let write = [
        "fio",
        "--name=a",
        "--rw=write",
        "--bs=64k",
        "--size=1z",
        "--device",
    ];
    let with = |more: &[&'static str]| [&write[..], more].concat();
    prints(&scratch, "fio", 0, &with(&["confznspp"]));
    let verified = with(&["small-zones?clock=real", "--verify=crc32c"]);
    prints(&scratch, "fio", 0, &verified);
    let output = scratch.zonelab(&with(&["confznspp", "--output-format=json+"]));
    valid("fio", &output.stdout);
    let against = with(&["confznspp", "--against", "zn540"]);
    prints(&scratch, "fio-against", 1, &against);
}

#[test]
fn what_is_said_of_layers_and_stores_is_as_the_schemas_say() {
    let scratch = Scratch::new("schemas-ftl");
    scratch.write("data", &"d".repeat(8192));
    let on = |words: &[&'static str]| {
        let device = ["ftl", "--store", "drive", "--device", "small-zones"];
        [&device[..], words].concat()
    };
    prints(&scratch, "ftl-format", 0, &on(&["format"]));
    let write = on(&["write", "--data", "data"]);
    prints(&scratch, "ftl-io", 0, &write);
    let read = on(&["read", "--nlb", "2", "--data", "back"]);
    prints(&scratch, "ftl-io", 0, &read);
    for (name, verb) in [
        ("ftl-info", "info"),
        ("ftl-check", "check"),
        ("ftl-repair", "repair"),
        ("ftl-dump", "dump"),
    ] {
        prints(&scratch, name, 0, &on(&[verb]));
    }
    prints(&scratch, "store-check", 0, &["store", "check", "drive"]);
    prints(&scratch, "store-repair", 0, &["store", "repair", "drive"]);
}

/// A drive that is served, with a control socket.
struct Drive {
    scratch: Scratch,
    served: Served,
}

impl Drive {
    fn start(profile: &str, words: &[&str]) -> Self {
        let scratch = Scratch::new("schemas-serve");
        let fixed = [
            "serve",
            profile,
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--no-timing",
        ];
        let served = Served::start(scratch.command(&[&fixed, words].concat()));
        Self { scratch, served }
    }

    fn nvme(&self, name: &str, words: &[&str]) {
        let url = self.served.url();
        let words = [&["nvme"], words, &["--device", &url]].concat();
        prints(&self.scratch, name, 0, &words);
    }

    fn fault(&self, words: &[&str]) {
        let control = ["fault", "--control", "socket"];
        prints(&self.scratch, "fault", 0, &[&control, words].concat());
    }
}

#[test]
fn answers_of_a_served_drive_are_as_their_schemas_say() {
    let drive = Drive::start("small-zones", &["--data", "memory", "--control", "socket"]);
    let port = drive.served.said["port"].to_string();
    let address = format!("tcp://127.0.0.1:{port}");
    let discover = ["nvme", "discover", "--device", &address];
    prints(&drive.scratch, "nvme-discover", 0, &discover);
    for (name, words) in [
        ("nvme-list", &["list"][..]),
        ("nvme-list-ns", &["list-ns"]),
        ("nvme-list-subsys", &["list-subsys"]),
        ("nvme-id-ctrl", &["id-ctrl"]),
        ("nvme-id-ns", &["id-ns"]),
        ("nvme-zns-id-ctrl", &["zns", "id-ctrl"]),
        ("nvme-zns-id-ns", &["zns", "id-ns"]),
        ("nvme-report-zones", &["zns", "report-zones"]),
        ("nvme-changed-zone-list", &["zns", "changed-zone-list"]),
        (
            "nvme-zone-mgmt-recv",
            &["zns", "zone-mgmt-recv", "-l", "128"],
        ),
        ("nvme-smart-log", &["smart-log"]),
        ("nvme-error-log", &["error-log"]),
        ("nvme-get-log", &["get-log", "-i", "2", "-l", "64"]),
        ("nvme-get-feature", &["get-feature", "-f", "7"]),
        ("nvme-set-feature", &["set-feature", "-f", "11", "-V", "0"]),
        ("nvme-flush", &["flush"]),
        ("nvme-passthru", &["io-passthru", "-O", "0"]),
        ("nvme-reservation", &["resv-register", "--nrkey", "5"]),
        (
            "nvme-reservation",
            &["resv-acquire", "--crkey", "5", "-t", "1"],
        ),
        ("nvme-resv-report", &["resv-report"]),
        (
            "nvme-reservation",
            &["resv-release", "--crkey", "5", "-t", "1"],
        ),
    ] {
        drive.nvme(name, words);
    }
    drive.scratch.write("data", &"d".repeat(8192));
    let append = ["zns", "zone-append", "--zone", "2", "--data", "data"];
    drive.nvme("nvme-zone-append", &append);
    let write = ["write", "--start-block", "0", "--data", "data"];
    drive.nvme("nvme-blocks", &write);
    for words in [&["read", "--data", "back"][..], &["verify"]] {
        let range = ["--start-block", "0", "--blocks", "2"];
        drive.nvme("nvme-blocks", &[words, &range].concat());
    }
    let dsm = ["dsm", "--slbs", "0", "--blocks", "2", "--ad"];
    drive.nvme("nvme-ranges", &dsm);
    for action in ["close-zone", "finish-zone", "reset-zone"] {
        drive.nvme("nvme-zone", &["zns", action, "--zone", "2"]);
    }
    let read = ["--on", "read", "--lbas", "4096..=4351"];
    drive.fault(&[&["add"], &read[..], &["--effect", "media-error"]].concat());
    let late = ["--probability", "1%", "--effect", "delay", "--delay", "1ms"];
    drive.fault(&[&["add", "--on", "any"], &late[..]].concat());
    for words in [
        &["list"][..],
        &["remove", "1"],
        &["zone", "3", "--state", "offline"],
        &["clear"],
        &["power-cut"],
        &["reset-controller"],
    ] {
        drive.fault(words);
    }
    let after = drive.scratch.zonelab(&["nvme", "gen-dhchap-key", "--json"]);
    valid("nvme-gen-dhchap-key", &after.stdout);
}

#[test]
fn placement_and_extensions_are_as_their_schemas_say() {
    let set = "namespaces=[{kind=\"conventional\", zones=1024, spare_zones=64, \
               reclaim_unit_handles=4}]";
    let drive = Drive::start("small-zones", &["--set", set]);
    drive.scratch.write("data", &"d".repeat(4096));
    let write = ["write", "--data", "data"];
    drive.nvme("nvme-blocks", &write);
    for words in [
        &["configs"][..],
        &["usage"],
        &["stats"],
        &["status"],
        &["update", "--pids", "0"],
        &["events"],
        &["events", "--host-events"],
    ] {
        drive.nvme("nvme-fdp", &[&["fdp"], words].concat());
    }
    let set = ["--set", "zones.descriptor_extension=64B"];
    let drive = Drive::start("small-zones", &set);
    drive.scratch.write("data", "of the host");
    let set = ["zns", "set-zone-desc", "--zone", "0", "--data", "data"];
    drive.nvme("nvme-zone", &set);
    let open = ["zns", "zone-mgmt-send", "--zone", "0", "--zsa", "3"];
    drive.nvme("nvme-zone", &open);
    let report = ["zns", "report-zones", "--extended", "--descs", "2"];
    drive.nvme("nvme-report-zones", &report);
}

#[test]
fn a_random_write_area_is_flushed_as_its_schema_says() {
    let zrwa = [
        "--set",
        "zones.zrwa.size=64KiB",
        "--set",
        "zones.zrwa.flush_granularity=16KiB",
    ];
    let drive = Drive::start("zn540", &zrwa);
    drive.scratch.write("data", &"d".repeat(16_384));
    drive.nvme("nvme-zone", &["zns", "open-zone", "--zone", "0", "--zrwaa"]);
    let write = ["write", "--start-block", "0", "--data", "data"];
    drive.nvme("nvme-blocks", &write);
    let flush = ["zns", "zrwa-flush-zone", "--lba", "3"];
    drive.nvme("nvme-zrwa-flush-zone", &flush);
}

#[test]
fn lines_of_serve_are_as_their_schema_says() {
    for words in [
        &["--web", "127.0.0.1:0", "--store", "drive"][..],
        &["--ftl"],
        &["--set", "zones.size=48MiB", "--set", "zones.capacity=32MiB"],
    ] {
        let scratch = Scratch::new("schemas-lines");
        let fixed = ["serve", "small-zones", "--listen", "127.0.0.1:0", "--json"];
        let mut command = scratch.command(&[&fixed, words].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut lines = String::new();
        output.read_line(&mut lines).unwrap();
        let pid = process.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        output.read_to_string(&mut lines).unwrap();
        assert!(process.wait().unwrap().success());
        assert_eq!(lines.lines().count(), 2, "{lines}");
        valid("serve", lines.as_bytes());
    }
}

/// Names of the schemas.
fn names() -> BTreeSet<String> {
    let files = std::fs::read_dir(directory()).unwrap();
    files
        .map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".json").expect(&name).to_owned()
        })
        .collect()
}

#[test]
fn every_schema_is_described_and_validated_by_a_test() {
    let sources: String = [
        "schemas.rs",
        "calibrate.rs",
        "characterize.rs",
        "fit.rs",
        "search.rs",
    ]
    .map(|file| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
        std::fs::read_to_string(path.join(file)).unwrap()
    })
    .concat();
    for name in names() {
        let link = format!("schemas/{name}.json");
        assert!(PAGE.contains(&link), "docs/json.md does not name {link}");
        assert!(
            sources.contains(&format!("\"{name}\"")),
            "no test validates against {link}"
        );
    }
    for (name, why) in NOT_VALIDATED {
        assert!(names().contains(name), "{name} ({why}) is no schema");
    }
}

/// No key may come or go without its schema.
fn is_strict(value: &Value, path: &str) {
    match value {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object) && map.contains_key("type") {
                let rest = map.get("additionalProperties");
                assert!(rest.is_some(), "{path}: other keys are allowed");
            }
            for (key, value) in map {
                is_strict(value, &format!("{path}/{key}"));
            }
        }
        Value::Array(list) => list.iter().for_each(|value| is_strict(value, path)),
        _ => {}
    }
}

#[test]
fn schemas_are_strict_and_schemas() {
    for name in names() {
        let schema = schema(&name);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        let draft = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(schema["$schema"], draft, "{name}");
        is_strict(&schema, &name);
    }
}

/// Verbs of the command, as its help has them.
pub(crate) fn verbs() -> Vec<String> {
    let scratch = Scratch::new("verbs");
    let help = scratch.zonelab(&["help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_verb_is_on_the_page() {
    let verbs = verbs();
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in verbs {
        let start = format!("| `{verb}");
        assert!(PAGE.contains(&start), "docs/json.md does not have {verb}");
    }
}

#[test]
fn every_verb_that_can_be_quiet_has_the_letter_for_it() {
    let scratch = Scratch::new("quiet");
    for verb in verbs() {
        let help = scratch.zonelab(&[&verb, "--help"]);
        let help = String::from_utf8(help.stdout).unwrap();
        let is_option = |line: &&str| line.trim_start().contains("--quiet");
        for line in help.lines().filter(is_option) {
            assert!(line.contains("-q, --quiet"), "{verb}: {line}");
        }
    }
}

/// Nothing but text: escape sequences are for terminals only, and none is made where
/// nobody looks at one.
#[test]
fn pipes_get_no_colours() {
    let scratch = scratch("colours");
    for words in [
        &["run", "small.toml"][..],
        &["profiles"],
        &["reproduce", "--list"],
        &["--help"],
    ] {
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "xterm-256color")] {
            let output = scratch.command(words).env(name, value).output().unwrap();
            let all = [output.stdout, output.stderr].concat();
            assert!(!all.contains(&0x1b), "{words:?} with {name}");
        }
    }
}
