//! `zonelab kv` as scripts see it.

use std::process::Output;

use serde_json::Value;
use zonelab_device::{Buf, Lba, Op};
use zonelab_nvme::zns::ReportFilter;

use super::scratch::{Scratch, stderr};
use super::store::{Served, run};

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
    assert_eq!(result["schema"], 2);
    let configuration = &result["configuration"];
    assert_eq!(configuration["operations"], 40_000);
    // All of it is data.
    assert!(configuration["clients"][0]["mix"]["insert"].is_u64());
    assert!(configuration["values"].is_object());
    assert!(configuration["files"]["io_bytes"].is_u64());
    assert!(configuration["store"]["costs"]["put_ns"].is_u64());
    assert!(configuration["drive"]["zones"]["count"].is_u64());
    let count = |kind: &str| result["kinds"][kind]["count"].as_u64();
    assert_eq!(count("insert"), Some(20_000));
    assert_eq!(count("get"), Some(6_000));
    assert!(result["tree"]["write_amplification"].as_f64() > Some(1.5));
    assert!(result["device_writes"]["dlwa"].as_f64() >= Some(1.0));
    assert!(!result["samples"].as_array().unwrap().is_empty());
    assert_eq!(scratch.kv(&args).stdout, output.stdout, "twice the same");
}

/// A count for each kind of operation, in the order of the test's table.
#[test]
fn workloads_of_db_bench_do_what_their_names_say() {
    let scratch = Scratch::new("kv-db-bench");
    for (workload, kind) in [
        ("fillseq", "insert"),
        ("fillsync", "update"),
        ("updaterandom", "rmw"),
        ("deleterandom", "delete"),
        ("readrandom", "get"),
        ("seekrandom", "scan"),
    ] {
        let mut args = vec![workload, "--operations", "2000"];
        if workload != "fillseq" {
            args.extend(["--records", "2000"]);
        }
        let output = scratch.kv(&[&args[..], &SMALL].concat());
        assert!(output.status.success(), "{workload}: {}", stderr(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let kinds = result["kinds"].as_object().unwrap();
        for (name, of) in kinds {
            let expected = if name == kind { 2_000 } else { 0 };
            assert_eq!(
                of["count"].as_u64().unwrap_or(0),
                expected,
                "{workload}: {name}"
            );
        }
        let synced = &result["configuration"]["store"]["wal_sync"];
        assert_eq!(synced == "each_write", workload == "fillsync", "{synced}");
    }
    for (workload, why) in [("readreverse", "goes back"), ("readseq", "seekrandom")] {
        let output = scratch.kv(&[&[workload], &SMALL[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn a_property_file_of_ycsb_is_a_workload() {
    let scratch = Scratch::new("kv-ycsb");
    let text = "recordcount=1000\noperationcount=4000\nreadproportion=0.5\n\
                updateproportion=0\nreadmodifywriteproportion=0.25\nscanproportion=0.25\n\
                requestdistribution=latest\nthreadcount=2\nfieldcount=2\nrocksdb.dir=/x\n";
    scratch.write("workload.properties", text);
    let output = scratch.kv(&[&["workload.properties"], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |kind: &str| result["kinds"][kind]["count"].as_u64();
    assert_eq!(
        ["get", "rmw", "scan"].map(count),
        [Some(2000), Some(1000), Some(1000)]
    );
    let configuration = &result["configuration"];
    assert_eq!(configuration["records"], 1000);
    assert_eq!(configuration["values"]["fixed"], 200);
    assert_eq!(configuration["clients"][0]["count"], 2);
    // What the command line says comes last.
    let short = [
        "workload.properties",
        "--operations",
        "100",
        "--clients",
        "1",
    ];
    let output = scratch.kv(&[&short, &SMALL[..]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["configuration"]["operations"], 100);
    scratch.write(
        "hot.properties",
        &format!("{text}requestdistribution=hotspot\n"),
    );
    let output = scratch.kv(&[&["hot.properties"], &SMALL[..]].concat());
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(
        said.contains("hot.properties: line 11: requestdistribution=hotspot"),
        "{said}"
    );
    let output = scratch.kv(&[&["none.properties"], &SMALL[..]].concat());
    assert_eq!(output.status.code(), Some(3));
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
        "--finish-threshold 101%: \"101%\" is too large; at most 100%",
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
    refused(
        &["ycsb-a", "--device", "/dev/nvme0n1"],
        2,
        "linux:///dev/nvme0n1",
    );
    let nobody = "tcp://127.0.0.1:1/nqn.2014-08.org.x:y";
    let on_nobody = ["ycsb-a", "--overwrite", "--device", nobody];
    refused(&on_nobody, 5, "no connection to 127.0.0.1:1");
    refused(
        &[&on_nobody[..], &["--set", "zones.count=4"]].concat(),
        2,
        "--set zones.count=4 is for emulated drives",
    );
    refused(
        &["ycsb-a", "--device", "confznspp?nsid=2"],
        2,
        "there is no namespace 2",
    );
}

/// Each of these is refused, with this exit code and in these words.
fn all_are_refused(name: &str, code: i32, cases: &[(&[&str], &str)]) {
    let scratch = Scratch::new(name);
    for (args, says) in cases {
        let base = ["ycsb-a", "--device", "confznspp", "--quiet"];
        let output = scratch.kv(&[&base[..], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

#[test]
fn values_that_cannot_be_are_refused_by_their_options() {
    let cases: [(&[&str], &str); 9] = [
        (&["--records", "0"], "--records 0: records = 0, and nobody"),
        (&["--operations", "0"], "--operations 0: 0 is out of range"),
        (&["--clients", "0"], "--clients 0: 0 is out of range"),
        (
            &["--value-bytes", "20000000"],
            "--value-bytes 20000000: a value of",
        ),
        (
            &["--kv", "value=256MiB"],
            "--kv value=256MiB: a value of 268435456 bytes",
        ),
        (&["--kv", "value=[\"9B\", \"8B\"]"], "sizes of 9 to 8 bytes"),
        (
            &["--kv", "keys=zipfian", "--kv", "theta=0"],
            "--kv theta=0: theta = 0",
        ),
        (
            &["--kv", "mix.get=0", "--kv", "mix.put=1"],
            "known here: delete, get,",
        ),
        (
            &["--kv", "store.costs.put=2s"],
            "this is too long a time; at most 1s",
        ),
    ];
    all_are_refused("kv-values", 2, &cases);
}

#[test]
fn what_does_not_fit_a_drive_or_itself_is_refused_by_its_key() {
    let conventional = "namespaces=[{kind=\"conventional\", zones=48, spare_zones=3}]";
    let cases: [(&[&str], &str); 8] = [
        (
            &["--kv", "files.io=1B"],
            "files.io = 1: must be at least a logical",
        ),
        (
            &["--kv", "files.meta_zones=1"],
            "files.meta_zones = 1: must be at least 2",
        ),
        (
            &["--kv", "store.num_levels=1"],
            "store.num_levels = 1: must be 2 to 16",
        ),
        (
            &["--kv", "store.write_buffer_size=1TiB"],
            "store.write_buffer_size = 1099511627776: must be 1 to 1073741824 bytes",
        ),
        (
            &["--set", "zones.count=1"],
            "fewer than the 1 zones there are",
        ),
        (
            &["--set", "zones.max_open=1"],
            "(or zones.max_open of the drive): must be",
        ),
        (
            &["--set", "zones.max_active=1"],
            "(or zones.max_active of the drive): must be",
        ),
        (&["--set", conventional], "namespace 1 is not zoned"),
    ];
    all_are_refused("kv-fit", 3, &cases);
}

/// What does not fit the drive ends the run with what is used up.
#[test]
fn a_store_too_large_for_its_drive_ends_with_what_is_scarce() {
    let scratch = Scratch::new("kv-too-large");
    let tiny = [
        "--set",
        "geometry.pages_per_block=4",
        "--set",
        "zones.count=8",
        "--set",
        "zones.capacity=512KiB",
        "--set",
        "zones.size=512KiB",
        "--quiet",
    ];
    let cases: [&[&str]; 4] = [
        // Values larger than a zone; a memtable larger than the drive; one zone for data.
        &["--value-bytes", "1000000"],
        &["--kv", "store.write_buffer_size=1GiB"],
        &[
            "--kv",
            "store.write_buffer_size=1GiB",
            "--kv",
            "store.wal_buffer=1GiB",
        ],
        &["--kv", "files.meta_zones=7"],
    ];
    for args in cases {
        let base = [
            "fillrandom",
            "--operations",
            "100000",
            "--device",
            "confznspp",
        ];
        let output = scratch.kv(&[&base[..], &tiny, args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{args:?}: {said}");
        assert!(said.contains("out of "), "{args:?}: {said}");
    }
}

/// Keys and values in a few MiB, on a drive that keeps them.
const TINY_STORE: [&str; 7] = [
    "kvbench-ii",
    "--operations",
    "6000",
    "--kv",
    "store.write_buffer_size=256KiB",
    "--quiet",
    "--json",
];

/// What does not depend on how long things take: the operations by kind, and
/// what became of them.
fn counts(output: &Output) -> Vec<Option<u64>> {
    assert!(output.status.success(), "{}", stderr(output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["failure"], Value::Null);
    let kinds = ["insert", "update", "get", "delete"];
    let counts = kinds.map(|kind| result["kinds"][kind]["count"].as_u64());
    [&counts[..], &[result["operations"].as_u64()]].concat()
}

fn serve(scratch: &Scratch) -> Served {
    Served::start(scratch.command(&[
        "serve",
        "confznspp",
        "--no-timing",
        "--set",
        "data.store=memory",
        "--set",
        "zones.capacity=48MiB",
        "--set",
        "zones.size=64MiB",
        "--listen",
        "127.0.0.1:0",
        "--json",
    ]))
}

/// The same store does the same in virtual time, in real time, through the driver for PCIe, and
/// over NVMe/TCP, where each value that is read is compared with its key.
#[test]
fn a_store_runs_on_any_device_under_either_clock() {
    let scratch = Scratch::new("kv-clocks");
    let on = |device: &str, more: &[&str]| {
        let args = [&TINY_STORE[..], &["--device", device], more].concat();
        counts(&scratch.kv(&args))
    };
    let expected = on("confznspp", &[]);
    assert_eq!(expected[4], Some(6_000));
    assert_eq!(on("confznspp?clock=virtual", &[]), expected);
    assert_eq!(on("confznspp?clock=real", &[]), expected);
    assert_eq!(on("confznspp?via=pcie", &[]), expected);
    let served = serve(&scratch);
    assert_eq!(on(&served.url(), &["--overwrite"]), expected);
}

/// A drive that goes away in the middle of a run ends it with what happened.
#[test]
fn a_drive_that_goes_away_is_exit_code_5() {
    let scratch = Scratch::new("kv-gone");
    let mut served = serve(&scratch);
    let (controller, mut queue) = served.connect();
    let device = served.url();
    let store = scratch
        .command(&["kv", "fillrandom", "--operations", "50000000", "--quiet"])
        .args(["--overwrite", "--device", &device])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The store writes from its start on.
    let report = Op::ZoneReceive {
        slba: Lba(0),
        filter: ReportFilter::IMPLICITLY_OPENED,
        partial: false,
        extended: false,
    };
    loop {
        let done = run(&mut queue, report, Some(Buf::zeroed(64)));
        assert!(done.status.is_success());
        if done.data.unwrap()[..8] != [0; 8] {
            break;
        }
    }
    served.process.kill().unwrap();
    let output = store.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("connection"), "{said}");
    drop((queue, controller));
}

#[test]
fn a_clock_that_does_not_exist_is_refused() {
    let scratch = Scratch::new("kv-clock");
    let output = scratch.kv(&["ycsb-a", "--device", "confznspp?clock=fast"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("confznspp?clock=real"), "{said}");
}
