//! `zonelab run --device`: experiments in real time on emulated drives and over NVMe/TCP.

use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use zonelab_device::{Buf, Lba, Op};
use zonelab_nvme::zns::ReportFilter;

use super::scratch::{Scratch, stderr};
use super::store::{Served, run};

/// Zones of 16 MiB, for `serve`.
const SMALL: [&str; 4] = ["--set", "zones.capacity=16MiB", "--set", "zones.size=16MiB"];

/// The same, for `run`.
const SMALL_DRIVE: [&str; 4] = [
    "--set",
    "drive.zones.capacity=16MiB",
    "--set",
    "drive.zones.size=16MiB",
];

fn serve(scratch: &Scratch, more: &[&str]) -> Served {
    let listen = ["serve", "confznspp", "--log", "warn", "--json"];
    let at = ["--listen", "127.0.0.1:0", "--no-timing"];
    Served::start(scratch.command(&[&listen[..], &at, more].concat()))
}

fn serve_small(scratch: &Scratch) -> Served {
    serve(scratch, &SMALL)
}

/// Two series of two values; each job ends by its work or its number of operations, and
/// has one operation in flight, so that every one of them is counted.
const BOUNDED: &str = r#"
schema = 1
id = "bounded"
title = "Jobs that end by counts"
profile = "confznspp"

[axis]
name = "threads"
values = [1, 2]

[[job]]
name = "write"
work = "write"
zones = "0..=3"
threads = "$x"
zones_per_thread = 2
block = "64KiB"
operations = 300

[[job]]
name = "finish"
work = "finish"
zones = "8..=9"
fill = "25%"
start = "2ms"

[[job]]
name = "reset"
work = "reset"
zones = "10..=11"
fill = "256KiB"

[[job]]
name = "shared"
work = "append"
zones = "0..=3"
threads = "$x"
shared = true
block = "16KiB"
operations = 100

[[job]]
name = "read"
work = "read"
zones = "4..=5"
block = "16KiB"
operations = 500

[[series]]
name = "phases"
phases = [["write", "finish"], ["reset"]]

[[series]]
name = "beside"
jobs = ["shared", "read"]
full_zones = "4..=5"
"#;

fn json(scratch: &Scratch, file: &str) -> Value {
    serde_json::from_str(&scratch.read(file)).unwrap()
}

/// What each job of each point did that does not depend on how long it took.
fn amounts(points: &Value) -> Vec<(String, String, String, Option<u64>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let points = points["points"].as_array().unwrap();
    let of = |point: &Value| {
        let (series, x) = (text(&point["series"]), text(&point["x_label"]));
        let jobs = point["jobs"].as_array().unwrap().clone();
        jobs.into_iter().map(move |job| {
            let ops = job["metrics"]["ops"].as_f64().map(|ops| ops as u64);
            (series.clone(), x.clone(), text(&job["name"]), ops)
        })
    };
    points.iter().flat_map(of).collect()
}

/// State and blocks of the first zones of a served drive.
fn zones(scratch: &Scratch, served: &Served) -> Vec<String> {
    let args = ["nvme", "zns", "report-zones", "--descs", "12", "--device"];
    let output = scratch.command(&args).arg(served.url()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| line.contains("SLBA:"));
    lines.map(str::to_owned).collect()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

#[test]
fn bounded_experiments_do_as_much_on_any_device() {
    let scratch = Scratch::new("run-devices");
    scratch.write("bounded.toml", BOUNDED);
    let on = |device: &str, out: &str, more: &[&str]| {
        let args = ["run", "bounded.toml", "--device", device, "--out", out];
        succeeds(&scratch.zonelab(&[&args, more].concat()));
        json(&scratch, &format!("{out}/points.json"))
    };
    let in_virtual_time = on("confznspp", "virtual", &SMALL_DRIVE);
    let expected = amounts(&in_virtual_time);
    let ops = |series: &str, x: &str, job: &str| {
        let mut all = expected.iter();
        all.find_map(|(s, v, j, ops)| ((&**s, &**v, &**j) == (series, x, job)).then_some(*ops))
    };
    assert_eq!(expected.len(), 10, "{expected:?}");
    assert_eq!(ops("phases", "2", "write"), Some(Some(600)));
    assert_eq!(ops("phases", "1", "finish"), Some(Some(2)));
    assert_eq!(ops("beside", "2", "shared"), Some(Some(200)));
    assert_eq!(ops("beside", "1", "read"), Some(Some(500)));
    let point = &in_virtual_time["points"][0];
    assert!(point["real"].is_null() && point["drive"]["simulated_ns"].is_u64());

    let in_real_time = on("confznspp?clock=real", "real", &SMALL_DRIVE);
    assert_eq!(amounts(&in_real_time), expected);
    for (point, other) in [0, 1, 2, 3].map(|at| {
        let of = |of: &Value| of["points"][at].clone();
        (of(&in_real_time), of(&in_virtual_time))
    }) {
        let (drive, virtual_drive) = (&point["drive"], &other["drive"]);
        for key in ["host_write_bytes", "host_read_bytes", "finishes", "resets"] {
            assert_eq!(drive[key], virtual_drive[key], "{key}");
        }
        assert!(drive["simulated_ns"].is_null(), "time was real");
        let elapsed_ns = point["real"]["elapsed_ns"].as_u64();
        let simulated_ns = virtual_drive["simulated_ns"].as_u64();
        assert!(
            elapsed_ns > simulated_ns.map(|ns| ns / 2),
            "it takes its time"
        );
        let late = &point["real"]["lateness_ns"];
        assert!(late["N"].as_u64() > Some(0), "it has events");
        assert!(late["percentile"]["50.000000"].as_u64() <= late["max"].as_u64());
    }

    let served = serve_small(&scratch);
    let mut configurations = Vec::new();
    for more in [&[][..], &["--overwrite"]] {
        let over_tcp = on(&served.url(), "tcp", more);
        assert_eq!(amounts(&over_tcp), expected, "{more:?}");
        for point in over_tcp["points"].as_array().unwrap() {
            assert!(point.get("drive").is_none(), "a host does not see it");
            assert!(point["real"]["elapsed_ns"].as_u64() > Some(0));
        }
        let csv = scratch.read("tcp/points.csv");
        for metric in ["dlwa", "erases", "blocks_erased"] {
            assert!(!csv.contains(metric), "{metric}: {csv}");
        }
        assert!(csv.contains("lat_p99_us"));
        assert_eq!(json(&scratch, "tcp/manifest.json")["complete"], true);
        // The last point: its shared zones, those that were filled for it, and those of
        // the series before.
        let zones = zones(&scratch, &served);
        let is = |zone: usize, state: &str| {
            assert!(zones[zone].contains(state), "{zone}: {}", zones[zone]);
        };
        is(0, "IMP_OPENED");
        is(4, "FULL");
        is(5, "FULL");
        is(6, "EMPTY");
        is(8, "FULL");
        is(10, "EMPTY");
        configurations.push(over_tcp["configuration"].clone());
    }
    assert_eq!(configurations[0], configurations[1]);
    let drive = &configurations[0][0]["drives"][0];
    assert_eq!(drive["device"], served.url());
    assert_eq!(drive["namespace_1"]["zones"], 48);
    let report = scratch.read("tcp/report.html");
    assert!(report.contains("--device") && report.contains("elapsed_ns"));
}

/// Another profile in virtual time is another drive than that of the published values;
/// the file's own is the same run as without the option.
#[test]
fn a_profile_as_device_is_the_experiment_on_that_drive() {
    let scratch = Scratch::new("run-profile");
    let file = scratch.write("bounded.toml", BOUNDED);
    let points = |out: &str, more: &[&str]| {
        let args = ["run", &file, "--out", out];
        let output = scratch.zonelab(&[&args, &SMALL_DRIVE[..], more].concat());
        succeeds(&output);
        scratch.read(&format!("{out}/points.csv"))
    };
    let plain = points("plain", &[]);
    assert_eq!(points("same", &["--device", "confznspp"]), plain);
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/confznspp.toml");
    scratch.write("own.toml", &std::fs::read_to_string(profile).unwrap());
    let own = ["--device", "./own.toml", "--set", "drive.media.read=200us"];
    assert_ne!(points("own", &own), plain);
}

#[test]
fn what_zones_hold_is_not_lost_unasked() {
    let scratch = Scratch::new("run-overwrite");
    scratch.write("bounded.toml", BOUNDED);
    scratch.write(
        "job.fio",
        "[a]\nrw=write\nbs=64k\noffset=5z\nsize=1z\nnumber_ios=3\n",
    );
    let served = serve_small(&scratch);
    let url = served.url();
    succeeds(&scratch.zonelab(&["fio", "job.fio", "--device", &url]));
    let before = zones(&scratch, &served);
    let args = ["run", "bounded.toml", "--device", &url, "--out", "out"];
    let output = scratch.zonelab(&args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        &url,
        "--overwrite",
        "zone 5 of namespace 1: 1 of 48 zones",
        "192KiB written",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(zones(&scratch, &served), before);
    assert!(!scratch.0.join("out/points.json").exists());
    succeeds(&scratch.zonelab(&[&args[..], &["--overwrite"]].concat()));
    // What is outside of the experiment's zones is left alone.
    let elsewhere = "[a]\nrw=write\nbs=64k\noffset=20z\nsize=1z\nnumber_ios=3\n";
    scratch.write("job.fio", elsewhere);
    succeeds(&scratch.zonelab(&["fio", "job.fio", "--device", &url]));
    succeeds(&scratch.zonelab(&[&args[..], &["--overwrite"]].concat()));
    let report = scratch.zonelab(&["fio", "job.fio", "--device", &url]);
    assert_eq!(report.status.code(), Some(2), "zone 20 still holds data");
}

/// The files that devices are to refuse.
fn write_refused(scratch: &Scratch) {
    scratch.write("plain.toml", BOUNDED);
    let series = "full_zones = \"4..=5\"";
    let with = |line: &str| BOUNDED.replace(series, &format!("{series}\n{line}"));
    scratch.write("drive.toml", &with("drive = [\"media.read=60us\"]"));
    scratch.write("scheduler.toml", &with("scheduler = \"mq-deadline\""));
    scratch.write("faults.toml", "");
}

/// File, device, further options, exit code, and what is said.
type Refused<'a> = (&'a str, &'a str, &'a [&'a str], i32, &'a [&'a str]);

#[test]
fn what_only_emulated_drives_have_is_refused_by_name() {
    let scratch = Scratch::new("run-refused");
    write_refused(&scratch);
    // Nobody listens there: these are refused before anything is connected.
    let nobody = "tcp://127.0.0.1:1/nqn.2014-08.org.x:y";
    let real = "confznspp?clock=real";
    let cases: [Refused<'_>; 9] = [
        (
            "plain",
            nobody,
            &["--set", "drive.zones.count=4"],
            2,
            &["drive.zones.count=4", "serve --set"],
        ),
        (
            "plain",
            nobody,
            &["--faults", "faults.toml"],
            2,
            &["--faults", "zonelab fault"],
        ),
        (
            "plain",
            nobody,
            &["--restore", "x"],
            2,
            &["--restore", "full_zones"],
        ),
        (
            "plain",
            nobody,
            &["--trace"],
            2,
            &["--trace", "virtual time"],
        ),
        ("plain", real, &["--trace"], 2, &["--trace", "virtual time"]),
        (
            "drive",
            nobody,
            &[],
            2,
            &["series \"beside\"", "media.read=60us", "serve --set"],
        ),
        (
            "scheduler",
            nobody,
            &[],
            2,
            &["series \"beside\"", "scheduler"],
        ),
        (
            "scheduler",
            real,
            &[],
            2,
            &["series \"beside\"", "scheduler"],
        ),
        (
            "plain",
            "confznspp?nsid=2",
            &[],
            2,
            &["there is no namespace 2", "nsid=1: zoned"],
        ),
    ];
    are_refused(&scratch, &cases);
}

#[test]
fn devices_that_are_not_there_are_refused_by_name() {
    let scratch = Scratch::new("run-nobody");
    write_refused(&scratch);
    let nobody = "tcp://127.0.0.1:1/nqn.2014-08.org.x:y";
    let cases: [Refused<'_>; 7] = [
        ("plain", nobody, &[], 5, &["no connection to 127.0.0.1:1"]),
        (
            "plain",
            "tcp://127.0.0.1:1",
            &[],
            2,
            &["zonelab nvme discover"],
        ),
        ("plain", "/dev/nvme0n1", &[], 2, &["linux:///dev/nvme0n1"]),
        (
            "plain",
            "pcie://0000:7f:1f.7",
            &[],
            4,
            &["there is no PCI function 0000:7f:1f.7"],
        ),
        (
            "plain",
            "linux:///dev/null",
            &[],
            4,
            &["/dev/null is no NVMe device"],
        ),
        ("plain", "confznspq", &[], 3, &["confznspq"]),
        ("plain", "confznspp?clock=slow", &[], 2, &["clock=slow"]),
    ];
    are_refused(&scratch, &cases);
}

/// Runs each, and sees that nothing is written.
fn are_refused(scratch: &Scratch, cases: &[Refused<'_>]) {
    for &(file, device, more, code, says) in cases {
        let file = format!("{file}.toml");
        let args = ["run", &file, "--device", device, "--out", "out"];
        let output = scratch.zonelab(&[&args, more].concat());
        let said = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{device} {more:?}: {said}"
        );
        for part in says {
            assert!(said.contains(part), "{device} {more:?}: {part}: {said}");
        }
    }
    assert!(!scratch.0.join("out").exists());
}

/// Costs of the modelled host do not count in real time, which is said once.
#[test]
fn costs_of_the_modelled_host_are_warned_of() {
    let scratch = Scratch::new("run-costs");
    let host = "[host]\nstack = \"io_uring\"\ncores = 2\nslice = \"1ms\"\n\n[axis]";
    scratch.write("costs.toml", &BOUNDED.replace("[axis]", host));
    let served = serve_small(&scratch);
    let url = served.url();
    let output = scratch.zonelab(&["run", "costs.toml", "--device", &url, "--out", "out"]);
    succeeds(&output);
    let said = stderr(&output);
    assert_eq!(said.matches("do not count").count(), 1, "{said}");
    assert!(said.contains("[host], host.cores do not count"), "{said}");
}

#[test]
fn experiments_that_do_not_fit_the_drive_are_refused() {
    let scratch = Scratch::new("run-unfit");
    let many = BOUNDED.replace("values = [1, 2]", "values = [4000]");
    let shared_only = many.replace(
        "name = \"phases\"\nphases = [[\"write\", \"finish\"], [\"reset\"]]",
        "name = \"phases\"\nphases = [[\"finish\"], [\"reset\"]]",
    );
    let deep = BOUNDED.replace("operations = 500", "operations = 500\nqueue_depth = 9");
    let far = BOUNDED.replace("10..=11", "99..=100");
    let full = BOUNDED.replace("full_zones = \"4..=5\"", "full_zones = \"4..=99\"");
    let second = BOUNDED.replace("operations = 500", "operations = 500\nnamespace = 2");
    let served = serve(&scratch, &[&SMALL[..], &["--queue-depth", "8"]].concat());
    let cases: [(&str, &[&str]); 5] = [
        (
            &shared_only,
            &[
                "4001 threads",
                "the last of job \"read\"",
                "grants 16 queues",
            ],
        ),
        (&deep, &["queue_depth = 9 of job \"read\"", "hold 7"]),
        (&far, &["job \"reset\"", "the drive's at 47"]),
        (&full, &["full_zones", "no zone 99", "namespace 1 has 48"]),
        (
            &second,
            &["job \"read\" names namespace 2", "in namespace 1"],
        ),
    ];
    for (text, says) in cases {
        scratch.write("unfit.toml", text);
        let output = scratch.zonelab(&["run", "unfit.toml", "--device", &served.url()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        for part in says {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let before = zones(&scratch, &served);
    assert!(
        before.iter().all(|zone| zone.contains("EMPTY")),
        "{before:?}"
    );
}

/// A series that ends at once, and one that goes on for ten minutes.
const LONG: &str = r#"
schema = 1
id = "long"
title = "A short series and a long one"
profile = "confznspp"

[[job]]
name = "short"
work = "write"
zones = "0..=1"
block = "64KiB"
operations = 100

[[job]]
name = "long"
work = "write"
zones = "4..=7"
block = "64KiB"
repeat = true
runtime = "600s"

[[series]]
name = "first"
jobs = ["short"]

[[series]]
name = "second"
jobs = ["long"]
"#;

/// Waits until a zone of the drive is full.
fn until_one_is_full(served: &Served) {
    let (controller, mut queue) = served.connect();
    let report = Op::ZoneReceive {
        slba: Lba(0),
        filter: ReportFilter::FULL,
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
    drop((queue, controller));
}

fn long(scratch: &Scratch, served: &Served) -> Child {
    scratch.write("long.toml", LONG);
    scratch
        .command(&["run", "long.toml", "--out", "out", "--device"])
        .arg(served.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What was done before the drive went away, or the user ended the run, is there, and
/// marked as a part.
#[test]
fn a_run_that_is_cut_off_leaves_the_points_that_were_done() {
    for is_interrupted in [true, false] {
        let scratch = Scratch::new("run-gone");
        let mut served = serve_small(&scratch);
        let child = long(&scratch, &served);
        until_one_is_full(&served);
        match is_interrupted {
            true => kill_process(Pid::from_child(&child), Signal::INT).unwrap(),
            false => served.process.kill().unwrap(),
        }
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        let code = if is_interrupted { 130 } else { 5 };
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains("point 2 of 2: second 1, at most 600 s to go for measuring, about "),
            "{said}"
        );
        assert!(said.contains("holds"), "{said}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("PARTIAL: 1 of 2 points"), "{text}");
        assert_eq!(json(&scratch, "out/manifest.json")["complete"], false);
        let points = json(&scratch, "out/points.json");
        let jobs = amounts(&points);
        assert_eq!(jobs.len(), 1);
        assert_eq!((&*jobs[0].0, jobs[0].3), ("first", Some(100)));
        assert_eq!(points["lost"].is_string(), !is_interrupted, "{points}");
    }
}

const STORE: &str = r#"
schema = 1
id = "store"
title = "A small store"
profile = "confznspp"

[[job]]
name = "kv"
work = "kv"

  [job.kv]
  workload = "fillrandom"
  operations = 2000

[[series]]
name = "alone"
jobs = ["kv"]
"#;

/// Key-value workloads are jobs in real time, too. What they did to a drive from outside
/// is not known.
#[test]
fn key_value_workloads_run_on_devices() {
    let scratch = Scratch::new("run-store");
    scratch.write("store.toml", STORE);
    let served = serve_small(&scratch);
    let url = served.url();
    let data = ["--set", "drive.data.store=memory"];
    let emulated = [&data[..], &SMALL_DRIVE].concat();
    let cases: [(&str, &[&str]); 2] = [("confznspp?clock=real", &emulated), (&url, &[])];
    for (device, more) in cases {
        let args = [
            "run",
            "store.toml",
            "--device",
            device,
            "--out",
            "out",
            "--force",
        ];
        succeeds(&scratch.zonelab(&[&args, more].concat()));
        let points = json(&scratch, "out/points.json");
        let jobs = amounts(&points);
        assert_eq!((&*jobs[0].2, jobs[0].3), ("kv", Some(2_000)), "{device}");
        let metrics = &points["points"][0]["jobs"][0]["metrics"];
        assert_eq!(metrics["completed_share"], 1.0, "{device}");
        let is_known = device != url;
        assert_eq!(points["points"][0].get("drive").is_some(), is_known);
        for metric in ["zone_resets", "host_write_mib", "erases_max"] {
            assert_eq!(
                metrics.get(metric).is_some(),
                is_known,
                "{device}: {metric}"
            );
        }
        if is_known {
            assert!(metrics["host_write_mib"].as_f64() > Some(0.0), "{metrics}");
        }
    }
}
