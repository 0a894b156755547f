//! CSV, JSON and HTML.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;
use zonelab_lab::output::csv_field;
use zonelab_lab::rows::significant;
use zonelab_lab::table::number;
use zonelab_page::sections::{self, Page, table};

use super::{BeforeAfter, Quantiles, Residual, SCHEMA, Summary};
use crate::calibrate::data::Data;
use crate::calibrate::sensitivity::Sensitivity;

/// Pretty JSON with a line end.
pub(super) fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("texts and numbers are JSON");
    text.push('\n');
    text
}

pub(super) fn residuals_json(residuals: &[Residual]) -> String {
    json(&json!({ "schema": SCHEMA, "residuals": residuals }))
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

pub(super) fn residuals_csv(residuals: &[Residual]) -> String {
    let mut csv = String::from(
        "file,row,experiment,series,x,job,metric,published,spread_low,spread_high,start,ours,\
         start_error,error,fold\n",
    );
    for one in residuals {
        let texts = [&one.experiment, &one.series, &one.x, &one.job, &one.metric];
        let texts = texts.map(|text| csv_field(text)).join(",");
        let numbers = [
            Some(one.published),
            one.spread.map(|(low, _)| low),
            one.spread.map(|(_, high)| high),
            one.start,
            one.ours,
            one.start_error,
            one.error,
        ];
        let numbers = numbers.map(optional).join(",");
        // Writing to a string does not fail.
        let fold = one.fold.map_or_else(String::new, |fold| fold.to_string());
        let file = csv_field(&one.file);
        let _ = writeln!(csv, "{file},{},{texts},{numbers},{fold}", one.row);
    }
    csv
}

/// By key, experiment and metric: how many values react, and how strongly.
pub(super) fn sensitivity_csv(data: &Data, list: &[Sensitivity]) -> String {
    let mut csv = String::from("key,experiment,metric,values,reacting,rms_elasticity\n");
    for one in list {
        for (group, of_group) in data.groups.iter().enumerate() {
            let mine = |index: &usize| data.measurements[*index].group == group;
            let all: Vec<usize> = (0..data.measurements.len()).filter(mine).collect();
            let mut metrics: Vec<&str> = all
                .iter()
                .map(|index| data.measurements[*index].metric.as_str())
                .collect();
            metrics.sort_unstable();
            metrics.dedup();
            for metric in metrics {
                let of_metric = |index: &&usize| data.measurements[**index].metric == metric;
                let positions: Vec<usize> = all.iter().filter(of_metric).copied().collect();
                let (reacting, strength) = one.over(&positions);
                // Writing to a string does not fail.
                let _ = writeln!(
                    csv,
                    "{},{},{},{},{reacting},{}",
                    one.key,
                    csv_field(&of_group.name),
                    csv_field(metric),
                    positions.len(),
                    significant(strength)
                );
            }
        }
    }
    csv
}

/// A share as a percentage, or a dash.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// A page with everything on it: no scripts, no other files.
pub(super) fn html(
    summary: &Summary,
    residuals: &[Residual],
    figures: &[(String, String)],
) -> String {
    let mut page = Page::new("Calibration", "A profile, fitted to measurements");
    for warning in &summary.warnings {
        page.notice(warning);
    }
    let errors = table(
        &[
            "experiment",
            "values",
            "median before",
            "P90",
            "median after",
            "P90",
        ],
        std::iter::once(&summary.all)
            .chain(&summary.experiments)
            .map(error_cells),
    );
    page.part("errors", "Errors", errors);
    let parameters = table(
        &["key", "start", "fitted", "range", "folds", "reacts most"],
        summary.parameters.iter().map(|one| {
            let strongest = one
                .strongest
                .clone()
                .unwrap_or_else(|| "nothing".to_owned());
            let range = format!("{}..{}", one.low, one.high);
            let (key, start) = (one.key.clone(), one.start.clone());
            let fitted = one.fitted.clone();
            vec![key, start, fitted, range, one.folds.join(", "), strongest]
        }),
    );
    page.part("parameters", "Parameters", parameters);
    let quantiles = |q: &Quantiles| format!("{} / {}", percent(q.median), percent(q.p90));
    let folds = table(
        &["left out", "fitted: median / P90", "left out: median / P90"],
        summary.cross_validation.iter().map(|fold| {
            let left_out = quantiles(&fold.left_out.all);
            vec![fold.fold.to_string(), quantiles(&fold.fitted.all), left_out]
        }),
    );
    page.part("cross-validation", "Cross-validation", folds);
    let figures = figures
        .iter()
        .map(|(_, svg)| sections::figure(svg))
        .collect();
    page.part("figures", "Figures", figures);
    let residuals = table(
        &[
            "where", "series", "x", "job", "metric", "measured", "start", "ours", "error",
        ],
        residuals.iter().map(residual_cells),
    );
    page.part("residuals", "Residuals", residuals);
    page.to_html()
}

fn error_cells(one: &BeforeAfter) -> Vec<String> {
    let (before, after) = (&one.before.all, &one.after.all);
    vec![
        one.name.clone(),
        after.count.to_string(),
        percent(before.median),
        percent(before.p90),
        percent(after.median),
        percent(after.p90),
    ]
}

fn residual_cells(one: &Residual) -> Vec<String> {
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    vec![
        one.experiment.clone(),
        one.series.clone(),
        one.x.clone(),
        one.job.clone(),
        one.metric.clone(),
        number(one.published),
        value(one.start),
        value(one.ours),
        percent(one.error),
    ]
}
