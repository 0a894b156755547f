//! `docs/results.md` beside what is written.

use std::collections::BTreeSet;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

const DOCUMENT: &str = include_str!("../../../../docs/results.md");

/// Two points of a drive far from what was published, a statement that does not
/// hold, and one that does.
pub(crate) const EXPERIMENT: &str = r#"
schema = 1
id = "small"
title = "Writers"
kind = "D"
profile = "confznspp"
[axis]
name = "concurrency"
values = [1, 3]
[[job]]
name = "write"
work = "write"
threads = "$x"
zones = "0..=14"
block = "16KiB"
runtime = "1s"
[[series]]
name = "alone"
jobs = ["write"]
  [[series.point]]
  x = 1
  metric = "kiops"
  value = 100
  [[series.point]]
  x = 1
  metric = "lat_p95_us"
  value = 100000
[[compare]]
job = "write"
metrics = ["kiops", "lat_p95_us"]
[[series]]
name = "again"
jobs = ["write"]
[[difference]]
series = "again"
baseline = "alone"
job = "write"
metrics = ["kiops"]
[[check]]
says = "three writers are slower than one"
smaller = { series = "alone", x = 3, job = "write", metric = "kiops" }
larger = { series = "alone", x = 1, job = "write", metric = "kiops" }
[[check]]
says = "one writer writes"
value = { series = "alone", x = 1, job = "write", metric = "kiops" }
at_least = 0.1
"#;

/// The table of a file: names, and whether they may be absent.
fn documented(file: &str) -> Vec<(String, bool)> {
    below(&format!("\n## `{file}`\n"))
}

/// The table below a heading.
fn below(heading: &str) -> Vec<(String, bool)> {
    let file = heading.trim();
    let (_, section) = DOCUMENT.split_once(heading).expect(file);
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter_map(|line| line.strip_prefix("| `"));
    lines
        .map(|line| {
            let (name, rest) = line.split_once("` |").expect("a name and its meaning");
            (name.to_owned(), rest.contains("absent"))
        })
        .collect()
}

/// The paths of a value; what is null or empty ends there.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                paths(value, &format!("{path}{dot}{key}"), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                paths(value, &format!("{path}[]"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn is_documented_as(path: &str, name: &str) -> bool {
    match name.strip_suffix('…') {
        Some(start) => path.starts_with(start),
        None => path == name,
    }
}

#[test]
fn every_column_and_key_is_documented() {
    let scratch = Scratch::new("documented");
    let file = scratch.write("small.toml", EXPERIMENT);
    let output = scratch.zonelab(&["run", &file, "--out", "out"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let real = ["--device", "confznspp?clock=real", "--out", "real"];
    let output = scratch.zonelab(&[&["run", &file], &real[..]].concat());
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{}", stderr(&output));
    let read_of = |out: &str, name: &str| scratch.read(&format!("{out}/{name}"));
    let again = ["run", &file, "--repeats", "2", "--out", "again"];
    let output = scratch.zonelab(&again);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let columns = |out: &str, name: &str| -> Vec<String> {
        let text = read_of(out, name);
        let head = text.lines().next().unwrap_or_default().split(',');
        head.map(str::to_owned).collect()
    };
    let names = |table: Vec<(String, bool)>| -> Vec<String> {
        table.into_iter().map(|(name, _)| name).collect()
    };
    let of_repeats = names(below("\n## With repeats\n"));
    for name in ["rows.csv", "points.csv"] {
        let own = names(documented(name));
        assert_eq!(columns("out", name), own, "{name}");
        assert_eq!(
            columns("again", name),
            [own, of_repeats.clone()].concat(),
            "{name}"
        );
    }
    for name in ["repeats.csv", "differences.csv"] {
        assert_eq!(columns("again", name), names(documented(name)), "{name}");
    }
    for name in ["rows.json", "points.json", "manifest.json", "host.json"] {
        let mut found = BTreeSet::new();
        // A file of its own, in real time only.
        let usual = if name == "host.json" { "real" } else { "out" };
        let read = |name: &str| read_of(usual, name);
        paths(&serde_json::from_str(&read(name)).unwrap(), "", &mut found);
        let names = documented(name);
        let mut in_real_time = BTreeSet::new();
        let value = serde_json::from_str(&read_of("real", name)).unwrap();
        paths(&value, "", &mut in_real_time);
        if usual == "out" {
            let value = serde_json::from_str(&read_of("again", name)).unwrap();
            paths(&value, "", &mut in_real_time);
        }
        for path in found.union(&in_real_time) {
            // Of what is null or empty, what is below is not there.
            let below = [format!("{path}."), format!("{path}[]")];
            let known = names.iter().any(|(name, _)| {
                is_documented_as(path, name) || below.iter().any(|below| name.starts_with(below))
            });
            assert!(known, "{name}: {path} is not documented");
        }
        for (key, may_be_absent) in names.iter() {
            let is_there = found.iter().any(|path| is_documented_as(path, key));
            assert!(
                is_there || *may_be_absent,
                "{name}: {key} is documented and not written"
            );
        }
        assert!(!read(name).contains("Some("), "{name} has text of Rust");
    }
}

/// A join of the two tables finds each compared point.
#[test]
fn x_is_the_same_in_rows_and_points() {
    let scratch = Scratch::new("documented-x");
    let file = scratch.write("small.toml", EXPERIMENT);
    scratch.zonelab(&["run", &file, "--out", "out"]);
    let column = |name: &str, column: &str| -> BTreeSet<String> {
        let text = std::fs::read_to_string(scratch.0.join("out").join(name)).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let at = lines
            .next()
            .and_then(|head| head.iter().position(|name| *name == column));
        let at = at.expect("the column is there");
        let cells = lines.map(|cells| cells[at].to_owned());
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    for name in ["x", "x_label"] {
        assert_eq!(
            column("rows.csv", name),
            column("points.csv", name),
            "{name}"
        );
    }
}
