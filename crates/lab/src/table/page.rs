//! The page at the end: what all rows come to.

use super::{
    Cell, Column, Style, Table, check_table, colour_of, group_table, number, paragraph, percent,
    sentence, share, short, sized,
};
use crate::rows::{
    BarResult, Beyond, DriveSummary, Errors, FigureErrors, Missing, Row, Stats, Summary, Verdict,
};

/// Rows of a real drive far off that the page names; the report has all.
const FAR_SHOWN: usize = 10;

/// Counts by figure, a line for each kind of result, the errors of a real drive
/// with its bars, statements and bars that do not hold, and the rows that
/// failed.
#[must_use]
pub fn page(rows: &[Row], summary: &Summary, style: &Style) -> String {
    let mut out = String::new();
    if summary.by_id.len() > 1 {
        out.push_str(&counts(summary).to_text(style));
        out.push('\n');
    }
    if let Some(drive) = &summary.drive {
        out.push_str(&of_drive(drive, style));
        out.push('\n');
    }
    for line in lines(summary) {
        out.push_str(&paragraph(&line, style));
    }
    if !summary.missing.is_empty() {
        out.push_str("\nWhat does not hold, the worst first:\n");
        out.push_str(&missing(&summary.missing).to_text(style));
    }
    out.push_str(&failed(rows, style));
    out
}

/// A line for each kind of result, and for each bar.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, stats) in &summary.kinds {
        let text = format!("kind {}, {}: {}", kind.letter(), kind.name(), sentence(stats));
        lines.push(text);
    }
    if summary.statements.count > 0 {
        let stats = &summary.statements;
        let count = |verdict: Verdict, word: &str| match stats.of_verdict(verdict) {
            0 => String::new(),
            count => format!(", {count} {word}"),
        };
        lines.push(format!(
            "statements: {}{}{}{}{}",
            stats.count,
            count(Verdict::Ok, "hold"),
            count(Verdict::Missed, "MISSED"),
            count(Verdict::Fail, "FAIL"),
            count(Verdict::Info, "info"),
        ));
    }
    if let Some(drive) = &summary.drive {
        lines.extend(drive.bars.iter().map(|bar| bar_line(bar, drive.is_whole)));
        for (group, figures) in &drive.figures_that_miss {
            if !figures.is_empty() {
                lines.push(format!(
                    "figures that miss the bars for {} alone: {}",
                    group.name(),
                    figures.join(", ")
                ));
            }
        }
        if !drive.is_whole {
            lines.push("The bars are about all figures of the drive: not all were run.".to_owned());
        }
    }
    lines
}

fn bar_line(bar: &BarResult, is_whole: bool) -> String {
    let verdict = match (bar.holds, bar.is_known(), is_whole) {
        (true, ..) => "holds",
        (false, _, false) | (false, true, true) => "MISSED",
        (false, false, true) => "FAIL",
    };
    format!("bar: {}: {verdict}, {}", bar.says, share(Some(bar.value)))
}

/// Verdicts and errors by id.
fn counts(summary: &Summary) -> Table {
    let mut columns = vec![Column::word("id"), Column::number("rows")];
    columns.extend(Verdict::ALL.map(|verdict| Column::number(verdict.word())));
    columns.extend([Column::number("median |error|"), Column::number("P90")]);
    let mut table = Table::new(columns);
    for (id, stats) in &summary.by_id {
        let Stats {
            count,
            median_error,
            p90_error,
            ..
        } = stats;
        let mut cells = vec![id.clone(), count.to_string()];
        cells.extend(Verdict::ALL.map(|verdict| match stats.of_verdict(verdict) {
            0 => String::new(),
            count => count.to_string(),
        }));
        cells.extend([median_error, p90_error].map(|error| share(*error)));
        table.push(cells.into_iter().map(Cell::from));
    }
    table
}

/// Errors by figure and quantity, and what is furthest off.
fn of_drive(drive: &DriveSummary, style: &Style) -> String {
    let mut out = errors(drive).to_text(style);
    if !drive.beyond.is_empty() {
        let line = format!(
            "{} of {} rows are further off than nine of ten may be{}",
            drive.beyond.len(),
            drive.all.values.rows + drive.all.percentiles.rows,
            if drive.beyond.len() > FAR_SHOWN {
                format!("; the furthest {FAR_SHOWN} (the report has all):")
            } else {
                ":".to_owned()
            }
        );
        out.push('\n');
        out.push_str(&paragraph(&line, style));
        out.push_str(&beyond(drive.beyond.iter().take(FAR_SHOWN)).to_text(style));
    }
    out
}

/// Rows, median and 90th percentile of each quantity.
fn errors(drive: &DriveSummary) -> Table {
    let mut columns = vec![Column::word("kind D")];
    for name in ["throughput", "mean latency", "M", "together", "percentiles"] {
        columns.extend([
            Column::number(name),
            Column::number("median"),
            Column::number("P90"),
        ]);
    }
    let mut table = Table::new(columns);
    for figure in drive.figures.iter().chain([&drive.all]) {
        table.push(figure_cells(figure));
    }
    table
}

fn figure_cells(figure: &FigureErrors) -> Vec<Cell> {
    let FigureErrors {
        id,
        throughput,
        mean_latency,
        m_inter,
        values,
        percentiles,
    } = figure;
    let mut cells = vec![id.as_str().into()];
    for Errors { rows, median, p90 } in [throughput, mean_latency, m_inter, values, percentiles] {
        if *rows == 0 {
            cells.extend(["", "", ""].map(Cell::from));
        } else {
            cells.extend([rows.to_string(), share(*median), share(*p90)].map(Cell::from));
        }
    }
    cells
}

/// Rows that are far off.
fn beyond<'a>(rows: impl Iterator<Item = &'a Beyond>) -> Table {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("series"),
        Column::number("x"),
        Column::word("metric"),
        Column::number("error"),
        Column::text("cause"),
    ]);
    for row in rows {
        let x = row.x.map_or_else(String::new, |x| {
            if x.abs() < 1e7 { short(x) } else { number(x) }
        });
        let cause = row.cause.as_deref().unwrap_or("not known");
        table.push([
            row.id.as_str().into(),
            row.series.as_str().into(),
            x.into(),
            row.metric.as_str().into(),
            percent(row.rel_error).into(),
            cause.into(),
        ]);
    }
    table
}

/// Statements and bars that do not hold.
fn missing(missing: &[Missing]) -> Table {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("statement"),
        Column::number("published"),
        Column::number("ours"),
        Column::word("needs"),
        Column::word("verdict"),
    ]);
    for one in missing {
        let verdict = if one.is_known {
            Verdict::Missed
        } else {
            Verdict::Fail
        };
        table.push([
            one.id.as_str().into(),
            one.says.as_str().into(),
            sized(one.published, &one.unit).into(),
            sized(one.ours, &one.unit).into(),
            one.needs.as_str().into(),
            Cell {
                colour: Some(colour_of(verdict)),
                ..verdict.word().into()
            },
        ]);
    }
    table
}

/// The points that failed, once more where they are seen.
fn failed(rows: &[Row], style: &Style) -> String {
    let failed = rows.iter().filter(|row| row.verdict() == Verdict::Fail);
    let (checks, values): (Vec<&Row>, Vec<&Row>) = failed.partition(|row| row.is_statement());
    let mut out = String::new();
    for (rows, table) in [
        (&values, group_table as fn(&[&Row]) -> Table),
        (&checks, check_table),
    ] {
        if !rows.is_empty() {
            out.push('\n');
            out.push_str(&table(rows).to_text(style));
        }
    }
    out
}
