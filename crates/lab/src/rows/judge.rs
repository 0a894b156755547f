//! The rule by which a row passes.

use super::{Group, Kind, Quantity, Row, UNIT_CHANGE, UNIT_ERROR, UNIT_M, significant};

/// Allowed relative error of a point of kind E.
const POINT: f64 = 0.03;
/// Allowed relative error of M^Inter of kind E.
const M_RELATIVE: f64 = 0.05;
/// Absolute error of M^Inter of kind E that says nothing: it is a difference of
/// noisy numbers, and pairs that the authors saw no effect in have values up to
/// this.
const M_ABSOLUTE: f64 = 0.05;
/// Slack for the rounding of the error itself: a value that is 3 % off by
/// decimal arithmetic must not fail on a binary digit.
const SLACK: f64 = 1e-9;

/// What makes a statement hold.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Bound {
    /// Ours is at least this.
    AtLeast(f64),
    /// Ours is at most this.
    AtMost(f64),
    /// Ours agrees with the published size as well as a typical point of the
    /// kind has to: the relative error of `around` + ours is at most this. For a
    /// change of -16 %, `around` is 1: what agrees is the factor 0.84.
    Near {
        /// Greatest magnitude of the relative error.
        within: f64,
        /// Added to both sides before they are compared.
        around: f64,
    },
}

impl Bound {
    /// The bound of a statement of `kind` about the size of a metric: 3 % of
    /// emulators. Of a real drive it is the median bar of its rows, since one
    /// statement is one value: 3 %, of percentiles 5 %.
    #[must_use]
    pub fn near(kind: Kind, metric: &str, around: f64) -> Self {
        let within = match kind {
            Kind::Drive => Quantity::of(metric, "").group().bars().0,
            Kind::Emulator | Kind::Shape => POINT,
        };
        Self::Near { within, around }
    }

    /// How far `ours` is on the wrong side; zero or less if it holds, and greater
    /// the worse it is. Not finite if something was not measured.
    #[must_use]
    pub fn excess(self, ours: f64, published: Option<f64>) -> f64 {
        if !ours.is_finite() {
            return f64::NAN;
        }
        match self {
            Self::AtLeast(least) => least - ours,
            Self::AtMost(most) => ours - most,
            Self::Near { within, around } => {
                let published = published.unwrap_or(f64::NAN) + around;
                ((ours + around - published) / published).abs() - within
            }
        }
    }

    /// Whether a statement holds.
    #[must_use]
    pub fn holds(self, ours: f64, published: Option<f64>) -> bool {
        self.excess(ours, published) <= SLACK
    }

    /// In words, of values with this unit: "at least 1.33", "within 3 %".
    #[must_use]
    pub fn words(self, unit: &str) -> String {
        let size = |bound: f64| match unit {
            UNIT_CHANGE | UNIT_ERROR => format!("{} %", significant(bound * 100.0)),
            _ => significant(bound).to_string(),
        };
        match self {
            Self::AtLeast(least) => format!("at least {}", size(least)),
            Self::AtMost(most) => format!("at most {}", size(most)),
            Self::Near { within, .. } => format!("within {} %", significant(within * 100.0)),
        }
    }
}

/// What the rule says of a row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Signed relative error from the edge of the repeat spread. None without a
    /// published value, or if the error has no finite value.
    pub rel_error: Option<f64>,
    /// Greatest allowed magnitude of the error; none if the row has no bar of
    /// its own.
    pub tolerance: Option<f64>,
    /// Whether the row meets its bar; none if it has none.
    pub pass: Option<bool>,
}

/// Judges `row` by its values; the fields for the outcome are not read.
///
/// * A row that is not judged ([`super::Standing`]) has no bar.
/// * A statement holds or does not, by its [`Bound`].
/// * The reference of a point is the published value, or the value nearest to
///   ours within the authors' repeats (which include the published one): inside
///   their spread the error is 0, outside it counts from the edge.
/// * Kind E: the error is at most 3 %; or, if our neighbouring percentiles are
///   given, the reference lies between them; or, with the unit M, the error is
///   at most the larger of 0.05 absolute and 5 %. What we could not measure
///   does not pass.
/// * Kind D: no bar of its own, see [`super::DriveSummary`]. What we could not
///   measure does not pass.
/// * Kind S: none; what its shape has to be is said by statements.
#[must_use]
pub fn judge(row: &Row) -> Judgement {
    let reference = row
        .published
        .and_then(|published| reference(row, published));
    let rel_error = reference.and_then(|reference| relative_error(row, reference));
    let (tolerance, pass) = match (row.statement, row.kind, reference) {
        _ if row.standing != super::Standing::Judged => (None, None),
        (Some(bound), ..) => {
            let tolerance = match bound {
                Bound::Near { within, .. } => Some(within),
                Bound::AtLeast(_) | Bound::AtMost(_) => None,
            };
            (tolerance, Some(bound.holds(row.ours, row.published)))
        }
        // No error of it could count against the bars of the drive.
        (None, Kind::Drive, Some(_)) if !row.ours.is_finite() => (None, Some(false)),
        (None, Kind::Drive | Kind::Shape, _) | (None, Kind::Emulator, None) => (None, None),
        (None, Kind::Emulator, Some(reference)) => {
            let tolerance = tolerance(&row.unit, reference);
            (
                tolerance.is_finite().then_some(tolerance),
                Some(passes(row, reference)),
            )
        }
    };
    Judgement {
        rel_error: rel_error.map(significant),
        tolerance: tolerance.map(significant),
        pass,
    }
}

/// The value that ours is compared with: the nearest within the repeats.
fn reference(row: &Row, published: f64) -> Option<f64> {
    if !published.is_finite() {
        return None;
    }
    let (low, high) = row
        .repeat_spread
        .filter(|(a, b)| a.is_finite() && b.is_finite())
        .unwrap_or((published, published));
    // The published value is one of the repeats, whatever its rounding.
    let (low, high) = (low.min(high).min(published), low.max(high).max(published));
    if row.ours.is_nan() {
        Some(published)
    } else {
        Some(row.ours.clamp(low, high))
    }
}

/// Of a change, the error is that of the factor: a change of 0 % has no size.
fn relative_error(row: &Row, reference: f64) -> Option<f64> {
    let around = match row.statement {
        Some(Bound::Near { around, .. }) => around,
        _ => 0.0,
    };
    let difference = row.ours - reference;
    if difference == 0.0 {
        return Some(0.0);
    }
    let error = difference / (reference + around).abs();
    error.is_finite().then_some(error)
}

/// The allowed relative error; infinite for M at a reference of zero.
fn tolerance(unit: &str, reference: f64) -> f64 {
    if unit == UNIT_M {
        (M_ABSOLUTE / reference.abs()).max(M_RELATIVE)
    } else {
        POINT
    }
}

fn passes(row: &Row, reference: f64) -> bool {
    if !row.ours.is_finite() {
        return false;
    }
    let error = (row.ours - reference).abs();
    let allowed = if row.unit == UNIT_M {
        (M_RELATIVE * reference.abs()).max(M_ABSOLUTE)
    } else {
        POINT * reference.abs()
    };
    let bracketed = match (row.ours_lower, row.ours_upper) {
        (Some(lower), Some(upper)) => lower <= reference && reference <= upper,
        _ => false,
    };
    error <= allowed * (1.0 + SLACK) || bracketed
}

impl Group {
    /// Greatest median and 90th percentile of the magnitudes of relative errors.
    #[must_use]
    pub const fn bars(self) -> (f64, f64) {
        match self {
            Self::Values => (0.03, 0.09),
            Self::Percentiles => (0.05, 0.15),
        }
    }
}
