//! The data set of a sweep: one row for each job of each run, in typed columns.

use zonelab_lab::metrics;
use zonelab_lab::output::csv_field;
use zonelab_lab::space::Quantity;

use super::pack::{JobRun, Key, Kind, Line, Pack, Run, Status};

/// Columns that every data set has before its keys and metrics, with what they mean.
pub const FIXED: [(&str, &str, &str); 17] = [
    ("point", "1", "number of the point, from 0"),
    ("repeat", "1", "which repeat of the point, from 0"),
    ("seed", "1", "seed of the run"),
    ("experiment", "", "id of the experiment"),
    ("zonelab_version", "", "the version that ran it"),
    ("drive", "", "name of the drive"),
    (
        "host",
        "",
        "name of the host's storage stack; `own`: the file's, `free`: it costs nothing",
    ),
    ("series", "", "series of the experiment"),
    ("axis", "", "name of the axis"),
    ("x", "1", "value of the axis as a number"),
    ("x_label", "", "value of the axis as it stands in the file"),
    ("job", "", "the job"),
    ("operation", "", "what the job does"),
    ("status", "", "`ok`, or `failed`"),
    ("error", "", "why it failed"),
    (
        "simulated_ns",
        "ns",
        "how long the run took on the drive's clock",
    ),
    (
        "configuration",
        "",
        "digest of all that the run depends on besides the seed",
    ),
];

/// Whether every data set has a column of this name, or may have.
pub(super) fn is_fixed_column(name: &str) -> bool {
    let mut fixed = FIXED.iter().map(|(name, ..)| *name);
    let mut metrics = metrics::NAMES.iter().map(|(name, _)| *name);
    fixed.any(|known| known == name) || metrics.any(|known| known == name)
}

/// Values of a column, one for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers of 32 bits, without gaps.
    U32(Vec<u32>),
    /// Whole numbers without a sign.
    U64(Vec<Option<u64>>),
    /// Whole numbers.
    I64(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// True or false.
    Bool(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The unit of its values; empty for what is no number.
    pub unit: String,
    /// What it is, for people; empty for metrics.
    pub what: String,
    /// One for each row.
    pub values: Values,
}

/// A data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its columns, all of the same length.
    pub columns: Vec<Column>,
    /// The number of its rows.
    pub rows: usize,
}

/// A row: a job of a run, or what there is of one that failed.
struct Row<'a> {
    line: &'a Line,
    run: Option<&'a Run>,
    job: Option<&'a JobRun>,
}

impl Row<'_> {
    fn error(&self) -> Option<&str> {
        let of_job = self.job.and_then(|job| job.error.as_deref());
        let of_run = self.run.and_then(|run| run.error.as_deref());
        of_job.or(of_run).or(self.line.message.as_deref())
    }
}

/// The data set of lines in the order of their tasks.
pub(super) fn table(pack: &Pack, lines: &[Line]) -> Table {
    let rows: Vec<Row<'_>> = lines.iter().flat_map(rows_of).collect();
    let mut columns = fixed(pack, &rows);
    for (place, key) in pack.keys.iter().enumerate() {
        columns.push(key_column(pack, key, place, &rows));
    }
    for (name, unit) in metrics::NAMES {
        let is_wanted = pack.metrics.is_empty() || pack.metrics.iter().any(|own| own == name);
        let value = |row: &Row<'_>| row.job?.metrics.get(*name).copied();
        let values: Vec<Option<f64>> = rows.iter().map(value).collect();
        let is_there = !pack.metrics.is_empty() || values.iter().any(Option::is_some);
        if is_wanted && is_there {
            columns.push(Column {
                name: (*name).to_owned(),
                unit: (*unit).to_owned(),
                what: String::new(),
                values: Values::Float(values),
            });
        }
    }
    Table {
        columns,
        rows: rows.len(),
    }
}

/// A row for each job of each run; one for a run or a task that has none.
fn rows_of(line: &Line) -> Vec<Row<'_>> {
    if line.runs.is_empty() {
        return vec![Row {
            line,
            run: None,
            job: None,
        }];
    }
    let of_run = line.runs.iter().map(|run| rows_of_run(line, run));
    of_run.flatten().collect()
}

fn rows_of_run<'a>(line: &'a Line, run: &'a Run) -> Vec<Row<'a>> {
    let row = |job| Row {
        line,
        run: Some(run),
        job,
    };
    if run.jobs.is_empty() {
        return vec![row(None)];
    }
    run.jobs.iter().map(|job| row(Some(job))).collect()
}

/// The columns that every data set has.
fn fixed(pack: &Pack, rows: &[Row<'_>]) -> Vec<Column> {
    let (id, axis) = pack.names();
    let task = |row: &Row<'_>| pack.task(row.line.index);
    let text =
        |of: &dyn Fn(&Row<'_>) -> Option<String>| Values::Text(rows.iter().map(of).collect());
    let of_run = |of: fn(&Run) -> &String| {
        let value = move |row: &Row<'_>| row.run.map(of).filter(|text| !text.is_empty()).cloned();
        Values::Text(rows.iter().map(value).collect())
    };
    let of_job = |of: fn(&JobRun) -> &String| {
        let value = move |row: &Row<'_>| row.job.map(of).cloned();
        Values::Text(rows.iter().map(value).collect())
    };
    let status = |row: &Row<'_>| {
        let status = match row.error() {
            None => Status::Ok,
            Some(_) => Status::Failed,
        };
        Some(status.name().to_owned())
    };
    let point = |row: &Row<'_>| task(row).map_or(0, |task| task.point as u32);
    let simulated = |row: &Row<'_>| {
        let run = row.run.filter(|run| run.error.is_none())?;
        i64::try_from(run.simulated_ns).ok()
    };
    let values = [
        Values::U32(rows.iter().map(point).collect()),
        Values::U32(
            rows.iter()
                .map(|row| task(row).map_or(0, |task| task.repeat))
                .collect(),
        ),
        Values::U64(
            rows.iter()
                .map(|row| task(row).map(|task| task.seed))
                .collect(),
        ),
        text(&|_| Some(id.clone())),
        text(&|_| Some(pack.inputs.version.clone())),
        of_run(|run| &run.drive),
        of_run(|run| &run.host),
        of_run(|run| &run.series),
        text(&|_| Some(axis.clone())),
        Values::Float(rows.iter().map(|row| Some(row.run?.x_number)).collect()),
        of_run(|run| &run.x),
        of_job(|job| &job.name),
        of_job(|job| &job.operation),
        text(&status),
        text(&|row| row.error().map(str::to_owned)),
        Values::I64(rows.iter().map(simulated).collect()),
        of_run(|run| &run.identity),
    ];
    let columns = FIXED.iter().zip(values);
    columns
        .map(|((name, unit, what), values)| Column {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            what: (*what).to_owned(),
            values,
        })
        .collect()
}

/// The column of what varies.
fn key_column(pack: &Pack, key: &Key, place: usize, rows: &[Row<'_>]) -> Column {
    let text = |row: &Row<'_>| -> Option<&str> {
        let task = pack.task(row.line.index)?;
        pack.value(task.point, place)
    };
    let texts = rows.iter().map(text);
    let values = match key.kind {
        Kind::Integer => {
            let value = |text: &str| {
                let (_, value) = Quantity::of(text)?;
                i64::try_from(value).ok()
            };
            Values::I64(texts.map(|text| text.and_then(value)).collect())
        }
        Kind::Float => Values::Float(texts.map(|text| text?.parse().ok()).collect()),
        Kind::Bool => Values::Bool(texts.map(|text| text?.parse().ok()).collect()),
        Kind::Text => Values::Text(texts.map(|text| text.map(str::to_owned)).collect()),
    };
    Column {
        name: key.column.clone(),
        unit: key.unit.clone(),
        what: key.key.clone().unwrap_or_default(),
        values,
    }
}

/// How the values of a key are stored, and in which unit, by those that it may have.
pub(super) fn kind_of(
    quantity: Option<Quantity>,
    values: &[String],
) -> (Kind, &'static str, &'static str) {
    if let Some(quantity) = quantity {
        let fits = |text: &String| {
            quantity
                .parse(text)
                .is_ok_and(|value| i64::try_from(value).is_ok())
        };
        if values.iter().all(fits) {
            return (Kind::Integer, quantity.suffix(), quantity.unit());
        }
    }
    let is_number = |text: &String| text.parse::<f64>().is_ok_and(f64::is_finite);
    if values.iter().all(is_number) {
        (Kind::Float, "", "1")
    } else if values.iter().all(|text| text.parse::<bool>().is_ok()) {
        (Kind::Bool, "", "")
    } else {
        (Kind::Text, "", "")
    }
}

impl Values {
    /// The name of their type in files: that of Arrow.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::U32(_) => "UInt32",
            Self::U64(_) => "UInt64",
            Self::I64(_) => "Int64",
            Self::Float(_) => "Float64",
            Self::Bool(_) => "Boolean",
            Self::Text(_) => "Utf8",
        }
    }

    /// A value as JSON; null if there is none.
    fn json(&self, row: usize) -> serde_json::Value {
        fn of<T>(values: &[Option<T>], row: usize) -> serde_json::Value
        where
            T: Clone + Into<serde_json::Value>,
        {
            values.get(row).cloned().flatten().into()
        }
        match self {
            Self::U32(values) => values.get(row).copied().into(),
            Self::U64(values) => of(values, row),
            Self::I64(values) => of(values, row),
            Self::Float(values) => of(values, row),
            Self::Bool(values) => of(values, row),
            Self::Text(values) => of(values, row),
        }
    }

    /// A value as text; empty if there is none.
    #[must_use]
    pub fn text(&self, row: usize) -> String {
        fn of<T: ToString>(values: &[Option<T>], row: usize) -> String {
            let value = values.get(row).and_then(Option::as_ref);
            value.map_or_else(String::new, T::to_string)
        }
        match self {
            Self::U32(values) => values.get(row).map_or_else(String::new, u32::to_string),
            Self::U64(values) => of(values, row),
            Self::I64(values) => of(values, row),
            Self::Float(values) => of(values, row),
            Self::Bool(values) => of(values, row),
            Self::Text(values) => of(values, row),
        }
    }
}

impl Table {
    /// The column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// As a JSON object for each row, a line each: what has no value is null.
    #[must_use]
    pub fn to_json_lines(&self) -> String {
        let mut text = String::new();
        for row in 0..self.rows {
            for (place, column) in self.columns.iter().enumerate() {
                text.push(if place == 0 { '{' } else { ',' });
                let name = serde_json::Value::from(column.name.as_str());
                text.push_str(&format!("{name}:{}", column.values.json(row)));
            }
            text.push('}');
            text.push('\n');
        }
        text
    }

    /// As comma-separated values with a line of names.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| csv_field(&column.name))
            .collect();
        let mut text = names.join(",");
        text.push('\n');
        for row in 0..self.rows {
            for (place, column) in self.columns.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                text.push_str(&csv_field(&column.values.text(row)));
            }
            text.push('\n');
        }
        text
    }
}
