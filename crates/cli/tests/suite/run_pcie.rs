//! Experiments through the driver for PCIe: `via = "pcie"` and `--device PROFILE?via=pcie`.

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// Jobs of every kind on a drive that draws nothing by chance, on a host with costs.
const FILE: &str = r#"
schema = 1
id = "both-ways"
title = "The same jobs, directly and through the driver"
profile = "confznspp"
drive = ["zones.capacity=16MiB", "zones.size=16MiB"]

[axis]
name = "threads"
values = [1, 3]

[host]
stack = "io_uring-passthrough"
jitter = "300ns"

[[job]]
name = "write"
work = "write"
zones = "0..=5"
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
queue_depth = 8
block = "16KiB"
operations = 100

[[job]]
name = "read"
work = "read"
zones = "14..=15"
block = "16KiB"
operations = 500

  [job.host]
  stack = "psync"

[[series]]
name = "phases"
phases = [["write", "finish"], ["reset"]]

[[series]]
name = "beside"
jobs = ["shared", "read"]
full_zones = "14..=15"
"#;

fn points(scratch: &Scratch, args: &[&str]) -> Value {
    let output = scratch.zonelab(&[&["run"], args, &["--out", "out", "--force"]].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let mut points: Value = serde_json::from_str(&scratch.read("out/points.json")).unwrap();
    for point in points["points"].as_array_mut().unwrap() {
        for job in point["jobs"].as_array_mut().unwrap() {
            // What commands found to do crosses no wire.
            let metrics = job["metrics"].as_object_mut().unwrap();
            for share in ["nothing_share", "buffered_share"] {
                metrics.remove(share);
            }
        }
    }
    points
}

#[test]
fn the_driver_gives_the_same_results_with_the_same_costs() {
    let scratch = Scratch::new("run-pcie");
    scratch.write("direct.toml", FILE);
    let with_via = FILE.replace("[host]\n", "[host]\nvia = \"pcie\"\n");
    scratch.write("pcie.toml", &with_via);
    let direct = points(&scratch, &["direct.toml"]);
    let by_file = points(&scratch, &["pcie.toml"]);
    let by_device = points(&scratch, &["direct.toml", "--device", "confznspp?via=pcie"]);
    assert_eq!(direct["points"].as_array().map(Vec::len), Some(4));
    assert_eq!(by_file["points"], direct["points"]);
    assert_eq!(by_device["points"], direct["points"]);
    let via = |of: &Value| of["configuration"][0]["points"][0]["via"].clone();
    assert_eq!(via(&direct), Value::Null);
    assert_eq!(
        (via(&by_file), via(&by_device)),
        ("pcie".into(), "pcie".into())
    );
    // A series may go its own way.
    let own = with_via.replace(
        "name = \"beside\"\n",
        "name = \"beside\"\nvia = \"direct\"\n",
    );
    scratch.write("own.toml", &own);
    let own = points(&scratch, &["own.toml"]);
    let ways = own["configuration"][0]["points"]
        .as_array()
        .unwrap()
        .clone();
    let ways: Vec<_> = ways.iter().map(|of| of["via"].as_str()).collect();
    assert_eq!(ways, [Some("pcie"), None, Some("pcie"), None]);
    assert_eq!(own["points"], direct["points"]);
}

/// A finish page by page of nearly a whole zone takes longer than the driver gives a command
/// of a real drive.
#[test]
fn operations_that_take_long_are_waited_for() {
    let scratch = Scratch::new("run-pcie-long");
    let text = FILE
        .replace("zones.capacity=16MiB", "finish.granularity=16KiB")
        .replace("zones.size=16MiB", "zones.count=48")
        .replace("fill = \"25%\"", "fill = \"16KiB\"");
    scratch.write("long.toml", &text);
    let args = [
        "long.toml",
        "--set",
        "series.0.phases=[[\"finish\"]]",
        "--set",
        "axis.values=[1]",
    ];
    let direct = points(&scratch, &args);
    let device = ["--device", "confznspp?via=pcie"];
    let over_pcie = points(&scratch, &[&args[..], &device].concat());
    assert_eq!(over_pcie["points"], direct["points"]);
    let longest = &direct["points"][0]["jobs"][0]["metrics"]["lat_max_us"];
    assert!(longest.as_f64().unwrap() > 40e6, "{longest}");
}

/// The trace names queues as the drive numbers them there.
#[test]
fn a_trace_through_the_driver_has_the_names_of_the_jobs() {
    let scratch = Scratch::new("run-pcie-trace");
    let text = FILE.replace("[host]\n", "[host]\nvia = \"pcie\"\n");
    scratch.write("pcie.toml", &text);
    let args = [
        "run",
        "pcie.toml",
        "--trace",
        "--trace-point",
        "beside,3",
        "--uncompressed",
        "--out",
        "out",
    ];
    let output = scratch.zonelab(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let files = std::fs::read_dir(scratch.0.join("out/traces")).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let path = paths.find(|path| path.extension().is_some_and(|end| end == "pftrace"));
    let trace = std::fs::read(path.unwrap()).unwrap();
    for name in ["shared 1", "shared 3", "read"] {
        let has = trace.windows(name.len()).any(|of| of == name.as_bytes());
        assert!(has, "there is no queue of \"{name}\"");
    }
}

#[test]
fn what_the_driver_does_not_do_is_refused_by_name() {
    let scratch = Scratch::new("run-pcie-refused");
    let refused = |edit: (&str, &str), args: &[&str], words: &[&str]| {
        assert!(FILE.contains(edit.0), "{}", edit.0);
        scratch.write("file.toml", &FILE.replace(edit.0, edit.1));
        let output = scratch.zonelab(&[&["run", "file.toml"], args].concat());
        assert!(!output.status.success(), "{edit:?}");
        for word in words {
            assert!(
                stderr(&output).contains(word),
                "{word}: {}",
                stderr(&output)
            );
        }
    };
    let via = ["--device", "confznspp?via=pcie"];
    let scheduler = ("[host]\n", "[host]\nscheduler = \"mq-deadline\"\n");
    refused(scheduler, &via, &["via = \"pcie\"", "host.scheduler="]);
    let threads = ("values = [1, 3]", "values = [1, 64]");
    let edit = ["65 threads", "\"finish\"", "64 queues"];
    refused(threads, &via, &edit);
    let depth = ("queue_depth = 8", "queue_depth = 1025");
    refused(depth, &via, &["queue_depth = 1025", "\"shared\"", "1024"]);
    let unknown = ("[host]\n", "[host]\nvia = \"usb\"\n");
    refused(unknown, &[], &["via", "\"direct\", \"pcie\" or \"ftl\""]);
    let same = ("[host]\n", "[host]\n");
    let real = ["--device", "confznspp?via=pcie&clock=real"];
    refused(same, &real, &["via=pcie is for virtual time so far"]);
}

/// Listing 4.1 of the thesis, in nvme-cli's words, byte for byte: zones that are full, open
/// and empty, from a drive of the size of the thesis's.
#[test]
fn zones_are_reported_as_nvme_cli_does() {
    let scratch = Scratch::new("report-zones");
    let listen = ["--listen", "127.0.0.1:0", "--json", "--no-timing"];
    let serve = scratch.command(&[&["serve", "zn540-2tb"], &listen[..]].concat());
    let served = super::store::Served::start(serve);
    let nvme = |args: &[&str]| {
        let url = served.url();
        let output = scratch.zonelab(&[&["nvme"], args, &["--device", &url]].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    nvme(&["zns", "finish-zone", "--zone", "0"]);
    let blocks = scratch.write("blocks", &"x".repeat(20 * 4096));
    nvme(&["zns", "zone-append", "--zone", "1", "--data", &blocks]);
    let report = nvme(&["zns", "report-zones"]);
    let first: String = report.split_inclusive('\n').take(6).collect();
    let expected = "\
nr_zones: 1905
SLBA: 0x0        WP: 0x43500    Cap: 0x43500    State: FULL         Type: SEQWRITE_REQ   Attrs: 0x0
SLBA: 0x80000    WP: 0x80014    Cap: 0x43500    State: IMP_OPENED   Type: SEQWRITE_REQ   Attrs: 0x0
SLBA: 0x100000   WP: 0x100000   Cap: 0x43500    State: EMPTY        Type: SEQWRITE_REQ   Attrs: 0x0
SLBA: 0x180000   WP: 0x180000   Cap: 0x43500    State: EMPTY        Type: SEQWRITE_REQ   Attrs: 0x0
SLBA: 0x200000   WP: 0x200000   Cap: 0x43500    State: EMPTY        Type: SEQWRITE_REQ   Attrs: 0x0
";
    assert_eq!(first, expected);
    assert_eq!(report.lines().count(), 1 + 1905);
}
