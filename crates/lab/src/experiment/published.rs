//! Reading series, and where what was published of them stands.

use std::collections::BTreeMap;

use zonelab_config::{Item, Reported, Table};

use super::ftl::ftl;
use super::host::Via;
use super::read::{axis_text, metric, set, tables, text, zone_range};
use super::{PublishedPoint, PublishedTable, SeriesSpec};
use crate::published::CellPlace;

/// A series, with what was published of it.
pub(super) fn series(table: &Table<'_>) -> Result<SeriesSpec, Reported> {
    let name = table.string("name").required();
    let drive = table.list("drive", set).or(Vec::new());
    let scheduler = table.string("scheduler").optional();
    let via = table.choice("via", &Via::NAMES).optional();
    let ftl = ftl(&table.table("ftl"));
    let jobs = table.list("jobs", text).optional();
    let names = |item: &Item<'_>| {
        item.items()?
            .iter()
            .map(text)
            .collect::<Result<Vec<_>, _>>()
    };
    let phases = table.list("phases", names).optional();
    let full_zones = table.get("full_zones", zone_range).optional();
    let x = table.list("x", axis_text).or(Vec::new());
    let published = published_tables(table);
    let points = tables(table, "point", point);
    let phases = match (jobs?, phases?) {
        (Some(jobs), None) => vec![jobs],
        (None, Some(phases)) => phases,
        (None, None) => {
            table
                .list("jobs", text)
                .required_or("name the jobs that run: jobs = [\"write\"]")?;
            Vec::new()
        }
        (Some(_), Some(_)) => {
            table.refuse(
                "phases",
                "either `jobs`, or `phases` that follow one another",
            )?;
            Vec::new()
        }
    };
    Ok(SeriesSpec {
        name: name?,
        place: 0,
        combination: 0,
        drive: drive?,
        scheduler: scheduler?,
        via: via?,
        ftl: ftl?,
        phases,
        x: x?,
        full_zones: full_zones?.into_iter().collect(),
        published: published?,
        points: points?,
    })
}

/// The tables: one as `[series.published]`, several as `[[series.published]]`.
fn published_tables(table: &Table<'_>) -> Result<Vec<PublishedTable>, Reported> {
    let read = |item: &Item<'_>| published_table(&item.table()?);
    let published = table.get("published", |item| {
        if !item.is_array() {
            return Ok(vec![read(item)?]);
        }
        let read: Vec<_> = item.items()?.iter().map(read).collect();
        read.into_iter().collect()
    });
    published.or(Vec::new())
}

fn published_table(table: &Table<'_>) -> Result<PublishedTable, Reported> {
    let name = table.string("table").required();
    let filter = table.list("where", text).or(Vec::new());
    let repeats = table.list("repeats", text).or(Vec::new());
    let x = table.string("x").optional();
    let x_factor = table.get("x_factor", Item::f64).or(1.0);
    let job = table.string("job").or(String::new());
    let columns = columns(&table.table("columns"));
    let labels = table.list("labels", text).or(Vec::new());
    let x = x?;
    if x.is_none() {
        table.refuse("x_factor", "only with `x`, the column that it is about")?;
    }
    Ok(PublishedTable {
        table: name?,
        filter: filter?,
        repeats: repeats?,
        x,
        x_factor: x_factor?,
        job: job?,
        columns: columns?,
        factors: BTreeMap::new(),
        labels: labels?,
        may_be_absent: false,
    })
}

/// `columns = { lat_mean_us = "mean_us" }`: metrics, and the columns they stand in.
fn columns(table: &Table<'_>) -> Result<BTreeMap<String, String>, Reported> {
    let mut columns = BTreeMap::new();
    for &(metric, _) in crate::metrics::NAMES {
        if let Some(column) = table.string(metric).optional()? {
            columns.insert(metric.to_owned(), column);
        }
    }
    Ok(columns)
}

fn point(table: &Table<'_>) -> Result<PublishedPoint, Reported> {
    let x = table.get("x", axis_text).required();
    let metric = table.get("metric", metric).required();
    let job = table.string("job").or(String::new());
    let value = table.get("value", Item::f64).required();
    let low = table.get("low", Item::f64).optional();
    let high = table.get("high", Item::f64).optional();
    let (value, low, high) = (value?, low?, high?);
    if low.is_some_and(|low| low > value) {
        table.refuse(
            "low",
            "the least of the repeats is at most `value`, which is one of them",
        )?;
    }
    if high.is_some_and(|high| high < value) {
        table.refuse(
            "high",
            "the greatest of the repeats is at least `value`, which is one of them",
        )?;
    }
    let spread = match (low, high) {
        (None, None) => None,
        (low, high) => Some((low.unwrap_or(value), high.unwrap_or(value))),
    };
    let ((file, line), metric) = (table.place_of("value"), metric?);
    let place = CellPlace {
        file: file.to_owned(),
        line,
        column: metric.clone(),
    };
    Ok(PublishedPoint {
        x: x?,
        metric,
        job: job?,
        value,
        spread,
        place,
    })
}
