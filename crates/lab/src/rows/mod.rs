//! Rows of comparison: a published value, ours, and the verdict.
//!
//! A [`Row`] is made with [`Row::new`] and its builder methods, and closed with
//! [`Row::judged`], which applies the one rule of [`judge()`]. [`count_once`]
//! finds measurements that several figures show, [`Misfits`] marks the rows that
//! are known not to come out, [`Summary`] counts, and [`to_json`] and [`to_csv`]
//! write.
//!
//! Values are rounded to six significant digits *before* they are judged, so
//! that who reads only the file comes to the same verdicts.

mod drive;
mod gap;
mod judge;
mod misfit;
mod paper;
mod summary;
mod write;

#[cfg(test)]
mod tests;

pub use drive::{BarResult, Beyond, DriveSummary, Errors, FigureErrors, Group, Quantity};
pub use gap::{Gap, KnownGap};
pub use judge::{Bound, Judgement, judge};
pub use misfit::{Misfit, MisfitError, Misfits, Outdated, Range, Side};
pub use paper::{Off, PaperSummary};
pub use summary::{Missing, Scope, Stats, Summary, Unjudged};
pub use write::{COLUMNS, SCHEMA, number, to_csv, to_json, to_json_with};

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::experiment::{is_word, says_more_than_a_number};
use crate::statistics::Statistics;

/// The unit of M^Inter, the interference metric of ConfZNS++ section 2.3. Rows
/// with this unit have a tolerance of their own.
pub const UNIT_M: &str = "M";

/// The unit of a change: 0.1 is 10 % more.
pub const UNIT_CHANGE: &str = "change";

/// The unit of a relative error: 0.1 is 10 %.
pub const UNIT_ERROR: &str = "error";

/// Why what has no value does not pass.
const NO_VALUE: &str =
    "it has no value: something that it takes was not measured, or is divided by 0";

/// What a published result obliges us to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// An emulator or prototype with a stated configuration: every point must
    /// match.
    #[serde(rename = "E")]
    Emulator,
    /// A real drive: one profile must match all points together, see
    /// [`DriveSummary`].
    #[serde(rename = "D")]
    Drive,
    /// Shape and order must match; sizes are stated and discussed.
    #[serde(rename = "S")]
    Shape,
}

impl Kind {
    /// All of them, in the order of output.
    pub const ALL: [Self; 3] = [Self::Emulator, Self::Drive, Self::Shape];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emulator => "emulators and prototypes",
            Self::Drive => "real drive",
            Self::Shape => "sizes that are shown, not judged",
        }
    }

    /// The letter that stands for the kind in files and tables.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Emulator => "E",
            Self::Drive => "D",
            Self::Shape => "S",
        }
    }
}

/// Where on the horizontal axis of its figure a row lies.
#[derive(Clone, Debug, PartialEq)]
pub struct X {
    /// The quantity, with its unit if it has one ("concurrency",
    /// "occupancy_pct").
    pub name: String,
    /// Its value.
    pub value: f64,
    /// The value as it stands in the experiment file ("64KiB").
    pub label: String,
    /// What tables show, if it is more: values of axes that are paired ("4 / 2ms").
    pub shown: Option<String>,
}

impl X {
    /// What stands for it in tables, if that is more than its number: values of axes that are
    /// paired, a word, or a quantity with its unit where the name has none.
    #[must_use]
    pub fn in_words(&self) -> Option<&str> {
        let name_has_unit = self.name.ends_with(']');
        let says_more =
            |label: &&str| is_word(label) || (!name_has_unit && says_more_than_a_number(label));
        let label = Some(self.label.as_str()).filter(|label| !label.is_empty());
        self.shown.as_deref().or(label.filter(says_more))
    }
}

/// Whether a row takes part in the verdicts, and why not if it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is judged by the rule of its kind.
    Judged,
    /// Its published value was an input of the profile or of the host's stack,
    /// for the reason given: that it comes out shows nothing.
    Input(String),
    /// It is shown for the reason given.
    Shown(String),
    /// It is the same measurement, beside the same published value, as a row of
    /// the figure named, and counts there.
    CountedIn(String),
}

/// One published result beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which result: "C10a".
    pub id: String,
    /// What it obliges us to.
    pub kind: Kind,
    /// Which curve of the figure: "finish, 16 KiB".
    pub series: String,
    /// The job whose measurement it is; empty if it is of several.
    pub job: String,
    /// Which point of the curve; none for single numbers.
    pub x: Option<X>,
    /// What was measured: "throughput", "P95". Of a statement, its sentence.
    pub metric: String,
    /// The unit of every value of the row: "KIOPS", "us", [`UNIT_M`].
    pub unit: String,
    /// The published value, if there is one.
    pub published: Option<f64>,
    /// The published value as it stands there, and what turns that into the row's unit.
    pub written: Option<(f64, f64)>,
    /// Where the published value stands: file, line and column of a table, or metric of an
    /// experiment file.
    pub published_in: Option<String>,
    /// Least and greatest of the authors' own repeats of the point.
    pub repeat_spread: Option<(f64, f64)>,
    /// What zonelab gives. Not finite (null in JSON) if it gave nothing.
    pub ours: f64,
    /// Our percentile one point lower (P94 for P95).
    pub ours_lower: Option<f64>,
    /// Our percentile one point higher (P96 for P95).
    pub ours_upper: Option<f64>,
    /// How `ours` varies over repeats, or within a run in real time.
    pub statistics: Option<Statistics>,
    /// Signed error relative to the published value, from the edge of the
    /// repeat spread: 0.03 is 3 % too much.
    pub rel_error: Option<f64>,
    /// Greatest allowed magnitude of `rel_error`, if the row has a bar of its
    /// own.
    pub tolerance: Option<f64>,
    /// What makes a statement hold; none if the row is a measured point.
    pub statement: Option<Bound>,
    /// Whether the row meets its bar; none if it has no bar of its own.
    pub pass: Option<bool>,
    /// Whether it takes part in the verdicts.
    pub standing: Standing,
    /// Why a point does not pass although its mechanism is understood.
    pub misfit: Option<String>,
    /// The known gap that a statement which does not hold is listed as.
    pub gap: Option<KnownGap>,
}

impl Row {
    /// A row with our value `ours`, `metric` and its unit, without anything to
    /// compare with.
    #[must_use]
    pub fn new(id: &str, kind: Kind, series: &str, metric: (&str, &str), ours: f64) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            series: series.to_owned(),
            job: String::new(),
            x: None,
            metric: metric.0.to_owned(),
            unit: metric.1.to_owned(),
            published: None,
            written: None,
            published_in: None,
            repeat_spread: None,
            ours,
            ours_lower: None,
            ours_upper: None,
            statistics: None,
            rel_error: None,
            tolerance: None,
            statement: None,
            pass: None,
            standing: Standing::Judged,
            misfit: None,
            gap: None,
        }
    }

    /// Sets the point of the curve.
    #[must_use]
    pub fn at(mut self, name: &str, value: f64, label: &str) -> Self {
        self.x = Some(X {
            name: name.to_owned(),
            value,
            label: label.to_owned(),
            shown: None,
        });
        self
    }

    /// Sets what tables show at the point, if it says more than its label.
    #[must_use]
    pub fn shown_at(mut self, text: String) -> Self {
        if let Some(x) = self.x.as_mut().filter(|x| x.label != text) {
            x.shown = Some(text);
        }
        self
    }

    /// Sets the job.
    #[must_use]
    pub fn of_job(mut self, job: &str) -> Self {
        job.clone_into(&mut self.job);
        self
    }

    /// Sets the published value.
    #[must_use]
    pub fn published(mut self, value: f64) -> Self {
        self.published = Some(value);
        self
    }

    /// Sets where the published value stands, and how.
    #[must_use]
    pub fn published_in(mut self, place: Option<String>, written: (f64, f64)) -> Self {
        self.published_in = place;
        self.written = Some(written);
        self
    }

    /// Sets the range of the authors' repeats; `None` if they measured once.
    #[must_use]
    pub fn repeats(mut self, spread: Option<(f64, f64)>) -> Self {
        self.repeat_spread = spread;
        self
    }

    /// Sets our percentiles one point lower and one point higher.
    #[must_use]
    pub fn bracket(mut self, lower: f64, upper: f64) -> Self {
        self.ours_lower = Some(lower);
        self.ours_upper = Some(upper);
        self
    }

    /// Sets how our value varies, if that is known.
    #[must_use]
    pub fn varying(mut self, statistics: Option<Statistics>) -> Self {
        self.statistics = statistics;
        self
    }

    /// Makes the row a statement that holds under `bound`.
    #[must_use]
    pub fn statement(mut self, bound: Bound) -> Self {
        self.statement = Some(bound);
        self
    }

    /// Sets whether it takes part in the verdicts.
    #[must_use]
    pub fn standing(mut self, standing: Standing) -> Self {
        self.standing = standing;
        self
    }

    /// Rounds the values to the precision of the files and applies [`judge()`].
    #[must_use]
    pub fn judged(mut self) -> Self {
        if let Some(x) = &mut self.x {
            x.value = significant(x.value);
        }
        self.published = self.published.map(significant);
        self.repeat_spread = self
            .repeat_spread
            .map(|(a, b)| (significant(a), significant(b)));
        self.ours = significant(self.ours);
        self.ours_lower = self.ours_lower.map(significant);
        self.ours_upper = self.ours_upper.map(significant);
        let Judgement {
            rel_error,
            tolerance,
            pass,
        } = judge(&self);
        self.rel_error = rel_error;
        self.tolerance = tolerance;
        self.pass = pass;
        self
    }

    /// The same row, shown and not judged, for the reason given.
    #[must_use]
    pub fn shown(self, reason: &str) -> Self {
        Self {
            standing: Standing::Shown(reason.to_owned()),
            misfit: None,
            gap: None,
            ..self
        }
        .judged()
    }

    /// Whether it is a statement rather than a measured point.
    #[must_use]
    pub const fn is_statement(&self) -> bool {
        self.statement.is_some()
    }

    /// Whether its error counts in the statistics of its kind: those of kind S
    /// are sizes to discuss, and what is no measured point or is not judged has
    /// none.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.standing == Standing::Judged
            && !self.is_statement()
            && self.kind != Kind::Shape
            && self.rel_error.is_some_and(f64::is_finite)
    }

    /// Why the row is not judged, does not pass, or does not hold.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match (&self.standing, &self.gap) {
            (Standing::Input(why) | Standing::Shown(why), _) => Some(why.clone()),
            (Standing::CountedIn(id), _) => Some(format!("counted in {id}")),
            (Standing::Judged, Some(gap)) => Some(gap.cause.clone()),
            (Standing::Judged, None) => {
                let has_none = self.pass == Some(false) && !self.ours.is_finite();
                let unknown = has_none.then(|| NO_VALUE.to_owned());
                self.misfit.clone().or(unknown)
            }
        }
    }

    /// The verdict in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match &self.standing {
            Standing::Input(_) => return Verdict::Input,
            Standing::Shown(_) | Standing::CountedIn(_) => return Verdict::Info,
            Standing::Judged => {}
        }
        match (self.pass, &self.misfit, &self.gap) {
            (Some(true), ..) => Verdict::Ok,
            (_, Some(_), _) => Verdict::Misfit,
            (Some(false), _, Some(gap)) if !gap.is_worse => Verdict::Missed,
            (Some(false), ..) => Verdict::Fail,
            (None, ..) if self.kind == Kind::Drive && self.counts() => Verdict::Joint,
            (None, ..) => Verdict::Info,
        }
    }

    /// Whether the row passes only because the published percentile lies
    /// between our neighbouring ones.
    #[must_use]
    pub fn passes_by_bracket(&self) -> bool {
        let (Some(error), Some(tolerance)) = (self.rel_error, self.tolerance) else {
            return false;
        };
        !self.is_statement() && self.pass == Some(true) && error.abs() > tolerance
    }
}

/// Lets a measurement that several figures show count in the first of them
/// only: rows of a real drive with the same published value of the same metric.
pub fn count_once(rows: &mut [Row]) {
    let mut first: BTreeMap<(String, String), String> = BTreeMap::new();
    for row in rows.iter_mut() {
        let Some(place) = &row.published_in else {
            continue;
        };
        if row.kind != Kind::Drive || !row.counts() {
            continue;
        }
        match first.entry((place.clone(), row.metric.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(row.id.clone());
            }
            Entry::Occupied(entry) => row.standing = Standing::CountedIn(entry.get().clone()),
        }
    }
}

/// What became of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It meets its bar, or the statement holds.
    Ok,
    /// A point that misses its bar, as `experiments/misfits.toml` explains.
    Misfit,
    /// A statement that does not hold, which `experiments/misfits.toml` lists as
    /// a known gap.
    Missed,
    /// It misses its bar or does not hold, and is not listed or got worse: the
    /// command fails.
    Fail,
    /// It is judged together with the other rows of a real drive.
    Joint,
    /// Its published value was an input of ours.
    Input,
    /// It is shown and not judged.
    Info,
}

impl Verdict {
    /// All of them, in the order of output.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Misfit,
        Self::Missed,
        Self::Fail,
        Self::Joint,
        Self::Input,
        Self::Info,
    ];

    /// The word for tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Misfit => "MISFIT",
            Self::Missed => "MISSED",
            Self::Fail => "FAIL",
            Self::Joint => "joint",
            Self::Input => "input",
            Self::Info => "info",
        }
    }
}

/// `value` rounded to six significant digits, the precision of our files.
///
/// Goes through decimal text, which is rounded correctly on every platform.
/// Values that are not finite stay as they are; zero loses its sign.
#[must_use]
pub fn significant(value: f64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    // The text of a finite number in this form is always a finite number.
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    rounded + 0.0
}
