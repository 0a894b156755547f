//! What the rows of a real drive come to together: errors by figure and by
//! what was measured, whether the bars hold, and which rows are far off.

use serde::{Serialize, Serializer};

use super::summary::{median, p90};
use super::{Bound, Kind, KnownGap, Misfits, Row, Scope, UNIT_M, significant};

/// The id of the bars in the list of known gaps.
const BARS_ID: &str = "D";

/// What a row measured, as far as the bars are about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Operations or bytes per second.
    Throughput,
    /// Mean latency.
    Mean,
    /// M^Inter, the interference metric.
    Interference,
    /// A percentile of latency.
    Percentile,
    /// Something else: a share, a count.
    Other,
}

/// Quantities that share a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Throughput, mean latency, M^Inter, and whatever is no percentile.
    Values,
    /// Percentiles of latency.
    Percentiles,
}

impl Group {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Values, Self::Percentiles];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Values => "throughput, mean latency and M together",
            Self::Percentiles => "percentiles of latency",
        }
    }
}

impl Quantity {
    /// All of them, in the order of output.
    pub const ALL: [Self; 5] = [
        Self::Throughput,
        Self::Mean,
        Self::Interference,
        Self::Other,
        Self::Percentile,
    ];

    /// The quantity of a metric with its unit.
    #[must_use]
    pub fn of(metric: &str, unit: &str) -> Self {
        if unit == UNIT_M {
            return Self::Interference;
        }
        if crate::metrics::percentile_of(metric).is_some() {
            return Self::Percentile;
        }
        match metric {
            "kiops" | "kiops_by_count" | "ops_s" | "mib_s" => Self::Throughput,
            "lat_mean_us" | "first_write_mean_us" => Self::Mean,
            _ => Self::Other,
        }
    }

    /// Which bar it counts for.
    #[must_use]
    pub const fn group(self) -> Group {
        match self {
            Self::Percentile => Group::Percentiles,
            Self::Throughput | Self::Mean | Self::Interference | Self::Other => Group::Values,
        }
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Mean => "mean latency",
            Self::Interference => "M",
            Self::Percentile => "percentiles",
            Self::Other => "shares and counts",
        }
    }
}

impl Row {
    /// What it measured.
    #[must_use]
    pub fn quantity(&self) -> Quantity {
        Quantity::of(&self.metric, &self.unit)
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

    /// Whether they miss the bars of `group`.
    fn miss(&self, group: Group) -> bool {
        let (most_median, most_p90) = group.bars();
        self.median.is_some_and(|median| median > most_median)
            || self.p90.is_some_and(|p90| p90 > most_p90)
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
    /// Of throughput.
    pub throughput: Errors,
    /// Of mean latency.
    pub mean_latency: Errors,
    /// Of M^Inter.
    pub m_inter: Errors,
    /// Of what is none of these, and no percentile: shares, counts.
    pub other: Errors,
    /// Of [`Group::Values`].
    pub values: Errors,
    /// Of [`Group::Percentiles`].
    pub percentiles: Errors,
}

impl FigureErrors {
    fn of(id: &str, rows: &[&Row]) -> Self {
        let of = |wanted: &dyn Fn(Quantity) -> bool| {
            Errors::of(rows.iter().copied().filter(|row| wanted(row.quantity())))
        };
        Self {
            id: id.to_owned(),
            throughput: of(&|quantity| quantity == Quantity::Throughput),
            mean_latency: of(&|quantity| quantity == Quantity::Mean),
            m_inter: of(&|quantity| quantity == Quantity::Interference),
            other: of(&|quantity| quantity == Quantity::Other),
            values: of(&|quantity| quantity.group() == Group::Values),
            percentiles: of(&|quantity| quantity.group() == Group::Percentiles),
        }
    }

    /// The errors of the rows that a bar is about.
    #[must_use]
    pub const fn group(&self, group: Group) -> &Errors {
        match group {
            Group::Values => &self.values,
            Group::Percentiles => &self.percentiles,
        }
    }
}

/// A row that is further off than the 90th percentile of its group may be.
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

/// A bar over all rows of a group, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarResult {
    /// What is bounded, in words: the sentence of a known gap.
    pub says: String,
    /// Its value.
    pub value: f64,
    /// Its greatest allowed value.
    pub most: f64,
    /// Whether it holds.
    pub holds: bool,
    /// What is known of it if it does not.
    pub gap: Option<KnownGap>,
}

impl BarResult {
    fn of(says: String, value: f64, most: f64, scope: Scope, misfits: &Misfits) -> Self {
        let bound = Bound::AtMost(most);
        let holds = bound.holds(value, None);
        let listed = misfits.gap(BARS_ID, &says).filter(|_| !holds);
        Self {
            gap: listed.and_then(|gap| gap.of(scope, bound, value, None)),
            says,
            value,
            most,
            holds,
        }
    }

    /// Whether it holds, or is a known gap that did not get worse.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.holds || self.gap.as_ref().is_some_and(|gap| !gap.is_worse)
    }
}

/// The rows of kind D together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveSummary {
    /// By figure, in order of first appearance.
    pub figures: Vec<FigureErrors>,
    /// Of all figures.
    pub all: FigureErrors,
    /// The bars, of each group the median and the 90th percentile.
    pub bars: Vec<BarResult>,
    /// Whether all figures were run, so that the bars judge.
    pub is_whole: bool,
    /// The figures that miss the bars of a group by themselves, of each group.
    #[serde(serialize_with = "by_group")]
    pub figures_that_miss: Vec<(Group, Vec<String>)>,
    /// Rows beyond the 90th percentile of their group, the furthest first.
    pub beyond: Vec<Beyond>,
}

/// Names by group, as an object.
fn by_group<S: Serializer>(
    of_groups: &[(Group, Vec<String>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(of_groups.iter().map(|(group, names)| (group, names)))
}

impl DriveSummary {
    /// Whether the bars hold or are known not to. Of a part of the figures they
    /// say nothing: they are about a drive and not about a figure.
    #[must_use]
    pub fn pass(&self) -> bool {
        !self.is_whole || self.bars.iter().all(BarResult::is_known)
    }

    /// Summarises the judged rows of kind D in `rows`; none if there are none
    /// that count.
    #[must_use]
    pub fn of(rows: &[Row], scope: Scope, misfits: &Misfits) -> Option<Self> {
        let drive = |row: &&Row| row.kind == Kind::Drive && row.counts();
        let rows: Vec<&Row> = rows.iter().filter(drive).collect();
        if rows.is_empty() {
            return None;
        }
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
        let figures: Vec<FigureErrors> = ids.iter().map(figure).collect();
        let all = FigureErrors::of("all", &rows);
        let miss = |group: Group| {
            let alone = figures
                .iter()
                .filter(|figure| figure.group(group).miss(group));
            (group, alone.map(|figure| figure.id.clone()).collect())
        };
        Some(Self {
            bars: bars(&all, scope, misfits),
            is_whole: scope.whole,
            figures_that_miss: Group::ALL.map(miss).into(),
            beyond: beyond(&rows),
            figures,
            all,
        })
    }
}

/// The bars over all rows.
fn bars(all: &FigureErrors, scope: Scope, misfits: &Misfits) -> Vec<BarResult> {
    let mut bars = Vec::new();
    for group in Group::ALL {
        let errors = all.group(group);
        let (most_median, most_p90) = group.bars();
        for (what, value, most) in [
            ("median", errors.median, most_median),
            ("P90", errors.p90, most_p90),
        ] {
            let Some(value) = value else { continue };
            let says = format!("{}: {what} error at most {} %", group.name(), most * 100.0);
            bars.push(BarResult::of(says, value, most, scope, misfits));
        }
    }
    bars
}

/// Whether the error of a row of a real drive is greater than that of nine of
/// ten of its group may be.
pub(super) fn is_far(row: &Row) -> bool {
    let most = row.quantity().group().bars().1;
    row.kind == Kind::Drive && row.counts() && magnitude(row).is_some_and(|error| error > most)
}

fn beyond(rows: &[&Row]) -> Vec<Beyond> {
    let far = rows.iter().filter(|row| is_far(row)).filter_map(|row| {
        Some(Beyond {
            id: row.id.clone(),
            series: row.series.clone(),
            x: row.x.as_ref().map(|x| x.value),
            metric: row.metric.clone(),
            rel_error: row.rel_error?,
            cause: row.misfit.clone(),
        })
    });
    let mut beyond: Vec<Beyond> = far.collect();
    // Stable: rows with the same error stay in their order.
    beyond.sort_by(|a, b| b.rel_error.abs().total_cmp(&a.rel_error.abs()));
    beyond
}
