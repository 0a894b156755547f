//! The list of rows, statements and bars that are known not to come out, and why.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer};
use thiserror::Error;
use toml::Spanned;

use super::drive::is_far;
use super::{DriveSummary, Gap, Row, Scope, significant};

/// Version of the file format.
const SCHEMA: u32 = 2;

/// The contents of `experiments/misfits.toml`.
///
/// ```toml
/// schema = 2
///
/// [[misfit]]
/// id = "C10b"
/// series = "finish, 16 KiB"
/// x = 64                # or a range, "3..=7"; without it, a row that has no x
/// metric = "throughput"
/// ours = "higher"       # or "lower"; without it, the cause explains both
/// cause = "what happens, and why the stated mechanism does not give it"
/// evidence = "the measurement or calculation that shows it"
///
/// [[gap]]
/// id = "C8"
/// says = "the sentence of a statement that does not hold"
/// today = -0.081        # its figure; a worse one fails
/// cause = "why"
/// quick_cause = "why with --quick, where that figure is on the other side of the published one"
/// tried = "what was tried, or \"nothing yet\""
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Misfits {
    entries: Vec<Misfit>,
    gaps: Vec<Gap>,
}

/// Points of an axis: one, or from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The first.
    pub first: f64,
    /// The last.
    pub last: f64,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once("..=")?;
        let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite());
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(Self { first, last })
    }

    fn contains(self, x: f64) -> bool {
        // Both sides went through the same rounding.
        significant(self.first) <= x && x <= significant(self.last)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first.to_bits() == self.last.to_bits() {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{} to {}", self.first, self.last)
        }
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Range(String),
        }
        let wrong = "`x` is a finite number, or a range such as \"3..=7\"";
        match Written::deserialize(deserializer)? {
            Written::Number(x) if x.is_finite() => Ok(Self { first: x, last: x }),
            Written::Number(_) => Err(serde::de::Error::custom(wrong)),
            Written::Range(text) => {
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(wrong))
            }
        }
    }
}

/// A side of what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Ours is more.
    Higher,
    /// Ours is less.
    Lower,
}

/// One entry of the list. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misfit {
    /// [`Row::id`] of the rows it explains.
    pub id: String,
    /// [`Row::series`] of these rows.
    pub series: String,
    /// Values of [`Row::x`]; without it, a row that has none: a cause names the
    /// points that it is about.
    #[serde(default)]
    pub x: Option<Range>,
    /// [`Row::metric`] of these rows.
    pub metric: String,
    /// On which side of what was published the cause has ours; without it, it explains both.
    #[serde(default)]
    pub ours: Option<Side>,
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
    /// An entry that lacks something, or a second one for the same rows.
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

/// What has to be changed in the list.
#[derive(Clone, Debug, PartialEq)]
pub enum Outdated {
    /// A misfit that explains nothing.
    NotNeeded {
        /// The entry.
        misfit: Misfit,
        /// Whether rows match it, all of which meet their bar; otherwise no row
        /// matches although rows with its id were there.
        all_pass: bool,
    },
    /// A misfit whose cause explains ours to be higher, and it is lower, or the other way round.
    OtherSide {
        /// The entry.
        misfit: Misfit,
    },
    /// A gap whose statement or bar holds.
    Holds {
        /// The entry.
        gap: Gap,
    },
    /// A gap of which there is no statement or bar.
    NoStatement {
        /// The entry.
        gap: Gap,
    },
    /// A gap whose figure is better than it says.
    Better {
        /// The entry.
        gap: Gap,
        /// The figure.
        ours: f64,
    },
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded { misfit, all_pass } => {
                write!(f, "misfit {}, {}", misfit.id, misfit.series)?;
                if let Some(x) = &misfit.x {
                    write!(f, ", {x}")?;
                }
                let why = if *all_pass {
                    "the rows meet their bar"
                } else {
                    "there is no such row"
                };
                write!(f, ", {} is not needed: {why}", misfit.metric)
            }
            Self::OtherSide { misfit } => write!(
                f,
                "misfit {}, {}, {} says why ours is {}, which it is not in all of its rows",
                misfit.id,
                misfit.series,
                misfit.metric,
                match misfit.ours {
                    Some(Side::Lower) => "lower",
                    _ => "higher",
                }
            ),
            Self::Holds { gap } => write!(
                f,
                "gap {}, \"{}\" is not needed: it holds",
                gap.id, gap.says
            ),
            Self::NoStatement { gap } => write!(
                f,
                "gap {}, \"{}\" is not needed: there is no such statement",
                gap.id, gap.says
            ),
            Self::Better { gap, ours } => write!(
                f,
                "gap {}, \"{}\" got better: state the new figure, {ours}",
                gap.id, gap.says
            ),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    #[serde(default)]
    misfit: Vec<Spanned<Misfit>>,
    #[serde(default)]
    gap: Vec<Spanned<Gap>>,
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
        let at = |start: usize, problem: String| {
            let before = text.get(..start).unwrap_or(text);
            MisfitError::Entry {
                file: file.to_owned(),
                line: 1 + before.matches('\n').count(),
                problem,
            }
        };
        let mut entries: Vec<Misfit> = Vec::with_capacity(parsed.misfit.len());
        for entry in parsed.misfit {
            let start = entry.span().start;
            let entry = entry.into_inner();
            if let Some(problem) = problem(&entry, &entries) {
                return Err(at(start, problem));
            }
            entries.push(entry);
        }
        let mut seen = BTreeSet::new();
        let mut gaps = Vec::with_capacity(parsed.gap.len());
        for gap in parsed.gap {
            let start = gap.span().start;
            let gap = gap.into_inner();
            if let Some(problem) = problem_of_gap(&gap, &mut seen) {
                return Err(at(start, problem));
            }
            gaps.push(gap);
        }
        Ok(Self { entries, gaps })
    }

    /// The misfits in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Misfit] {
        &self.entries
    }

    /// The known gaps in the order of the file.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The known gap of a statement or bar.
    #[must_use]
    pub fn gap(&self, id: &str, says: &str) -> Option<&Gap> {
        let mut gaps = self.gaps.iter();
        gaps.find(|gap| gap.id == id && gap.says == says)
    }

    /// The entry that explains `row`, whether or not the row needs it.
    #[must_use]
    pub fn entry(&self, row: &Row) -> Option<&Misfit> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.explains(row))
    }

    /// Marks the judged `rows` that miss their bar and are in the list, and the
    /// statements that do not hold and are, and gives what has to be changed in
    /// the list.
    ///
    /// A row of kind D has no bar of its own; it can be marked if its error is
    /// beyond the 90th percentile that its group may have. That there is no row or
    /// statement of an entry is known of whole runs only.
    #[must_use = "what has to be changed should be reported"]
    pub fn apply(&self, rows: &mut [Row], scope: Scope) -> Vec<Outdated> {
        let mut outdated = Vec::new();
        for entry in &self.entries {
            let (mut same_id, mut matched, mut marked) = (false, false, false);
            let mut is_turned = false;
            for row in rows.iter_mut().filter(|row| row.id == entry.id) {
                same_id = true;
                if !entry.explains(row) {
                    continue;
                }
                matched = true;
                if misses(row) && !entry.is_of_side(row) {
                    is_turned = true;
                } else if misses(row) {
                    marked = true;
                    row.misfit = Some(format!("{} Evidence: {}", entry.cause, entry.evidence));
                }
            }
            if is_turned {
                let misfit = entry.clone();
                outdated.push(Outdated::OtherSide { misfit });
            } else if same_id && !marked && (matched || scope.whole) {
                outdated.push(Outdated::NotNeeded {
                    misfit: entry.clone(),
                    all_pass: matched,
                });
            }
        }
        outdated.extend(self.gaps.iter().filter_map(|gap| mark(gap, rows, scope)));
        outdated
    }

    /// What has to be changed about the bars of a real drive.
    #[must_use]
    pub fn outdated_bars(&self, drive: &DriveSummary, scope: Scope) -> Vec<Outdated> {
        if !scope.whole {
            return Vec::new();
        }
        let gaps = self.gaps.iter().filter(|gap| gap.id == "D");
        let changed = |gap: &Gap| {
            let gap = gap.clone();
            let mut bars = drive.bars.iter();
            let Some(bar) = bars.find(|bar| bar.says == gap.says) else {
                return Some(Outdated::NoStatement { gap });
            };
            match &bar.gap {
                Some(known) if known.is_better => Some(Outdated::Better {
                    gap,
                    ours: bar.value,
                }),
                None if bar.holds && gap.figure(scope).is_some() => Some(Outdated::Holds { gap }),
                _ => None,
            }
        };
        gaps.filter_map(changed).collect()
    }
}

/// Marks the statement that a gap is about, and says what has to be changed.
fn mark(gap: &Gap, rows: &mut [Row], scope: Scope) -> Option<Outdated> {
    let (mut same_id, mut found) = (false, false);
    let mut outdated = None;
    for row in rows.iter_mut().filter(|row| row.id == gap.id) {
        same_id = true;
        let Some(bound) = row.statement.filter(|_| row.metric == gap.says) else {
            continue;
        };
        found = true;
        match row.pass {
            Some(false) => {
                row.gap = gap.of(scope, bound, row.ours, row.published);
                if row.gap.as_ref().is_some_and(|known| known.is_better) {
                    let (gap, ours) = (gap.clone(), row.ours);
                    outdated = Some(Outdated::Better { gap, ours });
                }
            }
            Some(true) if gap.figure(scope).is_some() => {
                outdated = Some(Outdated::Holds { gap: gap.clone() });
            }
            _ => {}
        }
    }
    // A quick run leaves statements out, and those about a result may stand in another file.
    let is_missing = same_id && !found && scope.whole && !scope.quick;
    outdated.or_else(|| is_missing.then(|| Outdated::NoStatement { gap: gap.clone() }))
}

impl Misfit {
    /// Whether ours is on the side that the cause explains.
    fn is_of_side(&self, row: &Row) -> bool {
        let side = row.published.map(|published| match row.ours > published {
            true => Side::Higher,
            false => Side::Lower,
        });
        self.ours.is_none() || self.ours == side
    }

    fn explains(&self, row: &Row) -> bool {
        let here = match (self.x, &row.x) {
            (None, None) => true,
            (Some(range), Some(at)) => range.contains(at.value),
            (None, Some(_)) | (Some(_), None) => false,
        };
        here && self.id == row.id && self.series == row.series && self.metric == row.metric
    }
}

fn misses(row: &Row) -> bool {
    !row.is_statement() && (row.pass == Some(false) || is_far(row))
}

/// The first key whose text is empty.
fn empty(texts: &[(&str, &str)]) -> Option<String> {
    let (key, _) = texts.iter().find(|(_, text)| text.trim().is_empty())?;
    Some(format!("`{key}` is empty: say it, or that it is not known"))
}

fn problem(entry: &Misfit, before: &[Misfit]) -> Option<String> {
    if let Some(problem) = empty(&[("cause", &entry.cause), ("evidence", &entry.evidence)]) {
        return Some(problem);
    }
    let overlaps = |other: &Misfit| match (entry.x, other.x) {
        (None, None) => true,
        (Some(a), Some(b)) => a.first <= b.last && b.first <= a.last,
        _ => false,
    };
    let same = |other: &&Misfit| {
        (&other.id, &other.series, &other.metric) == (&entry.id, &entry.series, &entry.metric)
            && overlaps(other)
    };
    before.iter().find(same).map(|_| {
        format!(
            "a second entry for {}, {}, {}",
            entry.id, entry.series, entry.metric
        )
    })
}

fn problem_of_gap(gap: &Gap, seen: &mut BTreeSet<(String, String)>) -> Option<String> {
    let quick_cause = gap.quick_cause.as_ref().unwrap_or(&gap.cause);
    let texts = [
        ("cause", &gap.cause),
        ("tried", &gap.tried),
        ("quick_cause", quick_cause),
    ];
    if let Some(problem) = empty(&texts.map(|(key, text)| (key, text.as_str()))) {
        return Some(problem);
    }
    let figures = [gap.today, gap.quick];
    if figures.iter().all(Option::is_none) || figures.iter().flatten().any(|f| !f.is_finite()) {
        return Some("a gap has its figure: `today`, `quick` or both, finite".to_owned());
    }
    let is_new = seen.insert((gap.id.clone(), gap.says.clone()));
    (!is_new).then(|| format!("a second entry for {}, \"{}\"", gap.id, gap.says))
}
