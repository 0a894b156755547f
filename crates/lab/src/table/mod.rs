//! What a run comes to, as text for a terminal.
//!
//! [`comparison`] shows rows of comparison, [`page()`] what they come to, [`overview()`] the same
//! in a line for each paper, and [`markdown()`] for documents; [`Table`] lays out any other table
//! ([`zonelab_figures::table`]). Control characters in texts are replaced, so that no input file
//! can steer the terminal.

mod differences;
mod markdown;
mod overview;
mod page;
#[cfg(test)]
mod tests;

pub use differences::differences;
pub use markdown::markdown;
pub use overview::overview;
pub use page::{lines as summary_lines, page};
pub use zonelab_figures::table::{
    Align, Cell, Colour, Column, Mark, Style, Table, measured, microseconds, number, paragraph,
    percent, value,
};

use crate::rows::{Row, Stats, Summary, UNIT_CHANGE, UNIT_ERROR, UNIT_M, Verdict, X};

/// The rows of comparison with their verdicts, grouped by id, each group under
/// a line that summarises it. Groups of `summary` without any of these rows are left out.
///
/// The rows should be judged ([`Row::judged`]) and marked
/// ([`crate::rows::Misfits::apply`]).
#[must_use]
pub fn comparison(rows: &[Row], summary: &Summary, style: &Style) -> String {
    let mut out = String::new();
    for (id, stats) in &summary.by_id {
        let own = rows.iter().filter(|row| row.id == *id);
        let (checks, values): (Vec<_>, Vec<_>) = own.partition(|row| row.is_statement());
        if checks.is_empty() && values.is_empty() {
            continue;
        }
        out.push_str(&paragraph(&figure_line(id, stats), style));
        if !values.is_empty() {
            out.push_str(&group_table(&values).to_text(style));
        }
        if !checks.is_empty() {
            out.push_str(&check_table(&checks).to_text(style));
        }
        out.push('\n');
    }
    if rows.iter().any(Row::passes_by_bracket) {
        let note = "±1pt: the published percentile lies between ours one point lower and higher";
        out.push_str(&paragraph(note, style));
    }
    out
}

/// What became of a figure, in a line: "C10a: 42 rows, 40 ok, 1 MISFIT; |error|
/// median 0.4 %, P90 2.1 %".
#[must_use]
pub fn figure_line(id: &str, stats: &Stats) -> String {
    format!("{id}: {}", sentence(stats))
}

/// The magnitude of an error in per cent; a dash if there is none.
pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// A value of a statement as a person reads it: shares in per cent.
pub fn sized(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), UNIT_CHANGE) => percent(value),
        (Some(value), UNIT_ERROR) => share(Some(value)),
        (Some(value), _) => number(value),
    }
}

/// The same, and times in units that fit them.
fn sized_as_read(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(us) if unit == "us" => microseconds(us),
        value => sized(value, unit),
    }
}

/// Our value of a statement, and half the width of its interval if it has one.
fn sized_within(row: &Row) -> String {
    let half = row.statistics.and_then(|of| of.half_width);
    match (half, row.unit.as_str()) {
        (None, unit) => sized_as_read(Some(row.ours), unit),
        (Some(half), UNIT_CHANGE | UNIT_ERROR) => {
            let half = number(half * 100.0);
            format!(
                "{} ± {half} %",
                sized(Some(row.ours), &row.unit).trim_end_matches(" %")
            )
        }
        (half, unit) => measured(row.ours, half, unit),
    }
}

/// The same of a value that misses what it would take by `miss`, relative to that.
/// An error that misses by less than is usually shown is shown more exactly: 3.03 %
/// is not 3.0 % where 3 % are allowed.
pub(crate) fn missed(value: Option<f64>, unit: &str, miss: Option<f64>) -> String {
    const LITTLE: f64 = 0.02;
    match (value, miss) {
        (Some(value), Some(miss)) if unit == UNIT_ERROR && miss < LITTLE => {
            format!("{:.3} %", value * 100.0)
        }
        _ => sized(value, unit),
    }
}

fn group_table(rows: &[&Row]) -> Table {
    let xs = x_column(rows);
    let mut columns = vec![Column::word("id"), Column::text("series")];
    columns.extend(xs.as_ref().map(|(column, _)| column.clone()));
    columns.push(Column {
        least: Some(12),
        ..Column::text("metric")
    });
    let is_compared = rows.iter().any(|row| row.published.is_some());
    // Without anything published, the verdict of a point is that it is shown.
    let is_judged = is_compared || rows.iter().any(|row| row.verdict() != Verdict::Info);
    columns.extend(is_compared.then(|| Column::number("published")));
    columns.push(Column::number("ours"));
    columns.extend(is_compared.then(|| Column::number("error")));
    columns.extend(is_judged.then(|| Column::word("verdict")));
    let mut table = Table::new(columns);
    for (n, row) in rows.iter().enumerate() {
        let optional = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "-".to_owned()));
        let mut cells: Vec<Cell> = vec![row.id.as_str().into(), row.series.as_str().into()];
        cells.extend(xs.as_ref().and_then(|(_, cells)| cells.get(n).cloned()));
        cells.push(metric(row).into());
        let published = || optional(row.published.map(|of| value(of, &row.unit)));
        cells.extend(is_compared.then(published));
        let half = row.statistics.and_then(|of| of.half_width);
        cells.push(measured(row.ours, half, &row.unit).into());
        cells.extend(is_compared.then(|| optional(row.rel_error.map(percent))));
        cells.extend(is_judged.then(|| verdict_cell(row)));
        table.push(cells);
    }
    table
}

/// Statements, which are too long for the metric's column.
fn check_table(rows: &[&Row]) -> Table {
    let is_published = rows.iter().any(|row| row.published.is_some());
    let mut columns = vec![Column::word("id"), Column::text("statement")];
    columns.extend(is_published.then(|| Column::number("published")));
    columns.extend([
        Column::number("ours"),
        Column::word("needs"),
        Column::word("verdict"),
    ]);
    let mut table = Table::new(columns);
    for row in rows {
        let needs = row
            .statement
            .map(|bound| bound.words(&row.unit))
            .unwrap_or_default();
        let mut cells: Vec<Cell> = vec![row.id.as_str().into(), row.metric.as_str().into()];
        cells.extend(is_published.then(|| sized_as_read(row.published, &row.unit).into()));
        cells.extend([sized_within(row).into(), needs.into(), verdict_cell(row)]);
        table.push(cells);
    }
    table
}

/// The metric with its unit. M^Inter has a name for a unit.
fn metric(row: &Row) -> String {
    if row.unit.is_empty() || row.unit == UNIT_M {
        row.metric.clone()
    } else {
        format!("{} ({})", row.metric, row.unit)
    }
}

/// The column for x and its cells; none if no row has an x. Its header may be
/// cut, its cells not.
fn x_column(rows: &[&Row]) -> Option<(Column, Vec<Cell>)> {
    rows.iter().find_map(|row| row.x.as_ref())?;
    let name = common_x(rows);
    let text = |x: &X| match name {
        Some(_) => coordinate(x),
        None => format!("{} {}", x.name, coordinate(x)),
    };
    let cells: Vec<Cell> = rows
        .iter()
        .map(|row| row.x.as_ref().map(text).unwrap_or_default().into())
        .collect();
    let least = cells.iter().map(Cell::width).max();
    let header = name.unwrap_or("x").to_owned();
    let align = if name.is_some() {
        Align::Right
    } else {
        Align::Left
    };
    Some((
        Column {
            header,
            align,
            least,
        },
        cells,
    ))
}

/// The name of x if all rows that have one share it: it is then the header.
fn common_x<'a>(rows: &[&'a Row]) -> Option<&'a str> {
    let mut names = rows
        .iter()
        .filter_map(|row| row.x.as_ref())
        .map(|x| x.name.as_str());
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Where a row lies: a number, or what stands in the experiment if that is more.
fn coordinate(x: &X) -> String {
    if let Some(words) = x.in_words() {
        return words.to_owned();
    }
    short(x.value)
}

/// A coordinate: as it is if it is a small integer, otherwise as a number.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        format!("{value:.0}")
    } else {
        number(value)
    }
}

fn verdict_cell(row: &Row) -> Cell {
    let verdict = row.verdict();
    let mut text = verdict.word().to_owned();
    if row.passes_by_bracket() {
        text.push_str(" ±1pt");
    }
    Cell::from(text).coloured(colour_of(verdict))
}

const fn colour_of(verdict: Verdict) -> Colour {
    match verdict {
        Verdict::Ok => Colour::Green,
        Verdict::Misfit | Verdict::Missed => Colour::Yellow,
        Verdict::Fail => Colour::Red,
        Verdict::Joint | Verdict::Input | Verdict::Info => Colour::Dim,
    }
}

/// "42 rows, 40 ok, 1 MISFIT, 1 FAIL; |error| median 0.4 %, P90 2.1 %".
fn sentence(stats: &Stats) -> String {
    counted(stats) + &errors(stats)
}

/// "42 rows, 40 ok, 1 MISFIT, 1 FAIL".
fn counted(stats: &Stats) -> String {
    let mut out = format!(
        "{} {}",
        stats.count,
        if stats.count == 1 { "row" } else { "rows" }
    );
    for verdict in Verdict::ALL {
        let count = stats.of_verdict(verdict);
        if count > 0 {
            out.push_str(&format!(", {count} {}", verdict.word()));
        }
    }
    out
}

fn errors(stats: &Stats) -> String {
    let (Some(median), Some(p90)) = (stats.median_error, stats.p90_error) else {
        return String::new();
    };
    format!(
        "; |error| median {:.1} %, P90 {:.1} %",
        median * 100.0,
        p90 * 100.0
    )
}
