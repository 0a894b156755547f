//! A tiny drive and an experiment on it.

use zonelab_config::{Errors, Override};
use zonelab_lab::compare;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::published::References;
use zonelab_lab::rows::{self, Misfits, Row, Scope, Summary};
use zonelab_lab::run::{self, Point, PointResult, Profiles, RunError, RunOptions};
use zonelab_ssd::profile::Profile;

use super::tiny::TINY;

/// Random reads, alone and beside resets in random order, on a host that jitters:
/// everything that a seed decides.
pub(crate) const SMALL: &str = r#"schema = 1
id = "small"
title = "Reads beside resets"
profile = "tiny"

[axis]
name = "depth"
values = [1, 2, 4]

[host]
submit = "2us"
complete = "3us"
jitter = "1us"
start_spread = "50us"

[[job]]
name = "read"
work = "read"
zones = "0..=3"
block = "16KiB"
queue_depth = "$x"
runtime = "20ms"
ends_run = true

[[job]]
name = "reset"
work = "reset"
zones = "4..=7"
fill = "16KiB"
shuffled = true
rate_ops = 300

[[series]]
name = "alone"
full_zones = "0..=3"
jobs = ["read"]

[[series]]
name = "beside resets"
full_zones = "0..=3"
jobs = ["read", "reset"]

[[compare]]
job = "read"
metrics = ["kiops", "lat_p95_us"]

[[interference]]
series = "beside resets"
isolated = "alone"
job = "read"

[[check]]
says = "resets do not make reads faster"
smaller = { series = "beside resets", x = 4, job = "read", metric = "kiops" }
larger = { series = "alone", x = 4, job = "read", metric = "kiops" }

[figure]
job = "read"
x = "kiops"
y = "lat_p95_us"
"#;

/// Knows the tiny drive, besides those that are built in.
pub(crate) struct Tiny;

impl Profiles for Tiny {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        if name == "tiny" {
            return Profile::parse("tiny.toml", TINY, overrides);
        }
        Profile::load(name, overrides, |_| {
            Err::<String, _>("there are no files here")
        })
    }
}

/// The experiment of a text, with settings changed.
pub(crate) fn overrides(settings: &[&str]) -> Vec<Override> {
    settings
        .iter()
        .map(|text| text.parse().expect("a setting"))
        .collect()
}

/// The experiment of a text as it stands, before an axis value is put in.
pub(crate) fn parse(text: &str) -> Experiment {
    Experiment::parse("small.toml", text, &[], None).expect("a sound experiment")
}

/// The points of a text.
pub(crate) fn points(text: &str, settings: &[&str]) -> Result<Vec<Point>, Errors> {
    run::points("small.toml", text, &overrides(settings))
}

/// Everything that is wrong with a text, as a user sees it.
pub(crate) fn problems(text: &str, settings: &[&str]) -> String {
    points(text, settings).map_or_else(|errors| errors.to_string(), |_| "nothing".to_owned())
}

/// `text` with one line of it replaced; it must be there, once.
pub(crate) fn with(text: &str, line: &str, other: &str) -> String {
    assert_eq!(text.matches(line).count(), 1, "{line}");
    text.replace(line, other)
}

/// Runs the points of a text on that many threads.
pub(crate) fn run(text: &str, seed: u64, threads: usize) -> Result<Vec<PointResult>, RunError> {
    let points = points(text, &[])?;
    let options = RunOptions {
        conditions: &Conditions::default(),
        seed,
        profiles: &Tiny,
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    let results = pool.install(|| run::run(&points, &options))?;
    Ok(results
        .into_iter()
        .map(|result| result.expect("nothing interrupts"))
        .collect())
}

/// The rows of a text, run.
pub(crate) fn rows_of(text: &str) -> Vec<Row> {
    let results = run(text, 1, 1).expect("it runs");
    let references = References::builtin().expect("sound tables");
    compare::rows(&parse(text), &results, &references).expect("sound look-ups")
}

/// All that is written of a run, as text.
pub(crate) fn written(text: &str, seed: u64, threads: usize) -> [String; 4] {
    let results = run(text, seed, threads).expect("it runs");
    let experiment = parse(text);
    let references = References::builtin().expect("sound tables");
    let rows = compare::rows(&experiment, &results, &references).expect("sound look-ups");
    let summary = Summary::of(&rows, Scope::PART, &Misfits::default());
    let figure = compare::figure(&experiment, &results, &references).expect("sound look-ups");
    let svg = figure.expect("it has a figure").to_svg();
    [
        rows::to_json(&rows, &summary, seed),
        rows::to_csv(&rows),
        svg,
        format!("{results:#?}"),
    ]
}
