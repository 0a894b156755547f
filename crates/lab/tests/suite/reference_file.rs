//! Published results in a table beside the experiment file.

use zonelab_lab::compare;
use zonelab_lab::experiment::{Experiment, ReferenceFile};
use zonelab_lab::published::References;
use zonelab_lab::rows::Row;

use super::support::{SMALL, parse, problems, run, with};

/// The small experiment with a reference.
fn referring(reference: &str) -> String {
    with(
        SMALL,
        "profile = \"tiny\"",
        &format!("profile = \"tiny\"\n{reference}"),
    )
}

fn of(experiment: &Experiment) -> &ReferenceFile {
    experiment.reference.as_ref().expect("it has one")
}

/// The rows of an experiment beside the table `csv`.
fn rows(text: &str, csv: &str) -> Vec<Row> {
    let experiment = parse(text);
    let reference = of(&experiment);
    let table = reference.read(csv, &experiment).expect("a sound table");
    let references = References::empty().with_table(&reference.file, table);
    references.check(&experiment).expect("sound look-ups");
    let results = run(text, 1, 1).expect("it runs");
    compare::rows(&experiment, &results, &references).expect("sound look-ups")
}

/// Series, axis value, metric, published value and place of what was published.
fn published(rows: &[Row]) -> Vec<String> {
    let found = rows.iter().filter(|row| row.published_in.is_some());
    let line = |row: &Row| {
        let x = row.x.as_ref().map_or("", |x| x.label.as_str());
        let (value, place) = (
            row.published.unwrap_or(f64::NAN),
            row.published_in.as_deref(),
        );
        let place = place.unwrap_or_default();
        format!("{} {x} {} {value} {place}", row.series, row.metric)
    };
    found.map(line).collect()
}

#[test]
fn columns_are_found_by_the_names_of_metrics() {
    let csv = "series,x,kiops,lat_p95_us\nalone,1,10,90\nalone,4,30,\nbeside resets,2,12.5,200\n";
    let expected = [
        "alone 1 kiops 10 my.csv:2, kiops",
        "alone 1 lat_p95_us 90 my.csv:2, lat_p95_us",
        "beside resets 2 kiops 12.5 my.csv:4, kiops",
        "beside resets 2 lat_p95_us 200 my.csv:4, lat_p95_us",
        "alone 4 kiops 30 my.csv:3, kiops",
    ];
    let mut found = published(&rows(&referring("reference = \"my.csv\""), csv));
    let mut expected = expected.map(str::to_owned);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn columns_and_units_are_mapped_in_the_file() {
    let text = referring(
        "[reference]\nfile = \"my.csv\"\nx = \"qd\"\nseries = \"curve\"\njob = \"read\"\n\
         y = { kiops = \"rate\", lat_p95_us = \"p95\" }\n\
         unit = { kiops = \"IOPS\", lat_p95_us = \"ms\" }\n",
    );
    let csv = "curve,qd,rate,p95,kiops\nalone,1,12000,0.5,77\n";
    let found = published(&rows(&text, csv));
    let expected = [
        "alone 1 kiops 12 my.csv:2, rate",
        "alone 1 lat_p95_us 500 my.csv:2, p95",
    ];
    assert_eq!(found, expected);
}

#[test]
fn sizes_and_words_are_found_as_they_stand_on_the_axis() {
    let text = referring("reference = \"my.csv\"").replace("queue_depth = \"$x\"\n", "");
    let sizes = text.replace("values = [1, 2, 4]", "values = [\"4KiB\", \"16KiB\"]");
    let sizes = sizes.replace("x = 4,", "x = \"4KiB\",");
    let csv = "series,x,kiops\nalone,16KiB,5\nalone,4096,6\n";
    let found = published(&rows(&sizes, csv));
    let expected = [
        "alone 4KiB kiops 6 my.csv:3, kiops",
        "alone 16KiB kiops 5 my.csv:2, kiops",
    ];
    assert_eq!(found, expected);
    let words = text.replace("values = [1, 2, 4]", "values = [\"old\", \"new\"]");
    let words = words.replace("x = 4,", "x = \"old\",");
    let csv = "series,x,kiops\nalone,new,5\nalone,old,6\n";
    let found = published(&rows(&words, csv));
    let expected = [
        "alone old kiops 6 my.csv:3, kiops",
        "alone new kiops 5 my.csv:2, kiops",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_wrong_with_the_table_is_named_with_its_line() {
    let plain = parse(&referring("reference = \"my.csv\""));
    let refused = |experiment: &Experiment, csv: &str, says: &str| {
        let said = of(experiment)
            .read(csv, experiment)
            .unwrap_err()
            .to_string();
        assert!(said.starts_with(says), "{said}\nnot\n{says}");
    };
    let series = "my.csv:3: column `series`: the experiment has no series \"alnoe\"; \
                  did you mean \"alone\"?";
    refused(&plain, "series,x,kiops\nalone,1,2\nalnoe,2,3\n", series);
    refused(
        &plain,
        "curve,x,kiops\nalone,1,2\n",
        "my.csv:1: column `series`: the file has no such column; it has: curve, x, kiops",
    );
    refused(
        &plain,
        "series,x,rate\nalone,1,2\n",
        "my.csv:1: no column is called like a metric",
    );
    refused(
        &plain,
        "series,x,kiops\nalone,1\n",
        "my.csv:2: 2 fields, but the header has 3",
    );
    let mapped = "[reference]\nfile = \"my.csv\"\ny = { kiops = \"rate\" }\n";
    let mapped = parse(&referring(mapped));
    let number = "my.csv:2: column `rate`: `fast` is not a number";
    refused(&mapped, "series,x,rate\nalone,1,fast\n", number);
    refused(
        &mapped,
        "series,x,kiops\nalone,1,3\n",
        "my.csv:1: column `rate`: the file has no",
    );

    // Two rows for one point.
    let table = of(&plain).read("series,x,kiops\nalone,1,2\nalone,1,3\n", &plain);
    let references = References::empty().with_table("my.csv", table.expect("a table"));
    let says = references.check(&plain).unwrap_err().to_string();
    assert_eq!(
        says,
        "my.csv: lines 2, 3 answer to series=alone at x = 1; one row may"
    );
}

#[test]
fn what_is_wrong_with_the_mapping_is_named_with_its_key() {
    let said = |reference: &str| problems(&referring(reference), &[]);
    let table = |more: &str| format!("[reference]\nfile = \"my.csv\"\n{more}\n");
    let says = said(&table("unit = { lat_p95_us = \"min\" }"));
    let valid = "reference.unit.lat_p95_us: \"min\" is not a choice; choose \"ns\", \"us\", \"ms\" or \"s\"";
    assert!(says.contains(valid), "{says}");
    let says = said(&table("y = { kiop = \"rate\" }"));
    assert!(says.contains("reference.y.kiop: unknown key"), "{says}");
    let says = said(&table("job = \"raed\""));
    assert!(
        says.contains("reference.job: there is no \"raed\"; did you mean \"read\"?"),
        "{says}"
    );
    assert!(said("reference = 7").contains("reference: "));
    assert!(said("[reference]\nx = \"a\"\n").contains("reference.file: missing"));
}
