//! Rows as JSON and CSV.

use super::{DriveSummary, Row};
use crate::output::csv_field;

/// Version of the row files. Within a version keys are only added.
pub const SCHEMA: u32 = 1;

/// The columns of the CSV file and the keys of a row in JSON.
pub const COLUMNS: [&str; 15] = [
    "id",
    "kind",
    "series",
    "x",
    "metric",
    "unit",
    "published",
    "repeat_spread",
    "ours",
    "ours_lower",
    "ours_upper",
    "rel_error",
    "tolerance",
    "pass",
    "misfit",
];

/// `{"schema", "seed", "rows"}` with one row per line, null where a value is
/// unknown; and `"summary"`, a [`DriveSummary`], if there are rows of a real
/// drive. The same rows give the same bytes.
#[must_use]
pub fn to_json(rows: &[Row], seed: u64) -> String {
    let mut out = format!("{{\n\"schema\": {SCHEMA},\n\"seed\": {seed},\n\"rows\": [");
    for (n, row) in rows.iter().enumerate() {
        out.push_str(if n == 0 { "\n" } else { ",\n" });
        // Serialising to memory fails only for maps with odd keys.
        out.push_str(&serde_json::to_string(row).expect("a row has no maps"));
    }
    out.push_str("\n]");
    if let Some(summary) = DriveSummary::of(rows) {
        out.push_str(",\n\"summary\": ");
        out.push_str(&serde_json::to_string_pretty(&summary).expect("a summary has no maps"));
    }
    out.push_str("\n}\n");
    out
}

/// The same as comma-separated values after RFC 4180, empty where a value is
/// unknown. A spread is written as `least..greatest`.
#[must_use]
pub fn to_csv(rows: &[Row]) -> String {
    let mut out = COLUMNS.join(",");
    out.push('\n');
    for row in rows {
        let fields = fields(row).map(|field| csv_field(&field));
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

/// The fields of `row` in the order of [`COLUMNS`].
fn fields(row: &Row) -> [String; COLUMNS.len()] {
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    [
        row.id.clone(),
        row.kind.letter().to_owned(),
        row.series.clone(),
        row.x.as_ref().map(|x| number(x.value)).unwrap_or_default(),
        row.metric.clone(),
        row.unit.clone(),
        optional(row.published),
        row.repeat_spread
            .map(|(a, b)| format!("{}..{}", number(a), number(b)))
            .unwrap_or_default(),
        number(row.ours),
        optional(row.ours_lower),
        optional(row.ours_upper),
        optional(row.rel_error),
        optional(row.tolerance),
        row.pass.map(|pass| pass.to_string()).unwrap_or_default(),
        row.misfit.clone().unwrap_or_default(),
    ]
}

/// The shortest text that reads back as `value`, the same as in JSON.
fn number(value: f64) -> String {
    serde_json::Number::from_f64(value)
        .map(|number| number.to_string())
        .unwrap_or_default()
}
