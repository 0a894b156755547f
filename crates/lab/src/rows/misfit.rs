//! The list of rows that are known not to come out, and why.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::{DriveSummary, Kind, Row, significant};

/// Version of the file format.
const SCHEMA: u32 = 1;

/// The contents of `experiments/misfits.toml`.
///
/// ```toml
/// schema = 1
///
/// [[misfit]]
/// id = "C10b"
/// series = "finish, 16 KiB"
/// x = 64                # optional: without it, every point of the series
/// metric = "throughput"
/// cause = "what happens, and why the stated mechanism does not give it"
/// evidence = "the measurement or calculation that shows it"
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Misfits {
    entries: Vec<Misfit>,
}

/// One entry of the list. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misfit {
    /// [`Row::id`] of the rows it explains.
    pub id: String,
    /// [`Row::series`] of these rows.
    pub series: String,
    /// Value of [`Row::x`]; without it, every point of the series.
    #[serde(default)]
    pub x: Option<f64>,
    /// [`Row::metric`] of these rows.
    pub metric: String,
    /// What happens, and why. Not empty.
    pub cause: String,
    /// What shows that the cause is the right one. Not empty.
    pub evidence: String,
}

/// Why the list cannot be read.
#[derive(Debug, Error)]
pub enum MisfitError {
    /// Not TOML, a key is missing, or a key is unknown. The source names line
    /// and column.
    #[error("{file}: {source}")]
    Syntax {
        /// The file as the caller named it.
        file: String,
        /// What the parser says.
        source: Box<toml::de::Error>,
    },
    /// The file follows another version of the format.
    #[error("{file}: schema {found} is not supported, only schema {SCHEMA}")]
    Schema {
        /// The file as the caller named it.
        file: String,
        /// Its `schema`.
        found: u32,
    },
    /// An entry without cause or evidence, or a second one for the same rows.
    #[error("{file}:{line}: {problem}")]
    Entry {
        /// The file as the caller named it.
        file: String,
        /// Line of the entry, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// An entry that explains nothing, as it should then be removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Unused {
    /// The entry.
    pub misfit: Misfit,
    /// Whether rows match it, all of which meet their bar; otherwise no row
    /// matches although rows with its id were there.
    pub all_pass: bool,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit {
            id,
            series,
            x,
            metric,
            ..
        } = &self.misfit;
        write!(f, "misfit {id}, {series}")?;
        if let Some(x) = x {
            write!(f, ", {x}")?;
        }
        let why = if self.all_pass {
            "the rows meet their bar"
        } else {
            "there is no such row"
        };
        write!(f, ", {metric} is not needed: {why}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    #[serde(default)]
    misfit: Vec<Spanned<Misfit>>,
}

impl Misfits {
    /// Reads the list from `text`; `file` names it in errors.
    ///
    /// # Errors
    /// [`MisfitError`] as described there, for the first problem found.
    pub fn parse(file: &str, text: &str) -> Result<Self, MisfitError> {
        let parsed: File = toml::from_str(text).map_err(|source| MisfitError::Syntax {
            file: file.to_owned(),
            source: Box::new(source),
        })?;
        if parsed.schema != SCHEMA {
            return Err(MisfitError::Schema {
                file: file.to_owned(),
                found: parsed.schema,
            });
        }
        let mut seen = BTreeSet::new();
        let mut entries = Vec::with_capacity(parsed.misfit.len());
        for entry in parsed.misfit {
            let start = entry.span().start;
            let entry = entry.into_inner();
            if let Some(problem) = problem(&entry, &mut seen) {
                let before = text.get(..start).unwrap_or(text);
                let line = 1 + before.matches('\n').count();
                return Err(MisfitError::Entry {
                    file: file.to_owned(),
                    line,
                    problem,
                });
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    /// The entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Misfit] {
        &self.entries
    }

    /// The entry that explains `row`, whether or not the row needs it. Of
    /// several, the last: [`Misfits::apply`] marks with that one.
    #[must_use]
    pub fn entry(&self, row: &Row) -> Option<&Misfit> {
        let mut entries = self.entries.iter().rev();
        entries.find(|entry| entry.id == row.id && entry.explains(row))
    }

    /// Marks the judged `rows` that miss their bar and are in the list, and
    /// gives the entries that were not needed.
    ///
    /// A row of kind D has no bar of its own; it can be marked if its error is
    /// beyond [`DriveSummary::P90_BAR`]. Entries whose id does not occur in `rows` are
    /// not reported: another part of the experiments was run.
    #[must_use = "entries that are not needed should be reported"]
    pub fn apply(&self, rows: &mut [Row]) -> Vec<Unused> {
        let mut unused = Vec::new();
        for entry in &self.entries {
            let (mut same_id, mut matched, mut marked) = (false, false, false);
            for row in rows.iter_mut().filter(|row| row.id == entry.id) {
                same_id = true;
                if !entry.explains(row) {
                    continue;
                }
                matched = true;
                if misses(row) {
                    marked = true;
                    row.misfit = Some(format!("{} Evidence: {}", entry.cause, entry.evidence));
                }
            }
            if same_id && !marked {
                unused.push(Unused {
                    misfit: entry.clone(),
                    all_pass: matched,
                });
            }
        }
        unused
    }
}

impl Misfit {
    fn explains(&self, row: &Row) -> bool {
        let here = match (self.x, &row.x) {
            (None, _) => true,
            // Bits after rounding: both sides went through the same function.
            (Some(x), Some(at)) => significant(x).to_bits() == significant(at.value).to_bits(),
            (Some(_), None) => false,
        };
        here && self.series == row.series && self.metric == row.metric
    }
}

fn misses(row: &Row) -> bool {
    let far = row
        .rel_error
        .is_some_and(|e| e.abs() > DriveSummary::P90_BAR);
    row.pass == Some(false) || (row.kind == Kind::Drive && far)
}

fn problem(
    entry: &Misfit,
    seen: &mut BTreeSet<(String, String, Option<u64>, String)>,
) -> Option<String> {
    for (key, text) in [("cause", &entry.cause), ("evidence", &entry.evidence)] {
        if text.trim().is_empty() {
            return Some(format!(
                "`{key}` is empty: a misfit needs a cause and evidence for it"
            ));
        }
    }
    if entry.x.is_some_and(|x| !x.is_finite()) {
        return Some("`x` is not a finite number".to_owned());
    }
    let x = entry.x.map(|x| significant(x).to_bits());
    let key = (
        entry.id.clone(),
        entry.series.clone(),
        x,
        entry.metric.clone(),
    );
    if seen.insert(key) {
        return None;
    }
    Some(format!(
        "a second entry for {}, {}, {}",
        entry.id, entry.series, entry.metric
    ))
}
