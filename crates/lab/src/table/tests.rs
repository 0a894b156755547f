//! Layout, number formats and the comparison table.

use super::*;
use crate::rows::{Bound, Kind, Misfits, Scope, UNIT_M};

const PLAIN: Style = Style {
    width: None,
    colour: None,
};

fn rows() -> Vec<Row> {
    let row = |id, series, x: f64, metric, published, ours| {
        Row::new(id, Kind::Emulator, series, metric, ours)
            .at("concurrency", x, &x.to_string())
            .published(published)
    };
    let kiops = ("throughput", "KIOPS");
    let mut rows = vec![
        row("C10a", "alone", 1.0, kiops, 1.36115, 1.3605).judged(),
        row("C10a", "alone", 7.0, kiops, 5.7021, 5.9).judged(),
        row("C10a", "alone", 6.0, ("P95", "us"), 1433.6, 1500.0)
            .bracket(1400.0, 1600.0)
            .judged(),
        row("C10b", "finish, 16 KiB", 64.0, kiops, 50.2933, 56.12).judged(),
        Row::new(
            "CM",
            Kind::Emulator,
            "worked example",
            ("M^Inter", UNIT_M),
            1.38,
        )
        .published(1.38)
        .judged(),
        Row::new("C1", Kind::Shape, "drive A", ("finish latency", "s"), 0.907).judged(),
    ];
    let misfits = Misfits::parse(
        "m",
        "schema = 2\n[[misfit]]\nid = 'C10b'\nseries = 'finish, 16 KiB'\nx = 64\n\
         metric = 'throughput'\ncause = 'c'\nevidence = 'e'\n",
    );
    assert!(misfits.unwrap().apply(&mut rows, Scope::PART).is_empty());
    rows.extend(statements());
    rows
}

/// Statements: one that holds, one with a long sentence, one of a change.
fn statements() -> Vec<Row> {
    let row = |id, says, unit, bound, ours| {
        Row::new(id, Kind::Drive, "check", (says, unit), ours).statement(bound)
    };
    let near = Bound::near(Kind::Drive, "kiops", 1.0);
    let long = "with 256 KiB, seven writers beside a finish lose more than with any smaller \
                granularity that the authors tried, at every depth";
    let mut statements = vec![
        row("C1", "a finish is free", "ratio", Bound::AtMost(1.1), 1.02).judged(),
        row("C8", long, "change", near, -0.081)
            .published(-0.335)
            .judged(),
        row("C8", "a third", "kiops", Bound::AtLeast(1.33), 1.1).judged(),
    ];
    let list = format!(
        "schema = 2\n[[gap]]\nid = 'C8'\nsays = '{long}'\ntoday = -0.081\n\
         cause = 'not known'\ntried = 't'\n"
    );
    let misfits = Misfits::parse("m", &list).unwrap();
    assert!(misfits.apply(&mut statements, Scope::PART).is_empty());
    statements
}

fn summary(rows: &[Row]) -> Summary {
    Summary::of(rows, Scope::PART, &Misfits::default())
}

/// The rows and what they come to, as the command prints them.
fn both(rows: &[Row], style: &Style) -> String {
    let summary = summary(rows);
    comparison(rows, &summary, style) + &page(rows, &summary, style)
}

#[test]
fn a_comparison_in_full() {
    insta::assert_snapshot!(comparison(&rows(), &summary(&rows()), &PLAIN));
}

#[test]
fn a_page_in_full() {
    let mut rows = rows();
    rows.extend([("kiops", 101.0), ("kiops", 140.0), ("lat_p99_us", 104.0)].map(of_drive));
    insta::assert_snapshot!(page(&rows, &summary(&rows), &PLAIN));
}

#[test]
fn a_document_in_full() {
    let mut rows = rows();
    rows[0].series = "a | b".to_owned();
    rows[7].metric = "a | b".to_owned();
    let whole = Scope {
        quick: false,
        whole: true,
    };
    rows.extend([("kiops", 101.0), ("kiops", 140.0), ("lat_p99_us", 104.0)].map(of_drive));
    insta::assert_snapshot!(markdown(&Summary::of(&rows, whole, &Misfits::default())));
}

/// Rows of three papers: points and statements that match, miss with and without a cause, and
/// fail; of a real drive, near and far.
fn of_papers() -> Vec<Row> {
    let mut all = rows();
    all.extend([("kiops", 101.0), ("kiops", 140.0), ("lat_p99_us", 104.0)].map(of_drive));
    let point = |id, ours| {
        Row::new(id, Kind::Emulator, "s", ("lat_p99_us", "us"), ours)
            .published(100.0)
            .judged()
    };
    all.extend([101.0, 180.0, 190.0, 200.0, 210.0].map(|ours| point("S3a", ours)));
    all.push(point("P2", 102.0));
    all
}

#[test]
fn an_overview_in_full() {
    let rows = of_papers();
    let whole = Scope {
        quick: false,
        whole: true,
    };
    let summary = Summary::of(&rows, whole, &Misfits::default());
    insta::assert_snapshot!(overview(&rows, &summary, &PLAIN));
}

#[test]
fn an_overview_fits_a_small_terminal() {
    let style = Style {
        width: Some(80),
        colour: None,
    };
    let rows = of_papers();
    let text = overview(&rows, &summary(&rows), &style);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.lines().count() <= 20, "{text}");
    assert!(
        text.contains("explained, ") && text.contains("FAIL: 3 more rows"),
        "{text}"
    );
}

fn of_drive((metric, ours): (&str, f64)) -> Row {
    Row::new("C2a", Kind::Drive, "s", (metric, "us"), ours)
        .published(100.0)
        .judged()
}

#[test]
fn a_narrow_terminal_cuts_texts_but_no_numbers() {
    let style = Style {
        width: Some(72),
        colour: None,
    };
    let mut rows = rows();
    rows.push(of_drive(("kiops", 140.0)));
    let text = both(&rows, &style);
    assert!(
        text.lines().all(|line| line.chars().count() <= 72),
        "{text}"
    );
    assert!(text.contains('…') && text.contains("50.29") && text.contains("MISFIT"));
}

#[test]
fn of_a_long_statement_the_sentence_is_cut() {
    for width in [80, 100, 120] {
        let style = Style {
            width: Some(width),
            colour: None,
        };
        let text = both(&statements(), &style);
        let of_c8 = |line: &&str| line.starts_with("C8") && line.ends_with("MISSED");
        let lines: Vec<_> = text.lines().filter(of_c8).collect();
        assert_eq!(lines.len(), 2, "in the rows and on the page: {text}");
        for line in lines {
            assert!(line.chars().count() <= width, "{line}");
            for value in ["…", "-33.5 %", "-8.1 %", "within 3 %"] {
                assert!(line.contains(value), "{width}: {line}");
            }
        }
    }
}

#[test]
fn an_absurdly_narrow_terminal_still_shows_the_numbers() {
    let style = Style {
        width: Some(3),
        colour: None,
    };
    let text = both(&rows(), &style);
    assert!(text.contains("50.29") && text.contains("-33.5 %"), "{text}");
}

#[test]
fn colour_changes_nothing_but_escapes() {
    let style = Style {
        width: None,
        colour: Some(Mark(7)),
    };
    let coloured = both(&rows(), &style);
    for word in ["31mFAIL", "33mMISFIT", "33mMISSED", "32mok"] {
        assert!(
            coloured.contains(&format!("\u{1b}[{}{word}", Mark(7))),
            "{word}"
        );
    }
    let mut stripped = String::new();
    for (n, part) in coloured.split('\u{1b}').enumerate() {
        stripped.push_str(if n == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        });
    }
    assert_eq!(stripped, both(&rows(), &PLAIN));
}

#[test]
fn a_drive_shows_its_bars() {
    let of = |metric, ours: &[f64], whole| {
        let rows: Vec<_> = ours.iter().map(|ours| of_drive((metric, *ours))).collect();
        let scope = Scope {
            quick: false,
            whole,
        };
        let summary = Summary::of(&rows, scope, &Misfits::default());
        page(&rows, &summary, &PLAIN)
    };
    // Each bar by itself, and who is beyond.
    let text = of("lat_p95_us", &[101.0, 140.0], true);
    for line in [
        "bar: percentiles of latency: median error at most 5 %: FAIL, 20.5 %",
        "bar: percentiles of latency: P90 error at most 15 %: FAIL, 40.0 %",
        "figures that miss the bars for percentiles of latency alone: C2a",
        "1 of 2 rows are further off than nine of ten may be:",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("not all were run"), "{text}");
    let text = of("kiops", &[101.0, 102.0, 116.0], false);
    let together = "bar: throughput, mean latency and M together";
    for line in [
        format!("{together}: median error at most 3 %: holds, 2.0 %"),
        format!("{together}: P90 error at most 9 %: MISSED, 16.0 %"),
        "not all were run".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn kinds_are_never_mixed() {
    let mut rows = rows();
    rows.push(of_drive(("kiops", 140.0)));
    let text = page(&rows, &summary(&rows), &PLAIN);
    for start in ["kind E, ", "kind D, ", "kind S, ", "statements: 3"] {
        assert_eq!(
            text.lines().filter(|line| line.starts_with(start)).count(),
            1,
            "{start}"
        );
    }
    let shown = text
        .lines()
        .find(|line| line.starts_with("kind S"))
        .unwrap();
    assert!(!shown.contains("error"), "{shown}");
}

#[test]
fn nothing_comes_to_nothing() {
    assert_eq!(both(&[], &PLAIN), "");
    assert_eq!(markdown(&summary(&[])), "");
}

#[test]
fn texts_cannot_steer_the_terminal() {
    let row = Row::new("C1", Kind::Shape, "a\u{1b}[2J\nb\u{9b}", ("m", ""), 1.0).judged();
    let text = both(&[row], &PLAIN);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}') && text.contains("a [2J b"));
}

/// The lines of the only table of rows.
fn lines_of(rows: &[Row]) -> Vec<String> {
    let text = comparison(rows, &summary(rows), &PLAIN);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_table_without_published_values_has_no_columns_for_them() {
    let row = |x: f64| {
        Row::new("mine", Kind::Shape, "s", ("lat_mean_us", "us"), 85.0)
            .at("depth", x, &x.to_string())
            .judged()
    };
    let mut rows = vec![row(1.0), row(2.0)];
    let lines = lines_of(&rows);
    assert_eq!(lines[0], "id    series  depth  metric             ours");
    assert_eq!(lines[1], "mine  s           1  lat_mean_us (us)  85.00");
    rows.push(row(3.0).published(100.0).judged());
    let lines = lines_of(&rows);
    assert!(
        lines[0].contains("published") && lines[0].contains("error"),
        "{}",
        lines[0]
    );

    let holds = Row::new("mine", Kind::Shape, "check", ("it is", "ratio"), 2.0);
    let lines = lines_of(&[holds.statement(Bound::AtLeast(1.0)).judged()]);
    assert!(!lines[0].contains("published"), "{}", lines[0]);
    assert!(lines[1].ends_with("ok"), "{}", lines[1]);
}

#[test]
fn long_times_of_rows_are_in_units_that_people_read() {
    let row = Row::new("mine", Kind::Shape, "s", ("lat_max_us", "us"), 1.21e7);
    assert!(lines_of(&[row.published(1.2e7).judged()])[1].contains("12.00 s  12.10 s"));
}
