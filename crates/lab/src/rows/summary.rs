//! Counts and error statistics of rows.

use serde::Serialize;

use super::{BarResult, Bound, DriveSummary, Kind, Misfits, Row, UNIT_ERROR, Verdict, significant};

/// What was run of everything that there is: known figures belong to whole runs,
/// or to quick ones, and the bars of a real drive to all its figures.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// With `--quick`.
    pub quick: bool,
    /// All figures.
    pub whole: bool,
}

impl Scope {
    /// Some figures, run whole.
    pub const PART: Self = Self {
        quick: false,
        whole: false,
    };

    pub(super) const fn is_quick(self) -> bool {
        self.quick
    }
}

/// Counts and errors of a set of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// All rows.
    pub count: usize,
    verdicts: [usize; Verdict::ALL.len()],
    /// Median magnitude of the relative errors that count ([`Row::counts`]),
    /// misfits included; none if no row has one. Of an even number, the mean of
    /// the middle two.
    pub median_error: Option<f64>,
    /// 90th percentile of the same: the least error that at least 90 % of the
    /// rows do not exceed.
    pub p90_error: Option<f64>,
}

impl Stats {
    /// The statistics of `rows`, which should be of one kind.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut stats = Self::default();
        let mut errors = Vec::new();
        for row in rows {
            stats.count += 1;
            stats.verdicts[row.verdict() as usize] += 1;
            if row.counts() {
                errors.extend(row.rel_error.map(f64::abs));
            }
        }
        errors.sort_by(f64::total_cmp);
        stats.median_error = median(&errors);
        stats.p90_error = p90(&errors);
        stats
    }

    /// How many rows have this verdict.
    #[must_use]
    pub const fn of_verdict(&self, verdict: Verdict) -> usize {
        self.verdicts[verdict as usize]
    }
}

pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Some((lower + upper) / 2.0)
}

pub(super) fn p90(sorted: &[f64]) -> Option<f64> {
    let rank = (sorted.len() * 9).div_ceil(10);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// A statement or a bar that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// Which result; "D" for the bars of a real drive.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// The published size, if there is one.
    pub published: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// What it would take, in words.
    pub needs: String,
    /// By how much it misses, relative to what it would take.
    pub miss: Option<f64>,
    /// Why, from the list of known gaps; none if it is not listed.
    pub cause: Option<String>,
    /// Whether it is listed and did not get worse.
    pub is_known: bool,
}

impl Missing {
    fn of_row(row: &Row) -> Option<Self> {
        let bound = row.statement.filter(|_| row.pass == Some(false))?;
        Some(Self {
            id: row.id.clone(),
            says: row.metric.clone(),
            published: row.published,
            ours: Some(row.ours).filter(|ours| ours.is_finite()),
            unit: row.unit.clone(),
            needs: bound.words(&row.unit),
            miss: miss(bound, row),
            cause: row.gap.as_ref().map(|gap| gap.cause.clone()),
            is_known: row.verdict() == Verdict::Missed,
        })
    }

    fn of_bar(bar: &BarResult) -> Option<Self> {
        (!bar.holds).then(|| Self {
            id: "D".to_owned(),
            says: bar.says.clone(),
            published: None,
            ours: Some(bar.value),
            unit: UNIT_ERROR.to_owned(),
            needs: Bound::AtMost(bar.most).words(UNIT_ERROR),
            miss: Some(significant((bar.value - bar.most) / bar.most)),
            cause: bar.gap.as_ref().map(|gap| gap.cause.clone()),
            is_known: bar.is_known(),
        })
    }
}

fn miss(bound: Bound, row: &Row) -> Option<f64> {
    let miss = match bound {
        Bound::AtLeast(bound) | Bound::AtMost(bound) => {
            let scale = if bound == 0.0 { 1.0 } else { bound.abs() };
            (row.ours - bound).abs() / scale
        }
        Bound::Near { .. } => row.rel_error?.abs(),
    };
    miss.is_finite().then(|| significant(miss))
}

/// A statement that was not judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unjudged {
    /// Which result.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// Why not.
    pub why: String,
}

/// Statistics by id and by kind, and what does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What was run.
    pub scope: Scope,
    /// Statistics of each id, in order of first appearance.
    pub by_id: Vec<(String, Stats)>,
    /// Statistics of the measured points of each kind that there is, in the
    /// order E, D, S.
    pub kinds: Vec<(Kind, Stats)>,
    /// Statements, of any kind.
    pub statements: Stats,
    /// Real-drive rows together, if there are any.
    pub drive: Option<DriveSummary>,
    /// Statements and bars that do not hold, the worst first.
    pub missing: Vec<Missing>,
    /// Rows that failed.
    pub failed: usize,
    /// What measured values are not what they seem, in words: operations that did nothing.
    pub warnings: Vec<String>,
    /// Statements that were not judged.
    pub unjudged: Vec<Unjudged>,
    /// Statements have to be judged for a pass: not if those who wrote the experiment say
    /// themselves which a quick run leaves out.
    pub owes_all: bool,
    /// Points are missing.
    pub is_partial: bool,
}

impl Summary {
    /// Summarises judged rows that `misfits` has marked
    /// ([`Misfits::apply`]).
    #[must_use]
    pub fn of(rows: &[Row], scope: Scope, misfits: &Misfits) -> Self {
        let mut ids: Vec<&str> = Vec::new();
        for row in rows {
            if !ids.contains(&row.id.as_str()) {
                ids.push(&row.id);
            }
        }
        let stats = |id: &str| Stats::of(rows.iter().filter(|row| row.id == id));
        let of_kind = |kind: Kind| {
            let mine = rows
                .iter()
                .filter(|row| row.kind == kind && !row.is_statement());
            let stats = Stats::of(mine);
            (stats.count > 0).then_some((kind, stats))
        };
        let drive = DriveSummary::of(rows, scope, misfits);
        let bars = drive.iter().filter(|drive| drive.is_whole);
        let bars = bars.flat_map(|drive| drive.bars.iter().filter_map(Missing::of_bar));
        let mut missing: Vec<Missing> = rows.iter().filter_map(Missing::of_row).collect();
        missing.extend(bars);
        let badness = |one: &Missing| one.miss.unwrap_or(f64::INFINITY);
        // Stable: those that miss by as much stay in their order.
        missing.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        let failed = rows.iter().filter(|row| row.verdict() == Verdict::Fail);
        Self {
            scope,
            by_id: ids
                .into_iter()
                .map(|id| (id.to_owned(), stats(id)))
                .collect(),
            kinds: Kind::ALL.into_iter().filter_map(of_kind).collect(),
            statements: Stats::of(rows.iter().filter(|row| row.is_statement())),
            drive,
            missing,
            failed: failed.count(),
            warnings: Vec::new(),
            unjudged: Vec::new(),
            owes_all: false,
            is_partial: false,
        }
    }

    /// Whether everything came out or is known not to: no row failed, the
    /// bars of a real drive pass ([`DriveSummary::pass`]), and nothing that has to be
    /// judged was not.
    #[must_use]
    pub fn pass(&self) -> bool {
        let is_owed = self.owes_all && !self.unjudged.is_empty();
        !(self.is_partial || is_owed)
            && self.failed == 0
            && self.drive.as_ref().is_none_or(DriveSummary::pass)
    }
}
