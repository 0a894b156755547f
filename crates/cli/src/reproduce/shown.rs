//! What a person sees at the end of a run.

use std::fmt::Write as _;

use zonelab_host::stats::Latency;
use zonelab_lab::difference::Difference;
use zonelab_lab::idle::LEAST_SHARE;
use zonelab_lab::output::{Put, file_name};
use zonelab_lab::rows::{Row, Stats, Summary, Verdict};
use zonelab_lab::run::JobMeasured;
use zonelab_lab::table::{self, Cell, Column, Style, Table};

use crate::console;
use crate::report;
use crate::session::Finished;

/// What a person is shown.
pub(super) struct Shown<'a> {
    pub(super) finished: &'a [Finished],
    pub(super) rows: &'a [Row],
    pub(super) differences: &'a [Difference],
    pub(super) summary: &'a Summary,
    /// The tables of all rows, and the page that sums them up, instead of an overview.
    pub(super) every_row: bool,
    /// The experiment is a user's own.
    pub(super) is_own: bool,
    /// Points are missing.
    pub(super) is_partial: bool,
}

/// What a person sees.
pub(super) fn text(shown: &Shown<'_>, put: &Put, figures: &[String]) -> String {
    let Shown {
        finished,
        rows,
        differences,
        summary,
        every_row,
        is_own,
        is_partial,
    } = *shown;
    let style = console::style();
    let mut text = String::new();
    // What a table of measurements has is not said again in one of comparison.
    let mut compared: Vec<Row> = rows.to_vec();
    for one in finished.iter().filter(|_| every_row) {
        let id = &one.experiment.id;
        let uncompared = rows
            .iter()
            .all(|row| row.id != *id || row.published.is_none());
        // The points of a matrix are hundreds: they are in points.csv, and its
        // levels in its own file.
        if (uncompared || is_own) && one.matrix.is_none() {
            text.push_str(&measured(one, &style));
            let is_said = |row: &Row| {
                row.id == *id && row.published.is_none() && MEASURED.contains(&row.metric.as_str())
            };
            compared.retain(|row| row.is_statement() || !is_said(row));
        }
        if let Some(matrix) = &one.matrix {
            text.push_str(&matrix.to_text(&style));
            text.push('\n');
        }
    }
    if every_row {
        if !rows.is_empty() {
            text.push_str(&table::comparison(&compared, summary, &style));
        }
        text.push_str(&table::differences(differences, &style));
        if !(rows.is_empty() && summary.unjudged.is_empty()) {
            text.push_str(table::page(rows, summary, &style).trim_end());
            text.push('\n');
        }
    } else if !rows.is_empty() {
        text.push_str(&table::overview(rows, summary, &style));
    }
    if is_partial {
        let done: usize = finished.iter().map(|one| one.results.len()).sum();
        let all: usize = finished.iter().map(|one| one.points.len()).sum();
        // Writing to a string does not fail.
        let _ = writeln!(text, "PARTIAL: {done} of {all} points were run.");
    }
    if let Some(late) = lateness(finished) {
        text.push_str(&late);
    }
    // Writing to a string does not fail.
    let path = put.path();
    let _ = writeln!(text, "\nresults: {}", put.said());
    for figure in figures.iter().filter(|_| every_row) {
        let _ = writeln!(text, "figure:  {}", path.join(figure).display());
    }
    let _ = writeln!(text, "report:  {}", path.join(report::FILE).display());
    if let Some(best) = best(summary, figures).filter(|_| !every_row) {
        let figure = path.join(&best.file).display().to_string();
        let (ok, id) = (best.ok, best.id);
        let _ = writeln!(
            text,
            "figure:  {figure} ({id}: {ok} rows match, most of all)"
        );
        let _ = writeln!(text, "`--rows` prints the tables of all rows, too.");
    }
    text
}

/// The figure that is shown of several: the one with most rows that are `ok`.
struct Best<'a> {
    id: &'a str,
    file: String,
    ok: usize,
}

fn best<'a>(summary: &'a Summary, figures: &[String]) -> Option<Best<'a>> {
    let of_id = |(id, stats): &'a (String, Stats)| {
        let file = format!("{}.svg", file_name(id));
        let best = Best {
            id,
            ok: stats.of_verdict(Verdict::Ok),
            file,
        };
        figures.contains(&best.file).then_some(best)
    };
    // Of several with as many rows, the first.
    summary
        .by_id
        .iter()
        .filter_map(of_id)
        .rev()
        .max_by_key(|best| best.ok)
}

/// How late the host was, of a run in real time.
fn lateness(finished: &[Finished]) -> Option<String> {
    let results = finished.iter().flat_map(|one| &one.results);
    let mut all = Latency::new();
    let each = results.filter_map(|result| result.lateness.as_ref());
    each.for_each(|late| all.merge(late));
    let us = |percent| {
        let value = all.percentile(percent).map(|late| late.as_us_f64());
        value.map(table::number)
    };
    let (half, most, max) = (us(50.0)?, us(99.0)?, all.max()?.as_us_f64());
    Some(format!(
        "\nThe host handled what was due late by {half} us (P50), {most} us (P99), {} us at most.\n",
        table::number(max)
    ))
}

/// Metrics whose numbers are in the table of measurements. Rates stand there as operations per
/// second by their count: samples of half a second say nothing of what takes longer.
const MEASURED: [&str; 10] = [
    "ops",
    "ops_s",
    "kiops",
    "kiops_by_count",
    "mib_s",
    "lat_mean_us",
    "lat_p50_us",
    "lat_p95_us",
    "lat_p99_9_us",
    "service_p95_us",
];

/// The measurements of an experiment that is compared with nothing.
fn measured(one: &Finished, style: &Style) -> String {
    let nothing = |job: &JobMeasured| job.metrics.get("nothing_share").unwrap_or_default();
    let mut jobs = one.results.iter().flat_map(|result| &result.jobs);
    let is_idle = jobs.any(|job| nothing(job) > LEAST_SHARE);
    let mut jobs = one.results.iter().flat_map(|result| &result.jobs);
    let is_open = jobs.any(|job| job.metrics.get("service_p95_us").is_some());
    let mut columns = vec![
        Column::text("series"),
        Column::number(&one.experiment.axis.heading()),
        Column::text("job"),
        Column::number("ops"),
        Column::number("op/s"),
        Column::number("MiB/s"),
        Column::number("mean us"),
        Column::number("P50 us"),
        Column::number("P95 us"),
        Column::number("P99.9 us"),
    ];
    columns.extend(is_open.then(|| Column::number("P95 us of service")));
    columns.extend(is_idle.then(|| Column::number("did nothing")));
    let mut table = Table::new(columns);
    for result in &one.results {
        for job in &result.jobs {
            let of = |metric: &str, unit: &str| {
                let half = job.statistics(metric).and_then(|of| of.half_width);
                let value = job.metrics.get(metric);
                value.map_or(String::from("-"), |value| {
                    table::measured(value, half, unit)
                })
            };
            let value = |metric: &str| of(metric, "");
            let time = |metric: &str| of(metric, "us");
            let mut cells = vec![
                result.series.clone(),
                one.experiment.axis.shown(&result.x),
                job.name.clone(),
                job.metrics
                    .get("ops")
                    .map_or(String::from("-"), |ops| format!("{ops:.0}")),
                value("ops_s"),
                value("mib_s"),
                time("lat_mean_us"),
                time("lat_p50_us"),
                time("lat_p95_us"),
                time("lat_p99_9_us"),
            ];
            cells.extend(is_open.then(|| time("service_p95_us")));
            cells.extend(is_idle.then(|| format!("{:.1} %", nothing(job) * 100.0)));
            table.push(cells.into_iter().map(Cell::from));
        }
    }
    format!(
        "{}: {}\n{}\n",
        one.experiment.id,
        one.experiment.title,
        table.to_text(style)
    )
}
