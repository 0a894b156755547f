//! From what was measured to rows of comparison and figures.

use std::collections::BTreeSet;

use crate::experiment::{Axis, AxisValue, Compare, Experiment, FigureSpec, Measured, SeriesSpec};
use crate::figure::{Axis as FigureAxis, Figure, Panel, Point as FigurePoint, Series};
use crate::metrics::{interference, percentile_of, unit_of};
use crate::published::{LookupError, References};
use crate::rows::{Kind, Row, UNIT_M, significant};
use crate::run::{JobMeasured, PointResult};

/// The rows of an experiment: comparisons point by point, interference, checks.
///
/// # Errors
/// The experiment asks the reference tables for what they do not have.
pub fn rows(
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Vec<Row>, LookupError> {
    let mut rows = Vec::new();
    for series in &experiment.series {
        for result in results.iter().filter(|result| result.series == series.name) {
            for compare in &experiment.compare {
                rows.extend(point_rows(experiment, series, compare, result, references)?);
            }
        }
    }
    rows.extend(interference_rows(experiment, results));
    rows.extend(experiment.worked.iter().map(|worked| {
        let points = [(worked.isolated, worked.interfered)];
        let ours = interference(&points, worked.alpha).unwrap_or(f64::NAN);
        // The paper gives two decimals.
        Row::new(
            &experiment.id,
            kind(experiment),
            &worked.name,
            ("m_inter", UNIT_M),
            ours,
        )
        .published(worked.published)
        .judged()
    }));
    rows.extend(check_rows(experiment, results));
    Ok(rows)
}

fn kind(experiment: &Experiment) -> Kind {
    match experiment.kind.as_str() {
        "E" => Kind::Emulator,
        "D" => Kind::Drive,
        _ => Kind::Shape,
    }
}

fn point_rows(
    experiment: &Experiment,
    series: &SeriesSpec,
    compare: &Compare,
    result: &PointResult,
    references: &References,
) -> Result<Vec<Row>, LookupError> {
    let Some(job) = result.jobs.iter().find(|job| job.name == compare.job) else {
        return Ok(Vec::new());
    };
    let row = |metric: &String| {
        let ours = job.metrics.get(metric).unwrap_or(f64::NAN);
        let informative = compare
            .informative
            .iter()
            .any(|informative| informative.applies(metric, &series.name, &result.x.text));
        let kind = if informative {
            Kind::Shape
        } else {
            kind(experiment)
        };
        let name = row_series(experiment, &series.name, job);
        let mut row = Row::new(&experiment.id, kind, &name, (metric, unit_of(metric)), ours)
            .at(&axis_name(&experiment.axis), result.x.number);
        if let Some(published) = references.value(series, &compare.job, &result.x, metric)? {
            row = row.published(published.value).repeats(published.spread);
        }
        if let Some(&(low, high)) = job.metrics.neighbours.get(metric.as_str()) {
            row = row.bracket(low, high);
        }
        Ok(row.judged())
    };
    compare.metrics.iter().map(row).collect()
}

/// The series of a row: with several jobs compared in one series, they are told apart.
pub(crate) fn row_series(experiment: &Experiment, series: &str, job: &JobMeasured) -> String {
    let spec = experiment.series.iter().find(|spec| spec.name == series);
    let jobs: BTreeSet<&str> = experiment
        .compare
        .iter()
        .map(|compare| compare.job.as_str())
        .filter(|job| spec.is_some_and(|spec| runs(experiment, spec, job)))
        .collect();
    if jobs.len() > 1 {
        format!("{series}: {}", job.name)
    } else {
        series.to_owned()
    }
}

/// Whether a series runs the job that results of this name are of.
fn runs(experiment: &Experiment, series: &SeriesSpec, result: &str) -> bool {
    let job = experiment.job_of_result(result);
    job.is_some_and(|job| series.phases.iter().flatten().any(|name| *name == job.name))
}

/// The label of a point in figures.
pub(crate) fn point_label(axis: &Axis, x: &AxisValue) -> String {
    format!("{} {}", axis_name(axis), x.text)
}

/// Why `row` is shown and not judged, if the experiment says so.
pub(crate) fn not_judged<'a>(experiment: &'a Experiment, row: &Row) -> Option<&'a str> {
    let at = row.x.as_ref()?.value.to_bits();
    let mut values = experiment.axis.values.iter();
    let x = values.find(|x| significant(x.number).to_bits() == at)?;
    for series in &experiment.series {
        for compare in &experiment.compare {
            let runs = runs(experiment, series, &compare.job);
            let named = row.series == series.name
                || row.series == format!("{}: {}", series.name, compare.job);
            let informative = compare.informative.iter().find(|informative| {
                runs && named && informative.applies(&row.metric, &series.name, &x.text)
            });
            if let Some(informative) = informative {
                return Some(&informative.reason);
            }
        }
    }
    None
}

fn axis_name(axis: &Axis) -> String {
    if axis.unit.is_empty() {
        axis.name.clone()
    } else {
        format!("{} [{}]", axis.name, axis.unit)
    }
}

/// What `measured` says: our value of one metric at one point.
fn value_at(results: &[PointResult], measured: &Measured) -> Option<f64> {
    results
        .iter()
        .find(|result| result.series == measured.series && result.x.text == measured.x)?
        .jobs
        .iter()
        .find(|job| job.name == measured.job)?
        .metrics
        .get(&measured.metric)
}

fn interference_rows(experiment: &Experiment, results: &[PointResult]) -> Vec<Row> {
    let point = |series: &str, job: &str, x: &AxisValue| {
        let at = |metric: &str| {
            value_at(
                results,
                &Measured {
                    series: series.to_owned(),
                    x: x.text.clone(),
                    job: job.to_owned(),
                    metric: metric.to_owned(),
                },
            )
        };
        Some((at("kiops")?, at("lat_p95_us")?))
    };
    let row = |pair: &crate::experiment::Interference| {
        // Levels without a point on either side cannot be compared.
        let points: Vec<_> = experiment
            .axis
            .values
            .iter()
            .filter_map(|x| {
                Some((
                    point(&pair.isolated, &pair.isolated_job, x)?,
                    point(&pair.series, &pair.job, x)?,
                ))
            })
            .collect();
        let ours = interference(&points, pair.alpha)?;
        let mut row = Row::new(
            &experiment.id,
            kind(experiment),
            &pair.series,
            ("m_inter", UNIT_M),
            ours,
        );
        if let Some(published) = pair.published {
            row = row.published(published);
        }
        Some(match pair.informative {
            Some(_) => row.informative(),
            None => row.judged(),
        })
    };
    experiment.interference.iter().filter_map(row).collect()
}

fn check_rows(experiment: &Experiment, results: &[PointResult]) -> Vec<Row> {
    let row = |check: &crate::experiment::Check| {
        let smaller = value_at(results, &check.smaller)?;
        let larger = value_at(results, &check.larger)?;
        let ratio = larger / smaller;
        let metric = (check.says.as_str(), "ratio");
        Some(
            Row::new(&experiment.id, Kind::Shape, "check", metric, ratio)
                .shape(ratio >= check.factor)
                .judged(),
        )
    };
    experiment.checks.iter().filter_map(row).collect()
}

/// The figure of an experiment, if it has one: our curves, published points on them.
///
/// # Errors
/// As [`rows`].
pub fn figure(
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Option<Figure>, LookupError> {
    if experiment.figures.is_empty() {
        return Ok(None);
    }
    let title = format!("{}: {}", experiment.id, experiment.title);
    let mut figure = Figure::new(title);
    for spec in &experiment.figures {
        figure = figure.panel(panel(spec, experiment, results, references)?);
    }
    Ok(Some(figure))
}

fn panel(
    spec: &FigureSpec,
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Panel, LookupError> {
    let axis = |metric: &str, log: bool| {
        let (name, unit) = if metric == "axis" {
            (experiment.axis.name.clone(), experiment.axis.unit.clone())
        } else {
            (quantity(metric), unit_of(metric).to_owned())
        };
        if log {
            FigureAxis::log10(name, unit)
        } else {
            FigureAxis::linear(name, unit)
        }
    };
    let mut panel = Panel::new(
        &spec.title,
        axis(&spec.x, spec.log_x),
        axis(&spec.y, spec.log_y),
    );
    for series in &experiment.series {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for result in results.iter().filter(|result| result.series == series.name) {
            // A series that does not run the job runs the same under another
            // name, alone: whichever is compared.
            let compared = experiment.compare.iter().map(|compare| &compare.job);
            let job = std::iter::once(&spec.job)
                .chain(compared)
                .find_map(|name| result.jobs.iter().find(|job| job.name == *name));
            let Some(job) = job else { continue };
            let label = point_label(&experiment.axis, &result.x);
            let of_ours = |metric: &str| {
                if metric == "axis" {
                    Some(result.x.number)
                } else {
                    job.metrics.get(metric)
                }
            };
            if let (Some(x), Some(y)) = (of_ours(&spec.x), of_ours(&spec.y)) {
                ours.push(FigurePoint::new(x, y).label(label.clone()));
            }
            let of_theirs = |metric: &str| -> Result<_, LookupError> {
                if metric == "axis" {
                    return Ok(Some(result.x.number));
                }
                let published = references.value(series, &job.name, &result.x, metric)?;
                Ok(published.map(|published| published.value))
            };
            if let (Some(x), Some(y)) = (of_theirs(&spec.x)?, of_theirs(&spec.y)?) {
                theirs.push(FigurePoint::new(x, y).label(label));
            }
        }
        panel = panel.series(Series::new(&series.name).ours(ours).published(theirs));
    }
    Ok(panel)
}

/// A metric in words.
fn quantity(metric: &str) -> String {
    if let Some(percent) = percentile_of(metric) {
        return format!("P{percent} latency");
    }
    match metric {
        "kiops" | "kiops_by_count" | "mib_s" | "ops_s" => "throughput".to_owned(),
        "lat_mean_us" => "mean latency".to_owned(),
        _ => metric.replace('_', " "),
    }
}
