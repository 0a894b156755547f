//! The list of what is known not to come out.

use super::*;

const LIST: &str = r#"
schema = 2

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

[[gap]]
id = "C8"
says = "it loses a third"
today = -0.1
cause = "not known"
tried = "docs"
"#;

fn list(text: &str) -> Misfits {
    Misfits::parse("m.toml", text).unwrap()
}

fn c10b(concurrency: f64, ours: f64) -> Row {
    let metric = ("throughput", "KIOPS");
    Row::new("C10b", Kind::Emulator, "finish, 16 KiB", metric, ours)
        .at("concurrency", concurrency, &concurrency.to_string())
        .published(50.3)
        .judged()
}

const WHOLE: Scope = Scope {
    quick: false,
    whole: true,
};

#[test]
fn a_listed_row_is_a_misfit_and_does_not_fail() {
    let misfits = list(LIST);
    let mut rows = vec![c10b(64.0, 56.0), c10b(32.0, 50.0)];
    assert_eq!(misfits.apply(&mut rows, Scope::PART), []);
    assert_eq!(rows[0].verdict(), Verdict::Misfit);
    assert_eq!(
        rows[0].pass,
        Some(false),
        "the file still says that it misses its bar"
    );
    let why = "The stated mechanism gives more. Evidence: Four dies, one program in two.";
    assert_eq!(rows[0].reason().as_deref(), Some(why));
    assert_eq!(rows[1].verdict(), Verdict::Ok);
    let summary = Summary::of(&rows, Scope::PART, &misfits);
    let (_, stats) = &summary.kinds[0];
    assert!(summary.pass() && stats.of_verdict(Verdict::Misfit) == 1);
    assert!(
        stats.p90_error.unwrap() > 0.1,
        "misfits count in the statistics"
    );
}

#[test]
fn an_entry_that_explains_nothing_is_reported() {
    let misfits = list(LIST);
    let outdated = misfits.apply(&mut [c10b(64.0, 50.3)], Scope::PART);
    let [one] = outdated.as_slice() else {
        panic!("C2a and C8 were not run: {outdated:?}");
    };
    let text = "misfit C10b, finish, 16 KiB, 64, throughput is not needed: the rows meet their bar";
    assert_eq!(one.to_string(), text);
    let mut rows = [c10b(32.0, 99.0)];
    // It may be a row of another file.
    assert_eq!(misfits.apply(&mut rows.clone(), Scope::PART), []);
    let outdated = misfits.apply(&mut rows, WHOLE);
    assert!(outdated[0].to_string().ends_with("there is no such row"));
    assert_eq!(
        rows[0].verdict(),
        Verdict::Fail,
        "another point is not excused"
    );
}

#[test]
fn a_range_names_its_points() {
    let misfits = list(&LIST.replace("x = 64", "x = \"3..=7\""));
    let verdict = |x| {
        let mut rows = [c10b(x, 99.0)];
        let _ = misfits.apply(&mut rows, Scope::PART);
        rows[0].verdict()
    };
    for (x, expected) in [
        (2.0, Verdict::Fail),
        (2.99999, Verdict::Fail),
        (3.0, Verdict::Misfit),
        (5.5, Verdict::Misfit),
        (7.0, Verdict::Misfit),
        (7.00001, Verdict::Fail),
        (8.0, Verdict::Fail),
    ] {
        assert_eq!(verdict(x), expected, "{x}");
    }
    let outdated = misfits.apply(&mut [c10b(9.0, 99.0)], WHOLE);
    assert!(
        outdated[0].to_string().contains("3 to 7"),
        "{}",
        outdated[0]
    );
    // Rows have six digits; who writes more of them means the same point.
    let precise = list(&LIST.replace("x = 64", "x = 33.333333333"));
    let mut rows = [c10b(100.0 / 3.0, 99.0)];
    assert_eq!(precise.apply(&mut rows, Scope::PART), []);
}

/// A cause names the points that it is about.
#[test]
fn an_entry_without_x_is_for_rows_without() {
    let misfits = list(&LIST.replace("x = 64\n", ""));
    let mut rows = [c10b(64.0, 99.0)];
    assert_eq!(misfits.apply(&mut rows, WHOLE).len(), 1);
    assert_eq!(rows[0].verdict(), Verdict::Fail);
    rows[0].x = None;
    assert_eq!(misfits.apply(&mut rows, Scope::PART), []);
    assert_eq!(rows[0].verdict(), Verdict::Misfit);
    // Nor does one with x explain a row that has none.
    let mut rows = [Row {
        x: None,
        ..c10b(64.0, 99.0)
    }];
    assert_eq!(list(LIST).apply(&mut rows, WHOLE).len(), 1);
}

fn message(text: &str) -> String {
    Misfits::parse("m.toml", text).unwrap_err().to_string()
}

#[test]
fn errors_in_the_list_say_where() {
    let unknown = message(&LIST.replacen("evidence", "evidance", 1));
    assert!(
        unknown.starts_with("m.toml: ") && unknown.contains("evidance"),
        "{unknown}"
    );
    assert!(unknown.contains("line 10"), "{unknown}");
    let empty = message(&LIST.replace("\"c\"", "\" \""));
    assert!(
        empty.starts_with("m.toml:12:") && empty.contains("`cause`"),
        "{empty}"
    );
    let empty = message(&LIST.replace("\"docs\"", "\"\""));
    assert!(
        empty.starts_with("m.toml:19:") && empty.contains("`tried`"),
        "{empty}"
    );
    let figure = message(&LIST.replace("today = -0.1\n", ""));
    assert!(
        figure.starts_with("m.toml:19:") && figure.contains("`today`, `quick`"),
        "{figure}"
    );
    let figure = message(&LIST.replace("today = -0.1\n", "today = nan\n"));
    assert!(figure.starts_with("m.toml:19:"), "{figure}");
    let gap = &LIST[LIST.find("[[gap]]").unwrap()..];
    let twice = message(&format!("{LIST}{gap}"));
    assert!(
        twice.starts_with("m.toml:25:") && twice.contains("second entry for C8"),
        "{twice}"
    );
    let wrong = message(&LIST.replace("x = 64", "x = \"7..=3\""));
    assert!(
        wrong.contains("3..=7") && wrong.contains("line 7"),
        "{wrong}"
    );
    for x in ["\"3..7\"", "\"\"", "inf", "\"nan..=3\"", "true"] {
        let wrong = message(&LIST.replace("x = 64", &format!("x = {x}")));
        assert!(wrong.contains("line 7"), "{x}: {wrong}");
    }
    assert!(message("schema = 1").contains("schema 1"));
    assert!(message("").contains("schema"));
    assert_eq!(list("schema = 2").entries(), []);
}

#[test]
fn two_entries_for_one_point_are_refused() {
    let second = |x: &str| {
        let text = LIST.replace("\"C2a\"", "\"C10b\"");
        text.replace("\"s\"", &format!("\"finish, 16 KiB\"{x}"))
    };
    for x in [
        "\nx = 64",
        "\nx = 64.0",
        "\nx = \"1..=64\"",
        "\nx = \"64..=65\"",
    ] {
        let wrong = message(&second(x));
        assert!(
            wrong.starts_with("m.toml:12: a second entry"),
            "{x}: {wrong}"
        );
    }
    for x in ["", "\nx = 63", "\nx = \"1..=63\""] {
        assert_eq!(list(&second(x)).entries().len(), 2, "{x}");
    }
    let ranges = second("\nx = \"1..=63\"").replace("x = 64", "x = \"63..=64\"");
    assert!(message(&ranges).contains("a second entry"));
}

fn loses(ours: f64) -> Row {
    Row::new(
        "C8",
        Kind::Drive,
        "check",
        ("it loses a third", "change"),
        ours,
    )
    .published(-0.335)
    .statement(Bound::near(Kind::Drive, "kiops", 1.0))
    .judged()
}

/// The verdict of the statement with our figure `ours`, and what the list needs.
fn ratchet(misfits: &Misfits, scope: Scope, ours: f64) -> (Verdict, String, bool) {
    let mut rows = [loses(ours)];
    let outdated = misfits.apply(&mut rows, scope);
    assert!(outdated.len() <= 1, "{outdated:?}");
    let text = outdated
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let pass = Summary::of(&rows, scope, misfits).pass();
    assert_eq!(pass, rows[0].verdict() != Verdict::Fail);
    (rows[0].verdict(), text, pass)
}

#[test]
fn a_gap_is_a_ratchet() {
    let misfits = list(LIST);
    let of = |ours| ratchet(&misfits, Scope::PART, ours);
    let missed = (Verdict::Missed, String::new(), true);
    let fail = (Verdict::Fail, String::new(), false);
    assert_eq!(of(-0.1), missed);
    // The list has three digits.
    assert_eq!((of(-0.1004), of(-0.0996)), (missed.clone(), missed));
    assert_eq!(of(-0.099), fail, "it got worse");
    assert_eq!(of(f64::NAN), fail);
    // Too much on the other side of the published size is as bad.
    assert_eq!(of(-0.58), fail);
    let (verdict, text, _) = of(-0.2);
    assert_eq!(verdict, Verdict::Missed);
    assert!(
        text.contains("got better: state the new figure, -0.2"),
        "{text}"
    );
    let (verdict, text, _) = of(-0.33);
    assert_eq!(verdict, Verdict::Ok);
    assert!(text.ends_with("is not needed: it holds"), "{text}");
    // What is not in the list fails.
    assert_eq!(ratchet(&Misfits::default(), Scope::PART, -0.1), fail);
    let other = list(&LIST.replace("it loses a third", "it loses"));
    // The statement may be in another file.
    assert_eq!(ratchet(&other, Scope::PART, -0.1).1, "");
    let (verdict, text, _) = ratchet(&other, WHOLE, -0.1);
    assert_eq!(verdict, Verdict::Fail);
    assert!(text.ends_with("there is no such statement"), "{text}");
}

#[test]
fn quick_runs_have_figures_of_their_own() {
    let quick = Scope {
        quick: true,
        ..Scope::PART
    };
    let both = list(&LIST.replace("today = -0.1", "today = -0.1\nquick = -0.05"));
    assert_eq!(ratchet(&both, quick, -0.05).0, Verdict::Missed);
    assert_eq!(ratchet(&both, quick, -0.02).0, Verdict::Fail);
    assert_eq!(ratchet(&both, Scope::PART, -0.05).0, Verdict::Fail);
    assert!(ratchet(&both, quick, -0.1).1.contains("got better"));
    // Without a figure, it holds there.
    let whole = list(LIST);
    assert_eq!(ratchet(&whole, quick, -0.1).0, Verdict::Fail);
    assert_eq!(
        ratchet(&whole, quick, -0.335),
        (Verdict::Ok, String::new(), true)
    );
    let only_quick = list(&LIST.replace("today", "quick"));
    assert_eq!(ratchet(&only_quick, quick, -0.1).0, Verdict::Missed);
    assert_eq!(ratchet(&only_quick, Scope::PART, -0.1).0, Verdict::Fail);
    assert_eq!(ratchet(&only_quick, Scope::PART, -0.335).1, "");
}

#[test]
fn what_a_quick_run_leaves_out_is_not_outdated() {
    let misfits = list(LIST);
    let mut rows = [Row {
        id: "C8".to_owned(),
        ..c10b(1.0, 50.3)
    }];
    let quick = Scope {
        quick: true,
        ..Scope::PART
    };
    assert_eq!(misfits.apply(&mut rows, quick), []);
    let outdated = misfits.apply(&mut rows, WHOLE);
    assert!(
        matches!(outdated.as_slice(), [Outdated::NoStatement { .. }]),
        "{outdated:?}"
    );
}

#[test]
fn an_altered_run_knows_no_gaps() {
    let mut rows = [loses(-0.1)];
    let _ = list(LIST).apply(&mut rows, Scope::PART);
    let row = rows[0].clone().shown("settings differ");
    assert_eq!((row.verdict(), row.pass), (Verdict::Info, None));
    assert_eq!(row.reason().as_deref(), Some("settings differ"));
}

#[test]
fn a_bar_is_a_ratchet_too() {
    let whole = |quick| Scope { quick, whole: true };
    let says = "throughput, mean latency and M together: median error at most 3 %";
    let rows = |error: f64| [drive::drive(error), drive::drive(error)];
    let found = |figures: &str, scope, error| {
        let text = format!(
            "schema = 2\n[[gap]]\nid = 'D'\nsays = '{says}'\n{figures}\ncause = 'c'\ntried = 't'\n"
        );
        let misfits = list(&text);
        let mut rows = rows(error);
        assert_eq!(misfits.apply(&mut rows, scope), []);
        let summary = Summary::of(&rows, scope, &misfits);
        let drive = summary.drive.as_ref().unwrap();
        let outdated = misfits.outdated_bars(drive, scope);
        let text = outdated
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        (summary.pass(), text)
    };
    let holds = |result: (bool, String)| result == (true, String::new());
    assert!(holds(found("today = 0.05", whole(false), 0.05)));
    assert_eq!(
        found("today = 0.05", whole(false), 0.052),
        (false, String::new())
    );
    let (pass, text) = found("today = 0.05", whole(false), 0.04);
    assert!(
        pass && text.contains("got better: state the new figure, 0.04"),
        "{text}"
    );
    let (pass, text) = found("today = 0.05", whole(false), 0.02);
    assert!(pass && text.ends_with("it holds"), "{text}");
    assert_eq!(
        found("quick = 0.05", whole(false), 0.05),
        (false, String::new())
    );
    assert!(holds(found("quick = 0.05", whole(true), 0.05)));
    // Of a part of the figures, a bar says nothing.
    assert!(holds(found("today = 0.05", Scope::PART, 0.08)));
    assert!(holds(found("today = 0.05", Scope::PART, 0.01)));

    let other =
        list("schema = 2\n[[gap]]\nid = 'D'\nsays = 'x'\ntoday = 1\ncause = 'c'\ntried = 't'\n");
    let summary = Summary::of(&rows(0.01), whole(false), &other);
    let outdated = other.outdated_bars(summary.drive.as_ref().unwrap(), whole(false));
    assert!(matches!(
        outdated.as_slice(),
        [Outdated::NoStatement { .. }]
    ));
}

/// A cause that says why ours is higher is none of a value that is lower.
#[test]
fn a_misfit_explains_one_side_if_it_says_which() {
    let side =
        |ours: &str| list(&LIST.replacen("cause =", &format!("ours = \"{ours}\"\ncause ="), 1));
    for (known, ours, verdict) in [
        ("higher", 56.0, Verdict::Misfit),
        ("lower", 56.0, Verdict::Fail),
        ("higher", 40.0, Verdict::Fail),
        ("lower", 40.0, Verdict::Misfit),
    ] {
        let mut rows = vec![c10b(64.0, ours)];
        let outdated = side(known).apply(&mut rows, Scope::PART);
        assert_eq!(rows[0].verdict(), verdict, "{known} {ours}");
        let says: Vec<_> = outdated.iter().map(ToString::to_string).collect();
        assert_eq!(
            says.len(),
            usize::from(verdict == Verdict::Fail),
            "{says:?}"
        );
        assert!(
            says.iter().all(|says| says.contains("which it is not")),
            "{says:?}"
        );
    }
    assert!(
        Misfits::parse(
            "m.toml",
            &LIST.replacen("cause =", "ours = \"more\"\ncause =", 1)
        )
        .is_err()
    );
}

/// The same of gaps, whose list has a figure: ours on its other side has a cause that is not known.
#[test]
fn a_gap_explains_the_side_of_its_figure() {
    let text = LIST.replace(
        "today = -0.1\n",
        "today = -0.1\nquick = -0.5\nquick_cause = \"short\"\n",
    );
    let misfits = list(&text);
    let gap = misfits.gap("C8", "it loses a third").unwrap();
    assert!(gap.is_on_both_sides(-0.33) && !gap.is_on_both_sides(-0.05));
    let bound = Bound::near(Kind::Drive, "kiops", 1.0);
    let cause = |scope, ours| gap.of(scope, bound, ours, Some(-0.33)).unwrap().cause;
    assert_eq!(cause(Scope::PART, -0.1), "not known");
    assert_eq!(
        cause(
            Scope {
                quick: true,
                ..Scope::PART
            },
            -0.5
        ),
        "short"
    );
    assert!(
        cause(Scope::PART, -0.6).contains("other side"),
        "{}",
        cause(Scope::PART, -0.6)
    );
}
