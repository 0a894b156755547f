//! What of a table was used, and what was not: nothing that somebody measured is dropped
//! without a word.
//!
//! A column that nothing knows is an error, unless it is declared a label. A row that is
//! about no point, and a value that nothing asks for, are named.

use std::collections::{BTreeMap, BTreeSet};

use zonelab_config::nearest;

use super::{CsvTable, Record, ReferenceError};
use crate::metrics::NAMES;

/// Lines of a table that a message names; of more it says how many.
const LINES_NAMED: usize = 8;

/// Which cells of a table gave values, and what columns are for.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Line and column.
    cells: BTreeSet<(usize, String)>,
    /// Columns that say what a row is about.
    keys: BTreeSet<String>,
    /// Columns of values, also of those that are called otherwise than their metric.
    values: BTreeSet<String>,
    /// Columns that are there for people.
    labels: BTreeSet<String>,
    /// The values that the axis has, by the column that they stand in.
    axes: BTreeMap<String, BTreeSet<String>>,
}

impl Account {
    /// A column that says what a row is about.
    pub fn key(&mut self, column: &str) {
        self.keys.insert(column.to_owned());
    }

    /// A column of values.
    pub fn value(&mut self, column: &str) {
        self.values.insert(column.to_owned());
    }

    /// Columns that are there for people.
    pub fn label(&mut self, columns: &[String]) {
        self.labels.extend(columns.iter().cloned());
    }

    /// The column of the axis, and a value that the axis has.
    pub fn at(&mut self, column: &str, value: &str) {
        let values = self.axes.entry(column.to_owned()).or_default();
        values.insert(value.to_owned());
    }

    /// The value of `column` in a row was used.
    pub fn uses(&mut self, row: &Record<'_>, column: &str) {
        self.cells.insert((row.line(), column.to_owned()));
    }

    /// How many values were used.
    #[must_use]
    pub fn used(&self) -> usize {
        self.cells.len()
    }

    /// What of `table` is left over, in words.
    ///
    /// # Errors
    /// A column that nothing knows.
    pub fn left(&self, table: &CsvTable) -> Result<Vec<String>, ReferenceError> {
        let mut columns = Vec::new();
        for column in table.columns() {
            let is_metric = NAMES.iter().any(|(name, _)| name == column);
            if self.keys.contains(column) || self.labels.contains(column) {
                continue;
            }
            if !(is_metric || self.values.contains(column)) {
                return Err(self.unknown(table, column));
            }
            columns.push(column.as_str());
        }
        let mut left = Vec::new();
        if table.records().next().is_none() {
            left.push(format!(
                "{}: it has a header and no rows, so that nothing is compared",
                table.file()
            ));
        }
        let mut rows = Vec::new();
        let mut of_column: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for row in table.records() {
            let has = |column: &&&str| row.text(column).is_ok_and(|text| !text.trim().is_empty());
            let stated: Vec<&str> = columns.iter().filter(has).copied().collect();
            let is_used =
                |column: &&&str| self.cells.contains(&(row.line(), (**column).to_owned()));
            let is_unused = !stated.is_empty() && !stated.iter().any(|column| is_used(&column));
            if is_unused && !self.is_point(&row) {
                rows.push((row, stated.len()));
                continue;
            }
            for column in stated.iter().filter(|column| !is_used(column)) {
                of_column.entry(*column).or_default().push(row.line());
            }
        }
        left.extend(self.rows(table, &rows));
        for (column, lines) in of_column {
            let (file, count) = (table.file(), lines.len());
            left.push(format!(
                "{file}: {count} values of `{column}` are not used, since nothing compares them: {}",
                words(&lines)
            ));
        }
        Ok(left)
    }

    /// Whether the axis has the values of a row, so that what is not used of it is not compared.
    fn is_point(&self, row: &Record<'_>) -> bool {
        let has = |(column, known): (&String, &BTreeSet<String>)| {
            row.text(column)
                .is_ok_and(|text| known.contains(text.trim()))
        };
        !self.axes.is_empty() && self.axes.iter().all(has)
    }

    fn unknown(&self, table: &CsvTable, column: &str) -> ReferenceError {
        let metrics = NAMES.iter().map(|(name, _)| *name);
        let own = self.keys.iter().chain(&self.values).map(String::as_str);
        let known: Vec<&str> = own
            .chain(metrics)
            .filter(|known| !table.columns().iter().any(|other| other == known))
            .collect();
        // Most often the unit is missing.
        let longer = || {
            known
                .iter()
                .find(|known| known.starts_with(&format!("{column}_")))
        };
        let meant = longer().copied();
        // Of equals the first: `kops` is `kiops` rather than `ops`.
        let begins_alike = |known: &&&str| known.chars().next() == column.chars().next();
        let (alike, others): (Vec<&str>, Vec<&str>) = known.iter().partition(begins_alike);
        let meant = meant.or_else(|| nearest(column, alike.into_iter().chain(others)));
        let hint = meant.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let has = |row: &Record<'_>| row.text(column).is_ok_and(|text| !text.trim().is_empty());
        let count = table.records().filter(has).count();
        ReferenceError {
            file: table.file().to_owned(),
            line: 1,
            column: Some(column.to_owned()),
            problem: format!(
                "no metric and no key has this name, and {count} values would be dropped; {hint}A \
                 column that is no measurement is named in `labels` beside the table's name"
            ),
        }
    }

    /// Rows of which nothing was used.
    fn rows(&self, table: &CsvTable, rows: &[(Record<'_>, usize)]) -> Vec<String> {
        let file = table.file();
        if rows.len() > LINES_NAMED {
            let lines: Vec<usize> = rows.iter().map(|(row, _)| row.line()).collect();
            let values: usize = rows.iter().map(|(_, values)| values).sum();
            return vec![format!(
                "{file}: {} rows match no point, so that their {values} values are not used: {}",
                rows.len(),
                words(&lines)
            )];
        }
        let one = |(row, values): &(Record<'_>, usize)| {
            let keys = table.columns().iter().filter(|of| self.keys.contains(*of));
            let keys = keys.filter_map(|key| Some(format!("{key} = {}", row.text(key).ok()?)));
            let keys: Vec<String> = keys.collect();
            let axes = self.axes.iter();
            let strange = axes.filter_map(|(column, known)| {
                let text = row.text(column).ok()?.trim();
                (!known.contains(text)).then(|| {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let meant = nearest(text, known.iter().copied());
                    let hint = meant.map(|near| format!(" (did you mean {near}?)"));
                    format!(
                        "; {column} is one of {}{}",
                        known.join(", "),
                        hint.unwrap_or_default()
                    )
                })
            });
            format!(
                "{file}:{}: the row matches no point ({}), so that its {values} values are not \
                 used{}",
                row.line(),
                keys.join(", "),
                strange.collect::<String>()
            )
        };
        rows.iter().map(one).collect()
    }
}

/// Line numbers in words.
fn words(lines: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &line in lines {
        match ranges.last_mut() {
            Some((_, last)) if line <= *last + 1 => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let more = ranges.len().saturating_sub(LINES_NAMED);
    let named = ranges.iter().take(LINES_NAMED);
    let named = named.map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let named: Vec<String> = named.collect();
    let more = (more > 0).then(|| format!(" and {more} more ranges"));
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{}", named.join(", "), more.unwrap_or_default())
}
