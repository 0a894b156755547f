//! The interference model.

use pyo3::prelude::*;
use zonelab_lab::metrics::{CurvePoint, interference};

use crate::errors;

/// M^Inter, the interference of one operation on another (ConfZNS++, section 2.3): 0 is none.
///
/// `alone` and `beside` are points `(throughput, latency)` of the operation alone and beside
/// the other, at the same concurrency levels. `alpha` weighs throughput, `1 - alpha` latency.
#[pyfunction]
#[pyo3(signature = (alone, beside, *, alpha = 0.5))]
pub(crate) fn m_inter(
    alone: Vec<CurvePoint>,
    beside: Vec<CurvePoint>,
    alpha: f64,
) -> PyResult<f64> {
    if !(0.0..=1.0).contains(&alpha) {
        return Err(errors::usage(format!("alpha = {alpha}: 0 to 1")));
    }
    if alone.len() != beside.len() {
        return Err(errors::usage(format!(
            "{} points alone and {} beside: each level has one of both",
            alone.len(),
            beside.len()
        )));
    }
    let is_positive = |(throughput, latency): &CurvePoint| *throughput > 0.0 && *latency > 0.0;
    if !alone.iter().all(is_positive) {
        return Err(errors::usage(
            "throughput and latency alone are more than 0",
        ));
    }
    let points: Vec<_> = alone.into_iter().zip(beside).collect();
    interference(&points, alpha).ok_or_else(|| errors::usage("give one point at least"))
}
