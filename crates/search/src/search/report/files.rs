//! CSV and JSON.

use serde_json::{Map, Value, json};
use zonelab_lab::output::csv_field;

use super::Row;
use crate::search::{Evaluation, Search};
use crate::sweep::Run;

/// Version of `search.json`. Within a version keys are only added.
const SCHEMA: u32 = 1;

/// One line for each setting: the front first.
pub(super) fn csv(search: &Search, rows: &[Row]) -> String {
    let keys = search.knobs().iter().map(|knob| csv_field(&knob.key));
    let names = search.objectives().iter();
    let names = names.map(|objective| csv_field(&objective.name()));
    let header: Vec<String> = ["front".to_owned(), "own".to_owned()]
        .into_iter()
        .chain(keys)
        .chain(names)
        .chain(["refused".to_owned()])
        .collect();
    let mut csv = header.join(",");
    csv.push('\n');
    for row in rows {
        let mut fields = vec![row.is_on_front.to_string(), row.is_own.to_string()];
        let values = row.values.iter();
        fields.extend(values.map(|value| csv_field(value.as_deref().unwrap_or_default())));
        let values = row.objectives.iter();
        fields.extend(values.map(|value| value.map_or_else(String::new, |v| v.to_string())));
        fields.push(csv_field(row.refused.as_deref().unwrap_or_default()));
        csv.push_str(&fields.join(","));
        csv.push('\n');
    }
    csv
}

/// Everything, in the order in which it was evaluated.
pub(super) fn json(
    search: &Search,
    evaluations: &[Evaluation<'_>],
    rows: &[Row],
    configuration: &Value,
) -> String {
    let own = search.pack().adaptive.as_ref();
    let own = own.and_then(|adaptive| adaptive.own.as_ref());
    let over = search
        .knobs()
        .iter()
        .zip(own.into_iter().flatten())
        .map(|(knob, own)| json!({ "key": knob.key, "values": knob.describe(), "own": own }));
    let objectives = search.objectives().iter().map(|objective| {
        json!({
            "name": objective.name(),
            "goal": objective.goal,
            "unit": objective.unit(),
            "series": objective.series,
            "job": objective.job,
            "metric": objective.metric,
            "x": objective.x,
        })
    });
    let published = search.published.iter();
    let published = published.map(|one| json!({ "label": one.label, "objectives": one.values }));
    let value = json!({
        "schema": SCHEMA,
        "experiment": search.experiment().id,
        "seed": search.seed(),
        "method": search.method(),
        "budget": search.budget(),
        "weights": search.pack().weights,
        "over": over.collect::<Vec<_>>(),
        "objectives": objectives.collect::<Vec<_>>(),
        "published": published.collect::<Vec<_>>(),
        "evaluations": evaluations
            .iter()
            .zip(rows)
            .map(|(one, row)| evaluation(search, one, row))
            .collect::<Vec<_>>(),
        "configuration": configuration,
    });
    // Values without maps whose keys are no texts are always JSON.
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn evaluation(search: &Search, one: &Evaluation<'_>, row: &Row) -> Value {
    let pairs = search.knobs().iter().zip(&row.values);
    let values: Map<String, Value> = pairs
        .map(|(knob, value)| (knob.key.clone(), json!(value)))
        .collect();
    let mut value = json!({
        "values": values,
        "is_candidate": one.values.is_some(),
        "own": row.is_own,
        "front": row.is_on_front,
        "objectives": row.objectives,
        "points": one.runs.iter().map(point).collect::<Vec<_>>(),
    });
    if let Some(why) = &one.refused {
        value["refused"] = json!(why);
    }
    value
}

/// What one series measured at one value of the axis.
fn point(run: &Run) -> Value {
    let jobs = run
        .jobs
        .iter()
        .map(|job| (job.name.clone(), json!(job.metrics)));
    json!({
        "series": run.series,
        "x": run.x,
        "identity": run.identity,
        "jobs": jobs.collect::<Map<_, _>>(),
    })
}
