//! Rows counted by the paper that they are from.

use super::drive::is_far;
use super::{Group, Row, Stats, Verdict};
use crate::catalogue::{PAPERS, Paper};

/// The rows of a paper that miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Off {
    /// Percentiles of latency.
    pub percentiles: usize,
    /// Other measured points: throughput, mean latency, M.
    pub values: usize,
    /// Statements.
    pub statements: usize,
    /// Those of all of them whose cause `experiments/misfits.toml` gives.
    pub explained: usize,
}

impl Off {
    /// All of them.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.percentiles + self.values + self.statements
    }

    fn add(&mut self, row: &Row) {
        match (row.is_statement(), row.quantity().group()) {
            (true, _) => self.statements += 1,
            (false, Group::Percentiles) => self.percentiles += 1,
            (false, Group::Values) => self.values += 1,
        }
        self.explained += usize::from(is_explained(row));
    }
}

/// Whether the list of misfits and gaps says why the row misses. "not known" is no cause.
fn is_explained(row: &Row) -> bool {
    row.reason()
        .is_some_and(|why| !why.starts_with("not known") && !why.ends_with("is not known."))
}

/// The rows of a paper, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperSummary {
    /// The paper.
    pub paper: &'static Paper,
    /// Counts and errors of its rows.
    pub stats: Stats,
    /// Rows that match: those with the verdict `ok`, and those of a real drive that are no
    /// further off than nine of ten may be.
    pub matching: usize,
    /// Rows that miss.
    pub off: Off,
}

impl PaperSummary {
    /// A summary of each paper of which there are rows, in the order of [`PAPERS`].
    #[must_use]
    pub fn of_all(rows: &[Row]) -> Vec<Self> {
        let of_paper = |paper: &'static Paper| {
            let own: Vec<&Row> = rows.iter().filter(|row| paper.has(&row.id)).collect();
            (!own.is_empty()).then(|| Self::of(paper, &own))
        };
        PAPERS.iter().filter_map(of_paper).collect()
    }

    fn of(paper: &'static Paper, rows: &[&Row]) -> Self {
        let mut summary = Self {
            paper,
            stats: Stats::of(rows.iter().copied()),
            matching: 0,
            off: Off::default(),
        };
        for row in rows {
            match row.verdict() {
                Verdict::Ok => summary.matching += 1,
                Verdict::Joint if !is_far(row) => summary.matching += 1,
                Verdict::Joint | Verdict::Misfit | Verdict::Missed | Verdict::Fail => {
                    summary.off.add(row);
                }
                Verdict::Input | Verdict::Info => {}
            }
        }
        summary
    }
}
