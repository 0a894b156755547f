//! Softfinishes in experiment files: keys, refusals, metrics.

use zonelab_lab::experiment::Experiment;

use zonelab_lab::published::References;
use zonelab_lab::run::{self, PointResult};

use super::support::{Tiny, points, problems, run, with};

/// Finishes by the drive and by writes, on the tiny drive with small transfers:
/// of 60 blocks 4 are written before, so that 56 are left, 224 KiB.
const SOFT: &str = r#"schema = 1
id = "small"
title = "Finishes by the drive and by the host"
profile = "tiny"
drive = ["front_end.max_transfer=64KiB"]

[axis]
name = "granularity"
values = ["4KiB", "24KiB", "64KiB"]

[[job]]
name = "device"
work = "finish"
zones = "0..=1"
fill = "16KiB"

[[job]]
name = "host"
work = "finish"
soft = { granularity = "$x", pause = "50us" }
zones = "2..=4"
fill = "16KiB"
fill_block = "16KiB"

[[series]]
name = "both"
phases = [["device"], ["host"]]
"#;

const LEFT: u64 = 56;

fn metric(result: &PointResult, job: &str, metric: &str) -> Option<f64> {
    let job = result.jobs.iter().find(|measured| measured.name == job);
    job.expect("it ran").metrics.get(metric)
}

/// Measured as finishes, whole; told from those of the drive by their link.
#[test]
fn a_softfinish_is_measured_as_a_whole() {
    let results = run(SOFT, 1, 2).expect("it runs");
    for (result, granularity) in results.iter().zip([1, 6, 16]) {
        assert_eq!(metric(result, "device", "ops"), Some(2.0));
        assert_eq!(metric(result, "device", "link_mib_per_op"), Some(0.0));
        assert_eq!(metric(result, "host", "ops"), Some(3.0));
        let link = LEFT as f64 / 256.0;
        assert_eq!(metric(result, "host", "link_mib_per_op"), Some(link));
        let totals = result.drive.as_ref().expect("it is emulated").totals;
        assert_eq!(totals.finishes, 2);
        let (by_device, by_host) = (2 * 4, 3 * 60);
        assert_eq!(totals.host_write_bytes, (by_device + by_host) * 4096);
        // What a write takes varies, as some are parts of pages; pauses do not.
        let pauses = 50.0 * (LEFT.div_ceil(granularity) - 1) as f64;
        let latency = metric(result, "host", "lat_mean_us").expect("three");
        assert!(latency > pauses + 725.0, "{latency} at {granularity}");
    }
    let latency = |n: usize| metric(&results[n], "host", "lat_mean_us").expect("three");
    assert!(latency(0) > latency(1) && latency(1) > latency(2));
}

/// 16 KiB are a page: 14 of them and 13 pauses.
#[test]
fn pages_and_pauses_add_up() {
    let text = SOFT.replace("[\"4KiB\", \"24KiB\", \"64KiB\"]", "[\"16KiB\"]");
    let results = run(&text, 1, 1).expect("it runs");
    let latency = metric(&results[0], "host", "lat_max_us").expect("three");
    assert!(
        (latency - f64::from(14 * 725 + 13 * 50)).abs() < 1e-9,
        "{latency}"
    );
}

/// The point that is refused first, as a user sees it.
fn unfit(text: &str) -> String {
    run(text, 1, 1).expect_err("it does not fit").to_string()
}

/// What the drive does not take is refused with its line and the range, before
/// anything runs.
#[test]
fn a_granularity_that_does_not_fit_names_its_line() {
    let valid = "4KiB to 64KiB, in whole logical blocks of 4096 bytes";
    for (granularity, what) in [
        ("128KiB", "128KiB is out of range"),
        ("68KiB", "68KiB is out of range"),
        ("0B", "0B is out of range"),
        ("6KiB", "6KiB is no multiple of the logical block"),
        ("8192GiB", "8TiB is out of range"),
    ] {
        let text = with(SOFT, "\"$x\"", &format!("\"{granularity}\""));
        let says = unfit(&text);
        let problem = format!("small.toml:20: job.1.soft.granularity: {what}; {valid}");
        let place = "small, series \"both\", granularity 4KiB: job \"host\": ";
        assert_eq!(says, format!("{place}{problem}"));
        let points = points(&text, &[]).expect("it is read");
        let checked = points[0].check(&Tiny).expect_err("it does not fit");
        assert_eq!(checked.to_string(), says);
    }
    // From the command line there is no line.
    let sizes = ["job.1.soft.granularity=1MiB"];
    let points = points(SOFT, &sizes).expect("it is read");
    let says = points[0].check(&Tiny).expect_err("too large").to_string();
    assert!(
        says.contains("--set job.1.soft.granularity=1MiB: 1MiB is out of range"),
        "{says}"
    );
}

#[test]
fn mistakes_in_its_keys_are_named() {
    let soft = "soft = { granularity = \"$x\", pause = \"50us\" }";
    for (other, says) in [
        (
            "soft = { granularity = \"$x\", pause = \"61s\" }",
            "small.toml:20: job.1.soft.pause: this is too long a time; at most 60s",
        ),
        (
            "soft = { pause = \"50us\" }",
            "small.toml:20: job.1.soft.granularity: missing",
        ),
        (
            "soft = { granularity = \"$x\", paus = \"50us\" }",
            "small.toml:20: job.1.soft.paus: ",
        ),
        ("soft = true", "small.toml:20: job.1.soft: "),
    ] {
        let said = problems(&with(SOFT, soft, other), &[]);
        assert!(said.starts_with(says), "{said}\nnot\n{says}");
    }
    let reset = SOFT.replace("work = \"finish\"\nsoft", "work = \"reset\"\nsoft");
    let said = problems(&reset, &[]);
    assert!(said.starts_with("small.toml:20: job.1.soft: "), "{said}");
}

/// Results say what was asked for, wherever in the file; and those of other
/// jobs say what they always said.
#[test]
fn results_hold_no_lines() {
    let moved = format!("# A comment.\n\n{SOFT}");
    let said = |text: &str| points(text, &[]).expect("it is read")[0].describe_jobs();
    assert_eq!(said(SOFT), said(&moved));
    let soft = "soft: SoftTemplate { granularity_bytes: 4096, pause: 50 us }";
    assert!(said(SOFT).contains(soft), "{}", said(SOFT));
    assert!(said(SOFT).contains("work: Finish { fill: FillTemplate {"));
}

/// Softfinishes alone fit their drive, and all of it is published.
#[test]
fn the_published_softfinishes_are_found() {
    let text = include_str!("../../../../experiments/C7c.toml");
    let references = References::builtin().expect("sound tables");
    let points = run::points("C7c.toml", text, &[]).expect("it is sound");
    assert_eq!(points.len(), 5);
    let experiment = Experiment::parse("C7c.toml", text, &[], None).expect("it is sound");
    for (point, series) in points.iter().zip(&experiment.series) {
        point.check(&Tiny).unwrap_or_else(|error| panic!("{error}"));
        let rate = |metric: &str| {
            let job = &series.phases[0][0];
            let found = references.value(series, job, point.x(), metric);
            found
                .expect("a sound look-up")
                .expect("it is published")
                .value
        };
        // Whole finishes of 1077 MiB.
        let zone = rate("mib_s") / rate("ops_s");
        assert!((zone - 1077.0).abs() < 1.0, "{}: {zone}", series.name);
    }
}
