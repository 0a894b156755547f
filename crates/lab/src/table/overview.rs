//! The few lines at the end of a run of several figures.

use super::page::{bar_value, bar_verdict, unjudged};
use super::{
    Cell, Column, Style, Table, coordinate, metric, paragraph, share, sized_as_read, value,
};
use crate::rows::{DriveSummary, PaperSummary, Row, Summary, Verdict};

/// Rows that fail and are named.
const FAILED_SHOWN: usize = 3;

/// A line for each paper: its rows, how many match, their median error, how many are off and
/// why; then the bars of a real drive, and what fails.
#[must_use]
pub fn overview(rows: &[Row], summary: &Summary, style: &Style) -> String {
    let mut out = papers(&PaperSummary::of_all(rows)).to_text(style);
    for line in MEANING {
        out.push_str(&paragraph(line, style));
    }
    out.push('\n');
    if let Some(drive) = &summary.drive {
        out.push_str(&bars(drive).to_text(style));
    }
    for line in unjudged(summary).into_iter().chain(failed(rows)) {
        out.push_str(&paragraph(&line, style));
    }
    out
}

/// The counts of [`papers`], in words.
const MEANING: [&str; 2] = [
    "match: points within 3 % (real drive: 9 %, percentiles 15 %); statements that hold",
    "explained: off, with its cause in the report; other rows are shown, not judged",
];

fn papers(summaries: &[PaperSummary]) -> Table {
    let mut table = Table::new([
        Column::word("paper"),
        Column::number("rows"),
        Column::number("match"),
        Column::number("median"),
        Column::number("off"),
        Column::text("why"),
    ]);
    for of in summaries {
        table.push([
            Cell::from(of.paper.name),
            of.stats.count.to_string().into(),
            of.matching.to_string().into(),
            share(of.stats.median_error).into(),
            of.off.count().to_string().into(),
            why(of).into(),
        ]);
    }
    table
}

/// "58 explained, 129 open, mostly percentiles".
fn why(of: &PaperSummary) -> String {
    let off = &of.off;
    let open = off.count() - off.explained;
    let parts = [
        (off.explained, format!("{} explained", off.explained)),
        (open, format!("{open} open")),
        (off.count(), format!("mostly {}", most(of))),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

/// The quantity that most rows that are off measured.
fn most(of: &PaperSummary) -> &'static str {
    let kinds = [
        (of.off.percentiles, "percentiles"),
        (of.off.values, "throughput and means"),
        (of.off.statements, "statements"),
    ];
    let most = kinds.into_iter().rev().max_by_key(|(count, _)| *count);
    most.map_or("", |(_, name)| name)
}

/// The bars over all rows of a real drive.
fn bars(drive: &DriveSummary) -> Table {
    let head = match drive.is_whole {
        true => "real drive",
        false => "real drive (the bars are about all its figures)",
    };
    let mut table = Table::new([
        Column::text(head),
        Column::number("error"),
        Column::number("at most"),
        Column::word("verdict"),
    ]);
    for bar in &drive.bars {
        let says = bar.says.split(" error at most").next().unwrap_or_default();
        table.push([
            says.into(),
            bar_value(bar).into(),
            share(Some(bar.most)).into(),
            Cell::from(bar_verdict(bar, drive.is_whole)),
        ]);
    }
    table
}

/// Rows that fail: some of them, and how many more there are.
fn failed(rows: &[Row]) -> Vec<String> {
    let failed = || rows.iter().filter(|row| row.verdict() == Verdict::Fail);
    let mut lines: Vec<String> = failed().take(FAILED_SHOWN).map(failure).collect();
    let more = failed().count().saturating_sub(FAILED_SHOWN);
    if more > 0 {
        let rows = if more == 1 { "row" } else { "rows" };
        lines.push(format!("FAIL: {more} more {rows}: `--rows` shows them"));
    }
    lines
}

/// "FAIL: C10a: alone, 7: kiops (KIOPS): 5.9, published 5.702".
fn failure(row: &Row) -> String {
    let x = row.x.as_ref().map(|x| format!(", {}", coordinate(x)));
    let (ours, published, place) = match row.is_statement() {
        true => (
            sized_as_read(Some(row.ours), &row.unit),
            row.published.map(|of| sized_as_read(Some(of), &row.unit)),
            row.metric.clone(),
        ),
        false => (
            value(row.ours, &row.unit),
            row.published.map(|of| value(of, &row.unit)),
            format!("{}{}: {}", row.series, x.unwrap_or_default(), metric(row)),
        ),
    };
    let published = published.map_or_else(String::new, |of| format!(", published {of}"));
    let needs = row.statement.map(|bound| bound.words(&row.unit));
    let needs = needs.map_or_else(String::new, |needs| format!(", needs {needs}"));
    format!("FAIL: {}: {place}: {ours}{published}{needs}", row.id)
}
