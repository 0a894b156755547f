//! Published values of points, from the reference tables or an experiment file.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::experiment::{AxisValue, Experiment, PublishedTable, SeriesSpec, is_word, number_of};
use crate::reference::plausible::{self, InFlight, Stated};
use crate::reference::{Account, CsvTable, Record, ReferenceError};

/// The tables that are built in, by the name that experiments use.
macro_rules! builtin {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../data/reference/", $name, ".csv")))),+]
    };
}

const BUILTIN: &[(&str, &str)] = builtin![
    "confznspp/emulator",
    "zn540/management_interference",
    "zn540/reset_under_load",
    "zn540/softfinish",
    "zn540/throughput_latency",
    "zn540/write_read_sharing_qd1",
    "zn540/write_read_stability",
    "zn540/zinc",
    "zn540/zone_management_cost",
];

/// A published value, with the range of the authors' repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The value, in the unit of the metric.
    pub value: f64,
    /// The value as it stands where it does, and what turns that into the metric's unit.
    pub written: (f64, f64),
    /// Least and greatest of independent repeats, if there are any.
    pub spread: Option<(f64, f64)>,
    /// Where it stands in a table; of independent repeats, where the first of
    /// them stands. Two points with the same place are the same measurement.
    pub place: Option<CellPlace>,
}

/// A row, and a value in it: as it stands there, and what turns that into the unit of its metric.
type Cell<'t> = (Record<'t>, (f64, f64));

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

impl CellPlace {
    /// A place from its text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (at, column) = text.rsplit_once(", ")?;
        let (file, line) = at.rsplit_once(':')?;
        Some(Self {
            file: file.to_owned(),
            line: line.parse().ok()?,
            column: column.to_owned(),
        })
    }

    fn of(record: &Record<'_>, source: &PublishedTable, metric: &str) -> Self {
        let column = column_of(source, metric);
        Self {
            file: record.file().to_owned(),
            line: record.line(),
            column: column.to_owned(),
        }
    }
}

impl fmt::Display for CellPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, {}", self.file, self.line, self.column)
    }
}

/// The column of a metric.
fn column_of<'a>(source: &'a PublishedTable, metric: &'a str) -> &'a str {
    source.columns.get(metric).map_or(metric, String::as_str)
}

/// Reference tables.
#[derive(Clone, Debug)]
pub struct References {
    tables: Vec<(String, Arc<CsvTable>)>,
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
    /// A metric is to be read from a column that the table does not have.
    #[error("\"{table}\" has no column \"{column}\" for {metric}; {hint}")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The metric.
        metric: String,
        /// Which there are.
        hint: String,
    },
    /// No row meets the conditions, whatever the axis value.
    #[error("no row of \"{table}\" answers to {conditions}")]
    Nothing {
        /// The table.
        table: String,
        /// The conditions.
        conditions: String,
    },
    /// Several different rows answer to one point, and nothing says that they are repeats.
    #[error("{file}: lines {lines} answer to {conditions}{at}; one row may")]
    Ambiguous {
        /// The file, as the table was named when it was read.
        file: String,
        /// The lines of the rows: "2, 14".
        lines: String,
        /// The conditions.
        conditions: String,
        /// Column and axis value; empty if the axis value does not matter.
        at: String,
    },
}

impl References {
    /// The tables that are built in.
    ///
    /// # Errors
    /// One of them is malformed.
    pub fn builtin() -> Result<Self, ReferenceError> {
        // They are part of the program, and take longer to read than a short run: once.
        static TABLES: OnceLock<Result<References, ReferenceError>> = OnceLock::new();
        let read = |&(name, text): &(&str, &str)| {
            let table = CsvTable::parse(name, text)?;
            Ok((name.to_owned(), Arc::new(table)))
        };
        let all = || {
            let tables = BUILTIN.iter().map(read).collect::<Result<_, _>>()?;
            Ok(Self { tables })
        };
        TABLES.get_or_init(all).clone()
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
        self.tables.push((name.to_owned(), Arc::new(table)));
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
        job: &str,
        x: &AxisValue,
        metric: &str,
    ) -> Result<Option<CellPlace>, LookupError> {
        let of_job = |source: &&PublishedTable| source.job.is_empty() || source.job == job;
        for source in series.published.iter().filter(of_job) {
            let found = self.rows_matching(source, &source.filter, x, metric)?;
            if let Some((record, _)) = found.first() {
                return Ok(Some(CellPlace::of(record, source, metric)));
            }
        }
        Ok(None)
    }

    /// Looks up everything that an experiment compares, so that a mistake shows
    /// before anything is run.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn check(&self, experiment: &Experiment) -> Result<(), LookupError> {
        for series in &experiment.series {
            for source in &series.published {
                self.check_conditions(source)?;
                self.check_columns(source)?;
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
    /// file if it stands there, else from the first table of the series that
    /// has one.
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
        let mut in_file = series.points.iter().filter(|point| {
            point.x == x.text
                && point.metric == metric
                && (point.job.is_empty() || point.job == job)
        });
        if let Some(point) = in_file.next() {
            let others: Vec<_> = in_file.map(|of| of.place.line).collect();
            if !others.is_empty() {
                let lines = std::iter::once(point.place.line).chain(others);
                let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
                return Err(LookupError::Ambiguous {
                    file: point.place.file.clone(),
                    lines: lines.join(", "),
                    conditions: format!("series \"{}\", {metric}", series.name),
                    at: format!(" at {}", x.text),
                });
            }
            return Ok(Some(Published {
                value: point.value,
                written: (point.value, 1.0),
                spread: point.spread,
                place: Some(point.place.clone()),
            }));
        }
        let of_job = |source: &&PublishedTable| source.job.is_empty() || source.job == job;
        for source in series.published.iter().filter(of_job) {
            let found = self.in_table(source, x, metric)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Notes in `account` what of the table `name` an experiment uses at these values of the
    /// axis: what it compares or draws.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn note(
        &self,
        (experiment, name): (&Experiment, &str),
        at: &dyn Fn(&AxisValue) -> bool,
        account: &mut Account,
    ) -> Result<(), LookupError> {
        for series in &experiment.series {
            for source in series.published.iter().filter(|of| of.table == name) {
                let keys = source.filter.iter().chain(&source.repeats);
                let keys = keys.filter_map(|condition| condition.split_once('='));
                keys.for_each(|(column, _)| account.key(column));
                source.columns.values().for_each(|of| account.value(of));
                account.label(&source.labels);
                if let Some(column) = &source.x {
                    account.key(column);
                }
                let own = |x: &&AxisValue| series.x.is_empty() || series.x.contains(&x.text);
                for x in experiment.axis.values.iter().filter(own).filter(|x| at(x)) {
                    if let Some(column) = &source.x {
                        account.at(column, &x.text);
                    }
                    self.note_point(source, &asked(experiment, series, source), x, account)?;
                }
            }
        }
        Ok(())
    }

    fn note_point(
        &self,
        source: &PublishedTable,
        metrics: &[&str],
        x: &AxisValue,
        account: &mut Account,
    ) -> Result<(), LookupError> {
        for metric in metrics {
            let repeats = (!source.repeats.is_empty()).then_some(&source.repeats);
            for conditions in [&source.filter].into_iter().chain(repeats) {
                for (row, _) in self.rows_matching(source, conditions, x, metric)? {
                    account.uses(&row, column_of(source, metric));
                }
            }
        }
        Ok(())
    }

    /// What of a user's table is left over, in words: `account` has what is used of it. Of a
    /// table that is built in as well, columns are known.
    ///
    /// # Errors
    /// A column that nothing knows.
    pub fn left(
        name: &str,
        table: &CsvTable,
        mut account: Account,
    ) -> Result<Vec<String>, ReferenceError> {
        if let Ok(builtin) = Self::builtin()?.table(name) {
            account.label(builtin.columns());
        }
        account.left(table)
    }

    /// Refuses published values of a point that cannot be, or contradict each other.
    /// `in_flight` gives the operations that a job keeps in flight.
    ///
    /// # Errors
    /// There are such values, or as [`Self::value`].
    pub fn plausible(
        &self,
        experiment: &Experiment,
        series: &SeriesSpec,
        x: &AxisValue,
        in_flight: &dyn Fn(&str) -> InFlight,
    ) -> Result<(), LookupError> {
        for compare in &experiment.compare {
            let mut places = Vec::new();
            for metric in &compare.metrics {
                let published = self.value(series, &compare.job, x, metric)?;
                let published = published.and_then(|of| Some((of.written, of.spread, of.place?)));
                places.extend(
                    published.map(|(written, spread, place)| (metric, written, spread, place)),
                );
            }
            let stated = places.iter().map(|(metric, written, spread, place)| {
                let stated = Stated {
                    metric,
                    written: *written,
                    place,
                };
                (stated, *spread)
            });
            let stated: Vec<(Stated<'_>, _)> = stated.collect();
            for (stated, spread) in &stated {
                plausible::possibly(stated)?;
                let (low, high) = spread.unwrap_or((stated.value(), stated.value()));
                for end in [low, high] {
                    plausible::possibly(&stated.of_repeat(end))?;
                }
            }
            let stated: Vec<Stated<'_>> = stated.into_iter().map(|(of, _)| of).collect();
            plausible::together(&stated, in_flight(&compare.job))?;
        }
        Ok(())
    }

    fn in_table(
        &self,
        source: &PublishedTable,
        x: &AxisValue,
        metric: &str,
    ) -> Result<Option<Published>, LookupError> {
        let found = self.rows_matching(source, &source.filter, x, metric)?;
        if let [(first, _), _, ..] = found.as_slice() {
            let column = source.x.as_ref();
            let lines: Vec<_> = found
                .iter()
                .map(|(row, _)| row.line().to_string())
                .collect();
            return Err(LookupError::Ambiguous {
                file: first.file().to_owned(),
                lines: lines.join(", "),
                conditions: source.filter.join(", "),
                at: column.map_or(String::new(), |column| {
                    format!(" at {column} = {}", x.number)
                }),
            });
        }
        let Some(&(record, written)) = found.first() else {
            return Ok(None);
        };
        let value = written.0 * written.1;
        let repeats = if source.repeats.is_empty() {
            Vec::new()
        } else {
            self.rows_matching(source, &source.repeats, x, metric)?
        };
        let spread = (repeats.len() > 1).then(|| {
            let all = repeats
                .iter()
                .map(|(_, (written, factor))| written * factor);
            all.fold((value, value), |(low, high), v| (low.min(v), high.max(v)))
        });
        let first = repeats.first().map_or(record, |&(first, _)| first);
        let place = Some(CellPlace::of(&first, source, metric));
        Ok(Some(Published {
            value,
            written,
            spread,
            place,
        }))
    }

    /// Checks that the columns which metrics are to be read from exist.
    fn check_columns(&self, source: &PublishedTable) -> Result<(), LookupError> {
        let columns = self.table(&source.table)?.columns();
        for (metric, column) in &source.columns {
            if !columns.contains(column) {
                let names = columns.iter().map(String::as_str);
                let hint = match zonelab_config::nearest(column, names) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("there are: {}", columns.join(", ")),
                };
                return Err(LookupError::NoColumn {
                    table: source.table.clone(),
                    column: column.clone(),
                    metric: metric.clone(),
                    hint,
                });
            }
        }
        Ok(())
    }

    /// Checks that conditions, of points and of repeats, are met by some row.
    fn check_conditions(&self, source: &PublishedTable) -> Result<(), LookupError> {
        let table = self.table(&source.table)?;
        for conditions in [&source.filter, &source.repeats] {
            let mut met = conditions.is_empty() || source.may_be_absent;
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
            .map(|(_, table)| &**table)
            .ok_or_else(|| LookupError::NoTable {
                name: name.to_owned(),
                known: self.ids().join(", "),
            })
    }

    fn ids(&self) -> Vec<&str> {
        self.tables.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The rows that meet all conditions at `x` and have a value of `metric`, with that value
    /// and what turns it into the metric's unit.
    fn rows_matching<'t>(
        &'t self,
        source: &PublishedTable,
        conditions: &[String],
        x: &AxisValue,
        metric: &str,
    ) -> Result<Vec<Cell<'t>>, LookupError> {
        let table = self.table(&source.table)?;
        let column = match source.columns.get(metric) {
            Some(column) => column,
            None if source.columns.is_empty() => metric,
            None => return Ok(Vec::new()),
        };
        if !table.columns().iter().any(|known| known == column) {
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        for record in table.records() {
            if meets(&record, conditions)?
                && is_at(&record, source, x)?
                && let Some(value) = record.number(column)?
            {
                let factor = source.factors.get(metric).copied();
                let factor = factor.unwrap_or_else(|| unit_factor(metric, column));
                rows.push((record, (value, factor)));
            }
        }
        Ok(rows)
    }
}

/// The metrics of a table that an experiment asks for: what it compares and draws.
fn asked<'a>(
    experiment: &'a Experiment,
    series: &SeriesSpec,
    source: &PublishedTable,
) -> Vec<&'a str> {
    let of_job = |job: &String| source.job.is_empty() || source.job == *job;
    let compared = experiment.compare.iter();
    let compared = compared.filter(|of| of_job(&of.job) && experiment.runs_result(series, &of.job));
    let compared = compared.flat_map(|of| of.metrics.iter().map(String::as_str));
    let figures = experiment.figures.iter();
    let drawn = figures.flat_map(|figure| [figure.x.as_str(), figure.y.as_str()]);
    compared
        .chain(drawn.filter(|name| *name != "axis"))
        .collect()
}

/// What turns a value of a column into one of a metric: both have their units
/// at the end of their names. 1 if they are no times.
fn unit_factor(metric: &str, column: &str) -> f64 {
    if !metric.ends_with("_us") {
        return 1.0;
    }
    let units = [("_ns", 1e-3), ("_us", 1.0), ("_ms", 1e3), ("_s", 1e6)];
    let unit = units.iter().find(|(unit, _)| column.ends_with(unit));
    unit.map_or(1.0, |(_, factor)| *factor)
}

/// Whether a row is about the axis value `x`.
fn is_at(record: &Record<'_>, source: &PublishedTable, x: &AxisValue) -> Result<bool, LookupError> {
    let Some(column) = &source.x else {
        return Ok(true);
    };
    let text = record.text(column)?.trim();
    if is_word(&x.text) {
        return Ok(text == x.text);
    }
    // Sizes and times stand in tables of users as they do on the axis.
    let at = match number_of(text) {
        Some(at) => Some(at),
        None => record.number(column)?,
    };
    let at = at.map(|at| at * source.x_factor);
    // Products of decimal fractions are not exact.
    Ok(at.is_some_and(|at| (at - x.number).abs() <= 1e-9 * at.abs()))
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
