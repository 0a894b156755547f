//! Rows with what is known of them.

use crate::compare;
use crate::experiment::Experiment;
use crate::published::{CellPlace, LookupError, References};
use crate::reference::plausible::{self, Stated};
use crate::rows::{self, Misfits, Outdated, Row, Scope, Summary};
use crate::run::PointResult;

/// Why published values are shown and not judged, of a run with settings that [`alter`]
/// what was published.
///
/// [`alter`]: alters
pub const ALTERED: &str = "settings or conditions differ from the file's";

/// Whether a setting (`key=value`) makes results others than those that were published: to
/// run points more often makes them better known.
#[must_use]
pub fn alters(set: &str) -> bool {
    set.split_once('=')
        .is_none_or(|(key, _)| key.trim() != "repeats")
}

/// An experiment and what its points measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The results of its points, of those that were run.
    pub results: &'a [PointResult],
    /// How many points it has.
    pub points: usize,
}

/// By what results are judged.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The list of what is known not to come out.
    pub misfits: &'a Misfits,
    /// How much of everything was run.
    pub scope: Scope,
    /// Why published values are shown and not judged; `None`: they are judged.
    pub shown: Option<&'a str>,
    /// The experiment is a user's own ([`super::Loaded::is_own`]): what is known of those
    /// that are built in excuses nothing, and statements are judged on any drive.
    pub is_own: bool,
}

/// What was compared, and what it comes to.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The rows, with their verdicts.
    pub rows: Vec<Row>,
    /// What they come to.
    pub summary: Summary,
    /// What has to be changed in the list of misfits and gaps.
    pub outdated: Vec<Outdated>,
    /// Published values that seem to have another unit, in words.
    pub suspects: Vec<String>,
}

impl Judged {
    /// Compares what was measured with what was published and stated. An experiment of which
    /// points are missing has no rows.
    ///
    /// # Errors
    /// A published value is not where an experiment says.
    pub fn of(
        all: &[Measured<'_>],
        references: &References,
        terms: Terms<'_>,
    ) -> Result<Self, LookupError> {
        let nothing = Misfits::default();
        let Terms {
            misfits,
            scope,
            shown,
            is_own,
        } = terms;
        let misfits = if is_own { &nothing } else { misfits };
        let (mut rows, mut unjudged) = (Vec::new(), Vec::new());
        for one in all {
            let is_whole = one.results.len() == one.points;
            if is_whole {
                rows.extend(compare::rows(one.experiment, one.results, references)?);
            }
            if is_own || shown.is_none() {
                unjudged.extend(compare::unjudged(one.experiment, one.results, is_whole));
            }
        }
        rows::count_once(&mut rows);
        let mut outdated = misfits.apply(&mut rows, scope);
        if let Some(why) = shown {
            let judges = |row: &Row| is_own && row.is_statement();
            let shown = |row: Row| if judges(&row) { row } else { row.shown(why) };
            rows = rows.into_iter().map(shown).collect();
        }
        let mut summary = Summary::of(&rows, scope, misfits);
        summary.unjudged = unjudged;
        summary.owes_all = is_own;
        summary.is_partial = all.iter().any(|one| one.results.len() < one.points);
        let drive = summary.drive.iter();
        outdated.extend(drive.flat_map(|drive| misfits.outdated_bars(drive, scope)));
        if scope.quick {
            // Points are left out, and shorter runs may meet a bar by luck.
            outdated.retain(|entry| !matches!(entry, Outdated::NotNeeded { .. }));
        }
        if shown.is_some() {
            outdated.clear();
        }
        let suspects = if is_own { suspects(&rows) } else { Vec::new() };
        Ok(Self {
            rows,
            summary,
            outdated,
            suspects,
        })
    }
}

/// Published values of rows that seem to have another unit.
fn suspects(rows: &[Row]) -> Vec<String> {
    let placed = rows.iter().filter(|row| !row.is_statement());
    let placed = placed.filter_map(|row| {
        let place = row.published_in.as_deref().and_then(CellPlace::parse);
        Some((row, row.written?, place?))
    });
    let placed: Vec<_> = placed.collect();
    let pairs = placed.iter().map(|(row, written, place)| {
        let stated = Stated {
            metric: &row.metric,
            written: *written,
            place,
        };
        (stated, row.ours)
    });
    plausible::suspects(pairs)
}
