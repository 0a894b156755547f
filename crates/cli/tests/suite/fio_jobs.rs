//! `zonelab fio` as scripts see it.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

impl Scratch {
    pub(crate) fn fio(&self, args: &[&str]) -> Output {
        self.command(&["fio"])
            .env_remove("NOT_SET")
            .args(args)
            .output()
            .unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.fio(&[args, &["--output-format=json"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn example(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    docs.join(name).display().to_string()
}

/// Small zones: what takes minutes on the real geometry takes seconds.
const SMALL: [&str; 6] = [
    "--device",
    "confznspp",
    "--set",
    "zones.capacity=48MiB",
    "--set",
    "zones.size=64MiB",
];

fn small(file: &str) -> Vec<&str> {
    [&[file], &SMALL[..]].concat()
}

pub(crate) fn job<'a>(result: &'a Value, name: &str) -> &'a Value {
    let jobs = result["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["jobname"] == name).unwrap()
}

#[test]
fn the_example_runs_unchanged_and_says_what_finishes_cost() {
    let scratch = Scratch::new("example");
    let file = example("writers-and-finishes.fio");
    let result = scratch.json(&[&file, "--device", "confznspp"]);
    assert_eq!(
        result["jobs"].as_array().unwrap().len(),
        4,
        "one for each group"
    );
    let iops = |name: &str| job(&result, name)["write"]["iops_mean"].as_f64().unwrap();
    // Four writers of a page each, alone: 4 / 725 us.
    assert!(
        (iops("alone") - 4.0 / 725e-6).abs() < 10.0,
        "{}",
        iops("alone")
    );
    assert!(iops("writers") < 0.7 * iops("alone"), "{}", iops("writers"));
    let finish = job(&result, "finish");
    assert!(finish["zonelab"]["operations"]["finish"].as_u64() >= Some(2));
    assert_eq!(job(&result, "writers")["job options"]["numjobs"], "4");
    let read = &job(&result, "read")["read"];
    assert_eq!(read["total_ios"], 20_000);
    let percentiles = read["lat_ns"]["percentile"].as_object().unwrap();
    assert!(percentiles.contains_key("99.900000") && percentiles.len() == 4);
    assert!(
        read["lat_ns"]["min"].as_u64() >= Some(85_000),
        "read and transfer"
    );
}

#[test]
fn the_zone_append_job_of_spdk_runs_unchanged() {
    let scratch = Scratch::new("spdk");
    let file = example("spdk-zone-append.fio");
    let result = scratch.json(&[&file, "--device", "small-zones"]);
    let job = &result["jobs"][0];
    assert_eq!(job["write"]["runtime"], 60_000);
    let operations = &job["zonelab"]["operations"];
    assert_eq!(operations["write"], 0);
    assert_eq!(operations["append"], job["write"]["total_ios"]);
    let real = scratch.fio(&[&file]);
    assert_eq!(real.status.code(), Some(3));
    assert!(
        stderr(&real).contains("spdk-zone-append.fio:21: filename"),
        "{}",
        stderr(&real)
    );
}

/// Fills zones, works on them in every way, and writes logs.
const ALL_KINDS: &str = "
[global]
ioengine=libaio
bs=16k
size=4z
[fill]
rw=write
bs=256k
iodepth=4
[mix]
stonewall
rw=randrw
iodepth=8
io_size=20m
bsrange=16k-64k
random_distribution=zipf:1.1
write_lat_log=mix
[shared]
stonewall
rw=write
numjobs=3
iodepth=2
number_ios=500
group_reporting
[soft]
stonewall
rw=write
offset=8z
size=2z
softfinish=1
softfinish_granularity=256k
softfinish_pause=50
write_bw_log=soft
log_avg_msec=100
[random]
stonewall
rw=randwrite
size=8z
max_open_zones=6
io_size=20m
numjobs=2
thinktime=100
thinktime_blocks=8
[trim]
stonewall
rw=randtrim
size=12z
";

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let scratch = Scratch::new("determinism");
    scratch.write("all.fio", ALL_KINDS);
    let run = |out: &str, seed: &str| {
        let args = [&small("all.fio")[..], &["--out", out, "--seed", seed]].concat();
        let output = scratch.fio(&[&args[..], &["--host-jitter", "5us"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let read = |name: &str| std::fs::read(scratch.0.join(out).join(name)).unwrap();
        let logs = ["mix_lat.2.log", "mix_slat.2.log", "soft_bw.6.log"].map(read);
        (read("fio.json"), read("fio.txt"), logs)
    };
    let one = run("one", "7");
    assert_eq!(one, run("two", "7"));
    assert_ne!(one, run("three", "8"));
    let log = String::from_utf8(one.2[0].clone()).unwrap();
    let fields: Vec<Vec<u64>> = log
        .lines()
        .map(|line| {
            line.split(", ")
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    assert!(
        fields.iter().all(|line| line.len() == 5 && line[2] <= 1),
        "{log}"
    );
    assert!(fields.iter().any(|line| line[3] == 65_536), "sizes vary");
}

#[test]
fn amounts_are_exact() {
    let scratch = Scratch::new("amounts");
    scratch.write("all.fio", ALL_KINDS);
    let result = scratch.json(&small("all.fio"));
    let bytes = |name: &str, direction: &str| job(&result, name)[direction]["io_bytes"].clone();
    let capacity = 48 << 20;
    assert_eq!(bytes("fill", "write"), 4 * capacity);
    assert_eq!(job(&result, "shared")["write"]["total_ios"], 1_500);
    assert_eq!(bytes("soft", "write"), 2 * (capacity - (16 << 10)));
    let soft = job(&result, "soft");
    assert_eq!(soft["write"]["total_ios"], 2);
    // 192 writes of 2.825 ms (four pages on each die, transfers hidden behind
    // programs) and pauses of 50 us between them.
    let mean = soft["write"]["clat_ns"]["mean"].as_f64().unwrap();
    assert!(
        (mean - (192.0 * 2.825e6 + 191.0 * 50e3)).abs() < 5e6,
        "{mean}"
    );
    let written = job(&result, "trim")["zonelab"]["operations"]["reset"].as_u64();
    assert!(
        written >= Some(6),
        "{written:?}: every zone with data, once"
    );
    assert_eq!(
        job(&result, "trim")["trim"]["io_bytes"],
        written.unwrap() * (64 << 20)
    );
}

const ON_ONE: &[&str] = &["--device", "confznspp"];

/// A job file, options, the exit code, and what is said.
const EXITS: &[(&str, &[&str], i32, &str)] = &[
    ("[a]\nrw=write\nnumber_ios=5\n", ON_ONE, 0, ""),
    ("[a]\nrw=write\n", &[], 2, "--device PROFILE"),
    (
        "[a]\nrw=write\n",
        &["--device", "tcp://host/drive"],
        2,
        "no NVMe qualified name",
    ),
    (
        "[a]\nrw=write\n",
        &["--device", "confznspp?clock=fast"],
        2,
        "confznspp?clock=real",
    ),
    ("[a]\nrw=write\n", &["--device", "confznsp"], 3, "confznsp"),
    (
        "[a]\nrw=read\ntime_based\n",
        ON_ONE,
        3,
        "job.fio:3: time_based: without runtime",
    ),
    (
        "[a]\nrw=write\n\nruntme=5\n",
        ON_ONE,
        3,
        "job.fio:4: unknown option `runtme`; did you mean `runtime`?",
    ),
    (
        "[a]\nsize=1m\n",
        ON_ONE,
        3,
        "job.fio:2: size: no whole zone",
    ),
    (
        "[a]\nbs=1000\n",
        ON_ONE,
        3,
        "no multiple of the logical block",
    ),
    ("[a]\noffset=99z\n", ON_ONE, 3, "the device has 48 zones"),
    ("[a]\nverify_state_load=1\n", ON_ONE, 3, "not supported"),
    (
        "[a]\nbs=${NOT_SET}\n",
        &["--parse-only"],
        3,
        "needs a value",
    ),
    (
        "[a]\nbs=${NOT_SET}\n",
        &["--parse-only"],
        3,
        "job.fio:2: the environment has no variable NOT_SET",
    ),
    (
        "[a]\nrw=read\ndirect=1\n",
        &["--parse-only"],
        0,
        "job.fio:3: direct: has no meaning",
    ),
    ("[a]\nrw=randread\nsize=1z\n", ON_ONE, 0, "--full-zones"),
];

#[test]
fn exit_codes_say_what_went_wrong() {
    let scratch = Scratch::new("exit");
    for (text, args, code, says) in EXITS {
        scratch.write("job.fio", text);
        let output = scratch.fio(&[&["job.fio"], *args].concat());
        let stderr = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(*code),
            "{text}{args:?}: {stderr}"
        );
        assert!(stderr.contains(says), "{text}{args:?}: {stderr}");
    }
}

#[test]
fn jobs_do_not_ask_for_more_open_zones_than_there_are() {
    let scratch = Scratch::new("limits");
    scratch.write(
        "job.fio",
        "[wide]\nrw=write\nbs=4k\nsize=1z\noffset_increment=1z\nnumjobs=300\nnumber_ios=10\n\
         zone_append=1\ngroup_reporting\n",
    );
    // 128 zones can be written in part, and none becomes full: the other jobs
    // wait for one, and end when nobody is left to give one back.
    let result = scratch.json(&["job.fio", "--device", "small-zones"]);
    assert_eq!(result["jobs"][0]["zonelab"]["threads"], 300);
    assert_eq!(result["jobs"][0]["write"]["total_ios"], 1_280);
    assert_eq!(result["jobs"][0]["error"], 0);
}

/// A device names a namespace, whose zones and limits are the jobs'.
#[test]
fn jobs_run_on_the_namespace_that_the_device_names() {
    let scratch = Scratch::new("nsid");
    let job = "[fill]\nzonemode=zbd\nrw=write\nbs=64k\nsize=4z\nio_size=1m\n";
    scratch.write("job.fio", job);
    let divided = ["--set", "namespaces=[{zones=44}, {zones=4}]"];
    let run = |device: &str| {
        let args = [&["job.fio", "--device", device], &divided[..]].concat();
        scratch.json(&args)
    };
    let first = run("confznspp?nsid=1");
    // Zones 0 to 3 of both lie alike on the flash, so it takes as long.
    let second = run("confznspp?nsid=2");
    assert_eq!(second["jobs"][0]["write"]["total_ios"], 16);
    assert_eq!(first["jobs"], second["jobs"]);
    for (device, said) in [
        ("confznspp", "it has 2 namespaces"),
        ("confznspp?nsid=3", "there is no namespace 3"),
        ("confznspp?nsid=x", "a namespace is a number"),
        ("confznspp?size=3", "is unknown behind a profile"),
    ] {
        let args = [&["job.fio", "--device", device], &divided[..]].concat();
        let output = scratch.fio(&args);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
