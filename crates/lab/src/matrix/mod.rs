//! The matrix of interference: every operation beside every other, and over
//! what they fought.
//!
//! A cell is M^Inter of a foreground operation beside a background one
//! (ConfZNS++, section 2.3), with each concurrency level that went into it and
//! an [`Explanation`]: what the foreground waited for longer than when it was
//! alone, from a short recorded run of both.
//!
//! * `explain`: runs with a recorder, and the parts of a latency.
//! * `show`: the matrix as a table, JSON and CSV, and as a heat map.

mod explain;
mod show;

use serde::Serialize;

use crate::experiment::{Experiment, MatrixSpec};
use crate::metrics::{CurvePoint, interference};
use crate::rows::significant;
use crate::run::PointResult;

pub use explain::{Explanation, Grown, explain};

/// A matrix of interference, filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// The experiment.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Operations that are measured: the rows.
    pub foreground: Vec<String>,
    /// Operations that disturb: the columns.
    pub background: Vec<String>,
    /// Weight of throughput; that of latency is `beta`.
    pub alpha: f64,
    /// Weight of latency.
    pub beta: f64,
    /// Row by row; cells that the experiment leaves out are absent.
    pub cells: Vec<Cell>,
}

/// One foreground operation beside one background operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What is measured.
    pub foreground: String,
    /// What disturbs.
    pub background: String,
    /// M^Inter; `None`: no level was run both alone and beside it.
    pub m_inter: Option<f64>,
    /// The published value.
    pub published: Option<f64>,
    /// The levels that it is the mean of.
    pub levels: Vec<Level>,
    /// Over what the two fought.
    pub explanation: Option<Explanation>,
}

/// One concurrency level of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// The axis value.
    pub x: String,
    /// Throughput alone, in thousands of operations per second.
    pub alone_kiops: f64,
    /// P95 latency alone, in microseconds.
    pub alone_p95_us: f64,
    /// Throughput beside the background operation.
    pub beside_kiops: f64,
    /// P95 latency beside it.
    pub beside_p95_us: f64,
    /// Weighted distance of the two points.
    pub distance: f64,
}

impl Matrix {
    /// The matrix of an experiment that has one, from what its points measured.
    #[must_use]
    pub fn of(
        experiment: &Experiment,
        results: &[PointResult],
        explanations: &[Explanation],
    ) -> Option<Self> {
        let spec = experiment.matrix.as_ref()?;
        let cell = |foreground: &String, background: &String| {
            let levels = levels(experiment, spec, results, foreground, background);
            let series = MatrixSpec::cell(foreground, background);
            let pair = experiment.interference.iter().find(|p| p.series == series);
            let distances: Vec<f64> = levels.iter().map(|level| level.distance).collect();
            let mean = distances.iter().sum::<f64>() / distances.len() as f64;
            Cell {
                foreground: foreground.clone(),
                background: background.clone(),
                m_inter: (!levels.is_empty()).then(|| significant(mean)),
                published: pair.and_then(|pair| pair.published),
                levels,
                explanation: explanations.iter().find(|of| of.series == series).cloned(),
            }
        };
        let pairs = spec
            .foreground
            .iter()
            .flat_map(|front| spec.background.iter().map(move |back| (front, back)));
        Some(Self {
            id: experiment.id.clone(),
            title: experiment.title.clone(),
            foreground: spec.foreground.clone(),
            background: spec.background.clone(),
            alpha: spec.alpha,
            beta: significant(1.0 - spec.alpha),
            cells: pairs
                .filter(|(front, back)| !spec.skips(front, back))
                .map(|(front, back)| cell(front, back))
                .collect(),
        })
    }

    /// The cell of a pair, unless the experiment leaves it out.
    #[must_use]
    pub fn cell(&self, foreground: &str, background: &str) -> Option<&Cell> {
        let is_it = |cell: &&Cell| cell.foreground == foreground && cell.background == background;
        self.cells.iter().find(is_it)
    }
}

/// The levels at which a foreground operation was run alone and in a cell.
fn levels(
    experiment: &Experiment,
    spec: &MatrixSpec,
    results: &[PointResult],
    foreground: &str,
    background: &str,
) -> Vec<Level> {
    let point = |series: &str, x: &str| -> Option<CurvePoint> {
        let result = results
            .iter()
            .find(|of| of.series == series && of.x.text == x)?;
        let job = result.jobs.iter().find(|job| job.name == foreground)?;
        Some((
            job.metrics.get(spec.throughput)?,
            job.metrics.get("lat_p95_us")?,
        ))
    };
    let (alone, cell) = (
        MatrixSpec::alone(foreground),
        MatrixSpec::cell(foreground, background),
    );
    let level = |x: &String| {
        let (isolated, interfered) = (point(&alone, x)?, point(&cell, x)?);
        let distance = interference(&[(isolated, interfered)], spec.alpha)?;
        Some(Level {
            x: x.clone(),
            alone_kiops: significant(isolated.0),
            alone_p95_us: significant(isolated.1),
            beside_kiops: significant(interfered.0),
            beside_p95_us: significant(interfered.1),
            distance: significant(distance),
        })
    };
    let values = experiment.axis.values.iter().map(|x| &x.text);
    values.filter_map(level).collect()
}
