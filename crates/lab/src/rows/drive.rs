//! What the rows of a real drive come to together: errors by figure and by
//! what was measured, whether the bars hold, and which rows are far off.

use serde::Serialize;

use super::summary::{median, p90};
use super::{Kind, Row, significant};

/// What a row measured, as far as the bars are about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Operations or bytes per second.
    Throughput,
    /// Mean latency.
    Mean,
    /// The 95th percentile of latency.
    P95,
}

impl Quantity {
    /// All of them, in the order of output.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Mean, Self::P95];

    /// The quantity of a metric; `None`: another one.
    #[must_use]
    pub fn of(metric: &str) -> Option<Self> {
        Some(match metric {
            "kiops" | "kiops_by_count" | "ops_s" | "mib_s" => Self::Throughput,
            "lat_mean_us" | "first_write_mean_us" => Self::Mean,
            "lat_p95_us" => Self::P95,
            _ => return None,
        })
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Mean => "mean latency",
            Self::P95 => "P95 latency",
        }
    }
}

/// Relative errors of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Rows that have an error.
    pub rows: usize,
    /// Median of their magnitudes; none without rows.
    pub median: Option<f64>,
    /// 90th percentile of the same, see [`super::Stats::p90_error`].
    pub p90: Option<f64>,
}

impl Errors {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut errors: Vec<f64> = rows.filter_map(magnitude).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            rows: errors.len(),
            median: median(&errors).map(significant),
            p90: p90(&errors).map(significant),
        }
    }
}

fn magnitude(row: &Row) -> Option<f64> {
    row.rel_error
        .map(f64::abs)
        .filter(|error| error.is_finite())
}

/// Errors of a figure, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureErrors {
    /// Its id; "all" for all of them.
    pub id: String,
    /// Measured points: a point with throughput, mean and P95 is one.
    pub points: usize,
    /// Of throughput.
    pub throughput: Errors,
    /// Of mean latency.
    pub mean_latency: Errors,
    /// Of P95 latency.
    pub p95_latency: Errors,
    /// Of all rows, those of no quantity included.
    pub all: Errors,
}

impl FigureErrors {
    fn of(id: &str, rows: &[&Row]) -> Self {
        let of = |quantity| {
            let is_of = |row: &&&Row| Quantity::of(&row.metric) == Some(quantity);
            Errors::of(rows.iter().filter(is_of).copied())
        };
        let mut points: Vec<_> = rows
            .iter()
            .filter(|row| magnitude(row).is_some())
            .map(|row| {
                (
                    &row.id,
                    &row.series,
                    row.x.as_ref().map(|x| x.value.to_bits()),
                )
            })
            .collect();
        points.sort_unstable();
        points.dedup();
        Self {
            id: id.to_owned(),
            points: points.len(),
            throughput: of(Quantity::Throughput),
            mean_latency: of(Quantity::Mean),
            p95_latency: of(Quantity::P95),
            all: Errors::of(rows.iter().copied()),
        }
    }

    /// The errors of each quantity, in the order of [`Quantity::ALL`].
    #[must_use]
    pub const fn by_quantity(&self) -> [&Errors; 3] {
        [&self.throughput, &self.mean_latency, &self.p95_latency]
    }
}

/// A row that is further off than [`DriveSummary::P90_BAR`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beyond {
    /// Figure.
    pub id: String,
    /// Curve.
    pub series: String,
    /// Point of the curve.
    pub x: Option<f64>,
    /// What was measured.
    pub metric: String,
    /// Its signed relative error.
    pub rel_error: f64,
    /// Why, if `experiments/misfits.toml` says so.
    pub cause: Option<String>,
}

/// The rows of kind D together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveSummary {
    /// By figure, in order of first appearance.
    pub figures: Vec<FigureErrors>,
    /// Of all figures.
    pub all: FigureErrors,
    /// Whether the median of all is at most [`DriveSummary::MEDIAN_BAR`].
    pub median_holds: bool,
    /// Whether the 90th percentile of all is at most [`DriveSummary::P90_BAR`].
    pub p90_holds: bool,
    /// Whether both hold of the rows that no misfit explains.
    #[serde(skip)]
    pub unexplained_hold: bool,
    /// Rows beyond [`DriveSummary::P90_BAR`], the furthest first.
    pub beyond: Vec<Beyond>,
}

impl DriveSummary {
    /// Greatest median magnitude of the relative error.
    pub const MEDIAN_BAR: f64 = 0.05;
    /// Greatest 90th percentile of the same.
    pub const P90_BAR: f64 = 0.15;

    /// Whether the rows pass together: both bars hold of all of them, explained
    /// or not. Of a single figure it is enough that they hold of the rows that
    /// no misfit explains: the bars are about a drive and not about a figure.
    #[must_use]
    pub fn pass(&self) -> bool {
        let one_figure = self.figures.len() == 1;
        (self.median_holds && self.p90_holds) || (one_figure && self.unexplained_hold)
    }

    /// Summarises the judged rows of kind D in `rows`; none if there are none
    /// with an error.
    #[must_use]
    pub fn of(rows: &[Row]) -> Option<Self> {
        let drive = |row: &&Row| row.kind == Kind::Drive && magnitude(row).is_some();
        let rows: Vec<&Row> = rows.iter().filter(drive).collect();
        let mut ids: Vec<&str> = Vec::new();
        for row in &rows {
            if !ids.contains(&row.id.as_str()) {
                ids.push(&row.id);
            }
        }
        let figure = |id: &&str| {
            let mine: Vec<&Row> = rows.iter().copied().filter(|row| row.id == **id).collect();
            FigureErrors::of(id, &mine)
        };
        let all = FigureErrors::of("all", &rows);
        let (median, p90) = (all.all.median?, all.all.p90?);
        let unexplained = rows.iter().filter(|row| row.misfit.is_none()).copied();
        let unexplained = Errors::of(unexplained);
        let within = |error: Option<f64>, bar: f64| error.is_none_or(|error| error <= bar);
        Some(Self {
            figures: ids.iter().map(figure).collect(),
            median_holds: median <= Self::MEDIAN_BAR,
            p90_holds: p90 <= Self::P90_BAR,
            unexplained_hold: within(unexplained.median, Self::MEDIAN_BAR)
                && within(unexplained.p90, Self::P90_BAR),
            beyond: beyond(&rows),
            all,
        })
    }
}

fn beyond(rows: &[&Row]) -> Vec<Beyond> {
    let far = |row: &&Row| {
        let rel_error = row.rel_error?;
        (rel_error.abs() > DriveSummary::P90_BAR).then(|| Beyond {
            id: row.id.clone(),
            series: row.series.clone(),
            x: row.x.as_ref().map(|x| x.value),
            metric: row.metric.clone(),
            rel_error,
            cause: row.misfit.clone(),
        })
    };
    let mut beyond: Vec<Beyond> = rows.iter().filter_map(far).collect();
    // Stable: rows with the same error stay in their order.
    beyond.sort_by(|a, b| b.rel_error.abs().total_cmp(&a.rel_error.abs()));
    beyond
}
