//! The judging rule and statistics; the list of what is known, the rows of a
//! real drive and files have modules of their own.

mod drive;
mod files;
mod known;
mod papers;
mod statements;

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
fn sizes_of_shapes_are_shown() {
    let row = Row::new("C1", Kind::Shape, "", ("latency", "s"), 9.0)
        .published(1.0)
        .judged();
    assert_eq!((row.verdict(), row.rel_error), (Verdict::Info, Some(8.0)));
    assert!(!row.counts(), "sizes are discussed");
}

#[test]
fn statistics_of_known_errors() {
    let rows: Vec<_> = (1..=10)
        .map(|n| throughput(100.0, 100.0 + f64::from(n)).judged())
        .collect();
    let stats = Stats::of(&rows);
    let of = |verdict| stats.of_verdict(verdict);
    assert_eq!(
        (stats.count, of(Verdict::Ok), of(Verdict::Fail)),
        (10, 3, 7)
    );
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
    let ids: Vec<_> = Summary::of(&rows, Scope::PART, &Misfits::default())
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
        prop_assert_eq!(files::json(std::slice::from_ref(&row), 0), files::json(&[again], 0));
        let text = files::json(&[row], 0);
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
