//! `zonelab kv` as scripts see it.

use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

impl Scratch {
    fn kv(&self, args: &[&str]) -> Output {
        self.command(&["kv"]).args(args).output().unwrap()
    }
}

/// Zones of 48 MiB, and a store that flushes often.
const SMALL: [&str; 11] = [
    "--device",
    "confznspp",
    "--set",
    "zones.capacity=48MiB",
    "--set",
    "zones.size=64MiB",
    "--kv",
    "store.write_buffer_size=4MiB",
    "--kv",
    "store.target_file_size_base=4MiB",
    "--json",
];

#[test]
fn a_workload_says_what_it_did_to_the_drive() {
    let scratch = Scratch::new("kv");
    let args = [&["kvbench-ii", "--operations", "40000"], &SMALL[..]].concat();
    let output = scratch.kv(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["schema"], 1);
    assert_eq!(result["configuration"]["operations"], 40_000);
    let count = |kind: &str| result["kinds"][kind]["count"].as_u64();
    assert_eq!(count("insert"), Some(20_000));
    assert_eq!(count("get"), Some(6_000));
    assert!(result["tree"]["write_amplification"].as_f64() > Some(1.5));
    assert!(result["device_writes"]["dlwa"].as_f64() >= Some(1.0));
    assert!(!result["samples"].as_array().unwrap().is_empty());
    assert_eq!(scratch.kv(&args).stdout, output.stdout, "twice the same");
}

#[test]
fn a_drive_that_is_full_is_exit_code_5_with_what_is_scarce() {
    let scratch = Scratch::new("kv-full");
    let args = [
        &[
            "fillrandom",
            "--operations",
            "200000",
            "--value-bytes",
            "1000",
        ],
        &SMALL[..10],
        &["--set", "zones.count=6"],
    ]
    .concat();
    let output = scratch.kv(&args);
    assert_eq!(output.status.code(), Some(5));
    let said = stderr(&output);
    assert!(
        said.contains("out of zones") || said.contains("out of space"),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("ENDED EARLY"));
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    let scratch = Scratch::new("kv-wrong");
    let refused = |args: &[&str], code: i32, says: &str| {
        let output = scratch.kv(args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{said}");
    };
    let on = ["--device", "confznspp"];
    refused(&[&["ycsb-g"], &on[..]].concat(), 2, "did you mean ycsb-");
    refused(
        &[&["ycsb-a"], &on[..], &["--finish-threshold", "101%"]].concat(),
        2,
        "finish_threshold",
    );
    refused(
        &[&["ycsb-a"], &on[..], &["--key-bytes", "4"]].concat(),
        2,
        "key",
    );
    refused(
        &[&["ycsb-a"], &on[..], &["--kv", "store.no_such=1"]].concat(),
        2,
        "no_such",
    );
    refused(&["ycsb-a", "--device", "/dev/nvme0n1"], 2, "name a profile");
    refused(
        &[
            "ycsb-a",
            "--device",
            "tcp://127.0.0.1:1/nqn.2014-08.org.x:y",
        ],
        2,
        "--overwrite",
    );
}
