//! Points as tables: what they measured, and each of their repeats.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Finished;
use crate::metrics::{Metrics, unit_of};
use crate::output::csv_field;
use crate::rows::{self, significant};
use crate::run::{JobMeasured, PointResult, repeat_seed};
use crate::statistics::{self, Written};

/// Every metric of every job, with how it varies if that is known of any.
pub(super) fn points_csv(finished: &[Finished]) -> String {
    let varies = jobs(finished).any(|(.., job)| job.spread.is_some());
    let mut csv = String::from("experiment,series,x,x_label,job,metric,unit,value");
    for column in statistics::COLUMNS.iter().filter(|_| varies) {
        csv.push(',');
        csv.push_str(column);
    }
    csv.push('\n');
    for (one, result, job) in jobs(finished) {
        for (metric, value) in &job.metrics.values {
            push_point(&mut csv, one, result, job);
            // Writing to a string does not fail.
            let value = rows::number(significant(*value));
            let _ = write!(csv, "{metric},{},{value}", unit_of(metric));
            if varies {
                let of = job.statistics(metric).map(Written::of);
                let fields = of.map(|of| of.fields()).unwrap_or_default();
                let _ = write!(csv, ",{}", fields.join(","));
            }
            csv.push('\n');
        }
    }
    csv
}

/// Every metric of every repeat; `None` if nothing was repeated.
pub(super) fn repeats_csv(finished: &[Finished], seed: u64) -> Option<String> {
    let is_repeated = |job: &JobMeasured| repeats(job).next().is_some();
    if !jobs(finished).any(|(.., job)| is_repeated(job)) {
        return None;
    }
    let head = "experiment,series,x,x_label,job,metric,unit,repeat,seed,value\n";
    let mut csv = String::from(head);
    for (one, result, job) in jobs(finished) {
        for (repeat, metrics) in repeats(job) {
            let seed = repeat_seed(seed, repeat);
            for (metric, value) in &metrics.values {
                push_point(&mut csv, one, result, job);
                let value = rows::number(significant(*value));
                let unit = unit_of(metric);
                // Writing to a string does not fail.
                let _ = writeln!(csv, "{metric},{unit},{repeat},{seed},{value}");
            }
        }
    }
    Some(csv)
}

/// Adds how the metrics of a job vary, and each repeat.
pub(super) fn add_spread(value: &mut Value, job: &JobMeasured, seed: u64) {
    let Some(spread) = &job.spread else { return };
    let statistics = spread.statistics.iter();
    let statistics = statistics.map(|(name, of)| ((*name).to_owned(), json!(Written::of(of))));
    value["statistics"] = Value::Object(statistics.collect());
    let repeat = |(repeat, metrics): (u32, &Metrics)| {
        let values = metrics.values.iter();
        let values = values.map(|(name, of)| ((*name).to_owned(), json!(significant(*of))));
        json!({
            "repeat": repeat,
            "seed": repeat_seed(seed, repeat),
            "metrics": Value::Object(values.collect()),
        })
    };
    let all: Vec<Value> = repeats(job).map(repeat).collect();
    if !all.is_empty() {
        value["repeats"] = all.into();
    }
}

/// The repeats of a job; none if it ran once.
fn repeats(job: &JobMeasured) -> impl Iterator<Item = (u32, &Metrics)> {
    let spread = job.spread.iter();
    spread.flat_map(|of| {
        of.repeats
            .iter()
            .map(|(repeat, metrics)| (*repeat, metrics))
    })
}

fn jobs(finished: &[Finished]) -> impl Iterator<Item = (&Finished, &PointResult, &JobMeasured)> {
    finished.iter().flat_map(|one| {
        let results = one.results.iter();
        results.flat_map(move |result| result.jobs.iter().map(move |job| (one, result, job)))
    })
}

/// The columns that say which job of which point it is.
fn push_point(csv: &mut String, one: &Finished, result: &PointResult, job: &JobMeasured) {
    let x = rows::number(significant(result.x.number));
    for field in [
        &one.experiment.id,
        &result.series,
        &x,
        &result.x.text,
        &job.name,
    ] {
        csv.push_str(&csv_field(field));
        csv.push(',');
    }
}
