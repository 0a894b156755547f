//! Repeats from the command line: what is written and shown.

use super::scratch::{Scratch, stderr};

/// Random reads beside each other, on a host that jitters.
const EXPERIMENT: &str = r#"
schema = 1
id = "again"
title = "Readers"
profile = "confznspp"
[axis]
name = "readers"
values = [1, 2]
[host]
jitter = "5us"
[[job]]
name = "read"
work = "read"
threads = "$x"
zones = "0..=7"
block = "16KiB"
operations = 200
[[series]]
name = "as it is"
full_zones = "0..=7"
jobs = ["read"]
[[series]]
name = "slower flash"
full_zones = "0..=7"
drive = ["media.read=90us"]
jobs = ["read"]
[[compare]]
job = "read"
metrics = ["kiops", "lat_mean_us"]
[[difference]]
series = "slower flash"
baseline = "as it is"
job = "read"
metrics = ["lat_mean_us"]
[figure]
job = "read"
x = "axis"
y = "lat_mean_us"
"#;

/// Reads take as many milliseconds longer as the axis says.
const FAULTS: &str = r#"
[faults]
[[faults.fault]]
on = "read"
effect = "delay"
delay = "${x}ms"
[host]"#;

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or(f64::NAN)
}

#[test]
fn means_intervals_and_each_repeat_are_exported() {
    let scratch = Scratch::new("repeats");
    let file = scratch.write("again.toml", EXPERIMENT);
    let run = |out: &str, more: &[&str]| {
        let args = [&["run", &file, "--out", out], more].concat();
        let output = scratch.zonelab(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let page = run("out", &["--repeats", "5", "--threads", "2"]);
    run("one", &["--set", "repeats=5", "--threads", "1"]);
    for name in [
        "rows.csv",
        "rows.json",
        "points.csv",
        "repeats.csv",
        "differences.csv",
        "again.svg",
    ] {
        assert_eq!(
            scratch.read(&format!("out/{name}")),
            scratch.read(&format!("one/{name}")),
            "{name}"
        );
    }
    assert!(page.contains(" ± "), "{page}");
    assert!(
        page.contains("differences between series, paired by seed"),
        "{page}"
    );
    assert!(
        page.lines()
            .any(|line| line.contains("slower flash") && line.contains("higher"))
    );

    // The mean of a point is that of its repeats.
    let points = scratch.read("out/points.csv");
    let repeats = scratch.read("out/repeats.csv");
    let head = "experiment,series,x,x_label,job,metric,unit,value,\
                repeats,mean,ci_low,ci_high,sd,min,max,batches";
    assert_eq!(points.lines().next(), Some(head));
    let of = "again,as it is,2.0,2,read,lat_mean_us,us,";
    let point = points
        .lines()
        .find_map(|line| line.strip_prefix(of))
        .unwrap();
    let cells: Vec<f64> = point.split(',').map(number).collect();
    let each: Vec<f64> = repeats
        .lines()
        .filter_map(|line| line.strip_prefix(of))
        .map(|line| number(line.rsplit(',').next().unwrap_or_default()))
        .collect();
    assert_eq!((each.len(), cells[1]), (5, 5.0));
    let mean = each.iter().sum::<f64>() / 5.0;
    assert!((cells[0] - mean).abs() < 1e-4 * mean, "{cells:?} {each:?}");
    assert!(
        cells[3] < mean && mean < cells[4] && cells[6] < cells[7],
        "{cells:?}"
    );

    // The report has bands, differences and the command that gives the same.
    let report = scratch.read("out/report.html");
    for part in [
        "\"band\":[",
        "class=\"differences\"",
        "<strong>higher</strong>",
        "--repeats 5",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let json: serde_json::Value = serde_json::from_str(&scratch.read("out/rows.json")).unwrap();
    assert_eq!(json["differences"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["rows"][0]["repeats"], 5);
}

/// A built-in experiment that runs once writes what it always wrote.
#[test]
fn one_repeat_is_none() {
    let scratch = Scratch::new("once");
    for (out, more) in [("plain", &[][..]), ("once", &["--repeats", "1"])] {
        let args = [&["reproduce", "C9a", "--quick", "--out", out], more].concat();
        let output = scratch.zonelab(&args);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{}",
            stderr(&output)
        );
    }
    let names = std::fs::read_dir(scratch.0.join("plain")).unwrap();
    let mut count = 0;
    for name in names {
        let name = name.unwrap().file_name().into_string().unwrap();
        let bytes = |out: &str| std::fs::read(scratch.0.join(out).join(&name)).unwrap();
        assert!(bytes("plain") == bytes("once"), "{name}");
        count += 1;
    }
    assert!(count > 5);
    assert!(!scratch.0.join("once/repeats.csv").exists());
}

/// Values of axes from the command line, in settings of the drive and in plans of faults.
#[test]
fn settings_of_the_drive_and_faults_vary_with_axes() {
    let scratch = Scratch::new("varied");
    let text = EXPERIMENT.replace("[host]", FAULTS);
    let file = scratch.write("again.toml", &text);
    let latency = |out: &str, more: &[&str]| -> Vec<f64> {
        let output = scratch.zonelab(&[&["run", &file, "--out", out], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let points = scratch.read(&format!("{out}/points.csv"));
        let own = points
            .lines()
            .filter(|line| line.contains("as it is") && line.contains("lat_min_us"));
        own.map(|line| number(line.rsplit(',').next().unwrap_or_default()))
            .collect()
    };
    let delayed = latency("delayed", &[]);
    let shift = delayed[1] - delayed[0];
    assert!(
        (950.0..1050.0).contains(&shift),
        "{delayed:?}: a millisecond more at 2"
    );
    let plain = latency("plain", &["--set", "faults="]);
    assert!(plain.iter().all(|us| *us < 900.0), "{plain:?}");
    let slower = latency(
        "slower",
        &["--set", "faults=", "--set", "drive.media.read=${x}00us"],
    );
    assert!(
        (95.0..105.0).contains(&(slower[1] - slower[0])),
        "{slower:?}"
    );
    scratch.write(
        "plan.toml",
        "[[fault]]\non = \"read\"\neffect = \"delay\"\ndelay = \"$readers\"\n",
    );
    let wrong = ["run", &file, "--faults", "plan.toml"];
    let output = scratch.zonelab(&wrong);
    assert_eq!(output.status.code(), Some(3));
    scratch.write(
        "plan.toml",
        "[[fault]]\non = \"read\"\neffect = \"delay\"\ndelay = \"${x}0ms\"\n",
    );
    let planned = latency("planned", &["--faults", "plan.toml"]);
    assert!(
        (9_900.0..10_100.0).contains(&(planned[1] - planned[0])),
        "{planned:?}"
    );
    let output = scratch.zonelab(&["run", &file, "--set", "drive.media.read=$radeers"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("nothing is called \"$radeers\""),
        "{}",
        stderr(&output)
    );
}
