//! A strict reader of Prometheus' text format, version 0.0.4, written from its
//! description: names, types, HELP and TYPE before samples, one family at a
//! time, escapes, histograms.

use std::collections::{BTreeMap, BTreeSet};

/// Labels in order, without duplicates.
pub(crate) type Labels = BTreeMap<String, String>;

/// All samples by name and labels.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Types of families.
    pub(crate) types: BTreeMap<String, String>,
    /// Values.
    pub(crate) values: BTreeMap<(String, Labels), f64>,
}

impl Samples {
    /// The value of a series.
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let key = (name.to_owned(), labels.iter().map(own).collect());
        self.values.get(&key).copied()
    }

    /// The sum of all series of a name.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        let own = self.values.iter().filter(|((of, _), _)| of == name);
        own.map(|(_, value)| value).sum()
    }

    /// Series that may only grow.
    pub(crate) fn monotone(&self) -> impl Iterator<Item = (&(String, Labels), f64)> {
        self.values.iter().filter_map(|(key, value)| {
            let name = &key.0;
            let is_part = |suffix| {
                let family = name.strip_suffix(suffix);
                family.is_some_and(|family| {
                    self.types.get(family).is_some_and(|of| of == "histogram")
                })
            };
            let is_counter = self.types.get(name).is_some_and(|of| of == "counter");
            let grows = is_counter || ["_bucket", "_sum", "_count"].into_iter().any(is_part);
            grows.then_some((key, *value))
        })
    }
}

fn is_name(text: &str, allows_colon: bool) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || (allows_colon && c == ':');
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// Reads an exposition.
pub(crate) fn read(text: &str) -> Samples {
    assert!(text.ends_with('\n'), "the last line ends");
    let mut samples = Samples::default();
    let (mut helped, mut current) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            assert!(is_name(name, true) && !help.trim().is_empty(), "{line}");
            assert!(helped.insert(name.to_owned()), "{name} has two HELP lines");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(helped.contains(name), "{name}: HELP before TYPE");
            let before = samples.types.insert(name.to_owned(), kind.to_owned());
            assert!(before.is_none(), "{name} has two TYPE lines");
            assert_eq!(
                kind == "counter",
                name.ends_with("_total"),
                "{name}: {kind}"
            );
            name.clone_into(&mut current);
        } else {
            let (name, labels, value) = sample(line);
            let kind = &samples.types[&current];
            let suffixes: &[&str] = match &**kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let is_own = suffixes
                .iter()
                .any(|suffix| name == format!("{current}{suffix}"));
            assert!(is_own, "{line} stands among the samples of {current}");
            assert!(
                kind != "counter" || (value >= 0.0 && value.is_finite()),
                "{line}"
            );
            let before = samples.values.insert((name, labels), value);
            assert!(before.is_none(), "{line} is there twice");
        }
    }
    check_histograms(&samples);
    samples
}

/// `name{label="value",...} number`.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a name and a value");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, true), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label and its value");
            assert!(is_name(label, false), "{line}");
            let (value, after) = unescaped(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = after;
            if let Some(after) = rest.strip_prefix(',') {
                rest = after;
            } else {
                rest = rest.strip_prefix('}').expect("the end of the labels");
                break;
            }
        }
    }
    let number = rest.strip_prefix(' ').expect("a space before the value");
    assert!(!number.contains(' '), "no time stamp: {line}");
    (name.to_owned(), labels, number.parse().expect("a number"))
}

/// A label's value, and what comes after its quote.
fn unescaped(text: &str) -> (String, &str) {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '"'))) => c,
                other => panic!("{other:?} is no escape: {text}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no end: {text}")
}

/// Buckets are cumulative, in order, and end with that of everything.
fn check_histograms(samples: &Samples) {
    let histograms = samples
        .types
        .iter()
        .filter(|(_, kind)| *kind == "histogram");
    for (name, _) in histograms {
        let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        let bucket = format!("{name}_bucket");
        for ((_, labels), value) in samples.values.iter().filter(|((of, _), _)| *of == bucket) {
            let mut labels = labels.clone();
            let le: f64 = labels
                .remove("le")
                .expect("a bound")
                .parse()
                .expect("a number");
            buckets.entry(labels).or_default().push((le, *value));
        }
        for (labels, mut buckets) in buckets {
            buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            assert!(
                buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
                "{name} {labels:?}"
            );
            let of = |suffix: &str| {
                samples
                    .values
                    .get(&(format!("{name}{suffix}"), labels.clone()))
            };
            assert_eq!(
                buckets.last(),
                Some(&(f64::INFINITY, *of("_count").expect("a count")))
            );
            assert!(
                of("_sum").is_some_and(|sum| *sum >= 0.0),
                "{name} {labels:?}"
            );
        }
    }
}

#[test]
fn the_reader_is_strict() {
    let good = "# HELP a_total b\n# TYPE a_total counter\na_total{c=\"d\\\"\\\\\\n\"} 1\n";
    assert_eq!(read(good).get("a_total", &[("c", "d\"\\\n")]), Some(1.0));
    for bad in [
        "a 1\n",
        "# TYPE a gauge\na 1\n",
        "# HELP a b\n# TYPE a gauge\na 1",
        "# HELP a b\n# TYPE a gauge\nb 1\n",
        "# HELP a b\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a b\n# TYPE a counter\na 1\n",
        "# HELP a b\n# TYPE a gauge\na{b=\"c\\d\"} 1\n",
        "# HELP a b\n# TYPE a gauge\na{1=\"c\"} 1\n",
        "# HELP a b\n# TYPE a gauge\na one\n",
        "# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\na_sum 1\n",
    ] {
        assert!(std::panic::catch_unwind(|| read(bad)).is_err(), "{bad}");
    }
}
