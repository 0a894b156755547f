//! The job files that fio comes with (the package `fio-examples` of Debian 13, which the tier
//! unpacks): which can be run on which drive, and why the others cannot.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// File, drive, and what is wrong with it on that drive if anything is.
const TABLE: &str = include_str!("../fio/examples.csv");

/// Names of drives in the table, and what they are.
const DRIVES: [(&str, &[&str]); 5] = [
    ("zones", &["zn540"]),
    ("zones-512", &["zn540", "--set", "namespace.lba_size=512B"]),
    (
        "zones-256m",
        &[
            "zn540",
            "--set=zones.size=256MiB",
            "--set=zones.capacity=256MiB",
            "--set=zones.count=1024",
        ],
    ),
    ("blocks", &[FDP]),
    ("blocks-512", &[FDP, "--set", "namespace.lba_size=512B"]),
];

const FDP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/fdp.toml");

fn examples() -> PathBuf {
    let at = std::env::var_os("ZONELAB_FIO_EXAMPLES");
    at.expect("`cargo xtask test fio` fetches the job files")
        .into()
}

/// Runs a job file of fio, with values for the variables that some have.
fn run(file: &str, words: &[&str]) -> Output {
    let variables = [
        ("FIO_RW", "randread"),
        ("FIO_BS", "4k"),
        ("FIO_IODEPTH", "1"),
        ("FIO_DIR", "x"),
        ("GPU_DEV_IDS", "0"),
    ];
    Command::new(env!("CARGO_BIN_EXE_zonelab"))
        .current_dir(examples())
        .envs(variables)
        .args(["fio", file])
        .args(words)
        .output()
        .unwrap()
}

#[test]
fn job_files_of_fio_run_or_say_why_not() {
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    for line in TABLE.lines().skip(1) {
        let mut fields = line.splitn(3, ',');
        let mut next = || fields.next().expect("three fields");
        rows.push((next(), next(), next()));
    }
    let mut there: Vec<String> = std::fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    there.sort();
    let named: Vec<&str> = rows.iter().map(|(file, ..)| *file).collect();
    assert_eq!(named, there);
    let mut off = Vec::new();
    for (file, name, reason) in rows {
        let (_, drive) = DRIVES.iter().find(|(of, _)| *of == name).expect("a drive");
        let output = run(file, &[&["--parse-only", "--device"], *drive].concat());
        let said = super::text(&output.stderr);
        let expected = if reason.is_empty() { 0 } else { 3 };
        if output.status.code() != Some(expected) || !said.contains(reason) {
            off.push(format!("{file} on {name}: {:?}\n{said}", output.status));
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// The four files about zones, as they are, on drives with zones of the size that they state
/// (fio itself refuses others): operations by fio's own rules.
#[test]
fn zones_are_written_and_reset_as_fio_says() {
    let small = [
        "small-zones",
        "--set=zones.size=256MiB",
        "--set=zones.capacity=256MiB",
        "--set=geometry.blocks_per_plane=8192",
    ];
    for drive in [&small[..], DRIVES[2].1] {
        let of = |file: &str, more: &[&str]| {
            let output = run(file, &[&["--json", "--device"], drive, more].concat());
            let said = super::text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{file}: {said}");
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            json["jobs"][0].clone()
        };
        let count = |job: &Value, direction: &str| job[direction]["total_ios"].as_u64().unwrap();
        // Writes of 2 MiB go on until 128 of them are due for each trim of a zone (flow).
        let file = "zbd-rand-write-trim-gc.fio";
        let before = count(&of(file, &["--section=warmup"]), "write");
        let job = of(file, &[]);
        let (writes, trims) = (count(&job, "write") - before, count(&job, "trim"));
        assert!(
            trims > 0 && writes.abs_diff(trims * 128) <= 128,
            "{writes} {trims}"
        );
        // At 70 % of what its zones hold, every eighth write resets its zone first, and so does
        // one to a full zone. No write finds a zone without room: what was written is there, or
        // was reset with at most seven others of its zone.
        let job = of("zbd-rand-write-zone-reset-gc.fio", &[]);
        let (writes, resets) = (count(&job, "write"), &job["zonelab"]["cleared_zones"]);
        let resets = resets.as_u64().unwrap();
        let blocks = 8 * (256 / 32);
        assert!(
            writes > 200 && writes <= blocks + 8 * resets,
            "{writes} {resets}"
        );
        assert!(
            resets * 8 >= writes - blocks * 7 / 10 - 8,
            "{writes} {resets}"
        );
        let job = of("zbd-rand-write.fio", &["--runtime=5"]);
        assert!(count(&job, "write") > 1_000);
        // The zones begin at that of number 524, and are 40.
        let job = of("zbd-seq-read.fio", &["--full-zones=524..=563"]);
        assert_eq!(count(&job, "read"), (10 << 30) / (256 << 10));
    }
}
