//! The summary of a real drive's rows.

use super::{Cell, Column, Style, Table, number, paragraph, percent, share, short};
use crate::rows::{DriveSummary, Errors, FigureErrors, Quantity};

/// Errors by figure and quantity, whether the bars hold, and what is far off.
pub(super) fn summary(drive: &DriveSummary, style: &Style) -> String {
    let mut out = String::from("\n");
    out.push_str(&errors(drive).to_text(style));
    let all = drive.all.all;
    for (name, value, most, holds) in [
        (
            "median",
            all.median,
            DriveSummary::MEDIAN_BAR,
            drive.median_holds,
        ),
        ("P90", all.p90, DriveSummary::P90_BAR, drive.p90_holds),
    ] {
        let line = format!(
            "bar: {name} of all rows at most {:.0} %: {} with {}",
            most * 100.0,
            if holds { "HOLDS" } else { "DOES NOT HOLD" },
            share(value),
        );
        out.push_str(&paragraph(&line, style));
    }
    if !drive.beyond.is_empty() {
        let line = format!(
            "{} of {} rows are further off than {:.0} %:",
            drive.beyond.len(),
            all.rows,
            DriveSummary::P90_BAR * 100.0
        );
        out.push_str(&paragraph(&line, style));
        let causes = causes(drive);
        out.push_str(&beyond(drive, &causes).to_text(style));
        for (n, cause) in causes.iter().enumerate() {
            out.push_str(&paragraph(&format!("[{}] {cause}", n + 1), style));
        }
    }
    out
}

/// Points, and rows, median and 90th percentile of each quantity.
fn errors(drive: &DriveSummary) -> Table {
    let mut columns = vec![Column::word("kind D"), Column::number("points")];
    let quantities = Quantity::ALL.map(Quantity::name).into_iter();
    for name in quantities.chain(["all"]) {
        columns.extend([
            Column::number(name),
            Column::number("median"),
            Column::number("P90"),
        ]);
    }
    let mut table = Table::new(columns);
    for figure in drive.figures.iter().chain([&drive.all]) {
        table.push(figure_cells(figure).map(Cell::from));
    }
    table
}

fn figure_cells(figure: &FigureErrors) -> [String; 14] {
    let [throughput, mean, p95] = figure.by_quantity();
    let mut cells = vec![figure.id.clone(), figure.points.to_string()];
    for Errors { rows, median, p90 } in [throughput, mean, p95, &figure.all] {
        cells.extend([rows.to_string(), share(*median), share(*p90)]);
    }
    cells
        .try_into()
        .expect("two cells, and three for each of four")
}

/// The causes of rows that are far off, each once: one explains many rows.
fn causes(drive: &DriveSummary) -> Vec<&str> {
    let mut causes = Vec::new();
    for cause in drive.beyond.iter().filter_map(|row| row.cause.as_deref()) {
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes
}

/// Rows that are far off, with the number of their cause.
fn beyond(drive: &DriveSummary, causes: &[&str]) -> Table {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("series"),
        Column::number("x"),
        Column::word("metric"),
        Column::number("error"),
        Column::word("cause"),
    ]);
    for row in &drive.beyond {
        let x = row.x.map_or_else(String::new, |x| {
            if x.abs() < 1e7 { short(x) } else { number(x) }
        });
        let known = |cause: &&str| row.cause.as_deref() == Some(*cause);
        let cause = causes
            .iter()
            .position(known)
            .map_or_else(|| "not known".to_owned(), |n| format!("[{}]", n + 1));
        let cells = [
            &row.id,
            &row.series,
            &x,
            &row.metric,
            &percent(row.rel_error),
            &cause,
        ];
        table.push(cells.map(Cell::from));
    }
    table
}
