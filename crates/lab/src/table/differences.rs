//! Differences between two series as tables.

use super::{Cell, Column, Style, Table, measured, number, percent};
use crate::difference::Difference;

/// A table for each experiment that has differences; empty without any.
#[must_use]
pub fn differences(differences: &[Difference], style: &Style) -> String {
    let mut out = String::new();
    let mut ids: Vec<&str> = Vec::new();
    for id in differences.iter().map(|of| of.id.as_str()) {
        if ids.contains(&id) {
            continue;
        }
        ids.push(id);
        let own: Vec<&Difference> = differences.iter().filter(|of| of.id == id).collect();
        out.push_str(&format!(
            "{id}: differences between series, paired by seed\n"
        ));
        out.push_str(&table(&own).to_text(style));
        out.push('\n');
    }
    out
}

fn table(differences: &[&Difference]) -> Table {
    let axis = differences.first().map_or("x", |of| of.axis.as_str());
    let mut table = Table::new([
        Column::text("series"),
        Column::text("baseline"),
        Column::number(axis),
        Column::text("metric"),
        Column::number("difference"),
        Column::number("relative"),
        Column::word("verdict"),
    ]);
    for of in differences {
        let named = |series: &str, job: &str| match of.job == of.baseline_job {
            true => series.to_owned(),
            false => format!("{series}: {job}"),
        };
        let (metric, unit) = &of.metric;
        let metric = match *unit {
            "" => metric.clone(),
            unit => format!("{metric} ({unit})"),
        };
        let cells = [
            named(&of.series, &of.job),
            named(&of.baseline, &of.baseline_job),
            of.at.clone(),
            metric,
            measured(of.statistics.mean, of.statistics.half_width, unit),
            relative(of),
            of.verdict.words().to_owned(),
        ];
        table.push(cells.map(Cell::from));
    }
    table
}

/// "+1.2 ± 0.3 %".
fn relative(of: &Difference) -> String {
    match (of.relative(), of.relative_half_width()) {
        (None, _) => "-".to_owned(),
        (Some(share), None) => percent(share),
        (Some(share), Some(half)) => {
            let share = percent(share);
            let half = number((half * 1000.0).round() / 10.0);
            format!("{} ± {half} %", share.trim_end_matches(" %"))
        }
    }
}
