//! Published values of points, from the reference tables or an experiment file.

use crate::experiment::{AxisValue, Experiment, PublishedTable, SeriesSpec};
use crate::reference::{CsvTable, Record, ReferenceError};

/// The tables that are built in, by the name that experiments use.
const BUILTIN: &[(&str, &str)] = &[(
    "confznspp/emulator",
    include_str!("../../../reference/confznspp/emulator.csv"),
)];

/// A published value, with the range of the authors' repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The value.
    pub value: f64,
    /// Least and greatest of independent repeats, if there are any.
    pub spread: Option<(f64, f64)>,
}

/// Where a value stands in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellPlace {
    /// The file, as the table was named when it was read.
    pub file: String,
    /// Line of the row, from 1.
    pub line: usize,
    /// Name of the column.
    pub column: String,
}

/// Reference tables.
#[derive(Debug)]
pub struct References {
    tables: Vec<(String, CsvTable)>,
}

/// Why a published value cannot be looked up.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LookupError {
    /// There is no such table.
    #[error("there is no reference table \"{name}\"; there are: {known}")]
    NoTable {
        /// Asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// A condition is not `column=value`.
    #[error("\"{condition}\" is no condition: write column=value")]
    Condition {
        /// The condition.
        condition: String,
    },
    /// The table does not have what is asked of it.
    #[error("{0}")]
    Table(#[from] ReferenceError),
    /// No row meets the conditions, whatever the axis value.
    #[error("no row of \"{table}\" answers to {conditions}")]
    Nothing {
        /// The table.
        table: String,
        /// The conditions.
        conditions: String,
    },
    /// Several different rows answer to one point, and nothing says that they are repeats.
    #[error("{count} rows of \"{table}\" answer to {conditions} at {column} = {x}")]
    Ambiguous {
        /// The table.
        table: String,
        /// The conditions.
        conditions: String,
        /// Column of the axis value.
        column: String,
        /// The axis value.
        x: f64,
        /// How many rows.
        count: usize,
    },
}

impl References {
    /// The tables that are built in.
    ///
    /// # Errors
    /// One of them is malformed.
    pub fn builtin() -> Result<Self, ReferenceError> {
        let read =
            |&(name, text): &(&str, &str)| Ok((name.to_owned(), CsvTable::parse(name, text)?));
        Ok(Self {
            tables: BUILTIN.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// No tables at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self { tables: Vec::new() }
    }

    /// The same tables with one more, or with one in the place of its namesake.
    #[must_use]
    pub fn with_table(mut self, name: &str, table: CsvTable) -> Self {
        self.tables.retain(|(known, _)| known != name);
        self.tables.push((name.to_owned(), table));
        self
    }

    /// Where a published value stands, if it comes from a table: for messages
    /// and lists of residuals. `None` where [`Self::value`] finds nothing in a table.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn place(
        &self,
        series: &SeriesSpec,
        x: &AxisValue,
        metric: &str,
    ) -> Result<Option<CellPlace>, LookupError> {
        let Some(source) = &series.published else {
            return Ok(None);
        };
        let found = self.rows_matching(source, &source.filter, x, metric)?;
        Ok(found.first().map(|(record, _)| CellPlace {
            file: record.file().to_owned(),
            line: record.line(),
            column: metric.to_owned(),
        }))
    }

    /// Looks up everything that an experiment compares, so that a mistake shows
    /// before anything is run.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn check(&self, experiment: &Experiment) -> Result<(), LookupError> {
        for series in &experiment.series {
            if let Some(source) = &series.published {
                self.check_conditions(source)?;
            }
            for compare in &experiment.compare {
                for x in &experiment.axis.values {
                    for metric in &compare.metrics {
                        self.value(series, &compare.job, x, metric)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The published value of a metric of a job at a point: from the experiment
    /// file if it stands there, else from the table that the series names.
    /// `None`: nothing was published.
    ///
    /// # Errors
    /// [`LookupError`]: the experiment asks for what is not there.
    pub fn value(
        &self,
        series: &SeriesSpec,
        job: &str,
        x: &AxisValue,
        metric: &str,
    ) -> Result<Option<Published>, LookupError> {
        let in_file = series.points.iter().find(|point| {
            point.x == x.text
                && point.metric == metric
                && (point.job.is_empty() || point.job == job)
        });
        if let Some(point) = in_file {
            return Ok(Some(Published {
                value: point.value,
                spread: point.spread,
            }));
        }
        let Some(source) = &series.published else {
            return Ok(None);
        };
        let found = self.matching(source, &source.filter, x, metric)?;
        if found.len() > 1 {
            return Err(LookupError::Ambiguous {
                table: source.table.clone(),
                conditions: source.filter.join(", "),
                column: source.x.clone(),
                x: x.number,
                count: found.len(),
            });
        }
        let Some(&value) = found.first() else {
            return Ok(None);
        };
        let repeats = if source.repeats.is_empty() {
            Vec::new()
        } else {
            self.matching(source, &source.repeats, x, metric)?
        };
        let spread = (repeats.len() > 1).then(|| {
            repeats
                .iter()
                .fold((value, value), |(low, high), &v| (low.min(v), high.max(v)))
        });
        Ok(Some(Published { value, spread }))
    }

    /// Checks that conditions, of points and of repeats, are met by some row.
    fn check_conditions(&self, source: &PublishedTable) -> Result<(), LookupError> {
        let table = self.table(&source.table)?;
        for conditions in [&source.filter, &source.repeats] {
            let mut met = conditions.is_empty();
            for record in table.records() {
                met |= meets(&record, conditions)?;
            }
            if !met {
                let (table, conditions) = (source.table.clone(), conditions.join(", "));
                return Err(LookupError::Nothing { table, conditions });
            }
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Result<&CsvTable, LookupError> {
        let found = self.tables.iter().find(|(known, _)| known == name);
        found
            .map(|(_, table)| table)
            .ok_or_else(|| LookupError::NoTable {
                name: name.to_owned(),
                known: self.ids().join(", "),
            })
    }

    fn ids(&self) -> Vec<&str> {
        self.tables.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Values of `metric` in the rows that meet all conditions at `x`.
    fn matching(
        &self,
        source: &PublishedTable,
        conditions: &[String],
        x: &AxisValue,
        metric: &str,
    ) -> Result<Vec<f64>, LookupError> {
        let rows = self.rows_matching(source, conditions, x, metric)?;
        Ok(rows.into_iter().map(|(_, value)| value).collect())
    }

    /// The rows that meet all conditions at `x` and have a value of `metric`.
    fn rows_matching<'t>(
        &'t self,
        source: &PublishedTable,
        conditions: &[String],
        x: &AxisValue,
        metric: &str,
    ) -> Result<Vec<(Record<'t>, f64)>, LookupError> {
        let table = self.table(&source.table)?;
        if !table.columns().iter().any(|column| column == metric) {
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        for record in table.records() {
            if meets(&record, conditions)?
                && record.number(&source.x)? == Some(x.number)
                && let Some(value) = record.number(metric)?
            {
                rows.push((record, value));
            }
        }
        Ok(rows)
    }
}

fn meets(record: &Record<'_>, conditions: &[String]) -> Result<bool, LookupError> {
    for condition in conditions {
        let Some((column, value)) = condition.split_once('=') else {
            return Err(LookupError::Condition {
                condition: condition.clone(),
            });
        };
        if record.text(column)? != value {
            return Ok(false);
        }
    }
    Ok(true)
}
