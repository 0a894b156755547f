//! Experiments through the flash translation layer: `via = "ftl"` and
//! `--device PROFILE?via=ftl`.

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// A drive of 24 zones of 2 MiB that is written three times over.
const FILE: &str = r#"
schema = 1
id = "layer"
title = "Random writes through the layer"
profile = "confznspp"
drive = ["zones.count=24", "zones.capacity=2MiB", "zones.size=2MiB", "geometry.pages_per_block=4"]

[axis]
name = "spare"
values = ["10%", "40%"]

[host]
stack = "io_uring-passthrough"
via = "ftl"

[ftl]
spare = "$x"
reserved_zones = 6

[[job]]
name = "fill"
work = "write"
blocks = "0%..100%"
random = false
passes = 1
block = "128KiB"

[[job]]
name = "write"
work = "write"
blocks = "0%..100%"
distribution = "hot:20%:80%"
threads = 2
queue_depth = 4
passes = 3
block = "4KiB"

[[job]]
name = "read"
work = "read"
blocks = "50%..100%"
threads = 2
queue_depth = 4
operations = 500

[[series]]
name = "greedy"
phases = [["fill"], ["write"], ["read"]]

[[series]]
name = "fifo"
phases = [["fill"], ["write"], ["read"]]

  [series.ftl]
  victims = "fifo"
  placement = "append"
  collect_below = 4
"#;

fn points(scratch: &Scratch, args: &[&str]) -> Value {
    let output = scratch.zonelab(&[&["run"], args, &["--out", "out", "--force"]].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&scratch.read("out/points.json")).unwrap()
}

/// The metrics of a job of a point.
fn metrics<'a>(points: &'a Value, series: &str, x: &str, job: &str) -> &'a Value {
    let points = points["points"].as_array().unwrap();
    let of = |point: &&Value| point["series"] == series && point["x_label"] == x;
    let point = points.iter().find(of).expect("there is such a point");
    let jobs = point["jobs"].as_array().unwrap();
    let job = jobs.iter().find(|of| of["name"] == job);
    &job.expect("there is such a job")["metrics"]
}

fn number(metrics: &Value, name: &str) -> f64 {
    let value = metrics[name].as_f64();
    value.unwrap_or_else(|| panic!("{name}: {metrics}"))
}

/// What the layer says of itself fits what jobs wrote, and what the drive programmed.
#[test]
fn metrics_of_the_layer_are_consistent() {
    let scratch = Scratch::new("run-ftl");
    scratch.write("layer.toml", FILE);
    let points = points(&scratch, &["layer.toml"]);
    for series in ["greedy", "fifo"] {
        for x in ["10%", "40%"] {
            let fill = metrics(&points, series, x, "fill");
            assert_eq!(fill["ftl_moved_blocks"], 0.0, "{fill}");
            assert_eq!(fill["ftl_write_amp"], 1.0, "{fill}");
            let write = metrics(&points, series, x, "write");
            let (host, moved) = (
                number(write, "ftl_host_blocks"),
                number(write, "ftl_moved_blocks"),
            );
            // Three passes of two threads, each of whole operations.
            let filled = number(fill, "ftl_host_blocks");
            assert!(
                (host - 3.0 * filled).abs() <= 3.0 * 32.0,
                "{host} of {filled}"
            );
            // What is in flight when the last operation is issued is not measured.
            let unmeasured = host - number(write, "ops");
            assert!((0.0..=8.0).contains(&unmeasured), "{write}");
            let amplification = number(write, "ftl_write_amp");
            assert!(
                (amplification - (host + moved) / host).abs() < 1e-4,
                "{write}"
            );
            assert!(
                moved > 0.0 && number(write, "ftl_collected_zones") > 0.0,
                "{write}"
            );
            let total = number(write, "ftl_total_write_amp");
            assert!(total > amplification, "metadata count: {write}");
            // Flash is programmed in whole pages, of which some writes fill a part.
            assert!(number(write, "flash_write_amp") >= total, "{write}");
            let read = metrics(&points, series, x, "read");
            assert!(
                read["ftl_write_amp"].is_null(),
                "nothing was written: {read}"
            );
            assert!((992.0..=1000.0).contains(&number(read, "ops")), "{read}");
        }
        let amplification = |x| number(metrics(&points, series, x, "write"), "ftl_write_amp");
        assert!(
            amplification("10%") > amplification("40%"),
            "more spare, less to move"
        );
    }
    let settings = &points["configuration"][0]["points"];
    let of = |series: &str| {
        let points = settings.as_array().unwrap().iter();
        let mut points = points.filter(|point| point["series"] == series);
        points.next().unwrap().clone()
    };
    assert_eq!(of("greedy")["via"], "ftl");
    assert_eq!(
        of("greedy")["ftl"],
        serde_json::json!({ "spare": "10%", "reserved_zones": "6" })
    );
    assert_eq!(of("fifo")["ftl"]["victims"], "fifo");
}

/// Runs are repeatable, in any order; another seed draws other blocks.
#[test]
fn runs_through_the_layer_are_repeatable() {
    let scratch = Scratch::new("run-ftl-again");
    scratch.write(
        "layer.toml",
        &FILE.replace("\"fifo\"\n  pl", "\"d-choices:2\"\n  pl"),
    );
    let first = points(&scratch, &["layer.toml", "--threads", "1"]);
    let again = points(&scratch, &["layer.toml", "--threads", "2"]);
    assert_eq!(first["points"], again["points"]);
    let other = points(&scratch, &["layer.toml", "--seed", "5"]);
    assert_ne!(first["points"], other["points"]);
}

/// A device by name goes the same way as the file, and one job of one thread costs what
/// its host does.
#[test]
fn a_device_is_named_with_the_layer() {
    let scratch = Scratch::new("run-ftl-device");
    let direct = FILE
        .replace("threads = 2", "threads = 1")
        .replace("via = \"ftl\"\n", "")
        .replace("[ftl]\nspare = \"$x\"\nreserved_zones = 6\n", "")
        .replace(
            "\n  [series.ftl]\n  victims = \"fifo\"\n  placement = \"append\"\n  collect_below = 4\n",
            "",
        );
    scratch.write("direct.toml", &direct);
    let args = ["direct.toml", "--device", "confznspp?via=ftl"];
    let by_device = points(&scratch, &args);
    let write = metrics(&by_device, "greedy", "10%", "write");
    assert!(number(write, "ftl_write_amp") > 1.0, "{write}");
    let output = scratch.zonelab(&["run", "direct.toml"]);
    assert!(!output.status.success());
    let says = stderr(&output);
    for word in ["job \"fill\"", "is zoned", "via = \"ftl\""] {
        assert!(says.contains(word), "{word}: {says}");
    }
}

/// What does not go with the layer, and settings that are none, are refused by key.
#[test]
fn what_the_layer_does_not_do_is_refused_by_name() {
    let scratch = Scratch::new("run-ftl-refused");
    let refused = |edit: (&str, &str), args: &[&str], words: &[&str]| {
        assert!(FILE.contains(edit.0), "{}", edit.0);
        scratch.write("file.toml", &FILE.replace(edit.0, edit.1));
        let output = scratch.zonelab(&[&["run", "file.toml"], args].concat());
        assert!(!output.status.success(), "{edit:?}");
        let says = stderr(&output);
        for word in words {
            assert!(says.contains(word), "{word}: {says}");
        }
    };
    let ftl = |setting: &'static str| ("reserved_zones = 6", setting);
    refused(
        ftl("placement = \"appends\""),
        &[],
        &[
            "ftl.placement",
            "\"appends\"",
            "write, append or shared-append",
        ],
    );
    refused(
        ftl("victims = \"d-choices:0\""),
        &[],
        &["ftl.victims", "\"d-choices:0\"", "windowed-greedy:N"],
    );
    refused(ftl("spares = \"7%\""), &[], &["ftl.spares", "spare"]);
    refused(ftl("reserved_zones = 2"), &[], &["ftl.reserved_zones", "4"]);
    refused(
        ftl("reserved_zones = 30"),
        &[],
        &["reserved_zones = 30", "must be 4 to"],
    );
    refused(
        ftl("reserved_zones = 6\ncollect_below = 9"),
        &[],
        &["collect_below = 9", "must be 3 to 5"],
    );
    refused(("\"10%\"", "\"0.5%\""), &[], &["ftl.spare"]);
    let direct = ("via = \"ftl\"", "via = \"direct\"");
    refused(direct, &[], &["go through the layer", "via = \"ftl\""]);
    let own = ("name = \"fifo\"\n", "name = \"fifo\"\nvia = \"direct\"\n");
    refused(own, &[], &["series.1.ftl", "via = \"ftl\""]);
    let full = (
        "name = \"fifo\"\n",
        "name = \"fifo\"\nfull_zones = \"0..=3\"\n",
    );
    refused(full, &[], &["via = \"ftl\"", "full_zones"]);
    let scheduler = ("[host]\n", "[host]\nscheduler = \"mq-deadline\"\n");
    refused(scheduler, &[], &["via = \"ftl\"", "host.scheduler="]);
    let zones = ("blocks = \"50%..100%\"", "zones = \"0..=3\"");
    refused(
        zones,
        &[],
        &["job \"read\"", "conventional", "blocks = \"0%..100%\""],
    );
    let both = (
        "blocks = \"50%..100%\"",
        "blocks = \"50%..100%\"\nzones = \"0..=3\"",
    );
    refused(both, &[], &["job.2.zones", "either `zones`, or `blocks`"]);
    let part = ("\"50%..100%\"", "\"50%..20%\"");
    refused(part, &[], &["job.2.blocks", "\"0%..25%\""]);
    let drawn = ("\"hot:20%:80%\"", "\"hot:100%:80%\"");
    refused(drawn, &[], &["job.1.distribution", "zipf:0.99"]);
    let ordered = (
        "distribution = \"hot:20%:80%\"",
        "random = false\ndistribution = \"uniform\"",
    );
    refused(ordered, &[], &["job.1.distribution", "random = true"]);
    let threads = (
        "threads = 2\nqueue_depth = 4\npasses",
        "threads = 9\nqueue_depth = 4\npasses",
    );
    refused(
        threads,
        &[],
        &["via = \"ftl\"", "3 queues", "shared-append"],
    );
    let endless = ("passes = 3\n", "");
    refused(endless, &[], &["job \"write\" never ends"]);
    let same = ("[host]\n", "[host]\n");
    let real = ["--device", "confznspp?via=ftl&clock=real"];
    refused(same, &real, &["via=ftl is for virtual time so far"]);
}
