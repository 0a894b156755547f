//! The page at the end: what all rows come to.

use super::{
    Cell, Column, Style, Table, colour_of, counted, group_table, missed, number, paragraph,
    percent, sentence, share, short, sized,
};
use crate::rows::{
    BarResult, Beyond, DriveSummary, Errors, FigureErrors, Kind, Missing, Quantity, Row, Summary,
    UNIT_ERROR, Unjudged, Verdict,
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
        if summary.drive.is_some() {
            let note = "A measurement of the drive that several figures show counts in one of \
                        them and is info in the others; the line of a figure by itself counts it.";
            out.push_str(&paragraph(note, style));
        }
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
pub fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, stats) in &summary.kinds {
        // The errors of a real drive have two bars, and a line for each.
        let said = match kind {
            Kind::Drive => counted(stats),
            Kind::Emulator | Kind::Shape => sentence(stats),
        };
        lines.push(format!("kind {}, {}: {said}", kind.letter(), kind.name()));
    }
    if summary.statements.count > 0 {
        let stats = &summary.statements;
        let count = |verdict: Verdict, word: &str| match stats.of_verdict(verdict) {
            0 => String::new(),
            count => format!(", {count} {word}"),
        };
        lines.push(format!(
            "statements: {}{}{}{}{}{}",
            stats.count,
            count(
                Verdict::Ok,
                match stats.of_verdict(Verdict::Ok) {
                    1 => "holds",
                    _ => "hold",
                }
            ),
            count(Verdict::Missed, "MISSED"),
            count(Verdict::Fail, "FAIL"),
            count(Verdict::Input, "input"),
            count(Verdict::Info, "info"),
        ));
    }
    lines.extend(unjudged(summary));
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

/// Statements that were not judged: each of a user's own, and how many of the others.
pub(super) fn unjudged(summary: &Summary) -> Vec<String> {
    let all = &summary.unjudged;
    if summary.owes_all {
        let line = |one: &Unjudged| format!("not judged: \"{}\": {}", one.says, one.why);
        return all.iter().map(line).collect();
    }
    let mut ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
    ids.dedup();
    let count = all.len();
    let line = || format!("not judged: {count} statements of {}", ids.join(", "));
    (count > 0).then(line).into_iter().collect()
}

fn bar_line(bar: &BarResult, is_whole: bool) -> String {
    let (verdict, value) = (bar_verdict(bar, is_whole), bar_value(bar));
    format!("bar: {}: {verdict}, {value}", bar.says)
}

/// What became of a bar; `is_whole`: all figures of the drive were run.
pub(super) fn bar_verdict(bar: &BarResult, is_whole: bool) -> &'static str {
    match (bar.holds, bar.is_known(), is_whole) {
        (true, ..) => "holds",
        (false, _, false) | (false, true, true) => "MISSED",
        (false, false, true) => "FAIL",
    }
}

/// The value of a bar, with as many digits as show on which side it is.
pub(super) fn bar_value(bar: &BarResult) -> String {
    let miss = (!bar.holds).then(|| bar.value / bar.most - 1.0);
    missed(Some(bar.value), UNIT_ERROR, miss)
}

/// Verdicts by id with the median and the 90th percentile of the errors. Verdicts
/// that no row has take no place.
fn counts(summary: &Summary) -> Table {
    let has = |verdict: &Verdict| {
        let mut all = summary.by_id.iter();
        all.any(|(_, stats)| stats.of_verdict(*verdict) > 0)
    };
    let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(has).collect();
    let words = verdicts.iter().map(|verdict| verdict.word());
    let mut columns = vec![Column::word("id"), Column::number("rows")];
    columns.extend(words.chain(["median", "P90"]).map(Column::number));
    let mut table = Table::new(columns);
    for (id, stats) in &summary.by_id {
        let mut cells = vec![id.clone(), stats.count.to_string()];
        cells.extend(
            verdicts
                .iter()
                .map(|verdict| match stats.of_verdict(*verdict) {
                    0 => String::new(),
                    count => count.to_string(),
                }),
        );
        cells.extend([stats.median_error, stats.p90_error].map(share));
        table.push(cells.into_iter().map(Cell::from));
    }
    table
}

/// Errors by quantity and by figure, and what is furthest off.
fn of_drive(drive: &DriveSummary, style: &Style) -> String {
    let mut out = by_quantity(&drive.all).to_text(style);
    if drive.figures.len() > 1 {
        out.push('\n');
        out.push_str(&by_figure(&drive.figures).to_text(style));
    }
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

/// The columns of [`Errors`].
fn error_columns(first: &str) -> [Column; 3] {
    [first, "median", "P90"].map(Column::number)
}

fn error_cells(errors: &Errors) -> [Cell; 3] {
    match errors.rows {
        0 => ["", "", ""].map(Cell::from),
        rows => [rows.to_string(), share(errors.median), share(errors.p90)].map(Cell::from),
    }
}

/// Errors of all figures by what was measured.
fn by_quantity(all: &FigureErrors) -> Table {
    let columns = [Column::word("real drive")].into_iter();
    let mut table = Table::new(columns.chain(error_columns("rows")));
    for (name, errors) in [
        (Quantity::Throughput.name(), &all.throughput),
        (Quantity::Mean.name(), &all.mean_latency),
        (Quantity::Interference.name(), &all.m_inter),
        (Quantity::Other.name(), &all.other),
        ("all of these", &all.values),
        (Quantity::Percentile.name(), &all.percentiles),
    ]
    .into_iter()
    .filter(|(_, errors)| errors.rows > 0)
    {
        table.push([name.into()].into_iter().chain(error_cells(errors)));
    }
    table
}

/// Errors of each figure, of the rows that share a bar.
fn by_figure(figures: &[FigureErrors]) -> Table {
    let columns = [Column::word("real drive")].into_iter();
    let columns = columns.chain(error_columns("values"));
    let mut table = Table::new(columns.chain(error_columns("percentiles")));
    for figure in figures {
        let id = [figure.id.as_str().into()].into_iter();
        let values = id.chain(error_cells(&figure.values));
        table.push(values.chain(error_cells(&figure.percentiles)));
    }
    table
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
            missed(one.ours, &one.unit, one.miss).into(),
            one.needs.as_str().into(),
            Cell::from(verdict.word()).coloured(colour_of(verdict)),
        ]);
    }
    table
}

/// The points that failed, once more where they are seen; statements that do
/// not hold have a table of their own.
fn failed(rows: &[Row], style: &Style) -> String {
    let failed = |row: &&Row| row.verdict() == Verdict::Fail && !row.is_statement();
    let failed: Vec<&Row> = rows.iter().filter(failed).collect();
    if failed.is_empty() {
        return String::new();
    }
    format!(
        "\nPoints that fail:\n{}",
        group_table(&failed).to_text(style)
    )
}
