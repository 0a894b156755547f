//! What an experiment file can say, from the command line.

use std::collections::BTreeSet;

use super::scratch::{Scratch, stderr};

const DOCUMENT: &str = include_str!("../../../../docs/experiments.md");

/// The example of the document that has this id.
fn example(id: &str) -> &'static str {
    let mut blocks = DOCUMENT.split("```toml\n").skip(1);
    let blocks = blocks.by_ref().filter_map(|block| block.split_once("```"));
    let says = format!("\nid = \"{id}\"\n");
    let mut texts = blocks.map(|(text, _)| text);
    texts.find(|text| text.contains(&says)).expect(id)
}

/// Values of a column of a table of results.
fn column(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv::lines(csv);
    let header = lines.next().unwrap_or_default();
    let at = header.iter().position(|column| column == name).expect(name);
    lines.map(|cells| cells[at].clone()).collect()
}

/// Fields in quotes hold commas: names of repeated series do.
mod csv {
    pub(super) fn lines(text: &str) -> impl Iterator<Item = Vec<String>> {
        text.lines().map(fields)
    }

    fn fields(line: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(String::new()),
                c => fields.last_mut().expect("there is one").push(c),
            }
        }
        fields
    }
}

#[test]
fn the_documented_axes_are_paired_and_crossed() {
    let scratch = Scratch::new("axes");
    let file = scratch.write("readers.toml", example("readers"));
    let checked = scratch.zonelab(&["check", &file]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        said.contains("4 series at 2 values of readers, 8 points"),
        "{said}"
    );
    let output = scratch.zonelab(&["run", &file, "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Nothing is published of these, so that there are no columns for it.
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("P95 us") && !shown.contains("lat_p95_us") && !shown.contains("published"),
        "{shown}"
    );
    let points = scratch.read("out/points.csv");
    let series: BTreeSet<String> = column(&points, "series").into_iter().collect();
    let expected = [
        ("4KiB", "30us"),
        ("4KiB", "60us"),
        ("16KiB", "30us"),
        ("16KiB", "60us"),
    ];
    let expected = expected.map(|(block, read)| format!("reads, block {block}, read {read}"));
    assert_eq!(series, expected.iter().cloned().collect());

    // A read takes the drive as much longer as its setting says.
    let rows = csv::lines(&points).filter(|row| row[5] == "lat_min_us" && row[3] == "1");
    let latencies: Vec<(String, f64)> = rows
        .map(|row| (row[1].clone(), row[7].parse().unwrap()))
        .collect();
    let of = |name: &str| {
        latencies
            .iter()
            .find(|(series, _)| series == name)
            .unwrap()
            .1
    };
    for pair in expected.chunks(2) {
        let longer = of(&pair[1]) - of(&pair[0]);
        assert!((29.0..31.0).contains(&longer), "{pair:?}: {longer} us");
    }
    let figure = scratch.read("out/readers.svg");
    assert!(figure.contains("reads, block 16KiB, read 60us"));

    // The command of the report, and settings of an axis in the list.
    let report = scratch.read("out/report.html");
    let command = "--set 'axis.0.values=[4]' --set 'axis.1.values=[\"2ms\"]'";
    // It stands in data of a script, in JSON.
    let escaped = command.replace('"', "\\\"");
    assert!(report.contains(&escaped), "{escaped}");
    let one = [
        "run",
        &file,
        "--set",
        "axis.0.values=[4]",
        "--set",
        "axis.1.values=[\"2ms\"]",
    ];
    let output = scratch.zonelab(&[&one[..], &["--out", "one"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let all: BTreeSet<&str> = points.lines().collect();
    assert!(
        scratch
            .read("one/points.csv")
            .lines()
            .all(|line| all.contains(line))
    );
}

/// The table of the document.
fn documented_csv() -> &'static str {
    let (_, behind) = DOCUMENT.split_once("```csv\n").expect("a table");
    behind.split_once("```").expect("its end").0
}

#[test]
fn the_documented_reference_is_compared() {
    let scratch = Scratch::new("reference");
    let below = scratch.0.join("below");
    std::fs::create_dir(&below).unwrap();
    let file = scratch.write("below/measured.toml", example("measured"));
    scratch.write("below/measured.csv", documented_csv());
    // Relative to the experiment, and not to where the command is given.
    let output = scratch.zonelab(&["run", &file, "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = scratch.read("out/rows.csv");
    let columns = ["x_label", "metric", "published"].map(|name| column(&rows, name));
    let [x, metric, published] = columns;
    let rows: Vec<_> = x.into_iter().zip(metric).zip(published).collect();
    let row =
        |x: &str, metric: &str, value: &str| ((x.to_owned(), metric.to_owned()), value.to_owned());
    let expected = [
        row("1", "kiops", "1.4"),
        row("1", "lat_mean_us", "710.0"),
        row("3", "kiops", "4.2"),
        row("3", "lat_mean_us", ""),
    ];
    assert_eq!(rows, expected);

    scratch.write(
        "below/measured.csv",
        "setup,writers,iops,mean\nalone,1,1400,fast\n",
    );
    for command in ["run", "check"] {
        let output = scratch.zonelab(&[command, &file]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let says = "measured.csv:2: column `mean`: `fast` is not a number";
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    std::fs::remove_file(below.join("measured.csv")).unwrap();
    let output = scratch.zonelab(&["run", &file]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("measured.csv"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn words_of_an_axis_stand_in_tables() {
    let scratch = Scratch::new("words");
    let text = example("readers")
        .replace("name = \"read\"\nvalues = [\"30us\", \"60us\"]", "name = \"read\"\nvalues = [\"30us\"]")
        .replace("name = \"readers\"                # letters, digits and _, to stand behind a dollar sign\nvalues = [1, 4]", "name = \"stack\"\nvalues = [\"spdk\", \"psync\"]")
        .replace("zip = \"readers\"", "zip = \"stack\"")
        .replace("threads = \"$readers\"", "host = { stack = \"$stack\" }");
    let file = scratch.write("stacks.toml", &text);
    let output = scratch.zonelab(&["run", &file, "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = scratch.read("out/rows.csv");
    let x: BTreeSet<_> = column(&rows, "x")
        .into_iter()
        .zip(column(&rows, "x_label"))
        .collect();
    let expected =
        [("1.0", "spdk"), ("2.0", "psync")].map(|(x, label)| (x.to_owned(), label.to_owned()));
    assert_eq!(x, expected.into());
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = page.lines().filter(|line| line.contains("psync"));
    assert!(lines.count() >= 2, "{page}");
}

#[test]
fn a_name_that_is_no_axis_is_an_error() {
    let scratch = Scratch::new("no-axis");
    let text = example("readers").replace("media.read=$read\"", "media.read=$raed\"");
    let file = scratch.write("readers.toml", &text);
    let output = scratch.zonelab(&["run", &file]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let says = "readers.toml:5: drive.0: nothing is called \"$raed\"; did you mean \"$read\"?";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
}
