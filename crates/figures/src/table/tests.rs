//! Layout and number formats.

use proptest::prelude::*;

use super::*;

const PLAIN: Style = Style {
    width: None,
    colour: None,
};

#[test]
fn numbers_have_four_significant_digits() {
    let cases = [
        (0.0, "0"),
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
fn missing_and_surplus_cells_do_no_harm() {
    let mut table = Table::new([Column::word("a"), Column::number("b")]);
    table.push(["1".into()]);
    table.push(["1".into(), "2".into(), "3".into()]);
    assert_eq!(table.to_text(&PLAIN), "a  b\n1\n1  2\n");
    assert_eq!(Table::default().to_text(&PLAIN), "");
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
        let text = table.to_text(&Style { width: Some(width), colour: None });
        for line in text.lines() {
            prop_assert!(line.width() <= width, "{line:?}");
            prop_assert!(!line.ends_with(' '));
        }
    }
}

#[test]
fn long_times_are_in_units_that_people_read() {
    let texts = [0.5, 9_999.0, 10_000.0, 733_000.0, 1.21e7, -2e7].map(microseconds);
    let expected = [
        "0.5000", "9999", "10.00 ms", "733.0 ms", "12.10 s", "-20.00 s",
    ];
    assert_eq!(texts, expected);
    assert_eq!(microseconds(f64::NAN), "-");
    assert_eq!(microseconds(f64::INFINITY), "-");
}

#[test]
fn wide_and_coloured_cells_stand_under_their_headings() {
    let mut table = Table::new([
        Column::word("name"),
        Column::number("x"),
        Column::text("of"),
    ]);
    let red = Cell::from("区域").coloured(Colour::Red);
    table.push([red, "1".into(), "a long text".into()]);
    let style = Style {
        width: Some(17),
        colour: Some(Mark(7)),
    };
    assert_eq!(
        table.to_text(&style),
        "\u{1b}[0000000000000007:2mname\u{1b}[0000000000000007:0m  \u{1b}[0000000000000007:2mx\u{1b}[0000000000000007:0m  \u{1b}[0000000000000007:2mof\u{1b}[0000000000000007:0m\n\
         \u{1b}[0000000000000007:31m区域\u{1b}[0000000000000007:0m  1  a long …\n",
    );
}
