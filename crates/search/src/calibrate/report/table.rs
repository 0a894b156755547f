//! The residual table and the summary, for a terminal.

use zonelab_lab::metrics::unit_of;
use zonelab_lab::table::{Cell, Column, Style, Table, measured};

use super::files::percent;
use super::{Errors, Quantiles, Residual, Summary};

/// Everything, the summary last.
pub(super) fn text(residuals: &[Residual], summary: &Summary) -> String {
    let style = Style::default();
    let mut text = residual_table(residuals).to_text(&style);
    text.push('\n');
    text.push_str(&parameter_table(summary).to_text(&style));
    text.push('\n');
    text.push_str(&error_table(summary).to_text(&style));
    for warning in &summary.warnings {
        text.push_str(&format!("note: {warning}\n"));
    }
    text
}

fn residual_table(residuals: &[Residual]) -> Table {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("series"),
        Column::number("x"),
        Column::text("job"),
        Column::text("metric"),
        Column::number("measured"),
        Column::number("start"),
        Column::number("error"),
        Column::number("calibrated"),
        Column::number("error"),
    ]);
    for one in residuals {
        let unit = unit_of(&one.metric);
        let of = |value: f64| measured(value, None, unit);
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), of);
        let cells = [
            one.experiment.clone(),
            one.series.clone(),
            one.x.clone(),
            one.job.clone(),
            one.metric.clone(),
            of(one.published),
            value(one.start),
            signed(one.start_error),
            value(one.ours),
            signed(one.error),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}

fn signed(error: Option<f64>) -> String {
    error.map_or_else(|| "-".to_owned(), |e| format!("{:+.1} %", e * 100.0))
}

fn parameter_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        Column::word("key"),
        Column::number("start"),
        Column::number("calibrated"),
        Column::text("range"),
        Column::text("folds"),
        Column::text("what reacts most"),
    ]);
    for one in &summary.parameters {
        let cells = [
            one.key.clone(),
            one.start.clone(),
            one.fitted.clone(),
            format!("{}..{}", one.low, one.high),
            one.folds.join(", "),
            one.strongest
                .clone()
                .unwrap_or_else(|| "nothing".to_owned()),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}

fn error_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        Column::text("errors of"),
        Column::number("values"),
        Column::number("median"),
        Column::number("P90"),
        Column::number("throughput"),
        Column::number("P90"),
        Column::number("mean latency"),
        Column::number("P90"),
        Column::number("P95 latency"),
        Column::number("P90"),
    ]);
    let mut push = |name: String, errors: &Errors| {
        let pair = |q: &Quantiles| [percent(q.median), percent(q.p90)];
        let mut cells = vec![name, errors.all.count.to_string()];
        for q in [
            &errors.all,
            &errors.throughput,
            &errors.mean_latency,
            &errors.percentiles,
        ] {
            cells.extend(pair(q));
        }
        table.push(cells.into_iter().map(Cell::from));
    };
    for one in &summary.experiments {
        push(format!("{}, start", one.name), &one.before);
        push(format!("{}, calibrated", one.name), &one.after);
    }
    for fold in &summary.cross_validation {
        push(
            format!("fold {} left out, the rest", fold.fold),
            &fold.fitted,
        );
        push(
            format!("fold {} left out, itself", fold.fold),
            &fold.left_out,
        );
    }
    push("all, start".to_owned(), &summary.all.before);
    push("all, calibrated".to_owned(), &summary.all.after);
    table
}
