//! Rows of comparison: a published value, ours, and the verdict.
//!
//! A [`Row`] is made with [`Row::new`] and its builder methods, and closed with
//! [`Row::judged`], which applies the one rule of [`judge()`]. [`Misfits`] then
//! marks the rows that are known not to come out, [`Summary`] counts, and
//! [`to_json`] and [`to_csv`] write.
//!
//! Values are rounded to six significant digits *before* they are judged, so
//! that who reads only the file comes to the same verdicts.

mod drive;
mod judge;
mod misfit;
mod summary;
mod write;

#[cfg(test)]
mod tests;

pub use drive::{Beyond, DriveSummary, Errors, FigureErrors, Quantity};
pub use judge::{Judgement, judge};
pub use misfit::{Misfit, MisfitError, Misfits, Unused};
pub use summary::{Stats, Summary};
pub use write::{COLUMNS, SCHEMA, to_csv, to_json};

use serde::Serialize;

/// The unit of M^Inter, the interference metric of ConfZNS++ section 2.3. Rows
/// with this unit have a tolerance of their own.
pub const UNIT_M: &str = "M";

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
///
/// In files it is the value alone: an id has one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct X {
    /// The quantity, with its unit if it has one ("concurrency",
    /// "occupancy_pct").
    pub name: String,
    /// Its value.
    pub value: f64,
}

impl Serialize for X {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value)
    }
}

/// One published result beside ours.
///
/// The order of the fields is that of the keys in JSON and of [`COLUMNS`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which result: "C10a".
    pub id: String,
    /// What it obliges us to.
    pub kind: Kind,
    /// Which curve of the figure: "finish, 16 KiB".
    pub series: String,
    /// Which point of the curve; none for single numbers.
    pub x: Option<X>,
    /// What was measured: "throughput", "P95".
    pub metric: String,
    /// The unit of every value of the row: "KIOPS", "us", [`UNIT_M`].
    pub unit: String,
    /// The published value, if there is one.
    pub published: Option<f64>,
    /// Least and greatest of the authors' own repeats of the point.
    pub repeat_spread: Option<(f64, f64)>,
    /// What zonelab gives. Not finite (null in JSON) if it gave nothing.
    pub ours: f64,
    /// Our percentile one point lower (P94 for P95).
    pub ours_lower: Option<f64>,
    /// Our percentile one point higher (P96 for P95).
    pub ours_upper: Option<f64>,
    /// Signed error relative to the published value, from the edge of the
    /// repeat spread: 0.03 is 3 % too much.
    pub rel_error: Option<f64>,
    /// Greatest allowed magnitude of `rel_error`, if the row has a bar of its
    /// own.
    pub tolerance: Option<f64>,
    /// Whether the row meets its bar; none if it has no bar of its own.
    pub pass: Option<bool>,
    /// Why the row does not pass although its mechanism is understood.
    pub misfit: Option<String>,
    /// Outcome of a check of shape or order (rows of [`Kind::Shape`]).
    #[serde(skip)]
    pub shape_holds: Option<bool>,
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
            x: None,
            metric: metric.0.to_owned(),
            unit: metric.1.to_owned(),
            published: None,
            repeat_spread: None,
            ours,
            ours_lower: None,
            ours_upper: None,
            rel_error: None,
            tolerance: None,
            pass: None,
            misfit: None,
            shape_holds: None,
        }
    }

    /// Sets the point of the curve.
    #[must_use]
    pub fn at(mut self, name: &str, value: f64) -> Self {
        self.x = Some(X {
            name: name.to_owned(),
            value,
        });
        self
    }

    /// Sets the published value.
    #[must_use]
    pub fn published(mut self, value: f64) -> Self {
        self.published = Some(value);
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

    /// Sets the outcome of a check of shape or order.
    #[must_use]
    pub fn shape(mut self, holds: bool) -> Self {
        self.shape_holds = Some(holds);
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

    /// The same row, shown and not judged: what it measured is not what was published.
    #[must_use]
    pub fn informative(self) -> Self {
        let kind = Kind::Shape;
        Self {
            kind,
            shape_holds: None,
            misfit: None,
            ..self
        }
        .judged()
    }

    /// Whether the error counts from the nearest value within 0.05 of the
    /// published one: that of an M^Inter of a real drive.
    #[must_use]
    pub fn counts_from_noise(&self) -> bool {
        self.kind == Kind::Drive && self.unit == UNIT_M && self.published.is_some()
    }

    /// The verdict in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.pass, &self.misfit) {
            (_, Some(_)) => Verdict::Misfit,
            (Some(true), None) if self.kind == Kind::Shape && self.shape_holds.is_none() => {
                Verdict::Info
            }
            (Some(true), None) => Verdict::Ok,
            (Some(false), None) => Verdict::Fail,
            (None, None) if self.kind == Kind::Drive && self.rel_error.is_some() => Verdict::Joint,
            (None, None) => Verdict::Info,
        }
    }

    /// Whether the row passes only because the published percentile lies
    /// between our neighbouring ones.
    #[must_use]
    pub fn passes_by_bracket(&self) -> bool {
        let (Some(error), Some(tolerance)) = (self.rel_error, self.tolerance) else {
            return false;
        };
        self.pass == Some(true) && error.abs() > tolerance
    }
}

/// What became of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It meets its bar.
    Ok,
    /// It misses its bar, as `experiments/misfits.toml` explains.
    Misfit,
    /// It misses its bar: the command fails.
    Fail,
    /// It is judged together with the other rows of a real drive.
    Joint,
    /// It is shown and not judged.
    Info,
}

impl Verdict {
    /// All of them, in the order of output.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Misfit, Self::Fail, Self::Joint, Self::Info];

    /// The word for tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Misfit => "MISFIT",
            Self::Fail => "FAIL",
            Self::Joint => "joint",
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
