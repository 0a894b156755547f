//! The rule by which a row passes.

use super::{Kind, Row, UNIT_M};

/// Allowed relative error of a point of kind E.
const POINT: f64 = 0.03;
/// Allowed relative error of M^Inter.
const M_RELATIVE: f64 = 0.05;
/// Absolute error of M^Inter that says nothing: it is a difference of noisy
/// numbers, and pairs that the authors saw no effect in have values up to this.
pub(super) const M_ABSOLUTE: f64 = 0.05;
/// Slack for the rounding of the error itself: a value that is 3 % off by
/// decimal arithmetic must not fail on a binary digit.
const SLACK: f64 = 1e-9;

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
/// * The reference is the published value, or the value nearest to ours within
///   the authors' repeats (which include the published one): inside their
///   spread the error is 0, outside it counts from the edge.
/// * Kind E: the error is at most 3 %; or, if our neighbouring percentiles are
///   given, the reference lies between them; or, with the unit M, the error is
///   at most the larger of 0.05 absolute and 5 %. What we could not measure
///   does not pass.
/// * Kind D: no bar of its own, see [`super::DriveSummary`]. The error of an M
///   counts from the nearest value within 0.05 of the published one.
/// * Kind S: passes unless a stated check of its shape fails.
#[must_use]
pub fn judge(row: &Row) -> Judgement {
    let reference = row
        .published
        .and_then(|published| reference(row, published));
    let rel_error = reference.and_then(|reference| relative_error(row.ours, reference));
    let (tolerance, pass) = match row.kind {
        Kind::Drive => (None, None),
        Kind::Shape => (None, Some(row.shape_holds.unwrap_or(true))),
        Kind::Emulator => match reference {
            None => (None, None),
            Some(reference) => {
                let tolerance = tolerance(&row.unit, reference);
                (
                    tolerance.is_finite().then_some(tolerance),
                    Some(passes(row, reference)),
                )
            }
        },
    };
    let digits = |value: f64| super::significant(value);
    Judgement {
        rel_error: rel_error.map(digits),
        tolerance: tolerance.map(digits),
        pass,
    }
}

/// The value that ours is compared with: the nearest within the repeats, or
/// within the noise of an M of a real drive.
fn reference(row: &Row, published: f64) -> Option<f64> {
    if !published.is_finite() {
        return None;
    }
    let noise = if row.counts_from_noise() {
        M_ABSOLUTE
    } else {
        0.0
    };
    let (low, high) = row
        .repeat_spread
        .filter(|(a, b)| a.is_finite() && b.is_finite())
        .unwrap_or((published, published));
    // The published value is one of the repeats, whatever its rounding.
    let (low, high) = (
        low.min(high).min(published - noise),
        low.max(high).max(published + noise),
    );
    if row.ours.is_nan() {
        Some(published)
    } else {
        Some(row.ours.clamp(low, high))
    }
}

fn relative_error(ours: f64, reference: f64) -> Option<f64> {
    let difference = ours - reference;
    if difference == 0.0 {
        return Some(0.0);
    }
    let error = difference / reference.abs();
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
