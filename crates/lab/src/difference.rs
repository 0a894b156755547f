//! Differences between two series, paired by seed.
//!
//! Repeats of the same number have the same seed in both series, and in real time they run
//! in the same round, so that what a host does to a whole round cancels out: the interval
//! is that of the mean of the differences. In virtual time each series draws a stream of
//! its own from the seed, as each point does; pairs are then independent, and the interval
//! is as wide as that of two means that have nothing to do with each other.

use serde::Serialize;

use crate::experiment::{Difference as Spec, Experiment};
use crate::metrics::unit_of;
use crate::output::csv_field;
use crate::rows::{number, significant};
use crate::run::{JobMeasured, PointResult};
use crate::statistics::Statistics;

/// What is known of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The series is higher: the whole interval is above zero.
    Higher,
    /// The series is lower.
    Lower,
    /// The interval has zero in it.
    NotShown,
    /// There is one pair, which has no interval.
    OneRepeat,
    /// All pairs differ by the same, so that they tell nothing of how much others would.
    Alike,
    /// No pair has a value on both sides.
    Unmeasured,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NotShown => "no difference shown",
            Self::OneRepeat => "one repeat: no interval",
            Self::Alike => "no interval: all repeats are alike",
            Self::Unmeasured => "cannot be judged: not measured",
        }
    }

    fn of(statistics: &Statistics) -> Self {
        match statistics.interval() {
            None => Self::OneRepeat,
            Some((low, high)) if low >= high => Self::Alike,
            Some((low, _)) if low > 0.0 => Self::Higher,
            Some((_, high)) if high < 0.0 => Self::Lower,
            Some(_) => Self::NotShown,
        }
    }
}

/// A difference of one metric at one axis value.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The experiment.
    pub id: String,
    /// The series.
    pub series: String,
    /// What it is compared with.
    pub baseline: String,
    /// The job.
    pub job: String,
    /// The job of the baseline.
    pub baseline_job: String,
    /// Name of the axis, with those that are paired with it.
    pub axis: String,
    /// The axis value, as a number, and as it stands in the file.
    pub x: (f64, String),
    /// The axis value as tables show it, with values that are paired with it.
    pub at: String,
    /// The metric, and its unit.
    pub metric: (String, &'static str),
    /// Mean of the metric in the series, over the pairs.
    pub ours: f64,
    /// Mean of the metric in the baseline, over the pairs.
    pub of_baseline: f64,
    /// The differences of the pairs: series less baseline.
    pub statistics: Statistics,
    /// What is known of it.
    pub verdict: Verdict,
}

/// The columns of the CSV file and the keys in JSON.
pub const COLUMNS: [&str; 19] = [
    "experiment",
    "series",
    "baseline",
    "job",
    "baseline_job",
    "x",
    "x_label",
    "metric",
    "unit",
    "repeats",
    "series_mean",
    "baseline_mean",
    "difference",
    "ci_low",
    "ci_high",
    "sd",
    "relative",
    "relative_half_width",
    "verdict",
];

/// A difference as it is written; the order of the fields is that of [`COLUMNS`].
#[derive(Serialize)]
pub(crate) struct Written<'a> {
    experiment: &'a str,
    series: &'a str,
    baseline: &'a str,
    job: &'a str,
    baseline_job: &'a str,
    x: f64,
    x_label: &'a str,
    metric: &'a str,
    unit: &'a str,
    repeats: u32,
    series_mean: f64,
    baseline_mean: f64,
    difference: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    sd: Option<f64>,
    relative: Option<f64>,
    relative_half_width: Option<f64>,
    verdict: &'static str,
}

impl Difference {
    /// The difference relative to the baseline: 0.1 is 10 % more. `None` if the baseline is 0.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        self.over_baseline(self.statistics.mean)
    }

    /// Half the width of the interval, relative to the baseline.
    #[must_use]
    pub fn relative_half_width(&self) -> Option<f64> {
        self.over_baseline(self.statistics.half_width?)
    }

    fn over_baseline(&self, value: f64) -> Option<f64> {
        let share = value / self.of_baseline.abs();
        share.is_finite().then_some(share)
    }

    pub(crate) fn written(&self) -> Written<'_> {
        let interval = self.statistics.interval();
        Written {
            experiment: &self.id,
            series: &self.series,
            baseline: &self.baseline,
            job: &self.job,
            baseline_job: &self.baseline_job,
            x: significant(self.x.0),
            x_label: &self.x.1,
            metric: &self.metric.0,
            unit: self.metric.1,
            repeats: self.statistics.count,
            series_mean: significant(self.ours),
            baseline_mean: significant(self.of_baseline),
            difference: significant(self.statistics.mean),
            ci_low: interval.map(|(low, _)| significant(low)),
            ci_high: interval.map(|(_, high)| significant(high)),
            sd: self.statistics.sd.map(significant),
            relative: self.relative().map(significant),
            relative_half_width: self.relative_half_width().map(significant),
            verdict: self.verdict.words(),
        }
    }
}

/// The differences that an experiment asks for, of the points that were run.
#[must_use]
pub fn differences(experiment: &Experiment, results: &[PointResult]) -> Vec<Difference> {
    let mut all = Vec::new();
    for spec in &experiment.differences {
        let of_series = |name: &str| {
            let name = name.to_owned();
            results.iter().filter(move |result| result.series == name)
        };
        for result in of_series(&spec.series) {
            let other = of_series(&spec.baseline).find(|other| other.x == result.x);
            let jobs = other
                .and_then(|other| Some((job(result, &spec.job)?, job(other, &spec.baseline_job)?)));
            let Some(jobs) = jobs else { continue };
            let of_metric = |metric: &String| of_metric(experiment, spec, result, jobs, metric);
            all.extend(spec.metrics.iter().map(of_metric));
        }
    }
    all
}

fn job<'a>(result: &'a PointResult, name: &str) -> Option<&'a JobMeasured> {
    result.jobs.iter().find(|job| job.name == name)
}

fn of_metric(
    experiment: &Experiment,
    spec: &Spec,
    result: &PointResult,
    (job, other): (&JobMeasured, &JobMeasured),
    metric: &str,
) -> Difference {
    let pair = |repeat| {
        let (a, b) = (
            job.of_repeat(repeat, metric)?,
            other.of_repeat(repeat, metric)?,
        );
        Some((a, b))
    };
    let pairs: Vec<(f64, f64)> = (0..experiment.repeats).filter_map(pair).collect();
    let each: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let statistics = Statistics::of(&each);
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        Statistics::of(&values).map_or(f64::NAN, |of| of.mean)
    };
    Difference {
        id: experiment.id.clone(),
        series: spec.series.clone(),
        baseline: spec.baseline.clone(),
        job: spec.job.clone(),
        baseline_job: spec.baseline_job.clone(),
        axis: experiment.axis.heading(),
        x: (result.x.number, result.x.text.clone()),
        at: experiment.axis.shown(&result.x),
        metric: (metric.to_owned(), unit_of(metric)),
        ours: mean(|pair| pair.0),
        of_baseline: mean(|pair| pair.1),
        verdict: statistics.as_ref().map_or(Verdict::Unmeasured, Verdict::of),
        statistics: statistics.unwrap_or(Statistics::NOTHING),
    }
}

/// Differences as comma-separated values, empty where a value is unknown.
#[must_use]
pub fn to_csv(differences: &[Difference]) -> String {
    let mut out = COLUMNS.join(",");
    out.push('\n');
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    for of in differences.iter().map(Difference::written) {
        let fields: [String; COLUMNS.len()] = [
            of.experiment.to_owned(),
            of.series.to_owned(),
            of.baseline.to_owned(),
            of.job.to_owned(),
            of.baseline_job.to_owned(),
            number(of.x),
            of.x_label.to_owned(),
            of.metric.to_owned(),
            of.unit.to_owned(),
            of.repeats.to_string(),
            number(of.series_mean),
            number(of.baseline_mean),
            number(of.difference),
            optional(of.ci_low),
            optional(of.ci_high),
            optional(of.sd),
            optional(of.relative),
            optional(of.relative_half_width),
            of.verdict.to_owned(),
        ];
        out.push_str(&fields.map(|field| csv_field(&field)).join(","));
        out.push('\n');
    }
    out
}
