//! Statements: each holds or does not by its own bound.

use super::*;

fn statement(bound: Bound, published: Option<f64>, ours: f64) -> Row {
    let mut row = Row::new("C8", Kind::Drive, "check", ("it is so", "change"), ours);
    row.published = published;
    row.statement(bound).judged()
}

#[test]
fn a_size_is_as_near_as_a_typical_point_of_the_kind() {
    let within = |kind, metric| match Bound::near(kind, metric, 0.0) {
        Bound::Near { within, .. } => within,
        bound => panic!("{bound:?}"),
    };
    for (kind, metric, expected) in [
        (Kind::Emulator, "kiops", 0.03),
        (Kind::Emulator, "lat_p95_us", 0.03),
        (Kind::Drive, "kiops", 0.03),
        (Kind::Drive, "lat_mean_us", 0.03),
        (Kind::Drive, "m_inter", 0.03),
        (Kind::Drive, "lat_p50_us", 0.05),
        (Kind::Drive, "lat_p99_us", 0.05),
        (Kind::Shape, "lat_p99_us", 0.03),
    ] {
        let difference: f64 = within(kind, metric) - expected;
        assert!(difference.abs() < 1e-12, "{kind:?} {metric}");
    }
    let near = Bound::near(Kind::Drive, "kiops", 0.0);
    assert!(near.holds(103.0, Some(100.0)) && near.holds(97.0, Some(100.0)));
    assert!(!near.holds(103.01, Some(100.0)) && !near.holds(96.99, Some(100.0)));
    assert!(near.holds(-103.0, Some(-100.0)) && !near.holds(-103.1, Some(-100.0)));
}

/// A loss of 16.4 % leaves 83.6 %: ours may leave 3 % of that more or less.
#[test]
fn of_a_change_the_factor_has_to_agree() {
    let near = Bound::near(Kind::Drive, "kiops", 1.0);
    let published = Some(-0.164);
    assert!(near.holds(-0.164, published));
    assert!(
        near.holds(0.836 * 1.0299 - 1.0, published) && near.holds(0.836 * 0.9701 - 1.0, published)
    );
    assert!(!near.holds(0.836 * 1.0301 - 1.0, published));
    assert!(!near.holds(0.836 * 0.9699 - 1.0, published));
    // No change has no size of its own, but a factor of 1.
    assert!(near.holds(0.03, Some(0.0)) && !near.holds(0.031, Some(0.0)));
    let row = statement(near, published, -0.1);
    assert_eq!(row.rel_error, Some(significant(0.064 / 0.836)));
    assert_eq!((row.tolerance, row.pass), (Some(0.03), Some(false)));
}

#[test]
fn a_bound_holds_up_to_itself() {
    let (least, most) = (Bound::AtLeast(1.33), Bound::AtMost(1.33));
    assert!(least.holds(1.33, None) && least.holds(2.0, None) && !least.holds(1.3299, None));
    assert!(most.holds(1.33, None) && most.holds(-2.0, None) && !most.holds(1.3301, None));
    assert_eq!(least.words("ratio"), "at least 1.33");
    assert_eq!(most.words("ratio"), "at most 1.33");
    assert_eq!(
        Bound::near(Kind::Drive, "lat_p95_us", 0.0).words("ratio"),
        "within 5 %"
    );
    // A published size beside a bound is shown, and its error with it.
    let row = statement(least, Some(1.5), 1.4);
    assert_eq!((row.pass, row.tolerance), (Some(true), None));
    assert_eq!(row.rel_error, Some(significant(-0.1 / 1.5)));
}

#[test]
fn what_was_not_measured_does_not_hold() {
    for ours in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let near = Bound::near(Kind::Emulator, "kiops", 0.0);
        assert!(!near.holds(ours, Some(1.0)), "{ours}");
    }
    for bound in [Bound::AtLeast(0.0), Bound::AtMost(0.0)] {
        assert_eq!(statement(bound, None, f64::NAN).verdict(), Verdict::Fail);
    }
}

/// The points that a statement is about may all be within their bars.
#[test]
fn a_statement_stands_or_falls_by_itself() {
    let mut rows = vec![
        throughput(100.0, 100.0).judged(),
        throughput(100.0, 101.0).judged(),
    ];
    let pass = |rows: &[Row]| Summary::of(rows, Scope::PART, &Misfits::default()).pass();
    assert!(pass(&rows));
    rows.push(statement(Bound::AtMost(0.0), None, 0.01));
    let summary = Summary::of(&rows, Scope::PART, &Misfits::default());
    assert!(!summary.pass());
    assert_eq!((summary.failed, summary.statements.count), (1, 1));
    assert_eq!(summary.kinds.len(), 1, "a statement is no measured point");
    assert_eq!(summary.kinds[0].1.count, 2);
    // The other way round: it holds, though no point does.
    let rows = [
        throughput(100.0, 200.0).judged(),
        statement(Bound::AtMost(0.0), None, -0.01),
    ];
    assert_eq!(rows[1].verdict(), Verdict::Ok);
    assert!(!pass(&rows));
}

#[test]
fn the_error_of_a_statement_is_in_no_statistic() {
    let rows = [
        drive::drive(0.01),
        statement(Bound::near(Kind::Drive, "kiops", 0.0), Some(1.0), 9.0),
    ];
    let summary = Summary::of(&rows, Scope::PART, &Misfits::default());
    assert_eq!(summary.kinds[0].1.median_error, Some(0.01));
    assert_eq!(summary.drive.unwrap().all.values.rows, 1);
    assert_eq!(summary.statements.median_error, None);
}

/// Whatever the kind, a misfit of a point excuses no statement.
#[test]
fn a_misfit_does_not_excuse_a_statement() {
    let list = "schema = 2\n[[misfit]]\nid = 'C8'\nseries = 'check'\nmetric = 'it is so'\n\
                cause = 'c'\nevidence = 'e'\n";
    let misfits = Misfits::parse("m", list).unwrap();
    let mut rows = [statement(Bound::AtMost(0.0), None, 1.0)];
    let outdated = misfits.apply(&mut rows, Scope::PART);
    assert_eq!((rows[0].verdict(), outdated.len()), (Verdict::Fail, 1));
}

#[test]
fn what_does_not_hold_is_listed_worst_first() {
    let mut rows = vec![
        statement(Bound::AtLeast(10.0), None, 9.0),
        statement(Bound::AtMost(0.0), None, 0.5),
        statement(Bound::near(Kind::Drive, "kiops", 0.0), Some(1.0), 1.3),
        statement(Bound::AtLeast(1.0), None, 2.0),
    ];
    for (n, row) in rows.iter_mut().enumerate() {
        row.metric = format!("{n}");
    }
    let summary = Summary::of(&rows, Scope::PART, &Misfits::default());
    let found: Vec<_> = summary
        .missing
        .iter()
        .map(|one| (one.says.as_str(), one.miss.unwrap(), one.is_known))
        .collect();
    assert_eq!(
        found,
        [("1", 0.5, false), ("2", 0.3, false), ("0", 0.1, false)]
    );
}

proptest! {
    /// Who misses by more has the greater excess, on either side of a bound.
    #[test]
    fn excess_grows_with_distance(
        bound in prop_oneof![
            (-10.0..10.0f64).prop_map(Bound::AtLeast),
            (-10.0..10.0f64).prop_map(Bound::AtMost),
            Just(Bound::near(Kind::Drive, "kiops", 0.0)),
            Just(Bound::near(Kind::Drive, "lat_p95_us", 1.0)),
        ],
        published in 0.1..10.0f64, ours in -20.0..20.0f64, further in 0.01..5.0f64,
    ) {
        let excess = |ours| bound.excess(ours, Some(published));
        prop_assert_eq!(bound.holds(ours, Some(published)), excess(ours) <= 1e-9);
        let away = match bound {
            Bound::AtLeast(_) => ours - further,
            Bound::AtMost(_) => ours + further,
            Bound::Near { .. } => ours + further * if ours < published { -1.0 } else { 1.0 },
        };
        prop_assert!(excess(away) > excess(ours));
    }
}
