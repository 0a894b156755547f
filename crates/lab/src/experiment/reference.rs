//! `reference`: published results in a table beside the experiment file.

use std::collections::BTreeMap;

use zonelab_config::{Item, Reported, Table, nearest};

use super::read::text;
use super::{Experiment, PublishedTable, is_word, number_of};
use crate::metrics::unit_of;
use crate::reference::{CsvTable, ReferenceError, UNITS};

/// A table of published results, with the meaning of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceFile {
    /// The file, relative to the experiment's.
    pub file: String,
    /// The column of the axis value.
    pub x: String,
    /// The column with the name of the series.
    pub series: String,
    /// The job whose values these are; empty: whichever is compared.
    pub job: String,
    /// Columns of metrics. If there are none, columns have the metrics' names.
    pub y: BTreeMap<String, String>,
    /// What turns the value of a column into the metric's unit, where it is not 1.
    pub factors: BTreeMap<String, f64>,
    /// Columns that are there for people.
    pub labels: Vec<String>,
}

/// The key `reference`: the name of the file, or a table that says more.
pub(super) fn reference(root: &Table<'_>) -> Result<Option<ReferenceFile>, Reported> {
    let read = |item: &Item<'_>| {
        if item.is_string() {
            return Ok(ReferenceFile::plain(text(item)?));
        }
        reference_table(&item.table()?)
    };
    root.get("reference", read).optional()
}

fn reference_table(table: &Table<'_>) -> Result<ReferenceFile, Reported> {
    let file = table.string("file").required();
    let x = table.string("x").or("x".to_owned());
    let series = table.string("series").or("series".to_owned());
    let job = table.string("job").or(String::new());
    let y = by_metric(&table.table("y"), |item, _| text(item));
    let factors = by_metric(&table.table("unit"), factor);
    let labels = table.list("labels", text).or(Vec::new());
    Ok(ReferenceFile {
        file: file?,
        x: x?,
        series: series?,
        job: job?,
        y: y?,
        factors: factors?,
        labels: labels?,
    })
}

/// A table that has a value for each of some metrics.
fn by_metric<T>(
    table: &Table<'_>,
    read: impl Fn(&Item<'_>, &str) -> Result<T, Reported>,
) -> Result<BTreeMap<String, T>, Reported> {
    let mut values = BTreeMap::new();
    let mut result = Ok(());
    for &(metric, _) in crate::metrics::NAMES {
        match table.get(metric, |item| read(item, metric)).optional() {
            Ok(Some(value)) => {
                values.insert(metric.to_owned(), value);
            }
            Ok(None) => {}
            Err(reported) => result = Err(reported),
        }
    }
    result.map(|()| values)
}

/// What turns a value in the unit that is named into one of the metric.
fn factor(item: &Item<'_>, metric: &str) -> Result<f64, Reported> {
    let own = unit_of(metric);
    match UNITS.iter().find(|(unit, _)| *unit == own) {
        Some((_, names)) => item.choice(names),
        None if own.is_empty() => Err(item.fail("the metric has no unit", "leave it out")),
        None => item.choice(&[(own, 1.0)]),
    }
}

impl ReferenceFile {
    /// A file whose columns have the names that are expected.
    fn plain(file: String) -> Self {
        Self {
            file,
            x: "x".to_owned(),
            series: "series".to_owned(),
            job: String::new(),
            y: BTreeMap::new(),
            factors: BTreeMap::new(),
            labels: Vec::new(),
        }
    }

    /// Its rows for a series, as any other published table.
    fn of_series(&self, series: &str) -> PublishedTable {
        PublishedTable {
            table: self.file.clone(),
            filter: vec![format!("{}={series}", self.series)],
            repeats: Vec::new(),
            x: Some(self.x.clone()),
            x_factor: 1.0,
            job: self.job.clone(),
            columns: self.y.clone(),
            factors: self.factors.clone(),
            labels: self.labels.clone(),
            may_be_absent: true,
        }
    }

    /// Reads the text of the file, and checks that what it is about is in the experiment.
    ///
    /// # Errors
    /// It is no table, a column is missing, or a row names a series that there is not:
    /// with the line.
    pub fn read(&self, text: &str, experiment: &Experiment) -> Result<CsvTable, ReferenceError> {
        let table = CsvTable::parse(&self.file, text)?;
        let columns = self.value_columns(&table);
        if columns.is_empty() {
            return Err(ReferenceError {
                file: self.file.clone(),
                line: 1,
                column: None,
                problem: "no column is called like a metric; say which are, \
                          in [reference]: y = { kiops = \"COLUMN\" }"
                    .to_owned(),
            });
        }
        for metric in self.factors.keys() {
            let column = self.y.get(metric).unwrap_or(metric);
            if !table.columns().contains(column) {
                return Err(ReferenceError {
                    file: self.file.clone(),
                    line: 1,
                    column: Some(column.clone()),
                    problem: format!("[reference] unit names {metric}, which has no column here"),
                });
            }
        }
        // All values of an axis are words, or none.
        let has_numbers = !experiment.axis.values.iter().any(|x| is_word(&x.text));
        let names: Vec<&str> = experiment
            .series
            .iter()
            .map(|of| of.name.as_str())
            .collect();
        for record in table.records() {
            let series = record.text(&self.series)?;
            let x = record.text(&self.x)?.trim();
            if has_numbers && number_of(x).is_none() {
                let problem = format!("`{x}` is not a number, a size, a time or another value");
                return Err(record.error(&self.x, problem));
            }
            if !names.contains(&series) {
                let hint = match nearest(series, names.iter().copied()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("there are: {}", names.join(", ")),
                };
                let problem = format!("the experiment has no series \"{series}\"; {hint}");
                return Err(record.error(&self.series, problem));
            }
            for column in &columns {
                record.number(column)?;
            }
        }
        Ok(table)
    }

    /// The columns of metrics: those that are named, or else all that are called like one.
    fn value_columns(&self, table: &CsvTable) -> Vec<String> {
        if !self.y.is_empty() {
            return self.y.values().cloned().collect();
        }
        let is_metric = |column: &&String| {
            let mut metrics = crate::metrics::NAMES.iter();
            metrics.any(|(metric, _)| metric == column)
        };
        table.columns().iter().filter(is_metric).cloned().collect()
    }
}

/// Lets every series look up its published values in the file, after its own tables.
pub(super) fn put_into(experiment: &mut Experiment) {
    let Some(reference) = &experiment.reference else {
        return;
    };
    for series in &mut experiment.series {
        series.published.push(reference.of_series(&series.name));
    }
}
