//! Layout, number formats and the comparison table.

use super::*;
use crate::rows::{Kind, Misfits, UNIT_M};
use proptest::prelude::*;

const PLAIN: Style = Style {
    width: None,
    colour: false,
};

fn rows() -> Vec<Row> {
    let row = |id, series, x: f64, metric, published, ours| {
        Row::new(id, Kind::Emulator, series, metric, ours)
            .at("concurrency", x)
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
        "schema = 1\n[[misfit]]\nid = 'C10b'\nseries = 'finish, 16 KiB'\n\
         metric = 'throughput'\ncause = 'c'\nevidence = 'e'\n",
    );
    assert!(misfits.unwrap().apply(&mut rows).is_empty());
    rows
}

#[test]
fn a_comparison_in_full() {
    insta::assert_snapshot!(comparison(&rows(), &PLAIN));
}

#[test]
fn a_narrow_terminal_cuts_texts_but_no_numbers() {
    let style = Style {
        width: Some(72),
        colour: false,
    };
    let text = comparison(&rows(), &style);
    assert!(
        text.lines().all(|line| line.chars().count() <= 72),
        "{text}"
    );
    assert!(text.contains('…') && text.contains("50.29") && text.contains("MISFIT"));
}

#[test]
fn an_absurdly_narrow_terminal_still_shows_the_numbers() {
    let text = comparison(
        &rows(),
        &Style {
            width: Some(3),
            colour: false,
        },
    );
    assert!(text.contains("50.29"));
}

#[test]
fn colour_changes_nothing_but_escapes() {
    let coloured = comparison(
        &rows(),
        &Style {
            width: None,
            colour: true,
        },
    );
    assert!(coloured.contains("\u{1b}[31mFAIL\u{1b}[0m"));
    assert!(coloured.contains("\u{1b}[33mMISFIT\u{1b}[0m"));
    let mut stripped = String::new();
    for (n, part) in coloured.split('\u{1b}').enumerate() {
        stripped.push_str(if n == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        });
    }
    assert_eq!(stripped, comparison(&rows(), &PLAIN));
}

#[test]
fn real_drive_rows_show_their_common_bar() {
    let row = |ours| {
        Row::new("C2a", Kind::Drive, "s", ("P95", "us"), ours)
            .published(100.0)
            .judged()
    };
    let text = comparison(&[row(101.0), row(140.0)], &PLAIN);
    // Each bar by itself, and who is beyond.
    for line in [
        "bar: median of all rows at most 5 %: DOES NOT HOLD with 20.5 %",
        "bar: P90 of all rows at most 15 %: DOES NOT HOLD with 40.0 %",
        "1 of 2 rows are further off than 15 %:",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let text = comparison(&[row(101.0), row(102.0), row(116.0)], &PLAIN);
    assert!(text.contains("at most 5 %: HOLDS with 2.0 %"), "{text}");
    assert!(
        text.contains("at most 15 %: DOES NOT HOLD with 16.0 %"),
        "{text}"
    );
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("C2a") && last.ends_with("not known"),
        "{text}"
    );
}

#[test]
fn an_empty_comparison_is_one_line() {
    assert_eq!(comparison(&[], &PLAIN), "all: 0 rows\n");
}

#[test]
fn numbers_have_four_significant_digits() {
    let cases = [
        (0.0, "0.000"),
        (5.7021, "5.702"),
        (9.9996, "10.00"),
        (99.996, "100.0"),
        (2056.19, "2056"),
        (12_345.6, "12350"),
        (11_853_700.0, "1.185e7"),
        (0.020_328, "0.02033"),
        (0.138, "0.1380"),
        (0.000_05, "5.000e-5"),
        (-1.5, "-1.500"),
        (f64::NAN, "-"),
    ];
    for (value, text) in cases {
        assert_eq!(number(value), text);
    }
}

#[test]
fn errors_have_a_sign() {
    assert_eq!(percent(0.0123), "+1.2 %");
    assert_eq!(percent(-0.3), "-30.0 %");
    assert_eq!(percent(-0.0001), "0.0 %");
}

#[test]
fn texts_cannot_steer_the_terminal() {
    let row = Row::new("C1", Kind::Shape, "a\u{1b}[2J\nb\u{9b}", ("m", ""), 1.0).judged();
    let text = comparison(&[row], &PLAIN);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}') && text.contains("a [2J b"));
}

#[test]
fn missing_and_surplus_cells_do_no_harm() {
    let mut table = Table::new([Column::word("a"), Column::number("b")]);
    table.push(["1".into()]);
    table.push(["1".into(), "2".into(), "3".into()]);
    assert_eq!(table.to_text(&PLAIN), "a  b\n1\n1  2\n");
    assert_eq!(Table::default().to_text(&PLAIN), "\n");
}

proptest! {
    #[test]
    fn lines_fit_if_the_columns_can_be_cut(
        cells in prop::collection::vec(any::<(String, String)>(), 0..6), width in 18_usize..60,
    ) {
        let mut table = Table::new([Column::text("first"), Column::text("second")]);
        for (a, b) in cells {
            table.push([a.into(), b.into()]);
        }
        let text = table.to_text(&Style { width: Some(width), colour: false });
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{line:?}");
            prop_assert!(!line.ends_with(' '));
        }
    }
}
