//! Rows with what is known of them.

use crate::rows::{self, Misfits, Outdated, Row, Scope, Summary};

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

/// What was compared, and what it comes to.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The rows, with their verdicts.
    pub rows: Vec<Row>,
    /// What they come to.
    pub summary: Summary,
    /// What has to be changed in the list of misfits and gaps.
    pub outdated: Vec<Outdated>,
}

impl Judged {
    /// Marks what the list knows of `rows`, and sums them up. If `shown` says why, the run
    /// is another than the published one: published values are shown and not judged.
    #[must_use]
    pub fn of(mut rows: Vec<Row>, scope: Scope, shown: Option<&str>, misfits: &Misfits) -> Self {
        rows::count_once(&mut rows);
        let mut outdated = misfits.apply(&mut rows, scope);
        if let Some(why) = shown {
            rows = rows.into_iter().map(|row| row.shown(why)).collect();
        }
        let summary = Summary::of(&rows, scope, misfits);
        let drive = summary.drive.iter();
        outdated.extend(drive.flat_map(|drive| misfits.outdated_bars(drive, scope)));
        if scope.quick {
            // Points are left out, and shorter runs may meet a bar by luck.
            outdated.retain(|entry| !matches!(entry, Outdated::NotNeeded { .. }));
        }
        if shown.is_some() {
            outdated.clear();
        }
        Self {
            rows,
            summary,
            outdated,
        }
    }
}
