//! Counts and error statistics of rows.

use super::{DriveSummary, Row, Verdict};

/// Counts and errors of a set of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// All rows.
    pub count: usize,
    /// Rows that meet their bar.
    pub passed: usize,
    /// Rows that miss it with a known cause.
    pub misfits: usize,
    /// Rows that miss it without.
    pub failed: usize,
    /// Rows of a real drive, judged together.
    pub joint: usize,
    /// Rows that are shown and not judged.
    pub informative: usize,
    /// Median magnitude of the relative errors, misfits included; none if no
    /// row has an error. Of an even number, the mean of the middle two.
    pub median_error: Option<f64>,
    /// 90th percentile of the same: the least error that at least 90 % of the
    /// rows do not exceed.
    pub p90_error: Option<f64>,
}

impl Stats {
    /// The statistics of `rows`.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut stats = Self::default();
        let mut errors = Vec::new();
        for row in rows {
            stats.count += 1;
            match row.verdict() {
                Verdict::Ok => stats.passed += 1,
                Verdict::Misfit => stats.misfits += 1,
                Verdict::Fail => stats.failed += 1,
                Verdict::Joint => stats.joint += 1,
                Verdict::Info => stats.informative += 1,
            }
            errors.extend(row.rel_error.map(f64::abs).filter(|e| e.is_finite()));
        }
        errors.sort_by(f64::total_cmp);
        stats.median_error = median(&errors);
        stats.p90_error = p90(&errors);
        stats
    }
}

impl Stats {
    /// How many rows have this verdict.
    #[must_use]
    pub const fn of_verdict(&self, verdict: Verdict) -> usize {
        match verdict {
            Verdict::Ok => self.passed,
            Verdict::Misfit => self.misfits,
            Verdict::Fail => self.failed,
            Verdict::Joint => self.joint,
            Verdict::Info => self.informative,
        }
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

/// Statistics by id, and over everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Statistics of each id, in order of first appearance.
    pub by_id: Vec<(String, Stats)>,
    /// Statistics of all rows.
    pub overall: Stats,
    /// Real-drive rows together, if there are any.
    pub drive: Option<DriveSummary>,
}

impl Summary {
    /// Summarises judged rows.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let mut ids: Vec<&str> = Vec::new();
        for row in rows {
            if !ids.contains(&row.id.as_str()) {
                ids.push(&row.id);
            }
        }
        let stats = |id: &str| Stats::of(rows.iter().filter(|row| row.id == id));
        Self {
            by_id: ids
                .into_iter()
                .map(|id| (id.to_owned(), stats(id)))
                .collect(),
            overall: Stats::of(rows),
            drive: DriveSummary::of(rows),
        }
    }

    /// Whether everything came out: no row failed, and the real-drive rows meet
    /// their common bars ([`DriveSummary::pass`]).
    #[must_use]
    pub fn pass(&self) -> bool {
        self.overall.failed == 0 && self.drive.as_ref().is_none_or(DriveSummary::pass)
    }
}
