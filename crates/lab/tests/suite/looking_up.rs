//! Published values: from a table or the file, with repeats, and mistakes.

use zonelab_lab::experiment::{AxisValue, Experiment};
use zonelab_lab::library;
use zonelab_lab::published::{CellPlace, LookupError, Published, References};

use super::support::{SMALL, parse, with};

fn references() -> References {
    References::builtin().expect("sound tables")
}

fn builtin(id: &str) -> Experiment {
    Experiment::parse(id, library::text(id).expect("it is built in"), &[], None).expect("sound")
}

fn at(number: u32) -> AxisValue {
    AxisValue {
        text: number.to_string(),
        number: f64::from(number),
        is_bare: true,
    }
}

fn place(file: &str, line: usize, column: &str) -> Option<CellPlace> {
    Some(CellPlace {
        file: file.to_owned(),
        line,
        column: column.to_owned(),
    })
}

/// The value of a metric of a built-in series.
fn value(id: &str, series: &str, x: &AxisValue, metric: &str) -> Option<Published> {
    let experiment = builtin(id);
    let series = experiment
        .series
        .iter()
        .find(|spec| spec.name == series)
        .expect("it is there");
    references()
        .value(series, "write alone", x, metric)
        .expect("a sound look-up")
}

/// Seven writers alone, 16 KiB: four runs of the authors.
#[test]
fn a_point_has_the_spread_of_its_repeats() {
    let found = value("C10a", "no finish", &at(7), "lat_p95_us");
    assert_eq!(
        found,
        Some(Published {
            value: 2056.19,
            written: (2056.19, 1.0),
            spread: Some((1581.06, 2408.45)),
            place: place("confznspp/emulator", 45, "lat_p95_us")
        })
    );
    let found = value("C11a", "no reset", &at(7), "lat_p95_us");
    assert_eq!(
        found,
        Some(Published {
            value: 1826.82,
            written: (1826.82, 1.0),
            spread: Some((1581.06, 2408.45)),
            // The first of the repeats: the same measurements, counted once.
            place: place("confznspp/emulator", 45, "lat_p95_us")
        })
    );
}

#[test]
fn a_point_measured_once_has_no_spread() {
    let found = value("C10a", "256 KiB", &at(3), "kiops");
    assert_eq!(
        found,
        Some(Published {
            value: 1.92755,
            written: (1.92755, 1.0),
            spread: None,
            place: place("confznspp/emulator", 55, "kiops")
        })
    );
}

#[test]
fn what_was_not_published_is_nothing() {
    assert_eq!(
        value("C10a", "32 KiB", &at(3), "kiops"),
        None,
        "a series of ours"
    );
    assert_eq!(
        value("C10a", "256 KiB", &at(99), "kiops"),
        None,
        "a point of ours"
    );
    assert_eq!(
        value("C10a", "256 KiB", &at(3), "first_write_mean_us"),
        None,
        "a metric of ours"
    );
}

#[test]
fn a_value_in_the_file_comes_first() {
    let text = with(
        library::text("C10a").unwrap(),
        "# The designs that the authors did not build",
        "  [[series.point]]\n  x = 3\n  metric = \"kiops\"\n  value = 7\n  high = 8\n\n\
         # The designs that the authors did not build",
    );
    let experiment = parse(&text);
    let series = experiment
        .series
        .iter()
        .find(|spec| spec.name == "256 KiB")
        .unwrap();
    let found = references()
        .value(series, "write", &at(3), "kiops")
        .unwrap();
    // With its line in the file.
    let line = text.lines().position(|line| line.trim() == "value = 7");
    let found = found.unwrap();
    assert_eq!((found.value, found.spread), (7.0, Some((7.0, 8.0))));
    let place = found.place.unwrap();
    assert_eq!(
        (Some(place.line), place.column.as_str()),
        (line.map(|line| line + 1), "kiops")
    );
}

/// A point of one job does not stand for another.
#[test]
fn a_value_in_the_file_can_belong_to_one_job() {
    let experiment = builtin("C12");
    let series = experiment
        .series
        .iter()
        .find(|spec| spec.name == "lazy, repeat zone")
        .unwrap();
    let of = |job: &str| {
        references()
            .value(series, job, &at(1), "first_write_mean_us")
            .unwrap()
            .map(|p| p.value)
    };
    assert_eq!(
        (of("repeat"), of("repeat again"), of("fill")),
        (Some(733.2), Some(77_700.0), None)
    );
}

/// The small experiment with a table as the source of a series.
fn with_table(table: &str, conditions: &str, x: &str) -> Experiment {
    let published = format!(
        "jobs = [\"read\"]\n\n  [series.published]\n  table = \"{table}\"\n  where = {conditions}\n  x = \"{x}\"\n"
    );
    parse(&with(SMALL, "jobs = [\"read\"]", &published))
}

fn mistake(table: &str, conditions: &str, x: &str) -> LookupError {
    references()
        .check(&with_table(table, conditions, x))
        .expect_err("the look-up is a mistake")
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let table = "confznspp/emulator";
    let fine = with_table(
        table,
        "[\"figure=10b\", \"intensity_pct=0\", \"kind=run\"]",
        "concurrency",
    );
    assert_eq!(references().check(&fine), Ok(()));

    let says = mistake("confznspp/emulater", "[]", "concurrency").to_string();
    let expected =
        "there is no reference table \"confznspp/emulater\"; there are: confznspp/emulator, zn540";
    assert!(says.starts_with(expected), "{says}");
    let says = mistake(table, "[\"figure10b\"]", "concurrency").to_string();
    assert_eq!(says, "\"figure10b\" is no condition: write column=value");
    let says = mistake(table, "[\"figur=10b\"]", "concurrency").to_string();
    assert!(says.contains("figur"), "{says}");
    let says = mistake(table, "[\"figure=10z\"]", "concurrency").to_string();
    assert_eq!(
        says,
        "no row of \"confznspp/emulator\" answers to figure=10z"
    );
    let says = mistake(table, "[\"figure=10b\", \"intensity_pct=0\"]", "concurency").to_string();
    assert!(says.contains("concurency"), "{says}");
}

/// Reads beside finishes of two granularities: which of them is meant?
#[test]
fn ambiguous_rows_are_no_repeats() {
    let error = mistake(
        "confznspp/emulator",
        "[\"figure=10b\", \"kind=run\"]",
        "concurrency",
    );
    assert!(matches!(error, LookupError::Ambiguous { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "confznspp/emulator: lines 17, 24, 31 answer to figure=10b, kind=run at concurrency = 1; \
         one row may"
    );
}

#[test]
fn the_built_in_experiments_ask_for_what_is_there() {
    for id in library::ids() {
        assert_eq!(references().check(&builtin(id)), Ok(()), "{id}");
    }
}

/// The drive's own values of a metric of a job, as an experiment asks for them.
fn of_job(id: &str, series: &str, job: &str, x: &AxisValue, metric: &str) -> Option<f64> {
    let experiment = builtin(id);
    let series = experiment.series.iter().find(|spec| spec.name == series);
    let found = references().value(series.expect("it is there"), job, x, metric);
    found
        .expect("a sound look-up")
        .map(|published| published.value)
}

/// One row holds the foreground's values and, in other columns, the background's.
#[test]
fn jobs_have_columns_of_their_own() {
    let of = |job, metric| of_job("C2a", "50 %", job, &at(7), metric);
    assert_eq!(of("write", "kiops"), Some(131.101));
    assert_eq!(of("finish 50 %", "ops_s"), Some(0.139072));
    assert_eq!(of("write", "ops_s"), None, "not the background's");
    assert_eq!(
        of("finish 50 %", "lat_mean_us"),
        None,
        "not the foreground's"
    );
    let of = |job, metric| of_job("C3a", "50 %", job, &at(7), metric);
    assert_eq!(of("reset 50 %", "lat_mean_us"), Some(21_280.1));
}

/// The authors' writers alone, beside which nothing ran three times.
#[test]
fn the_drive_alone_was_measured_three_times() {
    let experiment = builtin("C2a");
    let found = references().value(&experiment.series[0], "write alone", &at(1), "kiops");
    let expected = Published {
        value: 68.1944,
        written: (68.1944, 1.0),
        spread: Some((61.0021, 68.1944)),
        place: place("zn540/management_interference", 9, "kiops"),
    };
    assert_eq!(found, Ok(Some(expected)));
}

/// Columns in KiB and MiB/s, axis values in bytes.
#[test]
fn the_axis_can_have_another_unit() {
    let x = |text: &str, number| AxisValue {
        text: text.to_owned(),
        number,
        is_bare: false,
    };
    let size = x("128KiB", 131_072.0);
    assert_eq!(
        of_job("Z3", "append", "append", &size, "kiops"),
        Some(9.1587)
    );
    let rate = x("250MiB/s", 262_144_000.0);
    assert_eq!(
        of_job("Z11s", "writes", "read", &rate, "lat_mean_us"),
        Some(100.29)
    );
    assert_eq!(
        of_job("Z11s", "writes", "write", &rate, "lat_mean_us"),
        Some(65.295)
    );
}

/// Rows that have no axis value are those of every point.
#[test]
fn a_table_without_an_axis_is_about_all_values() {
    assert_eq!(
        of_job("Z9", "open", "open", &at(1), "lat_mean_us"),
        Some(9.5594)
    );
    assert_eq!(
        of_job("Z9", "open", "open", &at(1), "lat_p95_us"),
        Some(10.421)
    );
}

#[test]
fn a_column_that_is_not_there_is_named_with_the_nearest() {
    let table = |columns: &str| {
        let published = format!(
            "jobs = [\"read\"]\n\n  [[series.published]]\n  table = \"zn540/reset_under_load\"\n  \
             where = [\"n=1806\"]\n  columns = {columns}\n"
        );
        with(SMALL, "jobs = [\"read\"]", &published)
    };
    let says = |columns| {
        let experiment = parse(&table(columns));
        references()
            .check(&experiment)
            .expect_err("a mistake")
            .to_string()
    };
    assert_eq!(
        says("{ lat_mean_us = \"meen_us\" }"),
        "\"zn540/reset_under_load\" has no column \"meen_us\" for lat_mean_us; did you mean \"mean_us\"?"
    );
    let says = says("{ kiops = \"frobnication\" }");
    assert!(says.contains("there are: measured, metric"), "{says}");
    let says = super::support::problems(&table("{ lat_meen_us = \"mean_us\" }"), &[]);
    assert!(says.contains("did you mean `lat_mean_us`?"), "{says}");
}
