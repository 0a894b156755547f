//! Rows as JSON and CSV.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Kind, Row, Stats, Summary, Verdict};
use crate::difference::Difference;
use crate::output::csv_field;
use crate::statistics;

/// Version of the row files. Within a version keys are only added.
pub const SCHEMA: u32 = 2;

/// The columns of the CSV file and the keys of a row in JSON.
pub const COLUMNS: [&str; 21] = [
    "id",
    "kind",
    "series",
    "job",
    "x",
    "x_label",
    "metric",
    "unit",
    "published",
    "published_in",
    "repeat_spread",
    "ours",
    "ours_lower",
    "ours_upper",
    "rel_error",
    "tolerance",
    "needs",
    "verdict",
    "counts",
    "pass",
    "reason",
];

/// A row as it is written; the order of the fields is that of [`COLUMNS`].
#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    kind: Kind,
    series: &'a str,
    job: &'a str,
    x: Option<f64>,
    x_label: Option<&'a str>,
    metric: &'a str,
    unit: &'a str,
    published: Option<f64>,
    published_in: Option<&'a str>,
    repeat_spread: Option<(f64, f64)>,
    ours: f64,
    ours_lower: Option<f64>,
    ours_upper: Option<f64>,
    rel_error: Option<f64>,
    tolerance: Option<f64>,
    needs: Option<String>,
    verdict: &'static str,
    counts: bool,
    pass: Option<bool>,
    reason: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    statistics: Option<statistics::Written>,
}

impl<'a> Written<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            id: &row.id,
            kind: row.kind,
            series: &row.series,
            job: &row.job,
            x: row.x.as_ref().map(|x| x.value),
            x_label: row.x.as_ref().map(|x| x.label.as_str()),
            metric: &row.metric,
            unit: &row.unit,
            published: row.published,
            published_in: row.published_in.as_deref(),
            repeat_spread: row.repeat_spread,
            ours: row.ours,
            ours_lower: row.ours_lower,
            ours_upper: row.ours_upper,
            rel_error: row.rel_error,
            tolerance: row.tolerance,
            needs: row.statement.map(|bound| bound.words(&row.unit)),
            verdict: row.verdict().word(),
            counts: row.counts(),
            pass: row.pass,
            reason: row.reason(),
            statistics: row.statistics.as_ref().map(statistics::Written::of),
        }
    }
}

/// `{"schema", "seed", "rows", "summary"}` with one row per line, null where a
/// value is unknown. The same rows give the same bytes.
#[must_use]
pub fn to_json(rows: &[Row], summary: &Summary, seed: u64) -> String {
    to_json_with(rows, summary, seed, &[])
}

/// The same, with `differences` if there are any.
#[must_use]
pub fn to_json_with(
    rows: &[Row],
    summary: &Summary,
    seed: u64,
    differences: &[Difference],
) -> String {
    let mut out = format!("{{\n\"schema\": {SCHEMA},\n\"seed\": {seed},\n\"rows\": [");
    for (n, row) in rows.iter().enumerate() {
        out.push_str(if n == 0 { "\n" } else { ",\n" });
        // Serialising to memory fails only for maps with odd keys.
        out.push_str(&serde_json::to_string(&Written::of(row)).expect("a row has no maps"));
    }
    out.push_str("\n],\n");
    if !differences.is_empty() {
        out.push_str("\"differences\": [");
        for (n, difference) in differences.iter().enumerate() {
            out.push_str(if n == 0 { "\n" } else { ",\n" });
            let text = serde_json::to_string(&difference.written());
            out.push_str(&text.expect("a difference has no maps"));
        }
        out.push_str("\n],\n");
    }
    out.push_str("\"summary\": ");
    let text = serde_json::to_string_pretty(&summary_json(summary));
    out.push_str(&text.expect("a summary has plain keys"));
    out.push_str("\n}\n");
    out
}

/// What the page at the end says, as data.
fn summary_json(summary: &Summary) -> Value {
    let kinds = summary.kinds.iter().map(|(kind, stats)| {
        let mut value = stats_json(stats);
        value["kind"] = json!(kind.letter());
        value
    });
    let mut value = json!({
        "quick": summary.scope.quick,
        "whole": summary.scope.whole,
        "pass": summary.pass(),
        "kinds": kinds.collect::<Vec<_>>(),
        "statements": stats_json(&summary.statements),
        "drive": summary.drive,
        "missing": summary.missing,
    });
    if !summary.warnings.is_empty() {
        value["warnings"] = json!(summary.warnings);
    }
    if !summary.unjudged.is_empty() {
        value["unjudged"] = json!(summary.unjudged);
    }
    value
}

fn stats_json(stats: &Stats) -> Value {
    let verdicts: serde_json::Map<String, Value> = Verdict::ALL
        .iter()
        .map(|verdict| {
            let count = stats.of_verdict(*verdict);
            (verdict.word().to_owned(), json!(count))
        })
        .collect();
    json!({
        "rows": stats.count,
        "verdicts": verdicts,
        "median_error": stats.median_error.map(super::significant),
        "p90_error": stats.p90_error.map(super::significant),
    })
}

/// The rows as comma-separated values after RFC 4180, empty where a value is
/// unknown. A spread is written as `least..greatest`. If any value was repeated,
/// the columns of [`statistics`] follow.
#[must_use]
pub fn to_csv(rows: &[Row]) -> String {
    let varies = rows.iter().any(|row| row.statistics.is_some());
    let more = statistics::COLUMNS.iter().filter(|_| varies);
    let columns: Vec<&str> = COLUMNS.iter().chain(more).copied().collect();
    let mut out = columns.join(",");
    out.push('\n');
    for row in rows {
        let written = Written::of(row);
        let mut all = fields(&written).to_vec();
        if varies {
            let statistics = written.statistics.as_ref();
            let of = statistics.map(statistics::Written::fields);
            all.extend(of.unwrap_or_default());
        }
        let all: Vec<String> = all.iter().map(|field| csv_field(field)).collect();
        out.push_str(&all.join(","));
        out.push('\n');
    }
    out
}

/// The fields of `row` in the order of [`COLUMNS`].
fn fields(row: &Written<'_>) -> [String; COLUMNS.len()] {
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    [
        row.id.to_owned(),
        row.kind.letter().to_owned(),
        row.series.to_owned(),
        row.job.to_owned(),
        optional(row.x),
        row.x_label.unwrap_or_default().to_owned(),
        row.metric.to_owned(),
        row.unit.to_owned(),
        optional(row.published),
        row.published_in.unwrap_or_default().to_owned(),
        row.repeat_spread
            .map(|(a, b)| format!("{}..{}", number(a), number(b)))
            .unwrap_or_default(),
        number(row.ours),
        optional(row.ours_lower),
        optional(row.ours_upper),
        optional(row.rel_error),
        optional(row.tolerance),
        row.needs.clone().unwrap_or_default(),
        row.verdict.to_owned(),
        row.counts.to_string(),
        row.pass.map(|pass| pass.to_string()).unwrap_or_default(),
        row.reason.clone().unwrap_or_default(),
    ]
}

/// The shortest text that reads back as `value`, the same as in JSON; empty if
/// it is not finite.
#[must_use]
pub fn number(value: f64) -> String {
    serde_json::Number::from_f64(value)
        .map(|number| number.to_string())
        .unwrap_or_default()
}
