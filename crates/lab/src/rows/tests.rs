//! The judging rule, misfits, statistics and files.

use super::*;
use proptest::prelude::*;

fn throughput(published: f64, ours: f64) -> Row {
    Row::new(
        "C10a",
        Kind::Emulator,
        "alone",
        ("throughput", "KIOPS"),
        ours,
    )
    .published(published)
}

fn p95(published: f64, ours: f64, lower: f64, upper: f64) -> Row {
    let row = Row::new("C10a", Kind::Emulator, "alone", ("P95", "us"), ours);
    row.published(published).bracket(lower, upper)
}

fn m_inter(published: f64, ours: f64) -> Row {
    Row::new("CM", Kind::Emulator, "", ("M^Inter", UNIT_M), ours).published(published)
}

fn passes(row: Row) -> bool {
    row.judged().pass.unwrap()
}

#[test]
fn throughput_passes_up_to_three_per_cent() {
    assert!(passes(throughput(100.0, 103.0)) && passes(throughput(100.0, 97.0)));
    assert!(!passes(throughput(100.0, 103.001)) && !passes(throughput(100.0, 96.999)));
    let row = throughput(5.0, 5.1).judged();
    assert_eq!((row.rel_error, row.tolerance), (Some(0.02), Some(0.03)));
    assert_eq!(throughput(5.0, 4.9).judged().rel_error, Some(-0.02));
}

#[test]
fn a_percentile_passes_if_the_published_one_lies_between_its_neighbours() {
    let row = p95(1286.0, 1450.0, 1280.0, 1500.0).judged();
    assert_eq!(row.pass, Some(true));
    assert!(row.passes_by_bracket() && row.rel_error.unwrap() > 0.1);
    assert!(
        passes(p95(1280.0, 1450.0, 1280.0, 1500.0)),
        "the ends belong to it"
    );
    assert!(!passes(p95(1279.0, 1450.0, 1280.0, 1500.0)));
    assert!(
        passes(p95(1449.0, 1450.0, 1450.0, 1450.0)),
        "3 % suffices without"
    );
    assert!(
        !p95(1449.0, 1450.0, 1400.0, 1500.0)
            .judged()
            .passes_by_bracket()
    );
    assert!(!passes(p95(1279.0, 1450.0, f64::NAN, 1500.0)));
}

#[test]
fn m_passes_within_the_larger_of_two_tolerances() {
    assert!(passes(m_inter(0.138, 0.188)) && passes(m_inter(0.138, 0.088)));
    assert!(!passes(m_inter(0.138, 0.1881)));
    assert!(passes(m_inter(5.66, 5.66 * 1.05)) && !passes(m_inter(5.66, 5.66 * 1.051)));
    assert!(passes(m_inter(0.0, 0.05)) && !passes(m_inter(0.0, 0.051)));
    assert_eq!(m_inter(2.0, 2.1).judged().tolerance, Some(0.05));
    assert_eq!(m_inter(0.5, 0.5).judged().tolerance, Some(0.1));
    assert_eq!(m_inter(0.0, 0.05).judged().tolerance, None);
}

#[test]
fn the_error_counts_from_the_edge_of_the_repeats() {
    let repeats = Some((1581.06, 2408.45));
    let row = |ours| p95(2056.19, ours, ours, ours).repeats(repeats).judged();
    assert_eq!(
        (row(1700.0).rel_error, row(1700.0).pass),
        (Some(0.0), Some(true))
    );
    assert_eq!(row(2408.45).rel_error, Some(0.0));
    assert_eq!(row(2480.0).pass, Some(true), "3 % beyond the edge");
    assert_eq!(row(2481.0).pass, Some(false));
    assert_eq!(row(1581.06 / 2.0).rel_error, Some(-0.5));
    // The neighbours reach the edge.
    let row = p95(2056.19, 1400.0, 1300.0, 1600.0)
        .repeats(repeats)
        .judged();
    assert!(row.passes_by_bracket());
}

#[test]
fn the_published_value_is_one_of_its_repeats() {
    // Published as 1.83, in the data 1.82682.
    let row = throughput(1.83, 1.829)
        .repeats(Some((1.8, 1.82682)))
        .judged();
    assert_eq!(row.rel_error, Some(0.0));
}

#[test]
fn what_was_not_measured_does_not_pass() {
    for ours in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for repeats in [None, Some((90.0, 110.0))] {
            let row = throughput(100.0, ours).repeats(repeats).judged();
            assert_eq!(row.pass, Some(false), "{ours} {repeats:?}");
            assert_eq!(row.verdict(), Verdict::Fail);
        }
    }
}

#[test]
fn a_row_without_a_published_value_informs() {
    let row = Row::new("X", Kind::Emulator, "", ("throughput", "KIOPS"), 5.0).judged();
    assert_eq!(
        (row.pass, row.rel_error, row.verdict()),
        (None, None, Verdict::Info)
    );
}

#[test]
fn shape_rows_fail_only_by_their_shape() {
    let row = || Row::new("C1", Kind::Shape, "", ("latency", "s"), 9.0).published(1.0);
    assert_eq!(row().judged().verdict(), Verdict::Info);
    assert_eq!(row().judged().rel_error, Some(8.0));
    assert_eq!(row().shape(true).judged().verdict(), Verdict::Ok);
    assert_eq!(row().shape(false).judged().verdict(), Verdict::Fail);
}

fn drive(error: f64) -> Row {
    Row::new(
        "C2a",
        Kind::Drive,
        "s",
        ("throughput", "KIOPS"),
        100.0 * (1.0 + error),
    )
    .published(100.0)
    .judged()
}

#[test]
fn drive_rows_are_judged_together() {
    let rows: Vec<_> = [0.01, -0.02, 0.03, 0.04, -0.05, 0.05, 0.06, 0.1, -0.15, 0.6]
        .map(drive)
        .into();
    assert!(
        rows.iter()
            .all(|row| row.pass.is_none() && row.verdict() == Verdict::Joint)
    );
    let together = DriveSummary::of(&rows).unwrap();
    assert_eq!(
        (together.all.all.median, together.all.all.p90),
        (Some(0.05), Some(0.15))
    );
    assert!(together.pass() && Summary::of(&rows).pass());

    let worse: Vec<_> = [0.01, 0.16].map(drive).into();
    assert!(!Summary::of(&worse).pass());
    let middling: Vec<_> = [0.01, 0.06, 0.06].map(drive).into();
    assert!(!Summary::of(&middling).pass());
    assert_eq!(DriveSummary::of(&[throughput(1.0, 1.0).judged()]), None);
}

#[test]
fn explained_rows_count_among_figures_but_not_against_one() {
    let mut rows: Vec<_> = [0.01, 0.02, 0.4].map(drive).into();
    assert!(!Summary::of(&rows).pass());
    rows[2].misfit = Some("because".to_owned());
    assert!(Summary::of(&rows).pass());
    let mut other = drive(0.01);
    other.id = "Z1".to_owned();
    rows.push(other);
    let summary = Summary::of(&rows);
    let drive = summary.drive.as_ref().unwrap();
    assert!(!drive.p90_holds && drive.unexplained_hold && !summary.pass());
}

#[test]
fn m_of_a_drive_counts_from_the_edge_of_its_noise() {
    let of = |kind, published: f64, ours: f64| {
        let row = Row::new("C4", kind, "s", ("m_inter", UNIT_M), ours);
        row.published(published).judged()
    };
    for (published, ours, error) in [
        // No effect beside hardly any: 400 % of nothing.
        (0.01, 0.05, 0.0),
        (0.01, 0.0, 0.0),
        (0.26, 0.31, 0.0),
        (0.26, 0.20, -0.01 / 0.21),
        (0.95, 1.10, 0.10),
    ] {
        let row = of(Kind::Drive, published, ours);
        assert_eq!(
            row.rel_error,
            Some(significant(error)),
            "{published} {ours}"
        );
        assert!(row.counts_from_noise());
    }
    // An emulator's, where the noise is in the tolerance.
    let row = of(Kind::Emulator, 0.26, 0.20);
    assert_eq!(row.rel_error, Some(significant(-0.06 / 0.26)));
    assert!(!row.counts_from_noise());
}

const MISFITS: &str = r#"
schema = 1

[[misfit]]
id = "C10b"
series = "finish, 16 KiB"
x = 64
metric = "throughput"
cause = "The stated mechanism gives more."
evidence = "Four dies, one program in two."

[[misfit]]
id = "C2a"
series = "s"
metric = "throughput"
cause = "c"
evidence = "e"
"#;

fn c10b(concurrency: f64, ours: f64) -> Row {
    Row::new(
        "C10b",
        Kind::Emulator,
        "finish, 16 KiB",
        ("throughput", "KIOPS"),
        ours,
    )
    .at("concurrency", concurrency)
    .published(50.3)
    .judged()
}

#[test]
fn a_listed_row_is_a_misfit_and_does_not_fail() {
    let misfits = Misfits::parse("misfits.toml", MISFITS).unwrap();
    let mut rows = vec![c10b(64.0, 56.0), c10b(32.0, 50.0)];
    assert_eq!(misfits.apply(&mut rows), []);
    assert_eq!(rows[0].verdict(), Verdict::Misfit);
    assert_eq!(
        rows[0].pass,
        Some(false),
        "the file still says that it misses its bar"
    );
    assert_eq!(
        rows[0].misfit.as_deref(),
        Some("The stated mechanism gives more. Evidence: Four dies, one program in two.")
    );
    assert_eq!(rows[1].verdict(), Verdict::Ok);
    let summary = Summary::of(&rows);
    assert!(summary.pass() && summary.overall.misfits == 1);
    assert!(
        summary.overall.p90_error.unwrap() > 0.1,
        "misfits count in the statistics"
    );
}

#[test]
fn an_entry_that_explains_nothing_is_reported() {
    let misfits = Misfits::parse("misfits.toml", MISFITS).unwrap();
    let unused = misfits.apply(&mut [c10b(64.0, 50.3)]);
    assert_eq!(unused.len(), 1, "C2a was not run");
    assert!(unused[0].to_string().contains("C10b") && unused[0].all_pass);
    let unused = misfits.apply(&mut [c10b(32.0, 99.0)]);
    assert!(!unused[0].all_pass);
    let mut rows = [c10b(32.0, 99.0)];
    let _ = misfits.apply(&mut rows);
    assert_eq!(
        rows[0].verdict(),
        Verdict::Fail,
        "another point of the series is not excused"
    );
}

#[test]
fn a_far_drive_row_can_be_a_misfit() {
    let misfits = Misfits::parse("misfits.toml", MISFITS).unwrap();
    let mut rows = vec![drive(0.01), drive(0.01), drive(0.9)];
    assert!(!Summary::of(&rows).pass());
    assert_eq!(misfits.apply(&mut rows), []);
    assert_eq!(rows.iter().filter(|r| r.misfit.is_some()).count(), 1);
    let summary = Summary::of(&rows);
    assert!(summary.pass());
    assert_eq!(summary.drive.unwrap().all.all.p90, Some(0.9));
}

#[test]
fn errors_in_the_list_say_where() {
    let message = |text: &str| Misfits::parse("m.toml", text).unwrap_err().to_string();
    let unknown = message(&MISFITS.replace("evidence", "evidance"));
    assert!(
        unknown.contains("m.toml") && unknown.contains("evidance"),
        "{unknown}"
    );
    assert!(unknown.contains("line 10"), "{unknown}");
    let empty = message(&MISFITS.replace("\"c\"", "\" \""));
    assert!(
        empty.starts_with("m.toml:12:") && empty.contains("`cause`"),
        "{empty}"
    );
    let twice = message(
        &MISFITS
            .replace("C2a", "C10b")
            .replace("\"s\"", "\"finish, 16 KiB\"\nx = 64.0"),
    );
    assert!(twice.contains("a second entry"), "{twice}");
    assert!(message("schema = 2").contains("schema 2"));
    assert!(message("").contains("schema"));
    assert_eq!(
        Misfits::parse("m.toml", "schema = 1").unwrap().entries(),
        []
    );
}

#[test]
fn statistics_of_known_errors() {
    let rows: Vec<_> = (1..=10)
        .map(|n| throughput(100.0, 100.0 + f64::from(n)).judged())
        .collect();
    let stats = Stats::of(&rows);
    assert_eq!((stats.count, stats.passed, stats.failed), (10, 3, 7));
    assert_eq!(
        (stats.median_error, stats.p90_error),
        (Some(0.055), Some(0.09))
    );
    assert_eq!(Stats::of(&rows[..1]).p90_error, Some(0.01));
    assert_eq!(Stats::of([]), Stats::default());
}

#[test]
fn ids_keep_their_order() {
    let row = |id: &str| Row {
        id: id.to_owned(),
        ..throughput(1.0, 1.0).judged()
    };
    let rows = ["C9a", "C10a", "C9a", "C1"].map(row);
    let ids: Vec<_> = Summary::of(&rows)
        .by_id
        .into_iter()
        .map(|(id, s)| (id, s.count))
        .collect();
    assert_eq!(
        ids,
        [
            ("C9a".to_owned(), 2),
            ("C10a".to_owned(), 1),
            ("C1".to_owned(), 1)
        ]
    );
}

fn sample() -> Vec<Row> {
    let mut full = p95(2056.19, 2100.0 / 3.0, 690.0, 710.0)
        .at("concurrency", 7.0)
        .repeats(Some((1581.061, 2408.45)))
        .judged();
    full.misfit = Some("said \"why\", at length".to_owned());
    let bare = Row::new("C1", Kind::Shape, "a, b", ("latency", "s"), f64::NAN).judged();
    vec![full, bare]
}

#[test]
fn json_in_full() {
    insta::assert_snapshot!(to_json(&sample(), 7), @r#"
    {
    "schema": 1,
    "seed": 7,
    "rows": [
    {"id":"C10a","kind":"E","series":"alone","x":7.0,"metric":"P95","unit":"us","published":2056.19,"repeat_spread":[1581.06,2408.45],"ours":700.0,"ours_lower":690.0,"ours_upper":710.0,"rel_error":-0.557259,"tolerance":0.03,"pass":false,"misfit":"said \"why\", at length"},
    {"id":"C1","kind":"S","series":"a, b","x":null,"metric":"latency","unit":"s","published":null,"repeat_spread":null,"ours":null,"ours_lower":null,"ours_upper":null,"rel_error":null,"tolerance":null,"pass":true,"misfit":null}
    ]
    }
    "#);
}

#[test]
fn json_keys_are_the_csv_columns() {
    let json: serde_json::Value = serde_json::from_str(&to_json(&sample(), 0)).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let mut keys: Vec<_> = row
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut columns = COLUMNS.to_vec();
        keys.sort_unstable();
        columns.sort_unstable();
        assert_eq!(keys, columns);
    }
    assert_eq!(
        to_json(&[], 0),
        "{\n\"schema\": 1,\n\"seed\": 0,\n\"rows\": [\n]\n}\n"
    );
}

#[test]
fn csv_in_full() {
    insta::assert_snapshot!(to_csv(&sample()), @r#"
    id,kind,series,x,metric,unit,published,repeat_spread,ours,ours_lower,ours_upper,rel_error,tolerance,pass,misfit
    C10a,E,alone,7.0,P95,us,2056.19,1581.06..2408.45,700.0,690.0,710.0,-0.557259,0.03,false,"said ""why"", at length"
    C1,S,"a, b",,latency,s,,,,,,,,true,
    "#);
}

#[test]
fn six_digits_are_kept() {
    let text = |value| significant(value).to_string();
    assert_eq!(text(1.0 / 3.0), "0.333333");
    assert_eq!(text(48_612_345.0), "48612300");
    assert_eq!(Some(significant(f64::MAX)), "1.79769e308".parse().ok());
    assert!(significant(-0.0).is_sign_positive() && significant(f64::NAN).is_nan());
}

proptest! {
    /// Rounding is done once: a second pass changes no verdict and no byte.
    #[test]
    fn judging_twice_is_judging_once(
        published in any::<f64>(), ours in any::<f64>(),
        spread in any::<Option<(f64, f64)>>(), bracket in any::<(f64, f64)>(),
        unit in prop::sample::select(vec!["us", UNIT_M]),
    ) {
        let row = Row::new("i", Kind::Emulator, "s", ("P95", unit), ours)
            .published(published).repeats(spread).bracket(bracket.0, bracket.1).judged();
        let again = row.clone().judged();
        prop_assert_eq!(to_json(std::slice::from_ref(&row), 0), to_json(&[again], 0));
        let text = to_json(&[row], 0);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    /// A wider spread of repeats never turns a pass into a failure.
    #[test]
    fn more_repeats_never_fail_more(
        published in 1.0..1e6f64, ours in 1.0..1e6f64, low in 0.5..1.0f64, high in 1.0..2.0f64,
    ) {
        let alone = throughput(published, ours).judged();
        let wide = throughput(published, ours)
            .repeats(Some((published * low, published * high))).judged();
        prop_assert!(alone.pass <= wide.pass);
    }
}

fn of_drive(id: &str, x: f64, metric: &str, error: f64) -> Row {
    Row::new(id, Kind::Drive, "s", (metric, "us"), 100.0 * (1.0 + error))
        .at("concurrency", x)
        .published(100.0)
        .judged()
}

#[test]
fn a_drive_is_summed_up_by_figure_and_quantity() {
    let mut rows = vec![
        of_drive("C2a", 1.0, "kiops", 0.01),
        of_drive("C2a", 1.0, "lat_mean_us", -0.02),
        of_drive("C2a", 1.0, "lat_p95_us", 0.30),
        of_drive("C2a", 2.0, "kiops", -0.03),
        of_drive("Z3", 1.0, "kiops", 0.04),
        of_drive("Z3", 1.0, "m_inter", 0.05),
        // Neither shown nor unknown values count.
        of_drive("Z3", 2.0, "kiops", 9.0).informative(),
        Row::new("Z3", Kind::Drive, "s", ("kiops", "KIOPS"), 1.0).judged(),
    ];
    rows[2].misfit = Some("because".to_owned());
    let summary = DriveSummary::of(&rows).unwrap();
    let [c2a, z3] = summary.figures.as_slice() else {
        panic!("{:?}", summary.figures);
    };
    assert_eq!((c2a.id.as_str(), c2a.points, c2a.all.rows), ("C2a", 2, 4));
    assert_eq!(
        (c2a.throughput.rows, c2a.throughput.median),
        (2, Some(0.02))
    );
    assert_eq!((c2a.p95_latency.p90, z3.p95_latency.p90), (Some(0.3), None));
    assert_eq!((z3.points, z3.all.rows, z3.all.median), (1, 2, Some(0.045)));
    assert_eq!((summary.all.points, summary.all.all.rows), (3, 6));
    assert_eq!(
        (summary.all.all.median, summary.all.all.p90),
        (Some(0.035), Some(0.3))
    );
    assert!(summary.median_holds && !summary.p90_holds);
    let [beyond] = summary.beyond.as_slice() else {
        panic!("{:?}", summary.beyond);
    };
    assert_eq!(
        (beyond.metric.as_str(), beyond.rel_error),
        ("lat_p95_us", 0.3)
    );
    assert_eq!(beyond.cause.as_deref(), Some("because"));

    let json: serde_json::Value = serde_json::from_str(&to_json(&rows, 1)).unwrap();
    assert_eq!(json["summary"]["all"]["throughput"]["rows"], 3);
    assert_eq!(json["summary"]["beyond"][0]["cause"], "because");
    let json: serde_json::Value = serde_json::from_str(&to_json(&rows[6..], 1)).unwrap();
    assert!(json.get("summary").is_none(), "nothing to sum up");
}
