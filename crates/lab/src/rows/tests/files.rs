//! Rows as JSON and CSV.

use super::*;

/// The rows as JSON, with their summary.
pub(super) fn json(rows: &[Row], seed: u64) -> String {
    let summary = Summary::of(rows, Scope::PART, &Misfits::default());
    to_json(rows, &summary, seed)
}

fn sample() -> Vec<Row> {
    let mut full = p95(2056.19, 2100.0 / 3.0, 690.0, 710.0)
        .of_job("write")
        .at("zone size [KiB]", 7.0, "7KiB")
        .published_in(Some("emulator.csv:3, p95_us".to_owned()), (1.0, 1.0))
        .repeats(Some((1581.061, 2408.45)))
        .judged();
    full.misfit = Some("said \"why\", at length".to_owned());
    let bare = Row::new("C1", Kind::Shape, "a, b", ("latency", "s"), f64::NAN).judged();
    let says = ("writes lose a third", "change");
    let mut statement = Row::new("C8", Kind::Drive, "check", says, -0.1)
        .published(-0.335)
        .statement(Bound::near(Kind::Drive, "kiops", 1.0))
        .judged();
    statement.gap = Some(KnownGap {
        today: -0.1,
        cause: "not known".to_owned(),
        tried: "nothing".to_owned(),
        is_worse: false,
        is_better: false,
    });
    vec![full, bare, statement]
}

#[test]
fn json_in_full() {
    insta::assert_snapshot!(json(&sample(), 7));
}

#[test]
fn json_keys_are_the_csv_columns() {
    let json: serde_json::Value = serde_json::from_str(&json(&sample(), 0)).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let keys = row.as_object().unwrap().keys().map(String::as_str);
        let (mut keys, mut columns) = (keys.collect::<Vec<_>>(), COLUMNS.to_vec());
        keys.sort_unstable();
        columns.sort_unstable();
        assert_eq!(keys, columns);
    }
}

#[test]
fn json_keys_come_in_the_order_of_the_columns() {
    let json = json(&sample(), 0);
    let row = json
        .lines()
        .find(|line| line.starts_with("{\"id\""))
        .unwrap();
    let places = COLUMNS.map(|column| row.find(&format!("\"{column}\":")).expect(column));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn csv_in_full() {
    insta::assert_snapshot!(to_csv(&sample()));
}

#[test]
fn a_csv_cell_is_empty_where_nothing_was_judged() {
    let rows = [
        throughput(1.0, 1.0).shown("because").judged(),
        throughput(1.0, 1.0).judged(),
        drive::drive(0.5),
    ];
    let csv = to_csv(&rows);
    let column = |name| COLUMNS.iter().position(|column| *column == name).unwrap();
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        ["verdict", "counts", "pass", "reason"].map(|name| cells[column(name)].to_owned())
    };
    let found: Vec<_> = csv.lines().skip(1).map(cells).collect();
    assert_eq!(
        found,
        [
            ["info", "false", "", "because"],
            ["ok", "true", "true", ""],
            ["joint", "true", "", ""]
        ]
    );
}
