//! What makes one setting better than another.

use serde::{Deserialize, Serialize};
use zonelab_config::nearest;

use super::knob::Wrong;
use crate::experiment::{Experiment, Interference};
use crate::metrics::{self, CurvePoint, unit_of};
use crate::rows::{UNIT_M, significant};

/// Name of M^Inter among the metrics of objectives.
pub const METRIC_M: &str = "m_inter";

/// Which way is better.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Smaller.
    Minimize,
    /// Larger.
    Maximize,
}

impl Goal {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Minimize, Self::Maximize];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minimize => "minimize",
            Self::Maximize => "maximize",
        }
    }

    /// A value as a cost: smaller is better.
    #[must_use]
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Self::Minimize => value,
            Self::Maximize => -value,
        }
    }
}

/// An objective as it is asked for. What is not said is found if there is only
/// one choice.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ObjectiveSpec {
    /// Which way is better.
    pub goal: Goal,
    /// Of this series.
    pub series: Option<String>,
    /// Of this job.
    pub job: Option<String>,
    /// A metric of jobs, or [`METRIC_M`].
    pub metric: String,
    /// Axis values that the mean is over; empty: all.
    pub x: Vec<String>,
}

impl ObjectiveSpec {
    /// Reads `METRIC`, `JOB/METRIC` or `SERIES/JOB/METRIC`, each with `@X,X` if
    /// the mean is not over all axis values.
    ///
    /// # Errors
    /// There is no such metric.
    pub fn parse(goal: Goal, text: &str) -> Result<Self, Wrong> {
        let (names, last) = match text.rsplit_once('/') {
            Some((names, last)) => (Some(names), last),
            None => (None, text),
        };
        let (metric, x) = last.split_once('@').unwrap_or((last, ""));
        let known = || {
            metrics::NAMES
                .iter()
                .map(|(name, _)| *name)
                .chain([METRIC_M])
        };
        if !known().any(|name| name == metric) {
            let valid = match nearest(metric, known()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("metrics are {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(Wrong::new(
                format!("there is no metric \"{metric}\""),
                valid,
            ));
        }
        // Names of series are freer than those of jobs.
        let (series, job) = match names.map(|names| names.rsplit_once('/').ok_or(names)) {
            None => (None, None),
            Some(Ok((series, job))) => (Some(series), Some(job)),
            Some(Err(job)) => (None, Some(job)),
        };
        let values = x.split(',').map(str::trim).filter(|x| !x.is_empty());
        Ok(Self {
            goal,
            series: series.map(str::to_owned),
            job: job.map(str::to_owned),
            metric: metric.to_owned(),
            x: values.map(str::to_owned).collect(),
        })
    }
}

/// An objective of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Which way is better.
    pub goal: Goal,
    /// The series.
    pub series: String,
    /// The job.
    pub job: String,
    /// The metric.
    pub metric: String,
    /// Axis values that the mean is over.
    pub x: Vec<String>,
    /// Whether these are not all at which the series runs.
    is_part: bool,
    /// What M^Inter compares with.
    pair: Option<Interference>,
}

/// Where in an objective something is wrong: its key, and what.
pub type WrongKey = (&'static str, Wrong);

impl Objective {
    /// Finds what an objective asks for.
    ///
    /// # Errors
    /// It is not in the experiment, or it could be several things.
    pub fn resolve(experiment: &Experiment, spec: &ObjectiveSpec) -> Result<Self, WrongKey> {
        let (series, job, pair) = if spec.metric == METRIC_M {
            let pair = interference(experiment, spec)?;
            (pair.series.clone(), pair.job.clone(), Some(pair.clone()))
        } else {
            let (series, job) = measured(experiment, spec)?;
            (series, job, None)
        };
        let runs = |series: &str, x: &String| {
            let spec = experiment.series.iter().find(|spec| spec.name == series);
            spec.is_some_and(|spec| spec.x.is_empty() || spec.x.contains(x))
        };
        let isolated = pair.as_ref().map(|pair| pair.isolated.as_str());
        let axis = experiment.axis.values.iter().map(|x| x.text.clone());
        let all: Vec<String> = axis
            .filter(|x| runs(&series, x) && isolated.is_none_or(|isolated| runs(isolated, x)))
            .collect();
        if let Some(x) = spec.x.iter().find(|x| !all.contains(x)) {
            let what = format!("the series \"{series}\" does not run at {x}");
            return Err((
                "x",
                Wrong::new(what, format!("it runs at {}", all.join(", "))),
            ));
        }
        let is_part = !spec.x.is_empty() && spec.x.len() < all.len();
        Ok(Self {
            goal: spec.goal,
            series,
            job,
            metric: spec.metric.clone(),
            x: if is_part { spec.x.clone() } else { all },
            is_part,
            pair,
        })
    }

    /// `SERIES/JOB/METRIC`, as it is asked for.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            series,
            job,
            metric,
            ..
        } = self;
        let at = if self.is_part {
            format!("@{}", self.x.join(","))
        } else {
            String::new()
        };
        format!("{series}/{job}/{metric}{at}")
    }

    /// The unit of its values.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        if self.pair.is_some() {
            UNIT_M
        } else {
            unit_of(&self.metric)
        }
    }

    /// The series that it needs.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let isolated = self.pair.as_ref().map(|pair| pair.isolated.as_str());
        std::iter::once(self.series.as_str()).chain(isolated)
    }

    /// Its value, to six digits; `None` if a point that it needs measured
    /// nothing: a mean over the rest would be one of something else.
    ///
    /// `at` is asked for what was measured: of a series, at an axis value, of a job, by the name
    /// of the metric.
    pub fn value(
        &self,
        at: impl Fn(&str, &str, &str, &str) -> Option<f64>,
        weights: Option<(f64, f64)>,
    ) -> Option<f64> {
        let value = match &self.pair {
            None => {
                let values = self
                    .x
                    .iter()
                    .map(|x| at(&self.series, x, &self.job, &self.metric));
                let values: Vec<f64> = values.collect::<Option<_>>()?;
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            }
            Some(pair) => {
                let curve = |series: &str, x: &str, job: &str| -> Option<CurvePoint> {
                    Some((
                        at(series, x, job, &pair.throughput)?,
                        at(series, x, job, "lat_p95_us")?,
                    ))
                };
                let levels = self.x.iter().map(|x| {
                    let isolated = curve(&pair.isolated, x, &pair.isolated_job)?;
                    Some((isolated, curve(&pair.series, x, &pair.job)?))
                });
                let levels: Vec<_> = levels.collect::<Option<_>>()?;
                let alpha = weights.map_or(pair.alpha, |(alpha, _)| alpha);
                metrics::interference(&levels, alpha)
            }
        };
        value.filter(|value| value.is_finite()).map(significant)
    }
}

/// The one pair of series that M^Inter is asked of.
fn interference<'e>(
    experiment: &'e Experiment,
    spec: &ObjectiveSpec,
) -> Result<&'e Interference, WrongKey> {
    let is_asked = |pair: &&Interference| {
        spec.series.as_ref().is_none_or(|name| *name == pair.series)
            && spec.job.as_ref().is_none_or(|name| *name == pair.job)
    };
    let found: Vec<&Interference> = experiment.interference.iter().filter(is_asked).collect();
    let all = experiment.interference.iter();
    let names: Vec<String> = all
        .map(|pair| format!("{}/{}/{METRIC_M}", pair.series, pair.job))
        .collect();
    if names.is_empty() {
        return Err((
            "metric",
            Wrong::new(
                "the experiment has no interference",
                "add an [[interference]] with `series`, `isolated` and `job`",
            ),
        ));
    }
    only(&found, spec, &names).copied()
}

/// The one job of a series that a metric is asked of.
fn measured(experiment: &Experiment, spec: &ObjectiveSpec) -> Result<(String, String), WrongKey> {
    let pairs = experiment.series.iter().flat_map(|series| {
        let jobs = series.phases.iter().flatten();
        jobs.map(|job| (series.name.clone(), job.clone()))
    });
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.dedup();
    let metric = &spec.metric;
    let names: Vec<String> = pairs
        .iter()
        .map(|(series, job)| format!("{series}/{job}/{metric}"))
        .collect();
    pairs.retain(|(series, job)| {
        spec.series.as_ref().is_none_or(|name| name == series)
            && spec.job.as_ref().is_none_or(|name| name == job)
    });
    only(&pairs, spec, &names).cloned()
}

/// The only element of `found`.
fn only<'f, T>(found: &'f [T], spec: &ObjectiveSpec, names: &[String]) -> Result<&'f T, WrongKey> {
    let key = if spec.series.is_some() {
        "series"
    } else {
        "job"
    };
    match found {
        [only] => Ok(only),
        [] => {
            let asked = [&spec.series, &spec.job].into_iter().flatten();
            let asked: Vec<&str> = asked.map(String::as_str).collect();
            let what = format!("{} is not measured as \"{}\"", spec.metric, asked.join("/"));
            Err((key, Wrong::new(what, choices(names))))
        }
        _ => {
            let what = format!("{} could be that of several jobs", spec.metric);
            Err(("metric", Wrong::new(what, choices(names))))
        }
    }
}

fn choices(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = names.len().saturating_sub(SHOWN);
    let mut text = format!("there are: {}", names[..names.len() - more].join(", "));
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Weights of throughput and latency, if they are such (ConfZNS++, section 2.3).
///
/// # Errors
/// They are negative, or do not add up to 1.
pub fn weights((alpha, beta): (f64, f64)) -> Result<(f64, f64), Wrong> {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    if is_share(alpha) && is_share(beta) && (alpha + beta - 1.0).abs() < 1e-9 {
        Ok((alpha, beta))
    } else {
        Err(Wrong::new(
            format!("weights {alpha} and {beta} do not add up to 1"),
            "write for example 0.5,0.5",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_from_the_right() {
        let parse = |text: &str| ObjectiveSpec::parse(Goal::Maximize, text).unwrap();
        let full = parse("a/b/reset/ops_s@4,8");
        assert_eq!(full.series.as_deref(), Some("a/b"));
        assert_eq!(full.job.as_deref(), Some("reset"));
        assert_eq!((full.metric.as_str(), full.x.len()), ("ops_s", 2));
        let short = parse("reset/ops_s");
        assert_eq!((short.series, short.job.as_deref()), (None, Some("reset")));
        assert_eq!(parse("m_inter").job, None);
        let error = ObjectiveSpec::parse(Goal::Minimize, "write/lat_p95_u").unwrap_err();
        assert_eq!(error.valid, "did you mean lat_p95_us?");
    }

    #[test]
    fn weights_add_up_to_one() {
        assert!(weights((0.3, 0.7)).is_ok());
        assert!(weights((1.0, 0.0)).is_ok());
        for bad in [(0.5, 0.6), (-0.5, 1.5), (f64::NAN, 0.5), (0.0, 0.0)] {
            assert!(weights(bad).is_err(), "{bad:?}");
        }
    }
}
