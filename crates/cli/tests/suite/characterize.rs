//! `zonelab characterize`: verdicts of drives that differ, the same bytes however they come
//! about, what a transport hides, and what is refused.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use serde_json::Value;

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// Zones that are full in milliseconds, on a drive without a buffer whose host commands wait
/// behind erasures.
const SMALL: &str = r#"
schema = 1
name = "small"
[geometry]
channels = 4
pages_per_block = 64
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 48
size = "8MiB"
capacity = "8MiB"
max_open = 8
max_active = 8
[media]
read = "60us"
program = "300us"
erase = "2ms"
transfer = "20us"
"#;

impl Scratch {
    fn of_characterize(name: &str) -> Self {
        let scratch = Self::new(&format!("characterize-{name}"));
        scratch.write("small.toml", SMALL);
        scratch
    }

    fn characterize(&self, args: &[&str]) -> Output {
        self.zonelab(&[&["characterize", "--quiet"][..], args].concat())
    }

    fn files_of(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.0.join(out)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.is_file())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect()
    }
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    super::schemas::valid("characterize", &output.stdout);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The verdicts of a drive, observation 1 first.
fn verdicts(device: &Value) -> Vec<&str> {
    let all = device["observations"].as_array().unwrap().iter();
    all.map(|one| one["verdict"].as_str().unwrap()).collect()
}

/// The drive of the study has all of its observations; another one has others.
#[test]
fn two_drives_have_two_verdicts_and_that_of_the_study_the_published_ones() {
    let scratch = Scratch::of_characterize("two");
    let devices = ["--device", "zn540", "small.toml", "--repeats=2"];
    let found = json(&scratch.characterize(&[&devices[..], &["--out=out", "--json"]].concat()));
    let devices_found = found["devices"].as_array().unwrap();
    let study = verdicts(&devices_found[0]);
    assert_eq!(study, ["holds"; 13]);
    let recommendations = devices_found[0]["recommendations"].as_array().unwrap();
    assert_eq!(recommendations.len(), 5);
    assert!(recommendations.iter().all(|one| one["verdict"] == "holds"));
    // Without a buffer and with one front end for both, writes take as long as appends,
    // reads wait for erasures, and what blocks are made of makes no difference.
    let small = verdicts(&devices_found[1]);
    for number in [1, 4, 8, 12] {
        assert_eq!(small[number - 1], "does-not-hold", "{number}: {small:?}");
    }
    for number in [3, 10] {
        assert_eq!(small[number - 1], "holds", "{number}: {small:?}");
    }
    // Every number has what it is held against, and its interval contains it.
    for device in devices_found {
        for one in device["observations"].as_array().unwrap() {
            for evidence in one["evidence"].as_array().unwrap() {
                let effect = &evidence["effect"];
                let value = |of: &Value| of.as_f64().unwrap();
                let (low, high) = (&effect["interval"][0], &effect["interval"][1]);
                assert!(value(low) <= value(&effect["value"]), "{evidence}");
                assert!(value(high) >= value(&effect["value"]), "{evidence}");
                assert_eq!(effect["runs"], 2);
            }
        }
    }
    let text = scratch.characterize(&[&devices[..], &["--out=out"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("hold, of 13"), "{text}");
    let files = scratch.files_of("out");
    let expected = [
        "bandwidth.svg",
        "characterization.html",
        "characterization.json",
        "finish.svg",
        "manifest.json",
        "many-zones.svg",
        "measurements.csv",
        "observations.csv",
        "one-zone.svg",
        "request-size.svg",
        "reset.svg",
    ];
    assert_eq!(files.keys().collect::<Vec<_>>(), expected);
    let page = String::from_utf8_lossy(&files["characterization.html"]);
    assert!(page.contains("Which observations hold where"));
    assert!(page.contains("<svg"));
}

#[test]
fn the_same_bytes_whether_interrupted_or_not_on_any_number_of_threads() {
    let scratch = Scratch::of_characterize("bytes");
    let characterize = |out: &str, threads: &str| {
        let args = ["--device", "small.toml", "--repeats=1", "--out", out];
        let output = scratch.characterize(&[&args[..], &["--threads", threads]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        scratch.files_of(out)
    };
    let one = characterize("one", "1");
    assert_eq!(characterize("two", "2"), one);
    // What an interruption leaves: some parts, the last of them cut off.
    let log = &one["evaluations.jsonl"];
    std::fs::create_dir(scratch.0.join("three")).unwrap();
    let manifest = String::from_utf8(one["manifest.json"].clone()).unwrap();
    let manifest = manifest.replace("\"complete\": true", "\"complete\": false");
    scratch.write("three/manifest.json", &manifest);
    std::fs::write(
        scratch.0.join("three/evaluations.jsonl"),
        &log[..log.len() / 2],
    )
    .unwrap();
    assert_eq!(characterize("three", "2"), one);
    // What was measured with another seed is nothing to go on from.
    scratch.write("other.toml", SMALL);
    let other = [
        "--device",
        "small.toml",
        "other.toml",
        "--repeats=1",
        "--out=seeds",
    ];
    let both = |more: &[&str]| {
        let output = scratch.characterize(&[&other[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        scratch.files_of("seeds")["measurements.csv"].clone()
    };
    let first = both(&[]);
    assert_ne!(both(&["--seed=2", "--force"]), first);
    assert_eq!(both(&["--force"]), first);
    // Once more runs nothing.
    assert_eq!(characterize("one", "1"), one);
}

/// A drive behind NVMe/TCP: what cannot be measured there is said to be so, and how small a
/// difference may be that the way to it hides.
#[test]
fn a_drive_over_tcp_says_what_the_transport_hides_and_keeps_what_it_holds() {
    let scratch = Scratch::of_characterize("tcp");
    let listen = ["serve", "small.toml", "--log=warn", "--json"];
    let at = ["--listen=127.0.0.1:0"];
    let served = Served::start(scratch.command(&[&listen[..], &at].concat()));
    let device = served.url();
    let args = ["--device", device.as_str(), "--repeats=1", "--json"];
    let found = json(&scratch.characterize(&args));
    let device = &found["devices"][0];
    assert_eq!(device["facts"]["reach"]["transport"], "tcp");
    assert!(device["facts"]["cores"].as_u64().unwrap() >= 1);
    let verdicts = verdicts(device);
    assert_eq!(verdicts[..2], ["not-measured"; 2]);
    // What hardly depends on the machine that this runs on, if that had time for it.
    match device["too_busy"].as_str() {
        None => assert_eq!(verdicts[2], "holds", "{verdicts:?}"),
        Some(_) => assert!(
            verdicts
                .iter()
                .all(|of| ["not-measured", "cannot-be-judged"].contains(of)),
            "{verdicts:?}"
        ),
    }
    assert_ne!(verdicts[9], "not-measured", "{verdicts:?}");
    let note = |number: usize| device["observations"][number - 1]["note"].as_str();
    assert!(note(1).unwrap().contains("would destroy everything"));
    assert!(note(2).unwrap().contains("this host has one stack"));
    if !["holds", "cannot-be-judged"].contains(&verdicts[3]) {
        assert!(note(4).unwrap().contains("they may be hidden"));
    }
    // Its zones are not empty now, and nobody said that they may be lost.
    let refused = scratch.characterize(&args[..3]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("--overwrite"),
        "{}",
        stderr(&refused)
    );
    // Who says so measures it again, from the first part on: it may be another drive by now.
    let again = [&["characterize", "--overwrite"][..], &args[..3]].concat();
    let mut again = scratch
        .command(&again)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(again.stderr.take().unwrap());
    // What is lost is said before.
    lines.read_line(&mut said).unwrap();
    assert!(said.contains("of namespace 1 hold will be lost"), "{said}");
    lines.read_line(&mut said).unwrap();
    // How long it takes is said before anything runs, and that zones have to be prepared.
    assert!(said.contains(" s to go for measuring, "), "{said}");
    assert!(said.contains("and preparing zones (up to "), "{said}");
    assert!(said.contains(" s in all at that rate"), "{said}");
    lines.read_line(&mut said).unwrap();
    again.kill().unwrap();
    again.wait().unwrap();
    assert!(
        said.contains("1 of 8") && said.contains("), about "),
        "{said}"
    );
}

#[test]
fn what_cannot_be_characterised_is_refused_before_anything_runs() {
    let scratch = Scratch::of_characterize("refused");
    let few = SMALL.replace("count = 48", "count = 12");
    scratch.write("few.toml", &few);
    let narrow = SMALL
        .replace("max_open = 8", "max_open = 2")
        .replace("max_active = 8", "max_active = 2");
    scratch.write("narrow.toml", &narrow);
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--device", "few.toml"],
            3,
            "it has 12 zones; the suite needs 16",
        ),
        (&["--device", "narrow.toml"], 3, "2 open zones at most"),
        (&["--device", "zn54"], 3, "zn540"),
        (&["--device", "none.toml"], 3, "none.toml"),
        (
            &["--device", "small.toml", "small.toml"],
            2,
            "it is named twice",
        ),
        (
            &["--device", "small.toml?nsid=2"],
            2,
            "there is no namespace 2",
        ),
        (&["--device", "small.toml?via=ftl"], 2, "leave out via="),
        (&["--device", "/dev/nvme0n1"], 2, "linux:///dev/nvme0n1"),
        (
            &["--device", "tcp://127.0.0.1:1/nqn.2024-01.x:y?nsid=1"],
            5,
            "127.0.0.1:1",
        ),
        (&["--device", "small.toml", "--repeats=0"], 2, "1..=1000"),
        (&[], 2, "--device"),
        (
            &["--device", "small.toml?clock=real", "zn540?clock=real"],
            2,
            "one at most in real time",
        ),
    ];
    for (args, code, message) in cases {
        let output = scratch.characterize(&[args, &["--out=out"][..]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
        assert!(!scratch.0.join("out").exists(), "{args:?}");
    }
}
