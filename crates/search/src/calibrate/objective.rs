//! How far a candidate is from what was measured, as one number.
//!
//! Of each measurement the error is the logarithm of ours over the measured
//! value, from the nearest of the authors' repeats. Its loss is quadratic up to
//! about [`DELTA`] and linear beyond, so that a mechanism that the profile does
//! not have cannot bend all others. A value that repeats differ about weighs
//! less, and each experiment weighs the same in all.

use super::data::Data;
use super::evaluate::Ours;

/// Error at which the loss turns from quadratic to linear.
const DELTA: f64 = 0.10;
/// Half the range of repeats, relative to the value, that halves a weight.
const SPREAD: f64 = 0.05;
/// Error of what a candidate did not measure at all: ten times too much.
const NOTHING: f64 = std::f64::consts::LN_10;

/// The measurements of some cases, with their weights.
#[derive(Clone, Debug)]
pub(super) struct Objective {
    /// Position in [`Data::measurements`], and weight; weights add up to 1.
    weights: Vec<(usize, f64)>,
}

impl Objective {
    /// The objective over the measurements of these cases.
    pub(super) fn new(data: &Data, cases: &[usize]) -> Self {
        let mut weights = Vec::new();
        for case in cases {
            for index in data.cases[*case].measurements.clone() {
                weights.push((index, repeat_weight(data.measurements[index].spread)));
            }
        }
        let group_of = |index: usize| data.measurements[index].group;
        let mut totals = vec![0.0; data.groups.len()];
        for (index, weight) in &weights {
            totals[group_of(*index)] += weight;
        }
        let groups = totals.iter().filter(|total| **total > 0.0).count() as f64;
        for (index, weight) in &mut weights {
            *weight /= totals[group_of(*index)] * groups;
        }
        Self { weights }
    }

    /// Weights of the measurements, in the order of [`Self::errors`].
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> {
        self.weights.iter().map(|(_, weight)| *weight)
    }

    /// Positions of the measurements, in the order of [`Self::errors`].
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.weights.iter().map(|(index, _)| *index)
    }

    /// The error of each measurement.
    pub(super) fn errors(&self, data: &Data, ours: &Ours) -> Vec<f64> {
        let error = |index: usize| {
            let measured = &data.measurements[index];
            error(ours[index], measured.value, measured.spread)
        };
        self.positions().map(error).collect()
    }

    /// The loss of errors: about the weighted mean of their squares if they are small.
    pub(super) fn loss(&self, errors: &[f64]) -> f64 {
        let losses = self.weights().zip(errors);
        losses.map(|(weight, error)| weight * loss(*error)).sum()
    }

    /// The loss of a candidate that is no drive at all: worse than any that is.
    pub(super) fn worst() -> f64 {
        loss(2.0 * NOTHING)
    }
}

/// How much weight an error has in a quadratic model of the loss around it.
pub(super) fn curvature(error: f64) -> f64 {
    let ratio = error / DELTA;
    1.0 / (1.0 + ratio * ratio).sqrt()
}

fn loss(error: f64) -> f64 {
    let ratio = error / DELTA;
    2.0 * DELTA * DELTA * ((1.0 + ratio * ratio).sqrt() - 1.0)
}

fn repeat_weight(spread: Option<(f64, f64)>) -> f64 {
    let half = spread.map_or(0.0, |(low, high)| libm::log(high / low) / 2.0);
    let ratio = half / SPREAD;
    1.0 / (1.0 + ratio * ratio)
}

/// Logarithm of ours over the nearest of the repeats; zero within their range.
pub(super) fn error(ours: Option<f64>, value: f64, spread: Option<(f64, f64)>) -> f64 {
    let Some(ours) = ours.filter(|ours| *ours > 0.0) else {
        return NOTHING;
    };
    let (low, high) = spread.unwrap_or((value, value));
    let nearest = ours.clamp(low, high);
    libm::log(ours / nearest).clamp(-NOTHING, NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_from_the_nearest_repeat() {
        let is = |error: f64, expected: f64| (error - expected).abs() < 1e-12;
        assert!(is(error(Some(1.05), 1.0, Some((0.9, 1.1))), 0.0));
        assert!((error(Some(1.21), 1.0, Some((0.9, 1.1))) - libm::log(1.1)).abs() < 1e-12);
        assert!((error(Some(0.5), 1.0, None) + libm::log(2.0)).abs() < 1e-12);
        assert!(is(error(None, 1.0, None), NOTHING));
        assert!(is(error(Some(0.0), 1.0, None), NOTHING));
        assert!(is(error(Some(1e300), 1.0, None), NOTHING));
    }

    #[test]
    fn large_errors_count_linearly_and_the_worst_is_worse() {
        assert!((loss(0.001) - 1e-6).abs() < 1e-9);
        let (one, two) = (loss(1.0), loss(2.0));
        assert!(two / one < 2.2, "{one} {two}");
        assert!(Objective::worst() > loss(NOTHING));
    }

    #[test]
    fn what_repeats_differ_about_weighs_less() {
        assert!((repeat_weight(None) - 1.0).abs() < 1e-12);
        let half = repeat_weight(Some((0.95, 1.05)));
        assert!((half - 0.5).abs() < 0.01, "{half}");
    }
}
