//! Rows of a real drive, judged together.

use super::*;

pub(super) fn drive(error: f64) -> Row {
    of("C2a", 1.0, "kiops", error)
}

fn of(id: &str, x: f64, metric: &str, error: f64) -> Row {
    let unit = if metric == "m_inter" { UNIT_M } else { "us" };
    Row::new(id, Kind::Drive, "s", (metric, unit), 100.0 * (1.0 + error))
        .at("concurrency", x, &x.to_string())
        .published(100.0)
        .judged()
}

fn percentile(error: f64) -> Row {
    of("C2a", 1.0, "lat_p99_us", error)
}

const WHOLE: Scope = Scope {
    quick: false,
    whole: true,
};

fn summary(rows: &[Row]) -> Summary {
    Summary::of(rows, WHOLE, &Misfits::default())
}

fn holds(rows: &[Row]) -> Vec<(f64, bool)> {
    let drive = summary(rows).drive.unwrap();
    drive
        .bars
        .iter()
        .map(|bar| (bar.value, bar.holds))
        .collect()
}

#[test]
fn rows_of_a_drive_have_no_bar_of_their_own() {
    for error in [0.0, 0.05, 9.0] {
        let row = drive(error);
        assert_eq!((row.pass, row.tolerance), (None, None));
        assert_eq!(row.verdict(), Verdict::Joint);
    }
    let rows = [throughput(1.0, 1.0).judged()];
    assert_eq!(DriveSummary::of(&rows, WHOLE, &Misfits::default()), None);
}

#[test]
fn each_group_has_its_bars() {
    let three: Vec<_> = [0.03, 0.03, 0.09].map(drive).into();
    assert_eq!(holds(&three), [(0.03, true), (0.09, true)]);
    assert!(summary(&three).pass());
    assert_eq!(
        holds(&[0.031, 0.031, 0.09].map(drive)),
        [(0.031, false), (0.09, true)]
    );
    assert_eq!(
        holds(&[0.03, 0.03, 0.091].map(drive)),
        [(0.03, true), (0.091, false)]
    );
    // Percentiles may be further off.
    let of_percentiles = [0.05, 0.05, 0.15].map(percentile);
    assert_eq!(holds(&of_percentiles), [(0.05, true), (0.15, true)]);
    assert_eq!(
        holds(&[0.051, 0.051, 0.151].map(percentile)),
        [(0.051, false), (0.151, false)]
    );
    // They neither help nor harm the others.
    let mixed = [drive(0.03), drive(0.091), percentile(0.0), percentile(0.0)];
    let found = holds(&mixed);
    assert_eq!(found.len(), 4);
    assert_eq!(found[1], (0.091, false));
    assert!(!summary(&mixed).pass());
}

/// Kind E allows 0.05 of M, since it is a difference of noisy numbers.
#[test]
fn m_of_a_drive_has_no_allowance() {
    let m = |kind, published: f64, ours: f64| {
        let row = Row::new("C4", kind, "s", ("m_inter", UNIT_M), ours);
        row.published(published).judged()
    };
    let row = m(Kind::Drive, 0.01, 0.05);
    assert_eq!((row.rel_error, row.verdict()), (Some(4.0), Verdict::Joint));
    assert_eq!(
        m(Kind::Drive, 0.26, 0.20).rel_error,
        Some(significant(-0.06 / 0.26))
    );
    assert_eq!(row.quantity().group(), Group::Values);
    assert_eq!(m(Kind::Emulator, 0.01, 0.05).verdict(), Verdict::Ok);
    let drive = summary(&[row]).drive.unwrap();
    assert_eq!(
        (drive.all.m_inter.rows, drive.all.values.median),
        (1, Some(4.0))
    );
}

/// A neighbouring percentile is for emulators.
#[test]
fn a_percentile_of_a_drive_has_no_neighbours() {
    let row = Row::new("C2a", Kind::Drive, "s", ("lat_p95_us", "us"), 150.0);
    let row = row.published(100.0).bracket(90.0, 160.0).judged();
    assert_eq!((row.rel_error, row.pass), (Some(0.5), None));
}

/// An error that is no number could not count against the bars.
#[test]
fn what_a_drive_did_not_measure_fails() {
    for ours in [f64::NAN, f64::INFINITY] {
        let row = Row::new("C2a", Kind::Drive, "s", ("kiops", "KIOPS"), ours);
        assert_eq!(
            row.clone().judged().verdict(),
            Verdict::Info,
            "nothing to compare with"
        );
        assert_eq!(row.published(1.0).judged().verdict(), Verdict::Fail);
    }
}

#[test]
fn bars_judge_whole_runs_only() {
    let rows = [drive(0.5)];
    let of = |scope| Summary::of(&rows, scope, &Misfits::default());
    let part = of(Scope::PART);
    assert!(part.pass() && part.missing.is_empty());
    let drive = part.drive.unwrap();
    assert!(!drive.is_whole && !drive.bars[0].holds, "they are shown");
    for quick in [false, true] {
        let whole = of(Scope { quick, whole: true });
        assert!(!whole.pass());
        assert_eq!(whole.missing.len(), 2, "the median and the 90th percentile");
        assert_eq!((whole.missing[0].id.as_str(), whole.failed), ("D", 0));
    }
}

#[test]
fn inputs_and_what_is_shown_are_in_no_statistic() {
    let mut rows = vec![drive(0.01)];
    for standing in [
        Standing::Input("it was an input".to_owned()),
        Standing::Shown("it is shown".to_owned()),
        Standing::CountedIn("C1".to_owned()),
    ] {
        rows.push(drive(9.0).standing(standing).judged());
        let emulated = throughput(1.0, 9.0);
        rows.push(
            emulated
                .standing(rows[rows.len() - 1].standing.clone())
                .judged(),
        );
    }
    let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
    let (input, info) = (Verdict::Input, Verdict::Info);
    assert_eq!(
        verdicts,
        [Verdict::Joint, input, input, info, info, info, info]
    );
    assert!(
        rows[1..]
            .iter()
            .all(|row| row.pass.is_none() && !row.counts())
    );
    assert_eq!(rows[1].rel_error, Some(9.0), "the error is shown");
    assert_eq!(rows[1].reason().as_deref(), Some("it was an input"));
    assert_eq!(rows[5].reason().as_deref(), Some("counted in C1"));
    let summary = summary(&rows);
    assert!(summary.pass());
    let [(Kind::Emulator, emulated), (Kind::Drive, real)] = summary.kinds.as_slice() else {
        panic!("{:?}", summary.kinds);
    };
    assert_eq!((emulated.median_error, real.p90_error), (None, Some(0.01)));
    assert_eq!(summary.drive.unwrap().all.values.rows, 1);
}

#[test]
fn a_measurement_in_several_figures_counts_in_the_first() {
    let placed = |id: &str, metric: &str, place: &str| {
        let mut row = of(id, 1.0, metric, 0.2);
        row.published_in = Some(place.to_owned());
        row
    };
    let mut rows = vec![
        of("C2a", 1.0, "kiops", 0.2),
        of("C3a", 1.0, "kiops", 0.2),
        placed("C2a", "kiops", "a.csv:3, kiops"),
        placed("C3a", "kiops", "a.csv:3, kiops"),
        placed("C3a", "lat_mean_us", "a.csv:3, kiops"),
        placed("C8", "kiops", "a.csv:4, kiops"),
        placed("C8", "kiops", "a.csv:3, kiops"),
    ];
    let mut shown = placed("C1", "kiops", "a.csv:3, kiops").shown("because");
    shown.id = "C0".to_owned();
    rows.insert(0, shown);
    let mut emulated =
        throughput(100.0, 1.0).published_in(rows[3].published_in.clone(), (1.0, 1.0));
    emulated.id = "E1".to_owned();
    rows.insert(1, emulated.judged());
    count_once(&mut rows);
    let elsewhere: Vec<_> = rows
        .iter()
        .map(|row| match &row.standing {
            Standing::CountedIn(id) => id.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(elsewhere, ["", "", "", "", "", "C2a", "", "", "C2a"]);
    let counted = summary(&rows).drive.unwrap().all.values.rows;
    assert_eq!(counted, 5);
    let again = rows.clone();
    count_once(&mut rows);
    assert_eq!(rows, again);
}

#[test]
fn a_drive_is_summed_up_by_figure_and_quantity() {
    let mut rows = vec![
        of("C2a", 1.0, "kiops", 0.01),
        of("C2a", 1.0, "lat_mean_us", -0.02),
        of("C2a", 1.0, "lat_p95_us", 0.30),
        of("C2a", 1.0, "lat_p50_us", 0.01),
        of("C2a", 2.0, "kiops", -0.03),
        of("Z3", 1.0, "kiops", 0.04),
        of("Z3", 1.0, "m_inter", 0.05),
        // Neither shown nor unknown values count.
        of("Z3", 2.0, "kiops", 9.0).shown("because"),
        Row::new("Z3", Kind::Drive, "s", ("kiops", "KIOPS"), 1.0).judged(),
    ];
    rows[2].misfit = Some("because".to_owned());
    let drive = summary(&rows).drive.unwrap();
    let [c2a, z3] = drive.figures.as_slice() else {
        panic!("{:?}", drive.figures);
    };
    assert_eq!(
        (c2a.id.as_str(), c2a.values.rows, c2a.percentiles.rows),
        ("C2a", 3, 2)
    );
    assert_eq!(
        (c2a.throughput.rows, c2a.throughput.median),
        (2, Some(0.02))
    );
    assert_eq!((c2a.percentiles.p90, z3.percentiles.p90), (Some(0.3), None));
    assert_eq!(
        (z3.values.rows, z3.values.median, z3.m_inter.rows),
        (2, Some(0.045), 1)
    );
    assert_eq!((drive.all.values.rows, drive.all.percentiles.rows), (5, 2));
    assert_eq!(drive.all.values.p90, Some(0.05));
    // C2a's percentiles miss both bars, Z3's values the median.
    assert_eq!(
        drive.figures_that_miss,
        [
            (Group::Values, vec!["Z3".to_owned()]),
            (Group::Percentiles, vec!["C2a".to_owned()])
        ]
    );
    let [beyond] = drive.beyond.as_slice() else {
        panic!("{:?}", drive.beyond);
    };
    assert_eq!(
        (beyond.metric.as_str(), beyond.rel_error),
        ("lat_p95_us", 0.3)
    );
    assert_eq!(beyond.cause.as_deref(), Some("because"));

    let json: serde_json::Value = serde_json::from_str(&files::json(&rows, 1)).unwrap();
    let of_drive = &json["summary"]["drive"];
    assert_eq!(of_drive["all"]["throughput"]["rows"], 3);
    assert_eq!(of_drive["beyond"][0]["cause"], "because");
    assert_eq!(of_drive["figures_that_miss"]["percentiles"][0], "C2a");
    let json: serde_json::Value = serde_json::from_str(&files::json(&rows[7..], 1)).unwrap();
    assert!(json["summary"]["drive"].is_null(), "nothing to sum up");
}

/// Misfits are explained, and count.
#[test]
fn a_cause_does_not_take_a_row_out_of_the_bars() {
    let list = "schema = 2\n[[misfit]]\nid = 'C2a'\nseries = 's'\nx = 1\nmetric = 'kiops'\n\
                cause = 'c'\nevidence = 'e'\n";
    let misfits = Misfits::parse("m", list).unwrap();
    let mut rows = vec![drive(0.01), drive(0.01), drive(0.9)];
    assert_eq!(misfits.apply(&mut rows, WHOLE), []);
    let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
    assert_eq!(verdicts, [Verdict::Joint, Verdict::Joint, Verdict::Misfit]);
    let summary = Summary::of(&rows, WHOLE, &misfits);
    assert!(!summary.pass());
    assert_eq!(summary.drive.unwrap().all.values.p90, Some(0.9));
}
