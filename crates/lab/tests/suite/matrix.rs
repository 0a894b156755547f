//! `[matrix]`: what it stands for, what it measures, and why.

use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::matrix::{self, Matrix};
use zonelab_lab::run::{self, RunOptions};

use super::support::{SMALL, Tiny, overrides, problems, with};

/// Writes and reads beside finishes and reads, on two dies.
const MATRIX: &str = r#"schema = 1
id = "m"
title = "Everything beside everything"
profile = "tiny"

[axis]
name = "depth"
values = [1, 2]

[matrix]
alpha = "30%"
explain_for = "10ms"

[[matrix.foreground]]
name = "read"
work = "read"
zones = "0..=1"
full_zones = "0..=1"
block = "16KiB"
queue_depth = "$x"
runtime = "20ms"
ends_run = true

[[matrix.foreground]]
name = "append"
levels = [2]
work = "append"
zones = "2..=3"
block = "16KiB"
queue_depth = "$x"
repeat = true
runtime = "20ms"
ends_run = true

[[matrix.background]]
name = "read"
work = "read"
zones = "4..=5"
full_zones = "4..=5"
block = "16KiB"

[[matrix.background]]
name = "finish"
work = "finish"
zones = "6..=7"
fill = "16KiB"

[[matrix.cell]]
foreground = "read"
background = "finish"
published = 1.17

[[matrix.cell]]
foreground = "append"
background = "read"
skip = true
"#;

/// The matrix of a text, with everything that it takes.
fn matrix_of(file: &str, text: &str, settings: &[&str], threads: usize) -> Matrix {
    let settings = overrides(settings);
    let points = run::points(file, text, &settings).expect("it is sound");
    let experiment = Experiment::parse(file, text, &settings, None).expect("it is sound");
    let conditions = Conditions::default();
    let options = RunOptions {
        seed: 1,
        profiles: &Tiny,
        conditions: &conditions,
        on_point: &|_, _| {},
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads start").install(|| {
        let results = run::run(&points, &options).expect("they can be run");
        let results: Vec<_> = results.into_iter().flatten().collect();
        let why = matrix::explain(&points, &options).expect("they can be run");
        Matrix::of(&experiment, &results, &why).expect("it has a matrix")
    })
}

#[test]
fn a_matrix_stands_for_series_and_their_interference() {
    let points = run::points("m.toml", MATRIX, &[]).expect("it is sound");
    let names: Vec<_> = points
        .iter()
        .map(|point| (point.x().text.as_str(), point.series()))
        .collect();
    let reads = ["read alone", "read on read", "finish on read"];
    let appends = ["append alone", "finish on append"];
    let at = |x: &'static str, series: &[&'static str]| -> Vec<_> {
        series.iter().map(|series| (x, *series)).collect()
    };
    let expected = [at("1", &reads), at("2", &reads), at("2", &appends)].concat();
    assert_eq!(names, expected);
    let pairs = &points[0].experiment().interference;
    let published: Vec<_> = pairs.iter().map(|pair| pair.published).collect();
    assert_eq!(published, [None, Some(1.17), None]);
    assert!(pairs.iter().all(|pair| (pair.alpha - 0.3).abs() < 1e-9));
}

#[test]
fn what_is_wrong_with_a_matrix_is_said() {
    let cases = [
        (
            "foreground = \"append\"\nbackground = \"read\"",
            "foreground = \"append\"\nbackground = \"reed\"",
            "there is no \"reed\"; did you mean \"read\"?",
        ),
        (
            "foreground = \"append\"\nbackground = \"read\"",
            "foreground = \"read\"\nbackground = \"finish\"",
            "\"finish on read\" is there already",
        ),
        (
            "name = \"append\"\n",
            "name = \"read\"\n",
            "\"read\" is there already; names must differ",
        ),
        ("alpha = \"30%\"", "alpha = \"130%\"", "matrix.alpha"),
        ("explain_for = \"10ms\"", "explain = \"10ms\"", "explain"),
        (
            "explain_for = \"10ms\"",
            "explain_for = \"0s\"",
            "small.toml:12: matrix.explain_for: nothing is recorded in no time; more than 0s",
        ),
        (
            "published = 1.17",
            "published = -1.17",
            "matrix.cell.0.published: -1.17 is no M^Inter",
        ),
        (
            "levels = [2]",
            "levels = [3]",
            "small.toml:26: matrix.foreground.1.levels: there is no \"3\"; choose one of: 1, 2",
        ),
        // What is beside runs at the levels of what it is beside.
        (
            "fill = \"16KiB\"",
            "fill = \"16KiB\"\nlevels = [2]",
            "matrix.background.1.levels: unknown key `levels`",
        ),
    ];
    for (line, other, said) in cases {
        let found = problems(&with(MATRIX, line, other), &[]);
        assert!(found.contains(said), "{found}");
    }
    let none = MATRIX.replace("matrix.background", "matrix.behind");
    assert!(
        problems(&none, &[]).contains("matrix.background"),
        "{}",
        problems(&none, &[])
    );
}

#[test]
fn cells_are_the_mean_of_their_levels_and_say_why() {
    let matrix = matrix_of("m.toml", MATRIX, &[], 2);
    assert_eq!(matrix.cells.len(), 3, "one is left out");
    let levels: Vec<usize> = matrix.cells.iter().map(|cell| cell.levels.len()).collect();
    assert_eq!(levels, [2, 2, 1]);
    for cell in &matrix.cells {
        let mean =
            cell.levels.iter().map(|level| level.distance).sum::<f64>() / cell.levels.len() as f64;
        let m = cell.m_inter.expect("it was measured");
        assert!((m - mean).abs() <= 1e-5 * mean, "{m} is not {mean}");
        let why = cell.explanation.as_ref().expect("it was recorded");
        assert_eq!(why.x, "2", "the last level");
        // Parts are all of the change, and each is rounded to six digits.
        let sum: f64 = why.parts.iter().map(|part| part.by_us).sum();
        let change = why.beside_us - why.alone_us;
        assert!((sum - change).abs() < 0.05, "{sum} is not {change}");
    }
    let finish = matrix.cell("read", "finish").expect("it is there");
    assert_eq!(finish.published, Some(1.17));
    let why = finish.explanation.as_ref().expect("it was recorded");
    assert!(
        why.text
            .starts_with("waits for dies: programs of finish fills, +"),
        "{}",
        why.text
    );
    let reads = matrix.cell("read", "read").expect("it is there");
    let why = reads.explanation.as_ref().expect("it was recorded");
    assert!(why.text.contains("reads"), "{}", why.text);
    assert!(finish.m_inter > reads.m_inter);
}

#[test]
fn threads_do_not_matter_and_every_form_has_every_cell() {
    let matrix = matrix_of("m.toml", MATRIX, &[], 1);
    assert_eq!(matrix, matrix_of("m.toml", MATRIX, &[], 3));
    assert_eq!(matrix.to_csv().lines().count(), 1 + 3);
    let json: serde_json::Value = serde_json::from_str(&matrix.to_json()).expect("it is JSON");
    assert_eq!(json["matrix"]["cells"][1]["published"], 1.17);
    assert_eq!(json["matrix"]["beta"], 0.7);
    let svg = matrix.heat_map().to_svg();
    assert_eq!(svg.matches("<title>").count(), 3);
    assert!(svg.contains("paper 1.17"));
}

#[test]
fn an_experiment_without_a_matrix_has_none() {
    let experiment = Experiment::parse("small.toml", SMALL, &[], None).expect("it is sound");
    assert_eq!(Matrix::of(&experiment, &[], &[]), None);
}

/// A write buffer: what a write waits for is room, and what the dies do meanwhile.
#[test]
fn buffered_writes_wait_for_room() {
    let text = library::example("interference-matrix").expect("it is built in");
    let settings = [
        "axis.values=[4000]",
        "drive=[\"write_buffer.mode=write-back\", \"write_buffer.size=256KiB\"]",
        "matrix.foreground.0.runtime=300ms",
        "matrix.foreground.1.runtime=300ms",
        "matrix.foreground.2.runtime=300ms",
        "matrix.explain_for=200ms",
    ];
    let matrix = matrix_of("example.toml", text, &settings, 2);
    let cell = matrix.cell("write", "finish").expect("it is there");
    let why = cell.explanation.as_ref().expect("it was recorded");
    let said = "room in the write buffer, dies busy with programs of finish fills, +";
    assert!(why.text.contains(said), "{}", why.text);
}
