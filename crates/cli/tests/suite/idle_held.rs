//! What `check` says before of zones that hold something, or not, and what `run` says after.

use super::idle::{stdout, warnings};
use super::scratch::{Scratch, stderr};

/// Zones of which some hold nothing, or half of what they could, and finishes of full ones.
const HELD: &str = r#"
schema = 1
id = "held"
title = "Zones that hold something, or not"
profile = "confznspp"
drive = ["zones.size=16MiB", "zones.capacity=16MiB"]

[host]
submit = "1us"

[[job]]
name = "read"
work = "read"
zones = "0..=3"
block = "16KiB"
operations = 2000

[[job]]
name = "reset"
work = "reset"
zones = "0..=3"

[[job]]
name = "finish"
work = "finish"
zones = "0..=3"

[[job]]
name = "half"
work = "write"
zones = "0..=3"
block = "64KiB"
bytes = "40MiB"

[[job]]
name = "full"
work = "write"
zones = "0..=3"
block = "64KiB"

[[job]]
name = "open"
work = "open"
zones = "0..=3"
open_first = true

[[series]]
name = "three of four"
full_zones = "0..=2"
phases = [["read"], ["reset"]]

[[series]]
name = "two and a half"
phases = [["half"], ["read"], ["finish"], ["finish"]]

[[series]]
name = "empty again"
phases = [["full"], ["reset"], ["reset"]]

[[series]]
name = "sound"
phases = [["full"], ["read"], ["reset"]]

[[series]]
name = "opened"
jobs = ["open"]
"#;

/// The lines of warnings by series and job, with the shares of operations that did nothing.
fn shares(text: &str) -> Vec<(String, String, Vec<f64>)> {
    let said = warnings(text).into_iter();
    let share = |said: &str| {
        let mut words = said.split('"');
        let (series, job) = (words.nth(1).unwrap(), words.nth(1).unwrap());
        let said = words.next().unwrap();
        let before = said.split_once('%').map_or("100", |(before, _)| before);
        let numbers = before
            .split([' ', ':'])
            .filter_map(|word| word.parse().ok());
        let numbers: Vec<f64> = numbers.collect();
        let most = numbers.last().copied().unwrap_or(100.0);
        let least = numbers.first().copied().unwrap_or(100.0);
        (series.to_owned(), job.to_owned(), vec![least, most])
    };
    let mut all: Vec<_> = said.map(share).collect();
    all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    all
}

/// What `run` says after, `check` says before: the same jobs, and nearly the same shares.
#[test]
fn check_knows_what_zones_hold_that_are_not_all_full_or_empty() {
    let scratch = Scratch::new("idle-held");
    scratch.write("held.toml", HELD);
    let before = shares(&stdout(&scratch.zonelab(&["check", "held.toml"])));
    let output = scratch.zonelab(&["run", "held.toml", "--out", "out"]);
    stdout(&output);
    let after = shares(&stderr(&output));
    let named = |of: &[(String, String, Vec<f64>)]| {
        let names = of.iter().map(|(series, job, _)| format!("{series}: {job}"));
        names.collect::<Vec<_>>()
    };
    let expected = [
        "empty again: reset",
        "opened: open",
        "three of four: read",
        "three of four: reset",
        "two and a half: finish",
        "two and a half: read",
    ];
    assert_eq!(named(&before), expected);
    assert_eq!(named(&after), expected);
    let percents: Vec<_> = before.iter().map(|(_, _, shares)| shares.clone()).collect();
    let quarter = vec![25.0, 25.0];
    let (read, all) = (vec![37.5, 37.5], vec![100.0, 100.0]);
    let (finish, reset) = (vec![50.0, 100.0], vec![0.0, 100.0]);
    assert_eq!(
        percents,
        [reset, all, quarter.clone(), quarter, finish, read]
    );
    for ((series, job, before), (_, _, after)) in before.iter().zip(&after) {
        if series == "empty again" {
            // The phase that does something is none of which the run says it.
            continue;
        }
        for (before, after) in before.iter().zip(after) {
            assert!(
                (before - after).abs() < 4.0,
                "{series}, {job}: {before} and {after} %"
            );
        }
    }
}
