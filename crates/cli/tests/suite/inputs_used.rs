//! Every value that a user brings is used, or named with its line; units are looked at.

use std::path::Path;

use super::scratch::{Scratch, stderr};

/// Writers at two depths beside a table of the user's.
const EXPERIMENT: &str = r#"
schema = 1
id = "beside"
title = "Writers"
profile = "confznspp"
reference = "mine.csv"

[axis]
name = "depth"
values = [1, 16]

[[job]]
name = "write"
work = "write"
zones = "0..=15"
threads = "$x"
block = "16KiB"
runtime = "20ms"
repeat = true

[[series]]
name = "alone"
jobs = ["write"]

[[compare]]
job = "write"
metrics = ["kiops", "lat_mean_us", "lat_p95_us"]
"#;

/// What `zonelab ARGS...` says of a table, and its exit code. Lines are put together.
fn said(scratch: &Scratch, args: &[&str], table: &str) -> (Option<i32>, String) {
    scratch.write("mine.csv", table);
    let output = scratch.zonelab(args);
    let text = stderr(&output);
    // So short a run has samples that are not of all of its threads.
    let lines = text.lines().filter(|line| !line.contains("by count it is"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    (output.status.code(), words.join(" "))
}

const RUN: [&str; 5] = ["run", "beside.toml", "--force", "--out=out", "--quiet"];

#[test]
fn what_a_reference_table_has_and_an_experiment_does_not_use_is_named() {
    let scratch = Scratch::new("left");
    scratch.write("beside.toml", EXPERIMENT);
    let check = ["check", "beside.toml"];
    for args in [&RUN[..], &check] {
        // A column that nothing knows.
        for (header, hint) in [("lat_p95", "`lat_p95_us`"), ("mean", "")] {
            let table = format!("series,x,kiops,{header}\nalone,1,5,200\nalone,16,9,300\n");
            let (code, text) = said(&scratch, args, &table);
            assert_eq!(code, Some(3), "{text}");
            let says = format!(
                "mine.csv:1: column `{header}`: no metric and no key has this name, and 2 values"
            );
            assert!(text.contains(&says) && text.contains(hint), "{text}");
        }
        // One that says that it is for people.
        scratch.write(
            "beside.toml",
            &EXPERIMENT.replace(
                "reference = \"mine.csv\"",
                "reference = { file = \"mine.csv\", labels = [\"day\"] }",
            ),
        );
        let (code, text) = said(&scratch, args, "series,x,kiops,day\nalone,1,5,Monday\n");
        assert_eq!((code, text.contains("warning")), (Some(0), false), "{text}");
        scratch.write("beside.toml", EXPERIMENT);
        // A row that matches no point, and a column that nothing compares.
        let table = "series,x,kiops,lat_p99_us\nalone,1,5,200\nalone,17,9,\n";
        let (code, text) = said(&scratch, args, table);
        assert_eq!(code, Some(0), "{text}");
        for says in [
            "mine.csv:3: the row matches no point (series = alone, x = 17), so that its 1 values \
             are not used; x is one of 1, 16 (did you mean 16?)",
            "mine.csv: 1 values of `lat_p99_us` are not used, since nothing compares them: line 2",
        ] {
            assert!(text.contains(says), "{text}");
        }
    }
    // Points that the command leaves out are no mistake, and said.
    let fewer = [&RUN[..], &["--set", "axis.values=[1]"]].concat();
    let (code, text) = said(&scratch, &fewer, "series,x,kiops\nalone,1,5\nalone,16,9\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("1 values are of points that are not run"),
        "{text}"
    );
    assert!(!text.contains("matches no point"), "{text}");
    // A value in the file itself.
    let point = "  [[series.point]]\n  x = 1\n  metric = \"lat_p99_us\"\n  value = 3\n";
    let text = EXPERIMENT.replace("[[compare]]", &format!("{point}\n[[compare]]"));
    scratch.write("beside.toml", &text);
    let (_, text) = said(&scratch, &RUN, "series,x,kiops\nalone,1,5\n");
    let says = "series \"alone\": the published lat_p99_us = 3 at x = 1 is not used";
    assert!(text.contains(says), "{text}");
}

#[test]
fn a_value_in_another_unit_is_refused_or_named() {
    let scratch = Scratch::new("units");
    scratch.write("beside.toml", EXPERIMENT);
    // What the drive does.
    let (code, text) = said(&scratch, &RUN, "series,x,kiops\nalone,1,\n");
    assert_eq!(code, Some(0), "{text}");
    let points = scratch.read("out/points.csv");
    let of = |metric: &str| -> f64 {
        let has = |line: &&str| line.contains(&format!(",1.0,1,write,{metric},"));
        let line = points.lines().find(has).unwrap();
        line.rsplit(',').next().unwrap().parse().unwrap()
    };
    let (kiops, mean, p95) = (of("kiops"), of("lat_mean_us"), of("lat_p95_us"));
    let table = |kiops: f64, mean: Option<f64>, p95: Option<f64>| {
        let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let (mean, p95) = (text(mean), text(p95));
        format!("series,x,kiops,lat_mean_us,lat_p95_us\nalone,1,{kiops},{mean},{p95}\n")
    };
    let sound = table(kiops, Some(mean), Some(p95));
    let (code, text) = said(&scratch, &RUN, &sound);
    assert_eq!((code, text.contains("warning")), (Some(0), false), "{text}");
    // Two that contradict each other are known before anything is run.
    for table in [
        table(kiops * 1e3, Some(mean), None),
        table(kiops, Some(mean * 1e3), None),
        table(kiops, Some(mean / 1e3), None),
        table(kiops / 1e3, Some(mean), None),
        table(kiops, Some(mean), Some(p95 * 1e3)),
    ] {
        let (code, text) = said(&scratch, &RUN, &table);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("mine.csv:2: column `"), "{text}");
        assert!(text.contains("is in another unit"), "{text}");
    }
    // One by itself is known beside ours.
    for (table, column, unit) in [
        (table(kiops * 1e3, None, None), "kiops", "IOPS"),
        (table(kiops, None, Some(p95 * 1e3)), "lat_p95_us", "ns"),
        (table(kiops, None, Some(p95 / 1e3)), "lat_p95_us", "ms"),
    ] {
        let (_, text) = said(&scratch, &RUN, &table);
        let says = format!("mine.csv:2: 1 of 1 values of `{column}` look like {unit},");
        assert!(text.contains(&says), "{text}");
        let report = scratch.read("out/report.html");
        assert!(report.contains("look like"), "{says}");
    }
}

/// The experiment with published values of its own: lines of `[[series.point]]`.
fn with_points(points: &[&str]) -> String {
    let table = |lines: &&str| format!("  [[series.point]]\n  x = 1\n  {lines}\n\n");
    let points: String = points.iter().map(table).collect();
    let text = EXPERIMENT.replace("reference = \"mine.csv\"\n", "");
    text.replace("[[compare]]", &format!("{points}[[compare]]"))
}

#[test]
fn published_values_in_the_file_are_looked_at_as_those_of_tables() {
    let scratch = Scratch::new("points");
    let refused = |points: &[&str], says: &str| {
        scratch.write("beside.toml", &with_points(points));
        for args in [&RUN[..], &["check", "beside.toml"]] {
            let (code, text) = said(&scratch, args, "");
            assert_eq!(code, Some(3), "{points:?}: {text}");
            assert!(text.contains(says), "{text}");
        }
    };
    let one = "metric = \"lat_mean_us\"\n  value = 70";
    refused(
        &[&format!("{one}\n  low = 80\n  high = 60")],
        "the least of the repeats",
    );
    refused(
        &[&format!("{one}\n  high = 60")],
        "the greatest of the repeats",
    );
    refused(
        &[one, "metric = \"lat_mean_us\"\n  value = 75"],
        "beside.toml: lines 27, 32 answer to series \"alone\", lat_mean_us at 1; one row may",
    );
    refused(
        &["metric = \"lat_mean_us\"\n  value = -70"],
        "beside.toml:27: column `lat_mean_us`: -70 is no possible value",
    );
    refused(
        &[&format!("{one}\n  low = -70")],
        "beside.toml:27: column `lat_mean_us`: -70 is no possible value",
    );
    // One that looks like another unit has its place.
    scratch.write(
        "beside.toml",
        &with_points(&["metric = \"lat_mean_us\"\n  value = 725000"]),
    );
    let (_, text) = said(&scratch, &RUN, "");
    let says = "beside.toml:27: 1 of 1 values of `lat_mean_us` look like ns, and are taken for us";
    assert!(text.contains(says), "{text}");
}

#[test]
fn a_value_is_named_as_it_stands_in_the_file() {
    let scratch = Scratch::new("as-stated");
    let stated = "reference = { file = \"mine.csv\", unit = { kiops = \"IOPS\", lat_mean_us = \
                  \"ms\" } }";
    let text = EXPERIMENT.replace("reference = \"mine.csv\"", stated);
    scratch.write("beside.toml", &text);
    // In KIOPS, and in seconds.
    let (_, text) = said(&scratch, &RUN, "series,x,kiops,lat_mean_us\nalone,1,1.4,\n");
    let says =
        "1 values of `kiops` look like KIOPS, and are taken for IOPS of kiops: here 1.4, and";
    assert!(text.contains(says), "{text}");
    let (_, text) = said(
        &scratch,
        &RUN,
        "series,x,kiops,lat_mean_us\nalone,1,,0.000725\n",
    );
    let says = "look like s, and are taken for ms of lat_mean_us: here 0.000725, and ours is";
    assert!(text.contains(says), "{text}");
    let (code, text) = said(
        &scratch,
        &RUN,
        "series,x,kiops,lat_mean_us\nalone,1,1400.1,71\n",
    );
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("71 ms at 1400.1 IOPS would be"), "{text}");
    // A unit of nothing, a table of nothing, and a metric twice.
    let (code, text) = said(&scratch, &RUN, "series,x,kiops\nalone,1,1400\n");
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("unit names lat_mean_us, which has no column here"),
        "{text}"
    );
    scratch.write("beside.toml", EXPERIMENT);
    let (_, text) = said(&scratch, &RUN, "series,x,kiops\n");
    assert!(
        text.contains("mine.csv: it has a header and no rows"),
        "{text}"
    );
    let twice = EXPERIMENT.replace("[\"kiops\", ", "[\"kiops\", \"kiops\", ");
    scratch.write("beside.toml", &twice);
    let (code, text) = said(&scratch, &["check", "beside.toml"], "");
    assert_eq!(
        (code, text.contains("\"kiops\" is there already")),
        (Some(3), true),
        "{text}"
    );
}

fn example(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/calibrate");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

const FIT: [&str; 10] = [
    "calibrate",
    "--data=data",
    "--start=guess.toml",
    "--experiments=experiment.toml",
    "--free=media.read",
    "--out=out.toml",
    "--max-evaluations=2",
    "--folds=0",
    "--force",
    "--quiet",
];

/// Calibrates with a table: what is said, and the exit code.
fn fitted(scratch: &Scratch, table: &str, more: &[&str]) -> (Option<i32>, String) {
    scratch.write("data/points.csv", table);
    let output = scratch.zonelab(&[&FIT[..], more].concat());
    let text = stderr(&output);
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}

#[test]
fn what_a_calibration_does_not_fit_is_named() {
    let scratch = Scratch::new("fit-left");
    std::fs::create_dir(scratch.0.join("data")).unwrap();
    for file in ["guess.toml", "experiment.toml"] {
        scratch.write(file, &example(file));
    }
    let table = example("data/points.csv");
    for (column, other) in [("lat_p95_us", "lat_p95"), ("kiops", "kops")] {
        let (code, text) = fitted(&scratch, &table.replacen(column, other, 1), &[]);
        assert_eq!(code, Some(3), "{text}");
        let says = format!(
            "data/points.csv:1: column `{other}`: no metric and no key has this name, and 20 values"
        );
        let hint = format!("did you mean `{column}`?");
        assert!(text.contains(&says) && text.contains(&hint), "{text}");
    }
    let (code, text) = fitted(&scratch, &table, &["--coarse"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("15 values are at points that a coarse calibration leaves out"),
        "{text}"
    );
    assert!(!text.contains("operations in flight"), "{text}");
    // A mean that is not of the same run as the throughput.
    let row = |line: &str| -> String {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if cells[1] == "1" {
            let mean: f64 = cells[3].parse().unwrap();
            cells[3] = (mean * 1.9).to_string();
        }
        cells.join(",") + "\n"
    };
    let (_, text) = fitted(
        &scratch,
        &table.lines().map(row).collect::<String>(),
        &["--coarse"],
    );
    assert!(
        text.contains("1.9 operations in flight, and the experiment has 1"),
        "{text}"
    );
    // Beside it, what nobody asked for.
    scratch.write("data/other.csv", "a,b\n1,2\n");
    scratch.write("data/reads.fio", "[a]\nrw=read\n");
    scratch.write("data/notes.txt", "hello");
    let (code, text) = fitted(
        &scratch,
        &table.replacen("appends,16,", "appends,17,", 1),
        &["--coarse"],
    );
    assert_eq!(code, Some(0), "{text}");
    for says in [
        "data/points.csv:4: the row matches no point (series = appends, depth = 17), so that its 3 \
         values are not used",
        "data/other.csv: no experiment says what its 1 rows mean",
        "data/reads.fio: there are no results of these jobs",
        "data/notes.txt: only .csv, .json and .fio are read",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    // A column in another unit that nothing contradicts.
    let mut lines = table.lines();
    let mut nanoseconds = format!("{}\n", lines.next().unwrap());
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let p95: f64 = cells[4].parse().unwrap();
        nanoseconds += &format!("{},{},,,{}\n", cells[0], cells[1], p95 * 1e3);
    }
    let output = scratch.zonelab(&[&FIT[..], &["--coarse"]].concat());
    assert!(output.status.success());
    scratch.write("data/points.csv", &nanoseconds);
    let output = scratch.zonelab(&[&FIT[..], &["--coarse"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(text.contains("look like ns"), "{text}");
}
