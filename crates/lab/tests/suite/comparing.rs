//! Rows, interference, checks, misfits and figures.

use zonelab_lab::compare;
use zonelab_lab::metrics::{self, interference};
use zonelab_lab::published::References;
use zonelab_lab::rows::{Misfits, Row, Scope, Summary, Verdict};
use zonelab_lab::run::{JobMeasured, PointResult};
use zonelab_lab::session::{Judged, Measured, Terms};

use super::support::{SMALL, parse, rows_of, run, with};

/// The small experiment's results with throughput and P95 of reads as given, by
/// series and depth: `(kiops, p95)`.
fn results(values: &[(&str, &str, f64, f64)]) -> Vec<PointResult> {
    let mut results = run(SMALL, 1, 1).expect("it runs");
    for result in &mut results {
        for job in result.jobs.iter_mut().filter(|job| job.name == "read") {
            job.metrics.values.clear();
            job.metrics.neighbours.clear();
            for (series, x, kiops, p95) in values {
                if result.series == *series && result.x.text == *x {
                    for metric in ["kiops", "kiops_by_count"] {
                        job.metrics.values.insert(metric, *kiops);
                    }
                    job.metrics.values.insert("lat_p95_us", *p95);
                }
            }
        }
    }
    results
}

fn rows(text: &str, results: &[PointResult]) -> Vec<Row> {
    let references = References::builtin().expect("sound tables");
    compare::rows(&parse(text), results, &references).expect("sound look-ups")
}

const MEASURED: [(&str, &str, f64, f64); 6] = [
    ("alone", "1", 10.0, 100.0),
    ("alone", "2", 20.0, 100.0),
    ("alone", "4", 40.0, 100.0),
    ("beside resets", "1", 8.0, 150.0),
    ("beside resets", "2", 20.0, 100.0),
    ("beside resets", "4", 20.0, 300.0),
];

fn passes(rows: &[Row]) -> bool {
    Summary::of(rows, Scope::PART, &Misfits::default()).pass()
}

fn m_inter(rows: &[Row]) -> Option<f64> {
    rows.iter()
        .find(|row| row.metric == "m_inter")
        .map(|row| row.ours)
}

#[test]
fn rows_come_by_series_point_and_metric() {
    let rows = rows(SMALL, &results(&MEASURED));
    let names: Vec<_> = rows
        .iter()
        .map(|row| {
            let x = row
                .x
                .as_ref()
                .map(|x| format!("{}={}", x.name, x.value))
                .unwrap_or_default();
            format!("{} {x} {} {}", row.series, row.metric, row.ours)
        })
        .collect();
    assert_eq!(
        names[..3],
        [
            "alone depth=1 kiops 10",
            "alone depth=1 lat_p95_us 100",
            "alone depth=2 kiops 20"
        ]
    );
    assert_eq!(names.len(), 2 * 3 * 2 + 1 + 1);
    assert!(
        names[12].starts_with("beside resets  m_inter"),
        "{}",
        names[12]
    );
    assert!(
        names[13].starts_with("check  resets do not make reads faster"),
        "{}",
        names[13]
    );
}

/// M by hand: distances of (-20 %, +50 %), nothing, (-50 %, +200 %), half and half.
#[test]
fn interference_is_the_mean_over_the_levels() {
    let expected =
        ((0.5_f64 * 0.04 + 0.5 * 0.25).sqrt() + 0.0 + (0.5_f64 * 0.25 + 0.5 * 4.0).sqrt()) / 3.0;
    let ours = m_inter(&rows(SMALL, &results(&MEASURED))).unwrap();
    assert!((ours - expected).abs() < 1e-5, "{ours}, by hand {expected}");
    let latency = with(
        SMALL,
        "isolated = \"alone\"",
        "isolated = \"alone\"\nalpha = \"0%\"",
    );
    let ours = m_inter(&rows(&latency, &results(&MEASURED))).unwrap();
    assert!((ours - 2.5 / 3.0).abs() < 1e-5, "{ours}");
}

/// By bytes, throughput is another metric, and the row says so.
#[test]
fn interference_by_bytes_is_a_row_of_its_own() {
    let mut results = results(&MEASURED);
    for result in &mut results {
        let mib_s = if result.series == "alone" {
            100.0
        } else {
            50.0
        };
        for job in result.jobs.iter_mut().filter(|job| job.name == "read") {
            job.metrics.values.insert("mib_s", mib_s);
        }
    }
    let isolated = "isolated = \"alone\"";
    let by_bytes = format!("{isolated}\nalpha = \"100%\"\nthroughput = \"mib_s\"");
    let rows = rows(&with(SMALL, isolated, &by_bytes), &results);
    assert_eq!(m_inter(&rows), None);
    let row = rows.iter().find(|row| row.metric == "m_inter_by_bytes");
    let ours = row.expect("there is a row").ours;
    assert!((ours - 0.5).abs() < 1e-5, "{ours}");
}

/// Each way to calculate the value of a statement, from 40 and 20 K/s.
#[test]
fn statements_have_several_forms() {
    let alone = "{ series = \"alone\", x = 4, job = \"read\", metric = \"kiops\" }";
    let beside = "{ series = \"beside resets\", x = 4, job = \"read\", metric = \"kiops\" }";
    let results = results(&MEASURED);
    let m = m_inter(&rows(SMALL, &results)).unwrap();
    let forms = [
        (format!("published = 40\nvalue = {alone}"), 40.0, true),
        (format!("published = 39\nvalue = {alone}"), 40.0, true),
        (format!("published = 38\nvalue = {alone}"), 40.0, false),
        (
            format!("at_most = 0.5\nratio = [{beside}, {alone}]"),
            0.5,
            true,
        ),
        (
            format!("at_least = 0.6\nratio = [{beside}, {alone}]"),
            0.5,
            false,
        ),
        // Of a change, the factor has to agree: 0.5 against 0.485 and 0.48.
        (
            format!("published = -0.486\nchange = [{alone}, {beside}]"),
            -0.5,
            true,
        ),
        (
            format!("published = -0.48\nchange = [{alone}, {beside}]"),
            -0.5,
            false,
        ),
        // "Nothing" holds on neither side.
        (
            format!("published = 0\nchange = [{alone}, {beside}]"),
            -0.5,
            false,
        ),
        (
            format!("published = 0\nchange = [{beside}, {alone}]"),
            1.0,
            false,
        ),
        (
            format!(
                "published = 30\nformula = \"(a + abs(a - b)) / 2 + b\"\n\n  [check.of]\n  \
                 a = {alone}\n  b = {beside}"
            ),
            50.0,
            false,
        ),
        (
            "at_most = 100\nvalue = { interference = \"beside resets\" }".to_owned(),
            m,
            true,
        ),
    ];
    let at = SMALL.find("smaller = ").expect("the check of the example");
    let end = SMALL.find("\n[figure]").expect("the figure follows it");
    for (form, ours, holds) in forms {
        let text = format!("{}{form}\n{}", &SMALL[..at], &SMALL[end..]);
        let row = rows(&text, &results).pop().expect("the last row");
        assert!((row.ours - ours).abs() < 1e-5, "{form}: {}", row.ours);
        assert_eq!(row.verdict() == Verdict::Ok, holds, "{form}");
    }
}

/// A level of which one of its two points was not run is left out of the mean. One that
/// was run and measured nothing leaves no mean.
#[test]
fn interference_needs_both_points() {
    let was_run = |result: &PointResult, of: &[(&str, &str, f64, f64)]| {
        let mut of = of.iter();
        of.any(|(series, x, ..)| (*series, *x) == (result.series.as_str(), result.x.text.as_str()))
    };
    let of = |measured: &[(&str, &str, f64, f64)]| {
        let mut results = results(&MEASURED);
        results.retain(|result| was_run(result, measured));
        m_inter(&rows(SMALL, &results))
    };
    let ours = of(&MEASURED[..5]).unwrap();
    let expected = (0.5_f64 * 0.04 + 0.5 * 0.25).sqrt() / 2.0;
    assert!((ours - expected).abs() < 1e-5, "{ours}, by hand {expected}");
    assert_eq!(of(&MEASURED[..3]), None);
    let unmeasured = m_inter(&rows(SMALL, &results(&MEASURED[..5]))).unwrap();
    assert!(unmeasured.is_nan(), "{unmeasured}");
    assert_eq!(interference(&[], 0.5), None);
}

#[test]
fn checks_hold_or_fail() {
    let check = |factor: &str, results: &[PointResult]| {
        let text = with(
            SMALL,
            "says = \"resets",
            &format!("factor = {factor}\nsays = \"resets"),
        );
        let row = rows(&text, results)
            .pop()
            .expect("the check is the last row");
        (row.ours, row.verdict())
    };
    let results = results(&MEASURED);
    // 40 against 20.
    assert_eq!(check("2.0", &results), (2.0, Verdict::Ok));
    assert_eq!(check("2.01", &results), (2.0, Verdict::Fail));
    let text = with(SMALL, "says = \"resets", "factor = 3\nsays = \"resets");
    assert!(!passes(&rows(&text, &results)));
}

/// What could not be measured is shown, and does not pass where it must match.
#[test]
fn what_was_not_measured_is_no_number() {
    let none = results(&[]);
    let rows = rows(SMALL, &none);
    assert!(
        rows.iter()
            .filter(|row| row.metric == "kiops")
            .all(|row| row.ours.is_nan())
    );
    assert!(m_inter(&rows).is_some_and(f64::is_nan));
    let [.., check] = &rows[12..] else {
        panic!("a statement whose points were run is there: {rows:?}");
    };
    assert!(check.ours.is_nan() && check.verdict() == Verdict::Fail);
    let judged = |text: &str| {
        let references = References::builtin().expect("sound tables");
        compare::rows(&parse(text), &none, &references).expect("sound look-ups")
    };
    let point =
        "jobs = [\"read\"]\n\n  [[series.point]]\n  x = 1\n  metric = \"kiops\"\n  value = 11\n";
    let text = with(
        SMALL,
        "profile = \"tiny\"",
        "kind = \"E\"\nprofile = \"tiny\"",
    );
    let rows = judged(&with(&text, "jobs = [\"read\"]", point));
    assert_eq!(rows[0].verdict(), Verdict::Fail);
}

/// An emulator's point must match within 3 %, unless it is informative or known.
#[test]
fn published_points_are_judged() {
    let point = |value: f64| {
        let text = with(
            SMALL,
            "profile = \"tiny\"",
            "kind = \"E\"\nprofile = \"tiny\"",
        );
        with(
            &text,
            "jobs = [\"read\"]",
            &format!(
                "jobs = [\"read\"]\n\n  [[series.point]]\n  x = 1\n  metric = \"kiops\"\n  value = {value}\n"
            ),
        )
    };
    let verdict = |text: &str| rows(text, &results(&MEASURED))[0].verdict();
    assert_eq!(verdict(&point(10.3)), Verdict::Ok);
    assert_eq!(verdict(&point(10.4)), Verdict::Fail);
    assert_eq!(verdict(SMALL), Verdict::Info, "nothing was published");
    let informative = "\n  [[compare.informative]]\n  metrics = [\"kiops\"]\n  x = [1]\n  reason = \"r\"\n\n[[interference]]";
    let text = with(&point(20.0), "[[interference]]", informative);
    assert_eq!(verdict(&text), Verdict::Info);
    let elsewhere = text.replace("x = [1]", "x = [2]");
    assert_eq!(verdict(&elsewhere), Verdict::Fail);

    let mut rows = rows(&point(20.0), &results(&MEASURED));
    let entry = |x: &str| {
        format!(
            "schema = 2\n[[misfit]]\nid = \"small\"\nseries = \"alone\"\n{x}metric = \"kiops\"\ncause = \"c\"\nevidence = \"e\"\n"
        )
    };
    let unused = Misfits::parse("m.toml", &entry("x = 1\n"))
        .unwrap()
        .apply(&mut rows, Scope::PART);
    assert_eq!((rows[0].verdict(), unused.len()), (Verdict::Misfit, 0));
    assert!(passes(&rows[..1]));
    let unused = Misfits::parse("m.toml", &entry("x = 2\n"))
        .unwrap()
        .apply(&mut rows, Scope::PART);
    assert_eq!(unused.len(), 1, "an entry that explains nothing is named");
}

/// Several compared jobs in a series are told apart; one is not.
#[test]
fn jobs_compared_side_by_side_have_names() {
    let text = with(
        SMALL,
        "[[interference]]",
        "[[compare]]\njob = \"reset\"\nmetrics = [\"ops\"]\n\n[[interference]]",
    );
    let rows = rows(&text, &results(&MEASURED));
    let names: Vec<_> = rows
        .iter()
        .filter(|r| r.x.is_some())
        .map(|row| row.series.as_str())
        .collect();
    assert_eq!(names[0], "alone");
    assert!(names.contains(&"beside resets: read") && names.contains(&"beside resets: reset"));
}

#[test]
fn a_run_gives_rows_that_hold_together() {
    let rows = rows_of(SMALL);
    let check = rows.last().unwrap();
    assert_eq!(
        check.verdict(),
        Verdict::Ok,
        "resets cost reads something: {}",
        check.ours
    );
    assert!(m_inter(&rows).unwrap() > 0.0);
    assert!(rows.iter().all(|row| row.ours.is_finite()));
    let p95 = rows.iter().find(|row| row.metric == "lat_p95_us").unwrap();
    assert!(p95.ours_lower.unwrap() <= p95.ours && p95.ours <= p95.ours_upper.unwrap());
}

fn figure_points(text: &str) -> (usize, usize) {
    let references = References::builtin().expect("sound tables");
    let figure = compare::figure(&parse(text), &results(&MEASURED), &references).expect("sound");
    let svg = figure.expect("it has a figure").to_svg();
    (
        svg.matches("<title>").count(),
        svg.matches("class=\"dot").count(),
    )
}

#[test]
fn a_figure_shows_every_point() {
    let (_, all) = figure_points(SMALL);
    assert!(all >= 6, "{all} points");
    // Also if nothing is compared: the figure names its job.
    let compare = "[[compare]]\njob = \"read\"\nmetrics = [\"kiops\", \"lat_p95_us\"]\n\n";
    assert_eq!(figure_points(&with(SMALL, compare, "")).1, all);
}

#[test]
fn an_experiment_without_figure_has_none() {
    let text = &SMALL[..SMALL.find("[figure]").unwrap()];
    let references = References::builtin().unwrap();
    assert!(
        compare::figure(&parse(text), &results(&MEASURED), &references)
            .unwrap()
            .is_none()
    );
}

#[test]
fn every_metric_has_a_unit() {
    for (name, unit) in metrics::NAMES {
        assert_eq!(metrics::unit_of(name), *unit);
        assert!(!unit.is_empty(), "{name}");
        assert_eq!(
            metrics::percentile_of(name).is_some(),
            name.starts_with("lat_p"),
            "{name}"
        );
    }
    assert_eq!(metrics::unit_of("nonsense"), "");
    let job = JobMeasured {
        name: "none".to_owned(),
        kind: zonelab_host::stats::OpKind::Read,
        metrics: metrics::Metrics::default(),
        spread: None,
        detail: zonelab_lab::detail::JobDetail::default(),
    };
    assert_eq!(job.metrics.get("kiops"), None);
}

/// What is known of built-in experiments excuses nothing in a user's own, and settings do
/// not keep its statements from being judged.
#[test]
fn a_users_own_statements_are_judged() {
    let list = "schema = 2\n[[gap]]\nid = \"small\"\nsays = \"resets do not make reads faster\"\n\
                today = 0.5\ncause = \"known\"\ntried = \"nothing yet\"\n";
    let misfits = Misfits::parse("list", list).expect("a sound list");
    let (experiment, references) = (parse(SMALL), References::empty());
    // Beside resets, reads are faster.
    let mut faster = MEASURED;
    faster[5].2 = 80.0;
    let results = results(&faster);
    let measured = Measured {
        experiment: &experiment,
        results: &results,
        points: results.len(),
    };
    let verdict = |is_own, shown| {
        let terms = Terms {
            misfits: &misfits,
            scope: Scope::PART,
            shown,
            is_own,
        };
        let judged = Judged::of(&[measured], &references, terms).expect("sound look-ups");
        let mut rows = judged.rows.iter();
        let statement = rows.find(|row| row.is_statement()).expect("a statement");
        (statement.verdict(), judged.summary.pass())
    };
    let altered = Some("settings differ");
    assert_eq!(verdict(false, None), (Verdict::Missed, true));
    assert_eq!(verdict(false, altered), (Verdict::Info, true));
    assert_eq!(verdict(true, None), (Verdict::Fail, false));
    assert_eq!(verdict(true, altered), (Verdict::Fail, false));
}
